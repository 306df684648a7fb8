"""Vectorised source of maps of complex numbers."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from giantstep.errors import EmissionError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.map_source import MapSource

Z = sp.Symbol("z")
V = sp.Symbol("V", positive=True)
A = sp.Symbol("a", positive=True)
K = sp.Symbol("k", real=True)
F = sp.Function("f", real=True)(K)


def source(value):
    written = MapSource((Z, V), (A,), (F,), K, {A: "strength"})
    return written.map({"G": value}, function="evaluate", description="Evaluate.")


def test_values_are_sums_over_nodes():
    value = A / (Z - GaussianExpectation(F**2 * K / (1 + V * F) ** 2 - F / (1 + V * F), K))
    names = {"np": np}
    exec(source(value), names)
    rng = np.random.default_rng(0)
    weight, node, table = rng.random((3, 7))
    z, v = rng.random((2, 4)) + 1j * rng.random((2, 4))
    (found,) = names["evaluate"](z, v, 2.0, weight, node, table)
    below = 1 + v[:, None] * table
    average = (table**2 * node / below**2 - table / below) @ weight
    np.testing.assert_allclose(found, 2 / (z - average), rtol=1e-13)


def test_divisions_are_done_once():
    text = source(GaussianExpectation(F / (1 + V * F) + F / (1 + V * F) ** 2, K))
    assert text.count("1.0 / (") == 1


@pytest.mark.parametrize(
    "value",
    [
        sp.sqrt(V) + Z,
        GaussianExpectation(sp.exp(V * F), K),
        sp.Abs(Z),
        GaussianExpectation(F / sp.sqrt(1 + V * F), K),
    ],
)
def test_branches_are_refused(value):
    with pytest.raises(EmissionError, match="not a rational function"):
        source(value)
