r"""Free entropy, state evolution and the estimators of a Gaussian index model, as expressions.

Labels :math:`y\sim P(y\mid u)` of projections :math:`u = \Theta x` on orthonormal rows, n = αd
samples, d → ∞. With the overlap :math:`Q = \lim\mathbb{E}[\hat\Theta\Theta^\top]`, V = 1 − Q and
:math:`Z(y;\omega,V) = \mathbb{E}_s P(y\mid\omega + V^{1/2}s)`,

.. math::
    \Phi &= \tfrac{1}{2}\operatorname{tr}\hat Q - \tfrac{1}{2}\log\det(1+\hat Q)
            - \tfrac{1}{2}\operatorname{tr}Q\hat Q + \alpha\Psi(Q), \qquad
    \Psi = \mathbb{E}_{\omega\sim N(0,Q)}\!\int\!dy\,Z\log Z, \\
    Q &= \hat Q(1+\hat Q)^{-1}, \qquad \hat Q = \alpha I(Q), \qquad
    I = \mathbb{E}\!\int\!dy\,Z\,gg^\top = 2\,\partial\Psi/\partial Q, \qquad
    g = \partial_\omega\log Z .

For one index the fixed points are the curve :math:`\alpha(q) = q/((1-q)I(q))`, q the squared cosine
of the angle between estimate and teacher. Sources: Barbier, Krzakala, Macris, Miolane, Zdeborová,
arXiv 1708.03395 (one index); Aubin et al., arXiv 1806.05451 (committees); Troiani et al., arXiv
2405.15480 (which directions are easy). The estimators below, and all that the quadrature needs, are
derived here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp

from ...symbolic.expressions.bivariate_normal import normal_cdf
from ...symbolic.expressions.functions import softplus
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.losses.convex_losses import is_kinked
from ...symbolic.losses.proximal import MoreauEnvelope
from ...symbolic.systems.equations import FreeEnergy
from ...symbolic.systems.saddle_point import SaddlePointSystem
from ..derived import derived

SOURCE = "Barbier, Krzakala, Macris, Miolane, Zdeborova, arXiv 1708.03395"

alpha = sp.Symbol("alpha", positive=True)
noise = sp.Symbol("Delta", nonnegative=True)
ridge = sp.Symbol("lambda", positive=True)
q, q_hat = sp.Symbol("q", positive=True), sp.Symbol("qhat", positive=True)
omega, label, index = sp.symbols("omega y u", real=True)
V = sp.Symbol("V", positive=True)
z, s, xi = sp.symbols("z s xi", real=True)
linear, square, information = sp.symbols("h_1 Y I_1", positive=True)

Window = tuple[sp.Expr, sp.Expr]


# ---------------------------------------------------------------------- free entropy, one index


def free_entropy(average: sp.Expr, overlap: sp.Expr = q, conjugate: sp.Expr = q_hat) -> sp.Expr:
    """Return Φ of one index for Ψ(q)."""
    prior = conjugate / 2 - sp.log(1 + conjugate) / 2 - overlap * conjugate / 2
    return prior + alpha * average


def free_entropy_at_overlap(average: sp.Expr) -> sp.Expr:
    r"""Return :math:`\varphi(q) = \frac{q}{2} + \frac{1}{2}\log(1-q) + \alpha\Psi(q)`."""
    return sp.simplify(free_entropy(average).subs(q_hat, q / (1 - q)))


def sample_complexity(overlap: sp.Expr, found: sp.Expr) -> sp.Expr:
    """Return α of a fixed point with overlap q at which the labels' information is I(q)."""
    return overlap / ((1 - overlap) * found)


def window_probability(windows: Sequence[Window]) -> sp.Expr:
    """Return Z of a label that is certain for u in intervals, and impossible elsewhere."""
    total = sp.S.Zero
    for low, high in windows:
        upper = sp.S.One if high == sp.oo else normal_cdf((high - omega) / sp.sqrt(V))
        # What is above a point is written as a tail, which keeps its digits far out.
        tail = sp.erfc((low - omega) / sp.sqrt(2 * V)) / 2
        if low == -sp.oo:
            below = (omega - high) / sp.sqrt(2 * V)
            total += sp.S.One if high == sp.oo else sp.erfc(below) / 2
        else:
            total += tail if high == sp.oo else upper - normal_cdf((low - omega) / sp.sqrt(V))
    return total


def preimage_logarithm(mirrored: bool) -> sp.Expr:
    r"""Return log Z of a label without noise, up to :math:`\log|f'|`.

    :math:`Z = \sum_i N(u_i;\omega,V)/|f'(u_i)|` over the points with the label of u: u alone, or u
    and −u of an even function, whose slopes are equal up to the sign.
    """
    logarithm = -((index - omega) ** 2) / (2 * V) - sp.log(2 * sp.pi * V) / 2
    return logarithm + softplus(-2 * index * omega / V) if mirrored else logarithm


def smoothed(conditional: sp.Expr) -> sp.Expr:
    """Return Z of a conditional law of u, an expectation."""
    return GaussianExpectation(conditional.xreplace({index: omega + sp.sqrt(V) * s}), s).doit()


def averaged_logarithm(
    labels: Mapping[sp.Expr, sp.Expr], certain: tuple[sp.Expr, sp.Expr] | None
) -> sp.Expr:
    """Return Ψ: of labels with probabilities, and of labels without noise with a density.

    Parameters
    ----------
    labels : mapping from label to Expr
        Z in ω and V.
    certain : (Expr, Expr) or None
        log Z of the label f(u), in u, ω and V, and the indicator of where labels are such.
    """
    at = {omega: sp.sqrt(q) * z, V: 1 - q}
    found = sp.Add(*(Z * sp.log(Z) for Z in labels.values()))
    if certain is not None:
        logarithm, region = certain
        inside = region * logarithm
        found += GaussianExpectation(inside.xreplace({index: omega + sp.sqrt(V) * s}), s).doit()
    return GaussianExpectation(found.xreplace(at), z)


def labels_information(
    labels: Mapping[sp.Expr, sp.Expr], certain: tuple[sp.Expr, sp.Expr] | None
) -> sp.Expr:
    r"""Return I(q) for the same, :math:`\mathbb{E}\sum(\partial_\omega Z)^2/Z`."""
    at = {omega: sp.sqrt(q) * z, V: 1 - q}
    found = sp.Add(*(Z.diff(omega) ** 2 / Z for Z in labels.values()))
    if certain is not None:
        logarithm, region = certain
        score = region * logarithm.diff(omega) ** 2
        found += GaussianExpectation(score.xreplace({index: omega + sp.sqrt(V) * s}), s).doit()
    return GaussianExpectation(found.xreplace(at), z)


def bayes_system(
    labels: Mapping[sp.Expr, sp.Expr], certain: tuple[sp.Expr, sp.Expr] | None, name: str
) -> SaddlePointSystem:
    """Return the stationarity of Φ for labels whose Z is closed, as equations.

    Parameters
    ----------
    labels, certain
        As for :func:`averaged_logarithm`.
    name : str
        Of the kernel.
    """
    entropy = free_entropy(averaged_logarithm(labels, certain))
    if certain is None:
        return SaddlePointSystem.from_free_energy(
            FreeEnergy(entropy, (q,), (q_hat,), (alpha,), source=SOURCE),
            name=name,
            outputs={"free_entropy": entropy},
            domains={q: sp.Interval.open(0, 1)},
            title="Bayes-optimal estimation of one index",
        )
    # The label moves with ω under the average: the equations are stated as they are known.
    return SaddlePointSystem.from_fixed_point(
        {q: q_hat / (1 + q_hat), q_hat: alpha * labels_information(labels, certain)},
        name=name,
        parameters=(alpha,),
        # An average over a region that moves has a closed form for the score, not for log Z.
        outputs={"free_entropy": entropy} if certain[1] == 1 else {},
        domains={q: sp.Interval.open(0, 1)},
        source=SOURCE,
        title="Bayes-optimal estimation of one index",
    )


# ---------------------------------------------------------------------- other estimators


def giant_step_overlap() -> sp.Expr:
    r"""Return γ² of the first giant step, :math:`\sum y_\mu x_\mu`."""
    return linear**2 / (linear**2 + square / alpha)


def transformed(expr: sp.Expr) -> sp.Expr:
    r"""Return an estimator's overlap on the labels :math:`T = \mathbb{E}[u\mid y]`.

    Both the linear coefficient and the square of T(y) are I(0).
    """
    return sp.simplify(expr.subs({linear: information, square: information}, simultaneous=True))


def ridge_overlap() -> sp.Expr:
    r"""Return q of ridge regression at its best penalty.

    What is not linear acts as noise of variance :math:`Y/h_1^2 - 1`, the posterior mean of a linear
    channel has :math:`q/(1-q) = \alpha/(1 - q + \tilde\sigma^2)`.
    """
    excess = square / linear**2 - 1
    b = alpha + 1 + excess
    return 2 * alpha / (b + sp.sqrt(b**2 - 4 * alpha))


def efficiency() -> sp.Expr:
    r"""Return :math:`h_1^2/(Y I_1)\le 1`, what a giant step achieves at small α."""
    return linear**2 / (square * information)


def spectral_transform(second: sp.Expr) -> sp.Expr:
    r"""Return T(y) of the spectral estimator :math:`\sum T(y)xx^\top` with the lowest threshold.

    Parameters
    ----------
    second : Expr
        :math:`\mathbb{E}[u^2\mid y]`; Mondelli and Montanari, arXiv 1708.05932; Lu and Li, arXiv
        1702.06435.
    """
    return 1 - 1 / second


# ---------------------------------------------------------------------- convex losses


def erm_system(
    loss: sp.Expr, prediction: sp.Symbol, labels: Mapping[sp.Expr, sp.Expr],
    regression: sp.Expr | None, *, name: str,
) -> SaddlePointSystem:  # fmt: skip
    r"""Return the minimiser of :math:`\sum\ell(y, w\cdot x) + \frac\lambda2|w|^2` as equations.

    With the slope f of the Moreau envelope, negative, at ω ~ N(0, q), and u given ω normal with
    mean mω/q and variance :math:`1 - m^2/q`,
    :math:`\hat m = \alpha\,\mathbb{E}[g_0f] = \alpha\,\mathbb{E}[(u - m\omega/q)f]/(1 - m^2/q)`:
    the law of labels enters as it is given, without its Z.

    Parameters
    ----------
    loss : Expr
        In `label` and the prediction.
    prediction : Symbol
    labels : mapping from label to Expr
        Z in ω and V of finitely many labels, or their probabilities given u; empty for regression.
    regression : Expr or None
        Label without its noise, in u.
    name : str
    """
    response, m, m_hat, spread = sp.symbols("V_r m mhat qtilde", positive=True)
    curvature = sp.Symbol("Vhat", nonnegative=True)
    field = sp.Dummy("omega", real=True)
    slope = -MoreauEnvelope(loss, prediction, field, response).diff(field)
    # 1 - m²/q in a form without a difference: q (λ + V̂)² = m̂² + q̃.
    rest = spread / (m_hat**2 + spread)
    mean = sp.sqrt(q) * z
    seen = {omega: m / q * mean, V: rest}
    at = {index: m / q * mean + sp.sqrt(rest) * s}
    closed = all(Z.has(omega) for Z in labels.values()) and bool(labels)

    def averaged(integrand: sp.Expr, *, scored: bool = False) -> sp.Expr:
        """Average over labels, times the teacher's score (u - mω/q)/V if that is asked for."""
        if closed:
            parts = [
                (Z.diff(omega) if scored else Z).xreplace(seen) * integrand.xreplace({label: y})
                for y, Z in labels.items()
            ]
            return GaussianExpectation(sp.Add(*parts), z)
        if regression is None:
            inner = sp.Add(
                *(p * integrand.xreplace({label: y}) for y, p in labels.items())
            ).xreplace(at)
        else:
            value = regression + sp.sqrt(noise) * xi
            inner = GaussianExpectation(integrand.xreplace({label: value}), xi).xreplace(at)
        weight = s / sp.sqrt(rest) if scored else sp.S.One
        return GaussianExpectation(GaussianExpectation(weight * inner, s), z)

    output = slope.xreplace({field: mean})
    if is_kinked(loss, prediction):
        # By parts over z: the curvature of the envelope jumps at points that move with unknowns.
        response_slope = m * m_hat / q - alpha * averaged(z * output) / sp.sqrt(q)
    else:
        response_slope = -alpha * averaged(slope.diff(field).xreplace({field: mean}))
    return SaddlePointSystem.from_fixed_point(
        {
            response: 1 / (ridge + curvature),
            spread: alpha * averaged(output**2),
            m_hat: alpha * averaged(output, scored=True),
            curvature: response_slope,
            q: (m_hat**2 + spread) / (ridge + curvature) ** 2,
            m: m_hat / (ridge + curvature),
        },
        name=name,
        parameters=(alpha, ridge) if regression is None else (alpha, ridge, noise),
        outputs={"squared_cosine": m_hat**2 / (m_hat**2 + spread)},
        identifiers={
            alpha: "alpha", ridge: "ridge", noise: "noise_variance", response: "V", q: "q", m: "m",
            curvature: "V_hat", spread: "q_hat", m_hat: "m_hat",
        },
        source="standard equations of convex losses; see Loureiro et al., arXiv 2102.08127",
        title=f"Convex loss {loss} on the labels of one index",
    )  # fmt: skip


# ---------------------------------------------------------------------- weak recovery


def operator_matrix(moments: Sequence[tuple[sp.Expr, sp.Matrix]]) -> sp.Matrix:
    r"""Return :math:`F(M) = \mathbb{E}[G(y)MG(y)]` as a matrix on symmetric matrices.

    Parameters
    ----------
    moments : sequence of (Expr, Matrix)
        Of each label its probability p and :math:`\mathbb{E}[1_y(uu^\top - 1)]`.
    """
    size = moments[0][1].rows
    pairs = [(i, j) for i in range(size) for j in range(i, size)]
    columns = []
    for i, j in pairs:
        unit = sp.zeros(size)
        unit[i, j] = unit[j, i] = 1
        image = sp.zeros(size)
        for p, found in moments:
            image += found * unit * found / p
        columns.append([sp.expand(image[a, b]) for a, b in pairs])
    return sp.Matrix(columns).T


def product_threshold() -> sp.Expr:
    r"""Return α_c of :math:`y = u_1u_2` without noise, :math:`1/\mathbb{E}e^2`.

    The label has the density :math:`K_0(|y|)/\pi`, :math:`\mathbb{E}[u_1^2\mid y] = e =
    |y|K_1/K_0` and :math:`\mathbb{E}[u_1u_2\mid y] = y`; along (1, ±1) the matrix G is
    :math:`e - 1 \pm y`, whose mean square is :math:`\mathbb{E}e^2`.
    """
    y = sp.Symbol("y", positive=True)
    weight = y**2 * sp.besselk(1, y) ** 2 / sp.besselk(0, y)
    return sp.pi / (2 * sp.Integral(weight, (y, 0, sp.oo)))


@derived("multi_index/half_line_value", str)
def half_line_value(formula: sp.Expr, *, digits: int = 20) -> str:
    """Return the digits of a formula of integrals over the half line.

    With :math:`y = e^{x - e^{-x}}` an integrand that is analytic off the negative axis and falls
    off as :math:`e^{-y}` decays doubly exponentially at 0 and at infinity, where trapezoidal sums
    gain digits in proportion to the inverse of their step.
    """
    step, precision = sp.Rational(1, 6), digits + 5
    values = {}
    for integral in formula.atoms(sp.Integral):
        weight, (y, *_) = integral.args[0], integral.limits[0]
        total = sp.S.Zero
        for k in range(-24, 26):
            x = (k * step).evalf(precision)
            at = sp.exp(x - sp.exp(-x))
            total += at * (1 + sp.exp(-x)) * weight.evalf(precision, subs={y: at})
        values[integral] = step * total
    return str(formula.xreplace(values).evalf(digits))
