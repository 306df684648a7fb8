r"""Nonlinear spikes: what a step :math:`\eta \ll \sqrt N` adds to features beyond the linear one.

Neuron j of the trained layer sees :math:`w_j\cdot x + \theta g_j\kappa/\sqrt N`, where κ is the
projection on the direction of the step, :math:`g_j = \sqrt N a_j` the readout of the step and θ the
length of its spike. Averaged over the initial row its feature is, degree by degree,

.. math:: \sigma(w_j\cdot x) + \sum_{k\in K} r_{kj}\,\kappa^k, \qquad
          r_k = \frac{\mu_k}{k!}\Big(\frac{\theta}{\sqrt N}\Big)^k g^{\circ k},

with K the degrees of which the student has a Hermite coefficient. So the covariance of the features
is :math:`\Sigma + U M U^\top` and their correlation with labels c + U b, where Σ and c are those of
the initial features, U holds :math:`w_0 = \mu_1W_0^\top v` and the :math:`r_k`, M the moments of κ
and its powers, and b the correlations of the labels with them. In the proportional limit
:math:`U^\top(\Sigma + \nu)^{-1}U = S` is known, the effective ridge ν does not change, and
Woodbury's identity gives the labels' part that the features explain,

.. math:: F(\nu) = b^\top S\,(1 + MS)^{-1}b, \qquad F'(\nu) = v^\top S'(\nu)\,v, \quad
          v = (1 + MS)^{-1}b .

Everything is of relative accuracy :math:`O(\theta^2/N)`: that the linear part and the variance of a
feature depend on κ and g, too, is left out.

(Moniri, Lee, Hassani, Dobriban, arXiv 2310.07891, for N → ∞ inside of a window; strengths of order
one, finite widths and outliers are derived here.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ....symbolic.expressions.factors import factored
from ....symbolic.hermite.heat_flow import gaussian_moment
from ....symbolic.systems.rank_one_perturbation import rank_one_outlier, residue_overlap
from ....symbolic.systems.ridge_equivalent import NO_SPIKE, FeatureCovariance
from ..kernel_equations import kappa, place, slope_sign
from ..risk import Readout
from ..symbols import beta, linear, noise, spike_square, step_size, teacher_linear, teacher_residual

SOURCE = (
    "Moniri, Lee, Hassani, Dobriban, arXiv 2310.07891; finite strengths and widths derived here"
)

width = sp.Symbol("N", positive=True)
"""Number of neurons."""

strength = sp.Symbol("a", positive=True)
"""Squared strength :math:`a_k^2` of a spike, as a variable."""


def student_coefficient(degree: int) -> sp.Symbol:
    r"""Return :math:`\mu_k = E[\sigma\,\mathrm{He}_k]` of the student."""
    return linear if degree == 1 else sp.Symbol(f"mu_{degree}", real=True)


def teacher_coefficient(degree: int) -> sp.Symbol:
    r"""Return :math:`\mu_k^* = E[\sigma_*\,\mathrm{He}_k]` of the teacher."""
    return teacher_linear if degree == 1 else sp.Symbol(f"mu_{degree}^*", real=True)


def label_correlation() -> sp.Expr:
    r"""Return :math:`\nu_* = \lim|X^\top y|/n_0`, the length of the step's direction."""
    return sp.sqrt(spike_square().subs(step_size, 1)) / sp.Abs(linear)


def spike_length() -> sp.Expr:
    r"""Return :math:`\theta = \eta\mu_1\nu_*`, the length of the step's spike."""
    return step_size * linear * label_correlation()


def alignment() -> sp.Expr:
    r"""Return :math:`\gamma = \mu_1^*/\nu_*`, of the step's direction with the teacher's."""
    return teacher_linear / label_correlation()


# ---------------------------------------------------------------------- a finite set of spikes


@dataclass(frozen=True)
class Spikes:
    r"""What features explain of the labels, by spikes beside a bulk; see the module.

    Matrices of any kind with ``@`` and ``.T``: of SymPy, NumPy, or another library.

    Attributes
    ----------
    overlaps : matrix
        M, second moments of the functions of κ.
    resolvent, slope : matrix
        S and its derivative in the effective ridge.
    labels : column
        b, correlations of the functions with the labels.
    """

    overlaps: Any
    resolvent: Any
    slope: Any
    labels: Any

    def conditions(self, v: Any) -> Any:
        """Return v from itself, :math:`b - MSv`: linear equations for v."""
        return self.labels - self.overlaps @ (self.resolvent @ v)

    def explained(self, v: Any) -> Any:
        """Return :math:`F = b^T S v`."""
        return (self.labels.T @ (self.resolvent @ v))[0, 0]

    def derivative(self, v: Any) -> Any:
        """Return F'(ν)."""
        return (v.T @ (self.slope @ v))[0, 0]


@dataclass(frozen=True)
class Bulk:
    r"""Resolvents of the initial features in the two directions that spikes have.

    Attributes
    ----------
    aligned : Expr
        :math:`w_0^\top(\Sigma+\nu)^{-1}w_0`.
    isotropic : Expr
        :math:`\frac1N\operatorname{tr}(\Sigma+\nu)^{-1}`, of any vector independent of the layer.
    aligned_slope, isotropic_slope : Expr
        Their derivatives in ν.
    """

    aligned: sp.Expr
    isotropic: sp.Expr
    aligned_slope: sp.Expr
    isotropic_slope: sp.Expr

    @classmethod
    def of(cls, covariance: FeatureCovariance) -> Bulk:
        """Return the resolvents of a covariance at its effective ridge, a symbol."""
        nu = covariance.effective_ridge
        aligned, isotropic = beta * covariance.inverse_s, covariance.resolvent
        return cls(aligned, isotropic, aligned.diff(nu), isotropic.diff(nu))

    def spikes(self, gram: Any, overlaps: Any, labels: Any, block: Callable[..., Any]) -> Spikes:
        """Return spikes of a Gram matrix of right vectors beside :math:`w_0`.

        Parameters
        ----------
        gram : matrix (k, k)
            Scalar products of the right vectors.
        block : callable
            Builds a block-diagonal matrix from a number and a matrix.
        """
        return Spikes(
            overlaps=overlaps,
            resolvent=block(self.aligned, self.isotropic * gram),
            slope=block(self.aligned_slope, self.isotropic_slope * gram),
            labels=labels,
        )


def power_gram(degrees: Sequence[int], moment: Callable[[int], Any] = gaussian_moment) -> sp.Matrix:
    r"""Return :math:`r_k\cdot r_l` for a readout :math:`\sqrt N a` of given moments, or normal."""
    small = spike_length() / sp.sqrt(width)
    right = [student_coefficient(k) / sp.factorial(k) * small**k for k in degrees]
    return sp.Matrix(
        len(degrees),
        len(degrees),
        lambda i, j: width * right[i] * right[j] * moment(degrees[i] + degrees[j]),
    )


def power_overlaps(degrees: Sequence[int]) -> sp.Matrix:
    """Return second moments of κ, as the bulk sees it, and of its powers."""
    powers = (1, *degrees)
    result = sp.Matrix(
        len(powers), len(powers), lambda i, j: sp.Integer(gaussian_moment(powers[i] + powers[j]))
    )
    # κ is counted with the bulk already.
    result[0, 0] = 0
    return result


def power_labels(degrees: Sequence[int]) -> sp.Matrix:
    r"""Return :math:`E[\kappa\,T_0]` and :math:`E[\kappa^k T_0]`, of the labels' mean given κ."""
    return sp.Matrix([
        sum(
            (
                teacher_coefficient(j) * alignment() ** j / sp.factorial(j) * _power_hermite(k, j)
                for j in range(1, k + 1)
            ),
            sp.S.Zero,
        )
        for k in (1, *degrees)
    ])  # fmt: skip


def _power_hermite(k: int, j: int) -> sp.Integer:
    """E[z^k He_j(z)] = k!/(k - j)! E[z^(k - j)], by Stein's lemma."""
    return sp.ff(k, j) * gaussian_moment(k - j)


@dataclass(frozen=True)
class ErrorsOfSpikes:
    """Errors of a ridge readout whose features explain F of the labels.

    Attributes
    ----------
    risk, training_error : Expr
        On fresh samples without noise, and on the samples of the readout.
    """

    risk: Any
    training_error: Any

    @classmethod
    def of(
        cls, readout: Any, effective_ridge: Any, label_square: Any, noise: Any, explained: Any,
        slope: Any,
    ) -> ErrorsOfSpikes:  # fmt: skip
        r"""Return the errors from F and F': :math:`(Y - F + \nu F')/D` on fresh labels.

        It is :math:`-\nu^2\Psi'/D` of the potential :math:`\Psi = (Y - F)/\nu`; see
        :mod:`giantstep.symbolic.systems.ridge_equivalent`. `readout` has the shrinkage q and D.
        """
        fresh = (label_square - explained + effective_ridge * slope) / readout.derivative
        return cls(fresh - noise, readout.shrinkage**2 * fresh)


def outside_direction(bulk: Bulk) -> tuple[sp.Expr, sp.Expr]:
    r"""Return F and F' of the linear part of the labels across the step's direction."""
    across = teacher_linear**2 * (1 - alignment() ** 2)
    # A direction across is to the initial layer as that of the step.
    return across * bulk.aligned, across * bulk.aligned_slope


# ---------------------------------------------------------------------- one degree at a time


def independent_part(degree: int, degrees: Sequence[int]) -> sp.Expr:
    """Return the squared distance of z^k from the span of lower powers in `degrees`.

    For a standard normal z; k! if all lower powers of the same parity are among them.
    """
    lower = [j for j in degrees if j < degree]
    gram = sp.Matrix(
        len(lower) + 1,
        len(lower) + 1,
        lambda i, j: sp.Integer(gaussian_moment([*lower, degree][i] + [*lower, degree][j])),
    )
    return gram.det() / gram[:-1, :-1].det()


def spike_strength(degree: int, degrees: Sequence[int]) -> sp.Expr:
    r"""Return :math:`a_k^2`, the strength of a degree beside the lower ones in the covariance."""
    distance = independent_part(degree, degrees)
    right = student_coefficient(degree) / sp.factorial(degree)
    return right**2 * spike_length() ** (2 * degree) * width ** (1 - degree) * distance**2


def window_edge(degree: Any) -> sp.Expr:
    r"""Return the exponent s for which a degree has a finite strength at :math:`\eta\asymp N^s`."""
    return (degree - 1) / (2 * sp.S(degree))


def shown_energy(degree: int, degrees: Sequence[int]) -> sp.Expr:
    """Return the energy of the labels that a degree shows beyond the lower ones."""
    lower = [j for j in degrees if j < degree]
    labels = power_labels([*lower, degree])[1:, 0]
    gram = power_overlaps([*lower, degree])[1:, 1:]

    def projected(n: int) -> sp.Expr:
        return (labels[:n, 0].T * gram[:n, :n].inv() * labels[:n, 0])[0, 0] if n else sp.S.Zero

    return projected(len(lower) + 1) - projected(len(lower))


def remaining_fraction(bulk: Bulk, effective_ridge: sp.Symbol) -> sp.Expr:
    r"""Return Λ(a²), the share of a degree's energy that stays bias, from F of one spike."""
    spike = sp.Matrix([[bulk.isotropic]])
    result = Spikes(
        overlaps=sp.eye(1),
        resolvent=strength * spike,
        slope=strength * sp.Matrix([[bulk.isotropic_slope]]),
        labels=sp.ones(1, 1),
    )
    v = sp.Matrix([[1 / (1 + strength * bulk.isotropic)]])
    return sp.together(1 - result.explained(v) + effective_ridge * result.derivative(v))


def leading_bias(readout: Readout, spike: Any, left: Sequence[tuple[sp.Expr, sp.Expr]]) -> sp.Expr:
    """Return the squared bias for N → ∞: the linear theory less the energy that degrees show.

    Parameters
    ----------
    spike : Spike
        Of the linear theory.
    left : sequence of (energy, Λ)
        Of the degrees from the second on.
    """
    linear_theory = teacher_residual + teacher_linear**2 * readout.response.bias(spike)
    return linear_theory - sum((energy * (1 - share) for energy, share in left), sp.S.Zero)


def rung_bias(readout: Readout, energies: Sequence[sp.Expr]) -> sp.Expr:
    r"""Return the squared bias strictly inside of a window: degrees up to the rung are free.

    What is left is plain random features whose teacher lacks the projection on the powers of κ.
    """
    across = teacher_linear**2 * (1 - alignment() ** 2)
    square = teacher_linear**2 + teacher_residual
    return square - sum(energies, sp.S.Zero) - across + across * readout.response.bias(NO_SPIKE)


def risk_of(bias: sp.Expr, readout: Readout) -> sp.Expr:
    """Return the risk of a squared bias."""
    return (bias + noise) / readout.derivative - noise


# ---------------------------------------------------------------------- outliers


@dataclass(frozen=True)
class DegreeOutlier:
    r"""The outlier of an isotropic spike of squared strength a² in the kernel of samples.

    Attributes
    ----------
    place : Expr
        T, the argument of ζ in :mod:`..one_gradient_step.kernel_equations`, in a², β and
        μ1²; there is an outlier where it is larger than the threshold T_c.
    alignment : Expr
        In T, squared overlap of its eigenvector with the function of the spike on the samples.
    """

    place: sp.Expr
    alignment: sp.Expr


def degree_outlier() -> DegreeOutlier:
    r"""Derive the outlier of a spike in a direction independent of the first layer.

    Notes
    -----
    :math:`e^\top(x - \Sigma)^{-1}e = 1/a^2` at the outlier x of the population, and the transform
    is :math:`1/(\mu_1^2(\beta + T))` at the place T of the axis.
    """
    positive = sp.Dummy("T", positive=True)
    first = rank_one_outlier(positive, beta)
    resolvent = first.right_resolvent / linear**2
    (result,) = sp.solve(resolvent - 1 / strength, positive)
    population = linear**2 * (first.square + kappa)
    overlap = residue_overlap(strength, 1 / strength, population.subs(positive, result))
    share = (strength / population).subs(strength, 1 / resolvent) * overlap.subs(
        strength, 1 / resolvent
    )
    return DegreeOutlier(
        place=result, alignment=factored(share).xreplace({positive: place}) * slope_sign()
    )
