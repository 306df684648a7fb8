"""Small systems, each for one kind of step: dense solvers, roots, names of parameters."""

import math
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

from giantstep.errors import EmissionError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.lowering.program import LinearSolve, Newton, NodeLoop
from giantstep.symbolic.lowering.solver import solver_source
from giantstep.symbolic.systems.equations import Equation, FreeEnergy
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .generated_code import module_of, names_in
from .lowered_cases import kappa, lowered, nodes, run

x, y = sp.symbols("x y", real=True)
penalty = sp.Symbol("penalty", positive=True)
alpha = sp.Symbol("alpha", positive=True)


def least_squares(n):
    """min E (sum_i x_i h_i(kappa) - t(kappa))^2 / 2 + penalty |x|^2 / 2."""
    unknowns = sp.symbols(f"u:{n}", real=True)
    features = [sp.Function(f"h_{'abcde'[i]}", real=True)(kappa) for i in range(n)]
    target = sp.Function("label", real=True)(kappa)
    residual = sum(u * h for u, h in zip(unknowns, features, strict=True)) - target
    definitions = {h: sp.cos((i + 1) * kappa) for i, h in enumerate(features)} | {
        target: 1 / (1 + kappa**2)
    }
    return FreeEnergy(
        GaussianExpectation(residual**2, kappa) / 2 + penalty * sum(u**2 for u in unknowns) / 2,
        unknowns,
        (),
        (penalty,),
        definitions,
    )


def least_squares_case(n, ridge=0.01):
    weight, at = nodes()
    h = np.array([np.cos((i + 1) * at) for i in range(n)])
    label = 1 / (1 + at**2)
    columns = [weight, at, *h, label]
    gram = (h * weight) @ h.T + ridge * np.eye(n)
    return [ridge], columns, np.linalg.solve(gram, (h * weight) @ label)


@pytest.mark.parametrize(("n", "core"), [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)])
def test_linear_systems_give_what_numpy_solves(n, core):
    energy = least_squares(n)
    program = lowered(energy)
    assert [len(s.unknowns) for s in program.steps if isinstance(s, LinearSolve)] == [core] * (
        core > 0
    )
    parameters, columns, expected = least_squares_case(n)
    found, info = run(names_in(solver_source(program, "python")), program, parameters, columns, [])
    # condition number of the Gram matrix 2e2 at n = 5
    assert_allclose([found[f"u{i}"] for i in range(n)], expected, rtol=1e-11)
    assert info[1] < 1e-14


def test_dense_solver_pivots():
    # One row is zero on the diagonal until rows are exchanged.
    source = solver_source(lowered(least_squares(4)), "python")
    a = [[0.0, 2.0, 1.0], [1e-20, 1.0, 0.0], [3.0, 0.0, 1.0]]
    right = [1.0, 2.0, 3.0]
    expected = np.linalg.solve(np.array(a), right)
    names_in(source)["solve_dense"](3, [x for row in a for x in row], right)
    assert_allclose(right, expected, rtol=1e-14)


def positive_roots(n):
    """V_i = 1/(penalty + alpha E[mu_i^2/(1 + sum_j mu_j^2 V_j)])."""
    variances = sp.symbols(f"V:{n}", positive=True)
    conjugates = sp.symbols(f"W:{n}", positive=True)
    tables = [sp.Function(f"mu_{'abc'[i]}", real=True)(kappa) for i in range(n)]
    total = sum(f**2 * v for f, v in zip(tables, variances, strict=True))
    expression = alpha * GaussianExpectation(sp.log(1 + total), kappa) / 2
    for v, w in zip(variances, conjugates, strict=True):
        expression += sp.log(penalty + w) / 2 - v * w / 2
    definitions = {f: 1 / (1 + (i + 1) * kappa**2) for i, f in enumerate(tables)}
    return FreeEnergy(expression, variances, conjugates, (alpha, penalty), definitions)


def positive_case(n, a=1.7, ridge=0.05):
    weight, at = nodes()
    mu = np.array([1 / (1 + (i + 1) * at**2) for i in range(n)])

    def residual(v):
        inside = mu**2 / (1 + v @ mu**2)
        return v * (ridge + a * inside @ weight) - 1

    return [a, ridge], [weight, at, *mu], [1 / ridge] * n, residual


@pytest.mark.parametrize("n", [1, 2, 3])
def test_newton_for_positive_unknowns(n):
    energy = positive_roots(n)
    program = lowered(energy, start={v: 1 / penalty for v in energy.order_parameters})
    (newton,) = (s for s in program.steps if isinstance(s, Newton))
    assert program.newton_unknowns == newton.unknowns and len(newton.unknowns) == n
    assert sum(isinstance(s, NodeLoop) for s in newton.body) == 1
    parameters, columns, starts, residual = positive_case(n)
    found, info = run(
        names_in(solver_source(program, "python")), program, parameters, columns, starts
    )
    v = np.array([found[f"V{i}"] for i in range(n)])
    assert np.max(np.abs(residual(v))) < 1e-13 and np.all(v > 0)
    assert 0 < info[0] < 15
    assert np.isfinite(info[2]) and info[2] > 8 * 2.2e-16  # the Jacobian amplifies something


def test_rounding_errors_of_dense_newton_steps_are_estimated():
    # Three equal equations differ from one only in the amplification, which is at least 1.
    energy = positive_roots(3)
    program = lowered(energy, start={v: 1 / penalty for v in energy.order_parameters})
    source = solver_source(program, "python")
    parameters, columns, starts, residual = positive_case(3)
    namespace = names_in(source)
    found, info = run(namespace, program, parameters, columns, starts)
    v = np.log([found[f"V{i}"] for i in range(3)])
    step = 1e-6
    jacobian = np.array(
        [(residual(np.exp(v + d)) - residual(np.exp(v - d))) / (2 * step) for d in step * np.eye(3)]
    ).T
    norm = np.max(np.sum(np.abs(np.linalg.inv(jacobian)), axis=1))
    # info = eps (8 + k norm): solved for k it is a small whole number
    assert (info[2] / (4 * 2.220446049250313e-16) - 8) / norm == pytest.approx(16, rel=1e-4)


def test_two_newton_steps_after_each_other():
    # W = 1/(penalty + V W) follows from V; the second does not hide that the first has failed.
    V, W = sp.symbols("V W", positive=True)
    first, second = 1 / (penalty + alpha * V), 1 / (penalty + V * W)
    energy = FreeEnergy(V, (V, W), (), (alpha, penalty))
    equations = [Equation(V, first, V - first), Equation(W, second, W - second)]
    program = lowered(energy, equations, start={V: 1 / penalty, W: 1 / penalty})
    source = solver_source(program, "python")
    found, info = run(names_in(source), program, [2.0, 0.1], [], [10.0, 10.0])
    v = (math.sqrt(0.1**2 + 4 * 2.0) - 0.1) / 4
    assert found["V"] == pytest.approx(v, rel=1e-14)
    assert found["W"] * (0.1 + v * found["W"]) == pytest.approx(1, rel=1e-14)
    assert info[0] > 0
    broken = source.replace("range(500)", "range(1)", 1)
    _, info = run(names_in(broken), program, [2.0, 0.1], [], [10.0, 10.0])
    assert info[0] < 0


def test_undefined_symbols_are_refused():
    V = sp.Symbol("V", real=True)
    energy = FreeEnergy(V, (V,), (), ())
    with pytest.raises(EmissionError, match="alpha"):
        lowered(energy, [Equation(V, 2 * alpha, V - 2 * alpha)])


def test_names_of_computed_values_are_refused():
    program = lowered(least_squares(4))
    (total, *_) = (a.target for loop in program.loops() for a in loop.sums)
    clash = replace(program, parameters=(penalty, total))
    with pytest.raises(EmissionError, match="is the name of a value that the program computes"):
        solver_source(clash, "python")


def test_names_that_are_none_are_refused():
    with pytest.raises(EmissionError, match='"V\'" cannot be a name in code'):
        solver_source(lowered(least_squares(2), identifiers={penalty: "V'"}), "python")


@pytest.mark.parametrize("core", [1, 2, 3])
def test_errors_hold_where_terms_of_an_equation_cancel(core):
    """The error of signs in little Gaussian noise is one minus an overlap that is nearly one."""
    s = sp.Symbol("s", positive=True)
    # All depend on all and on themselves, so Newton's method needs all of them.
    found = sp.symbols(f"x_:{core}", positive=True)
    ratio = s / (1 + sum(found) / len(found))
    value = 1 - GaussianExpectation(sp.tanh(ratio + sp.sqrt(ratio) * kappa), kappa)
    system = SaddlePointSystem.from_fixed_point(
        dict.fromkeys(found, value), name="signs", parameters=(s,)
    )
    (step,) = (step for step in lower(system).program.steps if isinstance(step, Newton))
    assert len(step.unknowns) == core
    for target in ("python", "numpy"):
        solve_point = module_of(lower(system).source(target)).solve_point
        # By mpmath's quad and findroot with 30 digits.
        for value, exact in ((10.0, 0.002443344258761883785), (20.0, 1.203813509084641427e-5)):
            solved = [solve_point({"s": value})[str(u)] for u in found]
            assert all(abs(number - exact) <= error < 1e-11 for number, error in solved)
