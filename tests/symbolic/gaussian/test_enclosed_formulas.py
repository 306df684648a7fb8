"""Formulas with balls for their symbols: digits, signs, isolated roots, and honest failures."""

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import CertificationError, ParameterError
from giantstep.symbolic.expressions.activations import z
from giantstep.symbolic.gaussian.expectation import GaussianExpectation

pytest.importorskip("flint")

from giantstep.symbolic.gaussian.enclosed_formulas import FormulaBalls

x, a, b = sp.symbols("x a b")


def test_digits_are_those_asked_for():
    formulas = FormulaBalls({a: sp.sqrt(2), b: GaussianExpectation(z * sp.tanh(z), z)})
    for digits in (5, 40, 200):
        found = formulas.enclosure(a * b, digits)
        assert found.digits >= digits
    # E z tanh z by 40-digit quadrature elsewhere.
    assert abs(found.midpoint / sp.sqrt(2) - sp.Rational("0.6057055096021588255835402")) < 1e-24


def test_an_expectation_inside_a_formula_is_known():
    inside = GaussianExpectation(z * sp.tanh(z), z)
    assert FormulaBalls({}).enclosure(inside - inside / 2, 20).digits >= 20


def test_a_rational_number_is_exact():
    assert FormulaBalls({a: sp.Rational(1, 2)}).enclosure(a + 1, 10).is_exact


def test_a_zero_is_enclosed_and_its_sign_is_not_known():
    formulas = FormulaBalls({a: sp.sqrt(2), b: sp.sqrt(3)})
    difference = a * b - sp.sqrt(6)
    assert formulas.enclosure(difference, 20).contains_zero
    assert formulas.sign(difference) is None
    assert formulas.sign(difference + sp.Rational(1, 10**50)) == 1


@settings(max_examples=12)
@given(st.lists(st.integers(-30, 30), min_size=1, max_size=5, unique=True))
def test_all_real_roots_are_found(roots):
    polynomial = sp.expand(sp.prod(x - sp.Rational(r, 7) for r in roots) * (x**2 + x + 1))
    found = FormulaBalls({}).real_roots(x, polynomial, 15)
    assert len(found) == len(roots)
    assert all(e.contains(sp.Rational(r, 7)) for e, r in zip(found, sorted(roots), strict=True))


def test_a_pair_of_nearly_real_roots_is_not_taken_for_real():
    polynomial = ((x - 1) ** 2 + sp.Rational(1, 10**30)) * (x - a)
    (root,) = FormulaBalls({a: sp.sqrt(5)}).real_roots(x, sp.expand(polynomial), 20)
    assert abs(root.midpoint - sp.sqrt(5)) < 1e-20


def test_a_multiple_root_at_zero_is_isolated():
    polynomial = sp.expand(x**3 * (x - a) * (x**2 + 1))
    found = FormulaBalls({a: sp.sqrt(2)}).real_roots(x, polynomial, 20)
    assert [e.is_exact for e in found] == [True, False] and found[1].contains(sp.sqrt(2))


def test_a_double_root_is_no_proof():
    with pytest.raises(CertificationError, match="two of them may meet"):
        FormulaBalls({a: sp.sqrt(2)}).real_roots(x, sp.expand((x - a) ** 2), 10)


def test_roots_in_a_range_must_be_one():
    formulas = FormulaBalls({a: sp.sqrt(2)})
    formulas.define_root(x, x**3 - a**2 * x, above=sp.S.One)
    assert formulas.enclosure(x, 30).contains(sp.sqrt(2))
    formulas.define_root(b, b**2 + a)
    with pytest.raises(CertificationError, match="0 roots where it should have one"):
        formulas.enclosure(b, 10)


def test_what_cannot_be_enclosed_is_refused():
    formulas = FormulaBalls({})
    with pytest.raises(CertificationError, match="besselj"):
        formulas.enclosure(sp.besselj(0, sp.sqrt(2)), 10)
    with pytest.raises(ParameterError, match="has no value"):
        formulas.enclosure(a + 1, 10)
    with pytest.raises(ParameterError, match="has to be a number"):
        FormulaBalls({a: b})
    with pytest.raises(ParameterError, match="digits has to be from 1"):
        formulas.enclosure(sp.pi, 0)
