r"""Several steps with η of order one: again one spike, t times as long.

For a fixed number t of steps the network's output stays of order :math:`N^{-1/2}`, so every step on
the same data adds the same spike, :math:`W_t = W_0 + t\eta\sqrt N A` to leading order: all results
of one step hold with η → tη. With fresh data in each step the parts orthogonal to the teacher are
independent, which is one step with η → tη on t times as many samples, α0 → tα0.

Corrections are of the relative order :math:`t\eta/\sqrt N`, because the linear predictor
:math:`b_t = \mu_1 W_ta/\sqrt N` learns: with :math:`S = X^\top X/n`, :math:`c =
\eta\mu_1^2|a|^2/\sqrt N` and :math:`v = X^\top y/n`,

.. math:: b_{t+1} = b_t + c\,(v - S b_t), \qquad
          u_t = \eta\mu_1\sum_{j<t}(1 - cS)^j\,v + O(N^{-1/2}),

the second for the spike :math:`W_t = W_0 + u_ta^\top`. On the same data its sizes are averages over
the Marchenko–Pastur law of S; on fresh data S is independent in every step, with :math:`\mathbb{E}S
= 1` and :math:`\mathbb{E}S^2 = 1 + 1/\alpha_0`. (Derived here.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import sympy as sp

from ...deprecations import by_name
from ...errors import AssumptionError, ParameterError
from ...json_document import WritesJson
from ...numeric.arguments import checked_switch, whole_number
from ...numeric.saddle_point_solver import BatchSolution
from ...pages import Block, Page, Table, Typeset
from ...symbolic.expressions.standing import Standing
from ..curves import Columns, Names, solve_groups
from ..kernels.kernel import Kernel
from ..penalties import PAPER_RIDGE
from ..sensitivities import Directions, HasSensitivities
from .risk import DOMAINS, NAMES, RidgeRisk
from .symbols import alpha0, label_square, linear, spike_square, step_size, teacher_linear

if TYPE_CHECKING:
    from .model import OneGradientStep

_MOST_STEPS = 100
contraction = sp.Symbol("c", nonnegative=True)
r"""c = η μ_1²/√N, by which one step shrinks the linear part of the residuals."""

WIDTH = sp.Symbol("N", positive=True)
"""The number of neurons N."""

CONTRACTION = step_size * linear**2 / sp.sqrt(WIDTH)
"""The same in η, μ_1 and N."""


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
class SeveralSteps(Page, Typeset, WritesJson, HasSensitivities):
    r"""A model after several gradient steps, as one step that is equivalent to them.

    Attributes
    ----------
    first : OneGradientStep
        The model whose step is repeated.
    fresh : bool
        Every step has its own samples.
    """

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "steps": self.steps,
            "fresh": self.fresh,
            "first": self.first.parameters(),
            "model": self.model.parameters(),
            "standing": self.standing.value,
        }


def several_steps(model: OneGradientStep, steps: object, fresh: object = False) -> SeveralSteps:
    """Return this model after several steps with η of order one.

    See :func:`.several_steps.several_steps`.
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
