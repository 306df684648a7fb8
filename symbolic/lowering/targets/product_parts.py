"""The grid of several Gaussian variables in files for Python that run on NumPy.

Its text is that of :mod:`giantstep.runtime.product_rules` and
:mod:`giantstep.runtime.product_arrays`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...printing.runtime_text import runtime_text

if TYPE_CHECKING:
    from ..lowered import LoweredSystem

# The type annotations of the copied text stay text.
FUTURE = "from __future__ import annotations\n"
IMPORTS = "from types import SimpleNamespace\n"

_LINE_TABLES = '''
def product_grid(values):
    """Return the rules on the grid of node and inner nodes."""
    return ProductGrid(
        GRID_FUNCTIONS, values, INNER_NODES, (*TABLES, *GRID_TABLES), EVEN,
        lambda x: converged_tables(values, x)[0],
    )


def first_step(values):
    """Return the smallest step of the first grid."""
    return product_grid(values).step


def finest_level(values):
    """Return the last level of refinement that there is room for."""
    return min(product_grid(values).finest, LAST_LEVEL)


def line_tables(values, level, shift=1.0):
    """Return weights, nodes and tables of three rules, each half as fine as the one before.

    Tables are evaluated at `shift` times the nodes.
    """
    names = ("weight", NODE, *INNER_NODES, *TABLES, *GRID_TABLES)
    rules = product_grid(values).lines(level, shift)
    return [dict(zip(names, rule, strict=True)) for rule in rules]
'''


def grid_constants(lowered: LoweredSystem) -> list[str]:
    """Return the lines of constants that name inner nodes and tables of the grid."""
    program = lowered.program
    first = 1 + len(program.inner_nodes)
    last = first + len(lowered.definitions)
    return [
        "# Functions of the node, further nodes of the grid and functions of all of them; whether",
        "# half of the grid suffices.",
        f"NODE = {str(program.tables[0])!r}",
        f"TABLES = {tuple(map(str, program.tables[first:last]))!r}",
        f"INNER_NODES = {tuple(map(str, program.inner_nodes))!r}",
        f"GRID_TABLES = {tuple(map(str, program.tables[last:]))!r}",
        f"EVEN = {program.even}",
    ]


def grid_functions(lowered: LoweredSystem) -> str:
    """Return the generated functions that make the grid as attributes of one object."""
    names = ["outer_scale", "breaks", "product_scales", "product_tables"]
    names += [f"product_breaks_{s}" for s in lowered.program.inner_nodes]
    names.append("NESTED")
    entries = "".join(f"    {name}={name},\n" for name in names)
    return f"GRID_FUNCTIONS = SimpleNamespace(\n{entries})"


def grid_text(lowered: LoweredSystem) -> str:
    """Return rules and arrays of the grid, and ``line_tables``."""
    rules = runtime_text("product_rules")
    arrays = runtime_text("product_arrays", without=("Array", "Tabulate"))
    return "\n\n\n".join([rules, arrays, grid_functions(lowered), _LINE_TABLES.strip("\n")])
