"""Claims about the ridge risk after one gradient step; evidence is in ``evidence_risk`` modules."""

from __future__ import annotations

import functools

from ..claims import Check, Claim, Deferred, EvidenceKind, Status
from ..evidence import proof

_BA = "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445"


def _exact(function: str, description: str) -> Check:
    return Check(EvidenceKind.EXACT, description, Deferred(__package__, "evidence_risk", function))


def _quadrature(function: str, description: str, *, slow: bool = False) -> Check:
    compute = Deferred(__package__, "evidence_risk", function)
    return Check(EvidenceKind.QUADRATURE, description, compute, slow)


_proof = functools.partial(proof, __package__, module="evidence_certified_signs")


def _simulation(function: str, description: str, *, slow: bool = False) -> Check:
    compute = Deferred(__package__, "evidence_risk_simulation", function)
    return Check(EvidenceKind.SIMULATION, description, compute, slow, shows_progress=slow)


_EQUIVALENT = Claim(
    identifier="ba-deterministic-equivalent",
    title="The ridge risk at any first layer follows from one effective ridge",
    statement=(
        r"For Gaussian features of covariance $\Sigma = \mu_1^2W^TW + \mu_{>1}^2$ and $c = "
        r"\mu_1\mu_1^*W^T\beta_*$ let $\nu > 0$ solve $\lambda_B = \nu(1 - \frac1n"
        r"\mathrm{tr}\,\Sigma(\Sigma + \nu)^{-1})$ and $D = d\lambda_B/d\nu$. Then "
        r"$$R + \Delta = \frac{Y - c^T(\Sigma+\nu)^{-1}c - \nu\,c^T(\Sigma+\nu)^{-2}c}{D},\qquad "
        r"E_{\mathrm{train}} = \Big(\frac{\lambda_B}{\nu}\Big)^2 (R + \Delta) ,$$ "
        r"and the minimum of the objective is $\frac{\lambda_B}{\nu}(Y - c^T(\Sigma+\nu)^{-1}c)$."
    ),
    source=f"{_BA}, section 4, for a step; deterministic equivalents, without error terms",
    status=Status.DERIVED_HERE,
    checks=(
        _quadrature("deterministic_equivalent", "four networks by integrals over the spectrum"),
        _quadrature("all_equivalents", "eleven networks by integrals over the spectrum", slow=True),
        _proof("equivalents", "integrals over the spectrum before the step", names=("1",)),
        _proof("equivalents", "the same for four networks", slow=True, names=("1", "4", "5", "9")),
        _simulation("gaussian_features_quick", "Gaussian features at d = 100, three rows"),
        _simulation("gaussian_features", "Gaussian features at d = 300, six rows", slow=True),
    ),
)

_CLOSED = Claim(
    identifier="ba-risk-closed-form",
    title="Before and after the step the risk is a rational function of one root of a quartic",
    statement=(
        r"With $s > \max(1, \beta)$, $\nu = \mu_1^2\big(\frac{(s-1)(s-\beta)}{s} - \kappa\big)$, "
        r"$H = \frac{s(s-\beta)}{s^2-\beta}$ and $x = \nu/\mu_1^2$, $$B = \mu_{>1}^{*2} + "
        r"\frac{\mu_1^{*2}}{s-1}\Big\{\kappa\Big[1 - \frac{\theta_2^2}{s+\theta_1^2}\Big] + xH"
        r"\Big[1 - \frac{\theta_2^2(2s-1+\theta_1^2)}{(s+\theta_1^2)^2}\Big]\Big\},\qquad R = "
        r"\frac{B + \Delta}{D} - \Delta ,$$ with $\theta_1 = \theta_2 = 0$ before the step. "
        r"$\theta_1^2 = (\eta\mu_1)^2(\mu_1^{*2} + Y/\alpha_0)$ holds the label noise in $Y$, and "
        r"$\eta$ is for the gradient of $\frac{1}{2n}\sum(f-y)^2$: that of $\frac1n\sum(f-y)^2$ "
        r"is a step of $2\eta$."
    ),
    source=f"derived here; {_BA} give the limit as a system of equations",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("algebra", "each step from Woodbury's identity to the rational functions"),
        _quadrature("reference_values", "risk columns of 13 networks in 40-digit arithmetic"),
        _exact("loss_conventions", "both losses, and the label noise in the spike"),
        proof(__package__, "risks", "risks of three networks", count=3),
        proof(__package__, "risks", "risks of 13 networks", slow=True),
        _simulation("networks_quick", "networks with full gradients at d = 120, two rows"),
        _simulation("networks", "networks with full gradients at d = 400, nine rows", slow=True),
    ),
)

_PROPERTIES = Claim(
    identifier="ba-ridge-properties",
    title="The step never hurts, and longer steps help more",
    statement=(
        r"$R_0 \ge R_{GD} \ge B_{GD} \ge \|P_{>1}f_*\|^2$; $\delta = R_0 - R_{GD} = 0$ only for "
        r"$\mu_1\mu_1^*\eta = 0$; $\delta$ increases strictly with $\eta$ at every $(\alpha, "
        r"\beta, \lambda)$. Limits: the share $\cos^2(u, \beta_*)$ of the linear bias for $\eta "
        r"\to \infty$ (formal), $\delta = O(1/\beta)$, $\delta \simeq 2\mu_1^2\mu_1^{*2}"
        r"\theta_2^2/\lambda_B$, and a closed form for $\alpha \to \infty$."
    ),
    source=f"{_BA}, section 4, for $n/d \\to \\infty$; in general derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("properties", "identities of rational functions, and signs of their terms"),
        _proof("chain", "one network: the chain of inequalities, and δ at five η", count=1),
        _proof("chain", "the chain for 13 networks, and δ at five η of one", slow=True),
    ),
)

_OPTIMUM = Claim(
    identifier="ba-optimal-ridge",
    title="The best penalty is positive for N < n and a root of one polynomial",
    statement=(
        r"$B$ and $D$ increase with $\nu$, and $dB/d\nu = O(\nu)$, so that for $N < n$ the best "
        r"penalty is positive as soon as $B + \Delta > 0$ at $\nu = 0$. It solves "
        r"$\frac{d}{ds}\frac{B+\Delta}{D} = 0$, a polynomial equation in $s$."
    ),
    source=f"derived here, from the risk of {_BA}",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("optimum_property", "both derivatives as sums of positive terms"),
        _quadrature("optimal_values", "three step sizes in 40-digit arithmetic, and both ends"),
        _proof("best_penalties", "a minimum within 0.1 % of three penalties; smaller than at 0"),
    ),
)

_PEAK = Claim(
    identifier="ba-interpolation-peak",
    title="The step lowers the peak at n = N and does not remove it",
    statement=(
        r"At $n = N$, for $\lambda_B \to 0$, $$R + \Delta \simeq \frac{B|_{\nu=0} + \Delta}"
        r"{2\sqrt{\lambda_B\tau_1}},\qquad \tau_1 = \tfrac1N\mathrm{tr}\,\Sigma^{-1},$$ before "
        r"and after the step, which enters through $B$ alone."
    ),
    source=f"derived here, from the risk of {_BA}",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("peak_leading_order", "penalty and D to leading order in ν"),
        _quadrature("peak_values", "leading order against the risk down to λ = 1e-12"),
        proof(__package__, "peak", "the step lowers a peak of 4420 at a penalty of 1e-10"),
    ),
)

_RIDGELESS = Claim(
    identifier="ba-ridgeless",
    title="Without a penalty the risk has a closed form on both sides of n = N",
    statement=(
        r"For $\lambda \to 0$, $s \to \max(s_A, s_B)$: for $N < n$ the larger root $s_A$ of $s^2 - "
        r"(1 + \beta + \kappa)s + \beta$, where $\nu = 0$; for $N > n$ the larger root $s_B$ of "
        r"$\alpha s^2 - \beta(\alpha + 1 + \kappa)s + \beta^2$, where the training error vanishes. "
        r"$D$ is needed in both."
    ),
    source=f"derived here, from the risk of {_BA}",
    status=Status.DERIVED_HERE,
    checks=(
        _quadrature("ridgeless_values", "limits against a penalty of 1e-25, 30 digits"),
        _proof("ridgeless", "risks and training errors of two networks, by the closed form"),
    ),
)

CLAIMS = (_EQUIVALENT, _CLOSED, _PROPERTIES, _OPTIMUM, _PEAK, _RIDGELESS)
