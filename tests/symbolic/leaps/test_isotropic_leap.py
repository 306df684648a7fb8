"""The rotation-invariant leap: catalogue, rotations, and the basis that attains it."""

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import AssumptionError
from giantstep.symbolic.leaps.leap_index import isotropic_leap
from giantstep.symbolic.targets.spans import spans_of
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import target

from .catalogue import CATALOGUE, OPEN_CATALOGUE
from .test_leap_index import X, needs_flint, polynomials


@st.composite
def rotations(draw, dimension=3):
    """Cayley transforms of antisymmetric integer matrices."""
    entries = st.integers(-2, 2)
    matrix = sp.zeros(dimension, dimension)
    for i in range(dimension):
        for j in range(i):
            matrix[i, j] = draw(entries)
            matrix[j, i] = -matrix[i, j]
    one = sp.eye(dimension)
    return (one - matrix) * (one + matrix).inv()


def rotated(f, rotation):
    return target(f.expansion.rotate(rotation).polynomial(), f.variables)


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.name)
def test_catalogue(row):
    found = isotropic_leap(row.target)
    assert found == row.isotropic_leap
    assert found.orders == row.greedy_orders
    assert found.steps[-1].subspace == spans_of(target(row.target)).relevant_subspace


@pytest.mark.parametrize("row", OPEN_CATALOGUE, ids=lambda row: row.name)
def test_open_catalogue(row):
    found = isotropic_leap(row.target)
    assert found == row.isotropic_leap == max(found.orders)
    assert row.coordinate_leap <= found


@settings(max_examples=10)
@given(polynomials(), rotations())
def test_rotations_rotate_the_run(expr, rotation):
    f = target(expr, X)
    found, other = isotropic_leap(f), isotropic_leap(rotated(f, rotation))
    assert other.orders == found.orders
    for step, turned in zip(found.steps, other.steps, strict=True):
        # x ↦ f(Rx) shows Rᵀ U.
        assert turned.subspace == step.subspace.image(rotation.T)


def test_rotated_directions_that_are_no_polynomials():
    assert isotropic_leap("erf((3*x1 + 4*x2)/5) + abs((4*x1 - 3*x2)/5)").orders == (1, 2)


@needs_flint
def test_directions_that_are_integrals():
    assert isotropic_leap("tanh(x1)*(1 + x2) + softplus(x1)*x3").orders == (1, 1)


def test_presentations_and_errors():
    found = isotropic_leap("x1 + x2 + x1*x2")
    assert found.explanation == "{0} –1→ ⟨(1, 1)⟩ –2→ R^2"
    assert found.stuck_at == Subspace.spanned_by([[1, 1]])
    assert r"\xrightarrow{2}" in found.latex()
    with pytest.raises(AssumptionError, match="is constant"):
        isotropic_leap("x1 - x1")
