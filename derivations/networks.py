"""Networks of finite size from texts: what is trained, and how it is measured.

:class:`Network` is the network of :mod:`giantstep.numeric.networks` with student, teacher and loss
as texts or expressions, compiled here; :func:`simulate` trains many of them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ..errors import GiantstepError, ParameterError
from ..numeric.arguments import is_one_of, positive_array, whole_number
from ..numeric.networks import network as finite
from ..numeric.networks.readout import ConvexReadout, Readout, RidgeReadout
from ..numeric.networks.run import Measures, Networks, simulate as run
from ..numeric.networks.sizes import sample_count
from ..pages import Block, Page, Table
from ..symbolic.expressions.activations import Activation, activation
from ..symbolic.hermite.coefficients import hermite_coefficient
from ..symbolic.printing.compiled import compiled
from ..symbolic.targets.target import Target, closed_target as read_target
from .activation_functions import elementwise
from .curve_figure import plot_curve, plot_simulation
from .curves import Curve
from .network_dataset import axes_of, mean_and_error, network_dataset
from .spiked_random_features.convex.losses import convex_loss, simulated_loss, x, y

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]

# Entries of a measured array that a table lists; larger ones are told by their shape.
_LISTED = 12
# What the table of errors shows, and what else readouts give.
_SHOWN = ("test_error", "training_error")
_ERRORS = ("test_loss", "training_loss", "objective", "certificate", "ridge")


class Network(finite.Network):
    r"""A two-layer network of finite size, its teacher and its gradient steps.

    .. math:: f(x) = \frac1p \sum_j a_j\,\sigma(w_j\cdot x + b_j), \qquad
              w_j \leftarrow w_j - \frac{s}{n}\,a_j \sum_\mu \ell'(y_\mu, f(x_\mu))\,
              \sigma'(w_j\cdot x_\mu + b_j)\,x_\mu .

    Parameters
    ----------
    student : str, Expr, Activation or callable
        σ. Of a function of arrays `student_derivative` has to be given for steps by gradients.
    teacher : str, Expr, Target or callable
        The target, a function of x1, …, xr (of z for one direction), or a function of arrays.
    loss : str, Expr or ConvexLoss, optional
        Of the steps, :math:`\ell(y, f)`; the square loss by default.
    **options
        The other fields of :class:`giantstep.numeric.networks.network.Network`: ``dimension`` and
        ``width``; ``noise_variance`` and ``labels``; ``rows``, ``readout`` with ``fractions``,
        ``biases``, ``paired``, ``replicas``; ``steps``, ``step_samples``, ``step_size`` with
        ``exponent``, ``scaling``, ``fresh``, ``weight_decay``, ``normalise``, ``preprocess``,
        ``gradient``; ``precision``.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    AssumptionError
        If the student jumps, and steps by gradients are asked for.
    ExpressionError, UnsupportedExpressionError
        If a text cannot be read.

    Examples
    --------
    >>> network = Network("tanh", "x1 + x1*x2", dimension=50, width=20, readout=[1.0], steps=1,
    ...                   step_samples=400, step_size=2.0)
    >>> network.directions, network.train(seed=1).rows.shape
    (2, (20, 50))
    """

    __slots__ = ()

    def __init__(self, student: Any, teacher: Any, *, loss: Any = None, **options: Any) -> None:
        named = {"student": _name(student), "teacher": _name(teacher)}
        steps = whole_number("steps", options.get("steps", 0), minimum=0) > 0
        if _is_symbolic(student):
            student, options = _student(student, steps, options)
        if _is_symbolic(teacher):
            teacher, directions = _teacher(teacher)
            options = {"directions": directions, **options}
        if loss is not None:
            named["loss"], options["loss_derivative"] = _loss_derivative(loss)
        # Functions of arrays have no names that tell them apart.
        if None not in named.values() and not callable(options.get("labels")):
            options.setdefault("description", json.dumps(named, sort_keys=True))
        super().__init__(student=student, teacher=teacher, **options)


def _is_symbolic(given: object) -> bool:
    # Expressions can be called, too.
    return isinstance(given, str | sp.Basic | Activation | Target)


def _name(given: object) -> str | None:
    return str(given) if _is_symbolic(given) else None


def _student(given: Any, steps: bool, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the student as a function of arrays, and options with its derivative and slope."""
    result = activation(given, argument="student")
    function = elementwise(result)
    if not steps:
        return function, options
    options = dict(options)
    gradient = options.get("gradient", "full")
    if is_one_of(gradient, ("full",)) and "student_derivative" not in options:
        function.require_slope()
        options["student_derivative"] = function.slopes
    if is_one_of(gradient, ("rank one",)) and "slope" not in options:
        options["slope"] = float(hermite_coefficient(result, 1))
    return function, options


def _teacher(given: Any) -> tuple[Any, int]:
    """Return a target as a function of arrays, and its number of directions."""
    single = None if isinstance(given, Target) else _of_one_variable(given)
    if single is not None:
        return elementwise(single), 1
    result = read_target(given, argument="teacher")
    if result.dimension == 1:
        return compiled(result.expr, result.variables), 1
    return compiled(result.expr, (result.variables,)), result.dimension


def _of_one_variable(given: str | sp.Expr | Activation) -> Activation | None:
    """Return an activation by name, or a function of z; None for functions of x1, …"""
    try:
        return activation(given, argument="teacher")
    except GiantstepError:
        return None


def _loss_derivative(loss: Any) -> tuple[str, Any]:
    """Return the name of a loss and its derivative in the output, of label and output."""
    result = convex_loss(loss)
    return str(result), compiled(result.with_numbers.diff(x), (y, x))


@dataclass(frozen=True, repr=False)
class SimulatedNetworks(Page):
    """What networks of finite size achieved.

    Attributes
    ----------
    network : Network
    readout : RidgeReadout, ConvexReadout or None
    seed : int
        Entropy of the run.
    networks : Networks
        The arrays of all seeds: ``found["test_error"]`` is the same as
        ``found.networks["test_error"]``.
    """

    network: finite.Network
    readout: Readout | None
    seed: int
    networks: Networks = field(compare=False)

    def __getitem__(self, quantity: str) -> Array:
        """Return the array of a quantity; its first axis is the network."""
        return self.networks[quantity]

    def mean(self, quantity: str = "test_error") -> Array:
        """Mean over the networks; see :meth:`.run.Networks.mean`."""
        return self.networks.mean(quantity)

    def standard_error(self, quantity: str = "test_error") -> Array:
        """Standard error of the mean; see :meth:`.run.Networks.standard_error`."""
        return self.networks.standard_error(quantity)

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        count = len(self.networks.completed)
        state = ", interrupted" if self.networks.interrupted else ""
        return (
            f"Simulation: mean and standard error of {count} "
            f"network{'s' if count > 1 else ''} of d = {self.network.dimension}, "
            f"p = {self.network.width}{state}."
        )

    def page(self) -> Iterable[Block]:
        """Return tables of means with standard errors."""
        shown = [name for name in _SHOWN if name in self.networks.quantities]
        if shown and len(axes_of(self.networks, shown[0])) == 3:
            yield self._errors(shown)
        else:
            shown = []
        rest, large = [], []
        for name in self.networks.quantities:
            if name in _ERRORS or (name in _SHOWN and name in shown):
                continue
            mean, error = mean_and_error(self.networks, name)
            if mean.size > _LISTED:
                large.append(f"{name} {mean.shape}")
                continue
            for index in np.ndindex(mean.shape):
                rest.append(
                    (self._label(name, index), _with_error(float(mean[index]), float(error[index])))
                )
        if rest:
            yield Table(rest)
        if large:
            yield f"Arrays: {', '.join(large)}"
        yield self.rests_on

    def _errors(self, names: Sequence[str]) -> Table:
        """Return errors, a row for each sample complexity and penalty."""
        assert self.readout is not None
        result = [mean_and_error(self.networks, name) for name in names]
        ratios = np.asarray(self.readout.sizes) / self.network.dimension
        ridges, _ = mean_and_error(self.networks, "ridge")
        rows = [
            [
                f"{ratios[i]:.6g}",
                f"{ridges[i, k]:.6g}",
                *(_with_error(float(mean[i, k]), float(error[i, k])) for mean, error in result),
            ]
            for i, k in np.ndindex(ridges.shape)
        ]
        return Table(rows, ["α", "λ", *(name.replace("_", " ") for name in names)])

    def _label(self, name: str, index: tuple[int, ...]) -> str:
        shape, axes = self.networks[name].shape[1:], axes_of(self.networks, name)[1:]
        coordinates = self._coordinates()
        parts = [
            f"{axis} {coordinates[axis][i]:g}" if axis in coordinates else f"{axis} {i}"
            for axis, i, size in zip(axes, index, shape, strict=True)
            if size > 1
        ]
        return f"{name.replace('_', ' ')} ({', '.join(parts)})" if parts else name.replace("_", " ")

    def _coordinates(self) -> dict[str, Array]:
        steps = next(iter(self.networks.steps.values()), ())
        result: dict[str, Array] = {"step": np.asarray(steps)} if steps else {}
        if self.readout is None:
            return result
        result |= {"alpha": np.asarray(self.readout.sizes) / self.network.dimension}
        if isinstance(self.readout, RidgeReadout) and self.readout.penalties is not None:
            result["ridge"] = np.atleast_1d(np.asarray(self.readout.penalties, dtype=float))
        return result

    def to_dataset(self) -> xr.Dataset:
        """Return all quantities with their means and standard errors as labelled arrays.

        Returns
        -------
        xarray.Dataset
            Over ``seed`` and, for what readouts achieve, ``alpha`` and ``ridge`` if there are
            several; beside every quantity ``…_mean`` and ``…_standard_error``.
        """
        return network_dataset(
            self.networks,
            self._coordinates(),
            {
                "dimension": self.network.dimension, "width": self.network.width,
                "entropy": self.seed, "rests_on": self.rests_on,
            },
        )  # fmt: skip

    def plot(self, theory: Curve | None = None, *, ax: Any = None, **style: Any) -> Any:
        """Draw the test error over the sample complexity with standard errors.

        Parameters
        ----------
        theory : Curve, optional
            A learning curve of any model, drawn as a line.
        ax : matplotlib.axes.Axes, optional
            Where to draw; default: a new figure, found as ``axes.figure``.
        style : optional
            Keywords of matplotlib's lines, such as `color` and `label`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ParameterError
            If there are no errors, or several penalties.
        MissingDependencyError
            Without matplotlib.
        """
        data = self.to_dataset()
        if "test_error_mean" not in data or data["test_error_mean"].dims != ("alpha",):
            raise ParameterError(
                "plot draws test errors over the sample complexity; measure 'errors' with one ridge"
            )
        if theory is None:
            return plot_simulation(data, ax=ax, **style)
        return plot_curve(theory, simulation=data, ax=ax, **style)

    def __repr__(self) -> str:
        return (
            f"SimulatedNetworks({len(self.networks.completed)} networks, "
            f"d = {self.network.dimension}, p = {self.network.width}: "
            f"{', '.join(self.networks.quantities)})"
        )


def _with_error(mean: float, error: float) -> str:
    """Return a mean to the second digit of its standard error."""
    if not 0 < error < math.inf:
        return f"{mean:.6g}"
    decimals = 1 - math.floor(math.log10(error))
    if not -4 <= decimals <= 8:
        return f"{mean:.6g} ± {error:.2g}"
    return f"{round(mean, decimals):.{max(decimals, 0)}f} ± {error:.{max(decimals, 0)}f}"


def simulate(
    network: finite.Network,
    measure: Measures | None = None,
    *,
    alpha: object = None,
    samples: int | Sequence[int] | None = None,
    ridge: float | Sequence[float] | None = None,
    loss: Any = None,
    intercept: bool = False,
    n_test: int | None = None,
    seeds: int = 10,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    description: str | None = None,
    progress: bool | None = None,
) -> SimulatedNetworks:
    r"""Train networks of finite size and measure them.

    Parameters
    ----------
    network : Network
    measure : measurements, optional
        "errors" and "overlaps" of the readouts, "spike" (realised spike strength, bulk variance and
        alignment), others of :data:`giantstep.numeric.networks.measure.MEASUREMENTS`, or functions
        of a :class:`giantstep.numeric.networks.readout.TrainedNetwork` that return arrays by name;
        after the last step, or, for a mapping, after the numbers of steps that it holds. By default
        errors and spike, without `alpha` and `samples` the spike.
    alpha : float or sequence of float, optional
        Samples of the readout divided by the dimension.
    samples : int or sequence of int, optional
        The same as numbers of samples.
    ridge : float or sequence of float, optional
        λ of the readout: :math:`\sum(y - \hat y)^2 + \lambda|w|^2`, or with a loss
        :math:`\sum\ell(y, \hat y) + \frac\lambda2|w|^2`, for features divided by √p. By default
        chosen on a fifth of the samples that is held out.
    loss : str, Expr or ConvexLoss, optional
        Convex loss of the readout; the square loss by default.
    intercept : bool
        Fit a constant that is not penalised; for the square loss.
    n_test : int, optional
        Fresh samples; max(10000, 10 d) by default.
    seeds, seed, workers, executor, store, description, progress
        See :func:`giantstep.numeric.networks.run.simulate`.

    Returns
    -------
    SimulatedNetworks

    Raises
    ------
    ParameterError
        If an argument is outside its range, the networks do not fit into the memory, or the store
        is that of another run.
    KeyboardInterrupt
        If interrupted before two seeds had finished. What is done is in `store` nevertheless.

    Examples
    --------
    >>> network = Network("tanh", "sin", dimension=50, width=50, steps=1, step_samples=400,
    ...                   step_size=2.0)
    >>> found = simulate(network, alpha=[0.5, 2], ridge=0.1, seeds=3)
    >>> found.mean("test_error").shape, found.mean("alignment").round(1).item()
    ((2, 1), 0.9)
    """
    if not isinstance(network, finite.Network):
        raise ParameterError(f"network must be a Network, not {type(network).__name__}")
    readout = _readout(network, alpha, samples, ridge, loss, intercept, n_test)
    if measure is None:
        measure = ("spike",) if readout is None else ("errors", "spike")
    result = run(
        network, measure, readout=readout, seeds=seeds, seed=seed, workers=workers,
        executor=executor, store=store, description=description, progress=progress,
    )  # fmt: skip
    return SimulatedNetworks(network, readout, result.seed, result)


def _readout(
    network: finite.Network, alpha: object, samples: Any, ridge: Any, loss: Any, intercept: bool,
    n_test: int | None,
) -> Readout | None:  # fmt: skip
    if alpha is not None:
        if samples is not None:
            raise ParameterError("alpha and samples are the same; give one of them")
        ratios = positive_array("alpha", alpha).tolist()
        samples = [sample_count("alpha", ratio, network.dimension) for ratio in ratios]
    if samples is None:
        if ridge is not None or loss is not None:
            raise ParameterError(
                "ridge and loss are those of a readout; give alpha or samples, too"
            )
        return None
    selected = None if loss is None else simulated_loss(convex_loss(loss))
    if selected is None:
        return RidgeReadout(samples, ridge, intercept=intercept, test_samples=n_test)
    if intercept:
        raise ParameterError("intercept is for the square loss; leave it out")
    if ridge is None or np.ndim(ridge):
        raise ParameterError(f"ridge must be one number for loss {str(loss)!r}, got {ridge!r}")
    return ConvexReadout(samples, ridge, selected, n_test)
