"""The JAX target: one self-contained file whose solutions can be compiled, mapped, differentiated.

Newton's method is a ``while_loop``, ``vmap`` maps it over parameter sets, and derivatives of the
solution follow from the implicit function theorem, to any order. See :mod:`.vector_source`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...printing.jax_printer import JaxPrinter
from ...printing.printers import helper_definitions
from ...printing.runtime_text import runtime_text
from .about import about
from .file_driver import driver
from .file_parts import (
    REQUIRE_ROOM,
    TAKEN,
    baked_text,
    computes_tables,
    constants,
    docstring,
    makes_grid,
    table_text,
)
from .jax_grid import GRID
from .jax_support import GIVEN_ARRAYS, HEAD, LINE, NESTED, SOLVE_ROWS, SUPPORT, TABLES
from .product_parts import FUTURE, IMPORTS, grid_text
from .vector_source import VectorSource
from .vector_support import array_support, estimate_text
from .width_function import width_text

if TYPE_CHECKING:
    from ..baked import BakedTables
    from ..lowered import LoweredSystem


def files(
    lowered: LoweredSystem, tables: BakedTables | None = None, name: str | None = None
) -> dict[str, str]:
    """Return {file name: text} of the JAX target.

    Parameters
    ----------
    lowered : LoweredSystem
    tables : BakedTables, optional
        Tables to write into the file; else it computes them, and derivatives with respect to the
        parameters of the tables exist.
    name : str, optional
        Stem of the file; by default that of the program.

    Raises
    ------
    EmissionError
        If an expression holds a function that JAX lacks.
    """
    return {f"{name or lowered.program.name}.py": _text(lowered, tables)}


def _text(lowered: LoweredSystem, tables: BakedTables | None) -> str:
    program = lowered.program
    fixed = {} if tables is None else {k: float(v) for k, v in tables.parameters.items()}
    taken = (*TAKEN, "functools", "reference", "quadrature", "solution")
    source = VectorSource(program, JaxPrinter(), constants=fixed, taken=taken)
    own_tables = computes_tables(program, tables)
    parts = [constants(lowered, source, tables), array_support("jnp"), SUPPORT]
    parts += [NESTED] if program.nested else []
    parts.append(source.text())
    grid = makes_grid(program, tables)
    parts += [estimate_text(cut=program.cut), width_text(lowered, fixed)]
    parts += [driver(program, line=own_tables, grid=grid), SOLVE_ROWS]
    if own_tables:
        parts += [runtime_text("quadrature"), table_text(lowered, source, JaxPrinter)]
        parts += [grid_text(lowered), GRID] if grid else [LINE]
        parts += [REQUIRE_ROOM, TABLES]
    else:
        parts += [baked_text(tables, str(program.tables[0]))] if tables is not None else []
        parts.append(GIVEN_ARRAYS)
    body = "\n\n\n".join(part.strip("\n") for part in parts)
    helpers = helper_definitions(JaxPrinter, body)
    body = "\n\n\n".join(part.strip("\n") for part in (helpers, body) if part)
    header = docstring("\n".join(about(lowered, "JAX, in 64 bits", fixed)))
    head = f"{FUTURE}\n{HEAD}".replace("import math\n", f"import math\n{IMPORTS}") if grid else HEAD
    return f"{header}\n{head}\n\n{body}\n"
