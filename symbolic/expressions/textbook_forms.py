r"""Closed forms as a textbook prints them.

The rules for averages leave what they come by: :math:`2(1/2 - \mathrm{erf}(x)/2)`, an arctangent
of a root where the arcsine law has an arcsine of a quotient, exponentials that stand apart, roots
of roots. Here such a form is rewritten by identities that hold for all values of the parameters,
and the shortest one is taken:

.. math:: 1 - \mathrm{erf}\,x = \mathrm{erfc}\,x, \qquad 2\arctan t = \arccos\frac{1 - t^2}{1 + t^2}
          \quad (t \ge 0), \qquad \arccos x = \frac{\pi}{2} - \arcsin x.

Angles of algebraic numbers, and sums of two, are recognised as rational multiples of π by their
sines, by algebra after a guess by digits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import sympy as sp

from .factors import factored
from .functions import OwenT

_ARCS = (sp.asin, sp.acos, sp.atan)
# Sines of these fractions of π are roots of quadratics, or of such, that a reader knows.
_DENOMINATORS = (2, 3, 4, 5, 6, 8, 10, 12)
_GUESS_DIGITS = 40
# Minimal polynomials of more take long.
_MOST_RADICALS = 6
_MOST_TERMS = 60


def textbook_form(value: sp.Expr) -> sp.Expr:
    r"""Return an equal expression in the form in which it is usually printed.

    `value`: a closed form; anything else, and what is too long to gain by it, comes back as it is.

    Examples
    --------
    >>> a = sp.Symbol("a", real=True)
    >>> textbook_form(2 * (sp.S.Half - sp.erf(a) / 2) * sp.exp(sp.S.Half))
    exp(1/2)*erfc(a)
    >>> textbook_form(1 - 4 * sp.atan(1 / sp.sqrt(4 * a**2 + 1)) / sp.pi)
    2*asin(2*a**2/(2*a**2 + 1))/pi
    >>> textbook_form(sp.exp(-sp.S.Half) * sp.exp(-(a**2) / (2 - 2 * a**2)))
    exp(-1/(2 - 2*a**2))
    >>> root = sp.sqrt(5)
    >>> textbook_form(root * (1 - root / 5) / (sp.sqrt(sp.pi) * sp.sqrt(5 - root)))
    sqrt(1 - sqrt(5)/5)/sqrt(pi)
    """
    if value.is_Atom or len(sp.Add.make_args(value)) > _MOST_TERMS:
        return value
    for rewrite in (
        _with_short_roots,
        _with_joined_exponentials,
        with_arcsines,
        _with_short_angles,
        _with_known_angles,
        with_complementary_errors,
        _with_owen_pairs,
        _with_joined_logarithms,
    ):
        value = rewrite(value)
    return value


def _shorter(first: sp.Expr, *others: sp.Expr) -> sp.Expr:
    """Return the shortest expression, the first one among equals."""
    return min((first, *others), key=lambda e: (sp.count_ops(e), len(str(e))))


def with_arcsines(value: sp.Expr) -> sp.Expr:
    """Write angles by arcsines of rational numbers, as arcsine laws do, where that is shorter.

    Examples
    --------
    >>> with_arcsines(5 - 20 * sp.atan(sp.sqrt(5) / 5) / sp.pi)
    10*asin(2/3)/pi
    """
    angles = [a for a in value.atoms(sp.atan) if (a.args[0] ** 2).is_Rational and a.args[0] > 0]
    return _shorter(value, _in_terms(value, _by_arcsines(angles))) if angles else value


def _by_arcsines(angles: Iterable[sp.Expr]) -> dict[sp.Expr, sp.Expr]:
    # 2 atan(t) = arccos((1 - t²)/(1 + t²))
    squares = {a: a.args[0] ** 2 for a in angles}
    return {
        a: sp.pi / 4 - sp.asin(sp.cancel(sp.together((1 - t) / (1 + t)))) / 2
        for a, t in squares.items()
    }


def _with_short_angles(value: sp.Expr) -> sp.Expr:
    """Write angles with parameters by the function that leaves no multiple of π beside it."""
    cosines = {a: sp.pi / 2 - sp.asin(a.args[0]) for a in value.atoms(sp.acos)}
    tangents = value.atoms(sp.atan)
    inverse = {a: sp.pi / 2 - sp.atan(1 / a.args[0]) for a in tangents if a.args[0].is_positive}
    sines = _by_arcsines(a for a in tangents if a.args[0].is_nonnegative and a.free_symbols)
    rules = (rule for rule in (cosines, inverse, sines) if rule)
    return _shorter(value, *(_in_terms(value, rule) for rule in rules))


def _in_terms(value: sp.Expr, rule: dict[sp.Expr, sp.Expr]) -> sp.Expr:
    terms = (sp.expand_mul(t.xreplace(rule)) if t.has(*rule) else t for t in _terms(value))
    return sp.Add(*terms)


def _with_known_angles(value: sp.Expr) -> sp.Expr:
    """Write angles of numbers as multiples of π, and two of them as one, where they are."""
    arcs = [a for a in value.atoms(*_ARCS) if not a.free_symbols]
    known = {arc: _multiple_of_pi(arc) for arc in arcs}
    rule = {arc: angle for arc, angle in known.items() if angle is not None}
    if rule:
        value = _in_terms(value, rule)
    left = [arc for arc in arcs if arc not in rule]
    for first, second in itertools.combinations(sorted(left, key=sp.default_sort_key), 2):
        weight, other = _coefficient(value, first), _coefficient(value, second)
        if weight is None or other is None or weight == 0 or other not in (weight, -weight):
            continue
        ratio = other / weight
        total = _multiple_of_pi(first + ratio * second)
        if total is not None:
            value = sp.expand_mul(value.xreplace({first: total - ratio * second}))
    return value


def _terms(value: sp.Expr) -> tuple[sp.Expr, ...]:
    result: tuple[sp.Expr, ...] = sp.Add.make_args(value)
    return result


def _coefficient(value: sp.Expr, arc: sp.Expr) -> sp.Expr | None:
    """Return c of c*arc in a sum that is linear in it."""
    slopes = [t.as_independent(arc, as_Add=False) for t in _terms(value) if t.has(arc)]
    return sp.Add(*(c for c, rest in slopes)) if all(r == arc for _, r in slopes) else None


def _multiple_of_pi(angle: sp.Expr) -> sp.Expr | None:
    """Return q π if an angle of algebraic numbers is that for a simple rational q."""
    turns = sp.N(angle / sp.pi, _GUESS_DIGITS)
    if not isinstance(turns, sp.Float):
        return None
    for denominator in _DENOMINATORS:
        q = sp.Rational(sp.Integer(round(turns * denominator)), denominator)
        if abs(turns - q) > sp.Float(10) ** (10 - _GUESS_DIGITS):
            continue
        # Multiples of π lie further apart than the digits leave open.
        sine = sp.expand(sp.expand_trig(sp.sin(angle - q * sp.pi)))
        return q * sp.pi if _is_algebraic_zero(sine) else None
    return None


def _is_algebraic_zero(number: sp.Expr) -> bool:
    if not number.is_algebraic or len(number.atoms(sp.Pow)) > _MOST_RADICALS:
        return False
    x = sp.Dummy()
    return bool(sp.minimal_polynomial(number, x) == x)


def _with_short_roots(value: sp.Expr) -> sp.Expr:
    """Write algebraic factors with roots of sums as one root, or without one."""
    if not any(_is_nested(p) for p in value.atoms(sp.Pow)):
        return value
    return value.func(*map(_factors_with_short_roots, value.args)) if value.is_Add else (
        _factors_with_short_roots(value)
    )  # fmt: skip


def _is_nested(power: sp.Expr) -> bool:
    return bool(
        power.exp.is_Rational
        and not power.exp.is_Integer
        and power.base.is_Add
        and not power.free_symbols
        and power.base.is_algebraic
    )


def _factors_with_short_roots(term: sp.Expr) -> sp.Expr:
    factors = sp.Mul.make_args(term)
    algebraic = sp.Mul(*(f for f in factors if not f.free_symbols and f.is_algebraic))
    if not any(_is_nested(p) for p in algebraic.atoms(sp.Pow)):
        return term
    if not (algebraic.is_positive or algebraic.is_negative):
        return term
    others = sp.Mul(*(f for f in factors if f.free_symbols or not f.is_algebraic))
    square = sp.expand(sp.radsimp(sp.expand(algebraic**2)))
    whole = math.gcd(*(int(t.as_coeff_Mul()[0].p) for t in _terms(square)))
    outside = max(n for n in sp.divisors(whole) if whole % n**2 == 0)
    root = (1 if algebraic.is_positive else -1) * outside * sp.sqrt(square / outside**2)
    return others * _shorter(algebraic, sp.sqrtdenest(algebraic), root, sp.sqrtdenest(root))


def _with_joined_exponentials(value: sp.Expr) -> sp.Expr:
    """Write products of exponentials as one."""

    def joined(product: sp.Expr) -> sp.Expr:
        exponents = [f.exp for f in product.args if isinstance(f, sp.exp)]
        if len(exponents) < 2:
            return product
        rest = [f for f in product.args if not isinstance(f, sp.exp)]
        total = sp.Add(*exponents)
        # Write 1/(2*(a - 1)*(a + 1)) as -1/(2*(1 - a**2)): with a denominator that starts positive.
        numerator, denominator = factored(sp.cancel(total)).as_numer_denom()
        number, polynomial = sp.expand(denominator).primitive()
        if polynomial.is_Add and sp.Add.make_args(polynomial)[0].is_number:
            constant = polynomial.as_coeff_Add()[0]
            if constant.is_negative:
                numerator, polynomial = -numerator, sp.expand(-polynomial)
        whole = numerator / (number * polynomial)
        return sp.Mul(*rest, sp.exp(_shorter(total, whole), evaluate=False))

    return value.replace(lambda e: e.is_Mul, joined)


def with_complementary_errors(value: sp.Expr) -> sp.Expr:
    """Write c - c erf(x) as c erfc(x), and c + c erf(x) as c times a sum."""
    arguments = sorted({e.args[0] for e in value.atoms(sp.erf)}, key=sp.default_sort_key)
    if not arguments:
        return value
    # Arguments stay as they are.
    products = (sp.expand(term, deep=False) for term in _terms(value))
    terms = list(_terms(sp.Add(*products)))
    if len(terms) > _MOST_TERMS:
        return value
    done: list[sp.Expr] = []
    for x in arguments:
        terms, paired = _paired(terms, sp.erf(x), {-1: sp.erfc(x), 1: 1 + sp.erf(x)})
        done += paired
    return _shorter(value, sp.Add(*done, *terms))


def _paired(
    terms: list[sp.Expr], function: sp.Expr, sums: dict[int, sp.Expr]
) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """Join terms c with terms ±c f; return the others, and these."""
    left, done = list(terms), []
    collected: dict[sp.Expr, list[sp.Expr]] = {}
    for term in terms:
        c, rest = term.as_independent(function, as_Add=False)
        if rest != function:
            continue
        for sign, whole in sums.items():
            if sign * c in left:
                left.remove(sign * c)
                left.remove(term)
                collected.setdefault(whole, []).append(sign * c)
                break
    for whole, factors in collected.items():
        done.append(sp.factor_terms(sp.Add(*factors)) * whole)
    return left, done


def _with_owen_pairs(value: sp.Expr) -> sp.Expr:
    r"""Write T(h, 1) by error functions: Φ(h)Φ(-h)/2."""
    rule = {
        node: (1 - sp.erf(node.args[0] / sp.sqrt(2)) ** 2) / 8
        for node in value.atoms(OwenT)
        if node.args[1] == 1
    }
    return value.xreplace(rule) if rule else value


def _with_joined_logarithms(value: sp.Expr) -> sp.Expr:
    """Join logarithms of numbers, with the constant that stands beside them."""
    logs = [e for e in value.atoms(sp.log) if e.args[0].is_Rational]
    constants = [*logs, *([sp.EulerGamma] if value.has(sp.EulerGamma) else [])]
    if len(constants) < 2:
        return value
    primes = {e: sp.Add(*(n * sp.log(p) for p, n in sp.factorrat(e.args[0]).items())) for e in logs}
    by_primes = sp.expand_mul(value.xreplace(primes))
    forms = (by_primes, sp.logcombine(by_primes), *_squares_completed(value, constants))
    return _shorter(value, *forms, _grouped(value), sp.factor_terms(value))


def _grouped(value: sp.Expr) -> sp.Expr:
    """Write terms with one rational factor as a multiple of their sum."""
    groups: dict[sp.Expr, list[sp.Expr]] = {}
    for term in _terms(value):
        number, rest = term.as_coeff_Mul()
        groups.setdefault(number, []).append(rest)
    # SymPy multiplies a number into a sum unless told not to.
    parts = [
        sp.Mul(c, sp.Add(*rests), evaluate=len(rests) == 1 or c == 1) for c, rests in groups.items()
    ]
    return sp.Add(*parts)


def _squares_completed(value: sp.Expr, constants: Iterable[sp.Expr]) -> list[sp.Expr]:
    expanded = sp.expand(value)
    found = []
    for constant in constants:
        mark = sp.Dummy()
        polynomial = sp.Poly(expanded.xreplace({constant: mark}), mark)
        if polynomial.degree() != 2:
            continue
        a, b, c = (polynomial.coeff_monomial(mark**n) for n in (2, 1, 0))
        rest = sp.expand(c - b**2 / (4 * a))
        found.append(a * (constant + sp.expand(b / (2 * a))) ** 2 + rest)
    return found
