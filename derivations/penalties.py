r"""The ridge penalty in the two conventions of the literature.

λ of the toolkit belongs to :math:`\sum_\mu(y_\mu - \varphi_\mu\cdot w/\sqrt p)^2 + \lambda|w|^2`,
λ_B of Ba et al. (arXiv 2205.01445) to
:math:`\frac1n\sum_\mu(y_\mu - f_\mu)^2 + \frac{\lambda_B}{p}|a|^2`; λ = (α/β) λ_B.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..numeric.arguments import nonnegative_number, positive_number

__all__ = [
    "PAPER_RIDGE",
    "RIDGE",
    "PaperRidge",
    "as_ridge",
    "given_penalty",
    "in_convention",
    "items_of",
    "one_penalty",
    "paper_ridge",
    "penalties",
    "penalty_of",
    "readout_penalty",
]

P = ParamSpec("P")
R = TypeVar("R")

RIDGE, PAPER_RIDGE = "ridge", "paper_ridge"


@dataclass(frozen=True)
class PaperRidge:
    """A penalty λ_B, or several; made by :func:`paper_ridge`.

    Attributes
    ----------
    value : float or tuple of float
    """

    value: float | tuple[float, ...]

    def at(self, *, alpha: float, beta: float) -> Any:
        """Return λ = (α/β) λ_B as a float, or an array of them."""
        return np.multiply(self.value, alpha / beta)[()]


def paper_ridge(value: object) -> PaperRidge:
    r"""Return a ridge penalty in the convention of Ba et al., to be given as `ridge`.

    Parameters
    ----------
    value : float or sequence of float
        :math:`\lambda_B \ge 0` of
        :math:`\frac1n\sum_\mu(y_\mu - f_\mu)^2 + \frac{\lambda_B}{p}|a|^2`; the toolkit's penalty
        is λ = (α/β) λ_B at whatever α and β it is used.

    Raises
    ------
    ParameterError
        If it is no nonnegative finite number, or no sequence of them.

    Examples
    --------
    >>> import giantstep as gs
    >>> step = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, noise_variance=0.25)
    >>> print(f"{step.solve(ridge=gs.paper_ridge(0.05)).trained:.12f}")
    0.282611795503
    """
    if isinstance(value, PaperRidge):
        return value
    if isinstance(value, str) or not isinstance(value, Iterable):
        return PaperRidge(nonnegative_number(PAPER_RIDGE, value))
    result = tuple(nonnegative_number(PAPER_RIDGE, one) for one in value)
    if not result:
        raise ParameterError("paper_ridge must hold at least one number, such as [0.1, 1]")
    return PaperRidge(result)


def given_penalty(ridge: object) -> tuple[str, Any]:
    """Return the name of a penalty's convention, ``ridge`` or ``paper_ridge``, and its value.

    Raises
    ------
    ParameterError
        If there is none.
    """
    if ridge is None:
        raise ParameterError(
            "ridge must be given: the penalty of sum (y - f)^2 + ridge |w|^2, or "
            "giantstep.paper_ridge(...), beta/alpha times that, the one of "
            "(1/n) sum (y - f)^2 + (paper_ridge/N) |a|^2"
        )
    if isinstance(ridge, PaperRidge):
        value = ridge.value
        return PAPER_RIDGE, np.array(value) if isinstance(value, tuple) else value
    return RIDGE, ridge


def in_convention(name: str, value: Any) -> Any:
    """Return the argument `ridge` that :func:`given_penalty` takes apart."""
    return paper_ridge(value) if name == PAPER_RIDGE else value


def as_ridge(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters by name with the penalty under the name ``ridge``, as models take it."""
    return {
        (RIDGE if name == PAPER_RIDGE else name): in_convention(name, value)
        for name, value in parameters.items()
    }


def penalties(ridge: object, ratio: float) -> NDArray[np.float64]:
    """Return the penalties λ >= 0 of the toolkit, of which there is at least one.

    Parameters
    ----------
    ridge : number or sequence of numbers, or PaperRidge
    ratio : float
        N/n.

    Raises
    ------
    ParameterError
        If there is none, or a number is negative or not finite.
    """
    name, result = given_penalty(ridge)
    values = np.array([nonnegative_number(name, value) for value in items_of(name, result)])
    return values if name == RIDGE else values / ratio


def penalty_of(ridge: object, ratio: float) -> float:
    """Return one penalty λ of the toolkit; arguments as for :func:`penalties`."""
    name, value = given_penalty(ridge)
    nonnegative_number(name, value)
    return float(penalties(ridge, ratio)[0])


def readout_penalty(ridge: object, alpha: float, beta: float, *, exact: bool = False) -> float:
    """Return a positive penalty λ at one point.

    Parameters
    ----------
    ridge : float or PaperRidge
    alpha, beta : float
    exact : bool
        Whether the number is read as the decimal that it prints as, which α/β times another one
        is not.

    Raises
    ------
    ParameterError
        If the penalty is not positive and finite, several, or not the decimal that was written.
    """
    if not isinstance(ridge, PaperRidge):
        return positive_number(RIDGE, ridge)
    if isinstance(ridge.value, tuple):
        raise ParameterError("ridge must be one number here; curve() takes arrays")
    result = positive_number(RIDGE, ridge.at(alpha=alpha, beta=beta))
    if exact:
        raise ParameterError(
            f"ridge=paper_ridge({ridge.value:g}) is ridge = alpha/beta * {ridge.value:g}, which "
            "rounds as a float; with digits= or certify= give the ridge of the toolkit itself"
        )
    return result


def one_penalty(method: Callable[P, R]) -> Callable[P, R]:
    """Take `paper_ridge` of the last release, with a warning, as ``ridge=paper_ridge(...)``."""

    @functools.wraps(method)
    def asked(*positions: Any, **keywords: Any) -> R:
        if (given := keywords.pop(PAPER_RIDGE, None)) is not None:
            if keywords.get(RIDGE) is not None:
                raise ParameterError(
                    "give the penalty once: ridge, or ridge=giantstep.paper_ridge(...), "
                    "beta/alpha times it"
                )
            warnings.warn(
                "paper_ridge=... is written ridge=giantstep.paper_ridge(...) from now on",
                DeprecationWarning,
                stacklevel=2,
            )
            keywords[RIDGE] = paper_ridge(given)
        return method(*positions, **keywords)

    return asked


def items_of(name: str, values: object) -> list[Any]:
    """Return a number, or a sequence of numbers that is not empty, as a list."""
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.ndim > 1:
            raise ParameterError(f"{name} must have at most one dimension, got {array.ndim}")
        values = array.tolist()
    if isinstance(values, str) or not isinstance(values, Iterable):
        return [values]
    items = list(values)
    if not items:
        raise ParameterError(f"{name} must hold at least one number, such as [1, 2]")
    return items
