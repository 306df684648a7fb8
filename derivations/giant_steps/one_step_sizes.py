r"""Spike, part along w and noise of one giant step: their sizes, exact in d, n and the step s.

All sizes are those of the gradient of one neuron of unit norm, with :math:`\ell` the order of its
spike: the spike, :math:`d^{-(\ell-1)/2}` times a function of the overlaps :math:`u = \sqrt d\,w`,
the part along w, and noise of mean square :math:`\frac dn(\mathbb{E}f^2+\Delta)\,
\mathbb{E}\,\sigma'^2`. Means over neurons are over the unit sphere, exact in d; what is left out of
the gradient and of the noise changes them by relative corrections of order 1/d.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from ...symbolic.activations import Activation
from ...symbolic.activations import z as variable
from ...symbolic.gaussian import expect
from ...symbolic.heat_flow import gaussian_moment
from ...symbolic.stein import (
    DIMENSION,
    SAMPLES,
    Direction,
    GradientExpansion,
    GradientTerm,
    gradient_expansion,
)
from ...symbolic.targets import Target
from ..hermite_gradients.first_step import first_step
from ..spiked_random_features.mapping import alpha0
from ..spiked_random_features.mapping import noise as label_noise
from .one_step_values import STEP


class StepSizes:
    """What follows for the sizes from the expansion of the gradient; see :class:`.GiantStep`."""

    target: Target
    student: Activation
    noise_variance: sp.Expr
    order: int | None
    expansion: GradientExpansion

    @property
    def leading(self) -> GradientTerm | None:
        """The leading term inside the relevant space, in the components w1..wr of a neuron."""
        wanted = (Direction.INSIDE, self._order - 1) if self.order else None
        return next((t for t in self.expansion.terms if (t.direction, t.k) == wanted), None)

    @property
    def leading_vector(self) -> sp.Matrix:
        r""":math:`\mu_\ell/(\ell-1)!\;C_\ell[w^{\ell-1},\cdot]`; zero if there is none.

        After the step :math:`P w^1 = P w^0 + s` times this, up to :math:`1 + o(1)`, noise of order
        :math:`s/\sqrt n` in each direction, and what rescales :math:`w^0`.
        """
        term = self.leading
        return sp.zeros(self.target.dimension, 1) if term is None else term.value

    @property
    def overlaps(self) -> tuple[sp.Symbol, ...]:
        r"""Symbols u1..ur for :math:`\sqrt d\,\langle w, e_i\rangle`.

        They are standard Gaussian for neurons uniform on the sphere and d → ∞.
        """
        return sp.symbols(f"u1:{self.target.dimension + 1}", real=True)

    @property
    def signal(self) -> sp.Expr:
        r"""c, the squared norm of the spike times :math:`d^{\ell-1}`, in the overlaps u."""
        return sp.Add(*(entry**2 for entry in self._scaled(self.leading_vector)))

    @property
    def mean_signal(self) -> sp.Expr:
        """Mean of c over neurons uniform on the sphere, exact in d."""
        term = self.leading
        if term is None:
            return sp.S.Zero
        return term.mean_square * DIMENSION**term.k

    @property
    def along(self) -> sp.Expr:
        r"""The part along w times :math:`d^{(\ell-1)/2}`, in u and d; 0 if it is smaller."""
        if self.order is None:
            return sp.S.Zero
        scale = sp.Rational(self.order - 1, 2)
        terms = (
            DIMENSION ** (scale - sp.Rational(term.k, 2)) * self._scaled(term.value)
            for term in self.expansion.terms
            if term.direction is Direction.ALONG
        )
        return sp.Add(*terms)

    @property
    def noise(self) -> sp.Expr:
        r"""V, of which the mean square of the noise is V d/n.

        :math:`(\mathbb{E}f^2+\Delta)\,\mathbb{E}\,\sigma'^2`.
        """
        slope_square = expect(self.student.derivative**2, variable)
        return (self.target.norm_squared + self.noise_variance) * slope_square

    @property
    def alignment(self) -> sp.Expr:
        r"""Share of the spike in the squared step of one neuron: the best possible, η → ∞.

        :math:`c/(c + A^2 + V d^\ell/n)` in the overlaps u of the neuron, d and n; 0 if there is
        no order :math:`\ell`. It is the squared cosine of step and spike too, unless A w is longer
        than the spike (:attr:`along_exceeds`): then both vanish for d → ∞, but the overlap of w
        itself with the spike makes the squared cosine of order 1/d at least.
        """
        if self.order is None:
            return sp.S.Zero
        return self.signal / (self.signal + self.along**2 + self._scaled_noise)

    @property
    def mean_alignment(self) -> sp.Expr:
        """The same from means over neurons: the share of their squared steps that is spike."""
        if self.order is None:
            return sp.S.Zero
        along = self.along_square * DIMENSION ** (self.order - 1)
        signal = self.mean_signal
        return 1 / (1 + along / signal + self._scaled_noise / signal)

    @property
    def _scaled_noise(self) -> sp.Expr:
        return self.noise * DIMENSION**self._order / SAMPLES

    @property
    def label_overlap(self) -> sp.Expr | None:
        r"""For :math:`\ell = 1` the squared overlap of :math:`X^Ty/n` with C_1; else None."""
        if self.order != 1:
            return None
        return self._at_finite_ratio(first_step("identity", self.target).alignment)

    @property
    def bulk_growth(self) -> sp.Expr | None:
        r"""For :math:`\ell = 1` the B in the bulk variance :math:`(1 + sA)^2 + s^2 B`; else None.

        The other part of the noise, :math:`\mu_1^2 \mathbb{E}y^2 d/n`, lies along :math:`X^Ty` for
        all neurons: the step is a matrix of rank one and this bulk. A is :attr:`along`.
        """
        if self.order != 1:
            return None
        bulk = first_step(self.student, self.target).bulk
        return self._at_finite_ratio(bulk**2) - self.along**2

    def _at_finite_ratio(self, limit: sp.Expr) -> sp.Expr:
        return limit.subs({alpha0: SAMPLES / DIMENSION, label_noise: self.noise_variance})

    @property
    def squared_norm(self) -> sp.Expr:
        r"""Mean of :math:`|w^1|^2` over neurons and samples, in s, d and n.

        :math:`|w^0 + sG|^2 + s^2\,\mathbb{E}|\text{noise}|^2` with the terms of `expansion` for G,
        averaged over the sphere exactly.
        """
        along, inward = self.expansion.along(), self._inward
        linear = 2 * self.start_overlap
        square = self._mean(along**2 + 2 * along * inward) + self.spike_square
        return 1 + STEP * linear + STEP**2 * (square + self.noise_square)

    @property
    def start_overlap(self) -> sp.Expr:
        r"""Mean of :math:`\langle w^0, G\rangle` over neurons, in d, to the order of the spike.

        That of the spike, and of the parts along w, of which the one of :math:`C_\ell[w^\ell]`
        is as large: for even :math:`\ell` its mean is not zero.
        """
        order = self.order or 0
        along = gradient_expansion(self.student, self.target, order).along()
        return self._mean(along + self._inward)

    @property
    def relevant_share(self) -> sp.Expr:
        r"""Share of the mean :math:`|w^1|^2` in the space of all coordinates of the target.

        In s, d and n; 1/d of the noise is in each direction.
        """
        along, inward = self.expansion.along(), self._inward
        own = sp.Add(*(w**2 for w in self.expansion.weights))
        linear = 2 * self._mean(along * own + inward)
        square = self._mean(along**2 * own + 2 * along * inward) + self.spike_square
        part = sp.Rational(self.target.dimension) / DIMENSION
        inside = part + STEP * linear + STEP**2 * (square + part * self.noise_square)
        return inside / self.squared_norm

    @property
    def _inward(self) -> sp.Expr:
        """The inner product of w and the spike."""
        pairs = zip(self.expansion.weights, self.leading_vector, strict=True)
        return sp.Add(*(w * entry for w, entry in pairs))

    @property
    def spike_square(self) -> sp.Expr:
        """Mean square of the spike over neurons, in d."""
        return sp.S.Zero if self.leading is None else self.leading.mean_square

    @property
    def along_square(self) -> sp.Expr:
        """Mean square of the part along w over neurons, in d."""
        return self._mean(self.expansion.along() ** 2)

    @property
    def noise_square(self) -> sp.Expr:
        """Mean square of the noise, in d and n."""
        return self.noise * DIMENSION / SAMPLES

    def _mean(self, polynomial: sp.Expr) -> sp.Expr:
        return sphere_mean(polynomial, self.expansion.weights)

    @property
    def _order(self) -> int:
        assert self.order is not None
        return self.order

    def _scaled(self, value: Any) -> Any:
        return value.xreplace(dict(zip(self.expansion.weights, self.overlaps, strict=True)))

    @property
    def along_exceeds(self) -> bool:
        """Whether the part along w grows faster with d than the spike, so that it hides it."""
        along = [t.order for t in self.expansion.terms if t.direction is Direction.ALONG]
        return self.leading is not None and any(order > self.leading.order for order in along)


def sphere_mean(polynomial: sp.Expr, weights: tuple[sp.Symbol, ...]) -> sp.Expr:
    r"""Return the mean of a polynomial in r components of w over the unit sphere of R^d.

    A monomial of degree 2k has the mean :math:`\mathbb{E}\,g^\alpha/(d(d+2)\cdots(d+2k-2))` over
    standard Gaussian g.

    Examples
    --------
    >>> w1, w2 = sp.symbols("w1 w2", real=True)
    >>> sphere_mean(w1**2 * w2**2 + 5 * w1, (w1, w2))
    1/(d*(d + 2))
    """
    total = []
    for alpha, c in sp.Poly(polynomial, *weights, domain=sp.EXRAW).terms():
        moment = gaussian_moment(alpha)
        if moment:
            factors = (DIMENSION + 2 * i for i in range(sum(alpha) // 2))
            total.append(c * moment / sp.Mul(*factors))
    return sp.Add(*total)
