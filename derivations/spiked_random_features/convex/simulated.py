"""The loss of a convex readout as functions of arrays, for simulations."""

from __future__ import annotations

import sympy as sp

from ....errors import UnsupportedExpressionError
from ....numeric.feature_losses import Loss, huber, proximal_loss, smooth_loss
from ....symbolic.convex_losses import is_kinked, piecewise_linear_proximal, without_cases
from ....symbolic.printing.compiled import compiled
from .losses import CATALOGUE, ConvexLoss, x, y

_z = sp.Symbol("z", real=True)
_step = sp.Symbol("s", positive=True)


def simulated_loss(loss: ConvexLoss) -> str | Loss:
    """Return what simulations take for a loss.

    Raises
    ------
    UnsupportedExpressionError
        If the loss has kinks whose order depends on the label.
    """
    if loss.delta is not None:
        return huber(loss.delta)
    if loss.name in CATALOGUE:
        return loss.name
    binary = loss.needs_binary_labels
    if not is_kinked(loss.expr, x):
        slope = compiled(loss.expr.diff(x), (y, x))
        return smooth_loss(compiled(loss.expr, (y, x)), slope, name=loss.name, binary=binary)
    # A margin or residual loss is one of a single variable.
    if binary:
        point = piecewise_linear_proximal(without_cases(loss.at_label(1), x), x, y * _z, _step)
        point = None if point is None else y * point
    elif loss.is_residual:
        point = piecewise_linear_proximal(without_cases(loss.at_label(0), x), x, _z - y, _step)
        point = None if point is None else point + y
    else:
        point = piecewise_linear_proximal(without_cases(loss.expr, x), x, _z, _step)
    if point is None:
        raise UnsupportedExpressionError(f"loss {loss.name!r} has no proximal point by rule")
    slope = sp.simplify(point.diff(_z).xreplace({y**2: sp.S.One}))
    return proximal_loss(
        compiled(loss.expr, (y, x)),
        compiled(point, (y, _z, _step)),
        compiled(slope, (y, _z, _step)),
        name=loss.name,
        binary=binary,
    )
