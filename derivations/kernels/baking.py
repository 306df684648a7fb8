"""Tables of fixed parameters as numbers, for kernels that carry them along."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ParameterError
from ...numeric.cache import FileCache
from ...numeric.kernel_arrays import KernelArrays
from ...numeric.kernel_code import LoadedKernel
from ...symbolic.lowering.driver import BakedTables
from ...symbolic.lowering.lowered import LoweredSystem
from .arguments import column, known_names

if TYPE_CHECKING:
    from .kernel import Kernel

# A file cannot refine its tables, so they are finer than the first that a solve would try.
_LEVEL = 1


def wanted_tables(kernel: Kernel, tables: str, values: Mapping[str, Any]) -> BakedTables | None:
    """Return the tables that a file is to hold; None if it computes them itself.

    Raises
    ------
    ParameterError
        If values are missing, unknown or outside their domains.
    """
    if tables == "computed":
        if values:
            raise ParameterError(
                f"{', '.join(values)} can be given only with tables='baked'; files that "
                "compute tables take all parameters when they run"
            )
        return None
    if tables != "baked":
        raise ParameterError(f"tables must be 'computed' or 'baked', got {tables!r}")
    lowered = kernel.lowered
    names = [lowered.identifiers[p] for p in lowered.table_parameters]
    known_names(values, names, "parameter of the tables")
    given = {**kernel.defaults, **values}
    missing = [name for name in names if name not in given]
    if missing:
        raise ParameterError(f"baked tables need the value of {', '.join(missing)}")
    columns = {name: column(name, given[name], kernel.domains[name]) for name in names}
    wrong = [name for name, value in columns.items() if value.ndim]
    if wrong:
        raise ParameterError(f"{wrong[0]} must be one number: baked tables are those of one")
    for name, tie in kernel.ties.items():
        if tie.source in columns and (tie.source in values or name not in given):
            with np.errstate(invalid="ignore"):
                given[name] = tie.function(columns[tie.source], np.sqrt)
            if np.isnan(given[name]).any():
                raise ParameterError(f"{tie.source} is outside its range: {name} follows from it")
    loaded = kernel.code.load(FileCache(kernel.cache_folder))
    held = {name: float(columns[name]) for name in names}
    return baked_tables(loaded, lowered, {**given, **held}, names)


def baked_tables(
    kernel: LoadedKernel,
    lowered: LoweredSystem,
    values: Mapping[str, float],
    held: Iterable[str] | None = None,
) -> BakedTables:
    """Return tables on three rules.

    Parameters
    ----------
    kernel : LoadedKernel
    lowered : LoweredSystem
    values : mapping from str to float
        All parameters that the tables depend on.
    held : iterable of str, optional
        Those that the file holds with its tables; default: all.

    Raises
    ------
    ParameterError
        If the kernel has no tables.
    """
    if kernel.tables is None:
        raise ParameterError(
            "tables='baked' needs averages over fixed nodes, and this kernel has none; leave it out"
        )
    # The tables do not depend on a parameter of theirs that has no value here.
    arrays = KernelArrays(kernel, [values.get(name, 1.0) for name in kernel.table_parameters])
    names = ("weight", *map(str, lowered.program.tables))
    levels = tuple(
        {name: tuple(row.tolist()) for name, row in zip(names, rule, strict=True)}
        for rule in arrays[_LEVEL][:3]
    )
    return BakedTables(
        parameters=dict(values) if held is None else {name: values[name] for name in held},
        levels=levels,
    )
