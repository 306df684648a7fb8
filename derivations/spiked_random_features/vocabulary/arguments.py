r"""What users give to a vocabulary of letters, checked and brought to one form.

**Letters of a continuous law: a Gauss rule for it, whose nodes are the letters.** With n letters
the rule integrates polynomials of degree 2n - 1 in the letter exactly, and what is averaged over
letters, functions such as :math:`\mu_0^a(\kappa)^2`, is smooth in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import sympy as sp
from numpy.typing import NDArray

from ....errors import ParameterError
from ....numeric.arguments import positive_number, real_number, whole_number
from ....numeric.cache import FileCache
from ....numeric.networks.layer import FeatureClass
from ....numeric.networks.sizes import SUM_TOLERANCE
from ....runtime.quadrature import legendre_panels
from ....symbolic.expressions.parser import parse_expression
from ....symbolic.printing.compiled import compiled
from ..arguments import PUBLISHED
from ..derive import derivation
from ..spike import (
    SpikeParameters,
    checked_letters,
    checked_spike,
    require_odd,
    spikes_of_letters,
)

if TYPE_CHECKING:
    from .model import VocabularyFeatures

HIGHEST_RANK = 3
"""Spikes may have this rank: averages over κ run over a grid of as many dimensions."""

LARGEST_BIAS = 1e3
# Sums over letters lose the digits of rarer ones.
_LEAST_FRACTION = 1e-10

# Of numbers that differ by the rounding of what a user or a step computed, relative.
_SAME = 16 * float(np.finfo(float).eps)
# Overlaps of one direction with others have squares that sum to one up to rounding.
_ALIGNED = 1e-15

Array = NDArray[np.float64]


@dataclass(frozen=True)
class VocabularyParameters:
    """The spiked random features of a vocabulary.

    Attributes
    ----------
    classes : tuple of FeatureClass
        Fraction, spike, bulk variance and bias of each kind of rows, all different.
    alignment : tuple of tuple of float
        γ as k rows and r columns: overlaps of the spikes with the directions of the teacher.
    norm_overlaps : tuple of float
        a of each class, where the complete leading order of a step has them.
    stretches : tuple of (float, float, float)
        T_vv, T_vζ and T_ζζ of each class, likewise.
    """

    classes: tuple[FeatureClass, ...]
    alignment: tuple[tuple[float, ...], ...]
    norm_overlaps: tuple[float, ...] = ()
    stretches: tuple[tuple[float, float, float], ...] = ()

    @property
    def published(self) -> bool:
        """Whether the equations are those of independent rows of one norm for each class."""
        return not (self.norm_overlaps or self.stretches)

    @property
    def rank(self) -> int:
        """Number of spike directions."""
        return len(self.alignment)

    @cached_property
    def fractions(self) -> Array:
        """Fractions of the rows."""
        return np.array([c.fraction for c in self.classes])

    @cached_property
    def strengths(self) -> Array:
        """Spikes, of shape (K, k)."""
        return np.array([c.strengths for c in self.classes])

    @property
    def overlaps(self) -> Array:
        """The alignment as an array (k, r)."""
        return np.array(self.alignment)


def checked_parameters(
    spike_strengths: object,
    bulk_variances: object,
    fractions: object,
    biases: object,
    alignment: object,
    coordinates: int | None,
) -> VocabularyParameters:
    """Return the classes that a user gives, equal ones merged.

    Parameters
    ----------
    coordinates : int or None
        Number of coordinates of the teacher; None for one of a single index.

    Raises
    ------
    ParameterError
        If lengths differ, fractions are no distribution, the rank is too high, or a value is
        outside its range.
    """
    spikes = [_spike(row) for row in _sequence("spike_strengths", spike_strengths)]
    variances = [
        positive_number("bulk_variances", c) for c in _sequence("bulk_variances", bulk_variances)
    ]
    shares = checked_fractions(fractions)
    _same_length({"spike_strengths": spikes, "bulk_variances": variances, "fractions": shares})
    rank = len(spikes[0])
    if any(len(row) != rank for row in spikes):
        raise ParameterError(
            "spike_strengths must have equally many numbers for every letter, got "
            f"{[len(row) for row in spikes]}"
        )
    if rank > HIGHEST_RANK:
        raise ParameterError(
            f"spike_strengths have rank {rank}, and averages over more than {HIGHEST_RANK} "
            f"directions are not offered; use at most {HIGHEST_RANK} numbers for each letter"
        )
    for row, c in zip(spikes, variances, strict=True):
        checked_spike(math.hypot(*row), c, 0.0)
    return VocabularyParameters(
        classes=with_biases(
            [
                FeatureClass(share, row, c)
                for share, row, c in zip(shares, spikes, variances, strict=True)
            ],
            biases,
        ),
        alignment=checked_alignment(alignment, rank, coordinates),
    )


def checked_fractions(fractions: object) -> list[float]:
    """Return fractions of a vocabulary, which are positive and sum to one.

    Raises
    ------
    ParameterError
    """
    shares = [positive_number("fractions", x) for x in _sequence("fractions", fractions)]
    rare = min(shares)
    if rare < _LEAST_FRACTION:
        raise ParameterError(
            f"fractions must be at least {_LEAST_FRACTION:g}, got {rare:g}: no network has such a "
            "row; leave the letter out"
        )
    total = math.fsum(shares)
    if abs(total - 1) > SUM_TOLERANCE:
        raise ParameterError(f"fractions must sum to 1, and these sum to {total:.12g}")
    return shares


def with_biases(classes: Sequence[FeatureClass], biases: object) -> tuple[FeatureClass, ...]:
    """Return classes with biases, equal ones merged.

    Parameters
    ----------
    biases : None, number, sequence or mapping
        None is zero, one number is for all classes, a sequence has one number for each of them;
        a mapping from biases to their fractions draws them independently of the letters.

    Raises
    ------
    ParameterError
    """
    if isinstance(biases, Mapping):
        if not biases:
            raise ParameterError("biases must hold at least one bias with its fraction")
        shares = checked_fractions(list(biases.values()))
        pairs = [(_bias(b), share) for b, share in zip(biases, shares, strict=True)]
        found = [
            FeatureClass(c.fraction * share, c.spike, c.bulk_variance, b)
            for c in classes
            for b, share in pairs
        ]
    else:
        if biases is None or not isinstance(biases, Iterable):
            values = [_bias(0.0 if biases is None else biases)] * len(classes)
        else:
            values = [_bias(b) for b in _sequence("biases", biases)]
            _same_length({"letters": list(classes), "biases": values})
        found = [
            FeatureClass(c.fraction, c.spike, c.bulk_variance, b)
            for c, b in zip(classes, values, strict=True)
        ]
    return merged(found)


def plain_biases(biases: Any) -> Any:
    """Return biases that have been checked as a float, a tuple or a dictionary of floats."""
    if isinstance(biases, Mapping):
        return {float(bias): float(share) for bias, share in biases.items()}
    if isinstance(biases, Iterable):
        return tuple(map(float, biases))
    return None if biases is None else float(biases)


def merged(classes: Sequence[FeatureClass]) -> tuple[FeatureClass, ...]:
    """Return the classes with equal ones as one, since their overlaps are determined jointly.

    Numbers that differ by rounding are equal, and those of opposite sign are opposite: without a
    cost of their overlaps, letters that differ at all span one more function.
    """
    shares: dict[tuple[Any, ...], list[float]] = {}
    strength, variance, bias = _Sizes(), _Sizes(), _Sizes()
    for c in classes:
        kind = tuple(map(strength, c.strengths)), variance(c.bulk_variance), bias(c.bias)
        shares.setdefault(kind, []).append(c.fraction)
    total = math.fsum(c.fraction for c in classes)
    return tuple(FeatureClass(math.fsum(parts) / total, *kind) for kind, parts in shares.items())


class _Sizes:
    """Writes numbers whose sizes differ by rounding with the size that came first."""

    def __init__(self) -> None:
        self._known: list[float] = []

    def __call__(self, value: float) -> float:
        size = abs(value)
        for known in self._known:
            if abs(size - known) <= _SAME * known:
                return math.copysign(known, value)
        self._known.append(size)
        return value


def checked_alignment(
    alignment: object, rank: int, coordinates: int | None
) -> tuple[tuple[float, ...], ...]:
    """Return γ as k rows and r columns.

    Raises
    ------
    ParameterError
        If its shape does not fit, or no orthonormal directions have these overlaps.
    """
    columns = 1 if coordinates is None else coordinates
    try:
        given = np.asarray(alignment, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"alignment must be a number, a sequence of numbers or a matrix, got {alignment!r}"
        ) from None
    if not np.isfinite(given).all():
        raise ParameterError(f"alignment must hold finite numbers, got {alignment!r}")
    if given.ndim < 2 and columns == 1:
        matrix = np.atleast_1d(given)[:, None]
    elif given.ndim == 1 and len(given) == rank:
        # Spike l overlaps with direction l of the teacher.
        matrix = np.zeros((rank, columns))
        for i, value in enumerate(given):
            if i < columns:
                matrix[i, i] = value
            elif value:
                raise ParameterError(
                    f"alignment holds {len(given)} numbers and the teacher has {columns} "
                    "directions; give a matrix with a row for each spike"
                )
    else:
        matrix = given
    if matrix.shape != (rank, columns):
        directions = "" if columns == 1 else f" and {columns} directions of the teacher"
        raise ParameterError(
            f"alignment has shape {given.shape}, which does not fit {rank} spike "
            f"direction{'s' if rank > 1 else ''}{directions}; give "
            + (
                "one number for each"
                if columns == 1
                else f"an array of {rank} rows and {columns} columns"
            )
        )
    largest = float(np.linalg.norm(matrix, 2))
    if largest > 1 + 1e-12:
        raise ParameterError(
            "alignment must hold overlaps of orthonormal directions, whose largest singular value "
            f"is at most 1; that of {alignment!r} is {largest:.6g}"
        )
    return tuple(tuple(map(float, row)) for row in matrix)


def orthogonal_alignment(gamma: Array) -> float:
    """Return ρ = sqrt(1 - |γ|²) of a teacher of one direction; zero up to rounding is zero."""
    size = float(np.linalg.norm(gamma))
    square = (1 - size) * (1 + size)
    return math.sqrt(square) if square > _ALIGNED else 0.0


def _spike(row: object) -> tuple[float, ...]:
    values = row if isinstance(row, Iterable) and not isinstance(row, str) else (row,)
    numbers = tuple(real_number("spike_strengths", x) for x in values)
    if not numbers:
        raise ParameterError("spike_strengths must hold a number for each spike direction")
    if not all(map(math.isfinite, numbers)):
        raise ParameterError(f"spike_strengths must be finite, got {numbers}")
    return numbers


def _bias(value: object) -> float:
    number = real_number("biases", value)
    if not abs(number) <= LARGEST_BIAS:
        raise ParameterError(
            f"biases must be between -{LARGEST_BIAS:g} and {LARGEST_BIAS:g}, got {number:g}"
        )
    return number


def _sequence(name: str, values: object) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(
            f"{name} must be a sequence, one entry for each letter, got {values!r}"
        )
    items = list(values)
    if not items:
        raise ParameterError(f"{name} must hold at least one letter, got none")
    return items


def _same_length(columns: Mapping[str, Sequence[Any]]) -> None:
    if len({len(values) for values in columns.values()}) > 1:
        sizes = ", ".join(f"{len(values)} {name}" for name, values in columns.items())
        raise ParameterError(f"every letter needs one entry of each, got {sizes}")


# ------------------------------------------------------------------ laws


_MOST_LETTERS = 40
_PANELS = 400
# Of an unbounded support, where a quantile of this size ends it.
_TAIL = 1e-13
_MASS_TOLERANCE = 1e-6
# Letters this rare change nothing that their neighbours do not.
_LEAST_WEIGHT = 1e-10


@dataclass(frozen=True)
class LetterLaw:
    """A law of letters as points with weights, fine enough to stand for it.

    Attributes
    ----------
    points, weights : array (N,)
    discrete : bool
        The points are all values that there are.
    """

    points: Array
    weights: Array
    discrete: bool

    def rule(self, letters: int) -> tuple[Array, Array]:
        """Return letters and fractions: the Gauss rule of the law, by the Lanczos algorithm."""
        if self.discrete:
            return self.points, self.weights
        centre = float(self.weights @ self.points)
        scale = math.sqrt(float(self.weights @ (self.points - centre) ** 2))
        x = (self.points - centre) / scale
        root = np.sqrt(self.weights)
        basis = [root / np.linalg.norm(root)]
        diagonal, beside = [], []
        for k in range(letters):
            image = x * basis[-1]
            diagonal.append(float(basis[-1] @ image))
            # Twice: rounding would let the basis lose its orthogonality.
            for _ in range(2):
                for vector in basis:
                    image = image - (vector @ image) * vector
            beside.append(float(np.linalg.norm(image)))
            if k + 1 < letters:
                basis.append(image / beside[-1])
        nodes, vectors = scipy.linalg.eigh_tridiagonal(np.array(diagonal), np.array(beside[:-1]))
        fractions = vectors[0] ** 2
        kept = fractions > _LEAST_WEIGHT
        return centre + scale * nodes[kept], fractions[kept] / fractions[kept].sum()


def letter_law(law: Any, support: object, cache: FileCache) -> LetterLaw:
    """Return the law that a user gives.

    Parameters
    ----------
    law : frozen distribution of scipy.stats, or str
        A text is a density in the variable a on `support`.
    support : (low, high) or None
        Needed with a text.
    cache : FileCache
        Where the generated function of a text is kept.

    Raises
    ------
    ParameterError
        If it is no distribution, or its mass is not one.
    ExpressionError
        If a text is not an expression in a.
    """
    if isinstance(law, str):
        return _of_density(_density(law, cache), *_interval(support), f"density {law!r}")
    if not hasattr(law, "support") or not hasattr(law, "ppf"):
        raise ParameterError(
            "law must be a frozen distribution of scipy.stats, such as scipy.stats.uniform(-1, 2), "
            f"or the text of a density in a with support=(low, high); got {law!r}"
        )
    low, high = (float(x) for x in law.support())
    if hasattr(getattr(law, "dist", law), "pmf"):
        return _discrete(law, low, high)
    low = low if math.isfinite(low) else float(law.ppf(_TAIL))
    high = high if math.isfinite(high) else float(law.isf(_TAIL))
    return _of_density(law.pdf, low, high, "law")


def checked_letter_number(letters: object) -> int:
    """Return how many letters stand for a continuous law.

    Raises
    ------
    ParameterError
    """
    number = whole_number("nodes", letters, minimum=2)
    if number > _MOST_LETTERS:
        raise ParameterError(f"nodes must be at most {_MOST_LETTERS}, got {number}")
    return number


def _of_density(density: Callable[[Array], Any], low: float, high: float, name: str) -> LetterLaw:
    # Panels that shrink towards both ends: densities may be infinite there.
    edges = low + (high - low) * (1 - np.cos(np.linspace(0, math.pi, _PANELS + 1))) / 2
    x, w = (part.ravel() for part in legendre_panels(edges))
    with np.errstate(all="ignore"):
        values = np.broadcast_to(np.asarray(density(x), dtype=float), x.shape)
    if not np.isfinite(values).all() or np.min(values) < 0:
        bad = float(x[np.argmin(np.where(np.isfinite(values), values, -np.inf))])
        raise ParameterError(f"{name} must be finite and not negative; it is not at a = {bad:.6g}")
    weights = w * values
    mass = float(weights.sum())
    if abs(mass - 1) > _MASS_TOLERANCE:
        raise ParameterError(
            f"{name} must integrate to 1 over its support, and integrates to {mass:.8g}"
        )
    kept = weights > 0
    return LetterLaw(x[kept], weights[kept] / mass, False)


def _discrete(law: Any, low: float, high: float) -> LetterLaw:
    if not (math.isfinite(low) and math.isfinite(high) and high - low < _MOST_LETTERS):
        raise ParameterError(
            f"a discrete law must have at most {_MOST_LETTERS} values, got support from {low:g} to "
            f"{high:g}; give letters= and fractions="
        )
    points = np.arange(low, high + 1)
    weights = np.asarray(law.pmf(points), dtype=float)
    return LetterLaw(points[weights > 0], weights[weights > 0], True)


def _density(text: str, cache: FileCache) -> Callable[[Array], Any]:
    a = sp.Symbol("a", real=True)
    expr = parse_expression(text, [a], argument="law")
    return compiled(expr, (a,))


def _interval(support: object) -> tuple[float, float]:
    if not isinstance(support, tuple | list) or len(support) != 2:
        raise ParameterError(
            f"support must be (low, high), the interval of a density given as text, got {support!r}"
        )
    low, high = (real_number("support", x) for x in support)
    if not -math.inf < low < high < math.inf:
        raise ParameterError(f"support must be finite with low < high, got ({low}, {high})")
    return low, high


# ------------------------------------------------------------------ step letters


def parameters_after_step(model: VocabularyFeatures) -> VocabularyParameters:
    """Return the rows that a step makes of the letters of a model.

    Raises
    ------
    ParameterError, AssumptionError
        If letters are none, or the student is not odd where it has to be.
    """
    letters, fractions = checked_letters(model.letters, model.fractions)
    checked_fractions(fractions)
    found = derivation(
        model.student, model.teacher, unspiked=False, aligned=False, correlated_norms=False,
        cache=model._cache,
    )  # fmt: skip
    require_odd(found, model.allow_non_odd)
    spikes = (SpikeParameters(0.0, 1.0, 0.0, 1.0),) * len(letters)
    if model.step_size:
        spikes = spikes_of(model)
    gamma = next((x.alignment for x in spikes if x.spike_strength), 0.0)
    classes = with_biases(
        [
            FeatureClass(share, x.spike_strength, x.bulk_variance)
            for share, x in zip(fractions, spikes, strict=True)
        ],
        model.biases,
    )
    published = VocabularyParameters(classes, checked_alignment(gamma, 1, None))
    if model.leading_order == PUBLISHED or not any(x.spike_strength for x in spikes):
        return published
    rows = [spikes[letter_of(one, spikes)] for one in classes]
    overlaps, stretches = tuple(x.norm_overlap for x in rows), tuple(x.stretch for x in rows)
    return replace(
        published,
        norm_overlaps=overlaps if any(overlaps) else (),
        stretches=stretches if any(map(any, stretches)) else (),
    )


def spikes_of(model: VocabularyFeatures) -> tuple[SpikeParameters, ...]:
    """Return the rows of each letter of a model after its step."""
    return spikes_of_letters(
        model.student, model.teacher, step_size=model.step_size, alpha0=model.alpha0,
        noise_variance=model.noise_variance, letters=model.letters, fractions=model.fractions,
        cache=model._cache, stretched=model.leading_order != PUBLISHED,
    )  # fmt: skip


def letter_of(rows: FeatureClass, spikes: Sequence[SpikeParameters]) -> int:
    """Return the number of a letter that makes these rows; all that do move alike."""
    distances = [
        abs(x.spike_strength - rows.strengths[0]) + abs(x.bulk_variance - rows.bulk_variance)
        for x in spikes
    ]
    return distances.index(min(distances))
