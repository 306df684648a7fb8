"""Case distinctions, one comparison at a time: no target has to know logic."""

from __future__ import annotations

import sympy as sp
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom, BooleanFunction

from ..errors import EmissionError


def single_comparisons(expr: sp.Expr, place: str = "the expression") -> sp.Expr:
    """Write each Piecewise so that its conditions are single comparisons by <, <=, > or >=.

    Parameters
    ----------
    expr : Expr
    place : str
        Where the expression stands, for the message.

    Raises
    ------
    EmissionError
        If a condition is no logical combination of comparisons, or no case is left for some
        values.

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
    found = cases.args[-1].expr
    for value, condition in reversed(cases.args[:-1]):
        found = _chosen(condition, value, found, place)
    return found


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
