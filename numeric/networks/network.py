r"""A two-layer network of finite size and the gradient steps of its first layer.

The output is :math:`f(x) = \frac1p \sum_j a_j\,\sigma(w_j\cdot x + b_j)`. With a batch of n
samples all rows take the step

.. math:: w_j \leftarrow (1 - \omega)\,w_j - \frac{s}{n}\,a_j \sum_\mu \ell'(y_\mu, f(x_\mu))\,
          \sigma'(w_j\cdot x_\mu + b_j)\,x_\mu

of the loss :math:`\ell(y, f)`, :math:`(y - f)^2/2` unless another is given; s is the learning rate
divided by p, ω the weight decay. Biases stay, and so does the second layer, unless
:math:`a_j \leftarrow a_j - \frac{s_2}{n}\sum_\mu\ell'\,\sigma(w_j\cdot x_\mu + b_j)` is asked
for. In the "standard" scaling outputs are :math:`p^{-1/2} \sum_j \tilde a_j\,\sigma`, with
:math:`\tilde a = a/\sqrt p`, and the step is :math:`s\,\tilde a_j` in place of
:math:`s\,a_j`: the same network, with steps shorter by √p.

What a network holds is p × d weights, a gradient of that size and blocks of fixed size: batches are
drawn block by block, and neurons with the partners' weights share the work of the first step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..arguments import (
    checked_switch,
    finite_number,
    is_one_of,
    nonnegative_number,
    positive_number,
    real_number,
    whole_number,
)
from .layer import FirstLayer, SpikedRows
from .samples import (
    INITIAL,
    LATER_STEPS,
    ROWS,
    STEP,
    Channel,
    Function,
    SampleBlock,
    Samples,
    checked_channel,
    finite_function,
    finite_values,
    slices,
)
from .sizes import row_counts

__all__ = ["Batch", "Network", "Training", "check_draws"]

Array = NDArray[np.float64]
RowLaw = Callable[[np.random.Generator, int, int], Array]

ROW_LAWS = ("sphere", "gaussian")
SCALINGS = ("mean field", "standard")
BIASES = ("none", "gaussian", "later")
GRADIENTS = ("full", "rank one", "given")
READOUTS = ("gaussian", "signs")
PRECISIONS = ("double", "single")

HIDDEN_ENTRIES = 2**20
"""Entries of a block of hidden units, 8 MB."""

FEWEST_ROWS = 256
"""Rows of a block of hidden units at least: fewer slow down the product that adds gradients."""

GROUP_ENTRIES = 2**19
"""Entries of the gradient that a product adds at once: no third array of the weights' size."""

LARGEST_WEIGHT = 1e30
"""A network with larger weights has diverged; squares of squares still do not overflow."""

MOST_DRAWS = 10**14
"""Random numbers for one batch; more would take weeks."""

NO_GRADIENT = (
    "the gradient vanishes on all samples: the student is linear, or the target is affine and free "
    "of noise"
)

_FUNCTIONS = ("student", "teacher", "student_derivative", "loss_derivative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    r"""A network, its teacher and its gradient steps.

    Parameters
    ----------
    student, teacher : callable
        Vectorised activation σ, and target of the projections :math:`\theta_i\cdot x`: it takes
        (n,) for one direction, (n, r) for several, and returns n values.
    student_derivative : callable, optional
        σ'; needed for steps by gradients.
    dimension, width : int
        d and the number p of neurons; even if they are paired.
    directions : int
        Number r of directions that the teacher sees.
    noise_variance : float
        Δ, of the labels of all samples.
    labels : {"regression", "sign", "probit", "logistic"} or callable
        See :class:`.samples.Channel`.
    rows : {"sphere", "gaussian"}, SpikedRows or callable
        Law of the rows before the first step: uniform on the unit sphere, of independent entries of
        variance 1/d, spiked random features (without steps), or a function that takes a generator,
        p and d and returns (p, d) values.
    readout : {"gaussian", "signs"} or sequence of float
        Law of the second layer a: standard normal, ±1, or the letters given. With pairs each value
        has a partner of the other sign.
    fractions : sequence of float, optional
        Shares of the letters; equal by default.
    biases : {"none", "gaussian", "later"}
        Standard normal biases from the start, or only after the last step.
    paired : bool
        Give each neuron a partner with the same weights and bias and the opposite readout, so that
        the output is 0 before the first step.
    replicas : int
        Least number of neurons (of pairs, if paired) with the same readout and bias, as far as a
        letter has so many.
    scaling : {"mean field", "standard"}
        Whether s multiplies :math:`a_j` or :math:`a_j/\sqrt p`.
    steps : int
        Number of steps.
    step_samples : int
        Samples n of each step.
    step_size, exponent : float
        s is ``step_size * width**exponent``.
    fresh : bool
        Whether every step has samples of its own.
    weight_decay : float
        ω in [0, 1]; at 1 the step replaces the weights.
    normalise : bool
        Scale the rows after every step to a mean squared length of 1.
    preprocess : bool
        Take mean and linear part, as estimated on the batch, off its labels.
    gradient : {"full", "rank one", "given"}
        ``rank one`` replaces the gradient by :math:`\mu_1 a_j \frac1n\sum y_\mu x_\mu`; ``given``
        takes no samples: it adds the spike :math:`(a_j/|a|)\,u` once, in the first of the steps.
    slope : float
        :math:`\mu_1 = E[\sigma'(z)]` of ``rank one``.
    spike : tuple of float
        Of ``given``: length of u along the teacher's first direction and across it.
    readout_step_size : float
        :math:`s_2`, of the second layer; both layers move at once.
    loss_derivative : callable, optional
        :math:`\ell'` in the output f, of labels and outputs; by default f − y.
    description : str
        Names the functions, which the other fields do not; stored results are told apart by it.
    precision : {"double", "single"}
        Of weights, inputs and features. Single precision has the numbers of double precision,
        rounded, so that the two can be compared seed by seed.

    Raises
    ------
    ParameterError
        If an argument is outside its range; the message names it.

    Examples
    --------
    >>> network = Network(student=np.tanh, teacher=np.sin, dimension=50, width=20,
    ...                   student_derivative=lambda z: 1 - np.tanh(z) ** 2,
    ...                   readout=[1.0], steps=1, step_samples=400, step_size=2.0)
    >>> network.train(seed=1).rows.shape
    (20, 50)
    """

    student: Function
    teacher: Function
    student_derivative: Function | None = None
    dimension: int
    width: int
    directions: int = 1
    noise_variance: float = 0.0
    labels: str | Callable[[Array, Array], Any] = "regression"
    rows: str | SpikedRows | RowLaw = "sphere"
    readout: str | Sequence[float] = (1.0,)
    fractions: Sequence[float] | None = None
    biases: str = "none"
    paired: bool = False
    replicas: int = 1
    scaling: str = "mean field"
    steps: int = 0
    step_samples: int = 1
    step_size: float = 0.0
    exponent: float = 0.0
    fresh: bool = True
    weight_decay: float = 0.0
    normalise: bool = False
    preprocess: bool = False
    gradient: str = "full"
    slope: float = 0.0
    spike: tuple[float, float] = (0.0, 0.0)
    readout_step_size: float = 0.0
    loss_derivative: Callable[[Array, Array], Any] | None = None
    precision: str = "double"
    description: str = ""

    def __post_init__(self) -> None:
        self._check_functions()
        for name, least in (
            ("dimension", 1), ("width", 1), ("directions", 1), ("replicas", 1), ("steps", 0),
            ("step_samples", 1),
        ):  # fmt: skip
            self._set(name, whole_number(name, getattr(self, name), minimum=least))
        for name in ("step_size", "exponent", "slope", "readout_step_size"):
            self._set(name, finite_number(name, getattr(self, name)))
        self._set("noise_variance", nonnegative_number("noise_variance", self.noise_variance))
        for name in ("paired", "fresh", "preprocess", "normalise"):
            self._set(name, checked_switch(name, getattr(self, name)))
        for name, known in (
            ("scaling", SCALINGS), ("gradient", GRADIENTS), ("precision", PRECISIONS),
            ("biases", BIASES),
        ):  # fmt: skip
            if not is_one_of(getattr(self, name), known):
                raise ParameterError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        self._set("weight_decay", nonnegative_number("weight_decay", self.weight_decay))
        if self.weight_decay > 1:
            raise ParameterError(f"weight_decay must be at most 1, got {self.weight_decay}")
        if not isinstance(self.spike, Sequence) or len(self.spike) != 2:
            raise ParameterError(
                f"spike must be two numbers, along and across the teacher; got {self.spike!r}"
            )
        self._set("spike", tuple(finite_number("spike", part) for part in self.spike))
        self._check_readout()
        self._check_rows()
        self._check_steps()
        checked_channel(self.labels, self.noise_variance)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_functions(self) -> None:
        for name in ("student", "teacher"):
            finite_function(name, getattr(self, name))
        for name in ("student_derivative", "loss_derivative"):
            if getattr(self, name) is not None:
                finite_function(name, getattr(self, name))

    def _check_readout(self) -> None:
        if self.paired and self.width % 2:
            raise ParameterError(f"width must be even, neurons come in pairs; got {self.width}")
        if self.replicas > self.seats:
            raise ParameterError(
                f"replicas must be at most the number {self.seats} of "
                f"{'pairs' if self.paired else 'neurons'}, got {self.replicas}"
            )
        if isinstance(self.readout, str):
            if self.readout not in READOUTS:
                raise _not_a_readout(self.readout)
            if self.fractions is not None:
                raise ParameterError("fractions are for letters; readout has a law of its own")
            return
        if not isinstance(self.readout, (tuple, list, np.ndarray)) or not len(self.readout):
            raise _not_a_readout(self.readout)
        letters = tuple(real_number("readout", value) for value in self.readout)
        if not all(map(math.isfinite, letters)) or not any(letters):
            raise _not_a_readout(self.readout)
        self._set("readout", letters)
        if self.fractions is None:
            self._set("fractions", (1 / len(letters),) * len(letters))
        if not isinstance(self.fractions, (tuple, list, np.ndarray)):
            raise ParameterError(
                f"fractions must be numbers, one for each letter, got {self.fractions!r}"
            )
        shares = tuple(positive_number("fractions", share) for share in self.fractions)
        if len(letters) != len(shares):
            raise ParameterError(
                f"readout and fractions must be equally many, got {len(letters)} and {len(shares)}"
            )
        self._set("fractions", shares)
        row_counts(shares, self.seats)

    def _check_rows(self) -> None:
        if isinstance(self.rows, SpikedRows):
            if self.steps:
                raise ParameterError(
                    "rows with a spike take no gradient step; use steps=0, or rows='sphere'"
                )
            if self.rows.shape[1] != self.directions:
                raise ParameterError(
                    f"directions must be {self.rows.shape[1]}, as many as the alignment of the "
                    f"rows has columns, got {self.directions}"
                )
            if self.paired or self.biases != "none":
                raise ParameterError(
                    "rows with a spike have the biases of their classes and no partners; leave "
                    "out paired and biases"
                )
            self.rows.check_sizes(self.width, self.dimension)
        elif not callable(self.rows) and not is_one_of(self.rows, ROW_LAWS):
            raise ParameterError(
                f"rows must be one of {', '.join(ROW_LAWS)}, SpikedRows or a function, got "
                f"{self.rows!r}"
            )
        if self.directions > self.dimension:
            raise ParameterError(
                f"dimension must be at least {self.directions}, the number of the teacher's "
                f"directions, got {self.dimension}"
            )
        # One dimension is left for the part of a given spike across the teacher.
        if self.steps and self.gradient == "given" and self.directions == self.dimension:
            raise ParameterError(
                f"dimension must exceed the teacher's {self.directions} directions, "
                f"got {self.dimension}"
            )

    def _check_steps(self) -> None:
        if self.steps and self.gradient == "full" and self.student_derivative is None:
            raise ParameterError("student_derivative is needed for steps by gradients")
        if self.draws_steps:
            check_draws("step_samples", self.step_samples, self.dimension)
        if self.readout_step_size and (self.gradient != "full" or self.paired):
            raise ParameterError(
                "readout_step_size must be 0 for paired neurons and for gradients that are not "
                "full: their second layer stays"
            )
        if self.steps and not abs(self.rate) < math.inf:
            raise ParameterError(f"step_size*width**exponent must be finite, got {self.rate}")

    # ------------------------------------------------------------------ what fields imply

    @property
    def channel(self) -> Channel:
        """How labels are made from the target."""
        return checked_channel(self.labels, self.noise_variance)

    @property
    def seats(self) -> int:
        """Number of independently drawn rows: of pairs, or of neurons."""
        return self.width // 2 if self.paired else self.width

    @property
    def rate(self) -> float:
        """Factor of :math:`a_j` in a step."""
        with np.errstate(over="ignore", under="ignore"):
            found = self.step_size * np.float64(self.width) ** self.exponent
        return float(found / math.sqrt(self.width) if self.scaling == "standard" else found)

    @property
    def draws_steps(self) -> bool:
        """Whether steps take samples."""
        return bool(self.steps) and self.gradient != "given"

    @property
    def spike_directions(self) -> int:
        """Number k of directions that rows are measured along: one, unless the rows say more."""
        return self.rows.shape[0] if isinstance(self.rows, SpikedRows) else 1

    @property
    def classes(self) -> int:
        """Number of classes of rows: letters with their partners, or kinds of spiked rows."""
        if isinstance(self.rows, SpikedRows):
            return len(self.rows.kinds)
        if isinstance(self.readout, str):
            return 1
        return len(self.readout) * (2 if self.paired else 1)

    @property
    def drawn_samples(self) -> int:
        """Samples drawn in the steps, those drawn again counted again."""
        return self.draws_steps * self.steps * self.step_samples * (2 if self.preprocess else 1)

    @property
    def bytes_needed(self) -> int:
        """Memory of the steps, in bytes, without what functions take for themselves."""
        size = 4 if self.precision == "single" else 8
        weights = self.width * self.dimension
        hidden = max(HIDDEN_ENTRIES, FEWEST_ROWS * self.width)
        blocks = (2 * hidden + 2**20) * size + 2**20 * 8
        # A label moment is kept of each step.
        blocks += self.steps * self.dimension * 8
        return weights * (2 * size if self.draws_steps else size) + blocks

    def identity(self) -> dict[str, object]:
        """Return what fixes the numbers besides the functions, as plain values."""
        found: dict[str, object] = {
            f.name: getattr(self, f.name) for f in fields(self) if f.name not in _FUNCTIONS
        }
        found["labels"] = self.channel.name
        # Networks whose second layer stays are those of earlier stores.
        if not self.readout_step_size:
            del found["readout_step_size"]
        if isinstance(self.rows, SpikedRows):
            found["rows"] = self.rows.identity()
        elif callable(self.rows):
            found["rows"] = "function"
        for name in ("readout", "fractions", "spike"):
            if not isinstance(found[name], str):
                found[name] = list(found[name] or ())  # type: ignore[call-overload]
        return found

    # ------------------------------------------------------------------ training

    def samples(
        self,
        seed: int | np.random.SeedSequence,
        teachers: Array | None = None,
        checkpoint: Callable[[], None] | None = None,
        drawn: Callable[[int], None] | None = None,
    ) -> Samples:
        """Return inputs and labels for a seed; by default the teacher sees the first axes."""
        if teachers is None:
            teachers = np.eye(self.directions, self.dimension)
        return Samples(
            self.teacher, teachers, self.channel, seed,
            checkpoint=checkpoint, drawn=drawn, single=self.precision == "single",
        )  # fmt: skip

    def train(
        self,
        seed: int | np.random.SeedSequence,
        checkpoint: Callable[[], None] | None = None,
    ) -> FirstLayer:
        """Draw the rows and take all steps.

        Parameters
        ----------
        seed : int or SeedSequence
            Fixes everything.
        checkpoint : callable, optional
            Called before each block of samples. What it raises abandons the run.

        Raises
        ------
        ParameterError
            If the weights overflow, or a function returns a value that is not finite.
        """
        training = Training(self, seed, checkpoint)
        for _ in range(self.steps):
            training.step()
        return training.layer


@dataclass(slots=True, eq=False)
class Batch:
    r"""Sums over the samples of a batch.

    Attributes
    ----------
    gradient : ndarray, shape (p, d) or less
        :math:`-\sum_\mu \ell'_\mu\,\sigma'(w_j\cdot x_\mu + b_j)\,x_\mu`.
    label_moment, residual_moment : ndarray, shape (d,)
        :math:`\sum_\mu y_\mu x_\mu` and :math:`-\sum_\mu \ell'_\mu x_\mu`; equal where no
        gradient is asked for.
    readout_gradient : ndarray, shape (p,)
        :math:`-\sum_\mu \ell'_\mu\,\sigma(w_j\cdot x_\mu + b_j)`; zero where the second layer
        stays.
    excess : ndarray, shape (r, r)
    rounding : float
        See :class:`Training`.
    """

    gradient: Array
    label_moment: Array
    residual_moment: Array
    readout_gradient: Array
    excess: Array
    rounding: float


class Training:
    """A network in training.

    Parameters
    ----------
    network : Network
    seed : int or SeedSequence
    checkpoint : callable, optional
        Called before each block of samples. What it raises abandons the run.
    drawn : callable, optional
        Told the number of samples of each block.

    Attributes
    ----------
    layer : FirstLayer
        The rows as they are now. Its spike is the direction of the sum over all steps so far of
        the residuals times inputs, or the one that was given.
    samples : Samples
    steps : int
        Steps taken.
    label_moments : list of ndarray, shape (d,)
        Mean of labels times inputs of each step; u of a spike that was given.
    excess : ndarray, shape (r, r)
        Mean products of two of the teacher's coordinates, weighted with the squared residuals of
        the last step, over the mean of these: noise of gradients has so much more variance along
        the teacher's directions than across, where this is the identity.
    rounding : float
        Single precision: relative distance of the first block's gradient of the last step from
        that of double precision; 0 otherwise.
    scale : float
        Factor of the rows after the last step that gave them their length; 1 without.
    """

    def __init__(
        self,
        network: Network,
        seed: int | np.random.SeedSequence,
        checkpoint: Callable[[], None] | None = None,
        drawn: Callable[[int], None] | None = None,
    ) -> None:
        self.network = network
        self.samples = network.samples(seed, checkpoint=checkpoint, drawn=drawn)
        self.steps = 0
        self.label_moments: list[Array] = []
        self.excess = np.eye(network.directions)
        self.rounding, self.scale = 0.0, 1.0
        self._residual_moment = np.zeros(network.dimension)
        self.layer = self._start()
        if isinstance(network.rows, SpikedRows):
            self.samples = network.samples(seed, self.layer.teachers, checkpoint, drawn)

    # ------------------------------------------------------------------ the start

    def _start(self) -> FirstLayer:
        network = self.network
        if isinstance(network.rows, SpikedRows):
            layer = network.rows.draw(
                self.samples.generator(ROWS), network.width, network.dimension
            )
            layer.rows = self._rounded(layer.rows)
            return layer
        readout, biases, classes = self._readouts()
        rows = self.start_rows()
        # No direction before there is a step.
        spike = np.zeros((1, network.dimension))
        teachers = np.eye(network.directions, network.dimension)
        return FirstLayer(
            rows, classes, biases, spike, teachers, np.zeros((network.classes, 1)), readout
        )

    def start_rows(self, out: Array | None = None) -> Array:
        """Return the rows before the first step, drawn again; partners share theirs."""
        network = self.network
        shape = network.seats, network.dimension
        generator = self.samples.generator(ROWS)
        single = network.precision == "single"
        own = None if out is None or single else out[: network.seats]
        if callable(network.rows):
            rows = np.asarray(network.rows(generator, *shape), dtype=float)
            if rows.shape != shape or not np.isfinite(rows).all():
                raise ParameterError(
                    f"rows must return finite values of shape {shape}, got {rows.shape}"
                )
        else:
            rows = generator.standard_normal(shape, out=own)
            if network.rows == "gaussian":
                rows /= math.sqrt(network.dimension)
            else:
                rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        if out is None and not network.paired:
            return self._rounded(rows)
        if out is None:
            out = np.empty((network.width, network.dimension), self._rounded(rows[:1]).dtype)
        if rows is not own:
            out[: network.seats] = rows
        if network.paired:
            out[network.seats :] = out[: network.seats]
        return out

    def _rounded(self, rows: Array) -> Array:
        single = self.network.precision == "single"
        return rows.astype(np.float32) if single else rows  # type: ignore[return-value]

    def _readouts(self) -> tuple[Array, Array, NDArray[np.intp]]:
        """Second layer, biases and classes; equal ones are neighbours."""
        network = self.network
        generator = self.samples.generator(INITIAL)
        letters = not isinstance(network.readout, str)
        counts = row_counts(network.fractions or (), network.seats) if letters else [network.seats]
        classes = np.repeat(np.arange(len(counts)), counts)
        # Within a letter: neurons with the same bias have the same readout, too.
        parts = [max(count // network.replicas, 1) for count in counts]
        groups = sum(parts)
        group = np.concatenate([
            sum(parts[:k]) + np.arange(count) * parts[k] // count for k, count in enumerate(counts)
        ])  # fmt: skip
        if network.readout == "gaussian":
            values = generator.standard_normal(groups)[group]
        elif network.readout == "signs":
            drawn = np.ones(groups) if network.paired else generator.choice([-1.0, 1.0], groups)
            values = np.sort(drawn)[group]
        else:
            values = np.asarray(network.readout, dtype=float)[classes]
        biases = np.zeros(network.seats)
        if network.biases == "gaussian" or (network.biases == "later" and not network.steps):
            biases = generator.standard_normal(groups)[group]
        if not network.paired:
            return values, biases, classes
        partners = classes + (0 if isinstance(network.readout, str) else len(network.readout))
        return (
            np.concatenate([values, -values]),
            np.concatenate([biases, biases]),
            np.concatenate([classes, partners]),
        )

    # ------------------------------------------------------------------ steps

    def step(self) -> None:
        """Take the next step.

        Raises
        ------
        ParameterError
            If the weights overflow, or a function returns a value that is not finite.
        """
        # What overflows is found afterwards.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.network.gradient == "given":
                self._add_given_spike()
            else:
                self._take_step()
        rows = self.layer.rows
        if not -LARGEST_WEIGHT < rows.min() <= rows.max() < LARGEST_WEIGHT:
            raise ParameterError(
                f"the weights overflow in step {self.steps + 1}: the steps are too large\n"
                "  use a smaller step_size"
            )
        if self.network.normalise:
            self._normalise()
        self.steps += 1
        self._after_step()

    def _normalise(self) -> None:
        rows = self.layer.rows
        square = float(np.einsum("ij,ij->", rows, rows)) / len(rows)
        if square == 0:
            raise ParameterError(NO_GRADIENT)
        self.scale = 1 / math.sqrt(square)
        rows *= self.scale

    def _after_step(self) -> None:
        """Set what is known of the layer once it has moved."""
        norm = np.linalg.norm(self._residual_moment)
        if norm > 0:
            self.layer.spikes = self._residual_moment[None] / norm
        self.layer.centres = self.layer.strengths
        if self.network.biases == "later" and self.steps == self.network.steps:
            self.layer.biases = self.samples.generator(INITIAL, 1).standard_normal(
                self.network.width
            )

    def resume(self, state: dict[str, Array]) -> None:
        """Continue from what :meth:`state` returned."""
        self.steps = int(state["steps"])
        self.layer.rows[:] = state["rows"]
        if self.network.readout_step_size:
            self.layer.readout = state["readout"]
        self._residual_moment = state["residual_moment"]
        self.label_moments = list(state["label_moments"])
        self.excess = state["excess"]
        self.rounding, self.scale = float(state["rounding"]), float(state["scale"])
        self._after_step()

    def state(self) -> dict[str, Array]:
        """Return what a run that is stopped here goes on from."""
        moved = {"readout": self.layer.readout} if self.network.readout_step_size else {}
        return {
            **moved,
            "steps": np.array(float(self.steps)),
            "rows": self.layer.rows,
            "residual_moment": self._residual_moment,
            "label_moments": np.array(self.label_moments),
            "excess": self.excess,
            "rounding": np.array(self.rounding),
            "scale": np.array(self.scale),
        }

    def _add_given_spike(self) -> None:
        moment = np.zeros(self.network.dimension)
        if self.steps == 0:
            # Directions across the teacher are alike: rows are isotropic.
            r = self.network.directions
            moment[0], moment[min(r, len(moment) - 1)] = self.network.spike
            readout = self.layer.readout / np.linalg.norm(self.layer.readout)
            self.layer.rows += np.outer(readout, moment)
        self.label_moments.append(moment)
        self._residual_moment = self._residual_moment + moment

    def _take_step(self) -> None:
        network, layer = self.network, self.layer
        # Paired neurons have no output at the start, and partners the same gradient.
        silent = network.paired and self.steps == 0
        purpose = LATER_STEPS + self.steps if network.fresh and self.steps else STEP
        full = network.gradient == "full"
        found = self.batch(purpose, full=full, silent=silent)
        self.excess, self.rounding = found.excess, found.rounding
        self.label_moments.append(found.label_moment / network.step_samples)
        self._residual_moment = self._residual_moment + found.residual_moment
        factor = network.rate / network.step_samples
        if network.weight_decay:
            layer.rows *= 1 - network.weight_decay
        if not full:
            layer.rows += np.outer(factor * network.slope * layer.readout, found.label_moment)
            return
        gradient, count = found.gradient, len(found.gradient)
        gradient *= (factor * layer.readout[:count])[:, None]
        layer.rows[:count] += gradient
        if silent:
            layer.rows[count:] -= gradient
        if network.readout_step_size:
            moved = network.readout_step_size / network.step_samples * found.readout_gradient
            layer.readout = layer.readout + moved

    def batch(self, purpose: int = STEP, *, full: bool = True, silent: bool = False) -> Batch:
        """Return sums over a batch for the rows as they are now.

        Parameters
        ----------
        purpose : int
            Which samples.
        full : bool
            Whether the gradients are wanted, or the labels only.
        silent : bool
            Take the output for zero, and the first of all partners for both.
        """
        network = self.network
        offset, linear = self.linear_part(purpose) if network.preprocess else (0.0, None)
        count = (network.seats if silent else network.width) if full else 0
        gradient = np.zeros((count, network.dimension), self.layer.rows.dtype)
        moment, residual_moment = np.zeros((2, network.dimension))
        second = np.zeros(network.width)
        power, products, rounding = 0.0, np.zeros_like(self.excess), 0.0
        for block in self.samples.blocks(purpose, network.step_samples):
            labels = block.labels
            if linear is not None:
                labels = labels - offset - block.inputs @ linear
            moment += labels @ block.inputs
            if not full:
                continue
            residuals = np.empty_like(labels)
            for rows in self._hidden_rows(len(labels), count):
                residuals[rows] = self._add_gradient(
                    gradient, block.inputs[rows], labels[rows], silent, second
                )
            if block.start == 0 and network.precision == "single":
                rounding = self._gradient_rounding(gradient, block.inputs, labels, silent)
            residual_moment += residuals @ block.inputs
            power, products = self._add_excess(block, residuals, power, products)
        # Without residuals there is no noise, and no direction with more of it.
        excess = products / power if power else np.eye(network.directions)
        residual_moment = residual_moment if full else moment
        return Batch(gradient, moment, residual_moment, second, excess, rounding)

    def _add_gradient(
        self, gradient: Array, inputs: Array, labels: Array, silent: bool, second: Array
    ) -> Array:
        """Add the gradients of a block of samples; return minus the loss's slopes."""
        network, count = self.network, len(gradient)
        hidden = inputs @ self.layer.rows[:count].T
        if self.layer.biases.any():
            hidden += self.layer.biases[:count]
        readout = self.layer.readout[:count] / network.width
        residuals = np.empty_like(labels)
        for part in slices(len(hidden), count):
            values, slopes = self._values_and_slopes(hidden[part], silent)
            outputs = np.zeros(len(slopes)) if silent else values @ readout
            residuals[part] = self._residuals(labels[part], outputs)
            if network.readout_step_size:
                second += residuals[part] @ values
            np.multiply(slopes, residuals[part, None], out=hidden[part], casting="same_kind")
        # In groups of neurons, so that no third array of the size of the weights is needed.
        size = max(1, GROUP_ENTRIES // inputs.shape[1])
        for start in range(0, count, size):
            gradient[start : start + size] += hidden[:, start : start + size].T @ inputs
        return residuals

    def _values_and_slopes(self, hidden: Array, silent: bool) -> tuple[Array, Array]:
        """Student and derivative; the first is not needed of a network without output."""
        student, derivative = self.network.student, self.network.student_derivative
        assert derivative is not None
        if not silent and getattr(derivative, "__self__", None) is student:
            # Of one function with slopes, both come in one turn.
            values, slopes = student.values_and_slopes(hidden)  # type: ignore[attr-defined]
            return (
                self._finite(lambda _: values, "student", hidden),
                self._finite(lambda _: slopes, "student_derivative", hidden),
            )
        values = hidden if silent else self._finite(student, "student", hidden)
        return values, self._finite(derivative, "student_derivative", hidden)

    def _residuals(self, labels: Array, outputs: Array) -> Array:
        if self.network.loss_derivative is None:
            return labels - outputs
        found = np.asarray(self.network.loss_derivative(labels, outputs), dtype=float)
        if found.shape not in (labels.shape, ()) or not np.isfinite(found).all():
            raise ParameterError(
                "loss_derivative must return a finite number for each sample, got "
                f"{found.dtype} of shape {found.shape}"
            )
        return -np.broadcast_to(found, labels.shape)

    def _add_excess(
        self, block: SampleBlock, residuals: Array, power: float, products: Array
    ) -> tuple[float, Array]:
        squares = residuals**2
        seen = block.inputs @ self.layer.teachers.T
        return power + float(squares.sum()), products + (seen * squares[:, None]).T @ seen

    def _gradient_rounding(
        self, gradient: Array, inputs: Array, labels: Array, silent: bool
    ) -> float:
        """Relative distance of one block's gradient from that of double precision."""
        exact = np.zeros(gradient.shape)
        rows = self.layer.rows
        self.layer.rows = rows.astype(np.float64)
        try:
            for part in self._hidden_rows(len(labels), len(gradient)):
                self._add_gradient(
                    exact, inputs[part].astype(np.float64), labels[part], silent,
                    np.zeros(self.network.width),
                )  # fmt: skip
        finally:
            self.layer.rows = rows
        norm = float(np.linalg.norm(exact))
        return float(np.linalg.norm(gradient - exact)) / norm if norm else 0.0

    def _finite(self, function: Function, name: str, hidden: Array) -> Array:
        try:
            return finite_values(function, name, hidden)
        except ParameterError as error:
            if not self.steps:
                raise
            raise ParameterError(
                f"{error}\n  the weights may have grown too far in step {self.steps}; "
                "use a smaller step_size"
            ) from None

    def linear_part(self, purpose: int = STEP) -> tuple[float, Array]:
        """Return the mean of a step's labels, and of labels times inputs, of the batch."""
        count = self.network.step_samples
        total, moment = 0.0, np.zeros(self.network.dimension)
        for block in self.samples.blocks(purpose, count):
            total += float(block.labels.sum())
            moment += block.labels @ block.inputs
        return total / count, moment / count

    def _hidden_rows(self, count: int, width: int) -> Iterator[slice]:
        size = max(FEWEST_ROWS, HIDDEN_ENTRIES // width)
        return (slice(start, start + size) for start in range(0, count, size))


def check_draws(name: str, samples: int, dimension: int) -> None:
    """Refuse numbers of samples that would take weeks to draw."""
    if samples * dimension > MOST_DRAWS:
        raise ParameterError(
            f"{name} must be at most {MOST_DRAWS // dimension} at dimension {dimension}; more "
            "would take weeks"
        )


def _not_a_readout(given: object) -> ParameterError:
    return ParameterError(
        "readout must be 'gaussian', 'signs' or finite values that are not all 0, such as "
        f"[0.5, 1, 2]; got {given!r}"
    )
