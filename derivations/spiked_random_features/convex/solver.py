"""Solve the equations of a convex readout: where to begin, and what has no solution."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from ....errors import AssumptionError
from ....numeric.cache import FileCache
from ....numeric.continuation import solve_with_continuation
from ....numeric.kernel_arrays import KernelArrays
from ....numeric.kernel_code import LoadedKernel
from ....numeric.saddle_point_solver import BatchSolution, refusal
from ....runtime.generated import GeneratedFunction
from ....runtime.levels import Tables
from ....runtime.product_grids import Steep
from ....runtime.rules import GRID_REACH, NEGLIGIBLE_ON_GRID
from ....symbolic.expressions.activations import z as field
from ....symbolic.losses.convex_losses import smooth_pieces, without_cases
from ....symbolic.printing.compiled import compiled
from .derivation import ConvexCase, convex_derivation, loaded_kernel
from .features import Rows
from .labels import Labels
from .losses import ConvexLoss, x as prediction

# Of an inner variable: integrands that vary on this width are seen by the usual rules.
_USUAL_INNER = 0.8
# Ridge penalties from which solutions are followed, in the order in which they are tried. A large
# penalty leaves little but m, and its equation is easy for smooth losses. Where a loss has kinks
# it is the variance of predictions that smoothes them: a small one leaves a step.
_SMOOTH_ANCHORS = (10.0, 1.0, 0.1, 1e-3, 1e3)
_KINKED_ANCHORS = (0.1, 1e-2, 1.0, 1e-4, 100.0)
# Margins between which a loss that only rewards certainty still falls.
_FAR_MARGINS = (20, 40)


@dataclass(frozen=True)
class ReadoutSolver:
    """One readout with numbers for all parameters but α and λ.

    Attributes
    ----------
    case : ConvexCase
    loss : ConvexLoss
    channel : Labels
    rows : Rows
        Of features whose teacher has the conditional mean and variance of the labels.
    values : mapping from str to float
        Parameters of the kernel by name.
    cache : FileCache
    """

    case: ConvexCase
    loss: ConvexLoss
    channel: Labels
    rows: Rows
    values: Mapping[str, float]
    cache: FileCache

    @cached_property
    def kernel(self) -> LoadedKernel:
        """The generated code, loaded."""
        return loaded_kernel(self.case, os.fspath(self.cache.folder))

    @cached_property
    def arrays(self) -> KernelArrays:
        """Its tables."""
        return KernelArrays(self.kernel, self._table_values, self.rows.bulk.arrays, self._steep)

    @property
    def _steep(self) -> Steep | None:
        """Where labels jump: averaged over s, a jump at γκ + ρs = z is one of width ρ/γ in κ."""
        if self.case.aligned:
            return None
        field = self._field
        if field.alignment == 0:
            # Without inner nodes steep places are those of a solution; a grid has none of them.
            return None if self.kernel.code.inner_nodes else Steep((), math.inf, self._elsewhere)
        places = tuple(z / field.alignment for z in self.channel.jumps)
        return (
            Steep(places, field.scale / abs(field.alignment), self._elsewhere) if places else None
        )

    @property
    def _field(self) -> Field:
        noise = self.values["noise_variance"] if self.channel.channel == "probit" else 0.0
        return Field(self.values["alignment"], self.values["orthogonal_alignment"], noise)

    @property
    def _elsewhere(self) -> tuple[np.float64, ...]:
        """Parameters of the tables with which nothing is steep."""
        free = {**self.values, "alignment": 0.0, "orthogonal_alignment": 1.0}
        return tuple(np.float64(free[name]) for name in self.kernel.table_parameters)

    @cached_property
    def _profile(self) -> Mapping[str, NDArray[np.float64]]:
        """The tables of the node where crossings are looked for."""
        return self.arrays.tables(NODES)

    def _law(self, unknowns: Mapping[str, float]) -> Law | None:
        """Return the law of predictions where crossings are looked for.

        None for losses that are quadratic in the prediction: averages are polynomials in it, steep
        nowhere, and most of its unknowns are found by linear solves.
        """
        derivation = convex_derivation(self.cache, self.case)
        known = {**self.values, "kappa": NODES, **self._profile, **unknowns}
        if not known.keys() >= {*derivation.law_arguments}:
            return None
        law = GeneratedFunction(derivation.law, "law")
        found = law(*(known[name] for name in derivation.law_arguments))
        return Law(*(np.broadcast_to(x, NODES.shape) for x in found))

    def _sharper(self, unknowns: Mapping[str, float]) -> KernelArrays | None:
        """Return arrays that crowd where integrands are steep, where the usual ones do not."""
        inner_nodes = self.kernel.code.inner_nodes
        residual = not self.loss.needs_binary_labels
        if self.case.aligned or (
            residual and (inner_nodes != ("s",) or "T_0" not in self._profile)
        ):
            return None
        law, inner = self._law(unknowns), None
        if law is None:
            return None
        if residual:
            law = self._residuals(law)
            places, width = bends(_distances(law, self._corners), step=law.step)
            # Of residuals in the field's part s, the largest.
            slopes = np.max(np.abs(law.covariance[:, None] - self._teacher_slopes), axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                inner = _widths(_SEEN * np.sqrt(law.free_variance) / slopes)
        else:
            places, width = folds(law, self._kinks, None if inner_nodes else self._field)
        if inner_nodes and not residual:
            smoothed = law._replace(variance=law.variance + _LOSS_WIDTH**2)
            bent, narrow = bends(_distances(smoothed, _MARGIN), places, law.step)
            places, width = [*places, *bent], min(width, narrow)
            inner = inner_widths(law, smooth=not self._kinks)
        usual = self._steep
        if width >= self.arrays.narrowest:
            places, width = [], math.inf
        # Nodes of margins multiply by more than their tails are worth.
        reach = _reach(_weight(law.step)) if residual else 0.0
        seen_inside = not places and (inner is None or np.min(inner) >= _USUAL_INNER)
        if seen_inside and reach <= GRID_REACH:
            return None
        if usual is not None:
            places, width = [*usual.places, *places], min(width, usual.width)

        widths = np.full_like(NODES, math.inf) if inner is None else inner

        def narrower(x: Array) -> Array:
            return np.asarray(np.interp(x, NODES, widths))

        steep = Steep(
            tuple(places),
            width,
            self._elsewhere,
            narrower if inner_nodes else None,
            reach,
        )
        return KernelArrays(
            self.kernel, self._table_values, self.rows.bulk.arrays, steep, self.arrays
        )

    def _residuals(self, law: Law) -> Law:
        """Return the law of predictions less labels, given kappa, and given the field as well."""
        tables, noise = self._profile, self.values["noise_variance"]
        spread = tables["T_2"] - tables["T_0"] ** 2 - 2 * law.covariance * tables["T_1"]
        return law._replace(
            mean=law.mean - tables["T_0"],
            variance=np.maximum(law.variance + spread, law.free_variance + noise),
            free_variance=law.free_variance + noise,
        )

    @cached_property
    def _teacher_slopes(self) -> Array:
        slope = self.channel.teacher.expr.diff(field).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
        across = self._field.across
        fields = self._field.alignment * NODES[:, None] + across * _FIELDS
        return np.broadcast_to(across * compiled(slope, (field,))(fields), fields.shape)

    @property
    def _table_values(self) -> list[np.float64]:
        return [np.float64(self.values[name]) for name in self.kernel.table_parameters]

    def _start(self, alphas: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
        """Return the unknowns of the square loss."""
        found = self.rows.start(alphas, ridge)
        return np.stack([found[name] for name in self.kernel.code.unknowns], axis=1)

    @property
    def _anchors(self) -> tuple[float, ...]:
        """Ridge penalties at which the equations are easy."""
        return _KINKED_ANCHORS if self._kinks else _SMOOTH_ANCHORS

    @property
    def _kinks(self) -> tuple[float, ...]:
        """Kinks of the loss at the label 1; of a loss of the residual, of the residual."""
        return tuple(dict.fromkeys(kink for kink, _ in self._corners))

    @cached_property
    def _corners(self) -> tuple[tuple[float, float], ...]:
        """Kinks with the slope of the loss on each side."""
        label = 1 if self.loss.needs_binary_labels else 0
        numbers = self.loss.exact_values
        found = _corners_of(self.loss.at_label(label))
        return tuple((float(k.subs(numbers)), float(slope.subs(numbers))) for k, slope in found)

    def solve(
        self, alphas: Array, ridges: Array, *, rtol: float, workers: int | None
    ) -> BatchSolution:
        """Solve at many sample complexities and ridge penalties, one of each for every row.

        Raises
        ------
        AssumptionError
            If the mean direction separates the labels, and nothing keeps m finite.
        ConvergenceError
            If a point has no solution that is found; names the first.
        """
        kernel = self.kernel
        self._require_a_minimum()
        columns: dict[str, Any] = {**self.values, "alpha": alphas, "ridge": ridges}
        parameters = np.stack(
            [np.broadcast_to(columns[name], alphas.shape) for name in kernel.parameters], axis=1
        ).astype(float)
        # The first anchors are so easy that first values of the kernel lead to solutions there.
        usual = np.full((len(alphas), len(kernel.code.unknowns)), np.nan)
        found = solve_with_continuation(
            kernel, self.arrays, parameters, usual, "ridge",
            rtol=rtol, workers=workers, anchors=self._anchors,
            start_at=lambda rows, value: self._start(alphas[rows], value),
            sharper=self._sharper, gently=not self.loss.is_square,
        )  # fmt: skip
        if not found.converged.all():
            raise refusal(kernel, parameters, found)
        return found

    def _require_a_minimum(self) -> None:
        """Refuse labels that mean directions separate in the strict limit.

        Labels that are a function of κ and have the sign of m·μ_0(κ) everywhere are fitted ever
        better by m → ∞, and only at finite width does m cost anything.
        """
        if not self.case.aligned or self.values.get("inverse_width", 0.0) > 0:
            return
        if self.channel.has_noise or self.channel.channel == "logistic":
            return
        if not self.loss.needs_binary_labels:
            return
        loss = self.loss
        at_label = loss.at_label(1).xreplace(loss.exact_values)
        near, far = (at_label.subs(prediction, margin).evalf() for margin in _FAR_MARGINS)
        if far > near:
            return
        kernel = self.kernel
        assert kernel.tables is not None
        tables = Tables(kernel.tables, self._table_values)(np.linspace(-6.0, 6.0, 241))
        means = [table for name, table in tables.items() if name.startswith(("mu_0", "mu0_"))]
        if means and _separated(tables["label"], np.stack(means, axis=1)):
            raise AssumptionError(
                f"alignment {self.values['alignment']:g}: the labels are the sign of the mean "
                f"feature mu_0(kappa), and the {loss.name} loss falls as its weight m grows, which "
                "costs nothing in the limit of infinite width: there is no minimum; give width=p, "
                "or labels with noise ('probit', 'logistic')"
            )


# Of a loss with symbols for its parameters, so once for all their values.
@lru_cache(maxsize=64)
def _corners_of(at_label: sp.Expr) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
    """Return the kinks of a loss at one label with both slopes there, in its parameters."""
    at_label = without_cases(at_label, prediction)
    kinks, pieces = smooth_pieces(at_label, prediction)
    slopes = [piece.diff(prediction) for piece in pieces]
    sides = zip(kinks, pairwise(slopes), strict=True)
    return tuple((kink, slope.subs(prediction, kink)) for kink, both in sides for slope in both)


def _separated(labels: NDArray[np.float64], means: NDArray[np.float64]) -> bool:
    """Tell whether a combination of mean features (n, K) has the signs of all labels (n,)."""
    sizes = np.linalg.norm(means, axis=1)
    rows = (labels[:, None] * means)[sizes > 0] / sizes[sizes > 0, None]
    if not len(rows):
        return False
    # m with rows·m >= 0 and sum 1, by linear programming.
    found = linprog(
        np.zeros(means.shape[1]), A_ub=-rows, b_ub=np.zeros(len(rows)),
        A_eq=rows.mean(axis=0)[None], b_eq=[1.0], bounds=(None, None),
    )  # fmt: skip
    return bool(found.status == 0)


Array = NDArray[np.float64]

# ------------------------------------------------------------------ where integrands are steep

# Given kappa a prediction is Gaussian, with mean C(kappa) and variance q(kappa). Its sign, and on
# which side of a kink of the loss it is, change where C crosses zero or the kink, on the width
# sqrt(q)/|C'|. For readouts with small overlaps q1 and q2, or a student that saturates, that is far
# below the width of any conditional coefficient.

# Nodes on which crossings are looked for; conditional coefficients are smooth between them.
NODES = np.linspace(-8.8, 8.8, 441)
# Rules that crowd on smaller widths see nothing new: rounding moves a crossing as much.
_SMALLEST_WIDTH = 1e-8
# In units of the prediction: the poles of a logistic function are at ±iπ, and a trapezoidal sum
# whose steps are a quarter of their distance has ten digits.
_LOSS_WIDTH = 1.8
_FAR = 4.0
# Part of the largest weight of a node below which it does not matter: without steps it is 5 away.
_LEAST_WEIGHT = math.exp(-(5.0**2) / 2)
# Places of a margin's smooth loss in the same form as kinks with slopes.
_MARGIN = ((0.0, 0.0), (0.0, 1.0), (0.0, -1.0))
# Widths of steps that are smoothed by a Gaussian variable, in its standard deviations: in kappa
# and in the inner variable, whose rules have steps of other lengths to a width.
_BEND, _SEEN = 2.0, 1.4
# Wider bends are seen by panels of any line.
_SHALLOW = 0.5
# Where slopes of labels are looked for, in s.
_FIELDS = np.linspace(-6.0, 6.0, 61)
# Coefficients of the cubic through values at 0, 1, 2 and 3, and steps of Newton's method for it.
_CUBIC = np.linalg.inv(np.vander(np.arange(4.0)))
_STEPS = 8


class Law(NamedTuple):
    """The law of predictions at :data:`NODES`: the fields of :class:`.physics.Prediction`."""

    mean: Array
    covariance: Array
    variance: Array
    free_variance: Array
    step: Array


class Field(NamedTuple):
    """The field γκ + ρs + √Δ ξ whose sign is a label."""

    alignment: float
    across: float
    noise: float

    @property
    def scale(self) -> float:
        """Standard deviation given κ."""
        return math.hypot(self.across, math.sqrt(self.noise))


def folds(
    law: Law, kinks: Sequence[float], field: Field | None = None
) -> tuple[list[float], float]:
    """Return where predictions cross zero or a kink, and the smallest width on which they do.

    `kinks` are those at the label 1; those at -1 are their mirror images. Where integrands hold
    averages over the labels of a `field` in closed form, it matters, too, where the field of a
    prediction at a kink crosses zero, and predictions where the field is zero.
    """
    mean, step, deviation = law.mean, law.step, np.sqrt(law.variance)
    # The proximal point leaves and reaches a kink where the prediction is at it and, behind it, as
    # far as a step of the slope of the loss.
    ends = [end for kink in kinks for end in (kink, kink - step, -kink, step - kink)]
    levels = [(mean - end, deviation) for end in (0.0, *ends)]
    if field is not None:
        # Where a student saturates the variance underflows, and no label depends on predictions.
        variance = np.maximum(law.variance, np.finfo(float).tiny)
        slope = field.across * law.covariance / variance
        spread = np.sqrt(field.noise + field.across**2 * law.free_variance / variance)
        levels += [(field.alignment * NODES + slope * (end - mean), spread) for end in ends]
        share = field.across * law.covariance / field.scale**2
        rest = law.free_variance + law.covariance**2 * field.noise / field.scale**2
        at_zero = mean - share * field.alignment * NODES
        levels += [(at_zero - end, np.sqrt(rest)) for end in ends]
    places, width = [], np.inf
    for level, spread in levels:
        slope = np.abs(np.gradient(level, NODES))
        # Zeros of both signs are no crossing.
        crosses = (np.signbit(level[1:]) != np.signbit(level[:-1])) & (level[1:] != level[:-1])
        for k in np.flatnonzero(crosses):
            place = _zero_between(level, int(k))
            steepness, wide = (np.interp(place, NODES, table) for table in (slope, spread))
            if steepness > 0:
                places.append(float(place))
                width = min(width, float(wide / steepness))
    return places, max(width, _SMALLEST_WIDTH)


def _zero_between(level: Array, k: int) -> float:
    """Return where a table changes its sign after the node k, by a cubic through four nodes."""
    first = min(max(k - 1, 0), len(NODES) - len(_CUBIC))
    cubic = _CUBIC @ level[first : first + len(_CUBIC)]
    low, high = float(k - first), float(k - first + 1)
    rises = level[k + 1] > level[k]
    # In steps of the nodes from the first one.
    place = low + float(level[k] / (level[k] - level[k + 1]))
    for _ in range(_STEPS):
        value = slope = 0.0
        for coefficient in cubic:
            slope = slope * place + value
            value = value * place + float(coefficient)
        if (value > 0) == rises:
            high = place
        else:
            low = place
        place = place - value / slope if slope else low
        if not low <= place <= high:
            place = (low + high) / 2
    return float(NODES[first] + place * (NODES[1] - NODES[0]))


def _distances(law: Law, corners: Sequence[tuple[float, float]]) -> list[Array]:
    """Return how far predictions are from where proximal points reach kinks, in deviations."""
    ends = [kink + slope * law.step for kink, slope in corners]
    return [(law.mean - end) / np.sqrt(law.variance) for end in ends]


def bends(
    distances: Sequence[Array], known: Sequence[float] = (), step: Array | float = 0.0
) -> tuple[list[float], float]:
    """Return places that are as near as averages over all but kappa are narrow, and their width.

    `distances` of predictions from where an integrand bends are in standard deviations, at
    :data:`NODES`; `known` places there are anyway. `step` is that of the envelope.
    """
    steepness = np.zeros_like(NODES)
    weight = _weight(step)
    matters = weight > _LEAST_WEIGHT * np.max(weight)
    for level in distances:
        seen = (np.abs(level) < _FAR) & matters
        slope = np.where(seen, np.abs(np.gradient(level, NODES)), 0.0)
        steepness = np.maximum(steepness, slope)
    with np.errstate(divide="ignore"):
        widths = np.maximum(_BEND / steepness, _SMALLEST_WIDTH)
    places: list[float] = []
    for k in np.argsort(widths, kind="stable"):
        if widths[k] > _SHALLOW:
            break
        if all(abs(NODES[k] - place) > widths[k] for place in (*known, *places)):
            places.append(float(NODES[k]))
    return places, float(np.min(widths))


def _weight(step: Array | float) -> Array:
    """Return how much nodes matter: a loss is small where the step of its envelope is large.

    A readout that interpolates is measured by where it does not, be that in a tail.
    """
    return np.asarray(np.exp(-(NODES**2) / 2) / (1 + step) ** 2)


def _reach(weight: Array) -> float:
    """Return how far rules have to go, with no step beyond the last node; 0 if they do anyway."""
    least = NEGLIGIBLE_ON_GRID * float(np.max(weight))
    return 0.0 if max(weight[0], weight[-1]) <= least else math.sqrt(-2 * math.log(least))


def inner_widths(law: Law, *, smooth: bool) -> Array:
    """Return on which widths averages over label and prediction vary in their inner variable.

    The label given the prediction, and the prediction given the label, vary on √v/p, with the
    variance v of what is left of the prediction and its covariance p with the label's field. A
    smooth loss has a slope that varies on predictions of order one, of standard deviation √q; the
    average of one with kinks is in closed form.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        widths = np.sqrt(law.free_variance) / np.abs(law.covariance)
        if smooth:
            widths = np.fmin(widths, _LOSS_WIDTH / np.sqrt(law.variance))
    return _widths(widths)


def _widths(found: Array) -> Array:
    """Return widths none of which is too small; what does not move is wide."""
    return np.maximum(np.nan_to_num(found, nan=np.inf, posinf=np.inf), _SMALLEST_WIDTH)
