import math

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import MissingDependencyError, ParameterError
from giantstep.symbolic.exact.fields import exact_field
from giantstep.symbolic.hermite import heat_flow as module
from giantstep.symbolic.hermite.heat_flow import (
    function_of,
    gaussian_mean,
    gaussian_moment,
    heat_flow,
    symbol_of,
)

FIELDS = {
    "QQ": sp.QQ,
    "QQ<sqrt(2)>": exact_field([sp.sqrt(2)])[0],
    "QQ<2cos(2pi/7)>": exact_field([sp.cos(2 * sp.pi / 7)])[0],
    "QQ(pi)": exact_field([sp.pi])[0],
}
EXPONENTS = st.tuples(*[st.integers(0, 5)] * 3)
FRACTIONS = st.fractions(-4, 4, max_denominator=9)
TERMS = st.dictionaries(EXPONENTS, st.tuples(FRACTIONS, FRACTIONS), max_size=6)


def polynomial(field, terms):
    """Σ (a + b g) x^α with g the generator of the field."""
    domain = FIELDS[field]
    ring = sp.ring("x, y, z", domain)[0]
    generator = {"QQ": domain(3)}.get(field) or getattr(domain, "unit", None) or domain.gens[0]

    def rational(f):
        return domain.convert_from(sp.QQ(f.numerator, f.denominator), sp.QQ)

    return ring.from_dict(
        {alpha: rational(a) + rational(b) * generator for alpha, (a, b) in terms.items()}
    )


def by_laplacian(element, time):
    """exp(tΔ/2) as its series."""
    total = term = element
    for k in range(1, 20):
        laplacian = sum((term.diff(i).diff(i) for i in range(3)), element.ring.zero)
        term = laplacian.mul_ground(element.ring.domain.convert(sp.Rational(time) / (2 * k)))
        total = total + term
    return total


@pytest.mark.parametrize("field", FIELDS)
@given(terms=TERMS, time=st.sampled_from([1, -1, 3, sp.Rational(-2, 7)]))
@settings(max_examples=10, deadline=None)
def test_against_the_exponential_series(field, terms, time):
    element = polynomial(field, terms)
    assert heat_flow(element, time) == by_laplacian(element, time)


@pytest.mark.parametrize("field", FIELDS)
@given(terms=TERMS)
@settings(max_examples=8, deadline=None)
def test_there_and_back_is_the_identity(field, terms):
    element = polynomial(field, terms)
    assert function_of(symbol_of(element)) == element == symbol_of(function_of(element))
    assert heat_flow(heat_flow(element, 2), sp.Rational(1, 2)) == heat_flow(
        element, sp.Rational(5, 2)
    )


@given(TERMS)
@settings(max_examples=10, deadline=None)
def test_the_mean_is_the_constant_term_of_the_symbol(terms):
    for field in FIELDS:
        element = polynomial(field, terms)
        assert gaussian_mean(element) == symbol_of(element).get((0, 0, 0), FIELDS[field].zero)


def test_values():
    ring, x, y = sp.ring("x, y", sp.QQ)
    # E (x+ξ)^4 = ξ^4 + 6ξ² + 3.
    assert symbol_of(x**4) == x**4 + 6 * x**2 + 3
    assert symbol_of(x**2 * y**2 / 3) == (x**2 + 1) * (y**2 + 1) / 3
    assert heat_flow(x**2, 0) == x**2 and heat_flow(ring.zero) == 0
    assert gaussian_mean(ring.zero) == 0 == gaussian_mean(x * y)
    # A coefficient that cancels is left out.
    assert dict(symbol_of(x**2 - 1)) == {(2, 0): 1}


def test_the_argument_is_not_changed():
    _, x = sp.ring("x", sp.QQ)
    element = x**4 + x
    heat_flow(element, 0)[(7,)] = sp.QQ(1)
    symbol_of(element)
    assert element == x**4 + x


@pytest.mark.parametrize("n", range(0, 14, 2))
def test_even_moments(n):
    # (n-1)!! = n!/(2^(n/2) (n/2)!)
    expected = math.factorial(n) // (2 ** (n // 2) * math.factorial(n // 2))
    assert gaussian_moment(n) == gaussian_moment((n, 0)) == expected
    assert gaussian_moment(n + 1) == gaussian_moment((n, 3)) == 0


def test_moments_of_several_variables():
    assert gaussian_moment((2, 4, 6)) == 1 * 3 * 15
    assert gaussian_moment(()) == 1


@given(TERMS)
@settings(max_examples=8, deadline=None)
def test_python_flint_gives_the_same(terms):
    pytest.importorskip("flint")
    element = polynomial("QQ", terms)
    for time in (1, -1, sp.Rational(2, 3)):
        found = heat_flow(element, time, use_flint=True)
        assert found == heat_flow(element, time, use_flint=False)
        assert all(type(c) is type(sp.QQ(1, 2)) for c in found.values())


def test_python_flint_is_taken_for_many_terms(monkeypatch):
    pytest.importorskip("flint")
    monkeypatch.setattr(module, "_TERMS_FOR_FLINT", 2)
    _, x, y = sp.ring("x, y", sp.QQ)
    element = (x + y / 3) ** 5
    assert heat_flow(element) == heat_flow(element, use_flint=False)


def test_refusals(monkeypatch):
    _, x = sp.ring("x", sp.QQ)
    fields = (sp.ZZ, sp.RR, sp.EX, sp.GF(7))
    for wrong in (sp.Symbol("x"), 3, *(sp.ring("x", domain)[1] for domain in fields)):
        with pytest.raises(ParameterError, match="sparse polynomial ring over an exact field"):
            heat_flow(wrong)
        with pytest.raises(ParameterError, match="sparse polynomial ring over an exact field"):
            gaussian_mean(wrong)
    for time in (0.5, True, sp.sqrt(2), "1"):
        with pytest.raises(ParameterError, match="time must be an int or a Rational"):
            heat_flow(x, time)
    with pytest.raises(ParameterError, match=r"order exponents\[1\] must be >= 0, got -2"):
        gaussian_moment((2, -2))
    monkeypatch.setattr(module, "_flint", lambda: None)
    with pytest.raises(MissingDependencyError, match="pip install python-flint"):
        heat_flow(x, use_flint=True)


def test_python_flint_needs_rationals():
    pytest.importorskip("flint")
    _, x = sp.ring("x", FIELDS["QQ<sqrt(2)>"])
    with pytest.raises(ParameterError, match="needs a ring over QQ"):
        heat_flow(x, use_flint=True)
