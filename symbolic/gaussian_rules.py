r"""Closed forms of one-dimensional Gaussian expectations, by rules.

One rule carries all of them. With :math:`S_g(b, v) = \mathbb{E}\,g(b + \sqrt v z)` the smoothed
function, Stein's lemma gives for the probabilists' Hermite polynomials

.. math:: \mathbb{E}[\mathrm{He}_k(z)\, g(az + b)] = a^k\, \partial_b^k S_g(b, a^2),

so a table of the five smoothed functions of sin, cos, erf, the Heaviside step and erf² yields every
polynomial times any of them. Quadratic exponentials are absorbed by a change of measure; relu,
abs and sign are polynomials times steps; products of sines are sums of sines.

Sources: S of erf and erf² by Owen, *Tables for computing bivariate normal probabilities* (1956);
Williams, *Computing with infinite networks*, NIPS 9 (1996), is the case b = 0.
"""

from __future__ import annotations

import sympy as sp

from .functions import OwenT, relu

_B = sp.Dummy("b", real=True)

# Longer sums than this come from integrands like He_60(z)**2 erf(z): the rule would work but the
# answer is longer than anybody reads, and quadrature is exact to any number of digits.
_LONGEST_SUM = 2000
_HIGHEST_POWER = 130
# Exponentials and logarithms stay as they are: only sums are multiplied out.
_PRODUCTS_ONLY = {"power_base": False, "power_exp": False, "log": False, "basic": False}


def closed_form(integrand: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    r"""Return :math:`\mathbb{E}_z[f(z)]`, z standard normal, or None where no rule applies.

    Parameters
    ----------
    integrand : Expr
        Sums and products of: polynomials in `z`; ``exp`` of at most a quadratic; one of ``sin``,
        ``cos``, ``erf``, ``erfc``, ``Heaviside``, ``sign``, ``Abs``, ``relu``, ``DiracDelta``
        (or ``erf**2``) of an affine function of `z`; products of sines and cosines. Except for
        sines, slopes have to be declared real; steps need a slope that cannot be zero.
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
    expanded = _as_steps_and_exponentials(integrand).expand(**_PRODUCTS_ONLY)
    terms = sp.Add.make_args(expanded)
    if len(terms) > _LONGEST_SUM:
        return None
    total = []
    # Terms that differ only in their power of z share the smoothed function and its derivatives.
    for kernel, coefficients in _group(terms, z).items():
        value = _polynomial_times(kernel, coefficients, z)
        if value is None:
            return None
        total.append(value)
    return sp.Add(*total)


def _as_steps_and_exponentials(expr: sp.Expr) -> sp.Expr:
    half = sp.Rational(1, 2)
    rules = {
        relu: lambda x: x * sp.Heaviside(x, half),
        sp.Abs: lambda x: x * (2 * sp.Heaviside(x, half) - 1),
        sp.sign: lambda x: 2 * sp.Heaviside(x, half) - 1,
        sp.erfc: lambda x: 1 - sp.erf(x),
        sp.cosh: lambda x: (sp.exp(x) + sp.exp(-x)) / 2,
        sp.sinh: lambda x: (sp.exp(x) - sp.exp(-x)) / 2,
    }
    for function, rule in rules.items():
        if expr.has(function):
            expr = expr.replace(function, rule)
    return expr


def _group(terms: tuple[sp.Expr, ...], z: sp.Symbol) -> dict[sp.Expr, dict[int, sp.Expr]]:
    """Sort ``c z**n g(z)`` by g: {g: {n: c}}."""
    groups: dict[sp.Expr, dict[int, sp.Expr]] = {}
    for term in terms:
        constant, rest = term.as_independent(z, as_Add=False)
        power, kernel = 0, sp.S.One
        for factor in sp.Mul.make_args(rest):
            base, exponent = factor.as_base_exp()
            if base == z and exponent.is_Integer and exponent > 0:
                power += int(exponent)
            else:
                kernel *= factor
        coefficients = groups.setdefault(kernel, {})
        coefficients[power] = coefficients.get(power, sp.S.Zero) + constant
    return groups


def _polynomial_times(
    kernel: sp.Expr, coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """E[P(z) g(z)] for P given by its monomial coefficients."""
    if max(coefficients) > _HIGHEST_POWER:
        return None
    parts = _split_kernel(kernel, z)
    if parts is None:
        return None
    exponent, others = parts
    if exponent is not None:
        return _change_of_measure(exponent, others, coefficients, z)
    if not others:
        return sp.Add(*(c * _moment(n) for n, c in coefficients.items()))
    single = _reduce_trigonometric(others)
    if single is None:
        return None
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
    return _smoothed_sum(single[0][1], coefficients, z)


def _split_kernel(kernel: sp.Expr, z: sp.Symbol) -> tuple[sp.Expr | None, list[sp.Expr]] | None:
    """Separate the exponential (its exponent) from the other factors, steps merged."""
    exponent: sp.Expr = sp.S.Zero
    others: list[sp.Expr] = []
    for factor in sp.Mul.make_args(kernel):
        base, power = factor.as_base_exp()
        if factor == 1:
            continue
        if isinstance(factor, sp.exp) or base is sp.S.Exp1:
            exponent += factor.exp if isinstance(factor, sp.exp) else power
        elif not (power.is_Integer and power > 0):
            return None
        elif isinstance(base, sp.exp):
            exponent += base.exp * power
        elif isinstance(base, sp.Heaviside):
            others.append(base)  # a step is its own power
        else:
            others.extend([base] * int(power))
    return (exponent if exponent.has(z) else None), others


def _change_of_measure(
    exponent: sp.Expr, others: list[sp.Expr], coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """E[P(z) e^{q z² + l z + k} g(z)] = const * E[P(m + s z) g(m + s z)]."""
    polynomial = _affine_or_quadratic(exponent, z)
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


def _affine_or_quadratic(expr: sp.Expr, z: sp.Symbol) -> tuple[sp.Expr, ...] | None:
    expanded = sp.expand(expr)
    found = [sp.S.Zero, sp.S.Zero, sp.S.Zero]
    for term in sp.Add.make_args(expanded):
        constant, rest = term.as_independent(z, as_Add=False)
        power = {sp.S.One: 0, z: 1, z**2: 2}.get(rest)
        if power is None:
            return None
        found[power] += constant
    return tuple(found)


def _reduce_trigonometric(others: list[sp.Expr]) -> list[tuple[sp.Expr, sp.Expr]] | None:
    """Write the product of `others` as a sum of (factor, kernel), sines reduced to first powers."""
    trigonometric = [f for f in others if isinstance(f, sp.sin | sp.cos)]
    rest = [f for f in others if not isinstance(f, sp.sin | sp.cos)]
    if not trigonometric or len(others) == 1:
        unique = (
            list(dict.fromkeys(rest)) if all(isinstance(f, sp.Heaviside) for f in rest) else rest
        )
        return [(sp.S.One, sp.Mul(*(unique or trigonometric)))]
    if rest:
        return None
    half = sp.Rational(1, 2)
    sums: list[tuple[sp.Expr, sp.Expr]] = [(sp.S.One, trigonometric[0])]
    for factor in trigonometric[1:]:
        product = []
        for weight, kernel in sums:
            if not isinstance(kernel, sp.sin | sp.cos):
                product.append((weight * kernel, factor))
                continue
            a, b = kernel.args[0], factor.args[0]
            if isinstance(kernel, sp.sin) and isinstance(factor, sp.sin):
                product += [(weight * half, sp.cos(a - b)), (-weight * half, sp.cos(a + b))]
            elif isinstance(kernel, sp.cos) and isinstance(factor, sp.cos):
                product += [(weight * half, sp.cos(a - b)), (weight * half, sp.cos(a + b))]
            else:
                if isinstance(kernel, sp.cos):
                    a, b = b, a
                product += [(weight * half, sp.sin(a + b)), (weight * half, sp.sin(a - b))]
        # SymPy writes sin(-z) as -sin(z): the sign is a factor, not a part of the kernel.
        signed = ((weight, *kernel.as_coeff_Mul()) for weight, kernel in product)
        sums = [(weight * sign, kernel) for weight, sign, kernel in signed if sign != 0]
    return sums


def _smoothed_sum(
    kernel: sp.Expr, coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """Sum over the Hermite coefficients of P: E[He_k(z) g(az+b)] = a^k d^k/db^k S_g(b, a²)."""
    base, power = kernel.as_base_exp()
    if not isinstance(base, sp.Function) or len(base.args) not in (1, 2):
        return None
    affine = _affine_or_quadratic(base.args[0], z)
    if affine is None or affine[2] != 0 or affine[1] == 0:
        return None
    b, a = affine[0], affine[1]
    if not isinstance(base, sp.sin | sp.cos) and not a.is_extended_real:
        return None  # erf(i z)**2, for one, has no expectation
    if isinstance(base, sp.Heaviside | sp.DiracDelta) and not a.is_nonzero:
        return None  # a step or a point mass that may not depend on z divides by the slope
    smoothed = _smoothed(type(base), power, a**2)
    if smoothed is None:
        return None
    total, derivative = [], smoothed
    for k, weight in enumerate(_hermite_weights(coefficients)):
        if k:
            derivative = derivative.diff(_B)
        if weight != 0:
            total.append(weight * a**k * derivative.xreplace({_B: b}))
    return sp.Add(*total)


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
