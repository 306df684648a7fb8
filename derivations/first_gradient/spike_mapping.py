r"""Result 3.1: one giant gradient step turns the network into spiked random features.

Cui et al., arXiv 2402.04980, equations (9)-(11). Rows after the step are
:math:`w_j = \sqrt c\,u_j + r v` with u_j uniform on the unit sphere, |v| = 1, v·θ = γ.

The per-neuron step s is the primitive:
:math:`w_j \leftarrow w_j + \frac{s}{n_0}\sum_\mu (y_\mu - f_0)\sigma'(w_j\cdot x_\mu)x_\mu`
with n_0 = α_0 d samples. In terms of s the map does not depend on the width.

The readout of the step may be a finite vocabulary: neuron j has the letter ã_j, which multiplies
its step. Then each letter has its own r and c; the direction of the spike is that of
:math:`\frac{1}{n_0}\sum_\mu (y_\mu - f_0)x_\mu` for all.

**How far the trained bulk is from isotropic: what spiked random features leave out of it.** Given
the samples of the step, the rows of the bulk are independent with a common covariance: the step
turns the initial row u, uniform on the sphere, into

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

from dataclasses import dataclass, replace

import sympy as sp

from ...errors import AssumptionError
from ...symbolic.expressions.activations import Activation, z as variable
from ...symbolic.expressions.regularity import Parity
from ...symbolic.gaussian.expectation import expect
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ...symbolic.hermite.coefficients import correlation_square, hermite_coefficient, slope_variance
from ..symbols import alpha0, noise
from ..teachers import (
    DirectionalTeacher,
    Teacher,
    label_coefficient,
    label_power,
    leap_index,
    nonlinear_variance,
)

step_size = sp.Symbol("s", nonnegative=True)
# The readout of one neuron during the step, times sqrt(p), and its mean over the neurons.
letter, mean_letter = sp.symbols("l lbar", real=True)


@dataclass(frozen=True)
class SpikeMapping:
    """The map (s, α0, Δ) → (r, c, γ) with what it is made of.

    Attributes
    ----------
    spike_strength, bulk_variance, alignment, orthogonal_alignment : Expr
        r, c, γ and ρ = sqrt(1 − γ²), in s, α0 and Δ. ρ has a formula of its own because
        1 − γ² loses all digits near γ = 1.
    norm_overlap : Expr
        a = s h_3 ν, for odd students: the step changes the squared norm of row w by
        2 s E_n0[y φ(w·x)] with φ(u) = u(σ'(u) − h_1), whose part linear in w is 2 s h_3 w·g with
        g = E_n0[y x] = ν v. So norms are correlated with the overlap with the spike. Result 3.1
        leaves this out. What is left out here besides is of order c − 1.
    stretch_along, stretch_mixed, stretch_across : Expr
        Entries vv, vζ and ζζ of the stretch T of the rows in the plane of the spike v and of the
        teacher, see :func:`spike_mapping`; zero unless asked for. Result 3.1 leaves this out.
    """

    spike_strength: sp.Expr
    bulk_variance: sp.Expr
    alignment: sp.Expr
    orthogonal_alignment: sp.Expr
    norm_overlap: sp.Expr
    stretch_along: sp.Expr = sp.S.Zero
    stretch_mixed: sp.Expr = sp.S.Zero
    stretch_across: sp.Expr = sp.S.Zero


def spike_mapping(
    student: Activation,
    teacher: Teacher,
    *,
    letter: sp.Expr = sp.S.One,
    mean_letter: sp.Expr = sp.S.One,
    stretched: bool = False,
) -> SpikeMapping:
    r"""Derive the spiked random features that one giant step produces.

    Parameters
    ----------
    student : Activation
        σ; continuous. For odd σ this is Result 3.1; otherwise its extension, in which the output
        at initialisation is the constant h_0 and bulk rows are stretched by
        :math:`1 + s h_2 (h^*_0 - h_0)`. For odd σ both corrections vanish identically.
    teacher : Activation or DirectionalTeacher
        σ_*, or a target of several directions: the spike then is along
        :math:`C_1 = \mathbb{E}[xf_*]`, and its norm takes the place of h*_1.
    letter, mean_letter : Expr
        Letter ã of the neuron and mean of all letters; both 1 for the uniform readout.
    stretched : bool
        Derive the stretch of the rows, too.

    Raises
    ------
    AssumptionError
        If σ jumps: :math:`\mathbb{E}\,\sigma'^2` is infinite, and so is the bulk variance.

    Notes
    -----
    A letter ã makes the step s ã. The output at initialisation, the mean of ã σ over the neurons,
    goes to the constant :math:`\langle\tilde a\rangle h_0`; the rest of it is of order
    :math:`p^{-1/2}` and so is its overlap with the gradient.

    The stretch of the rows, derived here. By the part of σ' that is linear in its argument, the
    step takes a row w to :math:`(1 + s h_2 A) w` with A of :func:`_label_curvature`. In most
    directions A is :math:`\mathbb{E}\,\tilde y` and scatter, which are in c. In the plane of the
    spike v and of the teacher's direction across it, ζ, it is not: there the overlaps of a row w
    become those of :math:`(\sqrt{c_0} + s h_2 A')w`, with
    :math:`\sqrt{c_0} = 1 + s h_2(h^*_0 - h_0)` and A' of order one. With the scatter c − c_0 of
    all other terms, which is the same in all directions, bulk rows are

    .. math:: b = \sqrt c\,(1 + T)u, \qquad T = s h_2\sqrt{c_0}\,A'/c,

    in that plane, which for :math:`\alpha_0 = \infty` is exact:
    :math:`T = s h_2 h^*_2\theta\theta^\top/\sqrt c`. At finite α_0 the variance of b·θ is right up
    to the relative order c − c_0. A matrix of rank two changes no average over the bulk.
    """
    if student.jumps:
        raise AssumptionError(
            f"student {student.name!r} jumps at z = {', '.join(map(str, student.jumps))}: Result "
            "3.1 assumes E sigma'(z)^2 < oo; give r, c, gamma by "
            "SpikedRandomFeatures.from_parameters, or use a continuous activation"
        )
    h0, h1, h2 = (hermite_coefficient(student, k) for k in range(3))
    t0, t1 = (label_coefficient(teacher, k) for k in range(2))
    teacher_square = label_power(teacher, 2)
    output = mean_letter * h0
    residual_square = teacher_square - 2 * output * t0 + output**2 + noise
    step = step_size * letter
    if is_exactly_zero(h1, f"Hermite coefficient 1 of {student.name}"):
        h1 = sp.S.Zero
    if leap_index(teacher) > 1:
        t1 = sp.S.Zero  # decided exactly, whatever form the coefficient has
    scatter = residual_square / alpha0
    gradient_norm = sp.sqrt(correlation_square(t1**2, residual_square, alpha0))
    found = SpikeMapping(
        spike_strength=step * h1 * gradient_norm,
        bulk_variance=(1 + step * h2 * (t0 - output)) ** 2
        + step**2 * slope_variance(student) * scatter,
        alignment=t1 / gradient_norm,
        orthogonal_alignment=sp.sqrt(scatter) / gradient_norm,
        norm_overlap=step * hermite_coefficient(student, 3) * gradient_norm,
    )
    if not stretched or is_exactly_zero(h2, f"Hermite coefficient 2 of {student.name}"):
        return found
    if isinstance(teacher, DirectionalTeacher):
        raise AssumptionError(
            f'leading_order="complete" is derived for odd students of teachers of several '
            f"directions, and student {student.name!r} is not odd: the step stretches its rows in "
            f'all directions of {teacher.name!r}; use leading_order="published"'
        )
    # The labels the step sees are y less what the network puts out.
    curvature = _label_curvature(teacher, output, t0, residual_square)
    along, mixed, across = _in_the_plane(curvature, found.alignment, found.orthogonal_alignment)
    size = step * h2 * (1 + step * h2 * (t0 - output)) / found.bulk_variance
    return replace(
        found, stretch_along=size * along, stretch_mixed=size * mixed, stretch_across=size * across
    )


def _label_curvature(
    teacher: Activation, output: sp.Expr, mean: sp.Expr, residual_square: sp.Expr
) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    r"""Return A' of :func:`spike_mapping` in the basis θ, e: its entries θθ, θe and ee.

    Notes
    -----
    With the residual :math:`\tilde y = y - \langle\tilde a\rangle h_0` of the step,
    :math:`A = \frac{1}{n_0}\sum_\mu\tilde y_\mu x_\mu x_\mu^\top` acts on the rows (times
    :math:`s h_2`). Let e be the unit vector along the part of
    :math:`g = \frac{1}{n_0}\sum_\mu\tilde y_\mu x_\mu` across θ. As e is made of the same
    samples, :math:`x_\mu\cdot e = \tilde y_\mu/\sqrt{\alpha_0\tilde Y} + \xi_\mu` with ξ
    standard normal and independent, :math:`\tilde Y = \mathbb{E}\,\tilde y^2`, so

    .. math:: A_{\theta\theta} = \mathbb{E}\,\tilde y t^2,\quad
              A_{\theta e} = \frac{\mathbb{E}\,\tilde y^2 t}{\sqrt{\alpha_0\tilde Y}},\quad
              A_{ee} = \mathbb{E}\,\tilde y + \frac{\mathbb{E}\,\tilde y^3}{\alpha_0\tilde Y}

    with t = θ·x. A' is A less :math:`\mathbb{E}\,\tilde y`, which c has already; in
    particular :math:`A'_{\theta\theta} = h^*_2`.
    """
    residual = teacher.expr - output
    skew = expect(sp.expand(residual**2) * variable, variable)
    cube = expect(sp.expand(residual**3), variable) + 3 * noise * (mean - output)
    samples = residual_square * alpha0
    return hermite_coefficient(teacher, 2), skew / sp.sqrt(samples), cube / samples


def _in_the_plane(
    matrix: tuple[sp.Expr, sp.Expr, sp.Expr], along: sp.Expr, across: sp.Expr
) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """Return a symmetric matrix given in the basis θ, e in v = γθ + ρe, ζ = ρθ − γe."""
    (tt, te, ee), g, h = matrix, along, across
    return (
        g**2 * tt + 2 * g * h * te + h**2 * ee,
        g * h * (tt - ee) + (h**2 - g**2) * te,
        h**2 * tt - 2 * g * h * te + g**2 * ee,
    )


def best_linear_error(teacher: Teacher) -> sp.Expr:
    r"""Return :math:`\|P_{>1} f_*\|^2`, the error of the best affine predictor of the target.

    No plain random features can beat it (theory of the paper; Ba et al., arXiv 2205.01445).
    """
    return nonlinear_variance(teacher)


def is_odd(student: Activation) -> bool:
    """Tell whether the assumption of Result 3.1 as published holds."""
    return student.parity is Parity.ODD


# ------------------------------------------------------------------ bulk covariance


def bulk_spread(student: Activation, teacher: Teacher) -> sp.Expr:
    r"""Derive the relative spread of the bulk covariance after one giant step, in s, α0 and Δ.

    Parameters
    ----------
    student : Activation
        σ; continuous.
    teacher : Activation or DirectionalTeacher
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


def _residual_moments(teacher: Teacher, h0: sp.Expr) -> dict[int, sp.Expr]:
    """Return E ỹ^n for n = 0..4, ỹ = σ_* − h_0 + sqrt(Δ) ξ."""
    if isinstance(teacher, DirectionalTeacher):
        powers = [teacher.power(n) for n in range(5)]
        clean = {
            n: sp.Add(*(sp.binomial(n, k) * (-h0) ** (n - k) * powers[k] for k in range(n + 1)))
            for n in range(5)
        }
    else:
        target = teacher.expr - h0
        clean = {n: expect(sp.expand(target**n), variable) for n in range(5)}
    # Moments of the noise: 1, 0, Δ, 0, 3Δ².
    xi = {0: sp.S.One, 2: noise, 4: 3 * noise**2}
    return {
        n: sum((sp.binomial(n, k) * xi[k] * clean[n - k] for k in xi if k <= n), sp.S.Zero)
        for n in range(5)
    }
