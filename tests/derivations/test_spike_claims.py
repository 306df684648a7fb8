"""Evidence of the claims about the first gradient and the spike; slow checks are marked so."""

from __future__ import annotations

import math
from dataclasses import replace

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
