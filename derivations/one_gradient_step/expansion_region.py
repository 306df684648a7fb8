r"""Where the expansions of the risk converge.

The small quantity x is a rational function of one variable u of the closed form (s, or ν for a
student without linear part), and so are all outputs. The solution is the inverse function
u(x) at the point where the expansion begins. Over a disc around x = 0 it has one analytic branch
(in a root of x at a threshold) as long as it meets no critical point of x(u) and no pole of an
output there. (Derived here.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...numeric.inverse_branch import inverse_radius
from ...runtime.precision import local_context
from ..expansions.expansion import LARGE_ALPHA, SMALL_RIDGE, SMALL_STEP
from .decimals import mp_number
from .expansion_balance import resolvent_value
from .risk_system import STEP, covariance, nu
from .symbols import alpha, alpha0, beta, linear, residual, ridge, step_size

if TYPE_CHECKING:
    from .expansion import Question
    from .expansion_numbers import Coefficients

_DIGITS = 60

_s = sp.Symbol("s", positive=True)
_x = sp.Symbol("x", positive=True)


@dataclass(frozen=True)
class Region:
    """Where a series holds.

    Attributes
    ----------
    text : str
    radius : mpf
        Of convergence, at least, in the small quantity; infinite if it converges everywhere.
    """

    text: str
    radius: Any


def region(question: Question, found: Coefficients) -> Region:
    """Return the radius of convergence of an expansion, and what it says in words."""
    ctx = local_context(_DIGITS)
    if question.name == SMALL_STEP:
        radius = _step_radius(question, ctx)
    elif question.known.get(ridge) == 0:
        radius = _ridgeless_radius(question, ctx)
    else:
        radius = _radius(question, found, ctx)
    return Region(_text(question, radius), +local_context(question.digits).convert(radius))


def _text(question: Question, radius: Any) -> str:
    known, inverse = question.known, question.name == LARGE_ALPHA
    if question.name == SMALL_RIDGE:
        sign = sp.sign(known[alpha] - known[beta])
        place = f"ridge -> 0 at alpha {('<', '=', '>')[int(sign) + 1]} beta"
    elif inverse:
        place = f"alpha -> inf at fixed {'paper_ridge' if question.of_paper else 'ridge'}"
        if question.model.alpha0 is None:
            place += ", where the samples of the step follow those of the readout"
    else:
        place = "step_size -> 0"
    if radius == radius.context.inf:
        return f"{place}; the series converges everywhere"
    limit = float(1 / radius if inverse else radius)
    parameter = {SMALL_RIDGE: "ridge <", LARGE_ALPHA: "alpha >", SMALL_STEP: "step_size <"}
    return f"{place}; the series converges for {parameter[question.name]} {limit:.6g}"


# ---------------------------------------------------------------------- fixed effective ridge


def _step_radius(question: Question, ctx: Any) -> Any:
    """The outputs are rational in η², with poles where θ1²/s = -1."""
    rate = STEP.square.xreplace({**question.known, step_size: sp.S.One})
    square = mp_number(rate, ctx) * ctx.convert(
        question.model.risk(ridge=question.ridge, digits=_DIGITS).inverse_s
    )
    return 1 / (question.model.loss_factor * ctx.sqrt(square)) if square else ctx.inf


def _ridgeless_radius(question: Question, ctx: Any) -> Any:
    """For λ = 0 and n > N the outputs are rational in 1/α, with poles at n = N and θ1²/s = -1."""
    known = question.known
    rank = known[beta] if known[residual] else sp.Min(1, known[beta])
    found = [mp_number(1 / rank, ctx)]
    if question.model.alpha0 is None and known[linear]:
        square = STEP.square.xreplace({**known, alpha0: 1 / _x})
        inverse = 1 / sp.Max(1, known[beta])
        if known[residual]:
            rest = known[linear] ** 2 * resolvent_value(known, sp.S.Zero)
            inverse = 1 / (known[beta] + 1 / rest)
        slope = square.diff(_x) * inverse
        if slope:
            level = 1 + square.xreplace({_x: sp.S.Zero}) * inverse
            found.append(mp_number(level / slope, ctx))
    return min(found)


# ---------------------------------------------------------------------- penalties and samples


def _radius(question: Question, found: Coefficients, ctx: Any) -> Any:
    """Return the smallest critical value, or value at a pole, that the solution meets."""
    variable, quantity, singular = _uniformised(question)
    top, bottom = (
        sp.Poly(p, variable, domain=sp.QQ) for p in sp.fraction(sp.cancel(sp.together(quantity)))
    )
    parts = [top.diff() * bottom - top * bottom.diff()]
    for expr in singular:
        above = sp.fraction(sp.cancel(sp.together(expr.xreplace({_x: quantity}))))[0]
        parts.append(sp.Poly(above, variable, domain=sp.QQ))
    points = [
        root
        for part in parts
        if part.degree() > 0
        for root in ctx.polyroots(
            _coefficients(part.sqf_part(), ctx), maxsteps=500, extraprec=4 * ctx.prec
        )
    ]
    start = found.exponents.index(0)
    base = ctx.convert(found.values["effective_ridge"][start])
    if variable == _s:
        base = 1 / ctx.convert(found.values["inverse_s"][start])
    roots = ctx.polyroots(_coefficients(top.sqf_part(), ctx), maxsteps=500, extraprec=4 * ctx.prec)
    return inverse_radius(
        _coefficients(top, ctx),
        _coefficients(bottom, ctx),
        points,
        base=min(roots, key=lambda root: abs(root - base)),
        multiplicity=found.remainder_order.denominator,
        ctx=ctx,
    )


def _uniformised(question: Question) -> tuple[sp.Symbol, sp.Expr, list[sp.Expr]]:
    """Return u, x as a rational function of u, and what vanishes where an output has a pole."""
    slope, at = linear**2, covariance(nu)
    variable, value, trace = nu, nu, 1 / (residual + nu)
    singular = [residual + nu]
    if question.known[linear]:
        # s of the closed form: G = 1/(b(s - β)), and v + ν = b(s - 1)(s - β)/s.
        variable, trace = _s, 1 / (slope * (_s - beta))
        value = slope * (_s - 1) * (_s - beta) / _s - residual
        singular = [_s - 1, _s - beta, _s**2 - beta, _s + STEP.square]
    penalty = at.ridge(alpha / beta - 1).xreplace({at.resolvent: trace}).xreplace({nu: value})
    quantity, moving = penalty, {ridge}
    if question.name == LARGE_ALPHA:
        given = ridge * alpha / beta if question.of_paper else ridge
        equation = sp.expand(penalty - given)
        quantity, moving = -equation.coeff(alpha, 1) / equation.coeff(alpha, 0), {alpha}
        if question.model.alpha0 is None:
            moving.add(alpha0)
            singular = [x.xreplace({alpha0: 1 / _x}) for x in singular]
    fixed = {x: c for x, c in question.known.items() if x not in moving}
    return variable, quantity.xreplace(fixed), [x.xreplace(fixed) for x in singular]


def _coefficients(poly: sp.Poly, ctx: Any) -> list[Any]:
    return [mp_number(c, ctx) for c in poly.all_coeffs()]
