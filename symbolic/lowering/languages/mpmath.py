"""The mpmath target: one self-contained file that solves to any number of digits.

The refinement around the solver is that of all languages (:mod:`..driver`). What it refines is
text of :mod:`giantstep.runtime.precision`, to which digits of a kernel come, too: how many nodes a
number of digits needs is known before, two rules are enough to see it, and what rounding and
conditioning take is bought with digits of the precision.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import sympy as sp

from ....errors import EmissionError
from ...gaussian.expectation import GaussianExpectation
from ...printing.language import Function, Kind, Parameter
from ...printing.printers import MpmathPrinter
from ...printing.runtime_text import runtime_text
from ...printing.spellings import MpmathLanguage
from ..documentation import about, domain_tests
from ..driver import precise_driver
from ..lower import table_name
from ..program import Newton, Program
from ..renaming import safe_program
from ..solver import RESERVED, solver_functions
from ..tables import InnerMeasure, inner_integrands, mpmath_table_source, outer_breaks, outer_widths
from .file_parts import GIVEN, docstring, joined, public_constants, selfcheck_text, usage_lines

if TYPE_CHECKING:
    from ..driver import BakedTables
    from ..lowered import LoweredSystem
    from .vectors import Vectors

IMPORTS = """from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import mpmath


class ConvergenceError(RuntimeError):
    \"\"\"Two rules never agree, or Newton's method fails.\"\"\"

    def __init__(self, message, state=None):
        super().__init__(message)
        self.state = state
"""

DRIVER = '''
def solve_point(parameters, data=None, digits=50):
    """Solve at one set of parameters; return {output: (value, estimated error)}.

    Parameters
    ----------
    parameters : dict
        A number for each of `PARAMETERS`. Integers, fractions, strings such as "0.1" and "1/3" and
        numbers of mpmath are taken as they are, a float as the decimal number that it prints as.
    data : dict, optional
        For each name of `DATA` a dict of its columns, equally long, and optionally "weight",
        which counts relative to the sum. If there is one data set only, its columns themselves.
    digits : int
        Digits of the results; they are estimated from two rules, not proven.

    Raises
    ------
    ValueError
        If a parameter or data are missing, unknown or outside their domain.
    RuntimeError
        If no solution is found to so many digits.
    """
    if not (isinstance(digits, int) and digits >= 1):
        raise ValueError(f"digits must be a positive integer, got {digits!r}")
    def solved(wanted, start=None):
        """Return outputs, their errors and nodes, from first values of the equations or others."""
        ctx = local_context(wanted, digits_of_size(start.values()) if start else 0)
        values = parameter_values(ctx, parameters)
        columns = data_columns(ctx, data)
        try:
            outputs, errors, nodes = solve_precisely(
                KERNEL,
                values,
                ctx=ctx,
                digits=wanted,
                start=start or first_values(ctx, values),
                data=columns,
                **line_arguments(ctx, values, wanted),
            )
        except (ConvergenceError, ArithmeticError, ValueError, TypeError) as error:
            raise ConvergenceError(f"no solution{place(parameters)}: {error}") from None
        # An output without unknowns may be an integer, or a constant such as pi.
        outputs = {
            name: x if isinstance(x, ctx.mpc) else ctx.mpf(x) for name, x in outputs.items()
        }
        if not all(isinstance(x, ctx.mpf) and ctx.isfinite(x) for x in outputs.values()):
            raise ConvergenceError(
                f"no solution{place(parameters)}: the results are no real numbers"
            )
        return outputs, errors, nodes

    # A rough solution first: Newton's method makes its first steps on few nodes.
    rough, _, _ = solved(min(4 if KERNEL.inner_nodes else 12, digits))
    start = {name: rough[name] for name in KERNEL.unknowns}
    outputs, errors, _ = with_spare_digits(lambda wanted: solved(wanted, start), digits)
    shown = local_context(digits, digits_of_size(start.values()))
    scale = max([int(KERNEL.absolute), *(abs(x) for x in outputs.values())])
    # What a symmetry makes vanish is only as small as rounding makes it; an unknown that may be
    # zero has a residual relative to one.
    least = 10**6 * shown.eps * scale
    return {
        name: (
            shown.mpf(outputs[name]),
            shown.mpf(sum(found[name] for found in errors.values()) + least),
        )
        for name in OUTPUTS
    }


def place(parameters):
    """Return the point as words of an error message."""
    words = ", ".join(f"{name} = {parameters[name]}" for name in PARAMETERS)
    return f" at {words}" if words else ""


def number(ctx, name, value, domain):
    """Return a number of the context, or refuse it."""
    try:
        if isinstance(value, bool):
            raise TypeError
        if isinstance(value, Fraction):
            found = ctx.mpf(value.numerator) / value.denominator
        elif isinstance(value, (int, str)):
            found = ctx.mpf(value)
        elif isinstance(value, float):
            found = ctx.mpf(repr(float(value)))
        else:
            found = ctx.mpf(ctx.convert(value))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a real number, got {value!r}") from None
    holds = {
        {tests}
    }[domain]
    if not (holds and ctx.isfinite(found)):
        raise ValueError(f"{name} must be a finite {domain} number, got {value}")
    return found


def parameter_values(ctx, parameters):
    """Return parameters as numbers of the context, or refuse them."""
    parameters = given_parameters(parameters)
    return {
        name: number(ctx, name, parameters[name], domain)
        for name, domain in zip(PARAMETERS, DOMAINS)
    }


def data_columns(ctx, data):
    """Return weights that add up to one and columns of each data set, or refuse them."""
    found = {}
    for name, domains, given, weight in given_data(data):
        columns = [
            [number(ctx, f"{c} of the data {name}", x, domain) for x in list(given[c])]
            for c, domain in domains.items()
        ]
        count = len(columns[0])
        weights = [ctx.one] * count
        if weight is not None:
            weights = [number(ctx, f"weight of the data {name}", x, "nonnegative") for x in weight]
        if not count or {len(column) for column in [weights, *columns]} != {count}:
            raise ValueError(f"all columns of the data {name} must be lists of the same length")
        total = ctx.fsum(weights)
        if not total > 0:
            raise ValueError(f"weight of the data {name} must hold a number > 0")
        found[name] = [[w / total for w in weights], *columns]
    return found


def first_values(ctx, values):
    """Return where Newton's method begins."""
    out = [ctx.zero] * len(KERNEL.unknowns)
    starts(ctx)(*(values[name] for name in PARAMETERS), out)
    return dict(zip(KERNEL.unknowns, out))
'''

NO_LINE = '''
def line_arguments(ctx, values, digits):
    """Return step and rules of the nodes of the line: there are none."""
    return {}
'''

LINE = '''
def line_arguments(ctx, values, digits):
    """Return first step, inner rules and kinks of the tables, and widths of a grid."""
    widths, inner, breaks = geometry(ctx)(*(values[name] for name in TABLE_PARAMETERS))
    # A quarter of the width gives floats their digits.
    step = first_step(0.25 * widths[0], digits)
    return {"step": step, "inner": inner, "breaks": breaks, "widths": widths}
'''


_USAGE = """\
solve_point({{{point}}}{data}, digits=50) returns {{output: (value, estimated error)}}
as numbers of an mpmath context of their own; see its docstring."""

# After those of which they use something.
_RUNTIME = ("precise_averages", "precise_lines", "precision")
_RULES = (
    "EXPONENT", "GOLDEN", "GRID_PANEL", "Rule", "trapezoidal_step", "refined_step", "equidistant",
    "composite", "legendre", "legendre_order", "folded", "ball_volume",
)  # fmt: skip


def files(
    lowered: LoweredSystem,
    tables: BakedTables | None = None,
    name: str | None = None,
    vectors: Vectors | None = None,
) -> dict[str, str]:
    """Return {file name: text}; see :meth:`..lowered.LoweredSystem.files`.

    Raises
    ------
    EmissionError
        If an expression holds a function that mpmath code lacks, or tables are given.
    """
    if tables is not None:
        raise EmissionError(
            "target 'mpmath' computes its tables to the digits asked for; baked tables are floats: "
            "leave out tables="
        )
    program = lowered.program
    lines = about(lowered, "For mpmath, to any number of digits", {})
    lines += ["", *usage_lines(lowered, _USAGE, [*map(str, program.parameters)])]
    parts = [
        f"{docstring(lines)}\n{IMPORTS}",
        "\n".join(public_constants(lowered, {}, line=bool(program.tables))),
        _closure("solver", "the solver", f"{solver_functions(program, 'mpmath')}\n\nreturn solve"),
        _closure(
            "driver",
            "the refinement",
            f"{precise_driver()}\n\nreturn solve_row",
            ", make_level, solve_level",
        ),
        _closure("starts", "first values", _start_source(program)),
        *(_table_parts(lowered) if program.tables else []),
        runtime_text("rules", _RULES),
        *map(runtime_text, _RUNTIME),
        _kernel(lowered),
        LINE if program.tables else NO_LINE,
        GIVEN,
        DRIVER.replace("{tests}", domain_tests("found")),
        selfcheck_text(vectors, ", digits=20"),
    ]
    return {f"{name or program.name}.py": f"{joined(parts)}\n"}


def _closure(name: str, what: str, body: str, more: str = "") -> str:
    head = f'def {name}(ctx{more}):\n    """Return {what} on an mpmath context."""\n\n'
    return head + textwrap.indent(body.strip("\n"), "    ")


def _start_source(program: Program) -> str:
    """Return ``first``, which writes the first values of all Newton unknowns."""
    language = MpmathLanguage(MpmathPrinter())
    safe = safe_program(program, {*RESERVED, *language.reserved})
    values = [v for step in safe.steps if isinstance(step, Newton) for v in step.start]
    expressions = {f"expression_{k}_": value for k, value in enumerate(values)}
    body = "".join(f"out[{k}] = {name}\n" for k, name in enumerate(expressions))
    function = Function(
        "first",
        (*(Parameter(str(p)) for p in safe.parameters), Parameter("out", Kind.OUTPUT)),
        body,
        expressions,
        documentation="Write first values to `out`.",
    )
    return f"{language.source(function)}\n\nreturn first"


def _table_parts(lowered: LoweredSystem) -> list[str]:
    """Return ``table_functions(ctx)`` and ``geometry(ctx)``."""
    taken = {*MpmathLanguage.reserved, "rule", "tables", "ctx", "width", "inner", "breaks"}
    product = lowered.product
    if product is not None:
        taken |= {str(s) for s in product.symbols} | {str(f.func) for f in product.definitions}
    names = {
        p: _unused(lowered.identifiers[p], taken, lowered.definitions)
        for p in lowered.table_parameters
    }
    tables = mpmath_table_source(
        lowered.definitions,
        node=lowered.node,
        identifiers=names,
        parameters=lowered.table_parameters,
        product=product,
    )
    made = ["tables"]
    if product is not None:
        made += ["NESTED", "FADING", "POWER", "EVEN", "product_tables"]
        made += [f"product_breaks_{s}" for s in product.symbols]
    returned = ", ".join(f'"{name}": {name}' for name in made)
    code = {p: sp.Symbol(name, **p.assumptions0) for p, name in names.items()}
    return [
        _closure(
            "table_functions", "functions that tabulate", f"{tables}\n\nreturn {{{returned}}}"
        ),
        _closure("geometry", "widths and kinks of the tables", _geometry(lowered, code)),
    ]


def _unused(name: str, taken: set[str], definitions: Mapping[sp.Expr, sp.Expr]) -> str:
    inner = {n.variable.name for d in definitions.values() for n in d.atoms(GaussianExpectation)}
    tables = {table_name(f) for f in definitions}
    made = re.compile(r"(mean|integrands|functions|argument|moment)_.*|shared_\d+|fn_.*|\d+")
    while name in taken | inner | tables or made.fullmatch(name):
        name = f"p_{name}"
    return name


def _geometry(lowered: LoweredSystem, code: Mapping[sp.Symbol, sp.Symbol]) -> str:
    printer = MpmathPrinter()

    def texts(values: Sequence[sp.Expr]) -> list[str]:
        return [printer.print(v.xreplace(dict(code))) for v in dict.fromkeys(values)]

    inner = []
    for variable, integrands in inner_integrands(lowered.definitions).items():
        measure = InnerMeasure.of(variable, integrands, lowered.node)
        extent = [
            ", ".join([first, *(f"float({x})" for x in texts(found))])
            for first, found in (
                ("math.inf", measure.strips),
                ("0.0", measure.growths),
                ("0.0", measure.waves),
            )
        ]
        inner.append(
            f"{variable.name!r}: (min([{extent[0]}]), max([{extent[1]}]), max([{extent[2]}]))"
        )
    widths = [outer_widths(lowered.definitions, lowered.node)]
    breaks = outer_breaks(lowered.definitions, lowered.node)
    if lowered.product is not None:
        widths = [(*widths[0], *lowered.product.outer_scales), *lowered.product.scales]
        breaks = (*breaks, *lowered.product.outer_breaks)
    lines = [
        f"def geometry({', '.join(str(x) for x in code.values())}):",
        '    """Return widths in node and inner nodes over which functions vary, extents of inner',
        '    integrands (strip, growth, frequency), and nodes at which a table has a kink."""',
        "    widths = []",
        *(line for found in widths for line in _width_lines(texts(found))),
        f"    inner = {{{', '.join(inner)}}}",
        f"    breaks = [{', '.join(texts(breaks))}]",
        "    return widths, inner, breaks",
        "",
        "",
        "return geometry",
    ]
    return "\n".join(lines)


def _width_lines(texts: Sequence[str]) -> list[str]:
    """Return the lines that append the smallest of some widths, at most one."""
    lines = ["    width = ctx.one"]
    for text in texts:
        # A slope of zero in the node sets no scale: its width is infinite.
        lines += [
            "    try:",
            f"        width = min(width, abs({text}))",
            "    except ZeroDivisionError:",
            "        pass",
        ]
    return [*lines, "    widths.append(float(width))"]


def _kernel(lowered: LoweredSystem) -> str:
    """Return the constant that tells the refinement what the solver needs."""
    program = lowered.program
    newtons = [step for step in program.steps if isinstance(step, Newton)]
    # First values of the next digits: coordinates of unknowns, too, which are no results.
    moved = tuple(str(x) for x in program.newton_unknowns if str(x) not in lowered.results)
    return "\n".join(
        [
            "KERNEL = SimpleNamespace(",
            "    solver=solver,",
            "    driver=driver,",
            *(["    table_functions=table_functions,"] if program.tables else []),
            f"    has_line={bool(program.tables)},",
            "    parameters=PARAMETERS,",
            "    table_parameters=TABLE_PARAMETERS,",
            f"    outputs={tuple(map(str, program.outputs))!r},",
            f"    results=OUTPUTS{f' + {moved!r}' if moved else ''},",
            f"    unknowns={tuple(map(str, program.newton_unknowns))!r},",
            f"    even={program.even},",
            f"    inner_nodes={tuple(map(str, program.inner_nodes))!r},",
            f"    panels={program.has_panels},",
            f"    data={tuple(d.name for d in program.data)!r},",
            f"    moving={program.moving},",
            f"    absolute={not all(log for n in newtons for log in n.logarithmic)},",
            ")",
        ]
    )
