r"""Evidence by simulation: gradients and networks of finite size.

A simulated mean is compared with theory to 4 standard errors plus, where theory is a limit, a
stated bias b/d. The constants b were measured with other seeds than those used here and are stated
with a margin of some 50 %. Seeds are fixed, so every number is reproducible; every configuration
that was run is reported, also where the method fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...numeric.gradient_decomposition import measure_gradient_parts
from ...numeric.gradient_sampling import sample_gradient
from ...numeric.preprocessed_step import (
    PreprocessedResult,
    PreprocessedSetup,
    train_preprocessed,
)
from ...symbolic.activations import activation
from ...symbolic.activations import z as variable
from ...symbolic.gaussian import expect
from ...symbolic.hermite import hermite_coefficient
from ...symbolic.stein import DIMENSION, GradientExpansion, gradient_expansion
from ...symbolic.targets import target
from ..claims import Finding
from ..comparison import Comparison, compare, finding
from ..spiked_random_features.mapping import noise
from .first_step import first_step
from .network_functions import network_functions
from .sample_complexity import SampleComplexity, sample_complexity

Array = NDArray[np.float64]

_APART = 1000
"""Seeds of different cases differ by this, so that their fluctuations are independent."""

# ------------------------------------------------------------------ the expansion

STUDENTS = ("relu", "erf", "z + He(2, z)/2 + He(3, z)/6")
GRADIENT_TARGETS = ("x1 + x1*x2 + He(3, x2)/2", "1 + x1*x2*x3 + He(2, x3) - x2")


def sampled_gradients(
    samples: int = 200_000, dimension: int = 8, neurons: int = 3, seed: int = 41
) -> Finding:
    """Gradients of actual neurons against the expansion, component by component.

    Rows are random and partly outside the relevant space, of length 1 and 0.7; labels are noisy.
    """
    comparisons: list[Comparison] = []
    squares: list[float] = []
    generator = np.random.default_rng(seed)
    for index, (student, text) in enumerate((s, t) for s in STUDENTS for t in GRADIENT_TARGETS):
        sigma, f = activation(student), target(text)
        functions = network_functions(sigma, f)
        for norm in (sp.S.One, sp.Rational(7, 10)):
            rows = generator.standard_normal((neurons, dimension))
            rows *= float(norm) / np.linalg.norm(rows, axis=1)[:, None]
            expansion = gradient_expansion(sigma, f, norm=norm)
            found = sample_gradient(
                functions.student_derivative, functions.target, rows, variables=f.dimension,
                samples=samples, noise_variance=0.5, progress=False,
                seed=np.random.SeedSequence(seed, spawn_key=(index, norm.p)),
            )  # fmt: skip
            for j, row in enumerate(rows):
                exact = population_gradient(expansion, row)
                scores = (found.mean[j] - exact) / found.standard_error[j]
                squares += (scores**2).tolist()
                worst = int(np.argmax(abs(scores)))
                comparisons.append(
                    Comparison(
                        f"{student} on {text}, |w| = {norm}, neuron {j + 1}, component {worst + 1}",
                        float(exact[worst]),
                        float(found.mean[j, worst]),
                        float(found.standard_error[j, worst]),
                    )
                )
    result = finding(comparisons, "worst components of gradients")
    mean_square = float(np.mean(squares))
    return Finding(
        result.passed and 0.75 < mean_square < 1.25,
        f"{result.summary}; mean squared deviation of all {len(squares)} components in standard "
        f"errors {mean_square:.3f}",
        {**result.details, "mean_squared_deviation": mean_square},
    )


def population_gradient(expansion: GradientExpansion, row: Array) -> Array:
    """All d components of the expansion at one row; the target's coordinates are the first r."""
    own = [float(entry) for entry in row[: len(expansion.weights)]]
    total = float(expansion.along(own)) * row
    total[: len(own)] += np.array([float(entry) for entry in expansion.inside(own)])
    return total


# ------------------------------------------------------------------ spike and bulk


@dataclass(frozen=True)
class PartsCase:
    """A student and a target whose first gradient is split, with stated biases times d."""

    student: str
    target: str
    alpha: float
    beta: float
    noise_variance: float
    biases: tuple[float, float, float, float]


PARTS = (
    PartsCase("erf", "tanh(x1)", 2.0, 1.5, 0.25, (1.0, 0.8, 2.0, 2.0)),
    PartsCase("tanh", "relu(x1)", 4.0, 2.0, 0.0, (1.0, 0.8, 1.0, 1.0)),
    PartsCase("gelu", "x1 + He(2, x2) + x1*x2", 3.0, 1.0, 0.5, (1.5, 3.5, 1.0, 2.0)),
    PartsCase("relu", "1 + x1 + x2*x3", 2.0, 2.0, 0.0, (1.0, 1.0, 1.0, 1.5)),
)


@dataclass(frozen=True)
class _Shifted:
    """A student without its mean: the limit of C is that of such a one."""

    student: Callable[[Array], Array]
    mean: float

    def __call__(self, values: Array) -> Array:
        return self.student(values) - self.mean


PART_NAMES = ("spike", "bulk", "output", "alignment")


def gradient_parts(
    sizes: Sequence[tuple[int, int]] = ((100, 30), (200, 12)), seed: int = 51
) -> Finding:
    """Norms of A, B, C and the alignment of A against their limits; |B| in operator norm shrinks.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Dimension and number of networks.
    seed : int
    """
    comparisons: list[Comparison] = []
    shrinking: dict[str, list[float]] = {}
    for index, case in enumerate(PARTS):
        sigma, f = activation(case.student), target(case.target)
        limits = first_step(sigma, f)
        theory = limits.values(alpha=case.alpha, noise_variance=case.noise_variance)
        functions = network_functions(sigma, f)
        mean = float(hermite_coefficient(sigma, 0).evalf(17))
        name = f"{case.student} on {case.target}"
        centred = _Shifted(functions.student, mean)
        for dimension, networks in sizes:
            found = measure_gradient_parts(
                centred,
                functions.student_derivative, functions.target,
                mean_derivative=float(limits.mean_derivative.evalf(17)),
                mean_slope=[float(c.evalf(17)) for c in limits.linear_part],
                dimension=dimension, samples=round(case.alpha * dimension),
                width=round(case.beta * dimension), noise_variance=case.noise_variance,
                seeds=networks, seed=seed + _APART * index, progress=False,
            )  # fmt: skip
            for quantity, bias in zip(PART_NAMES, case.biases, strict=True):
                comparisons.append(
                    compare(
                        f"{quantity} of {name}, d = {dimension}", theory[quantity],
                        getattr(found, quantity), bias / dimension,
                    )
                )  # fmt: skip
            shrinking.setdefault(name, []).append(
                float((found.bulk_operator_norm / found.spike).mean())
            )
    result = finding(comparisons, "norms and alignments")
    smaller = all(values[-1] < values[0] for values in shrinking.values())
    worst = max(values[-1] for values in shrinking.values())
    return Finding(
        result.passed and smaller,
        f"{result.summary}; |B|/|A| in operator norm falls with d, at most {worst:.2f} at the "
        "largest",
        {**result.details, "bulk_over_spike": shrinking},
    )


# ------------------------------------------------------------------ the preprocessed gradient


@dataclass(frozen=True)
class ShareCase:
    """A student and a target whose preprocessed gradient is measured."""

    student: str
    target: str
    noise_variance: float


SHARES = (
    ShareCase("relu", "x1 + x1*x2 + He(2, x2)", 0.0),
    ShareCase("relu", "x1*x2 + He(2, x2) + He(3, x1)/3", 1.0),
    ShareCase("gelu", "2*x1 + x1*x2", 0.0),
    ShareCase("3*z + He(2, z)", "3*x1 + He(2, x1) + He(2, x2)", 0.0),
)
SHARE_BIAS = 1.5
"""Stated bias of a share, times the dimension."""


def half_share_quick(seed: int = 61) -> Finding:
    """The two relu cases, at the n with S = V alone."""
    return half_share(SHARES[:2], (1.0,), networks=8, width=100, seed=seed)


def half_share(
    cases: Sequence[ShareCase] = SHARES, ratios: Sequence[float] = (0.25, 1.0, 3.0),
    dimension: int = 100, networks: int = 10, width: int = 200, seed: int = 62,
) -> Finding:  # fmt: skip
    r"""Share inside the relevant space at multiples of the n with S = V, half at that n itself.

    Where the variance of σ' is not its squared mean, V with :math:`\mathbb{E} y^2` in the place of
    both brackets is another number; the last case has to exclude it.
    """
    comparisons: list[Comparison] = []
    variants: dict[str, float] = {}
    for index, case in enumerate(cases):
        ledger = sample_complexity(case.student, case.target)
        half = _half(ledger, dimension, case.noise_variance)
        for ratio in ratios:
            count = round(ratio * half)
            theory = ledger.relevant_share(dimension, count, case.noise_variance)
            found = _train(
                case.student, case.target, dimension, count, width, networks,
                seed + _APART * index,
                noise_variance=case.noise_variance, ridge=1.0, n_test=1,
            )  # fmt: skip
            name = (
                f"{case.student} on {case.target}, noise {case.noise_variance:g}, "
                f"n = {ratio:g} n_half = {count}"
            )
            comparison = compare(name, theory, found.relevant_share, SHARE_BIAS / dimension)
            comparisons.append(comparison)
            other = _share_of_raw_labels(ledger, dimension, count, case.noise_variance)
            variants[name] = abs(comparison.mean - other) / comparison.tolerance
    result = finding(comparisons, f"shares at d = {dimension}")
    excluded = max(variants.values()) > 1 or cases[-1].student == "relu"
    summary = result.summary
    if cases[-1].student != "relu":
        summary += f"; V by E y² alone misses by up to {max(variants.values()):.1f} tolerances"
    details = {**result.details, "variant_in_tolerances": variants}
    return Finding(result.passed and excluded, summary, details)


def _share_of_raw_labels(
    ledger: SampleComplexity, dimension: int, samples: int, noise_variance: float
) -> float:
    """The share if V were (d/n) E y² Var σ'."""
    slope = ledger.student.derivative
    mean = hermite_coefficient(ledger.student, 1)
    variance = expect(slope**2, variable) - mean**2
    scatter = dimension / samples * float(variance * (ledger.target.norm_squared + noise_variance))
    signal = float(ledger.signal.subs(DIMENSION, dimension))
    return (signal + scatter * ledger.target.dimension / dimension) / (signal + scatter)


def _half(ledger: SampleComplexity, dimension: int, noise_variance: float) -> float:
    return float(ledger.half_samples.subs({DIMENSION: dimension, noise: noise_variance}))


def _train(
    student: str, text: str, dimension: int, samples: int, width: int, seeds: int, seed: int,
    *, noise_variance: float = 0.0, ridge: float | None = None, n_test: int = 5000,
) -> PreprocessedResult:  # fmt: skip
    f = target(text)
    functions = network_functions(activation(student), f)
    setup = PreprocessedSetup(
        functions.student, functions.student_derivative, functions.target, variables=f.dimension,
        dimension=dimension, samples=samples, width=width, noise_variance=noise_variance,
        ridge=ridge,
    )  # fmt: skip
    return train_preprocessed(setup, seeds=seeds, seed=seed, n_test=n_test, progress=False)


# ------------------------------------------------------------------ the whole algorithm

LEARNED = ("x1*x2 + He(2, x2)/2 + He(3, x1)/3", "x1 + x1*x2 + x2*x3 + He(2, x3) + He(3, x2)/3")
FLAT = ("x1*x2*x3", "x2 + He(3, x1)/sqrt(6)")
r"""Targets with H = 0, where the assumption of the algorithm fails: reported, not judged.

No limit for their gain is known. It need not be zero: :math:`\mathbb{E}[y^2x_i^2]` exceeds
:math:`\mathbb{E}y^2` along relevant coordinates, so even the noise of the gradient prefers them.
"""


def algorithm_quick(seed: int = 75) -> Finding:
    """Small networks; see :func:`algorithm`."""
    return algorithm((40,), 6, 200, seed)


def algorithm(
    dimensions: Sequence[int] = (40, 80), networks: int = 6, width: int = 400, seed: int = 76
) -> Finding:
    """Test errors against random features on the same 4 d² samples, with noisy labels.

    Figures of targets with H = 0 stand beside those that decide.
    """
    gains: dict[str, dict[str, float]] = {}
    passed = True
    for index, text in enumerate(LEARNED + FLAT):
        learned = text in LEARNED
        for dimension in dimensions:
            found = _train(
                "relu", text, dimension, 4 * dimension**2, width, networks,
                seed + _APART * index, noise_variance=0.1,
            )  # fmt: skip
            gain = found.random_features_error - found.test_error
            error = float(gain.std(ddof=1) / math.sqrt(networks))
            random = float(found.mean("random_features_error"))
            gains[f"{text}, d = {dimension}"] = {
                "test_error": float(found.mean()),
                "random_features_error": random,
                "linear_error": float(found.mean("linear_error")),
                "relevant_share": float(found.mean("relevant_share")),
                "gain": float(gain.mean()),
                "standard_error": error,
            }
            if learned:
                passed &= bool(gain.mean() > 4 * error and found.mean() < 0.6 * random)
    lines = [
        f"{name}: {v['test_error']:.3f} against {v['random_features_error']:.3f}"
        for name, v in gains.items()
    ]
    return Finding(
        passed,
        "test error against random features, n = 4 d² (targets with H = 0, not judged, last): "
        + "; ".join(lines),
        gains,
    )
