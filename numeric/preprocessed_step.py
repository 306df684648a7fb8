r"""One gradient step on preprocessed labels, then ridge regression for the second layer.

Algorithm 1 of Damian, Lee & Soltanolkotabi (arXiv 2206.15144) for :math:`\hat f(x) = \alpha +
\beta\cdot x + a\cdot\sigma(Wx + b)` with m neurons and n samples:

1. Paired neurons, :math:`a_j = \pm 1`, :math:`b = 0`, rows uniform on the sphere: no output.
2. :math:`\alpha = \frac1n\sum y`, :math:`\beta = \frac1n\sum y\,x`; both are taken off the labels.
3. One step with weight decay :math:`1/\eta_1`, so that :math:`W = -\eta_1 \nabla_W L` with
   :math:`L = \frac1{2n}\sum(\hat f - y)^2`, and new biases :math:`b_j \sim \mathcal{N}(0, 1)`.
4. Ridge regression for a on the same samples.

Two liberties: the ridge problem is solved in closed form, which is where the gradient descent of
the source converges to, and label noise is Gaussian. The target depends on the first r
coordinates; nothing but the measurements knows that. Penalty as everywhere in giantstep:
:math:`\lambda|a|^2` against the *sum* of squares, features divided by :math:`\sqrt m`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy.linalg import subspace_angles

from ..errors import ParameterError
from .arguments import MOST_SEEDS, checked_seed, nonnegative_number, positive_number, whole_number
from .replicates import Replicates
from .ridge_readout import solve_ridge
from .sample_stream import (
    Function,
    SampleStream,
    finite_function,
    finite_values,
    progress_bar,
    seed_sequence,
)

__all__ = ["PreprocessedResult", "PreprocessedSetup", "train_preprocessed"]

Array = NDArray[np.float64]

HELD_OUT_SHARE = 0.2
"""Share of the samples that choose the ridge and do nothing else, if no ridge is given."""

RIDGE_EXPONENTS = np.arange(-8, 7) / 2
"""Decimal logarithms of the penalties to choose from, in units of n/m."""

RANK_TOLERANCE = 1e-12
"""Relative size below which a singular value is rounding: neurons then share a direction."""

SCALARS = (
    "relevant_share", "test_error", "random_features_error", "linear_error", "step_size", "ridge",
    "random_features_ridge",
)  # fmt: skip
_INITIAL, _TRAINING, _TEST, _RANDOM_FEATURES = range(4)


@dataclass(frozen=True, slots=True)
class PreprocessedSetup:
    """A network, its target, and how it is trained.

    Parameters
    ----------
    student, student_derivative : callable
        σ and σ'; take an array, return values of the same shape.
    target : callable
        Takes an array of shape (n, r), returns n values.
    variables : int
        Number r of coordinates that the target depends on; at most `dimension`.
    dimension, samples : int
        d and n, n >= 2. The samples are the same in all stages.
    width : int
        Number m of neurons, even: they come in pairs.
    noise_variance : float
        Variance of the label noise.
    ridge : float, optional
        Penalty λ > 0. By default a fifth of the samples is held out of all stages, and λ is the
        one of 15 values between 10⁻⁴ n/m and 10³ n/m with the smallest error there; random
        features choose theirs in the same way. Test samples are never looked at.
    step_size : float, optional
        η₁ > 0. By default the one that gives the rows a mean squared length of 1.

    Raises
    ------
    ParameterError
        If an argument is outside its range; the message names it.
    """

    student: Function
    student_derivative: Function
    target: Function
    variables: int
    dimension: int
    samples: int
    width: int
    noise_variance: float = 0.0
    ridge: float | None = None
    step_size: float | None = None

    def __post_init__(self) -> None:
        for name in ("student", "student_derivative", "target"):
            finite_function(name, getattr(self, name))
        for name, minimum in (("variables", 1), ("dimension", 1), ("samples", 2), ("width", 2)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), minimum))
        if self.variables > self.dimension:
            raise ParameterError(
                f"variables must be at most the dimension {self.dimension}, got {self.variables}"
            )
        if self.width % 2:
            raise ParameterError(f"width must be even, neurons come in pairs; got {self.width}")
        noise = nonnegative_number("noise_variance", self.noise_variance)
        object.__setattr__(self, "noise_variance", noise)
        for name in ("ridge", "step_size"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive_number(name, getattr(self, name)))
        if self.ridge is None and self.samples < 10:
            raise ParameterError(
                f"samples={self.samples} are too few to hold out a fifth\n"
                "  give a ridge, or samples >= 10"
            )

    @property
    def fitted(self) -> int:
        """Number of samples that train; the others choose the ridge."""
        held_out = 0 if self.ridge is not None else round(HELD_OUT_SHARE * self.samples)
        return self.samples - held_out


@dataclass(frozen=True, slots=True, eq=False)
class PreprocessedResult(Replicates):
    r"""What the networks achieved; one entry, or row, for each.

    Attributes
    ----------
    relevant_share : ndarray, shape (seeds,)
        Share of :math:`|\nabla_W L|^2` inside the space V* of the first r coordinates.
    principal_angles : ndarray, shape (seeds, r)
        Angles, in radians and increasing, between V* and the span of the first r right singular
        vectors of W. (All rows together span more, because of noise.)
    test_error : ndarray, shape (seeds,)
        Mean squared error against the noise-free target on fresh samples.
    random_features_error : ndarray, shape (seeds,)
        The same for random features: rows uniform on the sphere, the same width, biases, samples
        and preprocessing, and the same rule for the ridge.
    linear_error : ndarray, shape (seeds,)
        The same for :math:`\alpha + \beta\cdot x` alone.
    step_size, ridge, random_features_ridge : ndarray, shape (seeds,)
        What was used.
    """

    relevant_share: Array
    principal_angles: Array
    test_error: Array
    random_features_error: Array
    linear_error: Array
    step_size: Array
    ridge: Array
    random_features_ridge: Array

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the arrays with one row for each network."""
        return (*SCALARS, "principal_angles")

    def __repr__(self) -> str:
        return (
            f"PreprocessedResult({len(self.test_error)} networks, test error "
            f"{self.mean():.4g}, random features {self.mean('random_features_error'):.4g})"
        )


def train_preprocessed(
    setup: PreprocessedSetup,
    *,
    seeds: int = 5,
    seed: int = 0,
    n_test: int | None = None,
    progress: bool = True,
) -> PreprocessedResult:
    """Train networks by the algorithm, each on samples of its own, and measure them.

    Parameters
    ----------
    setup : PreprocessedSetup
    seeds : int
        Number of networks; more of them extend a smaller run.
    seed : int
        Entropy of the run, >= 0; fixes all numbers.
    n_test : int, optional
        Test samples for each network; 10000 by default.
    progress : bool
        Show a progress bar on the standard error stream if the run takes longer than a second.

    Raises
    ------
    ParameterError
        If an argument is outside its range, a function returns a wrong shape or a value that is
        not finite, the ridge is too small for double precision, or the gradient vanishes.

    Examples
    --------
    >>> step, relu = lambda u: np.heaviside(u, 0.5), lambda u: np.maximum(u, 0)
    >>> setup = PreprocessedSetup(relu, step, lambda x: x[:, 0] * x[:, 1], variables=2,
    ...                           dimension=10, samples=2000, width=60, ridge=1.0)
    >>> result = train_preprocessed(setup, seeds=3, n_test=2000)
    >>> bool(result.mean("test_error") < result.mean("random_features_error"))
    True
    """
    if not isinstance(setup, PreprocessedSetup):
        raise ParameterError(f"setup must be a PreprocessedSetup, not {type(setup).__name__}")
    seeds = whole_number("seeds", seeds, maximum=MOST_SEEDS)
    root = seed_sequence(checked_seed(seed))
    n_test = 10_000 if n_test is None else whole_number("n_test", n_test)
    rows = []
    with (
        # One thread: more of them change the last bits.
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        progress_bar(progress, seeds, "network") as bar,
    ):
        for index in range(seeds):
            child = np.random.SeedSequence(root.entropy, spawn_key=(index,))
            rows.append(_Training(setup, child).run(n_test))
            bar.update()
    scalars = {name: np.array([row[0][name] for row in rows]) for name in SCALARS}
    return PreprocessedResult(**scalars, principal_angles=np.array([row[1] for row in rows]))


class _Training:
    """One network and its samples."""

    def __init__(self, setup: PreprocessedSetup, seed: np.random.SeedSequence) -> None:
        self.setup = setup
        self.stream = SampleStream(
            setup.dimension, setup.target, setup.variables, setup.noise_variance, seed
        )
        self.offset = 0.0
        self.slope = np.zeros(setup.dimension)

    def run(self, n_test: int) -> tuple[dict[str, float], Array]:
        setup = self.setup
        self._preprocess()
        gradient = self._gradient()
        inside = np.linalg.norm(gradient[:, : setup.variables])
        length = float(np.linalg.norm(gradient))
        if length == 0:
            raise ParameterError(
                "the gradient vanishes on all samples: the student is linear, or the target is "
                "affine and free of noise"
            )
        step_size = setup.step_size
        if step_size is None:
            step_size = math.sqrt(len(gradient)) / length
        trained = (step_size * gradient, self._biases(_INITIAL))
        rows = self._unit_rows(_RANDOM_FEATURES, setup.width)
        random = (rows, self._biases(_RANDOM_FEATURES))
        ridge, readout = self._ridge(*trained)
        random_ridge, random_readout = self._ridge(*random)
        errors = self._errors(
            [self._prediction(*trained, readout), self._prediction(*random, random_readout)],
            self.stream.blocks(_TEST, n_test, noisy=False),
        )
        scalars = {
            "relevant_share": float((inside / length) ** 2),
            "test_error": errors[0],
            "random_features_error": errors[1],
            "linear_error": errors[2],
            "step_size": step_size,
            "ridge": ridge,
            "random_features_ridge": random_ridge,
        }
        return scalars, self._principal_angles(gradient)

    def _preprocess(self) -> None:
        """Mean and linear part of the labels, both of the raw labels."""
        count = self.setup.fitted
        total, moment = 0.0, np.zeros(self.setup.dimension)
        for inputs, labels in self.stream.blocks(_TRAINING, count):
            total += float(labels.sum())
            moment += labels @ inputs
        self.offset, self.slope = total / count, moment / count

    def _gradient(self) -> Array:
        """Rows of -∇L at the paired start; partners differ in sign only."""
        rows = self._unit_rows(_INITIAL, self.setup.width // 2)
        gradient = np.zeros_like(rows)
        for inputs, labels in self.stream.blocks(_TRAINING, self.setup.fitted):
            factors = finite_values(
                self.setup.student_derivative, "student_derivative", inputs @ rows.T
            )
            gradient += (factors * self._residuals(inputs, labels)[:, None]).T @ inputs
        gradient /= self.setup.fitted
        return np.stack([gradient, -gradient], axis=1).reshape(self.setup.width, -1)

    def _principal_angles(self, gradient: Array) -> Array:
        """Angles between V* and the leading right singular vectors; right angles if too few."""
        count = self.setup.variables
        # One row of each pair has them all.
        _, lengths, directions = np.linalg.svd(gradient[::2], full_matrices=False)
        kept = directions[:count][lengths[:count] > RANK_TOLERANCE * lengths[0]]
        angles = np.full(count, math.pi / 2)
        found = subspace_angles(kept.T, np.eye(self.setup.dimension, count))
        angles[: len(found)] = np.sort(found)
        return angles

    def _residuals(self, inputs: Array, labels: Array) -> Array:
        return np.asarray(labels - self.offset - inputs @ self.slope)

    def _unit_rows(self, purpose: int, count: int) -> Array:
        rows = self.stream.generator(purpose, 0).standard_normal((count, self.setup.dimension))
        return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])

    def _biases(self, purpose: int) -> Array:
        return self.stream.generator(purpose, 1).standard_normal(self.setup.width)

    def _features(self, inputs: Array, rows: Array, biases: Array) -> Array:
        values = finite_values(self.setup.student, "student", inputs @ rows.T + biases)
        return np.asarray(values / math.sqrt(self.setup.width))

    def _ridge(self, rows: Array, biases: Array) -> tuple[float, Array]:
        """Penalty and readout; without a given penalty held-out samples choose it."""
        setup = self.setup
        gram, moment = np.zeros((setup.width, setup.width)), np.zeros(setup.width)
        for inputs, labels in self.stream.blocks(_TRAINING, setup.fitted):
            features = self._features(inputs, rows, biases)
            gram += features.T @ features
            moment += features.T @ self._residuals(inputs, labels)
        if setup.ridge is not None:
            return setup.ridge, solve_ridge(gram, moment, setup.ridge)
        penalties = (setup.fitted / setup.width * 10.0**RIDGE_EXPONENTS).tolist()
        readouts = [solve_ridge(gram, moment, penalty) for penalty in penalties]
        held_out = self._errors(
            [self._prediction(rows, biases, np.array(readouts).T)],
            self.stream.blocks(_TRAINING, setup.samples, start=setup.fitted),
        )
        best = int(np.argmin(held_out[: len(penalties)]))
        return penalties[best], readouts[best]

    def _prediction(self, rows: Array, biases: Array, readout: Array) -> Callable[[Array], Array]:
        return lambda inputs: self._features(inputs, rows, biases) @ readout

    def _errors(
        self,
        networks: Sequence[Callable[[Array], Array]],
        blocks: Iterable[tuple[Array, Array]],
    ) -> list[float]:
        """Mean squared errors of the networks and, last, of the linear part alone."""
        sums: Array = np.zeros(1)
        count = 0
        for inputs, labels in blocks:
            residuals = self._residuals(inputs, labels)[:, None]
            columns = [network(inputs).reshape(len(inputs), -1) for network in networks]
            outputs = np.hstack([*columns, np.zeros((len(inputs), 1))])
            sums = sums + ((residuals - outputs) ** 2).sum(axis=0)
            count += len(inputs)
        return [float(value) for value in sums / count]
