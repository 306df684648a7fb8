"""How strongly a convex loss can be curved, which bounds how far a step downhill may go."""

from __future__ import annotations

import math

import sympy as sp

from ....symbolic.convex_losses import is_kinked, smooth_pieces, without_cases
from .losses import ConvexLoss, curvatures, x

_LABELS = (-1, 1)


def largest_curvature(loss: ConvexLoss) -> sp.Expr:
    """Return an upper bound of the second derivative of a loss in the prediction.

    Infinite for a loss with a jump in its slope, and where it varies and has parameters. That of a
    smooth loss is looked up on a grid and rounded up to a power of two, for it is the length of a
    step and not a result.

    Examples
    --------
    >>> from giantstep.derivations.spiked_random_features.convex.losses import convex_loss
    >>> [largest_curvature(convex_loss(name)) for name in ("huber(0.3)", "hinge", "logistic")]
    [1, oo, 1/4]
    """
    found = [_of_one_label(without_cases(loss.at_label(label), x)) for label in _LABELS]
    return sp.Max(*found)


def _of_one_label(at_label: sp.Expr) -> sp.Expr:
    if not is_kinked(at_label, x):
        if at_label.diff(x, 2).free_symbols > {x}:
            return sp.oo
        largest = max((value for _, value in curvatures(at_label)), default=None)
        if largest is None:
            return at_label.diff(x, 2)
        return sp.Integer(2) ** math.ceil(math.log2(largest))
    kinks, pieces = smooth_pieces(at_label, x)
    for kink, left, right in zip(kinks, pieces[:-1], pieces[1:], strict=True):
        if sp.simplify((right - left).diff(x).xreplace({x: kink})) != 0:
            return sp.oo
    return sp.Max(*(piece.diff(x, 2) for piece in pieces))
