r"""The symbols of the theory of one gradient step, one for each quantity.

Names and scaling of the toolkit; in brackets the letters of Ba et al., arXiv 2205.01445.
"""

from __future__ import annotations

import sympy as sp

alpha = sp.Symbol("alpha", positive=True)
r"""Sample complexity n/d of the ridge readout (ψ1)."""

alpha0 = sp.Symbol("alpha_0", positive=True)
r"""Sample complexity n/d of the gradient step (ψ1 too, for both samples)."""

beta = sp.Symbol("beta", positive=True)
r"""Aspect ratio N/d (ψ2)."""

ridge = sp.Symbol("lambda", nonnegative=True)
r"""Ridge penalty of :math:`\sum(y - \varphi\cdot w/\sqrt N)^2 + \lambda|w|^2`: α/β times theirs."""

step_size = sp.Symbol("eta", nonnegative=True)
r"""Step size η of :math:`W_1 = W_0 + \eta\sqrt N\,G` with the gradient of half the squared loss."""

noise = sp.Symbol("Delta", nonnegative=True)
r"""Variance of the label noise."""

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
