"""Claims about giant steps; their evidence is computed in the ``evidence_`` modules."""

from __future__ import annotations

import functools

from ..claims import Check, Claim, Deferred, EvidenceKind, Option, Status
from ..evidence import proof

SEED = 230518270
"""Of all simulations of claims: the number of the preprint, so that nobody has chosen it."""

_DKLPS = "Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270"


def _exact(function: str, description: str, module: str = "evidence_exact") -> Check:
    return Check(EvidenceKind.EXACT, description, Deferred(__package__, module, function))


def _simulation(
    function: str, description: str, module: str = "evidence_simulation", *, slow: bool = False
) -> Check:
    return Check(
        EvidenceKind.SIMULATION, description, Deferred(__package__, module, function), slow
    )


_RANKS = Check(
    EvidenceKind.CERTIFIED,
    "ranks of the overlaps of networks on the population loss are the dimensions of U_t",
    Deferred(__package__, "evidence_exact", "ranks_of_population_dynamics"),
)


def _over_targets(
    function: str, few: int, dimension: int, steps: int, networks: int, *, many: int, multiple: int
) -> tuple[Check, Check]:
    """Random targets: a few at a small size, or as options say, and many at d = 400."""
    compute = Deferred(__package__, "evidence_simulation", function)
    store = Option("store", "folder for finished targets", None, None)
    options = (
        Option("targets", "how many random targets are tried", few),
        Option("dimension", "the larger input dimension d", dimension, 40, multiple),
        Option("steps", "giant steps", steps),
        Option("networks", "networks for each target and size", networks, 2),
        Option("seed", "entropy of targets and networks", SEED, 0),
        store,
    )
    fixed = {"targets": many, "dimension": 400, "steps": steps, "networks": networks, "seed": SEED}
    return (
        Check(
            EvidenceKind.SIMULATION,
            "a few random targets at two sizes, or as many as the options say",
            compute,
            options=options,
            shows_progress=True,
        ),
        Check(
            EvidenceKind.SIMULATION,
            f"{many} random targets, d = 200 and 400",
            functools.partial(compute, **fixed),
            slow=True,
            options=(store,),
            shows_progress=True,
        ),
    )


_ONE_STEP = Claim(
    identifier="one-giant-step",
    title="One giant step learns the range of the first Hermite tensor",
    statement=(
        r"Let $\ell$ be the leap index, the first order with a Hermite tensor $C_\ell = "
        r"\mathbb{E}\nabla^\ell f \ne 0$. From $n = O(d^{\ell-\epsilon})$ samples one step of any "
        r"size learns nothing; from $n = \Theta(d^\ell)$ a step of order $p\,d^{(\ell-1)/2}$ "
        r"learns, and only inside $\mathrm{range}(C_\ell)$: for unit $w$ the gradient has there "
        r"$$\frac{\mu_\ell(\sigma)}{(\ell-1)!}\,C_\ell[w^{\ell-1}, \cdot] + O(n^{-1/2}) ,$$ with "
        r"noise of squared norm $\frac dn\,\mathbb{E}f^2\,\mathbb{E}\sigma'^2$ in all. "
        r"Constants, the range for general $f$, and norms and alignments after the step are "
        r"derived here."
    ),
    source=f"{_DKLPS}, for sums of ridge functions of orthonormal directions",
    status=Status.THEOREM,
    checks=(
        _exact("ridge_constants", "constants against averages of derivatives", "evidence_one_step"),
        _exact(
            "contracted_constants", "contractions against direct averages", "evidence_one_step"
        ),
        _exact("alignments", "alignments against other lines of work", "evidence_one_step"),
        _simulation(
            "spike_slopes_quick", "regressions of gradients, two students", "evidence_one_step"
        ),
        _simulation(
            "spike_slopes", "the same for leap indices 1, 2, 3, two sizes", "evidence_one_step",
            slow=True,
        ),
    ),
)  # fmt: skip

_STAIRCASE = Claim(
    identifier="staircase-algorithm",
    title="Staircases by substitution into gradients of the symbol",
    statement=(
        r"With $F(\xi) = \mathbb{E} f(x+\xi)$, the subspaces $U_{t+1} = U_t \oplus \mathrm{span}"
        r"\{\mathbb{E}_{x_\perp}\nabla_\perp f(x_U + x_\perp) : x_U \in U_t\}$ of the source are "
        r"$$U_{t+1} = U_t + \mathrm{span}\{\nabla F(\xi) : \xi \in U_t\} ,$$ and they have a basis "
        r"over the field of the coefficients of $f$ in an orthonormal frame."
    ),
    source=f"{_DKLPS}, section 4, for the definition; the second form is derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("definition_of_staircases", "conditional expectations monomial by monomial"),
        _RANKS,
        _simulation("worked_traces_quick", "networks on three worked targets, two steps"),
        _simulation("worked_traces", "networks on six, three steps, d = 400", slow=True),
    ),
)

_CLUSTERS = Claim(
    identifier="readout-clusters",
    title="Readouts ±1 learn at most two directions in the second step",
    statement=(
        r"If the readouts take the values $\pm 1$ only, all overlaps are $\pm u\,C_1$ after the "
        r"first step, and the second one adds at most two directions. If $\mu_2\,\mathbb{E} f "
        r"= 0$, neurons of both signs have the same norm, and these are $$\sum_{k \text{ even}} "
        r"s_{k+1} u^k r_k \quad\text{and}\quad \sum_{k \text{ odd}} s_{k+1} u^k r_k ,\qquad "
        r"\nabla F(s\,C_1) = \sum_k s^k r_k .$$ All of $U_2$ takes a spread of $|a_i|$ or biases."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("readout_clusters", "dimensions against networks on the population loss"),
        _simulation("readout_clusters", "the direction that ±1 misses, and spread readouts find"),
    ),
)

_MASKS = Claim(
    identifier="activation-masks",
    title="Students miss the degrees of their vanishing Hermite coefficients",
    statement=(
        r"A Hermite degree $k$ of the target acts through $s_k(\tau) = \mathbb{E}\,\sigma^{(k)}"
        r"(\tau z)$; where it vanishes for all $\tau$, the staircase is that of the other degrees: "
        r"odd ones above 1 drop out for relu without biases, even ones for odd activations. So "
        r"relu never completes $x_1 + \mathrm{He}_2(x_1)\,x_2$."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("activation_masks", "coefficients of relu and erf at lengths other than one"),
        proof(__package__, "masks", "degrees that vanish, and those that do not: four students"),
        _simulation("activation_masks", "directions that relu and erf miss, and others find"),
    ),
)

_ISOTROPIC = Claim(
    identifier="rotation-invariant-leap",
    title="The largest leap over all bases, without rotations",
    statement=(
        r"With $k(U)$ the lowest degree $\ge 1$ in $U^\perp$ of $F(\xi_U + q)$, $$\max_R "
        r"\mathrm{Leap}(f \circ R) = \max_{U \not\supseteq V^*} k(U) = \max_t k(U_t) ,\qquad "
        r"U_{t+1} = U_t + \text{range of the order-}k(U_t)\text{ tensors} .$$"
    ),
    source="the leap: Abbe, Boix-Adserà, Misiakiewicz, arXiv 2302.11055; the closure: derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("isotropic_leap_over_rotations", "random rational bases and subspaces; attained"),
    ),
)

_GENERATIVE = Claim(
    identifier="generative-leap",
    title="Certificates for the generative leap",
    statement=(
        r"The lowest order $k$ with $\mathbb{E}[\mathrm{He}_k(z) \mid y] \not\equiv 0$ is 1 for a "
        r"polynomial that is not even and 2 for an even one; it is at least 2 for a target with a "
        r"symmetry that moves $V^*$, and at most the rotation-invariant leap."
    ),
    source=(
        "the exponent: Damian, Pillaud-Vivien, Lee, Bruna, arXiv 2403.05529; several directions: "
        "Damian, Lee, Bruna, arXiv 2506.05500; the certificates: derived here"
    ),
    status=Status.DERIVED_HERE,
    checks=(
        Check(
            EvidenceKind.QUADRATURE,
            "sums over all preimages of a label, to 30 digits",
            Deferred(__package__, "evidence_exact", "generative_exponents"),
        ),
    ),
)

_PROJECTIONS = Claim(
    identifier="conditional-projections",
    title="Residual norms without orthonormal frames",
    statement=(
        r"$D = \langle (I - P_U)\xi, \nabla\rangle$ has the eigenvalue $j$ on the functions of "
        r"degree $j$ in $x_\perp$, so that the norms $n_j = \|P_{U,=j} f\|^2$ solve $\sum_j j^i "
        r"n_j = \langle F, D^i F\rangle$, and $\|P_{U,>0} f\|^2 = \mathbb{E}\,\mathrm{Var}"
        r"(f \mid P_U x)$."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
    checks=(_exact("projections_in_frames", "explicit frames, and variances by definition"),),
)

_EQUIVALENCE = Claim(
    identifier="conditional-equivalence",
    title="After a giant step, features are Gaussian given the spike",
    statement=(
        r"With rows $w_i = w_i^\perp + m_i v$, $\rho_i = |w_i^\perp|$, and $n \asymp p \asymp d$, "
        r"ridge regression on $\sigma(Wx)$ has the training and test errors of the features "
        r"$\mu(x_v) + \Phi(x_v)\,x^\perp + \Psi(x_v)^{1/2}\xi$, where $\xi$ is Gaussian and "
        r"$$\mu_i = \mathbb{E}\,\sigma(m_i x_v + \rho_i z) ,\quad \Phi = \mathrm{diag}(\beta)"
        r"\,W^\perp ,\quad \beta_i = \mathbb{E}\,\sigma'(m_i x_v + \rho_i z) ,\quad "
        r"\Psi_{ij} = \sum_{k \ge 2} \frac{b_{i,k}\,b_{j,k}}{k!}\,c_{ij}^k ,$$ "
        r"$b_{i,k} = \mathbb{E}\,\sigma(m_i x_v + \rho_i z)\,\mathrm{He}_k(z)$ and $c_{ij}$ the "
        r"cosine of $w_i^\perp$ and $w_j^\perp$. Checked are the moments, not the errors; their "
        r"closed forms are derived here."
    ),
    source=_DKLPS,
    status=Status.THEOREM,
    checks=(
        _exact("closed_forms", "closed forms by several routes", "evidence_equivalence"),
        _exact("hermite_students", "polynomial students by hand", "evidence_equivalence"),
        _exact("two_neurons", "covariances of two neurons", "evidence_equivalence"),
        _exact("one_source", "the same coefficients as arXiv 2402.04980", "evidence_equivalence"),
        Check(
            EvidenceKind.QUADRATURE,
            "values against integrals, to 14 digits",
            Deferred(__package__, "evidence_equivalence", "quadrature"),
        ),
        proof(
            __package__, "closed_forms", "μ, β, E σ² of two students: formulas and integrals meet",
            students=("relu", "erf"),
        ),
        proof(__package__, "closed_forms", "the same for seven students", slow=True),
        _simulation(
            "sampled_features_quick", "features of two students, d = 100", "evidence_equivalence"
        ),
        _simulation(
            "sampled_features", "features of four students, d = 300", "evidence_equivalence",
            slow=True,
        ),
    ),
)  # fmt: skip

_FIRST_CONJECTURE = Claim(
    identifier="conjecture-1",
    title="After t giant steps exactly U_t is learned",
    statement=(
        r"With $n = \Theta(d)$ fresh samples for each step, generic readouts and a rate of order "
        r"$p$, the neurons have overlaps of order one with all directions of $U_t$, and only with "
        r"those, after $t$ steps."
    ),
    source=f"{_DKLPS}, conjecture 1; proved there for two steps in expectation",
    status=Status.CONJECTURE,
    checks=(_RANKS, *_over_targets("conjecture_1", 3, 120, 3, 12, many=50, multiple=2)),
)

_THIRD_CONJECTURE = Claim(
    identifier="conjecture-3",
    title="Ridge regression on learned features leaves what is of high degree outside U",
    statement=(
        r"With $n \asymp d^{\kappa_1}$ samples and $p \asymp d^{\kappa_2}$ neurons that have "
        r"learned $U$, ridge regression of the readout has an error of at least $\|P_{U,>\kappa} "
        r"f\|^2 + o(1)$, $\kappa = \min(\kappa_1, \kappa_2)$. Checked for $\kappa = 1$."
    ),
    source=f"{_DKLPS}, conjecture 3",
    status=Status.CONJECTURE,
    checks=(
        _exact("projections_in_frames", "the bound itself, against explicit frames"),
        *_over_targets("conjecture_3", 3, 120, 2, 24, many=10, multiple=4),
    ),
)

CLAIMS = (
    _ONE_STEP,
    _STAIRCASE,
    _CLUSTERS,
    _MASKS,
    _ISOTROPIC,
    _GENERATIVE,
    _PROJECTIONS,
    _EQUIVALENCE,
    _FIRST_CONJECTURE,
    _THIRD_CONJECTURE,
)
