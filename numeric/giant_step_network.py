r"""One two-layer network of finite size and several giant gradient steps of its first layer.

The network is :math:`\hat f(x) = \frac1p \sum_i a_i\, \sigma(w_i\cdot x + b_i)`, with rows
:math:`w_i` that start uniformly on the unit sphere of R^d. With a fresh batch of n samples, all
rows take the step of the squared loss :math:`\frac1{2n}\sum_\mu (y_\mu - \hat f(x_\mu))^2`,

.. math:: w_i \leftarrow w_i + \frac{\mathrm{rate}}{n}\, a_i \sum_\mu (y_\mu - \hat f(x_\mu))\,
          \sigma'(w_i\cdot x_\mu + b_i)\, x_\mu ,

so that `rate` is the learning rate divided by p. Readouts and biases stay. The target depends on
the first r coordinates; nothing but the measurements knows that. In the end ridge regression on
fresh samples may train the readout, with an intercept that is not penalised. Penalty:
:math:`\lambda|a|^2` against the *sum* of squares, features divided by :math:`\sqrt p`.

What a network holds is p × d weights, a gradient of that size and blocks of fixed size: batches
are drawn block by block, see :mod:`.sample_stream`, and neurons with the partners' weights share
the work of the first step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from .giant_step_setup import FEWEST_ROWS, HIDDEN_ENTRIES, GiantStepsSetup
from .preprocessed_step import HELD_OUT_SHARE, RIDGE_EXPONENTS
from .ridge_readout import solve_ridge
from .sample_stream import Function, SampleStream, finite_values

__all__ = ["GiantStepsNetwork"]

Array = NDArray[np.float64]

LARGEST_WEIGHT = 1e30
"""A network with larger weights has diverged; squares of squares still do not overflow."""

_INITIAL, _RIDGE, _TEST, _BATCHES = range(4)


@dataclass(slots=True)
class GiantStepsNetwork:
    """One network in training; :meth:`measurements` after each step make up its record.

    Parameters
    ----------
    setup : GiantStepsSetup
    seed : SeedSequence
        Fixes everything.
    checkpoint : callable
        Called before each block of samples. What it raises abandons the run.
    progress : callable
        Told the number of samples of each finished block.
    """

    setup: GiantStepsSetup
    seed: np.random.SeedSequence
    checkpoint: Callable[[], None]
    progress: Callable[[int], None]
    stream: SampleStream = field(init=False)
    readout: Array = field(init=False)
    biases: Array = field(init=False)
    weights: Array = field(init=False)
    _gradient: Array = field(init=False)
    _excess: Array = field(init=False)
    _steps_taken: int = 0

    def __post_init__(self) -> None:
        setup = self.setup
        self.stream = SampleStream(
            setup.dimension, setup.target, setup.variables, setup.noise_variance, self.seed
        )
        self.readout, self.biases = self._readouts()
        self._gradient = np.empty((setup.width, setup.dimension))
        self.weights = np.empty_like(self._gradient)
        self._write_start(self.weights)
        self._excess = np.eye(setup.variables)

    def _readouts(self) -> tuple[Array, Array]:
        """Readouts and biases; equal ones are neighbours."""
        setup = self.setup
        generator = self.stream.generator(_INITIAL, 1)
        groups = setup.seats // setup.replicas
        if setup.readout == "gaussian":
            values = generator.standard_normal(groups)
        elif setup.readout == "signs" and setup.paired:
            values = np.ones(groups)
        elif setup.readout == "signs":
            values = np.sort(generator.choice([-1.0, 1.0], groups))
        else:
            given = np.array(setup.readout)
            values = given[np.arange(groups) * len(given) // groups]
        biases = generator.standard_normal(groups) if setup.biases else np.zeros(groups)
        group = np.arange(setup.seats) * groups // setup.seats
        values, biases = values[group], biases[group]
        if not setup.paired:
            return values, biases
        return np.concatenate([values, -values]), np.concatenate([biases, biases])

    def _write_start(self, out: Array) -> None:
        """Rows uniform on the sphere; partners share theirs."""
        rows = out[: self.setup.seats]
        self.stream.generator(_INITIAL, 0).standard_normal(out=rows)
        rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        if self.setup.paired:
            out[self.setup.seats :] = rows

    # ------------------------------------------------------------------ training

    def step(self, number: int) -> None:
        """Take step `number`, from 0.

        Raises
        ------
        ParameterError
            If the weights overflow, or a function returns a value that is not finite.
        """
        # What overflows is found afterwards.
        with np.errstate(over="ignore", invalid="ignore"):
            self._take_step(number)
        if not -LARGEST_WEIGHT < self.weights.min() <= self.weights.max() < LARGEST_WEIGHT:
            raise ParameterError(
                f"the weights overflow in step {number + 1}: the steps are too large\n"
                "  use a smaller step_size"
            )
        self._steps_taken = number + 1

    def _take_step(self, number: int) -> None:
        setup, purpose = self.setup, _BATCHES + number
        offset, slope = self._linear_part(purpose) if setup.preprocess else (0.0, None)
        # Paired neurons have no output at the start, and partners the same gradient.
        silent = setup.paired and number == 0
        count = setup.seats if silent else setup.width
        gradient = self._gradient[:count]
        gradient.fill(0.0)
        power, products = 0.0, np.zeros_like(self._excess)
        for inputs, labels in self._blocks(purpose, setup.samples):
            if slope is not None:
                labels = labels - offset - inputs @ slope
            for rows in self._hidden_rows(len(labels), count):
                residuals = self._add_gradient(gradient, inputs[rows], labels[rows], silent)
                weighted = residuals[:, None] * inputs[rows, : setup.variables]
                products += weighted.T @ weighted
                power += float(residuals @ residuals)
        # Without residuals there is no noise, and no direction with more of it.
        self._excess = products / power if power else np.eye(setup.variables)
        gradient *= (setup.rate / setup.samples * self.readout[:count])[:, None]
        self.weights[:count] += gradient
        if silent:
            self.weights[count:] -= gradient

    def _add_gradient(self, gradient: Array, inputs: Array, labels: Array, silent: bool) -> Array:
        """Add the gradients of a block of samples; return its residuals."""
        count = len(gradient)
        hidden = self._hidden(inputs, count)
        residuals = labels if silent else labels - self._values(hidden) @ self.readout / count
        slopes = self._finite(self.setup.student_derivative, "student_derivative", hidden)
        np.multiply(slopes, residuals[:, None], out=hidden)
        # In groups of neurons, so that no third array of the size of the weights is needed.
        size = max(1, 2**19 // inputs.shape[1])
        for start in range(0, count, size):
            gradient[start : start + size] += hidden[:, start : start + size].T @ inputs
        return np.asarray(residuals)

    def _hidden(self, inputs: Array, count: int) -> Array:
        hidden = inputs @ self.weights[:count].T
        if self.setup.biases:
            hidden += self.biases[:count]
        return np.asarray(hidden)

    def _values(self, hidden: Array) -> Array:
        return self._finite(self.setup.student, "student", hidden)

    def _finite(self, function: Function, name: str, hidden: Array) -> Array:
        try:
            return finite_values(function, name, hidden)
        except ParameterError as error:
            if not self._steps_taken:
                raise
            raise ParameterError(
                f"{error}\n  the weights may have grown too far in step {self._steps_taken}; "
                "use a smaller step_size"
            ) from None

    def _linear_part(self, purpose: int) -> tuple[float, Array]:
        """Mean of the labels and of labels times inputs."""
        total, moment = 0.0, np.zeros(self.setup.dimension)
        for inputs, labels in self._blocks(purpose, self.setup.samples):
            total += float(labels.sum())
            moment += labels @ inputs
        return total / self.setup.samples, moment / self.setup.samples

    def _blocks(
        self, purpose: int, count: int, *, start: int = 0, noisy: bool = True
    ) -> Iterator[tuple[Array, Array]]:
        for inputs, labels in self.stream.blocks(purpose, count, start=start, noisy=noisy):
            self.checkpoint()
            yield inputs, labels
            self.progress(len(labels))

    def _hidden_rows(self, count: int, width: int) -> Iterator[slice]:
        size = max(FEWEST_ROWS, HIDDEN_ENTRIES // width)
        return (slice(start, start + size) for start in range(0, count, size))

    # ------------------------------------------------------------------ measurements

    def measurements(self) -> dict[str, Array]:
        """Return what is recorded at one time; the gradient's memory is used."""
        r, width = self.setup.variables, self.setup.width
        updates = self._gradient
        self._write_start(updates)
        np.subtract(self.weights, updates, out=updates)
        shared_grams, shared = self._shared(updates)
        plain = (self.weights, updates)
        floors = [*(_root_mean_square(rows[:, r:]) for rows in plain), shared]
        grams = [*(_grams(self._measured(rows)) / width for rows in plain), shared_grams]
        return {
            "overlaps": self.weights[:, :r].copy(),
            "squared_norms": np.einsum("ij,ij->i", self.weights, self.weights),
            "grams": np.stack(grams),
            "floors": np.array(floors),
            "excess": self._excess,
        }

    def _measured(self, rows: Array) -> Array:
        """The target's coordinates and further sets of as many, one set for each first index."""
        sets, r = 1 + self.setup.floor_blocks, self.setup.variables
        return rows[:, : sets * r].reshape(len(rows), sets, r).swapaxes(0, 1)

    def _shared(self, updates: Array) -> tuple[Array, float]:
        r"""Mean of :math:`u_i u_j^T` over different neurons with the same readout and bias.

        Rows of such neurons are independent but for the batches they share, so its expectation is
        the outer product of what their updates have in common: fluctuations of the start drop out.
        The floor is that of the square root of a diagonal entry.
        """
        starts = self._group_starts()
        sets, r = 1 + self.setup.floor_blocks, self.setup.variables
        grams, diagonal = np.zeros((sets, r, r)), np.zeros(self.setup.dimension - r)
        neurons = 0
        for start, stop in itertools.pairwise(starts):
            group = updates[start:stop]
            if len(group) == 1:
                continue
            neurons += len(group)
            measured = self._measured(group)
            total = measured.sum(axis=1)
            grams += (total[:, :, None] * total[:, None, :] - _grams(measured)) / (len(group) - 1)
            outside = group[:, r:]
            squares = np.einsum("ij,ij->j", outside, outside)
            diagonal += (outside.sum(axis=0) ** 2 - squares) / (len(group) - 1)
        if not neurons:
            return grams, 0.0
        return grams / neurons, math.sqrt(_root_mean_square(diagonal[:, None] / neurons))

    def _group_starts(self) -> list[int]:
        """Where neurons of another readout or bias begin, and the end."""
        changes = (np.diff(self.readout) != 0) | (np.diff(self.biases) != 0)
        return [0, *(np.flatnonzero(changes) + 1).tolist(), self.setup.width]

    # ------------------------------------------------------------------ readout

    def ridge_readout(self) -> Array:
        """Return the test error of the final ridge regression and its penalty.

        Raises
        ------
        ParameterError
            If a function returns a value that is not finite, or the penalty is too small.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return self._ridge_readout()

    def _ridge_readout(self) -> Array:
        setup = self.setup
        count = setup.ridge_samples
        fitted = count if setup.ridge is not None else count - round(HELD_OUT_SHARE * count)
        gram, mean = np.zeros((setup.width, setup.width)), np.zeros(setup.width)
        moment, level = np.zeros(setup.width), 0.0
        for features, labels in self._features(_RIDGE, fitted):
            gram += features.T @ features
            mean += features.sum(axis=0)
            moment += features.T @ labels
            level += float(labels.sum())
        mean /= fitted
        level /= fitted
        gram -= fitted * np.outer(mean, mean)
        moment -= fitted * level * mean
        if setup.ridge is not None:
            penalties = [setup.ridge]
        else:
            # Features of any size: trained weights are longer, and sizes depend on the student.
            size = float(np.trace(gram)) / setup.width
            penalties = ((size or 1.0) * 10.0**RIDGE_EXPONENTS).tolist()
        readouts = np.array([solve_ridge(gram, moment, penalty) for penalty in penalties]).T
        best = 0
        if setup.ridge is None:
            held_out = self._errors(
                self._features(_RIDGE, count, start=fitted), readouts, mean, level
            )
            best = int(np.argmin(held_out))
        test = self._features(_TEST, setup.test_samples, noisy=False)
        error = self._errors(test, readouts[:, best : best + 1], mean, level)
        return np.array([float(error[0]), penalties[best]])

    def _features(
        self, purpose: int, count: int, *, start: int = 0, noisy: bool = True
    ) -> Iterator[tuple[Array, Array]]:
        scale = 1 / math.sqrt(self.setup.width)
        for inputs, labels in self._blocks(purpose, count, start=start, noisy=noisy):
            for rows in self._hidden_rows(len(labels), self.setup.width):
                hidden = self._hidden(inputs[rows], self.setup.width)
                yield np.multiply(self._values(hidden), scale, out=hidden), labels[rows]

    def _errors(
        self, blocks: Iterator[tuple[Array, Array]], readouts: Array, mean: Array, level: float
    ) -> Array:
        """Mean squared errors, one for each column of the readouts."""
        total, count = np.zeros(readouts.shape[1]), 0
        intercepts = level - mean @ readouts
        for features, labels in blocks:
            residuals = labels[:, None] - intercepts - features @ readouts
            total += (residuals**2).sum(axis=0)
            count += len(labels)
        return total / count


def _grams(sets: Array) -> Array:
    """Gram matrix of the columns of each set."""
    return np.asarray(sets.swapaxes(1, 2) @ sets)


def _root_mean_square(rows: Array) -> float:
    # No copy of a part of the rows, which a norm would make.
    return math.sqrt(float(np.einsum("ij,ij->", rows, rows)) / rows.size)
