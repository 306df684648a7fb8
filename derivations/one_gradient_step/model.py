"""The model that users build: one gradient step in the proportional limit.

What can be asked of it are the functions of the modules beside this one, as its methods.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import sympy as sp

from ...deprecations import by_name, renamed
from ...errors import AssumptionError, ParameterError
from ...numeric.arguments import (
    checked_switch,
    is_one_of,
    nonnegative_number,
    positive_number,
    real_number,
    whole_number,
)
from ...numeric.cache import FileCache
from ...numeric.saddle_point_solver import BatchSolution
from ...pages import Block, Table, as_html
from ...result import Result
from ...symbolic.exact.enclosures import Enclosure
from ...symbolic.expressions.activations import activation
from ...symbolic.expressions.factors import factored
from ...symbolic.expressions.standing import Standing
from ...symbolic.systems.ridge_equivalent import FeatureCovariance, SignalResponse
from ..activation_functions import activation_text
from ..curves import Columns, Names, solve_groups
from ..derived import derived
from ..first_gradient.first_step import FirstStep, first_step
from ..json_text import SavedModel
from ..kernels.arguments import known_names
from ..kernels.kernel import Kernel
from ..late import given_by
from ..outputs import ClosedForms, ExplicitOutputs, parameter
from ..penalties import PAPER_RIDGE, in_convention, one_penalty
from ..sensitivities import Directions, HasSensitivities
from ..teachers import has_several_directions, teacher_text
from .conditional_risk import conditional_risk
from .equivalence import gaussian_equivalence, standing
from .expansion import expansion
from .figures import FiniteSizes, RiskCurve, phase_data, plot_phase, plot_risk, risk_data
from .kernel_spectrum import conjugate_kernel
from .large_steps import large_steps
from .moments import Moments, moments, require_centred
from .optimal_ridge import (
    interpolation_peak,
    limits,
    optimal_ridge,
    optimal_ridge_curve,
    step_optimum,
)
from .population_gradient import population_gradient
from .risk import (
    DOMAINS,
    NAMES,
    Readout,
    RidgeRisk,
    companion,
    covariance,
    curve_attributes,
    in_symbols,
    nu,
    resolvent,
    ridge_readout,
    risk_kernel,
    solve,
    solved_rows,
)
from .simulated import one_step_network, simulate, simulate_spectra
from .symbols import (
    IDENTIFIERS,
    alpha,
    alpha0,
    beta,
    label_square,
    linear,
    noise,
    residual,
    ridge,
    spike_square,
    step_size,
    teacher_linear,
    teacher_residual,
)
from .weight_spike import plot_model, weight_spike, weight_spike_curve

if TYPE_CHECKING:
    import xarray as xr

    from ..multi_index.optimum import OptimumBeside
    from ..spiked_random_features.model import SpikedRandomFeatures
    from .nonlinear_spikes.model import StepAtWidth


# ----------------------------------------------------------------------
# Several steps with η of order one: again one spike, t times as long.
# For a fixed number t of steps the network's output stays of order :math:`N^{-1/2}`, so every step
# on the same data adds the same spike, :math:`W_t = W_0 + t\eta\sqrt N A` to leading order: all
# results of one step hold with η → tη. With fresh data in each step the parts orthogonal to the
# teacher are independent: one step with η → tη on t times as many samples, α0 → tα0.
#
# Corrections are of the relative order :math:`t\eta/\sqrt N`, because the linear predictor
# :math:`b_t = \mu_1 W_ta/\sqrt N` learns: with :math:`S = X^\top X/n`, :math:`c =
# \eta\mu_1^2|a|^2/\sqrt N` and :math:`v = X^\top y/n`,
#
# .. math:: b_{t+1} = b_t + c\,(v - S b_t), \qquad
#           u_t = \eta\mu_1\sum_{j<t}(1 - cS)^j\,v + O(N^{-1/2}),
#
# the second for the spike :math:`W_t = W_0 + u_ta^\top`. On the same data its sizes are averages
# over the Marchenko–Pastur law of S; on fresh data S is independent in every step, with
# :math:`\mathbb{E}S = 1` and :math:`\mathbb{E}S^2 = 1 + 1/\alpha_0`. (Derived here.)

_MOST_STEPS = 100
contraction = sp.Symbol("c", nonnegative=True)
r"""c = η μ_1²/√N, by which one step shrinks the linear part of the residuals."""

WIDTH = sp.Symbol("N", positive=True)
"""The number of neurons N."""

CONTRACTION = step_size * linear**2 / sp.sqrt(WIDTH)
"""The same in η, μ_1 and N."""

NO_LANDSCAPE = (
    "its risk follows from the one solution of an equation of random matrices, which no free "
    "energy is behind"
)


@dataclass(frozen=True)
class SpikeAtWidth:
    """Sizes of the spike after several steps of a network of finite width.

    Attributes
    ----------
    length : float
        |u_t|, θ1 in the limit.
    aligned : float
        Its part along the teacher, θ2 in the limit.
    """

    length: float
    aligned: float


@dataclass(frozen=True, repr=False)
class SeveralSteps(Result, HasSensitivities):
    r"""A model after several gradient steps, as one step that is equivalent to them.

    Attributes
    ----------
    first : OneGradientStep
        The model whose step is repeated.
    fresh : bool
        Every step has its own samples.
    """

    _document = "several steps"
    _derived = ("model", "standing")

    first: OneGradientStep
    steps: int
    fresh: bool

    @cached_property
    def model(self) -> OneGradientStep:
        """The equivalent single step; risk, spectra and limits are its."""
        samples = self.first.step_samples * (self.steps if self.fresh and self.steps else 1)
        return replace(self.first, step_size=self.steps * self.first.step_size, alpha0=samples)

    @property
    def standing(self) -> Standing:
        """What the equivalence rests on."""
        return Standing.DERIVED_HERE

    @property
    def rests_on(self) -> str:
        """What the risk rests on, in words."""
        return (
            "derived here to leading order, corrections of relative order t η/√N; "
            + self.first.standing
        )

    @by_name("ridge")
    def solve(self, *, ridge: object = None, **options: Any) -> RidgeRisk:
        """Return the ridge risk after these steps; see :meth:`OneGradientStep.solve`."""
        return self.model.solve(ridge=ridge, **options)

    risk = solve
    """The field's word for :meth:`solve`."""

    def kernel(self) -> Kernel:
        """Return the kernel of the risk, with the parameters of the equivalent step."""
        return self.model.kernel()

    _asked: ClassVar[tuple[str, ...]] = ("ridge",)
    _no_landscape: ClassVar[str] = NO_LANDSCAPE

    def at(self, **parameters: Any) -> Self:
        """Return these steps of a model with other parameters; see :meth:`OneGradientStep.at`."""
        return replace(self, first=self.first.at(**parameters))

    def _axes(self) -> Mapping[str, str]:
        return DOMAINS

    def _names(self) -> Names:
        return NAMES

    def _curve_attributes(self, columns: Columns) -> dict[str, Any]:
        return {
            **self.first._curve_attributes(columns),
            "model": self.to_json(),
            "student": self.first.student,
            "teacher": self.first.teacher,
            "steps": self.steps,
            "fresh": int(self.fresh),
            "rests_on": self.rests_on,
        }

    def _solve_rows(self, columns: Columns, rtol: float, raising: bool) -> BatchSolution:
        # Samples and step size of the equivalent step are those of one model.
        return solve_groups(
            self, columns, lambda one, asked: one.model._solve_rows(asked, rtol, raising),
            outputs=self._names().outputs, raising=raising,
            together=("ridge", PAPER_RIDGE, "beta", "noise_variance"),
        )  # fmt: skip

    def _directions(self, *, exact: bool) -> Directions:
        equivalent = self.model._directions(exact=exact)
        moving = {name: dict(rates) for name, rates in equivalent.moving.items()}
        moving["step_size"] = {"step_size": self.steps * self.first.loss_factor}
        samples = self.steps if self.fresh and self.steps else 1
        if self.first.alpha0 is None:
            moving["alpha"] |= moving.pop("alpha0")
        for rates in moving.values():
            if "alpha0" in rates:
                rates["alpha0"] = samples
        return Directions(moving, equivalent.excluded)

    def weight_spike(self, **options: Any) -> Any:
        """Return the spike of the first layer after these steps."""
        return self.model.weight_spike(**options)

    def conjugate_kernel(self, **options: Any) -> Any:
        """Return the kernel of the features after these steps."""
        return self.model.conjugate_kernel(**options)

    def contraction(self, width: int) -> float:
        """Return c = η μ_1²/√N, by which a step shrinks the linear part of the residuals."""
        model = self.first
        at = {
            step_size: model.effective_step_size,
            linear: model.student_moments.linear,
            WIDTH: whole_number("width", width),
        }
        return float(CONTRACTION.subs(at))

    def spike_at_width(self, width: int) -> SpikeAtWidth:
        """Return length and aligned part of the spike with the shrinking of the residuals.

        Leading in 1/√N at every order of tη/√N that the linear predictor brings; other
        corrections, of relative order η/√N, are not included, and can be as large: for tanh on
        tanh with η = 1, t = 8, N = 800 the singular value is 3.945 in the limit, 3.737 from these
        sizes and 3.60(4) in simulations.

        Parameters
        ----------
        width : int
            N, the number of neurons.

        Raises
        ------
        ParameterError
            If it is no whole number >= 1.
        AssumptionError
            If the steps are so large that the linear predictor does not converge.
        """
        c = self.contraction(width)
        samples = self.first.step_samples
        edge = (1 + samples**-0.5) ** 2
        if c * edge >= 2:
            raise AssumptionError(
                f"with width {width} one step multiplies residuals by 1 - {c:.3g} S, S up to "
                f"{edge:.3g}: they grow, and the expansion does not hold; take smaller steps or "
                "more neurons"
            )
        ratio = sp.S.Zero if math.isinf(samples) else 1 / _exact(samples)
        square, along = spike_sizes(self.steps, fresh=self.fresh, c=_exact(c), ratio=ratio)
        model = self.first
        rule = {
            step_size: _exact(model.effective_step_size),
            linear: _exact(model.student_moments.linear),
            teacher_linear: _exact(model.teacher_moments.linear),
            labels: _exact(model.label_square),
        }
        length, part = (float(x.subs(rule)) for x in (square, along))
        return SpikeAtWidth(math.sqrt(max(length, 0.0)), part)

    def __repr__(self) -> str:
        return f"SeveralSteps({self.first}, steps = {self.steps}, fresh = {self.fresh})"

    def page(self) -> Iterable[Block]:
        """Return the equivalent step and what it rests on."""
        data = "fresh data in each" if self.fresh else "the same data in all"
        yield f"{self.steps} steps, {data}; one step that is equivalent"
        cells = [
            ("step size", f"{self.steps} × {self.first.step_size:g} = {self.model.step_size:g}"),
            ("samples of the step, n/d", f"{self.model.step_samples:g}"),
        ]
        yield Table(cells, ("of the equivalent step", "value"))
        yield self.rests_on

    def latex(self) -> str:
        """Return what one step becomes in LaTeX, without delimiters."""
        samples = r",\quad \alpha_0 \to t\alpha_0" if self.fresh else ""
        return rf"\eta \to t\,\eta{samples},\quad t = {self.steps}"


def several_steps(model: OneGradientStep, steps: object, fresh: object = False) -> SeveralSteps:
    """Return this model after several steps with η of order one.

    Parameters
    ----------
    steps : int
        From 0 to 100.
    fresh : bool
        Whether each step has samples of its own.
    """
    number = whole_number("steps", steps, minimum=0)
    if number > _MOST_STEPS:
        raise ParameterError(
            f"steps must be at most {_MOST_STEPS}: the number of steps is fixed while the width "
            f"grows; got {number}"
        )
    return SeveralSteps(model, number, checked_switch("fresh", fresh))


labels = sp.Symbol("Y", positive=True)
"""Y = E y² of the noisy labels."""


def spike_sizes(
    steps: int, *, fresh: bool, c: sp.Expr = contraction, ratio: sp.Expr = 1 / alpha0
) -> tuple[sp.Expr, sp.Expr]:
    r"""Return :math:`|u_t|^2` and :math:`u_t\cdot\beta_*` in η, μ_1, μ_1*, Y, c and 1/α0.

    For c = 0 they are θ1² and θ2 of one step with η → tη, and α0 → tα0 for fresh data.

    Parameters
    ----------
    c, ratio : Expr
        Values of c and 1/α0 to be put in; default: the symbols.
    """
    if fresh:
        return _fresh_sizes(steps, c, ratio)
    x = sp.Symbol("x")
    # Σ_j (1 - c x)^j, so that u = ημ_1 q(S) v with v = μ_1* S β + X^T e/n.
    q, power = sp.Poly(0, x, domain=_domain(c)), sp.Poly(1, x, domain=_domain(c))
    for _ in range(steps):
        q, power = q + power, power * sp.Poly(1 - c * x, x, domain=_domain(c))
    own, cross = q * q * sp.Poly(x, x), q * sp.Poly(x, x)
    moments = _spectral_moments(2 * steps + 1, ratio)
    signal = teacher_linear**2 * _mean(own * sp.Poly(x, x), moments)
    scatter = (labels - teacher_linear**2) * ratio * _mean(own, moments)
    scale = step_size * linear
    return scale**2 * (signal + scatter), scale * teacher_linear * _mean(cross, moments)


def _domain(c: sp.Expr) -> Any:
    return sp.QQ if c.is_Rational else sp.QQ[c]


def _mean(polynomial: sp.Poly, moments: list[sp.Expr]) -> sp.Expr:
    return sp.Add(*(c * moments[power] for (power,), c in polynomial.terms()))


def _spectral_moments(highest: int, ratio: sp.Expr) -> list[sp.Expr]:
    """Moments of the Marchenko–Pastur law of X^T X/n: Narayana's numbers."""
    return [sp.S.One] + [
        sp.Add(
            *(
                sp.binomial(k, r) * sp.binomial(k, r + 1) * ratio**r / sp.Integer(k)
                for r in range(k)
            )
        )
        for k in range(1, highest + 1)
    ]


def _fresh_sizes(steps: int, c: sp.Expr, ratio: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    scale = step_size * linear
    square, along = sp.S.Zero, sp.S.Zero
    second = 1 + ratio
    drift = scale * teacher_linear
    noise = scale**2 * (labels - teacher_linear**2) * ratio
    # u' = (1 - cS)u + ημ_1(μ_1* S β + X^T e/n), S fresh.
    for _ in range(steps):
        square = sp.expand(
            (1 - 2 * c + c**2 * second) * square
            + 2 * drift * (1 - c * second) * along
            + drift**2 * second
            + noise
        )
        along = sp.expand((1 - c) * along + drift)
    return square, along


def leading_sizes(steps: int, *, fresh: bool) -> tuple[sp.Expr, sp.Expr]:
    """Return θ1² and θ2 of the equivalent single step, for comparison with :func:`spike_sizes`."""
    rule = {step_size: steps * step_size}
    if fresh:
        rule[alpha0] = steps * alpha0
    square = spike_square().subs(label_square(), labels).xreplace(rule)
    return square, steps * step_size * linear * teacher_linear


def _exact(number: float) -> sp.Rational:
    return sp.Rational(Fraction(number))


# ----------------------------------------------------------------------
# The risk of one gradient step in forms for proofs: by signs, and over boxes of parameters.
# As rational functions of positive symbols, for proofs by signs.
#
# Positive symbols y, e, a and ν give all parameters: with :math:`y = \beta b G` the resolvent is
# rational, and what has to be positive is a sum of what remains,
#
# .. math:: \beta = \frac y{1+y} + e, \quad b = (v + \nu)\frac ye, \quad
#     \alpha = \frac y{1+y} + \frac{e v}{v + \nu} + a, \quad \lambda = \frac{\nu a}\beta .
#
# For every ν the penalty λ is positive with q = a/α; y runs over all positive numbers.

_y, _e, _a, _nu = sp.symbols("y e a nu", positive=True)
_floor, _slope = sp.symbols("v b", positive=True)
_signal, _rest = sp.symbols("M m", positive=True)
_inverse_s, _remainder, _companion, _steep = sp.symbols("g r h B_nu", positive=True)
_flat = sp.Symbol("B_v", positive=True)
_used, _derivative, _alpha = sp.symbols("q D A", positive=True)
_freedom = sp.Symbol("F", positive=True)

_MEANINGS = {
    _nu: "effective ridge", _slope: "mu_1^2 of the student", _floor: "mu_{>1}^2 of the student",
    _signal: "mu_1^2 of the teacher", _rest: "mu_{>1}^2 of the teacher", _alpha: "alpha",
    _inverse_s: "1/s", _remainder: "1 - 1/s", _companion: "h of the resolvent",
    _flat: "bias without a spike, of the floor", _steep: "bias without a spike, of the ridge",
    _used: "residuals on the training set over fresh ones", _derivative: "dlambda_B/dnu",
    _freedom: "1 - dlambda_B/dnu", _y: "beta b G", _e: "beta - y/(1 + y)",
    _a: "alpha times q",
}  # fmt: skip


@lru_cache(maxsize=16)
def closed_forms(model: OneGradientStep) -> ClosedForms | None:
    """Return outputs at positive penalties, in symbols with signs; None for no linear part."""
    student, teacher = model.student_moments, model.teacher_moments
    if not student.linear or not teacher.linear:
        return None
    floor = _floor if student.residual else sp.S.Zero
    rest = _rest if teacher.residual else sp.S.Zero
    aspect = _y / (1 + _y) + _e
    shift = floor + _nu
    slope = shift * _y / _e
    samples = _y / (1 + _y) + _e * floor / shift + _a
    # Symbols of its own first, so that the resolvent is one node that has a value.
    own_slope, own_aspect = sp.symbols("b_0 beta_0", positive=True)
    covariance = FeatureCovariance(own_slope, floor, own_aspect, _nu)
    values = {own_slope: slope, own_aspect: aspect}
    readout = Readout(
        SignalResponse(_inverse_s, _remainder, _companion, _flat if floor else sp.S.Zero, _steep),
        _used, _derivative, _freedom,
    )  # fmt: skip
    direct = {
        "step_size": sp.Symbol("eta", nonnegative=True),
        "noise_variance": sp.Symbol("Delta", nonnegative=True),
    }
    effective = {
        step_size: model.loss_factor * direct["step_size"],
        noise: direct["noise_variance"],
        alpha0: _alpha if model.alpha0 is None else sp.Rational(repr(model.alpha0))
        if model.alpha0 != float("inf") else sp.oo,
        alpha: _alpha,
        linear: sp.sqrt(_slope),
        residual: floor,
        teacher_linear: sp.sqrt(_signal),
        teacher_residual: rest,
    }  # fmt: skip
    outputs = {
        name: expr.subs(effective)
        for name, expr in readout.outputs().items()
        if not expr.has(beta, ridge)
    }
    outputs["effective_ridge"] = _nu
    ratio = aspect / _alpha
    derivative = covariance.derivative(ratio, _used)
    freedom = ratio * covariance.degrees_of_freedom_2

    def explicit(expr: sp.Expr) -> sp.Expr:
        return expr.xreplace({covariance.resolvent: _y / (slope * aspect)}).xreplace(values)

    parts = covariance.response
    abbreviations = {
        _alpha: samples,
        _used: _a / _alpha,
        _inverse_s: explicit(parts.inverse_s),
        _remainder: explicit(parts.remainder),
        _companion: explicit(parts.companion),
        _flat: explicit(parts.flat),
        _steep: explicit(parts.steep),
        _derivative: explicit(derivative),
        _freedom: explicit(freedom),
    }
    if not floor:
        del abbreviations[_flat]
    return ClosedForms(
        outputs=outputs,
        direct=direct,
        implicit={"alpha": samples, "beta": aspect, "ridge": _nu * _a / aspect},
        coordinates=(_y, _e, _a, _nu),
        abbreviations={k: factored(x) for k, x in abbreviations.items()},
        constants={_slope: slope, **({_floor: _floor} if floor else {}),
                   _signal: _signal, **({_rest: _rest} if rest else {})},
        meanings=_MEANINGS,
    )  # fmt: skip


def explicit_outputs(model: OneGradientStep) -> ExplicitOutputs | None:
    """Return outputs at positive penalties in the effective ridge; None for no linear student.

    Of the terms of its equation, β (1/N) tr Σ(Σ+ν)^{-1} + βλ/ν = α, each falls with ν.
    """
    own, label = model.student_moments, model.teacher_moments
    if not own.linear:
        return None
    named = {symbol: parameter(name) for symbol, name in IDENTIFIERS.items()}
    named[step_size] = model.loss_factor * parameter("step_size")
    if model.alpha0 is None:
        named[alpha0] = parameter("alpha")
    elif model.alpha0 == float("inf"):
        named[alpha0] = sp.oo
    at = covariance(nu)
    explicit = {
        "degrees": beta * at.degrees_of_freedom + beta * ridge / nu - alpha,
        **ridge_readout().outputs(),
    }
    explicit = {k: x.subs(named) for k, x in in_symbols(explicit, at).items()}
    assignments = {
        resolvent: at.resolvent.rewrite(sp.Piecewise),
        companion: 1 / (1 + beta * linear**2 * resolvent),
    }
    moments = {
        linear: (own, "linear"),
        residual: (own, "residual"),
        teacher_linear: (label, "linear"),
        teacher_residual: (label, "residual"),
    }

    def numbers(digits: int) -> dict[sp.Symbol, Enclosure]:
        known = {x: found.certified(digits)[part] for x, (found, part) in moments.items()}
        return {parameter(IDENTIFIERS[x]): value for x, value in known.items()}

    equation = explicit.pop("degrees")
    return ExplicitOutputs(
        outputs={**explicit, "effective_ridge": nu},
        unknown=nu,
        equation=equation,
        assignments={x: value.subs(named) for x, value in assignments.items()},
        numbers=numbers,
    )


_LOSSES = ("half", "full")


@dataclass(frozen=True)
class OneGradientStep(SavedModel, HasSensitivities):
    r"""A two-layer network after one gradient step on its first layer, in the proportional limit.

    The network :math:`f(x) = N^{-1/2}\sum_i a_i\sigma(w_i\cdot x)` starts from
    :math:`w_i \sim \mathcal{N}(0, I/d)` and :math:`a_i \sim \mathcal{N}(0, 1/N)`. With n0 = α0 d
    samples it takes the step :math:`W_1 = W_0 + \eta\sqrt N\,G`, η of order one; then a ridge
    readout is fitted on n = α d fresh samples. Results hold for d → ∞ at fixed ratios.

    Parameters
    ----------
    student, teacher : str
        Activations σ and σ_*: catalogue names ("tanh", "erf", …) or expressions in z. A teacher
        may also be a function of inputs x1, x2, … ("x1*x2 + x1"): of it the theory sees
        :math:`\mathbb{E}[xf_*]`, the direction of the spike, and the variance of the rest.
    alpha : float
        Sample complexity n/d of the readout (ψ1 of the paper).
    beta : float
        Aspect ratio N/d (ψ2).
    step_size : float
        η ≥ 0; zero gives random features.
    noise_variance : float
        Variance Δ of the label noise, in the step and in the readout.
    alpha0 : float, optional
        Sample complexity n0/d of the step; default: `alpha`, as in the paper. ``math.inf`` for the
        population gradient.
    loss : {"half", "full"}
        Whose gradient the step takes: of :math:`\frac{1}{2n}\sum(f - y)^2`, for which the formulas
        hold as printed, or of :math:`\frac1n\sum(f - y)^2`, which is twice as long.
    centre : bool
        Replace student and teacher by themselves minus their means.
    cache_folder : path, optional
        Where derivations and kernels are kept; default: the user's cache directory.

    Raises
    ------
    ParameterError
        If an argument is of the wrong kind or outside its range.
    ExpressionError
        If `student` or `teacher` cannot be read.
    AssumptionError
        If student or teacher is not centred, without `centre`; if the student jumps and the step
        is not zero.

    Notes
    -----
    Students and teachers outside the theorem of Gaussian equivalence behind the risk are allowed;
    :attr:`standing` says so, and which of its assumptions fail.

    References
    ----------
    Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445.

    Examples
    --------
    >>> model = OneGradientStep("erf", "tanh", alpha=2.5, beta=1.2, step_size=3)
    >>> model.student_moments.odd, model.teacher_moments.mean
    (True, 0.0)
    """

    _model: ClassVar[str] = "one_gradient_step"
    _error: ClassVar[str] = "risk"

    student: str
    teacher: str
    alpha: float
    beta: float = 1.0
    step_size: float = 1.0
    noise_variance: float = 0.0
    alpha0: float | None = None
    loss: str = "half"
    centre: bool = False
    cache_folder: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in _checked(**given).items():
            object.__setattr__(self, name, value)
        if not self.centre:
            require_centred(self.student_moments, self.teacher_moments)
        if self.student_moments.jumps and self.step_size:
            raise AssumptionError(
                f"student {self.student!r} jumps: its gradient step is not defined; choose a "
                "continuous activation such as erf or tanh, or step_size=0 for random features"
            )

    @cached_property
    def cache(self) -> FileCache:
        """Where derivations and kernels are kept."""
        return FileCache(self.cache_folder)

    @cached_property
    def student_moments(self) -> Moments:
        """Mean, linear part and residual variance of the student."""
        return moments(self.student, argument="student", cache=self.cache)

    @cached_property
    def teacher_moments(self) -> Moments:
        """Mean, linear part and residual variance of the teacher."""
        return moments(self.teacher, argument="teacher", cache=self.cache)

    @property
    def step_samples(self) -> float:
        """Sample complexity n0/d of the step: `alpha0`, or `alpha` where it is not given."""
        return self.alpha if self.alpha0 is None else self.alpha0

    @property
    def effective_step_size(self) -> float:
        """η of the formulas, which are for the gradient of half the squared loss."""
        return self.step_size * self.loss_factor

    @property
    def loss_factor(self) -> int:
        """η over the step size: 2 for the gradient of the full squared loss, 1 for half of it."""
        return 2 if self.loss == "full" else 1

    @property
    def label_square(self) -> float:
        """Y = E y² of the (centred) noisy labels."""
        return self.teacher_moments.square + self.noise_variance

    @property
    def best_linear_error(self) -> float:
        r""":math:`\|P_{>1}f_*\|^2`, which no kernel beats in this limit."""
        return self.teacher_moments.residual

    @property
    def standing(self) -> str:
        """What the risk of the trained network rests on at positive ridge penalties.

        The verdict of :meth:`equivalence` on steps of order one.
        """
        return self.standing_at(vanishing_ridge=False)

    def standing_at(self, *, vanishing_ridge: bool) -> str:
        """Return what the risk rests on, at positive penalties or in the limit of none."""
        positive, vanishing = self._standings
        return vanishing if vanishing_ridge else positive

    @cached_property
    def _standings(self) -> list[str]:
        # Kept as text, so that a run that finds them imports no SymPy.
        @derived("one_gradient_step/standing", list)
        def standings(student: str, teacher: str, centre: bool) -> list[str]:
            return [standing(self, vanishing_ridge=limit) for limit in (False, True)]

        return standings(self.cache, self.student, self.teacher, self.centre)

    def paper_ridge(self, ridge: float) -> float:
        r"""Return the penalty of the paper, β/α times that of the toolkit.

        There the readout minimises :math:`\frac1n|y - \Phi a|^2 + \frac{\lambda_B}{N}|a|^2`.
        """
        return ridge * self.beta / self.alpha

    at_width = cast(
        "Callable[..., StepAtWidth]",
        given_by("giantstep.derivations.one_gradient_step.nonlinear_spikes.model", "at_width"),
    )

    # ------------------------------------------------------------------ over parameters

    _asked: ClassVar[tuple[str, ...]] = ("ridge",)
    _no_landscape: ClassVar[str] = NO_LANDSCAPE

    optimum_bayes = cast(
        "Callable[..., OptimumBeside]",
        given_by("giantstep.derivations.multi_index.optimum", "optimum_bayes"),
    )

    def at(self, **parameters: Any) -> Self:
        """Return this model with other parameters, arguments of the class by name.

        Raises
        ------
        ParameterError
            If there is no such parameter, or its value cannot be.
        """
        known_names(parameters, [f.name for f in fields(self)], "parameter of this model")
        return replace(self, **parameters)

    def _axes(self) -> Mapping[str, str]:
        return DOMAINS

    def _names(self) -> Names:
        return NAMES

    def _curve(self, dataset: xr.Dataset) -> RiskCurve:
        return RiskCurve(dataset)

    def _curve_attributes(self, columns: Columns) -> dict[str, Any]:
        return curve_attributes(self, columns)

    def _solve_rows(self, columns: Columns, rtol: float, raising: bool) -> BatchSolution:
        return solve_groups(
            self, columns, solved_rows, outputs=self._names().outputs, raising=raising,
            together=tuple(columns),
        )  # fmt: skip

    def _directions(self, *, exact: bool) -> Directions:
        moving = {name: {name: 1} for name in ("alpha", "beta", "ridge", "noise_variance")}
        # The gradient of the full squared loss takes steps that are twice as long.
        moving["step_size"] = {"step_size": self.loss_factor}
        if self.alpha0 is None:
            moving["alpha"]["alpha0"] = 1
            return Directions(moving)
        if self.alpha0 == math.inf:
            return Directions(moving, {"alpha0": "alpha0 is infinite"})
        return Directions({**moving, "alpha0": {"alpha0": 1}})

    _closed_forms = closed_forms
    _explicit_outputs = explicit_outputs

    # ------------------------------------------------------------------ what can be asked

    solve = solve
    risk = solve
    """The field's word for :meth:`solve`."""
    _optimum = step_optimum
    optimal_ridge = renamed("optimum(over='ridge')")(optimal_ridge)
    optimal_ridge_curve = renamed("optimum(over='ridge', alpha=[...])")(optimal_ridge_curve)
    interpolation_peak = interpolation_peak
    limits = limits
    expansion = expansion
    conditional_risk = conditional_risk
    weight_spike = weight_spike
    weight_spike_curve = weight_spike_curve
    plot_singular_values = renamed("weight_spike().plot(simulate_spectra(...))")(plot_model)
    conjugate_kernel = conjugate_kernel
    population_gradient = population_gradient
    equivalence = gaussian_equivalence
    large_steps = large_steps
    several_steps = several_steps
    network = one_step_network
    simulate = simulate
    simulate_spectra = simulate_spectra

    @by_name("digits")
    def ridgeless(self, *, digits: int | None = None) -> RidgeRisk:
        """Return the risk in the limit of a vanishing penalty, in closed form.

        Raises
        ------
        AssumptionError
            At the interpolation peak: n = N, or n = d < N for a linear student.
        """
        return self.solve(ridge=0.0, digits=digits)

    @renamed("curve(...)")
    def risk_curve(
        self, *, paper_ridge: object = None, progress: bool | None = None, **parameters: Any
    ) -> xr.Dataset:
        """Return :meth:`curve` as a dataset, as the last release did."""
        if paper_ridge is not None:
            if parameters.get("ridge") is not None:
                raise ParameterError("give the penalty once: ridge or paper_ridge")
            parameters["ridge"] = in_convention("paper_ridge", paper_ridge)
        # The penalty was the first axis, and the others stood in this order.
        names = ("ridge", "alpha", "beta", "step_size", "noise_variance")
        parameters = {name: parameters.pop(name, None) for name in names} | parameters
        given = {name: value for name, value in parameters.items() if value is not None}
        result = self.curve(**given, progress=progress is not False).to_dataset()
        scalars = [name for name, coordinate in result.coords.items() if not coordinate.dims]
        return result.drop_vars([*scalars, "iterations", "converged"])

    def kernel(self) -> Kernel:
        """Return the kernel of the risk: sweeps, derivatives, files for other languages.

        Its parameters are those of the model and the moments of student and teacher, with the
        model's values as defaults; `step_size` is η of the formulas, twice that of a model with
        ``loss="full"``. The penalty `ridge` must be given, and is positive. Files that it writes
        take finite numbers only: for the population gradient, ``alpha0=math.inf``, give them
        1e300, of which no digit differs.
        """
        return risk_kernel(self)

    @renamed("curve(...).plot(simulation=...)")
    @one_penalty
    def plot_risk(
        self,
        over: str,
        values: object,
        *,
        ridge: object = None,
        simulated: FiniteSizes | None = None,
        ax: Any = None,
    ) -> Any:
        """Draw the risk before and after the step, as the last release did."""
        data = risk_data(self, over, values, ridge=ridge, simulated=simulated)
        return plot_risk(data, ax=ax)

    @renamed("curve(...).plot('improvement')")
    @one_penalty
    def plot_phase(
        self,
        x: str,
        x_values: object,
        y: str,
        y_values: object,
        *,
        ridge: object = None,
        quantity: str = "improvement",
        ax: Any = None,
    ) -> Any:
        """Draw what the step improves over two parameters, as the last release did."""
        data = phase_data(self, x, x_values, y, y_values, ridge=ridge)
        return plot_phase(data, quantity, ax=ax)

    def gradient(self) -> FirstStep:
        r"""Derive the limits of the three parts of the first gradient, G = A + B + C.

        A is the spike, B the residual and C what the network's own output contributes. Of the
        result, ``values(alpha=model.step_samples, noise_variance=model.noise_variance)`` are
        numbers and ``population_spike`` is the leading term with infinitely many samples.

        Raises
        ------
        AssumptionError
            If the student jumps: its gradient is not defined.
        """
        model = self
        teacher = model.teacher
        target = teacher if has_several_directions(teacher) else activation(teacher)
        return first_step(model.student, target, centre=model.centre)

    as_spiked_features = cast(
        "Callable[..., SpikedRandomFeatures]",
        given_by("giantstep.derivations.bridge", "as_spiked_features"),
    )

    # ------------------------------------------------------------------ files

    def parameters(self) -> dict[str, Any]:
        """Return the arguments of the model as plain values, those at their defaults left out."""
        result = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "cache_folder"}
        optional = {"alpha0": None, "loss": "half", "centre": False}
        return {k: v for k, v in result.items() if k not in optional or v != optional[k]}

    def _arguments(self) -> dict[str, Any]:
        return self.parameters()

    def __str__(self) -> str:
        shown = ", ".join(f"{k} = {_shown(v)}" for k, v in self.parameters().items())
        return f"one gradient step: {shown}"

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), _shown(v)) for name, v in self.parameters().items()]
        for layer, known in (("student", self.student_moments), ("teacher", self.teacher_moments)):
            rows.append((f"{layer}, linear part", f"{known.linear:.12g}"))
            rows.append((f"{layer}, variance of the rest", f"{known.residual:.12g}"))
        return as_html([Table(rows), self.standing])


def _checked(
    *,
    student: object,
    teacher: object,
    alpha: object,
    beta: object,
    step_size: object,
    noise_variance: object,
    alpha0: object,
    loss: object,
    centre: object,
    cache_folder: object,
) -> dict[str, Any]:
    """Return the arguments of a model as texts, floats and booleans."""
    if not is_one_of(loss, _LOSSES):
        raise ParameterError(
            f"loss must be 'half', for (1/2n) sum (f - y)^2 as in the formulas, or 'full', for "
            f"(1/n) sum (f - y)^2, whose gradient is twice as long; got {loss!r}"
        )
    if cache_folder is not None and not isinstance(cache_folder, str | os.PathLike):
        raise ParameterError(f"cache_folder must be a path or None, got {cache_folder!r}")
    step = real_number("step_size", step_size)
    if not 0 <= step < math.inf:
        raise ParameterError(f"step_size must be >= 0 and finite, got {step}")
    if loss == "full" and 2 * step == math.inf:
        raise ParameterError(
            f"step_size = {step:g} is too large: with loss='full' the formulas take twice that, "
            "which is no float"
        )
    return {
        "student": activation_text("student", student),
        "teacher": teacher_text(teacher, FileCache(cache_folder)),
        "alpha": positive_number("alpha", alpha),
        "beta": positive_number("beta", beta),
        "step_size": step,
        "noise_variance": nonnegative_number("noise_variance", noise_variance),
        "alpha0": None if alpha0 is None else _samples(alpha0),
        "loss": loss,
        "centre": checked_switch("centre", centre),
        "cache_folder": cache_folder,
    }


def _samples(value: object) -> float:
    number = real_number("alpha0", value)
    if not number > 0:
        raise ParameterError(f"alpha0 must be positive (inf is allowed), got {number}")
    return number


def _shown(value: object) -> str:
    return "inf" if value == math.inf else str(value)
