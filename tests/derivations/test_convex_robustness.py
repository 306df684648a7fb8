"""Convex readouts far from where they are easy: small penalties, large overlaps, alignment."""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import sympy as sp
from scipy.special import erfinv, ndtr

import giantstep as gs
from giantstep.derivations.spiked_random_features.convex.labels import label_channel
from giantstep.derivations.spiked_random_features.convex.losses import (
    convex_loss,
    largest_curvature,
)
from giantstep.derivations.spiked_random_features.convex.solver import (
    NODES,
    Law,
    bends,
    folds,
    inner_widths,
)
from giantstep.errors import ParameterError
from giantstep.runtime.levels import Tables


@pytest.mark.parametrize(
    ("loss", "largest"),
    [
        ("square", 1), ("huber(0.3)", 1), ("logistic", sp.Rational(1, 4)), ("hinge", sp.oo),
        ("absolute", sp.oo), ("3*(x - y)**2 + abs(x - y)", sp.oo), ("relu(1 - y*x)**2/2", 1),
        ("log(cosh(x - y))", 1),
    ],
)  # fmt: skip
def test_the_curvature_of_a_loss_is_bounded(loss, largest):
    assert largest_curvature(convex_loss(loss)) == largest


def test_labels_jump_where_the_teacher_does():
    assert label_channel("teacher", "sin", 0.1).jumps == ()
    assert label_channel("teacher", "relu", 0.1).jumps == (0.0,)
    assert label_channel("teacher", "sign(z - 1) + tanh(z)", 0.0).jumps == (1.0,)
    assert label_channel("sign", "sin", 0.0).jumps == (0.0,)
    assert label_channel("logistic", "sin", 0.0).jumps == ()


# ------------------------------------------------------------------ where predictions change sides


def _law(strength, *, m=0.0, v1=0.0, q1=0.0, q2=0.0, psi=0.0):
    """Predictions on a student that is nearly a step: μ_0 an error function, μ_1 near its jump."""
    mean = np.array([math.erf(strength * k) for k in NODES])
    bump = np.exp(-((strength * NODES) ** 2))
    free, across = bump**2 * (q1 + q2 / 10), bump * psi
    return Law(m * mean, across, free + across**2, free, bump**2 * v1)


@pytest.mark.parametrize(("strength", "m"), [(1.0, 3.0), (3.0, 1.5), (-2.0, 8.0)])
def test_folds_are_where_the_mean_prediction_crosses_zero_and_kinks(strength, m):
    places, width = folds(_law(strength, m=m, q1=1e-4, q2=1e-4), kinks=(1.0,))
    kink = abs(float(erfinv(1 / m)) / strength)
    # Without a response V both ends of a ramp are at the kink.
    np.testing.assert_allclose(sorted(places), [-kink, -kink, 0.0, kink, kink], atol=1e-4)
    slope = m * 2 * abs(strength) / math.sqrt(math.pi)
    # The kink may be a little narrower than the change of sign.
    assert width == pytest.approx(math.sqrt(1.1e-4) / slope, rel=0.1)


def test_a_ramp_of_a_kink_has_two_ends():
    places, _ = folds(_law(1.0, m=3.0, q1=1e-4, v1=0.5), kinks=(1.0,))
    other = scipy.optimize.brentq(
        lambda k: 3 * math.erf(k) - 1 + 0.5 * math.exp(-2 * k**2), 0.0, 1.0
    )
    assert np.min(np.abs(np.array(places) - other)) < 1e-4


def test_a_readout_that_sees_no_mean_has_no_folds():
    places, width = folds(_law(1.0, q2=1.0), kinks=())
    assert places == []
    assert width == np.inf


def test_inner_averages_are_as_narrow_as_overlaps_are_large():
    # v = 1.1 at κ = 0, p = 2; q = 5.1.
    middle = len(NODES) // 2
    found = _law(1.0, q1=1.0, q2=1.0, psi=2.0)
    assert inner_widths(found, smooth=False)[middle] == pytest.approx(math.sqrt(1.1) / 2)
    large = inner_widths(_law(1.0, q1=1e3, q2=1e3), smooth=True)
    assert large[middle] == pytest.approx(1.8 / math.sqrt(1.1e3))
    # Where the student saturates there is no variance left.
    assert large[0] > 1e3
    assert np.all(inner_widths(_law(1.0, q1=1e3, q2=1e3), smooth=False) == np.inf)


def test_averages_bend_where_predictions_leave_a_kink():
    # C − 1 = 5 erf(3κ) − 1, of deviation 0.2: averages of what has a kink at 1 vary near its zero.
    distance = (5 * np.array([math.erf(3 * k) for k in NODES]) - 1) / 0.2
    places, width = bends([distance])
    kink = float(erfinv(1 / 5)) / 3
    assert min(abs(place - kink) for place in places) < width
    slope = 5 * 6 / math.sqrt(math.pi) * math.exp(-((3 * kink) ** 2)) / 0.2
    assert width == pytest.approx(2 / slope, rel=0.3)
    # A prediction that does not move bends nothing.
    assert bends([np.zeros_like(NODES)]) == ([], np.inf)


# ------------------------------------------------------------------ solved readouts


@pytest.fixture(scope="module")
def separable():
    """A student that is nearly a step, and labels that nearly follow it."""
    return gs.SpikedRandomFeatures.from_parameters(
        "erf", "sign", spike_strength=-2.322, bulk_variance=1.000156, alignment=0.99972, beta=2.83
    )


@pytest.mark.slow
def test_nearly_separable_labels_are_fitted_with_a_small_penalty(separable):
    readout = gs.ConvexReadout(separable, "logistic", "sign")
    # Followed from large penalties; the error is near that of labels given by the spike alone.
    found = readout.solve_many(alpha=[11.87], ridge=1.26e-8)
    assert found.converged.all()
    spike_alone = math.acos(0.99972) / math.pi
    values = {name: float(column[0]) for name, column in found.values.items()}
    assert 0.9 * spike_alone < values["test_error"] < spike_alone
    assert values["test_error"] == pytest.approx(_error(readout, values), rel=1e-6)


@pytest.mark.slow
def test_logistic_losses_are_resolved_where_predictions_are_in_the_hundreds():
    """There the loss bends within a few thousandths of the prediction's deviation.

    The mean weight m is negative, and grows like a power of the penalty as well.
    """
    features = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sign", spike_strength=-0.022714674694653936, bulk_variance=1.1526385245090407,
        alignment=0.9862258726311838, beta=1.2623531288037089,
    )  # fmt: skip
    readout = gs.ConvexReadout(features, "logistic", "sign")
    found = readout.solve_many(alpha=[31.183616015647146], ridge=1.2677482672531497e-07, rtol=1e-6)
    values = {name: float(column[0]) for name, column in found.values.items()}
    assert values["test_error"] == pytest.approx(_error(readout, values), rel=1e-7)
    assert found.errors["test_error"][0] < 1e-7


@pytest.mark.slow
def test_training_losses_are_finite_where_the_student_saturates():
    # In tails the step of the envelope underflows to zero.
    features = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sign", spike_strength=-3.86, bulk_variance=1.00264, alignment=0.9966, beta=0.36
    )
    found = gs.ConvexReadout(features, "logistic", "sign").solve_many(alpha=[10.7], ridge=0.0477)
    assert 0 < found.values["training_loss"][0] < found.values["test_loss"][0]


@pytest.mark.slow
def test_a_sign_that_changes_fast_is_resolved():
    # The deviation of a prediction is a hundredth of the slope of its mean at κ = 0; uniform rules
    # of 240 000 nodes still are off by 3e-3.
    features = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sign", spike_strength=-1.6953, bulk_variance=1.00014, alignment=0.97197, beta=2.0966
    )
    found = gs.ConvexReadout(features, "logistic", "sign").solve_many(alpha=[2.0966], ridge=4.2834)
    assert found.errors["test_error"][0] < 1e-8
    readout = gs.ConvexReadout(features, "logistic", "sign")
    values = {name: float(column[0]) for name, column in found.values.items()}
    assert values["test_error"] == pytest.approx(_error(readout, values), rel=1e-8)


def _error(readout, values):
    """Return the error of a readout of given overlaps, by composite rules over κ and s."""
    spike = readout.spike
    edges = np.array([-9, -4, -2, -1, -0.4, -0.1, -0.03, -0.01, 0.0])
    edges = np.concatenate([edges, -edges[-2::-1]])
    kappa, weights = _composite(edges[:-1], edges[1:])
    solver = readout._solver
    tables = Tables(solver.kernel.tables, solver._table_values)(kappa)
    mu_1 = tables["mu_1"]
    mean = tables["mu_0"] * values["m"] + mu_1 * kappa * values["theta"]
    along = mu_1 * values["psi"]
    left = np.sqrt(mu_1**2 * values["q1_orthogonal"] + tables["mu_2_squared"] * values["q2"])
    # The label jumps where γκ + ρs = 0.
    jump = np.clip(-spike.alignment * kappa / spike.orthogonal_alignment, -9, 9)
    total = 0.0
    for sign, low, high in ((-1, np.full_like(jump, -9), jump), (1, jump, np.full_like(jump, 9))):
        pieces = np.linspace(low, high, 41)
        for a, b in itertools.pairwise(pieces):
            t, w = np.polynomial.legendre.leggauss(12)
            s = (a + b)[:, None] / 2 + (b - a)[:, None] / 2 * t
            with np.errstate(divide="ignore"):
                wrong = ndtr(-sign * (mean[:, None] + along[:, None] * s) / left[:, None])
            total += weights @ ((wrong * np.exp(-(s**2) / 2)) @ w * (b - a) / 2)
    return total / math.sqrt(2 * math.pi)


def _composite(low, high):
    """Return Gauss-Legendre nodes on intervals, and weights with the normal density."""
    t, w = np.polynomial.legendre.leggauss(40)
    x = ((low + high)[:, None] / 2 + (high - low)[:, None] / 2 * t).ravel()
    weights = ((high - low)[:, None] / 2 * w).ravel()
    return x, weights * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


@pytest.mark.slow
def test_a_kink_on_which_all_residuals_lie_is_solved_at_small_penalties():
    """Below interpolation V grows like 1/λ, and the mean slope of the envelope falls like 1/V.

    As the difference of slopes of order one it had five digits less than they have, its square ten,
    and the residual of a solution stayed above every tolerance. Without residuals the loss does
    not matter: all losses interpolate alike, and so does ridge regression.
    """
    features = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=-0.0438, bulk_variance=1.751, alignment=0.99986,
        beta=0.338, noise_variance=0.1887,
    )  # fmt: skip
    found = gs.ConvexReadout(features, "absolute").solve(alpha=0.1459, ridge=8.4e-7)
    ridge = features.solve(alpha=0.1459, ridge=1e-9)
    assert found.test_error == pytest.approx(ridge.test_error, rel=1e-6)
    assert found.residual < 1e-10


# ---------------------------------------------------------------------- random readouts


_BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "convex_readout_sets.py"
_LOSSES = ["hinge", "logistic", "absolute", "huber(0.5)", "quantile(0.3)"]


@pytest.fixture(scope="module")
def sets():
    spec = importlib.util.spec_from_file_location("convex_readout_sets", _BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        # Dataclasses look their module up.
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


@pytest.mark.slow
@pytest.mark.parametrize("loss", _LOSSES)
def test_random_sets_are_solved(sets, loss):
    rng = np.random.default_rng(5)
    found = [sets.outcome(n, *sets.random_readout(loss, rng), 1e-8) for n in range(5)]
    assert not [o.error for o in found if o.error]
    assert max(o.residual for o in found) < 1e-12


def _misses(readout, alpha, ridge, rtol=1e-3):
    """Return by how much a coarse answer is off a fine one, relative to what both say."""
    coarse, fine = (readout.solve_many(alpha=[alpha], ridge=ridge, rtol=r) for r in (rtol, 1e-13))
    found = {}
    for name, error in coarse.errors.items():
        difference = abs(coarse.values[name] - fine.values[name])
        found[name] = float((difference / (error + fine.errors[name])).item())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("loss", _LOSSES)
def test_errors_are_never_understated(sets, loss):
    rng = np.random.default_rng(7)
    for _ in range(4):
        # Two rules that are both far from the limit, at 1e-3, say up to 15 % too little.
        misses = _misses(*sets.random_readout(loss, rng), rtol=1e-6)
        assert max(misses.values()) <= 1.0, misses


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "seed", "numbers"),
    # The last: readouts that interpolate, whose losses come from tails or cancel, and an output
    # that agrees by luck where the others show no gain.
    [("hinge", 5, (70, 96)), ("absolute", 5, (0,)), ("huber(0.5)", 8, (56, 91, 147))],
)
def test_errors_are_not_understated_where_rules_tell_little(sets, loss, seed, numbers):
    """Crowded panels are not halved from rule to rule, and a coarse grid may be far off."""
    rng = np.random.default_rng(seed)
    drawn = [sets.random_readout(loss, rng) for _ in range(max(numbers) + 1)]
    for number in numbers:
        misses = _misses(*drawn[number], rtol=1e-8)
        assert max(misses.values()) <= 1.0, misses


@pytest.mark.slow
def test_errors_are_not_understated_where_no_rule_resolves_labels():
    """Without noise labels are as narrow as what a field leaves of them."""
    features = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=-2.7252724430604944, bulk_variance=1.0834798501362959,
        alignment=0.7423685793595419, beta=0.40471183839969915,
    )  # fmt: skip
    found = features.with_loss("huber(0.3)").solve_many(
        alpha=[9.603403843164894], ridge=0.04279975637654018, rtol=1e-8
    )
    # Grids of ten times as many nodes, whose estimated error is 7e-10.
    difference = abs(found.values["test_error"][0] - 0.2044605636)
    assert difference <= found.errors["test_error"][0] < 1e-6


@pytest.mark.slow
def test_a_fine_rule_is_followed_where_the_coarse_one_has_another_solution():
    """There the coarse rule says 112, next to the interpolation threshold."""
    features = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=0.9134024261166088, bulk_variance=1.016375195817099,
        alignment=0.9998181922193898, beta=4.8828949398513375, noise_variance=0.02640461465861634,
    )  # fmt: skip
    found = features.with_loss("absolute").solve(
        alpha=4.8828949398513375, ridge=1.4606111641413971e-08
    )
    # On the curve through 746.166 and 729.361 at penalties that are 2 per cent smaller and larger.
    assert found.test_error == pytest.approx(737.63209, rel=1e-8)
    assert found.errors["test_error"] < 1e-8


@pytest.fixture(scope="module")
def huber():
    features = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=1.2, bulk_variance=1.1, alignment=0.9, noise_variance=0.1
    )
    return features.with_loss("huber(0.3)")


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "ridge"), [(2.0, 0.1), (0.5, 1e-4)])
def test_the_error_of_one_loss_is_not_understated(huber, alpha, ridge):
    assert max(_misses(huber, alpha, ridge).values()) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ridge", "known"),
    # At last the sign of the prediction is that of the projection on the spike.
    [(1e3, 0.143538719894), (3e4, 0.143565372684), (1e9, math.acos(0.9) / math.pi)],
)
def test_a_hinge_is_solved_at_large_penalties(ridge, known):
    """Predictions are next to certain there, and the average of a step is steep."""
    features = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sign", spike_strength=1.2, bulk_variance=1.1, alignment=0.9
    )
    found = features.with_loss("hinge", labels="sign").solve(alpha=2, ridge=ridge)
    assert found.test_error == pytest.approx(known, rel=1e-6)
    assert found.errors["test_error"] < 1e-9


@pytest.mark.slow
def test_a_hinge_is_solved_where_mean_features_have_the_margin():
    """Far out the prediction is 1 to 2e-11; the residual there is rounding of 1."""
    features = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sign", spike_strength=-3.363390422705672, bulk_variance=1.1047559045582562,
        alignment=0.3902136079714532, beta=1.1058661697651557,
    )  # fmt: skip
    found = features.with_loss("hinge", labels="sign").solve(
        alpha=1.645512111758542, ridge=0.0005747099299237695
    )
    assert found.m == pytest.approx(-1.0, abs=1e-9)
    assert found.errors["test_error"] < 1e-8


@pytest.mark.slow
def test_expansions_are_those_of_the_square_loss(huber):
    with pytest.raises(ParameterError, match=r"'large_alpha'.*huber\(0.3\).*use loss='square'"):
        huber.expansion("large_alpha", ridge=0.1)
    square = huber.features.with_loss("square").expansion("large_alpha", 1, ridge=0.1, digits=10)
    series = huber.features.expansion("large_alpha", 1, ridge=0.1, digits=10)
    assert square.coefficients == series.coefficients


@pytest.mark.slow
def test_the_spectrum_is_that_of_the_features(huber):
    found, features = (m.spectrum(alpha=1.5, points=60) for m in (huber, huber.features))
    np.testing.assert_array_equal(found.densities, features.densities)
