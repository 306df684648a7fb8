r"""What the theory knows of student and teacher: their linear part and the variance of the rest.

Derived once for each activation, exactly; kept as text with many digits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...digits import MOST_DIGITS, checked_digits
from ...errors import AssumptionError
from ...numeric.cache import FileCache
from ...symbolic.expressions.activations import activation
from ...symbolic.expressions.regularity import Parity
from ...symbolic.gaussian.enclosed_formulas import FormulaBalls
from ...symbolic.gaussian.enclosures import INTERMEDIATE_DIGITS
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ...symbolic.hermite.coefficients import hermite_coefficient, residual_variance, slope_variance
from ..derived import derived
from ..teachers import DirectionalTeacher, Teacher, moments_of, parity_and_jumps, read_teacher

if TYPE_CHECKING:
    from ...symbolic.exact.enclosures import Enclosure

# Of the texts in the cache; more are computed when they are asked for, this many at a time.
_DIGITS = 60
_STEP = 20
# Up to so many digits an integral takes less than a second.
_QUICK = 150


@dataclass(frozen=True)
class Moments:
    r"""Moments of a function of one standard Gaussian variable, or of a target of several.

    Of a target :math:`f_*` of several directions only these enter the theory: `linear` is then
    the length of :math:`\mathbb{E}[xf_*]`, along which the spike is.

    Attributes
    ----------
    name : str
        The function, as its user gave it.
    odd : bool
        Provably an odd function.
    jumps : bool
        Whether it is discontinuous; a student that jumps can take no gradient step.
    mean : float
        :math:`\mu_0 = \mathbb{E}\,\sigma`.
    linear : float
        :math:`\mu_1 = \mathbb{E}\,z\,\sigma`.
    residual : float
        :math:`\mathbb{E}\sigma^2 - \mu_0^2 - \mu_1^2`, of the nonlinear part.
    slope_variance : float
        :math:`\mathbb{E}\sigma'^2 - \mu_1^2`; nan for a function that jumps.
    digits : tuple of (str, str)
        The moments as decimal texts of 60 digits.
    folder : str
        Of the cache, for those with more digits.
    """

    name: str
    odd: bool
    jumps: bool
    mean: float
    linear: float
    residual: float
    slope_variance: float
    digits: tuple[tuple[str, str], ...]
    folder: str = field(repr=False, compare=False)

    @property
    def square(self) -> float:
        r""":math:`\mathbb{E}\,(\sigma - \mu_0)^2`."""
        return self.linear**2 + self.residual

    def exact(self) -> dict[str, sp.Expr]:
        """Return mean, linear part, residual and slope variance as SymPy expressions."""
        return exact_moments(self.name)

    def certified(self, digits: int = 15) -> dict[str, Enclosure]:
        """Return proven intervals of mean, linear part, residual and slope variance.

        The slope variance of a function that jumps is left out.

        Raises
        ------
        CertificationError
            If one cannot be proven.
        MissingDependencyError
            If python-flint is not installed.
        """
        formulas = FormulaBalls({})
        return {
            name: formulas.enclosure(value, digits, most=INTERMEDIATE_DIGITS)
            for name, value in self.exact().items()
            if value is not sp.nan
        }

    def precise(self, digits: int) -> dict[str, str]:
        """Return linear part and residual as decimal texts with at least so many digits.

        Hundreds of digits of an integral without closed form take up to minutes; the cache keeps
        them.

        Raises
        ------
        ParameterError
            If `digits` is no whole number from 1 to 10000.
        """
        # Whoever prints a thousand digits computes with more.
        digits = checked_digits(digits, most=10 * MOST_DIGITS)
        if digits <= _DIGITS - 5:
            known = dict(self.digits)
        else:
            wanted = -(-(digits + 5) // _STEP) * _STEP
            known = _with_digits(FileCache(self.folder), self.name, wanted)
        return {name: known[name] for name in ("linear", "residual")}


def moments(name: str, *, argument: str, cache: FileCache) -> Moments:
    """Return the moments of a function, from the cache where they are there.

    Parameters
    ----------
    name : str
        Catalogue name or expression in z.
    argument : str
        How the user knows it; error messages begin with it.

    Raises
    ------
    ExpressionError, AssumptionError
        If the text cannot be read, or the function is not square-integrable.
    """
    document = _derivation(cache, name, argument=argument)
    texts = {k: str(v) for k, v in document["digits"]}
    values: dict[str, Any] = {k: float(v) for k, v in texts.items()}
    return Moments(
        name=name,
        odd=bool(document["odd"]),
        jumps=bool(document["jumps"]),
        **values,
        digits=tuple(texts.items()),
        folder=os.fspath(cache.folder),
    )


@derived("one_gradient_step/moments_to_digits", dict)
def _with_digits(name: str, digits: int) -> dict[str, str]:
    from tqdm.auto import tqdm

    exact = exact_moments(name)
    # Shown at once where an integral takes seconds: there are only two.
    parts = tqdm(
        ("linear", "residual"), desc=f"{digits} digits of {name}", unit="moment", leave=False,
        delay=0 if digits > _QUICK else 1, disable=None,
    )  # fmt: skip
    return {part: _texts({part: exact[part]}, digits)[part] for part in parts}


@derived("one_gradient_step/moments", dict, words=("argument",))
def _derivation(name: str, *, argument: str) -> dict[str, Any]:
    function = _function(name, argument)
    texts = _texts(exact_moments(name), _DIGITS)
    if isinstance(function, DirectionalTeacher):
        odd, jumps = parity_and_jumps(function)
    else:
        odd, jumps = function.parity is Parity.ODD, bool(function.jumps)
    return {"odd": odd, "jumps": jumps, "digits": list(texts.items())}


def exact_moments(name: str) -> dict[str, sp.Expr]:
    r"""Derive mean, linear coefficient, residual variance and slope variance of a function.

    Zeros are decided exactly; the slope variance of a function that jumps is nan.
    """
    function = _function(name)
    if isinstance(function, DirectionalTeacher):
        # Of a target that is no activation nothing asks for slopes.
        result = {**moments_of(function), "slope_variance": sp.nan}
    else:
        mean, linear = (hermite_coefficient(function, k) for k in range(2))
        result = {
            "mean": mean,
            "linear": linear,
            "residual": residual_variance(function),
            "slope_variance": sp.nan if function.jumps else slope_variance(function),
        }
    for key, value in result.items():
        if value is not sp.nan and is_exactly_zero(value, f"{key} of {name}"):
            result[key] = sp.S.Zero
    return result


def _function(name: str, argument: str = "teacher") -> Teacher:
    """Read a student, or a teacher, which may have several directions."""
    return activation(name, argument=argument) if argument != "teacher" else read_teacher(name)


def _texts(exact: dict[str, sp.Expr], digits: int) -> dict[str, str]:
    return {k: str(value.evalf(digits)) for k, value in exact.items()}


def require_centred(student: Moments, teacher: Moments) -> None:
    """Refuse functions with a mean."""
    if student.mean:
        raise AssumptionError(
            f"student {student.name!r} is not centred: its mean is mu_0 = {student.mean:.6g}. Its "
            "kernel then has a trivial outlier of size O(sqrt(n)) along the constant vector, which "
            "hides the spike of the step; pass centre=True (--centre) to use the function minus "
            "its mean"
        )
    if teacher.mean:
        raise AssumptionError(
            f"teacher {teacher.name!r} is not centred: its mean is {teacher.mean:.6g}, which no "
            "centred feature can fit and which lengthens the spike of the step; pass centre=True "
            "(--centre) to use the function minus its mean"
        )
