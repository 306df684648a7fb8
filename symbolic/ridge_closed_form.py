r"""The closed form of ridge regression after a rank-one change of the first layer.

Woodbury's identity for :math:`W + u\,a^T` in the proportional limit, and all errors of
:mod:`.ridge_equivalent` as rational functions of one variable s with 1/s = bGh, the root of a
quartic. Cancellation costs digits in this form; numbers come from the positive terms there.

(Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445; the closed form is derived here.)
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from .ridge_equivalent import NO_SPIKE, Spike

# ---------------------------------------------------------------------- Woodbury


def capacitance(trace: sp.Expr, companion_trace: sp.Expr, spike: Spike) -> sp.Matrix:
    r"""Return the 2×2 matrix of Woodbury's identity for :math:`(W+ua^T)(W+ua^T)^T + \omega`.

    Parameters
    ----------
    trace : Expr
        :math:`m = \frac1d\operatorname{tr}R`, :math:`R = (WW^T+\omega)^{-1}`.
    companion_trace : Expr
        :math:`\omega\tilde m`, :math:`\tilde m = \frac1N\operatorname{tr}(W^TW+\omega)^{-1}`.
    spike : Spike

    Notes
    -----
    The change is :math:`U C U^T` with U = (u, Wa) and C = ((1, 1), (1, 0)). In the limit
    :math:`u^TRu = t_1 m`, :math:`u^TRWa = 0` and
    :math:`a^TW^TRWa = 1 - \omega\tilde m`, so :math:`C^{-1} + U^TRU` is what is returned.
    """
    inverse = sp.Matrix([[1, 1], [1, 0]]).inv()
    overlaps = sp.diag(spike.square * trace, 1 - companion_trace)
    return inverse + overlaps


def spiked_resolvent(trace: sp.Expr, companion_trace: sp.Expr, spike: Spike) -> sp.Expr:
    r"""Return :math:`\beta_*^T\big((W+ua^T)(W+ua^T)^T + \omega\big)^{-1}\beta_*` by Woodbury."""
    # U^T R β_* = (u·β_* m, 0).
    corner = capacitance(trace, companion_trace, spike).inv()[0, 0]
    return trace - spike.aligned * trace**2 * corner


# ---------------------------------------------------------------------- the paper's variable s


@dataclass(frozen=True)
class ScalarForm:
    r"""Everything as rational functions of s, as in the paper; needs b > 0.

    Attributes
    ----------
    s : Expr
        Larger than 1 and β.
    aspect : Expr
        β (ψ2).
    samples : Expr
        α = n/d (ψ1).
    kappa : Expr
        v/b.
    """

    s: sp.Expr
    aspect: sp.Expr
    samples: sp.Expr
    kappa: sp.Expr

    @property
    def omega(self) -> sp.Expr:
        r""":math:`\omega = (s-1)(s-\beta)/s = (v+\nu)/b`."""
        return (self.s - 1) * (self.s - self.aspect) / self.s

    @property
    def effective_ridge(self) -> sp.Expr:
        """x = ν/b."""
        return self.omega - self.kappa

    @property
    def shrinkage(self) -> sp.Expr:
        """q = λ'/ν."""
        used = 1 / self.s + self.kappa / (self.s - self.aspect)
        return 1 - self.aspect / self.samples * used

    @property
    def ridge(self) -> sp.Expr:
        """λ'/b."""
        return self.effective_ridge * self.shrinkage

    @property
    def derivative(self) -> sp.Expr:
        """D = dλ'/dν."""
        s, beta = self.s, self.aspect
        second = 1 / s**2 + self.kappa / (s - beta) ** 2
        gain = self.effective_ridge * beta / self.samples * second / (1 - beta / s**2)
        return self.shrinkage + gain

    @property
    def _spread(self) -> sp.Expr:
        return self.s * (self.s - self.aspect) / (self.s**2 - self.aspect)

    def bias(self, spike: Spike = NO_SPIKE) -> sp.Expr:
        r"""Return the squared bias as a fraction of :math:`\mu_*^2`, as printed in the paper."""
        s, t1, t2 = self.s, spike.square, spike.aligned
        flat = 1 - t2 / (s + t1)
        steep = 1 - t2 * (2 * s - 1 + t1) / (s + t1) ** 2
        inside = self.kappa * flat + self.effective_ridge * self._spread * steep
        return inside / (s - 1)

    def unexplained(self, spike: Spike = NO_SPIKE) -> sp.Expr:
        r"""Return :math:`1 - c^T(\Sigma+\nu)^{-1}c/\mu_*^2`."""
        return self.omega / (self.s - 1) * (1 - spike.aligned / (self.s + spike.square))

    def quartic(self, ridge: sp.Expr) -> sp.Expr:
        """Return the polynomial in s that vanishes where λ'/b is `ridge`.

        Of its roots exactly one is larger than :meth:`lower_bounds`.
        """
        s, beta, alpha, kappa = self.s, self.aspect, self.samples, self.kappa
        effective = (s - 1) * (s - beta) - kappa * s
        shrunk = alpha * s * (s - beta) - beta * (s - beta + kappa * s)
        return effective * shrunk - ridge * alpha * s**2 * (s - beta)

    def lower_bounds(self) -> tuple[sp.Expr, sp.Expr]:
        """Return where ν = 0 and where q = 0; the larger one bounds s and is s at λ = 0."""
        beta, alpha, kappa = self.aspect, self.samples, self.kappa
        middle = 1 + beta + kappa
        vanishing = (middle + sp.sqrt(middle**2 - 4 * beta)) / 2
        middle = beta * (alpha + 1 + kappa)
        full = (middle + sp.sqrt(middle**2 - 4 * alpha * beta**2)) / (2 * alpha)
        return vanishing, full
