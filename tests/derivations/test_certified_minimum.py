"""Least values of functions of one variable as proven intervals."""

import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)

pytest.importorskip("flint")


@pytest.mark.parametrize(
    ("function", "between", "minimum", "place"),
    [
        ("z**4 - z", (-2, 2), -3 * sp.Rational(1, 4) ** sp.Rational(4, 3), sp.cbrt(2) / 2),
        (
            "log(cosh(z)) - z/3",
            (0, 5),
            -sp.log(sp.Rational(8, 9)) / 2 - sp.log(2) / 6,
            sp.log(2) / 2,
        ),
        # At an end, and far from the minima of a grid.
        ("tanh(z)", (-1, 2), -sp.tanh(1), -1),
        ("exp(-z**2)", (-1, 3), sp.exp(-9), 3),
        ("cos(z) + z/10", (-10, 10), None, -sp.asin(sp.Rational(1, 10)) - 3 * sp.pi),
    ],
)
def test_minima_in_closed_form(function, between, minimum, place):
    proof = gs.certified_minimum(function, between, digits=30)
    if minimum is None:
        minimum = gs.activation(function).expr.subs(sp.Symbol("z", real=True), place)
    for name, wanted in (("minimum", minimum), ("place", place)):
        value = proof[name]
        assert abs(value.midpoint - wanted).evalf(50) <= value.radius + sp.Float("1e-45", 50)
    assert proof["minimum"].digits >= 30 and proof["place"].digits >= 15
    assert "exactly one point" in proof.statement


def test_two_equal_minima_are_not_told_apart():
    proof = gs.certified_minimum("z**2*(z - 1)**2", (-1, 2))
    assert set(proof.values) == {"minimum"} and proof["minimum"].contains(0)
    assert "is not proven: it may be in" in proof.statement


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("z**2", (1, 0)), ParameterError, "between must be two finite numbers"),
        (("z**2", (0, float("inf"))), ParameterError, "between must be two finite numbers"),
        (("z**2", 3), ParameterError, "between must be two numbers"),
        (("z**2", ("a", 1)), ParameterError, "between must be a number"),
        (("x**2", (0, 1)), ExpressionError, "function"),
        (("1/z", (-1, 1)), AssumptionError, "singular at z = 0"),
        (("abs(z)", (-1, 1)), UnsupportedExpressionError, "has kinks at 0 in the interval"),
    ],
)
def test_what_cannot_be_minimised_is_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        gs.certified_minimum(*arguments)
