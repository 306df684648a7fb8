"""Minima of a function of a few parameters in a box: a scan, descents, and a certificate for each.

The function comes with its gradient, exact or by differences (:class:`Differenced`). The lowest
point of every basin of a grid starts a descent: L-BFGS-B along the gradient, then Newton's
method to where the gradient vanishes. Hessians are differences of gradients, extrapolated, with an
error estimate: what makes a minimum certain is that the smallest eigenvalue is above its error.
Coordinates are logarithms of parameters where these are positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ConvergenceError

Array = NDArray[np.float64]
Values = Callable[[Array], tuple[Array, Array]]

# Points of a scan in all; of one axis; for each factor of ten of an axis, and of a linear one.
_MOST_POINTS, _MOST_ON_AXIS, _LEAST_ON_AXIS = 1200, 400, 3
_PER_DECADE, _LINEAR = 4, 24
_MOST_STARTS = 12
# Steps of differences, in units of the distance of points of an axis as fine as one is by itself.
_STEP = 1 / 16
# In units of coordinates: minima this close are one, a point this close to a bound is on it.
_SAME, _ON_BOUND = 1e-5, 1e-9
_MOST_NEWTON_STEPS = 12
# Cells of the scan that a descent may cross.
_MOST_CELLS = 50
# Relative: values closer than this do not differ.
_ROUNDING = 1e-12
# What basins of a scan are as deep as, whatever its errors.
_SHALLOW = 1e-6
_FARTHEST = 0.1


@dataclass(frozen=True)
class Axis:
    """A parameter between bounds.

    Attributes
    ----------
    name : str
    low, high : float
        low < high.
    logarithmic : bool
        Whether the coordinate is the logarithm of the parameter; low > 0 then.
    density : int, optional
        Points of a scan for each factor of ten, or of the whole of a linear axis; default: 4, or
        24.
    """

    name: str
    low: float
    high: float
    logarithmic: bool = True
    density: int | None = None

    @property
    def count(self) -> int:
        """Points of a scan of this axis alone."""
        length, usual = 1.0, _LINEAR
        if self.logarithmic:
            length, usual = math.log10(self.high / self.low), _PER_DECADE
        wanted = math.ceil((self.density or usual) * length) + 1
        return min(_MOST_ON_AXIS, max(5, wanted))

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds as coordinates."""
        if not self.logarithmic:
            return self.low, self.high
        return math.log(self.low), math.log(self.high)

    @property
    def step(self) -> float:
        """Step of differences."""
        low, high = self.ends
        return _STEP * (high - low) / (self.count - 1)

    @property
    def unit(self) -> float:
        """What coordinates are measured in: a factor of e, or the whole of a linear axis."""
        return 1.0 if self.logarithmic else self.high - self.low

    def parameter(self, coordinate: float) -> float:
        """Return the parameter, exactly a bound at a bound."""
        for end, bound in zip(self.ends, (self.low, self.high), strict=True):
            if coordinate == end:
                return float(bound)
        return math.exp(coordinate) if self.logarithmic else float(coordinate)

    def pace(self, parameter: float) -> float:
        """Return the derivative of the parameter with respect to its coordinate."""
        return parameter if self.logarithmic else 1.0

    def grid(self, count: int) -> Array:
        """Return coordinates of a scan."""
        return np.linspace(*self.ends, count)


@dataclass(frozen=True)
class Slopes:
    """A function and its gradient at m points.

    Attributes
    ----------
    value : array (m,)
    gradient, error : array (m, n)
        Derivatives with respect to the parameters themselves, and their estimated errors.
    """

    value: Array
    gradient: Array
    error: Array


class Objective(Protocol):
    """A function of n parameters."""

    def values(self, points: Array) -> tuple[Array, Array]:
        """Return values at points (m, n), NaN where there is none, and estimated errors."""

    def slopes(self, points: Array, *, rounding: bool = False) -> Slopes:
        """Return the gradient, too; `rounding` adds that of the evaluation to its error."""


@dataclass(frozen=True)
class LocalMinimum:
    """Where a descent ended.

    Attributes
    ----------
    point : array (n,)
        Parameters.
    value : float
    sides : tuple of str
        For each parameter "", or "lower" or "upper" at a bound.
    gradient, gradient_errors : array (n,)
        Derivatives with respect to the parameters, one-sided at bounds, and their errors.
    hessian : array (k, k)
        With respect to the coordinates of the k parameters inside of their bounds.
    eigenvalues : array (k,)
        Of the Hessian, ascending.
    eigenvalue_error : float
        A bound of their estimated errors.
    errors : array (n,)
        Estimated errors of the parameters; zero at a bound.
    """

    point: Array
    value: float
    sides: tuple[str, ...]
    gradient: Array
    gradient_errors: Array
    hessian: Array
    eigenvalues: Array
    eigenvalue_error: float
    errors: Array

    @property
    def is_certain(self) -> bool:
        """Whether signs of derivatives at bounds and of eigenvalues are beyond their errors."""
        on = np.array([bool(side) for side in self.sides])
        decided = np.abs(self.gradient[on]) > self.gradient_errors[on]
        return bool(decided.all() and (self.eigenvalues > self.eigenvalue_error).all())


@dataclass(frozen=True)
class Search:
    """What a search found.

    Attributes
    ----------
    minima : tuple of LocalMinimum
        The lowest first. One that is not certain is there only if it is the lowest.
    shape : tuple of int
        Points of the scan.
    evaluations : int
        Gradients after the scan.
    """

    minima: tuple[LocalMinimum, ...]
    shape: tuple[int, ...]
    evaluations: int


def search(objective: Objective, axes: Sequence[Axis]) -> Search:
    """Return the local minima of an objective in a box.

    Minima closer than one point of the scan are not told apart.

    Raises
    ------
    ConvergenceError
        If the objective has no value at any point of the scan, or on the way of every descent.

    Examples
    --------
    >>> def bowl(points):
    ...     x, y = points.T
    ...     return (x - 0.25) ** 2 + x * y + 2 * y**2, np.zeros(len(points))
    >>> axes = [Axis("x", -1, 1, logarithmic=False), Axis("y", -1, 1, logarithmic=False)]
    >>> best, = search(Differenced(bowl, axes), axes).minima
    >>> best.point.round(10), best.sides
    (array([ 0.28571429, -0.07142857]), ('', ''))
    """
    most = int(_MOST_POINTS ** (1 / len(axes)))
    alone = [axis.count for axis in axes]
    if math.prod(alone) > _MOST_POINTS:
        alone = [max(_LEAST_ON_AXIS, min(count, most)) for count in alone]
    lines = [axis.grid(count) for axis, count in zip(axes, alone, strict=True)]
    places = np.stack([x.ravel() for x in np.meshgrid(*lines, indexing="ij")], axis=1)
    descent = _Descent(objective, axes)
    reach = np.array([line[1] - line[0] for line in lines])
    values, errors = objective.values(descent.parameters(places))
    if np.isnan(values).all():
        raise ConvergenceError(
            f"there is no solution at any of the {len(places)} points of the scan; give other "
            "bounds",
            state=None,
        )
    result: list[LocalMinimum] = []
    failures: list[ConvergenceError] = []
    for index in _lowest(values.reshape(alone), errors.reshape(alone)):
        try:
            new = descent.minimum(places[index], reach)
        except ConvergenceError as failure:
            # It leads to where there is no solution, and no minimum.
            failures.append(failure)
            continue
        if not any(descent.is_same(new, old) for old in result):
            result.append(new)
    if not result:
        raise failures[0]
    return Search(tuple(_kept(result)), tuple(alone), descent.evaluations)


def _kept(result: Sequence[LocalMinimum]) -> list[LocalMinimum]:
    """Return the certain minima, the lowest first, and before them what is lower still."""
    ordered = sorted(result, key=lambda m: m.value)
    certain = [m for m in ordered if m.is_certain]
    if not certain:
        return ordered[:1]
    best = ordered[0]
    lower = best.value < certain[0].value - _ROUNDING * abs(certain[0].value)
    return [best, *certain] if lower else certain


def _lowest(values: Array, errors: Array) -> list[int]:
    """Return the lowest points of basins of a grid, flattened, the lowest first.

    Basins that are no deeper than errors count as part of the next one.
    """
    flat, where = values.ravel(), np.arange(values.size).reshape(values.shape)
    uncertain = np.minimum(errors, _SHALLOW * np.abs(values)).ravel()
    padded = np.pad(where, 1, constant_values=-1)
    around = np.lib.stride_tricks.sliding_window_view(padded, (3,) * values.ndim)
    neighbours = around.reshape(values.size, -1).tolist()
    basin: dict[int, int] = {}
    found = []

    def lowest_of(k: int) -> int:
        while basin[k] != k:
            k = basin[k]
        return k

    # Basins meet where the water that rises in them does.
    for k in map(int, np.argsort(flat, kind="stable")):
        if not np.isfinite(flat[k]):
            continue
        near = {lowest_of(j) for j in neighbours[k] if j in basin}
        first = min(near, key=lambda j: (flat[j], j), default=k)
        for j in near - {first}:
            if flat[k] - flat[j] > uncertain[k] + uncertain[j]:
                found.append(j)
            basin[j] = first
        basin[k] = first
    found += [k for k, lowest in basin.items() if k == lowest]
    return sorted(found, key=lambda k: (flat[k], k))[:_MOST_STARTS]


class _Descent:
    """Descends in coordinates; counts gradients."""

    def __init__(self, objective: Objective, axes: Sequence[Axis]) -> None:
        self.objective, self.axes = objective, axes
        self.low, self.high = np.array([axis.ends for axis in axes], dtype=float).T
        self.units = np.array([axis.unit for axis in axes])
        self.evaluations = 0
        self._known: tuple[bytes, Slopes] | None = None

    def parameters(self, places: Array) -> Array:
        """Return the parameters at rows of coordinates."""
        return np.array(
            [[axis.parameter(u) for axis, u in zip(self.axes, p, strict=True)] for p in places]
        )

    def at(self, places: Array, *, rounding: bool = False) -> Slopes:
        """Return the function with derivatives with respect to the coordinates."""
        points = self.parameters(places)
        key = points.tobytes()
        # Steps of a search begin where the one before ended.
        if self._known is not None and self._known[0] == key and not rounding:
            return self._known[1]
        self.evaluations += len(points)
        result = self.objective.slopes(points, rounding=rounding)
        paces = self._paces(points)
        found = Slopes(result.value, result.gradient * paces, result.error * paces)
        self._known = key, found
        return found

    def _paces(self, points: Array) -> Array:
        return np.array(
            [[axis.pace(x) for axis, x in zip(self.axes, p, strict=True)] for p in points]
        )

    def minimum(self, start: Array, reach: Array) -> LocalMinimum:
        """Return where the descent from a point of the scan ends; no step is beyond `reach`."""
        scale = abs(float(self.at(start[None]).value[0])) or 1.0
        place = start
        for _ in range(_MOST_CELLS):
            low = np.maximum(self.low, place - reach)
            high = np.minimum(self.high, place + reach)
            place = self._lowest_within(place, low, high, scale)
            left = ((place == low) & (low > self.low)) | ((place == high) & (high < self.high))
            if not left.any():
                break
        return self._described(self._polished(place))

    def _lowest_within(self, start: Array, low: Array, high: Array, scale: float) -> Array:
        from scipy.optimize import minimize

        # L-BFGS-B stops by the sizes of gradients: coordinates in units of their boxes, roughly.
        units = self.units

        def relative(x: Array) -> tuple[float, Array]:
            result = self.at((x * units)[None])
            return float(result.value[0]) / scale, result.gradient[0] * units / scale

        result = minimize(
            relative, start / units, jac=True, method="L-BFGS-B",
            bounds=list(zip(low / units, high / units, strict=True)),
            options={"ftol": 1e-13, "gtol": 1e-6, "maxiter": 60},
        ).x  # fmt: skip
        # Bounds are met exactly, whatever the units round.
        place = np.where(
            result <= low / units, low, np.where(result >= high / units, high, result * units)
        )
        return np.clip(place, low, high)

    def _free(self, place: Array) -> NDArray[np.bool_]:
        margin = _ON_BOUND * self.units
        result: NDArray[np.bool_] = (place > self.low + margin) & (place < self.high - margin)
        return result

    def _polished(self, place: Array) -> Array:
        """Return where the gradient vanishes next to a point, if that is a minimum."""
        free = self._free(place)
        if not free.any():
            return place
        hessian, error = self._hessian(place, free)
        if np.linalg.eigvalsh(hessian)[0] <= error:
            return place
        current, before = place, math.inf
        for _ in range(_MOST_NEWTON_STEPS):
            gradient = self.at(current[None]).gradient[0, free]
            moved = current.copy()
            moved[free] -= np.linalg.solve(hessian, gradient)
            step = float((np.abs(moved - current) / self.units).max())
            # Moves by rounding do not shrink; one that leads away is no way to this minimum.
            if step >= before / 2:
                break
            inside = ((self.low <= moved) & (moved <= self.high)).all()
            if not inside or (np.abs(moved - place) > _FARTHEST * self.units).any():
                return place
            current, before = moved, step
        return current

    def _hessian(self, place: Array, free: NDArray[np.bool_]) -> tuple[Array, float]:
        """Return the Hessian of the free coordinates and an error of its eigenvalues."""
        which = np.flatnonzero(free).tolist()
        stencils = [_Stencil.of(place[k], self.axes[k]) for k in which]
        places = np.concatenate(
            [_moved(place, k, s.offsets) for k, s in zip(which, stencils, strict=True)]
        )
        result = self.at(places)
        hessian, errors = np.empty((len(which),) * 2), np.empty((len(which),) * 2)
        begin = 0
        for i, s in enumerate(stencils):
            part = slice(begin, begin + len(s.offsets))
            columns = s.derivative(result.gradient[part][:, free], result.error[part][:, free])
            hessian[i], errors[i] = columns
            begin = part.stop
        asymmetry = np.abs(hessian - hessian.T) / 2
        return (hessian + hessian.T) / 2, float(np.linalg.norm(errors + asymmetry))

    def _described(self, place: Array) -> LocalMinimum:
        free = self._free(place)
        middle = (self.low + self.high) / 2
        sides = ["" if f else "lower" if u < m else "upper"
                 for f, u, m in zip(free, place, middle, strict=True)]  # fmt: skip
        place = np.where(free, place, np.where(place < middle, self.low, self.high))
        result = self.at(place[None], rounding=True)
        point = self.parameters(place[None])[0]
        hessian, error = np.empty((0, 0)), 0.0
        errors = np.zeros(len(place))
        if free.any():
            # Coordinates themselves are rounded.
            errors[free] = np.finfo(float).eps * np.maximum(1, np.abs(place[free]))
            hessian, error = self._hessian(place, free)
            uncertain = np.abs(result.gradient[0, free]) + result.error[0, free]
            try:
                errors[free] += np.abs(np.linalg.inv(hessian)) @ uncertain
            except np.linalg.LinAlgError:
                errors[free] = math.inf
        paces = self._paces(point[None])[0]
        return LocalMinimum(
            point=point,
            value=float(result.value[0]),
            sides=tuple(sides),
            gradient=result.gradient[0] / paces,
            gradient_errors=result.error[0] / paces,
            hessian=hessian,
            eigenvalues=np.asarray(np.linalg.eigvalsh(hessian), dtype=float),
            eigenvalue_error=error,
            errors=errors * paces,
        )

    def is_same(self, new: LocalMinimum, old: LocalMinimum) -> bool:
        """Whether two minima are one, up to their errors."""
        apart = np.abs(new.point - old.point)
        paces = self._paces(old.point[None])[0]
        return bool((apart <= _SAME * self.units * paces + new.errors + old.errors).all())


def _moved(place: Array, k: int, offsets: Array) -> Array:
    moved = np.tile(place, (len(offsets), 1))
    moved[:, k] += offsets
    return moved


@dataclass(frozen=True)
class _Stencil:
    """Differences with three steps, each half of the one before, extrapolated twice."""

    offsets: Array
    best: Array
    before: Array

    @classmethod
    def of(cls, place: float, axis: Axis) -> _Stencil:
        """Return the differences at a place, one-sided where a bound is close.

        A logarithm has no end: bounds may be passed there, by a little.
        """
        low, high = axis.ends
        h = axis.step
        if axis.logarithmic or (low + h <= place <= high - h):
            offsets = h * np.array([1, -1, 0.5, -0.5, 0.25, -0.25])
            differences = np.zeros((3, 6))
            for k in range(3):
                differences[k, 2 * k : 2 * k + 2] = np.array([1, -1]) * 2**k / (2 * h)
            powers = (4, 16)
        else:
            h = h if place < (low + high) / 2 else -h
            offsets = h * np.array([0, 1, 0.5, 0.25])
            differences = np.zeros((3, 4))
            for k in range(3):
                differences[k, [0, k + 1]] = np.array([-1, 1]) * 2**k / h
            powers = (2, 4)
        a, b = powers
        first, second = ((a * differences[k + 1] - differences[k]) / (a - 1) for k in (0, 1))
        return cls(offsets, (b * second - first) / (b - 1), second)

    def derivative(self, values: Array, errors: Array) -> tuple[Array, Array]:
        """Return derivatives of values at the offsets, first axis, and estimated errors."""
        best = self.best @ values
        return best, np.abs(best - self.before @ values) + np.abs(self.best) @ errors


class Differenced:
    """An objective of which only values are known; derivatives are extrapolated differences.

    Parameters
    ----------
    values : callable
        Returns values at points (m, n), NaN where there is none, and estimated errors.
    axes : sequence of Axis
    rough : callable, optional
        Returns the same, sooner and with larger errors: for the scan.
    """

    def __init__(self, values: Values, axes: Sequence[Axis], rough: Values | None = None) -> None:
        self._values, self._axes, self._rough = values, axes, rough or values

    def values(self, points: Array) -> tuple[Array, Array]:
        """Return values and their errors."""
        return self._rough(points)

    def slopes(self, points: Array, *, rounding: bool = False) -> Slopes:
        """Return values and differences; errors of the values count in any case.

        Raises
        ------
        ConvergenceError
            If there is no value at a point that is needed.
        """
        wanted, stencils = [points], []
        for point in points:
            for k, axis in enumerate(self._axes):
                x = point[k]
                place = math.log(x) if axis.logarithmic else x
                stencil = _Stencil.of(place, axis)
                moved = stencil.offsets
                # Exact at offset zero, unlike the exponential of a logarithm.
                offsets = x * np.expm1(moved) if axis.logarithmic else moved
                wanted.append(_moved(point, k, offsets))
                stencils.append(stencil)
        result, errors = self._values(np.concatenate(wanted))
        if np.isnan(result).any():
            raise ConvergenceError(
                "there is no solution next to a point of the descent; give other bounds",
                state=None,
            )
        begin = len(points)
        gradient, error = np.empty(points.shape), np.empty(points.shape)
        for i, stencil in enumerate(stencils):
            part = slice(begin, begin + len(stencil.offsets))
            place = divmod(i, len(self._axes))
            pace = self._axes[place[1]].pace(float(points[place]))
            slope, uncertain = stencil.derivative(result[part], errors[part])
            gradient[place], error[place] = slope / pace, uncertain / pace
            begin = part.stop
        return Slopes(result[: len(points)], gradient, error)
