r"""The symbolic side of an expansion: equations of every order, coefficients as formulas.

For many samples two identities shorten the error. The free energy f is stationary, and up to what
the labels bring homogeneous of degree one if overlaps count half and self-overlaps, with their
conjugates, once (Euler); its explicit dependence on α is linear in an average. So the regularised
training loss per sample, :math:`L = 2\beta f/\alpha`, obeys

.. math::
    L = \mathbb{E}_\kappa\frac{e - \sum_x w_x\,x\,\partial_x e}{1 + V}, \qquad
    \frac{\partial(\alpha L)}{\partial\alpha} = \mathbb{E}_\kappa\frac{e}{1 + V},

with the squared error e and the variance V at κ. The first gives the limit α → ∞ without
self-overlaps, since L, training error and noisy test error coincide there; the second gives
:math:`0 = \mathbb{E}[e_1] - \mathbb{E}[e_0v_0]` at order 1/α, and with it the correction of both
errors from leading quantities alone. Derived here.

**The equations of every order, as formulas.** In the scaled equations F(X, ε) = 0 each unknown
becomes :math:`X_0 + X_1\varepsilon + X_2\varepsilon^2 + \dots`. Order 0 is the leading, nonlinear
system; order k ≥ 1 is linear in the coefficients X_k, with the matrix ∂F/∂X at X_0 for all k.
Averages over κ are expanded under the average and stay unevaluated.

The Marchenko–Pastur resolvent is not written: it is the response V_2, so that the quadratic
equation that defines it, with the companion :math:`h = V_1/(cV_2)`, gives

.. math::
    (\lambda + \hat V_2)V_2 + \hat V_1V_1 = 1, \qquad
    V_1(1 + \beta c\hat V_1V_2) = cV_2 ,

and its derivatives, from which the self-overlaps follow, are rational in V_1 and V_2. Derived here.

**Tables and parameters of a short step as series in its size s, with symbols for numbers.** With
:math:`h_n = \mathbb{E}\,\sigma\,\mathrm{He}_n` and the heat kernel,

.. math::
    \mathbb{E}_z\,\sigma(r\kappa + \sqrt{c}\,z)
    = \sum_{i,j} \frac{(r\kappa)^j}{j!}\Bigl(\frac{c - 1}{2}\Bigr)^i\frac{h_{j + 2i}}{i!} ,

and the same for derivatives of σ and for σ²; r is proportional to s and c − 1 a polynomial in s.
Derived here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any

import sympy as sp

from ....symbolic.exact.series import Series, substitute
from ....symbolic.expressions.activations import z
from ....symbolic.expressions.factors import factored
from ....symbolic.gaussian.expectation import GaussianExpectation
from ....symbolic.hermite.coefficients import hermite_coefficients
from ....symbolic.systems.equations import Equation
from ....symbolic.systems.random_matrix import Resolvent
from ...expansions.expansion import LARGE_ALPHA, SymbolicSeries
from ...first_gradient.spike_mapping import SpikeMapping, alpha0, step_size
from .. import physics as fe
from .scaling import Balance, ScaledSystem, scaled_system, small, small_step_balance
from .small_step import step_models, vanishing_mean

if TYPE_CHECKING:
    from ..derive import SymbolicModel
    from ..model import SpikedRandomFeatures

_WEIGHTS = {
    **dict.fromkeys((fe.m, fe.theta, fe.psi), sp.Rational(1, 2)),
    **dict.fromkeys((fe.q1, fe.q2), sp.S.One),
}
# The equations of an order are twice as long as those of the one before.
_MOST_ORDERS = 6
_UNKNOWNS = {identifier: x for x, identifier in fe.IDENTIFIERS.items()}


def line_series(
    model: SpikedRandomFeatures,
    name: str,
    balance: Balance,
    exponents: Sequence[Fraction],
    outputs: Sequence[str],
) -> SymbolicSeries:
    """Return the symbolic side of an expansion of a model in α or λ; see :func:`series_of`."""
    return series_of(model.symbolic(), name, balance, exponents, outputs)


def series_of(
    symbolic: SymbolicModel,
    name: str,
    balance: Balance,
    exponents: Sequence[Fraction],
    outputs: Sequence[str],
) -> SymbolicSeries:
    """Return the symbolic side of an expansion in α or λ."""
    # Exponent of the small quantity that one power of ε is.
    unit = Fraction(1, 2) if balance.threshold else Fraction(1)
    system = scaled_system(symbolic, balance)
    orders = OrderEquations(system, _last(system, exponents[-1] / unit))
    powers = [int(e / unit) for e in exponents]
    formulas = _formulas(orders, system, powers, outputs)
    quantity = fe.ridge ** sp.Rational(str(unit))
    if name == LARGE_ALPHA:
        quantity = 1 / fe.alpha
        shorter = _many_samples(orders, system)
        begin = powers.index(0)
        for output, values in shorter.items():
            whole = (*formulas[output][:begin], *values, *formulas[output][begin + len(values) :])
            formulas[output] = whole[: len(powers)]
    return _collected(orders, system, formulas, quantity, {})


def step_series(
    model: SpikedRandomFeatures, exponents: Sequence[Fraction], outputs: Sequence[str]
) -> SymbolicSeries:
    """Return the symbolic side of an expansion in the size of the step."""
    symbolic, mapping = step_models(model)
    mean_order = vanishing_mean(model, symbolic, mapping)
    system = scaled_system(symbolic, small_step_balance(mean_order))
    last = _last(system, exponents[-1])
    known, definitions = step_symbols(model, symbolic, mapping, mean_order, last)
    orders = OrderEquations(system, last, known)
    formulas = _formulas(orders, system, [int(e) for e in exponents], outputs)
    return _collected(orders, system, formulas, step_size, definitions)


def _last(system: ScaledSystem, kept: Fraction) -> int:
    """Return the order up to which the test error asks for the unknowns, within reason."""
    start, _ = system.outputs["test_error"]
    return min(int(kept) - start, _MOST_ORDERS)


def _formulas(
    orders: OrderEquations, system: ScaledSystem, powers: Sequence[int], outputs: Sequence[str]
) -> dict[str, tuple[sp.Expr, ...]]:
    found: dict[str, tuple[sp.Expr, ...]] = {}
    for name in outputs:
        if name in system.outputs:
            start, values = orders.output(name)
        elif (x := _UNKNOWNS[name]) in system.exponents:
            start = system.exponents[x]
            values = tuple(coefficient(x, k) for k in range(orders.last + 1))
        else:
            # Nothing depends on it in a special case.
            found[name] = tuple(sp.S.Zero for _ in powers)
            continue
        known = [j for j in powers if j - start <= orders.last]
        found[name] = tuple(values[j - start] if j >= start else sp.S.Zero for j in known)
    return found


def _collected(
    orders: OrderEquations,
    system: ScaledSystem,
    formulas: Mapping[str, tuple[sp.Expr, ...]],
    quantity: sp.Expr,
    definitions: Mapping[sp.Expr, sp.Expr],
) -> SymbolicSeries:
    count = orders.last + 1
    return SymbolicSeries(
        formulas=formulas,
        definitions={**orders.definitions, **definitions},
        equations=orders.equations,
        unknowns=tuple(
            tuple(coefficient(x, k) for x in orders.unknowns) for k in range(count)
        ),
        scalings={
            x: sp.Add(*(coefficient(x, k) * quantity ** (k + start) for k in range(count)))
            for x, start in system.exponents.items()
        },
    )  # fmt: skip


def _many_samples(orders: OrderEquations, system: ScaledSystem) -> dict[str, tuple[sp.Expr, ...]]:
    """Return both errors to order 1/α in terms of leading quantities."""
    (test,) = system.outputs["test_error"][1].atoms(GaussianExpectation)
    (training,) = system.outputs["training_error"][1].atoms(GaussianExpectation)
    error = test.integrand
    spread = (error / training.integrand).as_base_exp()[0]
    euler = sp.Add(*(w * x * error.diff(x) for x, w in _WEIGHTS.items()))
    limit = orders.expanded(fe.average(sp.expand(error - euler))).coefficient(0)
    growth = orders.expanded(fe.average(error / spread))
    found: dict[str, tuple[sp.Expr, ...]] = {}
    for name, noise in (("test_error", fe.noise), ("training_error", sp.S.Zero)):
        _, values = orders.output(name)
        found[name] = (limit - noise, *(v - growth.coefficient(1) for v in values[1:2]))
    return found


# ------------------------------------------------------------------ order equations

variance, mean, error = (sp.Function(name, real=True)(fe.kappa) for name in ("v", "C", "e"))
"""Conditional variance of the response, mean and squared error of the prediction at κ."""


def coefficient(x: sp.Expr, k: int) -> sp.Expr:
    """Return the symbol, or function of κ, of the coefficient of order k."""
    name = str(x.func) if x.args else x.name
    base, _, script = name.partition("_")
    script, _, power = script.partition("^")
    joined = f"{{{script},{k}}}" if script else str(k)
    numbered = f"{base}_{joined}" + (f"^{power}" if power else "")
    if x.args:
        return sp.Function(numbered, real=True)(*x.args)
    # Only leading coefficients have the sign of the unknown.
    return sp.Symbol(numbered, **(x.assumptions0 if k == 0 else {"real": True}))


# ---------------------------------------------------------------------- polynomial equations


@dataclass(frozen=True)
class Relation:
    """An equation left = right that determines an unknown, polynomial outside of averages."""

    unknown: sp.Symbol
    left: sp.Expr
    right: sp.Expr


def relations(system: ScaledSystem) -> tuple[Relation, ...]:
    """Return the scaled equations without the resolvent and without quotients of unknowns."""
    resolvents = sorted({n for e in system.equations for n in e.residual.atoms(Resolvent)}, key=str)
    if not resolvents:
        return tuple(_cleared(e, {}) for e in system.equations)
    # One resolvent, perhaps at a multiple of its arguments, of which it is a multiple then.
    shift = next(
        n.args[0] - fe.V2_hat for n in resolvents if n.args[0].coeff(fe.V2_hat) == 1
    )  # fmt: skip
    scales = {n: n.args[0].coeff(fe.V2_hat) for n in resolvents}
    removed = {n: fe.V2 / scale for n, scale in scales.items()}
    return tuple(_relation(e, removed, shift) for e in system.equations)


def _relation(
    equation: Equation, removed: Mapping[sp.Expr, sp.Expr], shift: sp.Expr
) -> Relation:  # fmt: skip
    x = equation.unknown
    if x == fe.V1:
        return Relation(x, x * (1 + fe.beta * fe.c * fe.V1_hat * fe.V2), fe.c * fe.V2)
    if x == fe.V2 and equation.value is not None:
        return Relation(x, fe.V2 * (fe.V2_hat + shift) + fe.V1_hat * fe.V1, sp.S.One)
    return _cleared(equation, removed, shift)


def _cleared(
    equation: Equation, removed: Mapping[sp.Expr, sp.Expr], shift: sp.Expr = sp.S.Zero
) -> Relation:  # fmt: skip
    x, value = equation.unknown, equation.value
    if value is not None:
        value = value.xreplace(removed)
        if not _quotients(value):
            return Relation(x, x, value)
    marks = {n: sp.Dummy() for n in equation.residual.atoms(GaussianExpectation)}
    residual = equation.residual.xreplace(removed).xreplace(marks)
    if removed and (x in (fe.q1, fe.q2, fe.psi)):
        residual = _in_responses(residual, shift)
    numerator, _ = sp.fraction(sp.cancel(sp.together(residual)))
    # The unknown to the left; what stands under averages only stays there.
    left = [x] if numerator.has(x) else list(marks.values())
    kept = sp.Add(*(y * factored(numerator.coeff(y, 1)) for y in left))
    rest = sp.factor_terms(sp.expand(kept - numerator))
    number = kept.as_coeff_Mul()[0]
    if rest == 0 and len(left) == 1:
        # An average that vanishes, or an unknown.
        kept, number = left[0], sp.S.One
    back = {mark: n for n, mark in marks.items()}
    return Relation(x, (kept / number).xreplace(back), (rest / number).xreplace(back))


def _quotients(expr: sp.Expr) -> bool:
    """Whether unknowns stand in a denominator outside of averages."""
    outside = expr.xreplace({n: sp.Dummy() for n in expr.atoms(GaussianExpectation)})
    return bool(sp.fraction(sp.together(outside))[1].has(fe.V1, fe.V2, fe.V1_hat, fe.V2_hat))


def _in_responses(expr: sp.Expr, shift: sp.Expr) -> sp.Expr:
    """Eliminate the conjugates of the responses by the two relations between them."""
    c, beta, V1, V2 = fe.c, fe.beta, fe.V1, fe.V2
    first = (c * V2 - V1) / (beta * c * V1 * V2)
    return expr.subs(
        {fe.V1_hat: first, fe.V2_hat: (1 - first * V1) / V2 - shift}, simultaneous=True
    )


# ---------------------------------------------------------------------- orders


class OrderEquations:
    """The equations of a scaled system order by order, and its outputs.

    Parameters
    ----------
    last : int
        The last order.
    known : mapping from Expr to sequence of Expr
        Tables and parameters that depend on ε, with their coefficients.
    """

    def __init__(
        self,
        system: ScaledSystem,
        last: int,
        known: Mapping[sp.Expr, Sequence[sp.Expr]] | None = None,
    ) -> None:
        self._system, self.last = system, last
        self.relations = relations(system)
        self.unknowns = tuple(r.unknown for r in self.relations)
        self.definitions: dict[sp.Expr, sp.Expr] = {}
        self._rule: dict[sp.Symbol, Series] = {small: Series.monomial(1, last + 1)}
        # Symbols that stand for functions of κ while series are multiplied.
        self._stand_ins: dict[sp.Expr, sp.Symbol] = {}
        for x, values in (known or {}).items():
            self._let(x, values)
        for x in self.unknowns:
            self._let(x, [coefficient(x, k) for k in range(last + 1)])
        self._replaced: dict[sp.Expr, sp.Expr] = {}
        self._name_parts()

    def _let(self, x: sp.Expr, values: Sequence[sp.Expr]) -> None:
        symbol = x if isinstance(x, sp.Symbol) else self._stand_ins.setdefault(x, sp.Dummy())
        self._rule[symbol] = self._series(values)

    def _substituted(
        self, expr: sp.Expr, marks: Mapping[sp.Symbol, Series] | None = None
    ) -> Series:
        """Return an expression without averages as a series."""
        return self._value(expr.xreplace(self._stand_ins), {**self._rule, **(marks or {})})

    def _value(self, expr: sp.Expr, rule: Mapping[sp.Symbol, Series]) -> Series:
        # Squares are products: a recurrence for powers would leave quotients in formulas.
        powers = {
            x: sp.Dummy()
            for x in expr.atoms(sp.Pow)
            if x.exp.is_Integer and x.exp.is_positive and x.base.free_symbols & set(rule)
        }
        inner = {
            mark: _product([self._value(x.base, rule)] * int(x.exp)) for x, mark in powers.items()
        }
        found = substitute(expr.xreplace(powers), {**rule, **inner})
        return found if isinstance(found, Series) else self._series([found])

    def _series(self, values: Sequence[sp.Expr]) -> Series:
        padded = [*values, *[sp.S.Zero] * (self.last + 1)]
        return Series(tuple(padded[: self.last + 1]), 0)

    @cached_property
    def equations(self) -> tuple[tuple[sp.Eq, ...], ...]:
        """The equations of orders 0 to the last."""
        sides = [(self.expanded(r.left), self.expanded(r.right)) for r in self.relations]
        return tuple(
            tuple(
                sp.Eq(left.coefficient(k), right.coefficient(k), evaluate=False)
                for left, right in sides
            )
            for k in range(self.last + 1)
        )

    def output(self, name: str) -> tuple[int, tuple[sp.Expr, ...]]:
        """Return with which power of ε an output begins, and its coefficients."""
        start, expr = self._system.outputs[name]
        series = self.expanded(expr)
        return start, tuple(series.coefficient(k) for k in range(self.last + 1))

    # ------------------------------------------------------------------ parts of integrands

    def _name_parts(self) -> None:
        """Name the variance, mean and error at κ, with the definitions of their coefficients."""
        _, test_error = self._system.outputs["test_error"]
        (node,) = test_error.atoms(GaussianExpectation)
        means = [x for x in node.atoms(sp.Add) if x.has(fe.m) and not x.has(fe.T0, fe.T2)]
        for name, first, value in (
            (mean, fe.m * fe.mu0, min(means, key=sp.count_ops, default=sp.S.Zero)),
            (variance, fe.V1 * fe.mu1**2, fe.V1 * fe.mu1**2 + fe.V2 * fe.mu2_squared),
        ):
            if value.is_Add and node.has(fe.mu1):
                self._define(name, value)
                unknown, factor = first.as_independent(fe.kappa)
                self._replaced[unknown] = (name - value + first) / factor
        self._error = node.integrand
        self._define(error, self._named(self._error))

    def _define(self, name: sp.Expr, value: sp.Expr) -> None:
        series = self._substituted(value)
        parts = [coefficient(name, k) for k in range(self.last + 1)]
        self.definitions |= {x: sp.S(series.coefficient(k)) for k, x in enumerate(parts)}
        self._let(name, parts)

    def _named(self, part: sp.Expr) -> sp.Expr:
        """Write a factor of an integrand with the variance, mean and error, if it is made so."""
        if part == self._error and error in self._stand_ins:
            return error
        if not part.is_Add:
            return part
        named = sp.expand(part.subs(self._replaced))
        return part if named.has(*self._replaced, fe.V2) else named

    # ------------------------------------------------------------------ series

    def expanded(self, expr: sp.Expr) -> Series:
        """Return a scaled expression with averages as a series in ε."""
        marks = {n: sp.Dummy() for n in expr.atoms(GaussianExpectation)}
        averages = {mark: self._averaged(n) for n, mark in marks.items()}
        return self._substituted(expr.xreplace(marks), averages)

    def _averaged(self, node: GaussianExpectation) -> Series:
        """Expand under an average; every term of a coefficient is an average of its own."""
        back: dict[sp.Expr, sp.Expr] = {}
        factors = []
        for factor in sp.Mul.make_args(node.integrand):
            base, exponent = factor.as_base_exp()
            series = self._substituted(self._named(base))
            if not series.coefficients:
                # A table that vanishes up to the last order.
                return self._series([])
            first, *rest = series.coefficients
            if first.is_Add:
                # A sum is kept as it is.
                back[kept := sp.Dummy()] = first
                series = Series((kept, *rest), series.start)
            count = int(exponent)
            factors.append(_product([series] * count) if count > 0 else series.power(exponent))
        return _product(factors).map(lambda c: _average_of_terms(c, back))


def _product(factors: Sequence[Series]) -> Series:
    return reduce(lambda a, b: a * b, factors)


def _average_of_terms(value: Any, back: Mapping[sp.Expr, sp.Expr]) -> sp.Expr:
    terms = sp.Add.make_args(sp.expand(sp.S(value)))
    return sp.Add(*(GaussianExpectation(t.xreplace(back), fe.kappa) for t in terms))


# ------------------------------------------------------------------ step symbols


def step_symbols(
    model: SpikedRandomFeatures,
    symbolic: SymbolicModel,
    mapping: SpikeMapping,
    mean_order: int,
    last: int,
) -> tuple[dict[sp.Expr, list[sp.Expr]], dict[sp.Expr, sp.Expr]]:
    """Return coefficients of tables and parameters, and the definitions of what they name."""
    length = last + mean_order + 1
    fixed = {alpha0: sp.oo} if math.isinf(model.alpha0) else {}
    definitions: dict[sp.Expr, sp.Expr] = {}
    known: dict[sp.Expr, list[sp.Expr]] = {}

    def named(name: sp.Expr, values: Sequence[sp.Expr]) -> list[sp.Expr]:
        found = []
        for k, value in enumerate(values):
            symbol = coefficient(name, k)
            if value.is_Number:
                found.append(value)
                continue
            definitions[symbol] = value
            found.append(symbol)
        return found

    def polynomial(expr: sp.Expr) -> list[sp.Expr]:
        poly = sp.Poly(expr.xreplace(fixed), step_size)
        return [poly.coeff_monomial(step_size**k) for k in range(length)]

    strength = named(fe.r, polynomial(mapping.spike_strength))
    variance = named(fe.c, [sp.expand(x) for x in polynomial(mapping.bulk_variance)])
    known[fe.c] = variance[: last + 1]
    if fe.norm_overlap in symbolic.system.parameters:
        known[fe.norm_overlap] = named(fe.norm_overlap, polynomial(mapping.norm_overlap))[
            : last + 1
        ]

    def hermite(letter: str, function: sp.Expr) -> list[sp.Expr]:
        values = hermite_coefficients(function, 2 * length + 2, variable=z)
        found = []
        for n, value in enumerate(values):
            symbol = sp.Symbol(f"{letter}_{n}", real=True)
            if value != 0:
                definitions[symbol] = value
            found.append(symbol if value != 0 else sp.S.Zero)
        return found

    smooth = partial(_smoothed, strength, variance)
    h = hermite("h", symbolic.student.expr)
    g = hermite("g", symbolic.student.expr**2)
    mean, slope = smooth(h, 0), smooth(h, 1)
    explained = [
        a + b
        for a, b in zip(
            _product_of_series(mean, mean),
            _product_of_series(variance, _product_of_series(slope, slope)),
            strict=True,
        )
    ]
    square = [a - b for a, b in zip(smooth(g, 0), explained, strict=True)]
    tables = {fe.mu0: mean, fe.mu1: slope, fe.mu2_squared: square, fe.chi: smooth(h, 2)}
    for table, series in tables.items():
        if table not in symbolic.system.definitions:
            continue
        shift = mean_order if table == fe.mu0 else 0
        values = [sp.expand(series[k + shift]) for k in range(last + 1)]
        known[table] = named(table, values)
    return known, definitions


def _smoothed(
    strength: Sequence[sp.Expr], variance: Sequence[sp.Expr], numbers: Sequence[sp.Expr], first: int
) -> list[sp.Expr]:
    """Return the coefficients of E σ^(first)(r κ + sqrt(c) z) in s."""
    length = len(strength)
    shift = [c * fe.kappa for c in strength]
    wider = [c / 2 for c in variance]
    wider[0] -= sp.Rational(1, 2)
    found = [sp.S.Zero] * length
    across = _powers(wider)
    for j, x in enumerate(_powers(shift)):
        # The power j begins with s^j, the power i with s^i.
        for i, b in enumerate(across[: length - j]):
            weight = numbers[first + j + 2 * i] / (math.factorial(j) * math.factorial(i))
            if weight != 0:
                found = [
                    a + weight * t for a, t in zip(found, _product_of_series(x, b), strict=True)
                ]
    return found


def _product_of_series(left: Sequence[sp.Expr], right: Sequence[sp.Expr]) -> list[sp.Expr]:
    return [sp.Add(*(left[n] * right[k - n] for n in range(k + 1))) for k in range(len(left))]


def _powers(values: Sequence[sp.Expr]) -> list[list[sp.Expr]]:
    """Return the powers 0, 1, … of a series without constant term."""
    length = len(values)
    found = [[sp.S.One, *[sp.S.Zero] * (length - 1)]]
    for _ in range(length - 1):
        found.append(_product_of_series(found[-1], values))
    return found
