"""Branches of solutions of a kernel over one parameter, and the points where they meet.

They are found in :mod:`.branch_search`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...errors import ConvergenceError, ParameterError
from ...numeric.branches import CROSSING
from ...pages import Typeset
from ...symbolic.branch_conditions import Condition
from ...symbolic.saddle_point import SaddlePointSystem
from ..figures import BLUE, GREEN, GREY, VERMILLION, new_figure, styled
from .arguments import known_names
from .lower import lower

if TYPE_CHECKING:
    import xarray as xr

    from .branch_search import Search
    from .families import Extremum
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


@dataclass(frozen=True, eq=False)
class Branch:
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
    zeros : tuple of str
        Newton unknowns that vanish all along it: an end of their domain.
    """

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
    zeros: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.parameter)

    def __getitem__(self, name: str) -> Array:
        tables = {self.over: self.parameter, **self.unknowns, **self.outputs}
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

    def __repr__(self) -> str:
        low, high = self.parameter.min(), self.parameter.max()
        return f"Branch({len(self)} points, {self.over} from {low:.6g} to {high:.6g})"


@dataclass(frozen=True, eq=False)
class SpecialPoint(Typeset):
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
    condition : Condition
    control : Symbol
        That of `over`.
    start : mapping from str to float
        First values for its Newton unknowns.
    parameters : mapping from str to number
        The other parameters.
    """

    kind: str
    over: str
    value: float
    error: float
    unknowns: Mapping[str, float]
    condition: Condition = field(repr=False)
    control: sp.Symbol = field(repr=False)
    start: Mapping[str, float] = field(repr=False)
    parameters: Mapping[str, Any] = field(repr=False)
    data: Mapping[str, Any] | None = field(default=None, repr=False)

    @cached_property
    def system(self) -> SaddlePointSystem:
        """The equations with the condition, in which the parameter is an unknown."""
        return self.condition.system(self.control)

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
        return kernel.solve(
            start=start, digits=digits, data=self.data, **{**self.parameters, **options}
        )

    def latex(self) -> str:
        """Return the equations and the condition in LaTeX."""
        return self.system.latex()

    def __str__(self) -> str:
        return f"{self.kind} at {self.over} = {self.value:.12g} ± {self.error:.1e}"


@dataclass(frozen=True, eq=False)
class BranchDiagram(Typeset):
    """All branches over one parameter; from :meth:`.kernel.Kernel.branches`.

    Attributes
    ----------
    kernel : Kernel
    over : str
    within : (float, float)
    parameters : mapping from str to number
        The fixed ones.
    branches : tuple of Branch
    points : tuple of SpecialPoint
        Sorted by kind and value.
    extremum : Extremum
        What the free energy has at a stable phase.
    """

    kernel: Kernel
    over: str
    within: tuple[float, float]
    parameters: Mapping[str, Any]
    branches: tuple[Branch, ...]
    points: tuple[SpecialPoint, ...]
    extremum: Extremum
    _search: Search = field(repr=False)

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
        return self._of(zero_of(output))

    def _of(self, *kinds: str) -> tuple[SpecialPoint, ...]:
        return tuple(p for p in self.points if p.kind in kinds)

    @property
    def stability(self) -> str:
        """What `stable` means here, in words."""
        family = self._search.family
        if family.by_free_energy(self.extremum):
            return (
                f"stable: a {self.extremum} of the free energy in its order parameters, conjugates "
                "eliminated"
            )
        if family.open.is_map:
            without = "" if family.variables[0] else " (they come without a free energy)"
            return f"stable: under iteration of the equations{without}"
        return "stability unknown: no free energy, and the equations are no map x = F(x)"

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
        search = self._search
        value = float(value)
        if not self.within[0] <= value <= self.within[1]:
            raise ParameterError(
                f"value of {self.over} must be from {self.within[0]:g} to {self.within[1]:g}, "
                f"got {value:g}"
            )
        given = {**self.parameters, self.over: value}
        found = []
        for y, zeros in search.solutions(value):
            start = dict(zip(search.family.names, y[:-1].tolist(), strict=True))
            kernel = search.family.with_zeros(zeros) if zeros else self.kernel
            free = {name: x for name, x in start.items() if name not in zeros}
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

    def plot(self, unknown: str | None = None, *, ax: Any = None) -> Any:
        """Draw the branches: stable ones solid, others dashed, special points marked.

        Parameters
        ----------
        unknown : str, optional
            What to draw, an unknown or an output; default: the first unknown.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        name = self._search.family.names[0] if unknown is None else unknown
        with styled():
            ax = new_figure().add_subplot() if ax is None else ax
            self._draw(name, ax)
        return ax

    def _draw(self, name: str, ax: Any) -> None:
        for n, branch in enumerate(self.branches):
            values = branch[name]
            for part, stable in branch.runs():
                style = "-" if stable or stable is None else "--"
                ax.plot(
                    branch.parameter[part], values[part], style, color=COLOURS[n % len(COLOURS)]
                )
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
        labels = self.kernel.labels
        ax.set_xlabel(f"${labels[self.over]}$" if self.over in labels else self.over)
        ax.set_ylabel(f"${labels[name]}$" if name in labels else name)
        if any(not x.startswith("_") for x in ax.get_legend_handles_labels()[1]):
            ax.legend(frameon=False)

    def to_dataset(self) -> xr.Dataset:
        """Return all points with their branches as a labelled data set, one row each."""
        import xarray as xr

        columns: dict[str, Array] = {
            "branch": np.concatenate([np.full(len(b), n) for n, b in enumerate(self.branches)])
            if self.branches else np.zeros(0, dtype=int),
        }  # fmt: skip

        def put(name: str, parts: Sequence[Any]) -> None:
            if parts and all(part is not None for part in parts):
                columns[name] = np.concatenate(parts)

        put(self.over, [b.parameter for b in self.branches])
        for name in self.branches[0].unknowns if self.branches else ():
            put(name, [b.unknowns[name] for b in self.branches])
        for name in self.branches[0].outputs if self.branches else ():
            put(name, [b.outputs[name] for b in self.branches])
        put("residual", [b.residual for b in self.branches])
        put("branch_free_energy", [b.free_energy for b in self.branches])
        put("map_radius", [b.map_radius for b in self.branches])
        put("stable", [b.stable for b in self.branches])
        found: dict[str, Any] = {name: ("point", column) for name, column in columns.items()}
        modes = [e for b in self.branches if (e := b.hessian_eigenvalues) is not None]
        if modes:
            found["hessian_eigenvalue"] = (("point", "mode"), np.concatenate(modes))
        fixed = {k: float(v) for k, v in self._search.family.point(self.within[0]).items()}
        del fixed[self.over]
        return xr.Dataset(
            found, attrs={"kernel": self.kernel.name, "stability": self.stability, **fixed}
        )

    def latex(self) -> str:
        """Return the conditions of the special points in LaTeX."""
        names = ", ".join(self.kernel.labels.get(n, n) for n in self._search.family.names)
        jacobian = rf"\frac{{\partial R}}{{\partial ({names})}}"
        control = self.kernel.labels.get(self.over, self.over)
        conditions = {
            SPINODAL: rf"\det {jacobian} = 0",
            CROSSING: rf"w^\top {jacobian} = 0,\ w^\top \frac{{\partial R}}{{\partial "
            rf"{control}}} = 0",
            FIRST_ORDER: r"f = f'",
        }
        rows = [
            rf"R_{{{self.kernel.labels.get(name, name)}}} &= {sp.latex(e.residual)}"
            for name, e in zip(
                self._search.family.names, self._search.family.open.core, strict=True
            )
        ]
        for kind in dict.fromkeys(p.kind for p in self.points):
            crosses = kind in (SECOND_ORDER, INSTABILITY)
            condition = conditions.get(CROSSING if crosses else kind)
            if condition is None:
                condition = rf"\mathrm{{{kind.removeprefix('zero of ')}}} = 0".replace("_", r"\_")
            values = r",\ ".join(f"{p.value:.10g}" for p in self._of(kind))
            rows.append(rf"\text{{{kind}}}&:\ R = 0,\ {condition}:\quad {control} = {values}")
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def __str__(self) -> str:
        n = len(self.branches)
        low, high = self.within
        lines = [
            f"{self.kernel.title}: {n} branch{'' if n == 1 else 'es'} over {self.over} from "
            f"{low:g} to {high:g}; {self.stability}"
        ]
        for k, branch in enumerate(self.branches):
            first, last = branch.ends
            lines.append(f"  branch {k}, {len(branch)} points: from {first} to {last}")
        return "\n".join([*lines, *(f"  {p}" for p in self.points)])

    def __repr__(self) -> str:
        return (
            f"BranchDiagram({self.kernel.name}, {self.over} from {self.within[0]:g} to "
            f"{self.within[1]:g}: {len(self.branches)} branches, {len(self.points)} special points)"
        )


def zero_of(output: str) -> str:
    """Return the kind of a point where an output vanishes."""
    return f"zero of {output}"
