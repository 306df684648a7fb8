"""Claims about vocabularies; their evidence is computed in :mod:`.evidence`."""

from __future__ import annotations

from ...claims import Check, Claim, Deferred, EvidenceKind, Status

_PAPER = "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980"


def _check(kind: EvidenceKind, function: str, description: str, *, slow: bool = False) -> Check:
    return Check(kind, description, Deferred(__package__, "evidence", function), slow)


_CLOSED_FORM = Claim(
    identifier="cui-vocabulary",
    title="Ridge regression on several kinds of rows, in closed form",
    statement=(
        r"With K letters of fractions $\pi_a$ and independent bulk rows, the conditional variances "
        r"$V_1 \in \mathbb{R}^{K\times K}$ and $V_2$ are the minimum of "
        r"$$F = \tfrac{\alpha}{\beta}\langle\log(1 + \mu_1^\top V_1\mu_1 + "
        r"\sum_a(\mu_2^a)^2V_2^a)\rangle - \tfrac1\beta\log\det V_1 + "
        r"\sum_a\Big[(\tfrac1\beta - \pi_a)\log V_2^a + \frac{V_1^{aa}}{\beta V_2^a} + "
        r"\lambda V_2^a\Big],$$ strictly convex along the curves "
        r"$V_1 = Le^{\tau S}L^\top$, $V_2^a = v_ae^{\tau s_a}$ that join any two points, and "
        r"with no other stationary point (derived in ``vocabulary/free_energy.py``); "
        r"the conjugates are $\beta\hat V_1 = V_1^{-1} - \mathrm{diag}(1/V_2)$. All other order "
        r"parameters are linear given these, with a cost $m_a^2/(2pV_2^a)$ of the overlaps m at "
        r"width p, which is not small for letters that do nearly the same."
    ),
    source=f"{_PAPER}, appendix C.8 with traces over finite matrices; the closed form and the "
    "convexity of F are derived here; the replica method is not proved by it",
    status=Status.DERIVED_HERE,
    checks=(
        _check(EvidenceKind.EXACT, "legendre_transform", "F from the log determinant, K = 1, 2"),
        _check(
            EvidenceKind.QUADRATURE,
            "convexity",
            "Hessians of F at random points: the proof, numerically",
        ),
        _check(EvidenceKind.QUADRATURE, "stationary", "the free energy written out for K = 2"),
        _check(EvidenceKind.QUADRATURE, "reference_values", "known values"),
        _check(EvidenceKind.QUADRATURE, "reductions", "equal and opposite letters are one letter"),
        _check(EvidenceKind.QUADRATURE, "energy_identity", "training error, norm and free energy"),
        _check(EvidenceKind.SIMULATION, "simulated_letters", "two letters at d = 200", slow=True),
    ),
)

_LEARNED_BIAS = Claim(
    identifier="cui-learned-bias",
    title="A learned bias may have several local minima, and the lowest may not generalise best",
    statement=(
        r"A common bias $b$ that is trained with the readout is a stationary point of the free "
        r"energy in $b$. For an erf student of $r = 1.2$, $c = 1.1$, $\gamma = 0.9$ and a relu "
        r"teacher at $\alpha = 2$, $\lambda = 0.1$ there are two local minima of the training "
        r"objective, and the global one "
        r"has the larger test error."
    ),
    source=f"{_PAPER}, appendix D; the example is computed here",
    status=Status.DERIVED_HERE,
    checks=(_check(EvidenceKind.QUADRATURE, "local_minima", "both minima with their errors"),),
)

_RANK = Claim(
    identifier="cui-larger-rank",
    title="Spikes of larger rank",
    statement=(
        r"For rows $w_j = \sqrt{c_a}u_j + \sum_l R_{a,l}v_l$ the coefficients are functions of "
        r"$R_a\cdot\kappa$, $\kappa \sim \mathcal{N}(0, I_k)$, and each direction has its own "
        r"overlap $\vartheta_l$ at the cost $\sum_a\vartheta_{l,a}^2/(2\beta V_2^a)$."
    ),
    source=f"{_PAPER}, appendix D",
    status=Status.REPLICA,
    checks=(
        _check(EvidenceKind.QUADRATURE, "larger_rank", "turned frames, parallel spikes"),
        _check(EvidenceKind.SIMULATION, "simulated_rank", "rank two at d = 200", slow=True),
    ),
)

CLAIMS = (_CLOSED_FORM, _LEARNED_BIAS, _RANK)
