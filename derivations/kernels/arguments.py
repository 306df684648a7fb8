"""What users give to a kernel, checked against what its symbols were declared to be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from .solution import KernelSolution

if TYPE_CHECKING:
    from ...symbolic.saddle_point import Coordinate

Array = NDArray[np.float64]

WEIGHT = "weight"

_DOMAINS = {
    "real": lambda x: np.isfinite(x),
    "positive": lambda x: (x > 0) & (x < math.inf),
    "extended positive": lambda x: x > 0,
    "negative": lambda x: (x < 0) & (x > -math.inf),
    "nonnegative": lambda x: (x >= 0) & (x < math.inf),
    "nonpositive": lambda x: (x <= 0) & (x > -math.inf),
    "(-1, 1)": lambda x: np.abs(x) < 1,
    "(0, 1)": lambda x: (x > 0) & (x < 1),
    "zero": lambda x: x == 0,
    "unit": lambda x: np.abs(x) == 1,
}
_WORDS = {
    "real": "a finite number",
    "positive": "positive and finite",
    "extended positive": "positive (inf is allowed)",
    "negative": "negative and finite",
    "nonnegative": ">= 0 and finite",
    "nonpositive": "<= 0 and finite",
    "(-1, 1)": "inside (-1, 1)",
    "(0, 1)": "inside (0, 1)",
    "zero": "0 in this kernel, whose equations were derived for that",
    "unit": "1 or -1 in this kernel, whose equations were derived for that",
}


_BOXES = {
    "positive": (0.0, math.inf),
    "extended positive": (0.0, math.inf),
    "nonnegative": (0.0, math.inf),
    "negative": (-math.inf, 0.0),
    "nonpositive": (-math.inf, 0.0),
    "(-1, 1)": (-1.0, 1.0),
    "(0, 1)": (0.0, 1.0),
}


def box_of(domain: str) -> tuple[float, float]:
    """Return the interval of the numbers of a domain."""
    return _BOXES.get(domain, (-math.inf, math.inf))


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
    with np.errstate(invalid="ignore"):
        good = _DOMAINS[domain](array)
    if not good.all():
        bad = array if array.ndim == 0 else array[np.argmin(good)]
        raise ParameterError(f"{name} must be {_WORDS[domain]}, got {float(bad):g}")
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

    from .precise import exact_number

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
