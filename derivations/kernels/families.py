"""A kernel as equations at given unknowns: residuals, their derivatives, and what follows.

The system with its Newton unknowns turned into parameters
(:mod:`.symbolic.systems.branch_conditions`) is lowered like any other, so its residuals have the
quadrature, the error control and the cache of a solve. It is lowered once for each choice of
parameters that move.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ...errors import ConvergenceError, ParameterError
from ...labelled import labelled
from ...numeric.arguments import is_one_of, positive_number, whole_number
from ...numeric.branches import SAME, Equations, Remembered
from ...numeric.first_values import spread
from ...numeric.saddle_point_solver import BatchSolution
from ...symbolic.expressions.averages import Average
from ...symbolic.lowering.documentation import domain_of
from ...symbolic.lowering.program import Newton
from ...symbolic.systems.branch_conditions import SIZE, Condition, Held, OpenSystem, hessian_name
from ...symbolic.systems.equations import FreeEnergy
from ...symbolic.systems.saddle_point import SaddlePointSystem
from ...symbolic.systems.sensitivities import derivative_name
from .arguments import Points, box_of, known_names, start_values
from .lower import lower
from .maps import crossing, integrated
from .solution import KernelSolution
from .sweep import Job

if TYPE_CHECKING:
    import xarray as xr

    from .kernel import Kernel

Array = NDArray[np.float64]

_TINY = 1e-9
# How far out a free energy is looked at, along how many lines.
_FAR, _RAYS = (1e2, 1e3, 1e4), 8
# The free energy among the results of `Family.described`.
VALUE = "value_of_free_energy"
# So many rows are solved in one continuation: compiled where there are averages, while equations
# without any take less time in plain Python than to compile.
_ROWS = 1000

# Words of `branches`, `phase_diagram` and `iterate` that parameters cannot have there.
_WORDS = frozenset(
    {
        "bounds", "cuts", "damping", "events", "extremum", "over", "points", "starts", "steps",
        "time", "tolerance", "within", "zeros",
    }
)  # fmt: skip

# Kernels at given unknowns that were made for a kernel, by what they are for.
# By identity: kernels of one code are equal, with and without a free energy to derive more from.
_OPENED: dict[int, dict[tuple[str, ...], Kernel]] = {}


@dataclass(frozen=True)
class Extremum:
    """What a free energy has at a stable phase, conjugates eliminated.

    Attributes
    ----------
    maxima : tuple of str
        Order parameters in which it is a maximum.
    minima : tuple of str
    prefers_low : bool
        Whether of two phases that of lower free energy is the right one.
    asked : bool
        Whether the user has said so, or the free energy holds neither conjugates nor averages: no
        replicas turn its senses round. Else a map that converges counts more.
    """

    maxima: tuple[str, ...]
    minima: tuple[str, ...]
    prefers_low: bool
    asked: bool = True

    @classmethod
    def of(cls, kernel: Kernel, given: object) -> Extremum:
        """Read "minimum", "maximum", a mapping from order parameters to these, or None.

        Raises
        ------
        ParameterError
            If it is neither, names no order parameter of the free energy, or there is none.
        """
        system = kernel.solved.stated
        held = system.free_energy
        order = [] if held is None else [system.identifiers[x] for x in _variables(held, system)[0]]
        if given is None:
            plain = held is not None and not held.conjugates and not held.expression.has(Average)
            return cls((), tuple(order), True, asked=plain)
        senses = dict.fromkeys(order, given)
        if isinstance(given, Mapping):
            known_names(given, order, "order parameter of the free energy")
            missing = [name for name in order if name not in given]
            if missing:
                raise ParameterError(f"extremum must say what it is in {missing[0]}, too")
            senses = dict(given)
        for sense in senses.values() if isinstance(given, Mapping) else (given,):
            if not is_one_of(sense, ("minimum", "maximum")):
                raise ParameterError(
                    "extremum must be 'minimum' or 'maximum', or a mapping from order parameters "
                    f"to these, got {given!r}"
                )
        if held is None and system.outputs.get(VALUE) is None:
            raise ParameterError(
                f"extremum is what a free energy has at a stable phase, and {kernel.name} comes "
                "without one: leave it out, or make the system by from_free_energy"
            )
        maxima = tuple(name for name in order if senses[name] == "maximum")
        minima = tuple(name for name in order if name not in maxima)
        first = senses[order[0]] if order else given
        return cls(maxima, minima, first == "minimum")

    def __str__(self) -> str:
        if not (self.maxima and self.minima):
            return "maximum" if self.maxima or not self.prefers_low else "minimum"
        return (
            f"saddle, a maximum in {', '.join(self.maxima)} and a minimum in "
            f"{', '.join(self.minima)},"
        )

    def holds(self, eigenvalues: Array) -> NDArray[np.bool_]:
        """Tell where second derivatives have as many negative eigenvalues as there are maxima."""
        falling = (eigenvalues < 0).sum(axis=1) == len(self.maxima)
        rising = (eigenvalues > 0).sum(axis=1) == len(self.minima)
        found: NDArray[np.bool_] = falling & rising
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class OpenKernel:
    """The equations of a kernel at given Newton unknowns.

    Attributes
    ----------
    kernel : Kernel
    parameters : mapping from str to number
        As the user gave them.
    bounds : mapping from str to (float, float)
        Where Newton unknowns are wanted, inside of their domains.
    data : mapping, optional
    rtol : float
        Quadrature error of the residuals.
    kept : tuple of str
        Unknowns that are coordinates although an equation determines them explicitly.
    """

    kernel: Kernel
    parameters: Mapping[str, Any]
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    data: Mapping[str, Any] | None = None
    rtol: float = 1e-11
    kept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        clash = [name for name in self.kernel.parameters if name in _WORDS]
        if clash:
            raise ParameterError(
                f"the parameter {clash[0]!r} of {self.kernel.name} has the name of an argument of "
                "branches(), phase_diagram() or iterate(); give it another one with "
                "identifiers={symbol: 'name'}"
            )
        known_names(self.bounds, self.names, "unknown of Newton's method")

    @cached_property
    def open(self) -> OpenSystem:
        """The system, with its core."""
        system = self.kernel.solved.stated
        kept = [x for x in system.unknowns if system.identifiers[x] in self.kept]
        return OpenSystem(system, tuple(kept))

    @property
    def names(self) -> tuple[str, ...]:
        """The core unknowns, the coordinates of a point before the control parameter."""
        return self.open.names

    @property
    def moving(self) -> tuple[str, ...]:
        """Parameters that are coordinates of a point, after the core unknowns."""
        return ()

    def symbol(self, name: str) -> sp.Symbol:
        """Return the symbol of a parameter or an unknown."""
        return next(x for x, n in self.open.system.identifiers.items() if n == name)

    # ------------------------------------------------------------------ the box

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Open intervals of the core unknowns: their domains, and the bounds of the user."""
        low, high = [], []
        declared = {known.name: known for known in self.kernel.code.ranges}
        for name, x in zip(self.names, self.open.unknowns, strict=True):
            a, b = box_of(domain_of(x))
            if name in declared:
                a, b = max(a, declared[name].lower), min(b, declared[name].upper)
            given = self.bounds.get(name, (-math.inf, math.inf))
            try:
                c, d = map(float, given)
                if math.isnan(c) or math.isnan(d):
                    raise ValueError(given)
            except (TypeError, ValueError):
                raise ParameterError(
                    f"bounds of {name} must be two numbers (low, high), got {given!r}"
                ) from None
            if not max(a, c) < min(b, d):
                wanted = f"inside {declared[name]}" if name in declared else domain_of(x)
                raise ParameterError(
                    f"bounds of {name}: no number between {c:g} and {d:g} is {wanted}, as {x} is "
                    "declared"
                )
            low.append(max(a, c))
            high.append(min(b, d))
        return np.array(low), np.array(high)

    # ------------------------------------------------------------------ numbers

    def linearised(self, points: Array, *, rough: int | None = None) -> tuple[Array, Array]:
        """Return residuals (N, n) and their derivatives (N, n, m) by all coordinates of points.

        With `rough`, on one rule of a level that sees most integrands: 0, or 1 with half the nodes.
        """
        return self._linearisation(self._run(self._linear, points, rough=rough))

    def _linearisation(self, batch: BatchSolution) -> tuple[Array, Array]:
        values = batch.values
        residuals = np.stack([values[r.name] for r in self.open.residuals], axis=1)
        return residuals, _matrix(self.open, values, (*self.names, *self.moving))

    def blur(self, points: Array, sizes: Array) -> tuple[Array, Array, Array]:
        """Return what :meth:`linearised` does, and how far errors of residuals move solutions.

        Parameters
        ----------
        points : array (N, m)
        sizes : array (N, m)
            Typical sizes of the coordinates, in which the distance is measured. It is infinite
            where the rules of quadrature are too coarse to tell.
        """
        batch = self._run(self._linear, points)
        residuals, jacobian = self._linearisation(batch)
        # The error is that of the sum of all residuals: that of the one that changes most.
        change = np.max(np.abs(jacobian * sizes[:, None, :]).sum(axis=2), axis=1)
        with np.errstate(all="ignore"):
            return residuals, jacobian, batch.errors[SIZE] / change

    def residual_error(self, point: Array) -> float:
        """Return the estimated error of the residuals at a point, of quadrature and rounding."""
        return float(self._run(self._linear, point[None]).errors[SIZE][0])

    def described(self, points: Array) -> BatchSolution:
        """Return outputs, unknowns, free energy and its second derivatives at points."""
        return self._run(self._describing, points)

    @cached_property
    def variables(self) -> tuple[tuple[sp.Symbol, ...], int]:
        """The variables of the free energy, and how many of them are order parameters."""
        free_energy = self.open.system.free_energy
        if free_energy is None:
            return (), 0
        order, conjugates = _variables(free_energy, self.open.system)
        return (*order, *conjugates), len(order)

    def hessian_eigenvalues(self, batch: BatchSolution) -> Array | None:
        """Return eigenvalues (N, k) of the second derivatives by order parameters.

        Conjugates are eliminated: the free energy is stationary in them at given order
        parameters, so that this is the Schur complement of the matrix of all variables.
        """
        variables, k = self.variables
        if not variables:
            return None
        m = len(variables)
        whole = np.empty((len(batch.converged), m, m))
        for i in range(m):
            for j in range(m):
                whole[:, i, j] = batch.values[hessian_name(i, j)]
        found = np.full((len(whole), k), np.nan)
        for row, matrix in enumerate(whole):
            inner, mixed = matrix[k:, k:], matrix[k:, :k]
            if np.isfinite(matrix).all() and (m == k or np.linalg.matrix_rank(inner) == m - k):
                reduced = matrix[:k, :k] - mixed.T @ np.linalg.solve(inner, mixed)
                found[row] = np.linalg.eigvalsh(reduced)
        return found

    def map_radius(self, derivatives: Array) -> Array | None:
        """Return the spectral radius (N,) of the map x → F(x) of the core; None without one."""
        if not self.open.is_map:
            return None
        n = len(self.names)
        maps = np.eye(n) - derivatives[:, :, :n]
        found = np.full(len(maps), np.nan)
        good = np.isfinite(maps).all(axis=(1, 2))
        found[good] = np.max(np.abs(np.linalg.eigvals(maps[good])), axis=1, initial=0.0)
        return found

    def stable(self, points: Array, extremum: Extremum) -> NDArray[np.bool_] | None:
        """Tell which solutions are stable; None if nothing is known of it."""
        batch = self.described(points)
        return self.judged(
            self.hessian_eigenvalues(batch), self.map_radius(self.linearised(points)[1]), extremum
        )

    def judged(
        self, eigenvalues: Array | None, radius: Array | None, extremum: Extremum
    ) -> NDArray[np.bool_] | None:
        """Tell the same from what is known of solutions."""
        if eigenvalues is not None and self.by_free_energy(extremum):
            found = extremum.holds(eigenvalues)
            # Higher derivatives decide where the second one vanishes, or a map that converges.
            flat = (eigenvalues == 0).any(axis=1)
            return found if radius is None else np.where(flat, radius < 1, found)
        return None if radius is None else radius < 1

    def stability(self, extremum: Extremum) -> str:
        """Return what stability means, in words."""
        if self.by_free_energy(extremum):
            return (
                f"stable: a {extremum} of the free energy in its order parameters, conjugates "
                "eliminated"
            )
        if self.open.is_map:
            known = self.open.free_energy is not None
            without = "" if known else " (they come without a free energy)"
            return f"stable: under iteration of the equations{without}"
        return "stability unknown: no free energy, and the equations are no map x = F(x)"

    def by_free_energy(self, extremum: Extremum) -> bool:
        """Whether stability is that of the free energy, not of the iteration."""
        return bool(self.variables[0]) and (extremum.asked or not self.open.is_map)

    # ------------------------------------------------------------------ programs

    @cached_property
    def _linear(self) -> Kernel:
        symbols = [self.symbol(name) for name in self.moving]
        key = ("linearised", *self.kept, *self.moving)
        return self.opened(key, lambda: self.open.linearised(symbols))

    @cached_property
    def _describing(self) -> Kernel:
        def make() -> SaddlePointSystem:
            outputs = dict(self.open.system.outputs)
            if self.open.system.free_energy is not None:
                outputs |= self.open.hessian()
            free_energy = self.open.free_energy
            if free_energy is not None:
                outputs[VALUE] = free_energy
            return self.open.opened(outputs, whole=True)

        return self.opened(("described", *self.kept), make)

    def opened(self, key: tuple[str, ...], make: Callable[[], SaddlePointSystem]) -> Kernel:
        """Return the kernel of a system that was derived from this one, made once for each key."""
        if id(self.kernel) not in _OPENED:
            _OPENED[id(self.kernel)] = {}
            weakref.finalize(self.kernel, _OPENED.pop, id(self.kernel))
        known = _OPENED[id(self.kernel)]
        if key not in known:
            known[key] = lower(make(), cache_folder=self.kernel.cache_folder)
        return known[key]

    def on_face(self, held: Mapping[str, float]) -> Kernel:
        """Return the kernel for solutions at which core unknowns are at an end."""
        ends = self.ends(held)
        return self.opened(("face", *map(str, ends)), lambda: self.open.on_face(ends))

    def ends(self, held: Mapping[str, float]) -> Held:
        """Return unknowns at an end with exact numbers."""
        return tuple((self.symbol(name), sp.Rational(end)) for name, end in held.items())

    def closed(self, condition: Condition, control: str) -> Kernel:
        """Return the kernel of the equations with a condition, which a parameter meets."""
        ends = (*map(str, condition.held), "", *map(str, condition.held_other))
        kind = f"{condition.kind} {condition.bent}"
        key = (kind, condition.output, f"{condition.component} {condition.others}", control, *ends)
        return self.opened(key, lambda: condition.system(self.symbol(control)))

    @cached_property
    def _jobs(self) -> dict[str, Job]:
        return {}

    def _run(self, kernel: Kernel, points: Array, *, rough: int | None = None) -> BatchSolution:
        key = f"{kernel.code.results!r} {rough}"
        if key not in self._jobs:
            job = kernel.job(self.data, None, self.rtol, _ROWS, keep=True)
            self._jobs[key] = replace(job, rough=rough)
        table = dict(zip(self.kernel.parameters, self.rows(points).T, strict=True))
        table |= {name: points[:, k] for k, name in enumerate(self.names)}
        with np.errstate(all="ignore"):
            return self._jobs[key](np.stack([table[name] for name in kernel.parameters], axis=1))

    def rows(self, points: Array) -> Array:
        """Return all parameters of the kernel at points."""
        return np.tile(self._row, (len(points), 1))

    @cached_property
    def _row(self) -> Array:
        given = self._given()
        columns = self.kernel._columns(given, self.data)
        for name, value in columns.items():
            if value.ndim:
                raise ParameterError(f"{name} must be one number here")
        ties = self.kernel.active_ties(given)
        return Points.of(self.kernel.parameters, columns, True, ties).rows(0, 1)[0]

    def _given(self) -> dict[str, Any]:
        return dict(self.parameters)


@dataclass(frozen=True, eq=False, kw_only=True)
class Family(OpenKernel):
    """The equations of a kernel over one of its parameters, the others fixed.

    A point holds the core unknowns, then the control parameter.

    Attributes
    ----------
    over : str
        The control parameter.
    within : (float, float)
    """

    over: str
    within: tuple[float, float]

    def __post_init__(self) -> None:
        kernel, over = self.kernel, self.over
        known_names((over,), kernel.parameters, f"parameter of {kernel.name}")
        if over in self.parameters:
            raise ParameterError(f"{over} is followed over {self.within}; leave out {over}=")
        for name, tie in kernel.ties.items():
            if over == tie.source and name not in self.parameters:
                raise ParameterError(
                    f"over: {name} follows from {over}, so that two parameters would move; give "
                    f"{name} itself, or take a kernel of the equations in which {over} is free"
                )
        # Refuses what is missing, unknown or outside its domain.
        for end in self.within:
            kernel._columns({**self.parameters, over: end}, self.data)
        super().__post_init__()

    @property
    def moving(self) -> tuple[str, ...]:
        """The control parameter, the last coordinate of a point."""
        return (self.over,)

    @cached_property
    def control(self) -> sp.Symbol:
        """The control parameter."""
        return self.symbol(self.over)

    def point(self, value: float) -> dict[str, float]:
        """Return all parameters of the kernel at a value of the control parameter."""
        row = self.rows(np.array([[value]]))[0]
        return dict(zip(self.kernel.parameters, row.tolist(), strict=True))

    def others(self, value: float) -> dict[str, Any]:
        """Return the parameters besides this one, as they were given or follow."""
        found = {name: self.parameters.get(name, x) for name, x in self.point(value).items()}
        del found[self.over]
        return found

    def rows(self, points: Array) -> Array:
        """Return all parameters of the kernel at points."""
        found = super().rows(points)
        found[:, self.kernel.parameters.index(self.over)] = points[:, -1]
        return found

    def _given(self) -> dict[str, Any]:
        return {**self.parameters, self.over: self.within[0]}

    def stability(self, extremum: Extremum) -> str:
        """Return what stability means, in words, and whether the free energy has a best state."""
        return "; ".join([super().stability(extremum), *self.unbounded(extremum)])

    def unbounded(self, extremum: Extremum) -> list[str]:
        """Say along which unknowns a free energy is not bounded as its extremum needs it to be.

        It is followed out along each unknown whose domain has no end, at a few values of the
        others. With conjugates it is a saddle, which nothing is said of.
        """
        variables, orders = self.variables
        if self.open.free_energy is None or len(variables) > orders:
            return []
        low, high = self.box
        first, last = self.within
        near = spread([*low, first], [*high, last], _RAYS)
        found = []
        for k, name in enumerate(self.names):
            least = name in extremum.minima or (not extremum.maxima and extremum.prefers_low)
            ends = []
            for end, side, sign in ((high[k], 1.0, ""), (low[k], -1.0, "-")):
                if np.isfinite(end):
                    continue
                rays = np.tile(near, (len(_FAR), 1, 1))
                rays[:, :, k] = side * np.array(_FAR)[:, None]
                values = self.described(rays.reshape(-1, near.shape[1])).values[VALUE]
                with np.errstate(invalid="ignore"):  # Overflows on a ray are no fall.
                    falls = -np.diff((values if least else -values).reshape(len(_FAR), -1), axis=0)
                # What tends to a limit falls less and less from one decade to the next.
                if np.any(np.all(falls > 0, axis=0) & (falls[-1] >= falls[-2] / 2)):
                    ends.append(f"{sign}∞")
            if ends:
                found.append(
                    f"the free energy is not bounded {'below' if least else 'above'} for {name} → "
                    f"{' and '.join(ends)}, as far as {_FAR[-1]:g} shows: no solution is its "
                    f"{'least' if least else 'largest'} value"
                )
        return found

    def equations(self, sizes: Array | None = None) -> Equations:
        """Return the equations with their box, for continuation.

        Parameters
        ----------
        sizes : array (n,), optional
            Typical sizes of the unknowns whose box is infinite; default: 1.
        """
        low, high = self.box
        width = high - low
        # What vanishes has no size.
        usual = np.ones(len(low)) if sizes is None else np.where(sizes > _TINY, sizes, 1.0)
        scale = np.where(np.isfinite(width), width, usual)
        first, last = self.within
        box = Equations(
            self.linearised,
            np.append(low, first),
            np.append(high, last),
            np.append(scale, last - first),
            (partial(self.linearised, rough=1), partial(self.linearised, rough=0)),
        )

        def resolved(points: Array) -> tuple[Array, Array]:
            """Return no residuals where quadrature does not tell solutions apart."""
            residuals, jacobian, blur = self.blur(points, box.sizes(points))
            residuals[~(blur <= SAME)] = np.nan
            return residuals, jacobian

        return replace(box, evaluate=Remembered(resolved))


def _variables(
    free_energy: FreeEnergy, system: SaddlePointSystem
) -> tuple[list[sp.Symbol], list[sp.Symbol]]:
    """Return order parameters and conjugates that the equations of a free energy determine."""
    held = set(system.unknowns)
    return (
        [x for x in free_energy.order_parameters if x in held],
        [x for x in free_energy.conjugates if x in held],
    )


def _matrix(core: OpenSystem, table: Mapping[str, Array], labels: Sequence[str]) -> Array:
    """Return derivatives of residuals by what `labels` name; those that vanish are not computed."""
    size = len(next(iter(table.values())))
    found = np.zeros((size, len(core.names), len(labels)))
    for i, r in enumerate(core.residuals):
        for j, label in enumerate(labels):
            name = derivative_name(r.name, label)
            if name in table:
                found[:, i, j] = table[name]
    return found


def numbers_of(within: Sequence[float], name: str) -> tuple[float, float]:
    """Return the ends of an interval of a parameter.

    Raises
    ------
    ParameterError
        If they are no two increasing finite numbers.
    """
    try:
        low, high = map(float, within)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be two numbers (low, high), got {within!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ParameterError(f"{name} must be finite and increasing (low, high), got {within!r}")
    return low, high


def iterate(
    kernel: Kernel,
    /,
    *,
    start: Mapping[str, float] | KernelSolution | None = None,
    damping: float = 0.0,
    steps: int = 1000,
    tolerance: float = 1e-12,
    events: Mapping[str, float] | None = None,
    progress: bool = True,
    data: Mapping[str, Any] | None = None,
    rtol: float = 1e-11,
    **parameters: Any,
) -> xr.Dataset:
    r"""Iterate the equations as a map, as state evolution does, and return the trajectory.

    The unknowns that Newton's method would solve for move by
    :math:`x \leftarrow d\,x + (1 - d)\,F(x)` with damping d; the others follow from them at
    once, conjugates for example.

    Parameters
    ----------
    start : mapping or KernelSolution, optional
        First values of Newton unknowns; by default those of the system.
    damping : float
        Inside [0, 1).
    steps : int
        At most so many.
    tolerance : float
        It ends where :math:`|F(x) - x| \le` tolerance :math:`\cdot (1 + |x|)` for all unknowns.
    events : mapping from str to float, optional
        Levels of unknowns or outputs; when each is first reached is an attribute ``reached_NAME``,
        NaN if it is not.
    progress : bool
        Show a bar if it takes longer than a second.
    data, rtol
        As for :meth:`.kernel.Kernel.solve`.
    **parameters
        By name; numbers.

    Returns
    -------
    xarray.Dataset
        Unknowns, outputs and the ``change`` at each ``step``, the start included. The
        attributes say whether it ``converged`` and how it ended (``ending``).

    Raises
    ------
    ParameterError
        If an equation is implicit, so that there is no map.
    ConvergenceError
        If the equations are not finite at the start.

    Examples
    --------
    >>> import sympy as sp
    >>> import giantstep as gs
    >>> m, h = sp.symbols("m h", real=True)
    >>> beta = sp.Symbol("beta", positive=True)
    >>> magnet = gs.SaddlePointSystem.from_fixed_point(
    ...     {m: sp.tanh(beta * (m + h))}, name="magnet", parameters=(beta, h)
    ... )
    >>> path = gs.lower(magnet).iterate(beta=2, h=0, start={"m": 0.1})
    >>> print(path.ending, f"{float(path.m[-1]):.10f}")
    a fixed point after 18 steps 0.9575040241
    """
    if isinstance(damping, bool) or not isinstance(damping, int | float) or not 0 <= damping < 1:
        raise ParameterError(f"damping must be a number from 0 to less than 1, got {damping!r}")
    steps = whole_number("steps", steps)
    tolerance = positive_number("tolerance", tolerance)
    family = _mapped(kernel, parameters, data, rtol)
    x = _first(family, start)
    low, high = family.box
    rows: list[Array] = []
    tables: list[dict[str, float]] = []
    changes: list[float] = []
    ending = f"no fixed point in {steps} steps"
    converged = False
    for step in tqdm(
        range(steps + 1), desc="steps", leave=False, delay=1, disable=None if progress else True
    ):
        batch = family.described(x[None])
        values = {name: float(column[0]) for name, column in batch.values.items()}
        move = -np.array([values[r.name] for r in family.open.residuals])
        if not np.isfinite(move).all():
            if not rows:
                raise ConvergenceError(
                    f"the map of {kernel.name} is not finite at its start, {_text(family, x)}; "
                    "give another start=",
                    state=x,
                )
            ending = f"the map is not finite at step {step}, {_text(family, x)}"
            break
        rows.append(x)
        tables.append(values)
        changes.append(float(np.max(np.abs(move) / (1 + np.abs(x)))))
        if changes[-1] <= tolerance:
            converged = True
            ending = f"a fixed point after {step} steps"
            break
        x = x + (1 - damping) * move
        if np.any((x < low) | (x > high)):
            ending = f"left the domain of its unknowns after {step + 1} steps, {_text(family, x)}"
            break
    columns = _columns(family, np.array(rows), tables)
    places = np.arange(float(len(rows)))
    reached = _reached(events, places, columns, None)
    columns["change"] = np.array(changes)
    return labelled(
        {name: ("step", column) for name, column in columns.items()},
        coords={"step": np.arange(len(rows))},
        attrs={
            "kernel": kernel.name, "damping": float(damping), "converged": converged,
            "ending": ending, **reached,
            **dict(zip(kernel.parameters, family.rows(x[None])[0].tolist(), strict=True)),
        },
        names=kernel.meanings(),
    )  # fmt: skip


def flow(
    kernel: Kernel,
    /,
    *,
    time: float,
    start: Mapping[str, float] | KernelSolution | None = None,
    points: int | Sequence[float] = 101,
    events: Mapping[str, float] | None = None,
    tolerance: float = 1e-8,
    progress: bool = True,
    data: Mapping[str, Any] | None = None,
    rtol: float = 1e-11,
    **parameters: Any,
) -> xr.Dataset:
    r"""Integrate :math:`\dot x = F(x) - x`, the limit of strong damping of :func:`iterate`.

    Parameters
    ----------
    time : float
        Where it ends.
    start : mapping or KernelSolution, optional
        First values of Newton unknowns; by default those of the system.
    points : int or sequence of float
        Times to record, or how many; in between the integrator takes steps of its own.
    events : mapping from str to float, optional
        Levels of unknowns that Newton's method would solve for; attributes ``reached_NAME`` hold
        the times at which they are first reached, NaN if they are not.
    tolerance : float
        Relative tolerance of the integrator.
    progress : bool
        Show a bar if it takes longer than a second.
    data, rtol
        As for :meth:`.kernel.Kernel.solve`.
    **parameters
        By name; numbers.

    Returns
    -------
    xarray.Dataset
        Unknowns and outputs at each ``time``.

    Raises
    ------
    ParameterError
        If an equation is implicit, so that there is no map.
    ConvergenceError
        If the flow ends before: its message has the time.

    Examples
    --------
    >>> import sympy as sp
    >>> import giantstep as gs
    >>> m, h = sp.symbols("m h", real=True)
    >>> magnet = gs.SaddlePointSystem.from_fixed_point(
    ...     {m: sp.tanh(2 * (m + h))}, name="magnet", parameters=(h,)
    ... )
    >>> path = gs.lower(magnet).flow(time=20, h=0, start={"m": 0.1}, events={"m": 0.5})
    >>> print(f"{float(path.m[-1]):.6f} {path.attrs['reached_m']:.6f}")
    0.957504 1.984051
    """
    family = _mapped(kernel, parameters, data, rtol)

    def velocity(x: Array) -> Array:
        values = family.described(x[None]).values
        return -np.array([values[r.name][0] for r in family.open.residuals])

    times, at = integrated(
        velocity, _first(family, start), time=time, points=points, rtol=tolerance,
        progress=progress, name=kernel.name,
    )  # fmt: skip
    rows = np.array([at(t) for t in times])
    batch = family.described(rows)
    tables = [{n: float(c[i]) for n, c in batch.values.items()} for i in range(len(rows))]
    columns = _columns(family, rows, tables)
    known_names(events or {}, family.names, "unknown of the flow")
    return labelled(
        {name: ("time", column) for name, column in columns.items()},
        coords={"time": times},
        attrs={"kernel": kernel.name, **_reached(events, times, columns, (family.names, at))},
        names=kernel.meanings(),
    )


def _mapped(
    kernel: Kernel, parameters: Mapping[str, Any], data: Mapping[str, Any] | None, rtol: float
) -> OpenKernel:
    """Return the equations as a map, or refuse those that are none."""
    rtol = positive_number("rtol", rtol)
    family = OpenKernel(kernel=kernel, parameters=parameters, data=data, rtol=rtol)
    if not family.open.is_map:
        implicit = [str(e.unknown) for e in family.open.core if e.value is None]
        raise ParameterError(
            f"{kernel.name} is no map x = F(x): the equation given for {implicit[0]} is not solved "
            "for it; write the system with from_fixed_point, every equation as unknown: value"
        )
    return family


def _columns(
    family: OpenKernel, rows: Array, tables: Sequence[Mapping[str, float]]
) -> dict[str, Any]:
    """Return unknowns and outputs along a way."""
    system = family.open.system
    columns: dict[str, Any] = dict(zip(family.names, rows.T, strict=True))
    for name in (*(system.identifiers[y] for y in system.unknowns), *system.outputs):
        if name not in columns:
            columns[name] = np.array([table[name] for table in tables])
    return columns


def _reached(
    events: Mapping[str, float] | None,
    places: Array,
    columns: Mapping[str, Array],
    between: tuple[Sequence[str], Callable[[float], Array]] | None,
) -> dict[str, float]:
    """Return when levels are first reached."""
    events = events or {}
    known_names(events, columns, "quantity")
    found = {}
    for name, level in events.items():
        at = None if between is None else _entry(list(between[0]).index(name), between[1])
        found[f"reached_{name}"] = crossing(places, columns[name], float(level), at)
    return found


def _entry(k: int, state: Callable[[float], Array]) -> Callable[[float], float]:
    return lambda t: float(state(t)[k])


def _first(family: OpenKernel, start: Mapping[str, float] | KernelSolution | None) -> Array:
    """Return the first values of the core unknowns: those given, or those of the kernel."""
    kernel = family.kernel
    found = dict.fromkeys(family.names, np.nan)
    given = start_values(family.names, kernel.domains, start, {})
    if given is not None:
        found.update(zip(family.names, given, strict=True))
    lowered = kernel.solved
    coordinates = {c.symbol: c for c in lowered.stated.coordinates.values()}
    symbols = {lowered.identifiers[x]: x for x in lowered.system.unknowns}
    row = family.rows(np.zeros((1, len(family.names))))[0]
    values = dict(zip(lowered.program.parameters, row.tolist(), strict=True))
    for step in lowered.program.steps:
        if isinstance(step, Newton):
            for y, first in zip(step.unknowns, step.start, strict=True):
                x, value = symbols[str(y)], first.xreplace(values)
                if x in coordinates:
                    value = coordinates[x].at(value)
                    x = coordinates[x].unknown
                name = lowered.identifiers[x]
                if np.isnan(found[name]):
                    found[name] = float(value)
    return np.array([found[name] for name in family.names])


def _text(family: OpenKernel, x: Array) -> str:
    return ", ".join(f"{n} = {v:g}" for n, v in zip(family.names, x, strict=True))
