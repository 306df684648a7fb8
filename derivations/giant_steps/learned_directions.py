r"""Which directions networks have learned, step by step, beside the staircase that predicts it.

Directions are an orthonormal basis of V* adapted to a chain :math:`U_1 \subseteq U_2 \subseteq
\dots`: first one of U_1, then one of what U_2 adds, and last one of what is never learned. A
direction v counts as learned if what neurons with the same readout and bias have in common along
it stands out. Their mean overlap with v is of order one if v is learned by steps of order 1; if
not, noise of the batches leaves :math:`O(n^{-1/2})`, and fluctuations of the start leave O(1/d) in
the mean and more where few neurons are compared: all three are measured. By a step of order
:math:`\ell > 1` each neuron moves by its own start, along :math:`C_\ell[w^{\ell-1}, \cdot]`:
nothing is in common, and the weights themselves have to stand out of :math:`O(d^{-1/2})`. Only
growing d decides; one size gives a verdict that is as good as its sizes.

A network is measured before its first step and after each: rows inside the target's coordinates,
updates, and what neurons with equal readout and bias share of these, with noise floors from
directions on which the target does not depend; see :mod:`giantstep.numeric.networks.directions`.
"""

from __future__ import annotations

import concurrent.futures
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import ParameterError
from ...numeric.arguments import whole_number
from ...numeric.networks.directions import PARTS
from ...numeric.networks.measure import Measurement
from ...numeric.networks.network import Network
from ...numeric.networks.readout import RidgeReadout
from ...numeric.networks.run import Networks, simulate
from ...symbolic.targets.subspaces import Subspace, vector_text

__all__ = ["PARTS", "GiantStepsResult", "take_giant_steps"]

Array = NDArray[np.float64]

ORTHONORMALITY = 1e-8
"""Largest deviation of the Gram matrix of directions from the identity."""

QUANTITIES = (
    "readout", "biases", "overlaps", "squared_norms", "grams", "floors", "excess", "test_error",
    "ridge",
)  # fmt: skip


def _values(name: str) -> Any:
    """Return the property that is one of the quantities of the networks."""
    return property(lambda found: found.values[name])


class GiantStepsResult(Networks):
    """What the finished networks learned; first indices are networks, second ones times 0..T."""

    __slots__ = ()

    readout = _values("readout")
    """Second layers of the steps, shape (seeds, p)."""
    biases = _values("biases")
    """Biases, shape (seeds, p)."""
    overlaps = _values("overlaps")
    """Weights in the target's coordinates, shape (seeds, T + 1, p, r)."""
    squared_norms = _values("squared_norms")
    """Squared norms of the rows, shape (seeds, T + 1, p)."""
    grams = _values("grams")
    """Means over neurons of products of two coordinates, (seeds, T + 1, 3, 1 + blocks, r, r).

    For each of `PARTS`, the target's coordinates first, then sets of as many on which the
    target does not depend.
    """
    floors = _values("floors")
    """For each of `PARTS` the root mean square in one direction outside, (seeds, T + 1, 3)."""
    excess = _values("excess")
    """By how much noise has more variance along the target, shape (seeds, T + 1, r, r).

    Mean products of two of the target's coordinates, weighted with the squared residuals of
    the step that led to this time, over the mean of these.
    """
    test_error = _values("test_error")
    """Mean squared error of the final ridge regression against the target; 0 without one."""
    ridge = _values("ridge")
    """Penalty of the final ridge regression, shape (seeds,)."""

    @property
    def has_shared(self) -> bool:
        """Whether some neurons have equal readouts and biases, so that "shared" is measured."""
        return bool(self.floors[:, -1, PARTS.index("shared")].any())

    def projections(self, directions: ArrayLike, part: str = "weights") -> Array:
        """Return the root mean square over neurons along each direction.

        Parameters
        ----------
        directions : array_like, shape (m, r)
            Orthonormal rows in the target's coordinates.
        part : {"weights", "updates", "shared"}
            What is projected. Values of "shared" come from estimates of squares, which scatter
            around 0 where nothing is shared; negative ones are returned as 0.

        Returns
        -------
        ndarray, shape (seeds, T + 1, m)
        """
        rows = self._checked(directions)
        squares = np.einsum("ki,stij,kj->stk", rows, self._part(part)[:, :, 0], rows)
        return np.asarray(np.sqrt(np.maximum(squares, 0)))

    def singular_values(self, directions: ArrayLike, part: str = "weights") -> Array:
        r"""Return the singular values, divided by √p, of the part inside a subspace.

        Parameters
        ----------
        directions : array_like, shape (m, r)
            Orthonormal rows that span it.
        part : {"weights", "updates", "shared"}

        Returns
        -------
        ndarray, shape (seeds, T + 1, m)
            Decreasing.
        """
        rows = self._checked(directions)
        return _singular_values(rows @ self._part(part)[:, :, 0] @ rows.T)

    def noise_singular_values(self, count: int, part: str = "weights") -> Array:
        """Return singular values in `count` directions on which the target does not depend."""
        count = whole_number("count", count)
        if count > self.overlaps.shape[-1]:
            raise ParameterError(f"count must be at most {self.overlaps.shape[-1]}, got {count}")
        blocks = self._part(part)[:, :, 1:, :count, :count]
        return np.asarray(np.sqrt((_singular_values(blocks) ** 2).mean(axis=2)))

    def noise_floor(self, part: str = "weights") -> Array:
        """Return the root mean square in one direction outside, shape (seeds, T + 1)."""
        self._part(part)
        return np.asarray(self.floors[:, :, PARTS.index(part)])

    def noise_along(self, directions: ArrayLike, part: str = "weights") -> Array:
        """Return the noise floor along directions of the target, shape (seeds, T + 1, m).

        Inputs on which labels depend have more noise in their gradients; of the steps so far, the
        one with the largest excess counts. The start of the weights has none.
        """
        rows = self._checked(directions)
        excess = np.einsum("ki,stij,kj->stk", rows, self.excess, rows)
        largest = np.maximum.accumulate(np.maximum(excess, 1), axis=1)
        floor = self.noise_floor(part)[:, :, None]
        updates = self.noise_floor("updates")[:, :, None] if part == "weights" else floor
        return np.asarray(np.sqrt(floor**2 + (largest - 1) * updates**2))

    def _part(self, part: str) -> Array:
        if part not in PARTS:
            raise ParameterError(f"part must be one of {', '.join(PARTS)}; got {part!r}")
        if part == "shared" and not self.has_shared:
            raise ParameterError(
                "nothing is shared: no two neurons have the same readout and bias\n"
                "  use replicas >= 2, or few readout values"
            )
        return np.asarray(self.grams[:, :, PARTS.index(part)])

    def _checked(self, directions: ArrayLike) -> Array:
        rows = np.asarray(directions)
        r = self.overlaps.shape[-1]
        if rows.ndim != 2 or rows.shape[1] != r or rows.dtype.kind not in "fiu":
            raise ParameterError(
                f"directions must be rows of {r} numbers, got {rows.dtype} of shape {rows.shape}"
            )
        if not np.allclose(rows @ rows.T, np.eye(len(rows)), rtol=0, atol=ORTHONORMALITY):
            raise ParameterError("directions must be orthonormal rows")
        return rows.astype(np.float64)

    def __repr__(self) -> str:
        state = ", interrupted" if self.interrupted else ""
        seeds, times, width, _ = self.overlaps.shape
        return f"GiantStepsResult({seeds} networks of {width} neurons, {times - 1} steps{state})"


def take_giant_steps(
    network: Network,
    readout: RidgeReadout | None = None,
    *,
    seeds: int = 5,
    seed: int = 0,
    workers: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    progress: bool = True,
    store: str | os.PathLike[str] | None = None,
    description: str | None = None,
) -> GiantStepsResult:
    """Train networks by giant steps, each on samples of its own, and measure them.

    Parameters
    ----------
    readout : RidgeReadout, optional
        The final ridge regression, of one size and one penalty; none by default.
    seeds, seed, workers, executor, progress, store, description
        See :func:`giantstep.numeric.networks.run.simulate`.

    Returns
    -------
    GiantStepsResult
        All seeds, or after a keyboard interrupt those that had finished, if at least two.

    Raises
    ------
    ParameterError
        If an argument is outside its range, a function returns a wrong shape or a value that is
        not finite, the weights overflow, or the memory of this machine is too small.
    KeyboardInterrupt
        If interrupted before two seeds had finished. What is done is in `store` nevertheless.

    Examples
    --------
    Of x1 + He2(x1) x2, x1 is learned by the first step and x2 by the second:

    >>> network = Network(student=np.tanh, student_derivative=lambda u: 1 / np.cosh(u) ** 2,
    ...                   teacher=lambda x: x[:, 0] + (x[:, 0] ** 2 - 1) * x[:, 1], directions=2,
    ...                   dimension=100, width=40, readout="gaussian", paired=True,
    ...                   steps=2, step_samples=20_000, step_size=1.5)
    >>> result = take_giant_steps(network, seeds=3)
    >>> learned = result.projections([[1, 0], [0, 1]]).mean(axis=0) > 0.2
    >>> learned.tolist()
    [[False, False], [True, False], [True, True]]
    """
    last = network.steps
    measure: dict[str | Measurement, int | Sequence[int]]
    measure = {"neurons": last, "directions": range(last + 1)}
    if readout is not None:
        measure["errors"] = last
    result = simulate(
        network, measure, readout=readout, seeds=seeds, seed=seed, workers=workers,
        executor=executor, progress=progress, store=store, description=description,
    )  # fmt: skip
    fitted = {
        name: result.values.get(name, np.zeros(len(result.completed))).reshape(-1)
        for name in ("test_error", "ridge")
    }
    values = {name: (result.values | fitted)[name] for name in QUANTITIES}
    return GiantStepsResult(values, result.completed, result.interrupted)


def _singular_values(grams: Array) -> Array:
    """Roots of eigenvalues, decreasing; estimates of squares may be negative and count as 0."""
    symmetric = (grams + grams.swapaxes(-1, -2)) / 2
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(symmetric)[..., ::-1], 0)))


CLEAR = 3.0
"""What is learned in common exceeds everything that is not by this factor."""

CLEAR_WEIGHTS = 2.0
"""The same for root mean squares of the weights, in which the noise is an average itself."""

_PARALLEL = 1e-12


class Verdict(StrEnum):
    """What one size of networks shows of a direction."""

    LEARNED = "learned"
    NOT_SEEN = "not seen"


@dataclass(frozen=True)
class Direction:
    """A unit vector of an adapted basis of V*.

    Attributes
    ----------
    name : str
        e1, e2, … for axes, else components; not normalised where these are exact.
    vector : tuple of float
        Components in the target's coordinates, normalised.
    step : int or None
        The first step after which it lies in U_t; None if there is none.
    certain : bool
        Whether it is learned then; False if few values of the readout reach only a part of what
        U_t adds, and it is not known which.
    """

    name: str
    vector: tuple[float, ...]
    step: int | None
    certain: bool = True


@dataclass(frozen=True)
class Estimate:
    """A mean over networks with its standard error; None for one network."""

    mean: float
    standard_error: float | None

    def __str__(self) -> str:
        if self.standard_error is None:
            return f"{self.mean:.3g}"
        return f"{self.mean:.3g} ± {self.standard_error:.1g}"


@dataclass(frozen=True)
class LearnedDirection:
    """What networks have learned of a direction after a step.

    Attributes
    ----------
    step : int
        Number of steps taken.
    predicted : bool or None
        Whether the direction lies in U_t; None if it does, but may be learned only in part.
    weights : Estimate
        Root mean square over neurons of the overlap of the rows.
    weights_noise : float
        The same where nothing is learned, a random start included.
    signal : Estimate
        Root mean square of what neurons with the same readout and bias have in common; or the
        weights, where these are compared.
    noise : float
        The same where nothing is learned.
    """

    step: int
    direction: Direction
    predicted: bool | None
    weights: Estimate
    weights_noise: float
    signal: Estimate
    noise: float
    verdict: Verdict

    @property
    def agrees(self) -> bool | None:
        """Whether the verdict is the prediction; None if there is none."""
        if self.predicted is None:
            return None
        return self.predicted == (self.verdict is Verdict.LEARNED)


@dataclass(frozen=True)
class StepSpectrum:
    r"""Singular values of the weights after a step, divided by √p; root mean squares over networks.

    Attributes
    ----------
    inside, inside_noise : tuple of float
        Inside V*, and in as many directions outside.
    outside : tuple of float
        Of what neurons with the same readout and bias have in common, or of the updates: inside
        V* ∩ U_t^⊥.
    outside_noise : float or None
        The largest noise along a direction there; None if there is no direction.
    """

    step: int
    inside: tuple[float, ...]
    inside_noise: tuple[float, ...]
    outside: tuple[float, ...]
    outside_noise: float | None


def adapted_basis(
    chain: Sequence[Subspace], relevant: Subspace, certain: Subspace | None = None
) -> tuple[Direction, ...]:
    """Return an orthonormal basis of V* (`relevant`) that is adapted to subspaces U_1, U_2, ….

    Each is inside the next. `certain` is what is certainly learned of the last one; by default all.

    Examples
    --------
    >>> chain = [Subspace.spanned_by([[1, 1, 0]]), Subspace.spanned_by([[1, 0, 0], [0, 1, 0]])]
    >>> [(v.name, v.step) for v in adapted_basis(chain, Subspace.whole(3))]
    [('(1, 1, 0)', 1), ('(1, -1, 0)', 2), ('e3', None)]
    """
    result: list[Direction] = []
    known = Subspace.zero(relevant.ambient_dimension)

    def add(space: Subspace, step: int | None, *, certain: bool = True) -> None:
        nonlocal known
        new = space.intersection(known.orthogonal_complement())
        result.extend(_orthonormal(new, step, certain))
        known = known + space

    for step, space in enumerate(chain, start=1):
        if certain is not None:
            add(known + space.intersection(certain), step)
        add(space, step, certain=certain is None)
    add(relevant, None)
    return tuple(result)


def _orthonormal(space: Subspace, step: int | None, certain: bool) -> list[Direction]:
    result: list[Direction] = []
    for exact, row in zip(space.basis, space.numeric(), strict=True):
        vector = np.array(row)
        for _ in range(2):  # Once more: the first pass may cancel digits.
            for other in result:
                vector = vector - np.dot(other.vector, vector) * np.array(other.vector)
        unchanged = np.linalg.norm(vector - row) <= _PARALLEL * np.linalg.norm(row)
        vector = vector / np.linalg.norm(vector)
        name = vector_text(exact) if unchanged else _numeric_name(vector)
        result.append(Direction(name, tuple(vector.tolist()), step, certain))
    return result


def _numeric_name(vector: Array) -> str:
    return f"({', '.join(f'{entry + 0.0:.3g}' for entry in vector)})"


def learned_directions(
    result: GiantStepsResult, directions: Sequence[Direction], *, shared: bool
) -> tuple[LearnedDirection, ...]:
    """Return what networks have learned of each direction after each step.

    Parameters
    ----------
    directions : sequence of Direction
        An orthonormal basis of V*.
    shared : bool
        Whether to compare what neurons of equal readout and bias have in common, or the weights.
    """
    rows = np.array([direction.vector for direction in directions])
    if not len(rows):
        return ()
    weights = _squares(result, rows, "weights")
    weights_noise = _root_mean_square(result.noise_along(rows, "weights"))
    signal = _squares(result, rows, "shared") if shared else weights
    noise = _noise(result, rows, shared, "weights")
    clear = signal.mean(axis=0) > ((CLEAR if shared else CLEAR_WEIGHTS) * noise) ** 2
    answer = []
    for step in range(1, weights.shape[1]):
        for k, direction in enumerate(directions):
            answer.append(
                LearnedDirection(
                    step=step,
                    direction=direction,
                    predicted=_predicted(direction, step),
                    weights=_root(weights[:, step, k]),
                    weights_noise=float(weights_noise[step, k]),
                    signal=_root(signal[:, step, k]),
                    noise=float(noise[step, k]),
                    verdict=Verdict.LEARNED if clear[step, k] else Verdict.NOT_SEEN,
                )
            )
    return tuple(answer)


def _predicted(direction: Direction, step: int) -> bool | None:
    if direction.step is None or direction.step > step:
        return False
    return True if direction.certain else None


def step_spectra(
    result: GiantStepsResult, directions: Sequence[Direction], *, shared: bool
) -> tuple[StepSpectrum, ...]:
    """Return singular values after each step, of directions that are a basis of V*.

    Outside U_t what neurons of equal readout and bias have in common is looked at if `shared`, else
    the updates.
    """
    rows = np.array([direction.vector for direction in directions])
    part = "shared" if shared else "updates"
    answer = []
    for step in range(1, result.overlaps.shape[1]):
        new = [v.step is None or v.step > step for v in directions]
        outside: tuple[float, ...] = ()
        noise = None
        if any(new):
            outside = _at(result.singular_values(rows[new], part), step)
            noise = float(_noise(result, rows, shared, part)[step, new].max())
        answer.append(
            StepSpectrum(
                step,
                _at(result.singular_values(rows), step),
                _at(result.noise_singular_values(len(rows)), step),
                outside,
                noise,
            )
        )
    return tuple(answer)


def mean_over_networks(values: Array) -> Estimate:
    """Return the mean of one value for each network."""
    error = None
    if len(values) > 1:
        error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return Estimate(float(values.mean()), error)


def _noise(result: GiantStepsResult, rows: Array, shared: bool, part: str) -> Array:
    """Noise at each time along each direction: of a part, or of what is shared."""
    if not shared:
        return _root_mean_square(result.noise_along(rows, part))
    batches = _root_mean_square(result.noise_along(rows, "shared"))
    # What fluctuates from neuron to neuron is of order d^(-1/2): it enters what they share by its
    # square, and products of two of them do not average to 0 over few pairs.
    excess = _squares(result, rows, "updates") - _squares(result, rows, "shared")
    spread = np.maximum(excess.mean(axis=0), 0)
    bias = spread.sum(axis=1)[:, None]
    return np.asarray(np.sqrt(batches**2 + bias**2 + spread * _error_of_products(result)))


def _error_of_products(result: GiantStepsResult) -> float:
    """Standard error of a mean of products of two neurons' fluctuations of variance 1."""
    pairs = np.stack([result.readout[0], result.biases[0]], axis=1)
    sizes = np.unique(pairs, axis=0, return_counts=True)[1]
    sizes = sizes[sizes > 1]
    variance = 2 * (sizes / (sizes - 1)).sum() / sizes.sum() ** 2
    return math.sqrt(variance / len(result.readout))


def _at(values: Array, step: int) -> tuple[float, ...]:
    return tuple(_root_mean_square(values[:, step]).tolist())


def _root_mean_square(values: Array) -> Array:
    return np.asarray(np.sqrt((values**2).mean(axis=0)))


def _squares(result: GiantStepsResult, rows: Array, part: str) -> Array:
    """Squares along directions, of which estimates can be negative: (networks, times, m)."""
    grams = result.grams[:, :, PARTS.index(part), 0]
    return np.asarray(np.einsum("ki,stij,kj->stk", rows, grams, rows))


def _root(squares: Array) -> Estimate:
    """Root of a mean of squares, with the standard error that follows for it."""
    square = mean_over_networks(squares)
    root = math.sqrt(max(square.mean, 0.0))
    if square.standard_error is None:
        return Estimate(root, None)
    # The root of the error where the error is larger than the mean.
    error = square.standard_error / (2 * max(root, math.sqrt(square.standard_error) / 2, 1e-300))
    return Estimate(root, error)
