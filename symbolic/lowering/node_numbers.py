"""What passes over nodes read, as numbers of the kind that the nodes have.

Sums over nodes take nearly all of the time of many digits. Their nodes and weights may be numbers
that are faster than those of everything else (:mod:`giantstep.numeric.fast_nodes`); then scalars
and constants have to become such numbers before a pass begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import sympy as sp

from .fuse import FreshSymbols
from .program import Assign, Newton, NodeLoop, Panels, Program, Step

NODE_NUMBER = sp.Function("node_number", real=True)
"""Turns a number into one of the kind that nodes have."""
TOTAL = sp.Function("total", real=True)
"""Turns a sum over nodes into a number of the usual kind."""


def with_node_numbers(program: Program) -> Program:
    """Return the program with every scalar and constant of a pass turned into a number of nodes.

    Passes whose nodes move with the unknowns read usual numbers; all sums are turned back.
    """
    fresh = FreshSymbols(map(str, program.declarations))

    def steps(those: Iterable[Step]) -> Iterator[Step]:
        for step in those:
            if isinstance(step, NodeLoop):
                yield from _turned(step, fresh)
            elif isinstance(step, Newton):
                # No step of Newton's method stands in another one.
                body: Any = tuple(steps(step.body))
                yield replace(step, body=body)
            else:
                yield step

    return replace(program, steps=tuple(steps(program.steps)))


def _turned(loop: NodeLoop, fresh: FreshSymbols) -> Iterator[Assign | NodeLoop]:
    scalars = set() if isinstance(loop.measure, Panels) else loop.reads
    known: dict[sp.Expr, sp.Symbol] = {}

    def turned(value: sp.Expr) -> sp.Expr:
        constant = value.is_number and not value.is_Integer
        if value in scalars or (constant and not isinstance(loop.measure, Panels)):
            if value not in known:
                known[value] = fresh("at_nodes_")
            return known[value]
        if value.is_Pow and value.exp.is_number:
            return sp.Pow(turned(value.base), value.exp)
        return value if value.is_Atom else value.func(*map(turned, value.args))

    def all_of(those: Iterable[Assign]) -> tuple[Assign, ...]:
        return tuple(Assign(a.target, turned(a.value)) for a in those)

    inner = tuple(
        replace(
            those, before=all_of(those.before), locals=all_of(those.locals),
            results=all_of(those.results),
        )
        for those in loop.inner
    )  # fmt: skip
    locals_, sums = all_of(loop.locals), all_of(loop.sums)
    totals = {a.target: fresh("total_") for a in sums}
    sums = tuple(Assign(totals[a.target], a.value) for a in sums)
    yield from (Assign(symbol, NODE_NUMBER(value)) for value, symbol in known.items())
    yield replace(loop, locals=locals_, sums=sums, inner=inner)
    yield from (Assign(target, TOTAL(total)) for target, total in totals.items())
