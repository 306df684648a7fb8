"""Programs on balls: enclosures of every step, and nothing that only floats need."""

from __future__ import annotations

from functools import cache

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from sympy.codegen.cfunctions import expm1, log1p

from giantstep.derivations.mean_field import logistic_regression
from giantstep.errors import CertificationError, UnsupportedExpressionError
from giantstep.symbolic.exact.ball_functions import BallTape
from giantstep.symbolic.expressions.averages import DataAverage
from giantstep.symbolic.expressions.functions import (
    erfcx,
    log_cosh,
    log_normal_cdf,
    normal_cdf,
    relu,
    sigmoid,
    softplus,
)
from giantstep.symbolic.lowering.ball_program import (
    BallLoop,
    BallNewton,
    BallProgram,
    with_derivatives,
)
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.lowering.program import Assign, Newton, NodeLoop
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

flint = pytest.importorskip("flint")

x, y = sp.symbols("x y", real=True)
out = sp.Symbol("out", real=True)

FUNCTIONS = [
    sp.exp(x) / (1 + y**2), sp.sqrt(x**2 + 1), (1 + x**2) ** sp.Rational(-3, 2), sp.tanh(x * y),
    sp.erf(x) - sp.erfc(y), sp.atan(x) + sp.asinh(y), sp.log(2 + sp.cos(x)), expm1(x), x**3 / 3,
    log1p(x**2), relu(x) * softplus(y), sigmoid(x) + sp.sech(y), log_cosh(x), erfcx(x),
    normal_cdf(x) + log_normal_cdf(y), sp.Max(x, y, 0), sp.Min(x, y), sp.Abs(x) * sp.sign(y),
    sp.Piecewise((x**2, x > y), (x, x > -1), (sp.pi, True)), (x - y) ** 4, 1 / (x**2 + y**2 + 1),
]  # fmt: skip


@cache
def tape_of(number: int) -> BallTape:
    return BallTape((x, y), (), [(out, FUNCTIONS[number])], [out])


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
@settings(max_examples=12, deadline=None)
@given(a=st.floats(-3, 3), b=st.floats(-3, 3), radius=st.sampled_from([0.0, 1e-9, 0.02]))
def test_balls_hold_the_values_of_expressions(number, a, b, radius):
    with flint.ctx.workprec(120):
        (ball,) = tape_of(number)([flint.arb(a, radius), flint.arb(b, radius)])
    exact = {x: sp.Rational(a), y: sp.Rational(b)}
    with flint.ctx.workprec(120):
        expected = flint.arb(str(FUNCTIONS[number].subs(exact).evalf(25)))
        assert abs(ball - expected).lower() <= 1e-18
        # Not so wide that it says nothing.
        assert ball.is_finite()


def test_a_square_around_zero_is_not_negative():
    tape = BallTape((x,), (), [(out, sp.sqrt(x**2))], [out])
    (ball,) = tape([flint.arb(0, 1)])
    assert ball.is_finite()


def test_undecided_cases_give_all_values_and_undefined_ones_none():
    step = sp.Piecewise((0, x < 1), (2, True))
    tape = BallTape((x,), (), [(out, step)], [out])
    assert [tape([flint.arb(*ball)])[0].contains(1) for ball in ((0.5,), (2,), (1, 0.1))] == [
        False, False, True,
    ]  # fmt: skip
    strict = BallTape((x,), (), [(out, step)], [out], decided=True)
    assert strict([flint.arb(2)])[0] == 2 and not strict([flint.arb(1, 0.1)])[0].is_finite()
    root = BallTape((x,), (), [(out, sp.sqrt(x) + sp.log(x))], [out])
    assert not root([flint.arb(-1)])[0].is_finite()
    assert not root([flint.arb(0, 1)])[0].is_finite()
    without = BallTape((x,), (), [(out, sp.Piecewise((0, x < 1)))], [out])
    assert not without([flint.arb(2)])[0].is_finite()


def test_kinks_under_an_average_are_refused_by_name():
    for kinked in (sp.Abs(y), sp.Max(y, 0), sp.Piecewise((y, y > 0), (0, True)), relu(y)):
        with pytest.raises(UnsupportedExpressionError, match="under an average"):
            BallTape((x,), (y,), [(out, x * kinked)], [out])
    with pytest.raises(UnsupportedExpressionError, match="gamma"):
        BallTape((x,), (), [(out, sp.gamma(x))], [out])


def test_complex_balls_across_a_cut_are_not_finite():
    at_node = BallTape((x,), (y,), [(out, x * sp.log(y))], [out]).bind([flint.arb(2)])
    across = flint.acb(flint.arb(-1), flint.arb(0, 0.1))
    assert not at_node([across], True)[0].is_finite()
    assert at_node([flint.acb(1, 1)], True)[0].is_finite()
    assert isinstance(at_node([flint.arb(3)], True)[0], flint.arb)


# ------------------------------------------------------------------ programs

u, v, a, b = sp.symbols("u v a b", positive=True)


def coupled(sign: int = 1) -> SaddlePointSystem:
    return SaddlePointSystem.from_fixed_point(
        {u: a / (1 + sign * v), v: b / (1 + u**2)},
        name="coupled",
        parameters=(a, b),
        outputs={"product": u * v},
    )


def newton_of(system: SaddlePointSystem) -> tuple[BallProgram, BallNewton]:
    program = lower(system).program
    ball = BallProgram(program, tuple(str(o) for o in program.outputs))
    (block,) = (step for step in ball.steps if isinstance(step, BallNewton))
    return ball, block


def test_derivatives_are_those_of_the_residuals_and_of_the_program():
    program = lower(coupled()).program
    (newton,) = (s for s in program.steps if isinstance(s, Newton))
    _, jacobian = with_derivatives(newton)
    assert [len(row) for row in jacobian] == [len(newton.unknowns)] * len(newton.residual)
    _, block = newton_of(coupled())
    parameters = {p: flint.arb(2) for p in program.parameters}
    names = [str(w) for w in block.unknowns]
    at = [flint.arb((3, -2)) for _ in names]
    with flint.ctx.workprec(160):
        residual, slopes = block.evaluate(at, parameters, None, True)
        step = flint.arb(2) ** -60
        for j, logarithmic in enumerate(block.logarithmic):
            moved = [w * step.exp() if i == j and logarithmic else w for i, w in enumerate(at)]
            there, _ = block.evaluate(moved, parameters, None, False)
            for i, (after, before) in enumerate(zip(there, residual, strict=True)):
                # Forward difference: off by the step, 1e-18.
                assert abs((after - before) / step - slopes[i][j]) < 1e-16


def test_a_wrong_jacobian_of_the_program_is_of_no_consequence():
    program = lower(coupled()).program
    (newton,) = (s for s in program.steps if isinstance(s, Newton))
    targets = {entry for row in newton.jacobian for entry in row}
    body, _ = with_derivatives(newton)
    used = BallProgram(program, ("product", "u", "v")).steps
    (block,) = (step for step in used if isinstance(step, BallNewton))
    assigned = {
        assignment.target
        for steps in (block.values, block.slopes, block.after)
        for step in steps
        for assignment in step.assignments
    }
    assert assigned.isdisjoint(targets) and len(body) > len(newton.body)


def test_magnitudes_and_unwanted_results_are_left_out():
    program = lower(coupled()).program
    scales = {str(s) for s in program.magnitudes.values()}
    ball = BallProgram(program, ("product",))
    assert scales and not any(
        str(assignment.target) in scales
        for step in ball.steps
        if not isinstance(step, BallNewton | BallLoop)
        for assignment in step.assignments
    )


def test_a_singular_linear_system_is_not_solved():
    p, q, d = sp.symbols("p q d", real=True)
    system = SaddlePointSystem.from_fixed_point(
        {p: d * q + 1, q: d * p + 2}, name="pair", parameters=(d,), outputs={"sum": p + q}
    )
    program = lower(system).program
    ball = BallProgram(program, ("sum",))
    found = ball.run({"d": flint.arb("0.5")}, None, None)
    assert abs(found["sum"] - 6) < 1e-12
    with pytest.raises(CertificationError, match="regular"):
        ball.run({"d": flint.arb(1, 1e-20)}, None, None)


def test_systems_outside_are_refused_by_name():
    w, q = sp.symbols("w q", positive=True)
    over_data = SaddlePointSystem.from_fixed_point(
        {q: 1 / (1 + DataAverage(w / (1 + a * w * q), w, "spectrum"))},
        name="spectral",
        parameters=(a,),
    )
    convex = logistic_regression.logistic_regression()
    for system, reason in ((over_data, "data"), (convex, "outside of what can be certified")):
        with pytest.raises(UnsupportedExpressionError, match=reason):
            BallProgram(lower(system).program, ("q",))


def test_local_names_of_one_pass_mean_nothing_in_another():
    # Both passes call a value t; in the second it does not depend on the unknown.
    t, first, second, rest, node = sp.symbols("t first second rest node", real=True)
    passes = [
        NodeLoop((node,), (Assign(t, x**2 * node**2),), (Assign(first, t),)),
        NodeLoop((node,), (Assign(t, y * node**2),), (Assign(second, t),)),
    ]
    block = Newton(
        unknowns=(x,), logarithmic=(False,), start=(y,), residual=(rest,),
        jacobian=((None,),), body=(*passes, Assign(rest, first - second)),
    )  # fmt: skip
    body, ((slope,),) = with_derivatives(block)
    values = {a.target: a.value for step in body if isinstance(step, NodeLoop)
              for a in step.sums}  # fmt: skip
    last = [a.value for a in body if isinstance(a, Assign) and a.target == slope]
    inside = {a.target: a.value for a in body[0].locals}
    found = last[0].xreplace(values).xreplace(inside)
    assert sp.expand(found - 2 * x * node**2) == 0


@pytest.mark.parametrize(
    "f", [sp.sqrt(y), 1 / sp.sqrt(y), y ** sp.Rational(4, 3), sp.log(y), sp.atan(y + 3)]
)
def test_cuts_under_an_average_are_not_crossed(f):
    tape = BallTape((), (y,), [(out, f)], [out])
    here, across = flint.acb(2, flint.arb(0, 0.1)), flint.acb(-3, flint.arb(0, 2))
    assert tape.bind([])([here], True)[0].is_finite()
    assert not tape.bind([])([across], True)[0].is_finite()
