"""Simulated networks of one gradient step beside the theory, and the risk given a first layer."""

import math
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from giantstep import OneGradientStep, paper_ridge
from giantstep.derivations.one_gradient_step.simulated import one_step_network
from giantstep.errors import ClosedFormNotFoundError, GiantstepError, ParameterError

from .one_step_cases import MODEL

QUIET = {"progress": False}


# ------------------------------------------------------------------ simulated networks


def test_several_steps_and_their_conditional_prediction():
    # tanh/tanh, s_e = 0.3, α = 3, β = 2, λ_B = .05, η = 1: closed form at one step .1140.
    model = OneGradientStep("tanh", "tanh", alpha=3, beta=2, step_size=1, noise_variance=0.09)
    found = model.simulate(
        100, ridge=paper_ridge(0.05), steps=[1, 3], seeds=10, conditional=True, n_test=3000, **QUIET
    )
    assert found.step.values.tolist() == [0, 1, 3]
    gap = (found.risk - found.risk_conditional).isel(ridge=0)
    error = gap.std("seed", ddof=1) / math.sqrt(10)
    assert float(abs(gap.mean("seed") / error).max()) < 4
    assert float(found.risk_conditional.sel(step=0).mean()) == pytest.approx(
        float(found.risk_initial_theory[0]), rel=0.05
    )
    means = found.risk.mean(("seed", "ridge")).values
    assert means[0] > means[1] > means[2]


@pytest.mark.parametrize(
    ("student", "teacher"), [("erf", "erf"), ("erf", "relu"), ("relu", "relu"), ("sin", "sin")]
)
def test_exact_risk_is_that_of_test_samples(student, teacher):
    model = OneGradientStep(
        student, teacher, alpha=2, beta=1.5, step_size=3, noise_variance=0.1, centre=True
    )
    options = {"ridge": [0.05, 1.0], "seeds": 1, "exponent": 0.25, **QUIET}
    exact = model.simulate(30, exact_risk=True, **options)
    sampled = model.simulate(30, n_test=60_000, **options)
    # Squared errors have a relative spread of about 1.4; of other tails at most thrice that.
    np.testing.assert_allclose(exact.risk, sampled.risk, rtol=4 * 4.2 / math.sqrt(60_000))
    np.testing.assert_array_equal(exact.training_error, sampled.training_error)


def test_the_improvement_is_a_paired_difference():
    found = MODEL.simulate(40, ridge=[0.01, 0.1], seeds=12, n_test=1000, **QUIET)
    gap = found.risk.sel(step=0) - found.risk.sel(step=1)
    np.testing.assert_allclose(found.improvement, gap.mean("seed"), rtol=1e-13)
    error = gap.std("seed", ddof=1) / math.sqrt(12)
    np.testing.assert_allclose(found.improvement_standard_error, error, rtol=1e-13)
    apart = np.hypot(found.risk_initial_standard_error, found.risk_trained_standard_error)
    assert (found.improvement_standard_error < apart).all()


def test_the_full_loss_takes_twice_the_step():
    full = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=1, noise_variance=0.25,
                           loss="full")  # fmt: skip
    options = {"ridge": 0.1, "seeds": 2, "n_test": 500, **QUIET}
    np.testing.assert_array_equal(
        full.simulate(30, **options).risk, MODEL.simulate(30, **options).risk
    )


def test_large_steps_have_no_theory_beside_them():
    found = MODEL.simulate(40, ridge=0.1, seeds=2, exponent=0.5, conditional=True, n_test=500,
                           **QUIET)  # fmt: skip
    assert "risk_trained_theory" not in found and "risk_conditional" in found
    # The standard scaling takes another factor of sqrt(60) off.
    assert one_step_network(MODEL, 40, exponent=0.5).rate == pytest.approx(2)


def test_where_there_is_no_limit_there_is_no_theory():
    model = OneGradientStep("erf", "erf", alpha=1.5, beta=1.5, step_size=2)
    found = model.simulate(20, ridge=[0.0, 0.1], seeds=2, n_test=500, **QUIET)
    assert np.isfinite(found.risk).all() and "risk_initial_theory" not in found


@pytest.mark.filterwarnings("error")
def test_steps_of_any_size_give_finite_numbers():
    options = {"ridge": [0.0, 0.1], "seeds": 2, "n_test": 500, **QUIET}
    for exponent in (-200, 10):
        for features in ("network", "gaussian"):
            found = MODEL.simulate(20, exponent=exponent, features=features, **options)
            assert np.isfinite(found.risk).all() and np.isfinite(found.objective).all()
        spectra = MODEL.simulate_spectra(20, seeds=2, exponent=exponent, **QUIET)
        assert np.isfinite(spectra.singular_values).all()
    with pytest.raises(ParameterError, match="overflow"):
        MODEL.simulate(20, exponent=50, **options)


def test_predictions_are_made_in_other_processes_too():
    options = {"ridge": 0.1, "seeds": 2, "conditional": True, "exact_risk": True, **QUIET}
    here = MODEL.simulate(20, **options)
    with ProcessPoolExecutor(1) as executor:
        there = MODEL.simulate(20, executor=executor, **options)
    np.testing.assert_array_equal(here.risk, there.risk)
    np.testing.assert_array_equal(here.risk_conditional, there.risk_conditional)


def test_penalties_of_the_paper():
    ours = MODEL.simulate(20, ridge=0.2, seeds=2, n_test=500, **QUIET)
    theirs = MODEL.simulate(20, ridge=paper_ridge(0.15), seeds=2, n_test=500, **QUIET)
    np.testing.assert_allclose(ours.risk, theirs.risk, rtol=1e-12)
    assert float(ours.paper_ridge[0]) == pytest.approx(0.15)


def test_centred_functions():
    model = OneGradientStep("softplus", "relu", alpha=2, beta=1, step_size=2, centre=True)
    network = one_step_network(model, 10)
    z = np.random.default_rng(0).standard_normal(200_000)
    for function in (network.student, network.teacher):
        values = function(z)
        assert abs(values.mean()) < 4 * values.std() / math.sqrt(len(z))
    np.testing.assert_allclose(network.student_derivative(z[:9]), 1 / (1 + np.exp(-z[:9])))


def test_spectra_of_a_model():
    model = OneGradientStep("tanh", "relu", alpha=4, beta=2, step_size=6, noise_variance=1,
                            centre=True)  # fmt: skip
    found = model.simulate_spectra(100, seeds=6, steps=[1, 2], layer="rank one", **QUIET)
    assert found.singular_values.shape == (6, 3, 100)
    assert found.kernel_eigenvalues.shape == (6, 3, 400)
    # 40-digit arithmetic: s_1 = 3.3148 after one step.
    top = found.singular_values.sel(step=1)[:, 0]
    assert abs(float(top.mean()) - 3.3148) < 4 * float(top.std(ddof=1)) / math.sqrt(6)
    assert (found.singular_values.diff("mode") <= 0).all()
    one = model.simulate_spectra(100, seeds=6, matrices=["weights"], layer="rank one", **QUIET)
    np.testing.assert_array_equal(one.singular_values, found.singular_values.sel(step=[0, 1]))
    assert "kernel_eigenvalues" not in one
    given_spike = model.simulate_spectra(40, seeds=2, matrices=["weights"], layer="theory", **QUIET)
    assert given_spike.step.values.tolist() == [0, 1]


def test_the_population_gradient_is_simulated_by_its_spike():
    model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, alpha0=math.inf)
    with pytest.raises(ParameterError, match="finitely many samples"):
        model.simulate(20, ridge=0.1, **QUIET)
    found = model.simulate(20, ridge=0.1, seeds=2, layer="theory", n_test=500, **QUIET)
    assert np.isfinite(found.risk).all()


@pytest.mark.parametrize(
    ("dimension", "options", "said"),
    [
        (1, {"ridge": 0.1}, "dimension must be >= 2"),
        (20.5, {"ridge": 0.1}, "dimension must be a whole number"),
        ("20", {"ridge": 0.1}, "dimension must be a whole number"),
        (20, {}, "ridge must be given"),
        (20, {"ridge": 0.1, "paper_ridge": 0.1}, "give the penalty once"),
        (20, {"ridge": []}, "ridge must hold"),
        (20, {"ridge": [[0.1]]}, "ridge must be a number"),
        (20, {"ridge": np.ones((2, 2))}, "at most one dimension"),
        (20, {"ridge": -0.1}, "ridge must be >= 0"),
        (20, {"ridge": [0.1, 0.1]}, "must differ"),
        (20, {"ridge": "a"}, "ridge must be a number"),
        (20, {"ridge": 0.1, "features": "ntk"}, "features"),
        (20, {"ridge": 0.1, "labels": "gaussian"}, "labels"),
        (20, {"ridge": 0.1, "layer": "given"}, "layer must be one of"),
        (20, {"ridge": 0.1, "steps": -1}, "steps"),
        (20, {"ridge": 0.1, "steps": []}, "steps"),
        (20, {"ridge": 0.1, "steps": "two"}, "steps"),
        (20, {"ridge": 0.1, "steps": [1, 2], "layer": "theory"}, "steps must be one number"),
        (20, {"ridge": 0.1, "exponent": math.nan}, "exponent"),
        (20, {"ridge": 0.1, "fresh": "no"}, "fresh must be True or False"),
        (20, {"ridge": 0.1, "conditional": 1}, "conditional must be True or False"),
        (20, {"ridge": 0.1, "exact_risk": None}, "exact_risk must be True or False"),
        (10**6, {"ridge": 0.1}, "GB of memory"),
        (20, {"ridge": 0.1, "n_test": 0}, "n_test must be >= 1"),
        (3, {"ridge": 0.1}, "dimension=3 is too small for beta"),
    ],
)
def test_wrong_simulations(dimension, options, said):
    with pytest.raises(ParameterError, match=said):
        MODEL.simulate(dimension, **{**QUIET, **options})


def test_no_step_gives_no_improvement():
    still = OneGradientStep("sign", "erf", alpha=2, beta=1.5, step_size=0, alpha0=5)
    found = still.simulate(30, ridge=0.1, seeds=2, n_test=500, **QUIET)
    assert float(found.improvement[0]) == 0 == float(found.improvement_theory[0])
    assert found.attrs["step_samples"] == 150 and found.attrs["samples"] == 60
    assert OneGradientStep.from_json(found.attrs["model"]) == still
    none = MODEL.simulate(30, ridge=0.1, seeds=2, steps=0, n_test=500, **QUIET)
    assert none.step.values.tolist() == [0] and float(none.improvement[0]) == 0


def test_what_a_model_cannot_simulate():
    model = OneGradientStep("tanh", "tanh", alpha=1e-3, beta=1.5)
    with pytest.raises(GiantstepError, match="too small for alpha"):
        model.simulate(20, ridge=0.1, **QUIET)
    with pytest.raises(ClosedFormNotFoundError, match="leave out exact_risk"):
        model.at(alpha=2).simulate(30, ridge=0.1, exact_risk=True, **QUIET)
