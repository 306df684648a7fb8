r"""Derivatives of Gaussian expectations over the line, and Stein's lemma.

For a standard normal z, :math:`\mathbb{E}[z f(z)] = \mathbb{E}[f'(z)]` (:func:`by_parts`, in both
directions). :func:`smooth_partial` differentiates under 𝔼 where integrands have kinks and jumps,
whose Dirac deltas have closed forms with the standard normal density φ,

.. math:: \mathbb{E}[\delta(u(z))\,h(z)] = \sum_{z_0:\,u(z_0)=0}
          \frac{h(z_0)\,\varphi(z_0)}{|u'(z_0)|}, \qquad
          \mathbb{E}[\delta'(u)\,h] = -\mathbb{E}[\delta(u)\,((h/u')' - z\,h/u')] .

Source: C. Stein, Ann. Statist. 9, 1135 (1981), Lemma 1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import AssumptionError, ParameterError, UnsupportedExpressionError
from ..expressions._singularities import is_positive_sum
from ..expressions.arguments import as_expression
from ..expressions.averages import Average, LineAverage
from ..expressions.functions import (
    HALF,
    erfcx,
    log_cosh,
    log_normal_cdf,
    normal_cdf,
    relu,
    sigmoid,
    softplus,
)
from ..expressions.piecewise_polynomials import without_extrema
from ..expressions.regularity import analyse
from ..expressions.shared_parts import first_derivative
from .integrand_kernels import PRODUCTS_ONLY
from .jumps import jumps_as_steps


def smooth_partial(expr: sp.Expr, x: sp.Symbol) -> sp.Expr:
    """Return the derivative of `expr` with respect to `x` without a Dirac delta under 𝔼.

    `expr`: may hold 𝔼 nodes, also inside one another. `x`: a parameter or an unknown; no bound
    variable. Raises UnsupportedExpressionError if the points where an integrand jumps cannot be
    found, or tables would be needed there.

    Examples
    --------
    >>> from giantstep.symbolic.gaussian.expectation import GaussianExpectation
    >>> z, a = sp.symbols("z a", real=True)
    >>> smooth_partial(GaussianExpectation(sp.sign(a + z), z), a)
    sqrt(2)*exp(-a**2/2)/sqrt(pi)
    >>> smooth_partial(GaussianExpectation(sp.tanh(a * z), z), a)
    -2*a*E_z[(1 - tanh(a*z)**2)*tanh(a*z)]
    """
    nodes = [n for n in _expectations_in(expr) if x in n.free_symbols]
    if not nodes:
        return first_derivative(expr, x)
    marks = {n: sp.Dummy(real=True) for n in nodes}
    marked = expr.xreplace(marks)
    back = {mark: n for n, mark in marks.items()}
    total = first_derivative(marked, x)
    total += sp.Add(
        *(first_derivative(marked, mark) * _derivative(n, x) for n, mark in marks.items())
    )
    return total.xreplace(back)


def _expectations_in(expr: sp.Expr) -> list[LineAverage]:
    if isinstance(expr, LineAverage):
        return [expr]
    result: dict[LineAverage, None] = {}
    for argument in expr.args:
        if isinstance(argument, sp.Expr):
            result |= dict.fromkeys(_expectations_in(argument))
    return list(result)


def _derivative(node: LineAverage, x: sp.Symbol) -> sp.Expr:
    z, integrand = node.variable, node.integrand
    integrand = without_extrema(integrand)
    rewritten = jumps_as_steps(node.func(integrand, z))
    if rewritten != node:
        return smooth_partial(rewritten, x)
    slope = smooth_partial(integrand, x)
    if not slope.has(sp.DiracDelta):
        if _power(slope, z) <= _power(integrand, z) and slope.has(LineAverage):
            # A factor of the integrand's own: by parts nothing cancels, and inner expectations
            # have derivatives twice as long.
            return node.func(slope, z)
        return _mean_by_parts(node.func, slope, z)
    deltas = {d: sp.Dummy(real=True) for d in slope.atoms(sp.DiracDelta)}
    marked = slope.xreplace(deltas)
    smooth = marked.xreplace(dict.fromkeys(deltas.values(), sp.S.Zero))
    total = _mean_by_parts(node.func, smooth, z)
    for delta, mark in deltas.items():
        weight = marked.diff(mark)
        if weight.free_symbols & set(deltas.values()):
            raise UnsupportedExpressionError(
                f"the derivative of {node} with respect to {x} holds a product of Dirac deltas"
            )
        total += _mean_of_delta(delta, weight, z)
    return total


def _mean_by_parts(mean: Callable[..., sp.Expr], integrand: sp.Expr, z: sp.Symbol) -> sp.Expr:
    """Return the expectation of an integrand, that of z h(z) as that of h'(z) where h is smooth.

    The derivative with respect to a spread b is E[z f'(a + b z)] = b E f''(a + b z): on the right
    nothing is lost when b is small, and b cancels against what it is divided by.
    """
    if _power(integrand, z) > 0:
        rest = (integrand / z).diff(z)
        if not rest.has(sp.DiracDelta, sp.Derivative):
            return mean(rest, z)
    return mean(integrand, z)


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


# Smooth on the real line, with derivatives among themselves.
SMOOTH_FUNCTIONS = (
    sp.exp, sp.tanh, sp.sinh, sp.cosh, sp.sech, sp.sin, sp.cos, sp.erf, sp.erfc, sp.log,
    normal_cdf, log_normal_cdf, erfcx, sigmoid, softplus, log_cosh,
)  # fmt: skip


def by_parts(node: LineAverage, primitive: sp.Expr | None = None) -> sp.Expr:
    r"""Return an expectation after one Gaussian integration by parts.

    Parameters
    ----------
    node : GaussianExpectation
        𝔼 of a smooth function of the variable z, or of one with kinks and jumps.
    primitive : Expr, optional
        A function F whose derivative is the integrand. Then the lemma is used from right to
        left, :math:`\mathbb{E}F' = \mathbb{E}[zF]`. Without it, it is used from left to right:
        every term with a factor z loses one, :math:`\mathbb{E}[zf] = \mathbb{E}f'`.

    Returns
    -------
    Expr
        Equal to `node` where both sides are finite. A jump of f contributes its height times the
        normal density there.

    Raises
    ------
    ParameterError
        If no term of the integrand has a factor z; if the derivative of `primitive` is not shown to
        be the integrand.
    AssumptionError
        If f may have a pole or a branch point on the real line, where the lemma does not hold.
    UnsupportedExpressionError
        If the integrand holds an undefined function or another average of z.

    References
    ----------
    C. Stein, *Estimation of the mean of a multivariate normal distribution*, Ann. Statist. 9
    (1981), Lemma 1.

    Examples
    --------
    >>> from giantstep.symbolic.gaussian.expectation import GaussianExpectation
    >>> z, a = sp.symbols("z a", real=True)
    >>> by_parts(GaussianExpectation(z * sp.tanh(a * z), z))
    a*E_z[1 - tanh(a*z)**2]
    >>> by_parts(GaussianExpectation(z * sp.sign(z - a), z))
    sqrt(2)*exp(-a**2/2)/sqrt(pi)
    >>> by_parts(GaussianExpectation(1 - sp.tanh(z) ** 2, z), primitive=sp.tanh(z))
    E_z[z*tanh(z)]
    """
    z, integrand = node.variable, node.integrand
    held = [f for f in integrand.atoms(AppliedUndef, Average) if z in f.free_symbols]
    if held:
        raise UnsupportedExpressionError(
            f"integration by parts needs the derivative by {z} of {held[0]}, which is not known"
        )
    if primitive is not None:
        primitive = as_expression(primitive, "primitive")
        _require_regular(primitive, z)
        slope = primitive.diff(z)
        if sp.simplify(slope - integrand) != 0:
            raise ParameterError(
                f"the derivative of primitive by {z} must be the integrand {integrand}, "
                f"but it is {slope}"
            )
        return node.func(z * primitive, z)
    terms = sp.Add.make_args(integrand.expand(**PRODUCTS_ONLY))
    with_factor = [term for term in terms if power_of(term, z)]
    others = [term for term in terms if not power_of(term, z)]
    if not with_factor:
        raise ParameterError(
            f"no term of the integrand {integrand} has a factor {z}: nothing to integrate by "
            "parts; from right to left, give an antiderivative: by_parts(primitive=…)"
        )
    _require_regular(sp.Add(*(term / z for term in with_factor)), z)
    total = node.func(sp.Add(*others), z)
    return total + sp.Add(*(_lemma(node.func, term, z) for term in with_factor))


def _lemma(mean: Callable[..., sp.Expr], term: sp.Expr, z: sp.Symbol) -> sp.Expr:
    if not (term / z).has(sp.Piecewise):
        smooth = _mean_by_parts(mean, term, z)
        if smooth != mean(term, z):
            return smooth
    # A jump of f: the derivative of E f(z + t) by t at t = 0 holds its Dirac mass as a number.
    shift = sp.Dummy("t", real=True)
    moved = mean((term / z).xreplace({z: z + shift}), z)
    return smooth_partial(moved, shift).xreplace({shift: sp.S.Zero})


def _require_regular(f: sp.Expr, z: sp.Symbol) -> None:
    singular = first_singular(f, z)
    if singular is not None:
        raise AssumptionError(
            "integration by parts needs a function without poles and branch points on the real "
            f"line, but {singular} is not known to be one"
        )


def first_singular(f: sp.Expr, z: sp.Symbol, positive: Collection[sp.Expr] = ()) -> sp.Expr | None:
    """Return a power, logarithm or tangent in `f` that may be singular on the real line."""
    for node in sp.preorder_traversal(f):
        if z not in node.free_symbols or not isinstance(node, sp.Expr):
            continue
        if node.is_Pow and not (node.exp.is_Integer and node.exp > 0):
            regular = _is_positive(node.base, z) or node.base.primitive()[1] in positive
        elif isinstance(node, sp.log):
            regular = _is_positive(node.args[0], z) or node.args[0].primitive()[1] in positive
        else:
            regular = not isinstance(node, sp.tan)
        if not regular:
            return node
    return None


def _is_positive(expr: sp.Expr, z: sp.Symbol) -> bool:
    """Whether an expression is positive where the arguments of its functions are real.

    Coefficients such as sqrt(1 - q) are real wherever the expectation has a meaning.
    """
    marks: dict[sp.Expr, sp.Expr] = {}

    def marked(node: sp.Expr) -> sp.Expr:
        if isinstance(node, SMOOTH_FUNCTIONS):
            return marks.setdefault(node, node.func(sp.Dummy(real=True)))
        return node.func(*map(marked, node.args)) if node.args else node

    result = marked(expr)
    # SymPy knows no sign of a sum of terms like these; each one has its own.
    terms = sp.Add.make_args(result)
    positive = all(_has_positive_factors(term) for term in terms) or bool(result.is_positive)
    return positive or (expr.is_Add and is_positive_sum(expr, z))


def _has_positive_factors(term: sp.Expr) -> bool:
    return all(
        factor.is_positive or isinstance(factor.as_base_exp()[0], sp.erfc | erfcx)
        for factor in sp.Mul.make_args(term)
    )


def power_of(term: sp.Expr, z: sp.Symbol) -> int:
    """The n of the factor zⁿ of a product."""
    powers = (f.as_base_exp() for f in sp.Mul.make_args(term))
    return sum(int(n) for base, n in powers if base == z and n.is_Integer and n > 0)
