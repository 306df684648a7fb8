"""Pass 5: compute every common subexpression once, and divide once.

Inside a pass over the nodes, powers of a reciprocal become products of one division, and products
that Newton's Jacobian needs are built from those that its residual needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import sympy as sp
from sympy.logic.boolalg import Boolean

from ...errors import EmissionError
from ..expressions.averages import outermost as nodes_of
from ..expressions.shared_parts import free_symbols, parts_of, replaced
from ..gaussian.accuracy import accurate_moment
from ..gaussian.ramp_moments import RampAverage, gauss_sum
from .fuse import FreshSymbols
from .program import Assign


def share_scalars(run: Sequence[Assign], fresh: FreshSymbols) -> tuple[Assign, ...]:
    """Share subexpressions inside a run of scalar assignments."""
    ramps, values = _ramps_apart([a.value for a in run], fresh)
    run = [*ramps, *(Assign(a.target, v) for a, v in zip(run, values, strict=True))]
    replacements, reduced = _shared([a.value for a in run], fresh, "scalar_")
    assigns = [Assign(*pair) for pair in replacements]
    assigns += [Assign(a.target, v) for a, v in zip(run, reduced, strict=True)]
    return in_order(assigns)


def share_in_loop(
    integrands: Sequence[sp.Expr], fresh: FreshSymbols, *, roots: bool = False
) -> tuple[tuple[Assign, ...], tuple[sp.Expr, ...]]:
    """Return the values at a node that integrands share, in order, and what is left of them.

    With `roots` the half-integer powers of a base become powers of one root.
    """
    ramps, rest = _ramps_apart(integrands, fresh)
    targets = [a.target for a in ramps]
    rest = [*(a.value for a in ramps), *rest]
    found, rest = _share_roots(rest, fresh) if roots else ([], rest)
    inverses, rest = _share_reciprocals(rest, fresh)
    ramps = [Assign(*pair) for pair in zip(targets, rest, strict=False)]
    rest = rest[len(ramps) :]
    inverses = found + inverses + ramps
    products, rest = _share_products(rest, {a.target for a in inverses} - {*targets}, fresh)
    shared = inverses + products
    replacements, reduced = _shared([*(a.value for a in shared), *rest], fresh, "node_")
    own = [Assign(a.target, v) for a, v in zip(shared, reduced[: len(shared)], strict=True)]
    locals_ = in_order([Assign(*pair) for pair in replacements] + own)
    return locals_, tuple(reduced[len(shared) :])


def _ramps_apart(
    values: Sequence[sp.Expr], fresh: FreshSymbols
) -> tuple[list[Assign], list[sp.Expr]]:
    """Compute averages of ramps, whose closed forms are long, once and by themselves.

    So are widths and variances, and integrands at the nodes of sums, of which forms share most.
    """
    named: dict[sp.Expr, sp.Symbol] = {}

    def name(expr: sp.Expr) -> sp.Expr:
        if expr.is_Atom or expr.is_number:
            return expr
        if expr not in named:
            named[expr] = fresh("ramp_")
        return named[expr]

    ramps: dict[sp.Expr, sp.Expr] = {}
    at_nodes: dict[sp.Expr, list[sp.Expr]] = {}
    for ramp in (ramp for value in values for ramp in nodes_of(value, RampAverage)):
        if ramp in ramps:
            continue
        arguments = zip(ramp.args[2:], ramp.arguments, strict=True)
        short = [name(x) if positive else x for x, (_, positive) in arguments]
        form = accurate_moment(ramp.func(*ramp.args[:2], *short))
        totals = {}
        for node in nodes_of(form, gauss_sum):
            if node.integrand not in at_nodes:
                at_nodes[node.integrand] = [name(x) for x in node.at_nodes()]
            totals[node] = node.total(at_nodes[node.integrand])
        ramps[ramp] = name(form.xreplace(totals))
    written = [Assign(symbol, expr) for expr, symbol in named.items()]
    return written, [value.xreplace(ramps) for value in values]


def take_out_invariants(
    values: Sequence[sp.Expr], varying: Collection[sp.Symbol], fresh: FreshSymbols
) -> tuple[tuple[Assign, ...], tuple[sp.Expr, ...]]:
    """Compute functions and powers that are the same at all nodes before the pass.

    Parameters
    ----------
    values : sequence of Expr
        Integrands.
    varying : collection of Symbol
        The node, tables and columns.
    fresh : FreshSymbols

    Returns
    -------
    tuple of Assign
        Scalars to compute before the pass.
    tuple of Expr
        The integrands in these scalars.
    """
    moving = set(varying)
    found: dict[sp.Expr, sp.Symbol] = {}
    seen: set[sp.Basic] = set()

    def visit(expr: sp.Basic) -> None:
        if expr in seen:
            return
        seen.add(expr)
        if isinstance(expr, sp.Function | sp.Pow) and not free_symbols(expr) & moving:
            found[expr] = fresh("invariant_")
            return
        for argument in expr.args:
            visit(argument)

    for value in values:
        visit(value)
    assigns = tuple(Assign(symbol, expr) for expr, symbol in found.items())
    return assigns, tuple(replaced(value, found) for value in values)


def split_off(
    locals_: Sequence[Assign],
    values: Sequence[sp.Expr],
    inner: Collection[sp.Symbol],
    fresh: FreshSymbols,
) -> tuple[int, tuple[Assign, ...], tuple[sp.Expr, ...]]:
    """Put first what holds no inner node, with whatever parts of the rest hold none.

    Parameters
    ----------
    locals_, values : sequence
        Of a pass over a grid, after sharing.
    inner : collection of Symbol
        Inner nodes, and tables on the grid.

    Returns
    -------
    int
        Number of locals without inner nodes.
    tuple of Assign
        All locals, in order.
    tuple of Expr
        The values in these locals.
    """
    varying = set(inner)
    parts: dict[sp.Expr, sp.Symbol] = {}

    def part(expr: sp.Expr) -> sp.Expr:
        if expr.is_Atom or not expr.free_symbols:
            return expr
        if expr.is_Mul and expr.args[0] == -1 and len(expr.args) == 2:
            return -part(expr.args[1])
        if expr not in parts:
            parts[expr] = fresh("node_")
        return parts[expr]

    def visit(expr: sp.Basic) -> sp.Basic:
        # What a case does not need may not even be a number there.
        if isinstance(expr, Boolean | sp.Piecewise) or not expr.args:
            return expr
        if isinstance(expr, sp.Expr) and not expr.free_symbols & varying:
            return part(expr)
        arguments = list(expr.args)
        if isinstance(expr, sp.Add | sp.Mul):
            own = [a for a in arguments if not a.free_symbols & varying]
            arguments = [a for a in arguments if a.free_symbols & varying]
            if own:
                return expr.func(part(expr.func(*own)), *map(visit, arguments))
        return expr.func(*map(visit, arguments))

    of_node, of_grid = [], []
    for a in locals_:
        if a.value.free_symbols & varying:
            varying.add(a.target)
            of_grid.append(Assign(a.target, visit(a.value)))
        else:
            of_node.append(a)
    rest = tuple(map(visit, values))
    of_node += [Assign(symbol, expr) for expr, symbol in parts.items()]
    return len(of_node), in_order([*of_node, *of_grid]), rest


def in_order(assigns: Iterable[Assign]) -> tuple[Assign, ...]:
    """Order assignments so that each uses only earlier ones; stable otherwise."""
    waiting = list(assigns)
    targets = {a.target for a in waiting}
    done: set[sp.Symbol] = set()
    ordered: list[Assign] = []
    while waiting:
        rest = []
        for a in waiting:
            if (a.value.free_symbols & targets) <= done:
                ordered.append(a)
                done.add(a.target)
            else:
                rest.append(a)
        if len(rest) == len(waiting):
            raise EmissionError(f"circular definitions: {', '.join(str(a.target) for a in rest)}")
        waiting = rest
    return tuple(ordered)


def _shared(
    values: list[sp.Expr], fresh: FreshSymbols, prefix: str
) -> tuple[list[tuple[sp.Symbol, sp.Expr]], list[sp.Expr]]:
    """Return common subexpressions with their symbols, and what is left of the values."""
    replacements, reduced = sp.cse(
        values, symbols=fresh.endless(prefix), optimizations=[], order="none"
    )
    # Comparisons stay where they are: what has a name in a program is a number.
    comparisons: dict[sp.Symbol, sp.Basic] = {}
    kept = []
    for symbol, value in replacements:
        value = value.xreplace(comparisons)
        if isinstance(value, Boolean):
            comparisons[symbol] = value
        else:
            kept.append((symbol, value))
    return kept, [value.xreplace(comparisons) for value in reduced]


def _share_reciprocals(
    integrands: list[sp.Expr], fresh: FreshSymbols
) -> tuple[list[Assign], list[sp.Expr]]:
    """Divide once: every base**(-n) with a sum as its base becomes a power of one reciprocal."""
    inverses: dict[sp.Expr, sp.Symbol] = {}
    table = {}
    for integrand in integrands:
        for power in parts_of(integrand, sp.Pow):
            if power.base.is_Add and power.exp.is_Integer and power.exp < 0:
                if power.base not in inverses:
                    inverses[power.base] = fresh("inverse_")
                table[power] = inverses[power.base] ** (-power.exp)
    assigns = [Assign(symbol, 1 / base) for base, symbol in inverses.items()]
    return assigns, [replaced(integrand, table) for integrand in integrands]


def _share_roots(
    integrands: list[sp.Expr], fresh: FreshSymbols
) -> tuple[list[Assign], list[sp.Expr]]:
    """Take one root: every base**(-n/2) becomes a power of 1/sqrt(base)."""
    assigns: list[Assign] = []
    while True:
        powers = {
            p
            for f in integrands
            for p in parts_of(f, sp.Pow)
            if p.exp.is_Rational and p.exp.q == 2 and p.exp.p < 0 and p.base.free_symbols
        }
        # Innermost first: a base may hold another root.
        bases = {p.base for p in powers if not p.base.atoms(sp.Pow) & powers}
        if not bases:
            return assigns, integrands
        for base in sorted(bases, key=sp.default_sort_key):
            root = fresh("root_")
            assigns.append(Assign(root, 1 / sp.sqrt(base)))
            table = {p: root ** (-2 * p.exp) for p in powers if p.base == base}
            integrands = [replaced(f, table) for f in integrands]


def _share_products(
    integrands: list[sp.Expr], inverses: set[sp.Symbol], fresh: FreshSymbols
) -> tuple[list[Assign], list[sp.Expr]]:
    """Build integrands with a squared reciprocal from two of those with the reciprocal itself."""
    simple = [f for f in integrands if f.is_Mul and inverses & set(f.args)]
    pairs = {f * g: (f, g) for i, f in enumerate(simple) for g in simple[i:]}
    used = {f: None for h in integrands for f in pairs.get(h, ())}
    symbols = {f: fresh("product_") for f in used}
    products = [Assign(symbol, f) for f, symbol in symbols.items()]
    found = []
    for h in integrands:
        f, g = pairs.get(h, (h, sp.S.One))
        found.append(symbols.get(f, f) * symbols.get(g, g))
    return products, found
