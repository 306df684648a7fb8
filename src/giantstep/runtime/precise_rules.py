"""Rules for the standard normal weight in mpmath, as lists of nodes with their weights.

The counterpart of :mod:`.quadrature` for numbers of many digits: trapezoidal rules, and composite
Gauss–Legendre rules where integrands have kinks. Weights hold the normal density.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import mpmath

Rule = list[tuple[Any, Any]]


def equidistant(ctx: Any, step: Any, count: int) -> Rule:
    """Return the trapezoidal rule with nodes k * step, \\|k\\| <= count."""
    return [(k * step, step * ctx.npdf(k * step)) for k in range(-count, count + 1)]


def composite(ctx: Any, breaks: Iterable[Any], reach: Any, longest: Any, order: int) -> Rule:
    """Return a Gauss–Legendre rule on panels from -reach to reach that are cut at break points.

    Parameters
    ----------
    ctx : mpmath context
    breaks : iterable of number
        Those beyond the reach do not matter.
    reach : number
    longest : number
        Length of a panel, at the most.
    order : int
        3 * 2**(order - 1) nodes on each.
    """
    rule, found = legendre(ctx, order), []
    for left, right in pairwise([-reach, *sorted(b for b in breaks if abs(b) < reach), reach]):
        panels = int(ctx.ceil((right - left) / longest))
        for k in range(panels):
            half = (right - left) / (2 * panels)
            middle = left + (2 * k + 1) * half
            for t, weight in rule:
                x = middle + half * t
                found.append((x, half * weight * ctx.npdf(x)))
    return found


def legendre(ctx: Any, order: int) -> Rule:
    """Return the Gauss–Legendre rule with 3 * 2**(order - 1) nodes on [-1, 1], without density."""
    rule: Rule = mpmath.calculus.quadrature.GaussLegendre(ctx).calc_nodes(order, ctx.prec)
    return rule


def legendre_order(ctx: Any, digits: int, share: int = 3) -> int:
    """Return the order of a rule for so many digits, a power of two of nodes for `share` digits."""
    return max(2, int(ctx.ceil(ctx.log(max(digits, 4) / share, 2))))


def folded(rule: Rule) -> Rule:
    """Return the nodes x >= 0 of a symmetric rule with weights for a sum that is even."""
    return [(x, w if x == 0 else 2 * w) for x, w in rule if x >= 0]
