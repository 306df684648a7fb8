r"""The heat flow exp(tΔ/2) of polynomials, on elements of SymPy's sparse polynomial rings.

With ξ the variables of the ring and x standard normal,

.. math:: e^{t\Delta/2} p\,(\xi) = \mathbb{E}\,p(\xi + \sqrt t\,x), \qquad
          e^{t\Delta/2}\,\xi_i^n = \sum_j \frac{n!}{2^j j! (n-2j)!}\,t^j\,\xi_i^{n-2j}.

For t = 1 this leads from a function f to its *symbol* F(ξ) = E f(x + ξ), which has ξ^α where f has
He_α; for t = -1 it leads back. The constant term of F is the expectation of f.

Over QQ and over algebraic fields only integers are added and multiplied: common denominators are
taken out, and an element of QQ<θ> is a vector of rationals, on which the flow acts by itself. The
exponents of a monomial are the digits of one integer. That is as fast as python-flint up to some
10 000 terms; beyond, python-flint does the work where it is installed, with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from operator import mul
from typing import Any

import sympy as sp
from sympy.polys.rings import PolyElement

from ...errors import MissingDependencyError, ParameterError
from ..gaussian.hermite_polynomials import checked_order, pairings

# Below, turning the terms into those of python-flint and back takes as long as the flow itself;
# with 20 000 terms python-flint is 1.5 times as fast.
_TERMS_FOR_FLINT = 10_000


def heat_flow(
    element: PolyElement, time: sp.Rational | int = 1, *, use_flint: bool | None = None
) -> PolyElement:
    """Return exp(tΔ/2) of a polynomial, in the same ring.

    Parameters
    ----------
    element : PolyElement
        Element of a sparse ring, as ``sympy.ring`` gives it, over a field that contains QQ.
    time : int or Rational
        t, of either sign: 1 for the symbol of a function, -1 for the function of a symbol.
    use_flint : bool, optional
        Whether python-flint does it, which needs a ring over QQ. By default it does where it is
        installed and faster. The result is the same.

    Raises
    ------
    ParameterError
        If `element` is not of a sparse ring over a field, `time` not rational, or python-flint is
        demanded for another field than QQ.
    MissingDependencyError
        If python-flint is demanded and not installed.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> heat_flow(x**3 * y**2)
    x**3*y**2 + x**3 + 3*x*y**2 + 3*x
    >>> heat_flow(x**3, -1)
    x**3 - 3*x
    """
    domain = checked_element(element).ring.domain
    if isinstance(time, bool) or not isinstance(time, int | sp.Rational):
        raise ParameterError(f"time must be an int or a Rational, got {time!r}; give 1 or -1")
    time = sp.Rational(time)
    if time == 0 or not element:
        return element.copy()
    if _flint_is_faster(element) if use_flint is None else use_flint:
        return _flow_by_flint(element, time)
    if abs(time) == 1 and (domain.is_QQ or domain.is_Algebraic):
        return _flow_by_integers(element, int(time))
    return _flow_in_domain(element, time)


def symbol_of(element: PolyElement) -> PolyElement:
    """Return the symbol F = exp(Δ/2) f of a polynomial f; He_α becomes ξ^α.

    Examples
    --------
    >>> ring, x = sp.ring("x", sp.QQ)
    >>> symbol_of(x**4 - 6 * x**2 + 3)
    x**4
    """
    return heat_flow(element, 1)


def function_of(element: PolyElement) -> PolyElement:
    """Return the polynomial f = exp(-Δ/2) F of a symbol F; ξ^α becomes He_α.

    Examples
    --------
    >>> ring, x = sp.ring("x", sp.QQ)
    >>> function_of(x**2)
    x**2 - 1
    """
    return heat_flow(element, -1)


def gaussian_moment(exponents: int | Sequence[int]) -> int:
    r"""Return :math:`\mathbb{E}[x^\alpha]` of independent standard normal variables.

    `exponents`: α; an integer is an exponent of a single variable. The result: Π (α_i - 1)!! if all
    α_i are even, else 0.

    Examples
    --------
    >>> gaussian_moment(4), gaussian_moment((2, 4)), gaussian_moment((1, 2))
    (3, 3, 0)
    """
    alpha = exponents if isinstance(exponents, Sequence) else (exponents,)
    orders = [checked_order(n, f"exponents[{i}]") for i, n in enumerate(alpha)]
    return 0 if any(n % 2 for n in orders) else math.prod(_even_moment(n) for n in orders)


def gaussian_mean(element: PolyElement) -> Any:
    """Return the expectation of a polynomial in standard normal variables, in its domain.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> gaussian_mean((x + 2 * y) ** 4) == 75
    True
    """
    domain = checked_element(element).ring.domain
    even = [
        (monomial, coefficient)
        for monomial, coefficient in element.items()
        if not any(n % 2 for n in monomial)
    ]
    if domain.is_QQ:
        numbers, common = integers([c for _, c in even])
        moments = (math.prod(map(_even_moment, m)) for m, _ in even)
        return domain(sum(map(mul, numbers, moments)), common)
    return sum((c * domain.convert(math.prod(map(_even_moment, m))) for m, c in even), domain.zero)


def checked_element(element: PolyElement) -> PolyElement:
    """Return `element` if it is of a sparse ring over an exact field of characteristic 0.

    Examples
    --------
    >>> ring, x = sp.ring("x", sp.RR)
    >>> checked_element(x)
    Traceback (most recent call last):
        ...
    giantstep.errors.ParameterError: element must be of a sparse polynomial ring over an exact \
field, got x over RR; make one with sympy.ring('x, y', QQ)
    """
    domain = element.ring.domain if isinstance(element, PolyElement) else None
    # SymPy's domain EX compares expressions by their form only.
    if domain is None or not (domain.is_Field and domain.is_Exact) or domain.is_FF or domain.is_EX:
        over = "" if domain is None else f" over {domain}"
        raise ParameterError(
            "element must be of a sparse polynomial ring over an exact field, got "
            f"{element!r}{over}; make one with sympy.ring('x, y', QQ)"
        )
    return element


@cache
def _even_moment(n: int) -> int:
    """Return (n-1)!!, the moment of an even order."""
    return math.prod(range(1, n, 2))


@cache
def _flint() -> Any | None:
    """Return the module of python-flint, or None where it is not installed."""
    try:
        import flint  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    return flint


@cache
def _signed_pairings(n: int, sign: int) -> list[int]:
    return [sign**j * count for j, count in enumerate(pairings(n))]


def _flint_is_faster(element: PolyElement) -> bool:
    domain = element.ring.domain
    if not domain.is_QQ or len(element) < _TERMS_FOR_FLINT:
        return False
    flint = _flint()
    # With SYMPY_GROUND_TYPES=python every coefficient would be converted twice.
    return flint is not None and domain.dtype is flint.fmpq


def _flow_by_flint(element: PolyElement, time: sp.Rational) -> PolyElement:
    """Sum (tΔ/2)^k/k! p over k; only for QQ."""
    flint, ring = _flint(), element.ring
    if flint is None:
        raise MissingDependencyError(
            "use_flint=True needs python-flint, which is not installed; run "
            "'pip install python-flint' or leave use_flint out"
        )
    if not ring.domain.is_QQ:
        raise ParameterError(
            f"use_flint=True needs a ring over QQ, and this one is over {ring.domain}; leave it out"
        )
    names = tuple(f"x{i}" for i in range(ring.ngens))
    context = flint.fmpq_mpoly_ctx.get(names, flint.Ordering.lex)
    same = ring.domain.dtype is flint.fmpq
    term = context.from_dict(
        dict(element)
        if same
        else {m: flint.fmpq(int(c.numerator), int(c.denominator)) for m, c in element.items()}
    )
    total, step = term, flint.fmpq(int(time.p), 2 * int(time.q))
    for k in range(1, max(map(sum, element)) // 2 + 1):
        second = (term.derivative(i).derivative(i) for i in range(ring.ngens))
        term = sum(second, context.constant(0)) * (step / k)
        total += term
    if same:
        return ring.from_dict(total.to_dict())
    return ring.from_dict(
        {m: ring.domain(int(c.numerator), int(c.denominator)) for m, c in total.to_dict().items()}
    )


def _flow_by_integers(element: PolyElement, sign: int) -> PolyElement:
    """Flow each coordinate of the coefficients, times their common denominator."""
    ring, domain = element.ring, element.ring.domain
    highest = max(map(max, element))
    bits = max(1, highest.bit_length())
    rows = [_signed_pairings(n, sign)[1:] for n in range(highest + 1)]
    places = [1 << bits * i for i in range(ring.ngens)]
    keys = [sum(map(mul, monomial, places)) for monomial in element]
    coefficients = list(element.values())
    if domain.is_QQ:
        numbers, common = integers(coefficients)
        terms = dict(zip(keys, numbers, strict=True))
        flowed = _flow_of_integers(terms, rows, bits, ring.ngens)
        new, rational = {}, domain.dtype
        for key, value in flowed.items():
            # The terms of the two highest degrees stay what they are.
            if value and value != terms.get(key):
                new[key] = rational(value, common)
    else:
        vectors = [c.to_list()[::-1] for c in coefficients]
        length = max(map(len, vectors))
        lists: dict[int, list[Any]] = {}
        for power in range(length):
            members = [i for i, vector in enumerate(vectors) if len(vector) > power]
            numbers, common = integers([vectors[i][power] for i in members])
            terms = dict(zip((keys[i] for i in members), numbers, strict=True))
            flowed = _flow_of_integers(terms, rows, bits, ring.ngens)
            for key, value in flowed.items():
                vector = lists.setdefault(key, [domain.dom.zero] * length)
                vector[length - 1 - power] = domain.dom(value, common)
        new = {key: domain(vector) for key, vector in lists.items() if any(vector)}
        flowed = {key: int(key in new) for key in lists}
    result = ring.zero
    for key, monomial, c in zip(keys, element, coefficients, strict=True):
        if flowed[key]:
            result[monomial] = new.pop(key, c)
    for key, value in new.items():
        result[unpacked(key, bits, ring.ngens)] = value
    return result


def unpacked(key: int, bits: int, size: int) -> tuple[int, ...]:
    """Return exponents that are packed into one integer, so many bits each, the first lowest."""
    mask = (1 << bits) - 1
    return tuple(key >> bits * i & mask for i in range(size))


def integers(rationals: list[Any]) -> tuple[list[int], int]:
    """Return the numerators over the common denominator, and that."""
    denominators = [int(c.denominator) for c in rationals]
    common = math.lcm(*denominators)
    numbers = [
        int(c.numerator) * (common // d) for c, d in zip(rationals, denominators, strict=True)
    ]
    return numbers, common


def _flow_of_integers(
    terms: dict[int, int], rows: list[list[int]], bits: int, variables: int
) -> dict[int, int]:
    """Flow a polynomial {packed exponents: integer}, one variable after the other."""
    mask = (1 << bits) - 1
    for shift in range(0, bits * variables, bits):
        flowed = terms.copy()
        get = flowed.get
        step = 2 << shift
        for key, value in terms.items():
            for count in rows[key >> shift & mask]:
                key -= step
                flowed[key] = get(key, 0) + count * value
        terms = flowed
    return terms


def _flow_in_domain(element: PolyElement, time: sp.Rational) -> PolyElement:
    """Flow with the arithmetic of the domain, whatever it is."""
    ring, domain = element.ring, element.ring.domain
    t = domain.convert_from(sp.QQ(int(time.p), int(time.q)), sp.QQ)
    terms = dict(element)
    for i in range(ring.ngens):
        flowed: dict[tuple[int, ...], Any] = {}
        for monomial, value in terms.items():
            power = domain.one
            for j, count in enumerate(pairings(monomial[i])):
                target = (*monomial[:i], monomial[i] - 2 * j, *monomial[i + 1 :])
                change = domain.convert(count) * power * value
                flowed[target] = flowed.get(target, domain.zero) + change
                power *= t
        terms = flowed
    return ring.from_dict(terms)
