"""Learning rates in the conventions in use, and what they mean for the width."""

from __future__ import annotations

import math

import pytest

import giantstep as gs
from giantstep.derivations.spiked_random_features.spike import CONVENTIONS
from giantstep.errors import ParameterError

# Test error of tanh/sin at alpha0 = 20, alpha = 1.5, ridge 0.1 by beta: at a fixed step per neuron
# s = 3, and at s = 3/beta.
FIXED = {0.5: 0.04370, 1: 0.03790, 2: 0.03265, 4: 0.02977}
SHRINKING = {0.5: 0.03616, 1: 0.03790, 2: 0.06756, 4: 0.08813}


@pytest.mark.parametrize("beta", FIXED)
def test_whether_wider_is_better_depends_on_the_convention(beta):
    for convention, wanted in (("sqrt-width", FIXED), ("dimension", SHRINKING)):
        model = gs.SpikedRandomFeatures.from_learning_rate(
            "tanh", "sin", learning_rate=3, convention=convention, beta=beta, alpha0=20
        )
        assert model.beta == beta
        assert model.solve(alpha=1.5, ridge=0.1).test_error == pytest.approx(wanted[beta], abs=5e-6)


def test_steps_of_a_finite_network():
    # One neuron of a network with p = 200, d = 50: a = 1/sqrt(p), prediction sum a sigma/sqrt(p).
    p, d, rate = 200, 50, 0.7
    of_gradient = 1 / p  # row of the gradient over its sum of residuals
    moves = {
        "sqrt-width": rate * math.sqrt(p) * math.sqrt(p) * of_gradient,
        "sqrt-dimension": rate * math.sqrt(d) * math.sqrt(p) * of_gradient,
        "dimension": rate * d * of_gradient,
    }
    assert set(moves) == set(CONVENTIONS)
    for name, step in moves.items():
        assert gs.per_neuron_step(rate, name, beta=p / d) == pytest.approx(step, rel=1e-14)
        found = CONVENTIONS[name]
        assert found.learning_rate(found.step_size(rate, 4.0), 4.0) == pytest.approx(rate)
        assert gs.per_neuron_step(rate, name) == rate
        assert name in str(found) and found.formula in str(found)


def test_bad_input_is_refused():
    with pytest.raises(ParameterError, match="did you mean 'dimension'") as refused:
        gs.per_neuron_step(1, "dimensions")
    assert all(name in str(refused.value) for name in CONVENTIONS)
    for convention in (None, 3, ["dimension"]):
        with pytest.raises(ParameterError, match="convention"):
            gs.per_neuron_step(1, convention)
    for rate in (-1, math.inf, math.nan, "3"):
        with pytest.raises(ParameterError, match="learning_rate"):
            gs.per_neuron_step(rate)
    with pytest.raises(ParameterError, match="beta"):
        gs.per_neuron_step(1, "dimension", beta=0)
    with pytest.raises(ParameterError, match="not both"):
        gs.SpikedRandomFeatures.from_learning_rate("erf", "erf", learning_rate=1, step_size=2)
