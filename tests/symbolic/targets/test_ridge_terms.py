"""Functions as sums of products of functions of one linear form."""

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import UnsupportedExpressionError
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.targets.ridge_terms import T, linear_form, ridge_terms

X = sp.symbols("x1:4", real=True)


def rebuilt(terms):
    """The function that the terms stand for."""
    total = sp.S.Zero
    for term in terms:
        value = term.coefficient * sp.Mul(*(x**n for x, n in zip(X, term.powers, strict=True)))
        for ridge in term.ridges:
            form = sum(u * x for u, x in zip(ridge.direction, X, strict=True))
            value *= ridge.expr.subs(T, form)
        total += value
    return total


EXPRESSIONS = [
    relu(X[0] - X[1]) ** 2, sp.sign(X[0] * X[1] * X[2]), relu(X[0] * X[1]),
    sp.Abs(2 * X[0] * X[2]) * X[1], sp.exp(X[0] + X[1] ** 2 / 8) * sp.erf(X[0]),
    sp.exp((X[0] + X[1]) ** 2 / 8), sp.exp(-(X[0] ** 2) / 2) / (1 + X[1] ** 2),
    sp.tanh((X[0] + X[1]) / 2) * sp.sin(X[0] - X[1] + 1) * X[0] * X[2] ** 2,
    (sp.erf(X[0]) + X[1]) ** 3 * (1 + X[2]),
    sp.erf(2 * X[0] + 2 * X[1]) * sp.erf(-X[0] - X[1]),
    sp.erf(sp.sqrt(2) * X[0] + X[1]) * sp.tanh(X[0] - sp.sqrt(2) * X[1]),
    sp.cos(X[0]) * X[0] ** 2 - 3 * sp.cos(X[1]),
]  # fmt: skip


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
@settings(max_examples=5, deadline=None)
@given(st.tuples(*[st.fractions(-2, 2, max_denominator=7)] * 3))
def test_the_terms_add_up_to_the_function(expr, point):
    rule = {x: sp.Rational(p.numerator, p.denominator) for x, p in zip(X, point, strict=True)}
    assert abs(sp.N((rebuilt(ridge_terms(expr, X)) - expr).subs(rule), 20)) < 1e-15


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_directions_are_orthonormal_within_a_term(expr):
    for term in ridge_terms(expr, X):
        for i, first in enumerate(term.ridges):
            for j, second in enumerate(term.ridges[: i + 1]):
                product = sum(a * b for a, b in zip(first.direction, second.direction, strict=True))
                assert sp.nsimplify(product) == int(i == j)


def test_powers_along_a_direction_belong_to_its_function():
    (term,) = ridge_terms(X[0] ** 2 * X[1] * sp.tanh(X[0]), X)
    assert term.powers == (0, 1, 0)
    assert term.ridges[0].expr == T**2 * sp.tanh(T)


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (sp.erf(X[0] * X[1]), "erf.x1.x2. depends on more than one linear form"),
        (sp.tanh(X[0] + X[1] ** 2), "depends on more than one linear form"),
        (sp.erf(X[0]) * sp.erf(X[0] + X[1]), "neither parallel nor orthogonal"),
        ((1 + sum(sp.cos(k * X[0]) for k in range(1, 9))) ** 9, "more than 5000 terms"),
    ],
)
def test_what_does_not_factorise_is_refused(expr, message):
    with pytest.raises(UnsupportedExpressionError, match=message):
        ridge_terms(expr, X)


def test_linear_forms():
    assert linear_form(2 * X[0] - X[2] + sp.pi, X) == ((2, 0, -1), sp.pi)
    assert linear_form(sp.sqrt(3), X) == ((0, 0, 0), sp.sqrt(3))
    assert linear_form(X[0] ** 2, X) is None
    assert linear_form(sp.exp(X[0]), X) is None
