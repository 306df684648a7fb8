r"""The saddle-point equations in scaled unknowns, regular where a small quantity vanishes.

Each unknown x is written as :math:`\varepsilon^k X` with the exponent k of the leading balance, and
powers of ε that an equation has in common are divided out: inside every average the integrand is
brought to :math:`\varepsilon^j` times a rational function that is regular at ε = 0, for example
:math:`1/(1 + V/\varepsilon) = \varepsilon/(\varepsilon + V)`. What is left is a system
F(X, ε) = 0 whose solution is a power series.

At the interpolation threshold α = β the leading equations hold for any common scale of the
responses V, and are linear in the self-overlaps q without determining their size. There two of them
are replaced by the combinations that the free energy f names,

.. math::
    V\cdot\partial_q f + \hat V\cdot\partial_{\hat q} f = 0, \qquad
    V\cdot\partial_V f - \hat V\cdot\partial_{\hat V} f
    + q\cdot\partial_q f - \hat q\cdot\partial_{\hat q} f = 0 ,

whose leading order cancels identically, so that they can be divided by ε. Derived here.

**How fast the conditional variance of a saturating student decays along the spike.** Without a
ridge penalty, interpolating readouts (α ≤ β) average inverse powers of :math:`v(\kappa) = \mu_1^2
v_1 + \mu_2^2 v_2`. If the student tends to a constant like :math:`\exp(-g u^2)` on one side, then
:math:`\mu_2^2 \approx \mathbb{E}\,\exp(-2g u^2)` over :math:`u \sim \mathcal{N}(r\kappa, c)`, so
that

.. math:: v(\kappa) \sim \exp\Big(-\frac{2 g r^2\kappa^2}{1 + 4 g c}\Big),

and :math:`\mathbb{E}_\kappa[v^{-j}]` is finite for :math:`4 j g r^2 < 1 + 4 g c` only: for erf
(g = 1), j = 1, where :math:`4r^2 < 1 + 4c`. A student that is constant from some point on, such as
relu or sign, has g = ∞: :math:`j r^2 < c`. An exponential approach, as of tanh, has g = 0: all
moments are finite, though large. Derived here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from ....errors import AssumptionError, ParameterError
from ....numeric.arguments import positive_number
from ....runtime.precision import local_context
from ....symbolic.expressions.activations import Activation, activation, z
from ....symbolic.expressions.averages import Average
from ....symbolic.expressions.factors import factored
from ....symbolic.gaussian.expectation import GaussianExpectation
from ....symbolic.printing.compiled import compiled
from ....symbolic.systems.equations import BlockStructure, Equation, FreeEnergy, block_structure
from ....symbolic.systems.random_matrix import MarchenkoPasturAverage
from ...expansions.expansion import LARGE_ALPHA, SMALL_RIDGE
from .. import physics as fe
from ..derive import SymbolicModel

if TYPE_CHECKING:
    from ..model import SpikedRandomFeatures
    from ..vocabulary.model import VocabularyFeatures

small = sp.Symbol("epsilon", positive=True)
"""ε, the small quantity in which the scaled unknowns are power series."""

_RESPONSES = (fe.V1, fe.V2)
_OVERLAPS = (fe.q1, fe.q2)
_RESPONSE_HATS = (fe.V1_hat, fe.V2_hat)
_OVERLAP_HATS = (fe.q1_hat, fe.q2_hat)
_DIRECTION_HATS = (fe.theta_hat, fe.psi_hat)


@dataclass(frozen=True)
class Balance:
    """A leading balance: how unknowns, tables and parameters scale with ε.

    Attributes
    ----------
    exponents : mapping from Symbol to int
        k of each unknown that is :math:`ε^k X`; others have k = 0.
    parameters : mapping from Symbol to Expr
        Parameters in terms of ε.
    tables : mapping from applied function to int
        Exponents of tables.
    threshold : bool
        Two equations degenerate and are replaced by combinations of all.
    """

    exponents: Mapping[sp.Symbol, int]
    parameters: Mapping[sp.Symbol, sp.Expr]
    tables: Mapping[sp.Expr, int]
    threshold: bool = False

    @property
    def rule(self) -> dict[sp.Expr, sp.Expr]:
        """Return the substitution that scales an expression."""
        scaled = {**self.exponents, **self.tables}
        return {**{x: small**k * x for x, k in scaled.items()}, **self.parameters}


def _exponents(groups: Mapping[tuple[sp.Symbol, ...], int]) -> dict[sp.Symbol, int]:
    return {x: k for group, k in groups.items() for x in group}


MANY_SAMPLES = Balance(
    _exponents({_RESPONSES: 1, _RESPONSE_HATS: -1, _OVERLAP_HATS: -1, _DIRECTION_HATS: -1}),
    {fe.alpha: 1 / small},
    {},
)
"""α = 1/ε."""

MANY_SAMPLES_AT_WIDTH = Balance(
    {**MANY_SAMPLES.exponents, fe.q2_hat: -2}, MANY_SAMPLES.parameters, MANY_SAMPLES.tables
)
"""α = 1/ε at a finite width, where the cost of m enters the conjugate of q_2 with 1/V_2²."""

FEW_PARAMETERS = Balance({}, {fe.ridge: small}, {})
"""λ = ε at α > β: the training set is not interpolated and nothing is singular."""

INTERPOLATION = Balance(
    _exponents({_RESPONSES: -1, _RESPONSE_HATS: 1, _OVERLAP_HATS: 2, _DIRECTION_HATS: 1}),
    {fe.ridge: small},
    {},
)
"""λ = ε at α < β: the responses grow like 1/λ."""

THRESHOLD = Balance(
    _exponents(
        {_RESPONSES: -1, _OVERLAPS: -1, _RESPONSE_HATS: 1, _OVERLAP_HATS: 1, _DIRECTION_HATS: 1}
    ),
    {fe.ridge: small**2, fe.alpha: fe.beta},
    {},
    threshold=True,
)
"""λ = ε² at α = β: responses and self-overlaps grow like 1/√λ."""


def balance_of_letters(balance: Balance, letters: fe.Letters) -> Balance:
    """Return a balance of one kind of rows for several letters, which have no conjugates."""
    power = balance.exponents.get(fe.V2, 0)
    responses = (*letters.v2, *(letters.v1[i, j] for i, j in letters.upper))
    return Balance(dict.fromkeys(responses, power) if power else {}, balance.parameters, {})


def small_step_balance(mean_order: int) -> Balance:
    """Return the balance of a small step s = ε.

    Parameters
    ----------
    mean_order : int
        Power of ε with which μ_0 vanishes. In the limit p → ∞ the readout's mean m costs nothing,
        so that it grows until μ_0 m is of order one.
    """
    return Balance({fe.m: -mean_order}, {}, {fe.mu0: mean_order})


@dataclass(frozen=True)
class ScaledSystem:
    """Equations F(X, ε) = 0 that are regular at ε = 0, and what is computed from their solution.

    Attributes
    ----------
    equations : tuple of Equation
        In the scaled unknowns, which keep the symbols of the unscaled ones.
    exponents : mapping from Symbol to int
        Each unknown is :math:`ε^k` times the scaled one.
    outputs : mapping from str to (int, Expr)
        k and the scaled quantity.
    """

    equations: tuple[Equation, ...]
    exponents: Mapping[sp.Symbol, int]
    outputs: Mapping[str, tuple[int, sp.Expr]]

    @cached_property
    def structure(self) -> BlockStructure:
        """In which order the equations are solved."""
        return block_structure(self.equations)


def scaled_system(model: SymbolicModel, balance: Balance) -> ScaledSystem:
    """Scale the saddle-point equations of a model and divide out powers of ε."""
    rule = balance.rule
    combined = {}
    if balance.threshold:
        combined = _threshold_combinations(model.free_energy.free_energy, rule)
    equations = []
    for e in model.system.equations:
        if e.unknown in combined:
            equations.append(Equation(e.unknown, None, combined[e.unknown]))
        elif e.value is None:
            equations.append(Equation(e.unknown, None, _regular(e.residual.xreplace(rule))[1]))
        else:
            k, value = _regular(e.value.xreplace(rule))
            k -= balance.exponents.get(e.unknown, 0)
            # A right-hand side that is smaller than the balance says vanishes at ε = 0.
            value = small**k * value
            equations.append(Equation(e.unknown, value, e.unknown - value))
    return ScaledSystem(
        tuple(equations),
        {x: balance.exponents.get(x, 0) for x in model.system.unknowns},
        {
            name: _regular(expr.xreplace(rule))
            for name, expr in model.system.outputs.items()
        },
    )  # fmt: skip


def _regular(expr: sp.Expr) -> tuple[int, sp.Expr]:
    """Return k and the function g, regular at ε = 0, of which `expr` is ε^k g."""
    marks: dict[sp.Expr, sp.Expr] = {}
    outer: dict[sp.Expr, sp.Expr] = {}
    for node in expr.atoms(Average):
        k, inside = _divided(node.args[0])
        mark = sp.Dummy(real=True)
        marks[mark] = _closed(node.func(inside, *node.args[1:]))
        outer[node] = small**k * mark
    k, rest = _divided(expr.xreplace(outer))
    return k, rest.xreplace(marks)


def _closed(node: sp.Expr) -> sp.Expr:
    """Write averages over the spectrum by the resolvent."""
    return node.xreplace({n: n.doit() for n in node.atoms(MarchenkoPasturAverage)})


def _divided(expr: sp.Expr) -> tuple[int, sp.Expr]:
    """Divide a rational function of ε by the power with which it starts; keep it factored."""
    numerator, denominator = sp.fraction(sp.together(expr))
    up, top = _divided_product(numerator)
    down, bottom = _divided_product(denominator)
    return up - down, top / bottom


def _divided_product(product: sp.Expr) -> tuple[int, sp.Expr]:
    order, kept = 0, []
    for factor in sp.Mul.make_args(product):
        base, exponent = factor.as_base_exp()
        if not (exponent.is_Integer and exponent.is_positive):
            base, exponent = factor, sp.S.One
        k, rest = _divided_polynomial(base)
        order += k * int(exponent)
        kept.append(rest**exponent)
    return order, sp.Mul(*kept)


def _divided_polynomial(base: sp.Expr) -> tuple[int, sp.Expr]:
    if not base.has(small):
        return 0, base
    terms = _powers(base)
    lowest = min(terms)
    if lowest == 0:
        return 0, base
    return lowest, sp.Add(*(small ** (k - lowest) * term for k, term in terms.items()))


def _powers(polynomial: sp.Expr) -> dict[int, sp.Expr]:
    """Return the coefficients of a polynomial in ε that do not vanish."""
    collected = sp.collect(sp.expand(polynomial), small, evaluate=False)
    terms = {int(power.as_base_exp()[1]) if power != 1 else 0: c for power, c in collected.items()}
    return {k: c for k, c in terms.items() if c != 0} or {0: sp.S.Zero}


# ------------------------------------------------------------------ the interpolation threshold


def _threshold_combinations(
    energy: FreeEnergy, rule: Mapping[sp.Expr, sp.Expr]
) -> dict[sp.Symbol, sp.Expr]:
    f = energy.expression
    stays = set(energy.variables)

    def along(pairs: Sequence[tuple[sp.Symbol, sp.Expr]]) -> sp.Expr:
        terms = (rate * f.diff(x) for x, rate in pairs if x in stays)
        return _merged(sp.Add(*terms).xreplace(rule))

    responses = [
        *zip(_OVERLAPS, _RESPONSES, strict=True),
        *zip(_OVERLAP_HATS, _RESPONSE_HATS, strict=True),
    ]
    overlaps = [
        *((x, x) for x in (*_RESPONSES, *_OVERLAPS)),
        *((x, -x) for x in (*_RESPONSE_HATS, *_OVERLAP_HATS)),
    ]
    return {fe.V2: along(responses), fe.q2: along(overlaps)}


def _merged(expr: sp.Expr) -> sp.Expr:
    """Return a combination of averages, with those over one law put together, divided by ε^k.

    What cancels between averages over one law then cancels in the integrand; an integrand that
    tends to a constant gives this constant to the outside, where it may cancel, too.
    """
    marks = {n: sp.Dummy(real=True) for n in sorted(expr.atoms(Average), key=str)}
    linear = sp.expand(expr.xreplace(marks))
    outside, total = linear.xreplace(dict.fromkeys(marks.values(), sp.S.Zero)), []
    for law in (GaussianExpectation, MarchenkoPasturAverage):
        nodes = [n for n in marks if isinstance(n, law)]
        if not nodes:
            continue
        inside = sp.Add(*(linear.coeff(marks[n]) * n.args[0] for n in nodes))
        variable, *parameters = nodes[0].args[1:]
        numerator, denominator = sp.fraction(sp.cancel(inside))
        terms = _powers(numerator)
        order, bottom = _divided_product(factored(denominator))
        limit = sp.cancel(terms.get(order, sp.S.Zero) / bottom.subs(small, 0))
        if variable not in limit.free_symbols:
            outside += limit
            terms = _powers(numerator - limit * denominator)
        for k, term in terms.items():
            pieces = [term]
            if law is MarchenkoPasturAverage:
                polynomial = sp.Poly(term, variable)
                pieces = [factor * variable**j for (j,), factor in polynomial.terms()]
            averages = [law(factored(p) / bottom, variable, *parameters) for p in pieces]
            total.append((k - order, sp.Add(*map(_closed, averages))))
    total += [(k, term) for k, term in _powers(outside).items() if term != 0]
    lowest = min(k for k, _ in total)
    return sp.Add(*(small ** (k - lowest) * term for k, term in total))


# ------------------------------------------------------------------ cases

# Where float solutions are close enough to the limit to start Newton's method from.
_MANY = 1e6
_SMALL_RIDGE = 1e-8
# Relative accuracy of the measured decay of a student.
_MEASURED = 1e-3
# Exponents of remainders that are no powers of a series are rounded down to multiples of 1/100.
_STEPS = 100


@dataclass(frozen=True)
class LineCase:
    """An expansion in α or λ.

    Attributes
    ----------
    last : int
        Exponent of ε of the last term that is computed, the neglected one.
    unit : Fraction
        Exponent of the small quantity that one power of ε is.
    inverse_powers : int
        Highest power of the inverse conditional variance.
    near : mapping from str to float
        α and λ of the float solution to start from.
    epsilon : float
        ε there.
    region : str
        Where the series holds.
    remainder : Fraction, optional
        Exponent of the small quantity that bounds the remainder, where the next coefficient
        diverges; `last` is then that of the last term that is kept.
    """

    balance: Balance
    last: int
    unit: Fraction
    inverse_powers: int
    near: Mapping[str, float]
    epsilon: float
    region: str
    remainder: Fraction | None = None


def line_case(
    model: SpikedRandomFeatures | VocabularyFeatures, name: str, order: int, alpha: float | None,
    ridge: float | None, spikes: Sequence[tuple[float, float]],
) -> LineCase:  # fmt: skip
    """Return the case of an expansion in α (at fixed λ) or in λ (at fixed α).

    `spikes` are r and c of every kind of rows.
    """
    # Nothing is derived before it is known that there is something to derive.
    student = activation(model.student, argument="student")
    _require_bulk_noise(model, student, name)
    if name == LARGE_ALPHA:
        assert ridge is not None
        many = _MANY * max(1.0, model.beta)
        balance = MANY_SAMPLES if model.width is None else MANY_SAMPLES_AT_WIDTH
        return LineCase(
            balance, order + 1, Fraction(1), 0, {"alpha": many, "ridge": ridge}, 1 / many,
            f"alpha = n/d to infinity at beta = {model.beta:g} and lambda = {ridge:g} fixed; the "
            "limit is E_inf of any fixed lambda",
        )  # fmt: skip
    assert alpha is not None
    near = {"alpha": alpha, "ridge": _SMALL_RIDGE}
    if alpha > model.beta:
        # The training error has no linear term: two orders hold the first neglected one.
        return LineCase(
            FEW_PARAMETERS, order + 2, Fraction(1), 0, near, _SMALL_RIDGE,
            f"lambda to 0 at alpha = {alpha:g} > beta = {model.beta:g}: n > p, the training set "
            "is not interpolated and lambda = 0 is regular",
        )  # fmt: skip
    if alpha < model.beta:
        case = LineCase(
            INTERPOLATION, order + 1, Fraction(1), order + 2, near, _SMALL_RIDGE,
            f"lambda to 0 at alpha = {alpha:g} < beta = {model.beta:g}: n < p, the training set "
            "is interpolated and the responses V grow like 1/lambda",
        )  # fmt: skip
    else:
        case = LineCase(
            THRESHOLD, 2 * order + 1, Fraction(1, 2), 2 * order + 3, near,
            math.sqrt(_SMALL_RIDGE),
            f"lambda to 0 at the interpolation threshold alpha = beta = {alpha:g}: the test error "
            "peaks like 1/sqrt(lambda)",
        )  # fmt: skip
    return _with_finite_moments(spikes, student, case)


def _require_bulk_noise(
    model: SpikedRandomFeatures | VocabularyFeatures, student: Activation, name: str
) -> None:
    affine = student.expr.is_polynomial(z) and sp.degree(student.expr, z) <= 1
    if affine and model.beta >= 1:
        raise AssumptionError(
            f"student {student.name!r} is affine, so that its p = beta d features span only d "
            f"directions: at beta = {model.beta:g} >= 1 the response V_2 is infinite and "
            f"{name!r} does not exist; choose beta < 1 or another student"
        )


def _with_finite_moments(
    spikes: Sequence[tuple[float, float]], student: Activation, case: LineCase
) -> LineCase:
    rate = saturation_rate(student)
    # The rows whose variance decays most slowly decide what the sum does.
    most, spike = max((highest_moment(rate, *one), one) for one in spikes)
    # A moment of exactly the critical power diverges; what is measured is good to 1e-3.
    if most <= (case.inverse_powers - 1) * (1 + _MEASURED):
        raise AssumptionError(_diverges(student, spike, rate, most, case))
    if most <= case.inverse_powers * (1 + _MEASURED):
        return _without_next_term(case, most)
    if rate == 0 and spike[0]:
        note = (
            "; for a student that saturates, inverse powers of its conditional variance make "
            "coefficients grow fast: the series is asymptotic and holds for very small lambda"
        )
        return replace(case, region=case.region + note)
    return case


def _diverges(
    student: Activation, spike: tuple[float, float], rate: float, most: float, case: LineCase
) -> str:  # fmt: skip
    law = (
        f"its conditional variance decays like exp(-r^2 kappa^2/(2c)), r = "
        f"{spike[0]:.6g}, c = {spike[1]:.6g}"
        if math.isinf(rate)
        else f"its conditional variance decays like exp(-2 g r^2 kappa^2/(1 + 4 g c)), g = "
        f"{rate:.4g}, r = {spike[0]:.6g}, c = {spike[1]:.6g}"
    )
    # The power that an order needs grows by one for each power of epsilon.
    needed = case.inverse_powers - 1
    room = math.ceil(most * (1 - _MEASURED)) - 1 - (needed - (case.last - 1))
    highest = math.floor(room * case.unit)
    limit = (
        f"the highest order is {highest}; ask for that"
        if highest >= 0
        else "the ridgeless averages diverge, and there is no limit to expand about"
        if most <= 1 + _MEASURED
        else "only the amplitude of the peak exists"
    )
    return (
        f"student {student.name!r} saturates along the spike: {law}, and the mean of its "
        f"inverse to the power j is finite for j < {most:.4g} only. At alpha <= beta this "
        f"order of the expansion needs j = {needed}: {limit}; or take alpha > beta or a smaller "
        "step, or solve at a positive ridge"
    )


def _without_next_term(case: LineCase, most: float) -> LineCase:
    """Return a case whose next coefficient diverges, so that its remainder is no next term.

    Averages of 1/(ε + v) are power series up to the weight of v < ε, which is of order ε to the
    power `most`, up to logarithms: the
    exponent is rounded down, so that what is left is of that order whatever the logarithms.
    """
    exponent = case.last - (case.inverse_powers - most)
    below = math.floor(exponent * case.unit * _STEPS * (1 - _MEASURED) - _MEASURED)
    remainder = max(Fraction(below, _STEPS), (case.last - 1) * case.unit)
    return replace(
        case,
        last=case.last - 1,
        inverse_powers=case.inverse_powers - 1,
        remainder=remainder,
        region=f"{case.region}; the next coefficient diverges, since the mean of the inverse "
        f"conditional variance of the student to the power j is finite for j < {most:.4g} only: "
        f"what is left out is no power series, it is O(lambda^({remainder})) and its size is "
        "not known",
    )


def checked_point(name: str, alpha: object, ridge: object) -> tuple[float | None, float | None]:
    """Return α and λ that are held fixed; the one that is expanded in must not be given."""
    wanted = {LARGE_ALPHA: ("ridge",), SMALL_RIDGE: ("alpha",)}.get(name, ("alpha", "ridge"))
    found: dict[str, float | None] = {}
    for argument, value in (("alpha", alpha), ("ridge", ridge)):
        if argument not in wanted:
            if value is not None:
                raise ParameterError(
                    f"{argument} is what {name!r} expands in; leave it out (got {value!r})"
                )
            found[argument] = None
            continue
        if value is None:
            raise ParameterError(f"{name!r} holds {argument} fixed; give {argument}=...")
        found[argument] = positive_number(argument, value)
    return found["alpha"], found["ridge"]


# ------------------------------------------------------------------ tails

# Where the decay is measured; the digits resolve 1 − tanh² there.
_POINTS = (40, 60, 80)
_DIGITS = 200
_SMALLEST_RATE = 1e-4


def saturation_rate(student: Activation) -> float:
    """Return the larger g of the two sides; inf for a student that becomes constant, else 0."""
    ctx = local_context(_DIGITS)
    # Jumps are somewhere; what counts is far away.
    derivative = student.expr.diff(z).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
    slope = compiled(derivative, [z], ctx)
    return max(_one_side(ctx, slope, sign) for sign in (1, -1))


def _one_side(ctx: Any, slope: Any, sign: int) -> float:
    sizes = [abs(slope(ctx.mpf(sign * u))) for u in _POINTS]
    if not any(sizes):
        return math.inf
    if not all(sizes):
        return 0.0
    near, middle, far = (-ctx.log(x) for x in sizes)
    # The second difference is blind to an exponential factor; a slope that oscillates does not
    # decay by as much as its differences say.
    gap = _POINTS[1] - _POINTS[0]
    rate = float((far - 2 * middle + near) / (2 * gap**2))
    total = float(far) / _POINTS[2] ** 2
    return rate if rate > _SMALLEST_RATE and total > rate / 2 else 0.0


def highest_moment(rate: float, spike_strength: float, bulk_variance: float) -> float:
    """Return the supremum of the powers j for which the mean of 1/v^j is finite."""
    if not rate or not spike_strength:
        return math.inf
    square = spike_strength**2
    if math.isinf(rate):
        return bulk_variance / square
    return (1 + 4 * rate * bulk_variance) / (4 * rate * square)
