r"""How far the trained bulk is from isotropic: what spiked random features leave out of it.

Given the samples of the step, the rows of the bulk are independent with a common covariance: the
step turns the initial row u, uniform on the sphere, into

.. math:: (1 + s h_2 A)\,u + s\,\delta,\qquad
          A = \frac{1}{n_0}\sum_\mu \tilde y_\mu\,x_\mu x_\mu^\top,\quad
          d\,\mathbb{E}\,\delta\delta^\top \simeq \frac{\check h - h_2^2}{\alpha_0}K,\quad
          K = \frac{1}{n_0}\sum_\mu \tilde y_\mu^2\,x_\mu x_\mu^\top

with :math:`\tilde y = y - h_0` and :math:`\check h = \mathrm{Var}\,\sigma'`. So d times the
covariance is :math:`\Sigma = (1 + s h_2 A)^2 + s^2(\check h - h_2^2)K/\alpha_0`, whose mean
eigenvalue is c. Spiked random features put c·1 in its place. For odd students :math:`h_2 = 0`.

Spectral moments follow from freeness: sums over independent samples with d/n_0 = 1/α_0 have the
mixed free cumulants :math:`\alpha_0^{1-k}\,\mathbb{E}[t_1\cdots t_k]` in their weights t. Derived
here.
"""

from __future__ import annotations

import sympy as sp

from ...symbolic.activations import Activation
from ...symbolic.activations import z as variable
from ...symbolic.gaussian import expect
from ...symbolic.hermite import hermite_coefficient, is_exactly_zero, slope_variance
from .mapping import alpha0, noise, spike_mapping, step_size


def bulk_spread(student: Activation, teacher: Activation) -> sp.Expr:
    r"""Derive the relative spread of the bulk covariance after one giant step, in s, α0 and Δ.

    Parameters
    ----------
    student : Activation
        σ; continuous.
    teacher : Activation
        σ_*.

    Returns
    -------
    Expr
        Standard deviation of the eigenvalues of Σ, divided by their mean c.

    Raises
    ------
    AssumptionError
        If σ jumps.

    Notes
    -----
    For odd students the spread is
    :math:`\frac{c-1}{c}\sqrt{\mathbb{E}\,y^4/(\alpha_0 Y^2)}`: the Marchenko–Pastur variance
    :math:`1/\alpha_0` of a sample covariance, times :math:`\mathbb{E}\,y^4/Y^2 \ge 1` for labels
    of unequal size.
    """
    c = spike_mapping(student, teacher).bulk_variance
    h0, h2 = (hermite_coefficient(student, k) for k in (0, 2))
    if is_exactly_zero(h2, f"Hermite coefficient 2 of {student.name}"):
        h2 = sp.S.Zero
    rest = slope_variance(student) - h2**2
    moments = _residual_moments(teacher, h0)
    stretch, scatter = step_size * h2, step_size**2 * rest / alpha0
    # Mixed free cumulants by the powers of the weights: A has weight ỹ, K has ỹ².
    k1, k2, k3, k4 = (moments[n] / alpha0 ** (n - 1) for n in range(1, 5))
    variance_of_k = moments[4] / alpha0
    if h2 == 0:
        return scatter * sp.sqrt(variance_of_k) / c
    # Free moments less products of means: variances of A, A², K and their covariances.
    with_k = 2 * stretch * moments[3] / alpha0
    with_k += stretch**2 * (moments[4] / alpha0**2 + 2 * k1 * moments[3] / alpha0)
    variance = 4 * stretch**2 * k2 + 4 * stretch**3 * (k3 + 2 * k1 * k2)
    variance += stretch**4 * (k4 + 4 * k1 * k3 + k2**2 + 4 * k1**2 * k2)
    variance += 2 * scatter * with_k + scatter**2 * variance_of_k
    return sp.sqrt(variance) / c


def _residual_moments(teacher: Activation, h0: sp.Expr) -> dict[int, sp.Expr]:
    """Return E ỹ^n for n = 0..4, ỹ = σ_* − h_0 + sqrt(Δ) ξ."""
    target = teacher.expr - h0
    clean = {n: expect(sp.expand(target**n), variable) for n in range(5)}
    # Moments of the noise: 1, 0, Δ, 0, 3Δ².
    xi = {0: sp.S.One, 2: noise, 4: 3 * noise**2}
    return {
        n: sum((sp.binomial(n, k) * xi[k] * clean[n - k] for k in xi if k <= n), sp.S.Zero)
        for n in range(5)
    }
