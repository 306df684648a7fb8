r"""Curves of any model over any of its parameters, alone or several as the axes of a grid.

A model with curves (:class:`HasCurves`) says which parameters can be axes and what it is at other
values of them, and solves rows. The sweep engine of kernels (:mod:`.kernels.sweep`) does the rest:
blocks in threads or an executor, files, resumption.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..errors import ConvergenceError, ParameterError
from ..labelled import NAMES
from ..numeric.arguments import positive_number
from ..numeric.saddle_point_solver import BatchSolution
from ..pages import Block
from .curve_figure import plot_curve
from .dataset_result import DatasetResult
from .json_text import saved_model
from .kernels.arguments import Points, column, known_names
from .kernels.sweep import (
    Execution,
    Variables,
    groups_of_rows,
    joined,
    run_sweep,
    with_execution,
)
from .outputs import ClosedForms, ExplicitOutputs, Outputs
from .penalties import PAPER_RIDGE, PaperRidge

if TYPE_CHECKING:
    import xarray as xr

    from .kernels.landscape import Landscape

Array = NDArray[np.float64]
Columns = Mapping[str, Array]

_COLUMNS = 4
# Their results fill gigabytes; a guard against products of long axes.
_MOST_POINTS = 10**8
# Of the range of a landscape: a solution is one of its points so closely.
_CLOSE = 1e-6


@dataclass(frozen=True)
class Names:
    """What is kept of the points of a curve.

    Attributes
    ----------
    outputs : tuple of str
        Those whose error is estimated first.
    errors : tuple of str
        Names of the estimated errors.
    shown, drawn : tuple of str
        Outputs that tables and figures show unless others are asked for.
    meanings : mapping from str to str
        ``long_name`` of variables.
    """

    outputs: tuple[str, ...]
    errors: tuple[str, ...]
    shown: tuple[str, ...]
    drawn: tuple[str, ...]
    meanings: Mapping[str, str]


@dataclass(frozen=True)
class _Work:
    """Solves rows of parameters of a model, in whatever process it is sent to."""

    model: HasCurves
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    rtol: float
    keep: bool

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "curve",
            "model": self.model.to_json(),
            "giantstep": __version__,
            "rtol": self.rtol,
        }

    def __call__(self, rows: Array) -> BatchSolution:
        """Solve for every row; what has no solution has not converged."""
        return self._solved(rows, raising=False)

    def refusal(self, rows: Array, found: BatchSolution) -> ConvergenceError:
        """Return the error of the first row that failed, as the model words it."""
        first = int(np.argmin(found.converged))
        try:
            self._solved(rows[first : first + 1], raising=True)
        except ConvergenceError as error:
            return error
        at = ", ".join(f"{k} = {v:g}" for k, v in zip(self.parameters, rows[first], strict=True))
        return ConvergenceError(f"no solution at {at}")

    def _solved(self, rows: Array, *, raising: bool) -> BatchSolution:
        columns = dict(zip(self.parameters, rows.T, strict=True))
        return self.model._solve_rows(columns, self.rtol, raising)


def solve_groups(
    model: HasCurves,
    columns: Columns,
    solve: Callable[[Any, Columns], BatchSolution],
    *,
    outputs: Sequence[str],
    raising: bool,
    together: Sequence[str] = ("alpha", "ridge"),
) -> BatchSolution:
    """Solve rows of a model, those together that differ in some parameters only.

    Parameters
    ----------
    model : HasCurves
    columns : mapping from str to array (n,)
    solve : callable
        Takes a model and the columns named in `together`.
    outputs : sequence of str
        What a solution has; those that a special case of the equations has not are zero.
    raising : bool
        Whether a row without solution is an error; else NaN and not converged.
    together : sequence of str
        Parameters that `solve` takes as arrays; the others are those of a model of their own.
    """
    own = [name for name in columns if name not in (*together, PAPER_RIDGE)]
    n = len(next(iter(columns.values())))
    table = np.stack([columns[name] for name in own], axis=1) if own else np.empty((n, 0))
    parts, groups = [], groups_of_rows(table)
    for group in groups:
        at = {name: as_given(columns[name][group[0]]) for name in own}
        one: Any = model.at(**at) if at else model
        asked = {name: values[group] for name, values in columns.items() if name not in own}
        if PAPER_RIDGE in asked and PAPER_RIDGE not in together:
            asked["ridge"] = asked.pop(PAPER_RIDGE) * asked["alpha"] / one.beta
        try:
            result = solve(one, asked)
        except ConvergenceError:
            if raising:
                raise
            singles = [
                _one_row(one, {name: values[i : i + 1] for name, values in asked.items()}, solve)
                for i in range(len(group))
            ]
            result = joined(
                [_completed(single, outputs) for single in singles],
                [np.array([i]) for i in range(len(group))],
            )
        parts.append(_completed(result, outputs))
    return joined(parts, groups)


def _one_row(
    model: HasCurves, columns: Columns, solve: Callable[[Any, Columns], BatchSolution]
) -> BatchSolution:
    try:
        return solve(model, columns)
    except ConvergenceError:
        return BatchSolution(
            values={},
            errors={},
            iterations=np.zeros(1, dtype=np.int64),
            residual=np.full(1, np.nan),
            nodes=np.zeros(1, dtype=np.int64),
            converged=np.zeros(1, dtype=bool),
        )


def _completed(found: BatchSolution, outputs: Sequence[str]) -> BatchSolution:
    """Return a solution with all outputs; joined parts must have the same."""
    zero, unknown = np.zeros(len(found.residual)), np.full(len(found.residual), np.inf)
    return replace(
        found,
        values={name: found.values.get(name, zero) for name in outputs},
        errors={name: found.errors.get(name, unknown) for name in outputs},
    )


def as_given(value: Any) -> float | int:
    """Return a number of an array as users write it: widths are whole."""
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def varied(columns: Columns) -> set[str]:
    """Return the names of columns that are axes."""
    return {name for name, values in columns.items() if values.ndim}


class HasCurves(ABC):
    """A model whose answers can be had over its parameters."""

    @abstractmethod
    def at(self, **parameters: Any) -> Self:
        """Return this model with other parameters."""

    @abstractmethod
    def to_json(self) -> str:
        """Return the model as JSON."""

    @abstractmethod
    def _axes(self) -> Mapping[str, str]:
        """Return the domain of each parameter that can be an axis."""

    @abstractmethod
    def _names(self) -> Names: ...

    @abstractmethod
    def _solve_rows(self, columns: Columns, rtol: float, raising: bool) -> BatchSolution: ...

    @abstractmethod
    def _curve_attributes(self, columns: Columns) -> dict[str, Any]:
        """Return what identifies a curve over columns of numbers, as plain values."""

    def _curve(self, dataset: xr.Dataset) -> Curve:
        """Return the answers over parameters as a result."""
        return Curve(dataset)

    def _arranged(self, dataset: xr.Dataset) -> xr.Dataset:
        """Return a dataset with arrays where outputs have components."""
        return dataset

    _asked: ClassVar[tuple[str, ...]] = ("alpha", "ridge")
    """Parameters that are none of the model's own."""
    _no_landscape: ClassVar[str] = ""
    """Why nothing is stationary in an order parameter; empty where a free energy is."""
    _maxima: ClassVar[tuple[str, ...]] = ()
    """How order parameters begin in which the free energy is a maximum, not a minimum."""

    @property
    def outputs(self) -> Outputs:
        """What the model answers, by name, as expressions in its parameters.

        They add and compare like any expression, and :func:`giantstep.conjecture` takes statements
        about them; ``model.outputs["..."].value(ridge=0.1)`` is the number.
        """
        return Outputs(self)

    def _explicit_outputs(self) -> ExplicitOutputs | None:
        """Return outputs that are enclosed over boxes of parameters; None if there are none."""
        return None

    def _closed_forms(self) -> ClosedForms | None:
        """Return outputs as rational functions of symbols with signs, where they are that."""
        return None

    def landscape(
        self,
        of: str,
        within: tuple[float, float] | None = None,
        *,
        points: int = 200,
        **parameters: Any,
    ) -> Landscape:
        """Return the free energy over one order parameter, stationary in all others.

        Its stationary points are the solutions of the equations, all of them.

        Parameters
        ----------
        of : str
            The order parameter, as :meth:`solve` names it.
        within : (float, float), optional
            Its range; default: its domain, or twice as far as a solution where that is infinite.
        points : int
            On a line.
        **parameters
            What :meth:`solve` needs; others replace those of the model.

        Returns
        -------
        Landscape

        Raises
        ------
        ParameterError
            If the model has no free energy, or `of` is none of its order parameters.
        StructureError
            If with `of` held nothing determines the others.
        ConvergenceError
            If the others have no solution anywhere.
        """
        if self._no_landscape:
            name = type(self).__name__
            raise ParameterError(f"{name} has no free-energy landscape: {self._no_landscape}")
        own = {name: x for name, x in parameters.items() if name not in self._asked}
        asked = {name: x for name, x in parameters.items() if name in self._asked}
        return (self.at(**own) if own else self)._landscape(of, within, points, asked)

    def _landscape(self, of: str, within: Any, points: int, asked: Mapping[str, Any]) -> Landscape:
        kernel = self._equations()
        senses = {
            name: "maximum" if name.startswith(self._maxima) else "minimum"
            for name in kernel.order_parameters()
        }
        found: Landscape = kernel.landscape(of, within, points=points, extremum=senses, **asked)
        solved = float(kernel.solve(**asked).values[of])
        low, high = found.within
        close = _CLOSE * (high - low)
        missed = low < solved < high and not any(
            abs(p.value - solved) < close for p in found.points
        )
        if missed:
            raise ConvergenceError(
                f"the search over {of} from {low:g} to {high:g} missed the solution, which is at "
                f"{solved:g}: others are nearly undetermined with {of} held; take another "
                "order parameter, or letters of a finite width="
            )
        return found

    def _with_landscape(self) -> tuple[str, ...]:
        """Return what :meth:`landscape` is over; none where there is no free energy."""
        return () if self._no_landscape else tuple(self._equations().with_landscape())

    def _equations(self) -> Any:
        """Return the kernel whose free energy is that of the model."""
        return self.kernel()  # type: ignore[attr-defined]

    @with_execution
    def curve(
        self,
        *,
        product: bool = True,
        rtol: float = 1e-11,
        **parameters: Any,
    ) -> Curve:
        """Return the answers over any parameters: arrays are axes, alone or as a grid.

        Parameters
        ----------
        product : bool
            Arrays are axes of a grid, in the order in which they are given; False: they have one
            length and go together, point by point.
        failures : {"raise", "keep"}
            Whether a point without solution is an error, or NaN and not ``converged``.
        rtol : float
            Wanted relative quadrature error.
        workers : int, optional
            Threads; by default one for each processor. The result does not depend on it.
        executor : concurrent.futures.Executor, optional
            Where to run instead: processes, or a cluster.
        progress : bool
            Show a bar if it takes longer than a second.
        out : path, optional
            ``.nc`` or ``.zarr``: results go there as they come, and the data set of the curve reads
            from there; memory limits only its arrays then. Replaced when all is done.
        store : path, optional
            Folder for finished blocks; the same call resumes from it.
        **parameters
            Numbers or one-dimensional arrays by name: the sample complexity `alpha` and the ridge
            penalty `ridge` (λ, or :func:`giantstep.paper_ridge`) of the readout, and parameters of
            the model, by default as they are.

        Returns
        -------
        Curve
            ``curve["test_error"]``, ``curve.plot()``, ``curve.to_dataset()``, ``curve.save(...)``.

        Raises
        ------
        ParameterError
            If a parameter is unknown, missing, no number or outside its domain.
        ConvergenceError
            If a point has no solution; what was computed is its `state`, unless it went to a file.
        """
        execution, parameters = Execution.of(parameters)
        domains = dict(self._axes())
        if isinstance(ridge := parameters.get("ridge"), PaperRidge):
            domains[PAPER_RIDGE] = domains["ridge"]
            parameters = {
                (PAPER_RIDGE if name == "ridge" else name): (
                    np.array(ridge.value) if name == "ridge" else value
                )
                for name, value in parameters.items()
            }
        known_names(parameters, domains, "parameter of a curve")
        missing = [name for name in self._asked if name not in parameters]
        if PAPER_RIDGE in parameters and "ridge" in missing:
            missing.remove("ridge")
        if missing:
            raise ParameterError(
                f"{missing[0]} must be given, a number or an array; other parameters are "
                f"{', '.join(name for name in domains if name not in self._asked)}"
            )
        columns = {name: column(name, value, domains[name]) for name, value in parameters.items()}
        own = {
            name: as_given(value)
            for name, value in columns.items()
            if not value.ndim and name not in (*self._asked, PAPER_RIDGE)
        }
        model = self.at(**own) if own else self
        columns = {name: value for name, value in columns.items() if name not in own}
        points = Points.of(tuple(columns), columns, bool(product), {})
        if len(points) > _MOST_POINTS and execution.out is None:
            raise ParameterError(
                f"the product of {', '.join(points.axes)} has {len(points):.2g} points; at most "
                f"{_MOST_POINTS:.0e} are kept in memory: give shorter arrays, or a file with out="
            )
        names = model._names()
        rtol = positive_number("rtol", rtol)
        work = _Work(model, tuple(columns), names.outputs, rtol, execution.keeps)
        result = run_sweep(
            work,
            points,
            Variables(names.outputs, names.errors, "residual", "iterations", "converged"),
            meanings={**NAMES, **names.meanings, PAPER_RIDGE: NAMES["paper_ridge"]},
            attributes={
                **model._curve_attributes(columns),
                **points.fixed,
                "kind": "theory",
                "shown": " ".join(names.shown),
                "drawn": " ".join(names.drawn),
            },
            execution=execution,
            refuse=work.refusal,
        )
        return model._curve(result if execution.out else model._arranged(result))


@dataclass(frozen=True, eq=False, repr=False)
class Curve(DatasetResult):
    """Answers of a model over one or several of its parameters.

    Attributes
    ----------
    dataset : xarray.Dataset
        Every output over the parameters that vary, estimated errors and residuals; the model and
        versions in its attributes. ``curve["test_error"]``, or ``curve.test_error``, is one of
        its arrays.
    """

    _document = "curve"
    _needed = ("shown",)

    @property
    def axes(self) -> tuple[str, ...]:
        """Parameters that vary, in the order of the dimensions."""
        first = self.dataset[self.shown[0]]
        return tuple(str(d) for d in first.dims if d in self.dataset.coords) or tuple(
            str(name) for name, c in self.dataset.coords.items() if c.dims
        )

    @property
    def shown(self) -> tuple[str, ...]:
        """Outputs that tables show."""
        return tuple(str(self.dataset.attrs["shown"]).split())

    def plot(
        self,
        of: str | Sequence[str] | None = None,
        *,
        simulation: Any = None,
        ax: Any = None,
        **style: Any,
    ) -> Any:
        """Draw outputs over the parameters: lines over one, a map of one output over two.

        Parameters
        ----------
        of : str or sequence of str, optional
            Outputs; default: the test error, or the risks.
        simulation : xarray.Dataset, optional
            Networks over the same parameter, as ``model.simulate`` returns them; means with
            standard errors.
        """
        return plot_curve(self, of, simulation=simulation, ax=ax, **style)

    def report(self, path: str | os.PathLike[str], *, title: str = "", command: str = "") -> Path:
        """Write the curve as one HTML file; one of spiked features with all that was derived.

        As :meth:`.Reported.report`.
        """
        try:
            model = saved_model(str(self.dataset.attrs.get("model")))
        except ParameterError:
            # Curves of kernels name a system.
            model = None
        write = getattr(model, "write_curve_report", None)
        if write is None or self.axes != ("alpha",):
            return super().report(path, title=title, command=command)
        written: Path = write(path, self.dataset, command=command)
        return written

    def page(self) -> Iterable[Block]:
        """Return the outputs that matter most, at points from both ends of a long curve."""
        names, like = [*self.axes, *self.shown[:_COLUMNS]], self.shown[0]
        yield self._table(names, like, lambda x: [f"{float(v):.8g}" for v in self._flat(x, like)])
        yield self.rests_on

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        data = self.dataset
        if "rests_on" in data.attrs:
            return str(data.attrs["rests_on"])
        errors = [name for name in data.data_vars if "error_estimate" in str(name)]
        errors += ["quadrature_error"] if "quadrature_error" in data else []
        largest = max((float(data[name].max()) for name in errors), default=0.0)
        return (
            f"saddle-point equations, floats with errors of at most {largest:.1e}, residuals "
            f"{float(data['residual'].max()):.1e}"
        )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {n}" for name, n in self.dataset.sizes.items())
        return f"Curve({sizes}; {', '.join(self.shown)})"

    def _check(self) -> None:
        if not {*self.shown} <= {*map(str, self.dataset.data_vars)}:
            raise ValueError("it has not the outputs that it says it has")
