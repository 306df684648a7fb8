"""Sharing changes how a value is computed, never the value."""

import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.symbolic.gaussian.ramp_moments import ramp_moment
from giantstep.symbolic.lowering.fuse import FreshSymbols
from giantstep.symbolic.lowering.program import Assign
from giantstep.symbolic.lowering.sharing import (
    in_order,
    share_in_loop,
    share_scalars,
    split_off,
    take_out_invariants,
)

V, q, p = sp.symbols("V q p", positive=True)
z, mu = sp.symbols("z mu", real=True)
POINT = {
    V: sp.Rational(3, 5), q: sp.Rational(7, 4), p: sp.Rational(1, 3),
    z: sp.Rational(-5, 7), mu: sp.Rational(2, 9),
}  # fmt: skip


def run(assigns, values, point=None):
    known = dict(POINT if point is None else point)
    for a in assigns:
        assert a.value.free_symbols <= set(known), f"{a} comes before what it needs"
        known[a.target] = a.value.xreplace(known)
    return [sp.N(v.xreplace(known), 25) for v in values]


def expected(values):
    return [sp.N(v.xreplace(POINT), 25) for v in values]


def test_one_division_serves_all_powers_of_a_reciprocal():
    d = 1 + V * mu**2 + p
    values = [mu**2 / d, p / d, mu**4 / d**2, p * mu**2 / d**2, z * mu / d**3]
    shared, reduced = share_in_loop(values, FreshSymbols())
    powers = [x for e in (*(a.value for a in shared), *reduced) for x in e.atoms(sp.Pow)]
    divisions = [x for x in powers if x.exp.is_negative]
    assert len(divisions) == 1
    assert run(shared, reduced) == expected(values)


def test_products_of_the_jacobian_are_built_from_those_of_the_residual():
    d = 1 + V * mu**2
    values = [mu**2 / d, p / d, mu**2 * p / d**2]
    shared, reduced = share_in_loop(values, FreshSymbols())
    assert sum(str(a.target).startswith("product_") for a in shared) == 2
    assert run(shared, reduced) == expected(values)


def test_what_is_the_same_at_all_nodes_is_computed_before():
    values = [sp.tanh(sp.sqrt(q) * z + sp.exp(-p)), z**2 / (1 + q * z**2) + sp.sqrt(q)]
    before, rest = take_out_invariants(values, {z}, FreshSymbols())
    assert {a.value for a in before} == {sp.sqrt(q), sp.exp(-p)}
    assert run(before, rest) == expected(values)


_leaves = st.sampled_from([V, q, p, z, mu, sp.Integer(2), sp.Rational(1, 3)])


def _grow(children):
    return st.one_of(
        st.tuples(children, children).map(lambda t: t[0] + t[1]),
        st.tuples(children, children).map(lambda t: t[0] * t[1]),
        children.map(lambda e: 1 / (1 + e**2)),
        children.map(sp.tanh),
        children.map(lambda e: sp.exp(-(e**2))),
    )


@settings(max_examples=15, deadline=None)
@given(st.lists(st.recursive(_leaves, _grow, max_leaves=8), min_size=1, max_size=4))
def test_values_are_kept(values):
    fresh = FreshSymbols()
    before, rest = take_out_invariants(values, {z, mu}, fresh)
    shared, reduced = share_in_loop(rest, fresh)
    found = run((*before, *shared), reduced)
    for a, b in zip(found, expected(values), strict=True):
        assert abs(a - b) <= 1e-20 * (1 + abs(b))


def test_scalars_are_ordered_by_their_needs():
    a, b, c = sp.symbols("a b c", real=True)
    run_ = [Assign(a, b**2 + V), Assign(b, c + V), Assign(c, q + V)]
    assert [x.target for x in in_order(run_)] == [c, b, a]
    shared = share_scalars([Assign(a, (q + V) ** 2), Assign(b, sp.exp(q + V))], FreshSymbols())
    assert run(shared, [a, b]) == expected([(q + V) ** 2, sp.exp(q + V)])


def test_what_holds_the_node_alone_is_put_first_on_a_grid():
    s = sp.Symbol("s", real=True)
    locals_ = [Assign(p, sp.erf(z) * s), Assign(V, sp.exp(mu) + 1), Assign(q, V * s)]
    values = [p * z * sp.sqrt(mu**2 + z**2), q + V * z + 2 * s]
    point = {**POINT, s: sp.Rational(4, 3)}
    given = run(locals_, values, point)
    count, ordered, reduced = split_off(locals_, values, {s}, FreshSymbols())
    known = {z, mu}
    for a in ordered[:count]:
        assert a.value.free_symbols <= known
        known.add(a.target)
    assert V in known
    assert p not in known
    found = run(ordered, reduced, point)
    assert max(abs(x - y) for x, y in zip(found, given, strict=True)) < 1e-20
    own = set().union(*(a.value.atoms(sp.Function) for a in ordered[count:]), *(
        v.atoms(sp.Function, sp.Pow) for v in reduced
    ))  # fmt: skip
    assert not own


def test_a_case_is_not_computed_where_it_does_not_hold():
    s = sp.Symbol("s", real=True)
    value = sp.Piecewise((sp.sqrt(z) * s, z > 0), (s, True))
    assert split_off([], [value], {s}, FreshSymbols()) == (0, (), (value,))


def test_moments_of_a_ramp_share_its_width():
    moments = [ramp_moment(-1, k, z, V + p, q) for k in (0, 1)]
    locals_, _ = share_in_loop(moments, FreshSymbols())
    assert [a.value for a in locals_].count(V + p) == 1
    # Places of nodes multiply the width, and not each of its terms.
    products = set().union(*(a.value.atoms(sp.Mul) for a in locals_))
    assert not any(f.args[0].is_Rational and f.has(V, p) for f in products)
