"""Parts of generated Python files that targets share: constants, tables, quadrature rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...printing.printers import NumpyPrinter
from ...printing.runtime_text import runtime_text
from ..documentation import domain_of
from ..program import Newton, Panels, Program
from .kernel_parts import baked_step
from .product_parts import grid_constants, grid_text
from .table_source import table_source
from .vector_source import VectorSource

if TYPE_CHECKING:
    from ..baked import BakedTables
    from ..lowered import LoweredSystem

# Names of functions and constants of the file, which the program must not hide.
TAKEN = (
    "shift first_state advance inverse_norm refine unsolved breaks tables inside "
    "inner_rules outer_scale rules product_scales product_tables line_end panel_end rule_worst "
    "rule_finished rule_better rule_following rule_wanted rule_coarseness rule_suffices "
    "rule_panel_count"
).split()

_LINE_TABLES = '''
def line_tables(values, level, shift=1.0):
    """Return weights, nodes and tables of three rules, each half as fine as the one before.

    Tables are evaluated at `shift` times the nodes.
    """
    first = outer_reach(values)
    ends = [line_end(first, level, back) for back in range(3)]
    kinks = breaks(np.zeros(1), *values)
    if kinks:
        found = []
        for back, end in enumerate(ends):
            x, w = line_rule(kinks, level - back, end)
            found.append({"weight": w, NODE: x, **converged_tables(values, shift * x)[0]})
        return found
    step = first_step(values) * rule_coarseness(level, 0)
    if not ends[0] / step < 1_000_000:
        raise ConvergenceError
    rules = outer_rules(step, EVEN, ends[0])
    x = rules[0][0]
    columns = {NODE: x, **converged_tables(values, shift * x)[0]}
    found = []
    for (x, w, stride), end in zip(rules, ends, strict=True):
        inner = (abs(x) <= end) | (end == ends[0])
        found.append(
            {"weight": w[inner], **{name: c[::stride][inner] for name, c in columns.items()}}
        )
    return found
'''

# What both targets that tabulate with arrays say.
REQUIRE_ROOM = '''
def require_room(kind, argument, level):
    """Refuse integrands that vary on no scale that a rule can resolve."""
    step = trapezoidal_step(*inner_extent(kind, argument))
    if not refined_step(step, level) > 3e-4:
        raise ConvergenceError
'''

_TABLES_AT = '''
def tables_at(values, x, level):
    """Return tables at the nodes, and whether their inner rules can be refined."""
    shared, parts, kinds = {}, [], {}
    # Some nodes at a time: inner rules with kinks have nodes of their own for each outer one.
    for part in np.array_split(x, -(-len(x) // 256)):
        kinds = inner_rules(part, *values)
        for slot, (kind, argument) in kinds.items():
            require_room(kind, argument, level)
            if kind == "split":
                shared[slot] = inner_rule(kind, argument, level)
            elif slot not in shared:
                shared[slot] = inner_rule(kind, argument, level)
        parts.append(tables(part, *values, shared))
    return {name: np.concatenate([p[name] for p in parts]) for name in TABLES}, bool(kinds)
'''


def computes_tables(program: Program, tables: BakedTables | None) -> bool:
    """Tell whether the file makes arrays on the nodes of the line itself."""
    return bool(program.tables) and tables is None


def docstring(text: str) -> str:
    """Return a text as the docstring of a module."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{text}\n"""\n'


def constants(
    lowered: LoweredSystem,
    source: VectorSource,
    tables: BakedTables | None,
    *,
    estimates: bool = True,
) -> str:
    """Return the constants of a file: names of parameters and outputs, and their positions.

    Without `estimates` those are left out that only ``estimate`` of the array targets reads.
    """
    program = lowered.program
    outputs = [str(x) for x in program.outputs]
    scales = {str(x): str(size) for x, size in program.magnitudes.items()}
    kept = [x for x in outputs if x not in scales.values()]
    # A parameter that nothing depends on, as the alignment of no spike, may be anything.
    used = {str(x) for x in source.reads()} | {
        lowered.identifiers[p] for p in lowered.table_parameters
    }
    domains = {str(p): domain_of(p) if str(p) in used else "real" for p in program.parameters}
    unknowns = [str(u) for u in program.newton_unknowns]
    logarithmic = {
        str(u): log
        for step in program.steps
        if isinstance(step, Newton)
        for u, log in zip(step.unknowns, step.logarithmic, strict=True)
    }
    # Where nothing has a size of its own, the first output has to do.
    measured = {**{u: u for u, log in logarithmic.items() if log}, **scales}
    measured = measured or {outputs[0]: outputs[0]}
    pairs = [(outputs.index(x), outputs.index(size)) for x, size in measured.items()]
    table_parameters = [lowered.identifiers[p] for p in lowered.table_parameters]
    if not computes_tables(program, tables):
        table_parameters = []
    widest = max(
        (len(x.measure.breaks) + 1 for x in program.loops() if isinstance(x.measure, Panels)),
        default=0,
    )
    # In code the columns carry the name of their data set.
    data = {
        d.name: {str(c).removeprefix(f"{d.name}_"): domain_of(c) for c in d.columns}
        for d in program.data
    }
    lines = [
        f"PARAMETERS = {tuple(source.parameters)!r}",
        f"OUTPUTS = {tuple(kept)!r}",
        "# The numbers that each parameter may be.",
        f"DOMAINS = {tuple(domains[p] for p in source.parameters)!r}",
        "# Parameters on which tables depend, and data sets with the domains of their columns.",
        f"TABLE_PARAMETERS = {tuple(table_parameters)!r}",
        f"DATA = {data!r}",
        "# Outputs of `solve`: how many, and those for users.",
        f"N_OUTPUTS = {len(outputs)}",
        f"KEPT = {[outputs.index(x) for x in kept]!r}",
        "# Whether rules can be refined, and into how many pieces break points cut the line.",
        f"REFINABLE = {computes_tables(program, tables) or program.has_panels}",
        f"PANELS = {widest}",
    ]
    estimated = [
        "# Unknowns with absolute residuals; all unknowns of Newton's method; pairs of an output",
        "# and its scale; each output's scale; whether rules approximate integrals.",
        f"ABSOLUTE = {[outputs.index(u) for u, log in logarithmic.items() if not log]!r}",
        f"UNKNOWNS = {tuple(outputs.index(u) for u in unknowns)!r}",
        f"MEASURED = {tuple(pairs)!r}",
        f"SCALES = {tuple(outputs.index(scales[x]) if x in scales else -1 for x in outputs)!r}",
        f"QUADRATURE = {bool(program.tables) or program.has_panels}",
    ]
    lines += estimated if estimates else []
    if computes_tables(program, tables) and program.inner_nodes:
        lines += grid_constants(lowered)
    elif computes_tables(program, tables):
        lines += [
            "# Functions of the node; whether half of the line suffices.",
            f"NODE = {str(program.tables[0])!r}",
            f"TABLES = {tuple(map(str, program.tables[1:]))!r}",
            f"EVEN = {program.even}",
        ]
    return "\n".join(lines)


def table_text(lowered: LoweredSystem, source: VectorSource, printer: type[NumpyPrinter]) -> str:
    """Return the functions that tabulate, without imports and helpers."""
    text = table_source(
        lowered.definitions,
        node=lowered.node,
        identifiers={x: source.free_name(name) for x, name in lowered.identifiers.items()},
        parameters=lowered.table_parameters,
        printer=printer,
        product=lowered.product,
    )
    return text[text.index("def inner_rules(") :].strip("\n")


def line_parts(lowered: LoweredSystem, source: VectorSource) -> list[str]:
    """Return rules, tables and ``line_tables`` of a file that runs on NumPy."""
    made = grid_text(lowered) if lowered.program.inner_nodes else _LINE_TABLES
    tables = table_text(lowered, source, NumpyPrinter)
    return [runtime_text("quadrature"), tables, made, REQUIRE_ROOM, _TABLES_AT]


def makes_grid(program: Program, tables: BakedTables | None) -> bool:
    """Tell whether the file makes arrays on a grid of several variables itself."""
    return computes_tables(program, tables) and bool(program.inner_nodes)


def baked_text(tables: BakedTables, node: str) -> str:
    """Return ``line_tables`` and ``first_step`` for tables that are given, on a `node`."""
    levels = [
        "    {\n"
        + "".join(f"        {key!r}: np.array({_numbers(v)}),\n" for key, v in level.items())
        + "    },\n"
        for level in tables.levels
    ]
    values = ", ".join(f"{key} = {float(v)!r}" for key, v in tables.parameters.items())
    return (
        (f"# Tables at {values}.\n" if values else "")
        + f"BAKED = [\n{''.join(levels)}]\n\n\n"
        + (
            "def first_step(values):\n"
            '    """Return the distance of the nodes of the first rule, which this file holds."""\n'
            f"    return {baked_step(tables, node)!r}\n\n\n"
            "def line_tables(values, level):\n"
            '    """Return the arrays of three rules, which this file holds."""\n'
            "    return BAKED"
        )
    )


def _numbers(values: Sequence[float]) -> str:
    lines = []
    for k in range(0, len(values), 4):
        lines.append("            " + ", ".join(repr(float(v)) for v in values[k : k + 4]) + ",\n")
    return "[\n" + "".join(lines) + "        ]"
