"""Bounds on polynomials against the polynomials multiplied out."""

import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from giantstep.symbolic.hermite_expansion import HermiteExpansion
from giantstep.symbolic.targets import polynomial_size

X = sp.symbols("x1:4", real=True)

LEAVES = st.sampled_from([*X, sp.Integer(2), sp.sqrt(3), -X[0], X[1] ** 3])
POLYNOMIALS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, st.integers(1, 3)).map(lambda pair: pair[0] ** pair[1]),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(POLYNOMIALS)
def test_bounds_hold(expr):
    size = polynomial_size(expr, X)
    if size.degree > 20:
        return
    terms = sp.Poly(expr, *X, extension=True).terms() if expr != 0 else []
    assert max((sum(alpha) for alpha, _ in terms), default=0) <= size.degree
    assert len(terms) <= size.monomials
    assert len(HermiteExpansion.from_polynomial(expr, X).he_coefficients()) <= size.hermite_terms


def test_bounds_are_not_wasteful():
    many = sp.symbols("x1:65", real=True)
    size = polynomial_size(sum(x**4 for x in many), many)
    assert (size.degree, size.monomials, size.hermite_terms) == (4, 64, 192)
    size = polynomial_size(sum(X) ** 12, X)
    assert (size.degree, size.monomials, size.hermite_terms) == (12, 91, 455)
