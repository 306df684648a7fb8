"""Derivatives of everything a kernel returns with respect to its parameters.

By the implicit function theorem, from the derivative of the equations along a direction of the
parameters (:mod:`.symbolic.systems.sensitivities`); nothing is differenced. One program has all
derivatives: it takes the rates at which parameters move, which also say how parameters follow
from others. It is derived once for the parameters that move.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...errors import ConvergenceError, ParameterError
from ...numeric.kernel_code import KernelCode
from ...numeric.optimum import Axis, Objective, Slopes
from ...numeric.rounding import COARSE, perturbed, spreads
from ...pages import Block, Table
from ...pictures import Bars
from ...result import Number, Result, Row, quantity
from ...symbolic.lowering.lowered import LoweredSystem, lower
from ...symbolic.systems.saddle_point import SaddlePointSystem
from ...symbolic.systems.sensitivities import derivative_name, with_derivatives_along
from ..derived import derived
from ..figures import draw_picture
from ..optima import optimum as optimum_of
from .arguments import Points, Tie, known_names
from .code import deriving, kernel_code
from .kernel import RESERVED
from .precise import exact_number, promise

if TYPE_CHECKING:
    from ...symbolic.lowering.lowered import LoweredSystem
    from .kernel import Kernel
    from .solution import KernelSolution

Array = NDArray[np.float64]
Rates = Mapping[str, Any]
"""How fast parameters of a kernel move: floats, exact numbers, or functions of all parameters,
which are numbers of mpmath."""

LABEL = "t"
"""What derivatives along a direction are taken with respect to, in the names of the outputs."""

# Outputs for which a terminal has room.
_COLUMNS = 4
_RTOL = 1e-11
# Where parameters that are zero may go; rates stay what they are.
_INWARDS = {"nonpositive": -1.0, "zero": 0.0}


@dataclass(frozen=True, repr=False)
class Sensitivities(Result, Mapping[tuple[str, str], Any]):
    """Derivatives at one point, a mapping: ``found["test_error", "ridge"]``.

    Attributes
    ----------
    derivatives : mapping from (output, parameter) to float or mpmath number
    errors : mapping from (output, parameter) to number
        Estimated absolute errors.
    excluded : mapping from str to str
        Parameters without a derivative here, with the reason.
    kernel : str
        Name of the system.
    point : mapping from str to float
        All parameters of the kernel, where the derivatives were taken; attributes, too:
        ``found.ridge``.
    labels : mapping from str to str
        LaTeX of outputs and parameters.
    digits : int or None
        Digits asked for; None for floats.
    """

    _document = "sensitivities"

    derivatives: Mapping[tuple[str, str], Number] = field(metadata=quantity("derivatives"))
    errors: Mapping[tuple[str, str], Number]
    excluded: Mapping[str, str]
    kernel: str
    point: Mapping[str, float]
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)
    digits: int | None = None

    def __getitem__(self, key: tuple[str, str]) -> Any:
        if not (isinstance(key, tuple) and len(key) == 2):
            example = next(iter(self.derivatives), ("output", "parameter"))
            raise ParameterError(
                f"give an output and a parameter, as in found{list(example)}, got {key!r}"
            )
        if key in self.derivatives:
            return self.derivatives[key]
        output, parameter = key
        if parameter in self.excluded:
            raise ParameterError(
                f"there is no derivative with respect to {parameter}: {self.excluded[parameter]}"
            )
        for kind, name, known in (
            ("output", output, self.outputs), ("parameter", parameter, self.parameters),
        ):  # fmt: skip
            if name not in known:
                raise ParameterError(f"no {kind} {name!r}; there are {', '.join(known)}")
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return key in self.derivatives

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.derivatives)

    def __len__(self) -> int:
        return len(self.derivatives)

    def __getattr__(self, name: str) -> Any:
        point = self.__dict__.get("point", {})
        if name in point:
            return point[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def outputs(self) -> tuple[str, ...]:
        """Quantities that were differentiated."""
        return tuple(dict.fromkeys(output for output, _ in self.derivatives))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Parameters with respect to which they were."""
        return tuple(dict.fromkeys(parameter for _, parameter in self.derivatives))

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.digits is not None:
            return promise(self.digits, self.errors, self.derivatives)
        worst = max(self.errors.values(), default=0.0)
        return f"float, exact derivatives of the equations, estimated errors up to {worst:.1e}"

    def error(self, output: str, parameter: str) -> Any:
        """Return the estimated absolute error of one derivative."""
        _ = self[output, parameter]
        return self.errors[output, parameter]

    def entries(self) -> list[Row]:
        """Return the derivatives, named as ``d_test_error_d_ridge``."""
        about = self._declared()["derivatives"]
        found = []
        for (output, parameter), value in self.items():
            row = self._row((output, parameter), about, value)
            name = derivative_name(output, parameter)
            symbol = rf"\frac{{d {self._symbol(output)}}}{{d {self._symbol(parameter)}}}"
            found.append(replace(row, name=name, words=f"d {output}/d {parameter}", symbol=symbol))
        return found

    def _symbol(self, name: str) -> str:
        return self.labels.get(name) or rf"\mathtt{{{name}}}".replace("_", r"\_")

    def page(self) -> Iterable[Block]:
        """Return a table of the derivatives, what has none, and what they rest on."""
        texts = {key: row.text for key, row in zip(self, self.entries(), strict=True)}
        rows = [[texts[o, p] for o in self.outputs] for p in self.parameters]
        head = ("derivative with respect to", *(f"of {o.replace('_', ' ')}" for o in self.outputs))
        shown = [(p, *row[:_COLUMNS]) for p, row in zip(self.parameters, rows, strict=True)]
        yield Table(shown, head, [row[_COLUMNS:] for row in rows])
        yield from (f"{name}: none, {why}" for name, why in self.excluded.items())
        yield self.rests_on

    def picture(self, of: str | None = None) -> Bars:
        """Return the derivatives of one output as bars, by default of the first one."""
        of = self.outputs[0] if of is None else of
        numbers = {p: (float(self[of, p]), self.error(of, p)) for p in self.parameters}
        return Bars(numbers, f"derivative of {of.replace('_', ' ')}")

    def plot(self, of: str | None = None, *, ax: Any = None, **style: Any) -> Any:
        """Draw the derivatives of one output as bars; see :meth:`.Result.plot`.

        Parameters
        ----------
        of : str, optional
            An output; default: the first one.

        Raises
        ------
        ParameterError
            If there is no such output.
        """
        return draw_picture(self.picture(of), ax=ax, **style)


# ---------------------------------------------------------------------- the program


def value_of(name: str) -> str:
    """Return the name under which the value of an unknown is an output."""
    return f"value_{name}"


def rate(name: str) -> str:
    """Return the name of the rate of a parameter."""
    return f"rate_{name}"


def with_values(system: SaddlePointSystem) -> SaddlePointSystem:
    """Return the system with its unknowns, as their equations give them, for outputs.

    Equal to the unknowns at the solution. Outputs are compared with the sizes of their terms, so
    the errors of these count cancellation, which those of an unknown alone do not show.
    """
    found = {}
    for e in system.equations:
        x = e.unknown
        value = x - e.residual / e.residual.diff(x) if e.value is None else e.value
        found[value_of(system.identifiers[x])] = value
    return replace(system, outputs={**system.outputs, **found})


def along_rates(system: SaddlePointSystem, moving: Iterable[str]) -> SaddlePointSystem:
    """Return a system with derivatives along the rates of parameters, which are new parameters."""
    symbols = {code: p for p, code in system.identifiers.items()}
    direction = {symbols[name]: sp.Symbol(rate(name), real=True) for name in moving}
    return with_derivatives_along(system, direction, label=LABEL)


def _tangent(kernel: Kernel, moving: Sequence[str]) -> LoweredSystem:
    moved = along_rates(with_values(kernel.solved.stated), moving)
    outputs = {name: value for name, value in moved.outputs.items() if value != 0}
    return lower(replace(moved, outputs=outputs))


def tangent_kernel(kernel: Kernel, moving: Iterable[str]) -> Kernel:
    """Return the kernel of the equations together with their derivatives along a direction."""

    @derived("kernels/tangents", KernelCode)
    def code(source: str, moving: tuple[str, ...]) -> KernelCode:
        with deriving("derivatives of all results", 2) as done:
            lowered = _tangent(kernel, moving)
            done()
            return kernel_code(lowered)

    names = tuple(sorted(moving))
    source = hashlib.sha256(repr(kernel.code).encode()).hexdigest()
    rates = {rate(name): "real" for name in names}
    return replace(
        kernel,
        code=code(kernel._cache, source, names),
        domains={**kernel.domains, **rates},
        defaults={**kernel.defaults, **dict.fromkeys(rates, 0.0)},
        make=partial(_tangent, kernel, names),
        make_solved=None,
    )


def rows_along(
    kernel: Kernel, names: Sequence[str], row: Array, directions: Iterable[Rates]
) -> Array:
    """Return a row of parameters of a tangent kernel for each direction from one point.

    Parameters
    ----------
    kernel : Kernel
        With rates among its parameters.
    names : sequence of str
        What the entries of `row` are.
    """
    place = {name: k for k, name in enumerate(names)}
    return np.array(
        [
            [
                row[place[name]] if name in place
                else float(rates.get(name.removeprefix("rate_"), 0.0))
                for name in kernel.parameters
            ]
            for rates in directions
        ]
    )  # fmt: skip


# ---------------------------------------------------------------------- at one point


def sensitivities(
    kernel: Kernel, /, *, wrt: str | Sequence[str] | None = None, **options: Any
) -> Sensitivities:
    """Return derivatives of outputs and unknowns with respect to parameters at one point.

    Exact, by the implicit function theorem. `wrt` names the parameters to differentiate by
    (default: all); the rest is as for :meth:`.kernel.Kernel.solve`. An infinite derivative is a
    ConvergenceError.
    """
    parameters = {n: v for n, v in options.items() if n not in RESERVED}
    ties = {n: tie for n, tie in kernel.ties.items() if tie.constraint or n not in parameters}
    names = _chosen(kernel, wrt, ties)
    given = {**kernel.defaults, **parameters}
    infinite = [n for n in names if _is_infinite(given.get(n))]
    if infinite and wrt is not None:
        raise ParameterError(
            f"{infinite[0]} is inf, where there is no derivative by it; leave it out of wrt"
        )
    excluded = dict.fromkeys(infinite, "it is inf, where there is no derivative by it")
    directions: dict[str, Rates] = {}
    for name in names:
        if name in infinite:
            continue
        rates: dict[str, Any] = {name: 1}
        for tied, tie in ties.items():
            if tie.source == name:
                # What is wrong with a parameter is said where the equations are solved.
                rates[tied] = slope_of(tie.function, given[name]) if name in given else 0
                if rates[tied] is None:
                    excluded[name] = (
                        f"{tied}, which follows from it, has an infinite derivative here"
                    )
        if name not in excluded:
            directions[name] = rates
    return along(kernel, options, directions, excluded)


def along(
    kernel: Kernel,
    options: Mapping[str, Any],
    directions: Mapping[str, Rates],
    excluded: Mapping[str, str],
) -> Sensitivities:
    """Return the derivatives of all results of a kernel along directions of its parameters.

    Parameters
    ----------
    kernel : Kernel
    options : mapping
        Arguments of ``solve``.
    directions : mapping from str to mapping
        For each parameter that is differentiated by, how fast those of the kernel move with it;
        others than those of the kernel play no part.
    excluded : mapping from str to str
        Parameters without a derivative, with the reason.

    Raises
    ------
    ConvergenceError
        If there is no solution, or it has no derivatives.
    """
    directions = {
        name: {n: x for n, x in rates.items() if n in kernel.parameters}
        for name, rates in directions.items()
    }
    moving = {n for rates in directions.values() for n in rates}
    values, errors = {}, {}
    point, found = _solved(kernel, options, directions, moving)
    for output in kernel.code.results:
        for parameter in directions:
            solved, uncertain = found[parameter]
            slope = derivative_name(
                value_of(output) if value_of(output) in solved else output, LABEL
            )
            # What does not depend on a parameter has no derivative in the program.
            missing = 0 * next(iter(solved.values()))
            values[output, parameter] = solved.get(slope, missing)
            errors[output, parameter] = uncertain.get(slope, missing)
    return Sensitivities(
        values, errors, dict(excluded), kernel.name, point,
        labels=kernel.labels, digits=options.get("digits"),
    )  # fmt: skip


_Solved = tuple[Mapping[str, Any], Mapping[str, Any]]


def _solved(
    kernel: Kernel,
    options: Mapping[str, Any],
    directions: Mapping[str, Rates],
    moving: Iterable[str],
) -> tuple[Mapping[str, float], dict[str, _Solved]]:
    """Return the point, and values and errors of all derivatives along each direction."""
    if not (moving := [*moving]):
        solution = kernel.solve(**options)
        return solution.parameters, dict.fromkeys(directions, (solution.values, solution.errors))
    tangent = tangent_kernel(kernel, moving)
    try:
        if options.get("digits") is not None:
            return _with_digits(kernel, tangent, options, directions)
        return _floats(kernel, tangent, options, directions)
    except ConvergenceError as failure:
        # Without a solution at all this one raises, and says so.
        solution = kernel.solve(**{**options, "digits": None})
        raise ConvergenceError(
            f"{kernel.name} has a solution here, but its derivatives with respect to "
            f"{', '.join(directions)} are not finite: the solution branches off or jumps here, or "
            "a parameter is at an end of its range; move the parameters a little, or leave out one "
            "with wrt=",
            state=solution,
        ) from failure


def _with_digits(
    kernel: Kernel, tangent: Kernel, options: Mapping[str, Any], directions: Mapping[str, Rates]
) -> tuple[Mapping[str, float], dict[str, _Solved]]:
    found: dict[str, _Solved] = {}
    point: Mapping[str, float] = {}
    given = {n: v for n, v in options.items() if n not in RESERVED}
    for parameter, rates in directions.items():
        # Where the search starts, any nonzero rates do.
        first = {rate(n): 1.0 if callable(x) else float(x) for n, x in rates.items()}
        one = replace(
            tangent,
            defaults={**tangent.defaults, **first},
            exact_defaults=partial(_exact, kernel, given, rates),
        )
        solution = one.solve(**options)
        point = {n: x for n, x in solution.parameters.items() if n in kernel.parameters}
        found[parameter] = (solution.values, solution.errors)
    return point, found


def _exact(kernel: Kernel, given: Mapping[str, Any], rates: Rates, ctx: Any) -> dict[str, Any]:
    """Return parameters that are not given, and the rates, as numbers of mpmath."""

    def number(value: Any) -> Any:
        return ctx.mpf(str(sp.N(exact_number(value), ctx.dps + 5)))

    if kernel.exact_defaults is None:
        known = {n: number(x) for n, x in kernel.defaults.items() if not _is_infinite(x)}
    else:
        known = dict(kernel.exact_defaults(ctx))
    still = {rate(n): ctx.zero for n in kernel.parameters}
    moved = {rate(n): x(known) if callable(x) else number(x) for n, x in rates.items()}
    return {**known, **still, **moved}


def _floats(
    kernel: Kernel, tangent: Kernel, options: Mapping[str, Any], directions: Mapping[str, Rates]
) -> tuple[Mapping[str, float], dict[str, _Solved]]:
    given = {n: v for n, v in options.items() if n not in RESERVED}
    ties = kernel.active_ties(given)
    start = kernel.solve(**{n: v for n, v in options.items() if n != "digits"})
    names, base = tuple(start.parameters), np.array([*start.parameters.values()])
    rows = rows_along(tangent, names, base, directions.values())

    def job(rtol: float) -> Any:
        return tangent.job(options.get("data"), options.get("start"), rtol, 1, keep=True)

    batch = job(options.get("rtol", _RTOL))(rows)
    if not batch.converged.all():
        raise ConvergenceError(f"derivatives of {kernel.name} are not finite", state=batch)
    inwards = [_INWARDS.get(kernel.domains.get(n, "zero"), 1.0) for n in tangent.parameters]
    near = [perturbed(row, inwards) for row in rows]
    place = {name: k for k, name in enumerate(tangent.parameters)}
    for moved in near:
        for name, tie in ties.items():
            with np.errstate(invalid="ignore"):
                follows = tie.function(moved[1:, place[tie.source]], np.sqrt)
            old = moved[0, place[name]]
            moved[1:, place[name]] = np.where(np.isnan(follows), old, follows)
    around = job(COARSE)(np.vstack(near))
    found: dict[str, _Solved] = {}
    for k, parameter in enumerate(directions):
        part = slice(k * len(near[0]), (k + 1) * len(near[0]))
        rounding = spreads({n: around.values[n][part] for n in tangent.outputs})
        values = {n: float(batch.values[n][k]) for n in tangent.outputs}
        errors = {n: float(e[k]) + rounding[n] for n, e in batch.errors.items() if n in rounding}
        found[parameter] = (values, errors)
    return start.parameters, found


def _is_infinite(value: object) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isinf(value))


def _chosen(kernel: Kernel, wrt: object, ties: Mapping[str, Tie]) -> tuple[str, ...]:
    tied = {name for name, tie in ties.items() if tie.source in kernel.parameters}
    names = chosen_names(
        wrt, [n for n in kernel.parameters if n not in tied], kernel.name, kernel.parameters
    )
    for name in names:
        if name in ties and ties[name].constraint:
            source = ties[name].source
            raise ParameterError(
                f"wrt: {name} follows from {source} and does not move alone; use {source!r}"
            )
    return names


def chosen_names(
    wrt: object, all_of_them: Sequence[str], what: str, known: Sequence[str]
) -> tuple[str, ...]:
    """Return the parameters that are named, each once; `all_of_them` for None.

    Raises
    ------
    ParameterError
        If `wrt` holds no names, or one that is not `known`.
    """
    if wrt is None:
        if not all_of_them:
            raise ParameterError(f"{what} has no parameters to differentiate by")
        return tuple(all_of_them)
    given = (wrt,) if isinstance(wrt, str) else wrt
    if not isinstance(given, Sequence) or not all(isinstance(n, str) for n in given) or not given:
        raise ParameterError(f"wrt must be names of parameters ({', '.join(known)}), got {wrt!r}")
    known_names(given, known, f"parameter of {what}")
    return tuple(dict.fromkeys(given))


def slope_of(function: Callable[..., Any], given: Any) -> sp.Expr | None:
    """Return the derivative of a tied parameter by its source, None where it is infinite."""
    x = sp.Symbol("x", real=True)
    slope = function(x, sp.sqrt).diff(x).xreplace({x: exact_number(given)})
    return None if slope.has(sp.zoo, sp.oo, sp.nan) else slope


def derivative_code(system: SaddlePointSystem, of: str, moving: Sequence[str]) -> KernelCode:
    """Return the kernel of an output and its derivative along the rates of parameters.

    Parameters
    ----------
    system : SaddlePointSystem
    of : str
        An output or an unknown, by its name in code.
    moving : sequence of str
        Parameters that have a rate, an additional parameter of the kernel.

    Raises
    ------
    ParameterError
        If the output does not depend on any of them.
    """
    with deriving(f"derivatives of {of}", 3) as done:
        named = system if of in system.outputs else with_values(system)
        output = of if of in system.outputs else value_of(of)
        named = replace(named, outputs={output: named.outputs[output]})
        moved = along_rates(named, moving)
        if moved.outputs[derivative_name(output, LABEL)] == 0:
            raise ParameterError(f"{of} does not depend on {', '.join(moving)}: it has no optimum")
        done()
        lowered = lower(moved)
        done()
        return kernel_code(lowered)


@dataclass(frozen=True)
class KernelObjective:
    """An output of a kernel, with its gradient.

    Attributes
    ----------
    kernel : Kernel
        Of the equations.
    code : callable
        Returns that of :func:`derivative_code`; called when a gradient is first asked for.
    of : str
    rows : callable
        Takes points (m, n) and returns rows of the parameters of `kernel`.
    rates : callable
        Takes a point (n,) and returns the rates for each parameter that is optimised.
    options : mapping
        ``data`` and ``start`` of a solve.
    """

    kernel: Kernel
    code: Callable[[], KernelCode]
    of: str
    rows: Callable[[Array], Array]
    rates: Callable[[Array], Sequence[Rates]]
    options: Mapping[str, Any]

    def _job(self, kernel: Kernel, rtol: float) -> Any:
        # A few points at a time, most of them of one descent, never pay for compiling.
        return kernel.job(self.options.get("data"), self.options.get("start"), rtol, 1, keep=True)

    def values(self, points: Array) -> tuple[Array, Array]:
        """Return values, NaN where there is no solution, and their errors."""
        batch = self._job(self.kernel, _RTOL)(self.rows(points))
        values = np.where(batch.converged, batch.values[self.of], np.nan)
        return values, batch.errors.get(self.of, np.zeros(len(points)))

    def slopes(self, points: Array, *, rounding: bool = False) -> Slopes:
        """Return values and gradients, exact up to quadrature and rounding.

        Raises
        ------
        ConvergenceError
            If a point has no solution, or the output no derivative there.
        """
        code = self.code()
        tangent = replace(self.kernel, code=code)
        given = self.rows(points)
        names = self.kernel.parameters
        rows = np.vstack(
            [
                rows_along(tangent, names, row, self.rates(point))
                for row, point in zip(given, points, strict=True)
            ]
        )
        batch = self._job(tangent, _RTOL)(rows)
        if not batch.converged.all():
            worst = rows[int(np.argmin(batch.converged))]
            at = dict(zip(code.parameters, worst.tolist(), strict=True))
            where = ", ".join(f"{n} = {at[n]:g}" for n in self.kernel.parameters if n in at)
            raise ConvergenceError(
                f"{self.of} of {self.kernel.name} has no solution or no derivative at {where}; "
                "give other bounds",
                state=batch,
            )
        # An unknown as its equation gives it: errors of that count cancellation.
        value = value_of(self.of) if value_of(self.of) in code.results else self.of
        slope = derivative_name(value, LABEL)
        shape = points.shape
        errors = batch.errors[slope]
        if rounding:
            near = self._job(tangent, COARSE)(np.vstack([perturbed(r) for r in rows]))
            parts = np.split(near.values[slope], len(rows))
            errors = errors + np.array([spreads({slope: part})[slope] for part in parts])
        return Slopes(
            batch.values[value].reshape(shape)[:, 0],
            batch.values[slope].reshape(shape),
            errors.reshape(shape),
        )


class KernelQuestion:
    """A kernel as what optima are asked of; `options` are ``data`` and ``start`` of a solve."""

    def __init__(self, kernel: Kernel, options: Mapping[str, Any]) -> None:
        self._kernel, self._options = kernel, options
        self.name = kernel.name

    @property
    def outputs(self) -> tuple[str, ...]:
        """Outputs and unknowns."""
        return self._kernel.outputs

    @property
    def domains(self) -> Mapping[str, str]:
        """Those of the parameters."""
        return {name: self._kernel.domains[name] for name in self._kernel.parameters}

    def objective(
        self, of: str, axes: Sequence[Axis], fixed: Mapping[str, Any]
    ) -> tuple[Objective, bool]:
        """Return an output with its exact gradient."""
        kernel, names = self._kernel, [axis.name for axis in axes]
        for name in names:
            if name in kernel.ties and kernel.ties[name].constraint:
                source = kernel.ties[name].source
                raise ParameterError(
                    f"over: {name} follows from {source} and does not move alone; use {source!r}"
                )

        def columns(points: Array) -> dict[str, Any]:
            given = {**fixed, **dict(zip(names, points.T, strict=True))}
            return kernel._columns(given, self._options.get("data"))

        columns(np.array([[axis.low for axis in axes]]))
        ties = kernel.active_ties({**fixed, **dict.fromkeys(names)})
        moving = (*names, *(name for name, tie in ties.items() if tie.source in names))

        def rows(points: Array) -> Array:
            found = Points.of(kernel.parameters, columns(points), False, ties)
            return found.rows(0, len(points))

        def rates(point: Array) -> list[Rates]:
            at = dict(zip(names, point.tolist(), strict=True))
            return [
                {name: 1.0}
                | {
                    tied: _finite_slope(tied, tie, at[name])
                    for tied, tie in ties.items()
                    if tie.source == name
                }
                for name in names
            ]

        def code() -> KernelCode:
            return tangent_code(kernel, of, moving)

        return KernelObjective(kernel, code, of, rows, rates, self._options), True

    def attributes(self) -> dict[str, Any]:
        """Return name and title of the kernel, and the release."""
        return self._kernel._attributes()


def _finite_slope(name: str, tie: Tie, given: float) -> float:
    slope = slope_of(tie.function, given)
    if slope is None:
        raise ParameterError(
            f"{name} follows from {tie.source} and has an infinite derivative at {given:g}; give "
            "bounds that leave this out"
        )
    return float(slope)


def tangent_code(kernel: Kernel, of: str, moving: tuple[str, ...]) -> KernelCode:
    """Return the code of an output with its derivative, kept in the cache of the kernel."""

    @derived("kernels/derivatives", KernelCode)
    def code(source: str, of: str, moving: tuple[str, ...]) -> KernelCode:
        return derivative_code(kernel.solved.stated, of, moving)

    source = hashlib.sha256(repr(kernel.code).encode()).hexdigest()
    return code(kernel._cache, source, of, moving)


def optimum(
    kernel: Kernel,
    /,
    *,
    over: str | Sequence[str],
    of: str = "test_error",
    bounds: object = None,
    maximum: bool = False,
    data: Mapping[str, Any] | None = None,
    start: Mapping[str, float] | KernelSolution | None = None,
    progress: bool = True,
    **parameters: Any,
) -> Any:
    """Return the parameters at which an output is smallest, by exact derivatives.

    A scan of the bounds, then descents from all of its minima to where the gradient vanishes.
    Gradients are those of the equations, by the implicit function theorem; Hessians are
    extrapolated differences of gradients.

    Parameters
    ----------
    over : str or sequence of str
        Parameters that are optimised.
    of : str
        An output or an unknown.
    bounds : mapping from str to (float, float), or a pair for one parameter
        Positive parameters are searched in their logarithms. Default: 1e-6 to 1e6 for
        ``ridge``, 0.05 to 20 for ``step_size``; others have none.
    maximum : bool
        Look for the largest value instead.
    data, start
        As for :meth:`.kernel.Kernel.solve`.
    progress : bool
        Show a bar over several optima that take longer than a second.
    **parameters
        All others, by name. Numbers; arrays are axes of a grid of optima.

    Returns
    -------
    Optimum or xarray.Dataset
        A dataset where a parameter is an array.

    Raises
    ------
    ParameterError
        If a name is unknown, a parameter is missing or both given and optimised, or bounds
        are no range inside of the parameter's domain.
    ConvergenceError
        If a point of a descent has no solution; of several optima those that are done are its
        `state`.

    Examples
    --------
    >>> import giantstep as gs
    >>> from giantstep.derivations.mean_field.ridge_regression import ridge_regression
    >>> kernel = gs.lower(ridge_regression())
    >>> best = kernel.optimum(over="ridge", alpha=2, signal_power=1, noise_variance=0.3)
    >>> print(f"{best.ridge:.12f}", best.kind)
    0.300000000000 interior minimum
    """
    options = {"data": data, "start": start}
    return optimum_of(
        KernelQuestion(kernel, options), of=of, over=over, bounds=bounds, fixed=parameters,
        maximum=maximum, progress=progress,
    )  # fmt: skip
