r"""The free energy of ridge regression on spiked random features; the one place it is written.

Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980, Results 3.2 and 3.3. The
features of a fresh input are, conditionally on its projection κ on the spike direction,

.. math:: \varphi \simeq \mu_0(\kappa) 1 + \mu_1(\kappa) B x + \mu_2(\kappa) \xi ,

with rows of B of squared norm c. All equations, the test and the training error follow from this
module by differentiation and substitution.

Notation (theory of the paper → here): sample complexity α = n/d, aspect ratio β = p/d, ridge
penalty λ in :math:`\sum (y - \varphi\cdot w/\sqrt p)^2 + \lambda |w|^2`, spike strength r, bulk
variance c, alignment γ and ρ = sqrt(1 − γ²), label noise variance Δ. Conjugate parameters carry
the prefactor α/β = n/p.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy as sp

from ...symbolic.activations import Activation
from ...symbolic.data_average import DataAverage
from ...symbolic.equations import FreeEnergy
from ...symbolic.equivalence import (
    mean_definition,
    norm_response_definition,
    residual_variance_definition,
    slope_definition,
)
from ...symbolic.gaussian import GaussianExpectation
from ...symbolic.random_matrix import MarchenkoPasturAverage
from ...symbolic.regularity import Parity
from .bulk_law import IID, ISOTROPIC, OVERLAPS

alpha, beta, ridge, c, rho = sp.symbols("alpha beta lambda c rho", positive=True)
r, gamma, norm_overlap = sp.symbols("r gamma a", real=True)
# Stretch of the rows in the plane of the spike v and of the teacher's direction across it, ζ.
stretch_along, stretch_mixed, stretch_across = STRETCH = sp.symbols(
    "t_vv t_vzeta t_zetazeta", real=True
)
noise = sp.Symbol("Delta", nonnegative=True)
# 1/p; zero is the strict limit.
inverse_width = sp.Symbol("p_inv", nonnegative=True)
kappa, z, s = sp.symbols("kappa z s", real=True)
eigenvalue = sp.Symbol("X", positive=True)
# A law of the bulk as data, in units of c: eigenvalues D of Ω = B (1 − vvᵀ) Bᵀ; F, H and G are d
# times the squares and the product of the components of B v and B ζ in its eigenvectors, ζ the
# teacher's direction across v. P is the penalty along an eigenvector, in units of λ.
BULK = "bulk"
D, F, H = sp.symbols("D F H", nonnegative=True)
G = sp.Symbol("G", real=True)
P = sp.Symbol("P", positive=True)
BULK_COLUMNS = {ISOTROPIC: (D, P), OVERLAPS: (D, F, G, H, P)}

V1, V2, q2 = sp.symbols("V_1 V_2 q_2", positive=True)
q1 = sp.Symbol("q_1", nonnegative=True)
m, theta, psi = sp.symbols("m vartheta psi", real=True)
V1_hat, V2_hat = sp.symbols("Vhat_1 Vhat_2", nonnegative=True)
q1_hat, q2_hat = sp.symbols("qhat_1 qhat_2", nonnegative=True)
theta_hat, psi_hat = sp.symbols("varthetahat psihat", real=True)

# The names under which values are handed out and kernels are written.
IDENTIFIERS = {
    alpha: "alpha", beta: "beta", ridge: "ridge", noise: "noise_variance",
    r: "spike_strength", c: "bulk_variance", gamma: "alignment", rho: "orthogonal_alignment",
    V1: "V1", V2: "V2", q1: "q1", q2: "q2", m: "m", theta: "theta", psi: "psi",
    V1_hat: "V1_hat", V2_hat: "V2_hat", q1_hat: "q1_hat", q2_hat: "q2_hat",
    theta_hat: "theta_hat", psi_hat: "psi_hat",
    norm_overlap: "norm_overlap", inverse_width: "inverse_width",
    stretch_along: "stretch_along", stretch_mixed: "stretch_mixed",
    stretch_across: "stretch_across",
}  # fmt: skip


def _function(name: str) -> sp.Expr:
    return sp.Function(name, real=True)(kappa)


# Conditional coefficients of the student (mu2_squared is the variance that is left, not a root)
# and conditional moments of the teacher's labels.
mu0, mu1 = _function("mu_0"), _function("mu_1")
mu2_squared = sp.Function("mu_2^2", nonnegative=True)(kappa)
# Response of μ_0 to the norm of a row; enters with correlated norms only.
chi = _function("chi")
T0, T1, T2 = _function("T_0"), _function("T_1"), _function("T_2")


@dataclass(frozen=True)
class SpikedFreeEnergy:
    """The free energy with the two errors that it predicts.

    Attributes
    ----------
    free_energy : FreeEnergy
        In 13 variables; fewer where `unspiked` removes some.
    test_error, training_error : Expr
        Mean squared error on fresh inputs against the noise-free target, and on the training set
        against the noisy labels; 𝔼 over κ of the variables at the saddle point.
    eliminated : dict from str to Expr
        Conjugates that the free energy is without, by their names.
    """

    free_energy: FreeEnergy
    test_error: sp.Expr
    training_error: sp.Expr
    eliminated: dict[str, sp.Expr] = field(default_factory=dict)


def average(integrand: sp.Expr) -> sp.Expr:
    r"""Return :math:`\mathbb{E}_\kappa`, the mean over the projection on the spike."""
    return GaussianExpectation(integrand, kappa)


def conditional_mean(*, correlated_norms: bool = False, stretched: bool = False) -> sp.Expr:
    """Return what the network predicts on average at a given projection κ on the spike."""
    along_spike = mu1 * kappa + (norm_overlap * chi if correlated_norms else 0)
    mean = mu0 * m + along_spike * theta
    if stretched:
        mean += mu1 * kappa * (stretch_along * theta + stretch_mixed * psi)
    return mean


def teacher_overlap(*, stretched: bool = False) -> sp.Expr:
    """Return the overlap of the readout with B ζ, the bulk in the teacher's direction across v."""
    return stretch_mixed * theta + (1 + stretch_across) * psi if stretched else psi


def spiked_free_energy(
    student: Activation,
    teacher: Activation,
    *,
    unspiked: bool = False,
    aligned: bool = False,
    correlated_norms: bool = False,
    stretched: bool = False,
    finite_width: bool = False,
    bulk: str = IID,
) -> SpikedFreeEnergy:
    r"""Return the free energy of ridge regression on spiked random features.

    Parameters
    ----------
    student, teacher : Activation
        σ of the network and σ_* of the single-index target.
    unspiked : bool
        Exactly r = 0 (plain random features): the coefficients no longer depend on κ, and a
        student of mean zero has no m.
    aligned : bool
        Exactly |γ| = 1 (ρ = 0): the labels are a function of κ.
    correlated_norms : bool
        Include that the squared norm of a bulk row b is c + 2 a b·v to leading order, with the
        norm overlap a of :func:`.mapping.spike_mapping`; Result 3.2 as published has a = 0.
    stretched : bool
        Include that bulk rows are stretched by 1 + T in the plane of v and ζ, with T of
        :func:`.mapping.spike_mapping`; Result 3.1 as published has T = 0.
    finite_width : bool
        Include what the ridge penalty takes for the mean direction at a width p,
        :math:`m^2/(2 p V_2)`. It vanishes for p → ∞, and is the one correction of order 1/p that
        matters at widths of a thousand.
    bulk : {"iid", "isotropic", "overlaps"}
        The law of eigenvalues and overlaps of the bulk. "iid": that of independent rows, D = c X
        with X of Marchenko and Pastur, F independent of D with mean c, G of mean zero, H with the
        conditional mean D. "isotropic": any law of D, as the data :data:`BULK`, of a bulk with no
        preferred directions of the inputs. "overlaps": any joint law of D, F, G and H, as data.
        The latter two not with `stretched`: such laws have the stretch already.

    Returns
    -------
    SpikedFreeEnergy

    Notes
    -----
    With correlated norms the conditional mean of a feature is
    :math:`\mu_0 + (\mu_1\kappa + a\chi)\,b\cdot v`, because
    :math:`\mu_0(c + 2ab\cdot v) = \mu_0 + \chi\,a\,b\cdot v` with
    :math:`\chi = 2\partial_c\mu_0 = \mathbb{E}\,\sigma''`: a vector of the same size as the
    published :math:`\kappa\mu_1 Bv`, whose overlap with the readout is the same ϑ.

    With stretched rows B = U (1 + T) in the plane of v and ζ, where U is isotropic with rows of
    squared norm c; ϑ and ψ are then the overlaps with U v and U ζ. What features and labels see
    are those with B v, :math:`(1 + T_{vv})\vartheta + T_{v\zeta}\psi`, and with B ζ,
    :math:`k\cdot(\vartheta, \psi)` with :math:`k = (T_{v\zeta}, 1 + T_{\zeta\zeta})`; the norm of a
    row goes with U v. Only the part of the free energy that a readout with these overlaps costs
    changes. Published, it is :math:`\vartheta\hat\vartheta + \psi\hat\psi -
    \tfrac12(\hat\vartheta, \hat\psi)Q(\hat\vartheta, \hat\psi)^\top` with
    :math:`Q = [Uv, U\zeta]^\top S^{-1}[Uv, U\zeta]`, which at its maximum is
    :math:`\tfrac12(\vartheta, \psi)Q^{-1}(\vartheta, \psi)^\top`. B ζ is a column of Ω. Without
    it, :math:`S = S_0 + \hat V_1(Uk)(Uk)^\top` with S_0 independent of U v and U ζ. Then
    :math:`[Uv, U\zeta]^\top S_0^{-1}[Uv, U\zeta] \to \beta c\,\mathbb{E}[1/S]\,1`, and by Sherman
    and Morrison :math:`Q^{-1} = 1/(\beta c\,\mathbb{E}[1/S]) + \hat V_1 kk^\top`. So

    .. math:: \frac{\vartheta^2 + \psi^2}{2\beta c\,\mathbb{E}[1/S]}
              + \frac{\hat V_1}{2}\big(k\cdot(\vartheta, \psi)\big)^2

    is the cost, the same as published for T = 0. No other average notices one column in d. The
    conjugates of ϑ and ψ are eliminated here; :func:`.derive.saddle_point_system` gives them.

    The direction 1 has the squared norm p, so a readout whose overlap with it is m needs at least
    the squared norm :math:`m^2/p`. Along this direction the bulk is the resolvent of trace V_2, so
    that m costs :math:`m^2/(2pV_2)` as ϑ, along a direction of squared norm βc, costs
    :math:`\vartheta^2/(2\beta c V_2)` (the value of the terms in ϑ and its conjugate).

    Of an isotropic bulk, whose law does not change under rotations of the inputs,
    :math:`\Omega = M - bb^\top` with :math:`M = BB^\top` and b = B v, and M has the spectrum of Ω
    but for one eigenvalue in p. With S_M for M in S, the average over v of
    :math:`b^\top S_M^{-1}b` is :math:`\beta J` with :math:`J = \mathbb{E}[D/S]`, so that by
    Sherman and Morrison

    .. math:: \mathbb{E}[F/S] = \frac{J}{1 - \beta\hat V_1J} .

    For independent rows that is :math:`c\,\mathbb{E}[1/S]`. H has the conditional mean D and G the
    mean zero, because ζ is a direction that Ω has not lost. A penalty :math:`\lambda w^\top P w`
    with P diagonal where M is replaces λ by λP in S, and nothing else.

    Stationary in the order parameters V, q (bulk variance and self-overlaps), m, ϑ, ψ (overlaps
    with the all-ones vector, with B v and with B θ_⊥) and in their conjugates; its value at the
    saddle point is n/(2p) times the regularised training loss per sample.
    """
    definitions = conditional_coefficients(student, teacher, unspiked=unspiked, aligned=aligned)
    if correlated_norms:
        definitions |= {chi: norm_response(student, unspiked=unspiked)}
    conditional_variance = mu1**2 * V1 + mu2_squared * V2
    mean = conditional_mean(correlated_norms=correlated_norms, stretched=stretched)
    seen = teacher_overlap(stretched=stretched)
    conditional_error = (
        T2 - 2 * T0 * mean - 2 * mu1 * seen * T1 + mean**2 + mu1**2 * q1 + mu2_squared * q2
    )

    level = ridge * P + V2_hat

    def over_bulk(weight: sp.Expr) -> sp.Expr:
        if bulk == ISOTROPIC and weight == F:
            of_rows = over_bulk(D)
            # 1 - βV̂_1J, for β <= 1 without a difference.
            return of_rows / (over_bulk(level) + (1 - beta) * V1_hat * of_rows)
        term = weight / (level + V1_hat * D)
        isotropic = {G: sp.S.Zero, H: c * D}
        if bulk == IID:
            in_the_limit = isotropic | {D: c * eigenvalue, F: c, H: c * eigenvalue, P: sp.S.One}
            return MarchenkoPasturAverage(term.xreplace(in_the_limit), eigenvalue, beta)
        in_units = {x: c * x for x in (D, F, G, H)} | (isotropic if bulk == ISOTROPIC else {})
        return DataAverage(term.xreplace(in_units), BULK_COLUMNS[bulk], BULK)

    expression = (
        alpha / beta * average(conditional_error / (1 + conditional_variance)) / 2
        + (V1 * q1_hat + V2 * q2_hat - q1 * V1_hat - q2 * V2_hat) / 2
    )
    if stretched:
        direction_cost = (theta**2 + psi**2) / (beta * c * over_bulk(sp.S.One))
        expression -= (q1_hat * over_bulk(D) + q2_hat * over_bulk(sp.S.One)) / 2
        expression += (direction_cost + V1_hat * seen**2) / 2
    else:
        expression += (
            theta * theta_hat
            + psi * psi_hat
            - (q1_hat * over_bulk(D) + beta * psi_hat**2 * over_bulk(H)) / 2
            - (q2_hat * over_bulk(sp.S.One) + beta * theta_hat**2 * over_bulk(F)) / 2
            - beta * theta_hat * psi_hat * over_bulk(G)
        )
    if finite_width:
        expression += inverse_width * m**2 / (2 * V2)
    test_error = average(conditional_error) - noise
    training_error = average(conditional_error / (1 + conditional_variance) ** 2)
    vanishing = {f: sp.S.Zero for f, value in definitions.items() if value == 0}
    if vanishing:
        definitions = {
            f: value.subs(vanishing) for f, value in definitions.items() if f not in vanishing
        }
        expression, test_error, training_error = (
            e.subs(vanishing) for e in (expression, test_error, training_error)
        )
        if mu0 in vanishing:
            # Nothing depends on the mean direction any more.
            expression, test_error, training_error = (
                e.subs(m, 0) for e in (expression, test_error, training_error)
            )
    free_energy = FreeEnergy(
        expression=expression,
        order_parameters=(V1, V2, m, theta, psi, q1, q2),
        conjugates=(
            (V1_hat, V2_hat, q1_hat, q2_hat)
            if stretched
            else (V1_hat, V2_hat, theta_hat, psi_hat, q1_hat, q2_hat)
        ),
        parameters=(alpha, beta, ridge, noise, r, c, gamma, rho)
        + ((norm_overlap,) if correlated_norms else ())
        + (STRETCH if stretched else ())
        + ((inverse_width,) if finite_width else ()),
        definitions=definitions,
        source="Cui et al., arXiv 2402.04980, Result 3.3",
    )
    eliminated = (
        {
            IDENTIFIERS[hat]: average(
                alpha / beta * -sp.diff(conditional_error, x).subs(vanishing)
                / (1 + conditional_variance.subs(vanishing)) / 2
            )
            for x, hat in ((theta, theta_hat), (psi, psi_hat))
        }
        if stretched
        else {}
    )  # fmt: skip
    return SpikedFreeEnergy(free_energy, test_error, training_error, eliminated)


def norm_response(student: Activation, *, unspiked: bool = False) -> sp.Expr:
    r"""Return :math:`\chi(\kappa) = 2\,\partial_c \mathbb{E}\,\sigma(r\kappa + \sqrt c z)`."""
    return norm_response_definition(student, _centre(unspiked), sp.sqrt(c))


def conditional_coefficients(
    student: Activation, teacher: Activation, *, unspiked: bool = False, aligned: bool = False
) -> dict[sp.Expr, sp.Expr]:
    r"""Return the definitions of μ_0, μ_1, μ_2², T_0, T_1, T_2 as functions of κ.

    Notes
    -----
    Result 3.2: :math:`\mu_0 = \mathbb{E}\,\sigma(r\kappa + \sqrt c z)`,
    :math:`\mu_1 = \mathbb{E}\,\sigma'(r\kappa + \sqrt c z)` and :math:`\mu_2^2` the variance of σ
    that is left after the best affine fit in z: the coefficients of :mod:`.symbolic.equivalence`
    at :math:`r\kappa` and :math:`\sqrt c`. The teacher's moments are those of
    :math:`\sigma_*(\gamma\kappa + \rho s)`.
    """
    centre, spread = _centre(unspiked), sp.sqrt(c)
    definitions = {
        mu0: mean_definition(student, centre, spread),
        mu1: slope_definition(student, centre, spread),
        mu2_squared: residual_variance_definition(student, centre, spread, mu0, mu1),
    }
    if unspiked:
        vanishing = {Parity.ODD: mu0, Parity.EVEN: mu1}.get(student.parity)
        if vanishing is not None:
            definitions[vanishing] = sp.S.Zero
    label = teacher(gamma * kappa + (0 if aligned else rho * s))
    definitions[T0] = GaussianExpectation(label, s)
    definitions[T1] = sp.S.Zero if aligned else GaussianExpectation(s * label, s)
    definitions[T2] = GaussianExpectation(label**2, s) + noise
    return definitions


def _centre(unspiked: bool) -> sp.Expr:
    return sp.S.Zero if unspiked else r * kappa
