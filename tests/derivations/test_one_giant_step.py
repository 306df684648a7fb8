"""One giant step: orders, constants and sizes against direct averages, digits and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.derivations.giant_steps import claims_one_step as evidence
from giantstep.derivations.giant_steps.one_step import (
    BIAS,
    WIDTH,
    giant_step,
    statements,
)
from giantstep.errors import (
    AssumptionError,
    GiantstepError,
    ParameterError,
)
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.expressions.standing import Standing
from giantstep.symbolic.targets.stein import DIMENSION as d
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import target

# Coefficients 1, 3/2, 2 of orders 1, 2, 3.
CUBIC = "z + 3*He(2, z)/4 + He(3, z)/3"

COORDINATES = sp.symbols("x1 x2", real=True)

# (target, student, leap index, order, rows of the learned subspace)
STEPS = [
    ("x1 + He(2, x2)", "relu", 1, 1, [[1, 0]]),
    ("x1 + He(2, x1) + x2 - He(2, x2)", "erf", 1, 1, [[1, 1]]),
    ("x1*x2", "relu", 2, 2, [[1, 0], [0, 1]]),
    ("x1*x2 + x3", "cos", 1, 2, [[1, 0, 0], [0, 1, 0]]),
    ("x1*x2*x3", CUBIC, 3, 3, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    ("He(3, x1) + x1*x2", "tanh", 2, 3, [[1, 0]]),
    ("x1*x2*x3 + He(4, x3)", "gelu", 3, 4, [[0, 0, 1]]),
    # C_2 of the sum over three directions at 120 degrees is a multiple of the identity.
    (
        "He(2, x1) + He(2, -x1/2 + sqrt(3)*x2/2) + He(2, -x1/2 - sqrt(3)*x2/2)",
        "relu", 2, 2, [[1, 0], [0, 1]],
    ),
    # The coefficient of x1 is exactly zero.
    ("(sqrt(2) + sqrt(3) - sqrt(5 + 2*sqrt(6)))*x1 + He(2, x1)", "relu", 2, 2, [[1]]),
    ("x1**2*x2", "relu", 1, 1, [[0, 1]]),
    ("(x1 + x2)**2 - 2", "relu", 2, 2, [[1, 1]]),
    # mu_4 of relu(z - 1) is phi(1) He_2(1) = 0.
    ("He(4, x1) + He(5, x2)", "relu(z - 1)", 4, 5, [[0, 1]]),
    # No polynomials; the tensors follow from parity and the table of coefficients.
    ("relu(x1) + 2*relu(x2)", "relu", 1, 1, [[1, 2]]),
    ("max(x1, x2)", "gelu", 1, 1, [[1, 1]]),
    ("tanh(x1)*(1 + x2) + cos(x1)", "cos", 1, 2, [[1, 0], [0, 1]]),
    ("gelu(x1) - x1/2", "relu", 2, 2, [[1]]),
    ("cos(x1)*cos(x2)", "relu", 2, 2, [[1, 0], [0, 1]]),
    ("erf(x1) - 2*x1/sqrt(3*pi)", "tanh", 3, 3, [[1]]),
    ("sign(x1)*sign(x2)*sign(x3)", "erf", 3, 3, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    # z² exp(-z²) has the information exponent 4.
    ("x1**2*exp(-x1**2) + He(6, x2)", "relu", 4, 4, [[1, 0]]),
]  # fmt: skip


def unwrapped(found):
    return " ".join(str(found).split())


@pytest.mark.parametrize(("text", "student", "leap", "order", "rows"), STEPS)
def test_orders_and_learned_subspaces(text, student, leap, order, rows):
    step = giant_step(text, student)
    assert (step.leap_index, step.order) == (leap, order)
    assert step.learned == Subspace.spanned_by(rows)
    assert step.samples == d**order
    assert step.detectable_from == d ** (order - 1)
    assert step.step_size() == WIDTH * d ** sp.Rational(order - 1, 2)
    assert step.unseen == tuple(k for k in step.unseen if leap <= k < order)
    assert bool(step.obstruction) == (order != leap)
    assert [step.directions(p) for p in (1, 2, 9)] == [min(p, len(rows)) for p in (1, 2, 9)]


@pytest.mark.parametrize(
    ("target", "student", "constants"),
    [
        # Table of Hermite coefficients: mu_1(relu) = 1/2; mu*_1 = 1, 2.
        ("x1 + 2*x2 + He(3, x2)", "relu", [sp.Rational(1, 2), 1]),
        # mu_2(relu) = 1/sqrt(2 pi); mu_2 of He_2 is 2, not 1.
        ("He(2, x1) - He(2, x2)/2", "relu", [sp.sqrt(2 / sp.pi), -1 / sp.sqrt(2 * sp.pi)]),
        # mu_3(erf) = -4/(3 sqrt(3 pi)), mu_3 of He_3 is 6, divided by 2!.
        ("He(3, x1)", "erf", [-4 / sp.sqrt(3 * sp.pi)]),
        # Slopes of simulated gradients, too: 2, -1; 3, -3/2; 3, -1.
        ("2*x1 - x2", CUBIC, [2, -1]),
        ("He(2, x1) - He(2, x2)/2", CUBIC, [3, sp.Rational(-3, 2)]),
        ("He(3, x1)/2 - He(3, x2)/6", CUBIC, [3, -1]),
    ],
)
def test_constants_of_ridges(target, student, constants):
    step = giant_step(target, student)
    assert all(
        sp.simplify(found - wanted) == 0
        for found, wanted in zip(step.ridge_constants, constants, strict=True)
    )
    power = step.order - 1
    rebuilt = [c * w**power for c, w in zip(constants, step.expansion.weights, strict=True)]
    assert sp.simplify(step.leading_vector - sp.Matrix(rebuilt)) == sp.zeros(len(constants), 1)


def test_mixed_tensors_have_no_ridge_constants():
    step = giant_step("x1*x2 + He(3, x1)", "relu")
    assert step.ridge_constants is None
    w1, w2 = step.expansion.weights
    assert step.leading_vector == sp.Matrix([w2, w1]) / sp.sqrt(2 * sp.pi)


# ------------------------------------------------------------------ students that see nothing


@pytest.mark.parametrize(
    ("target", "student"),
    [
        ("He(3, x1)", "relu"),
        ("x1*x2", "erf"),
        ("x1*x2*x3", "gelu"),
        ("x1*x2", "identity"),
        ("cos(x1)*cos(x2)", "erf"),
        ("sign(x1*x2*x3)", "relu"),
        ("cos(x1) - 1", "z + He(3, z)"),
    ],
)
def test_a_student_without_the_coefficient_learns_nothing(target, student):
    step = giant_step(target, student)
    assert step.order is None and step.learned.is_zero
    assert step.leading is None and step.leading_vector.is_zero_matrix
    assert (step.samples, step.step_size(), step.alignment, step.mean_alignment) == (
        None,
        None,
        0,
        0,
    )
    assert step.directions(5) == 0
    assert "learns nothing" in unwrapped(step) and "learns nothing" in repr(step)
    assert statements(step) == ()
    with pytest.raises(AssumptionError, match=r"learns nothing.*no step to evaluate"):
        step.values(100, 1000)


def test_what_is_not_seen_up_to_a_high_order_is_not_called_nothing_at_all():
    # cos sees even orders, of which this target has the 14th alone.
    step = giant_step("sin(x1) + He(14, x1)", "cos")
    assert step.order is None and step.basis == "undetermined beyond order 12"
    assert "undetermined beyond order 12" in unwrapped(step)
    assert "any number of samples" in unwrapped(giant_step("sin(x1)", "cos"))


def test_biases_take_the_obstruction_away():
    # E relu'''(z + b) = phi'(b) = -b phi(b); times 6/2!.
    step = giant_step("He(3, x1)", "relu", biases=True)
    phi = sp.exp(-(BIAS**2) / 2) / sp.sqrt(2 * sp.pi)
    assert step.order == 3
    assert sp.simplify(step.ridge_constants[0] + 3 * BIAS * phi) == 0
    # E relu'(z + b)² = Phi(b), E f² = 6.
    assert sp.simplify(step.noise - 6 * (1 + sp.erf(BIAS / sp.sqrt(2))) / 2) == 0
    assert giant_step("x1*x2", "tanh", biases=True).order == 2
    # They do not help polynomials of lower degree.
    assert giant_step("x1*x2*x3", "z**2 + z", biases=True).order is None
    assert giant_step("x1*x2*x3 + He(2, x1)", "z**3", biases=True).order == 2
    assert giant_step("x1*x2", "relu", biases=True).student.name == "relu(z + b)"


def test_a_bias_is_asked_for_and_only_with_biases():
    step = giant_step("x1*x2", "tanh", biases=True)
    with pytest.raises(ParameterError, match="bias is missing"):
        step.values(50, 1000)
    # Coefficient of order 2 by quadrature: E tanh(z + 1/2) (z² - 1).
    nodes, mass = np.polynomial.hermite_e.hermegauss(150)
    mu = mass @ (np.tanh(nodes + 0.5) * (nodes**2 - 1)) / mass.sum()
    # |C_2|_F² = 2, and E|C_2 w|² = 2/d.
    assert step.values(50, 1000, bias=0.5).spike == pytest.approx(mu**2 * 2 / 50, rel=1e-9)
    with pytest.raises(ParameterError, match="biases=True"):
        giant_step("x1*x2", "relu").values(50, 1000, bias=0.5)


# ------------------------------------------------------------------ invariants


@st.composite
def polynomial_targets(draw):
    # Random Hermite sums in two coordinates, degree at most 4.
    keys = st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda a: 1 <= sum(a) <= 4)
    terms = draw(st.dictionaries(keys, st.integers(-3, 3).filter(bool), min_size=1, max_size=3))
    return " + ".join(f"({c})*He({a}, x1)*He({b}, x2)" for (a, b), c in terms.items()), terms


@settings(max_examples=10, deadline=None)
@given(polynomial_targets(), st.sampled_from(["relu", "erf", CUBIC, "z**2 + z"]))
def test_the_order_is_the_first_that_both_have(made, student):
    text, terms = made
    step = giant_step(target(text, COORDINATES), student)
    degrees = {sum(alpha) for alpha in terms}
    nodes, mass = np.polynomial.hermite_e.hermegauss(120)
    values = sp.lambdify(sp.Symbol("z", real=True), activation(student).expr, ["scipy", {
        "relu": lambda u: np.maximum(u, 0)}])(nodes)  # fmt: skip
    # Quadrature at a kink is good to a percent; coefficients here are 0 or above 0.1.
    own = {
        k
        for k in degrees
        if abs(mass @ (values * np.polynomial.hermite_e.hermeval(nodes, [0] * k + [1])))
        > 0.03 * mass.sum()
    }
    assert step.leap_index == min(degrees)
    assert step.order == min(own, default=None)


@settings(max_examples=8, deadline=None)
@given(polynomial_targets(), st.integers(1, 4), st.integers(-5, 5).filter(bool))
def test_scaling_and_constants_change_sizes_only(made, shift, factor):
    text, _ = made
    step = giant_step(target(text, COORDINATES), CUBIC)
    other = giant_step(target(f"{factor}*({text}) + {shift}", COORDINATES), CUBIC)
    assert (other.leap_index, other.order) == (step.leap_index, step.order)
    assert other.learned == step.learned
    assert sp.expand(other.leading_vector - factor * step.leading_vector) == sp.zeros(2, 1)


@settings(max_examples=8, deadline=None)
@given(polynomial_targets(), st.sampled_from([(3, 4, 5), (5, 12, 13), (8, -15, 17)]))
def test_rotated_targets_give_rotated_steps(made, triple):
    text, _ = made
    a, b, c = (sp.Integer(k) for k in triple)
    x = COORDINATES
    rotation = sp.Matrix([[a, -b], [b, a]]) / c
    f = target(text, x)
    turned = dict(zip(x, rotation * sp.Matrix(x), strict=True))
    step = giant_step(f, CUBIC)
    other = giant_step(target(sp.expand(f.expr.subs(turned, simultaneous=True)), x), CUBIC)
    assert other.order == step.order
    # f(Rx) has the tensors C[R., ...]: their range is R^T times the other.
    assert other.learned == step.learned.image(rotation.T)
    assert sp.simplify(other.mean_signal - step.mean_signal) == 0
    assert sp.simplify(other.noise - step.noise) == 0


# ------------------------------------------------------------------ faces


def test_standings_separate_theorems_from_what_is_derived():
    rows = {row.subject: row for row in statements(giant_step("x1 + He(2, x2)", "relu"))}
    assert rows["samples"].standing is Standing.THEOREM
    assert rows["learned subspace"].standing is Standing.THEOREM
    assert "2305.18270" in rows["samples"].source
    for text in ("He(2, x1) + He(3, x2)", "abs(x1) - sqrt(2/pi) + He(2, x2)", "x1 + x1*x2"):
        rows = {row.subject: row for row in statements(giant_step(text, "relu"))}
        assert rows["samples"].standing is Standing.THEOREM
    assert rows["spike of a neuron"].standing is Standing.DERIVED_HERE
    assert rows["best alignment"].standing is Standing.DERIVED_HERE
    for text, student, biases in (
        ("x1*x2", "relu", False),
        ("He(2, x1) + x1*x2*x3", "relu", False),
        ("abs(x1) - sqrt(2/pi) + relu(x1)*erf(x2) - erf(x2)/sqrt(2*pi)", "relu", False),
        ("He(2, x1) + He(3, x1)", "erf", False),
        ("He(2, x1)", "relu", True),
    ):
        rows = {r.subject: r for r in statements(giant_step(text, student, biases=biases))}
        assert rows["samples"].standing is Standing.DERIVED_HERE
        assert rows["samples"].remark


# ------------------------------------------------------------------ simulation


def test_quick_simulations_are_of_three_orders():
    orders = {giant_step(case.target, case.student).order for case in evidence.QUICK}
    assert orders == {1, 2, 3}


def test_monomials_of_the_simulation_are_all_of_one_degree():
    step = giant_step("x1*x2*x3", CUBIC)
    found = evidence._monomials(step)
    assert sorted(found) == sorted(
        alpha for alpha in itertools.product(range(3), repeat=3) if sum(alpha) == 2
    )


V = sp.Symbol("v", nonnegative=True)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        *(({"f": text}, r"constant|no coordinates") for text in ("5", "x1 - x1", "He(0, x1)")),
        *(({"student": text}, "no weak derivative") for text in ("sign", "step")),
        ({"student": "sqrt(abs(z))"}, "derivative of student"),
        *(({"student": text}, "student") for text in ("exp(z**2)", "z + ", "relu(q)")),
        ({"noise_variance": 0.25}, "floating-point number.*1/4"),
        *(({"noise_variance": value}, ">= 0") for value in (-1, "-1/2")),
        ({"noise_variance": sp.Symbol("v")}, "declare its symbols nonnegative"),
        ({"noise_variance": sp.oo}, "finite"),
        *(({"noise_variance": value}, "exact number") for value in (None, True, [1])),
        *(({"biases": x}, "biases must be True or False") for x in (None, 1, ["yes"], "yes")),
    ],
)
def test_steps_that_are_none_are_refused(asked, message):
    asked = {"f": "x1*x2", **asked}
    with pytest.raises(GiantstepError, match=message):
        giant_step(asked.pop("f"), **asked)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dimension": 0}, "dimension"),
        ({"dimension": 1}, "dimension must be >= 2"),
        ({"dimension": 10.5}, "dimension"),
        ({"samples": 0}, "samples"),
        ({"width": 0}, "width"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"readout": math.inf}, "readout"),
        ({"prefactor": "p"}, "prefactor must be one of MEAN"),
    ],
)
def test_sizes_that_are_none_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        giant_step("x1*x2").values(**{"dimension": 10, "samples": 10, **arguments})
    with pytest.raises(ParameterError, match="noise_variance holds v"):
        giant_step("x1", noise_variance=V).values(10, 10)
