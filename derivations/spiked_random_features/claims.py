"""Claims about spiked random features; their evidence is computed in the ``evidence_`` modules."""

from __future__ import annotations

from ..claims import Check, Claim, Deferred, EvidenceKind, Status

_PAPER = "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980"


def _exact(function: str, description: str, *, slow: bool = False) -> Check:
    compute = Deferred(__package__, "evidence_exact", function)
    return Check(EvidenceKind.EXACT, description, compute, slow)


def _quadrature(function: str, description: str, *, slow: bool = False) -> Check:
    compute = Deferred(__package__, "evidence_quadrature", function)
    return Check(EvidenceKind.QUADRATURE, description, compute, slow)


def _simulation(function: str, description: str, *, slow: bool = False) -> Check:
    compute = Deferred(__package__, "evidence_simulation", function)
    return Check(EvidenceKind.SIMULATION, description, compute, slow)


def _correlated(
    kind: EvidenceKind, function: str, description: str, *, slow: bool = False
) -> Check:
    compute = Deferred(__package__, "evidence_correlated_norms", function)
    return Check(kind, description, compute, slow)


_MAPPING = Claim(
    identifier="cui-3.1",
    title="One giant gradient step makes spiked random features",
    statement=(
        r"For an odd student $\sigma$ and a per-neuron step $s$ on $n_0 = \alpha_0 d$ samples the "
        r"first layer becomes $w_j = \sqrt{c}\,u_j + r\,v$ with $u_j$ uniform on the sphere, "
        r"$|v| = 1$ and $v\cdot\theta = \gamma$, where, with "
        r"$h_1 = \mathbb{E}\,\sigma'$, $h^*_1 = \mathbb{E}\,\sigma_*'$, $Y = \mathbb{E}\,y^2$ and "
        r"$\nu^2 = h_1^{*2} + Y/\alpha_0$, "
        r"$$r = s\,h_1\,\nu,\quad \gamma = h^*_1/\nu,\quad "
        r"c = 1 + \frac{s^2 Y}{\alpha_0}\left(\mathbb{E}\,\sigma'^2 - h_1^2\right).$$"
    ),
    source=f"{_PAPER}, Result 3.1, equations (9)-(11)",
    status=Status.REPLICA,
    checks=(
        _exact("mapping_relations", "derived r, c, γ against the formulas, γ² + ρ² = 1"),
        _exact("stein_identity", "E[z f] = E[f'] for students and teachers"),
        _quadrature("mapping_values", "values of r, c, γ of three models to 25 digits"),
        _simulation("realised_spike", "realised r, c, γ of networks of two sizes"),
    ),
)

_EQUIVALENCE = Claim(
    identifier="cui-3.2",
    title="Conditional Gaussian equivalence",
    statement=(
        r"Given $\kappa = v\cdot x$, linear readouts do not distinguish the features from "
        r"$\mu_0(\kappa)\,\mathbf{1} + \mu_1(\kappa)\,Bx + \mu_2(\kappa)\,\xi$ with "
        r"$\xi \sim \mathcal{N}(0, I_p)$, where, for $u \sim \mathcal{N}(0, c)$, "
        r"$$\mu_0 = \mathbb{E}\,\sigma(r\kappa + u),\quad "
        r"\mu_1 = \mathbb{E}\,\sigma'(r\kappa + u),\quad "
        r"\mu_2^2 = \mathbb{E}\,\sigma(r\kappa + u)^2 - \mu_0^2 - c\,\mu_1^2 .$$"
    ),
    source=f"{_PAPER}, Result 3.2, equations (14)-(15)",
    status=Status.REPLICA,
    checks=(
        _exact("conditional_coefficients", "closed forms of μ0, μ1, μ2² obey their relations"),
        _simulation(
            "conditional_features", "conditional mean, variance and covariances at a finite matrix"
        ),
    ),
)

_ERRORS = Claim(
    identifier="cui-3.3",
    title="Test and training error after one giant step",
    statement=(
        r"The ridge readout of spiked random features has, for $d \to \infty$, the test error "
        r"$\mathbb{E}_\kappa\,\mathrm{err}(\kappa) - \Delta$ and the training error "
        r"$\mathbb{E}_\kappa\,\mathrm{err}(\kappa)/(1 + V(\kappa))^2$ with "
        r"$V = \mu_1^2 V_1 + \mu_2^2 V_2$, $C = \mu_0 m + \mu_1\kappa\vartheta$ and "
        r"$\mathrm{err} = T_2 - 2T_0C - 2\mu_1\psi T_1 + C^2 + \mu_1^2q_1 + \mu_2^2q_2$, at the "
        r"stationary point of the free energy in its 13 variables. There "
        r"$$\mathrm{train} + \frac{\lambda\beta}{\alpha}\,q_2 = \mathbb{E}_\kappa\,"
        r"\frac{T_2 - T_0C - \mu_1\psi T_1}{1 + V} = \frac{2\beta}{\alpha}\,f .$$"
    ),
    source=f"{_PAPER}, Result 3.3; the free energy and its value are derived here",
    status=Status.REPLICA,
    checks=(
        _exact("published_equations", "stationarity of the free energy gives the 13 equations"),
        _exact("energy_identity", "free energy, regularised loss and residual form agree"),
        _quadrature("quick_conditions", "the 13 conditions at A3 to 30 digits, by SymPy alone"),
        _quadrature(
            "other_conditions", "the same at A4, with noise and β = 1/2", slow=True
        ),
        _quadrature("reference_values", "206 reference values by the float kernel"),
        _quadrature("quick_digits", "25 digits of A1, A3 and A8"),
        _quadrature("all_digits", "25 digits of all reference values", slow=True),
        _simulation("quick_networks", "errors of small networks, with p ≠ d and with noise"),
        _simulation("networks", "errors of networks of two sizes", slow=True),
        _simulation(
            "spiked_features", "errors and overlaps of spiked random features of two sizes",
            slow=True,
        ),
    ),
)  # fmt: skip

_STRUCTURE = Claim(
    identifier="block-structure",
    title="The saddle point is two unknowns and two linear systems",
    statement=(
        r"The equations solve in three blocks: $(V_1, V_2)$ by Newton's method, then $(m, "
        r"\vartheta)$ and $(q_1, q_2)$, both linear; all others follow explicitly. With "
        r"$V \mapsto G(V)$ the first block, $\partial G/\partial V = R\,J$, where "
        r"$R_{ij} = \mathbb{E}[D^{[i=1]+[j=1]}/S^2]$ and "
        r"$J_{ij} = \frac{\alpha}{\beta}\,\mathbb{E}_\kappa[\mu_i^2\mu_j^2/(1+V)^2]$. If student "
        r"and teacher are odd, every sum over $\kappa$ is even."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("structure", "blocks, their cores and their linearity; parity of the sums"),
        _exact("jacobian", "R and J are the derivatives of the equations"),
    ),
)

_UNSPIKED = Claim(
    identifier="unspiked-limit",
    title="Without a step: plain random features, and how they are reached",
    statement=(
        r"At $r = 0$, $c = 1$ the equations are those of plain random features, "
        r"$\hat V_i = \frac{\alpha}{\beta}\frac{\mu_i^2}{1+V}$, "
        r"$\psi = \alpha V_1 h_1h^*_1/(1+V)$, do not depend on $\gamma$, and no $\alpha$, "
        r"$\beta$, $\lambda$ beats the best linear predictor, $\|P_{>1}f_*\|^2$. The limits "
        r"$s \to 0$ and $d \to \infty$ do not commute: for $s \to 0$ after $d \to \infty$ the "
        r"errors become those of plain random features of the target whose linear part "
        r"$h^*_1$ is reduced to $\sqrt{1-\gamma^2}\,h^*_1$."
    ),
    source=f"{_PAPER}, Result 3.3 at zero step; the order of limits is derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("unspiked_equations", "the equations at r = 0, c = 1"),
        _exact("linear_bound", "the linear bound is the error of the best affine predictor"),
        _quadrature("unspiked_values", "A8, its bound, and no dependence on γ"),
        _quadrature("order_of_limits", "r → 0 at three alignments"),
    ),
)

_INVARIANCES = Claim(
    identifier="invariances",
    title="What the errors do not depend on",
    statement=(
        r"Test and training error are the same for $(r, \gamma)$ and $(-r, -\gamma)$, and for "
        r"$(\sigma, \lambda)$ and $(t\sigma, t^2\lambda)$ with any $t \ne 0$."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("invariances", "the free energy and the errors under both transformations"),
        _quadrature("invariances", "pairs of models, with a student of the user's"),
    ),
)

_BOUNDS = Claim(
    identifier="bounds",
    title="Bounds of the test error",
    statement=(
        r"With $P_W$ the projection of $L^2(\kappa)$ on the span of $W$, "
        r"$$\mathrm{test} \ge L = \mathbb{E}\,\sigma_*^2 - |P_{\mu_0,\,\kappa\mu_1}T_0|^2 - "
        r"\frac{\mathbb{E}_\kappa[\mu_1T_1]^2}{\mathbb{E}_\kappa[\mu_1^2]}$$ "
        r"for all $\alpha$, $\beta$, $\lambda$, and "
        r"$\mathrm{test} \le U = \mathbb{E}\,\sigma_*^2 - |P_{\mu_0}T_0|^2$ at the best "
        r"$\lambda$, which for $\alpha \to \infty$ goes to a limit between the two."
    ),
    source=f"{_PAPER}, equations (26)-(28); the limit is derived here",
    status=Status.REPLICA,
    checks=(
        _exact("lower_bound", "the two steps of the proof of test ≥ L"),
        _quadrature("bounds", "L, U and the limit of four models; test ≥ L at 52 points of each"),
    ),
)

_CORRELATED_NORMS = Claim(
    identifier="correlated-norms",
    title="The step correlates norms and overlaps of the rows, which changes the limit",
    statement=(
        r"For an odd student the bulk row $b$ of a trained neuron has "
        r"$|b|^2 = c + 2a\,w\cdot v + \dots$ with $a = s\,h_3\,\nu$, $h_3 = "
        r"\mathbb{E}[\sigma\,\mathrm{He}_3]$ and $w$ the initial row. In Result 3.3 this replaces "
        r"$\kappa\mu_1\vartheta$ by $(\kappa\mu_1 + a\chi)\,\vartheta$ with "
        r"$\chi(\kappa) = \mathbb{E}\,\sigma''(r\kappa + u)$, up to terms of order $c - 1$. The "
        r"errors of networks follow it; those of Results 3.1-3.3 as published, with $a = 0$, "
        r"differ from them in the limit $d \to \infty$ unless $h_3 = 0$ or $\chi \propto \mu_0$."
    ),
    source="derived here; a correction to Result 3.1",
    status=Status.DERIVED_HERE,
    checks=(
        _correlated(EvidenceKind.EXACT, "identities", "the steps of the derivation; a = 0"),
        _correlated(EvidenceKind.SIMULATION, "measured_norms", "norms against overlaps"),
        _correlated(EvidenceKind.SIMULATION, "quick_errors", "errors of small networks"),
        _correlated(EvidenceKind.SIMULATION, "errors", "errors at two sizes", slow=True),
    ),
)

CLAIMS = (
    _MAPPING,
    _EQUIVALENCE,
    _ERRORS,
    _STRUCTURE,
    _UNSPIKED,
    _INVARIANCES,
    _BOUNDS,
    _CORRELATED_NORMS,
)
