"""The JAX target: one self-contained file whose solutions can be compiled, mapped, differentiated.

Newton's method is a ``while_loop``, ``vmap`` maps it over parameter sets, and derivatives of the
solution follow from the implicit function theorem, to any order. See :mod:`.arrays`. Derivatives on
a grid need nodes that move with the parameters: break points carry theirs along, while which points
belong to the grid stays fixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...printing.printers import JaxPrinter
from .arrays import array_support, estimate_text
from .file_parts import PythonFile, selfcheck_text

if TYPE_CHECKING:
    from ..driver import BakedTables
    from ..lowered import LoweredSystem
    from .vectors import Vectors

HEAD = """import functools
import math

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
"""

_USAGE = """\
solve_point({{{point}}}{data}) returns {{output: (value, estimated error)}}. To be
compiled, mapped and differentiated: rules = quadrature(point{data}) once, then
solution(point, rules), inside of `with jax.enable_x64(True):`; see their docstrings."""

PRECISION = '''
def double_precision(function):
    """Call a function with numbers of 64 bits, because 32 hold seven digits; no setting changes."""
    enabled = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

    @functools.wraps(function)
    def called(*arguments, **options):
        with enabled(True):
            return function(*arguments, **options)

    return called
'''

SUPPORT = '''
def total(weight, values):
    """Return the weighted sum over the nodes, the last axis."""
    return jnp.sum(weight * values, axis=-1)


def panels(like, breaks, arrays):
    """Return nodes and weights of the normal law, cut at break points."""
    # The nodes move with the break points, so that derivatives see jumps too.
    reference = arrays["panel_node"], arrays["panel_weight"]
    return image_rule(stack(like, *breaks), arrays["reach"], *reference)


def solve_larger(matrix, right):
    """Solve a linear system."""
    return jnp.linalg.solve(matrix, right)


def newton(
    equations, start, known, arrays, report, rough, *, held, logarithmic, safeguarded, movable
):
    """Solve the equations; the solution can be differentiated in `known` and `arrays`."""
    if held:
        gaps, jacobian, _, values = equations(start, known, arrays)
        size = jnp.max(jnp.abs(gaps), axis=0)
        return start, values, after_newton(report, 1, size, jacobian, size < math.inf, held)
    options = (logarithmic, safeguarded, movable)
    given = (jnp.asarray(rough, dtype=float), start, known, arrays)
    unknowns, count, size, solved = newton_solution(equations, *options, *given)
    _, jacobian, _, values = equations(unknowns, known, arrays)
    report = after_newton(report, count, size, jacobian, solved > 0, held)
    return unknowns, values, report


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2, 3))
def newton_solution(equations, logarithmic, safeguarded, movable, rough, start, known, arrays):
    """Return the unknowns, the number of iterations, the last residual and whether it is small."""
    marks = jnp.array(logarithmic)

    def going_on(carried):
        _, _, count, _, _, going = carried
        return going & (count < (1000.0 if safeguarded else 500.0))

    def iterate(carried):
        state, _, count, _, _, _ = carried
        unknowns = state[0]
        gaps, jacobian, moves, _ = equations(unknowns, known, arrays)
        size = jnp.max(jnp.abs(gaps), axis=0)
        size = jnp.where(size < math.inf, size, math.inf)
        state, done, going = advance(
            state, gaps, jacobian, moves, size, rough, marks, safeguarded, movable
        )
        return state, unknowns, count + 1.0, size, done, going

    blank = jnp.zeros_like(start[0])
    begin = (first_state(start, movable), start, blank, blank + math.inf, blank > 0, blank == 0)
    _, unknowns, count, size, done, _ = jax.lax.while_loop(going_on, iterate, begin)
    return unknowns, count, size, done.astype(blank.dtype)


@newton_solution.defjvp
def newton_derivative(equations, logarithmic, safeguarded, movable, primals, tangents):
    """Differentiate by the implicit function theorem; where nothing is solved, give NaN."""
    found = newton_solution(equations, logarithmic, safeguarded, movable, *primals)
    unknowns, count, size, solved = found
    _, _, *given = primals

    def gaps(known, arrays):
        return equations(unknowns, known, arrays)[0]

    _, gaps_dot = jax.jvp(gaps, tuple(given), tuple(tangents[2:]))
    coordinates = solve_linear(equations(unknowns, *given)[1], gaps_dot)
    scale = jnp.where(jnp.array(logarithmic), unknowns, 1.0)
    unknowns_dot = -scale * coordinates * jnp.where(solved > 0, 1.0, math.nan)
    zeros = (jnp.zeros_like(a) for a in (count, size, solved))
    return found, (unknowns_dot, *zeros)


def newton_root(residual, slope, start, *arguments):
    """Return the root of an increasing function at every place of the arguments."""
    arguments = tuple(jnp.broadcast_arrays(*(jnp.asarray(a, dtype=float) for a in arguments)))
    return root_solution(residual, slope, start, arguments)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def root_solution(residual, slope, start, arguments):
    """The slope is at least one, so the root is within the first residual of the start."""
    first = jnp.broadcast_to(start(*arguments), arguments[0].shape)
    radius = jnp.abs(residual(first, *arguments))
    scale = jnp.abs(first) + radius

    def going_on(carried):
        *_, count, going = carried
        return jnp.any(going) & (count < 200)

    def iterate(carried):
        x, low, high, before, count, going = carried
        given = residual(x, *arguments), slope(x, *arguments)
        new, low, high, before, further = root_step(x, *given, low, high, before, scale)
        return jnp.where(going, new, x), low, high, before, count + 1, going & further

    begin = first, first - radius, first + radius, scale + math.inf, 0, scale == scale
    x, *_, going = jax.lax.while_loop(going_on, iterate, begin)
    return jnp.where(going, math.nan, x)


@root_solution.defjvp
def root_derivative(residual, slope, start, primals, tangents):
    """Differentiate by the implicit function theorem."""
    (arguments,), (moved,) = primals, tangents
    x = root_solution(residual, slope, start, arguments)
    _, gap = jax.jvp(lambda given: residual(x, *given), (arguments,), (moved,))
    return x, -gap / slope(x, *arguments)
'''

NESTED = '''
def points_of(node):
    """Return the node of each point; the points of one stand side by side."""
    new = jnp.concatenate([jnp.ones(1, dtype=bool), node[1:] != node[:-1]])
    return jnp.cumsum(new) - 1


def node_mean(points, weight, values):
    """Return averages over the points of each node, at all of its points."""
    mass = jax.ops.segment_sum(weight, points, len(points))
    sums = jax.ops.segment_sum(weight * values, points, len(points))
    # There are fewer nodes than points.
    return (sums / jnp.where(mass > 0.0, mass, 1.0))[points]


def node_largest(points, values):
    """Return the largest values at the points of each node, at all of its points.

    They only set a scale, on which nothing depends.
    """
    values = jax.lax.stop_gradient(jnp.broadcast_to(values, points.shape))
    return jax.ops.segment_max(values, points, len(points))[points]
'''

SOLVE_ROWS = '''
@functools.partial(jax.jit, static_argnames="held")
def solve_compiled(rows, arrays, start, rough, held):
    """Solve for rows of parameters on one rule, from rows of starting values; NaN for its own."""
    one = functools.partial(solve, arrays=arrays, rough=rough, held=held)
    return jax.vmap(lambda row, begin: one(row, start=begin))(rows, start)


def solve_block(block, rule, start=None, rough=0.0, held=0):
    """Solve for all rows of a block on one rule; return arrays of NumPy."""
    # One compiled function serves every number of rows up to the next power of two.
    extra = (1 << (len(block) - 1).bit_length()) - len(block)
    begin = np.full((len(block), len(UNKNOWNS)), np.nan) if start is None else start.T
    padded = [np.concatenate([a, np.repeat(a[-1:], extra, axis=0)]) for a in (block, begin)]
    found, report = solve_compiled(padded[0], rule, padded[1], np.float64(rough), held)

    def rows_last(array):
        return np.moveaxis(np.asarray(array)[: len(block)], 0, -1)

    return rows_last(found), jax.tree_util.tree_map(rows_last, report)


def same_length(rules):
    """Fill the coarser rules with nodes of weight zero: all take the same compiled function."""
    found = []
    for rule in rules:
        filled = {"like": np.float64(0.0)}
        for name, array in rule.items():
            missing = np.size(rules[0][name]) - np.size(array)
            if missing:
                last = np.zeros(missing) if "weight" in name else np.repeat(array[-1], missing)
                array = np.concatenate([array, last])
            filled[name] = array
        found.append(filled)
    return found


def solve_rows(rows, arrays):
    """Return values, errors and info of rows on three rules; in blocks that fit in memory."""
    rules = same_length(by_name(arrays))
    most = max(
        PANELS * np.size(rules[0].get("panel_node", ())),
        *(np.size(array) for array in rules[0].values()),
    )
    size = 2 ** int(math.log2(max(1, 2_000_000 // most)))
    parts = []
    for first in range(0, len(rows), size):
        with np.errstate(all="ignore"):
            found = estimate(rows[first : first + size], *rules)
        parts.append([a.T for a in found])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


@double_precision
def quadrature(parameters, data=None, rtol=1e-11):
    """Return nodes that suffice at a set of parameters, for `solution`.

    Parameters
    ----------
    parameters, data, rtol
        As in `solve_point`.

    Returns
    -------
    dict
        Arrays and numbers; nothing in it depends on parameters.

    Raises
    ------
    RuntimeError
        If no solution is found.
    """
    solve_point(parameters, data, rtol)
    row = parameter_rows([[parameters[name] for name in PARAMETERS]])
    columns = data_columns(data)
    table_values = [row[0, PARAMETERS.index(name)] for name in TABLE_PARAMETERS]
    levels = levels_at(table_values, columns)
    (best,) = refine_group(row, np.arange(1), levels, rtol, unsolved(1))
    return {**by_name(levels[best])[0], **rules_of_line(levels.line, best)}


def solution(parameters, rules):
    """Return {output: value}; a function that JAX can compile, map and differentiate.

    Parameters
    ----------
    parameters : dict
        A number, traced or not, for each of `PARAMETERS`.
    rules : dict
        From `quadrature` at parameters that are not far away: the nodes do not follow the
        parameters, except for those that are cut at kinks.

    Returns
    -------
    dict
        NaN, and derivatives that are NaN, where no solution is found: nothing can be raised from
        inside of a compiled function.

    Raises
    ------
    RuntimeError
        If numbers of 64 bits are not enabled where it is called.
    """
    if jnp.result_type(float) != jnp.float64:
        raise RuntimeError(
            "solution needs numbers of 64 bits: call it, and what transforms it, inside of "
            "`with jax.enable_x64(True):`, or begin your program with "
            "jax.config.update('jax_enable_x64', True)"
        )
    row = [jnp.asarray(parameters[name], dtype=float) for name in PARAMETERS]
    return solution_compiled(jnp.stack(row) if row else jnp.zeros(0), rules)


@jax.jit
def solution_compiled(row, rules):
    """Return the outputs for a row of parameters."""
    table_values = [row[PARAMETERS.index(name)] for name in TABLE_PARAMETERS]
    arrays = {**line_arrays(table_values, rules), "like": jnp.zeros(())}
    values, (_, _, _, converged) = solve(row, arrays)
    values = values * jnp.where(converged, 1.0, math.nan)
    return {name: values[k] for name, k in zip(OUTPUTS, KEPT, strict=True)}
'''

LINE = '''
class TracedLine(Line):
    """The line, whose rules are kept without parameters, so that traced values may come in."""

    def rules(self, level):
        """Return three rules, each half as fine as the one before, as arrays."""
        ends = self.ends(level)
        if self.breaks:
            found = [
                {**reference(level - back, reach=end), "outer_reach": np.float64(end)}
                for back, end in enumerate(ends)
            ]
        else:
            step = self.step * line_coarseness(level, 0)
            require_room(1, 2 * ends[0], step)
            x, rules = line_rules((), step, self.even, level, ends)
            found = [{"outer_node": x[places], "outer_weight": w} for places, w in rules]
        x = np.asarray(outer_nodes(self.tables.values, found[0])[0])
        _, inner_level = self.tables.settled(x)
        inner = inner_rules_at(self.tables.values, x, inner_level)
        return [{**outer, "inner": inner} for outer in found]

    def lines(self, level, shift=1.0):
        """Return the arrays of three rules; tables are evaluated at `shift` times the nodes."""
        found, values = [], self.tables.values
        for rules in self.rules(level):
            x, w = (np.asarray(a) for a in outer_nodes(values, rules))
            found.append(np.stack([w, x, *tables_on(values, shift * x, rules["inner"]).values()]))
        return found


def rules_of_line(line, level):
    """Return the finest rule, as arrays without parameters."""
    return line.rules(level)[0]


def line_arrays(values, rules):
    """Return weights, nodes and tables; traced values of the parameters may come in."""
    x, w = outer_nodes(values, rules)
    outer = ("outer_node", "outer_weight", "outer_reach", "cut_node", "cut_weight", "inner")
    others = {name: array for name, array in rules.items() if name not in outer}
    columns = tables(x, *values, inner_nodes(values, x, rules["inner"]))
    return {**others, "weight": w, NODE: x, **columns}
'''

TABLES = '''
def reference(refinement, panel=PANEL, reach=REACH):
    """Return the composite rule on [0, 1] of which each piece between kinks takes an image."""
    node, weight = panel_rule(max(1, math.ceil(2 * reach / panel * 2.0**refinement)))
    return {"cut_node": node, "cut_weight": weight}


def outer_nodes(values, rules):
    """Return nodes and weights on the line."""
    if "outer_node" in rules:
        return rules["outer_node"], rules["outer_weight"]
    cuts = jnp.stack([*(jnp.asarray(b, dtype=float) for b in breaks(jnp.zeros(1), *values)), 0.0])
    return image_rule(cuts, rules["outer_reach"], rules["cut_node"], rules["cut_weight"])


def inner_rules_at(values, x, level):
    """Return nodes and weights for each inner variable; of rules with kinks the reference."""
    found = {}
    for slot, (kind, argument) in inner_rules(x, *values).items():
        if kind == "split":
            reach = inner_reach(level)
            panel = inner_panel(float(argument[1]), level)
            found[slot] = {**reference(0, panel, reach), "inner_reach": np.float64(reach)}
            continue
        argument = tuple(map(float, argument))
        step = trapezoidal_step(*inner_extent(kind, argument))
        # Parts of 128 nodes are tabulated at once.
        require_room(128, 2 * inner_reach(level), refined_step(step, level))
        node, weight = inner_rule(kind, argument, level)
        found[slot] = {"node": node, "weight": weight}
    return found


def inner_nodes(values, x, inner):
    """Return nodes and weights for each inner variable, at the outer nodes `x`."""
    kinds = inner_rules(x, *values)
    found = {}
    for slot, rule in inner.items():
        if "node" in rule:
            found[slot] = rule["node"], rule["weight"]
        else:
            cuts = kinds[slot][1][0]
            reference_rule = rule["cut_node"], rule["cut_weight"]
            found[slot] = image_rule(cuts, rule["inner_reach"], *reference_rule)
    return found


class Tables(Tables):
    """The functions of the node, compiled."""

    def at(self, x, level):
        """Return tables at the nodes, and whether their inner rules can be refined."""
        inner = inner_rules_at(self.values, x, level)
        return tables_on(self.values, x, inner), bool(inner)


def tables_on(values, x, inner):
    """Return tables at the nodes, for given inner rules."""
    # Some nodes at a time: inner rules with kinks have nodes of their own for each outer one.
    # All parts are equally long, so that one compiled function serves them.
    padded = np.concatenate([x, np.repeat(x[-1:], -len(x) % 128)])
    parts = [tables_compiled(values, part, inner) for part in padded.reshape(-1, 128)]
    return {
        name: np.concatenate([np.asarray(p[name]) for p in parts])[: len(x)] for name in TABLES
    }


@jax.jit
def tables_compiled(values, x, inner):
    """Return tables at the nodes; what does not depend on them has one entry for each, too."""
    return tables(x, *values, inner_nodes(values, x, inner))
'''

GIVEN_ARRAYS = '''
def rules_of_line(line, level):
    """Return what the rules depend on besides their arrays: nothing."""
    return {}


def line_arrays(values, rules):
    """Return the arrays of a rule."""
    return rules
'''


GRID = '''
def rules_of_line(grid, level):
    """Return the finest rule on the grid, as arrays without parameters."""
    values = grid.tables.values
    reach, scale = grid_end(grid.reach, level, 0), grid_coarseness(level, 0)
    if breaks(jnp.zeros(1), *values):
        length = GRID_PANEL * scale * float(outer_scale(jnp.zeros(1), *values))
        outer = {**unit_rule(length, reach), "outer_reach": np.float64(reach)}
    else:
        step = GRID_STEP * scale * float(outer_scale(jnp.zeros(1), *values))
        rule = equidistant_rule(step, math.floor(reach / step))
        x, w = halved(rule) if EVEN else rule
        outer = {"outer_node": x, "outer_weight": w}
    x = np.asarray(outer_nodes(values, outer)[0])
    _, inner_level = grid.tables.settled(x)
    rules = {**outer, "inner": inner_rules_at(values, x, inner_level), "grid_reach": reach}
    points, found = [x], []
    for slot, width in zip(INNER_NODES, product_scales(jnp.zeros(1), *values), strict=True):
        width = float(width) * scale
        if cuts_of(slot, points, values).shape[1]:
            rule = unit_rule(GRID_PANEL * width, reach)
        else:
            step = GRID_INNER_STEP * width
            node, weight = equidistant_rule(step, math.floor(reach / step))
            rule = {"node": node, "weight": weight}
        new = np.asarray(next_nodes(slot, points, values, rule, reach)[0])
        left = reach**2 - squares(points, NESTED)
        rule["kept"] = np.flatnonzero(new**2 <= left[:, None] * (1 + 1e-12))
        parent = rule["kept"] // new.shape[1]
        points = [*(x[parent] for x in points), new.reshape(-1)[rule["kept"]]]
        found.append(rule)
    return {**rules, "grid": found}


def unit_rule(length, reach):
    """Return a composite rule on [0, 1] whose panels are short enough for the whole line."""
    node, weight = panel_rule(math.ceil(2 * reach / length))
    return {"cut_node": node, "cut_weight": weight}


def cuts_of(slot, points, values):
    """Return where integrands have kinks or jumps in an inner node, a row for each point."""
    return getattr(FUNCTIONS, f"product_breaks_{slot}")(*points, *values)


def next_nodes(slot, points, values, rule, reach):
    """Return nodes and weights of one variable more, a row for each point."""
    if "node" in rule:
        shape = (len(points[0]), len(rule["node"]))
        return [jnp.broadcast_to(rule[name], shape) for name in ("node", "weight")]
    return image_rule(cuts_of(slot, points, values), reach, rule["cut_node"], rule["cut_weight"])


def line_arrays(values, rules):
    """Return weights, nodes and tables; traced values of the parameters may come in."""
    x, weight = outer_nodes(values, rules)
    columns = tables(x, *values, inner_nodes(values, x, rules["inner"]))
    points, origin = [x], jnp.arange(len(x))
    for slot, rule in zip(INNER_NODES, rules["grid"], strict=True):
        new, factor = next_nodes(slot, points, values, rule, rules["grid_reach"])
        parent = rule["kept"] // new.shape[1]
        points = [*(x[parent] for x in points), new.reshape(-1)[rule["kept"]]]
        weight = weight[parent] * factor.reshape(-1)[rule["kept"]]
        origin = origin[parent]
    columns = {name: column[origin] for name, column in columns.items()}
    own = ("outer_node", "outer_weight", "outer_reach", "cut_node", "cut_weight", "inner", "grid",
           "grid_reach")
    return {
        **{name: array for name, array in rules.items() if name not in own},
        "weight": weight,
        **dict(zip((NODE, *INNER_NODES), points, strict=True)),
        **columns,
        **product_tables(*points, *values, columns),
    }
'''


def files(
    lowered: LoweredSystem,
    tables: BakedTables | None = None,
    name: str | None = None,
    vectors: Vectors | None = None,
) -> dict[str, str]:
    """Return {file name: text}; see :meth:`..lowered.LoweredSystem.files`.

    Where the file computes its tables, derivatives by their parameters exist, too.
    """
    program = lowered.program
    taken = ("functools", "reference", "quadrature", "solution")
    file = PythonFile(lowered, tables, JaxPrinter(), taken)
    parts = [
        file.constants(),
        PRECISION,
        array_support("jnp"),
        SUPPORT,
        NESTED if program.nested else "",
    ]
    parts += [
        file.source.text(),
        estimate_text(grid=bool(program.inner_nodes)),
        *(
            t.replace("def solve_all(", "@double_precision\ndef solve_all(")
            for t in file.driver(line="TracedLine")
        ),
        file.by_name(),
        SOLVE_ROWS,
    ]
    if file.line:
        node = f"NODE = {str(program.tables[0])!r}"
        parts += [node, GRID if file.grid else LINE, TABLES]
    else:
        parts.append(GIVEN_ARRAYS)
    parts.append(selfcheck_text(vectors))
    return {f"{name or program.name}.py": file.text("JAX, in 64 bits", HEAD, parts, _USAGE)}
