"""The ledger of sample numbers: its rows against the sources, and what it refuses to say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from giantstep.derivations.first_gradient.sample_complexity import (
    Standing,
    sample_complexity,
)
from giantstep.derivations.first_gradient.spike_mapping import noise
from giantstep.derivations.first_gradient.statistical_queries import (
    PACKING_CONSTANT,
    correlational_query_bound,
    required_queries,
)
from giantstep.derivations.first_gradient.training import train_by_preprocessed_step
from giantstep.errors import AssumptionError, ExpressionError, ParameterError
from giantstep.symbolic.targets.stein import DIMENSION as d, SAMPLES as n
from giantstep.symbolic.targets.target import target

FIRST, SECOND, NEURONS, HALF, GIANT, KERNEL, QUERIES = range(7)


@pytest.fixture(scope="module")
def cubic():
    return sample_complexity("relu", "x1*x2 + He(3, x1)")


def test_scales_are_those_of_the_sources(cubic):
    # Damian, Lee & Soltanolkotabi 2022: n >~ d² r + d r^p, m >~ r^p, kernels d^p, queries d^(p/2).
    r, p = 2, 3
    scales = [row.scale for row in cubic.rows]
    assert scales[FIRST] == r * d**2
    assert scales[SECOND] == r**p * d
    assert scales[NEURONS] == r**p
    assert scales[GIANT] == d**2  # Dandi et al. 2023: leap index 2
    assert scales[KERNEL] == d**p
    assert scales[QUERIES] == d ** sp.Rational(p, 2)
    assert (cubic.leap_index, cubic.degree, cubic.directions, cubic.hessian_rank) == (2, 3, 2, 2)
    assert cubic.hessian == sp.Matrix([[0, 1], [1, 0]])


def test_half_of_the_relu_gradient_needs_half_pi_d_squared(cubic):
    # one_gradient_step.md, section 9.3: n = (pi/2) d² E y²/|H|_F²; here E f² = 1 + 6, |H|_F² = 2.
    assert sp.expand(cubic.half_samples - sp.pi / 2 * d**2 * (7 + noise) / 2) == 0
    assert sp.expand(cubic.signal - 2 / (2 * sp.pi * d)) == 0
    assert sp.expand(cubic.noise - d / n * (7 + noise) / 4) == 0


def test_the_linear_part_counts_with_the_squared_mean_slope():
    # sigma = 3 z + He_2: mu_1 = 3, Var sigma' = 4, mu_2 = 2; |P_{>1} f|² = 4, C_0 = 1, |C_1|² = 25.
    ledger = sample_complexity("3*z + He(2, z)", "1 + 3*x1 + 4*x2 + He(2, x1) + He(2, x2)")
    assert sp.expand(ledger.noise - d / n * (4 * (4 + noise) + 9 * 26)) == 0
    assert sp.expand(ledger.signal - 4 * 8 / d) == 0
    assert sp.expand(ledger.half_samples - d**2 * (250 + 4 * noise) / 32) == 0


@pytest.mark.parametrize("text", ["x1*x2 + He(3, x1)", "2 - x1 + x2*x3 + He(2, x1)*x3 + He(2, x1)"])
def test_signal_and_noise_of_one_neuron_agree_with_direct_sums(text):
    # Independent of the expansion: |H|_F² and E y² from Gauss-Hermite quadrature.
    ledger = sample_complexity("relu", text)
    x = sp.symbols(f"x1:{ledger.target.dimension + 1}", real=True)
    points, weights = np.polynomial.hermite_e.hermegauss(8)
    weights = weights / weights.sum()
    grid = np.stack(np.meshgrid(*[points] * len(x), indexing="ij"), axis=-1).reshape(-1, len(x))
    mass = np.prod(np.stack(np.meshgrid(*[weights] * len(x), indexing="ij"), -1), -1).ravel()
    values = sp.lambdify(x, ledger.target.expr)(*grid.T) * np.ones(len(grid))
    hessian = np.einsum("s,s,si,sj->ij", mass, values, grid, grid) - mass @ values * np.eye(len(x))
    expected = math.pi / 2 * 100**2 * (mass @ values**2 + 0.5) / (hessian**2).sum()
    found = float(ledger.half_samples.subs({d: 100, noise: 0.5}))
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_share_is_one_half_where_signal_equals_noise(cubic):
    half = round(float(cubic.half_samples.subs({d: 1000, noise: 0.5})))
    # Of the noise the share r/d is inside as well.
    assert cubic.relevant_share(1000, half, 0.5) == pytest.approx(0.5 + 1 / 1000, abs=1e-6)
    assert cubic.relevant_share(1000, 10**12) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("student", "text", "obstacle"),
    [
        ("relu", "He(2, x1) + He(3, x2)", "rank H = 1 < r = 2"),
        ("relu", "x1 + x2*x3", "rank H = 2 < r = 3"),
        ("relu", "x1*x2*x3", "rank H = 0 < r = 3"),
        ("relu", "(x1 + x2)**2 + x3 - x3", None),
        ("relu", "(sqrt(2)*x1 + x2)**2/3", None),
        ("erf", "x1*x2", "mu_2 = 0 for the student erf"),
        ("relu", "abs(x1)", "the target is not a polynomial"),
    ],
)
def test_broken_assumptions_give_words_and_never_numbers(student, text, obstacle):
    rows = sample_complexity(student, text).rows[:HALF]
    for row in rows:
        assert row.applies == (obstacle is None) == (row.scale is not None)
        assert row.obstacle == (obstacle or "")
        if obstacle:
            assert row.statement == f"does not apply: {obstacle}"


def test_each_row_says_what_it_rests_on(cubic):
    assert [row.standing for row in cubic.rows] == [
        Standing.THEOREM, Standing.THEOREM, Standing.THEOREM, Standing.DERIVED_HERE,
        Standing.THEOREM, Standing.THEOREM, Standing.HEURISTIC,
    ]  # fmt: skip
    assert all(row.source for row in cubic.rows)
    # The theorem is about relu.
    gelu = sample_complexity("gelu", "x1*x2").rows[FIRST]
    assert (gelu.standing, gelu.remark) == (Standing.HEURISTIC, "proven for relu")


def test_rows_that_do_not_apply_say_so_and_rest_on_nothing():
    refused = sample_complexity("relu", "x1*x2*x3")
    assert "does not apply" in refused.latex() and "mu_3" not in refused.latex()
    row = refused.rows[GIANT]
    assert row.statement == "does not apply: mu_3 = 0 for the student relu, leap index 3"
    assert sample_complexity("erf", "x1*x2*x3").rows[GIANT].scale == d**3
    row = sample_complexity("erf", "x1*x2").rows[0]
    assert not row.applies and row.basis == "–"


@pytest.mark.parametrize(
    ("text", "leap"),
    [
        # Catalogue of leaps_and_staircases.md, section 9: P14, P12, A05, A07, A10, A13.
        ("(sqrt(2)+sqrt(3)-sqrt(5+2*sqrt(6)))*x1 + He(2, x1) + x1*x2", 2),
        ("3*x1**2/2 + 3*x2**2/2", 2),
        ("erf(x1) - 2*x1/sqrt(3*pi)", 3),
        ("cos(x1)*cos(x2)", 2),
        ("gelu(x1) - x1/2", 2),
        ("x1 + abs(x2)", 1),
    ],
)
def test_leap_indices_are_decided_exactly(text, leap):
    assert sample_complexity("relu", text).leap_index == leap


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda c: sample_complexity("relu", "x1*x2*x3").half_samples, AssumptionError, "H = 0"),
        (lambda c: sample_complexity("erf", "x1*x2").half_samples, AssumptionError,
         "mu_2 = 0 for the student erf"),
        (lambda c: sample_complexity("sign", "x1*x2"), AssumptionError,
         "'sign' has no weak derivative"),
        (lambda c: sample_complexity("relu", "x1 - x1"), AssumptionError, "'x1 - x1' is constant"),
        (lambda c: sample_complexity("relu", "x1*y"), ExpressionError, "y"),
        (lambda c: sample_complexity("identity", "x1*x2").relevant_share(20, 1000),
         AssumptionError, "linear"),
        (lambda c: c.relevant_share(100, 0), ParameterError, "samples must be >= 1, got 0"),
        (lambda c: c.relevant_share(100, 10, -1), ParameterError,
         "noise_variance must be >= 0 and finite, got -1"),
    ],
)  # fmt: skip
def test_wrong_questions_are_refused(cubic, ask, error, message):
    with pytest.raises(error, match=message):
        ask(cubic)


# ------------------------------------------------------------------ trained networks


def test_a_user_cannot_name_a_coordinate_into_the_source():
    x, np_ = sp.symbols("x np", real=True)
    found = train_by_preprocessed_step(
        "relu", target(x * np_, [x, np_]), dimension=5, samples=50, width=4, ridge=1.0, seeds=2,
        n_test=10, progress=False,
    )  # fmt: skip
    assert math.isfinite(found.test_error.mean)


def test_ranks_and_directions_do_not_depend_on_coordinates_and_lengths():
    # An exact elimination of these four rows does not end.
    ledger = sample_complexity("relu", "(relu(x1) + erf(x2) + tanh(x3))**3")
    assert ledger.hessian_rank == 3
    # One direction written with two coordinates, with and without square roots.
    for text in ("(x1 + x2)**2", "(sqrt(2)*x1 + x2)**2/3", "He(3, x1) + 0*x2"):
        assert sample_complexity("relu", text).directions == 1
    assert sample_complexity("relu", "(x1 + x2)**2").hessian_rank == 1


# ---------------------------------------------------------------------- correlational queries


def test_answering_zero_excludes_few_members():
    # Orthonormal functions, correlation 0: a query of norm 1 has at most 1/τ² answers beyond τ, so
    # the bound |F| τ²/2 is below the |F| τ² queries that really are needed.
    size, tolerance = sp.Integer(64), sp.Rational(1, 4)
    assert required_queries(size, tolerance, sp.S.Zero) == 2
    assert required_queries(size, tolerance, sp.S.Zero) <= size * tolerance**2


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


@pytest.mark.parametrize(
    "arguments, message",
    [((0, 100), "degree"), ((3, 0), "dimension"), ((3, 10**6, 0.5), "queries"), ((65, 9), "degree"),
     ((3, 10**6, math.inf), "queries"), ((2.5, 9), "degree")],
)  # fmt: skip
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        correlational_query_bound(*arguments)
    with pytest.raises(AssumptionError, match="too small"):
        correlational_query_bound(3, 10)
    assert correlational_query_bound(2, 10**6).has_hessian
    assert not correlational_query_bound(3, 10**6).has_hessian
