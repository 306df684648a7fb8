r"""Integrands that jump, in a form that differentiates rightly under a Gaussian expectation.

The derivative of 𝔼 with respect to the place of a jump comes from the jump, as a Dirac delta under
𝔼. SymPy drops it for a Piecewise, and takes a step at its own jump for a number when steps stand
inside other functions, as in exp(sign(u)). An integrand that is affine in each of its steps has
neither trouble: every F with a step h = θ(u) in it is :math:`F_{h=0} + (F_{h=1} - F_{h=0})\,h`.
"""

from __future__ import annotations

from collections.abc import Collection

import sympy as sp

from .cases import single_comparisons
from .functions import HALF
from .gaussian import GaussianExpectation

_INEQUALITIES = (sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan)


def jumps_as_steps(expr: sp.Expr, at_rest: Collection[sp.Expr] = ()) -> sp.Expr:
    """Return `expr` with integrands that are affine in their steps, and jump by steps only.

    Parameters
    ----------
    expr : Expr
        What is continuous in it stays as it is.
    at_rest : collection of Expr
        Steps and signs that nothing differentiates; they stay, too.

    Examples
    --------
    >>> z, m = sp.symbols("z m", real=True)
    >>> jumps_as_steps(GaussianExpectation(sp.Piecewise((z, z > m), (0, True)), z))
    E_z[z*Heaviside(-m + z)]
    >>> jumps_as_steps(GaussianExpectation(sp.exp(sp.Heaviside(z - m)), z))
    E_z[(-1 + E)*Heaviside(-m + z) + 1]
    """
    if not expr.has(sp.Piecewise, sp.Heaviside, sp.sign):
        return expr
    expr = single_comparisons(expr)
    found = {n: _affine(n, at_rest) for n in _outermost(expr)}
    return expr.xreplace(found)


def _outermost(expr: sp.Basic) -> list[GaussianExpectation]:
    if isinstance(expr, GaussianExpectation):
        return [expr]
    return list(dict.fromkeys(n for argument in expr.args for n in _outermost(argument)))


def _affine(node: GaussianExpectation, at_rest: Collection[sp.Expr]) -> sp.Expr:
    z, integrand = node.variable, jumps_as_steps(node.integrand, at_rest)
    cases = [p for p in integrand.atoms(sp.Piecewise) if _jumps(p, z)]
    while cases:
        inner = min(cases, key=lambda p: (sp.count_ops(p), sp.default_sort_key(p)))
        integrand = integrand.xreplace({inner: _by_steps(inner)})
        cases = [p for p in integrand.atoms(sp.Piecewise) if _jumps(p, z)]
    marks: dict[sp.Expr, sp.Dummy] = {}
    # An expectation inside smooths the steps that move with its own variable.
    inner = {n.variable for n in integrand.atoms(GaussianExpectation)}
    steps = [f for f in integrand.atoms(sp.Heaviside, sp.sign) if f.args[0].has(z)]
    steps = [f for f in steps if f not in at_rest and not f.free_symbols & inner]
    rule = {f: _in_mark(f, z, marks) for f in sorted(steps, key=sp.default_sort_key)}
    marked = integrand.xreplace(rule)
    curved = [m for m in marks.values() if marked.diff(m).has(m)]
    if not curved:
        return GaussianExpectation(integrand, z)
    for mark in curved:
        low, high = (marked.xreplace({mark: sp.Integer(k)}) for k in (0, 1))
        marked = low + (high - low) * mark
    back = {mark: sp.Heaviside(u, HALF) for u, mark in marks.items()}
    return GaussianExpectation(marked.xreplace(back), z)


def _in_mark(step: sp.Expr, z: sp.Symbol, marks: dict[sp.Expr, sp.Dummy]) -> sp.Expr:
    """Return a step as a polynomial in the mark of the place where it is, whatever its scale."""
    argument = step.args[0]
    slope = sp.diff(argument, z)
    falls = False
    if slope.is_positive or slope.is_negative:
        argument, falls = sp.expand(argument / slope), bool(slope.is_negative)
    mark = marks.setdefault(argument, sp.Dummy(real=True))
    height = 1 - mark if falls else mark
    return height if isinstance(step, sp.Heaviside) else 2 * height - 1


def _jumps(cases: sp.Piecewise, z: sp.Symbol) -> bool:
    """Whether branches may differ where a condition on z changes; False if they provably agree."""
    for (value, condition), (other, _) in zip(cases.args, cases.args[1:], strict=False):
        if not condition.has(z):
            continue
        if not isinstance(condition, _INEQUALITIES):
            return False
        difference = condition.lhs - condition.rhs
        slope = difference.diff(z)
        if slope == 0 or slope.has(z):
            return bool(value != other)
        place = -difference.xreplace({z: sp.S.Zero}) / slope
        if sp.simplify((value - other).xreplace({z: place})) != 0:
            return True
    return False


def _by_steps(cases: sp.Piecewise) -> sp.Expr:
    found = cases.args[-1].expr
    for value, condition in reversed(cases.args[:-1]):
        indicator = sp.Heaviside(condition.gts - condition.lts, HALF)
        found += (value - found) * indicator
    return found
