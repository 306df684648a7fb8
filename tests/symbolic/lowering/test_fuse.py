"""Residuals, Jacobians and linear systems against differentiation of the whole."""

import random

import sympy as sp

from giantstep.symbolic.lowering.fuse import (
    Abs,
    Explicit,
    FreshSymbols,
    NewtonTask,
    fuse,
    magnitude,
)
from giantstep.symbolic.systems.equations import Equation, block_structure

x, y = sp.symbols("x y", positive=True)
s, t = sp.symbols("s t", real=True)
p = sp.Symbol("p", real=True)


def explicit(unknown, value):
    return Equation(unknown, value, unknown - value)


def values_of(task, point):
    """Run the assignments of a task in the order of their needs."""
    known = dict(point)
    waiting = list(task.items)
    while waiting:
        ready = [a for a in waiting if a.value.free_symbols <= set(known)]
        assert ready, "the items of a task need each other"
        for a in ready:
            known[a.target] = a.value.xreplace(known)
        waiting = [a for a in waiting if a not in ready]
    return known


def jacobian_by_hand(task, point, equations):
    """Derivatives of the residuals by the coordinates, by finite differences of high precision."""
    eps = sp.Rational(1, 10**15)
    rows = []
    for residual in task.residual:
        row = []
        for unknown, log in zip(task.unknowns, task.logarithmic, strict=True):
            ends = []
            for sign in (1, -1):
                moved = dict(point)
                step = sp.exp(sign * eps) if log else None
                moved[unknown] = point[unknown] * step if log else point[unknown] + sign * eps
                ends.append(values_of(task, moved)[residual])
            row.append(sp.N((ends[0] - ends[1]) / (2 * eps), 12))
        rows.append(row)
    return rows


def check(equations, point):
    (task,) = fuse(block_structure(equations), {v: v for v in (x, y, s, t, p)}, {}, FreshSymbols())
    assert isinstance(task, NewtonTask)
    values = values_of(task, point)
    by_hand = jacobian_by_hand(task, point, equations)
    return task, values, by_hand


def test_positive_unknowns_move_in_their_logarithm():
    equations = (explicit(x, 1 / (1 + y * p)), explicit(y, sp.exp(-x) + x * y / 5))
    point = {x: sp.Rational(3, 4), y: sp.Rational(2, 3), p: sp.Rational(1, 2)}
    task, values, by_hand = check(equations, point)
    assert all(task.logarithmic) and task.fixed_point == task.residual
    for row, expected in zip(task.jacobian, by_hand, strict=True):
        for entry, number in zip(row, expected, strict=True):
            assert abs(sp.N(values[entry] - number, 20)) < 1e-10


def test_a_plain_row_is_scaled_but_its_direction_is_newtons():
    # The scale 1 + |s| is not differentiated, so compare after undoing it.
    equations = (explicit(s, sp.tanh(s * t) + p), explicit(t, sp.cos(s) / 2))
    point = {s: sp.Rational(1, 3), t: sp.Rational(-2, 5), p: sp.Rational(1, 7)}
    (task,) = fuse(block_structure(equations), {v: v for v in (s, t, p)}, {}, FreshSymbols())
    values = values_of(task, point)
    residuals = [e.residual for e in equations if e.unknown in task.unknowns]
    eliminated = {e.unknown: e.value for e in equations if e.unknown not in task.unknowns}
    for row, residual, scaled in zip(task.jacobian, residuals, task.residual, strict=True):
        whole = residual.subs(eliminated)
        scale = sp.N(whole.subs(point), 30) / sp.N(values[scaled], 30)
        for entry, unknown in zip(row, task.unknowns, strict=True):
            slope = sp.N(whole.diff(unknown).subs(point), 30)
            assert abs(sp.N(values[entry], 30) * scale - slope) < 1e-25


def test_an_implicit_equation_has_no_fixed_point_move():
    equations = (Equation(x, None, x**3 + sp.exp(x) - p),)
    task, values, _ = check(equations, {x: sp.Rational(1, 2), p: sp.Integer(3)})
    assert task.fixed_point == ()
    scale = values[task.residual[0]] / (sp.Rational(1, 8) + sp.exp(sp.Rational(1, 2)) - 3)
    slope = sp.Rational(1, 2) * (sp.Rational(3, 4) + sp.exp(sp.Rational(1, 2)))
    assert abs(sp.N(values[task.jacobian[0][0]] / scale - slope, 20)) < 1e-15


def test_linear_blocks_are_solved_exactly():
    random.seed(4)
    unknowns = sp.symbols("u0:4", real=True)
    rows = [[sp.Integer(random.randint(-5, 5)) for _ in unknowns] for _ in unknowns]
    right = [sp.Integer(random.randint(-5, 5)) for _ in unknowns]
    equations = tuple(
        explicit(u, u - sum(a * v for a, v in zip(row, unknowns, strict=True)) + b)
        for u, row, b in zip(unknowns, rows, right, strict=True)
    )
    tasks = fuse(block_structure(equations), {u: u for u in unknowns}, {}, FreshSymbols())
    assert all(isinstance(task, Explicit) for task in tasks)
    (solve,) = [i for task in tasks for i in task.items if hasattr(i, "matrix")]
    values = {i.target: i.value for task in tasks for i in task.items if hasattr(i, "target")}
    matrix = sp.Matrix([[values[e] for e in row] for row in solve.matrix])
    vector = sp.Matrix([values[e] for e in solve.right_hand_side])
    found = dict(zip(solve.unknowns, matrix.LUsolve(vector), strict=True))
    exact = dict(zip(unknowns, sp.Matrix(rows).LUsolve(sp.Matrix(right)), strict=True))
    assert found == exact


def test_the_size_of_a_normal_distribution_function_is_its_own():
    # SymPy writes Φ(s) as 1 - erfc(s/√2)/2, whose terms are of size one where it is 3e-89.
    tail = sp.erfc(-s / sp.sqrt(2)) / 2
    assert tail.is_Add
    size = magnitude(3 * tail**2 * sp.exp(s) + t).subs({s: -20, t: 0})
    assert 0 < size.evalf() < 1e-180


def test_magnitude_bounds_every_partial_sum():
    value = 3 * s - 2 * t**2 + s * (t - p)
    point = {s: sp.Rational(-1, 2), t: sp.Rational(3, 2), p: sp.Integer(2)}
    size = magnitude(value).subs(point)
    assert size == sp.Rational(3, 2) + sp.Rational(9, 2) + sp.Rational(1, 2) * (
        sp.Rational(3, 2) + 2
    )


def test_an_absolute_value_asks_no_more_than_whether_its_argument_is_a_number():
    # SymPy's own sees that x + y is positive.
    assert isinstance(Abs(x + y), Abs) and Abs(-x - y) == Abs(x + y)
    assert Abs(sp.Integer(-2)) == 2
