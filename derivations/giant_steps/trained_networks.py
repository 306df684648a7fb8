r"""Networks of finite size after giant steps, and what their rows have along directions.

A network is measured before its first step and after each: rows inside the target's coordinates,
updates, and what neurons with equal readout and bias share of these, with noise floors from
directions on which the target does not depend; see :mod:`giantstep.numeric.networks.directions`.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import ParameterError
from ...numeric.arguments import whole_number
from ...numeric.networks.directions import PARTS
from ...numeric.networks.measure import Measurement
from ...numeric.networks.network import Network
from ...numeric.networks.readout import RidgeReadout
from ...numeric.networks.run import Networks, simulate

__all__ = ["PARTS", "GiantStepsResult", "take_giant_steps"]

Array = NDArray[np.float64]

ORTHONORMALITY = 1e-8
"""Largest deviation of the Gram matrix of directions from the identity."""

QUANTITIES = (
    "readout", "biases", "overlaps", "squared_norms", "grams", "floors", "excess", "test_error",
    "ridge",
)  # fmt: skip


class GiantStepsResult(Networks):
    """What the finished networks learned; first indices are networks, second ones times 0..T."""

    __slots__ = ()

    @property
    def readout(self) -> Array:
        """Second layers of the steps, shape (seeds, p)."""
        return self.values["readout"]

    @property
    def biases(self) -> Array:
        """Biases, shape (seeds, p)."""
        return self.values["biases"]

    @property
    def overlaps(self) -> Array:
        """Weights in the target's coordinates, shape (seeds, T + 1, p, r)."""
        return self.values["overlaps"]

    @property
    def squared_norms(self) -> Array:
        """Squared norms of the rows, shape (seeds, T + 1, p)."""
        return self.values["squared_norms"]

    @property
    def grams(self) -> Array:
        """Means over neurons of products of two coordinates, (seeds, T + 1, 3, 1 + blocks, r, r).

        For each of `PARTS`, the target's coordinates first, then sets of as many on which the
        target does not depend.
        """
        return self.values["grams"]

    @property
    def floors(self) -> Array:
        """For each of `PARTS` the root mean square in one direction outside, (seeds, T + 1, 3)."""
        return self.values["floors"]

    @property
    def excess(self) -> Array:
        """By how much noise has more variance along the target, shape (seeds, T + 1, r, r).

        Mean products of two of the target's coordinates, weighted with the squared residuals of
        the step that led to this time, over the mean of these.
        """
        return self.values["excess"]

    @property
    def test_error(self) -> Array:
        """Mean squared error of the final ridge regression against the target; 0 without one."""
        return self.values["test_error"]

    @property
    def ridge(self) -> Array:
        """Penalty of the final ridge regression, shape (seeds,)."""
        return self.values["ridge"]

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
        """Return singular values in `count` directions on which the target does not depend.

        Parameters
        ----------
        count : int
            Dimension of the subspace, at most r.
        part : {"weights", "updates", "shared"}

        Returns
        -------
        ndarray, shape (seeds, T + 1, count)
            Root mean squares over several such subspaces, decreasing.
        """
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
    network : Network
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
    found = simulate(
        network, measure, readout=readout, seeds=seeds, seed=seed, workers=workers,
        executor=executor, progress=progress, store=store, description=description,
    )  # fmt: skip
    fitted = {
        name: found.values.get(name, np.zeros(len(found.completed))).reshape(-1)
        for name in ("test_error", "ridge")
    }
    values = {name: (found.values | fitted)[name] for name in QUANTITIES}
    return GiantStepsResult(values, found.completed, found.interrupted)


def _singular_values(grams: Array) -> Array:
    """Roots of eigenvalues, decreasing; estimates of squares may be negative and count as 0."""
    symmetric = (grams + grams.swapaxes(-1, -2)) / 2
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(symmetric)[..., ::-1], 0)))
