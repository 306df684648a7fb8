r"""The symbols of the theory of one gradient step, one for each quantity.

Names and scaling of the toolkit; in brackets the letters of Ba et al., arXiv 2205.01445. The spike
that one step adds to the first layer is :math:`W_1 = W_0 + u\,a^T`, |a| = 1, to leading order with
:math:`u = \eta\mu_1 X^Ty/n`, so by the rule of the first gradient

.. math:: \theta_1^2 = |u|^2 \to (\eta\mu_1)^2\Big(\mu_1^{*2} + \frac{Y}{\alpha_0}\Big), \qquad
    \theta_2 = u\cdot\beta_* \to \eta\mu_1\mu_1^* .

Y holds the label noise. (Ba et al., arXiv 2205.01445, section 3; the noise is derived here.)
"""

from __future__ import annotations

import sympy as sp

from ...symbolic.hermite.coefficients import correlation_square
from ..symbols import alpha0, noise

alpha = sp.Symbol("alpha", positive=True)
r"""Sample complexity n/d of the ridge readout (ψ1)."""

beta = sp.Symbol("beta", positive=True)
r"""Aspect ratio N/d (ψ2)."""

ridge = sp.Symbol("lambda", nonnegative=True)
r"""Ridge penalty of :math:`\sum(y - \varphi\cdot w/\sqrt N)^2 + \lambda|w|^2`: α/β times theirs."""

step_size = sp.Symbol("eta", nonnegative=True)
r"""Step size η of :math:`W_1 = W_0 + \eta\sqrt N\,G` with the gradient of half the squared loss."""

linear = sp.Symbol("mu_1", real=True)
r""":math:`\mu_1 = \mathbb{E}\,z\sigma(z)` of the student."""

residual = sp.Symbol("mu_{>1}^2", nonnegative=True)
r""":math:`\mathbb{E}\sigma^2 - \mu_0^2 - \mu_1^2` of the student (μ2² there).

κ is its ratio to μ_1²."""

teacher_linear = sp.Symbol("mu_1^*", real=True)
r""":math:`\mathbb{E}\,z\sigma_*(z)` of the teacher."""

teacher_residual = sp.Symbol("mu_{>1}^{*2}", nonnegative=True)
r""":math:`\|P_{>1}f_*\|^2`, the error of the best linear predictor (:math:`\mu_2^{*2}` there)."""

IDENTIFIERS = {
    alpha: "alpha",
    alpha0: "alpha0",
    beta: "beta",
    ridge: "ridge",
    step_size: "step_size",
    noise: "noise_variance",
    linear: "student_linear",
    residual: "student_residual",
    teacher_linear: "teacher_linear",
    teacher_residual: "teacher_residual",
}
"""Their names in code."""


def label_square() -> sp.Expr:
    r"""Return :math:`Y = \mathbb{E}\,y^2` of centred, noisy labels."""
    return teacher_linear**2 + teacher_residual + noise


def spike_square() -> sp.Expr:
    r"""Return :math:`\theta_1^2`, the squared length of the spike."""
    labels = correlation_square(teacher_linear**2, label_square(), alpha0)
    return (step_size * linear) ** 2 * labels


def aligned_square() -> sp.Expr:
    r"""Return :math:`\theta_2^2`, its part along the teacher's direction."""
    return (step_size * linear * teacher_linear) ** 2


def orthogonal_square() -> sp.Expr:
    r"""Return :math:`\theta_1^2 - \theta_2^2`; by a formula of its own, free of cancellation."""
    return (step_size * linear) ** 2 * label_square() / alpha0
