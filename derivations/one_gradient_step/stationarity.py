r"""Where the risk is stationary in the penalty: roots of a polynomial, all of them.

In the variable s of the closed form the risk against noisy labels is a quotient of polynomials,
:math:`(B + \Delta)/D = P(s)/Q(s)`, so that its stationary points are the roots of
:math:`P'Q - PQ'` beyond the value of s that belongs to λ = 0. The polynomials are derived once from
:mod:`giantstep.symbolic.ridge_equivalent`; with numbers in them all their roots are found, by exact
arithmetic on rational numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...runtime.precision import local_context
from ...symbolic.positive_roots import positive_roots
from ...symbolic.printing.compiled import compiled
from ...symbolic.ridge_equivalent import Spike
from .decimals import MOMENT_GUARD_DIGITS, decimal_fraction, mp_number
from .proofs import SCALAR, kappa, s
from .spike_sizes import aligned_square, orthogonal_square
from .symbols import (
    alpha,
    alpha0,
    beta,
    linear,
    noise,
    residual,
    step_size,
    teacher_linear,
    teacher_residual,
)

if TYPE_CHECKING:
    from .model import OneGradientStep

_aligned, _orthogonal, _signal, _rest = sp.symbols("t_2 tau M m", nonnegative=True)
_PARAMETERS = (alpha, beta, kappa, _aligned, _orthogonal, _signal, _rest)
# Beyond the digits asked for: what cancels where parameters differ by many orders of magnitude.
_GUARD_DIGITS = 120


@cache
def risk_polynomials() -> tuple[sp.Poly, sp.Poly]:
    r"""Return P and Q of :math:`(B + \Delta)/D = P/Q` as polynomials in s and the parameters."""
    bias = _rest + _signal * SCALAR.bias(Spike(_aligned, _orthogonal))
    above, below = sp.fraction(sp.cancel(sp.together(bias)))
    numerator, denominator = sp.fraction(sp.cancel(sp.together(SCALAR.derivative)))
    quotient = sp.cancel(above * denominator / (below * numerator))
    first, second = (sp.Poly(part, s, *_PARAMETERS) for part in sp.fraction(quotient))
    # The leading coefficients decide about the sign of both: B + Δ > 0 and D > 0.
    return first, second


def exact_parameters(model: OneGradientStep, digits: int) -> dict[sp.Symbol, Fraction]:
    """Return the parameters of a model as fractions; moments to so many digits.

    Floats are read as the decimal numbers that they print as.
    """
    student, teacher = (m.precise(digits) for m in (model.student_moments, model.teacher_moments))
    found = {
        alpha: decimal_fraction(model.alpha),
        beta: decimal_fraction(model.beta),
        step_size: decimal_fraction(model.step_size) * model.loss_factor,
        noise: decimal_fraction(model.noise_variance),
        linear: Fraction(Decimal(student["linear"])),
        residual: Fraction(Decimal(student["residual"])),
        teacher_linear: Fraction(Decimal(teacher["linear"])),
        teacher_residual: Fraction(Decimal(teacher["residual"])),
    }
    if model.step_samples != float("inf"):
        found[alpha0] = decimal_fraction(model.step_samples)
    return found


def _value(expr: sp.Expr, known: dict[sp.Symbol, Fraction]) -> sp.Rational:
    exact = {x: sp.Rational(f.numerator, f.denominator) for x, f in known.items()}
    return expr.xreplace(exact)


@dataclass(frozen=True)
class StationaryPoint:
    """A penalty with its risk, as mpmath numbers.

    Attributes
    ----------
    s, paper_ridge, effective_ridge : mpf
        s, λ_B and ν.
    risk : mpf
        Against the noise-free target.
    curvature : mpf
        Second derivative of the risk with respect to λ_B; of a minimum positive.
    residual : float
        Relative: what is left of the derivative with respect to log λ_B.
    """

    s: Any
    paper_ridge: Any
    effective_ridge: Any
    risk: Any
    curvature: Any
    residual: float


@dataclass(frozen=True)
class RidgeLandscape:
    """How the risk depends on the penalty.

    Attributes
    ----------
    stationary : tuple of StationaryPoint
        All of them, from small to large penalties.
    vanishing, infinite : mpf
        Limits of the risk for λ → 0 (infinite at n = N) and λ → ∞.
    """

    stationary: tuple[StationaryPoint, ...]
    vanishing: Any
    infinite: Any

    @property
    def minima(self) -> tuple[StationaryPoint, ...]:
        """The stationary points that are minima."""
        return tuple(point for point in self.stationary if point.curvature > 0)


def ridge_landscape(model: OneGradientStep, *, trained: bool, digits: int) -> RidgeLandscape:
    """Return stationary points and limits of the risk of a model whose student has μ_1 ≠ 0.

    Parameters
    ----------
    model : OneGradientStep
    trained : bool
        After the step, or before it.
    digits : int
        Of the results.
    """
    known = exact_parameters(model, digits + MOMENT_GUARD_DIGITS)
    ctx = local_context(digits + _GUARD_DIGITS)
    if not trained:
        known[step_size] = Fraction(0)
    across = orthogonal_square() if alpha0 in known else sp.S.Zero
    values = {
        alpha: _value(alpha, known),
        beta: _value(beta, known),
        kappa: _value(residual / linear**2, known),
        _aligned: _value(aligned_square(), known),
        _orthogonal: _value(across, known),
        _signal: _value(teacher_linear**2, known),
        _rest: _value(teacher_residual + noise, known),
    }
    above, below = (poly.eval(values) for poly in risk_polynomials())
    # Common factors are there for special parameters only, such as a linear student.
    below, above = (sp.Poly(p, s, domain=sp.QQ) for p in below.cancel(above, include=True))
    lowest = _lowest(values, ctx)
    # Distances from the lower bound of s are what keeps its digits.
    above, below = above.shift(lowest), below.shift(lowest)
    slope = above.diff() * below - above * below.diff()
    label_noise = mp_number(_value(noise, known), ctx)
    start = ctx.polyval(_coefficients(below, ctx), 0)
    # At n = N the derivative D of λ vanishes, up to what the lower bound is rounded by.
    singular = abs(start) <= ctx.sqrt(ctx.eps) * max(map(abs, _coefficients(below, ctx)))
    vanishing = ctx.inf
    if not singular:
        vanishing = ctx.polyval(_coefficients(above, ctx), 0) / start - label_noise
    point = _Points(
        above, below, slope, values, lowest, mp_number(_value(linear**2, known), ctx), ctx
    )
    least = mp_number(lowest, ctx) * ctx.sqrt(ctx.eps)
    return RidgeLandscape(
        stationary=tuple(
            point(root, label_noise) for root in positive_roots(slope, ctx) if root > least
        ),
        vanishing=vanishing,
        infinite=mp_number(values[_signal] + _value(teacher_residual, known), ctx),
    )


class _Points:
    """Penalty, risk and curvature at a distance t from the lower bound of s."""

    def __init__(
        self,
        above: sp.Poly,
        below: sp.Poly,
        slope: sp.Poly,
        values: dict[sp.Symbol, sp.Rational],
        lowest: sp.Rational,
        scale: Any,
        ctx: Any,
    ) -> None:
        self._ctx, self._lowest, self._scale = ctx, mp_number(lowest, ctx), scale
        polynomials = (above, below, slope, slope.diff())
        self._polynomials = [_coefficients(poly, ctx) for poly in polynomials]
        arguments = (s, alpha, beta, kappa)
        self._given = [mp_number(values[x], ctx) for x in arguments[1:]]
        self._functions = [
            compiled(expr, arguments, ctx)
            for expr in (SCALAR.ridge, SCALAR.effective_ridge, SCALAR.ridge.diff(s))
        ]

    def __call__(self, t: Any, label_noise: Any) -> StationaryPoint:
        """Return the point, where the slope vanishes up to rounding."""
        at = self._lowest + t
        ridge, effective, pace = (
            self._scale * function(at, *self._given) for function in self._functions
        )
        above, below, slope, bend = (self._ctx.polyval(c, t) for c in self._polynomials)
        fresh = above / below
        return StationaryPoint(
            s=at,
            paper_ridge=ridge,
            effective_ridge=effective,
            risk=fresh - label_noise,
            curvature=bend / below**2 / pace**2,
            residual=float(abs(slope / below**2 / pace * ridge / fresh)),
        )


def _coefficients(poly: sp.Poly, ctx: Any) -> list[Any]:
    return [mp_number(c, ctx) for c in poly.all_coeffs()]


def _lowest(values: dict[sp.Symbol, sp.Rational], ctx: Any) -> sp.Rational:
    """Return s of λ = 0 as a rational number, to the precision of the context."""
    bounds = [
        compiled(bound, (alpha, beta, kappa), ctx)(
            *(mp_number(values[x], ctx) for x in (alpha, beta, kappa))
        )
        for bound in SCALAR.lower_bounds()
    ]
    sign, mantissa, exponent, _ = max(bounds)._mpf_
    return sp.Rational(-int(mantissa) if sign else int(mantissa)) * sp.Rational(2) ** exponent
