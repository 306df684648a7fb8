r"""Evidence by simulation for the first gradient: its parts, and its population form.

Seeds are fixed; every configuration that was run is reported. No finite-size deviation is guessed:
squared norms are averages of n or d independent terms and deviate by order 1/d, so two sizes are
extrapolated to d → ∞.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ...numeric.gradient_decomposition import measure_gradient_parts
from ...numeric.one_step_network import first_layers
from ..claims import Finding
from ..comparison import Comparison, compare, finding
from .extrapolation import Sizes, extrapolated
from .model import OneGradientStep
from .population_gradient import population_gradient
from .simulated import network_functions, one_step_setup

Array = NDArray[np.float64]

_APART = 1000
"""Seeds of different cases differ by this, so that their fluctuations are independent."""


# ------------------------------------------------------------------ the parts of the gradient


@dataclass(frozen=True)
class PartsCase:
    """A student and a teacher, both centred."""

    student: str
    teacher: str
    alpha: float
    beta: float
    noise_variance: float


PARTS = (
    PartsCase("tanh", "relu", 4.0, 2.0, 0.0),
    PartsCase("erf", "tanh", 2.0, 1.5, 0.25),
)


@dataclass(frozen=True)
class _FirstCoordinate:
    """A teacher as a function of all inputs."""

    teacher: Callable[[Array], Array]

    def __call__(self, inputs: Array) -> Array:
        return self.teacher(inputs[:, 0])


PART_NAMES = ("spike", "bulk", "output", "alignment")


def centred_parts(sizes: Sizes = ((60, 60), (180, 24)), seed: int = 71) -> Finding:
    """Norms of A, B and C, extrapolated, against their limits; N |B| in operator norm hardly grows.

    Parameters
    ----------
    sizes : pair of (int, int)
        Dimension and number of networks, ascending.
    seed : int
    """
    comparisons: list[Comparison] = []
    growth: dict[str, list[float]] = {}
    rounding = 0.0
    for index, case in enumerate(PARTS):
        model = OneGradientStep(
            case.student, case.teacher, alpha=case.alpha, beta=case.beta,
            noise_variance=case.noise_variance, centre=True,
        )  # fmt: skip
        theory = model.gradient().values(
            alpha=model.step_samples, noise_variance=case.noise_variance
        )
        student, slope, teacher = network_functions(model)
        name = f"{case.student} on {case.teacher}"
        parts = []
        for dimension, networks in sizes:
            width = round(case.beta * dimension)
            found = measure_gradient_parts(
                student, slope, _FirstCoordinate(teacher),
                mean_derivative=model.student_moments.linear,
                mean_slope=[model.teacher_moments.linear], dimension=dimension,
                samples=round(case.alpha * dimension), width=width,
                noise_variance=case.noise_variance, seeds=networks,
                seed=seed + _APART * index + dimension, progress=False,
            )  # fmt: skip
            parts.append(found)
            rounding = max(rounding, float(found.identity_error.max()))
            scaled = math.sqrt(width) * found.bulk_operator_norm
            growth.setdefault(name, []).append(float(scaled.mean()))
        comparisons += [
            extrapolated(
                f"{quantity} of {name}", theory[quantity], sizes,
                [getattr(found, quantity) for found in parts], 1.0,
            )
            for quantity in PART_NAMES
        ]  # fmt: skip
    result = finding(comparisons, "extrapolated norms and alignments")
    # Of order one up to logarithms; sqrt(N) |B| of order one would multiply it by sqrt(2).
    largest = max(values[-1] / values[0] for values in growth.values())
    size = math.sqrt(sizes[-1][0] / sizes[0][0])
    return Finding(
        result.passed and largest < (1 + size) / 2 and rounding < 1e-12,
        f"{result.summary}; A + B + C is the gradient to {rounding:.0e}; N |B| in operator "
        f"norm grows by a factor of {largest:.3f} at most "
        f"where sqrt(N) grows by {size:.3f}",
        {**result.details, "scaled_operator_norm_of_B": growth},
    )


# ------------------------------------------------------------------ the population gradient


def sampled_population(
    samples: int = 20_000, networks: int = 24, seed: int = 81, progress: bool = False
) -> Finding:
    """Sampled gradients of whole layers, erf on erf, d = 30 and N = 60, beside the closed form.

    Of the difference three components are averaged over networks: along what the labels
    contribute, along what the network's output contributes, and along what the labels contribute
    beyond the leading term :math:`\\mu_1\\mu_1^*\\beta_* a^T`.
    """
    model = OneGradientStep("erf", "erf", alpha=samples / 30, beta=2)
    setup = one_step_setup(model, 30)
    leading = model.student_moments.linear * model.teacher_moments.linear
    rows: list[tuple[float, ...]] = []
    for index in tqdm(range(networks), delay=1, disable=not progress, unit="network"):
        layers = first_layers(setup, np.random.SeedSequence(seed, spawn_key=(index,)))
        root = math.sqrt(setup.width)
        sampled = (layers.weights[1] - layers.weights[0]) / root
        exact = population_gradient(model, layers.weights[0], layers.readout, None)
        first = np.zeros_like(sampled)
        first[0] = leading * layers.readout / root
        error = sampled - exact.gradient
        beyond = exact.labels - first
        rows.append(
            (
                *(
                    float((error * part).sum() / (part * part).sum())
                    for part in (exact.labels, exact.output, beyond)
                ),
                float(np.linalg.norm(error) / np.linalg.norm(exact.gradient)),
            )
        )
    columns = np.array(rows).T
    names = ("labels", "output", "labels beyond the leading term")
    comparisons = [
        compare(f"missing share along {name}", 0.0, values)
        for name, values in zip(names, columns[:3], strict=True)
    ]
    result = finding(comparisons, "components")
    relative = float(columns[3].mean())
    return Finding(
        result.passed,
        f"{result.summary}; relative distance {relative:.4f} with {samples} samples",
        {**result.details, "relative_distance": relative, "samples": samples},
    )


def sampled_population_long(progress: bool = False) -> Finding:
    """The same with 1.2 million samples for each of four networks."""
    return sampled_population(1_200_000, 4, 82, progress)
