"""Branches of solutions of a kernel over one parameter, and the points where they meet.

They are found in :mod:`.branch_search`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...errors import ConvergenceError, ParameterError
from ...labelled import labelled
from ...numeric.arguments import real_number
from ...numeric.branches import CROSSING
from ...pages import Block, Listing
from ...result import Result, quantity
from ...symbolic.systems.branch_conditions import Condition, OpenSystem
from ...symbolic.systems.saddle_point import SaddlePointSystem
from ..figures import BLUE, GREEN, GREY, VERMILLION, Pen, drawing
from .arguments import known_names
from .families import Extremum
from .lower import lower

if TYPE_CHECKING:
    import xarray as xr

    from .branch_search import Solutions
    from .kernel import Kernel
    from .solution import KernelSolution

Array = NDArray[np.float64]

SPINODAL, SECOND_ORDER, FIRST_ORDER = "spinodal", "second-order", "first-order"
INSTABILITY = "instability"
# How far, in typical sizes, the solver of the kernel may move a solution that it polishes.
_MOVED = 1e-6
COLOURS = (BLUE, VERMILLION, GREEN)
MARKERS = {SPINODAL: "o", INSTABILITY: "v", SECOND_ORDER: "s", FIRST_ORDER: "D"}


@dataclass(frozen=True)
class End:
    """Where and why a branch ends.

    Attributes
    ----------
    value : float
        Of the parameter, at the last point.
    unknowns : mapping from str to float
    reason : str
    """

    value: float
    unknowns: Mapping[str, float]
    reason: str

    def __str__(self) -> str:
        found = ", ".join(f"{name} = {x:.6g}" for name, x in self.unknowns.items())
        return f"{self.reason} ({found})"


@dataclass(frozen=True, repr=False)
class Branch(Result):
    """A curve of solutions, through all of its folds.

    Attributes
    ----------
    over : str
        The parameter.
    parameter : array (K,)
        Its values along the curve; they turn round at folds.
    unknowns, outputs : mapping from str to array (K,)
    residual : array (K,)
        Largest absolute residual of the core equations.
    free_energy : array (K,) or None
    hessian_eigenvalues : array (K, k) or None
        Of the free energy as a function of its k order parameters, conjugates eliminated, in
        increasing order; None for a system that was not made from a free energy.
    map_radius : array (K,) or None
        Spectral radius of the map x → F(x) of the equations, below one where state evolution
        converges; None if they are not in this form.
    stable : array (K,) of bool or None
        By one of them, as :attr:`BranchDiagram.stability` says; None without both.
    special : tuple of int
        Points at which stability may change: folds and crossings.
    ends : (End, End)
    held : mapping from str to float
        Newton unknowns that are at an end of their domain all along it, and which: m = 0, say.
    """

    _document = "branch"

    over: str
    parameter: Array
    unknowns: Mapping[str, Array]
    outputs: Mapping[str, Array]
    residual: Array
    free_energy: Array | None
    hessian_eigenvalues: Array | None
    map_radius: Array | None
    stable: NDArray[np.bool_] | None
    special: tuple[int, ...]
    ends: tuple[End, End]
    held: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.parameter)

    def __getitem__(self, name: str) -> Array:
        tables = {self.over: self.parameter, **self.unknowns, **self.outputs}
        if self.free_energy is not None:
            tables.setdefault("free_energy", self.free_energy)
        known_names((name,), tables, "value of a branch")
        return tables[name]

    def runs(self) -> Iterator[tuple[slice, bool | None]]:
        """Iterate over parts of one stability, with this; neighbours share a point."""
        if self.stable is None:
            yield slice(0, len(self)), None
            return
        stable = self.stable.copy()
        for k in self.special:
            # An eigenvalue that vanishes has the sign of rounding: take that of a neighbour.
            stable[k] = stable[k + 1] if k + 1 < len(self) else stable[k - 1]
        changes = [0, *(np.flatnonzero(np.diff(stable.astype(int))) + 1).tolist(), len(self) - 1]
        for a, b in itertools.pairwise(dict.fromkeys(changes)):
            yield slice(a, b + 1), bool(stable[a])

    def page(self) -> Iterable[Block]:
        """Return how many points there are, and where."""
        low, high = self.parameter.min(), self.parameter.max()
        yield f"{len(self)} points, {self.over} from {low:.6g} to {high:.6g}"

    def __repr__(self) -> str:
        return f"Branch({self})"


class Traced:
    """A result with the equations that it came from, which documents do not hold."""

    _document: ClassVar[str]
    _origin: ClassVar[Any] = None
    _again: ClassVar[str] = "find it again"
    """What to do about a result that was read from a document."""

    def traced(self, origin: object) -> Self:
        """Return the result after it has been told where it came from."""
        object.__setattr__(self, "_origin", origin)
        return self

    def __reduce__(self) -> Any:
        # Programs hold functions that cannot be sent; what is sent is the document.
        kind: Any = type(self)
        return kind.from_json, (kind.to_json(self),)

    @property
    def origin(self) -> Any:
        """Where it came from.

        Raises
        ------
        ParameterError
            If it was read from a document.
        """
        if self._origin is None:
            raise ParameterError(
                f"this {self._document} was read from a document, which holds no equations: "
                f"{self._again}"
            )
        return self._origin


@dataclass(frozen=True)
class Stated:
    """A :class:`.branch_conditions.Condition` by the names of its symbols."""

    kind: str
    component: int
    output: str
    held: Mapping[str, float]
    held_other: Mapping[str, float]
    others: tuple[int, ...] = ()

    @classmethod
    def of(cls, condition: Condition) -> Stated:
        """Return the names in a condition."""
        names = condition.of.system.identifiers
        held, other = (
            {names[x]: float(end) for x, end in those}
            for those in (condition.held, condition.held_other)
        )
        return cls(
            condition.kind, condition.component, condition.output, held, other, condition.others
        )

    def on(self, system: OpenSystem) -> Condition:
        """Return the condition on a system that has these names."""
        symbols = {name: x for x, name in system.system.identifiers.items()}
        held, other = (
            tuple((symbols[n], sp.Rational(end)) for n, end in those.items())
            for those in (self.held, self.held_other)
        )
        return Condition(system, self.kind, self.component, self.others, self.output, held, other)


@dataclass(frozen=True, eq=False)
class Meeting:
    """The equations of a special point.

    Attributes
    ----------
    condition : Condition
    control : Symbol
        The parameter that meets it.
    parameters : mapping from str to number
        The others, as they were given.
    data : mapping, optional
    """

    condition: Condition
    control: sp.Symbol
    parameters: Mapping[str, Any]
    data: Mapping[str, Any] | None

    @cached_property
    def system(self) -> SaddlePointSystem:
        """The equations with the condition, in which the parameter is an unknown."""
        return self.condition.system(self.control)


@dataclass(frozen=True, repr=False)
class SpecialPoint(Result, Traced):
    """A point where solutions meet, exchange or satisfy a condition.

    Attributes
    ----------
    kind : str
        "spinodal" (two solutions meet and vanish), "second-order" (branches cross, and what
        leaves is stable, or its stability unknown), "instability" (branches cross, and nothing
        stable leaves: the phase loses its stability to one that is far away), "first-order" (the
        free energies of two phases cross, which are the lowest, or the lowest stable ones) or
        "zero of …" an output.
    over : str
        The parameter.
    value : float
        Where it is.
    error : float
        Estimated absolute error of `value`.
    unknowns : mapping from str to float
        At a first-order transition those of one phase, and with ``…_other`` names of the other.
    stated : Stated
        What holds there besides the equations.
    start : mapping from str to float
        First values for its Newton unknowns.
    """

    _document = "special point"
    _entry = "document"
    _again = "take with_kernel(kernel) of its diagram"

    kind: str = field(metadata=quantity("kind"))
    over: str
    value: float = field(metadata=quantity("value"))
    error: float
    unknowns: Mapping[str, float] = field(metadata=quantity("unknowns"))
    stated: Stated
    start: Mapping[str, float]

    @property
    def errors(self) -> Mapping[str, float]:
        """Estimated absolute errors."""
        return {"value": self.error}

    @property
    def condition(self) -> Condition:
        """What holds there besides the equations, in symbols."""
        meeting: Meeting = self.origin
        return meeting.condition

    @property
    def system(self) -> SaddlePointSystem:
        """The equations with the condition, in which the parameter is an unknown."""
        meeting: Meeting = self.origin
        return meeting.system

    def refine(self, digits: int | None = None, **options: Any) -> KernelSolution:
        """Solve the equations with the condition, to any number of digits.

        Parameters
        ----------
        digits : int, optional
        **options
            Of :meth:`.kernel.Kernel.solve`.

        Returns
        -------
        KernelSolution
            The parameter is among its unknowns.

        Raises
        ------
        ConvergenceError
            If Newton's method fails, as where two special points are next to each other.

        Examples
        --------
        >>> import sympy as sp
        >>> import giantstep as gs
        >>> m, h = sp.symbols("m h", real=True)
        >>> beta = sp.Symbol("beta", positive=True)
        >>> magnet = gs.SaddlePointSystem.from_fixed_point(
        ...     {m: sp.tanh(beta * (m + h))}, name="magnet", parameters=(beta, h)
        ... )
        >>> found = gs.lower(magnet).branches("beta", (0.5, 3), bounds={"m": (-1, 1)}, h=-0.1)
        >>> print(found.spinodals[0].refine(digits=20).beta)
        1.37223591109721748832329...
        """
        kernel = lower(self.system)
        # Newton's method moves an unknown itself, or a coordinate in its place.
        moved = {*kernel.code.unknowns, *kernel._coordinates}
        start = {name: x for name, x in self.start.items() if name in moved}
        held = self.origin.parameters
        return kernel.solve(
            start=start, digits=digits, data=self.origin.data, **{**held, **options}
        )

    def latex(self) -> str:
        """Return the equations and the condition in LaTeX; from a document, the numbers."""
        if self._origin is None:
            return super().latex()
        return " ".join(self.system.latex().splitlines())

    def page(self) -> Iterable[Block]:
        """Return kind and place."""
        yield f"{self.kind} at {self.over} = {self.value:.12g} ± {self.error:.1e}"


COLUMNS = (
    "branch", "residual", "branch_free_energy", "map_radius", "stable", "hessian_eigenvalue",
)  # fmt: skip
"""Columns of the data set of a diagram besides parameter, unknowns and outputs."""


@dataclass(frozen=True, repr=False)
class BranchDiagram(Result, Traced):
    """All branches over one parameter; from :meth:`.kernel.Kernel.branches`.

    Attributes
    ----------
    name, title : str
        Of the equations.
    over : str
    within : (float, float)
    parameters : mapping from str to float
        All parameters but that one.
    bounds : mapping from str to (float, float)
        Where unknowns were wanted.
    branches : tuple of Branch
    points : tuple of SpecialPoint
        Sorted by kind and value.
    extremum : Extremum
        What the free energy has at a stable phase.
    stability : str
        What `stable` means here, in words.
    equations : mapping from str to str
        LaTeX of the residual of each Newton unknown.
    labels : mapping from str to str
        LaTeX of names.
    sought : str
        How the branches were looked for.
    """

    _document = "branch diagram"
    _again = "take with_kernel(kernel) first"

    name: str
    title: str
    over: str
    within: tuple[float, float]
    parameters: Mapping[str, float]
    bounds: Mapping[str, tuple[float, float]]
    branches: tuple[Branch, ...]
    points: tuple[SpecialPoint, ...]
    extremum: Extremum
    stability: str
    equations: Mapping[str, str]
    labels: Mapping[str, str]
    sought: str

    @property
    def kernel(self) -> Kernel:
        """The kernel of the equations."""
        solutions: Solutions = self.origin
        return solutions.family.kernel

    def with_kernel(
        self, kernel: Kernel, *, data: Mapping[str, Any] | None = None
    ) -> BranchDiagram:
        """Return a diagram that was read from a document, with its equations.

        Parameters
        ----------
        kernel : Kernel
            Of the same system.
        data : mapping, optional
            Those that were given to :meth:`.kernel.Kernel.branches`.

        Raises
        ------
        ParameterError
            If the kernel has another name, or lacks a parameter or an unknown.
        """
        require_kernel_of(self.name, kernel)
        return kernel.restored_branches(self, data)

    @property
    def spinodals(self) -> tuple[SpecialPoint, ...]:
        """Points where two solutions meet and vanish."""
        return self._of(SPINODAL)

    @property
    def transitions(self) -> tuple[SpecialPoint, ...]:
        """First-order and second-order transitions."""
        return self._of(FIRST_ORDER, SECOND_ORDER)

    def zeros(self, output: str) -> tuple[SpecialPoint, ...]:
        """Return the points where an output vanishes; it has to be among ``zeros=``."""
        known_names((output,), self.branches[0].outputs, "output")
        return self._of(zero_of(output))

    def _of(self, *kinds: str) -> tuple[SpecialPoint, ...]:
        return tuple(p for p in self.points if p.kind in kinds)

    def at(self, value: float, **options: Any) -> tuple[KernelSolution, ...]:
        """Return all solutions at one value of the parameter.

        Parameters
        ----------
        value : float
            Inside `within`.
        **options
            Of :meth:`.kernel.Kernel.solve`, such as ``digits=40``.

        Returns
        -------
        tuple of KernelSolution
            In the order of the first unknown.

        Raises
        ------
        ConvergenceError
            If the solver of the kernel does not stay at a solution, as next to a fold; or cannot
            tell its residual, where all terms of an implicit equation vanish at once.
        """
        search = self.origin
        value = real_number(f"value of {self.over}", value)
        if not self.within[0] <= value <= self.within[1]:
            raise ParameterError(
                f"value of {self.over} must be from {self.within[0]:g} to {self.within[1]:g}, "
                f"got {value:g}"
            )
        given = {**self.parameters, self.over: value}
        found = []
        for y, held in search.solutions(value):
            start = dict(zip(search.family.names, y[:-1].tolist(), strict=True))
            kernel = search.family.on_face(held) if held else self.kernel
            free = {name: x for name, x in start.items() if name not in held}
            solution = kernel.solve(start=free, data=search.family.data, **{**given, **options})
            moved = np.array([float(solution.values[n]) for n in start]) - y[:-1]
            if np.max(np.abs(moved) / search.equations.sizes(y)[:-1]) > _MOVED:
                raise ConvergenceError(
                    f"Newton's method leaves the solution {start} at {self.over} = {value:g}: "
                    "another one is near; take a value farther from the fold",
                    state=y,
                )
            found.append(solution)
        return tuple(found)

    def plot(self, unknown: str | None = None, *, ax: Any = None, **style: Any) -> Any:
        """Draw the branches: stable ones solid, others dashed, special points marked.

        Parameters
        ----------
        unknown : str, optional
            What to draw, an unknown, an output or "free_energy"; default: the first unknown.
        """
        name = next(iter(self.equations)) if unknown is None else unknown
        with drawing(ax, style) as (axes, pen):
            self._draw(name, axes, pen)
        return axes

    def _draw(self, name: str, ax: Any, pen: Pen) -> None:
        label = pen("").get("label") or "_"
        for n, branch in enumerate(self.branches):
            values = branch[name]
            for part, stable in branch.runs():
                look = pen(
                    linestyle="-" if stable or stable is None else "--",
                    color=COLOURS[n % len(COLOURS)],
                )
                ax.plot(branch.parameter[part], values[part], **look | {"label": label})
                label = "_"
        for kind, points in itertools.groupby(self.points, key=lambda p: p.kind):
            label = kind
            for p in points:
                for key in (name, f"{name}_other"):
                    if key in p.unknowns:
                        ax.plot(
                            p.value, p.unknowns[key], MARKERS.get(kind, "x"), color=GREY,
                            markersize=5, linestyle="", label=label,
                        )  # fmt: skip
                        label = "_"
                if kind == FIRST_ORDER:
                    ax.axvline(p.value, color=GREY, linewidth=0.8, linestyle=":")
        labels = self.labels
        ax.set_xlabel(f"${labels[self.over]}$" if self.over in labels else self.over)
        ax.set_ylabel(f"${labels[name]}$" if name in labels else name)
        if any(not x.startswith("_") for x in ax.get_legend_handles_labels()[1]):
            ax.legend(frameon=False)

    def to_dataset(self) -> xr.Dataset:
        """Return all points with their branches as a labelled data set, one row each."""
        columns: dict[str, Array] = {
            "branch": np.concatenate([np.full(len(b), n) for n, b in enumerate(self.branches)])
            if self.branches else np.zeros(0, dtype=int),
        }  # fmt: skip

        tables: list[dict[str, Any]] = [
            {
                self.over: b.parameter, **b.unknowns, **b.outputs, "residual": b.residual,
                "branch_free_energy": b.free_energy, "map_radius": b.map_radius, "stable": b.stable,
            }
            for b in self.branches
        ]  # fmt: skip
        for name in tables[0] if tables else ():
            parts = [table[name] for table in tables]
            if all(part is not None for part in parts):
                columns[name] = np.concatenate(parts)
        found: dict[str, Any] = {name: ("point", column) for name, column in columns.items()}
        modes = [e for b in self.branches if (e := b.hessian_eigenvalues) is not None]
        if modes:
            found["hessian_eigenvalue"] = (("point", "mode"), np.concatenate(modes))
        about = {"kernel": self.name, "stability": self.stability, "sought": self.sought}
        # An m or a beta of one's own is not that of the models here.
        names = {name: f"{name}, unknown" for b in self.branches for name in b.unknowns}
        names[self.over] = f"{self.over}, parameter"
        return labelled(found, attrs={**about, **self.parameters}, names=names)

    def latex(self) -> str:
        """Return the conditions of the special points in LaTeX."""
        names = ", ".join(self.labels.get(n, n) for n in self.equations)
        jacobian = rf"\frac{{\partial R}}{{\partial ({names})}}"
        control = self.labels.get(self.over, self.over)
        conditions = {
            SPINODAL: rf"\det {jacobian} = 0",
            CROSSING: rf"w^\top {jacobian} = 0,\ w^\top \frac{{\partial R}}{{\partial "
            rf"{control}}} = 0",
            FIRST_ORDER: r"f = f'",
        }
        rows = [
            rf"R_{{{self.labels.get(name, name)}}} &= {residual}"
            for name, residual in self.equations.items()
        ]
        for kind in dict.fromkeys(p.kind for p in self.points):
            crosses = kind in (SECOND_ORDER, INSTABILITY)
            condition = conditions.get(CROSSING if crosses else kind)
            if condition is None:
                condition = rf"\mathrm{{{kind.removeprefix('zero of ')}}} = 0".replace("_", r"\_")
            values = r",\ ".join(f"{p.value:.10g}" for p in self._of(kind))
            rows.append(rf"\text{{{kind}}}:\ R &= 0,\ {condition}:\quad {control} = {values}")
        return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"

    def page(self) -> Iterable[Block]:
        """Return branches with their ends, and special points."""
        n = len(self.branches)
        low, high = self.within
        yield (
            f"{self.title}: {n} branch{'' if n == 1 else 'es'} over {self.over} from {low:g} to "
            f"{high:g}; {self.stability}"
        )
        lines = [
            f"branch {k}, {len(branch)} points: from {branch.ends[0]} to {branch.ends[1]}"
            for k, branch in enumerate(self.branches)
        ]
        yield Listing([*lines, *map(str, self.points)], mark="")
        yield self.sought

    def __repr__(self) -> str:
        return (
            f"BranchDiagram({self.name}, {self.over} from {self.within[0]:g} to "
            f"{self.within[1]:g}: {len(self.branches)} branches, {len(self.points)} special points)"
        )


def require_kernel_of(name: str, kernel: Any) -> None:
    """Refuse what is no kernel of the equations of a diagram.

    Raises
    ------
    ParameterError
        If it is none, or has another name.
    """
    if not hasattr(kernel, "restored_branches"):
        raise ParameterError(f"kernel must be one that giantstep.lower returns, got {kernel!r}")
    if kernel.name != name:
        raise ParameterError(
            f"kernel must be that of {name}, of which the diagram is, got {kernel.name}"
        )


def zero_of(output: str) -> str:
    """Return the kind of a point where an output vanishes."""
    return f"zero of {output}"
