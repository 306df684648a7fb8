r"""Integrands that jump, in a form that differentiates rightly under a Gaussian expectation.

The derivative of 𝔼 with respect to the place of a jump comes from the jump, as a Dirac delta under
𝔼. SymPy drops it for a Piecewise, and takes a step at its own jump for a number when steps stand
inside other functions, as in exp(sign(u)). An integrand that is affine in each of its steps has
neither trouble: every F with a step h = θ(u) in it is :math:`F_{h=0} + (F_{h=1} - F_{h=0})\,h`. The
deltas that are left in a Jacobian become numbers: the integrand times the normal density there.
"""

from __future__ import annotations

from collections.abc import Collection

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom, BooleanFunction

from ...errors import EmissionError
from ..expressions.averages import LineAverage, outermost
from ..expressions.functions import HALF
from ..expressions.shared_parts import parts_of


def single_comparisons(expr: sp.Expr, place: str = "the expression") -> sp.Expr:
    """Write each Piecewise so that its conditions are single comparisons by <, <=, > or >=.

    `place`: where the expression stands, for the message. Raises EmissionError if a condition is no
    logical combination of comparisons, or no case is left for some values.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> single_comparisons(sp.Piecewise((1, (x > 0) & (x < 1)), (0, True)))
    Piecewise((Piecewise((1, x < 1), (0, True)), x > 0), (0, True))
    """
    simple = (sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan, BooleanAtom)
    while True:
        compound = [
            p
            for p in expr.atoms(sp.Piecewise)
            if p.args[-1].cond != sp.true or not all(isinstance(c, simple) for _, c in p.args)
        ]
        if not compound:
            return expr
        # Innermost first; conditions themselves hold no cases that are left.
        inner = min(compound, key=lambda p: (sp.count_ops(p), sp.default_sort_key(p)))
        expr = expr.xreplace({inner: _decided(inner, place)})


def _decided(cases: sp.Piecewise, place: str) -> sp.Expr:
    if cases.args[-1].cond != sp.true:
        raise EmissionError(
            f"{place} holds {str(cases)[:80]}, which has no value where none of its conditions "
            "holds; end it with a case (value, True)"
        )
    result = cases.args[-1].expr
    for value, condition in reversed(cases.args[:-1]):
        result = _chosen(condition, value, result, place)
    return result


def _chosen(condition: sp.Basic, yes: sp.Expr, no: sp.Expr, place: str) -> sp.Expr:
    """Return `yes` where the condition holds and `no` elsewhere."""

    def chosen(condition: sp.Basic, yes: sp.Expr, no: sp.Expr) -> sp.Expr:
        return _chosen(condition, yes, no, place)

    if isinstance(condition, sp.And | sp.Or):
        first, rest = condition.args[0], condition.func(*condition.args[1:])
        if isinstance(condition, sp.And):
            return chosen(first, chosen(rest, yes, no), no)
        return chosen(first, yes, chosen(rest, yes, no))
    if isinstance(condition, sp.Not):
        return chosen(condition.args[0], no, yes)
    if isinstance(condition, sp.ITE):
        test, left, right = condition.args
        return chosen(test, chosen(left, yes, no), chosen(right, yes, no))
    if isinstance(condition, sp.Equality | sp.Unequality):
        a, b = condition.args
        same, other = (yes, no) if isinstance(condition, sp.Equality) else (no, yes)
        return sp.Piecewise((other, sp.Lt(a, b)), (other, sp.Gt(a, b)), (same, True))
    if isinstance(condition, BooleanFunction):
        return chosen(condition.to_nnf(), yes, no)
    if condition == sp.true or condition == sp.false:
        return yes if condition == sp.true else no
    if not isinstance(condition, Relational):
        raise EmissionError(
            f"{place} decides a case by {condition}, which is no comparison; write conditions "
            "with <, <=, >, >=, &, | and ~"
        )
    return sp.Piecewise((yes, condition), (no, True))


def integrate_deltas(value: sp.Expr) -> sp.Expr:
    r"""Replace :math:`\mathbb{E}_z[g(z)\,\delta(s z + c)]` by :math:`g(z_0)\varphi(z_0)/|s|`.

    Here :math:`z_0 = -c/s` and φ is the normal density; a slope s of zero means that there is no
    jump, and gives zero.

    `value`: an expression with 𝔼 nodes. Raises EmissionError for a delta function outside of an
    expectation, of an argument that is not affine in the variable, with a derivative, or with a
    table as a factor.

    Examples
    --------
    >>> from giantstep.symbolic.gaussian.expectation import GaussianExpectation
    >>> z = sp.Symbol("z", real=True)
    >>> q = sp.Symbol("q", positive=True)
    >>> jump = GaussianExpectation(sp.Heaviside(q * z - 1) * z, z)
    >>> integrate_deltas(jump.diff(q))
    sqrt(2)*exp(-1/(2*q**2))/(2*sqrt(pi)*q**3)
    """
    if not parts_of(value, sp.DiracDelta):
        return value
    nodes = [n for n in value.atoms(LineAverage) if n.integrand.has(sp.DiracDelta)]
    value = value.xreplace({n: _integrated(n) for n in nodes})
    if value.has(sp.DiracDelta):
        delta = next(iter(value.atoms(sp.DiracDelta)))
        raise EmissionError(
            f"the Jacobian holds {delta} outside of an expectation: an equation jumps where "
            f"{delta.args[0]} = 0, so Newton's method has no derivative there; smooth the jump"
        )
    return value


def _integrated(node: LineAverage) -> sp.Expr:
    z, integrand = node.variable, node.integrand
    deltas = sorted(integrand.atoms(sp.DiracDelta), key=sp.default_sort_key)
    marks = {d: sp.Dummy(real=True) for d in deltas}
    marked = integrand.xreplace(marks)
    none = dict.fromkeys(marks.values(), sp.S.Zero)
    total = node.func(marked.xreplace(none), z)
    for delta, mark in marks.items():
        factor = marked.diff(mark)
        if set(marks.values()) & factor.free_symbols or len(delta.args) > 1:
            raise EmissionError(
                f"the Jacobian holds a product or a derivative of delta functions, {integrand}; "
                "bring the expectation to closed form first, or smooth the jump"
            )
        total += _at_the_jump(factor, delta.args[0], z)
    return total


def _at_the_jump(factor: sp.Expr, argument: sp.Expr, z: sp.Symbol) -> sp.Expr:
    slope = argument.diff(z)
    if slope.has(z) or factor.atoms(AppliedUndef):
        raise EmissionError(
            f"an integrand jumps where {argument} = 0, and the derivative of that place cannot be "
            "computed (it is not affine in the variable, or the integrand reads a table); bring "
            "the expectation to closed form first, or integrate by parts (Stein's lemma)"
        )
    if slope == 0:
        raise EmissionError(
            f"an integrand jumps where {argument} = 0, at all {z} at once; smooth the jump"
        )
    place = -argument.xreplace({z: sp.S.Zero}) / slope
    density = sp.exp(-(place**2) / 2) / sp.sqrt(2 * sp.pi)
    value = factor.xreplace({z: place}) * density / sp.Abs(slope)
    if slope.is_nonzero:
        return value
    jump = sp.Piecewise((value, slope > 0), (value, slope < 0), (sp.S.Zero, True))
    return single_comparisons(jump)


_INEQUALITIES = (sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan)


def jumps_as_steps(expr: sp.Expr, at_rest: Collection[sp.Expr] = ()) -> sp.Expr:
    """Return `expr` with integrands that are affine in their steps, and jump by steps only.

    `expr`: what is continuous in it stays as it is. `at_rest`: steps and signs that nothing
    differentiates; they stay, too.

    Examples
    --------
    >>> from giantstep.symbolic.gaussian.expectation import GaussianExpectation
    >>> z, m = sp.symbols("z m", real=True)
    >>> jumps_as_steps(GaussianExpectation(sp.Piecewise((z, z > m), (0, True)), z))
    E_z[z*Heaviside(-m + z)]
    >>> jumps_as_steps(GaussianExpectation(sp.exp(sp.Heaviside(z - m)), z))
    E_z[(-1 + E)*Heaviside(-m + z) + 1]
    """
    if not expr.has(sp.Piecewise, sp.Heaviside, sp.sign):
        return expr
    expr = single_comparisons(expr)
    result = {n: _affine(n, at_rest) for n in outermost(expr, LineAverage)}
    return expr.xreplace(result)


def _affine(node: LineAverage, at_rest: Collection[sp.Expr]) -> sp.Expr:
    z, integrand = node.variable, jumps_as_steps(node.integrand, at_rest)
    cases = [p for p in integrand.atoms(sp.Piecewise) if _jumps(p, z)]
    while cases:
        inner = min(cases, key=lambda p: (sp.count_ops(p), sp.default_sort_key(p)))
        integrand = integrand.xreplace({inner: _by_steps(inner)})
        cases = [p for p in integrand.atoms(sp.Piecewise) if _jumps(p, z)]
    marks: dict[sp.Expr, sp.Dummy] = {}
    # An expectation inside smooths the steps that move with its own variable.
    inner = {n.variable for n in integrand.atoms(LineAverage)}
    steps = [f for f in integrand.atoms(sp.Heaviside, sp.sign) if f.args[0].has(z)]
    steps = [f for f in steps if f not in at_rest and not f.free_symbols & inner]
    rule = {f: _in_mark(f, z, marks) for f in sorted(steps, key=sp.default_sort_key)}
    marked = integrand.xreplace(rule)
    curved = [m for m in marks.values() if marked.diff(m).has(m)]
    if not curved:
        return node.func(integrand, z)
    for mark in curved:
        low, high = (marked.xreplace({mark: sp.Integer(k)}) for k in (0, 1))
        marked = low + (high - low) * mark
    back = {mark: sp.Heaviside(u, HALF) for u, mark in marks.items()}
    return node.func(marked.xreplace(back), z)


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
    result = cases.args[-1].expr
    for value, condition in reversed(cases.args[:-1]):
        indicator = sp.Heaviside(condition.gts - condition.lts, HALF)
        result += (value - result) * indicator
    return result
