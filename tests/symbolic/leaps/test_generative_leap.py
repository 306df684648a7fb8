"""The generative leap: catalogue, published values, witnesses by direct expectation."""

import json
import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import erf

from giantstep.errors import AssumptionError
from giantstep.symbolic.hermite.coefficients import hermite_coefficient
from giantstep.symbolic.leaps.generative_leap import (
    LabelMoments,
    generative_leap,
    has_two_values,
    is_blind_to_order_two,
    label_power,
    one_sided_infinity,
)
from giantstep.symbolic.leaps.leap_index import isotropic_leap
from giantstep.symbolic.targets.spans import spans_of
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import target

from .catalogue import CATALOGUE, OPEN_CATALOGUE
from .test_isotropic_leap import rotated, rotations
from .test_leap_index import X, polynomials
from .test_symmetries import NUMERIC

x1 = X[0]


@pytest.mark.parametrize("row", [*CATALOGUE, *OPEN_CATALOGUE], ids=lambda row: row.name)
def test_catalogue(row):
    found = generative_leap(row.target)
    assert found.is_exact and found.value == row.generative_leap
    assert found.value <= row.isotropic_leap
    assert max(found.orders) == found.upper
    assert found.steps[-1].subspace == spans_of(target(row.target)).relevant_subspace


@pytest.mark.parametrize(
    ("text", "leap"),
    [
        # Damian, Pillaud-Vivien, Lee, Bruna, arXiv 2403.05529: polynomials 1 or 2, z²exp(-z²) 4.
        ("He(5, x1)", 1),
        ("He(4, x1)", 2),
        ("He(4, x1) + x1**3", 1),
        ("x1**2*exp(-x1**2)", 4),
        ("x1**4*exp(-2*x1**2)", 4),
        ("(x1 + x2)**2*exp(-(x1 + x2)**2/2)", 4),
        ("abs(x1)", 2),
        ("cos(3*x1)", 2),
        ("sign(x1)", 1),
        ("tanh(x1)", 1),
        ("sin(x1) - exp(-1/2)*x1", 1),
        ("erf(x1 + x2) - 2*(x1 + x2)/sqrt(5*pi)", 1),
        # Several directions, Damian, Lee, Bruna, arXiv 2506.05500.
        ("x1*x2", 2),
        ("sign(x1*x2)", 2),
        ("3 - sign(x1)*sign(x2)*sign(x3)/2", 3),
        ("step(x1)*step(x2)", 2),
        ("He(3, x1)*He(3, x2)", 2),
        ("He(3, x1) + He(2, x2)", 2),
        ("x1 + erf(x2) - 2*x2/sqrt(3*pi)", 1),
        # Even along (1, 1, 1), which no permutation of coordinates shows.
        ("cos(x1 + x2 + x3)*sin(x1 - x2) + x1 - x2", 2),
    ],
)
def test_published_and_derived_values(text, leap):
    found = generative_leap(text)
    assert found.standing == "exact" and int(found) == leap


def test_witnesses_of_hermite_polynomials():
    # E[He_1 He_3³] = 324, E[He_2 He_k²] = 2k·k! by the triple products of Hermite polynomials.
    (step,) = generative_leap("He(3, x1)").steps
    assert (step.order, step.transform, step.coefficients) == (1, "y^3", ((324,),))
    for k in (2, 4, 6):
        moments = LabelMoments(target(f"He({k}, x1)").expansion.symbol_element, Subspace.whole(1))
        (signal,) = moments.signals(Subspace.zero(1), 2, 2)
        assert signal.vectors == ((2 * k * math.factorial(k),),)


def product_rule(dimension, nodes):
    """Points and weights that are exact for Gaussian means of polynomials of degree < 2 nodes."""
    z, weights = hermegauss(nodes)
    grids = np.meshgrid(*[z] * dimension, indexing="ij")
    masses = np.meshgrid(*[weights / weights.sum()] * dimension, indexing="ij")
    return np.array([g.ravel() for g in grids]), math.prod(m.ravel() for m in masses)


@settings(max_examples=10)
@given(
    polynomials(degree=3, most=4),
    st.sampled_from([[], [[1, 2, 3]], [[0, 1, 0]], [[1, 1, 0], [0, 1, -1]]]),
    st.sampled_from([1, sp.sqrt(2), sp.sqrt(2 / sp.pi)]),
)
def test_moments_of_labels_are_those_of_the_definition(expr, rows, factor):
    f = target(factor * expr, X)
    known = Subspace.spanned_by(rows, 3)
    moments = LabelMoments(f.expansion.symbol_element, Subspace.whole(3))
    outside = np.eye(3) - np.array(known.projector(), dtype=float)
    points, mass = product_rule(3, 8)  # degrees up to 3·4 + 2
    q = outside @ points
    function = sp.lambdify(X, f.expr, "numpy")
    for power in (1, 2, 3, 4):
        for signal in moments.signals(known, power, 1):
            u = np.array(signal.point, dtype=float)[:, None]
            label = mass * function(*(u + q)) ** power
            scale = np.abs(label).sum()
            np.testing.assert_allclose(
                np.array(signal.vectors[0], dtype=float), q @ label, rtol=0, atol=1e-11 * scale
            )
        for signal in moments.signals(known, power, 2):
            u = np.array(signal.point, dtype=float)[:, None]
            label = mass * function(*(u + q)) ** power
            scale = np.abs(label).sum()
            tensor = (q * label) @ q.T - label.sum() * outside
            # The rows that are given span the range of the tensor.
            found = np.array(signal.vectors, dtype=float)
            span = np.linalg.svd(found)[2][: np.linalg.matrix_rank(found, tol=1e-9 * scale)]
            np.testing.assert_allclose(tensor @ span.T @ span, tensor, rtol=0, atol=1e-9 * scale)
            assert np.linalg.matrix_rank(tensor, tol=1e-9 * scale) == len(span)


@settings(max_examples=12)
@given(polynomials())
def test_bounds_are_bounds(expr):
    f = target(expr, X)
    found = generative_leap(f)
    assert 1 <= found.lower <= found.upper <= isotropic_leap(f)
    assert found.lower <= 2
    assert found.steps[-1].subspace == spans_of(f).relevant_subspace


@settings(max_examples=10)
@given(polynomials(), rotations(), st.integers(-3, 3).filter(bool), st.integers(-3, 3))
def test_rotations_scaling_and_constants(expr, rotation, scale, constant):
    f = target(expr, X)
    found = generative_leap(f)
    other = generative_leap(rotated(target(scale * expr + constant, X), rotation))
    # Bounds may differ in other frames, but both hold the value.
    assert max(found.lower, other.lower) <= min(found.upper, other.upper)


@settings(max_examples=12)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=6).filter(any))
def test_univariate_polynomials_are_decided(numbers):
    # Derived in the module: 1 unless the polynomial is even.
    f = sum(c * x1 ** (k + 1) for k, c in enumerate(numbers))
    even = not any(numbers[::2])
    assert generative_leap(target(f, [x1])).value == (2 if even else 1)
    # The same along a direction that is no axis.
    skew = f.xreplace({x1: (X[0] + 2 * X[1]) / 3})
    assert generative_leap(target(skew, X)).value == (2 if even else 1)


def test_a_polynomial_that_powers_do_not_decide_at_once():
    # Odd in one direction for every value of the other.
    found = generative_leap("He(2, x1) + x1 + He(7, x2)*x1**2 + He(5, x2)")
    assert found.value == 1


@pytest.mark.parametrize("name", ["erf(x1) - 2*x1/sqrt(3*pi)", "sin(x1) - exp(-1/2)*x1"])
def test_the_half_line_is_a_witness_by_quadrature(name):
    f = target(name)
    (step,) = generative_leap(f).steps
    assert step.order == 1 and "x1 < 0" in step.witness
    # Damian et al.'s E[z y³], an independent witness: −0.03186 and −0.16322.
    z, weights = hermegauss(150)
    y = sp.lambdify(f.variables, f.expr, [{"erf": erf}, "numpy"])(z)
    value = (weights * z * y**3).sum() / weights.sum()
    expected = {"e": -0.03186, "s": -0.16322}[name[0]]
    assert abs(value - expected) < 6e-6


def test_the_blind_label_has_no_second_order_moment():
    for power in (1, 2, 3, 5):
        label = (x1**2 * sp.exp(-(x1**2))) ** power
        assert hermite_coefficient(label, 2, variable=x1) == 0
        assert hermite_coefficient(label, 4, variable=x1) != 0
    assert not is_blind_to_order_two(x1**2 * sp.exp(-2 * x1**2), x1)
    assert not is_blind_to_order_two(x1 * sp.exp(-(x1**2) / 2), x1)
    assert is_blind_to_order_two(3 * sp.Abs(x1) * sp.exp(-(x1**2) / 2) - 2, x1)


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("exp(x1) - exp(-x1) - 3*x1", ">"),
        ("tanh(x1)*x1**2 - x1", ">"),
        ("softplus(x1) - softplus(-2*x1)", ">"),
        ("gelu(x1)", ">"),
        ("relu(x1) - abs(x1)", "<"),
        ("x1**3 - 5*x1**2*sin(x1)", ">"),
        ("exp(x1)*tanh(x1) - exp(x1) + x1", ">"),
        ("1/(2 + cos(x1)) + x1", ">"),
    ],
)
def test_one_sided_infinities(text, side):
    f = target(text)
    found = one_sided_infinity(f.expr, x1)
    assert f"x1 {side} 0" in found
    # Far out, labels of that kind occur on one half-line only.
    value = sp.lambdify(x1, f.expr, NUMERIC)
    far = np.linspace(8, 40, 100) * (1 if side == ">" else -1)
    near = -np.sign(far[0]) * np.linspace(0, 30, 100)
    if "y > M" in found:
        assert value(far).max() > value(near).max()
    else:
        assert value(far).min() < value(near).min()


@pytest.mark.parametrize(
    "text",
    ["cos(x1)", "x1**2 + x1", "atan(x1)*x1**2", "tanh(x1)", "x1*sin(x1) + x1"],
)  # fmt: skip
def test_no_one_sided_infinity_without_proof(text):
    assert one_sided_infinity(target(text).expr, x1) is None


def test_two_values():
    for text in ("sign(x1*x2)", "step(x1)*step(x2)", "2 - 3*sign(x1 - x2)"):
        assert has_two_values(target(text))
    for text in ("sign(x1) + sign(x2)", "sign(x1)*x2", "tanh(x1)", "step(x1) + 2*step(x2)"):
        assert not has_two_values(target(text))


def test_powers_of_labels_with_signs():
    f = target("sign(x1) + abs(x1)*x2")
    points = np.random.default_rng(1).standard_normal((2, 30))
    for power in (2, 3):
        made = label_power(f, power)
        value, label = (sp.lambdify(f.variables, g.expr, "numpy")(*points) for g in (made, f))
        np.testing.assert_allclose(value, label**power, rtol=1e-12)
    assert label_power(target("erf(x1) + x2"), 2) is None


def test_bounds_that_do_not_meet_are_no_number():
    # Rotated by a rational rotation, the sign changes of x1 x2 x3 are not looked for.
    skew = sp.Matrix([[0, 1, 2], [-1, 0, 3], [-2, -3, 0]])
    rotation = (sp.eye(3) - skew) * (sp.eye(3) + skew).inv()
    found = generative_leap(rotated(target("x1*x2*x3"), rotation))
    assert (found.lower, found.upper, found.value) == (1, 2, None)
    assert found.standing == "upper bound only" and "1 to 2" in str(found)
    with pytest.raises(AssumptionError, match="1 to 2"):
        int(found)
    assert r"\in [1, 2]" in found.latex()


def test_presentations_and_errors():
    found = generative_leap("x1*x2*x3")
    assert "sign change x1 → -x1, x2 → -x2 leaves f invariant" in str(found)
    assert "= 2" in found.latex()
    assert "y^2" in found._repr_html_()
    content = json.loads(json.dumps(found.to_dict()))
    assert content["steps"][0]["transform"] == "y^2" and content["standing"] == "exact"
    assert list(range(5))[found] == 2
    with pytest.raises(AssumptionError, match="is constant"):
        generative_leap("x1 - x1")


def test_products_of_many_coordinates_are_answered_at_once():
    # With all of the 2^29 Hermite terms of y² this would not end.
    found = generative_leap("x1 + " + "*".join(f"x{i}" for i in range(1, 31)))
    assert (found.value, found.is_exact, found.orders) == (2, True, (1, 2))
