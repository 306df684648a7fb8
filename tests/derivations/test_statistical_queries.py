"""Correlational queries: the lemma on small classes, directions, and the exponent d^(p/2)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from giantstep.derivations.first_gradient.statistical_queries import (
    PACKING_CONSTANT,
    correlational_query_bound,
    overlap_square,
    required_queries,
)
from giantstep.errors import AssumptionError, ParameterError
from giantstep.symbolic.targets.stein import DIMENSION


def test_answering_zero_excludes_few_members():
    # Orthonormal functions, correlation 0: a query of norm 1 has at most 1/τ² answers beyond τ, so
    # the bound |F| τ²/2 is below the |F| τ² queries that really are needed.
    size, tolerance = sp.Integer(64), sp.Rational(1, 4)
    assert required_queries(size, tolerance, sp.S.Zero) == 2
    assert required_queries(size, tolerance, sp.S.Zero) <= size * tolerance**2


@pytest.mark.parametrize("p", range(1, 8))
def test_correlations_of_the_class_are_powers_of_overlaps(p):
    # E He_p(u.x) He_p(v.x)/p! = <u, v>^p by Gauss-Hermite in the plane of u and v.
    x, w = np.polynomial.hermite_e.hermegauss(20)
    w = w / math.sqrt(2 * math.pi)
    overlap = 0.37
    he = np.polynomial.hermite_e.HermiteE.basis(p)
    second = overlap * x[:, None] + math.sqrt(1 - overlap**2) * x[None, :]
    value = np.sum(w[:, None] * w[None, :] * he(x)[:, None] * he(second)) / math.factorial(p)
    assert value == pytest.approx(overlap**p, rel=1e-12)


def test_that_many_directions_exist():
    # exp(c ε² d) random unit vectors: the mean number of pairs beyond ε is below one.
    d, overlap = 100, 0.55
    count = int(math.exp(float(PACKING_CONSTANT) * overlap**2 * d))
    rng = np.random.default_rng(5)
    violations = []
    for _ in range(5):
        u = rng.normal(size=(count, d))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        gram = np.abs(u @ u.T)[np.triu_indices(count, 1)]
        violations.append(int(np.sum(gram > overlap)))
    assert count > 1000
    assert np.mean(violations) < 1


@pytest.mark.parametrize("p", [2, 3, 4, 6])
def test_samples_grow_like_the_power_half_the_degree(p):
    small, large = (correlational_query_bound(p, d, 100.0) for d in (10**8, 10**12))
    slope = math.log10(large.samples / small.samples) / 4
    assert slope == pytest.approx(p / 2, abs=0.06 * p)
    assert small.tolerance**2 == pytest.approx(
        small.overlap**p + (float(PACKING_CONSTANT) * 10**8) ** (-p / 2), rel=1e-12
    )


def test_the_overlap_balances_queries_and_class():
    q = sp.Symbol("q", positive=True)
    square = overlap_square(3)
    class_share = 2 * q * sp.exp(-PACKING_CONSTANT * square * DIMENSION)
    assert sp.simplify(class_share - (PACKING_CONSTANT * DIMENSION) ** sp.Rational(-3, 2)) == 0


def test_text_and_hessian():
    bound = correlational_query_bound(2, 10**6)
    assert bound.has_hessian and not correlational_query_bound(3, 10**6).has_hessian
    assert "heuristic" in str(bound)


@pytest.mark.parametrize(
    "arguments, message",
    [((0, 100), "degree"), ((3, 0), "dimension"), ((3, 10**6, 0.5), "queries"), ((65, 9), "degree"),
     ((3, 10**6, math.inf), "queries"), ((2.5, 9), "degree")],
)  # fmt: skip
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        correlational_query_bound(*arguments)


def test_small_dimensions_are_refused():
    with pytest.raises(AssumptionError, match="too small"):
        correlational_query_bound(3, 10)
