"""Networks of finite size against means of the simulators that one network replaced.

``tests/reference/simulations/means.json`` holds questions with means and standard errors over
seeds, made by modules that had networks, runners and random numbers of their own. New and old means
have to agree within four standard errors.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import giantstep as gs
from giantstep.derivations.first_gradient.network_functions import network_functions
from giantstep.derivations.first_gradient.training import train_by_preprocessed_step
from giantstep.derivations.giant_steps.simulated import simulate_giant_steps
from giantstep.derivations.one_gradient_step.simulated import one_step_network
from giantstep.derivations.spiked_random_features.paper_figures.drawing import Simulated
from giantstep.derivations.spiked_random_features.paper_figures.numbered import learned_function
from giantstep.numeric.networks.gradient import GradientParts
from giantstep.numeric.networks.network import Network
from giantstep.numeric.networks.neuron_gradients import GradientSlopes, label_gradient
from giantstep.numeric.networks.run import simulate
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.targets.target import target

# Means of earlier simulators: the network itself is compared with its textbook recipe at once.
pytestmark = pytest.mark.slow

FILE = Path(__file__).parents[1] / "reference" / "simulations" / "means.json"
RECORDS = json.loads(FILE.read_text("utf-8"))["records"]
SPECTRA = ("singular_values", "kernel_eigenvalues", "linearised_eigenvalues")


def built(given):
    """The model of a record."""
    arguments = dict(given)
    kind = getattr(gs, arguments.pop("is"))
    if "features" in arguments:
        return kind(built(arguments.pop("features")), **arguments)
    direct = {"spike_strength", "spike_strengths"} & set(arguments)
    return (kind.from_parameters if direct else kind)(**arguments)


def estimate(values):
    """Mean and standard error over the first axis."""
    values = np.asarray(values)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(len(values))


def simulated(model, **options):
    data = model.simulate(**options, progress=False)
    return {
        str(name): estimate(values)
        for name, values in data.data_vars.items()
        if values.dims[0] == "seed" and name != "certificate"
    }


def simulated_spectra(model, **options):
    found = {}
    for name, values in model.simulate_spectra(**options, progress=False).data_vars.items():
        array = values.to_numpy()
        if name in SPECTRA:
            # The two largest values, and the mean square.
            array = np.stack([array[..., 0], array[..., 1], (array**2).mean(-1)], -1)
        if name == "spike_alignment":
            # It was with the steps to come before the first of them.
            assert not array[:, 0].any()
            array[:, 0] = np.nan
        found[str(name)] = estimate(array)
    return found


def spectrum(model, alpha, **options):
    values = model.spectrum(alpha=alpha).simulate(**options, progress=False).eigenvalues
    parts = {"top": values[:, -1], "mean": values.mean(axis=1), "square": (values**2).mean(axis=1)}
    return {name: estimate(part) for name, part in parts.items()}


def realised(model, seeds, **options):
    rows = [
        model.realised(seed=seed, **options, progress=False).comparison for seed in range(seeds)
    ]
    names = [name for name in rows[0] if str(name).startswith("measured_")]
    return {name: estimate([row[name].to_numpy() for row in rows]) for name in names}


def figure(**options):
    data = learned_function(Simulated(**options)).data
    return {"function": (data["simulated"], data["simulated_standard_error"])}


def gradient_parts(model, dimension, seeds):
    network = replace(one_step_network(model, dimension), steps=0)
    parts = GradientParts(model.student_moments.linear, [model.teacher_moments.linear])
    found = simulate(network, parts, seeds=seeds, progress=False)
    return {name: estimate(values) for name, values in found.values.items()}


def giant_steps(**options):
    found = simulate_giant_steps(**options, progress=False).result
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
    "simulate": simulated,
    "simulate_spectra": simulated_spectra,
    "spectrum": spectrum,
    "realised": realised,
    "figure": figure,
    "gradient_parts": gradient_parts,
    "simulate_giant_steps": giant_steps,
    "train_by_preprocessed_step": preprocessed_step,
    "gradient slopes": gradient_slopes,
    "sampled gradient": sampled_gradient,
}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["name"])
def test_means_are_those_of_the_simulators_before(record):
    model = (built(record["model"]),) if "model" in record else ()
    found = ASKED[record["ask"]](*model, **record["arguments"])
    for name, old in record["found"].items():
        mean, error = (np.asarray(values) for values in found[name])
        was, spread = np.asarray(old["mean"]), np.asarray(old["standard_error"])
        known = ~np.isnan(mean)
        allowed = 4 * np.hypot(error, spread)[known]
        # What does not scatter agrees to rounding, and to the digits that were stored.
        rounding = record["rounding"] * (abs(mean) + 1e-7)[known]
        apart = abs(mean - was)[known]
        assert apart.size and np.all(apart <= allowed + rounding), name
