r"""The conditional coefficients of letters and teacher on quadrature nodes, in k dimensions.

**The span of the means μ_0 of letters that do nearly the same, from tables of many digits.** In the
strict limit overlaps m cost nothing, and only the space that the functions :math:`\mu_0^a(\kappa)`
span matters. Letters that differ by ε span derivatives of :math:`\mu_0` by the letter up to order K
- 1, of which tables of double precision show nothing where :math:`\varepsilon^{K-1} < 10^{-16}`,
while some letters are exactly collinear: those of opposite spikes for an odd student.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ....errors import ConvergenceError, ParameterError
from ....numeric.column_span import ColumnSpan, column_span
from ....numeric.letter_saddle_point import LetterArrays
from ....runtime import quadrature
from ....runtime.generated import defined
from ....runtime.levels import Tables
from ....runtime.precise_averages import InnerRule
from ....runtime.precision import local_context
from ....runtime.quadrature import inner_extent
from .arguments import VocabularyParameters, orthogonal_alignment

Array = NDArray[np.float64]

# Trapezoidal steps of the fine and the coarse rule, per unit width of the tables and for each
# rank: grids of three dimensions have to be coarser.
_STEPS = {1: (0.13, 0.26), 2: (0.2, 0.4), 3: (0.42, 0.56)}
_REACH = {1: quadrature.REACH, 2: 8.8, 3: 8.0}
# A weight below this, relative to the largest, changes nothing.
_LEAST_WEIGHT = 1e-20
_MOST_NODES = 2**19
_MOST_CENTRES = 2000
# Spacing of spline knots per unit width of the tables: 0.05**8 is 4e-11, times the eighth
# derivative over 8! of functions that are smooth on that width.
_SPLINE_STEP, _SPLINE_ORDER = 0.03, 7
# Shorter where splines miss tables by more than this between knots, relative to their largest
# values; small tables count as large as this part of the largest.
_SPLINE_TOLERANCE, _SMALL_TABLE, _NO_SIZE = 1e-14, 0.02, 1e-300
_MOST_KNOTS = 20_000
_SPLINE_PROBES = np.modf(np.arange(1, 24) * (math.sqrt(5) - 1) / 2)[0]
# Trapezoidal steps of the finer and the coarser inner average, and where they end.
_INNER_TOLERANCE = 1e-4
_INNER_STEPS, _INNER_REACH = (0.25, 1 / 3), 9.0
_MOST_INNER_DIRECTIONS = 2
# Singular values of the orthogonal part of a teacher that are rounding.
_NO_DIRECTION = 1e-7


@dataclass(frozen=True)
class Functions:
    """Generated modules of one student and teacher.

    Attributes
    ----------
    student, teacher : module
        Tables; of a teacher of several coordinates the module with its function.
    multi_index : bool
    """

    student: ModuleType
    teacher: ModuleType
    multi_index: bool


def letter_arrays(
    functions: Functions, parameters: VocabularyParameters, noise_variance: float, level: int
) -> tuple[LetterArrays, LetterArrays]:
    """Return coefficients on a fine and on a coarse rule.

    Parameters
    ----------
    level : int
        Each level halves the steps.

    Raises
    ------
    ParameterError
        If the tables vary on a scale that needs too many nodes.
    """
    axes, width, breaks = _frame(functions, parameters)
    reach = _sufficient_reach(functions, parameters, axes)
    rules = []
    for back, step in enumerate(_STEPS[parameters.rank]):
        kappa, weights = _grid(step * width / 2**level, reach, breaks, level - back, axes)
        rules.append(_tabulate(functions, parameters, noise_variance, kappa, weights, back))
    return rules[0], rules[1]


def student_coefficients(
    functions: Functions, parameters: VocabularyParameters, kappa: Array
) -> tuple[Array, Array, Array]:
    """Return μ_0, √c μ_1 and μ_2² of all letters at κ (n, k), each of shape (n, K)."""
    columns = []
    for c in parameters.classes:
        centre = kappa @ np.array(c.strengths) + c.bias
        found = _tables(functions.student, [c.bulk_variance], centre)
        columns.append([found[name] for name in ("mu0", "mu1", "mu2_squared")])
    mu0, mu1, mu2 = (np.stack(column, axis=1) for column in zip(*columns, strict=True))
    return mu0, mu1, mu2


def teacher_moments(
    functions: Functions, parameters: VocabularyParameters, kappa: Array, coarsening: int = 0
) -> tuple[Array, Array, Array]:
    """Return T_0 (n,), T_1 (n, U) and T_2 (n,) of the noise-free labels at κ (n, k).

    With `coarsening` 1 averages of several coordinates are those of a coarser rule, so that the
    difference of two solutions has their errors.
    """
    gamma = parameters.overlaps
    if functions.multi_index:
        return _multi_index_moments(functions.teacher, gamma, kappa, coarsening)
    found = _tables(functions.teacher, [orthogonal_alignment(gamma)], kappa @ gamma[:, 0])
    return found["T0"], found["T1"][:, None], found["T2"]


def _tabulate(
    functions: Functions,
    parameters: VocabularyParameters,
    noise: float,
    kappa: Array,
    weights: Array,
    coarsening: int,
) -> LetterArrays:
    t0, t1, t2 = teacher_moments(functions, parameters, kappa, coarsening)
    coefficients = student_coefficients(functions, parameters, kappa)
    return LetterArrays(weights, kappa, *coefficients, t0, t1, t2 + noise)


def _tables(module: ModuleType, values: list[float], centre: Array) -> dict[str, Array]:
    given = [np.float64(v) for v in values]
    zero = np.zeros(1)
    low, high = float(np.min(centre)), float(np.max(centre))
    if low == high:
        found = Tables(module, given)(centre[:1])
        return {name: np.full(len(centre), table[0]) for name, table in found.items()}
    if len(centre) <= _MOST_CENTRES or len(module.breaks(zero, *given)):
        return Tables(module, given)(centre)
    # Tables without breaks are analytic functions of one variable: splines of high order hold
    # them to rounding, where a grid of several dimensions would ask for each centre.
    with np.errstate(divide="ignore"):
        width = float(module.outer_scale(zero, *given))
    probes = low + (high - low) * _SPLINE_PROBES
    exact = Tables(module, given)(probes)
    sizes = {name: float(np.max(np.abs(table))) for name, table in exact.items()}
    before, floor = math.inf, _NO_SIZE + _SMALL_TABLE * max(sizes.values())
    while True:
        count = math.ceil((high - low) / (_SPLINE_STEP * width)) + _SPLINE_ORDER + 1
        x = np.linspace(low, high, count)
        splines = {
            name: scipy.interpolate.make_interp_spline(x, table, k=_SPLINE_ORDER)
            for name, table in Tables(module, given)(x).items()
        }
        missed = max(
            float(np.max(np.abs(splines[name](probes) - exact[name]))) / (sizes[name] + floor)
            for name in exact
        )
        # Shorter steps do not bring rounding down.
        if missed <= _SPLINE_TOLERANCE or missed > before / 2 or count > _MOST_KNOTS:
            return {name: spline(centre) for name, spline in splines.items()}
        width, before = width / 2, missed


def _frame(
    functions: Functions, parameters: VocabularyParameters
) -> tuple[Array, float, list[float]]:
    """Return axes (k, k) of the grid, the width of the tables along them, and breaks on the first.

    The first axis goes along γ: a teacher with a jump has it across that axis.
    """
    zero, gamma = np.zeros(1), parameters.overlaps
    width, breaks, axes = 1.0, [], np.eye(parameters.rank)
    for c in parameters.classes:
        size = math.hypot(*c.strengths)
        with np.errstate(divide="ignore"):
            own = float(functions.student.outer_scale(zero, np.float64(c.bulk_variance)))
        width = min(width, own / size) if size else width
    if not functions.multi_index:
        rho, size = orthogonal_alignment(gamma), float(np.linalg.norm(gamma))
        if size:
            with np.errstate(divide="ignore"):
                own = float(functions.teacher.outer_scale(zero, np.float64(rho)))
            width = min(width, own / size)
            breaks = [float(b) / size for b in functions.teacher.breaks(zero, np.float64(rho))]
            if parameters.rank > 1:
                axes = np.linalg.qr(np.hstack([gamma / size, np.eye(parameters.rank)]))[0]
                axes[:, 0] = gamma[:, 0] / size
    return axes, width, breaks


def _grid(
    step: float, reach: float, breaks: list[float], refinement: int, axes: Array
) -> tuple[Array, Array]:
    rank = len(axes)
    expected = (2 * reach / step) ** rank
    if not expected <= _MOST_NODES * 2:
        raise ParameterError(
            f"averages over kappa would need {expected:.1e} nodes: a spike is too strong or a "
            "teacher too steep for its bulk variance; take parameters that are less extreme"
        )
    lines = [quadrature.trapezoidal_rule(step, reach)] * rank
    if breaks:
        lines[0] = quadrature.line_rule(breaks, refinement, reach)
    nodes = np.stack(np.meshgrid(*(x for x, _ in lines), indexing="ij"), axis=-1).reshape(-1, rank)
    weights = np.ones(1)
    for _, w in lines:
        weights = np.multiply.outer(weights, w).ravel()
    if rank > 1:
        kept = weights > _LEAST_WEIGHT * weights.max()
        nodes, weights = nodes[kept], weights[kept]
    return nodes @ axes.T, weights


def _sufficient_reach(functions: Functions, parameters: VocabularyParameters, axes: Array) -> float:
    """Return how far the grid has to go: activations that grow need more."""
    if parameters.rank > 1:
        return _REACH[parameters.rank]

    def tables(x: Array) -> Array:
        kappa = x[:, None] * axes[0]
        found = [*student_coefficients(functions, parameters, kappa)]
        found += teacher_moments(functions, parameters, kappa)
        return np.hstack([table.reshape(len(x), -1) for table in found]).T

    return float(quadrature.sufficient_reach(_REACH[1], tables))


def outside_directions(gamma: Array) -> Array:
    r"""Return P (r, U) with :math:`PP^\top = 1 - \gamma^\top\gamma`, its columns orthogonal.

    Column u is what the directions of the teacher have along the u-th direction outside the spikes.
    """
    values, vectors = np.linalg.eigh(np.eye(gamma.shape[1]) - gamma.T @ gamma)
    kept = values > _NO_DIRECTION
    spread: Array = vectors[:, kept] * np.sqrt(values[kept])
    return spread


def teacher_frame(gamma: Array) -> Array:
    """Return the orthonormalised parts of the teacher's directions outside the spikes, (r, U).

    In the order of the coordinates, each less its part along those before it, as simulations take
    them; zero where nothing is left.
    """
    spread = outside_directions(gamma)
    frame = np.zeros_like(spread)
    for i, part in enumerate(spread):
        rest = part - frame[:i].T @ (frame[:i] @ part)
        size = np.linalg.norm(rest)
        if size > _NO_DIRECTION:
            frame[i] = rest / size
    return frame


def _multi_index_moments(
    module: ModuleType, gamma: Array, kappa: Array, coarsening: int
) -> tuple[Array, Array, Array]:
    r"""Average a teacher of several coordinates over what its directions have outside the spikes.

    :math:`\theta\cdot x = \gamma^\top\kappa + Ps` with :math:`PP^\top = 1 - \gamma^\top\gamma`.
    """
    spread = outside_directions(gamma)
    inside = kappa @ gamma
    if spread.shape[1] > _MOST_INNER_DIRECTIONS:
        raise ParameterError(
            f"the teacher has {spread.shape[1]} directions outside the spikes; at most "
            f"{_MOST_INNER_DIRECTIONS} are offered: align more of them, or use fewer coordinates"
        )
    if not spread.shape[1]:
        label = module.teacher(inside)
        return label, np.zeros((len(kappa), 1)), label**2
    results = [_inner_averages(module, inside, spread, step) for step in _INNER_STEPS]
    # Far out a product of coordinates is steep, where next to nothing weighs.
    weight = np.exp(-np.sum(kappa**2, axis=1) / 4)
    for fine, coarse in zip(*results, strict=True):
        change, size = ((weight * np.abs(x).T).max() for x in (fine - coarse, fine))
        if change > _INNER_TOLERANCE * (1 + size):
            raise ConvergenceError(
                "averages of the teacher over its directions outside the spikes do not converge: "
                "it has a kink or a jump in several coordinates, or varies too fast"
            )
    return results[coarsening]


def _inner_averages(
    module: ModuleType, inside: Array, spread: Array, step: float
) -> tuple[Array, Array, Array]:
    x, w = quadrature.trapezoidal_rule(step, _INNER_REACH)
    directions = spread.shape[1]
    t0, t1, t2 = np.zeros(len(inside)), np.zeros((len(inside), directions)), np.zeros(len(inside))
    for index in itertools.product(range(len(x)), repeat=directions):
        weight = math.prod(float(w[i]) for i in index)
        if weight < _LEAST_WEIGHT:
            continue
        s = x[list(index)]
        label = module.teacher(inside + spread @ s)
        t0 += weight * label
        t1 += weight * label[:, None] * s
        t2 += weight * label**2
    return t0, t1, t2


# ------------------------------------------------------------------ mean span


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
