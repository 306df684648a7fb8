"""Few readout values: exact ranks with random coefficients, and quadrature."""

import pytest
import sympy as sp
from hypothesis import assume, given, settings, strategies as st

from giantstep.errors import ParameterError
from giantstep.symbolic.expressions.regularity import Parity
from giantstep.symbolic.leaps.readout_clusters import (
    ReadoutClusters,
    checked_readouts,
    coefficient_symbol,
)
from giantstep.symbolic.leaps.staircase import staircase
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import target

P04 = "x1 + x1*x2 + He(3, x1)*x3"


def test_two_readouts_yield_a_single_direction():
    # Both terms of P04 are of odd degree along e1: one direction s_2 u e2 + s_4 u³ e3 instead of
    # two. A simulation at d = 200, n = 2·10⁵ has singular values 0.122 and 0.005 on span(e2, e3)
    # for a = ±1 with noise 0.003, and 0.094 and 0.021 with a spread of a.
    found = staircase(P04, readout=[1, -1])
    clusters = found.clusters
    assert (clusters.dimension, clusters.reachable.dimension) == (2, 3)
    assert clusters.certain == Subspace.spanned_by([[1, 0, 0]])
    (direction,) = clusters.directions
    u, s2, s4 = sp.Symbol("u", positive=True), coefficient_symbol(2), coefficient_symbol(4)
    assert direction.vector == (0, s2 * u, s4 * u**3)
    assert str(direction) == "s_2*u*e2 + s_4*u**3*e3" and direction.paired
    assert "dimension 2 instead of 3" in str(found)
    # The staircase itself is that of a continuum of readouts.
    assert found.final.is_whole and clusters.is_limiting


@pytest.mark.parametrize("readout", [[1, -1, 2], [1, 2], [3, -1, sp.sqrt(2)]])
def test_more_readouts_yield_both(readout):
    clusters = staircase(P04, readout=readout).clusters
    assert clusters.dimension == 3 and not clusters.is_limiting
    assert clusters.certain.is_whole


def test_the_mean_of_the_target_separates_plus_and_minus():
    # μ_2(σ) E[f] w lengthens the weights of one readout and shortens those of the other.
    assert staircase(f"1 + {P04}", readout=[1, -1]).clusters.dimension == 3
    # An odd activation has no μ_2; its degrees here are only 1.
    odd = staircase("1 + x1 + He(2, x1)*x2 + He(4, x1)*x3", readout=[1, -1], student="tanh")
    assert odd.clusters.equal_norms and odd.clusters.dimension == 2
    assert odd.clusters.reachable.is_whole


@pytest.mark.parametrize(
    ("student", "dimension"),
    [
        # s_2 and s_4 have the ratio ±1 for all norms: one overlap up to sign, one direction up to
        # a factor, which quadrature of E[f(x) σ'(⟨w, x⟩) x] confirms at 0.786 and 1.357.
        ("exp", 2),
        ("sin(z + 1)", 2),
        ("cos(z) + z**3", 2),
        ("exp(2*z) + z", 2),
        ("gelu", 3),
        ("exp(z) + z**2", 3),
    ],
)
def test_norms_do_not_matter_to_exponentials(student, dimension):
    clusters = staircase(f"1 + {P04}", readout=[1, -1], student=student).clusters
    assert not clusters.equal_norms and clusters.dimension == dimension
    assert clusters.directions[0].paired is (dimension == 2)


def test_the_rank_of_the_overlaps_is_bounded_by_the_readouts():
    # (λ + …) e1 + s_2 u e2 and s_3 u² e3: the moves of two steps span R^3, two clusters do not.
    found = staircase("x1 + x1*x2 + He(2, x1)*x3", readout=[1, -1])
    assert (found.clusters.dimension, found.clusters.rank_at_most) == (3, 2)
    assert "span all of R^3, but with overlaps of rank 2 at most" in str(found)


def test_odd_and_even_parts_are_two_directions():
    clusters = staircase("x1 + x1*x2 + He(2, x1)*x3", readout=[1, -1]).clusters
    assert clusters.dimension == 3 and not clusters.is_limiting
    assert [d.parity for d in clusters.directions] == [Parity.ODD, Parity.EVEN]
    # A single readout moves along their sum only.
    single = staircase("x1 + x1*x2 + He(2, x1)*x3", readout=[1]).clusters
    assert single.dimension == 2
    assert str(single.directions[0]) == "s_2*u*e2 + s_3*u**2*e3"


def test_bounds_of_later_steps():
    five = "x1 + x1*x2 + He(3, x1)*x3 + x2*x4 + x2*x3*x5"
    found = staircase(five, readout=[1, -1])
    assert [step.after.dimension for step in found.steps] == [1, 3, 5]
    # Exact at steps 1 and 2, then at most one more for each cluster.
    assert found.dimensions_at_most == (1, 2, 4)
    assert "an upper bound" in str(found)
    assert staircase(five).dimensions_at_most == (1, 3, 5)


def test_coefficients_of_any_exact_field():
    for c in ("pi", "sqrt(2)", "exp(1/2)", "sqrt(3)*pi"):
        clusters = staircase(f"{c}*x1 + x1*x2 + He(3, x1)*x3", readout=[1, -1]).clusters
        assert clusters.dimension == 2 and len(clusters.directions) == 1


def test_nothing_to_cluster():
    assert staircase("x1*x2", readout=[1, -1]).clusters is None
    # After U_1 = V* there is nothing left, and no loss.
    assert staircase("x1 + x1**2", readout=[1]).clusters.dimension == 1


def test_targets_that_are_no_polynomials():
    found = staircase("x1 + sin(x1)*x2 + x1*exp(-x1**2)*x3", readout=[1, -1])
    assert found.clusters.reachable.is_whole
    # sin and x exp(-x²) are odd: one vector of the odd k.
    assert found.clusters.dimension == 2 and found.clusters.directions == ()
    again = ReadoutClusters.from_dict(found.clusters.to_dict())
    assert again == found.clusters


def test_readouts_are_compared_exactly():
    first, second = sp.sqrt(5 + 2 * sp.sqrt(6)), sp.sqrt(2) + sp.sqrt(3)
    assert checked_readouts([first, second, 0, -second]) == (first, -second)
    clusters = staircase(P04, readout=[first, -second]).clusters
    assert clusters.directions[0].paired
    with pytest.raises(ParameterError, match="more than 64"):
        checked_readouts(range(100))
    with pytest.raises(ParameterError, match="more than 64"):
        checked_readouts(iter(int, 1))
    for bad in ({1: 2}, b"1", None, [sp.nan], [sp.oo], [[1]], ["1"]):
        with pytest.raises(ParameterError, match="readout"):
            checked_readouts(bad)


exponents = st.tuples(*[st.integers(0, 3)] * 4).filter(lambda alpha: 2 <= sum(alpha) <= 5)
others = st.dictionaries(exponents, st.integers(-3, 3).filter(bool), min_size=1, max_size=6)
readouts = st.lists(st.integers(-3, 3).filter(bool), min_size=1, max_size=4, unique=True)


# Students of which all degrees pass, and the rests modulo 2 of the j with s_j(τ) ∝ exp(cτ²/2).
students = st.sampled_from(
    [(None, ()), ("exp", (0, 1)), ("cos(z) + tanh(z)", (0,)), ("sin(z) + relu(z)", (1,))]
)


@settings(max_examples=25)
@given(
    others,
    st.tuples(*[st.integers(-1, 1)] * 4),
    st.integers(0, 1),
    readouts,
    students,
    st.randoms(),
)
def test_dimension_is_the_rank_for_random_coefficients(terms, first, mean, values, student, random):
    # ∇F along U_1 by substitution, with independent random s_j for each norm τ: readouts ±a share
    # it if the mean vanishes.
    name, kept = student
    assume(any(first))
    x = sp.symbols("x1:5", real=True)
    he = [
        c * sp.Mul(*(sp.hermite_prob(n, v) for n, v in zip(alpha, x, strict=True)))
        for alpha, c in terms.items()
    ]
    linear = sp.Add(*(c * v for c, v in zip(first, x, strict=True)))
    f = target(sp.expand(sp.Add(*he) + linear + mean), x)
    clusters = staircase(f, readout=values, student=name).clusters
    assert clusters is not None
    F = f.expansion.symbol()
    s = sp.Symbol("s")
    known, rows = {}, [list(first)]
    for a in values:
        norm = a if mean else abs(a)
        row = [sp.S.Zero] * 4
        for i, v in enumerate(x):
            along = sp.diff(F, v).subs({w: s * c for w, c in zip(x, first, strict=True)})
            for (k,), c in sp.Poly(along, s).terms():
                keys = [(norm, k)]
                if (k + 1) % 2 in kept:  # μ_{k+1}, and the factor of the norm
                    keys = [(None, k), (norm, "even" if k % 2 else "odd")]
                for key in keys:
                    c *= known.setdefault(key, sp.Rational(random.randint(1, 10**6), 7))
                row[i] += c * a**k
        rows.append(row)
    reached = Subspace.spanned_by(rows, 4)
    assert clusters.dimension == reached.dimension
    assert clusters.certain <= reached <= clusters.reachable
    assert clusters.reachable == staircase(f, max_steps=2).final
