r"""Derivatives of Gaussian expectations whose integrands have kinks and jumps.

Differentiating under 𝔼 turns a kink into a jump and a jump into a Dirac delta. No kernel can
sample a delta, but its expectation is a closed form: with the standard normal density φ,

.. math:: \mathbb{E}[\delta(u(z))\,h(z)] = \sum_{z_0:\,u(z_0)=0}
          \frac{h(z_0)\,\varphi(z_0)}{|u'(z_0)|},

and derivatives of deltas go over to h by parts,
:math:`\mathbb{E}[\delta'(u)\,h] = -\mathbb{E}[\delta(u)\,((h/u')' - z\,h/u')]`.
"""

from __future__ import annotations

import sympy as sp
from sympy.core.function import AppliedUndef

from ..errors import UnsupportedExpressionError
from .functions import HALF, relu
from .gaussian import GaussianExpectation
from .jumps import jumps_as_steps
from .piecewise_polynomials import without_extrema
from .regularity import analyse


def smooth_partial(expr: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return the derivative of `expr` with respect to `x` without a Dirac delta under 𝔼.

    Parameters
    ----------
    expr : Expr
        May hold 𝔼 nodes, also inside one another.
    x : Symbol
        A parameter or an unknown; no bound variable.

    Raises
    ------
    UnsupportedExpressionError
        If the points where an integrand jumps cannot be found, or tables would be needed there.

    Examples
    --------
    >>> z, a = sp.symbols("z a", real=True)
    >>> smooth_partial(GaussianExpectation(sp.sign(a + z), z), a)
    sqrt(2)*exp(-a**2/2)/sqrt(pi)
    >>> smooth_partial(GaussianExpectation(sp.tanh(a * z), z), a)
    -2*a*E_z[(1 - tanh(a*z)**2)*tanh(a*z)]
    """
    nodes = [n for n in _outermost(expr) if x in n.free_symbols]
    if not nodes:
        return expr.diff(x)
    marks = {n: sp.Dummy(real=True) for n in nodes}
    marked = expr.xreplace(marks)
    back = {mark: n for n, mark in marks.items()}
    total = marked.diff(x)
    total += sp.Add(*(marked.diff(mark) * _derivative(n, x) for n, mark in marks.items()))
    return total.xreplace(back)


def _outermost(expr: sp.Expr) -> list[GaussianExpectation]:
    if isinstance(expr, GaussianExpectation):
        return [expr]
    found: dict[GaussianExpectation, None] = {}
    for argument in expr.args:
        if isinstance(argument, sp.Expr):
            found |= dict.fromkeys(_outermost(argument))
    return list(found)


def _derivative(node: GaussianExpectation, x: sp.Symbol) -> sp.Expr:
    z, integrand = node.variable, node.integrand
    integrand = without_extrema(integrand)
    rewritten = jumps_as_steps(GaussianExpectation(integrand, z))
    if rewritten != node:
        return smooth_partial(rewritten, x)
    slope = smooth_partial(integrand, x)
    if not slope.has(sp.DiracDelta):
        if _power(slope, z) <= _power(integrand, z) and slope.has(GaussianExpectation):
            # A factor of the integrand's own: by parts nothing cancels, and inner expectations
            # have derivatives twice as long.
            return GaussianExpectation(slope, z)
        return mean_by_parts(slope, z)
    deltas = {d: sp.Dummy(real=True) for d in slope.atoms(sp.DiracDelta)}
    marked = slope.xreplace(deltas)
    total = mean_by_parts(marked.xreplace(dict.fromkeys(deltas.values(), sp.S.Zero)), z)
    for delta, mark in deltas.items():
        weight = marked.diff(mark)
        if weight.free_symbols & set(deltas.values()):
            raise UnsupportedExpressionError(
                f"the derivative of {node} with respect to {x} holds a product of Dirac deltas"
            )
        total += _mean_of_delta(delta, weight, z)
    return total


def mean_by_parts(integrand: sp.Expr, z: sp.Symbol) -> sp.Expr:
    """Return the expectation of an integrand, that of z h(z) as that of h'(z) where h is smooth.

    The derivative with respect to a spread b is E[z f'(a + b z)] = b E f''(a + b z): on the right
    nothing is lost when b is small, and b cancels against what it is divided by.
    """
    if _power(integrand, z) > 0:
        rest = (integrand / z).diff(z)
        if not rest.has(sp.DiracDelta, sp.Derivative):
            return GaussianExpectation(rest, z)
    return GaussianExpectation(integrand, z)


def _power(product: sp.Expr, z: sp.Symbol) -> int:
    """Return the power of z itself among the factors of a product."""
    powers = (f.as_base_exp() for f in sp.Mul.make_args(product))
    return sum(int(n) for base, n in powers if base == z and n.is_Integer)


def _mean_of_delta(delta: sp.DiracDelta, weight: sp.Expr, z: sp.Symbol) -> sp.Expr:
    argument = delta.args[0]
    slope = argument.diff(z)
    if slope == 0:
        raise UnsupportedExpressionError(
            f"the derivative jumps with {argument}, which does not depend on {z}: at the jump it "
            "does not exist"
        )
    for _ in range(int(delta.args[1]) if len(delta.args) > 1 else 0):
        ratio = weight / slope
        weight = z * ratio - ratio.diff(z)
    if weight.has(sp.DiracDelta):
        raise UnsupportedExpressionError(
            f"the derivative holds a product of Dirac deltas at the zeros of {argument}"
        )
    total: sp.Expr = sp.S.Zero
    for zero in analyse(sp.Abs(argument), z).kinks:
        value = _at(weight / sp.Abs(slope), z, zero)
        density = sp.exp(-(zero**2) / 2) / sp.sqrt(2 * sp.pi)
        total += value * density
    return total


def _at(weight: sp.Expr, z: sp.Symbol, zero: sp.Expr) -> sp.Expr:
    """Return the weight of a delta at its point; a step has half its height at its jump."""
    tables = [f for f in weight.atoms(AppliedUndef) if f.has(z)]
    if tables:
        raise UnsupportedExpressionError(
            f"the derivative needs {tables[0]} at the jump {z} = {zero}, between the nodes of its "
            "table"
        )
    at_jump: dict[sp.Expr, sp.Expr] = {}
    middle = {sp.Heaviside: HALF, sp.sign: sp.S.Zero, sp.Abs: sp.S.Zero, relu: sp.S.Zero}
    for f in weight.atoms(*middle):
        if z in f.free_symbols and sp.expand(f.args[0].xreplace({z: zero})) == 0:
            at_jump[f] = middle[f.func]
    return weight.xreplace(at_jump).xreplace({z: zero})
