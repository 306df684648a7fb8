r"""Claims: the parts of the first gradient, its population form, and the spike of the first layer.

Seeds are fixed; every configuration that was run is reported. The way from the network to the limit
has four steps, and no finite-size deviation is guessed in any:

1. the squared length of :math:`X^\top y/n` across the teacher's direction has the average
   :math:`Y (d - 1)/n` at every d, which is θ1² − θ2² at :math:`\alpha_0 = n/(d - 1)`;
2. the outlier of the truncation :math:`W_0 + u\,a^\top` is that of the limit at the sample's own
   :math:`|u||a|`, up to order 1/d; at the edge of the bulk up to :math:`d^{-2/3}`;
3. B and C of the gradient move singular value and overlaps by order :math:`d^{-1/2}`, seen in
   paired differences;
4. so values of the full gradient approach the limit.

Steps 2 to 4 are extrapolated to d → ∞ from two sizes, with these powers. What the next order leaves
of a shift by B and C is stated as half of the shift that was measured at the larger size: a power
between 0.3 and 0.66 where the sizes differ by a factor of four. Closer to the threshold than
:math:`|\eta/\eta_c - 1|` = 0.3 small sizes are not asymptotic; there steps 2 to 4 are shown beside
the theory but not judged. A step size with weak label noise has to be told from one without by
the length; its singular value alone cannot decide that at these sizes. Squared norms of the parts
of the gradient are averages of n or d independent terms and deviate by order 1/d; they are
extrapolated in that power.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np
import sympy as sp
import threadpoolctl
from numpy.typing import NDArray
from scipy.linalg import eigh
from tqdm.auto import tqdm

from ...ball_library import require_flint
from ...numeric.networks.gradient import GradientParts
from ...numeric.networks.network import Network, Training
from ...numeric.networks.run import simulate
from ...numeric.pair_gradients import pair_averages
from ...symbolic.expressions.activations import activation
from ...symbolic.systems.random_matrix import MarchenkoPasturAverage
from ...symbolic.systems.rank_one_perturbation import (
    left_resolvent,
    marchenko_pastur_equations,
    outlier_equation,
    perturbed_resolvent,
    rank_one_outlier,
    right_resolvent,
    secular_determinant,
    solve_for_outlier,
    square,
)
from ..certificates.agreement import agreement, proof_of
from ..claims import Finding, Status, declare_claim, evidence
from ..comparison import Comparison, compare, finding
from ..identities import equal, identities_hold
from .model import OneGradientStep
from .moments import exact_moments
from .pair_kernels import c as inner_product, p, pair_kernel, q
from .population_gradient import QUADRATURE, population_gradient
from .reference import reference_cases
from .simulated import network_functions, one_step_network
from .symbols import (
    aligned_square,
    alpha0,
    beta,
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
from .weight_spike import identities, outlier_at

Sizes = tuple[tuple[int, int], tuple[int, int]]
"""Dimension and number of networks, of a smaller and of a larger size."""


def extrapolated(
    quantity: str,
    theory: float,
    sizes: Sizes,
    values: Sequence[NDArray[np.float64]],
    exponent: float,
    bias: float = 0.0,
) -> Comparison:
    r"""Compare with theory what is left without a deviation of order :math:`d^{-x}`.

    Parameters
    ----------
    sizes : pair of (int, int)
        Dimensions and numbers of networks.
    values : two arrays
        Of independent networks, at the two dimensions.
    exponent : float
        x, positive.
    bias : float
        What is stated to be left, absolute.

    Notes
    -----
    With :math:`r = (d_2/d_1)^x` it is :math:`(r m_2 - m_1)/(r - 1)`, in which a deviation
    :math:`c\,d^{-x}` of both means cancels; the standard errors add in squares.

    Examples
    --------
    >>> at = lambda d: 2 + 3 / d + np.array([-1e-3, 1e-3])
    >>> found = extrapolated("mean", 2.0, ((10, 2), (40, 2)), [at(10), at(40)], 1.0)
    >>> round(found.mean, 12), round(found.standard_error, 6)
    (2.0, 0.001374)
    """
    (small, _), (large, _) = sizes
    ratio = (large / small) ** exponent
    means = [float(v.mean()) for v in values]
    errors = [float(v.std(ddof=1)) / math.sqrt(len(v)) for v in values]
    return Comparison(
        f"{quantity}, d = {small} and {large} extrapolated",
        theory,
        (ratio * means[1] - means[0]) / (ratio - 1),
        math.hypot(ratio * errors[1], errors[0]) / (ratio - 1),
        bias,
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


PARTS = (PartsCase("tanh", "relu", 4.0, 2.0, 0.0), PartsCase("erf", "tanh", 2.0, 1.5, 0.25))
Array = NDArray[np.float64]


PART_NAMES = ("spike", "bulk", "output", "alignment")


@evidence(
    "ba-gradient", "simulation", "norms of A, B, C in networks, extrapolated; N |B| at two sizes"
)
def centred_parts(sizes: Sizes = ((60, 60), (180, 24)), seed: int = 71) -> Finding:
    """Norms of A, B and C, extrapolated, against their limits; N |B| hardly grows."""
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
            answer = simulate(
                network,
                GradientParts(model.student_moments.linear, [model.teacher_moments.linear]),
                seeds=networks, seed=seed + _APART * index + dimension, progress=False,
            )  # fmt: skip
            parts.append(answer)
            rounding = max(rounding, float(answer["identity_error"].max()))
            scaled = math.sqrt(width) * answer["bulk_operator_norm"]
            growth.setdefault(name, []).append(float(scaled.mean()))
        comparisons += [
            extrapolated(
                f"{quantity} of {name}", theory[quantity], sizes,
                [answer[quantity] for answer in parts], 1.0,
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


_ARCSINE = 2 / sp.pi * sp.asin(2 * inner_product / sp.sqrt((1 + 2 * p) * (1 + 2 * q)))

declare_claim(
    "ba-population-gradient",
    title="The population gradient of given weights",
    statement=(
        r"With $k(w) = \mathbb{E}[f_*(x)\,\sigma(w\cdot x)]$ and $K(u, w) = "
        r"\mathbb{E}[\sigma(u\cdot x)\,\sigma(w\cdot x)]$, by Stein's lemma $$\mathbb{E}\,G_{\cdot "
        r"j} = \frac{a_j}{\sqrt N}\Big(\nabla k(w_j) - \frac{1}{\sqrt N}\sum_i a_i \nabla_2 "
        r"K(w_i, w_j)\Big),$$ with the leading term $\mu_1\mu_1^*\beta_*$. For erf on erf both are "
        r"gradients of $«law»$, $p = |u|^2$, $q = |w|^2$, $c = u\cdot w$."
    ),
    formulas={"law": _ARCSINE},
    source="derived here; the arcsine law is that of Williams, NIPS 9 (1996)",
    status=Status.DERIVED_HERE,
)


@evidence("ba-population-gradient", "exact", "the kernel of two erf neurons")
def arcsine_law() -> Finding:
    """The kernel that the rules for Gaussian pairs give for erf."""
    erf = activation("erf")
    kernel = pair_kernel(erf, erf)
    holds = kernel is not None and equal(kernel, _ARCSINE)
    return identities_hold({"kernel of erf on erf": holds}, "the arcsine law")


@evidence("ba-population-gradient", "quadrature", "closed forms against quadrature")
def population_kernels() -> Finding:
    """Closed forms of pair gradients against quadrature in two dimensions."""
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
        worst < 1e-9 and compared == 3 * weights.size,
        f"{compared} entries agree with quadrature, to {worst:.1e} of the largest",
        {"largest_difference": worst, "entries": compared},
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


_STRENGTH = sp.Symbol("T", positive=True)
_FORMULAS = {
    "theta1": sp.sqrt(spike_square()).subs(label_square(), _LABELS),
    "theta2": step_size * linear * teacher_linear,
    "square": (1 + _STRENGTH) * (beta + _STRENGTH) / _STRENGTH,
    "left": (_STRENGTH**2 - beta) / (_STRENGTH * (_STRENGTH + 1)),
    "right": (_STRENGTH**2 - beta) / (_STRENGTH * (_STRENGTH + beta)),
    "threshold": sp.sqrt(beta),
}

declare_claim(
    "ba-spike",
    title="One step makes at most one singular value leave the bulk of the first layer",
    statement=(
        r"$W_1 = W_0 + u\,a^\top + o(1)$ with $|u| \to \theta_1 = «theta1»$ and $u\cdot\beta_* \to "
        r"\theta_2 = «theta2»$; $Y = \mathbb{E}\,y^2$ holds the label noise. With $T = "
        r"\theta_1^2$, if $T > «threshold»$ then $$s_1^2 \to «square»,\quad \langle u_1, "
        r"\beta_*\rangle^2 \to \frac{\theta_2^2}{\theta_1^2}\,«left»,\quad \langle v_1, a\rangle^2 "
        r"\to «right» ,$$ else $s_1 \to 1 + \sqrt\beta$ and both overlaps vanish. All other "
        "singular values follow the law of Marchenko and Pastur. The formulas are for the "
        "gradient of half the squared loss."
    ),
    formulas=_FORMULAS,
    source=(
        f"{_BA}, section 3; the label noise in $\\theta_1$ and the overlap with the readout are "
        "derived here"
    ),
    status=Status.DERIVED_HERE,
)


@evidence("ba-spike", "exact", "the secular equation and its solution")
def spike_identities() -> Finding:
    """The secular equation, its solution, the residues and the forms that are computed with."""
    strength = _STRENGTH
    left, right = sp.symbols("g gtilde", positive=True)
    cross, z = sp.symbols("c z", positive=True)
    determinant = secular_determinant(strength, left, right, cross)
    results = {
        "secular determinant": equal(
            determinant, (1 - sp.sqrt(strength) * cross) ** 2 - strength * left * right
        ),
        "resolvent in the direction of the spike": equal(
            perturbed_resolvent(strength, left, right, sp.S.Zero)[0, 0],
            left / (1 - strength * left * right),
        ),
        "in x = z²": equal(
            secular_determinant(strength, z * left_resolvent, z * right_resolvent, sp.S.Zero).subs(
                z, sp.sqrt(square)
            ),
            -outlier_equation(strength),
        ),
    }
    at = solve_for_outlier(strength, beta)
    for index, equation in enumerate(
        (*marchenko_pastur_equations(beta), outlier_equation(strength))
    ):
        results[f"equation {index + 1} of the outlier"] = sp.cancel(equation.subs(at)) == 0
    result = rank_one_outlier(strength, beta)
    results |= {
        "θ2² is the part along the teacher": equal(aligned_square(), _FORMULAS["theta2"] ** 2),
        "θ1² is that and the part across": equal(
            aligned_square() + orthogonal_square(),
            (_FORMULAS["theta1"] ** 2).subs(_LABELS, label_square()),
        ),
        "squared singular value": equal(result.square, _FORMULAS["square"]),
        "left overlap": equal(result.left_overlap, _FORMULAS["left"]),
        "right overlap": equal(result.right_overlap, _FORMULAS["right"]),
        "threshold": equal(result.threshold, _FORMULAS["threshold"]),
        "both overlaps vanish at the threshold": all(
            sp.simplify(overlap.subs(strength, result.threshold)) == 0
            for overlap in (result.left_overlap, result.right_overlap)
        ),
    }
    results |= {
        f"as computed: {name}": sp.simplify(value) == 0 for name, value in identities().items()
    }
    return identities_hold(results, "outlier of a matrix with a spike")


_DIGITS = 25
_TABLE = {
    "spike": "theta1",
    "aligned_spike": "theta2",
    "singular_value": "singular_value",
    "teacher_alignment": "alignment_teacher",
    "readout_alignment": "alignment_readout",
}


@evidence("ba-spike", "quadrature", "13 networks in 40-digit arithmetic")
def reference_spikes() -> Finding:
    """Thirteen networks: 16 published digits, and the secular equation by quadrature."""
    ctx = mpmath.mp.clone()
    ctx.dps = _DIGITS + 10
    table = equation = ctx.zero
    outliers = 0
    eigenvalue = sp.Symbol("X", positive=True)
    for case in reference_cases():
        model = case.build()
        result = model.weight_spike(digits=_DIGITS)
        for key, name in _TABLE.items():
            given, value = ctx.mpf(case.values[key]), ctx.mpf(str(getattr(result, name)))
            table = max(table, abs(value - given) / max(abs(given), ctx.mpf(1) / 10))
        if not result.supercritical:
            continue
        outliers += 1
        x = sp.Float(str(result.singular_value), ctx.dps) ** 2
        beta = sp.Rational(repr(model.beta))
        # X is an eigenvalue of WᵀW; that of W Wᵀ has other zeros only.
        right = MarchenkoPasturAverage(1 / (x - eigenvalue), eigenvalue, beta).evalf(ctx.dps)
        left = beta * right + (1 - beta) / x
        strength = sp.Float(str(result.theta1), ctx.dps) ** 2
        equation = max(equation, abs(ctx.mpf(str(strength * x * left * right - 1))))
    passed = table < ctx.mpf(10) ** -14 and equation < ctx.mpf(10) ** -(_DIGITS - 5)
    return Finding(
        bool(passed and outliers),
        f"13 networks agree to {ctx.nstr(table, 2)} with 16 digits; {outliers} outliers solve the "
        f"secular equation, its resolvents by quadrature, to {ctx.nstr(equation, 2)}",
        {"largest_difference": float(table), "secular_equation": float(equation)},
    )


SLIDE = {"theta1": 0.7418, "critical_step_size": 3.206}
SLIDE_FULL = {"theta1": 1.4837, "singular_value": 2.4718, "alignment_teacher": 0.2692}


@evidence("ba-spike", "exact", "the slide's example; the factor of the loss")
def published_wording() -> Finding:
    r"""The factor of the loss and a raw teacher: what the numbers of the slide depend on.

    tanh on relu, ψ1 = 4, ψ2 = 2, η = 2. A mean of the teacher adds its square to E y², as noise
    would. The typeset formula for θ1 has an outlier only for the gradient of (1/n)Σ(f - y)².
    """
    mean_square = 1 / (2 * math.pi)
    half = OneGradientStep(
        "tanh", "relu", alpha=4, beta=2, step_size=2, noise_variance=mean_square, centre=True
    )
    full = replace(half, loss="full")
    one, two = half.weight_spike(), full.weight_spike()
    results = {
        "half the loss: no outlier": not one.supercritical,
        "the whole loss: an outlier": two.supercritical,
        "critical step size halved": math.isclose(
            one.critical_step_size, 2 * two.critical_step_size, rel_tol=1e-15
        ),
        "the whole loss is half of it with twice the step": (
            replace(half, step_size=4.0).weight_spike().singular_value == two.singular_value
        ),
        "noise lengthens the spike": one.theta1
        > replace(half, noise_variance=0.0).weight_spike().theta1,
    }
    for result, given in ((one, SLIDE), (two, SLIDE_FULL)):
        for name, value in given.items():
            # The last digit given is rounded.
            unit = 10.0 ** -len(str(value).partition(".")[2])
            results[f"{name} = {value}"] = abs(getattr(result, name) - value) < 0.51 * unit
    return identities_hold(results, "the slide's example and the conventions of its figures")


PROVEN_DIGITS = 16
"""Of the stored values."""

PROVEN = 15
_SPIKE = {
    "spike": "theta1", "aligned_spike": "theta2", "singular_value": "singular_value",
    "teacher_alignment": "alignment_teacher", "readout_alignment": "alignment_readout",
}  # fmt: skip


@evidence(
    "ba-spike", "certified", "sizes, overlaps and outliers of four networks", arguments={"count": 4}
)
@evidence("ba-spike", "certified", "sizes, overlaps and outliers of 13 networks", slow=True)
def spikes(count: int | None = None) -> Finding:
    """Sizes, overlaps and outlier of the first layer of networks in 40-digit arithmetic.

    Parameters
    ----------
    count : int, optional
        Of the thirteen networks, here and below; default: all.
    """
    require_flint()
    values: dict[str, Any] = {}
    verdicts: dict[str, bool] = {}
    for case in reference_cases()[:count]:
        answer = case.build().weight_spike(certify=True)
        proof = proof_of(answer)
        values |= {
            f"{case.name}: {name}": (proof[mine], case.values[name])
            for name, mine in _SPIKE.items()
        }
        # Intervals that decide on which side of the threshold the network is.
        gap = proof["theta1"].lower ** 4, proof["theta1"].upper ** 4
        beta = exact_number_of(case.model["beta"])
        verdicts[case.name] = gap[0] > beta if answer.supercritical else gap[1] < beta
    result = agreement(values, PROVEN_DIGITS, "sizes and overlaps", proven=PROVEN)
    decided = all(verdicts.values())
    side = "every side of the threshold is decided" if decided else "a threshold is not decided"
    return Finding(result.passed and decided, f"{result.summary}; {side}", result.details)


def exact_number_of(text: str) -> Any:
    """Return a decimal as the rational number that it is."""
    return sp.Rational(text)


@dataclass(frozen=True)
class SpikeCase:
    """A student and a teacher, both centred."""

    student: str
    teacher: str
    noise_variance: float
    alpha: float
    beta: float
    step_size: float

    @property
    def model(self) -> OneGradientStep:
        return OneGradientStep(
            self.student, self.teacher, alpha=self.alpha, beta=self.beta,
            step_size=self.step_size, noise_variance=self.noise_variance, centre=True,
        )  # fmt: skip

    @property
    def name(self) -> str:
        return (
            f"{self.student} on {self.teacher}, noise {self.noise_variance:g}, "
            f"eta = {self.step_size:g}"
        )


SPIKES = (
    SpikeCase("tanh", "relu", 0.0, 4.0, 2.0, 2.0),
    SpikeCase("tanh", "relu", 0.0, 4.0, 2.0, 4.0),
    SpikeCase("tanh", "relu", 0.0, 4.0, 2.0, 6.0),
    SpikeCase("tanh", "relu", 1.0, 4.0, 2.0, 4.0),
    SpikeCase("tanh", "relu", 1.0, 4.0, 2.0, 6.0),
    SpikeCase("erf", "tanh", 0.25, 2.0, 0.5, 4.0),
    SpikeCase("softplus", "tanh", 0.0, 1.5, 1.25, 4.0),
)
"""The networks of one table: from below the threshold to far above, with and without noise."""


_EXCLUDED = 4.0
"""Standard errors by which a variant has to miss."""


@evidence(
    "ba-spike",
    "simulation",
    "four networks up to d = 200, extrapolated; noise left out",
    arguments={
        "cases": tuple(SPIKES[i] for i in (2, 4, 5, 6)),
        "sizes": ((50, 64), (200, 16)),
        "seed": 91,
    },
)
@evidence("ba-spike", "simulation", "seven networks up to d = 600, extrapolated", slow=True)
def spike_table(
    cases: Sequence[SpikeCase] = SPIKES, sizes: Sizes = ((150, 40), (600, 10)), seed: int = 92,
    progress: bool = False,
) -> Finding:  # fmt: skip
    """Outliers of the truncation at the sample's own size, and of the full gradient.

    Networks with noisy labels have to exclude the θ1 that leaves the noise out: by the length of
    the spike all of them, by the largest singular value those with a noise variance of one.
    """
    judged: list[Comparison] = []
    shown: list[Comparison] = []
    variants: dict[str, dict[str, float]] = {}
    total = len(cases) * sum(networks for _, networks in sizes)
    with tqdm(total=total, delay=1, disable=not progress, unit="network") as bar:
        for index, case in enumerate(cases):
            at = [
                measure_spikes(case.model, d, networks, seed + _APART * index + d, bar.update)
                for d, networks in sizes
            ]
            lengths = [
                compare(
                    f"squared length across the teacher, {case.name}, d = {d}",
                    _across(case.model, m.ratio), m.across,
                )
                for (d, _), m in zip(sizes, at, strict=True)
            ]  # fmt: skip
            steps = _approaches(case, sizes, at)
            judged += lengths
            (shown if _is_near(case) else judged).extend(steps)
            if case.noise_variance:
                quiet = replace(case, noise_variance=0.0).model
                variants[case.name] = {
                    "length": _missed(at[1].across, _across(quiet, at[1].ratio)),
                    # Of the larger size as it is: all of the shift by B and C is in its favour.
                    "singular value": _missed(
                        at[1].full[0],
                        quiet.weight_spike().singular_value,
                        _shift(at[1].full[0] - at[1].truncated[0]),
                    ),
                }
    result = finding(judged, "lengths, truncations and extrapolated outliers")
    lengths_missed = [v["length"] for v in variants.values()]
    tops = {case.name: case.noise_variance >= 1 for case in cases}
    strong = [v["singular value"] for name, v in variants.items() if tops[name]]
    weak = [v["singular value"] for name, v in variants.items() if not tops[name]]
    worst = min([*lengths_missed, *strong], default=math.inf)
    summary = (
        f"{result.summary}; θ1 without the noise misses lengths by at least "
        f"{min(lengths_missed, default=math.inf):.1f} standard errors, and singular values by "
        f"{min(strong, default=math.inf):.1f} at noise variance 1"
    )
    if weak:
        summary += f" ({min(weak):.1f} where the noise is weaker, which decides nothing)"
    return Finding(
        result.passed and worst > _EXCLUDED,
        summary,
        {
            **result.details,
            "next to the threshold, not judged": {c.name: c.details() for c in shown},
            "noise_left_out_in_standard_errors": variants,
        },
    )


@dataclass(frozen=True, eq=False)
class Measured:
    """Of each network (singular value, left overlap, right overlap): arrays of shape (3, seeds).

    Left overlaps are with u, right ones with a.

    Attributes
    ----------
    full : array
        With the whole gradient.
    truncated : array
        Of the rank-one truncation.
    own : array
        The outlier of the limit at the sample's own \\|u\\| \\|a\\|.
    teacher : array, shape (seeds,)
        Squared overlap of the left vector with the teacher's direction, whole gradient.
    across : array, shape (seeds,)
        Squared length of u across the teacher's direction, which is where label noise enters.
    ratio : float
        n/(d - 1), at which theory gives the mean of the former.
    """

    full: Array
    truncated: Array
    own: Array
    teacher: Array
    across: Array
    ratio: float


def measure_spikes(
    model: OneGradientStep, dimension: int, networks: int, seed: int, tick: object = None
) -> Measured:
    """Draw networks, take the step, and measure the largest singular value and its vectors."""
    network = one_step_network(model, dimension)
    rows: list[tuple[list[float], ...]] = []
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        for index in range(networks):
            child = np.random.SeedSequence(seed, spawn_key=(index,))
            rows.append(_spike_of(network, child, model))
            if callable(tick):
                tick()
    full, truncated, own, others = (np.array(column).T for column in zip(*rows, strict=True))
    ratio = network.step_samples / (dimension - 1)
    return Measured(full, truncated, own, others[0], others[1], ratio)


def _spike_of(
    network: Network, seed: np.random.SeedSequence, model: OneGradientStep
) -> tuple[list[float], ...]:
    training = Training(network, seed)
    initial = training.layer.rows.copy()
    training.step()
    scale = model.effective_step_size * model.student_moments.linear
    u = scale * training.label_moments[0]
    a = training.layer.readout / math.sqrt(network.width)
    strength = float((u @ u) * (a @ a))
    full, left = _top(training.layer.rows.T, u, a)
    truncated, _ = _top(initial.T + np.outer(u, a), u, a)
    own = [float(value) for value in outlier_at(model, strength)]
    return full, truncated, own, [float(left[0] ** 2), float(u[1:] @ u[1:])]


def _top(matrix: Array, left: Array, right: Array) -> tuple[list[float], Array]:
    """Largest singular value, squared cosines of its vectors with two directions; left vector."""
    last = len(matrix) - 1
    (value,), vectors = eigh(matrix @ matrix.T, subset_by_index=(last, last))
    first = vectors[:, 0]
    second = matrix.T @ first
    return [
        math.sqrt(value),
        float((first @ left) ** 2 / (left @ left)),
        float((second @ right) ** 2 / (second @ second) / (right @ right)),
    ], first


_MEASURED = ("singular value", "overlap with the spike", "overlap with the readout")


def _approaches(case: SpikeCase, sizes: Sizes, at: Sequence[Measured]) -> list[Comparison]:
    """Full gradient, truncation and their difference for d → ∞."""
    theory = case.model.weight_spike()
    # At the edge of the bulk the largest of many singular values fluctuates by d^(-2/3).
    edge = not theory.supercritical
    limits = (theory.singular_value, theory.alignment_spike, theory.alignment_readout)
    result = []
    power = 1.0 if edge else 0.5
    for k, name in enumerate(_MEASURED):
        own_power = 2 / 3 if edge and k == 0 else 1.0
        shifts = [m.full[k] - m.truncated[k] for m in at]
        left = _shift(shifts[1]) / 2
        # Below the transition overlaps are of order 1/d, and so small a share of them is shifted.
        shift_power = 1.5 if edge and k else 0.5
        parts = (
            ("full gradient", limits[k], [m.full[k] for m in at], min(power, own_power), left),
            ("full minus truncation", 0.0, shifts, shift_power, left),
            (
                "truncation minus own prediction", 0.0,
                [m.truncated[k] - m.own[k] for m in at], own_power, 0.0,
            ),
        )  # fmt: skip
        result += [
            extrapolated(f"{name}, {kind}, {case.name}", limit, sizes, values, exponent, bias)
            for kind, limit, values, exponent, bias in parts
        ]
    # The shift of the overlap with u, seen from the teacher.
    left = theory.alignment**2 * _shift(at[1].full[1] - at[1].truncated[1]) / 2
    result.append(
        extrapolated(
            f"overlap with the teacher, full gradient, {case.name}", theory.alignment_teacher,
            sizes, [m.teacher for m in at], power, left,
        )
    )  # fmt: skip
    return result


def _shift(values: Array) -> float:
    return abs(float(values.mean()))


_NEAR = 0.3
"""Relative distance to the critical step size from which the powers of d are relied on."""


def _is_near(case: SpikeCase) -> bool:
    critical = case.model.weight_spike().critical_step_size
    return abs(case.step_size / critical - 1) < _NEAR


def _across(model: OneGradientStep, ratio: float) -> float:
    """Squared length across the teacher with `ratio` samples for each dimension across it."""
    spike = replace(model, alpha0=ratio).weight_spike()
    return float(spike.theta1**2 - spike.theta2**2)


def _missed(values: Array, variant: float, bias: float = 0.0) -> float:
    """Standard errors between the mean of values and a variant, without a stated bias."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    return float((abs(values.mean() - variant) - bias) / error)
