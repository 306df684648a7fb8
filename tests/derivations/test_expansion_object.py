"""What an expansion says of itself, on a series that everybody knows: 1/(1 - x)."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
import sympy as sp

from giantstep.derivations.expansions.expansion import Expansion, _broken
from giantstep.derivations.formulas import latex
from giantstep.errors import ApproximationWarning
from giantstep.runtime.precision import local_context

ONE = local_context(30).one
SERIES = Expansion(
    name="small_ridge",
    parameter="ridge",
    point=0.0,
    exponents=tuple(map(Fraction, (0, 1, 2))),
    coefficients={"test_error": (ONE, ONE, ONE)},
    neglected={"test_error": (Fraction(3), ONE)},
    remainder_order=Fraction(3),
    digits=30,
    fixed={"alpha": math.inf},
    symbols={"test_error": "E"},
    region="for small x",
    rests_on="the geometric series",
    radius=ONE,
)
# In 1/alpha, which converges for alpha > 1.
FAR = replace(SERIES, name="large_alpha", parameter="alpha", point=math.inf)


@pytest.mark.parametrize(("series", "x"), [(SERIES, 0.5), (FAR, 2.0)])
def test_values_and_remainder(series, x):
    assert series(x) == 1.75
    assert series.estimate_of_remainder(x) == 0.25 == 2 - series(x)
    assert series.order == 2


@pytest.mark.parametrize(("series", "outside"), [(SERIES, 1.0), (FAR, 1.0), (FAR, 0.5)])
def test_outside_of_the_radius_nothing_is_known(series, outside):
    assert series.estimate_of_remainder(outside) == math.inf
    with pytest.warns(ApproximationWarning):
        series(outside)


def test_without_a_radius_the_next_term_is_the_estimate():
    series = replace(SERIES, radius=None)
    assert series.estimate_of_remainder(0.5) == 0.125
    assert series.estimate_of_remainder(2.0) == 8.0
    with pytest.warns(ApproximationWarning):
        series(3.0)


def test_trusted_where_the_next_term_is_a_percent():
    assert SERIES.trusted_up_to == pytest.approx(0.01 ** (1 / 3), rel=1e-14)
    assert FAR.trusted_up_to == pytest.approx(100 ** (1 / 3), rel=1e-14)
    # A series that ends is exact within its radius.
    assert replace(SERIES, neglected={"test_error": None}).trusted_up_to == 1.0


def test_floats_are_decimal_numbers():
    steep = replace(SERIES, exponents=tuple(map(Fraction, (0, 1, 200))))
    tenth = ONE / 10
    assert steep(tenth) == ONE + tenth + tenth**200
    huge = replace(steep, coefficients={"test_error": (-1 * ONE, 10 * ONE, 0 * ONE)})
    assert huge(0.1) == 0.0


def test_sums_in_equations_are_broken_between_terms():
    a, b = sp.symbols("a b")
    assert _broken(b - a**2) == latex(b - a**2)
    powers = sp.Add(*((-1) ** k * a**k / (k + 1) for k in range(60)))
    lines = _broken(powers).split(" \\\\\n&\\quad ")
    terms = powers.as_ordered_terms()
    assert len(lines) > 4 and max(map(len, lines)) <= 162
    assert "".join(lines).replace(" ", "").lstrip("+") == "".join(
        text if text.startswith("-") else f"+{text}"
        for text in (latex(term).replace(" ", "") for term in terms)
    ).lstrip("+")
    assert all(line[0] in "+-" for line in lines[1:])
    product = sp.Mul(*(b + a**k for k in range(2, 40)))
    assert len(latex(product)) > 162 and _broken(product) == latex(product)
