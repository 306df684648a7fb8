"""What a proof by intervals leaves behind: proven intervals, and in words what is proven.

A certificate belongs to a solution of equations or to quantities with a formula (closed forms,
expectations, roots of polynomials), behind which there is no saddle point: of these nothing but the
numbers themselves is proven.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...ball_library import require_flint
from ...errors import CertificationError, ParameterError
from ...numeric.arguments import checked_switch
from ...pages import Block, Listing, Table
from ...result import Result, quantity
from ...runtime.precision import local_context
from ...symbolic.exact.enclosures import Enclosure

LIBRARIES = (
    "python-flint (Arb) computes enclosures that hold",
    "SymPy is right about derivatives, cancellations and assumptions of the formulas",
    "floats given as parameters mean the decimal numbers that they print as",
)
"""What every proof by intervals rests on."""


@dataclass(frozen=True, repr=False)
class CertifiedValues(Result):
    """Quantities with proven intervals.

    Attributes
    ----------
    title : str
        What the quantities belong to.
    values : mapping of str to Enclosure
        The true value lies in the interval, ends included.
    statement : str
        What is proven, in one sentence.
    assumptions : tuple of str
        What the proof rests on.
    digits : int
        Digits asked for.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> from giantstep import OneGradientStep
    >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=4)
    >>> proof = model.weight_spike(certify=True).certificate
    >>> proof["theta2"].contains("1.6976527263135504"), proof.width < 1e-15
    (False, True)
    """

    _document = "certified values"
    _where = ("title",)

    title: str
    values: Mapping[str, Enclosure] = field(metadata=quantity("proven intervals"))
    statement: str
    assumptions: tuple[str, ...] = ()
    digits: int = 15

    def __getitem__(self, name: str) -> Enclosure:
        return self.values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> float:
        """Largest length of an interval relative to its number; that of a zero absolutely."""
        return max((_width(value) for value in self.values.values()), default=0.0)

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        return f"certified intervals of relative width {self.width:.1e}"

    def page(self) -> Iterable[Block]:
        """Return the intervals, what is proven of them and on which assumptions."""
        yield self.title
        yield Table(
            [(row.words, row.text) for row in self.entries()], ("quantity", "proven interval")
        )
        yield self.statement
        yield "assumed:"
        yield Listing(self.assumptions, mark="")


def midpoint(value: Enclosure, ctx: Any = None) -> Any:
    """Return the midpoint of an interval as a float, or rounded to the precision of a context."""
    if ctx is None:
        return float(value.midpoint)
    return ctx.mpf(int(value.midpoint.p)) / int(value.midpoint.q)


def _width(value: Enclosure) -> float:
    if value.is_exact:
        return 0.0
    size = 1 if value.contains_zero else abs(value.midpoint)
    result = float((2 * value.radius / size).evalf(5))
    return result if math.isfinite(result) else math.inf


def refuse_certificate(certify: object, model: str, reason: str) -> None:
    """Raise if a certificate is wanted.

    Parameters
    ----------
    certify : bool
        As the user gave it.
    model, reason : str
        What has no certificate, and why.

    Raises
    ------
    CertificationError
        If `certify` is True.
    ParameterError
        If it is no truth value.
    """
    if checked_switch("certify", certify):
        raise CertificationError(
            f"{model} are outside of what can be certified: {reason}\n"
            "  certified are the square loss of SpikedRandomFeatures, OneGradientStep.risk and "
            "kernels whose averages are over one Gaussian variable"
        )


def certificate_wanted(certify: object) -> bool:
    """Return whether a certificate is wanted, before anything is computed for it.

    Raises
    ------
    ParameterError
        If `certify` is no truth value.
    MissingDependencyError
        If it is True and python-flint is not installed.
    """
    wanted = checked_switch("certify", certify)
    if wanted:
        require_flint()
    return wanted


ASSUMPTIONS = (
    *LIBRARIES,
    "this package is right about what it makes of the equations: their form as steps, kinks and "
    "bounds of activations",
)
"""What every certificate assumes about software and input."""


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """Proven intervals for the solution of a system of equations.

    Attributes
    ----------
    system : str
        Name of the system.
    parameters : mapping from str to str
        Where it was solved: decimal numbers, or intervals of what is no rational number.
    values : mapping from str to Enclosure
        Every output and unknown, the main output first.
    box : mapping from str to Enclosure
        Unknowns of nonlinear equations: in this box there is exactly one solution. Empty where the
        solution is a closed form or that of linear equations.
    digits : int
        Digits asked for.
    bits : int
        Working precision.
    panels : int
        Panels of the line over which integrals were enclosed; 0 without integrals.
    contraction : float
        Bound of the norm of 1 − Y F'(box), weighted by the sides of the box, below 1; 0 without
        nonlinear equations.
    statement : str
        What is proven.
    assumptions : tuple of str
        On what.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> from giantstep import OneGradientStep
    >>> model = OneGradientStep("erf", "tanh", alpha=2.5, beta=1.2, noise_variance=0.16)
    >>> certificate = model.risk(ridge=0.1, certify=True).certificate
    >>> certificate.values["risk_trained"].digits >= 15, certificate.width < 1e-14
    (True, True)
    """

    _document = "certificate"

    system: str
    parameters: Mapping[str, str]
    values: Mapping[str, Enclosure] = field(metadata=quantity("proven intervals"))
    box: Mapping[str, Enclosure]
    digits: int
    bits: int
    panels: int
    contraction: float
    statement: str
    assumptions: tuple[str, ...] = ASSUMPTIONS

    def __post_init__(self) -> None:
        if not self.values:
            raise ParameterError("values must hold at least one interval: nothing is certified")

    def __getitem__(self, name: str) -> Enclosure:
        try:
            return self.values[name]
        except KeyError:
            raise ParameterError(
                f"nothing is certified under the name {name!r}; there are: {', '.join(self.values)}"
            ) from None

    @property
    def main(self) -> str:
        """Name of the main output."""
        return next(iter(self.values))

    @property
    def widths(self) -> dict[str, float]:
        """Length of every interval, rounded up."""
        return {name: _rounded_up(value) for name, value in self.values.items()}

    @property
    def width(self) -> float:
        """Length of the interval of the main output, rounded up."""
        return _rounded_up(self.values[self.main])

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        return f"certified: a proven interval of width {self.width:.1e} around {self.main}"

    def page(self) -> Iterable[Block]:
        """Return what is proven, and on which assumptions."""
        yield self.statement
        yield Table([(row.words, row.text) for row in self.entries()])
        yield "on the assumptions that"
        yield Listing(self.assumptions)

    def resting_on(self, *assumptions: str) -> Certificate:
        """Return the certificate with further assumptions, those of a model."""
        return replace(self, assumptions=(*self.assumptions, *assumptions))

    def numbers(self, digits: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return midpoints and how far the true values can be from them.

        Parameters
        ----------
        digits : int or None
            Digits of the mpmath numbers that are returned; None for floats.
        """
        if digits is None:
            values = {name: _float(x.midpoint) for name, x in self.values.items()}
            # Half a width; the conversion of the midpoint rounds, too.
            errors = {
                name: math.nextafter(self.widths[name] / 2 + abs(x) * 2.0**-53, math.inf)
                for name, x in values.items()
            }
            return values, errors
        ctx = local_context(digits)

        def number(x: Any) -> Any:
            return ctx.mpf(int(x.p)) / int(x.q)

        exact = {name: number(x.midpoint) for name, x in self.values.items()}
        # Conversions round by less than one part in 2^precision each.
        bounds = {
            name: 2 * (number(x.radius) + abs(exact[name]) * ctx.eps)
            for name, x in self.values.items()
        }
        return exact, bounds


def _float(number: Any) -> float:
    return int(number.p) / int(number.q)


def _rounded_up(value: Enclosure) -> float:
    width = 2 * value.radius
    if width == 0:
        return 0.0
    try:
        number = int(width.p) / int(width.q)
    except OverflowError:
        return math.inf
    return math.nextafter(number, math.inf)
