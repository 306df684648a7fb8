"""Claims about first gradients; their evidence is computed in the ``evidence_`` modules."""

from __future__ import annotations

from ..claims import Check, Claim, Deferred, EvidenceKind, Status
from ..evidence import proof

_DLS = "Damian, Lee, Soltanolkotabi, arXiv 2206.15144"


def _exact(function: str, description: str) -> Check:
    return Check(EvidenceKind.EXACT, description, Deferred(__package__, "evidence_exact", function))


def _quadrature(function: str, description: str) -> Check:
    return Check(
        EvidenceKind.QUADRATURE, description, Deferred(__package__, "evidence_exact", function)
    )


def _simulation(function: str, description: str, *, slow: bool = False) -> Check:
    compute = Deferred(__package__, "evidence_simulation", function)
    return Check(EvidenceKind.SIMULATION, description, compute, slow)


_EXPANSION = Claim(
    identifier="gradient-expansion",
    title="The population gradient by Hermite tensors",
    statement=(
        r"With $C_k = \mathbb{E}\,\nabla^k f$ and $s_j = \mathbb{E}\,\sigma^{(j)}(|w| z)$, "
        r"$$\mathbb{E}[f(x)\,\sigma'(w\cdot x)\,x] = \sum_{k\ge0} \frac{s_{k+1}}{k!}\,"
        r"C_{k+1}[w^k, \cdot] + w \sum_{k\ge0} \frac{s_{k+2}}{k!}\,C_k[w^k] .$$ "
        r"For a polynomial $f$ both sums are finite and the identity is exact."
    ),
    source=f"{_DLS}, for relu and $|w| = 1$; in general derived here",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("polynomial_identity", "polynomial students against direct averages, for every w"),
        _quadrature("quadrature_identity", "relu, erf, tanh, gelu against quadrature along w"),
        proof(__package__, "stein", "E[f' He_k] = E[f He_(k+1)] in intervals, four students"),
        _simulation("sampled_gradients", "sampled gradients of relu, erf and polynomial neurons"),
    ),
)

_FIRST_STEP = Claim(
    identifier="first-gradient",
    title="The first gradient is a spike of rank one and a small bulk",
    statement=(
        r"For $n = \alpha_0 d$ the gradient is $A + B + C$ with $A$ and $C$ of rank one and, for "
        r"$d \to \infty$, with $Y = \mathbb{E}\,y^2$ and $S = \mathbb{E}\,\sigma^2 - \mu_0^2$, "
        r"$$\sqrt N\,|A| \to |\mu_1| \sqrt{|C_1|^2 + Y/\alpha_0},\quad "
        r"\sqrt N\,|B|_F \to \sqrt{\mathrm{Var}(\sigma')\,Y/\alpha_0 + (\mu_2 C_0)^2},\quad "
        r"N\,|C| \to |\mu_1| \sqrt{\mu_1^2 + S/\alpha_0} ,$$ while $|B|/|A| \to 0$ in operator "
        r"norm. The limit of $A$ for many samples is the leading term $\mu_1 C_1$ of the gradient "
        r"expansion."
    ),
    source=(
        "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445, section 3; the limits, and the "
        "term in $C_0$, are derived here"
    ),
    status=Status.DERIVED_HERE,
    checks=(
        _exact("first_step_limits", "limits against the spiked features and the expansion"),
        _simulation("gradient_parts", "norms and alignment of actual gradients, two sizes"),
    ),
)

_HALF = Claim(
    identifier="preprocessed-gradient",
    title="After preprocessing the gradient shows the Hessian from about d² samples on",
    statement=(
        r"With mean and linear part taken out of the labels, the squared gradient of a neuron on "
        r"$n$ samples is $S + V$ to leading order, with $S = \mu_2^2|H|_F^2/d$ inside the "
        r"relevant space, $H = \mathbb{E}\,\nabla^2 f$, and "
        r"$$V = \frac dn\left[\mathrm{Var}(\sigma')\left(\|P_{>1}f\|^2 + \Delta\right) + \mu_1^2 "
        r"\left(C_0^2 + |C_1|^2\right)\right] .$$ For relu $S = V$ at "
        r"$n = \frac\pi2\,d^2\,\mathbb{E}\,y^2/|H|_F^2$. If $H$ has less than full rank, nothing "
        r"follows for the directions it misses."
    ),
    source=f"derived here; {_DLS} prove $n \\gtrsim d^2 r$ for relu",
    status=Status.DERIVED_HERE,
    checks=(
        _exact("preprocessed_step", "the constant for relu, the leading term, the assumptions"),
        _simulation("half_share_quick", "share of the gradient inside the space at S = V, relu"),
        _simulation("half_share", "the same around S = V, with other students", slow=True),
    ),
)

_ALGORITHM = Claim(
    identifier="dls-algorithm-1",
    title="One preprocessed step and ridge regression beat random features",
    statement=(
        r"If $H = \mathbb{E}\,\nabla^2 f$ has rank $r$, networks whose first layer is one gradient "
        r"step on preprocessed labels learn a polynomial of degree $p$ in $r$ directions from "
        r"$n \gtrsim d^2 r + d\,r^p$ samples, fewer than the $d^p$ of any kernel. Checked is that "
        r"they do better than random features of the same width on $n = 4d^2$ samples."
    ),
    source=f"{_DLS}, theorem 1; quoted, the rates are not checked",
    status=Status.THEOREM,
    checks=(
        _exact("learned_rows", "the rows of the step span the relevant space exactly if H does"),
        _simulation("algorithm_quick", "test errors at d = 40; targets with H = 0 beside them"),
        _simulation("algorithm", "the same at d = 40 and 80", slow=True),
    ),
)

_QUERIES = Claim(
    identifier="dls-correlational-queries",
    title="Methods of correlational queries need about d^(p/2) samples at worst",
    statement=(
        r"To single out one of $|F|$ functions of unit norm with correlations at most "
        r"$\varepsilon$ takes $q \ge |F|(\tau^2 - \varepsilon)/2$ correlational queries of "
        r"tolerance $\tau$. For $\mathrm{He}_p(\langle u, x\rangle)/\sqrt{p!}$ with all directions "
        r"$u$ it follows that $\tau^2 \lesssim (\log(qd)/d)^{p/2}$; reading $\tau$ as $n^{-1/2}$, "
        r"which is heuristic, $n \gtrsim d^{p/2}$ up to logarithms."
    ),
    source=f"{_DLS}; the constant in the number of directions is derived here",
    status=Status.THEOREM,
    checks=(_exact("query_bound", "correlations, balance and exponent of the bound"),),
)

CLAIMS = (_EXPANSION, _FIRST_STEP, _HALF, _ALGORITHM, _QUERIES)
