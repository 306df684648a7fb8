r"""Gradient steps on the first layer of a two-layer network in the proportional scaling.

The network :math:`f(x) = N^{-1/2}\,a\cdot\sigma(W^\top x)` has a first layer W of shape (d, N). It
starts from :math:`W_{ij} \sim \mathcal{N}(0, 1/d)` and :math:`a_j \sim \mathcal{N}(0, 1/N)`; a step
with n0 samples is

.. math:: W \leftarrow W + \frac{\eta}{n_0} X^\top [(y - f(X))\,a^\top \circ \sigma'(XW)] ,

η √N times the negative gradient of :math:`\frac{1}{2n_0}\sum(y - f)^2`. Labels are
:math:`y = f_*(x_1) + \sqrt\Delta\,\xi`: inputs are isotropic, so the teacher may look at the first
coordinate.

Samples come in blocks with a random stream each (:mod:`.sample_stream`), so they can be drawn
again and no array of n0 rows is ever held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from ..errors import ParameterError
from .arguments import is_one_of, nonnegative_number, real_number, whole_number
from .sample_stream import Function, SampleStream, finite_function, finite_values, seed_sequence

__all__ = ["LAYERS", "FirstLayers", "OneStepSetup", "first_layers", "sample_stream"]

Array = NDArray[np.float64]
Checkpoint = Callable[[], None]

LAYERS = ("gradient", "rank one", "given")
"""How the first layer moves: by the gradient, by its rank-one part, or by a spike that is given."""

# Random streams of one network; a step that draws samples of its own adds its number to _STEP.
NETWORK, READOUT, TEST, NONLINEAR, RESIDUAL, _STEP = range(6)

SLICE_ENTRIES = 2**21
"""Hidden activations held at once, 16 MB."""


@dataclass(frozen=True, slots=True)
class OneStepSetup:
    r"""A network of finite size, its teacher and its steps.

    Parameters
    ----------
    student, student_derivative, teacher : callable
        σ, σ' and f_*: take an array, return values of the same shape or one number for all.
    dimension, width, step_samples : int
        d ≥ 2, N and n0.
    step_size : float
        η ≥ 0.
    noise_variance : float
        Δ, in the steps and in the readout.
    linear, residual : float
        Linear coefficient :math:`\mu_1` of the student and variance of the rest. They enter where
        the student is replaced by its Gaussian counterpart, and the first in ``layer="rank one"``.
    teacher_linear, teacher_residual : float
        The same of the teacher.
    steps : int
        Number of steps.
    fresh : bool
        Whether every step has samples of its own.
    layer : {"gradient", "rank one", "given"}
        ``rank one`` replaces the gradient by :math:`\frac{\mu_1}{n_0}X^\top y\,a^\top`. ``given``
        takes no step: it adds the spike :math:`u\,a^\top/|a|`.
    spike : tuple of float
        Of ``given``: length of u along the teacher's direction and across it.

    Raises
    ------
    ParameterError
        If an argument is outside its range; the message names it.
    """

    student: Function
    student_derivative: Function
    teacher: Function
    dimension: int
    width: int
    step_samples: int
    step_size: float = 1.0
    noise_variance: float = 0.0
    linear: float = 0.0
    residual: float = 0.0
    teacher_linear: float = 0.0
    teacher_residual: float = 0.0
    steps: int = 1
    fresh: bool = False
    layer: str = "gradient"
    spike: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        for name in ("student", "student_derivative", "teacher"):
            finite_function(name, getattr(self, name))
        for name, least in (("dimension", 2), ("width", 1), ("step_samples", 1), ("steps", 0)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), minimum=least))
        for name in ("step_size", "noise_variance", "residual", "teacher_residual"):
            object.__setattr__(self, name, nonnegative_number(name, getattr(self, name)))
        for name in ("linear", "teacher_linear"):
            object.__setattr__(self, name, _finite(name, getattr(self, name)))
        if not is_one_of(self.layer, LAYERS):
            raise ParameterError(f"layer must be one of {', '.join(LAYERS)}, got {self.layer!r}")
        if not isinstance(self.spike, Sequence) or len(self.spike) != 2:
            raise ParameterError(
                f"spike must be two numbers, along and across the teacher; got {self.spike!r}"
            )
        object.__setattr__(self, "spike", tuple(_finite("spike", part) for part in self.spike))

    def identity(self) -> dict[str, object]:
        """Return what fixes the numbers besides the functions, as plain values."""
        functions = ("student", "student_derivative", "teacher")
        found = {name: getattr(self, name) for name in self.__slots__ if name not in functions}
        return {**found, "spike": list(self.spike)}


@dataclass(frozen=True, slots=True, eq=False)
class FirstLayers:
    r"""A first layer before, between and after its steps.

    Attributes
    ----------
    weights : dict of int to ndarray, shape (d, N)
        W after so many steps.
    readout : ndarray, shape (N,)
        The second layer a of the steps.
    label_moments : ndarray, shape (steps, d)
        :math:`X^\top y/n_0` of the samples of each step; u itself for a given spike.
    """

    weights: dict[int, Array]
    readout: Array
    label_moments: Array

    def __repr__(self) -> str:
        d, width = next(iter(self.weights.values())).shape
        return f"FirstLayers(d = {d}, N = {width}, after {', '.join(map(str, self.weights))} steps)"


def first_layers(
    setup: OneStepSetup,
    seed: int | np.random.SeedSequence,
    *,
    record: Sequence[int] | None = None,
    checkpoint: Checkpoint | None = None,
) -> FirstLayers:
    """Draw a network and take its steps.

    Parameters
    ----------
    setup : OneStepSetup
    seed : int or SeedSequence
        Fixes everything.
    record : sequence of int, optional
        Numbers of steps after which W is kept; by default 0 and the last.
    checkpoint : callable, optional
        Called before each block of samples. What it raises abandons the run.

    Raises
    ------
    ParameterError
        If a function returns something else than finite real values, or the weights overflow.

    Examples
    --------
    >>> setup = OneStepSetup(np.tanh, lambda z: 1 - np.tanh(z) ** 2, np.sin, dimension=30,
    ...                      width=45, step_samples=60, step_size=2.0)
    >>> layers = first_layers(setup, seed=1)
    >>> layers
    FirstLayers(d = 30, N = 45, after 0, 1 steps)
    >>> moved = np.linalg.svd(layers.weights[1] - layers.weights[0], compute_uv=False)
    >>> bool(moved[0] > 3 * moved[1])
    True
    """
    kept = recorded_steps(setup, record)
    stream = sample_stream(setup, seed)
    generator = stream.generator(NETWORK)
    d, width = setup.dimension, setup.width
    weights = generator.standard_normal((d, width)) / math.sqrt(d)
    readout = generator.standard_normal(width) / math.sqrt(width)
    found = {0: weights.copy()} if 0 in kept else {}
    moments = np.zeros((setup.steps, d))
    with (
        threadpoolctl.threadpool_limits(1, user_api="blas"),
        # An overflow is reported below, as what it is.
        np.errstate(over="ignore", invalid="ignore"),
    ):
        for step in range(1, setup.steps + 1):
            if setup.layer == "given":
                # Directions across the teacher are alike: W is isotropic.
                moment = np.zeros(d)
                moment[:2] = setup.spike
                weights += np.outer(moment, readout / np.linalg.norm(readout))
            else:
                purpose = _STEP + (step - 1 if setup.fresh else 0)
                moment = _take_step(setup, stream, weights, readout, purpose, checkpoint)
            moments[step - 1] = moment
            if not np.isfinite(weights).all():
                raise ParameterError(
                    f"step_size={setup.step_size:g} is too large: the first layer overflows in "
                    f"step {step}"
                )
            if step in kept:
                found[step] = weights.copy()
    return FirstLayers(found, readout, moments)


def sample_stream(setup: OneStepSetup, seed: int | np.random.SeedSequence) -> SampleStream:
    """Return the samples of a network: labels are those of its teacher."""
    return SampleStream(
        setup.dimension, lambda x: finite_values(setup.teacher, "teacher", x[:, 0]), 1,
        setup.noise_variance, seed_sequence(seed),
    )  # fmt: skip


def recorded_steps(setup: OneStepSetup, record: Sequence[int] | None) -> tuple[int, ...]:
    """Return increasing numbers of steps, checked; by default the first and the last."""
    if record is None:
        return tuple(sorted({0, setup.steps}))
    kept = sorted({whole_number("record", step, minimum=0) for step in record})
    if not kept or kept[-1] > setup.steps:
        raise ParameterError(f"record must hold numbers of steps up to {setup.steps}, got {record}")
    return tuple(kept)


def row_slices(rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows whose hidden activations are few enough to be held at once."""
    size = max(1, SLICE_ENTRIES // width)
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def _take_step(
    setup: OneStepSetup, stream: SampleStream, weights: Array, readout: Array, purpose: int,
    checkpoint: Checkpoint | None,
) -> Array:  # fmt: skip
    """Move the weights in place; return the label moment of the samples."""
    full = setup.layer == "gradient"
    count, root = setup.step_samples, math.sqrt(setup.width)
    moment = np.zeros(setup.dimension)
    gradient = np.zeros_like(weights) if full else None
    for inputs, labels in stream.blocks(purpose, count):
        if checkpoint is not None:
            checkpoint()
        moment += labels @ inputs
        if gradient is None:
            continue
        for rows in row_slices(len(inputs), setup.width):
            hidden = inputs[rows] @ weights
            outputs = finite_values(setup.student, "student", hidden) @ readout / root
            slopes = finite_values(setup.student_derivative, "student_derivative", hidden)
            gradient += inputs[rows].T @ ((labels[rows] - outputs)[:, None] * slopes)
    if gradient is not None:
        gradient *= setup.step_size / count * readout
        weights += gradient
    else:
        weights += np.outer(setup.step_size * setup.linear / count * moment, readout)
    return moment / count


def _finite(name: str, value: object) -> float:
    number = real_number(name, value)
    if not math.isfinite(number):
        raise ParameterError(f"{name} must be finite, got {number}")
    return number
