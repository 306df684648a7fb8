"""Run a sweep: blocks of points in threads or an executor, stored as they finish, then joined."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...atomic_files import Temporary, remove_abandoned, replacing
from ...errors import ConvergenceError, MissingDependencyError, ParameterError
from ...labelled import labelled, meaning
from ...numeric.arguments import is_one_of, whole_number
from ...numeric.cache import FileCache
from ...numeric.continuation import put, solve_with_continuation
from ...numeric.first_values import middles, spread
from ...numeric.kernel_arrays import KernelArrays
from ...numeric.kernel_code import KernelCode, LoadedKernel
from ...numeric.saddle_point_solver import BatchSolution, solve_rows, unsolved_rows
from ...numeric.seed_store import SeedStore, store_folder
from .arguments import Block, Points

if TYPE_CHECKING:
    import xarray as xr

SUFFIXES = (".nc", ".zarr")


@dataclass(frozen=True)
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

    points: Points
    types: Mapping[str, str]
    meanings: Mapping[str, str]
    attributes: Mapping[str, Any]

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
        points = self.points
        return labelled(
            {name: (points.dimensions, a.reshape(points.shape)) for name, a in arrays.items()},
            coords=self.coordinates(),
            attrs=self.attributes,
            names=self.meanings,
        )


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


class FileSink(Sink):
    """A file that is written as results come, under another name until it is whole."""

    def __init__(self, template: Template, path: Path) -> None:
        self._path, self._temporary = path, Temporary(path)
        # Of coordinates that do not go with a dimension.
        places = template.coordinates().items()
        self._extra = " ".join(name for name, (d, _) in places if d != (name,))
        self._variables: dict[str, Any] = {}

    def write(self, block: Block, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._temporary.touch()
        for name, variable in self._variables.items():
            variable[block.box or ...] = arrays[name].reshape(block.shape)

    def discard(self) -> None:
        self._temporary.remove()


class NetcdfSink(FileSink):
    """A netCDF-4 file."""

    def __init__(self, template: Template, path: Path) -> None:
        import netCDF4

        super().__init__(template, path)
        self._open = False
        self._file = netCDF4.Dataset(str(self._temporary.path), "w", format="NETCDF4")
        self._open = True
        self._file.set_fill_off()
        for dimension, n in zip(template.points.dimensions, template.points.shape, strict=True):
            self._file.createDimension(dimension, n)
        for name, (dimensions, values) in template.coordinates().items():
            self._variable(name, "f8", dimensions, template)[...] = values
        for name, kind in template.types.items():
            dimensions = template.points.dimensions
            stored = "i1" if kind == "bool" else kind
            variable = self._variable(name, stored, dimensions, template)
            if kind == "bool":
                variable.setncattr("dtype", "bool")  # what xarray makes a bool of again
            if self._extra:
                variable.setncattr("coordinates", self._extra)
            self._variables[name] = variable
        self._file.setncatts(template.attributes)

    def _variable(
        self, name: str, kind: str, dimensions: tuple[str, ...], template: Template
    ) -> Any:
        variable = self._file.createVariable(name, kind, dimensions, fill_value=False)
        variable.set_auto_mask(False)
        variable.setncatts({"long_name": meaning(name, template.meanings), "units": "1"})
        return variable

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
        super().discard()


class ZarrSink(FileSink):
    """A Zarr folder, its chunks the blocks of the sweep."""

    def __init__(self, template: Template, path: Path, block: Block) -> None:
        import zarr

        super().__init__(template, path)
        # Format 2, which every reader of Zarr knows.
        group = zarr.open_group(str(self._temporary.path), mode="w", zarr_format=2)
        group.attrs.update(template.attributes)

        def array(name: str, kind: str, dimensions: tuple[str, ...], **how: Any) -> Any:
            # A fill value would make readers take zeros for missing.
            found = group.create_array(name, dtype=kind, compressors=None, fill_value=None, **how)
            found.attrs["_ARRAY_DIMENSIONS"] = list(dimensions)
            found.attrs.update(long_name=meaning(name, template.meanings), units="1")
            return found

        for name, (dimensions, values) in template.coordinates().items():
            shape = np.shape(values)
            array(name, "float64", dimensions, shape=shape, chunks=shape or "auto")[...] = values
        for name, kind in template.types.items():
            shape = template.points.shape
            variable = array(
                name, kind, template.points.dimensions, shape=shape, chunks=block.shape or "auto"
            )
            if self._extra:
                variable.attrs["coordinates"] = self._extra
            self._variables[name] = variable

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


Array = NDArray[np.float64]

# How many first values are tried where those of the equations lead nowhere.
_FIRST_VALUES = 16
# Steep integrands of Hopfield's model at low temperature are seen from here on.
_ROUGH_LEVEL = 2
# Tables of one set of their parameters take some 50 kB.
_MOST_TABLES = 2048


@dataclass(frozen=True)
class Job:
    """Solves rows; holds text and arrays only, so that it can be sent anywhere.

    Attributes
    ----------
    code : KernelCode
    folder : str
        Cache folder.
    data : tuple of (str, array)
        Data sets as rows: weights, columns.
    start : tuple of float or None
        First values of the unknowns, NaN where the kernel has its own.
    searched : tuple of (float, float)
        Intervals of the unknowns from all of which first values are taken where the kernel's own
        lead nowhere; empty if that is not wanted.
    rough : int or None
        On this rule of a level that sees most integrands, whose errors nobody estimates.
    rtol : float
    total : int
        Rows of the whole run; small runs are not compiled.
    keep : bool
        Rows whose tables cannot be computed count as failed; else the reason is raised.
    """

    code: KernelCode
    folder: str
    data: tuple[tuple[str, Array], ...]
    start: tuple[float, ...] | None
    rtol: float
    total: int
    keep: bool = False
    searched: tuple[tuple[float, float], ...] = ()
    rough: int | None = None

    def identity(self) -> dict[str, Any]:
        """Return what the results depend on besides the rows."""
        sources = (("tables", self.code.table_source), ("solver", self.code.plain_source))
        return {
            "kind": "kernel sweep",
            "code": data_digest(
                [(name, np.frombuffer(text.encode(), dtype=np.uint8)) for name, text in sources]
            ),
            "data": data_digest(self.data),
            "start": None if self.start is None else [repr(x) for x in self.start],
            "rtol": self.rtol,
        }

    def __call__(self, rows: Array, workers: int | None = 1) -> BatchSolution:
        """Solve for every row of parameters."""
        place = _workplace(self.code, self.folder)
        wanted = [self.code.parameters.index(name) for name in self.code.table_parameters]
        key = data_digest(self.data)
        groups = groups_of_rows(rows[:, wanted])
        parts = []
        for group in groups:
            table_values = tuple(rows[group[0], wanted].tolist()) if len(group) else ()
            arrays = place.arrays(table_values, key, self.data)
            if self.rough is not None:
                arrays = arrays.single(self.rough, _ROUGH_LEVEL)
            start = None
            if self.start is not None:
                start = np.tile(np.array(self.start), (len(group), 1))
            try:
                found = solve_rows(
                    place.kernel, arrays, rows[group], start=start, rtol=self.rtol,
                    workers=workers, total=self.total,
                )  # fmt: skip
                self._search(found, place.kernel, arrays, rows[group], workers)
            except ConvergenceError:
                if not self.keep:
                    raise
                found = _nothing(self.code, len(group))
            parts.append(found)
        return joined(parts, groups)

    def _search(
        self, found: BatchSolution, kernel: LoadedKernel, arrays: KernelArrays, rows: Array,
        workers: int | None,
    ) -> None:  # fmt: skip
        """Look for solutions of rows that have none yet: from afar, then from easier equations."""
        if found.converged.all():
            return
        lost = unsolved_rows(found)
        easier = self.code.easier
        if not len(lost) or not self.code.unknowns or not (self.searched or easier):
            return
        start = np.tile(
            np.full(len(self.code.unknowns), np.nan) if self.start is None else self.start,
            (len(lost), 1),
        )
        further: Array | tuple[()] = ()
        if self.searched:
            lower, upper = zip(*self.searched, strict=True)
            # Entries of a positive definite matrix are so in the middle, and seldom elsewhere.
            further = np.vstack([middles(lower, upper), spread(lower, upper, _FIRST_VALUES)])
        again = solve_with_continuation(
            kernel, arrays, rows[lost], start, easier,
            rtol=self.rtol, workers=workers, further=tuple(further),
        )  # fmt: skip
        again.iterations[:] += found.iterations[lost]
        better = again.converged
        put(found, lost[better], again, better)


class _Workplace:
    """A kernel that is loaded in this process, with tables that were made for it."""

    def __init__(self, code: KernelCode, folder: str) -> None:
        self.kernel: LoadedKernel = code.load(FileCache(folder))
        self._arrays: OrderedDict[object, KernelArrays] = OrderedDict()
        self._lock = threading.Lock()

    def arrays(
        self, table_values: tuple[float, ...], key: str, data: tuple[tuple[str, Array], ...]
    ) -> KernelArrays:
        wanted = (table_values, key)
        with self._lock:
            found = self._arrays.get(wanted)
            if found is None:
                found = KernelArrays(self.kernel, table_values, dict(data))
                self._arrays[wanted] = found
                if len(self._arrays) > _MOST_TABLES:
                    self._arrays.popitem(last=False)
            return found


@lru_cache(maxsize=16)
def _workplace(code: KernelCode, folder: str) -> _Workplace:
    return _Workplace(code, folder)


if hasattr(os, "register_at_fork"):
    # The lock of a workplace may be held by a thread that does not exist in the copy.
    os.register_at_fork(after_in_child=_workplace.cache_clear)


def data_digest(arrays: Sequence[tuple[str, NDArray[Any]]]) -> str:
    """Return a hash of named arrays."""
    digest = hashlib.sha256()
    for name, array in arrays:
        digest.update(f"{name} {array.shape} {array.dtype.str}\0".encode() + array.tobytes())
    return digest.hexdigest()


def _nothing(code: KernelCode, n: int) -> BatchSolution:
    unknown = np.full(n, np.nan)
    return BatchSolution(
        values=dict.fromkeys(code.solved, unknown),
        errors=dict.fromkeys(code.measured, np.full(n, np.inf)),
        iterations=np.zeros(n, dtype=np.int64),
        residual=unknown,
        nodes=np.zeros(n, dtype=np.int64),
        converged=np.zeros(n, dtype=bool),
    )


def groups_of_rows(rows: Array) -> list[NDArray[np.intp]]:
    """Return the numbers of rows that are equal, group by group."""
    # Sorting takes as long as solving, and most often there is nothing to sort.
    if not rows.shape[1] or len(rows) < 2 or (rows[1:] == rows[0]).all():
        return [np.arange(len(rows))]
    _, which = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(which, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(which[order])) + 1)


def joined(parts: Sequence[BatchSolution], groups: Sequence[NDArray[np.intp]]) -> BatchSolution:
    """Put results of groups of rows back into the order of the rows."""
    back = np.argsort(np.concatenate(groups), kind="stable")

    if len(parts) == 1:
        return parts[0]

    def columns(tables: list[Mapping[str, Array]]) -> dict[str, Array]:
        return {k: np.concatenate([t[k] for t in tables])[back] for k in tables[0]}

    return BatchSolution(
        values=columns([p.values for p in parts]),
        errors=columns([p.errors for p in parts]),
        iterations=np.concatenate([p.iterations for p in parts])[back],
        residual=np.concatenate([p.residual for p in parts])[back],
        nodes=np.concatenate([p.nodes for p in parts])[back],
        converged=np.concatenate([p.converged for p in parts])[back],
    )


# Raised whenever the same sweep gives other numbers, so that stored blocks do not mix.
_VERSION = 2
# Blocks under way for each worker: one to work at, one to go on with.
_WAITING = 2

Arrays = Mapping[str, NDArray[Any]]
Refusal = Callable[[NDArray[np.float64], BatchSolution], ConvergenceError]


class Work(Protocol):
    """What solves rows of parameters; is sent to where they are solved."""

    @property
    def keep(self) -> bool:
        """Whether rows that fail are NaN, or an error."""

    def identity(self) -> dict[str, Any]:
        """Return what the results depend on besides the rows, as plain values."""

    def __call__(self, rows: NDArray[np.float64]) -> BatchSolution:
        """Solve for every row of parameters."""


@dataclass(frozen=True)
class Variables:
    """Names of the variables of a sweep's results.

    Attributes
    ----------
    outputs : tuple of str
    errors : tuple of str
        Of the estimated errors of the outputs; of the first ones, if there are fewer.
    residual, iterations, converged : str
    """

    outputs: tuple[str, ...]
    errors: tuple[str, ...]
    residual: str
    iterations: str
    converged: str

    @classmethod
    def of(cls, outputs: Sequence[str], taken: Sequence[str]) -> Variables:
        """Choose names that no parameter and no output has."""
        used = {*outputs, *taken}

        def free(name: str) -> str:
            while name in used:
                name += "_"
            used.add(name)
            return name

        errors = tuple(free(f"{name}_error_estimate") for name in outputs)
        return cls(tuple(outputs), errors, free("residual"), free("iterations"), free("converged"))

    def types(self) -> dict[str, str]:
        """Return the NumPy type of each variable."""
        reals = (*self.outputs, *self.errors, self.residual)
        return {**dict.fromkeys(reals, "float64"), self.iterations: "int32", self.converged: "bool"}

    def meanings(self) -> dict[str, str]:
        """Return what the variables are, beyond the outputs."""
        pairs = zip(self.outputs, self.errors, strict=False)
        return {
            **{error: f"estimated absolute error of {name}" for name, error in pairs},
            self.residual: "largest relative residual of the equations",
            self.iterations: "Newton iterations",
            self.converged: "whether the equations are solved",
        }

    def arrays(self, found: BatchSolution) -> dict[str, NDArray[Any]]:
        """Sort solutions into variables; what has not converged becomes NaN."""
        bad = ~found.converged
        reals = {name: found.values[name] for name in self.outputs}
        if bad.any():
            reals = {name: np.where(bad, np.nan, column) for name, column in reals.items()}
        for name, error in zip(self.outputs, self.errors, strict=False):
            column = found.errors[name]
            reals[error] = np.where(bad, np.inf, column) if bad.any() else column
        return {
            **reals,
            self.residual: found.residual,
            self.iterations: found.iterations.astype(np.int32),
            self.converged: found.converged,
        }


@dataclass(frozen=True)
class Execution:
    """Where points are solved, and what becomes of them: options that all curves have, checked.

    Attributes
    ----------
    failures : {"raise", "keep"}
    workers : int or None
    executor : concurrent.futures.Executor or None
    progress : bool
    out, store : Path or None

    Raises
    ------
    ParameterError
        If one of them cannot be.
    """

    failures: str = "raise"
    workers: int | None = None
    executor: Executor | None = None
    progress: bool = True
    out: Any = None
    store: Any = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> tuple[Self, dict[str, Any]]:
        """Return the options among keywords, and the others."""
        names = given.keys() & {f.name for f in fields(cls)}
        rest = {name: value for name, value in given.items() if name not in names}
        return cls(**{name: given[name] for name in names}), rest

    def __post_init__(self) -> None:
        if not is_one_of(self.failures, ("raise", "keep")):
            raise ParameterError(f"failures must be 'raise' or 'keep', got {self.failures!r}")
        if self.workers is not None:
            object.__setattr__(self, "workers", whole_number("workers", self.workers))
        object.__setattr__(self, "out", None if self.out is None else checked_path(self.out))
        object.__setattr__(self, "store", store_folder(self.store))

    @property
    def keeps(self) -> bool:
        """Whether points without solution are NaN."""
        return self.failures == "keep"


Method = TypeVar("Method", bound=Callable[..., Any])


def with_execution(method: Method) -> Method:
    """Show the options of an :class:`Execution` among the keywords of a method.

    The method takes them with its free names, and separates them by :meth:`Execution.of`.
    """
    own = inspect.signature(method)
    *first, free = own.parameters.values()
    options = [
        inspect.Parameter(
            f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type
        )
        for f in fields(Execution)
    ]
    vars(method)["__signature__"] = own.replace(parameters=[*first, *options, free])
    return method


def run_sweep(
    job: Work,
    points: Points,
    variables: Variables,
    *,
    meanings: Mapping[str, str],
    attributes: Mapping[str, Any],
    execution: Execution,
    refuse: Refusal,
) -> xr.Dataset:
    """Solve at all points and return them as a data set.

    Parameters
    ----------
    job : Work
        Its `keep` says whether points that fail are NaN, or an error.
    points : Points
    variables : Variables
    meanings, attributes
        ``long_name`` of variables, and attributes of the data set.
    execution : Execution
    refuse : callable
        Takes parameters and solutions of points, some of which failed; returns the error.

    Raises
    ------
    ConvergenceError
        If a point fails that must not. Carries what was computed as `state`; nothing is written.
    """
    template = Template(points, variables.types(), {**variables.meanings(), **meanings}, attributes)
    blocks = points.blocks()
    store = execution.store
    finished = _Store(store, job, points, variables) if store is not None else None
    failures: dict[int, tuple[NDArray[np.float64], BatchSolution]] = {}
    bar = _Bar(len(points), execution.progress)
    results: Sink = sink(template, execution.out, blocks)
    with results, bar, _Pool(execution.executor, execution.workers, len(blocks)) as pool:

        def collect(index: int, arrays: Arrays) -> None:
            results.write(blocks[index], arrays)
            bar.advance(blocks[index].end - blocks[index].begin)

        def compute() -> Iterator[int]:
            for index, block in enumerate(blocks):
                known = finished.load(index, block) if finished else None
                if known is None:
                    yield index
                else:
                    collect(index, known)

        try:
            for index, found in pool.run(lambda i: (job, points, blocks[i]), compute()):
                arrays = variables.arrays(found)
                if not job.keep and not found.converged.all():
                    rows = points.rows(blocks[index].begin, blocks[index].end)
                    failures[index] = (rows, found)
                    if not isinstance(results, MemorySink):
                        break
                elif finished:
                    finished.save(index, arrays)
                collect(index, arrays)
        except KeyboardInterrupt:
            if finished is None:
                raise
            raise KeyboardInterrupt(
                f"after {bar.done} of {len(points)} points, which are kept in {store}: the same "
                "call goes on from there"
            ) from None
        if failures:
            error = refuse(*failures[min(failures)])
            count = sum(int((~found.converged).sum()) for _, found in failures.values())
            if isinstance(results, MemorySink) and execution.out is None:
                error.state = results.finish()
            raise ConvergenceError(
                f"{error}\n  in a sweep of {len(points)} points, {count} of which failed"
                f"{'' if isinstance(results, MemorySink) else ' so far'}; failures='keep' "
                "returns the others, with NaN where it failed",
                state=error.state,
                residual=error.residual,
            )
        return results.finish()


def _solve(task: tuple[Work, NDArray[np.float64]]) -> BatchSolution:
    job, rows = task
    return job(rows)


class _Pool:
    """The caller's executor, or threads of our own; only a few blocks are under way at a time."""

    def __init__(self, executor: Executor | None, workers: int | None, blocks: int) -> None:
        self._own = executor is None
        # One block needs no other thread, which would import SymPy for itself to be safe.
        self._alone = executor is None and blocks <= 1
        count = workers or min(max(blocks, 1), os.cpu_count() or 1)
        self._executor = executor or ThreadPoolExecutor(count, thread_name_prefix="giantstep")
        # An executor of the caller does not say how many workers it has.
        known = getattr(self._executor, "_max_workers", None)
        self._limit = _WAITING * max(known or 0, count, os.cpu_count() or 1)

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._own:
            self._executor.shutdown(cancel_futures=True)

    def run(
        self, task: Callable[[int], tuple[Work, Points, Block]], indices: Iterator[int]
    ) -> Iterator[tuple[int, BatchSolution]]:
        """Yield the number and the result of each block, in the order of completion."""
        if self._alone:
            for only in indices:
                job, points, block = task(only)
                yield only, job(points.rows(block.begin, block.end))
            return
        under_way: dict[Future[BatchSolution], int] = {}
        try:
            more = True
            while more or under_way:
                while more and len(under_way) < self._limit:
                    index = next(indices, None)
                    if index is None:
                        more = False
                        break
                    job, points, block = task(index)
                    rows = points.rows(block.begin, block.end)
                    under_way[self._executor.submit(_solve, (job, rows))] = index
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                # What succeeded first: after a failure nothing more is taken.
                for future in sorted(done, key=lambda f: f.exception() is not None):
                    yield under_way.pop(future), future.result()
        finally:
            for future in under_way:
                future.cancel()


class _Store:
    """Finished blocks on disk."""

    def __init__(self, folder: Path, job: Work, points: Points, variables: Variables) -> None:
        self._folder, self._types = folder, variables.types()
        self._key = {
            **job.identity(),
            "version": _VERSION,
            "axes": data_digest(list(points.axes.items())),
            "fixed": dict(points.fixed),
            "product": points.product,
            "variables": list(self._types),
        }

    def _seeds(self, n: int) -> SeedStore:
        return SeedStore(self._folder, self._key, dict.fromkeys(self._types, (n,)))

    def load(self, index: int, block: Block) -> dict[str, NDArray[Any]] | None:
        found = self._seeds(block.end - block.begin).load(index)
        if found is None:
            return None
        return {name: found[name].astype(kind) for name, kind in self._types.items()}

    def save(self, index: int, arrays: Arrays) -> None:
        n = len(next(iter(arrays.values())))
        self._seeds(n).save(index, {name: a.astype(float) for name, a in arrays.items()})


class _Bar:
    """A progress bar that appears after a second; importing it takes a while, too."""

    def __init__(self, total: int, wanted: bool) -> None:
        self._total, self._wanted = total, wanted
        self.done = 0
        self._began = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, points: int) -> None:
        self.done += points
        if self._bar is None and self._wanted and time.monotonic() > self._began + 1:
            from tqdm.auto import tqdm

            self._bar = tqdm(
                desc="sweep", total=self._total, unit="point", unit_scale=True, leave=False
            )
        if self._bar is not None:
            self._bar.update(self.done - self._bar.n)
