"""Networks that decide on conjectures: how they are made, and when a direction is seen.

The rules are stated in :mod:`.conjectures`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...errors import ParameterError
from ...numeric.arguments import whole_number
from ...numeric.networks.network import Network
from ...numeric.networks.readout import RidgeReadout
from ...symbolic.activations import activation
from ...symbolic.subspaces import Subspace
from ...symbolic.targets import Target
from ..hermite_gradients.network_functions import network_functions
from .conjecture_outcomes import Figure, Outcome
from .population_dynamics import PopulationStudent, population_overlaps
from .trained_networks import GiantStepsResult, take_giant_steps

Array = NDArray[np.float64]

STUDENT = PopulationStudent.SHIFTED_SINE
READOUTS = 8
REPLICAS = 4
RATE = 2.0
LEVEL = 1e-3
VISIBLE = 0.01
CLEAR = 3.0


@dataclass(frozen=True)
class Plan:
    """Sizes and seeds of a run; the fields are the arguments of `check_conjecture_1`."""

    dimension: int
    steps: int
    networks: int
    samples_per_dimension: int
    seed: int

    def __post_init__(self) -> None:
        for name, least in (
            ("dimension", 40), ("steps", 1), ("networks", 2), ("samples_per_dimension", 1),
            ("seed", 0),
        ):  # fmt: skip
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least))
        if self.dimension % 2:
            raise ParameterError(
                f"dimension must be even, the smaller size is half of it; got {self.dimension}"
            )

    @property
    def sizes(self) -> tuple[int, int]:
        """The two input dimensions."""
        return self.dimension // 2, self.dimension

    @property
    def description(self) -> str:
        """The sizes in words."""
        return (
            f"{self.steps} steps of {self.samples_per_dimension} d samples, d = {self.sizes[0]} "
            f"and {self.sizes[1]}, {self.networks} networks each"
        )

    def entropy(self, *key: object) -> int:
        """A seed that depends on nothing but the seed of the run and the key."""
        text = repr(key).encode()
        state = np.random.SeedSequence([self.seed, zlib.crc32(text), len(text)])
        return int(state.generate_state(1, np.uint64)[0])

    def again(self) -> Plan:
        """The plan of the second run of a target."""
        return replace(self, networks=2 * self.networks, seed=self.seed + 2**32)


# ------------------------------------------------------------------ what is seen


def axes_within(subspace: Subspace, gram: Array) -> list[tuple[Array, float]]:
    """Return the orthonormal axes of a quadratic form within a subspace, with its values."""
    if subspace.is_zero:
        return []
    basis = np.linalg.qr(np.array(subspace.numeric()).T)[0]
    values, vectors = np.linalg.eigh(basis.T @ gram @ basis)
    return [
        (basis @ vector, max(float(value), 0.0))
        for value, vector in zip(values[::-1], vectors.T[::-1], strict=True)
    ]


def direction_figure(
    kind: str, step: int, axis: Array, predicted: float, grams: Sequence[Array]
) -> Figure:
    """Return what was seen along an axis, by the rules of the module.

    Parameters
    ----------
    kind : {"inside", "outside"}
    step : int
    axis : ndarray, shape (r,)
    predicted : float
        The mean squared overlap to be seen inside; 0 outside.
    grams : two ndarrays, shape (networks, r, r)
        Mean products of updates at the two sizes.
    """
    half, full = (np.einsum("i,sij,j->s", axis, gram, axis) for gram in grams)
    signal, resolution = extrapolated(half, full)
    seen = signal > resolution
    if kind == "inside":
        outcome = Outcome.AGREES if seen else Outcome.DISAGREES
        if not predicted > CLEAR * resolution:
            outcome = Outcome.UNDECIDED
    else:
        outcome = Outcome.AGREES if resolution <= VISIBLE else Outcome.UNDECIDED
        if seen:
            outcome = Outcome.DISAGREES
    # A sign of its own for each axis means nothing.
    sign = 1 if axis[np.argmax(abs(axis))] > 0 else -1
    where = f"step {step}, ({', '.join(f'{sign * v + 0.0:.3g}' for v in axis)})"
    return Figure(kind, where, predicted, signal, resolution, outcome)


def extrapolated(half: Array, full: Array) -> tuple[float, float]:
    """Return twice the mean at d less that at d/2, and how far that can be trusted.

    Parameters
    ----------
    half, full : ndarray
        One value for each network, at least two.
    """
    parts = (full.var(ddof=1) * 4 / len(full), half.var(ddof=1) / len(half))
    variance = float(sum(parts))
    moved = float(full.mean() - half.mean())
    value = float(full.mean()) + moved
    # Where 1/d is not all that depends on d, the rest may be as large as what was taken off.
    if variance == 0:
        return value, abs(moved)
    # Degrees of freedom after Welch and Satterthwaite.
    freedom = variance**2 / (parts[0] ** 2 / (len(full) - 1) + parts[1] ** 2 / (len(half) - 1))
    return value, float(-special.stdtrit(freedom, LEVEL)) * math.sqrt(variance) + abs(moved)


# ------------------------------------------------------------------ networks


def trained_on_readouts(
    f: Target, plan: Plan, dimension: int, readouts: Array, **options: Any
) -> GiantStepsResult:
    """Train networks with given positive readouts and their negatives, `REPLICAS` pairs each."""
    return trained(
        f, plan, dimension, width=2 * REPLICAS * len(readouts), replicas=REPLICAS,
        readout=tuple(readouts.tolist()), **options,
    )  # fmt: skip


def expected_grams(f: Target, plan: Plan, readouts: Array, rate: float = RATE) -> list[Array]:
    """Return mean products of overlaps of such networks on the population loss, for each step."""
    paired = np.repeat(readouts, 2 * REPLICAS)
    paired[1::2] *= -1
    overlaps = population_overlaps(
        f, plan.steps, readouts=paired, step_size=rate / _norm(f), student=STUDENT
    )
    return [u.T @ u / len(u) for u in overlaps]


def _norm(f: Target) -> float:
    return math.sqrt(float(f.norm_squared))


def trained(
    f: Target, plan: Plan, dimension: int, *, student: str = STUDENT.text, rate: float = RATE,
    ridge: RidgeReadout | None = None, **options: Any,
) -> GiantStepsResult:  # fmt: skip
    """Train the networks of one size, in pairs; further options are those of `Network`."""
    functions = network_functions(activation(student), f)
    network = Network(
        student=functions.student, student_derivative=functions.student_derivative,
        teacher=functions.target, directions=f.dimension, dimension=dimension, paired=True,
        steps=plan.steps, step_size=rate / _norm(f),
        step_samples=plan.samples_per_dimension * dimension, **options,
    )  # fmt: skip
    entropy = plan.entropy(str(f), dimension)
    found = take_giant_steps(network, ridge, seeds=plan.networks, seed=entropy, progress=False)
    if found.interrupted:
        raise KeyboardInterrupt
    return found
