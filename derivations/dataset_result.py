"""Results that are labelled arrays: curves of models and what networks measured."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..labelled import described
from ..pages import Block, Table, latex_text
from ..pictures import Bars, Picture
from ..result import Result, latex_number
from .curve_figure import plot_simulation

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]

# Rows of a table, from both ends of longer arrays.
_SHOWN = 12
_MEAN, _ERROR = "_mean", "_standard_error"
# Entries of an array that a page lists; larger ones are told by their shape.
_LISTED = 12
_ERRORS = ("test_error", "training_error")
_LETTERS = {"alpha": "α", "ridge": "λ", "ridge_used": "λ"}
# What readouts give beside errors.
_BESIDE = ("test_loss", "training_loss", "objective", "certificate", "ridge_used")


@dataclass(frozen=True, eq=False, repr=False)
class DatasetResult(Result):
    """A result whose numbers are the variables of a dataset.

    ``found["test_error"]`` or ``found.test_error`` is one of its arrays; whatever else a dataset
    has, such as ``found.sizes`` and ``found.sel(...)``, is found as well.

    Attributes
    ----------
    dataset : xarray.Dataset
    """

    _needed: ClassVar[tuple[str, ...]] = ()
    """Attributes without which a dataset is another one."""

    dataset: xr.Dataset

    def __post_init__(self) -> None:
        described(self.dataset)

    def __eq__(self, other: object) -> bool:
        """Tell whether another result has the same arrays and attributes."""
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.dataset.identical(other.dataset))

    def __hash__(self) -> int:
        return hash((type(self), tuple(map(str, self.dataset.variables))))

    def to_dataset(self) -> xr.Dataset:
        """Return the labelled arrays, which save with ``to_netcdf``."""
        return self.dataset

    def __getitem__(self, name: str) -> Any:
        """Return one output, or the values of one parameter."""
        if not isinstance(name, str):
            raise TypeError(f"name one output, got {name!r}; to_dataset() takes lists")
        if name not in self.dataset.variables:
            raise KeyError(f"{name!r}; there are: {', '.join(map(str, self.dataset.variables))}")
        return self.dataset[name]

    def __contains__(self, name: str) -> bool:
        return name in self.dataset

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the outputs, as datasets do."""
        return map(str, self.dataset.data_vars)

    def __getattr__(self, name: str) -> Any:
        dataset = self.__dict__.get("dataset")
        if dataset is not None and name in dataset.variables:
            return dataset[name]
        if dataset is not None and not name.startswith("_") and name not in dataset.attrs:
            known = getattr(type(dataset), name, None)
            if known is not None:
                return getattr(dataset, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _table(self, names: Sequence[str], like: str, texts: Callable[[str], list[str]]) -> Table:
        """Return columns over the axes of one of them, from both ends of long ones."""
        count, half = self.dataset[like].size, _SHOWN // 2
        columns = [texts(name) for name in names]
        some = range(count) if count <= _SHOWN else [*range(half), *range(count - half, count)]
        rows = [tuple(str(values[i]) for values in columns) for i in some]
        if count > _SHOWN:
            rows.insert(half, tuple("…" for _ in names))
        return Table(rows, [name.replace("_", " ") for name in names])

    def _flat(self, name: str, like: str) -> Array:
        """Return an array over all points of another one."""
        first = self.dataset[like]
        return np.asarray(self.dataset[name].broadcast_like(first).transpose(*first.dims)).ravel()

    def latex(self) -> str:
        """Return the first table of the page as an array of LaTeX, without delimiters."""
        table = next((block for block in self.page() if isinstance(block, Table)), Table([]))
        rows = [[latex_text(heading) for heading in table.headings]] if table.headings else []
        rows += [[_latex_cell(x) for x in row] for row in table.rows]
        width = max(map(len, rows), default=1)
        body = r" \\ ".join(" & ".join(row) for row in rows)
        return rf"\begin{{array}}{{{'r' * width}}}{body}\end{{array}}"

    def to_dict(self) -> dict[str, Any]:
        """Return the dataset as plain values."""
        # In the order in which they are read back.
        names = (*self.dataset.coords, *self.dataset.data_vars)
        types = {str(name): str(self.dataset[name].dtype) for name in names}
        document = self.dataset.to_dict()
        document["dims"] = dict(sorted(document["dims"].items()))
        return {"dataset": _finite_texts(document), "types": types}

    def _fields(self) -> dict[str, Any]:
        return self.to_dict()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the result that :meth:`to_dict` wrote.

        Raises
        ------
        ParameterError
            If the values are no such result.
        """
        import xarray as xr

        try:
            if not isinstance(values, Mapping):
                raise TypeError(f"it must hold fields by name, got {values!r}")
            for name in ("dataset", "types"):
                if not isinstance(values.get(name), Mapping):
                    raise ValueError(f"field {name!r} is missing, or no mapping")
            if unknown := [name for name in values if name not in ("dataset", "types")]:
                raise ValueError(f"no field is named {unknown[0]!r}")
            types, read = values["types"], xr.Dataset.from_dict(dict(values["dataset"]))
            columns, coordinates = (
                {name: x.astype(types[name]) for name, x in part.items()}
                for part in (read.data_vars, read.coords)
            )
            found = xr.Dataset(columns, coordinates, read.attrs)
            if missing := [name for name in cls._needed if name not in found.attrs]:
                raise ValueError(f"attribute {missing[0]!r} is missing")
            result = cls(found)
            result._check()
            return result
        except (KeyError, TypeError, ValueError) as error:
            raise ParameterError(
                f"the content is no {cls._document} written by to_json: {error}"
            ) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file: netCDF for a path that ends in .nc, else JSON."""
        if os.fspath(path).endswith(".nc"):
            self.dataset.to_netcdf(path)
        else:
            super().save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the result that :meth:`save` wrote.

        Raises
        ------
        ParameterError
            If the file cannot be read or holds something else.
        """
        if not os.fspath(path).endswith(".nc"):
            return super().load(path)
        import xarray as xr

        try:
            found = cls(xr.load_dataset(path))
            missing = [name for name in cls._needed if name not in found.dataset.attrs]
            if not missing:
                found._check()
        except FileNotFoundError:
            raise ParameterError(f"there is no file {os.fspath(path)!r}") from None
        except (OSError, ValueError) as error:
            kind = cls._document.rpartition(" ")[2]
            raise ParameterError(f"{os.fspath(path)!r} is not a saved {kind}: {error}") from None
        if missing:
            raise ParameterError(f"{os.fspath(path)!r} has no attribute {missing[0]!r}")
        return found

    def _check(self) -> None:
        """Refuse a dataset that has not what it says, by a ValueError."""


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(DatasetResult):
    """What networks of finite size measured: means with standard errors, and every network."""

    _document = "simulation"

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        about = self.dataset.attrs
        if "rests_on" in about:
            return str(about["rests_on"])
        count, size = self.dataset.sizes.get("seed", 0), about.get("dimension")
        of = "" if size is None else f" of d = {size}"
        if count == 1:
            return f"Simulation: one network{of}, so without a standard error."
        return f"Simulation: mean and standard error of {count} networks{of}."

    @property
    def _means(self) -> dict[str, tuple[Array, Array]]:
        """Means and standard errors by quantity."""
        data = self.dataset
        names = [str(x) for x in data.data_vars if str(x).endswith(_ERROR)]
        return {
            (x := name.removesuffix(_ERROR)): (self._mean(x).to_numpy(), data[name].to_numpy())
            for name in names
        }

    def _mean(self, name: str) -> xr.DataArray:
        return self.dataset[f"{name}{_MEAN}" if f"{name}{_MEAN}" in self.dataset else name]

    def page(self) -> Iterable[Block]:
        """Return tables of means with standard errors."""
        means = self._means
        shown = [x for x in _ERRORS if x in means and means[x][0].size]
        shown = shown or [x for x in means if means[x][0].ndim == 1][:4]
        like = str(self._mean(shown[0]).name) if shown else ""
        axes = [str(x) for x in self.dataset[like].dims] if shown else []
        table = [x for x in shown if list(self._mean(x).dims) == axes]
        if axes:

            def texts(name: str) -> list[str]:
                if name in means:
                    pairs = zip(*(x.ravel() for x in means[name]), strict=True)
                    return [mean_text(float(a), float(b)) for a, b in pairs]
                return [f"{float(x):.6g}" for x in self._flat(name, like)]

            heads = [x for x in axes if x in self.dataset.coords]
            if "ridge" not in heads and f"ridge_used{_MEAN}" in self.dataset:
                heads.append("ridge_used")
            shown_as = [_LETTERS.get(x, x.replace("_", " ")) for x in (*heads, *table)]
            yield replace(self._table([*heads, *table], like, texts), headings=shown_as)
        else:
            table = []
        rest, large = [], []
        for name, (mean, error) in means.items():
            if name in table or name in _BESIDE:
                continue
            if mean.size > _LISTED:
                large.append(f"{name} {mean.shape}")
                continue
            rest += [
                (self._label(name, index), mean_text(float(mean[index]), float(error[index])))
                for index in np.ndindex(mean.shape)
            ]
        if rest:
            yield Table(rest)
        if large:
            yield f"Arrays: {', '.join(large)}"
        yield self.rests_on

    def _label(self, name: str, index: tuple[int, ...]) -> str:
        array, words = self._mean(name), name.replace("_", " ")
        parts = [
            f"{axis} {float(self.dataset[axis][i]):g}" if axis in array.coords else f"{axis} {i}"
            for axis, i in zip(array.dims, index, strict=True)
        ]
        return f"{words} ({', '.join(parts)})" if parts else words

    def picture(self) -> Picture:
        """Return the means that are numbers as bars with their standard errors."""
        means = {x: pair for x, pair in self._means.items() if not pair[0].ndim}
        numbers = {x.replace("_", " "): (float(a), float(b)) for x, (a, b) in means.items()}
        return Bars(numbers, "mean over networks")

    def plot(self, *, ax: Any = None, **style: Any) -> Any:
        """Draw the means with standard errors; see :meth:`.Drawn.plot`."""
        for name in (*_ERRORS, *self._means):
            if name in self._means and self._mean(name).ndim == 1:
                return plot_simulation(self.dataset, name, ax=ax, **style)
        return super().plot(ax=ax, **style)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {n}" for name, n in self.dataset.sizes.items())
        return f"{type(self).__name__}({sizes}; {', '.join(self._means)})"


def mean_text(mean: float, error: float) -> str:
    """Return a mean to the second digit of its standard error."""
    if not 0 < error < math.inf:
        return f"{mean:.6g}"
    decimals = 1 - math.floor(math.log10(error))
    if not -4 <= decimals <= 8:
        return f"{mean:.6g} ± {error:.2g}"
    return f"{round(mean, decimals):.{max(decimals, 0)}f} ± {error:.{max(decimals, 0)}f}"


def _latex_cell(text: str) -> str:
    if text == "…":
        return r"\dots"
    return latex_number(text) if text[:1] in "-−0123456789in" else latex_text(text)


def _finite_texts(value: Any) -> Any:
    """Return plain values in which numbers that JSON does not know are texts."""
    if isinstance(value, dict):
        return {str(k): _finite_texts(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite_texts(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value
