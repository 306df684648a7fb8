r"""What a function of a Gaussian sample has besides its linear part, and what samples show of it.

One rule for each quantity that several lines of work need: variances of a function and of its
slope without their constant and linear parts, and the squared length of the correlation of n
values with their inputs.
"""

from __future__ import annotations

import sympy as sp

from .activations import Activation, z
from .gaussian import expect
from .hermite import hermite_coefficient


def variance(function: Activation) -> sp.Expr:
    r"""Return :math:`\mathbb{E}\sigma^2 - \mu_0^2`."""
    return expect(function.expr**2, z) - hermite_coefficient(function, 0) ** 2


def residual_variance(function: Activation) -> sp.Expr:
    r"""Return :math:`\mathbb{E}\sigma^2 - \mu_0^2 - \mu_1^2`.

    For a teacher it is :math:`\|P_{>1} f_*\|^2`, the error of the best affine predictor.
    """
    return variance(function) - hermite_coefficient(function, 1) ** 2


def slope_variance(function: Activation) -> sp.Expr:
    r"""Return :math:`\mathbb{E}\sigma'^2 - \mu_1^2` of a continuous function."""
    return expect(function.derivative**2, z) - hermite_coefficient(function, 1) ** 2


def correlation_square(linear_square: sp.Expr, square: sp.Expr, ratio: sp.Expr) -> sp.Expr:
    r"""Return the limit of :math:`|X^\top v/n|^2` for n values v of n Gaussian inputs in d.

    Parameters
    ----------
    linear_square, square : Expr
        :math:`|\mathbb{E}[v\,x]|^2` and :math:`\mathbb{E}\,v^2`.
    ratio : Expr
        n/d, kept fixed as both grow.

    Notes
    -----
    Off the diagonal the n² products of two samples average to the first, and the n squares on it
    bring :math:`\mathbb{E}\,v^2 |x|^2/n \to \mathbb{E}\,v^2\,d/n`.
    """
    return linear_square + square / ratio
