r"""A network that takes giant steps, and how it is trained; see :mod:`.giant_step_network`."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np

from ..errors import ParameterError
from .arguments import nonnegative_number, positive_number, real_number, whole_number
from .sample_stream import Function, finite_function

__all__ = ["PARTS", "GiantStepsSetup"]

PARTS = ("weights", "updates", "shared")
"""What is measured: rows, rows minus their start, and what updates of equal neurons share."""

HIDDEN_ENTRIES = 2**18
"""Entries of a block of hidden units, 2 MB: temporaries of an activation stay in the cache."""

FEWEST_ROWS = 256
"""Rows of a block of hidden units at least: fewer slow down the product that adds gradients."""

FLOOR_BLOCKS = 16
"""Sets of r directions outside the target's coordinates whose singular values are measured."""

MOST_DRAWS = 10**14
"""Random numbers for one batch; more would take weeks."""


@dataclass(frozen=True, slots=True)
class GiantStepsSetup:
    """A network, its target, and how it is trained.

    Parameters
    ----------
    student, student_derivative : callable
        σ and σ'; take an array, return values of the same shape.
    target : callable
        Takes an array of shape (n, r), returns n values.
    variables : int
        Number r of coordinates that the target depends on; at most half of `dimension`, so that
        there is room to measure the noise.
    dimension, samples : int
        d, and n for each step.
    width : int
        Number p of neurons; even if they are paired.
    steps : int
        Number of steps.
    rate : float
        Learning rate divided by p, positive.
    readout : {"gaussian", "signs"} or tuple of float
        Law of the readouts a: standard normal, ±1, or the values given, each for the same number
        of neurons up to one. With pairs each value has a partner of the other sign.
    biases : bool
        Draw standard normal biases; without, all are 0.
    paired : bool
        Give each neuron a partner with the same weights and bias and the opposite readout, so that
        the output is 0 before the first step.
    replicas : int
        Least number of neurons (of pairs, if paired) with the same readout and bias; two or more
        make the part "shared" measurable for readouts of any law.
    preprocess : bool
        Take mean and linear part, as estimated on the batch, off its labels.
    noise_variance : float
        Variance of the label noise.
    ridge_samples : int
        Samples of the final ridge regression; 0: none.
    ridge : float, optional
        Penalty λ > 0. By default a fifth of the samples is held out, and λ is the one of 15 values
        with the smallest error there, from 10⁻⁴ to 10³ times the mean diagonal entry of the
        centred Gram matrix of the features.
    test_samples : int
        Fresh samples for the test error.

    Raises
    ------
    ParameterError
        If an argument is outside its range; the message names it.
    """

    student: Function
    student_derivative: Function
    target: Function
    variables: int
    dimension: int
    samples: int
    width: int
    steps: int
    rate: float
    readout: str | tuple[float, ...] = "gaussian"
    biases: bool = False
    paired: bool = True
    replicas: int = 1
    preprocess: bool = False
    noise_variance: float = 0.0
    ridge_samples: int = 0
    ridge: float | None = None
    test_samples: int = 10_000

    def __post_init__(self) -> None:
        for name in ("student", "student_derivative", "target"):
            finite_function(name, getattr(self, name))
        for name, minimum in (
            ("variables", 1), ("dimension", 2), ("samples", 1), ("width", 1), ("steps", 1),
            ("replicas", 1), ("ridge_samples", 0), ("test_samples", 1),
        ):  # fmt: skip
            object.__setattr__(self, name, whole_number(name, getattr(self, name), minimum))
        if 2 * self.variables > self.dimension:
            raise ParameterError(
                f"dimension must be at least {2 * self.variables}, twice the number of coordinates "
                f"of the target, got {self.dimension}\n"
                "  the noise is measured in directions on which the target does not depend"
            )
        for name in ("samples", "ridge_samples", "test_samples"):
            if getattr(self, name) * self.dimension > MOST_DRAWS:
                raise ParameterError(
                    f"{name} must be at most {MOST_DRAWS // self.dimension} at dimension "
                    f"{self.dimension}; more would take weeks"
                )
        object.__setattr__(self, "rate", positive_number("rate", self.rate))
        noise = nonnegative_number("noise_variance", self.noise_variance)
        object.__setattr__(self, "noise_variance", noise)
        if self.ridge is not None:
            object.__setattr__(self, "ridge", positive_number("ridge", self.ridge))
        elif 0 < self.ridge_samples < 10:
            raise ParameterError(
                f"ridge_samples={self.ridge_samples} are too few to hold out a fifth\n"
                "  give a ridge, or ridge_samples >= 10"
            )
        object.__setattr__(self, "readout", _checked_readout(self.readout))
        if self.paired and self.width % 2:
            raise ParameterError(f"width must be even, neurons come in pairs; got {self.width}")
        if self.replicas > self.seats:
            raise ParameterError(
                f"replicas must be at most the number {self.seats} of "
                f"{'pairs' if self.paired else 'neurons'}, got {self.replicas}"
            )

    @property
    def seats(self) -> int:
        """Number of independently drawn rows: of pairs, or of neurons."""
        return self.width // 2 if self.paired else self.width

    @property
    def floor_blocks(self) -> int:
        """Sets of r directions that measure the noise."""
        return min(FLOOR_BLOCKS, self.dimension // self.variables - 1)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arrays that one network is described by."""
        times, r = self.steps + 1, self.variables
        return {
            "readout": (self.width,),
            "biases": (self.width,),
            "overlaps": (times, self.width, r),
            "squared_norms": (times, self.width),
            "grams": (times, len(PARTS), 1 + self.floor_blocks, r, r),
            "floors": (times, len(PARTS)),
            "excess": (times, r, r),
            "errors": (2,),
        }

    @property
    def drawn_samples_of_a_step(self) -> int:
        """Samples drawn in a step, those drawn again counted again."""
        return self.samples * (2 if self.preprocess else 1)

    @property
    def drawn_samples(self) -> int:
        """Samples drawn in a run."""
        fitted = self.ridge_samples + self.test_samples if self.ridge_samples else 0
        return self.steps * self.drawn_samples_of_a_step + fitted

    @property
    def bytes_needed(self) -> int:
        """Memory of a run, in bytes, without what the functions take for themselves."""
        hidden = max(HIDDEN_ENTRIES, FEWEST_ROWS * self.width)
        arrays = sum(math.prod(shape) for shape in self.shapes.values())
        ridge = 2 * self.width**2 if self.ridge_samples else 0
        entries = 2 * self.width * self.dimension + 3 * hidden + 2 * 2**20 + arrays + ridge
        return 8 * entries


def _checked_readout(readout: object) -> str | tuple[float, ...]:
    if isinstance(readout, str):
        if readout in ("gaussian", "signs"):
            return readout
    elif isinstance(readout, (tuple, list, np.ndarray)) and len(readout):
        values = tuple(real_number("readout", value) for value in readout)
        if all(map(math.isfinite, values)) and any(values):
            return values
    raise ParameterError(
        "readout must be 'gaussian', 'signs' or finite values that are not all 0, such as "
        f"[0.5, 1, 2]; got {readout!r}"
    )


def memory_of_machine() -> int:
    """Bytes of memory of this machine, or a large number where that is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**62


def check_memory(setup: GiantStepsSetup, workers: int = 1) -> None:
    """Refuse networks that do not fit into the memory of this machine, so many at a time."""
    needed, there = workers * setup.bytes_needed, memory_of_machine()
    if needed > there:
        what = f"width={setup.width} and dimension={setup.dimension}"
        raise ParameterError(
            f"{what} need {needed / 1e9:.3g} GB of memory"
            f"{f' with {workers} workers' if workers > 1 else ''}, this machine has "
            f"{there / 1e9:.3g} GB\n  use a smaller width or dimension"
            f"{', or fewer workers' if workers > 1 else ''}"
        )
