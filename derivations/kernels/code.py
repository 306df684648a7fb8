"""The generated sources of a lowered system, with its tables as numbers where a file holds them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from ...errors import GiantstepError, ParameterError
from ...numeric.cache import FileCache
from ...numeric.kernel_arrays import KernelArrays
from ...numeric.kernel_code import KernelCode, LoadedKernel, Range
from ...symbolic.lowering.documentation import domain_of, example_of
from ...symbolic.lowering.driver import BakedTables
from ...symbolic.lowering.languages.vectors import Vectors
from ...symbolic.lowering.lowered import LoweredSystem
from ...symbolic.lowering.measures import width_source
from ...symbolic.lowering.solver import solver_twins
from ...symbolic.lowering.tables import table_source
from .arguments import column, known_names

if TYPE_CHECKING:
    from .kernel import Kernel


def kernel_code(lowered: LoweredSystem) -> KernelCode:
    """Print tables and solver of a lowered system.

    Raises
    ------
    EmissionError
        If something in the system has no meaning in the generated code.
    """
    program = lowered.program
    identifiers = lowered.identifiers
    # Expectations that were given names on the way are nobody's business.
    results = (*lowered.system.outputs, *(identifiers[x] for x in lowered.stated.unknowns))
    tables = ""
    if program.tables:
        tables = table_source(
            lowered.definitions,
            node=lowered.node,
            identifiers=identifiers,
            parameters=lowered.table_parameters,
            product=lowered.product,
        )
    compiled, plain = solver_twins(program)
    return KernelCode(
        table_source=tables,
        solver_source=compiled,
        plain_source=plain,
        parameters=tuple(map(str, program.parameters)),
        table_parameters=tuple(identifiers[p] for p in lowered.table_parameters),
        names=tuple(map(str, program.tables[1 + len(program.inner_nodes) :])),
        outputs=tuple(map(str, program.outputs)),
        results=results,
        measured=results,
        even=program.even,
        unknowns=tuple(map(str, program.newton_unknowns)),
        panels=program.has_panels,
        data=tuple((d.name, d.given_names) for d in program.data),
        moving=program.moving,
        width_source=width_source(lowered),
        unknown_results=tuple(identifiers[x] for x in lowered.system.unknowns),
        inner_nodes=tuple(map(str, program.inner_nodes)),
        ranges=tuple(
            Range(
                identifiers[x], float(d.start), float(d.end), bool(d.left_open), bool(d.right_open)
            )
            for x, d in lowered.stated.domains.items()
        ),
        conditions=tuple(
            str(x.xreplace({s: sp.Symbol(name) for s, name in identifiers.items()}))
            for x in lowered.stated.conditions
        ),
        easier=None if lowered.system.easier is None else identifiers[lowered.system.easier],
    )


def parameter_domains(lowered: LoweredSystem) -> dict[str, str]:
    """Return which numbers parameters, unknowns and columns of data may be."""
    program = lowered.program
    symbols = (*program.parameters, *program.newton_unknowns)
    domains = {str(x): domain_of(x) for x in symbols}
    for data in program.data:
        for name, x in zip(data.given_names, data.columns, strict=True):
            domains[f"{data.name}.{name}"] = domain_of(x)
    return domains


def latex_names(lowered: LoweredSystem) -> dict[str, str]:
    """Return the LaTeX of parameters and unknowns by their names in code."""
    system = lowered.system
    return {lowered.identifiers[x]: sp.latex(x) for x in (*system.parameters, *system.unknowns)}


@contextmanager
def deriving(what: str, steps: int) -> Iterator[Callable[[], object]]:
    """Show on terminals and in notebooks what is derived, on stderr.

    Parameters
    ----------
    what : str
        The object of "deriving the equations of".
    steps : int
        How many there are; the function that is yielded is called after each but the last.

    Yields
    ------
    callable
        Says that one more step is done.
    """
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    text = f"deriving the equations of {what}"
    with tqdm(total=steps, desc=text, unit="step", leave=False, disable=None) as bar:
        yield bar.update


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


# Near one; exact in binary and as short decimals, which languages of many digits read.
_FACTORS = (1.0, 0.75, 1.25, 1.5, 0.875)
_POINTS = 3


def known_results(kernel: Kernel, tables: BakedTables | None = None) -> Vectors | None:
    """Return the kernel's own solutions at up to three points, for self-checks of files.

    Parameters
    ----------
    kernel : Kernel
    tables : BakedTables, optional
        Tables that the file holds; their parameters have the values of these.

    Returns
    -------
    Vectors or None
        None if the equations have no solution at any point that was tried.
    """
    program = kernel.lowered.program
    held = {} if tables is None else dict(tables.parameters)
    names = [str(p) for p in program.parameters]
    typical = {
        str(p): _rounded(kernel.defaults.get(str(p))) or example_of(p) for p in program.parameters
    }
    data = {
        d.name: {
            name: [f * example_of(x) for f in (0.5, 1.0, 1.5)]
            for name, x in zip(d.given_names, d.columns, strict=True)
        }
        for d in program.data
    }
    plain = replace(kernel, code=replace(kernel.code, easier=None))
    points: list[dict[str, float]] = []
    results: list[dict[str, tuple[float, float]]] = []
    for k in range(2 * len(_FACTORS)):
        factors = (_FACTORS[(k + j * (1 + k // 5)) % 5] for j in range(len(names)))
        point = {name: typical[name] * f for name, f in zip(names, factors, strict=True)} | held
        try:
            parameters: Mapping[str, Any] = point
            # From the usual first values alone, as files do.
            found = plain.solve(**parameters, data=data or None, start={})
        except (GiantstepError, ArithmeticError):
            continue
        values = {name: float(getattr(found, name)) for name in kernel.outputs}
        # Besides the estimate what rounding of a few operations may do.
        errors = {
            name: float(found.errors.get(name, math.inf)) + 8e-15 * abs(values[name])
            for name in kernel.outputs
        }
        if all(map(math.isfinite, (*values.values(), *errors.values()))):
            points.append({name: x for name, x in point.items() if name not in held})
            results.append({name: (values[name], errors[name]) for name in kernel.outputs})
        if len(points) == _POINTS:
            break
    return Vectors(points, results, data or None) if points else None


def _rounded(number: float | None) -> float:
    """Return a number that is exact in binary near a default; zero if there is none."""
    if number is None or not math.isfinite(number):
        return 0.0
    return round(64 * number) / 64


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
