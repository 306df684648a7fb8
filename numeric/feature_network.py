r"""Networks of finite size whose readout takes a few values in the gradient step.

With readouts :math:`a_j = \tilde a_j/\sqrt p`, letters :math:`\tilde a_j` of a finite vocabulary,
and rows that start uniformly on the unit sphere of R^d, the full-batch step is

.. math:: w_j \leftarrow w_j + \frac{s\,\tilde a_j}{n_0} \sum_\mu (y_\mu - f_0(x_\mu))\,
          \sigma'(w_j\cdot x_\mu)\,x_\mu , \qquad
          f_0(x) = \frac1p \sum_j \tilde a_j\,\sigma(w_j\cdot x) .

Rows of one letter are a class; the spike is the direction of :math:`\sum_\mu (y_\mu - f_0) x_\mu`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from .arguments import nonnegative_number, positive_number, real_number, whole_number
from .feature_labels import Channel, checked_channel
from .feature_rows import FirstLayer
from .feature_samples import BLOCK_ROWS, STEP, layer_samples
from .feature_setup import row_counts
from .networks.sizes import sample_count
from .sample_stream import Function, finite_function, finite_values, seed_sequence

__all__ = ["SteppedNetwork"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SteppedNetwork:
    r"""A network, its teacher and its first gradient step.

    Parameters
    ----------
    student, student_derivative : callable
        Vectorised activation and its derivative.
    teacher : callable
        Takes the projections :math:`\theta\cdot x`, or an array (n, r) for r > 1 directions.
    step_size : float
        Per-neuron step s of the letter 1. Zero skips the step: plain random features.
    alpha0 : float
        Samples of the step divided by the dimension.
    letters, fractions : sequence of float
        Vocabulary ã of the readout in the step, and the share of the rows with each letter.
    beta : float
        Rows divided by the dimension.
    noise_variance : float
        Δ, in the step and in the readout samples.
    dimension : int
        Input dimension d.
    labels : str or callable
        See :class:`.feature_labels.Channel`; the step takes the square loss of these labels.
    teacher_directions : int
        Number r of directions that the teacher sees.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    """

    student: Function
    student_derivative: Function
    teacher: Function
    step_size: float
    alpha0: float
    letters: Sequence[float] = (1.0,)
    fractions: Sequence[float] = (1.0,)
    beta: float = 1.0
    noise_variance: float = 0.0
    dimension: int = 400
    labels: str | Callable[[Array, Array], Any] = "regression"
    teacher_directions: int = 1

    def __post_init__(self) -> None:
        for name in ("student", "student_derivative", "teacher"):
            finite_function(name, getattr(self, name))
        for name in ("dimension", "teacher_directions"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        for name in ("alpha0", "beta"):
            object.__setattr__(self, name, positive_number(name, getattr(self, name)))
        step = real_number("step_size", self.step_size)
        if not math.isfinite(step):
            raise ParameterError(f"step_size must be finite, got {step}")
        object.__setattr__(self, "step_size", step)
        noise = nonnegative_number("noise_variance", self.noise_variance)
        object.__setattr__(self, "noise_variance", noise)
        letters = tuple(real_number("letters", letter) for letter in self.letters)
        if not letters or not all(map(math.isfinite, letters)):
            raise ParameterError(f"letters must be finite numbers, got {self.letters!r}")
        fractions = tuple(positive_number("fractions", share) for share in self.fractions)
        if len(letters) != len(fractions):
            raise ParameterError(
                f"letters and fractions must be equally many, got {len(letters)} and "
                f"{len(fractions)}"
            )
        if len(set(letters)) < len(letters):
            raise ParameterError(f"letters must differ, got {letters}; add up their fractions")
        object.__setattr__(self, "letters", letters)
        object.__setattr__(self, "fractions", fractions)
        row_counts(fractions, self.width)
        if step:
            sample_count("alpha0", self.alpha0, self.dimension)
        if self.teacher_directions >= self.dimension:
            raise ParameterError(
                f"dimension must exceed the teacher's {self.teacher_directions} directions, "
                f"got {self.dimension}"
            )
        checked_channel(self.labels, noise)

    @property
    def width(self) -> int:
        """Number of rows p."""
        return sample_count("beta", self.beta, self.dimension)

    @property
    def channel(self) -> Channel:
        """How labels are made from the target."""
        return checked_channel(self.labels, self.noise_variance)

    @property
    def spike_directions(self) -> int:
        """One: the direction of the gradient."""
        return 1

    def first_layer(
        self, seed: int | np.random.SeedSequence, checkpoint: Callable[[], None] | None = None
    ) -> FirstLayer:
        """Draw the rows and take the gradient step.

        Parameters
        ----------
        seed : int or SeedSequence
        checkpoint : callable, optional
            Called before each block of samples. What it raises abandons the run.
        """
        found = seed_sequence(seed)
        child = np.random.SeedSequence(
            found.entropy, spawn_key=(*found.spawn_key, 0), pool_size=found.pool_size
        )
        generator = np.random.Generator(np.random.SFC64(child))
        d, p = self.dimension, self.width
        rows = generator.standard_normal((p, d))
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        classes = np.repeat(np.arange(len(self.letters)), row_counts(self.fractions, p))
        # The law of the rows does not change under rotations: teachers are the first axes.
        teachers = np.eye(self.teacher_directions, d)
        spike = np.eye(1, d, self.teacher_directions)[0]
        if self.step_size:
            spike = self._step(rows, np.asarray(self.letters)[classes], teachers, found, checkpoint)
        centres = np.zeros((len(self.letters), 1))
        layer = FirstLayer(rows, classes, np.zeros(p), spike[None], teachers, centres)
        if self.step_size:
            centres[:] = layer.strengths
        return layer

    def _step(
        self,
        rows: Array,
        letters: Array,
        teachers: Array,
        seed: np.random.SeedSequence,
        checkpoint: Callable[[], None] | None,
    ) -> Array:
        """Move the rows; return the unit vector along the sum of residuals times inputs."""
        count = sample_count("alpha0", self.alpha0, self.dimension)
        gradient, direction = np.zeros_like(rows), np.zeros(self.dimension)
        hidden = np.empty((min(BLOCK_ROWS, count), self.width))
        for block in layer_samples(
            self.teacher, teachers, self.channel, seed, STEP, count, checkpoint
        ):
            inner = np.matmul(block.inputs, rows.T, out=hidden[: len(block.inputs)])
            output = finite_values(self.student, "student", inner) @ letters / self.width
            residuals = block.labels - output
            weighted = finite_values(self.student_derivative, "student_derivative", inner)
            gradient += (weighted * residuals[:, None]).T @ block.inputs
            direction += residuals @ block.inputs
        rows += self.step_size / count * letters[:, None] * gradient
        norm = np.linalg.norm(direction)
        return direction / norm if norm > 0 else np.eye(1, self.dimension)[0]

    def identity(self) -> dict[str, object]:
        """Return what fixes the numbers besides the functions, as plain values."""
        return {
            "kind": "network after one step",
            "step_size": self.step_size,
            "alpha0": self.alpha0,
            "letters": list(self.letters),
            "fractions": list(self.fractions),
            "beta": self.beta,
            "noise_variance": self.noise_variance,
            "dimension": self.dimension,
            "labels": self.channel.name,
            "teacher_directions": self.teacher_directions,
        }
