r"""Ridge regression on Gaussian features of a given covariance, in the proportional limit.

Gaussian features :math:`\phi\in\mathbb{R}^N` of covariance Σ, labels
:math:`y = c\cdot\Sigma^{-1}\phi + \text{rest}` with :math:`\mathbb{E}\,y\phi = c`, n samples, the
penalty λ' of :math:`\frac1n\sum(y - b\cdot\phi)^2 + \lambda'|b|^2`. Everything follows from the
effective ridge ν,

.. math:: \lambda' = \nu\Big(1 - \tfrac1n\operatorname{tr}\Sigma(\Sigma+\nu)^{-1}\Big), \qquad
    D = \frac{d\lambda'}{d\nu} = 1 - \tfrac1n\operatorname{tr}\Sigma^2(\Sigma+\nu)^{-2},

and one potential :math:`\Psi = (\mathbb{E}y^2 - c^T(\Sigma+\nu)^{-1}c)/\nu`: the minimum of the
objective is λ'Ψ, the training error :math:`-\lambda'^2\,d\Psi/d\lambda'`, the error on fresh labels
:math:`-\nu^2\,d\Psi/d\lambda'`. Here :math:`\Sigma = b\,W^TW + v` with W of shape (d, N),
independent entries of variance 1/d, N/d = β, and :math:`c = \mu_*\sqrt b\,W^T\beta_*`; averages
over W are those of the Marchenko–Pastur law. A spike :math:`W + u\,a^T` with \|a\| = 1 enters by
Woodbury's identity through :math:`t_2 = (u\cdot\beta_*)^2` and :math:`\tau = |u|^2 - t_2`. With a =
v + ν, the resolvent G(a, b) and its companion h, all results are sums of positive terms, so they
keep their digits for any parameters, b = 0 and v = 0 included. Rational functions of :math:`s =
\beta + 1/(bG)`, 1/s = bGh the root of a quartic, give the risk in closed form, in which
cancellation costs digits (Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445; the closed form is
derived here).
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from .random_matrix import Resolvent, companion, resolvent_moment


@dataclass(frozen=True)
class Spike:
    r"""A rank-one term :math:`u\,a^T`, |a| = 1, in the first layer.

    Attributes
    ----------
    aligned : Expr
        :math:`t_2 = (u\cdot\beta_*)^2`.
    orthogonal : Expr
        :math:`\tau = |u|^2 - t_2`.
    """

    aligned: sp.Expr = sp.S.Zero
    orthogonal: sp.Expr = sp.S.Zero

    @property
    def square(self) -> sp.Expr:
        r""":math:`t_1 = |u|^2`."""
        return self.aligned + self.orthogonal


NO_SPIKE = Spike()


@dataclass(frozen=True)
class FeatureCovariance:
    r"""The covariance :math:`\Sigma = b\,W^TW + v`, seen at an effective ridge ν.

    Attributes
    ----------
    slope : Expr
        b = μ1² of the activation.
    floor : Expr
        v, the residual variance of the activation.
    aspect : Expr
        β = N/d.
    effective_ridge : Expr
        ν.
    """

    slope: sp.Expr
    floor: sp.Expr
    aspect: sp.Expr
    effective_ridge: sp.Expr

    @property
    def shift(self) -> sp.Expr:
        """The floor of Σ + ν, a = v + ν."""
        return self.floor + self.effective_ridge

    @property
    def resolvent(self) -> Resolvent:
        r""":math:`G = \frac1N\operatorname{tr}(\Sigma+\nu)^{-1}`."""
        return Resolvent(self.shift, self.slope, self.aspect)

    @property
    def companion(self) -> sp.Expr:
        r""":math:`h = \frac ad\operatorname{tr}(b\,WW^T + a)^{-1}`; aG + bGh = 1."""
        return companion(self.resolvent) if self.slope != 0 else sp.S.One

    @property
    def inverse_s(self) -> sp.Expr:
        """1/s = bGh, also (1/N) tr of Σ - v over Σ + ν; in [0, min(1, 1/β))."""
        return self.slope * self.resolvent * self.companion

    @property
    def s(self) -> sp.Expr:
        """The variable of the paper's closed form, larger than 1 and β; needs b > 0."""
        return self.aspect + 1 / (self.slope * self.resolvent)

    @property
    def degrees_of_freedom(self) -> sp.Expr:
        r""":math:`\frac1N\operatorname{tr}\Sigma(\Sigma+\nu)^{-1}`, a sum of positive terms."""
        return self.floor * self.resolvent + self.inverse_s

    @property
    def degrees_of_freedom_2(self) -> sp.Expr:
        r""":math:`\frac1N\operatorname{tr}\Sigma^2(\Sigma+\nu)^{-2}`, a sum of positive terms."""
        a, b, v = self.shift, self.slope, self.floor
        flat, mixed, steep = (resolvent_moment(j, 2, a, b, self.aspect) for j in range(3))
        return v**2 * flat + 2 * v * b * mixed + b**2 * steep

    @property
    def _curvature(self) -> sp.Expr:
        """Minus d log G/da of the resolvent, inverted: a + b h²."""
        return self.shift + self.slope * self.companion**2

    # ------------------------------------------------------------------ the equation of ν

    def ridge(self, excess: sp.Expr) -> sp.Expr:
        r"""Return the penalty λ of :math:`\sum(y - \phi\cdot w/\sqrt N)^2 + \lambda|w|^2`.

        Parameters
        ----------
        excess : Expr
            (n - N)/N = α/β - 1.

        Notes
        -----
        :math:`\lambda = \nu\,(\text{excess} + \nu G)`, which is n/N times λ' of this module.
        """
        nu = self.effective_ridge
        return nu * (excess + nu * self.resolvent)

    def derivative(self, ratio: sp.Expr, shrinkage: sp.Expr) -> sp.Expr:
        """Return D = dλ'/dν as q plus a positive term.

        Parameters
        ----------
        ratio : Expr
            N/n = β/α.
        shrinkage : Expr
            q = λ'/ν.
        """
        nu, h = self.effective_ridge, self.companion
        gain = nu * self.resolvent * (self.floor + self.slope * h**2) / self._curvature
        return shrinkage + ratio * gain

    @property
    def level(self) -> sp.Expr:
        """Variance of isotropic features with the same G: G (ν + level) = 1, level = v + bh."""
        return self.floor + self.slope * self.companion

    # ------------------------------------------------------------------ the signal

    @property
    def response(self) -> SignalResponse:
        """How the readout responds to the linear part of the labels."""
        a, b, h, nu = self.shift, self.slope, self.companion, self.effective_ridge
        spread = h * (a + b * h) / self._curvature
        return SignalResponse(
            inverse_s=self.inverse_s,
            remainder=a * self.resolvent,
            companion=h,
            flat=h / a * self.floor,
            steep=h / a * nu * spread,
        )

    def unexplained(self, spike: Spike = NO_SPIKE) -> sp.Expr:
        """Return :meth:`SignalResponse.unexplained`."""
        return self.response.unexplained(spike)

    def bias(self, spike: Spike = NO_SPIKE) -> sp.Expr:
        """Return :meth:`SignalResponse.bias`."""
        return self.response.bias(spike)

    def bias_reduction(self, spike: Spike) -> sp.Expr:
        """Return :meth:`SignalResponse.bias_reduction`."""
        return self.response.bias_reduction(spike)


@dataclass(frozen=True)
class SignalResponse:
    r"""What the errors of the linear part of the labels are made of; nothing here is negative.

    Attributes
    ----------
    inverse_s, remainder : Expr
        g = 1/s and 1 - g.
    companion : Expr
        h.
    flat, steep : Expr
        Parts of the squared bias without a spike, from the floor v of the covariance and from the
        effective ridge ν.
    """

    inverse_s: sp.Expr
    remainder: sp.Expr
    companion: sp.Expr
    flat: sp.Expr
    steep: sp.Expr

    def unexplained(self, spike: Spike = NO_SPIKE) -> sp.Expr:
        r"""Return :math:`1 - c^T(\Sigma+\nu)^{-1}c/\mu_*^2`.

        Without a spike h; with one :math:`h\,(1 + \tau g)/(1 + t_1 g)`.
        """
        g = self.inverse_s
        return self.companion * (1 + spike.orthogonal * g) / (1 + spike.square * g)

    def bias(self, spike: Spike = NO_SPIKE) -> sp.Expr:
        r"""Return :math:`-\nu^2\,\frac{d}{d\nu}(\text{unexplained}/\nu)` as positive terms.

        The squared bias of the readout, as a fraction of the linear part :math:`\mu_*^2`.
        """
        g, t1, tau = self.inverse_s, spike.square, spike.orthogonal
        weight = 1 + t1 * g
        flat = (1 + tau * g) / weight
        steep = (1 + 2 * tau * g + (spike.aligned + t1 * tau) * g**2) / weight**2
        return self.flat * flat + self.steep * steep

    def bias_reduction(self, spike: Spike) -> sp.Expr:
        """Return what the spike takes off the squared bias, as positive terms."""
        weight = 1 + spike.square * self.inverse_s
        gain = spike.aligned * self.inverse_s / weight
        # 2 - g + t1 g
        rest = 1 + self.remainder + spike.square * self.inverse_s
        return gain * (self.flat + self.steep * rest / weight)


def response_without_floor(aspect: sp.Expr) -> SignalResponse:
    """Return the response for v = 0 where ν → 0: the readout is least squares on W^T x."""
    uncovered = sp.Max(0, 1 - aspect)
    return SignalResponse(
        inverse_s=sp.Min(1, 1 / aspect),
        remainder=sp.Max(0, 1 - 1 / aspect),
        companion=uncovered,
        flat=sp.S.Zero,
        steep=uncovered,
    )


# ---------------------------------------------------------------------- the effective ridge


def isotropic_effective_ridge(
    level: sp.Expr, ridge: sp.Expr, sampling: sp.Expr, excess: sp.Expr
) -> sp.Expr:
    r"""Return the effective ridge of features of covariance σ I, without cancellation.

    The positive root of :math:`\gamma\nu^2 + ((\gamma-1)\sigma - \lambda)\nu - \lambda\sigma = 0`.

    Parameters
    ----------
    level : Expr
        σ.
    ridge : Expr
        λ of the toolkit.
    sampling, excess : Expr
        γ = n/N and γ - 1.

    Notes
    -----
    Of any covariance the effective ridge satisfies the same equation with
    :attr:`FeatureCovariance.level` for σ, a slowly varying function of ν; with the mean of the
    eigenvalues for σ the root is an upper bound, because
    :math:`\operatorname{tr}\Sigma(\Sigma+\nu)^{-1}` is concave in Σ.
    """
    middle = excess * level - ridge
    root = sp.sqrt(middle**2 + 4 * sampling * ridge * level)
    return sp.Piecewise(
        (2 * ridge * level / (middle + root), middle >= 0),
        ((root - middle) / (2 * sampling), True),
    )


def ridgeless_effective_ridge(
    slope: sp.Expr, floor: sp.Expr, samples: sp.Expr, sampling: sp.Expr, missing: sp.Expr
) -> sp.Expr:
    r"""Return ν for λ → 0 and N > n, without cancellation.

    Parameters
    ----------
    slope, floor : Expr
        b and v.
    samples, sampling, missing : Expr
        α = n/d, γ = n/N and 1 - γ > 0.

    Notes
    -----
    The equation is :math:`\nu G = 1 - \gamma`; with :math:`G(a + bh) = 1` and ν = (1 - γ) y it
    becomes :math:`\gamma y^2 + (b(\alpha - 1) - v)\,y - vb\beta = 0`, αβ⁻¹ = γ.
    """
    middle = slope * (samples - 1) - floor
    root = sp.sqrt(middle**2 + 4 * samples * slope * floor)
    larger = sp.Piecewise(
        (2 * samples * slope * floor / sampling / (middle + root), middle > 0),
        ((root - middle) / (2 * sampling), True),
    )
    return missing * larger


# ---------------------------------------------------------------------- the potential


def errors_from_potential(
    potential: sp.Expr, ridge: sp.Expr, effective_ridge: sp.Symbol
) -> dict[str, sp.Expr]:
    r"""Return objective, training error and error on fresh labels from Ψ(ν) and λ'(ν).

    Parameters
    ----------
    potential, ridge : Expr
        In the effective ridge.
    effective_ridge : Symbol
        ν.
    """
    slope = potential.diff(effective_ridge) / ridge.diff(effective_ridge)
    return {
        "objective": ridge * potential,
        "training_error": -(ridge**2) * slope,
        "test_error": -(effective_ridge**2) * slope,
    }


def paper_ridge(covariance: FeatureCovariance, ratio: sp.Expr) -> sp.Expr:
    r"""Return :math:`\lambda' = \nu\,(1 - \frac Nn + \frac Nn\,\nu G)`; ratio = N/n."""
    nu = covariance.effective_ridge
    return nu * (1 - ratio + ratio * nu * covariance.resolvent)


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
