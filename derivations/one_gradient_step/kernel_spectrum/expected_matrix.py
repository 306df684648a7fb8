"""The expected kernel of a given first layer, exactly, where the kernel has a closed form."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ClosedFormNotFoundError

if TYPE_CHECKING:
    from ..model import OneGradientStep

Real = NDArray[np.float64]


def expected_matrix(model: OneGradientStep, weights: Real) -> Real:
    r"""Return :math:`\mathbb{E}_x\,\sigma(W^\top x)\,\sigma(x^\top W)` of the (centred) student.

    Parameters
    ----------
    model : OneGradientStep
    weights : array (d, N)
        A column for each neuron, of any length.

    Raises
    ------
    ClosedFormNotFoundError
        If the rules for Gaussian pairs give no closed form, as for tanh.
    """
    pair, mean = _functions(model.student)
    inner = weights.T @ weights
    square = np.diag(inner)
    # A correlation of one may be rounded to one that has no angle.
    largest = np.sqrt(np.outer(square, square)) * (1 - 4 * np.finfo(float).eps)
    found: Real = pair(square[:, None], square[None, :], np.clip(inner, -largest, largest))
    offset = model.student_moments.mean
    if model.centre and offset:
        means = np.broadcast_to(mean(square), square.shape)
        found = found - offset * (means[:, None] + means[None, :]) + offset**2
    return found


def difference_norm(model: OneGradientStep, weights: Real) -> float:
    r"""Return the operator norm of the difference from :math:`\mu_1^2W^\top W + \mu_{>1}^2`."""
    moments = model.student_moments
    limit = moments.linear**2 * weights.T @ weights
    limit += moments.residual * np.eye(weights.shape[1])
    return float(np.linalg.norm(expected_matrix(model, weights) - limit, 2))


@lru_cache(maxsize=32)
def _functions(student: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    import sympy as sp

    from ....symbolic.activations import activation
    from ....symbolic.activations import z as variable
    from ....symbolic.gaussian import expect
    from ....symbolic.printing.compiled import compiled
    from ..pair_kernels import c, p, pair_kernel, q

    sigma = activation(student, argument="student")
    kernel = pair_kernel(sigma, sigma)
    if kernel is None:
        raise ClosedFormNotFoundError(
            f"the kernel of student {student!r} has no closed form by rule; erf and relu have one"
        )
    mean = expect(sigma(sp.sqrt(q) * variable), variable)
    return compiled(kernel, (p, q, c)), compiled(mean, (q,))
