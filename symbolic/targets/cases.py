r"""Cases of parameters: sets of their values on which a polynomial vanishes everywhere or nowhere.

A rank or an index of a target with parameters is a number once it is known of some polynomials in
them whether they vanish. So an algorithm runs as it does over numbers, and where it needs to know,
of polynomials :math:`p_1, \dots, p_m` in the parameters, whether all of them are zero, the case in
hand answers, or falls into the one in which they are and the one in which not all are (dynamic
evaluation: Della Dora, Dicrescenzo, Duval, EUROCAL 1985). The cases that result are disjoint, cover
all values of the parameters, and each holds an answer that is right on all of it. A case is

.. math:: V(I) \setminus (V(J_1) \cup \dots \cup V(J_n)),

with the ideal I by its Gröbner basis; that it is empty is the unit ideal after Rabinowitsch's trick
(Cox, Little, O'Shea, *Ideals, Varieties, and Algorithms*, section 4.2). Parameters are real: sums
of terms of one sign, positive quadratics, polynomials of one parameter without admissible roots do
not vanish, with the signs that the symbols are declared with. Where only that could tell whether a
variety has real points, points of it are looked for; a case of which none is found is kept.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import sympy as sp
from sympy.polys.groebnertools import groebner
from sympy.polys.orderings import grevlex
from sympy.polys.rings import PolyElement, PolyRing

from ...errors import (
    AssumptionError,
    ExpressionError,
    GiantstepError,
    ParameterError,
    UndecidedError,
    UnsupportedExpressionError,
)
from ...json_document import JsonDocument
from ...pages import Block, Page, Table, Typeset, latex_text, shorten
from ..exact.fields import formal_field, independence_is_proved
from ..expressions.exact_numbers import require_exact
from ..expressions.expression_text import expression_text
from ..expressions.factors import factors_of_polynomial
from ..expressions.parser import declared_kind, named_symbols
from ..gaussian.zero_test import is_exactly_zero
from .parameter_functions import ParameterFunction, read_condition, read_open_number

Element = Any
Polynomials = tuple[sp.Expr, ...]
Values = Mapping[sp.Symbol, sp.Expr]

_MOST_CASES = 200
_MOST_MINORS = 5000
_ATTEMPTS = 40
# Of a condition in functions of parameters, points that show that it does not hold everywhere, and
# how many such conditions a case may have before another is not looked into.
_WITNESSES = 4
_MOST_FUNCTION_EQUATIONS = 2
_HEIGHT = 12

_splitting: ContextVar[bool] = ContextVar("splitting", default=False)


@contextlib.contextmanager
def without_splitting() -> Iterator[None]:
    """Make what a case does not say an UndecidedError, as outside of :func:`by_cases`."""
    token = _splitting.set(False)
    try:
        yield
    finally:
        _splitting.reset(token)


class Split(Exception):
    """What a case does not say: whether all of some polynomials in its symbols vanish."""

    def __init__(self, case: Case, polynomials: Polynomials) -> None:
        super().__init__(case, polynomials)
        self.case, self.polynomials = case, polynomials


@dataclass(frozen=True)
class Case:
    """Values of parameters: common zeros of equations where no inequation fails.

    Attributes
    ----------
    parameters : tuple of Symbol
        Real, with the signs they are declared with.
    equations : tuple of Expr
        Polynomials that vanish, a Gröbner basis.
    inequations : tuple of tuple of Expr
        Of the polynomials of each, not all vanish.
    functions : tuple of ParameterFunction
        Functions of the parameters, of whose symbols the conditions are polynomials, too.

    Examples
    --------
    >>> a, b = sp.symbols("a b", real=True)
    >>> case = Case((a, b)).where_all_vanish((a * b - 1,))
    >>> print(case, "|", case.where_some_do_not((a - 1, b - 1)))
    a*b = 1 | a*b = 1, a != 1 or b != 1
    >>> case.vanish((a**2 * b - a,)), case.vanish((a,)), case.vanish((a - 2,))
    (True, False, None)
    >>> case.where_all_vanish((a**2 + b**2 - 1,)).is_empty
    True
    >>> print(Case((a, b)).where_all_vanish((b * sp.exp(a) - 1,)))
    b*exp(a) = 1
    """

    parameters: tuple[sp.Symbol, ...]
    equations: Polynomials = ()
    inequations: tuple[Polynomials, ...] = ()
    functions: tuple[ParameterFunction, ...] = ()

    @property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """What conditions are polynomials in: the parameters and functions of them."""
        return (*self.parameters, *(f.symbol for f in self.functions))

    @functools.cached_property
    def is_empty(self) -> bool:
        """Whether no values of the parameters belong to it, as far as that is seen."""
        if any(self._is_nowhere_zero(p) for p in self.equations):
            return True
        picks = itertools.product(*self.inequations)
        if all(_is_unit(self.symbols, self.equations, pick) for pick in picks):
            return True
        return bool(self.equations) and self._finite_points == ()

    def reduced(self, polynomial: sp.Expr) -> sp.Expr:
        """Return the normal form of a polynomial modulo the equations."""
        if not self.equations or polynomial.is_Rational:
            return polynomial
        return _normal_form(self.symbols, self.equations, polynomial)

    def read(self, conditions: Iterable[sp.Expr]) -> tuple[Case, Polynomials]:
        """Return functions of the parameters as polynomials, and the case with symbols for them."""
        case, result = self, []
        for condition in conditions:
            if not condition.is_polynomial(*case.symbols):
                condition, functions = read_condition(
                    condition.xreplace(self._fixed), self.parameters, case.functions
                )
                case = replace(case, functions=functions)
            result.append(condition)
        return case, tuple(result)

    @functools.cached_property
    def solved(self) -> dict[sp.Symbol, sp.Expr]:
        """Parameters that equations give as polynomials of the others: a = b of a - b."""
        known, solved = {*self.parameters}, {}
        for p in self.equations:
            if not p.free_symbols <= known:
                continue
            leading = sp.Poly(p, *self.parameters).LM(order=grevlex).exponents
            x = self.parameters[leading.index(1)] if sum(leading) == 1 else None
            if x is not None and sp.degree(p, x) == 1 and not p.coeff(x, 1).free_symbols:
                # The basis is reduced: no other equation holds x.
                solved[x] = sp.expand(sp.radsimp(-p.coeff(x, 0) / p.coeff(x, 1)))
        return solved

    def require_irreducible(self) -> None:
        """Ask, of each equation that is a product, which of its factors vanishes.

        Raises
        ------
        Split
            Where there is such an equation.
        """
        for p in self.equations:
            factors = _factors(self.symbols, p)
            if len(factors) > 1:
                self.decide([factors[0]])

    @functools.cached_property
    def _fixed(self) -> dict[sp.Symbol, sp.Expr]:
        """Parameters that have one value."""
        return {x: value for x, value in self.solved.items() if not value.free_symbols}

    def specialised(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression with the values of the parameters that have one in the case."""
        return expression.xreplace(self._fixed)

    def _of_fewer_functions(self) -> Case:
        """Return the same case with the values of parameters that are fixed put into functions."""
        fixed = self._fixed
        moved = {f.symbol: f.at(fixed) for f in self.functions if f.value.free_symbols & {*fixed}}
        if not moved:
            return self
        left = tuple(f for f in self.functions if f.symbol not in moved)
        case = Case(self.parameters, functions=left)
        case, equations = case.read(p.xreplace(moved) for p in self.equations)
        case = case.where_all_vanish(equations)
        for part in self.inequations:
            case = case.where_some_do_not(tuple(p.xreplace(moved) for p in part))
        return case

    def vanish(self, polynomials: Iterable[sp.Expr]) -> bool | None:
        """Return whether all polynomials are zero; None where some values say yes, others no.

        Raises
        ------
        UnsupportedExpressionError
            If one is no polynomial, and holds a function that is not known to be real.
        """
        case, listed = self.read(polynomials)
        return case._vanish(listed)

    def _vanish(self, listed: Polynomials) -> bool | None:
        left = [p for p in map(self.reduced, listed) if p != 0]
        if not left:
            return True
        if any(self._is_nowhere_zero(p) for p in left):
            return False
        left = [p for p in left if not self.where_some_do_not((p,)).is_empty]
        if not left:
            return True
        return False if self.where_all_vanish(tuple(left)).is_empty else None

    def decide(self, polynomials: Iterable[sp.Expr]) -> bool:
        """Return whether all polynomials are zero.

        Raises
        ------
        Split
            If that depends on the values and :func:`by_cases` runs.
        UndecidedError
            If it depends on them otherwise.
        """
        case, read = self.read(dict.fromkeys(polynomials))
        return case._decide(tuple(dict.fromkeys(read)))

    def _decide(self, listed: Polynomials) -> bool:
        answer = self._vanish(listed)
        if answer is not None:
            return answer
        left = tuple(
            p
            for p in self._simplified(listed)
            if p != 0 and not self.where_some_do_not((p,)).is_empty
        )
        self._require_conditions(left)
        if _splitting.get():
            raise Split(self, left)
        raise UndecidedError(
            f"whether {' and '.join(map(self._text, left))} vanish"
            f"{'es' if len(left) == 1 else ''} depends on the parameters; give them values"
        )

    def _require_conditions(self, polynomials: Polynomials) -> None:
        """Refuse functions of parameters of which too little is known for a case of their zeros."""
        names = {f.symbol for f in self.functions}
        hard = [p for p in polynomials if p.free_symbols & names]
        if not hard:
            return
        earlier = [p for p in self.equations if p.free_symbols & names]
        if len(earlier) >= _MOST_FUNCTION_EQUATIONS:
            raise UndecidedError(
                f"whether {self._text(hard[0])} vanishes where {self} is not decided; give values "
                "to the parameters"
            )
        for p in hard:
            points = Case(self.parameters).sample(_WITNESSES)
            if not any(_differs(self._written(p).xreplace(at)) for at in points):
                raise UndecidedError(
                    f"whether {self._text(p)} vanishes for all values of its parameters is not "
                    "decided; give values to them"
                )

    def _written(self, polynomial: sp.Expr) -> sp.Expr:
        """Return a polynomial with the functions for their symbols."""
        return polynomial.xreplace({f.symbol: f.written for f in self.functions})

    def _text(self, polynomial: sp.Expr) -> str:
        return expression_text(self._written(polynomial))

    def where_all_vanish(self, polynomials: Polynomials) -> Case:
        """Return the part of the case on which all polynomials are zero."""
        case, read = self.read(polynomials)
        equations = case._simplified((*case.equations, *read))
        unequal = replace(case, equations=equations, inequations=())
        for part in case.inequations:
            unequal = unequal.where_some_do_not(part)
        return unequal._of_fewer_functions() if unequal.functions else unequal

    def where_some_do_not(self, polynomials: Polynomials) -> Case:
        """Return the part of the case on which not all polynomials are zero."""
        case, read = self.read(polynomials)
        return case._where_some_do_not(read)

    def _where_some_do_not(self, polynomials: Polynomials) -> Case:
        left = tuple(dict.fromkeys(p for p in map(self.reduced, polynomials) if p != 0))
        if not left:
            return replace(self, inequations=(*self.inequations, (sp.S.Zero,)))
        if any(self._is_nowhere_zero(p) for p in left):
            return self
        left = _basis(self.symbols, left)[1]
        if len(left) > 1:
            return replace(self, inequations=(*self.inequations, left))
        new = [(f,) for f in _factors(self.symbols, left[0]) if not self._is_nowhere_zero(f)]
        known = set(self.inequations)
        result = replace(self, inequations=(*self.inequations, *(f for f in new if f not in known)))
        # A factor of an equation may be gone: (a - 1)(a + 1) = 0 where a != 1.
        equations = result._simplified(result.equations) if result.equations else ()
        return result if equations == result.equations else result.where_all_vanish(equations)

    def holds(self, values: Values) -> bool:
        """Whether exact values of all parameters belong to the case."""
        at = dict(values)

        at |= {f.symbol: f.at(values) for f in self.functions}

        def vanishes(polynomial: sp.Expr) -> bool:
            return _is_zero(sp.expand(polynomial.xreplace(at)))

        return (
            all(_is_admissible(x, at[x]) for x in self.parameters)
            and all(map(vanishes, self.equations))
            and all(not all(map(vanishes, part)) for part in self.inequations)
        )

    def sample(self, count: int = 1, *, seed: int = 0) -> tuple[dict[sp.Symbol, sp.Expr], ...]:
        """Return exact values of the parameters that belong to the case, up to so many.

        Parameters
        ----------
        count : int
        seed : int
            The same seed gives the same values.

        Returns
        -------
        tuple of dict
            Rational numbers where the conditions allow it, else roots; fewer, or none, if the case
            has no more, or none that is found.

        Examples
        --------
        >>> a, b = sp.symbols("a b", real=True)
        >>> Case((a, b)).where_all_vanish((a**2 - 2, b - a)).sample(3)
        ({a: -sqrt(2), b: -sqrt(2)}, {a: sqrt(2), b: sqrt(2)})
        """
        source = random.Random(seed)
        found: dict[tuple[sp.Expr, ...], dict[sp.Symbol, sp.Expr]] = {}
        for _ in range(_ATTEMPTS + 4 * count):
            if len(found) >= count:
                break
            for point in self._attempts(source):
                ordered = {x: point[x] for x in self.parameters}
                if len(found) < count and self.holds(ordered):
                    found.setdefault(tuple(ordered.values()), ordered)
        return tuple(found.values())

    def _attempts(self, source: random.Random) -> Iterator[dict[sp.Symbol, sp.Expr]]:
        """Yield points that meet the equations, as far as these are solved."""
        names = {f.symbol for f in self.functions}
        plain = tuple(p for p in self.equations if not p.free_symbols & names)
        others = [p for p in self.equations if p.free_symbols & names]
        for point in _points(self.parameters, plain, source):
            for p in others:
                # A parameter in which the condition is linear is left to it.
                used = {x for f in self.functions if p.has(f.symbol) for x in f.value.free_symbols}
                for x in sorted(p.free_symbols & {*self.parameters} - used, key=str):
                    at = {y: v for y, v in point.items() if y != x}
                    if not sp.Poly(p, x).degree() == 1:
                        continue
                    values = {f.symbol: f.at(at) for f in self.functions if p.has(f.symbol)}
                    slope, constant = (p.coeff(x, n).xreplace({**at, **values}) for n in (1, 0))
                    if sp.expand(slope) != 0:
                        point = {**at, x: sp.expand(-constant / slope)}
                    break
            yield point

    def tidied(self) -> Case:
        """Return the same case without inequations that follow from the other conditions."""
        left = self.inequations
        numbers = (
            c for p in (*self.equations, *itertools.chain(*left)) for c in _coefficients(p, self)
        )
        # Bases over larger fields take long, for what is a matter of print.
        removable = left if all(c.is_Rational for c in numbers) else ()
        for part in removable:
            without = replace(self, inequations=tuple(p for p in left if p != part))
            if without.vanish(part) is False:
                left = without.inequations
        return replace(self, inequations=tuple(sorted(left, key=str)))

    @functools.cached_property
    def _finite_points(self) -> tuple[dict[sp.Symbol, sp.Expr], ...] | None:
        """All points if the equations have finitely many; None if they do not, or are long."""
        return _finitely_many(self)

    def _is_nowhere_zero(self, polynomial: sp.Expr) -> bool:
        factors = _factors(self.symbols, polynomial)
        return all((f,) in self.inequations or _sign(f) for f in factors)

    def _simplified(self, polynomials: Polynomials) -> Polynomials:
        """Return polynomials with the same common zeros in the case, a Gröbner basis."""
        basis = _basis(self.symbols, polynomials)[1]
        while True:
            smaller: list[sp.Expr] = []
            for p in basis:
                left = [f for f in _factors(self.symbols, p) if not self._is_nowhere_zero(f)]
                if not left and p != 0:
                    return (sp.S.One,)
                summands = _zero_together(left[0]) if len(left) == 1 else None
                smaller += summands if summands else [sp.Mul(*left)]
            following = _basis(self.symbols, tuple(smaller))[1]
            if following == basis:
                return following
            basis = following

    def conditions(self) -> tuple[str, ...]:
        """The conditions as texts."""
        equal = [self._equation_text(p, expression_text) for p in self.equations]
        return (*map(" = ".join, equal), *self._inequation_texts(expression_text, " != ", " or "))

    def _equation_text(
        self, polynomial: sp.Expr, write: Callable[[sp.Expr], str]
    ) -> tuple[str, str]:
        """Return both sides: a = 0, a*b = 1, a = b, a*(b - 1) = 0."""
        back = {f.symbol: f.written for f in self.functions}
        if polynomial.free_symbols & {*back}:
            written = write
            write = lambda p: written(p.xreplace(back))  # noqa: E731
        factors = _factors(self.symbols, polynomial)
        if len(factors) > 1:
            return write(sp.Mul(*factors)), "0"
        terms = sp.Add.make_args(factors[0] if factors else polynomial)
        constant = sp.Add(*(term for term in terms if not term.free_symbols))
        negative = [t for t in terms if t.free_symbols and t.could_extract_minus_sign()]
        positive = [t for t in terms if t.free_symbols and t not in negative]
        if not positive:
            return write(-sp.Add(*negative)), write(constant)
        return write(sp.Add(*positive)), write(-sp.Add(*negative, constant))

    def _inequation_texts(
        self, write: Callable[[sp.Expr], str], unequal: str, either: str
    ) -> list[str]:
        return [
            either.join(unequal.join(self._equation_text(p, write)) for p in part)
            for part in self.inequations
        ]

    def __str__(self) -> str:
        return ", ".join(self.conditions()) or "all values"

    def latex(self) -> str:
        r"""Return the conditions in LaTeX, without delimiters.

        Examples
        --------
        >>> a, b = sp.symbols("a b", real=True)
        >>> print(Case((a, b)).where_all_vanish((a * b - 1,)).where_some_do_not((a - 1,)).latex())
        a b = 1,\ a \neq 1
        """
        equal = (" = ".join(self._equation_text(p, sp.latex)) for p in self.equations)
        unequal = self._inequation_texts(sp.latex, r" \neq ", r" \text{ or } ")
        return r",\ ".join([*equal, *unequal]) or r"\text{all values}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: the polynomials as texts."""
        return {
            "equations": list(map(self._text, self.equations)),
            "inequations": [list(map(self._text, part)) for part in self.inequations],
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], parameters: Sequence[sp.Symbol]) -> Case:
        """Return the case that :meth:`to_dict` wrote, of given parameters."""
        case = cls(tuple(parameters))
        for part in content["inequations"]:
            case = case.where_some_do_not(tuple(read_open_number(p, parameters) for p in part))
        equations = tuple(read_open_number(p, parameters) for p in content["equations"])
        return (case.where_all_vanish(equations) if equations else case).tidied()


def _elements(
    parameters: Sequence[sp.Symbol], polynomials: Sequence[sp.Expr], more: Sequence[sp.Symbol] = ()
) -> tuple[PolyRing, list[PolyElement]]:
    """Return polynomials, up to constants, as elements of a ring in which zero is decided."""
    gens = (*parameters, *more)
    ring, elements = _exact_elements(parameters, [_scaled(p, gens) for p in polynomials], more)
    # Division by numbers of large fields takes long; of single terms only the monomials count.
    one = ring.domain.one
    elements = [ring.from_dict({e.LM: one}) if len(e) == 1 else e for e in elements]
    return _over_smaller_field(ring, elements)


def _coefficients(polynomial: sp.Expr, case: Case) -> list[sp.Expr]:
    if not polynomial.free_symbols:
        return [polynomial]
    return list(sp.Poly(polynomial, *case.symbols).coeffs())


@functools.lru_cache(maxsize=4096)
def _scaled(polynomial: sp.Expr, gens: tuple[sp.Symbol, ...]) -> sp.Expr:
    """Return a polynomial divided by its leading coefficient where that is a plain product."""
    if not polynomial.free_symbols & {*gens}:
        return polynomial
    terms = sp.Poly(polynomial, *gens).terms()
    leading = terms[0][1]
    if leading.is_Rational or leading.is_Add or leading.is_zero is not False:
        return polynomial
    return sp.Add(
        *(c / leading * sp.Mul(*(x**n for x, n in zip(gens, m, strict=True))) for m, c in terms)
    )


def _exact_elements(
    parameters: Sequence[sp.Symbol], polynomials: Sequence[sp.Expr], more: Sequence[sp.Symbol] = ()
) -> tuple[PolyRing, list[PolyElement]]:
    """Return polynomials as elements of one ring over the field of their coefficients."""
    gens = (*parameters, *more)
    terms = [sp.Poly(p, *gens).terms() if p.free_symbols & {*gens} else [((0,) * len(gens), p)]
             for p in polynomials]  # fmt: skip
    listed = [c for part in terms for _, c in part]
    domain, numbers = formal_field(listed)
    if not independence_is_proved(domain):
        numbers = [
            domain.zero if is_exactly_zero(c, "a coefficient of a condition") else number
            for c, number in zip(listed, numbers, strict=True)
        ]
    ring = PolyRing(gens, domain, grevlex)
    iterator = iter(numbers)
    elements = []
    for part in terms:
        collected = {monomial: next(iterator) for monomial, _ in part}
        elements.append(ring.from_dict({m: c for m, c in collected.items() if c}))
    return ring, elements


def _over_smaller_field(
    ring: PolyRing, elements: list[PolyElement]
) -> tuple[PolyRing, list[PolyElement]]:
    """Return the polynomials with leading coefficient 1, over the rationals if that is enough.

    Zero is proven for each coefficient, but not for what elimination makes of several constants
    without closed form; where they do not drop out, equations in them are refused.
    """
    if independence_is_proved(ring.domain):
        return ring, elements
    monic = [element.monic() if element else element for element in elements]
    coefficients = [c for element in monic for c in element.values()]
    domain, numbers = formal_field(map(ring.domain.to_sympy, coefficients))
    if not independence_is_proved(domain):
        raise UndecidedError(
            "conditions that mix the parameters with a constant without closed form, as "
            f"{shorten(str(monic[0].as_expr()))} = 0, are not decided; give values to the "
            "parameters, or write the constant as a parameter of its own"
        )
    smaller = ring.clone(domain=domain)
    iterator = iter(numbers)
    return smaller, [smaller.from_dict({m: next(iterator) for m in p}) for p in monic]


@functools.lru_cache(maxsize=4096)
def _basis(
    parameters: tuple[sp.Symbol, ...], polynomials: Polynomials
) -> tuple[tuple[PolyRing, tuple[PolyElement, ...]], Polynomials]:
    """Return the reduced Gröbner basis, as elements and as primitive expressions."""
    ring, elements = _elements(parameters, polynomials)
    elements = list(dict.fromkeys(element for element in elements if element))
    basis = groebner(elements, ring) if len(elements) > 1 else elements
    return (ring, tuple(basis)), tuple(_primitive(p.as_expr(), parameters) for p in basis)


@functools.lru_cache(maxsize=4096)
def _is_unit(
    parameters: tuple[sp.Symbol, ...], equations: Polynomials, unequal: Polynomials
) -> bool:
    """Whether nothing solves the equations where no polynomial of the others is zero."""
    if any(p == 0 for p in unequal):
        return True
    if not equations:
        return False
    product = sp.Mul(*unequal)
    inverse = sp.Dummy("t")
    polynomials: list[sp.Expr] = [*equations, inverse * product - 1]
    constants = _Constants()
    named = [constants.named(p) for p in polynomials]
    more = (inverse, *constants.symbols)
    if len(more) > 1:
        polynomials = [*named, *constants.relations]
    ring, elements = _elements(parameters, polynomials, more)
    return any(p.is_ground for p in groebner([p for p in elements if p], ring))


class _Constants:
    """Irrational numbers as variables, with inverses: bases over their field take very long.

    Of square roots the square is known, of others nothing: a variety that is seen to be empty is.
    """

    def __init__(self) -> None:
        self.symbols: list[sp.Symbol] = []
        self.relations: list[sp.Expr] = []
        self._known: dict[sp.Expr, tuple[sp.Symbol, sp.Symbol]] = {}

    def named(self, expression: sp.Expr) -> sp.Expr:
        if expression.is_Rational or expression.is_Symbol:
            return expression
        if expression.is_Add or expression.is_Mul:
            return expression.func(*map(self.named, expression.args))
        base, power = expression.as_base_exp()
        if power.is_Integer and power > 0:
            return self.named(base) ** power if power > 1 else self._symbol(expression, 1)
        if power.is_Rational and not isinstance(expression, sp.exp):
            return self._symbol(base ** sp.Rational(1, power.q), int(power.p))
        return self._symbol(expression, 1)

    def _symbol(self, number: sp.Expr, power: int) -> sp.Expr:
        if number not in self._known:
            symbol, inverse = sp.Dummy("c"), sp.Dummy("c")
            self._known[number] = symbol, inverse
            self.symbols.append(symbol)
            square = sp.expand(number**2)
            if square.is_Rational:
                self.relations.append(symbol**2 - square)
        symbol, inverse = self._known[number]
        if power < 0 and inverse not in self.symbols:
            self.symbols.append(inverse)
            self.relations.append(symbol * inverse - 1)
        return symbol**power if power > 0 else inverse**-power


@functools.lru_cache(maxsize=4096)
def _normal_form(
    parameters: tuple[sp.Symbol, ...], equations: Polynomials, polynomial: sp.Expr
) -> sp.Expr:
    basis = _elements(parameters, (*equations, polynomial))
    *elements, element = basis[1]
    # The polynomial may have been divided by its leading coefficient: what counts are its zeros.
    return element.rem(list(elements)).as_expr() if element else sp.S.Zero


def _primitive(polynomial: sp.Expr, parameters: Sequence[sp.Symbol]) -> sp.Expr:
    """Return a multiple with whole coefficients and a positive leading one, if it has such."""
    if not polynomial.free_symbols:
        return sp.S.One if polynomial != 0 else sp.S.Zero
    result = sp.Poly(polynomial, *parameters).primitive()[1]
    if all(c.is_Rational for c in result.coeffs()):
        result = sp.Poly(result.as_expr(), *parameters, domain=sp.QQ)
        result = result.clear_denoms(convert=True)[1].primitive()[1]
    if result.LC().could_extract_minus_sign():
        result = -result
    return result.as_expr()


@functools.lru_cache(maxsize=4096)
def _factors(parameters: tuple[sp.Symbol, ...], polynomial: sp.Expr) -> Polynomials:
    """Return the factors without constants, each once; irreducible over the rationals."""
    if not polynomial.free_symbols:
        return ()
    element = sp.Poly(polynomial, *parameters)
    if not all(c.is_Rational for c in element.coeffs()):
        # Over larger fields common factors that are monomials are enough.
        terms = element.terms()
        common = tuple(map(min, *(m for m, _ in terms))) if len(terms) > 1 else terms[0][0]
        axes = [x for x, n in zip(parameters, common, strict=True) if n]
        rest = sp.Add(
            *(
                c * sp.Mul(*(x ** (n - k) for x, n, k in zip(parameters, m, common, strict=True)))
                for m, c in terms
            )
        )
        return (*axes, *([_primitive(rest, parameters)] if rest.free_symbols else []))
    return tuple(_primitive(f.as_expr(), parameters) for f, _ in factors_of_polynomial(element)[1])


def _monomial_sign(monomial: Sequence[int], symbols: Sequence[sp.Symbol]) -> tuple[int, bool]:
    """Return 1 or -1 if a monomial is ≥ 0 or ≤ 0 (0 if not known), and whether it is never 0."""
    sign, strict = 1, True
    for n, x in zip(monomial, symbols, strict=True):
        if not n:
            continue
        strict = strict and x.is_nonzero is True
        if n % 2 and x.is_nonnegative is not True:
            sign = -sign if x.is_nonpositive is True else 0
        if not sign:
            break
    return sign, strict


@functools.lru_cache(maxsize=4096)
def _sign(polynomial: sp.Expr) -> int:
    """Return the sign that a polynomial has for all admissible values, 0 if none is seen."""
    if not polynomial.free_symbols:
        # Coefficients that are zero have been left out.
        return _sign_of(polynomial) or 1
    symbols = sorted(polynomial.free_symbols, key=str)
    element = sp.Poly(polynomial, *symbols)
    signs, strict = set(), False
    for monomial, c in element.terms():
        sign, never = _monomial_sign(monomial, symbols)
        signs.add(sign * _sign_of(c))
        strict = strict or never
    if len(signs) == 1 and 0 not in signs and strict:
        return int(signs.pop())
    if not all(c.is_Rational for c in element.coeffs()):
        return 0
    if len(symbols) == 1:
        if any(_is_admissible(symbols[0], root) for root in sp.real_roots(element)):
            return 0
        inside = next(v for v in _candidates(symbols[0]) if element.eval(v) != 0)
        return int(sp.sign(element.eval(inside)))
    gram = _gram_matrix(element)
    if gram is None:
        return 0
    for sign in (1, -1):
        if (sign * gram).is_positive_definite:
            return sign
    return 0


def _differs(number: sp.Expr) -> bool:
    """Whether a number is proven not to be zero."""
    try:
        return not _is_zero(sp.expand(number.doit()))
    except GiantstepError:
        return False


def _sign_of(number: sp.Expr) -> int:
    """Return the sign of a constant if SymPy knows it, else 0."""
    return 1 if number.is_positive else -1 if number.is_negative else 0


def _gram_matrix(element: sp.Poly) -> sp.Matrix | None:
    """Return G with p = (1, x)ᵀ G (1, x) for a quadratic."""
    if element.total_degree() != 2:
        return None
    size = len(element.gens) + 1
    gram = sp.zeros(size, size)
    for monomial, c in element.terms():
        axes = [i + 1 for i, n in enumerate(monomial) for _ in range(n)]
        i, j = (*[0] * (2 - len(axes)), *axes)
        gram[i, j] += c / 2
        gram[j, i] += c / 2
    return gram


@functools.lru_cache(maxsize=4096)
def _zero_together(polynomial: sp.Expr) -> list[sp.Expr] | None:
    """Return polynomials that all vanish where a sum of terms ≥ 0 does; None for others."""
    symbols = sorted(polynomial.free_symbols, key=str)
    element = sp.Poly(polynomial, *symbols)
    terms = element.terms()
    signs = {_monomial_sign(m, symbols)[0] * _sign_of(c) for m, c in terms}
    if len(terms) > 1 and len(signs) == 1 and 0 not in signs:
        return [sp.Mul(*(x for x, n in zip(symbols, m, strict=True) if n)) for m, _ in terms]
    if len(symbols) > 1 and all(c.is_Rational for c in element.coeffs()):
        gram = _gram_matrix(element)
        if gram is not None and any((s * gram).is_positive_semidefinite for s in (1, -1)):
            return list(gram * sp.Matrix([1, *symbols]))
    return None


def _is_admissible(parameter: sp.Symbol, value: sp.Expr) -> bool:
    """Whether a real number meets what a symbol is declared with."""
    if value.is_extended_real is False or value.is_infinite:
        return False
    for kind in ("integer", "rational", "positive", "negative", "zero"):
        wanted = getattr(parameter, f"is_{kind}")
        given = getattr(value, f"is_{kind}")
        if wanted is not None and given is not None and wanted != given:
            return False
    return True


def _candidates(parameter: sp.Symbol) -> Iterator[sp.Expr]:
    small = (sp.Rational(p, q) for q in itertools.count(1) for p in (q + 1, 1, -1, -q - 1, 2 * q))
    return (value for value in small if _is_admissible(parameter, value))


def _points(
    parameters: tuple[sp.Symbol, ...], equations: Polynomials, source: random.Random
) -> Iterator[dict[sp.Symbol, sp.Expr]]:
    """Yield admissible solutions of the equations, free parameters drawn at random."""
    if any(p.is_number and p != 0 for p in equations):
        return
    equations = tuple(p for p in equations if p != 0)
    if not parameters:
        yield {}
        return
    used = {x for p in equations for x in p.free_symbols}
    free = [x for x in parameters if x not in used]
    chosen: sp.Symbol
    roots: list[sp.Expr]
    if free:
        chosen, roots = free[0], [_drawn(free[0], source)]
    else:
        univariate = [p for p in equations if len(p.free_symbols) == 1]
        if univariate:
            polynomial = min(univariate, key=lambda p: sp.degree(p, *p.free_symbols))
            (chosen,) = polynomial.free_symbols
            roots = _roots(polynomial, chosen)
        else:
            # The parameter that equations are linear in is left to them.
            degrees = {x: max(sp.degree(p, x) for p in equations) for x in parameters}
            chosen = max(parameters, key=lambda x: (bool(degrees[x] > 1), source.random()))
            roots = [_drawn(chosen, source)]
    for root in roots:
        if not _is_admissible(chosen, root):
            continue
        left = tuple(x for x in parameters if x != chosen)
        rest = tuple(sp.expand(p.xreplace({chosen: root})) for p in equations)
        rest = tuple(sp.S.Zero if p.is_number and p.is_zero else p for p in map(_tidy, rest))
        for point in _points(left, rest, source):
            yield {chosen: root, **point}


def _is_zero(number: sp.Expr) -> bool:
    """Whether an exact number is zero, roots of polynomials included."""
    if number.is_Rational:
        return bool(number == 0)
    domain, (element,) = formal_field([number])
    if independence_is_proved(domain):
        return not element
    return is_exactly_zero(number, "a condition of a case")


def _tidy(value: sp.Expr) -> sp.Expr:
    """Return a constant that is zero as 0."""
    return sp.S.Zero if value.is_number and _is_zero(value) else value


def _roots(polynomial: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    element = sp.Poly(polynomial, x)
    if all(c.is_Rational for c in element.coeffs()):
        return list(dict.fromkeys(sp.real_roots(element)))
    if element.degree() > 2:
        return []
    square, slope, constant = (element.coeff_monomial(x**n) for n in (2, 1, 0))
    if element.degree() == 1:
        return [sp.radsimp(-constant / slope)]
    discriminant = sp.expand(slope**2 - 4 * square * constant)
    if discriminant.is_negative:
        return []
    roots = [(sign * sp.sqrt(discriminant) - slope) / (2 * square) for sign in (-1, 1)]
    return list(dict.fromkeys(map(sp.radsimp, roots)))


def _drawn(parameter: sp.Symbol, source: random.Random) -> sp.Expr:
    while True:
        denominator = 1 if parameter.is_integer else source.randint(1, _HEIGHT)
        value = sp.Rational(source.randint(-_HEIGHT, _HEIGHT), denominator)
        if value and _is_admissible(parameter, value):
            return value


@functools.lru_cache(maxsize=4096)
def _finitely_many(case: Case) -> tuple[dict[sp.Symbol, sp.Expr], ...] | None:
    if any(not p.free_symbols <= {*case.parameters} for p in case.equations):
        return None
    (ring, basis), _ = _basis(case.parameters, case.equations)
    if ring.domain != sp.QQ:
        return None
    leading = [p.LM for p in basis]
    finite = all(any(m[i] and sum(m) == m[i] for m in leading) for i in range(len(case.parameters)))
    if not finite or sum(map(sum, leading)) > _HEIGHT:
        return None
    eliminated = sp.groebner(case.equations, *case.parameters, order="lex", domain=sp.QQ).exprs
    factors = [_factors(case.parameters, p) for p in eliminated]
    if any(all(map(_sign, part)) for part in factors):
        return ()
    # Roots of higher degree are not followed into the other equations: that takes long.
    listed = itertools.chain.from_iterable(factors)
    if any(len(f.free_symbols) == 1 and sp.degree(f, *f.free_symbols) > 2 for f in listed):
        return None
    found = _points(case.parameters, tuple(eliminated), random.Random(0))
    return tuple(point for point in found if case.holds(point))


def minor(rows: Sequence[Sequence[Any]], columns: Sequence[int]) -> Any:
    """Return the determinant of the first rows at some columns, by Laplace expansion."""
    if len(columns) == 1:
        return rows[0][columns[0]]
    # Row by row, each minor of the first rows once.
    minors: dict[tuple[int, ...], Any] = {(c,): rows[0][c] for c in columns}
    for size in range(2, len(columns) + 1):
        row = rows[size - 1]
        larger: dict[tuple[int, ...], Any] = {}
        for chosen in itertools.combinations(columns, size):
            total = None
            for position, c in enumerate(chosen):
                rest = (*chosen[:position], *chosen[position + 1 :])
                term = row[c] * minors[rest]
                if (size - 1 - position) % 2:
                    term = -term
                total = term if total is None else total + term
            larger[chosen] = total
        minors = larger
    return minors[tuple(columns)]


class CaseEchelon:
    """Vectors of functions of parameters that are independent everywhere in a case.

    A vector is reduced by those with a pivot that is zero nowhere, and for the rest minors tell,
    so that nothing is asked of the parameters that the rank does not depend on.

    Parameters
    ----------
    field : Domain
        Of the entries: numbers, or rational functions of the parameters.
    width : int
    case : Case
    rows : sequence of rows, optional
        Independent vectors to begin with.
    """

    def __init__(
        self, field: Any, width: int, case: Case, rows: Iterable[Sequence[Element]] = ()
    ) -> None:
        self.field, self.width, self.case = field, width, case
        # Rows with a 1 at their pivot, where all others have 0, and rows without a sure pivot.
        self.units: list[tuple[int, list[Element]]] = []
        self.others: list[list[Element]] = []
        for row in rows:
            self.insert(row)

    @property
    def rank(self) -> int:
        """Number of vectors."""
        return len(self.units) + len(self.others)

    @property
    def rows(self) -> list[list[Element]]:
        """The vectors, those with a pivot first."""
        return [*(row for _, row in sorted(self.units, key=lambda unit: unit[0])), *self.others]

    def insert(self, vector: Sequence[Element]) -> bool:
        """Add a vector; tell whether it raised the rank.

        Raises Split if that depends on the parameters.
        """
        answer, questions = self._tried(vector)
        if answer is not None:
            return answer
        answer = not self.case.decide(questions)
        return self._tried(vector, adds=answer)[0] is True

    def insert_all(self, vectors: Sequence[Sequence[Element]]) -> list[int]:
        """Add vectors, first those of which the case says whether they raise the rank.

        The result: positions of those that did.
        """
        # With a pivot first, minors of the others are short.
        waiting = sorted(range(len(vectors)), key=lambda i: not self._has_pivot(vectors[i]))
        added = []
        while waiting and self.rank < self.width:
            answers = {i: self._tried(vectors[i])[0] for i in waiting}
            added += [i for i in waiting if answers[i]]
            left = [i for i in waiting if answers[i] is None]
            if len(left) == len(waiting) and self.insert(vectors[left.pop(0)]):
                added.append(waiting[0])
            waiting = left
        return sorted(added)

    def _has_pivot(self, vector: Sequence[Element]) -> bool:
        return any(self.case.vanish([self.numerator(e)]) is False for e in vector if e)

    def _tried(
        self, vector: Sequence[Element], *, adds: bool | None = None
    ) -> tuple[bool | None, list[sp.Expr]]:
        """Add a vector if it is known to raise the rank; return that, or what has to be known."""
        rest = list(vector)
        for pivot, row in self.units:
            rest = self._minus(rest, pivot, row)
        rest = list(map(self._reduced, rest))
        columns = self._columns()
        if not any(rest) or len(columns) == len(self.others) or adds is False:
            return False, []
        if adds is None:
            minors = list(map(self.numerator, self._minors([*self.others, rest], columns)))
            vanish = self.case.vanish(minors)
            if vanish is not False:
                return (False if vanish else None), minors
        self.others.append(rest)
        self._find_pivots(columns)
        return True, []

    def _columns(self) -> list[int]:
        pivots = {pivot for pivot, _ in self.units}
        return [j for j in range(self.width) if j not in pivots]

    def _cleared(self, vector: list[Element], pivot: int, row: Sequence[Element]) -> list[Element]:
        return [self._reduced(entry) for entry in self._minus(vector, pivot, row)]

    def _minus(self, vector: list[Element], pivot: int, row: Sequence[Element]) -> list[Element]:
        factor = vector[pivot]
        if not factor:
            return vector
        result = [a - factor * b if b else a for a, b in zip(vector, row, strict=True)]
        result[pivot] = self.field.zero
        return result

    def _minors(self, rows: Sequence[Sequence[Element]], columns: Sequence[int]) -> list[Element]:
        size = len(rows)
        choices = list(itertools.islice(itertools.combinations(columns, size), _MOST_MINORS + 1))
        if len(choices) > _MOST_MINORS:
            raise UnsupportedExpressionError(
                "ranks with these parameters need too many minors; give values to some of them"
            )
        return [value for chosen in choices if (value := minor(rows, chosen))]

    def _find_pivots(self, columns: Sequence[int]) -> None:
        """Give pivots to the rows without, where an entry or a minor of them vanishes nowhere."""
        for i, j in itertools.product(range(len(self.others)), columns):
            entry = self.others[i][j]
            if entry and self.case.vanish([self.numerator(entry)]) is False:
                row = [self._reduced(e / entry) if e else e for e in self.others.pop(i)]
                row[j] = self.field.one
                self.units = [(p, self._cleared(old, j, row)) for p, old in self.units]
                self.others = [self._cleared(old, j, row) for old in self.others]
                self.units.append((j, row))
                if self.others:
                    self._find_pivots([k for k in columns if k != j])
                return
        if not self.others:
            return
        size = len(self.others)
        for chosen in itertools.combinations(columns, size):
            determinant = minor(self.others, chosen)
            if not determinant or self.case.vanish([self.numerator(determinant)]) is not False:
                continue
            # Gauss and Jordan would need pivots: Cramer's rule does not.
            new = [[self._solved(chosen, i, j, determinant) for j in range(self.width)]
                   for i in range(size)]  # fmt: skip
            for i, pivot in enumerate(chosen):
                self.units = [(p, self._cleared(row, pivot, new[i])) for p, row in self.units]
            self.units += zip(chosen, new, strict=True)
            self.others = []
            return

    def _solved(self, chosen: Sequence[int], i: int, j: int, determinant: Element) -> Element:
        """Return entry (i, j) of the inverse of the square at some columns times the rows."""
        if j in chosen:
            return self.field.one if chosen[i] == j else self.field.zero
        columns = [*chosen[:i], j, *chosen[i + 1 :]]
        return self._reduced(minor(self.others, columns) / determinant)

    def numerator(self, element: Element) -> sp.Expr:
        """Return a polynomial in the parameters that vanishes where an entry does."""
        numerator = getattr(element, "numer", None)
        if not isinstance(numerator, PolyElement):
            return sp.expand(self.field.to_sympy(element))
        return sp.expand(self.field.to_sympy(self.field(numerator)))

    def _reduced(self, element: Element) -> Element:
        """Return an entry in the shortest form that it has on the case."""
        if not self.case.equations or not isinstance(getattr(element, "numer", None), PolyElement):
            return element
        return _reduced_fraction(self.case, self.field, element)


def _reduced_fraction(case: Case, field: Any, element: Element) -> Element:
    parts = [sp.expand(field.to_sympy(field(part))) for part in (element.numer, element.denom)]
    known = {*case.parameters}
    equations = [p for p in case.equations if p.free_symbols <= known]
    if not all(p.is_polynomial(*known) for p in parts):
        return element
    ring, elements = _exact_elements(case.parameters, (*equations, *parts))
    if not independence_is_proved(ring.domain):
        return element
    *basis, numerator, denominator = elements
    numerator, denominator = (
        part.rem(basis) if part else part for part in (numerator, denominator)
    )
    return _converted(field, numerator) / _converted(field, denominator)


def _converted(field: Any, element: PolyElement) -> Element:
    """Return a polynomial in the parameters as an element of a field of functions."""
    domain = element.ring.domain
    if domain in (sp.QQ, field.domain):
        numbers = {m: field.convert_from(c, domain) for m, c in element.items()}
    else:
        numbers = {m: field.from_sympy(domain.to_sympy(c)) for m, c in element.items()}
    gens = [
        field.gens[field.symbols.index(x)] if x in field.symbols else None
        for x in element.ring.symbols
    ]
    total = field.zero
    for monomial, c in numbers.items():
        for gen, n in zip(gens, monomial, strict=True):
            c = c * gen**n if n else c
        total = total + c
    return total


T = TypeVar("T")


@dataclass(frozen=True)
class StoredAnswer:
    """The answer of a case as it was written, from :meth:`CaseTree.from_dict`.

    Attributes
    ----------
    summary : str
        In one line.
    content : mapping or str
        What its ``to_dict`` gave, its numbers functions of the parameters.
    """

    summary: str
    content: Any

    def to_dict(self) -> Any:
        """Return the content."""
        return self.content

    def with_values(self, values: Values) -> StoredAnswer:
        """Return it as it is: texts keep their parameters."""
        return self


_reading: ContextVar[Case | None] = ContextVar("reading", default=None)


def case_of_numbers() -> Case | None:
    """Return the case to which the numbers belong that are read from plain data, if any."""
    return _reading.get()


def read_case_number(text: Any) -> sp.Expr:
    """Read an exact number of plain data, with the parameters of the case that is read."""
    case = _reading.get()
    return read_open_number(text, () if case is None else case.parameters)


def _read_leaf(
    content: Mapping[str, Any],
    parameters: tuple[sp.Symbol, ...],
    read: Callable[[Mapping[str, Any]], Any] | None,
) -> Leaf[Any]:
    case = Case.from_dict(content, parameters)
    answer, summary = content["answer"], str(content["summary"])
    if answer is None:
        return Leaf(case, None, summary)
    token = _reading.set(case)
    try:
        if read is not None:
            return Leaf(case, read(answer))
    finally:
        _reading.reset(token)
    if isinstance(answer, str) and answer.isdigit():
        return Leaf(case, int(answer))
    return Leaf(case, StoredAnswer(summary, answer))


@dataclass(frozen=True)
class Leaf(Generic[T]):
    """One case and the answer in it.

    Attributes
    ----------
    case : Case
    value : object or None
        The answer, its numbers functions of the parameters.
    reason : str
        Why there is no answer, if there is none: the target is constant there, for instance.
    """

    case: Case
    value: T | None
    reason: str = ""

    @property
    def plain(self) -> Any:
        """The answer as plain data."""
        value: Any = self.value
        return value.to_dict() if hasattr(value, "to_dict") else str(value)

    @property
    def summary(self) -> str:
        """The answer in one line."""
        if self.value is None:
            return self.reason
        if isinstance(self.value, int):
            explanation = getattr(self.value, "explanation", "")
            return f"{int(self.value)}  {explanation}".rstrip()
        return str(getattr(self.value, "summary", None) or repr(self.value))


@dataclass(frozen=True, repr=False)
class CaseTree(Page, Typeset, JsonDocument, Generic[T]):
    """What holds for which values of the parameters.

    Made by functions that are given a target with parameters.

    Attributes
    ----------
    subject : str
        What was asked.
    parameters : tuple of Symbol
    leaves : tuple of Leaf
        Disjoint cases that together hold all values for which the target is defined; the generic
        one, without equations, is first.

    Examples
    --------
    >>> from giantstep.symbolic.leaps.staircase import staircase
    >>> tree = staircase("x1 + a*x1*x2 + b*x2*x3", parameters="a b")
    >>> print(tree)
    staircase of x1 + a*x1*x2 + b*x2*x3, by the values of a, b
    a != 0, b != 0  {0} ⊂ ⟨e1⟩ ⊂ ⟨e1, e2⟩ ⊂ R^3, saturates
    a = 0, b != 0   {0} ⊂ ⟨e1⟩, stops
    b = 0, a != 0   {0} ⊂ ⟨e1⟩ ⊂ ⟨e1, e2⟩, saturates
    a = 0, b = 0    {0} ⊂ ⟨e1⟩, saturates
    >>> tree.at({"a": 0, "b": sp.Rational(1, 2)}).stuck_order
    2
    >>> [point for point, _ in tree.sample()][1:]
    [{a: 0, b: 12/7}, {a: 12/7, b: 0}, {a: 0, b: 0}]
    """

    _document = "tree of cases"

    subject: str
    parameters: tuple[sp.Symbol, ...]
    leaves: tuple[Leaf[T], ...]

    @property
    def generic(self) -> T | None:
        """The answer for parameters in general position."""
        return self.leaves[0].value

    @property
    def exceptional(self) -> tuple[Leaf[T], ...]:
        """The other cases, of values that meet an equation."""
        return self.leaves[1:]

    def leaf(self, values: Mapping[Any, Any]) -> Leaf[T]:
        """Return the case that values of the parameters belong to.

        Parameters
        ----------
        values : mapping
            An exact real number for each parameter, by symbol or by name.

        Raises
        ------
        ParameterError
            If a parameter is missing or unknown, a number is a float or contradicts what the symbol
            is declared with, or the target is not defined there.
        """
        at = self._checked(values)
        for leaf in self.leaves:
            if leaf.case.holds(at):
                return leaf
        raise ParameterError(f"the target is not defined at {_point_text(at)}")

    def at(self, values: Mapping[Any, Any]) -> T:
        """Return the answer at values of the parameters, with the numbers put in.

        Parameters
        ----------
        values : mapping
            As for :meth:`leaf`.

        Raises
        ------
        ParameterError
            As for :meth:`leaf`.
        AssumptionError
            If there is no answer, as for a target that is constant there.
        """
        at = self._checked(values)
        leaf = self.leaf(at)
        if leaf.value is None:
            raise AssumptionError(f"at {_point_text(at)}: {leaf.reason}")
        result: T = with_values(leaf.value, at)
        return result

    def sample(
        self, count: int = 1, *, seed: int = 0
    ) -> tuple[tuple[dict[sp.Symbol, sp.Expr], Leaf[T]], ...]:
        """Return exact values of the parameters of every case, with the case.

        Parameters
        ----------
        count : int
            Points of each case; fewer where a case has no more, or none that are found.
        seed : int
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ParameterError(f"count must be a whole number of at least 1, got {count!r}")
        return tuple(
            (point, leaf) for leaf in self.leaves for point in leaf.case.sample(count, seed=seed)
        )

    def _checked(self, values: Mapping[Any, Any]) -> dict[sp.Symbol, sp.Expr]:
        names = {x.name: x for x in self.parameters}
        known = ", ".join(names)
        if not isinstance(values, Mapping):
            raise ParameterError(
                f"values must be a mapping from parameters to numbers, got {values!r}"
            )
        result = {}
        for key, value in values.items():
            if str(key) not in names:
                raise ParameterError(f"values name {key}, which is no parameter; there are {known}")
            parameter = names[str(key)]
            number = require_exact(value, f"values[{key}]")
            if number.free_symbols or not _is_admissible(parameter, number):
                raise ParameterError(
                    f"values[{key}] must be a number of the kind that {key} is declared with "
                    f"({declared_kind(parameter)}), got {number}"
                )
            result[parameter] = number
        missing = [name for name, x in names.items() if x not in result]
        if missing:
            raise ParameterError(
                f"values have no {', '.join(missing)}; give one for each of {known}"
            )
        return result

    def page(self) -> Iterable[Block]:
        """Return the cases as a table."""
        yield f"{self.subject}, by the values of {', '.join(map(str, self.parameters))}"
        yield Table([(str(leaf.case), leaf.summary) for leaf in self.leaves])

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.parameters))
        return f"CaseTree({self.subject}: {len(self.leaves)} cases of {names})"

    def latex(self) -> str:
        """Return the cases in LaTeX, without delimiters."""
        lines = [f"{_latex_of(leaf)} & {leaf.case.latex()}" for leaf in self.leaves]
        return r"\begin{cases}" + r" \\ ".join(lines) + r"\end{cases}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "subject": self.subject,
            "parameters": [{"name": x.name, "kind": declared_kind(x)} for x in self.parameters],
            "cases": [
                {
                    **leaf.case.to_dict(),
                    "summary": leaf.summary,
                    "answer": None if leaf.value is None else leaf.plain,
                }
                for leaf in self.leaves
            ],
        }

    @classmethod
    def from_dict(
        cls, content: Mapping[str, Any], read: Callable[[Mapping[str, Any]], Any] | None = None
    ) -> CaseTree[Any]:
        """Return the tree that :meth:`to_dict` wrote.

        Parameters
        ----------
        content : mapping
        read : callable, optional
            Reads the answer of a case, as ``Staircase.from_dict`` does. By default answers are
            :class:`StoredAnswer`, and numbers where they are no more than that.

        Raises
        ------
        ExpressionError
            If the content is not what :meth:`to_dict` writes.

        Examples
        --------
        >>> from giantstep.symbolic.leaps.staircase import Staircase, staircase
        >>> tree = staircase("x1 + a*x1*x2", parameters="a")
        >>> again = CaseTree.from_dict(tree.to_dict(), Staircase.from_dict)
        >>> again.at({"a": 2}).saturates, again.to_dict() == tree.to_dict()
        (True, True)
        """
        try:
            kinds = {str(x["name"]): str(x["kind"]) for x in content["parameters"]}
            parameters = tuple(named_symbols(kinds).values())
            leaves = tuple(_read_leaf(part, parameters, read) for part in content["cases"])
            return cls(str(content["subject"]), parameters, leaves)
        except (LookupError, TypeError, ValueError) as error:
            if isinstance(error, ExpressionError):
                raise
            raise ExpressionError(
                "the content is not that of a tree of cases as to_dict writes it"
            ) from None


def _latex_of(leaf: Leaf[Any]) -> str:
    if isinstance(leaf.value, Typeset):
        return leaf.value.latex()
    return latex_text(leaf.summary)


def _point_text(values: Values) -> str:
    return ", ".join(f"{x} = {value}" for x, value in values.items())


def with_values(value: Any, values: Values) -> Any:
    """Return a result with numbers for its parameters."""
    if isinstance(value, sp.Basic):
        return value.xreplace(dict(values)) if value.free_symbols else value
    if isinstance(value, sp.MatrixBase):
        return value.xreplace(dict(values))
    if isinstance(value, tuple):
        return tuple(with_values(part, values) for part in value)
    if isinstance(value, Mapping):
        return {key: with_values(part, values) for key, part in value.items()}
    if hasattr(value, "with_values"):
        return value.with_values(values)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        return replace(value, **{name: with_values(part, values) for name, part in parts.items()})
    return value


def by_cases(start: Case, compute: Callable[[Case], T], subject: str) -> CaseTree[T]:
    """Run a computation, and run it again in both cases wherever a case leaves a question open.

    `start`: all values that are looked at. `compute`: the answer in a case; it asks the case by
    :meth:`Case.decide`. `subject`: what is computed. Raises UnsupportedExpressionError if there are
    more cases than a reader would read. Raises GiantstepError what the computation raises in all
    cases.
    """
    leaves: list[Leaf[T]] = []
    errors: list[GiantstepError] = []
    waiting = [start]
    while waiting:
        case = waiting.pop()
        token = _splitting.set(True)
        try:
            leaves.append(Leaf(case.tidied(), compute(case)))
        except Split as split:
            whole = split.case
            parts = (
                whole.where_all_vanish(split.polynomials),
                whole.where_some_do_not(split.polynomials),
            )
            if case in parts or whole in parts:
                raise UndecidedError(
                    f"{subject} is not decided where {case}: whether "
                    f"{', '.join(map(whole._text, split.polynomials))} vanish"
                ) from None
            waiting += [part for part in parts if not part.is_empty]
        except (AssumptionError, UndecidedError) as error:
            errors.append(error)
            leaves.append(Leaf(case.tidied(), None, str(error).partition("\n")[0]))
        finally:
            _splitting.reset(token)
        if len(leaves) + len(waiting) > _MOST_CASES:
            raise UnsupportedExpressionError(
                f"{subject} has more than {_MOST_CASES} cases; give values to some parameters"
            )
    if errors and all(leaf.value is None for leaf in leaves):
        raise errors[0]
    ordered = sorted(leaves, key=lambda leaf: len(leaf.case.equations))
    return CaseTree(subject, start.parameters, tuple(ordered))
