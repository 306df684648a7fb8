r"""Where an elementary function of one variable is positive, negative and zero, decided.

A function is a rational function of x and of θ_1, θ_2, ..., each of which is the exponential of
something in those before, a root of it (θ' = uθ), or has a derivative in them (log, atan, asin,
erf). Divided by one coefficient of its highest θ, its derivative holds a lower power of it: in
finitely many steps only polynomials are left. Between two neighbouring zeros of the derivative a
function has at most one zero, which is seen from the signs at both ends, by ball arithmetic, by the
exact zero test, or by a limit at an end of the range (Strzeboński, Real root isolation for
exp-log-arctan functions, J. Symb. Comp. 47, 2012).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import sympy as sp

from ...ball_library import require_flint
from ...errors import GiantstepError, UndecidedError
from ...symbolic.exact.ball_functions import BallTape
from ...symbolic.expressions.factors import factor_list
from ...symbolic.expressions.functions import erfcx, log_cosh, normal_cdf, relu, sigmoid, softplus
from ...symbolic.gaussian.enclosed_formulas import FormulaBalls
from ...symbolic.gaussian.enclosures import PRECISION
from ...symbolic.gaussian.zero_test import is_exactly_zero
from .evaluation import as_ball_between

_MOST_OPERATIONS, _MOST_LEVELS, _MOST_LIMIT = 1500, 12, 120
_BISECTIONS = 120
_PRECISIONS = (80, 200, 500)

_ELEMENTARY: dict[type, Callable[..., sp.Expr]] = {
    sigmoid: lambda u: 1 / (1 + sp.exp(-u)),
    softplus: lambda u: sp.log(1 + sp.exp(u)),
    log_cosh: lambda u: sp.log((sp.exp(u) + sp.exp(-u)) / 2),
    normal_cdf: lambda u: (1 + sp.erf(u / sp.sqrt(2))) / 2,
    erfcx: lambda u: sp.exp(u**2) * (1 - sp.erf(u)),
    sp.erfc: lambda u: 1 - sp.erf(u),
    sp.sinh: lambda u: (sp.exp(u) - sp.exp(-u)) / 2,
    sp.cosh: lambda u: (sp.exp(u) + sp.exp(-u)) / 2,
    sp.tanh: lambda u: 1 - 2 / (sp.exp(2 * u) + 1),
    sp.sech: lambda u: 2 / (sp.exp(u) + sp.exp(-u)),
    sp.acos: lambda u: sp.pi / 2 - sp.asin(u),
}
"""Functions as others that are exponentials or have an elementary derivative."""
_SLOPES: dict[type, Callable[[sp.Expr], sp.Expr]] = {
    sp.log: lambda u: 1 / u,
    sp.atan: lambda u: 1 / (1 + u**2),
    sp.erf: lambda u: 2 * sp.exp(-(u**2)) / sp.sqrt(sp.pi),
    sp.erfi: lambda u: 2 * sp.exp(u**2) / sp.sqrt(sp.pi),
    sp.asinh: lambda u: 1 / sp.sqrt(1 + u**2),
    sp.asin: lambda u: 1 / sp.sqrt(1 - u**2),
    sp.acosh: lambda u: 1 / (sp.sqrt(u - 1) * sp.sqrt(u + 1)),
    sp.atanh: lambda u: 1 / (1 - u**2),
}
"""Derivatives of functions of u with respect to u."""
_DOMAINS: dict[type, Callable[[sp.Expr], sp.Expr]] = {
    sp.log: lambda u: u, sp.asin: lambda u: 1 - u**2, sp.acosh: lambda u: u - 1,
    sp.atanh: lambda u: 1 - u**2,
}  # fmt: skip
"""What has to be positive where they are analytic."""
_KINKED = (sp.Abs, sp.Max, sp.Min, relu)


class Undecided(Exception):
    """Why signs are not known."""


# ---------------------------------------------------------------------- points


@dataclass(eq=False)
class Point:
    """A number: exact, or the one zero of a function between two rational numbers.

    Attributes
    ----------
    low, high : Rational
        Equal to a rational number; else they enclose it.
    function : Function or None
        What vanishes, with opposite signs at `low` and `high`.
    """

    exact: sp.Expr | None
    low: sp.Rational
    high: sp.Rational
    function: Function | None = None

    @classmethod
    def at(cls, value: sp.Expr) -> Point:
        """Return a number that is known exactly."""
        if value.is_Rational:
            return cls(value, value, value)
        return cls(value, *_around(value, 20))

    def refine(self) -> None:
        """Halve what encloses it."""
        if self.low == self.high:
            return
        if self.function is None:
            assert self.exact is not None
            digits = 2 * max(20, int(-math.log10(float(self.high - self.low) or 1e-300)))
            self.low, self.high = _around(self.exact, digits)
            return
        middle = (self.low + self.high) / 2
        sign = self.function.sign(middle)
        if sign == 0:
            self.exact, self.low, self.high, self.function = middle, middle, middle, None
        elif sign == self.function.sign(self.low):
            self.low = middle
        else:
            self.high = middle

    def __str__(self) -> str:
        if self.exact is not None and len(str(self.exact)) < 30:
            return str(self.exact)
        for _ in range(60):
            if self.high - self.low < (abs(self.low) + abs(self.high)) / 10**7:
                break
            self.refine()
        return f"{float((self.low + self.high) / 2):.6g}"


def _around(value: sp.Expr, digits: int) -> tuple[sp.Rational, sp.Rational]:
    number = sp.Rational(value.evalf(digits + 10))
    radius = sp.Rational(1, 10**digits) * (1 + abs(number))
    return number - radius, number + radius


def _is_before(a: Point, b: Point) -> bool | None:
    """Tell which of two numbers is smaller; None if they are the same."""
    if a is b or (a.exact is not None and a.exact == b.exact):
        return None
    for _ in range(_BISECTIONS):
        if a.high < b.low or a.high == b.low != a.low:
            return True
        if b.high < a.low or b.high == a.low != b.low:
            return False
        if a.low == a.high == b.low == b.high:
            return None
        a.refine()
        b.refine()
        if a.exact is not None and a.exact == b.exact:
            return None
    if a.exact is not None and b.exact is not None and _zero(a.exact - b.exact):
        return None
    raise Undecided(f"two zeros near {float(a.low):.6g} are not told apart")


def _merged(groups: Sequence[Sequence[Point]]) -> list[Point]:
    """Return points in order, each once; exact ones are kept."""
    result: list[Point] = []
    for point in (p for group in groups for p in group):
        for i, other in enumerate(result):
            before = _is_before(point, other)
            if before is None:
                if other.exact is None:
                    result[i] = point
                break
            if before:
                result.insert(i, point)
                break
        else:
            result.append(point)
    return result


def _zero(value: sp.Expr) -> bool:
    if value.is_Rational:
        return bool(value == 0)
    try:
        return is_exactly_zero(value, "a value")
    except UndecidedError as error:
        raise Undecided(str(error).splitlines()[0]) from None


# ---------------------------------------------------------------------- functions


class Function:
    """A function of x that is evaluated on balls."""

    def __init__(self, expr: sp.Expr, x: sp.Symbol) -> None:
        self.expr, self.x = expr, x
        self._tape: BallTape | None = None
        self._known: dict[sp.Expr, int] = {}

    def _ball(self, low: sp.Rational, high: sp.Rational, bits: int) -> Any:
        if self._tape is None:
            target = sp.Dummy(real=True)
            self._tape = BallTape((self.x,), (), [(target, self.expr)], [target])
        with PRECISION, require_flint().ctx.workprec(bits):
            return self._tape([as_ball_between(low, high)])[0]

    def sign(self, value: sp.Expr) -> int:
        """Return the sign at an exact number."""
        if value not in self._known:
            self._known[value] = self._sign(value)
        return self._known[value]

    def _sign(self, value: sp.Expr) -> int:
        if self.expr.is_Rational:
            return int(sp.sign(self.expr))
        ends = (value, value) if value.is_Rational else _around(value, 150)
        for bits in _PRECISIONS:
            ball = self._ball(*ends, bits)
            if ball > 0 or ball < 0:
                return 1 if ball > 0 else -1
            if not ball.is_finite() and value.is_Rational:
                break
        there = self.expr.xreplace({self.x: value})
        if there.has(sp.nan, sp.zoo, sp.oo, -sp.oo) or there.is_extended_real is False:
            raise Undecided(f"{self._shown} has no value at {value}")
        if _zero(there):
            return 0
        sign = FormulaBalls({}).sign(there)
        if sign is None:
            raise Undecided(f"the sign of {self._shown} at {value} is not decided")
        return sign

    def sign_at(self, point: Point) -> int:
        """Return the sign at a point; zero only where it is exact."""
        if point.exact is not None:
            return self.sign(point.exact)
        for i in range(_BISECTIONS):
            ball = self._ball(point.low, point.high, _PRECISIONS[0] if i < 60 else 300)
            if ball > 0 or ball < 0:
                return 1 if ball > 0 else -1
            point.refine()
            if point.exact is not None:
                return self.sign(point.exact)
        raise Undecided(
            f"{self._shown} may vanish near {float(point.low):.8g}, which is no exact number"
        )

    @property
    def _shown(self) -> str:
        return str(self.expr)[:60]


# ---------------------------------------------------------------------- the tower


@dataclass
class _Tower:
    """A field of functions: x, and generators with their derivatives in those before."""

    x: sp.Symbol
    interval: tuple[sp.Expr, sp.Expr]
    generators: list[sp.Dummy] = field(default_factory=list)
    values: dict[sp.Dummy, sp.Expr] = field(default_factory=dict)
    slopes: dict[sp.Dummy, sp.Expr] = field(default_factory=dict)
    exponential: set[sp.Dummy] = field(default_factory=set)
    roots: dict[sp.Dummy, tuple[int, sp.Expr]] = field(default_factory=dict)
    constants: dict[sp.Expr, sp.Dummy] = field(default_factory=dict)
    known: dict[sp.Expr, sp.Dummy] = field(default_factory=dict)
    shares: dict[sp.Expr, int] = field(default_factory=dict)
    zeros_of: dict[sp.Expr, list[Point]] = field(default_factory=dict)
    limits: list[str] = field(default_factory=list)

    # -- into the field

    def element(self, expr: sp.Expr) -> sp.Expr:
        """Return a function as a rational function of generators."""
        if expr == self.x or expr.is_Rational:
            return expr
        if not expr.has(self.x):
            return self._constant(expr)
        if expr.is_Add or expr.is_Mul:
            return expr.func(*map(self.element, expr.args))
        if expr.is_Pow:
            return self._power(*expr.args)
        if isinstance(expr, sp.exp):
            return self._exponential(expr.args[0])
        if expr.func in _SLOPES:
            return self._primitive(expr)
        raise Undecided(f"{expr.func!s} is no exponential, and its derivative is not elementary")

    def _constant(self, value: sp.Expr) -> sp.Expr:
        if value.is_Add or value.is_Mul:
            return value.func(*map(self._constant, value.args))
        if value.is_Rational:
            return value
        if value.is_Pow and value.args[0].is_Integer and value.args[1].is_Rational:
            base, power = value.args
            return self._root(base, int(power.q)) ** int(power.p)
        if value.is_Pow and value.args[1].is_Integer:
            return self._constant(value.args[0]) ** value.args[1]
        if value not in self.constants:
            if not value.is_extended_real:
                raise Undecided(f"{str(value)[:60]} is not real")
            self.constants[value] = symbol = sp.Dummy("c", real=True)
            self.values[symbol], self.slopes[symbol] = value, sp.S.Zero
        return self.constants[value]

    def _new(self, key: sp.Expr, slope: sp.Expr, positive: bool) -> sp.Dummy:
        symbol = sp.Dummy(f"t{len(self.generators)}", positive=positive or None, real=True)
        self.known[key], self.values[symbol], self.slopes[symbol] = symbol, key, slope
        self.generators.append(symbol)
        if len(self.generators) > _MOST_LEVELS:
            raise Undecided("it holds too many functions")
        return symbol

    def _power(self, base: sp.Expr, power: sp.Expr) -> sp.Expr:
        if power.is_Integer:
            return self.element(base) ** power
        if power.is_Rational:
            self._require_positive(base)
            return self._root(base, int(power.q)) ** int(power.p)
        self._require_positive(base)
        return self._exponential(power * sp.log(base))

    def _root(self, base: sp.Expr, order: int) -> sp.Dummy:
        key = sp.Pow(base, sp.Rational(1, order))
        if key not in self.known:
            inner = self.element(base)
            symbol = self._new(key, sp.S.Zero, True)
            self.slopes[symbol] = symbol * self.derivative(inner) / (order * inner)
            self.roots[symbol] = order, inner
            self.exponential.add(symbol)
        return self.known[key]

    def _exponential(self, exponent: sp.Expr) -> sp.Expr:
        result = sp.S.One
        for factor, rest in _terms(exponent):
            term = factor * rest
            if not rest.has(self.x):
                result *= self._constant(sp.exp(term)) if term else sp.S.One
                continue
            if isinstance(rest, sp.log) and factor.is_Integer:
                result *= self.element(rest.args[0]) ** factor
                continue
            # One exponential for all of its powers.
            share = self.shares.setdefault(rest, int(factor.q))
            if share % factor.q:
                raise Undecided(f"exp({str(term)[:40]}) is a root of another exponential")
            key = sp.exp(rest / share)
            if not isinstance(key, sp.exp):
                result *= self.element(sp.exp(term))
                continue
            if key not in self.known:
                inner = self.element(rest / share)
                self._require_no_pole(inner)
                symbol = self._new(key, sp.S.Zero, True)
                self.slopes[symbol] = symbol * self.derivative(inner)
                self.exponential.add(symbol)
            result *= self.known[key] ** int(factor * share)
        return result

    def _primitive(self, expr: sp.Expr) -> sp.Dummy:
        if expr not in self.known:
            u = expr.args[0]
            if expr.func in _DOMAINS:
                self._require_positive(_DOMAINS[expr.func](u))
            inner = self.element(u)
            self._require_no_pole(inner)
            slope = self.element(_SLOPES[expr.func](u)) * self.derivative(inner)
            self._new(expr, slope, False)
        return self.known[expr]

    def _require_positive(self, u: sp.Expr) -> None:
        if not u.has(self.x):
            if not (u.is_number and Function(u, self.x).sign(sp.S.Zero) > 0):
                raise Undecided(f"{str(u)[:60]} is not positive")
            return
        found = self.chart(u)
        if found.points or found.signs != (1,):
            raise Undecided(f"{str(u)[:60]} is not positive everywhere in the range")

    def _require_no_pole(self, element: sp.Expr) -> None:
        for factor in self.factors(sp.fraction(sp.together(element))[1]):
            if self.zeros(factor):
                raise Undecided(f"{str(self.back(element))[:60]} has a pole in the range")

    # -- in the field

    def back(self, element: sp.Expr) -> sp.Expr:
        """Return an element as a function of x."""
        return element.xreplace(self.values)

    def derivative(self, element: sp.Expr) -> sp.Expr:
        """Return the derivative with respect to x."""
        return element.diff(self.x) + sp.Add(
            *(element.diff(t) * self.slopes[t] for t in element.free_symbols & set(self.generators))
        )

    def reduced(self, element: sp.Expr) -> sp.Expr:
        """Return an element as a quotient in lowest terms, without higher powers of roots."""
        for _ in range(_MOST_LEVELS):
            if element.count_ops() > _MOST_OPERATIONS:
                raise Undecided("its derivatives become too long")
            element = sp.cancel(sp.together(element))
            parts = tuple(self._without_powers(part) for part in sp.fraction(element))
            if parts == sp.fraction(element):
                return element
            element = parts[0] / parts[1]
        raise Undecided("its roots hold too many others")

    def _without_powers(self, polynomial: sp.Expr) -> sp.Expr:
        for t, (order, inner) in reversed([*self.roots.items()]):
            if polynomial.has(t) and sp.degree(polynomial, t) >= order:
                polynomial = sp.Add(
                    *(
                        c * t ** (n % order) * inner ** (n // order)
                        for (n,), c in sp.Poly(polynomial, t).terms()
                    )
                )
        return polynomial

    def factors(self, polynomial: sp.Expr) -> list[sp.Expr]:
        """Return the factors of a polynomial that hold x or a generator."""
        moving = {self.x, *self.generators} - self.steady
        if not polynomial.free_symbols & moving:
            return []
        # Roots of numbers are numbers of the field that factors are over.
        roots = {t: self.values[t] for t in self.steady & polynomial.free_symbols}
        if roots:
            back = {value: t for t, value in roots.items()}
            found = factor_list(polynomial.xreplace(roots), extension=[*back])[1]
            found = [(f.xreplace(back), n) for f, n in found]
        else:
            found = factor_list(polynomial)[1]
        return [f for f, _ in found if f.free_symbols & moving and f not in self.exponential]

    @property
    def steady(self) -> set[sp.Dummy]:
        """Roots of numbers."""
        return {t for t in self.roots if self.slopes[t] == 0}

    # -- zeros

    def zeros(self, polynomial: sp.Expr) -> list[Point]:
        """Return the zeros of an irreducible polynomial inside the interval, in order."""
        if polynomial not in self.zeros_of:
            self.zeros_of[polynomial] = self._zeros(polynomial)
        return self.zeros_of[polynomial]

    def _zeros(self, polynomial: sp.Expr) -> list[Point]:
        used = [t for t in self.generators if polynomial.has(t) and self.slopes[t] != 0]
        if not used:
            if not polynomial.has(self.x):
                return []
            if polynomial.free_symbols == {self.x}:
                return self._roots_of(polynomial)
            if sp.degree(polynomial, self.x) == 1:
                slope, rest = sp.Poly(polynomial, self.x).all_coeffs()
                if not _zero(self.back(slope)):
                    only = Point.at(self.back(-rest / slope))
                    return [only] if self._is_inside(only) else []
            return self._between(polynomial, *self._by_power(polynomial, self.x))
        return self._between(polynomial, *self._by_power(polynomial, used[-1]))

    def _by_power(self, polynomial: sp.Expr, top: sp.Symbol) -> tuple[sp.Expr, sp.Expr]:
        """Return a coefficient, and the derivative of the quotient by it."""
        coefficients = sp.Poly(polynomial, top).all_coeffs()
        scale = coefficients[-1] if top in self.exponential else coefficients[0]
        scale = sp.factor_terms(scale)
        return scale, self.reduced(self.derivative(polynomial / scale))

    def _roots_of(self, polynomial: sp.Expr) -> list[Point]:
        poly, function = sp.Poly(polynomial, self.x), Function(polynomial, self.x)
        points = []
        for (low, high), _ in poly.intervals():
            if poly.degree() == 1:
                points.append(Point.at(-poly.nth(0) / poly.nth(1)))
            elif poly.degree() == 2:
                exact = [r for r in sp.roots(poly, multiple=True) if low <= r <= high]
                points.append(Point.at(exact[0]))
            else:
                points.append(Point(None, low, high, function))
        return [p for p in points if self._is_inside(p)]

    def _is_inside(self, point: Point) -> bool:
        low, high = self.interval
        return (low == -sp.oo or _is_before(Point.at(low), point) is True) and (
            high == sp.oo or _is_before(point, Point.at(high)) is True
        )

    def _between(self, polynomial: sp.Expr, scale: sp.Expr, slope: sp.Expr) -> list[Point]:
        """Return zeros of a polynomial by those of its scale and of their quotient's slope."""
        if slope == 0:
            # A multiple of its coefficient: where it vanishes, that does.
            return self._merged_zeros(scale)
        steady = _merged([self._merged_zeros(scale), self._merged_zeros(slope)])
        function = Function(self.back(polynomial), self.x)
        sides = Function(self.back(scale), self.x), Function(self.back(slope), self.x)
        ends: list[Point | None] = [None, *steady, None]
        result: list[Point] = []
        for left, right in pairwise(ends):
            found = self._crossing(function, sides, left, right)
            if found is not None:
                result.append(found)
            if right is not None and function.sign_at(right) == 0:
                result.append(right)
        return result

    def _merged_zeros(self, element: sp.Expr) -> list[Point]:
        parts = sp.fraction(sp.together(element))
        return _merged([self.zeros(f) for part in parts for f in self.factors(part)])

    def _crossing(
        self, function: Function, sides: tuple[Function, Function],
        left: Point | None, right: Point | None,
    ) -> Point | None:  # fmt: skip
        """Return the one zero of a function on a piece, if there is one.

        Its quotient by the first of `sides`, whose derivative is the second, is monotone there.
        """
        middle = _inside(
            self.interval[0] if left is None else left, self.interval[1] if right is None else right
        )
        start = function.sign(middle)
        if start == 0:
            return Point.at(middle)
        scale, slope = (side.sign(middle) for side in sides)
        if not scale * slope:
            raise Undecided(f"{str(function.expr)[:60]} may have a derivative that is zero")
        # The quotient moves towards zero to one side only.
        to_right = scale * slope * start < 0
        point, end = (right if to_right else left), self.interval[1 if to_right else 0]
        there = self._sign_near(function, sides[0], point, end, scale, to_right)
        if there in (0, start):
            return None
        near = middle
        for value in self._towards(middle, point, end):
            sign = function.sign(value)
            if sign == 0:
                return Point.at(value)
            if sign != start:
                low, high = sorted((near, value))
                return Point(None, low, high, function)
            near = value
        raise Undecided(f"a zero of {str(function.expr)[:60]} is not isolated")

    def _sign_near(
        self, function: Function, scale: Function, point: Point | None, end: sp.Expr,
        sign: int, from_below: bool,
    ) -> int:  # fmt: skip
        """Return the sign of a function close to where a piece ends, zero if it tends to zero.

        Where the scale, whose sign on the piece is given, vanishes too, it is that of the limit of
        the quotient, which is monotone.
        """
        try:
            if point is not None:
                there = function.sign_at(point)
                if there or scale.sign_at(point):
                    return there
                if point.exact is None:
                    raise Undecided(f"{str(function.expr)[:60]} vanishes with its coefficient")
                end = point.exact
            elif end.is_finite:
                there = function.sign(end)
                if there or scale.sign(end):
                    return there
        except (Undecided, GiantstepError):
            if point is not None:
                raise
        quotient = function.expr / scale.expr
        unknown = Undecided(f"the limit of {str(quotient)[:60]} for {self.x} to {end} is not known")
        if quotient.count_ops() > _MOST_LIMIT:
            raise unknown
        try:
            limit = sp.limit(quotient, self.x, end, "-" if from_below else "+")
        except (ArithmeticError, ValueError, TypeError, AttributeError, NotImplementedError,
                RecursionError):  # fmt: skip
            raise unknown from None
        if not (limit.is_extended_real and limit.is_number) or limit.has(sp.Limit):
            raise unknown
        self.limits.append(f"{quotient} tends to {limit} for {self.x} to {end}")
        if not limit.is_finite:
            return sign if limit == sp.oo else -sign
        return sign * Function(limit, self.x).sign(sp.S.Zero)

    def _towards(
        self, start: sp.Rational, point: Point | None, end: sp.Expr
    ) -> Iterator[sp.Rational]:
        """Yield numbers from a start to where a piece ends."""
        if point is None and not end.is_finite:
            for k in range(_BISECTIONS):
                yield start + (2**k if end == sp.oo else -(2**k))
            return
        limit, near = Point.at(end) if point is None else point, start
        for _ in range(2 * _BISECTIONS):
            near = (near + (limit.high if limit.high < start else limit.low)) / 2
            yield near
            limit.refine()

    # -- signs

    def chart(self, expr: sp.Expr) -> Chart:
        """Return where a function changes its sign."""
        expr = _rewritten(expr)
        for node in expr.atoms(sp.exp):
            for factor, rest in _terms(node.args[0]):
                self.shares[rest] = math.lcm(self.shares.get(rest, 1), int(factor.q))
        element = self.reduced(self.element(expr))
        above, below = sp.fraction(element)
        if self.reduced(self.derivative(element)) == 0:
            if any(map(self.zeros, self.factors(below))):
                raise Undecided(f"{str(expr)[:60]} may jump where it has no value")
            return Chart((), (Function(expr, self.x).sign(_inside(*self.interval)),), ())
        poles = _merged([self.zeros(f) for f in self.factors(below)])
        points = _merged([poles, *(self.zeros(f) for f in self.factors(above))])
        function = Function(expr, self.x)
        ends: list[Any] = [self.interval[0], *points, self.interval[1]]
        signs = tuple(function.sign(_inside(a, b)) for a, b in pairwise(ends))
        if 0 in signs:
            raise Undecided(f"{str(expr)[:60]} may vanish identically")
        are_poles = tuple(any(p is q for q in poles) for p in points)
        return Chart(tuple(points), signs, are_poles, tuple(dict.fromkeys(self.limits)))


def _terms(exponent: sp.Expr) -> list[tuple[sp.Rational, sp.Expr]]:
    return [t.as_coeff_Mul(rational=True) for t in sp.Add.make_args(sp.expand(exponent))]


def _rewritten(expr: sp.Expr) -> sp.Expr:
    """Return a function by exponentials and functions with elementary derivatives."""
    return expr.replace(
        lambda node: node.func in _ELEMENTARY, lambda node: _ELEMENTARY[node.func](*node.args)
    )


@dataclass(frozen=True)
class Chart:
    """Signs of a function on the pieces between its zeros and poles.

    Attributes
    ----------
    points : tuple of Point
        In order.
    signs : tuple of int
        On the pieces; one more. Zero if it vanishes identically.
    poles : tuple of bool
        Which points are poles.
    limits : tuple of str
        Limits by SymPy that tell signs at ends where a function has no value.
    """

    points: tuple[Point, ...]
    signs: tuple[int, ...]
    poles: tuple[bool, ...]
    limits: tuple[str, ...] = ()

    def inside(self, i: int, low: sp.Expr, high: sp.Expr) -> sp.Rational:
        """Return a number on piece i of a chart between two numbers."""
        ends = [low, *self.points, high]
        return _inside(ends[i], ends[i + 1])


def _inside(low: Any, high: Any) -> sp.Rational:
    """Return a simple rational number between two numbers, which may be infinite."""
    for _ in range(_BISECTIONS):
        a = low.high if isinstance(low, Point) else low
        b = high.low if isinstance(high, Point) else high
        a = _around(a, 20)[1] if a.is_finite and not a.is_Rational else a
        b = _around(b, 20)[0] if b.is_finite and not b.is_Rational else b
        if a < b:
            break
        for point in (low, high):
            if isinstance(point, Point):
                point.refine()
    else:
        raise Undecided("two zeros are not told apart")
    if a == -sp.oo:
        return sp.S.Zero if b > 0 else sp.floor(b) - 1
    if b == sp.oo:
        return sp.S.One if a == 0 else sp.floor(a) + 1 if a else sp.S.One
    middle = (a + b) / 2
    for denominator in (1, 2, 4, 8, 16, 64, 1024):
        simple = sp.Rational(round(middle * denominator), denominator)
        if a < simple < b:
            return simple
    return middle


# ---------------------------------------------------------------------- answers


@dataclass(frozen=True)
class Piece:
    """A function on a part of a range, without kinks, and its signs there."""

    expr: sp.Expr
    low: sp.Expr
    high: sp.Expr
    chart: Chart


def signs_of(expr: sp.Expr, x: sp.Symbol, low: sp.Expr, high: sp.Expr) -> list[Piece]:
    """Return the signs of a function between two numbers, which may be infinite.

    Raises
    ------
    Undecided
        If it is no elementary function, is not analytic between its kinks, or a zero cannot be
        told from a small number.
    """
    kinked = sorted(
        (n for n in sp.preorder_traversal(expr) if isinstance(n, _KINKED) and n.has(x)),
        key=sp.Expr.count_ops,
    )
    if not kinked:
        return [Piece(expr, low, high, _Tower(x, (low, high)).chart(expr))]
    node = kinked[0]
    first, second = node.args[0], node.args[1] if len(node.args) > 1 else sp.S.Zero
    rest = node.func(*node.args[1:]) if len(node.args) > 2 else second
    gap = first - rest if isinstance(node, sp.Max | sp.Min) else first
    positive, negative = {
        sp.Abs: (first, -first), relu: (first, sp.S.Zero), sp.Max: (first, rest),
        sp.Min: (rest, first),
    }[node.func]  # fmt: skip
    result = []
    for piece in signs_of(gap, x, low, high):
        chart = piece.chart
        if any(chart.poles) or any(p.exact is None for p in chart.points):
            raise Undecided(f"where {str(gap)[:60]} changes its sign is no exact number")
        ends = [piece.low, *(p.exact for p in chart.points), piece.high]
        for sign, a, b in zip(chart.signs, ends, ends[1:], strict=False):
            branch = positive if sign >= 0 else negative
            result += signs_of(expr.xreplace({node: branch}), x, a, b)
    return result
