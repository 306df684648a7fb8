r"""Networks of finite size that take giant steps, beside the staircase that predicts them.

:math:`\hat f(x) = \frac1p \sum_i a_i\,\sigma(\langle w_i, x\rangle [+ b_i])`, rows uniform on the
unit sphere at the start, neurons in pairs of opposite readout, n = C d^κ fresh samples for each
step of the first layer, learning rate :math:`\eta = s\,p\,d^{(\kappa-1)/2}` (Dandi, Krzakala,
Loureiro, Pesce, Stephan, arXiv 2305.18270; with the prefactor 1/p as here). What is measured is
stated in :mod:`.learned_directions`. Everything that can be refused is refused before the networks
are trained. Figures show neurons as points in a plane of the target, one panel for each time, with
what the theory predicts behind them, as the figure of the same paper in which neurons climb the
stairs; and singular values against noise.
"""

from __future__ import annotations

import concurrent.futures
import io
import json
import math
import os
import textwrap
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...atomic_files import replacing
from ...errors import AssumptionError, ParameterError, UnsupportedExpressionError
from ...json_document import JsonDocument, plain
from ...numeric.arguments import positive_number, real_number, whole_number
from ...numeric.networks.directions import require_room
from ...numeric.networks.network import Network, check_draws
from ...numeric.networks.readout import FEWEST_HELD_OUT, RidgeReadout, bytes_needed
from ...numeric.networks.samples import Function
from ...numeric.networks.sizes import check_memory
from ...numeric.projection_sampling import sample_residual
from ...pages import Block, Page, Table
from ...symbolic.expressions.activations import Activation, activation
from ...symbolic.leaps.staircase import Staircase, staircase
from ...symbolic.targets.projections import number_text, residual_norms
from ...symbolic.targets.spans import spans_of
from ...symbolic.targets.subspaces import Subspace
from ...symbolic.targets.target import Target, closed_target as read_target
from ..figures import BLUE, GREEN, GREY, VERMILLION, Pen, drawing, plain_text
from ..first_gradient.training import network_functions
from .learned_directions import (
    CLEAR,
    CLEAR_WEIGHTS,
    QUANTITIES,
    Direction,
    Estimate,
    GiantStepsResult,
    LearnedDirection,
    StepSpectrum,
    adapted_basis,
    learned_directions,
    mean_over_networks,
    step_spectra,
    take_giant_steps,
)

_REPLICAS = 4
"""Pairs of equal readout in a network: what they share is told from their fluctuations."""

_TEST_SAMPLES = 10_000
"""Fresh samples that the final ridge regression is tested on."""


@dataclass(frozen=True)
class NetworkSettings:
    """How the networks were made and trained.

    Attributes
    ----------
    student, target : str
        σ and f.
    dimension, samples, width, steps : int
        d, n for each step, p and T.
    sample_exponent : int
        κ: n counts as d^κ.
    step_size : float
        s.
    readout : str or tuple of float
        "gaussian", "signs", or the values.
    ridge_samples : int
        Fresh samples of the final ridge regression; 0 without one.
    ridge : float or None
        The penalty asked for; None if held-out samples chose it.
    """

    student: str
    target: str
    dimension: int
    samples: int
    width: int
    steps: int
    sample_exponent: int
    step_size: float
    readout: str | tuple[float, ...]
    biases: bool
    preprocess: bool
    noise_variance: float
    ridge_samples: int
    ridge: float | None

    @property
    def samples_factor(self) -> float:
        """C of n = C d^κ."""
        return float(self.samples / self.dimension**self.sample_exponent)

    @property
    def fitted_degree(self) -> int:
        """Degree outside U that the readout fits: the lower exponent of its n and of p in d."""
        sizes = (self.width, self.ridge_samples)
        # A little more than the logarithm: rounding must not turn d^2 into d^1.
        return min(int(math.log(size) / math.log(self.dimension) + 1e-9) for size in sizes)


@dataclass(frozen=True)
class GiantStepsPlan:
    """A simulation that only has to be run.

    Attributes
    ----------
    readout : RidgeReadout or None
        The final ridge regression.
    staircase : Staircase
        The prediction for this network.
    relevant_subspace : Subspace
        V*, of the whole target.
    predicted_residual : str or None
        What the readout cannot fit: exact for polynomials, sampled for others; None without a
        readout.
    description : str
        Stands for the functions in `network`.
    """

    settings: NetworkSettings
    network: Network
    readout: RidgeReadout | None
    staircase: Staircase
    relevant_subspace: Subspace
    predicted_residual: str | None
    description: str


def plan_giant_steps(
    target: str | sp.Expr | Activation | Target,
    student: str | sp.Expr | Activation,
    *,
    dimension: int,
    samples: int | None = None,
    sample_exponent: int = 1,
    samples_factor: float | None = None,
    width: int = 100,
    steps: int = 2,
    step_size: float = 1.0,
    readout: str | Sequence[float] = "gaussian",
    biases: bool = False,
    preprocess: bool = False,
    noise_variance: float = 0.0,
    ridge_samples: int = 0,
    ridge: float | None = None,
) -> GiantStepsPlan:
    """Return what :func:`.simulated.simulate_giant_steps` would run, with its arguments and errors.

    Examples
    --------
    >>> plan = plan_giant_steps("x1 + x1*x2", "relu", dimension=100, samples_factor=20)
    >>> plan.settings.samples, plan.network.rate, plan.staircase.final
    (2000, 1.0, Subspace R^2 of R^2)
    """
    sigma = activation(student, argument="student")
    f = read_target(target)
    dimension = whole_number("dimension", dimension)
    exponent = whole_number("sample_exponent", sample_exponent)
    count = _samples(samples, samples_factor, dimension, exponent)
    size = positive_number("step_size", step_size)
    values = readout if isinstance(readout, str) else _values(readout)
    for name, flag in (("biases", biases), ("preprocess", preprocess)):
        if not isinstance(flag, bool):
            raise ParameterError(f"{name} must be True or False, got {flag!r}")
    functions = network_functions(sigma, f)
    steps, width = whole_number("steps", steps), whole_number("width", width)
    fitted = whole_number("ridge_samples", ridge_samples, minimum=0)
    require_room(dimension, f.dimension)
    for name, drawn in (("samples", count), ("ridge_samples", fitted)):
        check_draws(name, drawn, dimension)
    penalty = None if ridge is None else positive_number("ridge", ridge)
    if penalty is None and 0 < fitted < FEWEST_HELD_OUT:
        raise ParameterError(
            f"ridge_samples={fitted} are too few to hold out a fifth\n"
            f"  give a ridge, or ridge_samples >= {FEWEST_HELD_OUT}"
        )
    network = Network(
        student=functions.student,
        student_derivative=functions.student_derivative,
        teacher=functions.target,
        directions=f.dimension,
        dimension=dimension,
        width=width,
        steps=steps,
        step_samples=count,
        step_size=size * _power(dimension, (exponent - 1) / 2),
        readout=values,
        biases="gaussian" if biases else "none",
        paired=True,
        replicas=max(1, min(_REPLICAS, width // 2)),
        preprocess=preprocess,
        noise_variance=noise_variance,
    )
    regression = None
    if fitted:
        regression = RidgeReadout(fitted, penalty, intercept=True, test_samples=_TEST_SAMPLES)
    check_memory(
        f"width={width} and dimension={dimension}",
        network.bytes_needed + bytes_needed(network, regression),
        workers=1,
    )
    predicted = _prediction(f, sigma, network, exponent)
    weights = network.readout if isinstance(network.readout, str) else tuple(network.readout)
    settings = NetworkSettings(
        str(sigma), str(f), dimension, count, width, steps, exponent, size, weights, biases,
        preprocess, network.noise_variance, fitted, penalty,
    )  # fmt: skip
    return GiantStepsPlan(
        settings,
        network,
        regression,
        predicted,
        spans_of(f).relevant_subspace,
        _residual(f, predicted, settings, functions.target) if settings.ridge_samples else None,
        f"{sp.srepr(sigma.expr)} on {sp.srepr(f.expr)} of {f.variables}",
    )


def _samples(samples: int | None, factor: float | None, dimension: int, exponent: int) -> int:
    if (samples is None) == (factor is None):
        raise ParameterError(
            "samples or samples_factor must be given, and not both: n for each step, or C of "
            "n = C d^sample_exponent"
        )
    if samples is not None:
        return whole_number("samples", samples)
    assert factor is not None
    count = positive_number("samples_factor", factor) * _power(dimension, exponent)
    if not 0.5 <= count < 2**53:
        raise ParameterError(
            f"samples_factor * dimension^{exponent} = {count:.3g} is no number of samples; "
            "change samples_factor"
        )
    return round(count)


def _power(dimension: int, exponent: float) -> float:
    try:
        return float(dimension) ** exponent
    except OverflowError:
        raise ParameterError(
            f"dimension^{exponent:g} is beyond all numbers; lower dimension or sample_exponent"
        ) from None


def _values(readout: Sequence[float]) -> tuple[float, ...]:
    try:
        given = tuple(readout)
    except TypeError:
        raise ParameterError(
            f"readout must be 'gaussian', 'signs' or a sequence of numbers, got {readout!r}"
        ) from None
    return tuple(real_number("readout", value) for value in given)


def _prediction(f: Target, sigma: Activation, network: Network, exponent: int) -> Staircase:
    seen = _without_linear_part(f) if network.preprocess else f
    values: list[sp.Expr] | None = None
    biases = network.biases != "none"
    if network.readout != "gaussian" and exponent == 1 and not biases:
        given = (1.0,) if network.readout == "signs" else tuple(map(float, network.readout))
        # A float is the fraction it stands for: which of them are equal is all that counts.
        exact = [sp.Rational(*Fraction(value).as_integer_ratio()) for value in given]
        values = [sign * value for value in exact for sign in (1, -1)]
    return staircase(
        seen, exponent, student=sigma, biases=biases, readout=values, max_steps=network.steps
    )


def _without_linear_part(f: Target) -> Target:
    rest = f.expr - f.symbol_part(0) - f.symbol_part(1)
    if rest.expand() == 0:
        raise AssumptionError(
            f"preprocess leaves nothing of target {f.name!r}: it is affine; leave it out"
        )
    return read_target(rest, f.variables)


def _residual(
    f: Target, predicted: Staircase, settings: NetworkSettings, function: Function
) -> str:
    """Squared norm of f beyond the degree that the readout fits outside of the last subspace."""
    degree, learned = settings.fitted_degree, predicted.final
    # The integrals of other targets may take minutes, or have no closed form.
    if f.is_polynomial:
        try:
            return number_text(residual_norms(f, learned, highest=degree)[degree])
        except UnsupportedExpressionError:  # Too many terms.
            pass
    if learned.is_whole:
        return "0"
    mean, error = sample_residual(function, learned.numeric(), degree, dimension=f.dimension)
    return f"{max(mean, 0.0):.4g} ± {error:.1g} by sampling"


_FORMAT = 1
_MEASURED = "measurements"


@dataclass(frozen=True, repr=False)
class SimulatedGiantSteps(Page, JsonDocument):
    """What finite networks learned in giant steps, and what the staircase says of it.

    :meth:`to_dict` has what is derived from the measurements, :meth:`to_json` these too.

    Attributes
    ----------
    seed : int
        Entropy of the run.
    staircase : Staircase
        U_0 ⊂ U_1 ⊂ …, with the degrees that the student uses; with preprocessing, of the target
        without its constant and linear parts.
    relevant_subspace : Subspace
        V*, of the whole target.
    result : GiantStepsResult
        The measurements, with the overlaps of all neurons.
    predicted_residual : str or None
        The squared norm of what the readout cannot fit, exact for polynomials, sampled with its
        standard error for others; None without a readout.
    """

    _document = "simulated giant steps"

    settings: NetworkSettings
    seed: int
    staircase: Staircase
    relevant_subspace: Subspace
    result: GiantStepsResult = field(compare=False)
    predicted_residual: str | None

    @cached_property
    def basis(self) -> tuple[Direction, ...]:
        """An orthonormal basis of V* that is adapted to the staircase."""
        clusters = self.staircase.clusters
        limited = clusters is not None and clusters.is_limiting
        return adapted_basis(
            self.staircase.subspaces[1:],
            self.relevant_subspace,
            clusters.certain if clusters is not None and limited else None,
        )

    @property
    def compares_shared(self) -> bool:
        """Whether verdicts are on what neurons of equal readout and bias have in common."""
        return self.result.has_shared and self.settings.sample_exponent == 1

    @cached_property
    def directions(self) -> tuple[LearnedDirection, ...]:
        """What was learned of each direction of the basis after each step."""
        return learned_directions(self.result, self.basis, shared=self.compares_shared)

    @cached_property
    def spectra(self) -> tuple[StepSpectrum, ...]:
        """Singular values inside V* and outside U_t after each step."""
        return step_spectra(self.result, self.basis, shared=self.compares_shared)

    @property
    def agrees(self) -> bool:
        """Whether every verdict is the prediction, where there is one."""
        return all(row.agrees is not False for row in self.directions)

    @property
    def squared_norms(self) -> tuple[Estimate, ...]:
        """Mean squared norm of the rows after 0, 1, …, T steps."""
        return tuple(
            mean_over_networks(values) for values in self.result.squared_norms.mean(axis=2).T
        )

    @property
    def test_error(self) -> Estimate | None:
        """Mean squared error of the final ridge regression against the noise-free target."""
        if not self.settings.ridge_samples:
            return None
        return mean_over_networks(self.result.test_error)

    def plot(
        self, directions: Sequence[Sequence[float]] | None = None, *, ax: Any = None, **style: Any
    ) -> Any:
        """Draw neurons in planes of two directions after each step, and singular values.

        Parameters
        ----------
        directions : two rows of r numbers, optional
            Directions in the target's coordinates, not parallel; made orthonormal. By default the
            first of the adapted basis against the second and, in a row below, the third: what is
            learned first, and what then. Of a target of one coordinate, readouts are drawn against
            it.
        ax : sequence of matplotlib.axes.Axes, optional
            Where to draw, one for each panel; default: a new figure, found as ``axes[0].figure``.
        style : optional
            Keywords of matplotlib's lines, for the neurons.

        Returns
        -------
        array of matplotlib.axes.Axes
            The panels of neurons row by row, and that of the singular values.

        Raises
        ------
        MissingDependencyError
            Without matplotlib.
        ParameterError
            If the directions are not two such rows.
        """
        overlaps = self.result.overlaps
        # All times, or of many the first, the last and some between.
        last = overlaps.shape[1] - 1
        times = sorted({round(t) for t in np.linspace(0, last, min(last + 1, _MOST_PANELS))})
        frame = None
        labels, legend = [r"$\langle w_i, e_1\rangle$", "$a_i$"], ""
        if overlaps.shape[-1] == 1 and directions is None:
            readouts = np.broadcast_to(self.result.readout[:, None, :, None], overlaps.shape)
            overlaps = np.concatenate([overlaps, readouts], axis=-1)
        else:
            names, frame = _frame(self, directions)
            labels, legend = _labels(names)
            overlaps = overlaps @ frame.T
        limits = _limits(overlaps, self.settings.dimension, comparable=frame is not None)
        # One row of panels for each direction beyond the first, as high as its neurons need.
        # Lengths along both axes are equal if there is a frame.
        heights = [_PANEL * (1.0 if frame is None else y / limits[0]) for y in limits[1:]]
        title = f"{_title(self)}\n{legend}" if legend else _title(self)
        above = sum(heights) + _MARGIN * len(heights) + 0.3 * (1 + bool(legend))
        size = max(_PANEL * len(times), 6.5), above + _SPECTRA

        def panels_of(figure: Any) -> Any:
            above_below = figure.add_gridspec(2, 1, height_ratios=[above, _SPECTRA])
            rows = above_below[0].subgridspec(len(heights), len(times), height_ratios=heights)
            panels = rows.subplots(sharex=True, sharey="row", squeeze=False)
            figure.suptitle(title, x=0.01, ha="left", fontsize=11)
            return np.array([*panels.ravel(), figure.add_subplot(above_below[1])])

        with drawing(ax, style, size=size, panels=panels_of) as (found, pen):
            grid = found[:-1].reshape(len(heights), len(times))
            for row, panels in enumerate(grid, start=1):
                for axes, time in zip(panels, times, strict=True):
                    if frame is not None:
                        _draw_prediction(axes, self, frame[[0, row]], time, max(limits))
                    _draw_neurons(axes, self, overlaps[:, time][..., [0, row]], pen)
                    axes.set(xlim=(-limits[0], limits[0]), ylim=(-limits[row], limits[row]))
                panels[0].set_ylabel(labels[row])
            for axes, time in zip(grid[0], times, strict=True):
                axes.set_title(f"$t = {time}$", fontsize=11)
            for axes in grid[-1]:
                axes.set_xlabel(labels[0])
            _draw_spectra(found[-1], self, predicted=frame is not None)
        return found

    def __repr__(self) -> str:
        chain = " ⊂ ".join(map(str, self.staircase.subspaces))
        seen = sum(row.agrees is True for row in self.directions)
        asked = sum(row.predicted is not None for row in self.directions)
        return (
            f"SimulatedGiantSteps({self.settings.student} on {self.settings.target}, "
            f"d = {self.settings.dimension}, n = {self.settings.samples}: {chain}; {seen} of "
            f"{asked} verdicts as predicted)"
        )

    def page(self) -> Iterable[Block]:
        """Return tables and remarks; a terminal shows a blank line for an empty paragraph."""
        shared = self.compares_shared
        yield _wrapped(headline(self.settings, len(self.result.completed)))
        yield _wrapped(f"predicted: {_chain(self)}")
        yield ""
        common = ["in common", "noise"] if shared else []
        yield Table(
            _direction_cells(self.directions, shared),
            ("step", "direction", "predicted", "weights, rms", "noise", *common, "verdict",
             "as predicted"),
        )  # fmt: skip
        yield ""
        yield "singular values divided by √p:"
        outside = f"{'in common' if shared else 'updates'}, in V* outside U_t"
        yield Table(_spectrum_cells(self), ("step", "weights in V*", "noise", outside, "noise"))
        yield ""
        yield from map(_wrapped, _remarks(self))

    def to_dict(self) -> dict[str, Any]:
        """Return settings, prediction and what is derived from the measurements, plain."""
        settings = asdict(self.settings)
        if not isinstance(settings["readout"], str):
            settings["readout"] = list(settings["readout"])
        error = self.test_error
        return {
            "settings": settings,
            "seed": self.seed,
            "networks": len(self.result.completed),
            "interrupted": self.result.interrupted,
            "staircase": self.staircase.to_dict(),
            "directions": [
                {
                    **asdict(row),
                    "direction": {**asdict(row.direction), "vector": list(row.direction.vector)},
                    "verdict": row.verdict.value,
                    "agrees": row.agrees,
                }
                for row in self.directions
            ],
            "spectra": [
                {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(row).items()}
                for row in self.spectra
            ],
            "squared_norms": [asdict(value) for value in self.squared_norms],
            "test_error": None if error is None else asdict(error),
            "predicted_residual": self.predicted_residual,
            "agrees": self.agrees,
        }

    def _about(self) -> dict[str, Any]:
        """Return all but the measurements, plain."""
        return {
            "settings": asdict(self.settings),
            "seed": self.seed,
            "staircase": self.staircase.to_dict(),
            "relevant_subspace": self.relevant_subspace.to_dict(),
            "predicted_residual": self.predicted_residual,
            "completed": self.result.completed,
            "interrupted": self.result.interrupted,
        }

    def _fields(self) -> dict[str, Any]:
        return plain({**self.to_dict(), **self._about(), _MEASURED: self.result.values})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the result that :meth:`to_json` wrote.

        Raises
        ------
        ParameterError
            If the values are no such result, or :meth:`to_dict` left the measurements out.
        """
        try:
            if _MEASURED not in values:
                raise ValueError(f"field {_MEASURED!r} is missing, which to_json writes")
            given = values[_MEASURED]
            arrays = {name: np.array(given[name], dtype=float) for name in QUANTITIES}
            return cls._made(values, arrays)
        except KeyError as error:
            reason = f"field {error} is missing"
        except (TypeError, ValueError) as error:
            reason = str(error)
        raise ParameterError(f"the content is no {cls._document} written by to_json: {reason}")

    @classmethod
    def _made(cls, about: Mapping[str, Any], arrays: dict[str, Any]) -> Self:
        settings = dict(about["settings"])
        if not isinstance(settings["readout"], str):
            settings["readout"] = tuple(settings["readout"])
        return cls(
            NetworkSettings(**settings),
            about["seed"],
            Staircase.from_dict(about["staircase"]),
            Subspace.from_dict(about["relevant_subspace"]),
            GiantStepsResult(arrays, tuple(about["completed"]), about["interrupted"]),
            about["predicted_residual"],
        )

    def save(self, path: str | os.PathLike[str]) -> Path:  # type: ignore[override]
        """Write everything, the measurements too, to one file; a reader sees all of it or none.

        Parameters
        ----------
        path : path-like
            With suffix .npz, arrays of NumPy, or .json.
        """
        target = Path(path)
        if target.suffix == ".json":
            super().save(path)
            return target
        if target.suffix != ".npz":
            raise ParameterError(f"path must end in .npz or .json, got {target.name!r}")
        header = np.array(json.dumps({"format": _FORMAT, **self._about()}))
        arrays: dict[str, Any] = dict(self.result.values)
        with replacing(target) as temporary, temporary.open("xb") as file:
            np.savez(file, header=header, **arrays)
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return what :meth:`save` wrote.

        Raises
        ------
        ParameterError
            If the file is something else, or damaged.
        """
        if Path(path).suffix == ".json":
            return super().load(path)
        content = Path(path).read_bytes()
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                header = json.loads(str(archive["header"]))
                arrays = {name: archive[name] for name in QUANTITIES}
            if header["format"] != _FORMAT:
                raise ValueError("another format")
            return cls._made(header, arrays)
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, OSError) as error:
            raise ParameterError(
                f"{os.fspath(path)!r} is not a file that SimulatedGiantSteps.save wrote, or "
                f"damaged: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
            ) from None


def simulate_giant_steps(
    target: str | sp.Expr | Activation | Target,
    student: str | sp.Expr | Activation = "relu",
    *,
    dimension: int,
    samples: int | None = None,
    sample_exponent: int = 1,
    samples_factor: float | None = None,
    width: int = 100,
    steps: int = 2,
    step_size: float = 1.0,
    readout: str | Sequence[float] = "gaussian",
    biases: bool = False,
    preprocess: bool = False,
    noise_variance: float = 0.0,
    ridge_samples: int = 0,
    ridge: float | None = None,
    seeds: int = 5,
    seed: int = 0,
    workers: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
    cache_folder: str | os.PathLike[str] | None = None,
) -> SimulatedGiantSteps:
    r"""Train networks by giant steps, and hold what they learn against the staircase.

    Parameters
    ----------
    target : str, Expr, Activation or Target
        f, in x1, x2, …
    student : str, Expr or Activation
        σ, without jumps.
    dimension : int
        d, at least twice the number of coordinates of the target.
    samples : int, optional
        n of each step. Give this or `samples_factor`.
    sample_exponent : int
        κ ≥ 1: n counts as d^κ, which fixes the learning rate :math:`s\,p\,d^{(\kappa-1)/2}` and the
        orders that the staircase uses.
    samples_factor : float, optional
        C of n = C d^κ, rounded.
    width, steps : int
        p, even, and T.
    step_size : float
        s > 0.
    readout : {"gaussian", "signs"} or sequence of float
        Law of the readouts: standard normal, ±1, or these values and their negatives.
    biases : bool
        Standard normal biases.
    preprocess : bool
        Take mean and linear part, as estimated on the batch, off its labels.
    noise_variance : float
        Variance of the label noise.
    ridge_samples : int
        Fresh samples of a final ridge regression of the readout; none by default.
    ridge : float, optional
        Its penalty; by default a fifth of these samples is held out to choose it.
    cache_folder : path-like, optional
        Deprecated and without effect.
    seeds, seed, workers, executor, store, progress
        See :func:`giantstep.numeric.networks.run.simulate`.

    Returns
    -------
    SimulatedGiantSteps

    Raises
    ------
    ParameterError
        If an argument is outside its range, or the memory of this machine is too small.
    AssumptionError
        If the student jumps, or the target is constant, with preprocessing affine.
    ExpressionError, UnsupportedExpressionError
        If student or target cannot be read.
    UndecidedError
        If it cannot be decided what the staircase is.

    Examples
    --------
    >>> found = simulate_giant_steps("x1 + x1*x2", dimension=100, samples=10_000, width=60,
    ...                              step_size=1.5, seeds=3)
    >>> [(row.step, row.direction.name, row.predicted) for row in found.directions]
    [(1, 'e1', True), (1, 'e2', False), (2, 'e1', True), (2, 'e2', True)]
    >>> found.agrees
    True
    """
    if cache_folder is not None:
        warnings.warn(
            "cache_folder has no effect and goes with the next release: no source is written",
            DeprecationWarning,
            stacklevel=2,
        )
    plan = plan_giant_steps(
        target,
        student,
        dimension=dimension,
        samples=samples,
        sample_exponent=sample_exponent,
        samples_factor=samples_factor,
        width=width,
        steps=steps,
        step_size=step_size,
        readout=readout,
        biases=biases,
        preprocess=preprocess,
        noise_variance=noise_variance,
        ridge_samples=ridge_samples,
        ridge=ridge,
    )
    return run_plan(
        plan, seeds=seeds, seed=seed, workers=workers, executor=executor, store=store,
        progress=progress,
    )  # fmt: skip


def run_plan(plan: GiantStepsPlan, *, seed: int = 0, **run: Any) -> SimulatedGiantSteps:
    """Train the networks of a plan, with the arguments of a run of :func:`simulate_giant_steps`."""
    result = take_giant_steps(
        plan.network, plan.readout, seed=seed, description=plan.description, **run
    )
    return SimulatedGiantSteps(
        plan.settings,
        result.seed,
        plan.staircase,
        plan.relevant_subspace,
        result,
        plan.predicted_residual,
    )


_IN_PART = "in part"
_TEXT_WIDTH = 100
_LARGE = 1000.0
"""Squared norm of rows that no longer are of order one at the usual sizes."""


def headline(settings: NetworkSettings, networks: int) -> str:
    """Return what was simulated, in one line."""
    power = "d" if settings.sample_exponent == 1 else f"d^{settings.sample_exponent}"
    readout = settings.readout
    if isinstance(readout, str):
        law = {"gaussian": "Gaussian readouts", "signs": "readouts ±1"}[readout]
    else:
        law = f"readouts ±({', '.join(f'{value:g}' for value in readout)})"
    extras = [
        *(["random biases"] if settings.biases else []),
        *(["linear part taken off the labels"] if settings.preprocess else []),
        *([f"noise variance {settings.noise_variance:g}"] if settings.noise_variance else []),
    ]
    return (
        f"{settings.student} on {settings.target}: d = {settings.dimension}, "
        f"n = {settings.samples} = {settings.samples_factor:.4g} {power} for each of "
        f"{settings.steps} steps of size {settings.step_size:g}, p = {settings.width}, "
        f"{', '.join([law, *extras])}; simulated, {networks} "
        f"network{'' if networks == 1 else 's'}"
    )


def _chain(found: SimulatedGiantSteps) -> str:
    chain = " ⊂ ".join(map(str, found.staircase.subspaces))
    steps = found.staircase.steps
    rests = "; ".join(f"step {s.number} {s.standing}: {s.remark}" for s in steps)
    return f"{chain} ({rests})" if rests else f"{chain}, nothing is learned"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _TEXT_WIDTH, subsequent_indent="  ", break_long_words=False)


def _direction_cells(rows: Sequence[LearnedDirection], shared: bool) -> list[list[str]]:
    return [
        [
            str(row.step),
            row.direction.name,
            _IN_PART if row.predicted is None else "learned" if row.predicted else "not learned",
            str(row.weights),
            f"{row.weights_noise:.2g}",
            *([str(row.signal), f"{row.noise:.2g}"] if shared else []),
            row.verdict,
            {True: "yes", False: "no", None: "–"}[row.agrees],
        ]
        for row in rows
    ]


def _spectrum_cells(found: SimulatedGiantSteps) -> list[list[str]]:
    def cell(values: Sequence[float]) -> str:
        return ", ".join(f"{value:.3g}" for value in values) or "–"

    return [
        [
            str(row.step),
            cell(row.inside),
            cell(row.inside_noise),
            cell(row.outside),
            cell([] if row.outside_noise is None else [row.outside_noise]),
        ]
        for row in found.spectra
    ]


def _remarks(found: SimulatedGiantSteps) -> list[str]:
    norms = ", ".join(map(str, found.squared_norms))
    remarks = [f"mean squared norm of the rows after 0, 1, … steps: {norms}"]
    factor = CLEAR if found.compares_shared else CLEAR_WEIGHTS
    size = (
        f"Learned: more than {factor:g} times the noise. A verdict is that of this size; only "
        "growing d decides."
    )
    if found.compares_shared:
        remarks.append(
            "In common: root mean square of what neurons with the same readout and bias share; "
            "its noise holds that of the batches, and what fluctuations of the start leave at "
            f"finite d. {size}"
        )
    elif found.settings.sample_exponent > 1:
        remarks.append(
            "Beyond order 1 neurons move by their own starts and have nothing in common, so that "
            f"verdicts are on the weights. {size}"
        )
    else:
        remarks.append(
            f"No two neurons have the same readout and bias: verdicts are on the weights. {size}"
        )
    if any(row.predicted and row.agrees is False for row in found.directions):
        remarks.append(
            "What is predicted but not seen may be too weak at this size: compare with more "
            "samples, a larger dimension, or another step size."
        )
    if found.squared_norms[-1].mean > _LARGE:
        remarks.append(
            "The rows have grown far beyond order one: the steps are too large for this target; "
            "use a smaller step size."
        )
    clusters = found.staircase.clusters
    if clusters is not None and clusters.is_limiting:
        remarks.append(
            f"With so few readout values step {clusters.step} reaches dimension "
            f"{clusters.dimension} of {clusters.reachable.dimension}: directions predicted "
            f"{_IN_PART!r} are learned in combinations."
        )
    if not found.staircase.decided:
        remarks.append(
            f"The staircase is {found.staircase.basis}: more may be learned than predicted."
        )
    error = found.test_error
    if error is not None:
        ridge = found.settings.ridge
        chosen = "penalty held out" if ridge is None else f"penalty {ridge:g}"
        what = f"‖P_(U,>{found.settings.fitted_degree}) f‖² = {found.predicted_residual}"
        remarks.append(
            f"test error after ridge regression on {found.settings.ridge_samples} fresh samples "
            f"({chosen}): {error}; predicted to be at least, for d → ∞: {what}"
        )
    if found.result.interrupted:
        remarks.append("The run was interrupted: these are the networks that had finished.")
    return remarks


Array = NDArray[np.float64]

_PANEL = 2.5
_MARGIN = 0.45
_SPECTRA = 2.5
_FLATTEST = 0.4
"""Least height of a panel by its width."""

_MOST_DIRECTIONS = 3
_MOST_POINTS = 1500
_MOST_PANELS = 7
_PARALLEL = 1e-9
_INSIDE_QUANTILE = 0.995
_SHIFT = 0.12


def _frame(
    found: SimulatedGiantSteps, directions: Sequence[Sequence[float]] | None
) -> tuple[list[str], Array]:
    """Names and orthonormal rows of two directions, or of three of the adapted basis."""
    r = found.result.overlaps.shape[-1]
    if directions is None:
        chosen = [(v.name, np.array(v.vector)) for v in found.basis[:_MOST_DIRECTIONS]]
        for axis in np.eye(r) if len(chosen) < 2 else ():
            if abs(axis @ chosen[0][1]) < 1 - _PARALLEL and len(chosen) < 2:
                rest = axis - (axis @ chosen[0][1]) * chosen[0][1]
                chosen.append((_name(rest), rest / np.linalg.norm(rest)))
        return [name for name, _ in chosen], np.array([v for _, v in chosen])
    try:
        rows = np.array(directions, dtype=np.float64)
    except (TypeError, ValueError):
        rows = np.empty(0)
    if rows.shape != (2, r) or not np.isfinite(rows).all():
        raise ParameterError(f"directions must be two rows of {r} numbers, got {directions!r}")
    lengths = np.linalg.norm(rows, axis=1)
    first = rows[0] / max(lengths[0], 1e-300)
    rest = rows[1] - (rows[1] @ first) * first
    if not lengths.all() or np.linalg.norm(rest) <= _PARALLEL * lengths[1]:
        raise ParameterError("directions must not be zero or parallel")
    second = rest / np.linalg.norm(rest)
    return [_name(first), _name(second)], np.stack([first, second])


def _name(vector: Array) -> str:
    axis = int(np.argmax(abs(vector)))
    if np.allclose(vector, np.eye(len(vector))[axis], atol=_PARALLEL):
        return f"e{axis + 1}"
    return f"({', '.join(f'{v + 0.0:.2g}' for v in vector)})"


def _labels(names: list[str]) -> tuple[list[str], str]:
    """Labels of the axes, and what their letters stand for."""
    labels, meanings = [], []
    for k, name in enumerate(names, start=1):
        axis = name.startswith("e") and name[1:].isdigit()
        letter = f"e_{{{name[1:]}}}" if axis else f"v_{k}"
        labels.append(rf"$\langle w_i, {letter}\rangle$")
        if not axis:
            # The overlap is with the unit vector of what is named by its exact components.
            meanings.append(rf"$v_{k} \propto$ {plain_text(name)}")
    return labels, ",  ".join(meanings)


def _limits(points: Array, dimension: int, *, comparable: bool) -> list[float]:
    """Half the sides of the panels: all but a few neurons are inside."""
    large = np.quantile(abs(points), _INSIDE_QUANTILE, axis=(0, 2)).max(axis=0)
    sides = np.maximum(1.15 * large, 3 / math.sqrt(dimension))
    if comparable:
        sides = np.maximum(sides, _FLATTEST * sides.max())
    return [float(side) for side in sides]


def _draw_prediction(
    axes: Any, found: SimulatedGiantSteps, plane: Array, time: int, limit: float
) -> None:
    from matplotlib.patches import Circle

    steps = found.staircase.subspaces
    learned = _in_plane(steps[min(time, len(steps) - 1)], plane)
    if len(learned) == 2:
        axes.axhspan(-limit, limit, color=GREEN, alpha=0.13, lw=0, zorder=0)
    elif len(learned) == 1:
        x, y = 2 * limit * learned[0]
        axes.plot([-x, x], [-y, y], color=GREEN, alpha=0.45, lw=3.5, zorder=1)
    # Of a Gaussian in two directions, 95 % are inside this radius.
    noise = found.result.noise_floor()[:, time].mean() * math.sqrt(-2 * math.log(0.05))
    axes.add_patch(Circle((0, 0), noise, fill=False, ec=GREY, lw=1, ls=(0, (3, 2)), zorder=4))
    axes.set_aspect("equal")


def _draw_neurons(axes: Any, found: SimulatedGiantSteps, points: Array, pen: Pen) -> None:
    signs = np.where(found.result.readout > 0, 1, -1).reshape(-1)
    flat = points.reshape(-1, 2)
    selected = slice(None, None, -(-len(flat) // _MOST_POINTS))
    for sign, colour in ((1, BLUE), (-1, VERMILLION)):
        x, y = flat[selected][signs[selected] == sign].T
        look = pen(
            linestyle="", marker=".", markersize=4.5, markeredgewidth=0, color=colour, alpha=0.6,
            zorder=3,
        )  # fmt: skip
        axes.plot(x, y, **look)
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)


def _in_plane(subspace: Subspace, plane: Array) -> Array:
    """Orthonormal directions, in the plane, of the projection of a subspace on it."""
    rows = np.array(subspace.numeric()).reshape(-1, plane.shape[1])
    if not len(rows):
        return np.empty((0, 2))
    _, sizes, vectors = np.linalg.svd(np.linalg.qr(rows.T)[0].T @ plane.T)
    return np.asarray(vectors[: len(sizes)][sizes > _PARALLEL])


def _draw_spectra(axes: Any, found: SimulatedGiantSteps, *, predicted: bool) -> None:
    spectra = found.spectra
    what = "in common" if found.compares_shared else "updates"
    drawn: list[float] = []

    def draw(points: list[tuple[float, float]], label: str, **style: Any) -> None:
        shown = [point for point in points if point[1] > 0]
        if shown:
            axes.plot(*zip(*shown, strict=True), ls="", label=label, **style)
            drawn.extend(value for _, value in shown)

    weights: list[tuple[float, float]] = []
    weights_noise: list[tuple[float, float]] = []
    outside: list[tuple[float, float]] = []
    outside_noise: list[tuple[float, float]] = []
    circle = {"ms": 6, "mfc": "white", "mew": 1.5, "zorder": 3}
    dash = {"marker": "_", "ms": 15, "mew": 1.6, "alpha": 0.45, "zorder": 2}
    for row in spectra:
        left, right = row.step - _SHIFT, row.step + _SHIFT
        weights += [(left, value) for value in row.inside]
        weights_noise += [(left, value) for value in row.inside_noise]
        outside += [(right, value) for value in row.outside]
        if row.outside_noise is not None:
            outside_noise.append((right, row.outside_noise))
    draw(weights, "weights, inside $V^*$", marker="o", color=BLUE, **circle)
    draw(weights_noise, "its noise", color=BLUE, **dash)
    where = r"inside $V^*\cap U_t^\perp$"
    draw(outside, f"{what}, {where}", marker="D", color=VERMILLION, **circle)
    draw(outside_noise, "its noise", color=VERMILLION, **dash)
    axes.set_yscale("log")
    if drawn and max(drawn) < 1e4 * min(drawn):
        axes.set_ylim(min(drawn) / 1.6, max(drawn) * 1.6)
    axes.set_xticks([row.step for row in spectra])
    axes.set_xlim(0.5, len(spectra) + 0.5)
    axes.grid(True, axis="y", color="#e4e4e4", linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.set_xlabel("step $t$")
    axes.set_ylabel(r"singular values $/\sqrt{p}$")
    handles, labels = axes.get_legend_handles_labels()
    for handle, label in _proxies(predicted):
        handles.append(handle)
        labels.append(label)
    axes.legend(handles, labels, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _proxies(predicted: bool) -> list[tuple[Any, str]]:
    """Handles for what the panels of neurons show."""
    from matplotlib.lines import Line2D

    neurons = [
        (Line2D([], [], ls="", marker=".", ms=8, mew=0, color=BLUE), "neurons, $a_i > 0$"),
        (Line2D([], [], ls="", marker=".", ms=8, mew=0, color=VERMILLION), "neurons, $a_i < 0$"),
    ]
    if not predicted:
        return neurons
    return [
        (Line2D([], [], ls="", marker="s", ms=9, mew=0, color=GREEN, alpha=0.45), "$U_t$"),
        *neurons,
        (Line2D([], [], ls=(0, (3, 2)), lw=1, color=GREY), "95 % of pure noise"),
    ]


def _title(found: SimulatedGiantSteps) -> str:
    settings = found.settings
    power = "d" if settings.sample_exponent == 1 else f"d^{{{settings.sample_exponent}}}"
    networks = len(found.result.completed)
    return (
        f"{plain_text(settings.student)} on {plain_text(settings.target, 48)}:  "
        rf"$d = {settings.dimension}$, $n = {settings.samples_factor:.4g}\,{power}$, "
        rf"$p = {settings.width}$, {networks} network{'' if networks == 1 else 's'}"
    )
