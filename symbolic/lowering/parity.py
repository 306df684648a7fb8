"""Find out whether all sums over the nodes are even, so that half of the line suffices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp

from ..gaussian import GaussianExpectation
from .product_measures import ProductMeasure
from .program import Line, Program
from .reflections import parity_under


def sums_are_even(
    program: Program,
    node: sp.Symbol,
    definitions: Mapping[sp.Expr, sp.Expr],
    functions: Mapping[sp.Expr, sp.Symbol],
) -> bool:
    """Tell whether every summand of the program is provably even in the node.

    Parameters
    ----------
    program : Program
    node : Symbol
    definitions : mapping from applied function to Expr
        Meaning of each table as an expression in the node and in other applied functions.
    functions : mapping from applied function to table symbol
    """
    reflection: dict[sp.Expr, sp.Expr] = {node: -node}
    applied: dict[sp.Expr, sp.Expr] = {node: -node}
    for function, definition in definitions.items():
        sign = _parity(definition, node, applied)
        if sign is None:
            return False
        reflection[functions[function]] = sign * functions[function]
        applied[function] = sign * function
    for loop in program.loops():
        if not isinstance(loop.measure, Line):
            continue
        local = {a.target: a.value for a in loop.locals}
        for a in loop.sums:
            value = _inline(a.value, local)
            if not _equal(value.xreplace(reflection), value):
                return False
    return True


def averages_are_even(
    places: Iterable[sp.Expr],
    node: sp.Symbol,
    definitions: Mapping[sp.Expr, sp.Expr],
    product: ProductMeasure,
) -> bool:
    """Tell whether every average on a grid is provably even in all its nodes at once.

    The integrands of the equations tell of those of the Jacobian: what is even for all values of
    the unknowns has even derivatives with respect to them.

    Parameters
    ----------
    places : iterable of Expr
        Equations and outputs.
    node : Symbol
    definitions : mapping from applied function to Expr
        Tables of the node.
    product : ProductMeasure
    """
    applied: dict[sp.Expr, sp.Expr] = {node: -node}
    for function, definition in definitions.items():
        sign = _parity(definition, node, applied)
        if sign is None:
            return False
        applied[function] = sign * function
    applied |= {x: -x for x in product.symbols}
    # What a table on the grid stands for shows more than the table: P(y) of one label has no
    # parity, but P(y) f(y) + P(-y) f(-y) may have one.
    meaning = {**product.nodes, **product.definitions}
    # The node of a table is that of the line, whose reflection has been done by its sign.
    marks = {f: sp.Dummy(real=True, nonnegative=f.is_nonnegative) for f in definitions}
    reflection = {marks.get(f, f): value.xreplace(marks) for f, value in applied.items()}
    integrands = {n.integrand for p in places for n in p.atoms(GaussianExpectation)}
    return all(
        parity_under(f.xreplace(meaning).xreplace(marks), reflection) == 1 for f in integrands
    )


def _inline(value: sp.Expr, local: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    while value.free_symbols & set(local):
        value = value.xreplace(dict(local))
    return value


def _parity(definition: sp.Expr, node: sp.Symbol, applied: dict[sp.Expr, sp.Expr]) -> int | None:
    reflected = _reflect(definition, applied)
    if _equal(reflected, definition):
        return 1
    return -1 if _equal(reflected, -definition) else None


def _reflect(expr: sp.Expr, applied: dict[sp.Expr, sp.Expr]) -> sp.Expr:
    """Reflect the node, and with it every inner Gaussian variable, whose law is symmetric."""
    inner = {n.variable: -n.variable for n in expr.atoms(GaussianExpectation)}
    if not inner:
        return expr.xreplace(applied)
    (variable,) = inner if len(inner) == 1 else (None,)
    if variable is None:
        return expr.xreplace(applied)
    # The bound variable is free inside the integrand only, so reflect node by node.
    reflected = {
        n: GaussianExpectation(n.integrand.xreplace({**applied, **inner}), n.variable)
        for n in expr.atoms(GaussianExpectation)
    }
    marks = {n: sp.Dummy() for n in reflected}
    rest = expr.xreplace(marks).xreplace(applied)
    return rest.xreplace({marks[n]: value for n, value in reflected.items()})


def _equal(left: sp.Expr, right: sp.Expr) -> bool:
    if left == right:
        return True
    difference = left - right
    if difference.has(GaussianExpectation):
        nodes = difference.atoms(GaussianExpectation)
        variables = {n.variable for n in nodes}
        if len(variables) != 1:
            return False
        # E[f] - E[g] = E[f - g]: compare the integrands; E[f]**2 is another matter.
        if not _is_affine(difference, nodes):
            return False
        difference = difference.xreplace({n: n.integrand for n in nodes})
    return bool(sp.expand(difference) == 0)


def _is_affine(expr: sp.Expr, nodes: set[GaussianExpectation]) -> bool:
    marks = {n: sp.Dummy() for n in nodes}
    marked = expr.xreplace(marks)
    return all(not marked.diff(m).free_symbols & set(marks.values()) for m in marks.values())
