"""What all nodes with bound symbols have in common."""

import pytest
import sympy as sp

from giantstep.symbolic.expressions.averages import DataAverage
from giantstep.symbolic.gaussian.expectation import (
    GaussianExpectation,
    JointExpectation,
    correlated_pair,
)
from giantstep.symbolic.losses.proximal import Proximal
from giantstep.symbolic.systems.random_matrix import MarchenkoPasturAverage

x, y, a, b = sp.symbols("x y a b", real=True)
BETA = sp.Symbol("beta", positive=True)
STEP = sp.Symbol("s", positive=True)
NODES = {
    "one variable": lambda f: GaussianExpectation(f, x),
    "two variables": lambda f: JointExpectation(f * sp.cos(y), correlated_pair(x, y, b)),
    "eigenvalue": lambda f: MarchenkoPasturAverage(f, x, BETA),
    "data": lambda f: DataAverage(f, x),
    "proximal": lambda f: Proximal(f + x**2, x, b, STEP),
}


@pytest.fixture(params=list(NODES.values()), ids=list(NODES))
def node(request):
    return request.param


def test_a_bound_symbol_is_not_the_free_one_of_that_name(node):
    made = node(sp.cosh(a * x))
    assert made.xreplace({x: b}) == made
    assert made.subs(x, b) == made
    assert x not in made.free_symbols and a in made.free_symbols


@pytest.mark.parametrize("replace", [lambda e: e.xreplace({a: x}), lambda e: e.subs(a, x)])
def test_what_is_put_in_is_not_captured(node, replace):
    made = node(sp.cosh(a * x))
    moved = replace(made)
    assert x in moved.free_symbols
    # With a number for the free x it is the node of that number, but for the name that is bound.
    back = dict(zip(moved.bound_symbols, made.bound_symbols, strict=True))
    assert moved.xreplace({x: sp.Integer(2)}).args[0].xreplace(back) == node(sp.cosh(2 * x)).args[0]


def test_a_function_that_has_only_a_name_is_replaced_by_its_meaning(node):
    f = sp.Function("f", real=True)
    made = node(f(x) ** 2)
    for found in (made.subs(f(x), a * x), made.xreplace({f(x): a * x})):
        assert found == node(a**2 * x**2)
