"""Values that only one branch of a case needs, computed in that branch alone.

Sharing takes the subexpressions of all branches of a Piecewise out of it, so that straight code
computes every branch. Where one branch holds functions that the other does not need, as in the
averages of losses with kinks, this is most of the time; languages with branches skip it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import sympy as sp
from sympy.core.relational import Relational

from .fuse import FreshSymbols
from .program import Assign

_COMPARISONS = (sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan)


@dataclass(frozen=True)
class Branch:
    """Assignments of which either the first or the second are made."""

    condition: Relational
    then: tuple[Line, ...]
    otherwise: tuple[Line, ...]


Line = Assign | Branch


def with_branches(
    locals_: Sequence[Assign], sums: Sequence[Assign], fresh: FreshSymbols
) -> tuple[tuple[Line, ...], tuple[Assign, ...]]:
    """Return the values of a pass with those that only one branch of a case needs inside of it.

    Parameters
    ----------
    locals_, sums : sequence of Assign
        Of a pass over nodes, in order.
    fresh : FreshSymbols
        Names for cases inside other expressions.

    Returns
    -------
    tuple of Assign or Branch
    tuple of Assign
        Sums. Both are as given if no branch would save a function.
    """
    targets = {a.target for a in sums}
    values = _lifted((*locals_, *sums), fresh)
    before = [a for a in values if a.target not in targets]
    after = tuple(a for a in values if a.target in targets)
    lines = _branched(before, _read(after), fresh)
    if not any(isinstance(line, Branch) for line in lines):
        return tuple(locals_), tuple(sums)
    return lines, after


def _branched(
    assigns: Sequence[Assign], needed: set[sp.Symbol], fresh: FreshSymbols
) -> tuple[Line, ...]:
    """Put assignments into branches; `needed` are targets that are read afterwards."""
    lifted = _lifted(assigns, fresh)
    for condition in dict.fromkeys(_condition(a.value) for a in lifted):
        found = None if condition is None else _split(lifted, condition, needed)
        if condition is None or found is None:
            continue
        before, then, otherwise, after, results = found
        branch = Branch(
            condition, _branched(then, results, fresh), _branched(otherwise, results, fresh)
        )
        later = _read(after) | needed
        read = _read((*then, *otherwise)) | condition.free_symbols | later
        return *_branched(before, read, fresh), branch, *_branched(after, needed, fresh)
    return tuple(assigns)


def _cases(value: sp.Basic) -> list[sp.Piecewise]:
    """Return the outermost cases of a value that decide by one comparison."""
    if isinstance(value, sp.Piecewise):
        return [value] if _condition(value) is not None else []
    return list(dict.fromkeys(chain.from_iterable(map(_cases, value.args))))


def _condition(value: sp.Expr) -> Relational | None:
    if not isinstance(value, sp.Piecewise):
        return None
    condition = value.args[0].cond
    return condition if isinstance(condition, _COMPARISONS) else None


def _lifted(assigns: Sequence[Assign], fresh: FreshSymbols) -> list[Assign]:
    """Give cases inside other expressions a name of their own."""
    found: list[Assign] = []
    known: dict[sp.Expr, sp.Symbol] = {}
    for a in assigns:
        if not isinstance(a.value, sp.Piecewise):
            for case in _cases(a.value):
                if case not in known:
                    known[case] = fresh("case_")
                    found.append(Assign(known[case], case))
        found.append(Assign(a.target, a.value.xreplace(known)) if known else a)
    return found


def _split(
    assigns: Sequence[Assign], condition: Relational, needed: set[sp.Symbol]
) -> tuple[list[Assign], list[Assign], list[Assign], list[Assign], set[sp.Symbol]] | None:
    """Return what comes before a branch, what is in it, what comes after, and its results.

    None if no branch would save a function.
    """
    members: dict[sp.Symbol, sp.Piecewise] = {}
    behind: set[sp.Symbol] = set()
    for a in assigns:
        if a.value.free_symbols & (behind | set(members)):
            # Cases of what the branch computes come after it.
            behind.add(a.target)
        elif _condition(a.value) == condition:
            members[a.target] = a.value
    values = {
        a.target: _branches(members[a.target]) if a.target in members else (a.value, a.value)
        for a in assigns
    }
    outside = needed | condition.free_symbols
    own: tuple[set[sp.Symbol], set[sp.Symbol]] = (set(), set())
    read: tuple[set[sp.Symbol], set[sp.Symbol]] = (set(), set())
    # From the last to the first: everything that reads a value is known when it is met.
    for a in reversed(assigns):
        x = a.target
        if x in members:
            for side in (0, 1):
                read[side].update(values[x][side].free_symbols)
        elif x not in outside and (x in read[0]) != (x in read[1]):
            side = 0 if x in read[0] else 1
            own[side].add(x)
            read[side].update(a.value.free_symbols)
        else:
            outside |= a.value.free_symbols
    saved = [a.value for a in assigns if a.target in own[0] | own[1]]
    saved += [value for x in members for value in values[x]]
    if not any(value.has(sp.Function, sp.exp) for value in saved):
        return None
    sides = [
        [Assign(a.target, values[a.target][k]) for a in assigns if a.target in own[k] or
         a.target in members]
        for k in (0, 1)
    ]  # fmt: skip
    inside = {*members, *own[0], *own[1]}
    # What the branch does not read waits, as a later branch may be all that reads it.
    wanted = condition.free_symbols | read[0] | read[1]
    before: list[Assign] = []
    for a in reversed(assigns):
        if a.target in wanted and a.target not in inside:
            before.insert(0, a)
            wanted |= a.value.free_symbols
    first = {a.target for a in before}
    after = [a for a in assigns if a.target not in inside | first]
    return before, sides[0], sides[1], after, set(members)


def _branches(case: sp.Piecewise) -> tuple[sp.Expr, sp.Expr]:
    """Return the value where the first condition holds, and where it does not."""
    (value, _), *rest = case.args
    if rest[0].cond == sp.true:
        return value, rest[0].expr
    return value, sp.Piecewise(*rest, evaluate=False)


def _read(assigns: Iterable[Assign]) -> set[sp.Symbol]:
    return set().union(*(a.value.free_symbols for a in assigns))
