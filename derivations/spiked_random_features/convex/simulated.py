"""The loss of a convex readout as functions of arrays, for simulations."""

from __future__ import annotations

import sympy as sp

from ....errors import UnsupportedExpressionError
from ....numeric.networks.convex import Loss, proximal_loss, smooth_loss
from ....symbolic.convex_losses import is_kinked, piecewise_linear_proximal, without_cases
from ....symbolic.printing.compiled import compiled
from .curvature import largest_curvature
from .losses import ConvexLoss, x, y

_z = sp.Symbol("z", real=True)
_step = sp.Symbol("s", positive=True)


def simulated_loss(loss: ConvexLoss) -> Loss:
    """Return what simulations take for a loss.

    Raises
    ------
    UnsupportedExpressionError
        If the loss has kinks whose order depends on the label.
    """
    name, binary = str(loss), loss.needs_binary_labels
    expr = loss.with_numbers
    value = compiled(expr, (y, x))
    if largest_curvature(loss) != sp.oo or not is_kinked(expr, x):
        return smooth_loss(value, compiled(expr.diff(x), (y, x)), name=name, binary=binary)
    point = _proximal_point(loss, expr)
    if point is None:
        raise UnsupportedExpressionError(f"loss {name!r} has no proximal point by rule")
    slope = sp.simplify(point.diff(_z).xreplace({y**2: sp.S.One}))
    return proximal_loss(
        value, compiled(point, (y, _z, _step)), compiled(slope, (y, _z, _step)),
        name=name, binary=binary,
    )  # fmt: skip


def _proximal_point(loss: ConvexLoss, expr: sp.Expr) -> sp.Expr | None:
    """Return the proximal point of z; a margin or residual loss is one of a single variable."""
    if loss.needs_binary_labels:
        found = _at_label(expr, 1, y * _z)
        return None if found is None else y * found
    if loss.is_residual:
        found = _at_label(expr, 0, _z - y)
        return None if found is None else found + y
    return piecewise_linear_proximal(without_cases(expr, x), x, _z, _step)


def _at_label(expr: sp.Expr, label: int, center: sp.Expr) -> sp.Expr | None:
    at_label = expr.xreplace({y: sp.Integer(label)}).doit()
    return piecewise_linear_proximal(without_cases(at_label, x), x, center, _step)
