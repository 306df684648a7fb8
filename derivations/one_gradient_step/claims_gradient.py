"""Claims: the parts of the first gradient, and its population form.

Seeds are fixed; every configuration that was run is reported. No finite-size deviation is guessed:
squared norms are averages of n or d independent terms and deviate by order 1/d, so two sizes are
extrapolated to d → ∞.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ...numeric.networks.gradient import GradientParts
from ...numeric.networks.network import Network, Training
from ...numeric.networks.run import simulate
from ...numeric.pair_gradients import pair_averages
from ...symbolic.activations import activation
from ..claims import Finding, Status, declare_claim, evidence
from ..comparison import Comparison, compare, finding
from ..identities import equal, identities_hold
from .extrapolation import Sizes, extrapolated
from .model import OneGradientStep
from .moments import exact_moments
from .pair_kernels import c as inner_product
from .pair_kernels import p, pair_kernel, q
from .population_gradient import QUADRATURE, population_gradient
from .simulated import network_functions, one_step_network
from .symbols import (
    aligned_square,
    alpha0,
    label_square,
    linear,
    noise,
    orthogonal_square,
    residual,
    spike_square,
    step_size,
    teacher_linear,
    teacher_residual,
)

_BA = "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445"

_LABELS, _SLOPES = sp.symbols("Y V", positive=True)
_PARTS = {
    "A": sp.sqrt(spike_square() / step_size**2).subs(label_square(), _LABELS),
    "B": _SLOPES * _LABELS / alpha0,
    "C": sp.sqrt(linear**2 * (linear**2 * (1 + 1 / alpha0) + residual / alpha0)),
}
r"""Limits of :math:`\sqrt N |A|`, :math:`N |B|_F^2` and :math:`N |C|`."""

declare_claim(
    "ba-gradient",
    title="The first gradient is a spike of rank one up to terms that are smaller in norm",
    statement=(
        r"For centred student and teacher, $\sigma' = \mu_1 + \sigma'_\perp$ and $n = \alpha_0 d$ "
        r"samples the gradient of $\frac{1}{2n}\sum(f - y)^2$, its sign turned, is $A + B + C$ "
        r"with $A$ and $C$ of rank one; with $Y = \mathbb{E}\,y^2$, which holds the label noise, "
        r"and $V = \mathbb{E}\,\sigma_\perp'^2$, $$\sqrt N\,|A| \to «A»,\quad N\,|B|_F^2 \to "
        r"«B»,\quad N\,|C| \to «C»,$$ while $N\,|B|$ in operator norm is bounded up to logarithms. "
        r"The gradient of $\frac1n\sum(f - y)^2$ is twice as long."
    ),
    formulas=_PARTS,
    source=f"{_BA}, section 3, that $A$ dominates; the limits are derived here",
    status=Status.DERIVED_HERE,
)

PAIRS = (("erf", "erf"), ("tanh", "relu"), ("softplus", "tanh"), ("relu", "sin"))


@evidence("ba-gradient", "exact", "limits of A, B, C for four pairs")
def gradient_limits() -> Finding:
    """Limits of A, B and C in the moments of student and teacher, which are centred."""
    results: dict[str, bool] = {}
    for student, teacher in PAIRS:
        model = OneGradientStep(student, teacher, alpha=2, centre=True)
        parts = model.gradient()
        mine, other = exact_moments(student), exact_moments(teacher)
        rule = {
            linear: mine["linear"],
            residual: mine["residual"],
            teacher_linear: other["linear"],
            teacher_residual: other["residual"],
            _LABELS: other["linear"] ** 2 + other["residual"] + noise,
            _SLOPES: mine["slope_variance"],
        }
        spike, bulk, output = (
            stated.subs(rule) for stated in (_PARTS["A"] ** 2, _PARTS["B"], _PARTS["C"] ** 2)
        )
        name = f"{student} on {teacher}"
        results |= {
            f"{name}: N |A|² = θ1²/η²": equal(parts.spike**2, spike),
            f"{name}: θ1² = θ2² + the part across the teacher": equal(
                spike, ((aligned_square() + orthogonal_square()) / step_size**2).subs(rule)
            ),
            f"{name}: N |B|_F² = E[(σ' - μ1)²] Y/α0": equal(parts.bulk**2, bulk),
            f"{name}: N² |C|² = μ1² (μ1² (1 + 1/α0) + μ2²/α0)": equal(parts.output**2, output),
            f"{name}: with infinitely many samples A is μ1 μ1* along the teacher": equal(
                parts.population_spike[0], mine["linear"] * other["linear"]
            ),
        }
    return identities_hold(results, "limits of the three parts of the gradient")


_APART = 1000
"""Seeds of different cases differ by this, so that their fluctuations are independent."""


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
Array = NDArray[np.float64]


PART_NAMES = ("spike", "bulk", "output", "alignment")


@evidence(
    "ba-gradient", "simulation", "norms of A, B, C in networks, extrapolated; N |B| at two sizes"
)
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
            network = Network(
                student=student, student_derivative=slope, teacher=teacher, dimension=dimension,
                width=width, rows="gaussian", readout="gaussian", scaling="standard",
                step_samples=round(case.alpha * dimension), noise_variance=case.noise_variance,
            )  # fmt: skip
            found = simulate(
                network,
                GradientParts(model.student_moments.linear, [model.teacher_moments.linear]),
                seeds=networks, seed=seed + _APART * index + dimension, progress=False,
            )  # fmt: skip
            parts.append(found)
            rounding = max(rounding, float(found["identity_error"].max()))
            scaled = math.sqrt(width) * found["bulk_operator_norm"]
            growth.setdefault(name, []).append(float(scaled.mean()))
        comparisons += [
            extrapolated(
                f"{quantity} of {name}", theory[quantity], sizes,
                [found[quantity] for found in parts], 1.0,
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


declare_claim(
    "ba-population-gradient",
    title="The population gradient of given weights",
    statement=(
        r"With $k(w) = \mathbb{E}[f_*(x)\,\sigma(w\cdot x)]$ and $K(u, w) = "
        r"\mathbb{E}[\sigma(u\cdot x)\,\sigma(w\cdot x)]$, by Stein's lemma $$\mathbb{E}\,G_{\cdot "
        r"j} = \frac{a_j}{\sqrt N}\Big(\nabla k(w_j) - \frac{1}{\sqrt N}\sum_i a_i \nabla_2 "
        r"K(w_i, w_j)\Big),$$ with the leading term $\mu_1\mu_1^*\beta_*$. For erf on erf both are "
        r"gradients of $\frac2\pi\arcsin\frac{2 u\cdot w}{\sqrt{(1 + 2|u|^2)(1 + 2|w|^2)}}$."
    ),
    source="derived here; the arcsine law is that of Williams, NIPS 9 (1996)",
    status=Status.DERIVED_HERE,
)


@evidence("ba-population-gradient", "quadrature", "closed forms against quadrature")
def population_kernels() -> Finding:
    """The arcsine law, and closed forms of pair gradients against quadrature in two dimensions."""
    u, w = 1 + 2 * p, 1 + 2 * q
    arcsine = 2 / sp.pi * sp.asin(2 * inner_product / sp.sqrt(u * w))
    model = OneGradientStep("erf", "erf", alpha=2)
    erf = activation("erf")
    kernel = pair_kernel(erf, erf)
    law = kernel is not None and equal(kernel, arcsine)
    worst, compared = 0.0, 0
    generator = np.random.default_rng(5)
    weights = generator.standard_normal((7, 5)) * np.array([0.2, 0.4, 0.5, 0.3, 0.6])
    readout = generator.standard_normal(5)
    for student, teacher in (("erf", "erf"), ("sin", "sin"), ("z + z**3/6", "z**2 + z")):
        model = OneGradientStep(student, teacher, alpha=2, centre=True)
        closed = population_gradient(model, weights, readout)
        slow = _by_quadrature(model, weights, readout)
        size = float(np.abs(closed.gradient).max())
        worst = max(worst, float(np.abs(closed.gradient - slow).max()) / size)
        compared += closed.gradient.size if closed.rests_on != QUADRATURE else 0
    return Finding(
        bool(law) and worst < 1e-9 and compared == 3 * weights.size,
        f"{compared} entries agree with quadrature, to {worst:.1e} of the largest; the kernel of "
        "erf is the arcsine law",
        {"largest_difference": worst, "entries": compared, "arcsine_law": bool(law)},
    )


def _by_quadrature(model: OneGradientStep, weights: np.ndarray, readout: np.ndarray) -> np.ndarray:
    """The same gradient without closed forms."""
    student, slope, teacher = network_functions(model)
    width = weights.shape[1]
    squares = np.einsum("ij,ij->j", weights, weights)
    along, own = pair_averages(teacher, slope, np.ones(width), squares, weights[0])
    labels = weights * own
    labels[0] += along
    first, second = pair_averages(
        student, slope, squares[:, None], squares[None, :], weights.T @ weights
    )
    output = weights @ (readout[:, None] * first) + weights * (readout @ second)
    return np.asarray((labels - output / math.sqrt(width)) * readout / math.sqrt(width))


@evidence("ba-population-gradient", "simulation", "sampled gradients of layers, d = 30 and N = 60")
@evidence(
    "ba-population-gradient",
    "simulation",
    "the same with 1.2 million samples",
    slow=True,
    arguments={"samples": 1_200_000, "networks": 4, "seed": 82},
)
def sampled_population(
    samples: int = 20_000, networks: int = 24, seed: int = 81, progress: bool = False
) -> Finding:
    """Sampled gradients of whole layers, erf on erf, d = 30 and N = 60, beside the closed form.

    Of the difference three components are averaged over networks: along what the labels
    contribute, along what the network's output contributes, and along what the labels contribute
    beyond the leading term :math:`\\mu_1\\mu_1^*\\beta_* a^T`.
    """
    model = OneGradientStep("erf", "erf", alpha=samples / 30, beta=2)
    network = one_step_network(model, 30)
    root = math.sqrt(network.width)
    leading = model.student_moments.linear * model.teacher_moments.linear
    rows: list[tuple[float, ...]] = []
    for index in tqdm(range(networks), delay=1, disable=not progress, unit="network"):
        training = Training(network, np.random.SeedSequence(seed, spawn_key=(index,)))
        initial, readout = training.layer.rows.T.copy(), training.layer.readout / root
        training.step()
        sampled = (training.layer.rows.T - initial) / root
        exact = population_gradient(model, initial, readout)
        first = np.zeros_like(sampled)
        first[0] = leading * readout / root
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
