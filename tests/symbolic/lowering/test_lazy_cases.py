"""What only one branch of a case needs is computed in this branch, and values stay the same."""

import itertools
import math

import numpy as np
import pytest
import sympy as sp

from giantstep.symbolic.lowering.fuse import FreshSymbols
from giantstep.symbolic.lowering.lazy_cases import Branch, with_branches
from giantstep.symbolic.lowering.program import Assign

x, y, a, b, d, f, g, total, other = sp.symbols("x y a b d f g total other", real=True)


def _run(lines, values, counted):
    """Compute assignments and branches as a program does; count what is computed."""
    for line in lines:
        if isinstance(line, Branch):
            chosen = line.then if line.condition.xreplace(values) == sp.true else line.otherwise
            _run(chosen, values, counted)
        else:
            values[line.target] = sp.Float(line.value.xreplace(values))
            counted.append(line.target)
    return values


def _case(value, condition, otherwise):
    return sp.Piecewise((value, condition), (otherwise, True))


CASES = {
    "two branches": (
     [Assign(a, sp.exp(x)), Assign(b, sp.exp(y)), Assign(d, _case(a, x < y, b + 1))],
     [Assign(total, d * x)], {a: lambda u, v: u < v, b: lambda u, v: u >= v}),
    "a branch in a branch": (
        [
            Assign(a, sp.exp(x)),
            Assign(b, sp.cos(y)),
            Assign(f, sp.sin(x)),
            Assign(d, _case(a, x < y, _case(b, x > 1, f * b))),
        ],
        [Assign(total, d)],
        {a: lambda u, v: u < v, b: lambda u, v: u >= v, f: lambda u, v: v <= u <= 1},
    ),
    "three branches": (
        [
            Assign(a, sp.exp(x)),
            Assign(b, sp.cos(y)),
            Assign(f, sp.sin(x)),
            Assign(d, sp.Piecewise((a, x < y), (b, x > 1), (f, True))),
        ],
        [Assign(total, d)],
        {
            a: lambda u, v: u < v,
            b: lambda u, v: v <= u and u > 1,
            f: lambda u, v: v <= u <= 1,
        },
    ),
    "inside of an expression": ([Assign(a, sp.exp(x)), Assign(b, sp.exp(y))],
     [Assign(total, 2 + x * _case(a, x < y, 0)), Assign(other, b + _case(a, x < y, 0) ** 2)],
     {a: lambda u, v: u < v, b: lambda u, v: True}),
    "a case of a case": (
        [
            Assign(a, sp.exp(x)),
            Assign(d, _case(a, x < y, x)),
            Assign(b, sp.exp(d)),
            Assign(f, _case(b, x < y, y)),
        ],
        [Assign(total, d + f)],
        {a: lambda u, v: u < v, b: lambda u, v: u < v},
    ),
    "read elsewhere": ([Assign(a, sp.exp(x)), Assign(b, sp.exp(y)), Assign(d, _case(a, x < y, b))],
     [Assign(total, d), Assign(other, a)], {a: lambda u, v: True, b: lambda u, v: u >= v}),
    "other conditions": (
        [
            Assign(a, sp.exp(x)),
            Assign(b, sp.exp(y)),
            Assign(d, _case(a, x < y, 1)),
            Assign(f, _case(b, y <= 1, d)),
        ],
        [Assign(total, f + d)],
        {a: lambda u, v: u < v, b: lambda u, v: v <= 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_are_the_same_and_only_one_branch_is_computed(name):
    locals_, sums, computed = CASES[name]
    lines, rest = with_branches(locals_, sums, FreshSymbols())
    assert any(isinstance(line, Branch) for line in lines)
    for u, v in itertools.product((-1.5, 0.5, 1.5), (-1.0, 0.5, 2.0)):
        given = {x: sp.Float(u), y: sp.Float(v)}
        wanted = _run([*locals_, *sums], dict(given), [])
        counted = []
        found = _run([*lines, *rest], dict(given), counted)
        for target in sums:
            assert math.isclose(found[target.target], wanted[target.target], rel_tol=1e-14)
        for value, is_computed in computed.items():
            assert (value in counted) == is_computed(u, v), (value, u, v)


def test_what_saves_no_function_stays_as_it_is():
    locals_ = (Assign(a, x**2), Assign(b, y + 1), Assign(d, _case(a, x < y, b)))
    sums = (Assign(total, d + _case(x, x < 0, y)),)
    assert with_branches(locals_, sums, FreshSymbols()) == (locals_, sums)


def test_names_of_lifted_cases_are_new():
    locals_ = (Assign(a, sp.exp(x)),)
    sums = (Assign(total, 1 + _case(a, x < y, 0)),)
    lines, rest = with_branches(locals_, sums, FreshSymbols(["case_1"]))
    assert {str(s) for s in rest[0].value.free_symbols} == {"case_2"}
    assert np.array_equal([len(line.then) for line in lines], [2])
