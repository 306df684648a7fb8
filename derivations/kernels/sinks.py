"""Where the results of a sweep go: arrays in memory, a netCDF file or a Zarr folder.

Files are filled block by block, so that memory does not limit them, under another name beside the
final one, and renamed when they are whole.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ...atomic_files import Temporary, remove_abandoned, replacing
from ...errors import MissingDependencyError, ParameterError
from .points import Block, Points

if TYPE_CHECKING:
    import xarray as xr

SUFFIXES = (".nc", ".zarr")


class Template:
    """Names, types and attributes of the variables of a sweep.

    Attributes
    ----------
    points : Points
    types : mapping from str to str
        NumPy type of each variable.
    meanings : mapping from str to str
        Attribute ``long_name`` of variables and parameters.
    attributes : mapping
        Of the data set.
    """

    def __init__(
        self,
        points: Points,
        types: Mapping[str, str],
        meanings: Mapping[str, str],
        attributes: Mapping[str, Any],
    ) -> None:
        self.points = points
        self.types = dict(types)
        self.meanings = dict(meanings)
        self.attributes = dict(attributes)

    def coordinates(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        """Return dimensions and values of all parameters."""
        points = self.points
        found: dict[str, tuple[tuple[str, ...], Any]] = {
            name: ((name,) if points.product else points.dimensions, axis)
            for name, axis in points.axes.items()
        }
        return found | {name: ((), np.float64(v)) for name, v in points.fixed.items()}

    def dataset(self, arrays: Mapping[str, NDArray[Any]]) -> xr.Dataset:
        """Return arrays of the shape of the points as a labelled data set."""
        import xarray as xr

        points = self.points
        found = xr.Dataset(
            {name: (points.dimensions, a.reshape(points.shape)) for name, a in arrays.items()},
            coords=self.coordinates(),
            attrs=self.attributes,
        )
        for name, meaning in self.meanings.items():
            if name in found.variables:
                found[name].attrs["long_name"] = meaning
        return found


class Sink(ABC):
    """Receives the blocks of a sweep in any order; a context that cleans up what is not whole."""

    @abstractmethod
    def write(self, block: Block, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the results of a block, in the order of its points."""

    @abstractmethod
    def finish(self) -> xr.Dataset:
        """Return everything; a file then stands under its final name."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.discard()

    @abstractmethod
    def discard(self) -> None:
        """Remove what was left unfinished."""


class MemorySink(Sink):
    """Arrays in memory, and a file made of them at the end if a path is given."""

    def __init__(self, template: Template, path: Path | None = None) -> None:
        self._template, self._path = template, path
        n = len(template.points)
        try:
            self._arrays = {name: np.empty(n, dtype=t) for name, t in template.types.items()}
        except MemoryError:
            size = n * sum(np.dtype(t).itemsize for t in template.types.values())
            raise ParameterError(
                f"{n} points need {size / 1e9:.0f} GB, more than there is; write them to a file "
                "with out='sweep.nc' or out='sweep.zarr', or choose fewer variables with outputs="
            ) from None

    def write(self, block: Block, arrays: Mapping[str, NDArray[Any]]) -> None:
        for name, array in self._arrays.items():
            array[block.begin : block.end] = arrays[name]

    def finish(self) -> xr.Dataset:
        found = self._template.dataset(self._arrays)
        if self._path is not None:
            with replacing(self._path) as temporary:
                found.to_netcdf(temporary)
        return found

    def discard(self) -> None:
        self._arrays = {}


class NetcdfSink(Sink):
    """A netCDF-4 file, written as results come."""

    def __init__(self, template: Template, path: Path) -> None:
        import netCDF4

        self._path, self._temporary = path, Temporary(path)
        self._open = False
        self._file = netCDF4.Dataset(str(self._temporary.path), "w", format="NETCDF4")
        self._open = True
        self._file.set_fill_off()
        for dimension, n in zip(template.points.dimensions, template.points.shape, strict=True):
            self._file.createDimension(dimension, n)
        for name, (dimensions, values) in template.coordinates().items():
            self._variable(name, "f8", dimensions, template)[...] = values
        extra = " ".join(n for n, (d, _) in template.coordinates().items() if d != (n,))
        self._variables = {}
        for name, kind in template.types.items():
            dimensions = template.points.dimensions
            stored = "i1" if kind == "bool" else kind
            variable = self._variable(name, stored, dimensions, template)
            if kind == "bool":
                variable.setncattr("dtype", "bool")  # what xarray makes a bool of again
            if extra:
                variable.setncattr("coordinates", extra)
            self._variables[name] = variable
        self._file.setncatts(template.attributes)

    def _variable(
        self, name: str, kind: str, dimensions: tuple[str, ...], template: Template
    ) -> Any:
        variable = self._file.createVariable(name, kind, dimensions, fill_value=False)
        variable.set_auto_mask(False)
        if name in template.meanings:
            variable.setncattr("long_name", template.meanings[name])
        return variable

    def write(self, block: Block, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._temporary.touch()
        for name, variable in self._variables.items():
            variable[block.box or ...] = arrays[name].reshape(block.shape)

    def finish(self) -> xr.Dataset:
        import xarray as xr

        self._close()
        os.replace(self._temporary.path, self._path)
        return xr.open_dataset(self._path, engine="netcdf4")

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._file.close()

    def discard(self) -> None:
        self._close()
        self._temporary.remove()


class ZarrSink(Sink):
    """A Zarr folder, its chunks the blocks of the sweep."""

    def __init__(self, template: Template, path: Path, block: Block) -> None:
        import zarr

        self._path, self._temporary = path, Temporary(path)
        # Format 2, which every reader of Zarr knows.
        group = zarr.open_group(str(self._temporary.path), mode="w", zarr_format=2)
        group.attrs.update(template.attributes)
        coordinates = template.coordinates()
        extra = " ".join(name for name, (d, _) in coordinates.items() if d != (name,))

        def array(name: str, kind: str, dimensions: tuple[str, ...], **how: Any) -> Any:
            # A fill value would make readers take zeros for missing.
            found = group.create_array(name, dtype=kind, compressors=None, fill_value=None, **how)
            found.attrs["_ARRAY_DIMENSIONS"] = list(dimensions)
            if name in template.meanings:
                found.attrs["long_name"] = template.meanings[name]
            return found

        for name, (dimensions, values) in coordinates.items():
            shape = np.shape(values)
            array(name, "float64", dimensions, shape=shape, chunks=shape or "auto")[...] = values
        self._variables = {}
        for name, kind in template.types.items():
            shape = template.points.shape
            variable = array(
                name, kind, template.points.dimensions, shape=shape, chunks=block.shape or "auto"
            )
            if extra:
                variable.attrs["coordinates"] = extra
            self._variables[name] = variable

    def write(self, block: Block, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._temporary.touch()
        for name, variable in self._variables.items():
            variable[block.box or ...] = arrays[name].reshape(block.shape)

    def finish(self) -> xr.Dataset:
        import xarray as xr
        import zarr

        zarr.consolidate_metadata(str(self._temporary.path), zarr_format=2)
        old = Temporary(self._path)
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._path, old.path)
        os.rename(self._temporary.path, self._path)
        old.remove()
        return xr.open_zarr(self._path, chunks=None)

    def discard(self) -> None:
        self._temporary.remove()


def checked_path(out: str | os.PathLike[str]) -> Path:
    """Return the path of a file to be written, or refuse it before anything is computed.

    Raises
    ------
    ParameterError
        If its suffix names no format or its folder cannot be written.
    MissingDependencyError
        If the format needs a package that is not there.
    """
    path = Path(out).expanduser()
    if path.suffix not in SUFFIXES:
        raise ParameterError(f"out must end in {' or '.join(SUFFIXES)}, got {str(out)!r}")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ParameterError(f"out: the folder {str(path.parent)!r} cannot be written")
    if path.suffix == ".nc" and path.is_dir():
        raise ParameterError(f"out: {str(path)!r} is a folder")
    if path.suffix == ".zarr":
        if path.exists() and not (path.is_dir() and _is_zarr(path)):
            raise ParameterError(f"out: {str(path)!r} exists and is no Zarr folder")
        try:
            import zarr  # noqa: F401
        except ImportError:
            raise MissingDependencyError(
                "out='….zarr' needs the package zarr: pip install 'giantstep[sweep]', "
                "or write a '.nc' file"
            ) from None
    return path


def sink(template: Template, path: Path | None, blocks: list[Block]) -> Sink:
    """Return where results go: memory, or the file at `path`."""
    if path is None:
        return MemorySink(template)
    # A sweep that was killed may have left a file of any size.
    remove_abandoned(path.parent)
    if path.suffix == ".zarr":
        return ZarrSink(template, path, blocks[0])
    try:
        import netCDF4  # noqa: F401
    except ImportError:
        # SciPy writes netCDF-3, which has to be whole in memory first.
        return MemorySink(template, path)
    return NetcdfSink(template, path)


def _is_zarr(path: Path) -> bool:
    return any((path / name).exists() for name in (".zgroup", "zarr.json", ".zmetadata"))
