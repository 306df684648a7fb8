r"""Narrow networks step by step: overlaps from giant steps to online learning, as users ask for it.

:class:`OverlapDynamics` says what is trained and how. :meth:`~OverlapDynamics.trajectory` iterates
the map of :mod:`.physics`, :meth:`~OverlapDynamics.flow` integrates its limit of short steps on the
same time axis t = s · step, and :meth:`~OverlapDynamics.simulate` trains networks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...errors import AssumptionError, ConvergenceError, GiantstepError, ParameterError
from ...labelled import described
from ...numeric.arguments import (
    finite_number,
    is_one_of,
    nonnegative_number,
    positive_number,
    real_array,
    whole_number,
)
from ...numeric.cache import FileCache
from ...numeric.nested_grids import nested_grid
from ...numeric.networks.readout import TrainedNetwork
from ...numeric.networks.sizes import sample_count
from ...numeric.saddle_point_solver import BatchSolution
from ...pages import Block, Table
from ...result import Result, quantity
from ...symbolic.expressions.activations import activation, z
from ...symbolic.expressions.regularity import require_square_integrable
from ...symbolic.gaussian.hermite_polynomials import hermite_polynomial
from ...symbolic.leaps.staircase import staircase
from ...symbolic.printing.compiled import compiled
from ...symbolic.targets.target import Target, closed_target as read_target
from ..curves import Columns, Names, as_given, solve_groups
from ..derived import derived
from ..figures import BLUE, GREEN, GREY, VERMILLION, Pen, drawing
from ..json_text import SavedModel
from ..kernels.maps import FixedPoint, StateKernel, StateTexts, crossing
from ..kernels.sensitivities import Sensitivities, chosen_names
from ..networks import Network, SimulatedNetworks, simulate
from ..sensitivities import HasOptima
from .physics import Factor, reused_batch, sampling, step_size
from .quadrature import Quadrature, state_matrices
from .system import OverlapSystem

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]

MOST = 6
"""Neurons and directions."""
LEARNED = 0.5
"""A direction is learned when a neuron's cosine with it reaches this."""

MOST_REUSED = 4
"""Fields of a sample that two steps see."""
# Nodes on each line, by the number of fields.
_REUSED_NODES = {3: 101, 4: 41}

_COLOURS = (BLUE, VERMILLION, GREEN, "#CC79A7", "#E69F00", "#56B4E9")
# Smallest eigenvalue of overlaps, relative to the largest, that is rounding.
_ROUNDING = 1e-9
_AVERAGES = ("auto", "quadrature")
_STARTS = 40


@dataclass(frozen=True, repr=False)
class Trajectory(Result):
    r"""Overlaps along a trajectory.

    Attributes
    ----------
    form : {"map", "flow"}
        Giant steps, or their limit of short steps.
    steps : float
        Length in steps; of a flow in units of the step size.
    final_error : float
        :math:`E(f - f_*)^2` at its end.
    learned : mapping from str to float
        Step at which a neuron's cosine with a direction first reached one half.
    predicted : mapping from str to int
        Step at which the staircase of the target has the direction; only for starts without
        overlap with the teacher.
    singular : bool
        Whether a neuron lay in the span of the others and the teacher at some step, so that a
        generalised inverse was taken.
    quadrature_error : float
        Estimated relative error of averages without closed form; 0 if all have one.
    places : tuple of float
        The steps that were recorded.
    columns : mapping from str to tuple of float
        ``Q_1_1``, ``Q_1_2``, …, ``M_1_1``, …, ``a_1``, … and ``error`` at these.
    neurons, directions : int
    step_size : float
    """

    _document = "trajectory of overlaps"

    form: str = field(metadata=quantity("form"))
    steps: float = field(metadata=quantity("steps", "t", significant=8))
    final_error: float = field(metadata=quantity("error at the end", r"E(f - f_*)^2"))
    learned: Mapping[str, float] = field(metadata=quantity("learned at step", significant=6))
    predicted: Mapping[str, int] = field(metadata=quantity("predicted by the staircase"))
    singular: bool = field(metadata=quantity("dependent neurons"))
    quadrature_error: float = field(metadata=quantity("error of averages", significant=2))
    places: tuple[float, ...]
    columns: Mapping[str, tuple[float, ...]]
    neurons: int
    directions: int
    step_size: float

    @property
    def rests_on(self) -> str:
        """What the numbers rest on."""
        averages = (
            f"averages by quadrature, to {self.quadrature_error:.1e}"
            if self.quadrature_error
            else "averages in closed form"
        )
        what = "map of overlaps for d → ∞" if self.form == "map" else "flow of short steps"
        inverse = "; a generalised inverse where neurons are dependent" if self.singular else ""
        return f"Exact {what} ({averages}){inverse}; networks deviate by O(d^(-1/2))."

    def column(self, name: str) -> Array:
        """Return a recorded quantity over the steps.

        Raises
        ------
        ParameterError
            If there is none of this name.
        """
        if name not in self.columns:
            raise ParameterError(f"no quantity {name!r}; there are: {', '.join(self.columns)}")
        return np.array(self.columns[name])

    @property
    def self_overlaps(self) -> Array:
        """Q at every recorded step, (steps, p, p)."""
        return _matrices(self.columns, self.neurons, self.directions)[0]

    @property
    def teacher_overlaps(self) -> Array:
        """M at every recorded step, (steps, p, K)."""
        return _matrices(self.columns, self.neurons, self.directions)[1]

    @property
    def readouts(self) -> Array:
        """Second layer at every recorded step, (steps, p)."""
        return np.stack([self.column(f"a_{j + 1}") for j in range(self.neurons)], axis=1)

    def page(self) -> Iterable[Block]:
        """Return the numbers, a table of some steps, and what they rest on."""
        yield from list(super().page())[:-1]
        shown = sorted({round(x) for x in np.linspace(0, len(self.places) - 1, 9)})
        names = [name for name in self.columns if name[0] == "M"][:8]
        rows = [
            [f"{self.places[i]:g}", f"{self.columns['error'][i]:.6g}"]
            + [f"{self.columns[name][i]:.6g}" for name in names]
            for i in shown
        ]
        yield Table(rows, ["step", "error", *names])
        yield self.rests_on

    def to_dataset(self) -> xr.Dataset:
        """Return the overlaps as labelled arrays over ``step``."""
        own, teacher = _matrices(self.columns, self.neurons, self.directions)
        data = super().to_dataset()
        data = data.assign_coords(step=np.array(self.places))
        data = data.assign(
            {
                "self_overlap": (("step", "neuron", "other_neuron"), own),
                "teacher_overlap": (("step", "neuron", "direction"), teacher),
                "readout": (("step", "neuron"), self.readouts),
                "error": ("step", self.column("error")),
            }
        )
        return described(data.assign_coords(time=("step", np.array(self.places) * self.step_size)))

    def plot(
        self,
        *,
        ax: Any = None,
        networks: SimulatedNetworks | None = None,
        flow: Trajectory | None = None,
        **style: Any,
    ) -> Any:
        """Draw the overlaps with the teacher over the steps.

        Parameters
        ----------
        networks : SimulatedNetworks, optional
            Of :meth:`OverlapDynamics.simulate`, drawn as points with standard errors.
        flow : Trajectory, optional
            Drawn as dashed lines on the same axis.
        """
        with drawing(ax, style) as (axes, pen):
            for trajectory in (self, flow):
                if trajectory is not None:
                    self._draw(axes, trajectory, pen)
            if networks is not None:
                self._draw_networks(axes, networks)
            for line, (name, step) in enumerate(self.predicted.items()):
                if 0 < step <= self.places[-1]:
                    axes.axvline(step, color=GREY, linewidth=0.6)
                    axes.annotate(
                        name, (step, 1.0), xycoords=("data", "axes fraction"),
                        xytext=(3, -10 - 13 * line), textcoords="offset points",
                        fontsize="small", color=GREY,
                    )  # fmt: skip
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_xlabel("step")
            axes.set_ylabel("overlap with the teacher")
            axes.legend()
        return axes

    def _draw(self, axes: Any, trajectory: Trajectory, pen: Pen) -> None:
        style = "-" if trajectory.form == "map" else "--"
        teacher = trajectory.teacher_overlaps
        for j, k in np.ndindex(teacher.shape[1:]):
            look = pen(
                f"$M_{{{j + 1}{k + 1}}}$", several=teacher[0].size > 1, linestyle=style,
                color=_COLOURS[k % len(_COLOURS)], alpha=1 - 0.5 * j / max(self.neurons, 2),
            )  # fmt: skip
            if trajectory is not self:
                look |= {"linestyle": style, "label": "_"}
            axes.plot(trajectory.places, teacher[:, j, k], **look)

    def _draw_networks(self, axes: Any, networks: SimulatedNetworks) -> None:
        name = "teacher_overlap"
        mean, error = networks.mean(name), networks.standard_error(name)
        assert networks.networks is not None
        steps = networks.networks.steps[name]
        mean = mean.reshape(len(steps), self.neurons, self.directions)
        error = error.reshape(mean.shape)
        for j, k in np.ndindex(mean.shape[1:]):
            axes.errorbar(
                steps, mean[:, j, k], error[:, j, k], fmt="o", markersize=3,
                color=_COLOURS[k % len(_COLOURS)],
                label="networks" if j == k == 0 else None,
            )  # fmt: skip


@dataclass(frozen=True, repr=False)
class EarlyGrowth(Result):
    r"""How small overlaps with the teacher grow, around a start without any.

    Attributes
    ----------
    fastest : float
        The largest factor by which a small overlap grows in a step.
    factors : tuple of float
        Sizes of the eigenvalues of the linearised map of M, largest first.
    rates : tuple of float
        Real parts of the eigenvalues λ of :math:`\partial A_u/\partial M`; factors are
        :math:`|1 - \omega + s\lambda|`.
    pushed : tuple of float
        Largest entry of :math:`A_u` at M = 0 in each direction: what is not zero is learned in the
        first step.
    escape_steps : float
        Steps until the fastest overlap has grown from :math:`d^{-1/2}` to order one,
        :math:`\log d/(2\log|1 - \omega + s\lambda|)`; inf if none grows, NaN without a dimension.
    dimension : int or None
    """

    _document = "growth of small overlaps"

    fastest: float = field(metadata=quantity("largest factor", significant=10))
    factors: tuple[float, ...] = field(metadata=quantity("factors of a step", significant=10))
    rates: tuple[float, ...] = field(metadata=quantity("rates", r"\lambda", significant=10))
    pushed: tuple[float, ...] = field(metadata=quantity("gradients without overlap"))
    escape_steps: float = field(metadata=quantity("steps until escape", significant=6))
    dimension: int | None = None

    @property
    def rests_on(self) -> str:
        """What the numbers rest on."""
        return "Exact derivatives of closed averages; their eigenvalues in floating point."


@dataclass(frozen=True, repr=False)
class SecondStep(Result):
    """Overlaps with the teacher after two steps, of which the second has the same batch or another.

    Attributes
    ----------
    same, fresh : tuple of float
        M after the second step on the batch of the first one, and on a new one, row by row.
    first : tuple of float
        M after the first step.
    quadrature_error : float
        Distance of two grids, of :attr:`same`.
    neurons, directions : int
    """

    _document = "second step"

    same: tuple[float, ...] = field(metadata=quantity("same batch", "M''", significant=8))
    fresh: tuple[float, ...] = field(metadata=quantity("fresh batch", significant=8))
    first: tuple[float, ...] = field(metadata=quantity("after the first step", significant=8))
    quadrature_error: float = field(metadata=quantity("error of averages"))
    neurons: int
    directions: int

    @property
    def rests_on(self) -> str:
        """What the numbers rest on."""
        return (
            "Averages for d → ∞ over the fields of a sample that both steps see (derived here), by "
            "quadrature with an estimated error; networks deviate by O(d^(-1/2))."
        )


@dataclass(frozen=True)
class StartRows:
    """Rows with given overlaps: along the first axes, and a random orthonormal frame across."""

    own: tuple[tuple[float, ...], ...]
    teacher: tuple[tuple[float, ...], ...]

    def __call__(self, generator: np.random.Generator, width: int, dimension: int) -> Array:
        """Draw the rows."""
        own, teacher = np.array(self.own), np.array(self.teacher)
        k = teacher.shape[1]
        values, vectors = np.linalg.eigh(own - teacher @ teacher.T)
        across = vectors * np.sqrt(np.maximum(values, 0.0))
        frame, _ = np.linalg.qr(generator.standard_normal((dimension - k, width)))
        return np.concatenate([teacher, across @ frame.T], axis=1)


def row_overlaps(trained: TrainedNetwork) -> dict[str, Array]:
    """Measure ``self_overlap`` (p, p), ``teacher_overlap`` (p, K) and ``second_layer`` (p,)."""
    rows = trained.layer.rows
    return {
        "self_overlap": rows @ rows.T,
        "teacher_overlap": rows[:, : trained.network.directions].copy(),
        "second_layer": trained.layer.readout / trained.network.width,
    }


@dataclass(frozen=True, kw_only=True, repr=False)
class OverlapDynamics(SavedModel, HasOptima):
    r"""A narrow network that learns a function of a few directions, step by step.

    .. math:: f(x) = \sum_{j=1}^p a_j\,\sigma(w_j\cdot x), \qquad
              w_j \leftarrow (1 - \omega) w_j + \frac{s}{n}\sum_\mu a_j\,\sigma'(w_j\cdot x_\mu)\,
              (y_\mu - f(x_\mu))\,x_\mu

    with n fresh samples in each step, p and K of order one, as d → ∞.

    Parameters
    ----------
    student : str
        σ: a name or an expression in z.
    teacher : str
        Function of x1, …, xK.
    readout : sequence of float
        a, at most 6 neurons.
    self_overlaps : matrix, optional
        Q of the start; the identity by default.
    teacher_overlaps : matrix, optional
        M of the start, (p, K); zero by default.
    step_size : float
        s. The half square loss is meant; of :math:`(y - f)^2` it is twice the learning rate.
    alpha0 : float, optional
        n/d of each step; inf: population gradient descent.
    step_samples, dimension : int, optional
        Instead of `alpha0`, n and d: means over batches of a fixed size.
    noise_variance : float
        Δ, of the labels.
    weight_decay : float
        ω, of the first layer.
    second_layer_step : float
        Learning rate :math:`s_2` of the second layer.
    averages : {"auto", "quadrature"}
        Whether closed forms are taken where they exist.
    cache_folder : path, optional

    Raises
    ------
    ParameterError
        If an argument is outside its range, or the start is none of rows of a network.
    AssumptionError
        If the student jumps.

    Examples
    --------
    >>> model = OverlapDynamics(student="erf", teacher="erf(x1)", readout=[1.0],
    ...                         teacher_overlaps=[[0.1]], step_size=0.5, alpha0=1.0)
    >>> round(float(model.trajectory(steps=6).column("M_1_1")[-1]), 10)
    0.8758955709
    """

    _model: ClassVar[str] = "OverlapDynamics"

    student: str
    teacher: str
    readout: Sequence[float] = (1.0,)
    self_overlaps: Any = None
    teacher_overlaps: Any = None
    step_size: float = 1.0
    alpha0: float | None = None
    step_samples: int | None = None
    dimension: int | None = None
    noise_variance: float = 0.0
    weight_decay: float = 0.0
    second_layer_step: float = 0.0
    averages: str = "auto"
    cache_folder: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "student", str(self.student))
        set_(self, "teacher", str(self.teacher))
        sigma = activation(self.student, argument="student")
        # Refused here: it has no gradient.
        _ = sigma.derivative
        readout = real_array("readout", self.readout)
        if readout.ndim != 1 or not 1 <= len(readout) <= MOST or not np.isfinite(readout).all():
            raise ParameterError(
                f"readout must be 1 to {MOST} finite numbers, one for each neuron, got "
                f"{self.readout!r}"
            )
        if not readout.any():
            raise ParameterError("readout must not be all zero: no neuron would move")
        set_(self, "readout", tuple(readout.tolist()))
        p, k = len(readout), read_target(self.teacher, argument="teacher").dimension
        if k > MOST:
            raise ParameterError(f"teacher must see at most {MOST} directions, got {k}")
        self._check_start(p, k)
        positive_number("step_size", self.step_size)
        for name in ("noise_variance", "weight_decay"):
            set_(self, name, nonnegative_number(name, getattr(self, name)))
        if self.weight_decay > 1:
            raise ParameterError(f"weight_decay must be at most 1, got {self.weight_decay}")
        set_(self, "second_layer_step", finite_number("second_layer_step", self.second_layer_step))
        self._check_batches()
        if not is_one_of(self.averages, _AVERAGES):
            raise ParameterError(
                f"averages must be one of {', '.join(_AVERAGES)}, got {self.averages!r}"
            )

    def _check_start(self, p: int, k: int) -> None:
        own = np.eye(p) if self.self_overlaps is None else real_array("x", self.self_overlaps)
        teacher = (
            np.zeros((p, k)) if self.teacher_overlaps is None
            else real_array("x", self.teacher_overlaps)
        )  # fmt: skip
        for name, given, shape in (
            ("self_overlaps", own, (p, p)), ("teacher_overlaps", teacher, (p, k)),
        ):  # fmt: skip
            if given.shape != shape or not np.isfinite(given).all():
                raise ParameterError(
                    f"{name} must be a finite matrix of shape {shape}, "
                    f"{'neurons by neurons' if given is own else 'neurons by directions'}, got "
                    f"shape {given.shape}"
                )
        if not np.allclose(own, own.T, rtol=0, atol=1e-14 * np.max(np.abs(own), initial=1.0)):
            raise ParameterError("self_overlaps must be symmetric")
        smallest = float(np.linalg.eigvalsh(own - teacher @ teacher.T)[0])
        if smallest < -_ROUNDING * max(1.0, float(np.max(np.abs(own)))):
            raise ParameterError(
                "self_overlaps and teacher_overlaps are those of no rows: Q - M M^T must be "
                f"positive semidefinite, and has the eigenvalue {smallest:.3g}"
            )
        object.__setattr__(self, "self_overlaps", _rows(own))
        object.__setattr__(self, "teacher_overlaps", _rows(teacher))

    def _check_batches(self) -> None:
        sizes = self.step_samples, self.dimension
        if (self.alpha0 is None) == (None in sizes) or (
            self.alpha0 is not None and sizes != (None, None)
        ):
            raise ParameterError(
                "alpha0, or both step_samples and dimension must be given: n/d, or n and d"
            )
        if self.alpha0 is None:
            for name in ("step_samples", "dimension"):
                object.__setattr__(self, name, whole_number(name, getattr(self, name)))
            return
        value = self.alpha0
        if not (isinstance(value, int | float) and value == math.inf):
            value = positive_number("alpha0", value)
        object.__setattr__(self, "alpha0", float(value))

    # ------------------------------------------------------------------ what it is

    @property
    def neurons(self) -> int:
        """p."""
        return len(self.readout)

    @property
    def directions(self) -> int:
        """K."""
        return len(self.teacher_overlaps[0])

    @cached_property
    def system(self) -> OverlapSystem:
        """Averages and their places."""
        return _system(self.student, self.teacher, self.neurons)

    @property
    def sampling(self) -> float:
        """d/n."""
        if self.alpha0 is None:
            assert self.dimension is not None and self.step_samples is not None
            return self.dimension / self.step_samples
        return 1 / self.alpha0

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters of the map."""
        return {
            "step_size": self.step_size,
            "second_layer_step": self.second_layer_step,
            "weight_decay": self.weight_decay,
            "noise_variance": self.noise_variance,
            "sampling": self.sampling,
            "pairs": 1.0 if self.step_samples is None else 1 - 1 / self.step_samples,
        }

    @property
    def flow_parameters(self) -> dict[str, float]:
        """Parameters of the flow that these steps tend to when they become short."""
        return {
            "second_layer_rate": self.second_layer_step / self.step_size,
            "decay_rate": self.weight_decay / self.step_size,
            "noise_variance": self.noise_variance,
            "sampling_rate": self.step_size * self.sampling,
        }

    @property
    def start(self) -> dict[str, float]:
        """Variables of the start by name."""
        own, teacher = np.array(self.self_overlaps), np.array(self.teacher_overlaps)
        values = [own[i, j] for i, j in self.system.neuron_pairs]
        return dict(zip(self.system.state, [*values, *teacher.ravel(), *self.readout], strict=True))

    def kernel(self, kind: str = "map") -> StateKernel:
        """Return the generated map or flow: source in other languages, tangents, iteration."""
        cache = FileCache(self.cache_folder)
        found = _texts(
            cache, self.student, self.teacher, self.neurons, kind, self.averages == "quadrature"
        )
        given = {name: tuple(places) for name, places in found.given.items()}
        return StateKernel(
            found.texts,
            partial(self._program, kind, tuple(given)),
            Quadrature(self.system, given) if given else None,
            self.cache_folder,
        )

    def _program(self, kind: str, given: tuple[str, ...]) -> Any:
        return self.system.program(kind, given).program

    def at(self, **parameters: Any) -> Self:
        """Return this model with other parameters.

        Raises
        ------
        ParameterError
            If there is no such parameter, or its value cannot be.
        """
        known = [f.name for f in fields(self)]
        unknown = [name for name in parameters if name not in known]
        if unknown:
            raise ParameterError(
                f"no parameter {unknown[0]!r} of this model; there are: {', '.join(known)}"
            )
        return replace(self, **parameters)

    # ------------------------------------------------------------------ the verbs of all models

    def solve(
        self, *, steps: int, digits: int | None = None, certify: bool = False, **options: Any
    ) -> Trajectory:
        """Take giant steps, as :meth:`trajectory` does, which has the options.

        Raises
        ------
        ParameterError
            If `digits` or `certify` are asked for.
        """
        self._refuse_digits(digits, certify=certify)
        return self.trajectory(steps=steps, **options)

    @staticmethod
    def _refuse_digits(digits: int | None, *, certify: bool = False) -> None:
        if digits is not None or certify:
            raise ParameterError(
                "overlaps after steps are iterated in floating point, whose rounding grows with "
                "the overlaps: there are no further digits, and nothing is certified; "
                "growth_matrix() is exact"
            )

    _asked: ClassVar[tuple[str, ...]] = ("steps",)
    _no_landscape: ClassVar[str] = (
        "overlaps follow a map from step to step; early_growth() and trajectory() show where to"
    )
    _error: ClassVar[str] = "error"

    def _axes(self) -> Mapping[str, str]:
        batch = {} if self.alpha0 is None else {"alpha0": "positive"}
        rates = dict.fromkeys(("noise_variance", "weight_decay"), "nonnegative")
        return {"steps": "nonnegative", "step_size": "positive", **batch, **rates}

    def _names(self) -> Names:
        drawn = tuple(name for name in self.system.state if name.startswith("M_"))
        meanings = {"error": "mean squared error", "steps": "number of giant steps"}
        return Names(("error", *self.system.state), (), ("error", *drawn), drawn, meanings)

    def _curve_attributes(self, columns: Columns) -> dict[str, Any]:
        return {"model": self.to_json(), "rests_on": "exact map of overlaps for d → ∞, in floats"}

    def _solve_rows(self, columns: Columns, rtol: float, raising: bool) -> BatchSolution:
        return solve_groups(
            self, columns, _after_steps, outputs=self._names().outputs, raising=raising,
            together=("steps",),
        )  # fmt: skip

    def sensitivities(
        self, *, wrt: str | Sequence[str] | None = None, digits: int | None = None,
        steps: int | None = None, **parameters: Any,
    ) -> Sensitivities:  # fmt: skip
        """Return exact derivatives of the overlaps after steps with respect to parameters.

        Parameters
        ----------
        wrt : str or sequence of str, optional
            Of ``step_size``, ``alpha0``, ``noise_variance``, ``weight_decay`` and
            ``second_layer_step``; all by default.
        steps : int
        **parameters
            Those of :meth:`at`.

        Raises
        ------
        ParameterError
            If `steps` is missing, `digits` are asked for, or averages have no closed form.
        """
        self._refuse_digits(digits)
        if steps is None:
            raise ParameterError("steps is missing: give steps=...")
        model = self.at(**parameters)
        kernel, at = model.kernel(), model.parameters
        if kernel.fill is not None:
            raise ParameterError(
                f"averages of {self.student!r} on {self.teacher!r} are by quadrature and have no "
                "derivatives here; curve(step_size=[...]) has their values"
            )
        rates = kernel.sensitivities(model.start, steps=steps, **at)[-1]
        moving = {name: {name: 1.0} for name in at if name not in ("sampling", "pairs")}
        if model.alpha0 is not None:
            moving["alpha0"] = {"sampling": -(model.sampling**2)}
        names = chosen_names(wrt, [*moving], type(self).__name__, [*moving])
        place = {
            name: len(model.system.state) + i for i, name in enumerate(kernel.texts.parameters)
        }
        derivatives = {
            (output, name): float(
                sum(rates[i, place[x]] * rate for x, rate in moving[name].items())
            )
            for i, output in enumerate(model.system.state)
            for name in names
        }
        point = {"steps": float(steps), **at}
        return Sensitivities(derivatives, {}, {}, "overlap dynamics", point)

    def expansion(self, *_: Any, **__: Any) -> Any:
        """Refuse: overlaps after steps are no power series in one of the parameters.

        Raises
        ------
        ParameterError
        """
        raise ParameterError(
            "overlaps after steps have no expansion here; short steps are flow(time=...), small "
            "overlaps grow as early_growth() says"
        )

    def latex(self) -> str:
        """Refuse: the map of overlaps is a program, which ``kernel().source()`` prints.

        Raises
        ------
        ParameterError
        """
        raise ParameterError(
            "the map of overlaps is a program of many averages; kernel().source('python') prints it"
        )

    # ------------------------------------------------------------------ trajectories

    def trajectory(self, *, steps: int, every: int = 1, progress: bool = True) -> Trajectory:
        """Take giant steps.

        Parameters
        ----------
        steps : int
        every : int
            Record each so-many-th step.
        progress : bool
            Show a bar if it takes longer than a second.

        Returns
        -------
        Trajectory

        Raises
        ------
        ParameterError
            If an argument is wrong.
        ConvergenceError
            If the steps diverge: the message has the step and the growth.
        AssumptionError
            If the variance of a neuron's field grows beyond that for which averages exist.
        """
        self._check_moments({name: np.array([x]) for name, x in self.start.items()})
        try:
            columns = self.kernel().iterate(
                self.start, steps=steps, every=every, progress=progress, **self.parameters
            )
        except ConvergenceError as error:
            # It may be because averages do not exist.
            self._check_moments(dict(error.state))  # type: ignore[call-overload]
            raise
        return self._trajectory("map", columns.pop("step"), columns, 1.0, None)

    def flow(
        self, *, time: float | None = None, steps: float | None = None,
        points: int | Sequence[float] = 101, rtol: float = 1e-8, progress: bool = True,
    ) -> Trajectory:  # fmt: skip
        """Integrate the limit of short steps, s → 0 at fixed s d/n, ω/s and s2/s.

        Parameters
        ----------
        time, steps : float
            Where it ends: t, or t in units of the step size.
        points : int or sequence of float
            Times to record, or how many.
        rtol : float
            Of the integrator.
        progress : bool

        Returns
        -------
        Trajectory
            Over t/s, so that it lies on the trajectory of giant steps.

        Raises
        ------
        ParameterError, ConvergenceError
        """
        if (time is None) == (steps is None):
            raise ParameterError("time or steps must be given, and not both")
        self._check_moments({name: np.array([x]) for name, x in self.start.items()})
        end = (
            positive_number("time", time) if steps is None
            else positive_number("steps", steps) * self.step_size
        )  # fmt: skip
        found = self.kernel("flow").flow(
            self.start, time=end, points=points, rtol=rtol, progress=progress,
            **self.flow_parameters,
        )  # fmt: skip
        columns = dict(found.columns)
        times = columns.pop("time")
        return self._trajectory("flow", times, columns, self.step_size, found.at)

    def _trajectory(
        self, form: str, places: Array, columns: Mapping[str, Array], unit: float, at: Any
    ) -> Trajectory:
        self._check_moments(columns)
        error = columns.get("quadrature_error", np.zeros(1))
        dependent = columns.get("dependent", np.zeros(1))
        names = (*self.system.state, "error")
        learned = {}
        for k in range(self.directions):
            cosines = _cosines(columns, self.neurons, self.directions)[:, k]
            between = None
            if at is not None:
                between = lambda t, k=k: self._cosine(at(t), k)  # noqa: E731
            found = crossing(places, cosines, LEARNED, between)
            if not math.isnan(found):
                learned[f"direction {k + 1}"] = found / unit
        return Trajectory(
            form=form,
            steps=float(places[-1] / unit),
            final_error=float(columns["error"][-1]),
            learned=learned,
            predicted=self._predicted(float(places[-1] / unit)),
            singular=bool(dependent.max() > 0),
            quadrature_error=float(np.max(error)),
            places=tuple((places / unit).tolist()),
            columns={name: tuple(columns[name].tolist()) for name in names},
            neurons=self.neurons,
            directions=self.directions,
            step_size=self.step_size,
        )

    def _cosine(self, state: Array, direction: int) -> float:
        covariance, _ = state_matrices(self.system, state)
        own = np.sqrt(np.diag(covariance)[: self.neurons])
        return float(np.max(np.abs(covariance[: self.neurons, self.neurons + direction]) / own))

    def _check_moments(self, columns: Mapping[str, Array]) -> None:
        sigma = activation(self.student)
        if not sigma.expr.has(sp.exp):
            return
        largest = max(float(np.max(columns[f"Q_{j}_{j}"])) for j in range(1, self.neurons + 1))
        wide = sigma.expr.xreplace({z: z * sp.sqrt(sp.Rational(largest).limit_denominator(10**6))})
        try:
            require_square_integrable((wide * wide.diff(z)), z, argument="student")
        except GiantstepError as error:
            raise AssumptionError(
                f"student {self.student!r} has no finite fourth moments at the variance "
                f"{largest:.4g} that a neuron's field reaches\n  {error}"
            ) from None

    def _predicted(self, steps: float) -> dict[str, int]:
        """Steps at which the staircase has each direction, if the start knows none."""
        if np.any(np.array(self.teacher_overlaps)):
            return {}
        return _staircase_steps(self.student, self.teacher, self.readout, max(1, math.ceil(steps)))

    def second_step(self) -> SecondStep:
        r"""Return the overlaps after two steps on one batch, beside those on two batches.

        A sample that was in the first step has the field :math:`h' = g + s\psi d/n` in the second
        one: its own label is in the network already, so that directions which a fresh batch does
        not show at first order are learned from it
        (:class:`~giantstep.derivations.overlap_dynamics.physics.ReusedBatch`). ``simulate(steps=2,
        fresh=False)`` trains such networks.

        Returns
        -------
        SecondStep

        Raises
        ------
        ParameterError
            If the student has kinks, or more fields than a grid can hold: 2p + K, and one more
            where labels are noisy, are at most 4.
        """
        p, k = self.neurons, self.directions
        noisy = self.noise_variance > 0
        count = 2 * p + k + noisy
        if activation(self.student).kinks:
            raise ParameterError(
                f"student must be smooth for a batch that is used again, {self.student!r} has kinks"
            )
        if count > MOST_REUSED:
            raise ParameterError(
                f"a sample that two steps see has {count} fields (twice {p} neurons, {k} directions"
                f"{', noise of the label' if noisy else ''}), of which at most {MOST_REUSED} are "
                "integrated; simulate(steps=2, fresh=False) has no such limit"
            )
        fresh = self.trajectory(steps=2, progress=False)
        physics = reused_batch(activation(self.student), self.system.terms, p, k)
        names = self.system.state
        (start, _), (middle, later) = (
            state_matrices(self.system, np.array([fresh.column(name)[step] for name in names]))
            for step in (0, 1)
        )
        values = {
            **dict(zip(physics.readout, self.readout, strict=True)),
            **dict(zip(physics.later, later.tolist(), strict=True)),
            step_size: self.step_size,
            sampling: self.sampling,
        }
        fields = (*physics.before, *physics.between, *physics.directions, physics.disturbance)
        arguments = (*fields, *values)
        first, second = (
            [compiled(e, arguments, "numpy") for e in kind]
            for kind in (physics.first, physics.second)
        )

        def average(nodes: int) -> Array:
            covariance = np.zeros((2 * p + k + 1, 2 * p + k + 1))
            h, g, u = slice(p), slice(p, 2 * p), slice(2 * p, 2 * p + k)
            covariance[h, h], covariance[g, g] = start[:p, :p], middle[:p, :p]
            covariance[h, u], covariance[g, u] = start[:p, p:], middle[:p, p:]
            covariance[u, u] = np.eye(k)
            covariance[-1, -1] = self.noise_variance
            covariance = np.triu(covariance) + np.triu(covariance, 1).T
            # Fields before the step alone give what ties g to h.
            grid = _smooth_grid(np.delete(np.delete(covariance, g, 0), g, 1), nodes)
            points = [*grid[:p], *[np.zeros_like(grid[0])] * p, *grid[p:-1]]
            pushed = np.array([[np.sum(grid[-1] * f(*points, *values.values()) * grid[j])
                                for j in range(p)] for f in first])  # fmt: skip
            tied = (1 - self.weight_decay) * start[:p, :p] + self.step_size * pushed.T
            covariance[h, g], covariance[g, h] = tied, tied.T
            grid = _smooth_grid(covariance, nodes)
            pushed = np.array([[np.sum(grid[-1] * f(*grid[:-1], *values.values()) * grid[2 * p + j])
                                for j in range(k)] for f in second])  # fmt: skip
            return (1 - self.weight_decay) * middle[:p, p:] + self.step_size * pushed

        nodes = _REUSED_NODES[count]
        fine, coarse = average(nodes), average(round(0.8 * nodes))
        return SecondStep(
            same=tuple(fine.ravel().tolist()),
            fresh=tuple(fresh.teacher_overlaps[2].ravel().tolist()),
            first=tuple(fresh.teacher_overlaps[1].ravel().tolist()),
            quadrature_error=float(np.max(np.abs(fine - coarse))),
            neurons=p,
            directions=k,
        )

    # ------------------------------------------------------------------ the start, and rest

    def growth_matrix(self) -> sp.Matrix:
        r"""Return :math:`\partial A_u/\partial M` at M = 0 exactly, over (neuron, direction).

        Raises
        ------
        ParameterError
            If the averages have no closed form.
        """
        if not self.system.is_closed("A"):
            raise ParameterError(
                f"gradients of {self.student!r} on {self.teacher!r} have no closed form"
            )
        return self.system.growth_matrix(self.self_overlaps, self.readout)[0]

    def early_growth(self, *, dimension: int | None = None) -> EarlyGrowth:
        """Return how small overlaps with the teacher grow around M = 0, at the Q of the start.

        Parameters
        ----------
        dimension : int, optional
            d, for the number of steps until they are of order one.

        Raises
        ------
        ParameterError
            If the averages have no closed form.
        """
        self.growth_matrix()
        matrix, pushed = self.system.growth_matrix(self.self_overlaps, self.readout)
        rates = np.linalg.eigvals(np.array(matrix.evalf(20), dtype=complex))
        factors = np.abs(1 - self.weight_decay + self.step_size * rates)
        order = np.argsort(-factors)
        escape = math.nan
        if dimension is not None:
            dimension = whole_number("dimension", dimension, minimum=2)
            fastest = float(factors[order[0]])
            escape = math.log(dimension) / (2 * math.log(fastest)) if fastest > 1 else math.inf
        gradient = np.abs(np.array(pushed.evalf(20), dtype=float))
        return EarlyGrowth(
            fastest=float(factors[order[0]]),
            factors=tuple(factors[order].tolist()),
            rates=tuple(rates.real[order].tolist()),
            pushed=tuple(gradient.max(axis=0).tolist()),
            escape_steps=escape,
            dimension=dimension,
        )

    def fixed_points(
        self, kind: str = "flow", *, along: Trajectory | None = None,
        starts: Sequence[Mapping[str, float]] = (), seed: int = 0,
    ) -> list[FixedPoint]:  # fmt: skip
        """Return overlaps that stay, plateaus among them, with their stability.

        Parameters
        ----------
        kind : {"flow", "map"}
        along : Trajectory, optional
            Where Newton's method begins: close to a plateau that a trajectory stays at.
        starts : sequence of mapping
            More first values; random ones are added, too.
        seed : int
            Of these.

        Returns
        -------
        list of FixedPoint
            Those that are overlaps of rows, the smallest error first. The search is by Newton's
            method from many points, which finds no more than it comes across.

        Raises
        ------
        ParameterError
            If averages have no closed form.
        """
        kernel = self.kernel(kind)
        generator = np.random.default_rng(seed)
        given = [kernel.row(start) for start in (self.start, *starts)]
        if along is not None:
            chosen = np.unique(np.linspace(0, len(along.places) - 1, _STARTS).astype(int))
            rows = np.stack([along.column(name) for name in self.system.state], axis=1)
            given += list(rows[chosen])
        p, k = self.neurons, self.directions
        for _ in range(_STARTS // 2):
            teacher = generator.uniform(0.1, 1.0) * generator.standard_normal((p, k))
            across = generator.uniform(0.0, 0.7) * generator.standard_normal((p, p))
            own = (teacher @ teacher.T + across @ across.T) / k
            values = [own[i, j] for i, j in self.system.neuron_pairs]
            given.append(np.array([*values, *(teacher / math.sqrt(k)).ravel(), *self.readout]))
        held = () if self.second_layer_step else tuple(f"a_{j + 1}" for j in range(p))
        parameters = self.parameters if kind == "map" else self.flow_parameters
        found = kernel.fixed_points(given, held=held, **parameters)
        return sorted((x for x in found if self._is_real(x)), key=lambda x: x.outputs["error"])

    def _is_real(self, point: FixedPoint) -> bool:
        covariance, _ = state_matrices(self.system, np.array(list(point.state.values())))
        return bool(np.linalg.eigvalsh(covariance)[0] > -1e-7)

    # ------------------------------------------------------------------ networks

    def network(self, *, steps: int, dimension: int | None = None, fresh: bool = True) -> Network:
        """Return the network of finite size, for :func:`giantstep.simulate`.

        Parameters
        ----------
        steps : int
        dimension : int, optional
            d; by default the model's.
        fresh : bool
            Whether each step has samples of its own, as the theory has it.

        Raises
        ------
        ParameterError
            If there is no dimension, or no number of samples.
        """
        d = dimension if self.dimension is None else self.dimension
        if d is None or (dimension is not None and dimension != d):
            raise ParameterError(
                "dimension must be given" if d is None
                else f"dimension must be {d}, that of the model, or left out"
            )  # fmt: skip
        d = whole_number("dimension", d, minimum=self.neurons + self.directions)
        samples = self.step_samples
        if samples is None:
            assert self.alpha0 is not None
            if self.alpha0 == math.inf:
                raise ParameterError("alpha0 must be finite: networks take samples")
            samples = sample_count("alpha0", self.alpha0, d)
        p = self.neurons
        return Network(
            self.student, read_target(self.teacher), dimension=d, width=p,
            noise_variance=self.noise_variance,
            rows=StartRows(self.self_overlaps, self.teacher_overlaps),
            # The network divides its output by p.
            readout=tuple(p * a for a in self.readout), step_size=self.step_size / p,
            steps=whole_number("steps", steps, minimum=0), step_samples=samples, fresh=fresh,
            weight_decay=self.weight_decay, readout_step_size=p * self.second_layer_step,
            description=f"{self.student} on {self.teacher}, {self.start}",
        )  # fmt: skip

    def simulate(
        self, *, steps: int | Sequence[int], dimension: int | None = None, fresh: bool = True,
        **options: Any,
    ) -> SimulatedNetworks:  # fmt: skip
        """Train networks and measure their overlaps.

        Parameters
        ----------
        steps : int or sequence of int
            Steps after which they are measured; of a number every one up to it.
        dimension, fresh
            As for :meth:`network`.
        **options
            ``seeds``, ``seed``, ``store``, … of :func:`giantstep.simulate`.

        Returns
        -------
        SimulatedNetworks
            ``self_overlap``, ``teacher_overlap`` and ``second_layer``.
        """
        if isinstance(steps, int):
            numbers = range(whole_number("steps", steps, minimum=0) + 1)
        else:
            numbers = [whole_number("steps", step, minimum=0) for step in steps]  # type: ignore[assignment]
        network = self.network(steps=max(numbers), dimension=dimension, fresh=fresh)
        return simulate(network, {row_overlaps: tuple(numbers)}, **options)

    # ------------------------------------------------------------------ files

    def __repr__(self) -> str:
        batch = (
            f"alpha0={self.alpha0:g}" if self.alpha0 is not None
            else f"step_samples={self.step_samples}, dimension={self.dimension}"
        )  # fmt: skip
        return (
            f"OverlapDynamics({self.student!r} on {self.teacher!r}, {self.neurons} neurons, "
            f"step_size={self.step_size:g}, {batch})"
        )


# ---------------------------------------------------------------------- parts


def _after_steps(model: OverlapDynamics, columns: Columns) -> BatchSolution:
    """Return error and overlaps after numbers of steps."""
    steps = [whole_number("steps", as_given(x), minimum=0) for x in columns["steps"]]
    found = model.trajectory(steps=max(steps), progress=False)
    values = {name: found.column(name)[steps] for name in model._names().outputs}
    n = len(steps)
    error = np.full(n, found.quadrature_error)
    return BatchSolution(
        values=values, errors={name: error * np.abs(x) for name, x in values.items()},
        iterations=np.array(steps, dtype=np.int64), residual=np.zeros(n),
        nodes=np.zeros(n, dtype=np.int64), converged=np.ones(n, dtype=bool),
    )  # fmt: skip


def _smooth_grid(covariance: Array, nodes: int) -> Array:
    return nested_grid(covariance, [()] * len(covariance), nodes)


def _rows(matrix: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, matrix.tolist()))


def _matrices(columns: Mapping[str, Any], neurons: int, directions: int) -> tuple[Array, Array]:
    first = np.asarray(columns["Q_1_1"])
    own = np.empty((len(first), neurons, neurons))
    teacher = np.empty((len(first), neurons, directions))
    for i in range(neurons):
        for j in range(i, neurons):
            own[:, i, j] = own[:, j, i] = columns[f"Q_{i + 1}_{j + 1}"]
        for k in range(directions):
            teacher[:, i, k] = columns[f"M_{i + 1}_{k + 1}"]
    return own, teacher


def _cosines(columns: Mapping[str, Any], neurons: int, directions: int) -> Array:
    """Largest cosine of a neuron with each direction, (steps, K)."""
    own, teacher = _matrices(columns, neurons, directions)
    lengths = np.sqrt(np.einsum("tii->ti", own))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(np.max(np.abs(teacher) / lengths[:, :, None], axis=1))


@lru_cache(maxsize=64)
def _system(student: str, teacher: str, neurons: int) -> OverlapSystem:
    f = read_target(teacher, argument="teacher")
    places = {x: k for k, x in enumerate(f.variables)}
    # Terms of the same variables are one function of them.
    groups: dict[tuple[sp.Symbol, ...], sp.Expr] = {}
    for term in _terms(f):
        used = tuple(sorted(term.free_symbols, key=lambda x: places[x]))
        groups[used] = groups.get(used, sp.S.Zero) + term
    terms = []
    for used, value in groups.items():
        number, function = sp.factor_terms(value).as_independent(*used, as_Add=False)
        if not used:
            number, function = value, sp.S.One
        names = (z,) if len(used) == 1 else used
        single = function.xreplace(dict(zip(used, names, strict=True)))
        terms.append((Factor(single, names, tuple(places[x] for x in used)), float(number)))
    return OverlapSystem(activation(student), tuple(terms), neurons, f.dimension)


def _terms(f: Target) -> Sequence[sp.Expr]:
    """Terms of a target; of a polynomial products of Hermite polynomials, whose zeros are exact."""
    if not f.is_polynomial:
        return sp.Add.make_args(sp.expand(f.expr))
    found = []
    rest = sp.Poly(f.expr, *f.variables)
    while not rest.is_zero:
        powers = max(rest.monoms(), key=lambda m: (sum(m), m))
        product = sp.Mul(
            rest.coeff_monomial(powers),
            *(hermite_polynomial(k, x) for k, x in zip(powers, f.variables, strict=True)),
        )
        found.append(sp.expand(product))
        rest -= sp.Poly(product, *f.variables)
    return found


@dataclass(frozen=True)
class _Texts:
    texts: StateTexts
    given: dict[str, Any]


@derived("overlap_dynamics/kernel", _Texts)
def _texts(student: str, teacher: str, neurons: int, kind: str, quadrature: bool) -> _Texts:
    system = _system(student, teacher, neurons)
    kinds = ("A", "S", "J", "E")
    left = kinds if quadrature else tuple(k for k in kinds if not system.is_closed(k))
    layout = system.program(kind, left)
    return _Texts(StateTexts.of(layout.program), {k: list(v) for k, v in layout.given.items()})


@lru_cache(maxsize=64)
def _staircase_steps(
    student: str, teacher: str, readout: tuple[float, ...], most: int
) -> dict[str, int]:
    f = read_target(teacher)
    values = [sp.Rational(str(a)) for a in readout]
    try:
        found = staircase(
            f, 1, student=activation(student), readout=values, max_steps=min(most, 10)
        )
    except GiantstepError:
        # The staircase knows other classes of targets than the map.
        return {}
    steps: dict[str, int] = {}
    for step in found.steps:
        projector = step.after.projector()
        for k in range(f.dimension):
            if projector[k, k] == 1:
                steps.setdefault(f"staircase, direction {k + 1}", step.number)
    return steps
