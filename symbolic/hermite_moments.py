r"""Moments :math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]` as sequences, and Mehler's kernel.

Multiplying a function by z, differentiating it or averaging it over noise acts on its sequence
μ_0, μ_1, … in a simple way. Sequences given here are finite; every function says how many moments
of the result they determine. Moments are never divided by k!; see :mod:`.hermite_polynomials`.

Sources: Mehler, J. reine angew. Math. 66 (1866), for the kernel; Stein, Ann. Statist. 9 (1981),
for the derivative; the product follows from x He_k = He_{k+1} + k He_{k-1}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import sympy as sp

from ..errors import AssumptionError, ParameterError
from .exact_numbers import require_exact


def mehler_kernel(x: sp.Expr, y: sp.Expr, rho: sp.Expr | Fraction | int) -> sp.Expr:
    r"""Return :math:`\sum_k \rho^k \mathrm{He}_k(x) \mathrm{He}_k(y)/k!` in closed form.

    The density of two standard normal variables of correlation ρ, relative to independent ones:
    :math:`(1-\rho^2)^{-1/2} \exp(-(\rho^2(x^2+y^2) - 2\rho xy)/(2(1-\rho^2)))`.

    Raises
    ------
    AssumptionError
        If `rho` is known not to be real with |ρ| < 1; a symbol without assumptions is taken as
        such.

    Examples
    --------
    >>> mehler_kernel(sp.S(0), sp.S(0), sp.Rational(3, 5))
    5/4
    """
    x, y, rho = (
        require_exact(x, "x"),
        require_exact(y, "y"),
        _checked_correlation(rho, strict=True),
    )
    rest = 1 - rho**2
    exponent = -(rho**2 * (x**2 + y**2) - 2 * rho * x * y) / (2 * rest)
    return sp.exp(exponent) / sp.sqrt(rest)


def mehler_smoothing(
    moments: Sequence[sp.Expr | Fraction | int], rho: sp.Expr | Fraction | int
) -> tuple[sp.Expr, ...]:
    r"""Return the moments of :math:`x \mapsto \mathbb{E}_z[s(\rho x + \sqrt{1-\rho^2}\,z)]`.

    Parameters
    ----------
    moments : sequence of Expr
        μ_0, …, μ_K of s.
    rho : Expr
        Correlation, |ρ| <= 1.

    Returns
    -------
    tuple of Expr
        ρ^k μ_k, as many as were given.

    Examples
    --------
    >>> mehler_smoothing([1, 1, 1], sp.Rational(1, 2))
    (1, 1/2, 1/4)
    """
    rho = _checked_correlation(rho, strict=False)
    return tuple(rho**k * mu for k, mu in enumerate(_moments(moments, "moments")))


def mehler_correlation(
    first: Sequence[sp.Expr | Fraction | int],
    second: Sequence[sp.Expr | Fraction | int],
    rho: sp.Expr | Fraction | int,
) -> sp.Expr:
    r"""Return :math:`\sum_k \mu_k(s) \mu_k(h) \rho^k/k!` over the orders both sequences have.

    This is E[s(u) h(v)] for standard normal u, v of correlation ρ if one of the two functions is
    a polynomial whose moments are all given; otherwise it is a partial sum of that series.

    Examples
    --------
    >>> rho = sp.Symbol("rho")
    >>> mehler_correlation([1, 0, 2], [1, 0, 2], rho)
    2*rho**2 + 1
    """
    rho = _checked_correlation(rho, strict=False)
    pairs = zip(_moments(first, "first"), _moments(second, "second"), strict=False)
    return sp.Add(*(a * b * rho**k / math.factorial(k) for k, (a, b) in enumerate(pairs)))


def moments_times_variable(
    moments: Sequence[sp.Expr | Fraction | int],
) -> tuple[sp.Expr, ...]:
    r"""Return the moments of z f(z) from those of f: :math:`\mu_{k+1} + k \mu_{k-1}`.

    Notes
    -----
    μ_0, …, μ_K determine K values only, k = 0, …, K-1: the next one needs μ_{K+1}. If f is a
    polynomial of degree at most K, append two zeros first to get all of them.

    Examples
    --------
    >>> moments_times_variable([0, 1, 0, 0])
    (1, 0, 2)
    """
    mu = _moments(moments, "moments")
    return tuple(mu[k + 1] + (k * mu[k - 1] if k else 0) for k in range(len(mu) - 1))


def moments_of_derivative(
    moments: Sequence[sp.Expr | Fraction | int],
) -> tuple[sp.Expr, ...]:
    r"""Return the moments of f' from those of f: :math:`\mu_k(f') = \mu_{k+1}(f)` (Stein).

    One fewer than were given: μ_0, …, μ_K determine k = 0, …, K-1. With jumps, f' includes their
    point masses.

    Examples
    --------
    >>> moments_of_derivative([1, 2, 3])
    (2, 3)
    """
    return tuple(_moments(moments, "moments")[1:])


def _moments(values: Sequence[sp.Expr | Fraction | int], name: str) -> list[sp.Expr]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise ParameterError(
            f"{name} must be a sequence of moments mu_0, mu_1, ..., got {values!r}"
        )
    return [require_exact(value, f"{name}[{k}]") for k, value in enumerate(values)]


def _checked_correlation(value: sp.Expr | Fraction | int, *, strict: bool) -> sp.Expr:
    rho = require_exact(value, "rho")
    inside = 1 - rho**2
    allowed = inside.is_positive if strict else inside.is_nonnegative
    if rho.is_extended_real is False or allowed is False:
        bound = "|rho| < 1" if strict else "|rho| <= 1"
        raise AssumptionError(f"rho = {rho} is not a correlation; give a real number, {bound}")
    return rho
