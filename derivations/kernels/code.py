"""The generated sources of a lowered system, with the names that a caller needs."""

from __future__ import annotations

import sympy as sp

from ...numeric.kernel_code import KernelCode, Range
from ...symbolic.lowering.documentation import domain_of
from ...symbolic.lowering.lowered import LoweredSystem
from ...symbolic.lowering.measures import width_source
from ...symbolic.lowering.program import Data
from ...symbolic.lowering.solver import solver_source
from ...symbolic.lowering.tables import table_source


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
    return KernelCode(
        table_source=tables,
        solver_source=solver_source(program),
        plain_source=solver_source(program, "python"),
        parameters=tuple(map(str, program.parameters)),
        table_parameters=tuple(identifiers[p] for p in lowered.table_parameters),
        names=tuple(map(str, program.tables[1 + len(program.inner_nodes) :])),
        outputs=tuple(map(str, program.outputs)),
        results=results,
        measured=results,
        even=program.even,
        unknowns=tuple(map(str, program.newton_unknowns)),
        panels=program.has_panels,
        data=tuple((d.name, column_names(d)) for d in program.data),
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
        easier=None if lowered.system.easier is None else identifiers[lowered.system.easier],
    )


def parameter_domains(lowered: LoweredSystem) -> dict[str, str]:
    """Return which numbers parameters, unknowns and columns of data may be."""
    program = lowered.program
    symbols = (*program.parameters, *program.newton_unknowns)
    domains = {str(x): domain_of(x) for x in symbols}
    for data in program.data:
        for name, column in zip(column_names(data), data.columns, strict=True):
            domains[f"{data.name}.{name}"] = domain_of(column)
    return domains


def latex_names(lowered: LoweredSystem) -> dict[str, str]:
    """Return the LaTeX of parameters and unknowns by their names in code."""
    system = lowered.system
    return {lowered.identifiers[x]: sp.latex(x) for x in (*system.parameters, *system.unknowns)}


def column_names(data: Data) -> tuple[str, ...]:
    """Return the columns of a data set as the user names them; in code they carry its name."""
    return tuple(str(c).removeprefix(f"{data.name}_") for c in data.columns)
