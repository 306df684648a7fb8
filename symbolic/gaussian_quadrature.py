"""Digits of a one-dimensional Gaussian expectation, to any precision.

The trapezoidal rule on the line converges geometrically for integrands that are analytic in a
strip; integrands with kinks are integrated piece by piece. Both refine until two successive rules
agree, so the printed digits are estimated, not proven.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import sympy as sp

from ..errors import ConvergenceError
from .lowering.mpmath_function import mpmath_function
from .regularity import analyse

_GUARD_BITS = 24
_FINEST_LEVEL = 14  # step 2**-14: far beyond what a strip of width 0.01 needs at 1000 digits


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

    Raises
    ------
    ConvergenceError
        If two successive rules never agree (the expectation may not exist).
    """
    ctx = mpmath.mp.clone()
    ctx.prec = prec + _GUARD_BITS
    inner = {node: node.evalf(int(ctx.dps)) for node in _closed_inner_nodes(integrand, variable)}
    function = mpmath_function([variable], integrand.xreplace(inner), ctx)
    normal = ctx.sqrt(2 * ctx.pi)

    def density_times(x: Any) -> Any:
        return function(x) * ctx.exp(-x * x / 2) / normal

    kinks = analyse(integrand, variable).kinks
    if kinks:
        points = [ctx.mpf(str(sp.N(k, int(ctx.dps)))) for k in kinks]
        value = _piecewise_rule(density_times, points, ctx, prec)
    else:
        value = _trapezoidal_rule(density_times, ctx, prec)
    return sp.Float._new(ctx.convert(value)._mpf_, prec)


def _closed_inner_nodes(integrand: sp.Expr, variable: sp.Symbol) -> set[sp.Expr]:
    # By class name: importing the class here would close a circle of imports.
    nodes = {
        n for n in sp.preorder_traversal(integrand) if type(n).__name__ == "GaussianExpectation"
    }
    return {n for n in nodes if not n.free_symbols}


def _trapezoidal_rule(function: Callable[[Any], Any], ctx: Any, prec: int) -> Any:
    tolerance = ctx.ldexp(1, -prec)
    reach = ctx.sqrt(2 * ctx.ln2 * (prec + _GUARD_BITS))

    def side(first: Any, step: Any) -> tuple[Any, Any]:
        """Sum along one half-line until the terms are negligible beyond the Gaussian's reach."""
        total = magnitude = ctx.zero
        x, small = first, 0
        while small < 4:
            term = function(x)
            total += term
            magnitude += abs(term)
            negligible = abs(term) <= ctx.eps * (magnitude + ctx.eps)
            small = small + 1 if negligible and abs(x) > reach else 0
            x += step
            if abs(x) > 40 * reach:
                raise ConvergenceError(
                    "the integrand of a Gaussian expectation does not decay: "
                    "the expectation does not exist"
                )
        return total, magnitude

    step = ctx.mpf(1) / 2
    right, size_right = side(step, step)
    left, size_left = side(-step, -step)
    total = function(ctx.zero) + right + left
    magnitude = size_right + size_left + abs(function(ctx.zero))
    previous = None
    for _ in range(_FINEST_LEVEL):
        value = total * step
        if previous is not None and abs(value - previous) <= tolerance * magnitude * step:
            return value
        previous = value
        right, size_right = side(step / 2, step)
        left, size_left = side(-step / 2, -step)
        total += right + left
        magnitude += size_right + size_left
        step /= 2
    raise ConvergenceError(
        f"no agreement of trapezoidal rules down to step 2^-{_FINEST_LEVEL}; "
        "the integrand may have a singularity on the real line",
        state=previous,
    )


def _piecewise_rule(function: Callable[[Any], Any], kinks: list[Any], ctx: Any, prec: int) -> Any:
    reach = ctx.sqrt(2 * ctx.ln2 * (prec + _GUARD_BITS)) + 2
    inside = sorted(k for k in kinks if abs(k) < reach)
    # Pieces of length at most 4 keep the tanh-sinh rule in its fast regime.
    points = [-reach]
    for end in [*inside, reach]:
        pieces = int(ctx.ceil((end - points[-1]) / 4)) or 1
        start = points[-1]
        points += [start + (end - start) * i / pieces for i in range(1, pieces + 1)]
    value, error = ctx.quad(function, points, error=True, maxdegree=12)
    if error > ctx.ldexp(1, -prec) * (1 + abs(value)):
        raise ConvergenceError(
            "the piecewise rule for a Gaussian expectation did not converge", state=value
        )
    return value
