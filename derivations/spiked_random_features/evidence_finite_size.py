r"""Evidence on networks of finite width and on what the spiked features leave out of the bulk."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import sympy as sp
import threadpoolctl

from ...errors import ApproximationWarning
from ...numeric.feature_network import SteppedNetwork
from ...symbolic.activations import activation
from ...symbolic.equations import stationarity
from ..claims import Finding
from ..comparison import Comparison, compare, finding
from . import free_energy as fe
from .bulk_covariance import bulk_spread
from .evidence_simulation import FeatureCase, spiked_feature_comparisons
from .identities import equal, vanishes
from .identities import finding as exact_finding
from .mapping import alpha0, letter, mean_letter, noise, spike_mapping, step_size
from .model import SpikedRandomFeatures
from .published import conditionals
from .simulated import network_setup
from .spike import spikes_of_letters

# ------------------------------------------------------------------ finite width


def finite_width_equations() -> Finding:
    """The terms of order 1/p, and that the energy identity holds with them."""
    pair = activation("relu"), activation("sin")
    strict = fe.spiked_free_energy(*pair).free_energy
    energy = fe.spiked_free_energy(*pair, finite_width=True)
    f, slope = energy.free_energy.expression, stationarity(energy.free_energy)
    before = stationarity(strict)
    cost = fe.inverse_width * fe.m**2 / (2 * fe.V2)
    variance, mean, _ = conditionals()
    half = fe.alpha / (2 * fe.beta)
    # The multiples of the conditions that prove the identity of the strict limit.
    loss = f + sum(x * slope[x] for x in (fe.V1, fe.V2))
    loss -= sum(x * slope[x] for x in (fe.V1_hat, fe.V2_hat, fe.theta_hat, fe.psi_hat))
    loss -= 2 * sum(x * slope[x] for x in (fe.q1_hat, fe.q2_hat)) + fe.ridge * slope[fe.V2_hat]
    residual = f - sum(x * slope[x] for x in (fe.q1, fe.q2, fe.q1_hat, fe.q2_hat))
    residual -= sum(x * slope[x] for x in (fe.theta, fe.psi, fe.m, fe.theta_hat, fe.psi_hat)) / 2
    form = (fe.T2 - fe.T0 * mean - fe.mu1 * fe.psi * fe.T1) / (1 + variance)
    n = fe.alpha / (fe.beta * fe.inverse_width)
    results = {
        "f has the term m²/(2pV2)": vanishes(f - strict.expression - cost),
        "m: A00 becomes A00 + 1/(n V2)": vanishes(
            slope[fe.m] - before[fe.m] - 2 * half * fe.m / (n * fe.V2)
        ),
        "V2: q̂2 gets m²/(p V2²)": vanishes(
            slope[fe.V2] - before[fe.V2] + fe.inverse_width * fe.m**2 / fe.V2**2 / 2
        ),
        "no other condition changes": all(
            vanishes(slope[x] - before[x]) for x in slope if x not in (fe.m, fe.V2)
        ),
        "f + conditions = α/(2β) (train + λβ q2/α)": vanishes(
            loss - half * energy.training_error - fe.ridge * fe.q2 / 2
        ),
        "f + conditions = α/(2β) E (T2 - T0 C - μ1 ψ T1)/(1 + V)": vanishes(
            residual - half * fe.average(form)
        ),
    }
    return exact_finding(results, "the terms of order 1/p and the energy with them")


# Test error and q2 at p = 1000 and α = 0.9, 3 (tanh/sin, s = 3, α0 = 20, λ = 0.1), and means with
# standard errors of networks of that size, simulated apart from giantstep.
_CORRECTED = {0.9: (0.0428, 0.0525), 3.0: (0.03272, 0.0875)}


def finite_width_values() -> Finding:
    """A published example at p = 1000, and the way to the strict limit."""
    model = SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    passed, texts, details = True, [], dict[str, Any]()
    for alpha, (test, norm) in _CORRECTED.items():
        found = model.solve(alpha=alpha, ridge=0.1, width=1000)
        passed &= abs(found.test_error - test) <= (5e-5 if alpha < 1 else 5e-6)
        passed &= abs(found.q2 - norm) <= 5e-5
        limit = model.solve(alpha=alpha, ridge=0.1).test_error
        steps = [
            p * (model.solve(alpha=alpha, ridge=0.1, width=p).test_error / limit - 1)
            for p in (10**6, 10**8)
        ]
        passed &= math.isclose(*steps, rel_tol=1e-4)
        texts.append(f"{found.test_error:.5f}, q2 = {found.q2:.4f} at α = {alpha:g}")
        details[f"alpha = {alpha:g}"] = [found.test_error, found.q2, *steps]
    return Finding(passed, f"test error {'; '.join(texts)}; linear in 1/p for p → ∞", details)


_FEATURES = FeatureCase(
    {"student": "erf", "teacher": "sin", "spike_strength": 1.0, "bulk_variance": 1.1,
     "alignment": 0.9, "beta": 0.5},
    2.0, 0.5,
    {"test_error": 1.5, "training_error": 1.0, "q2": 0.6, "m": 1.0},
)  # fmt: skip


def finite_width_features() -> Finding:
    """Spiked random features of width 100: the correction is seen, the strict limit excluded."""
    found = spiked_feature_comparisons(_FEATURES, ((200, 60),), 11, width=100)
    chosen = [c for c in found if c.quantity.split(" ")[0] in ("q2", "m")]
    model = SpikedRandomFeatures.from_parameters(**_FEATURES.model)
    limit = model.solve(alpha=_FEATURES.alpha, ridge=_FEATURES.ridge).q2
    measured = next(c for c in chosen if c.quantity.startswith("q2"))
    excluded = abs(measured.mean - limit) / measured.tolerance
    result = finding(found, "errors and overlaps at width 100")
    return Finding(
        result.passed and excluded > 1,
        f"{result.summary}; q2 of the strict limit is {excluded:.1f} tolerances off",
        {**result.details, "strict_limit_in_tolerances": excluded},
    )


# ------------------------------------------------------------------ the bulk covariance


def spread_formula() -> Finding:
    """The spread for odd students, against the sample covariance of labels and inputs."""
    results: dict[str, bool] = {}
    for names in (("erf", "erf"), ("sin", "sign"), ("tanh", "sin")):
        student, teacher = map(activation, names)
        c = spike_mapping(student, teacher).bulk_variance
        second = _moment(teacher, 2)
        fourth = _moment(teacher, 4)
        spread = bulk_spread(student, teacher)
        results[f"{'/'.join(names)}: c² spread² = (c − 1)² E y⁴/(α0 Y²)"] = equal(
            (c * spread) ** 2 * alpha0 * second**2, (c - 1) ** 2 * fourth
        )
    return exact_finding(results, "the derived spread of odd students in closed form")


def _moment(teacher: Any, order: int) -> sp.Expr:
    from ...symbolic.activations import z as variable
    from ...symbolic.gaussian import expect

    clean = {n: expect(teacher.expr**n, variable) for n in (2, 4)}
    if order == 2:
        return clean[2] + noise
    return clean[4] + 6 * noise * clean[2] + 3 * noise**2


_SPREADS: tuple[dict[str, Any], ...] = (
    {"student": "sin", "teacher": "sin", "step_size": 3.0, "alpha0": 1.0},
    {"student": "erf", "teacher": "erf", "step_size": 2.0, "alpha0": 2.0, "noise_variance": 0.25},
    {"student": "relu", "teacher": "relu", "step_size": 2.0, "alpha0": 4.0,
     "noise_variance": 0.1, "allow_non_odd": True},
    {"student": "relu", "teacher": "tanh", "step_size": 2.0, "alpha0": 4.0,
     "allow_non_odd": True},
)  # fmt: skip
# Relative deviations times d: 15 of sin/sin at d = 150 and 9 at d = 300, those of the others less.
_SPREAD_BIAS = 18.0


def measured_spread(dimension: int = 150, networks: int = 8, seed: int = 4) -> Finding:
    """Spread from the overlaps of different rows: d E (b_i·b_j)² is the mean square eigenvalue."""
    comparisons: list[Comparison] = []
    for arguments in _SPREADS:
        # Many rows, so that their overlaps average: the bulk does not depend on the width.
        model = SpikedRandomFeatures(**arguments, beta=4.0)
        setup = _stepped(model, dimension)
        values = []
        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            for child in np.random.SeedSequence(seed).spawn(networks):
                layer = setup.first_layer(child)
                along = layer.rows @ layer.spikes[0]
                bulk = layer.rows - np.outer(along, layer.spikes[0])
                gram = bulk @ bulk.T
                c = np.trace(gram) / len(gram)
                off = np.sum(gram**2) - np.sum(np.diag(gram) ** 2)
                square = dimension * off / (len(gram) * (len(gram) - 1))
                values.append(math.sqrt(max(square - c**2, 0.0)) / c)
        comparisons.append(
            compare(
                f"spread of {model.student}/{model.teacher}", model.bulk_spread, np.array(values),
                _SPREAD_BIAS * model.bulk_spread / dimension, dimension,
            )
        )  # fmt: skip
    return finding(comparisons, "spreads of the bulk covariance")


def _stepped(model: SpikedRandomFeatures, dimension: int, **letters: Any) -> SteppedNetwork:
    network = network_setup(model, dimension)
    return SteppedNetwork(
        network.student, network.student_derivative, network.teacher, model.step_size,
        model.alpha0, beta=model.beta, noise_variance=model.noise_variance, dimension=dimension,
        **letters,
    )  # fmt: skip


def deviations(dimension: int = 600, networks: int = 72, seed: int = 6) -> Finding:
    """Errors against the theory at the realised spikes, which leaves the bulk to explain them.

    At α = 3 and ridge 0.1, by spread: large for sin/sin at c = 1.78 and for relu/relu at c = 1.11,
    which have to deviate; small for sin/sin at c = 1.12, which is reported and not judged: what
    deviates there, by a percent, may have other causes.
    """
    found: dict[str, tuple[float, float, float]] = {}
    small = {"student": "sin", "teacher": "sin", "step_size": 1.2, "alpha0": 1.0}
    for arguments in (_SPREADS[0], _SPREADS[2], small):
        model = SpikedRandomFeatures(**arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximationWarning)
            runs = model.simulate(dimension, [3.0], 0.1, seeds=networks, seed=seed, progress=False)
        ratios = []
        for k in range(networks):
            theory = SpikedRandomFeatures.from_parameters(
                model.student, model.teacher, noise_variance=model.noise_variance,
                width=dimension, spike_strength=float(runs["spike_strength"][k]),
                bulk_variance=float(runs["bulk_variance"][k]),
                alignment=float(runs["alignment"][k]),
            )  # fmt: skip
            ratios.append(
                float(runs["test_error"][k, 0]) / theory.solve(alpha=3.0, ridge=0.1).test_error - 1
            )
        name = f"{model.student}/{model.teacher}, spread {model.bulk_spread:.2f}"
        error = float(np.std(ratios, ddof=1) / math.sqrt(networks))
        found[name] = (model.bulk_spread, float(np.mean(ratios)), error)
    resolved = [abs(m) > 3 * e for s, m, e in found.values() if s > 0.5]
    return Finding(
        all(resolved),
        "; ".join(f"{name}: {100 * m:.1f} ± {100 * e:.1f} %" for name, (_, m, e) in found.items()),
        {"deviations": found},
    )


# ------------------------------------------------------------------ vocabularies


def letters_formula() -> Finding:
    """A letter multiplies the step; all letters 1 give the uniform readout."""
    results: dict[str, bool] = {}
    for names in (("erf", "erf"), ("relu", "tanh")):
        pair = tuple(map(activation, names))
        uniform = spike_mapping(*pair)
        found = spike_mapping(*pair, letter=letter, mean_letter=mean_letter)
        ones = {letter: sp.S.One, mean_letter: sp.S.One}
        for field in ("spike_strength", "bulk_variance", "alignment"):
            value, base = getattr(found, field), getattr(uniform, field)
            results[f"{'/'.join(names)}: {field} at letters 1"] = equal(value.xreplace(ones), base)
            if names[0] == "erf":
                scaled = base.xreplace({step_size: step_size * letter})
                results[f"erf/erf: {field} at s ã"] = equal(value, scaled)
    return exact_finding(results, "letters scale the step of odd students, and reduce to one")


_LETTERS: tuple[tuple[dict[str, Any], tuple[float, ...], tuple[float, ...]], ...] = (
    ({"student": "erf", "teacher": "erf", "step_size": 2.0, "alpha0": 5.0,
      "noise_variance": 0.05}, (0.4, 1.0, 1.8), (0.3, 0.4, 0.3)),
    ({"student": "tanh", "teacher": "sin", "step_size": 3.0, "alpha0": 20.0}, (1.0,), (1.0,)),
    ({"student": "sin", "teacher": "sign", "step_size": 2.0, "alpha0": 4.0}, (1.0,), (1.0,)),
    ({"student": "relu", "teacher": "tanh", "step_size": 2.0, "alpha0": 4.0,
      "allow_non_odd": True}, (1.0, -0.5), (0.5, 0.5)),
    ({"student": "relu", "teacher": "relu", "step_size": 2.0, "alpha0": 4.0, "beta": 0.5,
      "noise_variance": 0.1, "allow_non_odd": True}, (1.0,), (1.0,)),
    ({"student": "erf", "teacher": "relu", "step_size": 2.0, "alpha0": 4.0}, (1.0,), (1.0,)),
)  # fmt: skip
# Relative bias of r, c, γ times d.
_LETTER_BIAS = 8.0


def realised_letters(dimension: int = 200, networks: int = 12, seed: int = 8) -> Finding:
    """r, c and γ of networks whose step has a vocabulary, against the map."""
    comparisons: list[Comparison] = []
    for arguments, letters, fractions in _LETTERS:
        model = SpikedRandomFeatures(**arguments)
        spikes = spikes_of_letters(
            model.student, model.teacher, step_size=model.step_size, alpha0=model.alpha0,
            noise_variance=model.noise_variance, letters=letters, fractions=fractions,
        )  # fmt: skip
        setup = _stepped(model, dimension, letters=letters, fractions=fractions)
        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            layers = [
                setup.first_layer(child) for child in np.random.SeedSequence(seed).spawn(networks)
            ]
        for k, (a, spike) in enumerate(zip(letters, spikes, strict=True)):
            measured = {
                "spike_strength": [layer.strengths[k, 0] for layer in layers],
                "bulk_variance": [layer.bulk_variances[k] for layer in layers],
                "alignment": [layer.alignment[0, 0] for layer in layers],
            }
            for name, values in measured.items():
                limit = getattr(spike, name)
                comparisons.append(
                    compare(
                        f"{name} of {model.student}/{model.teacher}, letter {a:g}", limit,
                        np.array(values), _LETTER_BIAS * abs(limit) / dimension, dimension,
                    )
                )  # fmt: skip
    return finding(comparisons, "realised r, c, γ")
