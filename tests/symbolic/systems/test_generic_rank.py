"""Equations that a structural analysis accepts, and that determine nothing all the same."""

import random

import mpmath
import pytest
import sympy as sp

from giantstep.errors import StructureError
from giantstep.symbolic.expressions.functions import softplus
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.losses.proximal import Proximal
from giantstep.symbolic.systems import generic_rank
from giantstep.symbolic.systems.equations import FreeEnergy
from giantstep.symbolic.systems.generic_rank import (
    _drawn,
    dependent_unknowns,
    symmetric_variables,
)
from giantstep.symbolic.systems.random_matrix import MarchenkoPasturAverage
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

q, m, v, a, X = sp.symbols("q m v a X", positive=True)
x, z = sp.symbols("x z", real=True)


def E(f):
    return GaussianExpectation(f, z)


@pytest.mark.parametrize(
    "residuals",
    [
        [q * m - a, (q * m) ** 2 - a**2],
        [q + m - a, sp.exp(q + m) - 2],
        [E(sp.tanh(q * m * z)) - a, E(sp.erf(q * m * z + 1)) - a],
        [q + m - a, 2 * q + 2 * m - 3 * a],
        [E(Proximal(softplus(-x), x, z, q * m)) - a, q * m - 1],
        [MarchenkoPasturAverage(1 / (q * m + X), X, a) - 1, q * m - a],
    ],
)
def test_combinations_are_found(residuals):
    assert dependent_unknowns(residuals, [q, m]) == ([q, m], [0, 1])


@pytest.mark.parametrize(
    "residuals",
    [
        [q * m - a, q - m],
        [q + m - a, sp.exp(q - m) - 2],
        [E(sp.tanh(q * z) ** 2) - m, E(sp.tanh(m * z) ** 2) - q],
        [E(Proximal(softplus(-x), x, z, q)) - m, q * m - 1],
        [MarchenkoPasturAverage(1 / (q + X), X, m) - 1, q * m - a],
    ],
)
def test_regular_systems_pass(residuals):
    assert dependent_unknowns(residuals, [q, m]) == ([], [])


def test_what_vanishes_identically_determines_nothing():
    identity = q - ((q**2 + 2 * q + 1) / (q + 1) - 1)
    assert dependent_unknowns([identity], [q]) == ([q], [0])


def test_only_the_unknowns_of_the_singular_block_are_named():
    equations = {q: sp.Eq(q * m, a), m: sp.Eq((q * m) ** 2, a**2), v: a + 1 / (1 + v) + q}
    with pytest.raises(StructureError, match="do not determine m, q: their Jacobian is singular"):
        SaddlePointSystem.from_fixed_point(equations, name="model", parameters=(a,))


@pytest.mark.parametrize(
    "expression", [(q * m) ** 2 * a - q * m, (q + m) ** 2 * a - q - m, E(sp.cosh(q * z / m)) - a]
)
def test_a_free_energy_of_one_combination(expression):
    with pytest.raises(StructureError, match=r"does not determine m, q.*shift or rescaling"):
        SaddlePointSystem.from_free_energy(FreeEnergy(expression, (q, m), (), (a,)), name="model")


def test_symmetries_by_gradient():
    energy = q * m * v + a / (q * m) + v**2
    assert symmetric_variables({s: energy.diff(s) for s in (q, m, v)}) == [q, m]
    energy += q
    assert symmetric_variables({s: energy.diff(s) for s in (q, m, v)}) == []


@pytest.mark.parametrize(
    ("kinds", "signs"),
    [
        ({"real": True}, {-1, 1}),
        ({"positive": True}, {1}),
        ({"nonnegative": True}, {1}),
        ({"negative": True}, {-1}),
        ({"nonpositive": True}, {-1}),
        ({"integer": True, "positive": True}, {1}),
        ({"integer": True, "nonpositive": True}, {-1}),
    ],
)
def test_what_is_drawn_has_the_signs_of_its_symbol(kinds, signs):
    symbol, draw = sp.Symbol("a", **kinds), random.Random(1)
    drawn = [_drawn(symbol, draw, mpmath.mp) for _ in range(40)]
    assert {mpmath.sign(x) for x in drawn} == signs
    assert all(mpmath.isint(x) for x in drawn) is ("integer" in kinds)


def test_where_a_law_is_none_at_a_point_the_next_one_decides(monkeypatch):
    def evaluator(residuals, unknowns, many_digits=True):
        assert not many_digits
        return original(residuals, unknowns, many_digits)

    original = generic_rank._Evaluator
    # Outside of the domain at the first point that is drawn, and inside at the second.
    assert original((), (q, m)).point(0)[q] > 1 > original((), (q, m)).point(1)[q]
    monkeypatch.setattr(generic_rank, "_Evaluator", evaluator)
    assert dependent_unknowns([sp.log(1 - q) + m, q * m - a], [q, m]) == ([], [])


def test_equations_share_averages():
    average = E(sp.tanh(q * z))
    known = {}
    for residual in (average - m, average**2 + m):
        generic_rank._Function(residual, mpmath.fp, known)
    assert list(known) == [average]
