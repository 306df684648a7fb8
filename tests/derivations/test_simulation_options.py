"""Every question that the public simulators answer, once, at the smallest size that has it.

What the numbers are ``numeric/networks/test_textbook.py`` asks of the one network that all of them
stand on. Here each option changes what comes out as it should.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import giantstep as gs

# Together they take half a minute, most of it for models that others derive, too.
pytestmark = pytest.mark.slow

SPIKED = gs.SpikedRandomFeatures("tanh", "sin", step_size=2, alpha0=4, noise_variance=0.1)
GIVEN = gs.SpikedRandomFeatures.from_parameters(
    "tanh", "sin", spike_strength=1.0, bulk_variance=1.1, alignment=0.8
)
LETTERS = gs.VocabularyFeatures(
    "tanh", "sin", letters=[1, -0.5], fractions=[0.5, 0.5], step_size=2, alpha0=4
)
ONE_STEP = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=4, noise_variance=0.1)
RUN = {"seeds": 3, "seed": 1, "progress": False}


def spiked(model=SPIKED, loss=None, labels="teacher", **options):
    """Test errors of readouts, networks first."""
    model = model if loss is None else model.with_loss(loss, labels=labels)
    return model.simulate(20, **{"alpha": [2, 0.5], "ridge": 0.1, **RUN, **options}).test_error


def one_step(**options):
    """Risks, networks first."""
    return ONE_STEP.simulate(20, **{"ridge": [0.01, 0.1], **RUN, **options}).risk


def giant(**options):
    """Overlaps of all rows after the last step."""
    given = {"dimension": 20, "samples": 200, "width": 16, "steps": 2, **RUN, **options}
    return gs.simulate_giant_steps("x1 + x1*x2", "tanh", **given).result.overlaps[:, -1]


def preprocessed(**options):
    """Shares of the gradient inside the target's space, means and errors."""
    given = {"dimension": 12, "samples": 400, "width": 30, **RUN, **options}
    found = gs.train_by_preprocessed_step("relu", "x1*x2", **given)
    return np.array([found.test_error.mean, found.relevant_share.mean])


# Each row: what is asked, plain, and with an option that changes the numbers.
CHANGES = {
    "seed": (spiked, {"seed": 2}),
    "penalty": (spiked, {"ridge": 1.0}),
    "rows that are given": (spiked, {"model": GIVEN}),
    "orthonormal rows": (
        spiked,
        {
            "model": gs.SpikedRandomFeatures.from_parameters(
                "tanh",
                "sin",
                spike_strength=1.0,
                bulk_variance=1.1,
                alignment=0.8,
                bulk="orthonormal",
            )
        },
    ),
    "letters": (spiked, {"model": LETTERS}),
    "letters as features": (spiked, {"model": LETTERS, "equivalent": True}),
    "convex loss": (spiked, {"model": SPIKED, "loss": "huber(0.5)"}),
    "labels": (spiked, {"model": GIVEN, "loss": "hinge", "labels": "sign"}),
    "letters with a loss": (spiked, {"model": LETTERS, "loss": "huber(0.5)"}),
    "control variate": (spiked, {"control_variate": True}),
    "Gaussian features": (one_step, {"features": "gaussian"}),
    "Gaussian labels": (one_step, {"features": "gaussian", "labels": "gaussian"}),
    "rank-one step": (one_step, {"layer": "rank one"}),
    "spike of the theory": (one_step, {"layer": "theory"}),
    "several steps": (one_step, {"steps": [1, 3]}),
    "fresh batches": (one_step, {"steps": 2, "fresh": True}),
    "exponent": (one_step, {"exponent": 0.2}),
    "exact risk": (one_step, {"exact_risk": True}),
    "fresh samples": (one_step, {"n_test": 500}),
    "no penalty": (one_step, {"ridge": [0.0, 0.1]}),
    "signs": (giant, {"readout": "signs"}),
    "readout values": (giant, {"readout": [0.5, 2.0]}),
    "biases": (giant, {"biases": True}),
    "preprocessing": (giant, {"preprocess": True}),
    "label noise": (giant, {"noise_variance": 1.0}),
    "step size": (giant, {"step_size": 2.0}),
    "sample exponent": (giant, {"sample_exponent": 2}),
    "number of steps": (giant, {"steps": 3}),
    "given penalty": (preprocessed, {"ridge": 10.0}),
    "given step": (preprocessed, {"step_size": 0.5}),
    "noise of preprocessed labels": (preprocessed, {"noise_variance": 0.5}),
}


@pytest.mark.parametrize("row", CHANGES)
def test_an_option_changes_the_numbers(row):
    ask, options = CHANGES[row]
    plain, changed = np.asarray(ask()), np.asarray(ask(**options))
    assert np.isfinite(changed).all()
    assert plain.shape != changed.shape or not np.allclose(plain, changed, rtol=1e-9)


@pytest.mark.parametrize("ask", [spiked, one_step, giant])
def test_where_it_runs_changes_none(ask, tmp_path):
    plain = np.asarray(ask())
    with ThreadPoolExecutor(2) as executor:
        for options in ({"workers": 2}, {"executor": executor}, {"store": tmp_path}):
            np.testing.assert_array_equal(np.asarray(ask(**options)), plain)
    np.testing.assert_array_equal(np.asarray(ask(store=tmp_path)), plain)


def test_what_else_is_measured():
    readouts = SPIKED.simulate(20, alpha=[1.0], ridge=0.1, **RUN)
    assert {"m", "q1", "spike_strength", "objective", "training_loss"} <= set(readouts.data_vars)
    network = SPIKED.realised(20, [1.0], 0.1, progress=False, spectrum=True)
    assert np.isfinite(network.comparison.spectrum_test_error).all()
    spectra = [
        SPIKED.spectrum(alpha=1.0).simulate(20, seeds=2, trained=trained, progress=False)
        for trained in (False, True)
    ]
    assert not np.allclose(*(found.eigenvalues for found in spectra))
    layers = ONE_STEP.simulate_spectra(20, **RUN)
    assert {"singular_values", "kernel_eigenvalues", "linearised_eigenvalues"} <= set(layers)
    fitted = gs.simulate_giant_steps(
        "x1", "tanh", dimension=20, samples=200, width=16, steps=1, ridge_samples=60, **RUN
    )
    assert fitted.test_error is not None and fitted.test_error.mean < 1
    study = gs.finite_size_study(
        SPIKED, dimensions=[20, 40, 60], alpha=1, ridge=0.1, seeds=3, progress=False
    )
    assert [str(d) in str(study) for d in (20, 40, 60)] == [True] * 3
