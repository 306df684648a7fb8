r"""Classification by a convex loss of the margin: logistic regression and its relatives.

A teacher labels standard normal inputs in d dimensions, :math:`y = \operatorname{sign}(\theta\cdot
x/\sqrt d + \sqrt\Delta\,\varepsilon)` with :math:`|\theta|^2/d = \rho` and ε standard normal (for
Δ > 0 the label is +1 with the probit probability :math:`\Phi(\theta\cdot x/\sqrt{d\Delta})`); the
student minimises :math:`\sum_\mu \ell(y^\mu\,w\cdot x^\mu/\sqrt d) + \lambda|w|^2/2` over n = αd
samples. The fixed-point equations for its overlaps :math:`q = |w|^2/d`, :math:`m = w\cdot\theta/d`
and the response V are those of Aubin, Krzakala, Lu and Zdeborová, arXiv 2006.06560, and Loureiro et
al., arXiv 2102.08127:

.. math::
    V &= \frac1{\lambda + \hat V}, & \hat V &= -\alpha\,\mathbb E_z \sum_{y=\pm1}
        Z(y, z)\,\partial_\omega f(y, \sqrt q z, V), \\
    q &= V^2(\rho\hat m^2 + \hat q), & \hat q &= \alpha\,\mathbb E_z
        \sum_y Z(y, z)\,f(y, \sqrt q z, V)^2, \\
    m &= V\rho\hat m, & \hat m &= \alpha\,\mathbb E_z
        \sum_y Z'(y, z)\,f(y, \sqrt q z, V),

where :math:`f = -\partial_\omega M` is the slope of the Moreau envelope
:math:`M(y, \omega, V) = \min_x [(x - \omega)^2/2V + \ell(yx)]`, and
:math:`Z(y, z) = \Phi(y a z)`, :math:`a = m/(\sqrt q\,b)`, is the probability of the label given the
student's field :math:`\sqrt q z`, with the derivative :math:`Z' = y\,\varphi(az)/b` by the
teacher's mean field; :math:`b^2 = \rho + \Delta - m^2/q`.

Three changes keep digits and halve the work. The terms y = ±1 are equal by the reflection z → −z,
so only y = 1 is kept, twice, at :math:`\omega = -\sqrt q z`, where Z is erfc(az/√2)/2. By the
equations on the left :math:`q - m^2/\rho = V^2\hat q`, so :math:`b^2 = \Delta + \rho V^2\hat q/q`,
a sum of positive terms. And for a loss with kinks, where :math:`\partial_\omega f` jumps,
integration by parts over z gives :math:`\hat V = m\hat m/q + 2\alpha\,\mathbb E_z[z\,Z f]/\sqrt q`.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from ...errors import ParameterError
from ...symbolic.expressions.arguments import as_expression
from ...symbolic.expressions.functions import relu, softplus
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.losses.convex_losses import is_kinked
from ...symbolic.losses.proximal import MoreauEnvelope, Proximal
from ...symbolic.systems.saddle_point import SaddlePointSystem

alpha, ridge, signal = sp.symbols("alpha lambda rho", positive=True)
noise = sp.Symbol("Delta", nonnegative=True)
V, q, m = sp.symbols("V q m", positive=True)
q_hat, m_hat = sp.symbols("qhat mhat", positive=True)
V_hat = sp.Symbol("Vhat", nonnegative=True)
z = sp.Symbol("z", real=True)
# The margin y w·x/√d, in which losses are expressions.
margin = sp.Symbol("x", real=True)

LOSSES = {
    "logistic": softplus(-margin),
    "hinge": relu(1 - margin),
    "square": (1 - margin) ** 2 / 2,
}
SOURCE = (
    "Aubin, Krzakala, Lu, Zdeborova, arXiv 2006.06560; Loureiro, Gerbelot, Cui, Goldt, Krzakala, "
    "Mezard, Zdeborova, arXiv 2102.08127"
)
IDENTIFIERS = {
    alpha: "alpha", ridge: "ridge", signal: "signal_power", noise: "noise_variance",
    V: "V", q: "q", m: "m", V_hat: "V_hat", q_hat: "q_hat", m_hat: "m_hat",
}  # fmt: skip


def logistic_regression() -> SaddlePointSystem:
    """Return logistic regression on the labels of a teacher: the loss log(1 + exp(−margin)).

    Returns
    -------
    SaddlePointSystem
        See :func:`margin_classifier`.

    Examples
    --------
    >>> print(logistic_regression().structure)
    1 block: 3 unknowns Newton {V, qhat, mhat}, then m, q, Vhat
    """
    return margin_classifier("logistic")


def support_vector_machine() -> SaddlePointSystem:
    """Return the linear support-vector machine: the hinge loss max(0, 1 − margin)."""
    return margin_classifier("hinge")


def margin_classifier(loss: str | sp.Expr, *, name: str | None = None) -> SaddlePointSystem:
    r"""Return classification by a convex loss of the margin as a saddle-point system.

    Parameters
    ----------
    loss : {"logistic", "hinge", "square"} or Expr
        The loss; an expression is one in `margin`, convex and decreasing at 0.
    name : str, optional
        Of the kernel; required for a loss of one's own.

    Returns
    -------
    SaddlePointSystem
        Parameters α = n/d, λ, ρ and Δ; outputs `generalisation_error`, the probability
        :math:`\arccos(m/\sqrt{(\rho + \Delta)q})/\pi` that the student's sign differs from a fresh
        label, and `training_loss`, the mean loss over the training set.

    Raises
    ------
    ParameterError
        If the loss is unknown, not convex, or does not decrease at 0.
    """
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise ParameterError(
                f"loss must be one of {', '.join(map(repr, LOSSES))} or an expression in "
                f"`margin`, got {loss!r}"
            )
        name = f"{loss}_classifier" if name is None else name
        name = "logistic_regression" if name == "logistic_classifier" else name
        loss = LOSSES[loss]
    elif name is None:
        raise ParameterError("name is missing: a loss of your own needs a name for its kernel")
    return _system(_checked(loss), name)


def _checked(loss: Any) -> sp.Expr:
    loss = as_expression(loss, "loss")
    foreign = loss.free_symbols - {margin}
    if foreign:
        raise ParameterError(f"loss must be an expression in {margin!r} alone, got {foreign}")
    below, at, above = (loss.xreplace({margin: sp.Rational(k, 8)}).evalf() for k in (-1, 0, 1))
    if not below > at or not at > above:
        # A student that gains nothing from a small margin stays at w = 0, where q vanishes.
        raise ParameterError(f"loss must decrease in the margin at 0, but {loss} does not")
    return loss


def _system(loss: sp.Expr, name: str) -> SaddlePointSystem:
    field = sp.Dummy("omega", real=True)
    at_field = {field: -sp.sqrt(q) * z}
    slope = MoreauEnvelope(loss, margin, field, V).diff(field)
    output = -slope.xreplace(at_field)
    proximal = Proximal(loss, margin, field, V).doit().xreplace(at_field)
    # Given the student's field, the teacher's (with the noise) is normal with this deviation.
    spread = sp.sqrt(noise + signal * V**2 * q_hat / q)
    argument = m * z / (sp.sqrt(q) * spread)
    probability = sp.erfc(argument / sp.sqrt(2)) / 2
    density = sp.exp(-(argument**2) / 2) / sp.sqrt(2 * sp.pi)

    def both_labels(integrand: sp.Expr) -> sp.Expr:
        return 2 * GaussianExpectation(integrand, z)

    if is_kinked(loss, margin):
        # By parts: the curvature jumps at break points that move with the unknowns, and its
        # derivatives, which Newton's method asks for, would hold Dirac masses.
        response = m * m_hat / q + alpha * both_labels(z * probability * output) / sp.sqrt(q)
    else:
        curvature = slope.diff(field).xreplace(at_field)
        response = alpha * both_labels(probability * curvature)
    orthogonal = sp.sqrt(noise * q + signal * V**2 * q_hat)
    return SaddlePointSystem.from_fixed_point(
        {
            # V, not its conjugate, is what Newton's method finds: far from its kinks the hinge loss
            # has no curvature, and the conjugate is zero. All but the first three are explicit.
            V: 1 / (ridge + V_hat),
            q_hat: alpha * both_labels(probability * output**2),
            m_hat: alpha * both_labels(density * output) / spread,
            V_hat: response,
            q: V**2 * (signal * m_hat**2 + q_hat),
            m: V * signal * m_hat,
        },
        name=name,
        parameters=(alpha, ridge, signal, noise),
        outputs={
            # The arccosine of the docstring, in the form that keeps small errors' digits.
            "generalisation_error": sp.atan(orthogonal / m) / sp.pi,
            "training_loss": both_labels(probability * loss.xreplace({margin: proximal})),
        },
        node=z,
        identifiers=IDENTIFIERS,
        source=SOURCE,
        title="Classification of a teacher's labels by a convex loss of the margin: "
        f"loss {loss} of the margin {margin}",
    )
