"""The spike of the first layer: reference digits, limits, properties and refusals."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad

from giantstep import OneGradientStep
from giantstep.derivations.one_gradient_step.weight_spike import outlier_at, weight_spike_curve
from giantstep.errors import AssumptionError, ParameterError

NUMBERS = (
    "theta1", "theta2", "alignment", "critical_step_size", "singular_value", "alignment_spike",
    "alignment_teacher", "alignment_readout", "atom",
)  # fmt: skip


def network(**changes):
    given = {"alpha": 2.0, "beta": 1.5, "step_size": 3.0, "noise_variance": 0.25, **changes}
    return OneGradientStep(given.pop("student", "erf"), given.pop("teacher", "erf"), **given)


# ------------------------------------------------------------------ precision


@pytest.mark.parametrize("over", [1e-15, 1e-12, 1e-9, 1e-5, 0.3, 10.0])
@pytest.mark.parametrize("beta", [1e-6, 0.3, 1.0, 2.0, 1e6])
def test_floats_keep_their_digits_next_to_the_threshold(over, beta):
    model = network(beta=beta)
    critical = model.weight_spike(digits=40).critical_step_size
    step = float(critical * (1 + mpmath.mpf(over)))
    near = replace(model, step_size=step)
    found, exact = near.weight_spike(), near.weight_spike(digits=40)
    curve = weight_spike_curve(model, [step])
    assert found.supercritical == exact.supercritical == bool(curve["supercritical"][0])
    for name in NUMBERS:
        value = float(getattr(exact, name))
        assert_allclose(getattr(found, name), value, rtol=1e-15, atol=0)
        if name in curve:
            assert_allclose(curve[name].item(), value, rtol=4e-14 if over > 0.1 else 1e-13)


@pytest.mark.parametrize("step", [1e-300, 1e150, 1e300])
def test_extreme_steps_have_no_overflow(step):
    found = network(step_size=step).weight_spike()
    assert all(math.isfinite(getattr(found, name)) for name in NUMBERS)
    if step > 1:
        assert_allclose(found.singular_value, found.theta1, rtol=1e-14)
        assert found.alignment_spike == found.alignment_readout == 1


def test_a_spike_beyond_floats_is_refused_but_has_digits():
    model = network(step_size=1.7e308, noise_variance=1e6)
    with pytest.raises(ParameterError, match=r"too large for a float; use a smaller step_size"):
        model.weight_spike()
    with pytest.raises(ParameterError, match=r"too large for a float"):
        model.weight_spike_curve([1.0, 1.7e308])
    assert model.weight_spike(digits=15).theta1 > 1.7e308


# ------------------------------------------------------------------ limits


def test_no_step_and_no_linear_part_leave_the_bulk():
    still = network(step_size=0).weight_spike()
    assert (still.theta1, still.theta2, still.supercritical) == (0, 0, False)
    assert still.singular_value == pytest.approx(1 + math.sqrt(1.5), rel=1e-15)
    flat = network(student="z**2 - 1").weight_spike()
    assert flat.critical_step_size == math.inf and flat.theta1 == 0
    assert "no step size makes an outlier" in str(flat)
    assert json.loads(flat.to_json())["critical_step_size"] == "inf"
    jump = network(student="sign", step_size=0).weight_spike()
    assert jump.theta1 == 0 and not jump.supercritical


def test_infinitely_many_samples_make_the_spike_parallel_to_the_teacher():
    found = network(alpha0=math.inf, step_size=4).weight_spike()
    assert found.alignment == 1 and found.theta1 == found.theta2
    assert found.alignment_teacher == found.alignment_spike
    blind = network(teacher="z**2 - 1", alpha0=math.inf, step_size=4).weight_spike()
    assert blind.theta1 == blind.alignment == 0 and blind.critical_step_size == math.inf
    late = network(alpha0=1e12, step_size=4).weight_spike()
    assert_allclose(late.singular_value, found.singular_value, rtol=1e-11)


def test_samples_of_the_step_count_and_not_those_of_the_readout():
    assert network(alpha=7, alpha0=2.0).weight_spike().theta1 == network().weight_spike().theta1


def test_a_negative_slope_turns_the_spike_round():
    plus, minus = (network(student=s).weight_spike() for s in ("erf", "-erf(z)"))
    assert minus.theta2 == -plus.theta2 and minus.alignment == -plus.alignment
    assert minus.singular_value == plus.singular_value
    assert minus.alignment_teacher == plus.alignment_teacher


# ------------------------------------------------------------------ properties

sizes = st.floats(0.05, 20)


@settings(max_examples=15, deadline=None)
@given(sizes, sizes, sizes, st.floats(0, 5), st.sampled_from(["half", "full"]))
def test_properties_over_the_range(alpha, beta, step, noise, loss):
    model = network(alpha=alpha, beta=beta, step_size=step, noise_variance=noise, loss=loss)
    found = model.weight_spike()
    assert found.theta1 >= abs(found.theta2)
    assert_allclose(found.alignment, found.theta2 / found.theta1, rtol=1e-14)
    assert found.supercritical == (step > found.critical_step_size)
    assert found.singular_value >= found.bulk_edges[1]
    for name in ("alignment_spike", "alignment_teacher", "alignment_readout"):
        assert 0 <= getattr(found, name) <= 1
    # The spike cannot be longer than the largest singular value and the bulk together.
    assert found.theta1 - found.bulk_edges[1] <= found.singular_value
    assert found.singular_value <= found.theta1 + found.bulk_edges[1]
    top, left, right = outlier_at(model, found.theta1**2)
    # One rounding of T is multiplied by 1/(distance to the threshold).
    slack = 1e-14 / max(abs(step / found.critical_step_size - 1), 1e-6)
    assert_allclose(top, found.singular_value, rtol=1e-13)
    assert_allclose([left, right], [found.alignment_spike, found.alignment_readout], atol=slack)


@settings(max_examples=10, deadline=None)
@given(sizes, sizes, st.floats(0, 5))
def test_the_curve_is_continuous_and_monotone(alpha, beta, noise):
    model = network(alpha=alpha, beta=beta, noise_variance=noise)
    critical = model.weight_spike().critical_step_size
    steps = critical * np.concatenate([np.linspace(0, 4, 40), 1 + np.logspace(-12, 0, 30)])
    curve = model.weight_spike_curve(np.sort(steps))
    for name in ("singular_value", "alignment_spike", "alignment_teacher", "alignment_readout"):
        values = curve[name].to_numpy()
        assert np.isfinite(values).all() and (np.diff(values) >= -1e-14).all()
    just_above = model.weight_spike_curve([critical * (1 + 1e-12)])
    edge = 1 + math.sqrt(model.beta)
    assert_allclose(just_above["singular_value"].item(), edge, rtol=1e-14)
    assert just_above["alignment_readout"].item() < 1e-10


# ------------------------------------------------------------------ curve, densities, values


def test_the_curve_is_the_points():
    model = network(loss="full")
    steps = [0.0, 0.3, 1.0, 1.05, 2.0, 7.0]
    curve = model.weight_spike_curve(steps)
    assert curve["step_size"].to_numpy().tolist() == steps and curve.attrs["kind"] == "theory"
    for i, step in enumerate(steps):
        point = replace(model, step_size=step).weight_spike()
        for name in curve.data_vars:
            assert_allclose(curve[name][i].item(), getattr(point, str(name)), rtol=1e-13)
    assert model.weight_spike_curve(2.0).sizes["step_size"] == 1
    assert model.weight_spike_curve(np.arange(3)).sizes["step_size"] == 3


@pytest.mark.parametrize("beta", [0.25, 1.0, 2.0, 50.0])
def test_bulk_and_atom_have_mass_one(beta):
    found = network(beta=beta).weight_spike()
    lower, upper = found.bulk_edges
    assert_allclose(quad(found.density, lower, upper)[0], 1, rtol=1e-8)
    gram = quad(found.gram_density, lower**2, upper**2, limit=400)[0]
    assert_allclose(gram + found.atom, 1, rtol=1e-7)
    assert_allclose(found.atom, max(0.0, 1 - beta), rtol=0, atol=1e-16)
    assert found.density([lower - 1e-3, upper + 1e-3, -1.0]).tolist() == [0, 0, 0]
    middle = (lower + upper) / 2
    mass = 2 * middle * found.gram_density(middle**2) / min(1, beta)
    assert_allclose(found.density(middle), mass, rtol=1e-13)


def test_densities_at_the_hard_edge():
    found = network(beta=1.0).weight_spike()
    # The quarter-circle law sqrt(4 - s²)/pi.
    assert_allclose(found.density([0.0, 1.0, 2.0]), np.sqrt([4, 3, 0]) / math.pi, rtol=1e-14)
    assert found.gram_density(0.0) == math.inf and found.gram_density(-1) == 0
    with pytest.raises(ParameterError, match="x must be a real number or an array of them"):
        found.density("1")
    with pytest.raises(ParameterError, match="x must hold no nan"):
        found.gram_density([1.0, math.nan])


@pytest.mark.slow
def test_cached_functions_are_not_derived_again():
    model = network()
    model.weight_spike_curve([1.0, 4.0])  # fills the cache
    model.risk(ridge=0.1)
    model.curve(ridge=[0.1, 1])
    program = (
        "from giantstep import OneGradientStep as M; "
        "from giantstep.numeric.cache import FileCache; FileCache.store_json = None; "
        "m = M('erf', 'erf', alpha=2.0, beta=1.5, step_size=3.0, noise_variance=0.25); "
        "m.weight_spike(); m.weight_spike(digits=30); m.weight_spike().density(1.0); "
        "m.weight_spike_curve([1.0, 4.0]); m.risk(ridge=0.1); m.curve(ridge=[0.1, 1]); "
        "import sys; print(sorted({'numba', 'matplotlib'} & {*sys.modules}))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


def test_figures_of_theory_and_of_networks():
    model = network(step_size=4, beta=0.5, alpha=2, alpha0=4)
    axes = model.weight_spike().plot(model.simulate_spectra(40, seeds=2, matrices=("weights",)))
    labels = [t.get_text() for t in axes.get_legend().get_texts()]
    assert any("outlier, theory" in label for label in labels) and "simulation" in labels
    quiet = network(step_size=0.1).weight_spike().plot([0.3, 1.0, 2.0])
    assert any("no outlier" in t.get_text() for t in quiet.get_legend().get_texts())
    spike = model.weight_spike()
    assert spike.plot(ax=axes) is axes
    for bad in ("text", [[[1.0]]], [math.nan], [-1.0], []):
        with pytest.raises(ParameterError, match="singular_values must be nonnegative numbers"):
            spike.plot(bad)
    with pytest.raises(ParameterError, match="ax must be axes of matplotlib"):
        spike.plot(ax=3)


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("digits", [0, -3, 2.5, "10", True, math.inf, 10**9])
def test_digits_are_checked(digits):
    with pytest.raises(ParameterError, match="digits must be"):
        network().weight_spike(digits=digits)


@pytest.mark.parametrize(
    "steps",
    ["1", [], [-1.0], [math.nan], [math.inf], [[1.0]], np.ones((2, 2)), [None], None, [True]],
)
def test_step_sizes_are_checked(steps):
    with pytest.raises(ParameterError, match="step_size must"):
        network().weight_spike_curve(steps)


def test_a_student_that_jumps_takes_no_step():
    model = network(student="sign", step_size=0)
    assert not model.weight_spike_curve([0.0])["supercritical"].any()
    with pytest.raises(AssumptionError, match="jumps"):
        model.weight_spike_curve([0.0, 1.0])
