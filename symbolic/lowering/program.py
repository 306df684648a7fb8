"""The intermediate form: what a kernel computes, before any target language.

A program solves a block-structured system for one set of parameters. Its steps run in order;
values are scalars, except inside a node loop, where every table holds one value per quadrature
node. Everything is explicit: no 𝔼, no eigenvalue average and no shared subexpression is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sympy as sp


@dataclass(frozen=True)
class Assign:
    """``target = value``, a scalar."""

    target: sp.Symbol
    value: sp.Expr

    def __str__(self) -> str:
        return f"{self.target} = {self.value}"


@dataclass(frozen=True)
class NodeLoop:
    """One pass over the quadrature nodes.

    Attributes
    ----------
    tables : tuple of Symbol
        Tables that the pass reads (the node itself counts as one).
    locals : tuple of Assign
        Values at the current node, in order.
    sums : tuple of Assign
        ``target += weight * value``.
    """

    tables: tuple[sp.Symbol, ...]
    locals: tuple[Assign, ...]
    sums: tuple[Assign, ...]

    def __str__(self) -> str:
        lines = [f"for each node ({', '.join(map(str, self.tables))}):"]
        lines += [f"    {a}" for a in self.locals]
        lines += [f"    {a.target} += weight * ({a.value})" for a in self.sums]
        return "\n".join(lines)


@dataclass(frozen=True)
class LinearSolve:
    """Solve ``matrix @ unknowns = right_hand_side``; all entries are scalars already assigned."""

    unknowns: tuple[sp.Symbol, ...]
    matrix: tuple[tuple[sp.Symbol, ...], ...]
    right_hand_side: tuple[sp.Symbol, ...]

    def __str__(self) -> str:
        return f"solve linear for {', '.join(map(str, self.unknowns))}"


@dataclass(frozen=True)
class Newton:
    """Newton's method in the logarithms of positive unknowns.

    Attributes
    ----------
    unknowns : tuple of Symbol
    start : tuple of Expr
        First values, expressions in the parameters.
    body : tuple of steps
        Computes residual and Jacobian at the current unknowns in one pass over the nodes.
    residual : tuple of Symbol
        ``log(unknown / value)``: relative residuals.
    jacobian : tuple of tuple of Symbol
        Derivatives of the residuals with respect to the logarithms of the unknowns.
    """

    unknowns: tuple[sp.Symbol, ...]
    start: tuple[sp.Expr, ...]
    body: tuple[Assign | NodeLoop, ...]
    residual: tuple[sp.Symbol, ...]
    jacobian: tuple[tuple[sp.Symbol, ...], ...]

    def __str__(self) -> str:
        inside = "\n".join(str(step) for step in self.body).replace("\n", "\n    ")
        return f"newton for log of {', '.join(map(str, self.unknowns))}:\n    {inside}"


Step = Assign | NodeLoop | LinearSolve | Newton


@dataclass(frozen=True)
class Program:
    """A lowered system of equations.

    Attributes
    ----------
    name : str
        What it solves; becomes part of file names.
    documentation : str
        Equations, parameters and source, for the docstring of the generated file.
    parameters : tuple of Symbol
        Inputs of one solve.
    tables : tuple of Symbol
        Functions of the node that the caller tabulates; the first is the node itself.
    steps : tuple of Step
    outputs : tuple of Symbol
        Scalars that a solve returns.
    magnitudes : mapping from Symbol to Symbol
        For outputs that are differences: the output that holds the sum of the absolute values of
        their terms, which sets the scale of their errors.
    even : bool
        Every sum is over an even function of the node, so half the nodes suffice.
    """

    name: str
    documentation: str
    parameters: tuple[sp.Symbol, ...]
    tables: tuple[sp.Symbol, ...]
    steps: tuple[Step, ...]
    outputs: tuple[sp.Symbol, ...]
    magnitudes: Mapping[sp.Symbol, sp.Symbol]
    even: bool

    def loops(self) -> Iterator[NodeLoop]:
        """Iterate over all passes over the nodes, those inside Newton included."""
        for step in self.steps:
            if isinstance(step, NodeLoop):
                yield step
            elif isinstance(step, Newton):
                yield from (inner for inner in step.body if isinstance(inner, NodeLoop))

    def __str__(self) -> str:
        head = (
            f"program {self.name}({', '.join(map(str, self.parameters))})\n"
            f"tables {', '.join(map(str, self.tables))}"
            f"{' on half of the line (all sums are even)' if self.even else ''}"
        )
        tail = f"return {', '.join(map(str, self.outputs))}"
        return "\n".join([head, *(str(step) for step in self.steps), tail])


def rename(expr: sp.Expr, names: Mapping[sp.Expr, sp.Symbol]) -> sp.Expr:
    """Replace symbols and applied functions of the node by plain symbols with code names."""
    return expr.xreplace(dict(names))
