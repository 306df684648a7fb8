"""What tests of proven averages share: working precision, functions as balls, references."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

from giantstep.numeric.proofs.grid import Branch, BranchedFunction
from giantstep.symbolic.exact.ball_functions import BallEvaluator
from giantstep.symbolic.gaussian.enclosures import analytic_branches
from giantstep.symbolic.gaussian.tail_analysis import tail_bound

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


# F and its averages E F(a + Bz), E F(a + Bz) z and E F(a + Bz)², entire in a.
CLOSED = {
    "sin": (sp.sin(U), lambda a, b: (-b * b / 2).exp() * a.sin(), lambda a,
     b: b * (-b * b / 2).exp() * a.cos(), lambda a,
     b: (1 - (-2 * b * b).exp() * (2 * a).cos()) / 2),
    "exp": (sp.exp(U), lambda a, b: (a + b * b / 2).exp(), lambda a, b: b * (a + b * b / 2).exp(),
     lambda a, b: (2 * a + 2 * b * b).exp()),
    "erf": (sp.erf(U), lambda a, b: (a / (1 + 2 * b * b).sqrt()).erf(), lambda a,
     b: 2 * b * (-a * a / (1 + 2 * b * b)).exp() / (arb.pi() * (1 + 2 * b * b)).sqrt(), None),
    "sign": (sp.sign(U), lambda a, b: (a / (b * arb(2).sqrt())).erf(), lambda a,
     b: 2 * density(a / b), lambda a, b: 0 * a + 1),
    "relu": (RELU, lambda a, b: a * below(a / b) + b * density(a / b), lambda a,
     b: b * below(a / b), lambda a, b: (a * a + b * b) * below(a / b) + a * b * density(a / b)),
    "abs(u - 1/3)": (
        sp.Abs(U - sp.Rational(1, 3)),
        lambda a, b: (
            (a - arb(1) / 3) * ((a - arb(1) / 3) / (b * arb(2).sqrt())).erf()
            + 2 * b * density((a - arb(1) / 3) / b)
        ),
        lambda a, b: b * ((a - arb(1) / 3) / (b * arb(2).sqrt())).erf(),
        lambda a, b: (a - arb(1) / 3) ** 2 + b * b,
    ),
    "He3": (U**3 - 3 * U, lambda a, b: a**3 + 3 * a * (b * b - 1), lambda a,
     b: b * (3 * a * a + 3 * b * b - 3), None),
}  # fmt: skip
