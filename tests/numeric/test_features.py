"""First layers of finite size: rows, samples, what is measured, seeds, bad input."""

import math
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf, expit

from giantstep.derivations.spiked_random_features.convex.losses import convex_loss
from giantstep.derivations.spiked_random_features.convex.simulated import simulated_loss
from giantstep.errors import ConvergenceError, ParameterError
from giantstep.numeric.conditional_prediction import ConditionalPrediction
from giantstep.numeric.feature_labels import checked_channel
from giantstep.numeric.feature_losses import SQUARE, smooth_loss
from giantstep.numeric.feature_network import SteppedNetwork
from giantstep.numeric.feature_samples import READOUT, STEP, TEST, layer_samples
from giantstep.numeric.feature_setup import FeatureClass, FeatureSetup, row_counts
from giantstep.numeric.feature_simulation import simulate_features

LETTERS = (FeatureClass(0.4, (1.2, 0.3), 1.1), FeatureClass(0.6, (-0.6, 0.8), 1.02, 0.5))
GAMMA = [[0.7, 0.2], [-0.3, 0.8]]


def two_index(z):
    return np.sin(z[:, 0]) + z[:, 1]


def erf_slope(z):
    return 2 / math.sqrt(math.pi) * np.exp(-z * z)


def small(**changes):
    given = {"classes": LETTERS, "alignment": GAMMA, "teacher": two_index, "dimension": 60}
    return FeatureSetup(**({"student": np.tanh, **given} | changes))


def sole(**changes):
    given = {"classes": FeatureClass(spike=1.2, bulk_variance=1.1), "alignment": 0.9}
    return FeatureSetup(
        **({"student": np.tanh, "teacher": np.sin, "dimension": 60, **given} | changes)
    )


def samples(setup, layer, purpose, count, seed):
    """All samples in arrays, by the blocks themselves."""
    stream = np.random.SeedSequence(seed, spawn_key=(0,))
    found = layer_samples(setup.teacher, layer.teachers, setup.channel, stream, purpose, count)
    blocks = list(found)
    # One block each: its arrays are used again by the next.
    assert len(blocks) == 1
    return blocks[0]


# ------------------------------------------------------------------ rows


def test_rows_have_the_spikes_norms_and_biases_that_were_asked_for():
    setup = small()
    layer = setup.first_layer(3)
    assert layer.rows.shape == (60, 60)
    np.testing.assert_array_equal(np.bincount(layer.classes), [24, 36])
    np.testing.assert_array_equal(layer.biases, np.repeat([0, 0.5], [24, 36]))
    bulk = layer.rows - layer.centres[layer.classes] @ layer.spikes
    np.testing.assert_allclose(
        np.sum(bulk**2, axis=1), np.repeat([1.1, 1.02], [24, 36]), rtol=1e-12
    )
    np.testing.assert_allclose(layer.centres, [[1.2, 0.3], [-0.6, 0.8]])
    # Realised ones differ by O(1/d).
    np.testing.assert_allclose(layer.strengths, layer.centres, atol=4 / 60)
    np.testing.assert_allclose(layer.teachers @ layer.teachers.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(layer.alignment, GAMMA, atol=1e-12)


@pytest.mark.parametrize(
    "spike", [0.5, [0.5], (0.5,), np.array(0.5), np.array([0.5]), np.float64(0.5)]
)
def test_spikes_are_numbers_or_sequences(spike):
    assert FeatureClass(spike=spike).strengths == (0.5,)


def test_a_letter_of_zero_leaves_its_rows_where_they_are():
    layer = SteppedNetwork(
        np.tanh, np.cos, np.sin, 2.0, 4.0, (0.0, 1.0), (0.5, 0.5), dimension=100
    ).first_layer(0)
    np.testing.assert_allclose(np.linalg.norm(layer.rows[:50], axis=1), 1, rtol=1e-12)
    assert layer.strengths[1, 0] > 5 * abs(layer.strengths[0, 0])


def test_orthonormal_bulk_is_orthonormal():
    setup = sole(bulk="orthonormal", beta=0.5)
    layer = setup.first_layer(0)
    bulk = layer.rows - layer.centres[layer.classes] @ layer.spikes
    np.testing.assert_allclose(bulk @ bulk.T, 1.1 * np.eye(30), atol=1e-12)


def test_overlaps_are_those_of_the_definition():
    setup = small()
    layer = setup.first_layer(1)
    w = np.random.default_rng(0).standard_normal(60)
    found = layer.overlaps(w)
    bulk = layer.rows - layer.centres[layer.classes] @ layer.spikes
    across = np.eye(60) - layer.spikes.T @ layer.spikes
    zeta = layer.orthogonal_teachers
    np.testing.assert_allclose(zeta @ zeta.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(zeta @ layer.spikes.T, 0, atol=1e-12)
    for a in range(2):
        mine = layer.classes == a
        combined = w[mine] @ bulk[mine] / math.sqrt(60)
        assert found["m"][a] == pytest.approx(w[mine].sum() / math.sqrt(60))
        np.testing.assert_allclose(found["theta"][:, a], layer.spikes @ combined, atol=1e-12)
        np.testing.assert_allclose(found["psi"][:, a], zeta @ combined, atol=1e-12)
        assert found["q2"][a] == pytest.approx(w[mine] @ w[mine] / 60)
        for b in range(2):
            other = layer.classes == b
            theirs = w[other] @ bulk[other] / math.sqrt(60)
            assert found["q1"][a, b] == pytest.approx(combined @ across @ theirs)


def test_a_teacher_along_the_spike_has_nothing_across():
    layer = sole(alignment=1.0).first_layer(0)
    assert not layer.orthogonal_teachers.any()
    assert layer.overlaps(np.ones(60))["psi"].tolist() == [[0.0]]


@given(shares=st.lists(st.integers(1, 30), min_size=1, max_size=6), width=st.integers(40, 200))
@settings(max_examples=60, deadline=None)
def test_row_counts_are_the_nearest_with_the_right_sum(shares, width):
    fractions = np.array(shares) / sum(shares)
    if min(fractions) * width < 1:
        return
    counts = np.array(row_counts(tuple(fractions), width))
    assert counts.sum() == width
    assert np.all(np.abs(counts - fractions * width) < 1)


# ------------------------------------------------------------------ networks


def test_the_step_of_a_network_is_that_of_the_definition():
    setup = SteppedNetwork(
        erf, erf_slope, np.sin, 1.5, 4, (0.5, 1.0, 2.0), (0.3, 0.4, 0.3),
        noise_variance=0.1, dimension=40,
    )  # fmt: skip
    start = SteppedNetwork(
        erf, erf_slope, np.sin, 0.0, 4, (0.5, 1.0, 2.0), (0.3, 0.4, 0.3),
        noise_variance=0.1, dimension=40,
    ).first_layer(np.random.SeedSequence(7, spawn_key=(0,)))  # fmt: skip
    after = setup.first_layer(np.random.SeedSequence(7, spawn_key=(0,)))
    block = samples(setup, start, STEP, 160, 7)
    letters = np.array([0.5, 1.0, 2.0])[start.classes]
    inner = block.inputs @ start.rows.T
    residuals = block.labels - erf(inner) @ letters / 40
    expected = start.rows + 1.5 * letters[:, None] / 160 * (
        (residuals[:, None] * erf_slope(inner)).T @ block.inputs
    )
    np.testing.assert_allclose(after.rows, expected, rtol=1e-10, atol=1e-12)
    direction = residuals @ block.inputs
    np.testing.assert_allclose(after.spikes[0], direction / np.linalg.norm(direction), atol=1e-12)
    np.testing.assert_array_equal(after.centres, after.strengths)


def test_letters_realise_their_spikes():
    # Letters {.4, 1, 1.8}, erf/erf, s = 2, α0 = 5, Δ = .05: r = ã s h1 ν, c = 1 + s² ã² Y ȟ/α0
    # (Cui et al., arXiv 2402.04980, Result 3.1 for each letter).
    setup = SteppedNetwork(
        erf, erf_slope, erf, 2.0, 5.0, (0.4, 1.0, 1.8), (0.3, 0.4, 0.3), 1.0, 0.05, dimension=200
    )
    layers = [setup.first_layer(seed) for seed in range(12)]
    for name, theory in (
        ("strengths", [0.3785, 0.9462, 1.7031]),
        ("bulk_variances", [1.0095, 1.0597, 1.1934]),
    ):
        values = np.array([getattr(layer, name).ravel() for layer in layers])
        error = values.std(axis=0, ddof=1) / math.sqrt(len(layers))
        # |g|² and the rows across v have shifts of order 1/d: 1.5/d is allowed, not measured.
        assert np.all(np.abs(values.mean(axis=0) - theory) < 4 * error + 1.5 / 200)


# ------------------------------------------------------------------ fits and measurements


def test_ridge_readouts_and_errors_are_those_of_the_normal_equations():
    setup, ridge = small(noise_variance=0.2), 0.3
    found = simulate_features(setup, [0.5, 2], ridge=ridge, seeds=1, n_test=500, progress=False)
    layer = setup.first_layer(np.random.SeedSequence(0, spawn_key=(0,)))

    def features(inputs):
        return np.tanh(inputs @ layer.rows.T + layer.biases) / math.sqrt(60)

    for column, n in enumerate((30, 120)):
        block = samples(setup, layer, READOUT, 120, 0)
        phi, y = features(block.inputs)[:n], block.labels[:n]
        w = np.linalg.solve(phi.T @ phi + ridge * np.eye(60), phi.T @ y)
        training = np.mean((y - phi @ w) ** 2)
        fresh = samples(setup, layer, TEST, 500, 0)
        seen = features(fresh.inputs) @ w
        expected = {
            "training_error": training,
            "training_loss": training / 2,
            "objective": training / 2 + ridge / 2 * w @ w / n,
            "test_error": np.mean((fresh.target - seen) ** 2),
            "test_loss": np.mean((fresh.labels - seen) ** 2) / 2,
            **layer.overlaps(w),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(
                getattr(found, name)[0, column], value, rtol=1e-8, atol=1e-10
            )


def test_another_way_to_the_square_loss_gives_the_same():
    twin = smooth_loss(SQUARE.value, SQUARE.slope, name="square, by its slope")
    ridge, convex = (
        simulate_features(small(), [0.5, 2], ridge=0.1, loss=loss, seeds=2, progress=False)
        for loss in (SQUARE, twin)
    )
    for name in ("test_error", "training_error", "objective", "m", "theta", "psi", "q1", "q2"):
        np.testing.assert_allclose(
            getattr(convex, name), getattr(ridge, name), rtol=1e-4, atol=1e-6
        )
    assert convex.certificate.max() < 1e-9


def test_order_workers_executors_and_stores_change_no_number(tmp_path):
    setup = sole(student=np.tanh, teacher=np.sin)
    loss = simulated_loss(convex_loss("huber(0.4)"))
    options = {"ridge": 0.1, "seeds": 3, "progress": False, "loss": loss, "n_test": 300}
    plain = simulate_features(setup, [0.5, 2], **options, workers=1)
    turned = simulate_features(setup, [2, 0.5], **options, workers=3)
    np.testing.assert_array_equal(turned.test_error[:, ::-1], plain.test_error)
    np.testing.assert_array_equal(turned.q1[:, ::-1], plain.q1)
    kept = {"store": tmp_path, "description": "tanh/sin"}
    two = simulate_features(setup, [0.5, 2], **{**options, "seeds": 2}, **kept)
    assert len(list(tmp_path.iterdir())) == 2
    resumed = simulate_features(setup, [0.5, 2], **options, **kept)
    np.testing.assert_array_equal(two.test_error, plain.test_error[:2])
    np.testing.assert_array_equal(resumed.theta, plain.theta)
    # Another loss, channel or size has files of its own.
    square = {**options, "loss": SQUARE}
    near = simulate_features(setup, [0.5, 2], **square, **kept)
    assert len(list(tmp_path.iterdir())) == 6
    # The square loss has a way of its own to the readout, in other processes too.
    with ProcessPoolExecutor(1) as pool:
        for given_, expected in ((options, plain), (square, near)):
            far = simulate_features(setup, [0.5, 2], **given_, executor=pool)
            np.testing.assert_array_equal(far.objective, expected.objective)


def test_setups_and_losses_can_be_sent_to_other_processes():
    assert pickle.loads(pickle.dumps(sole())).width == 60


def test_errors_of_classification_are_shares_of_wrong_signs():
    setup = sole(teacher=np.sign, labels="sign")
    for loss in map(simulated_loss, map(convex_loss, ("square", "logistic", "hinge"))):
        found = simulate_features(
            setup, 2, ridge=0.1, loss=loss, seeds=2, n_test=400, progress=False
        )
        for name in ("test_error", "training_error"):
            values = getattr(found, name) * (400 if name == "test_error" else 120)
            np.testing.assert_allclose(values, np.round(values), atol=1e-9)
            assert np.all(getattr(found, name) < 0.3)


def test_labels_of_channels_have_their_law():
    generator = np.random.default_rng(0)
    target = np.full(40_000, 0.7)
    for name, noise, probability in (
        ("logistic", 0.0, expit(0.7)),
        ("probit", 0.5, (1 + erf(0.7 / math.sqrt(2 * 0.5))) / 2),
        ("sign", 0.0, 1.0),
    ):
        labels = checked_channel(name, noise).draw(target, generator, len(target))
        assert set(labels) <= {-1.0, 1.0}
        error = math.sqrt(probability * (1 - probability) / len(target))
        assert abs((labels == 1).mean() - probability) <= 4 * error
    poisson = checked_channel(lambda f, u: (u < f).astype(float), 0.0)
    assert poisson.draw(target, generator, len(target)).mean() == pytest.approx(0.7, abs=0.01)


def test_blocks_can_be_drawn_again_and_begin_alike():
    setup = sole(noise_variance=0.3)
    layer = setup.first_layer(0)
    seed = np.random.SeedSequence(5)

    def draw(count, start=0):
        return [
            (b.inputs.copy(), b.labels)
            for b in layer_samples(
                np.sin, layer.teachers, setup.channel, seed, READOUT, count, start=start
            )
        ]

    (one, labels), (two, rest) = draw(1500)
    np.testing.assert_array_equal(draw(700)[0][0], one[:700])
    np.testing.assert_array_equal(draw(700)[0][1], labels[:700])
    np.testing.assert_array_equal(draw(1500, 1024)[0][0], two)
    np.testing.assert_array_equal(draw(1500, 1024)[0][1], rest)


# ------------------------------------------------------------------ control variates


def test_any_control_variate_leaves_expectations():
    kappa = np.linspace(-8, 8, 65)
    wrong = ConditionalPrediction(kappa, kappa**2, np.cos(kappa))
    assert wrong.means == pytest.approx((1, math.exp(-0.5)), abs=1e-5)
    plain, controlled = (
        simulate_features(
            sole(), 2, ridge=0.1, seeds=12, n_test=4000, progress=False, prediction=prediction
        )
        for prediction in (None, wrong)
    )
    for name in ("test_error", "training_error"):
        difference = (getattr(controlled, name) - getattr(plain, name))[:, 0]
        error = difference.std(ddof=1) / math.sqrt(12)
        assert difference.any() and abs(difference.mean()) < 4 * error
    np.testing.assert_array_equal(controlled.m, plain.m)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": ()}, "no class"),
        ({"classes": (FeatureClass(0.5, 1.0),)}, "sum to 1"),
        ({"classes": (FeatureClass(0.5, 1.0), FeatureClass(0.5, (1.0, 2.0)))}, "same number"),
        ({"classes": (FeatureClass(1e-6, 1.0), FeatureClass(1 - 1e-6, 2.0))}, "no row"),
        ({"classes": [1.0]}, "FeatureClass"),
        ({"alignment": 1.2}, "at most 1"),
        ({"alignment": [0.5, 0.5]}, "one row for each of the 1 spike"),
        ({"alignment": "x"}, "alignment must be numbers"),
        ({"alignment": math.nan}, "at most 1"),
        ({"bulk": "fancy"}, "bulk must be one of"),
        ({"bulk": "orthonormal", "beta": 2.0}, "beta <= 1"),
        ({"labels": "poisson"}, "labels must be one of"),
        ({"labels": "logistic", "noise_variance": 0.1}, "noise_variance must be 0"),
        ({"labels": "probit"}, "noise_variance > 0"),
        ({"labels": np.sign, "noise_variance": 0.1}, "leave out noise_variance"),
        ({"dimension": 1}, "dimension must be at least 2"),
        ({"dimension": 2.5}, "dimension must be a whole number"),
        ({"student": 3}, "student must be a function"),
        ({"noise_variance": -1}, "noise_variance"),
    ],
)
def test_bad_setups_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        sole(**changes)


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"letters": (1, 2)}, "equally many"),
        ({"letters": ()}, "letters must be finite"),
        ({"letters": (1, 1), "fractions": (0.5, 0.5)}, "letters must differ"),
        ({"step_size": math.inf}, "step_size must be finite"),
        ({"alpha0": math.inf}, "alpha0"),
        ({"teacher_directions": 60}, "dimension must exceed"),
    ],
)
def test_bad_networks_are_refused(changes, message):
    arguments = {"step_size": 1.0, "alpha0": 2.0, "dimension": 60} | changes
    with pytest.raises(ParameterError, match=message):
        SteppedNetwork(np.tanh, np.cos, np.sin, **arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "hinge"}, "smooth_loss"),
        ({"loss": simulated_loss(convex_loss("hinge"))}, "labels ±1"),
        ({"ridge": 0}, "ridge must be positive"),
        ({"alpha": []}, "alpha"),
        ({"alpha": 0.001}, "too small"),
        ({"seeds": 0}, "seeds"),
        ({"workers": 1, "executor": object()}, "exclude each other"),
        ({"store": "somewhere"}, "description"),
        ({"prediction": [1]}, "ConditionalPrediction"),
        ({"prediction": []}, "one ConditionalPrediction"),
        ({"setup": 3}, "setup must be"),
    ],
)
def test_bad_simulations_are_refused(changes, message):
    arguments = {"setup": sole(), "alpha": 1.0, "ridge": 0.1, "seeds": 1, "progress": False}
    with pytest.raises(ParameterError, match=message):
        simulate_features(**(arguments | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"student": lambda z: z[:1]}, "student must return"),
        ({"teacher": lambda z: np.full_like(z, np.nan)}, "teacher is not finite"),
        ({"labels": lambda f, u: f[:2]}, "labels must return"),
        ({"labels": lambda f, u: f / 0 * u}, "not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_what_functions_return_is_checked(changes, message):
    with pytest.raises(ParameterError, match=message):
        simulate_features(sole(**changes), 1, ridge=0.1, seeds=1, progress=False)


@pytest.mark.parametrize(
    "grid",
    [np.linspace(-3, 3, 50), np.linspace(8, -8, 50), np.array([-8, 0, 1, 8.0]), np.ones((2, 2))],
)
def test_bad_predictions_are_refused(grid):
    with pytest.raises(ParameterError, match="kappa"):
        ConditionalPrediction(grid, grid, grid)


def test_a_concave_loss_is_not_fitted():
    concave = smooth_loss(lambda y, x: -(x**2), lambda y, x: -2 * x + y, name="concave")
    with pytest.raises((ConvergenceError, ParameterError), match="concave"):
        simulate_features(sole(), 1, ridge=1e-3, loss=concave, seeds=1, progress=False)
