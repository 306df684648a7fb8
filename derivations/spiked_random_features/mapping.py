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

from dataclasses import dataclass

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
    """

    spike_strength: sp.Expr
    bulk_variance: sp.Expr
    alignment: sp.Expr
    orthogonal_alignment: sp.Expr
    norm_overlap: sp.Expr


def spike_mapping(
    student: Activation,
    teacher: Activation,
    *,
    letter: sp.Expr = sp.S.One,
    mean_letter: sp.Expr = sp.S.One,
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

    Raises
    ------
    AssumptionError
        If σ jumps: :math:`\mathbb{E}\,\sigma'^2` is infinite, and so is the bulk variance.

    Notes
    -----
    A letter ã makes the step s ã. The output at initialisation, the mean of ã σ over the neurons,
    goes to the constant :math:`\langle\tilde a\rangle h_0`; the rest of it is of order
    :math:`p^{-1/2}` and so is its overlap with the gradient.
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
    return SpikeMapping(
        spike_strength=step * h1 * gradient_norm,
        bulk_variance=(1 + step * h2 * (t0 - output)) ** 2
        + step**2 * slope_variance(student) * scatter,
        alignment=t1 / gradient_norm,
        orthogonal_alignment=sp.sqrt(scatter) / gradient_norm,
        norm_overlap=step * hermite_coefficient(student, 3) * gradient_norm,
    )


def best_linear_error(teacher: Activation) -> sp.Expr:
    r"""Return :math:`\|P_{>1} f_*\|^2`, the error of the best affine predictor of the target.

    No plain random features can beat it (theory of the paper; Ba et al., arXiv 2205.01445).
    """
    return residual_variance(teacher)


def is_odd(student: Activation) -> bool:
    """Tell whether the assumption of Result 3.1 as published holds."""
    return student.parity is Parity.ODD
