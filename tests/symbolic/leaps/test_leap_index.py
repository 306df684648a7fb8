"""The leap index and the filtration, against the catalogue and against Hermite tensors."""

import copy
import importlib.util
import itertools
import math

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import AssumptionError, ExpressionError, ParameterError
from giantstep.symbolic.expressions.activations import CATALOGUE as ACTIVATIONS
from giantstep.symbolic.leaps.leap_index import information_exponent, leap_index
from giantstep.symbolic.leaps.leap_report import leap_filtration
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import target

from .catalogue import CATALOGUE, OPEN_CATALOGUE

X = sp.symbols("x1:4", real=True)

needs_flint = pytest.mark.skipif(
    importlib.util.find_spec("flint") is None, reason="ranks of numbers that are integrals"
)


@st.composite
def polynomials(draw, dimension=3, degree=4, most=5):
    """Sums of few products of Hermite polynomials with small rational coefficients."""
    alphas = [a for a in itertools.product(range(degree + 1), repeat=dimension) if sum(a) <= degree]
    chosen = draw(st.lists(st.sampled_from(alphas[1:]), min_size=1, max_size=most, unique=True))
    numbers = st.integers(-6, 6).filter(bool)
    return sp.Add(
        *(
            sp.Rational(draw(numbers), draw(st.integers(1, 3)))
            * sp.Mul(*(sp.hermite_prob(n, x) for n, x in zip(alpha, X, strict=False)))
            for alpha in chosen
        )
    )


@pytest.mark.parametrize("row", [*CATALOGUE, *OPEN_CATALOGUE], ids=lambda row: row.name)
def test_catalogue(row):
    found = leap_index(row.target)
    assert found == row.leap_index == sum(found.multi_index)
    f = target(row.target)
    moment = f.he_coefficients(found)[found.multi_index] * math.prod(
        map(math.factorial, found.multi_index)
    )
    assert found.coefficient == moment


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_one_direction_is_the_information_exponent(name):
    assert leap_index(ACTIVATIONS[name]) == information_exponent(name)


def test_it_is_an_int_that_knows_why():
    found = leap_index("x1*x2 + He(3, x1)")
    assert found == 2 and found + 1 == 3 and f"{found}" == "2" and isinstance(found, int)
    assert found.explanation == "E[f x1*x2] = 1; all coefficients of degree 1 vanish"
    assert r"\ell(f) = 2" in found.latex()
    for twin in (copy.copy(found), copy.deepcopy(found)):
        assert twin == found and twin.coefficient == 1 and twin.explanation == found.explanation
    with pytest.raises(AttributeError, match="coefficient"):
        found.coefficient = 3


@settings(max_examples=12)
@given(polynomials(), st.integers(-5, 5).filter(bool), st.integers(-5, 5))
def test_scaling_and_constants_change_nothing(f, scale, constant):
    found = leap_index(target(f, X))
    other = leap_index(target(scale * f + constant, X))
    assert (other, other.multi_index) == (found, found.multi_index)
    assert other.coefficient == scale * found.coefficient


@pytest.mark.parametrize(
    "text",
    [
        "x1 - x1", "sin(x1)**2 + cos(x1)**2", "relu(x1) - x1/2 - abs(x1)/2", "sqrt(4)-2+0*x1",
        "sign(x1)*sign(x2)*sign(x1*x2)", "softplus(x1) - softplus(-x1) - x1",
        "tanh(x1) - 2*sigmoid(2*x1)",  # whose coefficients are not seen to vanish one by one
    ],
)  # fmt: skip
@pytest.mark.parametrize("function", [leap_index, leap_filtration])
def test_a_constant_is_refused_by_name(function, text):
    with pytest.raises(AssumptionError, match="is constant: there is nothing to learn"):
        function(text)


@pytest.mark.parametrize("r", [2, 5, 8])
def test_parities_have_the_order_of_their_coordinates(r):
    found = leap_index("sign(" + "*".join(f"x{i}" for i in range(1, r + 1)) + ")")
    # E[z sign z] = sqrt(2/pi) in each coordinate.
    assert found == r and found.multi_index == (1,) * r
    assert found.coefficient == sp.sqrt(2 / sp.pi) ** r


def test_a_number_is_no_target():
    with pytest.raises(ExpressionError, match="no coordinates"):
        leap_index("5")


def ranges(f, k):
    """Rows of the mode-1 unfolding of C_k."""
    tensor = f.hermite_tensor(k)
    size = f.dimension
    flat = sp.flatten(tensor.tolist())
    rest = len(flat) // size
    return sp.Matrix(size, rest, flat).T.tolist()


@settings(max_examples=10)
@given(polynomials())
def test_filtration_is_that_of_the_unfoldings(expr):
    f = target(expr, X)
    found = leap_filtration(f)
    rows, expected = [], []
    for k in range(1, f.degree + 1):
        rows += ranges(f, k)
        span = Subspace.spanned_by(rows, 3)
        if not expected or span != expected[-1][1]:
            expected.append((k, span))
    expected = [pair for pair in expected if not pair[1].is_zero]
    assert [(level.order, level.subspace) for level in found.levels] == expected
    assert found.is_complete and found.levels[0].order == leap_index(f)


@settings(max_examples=10)
@given(polynomials(), st.tuples(*[st.integers(-2, 2)] * 3).filter(any))
def test_a_direction_is_seen_where_a_slot_of_a_tensor_sees_it(expr, direction):
    f = target(expr, X)
    found = leap_filtration(f)
    seen = next(
        (
            k
            for k in range(1, f.degree + 1)
            if any(sum(u * c for u, c in zip(direction, row, strict=True)) for row in ranges(f, k))
        ),
        None,
    )
    assert found.order_seen(direction) == seen
    contained = found.order_contained(direction)
    assert contained is None or (seen is not None and seen <= contained)


def test_filtration_of_functions_that_are_no_polynomials():
    found = leap_filtration("sign(x1) + abs(x1)*x2")
    # Odd in x1 plus even in x1 times x2: C_1 = sqrt(2/pi) (1, 1), C_2 = 0, C_3 not along it.
    assert [level.order for level in found.levels] == [1, 3]
    assert found.order_seen([1, -1]) == 3 and found.order_contained([1, 1]) == 1


@needs_flint
def test_filtration_with_numbers_without_closed_form():
    open_numbers = leap_filtration("tanh(x1) + x2")
    assert open_numbers.order_contained([1, 0]) == 3 and open_numbers.is_complete


def test_presentations_and_errors():
    found = leap_filtration("x1 + 2*x2 + He(2, x1)/2 + He(3, x3)")
    assert str(found) == "V_1 = ⟨(1, 2, 0)⟩ ⊂ V_2 = ⟨e1, e2⟩ ⊂ V_3 = R^3"
    assert r"\subset" in found.latex() and "V_1" in found._repr_html_()
    for direction, message in (
        ([0, 0, 0], "zero"),
        ([1, 0], "direction must be 3 numbers, one for each coordinate"),
        (3, "direction must be 3 numbers"),
        ("100", "must be a SymPy expression"),
        ([0.5, 0, 0], "float"),
    ):
        with pytest.raises(ParameterError, match=message):
            found.order_seen(direction)
