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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from ...symbolic.subspaces import Subspace, vector_text
from .trained_networks import PARTS, GiantStepsResult

Array = NDArray[np.float64]

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
    direction : Direction
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
    verdict : Verdict
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
    step : int
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
    """Return an orthonormal basis of V* that is adapted to a chain of subspaces.

    Parameters
    ----------
    chain : sequence of Subspace
        U_1, U_2, …, each inside the next.
    relevant : Subspace
        V*, which holds all of them.
    certain : Subspace, optional
        What is certainly learned of the last one; all of it by default.

    Examples
    --------
    >>> chain = [Subspace.spanned_by([[1, 1, 0]]), Subspace.spanned_by([[1, 0, 0], [0, 1, 0]])]
    >>> [(v.name, v.step) for v in adapted_basis(chain, Subspace.whole(3))]
    [('(1, 1, 0)', 1), ('(1, -1, 0)', 2), ('e3', None)]
    """
    found: list[Direction] = []
    known = Subspace.zero(relevant.ambient_dimension)

    def add(space: Subspace, step: int | None, *, certain: bool = True) -> None:
        nonlocal known
        new = space.intersection(known.orthogonal_complement())
        found.extend(_orthonormal(new, step, certain))
        known = known + space

    for step, space in enumerate(chain, start=1):
        if certain is not None:
            add(known + space.intersection(certain), step)
        add(space, step, certain=certain is None)
    add(relevant, None)
    return tuple(found)


def _orthonormal(space: Subspace, step: int | None, certain: bool) -> list[Direction]:
    found: list[Direction] = []
    for exact, row in zip(space.basis, space.numeric(), strict=True):
        vector = np.array(row)
        for _ in range(2):  # Once more: the first pass may cancel digits.
            for other in found:
                vector = vector - np.dot(other.vector, vector) * np.array(other.vector)
        unchanged = np.linalg.norm(vector - row) <= _PARALLEL * np.linalg.norm(row)
        vector = vector / np.linalg.norm(vector)
        name = vector_text(exact) if unchanged else _numeric_name(vector)
        found.append(Direction(name, tuple(vector.tolist()), step, certain))
    return found


def _numeric_name(vector: Array) -> str:
    return f"({', '.join(f'{entry + 0.0:.3g}' for entry in vector)})"


def learned_directions(
    result: GiantStepsResult, directions: Sequence[Direction], *, shared: bool
) -> tuple[LearnedDirection, ...]:
    """Return what networks have learned of each direction after each step.

    Parameters
    ----------
    result : GiantStepsResult
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
    found = []
    for step in range(1, weights.shape[1]):
        for k, direction in enumerate(directions):
            found.append(
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
    return tuple(found)


def _predicted(direction: Direction, step: int) -> bool | None:
    if direction.step is None or direction.step > step:
        return False
    return True if direction.certain else None


def step_spectra(
    result: GiantStepsResult, directions: Sequence[Direction], *, shared: bool
) -> tuple[StepSpectrum, ...]:
    """Return singular values after each step.

    Parameters
    ----------
    result : GiantStepsResult
    directions : sequence of Direction
        An orthonormal basis of V*.
    shared : bool
        Whether to look outside U_t at what neurons of equal readout and bias have in common, or at
        the updates.
    """
    rows = np.array([direction.vector for direction in directions])
    part = "shared" if shared else "updates"
    found = []
    for step in range(1, result.overlaps.shape[1]):
        new = [v.step is None or v.step > step for v in directions]
        outside: tuple[float, ...] = ()
        noise = None
        if any(new):
            outside = _at(result.singular_values(rows[new], part), step)
            noise = float(_noise(result, rows, shared, part)[step, new].max())
        found.append(
            StepSpectrum(
                step,
                _at(result.singular_values(rows), step),
                _at(result.noise_singular_values(len(rows)), step),
                outside,
                noise,
            )
        )
    return tuple(found)


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
