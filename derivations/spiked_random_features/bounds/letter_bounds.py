r"""Bounds for several letters and biases: distances of the target from spans of functions.

Rows :math:`w_j = \sqrt{c_a}\,u_j + r_a v` with a bias :math:`b_a`, one triple (r, c, b) for each
letter a, realise :math:`\mathrm{span}\{\mu_0^a\}` at no cost, and
:math:`\mathrm{span}\{\mu_0^a, \kappa\mu_1^a\}` with :math:`\mathrm{span}\{\mu_1^a\}` across the
spike at best. With P the projections in :math:`L^2(\kappa)` (Cui et al., arXiv 2402.04980,
appendix on vocabularies; equations (26) and (27) for one letter)

.. math::
    U = \mathbb{E}\,\sigma_*^2 - |P_{\{\mu_0^a\}}T_0|^2, \qquad
    L = \mathbb{E}\,\sigma_*^2 - |P_{\{\mu_0^a,\,\kappa\mu_1^a\}}T_0|^2 - |P_{\{\mu_1^a\}}T_1|^2 .

How often a letter occurs does not matter. With one letter and a bias that is learnt L becomes its
minimum over the bias. Projections are least-squares problems of weighted tables, so that letters
that nearly coincide do no harm, and equal ones count once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ParameterError
from ....numeric.arguments import positive_number, real_number
from ....numeric.cache import FileCache
from ....numeric.kernel_arrays import converged_tables
from ....numeric.least_squares import squared_distance
from ....numeric.local_minima import local_minima
from ....runtime import quadrature
from ...derived import derived

Array = NDArray[np.float64]

# Trapezoidal step per unit width of the functions, and the panels at kinks, of the finer rule.
_STEP_PER_WIDTH = 0.1
_REFINEMENT = 1
# Functions that hardly vary: the density has a width of its own.
_WIDEST = 3.0
_ROUNDING = 1e-14
_MOST_LETTERS = 64
_LARGEST = 100.0


@dataclass(frozen=True)
class LetterBounds:
    """Bounds of the test error for given letters.

    Attributes
    ----------
    lower, upper : float
        L ≤ test error for every α, β, λ; U ≥ test error at the best λ.
    errors : tuple of float
        Estimated errors of `lower` and `upper`: differences of two quadrature rules.
    """

    lower: float
    upper: float
    errors: tuple[float, float]

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        return f"float with error estimates of at most {max(self.errors):.1e}"

    def __str__(self) -> str:
        return f"L = {self.lower:.12g}, U = {self.upper:.12g}; {self.rests_on}"


@dataclass(frozen=True)
class LearnedBiasBound:
    """The lower bound with a bias that is learnt: L minimised over it.

    Attributes
    ----------
    bias, lower : float
        The best bias and L there.
    minima : tuple of (float, float)
        All local minima in the range: bias and L.
    bounds : (float, float)
        The range that was searched.
    """

    bias: float
    lower: float
    minima: tuple[tuple[float, float], ...]
    bounds: tuple[float, float]

    def __str__(self) -> str:
        others = ", ".join(f"{b:.6g} (L = {value:.6g})" for b, value in self.minima)
        return f"min over biases of L = {self.lower:.10g} at b = {self.bias:.8g}; minima: {others}"


def letter_bounds(
    student: str,
    teacher: str,
    spike_strengths: Sequence[float],
    bulk_variances: Sequence[float],
    *,
    alignment: float,
    biases: Sequence[float] | None = None,
    cache_folder: str | os.PathLike[str] | None = None,
) -> LetterBounds:
    """Return the bounds for rows of several letters.

    Parameters
    ----------
    student, teacher : str
        Activations.
    spike_strengths, bulk_variances : sequence of float
        r_a and c_a of each letter.
    alignment : float
        γ in [-1, 1], of all letters.
    biases : sequence of float, optional
        b_a; default 0.
    cache_folder : path, optional

    Raises
    ------
    ParameterError
        If the sequences differ in length or hold something that cannot be.

    Examples
    --------
    >>> found = letter_bounds("tanh", "sin", (1.5, -0.7), (1.2, 1.05), alignment=0.9)
    >>> print(f"{found.lower:.7f} {found.upper:.7f}")
    0.0091414 0.1028606
    """
    strengths = [real_number("spike_strengths", x) for x in spike_strengths]
    variances = [positive_number("bulk_variances", x) for x in bulk_variances]
    offsets = [real_number("biases", x) for x in (biases or [0.0] * len(strengths))]
    if not 1 <= len(strengths) <= _MOST_LETTERS:
        raise ParameterError(f"spike_strengths must hold 1 to {_MOST_LETTERS} letters")
    if not len(strengths) == len(variances) == len(offsets):
        raise ParameterError(
            "spike_strengths, bulk_variances and biases must have one entry for each letter, got "
            f"{len(strengths)}, {len(variances)} and {len(offsets)}"
        )
    for name, values in (("spike_strengths", strengths), ("biases", offsets)):
        if not all(abs(x) <= _LARGEST for x in values):
            raise ParameterError(f"{name} must be of size at most {_LARGEST:g}, got {values}")
    gamma = real_number("alignment", alignment)
    if not -1 <= gamma <= 1:
        raise ParameterError(f"alignment must be between -1 and 1, got {gamma}")
    tables = _Tables.of(student, teacher, gamma, cache_folder)
    letters = list(zip(strengths, variances, offsets, strict=True))
    fine, coarse = (tables.distances(letters, back) for back in (0, 1))
    return LetterBounds(
        lower=fine[0],
        upper=fine[1],
        errors=(abs(fine[0] - coarse[0]) + _ROUNDING, abs(fine[1] - coarse[1]) + _ROUNDING),
    )


def learned_bias_bound(
    student: str,
    teacher: str,
    *,
    spike_strength: float,
    bulk_variance: float,
    alignment: float,
    bounds: tuple[float, float] = (-5.0, 5.0),
    cache_folder: str | os.PathLike[str] | None = None,
) -> LearnedBiasBound:
    """Return the lower bound for one letter whose bias is learnt.

    Parameters
    ----------
    student, teacher : str
    spike_strength, bulk_variance, alignment : float
        r, c and γ.
    bounds : (float, float)
        Biases that are searched, by 81 points and Brent's method between them.
    cache_folder : path, optional
    """
    low, high = (real_number("bounds", x) for x in bounds)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ParameterError(f"bounds must be two biases in ascending order, got {bounds!r}")

    def lower(bias: float) -> float:
        return letter_bounds(
            student, teacher, [spike_strength], [bulk_variance], alignment=alignment,
            biases=[float(bias)], cache_folder=cache_folder,
        ).lower  # fmt: skip

    _, minima = local_minima(lower, np.linspace(low, high, 81), "the bound over the bias")
    bias, least = min(minima, key=lambda pair: pair[1])
    return LearnedBiasBound(bias, least, tuple(minima), (low, high))


@dataclass(frozen=True)
class _Tables:
    module: ModuleType
    alignment: float

    @classmethod
    def of(
        cls,
        student: str,
        teacher: str,
        alignment: float,
        folder: str | os.PathLike[str] | None,
    ) -> _Tables:
        cache = FileCache(folder)
        source = _source(cache, student, teacher, aligned=abs(alignment) == 1)
        return cls(cache.load_module("letter_tables", source), alignment)

    def distances(self, letters: Sequence[tuple[float, ...]], back: int) -> tuple[float, float]:
        """Return L and U on a rule that is `back` times twice as coarse as the finest."""
        rho = math.sqrt((1 - self.alignment) * (1 + self.alignment))
        rows = [
            [np.float64(v) for v in (strength, variance, self.alignment, rho, bias)]
            for strength, variance, bias in letters
        ]
        x, w = span_rule(self.module, rows, back)
        found = [converged_tables(self.module, row, x) for row in rows]
        means, along, slopes = (
            np.array([np.broadcast_to(t[name], x.shape) for t in found])
            for name in ("mu_0", "along", "mu_1")
        )
        target, tilt = found[0]["T_0"], found[0].get("T_1", np.zeros_like(x))
        rest = float(w @ found[0].get("tau_2_squared", np.zeros_like(x)))
        everything = rest + squared_distance(tilt, slopes, w)
        lower = everything + squared_distance(target, np.vstack([means, along]), w)
        none = squared_distance(tilt, slopes[:0], w)
        return lower, rest + none + squared_distance(target, means, w)


def span_rule(module: ModuleType, rows: Sequence[Sequence[Any]], back: int) -> tuple[Array, Array]:
    """Return nodes and weights for tables at some parameters, `back` times twice as coarse."""
    zero = np.zeros(1)
    with np.errstate(divide="ignore", over="ignore"):
        width = min(float(module.outer_scale(zero, *row)) for row in rows)
    breaks = [b for row in rows for b in module.breaks(zero, *row)]
    if breaks:
        return quadrature.line_rule(breaks, _REFINEMENT - back)
    return quadrature.trapezoidal_rule(_STEP_PER_WIDTH * min(width, _WIDEST) * 2**back)


@derived("spiked_random_features/letters", str)
def _source(student: str, teacher: str, *, aligned: bool) -> str:
    from ....symbolic.activations import activation
    from .shape_tables import letter_table_source

    return letter_table_source(
        activation(student, argument="student"),
        activation(teacher, argument="teacher"),
        aligned=aligned,
    )
