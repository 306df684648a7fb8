"""Exact subspaces against SymPy's own linear algebra, and the laws of linear algebra."""

import pickle
from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import ExpressionError, ParameterError, UndecidedError
from giantstep.symbolic.exact.fields import exact_field
from giantstep.symbolic.targets.subspaces import Subspace, reduced

entries = st.integers(-3, 3) | st.fractions(min_value=-2, max_value=2, max_denominator=5)
matrices = st.integers(1, 4).flatmap(
    lambda r: st.lists(st.lists(entries, min_size=r, max_size=r), min_size=1, max_size=5)
)
pairs = st.integers(1, 4).flatmap(
    lambda r: st.tuples(
        *[st.lists(st.lists(entries, min_size=r, max_size=r), min_size=1, max_size=4)] * 2
    )
)


def as_matrix(rows):
    return sp.Matrix([[sp.Rational(Fraction(x)) for x in row] for row in rows])


@given(matrices)
@settings(max_examples=25, deadline=None)
def test_basis_is_the_reduced_row_echelon_form(rows):
    expected, pivots = as_matrix(rows).rref()
    found = Subspace.spanned_by(rows)
    assert found.pivots == pivots
    assert [list(row) for row in found.basis] == expected[: len(pivots), :].tolist()


@given(matrices)
@settings(max_examples=25, deadline=None)
def test_complement_and_projector(rows):
    U = Subspace.spanned_by(rows)
    perp, P = U.orthogonal_complement(), U.projector()
    assert U.dimension + perp.dimension == U.ambient_dimension
    assert perp.orthogonal_complement() == U
    assert P * P == P and P.T == P and P.rank() == U.dimension
    assert all(P * sp.Matrix(row) == sp.Matrix(row) for row in U.basis)
    assert all((P * sp.Matrix(row)).is_zero_matrix for row in perp.basis)


@given(pairs)
@settings(max_examples=25, deadline=None)
def test_sum_and_intersection(two):
    U, V = (Subspace.spanned_by(rows) for rows in two)
    assert (U + V).dimension + U.intersection(V).dimension == U.dimension + V.dimension
    assert U <= U + V and U.intersection(V) <= V
    assert (U <= V) == (U + V == V) == (V >= U)
    assert (U == V) == (U <= V <= U)


def test_equal_numbers_in_different_forms_give_one_subspace():
    nested, denested = sp.sqrt(5 + 2 * sp.sqrt(6)), sp.sqrt(2) + sp.sqrt(3)
    assert Subspace.spanned_by([[1, nested]]) == Subspace.spanned_by([[2, 2 * denested]])
    assert Subspace.spanned_by([[1, nested]]) != Subspace.spanned_by([[1, sp.sqrt(10)]])
    # cos(π/7) - cos(2π/7) + cos(3π/7) = 1/2, which sp.simplify does not see.
    heptagon = sp.cos(sp.pi / 7) - sp.cos(2 * sp.pi / 7) + sp.cos(3 * sp.pi / 7)
    assert Subspace.spanned_by([[heptagon, 1], [1, 2]]).dimension == 1


def test_transcendental_entries():
    e, root = sp.exp(-sp.S.Half), sp.sqrt(2 / sp.pi)
    assert Subspace.spanned_by([[1, 0, e]]).basis == ((1, 0, e),)
    assert Subspace.spanned_by([[root, root], [1, 1]]).dimension == 1
    # π together with e: the rank is certified by the digits of a minor.
    assert Subspace.spanned_by([[root, e], [1, 1]]).dimension == 2


def test_a_pivot_that_no_digits_tell_from_zero_is_refused(monkeypatch):
    def undecided(value, what):
        raise UndecidedError(f"{what} is undecided")

    monkeypatch.setattr("giantstep.symbolic.targets.subspaces.is_exactly_zero", undecided)
    with pytest.raises(UndecidedError):
        Subspace.spanned_by([[sp.pi, sp.E], [1, 1]])


FIELD, (T, ROOT) = exact_field([sp.sqrt(2 / sp.pi), sp.sqrt(3)])


@st.composite
def fractions_in_t(draw):
    """Fractions over QQ<√2, √3>(t) as computations leave them."""
    parts = [draw(st.integers(-3, 3)) + draw(st.integers(-2, 2)) * ROOT for _ in range(4)]
    numerator, denominator = parts[0] + parts[1] * T, parts[2] + parts[3] * T
    return numerator / (denominator or FIELD.one)


@settings(max_examples=10)
@given(fractions_in_t(), fractions_in_t().filter(bool))
def test_reduced_fractions_are_equal_if_and_only_if_their_difference_is_zero(a, b):
    for other in (a, a * b / b, b * a / (b + 0), (a + b) - b, a + 1, a * b):
        assert not reduced(other) - other
        assert (reduced(other) == reduced(a)) == (not other - a)
        assert reduced(reduced(other)) == reduced(other)


def test_fractions_that_are_not_reduced_by_sympy():
    element = (ROOT * T + ROOT) / (ROOT * T)
    twin = (T + 1) / T
    assert element != twin and reduced(element) == reduced(twin)
    for number in (sp.QQ(2, 3), exact_field([sp.sqrt(2)])[1][0], exact_field([sp.pi])[1][0]):
        assert reduced(number) is number


@settings(max_examples=12)
@given(st.lists(fractions_in_t(), min_size=4, max_size=4), fractions_in_t().filter(bool))
def test_subspaces_do_not_depend_on_how_their_fractions_are_written(entries, factor):
    rows = [entries[:2], entries[2:]]
    U = Subspace.from_elements(rows, FIELD, 2)
    V = Subspace.from_elements([[factor * a for a in row] for row in rows], FIELD, 2)
    assert U == V and hash(U) == hash(V) and U <= V <= U and str(U) == str(V)
    assert U.orthogonal_complement().orthogonal_complement() == U
    assert Subspace.from_dict(U.to_dict()) == U


def test_membership_and_image():
    U = Subspace.spanned_by([[1, 2, 3]])
    assert [2, 4, 6] in U and [2, 4, 5] not in U and (0, 0, 0) in U
    swap = sp.Matrix([[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    assert U.image(swap) == Subspace.spanned_by([[2, 1, 3]])
    assert U.image(sp.zeros(2, 3)) == Subspace.zero(2)


@pytest.mark.parametrize(
    "entry",
    [Fraction(2, 3), sp.sqrt(3), sp.pi, sp.sqrt(3) * sp.pi, sp.exp(sp.sqrt(2)), sp.sqrt(2 / sp.pi)],
)
def test_pickles(entry):
    U = Subspace.spanned_by([[1, entry, 0], [0, entry, 2]])
    assert pickle.loads(pickle.dumps(U)) == U


def test_texts():
    assert str(Subspace.spanned_by([[0, 2, 2], [3, 0, 0]])) == "⟨e1, (0, 1, 1)⟩"
    assert str(Subspace.zero(3)) == "{0}" and str(Subspace.whole(2)) == "R^2"
    assert Subspace.zero(3).latex() == r"\{0\}"


@pytest.mark.parametrize(
    "U",
    [
        Subspace.zero(2),
        Subspace.whole(3),
        Subspace.spanned_by([[1, sp.sqrt(2), sp.exp(-sp.S.Half)], [0, 1, Fraction(2, 3)]]),
    ],
)
def test_round_trip(U):
    assert Subspace.from_dict(U.to_dict()) == U


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Subspace.spanned_by([[1, 0], [0]]), "row 2 has 1"),
        (lambda: Subspace.spanned_by([]), "give at least one row"),
        (lambda: Subspace.spanned_by([[0.5, 1]]), r"vectors\[0\]\[0\] holds the float 0.5"),
        (lambda: Subspace.spanned_by([["1", 0]]), r"vectors\[0\]\[0\] must be .* got .1."),
        (lambda: Subspace.spanned_by("10"), "got the text"),
        (lambda: Subspace.spanned_by([1, 2]), "must be rows"),  # type: ignore[list-item]
        (lambda: Subspace.zero(0), "dimension must be"),
        (lambda: Subspace.zero(2) + Subspace.zero(3), "one space"),
        (
            lambda: Subspace.spanned_by([[1, 2], [2, 4]], argument="onto", independent=True),
            r"onto must be linearly independent, but row 2, \(2, 4\), is a combination",
        ),
        (lambda: Subspace.spanned_by([[0, 0]], independent=True), "is zero"),
        (lambda: Subspace.whole(10**30), "dimension must be at most 1000"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_a_damaged_file_is_refused():
    with pytest.raises(ExpressionError, match="not that of a subspace"):
        Subspace.from_dict({"basis": [["1"]]})
    with pytest.raises(ExpressionError):
        Subspace.from_dict({"ambient_dimension": 1, "basis": [["__import__('os')"]]})
