r"""The equations of every order, as formulas.

In the scaled equations F(X, ε) = 0 each unknown becomes
:math:`X_0 + X_1\varepsilon + X_2\varepsilon^2 + \dots`. Order 0 is the leading, nonlinear system;
order k ≥ 1 is linear in the coefficients X_k, with the matrix ∂F/∂X at X_0 for all k. Averages over
κ are expanded under the average and stay unevaluated.

The Marchenko–Pastur resolvent is not written: it is the response V_2, so that the quadratic
equation that defines it, with the companion :math:`h = V_1/(cV_2)`, gives

.. math::
    (\lambda + \hat V_2)V_2 + \hat V_1V_1 = 1, \qquad
    V_1(1 + \beta c\hat V_1V_2) = cV_2 ,

and its derivatives, from which the self-overlaps follow, are rational in V_1 and V_2. Derived here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import sympy as sp

from ....symbolic.asymptotic_series import Series, substitute
from ....symbolic.equations import Equation
from ....symbolic.gaussian import GaussianExpectation
from ....symbolic.random_matrix import Resolvent
from .. import physics as fe
from .scaling import ScaledSystem, small

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
    kept = sp.Add(*(y * sp.factor(numerator.coeff(y, 1)) for y in left))
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
    system : ScaledSystem
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
