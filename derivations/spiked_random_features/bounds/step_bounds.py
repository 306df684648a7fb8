r"""Bounds over the size of the step: what tuning it can reach, and where learning is perfect.

Tuning the step walks along a curve of spikes (in the section on the step path), and
:math:`\min_s L \le \min_s \mathrm{test} \le \min_s U`. With the population gradient (α_0 = ∞) one
has c = 1, γ = ±1 and :math:`r = s h_1|h^*_1|`, so that the curve is that of all r (Cui et al.,
arXiv 2402.04980, equation (28)). Because :math:`\partial_r\mu_0 = \kappa\mu_1`, wherever U is
stationary then its residual is orthogonal to :math:`\kappa\mu_1` and L = E_∞ = U (derived here).
At a finite α_0 the bulk variance grows with the step, and there is no such coincidence.

**The spikes that one step of any size makes: r and c as functions of each other.** At given α_0 and
noise all steps share the direction of the spike, hence γ, and r grows in proportion to the
per-neuron step s (:mod:`.spike_mapping`), so that tuning it walks along a curve c(r); with the
population gradient (α_0 = ∞) c = 1.

**Spikes at which a network learns its target: :math:`\mu_0 \propto \sigma_*`, so that U = 0.** With
the population gradient (c = 1, γ = ±1) the upper bound of the test error vanishes where the
smoothed student is the target: erf and erf at :math:`r = \sqrt 3`, sin and sin at r = 1 (Cui et
al., arXiv 2402.04980, section on realisable functions).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ....errors import AssumptionError, ParameterError
from ....numeric.arguments import real_number, whole_number
from ....numeric.cache import FileCache
from ....pages import Block, Indented
from ....result import Result, quantity
from ....runtime.generated import defined
from ....symbolic.expressions.activations import activation
from ....symbolic.gaussian.expectation import GaussianExpectation, expect
from ....symbolic.hermite.coefficients import hermite_coefficient
from ....symbolic.leaps.leap_index import information_exponent
from ....symbolic.printing.compiled import Formula
from ...curves import Curve
from ...derived import derived
from ...first_gradient import spike_mapping as mapping
from .. import physics as fe
from ..arguments import checked_arguments
from ..derive import STEP_ARGUMENTS, scalar_functions
from .bounds import activation_bounds

if TYPE_CHECKING:
    import xarray as xr

    from ....symbolic.expressions.activations import Activation
    from ...kernels.kernel import Kernel

_Item = TypeVar("_Item")

_SMALLEST, _LARGEST = 0.02, 10.0
# At a zero of U rounding leaves some 1e-32, the square of an epsilon.
_PERFECT = 1e-24
_FEWEST_POINTS = 8
_BLOCK = 25
_BOUNDS = ("lower", "limit", "upper")
_CHANGES = ("upper_slope", "lower_slope", "upper_widening", "lower_widening")


@dataclass(frozen=True)
class StationaryPoint:
    """A spike strength at which a bound is stationary.

    Attributes
    ----------
    step_size : float or None
        Per-neuron step s that makes this spike; None if no step does.
    bulk_variance : float
        c after this step.
    lower, limit, upper : float
        L, E_∞ and U there.
    kind : {"minimum", "maximum", "boundary", "flat"}
        "boundary": the end of the range towards which the bound falls; "flat": the bound does not
        depend on r within its error.
    error : float
        Estimated error of the bound that is stationary.
    """

    spike_strength: float
    step_size: float | None
    bulk_variance: float
    lower: float
    limit: float
    upper: float
    kind: str
    error: float

    @property
    def perfect(self) -> bool:
        """Whether U vanishes up to rounding: the target is learnt with n = O(d) samples."""
        return self.upper < _PERFECT


@dataclass(frozen=True, repr=False)
class StepBounds(Result):
    """Bounds of the test error over the step.

    Attributes
    ----------
    alpha0, noise_variance : float
        Of the step.
    alignment : float
        γ of every step.
    upper_points, lower_points : tuple of StationaryPoint
        Stationary points of U and of L in the range, and ends towards which they fall.
    linear : float
        Error of the best linear predictor, for comparison.
    smallest_lower, smallest_upper : float
        The smallest L and U of these points.
    curve : Curve
        ``lower``, ``limit``, ``upper``, their estimated errors and ``bulk_variance`` over
        ``spike_strength``, and the coordinate ``step_size``, where steps make spikes.
    """

    _document = "bounds over the step"
    _where = ("student", "teacher")

    student: str
    teacher: str
    alpha0: float
    noise_variance: float
    alignment: float = field(metadata=quantity("alignment", r"\gamma"))
    upper_points: tuple[StationaryPoint, ...]
    lower_points: tuple[StationaryPoint, ...]
    linear: float = field(metadata=quantity("best linear predictor", r"\|P_{>1} f_*\|^2"))
    smallest_lower: float = field(metadata=quantity("smallest lower bound", r"\min L"))
    smallest_upper: float = field(metadata=quantity("smallest upper bound", r"\min U"))
    curve: Curve = field(compare=False)

    @property
    def best_upper(self) -> StationaryPoint:
        """Where U is smallest in the range."""
        return min(self.upper_points, key=lambda point: point.upper)

    @property
    def best_lower(self) -> StationaryPoint:
        """Where L is smallest in the range."""
        return min((*self.lower_points, *self.upper_points), key=lambda point: point.lower)

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        worst = max(p.error for p in (*self.upper_points, *self.lower_points))
        return f"float, zeros of exact derivatives; bounds with error estimates up to {worst:.1e}"

    def _rows(self) -> list[tuple[str, str]]:
        rows = []
        for name, points in (("U", self.upper_points), ("L", self.lower_points)):
            for p in points:
                step = "" if p.step_size is None else f" (s = {p.step_size:.6g})"
                extra = ", perfect learning" if p.perfect else ""
                rows.append((
                    f"{name}: {p.kind} at r = {p.spike_strength:.9g}{step}{extra}",
                    f"L = {p.lower:.9g}, E_∞ = {p.limit:.9g}, U = {p.upper:.9g}",
                ))  # fmt: skip
        return rows

    def page(self) -> Iterable[Block]:
        """Return the best bounds, and where both are stationary."""
        yield (
            f"min L = {self.smallest_lower:.9g} <= min over steps of the test error <= "
            f"min U = {self.smallest_upper:.9g}; best linear predictor {self.linear:.9g}"
        )
        for name, value in self._rows():
            yield name
            yield Indented([Indented([value])])
        yield self.rests_on

    def to_dataset(self) -> xr.Dataset:
        """Return the bounds over the strength of the spike, with the other numbers."""
        numbers = super().to_dataset()
        return self.curve.to_dataset().assign(numbers.data_vars).assign_attrs(numbers.attrs)

    def plot(self, *, ax: Any = None, **style: Any) -> Any:
        """Draw the bounds over the strength of the spike; see :meth:`.curves.Curve.plot`."""
        return self.curve.plot(ax=ax, **style)


def bounds_over_step(
    student: str,
    teacher: str,
    *,
    alpha0: float = math.inf,
    noise_variance: float = 0.0,
    beta: float = 1.0,
    strengths: tuple[float, float] | None = None,
    points: int = 200,
    cache_folder: str | os.PathLike[str] | None = None,
) -> StepBounds:
    """Return the bounds over the size of the step.

    Parameters
    ----------
    student, teacher : str
        Activations; the student continuous.
    alpha0 : float
        Sample complexity of the step; the default is the population gradient.
    noise_variance : float
        Of the labels; enters by the step, at a finite α_0.
    beta : float
        Aspect ratio p/d, which enters E_∞ only.
    strengths : (float, float), optional
        Range of r, which is proportional to the step; default 0.02 to 10, and for a student that is
        not odd also negative ones, from steps uphill.
    points : int
        Of the curve, at least 8; stationary points closer than two of them are not told apart.
    cache_folder : path, optional

    Returns
    -------
    StepBounds

    Raises
    ------
    ParameterError
        If an argument is of the wrong kind or outside its range.
    AssumptionError
        If the student jumps, so that no step can be taken; or no step makes a spike.

    Notes
    -----
    U bounds the test error at the best ridge penalty, L at every one.

    Examples
    --------
    >>> found = bounds_over_step("sin", "tanh", points=60)
    >>> print(f"{found.best_upper.upper:.10f} at r = {found.best_upper.spike_strength:.6f}")
    0.0030045910 at r = 0.808589
    """
    given = checked_arguments(
        student=student, teacher=teacher, step_size=1.0, alpha0=alpha0, beta=beta,
        noise_variance=noise_variance, allow_non_odd=True, leading_order="published", width=None,
        cache_folder=cache_folder,
    )  # fmt: skip
    points = whole_number("points", points, _FEWEST_POINTS)
    student, teacher = given["student"], given["teacher"]
    step = {name: given[name] for name in ("alpha0", "noise_variance")}
    cache = FileCache(cache_folder)
    path = step_path(student, teacher, **step, cache=cache)
    search = _Search(
        activation_bounds(
            student, teacher, unspiked=False, aligned=path.orthogonal_alignment == 0, slopes=True,
            cache=cache,
        ),
        path,
        given["beta"],
    )  # fmt: skip
    grids = _grids(strengths, path.odd_student, points)
    curves = [search.curve(grid) for grid in grids]
    points_of = {
        name: tuple(p for c in curves for p in search.stationary(name, c))
        for name in ("upper", "lower")
    }
    return StepBounds(
        student=student,
        teacher=teacher,
        **step,
        alignment=path.alignment,
        upper_points=points_of["upper"],
        lower_points=points_of["lower"],
        linear=path.linear,
        smallest_lower=min(p.lower for known in points_of.values() for p in known),
        smallest_upper=min(p.upper for p in points_of["upper"]),
        curve=_published(curves, student, teacher),
    )


def _published(curves: list[xr.Dataset], student: str, teacher: str) -> Curve:
    import xarray as xr

    names = (*_BOUNDS, *(f"{name}_error_estimate" for name in _BOUNDS), "bulk_variance")
    whole = xr.concat(curves, "spike_strength", combine_attrs="override")
    about = {"shown": " ".join(_BOUNDS), "drawn": " ".join(_BOUNDS)}
    return Curve(whole[[*names]].assign_attrs(**about, student=student, teacher=teacher))


def _grids(
    strengths: tuple[float, float] | None, odd: bool, points: int
) -> list[np.ndarray[Any, Any]]:
    if strengths is None:
        positive = np.geomspace(_SMALLEST, _LARGEST, points if odd else points // 2)
        return [positive] if odd else [-positive[::-1], positive]
    if not isinstance(strengths, tuple | list) or len(strengths) != 2:
        raise ParameterError(
            f"strengths must be two spike strengths, such as (0.1, 5), got {strengths!r}"
        )
    low, high = (real_number("strengths", x) for x in strengths)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ParameterError(
            f"strengths must be finite and in ascending order, such as (0.1, 5), got {strengths!r}"
        )
    if low <= 0 <= high:
        raise ParameterError(
            f"strengths must not include 0, where the bounds jump, got {strengths!r}; use "
            "(0.02, 5), and (-5, -0.02) for the other sign"
        )
    if max(abs(low), abs(high)) > 100 or min(abs(low), abs(high)) < 1e-3:
        raise ParameterError(f"strengths must be of size 0.001 to 100, got {strengths!r}")
    return [np.linspace(low, high, points)]


def _shown(items: Sequence[_Item], what: str) -> Iterable[_Item]:
    """Show a bar on terminals and in notebooks if several items take longer than a second."""
    if len(items) < 2:
        return items
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    bar: Iterable[_Item] = tqdm(items, what, delay=1, leave=False, disable=None)
    return bar


@dataclass(frozen=True)
class _Search:
    """Bounds along a path, and the points where one of them is stationary."""

    kernel: Kernel
    path: StepPath
    beta: float

    def curve(self, strengths: np.ndarray[Any, Any]) -> xr.Dataset:
        """Return the bounds and their derivatives by r along the path, with estimated errors."""
        import xarray as xr

        variances, widening = self.path.bulk_variance(strengths)
        # Few points at a time: each needs tables of its own, and compiling takes longer than all.
        blocks = [slice(k, k + _BLOCK) for k in range(0, len(strengths), _BLOCK)]
        parts = [
            self.kernel.curve(
                product=False, spike_strength=strengths[part], bulk_variance=variances[part],
                alignment=self.path.alignment, beta=self.beta,
                orthogonal_alignment=self.path.orthogonal_alignment,
                outputs=(*_BOUNDS, *_CHANGES), progress=False,
            ).to_dataset()
            for part in _shown(blocks, "bounds")
        ]  # fmt: skip
        # The search asks for single points, for which joining takes longer than solving.
        found = parts[0] if len(parts) == 1 else xr.concat(parts, "point", combine_attrs="override")
        columns: dict[str, Any] = {"bulk_variance": variances}
        for name in _BOUNDS:
            columns |= {n: found[n].to_numpy() for n in (name, f"{name}_error_estimate")}
        for name in ("upper", "lower"):
            slope, wide = f"{name}_slope", f"{name}_widening"
            columns[slope] = found[slope].to_numpy() + widening * found[wide].to_numpy()
            columns[f"{slope}_error_estimate"] = (
                found[f"{slope}_error_estimate"].to_numpy()
                + np.abs(widening) * found[f"{wide}_error_estimate"].to_numpy()
            )
        coordinates: dict[str, Any] = {"spike_strength": strengths}
        if self.path.unit:
            coordinates["step_size"] = ("spike_strength", strengths / self.path.unit)
        return xr.Dataset(
            {name: ("spike_strength", values) for name, values in columns.items()},
            coordinates,
            found.attrs,
        )

    def stationary(self, name: str, curve: xr.Dataset) -> list[StationaryPoint]:
        """Return the stationary points of a bound, and ends towards which it falls."""
        from scipy.optimize import brentq

        def slope(strength: float) -> float:
            return float(self.curve(np.array([strength]))[f"{name}_slope"][0])

        grid, slopes = curve["spike_strength"].to_numpy(), curve[f"{name}_slope"].to_numpy()
        # A slope below its own error has no sign.
        known = np.abs(slopes) > curve[f"{name}_slope_error_estimate"].to_numpy()
        decided = np.flatnonzero(known)
        if not len(decided):
            return [self._point(float(grid[0]), "flat", name)]
        found = []
        if slopes[decided[0]] > 0:
            found.append(self._point(float(grid[0]), "boundary", name))
        changes = [(i, j) for i, j in pairwise(decided) if slopes[i] * slopes[j] < 0]
        for left, right in _shown(changes, f"stationary points, {name} bound"):
            strength = brentq(slope, float(grid[left]), float(grid[right]), xtol=1e-14)
            kind = "minimum" if slopes[left] < 0 else "maximum"
            found.append(self._point(float(strength), kind, name))
        if slopes[decided[-1]] < 0:
            found.append(self._point(float(grid[-1]), "boundary", name))
        return found

    def _point(self, strength: float, kind: str, name: str) -> StationaryPoint:
        here = self.curve(np.array([strength])).isel(spike_strength=0)
        return StationaryPoint(
            spike_strength=strength,
            step_size=self.path.step_size(strength),
            bulk_variance=float(here["bulk_variance"]),
            **{bound: float(here[bound]) for bound in _BOUNDS},
            kind=kind,
            error=float(here[f"{name}_error_estimate"]),
        )


# ------------------------------------------------------------------ step path

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StepPath:
    """Spikes over the step at one α_0 and noise.

    Attributes
    ----------
    unit : float
        r of the step s = 1; zero if no step makes a spike.
    alignment, orthogonal_alignment : float
        γ and ρ of every step.
    linear : float
        Error of the best linear predictor of the target.
    """

    unit: float
    alignment: float
    orthogonal_alignment: float
    odd_student: bool
    linear: float
    _function: Any

    def step_size(self, strength: float) -> float | None:
        """Return the step that makes a spike of this strength; None if no step does."""
        return strength / self.unit if self.unit else None

    def bulk_variance(self, strength: Array) -> tuple[Array, Array]:
        """Return c and its derivative with respect to r."""
        if not self.unit or self._function is None:
            return np.ones_like(strength), np.zeros_like(strength)
        found = [self._function(float(r) / self.unit) for r in strength]
        return np.array([f[0] for f in found]), np.array([f[1] / self.unit for f in found])


def step_path(
    student: str, teacher: str, *, alpha0: float, noise_variance: float, cache: FileCache
) -> StepPath:
    """Return the path of a pair of activations in canonical names."""
    document = _derived(cache, student, teacher)
    if document["error"]:
        raise AssumptionError(document["error"])
    path = defined(document["source"]).path
    population = alpha0 == math.inf
    vanishes = population and document["leap_index"] > 1
    unit, _, _, gamma, rho = path(1.0, alpha0, noise_variance) if not vanishes else (0.0,) * 5
    if population:
        # Only the orientation is left; without a gradient, of a spike that is put there by hand.
        gamma, rho = math.copysign(1.0, gamma), 0.0
    elif not unit:
        raise AssumptionError(
            f"no step makes a spike of student {student!r}, whose mean slope E sigma'(z) vanishes; "
            "use a student that is not even, or alpha0=inf to scan spikes that are put in by hand"
        )
    return StepPath(
        unit=unit,
        alignment=gamma,
        orthogonal_alignment=rho,
        odd_student=document["odd_student"],
        linear=document["linear"],
        _function=None if population else lambda s: path(s, alpha0, noise_variance)[1:3],
    )


@derived("spiked_random_features/bounds/step_path", dict)
def _derived(student: str, teacher: str) -> dict[str, Any]:
    sigma = activation(student, argument="student")
    target = activation(teacher, argument="teacher")
    source = error = ""
    try:
        found = mapping.spike_mapping(sigma, target)
        values = (
            found.spike_strength,
            found.bulk_variance,
            sp.diff(found.bulk_variance, mapping.step_size),
            found.alignment,
            found.orthogonal_alignment,
        )
        source = scalar_functions({"path": Formula(tuple(STEP_ARGUMENTS), values)})
    except AssumptionError as refused:
        error = str(refused)
    return {
        "source": source,
        "error": error,
        "odd_student": mapping.is_odd(sigma),
        "leap_index": int(information_exponent(target)),
        "linear": float(mapping.best_linear_error(target).evalf(20)),
    }


# ------------------------------------------------------------------ perfect learning

_LARGEST_DENOMINATOR = 1000


@dataclass(frozen=True)
class PerfectLearning:
    r"""A spike at which U = 0.

    Attributes
    ----------
    spike_strength, step_size : Expr
        r, and the per-neuron step s that makes it; exact if `proven`. The step is None if the
        population gradient makes no spike.
    coefficient : Expr
        m with :math:`m\,\mu_0 = \sigma_*`.
    proven : bool
        SymPy has shown :math:`m\,\mu_0(\kappa) = \sigma_*(\gamma\kappa)` for all κ; else U vanishes
        up to rounding.
    upper : float
        U there, as computed.
    """

    spike_strength: sp.Expr
    step_size: sp.Expr | None
    coefficient: sp.Expr
    proven: bool
    upper: float

    @property
    def rests_on(self) -> str:
        """What it rests on, in words."""
        if self.proven:
            return "exact: the smoothed student is a multiple of the target"
        return f"float: U = {self.upper:.1e}, zero up to rounding"

    def __str__(self) -> str:
        step = "" if self.step_size is None else f", s = {self.step_size}"
        return f"r = {self.spike_strength}{step}, m = {self.coefficient}; {self.rests_on}"


def perfect_learning(
    student: str, teacher: str, *, cache_folder: str | os.PathLike[str] | None = None
) -> tuple[PerfectLearning, ...]:
    """Return the spikes at which a pair of activations has U = 0; empty if there is none.

    Parameters
    ----------
    student, teacher : str
        As for :func:`.step_bounds.bounds_over_step`, whose range is searched.
    cache_folder : path, optional

    Examples
    --------
    >>> print(*perfect_learning("erf", "erf"))
    r = sqrt(3), s = 3*sqrt(3)*pi/4, m = 1; exact: the smoothed student is a multiple of the target
    >>> perfect_learning("tanh", "tanh")
    ()
    """
    found = bounds_over_step(student, teacher, cache_folder=cache_folder)
    sigma, target = activation(found.student), activation(found.teacher)
    slopes = [hermite_coefficient(f, 1) for f in (sigma, target)]
    return tuple(
        _examined(sigma, target, point.spike_strength, slopes, point.upper)
        for point in found.upper_points
        if point.perfect
    )


def _examined(
    student: Activation, teacher: Activation, strength: float, slopes: list[sp.Expr], upper: float
) -> PerfectLearning:
    square = sp.nsimplify(sp.Float(strength**2, 15), rational=True, tolerance=1e-12)
    guess = sp.sign(strength) * sp.sqrt(square)
    gamma = sp.sign(slopes[1]) if slopes[1].is_extended_nonzero else sp.S.One
    ratio = None
    if sp.Rational(square).q <= _LARGEST_DENOMINATOR:
        value = student(guess * fe.kappa + fe.z)
        smoothed = expect(value, fe.z)
        ratio = sp.simplify(teacher(gamma * fe.kappa) / smoothed)
    proven = ratio is not None and not ratio.has(fe.kappa)
    exact = guess if proven else sp.Float(strength)
    unit = slopes[0] * sp.Abs(slopes[1])
    step = sp.simplify(exact / unit) if unit.is_extended_nonzero else None
    if not proven:
        ratio = sp.Float(_coefficient(student, teacher, strength, gamma))
    return PerfectLearning(exact, step, ratio, proven, upper)


def _coefficient(
    student: Activation, teacher: Activation, strength: float, gamma: sp.Expr
) -> sp.Expr:
    # Both at one point where neither vanishes tell their ratio.
    mean = GaussianExpectation(student(strength + fe.z), fe.z).evalf(17)
    return teacher(gamma).evalf(17) / mean
