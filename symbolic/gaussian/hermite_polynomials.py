r"""Probabilists' Hermite polynomials, their identities, conventions and moments, exactly.

Convention, throughout giantstep: He_k has weight exp(-z²/2) and leading coefficient 1, so
He_0 = 1, He_1 = x, He_{k+1} = x He_k - k He_{k-1} and :math:`\mathbb{E}[\mathrm{He}_j
\mathrm{He}_k] = k!\,\delta_{jk}`. With a variance v,

.. math:: \mathrm{He}^{[v]}_k(x) = \sum_j \frac{k!}{2^j j! (k-2j)!} (-v)^j x^{k-2j}

is the family that is orthogonal under N(0, v); v may be zero (powers of x) or negative. A function
has *moments* :math:`\mu_k = \mathbb{E}[f\,\mathrm{He}_k]`, the convention of giantstep,
*He-coefficients* :math:`c_k = \mu_k/k!` with :math:`f = \sum_k c_k\,\mathrm{He}_k`, and
*orthonormal coefficients* :math:`\mu_k/\sqrt{k!}` (O'Donnell, *Analysis of Boolean Functions*
(2014), section 11.2); for He_2 itself they are 2, 1 and √2. Converters take sequences, order 0
first, or mappings from orders k or multi-indices α, with α! = Π α_i!; expansions are dictionaries
{k: coefficient of He_k}. Products with z, derivatives and averages over noise act on finite
sequences of moments in a simple way, and every function says how many moments of the result they
determine.

Sources: Szegő, *Orthogonal Polynomials* (1939), chapter 5; Feldheim, J. London Math. Soc. 13
(1938), for the product; Mehler, J. reine angew. Math. 66 (1866), for the kernel; Stein, Ann.
Statist. 9 (1981), for the derivative. Janson, *Gaussian Hilbert Spaces* (1997), chapter 3, has this
normalisation.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar, overload

import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.simplify.fu import TR5

from ...errors import AssumptionError, ParameterError
from ..expressions.exact_numbers import require_exact

MAX_ORDER = 2000
"""Highest order of a polynomial: its coefficients then have some 2800 digits."""

# An expansion in several variables has this many terms at most.
_LONGEST_EXPANSION = 200_000


def hermite_polynomial(
    k: int, x: sp.Expr | Fraction | int, variance: sp.Expr | Fraction | int = 1
) -> sp.Expr:
    r"""Return :math:`\mathrm{He}^{[v]}_k(x)` as a sum of powers of x.

    `k`: order, from 0 to `MAX_ORDER`. `x`: the argument. If it is a sum, its powers are not
    multiplied out. `variance`: v, of either sign, or zero, or symbolic; 1 gives He_k. Raises
    ParameterError if `k` is not an integer in that range, or `x` or `variance` is not exact:
    between powers of opposite sign floating-point numbers would lose all their digits.

    Examples
    --------
    >>> x, v = sp.symbols("x v")
    >>> hermite_polynomial(3, x)
    x**3 - 3*x
    >>> hermite_polynomial(4, x, v)
    3*v**2 - 6*v*x**2 + x**4
    >>> hermite_polynomial(4, x, 0)
    x**4
    """
    k = checked_order(k, "k")
    x, minus_v = require_exact(x, "x"), -require_exact(variance, "variance")
    if minus_v == 0:
        return x**k
    return sp.Add(*(c * minus_v**j * x ** (k - 2 * j) for j, c in enumerate(pairings(k))))


class hermite_prob(sp.hermite_prob):
    r"""He_n(x) in a symbolic order n: SymPy's function, with the right value at x = 0.

    SymPy's (1.14) leaves out :math:`2^{n/2}` in :math:`\mathrm{He}_n(0) = 2^{n/2} \sqrt\pi /
    \Gamma((1-n)/2)` if n is a symbol: an expression in n and a parameter would have wrong numbers
    where the parameter makes the argument zero before n has its value.

    Examples
    --------
    >>> n, x = sp.symbols("n x")
    >>> hermite_prob(n, x).subs(x, 0).subs(n, 4), hermite_prob(4, 0)
    (3, 3)
    >>> sp.hermite_prob(n, x).subs(x, 0).subs(n, 4)
    3/4
    """

    @classmethod
    def eval(cls, n: sp.Expr, x: sp.Expr) -> sp.Expr | None:
        if n.is_Number:
            return super().eval(n, x)
        if x.is_zero:
            return 2 ** (n / 2) * sp.sqrt(sp.pi) / sp.gamma((1 - n) / 2)
        return sp.S.NegativeOne**n * cls(n, -x) if x.could_extract_minus_sign() else None

    def fdiff(self, argindex: int = 2) -> sp.Expr:
        n, x = self.args
        return n * hermite_prob(n - 1, x) if argindex == 2 else super().fdiff(argindex)

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        n, x = map(printer.doprint, self.args)
        power = "" if exp is None else rf"^{{{exp}}}"
        return rf"\mathrm{{He}}_{{{n}}}{power}\left({x}\right)"


def checked_order(k: int, name: str = "k") -> int:
    """Return `k` if it is an integer from 0 to `MAX_ORDER`, else raise ParameterError.

    Examples
    --------
    >>> checked_order(-1, "n")
    Traceback (most recent call last):
        ...
    giantstep.errors.ParameterError: order n must be >= 0, got -1
    """
    if isinstance(k, bool) or not isinstance(k, int | sp.Integer):
        raise ParameterError(f"order {name} must be an integer, got {k!r}; give 0, 1, 2, ...")
    if k < 0:
        raise ParameterError(f"order {name} must be >= 0, got {k}")
    if k > MAX_ORDER:
        raise ParameterError(f"order {name} = {k} is too high; orders go up to {MAX_ORDER}")
    return int(k)


def pairings(n: int) -> list[int]:
    """Return n!/(2^j j! (n-2j)!) for j = 0 … n//2: the ways to choose j pairs out of n.

    Examples
    --------
    >>> pairings(6)
    [1, 15, 45, 15]
    """
    counts = [1]
    for j in range(n // 2):
        counts.append(counts[-1] * (n - 2 * j) * (n - 2 * j - 1) // (2 * (j + 1)))
    return counts


def power_in_hermite(n: int) -> dict[int, int]:
    """Return the coefficients of x^n in He_k, {k: n!/(2^j j! k!), n = k + 2j}.

    Examples
    --------
    >>> power_in_hermite(4)
    {4: 1, 2: 6, 0: 3}
    """
    n = checked_order(n, "n")
    return {n - 2 * j: count for j, count in enumerate(pairings(n))}


def polynomial_in_hermite(coefficients: Mapping[int, sp.Expr]) -> dict[int, sp.Expr]:
    """Return the He-coefficients {k: c_k} of a polynomial given as {power: coefficient}.

    Examples
    --------
    >>> polynomial_in_hermite({3: sp.Integer(1), 1: sp.Integer(-3)})
    {3: 1}
    """
    result: dict[int, sp.Expr] = {}
    for n, coefficient in coefficients.items():
        value = require_exact(coefficient, f"the coefficient of x**{n}")
        for k, count in power_in_hermite(n).items():
            result[k] = result.get(k, sp.S.Zero) + count * value
    return {k: c for k, c in sorted(result.items()) if c != 0}


def hermite_derivative(
    k: int, x: sp.Expr, times: int = 1, variance: sp.Expr | Fraction | int = 1
) -> sp.Expr:
    """Return the derivative of He_k, k!/(k-m)! He_{k-m}(x) with m = `times`; any variance.

    Examples
    --------
    >>> hermite_derivative(4, sp.Symbol("x"), times=2)
    12*x**2 - 12
    """
    k, times = checked_order(k, "k"), checked_order(times, "times")
    if times > k:
        return sp.S.Zero
    falling = math.perm(k, times)
    return sp.Add(
        *(falling * term for term in hermite_polynomial(k - times, x, variance).as_ordered_terms())
    )


def differential_equation(
    function: sp.Expr, k: int, x: sp.Symbol, variance: sp.Expr | Fraction | int = 1
) -> sp.Expr:
    """Return v f'' - x f' + k f, expanded: zero for f = He_k of that variance.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> differential_equation(hermite_polynomial(5, x), 5, x)
    0
    """
    k, v = checked_order(k, "k"), require_exact(variance, "variance")
    return sp.expand(v * function.diff(x, 2) - x * function.diff(x) + k * function)


def generating_function(x: sp.Expr, t: sp.Expr, variance: sp.Expr | Fraction | int = 1) -> sp.Expr:
    r"""Return :math:`e^{tx - vt^2/2} = \sum_k \mathrm{He}^{[v]}_k(x)\,t^k/k!`.

    Examples
    --------
    >>> x, t = sp.symbols("x t")
    >>> generating_function(x, t)
    exp(-t**2/2 + t*x)
    """
    x, t, v = (
        require_exact(x, "x"),
        require_exact(t, "t"),
        require_exact(variance, "variance"),
    )
    return sp.exp(t * x - v * t**2 / 2)


def linearisation(m: int, n: int, *more: int) -> dict[int, int]:
    r"""Return the product of He_m, He_n (and more) as a sum, {k: coefficient of He_k}.

    Notes
    -----
    :math:`\mathrm{He}_m \mathrm{He}_n = \sum_j j! \binom mj \binom nj \mathrm{He}_{m+n-2j}`; with
    more factors this is repeated. The coefficient at 0 is the expectation of the product.

    Examples
    --------
    >>> linearisation(2, 3)
    {1: 6, 3: 6, 5: 1}
    >>> linearisation(2, 2, 2)[0]
    8
    """
    orders = [checked_order(order, "of a factor") for order in (m, n, *more)]
    checked_order(sum(orders), "of the product")
    result = {orders[0]: 1}
    for order in orders[1:]:
        terms: dict[int, int] = {}
        for k, c in result.items():
            for j in range(min(k, order) + 1):
                count = math.factorial(j) * math.comb(k, j) * math.comb(order, j)
                terms[k + order - 2 * j] = terms.get(k + order - 2 * j, 0) + c * count
        result = terms
    return dict(sorted(result.items()))


def triple_product(l: int, m: int, n: int) -> int:  # noqa: E741
    r"""Return :math:`\mathbb{E}[\mathrm{He}_l \mathrm{He}_m \mathrm{He}_n]`.

    Notes
    -----
    l! m! n! / ((s-l)! (s-m)! (s-n)!) with 2s = l + m + n, if that is even and no order exceeds
    s; else 0.

    Examples
    --------
    >>> triple_product(2, 2, 2), triple_product(1, 2, 3), triple_product(1, 1, 3)
    (8, 6, 0)
    """
    orders = [checked_order(order, name) for order, name in zip((l, m, n), "lmn", strict=True)]
    half, odd = divmod(sum(orders), 2)
    if odd or max(orders) > half:
        return 0
    above = math.prod(math.factorial(order) for order in orders)
    return above // math.prod(math.factorial(half - order) for order in orders)


def shifted_argument(n: int, y: sp.Expr | Fraction | int) -> dict[int, sp.Expr]:
    r"""Return He_n(x + y) as {k: coefficient of He_k(x)}, :math:`\binom nk y^{n-k}`.

    Examples
    --------
    >>> shifted_argument(2, sp.Symbol("y"))
    {0: y**2, 1: 2*y, 2: 1}
    """
    return affine_argument(n, 1, y)


def affine_argument(
    n: int, a: sp.Expr | Fraction | int, b: sp.Expr | Fraction | int
) -> dict[int, sp.Expr]:
    r"""Return He_n(ax + b) as {k: coefficient of He_k(x)}, for any a and b.

    Notes
    -----
    The coefficient is :math:`\binom nk a^k\,\mathrm{He}^{[1-a^2]}_{n-k}(b)`, because averaging
    He_n(ax + b) over x is the heat flow of He_n, started at b, for the time a². Coefficients that
    vanish identically are left out.

    Examples
    --------
    >>> a = sp.Symbol("a")
    >>> affine_argument(2, a, 0)
    {0: a**2 - 1, 2: a**2}
    """
    n = checked_order(n, "n")
    a, b = require_exact(a, "a"), require_exact(b, "b")
    variance = sp.expand(1 - a**2)
    result = {
        k: math.comb(n, k) * a**k * hermite_polynomial(n - k, b, variance) for k in range(n + 1)
    }
    return {k: c for k, c in result.items() if c != 0}


def addition_theorem(
    n: int, weights: Sequence[sp.Expr | Fraction | int]
) -> dict[tuple[int, ...], sp.Expr]:
    r"""Return He_n(w_1 x_1 + … + w_r x_r) as {α: coefficient of He_α(x)}.

    `n`: order. `weights`: w, of any norm; for |w| = 1 only multi-indices with |α| = n occur. Raises
    ParameterError if there is no weight, one is not exact, or the sum would be too long.

    Notes
    -----
    For |w| = 1 the coefficient is n!/α! w^α. In general He_n is first written in the family of
    variance |w|², which brings n!/(2^j j! (n-2j)!) (|w|² - 1)^j for |α| = n - 2j. Sines and
    cosines of the same angle are recognised as a unit vector.

    Examples
    --------
    >>> t = sp.Symbol("t", real=True)
    >>> addition_theorem(2, [sp.cos(t), sp.sin(t)])
    {(0, 2): sin(t)**2, (1, 1): 2*sin(t)*cos(t), (2, 0): cos(t)**2}
    """
    n = checked_order(n, "n")
    vector = [require_exact(w, f"weights[{i}]") for i, w in enumerate(weights)]
    if not vector:
        raise ParameterError("weights is empty; give at least one weight")
    if math.comb(n + len(vector), n) > _LONGEST_EXPANSION:
        raise ParameterError(
            f"He_{n} of {len(vector)} variables has too many terms; lower n or the number of "
            "weights"
        )
    excess = sp.expand(TR5(sp.expand(sp.Add(*(w**2 for w in vector)) - 1)))
    result: dict[tuple[int, ...], sp.Expr] = {}
    for j, count in enumerate(pairings(n)):
        factor = count * excess**j
        if factor == 0:
            break
        degree = n - 2 * j
        for alpha in multi_indices(len(vector), degree):
            ways = math.factorial(degree) // math.prod(math.factorial(k) for k in alpha)
            value = ways * factor * sp.Mul(*(w**k for w, k in zip(vector, alpha, strict=True)))
            if value != 0:
                result[alpha] = value
    return dict(sorted(result.items()))


def multi_indices(variables: int, degree: int) -> list[tuple[int, ...]]:
    """Return all multi-indices of the given number of variables with |α| = degree, sorted.

    Examples
    --------
    >>> multi_indices(2, 2)
    [(0, 2), (1, 1), (2, 0)]
    """
    variables, degree = checked_order(variables, "variables"), checked_order(degree, "degree")
    if variables and math.comb(variables + degree - 1, degree) > _LONGEST_EXPANSION:
        raise ParameterError(
            f"there are more than {_LONGEST_EXPANSION} multi-indices of degree {degree} in "
            f"{variables} variables; lower one of the two"
        )
    return _multi_indices(variables, degree)


def index_factorial(alpha: Iterable[int]) -> int:
    """Return α!, the product of the factorials of a multi-index."""
    return math.prod(map(math.factorial, alpha))


def _multi_indices(variables: int, degree: int) -> list[tuple[int, ...]]:
    if variables == 0:
        return [()] if degree == 0 else []
    if variables == 1:
        return [(degree,)]
    return [
        (first, *rest)
        for first in range(degree + 1)
        for rest in _multi_indices(variables - 1, degree - first)
    ]


Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Conversion:
    """Coefficients in one convention from those in another: each times a power of its factorial.

    Called with a sequence, order 0 first, or a mapping from orders or multi-indices to values.

    `source`: what is converted, for messages.

    Examples
    --------
    >>> he_coefficients_from_moments([0, 0, 2]), orthonormal_coefficients_from_moments([0, 0, 2])
    ((0, 0, 1), (0, 0, sqrt(2)))
    >>> moments_from_he_coefficients({(2, 1): 3})
    {(2, 1): 6}
    """

    source: str
    power: sp.Rational

    @overload
    def __call__(self, values: Mapping[Key, Any]) -> dict[Key, sp.Expr]: ...
    @overload
    def __call__(self, values: Sequence[Any]) -> tuple[sp.Expr, ...]: ...
    def __call__(
        self, values: Mapping[Key, Any] | Sequence[Any]
    ) -> dict[Key, sp.Expr] | tuple[sp.Expr, ...]:
        name = self.source
        if isinstance(values, Mapping):
            return {
                key: require_exact(value, f"{name}[{key}]") * self._weight(_factorial(key, name))
                for key, value in values.items()
            }
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise ParameterError(
                f"{name} must be a sequence or a mapping from orders to values, got {values!r}"
            )
        return tuple(
            require_exact(value, f"{name}[{k}]") * self._weight(math.factorial(checked_order(k)))
            for k, value in enumerate(values)
        )

    def _weight(self, factorial: int) -> sp.Expr:
        return sp.Integer(factorial) ** self.power


he_coefficients_from_moments = Conversion("moments", sp.Integer(-1))
moments_from_he_coefficients = Conversion("coefficients", sp.Integer(1))
orthonormal_coefficients_from_moments = Conversion("moments", -sp.S.Half)
moments_from_orthonormal_coefficients = Conversion("coefficients", sp.S.Half)
he_coefficients_from_orthonormal_coefficients = Conversion("coefficients", -sp.S.Half)
orthonormal_coefficients_from_he_coefficients = Conversion("coefficients", sp.S.Half)


def _factorial(key: Hashable, name: str) -> int:
    """Return k! or α!."""
    orders = key if isinstance(key, tuple) else (key,)
    return math.prod(
        math.factorial(checked_order(order, f"of the key {key!r} of {name}")) for order in orders
    )


def mehler_kernel(x: sp.Expr, y: sp.Expr, rho: sp.Expr | Fraction | int) -> sp.Expr:
    r"""Return :math:`\sum_k \rho^k \mathrm{He}_k(x) \mathrm{He}_k(y)/k!` in closed form.

    The density of two standard normal variables of correlation ρ, relative to independent ones:
    :math:`(1-\rho^2)^{-1/2} \exp(-(\rho^2(x^2+y^2) - 2\rho xy)/(2(1-\rho^2)))`.

    Raises AssumptionError if `rho` is known not to be real with |ρ| < 1; a symbol without
    assumptions is taken as such.

    Examples
    --------
    >>> mehler_kernel(sp.S(0), sp.S(0), sp.Rational(3, 5))
    5/4
    """
    x, y, rho = (
        require_exact(x, "x"),
        require_exact(y, "y"),
        _checked_correlation(rho, strict=True),
    )
    rest = 1 - rho**2
    exponent = -(rho**2 * (x**2 + y**2) - 2 * rho * x * y) / (2 * rest)
    return sp.exp(exponent) / sp.sqrt(rest)


def mehler_smoothing(
    moments: Sequence[sp.Expr | Fraction | int], rho: sp.Expr | Fraction | int
) -> tuple[sp.Expr, ...]:
    r"""Return the moments of :math:`x \mapsto \mathbb{E}_z[s(\rho x + \sqrt{1-\rho^2}\,z)]`.

    `moments`: μ_0, …, μ_K of s. `rho`: correlation, |ρ| <= 1. The result: ρ^k μ_k, as many as were
    given.

    Examples
    --------
    >>> mehler_smoothing([1, 1, 1], sp.Rational(1, 2))
    (1, 1/2, 1/4)
    """
    rho = _checked_correlation(rho, strict=False)
    return tuple(rho**k * mu for k, mu in enumerate(_moments(moments, "moments")))


def mehler_correlation(
    first: Sequence[sp.Expr | Fraction | int],
    second: Sequence[sp.Expr | Fraction | int],
    rho: sp.Expr | Fraction | int,
) -> sp.Expr:
    r"""Return :math:`\sum_k \mu_k(s) \mu_k(h) \rho^k/k!` over the orders both sequences have.

    This is E[s(u) h(v)] for standard normal u, v of correlation ρ if one of the two functions is
    a polynomial whose moments are all given; otherwise it is a partial sum of that series.

    Examples
    --------
    >>> rho = sp.Symbol("rho")
    >>> mehler_correlation([1, 0, 2], [1, 0, 2], rho)
    2*rho**2 + 1
    """
    rho = _checked_correlation(rho, strict=False)
    pairs = zip(_moments(first, "first"), _moments(second, "second"), strict=False)
    return sp.Add(*(a * b * rho**k / math.factorial(k) for k, (a, b) in enumerate(pairs)))


def moments_times_variable(
    moments: Sequence[sp.Expr | Fraction | int],
) -> tuple[sp.Expr, ...]:
    r"""Return the moments of z f(z) from those of f: :math:`\mu_{k+1} + k \mu_{k-1}`.

    Notes
    -----
    μ_0, …, μ_K determine K values only, k = 0, …, K-1: the next one needs μ_{K+1}. If f is a
    polynomial of degree at most K, append two zeros first to get all of them.

    Examples
    --------
    >>> moments_times_variable([0, 1, 0, 0])
    (1, 0, 2)
    """
    mu = _moments(moments, "moments")
    return tuple(mu[k + 1] + (k * mu[k - 1] if k else 0) for k in range(len(mu) - 1))


def moments_of_derivative(
    moments: Sequence[sp.Expr | Fraction | int],
) -> tuple[sp.Expr, ...]:
    r"""Return the moments of f' from those of f: :math:`\mu_k(f') = \mu_{k+1}(f)` (Stein).

    One fewer than were given: μ_0, …, μ_K determine k = 0, …, K-1. With jumps, f' includes their
    point masses.

    Examples
    --------
    >>> moments_of_derivative([1, 2, 3])
    (2, 3)
    """
    return tuple(_moments(moments, "moments")[1:])


def _moments(values: Sequence[sp.Expr | Fraction | int], name: str) -> list[sp.Expr]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise ParameterError(
            f"{name} must be a sequence of moments mu_0, mu_1, ..., got {values!r}"
        )
    return [require_exact(value, f"{name}[{k}]") for k, value in enumerate(values)]


def _checked_correlation(value: sp.Expr | Fraction | int, *, strict: bool) -> sp.Expr:
    rho = require_exact(value, "rho")
    inside = 1 - rho**2
    allowed = inside.is_positive if strict else inside.is_nonnegative
    if rho.is_extended_real is False or allowed is False:
        bound = "|rho| < 1" if strict else "|rho| <= 1"
        raise AssumptionError(f"rho = {rho} is not a correlation; give a real number, {bound}")
    return rho
