"""Maps and flows that run: trajectories with events, dense output and exact tangents."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from tqdm.auto import tqdm

from ...atomic_files import write_atomically
from ...errors import ConvergenceError, ParameterError
from ...numeric.arguments import positive_number, whole_number
from ...numeric.branches import Equations, solutions_at
from ...numeric.cache import FileCache
from ...symbolic.lowering.lowered import check_suffix, target_of_suffix
from ...symbolic.lowering.maps import LARGEST, Pass, StateProgram

Array = NDArray[np.float64]
Fill = Callable[[Array], float]

# Rows of passes, over all steps, from which compiling takes less time than it saves.
_WORTH = 300_000
# Steps of a compiled loop between two moves of the bar.
_CHUNK = 2_000
# Of a trajectory: more would take days, and recorded ones more than the memory.
MOST_STEPS, MOST_RECORDED = 10**10, 10**7


@dataclass(frozen=True)
class StateTexts:
    """A program with its generated texts: plain values, which travel and are kept.

    Attributes
    ----------
    name, kind : str
    state, parameters, outputs : tuple of str
    values, output_places : tuple of int
    rows : int
        Of all passes.
    sources : mapping from str to str
        By target: numba, python and numpy.
    """

    name: str
    kind: str
    state: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    values: tuple[int, ...]
    output_places: tuple[int, ...]
    rows: int
    sources: Mapping[str, str]

    @classmethod
    def of(cls, program: StateProgram) -> StateTexts:
        """Print a program."""
        rows = sum(
            len(step.rows) if isinstance(step, Pass) else len(step.matrix) ** 2
            for step in program.steps
        )
        return cls(
            program.name, program.kind, program.state, program.parameters,
            tuple(program.outputs), program.values, tuple(program.outputs.values()), rows,
            {target: program.source(target) for target in ("numba", "python", "numpy")},
        )  # fmt: skip


def _same(program: StateProgram) -> StateProgram:
    return program


@dataclass(frozen=True, eq=False)
class StateKernel:
    """A map or a flow, ready to run.

    Parameters
    ----------
    texts : StateTexts
    program : callable
        Returns the program, for other languages.
    fill : callable, optional
        Puts into a memory what the program does not compute, before each run of it, and returns an
        estimate of the error of that.
    cache_folder : path, optional

    Examples
    --------
    >>> import sympy as sp
    >>> m, h = sp.symbols("m h", real=True)
    >>> magnet = StateKernel.of(StateProgram.of({m: sp.tanh(2*m + h)}, name="magnet",
    ...                                         parameters=(h,)))
    >>> print(magnet.iterate({"m": 0.1}, steps=30, h=0.0)["m"][-1].round(6))
    0.957504
    """

    texts: StateTexts
    program: Callable[[], StateProgram]
    fill: Fill | None = None
    cache_folder: str | os.PathLike[str] | None = None

    @classmethod
    def of(cls, program: StateProgram, **options: Any) -> StateKernel:
        """Return the kernel of a program."""
        return cls(StateTexts.of(program), partial(_same, program), **options)

    def __eq__(self, other: object) -> bool:
        """Tell whether another kernel is of the same equations."""
        return self.texts == other.texts if isinstance(other, StateKernel) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.texts.sources.values()))

    # ------------------------------------------------------------------ code

    def source(self, target: str = "numba") -> str:
        """Return the generated text: numba, python, numpy, jax or c."""
        return self.texts.sources.get(target) or self.program().source(target)

    def write(self, path: str | os.PathLike[str], target: str | None = None) -> list[Path]:
        """Write files that run without giantstep, and return their paths."""
        place = Path(path)
        target = target_of_suffix(place.suffix) if target is None else target
        if target != "c":
            check_suffix("numba" if target in ("numpy", "jax", "python") else target, place)
        files = self.program().files(target, name=place.stem)
        found = [place.with_name(file) for file in files]
        for one, text in zip(found, files.values(), strict=True):
            write_atomically(one, text)
        return found

    def _module(self, runs: int) -> Any:
        """Return the module that takes least time for so many runs."""
        cache = FileCache(self.cache_folder)
        target = "numba" if runs * self.texts.rows > _WORTH else "numpy"
        return cache.load_module(f"{self.texts.name}_{target}", self.texts.sources[target])

    @cached_property
    def _plain(self) -> Any:
        cache = FileCache(self.cache_folder)
        return cache.load_module(f"{self.texts.name}_python", self.texts.sources["python"])

    # ------------------------------------------------------------------ one point

    def row(self, state: Mapping[str, float] | Sequence[float]) -> Array:
        """Return a state as an array in the order of its names.

        Raises
        ------
        ParameterError
            If a variable is missing, unknown or not finite.
        """
        if isinstance(state, Mapping):
            missing = [name for name in self.texts.state if name not in state]
            unknown = [name for name in state if name not in self.texts.state]
            if missing or unknown:
                raise ParameterError(
                    f"start must have the variables {', '.join(self.texts.state)}; "
                    + (f"{missing[0]} is missing" if missing else f"there is no {unknown[0]}")
                )
            state = [state[name] for name in self.texts.state]
        found = np.array(state, dtype=float)
        if found.shape != (len(self.texts.state),) or not np.isfinite(found).all():
            raise ParameterError(
                f"start must be {len(self.texts.state)} finite numbers, got {found.shape}"
            )
        return found

    def given(self, parameters: Mapping[str, float]) -> Array:
        """Return parameters as an array in the order of their names."""
        wanted = self.texts.parameters
        wrong = set(wanted) ^ set(parameters)
        if wrong:
            raise ParameterError(
                f"parameters are {', '.join(wanted)}; {sorted(wrong)[0]} is "
                f"{'missing' if sorted(wrong)[0] in wanted else 'none of them'}"
            )
        return np.array([parameters[name] for name in wanted], dtype=float)

    def _applied(self, module: Any, memory: Array) -> float:
        error = self.fill(memory) if self.fill is not None else 0.0
        with np.errstate(all="ignore"):
            module.apply(memory)
        return error

    def values(self, state: Any, **parameters: float) -> tuple[Array, dict[str, float]]:
        """Return the next state, or the velocity, and the outputs."""
        module = self._module(1)
        memory = module.new_memory(self.row(state), self.given(parameters))
        self._applied(module, memory)
        outputs = {
            name: float(memory[place])
            for name, place in zip(self.texts.outputs, self.texts.output_places, strict=True)
        }
        return memory[list(self.texts.values)], outputs

    def jacobian(self, state: Any, *, runs: int = 1, **parameters: float) -> Array:
        """Return derivatives of the values by state and parameters, exact to rounding.

        Parameters
        ----------
        state : mapping or sequence
        runs : int
            How many of these will be asked for: what is compiled depends on it.

        Raises
        ------
        ParameterError
            If a part of the values comes from quadrature, which has no tangents.
        """
        module = self._tangent_module(runs)
        memory = module.new_memory(self.row(state), self.given(parameters))
        return self._tangents(module, memory, np.eye(self._directions))

    @property
    def _directions(self) -> int:
        return len(self.texts.state) + len(self.texts.parameters)

    def _tangent_module(self, runs: int) -> Any:
        if self.fill is not None:
            raise ParameterError(
                f"{self.texts.name} has averages without closed form, which have no tangents here"
            )
        module = self._module(runs * self._directions)
        return module if hasattr(module, "apply_tangent") else self._plain

    def _tangents(self, module: Any, memory: Array, along: Array) -> Array:
        tangent = np.zeros((len(memory), self._directions))
        tangent[: self._directions] = along
        self._applied(module, memory)
        module.apply_tangent(memory, tangent)
        return tangent[list(self.texts.values)]

    # ------------------------------------------------------------------ trajectories

    def iterate(
        self, start: Any, *, steps: int, every: int = 1, progress: bool = True,
        **parameters: float,
    ) -> dict[str, Array]:  # fmt: skip
        """Iterate the map.

        Parameters
        ----------
        start : mapping or sequence
        steps : int
        every : int
            Record each so-many-th step.
        progress : bool
            Show a bar if it takes longer than a second.
        **parameters

        Returns
        -------
        dict of str to array
            ``step``, variables and outputs at the recorded steps, the start first; with
            ``quadrature_error`` where averages are approximate.

        Raises
        ------
        ParameterError
            If an argument is wrong.
        ConvergenceError
            If the state diverges: the message has the step and the growth, the error's `state` what
            was recorded.
        """
        self._require("map")
        steps = whole_number("steps", steps, minimum=0, maximum=MOST_STEPS)
        every = whole_number("every", every)
        if steps // every > MOST_RECORDED:
            raise ParameterError(
                f"every must be at least {-(-steps // MOST_RECORDED)}, so that no more than "
                f"{MOST_RECORDED} of {steps} steps are recorded; got {every}"
            )
        module = self._module(steps + 1)
        memory = module.new_memory(self.row(start), self.given(parameters))
        rows, errors, numbers = [], [], []
        done = 0
        bar = tqdm(total=steps, desc="steps", leave=False, delay=1,
                   disable=None if progress else True)  # fmt: skip
        with bar:
            while done <= steps:
                if self.fill is None and hasattr(module, "iterate"):
                    record = np.empty((min(_CHUNK, steps + 1 - done), self._width))
                    count = module.iterate(memory, record, len(record))
                    diverged = count < len(record) or (
                        done + count <= steps and not np.all(np.abs(memory[: self._size]) < LARGEST)
                    )
                else:
                    record = np.empty((1, self._width))
                    errors.append(self._applied(module, memory))
                    record[0, : self._size] = memory[: self._size]
                    record[0, self._size :] = memory[list(self.texts.output_places)]
                    memory[: self._size] = memory[list(self.texts.values)]
                    count = 1
                    diverged = done < steps and not np.all(np.abs(memory[: self._size]) < LARGEST)
                places = np.arange(done, done + count)
                kept = (places % every == 0) | (places == steps)
                rows.append(record[:count][kept])
                numbers.append(places[kept])
                done += count
                bar.update(count)
                if diverged:
                    break
        columns = self._columns("step", np.concatenate(numbers), np.concatenate(rows))
        if errors:
            columns["quadrature_error"] = np.array(errors)[columns["step"].astype(int)]
        if done <= steps:
            raise self._diverged(done, columns)
        return columns

    @property
    def _size(self) -> int:
        return len(self.texts.state)

    @property
    def _width(self) -> int:
        return self._size + len(self.texts.outputs)

    def _columns(self, name: str, places: Array, rows: Array) -> dict[str, Array]:
        names = (*self.texts.state, *self.texts.outputs)
        return {name: places, **dict(zip(names, rows.T.copy(), strict=True))}

    def _diverged(self, step: int, columns: dict[str, Array]) -> ConvergenceError:
        sizes = np.max(np.abs([columns[name] for name in self.texts.state]), axis=0)
        grown = (
            f" and has grown by a factor of {sizes[-1] / sizes[-2]:.3g} in the step before"
            if len(sizes) > 1 and sizes[-2]
            else ""
        )
        return ConvergenceError(
            f"the trajectory of {self.texts.name} diverges in step {step}: the largest variable is "
            f"{sizes[-1]:.3g} before it{grown}; take shorter steps",
            state=columns,
        )

    def sensitivities(self, start: Any, *, steps: int, **parameters: float) -> Array:
        """Return derivatives of the trajectory by its start and the parameters.

        Returns
        -------
        array, shape (steps + 1, variables, variables + parameters)
            Exact tangents along the way.
        """
        self._require("map")
        steps = whole_number("steps", steps, minimum=0)
        module = self._tangent_module(steps)
        memory = module.new_memory(self.row(start), self.given(parameters))
        along = np.eye(self._directions)
        found = [along[: self._size].copy()]
        for _ in range(steps):
            along[: self._size] = self._tangents(module, memory, along)
            memory[: self._size] = memory[list(self.texts.values)]
            found.append(along[: self._size].copy())
        return np.array(found)

    def flow(
        self, start: Any, *, time: float, points: int | Sequence[float] = 101,
        rtol: float = 1e-8, progress: bool = True, **parameters: float,
    ) -> Flow:  # fmt: skip
        """Integrate the flow from time 0, by SciPy's DOP853.

        Parameters
        ----------
        start : mapping or sequence
        time : float
            Where it ends.
        points : int or sequence of float
            Times at which it is recorded, or how many.
        rtol : float
            Relative tolerance of a step; the absolute one is a hundredth of it.
        progress : bool
            Show a bar if it takes longer than a second.
        **parameters

        Raises
        ------
        ConvergenceError
            If the integrator fails, or the state diverges.
        """
        self._require("flow")
        module = self._module(1000)
        memory = module.new_memory(self.row(start), self.given(parameters))
        places = list(self.texts.values)

        def velocity(x: Array) -> Array:
            memory[: self._size] = x
            self._applied(module, memory)
            return memory[places].copy()

        times, at = integrated(
            velocity, self.row(start), time=time, points=points, rtol=rtol, progress=progress,
            name=self.texts.name,
        )  # fmt: skip
        rows = np.empty((len(times), self._width))
        for k, t in enumerate(times):
            rows[k, : self._size] = at(t)
            velocity(rows[k, : self._size])
            rows[k, self._size :] = memory[list(self.texts.output_places)]
        return Flow(self._columns("time", times, rows), at)

    def _require(self, kind: str) -> None:
        if self.texts.kind != kind:
            raise ParameterError(f"{self.texts.name} is a {self.texts.kind}, not a {kind}")

    # ------------------------------------------------------------------ fixed points

    def fixed_points(
        self, starts: Sequence[Any], *, held: Sequence[str] = (), **parameters: float
    ) -> list[FixedPoint]:
        """Return the states that stay, by Newton's method from several starts.

        Parameters
        ----------
        starts : sequence
            First values of Newton's method.
        held : sequence of str
            Variables that stay as they are in the starts.
        **parameters

        Returns
        -------
        list of FixedPoint
            Each once.
        """
        given = self.given(parameters)
        module = self._tangent_module(30 * len(starts))
        still = np.eye(self._size, self._directions) if self.texts.kind == "map" else 0.0
        here = np.array([self.row(start) for start in starts])

        def evaluate(points: Array) -> tuple[Array, Array]:
            residuals, slopes = [], []
            for point in points[:, :-1]:
                memory = module.new_memory(point, given)
                found = self._tangents(module, memory, np.eye(self._directions))
                rest = memory[list(self.texts.values)]
                residuals.append(rest - point if self.texts.kind == "map" else rest)
                slopes.append((found - still)[:, : self._size + 1])
            matrices = np.array(slopes)
            # The last variable of continuation; nothing depends on it here.
            matrices[:, :, -1] = 0.0
            return np.array(residuals), matrices

        n = self._size
        bounds = np.full(n + 1, np.inf)
        fixed = tuple(self.texts.state.index(name) for name in held)
        equations = Equations(evaluate, -bounds, bounds, np.ones(n + 1), held=fixed)
        first = np.concatenate([here, np.zeros((len(here), 1))], axis=1)
        with np.errstate(all="ignore"):
            found, _ = solutions_at(equations, first)
        free = [k for k in range(n) if k not in fixed]
        return [self._fixed_point(point[:-1], free, parameters) for point in found]

    def _fixed_point(
        self, state: Array, free: list[int], parameters: Mapping[str, float]
    ) -> FixedPoint:
        matrix = self.jacobian(state, runs=1, **parameters)[np.ix_(free, free)]
        eigenvalues = np.linalg.eigvals(matrix)
        by = np.abs(eigenvalues) if self.texts.kind == "map" else eigenvalues.real
        _, outputs = self.values(state, **parameters)
        return FixedPoint(
            dict(zip(self.texts.state, state.tolist(), strict=True)), outputs,
            tuple(complex(x) for x in eigenvalues[np.argsort(-by)]), self.texts.kind,
        )  # fmt: skip


@dataclass(frozen=True)
class Flow:
    """A solution of a flow.

    Attributes
    ----------
    columns : dict of str to array
        ``time``, variables and outputs at the recorded times.
    at : callable
        Returns the state at any time in between.
    """

    columns: dict[str, Array]
    at: Callable[[float], Array]


@dataclass(frozen=True)
class FixedPoint:
    """A state that stays.

    Attributes
    ----------
    state, outputs : mapping from str to float
    eigenvalues : tuple of complex
        Of the linearised map or flow, the least stable first.
    kind : {"map", "flow"}
    """

    state: Mapping[str, float]
    outputs: Mapping[str, float]
    eigenvalues: tuple[complex, ...]
    kind: str

    @property
    def unstable(self) -> int:
        """Number of directions that grow."""
        if self.kind == "map":
            return sum(abs(x) > 1 + 1e-9 for x in self.eigenvalues)
        return sum(x.real > 1e-9 for x in self.eigenvalues)

    @property
    def is_stable(self) -> bool:
        """Whether every small deviation shrinks, or stays."""
        return self.unstable == 0


def integrated(
    velocity: Callable[[Array], Array], start: Array, *, time: float,
    points: int | Sequence[float], rtol: float, progress: bool, name: str,
) -> tuple[Array, Callable[[float], Array]]:  # fmt: skip
    """Integrate a flow from time 0, by SciPy's DOP853.

    Returns
    -------
    array
        The times that `points` asks for.
    callable
        The state at any time.

    Raises
    ------
    ParameterError
        If `time` or `points` are wrong.
    ConvergenceError
        If the integrator fails, or the state diverges.
    """
    time, rtol = positive_number("time", time), positive_number("rtol", rtol)
    times = (
        np.linspace(0.0, time, whole_number("points", points, minimum=2))
        if isinstance(points, int)
        else np.asarray(points, dtype=float)
    )
    if (
        times.ndim != 1 or not len(times) or not (np.diff(times) > 0).all() or times[0] < 0
        or times[-1] > time
    ):  # fmt: skip
        raise ParameterError(f"points must be increasing times from 0 to {time:g}")
    bar = tqdm(total=time, desc="time", leave=False, delay=1, disable=None if progress else True,
               bar_format="{l_bar}{bar}| {n:.3g}/{total:.3g}")  # fmt: skip

    def moving(t: float, x: Array) -> Array:
        bar.n = min(max(bar.n, t), time)
        bar.update(0)
        return velocity(x)

    def escapes(t: float, x: Array) -> float:
        return float(LARGEST - np.max(np.abs(x)))

    escapes.terminal = True  # type: ignore[attr-defined]
    with bar:
        solved = solve_ivp(
            moving, (0.0, time), start, method="DOP853", rtol=rtol, atol=rtol / 100,
            dense_output=True, events=escapes,
        )  # fmt: skip
    if solved.status != 0:
        raise ConvergenceError(
            f"the flow of {name} ends at t = {solved.t[-1]:.6g}: "
            + ("its state diverges" if solved.status == 1 else solved.message),
            state=solved.y[:, -1],
        )
    return times, solved.sol


def crossing(
    places: Array, values: Array, level: float, between: Callable[[float], float] | None = None
) -> float:
    """Return where values first reach a level, NaN if they do not.

    Parameters
    ----------
    places, values : array (n,)
        Of a map the first place at or beyond the level is meant.
    level : float
    between : callable, optional
        The value at any place: of a flow, where the crossing itself is found.
    """
    above = values >= level if values[0] < level else values <= level
    if not above.any():
        return math.nan
    k = int(np.argmax(above))
    if between is None or k == 0:
        return float(places[k])
    return float(brentq(lambda t: between(t) - level, places[k - 1], places[k], xtol=1e-12))
