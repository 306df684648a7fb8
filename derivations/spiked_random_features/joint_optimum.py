r"""Ridge penalty and step size that jointly minimise the test error.

A scan over both finds every local minimum of a grid. From each, SciPy's L-BFGS-B goes down with the
exact gradient, and a root finder with the exact Hessian ends where the gradient vanishes, both in
the logarithms of ridge penalty and step size. Derivatives are those of :mod:`.tangents`: along a
direction (ρ, τ) of (λ, s); mixed second derivatives by polarisation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numeric.arguments import positive_array
from ...numeric.kernel_arrays import KernelArrays
from ...pages import Block, Page, Table
from .arguments import checked_point
from .optimal import RIDGE_BOUNDS, STEP_BOUNDS, _checked_bounds, _solved
from .tangents import (
    SPIKE,
    Motion,
    acceleration,
    parameter_row,
    rate,
    step_rates,
    tangent_kernel,
)

if TYPE_CHECKING:
    import xarray as xr

    from .model import SpikedRandomFeatures

Array = NDArray[np.float64]

# Points of the scan for each factor of ten: closer minima are not told apart.
_PER_DECADE = {"ridge": 4, "step_size": 8}
_MOST_POINTS = 200
_MOST_STARTS = 12
# In logarithms: minima this close are one, and a point this close to a bound is on it.
_SAME, _ON_BOUND = 1e-5, 1e-9
_NAMES = ("ridge", "step_size")


@dataclass(frozen=True)
class LocalMinimum:
    """One local minimum of the test error.

    Attributes
    ----------
    ridge, step_size, test_error : float
    sides : tuple of str
        For ridge and step size: "" inside the bounds, "lower" or "upper" at a bound.
    gradient : tuple of float
        Derivatives of the test error with respect to log(ridge) and log(step_size).
    errors : tuple of float
        Estimated errors of ridge and step size; zero at a bound.
    """

    ridge: float
    step_size: float
    test_error: float
    sides: tuple[str, str]
    gradient: tuple[float, float]
    errors: tuple[float, float]

    @property
    def is_interior(self) -> bool:
        """Whether both derivatives vanish."""
        return self.sides == ("", "")

    @property
    def kind(self) -> str:
        """Where it is, in words."""
        at = [f"{name} at its {side} bound" for name, side in zip(_NAMES, self.sides, strict=True)
              if side]  # fmt: skip
        return f"at the boundary: {', '.join(at)}" if at else "interior minimum"

    def __str__(self) -> str:
        return (
            f"ridge {self.ridge:.8g}, step size {self.step_size:.8g}: test error "
            f"{self.test_error:.10g}, {self.kind}"
        )


@dataclass(frozen=True, repr=False)
class OptimalHyperparameters(Page):
    """The joint optimum at one sample complexity.

    Attributes
    ----------
    alpha : float
    minima : tuple of LocalMinimum
        All that were found, the lowest first.
    ridge_bounds, step_bounds : (float, float)
    """

    alpha: float
    minima: tuple[LocalMinimum, ...]
    ridge_bounds: tuple[float, float]
    step_bounds: tuple[float, float]

    @property
    def best(self) -> LocalMinimum:
        """The lowest minimum."""
        return self.minima[0]

    @property
    def ridge(self) -> float:
        """The optimal ridge penalty."""
        return self.best.ridge

    @property
    def step_size(self) -> float:
        """The optimal step size per neuron."""
        return self.best.step_size

    @property
    def test_error(self) -> float:
        """The test error there."""
        return self.best.test_error

    @property
    def is_interior(self) -> bool:
        """Whether both derivatives vanish at the optimum."""
        return self.best.is_interior

    @property
    def rests_on(self) -> str:
        """What the result rests on, in words."""
        return (
            f"float; exact derivatives from {len(self.minima)} local "
            f"minim{'um' if len(self.minima) == 1 else 'a'} of a scan, estimated errors "
            f"{self.best.errors[0]:.0e} of the ridge penalty and {self.best.errors[1]:.0e} of the "
            "step size"
        )

    def page(self) -> Iterable[Block]:
        """Return the optimum, of which kind it is, and other minima."""
        found = {
            "optimal ridge": self.ridge,
            "optimal step_size": self.step_size,
            "test error": self.test_error,
        }
        yield Table([(name, f"{value:.12g}") for name, value in found.items()])
        yield self.best.kind
        yield from (f"other local minimum  {other}" for other in self.minima[1:])
        yield self.rests_on

    def __repr__(self) -> str:
        return (
            f"OptimalHyperparameters(alpha={self.alpha:g}, ridge={self.ridge:.10g}, "
            f"step_size={self.step_size:.10g}, test_error={self.test_error:.10g}, "
            f"{self.best.kind!r})"
        )


# On terminals and in notebooks, for what takes longer than a second.
_BAR: dict[str, Any] = {"delay": 1, "leave": False, "disable": None}


def optimal_hyperparameters(
    model: SpikedRandomFeatures,
    alpha: object,
    ridge_bounds: tuple[float, float],
    step_bounds: tuple[float, float],
) -> OptimalHyperparameters:
    """Minimise over both; see :meth:`.differentiation.Differentiation.optimal_hyperparameters`."""
    (found,) = joint_optima(model, [*checked_point(model, alpha=alpha)], ridge_bounds, step_bounds)
    return found


def optimal_curve(
    model: SpikedRandomFeatures,
    alpha: object,
    ridge_bounds: tuple[float, float],
    step_bounds: tuple[float, float],
) -> xr.Dataset:
    """Return optima over alpha; see :meth:`.differentiation.Differentiation.optimal_curve`."""
    import xarray as xr

    from .results import model_attributes

    alphas = positive_array("alpha", alpha)
    for value in alphas.tolist():
        checked_point(model, alpha=value)
    found = joint_optima(model, alphas.tolist(), ridge_bounds, step_bounds)
    columns = {
        "ridge": [x.ridge for x in found],
        "step_size": [x.step_size for x in found],
        "test_error": [x.test_error for x in found],
        "gradient": [math.hypot(*x.best.gradient) for x in found],
        "ridge_is_interior": [not x.best.sides[0] for x in found],
        "step_size_is_interior": [not x.best.sides[1] for x in found],
        "minima": [len(x.minima) for x in found],
    }
    # The step and the spike of the model are not those of the optimum.
    moved = ("ridge", *SPIKE)
    attributes = {k: v for k, v in model_attributes(model, 0.0).items() if k not in moved}
    return xr.Dataset(
        {
            name: ("alpha", np.asarray(values, dtype=np.int32 if name == "minima" else None))
            for name, values in columns.items()
        },
        coords={"alpha": alphas},
        attrs={**attributes, "kind": "optimal ridge penalty and step size"},
    )


def joint_optima(
    model: SpikedRandomFeatures,
    alphas: Sequence[float],
    ridge_bounds: tuple[float, float] = RIDGE_BOUNDS,
    step_bounds: tuple[float, float] = STEP_BOUNDS,
) -> list[OptimalHyperparameters]:
    """Return the joint optimum at each sample complexity; one scan serves all of them."""
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    if model.direct_parameters is not None:
        raise ParameterError(
            "a model that is given by its spike takes no step; give step_size and alpha0"
        )
    ridge_bounds = _checked_bounds(ridge_bounds, "ridge")
    step_bounds = _checked_bounds(step_bounds, "step_size")
    ridges, steps = _grid(ridge_bounds, "ridge"), _grid(step_bounds, "step_size")
    values = _scan(model, alphas, ridges, tqdm(steps, "scan", unit="step", **_BAR))
    found = []
    for k, alpha in enumerate(tqdm(alphas, "descent", unit="alpha", **_BAR)):
        search = _Search(model, alpha, (ridge_bounds, step_bounds))
        minima: list[LocalMinimum] = []
        for i, j in _lowest(values[:, k, :]):
            new = search.descend(ridges[j], steps[i])
            if not any(_is_same(new, old) for old in minima):
                minima.append(new)
        minima.sort(key=lambda m: m.test_error)
        found.append(OptimalHyperparameters(alpha, tuple(minima), ridge_bounds, step_bounds))
    return found


def _grid(bounds: tuple[float, float], name: str) -> list[float]:
    low, high = bounds
    count = math.ceil(_PER_DECADE[name] * math.log10(high / low)) + 1
    points = [float(x) for x in np.geomspace(low, high, min(_MOST_POINTS, max(5, count)))]
    points[0], points[-1] = low, high
    return points


def _scan(
    model: SpikedRandomFeatures,
    alphas: Sequence[float],
    ridges: Sequence[float],
    steps: Iterable[float],
) -> Array:
    """Return the test error, shape (steps, alphas, ridges)."""
    grid = np.meshgrid(alphas, ridges, indexing="ij")
    rows = []
    for step in steps:
        at = replace(model, step_size=step)
        _check_spike(at)
        values = at.solve_many(*(g.ravel() for g in grid)).values["test_error"]
        rows.append(values.reshape(grid[0].shape))
    return np.array(rows)


def _check_spike(model: SpikedRandomFeatures) -> None:
    if model.spike.spike_strength == 0:
        raise ParameterError(
            f"the step of this model leaves no spike (step_size={model.step_size:g}): there is no "
            "step size to choose; take a student with E sigma' != 0 and finite alpha0"
        )


def _lowest(values: Array) -> list[tuple[int, int]]:
    """Return the grid points that no neighbour is below, the lowest first."""
    padded = np.pad(values, 1, constant_values=np.inf)
    rows, columns = values.shape
    around = np.min(
        [
            padded[1 + a : 1 + a + rows, 1 + b : 1 + b + columns]
            for a in (-1, 0, 1)
            for b in (-1, 0, 1)
            if (a, b) != (0, 0)
        ],
        axis=0,
    )
    places = np.argwhere(values <= around)
    order = np.argsort(values[tuple(places.T)], kind="stable")[:_MOST_STARTS]
    return [(int(i), int(j)) for i, j in places[order]]


def _is_same(new: LocalMinimum, old: LocalMinimum) -> bool:
    return all(
        math.isclose(math.log(getattr(new, name)), math.log(getattr(old, name)), rel_tol=0,
                     abs_tol=_SAME + sum(m.errors[k] / getattr(m, name) for m in (new, old)))
        for k, name in enumerate(_NAMES)
    )  # fmt: skip


class _Search:
    """Descent in x = (log λ, log s) at one sample complexity."""

    def __init__(
        self,
        model: SpikedRandomFeatures,
        alpha: float,
        bounds: tuple[tuple[float, float], tuple[float, float]],
    ) -> None:
        self.model, self.alpha, self.bounds = model, alpha, bounds
        self.box = [(math.log(low), math.log(high)) for low, high in bounds]

    def at(self, x: Array, *, rounding: bool = False) -> tuple[float, Array, Array, Array]:
        """Return test error, gradient and Hessian in x, and estimated errors of the gradient."""
        ridge, step = self.point(x)
        model = replace(self.model, step_size=step)
        kernel = tangent_kernel(model, Motion.JOINT)
        first, second = step_rates(model, "step_size")
        point = {**model._parameter_values(), "alpha": self.alpha, "ridge": ridge}
        rates = {rate(name): step * value for name, value in first.items()}
        rates |= {acceleration(name): step**2 * value for name, value in second.items()}
        # Tables depend on how the spike moves; three directions that share this share them.
        rows = [
            parameter_row(kernel, point, {**rates, rate("ridge"): a * ridge})[0] for a in (-1, 0, 1)
        ]
        _, tables = parameter_row(kernel, point, rates)
        found = _solved(kernel, KernelArrays(kernel, tables), rows, rounding)
        (back, still, forth), (down, across, up) = found.first, found.second
        gradient = np.array([(forth - back) / 2, still])
        along, mixed = (up + down) / 2 - across, (up - down) / 4
        # x is the logarithm: d²E/dx² = λ² E'' + λ E'.
        hessian = np.array([[along + gradient[0], mixed], [mixed, across + gradient[1]]])
        errors = np.array([(found.error[0] + found.error[2]) / 2, found.error[1]])
        return float(found.value[1]), gradient, hessian, errors

    def point(self, x: Array) -> tuple[float, float]:
        """Return λ and s, exactly the bounds at the bounds."""
        found = []
        for t, (low, high), ends in zip(x, self.box, self.bounds, strict=True):
            value = math.exp(min(max(t, low), high))
            value = ends[0] if t <= low else ends[1] if t >= high else value
            found.append(value)
        return found[0], found[1]

    def descend(self, ridge: float, step: float) -> LocalMinimum:
        """Return the minimum that a point of the grid leads to."""
        from scipy.optimize import minimize, root

        start = np.log([ridge, step])
        scale = self.at(start)[0]

        def relative(x: Array) -> tuple[float, Array]:
            value, gradient, _, _ = self.at(x)
            return value / scale, gradient / scale

        x = minimize(
            relative, start, jac=True, method="L-BFGS-B", bounds=self.box,
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 60},
        ).x  # fmt: skip
        free = self._free(x)
        if free.any():

            def slope(part: Array) -> tuple[Array, Array]:
                moved = x.copy()
                moved[free] = part
                _, gradient, hessian, _ = self.at(moved)
                return gradient[free] / scale, hessian[np.ix_(free, free)] / scale

            polished = x.copy()
            polished[free] = root(slope, x[free], jac=True, method="hybr", tol=1e-13).x
            inside = all(
                low <= t <= high for t, (low, high) in zip(polished, self.box, strict=True)
            )
            # A root finder may leave for a saddle point; then what was found stays.
            if inside and np.abs(polished - x).max() < 0.1:
                x = polished
        return self._minimum(x)

    def _free(self, x: Array) -> NDArray[np.bool_]:
        return np.array(
            [low + _ON_BOUND < t < high - _ON_BOUND for t, (low, high) in zip(x, self.box,
                                                                            strict=True)]
        )  # fmt: skip

    def _minimum(self, x: Array) -> LocalMinimum:
        free = self._free(x)
        value, gradient, hessian, noise = self.at(x, rounding=True)
        ridge, step = self.point(x)
        errors = np.zeros(2)
        if free.any():
            inner = hessian[np.ix_(free, free)]
            uncertain = np.abs(gradient[free]) + noise[free]
            try:
                errors[free] = np.abs(np.linalg.inv(inner)) @ uncertain
            except np.linalg.LinAlgError:
                errors[free] = math.inf
        sides = [
            "" if free[k] else "lower" if x[k] <= sum(self.box[k]) / 2 else "upper"
            for k in range(2)
        ]
        return LocalMinimum(
            ridge=ridge,
            step_size=step,
            test_error=value,
            sides=(sides[0], sides[1]),
            gradient=(float(gradient[0]), float(gradient[1])),
            errors=(float(errors[0] * ridge), float(errors[1] * step)),
        )
