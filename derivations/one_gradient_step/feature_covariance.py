r"""Exact covariances of a network's features: :math:`\mathbb{E}\,\sigma_i\sigma_j`, E f_* σ_j.

By closed forms of :math:`\mathbb{E}[f(s)\,\sigma(t)]` for Gaussian pairs, at the actual lengths and
angles of the weights. With them the population risk of a readout needs no test samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...errors import ClosedFormNotFoundError, EmissionError
from ...runtime.generated import GeneratedFunction
from ...symbolic.activations import Activation, activation
from ...symbolic.activations import z as variable
from ...symbolic.gaussian import GaussianExpectation, expect
from ...symbolic.hermite import hermite_coefficient
from ...symbolic.printing.compiled import Formula, function_source
from ..derived import derived
from .pair_kernels import c, p, pair_kernel, q

if TYPE_CHECKING:
    from .model import OneGradientStep

Array = NDArray[np.float64]


class FeatureCovariances:
    """Covariances of features of a first layer; can be sent to another process.

    Parameters
    ----------
    source : str
        Source of the functions ``features(p, q, c)`` and ``teacher(p, q, c)``.
    square : float
        Mean square of the teacher.
    """

    def __init__(self, source: str, square: float) -> None:
        self.square = square
        self._features = GeneratedFunction(source, "features")
        self._teacher = GeneratedFunction(source, "teacher")

    def __call__(self, rows: Array) -> tuple[Array, Array, float]:
        r"""Return :math:`\mathbb{E}\,\sigma\sigma^\top`, (N, N), E f_* σ, (N,), and E f_*².

        Parameters
        ----------
        rows : ndarray, shape (N, d)
            A row for each neuron, with the teacher along the first axis.
        """
        squares = np.einsum("ji,ji->j", rows, rows)
        first, second = squares[:, None], squares[None, :]
        inner = _inside(rows @ rows.T, first, second)
        along = _inside(rows[:, 0], np.ones(1), squares)
        features = np.broadcast_to(self._features(first, second, inner), inner.shape)
        cross = np.broadcast_to(self._teacher(1.0, squares, along), along.shape)
        return features, cross, self.square


def _inside(inner: Array, first: Array, second: Array) -> Array:
    """Keep inner products below the product of the lengths, which rounding may exceed."""
    largest = np.sqrt(first * second) * (1 - 4 * np.finfo(float).eps)
    return np.clip(inner, -largest, largest)


def feature_covariances(model: OneGradientStep) -> FeatureCovariances:
    """Return the covariances of a model's features, without the means of its functions.

    Raises
    ------
    ClosedFormNotFoundError
        If an expectation has no closed form that arrays can be put into.
    """
    source = _derived_source(model.cache, model.student, model.teacher)
    if not source:
        raise ClosedFormNotFoundError(
            f"the covariances of features of student {model.student!r} and teacher "
            f"{model.teacher!r} have no closed form, by rule and in functions of arrays; leave out "
            "exact_risk to measure the risk on test samples"
        )
    return FeatureCovariances(source, model.teacher_moments.square)


@derived("one_gradient_step/feature_covariance", str)
def _derived_source(student: str, teacher: str) -> str:
    return _source(activation(student), activation(teacher))


def centred_kernel(f: Activation, sigma: Activation) -> sp.Expr | None:
    r"""Return :math:`\mathbb{E}[(f(s) - \mathbb{E}f)(\sigma(t) - \mathbb{E}\sigma)]` or None.

    The means are those at unit variance; s, t have variances p, q and covariance c.

    Examples
    --------
    >>> from giantstep.symbolic.activations import activation
    >>> centred_kernel(activation("relu"), activation("z")) == c / 2
    True
    """
    kernel = pair_kernel(f, sigma)
    if kernel is None:
        return None
    means = hermite_coefficient(f, 0), hermite_coefficient(sigma, 0)
    for mean, other, length in ((means[0], sigma, q), (means[1], f, p)):
        if mean != 0:
            kernel -= mean * expect(other(sp.sqrt(length) * variable), variable)
    kernel += means[0] * means[1]
    return None if kernel.has(GaussianExpectation) else kernel


def _source(student: Activation, teacher: Activation) -> str:
    """Return the source of both functions, empty without closed forms."""
    functions = {}
    for name, pair in (("features", (student, student)), ("teacher", (teacher, student))):
        kernel = centred_kernel(*pair)
        if kernel is None:
            return ""
        functions[name] = Formula((p, q, c), kernel)
    try:
        return function_source(functions)
    except EmissionError:
        # A closed form in functions that arrays do not have.
        return ""
