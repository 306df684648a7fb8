r"""The span of the means μ_0 of letters that do nearly the same, from tables of many digits.

In the strict limit overlaps m cost nothing, and only the space that the functions
:math:`\mu_0^a(\kappa)` span matters. Letters that differ by ε span derivatives of :math:`\mu_0` by
the letter up to order K - 1, of which tables of double precision show nothing where
:math:`\varepsilon^{K-1} < 10^{-16}`, while some letters are exactly collinear: those of opposite
spikes for an odd student.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ConvergenceError
from ....numeric.column_span import ColumnSpan, column_span
from ....runtime.generated import defined
from ....runtime.precise_averages import InnerRule
from ....runtime.precision import local_context
from ....runtime.quadrature import inner_extent
from .arguments import VocabularyParameters

Array = NDArray[np.float64]

# Digits of the means: more where letters are so close that a direction of theirs needs them.
DIGITS = 50
# What a direction may be smaller than distances say, and what it needs to have digits itself.
_SPARE_DIGITS = 30
# Smaller directions than these show are left out, and are part of the error.
MOST_DIGITS = 150
_MOST_AVERAGES = 400


def is_cheap(source: str, values: int) -> bool:
    """Tell whether so many values of μ_0 with many digits are quick, from the text of its table.

    A closed form is, and so is an average of a smooth function, which is evaluated on one lattice;
    other averages take milliseconds, and kinks much longer.
    """
    averages = [line for line in source.splitlines() if " rule(" in line]
    return not averages or (values <= _MOST_AVERAGES and all("[])" in line for line in averages))


def mean_span(
    source: str,
    student: ModuleType,
    parameters: VocabularyParameters,
    kappa: Array,
    weights: Array,
    *,
    progress: bool,
    most_digits: int = MOST_DIGITS,
) -> ColumnSpan:
    """Return an orthonormal basis of the means of all letters.

    Parameters
    ----------
    source : str
        Text of the mpmath tables of μ_0.
    student : module
        Float tables of the student, which know the strip where it is analytic.
    parameters : VocabularyParameters
    kappa : array (n, k)
    weights : array (n,)
    progress : bool
        Show a bar if it takes longer than a second.
    most_digits : int
        Directions that are too small for them are left out.

    Notes
    -----
    K letters that are close span about the first K derivatives of one, each smaller than the one
    before it by their distance.
    """
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    wanted = max(DIGITS, _SPARE_DIGITS + _digits_of_distances(parameters))
    digits = min(wanted, most_digits)
    while True:
        ctx = local_context(digits)
        points = [[ctx.mpf(float(x)) for x in row] for row in kappa]
        columns = []
        with tqdm(
            total=len(parameters.classes) * len(points), desc="means of close letters",
            unit="value", delay=1, leave=False, disable=not progress,
        ) as bar:  # fmt: skip
            for kind in parameters.classes:
                mean = _mean(ctx, source, student, kind.bulk_variance, digits)
                spike, bias = [ctx.mpf(r) for r in kind.strengths], ctx.mpf(kind.bias)
                column = []
                for point in points:
                    column.append(mean(ctx.fdot(spike, point) + bias))
                    bar.update()
                columns.append(column)
        try:
            found = column_span(
                ctx, columns, [ctx.mpf(float(w)) for w in weights], digits,
                drop=digits == most_digits,
            )  # fmt: skip
        except ConvergenceError:
            digits = most_digits
        else:
            return replace(found, complete=found.complete and wanted <= digits)


def _digits_of_distances(parameters: VocabularyParameters) -> int:
    """Return how many digits the smallest direction of close letters begins after, about."""
    places = np.array([(*k.strengths, k.bias, k.bulk_variance) for k in parameters.classes])
    lost = 0.0
    for j in range(1, len(places)):
        with np.errstate(divide="ignore"):
            distances = [
                np.linalg.norm(places[:j] - sign * places[j], axis=1) for sign in (1.0, -1.0)
            ]
            logarithms = np.log10(np.minimum(*distances))
        near = np.sort(logarithms[logarithms < 0])
        smaller = near - np.log10(np.arange(len(near), 0, -1))
        lost = max(lost, -float(np.sum(smaller[np.isfinite(smaller)])))
    return math.ceil(lost)


def sample(kappa: Array, letters: int) -> NDArray[np.int64]:
    """Return numbers of nodes that tell the rank of so many functions."""
    near = np.flatnonzero(np.max(np.abs(kappa), axis=1) < 3.0)
    return near[np.linspace(0, len(near) - 1, min(2 * letters + 3, len(near))).astype(int)]


def _mean(
    ctx: Any, source: str, student: ModuleType, bulk_variance: float, digits: int
) -> Callable[[Any], Any]:
    tables = defined(source, ctx=ctx).tables
    rules = student.inner_rules(np.zeros(1), np.float64(bulk_variance))
    rule = InnerRule(
        ctx,
        digits,
        {slot: inner_extent(*found) for slot, found in rules.items()},
    )
    variance = ctx.mpf(bulk_variance)

    def mean(centre: Any) -> Any:
        return tables(centre, variance, rule)[0]

    # Finds the step that is fine enough, for good.
    for centre in (0.0, 1.0):
        mean(ctx.mpf(centre))
    rule.checked = False
    return mean
