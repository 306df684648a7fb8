"""The points of a sweep: axes, their product or their pairs, and blocks of rows to solve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError

Array = NDArray[np.float64]

POINT = "point"
# Rows that one worker solves at a time: enough to hide what a block costs, few enough for a
# progress bar and for what an interruption loses.
_FEWEST_ROWS, _MOST_ROWS = 1024, 65_536
_BLOCKS = 16


@dataclass(frozen=True)
class Tie:
    """A parameter that follows from another one.

    Attributes
    ----------
    source : str
    function : callable
        Takes the values of the source and a square root, that of NumPy or of SymPy.
    constraint : bool
        Whether other values make no sense; else it follows unless it is given itself.
    """

    source: str
    function: Callable[[Any, Callable[[Any], Any]], Any]
    constraint: bool = False


@dataclass(frozen=True)
class Points:
    """Parameter sets in the order in which they are solved, the last axis running fastest.

    Attributes
    ----------
    names : tuple of str
        Parameters in the order of the kernel.
    axes : mapping from str to array
        Parameters that vary, in the user's order.
    fixed : mapping from str to float
        Those that do not.
    product : bool
        All combinations; else the axes go together, point by point.
    ties : mapping from str to Tie
        Parameters that follow from others at each point.
    """

    names: tuple[str, ...]
    axes: Mapping[str, Array]
    fixed: Mapping[str, float]
    product: bool
    ties: Mapping[str, Tie]

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        columns: Mapping[str, Array],
        product: bool,
        ties: Mapping[str, Tie],
    ) -> Points:
        """Sort columns into axes and fixed parameters.

        Raises
        ------
        ParameterError
            If axes that go together differ in length.
        """
        axes = {name: column for name, column in columns.items() if column.ndim}
        lengths = {name: len(column) for name, column in axes.items()}
        if not product and len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name}: {n}" for name, n in lengths.items())
            raise ParameterError(
                f"with product=False all arrays must have one length, got {listed}"
            )
        fixed = {name: float(column) for name, column in columns.items() if not column.ndim}
        return cls(tuple(names), axes, fixed, product, ties)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Dimensions of the results."""
        return tuple(self.axes) if self.product else (POINT,)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        lengths = tuple(map(len, self.axes.values()))
        return lengths if self.product else lengths[:1] or (1,)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def rows(self, begin: int, end: int) -> Array:
        """Return the parameters of points `begin`, …, `end` - 1."""
        indices: Sequence[NDArray[np.intp]] = [np.arange(begin, end)] * len(self.axes)
        if self.product and self.axes:
            indices = np.unravel_index(indices[0], self.shape)
        found = np.empty((end - begin, len(self.names)))
        for name, value in self.fixed.items():
            found[:, self.names.index(name)] = value
        for (name, axis), index in zip(self.axes.items(), indices, strict=True):
            found[:, self.names.index(name)] = axis[index]
        for name, tie in self.ties.items():
            source = found[:, self.names.index(tie.source)]
            found[:, self.names.index(name)] = tie.function(source, np.sqrt)
        return found

    def blocks(self) -> list[Block]:
        """Cut the points into runs that are boxes of the result arrays, whoever solves them."""
        wanted = min(max(len(self) // _BLOCKS, _FEWEST_ROWS), _MOST_ROWS)
        inner, axis = 1, len(self.shape)
        while axis and inner * self.shape[axis - 1] <= wanted:
            axis -= 1
            inner *= self.shape[axis]
        if not axis:
            return [Block(0, len(self), tuple(slice(0, n) for n in self.shape))]
        rest = tuple(slice(0, n) for n in self.shape[axis:])
        length = max(1, wanted // inner)
        return list(self._boxes(axis - 1, length, inner, rest))

    def _boxes(self, cut: int, length: int, inner: int, rest: tuple[slice, ...]) -> Iterator[Block]:
        begin = 0
        for outer in np.ndindex(*self.shape[:cut]):
            for first in range(0, self.shape[cut], length):
                last = min(first + length, self.shape[cut])
                end = begin + (last - first) * inner
                fixed = tuple(slice(k, k + 1) for k in outer)
                yield Block(begin, end, (*fixed, slice(first, last), *rest))
                begin = end


@dataclass(frozen=True)
class Block:
    """Points `begin`, …, `end` - 1, which fill the `box` of each result array."""

    begin: int
    end: int
    box: tuple[slice, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the box."""
        return tuple(s.stop - s.start for s in self.box)
