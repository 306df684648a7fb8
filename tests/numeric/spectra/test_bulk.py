"""Root tracking, edges and densities on the Marchenko-Pastur law, whose transform is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import special

from giantstep.errors import ConvergenceError
from giantstep.numeric.spectra import bulk
from giantstep.numeric.spectra.bulk import ResolventTransform, find_bulk, follow, real_roots


def marchenko_pastur(ratio):
    """V = 1/(1/(1 + ratio V) - z), of W W^T/n with W of shape p × n and p/n = ratio."""

    def equations(z, v):
        inner = 1 / (1 + ratio * v[0])
        g = 1 / (inner - z)
        slope = g**2 * ratio * inner**2
        return np.array([g]), np.array([[slope]]), np.array([g**2])

    return equations


def exact(z, ratio):
    """The root that has a positive imaginary part above the axis."""
    z = np.asarray(z, dtype=complex)
    roots = [np.roots([ratio * w, w - 1 + ratio, 1]) for w in z]
    return np.array([r[np.argmax(r.imag * np.sign(w.imag))] for r, w in zip(roots, z, strict=True)])


def transform(ratio):
    return ResolventTransform(lambda level: marchenko_pastur(ratio), 1.0, 1, 0)


@settings(max_examples=15, deadline=None)
@given(
    ratio=st.floats(0.01, 20),
    x=st.floats(-5, 30),
    height=st.floats(-6, 2).map(lambda e: 10.0**e),
)
def test_the_right_root_is_followed(ratio, x, height):
    z = np.array([x + 1j * height])
    v, good = follow(marchenko_pastur(ratio), z, 1.0, 1)
    assert good.all()
    np.testing.assert_allclose(v[0], exact(z, ratio), rtol=1e-6)


@settings(max_examples=8, deadline=None)
@given(ratio=st.floats(1e-6, 0.9) | st.floats(1.1, 50))
def test_edges_and_mass(ratio):
    mass = min(1.0, 1 / ratio)
    bulk = find_bulk(transform(ratio), 201, mass, 1 - mass)
    edges = (1 + np.array([-1, 1]) * np.sqrt(ratio)) ** 2
    np.testing.assert_allclose(bulk.edges, [edges], rtol=1e-6)
    assert not bulk.soft.any()
    assert bulk.masses[0] == pytest.approx(mass, rel=1e-8)
    root = np.sqrt(np.maximum((edges[1] - bulk.points) * (bulk.points - edges[0]), 0))
    expected = root / (2 * np.pi * ratio * bulk.points)
    np.testing.assert_allclose(bulk.density, expected, atol=1e-5 * expected.max())


def test_a_hard_edge_goes_to_zero():
    bulk = find_bulk(transform(1.0), 401, 1.0, 0.0)
    assert bulk.edges[0, 0] < 1e-12 and bulk.edges[0, 1] == pytest.approx(4)
    assert bulk.masses[0] == pytest.approx(1, abs=1e-6)


def test_conjugate_points_and_the_real_axis():
    law = transform(0.5)
    z = np.array([1 + 0.1j, 1 - 0.1j, 5.0, -1.0])
    found = law.trace_at(z)
    assert found[1] == found[0].conjugate()
    assert (found[2:].imag == 0).all()
    assert found[2].real < 0 < found[3].real


def test_equations_without_a_solution_are_not_resolved():
    def equations(z, v):
        return v + 1.0, np.ones((1, 1, v.shape[1])), 0 * v

    broken = ResolventTransform(lambda level: equations, 1.0, 1, 0)
    with pytest.raises(ConvergenceError, match="larger imaginary part"):
        broken.trace_at([1 + 1j])


def test_roots_of_a_condition():
    assert real_roots(lambda x: (x - 1) * (x - 2.5), 0, 3) == pytest.approx([1, 2.5], rel=1e-10)
    assert real_roots(lambda x: 1 + x**2, 0, 3) == []
    assert real_roots(lambda x: x - 1, 3, 3) == []
    assert real_roots(np.zeros_like, 0, 3) == []


@dataclass(frozen=True)
class _Semicircle:
    """A resolvent in closed form, asked for off the axis as transforms are."""

    rtol: float = 1e-9
    components: int = 1
    trace: int = 0

    def solve(self, x, guess):
        root = 1j * np.sqrt(4 - x**2)
        return ((root - x) / 2)[None], np.full(len(x), 1e-30)


def test_densities_are_extrapolated_to_the_axis():
    x = np.array([0.5, 1.2, 1.7])
    density, _, error = bulk._from_above(_Semicircle(), x)
    exact = np.sqrt(4 - x**2) / (2 * np.pi)
    # At the lowest height 1e-4 the density itself is off by as much.
    assert np.abs(density - exact).max() < 1e-7
    assert (np.abs(density - exact) <= error).all()


def test_tables_hold_on_and_near_the_line():
    tables = bulk.AnalyticTables(lambda x: {"erf": special.erf(x), "bell": np.exp(-(x**2) / 2)}, 1)
    x = np.linspace(-6, 6, 25)
    for points in (x.astype(complex), x + 0.05j, x - 0.1j):
        found = tables.at(points)
        assert np.abs(found["erf"] - special.erf(points)).max() < 1e-9
        assert np.abs(found["bell"] - np.exp(-(points**2) / 2)).max() < 1e-9
