"""Claims about equivalence, kernels, large steps and several steps."""

from __future__ import annotations

import functools

from ..claims import Check, Claim, Deferred, EvidenceKind, Status
from ..evidence import proof

_SOURCE = "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445"


def _check(kind: EvidenceKind, function: str, description: str, *, slow: bool = False) -> Check:
    module = "evidence_large_simulation" if kind is EvidenceKind.SIMULATION else "evidence_large"
    return Check(kind, description, Deferred(__package__, module, function), slow)


_proof = functools.partial(proof, __package__, module="evidence_certified_signs")


_EXACT, _QUADRATURE, _SIMULATION = (
    EvidenceKind.EXACT,
    EvidenceKind.QUADRATURE,
    EvidenceKind.SIMULATION,
)

_EQUIVALENCE = Claim(
    identifier="ba-gaussian-equivalence",
    title="Features after a step of order one are equivalent to Gaussian ones",
    statement=(
        r"For odd, centred $\sigma$ with three bounded derivatives and a linear part, a Lipschitz "
        r"teacher, a fixed number of steps with $\eta = \Theta(1)$, independent data for the "
        r"readout and $\lambda > 0$, the ridge risk with features $\sigma(W^\top x)/\sqrt N$ "
        r"tends to that with $(\mu_1 W^\top x + \mu_{>1}\xi)/\sqrt N$, and $R \ge \|P_{>1}f_*\|^2$."
    ),
    source=f"{_SOURCE}; quoted, supported here by simulations; the paper's proof is not repeated",
    status=Status.THEOREM,
    checks=(
        _check(_EXACT, "assumptions", "verdicts on its assumptions for activations known well"),
        _check(_SIMULATION, "equivalence", "networks against Gaussian features on their weights"),
    ),
)

_FAILURE = Claim(
    identifier="ba-equivalence-failure",
    title="Where equivalence fails as the step grows (heuristic)",
    statement=(
        r"For $\eta = N^a$ the degree $k$ of $\sigma$ adds a feature of rank one and amplitude "
        r"$\eta^k N^{-(k-1)/2}$: it is visible from $a = (k-1)/(2k)$ on, which is $1/4$ for $k = 2$"
        r" and $1/3$ for odd $\sigma$ with $\mu_3 \ne 0$. A count of powers, no theorem."
    ),
    source="derived here, heuristic",
    status=Status.CONJECTURE,
    checks=(
        _check(_EXACT, "failure_exponents", "exponents of the first harmful degree"),
        _proof("harmful_degrees", "the first degree with μ_k ≠ 0, k > 1, of seven students"),
        _check(
            _SIMULATION, "growing_steps", "gap between networks and Gaussian features", slow=True
        ),
    ),
)

_KERNEL = Claim(
    identifier="ba-kernel-lower-bound",
    title="Kernels learn the linear part only",
    statement=(
        r"In the proportional limit $\inf_\lambda R \ge \|P_{>1}f_*\|^2$ for the kernels of the "
        r"initial network, the conjugate and the neural tangent kernel."
    ),
    source=(
        f"{_SOURCE}; quoted. Checked for the conjugate kernel, through the closed form of its risk;"
        " nothing is checked for the tangent kernel"
    ),
    status=Status.THEOREM,
    checks=(
        _check(_QUADRATURE, "kernel_lower_bound", "initial risks at the optimal ridge penalty"),
        _proof("kernel_bound", "initial risks of one network, and near three optima", count=1),
        _proof("kernel_bound", "the same for 13 networks at their penalties", slow=True),
    ),
)

_TAU = Claim(
    identifier="ba-tau-star",
    title="What neurons of one amplitude represent",
    statement=(
        r"With $J(h) = \mathbb{E}_t(\sigma_*(t) - \mathbb{E}_\xi\sigma(ht + \xi))^2$ and "
        r"$\tau_* = \inf_h J(h)$: $\tau_* = 0$ at $h = \sqrt3$ for erf on erf, and "
        r"$\tau_* = 9.4526506632769\ldots\cdot10^{-5}$ at $h = 1.5882679509291\ldots$ for tanh on "
        r"tanh, where the best linear error is 290 times larger."
    ),
    source=f"{_SOURCE}, section 4.2; numbers and closed forms derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _check(_EXACT, "closed_forms", "closed forms of J for erf, sin, relu; τ* = 0 of erf"),
        _check(_QUADRATURE, "tau_table", "ten pairs to 16 digits; closed forms to 25"),
        proof(__package__, "amplitudes", "τ* = 0 of erf on erf is the global minimum", count=1),
        proof(__package__, "amplitudes", "τ* of ten pairs", slow=True),
    ),
)

_LARGE = Claim(
    identifier="ba-large-steps",
    title="A step of order √N beats every kernel",
    statement=(
        r"For bounded $\sigma$, $\eta = \Theta(\sqrt N)$ and $n^{\varepsilon-1} < \lambda_B/N < "
        r"n^{-\varepsilon}$ there are $\alpha_*$ and $C$ with $R \le 16\,\tau_* + "
        r"C(\sqrt{\tau_*/\alpha} + 1/\alpha)$ for $\alpha > \alpha_*$. The constants are not "
        r"known; where $16\,\tau_* < \|P_{>1}f_*\|^2$ the risk is below that of kernels for large "
        r"$\alpha$."
    ),
    source=(
        f"{_SOURCE}, theorem on large steps; quoted. Checked are which pairs it covers, and the "
        "trends of simulated risks; not the constants"
    ),
    status=Status.THEOREM,
    checks=(
        _check(_QUADRATURE, "pairs_beyond_kernels", "which of ten pairs the bound decides"),
        _proof("beyond_kernels", "16 τ* is below the linear error for erf on erf", count=1),
        _proof("beyond_kernels", "on which side it is for ten pairs, as far as τ* is", slow=True),
        _check(_SIMULATION, "below_kernels", "erf on erf, η = √N against η = 1", slow=True),
    ),
)

_SEVERAL = Claim(
    identifier="ba-several-steps",
    title="Several steps of order one are one longer step",
    statement=(
        r"For a fixed number $t$ of steps with $\eta = \Theta(1)$ all results of one step hold "
        r"with $\eta \to t\eta$, and with fresh data in each step also $\alpha_0 \to t\alpha_0$. "
        r"Corrections are of relative order $t\eta/\sqrt N$; those of the linear predictor are "
        r"$u_t = \eta\mu_1\sum_{j<t}(1 - cS)^j X^\top y/n$ with $c = \eta\mu_1^2/\sqrt N$."
    ),
    source=f"derived here; equivalence for a fixed number of steps: {_SOURCE}",
    status=Status.DERIVED_HERE,
    checks=(
        _check(_EXACT, "several_steps", "sizes of the spike at c = 0; t = 1 for every c"),
        _check(_SIMULATION, "repeated_steps", "spikes of networks after 4 steps"),
    ),
)

CLAIMS = (_EQUIVALENCE, _FAILURE, _KERNEL, _TAU, _LARGE, _SEVERAL)
