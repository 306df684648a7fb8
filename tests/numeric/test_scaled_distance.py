"""How fast the error of a scaled function can change, against its definition on a fine grid."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from giantstep.numeric.scaled_distance import Steepness

SLOPES = {
    "constant": np.ones_like,
    "bell": lambda s: np.exp(-(s**2) / 8),
    "one-sided": lambda s: 1 / (1 + np.exp(-s)),
    "growing": lambda s: np.abs(s) ** 1.5,
}
AMPLITUDES = st.floats(-3, 3).filter(lambda x: abs(x) > 0.05)


@pytest.mark.parametrize("name", SLOPES)
@settings(max_examples=15)
@given(a=AMPLITUDES, b=AMPLITUDES)
def test_steepness_is_an_upper_sum_of_its_definition(name, a, b):
    slope = SLOPES[name]
    low, high = (0.0 if a * b < 0 else min(abs(a), abs(b))), max(abs(a), abs(b))
    t = (np.arange(2000) + 0.5) * 9 / 2000
    s = t * np.linspace(low, high, 60)[:, None]
    largest = np.maximum(slope(s), slope(-s)).max(axis=0) ** 2
    weights = 2 * t**2 * np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi) * 9 / 2000
    wanted = math.sqrt(weights @ largest)
    # The grid of slopes has a step of 1/8, and two per cent are added to squares.
    assert wanted * (1 - 1e-6) <= Steepness(slope, 3.0)(a, b) <= wanted * 1.16
