"""Claims about the first gradient and the spike of the first layer."""

from __future__ import annotations

from ..claims import Check, Claim, Deferred, EvidenceKind, Status
from ..evidence import proof

_BA = "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445"


def _computed(kind: EvidenceKind, function: str, description: str) -> Check:
    return Check(kind, description, Deferred(__package__, "evidence_spike", function))


def _simulation(
    function: str, description: str, *, subject: str = "gradient", slow: bool = False
) -> Check:
    compute = Deferred(__package__, f"evidence_{subject}_simulation", function)
    return Check(EvidenceKind.SIMULATION, description, compute, slow, shows_progress=slow)


_GRADIENT = Claim(
    identifier="ba-gradient",
    title="The first gradient is a spike of rank one up to terms that are smaller in norm",
    statement=(
        r"For centred student and teacher, $\sigma' = \mu_1 + \sigma'_\perp$ and $n = \alpha_0 d$ "
        r"samples the gradient of $\frac{1}{2n}\sum(f - y)^2$, its sign turned, is $A + B + C$ "
        r"with $A$ and $C$ of rank one; with $Y = \mathbb{E}\,y^2$, which holds the label noise, "
        r"$$\sqrt N\,|A| \to |\mu_1|\sqrt{\mu_1^{*2} + Y/\alpha_0},\quad \sqrt N\,|B|_F \to "
        r"\sqrt{\mathbb{E}[\sigma_\perp'^2]\,Y/\alpha_0},\quad N\,|C| \to |\mu_1|\sqrt{\mu_1^2 "
        r"(1 + 1/\alpha_0) + \mu_2^2/\alpha_0},$$ while $N\,|B|$ in operator norm is bounded up to "
        r"logarithms. The gradient of $\frac1n\sum(f - y)^2$ is twice as long."
    ),
    source=f"{_BA}, section 3, that $A$ dominates; the limits are derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _computed(EvidenceKind.EXACT, "gradient_limits", "limits of A, B, C for four pairs"),
        _simulation(
            "centred_parts", "norms of A, B, C in networks, extrapolated; N |B| at two sizes"
        ),
    ),
)

_POPULATION = Claim(
    identifier="ba-population-gradient",
    title="The population gradient of given weights",
    statement=(
        r"With $k(w) = \mathbb{E}[f_*(x)\,\sigma(w\cdot x)]$ and $K(u, w) = "
        r"\mathbb{E}[\sigma(u\cdot x)\,\sigma(w\cdot x)]$, by Stein's lemma $$\mathbb{E}\,G_{\cdot "
        r"j} = \frac{a_j}{\sqrt N}\Big(\nabla k(w_j) - \frac{1}{\sqrt N}\sum_i a_i \nabla_2 "
        r"K(w_i, w_j)\Big),$$ with the leading term $\mu_1\mu_1^*\beta_*$. For erf on erf both are "
        r"gradients of $\frac2\pi\arcsin\frac{2 u\cdot w}{\sqrt{(1 + 2|u|^2)(1 + 2|w|^2)}}$."
    ),
    source="derived here; the arcsine law is that of Williams, NIPS 9 (1996)",
    status=Status.DERIVED_HERE,
    checks=(
        _computed(EvidenceKind.QUADRATURE, "population_kernels", "closed forms against quadrature"),
        _simulation("sampled_population", "sampled gradients of layers, d = 30 and N = 60"),
        _simulation("sampled_population_long", "the same with 1.2 million samples", slow=True),
    ),
)

_SPIKE = Claim(
    identifier="ba-spike",
    title="One step makes at most one singular value leave the bulk of the first layer",
    statement=(
        r"$W_1 = W_0 + u\,a^\top + o(1)$ with $|u| \to \theta_1 = \eta|\mu_1|\sqrt{\mu_1^{*2} + "
        r"Y/\alpha_0}$ and $u\cdot\beta_* \to \theta_2 = \eta\mu_1\mu_1^*$; $Y$ holds the label "
        r"noise. With $T = \theta_1^2$, if $T > \sqrt\beta$ then $$s_1^2 \to "
        r"\frac{(1 + T)(\beta + T)}{T},\quad \langle u_1, \beta_*\rangle^2 \to "
        r"\frac{\theta_2^2}{\theta_1^2}\,\frac{T^2 - \beta}{T(T + 1)},\quad "
        r"\langle v_1, a\rangle^2 \to \frac{T^2 - \beta}{T(T + \beta)} ,$$ else $s_1 \to 1 + "
        r"\sqrt\beta$ and both overlaps vanish. All other singular values follow the law of "
        r"Marchenko and Pastur. The formulas are for the gradient of half the squared loss."
    ),
    source=(
        f"{_BA}, section 3; the label noise in $\\theta_1$ and the overlap with the readout are "
        "derived here"
    ),
    status=Status.DERIVED_HERE,
    checks=(
        _computed(EvidenceKind.EXACT, "spike_identities", "the secular equation and its solution"),
        _computed(
            EvidenceKind.QUADRATURE, "reference_spikes", "13 networks in 40-digit arithmetic"
        ),
        _computed(
            EvidenceKind.EXACT, "published_wording", "the slide's example; the factor of the loss"
        ),
        proof(__package__, "spikes", "sizes, overlaps and outliers of four networks", count=4),
        proof(__package__, "spikes", "sizes, overlaps and outliers of 13 networks", slow=True),
        _simulation(
            "spike_quick",
            "four networks up to d = 200, extrapolated; noise left out",
            subject="spike",
        ),
        _simulation(
            "spike_table", "seven networks up to d = 600, extrapolated", subject="spike", slow=True
        ),
    ),
)

CLAIMS = (_GRADIENT, _POPULATION, _SPIKE)
