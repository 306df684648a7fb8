r"""Convex losses of a label and a prediction, as functions of arrays.

A smooth loss comes with its derivative in x. A loss with kinks comes with its proximal operator
:math:`\mathrm{prox}_s(z) = \mathrm{argmin}_x\ \ell(y, x) + (x - z)^2/(2s)`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..errors import ParameterError
from .arguments import positive_number

__all__ = ["Loss", "ProximalLoss", "SmoothLoss", "huber", "loss_of", "proximal_loss", "smooth_loss"]

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


def huber(delta: float) -> SmoothLoss:
    """Return the Huber loss: quadratic up to residuals of size `delta`, linear beyond."""
    delta = positive_number("delta", delta)
    value, slope = (functools.partial(f, delta) for f in (_huber, _huber_slope))
    return SmoothLoss(f"huber({delta!r})", value, slope)


def _huber(delta: float, y: Array, x: Array) -> Array:
    return np.asarray(special.huber(delta, y - x))


def _huber_slope(delta: float, y: Array, x: Array) -> Array:
    return np.clip(x - y, -delta, delta)


def _square(y: Array, x: Array) -> Array:
    return (y - x) ** 2 / 2


def _residual(y: Array, x: Array) -> Array:
    return x - y


def _logistic(y: Array, x: Array) -> Array:
    return np.logaddexp(0, -y * x)


def _logistic_slope(y: Array, x: Array) -> Array:
    return np.asarray(-y * special.expit(-y * x))


def _absolute(y: Array, x: Array) -> Array:
    return np.abs(y - x)


def _absolute_proximal(y: Array, z: Array, step: float) -> Array:
    return z - np.clip(z - y, -step, step)


def _absolute_proximal_slope(y: Array, z: Array, step: float) -> Array:
    return (np.abs(z - y) >= step).astype(float)


def _hinge(y: Array, x: Array) -> Array:
    return np.maximum(0, 1 - y * x)


def _hinge_proximal(y: Array, z: Array, step: float) -> Array:
    return z + y * np.clip(1 - y * z, 0, step)


def _hinge_proximal_slope(y: Array, z: Array, step: float) -> Array:
    margin = 1 - y * z
    return ((margin <= 0) | (margin >= step)).astype(float)


SQUARE = SmoothLoss("square", _square, _residual)
_NAMED: dict[str, Loss] = {
    "square": SQUARE,
    "logistic": SmoothLoss("logistic", _logistic, _logistic_slope, binary=True),
    "absolute": ProximalLoss("absolute", _absolute, _absolute_proximal, _absolute_proximal_slope),
    "hinge": ProximalLoss("hinge", _hinge, _hinge_proximal, _hinge_proximal_slope, binary=True),
}


def loss_of(loss: object) -> Loss:
    """Return a loss from its name, or as it is.

    Raises
    ------
    ParameterError
        If there is no such loss.
    """
    if isinstance(loss, SmoothLoss | ProximalLoss):
        return loss
    if isinstance(loss, str) and loss in _NAMED:
        return _NAMED[loss]
    raise ParameterError(
        f"no loss {loss!r}\n  known: {', '.join(_NAMED)}; others by huber(delta), "
        "smooth_loss(value, slope) or proximal_loss(value, proximal, proximal_slope)"
    )
