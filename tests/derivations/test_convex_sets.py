"""Random convex readouts: none fails, and none is wrong by more than it says."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import giantstep as gs
from giantstep.errors import ParameterError

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
    coarse, fine = (readout.solve_many([alpha], ridge, rtol=r) for r in (rtol, 1e-13))
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
        [9.603403843164894], 0.04279975637654018, rtol=1e-8
    )
    # Grids of ten times as many nodes, whose estimated error is 7e-10.
    difference = abs(found.values["test_error"][0] - 0.2044605636)
    assert difference <= found.errors["test_error"][0] < 1e-6


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
