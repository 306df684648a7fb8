r"""The ridge penalty with the smallest risk, before or after the step.

In the variable s of the closed form the risk against noisy labels is a quotient of polynomials,
:math:`(B + \Delta)/D = P(s)/Q(s)`, so that its stationary points are the roots of
:math:`P'Q - PQ'` beyond the value of s that belongs to λ = 0. The polynomials are derived once from
:mod:`giantstep.symbolic.systems.ridge_equivalent`; with numbers in them all their roots are
isolated by exact arithmetic on rational numbers, so that the best of them is the best of all. For
n > N it is always positive where anything is left of the labels at λ → 0; for n < N the risk may
fall all the way to λ → 0. Where the student or the teacher has no linear part the risk only falls
with the penalty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from ...deprecations import by_name
from ...digits import MOMENT_GUARD_DIGITS, checked_digits, decimal_fraction, mp_number
from ...errors import AssumptionError, ParameterError
from ...labelled import labelled
from ...numeric.arguments import is_one_of, positive_number
from ...pages import Block
from ...result import Number, Result, Row, latex_number, quantity
from ...runtime.precision import local_context
from ...symbolic.exact.positive_roots import positive_roots
from ...symbolic.printing.compiled import compiled
from ...symbolic.systems.ridge_equivalent import (
    NO_SPIKE,
    Spike,
    paper_ridge,
    response_without_floor,
)
from ..conjectures.statements import equal, positive
from ..formulas import latex
from ..optima import optimum
from ..penalties import given_penalty, one_penalty, penalty_of
from ..sensitivities import ModelQuestion
from .properties import (
    COVARIANCE,
    SCALAR,
    Property,
    Step,
    aligned,
    aligned_rate,
    kappa,
    large_ridge_limit,
    large_step_limit,
    nu,
    orthogonal_rate,
    s,
    slope,
    wide_network_limit,
)
from .risk import STEP, covariance, model_parameters
from .symbols import (
    IDENTIFIERS,
    aligned_square,
    alpha,
    alpha0,
    beta,
    linear,
    noise,
    orthogonal_square,
    residual,
    step_size,
    teacher_linear,
    teacher_residual,
)

if TYPE_CHECKING:
    import xarray as xr

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
    result = {
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
        result[alpha0] = decimal_fraction(model.step_samples)
    return result


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
    """Return stationary points and limits of the risk of a model whose student has μ_1 ≠ 0."""
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


INTERIOR = "interior minimum"
VANISHING = "the risk falls towards a vanishing penalty"
INFINITE = "the risk falls towards an infinite penalty"

# Of float results; moments have ten more, the arithmetic some hundred.
_FLOAT_DIGITS = 16


@dataclass(frozen=True, repr=False)
class OptimalRidge(Result):
    r"""Where the risk of the ridge readout is smallest, as a function of its penalty.

    Attributes
    ----------
    ridge, paper_ridge : float or mpmath number
        λ of the toolkit and λ_B = (β/α) λ; 0 or inf where the risk falls to that end.
    risk : float or mpmath number
        There, against the noise-free teacher.
    kind : str
        "interior minimum", or what the risk does at the end of the range.
    effective_ridge : float or mpmath number
        ν at an interior minimum, else nan.
    curvature : float or mpmath number
        d²R/dλ² at an interior minimum, else nan.
    residual : float
        dR/d log λ over R + Δ at an interior minimum, else 0.
    other_minima : tuple of float
        λ of local minima that are not the lowest. None is known to occur: that the risk has at most
        one minimum was found for all parameters that were tried, and is not proved.
    vanishing, infinite : float or mpmath number
        Limits of the risk for λ → 0 (inf at the interpolation peak) and λ → ∞.
    trained : bool
        After the step, or before it.
    alpha : float
        n/d of the readout.
    rests_on : str
        What the optimum rests on.
    digits : int or None
        Digits asked for; None for floats.

    Notes
    -----
    There is no best step size beside the best penalty: the improvement by the step increases with
    η at every penalty, so that the risk at its best penalty falls with η, too.
    """

    _document = "optimal ridge"
    _entry = "document"

    ridge: Number = field(metadata=quantity("optimal ridge", r"\lambda"))
    paper_ridge: Number = field(metadata=quantity("paper ridge", r"\lambda_B"))
    risk: Number = field(metadata=quantity("risk there", "R"))
    kind: str = field(metadata=quantity("kind"))
    effective_ridge: Number = field(metadata=quantity("effective ridge", r"\nu"))
    curvature: Number = field(metadata=quantity("curvature of the risk", r"d^2R/d\lambda^2"))
    residual: float
    other_minima: tuple[float, ...] = field(metadata=quantity("other local minima", significant=6))
    vanishing: Number = field(metadata=quantity("vanishing penalty", r"R(\lambda \to 0)"))
    infinite: Number = field(metadata=quantity("infinite penalty", r"R(\lambda \to \infty)"))
    trained: bool = field(metadata=quantity("after the step"))
    alpha: float
    rests_on: str
    digits: int | None = None

    @property
    def is_interior(self) -> bool:
        """Whether the risk is stationary at the optimum."""
        return self.kind == INTERIOR


def step_optimum(model: OneGradientStep, digits: int | None, asked: dict[str, Any]) -> Any:
    """Answer :meth:`.OneGradientStep.optimum`; `asked` are its other arguments.

    Of the risk over the penalty nothing is searched and there are no bounds. The risk has no best
    step size: at its best penalty, and at every other one, it falls with the step.
    """
    over, of, parameters = asked["over"], asked["of"], dict(asked["fixed"])
    trained, alone = parameters.pop("trained", True), {"bounds": None, "maximum": False}
    names = [over] if isinstance(over, str) else over
    if not isinstance(names, list | tuple) or not names:
        raise ParameterError(f"over must be 'ridge', or name other parameters, got {over!r}")
    is_risk = is_one_of(of, ("risk", "test_error"))
    if not is_risk or [*names] != ["ridge"]:
        if is_one_of(of, ("risk", "test_error", "risk_trained")) and not asked["maximum"]:
            if trained and "step_size" in names:
                raise ParameterError(
                    "the risk at its best penalty falls with the step, as at every other one, so "
                    f"that there is no best step size; got over={over!r}"
                )
        if digits is not None:
            raise ParameterError(
                "digits refine the penalty with the smallest risk; leave them out, or ask for "
                "of='risk' and over='ridge'"
            )
        if is_risk:
            of = "risk_trained" if trained else "risk_initial"
        return optimum(ModelQuestion(model), **{**asked, "of": of, "fixed": parameters})
    searched = [name for name, value in alone.items() if asked[name] is not value]
    if unknown := sorted({*parameters, *searched} - {"alpha"}):
        raise ParameterError(
            f"optimum takes the parameter alpha, and not {unknown[0]}: the others are those of the "
            "model, and all penalties are looked at"
        )
    alpha = parameters.get("alpha")
    if alpha is None or not np.ndim(alpha):
        return optimal_ridge(model, trained=trained, digits=digits, alpha=alpha)
    if digits is not None or trained is not True:
        raise ParameterError(
            "digits and trained are for one alpha: curves hold floats, of both layers; leave them "
            "out, or give one number"
        )
    return optimal_ridge_curve(model, alpha, progress=None if asked["progress"] else False)


def optimal_ridge(
    model: OneGradientStep,
    trained: bool = True,
    *,
    digits: int | None = None,
    alpha: float | None = None,
) -> OptimalRidge:
    """Return the penalty with the smallest risk, as :meth:`optimum` does."""
    if not isinstance(trained, bool):
        raise ParameterError(f"trained must be True or False, got {trained!r}")
    if digits is not None:
        digits = checked_digits(digits)
    if alpha is not None:
        model = replace(model, alpha=positive_number("alpha", alpha))
    if model.student_moments.linear == 0:
        landscape = _without_linear_part(model, digits)
    else:
        landscape = ridge_landscape(model, trained=trained, digits=digits or _FLOAT_DIGITS)
    return _best(model, landscape, trained, digits)


def optimal_ridge_curve(
    model: OneGradientStep, alpha: Sequence[float], *, progress: bool | None = None
) -> xr.Dataset:
    """Return the best penalties and their risks over n/d, as :meth:`optimum` does."""
    # Imported here: tqdm.auto looks for notebook widgets, which costs time at every import.
    from tqdm.auto import tqdm

    points = _points(alpha)
    hidden = None if progress is None else not progress
    result: dict[str, list[float]] = {}
    for point in tqdm(points, delay=1, disable=hidden, unit="point"):
        for layer, trained in (("initial", False), ("trained", True)):
            best = optimal_ridge(model, trained=trained, alpha=point)
            for name in ("ridge", "paper_ridge", "risk", "curvature"):
                result.setdefault(f"{name}_{layer}", []).append(float(getattr(best, name)))
    return labelled(
        {name: ("alpha", np.array(values)) for name, values in result.items()},
        coords={"alpha": points},
        attrs={"model": model.to_json()},
    )


def _points(alpha: object) -> list[float]:
    values = np.atleast_1d(np.asarray(alpha, dtype=object))
    if values.ndim != 1 or not values.size:
        raise ParameterError("alpha must be a sequence of at least one positive number")
    return [positive_number("alpha", value) for value in values.tolist()]


def _without_linear_part(model: OneGradientStep, digits: int | None) -> RidgeLandscape:
    """Return the landscape of a student with μ_1 = 0, whose features know nothing of the labels.

    Their noise enters with D alone, which increases with the penalty.
    """
    ctx = local_context(digits or _FLOAT_DIGITS)
    moments = model.teacher_moments.precise(digits or _FLOAT_DIGITS)
    infinite = ctx.mpf(moments["linear"]) ** 2 + ctx.mpf(moments["residual"])
    try:
        vanishing = model.ridgeless(digits=digits).trained
    except AssumptionError:
        vanishing = ctx.inf
    return RidgeLandscape((), ctx.mpf(vanishing), infinite)


def _rests_on(model: OneGradientStep, kind: str, trained: bool, digits: int | None) -> str:
    if model.student_moments.linear == 0:
        how = "mu_1 = 0: the risk decreases with the penalty"
    else:
        shown = (digits or _FLOAT_DIGITS) + MOMENT_GUARD_DIGITS
        how = (
            "the lowest of both ends and of all stationary points, which are the roots of one "
            f"polynomial, isolated exactly (its coefficients from moments to {shown} digits)"
        )
    layer = "before the step: random features"
    if trained:
        layer = model.standing_at(vanishing_ridge=kind == VANISHING)
    return f"limit d -> infinity; {how}; {layer}"


def _best(
    model: OneGradientStep, landscape: RidgeLandscape, trained: bool, digits: int | None
) -> OptimalRidge:
    """Return the lowest of all minima and of both ends."""
    minima = sorted(landscape.minima, key=lambda point: point.risk)
    ctx = None if digits is None else local_context(digits)
    # λ/λ_B, exactly: results may have more digits than a float.
    ratio = decimal_fraction(model.alpha) / decimal_fraction(model.beta)

    def number(value: Any) -> Any:
        # Roots are known to many more digits, and those of ends come from other contexts.
        return float(value) if ctx is None else +ctx.make_mpf(ctx.convert(value)._mpf_)

    def toolkit(paper_ridge: Any) -> Any:
        return paper_ridge * ratio.numerator / ratio.denominator

    def toolkit_curvature(value: Any) -> Any:
        return value * ratio.denominator**2 / ratio.numerator**2

    def result(kind: str, risk: Any, ridge: Any, found: StationaryPoint | None) -> OptimalRidge:
        others = [p for p in minima if p is not found]
        return OptimalRidge(
            # Zero and infinity are the same in both conventions.
            ridge=number(ridge if found is None else toolkit(ridge)),
            paper_ridge=number(ridge),
            risk=number(risk),
            kind=kind,
            effective_ridge=math.nan if found is None else number(found.effective_ridge),
            curvature=math.nan if found is None else number(toolkit_curvature(found.curvature)),
            residual=0.0 if found is None else found.residual,
            other_minima=tuple(sorted(float(toolkit(p.paper_ridge)) for p in others)),
            vanishing=number(landscape.vanishing),
            infinite=number(landscape.infinite),
            trained=trained,
            alpha=model.alpha,
            rests_on=_rests_on(model, kind, trained, digits),
            digits=digits,
        )

    ends = [(landscape.vanishing, VANISHING, 0.0), (landscape.infinite, INFINITE, math.inf)]
    end_risk, kind, end = min(ends, key=lambda found: found[0])
    if minima and minima[0].risk <= end_risk:
        best = minima[0]
        return result(INTERIOR, best.risk, best.paper_ridge, best)
    return result(kind, end_risk, end, None)


# ----------------------------------------------------------------------
# Limits of the risk of one model: long steps, many samples, wide networks, extreme penalties.
# The formulas are those of :mod:`.properties`, with the numbers of the model in them.
#
# At the interpolation peak, n = N, both q = λ_B/ν and D vanish with ν: :math:`\lambda_B = \nu^2 G`
# and :math:`D/\nu \to 2\tau_1` with :math:`\tau_1 = \frac1N\operatorname{tr}\Sigma^{-1}`. So
#
# .. math:: R + \Delta \simeq \frac{B|_{\nu=0} + \Delta}{2\sqrt{\lambda_B\tau_1}} .
#
# The step lowers the peak through B and does not remove it. (Derived here, from the equations of Ba
# et al., arXiv 2205.01445.)

# Parameters of any size: what a difference of two numbers may cost.
_MOST_DIGITS = 1000


@dataclass(frozen=True)
class RiskLimit:
    """One limit.

    Attributes
    ----------
    name : str
        What tends where.
    quantity : str
        What the limit is of, in LaTeX.
    value : float
        Infinite where the quantity grows without bound.
    formula : Expr or None
        In the symbols of :mod:`.symbols`; None where the number follows from the closed form.
    remark : str
        What the limit assumes.
    """

    name: str
    quantity: str
    value: float
    formula: sp.Expr | None
    remark: str

    def latex(self) -> str:
        """Return "quantity → formula", or the number, without delimiters."""
        shown = latex_number(f"{self.value:.10g}") if self.formula is None else latex(self.formula)
        return rf"{self.quantity} \to {shown}"


@dataclass(frozen=True, repr=False)
class RiskLimits(Result):
    """Limits of the risk of a model.

    Attributes
    ----------
    paper_ridge : float
        λ_B of those that keep a penalty.
    """

    _document = "limits of the risk"

    limits: tuple[RiskLimit, ...]
    paper_ridge: float

    rests_on = "limits of the closed form, each derived from it by exact algebra"

    def __getitem__(self, name: str) -> RiskLimit:
        return next(limit for limit in self.limits if limit.name == name)

    def entries(self) -> list[Row]:
        """Return the limits with what they assume."""
        return [
            Row(x.name, x.name, x.quantity, f"({x.remark})", x.value, f"{x.value:.10g}", "")
            for x in self.limits
        ]

    def latex(self) -> str:
        """Return the limits in LaTeX, one below the other, without delimiters."""
        lines = r" \\ ".join(limit.latex() for limit in self.limits)
        return rf"\begin{{gathered}}{lines}\end{{gathered}}"

    def __repr__(self) -> str:
        return f"RiskLimits({len(self.limits)} limits at paper_ridge={self.paper_ridge:g})"


@one_penalty
@by_name("ridge", outer=1)
def limits(model: OneGradientStep, *, ridge: object = None) -> RiskLimits:
    """Return the limits of the risk in step size, samples, width and penalty.

    Parameters
    ----------
    ridge : float
        λ > 0 of the limits that keep a penalty, or :func:`giantstep.paper_ridge`.

    Returns
    -------
    RiskLimits
        Each with its formula and its number for this model; what they follow from is in
        :mod:`.properties`.

    Raises
    ------
    ParameterError
        If not exactly one penalty is given, or it is not positive and finite.
    """
    penalty = penalty_of(ridge, model.beta / model.alpha)
    if not penalty:
        name, _ = given_penalty(ridge)
        raise ParameterError(f"{name} must be positive for limits, got 0; ridgeless() has its own")
    at_penalty = model.paper_ridge(penalty)
    result = model.risk(ridge=penalty)
    linear_bias = result.bias_initial - model.best_linear_error
    share, wide, steep = _share_wide_steep(model)
    # q = D = 1: the effective ridge is the penalty itself, and the spike is the population's.
    many = _many_samples(model, at_penalty)
    cosine = _float(share, model)
    gain = cosine * linear_bias / result.ridge_derivative
    rows: list[tuple[str, str, float, sp.Expr | None, str]] = [
        ("improvement, step size to infinity", r"\delta", gain, None,
         "formal: after the limit of large d, in which steps are of order one"),
        ("removed share, step size to infinity", r"\delta D/(B_0 - \|P_{>1}f_*\|^2)", cosine, share,
         "squared cosine of spike and teacher; zero where no step improves anything"),
        *((f"risk {layer}, samples to infinity", rf"R_{{\mathrm{{{layer}}}}}", value, None,
           "n/d of the readout, and of the step if it follows, at fixed paper_ridge")
          for layer, value in many.items()),
        ("beta * improvement, beta to infinity", r"\beta\,\delta", _float(wide, model), wide,
         "at fixed paper_ridge; zero for a linear student with n >= d"),
        *((f"risk {layer}, penalty to zero", rf"R_{{\mathrm{{{layer}}}}}", value, None,
           "infinite at the interpolation peak") for layer, value in _ridgeless(model).items()),
        ("paper_ridge * improvement, penalty to infinity", r"\lambda_B\,\delta",
         _float(steep, model), steep, "the improvement falls like one over the penalty"),
    ]  # fmt: skip
    return RiskLimits(tuple(RiskLimit(*row) for row in rows), at_penalty)


def _share_wide_steep(model: OneGradientStep) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """Return removed share, coefficient of wide networks and of large penalties, as formulas."""
    if not model.student_moments.linear or not model.teacher_moments.linear:
        # No step improves anything.
        return (sp.S.Zero,) * 3
    share, wide, steep = (
        _in_model(result.values[name])
        for result, name in (
            (large_step_limit(), "share"),
            (wide_network_limit(), "coefficient"),
            (large_ridge_limit(), "coefficient"),
        )
    )
    if not model.student_moments.residual and model.alpha >= 1:
        # A linear student with n >= d: P vanishes, and the improvement falls faster than 1/β,
        # like β^(-3/2) at n = d and like β^(-3) beyond.
        wide = sp.S.Zero
    return share, wide, steep


def _in_model(expr: sp.Expr) -> sp.Expr:
    """Write a formula of a property in the symbols of the model."""
    rule = {
        aligned_rate: sp.cancel(aligned_square() / step_size**2),
        orthogonal_rate: sp.cancel(orthogonal_square() / step_size**2),
        aligned: aligned_square(),
        kappa: residual / linear**2,
        slope: linear**2,
    }
    return expr.xreplace(rule)


def _float(expr: sp.Expr, model: OneGradientStep) -> float:
    """Return the number of a formula in the symbols of the model."""
    values = model_parameters(model)
    # Exact numbers: SymPy then works with as many digits as differences in the formulas cost.
    rule = {
        symbol: sp.oo if values[name] == math.inf else sp.Rational(values[name])
        for symbol, name in IDENTIFIERS.items()
        if name in values
    }
    value = expr.subs(rule).evalf(20, maxn=_MOST_DIGITS)
    if not value.is_Float and not value.is_Rational:
        raise AssumptionError(f"{expr} has no value for this model, {model}: {value}")
    return float(value)


def _ridgeless(model: OneGradientStep) -> dict[str, float]:
    try:
        result = model.ridgeless()
    except AssumptionError:
        return {"initial": math.inf, "trained": math.inf}
    return {"initial": result.initial, "trained": result.trained}


def _many_samples(model: OneGradientStep, penalty: float) -> dict[str, float]:
    """Return R = B at ν = λ_B; where the step follows the readout, its spike is exact, too."""
    if not model.student_moments.linear:
        whole = model.teacher_moments.square
        return {"initial": whole, "trained": whole}
    step = Spike(aligned_square(), orthogonal_square())
    if model.alpha0 is None:
        step = Spike(aligned_square())
    at = covariance(sp.Rational(penalty))
    return {
        layer: _float(teacher_residual + teacher_linear**2 * at.bias(spike), model)
        for layer, spike in (("initial", NO_SPIKE), ("trained", step))
    }


_LIMIT_DIGITS = 17


@dataclass(frozen=True, repr=False)
class InterpolationPeak(Result):
    r"""Height of the peak at n = N, to leading order in the penalty and exactly.

    Attributes
    ----------
    ridge : float or mpmath number
        λ = λ_B, as n = N.
    amplitude_initial, amplitude_trained : float or mpmath number
        :math:`\sqrt{\lambda}\,(R + \Delta)` for λ → 0, before and after the step.
    initial, trained : float or mpmath number
        The risk to leading order, the amplitude over √λ, without Δ.
    exact_initial, exact_trained : float or mpmath number
        The risk itself.
    inverse_trace : float or mpmath number
        τ_1 = (1/N) tr Σ^{-1}.
    beta : float
        N/d = n/d.
    digits : int or None
        Digits asked for; None for floats.
    """

    _document = "interpolation peak"
    _derived = ("relative_error",)

    ridge: Number = field(metadata=quantity("penalty at n = N", r"\lambda"))
    amplitude_initial: Number = field(metadata=quantity("√λ (risk + Δ) for λ → 0, before", "A_0"))
    amplitude_trained: Number = field(
        metadata=quantity("√λ (risk + Δ) for λ → 0, after", r"A_\mathrm{GD}")
    )
    initial: Number = field(
        metadata=quantity("leading order, before", r"A_0/\sqrt\lambda - \Delta")
    )
    trained: Number = field(
        metadata=quantity("leading order, after", r"A_\mathrm{GD}/\sqrt\lambda - \Delta")
    )
    exact_initial: Number = field(metadata=quantity("exact risk, before", "R_0"))
    exact_trained: Number = field(metadata=quantity("exact risk, after", r"R_\mathrm{GD}"))
    inverse_trace: Number = field(metadata=quantity("trace of the inverse covariance", r"\tau_1"))
    beta: float
    digits: int | None = None

    rests_on = "leading order derived here, beside the risk of the limit d -> infinity"

    @property
    def relative_error(self) -> float:
        """How far the leading order is from the exact risk, the larger of both layers."""
        pairs = ((self.initial, self.exact_initial), (self.trained, self.exact_trained))
        return max(abs(float(a / b) - 1) if b else math.inf for a, b in pairs)

    def page(self) -> Iterable[Block]:
        """Return the numbers, and how far the leading order is off."""
        yield from super().page()
        yield f"relative error of the leading order {self.relative_error:.2g}"


@one_penalty
@by_name("ridge", outer=1)
def interpolation_peak(
    model: OneGradientStep, *, ridge: object = None, digits: int | None = None
) -> InterpolationPeak:
    r"""Return the height of the peak at n = N for a small penalty.

    Parameters
    ----------
    ridge : float
        λ > 0; that of the paper is the same at n = N.
    digits : int, optional
        So many digits. Floats are read as the decimal numbers that they print as.

    Returns
    -------
    InterpolationPeak
        The leading term :math:`(B + \Delta)/(2\sqrt{\lambda\tau_1})` beside the exact risk,
        for this model at α = β.

    Raises
    ------
    ParameterError
        If not exactly one penalty is given, or it is not positive and finite.
    AssumptionError
        If the student is linear and N ≥ d: its peak is at n = d and has another form.
    """
    penalty = penalty_of(ridge, 1.0)
    if not penalty:
        name, _ = given_penalty(ridge)
        raise ParameterError(f"{name} must be positive: without a penalty the peak is infinite")
    if digits is not None:
        digits = checked_digits(digits)
    student = model.student_moments
    if not student.residual and (model.beta >= 1 or not student.linear):
        raise AssumptionError(
            "a linear student with N >= d has its peak at n = d, not at n = N, and of another "
            f"form; choose beta < 1 (got {model.beta:g}) or a nonlinear student"
        )
    at_peak = replace(model, alpha=model.beta)
    ctx = local_context(digits or _LIMIT_DIGITS)
    values = {name: ctx.mpf(str(x)) for name, x in _evaluate(at_peak, ctx.dps).items()}
    exact = at_peak.risk(ridge=penalty, digits=digits)
    given = ctx.mpf(repr(penalty))
    noise = ctx.mpf(repr(model.noise_variance))
    root = ctx.sqrt(given)
    result = {
        "ridge": given,
        "amplitude_initial": values["initial"],
        "amplitude_trained": values["trained"],
        "initial": values["initial"] / root - noise,
        "trained": values["trained"] / root - noise,
        "exact_initial": exact.initial,
        "exact_trained": exact.trained,
        "inverse_trace": values["inverse_trace"],
    }
    if digits is None:
        result = {name: float(value) for name, value in result.items()}
    return InterpolationPeak(**result, beta=model.beta, digits=digits)


def amplitudes(*, floor: bool = True) -> dict[str, sp.Expr]:
    """Return amplitudes before and after the step and τ_1, in the symbols of the model.

    Parameters
    ----------
    floor : bool
        Of a student with nonlinear part; without one, for N < d.
    """
    at = covariance(sp.S.Zero)
    # Without a floor the resolvent of W^T W at zero exists for N < d.
    trace = at.resolvent if floor else 1 / (linear**2 * (1 - beta))
    response = at.response if floor else response_without_floor(beta)
    result = {"inverse_trace": trace}
    for layer, spike in (("initial", NO_SPIKE), ("trained", STEP)):
        bias = teacher_residual + teacher_linear**2 * response.bias(spike)
        result[layer] = (bias + noise) / (2 * sp.sqrt(trace))
    return result


def peak_property() -> Property:
    """The leading order of the peak, with its proof."""
    one = sp.S.One
    penalty = paper_ridge(COVARIANCE, one)
    pace = sp.expand(COVARIANCE.derivative(one, penalty / nu) / nu)
    start = COVARIANCE.resolvent.xreplace({nu: sp.S.Zero})
    return Property(
        "interpolation peak",
        r"At $n = N$, $R + \Delta \simeq (B|_{\nu=0} + \Delta)/(2\sqrt{\lambda_B\tau_1})$ for "
        r"$\lambda_B \to 0$, with $\tau_1 = \frac1N\operatorname{tr}\Sigma^{-1}$.",
        (
            Step("λ_B at n = N", equal(penalty, nu**2 * COVARIANCE.resolvent)),
            Step("D/ν where ν = 0", equal(pace.xreplace({nu: sp.S.Zero}), 2 * start)),
            Step("τ_1 is positive", positive(start)),
        ),
        amplitudes(),
    )


def _evaluate(model: OneGradientStep, digits: int) -> dict[str, sp.Expr]:
    known = exact_parameters(model, digits)
    rule = {x: sp.Rational(f.numerator, f.denominator) for x, f in known.items()}
    result = amplitudes(floor=bool(model.student_moments.residual))
    if alpha0 not in known:
        rule[alpha0] = sp.oo
    return {name: value.subs(rule).evalf(digits) for name, value in result.items()}
