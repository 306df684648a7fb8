"""Factorisations draw the same points each time, and leave SymPy's generator as it was."""

import pytest
import sympy as sp
from sympy.core.random import rng

from giantstep.symbolic.expressions.factors import (
    factor_list,
    factored,
    factors_of_polynomial,
    partial_fractions,
    repeatable,
)

x, y, z = sp.symbols("x y z", real=True)
PRODUCT = (x**2 * y + z**3 + 1) * (x * y**2 - z + x**3 * z + 2) * (x + y * z**2 - 3)
EXPANDED = sp.expand(PRODUCT)


def test_the_same_points_are_drawn_each_time():
    drawn = repeatable(lambda _: rng.random())
    assert drawn(x) == drawn(x) != rng.random()


@pytest.mark.parametrize(
    ("ours", "theirs", "given"),
    [
        (factored, sp.factor, (EXPANDED,)),
        (factor_list, sp.factor_list, (EXPANDED,)),
        (factors_of_polynomial, sp.Poly.factor_list, (sp.Poly(EXPANDED, x, y, z),)),
        (partial_fractions, sp.apart, (1 / EXPANDED, x)),
    ],
)
def test_results_are_those_of_sympy_and_nothing_is_drawn_from_its_generator(ours, theirs, given):
    before = rng.getstate()
    found = ours(*given)
    assert rng.getstate() == before
    assert found == theirs(*given)
    # Of three variables: points are drawn.
    assert rng.getstate() != before
