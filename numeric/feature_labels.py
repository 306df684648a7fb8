r"""Labels of a target: with Gaussian noise, or ±1 from a channel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from .arguments import is_one_of

__all__ = ["Channel", "checked_channel"]

Array = NDArray[np.float64]

CHANNELS = ("regression", "sign", "probit", "logistic")


@dataclass(frozen=True, slots=True)
class Channel:
    r"""How labels are made from the target f_*.

    ``regression``: :math:`y = f_* + \sqrt\Delta\,\xi`. ``sign`` and ``probit``:
    :math:`y = \mathrm{sign}(f_* + \sqrt\Delta\,\xi)`, the names for Δ = 0 and Δ > 0.
    ``logistic``: :math:`P(y = 1) = 1/(1 + e^{-f_*})`, for Δ = 0. A function takes f_* and a
    uniform number in (0, 1) for each sample, arrays, and returns labels: any channel has this form.

    Attributes
    ----------
    name : str
    function : callable or None
    noise_variance : float
        Δ.
    """

    name: str
    function: Callable[[Array, Array], Any] | None
    noise_variance: float

    @property
    def classifies(self) -> bool:
        """Whether labels are ±1."""
        return self.name in ("sign", "probit", "logistic")

    def draw(self, target: Array, generator: np.random.Generator, rows: int) -> Array:
        """Return labels; the stream moves on by `rows` samples however many there are.

        Raises
        ------
        ParameterError
            If a function returns something else than one finite number for each sample.
        """
        if self.name == "regression":
            noise = generator.standard_normal(rows)[: len(target)]
            return target + math.sqrt(self.noise_variance) * noise
        if self.function is not None:
            uniform = generator.random(rows)[: len(target)]
            labels = np.asarray(self.function(target, uniform))
            if labels.dtype.kind not in "fiub" or labels.shape != target.shape:
                raise ParameterError(
                    "labels must return one real number for each sample\n"
                    f"  for {len(target)} samples it returned {labels.dtype} of shape "
                    f"{labels.shape}"
                )
            if not np.isfinite(labels).all():
                raise ParameterError("labels returned a value that is not finite")
            return labels.astype(float)
        if self.name == "logistic":
            noise = generator.logistic(size=rows)[: len(target)]
        else:
            noise = generator.standard_normal(rows)[: len(target)] * math.sqrt(self.noise_variance)
        return np.where(target + noise >= 0, 1.0, -1.0)


def checked_channel(labels: object, noise_variance: float) -> Channel:
    """Return the channel of a name or a function.

    Raises
    ------
    ParameterError
        If there is no such channel, or the noise does not fit it.
    """
    if callable(labels):
        if noise_variance:
            raise ParameterError(
                "labels as a function hold their own noise; leave out noise_variance"
            )
        return Channel("function", labels, 0.0)
    if not is_one_of(labels, CHANNELS):
        raise ParameterError(
            f"labels must be one of {', '.join(CHANNELS)} or a function, got {labels!r}"
        )
    if labels == "logistic" and noise_variance:
        raise ParameterError(
            "logistic labels have their own noise: noise_variance must be 0, "
            f"got {noise_variance:g}"
        )
    if labels == "probit" and not noise_variance:
        raise ParameterError("probit labels need noise_variance > 0; without noise use 'sign'")
    return Channel(str(labels), None, noise_variance)
