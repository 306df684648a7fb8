r"""The risk that Gaussian equivalence predicts for one given first layer.

Conditional on W the features are replaced by :math:`\mu_1W^\top x + \mu z`; ridge regression on
these is solved in the limit by the spectrum of W and its overlaps with the teacher, whatever the
number or the size of the steps that led to W. With the covariance :math:`\Sigma = b\,W^\top W + v`,
W of shape (d, N), the penalty λ' of :math:`\frac1n\sum(y - b\cdot\varphi)^2 + \lambda'|b|^2` and
the effective ridge ν of :mod:`.symbolic.systems.ridge_equivalent` all averages are sums over modes:

.. math:: \frac{\lambda'}{\nu} = 1 - \frac1n\sum_j \frac{S_j}{S_j+\nu}, \qquad
    1 - \frac{c^\top(\Sigma+\nu)^{-1}c}{\mu_*^2} = \sum_i p_i\,\frac{v+\nu}{S_i+\nu},

S = v + b x. The first sum is over the N eigenvalues x of :math:`W^\top W`, the second over the d
of :math:`WW^\top`, whose eigenvectors have the squared overlaps :math:`p_i` with the teacher.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
import threadpoolctl
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize

from ...errors import ConvergenceError, ParameterError
from ...result import Result, quantity
from ...runtime.generated import defined
from ...symbolic.expressions.factors import factored
from ...symbolic.printing.compiled import Formula, function_source
from ..derived import derived
from ..penalties import one_penalty, penalty_of

if TYPE_CHECKING:
    from types import SimpleNamespace

    from ...numeric.networks.readout import TrainedNetwork
    from .model import OneGradientStep

eigenvalue = sp.Symbol("eigenvalue", nonnegative=True)
r"""x, of :math:`WW^\top`."""

slope = sp.Symbol("slope", nonnegative=True)
r"""b = μ1² of the student."""

floor = sp.Symbol("floor", nonnegative=True)
"""v, the residual variance of the student."""

effective_ridge = sp.Symbol("effective_ridge", positive=True)
"""ν."""


def mode_functions() -> dict[str, sp.Expr]:
    r"""Return what one mode contributes, each as positive terms."""
    nu = effective_ridge
    variance = floor + slope * eigenvalue
    used = variance / (variance + nu)
    unexplained = (floor + nu) / (variance + nu)
    bias = -(nu**2) * sp.diff(unexplained / nu, nu)
    return {
        "used": used,
        "used_square": used**2,
        "unused": nu / (variance + nu),
        "gain": factored(-nu * sp.diff(used, nu)),
        "unexplained": unexplained,
        # Without the common denominator, whose numerator is a sum of positive terms.
        "bias": _positive_terms(bias, variance + nu),
    }


def _positive_terms(expression: sp.Expr, denominator: sp.Expr) -> sp.Expr:
    """Return an expression with expanded numerator over a power of the denominator."""
    numerator = sp.expand(sp.cancel(expression * denominator**2))
    return numerator / denominator**2


def mode_source() -> str:
    """Return the source of a module with these functions of arrays of eigenvalues."""
    arguments = (eigenvalue, slope, floor, effective_ridge)
    return function_source({name: Formula(arguments, e) for name, e in mode_functions().items()})


Array = NDArray[np.float64]

PREDICTED = ("risk", "training_error", "objective")
"""Of the quantities of a first layer those that are measured in networks, too."""

_LARGEST = 1e140

_TOLERANCE = 0.01
"""Largest relative deviation of N/d from the model's ratio, as in simulations."""


@dataclass(frozen=True, repr=False)
class ConditionalRisk(Result):
    r"""What Gaussian equivalence predicts for one first layer.

    Attributes
    ----------
    ridge, paper_ridge : float
        The penalty in the conventions of the toolkit and of the paper.
    risk : float
        Mean squared distance from the noise-free target; inf at the interpolation peak without a
        penalty.
    bias, variance : float
        Squared bias and variance over the readout's samples; they sum to the risk.
    training_error : float
        Mean squared residual of the noisy labels.
    objective : float
        Training error plus :math:`\lambda|w|^2/n`.
    effective_ridge : float
        ν.
    ridge_derivative : float
        D = dλ_B/dν.
    """

    _document = "conditional risk"

    ridge: float = field(metadata=quantity("ridge", r"\lambda"))
    paper_ridge: float = field(metadata=quantity("paper ridge", r"\lambda_B"))
    risk: float = field(metadata=quantity("risk", "R"))
    bias: float = field(metadata=quantity("bias", "B"))
    variance: float = field(metadata=quantity("variance", "V"))
    training_error: float = field(metadata=quantity("training error", r"E_\mathrm{train}"))
    objective: float = field(metadata=quantity("objective", "L"))
    effective_ridge: float = field(metadata=quantity("effective ridge", r"\nu"))
    ridge_derivative: float = field(metadata=quantity("ridge derivative", "D"))
    rests_on: str = "Gaussian equivalence at the given first layer, float"


class ConditionalPrediction:
    """Errors predicted from a first layer, a measurement; can be sent to another process.

    Parameters
    ----------
    source : str
        Source of the functions of a mode.
    moments : tuple of float
        μ1 and residual variance of the student, μ1* and residual variance of the teacher.
    samples : float
        n of the readout.
    ridges : sequence of float
        λ of the toolkit.
    """

    def __init__(
        self, source: str, moments: tuple[float, float, float, float],
        noise_variance: float, samples: float, ridges: Sequence[float],
    ) -> None:  # fmt: skip
        self.source, self.moments = source, moments
        self.noise_variance, self.samples, self.ridges = noise_variance, samples, tuple(ridges)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_modes"}

    @cached_property
    def _modes(self) -> SimpleNamespace:
        return defined(self.source)

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results; the formulas are of the version."""
        return repr((self.moments, self.noise_variance, self.samples, self.ridges))

    def __call__(self, trained: TrainedNetwork) -> dict[str, Array]:
        """Return what is predicted of a network of finite size, with an entry for every λ.

        ``predicted_risk``, ``predicted_training_error`` and ``predicted_objective``.
        """
        result = self.errors(trained.layer.rows.T, trained.layer.teachers[0])
        return {f"predicted_{name}": result[name] for name in PREDICTED}

    def errors(self, weights: Array, direction: Array | None = None) -> dict[str, Array]:
        """Return quantities of :class:`ConditionalRisk`, each with an entry for every λ.

        Parameters
        ----------
        weights : ndarray, shape (d, N)
        direction : ndarray, shape (d,), optional
            Unit vector of the teacher; by default the first axis.
        """
        modes = modes_of(weights, direction)
        if not np.isfinite(modes.eigenvalues).all():
            raise ParameterError("the steps are too large: squares of the weights overflow")
        rows = [self._errors(modes, ridge) for ridge in self.ridges]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _errors(self, modes: Modes, ridge: float) -> dict[str, float]:
        linear, floor, teacher_linear, teacher_residual = self.moments
        slope, samples = linear**2, self.samples
        paper = ridge * modes.width / samples
        variances = floor + slope * modes.eigenvalues
        nu = self._effective_ridge(modes, variances, paper)
        # Without a penalty a mode that no feature sees is not explained: 0/0 in the formulas.
        seen = variances + nu > 0

        def total(name: str, weights: Array, unseen: float) -> float:
            values = np.full(len(seen), unseen)
            function = getattr(self._modes, name)
            values[seen] = function(modes.eigenvalues[seen], slope, floor, nu)
            return float(weights @ values)

        if paper:
            shrinkage = paper / nu
        else:
            shrinkage = 0.0 if nu else 1 - float(modes.counts[seen].sum()) / samples
        derivative = shrinkage + total("gain", modes.counts, 0.0) / samples
        # Vanishes without a penalty where the samples are as many as the features.
        amplification = 1 / derivative if derivative > 0 else math.inf
        bias = teacher_residual + teacher_linear**2 * total("bias", modes.overlaps, 1.0)
        left = teacher_residual + teacher_linear**2 * total("unexplained", modes.overlaps, 1.0)
        energy = bias + self.noise_variance
        used = total("used_square", modes.counts, 0.0) / samples
        variance = energy * used * amplification if energy else 0.0
        return {
            "paper_ridge": paper,
            "risk": bias + variance,
            "bias": bias,
            "variance": variance,
            "training_error": shrinkage**2 * energy * amplification if shrinkage else 0.0,
            "objective": shrinkage * (left + self.noise_variance),
            "effective_ridge": nu,
            "ridge_derivative": derivative,
        }

    def _effective_ridge(self, modes: Modes, variances: Array, paper: float) -> float:
        """Solve λ' = ν (1 - used/n), in log ν: it spans many orders of magnitude."""
        linear, floor, *_ = self.moments
        excess = 1 - modes.width / self.samples
        scale = float(modes.counts @ variances) / self.samples
        positive = (variances > 0) & (modes.counts > 0)
        rank = float(modes.counts[positive].sum())
        if not paper and rank <= self.samples:
            return 0.0
        if not scale:
            return paper
        low = paper or variances[positive].min() * (rank - self.samples) / (2 * rank)

        def left(log_nu: float) -> float:
            nu = math.exp(log_nu)
            unused = self._modes.unused(modes.eigenvalues, linear**2, floor, nu)
            return float(excess + modes.counts @ unused / self.samples - paper / nu)

        # λ' is an upper bound of ν less its largest possible reduction.
        ends = math.log(low) - 1e-12, math.log(paper + scale) + 1e-12
        try:
            result = float(optimize.brentq(left, *ends, xtol=1e-15, rtol=1e-15, maxiter=500))
        except (ValueError, RuntimeError) as error:
            raise ConvergenceError(f"the effective ridge was not found: {error}") from error
        return math.exp(result)


@dataclass(frozen=True, eq=False)
class Modes:
    """The spectrum of a first layer; all eigenvalues that vanish are one mode.

    Attributes
    ----------
    eigenvalues : ndarray, shape (min(d, N) + 1,)
        Of the Gram matrices; the last is zero.
    counts : ndarray, of the same shape
        How often they occur among the N of the features.
    overlaps : ndarray, of the same shape
        Squared overlaps of the teacher with the eigenvectors in the input space.
    width : int
        N.
    """

    eigenvalues: Array
    counts: Array
    overlaps: Array
    width: int


def modes_of(weights: Array, direction: Array | None = None) -> Modes:
    """Return the modes of a first layer."""
    dimension, width = weights.shape
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        left, values, _ = linalg.svd(weights, full_matrices=False, check_finite=False)
        inside = left[0] if direction is None else direction @ left
    # A rank that is not full, up to rounding.
    values[values < np.finfo(float).eps * max(weights.shape) * values[0]] = 0.0
    overlaps = inside**2
    with np.errstate(over="ignore"):
        eigenvalues = np.append(values**2, 0.0)
    rest = max(1 - float(overlaps.sum()), 0.0) if width < dimension else 0.0
    return Modes(
        eigenvalues,
        np.append(np.ones(len(values)), width - len(values)),
        np.append(overlaps, rest),
        width,
    )


@derived("one_gradient_step/conditional_modes", str)
def _mode_source() -> str:

    return mode_source()


def conditional_prediction(
    model: OneGradientStep, samples: float, ridges: Sequence[float]
) -> ConditionalPrediction:
    """Return the prediction for first layers of a model, with n samples of the readout."""
    student, teacher = model.student_moments, model.teacher_moments
    return ConditionalPrediction(
        _mode_source(model.cache),
        (student.linear, student.residual, teacher.linear, teacher.residual),
        model.noise_variance, samples, ridges,
    )  # fmt: skip


@one_penalty
def conditional_risk(
    model: OneGradientStep,
    weights: ArrayLike,
    *,
    ridge: object = None,
    direction: ArrayLike | None = None,
) -> ConditionalRisk:
    """Return the risk that Gaussian equivalence predicts for a given first layer.

    Parameters
    ----------
    weights : array_like, shape (d, N)
        A column for each neuron, after any number of steps of any size.
    ridge : float
        λ ≥ 0, or :func:`giantstep.paper_ridge`.
    direction : array_like, shape (d,), optional
        The teacher's, of any length; by default the first axis, as in simulations.

    Raises
    ------
    ParameterError
        If an argument has a wrong shape or is outside its range.
    """
    layer = _checked_weights(weights, model.beta)
    dimension, width = layer.shape
    unit = None if direction is None else _unit_vector(direction, dimension)
    samples = model.alpha * dimension
    penalty = penalty_of(ridge, width / samples)
    predicted = conditional_prediction(model, samples, [penalty]).errors(layer, unit)
    values: dict[str, Any] = {name: float(value[0]) for name, value in predicted.items()}
    return ConditionalRisk(ridge=penalty, **values)


def _checked_weights(weights: ArrayLike, beta: float) -> Array:
    try:
        layer = np.asarray(weights)
    except ValueError:
        layer = np.empty(0, dtype=object)
    if layer.ndim != 2 or layer.dtype.kind not in "fiu" or min(layer.shape) < 1 or len(layer) < 2:
        raise ParameterError(
            "weights must be an array of real numbers of shape (d, N), d >= 2; got "
            f"{layer.dtype} of shape {layer.shape}"
        )
    layer = layer.astype(np.float64)
    if not np.isfinite(layer).all():
        raise ParameterError("weights must be finite")
    if np.abs(layer).max() > _LARGEST:
        raise ParameterError(f"weights must be below {_LARGEST:g}: their squares overflow")
    ratio = layer.shape[1] / layer.shape[0]
    if abs(ratio / beta - 1) > _TOLERANCE:
        raise ParameterError(
            f"weights of shape {layer.shape} have N/d = {ratio:g}, the model has beta = {beta:g}; "
            "they must have a row for each input and a column for each neuron"
        )
    return layer


def _unit_vector(direction: ArrayLike, dimension: int) -> Array:
    try:
        vector = np.asarray(direction, dtype=float)
    except (TypeError, ValueError):
        vector = np.empty(0)
    norm = float(np.linalg.norm(vector)) if vector.shape == (dimension,) else 0.0
    if not 0 < norm < math.inf:
        raise ParameterError(
            f"direction must be a vector of {dimension} finite numbers that are not all 0"
        )
    return vector / norm
