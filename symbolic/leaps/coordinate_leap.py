r"""The leap of a target in its given coordinates (Abbe, Boix-Adserà, Misiakiewicz, 2302.11055).

With the support :math:`S(f) = \{\alpha \ne 0 : \mu_\alpha \ne 0\}`,

.. math:: \mathrm{Leap}(f) = \min_{\alpha^1, \dots, \alpha^m} \max_i \sum
          \{\alpha^i_c : c \notin \mathrm{supp}\,\alpha^1 \cup \dots \cup
          \mathrm{supp}\,\alpha^{i-1}\}

over the orderings of S(f): new coordinates count with their Hermite multiplicity. Taking the
smallest positive sum next is optimal (derived here): whatever the order, the first term that leaves
the coordinates A seen so far pays at least the smallest sum, and a larger A makes no sum larger.
That smallest sum is the conditional order of f at the subspace of the coordinates A.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ...errors import UndecidedError
from ...pages import Typeset
from ..expression_text import expression_text
from ..subspaces import Subspace
from ..targets import HIGHEST_DEGREE, MultiIndex, Target
from ..targets import target as read_target
from .leap_index import (
    ProvenOrder,
    TargetLike,
    first_coefficient,
    he_latex,
    he_text,
    highest_open_order,
    leap_index,
)
from .spans import spans_of


@dataclass(frozen=True)
class CoordinateStep:
    """One term of the witnessing order that brings in new coordinates.

    Attributes
    ----------
    order : int
        Degree of the term in the new coordinates.
    multi_index : tuple of int
        α of the term He_α.
    coefficient : Expr
        μ_α.
    new : tuple of Symbol
        The coordinates that no term before it has.
    """

    order: int
    multi_index: MultiIndex
    coefficient: sp.Expr
    new: tuple[sp.Symbol, ...]


class CoordinateLeap(Typeset, ProvenOrder):
    """The coordinate leap, with an order of the Hermite terms that attains it.

    Attributes
    ----------
    target : str
        Name of the target.
    variables : tuple of Symbol
    steps : tuple of CoordinateStep
        Terms that bring in new coordinates, in order; all others may follow.
    """

    target: str
    variables: tuple[sp.Symbol, ...]
    steps: tuple[CoordinateStep, ...]

    @property
    def orders(self) -> tuple[int, ...]:
        """Degree in new coordinates of each step; the leap is the largest."""
        return tuple(step.order for step in self.steps)

    @property
    def explanation(self) -> str:
        """The witnessing order in words."""
        return ", then ".join(
            f"{he_text(step.multi_index, self.variables)} (new: "
            f"{', '.join(map(str, step.new))}; {step.order})"
            for step in self.steps
        )

    def latex(self) -> str:
        """Return the statement in LaTeX, without delimiters."""
        chain = r",\ ".join(
            rf"\underbrace{{{he_latex(step.multi_index, self.variables)}}}_{{{step.order}}}"
            for step in self.steps
        )
        return rf"\mathrm{{Leap}}(f) = {int(self)}:\quad {chain}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        steps = [
            {
                "order": step.order,
                "multi_index": list(step.multi_index),
                "coefficient": expression_text(step.coefficient),
                "new": [x.name for x in step.new],
            }
            for step in self.steps
        ]
        return {"value": int(self), "steps": steps}


def coordinate_leap(target: TargetLike) -> CoordinateLeap:
    """Return the leap in the given coordinates, with the order of terms that attains it.

    Parameters
    ----------
    target : str, Expr, Activation or Target

    Returns
    -------
    CoordinateLeap
        An int with the attributes `steps`, `orders` and `explanation`.

    Raises
    ------
    AssumptionError
        If the target is constant.
    UndecidedError
        If the target is no polynomial and the conditional order at a subspace of coordinates, or
        whether a coefficient vanishes, cannot be decided.

    Examples
    --------
    >>> leap = coordinate_leap("x1 + x2*x3")
    >>> leap, leap.orders
    (2, (1, 2))
    >>> print(leap.explanation)
    x1 (new: x1; 1), then x2*x3 (new: x2, x3; 2)
    >>> coordinate_leap("sign(x1) + abs(x1)*x2")
    1
    """
    f = read_target(target)
    seen: set[int] = set()
    steps: list[CoordinateStep] = []
    first = leap_index(f)
    next_term = _next_of_polynomial if f.degree is not None else _next_of_others
    while True:
        found = next_term(f, seen, int(first))
        if found is None:
            break
        order, alpha, moment = found
        new = [i for i, n in enumerate(alpha) if n and i not in seen]
        steps.append(CoordinateStep(order, alpha, moment, tuple(f.variables[i] for i in new)))
        seen.update(new)
    value = max(step.order for step in steps)
    return CoordinateLeap(value, target=f.name, variables=f.variables, steps=tuple(steps))


def _next_of_polynomial(
    f: Target, seen: Collection[int], _: int
) -> tuple[int, MultiIndex, sp.Expr] | None:
    best = _smallest(f.expansion.he_coefficients(), seen)
    if best is None:
        return None
    order, alpha = best
    return order, alpha, f.expansion.he_coefficient(alpha) * math.prod(map(math.factorial, alpha))


def _smallest(
    coefficients: Mapping[MultiIndex, sp.Expr], seen: Collection[int]
) -> tuple[int, MultiIndex] | None:
    """Return the smallest positive degree in new coordinates, and the first term that has it."""
    candidates = [
        (sum(n for i, n in enumerate(alpha) if i not in seen), sum(alpha), [-n for n in alpha])
        for alpha in coefficients
    ]
    candidates = [candidate for candidate in candidates if candidate[0]]
    if not candidates:
        return None
    order, _, alpha = min(candidates)
    return order, tuple(-n for n in alpha)


def _next_of_others(
    f: Target, seen: Collection[int], first: int
) -> tuple[int, MultiIndex, sp.Expr] | None:
    """The conditional order at the coordinates seen, and the first term of the series with it."""
    order = first
    if seen:
        axes = [[int(i == j) for j in range(f.dimension)] for i in sorted(seen)]
        conditional = spans_of(f).conditional_order(Subspace.spanned_by(axes, f.dimension))
        if conditional is None:
            return None
        order = conditional
    highest = min(max(2 * highest_open_order(f.dimension), order), HIGHEST_DEGREE)

    def counts(alpha: MultiIndex) -> bool:
        return sum(n for i, n in enumerate(alpha) if i not in seen) == order

    for degree in range(order, highest + 1):
        found = first_coefficient(f, degree, counts)
        if found is not None:
            return order, *found
    raise UndecidedError(
        f"the coordinate leap of target {f.name!r} is undetermined: no Hermite term up to degree "
        f"{highest} has degree {order} in the coordinates other than "
        f"{', '.join(f.variables[i].name for i in sorted(seen)) or 'none'}"
    )
