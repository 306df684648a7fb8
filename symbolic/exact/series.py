r"""Truncated series over any ring, and expressions with series for symbols.

One :class:`Series` serves all who expand: coefficients are SymPy expressions, elements of a field,
floating-point numbers of many digits, or arrays of them, one for each node of a quadrature rule.
Sums, products, powers (Miller's recurrence) and functions of one argument, whose coefficients
follow from :math:`(f(u))' = f'(u)\,u'`, are propagated; expressions are never differentiated with
respect to the variable, which would double their length at every order. Series in several variables
are elements of SymPy's sparse rings, truncated at a total degree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import zip_longest
from operator import mul
from typing import Any, ClassVar, Self

import sympy as sp
from sympy.polys.rings import PolyElement

from ...errors import StructureError, UnsupportedExpressionError

Number = Callable[[sp.Expr], Any]
"""What turns a constant of an expression into a coefficient."""


def same(value: sp.Expr) -> sp.Expr:
    """Return a constant as it is: coefficients are SymPy expressions."""
    return value


@dataclass(frozen=True)
class Series:
    """A truncated Laurent series :math:`c_0t^s + c_1t^{s+1} + ... + O(t^{s+n})`.

    `coefficients`: c_0, …, c_{n-1}, of one field, or arrays of its numbers; the integer 0 is known
    to vanish. Leading numbers that are exactly zero are taken off. `start`: s; of a series without
    coefficients the order of what was left out.
    """

    coefficients: tuple[Any, ...]
    start: int = 0
    # Arrays leave arithmetic with a series to the series.
    __array_ufunc__: ClassVar[None] = None

    def __post_init__(self) -> None:
        remaining, start = self.coefficients, self.start
        while remaining and _is_zero(remaining[0]):
            remaining, start = remaining[1:], start + 1
        object.__setattr__(self, "coefficients", tuple(remaining))
        object.__setattr__(self, "start", start)

    @staticmethod
    def simplified(value: Any) -> Any:
        """Return a coefficient in the form in which it is kept; that of a ring is its own."""
        return value

    @staticmethod
    def leading_power(value: Any, exponent: sp.Expr, number: Number) -> Any:
        """Return a power of a leading coefficient, which is not zero."""
        return value ** _exponent(exponent, number)

    @property
    def end(self) -> int:
        """The first order that is not known."""
        return self.start + len(self.coefficients)

    def coefficient(self, order: int) -> Any:
        """Return the coefficient of t^order.

        Raises StructureError if the series ends before that order.
        """
        if order >= self.end:
            raise StructureError(f"the series is known below order {self.end}, not at {order}")
        return self.coefficients[order - self.start] if order >= self.start else 0

    def truncated(self, end: int) -> Self:
        """Return the series with orders below `end` only."""
        return type(self)(self.coefficients[: max(0, end - self.start)], min(self.start, end))

    @classmethod
    def monomial(cls, power: int, terms: int, coefficient: Any = 1) -> Self:
        """Return c t^power, known for so many terms."""
        return cls((coefficient, *[0] * (terms - 1)), power)

    def map(self, change: Callable[[Any], Any]) -> Self:
        """Return the series with changed coefficients."""
        return type(self)(tuple(map(change, self.coefficients)), self.start)

    def __add__(self, other: Any) -> Series:
        if not isinstance(other, Series):
            return self if _is_zero(other) or self.end <= 0 else self + self._constant(other)
        start, end = min(self.start, other.start), min(self.end, other.end)
        terms = (self._padded(start, end), other._padded(start, end))
        pairs = zip_longest(*terms, fillvalue=0)
        return type(self)(tuple(self.simplified(_sum(a, b)) for a, b in pairs), start)

    def _constant(self, value: Any) -> Series:
        """Return a constant as a series that is known as far as this one."""
        return type(self)((value, *[0] * (self.end - 1)), 0)

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
            return 0 if _is_zero(other) else self.map(lambda c: self.simplified(_product(c, other)))
        a, b = self.coefficients, other.coefficients
        count = min(len(a), len(b))
        product = (self.simplified(_dot(a[: k + 1], b[k::-1])) for k in range(count))
        return type(self)(tuple(product), self.start + other.start)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Series):
            return self * other.power(sp.S.NegativeOne)
        return self.map(lambda c: _quotient(c, other))

    def __rtruediv__(self, other: Any) -> Any:
        return self.power(sp.S.NegativeOne) * other

    def __pow__(self, exponent: int) -> Series:
        return self.power(sp.Integer(exponent))

    def power(self, exponent: sp.Expr, number: Number = same) -> Self:
        r"""Return the series to a constant power that is not 0.

        Products for whole powers, which need no inverse; else Miller's recurrence.

        Raises StructureError if no coefficient is known, or a root of its leading term is no
        integer power of t.
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
        inverse = self.leading_power(self.coefficients[0], sp.S.NegativeOne, number)
        ratios = [self.simplified(_product(c, inverse)) for c in self.coefficients[1:]]
        leading = self.leading_power(self.coefficients[0], exponent, number)
        powers: list[Any] = [1]
        for n in range(1, len(self.coefficients)):
            weights = [_exponent(k * exponent - (n - k), number) for k in range(1, n + 1)]
            total = _dot(list(map(_product, ratios, weights)), powers[::-1])
            powers.append(self.simplified(_quotient(total, n)))
        return type(self)(tuple(_product(c, leading) for c in powers), int(start))

    def derivative(self) -> Self:
        """Return the derivative with respect to t."""
        orders = range(self.start, self.end)
        terms = tuple(map(_product, self.coefficients, orders))
        return type(self)(terms, self.start - 1)


def _exponent(exponent: sp.Expr, number: Number) -> Any:
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


def truncated(element: PolyElement, degree: int) -> PolyElement:
    """Return a series in several variables without the terms beyond a total degree."""
    return element.ring.from_dict({m: c for m, c in element.items() if sum(m) <= degree})


def truncated_product(first: PolyElement, second: PolyElement, degree: int) -> PolyElement:
    """Return a product without the terms beyond a total degree, which are never formed.

    Examples
    --------
    >>> ring, x, y = sp.ring("x y", sp.QQ)
    >>> truncated_product(1 + x + y**2, 1 - x, 2)
    -x**2 + y**2 + 1
    """
    if len(first) > len(second):
        first, second = second, first
    by_degree: dict[int, list[Any]] = {}
    for monomial, c in second.items():
        by_degree.setdefault(sum(monomial), []).append((monomial, c))
    terms: dict[tuple[int, ...], Any] = {}
    for monomial, c in first.items():
        room = degree - sum(monomial)
        for size, others in by_degree.items():
            if size <= room:
                for other, d in others:
                    key = tuple(map(int.__add__, monomial, other))
                    terms[key] = terms[key] + c * d if key in terms else c * d
    return first.ring.from_dict({key: c for key, c in terms.items() if c})


def substitute(expr: sp.Expr, rule: Mapping[sp.Symbol, Series], *, number: Number = same) -> Any:
    r"""Return an expression with series for symbols, as a series; a constant if it has none.

    Parameters
    ----------
    expr : Expr
        Sums, products and constant powers; functions of one argument where coefficients are SymPy
        expressions, else of constants only.
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
        self._number = number
        # A quotient of Python's integers would be a float.
        self._rule = {x: series.map(self._in_field) for x, series in rule.items()}
        self._known: dict[sp.Expr, Any] = {}

    def __call__(self, expr: sp.Expr) -> Any:
        if expr not in self._known:
            self._known[expr] = self._substituted(expr)
        return self._known[expr]

    def _substituted(self, expr: sp.Expr) -> Any:
        if expr in self._rule:
            return self._rule[expr]
        if not expr.free_symbols & self._rule.keys():
            return self._number(expr)
        if expr.is_Add:
            return sum(map(self, expr.args))
        if expr.is_Mul:
            return reduce(mul, map(self, expr.args))
        if expr.is_Pow and not expr.exp.free_symbols & self._rule.keys():
            base = self(expr.base)
            if isinstance(base, Series):
                return base.power(expr.exp, self._number)
            return base ** _exponent(expr.exp, self._number)
        if isinstance(expr, sp.Function) and len(expr.args) == 1:
            argument = self(expr.args[0])
            symbolic = isinstance(self._number(sp.S.One), sp.Expr)
            if symbolic and isinstance(argument, Series) and argument.start >= 0:
                return self._function(expr, argument)
        raise UnsupportedExpressionError(f"a series cannot be substituted into {expr}")

    def _function(self, expr: sp.Function, argument: Series) -> Any:
        """Return f of a series u without a pole, by (f(u))' = f'(u) u'."""
        # Slopes are known as far as the symbols are, less one term.
        argument = argument.truncated(min(series.end for series in self._rule.values()))
        at = argument.coefficient(0)
        value = expr.func(at)
        if not value.is_finite or isinstance(expr, sp.Heaviside | sp.Abs | sp.sign):
            raise StructureError(f"{expr.func} is not known to be analytic at {at}")
        if argument.end == 1:
            return type(argument)((value,))
        slope = self._one_term_less(expr.fdiff(1))
        change = argument.derivative() * slope
        terms = [change.coefficient(n) / (n + 1) for n in range(argument.end - 1)]
        return type(argument)((value, *terms))

    @cached_property
    def _one_term_less(self) -> _Substitution:
        """The same substitution without the last terms, which slopes do not need."""
        shorter = {x: series.truncated(series.end - 1) for x, series in self._rule.items()}
        return _Substitution(shorter, self._number)

    def _in_field(self, value: Any) -> Any:
        return self._number(sp.Integer(value)) if isinstance(value, int) else value
