"""Claim: where the test errors come from that the authors' public notebook stores.

They were made by an earlier state of the code beside them. Both of its differences from Results 3.1
and 3.3 are put back here, one at a time and together.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy as sp

from ...ball_library import require_flint
from ...symbolic.expressions.activations import activation
from ..certificates.agreement import agreement
from ..claims import Finding, Status, declare_claim, evidence
from ..first_gradient.spike_mapping import SpikeMapping, alpha0, noise, spike_mapping, step_size
from ..kernels.kernel import Kernel
from ..kernels.lower import lower
from .claims_limits import NARROW, certified_point
from .claims_mapping import realised_spike
from .derive import saddle_point_system
from .model import SpikedRandomFeatures
from .physics import SpikedFreeEnergy, spiked_free_energy
from .published import (
    PUBLIC_NOTEBOOK,
    STORED_OUTPUTS,
    spectral_weight,
    variant_mapping,
    with_spectral_weight,
    without_overlap,
)

_PAPER = "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980"

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
