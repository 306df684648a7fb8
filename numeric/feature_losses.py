r"""Convex losses of a label and a prediction, as functions of arrays that a caller brings.

A smooth loss comes with its derivative in x. A loss with kinks comes with its proximal operator
:math:`\mathrm{prox}_s(z) = \mathrm{argmin}_x\ \ell(y, x) + (x - z)^2/(2s)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError

__all__ = ["SQUARE", "Loss", "ProximalLoss", "SmoothLoss", "proximal_loss", "smooth_loss"]

Array = NDArray[np.float64]
LossFunction = Callable[[Array, Array], Any]
ProximalFunction = Callable[[Array, Array, float], Any]


@dataclass(frozen=True, slots=True)
class SmoothLoss:
    """A convex loss with its derivative.

    Attributes
    ----------
    name : str
        Identifies the loss in stored results.
    value, slope : callable
        Of label and prediction, two arrays of equal shape; derivative in the prediction.
    binary : bool
        Labels must be ±1.
    """

    name: str
    value: LossFunction
    slope: LossFunction
    binary: bool = False


@dataclass(frozen=True, slots=True)
class ProximalLoss:
    """A convex loss, possibly with kinks, with its proximal operator.

    Attributes
    ----------
    name : str
    value : callable
        Of label and prediction.
    proximal, proximal_slope : callable
        Of y, z and the step s: the proximal point and its derivative in z, in [0, 1].
    binary : bool
        Labels must be ±1.
    """

    name: str
    value: LossFunction
    proximal: ProximalFunction
    proximal_slope: ProximalFunction
    binary: bool = False


Loss = SmoothLoss | ProximalLoss


def smooth_loss(
    value: LossFunction, slope: LossFunction, *, name: str, binary: bool = False
) -> SmoothLoss:
    """Return a smooth convex loss from functions of (y, x).

    Raises
    ------
    ParameterError
        If one cannot be called, or there is no name.
    """
    _require_functions(name, value=value, slope=slope)
    return SmoothLoss(name, value, slope, binary)


def proximal_loss(
    value: LossFunction,
    proximal: ProximalFunction,
    proximal_slope: ProximalFunction,
    *,
    name: str,
    binary: bool = False,
) -> ProximalLoss:
    """Return a convex loss with kinks from its value and its proximal operator.

    Raises
    ------
    ParameterError
        If one cannot be called, or there is no name.
    """
    _require_functions(name, value=value, proximal=proximal, proximal_slope=proximal_slope)
    return ProximalLoss(name, value, proximal, proximal_slope, binary)


def _require_functions(name: object, **functions: object) -> None:
    if not isinstance(name, str) or not name:
        raise ParameterError(f"name of a loss must be a text, got {name!r}")
    for argument, function in functions.items():
        if not callable(function):
            raise ParameterError(f"{argument} of loss {name!r} must be a function")


def _square(y: Array, x: Array) -> Array:
    return (y - x) ** 2 / 2


def _residual(y: Array, x: Array) -> Array:
    return x - y


SQUARE = SmoothLoss("square", _square, _residual)
"""The loss of ridge regression, for which readouts are found by linear algebra."""


def require_loss(loss: object) -> Loss:
    """Return a loss as it is.

    Raises
    ------
    ParameterError
        If it is none.
    """
    if isinstance(loss, SmoothLoss | ProximalLoss):
        return loss
    raise ParameterError(
        f"loss must be made by smooth_loss(value, slope) or proximal_loss(value, proximal, "
        f"proximal_slope), got {loss!r}"
    )
