"""Pass 6: put computations in order, with as few passes over the nodes as possible.

Scalars are computed as soon as their inputs are known; only when nothing else can go on are all
sums that are ready collected, one pass for each measure. Proximal operators without a closed form
become functions that an equation defines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import sympy as sp

from ...errors import EmissionError
from ..expressions.averages import DataAverage, outermost as nodes_of
from ..expressions.shared_parts import parts_of, replaced
from ..gaussian.accuracy import rewrite_for_accuracy
from ..gaussian.expectation import GaussianExpectation
from ..losses.proximal import MoreauEnvelope, Proximal
from ..systems.random_matrix import MarchenkoPasturAverage, Resolvent
from .fuse import Abs, FreshSymbols, Item, Size
from .inner_averages import InnerAverage, InnerScale
from .measures import break_points
from .program import (
    Assign,
    Data,
    InnerPass,
    Line,
    LinearSolve,
    Measure,
    NodeLoop,
    Panels,
    ScalarRoot,
)
from .sharing import share_in_loop, share_scalars, split_off, take_out_invariants


class Roots:
    """Gives each proximal operator a function, and one only."""

    def __init__(self) -> None:
        self._found: dict[tuple[sp.Expr, sp.Symbol], ScalarRoot] = {}

    @property
    def functions(self) -> tuple[ScalarRoot, ...]:
        """All functions that were made."""
        return tuple(self._found.values())

    def called(self, expr: sp.Expr) -> sp.Expr:
        """Replace proximal operators and Moreau envelopes by calls of these functions."""
        expr = expr.xreplace({m: m.rewrite(Proximal) for m in parts_of(expr, MoreauEnvelope)})
        while True:
            # Innermost first: the centre of one may hold another.
            found = [p for p in parts_of(expr, Proximal) if not p.center.has(Proximal)]
            if not found:
                return expr
            expr = expr.xreplace({p: self._call(p) for p in found})

    def _call(self, node: Proximal) -> sp.Expr:
        loss, x = node.loss, node.variable
        key = (loss, x)
        parameters = sorted(loss.free_symbols - {x}, key=str)
        if key not in self._found:
            self._found[key] = _root(f"proximal_{len(self._found) + 1}", loss, x, parameters)
        function = sp.Function(self._found[key].name, real=True)
        return function(node.center, node.step, *parameters)


def _root(name: str, loss: sp.Expr, x: sp.Symbol, parameters: list[sp.Symbol]) -> ScalarRoot:
    unknown = sp.Symbol("root_x", real=True)
    center = sp.Symbol("root_center", real=True)
    step = sp.Symbol("root_step", positive=True)
    arguments = {p: sp.Symbol(f"root_{k}", **p.assumptions0) for k, p in enumerate(parameters)}
    # Where a loss has a kink its derivative jumps and the bracket closes in on the kink; the
    # second derivative there is never asked for.
    first = loss.diff(x)
    second = first.diff(x).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
    renamed = {x: unknown, **arguments}
    first, second = (rewrite_for_accuracy(f.xreplace(renamed)) for f in (first, second))
    return ScalarRoot(
        name=name,
        unknown=unknown,
        arguments=(center, step, *arguments.values()),
        residual=unknown - center + step * first,
        slope=1 + step * second,
        start=center,
    )


_Ordered = Assign | LinearSolve | NodeLoop


class Scheduler:
    """Collects definitions and orders them into steps.

    Parameters
    ----------
    node : Symbol
        The variable of the outer 𝔼 nodes, as a code symbol.
    functions : mapping from applied function to Symbol
        Functions of the node and the code symbols of their tables.
    fresh : FreshSymbols
    inner : collection of Symbol
        Inner nodes and tables on their grid. If there are any, passes are long, and what saves
        time at a node pays.
    """

    def __init__(
        self,
        node: sp.Symbol,
        functions: Mapping[sp.Expr, sp.Symbol],
        fresh: FreshSymbols,
        *,
        inner: Collection[sp.Symbol] = (),
    ) -> None:
        self._inner = frozenset(inner)
        self.functions = dict(functions)
        self.node = node
        self.tables = (node, *functions.values())
        self.roots = Roots()
        self._fresh = fresh
        self._sums: dict[tuple[Measure, sp.Expr], sp.Symbol] = {}
        self._sum_of: dict[sp.Expr, sp.Symbol] = {}
        self._resolvents: dict[sp.Expr, sp.Symbol] = {}
        self._breaks: dict[sp.Expr, sp.Symbol] = {}
        self._averages: dict[sp.Expr, sp.Symbol] = {}
        self._scales: dict[sp.Expr, sp.Symbol] = {}

    def order(self, items: Iterable[Item], known: Iterable[sp.Symbol]) -> tuple[_Ordered, ...]:
        """Return `items` and the passes and scalars that they need, in an order that works.

        Calls share their sums, so their steps have to run in the order of the calls.

        Parameters
        ----------
        items : iterable of Assign or LinearSolve
            Values may hold 𝔼 nodes over the node variable, data averages, Marchenko–Pastur
            averages and proximal operators.
        known : iterable of Symbol
            Scalars that are available before the first step.

        Raises
        ------
        EmissionError
            If the definitions are circular or use a symbol that nothing defines.
        """
        # Sums of earlier calls stay: what Newton's last evaluation found is not computed again.
        computed = {*self._sums.values(), *self._resolvents.values(), *self._breaks.values()}
        pending: list[Item] = [self._extract(item) for item in items]
        pending += [
            Assign(s, g.rewrite(sp.Piecewise))
            for g, s in self._resolvents.items()
            if s not in computed
        ]
        pending += [Assign(s, place) for place, s in self._breaks.items() if s not in computed]
        waiting = {s: key for key, s in self._sums.items() if s not in computed}
        available = set(known) | computed
        steps: list[_Ordered] = []
        # Free symbols of large expressions take long: once for each item, not in every round.
        inputs = [(item, item.reads) for item in pending]
        while inputs or waiting:
            ready = [item for item, needed in inputs if needed <= available]
            if ready:
                steps += ready
                inputs = [(item, needed) for item, needed in inputs if not needed <= available]
                for item in ready:
                    available |= item.writes
                continue
            now = {s: key for s, key in waiting.items() if self._needs(*key) <= available}
            if not now:
                lacking = set().union(*(needed for _, needed in inputs))
                lacking = lacking.union(*(self._needs(*key) for key in waiting.values()))
                missing = ", ".join(sorted(map(str, lacking - available)))
                raise EmissionError(f"circular or undefined: {missing}")
            steps += self._loops(now)
            available |= set(now)
            waiting = {s: key for s, key in waiting.items() if s not in now}
        return self._share(steps)

    def _extract(self, item: Item) -> Item:
        if isinstance(item, LinearSolve):
            return item
        value = item.value
        averages = nodes_of(value, MarchenkoPasturAverage)
        value = value.xreplace({node: node.doit() for node in averages})
        nodes = nodes_of(value, GaussianExpectation, DataAverage)
        for node in nodes:
            # Derivatives by several unknowns share their averages.
            if node not in self._sum_of:
                self._sum_of[node] = self._sum(node)
        value = value.xreplace(self._sum_of)
        for node in nodes_of(value, Resolvent):
            if node not in self._resolvents:
                self._resolvents[node] = self._fresh("resolvent_")
        value = _plain_sizes(value.xreplace(self._resolvents))
        return Assign(item.target, self.roots.called(value))

    def _sum(self, node: sp.Expr) -> sp.Symbol:
        integrand = node.args[0]
        measure: Measure
        if isinstance(node, DataAverage):
            measure, columns = self._data(node)
            integrand = _plain_sizes(integrand).xreplace(columns)
        else:
            breaks = break_points(integrand, self.node)
            averages = nodes_of(integrand, InnerAverage, InnerScale)
            measure = self._panels(breaks) if breaks else Line(nested=bool(averages))
            integrand = replaced(integrand, {n: self._inner_result(n) for n in averages})
            integrand = replaced(_plain_sizes(integrand), self.functions)
        key = measure, self.roots.called(integrand)
        if key not in self._sums:
            self._sums[key] = self._fresh("sum_")
        return self._sums[key]

    def _inner_result(self, node: InnerAverage | InnerScale) -> sp.Symbol:
        """Return the value at a node that an average or a scale has there."""
        if isinstance(node, InnerScale):
            known, value, name = self._scales, node.value, "scale_"
        else:
            scales = nodes_of(node.function, InnerScale)
            value = node.function.xreplace({n: self._inner_result(n) for n in scales})
            known, name = self._averages, "average_"
        value = self.roots.called(_plain_sizes(value).xreplace(self.functions))
        if value not in known:
            known[value] = self._fresh(name)
        return known[value]

    def _panels(self, breaks: Iterable[sp.Expr]) -> Panels:
        for place in breaks:
            if place not in self._breaks:
                self._breaks[place] = self._fresh("break_")
        return Panels(self.node, tuple(sorted((self._breaks[b] for b in breaks), key=str)))

    def _data(self, node: DataAverage) -> tuple[Data, dict[sp.Expr, sp.Symbol]]:
        name = node.data_name
        codes: dict[sp.Expr, sp.Symbol] = {
            c: sp.Symbol(f"{name}_{c.name}", **c.assumptions0) for c in node.columns
        }
        return Data(name, tuple(codes.values())), codes

    def _needs(self, measure: Measure, integrand: sp.Expr) -> set[sp.Symbol]:
        """Return the scalars that a sum is computed from."""
        if isinstance(measure, Data):
            return set(integrand.free_symbols - set(measure.columns))
        values = {s: v for known in (self._averages, self._scales) for v, s in known.items()}
        needs: set[sp.Symbol] = integrand.free_symbols
        while inner := needs & set(values):
            needs = (needs - inner).union(*(values[s].free_symbols for s in inner))
        needs -= set(self.tables)
        return needs | set(measure.breaks) if isinstance(measure, Panels) else needs

    def _loops(self, sums: Mapping[sp.Symbol, tuple[Measure, sp.Expr]]) -> list[_Ordered]:
        """Return one pass for each measure, and before it what is the same at all nodes."""
        groups: dict[Measure, dict[sp.Symbol, sp.Expr]] = {}
        for s, (measure, integrand) in sums.items():
            groups.setdefault(measure, {})[s] = integrand
        found: list[_Ordered] = []
        for measure, group in groups.items():
            varying = measure.columns if isinstance(measure, Data) else self.tables
            varying = (*varying, *self._averages.values(), *self._scales.values())
            before, integrands = take_out_invariants(list(group.values()), varying, self._fresh)
            loop = self._loop(measure, dict(zip(group, integrands, strict=True)))
            found += [*before, loop]
        return found

    def _loop(self, measure: Measure, sums: Mapping[sp.Symbol, sp.Expr]) -> NodeLoop:
        roots = bool(self._inner)
        if isinstance(measure, Line) and measure.nested:
            return self._nested_loop(measure, sums)
        locals_, reduced = share_in_loop(list(sums.values()), self._fresh, roots=roots)
        of_node = 0
        if self._inner and isinstance(measure, Line):
            of_node, locals_, reduced = split_off(locals_, reduced, self._inner, self._fresh)
        totals = tuple(Assign(s, value) for s, value in zip(sums, reduced, strict=True))
        used = set().union(*(a.value.free_symbols for a in (*locals_, *totals)))
        arrays: tuple[sp.Symbol, ...] = ()
        if isinstance(measure, Line):
            arrays = self.tables
        elif isinstance(measure, Data):
            arrays = measure.columns
        return NodeLoop(tuple(t for t in arrays if t in used), locals_, totals, measure, of_node)

    def _nested_loop(self, measure: Line, sums: Mapping[sp.Symbol, sp.Expr]) -> NodeLoop:
        locals_, reduced = share_in_loop(list(sums.values()), self._fresh, roots=True)
        totals = tuple(Assign(s, value) for s, value in zip(sums, reduced, strict=True))
        averages = self._read(self._averages, (*locals_, *totals))
        means = self._inner_pass(averages)
        scales = self._read(self._scales, (*averages, *locals_, *totals))
        passes = [self._inner_pass(scales, largest=True)] if scales else []
        loop = NodeLoop((), locals_, totals, measure, inner=(*passes, means))
        used = set().union(*(a.value.free_symbols for a in (*loop.at_nodes, *totals)))
        return replace(loop, tables=tuple(t for t in self.tables if t in used))

    @staticmethod
    def _read(known: Mapping[sp.Expr, sp.Symbol], by: Iterable[Assign]) -> list[Assign]:
        """Return what assignments read of the values that are known."""
        used = set().union(*(a.value.free_symbols for a in by))
        return [Assign(symbol, value) for value, symbol in known.items() if symbol in used]

    def _inner_pass(self, results: Iterable[Assign], *, largest: bool = False) -> InnerPass:
        targets = [a.target for a in results]
        values = [a.value for a in results]
        locals_, reduced = share_in_loop(values, self._fresh, roots=True)
        n, locals_, reduced = split_off(locals_, reduced, self._inner, self._fresh)
        found = tuple(map(Assign, targets, reduced))
        return InnerPass(locals_[:n], locals_[n:], found, largest)

    def _share(self, steps: Iterable[_Ordered]) -> tuple[_Ordered, ...]:
        """Share subexpressions inside each run of scalar assignments."""
        shared: list[_Ordered] = []
        run: list[Assign] = []
        for step in steps:
            if isinstance(step, Assign):
                run.append(step)
                continue
            shared += share_scalars(run, self._fresh)
            run.clear()
            shared.append(step)
        return (*shared, *share_scalars(run, self._fresh))


def _plain_sizes(expr: sp.Expr) -> sp.Expr:
    """Write sizes as the absolute values that they are, the measure being chosen."""
    return expr.replace(Size, Abs) if parts_of(expr, Size) else expr
