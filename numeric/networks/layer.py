r"""First layers: rows, and the directions that they are measured along.

Rows are those of a network, before or after its steps, or of spiked random features: row j of
class a is :math:`w_j = \sqrt{c_a}\,u_j + \sum_l R_{a,l} v_l` with a bias :math:`b_a`,
:math:`v_1, \dots, v_k` orthonormal and :math:`u_j` uniform on the unit sphere of R^d or rows of a
random orthonormal frame. The teacher is a function of :math:`\theta_1\cdot x, \dots,
\theta_r\cdot x` with orthonormal directions, :math:`v_l\cdot\theta_i = \gamma_{li}`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..arguments import finite_number, is_one_of, positive_number
from .samples import Function, finite_values, slices
from .sizes import SUM_TOLERANCE, row_counts

__all__ = ["FeatureClass", "FirstLayer", "SpikedRows"]

Array = NDArray[np.float64]

BULKS = ("iid", "orthonormal")

SMALLEST_PART = 1e-12
"""A shorter part of a unit vector is rounding."""


@dataclass(frozen=True, slots=True)
class FeatureClass:
    r"""Rows of one kind: a letter of the readout's vocabulary, a bias, or both.

    Parameters
    ----------
    fraction : float
        Share of the rows, positive; those of all classes sum to one.
    spike : float or sequence of float
        :math:`R_{a,1}, \dots, R_{a,k}`: strengths along the spike directions.
    bulk_variance : float
        :math:`c_a > 0`, squared norm of the bulk of a row.
    bias : float
        Added to what the activation sees.

    Raises
    ------
    ParameterError
        If a value is outside its range.
    """

    fraction: float = 1.0
    spike: float | Sequence[float] = (0.0,)
    bulk_variance: float = 1.0
    bias: float = 0.0

    def __post_init__(self) -> None:
        fraction = positive_number("fraction", self.fraction)
        if fraction > 1 + SUM_TOLERANCE:
            raise ParameterError(f"fraction of a class must be at most 1, got {fraction}")
        given = self.spike.tolist() if isinstance(self.spike, np.ndarray) else self.spike
        given = given if isinstance(given, Sequence) else (given,)
        object.__setattr__(self, "fraction", fraction)
        object.__setattr__(self, "spike", tuple(finite_number("spike", value) for value in given))
        if not len(given):
            raise ParameterError("spike must hold a number for each spike direction, got none")
        variance = positive_number("bulk_variance", self.bulk_variance)
        object.__setattr__(self, "bulk_variance", variance)
        object.__setattr__(self, "bias", finite_number("bias", self.bias))

    @property
    def strengths(self) -> tuple[float, ...]:
        """The spike as a tuple."""
        return tuple(np.atleast_1d(np.asarray(self.spike, dtype=float)).tolist())


@dataclass(frozen=True, slots=True)
class SpikedRows:
    r"""The law of the rows of spiked random features.

    Parameters
    ----------
    classes : FeatureClass or sequence of FeatureClass
        All with the same number k of spike directions.
    alignment : float or array-like
        γ: one number, k numbers for a teacher of one direction, or an array (k, r).
    bulk : {"iid", "orthonormal"}
        How the :math:`u_j` are drawn; orthonormal rows need no more rows than dimensions.

    Raises
    ------
    ParameterError
        If fractions do not sum to one, classes differ in their number of directions, or no
        orthonormal directions have these overlaps.

    Examples
    --------
    >>> SpikedRows(FeatureClass(spike=1.2), alignment=0.9).shape
    (1, 1)
    """

    classes: FeatureClass | Sequence[FeatureClass]
    alignment: Any
    bulk: str = "iid"

    def __post_init__(self) -> None:
        classes = self.classes if isinstance(self.classes, Sequence) else (self.classes,)
        object.__setattr__(self, "classes", tuple(classes))
        rank = _checked_classes(self.kinds)
        object.__setattr__(self, "alignment", _checked_alignment(self.alignment, rank))
        if not is_one_of(self.bulk, BULKS):
            raise ParameterError(f"bulk must be one of {', '.join(BULKS)}, got {self.bulk!r}")

    @property
    def kinds(self) -> tuple[FeatureClass, ...]:
        """The classes as a tuple."""
        return tuple(self.classes) if isinstance(self.classes, Sequence) else (self.classes,)

    @property
    def fractions(self) -> tuple[float, ...]:
        """Shares of the rows."""
        return tuple(kind.fraction for kind in self.kinds)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers k of spike directions and r of the teacher's."""
        spikes, teachers = np.asarray(self.alignment).shape
        return spikes, teachers

    def identity(self) -> dict[str, object]:
        """Return what fixes the rows, as plain values."""
        return {
            "classes": [[k.fraction, *k.strengths, k.bulk_variance, k.bias] for k in self.kinds],
            "alignment": np.asarray(self.alignment).tolist(),
            "bulk": self.bulk,
        }

    def check_sizes(self, width: int, dimension: int) -> None:
        """Refuse sizes that have no such rows.

        Raises
        ------
        ParameterError
            If there are more orthonormal rows than dimensions, too few dimensions for the
            directions, or a class without a row.
        """
        if self.bulk == "orthonormal" and width > dimension:
            raise ParameterError(
                f"orthonormal bulk rows need beta <= 1, got {width / dimension:g}: there are "
                f"{width} rows in {dimension} dimensions"
            )
        rank, teachers = self.shape
        if rank + teachers > dimension:
            raise ParameterError(
                f"dimension must be at least {rank + teachers}, for {rank} spike directions and "
                f"{teachers} of the teacher; got {dimension}"
            )
        row_counts(self.fractions, width)

    def draw(self, generator: np.random.Generator, width: int, dimension: int) -> FirstLayer:
        """Draw the rows.

        The law does not change under rotations, so spikes are the first axes and what is left of
        the teacher's directions lies along the next ones.
        """
        k, _ = self.shape
        rows = generator.standard_normal((width, dimension))
        if self.bulk == "orthonormal":
            frame, triangle = np.linalg.qr(rows.T)
            # Signs of the diagonal make the frame uniform.
            rows = np.ascontiguousarray((frame * np.sign(np.diag(triangle))).T)
        else:
            rows /= np.linalg.norm(rows, axis=1)[:, None]
        classes = np.repeat(np.arange(len(self.kinds)), row_counts(self.fractions, width))
        rows *= np.sqrt([kind.bulk_variance for kind in self.kinds])[classes, None]
        strengths = np.array([kind.strengths for kind in self.kinds])
        rows[:, :k] += strengths[classes]
        return FirstLayer(
            rows,
            classes,
            np.array([kind.bias for kind in self.kinds])[classes],
            np.eye(k, dimension),
            _teacher_directions(np.asarray(self.alignment), dimension),
            strengths,
        )


@dataclass(slots=True, eq=False)
class FirstLayer:
    """Rows of a first layer, and the directions that they are measured along.

    Attributes
    ----------
    rows : ndarray, shape (p, d)
    classes : ndarray of int, shape (p,)
        Class of each row, increasing.
    biases : ndarray, shape (p,)
    spikes : ndarray, shape (k, d)
        Orthonormal spike directions v; zero before the first step of a network.
    teachers : ndarray, shape (r, d)
        Orthonormal directions θ of the teacher.
    centres : ndarray, shape (K, k)
        Spike of each class: bulk rows are what is left. Those asked for, or measured in a network.
    readout : ndarray, shape (p,)
        Second layer a of the gradient steps, in units in which the output is the mean over rows of
        a σ; empty for rows that take none.
    """

    rows: Array
    classes: NDArray[np.intp]
    biases: Array
    spikes: Array
    teachers: Array
    centres: Array
    readout: Array = field(default_factory=lambda: np.empty(0))

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
        for part in slices(len(out), self.width):
            out[part] = finite_values(student, "student", out[part])


def _checked_classes(classes: Sequence[FeatureClass]) -> int:
    """Return the number of spike directions."""
    for kind in classes:
        if not isinstance(kind, FeatureClass):
            raise ParameterError(f"classes must hold FeatureClass, got {kind!r}")
    ranks = {len(kind.strengths) for kind in classes}
    if len(ranks) != 1:
        raise ParameterError(
            "classes must have the same number of spike directions, got "
            + (", ".join(map(str, sorted(ranks))) or "no class")
        )
    return ranks.pop()


def _checked_alignment(given: object, rank: int) -> Array:
    """Return γ as an array (k, r) that cannot be written to."""
    try:
        gamma = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError(f"alignment must be numbers, got {given!r}") from None
    if gamma.ndim < 2:
        gamma = np.atleast_1d(gamma)[:, None]
    if gamma.ndim != 2 or len(gamma) != rank or gamma.shape[1] < 1:
        raise ParameterError(
            f"alignment must hold one row for each of the {rank} spike directions, got shape "
            f"{np.asarray(given).shape}"
        )
    # Rows and columns are parts of orthonormal frames: no singular value exceeds one.
    if not np.isfinite(gamma).all() or np.linalg.norm(gamma, 2) > 1 + SUM_TOLERANCE:
        raise ParameterError(
            f"alignment {gamma.tolist()} is not that of orthonormal directions: its norm must be "
            "at most 1"
        )
    gamma.flags.writeable = False
    return gamma


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
