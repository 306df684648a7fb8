"""What the difference of two rules says of the finer one, and averages on one lattice."""

from __future__ import annotations

import pickle
from dataclasses import replace
from types import SimpleNamespace

import mpmath
import pytest
from hypothesis import given, settings, strategies as st

from giantstep.errors import ConvergenceError
from giantstep.packed_numbers import packed, unpacked
from giantstep.runtime.precise_averages import InnerRule, Lattice
from giantstep.runtime.precise_lines import Lines, panel_rule
from giantstep.runtime.precision import (
    PreciseKernel,
    _quadrature_error,
    local_context,
    solve_precisely,
    with_spare_digits,
)
from giantstep.symbolic.lowering.driver import precise_driver


@pytest.mark.parametrize(
    ("difference", "composite", "grid", "error"),
    [
        # The trapezoidal rule squares its error; 3/2 of the digits are counted upon.
        ("1e-14", False, False, "1e-20"),
        ("1e-2", False, False, "1e-2"),
        # A composite rule has to agree to all digits.
        ("1e-20", True, False, "1e-20"),
        # A level of a grid has sqrt(2) times the digits.
        ("1e-20", False, True, "1e-25"),
    ],
)
def test_the_error_of_a_rule_follows_from_the_difference_to_a_coarser_one(
    difference, composite, grid, error
):
    ctx = local_context(20)
    value, zero = ctx.mpf("0.3"), ctx.mpf(10) ** -36
    other = value * (1 + ctx.mpf(difference))
    found = _quadrature_error(ctx, value, other, zero, composite, grid)
    assert found / value == pytest.approx(float(error), rel=1e-6)


def test_what_cancels_to_rounding_counts_as_zero():
    ctx = local_context(20)
    zero = ctx.mpf(10) ** -36
    assert _quadrature_error(ctx, zero / 3, -zero / 2, zero, False, False) == 0
    assert _quadrature_error(ctx, 3 * zero, -zero, zero, False, False) > zero


@settings(max_examples=10, deadline=None)
@given(st.floats(-30, 30), st.floats(0.05, 4), st.integers(0, 3), st.sampled_from([0.0, 0.2, 1.5]))
def test_lattice_averages_are_gaussian_moments(offset, spread, power, rate):
    # E[z^j exp(a(A + B z))] = exp(aA + a²B²/2) E[(z + aB)^j]; exp grows, so small weights count.
    ctx = local_context(30)
    a, b, rate = ctx.mpf(offset), ctx.mpf(spread), ctx.mpf(rate)
    lattice = Lattice(ctx, lambda u: (ctx.one, ctx.exp(rate * u)), b, ctx.mpf("0.2"), ctx.mpf(24))
    one, found = lattice.means(a, [(0, 0), (1, power)])
    shift = rate * b
    moments = [1, shift, 1 + shift**2, 3 * shift + shift**3]
    expected = ctx.exp(rate * a + shift**2 / 2) * moments[power]
    scale = ctx.exp(rate * a + shift**2 / 2) * (1 + shift) ** power
    assert abs(one - 1) < 1e-44
    assert abs(found - expected) < 1e-43 * scale


def test_a_lattice_takes_more_bits_where_its_function_is_large():
    # Offsets on the lattice have the same weights but for their bits.
    ctx = local_context(15)
    lattice = Lattice(ctx, lambda u: (ctx.exp(u),), ctx.one, ctx.mpf("0.25"), ctx.mpf(13))
    for offset in (0, 400, 0):
        found = lattice.means(ctx.mpf(offset), [(0, 0)])[0]
        assert abs(found / ctx.exp(offset + ctx.mpf(1) / 2) - 1) < 1e-25


def test_rules_far_apart_share_nothing_and_stay_cheap():
    ctx = local_context(15)
    points = []

    def function(u):
        points.append(u)
        return (ctx.tanh(u),)

    lattice = Lattice(ctx, function, ctx.mpf("0.001"), ctx.mpf("0.25"), ctx.mpf(13))
    for offset in (0, 1000, -1000):
        assert lattice.means(ctx.mpf(offset), [(0, 0)])[0] == pytest.approx(
            offset and offset / abs(offset), abs=1e-30
        )
    assert len(points) < 1000


@pytest.mark.parametrize("spread", ["0.7", "-0.7", "0"])
def test_smoothed_functions_agree_with_quadrature(spread):
    ctx = local_context(25)
    rule = InnerRule(ctx, 25, {})
    rule.outer_step = ctx.mpf("0.3")
    b = ctx.mpf(spread)
    for offset in (ctx.mpf(0), ctx.mpf("1.2"), ctx.mpf("-0.45")):
        found = rule.smoothed(
            "z", lambda u: (ctx.tanh(u), ctx.sech(u)), offset, b, [(0, 0), (0, 1), (1, 2)],
            lambda: (ctx.pi / 2 / abs(b), 0, 0, 1),
        )  # fmt: skip
        for value, (f, j) in zip(found, [(ctx.tanh, 0), (ctx.tanh, 1), (ctx.sech, 2)], strict=True):
            expected = ctx.quad(
                lambda z, f=f, j=j, a=offset: z**j * f(a + b * z) * ctx.npdf(z),
                [-14, -7, 0, 7, 14],
            )
            assert abs(value - expected) < 1e-30


@pytest.mark.parametrize("spread", ["0.7", "-0.7", "0"])
def test_smoothed_functions_with_kinks_agree_with_quadrature(spread):
    ctx = local_context(25)
    rule = InnerRule(ctx, 25, {})
    b = ctx.mpf(spread)
    asked = []

    def functions(u):
        asked.append(u)
        return abs(ctx.tanh(u)), abs(u - 2) * ctx.exp(u)

    for offset in (ctx.mpf(0), ctx.mpf("1.2"), ctx.mpf("-7.45")):
        found = rule.smoothed(
            "z", functions, offset, b, [(0, 0), (0, 1), (1, 2)], lambda: (1, 0, 0, 1), [0, 2]
        )
        places = [(k - offset) / b for k in (0, 2) if b]
        ends = sorted(x for x in (-16, -8, 0, 8, 16, *places) if abs(x) <= 16)
        for value, (k, j) in zip(found, [(0, 0), (0, 1), (1, 2)], strict=True):
            expected = ctx.quad(
                lambda z, k=k, j=j, a=offset: z**j * functions(a + b * z)[k] * ctx.npdf(z), ends
            )
            assert abs(value - expected) < 1e-30
    rule.checked = False
    asked.clear()
    rule.smoothed("z", functions, ctx.mpf(1), b, [(0, 0)], lambda: (1, 0, 0, 1), [0, 2])
    # Nearby averages need no more values.
    assert len(asked) == (0 if b else 1)


def test_smoothed_functions_with_singular_kinks_take_another_rule():
    ctx = local_context(15)
    rule = InnerRule(ctx, 15, {})
    (found,) = rule.smoothed(
        "z", lambda u: (ctx.sqrt(abs(u)),), ctx.zero, ctx.one, [(0, 0)], lambda: (1, 0, 0, 1), [0]
    )
    exact = ctx.root(2, 4) * ctx.gamma(ctx.mpf(3) / 4) / ctx.sqrt(ctx.pi)
    assert abs(found - exact) < 1e-14


def test_numbers_of_a_context_survive_pickling():
    ctx = local_context(40)
    values = {"a": ctx.pi * 1, "b": {"c": -(ctx.mpf(2) ** -900)}, "t": (ctx.zero, 1, "x", 0.5)}
    again = unpacked(pickle.loads(pickle.dumps(packed(values))), local_context(40))
    assert again == values
    assert unpacked(packed(ctx.inf), ctx) == mpmath.inf


def linear_kernel(gap):
    """y = E[x²]/(E[a²] - E[x²]) = 1/gap, where a² = (1 + gap) x²: all digits of a count."""
    return PreciseKernel(
        table_source=f"""
def tables(x, rule):
    return (x * ctx.sqrt(1 + ctx.mpf("{gap}")),)
""",
        solver_source="""
def solve(weight, x, a, out, info, rough=0):
    second = ctx.fsum(w * y**2 for w, y in zip(weight, x))
    out[0] = second / (ctx.fsum(w * y**2 for w, y in zip(weight, a)) - second)
    info[:] = [1, ctx.zero, 32 * ctx.eps]
""",
        driver_source=precise_driver(),
        parameters=(), table_parameters=(), outputs=("y",), results=("y",), unknowns=(), even=False,
    )  # fmt: skip


@pytest.mark.parametrize("gap", ["1e-3", "1e-12", "1e-20", "1e-33"])
def test_errors_grow_as_the_equations_are_ill_conditioned(gap):
    ctx = local_context(15)
    values, errors, _ = solve_precisely(
        linear_kernel(gap), {}, ctx=ctx, digits=15, start={}, step=0.5
    )
    error = sum(part["y"] for part in errors.values())
    assert abs(values["y"] - 1 / ctx.mpf(gap)) <= error
    # A bound that says nothing would be honest too: 35 digits, some for each digit of the gap.
    assert error <= 1e-27 / ctx.mpf(gap) ** 2


def test_digits_that_are_not_reached_are_refused():
    """Digits that conditioning takes are carried; where these are out of reach, that is said."""

    def solved(wanted, lost, most=99):
        if wanted > most:
            raise ConvergenceError(f"{wanted} digits would need too many nodes")
        error = mpmath.mpf(10) ** (lost - wanted)
        return {"y": mpmath.mpf(1)}, {"root": {"y": error}}, 1

    _, budget, _ = with_spare_digits(lambda wanted: solved(wanted, 13), 40)
    assert budget["root"]["y"] < 1e-40
    few = r"40 digits were asked for, and a result is known to 27 only; ask for fewer .*: 54 digits"
    with pytest.raises(ConvergenceError, match=few):
        with_spare_digits(lambda wanted: solved(wanted, 13, most=50), 40)
    # The last digit asked for may be uncertain.
    values, _, _ = with_spare_digits(lambda wanted: solved(wanted, 1, most=40), 40)
    assert values == {"y": 1}


def test_grids_whose_digits_grow_too_slowly_are_refused():
    grid = SimpleNamespace(last_level=3)
    lines = SimpleNamespace(_grid=grid, _digits=40, _ctx=local_context(40))
    # Twelve digits on the third level are at most 24 on the last one.
    refused = r"more than 4e.05 nodes: level 2 of the grids has 12, the one before 6"
    with pytest.raises(ConvergenceError, match=refused):
        Lines.require_growth(lines, 2, [0, mpmath.mpf("5e-7"), mpmath.mpf("5e-13")])
    Lines.require_growth(lines, 2, [0, mpmath.mpf("1e-12"), mpmath.mpf("1e-22")])


def test_a_division_by_zero_is_no_solution():
    ctx = local_context(15)
    with pytest.raises(ConvergenceError, match="divide by zero at high precision"):
        solve_precisely(linear_kernel("0"), {}, ctx=ctx, digits=15, start={}, step=0.5)


def test_what_newtons_method_does_not_find_is_no_solution():
    failing = linear_kernel("1").solver_source.replace("info[:] = [1,", "info[:] = [-1,")
    kernel = replace(linear_kernel("1"), solver_source=failing)
    with pytest.raises(ConvergenceError, match="Newton's method failed at high precision"):
        solve_precisely(kernel, {}, ctx=local_context(15), digits=15, start={}, step=0.5)
    # Equations without unknowns are solved in no iterations.
    direct = failing.replace("info[:] = [-1,", "info[:] = [0,")
    kernel = replace(kernel, solver_source=direct)
    ctx = local_context(15)
    values, errors, _ = solve_precisely(kernel, {}, ctx=ctx, digits=15, start={}, step=0.5)
    assert abs(values["y"] - 1) <= sum(part["y"] for part in errors.values())


def test_variances_next_to_nothing_are_never_taken_as_negative():
    kernel = replace(
        linear_kernel("1"),
        table_source="""
def tables(x, rule):
    return (ctx.exp(-2 * x**2),)
""",
        solver_source="""
def solve(weight, x, a, out, info, rough=0):
    out[0] = ctx.fsum(w * max(ctx.sqrt(y), ctx.zero) for w, y in zip(weight, a))
    info[:] = [1, ctx.zero, 32 * ctx.eps]
""",
    )
    ctx = local_context(15)
    values, errors, _ = solve_precisely(kernel, {}, ctx=ctx, digits=15, start={}, step=0.5)
    error = sum(part["y"] for part in errors.values())
    assert abs(values["y"] - 1 / ctx.sqrt(3)) <= error < 1e-10


def test_erf_is_odd_and_computed_once_for_each_size():
    ctx, plain = local_context(30), mpmath.mp.clone()
    plain.dps = ctx.dps
    for x in (0.3, -0.3, 7, -40, 0, mpmath.inf, -mpmath.inf):
        assert ctx.erf(ctx.mpf(x)) == plain.erf(plain.mpf(x))
    assert ctx.erf(ctx.mpc(1, 1)) == plain.erf(plain.mpc(1, 1))
    with ctx.workprec(500):
        fine = ctx.erf(ctx.mpf("0.25"))
    assert fine != ctx.erf(ctx.mpf("0.25"))


@pytest.mark.parametrize("level", [0, 1])
def test_the_rule_of_panels_integrates_powers_over_the_unit_interval(level):
    ctx = local_context(20)
    weights, nodes = panel_rule(ctx, 20, ctx.mpf(9), level)
    for power in (0, 1, 2, 7):
        found = ctx.fdot(weights, [x**power for x in nodes])
        assert abs(found - ctx.mpf(1) / (power + 1)) < 1e-19
