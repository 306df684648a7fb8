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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from ....symbolic.averages import Average
from ....symbolic.equations import BlockStructure, Equation, FreeEnergy, block_structure
from ....symbolic.gaussian import GaussianExpectation
from ....symbolic.random_matrix import MarchenkoPasturAverage
from .. import physics as fe
from ..derive import SymbolicModel

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
        order, bottom = _divided_product(sp.factor(denominator))
        if min(terms) == order:
            limit = sp.cancel(terms[order] / bottom.subs(small, 0))
            if variable not in limit.free_symbols:
                outside += limit
                terms = _powers(numerator - limit * denominator)
        for k, term in terms.items():
            pieces = [term]
            if law is MarchenkoPasturAverage:
                polynomial = sp.Poly(term, variable)
                pieces = [factor * variable**j for (j,), factor in polynomial.terms()]
            averages = [law(sp.factor(p) / bottom, variable, *parameters) for p in pieces]
            total.append((k - order, sp.Add(*map(_closed, averages))))
    total += [(k, term) for k, term in _powers(outside).items() if term != 0]
    lowest = min(k for k, _ in total)
    return sp.Add(*(small ** (k - lowest) * term for k, term in total))
