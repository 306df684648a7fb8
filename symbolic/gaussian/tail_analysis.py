r"""Proven bounds of expressions far out, and of what the normal density leaves of them there.

On one half-line, z = ±t, a function is bounded by recursion on the structure of its expression,

.. math:: |f(t)| \le C\,t^n e^{a t + q t^2} \quad\text{for all } t \ge T, \qquad T \ge 1,

with real n, a and q (t >= 1 makes the larger exponent the larger function). It may hold other
quantities whose growth with t is known (:class:`Growth`), as the tables of a system of equations
that is averaged over the line. The integral of the bound beyond a point has a closed form
(:mod:`giantstep.gaussian_tails`): it is what an integral over [−R, R] misses. All constants are
balls, so the bounds hold for the exact constants they stand for. Denominators are kept away from 0
by lower bounds of their parts: squares, sums and products of nonnegative quantities, positive
constants, means of squares (:class:`.gaussian.convolutions.GaussianTables`), pivots of eliminated
matrices. Signs come from SymPy's assumptions with t positive, for systems from the balls alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

from ...errors import AssumptionError, CertificationError, UnsupportedExpressionError
from ...gaussian_tails import mass_beyond
from ..exact.ball_functions import Ball, BallEvaluator
from ..expressions._singularities import expanded, is_positive_sum, polynomial
from ..expressions.functions import log_cosh, relu, sigmoid, softplus


@dataclass(frozen=True)
class TailBound:
    r"""The bound C t^n exp(a t + q t²) for t >= start; all entries are real balls.

    `constant`, `power`, `rate`, `curvature`: C >= 0, n, a and q. `start`: T >= 1.
    """

    constant: Ball
    power: Ball
    rate: Ball
    curvature: Ball
    start: Ball

    def __mul__(self, other: TailBound) -> TailBound:
        return TailBound(
            self.constant * other.constant,
            self.power + other.power,
            self.rate + other.rate,
            self.curvature + other.curvature,
            self.start.max(other.start),
        )

    def __add__(self, other: TailBound) -> TailBound:
        return TailBound(
            self.constant + other.constant,
            self.power.max(other.power),
            self.rate.max(other.rate),
            self.curvature.max(other.curvature),
            self.start.max(other.start),
        )

    def __pow__(self, exponent: Ball) -> TailBound:
        """Return the bound of \\|f\\|**e for e > 0."""
        return TailBound(
            # Not 0**e: the ball of a tiny constant may touch zero, and its upper end is a bound.
            self.constant.upper() ** exponent if self.constant.upper() > 0 else self.constant,
            self.power * exponent,
            self.rate * exponent,
            self.curvature * exponent,
            self.start,
        )

    def union(self, other: TailBound) -> TailBound:
        """Return a bound that is above both, as for the two directions of a line."""
        return TailBound(
            self.constant.max(other.constant),
            self.power.max(other.power),
            self.rate.max(other.rate),
            self.curvature.max(other.curvature),
            self.start.max(other.start),
        )

    def since(self, start: Ball) -> TailBound:
        """Return the bound from a point on, if that is the later one."""
        return replace(self, start=self.start.max(start))

    def at(self, t: Ball) -> Ball:
        """Return the bound at a point t >= start."""
        return self.constant * t**self.power * (self.rate * t + self.curvature * t * t).exp()

    def mass_beyond(self, cutoff: Ball) -> Ball | None:
        r"""Bound :math:`\int_L^\infty |f|\varphi`; None if the formula does not apply from L on."""
        if not cutoff >= self.start:
            return None
        return mass_beyond(self.constant, self.power, self.rate, self.curvature, cutoff)


@dataclass(frozen=True)
class Growth:
    """How a real quantity grows with t, and what it never falls below.

    `size`: of its absolute value. `least`: a lower bound from the start of `size` on; None if it
    may have any sign.
    """

    size: TailBound
    least: Ball | None = None


T = sp.Symbol("|z|", positive=True)
"""The distance t from 0 in the expressions that are bounded."""
_BOUNDS = {
    sp.sin: sp.S.One,
    sp.cos: sp.S.One,
    sp.tanh: sp.S.One,
    sp.sech: sp.S.One,
    sp.erf: sp.S.One,
    sp.erfc: sp.Integer(2),
    sigmoid: sp.S.One,
    sp.atan: sp.pi / 2,
}
_BOUNDED_ON_THE_LINE = (*_BOUNDS, softplus, log_cosh, sp.asinh, sp.tan)
_NONNEGATIVE = (sp.Abs, relu, softplus, sigmoid, log_cosh, sp.exp, sp.sech, sp.erfc)
_REAL_FUNCTIONS = (*_BOUNDED_ON_THE_LINE, sp.exp, sp.sinh, sp.cosh)


class TailAnalysis:
    """Bounds of expressions in t >= 1 and in quantities that depend on it, by their structure.

    `evaluator`: for the constants. `known`: what grows with t in a known way. The symbols must be
    declared real.
    """

    def __init__(
        self, evaluator: BallEvaluator, known: Mapping[sp.Symbol, Growth] | None = None
    ) -> None:
        self.evaluator = evaluator
        self.known: dict[sp.Symbol, Growth] = dict(known or {})

    def number(self, expr: sp.Expr) -> Ball:
        return self.evaluator.real_constant(expr)

    def plain(self, constant: Ball, power: int = 0) -> TailBound:
        zero, one = self.number(sp.S.Zero), self.number(sp.S.One)
        return TailBound(constant, zero + power, zero, zero, one)

    def is_constant(self, expr: sp.Expr) -> bool:
        symbols = expr.free_symbols
        return T not in symbols and symbols.isdisjoint(self.known)

    def is_polynomial(self, expr: sp.Expr) -> bool:
        """Whether an expression is a polynomial in t with constant coefficients."""
        return bool(expr.free_symbols.isdisjoint(self.known) and expr.is_polynomial(T))

    def growth(self, expr: sp.Expr) -> Growth:
        """Bound an expression from above and from below."""
        return Growth(self.size(expr), self.least(expr))

    def size(self, expr: sp.Expr) -> TailBound:
        """Bound \\|expr\\| from above."""
        if self.is_constant(expr):
            value = abs(self.evaluator.constant(expr))
            if not value.is_finite():
                raise _unknown(expr, "its value is not known to be finite")
            return self.plain(value)
        if expr == T:
            return self.plain(self.number(sp.S.One), 1)
        if expr in self.known:
            return self.known[expr].size
        if expr.is_Add:
            first, *rest = (self.size(term) for term in expr.args)
            return sum(rest, first)
        if expr.is_Mul:
            return self.product(self.size(factor) for factor in expr.args)
        if expr.is_Pow:
            return self.power(*expr.args)
        u = expr.args[0]
        if isinstance(expr, _BOUNDED_ON_THE_LINE) and not is_real_valued(u):
            raise _unknown(expr, "its argument is not known to be real")
        if expr.func in _BOUNDS:
            return self.plain(self.number(_BOUNDS[expr.func]))
        if isinstance(expr, sp.exp):
            return self.exponential(u)
        if isinstance(expr, sp.sinh | sp.cosh):
            return self.exponential(u) + self.exponential(-u)
        if isinstance(expr, softplus | log_cosh):
            return self.size(u) + self.plain(self.number(sp.log(2)))
        if isinstance(expr, sp.asinh | sp.Abs):
            return self.size(u)
        if isinstance(expr, sp.log):
            return self.logarithm(u)
        if isinstance(expr, log1p):
            # Below u where u is positive, and above the value at the least u where it is not.
            least = self.least(u)
            if least is None or not least > -1:
                raise _unknown(expr, "its argument is not known to stay above -1")
            return self.size(u) + self.plain(abs(least.min(self.number(sp.S.Zero)).log1p()))
        if isinstance(expr, expm1):
            return self.exponential(u) + self.plain(self.number(sp.S.One))
        if isinstance(expr, sp.tan):
            bound = self.size(u)
            if _is_bounded(bound) and bound.constant < self.number(sp.pi / 2):
                return self.plain(bound.constant.tan()).since(bound.start)
        raise _unknown(expr, "its growth is not known")

    def least(self, expr: sp.Expr) -> Ball | None:
        """Return a lower bound of a real expression, None if its structure shows none."""
        zero, one = self.number(sp.S.Zero), self.number(sp.S.One)
        if self.is_constant(expr):
            value = self.evaluator.constant(expr)
            return value.real.lower() if value.imag == 0 else None
        if expr == T:
            return one
        if expr in self.known:
            return self.known[expr].least
        if expr.is_Add or expr.is_Mul:
            total = zero if expr.is_Add else one
            for operand in expr.args:
                bound = self.least(operand)
                if bound is None or (expr.is_Mul and not bound >= 0):
                    return self.least_quadratic(expr) if expr.is_Add else None
                total = total + bound if expr.is_Add else total * bound
            return total.lower()
        if expr.is_Pow:
            return self.least_power(*expr.args)
        if isinstance(expr, _NONNEGATIVE) and is_real_valued(expr.args[0]):
            return zero
        if isinstance(expr, log1p):
            inside = self.least(expr.args[0])
            return inside.log1p().lower() if inside is not None and inside > -1 else None
        return one if isinstance(expr, sp.cosh) and is_real_valued(expr.args[0]) else None

    def least_quadratic(self, expr: sp.Expr) -> Ball | None:
        """Return a lower bound of a sum that holds a positive quadratic form of real quantities.

        The form is the products of two that differ and the squares of all in such products. It is
        positive if the pivots of Gaussian elimination are, which are balls here.
        """
        quantities = sorted(expr.free_symbols & self.known.keys(), key=str)
        if not quantities or not expr.is_polynomial(*quantities):
            return None
        terms = sp.Poly(expr, *quantities).terms()
        mixed = [monomial for monomial, _ in terms if sorted(monomial)[-2:] == [1, 1]]
        mixed = [monomial for monomial in mixed if sum(monomial) == 2]
        inside = [k for k in range(len(quantities)) if any(monomial[k] for monomial in mixed)]
        if not inside:
            return None
        zero, two = self.number(sp.S.Zero), self.number(sp.Integer(2))
        form = {(i, j): zero for i in inside for j in inside}
        rest = zero
        for monomial, coefficient in terms:
            places = [k for k, power in enumerate(monomial) for _ in range(power)]
            if len(places) == 2 and {*places} <= {*inside}:
                i, j = places
                value = self.number(coefficient)
                form[i, j] = value if i == j else value / two
                form[j, i] = form[i, j]
                continue
            bound = self.least(coefficient * sp.Mul(*(quantities[k] for k in places)))
            if bound is None:
                return None
            rest = rest + bound
        for at, k in enumerate(inside):
            if not form[k, k] > 0:
                return None
            for i in inside[at + 1 :]:
                for j in inside[at + 1 :]:
                    form[i, j] = form[i, j] - form[i, k] * form[k, j] / form[k, k]
        return rest.lower()

    def least_power(self, base: sp.Expr, exponent: sp.Expr) -> Ball | None:
        least = self.least(base)
        positive = least is not None and least >= 0
        if least is not None and positive and exponent.is_Integer and exponent > 0:
            return (least ** int(exponent)).lower()
        # A negative power of what is not negative is positive, or infinite.
        even = exponent.is_Integer and exponent % 2 == 0 and is_real_valued(base)
        return self.number(sp.S.Zero) if even or (positive and is_real_valued(exponent)) else None

    def start(self, expr: sp.Expr) -> Ball:
        """Return from where on the bounds of all that an expression holds apply."""
        result = self.number(sp.S.One)
        for symbol in expr.free_symbols & self.known.keys():
            result = result.max(self.known[symbol].size.start)
        return result

    def product(self, bounds: Iterable[TailBound]) -> TailBound:
        total = self.plain(self.number(sp.S.One))
        for bound in bounds:
            total = total * bound
        return total

    def power(self, base: sp.Expr, exponent: sp.Expr) -> TailBound:
        if not self.is_constant(exponent):
            return self.exponential(exponent * sp.log(base))
        if self.evaluator.constant(exponent).imag != 0:
            raise _unknown(base**exponent, "its exponent is not real")
        value = self.number(exponent)
        if value > 0:
            return self.size(base) ** value
        if value < 0:
            return self.reciprocal(base) ** -value
        raise _unknown(base**exponent, "the sign of its exponent is not known")

    def logarithm(self, u: sp.Expr) -> TailBound:
        # |log u| is below the logarithms of the bounds of |u| and of 1/|u|, and log t below t;
        # the imaginary part of a complex logarithm is at most pi.
        total = self.plain(self.number(sp.pi))
        for bound in (self.size(u), self.reciprocal(u)):
            constant, zero = bound.constant.upper(), self.number(sp.S.Zero)
            if not constant > 0:
                raise _unknown(sp.log(u), "its argument may vanish")
            linear = abs(bound.power) + abs(bound.rate)
            parts = ((abs(constant.log()), 0), (linear, 1), (abs(bound.curvature), 2))
            for size, degree in parts:
                if size != zero:
                    total = total + self.plain(size, degree).since(bound.start)
        return total

    def exponential(self, u: sp.Expr) -> TailBound:
        """Bound exp(u), u with its sign: by A + a t + q t² from `start` on."""
        if u.is_nonpositive and not self.is_polynomial(u):
            return self.plain(self.number(sp.S.One))
        regular, bounds = [], []
        for term in sp.Add.make_args(expanded(u)):
            if self.is_polynomial(term):
                regular.append(term)
            elif not term.is_nonpositive:
                bounds.append((term, self.size(term)))
        zero, one = self.number(sp.S.Zero), self.number(sp.S.One)
        start = one
        coefficients = [self.number(c) for c in self.coefficients(sp.Add(*regular))]
        coefficients += [zero] * (3 - len(coefficients))
        for term, bound in bounds:
            start = start.max(bound.start)
            degree = next((n for n in range(len(coefficients)) if bound.power <= n), None)
            if degree is None or not (bound.rate <= 0 and bound.curvature <= 0):
                raise AssumptionError(
                    f"exp({str(term)[:100]}) is not known to grow slower than exp(z**2/2)"
                )
            coefficients[degree] = coefficients[degree] + bound.constant
        if len(coefficients) > 3:
            coefficients = self.without_high_powers(coefficients, u)
        constant, rate, curvature = coefficients
        return TailBound(constant.exp(), zero, rate, curvature, start)

    def without_high_powers(self, coefficients: list[Ball], u: sp.Expr) -> list[Ball]:
        """Bound a polynomial with negative leading coefficient −c: the rest yields beyond T.

        With S the sum of the positive coefficients from degree 2 on, S t**(n−1) <= c t**n for
        t >= T = max(1, S/c), and up to T these terms are at most S T**(n−1).
        """
        *lower, leading = coefficients
        if not leading < 0:
            raise AssumptionError(
                f"exp({str(u)[:100]}) is not known to grow slower than exp(z**2/2)"
            )
        zero, one = self.number(sp.S.Zero), self.number(sp.S.One)
        rest = sum((c.max(zero) for c in lower[2:]), zero)
        turning = (rest / -leading).max(one)
        return [lower[0] + rest * turning ** (len(lower) - 1), lower[1], zero]

    def coefficients(self, u: sp.Expr) -> list[sp.Expr]:
        """Return the coefficients of a polynomial in t, the constant one first."""
        return [sp.S.Zero] if u == 0 else polynomial(u, T).all_coeffs()[::-1]

    def reciprocal(self, expr: sp.Expr) -> TailBound:
        """Bound 1/\\|expr\\| from above."""
        least = self.least(expr)
        if least is not None and least > 0:
            return self.plain(1 / least).since(self.start(expr))
        if self.is_constant(expr):
            value = abs(self.evaluator.constant(expr))
            if value > 0:
                return self.plain(1 / value)
        elif expr == T:
            return self.plain(self.number(sp.S.One), -1)
        elif expr.is_Mul:
            return self.product(self.reciprocal(factor) for factor in expr.args)
        elif expr.is_Pow:
            return self.power(expr.base, -expr.exp)
        elif isinstance(expr, sp.exp):
            return self.exponential(-expr.args[0])
        elif isinstance(expr, sp.sech):
            return self.size(sp.cosh(expr.args[0]))
        elif isinstance(expr, sigmoid):
            return self.size(1 + sp.exp(-expr.args[0]))
        elif expr.is_Add:
            return self.reciprocal_sum(expr)
        raise _unknown(expr, "it may come too close to 0: no lower bound is known")

    def reciprocal_sum(self, expr: sp.Expr) -> TailBound:
        if self.is_polynomial(expr):
            *lower, leading = (abs(self.number(c)) for c in self.coefficients(expanded(expr)))
            if leading > 0:
                # Beyond T the leading term is at least twice all the others.
                start = 2 * sum(lower, self.number(sp.S.Zero)) / leading
                bound = self.plain(2 / leading, -len(lower))
                return bound.since(start)
        constant, rest = expr.as_independent(T, *self.known, as_Add=True)
        outweighed = self.size(rest)
        margin = abs(self.number(constant)) - outweighed.constant
        if _is_bounded(outweighed) and margin > 0:
            return self.plain(1 / margin).since(outweighed.start)
        for sign in (1, -1):
            if all((sign * term).is_nonnegative for term in expr.args):
                for term in expr.args:
                    try:
                        return self.reciprocal(term)
                    except (UnsupportedExpressionError, AssumptionError):
                        continue
        raise _unknown(expr, "it may come too close to 0: no lower bound is known")


def is_real_valued(expr: sp.Expr, variable: sp.Symbol = T) -> bool:
    """Whether an expression is provably real for all large t (and not an infinity there).

    `variable`: t by default; with another real variable the answer is for its whole line.
    """
    if expr.is_extended_real:
        return True
    if expr.is_Pow and not expr.exp.is_Integer:
        base = expr.base
        positive = base.is_nonnegative or (base.is_Add and is_positive_sum(base, variable))
        return bool(positive) and is_real_valued(expr.exp, variable)
    if isinstance(expr, sp.log):
        return bool(expr.args[0].is_Add and is_positive_sum(expr.args[0], variable))
    known = expr.is_Add or expr.is_Mul or expr.is_Pow or isinstance(expr, _REAL_FUNCTIONS)
    return known and all(is_real_valued(operand, variable) for operand in expr.args)


def _is_bounded(bound: TailBound) -> bool:
    """Whether the constant alone is a bound."""
    return bool(bound.power <= 0 and bound.rate <= 0 and bound.curvature <= 0)


def _unknown(expr: sp.Expr, reason: str) -> UnsupportedExpressionError:
    shown = str(expr)[:100]
    kind = f"function {expr.func.__name__} in {shown}" if expr.is_Function else shown
    return UnsupportedExpressionError(f"{kind} cannot be bounded far out: {reason}")


_FARTHEST = 10**9


def tail_bound(
    expr: sp.Expr, variable: sp.Symbol, direction: int, evaluator: BallEvaluator
) -> TailBound:
    r"""Bound a function without kinks for z = direction·t, t → ∞.

    `expr`: smooth branch of the function that holds far out, in `variable`. `variable`: z.
    `direction`: 1 or −1. `evaluator`: for the constants. Raises AssumptionError if the function is
    not known to stay below exp(z²/2), as the expectation needs. Raises UnsupportedExpressionError
    if a part of the expression cannot be bounded; the message names it.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> z = sp.Symbol("z", real=True)
    >>> tail_bound(z**2 * sp.tanh(z), z, 1, BallEvaluator()).at(flint.arb(3))
    9.00000000000000
    """
    bound = smooth_growth(expr, variable, direction, evaluator)
    if not bound.curvature < evaluator.real_constant(sp.S.Half):
        raise AssumptionError(
            f"{str(expr)[:100]} is not known to grow slower than exp({variable}**2/2) towards "
            f"{'oo' if direction > 0 else '-oo'}; its Gaussian expectation may not exist"
        )
    return bound


def smooth_growth(
    expr: sp.Expr, variable: sp.Symbol, direction: int, evaluator: BallEvaluator
) -> TailBound:
    """Bound a function as :func:`tail_bound` does, however fast it grows.

    Raises AssumptionError if it may grow faster than the exponential of any multiple of z². Raises
    UnsupportedExpressionError if a part of the expression cannot be bounded; the message names it.
    """
    return TailAnalysis(evaluator).size(expr.subs(variable, direction * T))


def cutoff_for(bounds: list[TailBound], tolerance: Ball, least: Ball) -> tuple[Ball, Ball]:
    r"""Return a cutoff L >= `least` and a bound of the mass of \|f\| beyond it.

    `bounds`: one for each half-line that counts. `tolerance`: the mass is at most this. `least`:
    where the bounds begin to hold, besides their own start. Raises AssumptionError if there is no
    such cutoff up to 10⁹.
    """
    cutoff = least.upper().ceil().max(type(least)(1))
    while cutoff < _FARTHEST:
        masses = [bound.mass_beyond(cutoff) for bound in bounds]
        known = [mass for mass in masses if mass is not None]
        total = sum(known, type(least)(0))
        if len(known) == len(bounds) and total <= tolerance:
            return cutoff, total
        # One by one first, an eighth more at a time where it is far.
        cutoff = cutoff + (cutoff / 8).ceil()
    raise AssumptionError(
        f"the integrand decays too slowly against the normal density: {_FARTHEST:.0e} standard "
        "deviations are not enough"
    )


def integrand_tails(
    local_values: Mapping[sp.Symbol, sp.Expr],
    sums: Mapping[sp.Symbol, sp.Expr],
    *,
    node: sp.Symbol,
    tables: Mapping[sp.Symbol, Growth],
    scalars: Mapping[sp.Symbol, Ball],
) -> list[TailBound]:
    r"""Bound the integrands of a pass over the nodes in t = \|node\|, on both sides at once.

    Parameters
    ----------
    local_values, sums : mappings from Symbol to Expr
        What is computed at a node and what is summed; each local value may use those before it,
        the sums all of them.
    node : Symbol
        κ.
    tables : mapping from Symbol to Growth
        Functions of the node.
    scalars : mapping from Symbol to real ball
        Values of all other symbols.

    Raises
    ------
    CertificationError
        If a denominator is not proven to stay away from 0, or an integrand not proven to grow
        slower than the exponential of a multiple of node²; the message names the sum.
    UnsupportedExpressionError
        If a function is not known, or a symbol has no value.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> k, f, v, total = sp.symbols("k f v total", real=True)
    >>> bounded = Growth(TailBound(*map(flint.arb, (2, 0, 0, 0, 1))))
    >>> (tail,) = integrand_tails({}, {total: k**2 * f**2 / (1 + v * f**2)}, node=k,
    ...                           tables={f: bounded}, scalars={v: flint.arb(3)})
    >>> tail.at(flint.arb(5))
    100.000000000000
    """
    # Plain real symbols: what the program declares its own to be is not taken for granted.
    plain: dict[sp.Expr, sp.Expr] = {}

    def renamed(symbol: sp.Symbol) -> sp.Symbol:
        return plain.setdefault(symbol, sp.Dummy(symbol.name, real=True))

    evaluator = BallEvaluator({renamed(symbol): value for symbol, value in scalars.items()})
    one = evaluator.real_constant(sp.S.One)
    itself = Growth(TailBound(one, one, 0 * one, 0 * one, one))
    known = {renamed(symbol): growth for symbol, growth in {**tables, node: itself}.items()}
    analysis = TailAnalysis(evaluator, known)

    def bounded(target: sp.Symbol, value: sp.Expr) -> Growth:
        value = value.xreplace(plain)
        missing = value.free_symbols - analysis.known.keys() - set(plain.values())
        if missing:
            names = ", ".join(sorted(map(str, missing)))
            raise UnsupportedExpressionError(f"{target} holds {names} without a value")
        try:
            return analysis.growth(value)
        except AssumptionError as error:
            raise CertificationError(f"the integrand of {target}: {error}") from None
        except UnsupportedExpressionError as error:
            raise CertificationError(
                f"the integrand of {target} is not bounded far out on the line: {error}"
            ) from None

    for target, value in local_values.items():
        growth = bounded(target, value)
        analysis.known[renamed(target)] = growth
    return [bounded(target, value).size for target, value in sums.items()]


def mass_outside(bound: TailBound, reach: Ball, what: str = "an integrand") -> Ball:
    r"""Bound :math:`\int_{|\kappa| > R} |g|\varphi` of an integrand with the bound \|g\|.

    Raises CertificationError if the bound does not apply from R on, or does not decay there against
    the density.
    """
    mass = bound.mass_beyond(reach)
    if mass is None:
        raise CertificationError(
            f"{what} is not proven to decay from {float(reach):.4g} standard deviations on; "
            "try a larger reach"
        )
    return (2 * mass).upper()
