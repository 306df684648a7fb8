"""Evidence of the claims about the first gradient and the spike; slow checks are marked so."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from giantstep.derivations.one_gradient_step import claims_spike
from giantstep.derivations.one_gradient_step.claims_spike import SPIKES, extrapolated, spike_table


def test_evidence_rejects_spikes_of_another_length(monkeypatch):
    # Networks that take a step of 1.15 times the size.
    true = claims_spike.one_step_network

    def longer(model, dimension):
        return true(replace(model, step_size=1.15 * model.step_size), dimension)

    monkeypatch.setattr(claims_spike, "one_step_network", longer)
    sizes = ((50, 30), (200, 12))
    found = spike_table(SPIKES[4:5], sizes, seed=3)
    assert not found.passed
    monkeypatch.undo()
    assert spike_table(SPIKES[4:5], sizes, seed=3).passed


def test_extrapolation_sees_what_does_not_vanish():
    generator = np.random.default_rng(0)
    sizes = ((50, 100), (200, 100))
    noise = [0.01 * generator.standard_normal(100) for _ in sizes]
    for left, passed in ((0.0, True), (0.02, False)):
        values = [left + 0.5 / math.sqrt(d) + e for (d, _), e in zip(sizes, noise, strict=True)]
        assert extrapolated("shift", 0.0, sizes, values, 0.5).passed == passed


def test_components_of_sampled_gradients_are_told_apart(monkeypatch):
    # Labels contribute the leading term and `beyond`; samples have more of `beyond`.
    dimension, width = 30, 60
    generator = np.random.default_rng(4)
    readout = generator.standard_normal(width)
    sampled, beyond, output = generator.standard_normal((3, dimension, width))
    leading = np.zeros_like(beyond)
    model = claims_spike.OneGradientStep("erf", "erf", alpha=2, beta=2)
    leading[0] = model.student_moments.linear * model.teacher_moments.linear * readout / width

    class Sampled:
        def __init__(self, network, seed):
            self.layer = SimpleNamespace(rows=np.zeros((width, dimension)), readout=readout)

        def step(self):
            self.layer.rows = self.layer.rows + math.sqrt(width) * sampled.T

    shares = iter((0.29, 0.31))

    def exact(*_):
        return SimpleNamespace(
            gradient=sampled - next(shares) * beyond, labels=leading + beyond, output=output
        )

    monkeypatch.setattr(claims_spike, "Training", Sampled)
    monkeypatch.setattr(claims_spike, "population_gradient", exact)
    found = claims_spike.sampled_population(networks=2)
    share = found.details["missing share along labels beyond the leading term"]["mean"]
    assert not found.passed and math.isclose(share, 0.3, rel_tol=1e-12)
