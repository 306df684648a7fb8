"""Coefficients of all unknowns and outputs, order by order, on given nodes.

The leading coefficients are a root of the leading system, found by Newton's method. Derivatives
need no formulas: the coefficient of t of F at X_0 + t e_j is column j of the Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import sympy as sp

from ....errors import ConvergenceError
from ....symbolic.asymptotic_series import Series, order_by_order
from .scaling import ScaledSystem
from .series_program import SeriesProgram

# ε itself; products with an integer are exact.
_EPSILON = Series.monomial(1, 1)
_MOST_ITERATIONS = 80

Residuals = Callable[[list[Series]], list[Series]]


class OrderByOrder:
    """The programs of a scaled system, block by block.

    Parameters
    ----------
    system : ScaledSystem
    parameters : sequence of Symbol
    tables : sequence of applied function
    last : int
        Exponent of ε of the last term, of unknowns and outputs alike.
    beyond : bool
        Whether outputs that begin after it get their first term; it may diverge.
    """

    def __init__(
        self,
        system: ScaledSystem,
        parameters: Sequence[sp.Symbol],
        tables: Sequence[sp.Expr],
        last: int,
        *,
        beyond: bool = True,
    ) -> None:
        self.system, self.last = system, last
        self._unknowns = tuple(e.unknown for e in system.equations)
        self._blocks: list[tuple[tuple[sp.Symbol, ...], SeriesProgram, int]] = []
        order = 0
        for block in reversed(system.structure.blocks):
            # A block serves the later ones, so it goes as far as they do.
            # Of what is smaller than the last term, the leading coefficient is wanted still.
            order = max(order, *(last - system.exponents[x] for x in block.unknowns), 0)
            equations = [e for c in block.components for e in c.core + c.eliminated]
            program = SeriesProgram(
                [e.residual for e in equations], self._unknowns, parameters, tables
            )
            self._blocks.insert(0, (block.unknowns, program, order))
        self._outputs = {
            name: (k, SeriesProgram([expr], self._unknowns, parameters, tables))
            for name, (k, expr) in system.outputs.items()
            if beyond or k <= last
        }

    def solve(
        self, ctx: Any, weights: Any, nodes: Any, tables: Mapping[sp.Expr, Any],
        parameters: Sequence[Any], start: Mapping[sp.Symbol, Any], progress: Callable[[], object],
    ) -> tuple[dict[str, dict[int, Any]], dict[sp.Symbol, Any]]:  # fmt: skip
        """Return {name: {exponent of ε: coefficient}} and the leading scaled unknowns.

        Names are those of outputs and the text of the symbols of unknowns.
        """
        found: dict[sp.Symbol, Any] = dict.fromkeys(self._unknowns, ctx.zero)
        for unknowns, program, order in self._blocks:
            evaluate = program.on(ctx, weights, tables, nodes)
            solution = solve_orders(
                partial(_residuals, evaluate, parameters, found, unknowns),
                [start[x] for x in unknowns],
                [bool(start[x] > 0 and x.is_nonnegative) for x in unknowns],
                order,
                ctx,
                names=", ".join(map(str, unknowns)),
                progress=progress,
            )
            found |= dict(zip(unknowns, solution, strict=True))
        return self._collected(ctx, weights, nodes, tables, parameters, found), {
            x: series.coefficient(0) for x, series in found.items()
        }

    def _collected(
        self, ctx: Any, weights: Any, nodes: Any, tables: Mapping[sp.Expr, Any],
        parameters: Sequence[Any], found: Mapping[sp.Symbol, Series],
    ) -> dict[str, dict[int, Any]]:  # fmt: skip
        values: dict[str, dict[int, Any]] = {}
        for name, (k, program) in self._outputs.items():
            length = max(self.last - k, 0) + 1
            evaluate = program.on(ctx, weights, tables, nodes)
            (series,) = evaluate(_EPSILON, parameters, list(found.values()), length)
            values[name] = {j + k: ctx.zero + series.coefficient(j) for j in range(length)}
        for x, series in found.items():
            k = self.system.exponents[x]
            terms = {j + k: ctx.zero + series.coefficient(j) for j in range(series.end)}
            values[str(x)] = {j: c for j, c in terms.items() if j <= max(self.last, k)}
        return values


def _residuals(
    evaluate: Callable[[Any, Sequence[Any], Sequence[Any], int], list[Series]],
    parameters: Sequence[Any],
    found: Mapping[sp.Symbol, Any],
    unknowns: Sequence[sp.Symbol],
    values: list[Series],
) -> list[Series]:
    given = {**found, **dict(zip(unknowns, values, strict=True))}
    return evaluate(_EPSILON, parameters, list(given.values()), values[0].end)


def solve_orders(
    residuals: Residuals,
    start: Sequence[Any],
    positive: Sequence[bool],
    order: int,
    ctx: Any,
    *,
    names: str,
    progress: Callable[[], object],
) -> list[Series]:
    """Return the solution of a regular system as power series.

    Parameters
    ----------
    residuals : callable
        Takes the unknowns and returns F, as series of the same length.
    start : sequence
        Approximate leading coefficients, numbers of `ctx`.
    positive : sequence of bool
        Unknowns that Newton's method keeps positive.
    order : int
        Of the last coefficient.
    ctx : mpmath context
    names : str
        What is solved for, for messages.
    progress : callable
        Called after each iteration and each order.

    Raises
    ------
    ConvergenceError
        If Newton's method does not converge, or the leading system is degenerate at its root.
    """
    leading = list(start)
    # Quadratic convergence: a step of this size leaves an error of its square.
    small = ctx.sqrt(ctx.eps) / 1000
    for _ in range(_MOST_ITERATIONS):
        value = [f.coefficient(0) for f in residuals([Series((x,)) for x in leading])]
        matrix = _jacobian(residuals, leading, ctx)
        step = _solved(ctx, matrix, value, names=names)
        share = ctx.one
        for x, change, sign in zip(leading, step, positive, strict=True):
            if sign and change > 0:
                share = min(share, ctx.mpf(4) / 5 * x / change)
        leading = [x - share * change for x, change in zip(leading, step, strict=True)]
        scale = max(abs(x) for x in leading)
        progress()
        if all(
            abs(change) <= small * (abs(x) + scale * ctx.eps ** (ctx.mpf(1) / 4))
            for x, change in zip(leading, step, strict=True)
        ):
            break
    else:
        raise ConvergenceError(
            f"Newton's method found no leading coefficient of {names}", state=leading
        )
    matrix = _jacobian(residuals, leading, ctx)

    def residual(known: Sequence[Sequence[Any]], k: int) -> list[Any]:
        progress()
        return [f.coefficient(k) for f in residuals([Series(tuple(x)) for x in known])]

    found = order_by_order(leading, order, residual, partial(_solved, ctx, matrix, names=names))
    return [Series(tuple(x)) for x in found]


def _jacobian(residuals: Residuals, leading: Sequence[Any], ctx: Any) -> Any:
    n = len(leading)
    matrix = ctx.matrix(n, n)
    zero = [f.coefficient(1) for f in residuals([Series((x, 0)) for x in leading])]
    for j in range(n):
        moved = [Series((x, ctx.one if i == j else 0)) for i, x in enumerate(leading)]
        for i, f in enumerate(residuals(moved)):
            matrix[i, j] = ctx.mpf(0) + f.coefficient(1) - zero[i]
    return matrix


def _solved(ctx: Any, matrix: Any, right: Sequence[Any], *, names: str) -> list[Any]:
    try:
        return list(ctx.lu_solve(matrix, ctx.matrix([ctx.zero + x for x in right])))
    except ZeroDivisionError:
        raise ConvergenceError(f"the leading equations do not determine {names}") from None
