r"""Digits of expectations over two or more jointly Gaussian variables, to any precision.

Variables are integrated out in closed form, one by one, as long as a rule for one variable applies
to the conditional law; what remains has one or two variables. Products of functions of one variable
each are left to :mod:`.gaussian_product_quadrature`; other functions of two variables are
integrated by the product trapezoidal rule in independent coordinates if they are smooth, and
refused if not. As for one variable, rules are refined until two agree: digits are estimated, not
proven.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import sympy as sp

from ..errors import ConvergenceError, EmissionError, UnsupportedExpressionError
from ._singularities import NONSMOOTH
from .bivariate_normal import BivariateNormalCDF
from .gaussian_product_quadrature import as_products, product_value
from .gaussian_quadrature import (
    GUARD_BITS,
    ROUNDING_BITS,
    NotConverged,
    expectation_value,
    half_line_sum,
)
from .gaussian_rules import closed_form
from .printing.compiled import compiled

_MOST_DIMENSIONS = 2


@functools.lru_cache(maxsize=256)
def joint_value(
    integrand: sp.Expr,
    variables: tuple[sp.Symbol, ...],
    mean: sp.ImmutableMatrix,
    covariance: sp.ImmutableMatrix,
    prec: int,
) -> sp.Float:
    r"""Return :math:`\mathbb{E}f(x)` to `prec` bits.

    Parameters
    ----------
    integrand : Expr
        f, with no free symbols other than `variables`.
    variables, mean, covariance
        Law; numbers only.
    prec : int
        Bits of the answer, relative to E\|f\| where that is much larger.

    Raises
    ------
    UnsupportedExpressionError
        If more than two variables, or two and an integrand that is not smooth, remain for which no
        rule gives a closed form.
    ConvergenceError
        If two successive rules never agree; the expectation may not exist.
    """
    law = (integrand, list(variables), sp.Matrix(mean), sp.Matrix(covariance))
    law = _without_multiples(*law)
    while len(law[1]) > 1:
        less = _one_variable_less(*law)
        if less is None:
            break
        law = less
    f, left, centre, spread = law
    if not left:
        return f.evalf(sp.core.evalf.prec_to_dps(prec), maxn=10**4)
    if len(left) == 1:
        z = sp.Dummy("z", real=True)
        on_line = f.xreplace({left[0]: centre[0] + sp.sqrt(spread[0, 0]) * z})
        return expectation_value(on_line, z, prec)
    if len(left) > _MOST_DIMENSIONS:
        raise UnsupportedExpressionError(
            f"digits of E[{str(integrand)[:200]}]: {len(left)} variables remain for which no rule "
            f"gives a closed form, and quadrature handles {_MOST_DIMENSIONS}\n"
            "  factor the integrand, or condition on variables by hand"
        )
    for extra in (GUARD_BITS, GUARD_BITS + prec):
        try:
            value, ctx = _plane_value(f, left, centre, spread, prec, extra)
            return sp.Float._new(ctx.convert(value)._mpf_, prec)
        except NotConverged as error:
            failure = error
            if not error.noise:
                break
    raise ConvergenceError(f"{failure} in E[{str(integrand)[:200]}]")


_Law = tuple[sp.Expr, list[sp.Symbol], sp.Matrix, sp.Matrix]


def _without_multiples(
    f: sp.Expr, variables: list[sp.Symbol], mean: sp.Matrix, covariance: sp.Matrix
) -> _Law:
    """Leave out variables that are affine functions of the ones before them."""
    kept: list[int] = []
    for k, variable in enumerate(variables):
        mean_of, rest = _conditional(k, kept, variables, mean, covariance)
        if sp.simplify(rest) == 0:
            f = f.xreplace({variable: mean_of})
        else:
            kept.append(k)
    return (
        f,
        [variables[i] for i in kept],
        mean.extract(kept, [0]) if kept else sp.Matrix([]),
        covariance.extract(kept, kept),
    )


def _conditional(
    k: int,
    given: Sequence[int],
    variables: Sequence[sp.Symbol],
    mean: sp.Matrix,
    covariance: sp.Matrix,
) -> tuple[sp.Expr, sp.Expr]:
    """Mean and variance of variable k given some others."""
    if not given:
        return mean[k], covariance[k, k]
    others = list(given)
    slopes = covariance.extract(others, others).LUsolve(covariance.extract(others, [k]))
    offsets = (s * (variables[i] - mean[i]) for s, i in zip(slopes, others, strict=True))
    rest = covariance[k, k] - (covariance.extract([k], others) * slopes)[0]
    return sp.expand(mean[k] + sp.Add(*offsets)), sp.nsimplify(sp.radsimp(rest))


def _one_variable_less(
    f: sp.Expr, variables: list[sp.Symbol], mean: sp.Matrix, covariance: sp.Matrix
) -> _Law | None:
    """Integrate out a variable that has a closed form under its conditional law."""
    z = sp.Dummy("z", real=True)
    for k in range(len(variables)):
        rest = [i for i in range(len(variables)) if i != k]
        centre, variance = _conditional(k, rest, variables, mean, covariance)
        inner = f.xreplace({variables[k]: centre + sp.sqrt(variance) * z})
        found = closed_form(inner, z)
        if found is None or found.has(BivariateNormalCDF):
            continue
        left = [variables[i] for i in rest]
        used = [i for i, x in enumerate(left) if x in found.free_symbols]
        return (
            found,
            [left[i] for i in used],
            mean.extract([rest[i] for i in used], [0]) if used else sp.Matrix([]),
            covariance.extract([rest[i] for i in used], [rest[i] for i in used]),
        )
    return None


def _plane_value(
    f: sp.Expr,
    variables: list[sp.Symbol],
    mean: sp.Matrix,
    covariance: sp.Matrix,
    prec: int,
    extra: int,
) -> tuple[Any, Any]:
    ctx = mpmath.mp.clone()
    ctx.prec = prec + extra
    products = as_products(f, variables, mean, covariance)
    if products is not None:
        try:
            return product_value(products, prec, ctx), ctx
        except EmissionError as error:
            raise ConvergenceError(f"no quadrature of {str(f)[:200]}: {error}") from None
    if f.has(*NONSMOOTH):
        raise UnsupportedExpressionError(
            f"digits of E[{str(f)[:200]}]: no rule integrates out either variable, and quadrature "
            "over two variables needs a smooth integrand or a product of functions of one variable"
        )
    x, y = sp.symbols("x y", cls=sp.Dummy, real=True)
    slope = covariance[0, 1] / covariance[0, 0]
    spread = sp.sqrt(covariance[1, 1] - slope * covariance[0, 1])
    first = sp.sqrt(covariance[0, 0]) * x
    plane = f.xreplace(
        {variables[0]: mean[0] + first, variables[1]: mean[1] + slope * first + spread * y}
    )
    try:
        function = compiled(plane, [x, y], ctx)
    except EmissionError as error:
        raise ConvergenceError(f"no quadrature of {str(f)[:200]}: {error}") from None

    def weighted(s: Any, t: Any) -> Any:
        try:
            value = ctx.convert(function(s, t))
        except (ZeroDivisionError, ValueError):
            value = ctx.nan
        if not isinstance(value, ctx.mpf) or not ctx.isfinite(value):
            where = f"({ctx.nstr(s, 5)}, {ctx.nstr(t, 5)})"
            raise NotConverged(f"the integrand is not a finite real number at {where}")
        return value * ctx.exp(-(s * s + t * t) / 2) / (2 * ctx.pi)

    wanted, possible = ctx.ldexp(1, -prec - 8), ctx.ldexp(1, ROUNDING_BITS - ctx.prec)

    def agree(difference: Any, value: Any, size: Any) -> bool:
        return bool(difference <= wanted * abs(value) or difference <= possible * size)

    return _product_rule(weighted, ctx, agree), ctx


def _product_rule(function: Callable[[Any, Any], Any], ctx: Any, agree: Callable[..., bool]) -> Any:
    """Trapezoidal sums over square grids, halved until a shifted grid gives the same."""

    def both_sides(along: Callable[[Any], Any], shift: Any, step: Any) -> tuple[Any, Any]:
        right, size_right, _ = half_line_sum(along, shift, step, ctx)
        left, size_left, _ = half_line_sum(along, shift - step, -step, ctx)
        return (right + left) * step, (size_right + size_left) * step

    def grid(step: Any, shift: Any) -> tuple[Any, Any]:
        sizes: list[Any] = []

        def row(s: Any) -> Any:
            value, size = both_sides(lambda t: function(s, t), shift, step)
            sizes.append(size)
            return value

        value, _ = both_sides(row, shift, step)
        return value, ctx.fsum(sizes) * step

    promising = ctx.ldexp(1, 2 * (ROUNDING_BITS - ctx.prec) // 5)
    step, previous = ctx.mpf(1) / 2, None
    while step > _SMALLEST_STEP:
        value, size = grid(step, ctx.zero)
        if previous is not None and abs(value - previous) <= promising * size:
            shifted, _ = grid(step, step * (3 - ctx.sqrt(5)) / 2)
            if agree(abs(value - shifted), value, size):
                return value
        step, previous = step / 2, value
    raise NotConverged(
        f"no agreement of product rules down to step {_SMALLEST_STEP} (there may be a singularity "
        "close to the real plane, or the correlation is close to 1)"
    )


# At it a grid has some 10**6 nodes, half a minute of work.
_SMALLEST_STEP = 1 / 32
