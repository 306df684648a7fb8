r"""Functions of parameters as variables of their own, with what is known of their zeros.

A condition on parameters such as :math:`a\,\mathbb{E}[z \tanh(az)] = b\,e^{-a^2/2}` is a polynomial
in the parameters and in functions of them. Each function becomes a real symbol, so that algebra
goes on as before; what holds for all values of the symbols holds for those that the functions take.
Of a symbol it is known whether the function has one sign:

- exponentials, roots of positive polynomials, :math:`\operatorname{erfc}`, averages of positive
  functions do not vanish; a factor :math:`e^{cm}` that all terms have in common is left out;
- :math:`f(s)` and :math:`\mathbb{E}[z^k f(sz)^n \cdots]` with f odd and increasing, such as tanh,
  erf, atan, and an even integrand, are a power of s times a positive function of the parameters,
  which stands for them (Stein: :math:`\mathbb{E}[z\tanh(sz)] = s\,\mathbb{E}[1 - \tanh^2(sz)]`).

Relations between the symbols that are not polynomial, as of exp(a) with sin(a), are not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ...errors import UnsupportedExpressionError
from ...pages import shorten
from ..expressions._singularities import affine_slope
from ..expressions.activations import z as _z
from ..expressions.averages import Average
from ..expressions.functions import relu, sigmoid, softplus
from ..expressions.parser import parse_expression
from ..expressions.textbook_forms import with_complementary_errors
from ..gaussian.expectation import GaussianExpectation
from ..hermite.expansion import read_number

Values = Mapping[sp.Symbol, sp.Expr]

_ODD_AND_INCREASING = (sp.tanh, sp.erf, sp.atan, sp.sinh, sp.asinh)
_POSITIVE = (sp.exp, sp.cosh, sp.sech, sigmoid, softplus)
_INCREASING = (*_ODD_AND_INCREASING, sp.exp, sigmoid, softplus)
_NONNEGATIVE = (sp.Abs, relu, sp.Heaviside)


@dataclass(frozen=True)
class ParameterFunction:
    """A function of parameters that a symbol stands for.

    `symbol`: real, with the sign that the function has. `value`: a multiple of the function.
    `divisor`: polynomial s: the function is value/s, continued to where s vanishes.
    """

    symbol: sp.Symbol
    value: sp.Expr
    divisor: sp.Expr = sp.S.One

    @property
    def written(self) -> sp.Expr:
        """The function as an expression."""
        return self.value / self.divisor

    def at(self, values: Values) -> sp.Expr:
        """Return the function with numbers, or other expressions, for parameters.

        Examples
        --------
        >>> a, b, z = sp.symbols("a b z", real=True)
        >>> _, (slope,) = read_condition(GaussianExpectation(z * sp.tanh(a * z), z) - b, (a, b))
        >>> slope.at({a: sp.S.Zero}), slope.at({a: sp.S(2)})
        (1, E_z[z*tanh(2*z)]/2)
        """
        divisor = sp.expand(self.divisor.xreplace(dict(values)))
        if divisor != 0:
            return self.value.xreplace(dict(values)).doit() / divisor
        if not isinstance(self.value, Average):
            return _slope_at(type(self.value), sp.S.Zero)
        z = self.value.variable
        factors = []
        for base, n, slope in _factors(self.value.args[0], z):
            if not slope.free_symbols:
                factors.append(base**n)
                continue
            scale = slope.xreplace(dict(values))
            if sp.expand(scale) == 0:
                offset = base.args[0].xreplace({**values, z: sp.S.Zero})
                factors.append((_slope_at(type(base), offset) * z) ** n)
            else:
                factors.append(base.xreplace(dict(values)) ** n / scale**n)
        return GaussianExpectation(sp.Mul(*factors), z).doit()


def _slope_at(function: type, place: sp.Expr) -> sp.Expr:
    t = sp.Dummy()
    return function(t).diff(t).subs(t, place)


def sign_of_average(node: sp.Expr) -> tuple[int, sp.Expr]:
    r"""Return 1 and s if an expectation is s times a positive number by its integrand, else 0, 1.

    Examples
    --------
    >>> a, z = sp.symbols("a z", real=True)
    >>> sign_of_average(GaussianExpectation(z**3 * sp.tanh(a * z), z))
    (1, a)
    >>> sign_of_average(GaussianExpectation(z**2 * sp.tanh(z), z))
    (0, 1)
    """
    odd, divisor = 0, sp.S.One
    for _, n, slope in _factors(node.args[0], node.variable):
        if slope is sp.nan:
            return 0, sp.S.One
        if slope != 0:
            odd += n
            divisor *= sp.S.One if slope.is_positive else slope**n
    return (1, divisor) if odd % 2 == 0 else (0, sp.S.One)


def _factors(integrand: sp.Expr, z: sp.Symbol) -> list[tuple[sp.Expr, int, sp.Expr]]:
    """Return factors, powers, and the slope of the argument of odd increasing ones.

    The slope is 0 for a positive factor, nan for one of which nothing is known.
    """
    result = []
    parts = sp.Mul.make_args(integrand)
    # E[z f(sz + b)] = s E[f'(sz + b)]
    anywhere = len(parts) == 2 and z in parts
    for factor in parts:
        base, exponent = factor.as_base_exp()
        if isinstance(factor, sp.exp):
            base, exponent = factor, sp.S.One
        if not exponent.is_Integer or exponent < 0:
            result.append((factor, 1, sp.nan))
        else:
            result.append((base, int(exponent), _slope(base, z, anywhere and exponent == 1)))
    return result


def _slope(base: sp.Expr, z: sp.Symbol, anywhere: bool) -> sp.Expr:
    if base == z:
        return sp.S.One
    if anywhere and isinstance(base, _INCREASING):
        return affine_slope(base.args[0], z) or sp.nan
    if isinstance(base, _POSITIVE) and base.args[0].is_real:
        return sp.S.Zero
    if base.is_Add and any(base == 1 - t**2 for t in base.atoms(sp.tanh)):
        return sp.S.Zero
    slope = affine_slope(base.args[0], z) if base.args else None
    if slope is None:
        return sp.nan
    if isinstance(base, _NONNEGATIVE):
        return sp.S.Zero if slope.is_nonzero else sp.nan
    centred = anywhere or base.args[0].xreplace({z: sp.S.Zero}) == 0
    if isinstance(base, sp.sign) and centred and slope.is_positive:
        return slope
    return slope if isinstance(base, _ODD_AND_INCREASING) and centred else sp.nan


def numerator(number: sp.Expr) -> sp.Expr:
    """Return what has the zeros of a quotient of functions of parameters."""
    return sp.expand(sp.together(number).as_numer_denom()[0])


def read_condition(
    condition: sp.Expr,
    parameters: Sequence[sp.Symbol],
    known: Sequence[ParameterFunction] = (),
) -> tuple[sp.Expr, tuple[ParameterFunction, ...]]:
    r"""Return a polynomial that vanishes where a function of parameters does.

    `known`: symbols that there are already. The result: the polynomial, and all symbols beside the
    parameters, the known ones first. Raises UnsupportedExpressionError if a function of the
    parameters is not known to be real, such as sqrt(a).

    Examples
    --------
    >>> a, b = sp.symbols("a b", real=True)
    >>> polynomial, functions = read_condition(sp.exp(-(a**2) / 2) * (b - sp.exp(a**2)), (a, b))
    >>> polynomial, [f.written for f in functions]
    (b - exp(a**2), [exp(a**2)])
    """
    reader = _Reader(parameters, known)
    expression = numerator(condition)
    if expression.is_polynomial(*reader.names):
        return expression, tuple(known)
    return reader.polynomial(expression), tuple(reader.functions)


class _Reader:
    def __init__(self, parameters: Sequence[sp.Symbol], known: Sequence[ParameterFunction]) -> None:
        self.parameters = set(parameters)
        self.functions = list(known)

    @property
    def names(self) -> list[sp.Symbol]:
        return [*self.parameters, *(f.symbol for f in self.functions)]

    def polynomial(self, expression: sp.Expr) -> sp.Expr:
        expression = with_complementary_errors(expression.replace(_is_average_of_sum, _in_parts))
        expression = sp.expand(expression.replace(_is_distribution, self._named))
        read = [self._term(term) for term in sp.Add.make_args(expression)]
        weights = self._exponentials([exponents for _, exponents in read])
        return sp.Add(
            *(product * weight for (product, _), weight in zip(read, weights, strict=True))
        )

    def _term(self, term: sp.Expr) -> tuple[sp.Expr, dict[sp.Expr, sp.Expr]]:
        """Return a product of symbols and numbers, and {m: c} of a factor exp(Σ c m)."""
        product = sp.S.One
        exponents: dict[sp.Expr, sp.Expr] = {}
        for factor in sp.Mul.make_args(term):
            if not factor.free_symbols & self.parameters:
                product *= factor
            elif isinstance(factor, sp.exp):
                for part in sp.Add.make_args(sp.expand(factor.exp)):
                    c, m = part.as_independent(*self.parameters, as_Add=False)
                    if m == 1:
                        product *= sp.exp(c)
                    else:
                        exponents[m] = exponents.get(m, sp.S.Zero) + c
            else:
                product *= self._factor(*factor.as_base_exp())
        return product, exponents

    def _factor(self, base: sp.Expr, power: sp.Expr) -> sp.Expr:
        if power.is_Integer and power > 0:
            return base**power if base.is_Symbol else self._named(base) ** power
        if power.is_Rational and power > 0:
            if base.is_nonnegative:
                return self._named(base ** sp.Rational(1, power.q)) ** power.p
            raise _not_real(base**power)
        return self._named(base**power)

    def _exponentials(self, exponents: Sequence[Mapping[sp.Expr, sp.Expr]]) -> list[sp.Expr]:
        """Return the exponentials of the terms, divided by what all of them have."""
        weights = [sp.S.One] * len(exponents)
        for m in dict.fromkeys(m for part in exponents for m in part):
            powers = [part.get(m, sp.S.Zero) for part in exponents]
            if not m.is_extended_real:
                raise _not_real(sp.exp(m))
            if all(c.is_Rational for c in powers):
                powers = [c - min(powers) for c in powers]
                step = sp.gcd_list(powers) if any(powers) else sp.S.One
                for known in self.functions:
                    if isinstance(known.value, sp.exp):
                        ratio = step * m / known.value.exp
                        step = step / ratio if ratio.is_Integer and ratio > 0 else step
                powers = [c / step for c in powers]
            elif len(set(powers)) == 1:
                continue
            else:
                step = sp.S.One
            for i, c in enumerate(powers):
                if c.is_Integer:
                    weights[i] *= self._named(sp.exp(step * m)) ** c if c else sp.S.One
                else:
                    weights[i] *= self._named(sp.exp(c * m))
        return weights

    def _named(self, value: sp.Expr) -> sp.Expr:
        """Return a symbol for a function, times its divisor."""
        for known in self.functions:
            if known.value == value:
                return known.symbol * known.divisor
        sign, divisor = (1 if value.is_positive else 0), sp.S.One
        if isinstance(value, Average):
            sign, divisor = sign_of_average(value)
        elif isinstance(value, _ODD_AND_INCREASING):
            argument = value.args[0]
            if argument.is_polynomial(*self.parameters):
                sign, divisor = 1, argument
        elif _is_distribution(value) or isinstance(value, sp.erfc):
            sign = 1
        if not sign and not value.is_extended_real and not isinstance(value, Average):
            raise _not_real(value)
        kind = {"positive": True} if sign else {"real": True}
        function = ParameterFunction(sp.Symbol(str(value / divisor), **kind), value, divisor)
        self.functions.append(function)
        return function.symbol * divisor


def _is_average_of_sum(node: sp.Expr) -> bool:
    return isinstance(node, GaussianExpectation) and node.args[0].is_Add


def _in_parts(node: sp.Expr) -> sp.Expr:
    return sp.Add(*(GaussianExpectation(term, node.variable) for term in node.args[0].args))


def _is_distribution(value: sp.Expr) -> bool:
    """Whether it is 1 + erf(x), which is positive."""
    return bool(value.is_Add and isinstance(value - 1, sp.erf))


def _not_real(value: sp.Expr) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"{shorten(str(value), 90)} is not known to be real for all values of its parameters; "
        "declare their signs, as in parameters={'a': 'positive'}, or name it as a parameter of its "
        "own"
    )


_EXPECTATION = re.compile(r"E_z\[([^\[\]]*)\]")


def read_open_number(text: Any, parameters: Sequence[sp.Symbol] = ()) -> sp.Expr:
    """Read an exact number that may hold expectations, and parameters.

    Examples
    --------
    >>> read_open_number("2*E_z[z*tanh(z)]") / read_open_number("E_z[z*tanh(z)]")
    2
    """
    if not isinstance(text, str) or ("[" not in text and not parameters):
        return read_number(text)
    rule: dict[sp.Symbol, sp.Expr] = {}

    def named(match: re.Match[str]) -> str:
        symbol = sp.Symbol(f"expectation{len(rule)}", real=True)
        rule[symbol] = GaussianExpectation(parse_expression(match[1], [_z, *parameters]), _z)
        return f"({symbol.name})"

    written = _EXPECTATION.sub(named, text)
    return parse_expression(written, [*rule, *parameters], argument="number").xreplace(rule)
