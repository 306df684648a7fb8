"""The kernel of a system of equations: solve, sweep, refine to many digits, inspect, write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import __version__
from ...deprecations import renamed
from ...digits import MOST_DIGITS, checked_digits
from ...errors import ConvergenceError, ParameterError
from ...numeric.arguments import positive_number
from ...numeric.cache import FileCache
from ...numeric.kernel_code import KernelCode, LoadedKernel
from ...numeric.saddle_point_solver import RUN_OFF, SOLVED, BatchSolution, refusal
from ...pages import Typeset
from ..certificates.certificate import certificate_wanted
from ..curves import Curve
from ..late import given_by
from .arguments import (
    Points,
    Tie,
    box_of,
    column,
    data_arrays,
    exact_data,
    known_names,
    start_values,
)
from .precise import Refined, derived_kernel, exact_number, refine, require_resolved
from .solution import KernelSolution
from .sweep import Execution, Job, Variables, run_sweep, with_execution

if TYPE_CHECKING:
    import xarray as xr

    from ...symbolic.exact.enclosures import Enclosure
    from ...symbolic.lowering.lowered import LoweredSystem
    from ...symbolic.lowering.program import Program
    from ...symbolic.systems.saddle_point import Coordinate, SaddlePointSystem
    from . import (
        branch_search as _branch_search,
        certified as _certified,
        code as _code,
        families as _families,
        landscape as _landscape,
        lower as _lower,
        phase_diagram as _phase_diagram,
        sensitivities as _sensitivities,
    )

# Of data that are known to any number of digits, beyond those that are asked for.
SPARE_DIGITS = 30
# Words of the methods of a kernel that parameters cannot have.
RESERVED = frozenset(
    {
        "bounds", "certify", "data", "digits", "executor", "failures", "maximum", "of", "out",
        "outputs", "over", "product", "progress", "rtol", "self", "start", "store", "workers",
        "wrt",
    }
)  # fmt: skip

# Outputs in tables of a curve.
_SHOWN = 4
# Of the squares of a parameter that is given although it follows from another.
_TIED = 1e-12
# symbolic.systems.equations.REPLICON: a kernel that was stored is solved without SymPy.
_REPLICON = "replicon"

# Of positive unknowns: smaller ones are on their way to zero.
_VANISHING = 1e-12
_REMEDY = (
    "give first values near the solution with start=, come from parameters where the equations "
    "are easier (a larger ridge or temperature), or check that a solution exists here"
)


@dataclass(frozen=True, eq=False)
class Kernel(Typeset):
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
    data : mapping, optional
        Data that need not be given.
    exact_data : callable, optional
        Takes a number of digits and returns them exactly, or to so many digits.
    check : callable, optional
        Takes parameters as arrays, and data that were given in place of these as arrays or None;
        refuses parameters that the data do not fit.
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
    data: Mapping[str, Any] | None = field(default=None, repr=False)
    exact_data: Callable[[int], Mapping[str, Any]] | None = field(default=None, repr=False)
    check: Callable[[Mapping[str, Any], Mapping[str, Any] | None], None] | None = field(
        default=None, repr=False
    )

    def __eq__(self, other: object) -> bool:
        """Tell whether another kernel is of the same equations, with the same defaults."""
        if not isinstance(other, Kernel):
            return NotImplemented
        return self._compared == other._compared

    def __hash__(self) -> int:
        return hash((self.name, self.code))

    @property
    def _compared(self) -> tuple[Any, ...]:
        return self.name, self.code, dict(self.domains), dict(self.defaults), dict(self.ties)

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
            is one set; a column ``weight`` weighs the rows. Kernels of models have their own.
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
            If Newton's method fails, naming the point; if digits are wanted where no float rule
            resolves the integrands.
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
        columns = self._columns(parameters, data)
        for name, value in columns.items():
            if value.ndim:
                raise ParameterError(f"{name} must be one number here; curve() takes arrays")
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
        at = dict(zip(self.parameters, row[0].tolist(), strict=True))
        self._require_fitting_sites(at, values)
        nodes = int(batch.nodes[0])
        budget: dict[str, dict[str, Any]] = {}
        certificate = None
        if certify:
            # What Newton's method moves may be a coordinate, which is no output.
            moved = {name: float(batch.values[name][0]) for name in self.code.unknowns}
            certificate = self.certified_solution(
                parameters, values | moved, digits, errors=errors, progress=progress
            )
            values, errors = certificate.numbers(digits)
        elif digits is not None:
            refined = self._refined(batch, parameters, data, digits, progress)
            values, errors, nodes = refined.values, refined.errors, refined.nodes
            budget = refined.budget
        return KernelSolution(
            kernel=self.name,
            parameters=at,
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

    @with_execution
    def curve(
        self,
        /,
        *,
        product: bool = True,
        outputs: Sequence[str] | None = None,
        data: Mapping[str, Any] | None = None,
        start: Mapping[str, float] | KernelSolution | None = None,
        rtol: float = 1e-11,
        **parameters: Any,
    ) -> Curve:
        """Solve at many points: over any parameters, alone or as a grid.

        Parameters
        ----------
        outputs : sequence of str, optional
            Results to keep, with their errors; by default all.
        data, start, rtol
            As for :meth:`solve`, the same for all points.
        product, failures, workers, executor, progress, out, store
            As for curves of models: :meth:`giantstep.SpikedRandomFeatures.curve`.
        **parameters
            Numbers or one-dimensional arrays.

        Returns
        -------
        Curve
            Every output with ``…_error_estimate``, ``residual``, ``iterations``, ``converged``:
            ``curve["name"]``, ``curve.plot()``, ``curve.to_dataset()``.

        Raises
        ------
        ParameterError
            If an argument is of the wrong kind or outside its domain.
        ConvergenceError
            If a point fails; what was computed is its `state`, unless it went to a file.
        """
        execution, parameters = Execution.of(parameters)
        columns = self._columns(parameters, data)
        points = Points.of(self.parameters, columns, bool(product), self.active_ties(parameters))
        if outputs is None:
            outputs = self.outputs
        elif isinstance(outputs, str):
            outputs = (outputs,)
        elif not isinstance(outputs, Iterable):
            raise ParameterError(f"outputs must be names of outputs, got {outputs!r}")
        outputs = tuple(outputs)
        if not outputs:
            raise ParameterError("outputs must name at least one output, or be left out for all")
        known_names(outputs, self.outputs, "output")
        variables = Variables.of(tuple(dict.fromkeys(outputs)), self.parameters)
        job = self.job(data, start, rtol, len(points), keep=execution.keeps)
        if _REPLICON in self.outputs:
            self._look_at_sites(job, points)
        found = run_sweep(
            job,
            points,
            variables,
            meanings=self.meanings(),
            attributes={
                **self._attributes(),
                "shown": " ".join(variables.outputs[:_SHOWN]),
                "drawn": variables.outputs[0],
            },
            execution=execution,
            refuse=self._refusal,
        )
        return Curve(found)

    @renamed("curve(...).to_dataset()")
    def sweep(self, /, **options: Any) -> xr.Dataset:
        """Return :meth:`curve` as a dataset, as the last release did."""
        return self.curve(**options).to_dataset()

    if TYPE_CHECKING:
        branches = _branch_search.branches
        restored_branches = _branch_search.restored
        phase_diagram = _phase_diagram.phase_diagram
        landscape = _landscape.landscape
        order_parameters = _landscape.order_parameters
        with_landscape = _landscape.with_landscape
        iterate = _families.iterate
        flow = _families.flow
        sensitivities = _sensitivities.sensitivities
        optimum = _sensitivities.optimum
        certified_solution = _certified.certified_solution
        wanted_tables = _code.wanted_tables
        known_results = _code.known_results
        require_fitting_sites = _lower.require_fitting_sites
    else:
        branches = given_by(f"{__package__}.branch_search", "branches")
        restored_branches = given_by(f"{__package__}.branch_search", "restored")
        phase_diagram = given_by(f"{__package__}.phase_diagram", "phase_diagram")
        landscape = given_by(f"{__package__}.landscape", "landscape")
        order_parameters = given_by(f"{__package__}.landscape", "order_parameters")
        with_landscape = given_by(f"{__package__}.landscape", "with_landscape")
        iterate = given_by(f"{__package__}.families", "iterate")
        flow = given_by(f"{__package__}.families", "flow")
        sensitivities = given_by(f"{__package__}.sensitivities", "sensitivities")
        optimum = given_by(f"{__package__}.sensitivities", "optimum")
        certified_solution = given_by(f"{__package__}.certified", "certified_solution")
        wanted_tables = given_by(f"{__package__}.code", "wanted_tables")
        known_results = given_by(f"{__package__}.code", "known_results")
        require_fitting_sites = given_by(f"{__package__}.lower", "require_fitting_sites")

    # ------------------------------------------------------------------ text

    @cached_property
    def lowered(self) -> LoweredSystem:
        """The system with all stages of its lowering."""
        return self.make()

    @cached_property
    def solved(self) -> LoweredSystem:
        """The system that solves here: its parameters are those of the code."""
        return self.lowered if self.make_solved is None else self.make_solved()

    @property
    def system(self) -> SaddlePointSystem:
        """The equations."""
        return self.lowered.system

    @property
    def program(self) -> Program:
        """The intermediate form, from which all targets are printed."""
        return self.lowered.program

    def source(self, target: str = "numba", *, tables: str = "computed", **values: float) -> str:
        """Return the generated code for a target as text; see :meth:`write`."""
        baked = self.wanted_tables(tables, values)
        return self.lowered.source(target, tables=baked, vectors=self.known_results(baked))

    def files(
        self,
        target: str = "numba",
        *,
        tables: str = "computed",
        name: str | None = None,
        **values: float,
    ) -> Mapping[str, str]:
        """Return {file name: text} for a target; see :meth:`write`."""
        baked, lowered = self.wanted_tables(tables, values), self.lowered
        return lowered.files(target, tables=baked, name=name, vectors=self.known_results(baked))

    def write(
        self,
        path: str | os.PathLike[str],
        target: str | None = None,
        *,
        tables: str = "computed",
        **values: float,
    ) -> list[Path]:
        """Write files that run without giantstep and return their paths.

        They hold the kernel's own solutions at some points and check themselves against these:
        ``python file.py``, ``cc -DNAME_SELFCHECK NAME.c -lm``; ``selfcheck()`` in Julia, Fortran.

        Parameters
        ----------
        path : path-like
            For C both ``NAME.c`` and ``NAME.h`` are written.
        target : {"numba", "python", "numpy", "mpmath", "c", "jax", "julia", "fortran"}, optional
            By default what the suffix says: .c, .h, .jl, .f90, .py (numba).
        tables : {"computed", "baked"}
            Whether the files compute tables from the activations, or hold those of fixed
            parameters.
        **values
            With "baked": the parameters on which the tables depend; they become constants.

        Raises
        ------
        EmissionError
            If the target is unknown, or lacks a function that the program needs.
        ParameterError
            If a file cannot be written, or a value is missing.
        """
        baked = self.wanted_tables(tables, values)
        return self.lowered.write(path, target, tables=baked, vectors=self.known_results(baked))

    def inspect(self, stage: str = "program") -> str:
        """Return one stage of the way from equations to code as text.

        Parameters
        ----------
        stage : str
            "equations", "blocks", "hoisted", "quadrature", "fused", "accurate", "program",
            "functions", "tables" or a target.
        """
        return self.lowered.inspect(stage)

    def latex(self) -> str:
        """Return the equations in LaTeX."""
        return self.system.latex()

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

    def _columns(self, parameters: Mapping[str, Any], data: object = None) -> dict[str, Any]:
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
        if self.check is not None:
            own = None if data is None else data_arrays(self.code.data, self.domains, data)
            self.check(found, own)
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
        """Return what solves rows of parameters; see :class:`.sweep.Job`."""
        given = self.data if data is None else data
        sets = data_arrays(self.code.data, self.domains, given)
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

    def _require_fitting_sites(
        self, parameters: Mapping[str, float], values: Mapping[str, float]
    ) -> None:
        if _REPLICON in self.outputs:
            self.require_fitting_sites(parameters, values)

    def _look_at_sites(self, job: Job, points: Points) -> None:
        row = points.rows(0, 1)
        batch = job(row)
        if batch.converged.all():
            at = dict(zip(self.parameters, row[0].tolist(), strict=True))
            self._require_fitting_sites(at, {n: float(batch.values[n][0]) for n in self.outputs})

    def _refusal(self, rows: Any, batch: BatchSolution) -> ConvergenceError:
        return _unsolved(self.code.load(self._cache), self.domains, rows, batch)

    def _refined(
        self, batch: BatchSolution, parameters: Mapping[str, Any],
        data: object, digits: int, progress: bool,
    ) -> Refined:  # fmt: skip
        import sympy as sp

        require_resolved(batch, digits)

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
            data=self._exact_data(data, digits),
            most_digits=self.most_digits,
            show_progress=progress,
        )

    def _exact_data(self, data: object, digits: int) -> Mapping[str, Any]:
        if data is not None or self.exact_data is None:
            return exact_data(self.code.data, data)
        return self.exact_data(digits + SPARE_DIGITS)

    def meanings(self) -> dict[str, str]:
        """Return what unknowns and parameters are, in words of labelled data sets."""
        # An m or a beta of one's own is not that of the models here.
        unknowns = {name: f"{name}, unknown" for name in self.code.unknown_results}
        return unknowns | {name: f"parameter, {self.domains[name]}" for name in self.parameters}

    def _attributes(self) -> dict[str, Any]:
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


def _unsolved(
    loaded: LoadedKernel, domains: Mapping[str, str], rows: Any, batch: BatchSolution
) -> ConvergenceError:
    """Return the error for the first row without solution."""
    first = int(np.argmin(batch.converged))
    # Of a coordinate, what follows from it is told.
    unknowns = [name for name in loaded.code.unknowns if name in loaded.code.results]
    vanishing = [
        name
        for name in unknowns
        if domains.get(name) == "positive"
        and name in batch.values
        and batch.values[name][first] < _VANISHING
    ]
    hints = [
        f"{name} ran towards its boundary 0 ({batch.values[name][first]:.1e}): if the solution "
        "lies there, declare the symbol real or write the equations for its square root"
        for name in vanishing
    ]
    hints += [
        f"{name} ran off to {batch.values[name][first]:.1e}: the equations have no finite "
        "solution in this direction"
        for name in unknowns
        if name in batch.values and abs(batch.values[name][first]) > RUN_OFF
    ]
    hints += [
        f"{known.name} ran towards the end {end:g} of its domain {known}"
        for known in loaded.code.ranges
        for end in (known.lower, known.upper)
        if known.holds(found := batch.values[known.name][first]) and abs(found - end) < _VANISHING
    ]
    outside = {
        known: float(batch.values[known.name][first])
        for known in loaded.code.ranges
        if not known.holds(batch.values[known.name][first])
    }
    hints += [
        f"{known.name} = {value:.10g} is outside its domain {known}"
        for known, value in outside.items()
        if np.isfinite(value)
    ]
    if loaded.code.conditions and not hints and batch.residual[first] < SOLVED:
        hints.append(
            "the equations were solved only where one of these is negative, so that it is not the "
            f"solution that is meant: {'; '.join(loaded.code.conditions)}"
        )
    if not np.isfinite(batch.residual[first]):
        hints.append("the equations are not finite where the iteration starts or leads")
    return refusal(loaded, rows, batch, remedy="; ".join([*hints, _REMEDY]))
