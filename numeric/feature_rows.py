r"""First layers: the rows of spiked random features, or those of a network after its step.

A :class:`FirstLayer` holds the rows with the directions that matter, v_1, …, v_k and θ_1, …, θ_r,
so that samples, fits and measurements need not know where the rows came from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .feature_setup import row_counts
from .sample_stream import Function, finite_values, seed_sequence

if TYPE_CHECKING:
    from .feature_setup import FeatureSetup

__all__ = ["FirstLayer", "spiked_rows"]

Array = NDArray[np.float64]

SLICE_ENTRIES = 2**15
"""Entries handed to an activation at once, 256 kB: its temporaries stay in the second cache."""

SMALLEST_PART = 1e-12
"""A shorter part of a unit vector is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class FirstLayer:
    """Rows of a first layer, and the directions that they are measured along.

    Attributes
    ----------
    rows : ndarray, shape (p, d)
    classes : ndarray of int, shape (p,)
        Class of each row, increasing.
    biases : ndarray, shape (p,)
    spikes : ndarray, shape (k, d)
        Orthonormal spike directions v.
    teachers : ndarray, shape (r, d)
        Orthonormal directions θ of the teacher.
    centres : ndarray, shape (K, k)
        Spike of each class: bulk rows are what is left. Those asked for, or measured in a network.
    """

    rows: Array
    classes: NDArray[np.intp]
    biases: Array
    spikes: Array
    teachers: Array
    centres: Array

    @property
    def width(self) -> int:
        """Number of rows p."""
        return len(self.rows)

    @property
    def class_count(self) -> int:
        """Number K of classes."""
        return int(self.classes[-1]) + 1

    @property
    def fractions(self) -> Array:
        """Realised share of the rows of each class, shape (K,)."""
        return np.bincount(self.classes) / self.width

    @property
    def strengths(self) -> Array:
        """Realised spikes r, shape (K, k): means over the rows of a class of w·v."""
        return self.class_mean(self.rows @ self.spikes.T)

    @property
    def bulk_variances(self) -> Array:
        """Realised c, shape (K,): means over the rows of a class of the squared norm across v."""
        along = self.rows @ self.spikes.T
        squared = np.einsum("ji,ji->j", self.rows, self.rows)
        return self.class_mean(squared - np.einsum("jl,jl->j", along, along))

    @property
    def alignment(self) -> Array:
        """Realised overlaps γ of spikes and teacher, shape (k, r)."""
        return np.asarray(self.spikes @ self.teachers.T)

    def overlaps(self, readout: Array) -> dict[str, Array]:
        r"""Return what a readout w, shape (p,), has in common with the directions.

        Returns
        -------
        dict of ndarray
            With b the bulk rows, sums over the rows of class a, and ζ the orthonormalised parts of
            the teacher's directions across the spikes (zero where there is none):
            ``m`` (K,), :math:`\sum w_j/\sqrt p`; ``theta`` (k, K),
            :math:`\sum w_j b_j\cdot v_l/\sqrt p`; ``psi`` (r, K),
            :math:`\sum w_j b_j\cdot\zeta_i/\sqrt p`; ``q1`` (K, K), overlaps of
            :math:`\sum w_j b_j/\sqrt p` across the spikes; ``q2`` (K,),
            :math:`\sum w_j^2/p`.
        """
        scaled = readout / math.sqrt(self.width)
        starts = np.searchsorted(self.classes, np.arange(self.class_count))
        m = np.add.reduceat(scaled, starts)
        combined = np.add.reduceat(scaled[:, None] * self.rows, starts, axis=0)
        along = combined @ self.spikes.T
        across = combined - along @ self.spikes
        return {
            "m": m,
            "theta": (along - m[:, None] * self.centres).T,
            "psi": self.orthogonal_teachers @ across.T,
            "q1": across @ across.T,
            "q2": np.add.reduceat(scaled**2, starts),
        }

    @property
    def orthogonal_teachers(self) -> Array:
        """Orthonormal parts of the teacher's directions across the spikes, (r, d); zero if none."""
        across = self.teachers - self.alignment.T @ self.spikes
        found = np.zeros_like(across)
        for i, part in enumerate(across):
            rest = part - found[:i].T @ (found[:i] @ part)
            norm = np.linalg.norm(rest)
            if norm > SMALLEST_PART:
                found[i] = rest / norm
        return found

    def class_mean(self, values: Array) -> Array:
        """Return means over the rows of each class of what has one entry for each row."""
        sums = np.zeros((self.class_count, *values.shape[1:]))
        np.add.at(sums, self.classes, values)
        counts = np.bincount(self.classes)
        return sums / counts.reshape(-1, *(1,) * (values.ndim - 1))

    def features(self, student: Function, inputs: Array, out: Array) -> None:
        """Write student(inputs · rows + biases) into `out`, shape (n, p)."""
        np.matmul(inputs, self.rows.T, out=out)
        if self.biases.any():
            out += self.biases
        step = max(1, SLICE_ENTRIES // self.width)
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            out[part] = finite_values(student, "student", out[part])


def spiked_rows(setup: FeatureSetup, seed: int | np.random.SeedSequence) -> FirstLayer:
    """Draw the rows of spiked random features.

    The law does not change under rotations, so spikes are the first axes and what is left of the
    teacher's directions lies along the next ones.
    """
    found = seed_sequence(seed)
    child = np.random.SeedSequence(
        found.entropy, spawn_key=(*found.spawn_key, 0), pool_size=found.pool_size
    )
    generator = np.random.Generator(np.random.SFC64(child))
    d, p, k = setup.dimension, setup.width, setup.spike_directions
    rows = generator.standard_normal((p, d))
    if setup.bulk == "orthonormal":
        frame, triangle = np.linalg.qr(rows.T)
        # Signs of the diagonal make the frame uniform.
        rows = np.ascontiguousarray((frame * np.sign(np.diag(triangle))).T)
    else:
        rows /= np.linalg.norm(rows, axis=1)[:, None]
    classes = np.repeat(np.arange(len(setup.kinds)), row_counts(setup.fractions, p))
    rows *= np.sqrt([kind.bulk_variance for kind in setup.kinds])[classes, None]
    strengths = np.array([kind.strengths for kind in setup.kinds])
    rows[:, :k] += strengths[classes]
    spikes = np.eye(k, d)
    return FirstLayer(
        rows,
        classes,
        np.array([kind.bias for kind in setup.kinds])[classes],
        spikes,
        _teacher_directions(np.asarray(setup.alignment), d),
        strengths,
    )


def _teacher_directions(gamma: Array, dimension: int) -> Array:
    """Return orthonormal directions (r, d) with overlaps γ, (k, r), with the first k axes."""
    k, r = gamma.shape
    theta = np.zeros((r, dimension))
    theta[:, :k] = gamma.T
    if r == 1:
        # sqrt(1 − γ²) loses digits near γ = 1 otherwise.
        norm = float(np.linalg.norm(gamma))
        theta[0, k] = math.sqrt(max((1 - norm) * (1 + norm), 0.0))
        return theta
    values, vectors = np.linalg.eigh(np.eye(r) - gamma.T @ gamma)
    theta[:, k : k + r] = vectors * np.sqrt(np.clip(values, 0, None))
    return theta
