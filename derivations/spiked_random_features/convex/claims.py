"""Claim: convex readouts, by the envelopes of their losses."""

from __future__ import annotations

from typing import Any

import sympy as sp

from ....symbolic.losses.convex_losses import without_cases
from ...claims import Finding, Status, declare_claim, evidence
from ..model import SpikedRandomFeatures
from ..vocabulary.model import VocabularyFeatures
from .losses import convex_loss, x
from .readout import ConvexReadout
from .smoothing import smoothed_envelope

_PAPER = "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980"

declare_claim(
    "cui-convex-loss",
    title="Any convex loss enters through its Moreau envelope",
    statement=(
        r"The readout that minimises $\sum_\mu \ell(y_\mu, \varphi_\mu\cdot w/\sqrt p) + "
        r"\tfrac\lambda2|w|^2$ has the free energy of the ridge readout with "
        r"$\tfrac12\langle\mathrm{err}/(1+V)\rangle$ replaced by "
        r"$\langle\mathbb{E}\,M(y, \omega; V)\rangle$, $M(y,\omega;V) = \min_x[\ell(y,x) + "
        r"(x-\omega)^2/2V]$. At its saddle point "
        r"$\tfrac1n\min_w[\dots] = \langle\mathbb{E}\,\ell(y,\mathrm{prox})\rangle + "
        r"\tfrac{\lambda\beta}{2\alpha}q_2$. The same holds for several letters, with the cost of "
        r"their order parameters in closed form."
    ),
    source=f"{_PAPER}, appendix C; the free energy is derived here",
    status=Status.REPLICA,
)

_PIECEWISE = (("huber(1)", 0), ("absolute", 0), ("hinge", 1), ("relu(1 - y*x)**2/2", 1))


@evidence("cui-convex-loss", "exact", "E M of losses with kinks obeys its two equations")
def smoothing() -> Finding:
    """The heat equation in the variance, identically in all symbols."""
    a = sp.Symbol("a", real=True)
    v, step = sp.symbols("v V", positive=True)
    left = {}
    for name, label in _PIECEWISE:
        loss = without_cases(convex_loss(name).at_label(label), x)
        found = smoothed_envelope(loss, x, a, v, step)
        assert found is not None
        left[name] = str(sp.expand(found.diff(v) - found.diff(a, 2) / 2))
    return Finding(
        all(value == "0" for value in left.values()),
        f"2 ∂_v E M = ∂_a² E M identically for {len(left)} losses",
        {"differences": left},
    )


# (loss, labels, student, teacher, Δ, β) at r = 1.2, c = 1.1, γ = 0.9, α = 2, λ = 0.1. Trapezoidal
# sums and Anderson iteration in double precision, independent of giantstep; digits that are stable
# under refinement.
REFERENCE: tuple[tuple[tuple[Any, ...], dict[str, float]], ...] = (
    (("huber(0.3)", "teacher", "erf", "sin", 0.1, 1.0),
     {"V1": 2.28261272038728, "V2": 3.7513308205564, "q1": 0.262761756528336,
      "q2": 0.2713406628312, "m": 1.01496522374221, "theta": 0.0218837087825093,
      "psi": 0.274768869799319, "test_error": 0.202515821262693 - 0.1,
      "training_loss": 0.0371129245649489}),
    (("absolute", "teacher", "erf", "sin", 0.1, 1.0),
     {"V1": 0.84340581399383, "V2": 1.71619759892321, "q1": 0.51094705504995,
      "q2": 0.771988589095304, "m": 1.00769958191858, "theta": 0.0334131383231752,
      "psi": 0.339448513416048, "test_error": 0.269442627466183 - 0.1,
      "training_loss": 0.188582170275406}),
    (("logistic", "sign", "erf", "sign", 0.0, 1.0),
     {"V1": 6.213532151, "V2": 7.305617522, "q1": 3.089097037, "q2": 1.968391332,
      "m": 6.267658815, "theta": -0.00594527529, "psi": 0.855164585959,
      "test_error": 0.12589485917, "training_loss": 0.153103254139}),
    (("hinge", "sign", "tanh", "sign", 0.0, 0.7),
     {"V1": 3.35703523119, "V2": 4.53977324661, "q1": 3.37841352864, "q2": 3.18382762345,
      "m": 3.98037357679, "theta": 0.00155050113, "psi": 0.785602402339,
      "test_error": 0.140209568645, "training_loss": 0.0902514645237}),
)  # fmt: skip
_TOLERANCE, _SMALLEST = 2e-9, 0.01


@evidence(
    "cui-convex-loss", "quadrature", "four losses against values computed independently", slow=True
)
def reference_values() -> Finding:
    """Solutions of four losses against digits of independent code."""
    deviations: dict[str, float] = {}
    for case, wanted in REFERENCE:
        found = _readout(case).solve(alpha=2, ridge=0.1)
        for name, value in wanted.items():
            # Small values have fewer digits: they are given to 11 decimals.
            scale = max(abs(value), _SMALLEST)
            deviations[f"{case[0]} {name}"] = abs(getattr(found, name) - value) / scale
    worst = max(deviations.values())
    return Finding(
        worst <= _TOLERANCE,
        f"{len(deviations)} values of {len(REFERENCE)} losses: off by at most {worst:.1e} relative",
        {"deviations": deviations},
    )


def _of_two_letters(loss: str) -> ConvexReadout:
    classify = loss == "hinge"
    model = VocabularyFeatures.from_parameters(
        "tanh", "sin", spike_strengths=[1.2, -0.6], bulk_variances=[1.1, 1.02],
        fractions=[0.4, 0.6], biases=[0.0, 0.4], alignment=0.9,
        noise_variance=0.0 if classify else 0.1,
    )  # fmt: skip
    return model.with_loss(loss, labels="sign" if classify else "teacher", width=200)


def _readout(case: tuple[Any, ...], **changes: Any) -> ConvexReadout:
    loss, labels, student, teacher, noise, beta = case
    features = SpikedRandomFeatures.from_parameters(
        student,
        teacher,
        spike_strength=1.2,
        bulk_variance=1.1,
        alignment=0.9,
        beta=beta,
        noise_variance=noise,
    )
    return ConvexReadout(features, loss, labels, **changes)


@evidence("cui-convex-loss", "quadrature", "the square loss against the ridge readout", slow=True)
def square_loss() -> Finding:
    """The same numbers on two ways: closed forms of the ridge readout, and the envelope."""
    readout = _readout(("square", "teacher", "erf", "sin", 0.1, 1.0))
    deviations = {}
    for alpha, ridge in ((0.5, 1e-3), (1.0, 0.1), (3.0, 1.0)):
        ours, ridge_readout = (
            readout.solve(alpha=alpha, ridge=ridge),
            readout.features.solve(alpha=alpha, ridge=ridge),
        )
        for name in ("test_error", "m", "psi", "q1", "q2", "V1", "V2"):
            value = getattr(ours, name) / getattr(ridge_readout, name) - 1
            deviations[f"{name} at alpha={alpha:g}"] = abs(value)
    worst = max(deviations.values())
    return Finding(
        worst <= _TOLERANCE,
        f"{len(deviations)} values at three points: off by at most {worst:.1e} relative",
        {"deviations": deviations},
    )


@evidence(
    "cui-convex-loss",
    "simulation",
    "Huber, logistic and hinge readouts at d = 200, also of two letters",
    slow=True,
)
def simulated_readouts() -> Finding:
    """Test errors of minimisers at finite size, theory with the correction for that width."""
    distances = {}
    readouts = {case[0]: _readout(case, width=200) for case in (REFERENCE[0][0], REFERENCE[2][0])}
    readouts |= {f"{loss}, two letters": _of_two_letters(loss) for loss in ("huber(0.3)", "hinge")}
    for case, readout in readouts.items():
        theory = readout.solve(alpha=2, ridge=0.1)
        runs = readout.simulate(200, alpha=[2.0], ridge=0.1, seeds=20, progress=False)
        for name in ("test_error", "training_loss"):
            values = runs[name].to_numpy().ravel()
            error = values.std(ddof=1) / len(values) ** 0.5
            distances[f"{case} {name}"] = float((values.mean() - getattr(theory, name)) / error)
    worst = max(map(abs, distances.values()))
    return Finding(
        worst <= 4,
        f"{len(distances)} means of 20 readouts at d = 200: at most {worst:.1f} standard errors",
        {"standard errors": distances},
    )
