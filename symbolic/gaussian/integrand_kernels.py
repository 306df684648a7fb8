"""Integrands taken apart: sums of polynomials times kernels, and kernels into their factors.

The rules for Gaussian averages and Hermite moments read an integrand in one and the same way: relu,
abs and sign become polynomials times steps, hyperbolic sines exponentials, products are multiplied
out, and terms that differ only in their power of the variable are collected by what stands behind
it, the *kernel*. All of it is exact rewriting; nothing is averaged here.
"""

from __future__ import annotations

import itertools

import sympy as sp

from ..expressions._singularities import expanded_terms, on_side
from ..expressions.functions import HALF, relu
from ..expressions.piecewise_polynomials import flattened, in_every_order, without_extrema

LONGEST_SUM = 2000
"""Most terms that rules go through.

Longer sums come from integrands like He_60(z)**2 erf(z): rules would work but the answer is longer
than anybody reads, and quadrature is exact to any number of digits.
"""

_LONGEST_PRODUCT = 40_000

PRODUCTS_ONLY = {"power_base": False, "power_exp": False, "log": False, "basic": False}
"""How ``expand`` multiplies out sums, while exponentials and logarithms stay as they are."""


def as_steps_and_exponentials(expr: sp.Expr) -> sp.Expr:
    """Write kinks, also nested ones, erfc, sinh and cosh by steps, erf and exponentials.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> as_steps_and_exponentials(relu(z) + sp.cosh(z))
    z*Heaviside(z) + exp(z)/2 + exp(-z)/2
    """
    expr = without_extrema(in_every_order(flattened(expr, whole=True)))
    expr = _unfolded(expr)
    rules = {
        relu: lambda x: x * sp.Heaviside(x, HALF),
        sp.Abs: lambda x: x * (2 * sp.Heaviside(x, HALF) - 1),
        sp.sign: lambda x: 2 * sp.Heaviside(x, HALF) - 1,
        sp.erfc: lambda x: 1 - sp.erf(x),
        sp.cosh: lambda x: (sp.exp(x) + sp.exp(-x)) / 2,
        sp.sinh: lambda x: (sp.exp(x) - sp.exp(-x)) / 2,
    }
    for function, rule in rules.items():
        if expr.has(function):
            expr = expr.replace(function, rule)
    return expr


_KINKS = (sp.Abs, relu, sp.sign, sp.Heaviside)
_MOST_KINKS = 3


def _unfolded(expr: sp.Expr) -> sp.Expr:
    """Write exponentials, sines and error functions of kinks as sums of those without, on sides."""

    def folded(node: sp.Expr) -> bool:
        return isinstance(node, sp.exp | sp.sin | sp.cos | sp.erf) and node.has(*_KINKS)

    def on_sides(node: sp.Expr) -> sp.Expr:
        kinks = node.atoms(*_KINKS)
        inner = sorted({kink.args[0] for kink in kinks}, key=sp.default_sort_key)
        if len(inner) > _MOST_KINKS or any(u.has(*_KINKS) for u in inner):
            return node
        total = []
        for signs in itertools.product((1, -1), repeat=len(inner)):
            side = dict(zip(inner, signs, strict=True))
            values = {kink: on_side(kink.func, kink.args[0], side[kink.args[0]]) for kink in kinks}
            steps = (sp.Heaviside(s * u, HALF) for u, s in side.items())
            total.append(sp.Mul(node.xreplace(values), *steps))
        return sp.Add(*total)

    return expr.replace(folded, on_sides)


def multiplied_out(expr: sp.Expr) -> tuple[sp.Expr, ...] | None:
    """Return the terms of an expression after :func:`as_steps_and_exponentials`, None if too many.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> len(multiplied_out(relu(z) * (sp.erf(z) + 1)))
    2
    >>> multiplied_out(sp.Mul(*(sp.erf(k * z) + 1 for k in range(1, 41))))
    """
    result = as_steps_and_exponentials(expr)
    # Counted before: SymPy would multiply out 2**40 terms. Equal terms are not seen here.
    if expanded_terms(result) > _LONGEST_PRODUCT:
        return None
    terms = sp.Add.make_args(result.expand(**PRODUCTS_ONLY))
    return terms if len(terms) <= LONGEST_SUM else None


def group_by_kernel(terms: tuple[sp.Expr, ...], z: sp.Symbol) -> dict[sp.Expr, dict[int, sp.Expr]]:
    """Sort terms ``c z**n g(z)`` by g: {g: {n: c}}.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> group_by_kernel((3 * z**2 * sp.erf(z), sp.erf(z), z), z)
    {erf(z): {2: 3, 0: 1}, 1: {1: 1}}
    """
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


def split_kernel(kernel: sp.Expr, z: sp.Symbol) -> tuple[sp.Expr | None, list[sp.Expr]] | None:
    """Separate the exponential (its exponent) from the other factors, steps merged.

    The result: the exponent is None if there is no exponential. None alone if a power of a factor
    is no positive integer.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> split_kernel(sp.exp(z) * sp.exp(-(z**2)) * sp.erf(z) ** 2, z)
    (-z**2 + z, [erf(z), erf(z)])
    """
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


def affine_or_quadratic(expr: sp.Expr, z: sp.Symbol) -> tuple[sp.Expr, ...] | None:
    """Return the coefficients of 1, z and z² of a polynomial of at most that degree, else None.

    Examples
    --------
    >>> z, b = sp.symbols("z b", real=True)
    >>> affine_or_quadratic(2 * (z - b), z), affine_or_quadratic(z**3, z)
    ((-2*b, 2, 0), None)
    """
    expanded = sp.expand(expr)
    result = [sp.S.Zero, sp.S.Zero, sp.S.Zero]
    for term in sp.Add.make_args(expanded):
        constant, rest = term.as_independent(z, as_Add=False)
        power = {sp.S.One: 0, z: 1, z**2: 2}.get(rest)
        if power is None:
            return None
        result[power] += constant
    return tuple(result)


def reduce_trigonometric(others: list[sp.Expr]) -> list[tuple[sp.Expr, sp.Expr]] | None:
    """Write the product of `others` as a sum of (factor, kernel), sines reduced to first powers.

    None for sines times something else.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> reduce_trigonometric([sp.sin(z), sp.sin(z)])
    [(1/2, 1), (-1/2, cos(2*z))]
    """
    trigonometric = [f for f in others if isinstance(f, sp.sin | sp.cos)]
    rest = [f for f in others if not isinstance(f, sp.sin | sp.cos)]
    if not trigonometric or len(others) == 1:
        unique = (
            list(dict.fromkeys(rest)) if all(isinstance(f, sp.Heaviside) for f in rest) else rest
        )
        return [(sp.S.One, sp.Mul(*(unique or trigonometric)))]
    if rest:
        return None
    sums: list[tuple[sp.Expr, sp.Expr]] = [(sp.S.One, trigonometric[0])]
    for factor in trigonometric[1:]:
        product = []
        for weight, kernel in sums:
            if not isinstance(kernel, sp.sin | sp.cos):
                product.append((weight * kernel, factor))
                continue
            a, b = kernel.args[0], factor.args[0]
            if isinstance(kernel, sp.sin) and isinstance(factor, sp.sin):
                product += [(weight * HALF, sp.cos(a - b)), (-weight * HALF, sp.cos(a + b))]
            elif isinstance(kernel, sp.cos) and isinstance(factor, sp.cos):
                product += [(weight * HALF, sp.cos(a - b)), (weight * HALF, sp.cos(a + b))]
            else:
                if isinstance(kernel, sp.cos):
                    a, b = b, a
                product += [(weight * HALF, sp.sin(a + b)), (weight * HALF, sp.sin(a - b))]
        # SymPy writes sin(-z) as -sin(z): the sign is a factor, not a part of the kernel.
        signed = ((weight, *kernel.as_coeff_Mul()) for weight, kernel in product)
        sums = [(weight * sign, kernel) for weight, sign, kernel in signed if sign != 0]
    return sums
