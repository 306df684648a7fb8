"""Decide that an expression is zero, as a proof and not as a guess, and report what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.polys.polyerrors import CoercionFailed

from ..symbolic.gaussian.expectation import GaussianExpectation
from ..symbolic.systems.random_matrix import MarchenkoPasturAverage
from .evidence import Finding


def vanishes(expr: sp.Expr) -> bool:
    """Tell whether an expression, linear in averages, is provably zero."""
    averages: dict[tuple[Any, ...], list[sp.Expr]] = {}
    rest: list[sp.Expr] = []
    for term in sp.Add.make_args(sp.expand(expr)):
        nodes = term.atoms(GaussianExpectation, MarchenkoPasturAverage)
        if not nodes:
            rest.append(term)
            continue
        # One factor of the term is the average; others would make it non-linear.
        factors = [f for f in sp.Mul.make_args(term) if f in nodes]
        if len(factors) != 1:
            return False
        node = factors[0]
        key = (type(node), *node.args[1:])
        averages.setdefault(key, []).append(term / node * node.args[0])
    return all(cancels(sp.Add(*terms)) for terms in (rest, *averages.values()))


def cancels(expr: sp.Expr) -> bool:
    """Tell whether a rational function of everything in it is zero, square roots included."""
    marks: dict[sp.Expr, sp.Expr] = {f: sp.Dummy() for f in expr.atoms(AppliedUndef)}
    expr = expr.xreplace(marks)
    symbols = sorted(expr.free_symbols, key=lambda x: x.sort_key())
    if symbols and expr.is_rational_function(*symbols):
        # Arithmetic in the field reduces every fraction at once, and is faster than a big fraction.
        field = sp.QQ.frac_field(*symbols)
        try:
            return bool(field.from_sympy(expr) == field.zero)
        except (ValueError, ZeroDivisionError, CoercionFailed):
            # Coefficients that are no rational numbers.
            pass
    return bool(sp.expand(sp.numer(sp.together(expr))) == 0)


def equal(left: sp.Expr, right: sp.Expr) -> bool:
    """Zero test for closed forms with special functions and for numbers with 𝔼 nodes."""
    marks: dict[sp.Expr, sp.Expr] = {}
    difference = sp.expand(left - right)
    for node in difference.atoms(GaussianExpectation):
        marks[node] = sp.Dummy(real=True)
    difference = difference.xreplace(marks)
    if difference == 0:
        return True
    # SymPy may simplify for minutes what is not zero; a point where it is not settles it.
    point = {
        x: sp.Rational(3 + 2 * k, 7 + k)
        for k, x in enumerate(sorted(difference.free_symbols, key=str))
    }
    value = difference.xreplace(point).evalf(30)
    if value.is_number and abs(value) > sp.Float(10) ** -20:
        return False
    return bool(cancels(difference) or sp.simplify(difference) == 0)


def identities_hold(results: Mapping[str, bool], statement: str) -> Finding:
    """Return what named identities amount to; none at all is a failure."""
    failed = [name for name, held in results.items() if not held]
    if failed:
        summary = f"{len(failed)} of {len(results)} identities do not hold: {'; '.join(failed)}"
    else:
        summary = f"{len(results)} identities hold: {statement}"
    return Finding(not failed and bool(results), summary, {"identities": dict(results)})
