r"""Ridge regression on Gaussian features of one given first layer: sums over its modes.

Features of covariance :math:`\Sigma = b\,W^\top W + v` with W of shape (d, N), the penalty λ' of
:math:`\frac1n\sum(y - b\cdot\varphi)^2 + \lambda'|b|^2`, the effective ridge ν of
:mod:`.symbolic.ridge_equivalent`, for which all averages are those of a fixed covariance:

.. math:: \frac{\lambda'}{\nu} = 1 - \frac1n\sum_j \frac{S_j}{S_j+\nu}, \qquad
    1 - \frac{c^\top(\Sigma+\nu)^{-1}c}{\mu_*^2} = \sum_i p_i\,\frac{v+\nu}{S_i+\nu},

S = v + b x. The first sum is over the N eigenvalues x of :math:`W^\top W`, the second over the d
of :math:`WW^\top`, whose eigenvectors have the squared overlaps :math:`p_i` with the teacher.
"""

from __future__ import annotations

import sympy as sp

from ...symbolic.printing.compiled import Formula, function_source

eigenvalue = sp.Symbol("eigenvalue", nonnegative=True)
r"""x, of :math:`WW^\top`."""

slope = sp.Symbol("slope", nonnegative=True)
r"""b = μ1² of the student."""

floor = sp.Symbol("floor", nonnegative=True)
"""v, the residual variance of the student."""

effective_ridge = sp.Symbol("effective_ridge", positive=True)
"""ν."""


def mode_functions() -> dict[str, sp.Expr]:
    r"""Return what one mode contributes, each as positive terms.

    Returns
    -------
    dict of str to Expr
        ``used``, S/(S + ν), its square, and ``unused``, one minus it: of the penalty λ'/ν.
        ``gain``, :math:`-\nu\,\frac{d}{d\nu}` of ``used``: :math:`d\lambda'/d\nu - \lambda'/\nu`.
        ``unexplained``, and ``bias``, :math:`-\nu^2\frac{d}{d\nu}(\text{unexplained}/\nu)`: of the
        linear part of the labels what is not explained, and of its square what is the bias.
    """
    nu = effective_ridge
    variance = floor + slope * eigenvalue
    used = variance / (variance + nu)
    unexplained = (floor + nu) / (variance + nu)
    bias = -(nu**2) * sp.diff(unexplained / nu, nu)
    return {
        "used": used,
        "used_square": used**2,
        "unused": nu / (variance + nu),
        "gain": sp.factor(-nu * sp.diff(used, nu)),
        "unexplained": unexplained,
        # Without the common denominator, whose numerator is a sum of positive terms.
        "bias": _positive_terms(bias, variance + nu),
    }


def _positive_terms(expression: sp.Expr, denominator: sp.Expr) -> sp.Expr:
    """Return an expression with expanded numerator over a power of the denominator."""
    numerator = sp.expand(sp.cancel(expression * denominator**2))
    return numerator / denominator**2


def mode_source() -> str:
    """Return the source of a module with these functions of arrays of eigenvalues."""
    arguments = (eigenvalue, slope, floor, effective_ridge)
    return function_source({name: Formula(arguments, e) for name, e in mode_functions().items()})
