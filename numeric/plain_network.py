r"""One two-layer network of finite size, trained with one giant gradient step.

First-layer rows :math:`w_j`, j = 1..p, start uniformly on the unit sphere of R^d; the readout of
the step is uniform, :math:`a_j = 1/\sqrt p`, so the prediction is the mean of the neurons. With
n0 samples, :math:`y = \sigma_*(\theta \cdot x) + \sqrt{\Delta}\,\xi`, the full-batch step is

.. math:: w_j \leftarrow w_j + \frac{s}{n_0} \sum_\mu (y_\mu - f_0(x_\mu))\,
          \sigma'(w_j \cdot x_\mu)\, x_\mu .

Ridge regression on n fresh samples then trains the readout. Convention: penalty
:math:`\lambda |w|^2` against the *sum* of squares, features :math:`\varphi / \sqrt p`; the test
error is against the noise-free target, the training error against the noisy labels.

Samples come in blocks with a random stream each, so data that are not kept can be drawn again, and
no array of n0 or n_test rows is ever held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from ..errors import ParameterError
from .arguments import real_number, whole_number
from .ridge_readout import fit_nested

__all__ = ["NetworkResult", "NetworkSetup", "sample_count", "simulate_network"]

Array = NDArray[np.float64]
Activation = Callable[[Array], Any]

BLOCK_ROWS = 1024
"""Samples per block: enough for the full rate of BLAS, few enough to stay in the last cache."""

SLICE_ENTRIES = 2**15
"""Entries handed to an activation at once, 256 kB: its temporaries stay in the second cache."""

# Rows of a network, samples or neurons: numbers that no memory holds are refused at once.
_MOST_ROWS = 10**9
RATIO_TOLERANCE = 0.01
"""Largest relative deviation of a ratio such as n/d that rounding n may cause."""


@dataclass(frozen=True, slots=True)
class NetworkSetup:
    """A network, its teacher and its first gradient step.

    Parameters
    ----------
    student, student_derivative, teacher : callable
        Vectorised functions of a float array, values of the same shape (or a scalar constant).
    step_size : float
        Per-neuron step s. Zero skips the step: plain random features.
    alpha0 : float
        Samples of the step divided by the dimension, finite; not used if `step_size` is zero.
    beta : float
        Neurons divided by the dimension.
    noise_variance : float
        Variance of the label noise, in the step and in the readout samples.
    dimension : int
        Input dimension d.

    Raises
    ------
    ParameterError
        If an argument is outside its range, or if a ratio times `dimension` is not close to a
        whole number.
    """

    student: Activation
    student_derivative: Activation
    teacher: Activation
    step_size: float
    alpha0: float
    beta: float
    noise_variance: float
    dimension: int

    def __post_init__(self) -> None:
        for name in ("student", "student_derivative", "teacher"):
            if not callable(getattr(self, name)):
                raise ParameterError(f"{name} must be a function of an array")
        object.__setattr__(self, "dimension", whole_number("dimension", self.dimension))
        for name in ("step_size", "alpha0", "beta", "noise_variance"):
            object.__setattr__(self, name, real_number(name, getattr(self, name)))
        if not math.isfinite(self.step_size):
            raise ParameterError(f"step_size must be finite, got {self.step_size}")
        if not 0 <= self.noise_variance < math.inf:
            raise ParameterError(f"noise_variance must be >= 0, got {self.noise_variance}")
        if not self.alpha0 > 0:
            raise ParameterError(f"alpha0 must be positive, got {self.alpha0}")
        sample_count("beta", self.beta, self.dimension)
        if self.step_size:
            sample_count("alpha0", self.alpha0, self.dimension)

    @property
    def width(self) -> int:
        """Number of neurons p."""
        return sample_count("beta", self.beta, self.dimension)


@dataclass(frozen=True, slots=True, eq=False)
class NetworkResult:
    """What one network achieved.

    Attributes
    ----------
    test_error, training_error : ndarray
        One value for each alpha: mean squared error against the noise-free target on fresh data,
        and against the noisy labels on the training data.
    spike_strength : float
        r, mean over the rows of w·v, with v the unit vector along the mean gradient direction
        ``sum_mu (y_mu - f0(x_mu)) x_mu``. Zero without a step.
    bulk_variance : float
        c, mean over the rows of the squared length across v.
    alignment : float
        Overlap v·theta with the teacher's direction. Zero without a step.
    """

    test_error: Array
    training_error: Array
    spike_strength: float
    bulk_variance: float
    alignment: float


def simulate_network(
    setup: NetworkSetup,
    alpha: Sequence[float],
    *,
    ridge: float,
    seed: np.random.SeedSequence,
    n_test: int | None = None,
    checkpoint: Callable[[], None] | None = None,
) -> NetworkResult:
    """Train one network and measure its errors.

    Parameters
    ----------
    setup : NetworkSetup
        The network.
    alpha : sequence of float
        Readout samples divided by the dimension, in any order. The samples are nested: a smaller
        alpha uses the first samples of a larger one.
    ridge : float
        Penalty of the squared norm of the readout, positive.
    seed : SeedSequence
        Fixes everything; it is not changed.
    n_test : int, optional
        Test samples; max(10000, 10 d) by default.
    checkpoint : callable, optional
        Called before each block of 1024 samples. What it raises abandons the run.

    Returns
    -------
    NetworkResult
        Errors in the order of `alpha`. BLAS is held to one thread, so the numbers do not depend on
        its number of threads. Where that number belongs to the process, calls that overlap in
        several threads are safe only while the thread that started them holds the limit, as
        :func:`giantstep.numeric.simulation.simulate` does.

    Raises
    ------
    ParameterError
        If an argument is outside its range, a number of samples is not close to a whole number, or
        an activation returns a wrong shape or a value that is not finite.
    """
    ratios, ridge, n_test = check_readout(setup, alpha, ridge, n_test)
    counts = [sample_count("alpha", ratio, setup.dimension) for ratio in ratios]
    sizes, order = np.unique(counts, return_inverse=True)
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        network = _Network(setup, seed, checkpoint or (lambda: None))
        spike_strength, bulk_variance, alignment = network.step()
        width = setup.width
        # u = w / sqrt(p) takes the 1/sqrt(p) from the features into the penalty.
        readouts, training_error = fit_nested(
            network.draw_features,
            sizes.tolist(),
            width=width,
            ridge=ridge * width,
            block_rows=BLOCK_ROWS,
        )
        test_error = network.test_errors(readouts, n_test)
    return NetworkResult(
        test_error[order], training_error[order], spike_strength, bulk_variance, alignment
    )


class _Network:
    """The arrays of one run: rows, teacher direction, one block of inputs."""

    def __init__(
        self, setup: NetworkSetup, seed: np.random.SeedSequence, checkpoint: Callable[[], None]
    ) -> None:
        self.setup = setup
        self.seed = seed
        self.checkpoint = checkpoint
        generator = self.stream(0)
        self.theta = generator.standard_normal(setup.dimension)
        self.theta /= np.linalg.norm(self.theta)
        self.rows = generator.standard_normal((setup.width, setup.dimension))
        self.rows /= np.linalg.norm(self.rows, axis=1)[:, None]
        self.inputs = np.empty((BLOCK_ROWS, setup.dimension))

    def stream(self, *key: int) -> np.random.Generator:
        """Generator of a block. The keys extend the seed's own, as ``spawn`` does, unchanged."""
        child = np.random.SeedSequence(
            self.seed.entropy,
            spawn_key=(*self.seed.spawn_key, *key),
            pool_size=self.seed.pool_size,
        )
        # SFC64 draws normals a fifth faster than PCG64, and they are the largest cost after BLAS.
        return np.random.Generator(np.random.SFC64(child))

    def draw(self, purpose: int, start: int, count: int, noise: float) -> tuple[Array, Array]:
        """Inputs and labels of the block that begins at sample `start`."""
        self.checkpoint()
        generator = self.stream(purpose, start // BLOCK_ROWS)
        # Noise of the full block comes first, so that a shorter block has the same first samples.
        xi = generator.standard_normal(BLOCK_ROWS)[:count]
        inputs = generator.standard_normal(out=self.inputs[:count])
        labels = _values(self.setup.teacher, "teacher", inputs @ self.theta)
        return inputs, labels + math.sqrt(noise) * xi

    def draw_features(self, start: int, out: Array) -> Array:
        """Write features of readout samples into `out`, return their labels."""
        inputs, labels = self.draw(2, start, len(out), self.setup.noise_variance)
        self.features(inputs, out)
        return labels

    def features(self, inputs: Array, out: Array) -> None:
        """Write student(inputs · rows) into `out`."""
        np.matmul(inputs, self.rows.T, out=out)
        for part in _slices(out):
            out[part] = _values(self.setup.student, "student", out[part])

    def step(self) -> tuple[float, float, float]:
        """Take the gradient step; return the realised r, c and alignment."""
        setup = self.setup
        direction = np.zeros(setup.dimension)
        if setup.step_size:
            count = sample_count("alpha0", setup.alpha0, setup.dimension)
            gradient = np.zeros_like(self.rows)
            product = np.empty_like(self.rows)
            hidden = np.empty((min(BLOCK_ROWS, count), setup.width))
            for start in range(0, count, BLOCK_ROWS):
                size = min(BLOCK_ROWS, count - start)
                inputs, residuals = self.draw(1, start, size, setup.noise_variance)
                block = np.matmul(inputs, self.rows.T, out=hidden[:size])
                for part in _slices(block):
                    residuals[part] -= _values(setup.student, "student", block[part]).mean(axis=1)
                    block[part] = _values(
                        setup.student_derivative, "student_derivative", block[part]
                    )
                    block[part] *= residuals[part, None]
                np.matmul(block.T, inputs, out=product)
                gradient += product
                direction += residuals @ inputs
            gradient *= setup.step_size / count
            self.rows += gradient
            norm = np.linalg.norm(direction)
            if norm > 0:
                direction /= norm
        along = self.rows @ direction
        squared = np.einsum("ji,ji->j", self.rows, self.rows)
        return (
            float(along.mean()),
            float((squared - along**2).mean()),
            float(direction @ self.theta),
        )

    def test_errors(self, readouts: Array, count: int) -> Array:
        """Mean squared error of each column of readouts on `count` fresh samples."""
        sums = np.zeros(readouts.shape[1])
        hidden = np.empty((min(BLOCK_ROWS, count), self.setup.width))
        for start in range(0, count, BLOCK_ROWS):
            block = hidden[: min(BLOCK_ROWS, count - start)]
            inputs, targets = self.draw(3, start, len(block), 0.0)
            self.features(inputs, block)
            errors = block @ readouts
            errors -= targets[:, None]
            sums += np.einsum("mk,mk->k", errors, errors)
        return sums / count


def _slices(values: Array) -> Iterator[slice]:
    """Row slices of about SLICE_ENTRIES entries."""
    rows = max(1, SLICE_ENTRIES // values.shape[1])
    for start in range(0, len(values), rows):
        yield slice(start, start + rows)


def _values(function: Activation, name: str, z: Array) -> Array:
    """Values of a user's function, refused if they have a wrong shape or are not finite."""
    values = np.asarray(function(z))
    if values.dtype.kind not in "fiub" or values.shape not in (z.shape, ()):
        raise ParameterError(
            f"{name} must return real values, one for each entry of its argument\n"
            f"  for an array of shape {z.shape} it returned {values.dtype} of shape {values.shape}"
        )
    finite = np.isfinite(values)
    if not finite.all():
        where = z[np.broadcast_to(~finite, z.shape)].flat[0]
        raise ParameterError(f"{name} is not finite at {where:.6g}")
    return np.broadcast_to(values.astype(np.float64, copy=False), z.shape)


def sample_count(name: str, ratio: float, dimension: int) -> int:
    """Whole number closest to ratio * dimension.

    Raises
    ------
    ParameterError
        If `ratio` is not positive and finite, if the number is below 1, or if rounding changes the
        ratio by more than 1 %; the message names `name` and a dimension that works.
    """
    if not 0 < ratio < math.inf:
        hint = "; a simulation has finitely many samples" if ratio == math.inf else ""
        raise ParameterError(f"{name} must be positive and finite, got {ratio}{hint}")
    if not ratio * dimension <= _MOST_ROWS:
        raise ParameterError(
            f"{name}={ratio:g} is too large for a simulation: {name}*dimension must be at most "
            f"{_MOST_ROWS:g}, with dimension={_shortened(dimension)}"
        )
    if _rounds_well(ratio, dimension):
        return round(ratio * dimension)
    if ratio * _MOST_ROWS < 1:
        raise ParameterError(
            f"{name}={ratio:g} is too small for a simulation: {name}*dimension must be at least 1, "
            f"and dimension at most {_MOST_ROWS:g}"
        )
    # From here on half a sample is within the tolerance; below the first nothing is.
    always = math.ceil(0.5 / RATIO_TOLERANCE / ratio)
    first = max(dimension + 1, math.floor(1 / (1 + 2 * RATIO_TOLERANCE) / ratio))
    smallest = next(d for d in range(first, always + 1) if _rounds_well(ratio, d))
    larger = "" if smallest == always else f"dimension = {smallest} or "
    raise ParameterError(
        f"dimension={dimension} is too small for {name}={ratio:g}: {name}*dimension = "
        f"{ratio * dimension:g} is not within {RATIO_TOLERANCE:.0%} of a whole number >= 1\n"
        f"  use {larger}dimension >= {always}"
    )


def _shortened(number: int) -> str:
    return str(number) if number < 10**12 else f"{float(number):.3g}"


def _rounds_well(ratio: float, dimension: int) -> bool:
    exact = ratio * dimension
    count = round(exact)
    # 1e-9: a deviation of exactly 1 %, as 0.5 of 50, must not hang on the last bit.
    return count >= 1 and abs(count - exact) <= RATIO_TOLERANCE * exact * (1 + 1e-9)


def check_readout(
    setup: NetworkSetup, alpha: Sequence[float], ridge: float, n_test: int | None
) -> tuple[tuple[float, ...], float, int]:
    """Validated alpha, ridge and n_test; raises ParameterError naming the wrong one."""
    if not isinstance(setup, NetworkSetup):
        raise ParameterError(f"setup must be a NetworkSetup, not {type(setup).__name__}")
    if np.ndim(alpha) != 1 or len(alpha) == 0:
        raise ParameterError("alpha must be a non-empty sequence of numbers, such as [0.5, 1, 2]")
    ratios = tuple(real_number("alpha", value) for value in alpha)
    for ratio in ratios:
        sample_count("alpha", ratio, setup.dimension)
    ridge = real_number("ridge", ridge)
    if not 0 < ridge < math.inf:
        raise ParameterError(f"ridge must be positive and finite, got {ridge}")
    if n_test is None:
        return ratios, ridge, max(10_000, 10 * setup.dimension)
    return ratios, ridge, whole_number("n_test", n_test)
