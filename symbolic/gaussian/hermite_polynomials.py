r"""Probabilists' Hermite polynomials and the conventions of their coefficients, exactly.

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
{k: coefficient of He_k}.

Sources: Szegő, *Orthogonal Polynomials* (1939), chapter 5. Janson, *Gaussian Hilbert Spaces*
(1997), chapter 3, has this normalisation.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar, overload

import sympy as sp
from sympy.printing.latex import LatexPrinter

from ...errors import ParameterError
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
    """Coefficients in another convention from moments: each times a power of its factorial.

    Called with a sequence, order 0 first, or a mapping from orders or multi-indices to values.

    Examples
    --------
    >>> he_coefficients_from_moments([0, 0, 2]), orthonormal_coefficients_from_moments([0, 0, 2])
    ((0, 0, 1), (0, 0, sqrt(2)))
    >>> he_coefficients_from_moments({(2, 1): 6})
    {(2, 1): 3}
    """

    power: sp.Rational

    @overload
    def __call__(self, values: Mapping[Key, Any]) -> dict[Key, sp.Expr]: ...
    @overload
    def __call__(self, values: Sequence[Any]) -> tuple[sp.Expr, ...]: ...
    def __call__(
        self, values: Mapping[Key, Any] | Sequence[Any]
    ) -> dict[Key, sp.Expr] | tuple[sp.Expr, ...]:
        if isinstance(values, Mapping):
            return {
                key: require_exact(value, f"moments[{key}]") * self._weight(_factorial(key))
                for key, value in values.items()
            }
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise ParameterError(
                f"moments must be a sequence or a mapping from orders to values, got {values!r}"
            )
        return tuple(
            require_exact(value, f"moments[{k}]") * self._weight(math.factorial(checked_order(k)))
            for k, value in enumerate(values)
        )

    def _weight(self, factorial: int) -> sp.Expr:
        return sp.Integer(factorial) ** self.power


he_coefficients_from_moments = Conversion(sp.Integer(-1))
orthonormal_coefficients_from_moments = Conversion(-sp.S.Half)


def _factorial(key: Hashable) -> int:
    """Return k! or α!."""
    orders = key if isinstance(key, tuple) else (key,)
    return math.prod(
        math.factorial(checked_order(order, f"of the key {key!r} of moments")) for order in orders
    )
