"""The coordinate leap against its definition, over all orderings of small supports."""

import itertools

import pytest
from hypothesis import given, settings

from giantstep.errors import AssumptionError
from giantstep.symbolic.leaps.leap_index import coordinate_leap, isotropic_leap
from giantstep.symbolic.targets.target import target

from .catalogue import CATALOGUE, OPEN_CATALOGUE
from .test_leap_index import X, polynomials


@pytest.mark.parametrize("row", [*CATALOGUE, *OPEN_CATALOGUE], ids=lambda row: row.name)
def test_catalogue(row):
    found = coordinate_leap(row.target)
    assert found == row.coordinate_leap == max(found.orders)


@pytest.mark.parametrize(
    ("text", "leap"),
    [
        # Abbe, Boix-Adserà, Misiakiewicz, arXiv 2302.11055: new coordinates with multiplicity.
        ("He(6, x1)", 6),
        ("x1*x2*x3*x4", 4),
        ("x1 + x1*x2 + x1*x2*x3", 1),
        ("x1 + x2*x3", 2),
        ("He(2, x1)*He(3, x2)", 5),
        ("He(2, x1) + He(2, x1)*He(3, x2)", 3),
        ("He(2, x1) + He(2, x2) + He(2, x3) + He(3, x1)*He(8, x3)", 2),
        ("x1 + x2 + x1*x2", 1),
    ],
)
def test_published_values(text, leap):
    assert coordinate_leap(text) == leap


def by_definition(support):
    """The smallest over all orderings of the largest degree in new coordinates."""
    best = None
    for order in itertools.permutations(support):
        seen, worst = set(), 0
        for alpha in order:
            worst = max(worst, sum(n for i, n in enumerate(alpha) if i not in seen))
            seen |= {i for i, n in enumerate(alpha) if n}
        best = worst if best is None else min(best, worst)
    return best


@settings(max_examples=25)
@given(polynomials(dimension=3, degree=5, most=5))
def test_greedy_is_optimal(expr):
    f = target(expr, X)
    support = [alpha for alpha in f.expansion.he_coefficients() if any(alpha)]
    assert coordinate_leap(f) == by_definition(support)


@settings(max_examples=15)
@given(polynomials())
def test_the_witnessing_order_pays_what_it_says(expr):
    f = target(expr, X)
    found = coordinate_leap(f)
    seen = set()
    for step in found.steps:
        assert f.expansion.moment(step.multi_index) == step.coefficient != 0
        new = {x for x, n in zip(X, step.multi_index, strict=True) if n} - seen
        assert set(step.new) == new
        assert step.order == sum(n for x, n in zip(X, step.multi_index, strict=True) if x in new)
        seen |= new
    assert seen == {
        x for alpha in f.expansion.moments() for x, n in zip(X, alpha, strict=True) if n
    }
    assert found <= isotropic_leap(f)


def test_the_support_of_a_function_may_be_infinite():
    # The first term with x2 is He_5(x1) x2: the factor of x2 has no lower coefficient.
    text = "x1 + x2*(sin(x1) - exp(-1/2)*(x1 - He(3, x1)/6))"
    found = coordinate_leap(text)
    assert found == 1 and found.steps[1].multi_index == (5, 1)
    assert coordinate_leap("relu(x1)*cos(x2)*He(3, x3)").orders == (3, 1, 2)
    assert coordinate_leap("cos(x2) + cos(x1)*cos(x2)*tanh(x3)").orders == (1, 2, 2)
    assert coordinate_leap("sign(x1*x2*x3*x4*x5*x6*x7*x8)").orders == (8,)


def test_presentations_and_errors():
    found = coordinate_leap("x1 + x2*x3")
    assert found.explanation == "x1 (new: x1; 1), then x2*x3 (new: x2, x3; 2)"
    assert r"\underbrace{x_{2} x_{3}}_{2}" in found.latex()
    with pytest.raises(AssumptionError, match="is constant"):
        coordinate_leap("x1 - x1")
