r"""Fields for all constants of a target, with pivots that are proven not to be zero.

Constants that no exact field knows, such as :math:`\mathbb{E}\tanh'(z)`, erf(1) or log 2, become
formal generators: computations with them are right for all values they could have, so that a formal
zero is a zero. That a formal element is none needs its value: an interval that excludes zero
(:mod:`.constant_enclosures`, or balls of python-flint for expectations), or terms of one sign. The
same holds for π together with e. Numbers and subspaces are read from plain data too, with
expectations as they print, ``E_z[z*tanh(z)]``, which texts of users may not hold.
"""

from __future__ import annotations

import functools
import itertools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import sympy as sp

from ...errors import (
    ExpressionError,
    GiantstepError,
    MissingDependencyError,
)
from ..exact.constant_enclosures import NoEnclosure, enclosure
from ..exact.fields import formal_field, formal_generators, independence_is_proved
from ..expressions.averages import Average
from ..expressions.regularity import Parity
from ..gaussian.enclosures import enclosed_value
from ..gaussian.zero_test import is_zero_by_structure
from .cases import Case, case_of_numbers, read_case_number
from .parameter_functions import sign_of_average
from .subspaces import Element, Subspace

T = TypeVar("T")

_BITS = (100, 400, 1600)
# Balls of expectations take a second each beyond.
_BITS_OF_BALLS = (100, 250)
_DIGITS_PER_BIT = 0.2


class Certifier:
    """Decides whether elements of a domain are zero; never guesses.

    `case`: where generators are parameters, the values that are looked at. `is_exact`: whether in
    the field a formal zero is the only zero. `used_enclosures`: whether an answer rests on an
    interval. `needs_flint`: whether an answer could not be given because python-flint is not
    installed.
    """

    def __init__(self, field: Any, case: Case | None = None) -> None:
        self.field, self.case = field, case
        self.is_exact = independence_is_proved(field)
        self.used_enclosures = False
        self.needs_flint = False
        self._known: dict[Any, bool | None] = {}
        self._intervals: dict[int, dict[Any, Any]] = {}

    def numerator_vanishes(self, numerator: Any) -> bool | None:
        """Return whether a polynomial in the generators is zero; None if that is not known."""
        if not numerator:
            return True
        if self.is_exact or numerator.is_ground:
            return False
        if self.case is not None:
            self.used_enclosures |= bool(set(self._constants))
            return self.case.vanish([self.expression(numerator)])
        if numerator not in self._known:
            self._known[numerator] = self._decided(numerator)
        return self._known[numerator]

    def _decided(self, numerator: Any) -> bool | None:
        try:
            if self._has_one_sign(numerator):
                self.used_enclosures = True
                return False
            for bits in self._precisions:
                if excludes_zero(self.interval(numerator, bits)):
                    self.used_enclosures = True
                    return False
        except NoEnclosure:
            return None
        expression = self.field.to_sympy(self.field(numerator))
        return True if is_zero_by_structure(expression) else None

    def expression(self, numerator: Any) -> sp.Expr:
        """Return a polynomial in the generators as an expression."""
        return sp.expand(self.field.to_sympy(self.field(numerator)))

    @property
    def _constants(self) -> list[sp.Expr]:
        """Generators that are numbers of which nothing but their value is known."""
        return [g for g in formal_generators(self.field) if not g.free_symbols]

    @functools.cached_property
    def _precisions(self) -> tuple[int, ...]:
        has_balls = any(generator.has(Average) for generator in self.field.symbols)
        return _BITS_OF_BALLS if has_balls else _BITS

    def interval(self, numerator: Any, bits: int = _BITS[0]) -> Any:
        """Return an interval that holds the value of a polynomial in the generators.

        Raises NoEnclosure if a generator has none.
        """
        if numerator not in self._intervals.setdefault(bits, {}):
            total = enclosure(sp.S.Zero, bits)
            for monomial, c in numerator.items():
                term = self._ground(c, bits)
                for generator, n in zip(self.field.symbols, monomial, strict=True):
                    if n:
                        term = term * _power(self._value(generator, bits), n)
                total = total + term
            self._intervals[bits][numerator] = total
        return self._intervals[bits][numerator]

    def _value(self, generator: sp.Expr, bits: int) -> Any:
        try:
            return enclosed_number(generator, bits)
        except MissingDependencyError as error:
            self.needs_flint = True
            raise NoEnclosure(str(error)) from None

    def _ground(self, c: Element, bits: int) -> Any:
        inner = self.field.domain
        if inner.is_QQ:
            return enclosure(inner.to_sympy(c), bits)
        theta = self._value(inner.ext.as_expr(), bits)
        value = enclosure(sp.S.Zero, bits)
        for rational in c.to_list():
            value = value * theta + enclosure(sp.QQ.to_sympy(rational), bits)
        return value

    def _has_one_sign(self, numerator: Any) -> bool:
        """Whether all terms have the same sign, known without any enclosure of an expectation."""
        result = set()
        for monomial, c in numerator.items():
            sign = sign_of(self._ground(c, _BITS[0]))
            for generator, n in zip(self.field.symbols, monomial, strict=True):
                if n:
                    sign *= known_sign(generator) ** n
            result.add(sign)
        return len(result) == 1 and 0 not in result


def excludes_zero(interval: Any) -> bool:
    """Whether an interval proves that a number is not zero."""
    return bool(interval > 0) or bool(interval < 0)


def sign_of(interval: Any) -> int:
    """Return the sign of all numbers of an interval, 0 if they have none in common."""
    return int(bool(interval > 0)) - int(bool(interval < 0))


def _power(value: Any, n: int) -> Any:
    """Return a power; intervals have no method for it that is right at all signs."""
    result = value
    for _ in range(n - 1):
        result = result * value
    return result


@functools.lru_cache(maxsize=1024)
def enclosed_number(number: sp.Expr, bits: int) -> Any:
    """Return an interval that holds a constant, expectations included.

    Raises NoEnclosure if there is none. Raises MissingDependencyError if there is none without
    python-flint.
    """
    try:
        return enclosure(number, bits)
    except NoEnclosure:
        pass
    # Imported here because it needs the activations, which read their texts by the parser.
    try:
        result = enclosed_value(number, digits=max(15, int(bits * _DIGITS_PER_BIT)))
    except MissingDependencyError:
        raise
    except GiantstepError as error:
        raise NoEnclosure(str(error)) from None
    zero = enclosure(sp.S.Zero, bits)
    ends = [enclosure(end, bits) for end in (result.lower, result.upper)]
    return type(zero).ctx.mpf([ends[0].a, ends[1].b])


@functools.lru_cache(maxsize=1024)
def known_sign(number: sp.Expr) -> int:
    r"""Return the sign of a constant if that is plain; for an expectation, of its integrand.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> from giantstep.symbolic.gaussian.expectation import GaussianExpectation
    >>> known_sign(GaussianExpectation(z * sp.tanh(z), z)), known_sign(sp.log(2) - 1)
    (1, -1)
    """
    if not isinstance(number, Average):
        try:
            return sign_of(enclosure(number, _BITS[0]))
        except (NoEnclosure, TypeError):
            return 0
    sign, divisor = sign_of_average(number)
    return sign if divisor == 1 else 0


def read_subspace(content: Mapping[str, Any]) -> Subspace:
    """Return the subspace that `Subspace.to_dict` wrote, with whatever numbers."""
    dimension = int(content["ambient_dimension"])
    rows = [[read_case_number(entry) for entry in row] for row in content["basis"]]
    if dimension < 1 or any(len(row) != dimension for row in rows):
        raise ExpressionError(f"a basis has to have rows of {dimension} numbers, got {rows}")
    return spanned(rows, dimension, case_of_numbers())


def in_atoms(subspace: Subspace) -> Subspace:
    """Return the same subspace over a field whose generators are no sums, products or quotients.

    Only then are entries reduced, and subspaces over different fields compared, as numbers.
    """
    generators = getattr(subspace.field, "symbols", ())
    if not any(g.is_Add or g.is_Mul for g in generators):
        return subspace
    return spanned(subspace.basis, subspace.ambient_dimension, subspace.case)


def spanned(
    rows: Sequence[Sequence[sp.Expr]], dimension: int, case: Case | None = None
) -> Subspace:
    """Return the span of vectors of numbers of any kind, with parameters in a case of them."""
    field, elements = formal_field(entry for row in rows for entry in row)
    split = (elements[i * dimension : (i + 1) * dimension] for i in range(len(rows)))
    return Subspace.from_elements(split, field, dimension, case)


def read_data(kind: Any, content: Any) -> Any:
    """Return a value of a type from plain data, dataclasses by the annotations of their fields."""
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if types.NoneType in of:
        return None if content is None else read_data(of[0], content)
    if origin is tuple:
        each = itertools.repeat(of[0], len(content)) if of[-1] is Ellipsis else of
        return tuple(itertools.starmap(read_data, zip(each, content, strict=True)))
    if kind is Subspace:
        return read_subspace(content)
    if kind is sp.Expr:
        return read_case_number(content)
    if issubclass(kind, Parity):
        return kind[content]
    if is_dataclass(kind):
        result = {}
        for f in fields(kind):
            hint = typing.get_type_hints(kind)[f.name]
            # A result that has no entry stands, with its entries, among those of the whole.
            inside = is_dataclass(hint) and f.name not in content
            result[f.name] = read_data(hint, content if inside else content[f.name])
        return typing.cast(Any, kind)(**result)
    return kind(content)


def reading(what: str, read: Callable[[], T]) -> T:
    """Return what is read from plain data; what cannot be is an ExpressionError that names it."""
    try:
        return read()
    except (LookupError, TypeError, ValueError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(f"the content is not that of {what} as to_dict writes it") from None
