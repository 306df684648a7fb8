"""Truncated power series in one small quantity, and equations solved order by order.

A :class:`PowerSeries` is a list of coefficients of t⁰, t¹, …; a coefficient is a number of any kind
or an array of numbers, one for each quadrature node. A regular system F(X, t) = 0 has the solution
X = X₀ + X₁ t + …: X₀ is a root of the leading system, found by Newton's method, and every further
X_k solves the linear system of the same Jacobian, whose right-hand side is the coefficient of t^k
of F at the orders that are known. Derivatives need no formulas: the coefficient of t of F at
X₀ + t e_j is the column j of the Jacobian.

Equations that are formulas, with leading terms that are known in closed form and powers of any
sign, are solved by :mod:`..symbolic.asymptotic_series`, exactly if wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ConvergenceError

_MOST_ITERATIONS = 80


class PowerSeries:
    """A truncated power series; the integer 0 is a coefficient that is known to vanish.

    Parameters
    ----------
    coefficients : sequence
        Of t⁰, t¹, …; all series of one calculation have the same number of them.
    """

    __slots__ = ("coefficients",)
    # Arrays leave arithmetic with a series to the series.
    __array_ufunc__ = None

    def __init__(self, coefficients: Sequence[Any]) -> None:
        self.coefficients = list(coefficients)

    def __len__(self) -> int:
        return len(self.coefficients)

    def _other(self, value: Any) -> list[Any]:
        if isinstance(value, PowerSeries):
            return value.coefficients
        return [value] + [0] * (len(self) - 1)

    def __add__(self, other: Any) -> PowerSeries:
        return PowerSeries(list(map(_sum, self.coefficients, self._other(other))))

    __radd__ = __add__

    def __neg__(self) -> PowerSeries:
        return PowerSeries([-a for a in self.coefficients])

    def __sub__(self, other: Any) -> PowerSeries:
        return self + (-other)

    def __rsub__(self, other: Any) -> PowerSeries:
        return -self + other

    def __mul__(self, other: Any) -> PowerSeries:
        if not isinstance(other, PowerSeries):
            return PowerSeries([_product(a, other) for a in self.coefficients])
        return PowerSeries(
            [_convolved(self.coefficients, other.coefficients, k) for k in range(len(self))]
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> PowerSeries:
        if isinstance(other, PowerSeries):
            return self * other.inverse()
        return PowerSeries([a if _vanishes(a) else a / other for a in self.coefficients])

    def __rtruediv__(self, other: Any) -> PowerSeries:
        return self.inverse() * other

    def __pow__(self, exponent: int) -> PowerSeries:
        if exponent < 0:
            return self.inverse() ** -exponent
        result = PowerSeries([1] + [0] * (len(self) - 1))
        for _ in range(exponent):
            result = result * self
        return result

    def inverse(self) -> PowerSeries:
        """Return 1/self; the leading coefficient does not vanish."""
        a = self.coefficients
        first = 1 / a[0]
        found = [first]
        for k in range(1, len(a)):
            rest = _convolved([0, *a[1:]], [*found, 0], k)
            found.append(0 if _vanishes(rest) else -rest * first)
        return PowerSeries(found)

    def sqrt(self, root: Callable[[Any], Any]) -> PowerSeries:
        """Return the square root, given that of the leading coefficient."""
        a = self.coefficients
        found = [root(a[0])]
        for k in range(1, len(a)):
            rest = _sum(a[k], -_convolved([0, *found[1:], 0], [0, *found[1:], 0], k))
            found.append(0 if _vanishes(rest) else rest / (2 * found[0]))
        return PowerSeries(found)


def _vanishes(a: Any) -> bool:
    return type(a) is int and a == 0


def _sum(a: Any, b: Any) -> Any:
    if _vanishes(a):
        return b
    if _vanishes(b):
        return a
    return a + b if isinstance(a, np.ndarray) else b + a


def _product(a: Any, b: Any) -> Any:
    if _vanishes(a) or _vanishes(b):
        return 0
    # mpmath would turn an array on the right into text before it gives up.
    return a * b if isinstance(a, np.ndarray) else b * a


def _convolved(a: Sequence[Any], b: Sequence[Any], k: int) -> Any:
    total: Any = 0
    for i in range(k + 1):
        total = _sum(total, _product(a[i], b[k - i]))
    return total


Residuals = Callable[[list[PowerSeries]], list[PowerSeries]]


def solve_orders(
    residuals: Residuals,
    start: Sequence[Any],
    positive: Sequence[bool],
    order: int,
    ctx: Any,
    *,
    names: str,
    progress: Callable[[], object],
) -> list[PowerSeries]:
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
        value = [f.coefficients[0] for f in residuals([PowerSeries([x]) for x in leading])]
        matrix = _jacobian(residuals, leading, ctx)
        step = _solved(ctx, matrix, value, names)
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
    found = [[x] for x in leading]
    for k in range(1, order + 1):
        known = residuals([PowerSeries([*x, 0]) for x in found])
        right = [f.coefficients[k] for f in known]
        for x, change in zip(found, _solved(ctx, matrix, right, names), strict=True):
            x.append(-change)
        progress()
    return [PowerSeries(x) for x in found]


def _jacobian(residuals: Residuals, leading: Sequence[Any], ctx: Any) -> Any:
    n = len(leading)
    matrix = ctx.matrix(n, n)
    zero = [f.coefficients[1] for f in residuals([PowerSeries([x, 0]) for x in leading])]
    for j in range(n):
        moved = [PowerSeries([x, ctx.one if i == j else 0]) for i, x in enumerate(leading)]
        for i, f in enumerate(residuals(moved)):
            matrix[i, j] = ctx.mpf(0) + f.coefficients[1] - zero[i]
    return matrix


def _solved(ctx: Any, matrix: Any, right: Sequence[Any], names: str) -> list[Any]:
    try:
        return list(ctx.lu_solve(matrix, ctx.matrix([ctx.zero + x for x in right])))
    except ZeroDivisionError:
        raise ConvergenceError(f"the leading equations do not determine {names}") from None
