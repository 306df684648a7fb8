r"""Polynomials in several Gaussian variables by their Hermite expansion, as rings, text and data.

:math:`f = \sum_\alpha c_\alpha \mathrm{He}_\alpha(x)` with :math:`\mathrm{He}_\alpha = \prod_i
\mathrm{He}_{\alpha_i}(x_i)`, probabilists' polynomials, :math:`c_\alpha = \mu_\alpha/\alpha!` and
:math:`\mu_\alpha = \mathbb{E}[f\,\mathrm{He}_\alpha] = \mathbb{E}[\partial^\alpha f]`. The
expansion is held as its symbol :math:`F(\xi) = \mathbb{E}f(x+\xi) = \sum_\alpha c_\alpha
\xi^\alpha`, an element of a sparse polynomial ring over an exact field, in which every operation
here is exact and zero is decided (:mod:`.exact.fields` names the one exception). In text He_α is
written ``He(2, x1)*x2``, as the parser reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, overload

import sympy as sp
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyElement, PolyRing

from ...errors import ParameterError, UnsupportedExpressionError
from ...pages import Typeset
from ..exact.fields import common_field, exact_field
from ..exact.polynomial_elements import checked_variables, element_from_terms, polynomial_element
from ..expressions.parser import parse_expression
from ..gaussian.hermite_polynomials import (
    checked_order,
    he_coefficients_from_moments,
    index_factorial,
)
from . import tensors as hermite_tensors
from .heat_flow import checked_element, function_of, symbol_of

_MOST_SHOWN = 8
_RATIONAL = re.compile(r"(-?[0-9]{1,4000})(?:/([0-9]{1,4000}))?")


def ordered_multi_indices(symbol: PolyElement) -> list[tuple[int, ...]]:
    """Return the multi-indices of all terms, by degree and then by the first variables.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> ordered_multi_indices(y**2 + x * y + y)
    [(0, 1), (1, 1), (0, 2)]
    """
    return sorted(symbol, key=lambda m: (sum(m), [-n for n in m]))


def expansion_text(symbol: PolyElement) -> str:
    """Return the first terms, with an ellipsis if there are more.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> expansion_text(3 * x**2 * y - x / 2 + 1)
    '1 - 1/2*x + 3*He(2, x)*y'
    """
    return _sum(symbol, _term, "...", full=False)


def expansion_latex(symbol: PolyElement, *, full: bool = False) -> str:
    r"""Return LaTeX; only the first terms and an ellipsis unless `full`.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> print(expansion_latex(x**2 * y - x))
    -x + \mathrm{He}_{2}(x) y
    """
    return _sum(symbol, _latex_term, r"\dots", full=full)


def expansion_to_dict(symbol: PolyElement) -> dict[str, Any]:
    """Return names and kinds of the variables, and He-coefficients as exact texts.

    Raises UnsupportedExpressionError if a coefficient is a ``CRootOf``, which the parser of
    expressions does not read.

    Examples
    --------
    >>> ring, x = sp.ring("x", sp.QQ)
    >>> expansion_to_dict(x**2 / 2)
    {'variables': [{'name': 'x', 'real': False}], 'he_coefficients': {'2': '1/2'}}
    """
    ring = symbol.ring
    texts = {}
    for alpha in ordered_multi_indices(symbol):
        value = ring.domain.to_sympy(symbol[alpha])
        if value.has(sp.CRootOf):
            raise UnsupportedExpressionError(
                f"the coefficient {value} has no text that reads back; write it by roots"
            )
        texts[",".join(map(str, alpha))] = str(value)
    variables = [{"name": x.name, "real": x.is_real is True} for x in ring.symbols]
    return {"variables": variables, "he_coefficients": texts}


def expansion_from_dict(
    content: Mapping[str, Any],
) -> tuple[dict[tuple[int, ...], sp.Expr], list[sp.Symbol]]:
    """Return the He-coefficients by multi-index, and the variables.

    Raises ParameterError if the content is not as `expansion_to_dict` makes it. Raises
    ExpressionError if a coefficient is not an exact number.

    Examples
    --------
    >>> expansion_from_dict(
    ...     {"variables": [{"name": "x", "real": True}], "he_coefficients": {"2": "sqrt(2)/2"}}
    ... )
    ({(2,): sqrt(2)/2}, [x])
    """
    try:
        variables = [
            sp.Symbol(str(entry["name"]), **({"real": True} if entry["real"] else {}))
            for entry in content["variables"]
        ]
        texts = {
            tuple(int(n) for n in key.split(",")): text
            for key, text in content["he_coefficients"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ParameterError(
            "content is not a Hermite expansion as to_dict writes it: "
            '{"variables": [{"name": "x", "real": true}], "he_coefficients": {"2": "1/2"}}'
        ) from None
    return {alpha: read_number(text) for alpha, text in texts.items()}, variables


def read_number(text: Any) -> sp.Expr:
    """Read an exact number; fractions longer than texts of users may be, directly."""
    result = _RATIONAL.fullmatch(text) if isinstance(text, str) else None
    if result and int(result[2] or 1):
        return sp.Rational(int(result[1]), int(result[2] or 1))
    return parse_expression(text, {}, argument="coefficient")


def _sum(
    symbol: PolyElement,
    term: Callable[[sp.Expr, list[tuple[int, sp.Symbol]]], str],
    ellipsis: str,
    *,
    full: bool,
) -> str:
    order = ordered_multi_indices(symbol)
    shown = order if full else order[:_MOST_SHOWN]
    ring = symbol.ring
    terms = [
        term(
            ring.domain.to_sympy(symbol[alpha]),
            [(n, x) for n, x in zip(alpha, ring.symbols, strict=True) if n],
        )
        for alpha in shown
    ]
    terms += [ellipsis] if len(shown) < len(order) else []
    return " + ".join(terms).replace(" + -", " - ") or "0"


def _term(coefficient: sp.Expr, factors: list[tuple[int, sp.Symbol]]) -> str:
    names = [x.name if n == 1 else f"He({n}, {x.name})" for n, x in factors]
    text = str(coefficient)
    return _product(coefficient, f"({text})" if coefficient.is_Add else text, names, "*")


def _latex_term(coefficient: sp.Expr, factors: list[tuple[int, sp.Symbol]]) -> str:
    names = [
        sp.latex(x) if n == 1 else rf"\mathrm{{He}}_{{{n}}}({sp.latex(x)})" for n, x in factors
    ]
    text = sp.latex(coefficient)
    bracketed = rf"\left({text}\right)" if coefficient.is_Add else text
    return _product(coefficient, bracketed, names, " ")


def _product(coefficient: sp.Expr, text: str, names: list[str], times: str) -> str:
    if names and abs(coefficient) == 1:
        return ("-" if coefficient == -1 else "") + times.join(names)
    return times.join([text, *names])


@dataclass(frozen=True, eq=False)
class HermiteExpansion(Typeset):
    r"""A polynomial f of independent standard normal variables, by its Hermite coefficients.

    Make one with `from_polynomial`, `from_he_coefficients`, `from_moments` or `from_symbol`.

    Parameters
    ----------
    symbol_element : PolyElement
        The symbol F in a sparse ring over an exact field; the generators of the ring are the
        variables x of f.

    Notes
    -----
    Sums, products, derivatives and rotations are expansions again; ``==`` compares functions, over
    the same variables. Numbers that come out are SymPy expressions.

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> f = HermiteExpansion.from_polynomial(x**2 * y + x, [x, y])
    >>> f
    HermiteExpansion(x + y + He(2, x)*y)
    >>> f.moment((2, 1)), f.norm_squared
    (2, 4)
    >>> f.contract(3, [x, y])
    6*x**2*y
    """

    symbol_element: PolyElement

    def __post_init__(self) -> None:
        checked_variables(checked_element(self.symbol_element).ring.symbols)

    @classmethod
    def from_polynomial(
        cls,
        polynomial: sp.Expr | PolyElement,
        variables: Sequence[sp.Symbol] | None = None,
        *,
        parameters: Sequence[sp.Symbol] = (),
    ) -> HermiteExpansion:
        """Expand a polynomial in `variables`; a ring element brings its own variables.

        Coefficients may be rational functions of `parameters`.
        """
        return cls(symbol_of(_element(polynomial, variables, parameters)))

    @classmethod
    def from_symbol(
        cls, symbol: sp.Expr | PolyElement, variables: Sequence[sp.Symbol] | None = None
    ) -> HermiteExpansion:
        """Return the function whose symbol is given, written in the variables of the function."""
        return cls(_element(symbol, variables).copy())

    @classmethod
    def from_he_coefficients(
        cls,
        coefficients: Mapping[Any, sp.Expr | Fraction | int],
        variables: Sequence[sp.Symbol],
    ) -> HermiteExpansion:
        """Return Σ c_α He_α from {α: c_α}; for a single variable the keys may be orders."""
        return cls(element_from_terms(_by_multi_index(coefficients, variables), variables))

    @classmethod
    def from_moments(
        cls,
        moments: Mapping[Any, sp.Expr | Fraction | int],
        variables: Sequence[sp.Symbol],
    ) -> HermiteExpansion:
        """Return the polynomial with the moments {α: μ_α}, all others zero."""
        terms = he_coefficients_from_moments(_by_multi_index(moments, variables))
        return cls(element_from_terms(terms, variables))

    @property
    def variables(self) -> tuple[sp.Symbol, ...]:
        """The Gaussian variables x."""
        return tuple(self.symbol_element.ring.symbols)

    @property
    def field(self) -> Any:
        """The SymPy domain of the coefficients."""
        return self.symbol_element.ring.domain

    @property
    def degree(self) -> int:
        """Total degree; -1 for the function that is zero."""
        return max(map(sum, self.symbol_element), default=-1)

    @property
    def mean(self) -> sp.Expr:
        """E f."""
        return self.he_coefficient((0,) * len(self.variables))

    @property
    def norm_squared(self) -> sp.Expr:
        """E f² = Σ α! c_α² (Parseval)."""
        return self.inner(self)

    def he_coefficient(self, alpha: Sequence[int] | int) -> sp.Expr:
        """Return c_α = μ_α/α!, the coefficient of He_α."""
        key = _multi_index(alpha, len(self.variables))
        return self.field.to_sympy(self.symbol_element.get(key, self.field.zero))

    def moment(self, alpha: Sequence[int] | int) -> sp.Expr:
        """Return μ_α = E[f He_α]."""
        key = _multi_index(alpha, len(self.variables))
        value = self.symbol_element.get(key, self.field.zero)
        return self.field.to_sympy(value * self.field.convert(index_factorial(key)))

    def he_coefficients(self) -> dict[tuple[int, ...], sp.Expr]:
        """Return all non-zero c_α by multi-index, by degree and then by the first variables."""
        to_sympy = self.field.to_sympy
        return {
            m: to_sympy(self.symbol_element[m]) for m in ordered_multi_indices(self.symbol_element)
        }

    def moments(self) -> dict[tuple[int, ...], sp.Expr]:
        """Return all non-zero μ_α by multi-index."""
        return {m: self.moment(m) for m in ordered_multi_indices(self.symbol_element)}

    def polynomial(self) -> sp.Expr:
        """Return f as an expression in the variables."""
        return self.polynomial_element().as_expr()

    def polynomial_element(self) -> PolyElement:
        """Return f as an element of the ring."""
        return function_of(self.symbol_element)

    def symbol(self, symbols: Sequence[sp.Expr] | None = None) -> sp.Expr:
        """Return F as an expression in the given ξ; by default in the variables themselves."""
        return self.symbol_element.as_expr(*self._arguments(symbols))

    def symbol_part(self, k: int, symbols: Sequence[sp.Expr] | None = None) -> sp.Expr:
        """Return the part of F of degree k, C_k[ξ, …, ξ]/k!."""
        return self.part(k).symbol(symbols)

    def part(self, k: int) -> HermiteExpansion:
        """Return the terms with |α| = k, the projection of f on that degree."""
        return HermiteExpansion(hermite_tensors.homogeneous_part(self.symbol_element, k))

    def hermite_tensor(self, k: int) -> sp.ImmutableDenseNDimArray:
        """Return C_k = E[∇^k f] as an array of shape (r, …, r); see :mod:`.hermite.tensors`."""
        return hermite_tensors.hermite_tensor(self.symbol_element, k)

    @overload
    def contract(
        self, k: int, w: Sequence[sp.Expr | Fraction | int], *, leave: Literal[0] = 0
    ) -> sp.Expr: ...
    @overload
    def contract(
        self, k: int, w: Sequence[sp.Expr | Fraction | int], *, leave: Literal[1]
    ) -> sp.ImmutableDenseMatrix: ...
    def contract(
        self, k: int, w: Sequence[sp.Expr | Fraction | int], *, leave: Literal[0, 1] = 0
    ) -> sp.Expr | sp.ImmutableDenseMatrix:
        """Return C_k[w, …, w], or with ``leave=1`` the vector C_k[w, …, w, ·]."""
        return hermite_tensors.contract(self.symbol_element, k, w, leave=leave)

    def rotate(self, rotation: sp.MatrixBase) -> HermiteExpansion:
        """Return x ↦ f(Rx) for an orthogonal matrix R of exact numbers."""
        return HermiteExpansion(hermite_tensors.rotated(self.symbol_element, rotation))

    def derivative(self, variable: sp.Symbol) -> HermiteExpansion:
        """Return ∂f/∂x_i; its moments are those of f with α_i one higher (Stein)."""
        return HermiteExpansion(self.symbol_element.diff(self._position(variable)))

    def times_variable(self, variable: sp.Symbol) -> HermiteExpansion:
        """Return x_i f, whose symbol is ξ_i F + ∂F/∂ξ_i."""
        position = self._position(variable)
        element = self.symbol_element
        return HermiteExpansion(element * element.ring.gens[position] + element.diff(position))

    def inner(self, other: HermiteExpansion) -> sp.Expr:
        """Return E[f g] = Σ α! c_α d_α."""
        first, second = self._over_one_field(other)
        domain = first.ring.domain
        shared = first.keys() & second.keys()
        terms = (first[m] * second[m] * domain.convert(index_factorial(m)) for m in shared)
        return domain.to_sympy(sum(terms, domain.zero))

    def __add__(self, other: HermiteExpansion | sp.Expr | Fraction | int) -> HermiteExpansion:
        return self._combined(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: HermiteExpansion | sp.Expr | Fraction | int) -> HermiteExpansion:
        return self._combined(other, lambda a, b: a - b)

    def __rsub__(self, other: sp.Expr | Fraction | int) -> HermiteExpansion:
        return self._combined(other, lambda a, b: b - a)

    def __mul__(self, other: HermiteExpansion | sp.Expr | Fraction | int) -> HermiteExpansion:
        if isinstance(other, HermiteExpansion):
            # Products are taken of the functions: pointwise, not of the symbols.
            return self._combined(other, lambda a, b: symbol_of(function_of(a) * function_of(b)))
        return self._combined(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __neg__(self) -> HermiteExpansion:
        return HermiteExpansion(-self.symbol_element)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HermiteExpansion) or self.variables != other.variables:
            return NotImplemented if not isinstance(other, HermiteExpansion) else False
        first, second = self._over_one_field(other)
        # By the difference: equal fractions over algebraic fields may not compare as equal.
        return not first - second

    def __hash__(self) -> int:
        # Not of the coefficients: equal ones may be written in different fields.
        return hash((self.variables, frozenset(self.symbol_element)))

    def __repr__(self) -> str:
        return f"HermiteExpansion({expansion_text(self.symbol_element)})"

    def latex(self, *, full: bool = False) -> str:
        r"""Return the expansion in LaTeX; only the first terms and an ellipsis unless `full`.

        Examples
        --------
        >>> x = sp.Symbol("x_1", real=True)
        >>> print(HermiteExpansion.from_he_coefficients({2: 3}, [x]).latex())
        3 \mathrm{He}_{2}(x_{1})
        """
        return expansion_latex(self.symbol_element, full=full)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; see :func:`expansion_to_dict`."""
        return expansion_to_dict(self.symbol_element)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> HermiteExpansion:
        """Return the expansion that `to_dict` wrote.

        Examples
        --------
        >>> x = sp.Symbol("x", real=True)
        >>> f = HermiteExpansion.from_polynomial(sp.sqrt(2) * x**3, [x])
        >>> HermiteExpansion.from_dict(f.to_dict()) == f
        True
        """
        return cls.from_he_coefficients(*expansion_from_dict(content))

    def _position(self, variable: sp.Symbol) -> int:
        if variable not in self.variables:
            names = ", ".join(x.name for x in self.variables)
            same = getattr(variable, "name", None) in [x.name for x in self.variables]
            raise ParameterError(
                f"{variable!r} is not a variable of this expansion, which has {names}"
                + ("; same name, different assumptions" if same else "")
            )
        return self.variables.index(variable)

    def _arguments(self, symbols: Sequence[sp.Expr] | None) -> Sequence[sp.Expr]:
        if symbols is None:
            return self.variables
        if len(symbols) != len(self.variables):
            raise ParameterError(
                f"symbols must be {len(self.variables)}, one per variable, got {len(symbols)}"
            )
        return symbols

    def _over_one_field(self, other: HermiteExpansion) -> tuple[PolyElement, PolyElement]:
        if not isinstance(other, HermiteExpansion):
            raise ParameterError(f"other must be a HermiteExpansion, got {other!r}")
        if self.variables != other.variables:
            names = [", ".join(x.name for x in f.variables) for f in (self, other)]
            same = "; same names, different assumptions" if names[0] == names[1] else ""
            raise ParameterError(
                f"the two expansions have different variables, {names[0]} and {names[1]}{same}; "
                "make both over the same ones"
            )
        domain, *embeddings = common_field(self.field, other.field)
        ring = self.symbol_element.ring.clone(domain=domain)
        first, second = (
            ring.from_dict({m: embed(c) for m, c in f.symbol_element.items()})
            for f, embed in zip((self, other), embeddings, strict=True)
        )
        return first, second

    def _combined(
        self, other: Any, operation: Callable[[PolyElement, PolyElement], PolyElement]
    ) -> HermiteExpansion:
        if not isinstance(other, HermiteExpansion):
            if isinstance(other, bool) or not isinstance(other, sp.Expr | Fraction | int):
                return NotImplemented
            domain, (number,) = exact_field([other])
            ring = PolyRing(self.variables, domain, lex)
            other = HermiteExpansion(ring.ground_new(number))
        return HermiteExpansion(operation(*self._over_one_field(other)))


def _element(
    polynomial: sp.Expr | PolyElement,
    variables: Sequence[sp.Symbol] | None,
    parameters: Sequence[sp.Symbol] = (),
) -> PolyElement:
    if isinstance(polynomial, PolyElement):
        if variables is not None and tuple(variables) != tuple(polynomial.ring.symbols):
            raise ParameterError(
                f"variables {variables} are not those of the ring, {polynomial.ring.symbols}; "
                "leave them out"
            )
        return polynomial
    if variables is None:
        raise ParameterError("variables are missing; name the Gaussian variables, in their order")
    return polynomial_element(polynomial, variables, parameters)


def _by_multi_index(
    values: Mapping[Any, sp.Expr | Fraction | int], variables: Sequence[sp.Symbol]
) -> dict[tuple[int, ...], sp.Expr | Fraction | int]:
    if not isinstance(values, Mapping):
        raise ParameterError(
            f"coefficients must be a mapping from multi-indices to numbers, got {values!r}"
        )
    result = {_multi_index(key, len(variables)): value for key, value in values.items()}
    if len(result) < len(values):
        raise ParameterError(
            f"coefficients name one multi-index twice, as an order and as a tuple: {list(values)}"
        )
    return result


def _multi_index(alpha: Sequence[int] | int, size: int) -> tuple[int, ...]:
    key = tuple(alpha) if isinstance(alpha, Sequence) else (alpha,)
    if len(key) != size:
        raise ParameterError(
            f"the multi-index {alpha!r} has {len(key)} entries and there are {size} variables; "
            "give one order per variable"
        )
    return tuple(checked_order(n, f"in the multi-index {alpha!r}") for n in key)
