"""Networks and spiked rows against the definitions, at the same draws, option by option."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import erf

from giantstep.derivations.spiked_random_features.convex.losses import convex_loss, simulated_loss
from giantstep.derivations.spiked_random_features.simulated import (
    ConditionalPrediction,
    ControlVariate,
)
from giantstep.errors import ConvergenceError, ParameterError
from giantstep.numeric.networks.bulk import bulk_overlaps, bulk_spectrum, norm_overlap, row_stretch
from giantstep.numeric.networks.convex import smooth_loss
from giantstep.numeric.networks.layer import FeatureClass, SpikedRows
from giantstep.numeric.networks.measure import MeanPrediction
from giantstep.numeric.networks.network import Network
from giantstep.numeric.networks.readout import ConvexReadout, RidgeReadout
from giantstep.numeric.networks.run import simulate
from giantstep.numeric.networks.samples import READOUT, ROWS, STEP, TEST

D, P = 40, 30
SEED = np.random.SeedSequence(0, spawn_key=(0,))
SIZES, RIDGE, TESTS = (90, 20, 1200), 0.5, 1100


def erf_slope(z):
    return 2 / math.sqrt(math.pi) * np.exp(-z * z)


def two_index(z):
    return np.sin(z[:, 0]) + z[:, 1]


def one(**changes):
    """Rows of one class."""
    kind = FeatureClass(spike=1.2, bulk_variance=1.1, bias=changes.pop("bias", 0.0))
    rows = SpikedRows(kind, 0.9, bulk=changes.pop("bulk", "iid"))
    given = {"student": np.tanh, "teacher": np.sin, "rows": rows, "dimension": D, "width": P}
    return Network(**{**given, **changes})


TWO = SpikedRows(
    (FeatureClass(0.4, (1.2, 0.3), 1.1), FeatureClass(0.6, (-0.6, 0.8), 1.02, 0.5)),
    [[0.7, 0.2], [-0.3, 0.8]],
)
TRAINED = {
    "student": erf, "student_derivative": erf_slope, "rows": "sphere", "steps": 1,
    "step_size": 1.5, "step_samples": 1300,
}  # fmt: skip
CASES = {
    "rows": ({"noise_variance": 0.2}, None),
    "orthonormal": ({"bulk": "orthonormal"}, None),
    "two classes": ({"rows": TWO, "teacher": two_index, "directions": 2}, None),
    "one step": ({**TRAINED, "noise_variance": 0.1}, None),
    "no step": ({}, None),
    "letters": ({**TRAINED, "readout": (0.5, 0.0, 2.0), "fractions": (0.3, 0.3, 0.4)}, None),
    "two directions": ({**TRAINED, "teacher": two_index, "directions": 2}, None),
    "signs": ({**TRAINED, "labels": "sign"}, None),
    "probit": ({"labels": "probit", "noise_variance": 0.3}, None),
    "logistic": ({"labels": "logistic"}, None),
    "a function": ({"labels": lambda f, u: (u < (1 + f) / 2) + 0.5 * f}, None),
    "huber": ({"noise_variance": 0.2, "bias": 0.3}, "huber(0.4)"),
    "absolute": ({**TRAINED}, "absolute"),
    "hinge": ({"labels": "sign"}, "hinge"),
    "logistic loss": ({**TRAINED, "labels": "logistic"}, "logistic"),
}  # fmt: skip
KEPT = ("test_error", "training_error", "test_loss", "training_loss", "objective")


def drawn(network, teachers, purpose, count):
    """All samples of a purpose at once."""
    blocks = network.samples(SEED, teachers).blocks(purpose, count)
    parts = [(b.inputs.copy(), b.target, b.labels) for b in blocks]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def textbook(network, loss, coefficients):
    """The definitions: no blocks, no Gram matrix kept, one line for each formula."""
    d, p = network.dimension, network.width
    normals = network.samples(SEED).generator(ROWS).standard_normal((p, d))
    rows = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    if isinstance(network.rows, SpikedRows):
        kinds, k = network.rows.kinds, network.rows.shape[0]
        counts = [round(kind.fraction * p) for kind in kinds]
        classes = np.repeat(np.arange(len(kinds)), counts)
        if network.rows.bulk == "orthonormal":
            q, r = np.linalg.qr(normals.T)
            rows = (q * np.sign(np.diag(r))).T
        rows = rows * np.sqrt([kinds[a].bulk_variance for a in classes])[:, None]
        centres = np.array([kind.strengths for kind in kinds])
        v, biases = np.eye(k, d), np.array([kinds[a].bias for a in classes])
        rows = rows + centres[classes] @ v
        theta = network.train(SEED).teachers
        assert_allclose(v @ theta.T, network.rows.alignment, atol=1e-15)
        assert_allclose(theta @ theta.T, np.eye(len(theta)), atol=1e-12)
    else:
        classes = np.repeat(
            np.arange(network.classes), np.round(np.array(network.fractions) * p).astype(int)
        )
        theta, biases, v = np.eye(network.directions, d), np.zeros(p), np.zeros((1, d))
        centres = np.zeros((network.classes, 1))
        if network.steps:
            x, _, y = drawn(network, theta, STEP, network.step_samples)
            a = np.array(network.readout)[classes]
            residual = y - network.student(x @ rows.T) @ a / p
            gradient = (network.student_derivative(x @ rows.T) * residual[:, None]).T @ x / len(x)
            rows = rows + network.step_size * a[:, None] * gradient
            v = (residual @ x / np.linalg.norm(residual @ x))[None]
            along = rows @ v.T
            centres = np.array([along[classes == c].mean(axis=0) for c in range(network.classes)])
    bulk, bound = rows - centres[classes] @ v, np.eye(d) - v.T @ v
    found = {name: [] for name in (*KEPT, "m", "theta", "psi", "q1", "q2")}
    x, _, y = drawn(network, theta, READOUT, max(SIZES))
    fresh, target, labels = drawn(network, theta, TEST, TESTS)
    binary = network.channel.classifies or (loss is not None and loss.binary)
    across = theta - theta @ v.T @ v
    zeta = np.linalg.qr(across.T)[0].T
    zeta *= np.sign(np.sum(zeta * across, axis=1))[:, None]
    for column, n in enumerate(SIZES):
        phi = network.student(x[:n] @ rows.T + biases) / math.sqrt(p)
        if loss is None:
            w = np.linalg.solve(phi.T @ phi + RIDGE * np.eye(p), phi.T @ y[:n])
        else:
            w = coefficients[:, column] * math.sqrt(p)
        value = loss.value if loss is not None else lambda y, x: (y - x) ** 2 / 2
        seen, there = phi @ w, network.student(fresh @ rows.T + biases) @ w / math.sqrt(p)
        wrong = lambda f, t: (f * t <= 0) if binary else (f - t) ** 2  # noqa: E731
        combined = np.array([w[classes == a] @ bulk[classes == a] for a in range(len(centres))])
        combined /= math.sqrt(p)
        for name, quantity in {
            "training_error": wrong(seen, y[:n]).mean(),
            "training_loss": value(y[:n], seen).mean(),
            "objective": (value(y[:n], seen).sum() + RIDGE / 2 * w @ w) / n,
            "test_error": wrong(there, labels if binary else target).mean(),
            "test_loss": value(labels, there).mean(),
            "m": [w[classes == a].sum() / math.sqrt(p) for a in range(len(centres))],
            "theta": v @ combined.T,
            "psi": zeta @ combined.T,
            "q1": combined @ bound @ combined.T,
            "q2": [w[classes == a] @ w[classes == a] / p for a in range(len(centres))],
        }.items():
            found[name].append(quantity)
    share = [
        np.mean(np.sum((rows @ bound)[classes == a] ** 2, axis=1)) for a in range(len(centres))
    ]
    return {
        **{name: np.array(values)[:, None] for name, values in found.items()},
        "bulk_variance": np.array(share),
        "spike_strength": np.array(
            [(rows @ v.T)[classes == a].mean(axis=0) for a in range(len(centres))]
        ),
        "alignment": v @ theta.T,
    }


def coefficients(trained):
    return {"coefficients": trained.fit.coefficients}


@pytest.mark.parametrize("name", CASES)
def test_networks_are_those_of_the_textbook(name):
    changes, loss = CASES[name]
    network = one(**changes) if name != "no step" else one(rows="sphere")
    fitted = None if loss is None else simulated_loss(convex_loss(loss))
    readout = (
        RidgeReadout(SIZES, RIDGE, test_samples=TESTS) if fitted is None
        else ConvexReadout(SIZES, RIDGE, fitted, test_samples=TESTS)
    )  # fmt: skip
    measure = ("errors", "overlaps", "spike", coefficients)
    found = simulate(network, measure, readout=readout, seeds=1)
    assert 0 <= found["certificate"].max() <= 1e-8
    # A minimum of other losses has no formula; its certificate is a bound that is proven.
    for quantity, value in textbook(network, fitted, found["coefficients"][0, :, :, 0]).items():
        assert_allclose(
            found[quantity][0], value, rtol=1e-12, atol=1e-12 * max(1, np.abs(value).max()),
            err_msg=quantity,
        )  # fmt: skip


def test_a_larger_sample_does_not_change_smaller_ones():
    alone, among = (
        simulate(one(), readout=RidgeReadout(sizes, RIDGE, test_samples=300), seeds=1)
        for sizes in (80, [800, 80, 80])
    )
    for name in KEPT:
        assert_allclose(among[name][0, 1:, 0], np.repeat(alone[name], 2), rtol=1e-10)


# ------------------------------------------------------------------ what else is measured


@pytest.mark.parametrize("samples", [20, 80])
def test_eigenvalues_are_those_of_the_features(samples):
    readout = RidgeReadout([samples, 10], 1.0)
    found = simulate(one(), "feature_eigenvalues", readout=readout, seeds=1)
    layer = one().train(SEED)
    x, _, _ = drawn(one(), layer.teachers, READOUT, samples)
    singular = np.linalg.svd(np.tanh(x @ layer.rows.T) / math.sqrt(P), compute_uv=False)
    expected = np.zeros(P)
    expected[P - len(singular) :] = np.sort(singular**2)
    assert_allclose(found["feature_eigenvalues"][0, 0], expected, rtol=1e-9, atol=1e-12)
    assert_allclose(found["projections"][0], x @ layer.spikes[0], rtol=1e-12)


def test_a_mean_prediction_is_that_of_the_readout_on_fresh_samples():
    edges = [-1.0, 0.0, 1.0, 9.0, 10.0]
    found = simulate(
        one(), (MeanPrediction(edges, 1500), coefficients), readout=RidgeReadout([20, 80], RIDGE),
        seeds=1,
    )  # fmt: skip
    layer = one().train(SEED)
    x, _, _ = drawn(one(), layer.teachers, TEST, 1500)
    kappa, seen = x @ layer.spikes[0], np.tanh(x @ layer.rows.T) @ found["coefficients"][0, :, :, 0]
    for cell, (low, high) in enumerate(itertools.pairwise(edges[:4])):
        inside = (low <= kappa) & (kappa < high)
        assert_allclose(found["projection"][0, cell], kappa[inside].mean(), rtol=1e-12)
        assert_allclose(found["prediction"][0, cell, :, 0], seen[inside].mean(axis=0), rtol=1e-10)
    assert np.isnan(found["prediction"][0, 3]).all()
    assert MeanPrediction(edges).digest != MeanPrediction(edges[:-1]).digest
    with pytest.raises(ParameterError, match="edges must be increasing"):
        MeanPrediction([1.0, 0.0])


def test_any_control_variate_leaves_expectations():
    kappa = np.linspace(-8, 8, 65)
    wrong = ConditionalPrediction(kappa, kappa**2, np.cos(kappa))
    assert wrong.means == pytest.approx((1, math.exp(-0.5)), abs=1e-5)
    readout = RidgeReadout([80, 40], 0.1, test_samples=2000)
    plain, controlled = (
        simulate(one(), (errors, "overlaps"), readout=readout, seeds=12)
        for errors in ("errors", ControlVariate((wrong, wrong)))
    )
    for name in ("test_error", "training_error"):
        difference = (controlled[name] - plain[name])[..., 0]
        error = difference.std(axis=0, ddof=1) / math.sqrt(12)
        assert difference.all() and np.all(abs(difference.mean(axis=0)) < 4 * error)
    layer = one().train(SEED)
    for purpose, name, mean, count, function in (
        (TEST, "test_error", wrong.means[0], 2000, np.square),
        (READOUT, "training_error", wrong.means[1], 40, np.cos),
    ):
        seen = function(drawn(one(), layer.teachers, purpose, count)[0] @ layer.spikes[0]).mean()
        assert controlled[name][0, 1, 0] - plain[name][0, 1, 0] == pytest.approx(
            mean - seen, abs=1e-4
        )
    assert_array_equal(controlled["m"], plain["m"])


@pytest.mark.parametrize(
    "grid",
    [np.linspace(-3, 3, 50), np.linspace(8, -8, 50), np.array([-8, 0, 1, 8.0]), np.ones((2, 2))],
)
def test_bad_predictions_are_refused(grid):
    with pytest.raises(ParameterError, match="kappa"):
        ConditionalPrediction(grid, grid, grid)


def test_a_bulk_matrix_is_that_of_the_rows():
    layer = one().train(4)
    found = bulk_spectrum(layer)
    bulk = layer.rows - 1.2 * layer.spikes
    across = bulk[:, 1:]
    inverse = np.linalg.inv(across @ across.T + 0.3 * np.eye(P))
    first, second = bulk[:, 0], bulk[:, 1]
    for name, left, right in (("F", first, first), ("G", first, second), ("H", second, second)):
        direct = D * left @ inverse @ right / P
        assert np.mean(found[name] / (found["D"] + 0.3)) == pytest.approx(direct), name
    axes = np.eye(2, D)
    for name, values in bulk_overlaps(bulk, *axes).items():
        assert_allclose(values, found[name], atol=1e-12)
    with pytest.raises(ParameterError, match="orthonormal"):
        bulk_overlaps(bulk, axes[0], axes[0])
    with pytest.raises(ParameterError, match="rows must be a matrix"):
        bulk_overlaps(bulk, axes[0], np.ones(3))


def test_norms_and_stretches_are_those_of_the_rows():
    layer = one(dimension=200, width=4000).train(0)
    # Stretch the rows along spike and teacher, and correlate their norms with the spike.
    plane = np.stack([layer.spikes[0], layer.orthogonal_teachers[0]])
    stretch = np.array([[0.3, 0.1], [0.1, -0.2]])
    bulk = layer.rows - 1.2 * layer.spikes
    layer.rows = layer.rows + bulk @ plane.T @ stretch @ plane
    found = row_stretch(layer, 1.1)
    assert found == pytest.approx((0.3, 0.1, -0.2), abs=4 * 2 / math.sqrt(4000))
    along = (layer.rows - 1.2 * layer.spikes) @ layer.spikes[0]
    rest = layer.rows - np.outer(layer.rows @ layer.spikes[0], layer.spikes[0])
    slope = np.polyfit(along, np.sum(rest**2, axis=1), 1)[0]
    assert norm_overlap(layer) == pytest.approx(slope / 2)
    several = Network(
        student=np.tanh, teacher=two_index, rows=TWO, dimension=D, width=P, directions=2
    ).train(0)
    for function in (bulk_spectrum, norm_overlap, lambda layer: row_stretch(layer, 1.0)):
        with pytest.raises(ParameterError, match=r"one spike|one direction"):
            function(several)


# ------------------------------------------------------------------ laws of the draws


def test_labels_and_inputs_have_the_law_of_the_definition():
    network = one(noise_variance=0.5)
    teachers = network.train(3).teachers
    x, target, labels = drawn(network, teachers, READOUT, 20_000)
    other, _, _ = drawn(network, teachers, STEP, 20_000)
    noise = labels - target
    assert_allclose(target, np.sin(x @ teachers[0]), rtol=1e-12)
    # Four standard errors of variances and means.
    assert abs(noise.var() - 0.5) < 4 * 0.5 * math.sqrt(2 / 20_000)
    assert abs(noise.mean()) < 4 * math.sqrt(0.5 / 20_000)
    assert abs(x.var() - 1) < 4 * math.sqrt(2 / x.size)
    assert abs(np.mean(other * x)) < 4 / math.sqrt(x.size)


def test_labels_of_channels_have_their_law():
    target, count = np.full(40_000, 0.7), 40_000
    for name, noise, probability in (
        ("logistic", 0.0, 1 / (1 + math.exp(-0.7))),
        ("probit", 0.5, (1 + erf(0.7)) / 2),
        ("sign", 0.0, 1.0),
        (lambda f, u: np.where(u < f, 1.0, -1.0), 0.0, 0.7),
    ):
        channel = one(labels=name, noise_variance=noise).channel
        labels = channel.draw(target, np.random.default_rng(0), count)
        assert set(labels) <= {-1.0, 1.0}
        error = math.sqrt(probability * (1 - probability) / count)
        assert abs((labels == 1).mean() - probability) <= 4 * error


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": ()}, "no class"),
        ({"classes": (FeatureClass(0.5, 1.0), FeatureClass(0.5, (1.0, 2.0)))}, "same number"),
        ({"classes": [1.0]}, "FeatureClass"),
        ({"alignment": 1.2}, "at most 1"),
        ({"alignment": [0.5, 0.5]}, "one row for each of the 1 spike"),
        ({"alignment": "x"}, "alignment must be numbers"),
        ({"alignment": math.nan}, "at most 1"),
        ({"bulk": "fancy"}, "bulk must be one of"),
    ],
)
def test_bad_rows_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        SpikedRows(**{"classes": FeatureClass(spike=1.2), "alignment": 0.9, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fraction": 0}, "fraction must be positive"),
        ({"fraction": 2}, "at most 1"),
        ({"spike": ()}, "spike must hold"),
        ({"spike": math.inf}, "spike must be finite"),
        ({"spike": "1"}, "spike must be a number"),
        ({"bulk_variance": 0}, "bulk_variance must be positive"),
        ({"bias": math.nan}, "bias must be a number"),
    ],
)
def test_bad_classes_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        FeatureClass(**changes)


@pytest.mark.parametrize("spike", [0.5, [0.5], np.array(0.5), np.array([0.5])])
def test_spikes_are_numbers_or_sequences(spike):
    assert FeatureClass(spike=spike).strengths == (0.5,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": SpikedRows((FeatureClass(0.5, 1.0),), 0.9)}, "sum to 1"),
        ({"rows": SpikedRows((FeatureClass(1e-6), FeatureClass(1 - 1e-6)), 0.9)}, "no row"),
        ({"bulk": "orthonormal", "width": 80}, "beta <= 1, got 2"),
        ({"labels": "logistic", "noise_variance": 0.1}, "noise_variance must be 0"),
        ({"labels": "probit"}, "noise_variance > 0"),
        ({"labels": np.sign, "noise_variance": 0.1}, "leave out noise_variance"),
        ({"steps": 1}, "take no gradient step"),
        ({"directions": 2}, "directions must be 1"),
        ({**TRAINED, "readout": (1, 2), "fractions": (1.0,)}, "equally many"),
        ({**TRAINED, "readout": ()}, "readout must be"),
        ({**TRAINED, "directions": D + 1}, "dimension must be at least"),
    ],
)
def test_bad_networks_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        one(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"student": lambda z: z[:1]}, "student must return real values"),
        ({"student": lambda z: z + 0j}, "student must return real values"),
        ({"student": lambda z: np.where(np.abs(z) > 1, np.nan, z)}, "student is not finite at"),
        ({"teacher": lambda z: np.full_like(z, np.nan)}, "teacher is not finite"),
        ({"labels": lambda f, u: f[:2]}, "labels must return"),
        ({"labels": lambda f, u: np.full_like(f, np.inf)}, "not finite"),
    ],
)
def test_what_functions_return_is_checked(changes, message):
    with pytest.raises(ParameterError, match=message):
        simulate(one(**changes), readout=RidgeReadout(20, 0.1), seeds=1)


def test_constant_derivatives_may_be_scalars():
    network = one(
        student=lambda z: z, student_derivative=lambda z: 1.0, teacher=lambda z: z, rows="sphere",
        steps=1, step_size=1.0, step_samples=400, width=D,
    )  # fmt: skip
    found = simulate(network, readout=RidgeReadout(80, 1e-8, test_samples=50), seeds=1)
    assert found["test_error"].item() < 1e-8


def test_losses_that_cannot_be_fitted_are_refused():
    concave = smooth_loss(lambda y, x: -(x**2), lambda y, x: -2 * x + y, name="concave")
    hinge = simulated_loss(convex_loss("hinge"))
    for loss, error, message in (
        (concave, (ConvergenceError, ParameterError), "concave"),
        (hinge, ParameterError, "labels ±1"),
    ):
        with pytest.raises(error, match=message):
            simulate(one(), readout=ConvexReadout(40, 1e-3, loss), seeds=1)
    with pytest.raises(ParameterError, match="smooth_loss"):
        ConvexReadout(40, 0.1, "hinge")
    with pytest.raises(ParameterError, match="ridge must be positive"):
        ConvexReadout(40, 0, hinge)
