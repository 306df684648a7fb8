"""Expressions with averages over κ as programs on power series.

The integrands of all averages become one function of the tables and unknowns, and what stands
outside of them another; both are printed from the SymPy expressions. Their arguments are numbers,
arrays over the quadrature nodes, and power series of either, for which the same source yields the
coefficients of the expanded integrands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import sympy as sp

from ....runtime.generated import defined
from ....symbolic.asymptotic_series import Series
from ....symbolic.gaussian import GaussianExpectation
from ....symbolic.printing.compiled import Formula, function_source
from ....symbolic.random_matrix import Resolvent
from .. import physics as fe
from .scaling import small

_RESOLVENT = "resolvent"


class SeriesContext:
    """What printed source asks of an mpmath context, for series and arrays."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx
        self._root = np.frompyfunc(ctx.sqrt, 1, 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def sqrt(self, x: Any) -> Any:
        """Return the square root of a number, an array or a series."""
        if isinstance(x, Series):
            return x.power(sp.S.Half, lambda e: self._ctx.mpf(int(e.p)) / int(e.q))
        return self._root(x) if isinstance(x, np.ndarray) else self._ctx.sqrt(x)


class SeriesProgram:
    """Values of expressions whose averages run over given nodes.

    Parameters
    ----------
    expressions : sequence of Expr
        In unknowns, parameters and ε, with averages over κ of rational functions of tables.
    unknowns, parameters : sequence of Symbol
    tables : sequence of applied function
    """

    def __init__(
        self,
        expressions: Sequence[sp.Expr],
        unknowns: Sequence[sp.Symbol],
        parameters: Sequence[sp.Symbol],
        tables: Sequence[sp.Expr],
    ) -> None:
        nodes = sorted({n for e in expressions for n in e.atoms(GaussianExpectation)}, key=str)
        means = [sp.Symbol(f"mean_{k}", real=True) for k in range(len(nodes))]
        outer = [e.xreplace(dict(zip(nodes, means, strict=True))) for e in expressions]
        self._tables = tuple(tables)
        common = [small, *parameters, *unknowns]
        names = {x: f"given_{k}" for k, x in enumerate(common)}
        at_node = [fe.kappa, *tables]
        names |= {x: f"table_{k}" for k, x in enumerate(at_node)}
        named = [e.replace(Resolvent, sp.Function(_RESOLVENT)) for e in outer]
        self._source = function_source(
            {
                "integrands": Formula([*common, *at_node], [n.integrand for n in nodes]),
                "outer": Formula([*common, *means], named),
            },
            "mpmath",
            names=names,
            own_functions={_RESOLVENT: _RESOLVENT},
        )

    def on(
        self, ctx: Any, weights: Any, tables: Mapping[sp.Expr, Any], node: Any
    ) -> Callable[[Any, Sequence[Any], Sequence[Any], int], list[Series]]:
        """Return the function of (ε, parameters, unknowns, length) that evaluates on nodes.

        Parameters
        ----------
        ctx : mpmath context
        weights, node : array of numbers
        tables : mapping from applied function to array or Series of arrays
        """
        series = SeriesContext(ctx)
        branches = defined(_resolvent_branches(), ctx=series)
        program = defined(self._source, ctx=series, resolvent=partial(_resolvent, branches))
        given = [node, *(tables[f] for f in self._tables)]

        def mean(value: Any) -> Any:
            if isinstance(value, Series):
                return value.map(mean)
            if isinstance(value, np.ndarray):
                return ctx.fdot(weights, value)
            return value * total if value else 0

        total = ctx.fsum(weights)

        def evaluate(
            epsilon: Any, parameters: Sequence[Any], unknowns: Sequence[Any], length: int
        ) -> list[Series]:
            inputs = [_cut(x, length) for x in (epsilon, *parameters, *unknowns)]
            values = program.integrands(*inputs, *(_cut(x, length) for x in given))
            found = program.outer(*inputs, *map(mean, values))
            return [x if isinstance(x, Series) else Series.monomial(0, length, x) for x in found]

        return evaluate


def _cut(value: Any, length: int) -> Any:
    """Return a series or an array as a series with so many coefficients, a number as it is."""
    if isinstance(value, np.ndarray):
        # Products with arrays then keep them on the left: numbers do not know what to do with one.
        return Series.monomial(0, length, value)
    if not isinstance(value, Series):
        return value
    return Series(tuple(value.coefficient(k) if k < value.end else 0 for k in range(length)))


def _resolvent_branches() -> str:
    """Return the source of the two forms of the resolvent and of what decides between them."""
    arguments = [sp.Symbol(f"argument_{k}", positive=True) for k in range(3)]
    (first, condition), (second, _) = Resolvent(*arguments).rewrite(sp.Piecewise).args
    values = {"first": first, "second": second, "middle": condition.lhs - condition.rhs}
    return function_source({k: Formula(arguments, value) for k, value in values.items()}, "mpmath")


def _resolvent(branches: SimpleNamespace, a: Any, b: Any, beta: Any) -> Any:
    """Choose the form that does not cancel by the leading coefficients; it may have a pole."""
    leading = [x.coefficient(0) if isinstance(x, Series) else x for x in (a, b)]
    form = branches.first if branches.middle(*leading, beta) >= 0 else branches.second
    return form(a, b, beta)
