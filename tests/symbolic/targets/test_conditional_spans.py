"""Spans by substitution against tensors in full, built without any basis of U."""

import itertools

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import ParameterError
from giantstep.symbolic.targets.conditional_spans import PolynomialSpans
from giantstep.symbolic.targets.subspaces import Subspace

R = 3
ring, *_ = sp.ring("x1:4", sp.QQ)
exponents = st.tuples(*[st.integers(0, 3)] * R).filter(lambda alpha: sum(alpha) <= 4)
symbols = st.dictionaries(exponents, st.integers(-3, 3).filter(bool), min_size=1, max_size=5).map(
    lambda terms: ring.from_dict({alpha: sp.QQ(c) for alpha, c in terms.items()})
)
vectors = st.lists(st.integers(-2, 2), min_size=R, max_size=R)
subspaces = st.lists(vectors, max_size=2).map(lambda rows: Subspace.spanned_by(rows, R))


def tensors_on(symbol, U, order):
    """D^jF(ξ)[v_2, …, v_j, ·] for all axes v, as coefficients of the monomials of s; no pivots."""
    s = sp.symbols(f"s:{max(U.dimension, 1)}")
    xi = [sp.Add(*(a * row[i] for a, row in zip(s, U.basis, strict=False))) for i in range(R)]
    x = ring.symbols
    F = symbol.as_expr()
    rows = []
    for axes in itertools.combinations_with_replacement(range(R), order - 1):
        derivative = F
        for axis in axes:
            derivative = sp.diff(derivative, x[axis])
        vector = [
            sp.Poly(
                sp.diff(derivative, x[i]).subs(dict(zip(x, xi, strict=True)), simultaneous=True), *s
            )
            for i in range(R)
        ]
        for monomial in {m for entry in vector for m in entry.monoms()}:
            rows.append([entry.coeff_monomial(monomial) for entry in vector])
    return rows


@given(symbols, subspaces, st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_all_orders_span_what_the_tensors_do(symbol, U, highest):
    rows = [row for order in range(1, highest + 1) for row in tensors_on(symbol, U, order)]
    expected = U + Subspace.spanned_by(rows, R)
    assert PolynomialSpans(symbol).grow(U, highest).subspace == expected


@given(symbols, subspaces)
@settings(max_examples=25, deadline=None)
def test_the_conditional_order_is_the_lowest_degree_outside(symbol, U):
    spans = PolynomialSpans(symbol)
    expected = next(
        (j for j in range(1, 5) if not Subspace.spanned_by(tensors_on(symbol, U, j), R) <= U), None
    )
    assert spans.conditional_order(U) == expected
    assert (expected is None) == (spans.relevant_subspace <= U)


@given(symbols, subspaces, st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_rows_are_vectors_of_their_sources(symbol, U, highest):
    found = PolynomialSpans(symbol).grow(U, highest)
    assert U + Subspace.spanned_by([row.vector for row in found.rows], R) == found.subspace
    assert len(found.rows) == found.subspace.dimension - U.dimension
    for row in found.rows:
        assert row.sources and sum(row.outside) == row.order - 1
        assert all(symbol.coeff(dict_monomial(alpha)) for alpha in row.sources)
        # The terms named bring forth the vector alone.
        part = ring.from_dict({alpha: symbol[alpha] for alpha in row.sources})
        alone = PolynomialSpans(part).grow(U, row.order).subspace
        assert row.vector in alone


def dict_monomial(alpha):
    return ring.from_dict({alpha: sp.QQ(1)})


def test_strict_takes_the_lowest_order_only():
    _, x1, x2, x3 = sp.ring("x1:4", sp.QQ)
    spans = PolynomialSpans(x1 + x2 * x3)
    zero = Subspace.zero(3)
    assert spans.grow(zero, 2, strict=True).subspace == Subspace.spanned_by([[1, 0, 0]])
    assert spans.grow(zero, 2).subspace.is_whole
    assert spans.grow(zero, 2, strict=True).lowest_order == 1


def test_a_pair_of_coefficients_in_an_algebraic_field():
    field = sp.QQ.algebraic_field(sp.sqrt(2))
    root = field.from_sympy(sp.sqrt(2))
    _, x1, x2 = sp.ring("x1:3", field)
    spans = PolynomialSpans(x1 + root * x2 + root * x1 * x2)
    first = spans.grow(Subspace.zero(2), 1).subspace
    assert first.basis == ((1, sp.sqrt(2)),)
    assert spans.grow(first, 1).subspace.is_whole


def test_a_constant_has_no_relevant_direction():
    spans = PolynomialSpans(ring.one)
    assert spans.relevant_subspace == Subspace.zero(R)
    assert spans.conditional_order(Subspace.zero(R)) is None
    assert spans.grow(Subspace.zero(R), 2).subspace.is_zero


@pytest.mark.parametrize("order", [0, -1, 1.5, True, "1"])
def test_bad_orders(order):
    with pytest.raises(ParameterError, match="order must be"):
        PolynomialSpans(ring.one).grow(Subspace.zero(R), order)


def test_a_subspace_of_another_space_is_refused():
    with pytest.raises(ParameterError, match=r"must be of R\^3"):
        PolynomialSpans(ring.one).grow(Subspace.zero(2), 1)
