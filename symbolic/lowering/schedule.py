"""Put computations in order, with as few passes over the quadrature nodes as possible.

Scalars are computed as soon as their inputs are known; only when nothing else can go on are all
sums that are ready collected into one pass. Expressions inside a pass share subexpressions and
reciprocals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import sympy as sp

from ...errors import EmissionError
from ..gaussian import GaussianExpectation
from ..random_matrix import MarchenkoPasturAverage, Resolvent
from .program import Assign, LinearSolve, NodeLoop


class Scheduler:
    """Collects definitions and orders them into steps.

    Parameters
    ----------
    node : Symbol
        The variable of the outer 𝔼 nodes, as a code symbol.
    functions : mapping from applied function to Symbol
        Functions of the node and the code symbols of their tables.
    """

    def __init__(self, node: sp.Symbol, functions: Mapping[sp.Expr, sp.Symbol]) -> None:
        self.functions = dict(functions)
        self.tables = (node, *functions.values())
        self._counter = 0
        self._sums: dict[sp.Expr, sp.Symbol] = {}
        self._resolvents: dict[sp.Expr, sp.Symbol] = {}

    def fresh(self, prefix: str) -> sp.Symbol:
        """Return a new code symbol."""
        self._counter += 1
        return sp.Symbol(f"{prefix}{self._counter}", real=True)

    def order(
        self, items: Iterable[Assign | LinearSolve], known: Iterable[sp.Symbol]
    ) -> tuple[Assign | LinearSolve | NodeLoop, ...]:
        """Return `items` and the passes and scalars that they need, in an order that works.

        Calls share their sums, so their steps have to run in the order of the calls.

        Parameters
        ----------
        items : iterable of Assign or LinearSolve
            Values may hold 𝔼 nodes over the node variable and Marchenko–Pastur averages.
        known : iterable of Symbol
            Scalars that are available before the first step.

        Raises
        ------
        EmissionError
            If the definitions are circular or use a symbol that nothing defines.
        """
        # Sums of earlier calls stay: what Newton's last evaluation found is not computed again.
        computed = {*self._sums.values(), *self._resolvents.values()}
        pending: list[Assign | LinearSolve] = [self._extract(item) for item in items]
        pending += [
            Assign(s, g.rewrite(sp.Piecewise))
            for g, s in self._resolvents.items()
            if s not in computed
        ]
        waiting = {
            s: integrand.xreplace(self.functions)
            for integrand, s in self._sums.items()
            if s not in computed
        }
        available = set(known) | computed
        steps: list[Assign | LinearSolve | NodeLoop] = []
        while pending or waiting:
            ready = [item for item in pending if _inputs(item) <= available]
            if ready:
                steps += ready
                for item in ready:
                    available |= _results(item)
                pending = [item for item in pending if item not in ready]
                continue
            now = {
                s: f for s, f in waiting.items() if f.free_symbols - set(self.tables) <= available
            }
            if not now:
                missing = set().union(*map(_inputs, pending)) - available
                raise EmissionError(f"circular or undefined: {', '.join(map(str, missing))}")
            steps.append(self._loop(now))
            available |= set(now)
            waiting = {s: f for s, f in waiting.items() if s not in now}
        return self._share(steps)

    def _extract(self, item: Assign | LinearSolve) -> Assign | LinearSolve:
        if isinstance(item, LinearSolve):
            return item
        value = item.value
        averages = value.atoms(MarchenkoPasturAverage)
        value = value.xreplace({node: node.doit() for node in averages})
        for node in value.atoms(GaussianExpectation):
            self._sums.setdefault(node.integrand, self.fresh("sum_"))
        value = value.xreplace(
            {node: self._sums[node.integrand] for node in value.atoms(GaussianExpectation)}
        )
        for node in value.atoms(Resolvent):
            self._resolvents.setdefault(node, self.fresh("resolvent_"))
        return Assign(item.target, value.xreplace(self._resolvents))

    def _loop(self, sums: dict[sp.Symbol, sp.Expr]) -> NodeLoop:
        inverses, integrands = _share_reciprocals(
            list(sums.values()), lambda: self.fresh("inverse_")
        )
        products, integrands = _share_products(
            integrands, {a.target for a in inverses}, lambda: self.fresh("product_")
        )
        shared = inverses + products
        replacements, reduced = sp.cse(
            [*(a.value for a in shared), *integrands],
            symbols=_names(self, "node_"),
            optimizations=[],
            order="none",
        )
        own = [Assign(a.target, v) for a, v in zip(shared, reduced[: len(shared)], strict=True)]
        locals_ = _sorted([Assign(*pair) for pair in replacements] + own)
        totals = tuple(
            Assign(s, value) for s, value in zip(sums, reduced[len(shared) :], strict=True)
        )
        used = set().union(*(a.value.free_symbols for a in (*locals_, *totals)))
        return NodeLoop(tuple(t for t in self.tables if t in used), locals_, totals)

    def _share(
        self, steps: list[Assign | LinearSolve | NodeLoop]
    ) -> tuple[Assign | LinearSolve | NodeLoop, ...]:
        """Share subexpressions inside each run of scalar assignments."""
        shared: list[Assign | LinearSolve | NodeLoop] = []
        run: list[Assign] = []

        def flush() -> None:
            if run:
                values = [a.value for a in run]
                replacements, reduced = sp.cse(
                    values, symbols=_names(self, "scalar_"), optimizations=[], order="none"
                )
                assigns = [Assign(*pair) for pair in replacements]
                assigns += [Assign(a.target, v) for a, v in zip(run, reduced, strict=True)]
                shared.extend(_sorted(assigns))
                run.clear()

        for step in steps:
            if isinstance(step, Assign):
                run.append(step)
            else:
                flush()
                shared.append(step)
        flush()
        return tuple(shared)


def _names(scheduler: Scheduler, prefix: str) -> Iterable[sp.Symbol]:
    while True:
        yield scheduler.fresh(prefix)


def _inputs(item: Assign | LinearSolve) -> set[sp.Symbol]:
    if isinstance(item, Assign):
        return set(item.value.free_symbols)
    return {x for row in item.matrix for x in row} | set(item.right_hand_side)


def _results(item: Assign | LinearSolve) -> set[sp.Symbol]:
    return {item.target} if isinstance(item, Assign) else set(item.unknowns)


def _sorted(assigns: list[Assign]) -> tuple[Assign, ...]:
    """Order assignments so that each uses only earlier ones; stable otherwise."""
    targets = {a.target for a in assigns}
    done: set[sp.Symbol] = set()
    ordered: list[Assign] = []
    while assigns:
        rest = []
        for a in assigns:
            if (a.value.free_symbols & targets) <= done:
                ordered.append(a)
                done.add(a.target)
            else:
                rest.append(a)
        if len(rest) == len(assigns):
            raise EmissionError(f"circular definitions: {', '.join(str(a.target) for a in rest)}")
        assigns = rest
    return tuple(ordered)


def _share_reciprocals(
    integrands: list[sp.Expr], fresh: Callable[[], sp.Symbol]
) -> tuple[list[Assign], list[sp.Expr]]:
    """Divide once: every base**(-n) with a sum as its base becomes a power of one reciprocal."""
    inverses: dict[sp.Expr, sp.Symbol] = {}
    table = {}
    for integrand in integrands:
        for power in integrand.atoms(sp.Pow):
            if power.base.is_Add and power.exp.is_Integer and power.exp < 0:
                inverse = inverses.setdefault(power.base, fresh())
                table[power] = inverse ** (-power.exp)
    assigns = [Assign(symbol, 1 / base) for base, symbol in inverses.items()]
    return assigns, [integrand.xreplace(table) for integrand in integrands]


def _share_products(
    integrands: list[sp.Expr], inverses: set[sp.Symbol], fresh: Callable[[], sp.Symbol]
) -> tuple[list[Assign], list[sp.Expr]]:
    """Build integrands with a squared reciprocal from two of those with the reciprocal itself.

    Newton's Jacobian averages products of what its residual averages.
    """
    simple = [f for f in integrands if f.is_Mul and inverses & set(f.args)]
    pairs = {f * g: (f, g) for i, f in enumerate(simple) for g in simple[i:]}
    used = {f: None for h in integrands for f in pairs.get(h, ())}
    symbols = {f: fresh() for f in used}
    products = [Assign(symbol, f) for f, symbol in symbols.items()]
    found = []
    for h in integrands:
        f, g = pairs.get(h, (h, sp.S.One))
        found.append(symbols.get(f, f) * symbols.get(g, g))
    return products, found
