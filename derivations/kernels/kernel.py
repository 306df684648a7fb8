"""The kernel of a system of equations: solve, sweep, refine to many digits, inspect, write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...digits import MOST_DIGITS, checked_digits
from ...errors import ConvergenceError, ParameterError
from ...numeric.arguments import is_one_of, positive_number, whole_number
from ...numeric.cache import FileCache
from ...numeric.kernel_code import KernelCode
from ...numeric.saddle_point_solver import BatchSolution
from ...numeric.seed_store import store_folder
from ..certificates.wanted import certificate_wanted
from .arguments import box_of, column, data_arrays, exact_data, known_names, start_values
from .job import Job
from .points import Points, Tie
from .sinks import checked_path
from .solution import KernelSolution
from .sweep import Variables, run_sweep
from .texts import KernelTexts
from .unsolved import unsolved

if TYPE_CHECKING:
    import xarray as xr

    from ...symbolic.enclosures import Enclosure
    from ...symbolic.lowering.lowered import LoweredSystem
    from ...symbolic.saddle_point import Coordinate
    from .branches import BranchDiagram
    from .phase_diagram import PhaseDiagram
    from .precise import Refined
    from .sensitivities import Sensitivities

# Words of the methods of a kernel that parameters cannot have.
RESERVED = frozenset(
    {
        "certify", "data", "digits", "executor", "failures", "out", "outputs", "product",
        "progress", "rtol", "self", "start", "store", "workers", "wrt",
    }
)  # fmt: skip

# Of the squares of a parameter that is given although it follows from another.
_TIED = 1e-12


@dataclass(frozen=True, eq=False)
class Kernel(KernelTexts):
    """A system of equations as numbers; made by :func:`giantstep.lower`.

    Attributes
    ----------
    name, title : str
    code : KernelCode
        The generated sources.
    domains : mapping from str to str
        Which numbers each parameter, and each ``"data set.column"``, may be.
    defaults : mapping from str to float
        Parameters that need not be given.
    exact_defaults : callable, optional
        Takes an mpmath context and returns the defaults as its numbers.
    proven_defaults : callable, optional
        Takes a number of digits and returns proven intervals of the defaults, infinity as a float.
    ties : mapping from str to Tie
        Parameters that follow from others. The defaults may know them better than the others.
    labels : mapping from str to str
        LaTeX of parameters, outputs and unknowns.
    make : callable
        Returns the lowered system; called when its expressions are first needed.
    make_solved : callable, optional
        Returns the system that `code` was printed from, where that takes tied parameters.
    cache_folder : path or None
    most_digits : int
        Of ``digits=``: fewer where an expression holds rules of a fixed accuracy.
    """

    name: str
    title: str
    code: KernelCode = field(repr=False)
    domains: Mapping[str, str]
    make: Callable[[], LoweredSystem] = field(repr=False)
    defaults: Mapping[str, float] = field(default_factory=dict)
    exact_defaults: Callable[[Any], Mapping[str, Any]] | None = field(default=None, repr=False)
    proven_defaults: Callable[[int], Mapping[str, Enclosure | float]] | None = field(
        default=None, repr=False
    )
    ties: Mapping[str, Tie] = field(default_factory=dict, repr=False)
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)
    cache_folder: str | os.PathLike[str] | None = None
    most_digits: int = MOST_DIGITS
    make_solved: Callable[[], LoweredSystem] | None = field(default=None, repr=False)

    # ------------------------------------------------------------------ what it is

    @property
    def parameters(self) -> tuple[str, ...]:
        """Inputs of a solve."""
        return self.code.parameters

    @property
    def outputs(self) -> tuple[str, ...]:
        """What a solve returns: outputs, then the unknowns of the equations."""
        return self.code.results

    @cached_property
    def _cache(self) -> FileCache:
        return FileCache(self.cache_folder)

    # ------------------------------------------------------------------ numbers

    def solve(
        self,
        /,
        *,
        data: Mapping[str, Any] | None = None,
        start: Mapping[str, float] | KernelSolution | None = None,
        digits: int | None = None,
        certify: bool = False,
        rtol: float = 1e-11,
        progress: bool = True,
        **parameters: Any,
    ) -> KernelSolution:
        """Solve at one point.

        Parameters
        ----------
        data : mapping, optional
            For averages over data: ``{"set": {"column": values}}``, or the columns alone if there
            is one set; a column ``weight`` weighs the rows.
        start : mapping or KernelSolution, optional
            First values of Newton unknowns; needed where there are several solutions.
        digits : int, optional
            Refine to so many digits with mpmath. Floats are then read as the decimal numbers that
            they print as.
        certify : bool
            Prove `digits` digits (default: 15) of every output with ball arithmetic, for equations
            whose averages are over one Gaussian variable; the solution holds the certificate.
        rtol : float
            Relative quadrature error of the first output at which refinement ends.
        progress : bool
            Show a bar if digits take longer than a second.
        **parameters
            By name; numbers.

        Returns
        -------
        KernelSolution

        Raises
        ------
        ParameterError
            If a parameter is missing, unknown or outside its domain.
        ConvergenceError
            If Newton's method fails; names the point.
        CertificationError
            If a proof is wanted and does not succeed.
        UnsupportedExpressionError
            If a proof is wanted and the system is outside of what can be certified.
        MissingDependencyError
            If a proof is wanted and python-flint is not installed.
        """
        certify = certificate_wanted(certify)
        if digits is not None:
            digits = checked_digits(digits, most=self.most_digits)
        columns = self._columns(parameters)
        for name, value in columns.items():
            if value.ndim:
                raise ParameterError(f"{name} must be one number here; sweep() takes arrays")
        points = Points.of(self.parameters, columns, True, self.active_ties(parameters))
        job = self.job(data, start, rtol, 1)
        row = points.rows(0, 1)
        batch = job(row)
        if not batch.converged.all():
            raise self._refusal(row, batch)
        values: dict[str, Any] = {name: float(batch.values[name][0]) for name in self.outputs}
        errors = {
            name: float(batch.errors[name][0]) for name in self.outputs if name in batch.errors
        }
        nodes = int(batch.nodes[0])
        budget: dict[str, dict[str, Any]] = {}
        certificate = None
        if certify:
            from .certified import certified_solution

            certificate = certified_solution(
                self, parameters, values, digits, errors=errors, progress=progress
            )
            values, errors = certificate.numbers(digits)
        elif digits is not None:
            refined = self._refined(batch, parameters, data, digits, progress)
            values, errors, nodes = refined.values, refined.errors, refined.nodes
            budget = refined.budget
        return KernelSolution(
            kernel=self.name,
            parameters=dict(zip(self.parameters, row[0].tolist(), strict=True)),
            values=values,
            errors=errors,
            residual=float(batch.residual[0]) if digits is None else 0.0,
            iterations=int(batch.iterations[0]),
            nodes=nodes,
            digits=digits,
            labels=self.labels,
            budget=budget,
            certificate=certificate,
        )

    def sweep(
        self,
        /,
        *,
        product: bool = True,
        outputs: Sequence[str] | None = None,
        data: Mapping[str, Any] | None = None,
        start: Mapping[str, float] | KernelSolution | None = None,
        rtol: float = 1e-11,
        failures: str = "raise",
        workers: int | None = None,
        executor: Executor | None = None,
        progress: bool = True,
        out: str | os.PathLike[str] | None = None,
        store: str | os.PathLike[str] | None = None,
        **parameters: Any,
    ) -> xr.Dataset:
        """Solve at many points.

        Parameters
        ----------
        product : bool
            Arrays are axes of a grid, in the order in which they are given; False: they have one
            length and go together, point by point.
        outputs : sequence of str, optional
            Results to keep, with their errors; by default all.
        data, start, rtol
            As for :meth:`solve`, the same for all points.
        failures : {"raise", "keep"}
            Whether a point without solution is an error, or NaN and not ``converged``.
        workers : int, optional
            Threads; by default one for each processor. The result does not depend on it.
        executor : concurrent.futures.Executor, optional
            Where to run instead: processes, or a cluster.
        progress : bool
            Show a bar if it takes longer than a second.
        out : path, optional
            ``.nc`` or ``.zarr``: results go there as they come, and the data set that is returned
            reads from there; memory limits only its arrays then. Replaced when all is done.
        store : path, optional
            Folder for finished blocks; the same call resumes from it.
        **parameters
            Numbers or one-dimensional arrays.

        Returns
        -------
        xarray.Dataset
            Every output with ``…_error_estimate``, ``residual``, ``iterations``, ``converged``.

        Raises
        ------
        ParameterError
            If an argument is of the wrong kind or outside its domain.
        ConvergenceError
            If a point fails; what was computed is its `state`, unless it went to a file.
        """
        if not is_one_of(failures, ("raise", "keep")):
            raise ParameterError(f"failures must be 'raise' or 'keep', got {failures!r}")
        if workers is not None:
            workers = whole_number("workers", workers)
        columns = self._columns(parameters)
        points = Points.of(self.parameters, columns, bool(product), self.active_ties(parameters))
        if outputs is None:
            outputs = self.outputs
        elif isinstance(outputs, str):
            outputs = (outputs,)
        elif not isinstance(outputs, Iterable):
            raise ParameterError(f"outputs must be names of outputs, got {outputs!r}")
        folder = store_folder(store)
        known_names(outputs, self.outputs, "output")
        variables = Variables.of(tuple(dict.fromkeys(outputs)), self.parameters)
        job = self.job(data, start, rtol, len(points), keep=failures == "keep")
        return run_sweep(
            job,
            points,
            variables,
            meanings=self._meanings(),
            attributes=self._attributes(),
            path=None if out is None else checked_path(out),
            store=folder,
            workers=workers,
            executor=executor,
            progress=progress,
            refuse=self._refusal,
        )

    def sensitivities(
        self, /, *, wrt: str | Sequence[str] | None = None, **options: Any
    ) -> Sensitivities:
        """Return derivatives of outputs and unknowns with respect to parameters at one point.

        Exact, by the implicit function theorem. `wrt` names the parameters to differentiate by
        (default: all); the rest is as for :meth:`solve`. An infinite derivative is a
        ConvergenceError.
        """
        from .sensitivities import sensitivities

        return sensitivities(self, options, wrt=wrt)

    def branches(
        self,
        /,
        over: str,
        within: Sequence[float],
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        zeros: str | Sequence[str] = (),
        extremum: str | Mapping[str, str] | None = None,
        starts: int | None = None,
        points: int = 100,
        data: Mapping[str, Any] | None = None,
        rtol: float = 1e-11,
        **parameters: Any,
    ) -> BranchDiagram:
        r"""Return every solution over one parameter that a search finds, and where they meet.

        Newton's method from many first values at seven values of the parameter; then each branch
        is followed in both directions, through folds and to the branches that leave it. Special
        points are zeros of exact derivatives and of differences of free energies.

        Parameters
        ----------
        over : str
            The control parameter.
        within : (float, float)
            Its range, ends included.
        bounds : mapping from str to (float, float), optional
            Where Newton unknowns are wanted, inside of the domains that their symbols declare:
            ``{"q": (0, 1)}``. First values are spread over this box, so a finite one helps.
        zeros : str or sequence of str
            Outputs whose zeros along the branches are wanted: a stability, an entropy.
        extremum : {"minimum", "maximum"} or mapping from str to these, optional
            Call a solution stable where the free energy, as a function of its order parameters and
            stationary in the conjugates, has this extremum. By default a solution is stable where
            the iteration x → F(x) of the equations converges to it, and a minimum where the
            equations are no such map. A free energy, minus the logarithm of a number of states,
            has a minimum and a free entropy a maximum; in overlaps of n → 0 replicas it is the
            other way round, because the number of pairs of replicas is negative:
            ``{"m": "maximum", "q": "minimum"}`` for a free entropy of a magnetisation and an
            overlap. Phases are compared by the sense of the first order parameter, by default that
            of lower free energy is preferred.
        starts : int, optional
            First values at each of the seven values of the parameter; default: 32 for each Newton
            unknown.
        points : int
            About as many points lie on a branch across the whole range; more where it bends.
        data, rtol
            As for :meth:`solve`.
        **parameters
            The others, by name; numbers.

        Returns
        -------
        BranchDiagram
            With ``branches``, ``spinodals``, ``transitions``, ``at(value)``, ``plot()``.

        Raises
        ------
        ParameterError
            If a parameter is missing or outside its domain, or bounds contradict a domain.
        StructureError
            If the equations are linear: their only solution has nothing to meet.
        ConvergenceError
            If no solution is found at all.

        Notes
        -----
        First-order transitions are crossings of the lowest free energies, or of the lowest among
        stable phases, for systems from a :class:`giantstep.FreeEnergy` or with an output
        ``free_energy``. A branch that no first
        value leads to, and that is joined to no other one, is not found; nor are crossings at which
        two eigenvalues vanish at once, nor solutions on the boundary of a domain.

        Examples
        --------
        The magnet of Curie and Weiss has a second-order transition at β = 1:

        >>> import sympy as sp
        >>> import giantstep as gs
        >>> m, h = sp.symbols("m h", real=True)
        >>> beta = sp.Symbol("beta", positive=True)
        >>> magnet = gs.SaddlePointSystem.from_fixed_point(
        ...     {m: sp.tanh(beta * (m + h))}, name="magnet", parameters=(beta, h)
        ... )
        >>> found = gs.lower(magnet).branches("beta", (0.5, 2), bounds={"m": (-1, 1)}, h=0)
        >>> point = found.transitions[0]
        >>> print(point.kind, f"{point.value:.12f}")
        second-order 1.000000000000
        >>> [round(s.m, 10) + 0 for s in found.at(2)]
        [-0.9575040241, 0.0, 0.9575040241]
        """
        from .branch_search import branches

        return branches(
            self, over, within, parameters, bounds=bounds, zeros=zeros, extremum=extremum,
            starts=starts, points=points, data=data, rtol=rtol,
        )  # fmt: skip

    def phase_diagram(
        self,
        x: tuple[str, float, float],
        y: tuple[str, float, float],
        /,
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        zeros: str | Sequence[str] = (),
        extremum: str | Mapping[str, str] | None = None,
        starts: int | None = None,
        points: int = 100,
        cuts: int = 3,
        data: Mapping[str, Any] | None = None,
        rtol: float = 1e-11,
        **parameters: Any,
    ) -> PhaseDiagram:
        """Return lines of transitions over two parameters.

        Special points of some cuts through the plane, those of :meth:`branches`, are followed as
        solutions of larger systems; nothing is scanned.

        Parameters
        ----------
        x, y : (str, float, float)
            Names of two parameters with their ranges: ``("alpha", 0, 2), ("beta", 1, 4)``.
        bounds, zeros, extremum, starts, points, data, rtol
            As for :meth:`branches`.
        cuts : int
            So many cuts at constant y, and at constant x; a line that none of them crosses is not
            found.
        **parameters
            The others, by name; numbers.

        Returns
        -------
        PhaseDiagram
            With ``lines``, ``critical_points`` and ``plot()``.

        Raises
        ------
        ParameterError, StructureError
            As for :meth:`branches`.

        Notes
        -----
        Along a line of first-order transitions the two phases are followed wherever they exist:
        beyond a triple point it goes on between phases that a third one lies below.

        Examples
        --------
        The spinodals of the magnet of Curie and Weiss meet at β = 1, h = 0:

        >>> import sympy as sp
        >>> import giantstep as gs
        >>> m, h = sp.symbols("m h", real=True)
        >>> beta = sp.Symbol("beta", positive=True)
        >>> magnet = gs.SaddlePointSystem.from_fixed_point(
        ...     {m: sp.tanh(beta * (m + h))}, name="magnet", parameters=(beta, h)
        ... )
        >>> plane = gs.lower(magnet).phase_diagram(
        ...     ("h", -0.5, 0.5), ("beta", 0.5, 2.5), bounds={"m": (-1, 1)}
        ... )
        >>> critical = plane.critical_points[0]
        >>> print(f"{abs(critical.x):.8f} {critical.y:.8f}")
        0.00000000 1.00000000
        """
        from .phase_diagram import phase_diagram

        return phase_diagram(
            self, x, y, parameters, bounds=bounds, zeros=zeros, extremum=extremum, starts=starts,
            points=points, cuts=cuts, data=data, rtol=rtol,
        )  # fmt: skip

    def iterate(
        self,
        /,
        *,
        start: Mapping[str, float] | KernelSolution | None = None,
        damping: float = 0.0,
        steps: int = 1000,
        tolerance: float = 1e-12,
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
        data, rtol
            As for :meth:`solve`.
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
        from .iterate import iterate

        return iterate(
            self, parameters, start=start, damping=damping, steps=steps, tolerance=tolerance,
            data=data, rtol=rtol,
        )  # fmt: skip

    # ------------------------------------------------------------------ text

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        data = "".join(f"; data {name} ({', '.join(c)})" for name, c in self.code.data)
        return (
            f"Kernel({self.name!r}, parameters {', '.join(self.parameters) or 'none'}{data}; "
            f"outputs {', '.join(self.outputs)})"
        )

    # ------------------------------------------------------------------ helpers

    @property
    def _coordinates(self) -> dict[str, Coordinate]:
        if not self.code.ranges:
            return {}
        stated = self.solved.stated
        return {stated.identifiers[x]: c for x, c in stated.coordinates.items()}

    def _columns(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters as arrays of floats, those that vary first and in their order."""
        known_names(parameters, self.parameters, f"parameter of {self.name}")
        ties = self.active_ties(parameters)
        given = {**self.defaults, **parameters}
        missing = [name for name in self.parameters if name not in given and name not in ties]
        if missing:
            wanted = ", ".join(f"{n} ({self.domains[n]})" for n in missing)
            raise ParameterError(f"{self.name} needs more parameters: {wanted}")
        order = [*parameters, *(name for name in given if name not in parameters)]
        found = {
            name: column(name, given[name], self.domains[name])
            for name in order
            if name not in ties
        }
        for name, tie in ties.items():
            with np.errstate(invalid="ignore"):
                value = tie.function(found[tie.source], np.sqrt)
            try:
                column(name, value, self.domains[name])
            except ParameterError as error:
                raise ParameterError(f"{tie.source} is outside its range: {error}") from None
        for name, tie in self.ties.items():
            if tie.constraint and name in parameters:
                _check_tie(name, tie, found)
        return found

    def active_ties(self, parameters: Mapping[str, Any]) -> dict[str, Tie]:
        """Return the ties that hold when these parameters are given."""
        return {
            name: tie
            for name, tie in self.ties.items()
            if tie.source in parameters and name not in parameters
        }

    def job(
        self, data: object, start: object, rtol: float, total: int, *, keep: bool = False
    ) -> Job:
        """Return what solves rows of parameters; see :class:`.job.Job`."""
        sets = data_arrays(self.code.data, self.domains, data)
        return Job(
            code=self.code,
            folder=os.fspath(self._cache.folder),
            data=tuple((name, sets[name]) for name, _ in self.code.data),
            start=start_values(self.code.unknowns, self.domains, start, self._coordinates),
            searched=()
            if start is not None
            else tuple(box_of(self.domains.get(name, "real")) for name in self.code.unknowns),
            rtol=positive_number("rtol", rtol),
            total=total,
            keep=keep,
        )

    def _refusal(self, rows: Any, batch: BatchSolution) -> ConvergenceError:
        return unsolved(self.code.load(self._cache), self.domains, rows, batch)

    def _refined(
        self, batch: BatchSolution, parameters: Mapping[str, Any],
        data: object, digits: int, progress: bool,
    ) -> Refined:  # fmt: skip
        import sympy as sp

        from .precise import derived_kernel, exact_number, refine

        def exact(ctx: Any) -> dict[str, Any]:
            # Defaults of which nothing better is known are decimals, as what a user gives.
            known = self.defaults if self.exact_defaults is None else {}
            given = {name: exact_number(value) for name, value in {**known, **parameters}.items()}
            for name, tie in self.active_ties(parameters).items():
                given[name] = tie.function(given[tie.source], sp.sqrt)
            defaults = {} if self.exact_defaults is None else self.exact_defaults(ctx)
            numbers = {
                n: ctx.inf if x is sp.oo else ctx.mpf(str(sp.N(x, ctx.dps + 5)))
                for n, x in given.items()
            }
            return {**defaults, **numbers}

        return refine(
            self.code.load(self._cache),
            derived_kernel(self._cache, self.code, lambda: self.solved),
            exact,
            digits,
            batch,
            data=exact_data(self.code.data, data),
            most_digits=self.most_digits,
            show_progress=progress,
        )

    def _meanings(self) -> dict[str, str]:
        return {name: f"parameter, {self.domains[name]}" for name in self.parameters}

    def _attributes(self) -> dict[str, Any]:
        from ... import __version__

        return {"kernel": self.name, "title": self.title, "giantstep_version": __version__}


def _check_tie(name: str, tie: Tie, columns: Mapping[str, Any]) -> None:
    """Refuse values of a tied parameter that do not follow from its source."""
    source, value = columns[tie.source], columns[name]
    with np.errstate(invalid="ignore"):
        wanted = tie.function(source, np.sqrt)
    together = value.shape == wanted.shape
    if not (together or 0 in (value.ndim, wanted.ndim)):
        raise ParameterError(f"{name} follows from {tie.source}; leave it out")
    wrong = ~(np.abs(value**2 - wanted**2) <= _TIED)
    if wrong.any():
        first = int(np.argmax(wrong))
        given, right = (float(np.broadcast_to(x, wrong.shape).flat[first]) for x in (value, wanted))
        raise ParameterError(
            f"{name} follows from {tie.source}: it is {right:g} here, got {given:g}; leave it out"
        )
