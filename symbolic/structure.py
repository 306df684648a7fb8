"""In which order a system of equations is solved, and which parts of it are linear.

The dependency graph has the unknowns as its nodes; its strongly connected components, in
topological order, are the smallest systems that can be solved one after the other. Inside a
component, explicit unknowns are eliminated until a small core is left. Neighbouring components
that are jointly linear form one block, because one pass over the quadrature nodes serves them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp
from sympy.utilities.iterables import strongly_connected_components

from .equations import Equation


@dataclass(frozen=True)
class Component:
    """A strongly connected component: its core unknowns and what is eliminated.

    Attributes
    ----------
    core : tuple of Equation
        Equations that are solved together.
    eliminated : tuple of Equation
        Explicit equations ``x = value`` in the order of evaluation, given the core (and earlier
        components).
    """

    core: tuple[Equation, ...]
    eliminated: tuple[Equation, ...]

    @property
    def unknowns(self) -> tuple[sp.Symbol, ...]:
        """All unknowns of the component, core first."""
        return tuple(e.unknown for e in self.core + self.eliminated)


@dataclass(frozen=True)
class Block:
    """Components that are solved in one go, jointly linear or one nonlinear component."""

    components: tuple[Component, ...]
    linear: bool

    @property
    def unknowns(self) -> tuple[sp.Symbol, ...]:
        """All unknowns of the block."""
        return tuple(x for c in self.components for x in c.unknowns)

    def describe(self) -> str:
        """Return one line: how many unknowns, how they are solved, what follows explicitly."""
        sizes = [len(c.core) for c in self.components]
        cores = [", ".join(str(e.unknown) for e in c.core) for c in self.components]
        coupled = [f"{{{n}}}" for n, size in zip(cores, sizes, strict=True) if size]
        n = sum(sizes)
        noun = "unknown" if n == 1 else "unknowns"
        how = f"{n} {noun} linear" if self.linear else f"{n} {noun} Newton"
        eliminated = [str(e.unknown) for c in self.components for e in c.eliminated]
        if n == 0:
            return f"explicit: {', '.join(eliminated)}"
        text = f"{how} {' '.join(coupled)}".rstrip()
        return text + (f", then {', '.join(eliminated)}" if eliminated else "")


@dataclass(frozen=True)
class BlockStructure:
    """The blocks of a system in the order in which they are solved."""

    blocks: tuple[Block, ...]

    def describe(self) -> str:
        """Return the structure as text, one block after the other."""
        n = len(self.blocks)
        head = f"{n} block{'s' if n != 1 else ''}: "
        return head + "; ".join(block.describe() for block in self.blocks)

    def __str__(self) -> str:
        return self.describe()


def block_structure(equations: Sequence[Equation]) -> BlockStructure:
    """Analyse a system of equations.

    Parameters
    ----------
    equations : sequence of Equation
        One for each unknown.

    Returns
    -------
    BlockStructure
        Nonlinear components alone; runs of components that are jointly linear merged.
    """
    return _block_structure(tuple(equations))


# Checks, printing and lowering ask for it of the same equations.
@lru_cache(maxsize=32)
def _block_structure(equations: tuple[Equation, ...]) -> BlockStructure:
    by_unknown = {e.unknown: e for e in equations}
    unknowns = set(by_unknown)
    edges = [
        (e.unknown, x)
        for e in equations
        for x in sorted((e.residual.free_symbols & unknowns) - {e.unknown}, key=str)
    ]
    order = strongly_connected_components((list(by_unknown), edges))
    # The order of the system, not of the graph algorithm, decides between equal choices.
    position = {x: i for i, x in enumerate(by_unknown)}
    components = [
        _tear([by_unknown[x] for x in sorted(members, key=position.__getitem__)])
        for members in order
    ]
    blocks: list[Block] = []
    for component in components:
        if blocks and blocks[-1].linear and is_linear((*blocks[-1].components, component)):
            blocks[-1] = Block((*blocks[-1].components, component), True)
        else:
            blocks.append(Block((component,), is_linear((component,))))
    return BlockStructure(tuple(blocks))


def is_linear(components: Iterable[Component]) -> bool:
    """Tell whether the equations of the components are jointly affine in their unknowns."""
    equations = [e for c in components for e in c.core + c.eliminated]
    unknowns = {e.unknown for e in equations}
    conditions = (
        condition
        for e in equations
        for cases in e.residual.atoms(sp.Piecewise)
        for _, condition in cases.args
    )
    if any(condition.free_symbols & unknowns for condition in conditions):
        # Constant branches have no derivative by an unknown that chooses between them.
        return False
    return all(
        not e.residual.diff(x).free_symbols & unknowns
        for e in equations
        for x in e.residual.free_symbols & unknowns
    )


def _tear(equations: Sequence[Equation]) -> Component:
    """Eliminate explicit unknowns, the last ones (conjugates) first, while no circle closes."""
    if len(equations) == 1 and _is_explicit(equations[0]):
        return Component((), tuple(equations))
    eliminated: list[Equation] = []
    for candidate in reversed(equations):
        if not _is_explicit(candidate) or len(eliminated) == len(equations) - 1:
            continue
        ordered = _evaluation_order([*eliminated, candidate])
        if ordered is not None:
            eliminated = ordered
    gone = {e.unknown for e in eliminated}
    core = tuple(e for e in equations if e.unknown not in gone)
    return Component(core, tuple(eliminated))


def _is_explicit(equation: Equation) -> bool:
    # A fixed-point form x = f(x) gives Newton a residual, but x is not known from it.
    return equation.value is not None and equation.unknown not in equation.value.free_symbols


def _evaluation_order(equations: Sequence[Equation]) -> list[Equation] | None:
    """Order explicit equations so that each uses only earlier ones; None if they are circular."""
    ordered: list[Equation] = []
    rest = list(equations)
    while rest:
        pending = {e.unknown for e in rest}
        ready = [e for e in rest if not e.residual.free_symbols & (pending - {e.unknown})]
        if not ready:
            return None
        ordered += ready
        rest = [e for e in rest if e not in ready]
    return ordered
