"""Networks of finite size against recorded means of the simulators that they replaced."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from giantstep.derivations.giant_steps.simulated import simulate_giant_steps
from giantstep.derivations.hermite_gradients.network_functions import network_functions
from giantstep.derivations.hermite_gradients.training import train_by_preprocessed_step
from giantstep.numeric.networks.network import Network
from giantstep.numeric.networks.neuron_gradients import GradientSlopes, label_gradient
from giantstep.numeric.networks.run import simulate
from giantstep.symbolic.activations import activation
from giantstep.symbolic.targets import target

RECORDS = json.loads(
    (Path(__file__).parents[1] / "reference/simulations/giant_steps.json").read_text("utf-8")
)


def estimate(values):
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def giant_steps(target, student, **options):
    found = simulate_giant_steps(target, student, **options, progress=False).result
    return {
        "squared_norms": estimate(found.squared_norms.mean(axis=2)),
        "grams": estimate(found.grams[:, :, :, 0]),
        "floors": estimate(found.floors),
        "excess": estimate(found.excess),
        "test_error": estimate(found.test_error),
        "ridge": estimate(np.log10(np.where(found.ridge > 0, found.ridge, 1.0))),
    }


def preprocessed_step(**options):
    found = train_by_preprocessed_step(**options, progress=False)
    names = ("relevant_share", "test_error", "random_features_error", "linear_error")
    angles = found.principal_angles
    return {
        name: (getattr(found, name).mean, getattr(found, name).standard_error) for name in names
    } | {"principal_angles": ([a.mean for a in angles], [a.standard_error for a in angles])}


def network_of(student, f, **options):
    functions = network_functions(activation(student), target(f))
    return Network(
        student=functions.student, student_derivative=functions.student_derivative,
        teacher=functions.target, directions=target(f).dimension, **options,
    )  # fmt: skip


def gradient_slopes(student, target, monomials, step, width, samples, batches, seed, **options):
    network = network_of(
        student, target, width=2 * width, readout="signs", paired=True, steps=1,
        step_samples=samples, step_size=1.0, weight_decay=1.0, **options,
    )  # fmt: skip
    found = simulate(network, GradientSlopes(monomials, step), seeds=batches, seed=seed)
    return {name: estimate(values) for name, values in found.values.items()}


def sampled_gradient(student, target, weights, samples, seed, **options):
    rows = np.array(weights)
    network = network_of(
        student, target, width=len(rows), dimension=rows.shape[1], rows=lambda *_: rows,
        step_samples=samples, **options,
    )  # fmt: skip
    found = simulate(network, label_gradient, seeds=1, seed=seed)
    return {"gradient": (found["gradient"][0], found["gradient_error"][0])}


ASKED = {
    "simulate_giant_steps": giant_steps,
    "train_by_preprocessed_step": preprocessed_step,
    "gradient slopes": gradient_slopes,
    "sampled gradient": sampled_gradient,
}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["ask"])
def test_means_are_those_of_the_simulators_before(record):
    found = ASKED[record["ask"]](**record["arguments"])
    for name, old in record["found"].items():
        mean, error = (np.asarray(values) for values in found[name])
        allowed = 4 * np.hypot(error, old["standard_error"])
        # Where nothing scatters there is rounding, and six digits of the record.
        difference = abs(mean - old["mean"])
        assert np.all(difference <= allowed + 1e-5 * abs(mean) + 1e-12), (name, difference, allowed)
