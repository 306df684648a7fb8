r"""Facts about the law of a label that decide generative exponents where moments do not.

- A label with two values: every transform T(y) is affine in y.
- A label that is unbounded above on one half-line and bounded above on the other (or below): the
  indicator of y > M is carried by one half-line for large M, so that E[z 1{y > M}] ≠ 0.
- A label of one direction that depends on :math:`|z|\varphi(z)` alone: :math:`\mathrm{He}_2\varphi
  = -(z\varphi)'`, so that :math:`\mathbb{E}[T(y)\mathrm{He}_2] = -\int T(y)\,d(z\varphi)` is the
  integral of a function of zφ along a closed path, on either half-line: 0 for every T.

The functions here take expressions; what they return is proven, None means not decided. All three
are derived here; the third gives z² exp(-z²) the exponent 4 of Damian, Pillaud-Vivien, Lee, Bruna
(arXiv 2403.05529).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import sympy as sp

from ...errors import GiantstepError
from .._singularities import affine_slope, expanded
from ..constant_enclosures import enclosed_sign
from ..functions import relu
from ..regularity import Parity, analyse, reflectable
from ..targets import Target
from ..targets import target as read_target
from ..zero_test import is_exactly_zero

_SIGN_BITS = 200
_Growth = tuple[sp.Expr, sp.Expr, sp.Expr]
_POWERS_TAKEN = (sp.sign, sp.Abs, relu, sp.Heaviside, sp.exp, sp.sin, sp.cos)


def has_two_values(target: Target) -> bool:
    """Whether a label takes exactly two values, as far as can be seen.

    Examples
    --------
    >>> has_two_values(read_target("3 + sign(x1*x2)/2")), has_two_values(read_target("tanh(x1)"))
    (True, False)
    >>> has_two_values(read_target("step(x1)*step(x2)"))
    True
    """
    label = _in_signs(target.expr)
    signs = {atom: sp.Dummy() for atom in label.atoms(sp.sign)}
    form = label.xreplace(signs)
    if not signs or form.has(*target.variables):
        return False
    names = list(signs.values())
    values = sp.Poly(form, *names, domain=sp.EXRAW)
    square = sp.Poly(_in_signs(expanded(label**2)).xreplace(signs), *names, domain=sp.EXRAW)
    zero = (0,) * len(names)
    slopes = {m: c for m, c in values.terms() if m != zero and c != 0}
    if not slopes:
        return False
    # y² = a y + b with numbers a and b.
    monomial, slope = next(iter(slopes.items()))
    ratio = square.coeff_monomial(monomial) / slope
    return all(
        sp.expand(square.coeff_monomial(m) - ratio * values.coeff_monomial(m)) == 0
        for m in {*square.monoms(), *values.monoms()} - {zero}
    )


def label_power(target: Target, power: int) -> Target | None:
    """Return f^p of a function that is no polynomial, if rules keep it a sum of products.

    Examples
    --------
    >>> print(label_power(read_target("sign(x1) + abs(x1)*x2"), 2))
    x1**2*x2**2 + 2*x1*x2 + 1
    """
    functions = target.expr.atoms(sp.Function)
    if not all(isinstance(function, _POWERS_TAKEN) for function in functions):
        return None
    label = _in_signs(target.expr)
    result = _in_signs(expanded(label**power))
    try:
        return read_target(result, target.variables)
    except GiantstepError:
        return None


def _in_signs(expr: sp.Expr) -> sp.Expr:
    """Write relu, steps and moduli by signs, whose squares are 1 almost everywhere."""
    expr = expr.replace(relu, lambda u: u * (1 + sp.sign(u)) / 2)
    expr = expr.replace(sp.Heaviside, lambda u, *_: (1 + sp.sign(u)) / 2)
    expr = expanded(expr.replace(sp.Abs, lambda u: u * sp.sign(u)))
    return expr.replace(
        lambda node: node.is_Pow and isinstance(node.base, sp.sign) and node.exp.is_Integer,
        lambda node: node.base ** (node.exp % 2),
    )


def own_part(target: Target, variable: sp.Symbol) -> sp.Expr | None:
    """Return g(x_i) if f = g(x_i) + a function of the other coordinates, else None.

    Given these others, the label is then g up to a constant.
    """
    _, own = expanded(target.expr).as_independent(variable, as_Add=True)
    return own if own.free_symbols == {variable} else None


def one_sided_infinity(expr: sp.Expr, x: sp.Symbol) -> str | None:
    """Return the transform with a first-order signal if one half-line alone has the largest labels.

    Parameters
    ----------
    expr : Expr
        Function of one real variable.
    x : Symbol

    Returns
    -------
    str or None
        The transform, and on which side it lives.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> one_sided_infinity(sp.erf(x) - 2 * x / sp.sqrt(3 * sp.pi), x)
    '1{y > M} for large M, carried by x < 0'
    >>> one_sided_infinity(sp.cos(x) + x**2, x) is None
    True
    """
    form = expanded(reflectable(expr))
    ends = {side: _end(form, x, side) for side in (1, -1)}
    if None in ends.values():
        return None
    for limit, relation in ((_End.PLUS, ">"), (_End.MINUS, "<")):
        sides = [side for side, end in ends.items() if end is limit]
        if len(sides) == 1:
            place = ">" if sides[0] > 0 else "<"
            sign = "" if limit is _End.PLUS else "-"
            return f"1{{y {relation} {sign}M}} for large M, carried by {x} {place} 0"
    return None


class _End(enum.Enum):
    """What a function does far out."""

    PLUS = "tends to infinity"
    MINUS = "tends to minus infinity"
    BOUNDED = "stays bounded"


@dataclass
class _Far:
    """A function far out, up to terms that tend to 0.

    Attributes
    ----------
    powers : dict of int to Expr
        Coefficients of a polynomial.
    unknown : int
        Degree of what is bounded by a power but not known; -1 if there is none.
    growing : dict
        {(coefficients of z² and z in the exponent, n): coefficient} of growing exponentials.
    """

    powers: dict[int, sp.Expr] = field(default_factory=dict)
    unknown: int = -1
    growing: dict[_Growth, sp.Expr] = field(default_factory=dict)


def _end(form: sp.Expr, x: sp.Symbol, side: int) -> _End | None:
    """Return what a locally bounded function does at one end; None if that is not known."""
    far = _Far()
    for term in sp.Add.make_args(form):
        if not _add_term(far, term, x, side):
            return None
    try:
        if far.growing:
            keys = sorted(far.growing, key=lambda key: tuple(map(sp.default_sort_key, key)))
            largest = [key for key in keys if all(_not_smaller(key, other) for other in keys)]
            if len(largest) != 1:
                return None
            return _of_sign(far.growing[largest[0]])
        for n in sorted(far.powers, reverse=True):
            if n <= max(far.unknown, 0):
                break
            coefficient = sp.expand(far.powers[n])
            if not is_exactly_zero(coefficient, "a coefficient far out"):
                return _of_sign(coefficient)
        return _End.BOUNDED if far.unknown <= 0 else None
    except GiantstepError:
        return None


def _of_sign(value: sp.Expr) -> _End | None:
    sign = enclosed_sign(sp.expand(value), _SIGN_BITS)
    return {1: _End.PLUS, -1: _End.MINUS}.get(sign)


def _not_smaller(first: _Growth, second: _Growth) -> bool:
    for a, b in zip(first, second, strict=True):
        if a != b:
            return bool((a - b).is_positive)
    return True


def _add_term(far: _Far, term: sp.Expr, x: sp.Symbol, side: int) -> bool:
    """Add one product; False if a factor of it is not known far out."""
    constant, rest = term.as_independent(x, as_Add=False)
    product = {0: constant}
    known = True
    exponent: list[sp.Expr] = []
    for factor in sp.Mul.make_args(rest):
        base, n = factor.as_base_exp()
        if isinstance(factor, sp.exp):
            exponent.append(factor.exp)
            continue
        if not (n.is_Integer and n > 0):
            return False
        for _ in range(int(n)):
            polynomial = _polynomial_far(base, x, side)
            if polynomial is not None:
                product = _multiplied(product, polynomial)
            elif isinstance(base, sp.sin | sp.cos | sp.atan):
                known = False
            elif base.has(x):
                return False
    degree = max(product)
    if exponent:
        total = sp.Poly(sp.Add(*exponent), x) if sp.Add(*exponent).is_polynomial(x) else None
        if total is None or total.degree() > 2:
            return False
        quadratic, linear = total.coeff_monomial(x**2), side * total.coeff_monomial(x)
        leading = next((c for c in (quadratic, linear) if c != 0), sp.S.Zero)
        if leading.is_negative:
            return True
        if not leading.is_positive or not known:
            return False
        key = (quadratic, linear, sp.Integer(degree))
        value = product[degree] * sp.exp(total.coeff_monomial(1)) * side**degree
        far.growing[key] = far.growing.get(key, sp.S.Zero) + value
        return True
    if not known:
        far.unknown = max(far.unknown, degree)
        return True
    for n, c in product.items():
        far.powers[n] = far.powers.get(n, sp.S.Zero) + c * side**n
    return True


def _multiplied(first: dict[int, sp.Expr], second: dict[int, sp.Expr]) -> dict[int, sp.Expr]:
    product: dict[int, sp.Expr] = {}
    for m, a in first.items():
        for n, b in second.items():
            product[m + n] = product.get(m + n, sp.S.Zero) + a * b
    return product


def _polynomial_far(base: sp.Expr, x: sp.Symbol, side: int) -> dict[int, sp.Expr] | None:
    """Return the polynomial that a factor is far out, up to what falls exponentially."""
    if base == x:
        return {1: sp.S.One}
    if isinstance(base, sp.log):  # log(c cosh u) is |u| + log(c/2) far out; from softplus
        number, cosine = base.args[0].as_independent(x, as_Add=False)
        if not isinstance(cosine, sp.cosh):
            return None
        argument, offset = cosine.args[0], sp.log(number / 2)
    elif isinstance(base, sp.Abs | sp.sign | sp.tanh | sp.erf):
        argument, offset = base.args[0], sp.S.Zero
    else:
        return None
    slope = affine_slope(argument, x)
    if slope is None or not (slope.is_positive or slope.is_negative):
        return None
    sign = side if slope.is_positive else -side
    if isinstance(base, sp.sign | sp.tanh | sp.erf):
        return {0: sp.Integer(sign)}
    return {1: sign * slope, 0: sign * argument.subs(x, 0) + offset}


def is_blind_to_order_two(expr: sp.Expr, x: sp.Symbol) -> bool:
    """Whether a label is a function of |x| φ(x) alone, so that no T(y) has a term He_2.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> is_blind_to_order_two(x**2 * sp.exp(-(x**2)), x)
    True
    >>> is_blind_to_order_two(x**2 * sp.exp(-(x**2) / 2), x)
    False
    """
    if analyse(expr, x).parity is not Parity.EVEN:
        return False
    for term in sp.Add.make_args(expanded(expr)):
        _, rest = term.as_independent(x, as_Add=False)
        power, exponent = sp.S.Zero, sp.S.Zero
        for factor in [] if rest == 1 else sp.Mul.make_args(rest):
            base, n = factor.as_base_exp()
            if isinstance(factor, sp.exp):
                exponent += factor.exp
            elif base in (x, sp.Abs(x)) and n.is_positive:
                power += n
            else:
                return False
        if sp.expand(exponent + power * x**2 / 2) != 0:
            return False
    return True
