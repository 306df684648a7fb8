"""Networks of spiked features against means of the simulators that this one replaced.

``tests/reference/simulations/spiked_features.json`` holds configurations with their means and
standard errors over seeds, made by three modules that had a network, a runner and random numbers
of their own. New and old means have to agree within four standard errors.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import giantstep as gs
from giantstep.derivations.spiked_random_features.paper_figures.drawing import Simulated
from giantstep.derivations.spiked_random_features.paper_figures.numbered import learned_function

FILE = Path(__file__).parents[1] / "reference" / "simulations" / "spiked_features.json"
STORED = json.loads(FILE.read_text())["configurations"]


def built(given):
    """The model of a configuration."""
    arguments = dict(given)
    kind = getattr(gs, arguments.pop("is"))
    if "features" in arguments:
        return kind(built(arguments.pop("features")), **arguments)
    direct = {"spike_strength", "spike_strengths"} & set(arguments)
    return (kind.from_parameters if direct else kind)(**arguments)


def measured(configuration):
    """Arrays by name, the first axis of each over seeds; means and errors where there are these."""
    seeds = configuration.get("seeds")
    ask = configuration["ask"]
    if ask == "figure":
        data = learned_function(Simulated(**configuration["arguments"])).data
        return data["simulated"].to_numpy(), data["simulated_standard_error"].to_numpy()
    model = built(configuration["model"])
    arguments = {"progress": False, "seed": 1, **configuration["arguments"]}
    if ask == "spectrum":
        found = model.spectrum(alpha=arguments.pop("alpha")).simulate(seeds=seeds, **arguments)
        values = found.eigenvalues
        return {
            "top": values[:, -1], "mean": values.mean(axis=1), "square": (values**2).mean(axis=1),
        }  # fmt: skip
    if ask == "realised":
        del arguments["seed"]
        rows = [model.realised(seed=seed, **arguments).comparison for seed in range(seeds)]
        names = [name for name in rows[0] if str(name).startswith("measured_")]
        return {name: np.array([row[name].to_numpy() for row in rows]) for name in names}
    data = model.simulate(seeds=seeds, **arguments)
    return {
        str(name): data[name].to_numpy()
        for name in data
        if data[name].dims[0] == "seed" and name != "certificate"
    }


def summary(found):
    """Means and standard errors by name."""
    if isinstance(found, tuple):
        return {"function": [x.tolist() for x in found]}
    return {
        name: [
            values.mean(axis=0).tolist(),
            (values.std(axis=0, ddof=1) / math.sqrt(len(values))).tolist(),
        ]
        for name, values in found.items()
    }


QUICK = (
    "network", "network without a step", "given, hinge", "letters of a network", "spectrum",
    "learned function",
)  # fmt: skip


@pytest.mark.parametrize(
    "configuration",
    [
        pytest.param(c, id=c["name"], marks=[pytest.mark.slow] * (c["name"] not in QUICK))
        for c in STORED
    ],
)
def test_means_are_those_of_the_simulators_before(configuration):
    found = summary(measured(configuration))
    for name, (mean, error) in configuration["summary"].items():
        ours, spread = np.array(found[name][0]), np.array(found[name][1])
        scatter = np.hypot(spread, np.array(error))
        apart = np.abs(ours - np.array(mean)) - 4 * scatter
        # Seven digits are stored of what does not scatter.
        assert np.max(apart - 1e-6 * np.abs(ours)) <= 1e-12, (name, mean, found[name])
