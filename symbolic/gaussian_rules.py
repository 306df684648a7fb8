r"""Closed forms of one-dimensional Gaussian expectations, by rules.

One rule carries all of them. With :math:`S_g(b, v) = \mathbb{E}\,g(b + \sqrt v z)` the smoothed
function, Stein's lemma gives for the probabilists' Hermite polynomials

.. math:: \mathbb{E}[\mathrm{He}_k(z)\, g(az + b)] = a^k\, \partial_b^k S_g(b, a^2),

so a table of the five smoothed functions of sin, cos, erf, the Heaviside step and erf² yields every
polynomial times any of them. Quadratic exponentials are absorbed by a change of measure; relu,
abs and sign are polynomials times steps; products of sines are sums of sines; products of two
different steps or error functions are left to :mod:`.gaussian_step_moments`.

Sources: S of erf and erf² by Owen, *Tables for computing bivariate normal probabilities* (1956);
Williams, *Computing with infinite networks*, NIPS 9 (1996), is the case b = 0.
"""

from __future__ import annotations

import sympy as sp

from .bivariate_normal import is_far_below
from .functions import HALF, OwenT
from .gaussian_kernels import (
    affine_or_quadratic,
    group_by_kernel,
    multiplied_out,
    reduce_trigonometric,
    split_kernel,
)
from .gaussian_step_moments import jump_moment
from .gaussian_vector_rules import joint_closed_form

_B = sp.Dummy("b", real=True)

_HIGHEST_POWER = 130


def closed_form(integrand: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    r"""Return :math:`\mathbb{E}_z[f(z)]`, z standard normal, or None where no rule applies.

    Parameters
    ----------
    integrand : Expr
        Sums and products of: polynomials in `z`; ``exp`` of at most a quadratic; one of ``sin``,
        ``cos``, ``erf``, ``erfc``, ``Heaviside``, ``sign``, ``Abs``, ``relu``, ``DiracDelta``
        of an affine function of `z`; products of two out of these from ``erf`` to ``relu``;
        products of sines and cosines; of these and one of ``erf`` to ``relu`` that is centred at 0.
        Except for sines, slopes have to be declared real; steps need a slope that cannot be zero,
        and of two steps it must be known which comes first.
    z : Symbol
        The standard normal variable.

    Returns
    -------
    Expr or None
        Valid for all admitted values of the parameters; None also if the expectation diverges.
    """
    if not integrand.has(z):
        return integrand
    if integrand.has(sp.Piecewise):
        return None
    terms = multiplied_out(integrand)
    if terms is None:
        return None
    total = []
    # Terms that differ only in their power of z share the smoothed function and its derivatives.
    for kernel, coefficients in group_by_kernel(terms, z).items():
        value = _polynomial_times(kernel, coefficients, z)
        if value is None:
            return None
        total.append(value)
    return sp.Add(*total)


def _polynomial_times(
    kernel: sp.Expr, coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """E[P(z) g(z)] for P given by its monomial coefficients."""
    if max(coefficients) > _HIGHEST_POWER:
        return None
    parts = split_kernel(kernel, z)
    if parts is None:
        return None
    exponent, others = parts
    if exponent is not None:
        return _change_of_measure(exponent, others, coefficients, z)
    if not others:
        return sp.Add(*(c * _moment(n) for n, c in coefficients.items()))
    single = reduce_trigonometric(others)
    if single is None:
        return _sines_with_jumps(others, coefficients, z)
    if len(single) > 1 or single[0][0] != 1:
        total = []
        for factor, part in single:
            value = (
                _polynomial_times(part, coefficients, z)
                if part.has(z)
                else part * sp.Add(*(c * _moment(n) for n, c in coefficients.items()))
            )
            if value is None:
                return None
            total.append(factor * value)
        return sp.Add(*total)
    kernel = single[0][1]
    if kernel.is_Mul:
        return _two_jumps(kernel.args, coefficients, z)
    return _smoothed_sum(kernel, coefficients, z)


def _change_of_measure(
    exponent: sp.Expr, others: list[sp.Expr], coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """E[P(z) e^{q z² + l z + k} g(z)] = const * E[P(m + s z) g(m + s z)]."""
    polynomial = affine_or_quadratic(exponent, z)
    if polynomial is None:
        return None
    constant, linear, quadratic = polynomial
    contraction = 1 - 2 * quadratic
    if contraction.is_positive is not True:
        return None
    spread, shift = 1 / sp.sqrt(contraction), linear / contraction
    # Cancelled, because the two terms nearly are where the exponential is small.
    factor = spread * sp.exp(sp.cancel(constant + linear**2 / (2 * contraction)))
    inside = sp.Add(*(c * z**n for n, c in coefficients.items())) * sp.Mul(*others)
    value = closed_form(inside.xreplace({z: shift + spread * z}), z)
    return None if value is None else factor * value


def _smoothed_sum(
    kernel: sp.Expr, coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """Sum over the Hermite coefficients of P: E[He_k(z) g(az+b)] = a^k d^k/db^k S_g(b, a²)."""
    base, power = kernel.as_base_exp()
    if not isinstance(base, sp.Function) or len(base.args) not in (1, 2):
        return None
    affine = affine_or_quadratic(base.args[0], z)
    if affine is None or affine[2] != 0 or affine[1] == 0:
        return None
    b, a = affine[0], affine[1]
    if not isinstance(base, sp.sin | sp.cos) and not a.is_extended_real:
        return None  # erf(i z)**2, for one, has no expectation
    if isinstance(base, sp.Heaviside | sp.DiracDelta) and not a.is_nonzero:
        return None  # a step or a point mass that may not depend on z divides by the slope
    smoothed = _smoothed(type(base), power, a**2)
    if isinstance(base, sp.Heaviside) and is_far_below(b / sp.sqrt(a**2)):
        smoothed = sp.erfc(-_B / sp.sqrt(2 * a**2)) / 2
    if smoothed is None:
        return None
    if isinstance(base, sp.DiracDelta) and len(base.args) == 2:
        # A derivative of the point mass, as Price's theorem makes them of steps.
        count = base.args[1]
        if not count.is_Integer or count > _HIGHEST_POWER:
            return None
        smoothed = smoothed.diff((_B, count))
    total, derivative = [], smoothed
    for k, weight in enumerate(_hermite_weights(coefficients)):
        if k:
            derivative = derivative.diff(_B)
        if weight != 0:
            total.append(weight * a**k * derivative.xreplace({_B: b}))
    return sp.Add(*total)


def _sines_with_jumps(
    others: list[sp.Expr], coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """E[P(z) sin(a z + b) g(c z)], g a jump, by the rule for several variables."""
    for factor in others:
        affine = affine_or_quadratic(factor.args[0], z) if factor.args else None
        if affine is None or affine[2] != 0 or not affine[1].is_extended_real:
            return None
        if isinstance(factor, sp.Heaviside | sp.DiracDelta) and not affine[1].is_nonzero:
            return None
    polynomial = sp.Add(*(c * z**n for n, c in coefficients.items()))
    one_variable = ((z,), (sp.S.Zero,), ((sp.S.One,),))
    return joint_closed_form(polynomial * sp.Mul(*others), *one_variable)


def _two_jumps(
    factors: tuple[sp.Expr, ...], coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """E[P(z) g(a1 z + b1) h(a2 z + b2)], g and h steps or error functions."""
    if len(factors) != 2:
        return None
    slopes, shifts, blurs = [sp.S.One], [sp.S.Zero], [sp.S.Zero]
    for factor in factors:
        if not isinstance(factor, sp.erf | sp.Heaviside):
            return None
        affine = affine_or_quadratic(factor.args[0], z)
        if affine is None or affine[2] != 0 or not affine[1].is_extended_real:
            return None
        is_step = isinstance(factor, sp.Heaviside)
        if is_step and not affine[1].is_nonzero:
            return None
        shifts.append(affine[0])
        slopes.append(affine[1])
        blurs.append(sp.S.Zero if is_step else HALF)
    covariance = tuple(
        tuple(a * b + (blurs[i] if i == j else 0) for j, b in enumerate(slopes))
        for i, a in enumerate(slopes)
    )
    powers: dict[tuple[int, ...], sp.Expr] = {(n,): c for n, c in coefficients.items()}
    steps = tuple(isinstance(factor, sp.Heaviside) for factor in factors)
    return jump_moment(powers, tuple(shifts), covariance, steps)


def _smoothed(function: type, power: sp.Expr, v: sp.Expr) -> sp.Expr | None:
    """S_g(b, v) = E g(b + sqrt(v) z) for g = function**power, as an expression in _B."""
    if power == 1:
        if function is sp.sin or function is sp.cos:
            return sp.exp(-v / 2) * function(_B)
        if function is sp.erf:
            return sp.erf(_B / sp.sqrt(1 + 2 * v))
        if function is sp.Heaviside:
            return (1 + sp.erf(_B / sp.sqrt(2 * v))) / 2
        if function is sp.DiracDelta:
            return sp.exp(-(_B**2) / (2 * v)) / sp.sqrt(2 * sp.pi * v)
    if power == 2 and function is sp.erf:
        return 1 - 8 * OwenT(_B * sp.sqrt(2 / (1 + 2 * v)), 1 / sp.sqrt(1 + 4 * v))
    return None


def _hermite_weights(coefficients: dict[int, sp.Expr]) -> list[sp.Expr]:
    """Coefficients in He_k of a polynomial given by monomials: z^n = Σ n!/(2^j j! (n-2j)!) He."""
    weights: list[sp.Expr] = [sp.S.Zero] * (max(coefficients) + 1)
    for n, c in coefficients.items():
        for j in range(n // 2 + 1):
            count = sp.factorial(n) / (2**j * sp.factorial(j) * sp.factorial(n - 2 * j))
            weights[n - 2 * j] += count * c
    return weights


def _moment(n: int) -> sp.Expr:
    return sp.factorial2(n - 1) if n % 2 == 0 else sp.S.Zero
