"""Staircases against the catalogue, worked examples, and their invariances."""

import importlib.util
import itertools
import json
import pickle

import pytest
import sympy as sp
from hypothesis import assume, given, settings, strategies as st

from giantstep.errors import AssumptionError, ExpressionError, ParameterError
from giantstep.symbolic.expressions.standing import Standing
from giantstep.symbolic.leaps.staircase import Staircase, staircase
from giantstep.symbolic.targets.conditional_spans import PolynomialSpans
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import Target, target

from .catalogue import CATALOGUE, OPEN_CATALOGUE, chain

EVERY_ROW = pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.name)
EVERY_OPEN_ROW = pytest.mark.parametrize("row", OPEN_CATALOGUE, ids=lambda row: row.name)


@EVERY_ROW
def test_catalogue_staircase(row):
    found = staircase(row.target)
    assert list(found.subspaces[1:]) == chain(row.staircase, row)
    assert found.saturates is not row.stops
    assert found.has_ended and found.decided and found.basis == "exact"
    assert found.saturates == (found.stuck_order is None)
    # Each step explains each direction that it adds.
    for step in found.steps:
        assert len(step.explanations) == step.after.dimension - step.before.dimension


@EVERY_ROW
def test_catalogue_second_order(row):
    found = staircase(row.target, 2)
    expected = chain(row.second_order, row)
    assert list(found.subspaces[1:]) == expected
    assert staircase(row.target, 2, variant="strict").final == found.final


@EVERY_ROW
@pytest.mark.parametrize(("student", "column"), [("relu", "relu"), ("tanh", "odd")])
def test_catalogue_students(row, student, column):
    found = staircase(row.target, student=student)
    assert list(found.subspaces[1:]) == chain(getattr(row, column), row)
    # Random biases remove the obstruction.
    assert staircase(row.target, student=student, biases=True).subspaces == (
        staircase(row.target).subspaces
    )


@EVERY_ROW
def test_the_order_at_which_it_is_stuck_leads_on(row):
    found = staircase(row.target)
    if found.saturates:
        return
    order = found.stuck_order
    # The isotropic leap is the largest order that is ever needed, and enough.
    assert order <= row.isotropic_leap
    assert staircase(row.target, row.isotropic_leap).saturates
    if row.isotropic_leap > 1:
        assert not staircase(row.target, row.isotropic_leap - 1).saturates


@EVERY_OPEN_ROW
def test_catalogue_of_functions_that_are_no_polynomials(row):
    found = staircase(row.target)
    expected = chain(row.staircase, row)
    assert list(found.subspaces[1:]) == expected
    assert found.saturates is not row.stops
    assert found.decided
    second = staircase(row.target, 2)
    assert list(second.subspaces[1:]) == chain(row.second_order, row)


def test_certified_example():
    found = staircase("tanh(x1)*(1 + x2) + softplus(x1)*x3")
    (row,) = found.subspaces[1].numeric()
    # μ_1(tanh) = 0.605706, E softplus = 0.806059
    assert row[0] == 1 and row[1] == 0 and abs(row[2] - 0.806059183347 / 0.605705509602) < 1e-9
    if importlib.util.find_spec("flint"):
        assert found.final.is_whole and found.saturates and found.decided
    else:
        # No balls, no certificate of rank 3: then nothing claims that the staircase ends here.
        assert not found.decided and found.final.dimension == 2
        assert repr(found).endswith("not seen to go on)") and "stops" not in str(found)
        assert "at least" in str(found) and r"\supseteq" in found.latex()


def test_explanations_name_terms_and_coordinates():
    found = staircase("x1 + x1*x2 + He(3, x1)*x3")
    assert found.steps[0].explanations == ("x1: moves along e1 by its mean gradient",)
    assert found.steps[1].explanations == (
        "x1*x2: moves along e2 with the coordinate s1 of U_1",
        "He(3, x1)*x3: moves along e3 with s1**3 of U_1",
    )
    second = staircase("x1*x2 + x3", 2)
    assert second.steps[0].orders == (1, 2)
    assert "at order 2" in second.steps[0].explanations[-1]


def test_standing():
    linear = staircase("x1 + x1*x2 + x1*x2*x3")
    assert [step.standing for step in linear.steps] == [
        Standing.THEOREM,
        Standing.THEOREM,
        Standing.CONJECTURE,
    ]
    assert "in expectation" in linear.steps[1].remark
    second = staircase("x1 + x1*x2 + He(3, x1)*x3", 2)
    assert {step.standing for step in second.steps} == {Standing.EXTRAPOLATION}
    assert "caveat" in str(second)
    # With nothing of lower order the first step is the theorem at leap index 2.
    assert staircase("x1*x2", 2).steps[0].standing is Standing.THEOREM
    assert "2305.18270" in str(linear)
    # The network of the theorems has no biases.
    biased = staircase("x1 + x1*x2 + x1*x2*x3", student="relu", biases=True)
    assert [step.standing for step in biased.steps] == [
        Standing.DERIVED_HERE,
        Standing.DERIVED_HERE,
        Standing.CONJECTURE,
    ]
    assert staircase("x1*x2", 2, student="relu", biases=True).steps[0].standing is (
        Standing.EXTRAPOLATION
    )
    masked = staircase("x1 + x1*x2 + x1*x2*x3", student="relu")
    assert masked.steps[1].standing is Standing.DERIVED_HERE


def test_a_student_of_which_the_first_coefficient_vanishes_starts_one_step_later():
    # He_3 has μ_1 = 0, but E σ'(τz) = 3(τ² - 1) as soon as the norms have changed.
    found = staircase("x1 + x2 + x1*x2*x3", student="He3")
    assert [step.after.dimension for step in found.steps][:2] == [0, 1]
    assert found.steps[0].standing is Standing.DERIVED_HERE
    # An even student sees nothing of it at any step.
    assert staircase("x1 + x2 + x1*x2*x3", student="abs").steps == ()


def test_strict_takes_more_steps():
    both = [staircase("x1 + x2 + x1*x2", 2, variant=v) for v in ("all-orders", "strict")]
    assert [len(found.steps) for found in both] == [1, 2]
    assert both[1].orders == ((1,), (2,))


def test_max_steps():
    found = staircase("x1 + x1*x2 + x1*x2*x3", max_steps=2)
    assert len(found.steps) == 2 and not found.has_ended and not found.saturates
    assert "max_steps" in str(found)
    assert staircase("x1 + x1*x2 + x1*x2*x3", max_steps=3).has_ended


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("x1", 0), {}, "order must be from 1"),
        (("x1", 65), {}, "order must be from 1"),
        (("x1", 1.0), {}, "order must be a whole number"),
        (("x1", True), {}, "order must be a whole number"),
        (("x1",), {"variant": "lazy"}, "variant must be"),
        (("x1",), {"variant": 3}, "variant must be"),
        (("x1",), {"max_steps": 0}, "max_steps must be at least 1"),
        (("x1",), {"biases": True}, "name its activation"),
        (("x1",), {"student": "relu", "biases": 1}, "biases must be"),
        (("x1",), {"readout": 1}, "readout must be a sequence"),
        (("x1",), {"readout": "1,-1"}, "readout must be a sequence"),
        (("x1",), {"readout": [0]}, "at least one is not zero"),
        (("x1",), {"readout": [0.5]}, "readout holds the float"),
        (("x1",), {"readout": [sp.Symbol("a")]}, "not a real number"),
        (("x1",), {"readout": [sp.I]}, "not a real number"),
        (("x1", 2), {"readout": [1, -1]}, "order 1 only"),
        (("x1",), {"readout": [1], "student": "relu", "biases": True}, "exclude each other"),
    ],
)
def test_refused_arguments(arguments, options, message):
    with pytest.raises(ParameterError, match=message):
        staircase(*arguments, **options)


def test_refused_targets():
    with pytest.raises(AssumptionError, match="constant"):
        staircase("x1 - x1 + 2")
    with pytest.raises(ExpressionError):
        staircase("2")
    with pytest.raises(AssumptionError, match="constant"):
        staircase("(sqrt(2) + sqrt(3) - sqrt(5 + 2*sqrt(6)))*x1")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("x1 + x1*x2 + He(3, x1)*x3", {"readout": [1, -1, sp.sqrt(2)]}),
        ("sqrt(2)*x1 + x1*(x2 + sqrt(3)*x3)", {"order": 2, "variant": "strict"}),
        ("x1 + He(2, x1)*x2", {"student": "tanh(2*z) + z/4"}),
        ("tanh(x1)*(1 + x2) + softplus(x1)*x3", {}),
        ("sign(x1) + abs(x1)*x2", {"student": "relu", "biases": True}),
        ("x1*x2*x3", {}),
        # SymPy leaves 3/3 in QQ<sqrt(3)>(pi) as it is.
        ("sqrt(3)*pi*x1", {}),
        # Until it is reduced, an entry of the basis is a quotient of long polynomials.
        ("-3*x1**2*x3 - 3*softplus(x2)*x1 - 3*x1 + sqrt(3)*relu(x1)*x2", {"student": "gelu"}),
        ("-3*softplus(x2)*x1 + x1/2 + 2*x1**2*x3", {"readout": [1, -1]}),
    ],
)
def test_json_round_trip(text, options):
    found = staircase(text, **options)
    again = Staircase.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found
    assert again.to_dict()["saturates"] == found.saturates
    if found.basis == "exact":
        # Elsewhere one number may be written in several ways.
        assert str(again) == str(found)
        assert again.to_dict() == found.to_dict()


@pytest.mark.parametrize("damage", [{}, {"steps": 3}, {"target": None}, {"variant": "lazy"}])
def test_damaged_json_is_refused(damage):
    content = staircase("x1 + x1*x2", readout=[1, -1]).to_dict()
    with pytest.raises(ExpressionError):
        Staircase.from_dict({**content, **damage} if damage else {})


@pytest.mark.parametrize(
    "text", ["sqrt(3)*pi*x1 + exp(1/2)*x1*x2", "x1 + sin(x1)*x2", "softplus(x1)*x2 + cos(pi/7)*x1"]
)
def test_pickles(text):
    found = staircase(text)
    again = pickle.loads(pickle.dumps(found))
    assert again == found and str(again) == str(found)


def test_long_targets_print_within_120_columns():
    x = sp.symbols("x1:5", real=True)
    line = sum((sp.Rational(k, 7 * k + 4) * v for k, v in enumerate(x, 1)), sp.S.Zero)
    f = target(sp.expand((1 + line) ** 5 * (x[0] + x[1] ** 2 / 3) + line**3 * x[2]), x)
    for found in (staircase(f, 2), staircase(f, readout=[1, -1])):
        assert max(map(len, str(found).splitlines())) <= 120 and len(repr(found)) < 400
        explanations = [text for step in found.steps for text in step.explanations]
        assert max(map(len, explanations)) < 300
    # Only the print is rounded.
    assert any(" more): moves along ≈(" in text for text in explanations)
    entries = [e for step in found.steps for d in step.directions for e in d.vector]
    assert all(e.is_Rational for e in entries)
    short = staircase("sqrt(2)*x1").steps[0].explanations
    assert short == ("sqrt(2)*x1: moves along e1 by its mean gradient",)


def test_printing():
    found = staircase("x1*x2 + x3")
    assert r"\subsetneq" in found.latex()
    page = staircase("x1 + x1*x2", readout=[1, -1])._repr_html_()
    assert "U₁" in page and "<table>" in page
    # What the user writes is text, not markup.
    odd = Target("<b>&", *(lambda f: (f.expr, f.variables))(target("x1 + x1*x2")))
    assert "<b>" not in staircase(odd)._repr_html_()


# Invariances.

R = 3
exponents = st.tuples(*[st.integers(0, 3)] * R).filter(lambda alpha: 1 <= sum(alpha) <= 4)
polynomials = st.dictionaries(
    exponents, st.integers(-3, 3).filter(bool), min_size=1, max_size=5
).map(lambda terms: _target(terms))
matrices = st.lists(st.integers(-2, 2), min_size=3, max_size=3).map(
    lambda v: (
        # Cayley: (1 - A)(1 + A)^(-1) of a skew-symmetric A is a rational rotation.
        (sp.eye(3) - _skew(v)) * (sp.eye(3) + _skew(v)).inv()
    )
)
pythagorean = st.sampled_from([(3, 4, 5), (5, 12, 13), (8, 15, 17)]).flatmap(
    lambda t: st.permutations(range(3)).map(lambda p: _plane_rotation(t, p))
)
orders = st.integers(1, 3)
variants = st.sampled_from(["all-orders", "strict"])


def _target(terms):
    """Return Σ c_α He_α."""
    x = sp.symbols(f"x1:{R + 1}", real=True)
    expr = sp.Add(
        *(
            c * sp.Mul(*(sp.hermite_prob(n, v) for n, v in zip(alpha, x, strict=True)))
            for alpha, c in terms.items()
        )
    )
    return target(sp.expand(expr), x)


def _skew(v):
    return sp.Matrix([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def _plane_rotation(triple, axes):
    a, b, c = triple
    i, j, _ = axes
    rotation = sp.eye(3)
    rotation[i, i] = rotation[j, j] = sp.Rational(a, c)
    rotation[i, j], rotation[j, i] = sp.Rational(-b, c), sp.Rational(b, c)
    return rotation


@settings(max_examples=10)
@given(polynomials, st.one_of(matrices, pythagorean), orders, variants)
def test_rotations_move_the_staircase(f, rotation, order, variant):
    rotated = f.expansion.rotate(rotation)
    g = target(rotated.polynomial(), f.variables)
    # f(Rx) depends on R^T u where f depends on u.
    images = [
        subspace.image(rotation.T) for subspace in staircase(f, order, variant=variant).subspaces
    ]
    assert list(staircase(g, order, variant=variant).subspaces) == images


@settings(max_examples=10)
@given(polynomials, st.fractions(-5, 5).filter(bool), st.integers(-5, 5), orders)
def test_scale_and_constants_do_not_matter(f, scale, constant, order):
    g = target(sp.Rational(scale) * f.expr + constant, f.variables)
    first, second = staircase(f, order), staircase(g, order)
    assert first.subspaces == second.subspaces
    assert (first.stuck_order, first.orders) == (second.stuck_order, second.orders)


@settings(max_examples=10)
@given(polynomials, orders)
def test_both_variants_end_at_the_same_subspace(f, order):
    every, strict = (staircase(f, order, variant=v) for v in ("all-orders", "strict"))
    assert every.final == strict.final and every.stuck_order == strict.stuck_order
    assert len(every.steps) <= len(strict.steps)
    for found in (every, strict):
        assert all(a < b for a, b in itertools.pairwise(found.subspaces))
        assert found.final <= found.relevant_subspace
        assert found.saturates == (found.stuck_order is None)
        if found.stuck_order is not None:
            assert found.stuck_order > order
    # Two steps of the strict variant are never ahead of two of the other.
    for a, b in zip(strict.subspaces, every.subspaces, strict=False):
        assert a <= b


@settings(max_examples=10)
@given(
    polynomials, st.lists(st.lists(st.integers(-2, 2), min_size=R, max_size=R), max_size=2), orders
)
def test_closure_is_monotone(f, rows, order):
    spans = PolynomialSpans(f.expansion.symbol_element)
    small = Subspace.spanned_by(rows[:1], R)
    large = Subspace.spanned_by(rows, R)
    grown = spans.grow(small, order).subspace
    assert grown <= spans.grow(large, order).subspace
    assert grown <= spans.grow(small, order + 1).subspace
    assert small <= grown


@settings(max_examples=10)
@given(polynomials, st.sampled_from(["relu", "tanh", "He3", "z**2 + z", "exp"]), orders)
def test_students_never_reach_more(f, student, order):
    free, bound = staircase(f, order), staircase(f, order, student=student)
    assert bound.final <= free.final
    if student == "exp":
        assert bound.subspaces == free.subspaces


@settings(max_examples=12)
@given(
    st.lists(
        st.lists(st.integers(-3, 3), min_size=4, max_size=4).filter(any), min_size=2, max_size=4
    )
)
def test_separable_targets_follow_the_closed_form(coefficients):
    # f = Σ_k σ_k(x_k): U_2 = span{(μ_{k,j+1} m_k^j)_k : j ≥ 0} with m_k = μ_{k,1}, derived by hand.
    x = sp.symbols(f"x1:{len(coefficients) + 1}", real=True)
    assume(any(row[0] for row in coefficients))
    f = target(
        sp.Add(
            *(
                c * sp.hermite_prob(j, v)
                for row, v in zip(coefficients, x, strict=True)
                for j, c in enumerate(row, 1)
            )
        ),
        x,
    )
    rows = [[sp.factorial(j + 1) * row[j] * row[0] ** j for row in coefficients] for j in range(4)]
    expected = Subspace.spanned_by(rows, len(x))
    found = staircase(f, max_steps=2)
    assert found.final == expected


def _population_run(f, readouts, steps):
    """Return the overlaps of neurons after each step of exact population gradient descent.

    With σ = exp the gradient is e^{|w|²/2}[∇F(Pw) + w F(Pw)]; the positive factor goes into the
    step size of each neuron, and the initial overlaps are 0 to leading order in d.
    """
    symbol = f.expansion.symbol_element
    gradients = [symbol.diff(i) for i in range(f.dimension)]
    w = [[sp.QQ(0)] * f.dimension for _ in readouts]
    runs = []
    for _ in range(steps):
        w = [
            [u + a * (g(*row) + u * symbol(*row)) for u, g in zip(row, gradients, strict=True)]
            for row, a in zip(w, readouts, strict=True)
        ]
        runs.append(Subspace.from_elements(w, sp.QQ, f.dimension))
    return runs


@settings(max_examples=10)
@given(polynomials)
def test_population_gradient_descent_learns_the_staircase(f):
    # Derived independently of spans: neurons with generic readouts reach rank dim U_t at step t.
    readouts = [sp.QQ(n, 7) for n in (1, -2, 3, -5, 11)]
    found = staircase(f)
    for t, reached in enumerate(_population_run(f, readouts, 3), 1):
        assert reached == found.subspaces[min(t, len(found.steps))]


def test_orders_that_lead_on_are_said_where_another_activation_has_a_lower_one():
    alike = str(staircase("x1 + x2*x3", student="relu"))
    assert "needs order 2, n = Θ(d^2)" in alike and "with all degrees" not in alike
    lower = " ".join(str(staircase("x1 + x2*x3*x4 + x2*x3*x4*x5", student="relu")).split())
    assert "needs order 4" in lower
    assert "with all degrees, order 3 would do: another activation or biases" in lower
