r"""The physics of spiked random features: the one place where their free energies are written.

Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980, Results 3.2 and 3.3,
appendices C and D. Conditionally on its projection κ on the spike, the features of a fresh input
are

.. math:: \varphi \simeq \mu_0(\kappa) 1 + \mu_1(\kappa) B x + \mu_2(\kappa) \xi ,

with coefficients for each kind of rows (letter). All that a readout sees of an input is the law of
its prediction given κ: Gaussian of mean C, variance q and covariance p with what the label depends
on besides κ (:class:`Prediction`). A readout that minimises
:math:`\sum_\mu\ell(y_\mu, \varphi_\mu\cdot w/\sqrt p) + \frac\lambda2|w|^2` has the free energy

.. math:: f = \tfrac\alpha\beta\,\big\langle\mathbb{E}\,M(y, \omega; V)\big\rangle + \text{cost} ,

with the Moreau envelope M of the loss: :math:`\frac12\mathrm{err}/(1 + V)` for half the squared
residual, :class:`.convex.smoothing.LabelledEnvelope` for any convex loss. Losses, label laws and
kinds of rows meet in no other place. The cost, what order parameters take of the penalty, comes in
two forms: as the paper prints it for one kind of rows, with conjugates and an average over the
spectrum of the bulk (:func:`spiked_free_energy`); and in closed form for any number of letters
(:func:`letters_free_energy`). Equations, test and training errors follow by differentiation and
substitution.

Notation (theory of the paper → here): sample complexity α = n/d, aspect ratio β = p/d, ridge
penalty λ (in :math:`\sum (y - \varphi\cdot w/\sqrt p)^2 + \lambda |w|^2` for the square loss),
spike strength r, bulk variance c, alignment γ and ρ = sqrt(1 − γ²), label noise variance Δ.
Conjugate parameters carry the prefactor α/β = n/p.

**Letters.** A fraction π_a of the rows is :math:`w_j = \sqrt{c_a}\,u_j + \sum_l r_{a,l} v_l`, with
bias b_a. The paper leaves traces over finite matrices; the closed form for independent rows is
derived here. With :math:`\mu_1^a` for rows of unit length (:math:`\sqrt{c_a}` is part of it),

.. math::
    V = \mu_1^\top V_1\mu_1 + \sum_a(\mu_2^a)^2V_2^a,\qquad
    C = m\cdot\mu_0 + \sum_l\kappa_l\,\vartheta_l\cdot\mu_1,\qquad P_u = \psi_u\cdot\mu_1 ,

and with the part :math:`Q_1 = q_1 - \sum_u\psi_u\psi_u^\top` of the overlaps that is left when the
label is known, the free energy in V_1 (K × K), V_2, m, ϑ, ψ, Q_1, q_2 is

.. math::
    f = \tfrac\alpha\beta\langle\mathbb{E}\,M\rangle
        - \tfrac12\big(Q_1\cdot\partial_{V_1} + q_2\cdot\partial_{V_2}\big)S
        + \sum_a\frac{m_a^2/p + (\sum_l\vartheta_{l,a}^2 + \sum_u\psi_{u,a}^2)/\beta}{2V_2^a} ,

where directions of spikes and of the teacher cost the same. In q_1 itself the cost of ψ reads
:math:`\frac1{2\beta}\sum_u\psi_u^\top V_1^{-1}\psi_u`.

S is the Legendre transform of the logarithm of the determinant
:math:`\Gamma(\hat V_1, \Lambda)` of :math:`\Lambda + \sum_i E_iE_i^\top`,

.. math::
    \Gamma = \sum_a\pi_a\log(\Lambda_a + \delta_a)
        + \tfrac1\beta\log\det(1 + \hat V_1N) - \sum_a\pi_aM_a\delta_a,
        \qquad N = \beta\,\mathrm{diag}(\pi_aM_a),

stationary in M and δ. Its conditions :math:`V_2^a = \pi_aM_a` and
:math:`V_1 = \beta^{-1}N(1 + \hat V_1N)^{-1}` can be solved for the conjugates,
:math:`\beta\hat V_1 = V_1^{-1} - \mathrm{diag}(1/V_2)`, so that nothing is left to iterate:

.. math::
    S = \tfrac1\beta\log\det V_1 + \sum_a\Big[(\pi_a - \tfrac1\beta)\log V_2^a
        - \frac{V_1^{aa}}{\beta V_2^a} - \lambda V_2^a\Big].

For orthonormal bulk rows :math:`\Omega_{ab} = \delta_{ab} - (Bv)_a(Bv)_b^\top` holds as it stands:
V_1 = diag(V_2), :math:`q_1 = \mathrm{diag}(q_2) - \vartheta\vartheta^\top`, and
:math:`S = \sum_a(\pi_a\log V_2^a - \lambda V_2^a)`.

For the square loss what is left to solve is that
:math:`F(V) = \tfrac\alpha\beta\langle\log(1 + V)\rangle - S` is stationary; q then solves its
Hessian once more. **F has one stationary point, its minimum, for
λ > 0.** Any two points are joined by a curve :math:`V_1 = Le^{\tau S}L^\top`,
:math:`V_2^a = v_ae^{\tau s_a}` with S symmetric. With eigenvalues :math:`\lambda_i` of S, its
eigenvectors in the columns of U and A = LU,

- :math:`\mu_1^\top V_1\mu_1 = \sum_i(A^\top\mu_1)_i^2e^{\tau\lambda_i}`, so that
  :math:`\log(1 + V)` is the logarithm of a sum of exponentials: convex, like its average;
- log det :math:`V_1` and :math:`\log V_2^a` are linear;
- :math:`V_1^{aa}/V_2^a = \sum_iA_{ai}^2e^{\tau(\lambda_i - s_a)}/v_a` and :math:`V_2^a` are sums of
  exponentials, convex. If an s_a is not zero, :math:`\lambda V_2^a` is strictly convex; if all are
  and a λ_i is not, the sum over a of :math:`V_1^{aa}/V_2^a` is, since no column of A vanishes.

So F is strictly convex along every such curve: it has at most one stationary point. As
:math:`\tau \to \infty`, F grows exponentially if an s_a > 0 or a λ_i > s_a with
:math:`A_{ai} \neq 0`. Otherwise its slope tends to
:math:`\beta^{-1}(\sum_as_a - \sum_i\lambda_i) - \sum_a\pi_as_a`. A is regular, so that a
permutation σ has :math:`A_{a\sigma(a)} \neq 0` for all a; hence
:math:`\lambda_{\sigma(a)} \le s_a \le 0`, and the slope is positive unless all s and λ vanish. So
F grows along every curve from a point, at a rate that is bounded below on the compact set of
directions, and has a minimum. Orthonormal rows: the same without V_1, with slope
:math:`-\sum_a\pi_as_a`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields

import sympy as sp

from ...errors import AssumptionError
from ...pages import InLatex
from ...symbolic.expressions.activations import Activation
from ...symbolic.expressions.averages import DataAverage
from ...symbolic.expressions.regularity import Parity
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.hermite.equivalence import (
    mean_definition,
    norm_response_definition,
    residual_variance_definition,
    slope_definition,
)
from ...symbolic.systems.equations import FreeEnergy
from ...symbolic.systems.random_matrix import MarchenkoPasturAverage
from ..teachers import MOST_DIRECTIONS, DirectionalTeacher, Teacher
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
# q_1 − ψ², the squared norm of a part of Bᵀw: what is left of q_1 when the label is known.
Q1 = sp.Symbol("Q_1", positive=True)
m, theta, psi = sp.symbols("m vartheta psi", real=True)
V1_hat, V2_hat = sp.symbols("Vhat_1 Vhat_2", nonnegative=True)
q1_hat, q2_hat = sp.symbols("qhat_1 qhat_2", nonnegative=True)
theta_hat, psi_hat = sp.symbols("varthetahat psihat", real=True)

# The names under which values are handed out and kernels are written.
IDENTIFIERS = {
    alpha: "alpha", beta: "beta", ridge: "ridge", noise: "noise_variance",
    r: "spike_strength", c: "bulk_variance", gamma: "alignment", rho: "orthogonal_alignment",
    V1: "V1", V2: "V2", q1: "q1", q2: "q2", m: "m", theta: "theta", psi: "psi",
    Q1: "q1_orthogonal",
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
class Across:
    """A direction n_k of the teacher across spike and θ.

    Attributes
    ----------
    moment : Expr
        T_1^k.
    overlap, conjugate : Symbol
        ψ_k, the overlap of the readout with B n_k, and its conjugate.
    """

    moment: sp.Expr
    overlap: sp.Symbol
    conjugate: sp.Symbol


ACROSS = tuple(
    Across(
        _function(f"T_1_{k}"),
        # Along n_k; psi_k is that of a letter.
        sp.Symbol(f"psi_n{k}", real=True),
        sp.Symbol(f"psihat_n{k}", real=True),
    )
    for k in range(2, MOST_DIRECTIONS + 2)
)
IDENTIFIERS |= {
    symbol: f"psi{k}{suffix}"
    for k, a in enumerate(ACROSS, 2)
    for symbol, suffix in ((a.overlap, ""), (a.conjugate, "_hat"))
}


@dataclass(frozen=True)
class Prediction:
    r"""The law of a readout's prediction ω given κ, before it has seen the sample.

    Attributes
    ----------
    mean : Expr
        C.
    covariance : Expr
        p, that with the Gaussian s on which the label depends besides κ.
    variance : Expr
        q.
    free_variance : Expr
        :math:`v = q - p^2`, what is left when the label is known; no difference where rows are
        independent and the norms are Q_1.
    step : Expr
        V: how far the sample itself moves its prediction, the step of the Moreau envelope.
    across : Expr
        What the covariance with the coordinates n_k·x of a teacher of several directions adds to
        that of label and prediction, :math:`\sum_kT_1^kp_k`.
    """

    mean: sp.Expr
    covariance: sp.Expr
    variance: sp.Expr
    free_variance: sp.Expr
    step: sp.Expr
    across: sp.Expr = sp.S.Zero

    def xreplace(self, values: Mapping[sp.Expr, sp.Expr]) -> Prediction:
        """Return the law with other order parameters or coefficients."""
        return Prediction(*(getattr(self, f.name).xreplace(values) for f in fields(self)))

    @property
    def error(self) -> sp.Expr:
        """The mean squared error on noisy labels, err."""
        labelled = T1 * self.covariance + self.across
        return square_error(T0, T2, self.mean, labelled, self.variance)


LossTerm = Callable[[Prediction], sp.Expr]
"""Returns 𝔼 M, the mean Moreau envelope of a loss, for a prediction."""


@dataclass(frozen=True)
class SpikedFreeEnergy(InLatex):
    """The free energy with what it says about predictions.

    Attributes
    ----------
    free_energy : FreeEnergy
        In 13 variables for one kind of rows; fewer where `unspiked` removes some.
    norm : Expr
        The squared norm of the readout divided by the width.
    overlaps : dict from str to Expr
        Entries of q_1, the overlaps of bulk rows that the readout combines, by their names.
    test_error, training_error : Expr
        Mean squared error on fresh inputs against the noise-free target, and, of the square loss,
        on the training set against the noisy labels; 𝔼 over κ of the variables at the saddle point.
    eliminated : dict from str to Expr
        Conjugates that the free energy is without, by their names.
    letters : Letters or None
        The symbols of several kinds of rows.
    """

    free_energy: FreeEnergy
    prediction: Prediction
    norm: sp.Expr
    overlaps: dict[str, sp.Expr]
    test_error: sp.Expr
    training_error: sp.Expr
    eliminated: dict[str, sp.Expr] = field(default_factory=dict)
    letters: Letters | None = None

    def latex(self) -> str:
        """Return the free energy in LaTeX, without delimiters."""
        return self.free_energy.latex()


def square_error(
    t0: sp.Expr, t2: sp.Expr, mean: sp.Expr, labelled: sp.Expr, variance: sp.Expr
) -> sp.Expr:
    r"""Return :math:`\mathbb{E}[(y - \omega)^2 | \kappa]` of labels with moments T_0, T_2.

    Mean and variance are C and q of ω; `labelled` is the covariance of y and ω given κ,
    :math:`T_1 p` or its sum over directions.
    """
    return t2 - 2 * t0 * mean - 2 * labelled + mean**2 + variance


def square_envelope(error: sp.Expr, step: sp.Expr) -> sp.Expr:
    """Return the mean Moreau envelope of half the squared residual."""
    # In this order: SymPy distributes a number over the sum that the error is.
    return error / (1 + step) / 2


def square_loss(prediction: Prediction) -> sp.Expr:
    """Return 𝔼 M of half the squared residual: the default of free energies."""
    return square_envelope(prediction.error, prediction.step)


def penalty(norm: sp.Expr) -> sp.Expr:
    """Return what the ridge penalty adds to an error per sample, of the squared norm over p."""
    return ridge * beta / alpha * norm


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
    teacher: Teacher,
    *,
    unspiked: bool = False,
    aligned: bool = False,
    correlated_norms: bool = False,
    stretched: bool = False,
    finite_width: bool = False,
    bulk: str = IID,
    loss_term: LossTerm = square_loss,
) -> SpikedFreeEnergy:
    r"""Return the free energy of one kind of rows, as the paper prints it.

    Parameters
    ----------
    student : Activation
        σ of the network.
    teacher : Activation or DirectionalTeacher
        σ_* of the single-index target, or a target of several directions.
    unspiked : bool
        Exactly r = 0 (plain random features): the coefficients no longer depend on κ, and a
        student of mean zero has no m.
    aligned : bool
        Exactly |γ| = 1 (ρ = 0): the labels are a function of κ.
    correlated_norms : bool
        Include that the squared norm of a bulk row b is c + 2 a b·v to leading order, with the
        norm overlap a of :func:`.spike_mapping.spike_mapping`; Result 3.2 as published has a = 0.
    stretched : bool
        Include that bulk rows are stretched by 1 + T in the plane of v and ζ, with T of
        :func:`.spike_mapping.spike_mapping`; Result 3.1 as published has T = 0.
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
    loss_term : callable
        𝔼 M of the loss; by default of half the squared residual.

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

    **Several directions.** Given κ, the features are linear in the rest of the input up to noise,
    with the slope :math:`\mu_1(\kappa)`. So of a target that depends on coordinates n_k·x across
    spike and θ, a readout sees its linear parts in them,
    :math:`T_1^k = \mathbb{E}[(n_k\cdot x)f_*|\kappa]`, weighted with μ_1: its overlaps ψ_k with
    B n_k are more copies of ψ, with ψ̂_k = :math:`\frac\alpha\beta\langle
    \mu_1T_1^k/(1 + V)\rangle` and the same cost. The rest of the target is in T_0 and T_2.

    Stationary in the order parameters V, q (bulk variance and self-overlaps), m, ϑ, ψ (overlaps
    with the all-ones vector, with B v and with B θ_⊥) and in their conjugates; its value at the
    saddle point is n/(2p) times the regularised training loss per sample.
    """
    definitions = conditional_coefficients(student, teacher, unspiked=unspiked, aligned=aligned)
    across = [overlap for overlap in ACROSS if definitions.get(overlap.moment, 0) != 0]
    if across and (stretched or bulk == OVERLAPS):
        raise AssumptionError(
            f"teacher {teacher.name!r} has directions across the spike, for which no stretch of "
            "the rows and no law of overlaps of the bulk is derived; use "
            'leading_order="published", or bulk="iid" or a law of eigenvalues'
        )
    if correlated_norms:
        definitions |= {chi: norm_response(student, unspiked=unspiked)}
    vanishing = {f: sp.S.Zero for f, value in definitions.items() if value == 0}
    definitions = {
        f: value.subs(vanishing) for f, value in definitions.items() if f not in vanishing
    }
    seen = teacher_overlap(stretched=stretched)
    prediction = Prediction(
        mean=conditional_mean(correlated_norms=correlated_norms, stretched=stretched),
        covariance=sp.S.Zero if aligned else mu1 * seen,
        variance=mu1**2 * q1 + mu2_squared * q2,
        free_variance=mu1**2 * (q1 - seen**2 - sum(a.overlap**2 for a in across))
        + mu2_squared * q2,
        step=mu1**2 * V1 + mu2_squared * V2,
        across=sp.Add(*(a.moment * mu1 * a.overlap for a in across)),
    ).xreplace(vanishing)
    error = prediction.error

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
        alpha / beta * average(loss_term(prediction))
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
    for a in across:
        expression += a.overlap * a.conjugate - beta * a.conjugate**2 * over_bulk(H) / 2
    if finite_width:
        expression += inverse_width * m**2 / (2 * V2)
    if mu0 in vanishing:
        # Nothing depends on the mean direction any more.
        expression = expression.subs(m, 0)
    free_energy = FreeEnergy(
        expression=expression,
        order_parameters=(V1, V2, m, theta, psi, *(a.overlap for a in across), q1, q2),
        conjugates=(
            (V1_hat, V2_hat, q1_hat, q2_hat)
            if stretched
            else (
                V1_hat,
                V2_hat,
                theta_hat,
                psi_hat,
                *(a.conjugate for a in across),
                q1_hat,
                q2_hat,
            )
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
            IDENTIFIERS[hat]: alpha / beta * average(-sp.diff(loss_term(prediction), x))
            for x, hat in ((theta, theta_hat), (psi, psi_hat))
        }
        if stretched
        else {}
    )
    return SpikedFreeEnergy(
        free_energy,
        prediction,
        norm=q2,
        overlaps={IDENTIFIERS[q1]: q1},
        test_error=average(error) - noise,
        training_error=average(error / (1 + prediction.step) ** 2),
        eliminated=eliminated,
    )


def norm_response(student: Activation, *, unspiked: bool = False) -> sp.Expr:
    r"""Return :math:`\chi(\kappa) = 2\,\partial_c \mathbb{E}\,\sigma(r\kappa + \sqrt c z)`."""
    return norm_response_definition(student, _centre(unspiked), sp.sqrt(c))


def conditional_coefficients(
    student: Activation, teacher: Teacher, *, unspiked: bool = False, aligned: bool = False
) -> dict[sp.Expr, sp.Expr]:
    r"""Return the definitions of μ_0, μ_1, μ_2², T_0, T_1, T_2 as functions of κ.

    Notes
    -----
    Result 3.2: :math:`\mu_0 = \mathbb{E}\,\sigma(r\kappa + \sqrt c z)`,
    :math:`\mu_1 = \mathbb{E}\,\sigma'(r\kappa + \sqrt c z)` and :math:`\mu_2^2` the variance of σ
    that is left after the best affine fit in z: the coefficients of
    :mod:`.symbolic.hermite.equivalence` at :math:`r\kappa` and :math:`\sqrt c`. The teacher's
    moments are those of :math:`\sigma_*(\gamma\kappa + \rho s)`; a target of several directions
    has the T_1^k of :data:`ACROSS`, too, unless they vanish.
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
    # Plain random features have no spike: θ is across it, γ = 0.
    return definitions | label_moments(teacher, gamma * kappa, aligned=aligned)


def label_moments(teacher: Teacher, centre: sp.Expr, *, aligned: bool) -> dict[sp.Expr, sp.Expr]:
    """Return the definitions of T_0, T_1 and T_2 of labels whose field is centred at γκ."""
    if isinstance(teacher, DirectionalTeacher):
        found = teacher.moments(centre, sp.S.Zero if aligned else rho)
        others = [value for value in found.across if value != 0]
        return {
            T0: found.mean,
            T1: found.along,
            T2: found.square + noise,
            **{a.moment: value for a, value in zip(ACROSS, others, strict=False)},
        }
    label = teacher(centre + (0 if aligned else rho * s))
    return {
        T0: GaussianExpectation(label, s),
        T1: sp.S.Zero if aligned else GaussianExpectation(s * label, s),
        T2: GaussianExpectation(label**2, s) + noise,
    }


def _centre(unspiked: bool) -> sp.Expr:
    return sp.S.Zero if unspiked else r * kappa


# ------------------------------------------------------------------ several kinds of rows


def letter_potential(bulk: str, v1: sp.Expr, v2: sp.Expr, fraction: sp.Expr) -> sp.Expr:
    """Return what one letter adds to -S, without log det V_1; `v1` is its diagonal entry."""
    if bulk == "orthonormal":
        return ridge * v2 - fraction * sp.log(v2)
    return (1 / beta - fraction) * sp.log(v2) + v1 / (beta * v2) + ridge * v2


def determinant_weight(bulk: str) -> sp.Expr:
    """Return the factor of log det V_1 in S."""
    return sp.S.Zero if bulk == "orthonormal" else 1 / beta


def overlap_cost(
    v2: sp.Expr, m_squared: sp.Expr, theta_squared: sp.Expr, psi_squared: sp.Expr
) -> sp.Expr:
    """Return the cost of the overlaps of one letter where the norms are Q_1.

    The squares of ϑ and ψ are summed over directions.
    """
    return (inverse_width * m_squared + (theta_squared + psi_squared) / beta) / (2 * v2)


def psi_weight(bulk: str) -> sp.Expr:
    r"""Return the factor of :math:`\psi^\top V_1^{-1}\psi` in f where the norms are q_1.

    For independent rows it is then the whole cost of ψ.
    """
    return determinant_weight(bulk) / 2


@dataclass(frozen=True)
class Letters:
    """Every entry of the order parameters of K letters as a symbol, for a spike of rank one.

    Attributes
    ----------
    fractions, strengths, variances, biases : tuple of Symbol
        π_a, r_a, c_a and b_a.
    v1, norms : Matrix (K, K)
        V_1, and q_1 or Q_1.
    mu0, mu1, slope, mu2_squared, chi : tuple of Expr
        Conditional coefficients: μ_1 for rows of unit length, `slope` for those of norm c.
    norm_overlaps : tuple of Symbol
        a of each letter; none without correlated norms.
    stretches : tuple of (Symbol, Symbol, Symbol)
        T_vv, T_vζ and T_ζζ of each letter; none without a stretch.
    """

    fractions: tuple[sp.Symbol, ...]
    strengths: tuple[sp.Symbol, ...]
    variances: tuple[sp.Symbol, ...]
    biases: tuple[sp.Symbol, ...]
    v2: tuple[sp.Symbol, ...]
    q2: tuple[sp.Symbol, ...]
    m: tuple[sp.Symbol, ...]
    theta: tuple[sp.Symbol, ...]
    psi: tuple[sp.Symbol, ...]
    v1: sp.Matrix
    norms: sp.Matrix
    mu0: tuple[sp.Expr, ...]
    mu1: tuple[sp.Expr, ...]
    slope: tuple[sp.Expr, ...]
    mu2_squared: tuple[sp.Expr, ...]
    chi: tuple[sp.Expr, ...]
    norm_overlaps: tuple[sp.Symbol, ...]
    stretches: tuple[tuple[sp.Symbol, ...], ...]

    @classmethod
    def of(
        cls,
        count: int,
        norms: str = "q1",
        *,
        correlated_norms: bool = False,
        stretched: bool = False,
    ) -> Letters:
        """Return the symbols of so many letters, those of norms named ``q1_ab`` or ``Q1_ab``."""

        def symbols(name: str, **assumptions: bool) -> tuple[sp.Symbol, ...]:
            return tuple(sp.Symbol(f"{name}_{a + 1}", **assumptions) for a in range(count))

        def functions(name: str) -> tuple[sp.Expr, ...]:
            return tuple(_function(f"{name}_{a + 1}") for a in range(count))

        def symmetric(name: str, *, positive: bool) -> sp.Matrix:
            def entry(i: int, j: int) -> sp.Symbol:
                known = {"positive": True} if positive and i == j else {"real": True}
                return sp.Symbol(f"{name}_{min(i, j) + 1}{max(i, j) + 1}", **known)

            return sp.Matrix(count, count, entry)

        return cls(
            fractions=symbols("pi", positive=True),
            strengths=symbols("spike_strength", real=True),
            variances=symbols("bulk_variance", positive=True),
            biases=symbols("bias", real=True),
            v2=symbols("V2", positive=True),
            q2=symbols("q2", **({"positive": True} if norms == "Q1" else {"real": True})),
            m=symbols("m", real=True),
            theta=symbols("theta", real=True),
            psi=symbols("psi", real=True),
            v1=symmetric("V1", positive=True),
            norms=symmetric(norms, positive=norms == "Q1"),
            mu0=functions("mu0"),
            mu1=functions("mu1"),
            slope=functions("slope"),
            mu2_squared=functions("mu2_squared"),
            chi=functions("chi") if correlated_norms else (),
            norm_overlaps=symbols("norm_overlap", real=True) if correlated_norms else (),
            stretches=tuple(
                zip(*(symbols(IDENTIFIERS[t], real=True) for t in STRETCH), strict=True)
            )
            if stretched
            else (),
        )

    @property
    def upper(self) -> list[tuple[int, int]]:
        """Places of the upper triangles of `v1` and `norms`."""
        return [(i, j) for i in range(len(self.v2)) for j in range(i, len(self.v2))]

    @property
    def without_data(self) -> dict[sp.Symbol, sp.Expr]:
        """V as it is without data, V_2 = π/λ and V_1 its diagonal: where a large ridge leads."""
        found = {v: share / ridge for v, share in zip(self.v2, self.fractions, strict=True)}
        return found | {
            self.v1[i, j]: self.fractions[i] / ridge if i == j else sp.S.Zero for i, j in self.upper
        }

    def seen(self, *, aligned: bool) -> tuple[sp.Expr, ...]:
        """Return the overlaps with B ζ, the bulk in the teacher's direction across the spike."""
        if aligned:
            # What is stretched then is along the spike alone.
            return (sp.S.Zero,) * len(self.psi)
        if not self.stretches:
            return self.psi
        rows = zip(self.stretches, self.theta, self.psi, strict=True)
        return tuple(mixed * x + (1 + across) * y for (_, mixed, across), x, y in rows)

    def along_spike(self, *, aligned: bool) -> sp.Expr:
        """Return what the mean prediction owes to overlaps with the bulk along the spike."""
        overlaps = self.theta
        if self.stretches:
            psi = (sp.S.Zero,) * len(self.psi) if aligned else self.psi
            rows = zip(self.stretches, self.theta, psi, strict=True)
            overlaps = tuple((1 + along) * x + mixed * y for (along, mixed, _), x, y in rows)
        found = kappa * _dot(overlaps, self.mu1)
        if self.norm_overlaps:
            # Overlaps ϑ are those of rows of unit length.
            rates = zip(self.norm_overlaps, self.variances, self.chi, strict=True)
            found += _dot(self.theta, [a * sp.sqrt(variance) * x for a, variance, x in rates])
        return found

    def overlaps(self, bulk: str, *, aligned: bool, whole: bool) -> dict[str, sp.Expr]:
        """Return the entries of q_1 by their names; `whole` as for :meth:`prediction`."""
        if bulk == "orthonormal":
            theta = sp.Matrix(self.theta)
            matrix = sp.diag(*self.q2) - theta * theta.T
        else:
            seen = sp.Matrix(self.seen(aligned=aligned))
            matrix = self.norms if whole else self.norms + seen * seen.T
        return {f"q1_{i + 1}{j + 1}": matrix[i, j] for i, j in self.upper}

    def coefficients(self, student: Activation) -> dict[sp.Expr, sp.Expr]:
        """Return the definitions of the conditional coefficients of all letters."""
        found: dict[sp.Expr, sp.Expr] = {}
        for a, variance in enumerate(self.variances):
            centre, spread = self.strengths[a] * kappa + self.biases[a], sp.sqrt(variance)
            mu0_, slope = self.mu0[a], self.slope[a]
            found |= {
                mu0_: mean_definition(student, centre, spread),
                slope: slope_definition(student, centre, spread),
                self.mu1[a]: spread * slope,
                self.mu2_squared[a]: residual_variance_definition(
                    student, centre, spread, mu0_, slope
                ),
            }
            if self.chi:
                found[self.chi[a]] = norm_response_definition(student, centre, spread)
        return found

    def prediction(self, bulk: str, *, aligned: bool, whole: bool) -> Prediction:
        """Return the law of predictions; with `whole` the norms are q_1, else Q_1."""
        v1, norms = self.v1, self.norms
        covariance = _dot(self.seen(aligned=aligned), self.mu1)
        rest = _dot(self.mu2_squared, self.q2)
        if bulk == "orthonormal":
            v1 = sp.diag(*self.v2)
            along = _dot(self.theta, self.mu1)
            variance = _dot([x**2 for x in self.mu1], self.q2) - along**2 + rest
            free = variance - covariance**2
        else:
            quadratic = _quadratic(norms, self.mu1) + rest
            variance = quadratic if whole else quadratic + covariance**2
            free = quadratic - covariance**2 if whole else quadratic
        return Prediction(
            mean=_dot(self.m, self.mu0) + self.along_spike(aligned=aligned),
            covariance=covariance,
            variance=variance,
            free_variance=free,
            step=_quadratic(v1, self.mu1) + _dot(self.mu2_squared, self.v2),
        )


def letters_free_energy(
    student: Activation,
    teacher: Activation,
    count: int,
    bulk: str = "iid",
    *,
    aligned: bool = False,
    correlated_norms: bool = False,
    stretched: bool = False,
    loss_term: LossTerm = square_loss,
) -> SpikedFreeEnergy:
    r"""Return the free energy of several kinds of rows with a spike of rank one, in closed form.

    Parameters
    ----------
    count : int
        K; the determinant of V_1 is written out, so this is for small K.
    bulk : {"iid", "orthonormal"}
    aligned : bool
        Exactly |γ| = 1: the labels are a function of κ, and ψ is zero.
    correlated_norms, stretched : bool
        As for :func:`spiked_free_energy`, with a and T of each letter; for independent rows.
    loss_term : callable
        𝔼 M of the loss. For the default, half the squared residual, the norms are q_1, in which
        their equations are linear; for others Q_1, so that the variance that is left when the
        label is known is no difference.

    Notes
    -----
    With stretched rows the labels see :math:`k_a\cdot(\vartheta_a, \psi_a)`. As for one kind of
    rows, the column B ζ is one of Ω; without it
    :math:`[U_av, U_a\zeta]^\top S_0^{-1}[U_bv, U_b\zeta] \to \delta_{ab}\,\beta V_2^a\,1`, so
    that by Sherman and Morrison overlaps cost
    :math:`\sum_a(\vartheta_a^2 + \psi_a^2)/(2\beta V_2^a)` and, where the norms are q_1, half of
    :math:`\sum_{ab}(k\cdot)_a\hat V_1^{ab}(k\cdot)_b` with
    :math:`\beta\hat V_1 = V_1^{-1} - \mathrm{diag}(1/V_2)`; in Q_1 that is part of the norms.
    """
    whole = loss_term is square_loss
    letters = Letters.of(
        count, "q1" if whole else "Q1", correlated_norms=correlated_norms, stretched=stretched
    )
    prediction = letters.prediction(bulk, aligned=aligned, whole=whole)
    spectral = legendre_transform(letters.v1, letters.v2, letters.fractions, bulk)
    pairs = list(zip(letters.v2, letters.q2, strict=True))
    if bulk == "iid":
        pairs += [(letters.v1[i, j], letters.norms[i, j]) for i, j in letters.upper]
    seen = sp.Matrix(letters.seen(aligned=aligned))
    own = (sp.S.Zero,) * count if aligned else letters.psi
    apart = whole and bulk == "iid"
    # In q_1 what the matrix costs has a part in V_2, too: all of that of ψ of unstretched rows.
    alone = [y**2 - (x**2 if apart else 0) for x, y in zip(seen, own, strict=True)]
    cost = sp.Add(
        *(
            overlap_cost(v, x**2, y**2, w)
            for v, x, y, w in zip(letters.v2, letters.m, letters.theta, alone, strict=True)
        )
    )
    if apart:
        cost += psi_weight(bulk) * (seen.T * letters.v1.inv() * seen)[0]
    expression = (
        alpha / beta * average(loss_term(prediction))
        - sum(q * spectral.diff(v) for v, q in pairs) / 2
        + cost
    )
    overlaps = (*letters.m, *letters.theta, *(() if aligned else letters.psi))
    fixed = (alpha, beta, ridge, noise, inverse_width, gamma) + (() if aligned else (rho,))
    rows = zip(letters.fractions, letters.strengths, letters.variances, letters.biases, strict=True)
    error = prediction.error
    return SpikedFreeEnergy(
        FreeEnergy(
            expression=expression,
            order_parameters=(*(v for v, _ in pairs), *overlaps, *(q for _, q in pairs)),
            conjugates=(),
            parameters=(
                *fixed,
                *(x for row in rows for x in row),
                *letters.norm_overlaps,
                *(x for row in letters.stretches for x in (row[:1] if aligned else row)),
            ),
            definitions=letters.coefficients(student)
            | label_moments(teacher, gamma * kappa, aligned=aligned),
            source="Cui et al., arXiv 2402.04980, C.8, in the closed form derived here",
            # The logarithm of its determinant is part of S, of which only derivatives are left.
            positive=(letters.v1,) if bulk == "iid" else (),
        ),
        prediction,
        norm=sp.Add(*letters.q2),
        overlaps=letters.overlaps(bulk, aligned=aligned, whole=whole),
        test_error=average(error) - noise,
        training_error=average(error / (1 + prediction.step) ** 2),
        letters=letters,
    )


def log_determinant(
    v1_hat: sp.Matrix,
    levels: Sequence[sp.Expr],
    fractions: Sequence[sp.Expr],
    resolvents: Sequence[sp.Expr],
    shifts: Sequence[sp.Expr],
) -> sp.Expr:
    r"""Return :math:`\Gamma(\hat V_1, \Lambda; M, \delta)`, from which S follows.

    Parameters
    ----------
    levels, fractions, resolvents, shifts : sequence of Expr
        Λ_a, π_a, M_a and δ_a.
    """
    letters = range(len(levels))
    n = beta * sp.diag(*(fractions[a] * resolvents[a] for a in letters))
    diagonal = sum(
        fractions[a] * (sp.log(levels[a] + shifts[a]) - resolvents[a] * shifts[a]) for a in letters
    )
    return diagonal + sp.log((sp.eye(len(levels)) + v1_hat * n).det()) / beta


def legendre_transform(
    v1: sp.Matrix, v2: Sequence[sp.Expr], fractions: Sequence[sp.Expr], bulk: str = "iid"
) -> sp.Expr:
    """Return S(V_1, V_2)."""
    weight = determinant_weight(bulk)
    total = weight * sp.log(v1.det()) if weight else sp.S.Zero
    for a, v in enumerate(v2):
        total -= letter_potential(bulk, v1[a, a], v, fractions[a])
    return total


def _dot(x: Sequence[sp.Expr], y: Sequence[sp.Expr]) -> sp.Expr:
    return sp.Add(*(a * b for a, b in zip(x, y, strict=True)))


def _quadratic(matrix: sp.Matrix, x: Sequence[sp.Expr]) -> sp.Expr:
    column = sp.Matrix(x)
    found: sp.Expr = (column.T * matrix * column)[0]
    return found
