r"""Whether equations determine their unknowns almost everywhere: the rank of their Jacobian.

The structure of a system says which unknowns are in which equations; it does not see that two of
them occur as a product or a sum only, or that two equations say the same. The rank of the Jacobian
at points drawn at random does: where it is too small at each of several points, it is so
everywhere, up to coincidences. Averages are replaced by sums over a few points, and functions
without a formula by smooth ones; that changes numbers, but not what depends on what.

A free energy f that is the same along a curve has a whole curve of stationary points. Shifts and
rescalings of the variables, :math:`\sum_i (a_i + b_i x_i)\,\partial_i f = 0`, are found in the
same way, from the gradient at many points.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef

from ..expressions.averages import DataAverage, outermost
from ..expressions.shared_parts import replaced
from ..gaussian.expectation import GaussianExpectation
from ..losses.proximal import MoreauEnvelope, Proximal
from ..printing.compiled import compiled
from .random_matrix import MarchenkoPasturAverage, Resolvent

# Central differences of a step leave 30 of 60 digits and five of a float's; a slope below so many
# times its rounding, and a pivot below a threshold, relative to its row, are zero. Floats tell
# quickly what is determined; of what seems not to be, many digits decide.
_DIGITS = 60
_STEPS = {True: ("1e-15", 10**15, "1e-12"), False: ("1e-5", 10**6, "1e-4")}
_POINTS = 4
_NODES = 5

# What is drawn at several nodes.
_AVERAGES = (GaussianExpectation, MarchenkoPasturAverage, DataAverage)

_Point = Mapping[sp.Symbol, Any]


def dependent_unknowns(
    residuals: Sequence[sp.Expr], unknowns: Sequence[sp.Symbol]
) -> tuple[list[sp.Symbol], list[int]]:
    """Return unknowns that can move together without any residual changing, and which repeat.

    Parameters
    ----------
    residuals : sequence of Expr
    unknowns : sequence of Symbol

    Returns
    -------
    list of Symbol
        Empty if the unknowns are determined at some point, or nothing can be said.
    list of int
        The residuals that follow from each other.

    Examples
    --------
    >>> x, y = sp.symbols("x y", positive=True)
    >>> dependent_unknowns([x * y - 1, x**2 * y**2 - 1], [x, y])
    ([x, y], [0, 1])
    >>> dependent_unknowns([x * y - 1, x - y], [x, y])
    ([], [])
    """
    floats = _Evaluator(residuals, unknowns, many_digits=False)
    # Where a law drawn at random is none, a point tells nothing, and the next one may.
    for matrix in map(floats.jacobian, range(_POINTS)):
        if matrix is not None and not _null_vectors(matrix, many_digits=False):
            return [], []
    worker = _Evaluator(residuals, unknowns)
    result: tuple[list[sp.Symbol], list[int]] = ([], [])
    for seed in range(_POINTS):
        matrix = worker.jacobian(seed)
        if matrix is None:
            return [], []
        columns, rows = _null_vectors(matrix), _null_vectors(matrix.T)
        if not columns:
            return [], []
        result = [unknowns[j] for j in columns], rows
    return result


def symmetric_variables(gradient: Mapping[sp.Symbol, sp.Expr]) -> list[sp.Symbol]:
    """Return variables whose shift or rescaling, together, leaves a function unchanged.

    Parameters
    ----------
    gradient : mapping from Symbol to Expr
        The derivatives of the function by its variables.

    Examples
    --------
    >>> x, y = sp.symbols("x y", positive=True)
    >>> symmetric_variables({v: ((x * y) ** 2 - x * y).diff(v) for v in (x, y)})
    [x, y]
    >>> symmetric_variables({v: ((x * y) ** 2 - x).diff(v) for v in (x, y)})
    []
    """
    return (
        _symmetric(gradient, many_digits=False) and _symmetric(gradient, many_digits=True)
    ) or []


def _symmetric(gradient: Mapping[sp.Symbol, sp.Expr], many_digits: bool) -> list[sp.Symbol] | None:
    """Variables whose shift or rescaling changes nothing; None where nothing can be said."""
    variables = tuple(gradient)
    worker = _Evaluator(tuple(gradient.values()), variables, many_digits)
    rows = []
    for seed in range(2 * len(variables) + 2):
        slopes = worker.values(seed)
        if slopes is None:
            return None
        point = worker.point(seed)
        rows.append([*slopes, *(point[x] * s for x, s in zip(variables, slopes, strict=True))])
    null = _null_vectors(worker.ctx.matrix(rows), many_digits)
    return [variables[j] for j in sorted({j % len(variables) for j in null})]


class _Evaluator:
    """Values and central differences of expressions at points drawn at random."""

    def __init__(
        self,
        expressions: Sequence[sp.Expr],
        unknowns: Sequence[sp.Symbol],
        many_digits: bool = True,
    ) -> None:
        self.ctx = mpmath.mp.clone() if many_digits else mpmath.fp
        if many_digits:
            self.ctx.dps = _DIGITS
        self._step, self._noise, _ = _STEPS[many_digits]
        self.unknowns = tuple(unknowns)
        free = set().union(*(e.free_symbols for e in expressions))
        self.symbols = (*unknowns, *sorted(free - set(unknowns), key=str))
        self._functions: list[_Function] | None
        try:
            known: _Averages = {}
            self._functions = [_Function(e, self.ctx, known) for e in expressions]
        except (ValueError, TypeError, NotImplementedError, AttributeError):
            # What no evaluation is known for is refused at the door of the lowering.
            self._functions = None

    def point(self, seed: int) -> dict[sp.Symbol, Any]:
        """Draw a point; parameters and unknowns obey their assumptions."""
        draw = random.Random(seed)
        return {x: _drawn(x, draw, self.ctx) for x in self.symbols}

    def values(self, seed: int) -> list[Any] | None:
        """Return the values of the expressions; None where they are not finite."""
        if self._functions is None:
            return None
        point = self.point(seed)
        try:
            result = [function(point) for function in self._functions]
        except (ArithmeticError, ValueError, TypeError):
            return None
        return result if all(map(self._is_finite, result)) else None

    def jacobian(self, seed: int) -> Any:
        """Return the matrix of derivatives; None where they are not finite."""
        if self._functions is None:
            return None
        step = self.ctx.mpf(self._step)
        point = self.point(seed)
        rows = []
        try:
            for function in self._functions:
                row = []
                for x in self.unknowns:
                    if x not in function.symbols:
                        row.append(self.ctx.zero)
                        continue
                    high, low = (function({**point, x: point[x] + s}) for s in (step, -step))
                    if not (self._is_finite(high) and self._is_finite(low)):
                        # As the logarithm of a step whose few points are all on one side.
                        return None
                    slope = (high - low) / (2 * step)
                    rounding = self.ctx.eps * (1 + abs(high) + abs(low)) / step
                    row.append(slope if abs(slope) > self._noise * rounding else self.ctx.zero)
                rows.append(row)
        except (ArithmeticError, ValueError, TypeError):
            return None
        return self.ctx.matrix(rows)

    def _is_finite(self, value: Any) -> bool:
        return isinstance(value, self.ctx.mpf) and bool(abs(value) < self.ctx.inf)


class _Function:
    """An expression as a function of a point; averages are sums over a few points of their law."""

    def __init__(self, expr: sp.Expr, ctx: Any, known: _Averages) -> None:
        self.symbols = expr.free_symbols
        self._ctx = ctx
        # Equations share averages.
        self._known = known
        expr = _smooth(expr)
        averages = outermost(expr, *_AVERAGES)
        marks = {n: sp.Dummy(real=True) for n in averages}
        for n in averages:
            if n not in known:
                known[n] = self._nodes(n)
        self._sums = [(mark, *known[n]) for n, mark in marks.items()]
        expr = replaced(expr, marks)
        self._arguments = sorted(expr.free_symbols, key=lambda x: (x.name, str(type(x))))
        self._value = compiled(expr, self._arguments, "python" if ctx is mpmath.fp else ctx)

    def _nodes(self, node: sp.Expr) -> tuple[_Function, list[dict[sp.Symbol, Any]]]:
        body, bound = node.args[:2]
        columns = tuple(bound) if isinstance(bound, sp.Tuple) else (bound,)
        positive = isinstance(node, MarchenkoPasturAverage)
        # A table is a number at each node; a law with a parameter moves with it.
        tables = sorted(body.atoms(AppliedUndef), key=str)
        marks = {f: sp.Dummy(real=True) for f in tables}
        if positive:
            body = body.xreplace({bound: bound * (1 + node.args[2])})
        # The same nodes in all expressions: it is one law.
        draw = random.Random(type(node).__name__)
        of_table = {m: random.Random(str(f.func)) for f, m in marks.items()}
        at_nodes = []
        for _ in range(_NODES):
            values = {x: _drawn(x, draw, self._ctx, positive) for x in columns}
            values |= {m: _drawn(m, own, self._ctx) for m, own in of_table.items()}
            at_nodes.append(values)
        return _Function(replaced(body, marks), self._ctx, self._known), at_nodes

    def __call__(self, point: _Point) -> Any:
        point = dict(point)
        for mark, function, nodes in self._sums:
            values = [function({**point, **at}) for at in nodes]
            point[mark] = self._ctx.fsum(values) / len(values)
        return self._value(*(point[x] for x in self._arguments))


_Averages = dict[sp.Expr, tuple[_Function, list[dict[sp.Symbol, Any]]]]


def _smooth(expr: sp.Expr) -> sp.Expr:
    """Put formulas in the place of roots of equations: any that hold the same arguments."""
    expr = expr.xreplace({r: r.rewrite(sp.Piecewise) for r in expr.atoms(Resolvent)})
    while True:
        nodes = [p for p in expr.atoms(Proximal, MoreauEnvelope) if not _inner(p)]
        if not nodes:
            return expr
        expr = expr.xreplace({p: _stand_in(p) for p in nodes})


def _inner(node: sp.Expr) -> bool:
    return any(isinstance(a, sp.Basic) and a.has(Proximal, MoreauEnvelope) for a in node.args)


def _stand_in(node: sp.Expr) -> sp.Expr:
    draw = random.Random(f"{type(node).__name__} {node.loss}")
    parameters = sorted(node.loss.free_symbols - {node.variable}, key=str)
    inside = [node.center, node.step, *parameters]
    return sp.Add(
        *(
            _drawn_rational(draw) * sp.atan(x * _drawn_rational(draw) + sp.Mul(*inside) / 7)
            for x in inside
        )
    )


def _drawn(x: sp.Symbol, draw: random.Random, ctx: Any, positive: bool = False) -> Any:
    if x.is_integer:
        return ctx.mpf(draw.randint(2, 5)) * (-1 if x.is_nonpositive else 1)
    size = ctx.mpf(draw.uniform(0.2, 2.5))
    if positive or x.is_nonnegative:
        return size
    return -size if x.is_nonpositive or draw.random() < 0.5 else size


def _drawn_rational(draw: random.Random) -> sp.Rational:
    return sp.Rational(draw.randint(100, 900), 500)


def _null_vectors(matrix: Any, many_digits: bool = True) -> list[int]:
    """Return the columns that take part in vanishing combinations of columns."""
    ctx = matrix.ctx
    zero = ctx.mpf(_STEPS[many_digits][2])
    rows = [_scaled(matrix[i, :].tolist()[0], ctx) for i in range(matrix.rows)]
    pivots: list[int] = []
    while rows_left := rows[len(pivots) :]:
        # Gauss-Jordan elimination; the largest entry that is left is the pivot.
        size, i, j = max(
            (abs(v), -i, -j) for i, row in enumerate(rows_left) for j, v in enumerate(row)
        )
        if size <= zero:
            break
        k, j = len(pivots), -j
        rows[k], rows[k - i] = rows[k - i], rows[k]
        rows[k] = [v / rows[k][j] for v in rows[k]]
        for r in range(len(rows)):
            if r != k and rows[r][j]:
                factor = rows[r][j]
                rows[r] = [v - factor * p for v, p in zip(rows[r], rows[k], strict=True)]
                rows[r][j] = ctx.zero
        pivots.append(j)
    free = [j for j in range(matrix.cols) if j not in pivots]
    bound = [j for k, j in enumerate(pivots) if any(abs(rows[k][f]) > ctx.sqrt(zero) for f in free)]
    return sorted([*free, *bound])


def _scaled(row: list[Any], ctx: Any) -> list[Any]:
    size = max(map(abs, row))
    return [v / size for v in row] if size else row
