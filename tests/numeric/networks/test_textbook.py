"""Every option of a network against the recipe that says what it means, at the same draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from giantstep.errors import ParameterError
from giantstep.numeric.networks.network import Network, Training
from giantstep.numeric.networks.readout import GaussianFeatures, RidgeReadout, TrainedNetwork
from giantstep.numeric.networks.run import _drawn_samples
from giantstep.numeric.networks.samples import LATER_STEPS, READOUT, STEP, TEST

D, P, N = 12, 10, 1500


def slope(z):
    """Derivative of tanh."""
    return 1 - np.tanh(z) ** 2


def target(x):
    """Return a target of two directions."""
    return x[:, 0] + x[:, 0] * x[:, 1]


def huber(y, f):
    """Derivative of the Huber loss with δ = 1 in the output."""
    return np.clip(f - y, -1, 1)


def made(**changes):
    """Return a network of two directions."""
    given = dict(
        student=np.tanh, student_derivative=slope, teacher=target, directions=2, dimension=D,
        width=P, steps=1, step_samples=N, step_size=1.5, noise_variance=0.3,
    )  # fmt: skip
    return Network(**{**given, **changes})


def textbook(network, seed):
    """Take the steps with every array held at once, one line for each formula."""
    start = Training(network, seed)
    w, a, b = start.layer.rows.copy(), start.layer.readout, start.layer.biases
    p, s = network.width, network.step_size * network.width**network.exponent
    loss = network.loss_derivative or (lambda y, f: f - y)
    for step in range(network.steps):
        purpose = LATER_STEPS + step if network.fresh and step else STEP
        blocks = [(x.inputs.copy(), x.labels) for x in start.samples.blocks(purpose, N)]
        x, y = np.vstack([x for x, _ in blocks]), np.concatenate([y for _, y in blocks])
        if network.preprocess:
            y = y - y.mean() - x @ (y @ x / N)
        # In the standard scaling the readouts are a/sqrt(p), and so is their gradient's factor.
        scale = s / np.sqrt(p) if network.scaling == "standard" else s
        z = x @ w.T + b
        if network.gradient == "rank one":
            gradient = -network.slope * np.outer(a, y @ x) / N
        else:
            gradient = a[:, None] * ((loss(y, np.tanh(z) @ a / p)[:, None] * slope(z)).T @ x) / N
        w = (1 - network.weight_decay) * w - scale * gradient
        if network.normalise:
            w = w / np.sqrt((w**2).sum(axis=1).mean())
    return w


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"steps": 3},
        {"steps": 3, "fresh": False},
        {"readout": "gaussian", "biases": "gaussian"},
        {"readout": "signs", "paired": True, "steps": 2},
        {"readout": [0.5, 2.0], "fractions": [0.3, 0.7], "paired": True, "biases": "gaussian"},
        {"readout": "gaussian", "replicas": 5, "paired": True, "preprocess": True, "steps": 2},
        {"rows": "gaussian", "scaling": "standard", "readout": "gaussian", "exponent": 0.25},
        {"gradient": "rank one", "slope": 0.6, "readout": "gaussian"},
        {"gradient": "rank one", "slope": 0.6, "preprocess": True, "steps": 2},
        {"weight_decay": 0.3, "steps": 2},
        {"weight_decay": 1.0, "normalise": True, "paired": True, "preprocess": True},
        {"loss_derivative": huber, "steps": 2},
        {"labels": "sign", "noise_variance": 0.0},
        {"labels": "probit", "paired": True, "steps": 2, "loss_derivative": huber},
        {"labels": "logistic", "noise_variance": 0.0, "preprocess": True},
        {"labels": lambda f, u: f + (u < 0.5), "noise_variance": 0.0},
        {"rows": lambda generator, p, d: generator.random((p, d)) - 0.5},
    ],
    # Functions have no names that are the same in each process.
    ids=lambda changes: ", ".join(changes) or "plain",
)
def test_steps_are_those_of_the_recipe(changes):
    network = made(**changes)
    assert_allclose(network.train(seed=7).rows, textbook(network, 7), rtol=1e-12, atol=1e-13)


def test_a_given_spike_is_added_once():
    network = made(gradient="given", spike=(1.2, 0.5), readout="gaussian", steps=2)
    training = Training(network, 3)
    start, a = training.layer.rows.copy(), training.layer.readout
    training.step()
    training.step()
    u = np.zeros(D)
    u[0], u[2] = 1.2, 0.5
    assert_allclose(training.layer.rows, start + np.outer(a / np.linalg.norm(a), u), rtol=1e-13)


def test_later_biases_come_after_the_last_step():
    network = made(biases="later", steps=2, paired=True, readout="signs")
    plain = made(steps=2, paired=True, readout="signs")
    assert_allclose(network.train(seed=1).rows, plain.train(seed=1).rows, rtol=0)
    assert abs(network.train(seed=1).biases).min() > 0 and not plain.train(seed=1).biases.any()


def test_excess_and_directions_are_those_of_the_residuals():
    network = made(readout="gaussian")
    training = Training(network, 5)
    w, a = training.layer.rows.copy(), training.layer.readout
    blocks = [(x.inputs.copy(), x.labels) for x in training.samples.blocks(STEP, N)]
    x, y = np.vstack([x for x, _ in blocks]), np.concatenate([y for _, y in blocks])
    training.step()
    residuals = y - np.tanh(x @ w.T) @ a / P
    squares = residuals[:, None] ** 2 * x[:, :2]
    assert_allclose(training.excess, squares.T @ x[:, :2] / (residuals**2).sum(), rtol=1e-12)
    moment = residuals @ x
    assert_allclose(training.layer.spikes[0], moment / np.linalg.norm(moment), rtol=1e-10)
    assert_allclose(training.label_moments[0], y @ x / N, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss_derivative": lambda y, f: np.full(3, 1.0)}, "loss_derivative must return a finite"),
        ({"loss_derivative": lambda y, f: np.nan * f}, "loss_derivative must return a finite"),
        ({"rows": lambda generator, p, d: np.ones((p, 2))}, "rows must return finite values"),
        ({"student_derivative": lambda z: np.inf}, "student_derivative is not finite"),
        ({"step_size": 1e32}, "the weights overflow in step 1"),
        ({"student_derivative": np.zeros_like, "weight_decay": 1.0, "normalise": True},
         "the gradient vanishes"),
    ],
)  # fmt: skip
def test_steps_that_go_wrong_say_why(changes, message):
    with pytest.raises(ParameterError, match=message):
        made(**changes).train(seed=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": 1}, "dimension must be at least 2, the number of the teacher's directions"),
        ({"dimension": 2.5}, "dimension must be a whole number"),
        ({"dimension": 2, "gradient": "given"}, "dimension must exceed the teacher's 2"),
        ({"width": 0}, "width must be >= 1, got 0"),
        ({"steps": -1}, "steps must be >= 0"),
        ({"steps": True}, "steps must be a whole number"),
        ({"step_samples": 0}, "samples must be >= 1"),
        ({"step_samples": 1e5}, "samples must be a whole number"),
        ({"step_samples": 10**18}, "samples must be at most .* more would take weeks"),
        ({"step_size": np.inf}, "step_size must be finite"),
        ({"step_size": np.nan}, "step_size must be a number"),
        ({"exponent": 1e6}, "must be finite"),
        ({"slope": np.inf}, "slope"),
        ({"noise_variance": -0.1}, "noise_variance must be >= 0"),
        ({"labels": "poisson"}, "labels must be one of"),
        ({"gradient": "truncated"}, "gradient must be one of"),
        ({"spike": (1.0,)}, "spike must be two numbers"),
        ({"spike": 1.0}, "spike must be two numbers"),
        ({"rows": "cube"}, "rows must be"),
        ({"student": 3}, "student must be a function"),
        ({"student_derivative": None}, "student_derivative is needed"),
        ({"weight_decay": 2}, "weight_decay"),
    ],
)
def test_networks_that_are_none_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        made(**changes)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("count", "given"), [(7, None), (400, None), (16, 0.7)])
def test_a_penalty_that_is_not_given_is_the_best_on_a_fifth_held_out(intercept, count, given):
    # Labels far from zero: without a constant they are fitted otherwise.
    network = made(steps=0, teacher=lambda x: target(x) + 3, noise_variance=2.0)
    count *= 5
    readout = RidgeReadout(count, given, intercept=intercept, test_samples=50)
    trained = TrainedNetwork(Training(network, 4), readout)
    features, labels = trained.feature_matrix(count)
    fitted = count if given else count - count // 5
    mean, level = features[:fitted].mean(axis=0), labels[:fitted].mean()
    if not intercept:
        mean, level = np.zeros(P), 0.0
    x, y = features[:fitted] - mean, labels[:fitted] - level
    unit = (x**2).sum() / P
    found = []
    for penalty in [P * given] if given else 10 ** (np.arange(-8, 7) / 2) * unit:
        u = np.linalg.solve(x.T @ x + penalty * np.eye(P), x.T @ y)
        rest = labels[fitted:] - level - (features[fitted:] - mean) @ u
        found.append((float(rest @ rest), penalty / P, u, level - mean @ u))
    _, ridge, u, constant = min(found, key=lambda row: row[0])
    assert_allclose(trained.fit.values["ridge"], [[ridge]], rtol=1e-12)
    assert_allclose(trained.fit.coefficients[:, 0, 0], u, rtol=1e-9, atol=1e-12)
    assert_allclose(trained.fit.intercepts, [[constant]], rtol=1e-10, atol=1e-12)
    # On fresh samples the constant is part of the prediction.
    ((block, features),) = trained.feature_blocks(TEST, 50)
    error = np.mean((features @ u + constant - block.target) ** 2)
    assert_allclose(trained.test["test_error"], [[error]], rtol=1e-8)


def test_gaussian_features_and_labels_do_not_depend_on_where_a_block_begins():
    law = GaussianFeatures(0.6, 0.2, 0.7, 0.4, labels=True)
    network = made(steps=0, teacher=np.sin, directions=1)
    trained = TrainedNetwork(Training(network, 4), RidgeReadout(1500, 0.1, gaussian=law))
    features, labels = trained.feature_matrix(1500)
    for block, part in trained.feature_blocks(READOUT, 1500, 1100):
        assert_allclose(part, features[block.rows], rtol=0)
        assert_allclose(block.labels, labels[block.rows], rtol=0)


@pytest.mark.parametrize(("dimension", "given", "count"), [
    (12, None, 10_000), (1000, None, 10_000), (1001, None, 10_010), (1001, 50, 50), (12, 1, 1),
])  # fmt: skip
def test_fresh_samples_are_ten_for_each_coordinate_and_ten_thousand_at_least(
    dimension, given, count
):
    network = made(dimension=dimension)
    readout = RidgeReadout(20, 0.1, test_samples=given)
    assert TrainedNetwork(Training(network, 0), readout).test_samples == count
    assert _drawn_samples(network, readout) == network.drawn_samples + 20 + count
    assert _drawn_samples(network, None) == network.drawn_samples
