"""Where the estimate of the quadrature error could be smaller than the error."""

from __future__ import annotations

import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantstep as gs
from giantstep.errors import ConvergenceError
from giantstep.numeric.saddle_point_solver import solve_many
from giantstep.runtime import precise_lines, precision, quadrature
from giantstep.runtime.levels import Tables
from giantstep.runtime.precise_averages import InnerRule, usual_reach

# (student, teacher, r, c, gamma), (alpha, beta, ridge); found at random, but for the third.
FOUND = [
    # The integrand lies at kappa = 7, its tail beyond the reach that all three rules shared.
    (("exp", "sin", -3.43, 0.32, -0.96), (0.27, 0.34, 0.1)),
    # Refinement stopped at 1e-3, because the estimate of the first rules was small by luck.
    (("He6", "He2", 2.233, 0.0804, 0.081), (1.71, 0.94, 4.8e-4)),
    # A period of 0.16, the step: sin(5*r*kappa) vanished at every node of every rule.
    (("sin(5*z)", "sin", 2 * math.pi / 0.16 / 5, 0.05, 0.8), (1.5, 1.0, 0.1)),
    (("sin", "atan", -7.43, 0.79, 0.76), (0.35, 0.52, 0.046)),
    # Closed forms of polynomials of degree 8 cancel by two digits.
    (("exp", "He8", 0.6176, 3.936, 0.9725), (4.125, 0.199, 1.376)),
]


# Digits take two to eight seconds for each.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("spiked", "point"), FOUND, ids=[f"{case[0][0]} {case[0][1]}" for case in FOUND]
)
def test_estimate_is_no_smaller_than_the_error(spiked, point):
    student, teacher, r, c, gamma = spiked
    alpha, beta, ridge = point
    model = gs.SpikedRandomFeatures.from_parameters(
        student, teacher, spike_strength=r, bulk_variance=c, alignment=gamma, beta=beta
    )
    found = model.solve(alpha=alpha, ridge=ridge)
    precise = model.solve(alpha=alpha, ridge=ridge, digits=16, progress=False)
    assert abs(float(found.test_error - precise.test_error)) <= found.quadrature_error
    # A bound that says nothing would be honest too.
    assert found.quadrature_error <= 1e-9 * float(precise.test_error)


@pytest.fixture(scope="module")
def model():
    return gs.SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)


def replaced_solve(model, monkeypatch, change):
    """Run the plain twin once, with ``change(call, out, info)`` after its three solves."""
    kernel = model._kernel
    plain, calls = kernel.plain, []
    original = plain.solve

    def solve(*arguments):
        original(*arguments)
        calls.append(None)
        *_, out, info, _, _, _ = arguments
        change((len(calls) - 1) % 3, out, info)

    with monkeypatch.context() as context:
        context.setattr(plain, "solve", solve)
        # So large a tolerance that nothing finite is refined.
        found = model.solve_many(alpha=[1.5], ridge=[0.1], rtol=1e300)
    return found.errors["test_error"][0]


def unconverged(which):
    def change(call, out, info):
        if call == which:
            info[0] = -500

    return change


def spoiled(which, value, first=0):
    def change(call, out, info):
        if call == which:
            for k in range(first, len(out)):
                out[k] = value

    return change


@pytest.mark.parametrize(
    "change", [unconverged(1), spoiled(1, math.nan), spoiled(1, math.inf), spoiled(1, math.nan, 2)]
)
def test_nothing_is_promised_without_the_medium_solution(model, monkeypatch, change):
    assert replaced_solve(model, monkeypatch, change) == math.inf


@pytest.mark.parametrize("change", [unconverged(2), spoiled(2, math.nan), spoiled(2, 1e9)])
def test_coarse_solution_that_is_wrong_does_not_make_the_rest_look_good(model, monkeypatch, change):
    difference = 1e-3

    def both(call, out, info):
        if call == 1:
            for k in range(len(out)):
                out[k] *= 1 + difference
        change(call, out, info)

    error = replaced_solve(model, monkeypatch, both)
    # The gain that is claimed is at most ten times the last difference, never more.
    assert error >= 9 * difference**2 * model.solve(alpha=1.5, ridge=0.1).test_error


@pytest.mark.slow
def test_row_that_plain_python_refuses_is_solved_compiled(model, monkeypatch):
    # math.log of a negative number is a ValueError, and must not change its neighbours' digits.
    kernel = model._kernel
    expected = model.solve_many(alpha=[1.0, 1.5, 2.0], ridge=[0.1])
    original = kernel.plain.solve_rows

    def refuse_second(first, stop, parameters, *rest):
        if (parameters[first:stop] == 1.5).any():
            math.log(-1.0)
        original(first, stop, parameters, *rest)

    monkeypatch.setattr(kernel.plain, "solve_rows", refuse_second)
    found = model.solve_many(alpha=[1.0, 1.5, 2.0], ridge=[0.1])
    for name, values in expected.values.items():
        assert np.array_equal(values[[0, 2]], found.values[name][[0, 2]]), name
        assert found.values[name][1] == pytest.approx(values[1], rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_no_rows_are_no_problem(model, workers):
    kernel = model._kernel
    values = [1.0] * len(kernel.table_parameters)
    found = solve_many(kernel, values, np.empty((0, len(kernel.parameters))), workers=workers)
    assert found.values["test_error"].shape == found.nodes.shape == (0,)


def test_more_workers_than_rows(model):
    one, many = (model.solve_many(alpha=[0.5, 1.0, 2.0], ridge=[0.1], workers=w) for w in (1, 16))
    assert np.array_equal(one.values["test_error"], many.values["test_error"])


def test_nan_in_a_table_is_not_agreement():
    good, bad = {"a": np.zeros(3), "b": np.ones(3)}, {"a": np.zeros(3), "b": np.full(3, np.nan)}
    changes = {k: float(np.max(np.abs(bad[k] - good[k]))) for k in good}
    assert not quadrature.settled(changes, changes, bad)


@pytest.mark.parametrize("multiple", [1, 2, 3, 4, 8])
def test_waves_in_resonance_with_a_step_are_no_agreement(multiple):
    # Of a frequency that the rule is not told: two steps of which one is half of the other see it
    # as a constant, both.
    wave = multiple * 2 * math.pi / quadrature.trapezoidal_step(math.inf)

    def tables(x, rules):
        z, weight = rules["z"]
        return {"mean": np.sum(weight * (1 + np.cos(wave * (x[:, None] + z))), axis=1)}

    module = SimpleNamespace(
        inner_rules=lambda x: {"z": ("trapezoidal", (math.inf, 0.0, 0.0))}, tables=tables
    )
    x = np.linspace(-1.0, 1.0, 5)
    found = Tables(module, [])(x)["mean"]
    assert_allclose(found, 1 + math.exp(-(wave**2) / 2) * np.cos(wave * x), rtol=0, atol=2e-14)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("multiple", [1, 2, 4])
def test_digits_of_waves_in_resonance_with_a_step_are_right(multiple, known):
    ctx = precision.local_context(20)
    exponent = math.log(10) * (20 + 20)
    wave = multiple * 2 * math.pi / quadrature.trapezoidal_step(math.inf, exponent=exponent)
    rule = InnerRule(ctx, 20, {"z": (math.inf, 0.0, wave if known else 0.0)})

    def wavy(z):
        return (1 + ctx.cos(wave * z + 1),)

    exact = 1 + ctx.exp(-(ctx.mpf(wave) ** 2) / 2) * ctx.cos(1)
    assert abs(rule("z", wavy, [])[0] - exact) < 1e-28
    if known and multiple == 1:
        half = rule("z", lambda z: (wavy(z)[0] * (z > 0),), [ctx.zero])[0]
        # E sign(z) sin(wz), by Dawson's integral.
        sine = (
            ctx.sqrt(2 / ctx.pi) * wave * ctx.hyp1f1(1, ctx.mpf(3) / 2, -(ctx.mpf(wave) ** 2) / 2)
        )
        assert abs(2 * half - exact + ctx.sin(1) * sine) < 1e-20


def test_inner_rules_go_farther_where_integrands_grow():
    # E exp(9z) has its mass around z = 9, of which usual rules see one half.
    def tables(x, rules):
        z, weight = rules["z"]
        return {"mean": np.sum(weight * np.exp(9 * (x[:, None] + z)), axis=1)}

    module = SimpleNamespace(
        inner_rules=lambda x: {"z": ("trapezoidal", (math.inf, 0.0, 0.0))}, tables=tables
    )
    found = Tables(module, [])(np.zeros(1))["mean"]
    assert_allclose(found, math.exp(40.5), rtol=1e-12)


def test_table_that_vanishes_by_a_symmetry_converges():
    rounding = np.random.default_rng(0)

    def tables(x, rules):
        return {"even": np.ones_like(x), "odd": 1e-17 * rounding.standard_normal(len(x))}

    module = SimpleNamespace(
        inner_rules=lambda x: {"z": ("hermite", (8, 0.0))}, tables=tables
    )  # fmt: skip
    found = Tables(module, [])(np.linspace(-1.0, 1.0, 5))
    assert np.max(np.abs(found["odd"])) < 1e-15


@pytest.mark.parametrize("c", [1e-4, 1e-8])
def test_digits_that_tables_lose_are_part_of_the_estimate(c):
    # mu_2^2 is the square of a difference of size c of terms of size 1.
    model = gs.SpikedRandomFeatures.from_parameters(
        "tanh", "sin", spike_strength=1.0, bulk_variance=c, alignment=0.8
    )
    found = model.kernel().solve(alpha=1.5, ridge=0.1)
    precise = model.solve(alpha=1.5, ridge=0.1, digits=18, progress=False)
    for name in ("test_error", "V2", "V2_hat", "q2_hat", "theta"):
        true_error = abs(float(found[name] - getattr(precise, name)))
        assert true_error <= found.errors[name], name
    # Where the table does not matter nothing is lost.
    assert found.errors["test_error"] <= 1e-13
    assert found.errors["V2_hat"] <= 1e-6 * abs(found.V2_hat)


@pytest.mark.parametrize(
    ("student", "teacher", "r", "c", "gamma", "point"),
    [
        # An overlap that vanishes by a symmetry is rounding, and so is its error.
        ("cos", "sign", 0.736328125, 2.63671875, 0.5322265625, (1.861328125, 2.0**-14)),
        ("He3", "He2", -2.458984375, 0.4375, 0.09765625, (2.7822265625, 2.0**-17)),
    ],
)
def test_overlap_that_vanishes_by_a_symmetry(student, teacher, r, c, gamma, point):
    model = gs.SpikedRandomFeatures.from_parameters(
        student, teacher, spike_strength=r, bulk_variance=c, alignment=gamma
    )
    found = model.kernel().solve(alpha=point[0], ridge=point[1])
    small = [name for name in ("m", "theta", "psi") if abs(found[name]) < 1e-14]
    assert small
    assert all(abs(found[name]) <= found.errors[name] <= 1e-12 for name in small)


def test_inner_step_is_checked_where_the_integrand_varies():
    ctx = precision.local_context(20)
    rule = InnerRule(ctx, 20, {"z": (math.inf, 0.0, 0.0)})

    def tables(x):
        # Narrow around z = x, gone at the ends of the line; the step promised is far too large.
        return tuple(rule("z", lambda z: (ctx.exp(-30 * (z - x) ** 2),), []))

    probes = [tables(ctx.mpf(x)) for x in precise_lines._PROBES]
    rule.checked = False
    reach, beyond = precise_lines._sufficient_reach(ctx, 20, tables, probes)
    assert reach == usual_reach(ctx, 20)
    assert beyond <= ctx.mpf(10) ** -25
    # E exp(-a (z - x)**2) = exp(-a x**2/(1 + 2 a))/sqrt(1 + 2 a)
    exact = ctx.exp(-30 * ctx.mpf(1) / 4 / 61) / ctx.sqrt(61)
    assert abs(tables(ctx.mpf(1) / 2)[0] - exact) <= ctx.mpf(10) ** -20


def test_reach_follows_tables_that_grow():
    ctx = precision.local_context(15)
    probes = [(ctx.exp(4 * x),) for x in precise_lines._PROBES]
    reach, beyond = precise_lines._sufficient_reach(ctx, 15, lambda x: (ctx.exp(4 * x),), probes)
    assert beyond <= ctx.mpf(10) ** -20
    # exp(8 x - x**2/2) has its peak at 8; 25 digits below it from 8 + 10.7 on.
    assert 18.7 <= reach <= 25


def test_rule_between_kinks_admits_that_it_fails():
    ctx = precision.local_context(15)
    rule = InnerRule(ctx, 15, {"z": (1.0, 0.0, 0.0)})
    with pytest.raises(ConvergenceError, match="between kinks"):
        rule("z", lambda z: (mpmath.mpf(1) / (10**-9 + (z - ctx.mpf("0.7")) ** 2),), [ctx.zero])


def test_rule_between_kinks_keeps_its_order_and_leaves_singular_ends_to_another_rule():
    ctx = precision.local_context(15)
    rule = InnerRule(ctx, 15, {})
    for checked in (True, False):
        rule.checked = checked
        both = rule("z", lambda z: (abs(z), abs(z) * z), [ctx.zero])
        assert abs(both[0] - ctx.sqrt(2 / ctx.pi)) < 1e-30 and abs(both[1]) < 1e-30
    rule.checked = True
    (root,) = rule("w", lambda z: (ctx.sqrt(abs(z)),), [ctx.zero])
    exact = ctx.root(2, 4) * ctx.gamma(ctx.mpf(3) / 4) / ctx.sqrt(ctx.pi)
    assert abs(root - exact) < 1e-14


def test_rule_between_kinks_tells_its_error():
    ctx = precision.local_context(15)
    rule = InnerRule(ctx, 15, {})
    (found,) = rule("z", lambda z: (abs(ctx.tanh(z)),), [ctx.zero])
    fine = precision.local_context(45)
    exact = 2 * fine.quad(lambda z: fine.tanh(z) * fine.npdf(z), [0, 2, 4, 8, 16])
    assert abs(found - exact) <= rule.error * (1 + found)
    assert 0 < rule.error <= ctx.mpf(10) ** -25
