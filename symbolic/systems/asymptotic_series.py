r"""Solutions of equations as series in a small quantity, by order-by-order substitution.

Unknowns are written as :math:`x_i = t^{p_i}\,(x_{i,0} + x_{i,1}t + \dots)` with t a root of the
small quantity, so that Puiseux series and peaks are included. Where the leading balance is regular,
the coefficients of order k solve linear equations with one matrix for all orders,

.. math:: \sum_j J_{ij}\,x_{j,k} = -[t^{q_i + k}]\,F_i(x_0 + \dots + x_{k-1}t^{k-1}, t).

Arithmetic is on truncated Laurent series, whose coefficients are numbers of any field: SymPy
expressions, elements of a rational function field, floating-point numbers of many digits, or arrays
of them, one for each node of a quadrature rule. Expressions are never differentiated with respect
to t.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import zip_longest
from operator import mul
from typing import Any, ClassVar

import sympy as sp

from ...errors import StructureError, UnsupportedExpressionError

_IRREGULAR = (
    "the leading equations do not determine their solution: their matrix is singular, so the "
    "exponents of the unknowns balance in another way"
)

Number = Callable[[sp.Expr], Any]
"""What turns a constant of an expression into a coefficient."""


def _same(value: sp.Expr) -> sp.Expr:
    return value


@dataclass(frozen=True)
class Series:
    """A truncated Laurent series :math:`c_0t^s + c_1t^{s+1} + ... + O(t^{s+n})`.

    Attributes
    ----------
    coefficients : tuple
        c_0, …, c_{n-1}, of one field, or arrays of its numbers; the integer 0 is known to vanish.
        Leading numbers that are exactly zero are taken off.
    start : int
        s; of a series without coefficients the order of what was left out.
    """

    coefficients: tuple[Any, ...]
    start: int = 0
    # Arrays leave arithmetic with a series to the series.
    __array_ufunc__: ClassVar[None] = None

    def __post_init__(self) -> None:
        kept, start = self.coefficients, self.start
        while kept and _is_zero(kept[0]):
            kept, start = kept[1:], start + 1
        object.__setattr__(self, "coefficients", tuple(kept))
        object.__setattr__(self, "start", start)

    @property
    def end(self) -> int:
        """The first order that is not known."""
        return self.start + len(self.coefficients)

    def coefficient(self, order: int) -> Any:
        """Return the coefficient of t^order.

        Raises
        ------
        StructureError
            If the series ends before that order.
        """
        if order >= self.end:
            raise StructureError(f"the series is known below order {self.end}, not at {order}")
        return self.coefficients[order - self.start] if order >= self.start else 0

    def truncated(self, end: int) -> Series:
        """Return the series with orders below `end` only."""
        return Series(self.coefficients[: max(0, end - self.start)], min(self.start, end))

    @classmethod
    def monomial(cls, power: int, terms: int, coefficient: Any = 1) -> Series:
        """Return c t^power, known for so many terms."""
        return cls((coefficient, *[0] * (terms - 1)), power)

    def map(self, change: Callable[[Any], Any]) -> Series:
        """Return the series with changed coefficients."""
        return Series(tuple(map(change, self.coefficients)), self.start)

    def __add__(self, other: Any) -> Series:
        if not isinstance(other, Series):
            return self if _is_zero(other) or self.end <= 0 else self + self._constant(other)
        start, end = min(self.start, other.start), min(self.end, other.end)
        terms = (self._padded(start, end), other._padded(start, end))
        return Series(tuple(_sum(a, b) for a, b in zip_longest(*terms, fillvalue=0)), start)

    def _constant(self, value: Any) -> Series:
        """Return a constant as a series that is known as far as this one."""
        return Series((value, *[0] * (self.end - 1)), 0)

    def _padded(self, start: int, end: int) -> list[Any]:
        return ([0] * (self.start - start) + list(self.coefficients))[: max(0, end - start)]

    __radd__ = __add__

    def __neg__(self) -> Series:
        return self.map(lambda c: -c)

    def __sub__(self, other: Any) -> Series:
        return self + -other

    def __rsub__(self, other: Any) -> Series:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Series):
            return 0 if _is_zero(other) else self.map(lambda c: _product(c, other))
        a, b = self.coefficients, other.coefficients
        count = min(len(a), len(b))
        product = (_dot(a[: k + 1], b[k::-1]) for k in range(count))
        return Series(tuple(product), self.start + other.start)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Series):
            return self * other.power(sp.S.NegativeOne)
        return self.map(lambda c: _quotient(c, other))

    def __rtruediv__(self, other: Any) -> Any:
        return self.power(sp.S.NegativeOne) * other

    def __pow__(self, exponent: int) -> Series:
        return self.power(sp.Integer(exponent))

    def power(self, exponent: sp.Rational, number: Number = _same) -> Series:
        r"""Return the series to a rational power that is not 0.

        Products for whole powers, which need no inverse; else Miller's recurrence.

        Raises
        ------
        StructureError
            If no coefficient is known, or a root of its leading term is no integer power of t.
        """
        if exponent.is_Integer and exponent > 0:
            return reduce(mul, [self] * int(exponent))
        if not self.coefficients:
            raise StructureError(
                "a power of a series needs its leading term, of which none is known"
            )
        start = self.start * exponent
        if not start.is_Integer:
            raise StructureError(f"t^{self.start} to the power {exponent} is no integer power of t")
        given = self.coefficients
        found = [given[0] ** _exponent(exponent, number)]
        for n in range(1, len(given)):
            total = _dot(
                [
                    _product(given[k], _exponent(k * exponent - (n - k), number))
                    for k in range(1, n + 1)
                ],
                [found[n - k] for k in range(1, n + 1)],
            )
            found.append(_quotient(total, given[0] * n))
        return Series(tuple(found), int(start))


def _exponent(exponent: sp.Rational, number: Number) -> Any:
    # Fields of rational functions have integer powers only.
    return int(exponent) if exponent.is_Integer else number(exponent)


def _dot(left: Sequence[Any], right: Sequence[Any]) -> Any:
    return reduce(_sum, map(_product, left, right), 0)


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__")


def _is_zero(value: Any) -> bool:
    return not _is_array(value) and bool(value == 0)


def _is_left_out(value: Any) -> bool:
    """Whether a coefficient is the integer 0, which costs nothing."""
    return type(value) is int and value == 0


def _sum(a: Any, b: Any) -> Any:
    if _is_left_out(a):
        return b
    if _is_left_out(b):
        return a
    return b + a if _is_array(b) else a + b


def _product(a: Any, b: Any) -> Any:
    if _is_left_out(a) or _is_left_out(b):
        return 0
    # mpmath would turn an array on the right into text before it gives up.
    return b * a if _is_array(b) else a * b


def _quotient(a: Any, b: Any) -> Any:
    return 0 if _is_left_out(a) else a / b


# ---------------------------------------------------------------------- substitution


def substitute(expr: sp.Expr, rule: Mapping[sp.Symbol, Series], *, number: Number = _same) -> Any:
    r"""Return an expression with series for symbols, as a series; a constant if it has none.

    Parameters
    ----------
    expr : Expr
        Sums, products and rational powers; other functions of constants only.
    rule : mapping from Symbol to Series
        What is not in it is a constant.
    number : callable, optional
        Turns constants into coefficients, such as floating-point numbers; default: SymPy
        expressions.

    Raises
    ------
    UnsupportedExpressionError
        If a part is of another kind.
    StructureError
        If a leading term is not known, or not analytic.

    Examples
    --------
    >>> x, t = sp.Symbol("x"), Series((1, 0, 0), 1)
    >>> substitute(1 / (x - x**2), {x: t}).coefficients
    (1, 1, 1)
    """
    return _Substitution(rule, number)(expr)


class _Substitution:
    def __init__(self, rule: Mapping[sp.Symbol, Series], number: Number) -> None:
        self._rule, self._number = rule, number
        self._symbols = set(rule)
        self._known: dict[sp.Expr, Any] = {}

    def __call__(self, expr: sp.Expr) -> Any:
        if expr not in self._known:
            self._known[expr] = self._found(expr)
        return self._known[expr]

    def _found(self, expr: sp.Expr) -> Any:
        if expr in self._rule:
            return self._rule[expr].map(self._in_field)
        if not expr.free_symbols & self._symbols:
            return self._number(expr)
        if expr.is_Add:
            return sum(map(self, expr.args))
        if expr.is_Mul:
            return reduce(mul, map(self, expr.args))
        if expr.is_Pow and expr.exp.is_Rational:
            base = self(expr.base)
            if isinstance(base, Series):
                return base.power(expr.exp, self._number)
            return base ** _exponent(expr.exp, self._number)
        raise UnsupportedExpressionError(f"a series cannot be substituted into {expr}")

    def _in_field(self, value: Any) -> Any:
        # A quotient of Python's integers would be a float.
        return self._number(sp.Integer(value)) if isinstance(value, int) else value


# ---------------------------------------------------------------------- solution


def solve_series(
    equations: Sequence[sp.Expr],
    leading: Mapping[sp.Symbol, tuple[int, Any]],
    small: Mapping[sp.Symbol, Series],
    order: int,
    *,
    number: Number = _same,
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
    found = order_by_order(
        list(first.values()),
        order,
        lambda known, k: parts.residual(dict(zip(first, known, strict=True)), k),
        lambda right: _linear_solution(matrix, right),
    )
    return {x: Series(tuple(c), starts[x]) for x, c in zip(first, found, strict=True)}


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
    found = [[x] for x in first]
    for k in range(1, order + 1):
        right = residual([[*x, 0] for x in found], k)
        for x, change in zip(found, solve(right), strict=True):
            x.append(-change)
    return found


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
