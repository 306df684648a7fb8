"""What tests of proven averages share: working precision, functions as balls, references."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

from giantstep.numeric.certified_grid import Branch, BranchedFunction
from giantstep.symbolic.ball_functions import BallEvaluator
from giantstep.symbolic.gaussian_branches import analytic_branches
from giantstep.symbolic.tail_bounds import tail_bound

flint = pytest.importorskip("flint")
arb, acb = flint.arb, flint.acb

U = sp.Symbol("u", real=True)
RELU = (U + sp.Abs(U)) / 2
BITS = 160
CTX = mpmath.mp.clone()
CTX.dps = 60


def branched(expr: sp.Expr) -> BranchedFunction:
    evaluator = BallEvaluator()
    branches = analytic_branches(expr, U, evaluator)
    balls = tuple(
        Branch(
            evaluator.function(b.expr, U) if U in b.expr.free_symbols else constant(b.expr),
            None if b.left is None else evaluator.real_constant(b.left),
            None if b.right is None else evaluator.real_constant(b.right),
        )
        for b in branches
    )
    tails = (
        tail_bound(branches[0].expr, U, -1, evaluator),
        tail_bound(branches[-1].expr, U, 1, evaluator),
    )
    return BranchedFunction(balls, tails)


def constant(value):
    number = BallEvaluator().constant(value)
    return lambda x, analytic: number


def decimal(text) -> object:
    return arb(str(text))


def to_ball(value) -> object:
    """A number of 60 digits as a ball that contains what it stands for."""
    return arb(mpmath.nstr(value, 58)) + arb(0, abs(float(value)) * 1e-56 + 1e-58)


def sp_fraction(number: sp.Rational) -> object:
    return flint.fmpq(int(number.p), int(number.q))


def density(x):
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def below(x):
    return (1 + (x / arb(2).sqrt()).erf()) / 2
