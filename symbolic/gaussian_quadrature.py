"""Digits of a one-dimensional Gaussian expectation, to any precision.

The trapezoidal rule on the line converges geometrically for integrands that are analytic in a
strip; integrands with kinks are integrated piece by piece. Both refine until two successive rules
agree, so the printed digits are estimated, not proven. Where the integrand cancels, in itself or
under the integral, the working precision is raised until the digits asked for are left.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import sympy as sp

from ..errors import ConvergenceError
from .printing.compiled import compiled
from .regularity import analyse

GUARD_BITS = 24
# Of the guard bits, those that rounding in the sums may use up.
ROUNDING_BITS = 16
# Distances of singularities from the real axis for which the step is refined: always, and where
# the integrand is known to be analytic so far. Smaller ones take too many nodes.
_NARROW_STRIP, _NARROWEST_STRIP = 0.01, 0.002
# Integrands are followed out to this many times the distance at which the density is negligible.
FARTHEST = 40
_LARGEST_EXPONENT = 10**6
# Of a piece between kinks, to see how large the integrand is.
_SAMPLES = 8

_Function = Callable[[Any], Any]


# Formulas hold the same expectation several times.
@functools.lru_cache(maxsize=256)
def expectation_value(integrand: sp.Expr, variable: sp.Symbol, prec: int) -> sp.Float:
    r"""Return :math:`\mathbb{E}_z[f(z)]` to `prec` bits.

    Parameters
    ----------
    integrand : Expr
        f, with no free symbol other than `variable`.
    variable : Symbol
        The standard normal variable z.
    prec : int
        Working precision of the answer in bits.

    Returns
    -------
    Float
        Correct to `prec` bits; relative to E\|f\| instead, times 2**-prec, where the expectation is
        that much smaller than E\|f\|: it may then be an exact zero.

    Raises
    ------
    ConvergenceError
        If the integrand does not decay, is singular or not real, or two successive rules never
        agree (the expectation may not exist).
    """
    # Pieces that grow or vary on different scales cancel: the second and third try pay for that.
    tries = (GUARD_BITS, GUARD_BITS + prec, GUARD_BITS + 3 * prec)
    for extra in tries:
        try:
            value, size, ctx = _value_and_size(integrand, variable, prec, extra)
        except NotConverged as error:
            if error.noise and extra != tries[-1]:
                continue
            raise ConvergenceError(f"{error} in E_{variable}[{str(integrand)[:200]}]") from None
        if not value or ctx.mag(size) - ctx.mag(value) <= extra - ROUNDING_BITS:
            break
    return sp.Float._new(value._mpf_, prec)


class NotConverged(Exception):
    """Why a rule gave up; `noise` if rounding is what kept two rules from agreeing."""

    def __init__(self, message: str, noise: bool = False) -> None:
        super().__init__(message)
        self.noise = noise


def _value_and_size(
    integrand: sp.Expr, variable: sp.Symbol, prec: int, extra: int
) -> tuple[Any, Any, Any]:
    """Return E f to about `prec + extra` bits of E\\|f\\|, that, and the context."""
    ctx = mpmath.mp.clone()
    ctx.prec = prec + extra
    inner = {node: node.evalf(int(ctx.dps)) for node in _closed_inner_nodes(integrand, variable)}
    function = compiled(integrand.xreplace(inner), [variable], ctx)
    normal = ctx.sqrt(2 * ctx.pi)

    def density_times(x: Any) -> Any:
        try:
            value = function(x)
        except (ZeroDivisionError, ValueError):
            value = ctx.nan
        if not isinstance(value, ctx.mpf):
            value = ctx.convert(value)
        if not isinstance(value, ctx.mpf) or not ctx.isfinite(value):
            where = ctx.nstr(x, 5)
            raise NotConverged(f"the integrand is not a finite real number at {where}")
        return value * ctx.exp(-x * x / 2) / normal

    wanted, possible = ctx.ldexp(1, -prec - 8), ctx.ldexp(1, ROUNDING_BITS - ctx.prec)

    def agree(difference: Any, value: Any, size: Any) -> bool:
        """Whether a difference is below what is wanted, or below what rounding allows."""
        return bool(difference <= wanted * abs(value) or difference <= possible * size)

    found = analyse(integrand, variable)
    if found.kinks:
        points = sorted(ctx.mpf(str(sp.N(k, int(ctx.dps)))) for k in found.kinks)
        value, size = _piecewise_rule(density_times, points, ctx, agree)
    else:
        # A strip of width zero is a suspicion that the rule confirms or does not.
        narrow = float(found.strip) if found.strip is not None and found.strip.is_positive else 1
        narrow = max(min(narrow, _NARROW_STRIP), _NARROWEST_STRIP)
        # sign(z)**2 has no kink, but another value at a single point: no node may hit that.
        offset = (ctx.sqrt(5) - 2) / 2 if integrand.has(sp.sign, sp.Heaviside) else 0
        value, size = _trapezoidal_rule(lambda x: density_times(x + offset), ctx, agree, narrow)
    return value, size, ctx


def _closed_inner_nodes(integrand: sp.Expr, variable: sp.Symbol) -> set[sp.Expr]:
    # By class name: importing the class here would close a circle of imports.
    nodes = {
        n for n in sp.preorder_traversal(integrand) if type(n).__name__ == "GaussianExpectation"
    }
    return {n for n in nodes if not n.free_symbols}


def _reach(ctx: Any) -> Any:
    """Distance at which the normal density is negligible."""
    return ctx.sqrt(2 * ctx.ln2 * ctx.prec)


def half_line_sum(function: _Function, first: Any, step: Any, ctx: Any) -> tuple[Any, Any, Any]:
    """Sum along one half-line until the terms stay negligible beyond the Gaussian's reach.

    Returns the sum, that of the absolute values, and the end.
    """
    total = size = ctx.zero
    reach = _reach(ctx)
    x, small = first, 0
    while small < 4:
        term = function(x)
        total += term
        size += abs(term)
        negligible = abs(term) <= ctx.eps * size
        small = small + 1 if negligible and abs(x) > reach else 0
        x += step
        if abs(x) > FARTHEST * reach or (term and ctx.mag(term) > _LARGEST_EXPONENT):
            raise NotConverged(
                "the integrand times the normal density does not decay, or too slowly: the "
                "expectation does not exist or cannot be computed"
            )
    return total, size, x


def _trapezoidal_rule(
    function: _Function, ctx: Any, agree: Callable[..., bool], strip: float
) -> tuple[Any, Any]:
    def both_sides(first: Any, step: Any) -> tuple[Any, Any]:
        """Sums over the nodes first + k*step, without the node 0 if first = step."""
        right, size_right, _ = half_line_sum(function, first, step, ctx)
        left, size_left, _ = half_line_sum(function, first - step or -step, -step, ctx)
        return right + left, size_right + size_left

    middle = function(ctx.zero)
    step = ctx.mpf(1) / 2
    total, size = both_sides(step, step)
    total, size = total + middle, size + abs(middle)
    finest = 2 * ctx.pi * strip / (ctx.prec * ctx.ln2)
    last, last_gap = ctx.inf, ctx.inf
    # Halving the step squares the error, so two fifths of the digits promise nearly all of them.
    promising = ctx.ldexp(1, 2 * (ROUNDING_BITS - ctx.prec) // 5)
    small = ctx.ldexp(1, -20)
    while step > finest:
        previous = total * step
        more, more_size = both_sides(step / 2, step)
        total, size, step = total + more, size + more_size, step / 2
        value = total * step
        difference = abs(value - previous) / (size * step) if size else ctx.zero
        if difference <= promising or (difference <= small and difference >= last / 2):
            # Nodes at multiples of one step see a fast oscillation as a slow one; nodes that are
            # shifted by an irrational part of it do not, and their error is another one.
            gap = abs(value - both_sides(step * (3 - ctx.sqrt(5)) / 2, step)[0] * step)
            if agree(gap, value, size * step):
                return value, size * step
            if gap <= small * size * step and gap >= last_gap / 2:
                raise NotConverged("rounding errors keep two trapezoidal rules from agreeing", True)
            last_gap = gap
        last = difference
    raise NotConverged(
        f"no agreement of trapezoidal rules down to step {ctx.nstr(step, 2)} (there may be a "
        "singularity on the real line or close to it)"
    )


def _piecewise_rule(
    function: _Function, kinks: list[Any], ctx: Any, agree: Callable[..., bool]
) -> tuple[Any, Any]:
    # The tails begin beyond the outermost kinks: relu(z - 30) is zero up to there.
    far = FARTHEST * _reach(ctx)
    inside = [k for k in kinks if abs(k) < far] or [ctx.zero]
    half = ctx.mpf(1) / 2
    _, size_right, high = half_line_sum(function, inside[-1] + half / 2, half, ctx)
    _, size_left, low = half_line_sum(function, inside[0] - half / 2, -half, ctx)
    # Pieces of length at most 4 keep the tanh-sinh rule in its fast regime.
    points = [low]
    for end in [*inside, high]:
        start = points[-1]
        if end <= start:
            continue
        pieces = int(ctx.ceil((end - start) / 4))
        points += [start + (end - start) * i / pieces for i in range(1, pieces + 1)]
    scale = (size_right + size_left) * half
    # Between the kinks, too: relu(z)*relu(1 - z) is zero outside of them.
    for start, end in itertools.pairwise(points):
        if inside[0] < (start + end) / 2 < inside[-1]:
            step = (end - start) / _SAMPLES
            samples = (function(start + step * (k + half)) for k in range(_SAMPLES))
            scale += step * ctx.fsum(samples, absolute=True)
    if not scale:
        return ctx.zero, ctx.zero
    value = size = error = ctx.zero
    for pair in itertools.pairwise(points):
        # Scaled, because mpmath refines until the absolute error is small.
        part, wrong = ctx.quad(lambda x: function(x) / scale, list(pair), error=True, maxdegree=10)
        value, size, error = value + part, size + abs(part), error + wrong
    if not agree(error, value, size):
        noise = error <= size * ctx.ldexp(1, -20)
        raise NotConverged("the rules between the kinks did not converge", noise)
    return value * scale, size * scale
