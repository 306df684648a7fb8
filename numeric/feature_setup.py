r"""Spiked random features of finite size: what their rows, teacher and labels are.

Row j of class a is :math:`w_j = \sqrt{c_a}\,u_j + \sum_l R_{a,l} v_l` with a bias :math:`b_a`:
:math:`v_1, \dots, v_k` orthonormal, :math:`u_j` uniform on the unit sphere of R^d or rows of a
random orthonormal frame. Features are :math:`\sigma(w_j\cdot x + b_a)` of
:math:`x \sim N(0, I_d)`, predictions :math:`\hat y = \varphi\cdot w/\sqrt p`.

The teacher is a function of :math:`\theta_1\cdot x, \dots, \theta_r\cdot x` with orthonormal
directions, :math:`v_l\cdot\theta_i = \gamma_{li}`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from .arguments import is_one_of, nonnegative_number, positive_number, real_number, whole_number
from .feature_labels import Channel, checked_channel
from .networks.sizes import sample_count
from .sample_stream import Function, finite_function

if TYPE_CHECKING:
    from .feature_rows import FirstLayer

__all__ = ["FeatureClass", "FeatureSetup"]

Array = NDArray[np.float64]

BULKS = ("iid", "orthonormal")

SUM_TOLERANCE = 1e-9
"""Fractions such as 0.1 + 0.2 + 0.7 sum to one up to rounding."""


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
        object.__setattr__(self, "spike", tuple(_finite("spike", value) for value in given))
        if not len(given):
            raise ParameterError("spike must hold a number for each spike direction, got none")
        variance = positive_number("bulk_variance", self.bulk_variance)
        object.__setattr__(self, "bulk_variance", variance)
        object.__setattr__(self, "bias", _finite("bias", self.bias))

    @property
    def strengths(self) -> tuple[float, ...]:
        """The spike as a tuple."""
        return tuple(np.atleast_1d(np.asarray(self.spike, dtype=float)).tolist())


@dataclass(frozen=True, slots=True)
class FeatureSetup:
    r"""Spiked random features of finite size, their teacher and their labels.

    Parameters
    ----------
    student : callable
        Vectorised activation.
    teacher : callable
        Takes the n projections :math:`\theta\cdot x`, or an array (n, r) if there are r > 1
        directions; returns n values.
    classes : sequence of FeatureClass
        All with the same number k of spike directions.
    alignment : float or array-like
        γ: one number, k numbers for a teacher of one direction, or an array (k, r).
    beta : float
        Rows divided by the dimension.
    noise_variance : float
        Δ, variance of the label noise.
    dimension : int
        Input dimension d.
    bulk : {"iid", "orthonormal"}
        How the :math:`u_j` are drawn; orthonormal rows need beta <= 1.
    labels : {"regression", "sign", "probit", "logistic"} or callable
        See :class:`.feature_labels.Channel`.

    Raises
    ------
    ParameterError
        If an argument is outside its range, fractions do not sum to one, classes differ in their
        number of directions, or no orthonormal directions have these overlaps.

    Examples
    --------
    >>> setup = FeatureSetup(np.tanh, np.sin, FeatureClass(spike=1.2), alignment=0.9, dimension=100)
    >>> setup.width, setup.first_layer(0).rows.shape
    (100, (100, 100))
    """

    student: Function
    teacher: Function
    classes: FeatureClass | Sequence[FeatureClass]
    alignment: Any
    beta: float = 1.0
    noise_variance: float = 0.0
    dimension: int = 400
    bulk: str = "iid"
    labels: str | Callable[[Array, Array], Any] = "regression"

    def __post_init__(self) -> None:
        finite_function("student", self.student)
        finite_function("teacher", self.teacher)
        classes = self.classes if isinstance(self.classes, Sequence) else (self.classes,)
        object.__setattr__(self, "classes", tuple(classes))
        object.__setattr__(self, "dimension", whole_number("dimension", self.dimension))
        object.__setattr__(self, "beta", positive_number("beta", self.beta))
        noise = nonnegative_number("noise_variance", self.noise_variance)
        object.__setattr__(self, "noise_variance", noise)
        width = sample_count("beta", self.beta, self.dimension)
        rank = _checked_classes(self.kinds)
        object.__setattr__(self, "alignment", _checked_alignment(self.alignment, rank))
        if not is_one_of(self.bulk, BULKS):
            raise ParameterError(f"bulk must be one of {', '.join(BULKS)}, got {self.bulk!r}")
        if self.bulk == "orthonormal" and width > self.dimension:
            raise ParameterError(
                f"orthonormal bulk rows need beta <= 1, got {self.beta:g}: there are "
                f"{width} rows in {self.dimension} dimensions"
            )
        needed = rank + self.teacher_directions
        if needed > self.dimension:
            raise ParameterError(
                f"dimension must be at least {needed}, for {rank} spike directions and "
                f"{self.teacher_directions} of the teacher; got {self.dimension}"
            )
        row_counts(self.fractions, width)
        checked_channel(self.labels, noise)

    @property
    def kinds(self) -> tuple[FeatureClass, ...]:
        """The classes as a tuple."""
        return tuple(self.classes) if isinstance(self.classes, Sequence) else (self.classes,)

    @property
    def fractions(self) -> tuple[float, ...]:
        """Shares of the rows."""
        return tuple(kind.fraction for kind in self.kinds)

    @property
    def width(self) -> int:
        """Number of rows p."""
        return sample_count("beta", self.beta, self.dimension)

    @property
    def teacher_directions(self) -> int:
        """Number r of directions that the teacher sees."""
        return int(np.asarray(self.alignment).shape[1])

    @property
    def spike_directions(self) -> int:
        """Number k of spike directions."""
        return int(np.asarray(self.alignment).shape[0])

    @property
    def channel(self) -> Channel:
        """How labels are made from the target."""
        return checked_channel(self.labels, self.noise_variance)

    def first_layer(
        self, seed: int | np.random.SeedSequence, checkpoint: Callable[[], None] | None = None
    ) -> FirstLayer:
        """Draw the rows.

        Parameters
        ----------
        seed : int or SeedSequence
        checkpoint : callable, optional
            Not needed here: rows are drawn at once.
        """
        from .feature_rows import spiked_rows

        if checkpoint is not None:
            checkpoint()
        return spiked_rows(self, seed)

    def identity(self) -> dict[str, object]:
        """Return what fixes the numbers besides the functions, as plain values."""
        return {
            "kind": "spiked random features",
            "classes": [[k.fraction, *k.strengths, k.bulk_variance, k.bias] for k in self.kinds],
            "alignment": np.asarray(self.alignment).tolist(),
            "beta": self.beta,
            "noise_variance": self.noise_variance,
            "dimension": self.dimension,
            "bulk": self.bulk,
            "labels": self.channel.name,
        }


def row_counts(fractions: Sequence[float], width: int) -> list[int]:
    """Return how many of `width` rows each class has: the nearest whole numbers of that sum.

    Raises
    ------
    ParameterError
        If the fractions do not sum to one, or a class would have no row.
    """
    total = math.fsum(fractions)
    if abs(total - 1) > SUM_TOLERANCE:
        raise ParameterError(f"fractions must sum to 1, got {total:.12g} from {tuple(fractions)}")
    exact = np.asarray(fractions) * width
    counts = np.floor(exact + SUM_TOLERANCE).astype(int)
    # Largest remainders first; the order of the classes decides ties.
    late = np.argsort(counts - exact, kind="stable")[: width - int(counts.sum())]
    counts[late] += 1
    if counts.min() < 1:
        smallest = min(fractions)
        raise ParameterError(
            f"a class of fraction {smallest:g} has no row among {width}; use a larger dimension"
        )
    return [int(count) for count in counts]


def _finite(name: str, value: object) -> float:
    number = real_number(name, value)
    if not math.isfinite(number):
        raise ParameterError(f"{name} must be finite, got {number}")
    return number


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
