r"""Proven enclosures of formulas whose symbols stand for exact constants or roots of polynomials.

A formula of the theory is evaluated with balls in place of its symbols: balls of exact constants
(moments of an activation, decimal numbers), and of real roots of a polynomial whose coefficients
are such formulas. Precision is raised until the digits are proven.

Roots: ``acb_poly.roots`` of python-flint isolates all complex roots of every polynomial with
coefficients in the balls. Of those that may be real, one is proven real by a change of sign of the
polynomial between the ends of its isolating interval, and then narrowed by interval Newton steps

.. math:: X \leftarrow X \cap \Big(m - \frac{p(m)}{p'(X)}\Big), \qquad m \in X .

What is proven is what :mod:`.gaussian.enclosures` says of constants, plus the isolation of roots.

References
----------
F. Johansson, *Arb*, IEEE Trans. Comput. 66 (2017) 1281–1292; R. E. Moore, *Interval Analysis*
(1966), chapter 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import sympy as sp

from ...ball_library import require_flint
from ...errors import (
    AssumptionError,
    CertificationError,
    ConvergenceError,
    ParameterError,
    UnsupportedExpressionError,
)
from ..exact.ball_functions import Ball, BallEvaluator
from ..exact.enclosures import Enclosure
from .enclosures import (
    MAX_DIGITS,
    PRECISION,
    ConstantBalls,
    NotReached,
    bits_of,
    enclosure_of,
)
from .expectation import GaussianExpectation

_GUARD_BITS = 40
_ATTEMPTS = 6
_NEWTON_STEPS = 64
# Where signs stop to be looked for: two numbers that agree so far are not told apart.
_SIGN_DIGITS = 60


class FormulaBalls:
    """Formulas with exact constants and roots of polynomials for their symbols.

    `constants`: exact real constants without free symbols; infinity is allowed where the formulas
    have a limit by substitution. Raises MissingDependencyError if python-flint is not installed.
    Raises ParameterError if a constant holds a symbol.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> x, a = sp.symbols("x a")
    >>> formulas = FormulaBalls({a: sp.sqrt(2)})
    >>> print(formulas.enclosure(a**2 + 1, 10).contains(3), formulas.sign(a - 2))
    True -1
    >>> formulas.define_root(x, x**2 - a, above=sp.S.Zero)
    >>> formulas.enclosure(x**4, 20).contains(2)
    True
    """

    def __init__(self, constants: Mapping[sp.Symbol, sp.Expr]) -> None:
        self._flint = require_flint()
        for symbol, value in constants.items():
            if value.free_symbols:
                raise ParameterError(f"{symbol} has to be a number, not {str(value)[:100]}")
        plain = {s: v for s, v in constants.items() if v.is_Rational or v.is_infinite}
        self._plain: dict[sp.Symbol, sp.Expr] = plain
        self._constants = {s: ConstantBalls(v) for s, v in constants.items() if s not in plain}
        self._polynomials: dict[sp.Symbol, tuple[sp.Expr, sp.Expr | None, sp.Expr | None]] = {}
        self._nodes: dict[sp.Expr, sp.Symbol] = {}
        self._known: dict[tuple[sp.Symbol, int], Ball] = {}

    def define_root(
        self,
        symbol: sp.Symbol,
        polynomial: sp.Expr,
        *,
        above: sp.Expr | None = None,
        below: sp.Expr | None = None,
    ) -> None:
        """Let a symbol stand for the only root of a polynomial between two numbers.

        `symbol`: the variable of the polynomial. `polynomial`: polynomial in `symbol`; its
        coefficients are formulas. `above`, `below`: formulas: the root is larger, or smaller. That
        there is exactly one is proven when it is first used.
        """
        self._polynomials[symbol] = (polynomial, above, below)

    def enclosure(self, formula: sp.Expr, digits: int, *, most: int = MAX_DIGITS) -> Enclosure:
        """Return a proven enclosure of a formula; `most` bounds the digits.

        Raises CertificationError if it cannot be proven to so many digits; the message says what
        failed. Raises ParameterError if `digits` is out of range.
        """
        bits = bits_of(digits, most)
        expr = self._prepared(formula)
        if expr.is_Rational and not int(expr.q) & (int(expr.q) - 1):
            return Enclosure(expr, sp.S.Zero)
        with PRECISION:
            best = None
            for attempt in range(_ATTEMPTS):
                ball = self._evaluated(expr, (bits + _GUARD_BITS) * 2**attempt)
                if ball is None:
                    continue
                best = ball
                if self._is_narrow(ball, bits):
                    return enclosure_of(ball, formula)
        if best is None:
            raise CertificationError(f"{str(formula)[:100]} has no finite enclosure")
        raise CertificationError(
            f"{digits} digits of {str(formula)[:100]} are not proven; proven is {best.str(20)}"
        )

    def _is_narrow(self, ball: Ball, bits: int) -> bool:
        unit = self._flint.arb(2) ** -bits
        # All that balls can tell of a zero is that it is smaller than twice the digits.
        small = ball.contains(0) and ball.rad() <= unit * unit
        return bool(small or ball.rad() <= ball.abs_lower() * unit)

    def sign(self, formula: sp.Expr) -> int | None:
        """Return the proven sign of a formula, None if it agrees with zero to 60 digits."""
        expr = self._prepared(formula)
        if expr.is_Rational:
            return int(sp.sign(expr))
        with PRECISION:
            bits = _GUARD_BITS
            while bits <= 2 * bits_of(_SIGN_DIGITS):
                ball = self._evaluated(expr, bits)
                if ball is not None and not ball.contains(0):
                    return 1 if ball > 0 else -1
                bits *= 2
        return None

    def real_roots(self, symbol: sp.Symbol, polynomial: sp.Expr, digits: int) -> list[Enclosure]:
        """Return enclosures of all real roots of a polynomial, ascending; all are simple.

        Raises CertificationError if they cannot be isolated, as where two of them meet.
        """
        bits = bits_of(digits)
        with PRECISION:
            reason = "they are not narrow enough"
            for attempt in range(_ATTEMPTS):
                prec = (bits + _GUARD_BITS) * 2**attempt
                try:
                    result = self._roots(symbol, polynomial, prec)
                except _NotIsolated as failure:
                    reason = str(failure)
                    continue
                if all(self._is_narrow(root, bits) for root in result):
                    return [
                        enclosure_of(root, f"a root of {str(polynomial)[:80]}") for root in result
                    ]
        raise CertificationError(
            f"the real roots of a polynomial of degree {sp.degree(polynomial, symbol)} in {symbol} "
            f"are not proven: {reason}; two of them may meet at these parameters"
        )

    def define_roots(
        self, symbol: sp.Symbol, polynomial: sp.Expr, digits: int
    ) -> dict[sp.Symbol, Enclosure]:
        """Return new symbols that stand for the real roots of a polynomial, with enclosures.

        Parameters are those of :meth:`real_roots`, which gives the order and what is raised.
        """
        roots = self.real_roots(symbol, polynomial, digits)
        # Each is told from its neighbours by the middle between them.
        middles = [(low.midpoint + high.midpoint) / 2 for low, high in pairwise(roots)]
        result = {}
        for root, above, below in zip(roots, [None, *middles], [*middles, None], strict=True):
            place = sp.Dummy(symbol.name, real=True)
            self.define_root(place, polynomial.xreplace({symbol: place}), above=above, below=below)
            result[place] = root
        return result

    # ------------------------------------------------------------------ parts

    def _prepared(self, formula: sp.Expr) -> sp.Expr:
        """Put rational constants in, and symbols for expectations that are numbers."""
        nodes = {n for n in formula.atoms(GaussianExpectation) if not n.free_symbols}
        for node in nodes - self._nodes.keys():
            self._nodes[node] = symbol = sp.Dummy("E", real=True)
            self._constants[symbol] = ConstantBalls(node)
        return formula.xreplace({**self._plain, **{n: self._nodes[n] for n in nodes}})

    def _evaluated(self, expr: sp.Expr, prec: int) -> Ball | None:
        """Return a real ball, or None if it is not finite at this precision."""
        try:
            values = {
                s: self._ball(s, prec) for s in sorted(expr.free_symbols, key=lambda s: s.name)
            }
            with self._flint.ctx.workprec(prec):
                value = BallEvaluator(values).constant(expr)
        except _NotIsolated:
            return None
        except (UnsupportedExpressionError, ConvergenceError) as error:
            raise CertificationError(str(error)) from None
        if not value.is_finite():
            return None
        if not value.imag.contains(0):
            raise AssumptionError(f"{str(expr)[:100]} is not real")
        return value.real

    def _ball(self, symbol: sp.Symbol, prec: int) -> Ball:
        key = (symbol, prec)
        if key not in self._known:
            if symbol in self._constants:
                self._known[key] = self._constant(symbol, prec)
            elif symbol in self._polynomials:
                polynomial, above, below = self._polynomials[symbol]
                inside = []
                for root in self._roots(symbol, polynomial, prec):
                    if all(
                        self._is_beyond(root, end, side, prec)
                        for end, side in ((above, 1), (below, -1))
                    ):
                        inside.append(root)
                if len(inside) != 1:
                    raise CertificationError(
                        f"the equation of {symbol} has {len(inside)} roots where it should have one"
                    )
                self._known[key] = inside[0]
            else:
                raise ParameterError(f"symbol {symbol} of a formula has no value")
        return self._known[key]

    def _constant(self, symbol: sp.Symbol, prec: int) -> Ball:
        constant = self._constants[symbol]
        if constant.vanishes():
            return self._flint.arb(0)
        try:
            return constant.ball(prec)
        except NotReached as failure:
            raise CertificationError(f"{symbol} is not enclosed: {failure}") from None

    def _is_beyond(self, root: Ball, end: sp.Expr | None, side: int, prec: int) -> bool:
        if end is None:
            return True
        bound = self._evaluated(self._prepared(end), prec)
        if bound is None or root.overlaps(bound):
            raise _NotIsolated("a root is too close to the end of its range")
        return bool((root - bound) * side > 0)

    def _roots(self, symbol: sp.Symbol, polynomial: sp.Expr, prec: int) -> list[Ball]:
        """Return narrow balls of the real roots, ascending; every other root is not real."""
        flint = self._flint
        poly = sp.Poly(self._prepared(polynomial), symbol)
        if all(c.is_Rational for c in poly.all_coeffs()):
            poly = poly.sqf_part()
        coefficients = []
        for c in reversed(poly.all_coeffs()):
            ball = self._evaluated(sp.expand(c), prec)
            if ball is None:
                raise _NotIsolated("a coefficient has no finite enclosure")
            coefficients.append(ball)
        if coefficients[-1].contains(0):
            raise _NotIsolated("the leading coefficient may be zero")
        # A root that is exactly zero may be a multiple one.
        zeros = next(i for i, c in enumerate(coefficients) if c != 0 or not c.is_exact())
        coefficients = coefficients[zeros:]
        with flint.ctx.workprec(prec):
            real = flint.arb_poly(coefficients)
            try:
                # Narrow from the start: Newton's steps need a derivative without zeros in the box.
                boxes = flint.acb_poly(coefficients).roots(tol=flint.arb(2) ** (-prec // 4))
            except ValueError:
                raise _NotIsolated("they cannot be isolated at this precision") from None
            # A little wider: signs at the ends tell nothing where an end is the root.
            margin = flint.arb(2) ** (-prec // 2)
            intervals = [
                _outward(box.real + flint.arb(0, margin * (1 + box.real.abs_upper())))
                for box in boxes
                if box.imag.contains(0)
            ]
            if any(x.overlaps(y) for i, x in enumerate(intervals) for y in intervals[:i]):
                raise _NotIsolated("two of them are too close to each other")
            result = [_narrowed(flint, real, interval) for interval in intervals]
        if zeros:
            zero = flint.arb(0)
            if any(root.overlaps(zero) for root in result):
                raise _NotIsolated("one of them is too close to zero")
            result.append(zero)
        return sorted(result, key=lambda x: x.mid())


class _NotIsolated(Exception):
    """Roots, or a root and an end, cannot be told apart at this precision."""


def _outward(interval: Ball) -> Ball:
    """Return the interval between the rounded ends, which are where signs are looked at."""
    return interval.lower().union(interval.upper())


def _narrowed(flint: Any, polynomial: Any, interval: Ball) -> Ball:
    """Return a narrow ball of the root in an isolating interval, which is proven to be real."""
    ends = [polynomial(flint.arb(x)) for x in (interval.lower(), interval.upper())]
    if not ends[0] * ends[1] < 0:
        raise _NotIsolated("whether a root is real is not decided")
    slope = polynomial.derivative()
    for _ in range(_NEWTON_STEPS):
        middle = flint.arb(interval.mid())
        rate = slope(interval)
        if rate.contains(0):
            break
        step = middle - polynomial(middle) / rate
        narrower = step.intersection(interval)
        if narrower.rad() > interval.rad() * 0.9:
            break
        interval = narrower
    return interval
