"""Minima and maxima of any output of a model over any of its parameters: one question, one answer.

A model says what its parameters and outputs are and how an output is computed with its gradient
(:class:`Question`); the search is :mod:`.numeric.optimum`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..digits import error_text
from ..errors import ConvergenceError, ParameterError
from ..labelled import labelled
from ..numeric.arguments import checked_switch, moderate_number, real_number
from ..numeric.optimum import Axis, LocalMinimum, Objective, Slopes, search
from ..pages import Block, Table
from ..pictures import Line, Lines, Picture
from ..result import Number, Result, quantity
from .kernels.arguments import column, known_names

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]

DEFAULT_BOUNDS = {"ridge": (1e-6, 1e6), "step_size": (0.05, 20.0)}
_DENSITY = {"step_size": 8}
_POSITIVE = ("positive", "extended positive")
_FLAT = "within its numerical error"
_WORDS = {"ridge": "ridge penalty"}


def in_words(name: str) -> str:
    """Return the name of a parameter or an output as words."""
    return name.replace("_", " ")


@dataclass(frozen=True)
class LocalOptimum:
    """One local minimum, or maximum.

    Attributes
    ----------
    of : str
        The output.
    point : mapping from str to float
        Parameters.
    value : float
        The output there.
    kind : str
        "interior minimum", or what the output does at which bound.
    sides : mapping from str to str
        For each parameter "" inside the bounds, "lower" or "upper" at a bound.
    gradient, gradient_errors : mapping from str to float
        Derivatives with respect to the parameters, one-sided at bounds, and estimated errors.
    hessian : tuple of tuple of float
        Second derivatives with respect to the parameters that are inside of their bounds.
    eigenvalues : tuple of float
        Of the Hessian in the coordinates of the search: logarithms of positive parameters.
    eigenvalue_error : float
        A bound of their estimated errors.
    errors : mapping from str to float
        Estimated errors of the parameters; zero at a bound.
    """

    of: str
    point: Mapping[str, float]
    value: float
    kind: str
    sides: Mapping[str, str]
    gradient: Mapping[str, float]
    gradient_errors: Mapping[str, float]
    hessian: tuple[tuple[float, ...], ...]
    eigenvalues: tuple[float, ...]
    eigenvalue_error: float
    errors: Mapping[str, float]

    def __str__(self) -> str:
        point = ", ".join(f"{in_words(name)} {x:.8g}" for name, x in self.point.items())
        return f"{point}: {in_words(self.of)} {self.value:.10g}, {self.kind}"


@dataclass(frozen=True, repr=False)
class Optimum(Result):
    """Where an output is smallest, or largest.

    Parameters and the output are attributes, too: ``found.ridge``, ``found.test_error``.

    Attributes
    ----------
    of : str
        The output.
    point : mapping from str to float or mpmath number
        The parameters, inside the bounds.
    output : float or mpmath number
        The output there.
    gradient : mapping from str to float or mpmath number
        Derivatives with respect to the parameters; one-sided at a bound.
    hessian : tuple of tuple of float or mpmath number
        Second derivatives with respect to the parameters that are inside of their bounds.
    eigenvalues : tuple of float
        Of the Hessian in the coordinates of the search, which are logarithms of positive
        parameters. All are above `eigenvalue_error` at an interior minimum, below its negative at
        a maximum: that, and a gradient that vanishes within its error, is what makes it one.
    eigenvalue_error : float
    errors : mapping from str to number
        Estimated errors of the parameters: those of the gradient through the inverse of the
        Hessian; zero at a bound, which is exact.
    minima : tuple of LocalOptimum
        All local minima (or maxima) of the search, the best first.
    bounds : mapping from str to (float, float)
    fixed : mapping from str to float
        Parameters that were given.
    scan : tuple of int
        Points of the scan along each parameter: closer minima are not told apart.
    iterations : int
        Evaluations of the gradient after the scan.
    exact : bool
        Whether derivatives are exact; else extrapolated differences.
    maximum : bool
    digits : int or None
        Digits asked for; None for floats.
    """

    _document = "optimum"
    _entry = "document"
    _where = ("of",)

    of: str
    point: Mapping[str, Number] = field(metadata=quantity("optimum"))
    output: Number = field(metadata=quantity("output there"))
    gradient: Mapping[str, Number]
    hessian: tuple[tuple[Number, ...], ...]
    eigenvalues: tuple[float, ...] = field(metadata=quantity("eigenvalues of the Hessian"))
    eigenvalue_error: float
    errors: Mapping[str, Number]
    minima: tuple[LocalOptimum, ...]
    bounds: Mapping[str, tuple[float, float]]
    fixed: Mapping[str, float]
    scan: tuple[int, ...]
    iterations: int
    exact: bool = True
    maximum: bool = False
    digits: int | None = None

    def __getattr__(self, name: str) -> Any:
        # Before the fields are there, as when one is unpickled, there is nothing to look in.
        point = self.__dict__.get("point", {})
        if name in point:
            return point[name]
        if name == self.__dict__.get("of"):
            return self.output
        raise AttributeError(
            f"an optimum of {self.__dict__.get('of')} over {', '.join(point)} has no {name!r}"
        )

    @property
    def over(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self.point)

    @property
    def best(self) -> LocalOptimum:
        """The best of the local optima, in floats."""
        return self.minima[0]

    @property
    def kind(self) -> str:
        """Of which kind the optimum is."""
        return self.best.kind

    @property
    def is_interior(self) -> bool:
        """Whether the gradient vanishes at the optimum."""
        return self.kind == _interior(self.maximum)

    @property
    def other_minima(self) -> tuple[LocalOptimum, ...]:
        """Local optima that are not the best."""
        return self.minima[1:]

    def _only(self, values: Mapping[str, Any], what: str) -> Any:
        if len(self.point) > 1:
            raise ParameterError(
                f"{what} is that of one parameter; there are {', '.join(self.point)}: use point, "
                "gradient, hessian or errors"
            )
        return values[self.over[0]]

    @property
    def value(self) -> Any:
        """The optimum of the only parameter."""
        return self._only(self.point, "value")

    @property
    def error(self) -> Any:
        """Its estimated error."""
        return self._only(self.errors, "error")

    @property
    def derivative(self) -> Any:
        """The derivative by the only parameter, one-sided at a bound."""
        return self._only(self.gradient, "derivative")

    @property
    def second_derivative(self) -> Any:
        """The second derivative by the only parameter; NaN at a bound."""
        self._only(self.point, "second_derivative")
        return self.hessian[0][0] if self.hessian else math.nan

    @property
    def certificate(self) -> str:
        """What says that this is an optimum, in words."""
        slopes = ", ".join(
            f"d/d {name} = {float(g):.1e} ± {float(self.best.gradient_errors[name]):.0e}"
            for name, g in self.gradient.items()
        )
        if not self.eigenvalues:
            return slopes
        least = min(self.eigenvalues, key=abs)
        return f"{slopes}; eigenvalue next to zero {least:.3g} ± {self.eigenvalue_error:.0e}"

    @property
    def rests_on(self) -> str:
        """What the result rests on, in words."""
        if self.digits is not None:
            return (
                f"{self.digits} digits asked for; estimated error of the optimum "
                f"{error_text(self.error)}; digits cut off, not rounded"
            )
        how = "exact derivative" if self.exact else "differenced derivative"
        if self.kind.endswith(_FLAT):
            return f"float; the {how} is nowhere larger than its estimated error"
        if len(self.point) > 1:
            errors = " and ".join(
                f"{error_text(e)} of the {_WORDS.get(n, in_words(n))}"
                for n, e in self.errors.items()
            )
            count = len(self.minima)
            word = f"{'maxim' if self.maximum else 'minim'}{'um' if count == 1 else 'a'}"
            return f"float; {how}s from {count} local {word} of a scan, estimated errors {errors}"
        if not self.is_interior:
            return f"float; the sign of the {how}, larger than its estimated error"
        return f"float, zero of the {how} with estimated error {self.error:.1e}"

    def picture(self) -> Picture:
        """Return optima of one parameter with parabolas at them, as bars those of several."""
        if len(self.point) > 1:
            return super().picture()
        [name] = self.over
        low, high = self.bounds[name]
        lines = []
        for local in self.minima:
            x = float(local.point[name])
            # A quarter around an optimum, or the side of a bound that is inside.
            grid = np.linspace(max(low, 0.75 * x), min(high, 1.25 * x or 0.25 * high), 41)
            away = grid - x
            curvature = local.hessian[0][0] if local.hessian else 0.0
            near = local.value + local.gradient[name] * away + curvature * away**2 / 2
            lines.append(Line(grid.tolist(), near.tolist(), "to second order", "--", beside=True))
        places, values = zip(*((float(m.point[name]), m.value) for m in self.minima), strict=True)
        label = f"{self.kind}: {float(self.value):.4g}"
        lines.append(Line(places, values, label, style="", mark="o"))
        return Lines(lines, in_words(name), in_words(self.of))

    def page(self) -> Iterable[Block]:
        """Return the optimum, of which kind it is, and other local optima."""
        rows = [(f"optimal {n}", self.text(x, self.errors[n])) for n, x in self.point.items()]
        rows.append((in_words(self.of), self.text(self.output)))
        word = "maxima" if self.maximum else "minima"
        if len(self.point) == 1:
            yield from ("  ".join(row) for row in rows)
            yield self.kind
            if self.other_minima:
                others = (f"{m.point[self.over[0]]:.6g}" for m in self.other_minima)
                yield f"other local {word}  {', '.join(others)}"
        else:
            yield Table(rows)
            yield self.kind
            yield from (f"other local {word[:-1]}um  {m}" for m in self.other_minima)
        yield self.rests_on


class Question(Protocol):
    """A model as what optima are asked of."""

    @property
    def name(self) -> str:
        """Of the model, for messages."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """What may be smallest."""

    @property
    def domains(self) -> Mapping[str, str]:
        """Parameters, and which numbers they may be."""

    def objective(
        self, of: str, axes: Sequence[Axis], fixed: Mapping[str, Any]
    ) -> tuple[Objective, bool]:
        """Return an output with its gradient, and whether that is exact.

        Raises
        ------
        ParameterError
            If a parameter is missing.
        """

    def attributes(self) -> dict[str, Any]:
        """Return what identifies the model in a dataset."""


def optimum(
    question: Question,
    *,
    of: str,
    over: str | Sequence[str],
    bounds: object,
    fixed: Mapping[str, Any],
    maximum: bool = False,
    progress: bool = True,
) -> Any:
    """Return the optimum, or a dataset of optima over arrays, which :func:`giantstep.plot` draws.

    Parameters
    ----------
    question : Question
    of : str
        An output.
    over : str or sequence of str
        Parameters.
    bounds : mapping from str to (float, float), a pair for one parameter, or None
        Positive parameters are searched in their logarithms, unless a bound is zero. Default: 1e-6
        to 1e6 for ``ridge``, 0.05 to 20 for ``step_size``.
    fixed : mapping from str to float or array
    maximum : bool
        Look for the largest value instead.
    progress : bool
        Show a bar over several optima that take longer than a second.

    Raises
    ------
    ParameterError
        If a name is unknown, a parameter is both fixed and optimised, or bounds are no range.
    ConvergenceError
        If a point has no solution; of several optima those that are done are its `state`.
    """
    maximum = checked_switch("maximum", maximum)
    if not isinstance(of, str):
        raise ParameterError(f"of must be the name of an output, got {of!r}")
    known_names([of], question.outputs, f"output of {question.name}")
    axes = _axes(question, over, bounds, fixed)
    known_names(fixed, question.domains, f"parameter of {question.name}")
    columns = {name: column(name, x, question.domains[name]) for name, x in fixed.items()}
    several = {name: x for name, x in columns.items() if x.ndim}
    single = {name: fixed[name] for name in fixed if name not in several}
    if several:
        return _optima(question, of, axes, single, several, maximum, progress)
    return _optimum(question, of, axes, single, maximum)


def _optimum(
    question: Question, of: str, axes: Sequence[Axis], fixed: Mapping[str, Any], maximum: bool
) -> Optimum:
    objective, exact = question.objective(of, axes, fixed)
    result = search(_Negated(objective) if maximum else objective, axes)
    minima = tuple(_local(of, m, axes, maximum) for m in result.minima)
    best = minima[0]
    return Optimum(
        of=of,
        point=best.point,
        output=best.value,
        gradient=best.gradient,
        hessian=best.hessian,
        eigenvalues=best.eigenvalues,
        eigenvalue_error=best.eigenvalue_error,
        errors=best.errors,
        minima=minima,
        bounds={axis.name: (axis.low, axis.high) for axis in axes},
        fixed={name: float(x) for name, x in fixed.items()},
        scan=result.shape,
        iterations=result.evaluations,
        exact=exact,
        maximum=maximum,
    )


class _Negated:
    """An objective whose maxima are minima."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective

    def values(self, points: Array) -> tuple[Array, Array]:
        values, errors = self._objective.values(points)
        return -values, errors

    def slopes(self, points: Array, *, rounding: bool = False) -> Slopes:
        result = self._objective.slopes(points, rounding=rounding)
        return Slopes(-result.value, -result.gradient, result.error)


def _interior(maximum: bool) -> str:
    return f"interior {'maximum' if maximum else 'minimum'}"


def _local(of: str, found: LocalMinimum, axes: Sequence[Axis], maximum: bool) -> LocalOptimum:
    sign = -1.0 if maximum else 1.0
    names = [axis.name for axis in axes]
    free = [k for k, side in enumerate(found.sides) if not side]
    paces = np.array([axes[k].pace(found.point[k]) for k in free])
    # In a logarithm t, d²f/dt² = x² f'' + x f'.
    bend = [axes[k].pace(found.point[k]) * found.gradient[k] if axes[k].logarithmic else 0.0
            for k in free]  # fmt: skip
    hessian = sign * (found.hessian - np.diag(bend)) / np.outer(paces, paces)
    eigenvalues = sorted((sign * found.eigenvalues).tolist())

    def named(values: Iterable[float]) -> dict[str, float]:
        return dict(zip(names, map(float, values), strict=True))

    return LocalOptimum(
        of=of,
        point=named(found.point),
        value=sign * found.value,
        kind=_kind(of, found, names, maximum),
        sides=dict(zip(names, found.sides, strict=True)),
        gradient=named(sign * found.gradient),
        gradient_errors=named(found.gradient_errors),
        hessian=tuple(map(tuple, hessian.tolist())),
        eigenvalues=tuple(eigenvalues),
        eigenvalue_error=found.eigenvalue_error,
        errors=named(found.errors),
    )


def _kind(of: str, found: LocalMinimum, names: Sequence[str], maximum: bool) -> str:
    at = [(name, side) for name, side in zip(names, found.sides, strict=True) if side]
    if not found.is_certain:
        return f"the {in_words(of)} does not depend on {' and '.join(names)} {_FLAT}"
    if not at:
        return _interior(maximum)
    if len(names) > 1:
        return f"at the boundary: {', '.join(f'{name} at its {side} bound' for name, side in at)}"
    (name, side), verb = at[0], "rises" if maximum else "falls"
    return (
        f"at the boundary {name} = {found.point[0]:g}: the {in_words(of)} {verb} towards "
        f"{'smaller' if side == 'lower' else 'larger'} values of {name}"
    )


def _optima(
    question: Question,
    of: str,
    axes: Sequence[Axis],
    fixed: Mapping[str, Any],
    several: Mapping[str, Array],
    maximum: bool,
    progress: bool,
) -> xr.Dataset:
    """Return optima over all combinations of arrays of parameters."""
    # Looks for notebook widgets, which costs time at every import.
    from tqdm.auto import tqdm

    shape = tuple(map(len, several.values()))
    names = [axis.name for axis in axes]
    columns = {
        name: np.full(shape, np.nan)
        for name in (*names, of, *(f"{name}_error_estimate" for name in names), "gradient")
    }
    columns |= {f"{name}_is_interior": np.zeros(shape, dtype=bool) for name in names}
    columns["minima"] = np.zeros(shape, dtype=np.int32)

    def dataset() -> xr.Dataset:
        return labelled(
            {name: (tuple(several), values) for name, values in columns.items()},
            coords=dict(several),
            attrs={
                **question.attributes(),
                **{name: float(x) for name, x in fixed.items()},
                "kind": f"{'largest' if maximum else 'smallest'} {of} over {', '.join(names)}",
                "shown": " ".join([*names, of]),
                "drawn": " ".join(names),
            },
        )

    bar = {"delay": 1, "leave": False, "disable": None if progress else True}
    for index in tqdm(list(np.ndindex(*shape)), "optimum", unit="point", **bar):
        at = {name: float(x[k]) for (name, x), k in zip(several.items(), index, strict=True)}
        try:
            result = _optimum(question, of, axes, {**fixed, **at}, maximum)
        except ConvergenceError as failure:
            where = ", ".join(f"{name} = {x:g}" for name, x in at.items())
            raise ConvergenceError(f"at {where}: {failure}", state=dataset()) from failure
        best = result.best
        for axis in axes:
            columns[axis.name][index] = best.point[axis.name]
            columns[f"{axis.name}_error_estimate"][index] = best.errors[axis.name]
            columns[f"{axis.name}_is_interior"][index] = not best.sides[axis.name]
        columns[of][index] = best.value
        slopes = [axis.pace(best.point[axis.name]) * best.gradient[axis.name] for axis in axes]
        columns["gradient"][index] = math.hypot(*slopes)
        columns["minima"][index] = len(result.minima)
    return dataset()


# ---------------------------------------------------------------------- what is asked, checked


def _axes(
    question: Question, over: object, bounds: object, fixed: Mapping[str, Any]
) -> tuple[Axis, ...]:
    names = (over,) if isinstance(over, str) else over
    if not isinstance(names, Sequence) or not names or not all(isinstance(n, str) for n in names):
        raise ParameterError(f"over must name parameters, such as 'ridge', got {over!r}")
    known_names(names, question.domains, f"parameter of {question.name}")
    for name in names:
        if list(names).count(name) > 1:
            raise ParameterError(f"over must not repeat a parameter, got {over!r}")
        if name in fixed:
            raise ParameterError(
                f"over names {name}, which is given as well ({name}={fixed[name]!r}); leave out one"
            )
    given: Mapping[str, object]
    if bounds is None:
        given = {}
    elif isinstance(bounds, Mapping):
        known_names(bounds, names, "parameter that bounds are for")
        given = bounds
    elif len(names) == 1:
        given = {names[0]: bounds}
    else:
        raise ParameterError(
            f"bounds of several parameters must go by their names, as in "
            f"bounds={{{names[0]!r}: (0.01, 10)}}, got {bounds!r}"
        )
    return tuple(_axis(name, question.domains[name], given.get(name)) for name in names)


def _axis(name: str, domain: str, bounds: object) -> Axis:
    if bounds is None:
        if name not in DEFAULT_BOUNDS:
            raise ParameterError(
                f"bounds must say where to look for {name}, as in bounds={{{name!r}: (0.1, 10)}}"
            )
        bounds = DEFAULT_BOUNDS[name]
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ParameterError(
            f"bounds must be two values of {name}, such as (0.01, 10), got {bounds!r}"
        )
    positive = domain in _POSITIVE
    low, high = ((moderate_number if positive else real_number)("bounds", x) for x in bounds)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ParameterError(f"bounds of {name} must be finite, got {bounds!r}")
    for x in (low, high):
        column(f"bounds of {name}", x, domain)
    if not low < high:
        raise ParameterError(f"bounds must be in ascending order, got {bounds!r}")
    logarithmic = positive or (domain == "nonnegative" and low > 0)
    density = _DENSITY.get(name) if logarithmic else None
    return Axis(name, low, high, logarithmic, density)
