"""Claims about spiked random features; their evidence is computed in the ``evidence_`` modules."""

from __future__ import annotations

import functools

from ..claims import Check, Claim, Deferred, EvidenceKind, Status
from ..evidence import proof
from .convex.claims import CLAIMS as CONVEX_CLAIMS
from .spectrum.claims import CLAIMS as SPECTRUM_CLAIMS
from .vocabulary.claims import CLAIMS as VOCABULARY_CLAIMS

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


_proof = functools.partial(proof, __package__, module="evidence_certified_limits")


def _correlated(
    kind: EvidenceKind, function: str, description: str, *, slow: bool = False
) -> Check:
    compute = Deferred(__package__, "evidence_correlated_norms", function)
    return Check(kind, description, compute, slow)


def _stretched(kind: EvidenceKind, function: str, description: str, *, slow: bool = False) -> Check:
    compute = Deferred(__package__, "evidence_stretched_rows", function)
    return Check(kind, description, compute, slow)


def _at_finite_size(
    kind: EvidenceKind, function: str, description: str, *, slow: bool = False
) -> Check:
    compute = Deferred(__package__, "evidence_finite_size", function)
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
        proof(__package__, "spikes", "r, c, γ of three models"),
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
        _proof(
            "coefficients",
            "μ0, μ1, μ2² of tanh at one κ; μ1 as E u σ/c and as E σ'",
            students=("tanh",),
            nodes=("0.7",),
        ),
        _proof(
            "coefficients", "the same for four students at two κ, two with closed forms", slow=True
        ),
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
        proof(__package__, "errors", "one saddle point in a box, its errors in intervals: A1"),
        proof(__package__, "errors", "the same for all reference models", slow=True, names=None),
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
        proof(__package__, "without_a_step", "intervals by two systems of equations overlap"),
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
        _proof("invariances", "intervals of the errors meet, for one pair of each", slow=True),
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
        _proof(
            "bounds", "L, U and the limit of four models; test > L at one point of each", slow=True
        ),
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
        _proof(
            "correlated_norms", "the equations with a ≠ 0 have other errors: one pair", slow=True
        ),
    ),
)

_STRETCHED_ROWS = Claim(
    identifier="stretched-rows",
    title="The step stretches the rows of students that are not odd, which changes the limit",
    statement=(
        r"With $h_2 = \mathbb{E}[\sigma\,\mathrm{He}_2] \ne 0$ bulk rows after the step are "
        r"$b = \sqrt c\,(1 + T)u$ in the plane of the spike $v$ and of the teacher's direction "
        r"$\zeta$ across it, $T = s\,h_2\sqrt{c_0}\,A'/c$ with $\sqrt{c_0} = 1 + "
        r"s\,h_2(h^*_0 - h_0)$. With $\tilde y = y - h_0$, $t = \theta\cdot x$ and $e$ the "
        r"direction of the spike across $\theta$, $A'_{\theta\theta} = h^*_2$, $A'_{\theta e} = "
        r"\mathbb{E}[\tilde y^2t]/\sqrt{\alpha_0\mathbb{E}\,\tilde y^2}$ and $A'_{ee} = "
        r"\mathbb{E}\,\tilde y^3/(\alpha_0\mathbb{E}\,\tilde y^2)$. In Result 3.3 "
        r"$\kappa\mu_1\vartheta$ becomes $\kappa\mu_1((1 + T_{vv})\vartheta + T_{v\zeta}\psi)$, "
        r"the overlap $\psi$ that meets the labels becomes $k\cdot(\vartheta, \psi)$ with $k = "
        r"(T_{v\zeta}, 1 + T_{\zeta\zeta})$, and overlaps cost $(\vartheta^2 + \psi^2)/(2\beta c\,"
        r"\mathbb{E}[1/S]) + \hat V_1(k\cdot(\vartheta, \psi))^2/2$, up to terms of order "
        r"$c - c_0$. The errors of networks follow it; for $\alpha_0 = \infty$ only "
        r"$1 + T_{vv} = 1 + s\,h_2h^*_2/\sqrt c$ is left."
    ),
    source="derived here; a correction to Result 3.1",
    status=Status.DERIVED_HERE,
    checks=(
        _stretched(EvidenceKind.EXACT, "identities", "the gradient along the teacher; h₂ = 0"),
        _stretched(EvidenceKind.QUADRATURE, "population_errors", "errors of another solver"),
        _stretched(EvidenceKind.SIMULATION, "measured_stretch", "trained against initial rows"),
        _stretched(EvidenceKind.SIMULATION, "quick_errors", "errors of small networks"),
        _stretched(EvidenceKind.SIMULATION, "errors", "errors at two sizes", slow=True),
    ),
)

_FINITE_WIDTH = Claim(
    identifier="finite-width",
    title="What the ridge penalty takes for the mean of the readout at a finite width",
    statement=(
        r"At width $p$ the free energy has the further term $m^2/(2pV_2)$: "
        r"$\mathbb{E}_\kappa[\mu_0^2/(1+V)]$ in the equation for $m$ becomes "
        r"$\mathbb{E}_\kappa[\mu_0^2/(1+V)] + 1/(nV_2)$, and $\hat q_2$ gets $m^2/(pV_2^2)$. "
        r"$\mathrm{train} + \lambda\beta q_2/\alpha = \frac{2\beta}{\alpha}f = \mathbb{E}_\kappa"
        r"\,(T_2 - T_0C - \mu_1\psi T_1)/(1+V)$ holds with it."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _at_finite_size(EvidenceKind.EXACT, "finite_width_equations", "the terms, the energy"),
        _at_finite_size(
            EvidenceKind.QUADRATURE, "finite_width_values", "published example at p = 1000"
        ),
        _proof(
            "finite_width", "test error and q2 of the published example, in intervals", slow=True
        ),
        _at_finite_size(
            EvidenceKind.SIMULATION, "finite_width_features", "features of small width"
        ),
    ),
)

_BULK_SPREAD = Claim(
    identifier="bulk-spread",
    title="How anisotropic the trained bulk is",
    statement=(
        r"Given the samples of the step, the bulk rows have a common covariance. With $c$ its mean "
        r"eigenvalue, the relative spread of its eigenvalues is, for odd students, "
        r"$\frac{c-1}{c}\sqrt{\mathbb{E}\,y^4/(\alpha_0Y^2)}$; spiked random features have none. "
        r"Errors of networks deviate from those of spiked random features where it is large, also "
        r"if $c - 1$ is small."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _at_finite_size(EvidenceKind.EXACT, "spread_formula", "the formula for odd students"),
        _at_finite_size(
            EvidenceKind.SIMULATION, "measured_spread", "overlaps of trained rows, four pairs"
        ),
        _at_finite_size(
            EvidenceKind.SIMULATION, "deviations", "errors at small and at large spread", slow=True
        ),
    ),
)

_VOCABULARY_MAPPING = Claim(
    identifier="step-vocabulary",
    title="One giant step with a readout vocabulary",
    statement=(
        r"If the readout of the step takes the letters $\tilde a_j/\sqrt p$, rows of letter "
        r"$\tilde a$ get $r = s\tilde a h_1\nu$ and "
        r"$c = (1 + s\tilde a h_2(h^*_0 - \langle\tilde a\rangle h_0))^2 + "
        r"s^2\tilde a^2\,\mathbb{E}[(y - \langle\tilde a\rangle h_0)^2]\,"
        r"\mathrm{Var}\,\sigma'/\alpha_0$, "
        r"and all the same $\gamma$; the uniform readout has $\tilde a = 1$."
    ),
    source=f"{_PAPER}, Appendix D; students that are not odd are derived here",
    status=Status.REPLICA,
    checks=(
        _at_finite_size(EvidenceKind.EXACT, "letters_formula", "letters scale the step"),
        _at_finite_size(
            EvidenceKind.SIMULATION, "realised_letters", "realised r, c, γ, also not odd students"
        ),
    ),
)

_PUBLIC_NOTEBOOK = Claim(
    identifier="public-notebook",
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
    checks=(
        Check(
            EvidenceKind.QUADRATURE,
            "the four combinations of the two differences",
            Deferred(__package__, "evidence_public_notebook", "stored_outputs"),
        ),
        _proof(
            "notebook", "errors by Results 3.1 and 3.3, apart from the stored outputs", slow=True
        ),
        _simulation("realised_spike", "the factor h1² is excluded by realised bulk variances"),
    ),
)


def _bounding(kind: EvidenceKind, function: str, description: str, *, slow: bool = False) -> Check:
    compute = Deferred(f"{__package__}.bounds", "evidence", function)
    return Check(kind, description, compute, slow)


_TUNED_STEP = Claim(
    identifier="tuned-step",
    title="What tuning the step can reach, and where learning is perfect",
    statement=(
        r"With the population gradient ($\alpha_0 = \infty$) a step makes $c = 1$, "
        r"$\gamma = \pm 1$ and $r = s\,h_1|h^*_1|$, so that $\min_r L \le \min_s \mathrm{test} \le "
        r"\min_r U$, the upper bound at the best $\lambda$. $U = 0$ for erf and erf at "
        r"$s = 3\sqrt{3}\pi/4$, and for sin and sin at $s = e$."
    ),
    source=f"{_PAPER}, equation (28) and the section on realisable functions",
    status=Status.REPLICA,
    checks=(
        _bounding(EvidenceKind.EXACT, "perfect_pairs", "erf by erf and sin by sin: U = 0"),
        _bounding(EvidenceKind.QUADRATURE, "tuned_steps", "min U of four pairs"),
        _proof(
            "tuned_steps",
            "U of four pairs at one r, which bounds min U; |U| < 1e-30 for sin on sin",
            slow=True,
        ),
    ),
)

_BOUND_LIMITS = Claim(
    identifier="bound-limits",
    title="The limit of many samples, and bounds for several letters",
    statement=(
        r"The limit $E_\infty$ of many samples is $\min_{m,\vartheta,\psi}$ of the error with the "
        r"price $(\vartheta^2 + \psi^2)/(\beta c V_2^\circ)$ for all that is not along $\mu_0$; it "
        r"does not depend on $\lambda$. Because $\partial_r\mu_0 = \kappa\mu_1$, wherever $U(r)$ "
        r"is stationary at $\alpha_0 = \infty$ $L = E_\infty = U$. For letters $a$ the spans "
        r"of the bounds are those of all $\mu_0^a$ and of all $\mu_0^a, \kappa\mu_1^a$."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _bounding(EvidenceKind.EXACT, "limit_conditions", "the free energy for α → ∞"),
        _bounding(EvidenceKind.QUADRATURE, "coincidence", "L = E_∞ = U where U is stationary"),
        _proof(
            "coincidence", "L, E_∞, U are 1e-9 apart at most, next to stationary points", slow=True
        ),
        _bounding(EvidenceKind.QUADRATURE, "letters", "spans of two letters and of equal ones"),
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
    _TUNED_STEP,
    _BOUND_LIMITS,
    _CORRELATED_NORMS,
    _STRETCHED_ROWS,
    _FINITE_WIDTH,
    _BULK_SPREAD,
    _VOCABULARY_MAPPING,
    _PUBLIC_NOTEBOOK,
    *SPECTRUM_CLAIMS,
    *VOCABULARY_CLAIMS,
    *CONVEX_CLAIMS,
)
