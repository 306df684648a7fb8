r"""The ridge penalty and the step size that minimise the test error.

Minima are zeros of the exact derivative (:mod:`.sensitivities`), found in the logarithm of the
parameter: a scan brackets every change of its sign from minus to plus, Newton's method with the
exact second derivative finds the zero inside, and bisection-like steps take over if it leaves the
bracket. Where the error only falls towards an end of the range, that is what is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...digits import error_text
from ...errors import ParameterError
from ...numeric.arguments import moderate_number
from ...numeric.kernel_arrays import KernelArrays
from ...numeric.kernel_code import LoadedKernel
from ...numeric.rounding import COARSE, perturbed, spreads
from ...numeric.saddle_point_solver import refusal, solve_rows
from ...pages import Block
from ...result import Number, Result, quantity
from .arguments import checked_point
from .tangents import LABEL, Motion, acceleration, parameter_row, rate, step_rates, tangent_kernel

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures

Array = NDArray[np.float64]

RIDGE_BOUNDS = (1e-6, 1e6)
STEP_BOUNDS = (0.05, 20.0)
# Points of the scan for each factor of ten: closer minima are not told apart.
_PER_DECADE = {"ridge": 4, "step_size": 8}
_MOST_POINTS = 400
_VALUE, _FIRST, _SECOND = (
    "test_error",
    f"d_test_error_d_{LABEL}",
    f"d2_test_error_d_{LABEL}_d_{LABEL}",
)


@dataclass(frozen=True, repr=False)
class Optimum(Result):
    """Where the test error is smallest.

    Attributes
    ----------
    parameter : str
        "ridge" or "step_size".
    value : float or mpmath number
        The best value of the parameter, inside the bounds.
    test_error, derivative, second_derivative : float or mpmath number
        There; derivatives are with respect to the parameter itself.
    error : float
        Estimated error of `value`: that of the derivative over the second derivative; zero at a
        boundary, which is exact.
    kind : str
        "interior minimum", or "at the boundary" with what the test error does there.
    minima : tuple of float
        All local minima of the scan, boundaries included.
    bounds : tuple of float
    iterations : int
        Evaluations of the derivative after the scan.
    digits : int or None
        Digits asked for; None for floats.
    """

    _document = "optimum of the test error"
    _entry = "document"
    _where = ("parameter",)

    parameter: str
    value: Number = field(metadata=quantity("optimum", r"x_*"))
    test_error: Number = field(metadata=quantity("test error", r"\varepsilon_\mathrm{test}"))
    derivative: Number = field(metadata=quantity("derivative", r"d\varepsilon_\mathrm{test}/dx"))
    second_derivative: Number = field(
        metadata=quantity("second derivative", r"d^2\varepsilon_\mathrm{test}/dx^2")
    )
    error: Number
    kind: str
    minima: tuple[float, ...]
    bounds: tuple[float, float]
    iterations: int
    digits: int | None = None

    @property
    def is_interior(self) -> bool:
        """Whether the derivative vanishes at the optimum."""
        return self.kind == INTERIOR

    @property
    def rests_on(self) -> str:
        """What the result rests on, in words."""
        if self.digits is not None:
            return (
                f"{self.digits} digits asked for; estimated error of the optimum "
                f"{error_text(self.error)}; digits cut off, not rounded"
            )
        if self.kind.endswith(_FLAT):
            return "float; the exact derivative is nowhere larger than its estimated error"
        if not self.is_interior:
            return "float; the sign of the exact derivative, larger than its estimated error"
        return f"float, zero of the exact derivative with estimated error {self.error:.1e}"

    def page(self) -> Iterable[Block]:
        """Return the optimum, of which kind it is, and other minima."""
        yield f"optimal {self.parameter}  {self.text(self.value)}"
        yield f"test error  {self.text(self.test_error)}"
        yield self.kind
        if self.other_minima:
            yield f"other local minima  {', '.join(f'{x:.6g}' for x in self.other_minima)}"
        yield self.rests_on

    @property
    def other_minima(self) -> tuple[float, ...]:
        """Local minima that are not the lowest."""
        return tuple(x for x in self.minima if not math.isclose(x, self.value, rel_tol=1e-6))


@dataclass(frozen=True, repr=False)
class OptimalRidge(Optimum):
    """The ridge penalty with the smallest test error; see :class:`Optimum`."""

    @property
    def ridge(self) -> Any:
        """The optimal ridge penalty."""
        return self.value


@dataclass(frozen=True, repr=False)
class OptimalStepSize(Optimum):
    """The step size with the smallest test error; see :class:`Optimum`."""

    @property
    def step_size(self) -> Any:
        """The optimal step size."""
        return self.value


INTERIOR = "interior minimum"
_FLAT = "within its numerical error"


@dataclass(frozen=True)
class _Derivatives:
    """Test error with two derivatives, and the estimated error of the first, at several points."""

    value: Array
    first: Array
    second: Array
    error: Array

    def at(self, k: int) -> tuple[float, float, float, float]:
        """Return the four numbers at one point."""
        value, first, second, error = (
            float(x[k]) for x in (self.value, self.first, self.second, self.error)
        )
        return value, first, second, error


class _Evaluation(Protocol):
    """Test error and derivatives as a function of the parameter that is optimised."""

    def __call__(self, points: Sequence[float], *, rounding: bool = False) -> _Derivatives:
        """Return them at several points; `rounding` adds that of the evaluation to the error."""


def optimal_ridge(
    model: SpikedRandomFeatures,
    alpha: float,
    bounds: tuple[float, float] = RIDGE_BOUNDS,
    *,
    digits: int | None = None,
) -> OptimalRidge:
    """Minimise over the ridge penalty; see :meth:`.model.SpikedRandomFeatures.optimal_ridge`."""
    (alpha,) = checked_point(model, alpha=alpha)
    bounds = _checked_bounds(bounds, "ridge")
    kernel = tangent_kernel(model, Motion.RIDGE)
    given = {**model._parameter_values(), "alpha": alpha}
    _, tables = parameter_row(kernel, {**given, "ridge": 1.0}, {})
    arrays = KernelArrays(kernel, tables)

    def evaluate(points: Sequence[float], *, rounding: bool = False) -> _Derivatives:
        rows = [parameter_row(kernel, {**given, "ridge": x}, {})[0] for x in points]
        return _solved(kernel, arrays, rows, rounding)

    best = OptimalRidge(**_minimise(evaluate, "ridge", bounds))
    if digits is None or not best.is_interior:
        return best
    from .refine_tangents import precise_ridge

    return precise_ridge(model, alpha, best, digits)


def optimal_step_size(
    model: SpikedRandomFeatures,
    alpha: float,
    ridge: float,
    bounds: tuple[float, float] = STEP_BOUNDS,
) -> OptimalStepSize:
    """Minimise over the step; see :meth:`.model.SpikedRandomFeatures.optimal_step_size`."""
    alpha, ridge = checked_point(model, alpha=alpha, ridge=ridge)
    bounds = _checked_bounds(bounds, "step_size")
    if model.direct_parameters is not None:
        raise ParameterError(
            "a model that is given by its spike takes no step; give step_size and alpha0"
        )

    def evaluate(points: Sequence[float], *, rounding: bool = False) -> _Derivatives:
        found = [
            _along_step(replace(model, step_size=x), alpha, ridge, rounding).at(0) for x in points
        ]
        return _Derivatives(*(np.array(column) for column in zip(*found, strict=True)))

    return OptimalStepSize(**_minimise(evaluate, "step_size", bounds))


def _along_step(
    model: SpikedRandomFeatures, alpha: float, ridge: float, rounding: bool
) -> _Derivatives:
    """Return test error and two derivatives along the step size, at one point."""
    if model.spike.spike_strength == 0:
        raise ParameterError(
            f"the step of this model leaves no spike (step_size={model.step_size:g}): there is no "
            "step size to choose; take a student with E sigma' != 0 and finite alpha0"
        )
    kernel = tangent_kernel(model, Motion.STEP_SIZE)
    first, second = step_rates(model, "step_size")
    rates = {rate(name): value for name, value in first.items()}
    rates |= {acceleration(name): value for name, value in second.items()}
    point = {**model._parameter_values(), "alpha": alpha, "ridge": ridge}
    row, tables = parameter_row(kernel, point, rates)
    return _solved(kernel, KernelArrays(kernel, tables), [row], rounding)


def _solved(
    kernel: LoadedKernel, arrays: KernelArrays, rows: Sequence[Sequence[float]], rounding: bool
) -> _Derivatives:
    """Solve for rows of parameters; `rounding` as for :class:`_Evaluation`."""
    given = np.array(rows)
    found = solve_rows(kernel, arrays, given)
    if not found.converged.all():
        raise refusal(kernel, given, found)
    error = found.errors[_FIRST]
    if rounding:
        near = solve_rows(kernel, arrays, np.vstack([perturbed(r) for r in given]), rtol=COARSE)
        slopes = np.split(near.values[_FIRST], len(given))
        error = error + np.array([spreads({_FIRST: column})[_FIRST] for column in slopes])
    value, first, second = (found.values[name] for name in (_VALUE, _FIRST, _SECOND))
    return _Derivatives(value, first, second, error)


def _minimise(evaluate: _Evaluation, parameter: str, bounds: tuple[float, float]) -> dict[str, Any]:
    """Return the fields of the optimum: the best of all local minima of a scan."""
    low, high = bounds
    decades = math.log10(high / low)
    count = min(_MOST_POINTS, max(5, math.ceil(_PER_DECADE[parameter] * decades) + 1))
    points = [float(x) for x in np.geomspace(low, high, count)]
    points[0], points[-1] = low, high
    scan = evaluate(points)
    signs, decided = _decided(evaluate, points, scan)
    candidates: list[dict[str, Any]] = []
    iterations = 0
    for left, right in pairwise(decided):
        if signs[left] < 0 < signs[right]:
            found, used = _zero(evaluate, points[left], points[right])
            iterations += used
            candidates.append(found)
    common = {"parameter": parameter, "bounds": (low, high)}
    if not decided or signs[decided[0]] > 0:
        candidates.append(_boundary(scan, points, 0, bool(decided), parameter))
    if decided and signs[decided[-1]] < 0:
        candidates.append(_boundary(scan, points, count - 1, True, parameter))
    best = min(candidates, key=lambda found: float(found["test_error"]))
    minima = tuple(sorted(float(found["value"]) for found in candidates))
    return {**common, **best, "minima": minima, "iterations": iterations}


def _decided(
    evaluate: _Evaluation, points: Sequence[float], scan: _Derivatives
) -> tuple[Array, list[int]]:
    """Return the signs of the derivative and where they are known.

    Where the derivative is below its own error nothing is known about its sign. Rounding is
    looked at where it matters: at both sides of each change of the sign and at the ends.
    """
    looked_at: set[int] = set()
    while True:
        known = np.abs(scan.first) > scan.error
        signs = np.where(known, np.sign(scan.first), 0.0)
        decided = [k for k in range(len(points)) if signs[k]]
        matters = {
            k for pair in pairwise(decided) if signs[pair[0]] != signs[pair[1]] for k in pair
        }
        matters |= {*decided[:1], *decided[-1:]}
        new = sorted(matters - looked_at)
        if not new:
            return signs, decided
        scan.error[new] = evaluate([points[k] for k in new], rounding=True).error
        looked_at |= matters


def _checked_bounds(bounds: object, parameter: str) -> tuple[float, float]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ParameterError(
            f"bounds must be two values of {parameter}, such as (0.01, 10), got {bounds!r}"
        )
    low, high = (moderate_number("bounds", x) for x in bounds)
    if not low < high:
        raise ParameterError(f"bounds must be in ascending order, got {bounds!r}")
    return low, high


def _boundary(
    scan: _Derivatives, points: Sequence[float], k: int, falling: bool, parameter: str
) -> dict[str, Any]:
    value, first, second, _ = scan.at(k)
    side = "smaller" if k == 0 else "larger"
    what = (
        f"the test error falls towards {side} values of {parameter}"
        if falling
        else f"the test error does not depend on {parameter} {_FLAT}"
    )
    return {
        "value": points[k], "test_error": value, "derivative": first, "second_derivative": second,
        "error": 0.0, "kind": f"at the boundary {parameter} = {points[k]:g}: {what}",
    }  # fmt: skip


def _zero(evaluate: _Evaluation, left: float, right: float) -> tuple[dict[str, Any], int]:
    """Return the minimum between two points of falling and of rising error."""
    from scipy.optimize import root_scalar

    seen: dict[float, tuple[float, float, float, float]] = {}

    def look(t: float) -> tuple[float, float, float, float]:
        if t not in seen:
            seen[t] = evaluate([math.exp(t)]).at(0)
        return seen[t]

    def slope(t: float) -> float:
        return math.exp(t) * look(t)[1]

    def curvature(t: float) -> float:
        _, first, second, _ = look(t)
        return math.exp(t) * first + math.exp(2 * t) * second

    a, b = math.log(left), math.log(right)
    inside = [a + (b - a) * part for part in (0.25, 0.5, 0.75)]
    start = min(inside, key=lambda t: abs(slope(t)))

    def newton(t: float) -> tuple[float, float]:
        # Outside of the bracket the answer is of no use; a slope of zero there ends the search.
        return (slope(t), curvature(t)) if a <= t <= b else (0.0, 1.0)

    found = root_scalar(newton, fprime=True, x0=start, method="newton", xtol=4e-16, maxiter=30)
    t = float(found.root)
    if not (a <= t <= b and _settled(look(t), t)):
        t = float(root_scalar(slope, bracket=(a, b), method="brentq", xtol=4e-16).root)
    value, first, second, error = evaluate([math.exp(t)], rounding=True).at(0)
    uncertain = (abs(first) + error) / abs(second) if second else math.inf
    return {
        "value": math.exp(t), "test_error": value, "derivative": first,
        "second_derivative": second, "error": uncertain, "kind": INTERIOR,
    }, len(seen)  # fmt: skip


def _settled(found: tuple[float, float, float, float], t: float) -> bool:
    """Whether a step of Newton's method moves less than rounding or the derivative's error."""
    _, first, second, error = found
    return second > 0 and abs(first) <= 10 * error + 1e-13 * math.exp(t) * second
