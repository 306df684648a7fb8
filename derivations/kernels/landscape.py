"""The free energy as a function of one unknown, stationary in all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from ...errors import ParameterError, StructureError
from ...numeric.arguments import whole_number
from ...pages import Block, Table
from ...pictures import Line, Lines
from ...result import Result
from ...symbolic.systems.equations import maximum_matching, stationarity
from ...symbolic.systems.saddle_point import SaddlePointSystem
from .arguments import known_names
from .families import VALUE, Extremum, OpenKernel, numbers_of

if TYPE_CHECKING:
    import sympy as sp

    from .kernel import Kernel, KernelSolution

Array = NDArray[np.float64]

MINIMUM, MAXIMUM, INFLECTION = "minimum", "maximum", "inflection"
_SLOPE = "slope_of_free_energy"
# Of the range: an open interval is looked at so far from its ends.
_MARGIN = 1e-3
_MARKS = {True: ("o", "stable"), False: ("x", "unstable"), None: ("s", "stability unknown")}


@dataclass(frozen=True)
class StationaryPoint:
    """A solution of the equations, as a point of the landscape.

    Attributes
    ----------
    value : float
        Of the unknown.
    error : float
        Estimated absolute error of `value`.
    free_energy : float
    kind : str
        "minimum", "maximum" or "inflection" along the line.
    stable : bool or None
        As :attr:`Landscape.stability` says; None if nothing is known of it.
    unknowns : mapping from str to float
    """

    value: float
    error: float
    free_energy: float
    kind: str
    stable: bool | None
    unknowns: Mapping[str, float]


@dataclass(frozen=True)
class Section:
    """A line of the landscape: where the other variables have several solutions there are several.

    Attributes
    ----------
    values, free_energy : tuple of float
    """

    values: tuple[float, ...]
    free_energy: tuple[float, ...]

    @classmethod
    def of(cls, values: Array, free_energy: Array) -> Section:
        """Return a section from arrays."""
        return cls(tuple(values.tolist()), tuple(free_energy.tolist()))


@dataclass(frozen=True, repr=False)
class Landscape(Result):
    """The free energy over one unknown; made by :meth:`.kernel.Kernel.landscape`.

    Attributes
    ----------
    name, title : str
        Of the kernel.
    of : str
        The unknown.
    within : (float, float)
    parameters : mapping from str to float
    sections : tuple of Section
    points : tuple of StationaryPoint
        All that were found, in the order of their values.
    stability : str
        What stability means, in words.
    labels : mapping from str to str
    """

    _document = "landscape"

    name: str
    title: str
    of: str
    within: tuple[float, float]
    parameters: Mapping[str, float]
    sections: tuple[Section, ...]
    points: tuple[StationaryPoint, ...]
    stability: str
    labels: Mapping[str, str]

    @property
    def errors(self) -> Mapping[str, float]:
        """Estimated absolute error of each stationary point."""
        return {f"{self.of}, {k}": point.error for k, point in enumerate(self.points, 1)}

    def page(self) -> Iterable[Block]:
        """Return the stationary points."""
        at = ", ".join(f"{name} = {x:g}" for name, x in self.parameters.items())
        yield f"{self.title}: free energy over {self.of}; {at}"
        yield Table(
            [
                [f"{p.value:.10g}", f"{p.free_energy:.10g}", p.kind, _MARKS[p.stable][1]]
                for p in self.points
            ],
            [self.of, "free energy", "along the line", "solution"],
        )
        yield self.stability

    def latex(self) -> str:
        """Return the stationary points in LaTeX."""
        symbol = self.labels.get(self.of, rf"\mathrm{{{self.of}}}".replace("_", r"\_"))
        rows = [
            rf"{symbol} &= {p.value:.10g}: & f &= {p.free_energy:.10g} & \text{{{p.kind}}}"
            for p in self.points
        ]
        return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"

    def picture(self) -> Lines:
        """Return the line, with the stationary points by their stability."""
        lines = [Line(s.values, s.free_energy) for s in self.sections]
        for stable, (mark, words) in _MARKS.items():
            there = [p for p in self.points if p.stable is stable]
            if there:
                x, y = [p.value for p in there], [p.free_energy for p in there]
                lines.append(Line(x, y, words, style="", mark=mark))
        symbol = f"${self.labels[self.of]}$" if self.of in self.labels else self.of
        return Lines(lines, symbol, "free energy", self.title)


def landscape(
    kernel: Kernel,
    /,
    of: str,
    within: tuple[float, float] | None = None,
    *,
    points: int = 200,
    extremum: str | Mapping[str, str] | None = None,
    data: Mapping[str, Any] | None = None,
    rtol: float = 1e-11,
    **parameters: Any,
) -> Landscape:
    r"""Return the free energy over one unknown, stationary in all other variables at each value.

    For order parameters q, m and conjugates this is :math:`f(q) = \operatorname{stat}_{m, \hat q,
    \hat m} F`, whose derivative is :math:`\partial F/\partial q`: its stationary points are the
    solutions of the equations, and its curvature is that of the free energy with conjugates
    eliminated, by which :meth:`.kernel.Kernel.branches` tells stability. Lines are followed through
    folds, where the others have several solutions.

    Parameters
    ----------
    of : str
        An order parameter, or the only unknown of Newton's method of a system with an output
        ``free_energy``.
    within : (float, float), optional
        Its range; default: its domain, or twice as far as a solution where that is infinite.
    points : int
        On a line.
    extremum : {"minimum", "maximum"} or mapping from str to these, optional
        What the free energy has in its order parameters at a stable solution; default: a minimum,
        and where it is an output alone, solutions are stable under iteration of the equations.
    data, rtol
        As for :meth:`.kernel.Kernel.branches`.
    **parameters
        By name; numbers.

    Returns
    -------
    Landscape

    Raises
    ------
    ParameterError
        If there is no free energy, or `of` is none of its order parameters.
    StructureError
        If the free energy is linear in what is left: with `of` held nothing determines it.
    ConvergenceError
        If the other variables have no solution anywhere.

    Examples
    --------
    >>> import giantstep as gs
    >>> from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick
    >>> glass = gs.lower(sherrington_kirkpatrick())
    >>> [round(p.value, 6) for p in glass.landscape("sqrt_q", (0.05, 1), beta=2, h=0).points]
    [0.728264]
    """
    points = whole_number("points", points, minimum=8)
    given = OpenKernel(kernel=kernel, parameters=parameters, data=data, rtol=rtol)
    sense = Extremum.of(kernel, extremum or ("minimum" if given.variables[0] else None))
    others = _others(given, of)
    low, high = _range(given, of, within)
    if others:
        sections, found = _with_others(given, of, others, (low, high), points)
    else:
        sections, found = _alone(given, of, np.linspace(low, high, points))
    solutions = []
    if found:
        y = np.array([[p.get(name, np.nan) for name in given.names] for p, _ in found])
        described = given.described(y)
        stable = given.judged(
            given.hessian_eigenvalues(described), given.map_radius(given.linearised(y)[1]), sense
        )
        # All unknowns, those that follow explicitly from the others too.
        system, table = given.open.system, described.values
        names = [system.identifiers[x] for x in system.unknowns]
        every = {name: table[name] for name in names if name in table}
        every |= {name: y[:, k] for k, name in enumerate(given.names)}
        for k, (unknowns, error) in enumerate(found):
            energy = float(described.values[VALUE][k])
            if not np.isfinite(energy):
                # Of the equations alone, outside of where the free energy is real.
                continue
            solutions.append(StationaryPoint(
                unknowns[of], error, energy, kind_on(sections, unknowns[of], energy),
                None if stable is None else bool(stable[k]),
                {name: float(column[k]) for name, column in every.items()},
            ))  # fmt: skip
    solutions.sort(key=lambda p: p.value)
    return Landscape(
        name=kernel.name, title=kernel.title or kernel.name, of=of, within=(low, high),
        parameters=_parameters(given), sections=tuple(sections), points=tuple(solutions),
        stability=given.stability(sense),
        labels=dict(kernel.labels),
    )  # fmt: skip


def with_landscape(kernel: Kernel, /) -> tuple[str, ...]:
    """Return the order parameters that leave the other variables determined where they are held.

    By the structure of the conditions alone: a free energy that is linear in what is left couples
    fewer of its variables than there are.
    """
    given = OpenKernel(kernel=kernel, parameters={})
    known, (variables, _) = order_parameters(kernel), given.variables
    free_energy = given.open.system.free_energy
    if free_energy is None or not variables:
        return known
    held_in = {
        x: [y for y in variables if y in condition.free_symbols]
        for x, condition in stationarity(free_energy).items()
    }

    def determined(held: sp.Symbol) -> bool:
        left = {x: [y for y in ys if y != held] for x, ys in held_in.items() if x != held}
        return len(maximum_matching(left)) == len(variables) - 1

    return tuple(name for name in known if determined(given.symbol(name)))


def order_parameters(kernel: Kernel, /) -> tuple[str, ...]:
    """Return the unknowns in which the free energy is stationary; none without one."""
    given = OpenKernel(kernel=kernel, parameters={})
    if given.open.free_energy is None:
        return ()
    variables, count = given.variables
    if variables:
        return tuple(given.open.system.identifiers[x] for x in variables[:count])
    return given.names if len(given.names) == 1 else ()


def _parameters(given: OpenKernel) -> dict[str, float]:
    """Return all parameters, those with defaults too."""
    row = given.rows(np.zeros((1, 0)))[0]
    return dict(zip(given.kernel.parameters, row.tolist(), strict=True))


def _others(given: OpenKernel, of: str) -> tuple[sp.Symbol, ...]:
    """Return the other variables of the free energy."""
    known = order_parameters(given.kernel)
    if given.open.free_energy is None:
        raise ParameterError(
            f"{given.kernel.name} comes without a free energy: make the system by "
            "from_free_energy, or give it the output free_energy"
        )
    if not known:
        raise ParameterError(
            f"{given.kernel.name} has {len(given.names)} unknowns and does not say in which "
            "variables its free energy is stationary: make it by from_free_energy"
        )
    known_names((of,), known, "order parameter")
    symbol = given.symbol(of)
    return tuple(x for x in given.variables[0] if x != symbol)


def _range(given: OpenKernel, of: str, within: Sequence[float] | None) -> tuple[float, float]:
    """Return the range, as it was given, as the unknown is declared, or around a solution."""
    if within is not None:
        return numbers_of(within, "within")
    declared = {known.name: (known.lower, known.upper) for known in given.kernel.code.ranges}
    low, high = declared.get(of, (-np.inf, np.inf))
    if not (np.isfinite(low) and np.isfinite(high)):
        solved = given.kernel.solve(data=given.data, **given.parameters).values[of]
        reach = 2 * max(abs(float(solved)), 0.5)
        low = max(low, 0.0 if given.symbol(of).is_nonnegative else -reach)
        high = min(high, reach)
    margin = _MARGIN * (high - low)
    return low + margin, high - margin


def _alone(given: OpenKernel, of: str, values: Array) -> tuple[list[Section], list[Any]]:
    """Return the line and the solutions where there is no other variable."""

    def residual(x: float) -> float:
        return float(given.linearised(np.array([[x]]))[0][0, 0])

    energies = given.described(values[:, None]).values[VALUE]
    residuals, _ = given.linearised(values[:, None])
    column, found = residuals[:, 0], []
    for x in _zeros(residual, values, column):
        slope = abs(float(given.linearised(np.array([[x]]))[1][0, 0, 0]))
        error = given.residual_error(np.array([x])) / slope if slope else np.inf
        found.append(({of: x}, error))
    found += [({of: float(values[k])}, 0.0) for k in np.flatnonzero(column == 0).tolist()]
    return [Section.of(values, energies)], found


def _zeros(function: Callable[[float], float], values: Array, column: Array) -> Iterable[float]:
    """Yield zeros between values at which a function is known; poles are none."""
    for k in np.flatnonzero(np.sign(column[:-1]) * np.sign(column[1:]) < 0).tolist():
        x = float(brentq(function, values[k], values[k + 1], xtol=1e-15, rtol=1e-14))
        if abs(function(x)) < np.max(np.abs(column[k : k + 2])):
            yield x


def _with_others(
    given: OpenKernel, of: str, others: tuple[sp.Symbol, ...], within: tuple[float, float],
    points: int,
) -> tuple[list[Section], list[Any]]:  # fmt: skip
    """Return lines and solutions with the other variables solved for at each value."""
    try:
        kernel = given.opened(("landscape", of), lambda: constrained(given.open.system, of, others))
    except StructureError as error:
        raise StructureError(f"with {of} held, {error}") from None
    held: dict[str, Any] = {
        name: x for name, x in _parameters(given).items() if name in kernel.parameters
    }
    if not kernel.code.unknowns:
        return _explicit(given, kernel, of, np.linspace(*within, points), held)
    diagram = kernel.branches(
        of, within, zeros=(_SLOPE,), points=points, data=given.data, rtol=given.rtol, **held
    )
    sections = []
    for b in diagram.branches:
        if b.free_energy is not None and (real := np.isfinite(b.free_energy)).any():
            sections.append(Section.of(b.parameter[real], b.free_energy[real]))
    found = []
    family = diagram.origin.family
    for point in diagram.zeros(_SLOPE):
        core = {name: float(point.unknowns[name]) for name in family.names}
        table = family.described(np.array([[*core.values(), point.value]])).values
        every = {name: float(column[0]) for name, column in table.items()}
        found.append(({**every, **core, of: point.value}, point.error))
    return sections, found


def _explicit(
    given: OpenKernel, kernel: Kernel, of: str, values: Array, held: Mapping[str, Any]
) -> tuple[list[Section], list[Any]]:
    """Return the line and the solutions where the other variables follow explicitly."""

    def solved(x: float) -> KernelSolution:
        return kernel.solve(data=given.data, rtol=given.rtol, **{**held, of: x})

    table = kernel.curve(
        data=given.data, rtol=given.rtol, failures="keep", **{**held, of: values}
    ).dataset  # fmt: skip
    y = np.stack([table[name].to_numpy() for name in given.names], axis=1)
    energies = given.described(y).values[VALUE]
    slopes, real = table[_SLOPE].to_numpy(), np.isfinite(energies)
    found = []
    for x in _zeros(lambda x: float(solved(x)[_SLOPE]), values, slopes):
        at = solved(x)
        curvature = np.interp(x, values, np.abs(np.gradient(slopes, values)))
        unknowns = {name: float(at.values.get(name, x)) for name in given.names}
        found.append(({**unknowns, of: x}, float(at.errors[_SLOPE]) / float(curvature)))
    return [Section.of(values[real], energies[real])] if real.any() else [], found


def constrained(
    system: SaddlePointSystem, of: str, others: tuple[sp.Symbol, ...]
) -> SaddlePointSystem:
    """Return the system of all other variables, in which one unknown is a parameter.

    Parameters
    ----------
    system : SaddlePointSystem
        Of a free energy.
    of : str
    others : tuple of Symbol

    Returns
    -------
    SaddlePointSystem
        Its output is the derivative of the free energy by the unknown.
    """
    free_energy = system.free_energy
    assert free_energy is not None
    symbol = next(x for x, name in system.identifiers.items() if name == of)
    held = replace(
        free_energy,
        order_parameters=tuple(x for x in free_energy.order_parameters if x in others),
        conjugates=tuple(x for x in free_energy.conjugates if x in others),
        parameters=(*free_energy.parameters, symbol),
        single_sites=(),
    )
    return SaddlePointSystem.from_free_energy(
        held, name=f"{system.name}_over_{of}", title=system.title, node=system.node,
        outputs={_SLOPE: stationarity(free_energy)[symbol]}, identifiers=system.identifiers,
        start={x: value for x, value in system.start.items() if x in others},
        domains={x: value for x, value in system.domains.items() if x in others},
        derived=system.derived,
    )  # fmt: skip


def kind_on(sections: Sequence[Section], value: float, energy: float) -> str:
    """Return what a stationary point is along the line that it is on."""
    gaps = [
        (abs(float(np.interp(value, *_ascending(s))) - energy), s)
        for s in sections
        if min(s.values) <= value <= max(s.values)
    ]
    if not gaps:
        return INFLECTION
    x, y = _ascending(min(gaps, key=lambda gap: gap[0])[1])
    sides = [*y[x < value][-1:], *y[x > value][:1]]
    # At an end of the line one side tells.
    left, right = sides[0] > energy, sides[-1] > energy
    return MINIMUM if left and right else MAXIMUM if not (left or right) else INFLECTION


def _ascending(section: Section) -> tuple[Array, Array]:
    order = np.argsort(section.values)
    return np.array(section.values)[order], np.array(section.free_energy)[order]
