"""Claims about convex readouts; their evidence is computed in :mod:`.evidence`."""

from __future__ import annotations

from ...claims import Check, Claim, Deferred, EvidenceKind, Status

_PAPER = "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980"


def _check(kind: EvidenceKind, function: str, description: str, *, slow: bool = False) -> Check:
    return Check(kind, description, Deferred(__package__, "evidence", function), slow)


_CONVEX_LOSS = Claim(
    identifier="cui-convex-loss",
    title="Any convex loss enters through its Moreau envelope",
    statement=(
        r"The readout that minimises $\sum_\mu \ell(y_\mu, \varphi_\mu\cdot w/\sqrt p) + "
        r"\tfrac\lambda2|w|^2$ has the free energy of the ridge readout with "
        r"$\tfrac12\langle\mathrm{err}/(1+V)\rangle$ replaced by "
        r"$\langle\mathbb{E}\,M(y, \omega; V)\rangle$, $M(y,\omega;V) = \min_x[\ell(y,x) + "
        r"(x-\omega)^2/2V]$. At its saddle point "
        r"$\tfrac1n\min_w[\dots] = \langle\mathbb{E}\,\ell(y,\mathrm{prox})\rangle + "
        r"\tfrac{\lambda\beta}{2\alpha}q_2$."
    ),
    source=f"{_PAPER}, appendix C; the free energy is derived here",
    status=Status.REPLICA,
    checks=(
        _check(EvidenceKind.EXACT, "smoothing", "E M of losses with kinks obeys its two equations"),
        _check(
            EvidenceKind.QUADRATURE, "reference_values",
            "four losses against values computed independently", slow=True,
        ),
        _check(
            EvidenceKind.QUADRATURE, "square_loss",
            "the square loss against the ridge readout", slow=True,
        ),
        _check(
            EvidenceKind.SIMULATION, "simulated_readouts",
            "Huber and logistic readouts at d = 200", slow=True,
        ),
    ),
)  # fmt: skip

CLAIMS = (_CONVEX_LOSS,)
