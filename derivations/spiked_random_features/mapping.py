r"""Result 3.1: one giant gradient step turns the network into spiked random features.

Cui et al., arXiv 2402.04980, equations (9)-(11). Rows after the step are
:math:`w_j = \sqrt c\,u_j + r v` with u_j uniform on the unit sphere, |v| = 1, v·θ = γ.

The per-neuron step s is the primitive:
:math:`w_j \leftarrow w_j + \frac{s}{n_0}\sum_\mu (y_\mu - f_0)\sigma'(w_j\cdot x_\mu)x_\mu`
with n_0 = α_0 d samples. In terms of s the map does not depend on the width.

The readout of the step may be a finite vocabulary: neuron j has the letter ã_j, which multiplies
its step. Then each letter has its own r and c; the direction of the spike is that of
:math:`\frac{1}{n_0}\sum_\mu (y_\mu - f_0)x_\mu` for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import sympy as sp

from ...errors import AssumptionError
from ...symbolic.activations import Activation
from ...symbolic.activations import z as variable
from ...symbolic.gaussian import expect
from ...symbolic.hermite import hermite_coefficient, information_exponent, is_exactly_zero
from ...symbolic.linear_part import correlation_square, residual_variance, slope_variance
from ...symbolic.regularity import Parity

step_size = sp.Symbol("s", nonnegative=True)
alpha0 = sp.Symbol("alpha_0", positive=True)
noise = sp.Symbol("Delta", nonnegative=True)
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
    teacher: Activation,
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
    teacher : Activation
        σ_*.
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
    t0, t1 = (hermite_coefficient(teacher, k) for k in range(2))
    teacher_square = expect(teacher.expr**2, variable)
    output = mean_letter * h0
    residual_square = teacher_square - 2 * output * t0 + output**2 + noise
    step = step_size * letter
    if is_exactly_zero(h1, f"Hermite coefficient 1 of {student.name}"):
        h1 = sp.S.Zero
    if information_exponent(teacher) > 1:
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
    # The labels the step sees are y less what the network puts out.
    curvature = _label_curvature(teacher, output, t0, residual_square)
    along, mixed, across = _in_the_plane(curvature, found.alignment, found.orthogonal_alignment)
    size = step * h2 * (1 + step * h2 * (t0 - output)) / found.bulk_variance
    return replace(
        found,
        stretch_along=size * along,
        stretch_mixed=size * mixed,
        stretch_across=size * across,
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


def best_linear_error(teacher: Activation) -> sp.Expr:
    r"""Return :math:`\|P_{>1} f_*\|^2`, the error of the best affine predictor of the target.

    No plain random features can beat it (theory of the paper; Ba et al., arXiv 2205.01445).
    """
    return residual_variance(teacher)


def is_odd(student: Activation) -> bool:
    """Tell whether the assumption of Result 3.1 as published holds."""
    return student.parity is Parity.ODD
