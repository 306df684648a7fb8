"""An orthonormal basis of nearly collinear functions, by arithmetic of many digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConvergenceError

Array = NDArray[np.float64]

# Digits of the functions that a dependence may lack, and digits that a basis must have.
_GUARD_DIGITS = 8
_BASIS_DIGITS = 16


@dataclass(frozen=True)
class ColumnSpan:
    """The space that K columns span.

    Attributes
    ----------
    basis : array (n, R)
        Orthonormal with the weights, R the rank.
    coefficients : array (K, R)
        The basis is columns @ coefficients; entries are as large as the columns are collinear.
    null : array (K, K - R)
        Combinations that vanish.
    complete : bool
        No direction is left out because it is too small for the digits of the columns.
    """

    basis: Array
    coefficients: Array
    null: Array
    complete: bool = True

    @property
    def rank(self) -> int:
        """R."""
        return self.basis.shape[1]

    def without_last(self) -> ColumnSpan:
        """Return the span without the direction that was found last, the smallest of close ones."""
        null = np.concatenate([self.null, self.coefficients[:, -1:]], axis=1)
        return ColumnSpan(self.basis[:, :-1], self.coefficients[:, :-1], null, False)

    def least(self, combination: Array, scale: Array) -> Array:
        """Return the columns' coefficients of a function, of least norm in units of `scale`."""
        outcome = self.coefficients @ combination
        if self.null.shape[1]:
            free = self.null / scale[:, None]
            outcome = outcome - self.null @ np.linalg.lstsq(free, outcome / scale, rcond=None)[0]
        result: Array = outcome
        return result


def column_span(
    ctx: Any,
    columns: Sequence[Sequence[Any]],
    weights: Sequence[Any],
    digits: int,
    *,
    drop: bool = False,
) -> ColumnSpan:
    """Orthonormalise columns, each twice against those before it.

    Parameters
    ----------
    ctx : mpmath context
        With some more digits than `digits`.
    columns : K sequences of n numbers of `ctx`
    weights : n numbers of `ctx`
    digits : int
        To which the columns are known.
    drop : bool
        Leave out what a column differs in from a combination of the others by too little to tell
        how; the span is not complete then.

    Raises
    ------
    ConvergenceError
        If a column differs by too little, and `drop` is false.
    """
    zero = ctx.zero
    nothing = ctx.mpf(10) ** (_GUARD_DIGITS - digits)
    enough = ctx.mpf(10) ** (_BASIS_DIGITS - digits)

    def product(x: Sequence[Any], y: Sequence[Any]) -> Any:
        return ctx.fdot(weights, [a * b for a, b in zip(x, y, strict=True)])

    basis: list[list[Any]] = []
    made: list[list[Any]] = []
    null: list[list[Any]] = []
    complete = True
    for j, column in enumerate(columns):
        size = ctx.sqrt(product(column, column))
        parts = [zero] * len(columns)
        if size < nothing:
            parts[j] = ctx.one
            null.append(parts)
            continue
        parts[j] = 1 / size
        rest = [x / size for x in column]
        for _ in range(2):
            for vector, own in zip(basis, made, strict=True):
                share = product(rest, vector)
                rest = [x - share * y for x, y in zip(rest, vector, strict=True)]
                parts = [x - share * y for x, y in zip(parts, own, strict=True)]
        left = ctx.sqrt(product(rest, rest))
        if left < nothing:
            null.append(parts)
        elif left < enough and drop:
            null.append(parts)
            complete = False
        elif left < enough:
            raise ConvergenceError(
                f"two functions differ by {ctx.nstr(left, 2)} of their size, and arithmetic of "
                f"{digits} digits does not tell how; make them equal or more different"
            )
        else:
            basis.append([x / left for x in rest])
            made.append([x / left for x in parts])
    return ColumnSpan(
        _array(basis, len(weights)),
        _array(made, len(columns)),
        _array(null, len(columns)),
        complete,
    )


def _array(columns: Sequence[Sequence[Any]], rows: int) -> Array:
    return np.array([[float(x) for x in c] for c in columns]).reshape(-1, rows).T
