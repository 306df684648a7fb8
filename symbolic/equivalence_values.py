r"""The equivalent features of actual neurons, as numbers with any number of digits.

Closed forms are enclosed in proven intervals of growing precision until the digits are known;
where there is no closed form the defining integrals are evaluated, Ψ_ii as a mean of squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ..digits import checked_digits
from ..errors import ConvergenceError, ParameterError
from ._tokens import shorten
from .activations import Activation, z
from .arguments import as_expression
from .bivariate_normal import with_far_tails
from .constant_enclosures import NoEnclosure, enclosure
from .equivalence import CENTRE, SPREAD, ConditionalCoefficient, ConditionalEquivalence
from .regularity import require_square_integrable

# Digits that are added, in turn, to those asked for; as many may cancel.
_GUARD_DIGITS = (10, 40, 120, 320)
_NEGLIGIBLE = sp.Rational(1, 10**300)
_WIDEST = 100
"""Spread up to which integrals take seconds; poles are as close to the real line as its inverse."""


@dataclass(frozen=True)
class ConditionalFeatures:
    r"""μ, β and the diagonal of Ψ of some neurons, as numbers.

    Attributes
    ----------
    projection : Expr
        :math:`x_v`.
    overlaps, spreads : tuple of Expr
        m_i and ρ_i.
    mean, slope, residual_variance : tuple of Float
        μ_i, β_i and Ψ_ii.
    digits : int
    """

    projection: sp.Expr
    overlaps: tuple[sp.Expr, ...]
    spreads: tuple[sp.Expr, ...]
    mean: tuple[sp.Float, ...]
    slope: tuple[sp.Float, ...]
    residual_variance: tuple[sp.Float, ...]
    digits: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: the numbers as texts."""
        found: dict[str, Any] = {"projection": str(self.projection), "digits": self.digits}
        for name in ("overlaps", "spreads", "mean", "slope", "residual_variance"):
            found[name] = [str(entry) for entry in getattr(self, name)]
        return found


def features_at(
    student: Activation,
    projection: sp.Expr | float,
    overlaps: Sequence[sp.Expr | float],
    spreads: Sequence[sp.Expr | float],
    *,
    digits: int = 15,
) -> ConditionalFeatures:
    r"""Return μ, β and the diagonal of Ψ of neurons at a projection of the input.

    Parameters
    ----------
    student : Activation
        σ.
    projection : number
        :math:`x_v`.
    overlaps, spreads : sequence of numbers
        m_i and ρ_i of each neuron, as :func:`spiked_rows` gives them; a float counts as the binary
        number that it is.
    digits : int
        Significant digits, 1 to 1000. Values below 10**-300, such as Ψ_ii of relu far from the
        kink, are returned as 0, and so are integrals of what vanishes to the working precision, as
        Ψ_ii of tanh where it is saturated.

    Raises
    ------
    ParameterError
        If a number is not real, a spread not positive, or above 100 where σ has no closed forms,
        or the sequences differ in length.
    AssumptionError
        If E σ² is infinite at the largest spread.
    ConvergenceError
        If a value is too large to be computed.

    Examples
    --------
    >>> from giantstep.symbolic.activations import activation
    >>> features_at(activation("tanh"), sp.Rational(1, 2), [1], [1], digits=20).mean
    (0.29545287705173737015,)
    """
    digits = checked_digits(digits)
    x = _number(projection, "projection")
    m, rho = _numbers(overlaps, "overlaps"), _numbers(spreads, "spreads")
    if len(m) != len(rho):
        raise ParameterError(
            f"overlaps are {len(m)} and spreads {len(rho)}; give one of each per neuron"
        )
    for i, entry in enumerate(rho):
        if not entry.is_positive:
            raise ParameterError(f"spreads[{i}] has to be positive, not {entry}")
    if rho:
        widest = max(rho, key=lambda entry: entry.evalf(30))
        require_square_integrable(
            student(widest * z), z, argument="student at the largest of spreads,"
        )
        general = ConditionalEquivalence(student, CENTRE, SPREAD).residual_variance
        if widest > _WIDEST and general.closed_form is None:
            raise ParameterError(
                f"spreads[{rho.index(widest)}] = {widest} is above {_WIDEST}: the integrals of "
                f"student {student.name!r}, which has no closed forms, would take too long there"
            )
    rows = []
    for i, (a, b) in enumerate(zip(m, rho, strict=True)):
        try:
            rows.append(_values(student, a * x, b, digits))
        except ConvergenceError as error:
            raise ConvergenceError(
                f"neuron {i}, c = {a * x}, rho = {b}: {error}; moderate overlaps and spreads can "
                "be computed"
            ) from None
    mean, slope, residual = zip(*rows, strict=True) if rows else ((), (), ())
    return ConditionalFeatures(x, m, rho, mean, slope, residual, digits)


def spiked_rows(
    scales: Sequence[sp.Expr | float],
    initial_overlaps: Sequence[sp.Expr | float] | None = None,
    initial_norms: Sequence[sp.Expr | float] | None = None,
) -> tuple[tuple[sp.Expr, ...], tuple[sp.Expr, ...]]:
    r"""Return (m_i) and (ρ_i) of the rows :math:`w_i = w_i^0 + \lambda_i v`, |v| = 1.

    .. math:: m_i = \langle w_i^0, v\rangle + \lambda_i, \qquad
              \rho_i^2 = |w_i^0|^2 - \langle w_i^0, v\rangle^2 .

    Parameters
    ----------
    scales : sequence of numbers
        λ_i, the step along the spike.
    initial_overlaps, initial_norms : sequence of numbers, optional
        :math:`\langle w_i^0, v\rangle` and :math:`|w_i^0|`; by default 0 and 1, the limit of unit
        rows that know nothing of v in high dimension.

    Raises
    ------
    ParameterError
        If the lengths differ, or a row has no part outside the spike.

    Examples
    --------
    >>> spiked_rows([2, -1])
    ((2, -1), (1, 1))
    >>> spiked_rows([2], [sp.Rational(3, 5)])
    ((13/5,), (4/5,))
    """
    steps = _numbers(scales, "scales")
    overlaps = (sp.S.Zero,) * len(steps)
    if initial_overlaps is not None:
        overlaps = _numbers(initial_overlaps, "initial_overlaps")
    norms = (sp.S.One,) * len(steps)
    if initial_norms is not None:
        norms = _numbers(initial_norms, "initial_norms")
    for values, name in ((overlaps, "initial_overlaps"), (norms, "initial_norms")):
        if len(values) != len(steps):
            raise ParameterError(f"{name} are {len(values)} and scales {len(steps)}; one per row")
    for i, (norm, overlap) in enumerate(zip(norms, overlaps, strict=True)):
        if not (norm - abs(overlap)).is_positive:
            raise ParameterError(
                f"initial_norms[{i}] = {norm} has to be above the overlap {overlap} in modulus: "
                "the row has no part outside the spike"
            )
    return (
        tuple(o + s for o, s in zip(overlaps, steps, strict=True)),
        tuple(sp.sqrt(n**2 - o**2) for n, o in zip(norms, overlaps, strict=True)),
    )


def _values(
    student: Activation, centre: sp.Expr, spread: sp.Expr, digits: int
) -> tuple[sp.Float, ...]:
    found = ConditionalEquivalence(student, centre, spread)
    coefficients = (found.mean, found.slope, found.residual_variance)
    return tuple(_value(coefficient, digits) for coefficient in coefficients)


def _value(coefficient: ConditionalCoefficient, digits: int) -> sp.Float:
    closed = coefficient.closed_form
    if closed is not None:
        enclosed = _enclosed(with_far_tails(closed), digits)
        if enclosed is not None:
            return enclosed
    value = _integrated(coefficient.definition, digits)
    return sp.Float(0, digits) if abs(value) < _NEGLIGIBLE else value


def _integrated(definition: sp.Expr, digits: int) -> sp.Float:
    """Integrate with more digits where the integrand cancels, as 1 - tanh² does far out."""
    for guard in _GUARD_DIGITS[:-1]:
        try:
            return sp.Float(definition.evalf(digits + guard), digits)
        except ConvergenceError:
            continue
    return sp.Float(definition.evalf(digits + _GUARD_DIGITS[-1]), digits)


def _enclosed(number: sp.Expr, digits: int) -> sp.Float | None:
    """Return the digits of a number by proven intervals of growing precision; None if they fail."""
    for guard in _GUARD_DIGITS:
        bits = math.ceil((digits + guard) * math.log2(10))
        try:
            interval = enclosure(number, bits)
        except NoEnclosure:
            continue
        low, high = (sp.Float(end, precision=bits) for end in interval.real._mpi_)
        largest = max(abs(low), abs(high))
        if largest < _NEGLIGIBLE:
            return sp.Float(0, digits)
        if 2 * (high - low) < largest * sp.Float(10, precision=bits) ** -digits:
            return sp.Float((low + high) / 2, digits)
    return None


def _number(value: Any, name: str) -> sp.Expr:
    number = as_expression(value, name)
    number = number.xreplace({x: sp.Rational(x) for x in number.atoms(sp.Float)})
    if number.free_symbols or not (number.is_real and number.is_finite):
        raise ParameterError(f"{name} has to be a finite real number, not {shorten(repr(value))}")
    return number


def _numbers(values: Any, name: str) -> tuple[sp.Expr, ...]:
    if isinstance(values, str | bytes | sp.Basic) or not hasattr(values, "__iter__"):
        raise ParameterError(f"{name} has to be a sequence of numbers, not {shorten(repr(values))}")
    return tuple(_number(value, f"{name}[{i}]") for i, value in enumerate(values))
