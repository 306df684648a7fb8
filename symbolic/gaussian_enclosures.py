r"""Proven enclosures of Gaussian expectations, Hermite coefficients and exact constants.

For :math:`\mathbb{E} f(z)`, z ~ N(0, 1), the line is cut at the kinks of f, where it is not
analytic, and at a cutoff L. Inside, each analytic branch times the density is integrated by
``acb.integral`` of python-flint (Gauss–Legendre rules with proven error bounds, adaptive). Outside,
|f| is bounded from its structure and the bound is integrated in closed form (:mod:`.tail_bounds`);
that mass is added to the radius. Hermite coefficients are
:math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]`, divided by neither k! nor its root.

What is proven: the number lies in the interval, if python-flint (Arb) computes correct enclosures,
if SymPy is right about the assumptions it derives (signs and real values of subexpressions) and
about real roots of polynomials, and if the structural rules for kinks and tails are right. The
integrand has to be real on the line and bounded between its kinks; for one with complex values the
real part would be enclosed, but it is refused as soon as an imaginary part is seen.

Precision is raised until the radius is below :math:`10^{-\text{digits}}` of the number, or below
:math:`10^{-2\,\text{digits}}` of the size of what is summed (:math:`\mathbb{E}|f\,\mathrm{He}_k|`,
roughly) where the number is so small that it may be zero: balls never prove that a number is 0.

References
----------
F. Johansson, *Numerical integration in arbitrary-precision ball arithmetic*, arXiv:1802.07942;
F. Johansson, *Arb*, IEEE Trans. Comput. 66 (2017) 1281–1292.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import sympy as sp

from ..ball_library import require_flint
from ..digits import MOST_DIGITS
from ..errors import ConvergenceError, ParameterError, UnsupportedExpressionError
from ..one_thread import ONE_THREAD
from ._singularities import expanded
from .activations import Activation, activation, z
from .ball_functions import Ball
from .enclosures import MAX_EXPONENT, Enclosure
from .functions import relu, sigmoid, softplus
from .gaussian import GaussianExpectation
from .gaussian_balls import ConstantBalls, MomentBalls, NotReached
from .regularity import Parity, analyse

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

    Parameters
    ----------
    f : Activation, Expr or str
        What :func:`.activations.activation` takes.
    order : int
        K, 0 to 200.
    digits : int
        Significant digits to be proven for each, 1 to 1000.

    Returns
    -------
    tuple of Enclosure
        K + 1 of them; exactly 0 by parity, and beyond the degree of a polynomial.

    Raises
    ------
    GiantstepError
        As :func:`enclosed_expectation` and :func:`.activations.activation` do.

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
        return _enclosed(ball, str(expr)[:100], digits)


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


def _enclosed(compute: Callable[[], Ball | None], what: str, digits: int) -> Enclosure:
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
            f"{digits} digits of {what} are not reached: {failure}\n  {reached}", best, residual
        ) from None


def enclosure_of(ball: Ball, what: str) -> Enclosure:
    """Return a finite ball as exact numbers; a radius far below all bounds becomes the bound.

    `what` names the number in the message of an UnsupportedExpressionError.
    """
    (mantissa, exponent), (rounding, scale) = (
        tuple(map(int, part.man_exp())) for part in (ball.mid(), ball.rad())
    )
    farthest = exponent if exponent < -MAX_EXPONENT else max(exponent, scale)
    if abs(farthest) > MAX_EXPONENT:
        raise UnsupportedExpressionError(
            f"{what} is not written down: the power 2**{farthest} occurs in its enclosure, beyond "
            f"2**±{MAX_EXPONENT}"
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
