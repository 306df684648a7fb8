r"""The penalty as users give it: λ of the toolkit or :math:`\lambda_B = (\beta/\alpha)\lambda`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numeric.arguments import nonnegative_number


def ridge_values(ridge: object, paper_ridge: object, ratio: float) -> NDArray[np.float64]:
    """Return the penalties λ of the toolkit, of which there is at least one.

    Parameters
    ----------
    ridge, paper_ridge : number or sequence of numbers, or None
        λ or λ_B, ≥ 0; exactly one of the two.
    ratio : float
        N/n.

    Raises
    ------
    ParameterError
        If none or both are given, or a number is negative or not finite.
    """
    name, found = given_ridge(ridge, paper_ridge)
    values = np.array([nonnegative_number(name, value) for value in items_of(name, found)])
    return values if name == "ridge" else values / ratio


def given_ridge(ridge: object, paper_ridge: object) -> tuple[str, object]:
    """Return the name and the value of the penalty that was given.

    Raises
    ------
    ParameterError
        If none or both are given.
    """
    if (ridge is None) == (paper_ridge is None):
        given = "both" if ridge is not None else "none"
        raise ParameterError(
            f"give exactly one of ridge and paper_ridge, got {given}: ridge is the penalty of "
            "sum (y - f)^2 + ridge |w|^2, and paper_ridge, beta/alpha times that, the one of "
            "(1/n) sum (y - f)^2 + (paper_ridge/N) |a|^2"
        )
    return ("ridge", ridge) if paper_ridge is None else ("paper_ridge", paper_ridge)


def one_ridge(ridge: object, paper_ridge: object, ratio: float) -> float:
    """Return one penalty λ of the toolkit; arguments as for :func:`ridge_values`."""
    for name, value in (("ridge", ridge), ("paper_ridge", paper_ridge)):
        if value is not None:
            nonnegative_number(name, value)
    return float(ridge_values(ridge, paper_ridge, ratio)[0])


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
