"""Claims: networks of finite width, what the spiked features leave out of the bulk, and letters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp
import threadpoolctl

from ...ball_library import require_flint
from ...symbolic.expressions.activations import activation, z as variable
from ...symbolic.gaussian.expectation import expect
from ...symbolic.hermite.coefficients import hermite_coefficient
from ...symbolic.systems.equations import stationarity
from ..certificates.agreement import agreement
from ..claims import Finding, Status, declare_claim, evidence
from ..comparison import Comparison, compare, finding
from ..first_gradient.spike_mapping import (
    SpikeMapping,
    alpha0,
    bulk_spread,
    letter,
    mean_letter,
    noise,
    spike_mapping,
    step_size,
)
from ..identities import equal, identities_hold, vanishes
from ..kernels.kernel import Kernel
from ..kernels.lower import lower
from . import physics as fe
from .claims_limits import NARROW, certified_point
from .claims_mapping import (
    H1,
    LABELS,
    MAPPING,
    NU,
    SLOPES,
    T1,
    FeatureCase,
    realised_spike,
    spiked_feature_comparisons,
)
from .derive import saddle_point_system
from .model import SpikedRandomFeatures
from .physics import SpikedFreeEnergy, spiked_free_energy
from .published import (
    PUBLIC_NOTEBOOK,
    RESIDUAL_LOSS,
    STORED_OUTPUTS,
    energy_forms,
    spectral_weight,
    variant_mapping,
    with_spectral_weight,
    without_overlap,
    written_out,
)
from .simulated import network_of
from .spike import spikes_of_letters

_PAPER = "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980"

_WIDTH, _SAMPLES = sp.symbols("p n", positive=True)
_AT_WIDTH = {
    "energy": fe.m**2 / (2 * _WIDTH * fe.V2),
    "m": 1 / (_SAMPLES * fe.V2),
    "q": fe.m**2 / (_WIDTH * fe.V2**2),
}
"""What a finite width adds: to the free energy, to 𝔼 μ0²/(1 + V), and to the conjugate of q2."""

declare_claim(
    "finite-width",
    title="What the ridge penalty takes for the mean of the readout at a finite width",
    statement=(
        r"At width $p$ the free energy has the further term $«energy»$: "
        r"$\mathbb{E}_\kappa[\mu_0^2/(1+V)]$ in the equation for $m$ becomes "
        r"$\mathbb{E}_\kappa[\mu_0^2/(1+V)] + «m»$, and $\hat q_2$ gets $«q»$. "
        r"$E_\mathrm{train} + \lambda\beta q_2/\alpha = \frac{2\beta}{\alpha}f = «residual»$ "
        r"holds with it."
    ),
    formulas={**_AT_WIDTH, "residual": RESIDUAL_LOSS},
    source="derived here",
    status=Status.DERIVED_HERE,
)


@evidence("finite-width", "exact", "the terms, the energy")
def finite_width_equations() -> Finding:
    """The terms of order 1/p, and that the energy identity holds with them."""
    pair = activation("relu"), activation("sin")
    strict = fe.spiked_free_energy(*pair).free_energy
    energy = fe.spiked_free_energy(*pair, finite_width=True)
    f, slope = energy.free_energy.expression, stationarity(energy.free_energy)
    before = stationarity(strict)
    half = fe.alpha / (2 * fe.beta)
    loss, residual = energy_forms(f, slope)
    sizes = {_WIDTH: 1 / fe.inverse_width, _SAMPLES: 2 * half / fe.inverse_width}
    stated = {name: term.xreplace(sizes) for name, term in _AT_WIDTH.items()}
    results = {
        "f has the term m²/(2pV2)": vanishes(f - strict.expression - stated["energy"]),
        "m: A00 becomes A00 + 1/(n V2)": vanishes(
            slope[fe.m] - before[fe.m] - 2 * half * fe.m * stated["m"]
        ),
        "V2: q̂2 gets m²/(p V2²)": vanishes(slope[fe.V2] - before[fe.V2] + stated["q"] / 2),
        "no other condition changes": all(
            vanishes(slope[x] - before[x]) for x in slope if x not in (fe.m, fe.V2)
        ),
        "f + conditions = α/(2β) (train + λβ q2/α)": vanishes(
            loss - half * energy.training_error - fe.ridge * fe.q2 / 2
        ),
        "f + conditions = α/(2β) E (T2 - T0 C - μ1 ψ T1)/(1 + V)": vanishes(
            residual - half * written_out(RESIDUAL_LOSS)
        ),
    }
    return identities_hold(results, "the terms of order 1/p and the energy with them")


# Test error and q2 at p = 1000 and α = 0.9, 3 (tanh/sin, s = 3, α0 = 20, λ = 0.1), and means with
# standard errors of networks of that size, simulated apart from giantstep.
_CORRECTED = {0.9: (0.0428, 0.0525), 3.0: (0.03272, 0.0875)}


@evidence("finite-width", "quadrature", "published example at p = 1000")
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


@evidence(
    "finite-width",
    "certified",
    "test error and q2 of the published example, in intervals",
    slow=True,
)
def finite_width() -> Finding:
    """Test error and q2 of the published example at p = 1000."""
    require_flint()
    model = SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    errors: dict[str, Any] = {}
    norms: dict[str, Any] = {}
    for alpha, (test, norm) in _CORRECTED.items():
        proof = certified_point(model, alpha, 0.1, width=1000)
        # The first has four decimals, so three digits; the other one more.
        (errors if alpha > 1 else norms)[f"α = {alpha}: test error"] = (
            proof["test_error"], repr(test)
        )  # fmt: skip
        norms[f"α = {alpha}: q2"] = proof["q2"], repr(norm)
    fine = agreement(errors, 4, "test errors", proven=NARROW)
    rough = agreement(norms, 3, "values of four decimals", proven=NARROW)
    return Finding(
        fine.passed and rough.passed,
        f"{fine.summary}; {rough.summary}",
        {**fine.details, **rough.details},
    )


_FEATURES = FeatureCase(
    {"student": "erf", "teacher": "sin", "spike_strength": 1.0, "bulk_variance": 1.1,
     "alignment": 0.9, "beta": 0.5},
    2.0, 0.5,
    {"test_error": 1.5, "training_error": 1.0, "q2": 0.6, "m": 1.0},
)  # fmt: skip


@evidence("finite-width", "simulation", "features of small width")
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


_VARIANCE, _SECOND, _FOURTH = sp.symbols("c Y Y_4", positive=True)
_SPREAD = (_VARIANCE - 1) / _VARIANCE * sp.sqrt(_FOURTH / (alpha0 * _SECOND**2))

declare_claim(
    "bulk-spread",
    title="How anisotropic the trained bulk is",
    statement=(
        r"Given the samples of the step, the bulk rows have a common covariance. With $c$ its mean "
        r"eigenvalue, the relative spread of its eigenvalues is, for odd students, $«spread»$ with "
        r"$Y = \mathbb{E}\,y^2$ and $Y_4 = \mathbb{E}\,y^4$; spiked random features have none. "
        r"Errors of networks deviate from those of spiked random features where it is large, also "
        r"if $c - 1$ is small."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
    formulas={"spread": _SPREAD},
)


@evidence("bulk-spread", "exact", "the formula for odd students")
def spread_formula() -> Finding:
    """The spread for odd students, against the sample covariance of labels and inputs."""
    results: dict[str, bool] = {}
    for names in (("erf", "erf"), ("sin", "sign"), ("tanh", "sin")):
        student, teacher = map(activation, names)
        c = spike_mapping(student, teacher).bulk_variance
        moments = {_VARIANCE: c, _SECOND: _moment(teacher, 2), _FOURTH: _moment(teacher, 4)}
        results[f"{'/'.join(names)}: c² spread² = (c − 1)² E y⁴/(α0 Y²)"] = equal(
            bulk_spread(student, teacher) ** 2, (_SPREAD**2).xreplace(moments)
        )
    return identities_hold(results, "the derived spread of odd students in closed form")


def _moment(teacher: Any, order: int) -> sp.Expr:
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


@evidence("bulk-spread", "simulation", "overlaps of trained rows, four pairs")
def measured_spread(dimension: int = 150, networks: int = 8, seed: int = 4) -> Finding:
    """Spread from the overlaps of different rows: d E (b_i·b_j)² is the mean square eigenvalue."""
    comparisons: list[Comparison] = []
    for arguments in _SPREADS:
        # Many rows, so that their overlaps average: the bulk does not depend on the width.
        model = SpikedRandomFeatures(**arguments, beta=4.0)
        network = network_of(model, dimension)
        values = []
        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            for child in np.random.SeedSequence(seed).spawn(networks):
                layer = network.train(child)
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


@evidence("bulk-spread", "simulation", "errors at small and at large spread", slow=True)
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
        runs = model.simulate(
            dimension, alpha=[3.0], ridge=0.1, seeds=networks, seed=seed, progress=False
        )
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


_H0, _H2, _T0, _MEAN = sp.symbols("h_0 h_2 h_0^* L", real=True)
_OF_LETTERS = {
    "r": letter * MAPPING["r"].rhs,
    "c": (1 + step_size * letter * _H2 * (_T0 - _MEAN * _H0)) ** 2
    + letter**2 * (MAPPING["c"].rhs - 1),
}

declare_claim(
    "step-vocabulary",
    title="One giant step with a readout vocabulary",
    statement=(
        r"If the readout of the step takes the letters $l_j/\sqrt p$ of mean $L$, rows of letter "
        r"$l$ get $r = «r»$ and $c = «c»$ with $Y = \mathbb{E}[(y - Lh_0)^2]$ and $V = "
        r"\mathrm{Var}\,\sigma'$, and all the same $\gamma$; the uniform readout has $l = 1$."
    ),
    formulas=_OF_LETTERS,
    source=f"{_PAPER}, Appendix D; students that are not odd are derived here",
    status=Status.REPLICA,
)


@evidence("step-vocabulary", "exact", "letters scale the step")
def letters_formula() -> Finding:
    """A letter multiplies the step; all letters 1 give the uniform readout."""
    results: dict[str, bool] = {}
    for names in (("erf", "erf"), ("relu", "tanh")):
        student, teacher = pair = tuple(map(activation, names))
        uniform = spike_mapping(*pair)
        found = spike_mapping(*pair, letter=letter, mean_letter=mean_letter)
        h0, h1, h2 = (hermite_coefficient(student, k) for k in range(3))
        t0, t1 = (hermite_coefficient(teacher, k) for k in range(2))
        output = mean_letter * h0
        left = expect(teacher.expr**2, variable) - 2 * output * t0 + output**2 + noise
        slopes = expect(student.derivative**2, variable) - h1**2
        moments = {_H0: h0, H1: h1, _H2: h2, _T0: t0, T1: t1, _MEAN: mean_letter}
        moments |= {LABELS: left, SLOPES: slopes}
        stated = {name: formula.xreplace(moments) for name, formula in _OF_LETTERS.items()}
        norm = MAPPING["nu"].rhs.xreplace(moments)
        results |= {
            f"{'/'.join(names)}: r as stated": equal(
                found.spike_strength**2, (stated["r"] / NU) ** 2 * norm
            ),
            f"{'/'.join(names)}: c as stated": equal(found.bulk_variance, stated["c"]),
        }
        ones = {letter: sp.S.One, mean_letter: sp.S.One}
        for field in ("spike_strength", "bulk_variance", "alignment"):
            value, base = getattr(found, field), getattr(uniform, field)
            results[f"{'/'.join(names)}: {field} at letters 1"] = equal(value.xreplace(ones), base)
            if names[0] == "erf":
                scaled = base.xreplace({step_size: step_size * letter})
                results[f"erf/erf: {field} at s ã"] = equal(value, scaled)
    return identities_hold(results, "letters scale the step of odd students, and reduce to one")


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


@evidence("step-vocabulary", "simulation", "realised r, c, γ, also not odd students")
def realised_letters(dimension: int = 200, networks: int = 12, seed: int = 8) -> Finding:
    """r, c and γ of networks whose step has a vocabulary, against the map."""
    comparisons: list[Comparison] = []
    for arguments, letters, fractions in _LETTERS:
        model = SpikedRandomFeatures(**arguments)
        spikes = spikes_of_letters(
            model.student, model.teacher, step_size=model.step_size, alpha0=model.alpha0,
            noise_variance=model.noise_variance, letters=letters, fractions=fractions,
        )  # fmt: skip
        network = replace(network_of(model, dimension), readout=letters, fractions=fractions)
        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            layers = [
                network.train(child) for child in np.random.SeedSequence(seed).spawn(networks)
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


# ----------------------------------------------------------------------
# Claim: where the test errors come from that the authors' public notebook stores. They were made
# by an earlier state of the code beside them. Both of its differences from Results 3.1 and 3.3 are
# put back here, one at a time and together.


declare_claim(
    "public-notebook",
    title="The stored outputs of the authors' public notebook",
    statement=(
        r"The stored test errors (tanh, sin, $s = 3$, $\alpha_0 = 20$, $\lambda = 0.1$: .0485954, "
        r".0431181, .0380724, .0351115, .0333400 at $\alpha$ = .2, .9, 1.6, 2.3, 3) follow from "
        r"$c = 1 + s^2Y\,\mathrm{Var}\,\sigma'\,h_1^2/\alpha_0$, with a factor $h_1^2$ too many, "
        r"and $\vartheta = 0$. Results 3.1 and 3.3 give .0484829, .0425039, .0373113, .0343047, "
        r".0325182."
    ),
    source=f"derived here; on the public code of {_PAPER}",
    status=Status.DERIVED_HERE,
)

# Dimension of the random matrix whose spectrum the notebook averages over.
_DIMENSION = 2000


@evidence("public-notebook", "quadrature", "the four combinations of the two differences")
def stored_outputs() -> Finding:
    """Test errors of the four combinations against the stored ones.

    The notebook averages over the spectrum of one random matrix, whose average of H/S moves all
    five errors together. How much is fitted, one number for five values; how well the rest agrees
    decides, up to O(1/d).
    """
    pair = activation(PUBLIC_NOTEBOOK["student"]), activation(PUBLIC_NOTEBOOK["teacher"])
    energy = spiked_free_energy(*pair)
    mapping = spike_mapping(*pair)
    mappings = {"": mapping, "c with h1²": variant_mapping(mapping, pair[0])}
    kernels = {
        "": _kernel(energy, "as published"),
        "ϑ = 0": _kernel(without_overlap(energy), "without the overlap ϑ"),
    }
    errors: dict[str, list[float]] = {}
    for change, chosen in mappings.items():
        for other, kernel in kernels.items():
            name = " and ".join(filter(None, (change, other))) or "Results 3.1 and 3.3"
            errors[name] = [_solve(kernel, chosen, a).test_error for a in STORED_OUTPUTS]
    scatter = [
        _scatter(kernels["ϑ = 0"], mappings["c with h1²"], alpha) for alpha in STORED_OUTPUTS
    ]
    stored = np.array(list(STORED_OUTPUTS.values()))
    shape = np.array(scatter) / stored
    left: dict[str, float] = {}
    shifts: dict[str, float] = {}
    for name, values in errors.items():
        missed = stored / np.array(values) - 1
        shifts[name] = float(missed @ shape / (shape @ shape))
        left[name] = float(np.abs(missed - shifts[name] * shape).max())
    both = "c with h1² and ϑ = 0"
    alone = float(np.abs(np.array(errors[both]) / stored - 1).max())
    correct = errors["Results 3.1 and 3.3"]
    too_high = 100 * (stored / np.array(correct) - 1)
    others = min(value for name, value in left.items() if name != both)
    return Finding(
        left[both] <= 1 / _DIMENSION < 4 / _DIMENSION <= others and abs(shifts[both]) <= 3,
        f"with both differences the stored values come out to {100 * alone:.2f} %, and to "
        f"{100 * left[both]:.3f} % with a random spectrum of dimension {_DIMENSION} that is "
        f"{shifts[both]:.1f} standard deviations off; with one or none of them no such spectrum "
        f"brings them closer than {100 * others:.2f} %. The equations give "
        f"{', '.join(f'{x:.7f}' for x in correct)}; the stored values are {too_high.min():.1f} to "
        f"{too_high.max():.1f} % above",
        {
            "alpha": list(STORED_OUTPUTS), "stored": stored, "errors": errors,
            "standard_deviations_of_a_random_spectrum": scatter,
            "left_after_fitting_the_spectrum": left, "fitted_spectrum": shifts,
        },
    )  # fmt: skip


def _kernel(energy: SpikedFreeEnergy, title: str) -> Kernel:
    return lower(saddle_point_system(with_spectral_weight(energy), title))


def _scatter(kernel: Kernel, mapping: SpikeMapping, alpha: float) -> float:
    """Return the standard deviation of the test error over random spectra, to first order."""
    at = _solve(kernel, mapping, alpha)
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((400, 400)) / 20
    bulk = _point(mapping)["bulk_variance"] * np.linalg.eigvalsh(matrix @ matrix.T)
    terms = bulk / (PUBLIC_NOTEBOOK["ridge"] + at.V2_hat + at.V1_hat * bulk)
    # H/D are squares of the components of a random unit vector: variance 2, their sum is fixed.
    weight = math.sqrt(2 / _DIMENSION) * float(terms.std() / terms.mean())
    ends = [_solve(kernel, mapping, alpha, 1 + x * weight).test_error for x in (-1, 1)]
    return abs(ends[1] - ends[0]) / 2


def _point(mapping: SpikeMapping) -> dict[str, Any]:
    """Return the parameters of the kernel after the step of the notebook."""
    given = {
        step_size: sp.Rational(PUBLIC_NOTEBOOK["step_size"]),
        alpha0: sp.Rational(PUBLIC_NOTEBOOK["alpha0"]),
        noise: sp.S.Zero,
    }
    fields = ("spike_strength", "bulk_variance", "alignment", "orthogonal_alignment")
    spike = {name: float(getattr(mapping, name).xreplace(given).evalf(20)) for name in fields}
    known = {"beta": PUBLIC_NOTEBOOK["beta"], "ridge": PUBLIC_NOTEBOOK["ridge"]}
    return {**spike, **known, "noise_variance": 0.0}


def _solve(kernel: Kernel, mapping: SpikeMapping, alpha: float, weight: float = 1.0) -> Any:
    point: dict[str, Any] = {**_point(mapping), "alpha": alpha, str(spectral_weight): weight}
    return kernel.solve(**point)


_CORRECT = ("0.0484829", "0.0425039", "0.0373113", "0.0343047", "0.0325182")


@evidence(
    "public-notebook",
    "certified",
    "errors by Results 3.1 and 3.3, apart from the stored outputs",
    slow=True,
)
def notebook() -> Finding:
    """Test errors by Results 3.1 and 3.3; none of the stored outputs lies in their intervals."""
    require_flint()
    model = SpikedRandomFeatures(
        *(PUBLIC_NOTEBOOK[name] for name in ("student", "teacher")),
        **{name: PUBLIC_NOTEBOOK[name] for name in ("step_size", "alpha0", "beta")},
    )
    values: dict[str, Any] = {}
    apart = True
    for (alpha, stored), text in zip(STORED_OUTPUTS.items(), _CORRECT, strict=True):
        error = certified_point(model, alpha, PUBLIC_NOTEBOOK["ridge"])["test_error"]
        values[f"α = {alpha}"] = (error, text)
        apart = apart and bool(sp.Rational(repr(stored)) > error.upper * sp.Rational(1001, 1000))
    result = agreement(values, 6, "test errors", proven=NARROW)
    says = "stored outputs are" if apart else "not every stored output is"
    return Finding(
        result.passed and apart,
        f"{result.summary}; {says} proven to be more than 0.1 % above",
        result.details,
    )


evidence("public-notebook", "simulation", "the factor h1² is excluded by realised bulk variances")(
    realised_spike
)
