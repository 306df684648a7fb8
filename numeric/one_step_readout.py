r"""Ridge readouts of first layers after gradient steps, and their risk against the teacher.

Penalty :math:`\lambda|w|^2` against the sum of squares, features :math:`\varphi/\sqrt N`. The
readout's samples are independent of those of the steps; all layers of one network share them, and
the test samples, so differences between layers have little scatter.

Features are those of the network, :math:`\sigma(W^\top x)`, or their Gaussian counterparts
:math:`\mu_1 W^\top x + \mu z` with fresh z and :math:`\mu^2` the variance of the rest of σ. A
prediction from the latter is linear in Gaussian variables, to which the nonlinear part of the
teacher is orthogonal: the population risk is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy import linalg

from ..errors import ConvergenceError, ParameterError
from .arguments import nonnegative_number, whole_number
from .one_step_network import (
    NONLINEAR,
    READOUT,
    RESIDUAL,
    TEST,
    Checkpoint,
    OneStepSetup,
    row_slices,
    sample_stream,
)
from .sample_stream import SampleStream, finite_values

__all__ = ["FEATURES", "LABELS", "ReadoutSetup", "RidgeFit", "fit_ridge", "measure_risks"]

Array = NDArray[np.float64]

FEATURES = ("network", "gaussian")
LABELS = ("teacher", "gaussian")

QUANTITIES = ("risk", "training_error", "objective")


@dataclass(frozen=True, slots=True)
class ReadoutSetup:
    """What is fitted to a first layer.

    Parameters
    ----------
    samples : int
        n.
    ridges : sequence of float
        λ ≥ 0; zero is the interpolator, or the least-squares fit, of least norm.
    features : {"network", "gaussian"}
    labels : {"teacher", "gaussian"}
        ``gaussian`` replaces the nonlinear part of the teacher by independent Gaussian numbers of
        the same variance; for Gaussian features only.
    test_samples : int
        Of network features.
    covariances : callable, optional
        Takes a first layer (d, N) with the teacher along the first axis, returns the covariances of
        the network's features with each other, (N, N), and with the target, (N,): the population
        risk is then exact, without test samples.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    """

    samples: int
    ridges: Sequence[float]
    features: str = "network"
    labels: str = "teacher"
    test_samples: int = 10_000
    covariances: Callable[[Array], tuple[Array, Array]] | None = None

    def __post_init__(self) -> None:
        for name in ("samples", "test_samples"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        ridges = tuple(nonnegative_number("ridge", ridge) for ridge in self.ridges)
        if not ridges:
            raise ParameterError("ridge must hold at least one number, such as [0.01, 0.1]")
        object.__setattr__(self, "ridges", ridges)
        for name, known in (("features", FEATURES), ("labels", LABELS)):
            if getattr(self, name) not in known:
                raise ParameterError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        if self.labels == "gaussian" and self.features == "network":
            raise ParameterError(
                "labels='gaussian' are not a function of the inputs, which network features see; "
                "use features='gaussian', or labels='teacher'"
            )

    def identity(self) -> dict[str, object]:
        """Return what fixes the numbers, as plain values."""
        found = {name: getattr(self, name) for name in self.__slots__}
        exact = self.covariances is not None
        return {**found, "ridges": list(self.ridges), "covariances": exact}


@dataclass(frozen=True, slots=True, eq=False)
class RidgeFit:
    """Ridge regressions of one set of samples, a column or entry for each λ.

    Attributes
    ----------
    coefficients : ndarray, shape (N, n_ridge)
        w of the prediction φ·w/√N.
    training_error : ndarray, shape (n_ridge,)
        Mean squared residual.
    objective : ndarray, shape (n_ridge,)
        The same plus λ|w|²/n.
    """

    coefficients: Array
    training_error: Array
    objective: Array


def fit_ridge(features: Array, labels: Array, ridges: Sequence[float]) -> RidgeFit:
    r"""Minimise :math:`\sum(y - \varphi\cdot w/\sqrt N)^2 + \lambda|w|^2` for several λ.

    One singular value decomposition serves all of them, and loses no digits at small λ.

    Parameters
    ----------
    features : ndarray, shape (n, N)
        φ; overwritten.
    labels : ndarray, shape (n,)
    ridges : sequence of float
        λ ≥ 0.

    Raises
    ------
    ConvergenceError
        If LAPACK finds no decomposition.

    Examples
    --------
    >>> fit = fit_ridge(np.array([[1.0, 1.0]]), np.array([2.0]), [0.0, 1.0])
    >>> (fit.coefficients / np.sqrt(2)).T.round(3).tolist()
    [[1.0, 1.0], [0.5, 0.5]]
    """
    samples, width = features.shape
    features /= math.sqrt(width)
    try:
        left, values, right = linalg.svd(
            features, full_matrices=False, overwrite_a=True, check_finite=False
        )
    except linalg.LinAlgError as error:
        raise ConvergenceError(
            f"the singular values of {samples} by {width} features do not converge",
            state={}, residual=math.nan,
        ) from error  # fmt: skip
    seen = left.T @ labels
    outside = labels - left @ seen
    # Rounding errors of zero singular values must not be divided by.
    positive = values > np.finfo(float).eps * max(samples, width) * values.max(initial=0.0)
    penalty = np.asarray(ridges, dtype=float)[:, None]
    divisor = np.where(positive, values, 1.0)
    # Neither form squares a singular value, which may be as large as a float.
    with np.errstate(divide="ignore", over="ignore"):
        amplitudes = np.where(positive, seen / (divisor + penalty / divisor), 0.0)
        residuals = np.where(positive, seen / (1 + divisor * (divisor / penalty)), seen)
    training = (outside @ outside + (residuals**2).sum(axis=1)) / samples
    return RidgeFit(
        right.T @ amplitudes.T,
        training,
        training + penalty[:, 0] * (amplitudes**2).sum(axis=1) / samples,
    )


def measure_risks(
    setup: OneStepSetup,
    weights: Sequence[Array],
    readout: ReadoutSetup,
    seed: int | np.random.SeedSequence,
    checkpoint: Checkpoint | None = None,
) -> dict[str, Array]:
    """Fit readouts to first layers, all on the same samples, and measure their risks.

    Parameters
    ----------
    setup : OneStepSetup
    weights : sequence of ndarray, shape (d, N)
    readout : ReadoutSetup
    seed : int or SeedSequence
        That of the network: its readout samples are independent of those of its steps.
    checkpoint : callable, optional
        Called before each block of samples. What it raises abandons the run.

    Returns
    -------
    dict of str to ndarray, shape (len(weights), n_ridge)
        ``risk``, mean squared distance of the prediction from the noise-free target;
        ``training_error`` against the noisy labels; ``objective``, the training error plus λ|w|²/n.
    """
    stream = sample_stream(setup, seed)
    found: dict[str, list[Array]] = {name: [] for name in QUANTITIES}
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        # A function that overflows is reported by name.
        np.errstate(over="ignore", invalid="ignore"),
    ):
        for layer in weights:
            features = np.empty((readout.samples, setup.width))
            labels = np.empty(readout.samples)
            for rows, part, known in _samples(setup, layer, readout, stream, checkpoint):
                features[rows], labels[rows] = part, known
            fit = fit_ridge(features, labels, readout.ridges)
            if checkpoint is not None:
                checkpoint()
            if readout.features == "gaussian":
                risk = _gaussian_risk(setup, layer, fit.coefficients)
            elif readout.covariances is not None:
                square = setup.teacher_linear**2 + setup.teacher_residual
                risk = _exact_risk(*readout.covariances(layer), square, fit.coefficients)
            else:
                risk = _test_risk(setup, layer, fit.coefficients, readout, stream, checkpoint)
            found["risk"].append(risk)
            found["training_error"].append(fit.training_error)
            found["objective"].append(fit.objective)
    return {name: np.stack(rows) for name, rows in found.items()}


def readout_features(
    setup: OneStepSetup, layer: Array, readout: ReadoutSetup, seed: int | np.random.SeedSequence,
    checkpoint: Checkpoint | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return features, (n, N), and labels, (n,), of the readout's samples."""
    features = np.empty((readout.samples, setup.width))
    labels = np.empty(readout.samples)
    stream = sample_stream(setup, seed)
    for rows, part, known in _samples(setup, layer, readout, stream, checkpoint):
        features[rows], labels[rows] = part, known
    return features, labels


def _samples(
    setup: OneStepSetup, layer: Array, readout: ReadoutSetup, stream: SampleStream,
    checkpoint: Checkpoint | None,
) -> Iterator[tuple[slice, Array, Array]]:  # fmt: skip
    """Yield rows, features and labels of the readout's samples."""
    start = 0
    for block, (inputs, labels) in enumerate(stream.blocks(READOUT, readout.samples)):
        if checkpoint is not None:
            checkpoint()
        if readout.labels == "gaussian":
            target = finite_values(setup.teacher, "teacher", inputs[:, 0])
            noise = stream.generator(RESIDUAL, block).standard_normal(len(labels))
            labels = (
                labels - target + setup.teacher_linear * inputs[:, 0]
                + math.sqrt(setup.teacher_residual) * noise
            )  # fmt: skip
        normal = stream.generator(NONLINEAR, block)
        for rows in row_slices(len(inputs), setup.width):
            hidden = inputs[rows] @ layer
            if readout.features == "gaussian":
                # In slices that follow from the width: the numbers are those of any other layer.
                noise = normal.standard_normal(hidden.shape)
                part = setup.linear * hidden + math.sqrt(setup.residual) * noise
            else:
                part = finite_values(setup.student, "student", hidden)
            yield slice(start + rows.start, start + rows.stop), part, labels[rows]
        start += len(labels)


def _gaussian_risk(setup: OneStepSetup, layer: Array, coefficients: Array) -> Array:
    """Population risk of predictions from Gaussian features."""
    scaled = coefficients / math.sqrt(setup.width)
    error = -setup.linear * (layer @ scaled)
    error[0] += setup.teacher_linear
    return np.asarray(
        (error**2).sum(axis=0) + setup.residual * (scaled**2).sum(axis=0) + setup.teacher_residual
    )


def _exact_risk(gram: Array, cross: Array, square: float, coefficients: Array) -> Array:
    """Population risk of predictions from features of known covariances."""
    scaled = coefficients / math.sqrt(len(cross))
    quadratic = np.einsum("ik,ik->k", scaled, gram @ scaled)
    # Below the rounding errors of its terms a risk is zero.
    return np.maximum(square - 2 * (cross @ scaled) + quadratic, 0.0)


def _test_risk(
    setup: OneStepSetup, layer: Array, coefficients: Array, readout: ReadoutSetup,
    stream: SampleStream, checkpoint: Checkpoint | None,
) -> Array:  # fmt: skip
    """Mean squared distance from the target on fresh samples."""
    scaled = coefficients / math.sqrt(setup.width)
    sums = np.zeros(scaled.shape[1])
    for inputs, targets in stream.blocks(TEST, readout.test_samples, noisy=False):
        if checkpoint is not None:
            checkpoint()
        for rows in row_slices(len(inputs), setup.width):
            values = finite_values(setup.student, "student", inputs[rows] @ layer)
            sums += ((values @ scaled - targets[rows, None]) ** 2).sum(axis=0)
    return sums / readout.test_samples
