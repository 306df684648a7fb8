"""Coefficients of all unknowns and outputs, order by order, on given nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import sympy as sp

from ....numeric.power_series import PowerSeries, solve_orders
from .scaling import ScaledSystem
from .series_program import SeriesProgram

# ε itself; products with an integer are exact.
_EPSILON = PowerSeries([0, 1])


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
            x: series.coefficients[0] for x, series in found.items()
        }

    def _collected(
        self, ctx: Any, weights: Any, nodes: Any, tables: Mapping[sp.Expr, Any],
        parameters: Sequence[Any], found: Mapping[sp.Symbol, PowerSeries],
    ) -> dict[str, dict[int, Any]]:  # fmt: skip
        values: dict[str, dict[int, Any]] = {}
        for name, (k, program) in self._outputs.items():
            length = max(self.last - k, 0) + 1
            evaluate = program.on(ctx, weights, tables, nodes)
            (series,) = evaluate(_EPSILON, parameters, list(found.values()), length)
            values[name] = {j + k: ctx.zero + c for j, c in enumerate(series.coefficients)}
        for x, series in found.items():
            k = self.system.exponents[x]
            terms = {j + k: ctx.zero + c for j, c in enumerate(series.coefficients)}
            values[str(x)] = {j: c for j, c in terms.items() if j <= max(self.last, k)}
        return values


def _residuals(
    evaluate: Callable[[Any, Sequence[Any], Sequence[Any], int], list[PowerSeries]],
    parameters: Sequence[Any],
    found: Mapping[sp.Symbol, Any],
    unknowns: Sequence[sp.Symbol],
    values: list[PowerSeries],
) -> list[PowerSeries]:
    given = {**found, **dict(zip(unknowns, values, strict=True))}
    return evaluate(_EPSILON, parameters, list(given.values()), len(values[0]))
