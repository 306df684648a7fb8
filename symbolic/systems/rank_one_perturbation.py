r"""Singular values that a perturbation of rank one pulls out of the bulk of a random matrix.

W of shape (d, N) has independent entries of variance 1/d, :math:`\beta = N/d`, and
:math:`M = W + u\,a^\top` with :math:`|u|^2 = T`, |a| = 1, both independent of W. The symmetric
matrix :math:`\begin{pmatrix}0 & M \\ M^\top & 0\end{pmatrix}` has the eigenvalues ± of the
singular values of M. With the directions :math:`\hat u` and a, its secular determinant
at z is

.. math:: (1 - \sqrt T c)^2 - T \varphi\tilde\varphi, \qquad
    \varphi = z\,\hat u^\top(z^2 - WW^\top)^{-1}\hat u, \quad
    \tilde\varphi = z\,a^\top(z^2 - W^\top W)^{-1}a, \quad
    c = \hat u^\top W(z^2 - W^\top W)^{-1}a ,

and c → 0 (Benaych-Georges and Nadakuditi, J. Multivariate Anal. 111 (2012), for any W with
isotropic singular vectors). In x = z² an outlier solves :math:`x\,g\,\tilde g = 1/T` with the
resolvents g and g̃ of :math:`WW^\top` and :math:`W^\top W`, and the squared overlap of its left
singular vector with û is the residue of :math:`\hat u^\top(x - MM^\top)^{-1}\hat u`.

The resolvents are those of Marchenko and Pastur: with :class:`.random_matrix.Resolvent` continued
to a = −x, b = 1 they satisfy

.. math:: \tilde g\,(x - h) = 1, \qquad h\,(1 - \beta\tilde g) = 1, \qquad x\,g = h .

Each step of the way is a function here. Everything is free of cancellation near the threshold
:math:`T = \sqrt\beta` if it is written in :math:`T - \sqrt\beta`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from ..expressions.factors import factored

square = sp.Symbol("x", positive=True)
"""The square of a singular value."""

companion = sp.Symbol("h", positive=True)
"""h of the Marchenko–Pastur law."""

left_resolvent, right_resolvent = sp.symbols("g gtilde", positive=True)
r"""Resolvents of the matrices :math:`WW^\top` (d × d) and :math:`W^\top W` (N × N) at x."""


def secular_determinant(
    strength: sp.Expr, left: sp.Expr, right: sp.Expr, cross: sp.Expr
) -> sp.Expr:
    r"""Return the determinant that vanishes at the eigenvalues of the perturbed symmetric matrix.

    It is that of :math:`1 - V^\top R(z) V S`, where V holds (û, 0) and (0, a), and S exchanges
    them times :math:`\sqrt T` (matrix determinant lemma).

    Parameters
    ----------
    strength : Expr
        T.
    left, right, cross : Expr
        φ, φ̃ and c.
    """
    resolvent = sp.Matrix([[left, cross], [cross, right]])
    exchange = sp.sqrt(strength) * sp.Matrix([[0, 1], [1, 0]])
    return (sp.eye(2) - resolvent * exchange).det()


def perturbed_resolvent(
    strength: sp.Expr, left: sp.Expr, right: sp.Expr, cross: sp.Expr
) -> sp.Matrix:
    r"""Return :math:`V^\top (z - H)^{-1} V` of the perturbed matrix H, by Woodbury's identity."""
    resolvent = sp.Matrix([[left, cross], [cross, right]])
    exchange = sp.sqrt(strength) * sp.Matrix([[0, 1], [1, 0]])
    return (sp.eye(2) - resolvent * exchange).inv() * resolvent


def marchenko_pastur_equations(beta: sp.Expr) -> tuple[sp.Expr, ...]:
    """Return what vanishes: equations of g̃, h and g at x, in the symbols of this module."""
    return (
        right_resolvent * (square - companion) - 1,
        companion * (1 - beta * right_resolvent) - 1,
        square * left_resolvent - companion,
    )


def outlier_equation(strength: sp.Expr) -> sp.Expr:
    r"""Return :math:`T x g \tilde g - 1`, which vanishes at the squared outlier."""
    return strength * square * left_resolvent * right_resolvent - 1


def solve_for_outlier(strength: sp.Expr, beta: sp.Expr) -> Mapping[sp.Symbol, sp.Expr]:
    r"""Solve the four equations for x, h, g and g̃, by elimination.

    Notes
    -----
    :math:`xg = h` turns the outlier equation into :math:`Th = x - h`, since
    :math:`\tilde g = 1/(x - h)`. So x = (1 + T) h, and the second equation becomes linear in h.
    """
    x = (1 + strength) * companion
    right = 1 / (x - companion)
    (h,) = sp.solve(sp.together(companion * (1 - beta * right) - 1), companion)
    h, x = factored(h), factored(x.xreplace({companion: h}))
    return {
        companion: h,
        square: x,
        left_resolvent: sp.cancel(h / x),
        right_resolvent: sp.cancel(1 / (x - h)),
    }


def residue_overlap(strength: sp.Symbol, resolvent: sp.Expr, outlier: sp.Expr) -> sp.Expr:
    r"""Return the squared overlap of a singular vector with the direction of the perturbation.

    Parameters
    ----------
    strength : Symbol
        T.
    resolvent, outlier : Expr
        g (left) or g̃ (right) at the outlier, and x itself, in T.

    Notes
    -----
    The resolvent in the direction of the perturbation is :math:`g/(1 - T x g\tilde g)`. Its residue
    at the zero x(T) of the denominator is :math:`-g/(T\,\partial_x(xg\tilde g))`; as
    :math:`x g\tilde g = 1/T` along x(T), the derivative is :math:`-1/(T^2 x'(T))`, and the residue
    :math:`T\,g\,x'(T)`. It holds for any outlier of the form "resolvent = function of T".
    """
    return factored(strength * resolvent * outlier.diff(strength))


@dataclass(frozen=True)
class RankOneOutlier:
    r"""The largest singular value of a matrix with a spike, and its vectors; T > √β.

    Attributes
    ----------
    square : Expr
        Squared singular value, :math:`(1 + T)(\beta + T)/T`.
    companion : Expr
        h there.
    left_resolvent, right_resolvent : Expr
        :math:`\hat u^\top(x - WW^\top)^{-1}\hat u = 1/(1 + T)` and
        :math:`a^\top(x - W^\top W)^{-1}a = 1/(\beta + T)`.
    left_overlap, right_overlap : Expr
        Squared overlaps with û and a.
    threshold : Expr
        T from which the singular value is outside the bulk, √β, where x'(T) = 0.
    """

    square: sp.Expr
    companion: sp.Expr
    left_resolvent: sp.Expr
    right_resolvent: sp.Expr
    left_overlap: sp.Expr
    right_overlap: sp.Expr
    threshold: sp.Expr


def rank_one_outlier(strength: sp.Symbol, beta: sp.Expr) -> RankOneOutlier:
    """Derive the outlier of a matrix of independent entries with a perturbation of rank one.

    Parameters
    ----------
    strength : Symbol
        T, the squared length of the perturbation; positive.
    beta : Expr
        Aspect ratio N/d; positive.

    Examples
    --------
    >>> T, beta = sp.symbols("T beta", positive=True)
    >>> found = rank_one_outlier(T, beta)
    >>> found.square, found.left_resolvent, found.right_resolvent, found.threshold
    ((T + 1)*(T + beta)/T, 1/(T + 1), 1/(T + beta), sqrt(beta))
    """
    at = solve_for_outlier(strength, beta)
    x = at[square]
    (threshold,) = (
        root for root in sp.solve(sp.numer(sp.together(x.diff(strength))), strength) if root != 0
    )
    return RankOneOutlier(
        square=x,
        companion=at[companion],
        left_resolvent=at[left_resolvent],
        right_resolvent=at[right_resolvent],
        left_overlap=residue_overlap(strength, at[left_resolvent], x),
        right_overlap=residue_overlap(strength, at[right_resolvent], x),
        threshold=threshold,
    )


def bulk_edge(beta: sp.Expr, side: int) -> sp.Expr:
    r"""Return the largest (side = 1) or smallest (−1) singular value of the bulk.

    They are the critical values of :math:`x(T) = (1 + T)(\beta + T)/T`, at :math:`T = \pm\sqrt
    \beta`: x is the functional inverse of the product of resolvents.
    """
    root = sp.sqrt(beta)
    return 1 + root if side > 0 else sp.Abs(1 - root)


def gram_density(x: sp.Expr, lower: sp.Expr, upper: sp.Expr) -> sp.Expr:
    r"""Return the density of the eigenvalues of :math:`WW^\top` (d × d) inside the bulk.

    Parameters
    ----------
    x : Expr
        Eigenvalue, between the squares of
    lower, upper : Expr
        the smallest and the largest singular value of the bulk.

    Notes
    -----
    :math:`g = h/x`, where h solves :math:`h^2 - (x + 1 - \beta) h + x = 0`. So the density is
    :math:`|\mathrm{Im}\,h|/(\pi x)`, here with the discriminant in factors. Its mass is min(1, β);
    the rest of the eigenvalues is zero.
    """
    return sp.sqrt((upper**2 / x - 1) * (1 - lower**2 / x)) / (2 * sp.pi)


def singular_value_density(s: sp.Expr, lower: sp.Expr, upper: sp.Expr, beta: sp.Expr) -> sp.Expr:
    """Return the density of the min(d, N) singular values of W inside the bulk; its mass is one.

    It is :func:`gram_density` at s², times 2 s and divided by its mass, in factors that are exact
    at the edges.
    """
    inside = (upper - s) * (upper + s) * (1 - lower / s) * (1 + lower / s)
    return sp.sqrt(inside) / (sp.pi * sp.Min(1, beta))
