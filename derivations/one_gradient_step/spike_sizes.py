r"""The spike that one step adds to the first layer: :math:`W_1 = W_0 + u\,a^T`, |a| = 1.

To leading order :math:`u = \eta\mu_1 X^Ty/n`, so by the rule of the first gradient

.. math:: \theta_1^2 = |u|^2 \to (\eta\mu_1)^2\Big(\mu_1^{*2} + \frac{Y}{\alpha_0}\Big), \qquad
    \theta_2 = u\cdot\beta_* \to \eta\mu_1\mu_1^* .

Y holds the label noise. (Ba et al., arXiv 2205.01445, section 3; the noise is derived here.)
"""

from __future__ import annotations

import sympy as sp

from ...symbolic.hermite import correlation_square
from .symbols import alpha0, label_square, linear, step_size, teacher_linear


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
