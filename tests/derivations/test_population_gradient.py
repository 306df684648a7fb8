"""The parts of the first gradient for a model, and its population form for given weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose
from scipy.integrate import quad

from giantstep import OneGradientStep
from giantstep.derivations.first_gradient.first_step import first_step
from giantstep.derivations.one_gradient_step.pair_kernels import (
    c,
    gradient_coefficients,
    own_coefficient,
    p,
    pair_kernel,
    q,
)
from giantstep.derivations.one_gradient_step.simulated import network_functions
from giantstep.errors import AssumptionError, ConvergenceError, ParameterError
from giantstep.numeric.pair_gradients import pair_averages
from giantstep.symbolic.expressions.activations import activation


def model_of(student, teacher, **changes):
    return OneGradientStep(student, teacher, **{"alpha": 4, "beta": 2, "centre": True, **changes})


@pytest.fixture
def layer():
    generator = np.random.default_rng(3)
    return generator.standard_normal((6, 4)) / 2, generator.standard_normal(4)


# ------------------------------------------------------------------ limits of the parts


@pytest.mark.parametrize(("student", "teacher"), [("relu", "softplus"), ("softplus", "relu")])
def test_centring_takes_the_mean_out_of_the_labels_alone(student, teacher):
    centred = first_step(student, activation(teacher), centre=True)
    raw = first_step(student, activation(teacher))
    mean = raw.target.mean
    difference = raw.label_square - centred.label_square - mean**2
    assert abs(sp.N(difference.subs("Delta", 0), 30)) < 1e-28
    assert centred.output == raw.output and centred.linear_part == raw.linear_part
    numbers = centred.values(alpha=3, noise_variance=0.1)
    slope = model_of(student, teacher).student_moments.slope_variance
    square = model_of(student, teacher).teacher_moments.square
    assert_allclose(numbers["bulk"], math.sqrt(slope * (square + 0.1) / 3), rtol=1e-12)


# ------------------------------------------------------------------ kernels of pairs


def test_erf_follows_the_arcsine_law():
    # Williams, Computing with infinite networks, NIPS 9 (1996).
    erf = activation("erf")
    law = 2 / sp.pi * sp.asin(2 * c / sp.sqrt((1 + 2 * p) * (1 + 2 * q)))
    kernel = pair_kernel(erf, erf)
    assert sp.simplify(kernel - law) == 0
    # A neuron with itself: half the gradient of K(w, w) is w times d/dq of K(q, q, q).
    along, across = (e.subs({p: q, c: q}) for e in gradient_coefficients(kernel))
    assert sp.simplify(along + across - own_coefficient(erf)) == 0
    assert pair_kernel(activation("tanh"), activation("tanh")) is None
    assert own_coefficient(activation("tanh")) is None


def test_the_gradient_is_the_derivative_of_the_kernel(layer):
    weights, readout = layer
    erf, generator = activation("erf"), np.random.default_rng(1)
    kernel = sp.lambdify((p, q, c), pair_kernel(erf, erf), "scipy")
    width = weights.shape[1]

    def potential(w):
        # Its derivative in column j alone, other columns and readout fixed, is the gradient
        # without a_j, the second argument of K moving.
        squares = (w**2).sum(0)
        labels = kernel(1.0, squares, w[0])
        pairs = kernel((weights**2).sum(0)[:, None], squares[None, :], weights.T @ w)
        return float((readout / math.sqrt(width)) @ (labels - readout @ pairs / math.sqrt(width)))

    found = model_of("erf", "erf").population_gradient(weights, readout).gradient
    direction = generator.standard_normal(weights.shape)
    h = 1e-5
    change = (potential(weights + h * direction) - potential(weights - h * direction)) / (2 * h)
    assert_allclose((found * direction).sum(), change, rtol=1e-8)


@pytest.mark.parametrize(
    ("student", "teacher", "closed"),
    [
        ("relu", "relu", True),
        ("z + z**2/4", "z**3", True),
        ("tanh", "relu", False),
        ("relu(z - 1/2)", "relu(z - 1)", True),
    ],
)
def test_population_gradients_are_means_of_samples(layer, student, teacher, closed):
    weights, readout = layer
    model = model_of(student, teacher)
    found = model.population_gradient(weights, readout)
    assert (found.rests_on == "closed form") == closed
    assert_allclose(found.gradient, found.labels - found.output, rtol=0, atol=1e-15)
    sigma, slope, f = network_functions(model)
    x = np.random.default_rng(7).standard_normal((400_000, 6))
    hidden, root = x @ weights, math.sqrt(weights.shape[1])
    residual = f(x[:, 0]) - sigma(hidden) @ readout / root
    scatter = residual[:, None] * np.broadcast_to(slope(hidden), hidden.shape) * readout / root
    mean = x.T @ scatter / len(x)
    error = np.sqrt(((x**2).T @ scatter**2 / len(x) - mean**2) / len(x))
    # 24 correlated entries.
    assert np.abs((mean - found.gradient) / error).max() < 4.5


def test_the_leading_term_is_that_of_the_limit():
    d, width = 4000, 3
    generator = np.random.default_rng(5)
    weights = generator.standard_normal((d, width)) / math.sqrt(d)
    found = model_of("erf", "tanh").population_gradient(weights, np.ones(width))
    model = model_of("erf", "tanh")
    leading = model.student_moments.linear * model.teacher_moments.linear / math.sqrt(width)
    assert_allclose(found.labels[0], leading, rtol=0.05)


def test_the_teacher_may_look_anywhere(layer):
    weights, readout = layer
    model = model_of("erf", "sin")
    rotation, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((6, 6)))
    plain = model.population_gradient(weights, readout).gradient
    turned = model.population_gradient(rotation @ weights, readout, direction=3 * rotation[:, 0])
    assert_allclose(turned.gradient, rotation @ plain, rtol=0, atol=1e-13)


def test_twin_neurons_of_a_symmetric_initialisation(layer):
    weights, readout = layer
    twins = np.hstack([weights, weights])
    for student in ("relu", "erf", "tanh"):
        found = model_of(student, "erf").population_gradient(
            twins, np.concatenate([readout, -readout])
        )
        # Their outputs cancel.
        assert_allclose(found.output, 0, atol=1e-12)
        assert np.isfinite(found.gradient).all()


def test_steep_functions_and_long_weights(layer):
    # One neuron, tanh on tanh: along w and across it the average factors into two of one variable.
    weights, _ = layer
    w, model = weights[:, 0], model_of("tanh", "tanh")
    rho = w[0] / np.linalg.norm(w)
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(120)
    node_weights = node_weights / node_weights.sum()

    def averaged(z, across, length):
        values = np.tanh(rho * z + math.sqrt(1 - rho**2) * nodes) * (nodes if across else z)
        slope = 1 / math.cosh(min(length * abs(z), 300)) ** 2
        return slope * math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (node_weights @ values)

    for scale in (1.0, 5.0, 300.0, 1e5):
        length = scale * np.linalg.norm(w)
        reach = min(9.0, 40 / length)
        along, over = (
            quad(averaged, -reach, reach, (side, length), points=[0], epsabs=0, epsrel=1e-10)[0]
            for side in (False, True)
        )
        unit = w / np.linalg.norm(w)
        axis = np.zeros(6)
        axis[0] = 1
        expected = along * unit + over * (axis - rho * unit) / math.sqrt(1 - rho**2)
        found = model.population_gradient(scale * w[:, None], [1.0]).labels[:, 0]
        assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("student", ["relu", "abs", "erf", "tanh"])
@pytest.mark.parametrize("apart", [0.0, 1e-12, 1e-8, 1e-7, 1e-5])
@pytest.mark.parametrize("factor", [-1.0, 2.0])
def test_nearly_parallel_neurons_have_the_limit(layer, student, apart, factor):
    # u and factor u + apart v; the gradient is continuous (E f g' is, with g' a step or smooth).
    weights, _ = layer
    first, readout = weights[:, 0], [1.0, 0.5]
    model = model_of(student, "erf")

    def output(distance):
        second = factor * first + distance * weights[:, 1]
        return model.population_gradient(np.stack([first, second], 1), readout).output

    limit = output(0.0)
    assert_allclose(output(apart), limit, rtol=0, atol=2 * apart + 2e-6 * np.abs(limit).max())
    if student == "relu" and factor == -1:
        # Where one of the two is active the other is not: E[relu(s) step(-s) x] = 0, and relu is
        # centred, so that minus its mean times E[step(s) x] = s/sqrt(2 pi) is left.
        unit = first / np.linalg.norm(first)
        mean, slope = 1 / math.sqrt(2 * math.pi), unit / math.sqrt(2 * math.pi)
        scale = 1 / 2  # a_1/sqrt(N) times 1/sqrt(N), a_2 one half
        own = scale * (first / 2 - mean * slope)
        assert_allclose(limit[:, 0], own - scale * 0.5 * mean * slope, rtol=0, atol=1e-9)


def test_what_quadrature_cannot_do_is_said():
    def bend(t):
        return np.abs(t - 0.3)

    def jump(t):
        return np.sign(t - 0.7)

    one = np.array([1.0])
    with pytest.raises(ConvergenceError, match=r"two quadrature rules differ by .* is wanted"):
        # Kinks that are not named.
        pair_averages(bend, jump, one, one, one / 2, accuracy=1e-9)
    named = pair_averages(
        bend, jump, one, one, one / 2, first_kinks=[0.3], second_kinks=[0.7], accuracy=1e-9
    )
    x = np.random.default_rng(4).standard_normal((1_000_000, 2))
    other = x[:, 0] / 2 + math.sqrt(3) / 2 * x[:, 1]
    product = bend(x[:, 0]) * jump(other)
    for k, component in enumerate(((1.0, 0.5), (0.0, math.sqrt(3) / 2))):
        values = product * x[:, k]
        expected = named[0][0] * component[0] + named[1][0] * component[1]
        assert abs(values.mean() - expected) < 4.5 * values.std() / 1000


WEIGHTS = np.random.default_rng(3).standard_normal((6, 4)) / 2
ONES = np.ones(4)


@pytest.mark.parametrize(
    ("weights", "readout", "direction", "message"),
    [
        ([1.0, 2.0], [1.0], None, r"weights must be an array of real numbers of shape \(d, N\)"),
        ("text", [1.0], None, "weights must be an array"),
        ([[1.0], [math.nan]], [1.0], None, "weights must be finite"),
        ([[0.0], [0.0]], [1.0], None, "weights must have no column of zeros"),
        ([[1.0], [1.0]], [1.0, 2.0], None, "readout must have one entry for each of the 1 columns"),
        ([[1.0], [1.0]], 1.0, None, "readout must be an array"),
        ([[1.0], [1.0]], [1.0], [0.0, 0.0], "direction must be a vector of 2 entries"),
        ([[1.0], [1.0]], [1.0], [1.0], "direction must be a vector of 2 entries"),
        ([[1.0], [1.0, 2.0]], [1.0], None, "weights must be an array"),
        *((scale * WEIGHTS, ONES, None, "squared lengths are within the range of floats")
          for scale in (1e160, 1e100, 1e-170)),
        (WEIGHTS, 1e200 * ONES, None, "weights or readout are too large"),
        (1e15 * WEIGHTS[:, :1], [1.0], None, r"student 'tanh'.*Choose functions that"),
    ],
)  # fmt: skip
def test_arrays_are_checked(weights, readout, direction, message):
    model = model_of("tanh", "erf")
    with pytest.raises((ParameterError, ConvergenceError), match=message):
        model.population_gradient(weights, readout, direction=direction)


def test_a_student_that_jumps_has_no_gradient():
    model = model_of("sign", "erf", step_size=0)
    for compute in (model.gradient, lambda: model.population_gradient([[1.0], [0.5]], [1.0])):
        with pytest.raises(AssumptionError, match=r"jumps|no weak derivative"):
            compute()
