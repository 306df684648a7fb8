r"""Proven enclosures of Gaussian expectations, Hermite coefficients and exact constants.

For :math:`\mathbb{E} f(z)`, z ~ N(0, 1), the line is cut at the kinks of f, where relu, abs, sign
and steps change their analytic branch, and at a cutoff L. Candidates for kinks are the exact real
zeros and poles of arguments; balls prove their order and the sign of every argument between them.
Inside, each branch times the density is integrated by ``acb.integral`` of python-flint
(Gauss–Legendre rules with proven error bounds, adaptive). Outside, \|f\| is bounded from its
structure and the mass of the bound is added to the radius (:mod:`.tail_analysis`). Hermite
coefficients :math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]` are divided by neither k! nor its
root. What is proven: the number lies in the interval, if python-flint (Arb) computes correct
enclosures, if SymPy is right about assumptions that it derives and about real roots of polynomials,
and if the structural rules for kinks and tails are right. The integrand has to be real on the line
and bounded between its kinks; it is refused as soon as an imaginary part is seen. Precision is
raised until the radius is below :math:`2^{-\text{bits}}` of the number, or
:math:`2^{-2\,\text{bits}}` of the size of what is summed where the number may be zero: balls never
prove that a number is 0. Whoever asks for balls holds the lock of python-flint's precision.

References
----------
F. Johansson, *Numerical integration in arbitrary-precision ball arithmetic*, arXiv:1802.07942;
F. Johansson, *Arb*, IEEE Trans. Comput. 66 (2017) 1281–1292.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ...ball_library import require_flint
from ...digits import MOST_DIGITS
from ...errors import (
    AssumptionError,
    ConvergenceError,
    ParameterError,
    UndecidedError,
    UnsupportedExpressionError,
)
from ...one_thread import ONE_THREAD
from ..exact.ball_functions import Ball, BallEvaluator
from ..exact.enclosures import MAX_EXPONENT, Enclosure
from ..expressions._singularities import expanded, find_kinks, has_nonsmooth, resolved
from ..expressions.activations import Activation, activation, z
from ..expressions.functions import relu, sigmoid, softplus
from ..expressions.piecewise_polynomials import in_order, without_extrema
from ..expressions.regularity import Parity, analyse
from .expectation import GaussianExpectation
from .hermite_polynomials import hermite_polynomial
from .tail_analysis import TailBound, cutoff_for, tail_bound

# Where arguments are looked at, as fractions of a piece or distances from its only end.
_FRACTIONS = (sp.S.Half, sp.Rational(3, 7), sp.Rational(7, 11))
_DISTANCES = (sp.Rational(8, 7), sp.Rational(17, 11), sp.Rational(31, 3))


@dataclass(frozen=True)
class Branch:
    """An expression without kinks that a function is equal to between two points.

    `expr`: the expression, analytic or with the singularities that the function itself has there.
    `left`, `right`: the ends; None for infinity.
    """

    expr: sp.Expr
    left: sp.Expr | None
    right: sp.Expr | None


def analytic_branches(
    f: sp.Expr, variable: sp.Symbol, evaluator: BallEvaluator, *, cut_at_zero: bool = False
) -> list[Branch]:
    """Return the branches of a function from left to right; they cover the line.

    Parameters
    ----------
    f : Expr
        Function of `variable`; its other symbols are constants that `evaluator` knows.
    variable : Symbol
        Declared real.
    evaluator : BallEvaluator
        For points and signs, at the precision that is set.
    cut_at_zero : bool
        Whether 0 has to be an end of a branch.

    Raises
    ------
    UnsupportedExpressionError
        If kinks cannot be located.
    AssumptionError
        If the function is infinite on a whole branch, as 1/relu(z) is.
    UndecidedError
        If the order of two of them or a sign between them cannot be proven.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> z = sp.Symbol("z", real=True)
    >>> [branch.expr for branch in analytic_branches(abs(z - 1), z, BallEvaluator())]
    [1 - z, z - 1]
    """
    f = without_extrema(f)
    points = list(find_kinks(f, variable)[0])
    if cut_at_zero:
        points.insert(0, sp.S.Zero)  # first: of equal points the first is kept
    ends = [None, *in_order(points, functools.partial(_compared, evaluator)), None]
    return [
        Branch(_resolved(f, variable, left, right, evaluator), left, right)
        for left, right in itertools.pairwise(ends)
    ]


def _compared(evaluator: BallEvaluator, first: sp.Expr, second: sp.Expr) -> int:
    """Return the proven sign of first - second."""
    a, b = evaluator.real_constant(first), evaluator.real_constant(second)
    if a < b or a > b:
        return -1 if a < b else 1
    if first == second or (first - second).equals(0):
        return 0
    raise UndecidedError(f"whether the kinks at {first} and {second} differ cannot be decided")


def _resolved(
    f: sp.Expr,
    variable: sp.Symbol,
    left: sp.Expr | None,
    right: sp.Expr | None,
    evaluator: BallEvaluator,
) -> sp.Expr:
    """Replace kinked functions by the branches that hold between two points."""
    shown, inside = f, _points_inside(left, right, evaluator)
    f = resolved(f, variable, lambda u: _sign(u, variable, inside, evaluator))
    if f.has(sp.zoo, sp.nan):
        raise AssumptionError(
            f"{str(shown)[:100]} is infinite or undefined between "
            f"{'-oo' if left is None else left} and {'oo' if right is None else right}; "
            "its expectation does not exist"
        )
    return f


def _points_inside(
    left: sp.Expr | None, right: sp.Expr | None, evaluator: BallEvaluator
) -> list[Ball]:
    number = evaluator.real_constant
    if left is None and right is None:
        return [number(x) for x in _DISTANCES]
    if right is None:
        return [number(left) + number(x) for x in _DISTANCES]
    if left is None:
        return [number(right) - number(x) for x in _DISTANCES]
    return [number(left) + (number(right) - number(left)) * number(x) for x in _FRACTIONS]


def _sign(
    argument: sp.Expr, variable: sp.Symbol, inside: list[Ball], evaluator: BallEvaluator
) -> sp.Expr:
    if expanded(argument) == 0:
        return sp.S.Zero
    function = evaluator.function(argument, variable)
    # Another point, because the first may be a zero that is no kink, as 0 in relu(z) - relu(-z).
    for point in inside:
        value = function(evaluator.flint.acb(point), False)
        if not value.imag.contains(0):
            raise UnsupportedExpressionError(
                f"{argument}, argument of a kinked function, is not real"
            )
        if value.real > 0 or value.real < 0:
            return sp.S.One if value.real > 0 else sp.S.NegativeOne
    raise UndecidedError(f"the sign of {argument} between the kinks cannot be decided")


_GUARD_BITS = 32
# Extra bits of a goal, so that the radius does not miss it by a little.
_SPARE_BITS = 8
_ATTEMPTS = 5
# The size of an integrand is looked at with few bits at as many points of each branch.
_SAMPLES, _SAMPLING_BITS = 24, 64
_STRUCTURE_BITS = 128
# Enough for hundreds of panels of the highest degree; a singularity needs infinitely many.
_EVALUATIONS, _EVALUATIONS_PER_BIT = 20_000, 200


class NotReached(Exception):
    """The radius that was asked for is not reached; `best` is the best ball, or None."""

    def __init__(self, reason: str, best: Ball = None) -> None:
        super().__init__(reason)
        self.best = best


class ConstantBalls:
    """A constant expression; its expectations are computed to the precision that it needs."""

    def __init__(self, expr: sp.Expr) -> None:
        self._flint = require_flint()
        self._given = expr
        self._expr, self._inner = _without_expectations(expr)

    def vanishes(self) -> bool:
        """Whether a factor of the constant is an expectation that is zero by parity."""
        factors = sp.Mul.make_args(self._expr)
        return any(f in self._inner and self._inner[f].vanishes(0) for f in factors)

    def ball(self, bits: int) -> Ball:
        """Return a ball of `bits` bits."""
        best = None
        for attempt in range(_ATTEMPTS):
            result, size = self._attempt((bits + _GUARD_BITS) * 2**attempt)
            if _is_reached(result, size, bits):
                return result
            best = result if result.is_finite() else best
        raise NotReached("rounding errors stay too large", best)

    def _attempt(self, prec: int) -> tuple[Ball, Ball]:
        result = {symbol: moments.ball(0, prec) for symbol, moments in self._inner.items()}
        sizes = {symbol: size for symbol, (_, size) in result.items()}
        with self._flint.ctx.workprec(prec):
            evaluator = BallEvaluator({symbol: ball for symbol, (ball, _) in result.items()})
            value = evaluator.constant(self._expr)
            size = _magnitude(self._expr, evaluator, sizes)
        if value.is_finite() and not value.imag.contains(0):
            raise AssumptionError(f"{str(self._given)[:100]} is not real")
        return value.real, size


class MomentBalls:
    """E[f(z) He_k(z)] for one function f of a standard Gaussian variable z."""

    def __init__(self, f: sp.Expr, variable: sp.Symbol) -> None:
        self._flint = require_flint()
        self._variable = variable
        self._f, self._inner = _without_expectations(f)
        self._parity = analyse(self._f, variable).parity
        # One half-line is enough where f He_k is even; where it is odd, it proves finiteness.
        symmetric = self._parity is not Parity.NEITHER
        self._directions = (1,) if symmetric else (-1, 1)
        with self._flint.ctx.workprec(_STRUCTURE_BITS):
            evaluator = BallEvaluator(self._values(_STRUCTURE_BITS))
            branches = analytic_branches(self._f, variable, evaluator, cut_at_zero=symmetric)
        start = [branch.left for branch in branches].index(sp.S.Zero) if symmetric else 0
        self._branches = branches[start:]
        self._known: dict[tuple[int, int], tuple[Ball, Ball]] = {}

    def vanishes(self, k: int) -> bool:
        """Whether the moment is zero by parity; that f is integrable is proven first."""
        return self._parity is (Parity.ODD, Parity.EVEN)[k % 2] and self._is_integrable

    @functools.cached_property
    def _is_integrable(self) -> bool:
        # A finite ball means that f is bounded up to the cutoff; He_k changes nothing about that.
        self._attempt(0, _STRUCTURE_BITS, _GUARD_BITS)
        return True

    def ball(self, k: int, bits: int) -> tuple[Ball, Ball]:
        """Return a ball of `bits` bits for the k-th moment, and the size of f He_k."""
        if self.vanishes(k):
            return self._flint.arb(0), self._flint.arb(0)
        if (k, bits) not in self._known:
            self._known[k, bits] = self._refined(k, bits)
        return self._known[k, bits]

    def _refined(self, k: int, bits: int) -> tuple[Ball, Ball]:
        goal = bits + _SPARE_BITS
        prec = goal + _GUARD_BITS
        best = None
        for _ in range(_ATTEMPTS):
            result, size = self._attempt(k, prec, goal)
            if _is_reached(result, size, bits):
                return result, size
            if best is not None and result.rad() > size:
                break  # more bits do not help where subdivision has not converged
            if best is None or result.rad() < best.rad():
                best = result
            # What cancels in the sum has to be paid for, but at most once more the bits asked for.
            cancelled = min(bits, _bits_between(size, result.abs_lower(), bits))
            wanted = bits + _SPARE_BITS + cancelled
            missed = _bits_between(result.rad(), size * self._flint.arb(2) ** -goal, bits)
            goal, prec = wanted, max(wanted + _GUARD_BITS, prec + missed + _SPARE_BITS)
        raise NotReached("the radius stays too large: the integrand varies too fast", best)

    def _attempt(self, k: int, prec: int, goal: int) -> tuple[Ball, Ball]:
        """Return a ball with a radius of about 2**-goal times the size, and the size."""
        values = self._values(prec)
        with self._flint.ctx.workprec(prec):
            evaluator = BallEvaluator(values)
            number, arb = evaluator.real_constant, self._flint.arb
            order = sp.Poly(hermite_polynomial(k, self._variable), self._variable)
            hermite = [int(c) for c in reversed(order.all_coeffs())]
            weight = _polynomial_bound(hermite, evaluator)
            bounds = [
                tail_bound(self._branches[-(d > 0)].expr, self._variable, d, evaluator) * weight
                for d in self._directions
            ]
            branches = [branch for branch in self._branches if branch.expr != 0]
            integrands = [self._integrand(branch.expr, hermite, evaluator) for branch in branches]
            kinks = [abs(number(b.left)) for b in self._branches if b.left is not None]
            least = functools.reduce(lambda x, y: x.max(y), kinks, arb(1)).upper()

            # Beyond the last kink the density falls on the scale of its inverse.
            cutoff, _ = cutoff_for(bounds, arb(2) ** -_SAMPLING_BITS, least + 4 / least)
            sizes = [
                self._size(f, *_clipped(branch, cutoff, evaluator))
                for f, branch in zip(integrands, branches, strict=True)
            ]
            size = sum(sizes, arb(0)).upper()
            if not size > 0:
                size = arb(2) ** -goal
            cutoff, tail = cutoff_for(bounds, size * arb(2) ** -goal, least)
            total = arb(0, tail)
            for f, branch in zip(integrands, branches, strict=True):
                total += self._integral(f, *_clipped(branch, cutoff, evaluator), size, goal)
            return (total if len(self._directions) == 2 else 2 * total), size

    def _values(self, prec: int) -> dict[sp.Symbol, Ball]:
        return {symbol: moments.ball(0, prec)[0] for symbol, moments in self._inner.items()}

    def _integrand(
        self, f: sp.Expr, hermite: list[int], evaluator: BallEvaluator
    ) -> Callable[[Ball, bool], Ball]:
        """Return f He_k φ on balls."""
        # SymPy merges the exponentials of a product: large factors of both signs would be lost.
        density = sp.exp(-(self._variable**2) / 2) / sp.sqrt(2 * sp.pi)
        function = evaluator.function(f * density, self._variable)
        polynomial = self._flint.acb_poly(hermite)

        def integrand(x: Ball, analytic: bool) -> Ball:
            return function(x, analytic) * polynomial(x)

        return integrand

    def _size(self, integrand: Callable[[Ball, bool], Ball], left: Ball, right: Ball) -> Ball:
        """Estimate the integral of the absolute value; not proven, it only sets a scale."""
        length = right - left
        fractions = [(2 * j + 1) * self._flint.arb(1) / (2 * _SAMPLES) for j in range(_SAMPLES)]
        # Peaks far narrower than the interval are often at an end: a kink, or a centre of symmetry.
        halvings = [self._flint.arb(2) ** -j for j in range(1, _SAMPLES)]
        near_ends = [*halvings, *(1 - fraction for fraction in halvings)]
        mass = sum((self._modulus(integrand, left + length * u) for u in fractions), 0 * length)
        total = mass * length / _SAMPLES
        for u in near_ends:
            width = length * u.min(1 - u)
            total = total.max(self._modulus(integrand, left + length * u) * width)
        return total

    def _modulus(self, integrand: Callable[[Ball, bool], Ball], point: Ball) -> Ball:
        with self._flint.ctx.workprec(_SAMPLING_BITS):
            x = self._flint.acb(point.mid())
            value = integrand(x, False)
            if not value.is_finite():
                return self._flint.arb(0)
            if not value.imag.contains(0):
                raise AssumptionError(
                    f"{str(self._f)[:100]} is not real at {self._variable} = "
                    f"{float(x.real):.6g}; its expectation has no enclosure"
                )
            return self._flint.arb(value.abs_upper())

    def _integral(
        self,
        integrand: Callable[[Ball, bool], Ball],
        left: Ball,
        right: Ball,
        size: Ball,
        goal: int,
    ) -> Ball:
        flint = self._flint
        evaluations = _EVALUATIONS_PER_BIT * flint.ctx.prec + _EVALUATIONS
        two = flint.arb(2)
        value = flint.acb.integral(
            integrand,
            flint.acb(left),
            flint.acb(right),
            rel_tol=two**-goal,
            abs_tol=size * two**-goal,
            eval_limit=evaluations,
        )
        if not value.is_finite():
            raise NotReached(
                f"{str(self._f)[:100]} is not bounded on the line, as far as can be proven: it may "
                "have a singularity"
            )
        if not value.imag.contains(0):
            raise AssumptionError(f"the expectation of {str(self._f)[:100]} is not real")
        return value.real


def _without_expectations(expr: sp.Expr) -> tuple[sp.Expr, dict[sp.Symbol, MomentBalls]]:
    """Return an expression with symbols for its outermost expectations, and these."""
    expr, merged = _smooth_sum(expr)
    nodes: dict[sp.Expr, sp.Symbol] = {}
    traversal = sp.preorder_traversal(expr)
    for node in traversal:
        if isinstance(node, GaussianExpectation):
            if node.free_symbols:
                raise UnsupportedExpressionError(
                    f"{str(node)[:100]} depends on another variable; only expectations that are "
                    "numbers can be enclosed inside others"
                )
            nodes.setdefault(node, sp.Dummy("E", real=True))
            traversal.skip()
    inner = {symbol: MomentBalls(node.integrand, node.variable) for node, symbol in nodes.items()}
    return expr.xreplace(nodes), inner | merged


def _smooth_sum(expr: sp.Expr) -> tuple[sp.Expr, dict[sp.Symbol, MomentBalls]]:
    """Write real multiples of expectations in a sum as one, whose parts share their work.

    Kinks are left to expectations of their own: each has few.
    """
    z = sp.Dummy("z", real=True)
    rest, multiples = [], []
    for term in sp.Add.make_args(expr):
        factor, node = term.as_independent(GaussianExpectation, as_Add=False)
        alone = isinstance(node, GaussianExpectation) and factor.is_real and not term.free_symbols
        if alone and not has_nonsmooth(node.integrand, node.variable):
            multiples.append(factor * node.integrand.xreplace({node.variable: z}))
        else:
            rest.append(term)
    if len(multiples) < 2:
        return expr, {}
    symbol = sp.Dummy("E", real=True)
    return sp.Add(*rest, symbol), {symbol: MomentBalls(sp.Add(*multiples), z)}


def _polynomial_bound(coefficients: list[int], evaluator: BallEvaluator) -> TailBound:
    """Bound a polynomial for \\|z\\| >= 1: the coefficients' sizes times the leading power."""
    number = evaluator.real_constant
    zero, one = number(sp.S.Zero), number(sp.S.One)
    total = sum(abs(c) for c in coefficients)
    return TailBound(one * total, zero + (len(coefficients) - 1), zero, zero, one)


def _clipped(branch: Branch, cutoff: Ball, evaluator: BallEvaluator) -> tuple[Ball, Ball]:
    """Return the ends of a branch; the cutoff is beyond all kinks."""
    left = -cutoff if branch.left is None else evaluator.real_constant(branch.left)
    right = cutoff if branch.right is None else evaluator.real_constant(branch.right)
    return left, right


def _magnitude(expr: sp.Expr, evaluator: BallEvaluator, known: Mapping[sp.Symbol, Ball]) -> Ball:
    """Return the size of a constant if nothing in its outer sums and products cancelled."""
    if expr in known:
        return known[expr]
    if expr.is_Add or expr.is_Mul:
        sizes = (_magnitude(operand, evaluator, known) for operand in expr.args)
        return functools.reduce(operator.add if expr.is_Add else operator.mul, sizes)
    return evaluator.flint.arb(evaluator.constant(expr).abs_upper())


def _is_reached(ball: Ball, size: Ball, bits: int) -> bool:
    if not ball.is_finite():
        return False
    unit = type(size)(2) ** -bits
    return bool(ball.rad() <= ball.abs_lower() * unit or ball.rad() <= size * unit * unit)


def _bits_between(larger: Ball, smaller: Ball, most: int) -> int:
    """Return how many bits one number is larger than another, from 0 to `most`."""
    if not smaller > 0:
        return most
    ratio: Any = (larger / smaller).log() / type(larger)(2).log() if larger > 0 else 0
    return min(max(int(float(ratio)) + 1, 0), most)


MAX_DIGITS = MOST_DIGITS
# What numbers with so many digits are made of needs more, for those that are lost on the way.
INTERMEDIATE_DIGITS = 4 * MOST_DIGITS
MAX_ORDER = 200
# The working precision of python-flint is one for all threads.
PRECISION = ONE_THREAD
"""Held by whoever sets or relies on the working precision of python-flint."""


def enclosed_expectation(integrand: sp.Expr, variable: sp.Symbol, *, digits: int = 30) -> Enclosure:
    r"""Return a proven enclosure of :math:`\mathbb{E} f(z)`, :math:`z \sim \mathcal{N}(0, 1)`.

    Parameters
    ----------
    integrand : Expr
        f, an exact expression with no symbol other than `variable`; it may hold kinked functions
        and inner expectations without free symbols.
    variable : Symbol
        z, declared real.
    digits : int
        Significant digits to be proven, 1 to 1000; see the module for numbers that may be zero.

    Returns
    -------
    Enclosure
        Exactly 0 where the parity of an integrable f says so.

    Raises
    ------
    AssumptionError
        If f is not known to grow slower than exp(z²/2), or is not real.
    UnsupportedExpressionError
        If a part of f cannot be enclosed or bounded; the message names it.
    ConvergenceError
        If the digits are not reached, as for a singularity on the real line; `state` holds the
        best enclosure, None if there is none.
    ParameterError
        If `digits` is out of range, or symbols are left free.
    MissingDependencyError
        If python-flint is not installed.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> t = sp.Symbol("t", real=True)
    >>> second_moment = enclosed_expectation(sp.tanh(t) ** 2, t)
    >>> second_moment.midpoint.evalf(20), second_moment.digits >= 30
    (0.39429449039784117442, True)
    """
    if not isinstance(integrand, sp.Expr):
        raise ParameterError(f"integrand has to be a SymPy expression, not {integrand!r}")
    try:
        node = GaussianExpectation(integrand, variable)
    except TypeError as error:
        raise ParameterError(str(error)) from None
    _refuse_other_symbols(integrand, variable)
    return enclosed_value(node, digits=digits)


def enclosed_hermite_coefficients(
    f: Activation | sp.Expr | str, order: int, *, digits: int = 30
) -> tuple[Enclosure, ...]:
    r"""Return proven enclosures of the Hermite coefficients :math:`\mu_0, \dots, \mu_K`.

    `f`: what :func:`.activations.activation` takes. `order`: K, 0 to 200. `digits`: significant
    digits to be proven for each, 1 to 1000. The result: K + 1 of them; exactly 0 by parity, and
    beyond the degree of a polynomial. Raises GiantstepError as :func:`enclosed_expectation` and
    :func:`.activations.activation` do.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> mu = enclosed_hermite_coefficients("tanh", 3)
    >>> [value.midpoint.evalf(15) for value in mu]
    [0, 0.605705509602159, 0, -0.363595376280974]
    >>> mu[2].is_exact, mu[3].contains_zero
    (True, False)
    """
    _check_range("order", order, 0, MAX_ORDER)
    bits = bits_of(digits)
    f = activation(f, argument="f")
    require_flint()
    degree, parity = _degree_and_parity(f.expr)

    def coefficient(k: int) -> Enclosure:
        even_or_odd = (Parity.EVEN, Parity.ODD)[k % 2]
        if k > degree and parity not in (even_or_odd, Parity.NEITHER):
            return Enclosure(sp.S.Zero, sp.S.Zero)
        what = f"Hermite coefficient {k} of {f.name}"
        return _enclosed(lambda: moments.ball(k, bits)[0], what, digits)

    with PRECISION:
        moments = MomentBalls(f.expr, z)
        return tuple(coefficient(k) for k in range(order + 1))


def enclosed_value(expr: sp.Expr, digits: int = 30, *, most: int = MAX_DIGITS) -> Enclosure:
    r"""Return a proven enclosure of an exact real constant.

    Parameters
    ----------
    expr : Expr
        Constant of rational and algebraic numbers, pi, E, elementary functions, erf, gamma, Owen's
        T, the activations, and expectations 𝔼 without free symbols.
    digits : int
        Significant digits to be proven, 1 to 1000. A number that may be zero is enclosed to twice
        as many digits of the size of its terms: ``contains_zero`` then says that it may be.
    most : int
        A higher bound of `digits` than 1000, for an intermediate result.

    Raises
    ------
    GiantstepError
        As :func:`enclosed_expectation`.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> ramanujan = enclosed_value(sp.exp(sp.pi * sp.sqrt(163)) - 262537412640768744)
    >>> ramanujan.contains_zero, ramanujan.midpoint.evalf(10)
    (False, -7.499274028e-13)
    """
    bits = bits_of(digits, most)
    if not isinstance(expr, sp.Expr):
        raise ParameterError(f"expr has to be a SymPy expression, not {expr!r}")
    _refuse_symbols(expr.free_symbols, expr)
    if expr.is_Rational and not int(expr.q) & (int(expr.q) - 1):
        return Enclosure(expr, sp.S.Zero)
    require_flint()

    def ball() -> Ball | None:
        constant = ConstantBalls(expr)
        return None if constant.vanishes() else constant.ball(bits)

    with PRECISION:
        return _enclosed(ball, expr, digits)


def _degree_and_parity(f: sp.Expr) -> tuple[int, Parity | None]:
    """Split a polynomial off f; return its degree (-1 for none) and the parity of the rest.

    None for the parity of nothing: no coefficient beyond the degree is left. NEITHER tells nothing.
    """
    # softplus(z) - z/2 is even, sigmoid(z) - 1/2 odd; these forms show it.
    forms = {softplus: sp.cosh, sigmoid: sp.tanh, relu: sp.Abs, sp.Heaviside: sp.sign}
    for function, form in forms.items():
        f = f.replace(function, lambda *u, g=function, h=form: g(*u).rewrite(h))
    terms = sp.Add.make_args(expanded(f))
    polynomial = sp.Add(*(term for term in terms if term.is_polynomial(z)))
    rest = sp.Add(*(term for term in terms if not term.is_polynomial(z)))
    degree = -1 if polynomial == 0 else int(sp.Poly(polynomial, z).degree())
    return degree, analyse(rest, z).parity if rest != 0 else None


def _enclosed(compute: Callable[[], Ball | None], what: object, digits: int) -> Enclosure:
    """Return what is computed as an Enclosure, None as an exact zero; explain what went wrong."""
    try:
        ball = compute()
        return Enclosure(sp.S.Zero, sp.S.Zero) if ball is None else enclosure_of(ball, what)
    except NotReached as failure:
        best = None
        with contextlib.suppress(UnsupportedExpressionError):
            best = None if failure.best is None else enclosure_of(failure.best, what)
        residual = math.nan
        if best is not None and best.midpoint:
            residual = float(best.radius / abs(best.midpoint))
        reached = "no digit is proven" if best is None else f"proven is {best}"
        raise ConvergenceError(
            f"{digits} digits of {what!s:.100} are not reached: {failure}\n  {reached}",
            best,
            residual,
        ) from None


def enclosure_of(ball: Ball, what: object) -> Enclosure:
    """Return a finite ball as exact numbers; a radius far below all bounds becomes the bound.

    `what` names the number in the message of an UnsupportedExpressionError; it may be the
    expression, which is printed for a message only.
    """
    (mantissa, exponent), (rounding, scale) = (
        tuple(map(int, part.man_exp())) for part in (ball.mid(), ball.rad())
    )
    farthest = exponent if exponent < -MAX_EXPONENT else max(exponent, scale)
    if abs(farthest) > MAX_EXPONENT:
        raise UnsupportedExpressionError(
            f"{what!s:.100} is not written down: the power 2**{farthest} occurs in its enclosure, "
            f"beyond 2**±{MAX_EXPONENT}"
        )
    if rounding and scale < -MAX_EXPONENT:
        rounding, scale = 1, -MAX_EXPONENT
    two = sp.Integer(2)
    return Enclosure(mantissa * two**exponent, rounding * two**scale)


def bits_of(digits: int, most: int = MAX_DIGITS) -> int:
    """Return bits for a number of digits, rounding of the printed text included."""
    _check_range("digits", digits, 1, most)
    return math.ceil(digits * math.log2(10)) + 2


def _check_range(name: str, value: int, lowest: int, highest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | sp.Integer):
        raise ParameterError(f"{name} has to be an integer, not {value!r}")
    if not lowest <= value <= highest:
        raise ParameterError(f"{name} has to be from {lowest} to {highest}, not {value}")


def _refuse_other_symbols(expr: sp.Expr, variable: sp.Symbol) -> None:
    others = expr.free_symbols - {variable}
    if any(symbol.name == variable.name for symbol in others):
        raise ParameterError(
            f"the integrand {str(expr)[:100]} holds another symbol {variable} than the variable: "
            "same name, different assumptions\n  compare Symbol.assumptions0"
        )
    _refuse_symbols(others, expr)


def _refuse_symbols(symbols: set[sp.Symbol], expr: sp.Expr) -> None:
    if symbols:
        names = ", ".join(sorted(map(str, symbols)))
        raise ParameterError(
            f"{str(expr)[:100]} is no number: it holds the symbols {names}; substitute numbers "
            "for them"
        )
