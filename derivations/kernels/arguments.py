"""What users give to a kernel: parameters, data, first values, and the points of a sweep."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numeric.kernel_code import Range
from .precise import exact_number
from .solution import KernelSolution

if TYPE_CHECKING:
    from ...symbolic.systems.saddle_point import Coordinate

Array = NDArray[np.float64]

WEIGHT = "weight"

# Words for refusals, and the interval.
_DOMAINS = {
    "real": ("a finite number", Range("real", -math.inf, math.inf)),
    "positive": ("positive and finite", Range("positive", 0.0, math.inf)),
    "extended positive": (
        "positive (inf is allowed)", Range("positive", 0.0, math.inf, upper_open=False)
    ),
    "negative": ("negative and finite", Range("negative", -math.inf, 0.0)),
    "nonnegative": (">= 0 and finite", Range("nonnegative", 0.0, math.inf, lower_open=False)),
    "nonpositive": ("<= 0 and finite", Range("nonpositive", -math.inf, 0.0, upper_open=False)),
    "(-1, 1)": ("inside (-1, 1)", Range("(-1, 1)", -1.0, 1.0)),
    "(0, 1)": ("inside (0, 1)", Range("(0, 1)", 0.0, 1.0)),
}  # fmt: skip
_VALUES = {
    "zero": ("0 in this kernel, whose equations were derived for that", [0.0]),
    "unit": ("1 or -1 in this kernel, whose equations were derived for that", [-1.0, 1.0]),
}


def box_of(domain: str) -> tuple[float, float]:
    """Return the interval of the numbers of a domain."""
    if domain not in _DOMAINS:
        return -math.inf, math.inf
    _, interval = _DOMAINS[domain]
    return interval.lower, interval.upper


def column(name: str, values: object, domain: str) -> Array:
    """Return a number or a sequence of numbers as an array of floats of its own shape.

    Raises
    ------
    ParameterError
        If they are no numbers or outside the domain; the message names the first that is.
    """
    if isinstance(values, str | bytes | Mapping) or values is None:
        raise ParameterError(f"{name} must be a number or a sequence of numbers, got {values!r}")
    if not hasattr(values, "__array__") and isinstance(values, Iterable):
        values = list(values)
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "iufO" or any(isinstance(v, bool) for v in _objects(raw)):
            raise TypeError
        array = raw.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"{name} must be a number or a sequence of numbers, got {_short(values)}"
        ) from None
    if array.ndim > 1:
        raise ParameterError(
            f"{name} must be a number or one-dimensional, got an array of shape {array.shape}"
        )
    if array.ndim and not array.size:
        raise ParameterError(f"{name} must hold at least one number, such as [0.5, 1, 2]")
    if domain in _VALUES:
        words, values = _VALUES[domain]
        good = np.isin(array, values)
    else:
        words, interval = _DOMAINS[domain]
        good = interval.holds(array)
    if not good.all():
        bad = array if array.ndim == 0 else array[np.argmin(good)]
        raise ParameterError(f"{name} must be {words}, got {float(bad):g}")
    return array


def known_names(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse a name that is not known, listing those that are."""
    there = list(known)
    wrong = sorted((name for name in given if name not in there), key=str)
    if wrong:
        listed = ", ".join(there) or "none"
        raise ParameterError(f"no {what} is named {wrong[0]!r}; there are: {listed}")


def data_arrays(
    sets: Iterable[tuple[str, tuple[str, ...]]],
    domains: Mapping[str, str],
    data: object,
) -> dict[str, Array]:
    """Return each data set as rows of an array: weights that add up to one, then the columns.

    Parameters
    ----------
    sets : iterable of (str, tuple of str)
        Names and columns that the kernel has.
    domains : mapping from "set.column" to str
    data : mapping or None
        ``{"set": {"column": values, ...}}``; with a single set also its columns alone. A column
        ``weight`` weighs the rows, by default equally.
    """
    sets = tuple(sets)
    if not sets:
        if data is not None:
            raise ParameterError("data must be left out: the equations hold no average over data")
        return {}
    wanted = "; ".join(f"{name}: {', '.join(columns)}" for name, columns in sets)
    if not isinstance(data, Mapping):
        raise ParameterError(
            f"data must map the names of data sets to their columns ({wanted}), got {_short(data)}"
        )
    if len(sets) == 1 and sets[0][0] not in data:
        data = {sets[0][0]: data}
    known_names(data, [name for name, _ in sets], "data set")
    return {name: _rows(name, columns, domains, data.get(name)) for name, columns in sets}


def start_values(
    unknowns: tuple[str, ...],
    domains: Mapping[str, str],
    start: object,
    coordinates: Mapping[str, Coordinate],
) -> tuple[float, ...] | None:
    """Return first values of the unknowns, NaN where none is given; None if nothing is.

    Parameters
    ----------
    unknowns : tuple of str
        Of Newton's method.
    domains : mapping from str to str
    start : mapping, KernelSolution or None
    coordinates : mapping from str to Coordinate
        By the names of unknowns in whose place Newton's method moves a coordinate.
    """
    moved = {str(c.symbol): name for name, c in coordinates.items()}
    unknowns = tuple(moved.get(name, name) for name in unknowns)
    if start is None:
        return None
    if isinstance(start, KernelSolution):
        start = {name: start.values[name] for name in unknowns if name in start.values}
    if not isinstance(start, Mapping):
        raise ParameterError(f"start must map unknowns to numbers or be a solution, got {start!r}")
    known_names(start, unknowns, "unknown of Newton's method")
    found = dict.fromkeys(unknowns, math.nan)
    for name, value in start.items():
        number = column(f"start of {name}", value, domains.get(name, "real"))
        if number.ndim:
            raise ParameterError(f"start of {name} must be one number")
        found[name] = float(number)
        if name in coordinates:
            found[name] = float(coordinates[name].of(found[name]))
            if not found[name] > 0:
                raise ParameterError(
                    f"start of {name} must be inside {coordinates[name].domain}, got {value!r}"
                )
    return tuple(found.values())


def exact_data(
    sets: Iterable[tuple[str, tuple[str, ...]]], data: Any
) -> dict[str, list[list[Any]]]:
    """Return checked data exactly: weights and columns, floats as the decimals they print as."""
    import sympy as sp

    found = {}
    for name, columns in sets:
        table = data[name] if name in data else data
        values = [[exact_number(x) for x in np.ravel(table[c]).tolist()] for c in columns]
        weights = [sp.S.One] * len(values[0])
        if WEIGHT in table:
            weights = [exact_number(x) for x in np.ravel(table[WEIGHT]).tolist()]
        total = sp.Add(*weights)
        found[name] = [[w / total for w in weights], *values]
    return found


def _rows(name: str, columns: tuple[str, ...], domains: Mapping[str, str], table: Any) -> Array:
    if not isinstance(table, Mapping):
        raise ParameterError(
            f"data of {name!r} must map {', '.join(columns)} to sequences, got {_short(table)}"
        )
    missing = [c for c in columns if c not in table]
    if missing:
        raise ParameterError(f"data of {name!r} has no column {missing[0]!r}")
    known_names(table, [*columns, WEIGHT], f"column of the data {name!r}")
    found = [
        np.atleast_1d(
            column(f"column {c!r} of the data {name!r}", table[c], domains[f"{name}.{c}"])
        )
        for c in columns
    ]
    sizes = {c: len(values) for c, values in zip(columns, found, strict=True)}
    weights = np.ones(len(found[0]))
    if WEIGHT in table:
        place = f"column {WEIGHT!r} of the data {name!r}"
        weights = np.atleast_1d(column(place, table[WEIGHT], "nonnegative"))
        sizes[WEIGHT] = len(weights)
        if not 0 < weights.sum() < math.inf:
            raise ParameterError(f"{place} must have a positive, finite sum")
    if len(set(sizes.values())) > 1:
        raise ParameterError(f"columns of the data {name!r} must have one length, got {sizes}")
    return np.stack([weights / weights.sum(), *found])


def _objects(raw: NDArray[Any]) -> Iterable[Any]:
    return raw.ravel().tolist() if raw.dtype.kind == "O" else ()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


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
