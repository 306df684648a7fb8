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
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....numeric.column_span import ColumnSpan, column_span
from ....numeric.precise_averages import InnerRule
from ....numeric.precision import local_context
from .arguments import VocabularyParameters

Array = NDArray[np.float64]

DIGITS = 50
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

    Raises
    ------
    ConvergenceError
        If letters are so close that these digits do not tell them apart.
    """
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    ctx = local_context(DIGITS)
    points = [[ctx.mpf(float(x)) for x in row] for row in kappa]
    columns = []
    with tqdm(
        total=len(parameters.classes) * len(points), desc="means of close letters", unit="value",
        delay=1, leave=False, disable=not progress,
    ) as bar:  # fmt: skip
        for kind in parameters.classes:
            mean = _mean(ctx, source, student, kind.bulk_variance)
            spike, bias = [ctx.mpf(r) for r in kind.strengths], ctx.mpf(kind.bias)
            column = []
            for point in points:
                column.append(mean(ctx.fdot(spike, point) + bias))
                bar.update()
            columns.append(column)
    return column_span(ctx, columns, [ctx.mpf(float(w)) for w in weights], DIGITS)


def sample(kappa: Array, letters: int) -> NDArray[np.int64]:
    """Return numbers of nodes that tell the rank of so many functions."""
    near = np.flatnonzero(np.max(np.abs(kappa), axis=1) < 3.0)
    return near[np.linspace(0, len(near) - 1, min(2 * letters + 3, len(near))).astype(int)]


def _mean(ctx: Any, source: str, student: ModuleType, bulk_variance: float) -> Callable[[Any], Any]:
    namespace: dict[str, Any] = {"ctx": ctx}
    exec(source, namespace)
    rules = student.inner_rules(np.zeros(1), np.float64(bulk_variance))
    rule = InnerRule(
        ctx,
        DIGITS,
        {
            slot: argument if kind == "trapezoidal" else (math.inf, 0.0)
            for slot, (kind, argument) in rules.items()
        },
    )
    variance = ctx.mpf(bulk_variance)

    def mean(centre: Any) -> Any:
        return namespace["tables"](centre, variance, rule)[0]

    # Finds the step that is fine enough, for good.
    for centre in (0.0, 1.0):
        mean(ctx.mpf(centre))
    rule.checked = False
    return mean
