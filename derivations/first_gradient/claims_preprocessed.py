"""Claims: the preprocessed gradient, the algorithm that takes it, and correlational queries.

Simulated means are compared as in :mod:`.claims_expansion`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ...numeric.networks.run import Networks
from ...symbolic.expressions.activations import activation, z as variable
from ...symbolic.gaussian.expectation import expect
from ...symbolic.hermite.coefficients import hermite_coefficient
from ...symbolic.targets.stein import DIMENSION, SAMPLES, gradient_expansion
from ...symbolic.targets.target import target
from ..claims import Finding, Status, declare_claim, evidence
from ..comparison import Comparison, compare, finding
from ..identities import equal, identities_hold
from ..symbols import noise
from .claims_expansion import APART, mean_of_polynomial
from .sample_complexity import SampleComplexity, sample_complexity
from .statistical_queries import (
    CORRELATION,
    PACKING_CONSTANT,
    QUERIES,
    TOLERANCE,
    overlap_square,
    required_queries,
    tolerance_square,
)
from .training import preprocessed_networks

_DLS = "Damian, Lee, Soltanolkotabi, arXiv 2206.15144"

_RAW_LABELS, _HESSIAN = sp.symbols("Y h", positive=True)
_HALF = sp.pi / 2 * DIMENSION**2 * _RAW_LABELS / _HESSIAN**2
"""Samples at which S = V, for relu."""

_MU1, _MU2, _CONSTANT, _RAW_LINEAR = sp.symbols("mu_1 mu_2 C_0 C_1", real=True)
_RAW_SLOPES, _REST = sp.symbols("V_1 R_1", nonnegative=True)
_SIGNAL = _MU2**2 * _HESSIAN**2 / DIMENSION
_SCATTER = (
    DIMENSION / SAMPLES
    * (_RAW_SLOPES * (_REST + noise) + _MU1**2 * (_CONSTANT**2 + _RAW_LINEAR**2))
)  # fmt: skip

declare_claim(
    "preprocessed-gradient",
    title="After preprocessing the gradient shows the Hessian from about d² samples on",
    statement=(
        "With mean and linear part taken out of the labels, the squared gradient of a neuron on "
        r"$n$ samples is $S + V$ to leading order, with $S = «signal»$ inside the relevant space, "
        r"$H = \mathbb{E}\,\nabla^2 f$, $h = |H|_F$, and $$V = «scatter»$$ with "
        r"$V_1 = \mathrm{Var}(\sigma')$, $R_1 = \|P_{>1}f\|^2$ and $C_1$ for the length of the "
        r"linear part. For relu $S = V$ at $n = «half»$ with $Y = \mathbb{E}\,y^2$. If $H$ has "
        "less than full rank, nothing follows for the directions it misses."
    ),
    formulas={"half": _HALF, "signal": _SIGNAL, "scatter": _SCATTER},
    source=f"derived here; {_DLS} prove $n \\gtrsim d^2 r$ for relu",
    status=Status.DERIVED_HERE,
)


@evidence(
    "preprocessed-gradient", "exact", "the constant for relu, the leading term, the assumptions"
)
def preprocessed_step() -> Finding:
    """S, V and the sample number with S = V; rows H w that span the relevant space."""
    results: dict[str, bool] = {}
    for text in ("x1*x2 + He(3, x1)", "1 + x2 + He(2, x1)/2 - He(2, x2) + x1*x2**2"):
        f = target(text)
        ledger = sample_complexity("relu", f)
        square = sp.Add(*(entry**2 for entry in ledger.hessian))
        stated = _HALF.subs({_RAW_LABELS: f.norm_squared + noise, _HESSIAN: sp.sqrt(square)})
        results[f"relu on {text}: n = (π/2) d² E y²/|H|²"] = equal(ledger.half_samples, stated)
        leading = gradient_expansion("relu", f, removed=(0, 1)).leading
        results[f"relu on {text}: the leading term is H w/√(2π)"] = leading is not None and all(
            equal(result, entry / sp.sqrt(2 * sp.pi))
            for result, entry in zip(
                leading.value, ledger.hessian * sp.Matrix(leading.weights), strict=True
            )
        )
        linear = sp.Add(*(entry**2 for entry in sp.flatten(f.hermite_tensor(1).tolist())))
        at = {
            _MU1: sp.S.Half, _MU2: 1 / sp.sqrt(2 * sp.pi), _HESSIAN: sp.sqrt(square),
            _CONSTANT: f.mean, _RAW_LINEAR: sp.sqrt(linear), _RAW_SLOPES: sp.Rational(1, 4),
            _REST: f.norm_squared - f.mean**2 - linear,
        }  # fmt: skip
        results[f"relu on {text}: S"] = equal(ledger.signal, _SIGNAL.subs(at))
        results[f"relu on {text}: V"] = equal(ledger.noise, _SCATTER.subs(at))
        results[f"relu on {text}: rank H = r"] = ledger.hessian_rank == ledger.directions
    for student, text, reason in (
        ("relu", "He(2, x1) + He(3, x2)", "rank H = 1 < r = 2"),
        ("relu", "x1*x2*x3", "rank H = 0 < r = 3"),
        ("erf", "x1*x2", "mu_2 = 0 for the student erf"),
        ("relu", "abs(x1)", "the target is not a polynomial"),
    ):
        row = sample_complexity(student, text).rows[0]
        results[f"{student} on {text}: no number is given"] = (
            row.scale is None and row.obstacle == reason
        )
    for text in ("x1*x2*x3", "He(3, x1)"):
        leading = gradient_expansion("relu", text, removed=(0, 1)).leading
        results[f"relu on {text}: no term inside the relevant space"] = leading is None
    return identities_hold(results, "signal, noise and assumptions of the preprocessed step")


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


@evidence(
    "preprocessed-gradient",
    "simulation",
    "share of the gradient inside the space at S = V, relu",
    arguments={"cases": SHARES[:2], "ratios": (1.0,), "networks": 8, "width": 100, "seed": 61},
)
@evidence(
    "preprocessed-gradient", "simulation", "the same around S = V, with other students", slow=True
)
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
            answer = _train(
                case.student, case.target, networks, seed + APART * index, dimension=dimension,
                samples=count, width=width, noise_variance=case.noise_variance, ridge=1.0, n_test=1,
            )  # fmt: skip
            name = (
                f"{case.student} on {case.target}, noise {case.noise_variance:g}, "
                f"n = {ratio:g} n_half = {count}"
            )
            comparison = compare(name, theory, answer["relevant_share"], SHARE_BIAS / dimension)
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


def _train(student: str, text: str, seeds: int, seed: int, **options: Any) -> Networks:
    planned = preprocessed_networks(activation(student), target(text), **options)
    return planned.train(seeds=seeds, seed=seed, progress=False)


declare_claim(
    "dls-algorithm-1",
    title="One preprocessed step and ridge regression beat random features",
    statement=(
        r"If $H = \mathbb{E}\,\nabla^2 f$ has rank $r$, networks whose first layer is one gradient "
        r"step on preprocessed labels learn a polynomial of degree $p$ in $r$ directions from "
        r"$n \gtrsim d^2 r + d\,r^p$ samples, fewer than the $d^p$ of any kernel. Checked is that "
        r"they do better than random features of the same width on $n = 4d^2$ samples."
    ),
    source=f"{_DLS}, theorem 1; quoted, the rates are not checked",
    status=Status.THEOREM,
)


@evidence(
    "dls-algorithm-1", "exact", "the rows of the step span the relevant space exactly if H does"
)
def learned_rows() -> Finding:
    """Leading rows H w at r values of w: their span has the rank of H, in exact arithmetic."""
    results: dict[str, bool] = {}
    for text in (
        "x1*x2 + He(2, x2)/2 + He(3, x1)/3",
        "x1 + x1*x2 + x2*x3 + He(2, x3) + He(3, x2)/3",
        "He(2, x1) + He(3, x2)",
        "x1*x2*x3",
        "x2 + He(3, x1)/sqrt(6)",
    ):
        ledger = sample_complexity("relu", text)
        expansion = gradient_expansion("relu", text, removed=(0, 1))
        term = next((t for t in expansion.terms if t.k == 1), None)
        r = expansion.target.dimension
        rows = sp.zeros(r, r)
        if term is not None:
            axes = sp.eye(r)
            rows = sp.Matrix.hstack(
                *(
                    term.value.xreplace(dict(zip(expansion.weights, axes[:, i], strict=True)))
                    for i in range(r)
                )
            )
        results[f"{text}: the rows have the rank of H, {ledger.hessian_rank}"] = (
            rows.rank() == ledger.hessian_rank
        )
        results[f"{text}: the ledger applies exactly if it is r = {ledger.directions}"] = (
            ledger.rows[0].applies == (rows.rank() == ledger.directions)
        )
    return identities_hold(results, "span of the leading rows")


LEARNED = ("x1*x2 + He(2, x2)/2 + He(3, x1)/3", "x1 + x1*x2 + x2*x3 + He(2, x3) + He(3, x2)/3")
FLAT = ("x1*x2*x3", "x2 + He(3, x1)/sqrt(6)")
r"""Targets with H = 0, where the assumption of the algorithm fails: reported, not judged.

No limit for their gain is known. It need not be zero: :math:`\mathbb{E}[y^2x_i^2]` exceeds
:math:`\mathbb{E}y^2` along relevant coordinates, so even the noise of the gradient prefers them.
"""


@evidence(
    "dls-algorithm-1",
    "simulation",
    "test errors at d = 40; targets with H = 0 beside them",
    arguments={"dimensions": (40,), "networks": 6, "width": 200, "seed": 75},
)
@evidence("dls-algorithm-1", "simulation", "the same at d = 40 and 80", slow=True)
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
            result = _train(
                "relu", text, networks, seed + APART * index, dimension=dimension,
                samples=4 * dimension**2, width=width, noise_variance=0.1, n_test=5000,
            )  # fmt: skip
            gain = result["random_features_error"] - result["test_error"]
            error = float(gain.std(ddof=1) / math.sqrt(networks))
            random = float(result.mean("random_features_error"))
            gains[f"{text}, d = {dimension}"] = {
                "test_error": float(result.mean()),
                "random_features_error": random,
                "linear_error": float(result.mean("linear_error")),
                "relevant_share": float(result.mean("relevant_share")),
                "gain": float(gain.mean()),
                "standard_error": error,
            }
            if learned:
                passed &= bool(gain.mean() > 4 * error and result.mean() < 0.6 * random)
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


_SIZE = sp.Symbol("F", positive=True)
_REQUIRED = required_queries(_SIZE, TOLERANCE, CORRELATION)

declare_claim(
    "dls-correlational-queries",
    title="Methods of correlational queries need about d^(p/2) samples at worst",
    statement=(
        r"To single out one of $F$ functions of unit norm with correlations at most "
        r"$\epsilon$ takes $q \ge «queries»$ correlational queries of "
        r"tolerance $\tau$. For $\mathrm{He}_p(\langle u, x\rangle)/\sqrt{p!}$ with all directions "
        r"$u$ it follows that $\tau^2 \lesssim (\log(qd)/d)^{p/2}$; reading $\tau$ as $n^{-1/2}$, "
        r"which is heuristic, $n \gtrsim d^{p/2}$ up to logarithms."
    ),
    formulas={"queries": _REQUIRED},
    source=f"{_DLS}; the constant in the number of directions is derived here",
    status=Status.THEOREM,
)


@evidence("dls-correlational-queries", "exact", "correlations, balance and exponent of the bound")
def query_bound(highest: int = 5) -> Finding:
    """Correlations of the class by direct averages, and the bound at its own overlap."""
    x, y, overlap = sp.symbols("x y u", real=True)
    orthogonal = sp.sqrt(1 - overlap**2)
    # Of the members whose answer is not 0 half have one sign, A of them: τ A is at most |Σ_A f|.
    members = sp.Symbol("A", positive=True)
    (most,) = sp.solve((TOLERANCE * members) ** 2 - members - CORRELATION * members**2, members)
    results = {"queries": sp.cancel(2 * most * _REQUIRED - _SIZE) == 0}
    for p in range(1, highest + 1):
        he = activation(f"He({p}, z)").expr
        product = he.xreplace({variable: x}) * he.xreplace({variable: overlap * x + orthogonal * y})
        mean = mean_of_polynomial(sp.expand(product), (x, y))
        results[f"p = {p}: correlations are u^p"] = (
            sp.expand(mean - sp.factorial(p) * overlap**p) == 0
        )
        scaled = PACKING_CONSTANT * DIMENSION
        wanted = overlap_square(p) ** sp.Rational(p, 2) + scaled ** sp.Rational(-p, 2)
        point = {DIMENSION: sp.Integer(10) ** 6, QUERIES: sp.Integer(10) ** 4}
        difference = (tolerance_square(p) - wanted).subs(point).evalf(30)
        results[f"p = {p}: tolerance"] = bool(abs(difference) < sp.Float("1e-25"))
    return identities_hold(results, "the class and its bound are as stated")
