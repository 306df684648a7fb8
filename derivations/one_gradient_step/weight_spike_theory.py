r"""The spike of the first layer as expressions, and the functions that are printed from them.

One step makes :math:`W_1 = W_0 + u\,a^\top` to leading order (:mod:`.spike_sizes`), a matrix with a
perturbation of rank one (:mod:`giantstep.symbolic.rank_one_perturbation`). Its length is
proportional to the step size, so with :math:`q = \eta_c/\eta`, the ratio to the step size at which
the largest singular value leaves the bulk, :math:`T = \theta_1^2 = \sqrt\beta/q^2`. In q the
overlaps have the factor 1 − q, which is handed in as a number of its own: nothing cancels next to
the threshold, and nothing overflows for large steps.

Ba et al., arXiv 2205.01445, section 3; the label noise in θ1 and the overlap of the right singular
vector with the readout are derived here.
"""

from __future__ import annotations

import sympy as sp

from ...symbolic.printing.compiled import Formula, function_source
from ...symbolic.rank_one_perturbation import (
    RankOneOutlier,
    bulk_edge,
    gram_density,
    rank_one_outlier,
    singular_value_density,
)
from .spike_sizes import aligned_square, spike_square
from .symbols import (
    IDENTIFIERS,
    alpha0,
    beta,
    linear,
    noise,
    step_size,
    teacher_linear,
    teacher_residual,
)

root_beta = sp.Symbol("r", positive=True)
"""√β, the value of T at the threshold."""

ratio = sp.Symbol("q", positive=True)
"""η_c/η: below one if there is an outlier."""

distance = sp.Symbol("e", nonnegative=True)
"""1 − q, known to all digits also where q is next to one."""

strength = sp.Symbol("T", positive=True)
"""θ1²."""

singular_value, eigenvalue = sp.symbols("s x", positive=True)

lower, upper = sp.Symbol("s_-", nonnegative=True), sp.Symbol("s_+", positive=True)
"""Smallest and largest singular value of the bulk."""

_STEP = (alpha0, noise, linear, teacher_linear, teacher_residual)
_NAMES = {
    **IDENTIFIERS,
    root_beta: "root_beta",
    ratio: "ratio",
    distance: "distance",
    singular_value: "singular_value",
    eigenvalue: "eigenvalue",
    lower: "lower",
    upper: "upper",
}


def direction_square() -> sp.Expr:
    r"""Return the limit of :math:`|X^\top y/n|^2`, what is left of θ1² without (η μ1)²."""
    return sp.expand(spike_square() / (step_size * linear) ** 2)


def spike_length() -> sp.Expr:
    r"""Return θ1 at unit step size."""
    return sp.Abs(linear) * sp.sqrt(direction_square())


def aligned_length() -> sp.Expr:
    """Return θ2 at unit step size; negative if μ1 and μ1* have opposite signs."""
    return linear * teacher_linear


def alignment() -> sp.Expr:
    r"""Return the cosine of :math:`X^\top y` and the teacher's direction."""
    return teacher_linear / sp.sqrt(direction_square())


def critical_step_size() -> sp.Expr:
    r"""Return η_c, where θ1² = √β; for the gradient of half the squared loss."""
    return sp.sqrt(root_beta) / spike_length()


def outlier() -> RankOneOutlier:
    """Return largest singular value and overlaps above the threshold, in T and β."""
    return rank_one_outlier(strength, beta)


def scaled_outlier() -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    r"""Return q s_1 and the squared overlaps with u and a, in √β, q and 1 − q.

    Sums and products of positive terms: :math:`q^2 s_1^2 = (r + q^2)(1 + r q^2)`, and both
    overlaps have the factor :math:`1 - q^4 = (1 - q)(1 + q)(1 + q^2)`.
    """
    found = outlier()
    rule = {strength: root_beta / ratio**2, beta: root_beta**2}
    square = sp.factor(sp.cancel(found.square.subs(rule) * ratio**2))
    overlaps = []
    for overlap in (found.left_overlap, found.right_overlap):
        numerator, denominator = sp.fraction(sp.cancel(overlap.subs(rule)))
        # The sign of the fraction is SymPy's choice: make the denominator positive.
        if denominator.subs({root_beta: 1, ratio: 1}) < 0:
            numerator, denominator = -numerator, -denominator
        rest = sp.factor(sp.cancel(numerator / (1 - ratio)))
        overlaps.append(distance * rest / denominator)
    return sp.sqrt(square), overlaps[0], overlaps[1]


def square_outside(spike: sp.Expr) -> sp.Expr:
    r"""Return :math:`s_1^2 - (1 + \sqrt\beta)^2 = (T - \sqrt\beta)^2/T` at T = `spike`."""
    return (spike - sp.sqrt(beta)) ** 2 / spike


def identities() -> dict[str, sp.Expr]:
    """Return what has to vanish: the scaled forms against those of the perturbed matrix."""
    found = outlier()
    rule = {ratio: sp.sqrt(root_beta / strength)}
    scaled = [
        expr.subs(distance, 1 - ratio).subs(rule).subs(root_beta, sp.sqrt(beta))
        for expr in scaled_outlier()
    ]
    q = sp.sqrt(sp.sqrt(beta) / strength)
    unit = {step_size: 1}
    return {
        "squared singular value": found.square - (scaled[0] / q) ** 2,
        "overlap with u": found.left_overlap - scaled[1],
        "overlap with a": found.right_overlap - scaled[2],
        "distance to the bulk": found.square - bulk_edge(beta, 1) ** 2 - square_outside(strength),
        "threshold": found.threshold - sp.sqrt(beta),
        "theta1": spike_length() ** 2 - spike_square().subs(unit),
        "theta2": aligned_length() ** 2 - aligned_square().subs(unit),
        "alignment": alignment() ** 2 - aligned_square() / spike_square(),
        "critical step size": spike_square().subs(
            step_size, critical_step_size().subs(root_beta, sp.sqrt(beta))
        )
        - sp.sqrt(beta),
    }


def spike_sources() -> dict[str, str]:
    """Return sources: "precise" for one point in an mpmath context, "arrays" for many in floats."""
    found = Formula(
        (root_beta, ratio, distance),
        scaled_outlier(),
        "q s_1 and the squared overlaps with u and a",
    )
    precise = {
        "lengths": Formula(
            _STEP, (spike_length(), aligned_length()), "theta1 and theta2 at unit step size"
        ),
        "alignment": Formula(_STEP, alignment(), "the cosine of X^T y and the teacher's direction"),
        "critical": Formula((root_beta, *_STEP), critical_step_size(), "eta_c for half the loss"),
        "outlier": found,
    }
    arrays = {
        "outlier": found,
        "density": Formula(
            (singular_value, lower, upper, beta),
            singular_value_density(singular_value, lower, upper, beta),
            "that of singular values",
        ),
        "gram_density": Formula(
            (eigenvalue, lower, upper),
            gram_density(eigenvalue, lower, upper),
            "that of eigenvalues of W W^T",
        ),
    }
    return {
        "precise": function_source(precise, "mpmath", names=_NAMES),
        "arrays": function_source(arrays, names=_NAMES),
    }
