r"""Polynomial expressions as elements of SymPy's sparse rings over exact fields, and variables.

An expression is walked once and built up by ring arithmetic. SymPy's own ``Poly`` and ``expand``
work on trees instead, which takes ten times as long for a thousand terms, and ``extension=True``
builds needlessly large fields (:mod:`.exact.fields` does not).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import sympy as sp
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyElement, PolyRing

from ...errors import ParameterError, UnsupportedExpressionError
from ..expressions.exact_numbers import require_exact
from .fields import exact_field, formal_field

MAX_DEGREE = 512
"""Highest power of a factor."""
# Multiplying out more than this takes many seconds.
_MOST_TERMS = 100_000
_MOST_PRODUCTS = 5_000_000


def polynomial_element(
    expression: sp.Expr, variables: Sequence[sp.Symbol], parameters: Sequence[sp.Symbol] = ()
) -> PolyElement:
    """Return a polynomial expression as a ring element over the smallest field of its numbers.

    Parameters
    ----------
    expression : Expr
        Polynomial in `variables` with exact real coefficients; need not be multiplied out.
    variables : sequence of Symbol
        The variables of the ring, in this order.
    parameters : sequence of Symbol
        Symbols that coefficients are functions of; in the field they are generators, and so are
        functions of them that are not rational.

    Raises
    ------
    ParameterError
        If it holds floating-point numbers, or symbols that are not among the variables; the
        message tells if only their assumptions differ.
    UnsupportedExpressionError
        If it is not a polynomial, has a coefficient that :func:`.exact_field` refuses, or too
        many terms.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> polynomial_element((x + y) ** 2 / 3, [x, y])
    1/3*x**2 + 2/3*x*y + 1/3*y**2
    """
    checked = checked_variables(variables)
    positions = {symbol: i for i, symbol in enumerate(checked)}
    terms = _rational_terms(expression, positions)
    if terms is not None:
        element = PolyRing(checked, sp.QQ, lex).zero
        element.update(terms)
        return element
    expression = require_exact(expression, "expression")
    check_symbols(expression, (*checked, *parameters))
    numbers: dict[sp.Expr, None] = {}
    if not _collect(expression, positions, numbers):
        numbers[expression] = None
    domain, elements = (
        formal_field(numbers, names=parameters) if parameters else exact_field(numbers)
    )
    ring = PolyRing(checked, domain, lex)
    return _Builder(ring, positions, dict(zip(numbers, elements, strict=True))).build(expression)


def element_from_terms(
    terms: Mapping[tuple[int, ...], sp.Expr], variables: Sequence[sp.Symbol]
) -> PolyElement:
    """Return Σ c_α x^α from {α: c_α} with exact real numbers c_α.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> element_from_terms({(2, 0): sp.sqrt(2)}, [x, y]).as_expr()
    sqrt(2)*x**2
    """
    domain, elements = exact_field(terms.values())
    ring = PolyRing(checked_variables(variables), domain, lex)
    return ring.from_dict(dict(zip(terms, elements, strict=True)))


def checked_variables(variables: Sequence[sp.Symbol]) -> tuple[sp.Symbol, ...]:
    """Return the variables as a tuple if they are symbols of different names for real numbers.

    Examples
    --------
    >>> checked_variables([sp.Symbol("x", positive=True)])
    Traceback (most recent call last):
        ...
    giantstep.errors.ParameterError: the variable x has assumptions that a Gaussian variable does \
not meet; declare it with real=True or with none
    """
    if isinstance(variables, sp.Symbol | str) or not isinstance(variables, Sequence):
        raise ParameterError(f"variables must be a sequence of symbols, got {variables!r}")
    for variable in variables:
        if not isinstance(variable, sp.Symbol):
            raise ParameterError(f"variables must be SymPy symbols, got {variable!r}")
        if variable.assumptions0 not in (_REAL.assumptions0, _PLAIN.assumptions0):
            raise ParameterError(
                f"the variable {variable} has assumptions that a Gaussian variable does not meet; "
                "declare it with real=True or with none"
            )
    if not variables:
        raise ParameterError("variables is empty; name at least one Gaussian variable")
    names = [variable.name for variable in variables]
    if len(set(names)) < len(names):
        raise ParameterError(f"variables must have different names, got {', '.join(names)}")
    return tuple(variables)


def check_symbols(expression: sp.Expr, variables: Sequence[sp.Symbol]) -> None:
    """Refuse an expression that depends on anything but the variables."""
    others = sorted(expression.free_symbols - set(variables), key=str)
    if not others:
        return
    names = {variable.name for variable in variables}
    same = [symbol.name for symbol in others if symbol.name in names]
    if same:
        raise ParameterError(
            f"{same[0]} in the expression is another symbol than the variable {same[0]}: same "
            "name, different assumptions; use one symbol for both"
        )
    raise ParameterError(
        f"the expression depends on {', '.join(map(str, others))}, which is not among the "
        f"variables {', '.join(sorted(names)) or '(none)'}; add it there or give it a value"
    )


_REAL, _PLAIN = sp.Symbol("x", real=True), sp.Symbol("x")


def _rational_terms(
    expression: object, positions: Mapping[sp.Symbol, int]
) -> dict[tuple[int, ...], Any] | None:
    """Return {α: c} if the expression is a sum of monomials with rational coefficients.

    None for anything else. The usual case in one pass: the general way walks the tree four times.
    """
    if not isinstance(expression, sp.Expr):
        return None
    size, one, rational = len(positions), sp.QQ.one, sp.QQ.from_sympy
    result: dict[tuple[int, ...], Any] = {}
    for term in expression.args if expression.is_Add else (expression,):
        exponents, coefficient = [0] * size, one
        for factor in term.args if term.is_Mul else (term,):
            if factor.is_Rational:
                number = rational(factor)
                coefficient = number if coefficient is one else coefficient * number
                continue
            # Asked in this order, powers need no hash, which SymPy would compute.
            base, power = factor.args if factor.is_Pow else (factor, sp.S.One)
            position = positions.get(base) if base.is_Symbol else None
            if position is None or not (power.is_Integer and 0 <= power.p <= MAX_DEGREE):
                return None
            exponents[position] += power.p
        monomial = tuple(exponents)
        result[monomial] = result[monomial] + coefficient if monomial in result else coefficient
    return {monomial: c for monomial, c in result.items() if c}


def _collect(
    node: sp.Expr, positions: Mapping[sp.Symbol, int], numbers: dict[sp.Expr, None]
) -> bool:
    """Tell whether a part has variables; gather the largest parts beside it that have none.

    Refuses what is no polynomial.
    """
    if not node.args:
        return node in positions
    if node.is_Add or node.is_Mul:
        constant = [part for part in node.args if not _collect(part, positions, numbers)]
        if len(constant) == len(node.args):
            return False
        numbers.update(dict.fromkeys(constant))
        return True
    if not node.free_symbols & positions.keys():
        return False
    if not (node.is_Pow and node.exp.is_Integer and node.exp.p >= 0):
        raise UnsupportedExpressionError(
            f"{str(node)[:60]} is not a polynomial in {', '.join(map(str, positions))}; Hermite "
            "expansions are exact for polynomials only"
        )
    if node.exp.p > MAX_DEGREE:
        raise UnsupportedExpressionError(
            f"the power {node.exp} is too high; use powers up to {MAX_DEGREE}"
        )
    return _collect(node.base, positions, numbers)


class _Builder:
    """Ring arithmetic along the tree of an expression."""

    def __init__(
        self, ring: Any, positions: Mapping[sp.Symbol, int], numbers: Mapping[sp.Expr, Any]
    ) -> None:
        self.ring = ring
        self.positions = positions
        self.numbers = numbers

    def build(self, node: sp.Expr) -> PolyElement:
        if node.is_Add and node not in self.numbers:
            return self.sum(node)
        term = self.term(node)
        if term is not None:
            return self.ring.from_dict(dict([term]))
        if node.is_Pow:
            return self.power(self.build(node.base), int(node.exp))
        first, *others = sorted((self.build(part) for part in node.args), key=len)
        for other in others:
            if len(first) * len(other) > _MOST_PRODUCTS:
                raise _too_long(node)
            first = first * other
        return first

    def sum(self, node: sp.Add) -> PolyElement:
        total = self.ring.zero
        zero = self.ring.domain.zero
        for part in node.args:
            term = self.term(part)
            for monomial, c in [term] if term is not None else self.build(part).items():
                total[monomial] = total.get(monomial, zero) + c
        total.strip_zero()
        return total

    def term(self, node: sp.Expr) -> tuple[tuple[int, ...], Any] | None:
        """Return the monomial and the coefficient of a single term, or None."""
        exponents, coefficient = [0] * len(self.positions), self.ring.domain.one
        product = node.is_Mul and node not in self.numbers
        for factor in node.args if product else (node,):
            if factor in self.numbers:
                coefficient *= self.numbers[factor]
                continue
            base, power = (factor.base, int(factor.exp)) if factor.is_Pow else (factor, 1)
            position = self.positions.get(base)
            if position is None:
                return None
            exponents[position] += power
        return tuple(exponents), coefficient

    def power(self, base: PolyElement, n: int) -> PolyElement:
        if n == 0:
            return self.ring.one
        degree = max(map(sum, base), default=0) * n
        variables = sum(any(column) for column in zip(*base, strict=True))
        terms = min(
            math.comb(len(base) + n - 1, n) if base else 1, math.comb(variables + degree, variables)
        )
        if terms > _MOST_TERMS:
            raise _too_long(base.as_expr() ** n if len(base) < 9 else f"a power {n}")
        return base**n


def _too_long(node: Any) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"{str(node)[:60]} has too many terms when multiplied out; lower the degree or the number "
        "of variables"
    )
