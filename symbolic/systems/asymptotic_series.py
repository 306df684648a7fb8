r"""Solutions of equations as series in a small quantity, by order-by-order substitution.

Unknowns are written as :math:`x_i = t^{p_i}\,(x_{i,0} + x_{i,1}t + \dots)` with t a root of the
small quantity, so that Puiseux series and peaks are included. Where the leading balance is regular,
the coefficients of order k solve linear equations with one matrix for all orders,

.. math:: \sum_j J_{ij}\,x_{j,k} = -[t^{q_i + k}]\,F_i(x_0 + \dots + x_{k-1}t^{k-1}, t).

Arithmetic is that of :class:`.Series`, over any field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy as sp

from ...errors import StructureError
from ..exact.series import Number, Series, same, substitute

_IRREGULAR = (
    "the leading equations do not determine their solution: their matrix is singular, so the "
    "exponents of the unknowns balance in another way"
)


def solve_series(
    equations: Sequence[sp.Expr],
    leading: Mapping[sp.Symbol, tuple[int, Any]],
    small: Mapping[sp.Symbol, Series],
    order: int,
    *,
    number: Number = same,
) -> dict[sp.Symbol, Series]:
    """Return the unknowns as series, from their leading terms.

    Parameters
    ----------
    equations : sequence of Expr
        Expressions that vanish, as many as unknowns; sums whose terms are powers of t.
    leading : mapping from Symbol to (int, coefficient)
        p_i and x_{i,0}, which solve the leading equations.
    small : mapping from Symbol to Series
        Parameters that depend on t.
    order : int
        Coefficients beyond the leading ones.
    number : callable, optional
        Turns constants into coefficients.

    Raises
    ------
    StructureError
        If the leading equations determine their solution only with multiplicity: the balance of
        the exponents is another one.

    Examples
    --------
    >>> x, ridge = sp.symbols("x lambda")
    >>> small = {ridge: Series.monomial(2, 4)}  # the ridge is t**2
    >>> solve_series([x**2 + ridge * x - ridge], {x: (1, sp.S.One)}, small, 2)[x].coefficients
    (1, -1/2, 1/8)
    """
    starts = {x: start for x, (start, _) in leading.items()}
    first = {x: value for x, (_, value) in leading.items()}
    parts = _Balance(equations, starts, first, small, number)
    matrix = parts.jacobian()
    result = order_by_order(
        list(first.values()),
        order,
        lambda known, k: parts.residual(dict(zip(first, known, strict=True)), k),
        lambda right: _linear_solution(matrix, right),
    )
    return {x: Series(tuple(c), starts[x]) for x, c in zip(first, result, strict=True)}


def order_by_order(
    first: Sequence[Any],
    order: int,
    residual: Callable[[Sequence[Sequence[Any]], int], Sequence[Any]],
    solve: Callable[[Sequence[Any]], Sequence[Any]],
) -> list[list[Any]]:
    """Return the coefficients of unknowns of a regular system, each from those before it.

    Parameters
    ----------
    first : sequence
        Leading coefficients.
    order : int
        Coefficients beyond them.
    residual : callable
        Of coefficients of all unknowns, the last ones 0, and k: those of order k of the equations.
    solve : callable
        Applies the inverse of the Jacobian at the leading coefficients.
    """
    result = [[x] for x in first]
    for k in range(1, order + 1):
        right = residual([[*x, 0] for x in result], k)
        for x, change in zip(result, solve(right), strict=True):
            x.append(-change)
    return result


class _Balance:
    """Equations whose leading orders are known."""

    def __init__(
        self,
        equations: Sequence[sp.Expr],
        starts: Mapping[sp.Symbol, int],
        first: Mapping[sp.Symbol, Any],
        small: Mapping[sp.Symbol, Series],
        number: Number,
    ) -> None:
        self._equations, self._starts, self._number = equations, starts, number
        self._small = small
        self._first = rule = self._rule({x: [value] for x, value in first.items()}, 1)
        self._orders = [self._lowest(equation, rule) for equation in equations]

    def _rule(
        self, known: Mapping[sp.Symbol, Sequence[Any]], terms: int
    ) -> dict[sp.Symbol, Series]:
        """Return series of so many terms: no more are needed for the residual of that order."""
        return {
            **{x: value.truncated(value.start + terms) for x, value in self._small.items()},
            **{x: Series(tuple(v[:terms]), self._starts[x]) for x, v in known.items()},
        }

    def _series(self, expr: sp.Expr, rule: Mapping[sp.Symbol, Series]) -> Any:
        return substitute(expr, rule, number=self._number)

    def _lowest(self, equation: sp.Expr, rule: Mapping[sp.Symbol, Series]) -> int:
        """Return q: the lowest order of the terms, which cancel there."""
        values = [self._series(term, rule) for term in sp.Add.make_args(equation)]
        return min(v.start if isinstance(v, Series) else 0 for v in values if v != 0)

    def residual(self, known: Mapping[sp.Symbol, Sequence[Any]], k: int) -> list[Any]:
        rule = self._rule(known, k + 1)
        values = [self._series(equation, rule) for equation in self._equations]
        return [v.coefficient(q + k) for v, q in zip(values, self._orders, strict=True)]

    def jacobian(self) -> list[list[Any]]:
        rows = []
        for equation, order in zip(self._equations, self._orders, strict=True):
            row = []
            for x, start in self._starts.items():
                value = self._series(equation.diff(x), self._first)
                at = order - start
                if isinstance(value, Series):
                    if at >= value.end:
                        raise StructureError(_IRREGULAR)
                    row.append(value.coefficient(at))
                else:
                    row.append(value if at == 0 else 0)
            rows.append(row)
        return rows


def _linear_solution(matrix: Sequence[Sequence[Any]], right: Sequence[Any]) -> list[Any]:
    """Solve a small linear system over any field, by elimination with the largest pivot first."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    count = len(rows)
    for k in range(count):
        choices = [i for i in range(k, count) if rows[i][k] != 0]
        if not choices:
            raise StructureError(_IRREGULAR)
        best = _pivot([rows[i][k] for i in choices])
        rows[k], rows[choices[best]] = rows[choices[best]], rows[k]
        for i in range(count):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def _pivot(candidates: Sequence[Any]) -> int:
    """Return the largest of numbers, the first of symbols."""
    if all(hasattr(c, "_mpf_") or isinstance(c, int) for c in candidates):
        return max(range(len(candidates)), key=lambda i: abs(candidates[i]))
    return 0
