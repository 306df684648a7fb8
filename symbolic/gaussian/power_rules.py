r"""Averages of powers, logarithms and rational functions of one Gaussian variable.

Moments of the modulus, and of its logarithm by derivatives in the exponent, on the line and on a
half of it:

.. math:: \mathbb{E}|z|^\alpha = \frac{2^{\alpha/2}}{\sqrt\pi}\,\Gamma\!\Big(\frac{\alpha+1}2\Big),
          \qquad \mathbb{E}|z|^\alpha \log^m|z| = \partial_\alpha^m\, \mathbb{E}|z|^\alpha.

Rational functions of z² without real poles are sums of partial fractions, with

.. math:: \mathbb{E}\frac1{z^2+q} = \sqrt{\frac{\pi}{2q}}\;e^{q/2}\,
          \mathrm{erfc}\sqrt{q/2}, \qquad
          \mathbb{E}\frac1{(z^2+q)^m} = \frac{(-1)^{m-1}}{(m-1)!}\,\partial_q^{m-1}\,
          \mathbb{E}\frac1{z^2+q}

(Abramowitz and Stegun 7.4.11). An exponential of z² changes the scale. A function of the length of
k independent variables of one variance is an average over one variable:
:math:`\mathbb{E}\,g(|x|^2) = \sqrt{2\pi}\,/(2^{k/2}\Gamma(k/2))\;\mathbb{E}\,|z|^{k-1} g(z^2)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import sympy as sp

from ..expressions.factors import partial_fractions
from ..expressions.functions import relu
from .integrand_kernels import PRODUCTS_ONLY, affine_or_quadratic

_HIGHEST_LOGARITHM = 4
_HIGHEST_POWER = 60
_ALPHA = sp.Dummy("alpha")
_W = sp.Dummy("w", positive=True)


@dataclass
class _Product:
    """c |z|^α sgn(z)^s log^m|z| · 1[side z > 0] · exp(g z²) · a rational function of z²."""

    constant: sp.Expr = sp.S.One
    exponent: sp.Expr = sp.S.Zero
    odd: bool = False
    side: int = 0
    curvature: sp.Expr = sp.S.Zero
    logarithms: list[tuple[sp.Expr, sp.Expr]] = field(default_factory=list)
    rational: sp.Expr = sp.S.One


def has_special_kernels(integrand: sp.Expr, z: sp.Symbol) -> bool:
    """Whether an integrand holds a power, a logarithm or a quotient that no other rule averages."""
    for node in integrand.atoms(sp.Pow, sp.log):
        if not node.has(z) or node.base is sp.S.Exp1 if node.is_Pow else not node.has(z):
            continue
        if isinstance(node, sp.log) or not (node.exp.is_Integer and node.exp > 0):
            return True
    return False


def power_closed_form(integrand: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    """Return E of a sum of products of powers, logarithms and quotients; None for all others.

    Examples
    --------
    >>> z, a = sp.Symbol("z", real=True), sp.Symbol("a", positive=True)
    >>> power_closed_form(sp.Abs(2 * z) ** a, z)
    2**(3*a/2)*gamma(a/2 + 1/2)/sqrt(pi)
    >>> power_closed_form(1 / (1 + z**2), z)
    sqrt(2)*sqrt(pi)*exp(1/2)*erfc(sqrt(2)/2)/2
    >>> power_closed_form(sp.log(sp.Abs(z)), z)
    -log(2)/2 - EulerGamma/2
    """
    # Denominators stay as they are: their factors are what partial fractions are made of.
    inverse = {
        node: sp.Dummy(commutative=True)
        for node in integrand.atoms(sp.Pow)
        if node.exp.is_negative and node.base.is_Add
    }
    terms = sp.Add.make_args(integrand.xreplace(inverse).expand(**PRODUCTS_ONLY))
    back = {name: node for node, name in inverse.items()}
    total = []
    for term in terms:
        term = term.xreplace(back)
        constant, rest = term.as_independent(z, as_Add=False)
        product = _read(rest, z)
        value = None if product is None else _average(product)
        if value is None:
            return None
        total.append(constant * value)
    return sp.Add(*total)


def _read(term: sp.Expr, z: sp.Symbol) -> _Product | None:
    product = _Product()
    for factor in sp.Mul.make_args(term):
        base, power = factor.as_base_exp()
        if base is sp.S.Exp1 or isinstance(factor, sp.exp):
            exponent = affine_or_quadratic(factor.exp, z)
            if exponent is None or exponent[1] != 0:
                return None
            product.curvature += exponent[2]
            product.constant *= sp.exp(exponent[0])
        elif not _take(product, base, power, z):
            return None
    return product


def _take(product: _Product, base: sp.Expr, power: sp.Expr, z: sp.Symbol) -> bool:
    """Put a factor where it belongs; tell whether it is of a known kind."""
    whole = bool(power.is_Integer and power > 0)
    scale, rest = base.as_independent(z, as_Add=False)
    if scale.is_positive and scale != 1:
        product.constant *= scale**power
        base = rest
    if isinstance(base, sp.Heaviside | sp.sign | relu):
        slope = _slope(base.args[0], z)
        sign = 0 if slope is None else 1 if slope.is_positive else -1 if slope.is_negative else 0
        if not sign or not (whole or isinstance(base, relu)):
            return False
        if isinstance(base, sp.sign):
            product.odd ^= bool(power % 2)
            product.constant *= sign**power
            return True
        if product.side == -sign:
            product.constant = sp.S.Zero
        product.side = sign
        if isinstance(base, relu):
            return _modulus(product, slope, power)
        return True
    if isinstance(base, sp.Abs):
        slope = _slope(base.args[0], z)
        return slope is not None and _modulus(product, slope, power)
    if isinstance(base, sp.log):
        if not whole or len(product.logarithms) + int(power) > _HIGHEST_LOGARITHM:
            return False
        read = _inside_logarithm(base.args[0], z)
        if read is not None:
            product.logarithms += [read] * int(power)
        return read is not None
    if base == z:
        if not power.is_Integer:
            return False
        product.odd ^= bool(power % 2)
        return _modulus(product, sp.S.One, power)
    quadratic = affine_or_quadratic(base, z) if base.is_polynomial(z) else None
    if quadratic is not None and quadratic[1] == 0 and quadratic[2] != 0:
        if quadratic[0] == 0:
            return _modulus(product, sp.sqrt(quadratic[2]), 2 * power) and quadratic[2].is_positive
        if power.is_Integer:
            product.rational *= (quadratic[0] + quadratic[2] * _W) ** power
            return True
    return False


def _slope(argument: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    affine = affine_or_quadratic(argument, z)
    if affine is None or affine[0] != 0 or affine[2] != 0 or not affine[1].is_real:
        return None
    return affine[1]


def _modulus(product: _Product, slope: sp.Expr, power: sp.Expr) -> bool:
    product.constant *= sp.Abs(slope) ** power
    product.exponent += power
    return True


def _inside_logarithm(argument: sp.Expr, z: sp.Symbol) -> tuple[sp.Expr, sp.Expr] | None:
    """Return (a, b) with log of the argument = a + b log|z|."""
    constant, rest = argument.as_independent(z, as_Add=False)
    base, power = rest.as_base_exp()
    if not constant.is_positive or not power.is_real:
        return None
    if isinstance(base, sp.Abs):
        slope = _slope(base.args[0], z)
        if slope is None:
            return None
        return sp.log(constant) + power * sp.log(sp.Abs(slope)), power
    if base == z and power.is_Integer and power % 2 == 0:
        return sp.log(constant), power
    return None


def _average(product: _Product) -> sp.Expr | None:
    if product.constant == 0 or (product.odd and not product.side):
        # Only if it is finite at all.
        return sp.S.Zero if _is_finite(product) else None
    if not _is_finite(product):
        return None
    factor = product.constant
    if product.side:
        factor *= sp.Rational(1, 2) * (product.side if product.odd else 1)
    scale = 1 / sp.sqrt(1 - 2 * product.curvature)
    factor *= scale
    if product.rational != 1:
        rational = product.rational * _W ** (product.exponent / 2)
        if product.logarithms or not (product.exponent / 2).is_integer:
            return None
        value = _rational(rational.xreplace({_W: scale**2 * _W}))
        return None if value is None else factor * value
    # A polynomial in the logarithm, each power a derivative of the moment.
    polynomial = [sp.S.One]
    for a, b in product.logarithms:
        a = a + b * sp.log(scale)
        longer = [sp.S.Zero] * (len(polynomial) + 1)
        for m, c in enumerate(polynomial):
            longer[m] += a * c
            longer[m + 1] += b * c
        polynomial = longer
    moment = scale**_ALPHA * 2 ** (_ALPHA / 2) * sp.gamma((_ALPHA + 1) / 2) / sp.sqrt(sp.pi)
    plain = moment / scale**_ALPHA
    total = []
    for m, c in enumerate(polynomial):
        if c != 0:
            derivative = plain.diff(_ALPHA, m) if m else plain
            total.append(c * sp.expand(derivative.xreplace({_ALPHA: product.exponent})))
    return factor * scale**product.exponent * sp.Add(*total)


def _is_finite(product: _Product) -> bool:
    return bool(
        (product.exponent + 1).is_positive and (1 - 2 * product.curvature).is_positive
    ) and not (product.exponent.is_Integer and product.exponent > _HIGHEST_POWER)


def _rational(function: sp.Expr) -> sp.Expr | None:
    """E of a rational function of w = z²."""
    total = []
    for term in sp.Add.make_args(partial_fractions(sp.together(function), _W)):
        constant, rest = term.as_independent(_W, as_Add=False)
        numerator, denominator = rest.as_numer_denom()
        if not denominator.has(_W):
            polynomial = sp.Poly(numerator, _W)
            moments = (c * sp.factorial2(2 * n - 1) for (n,), c in polynomial.terms())
            total.append(constant / denominator * sp.Add(*moments))
            continue
        base, m = denominator.as_base_exp()
        affine = affine_or_quadratic(base, _W)
        if numerator.has(_W) or affine is None or affine[2] != 0 or not m.is_Integer:
            return None
        q = affine[0] / affine[1]
        if not q.is_positive:
            return None
        total.append(constant * numerator / affine[1] ** m * _inverse_power(q, int(m)))
    return sp.Add(*total)


def _inverse_power(q: sp.Expr, m: int) -> sp.Expr:
    """E 1/(z² + q)^m."""
    t = sp.Dummy("q", positive=True)
    first = sp.sqrt(sp.pi / (2 * t)) * sp.exp(t / 2) * sp.erfc(sp.sqrt(t / 2))
    derivative = first.diff(t, m - 1) if m > 1 else first
    return (-1) ** (m - 1) * sp.expand(derivative.xreplace({t: q})) / math.factorial(m - 1)


def radial_integrand(
    integrand: sp.Expr,
    variables: Sequence[sp.Symbol],
    mean: Sequence[sp.Expr],
    covariance: sp.Matrix,
    z: sp.Symbol,
) -> sp.Expr | None:
    r"""Return h with :math:`\mathbb{E}f(x) = \mathbb{E}h(z)` for a polynomial times g(|x|).

    `integrand`: f, a sum of monomials times functions of :math:`x_1^2 + \dots + x_k^2`. `mean`,
    `covariance`: of the variables; None is returned unless they are independent, centred, of one
    variance. `z`: the standard normal variable of h.

    Examples
    --------
    >>> u, v, z = sp.symbols("u v z", real=True)
    >>> radial_integrand(u**2 * sp.sqrt(u**2 + v**2), (u, v), (0, 0), sp.eye(2), z)
    sqrt(2)*sqrt(pi)*z**4/4
    """
    k, variance = len(variables), covariance[0, 0]
    if k < 2 or any(mean) or covariance != variance * sp.eye(k):
        return None
    square = sp.Dummy("s", nonnegative=True)
    length = sp.Add(*(x**2 for x in variables))
    inside = integrand.subs(length, square)
    if not inside.has(square):
        return None
    total = []
    for term in sp.Add.make_args(sp.expand(inside, **PRODUCTS_ONLY)):
        monomial, g = term.as_independent(square, as_Add=False)
        if g.has(*variables) or not monomial.is_polynomial(*variables):
            return None
        # |x| = sqrt(variance) |z|, and the direction is uniform on the sphere.
        radius = sp.sqrt(variance) * sp.Abs(z)
        along = g.xreplace({square: variance * z**2})
        for powers, c in sp.Poly(monomial, *variables).terms():
            degree = sum(powers)
            if any(n % 2 for n in powers):
                continue
            mean_power = sp.Mul(*(sp.factorial2(n - 1) for n in powers)) / sp.Mul(
                *(k + 2 * j for j in range(degree // 2))
            )
            total.append(c * mean_power * radius**degree * along)
    return chi_weight(k) * sp.Abs(z) ** (k - 1) * sp.Add(*total)


def chi_weight(k: int) -> sp.Expr:
    r"""Return w with :math:`\mathbb{E}\,g(|x|) = w\,\mathbb{E}|z|^{k-1} g(|z|)` for k variables."""
    return sp.sqrt(2 * sp.pi) / (2 ** sp.Rational(k, 2) * sp.gamma(sp.Rational(k, 2)))
