r"""Hermite coefficients of an activation: exact values, closed form in the order, decay.

Convention, throughout giantstep: He_k has weight exp(-z²/2) and leading coefficient 1;
:math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]` is divided by neither k! nor its root, so that
:math:`f = \sum_k (\mu_k/k!)\,\mathrm{He}_k`.

A function is split into a part whose moments have a closed form in k (:mod:`.hermite_rules`) and
the rest, which is expanded order by order (:mod:`.hermite_open_moments`). Nothing is integrated.
"""

from __future__ import annotations

import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits

from ..errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from .activations import CATALOGUE, Activation, activation, z
from .gaussian import GaussianExpectation
from .hermite_closed_forms import ClosedForm, sequence_parity
from .hermite_decay import Decay, DecayKind
from .hermite_open_moments import open_moment
from .hermite_polynomials import checked_order, hermite_polynomial
from .hermite_rules import Decomposition, decompose
from .hermite_table import CoefficientBasis, HermiteCoefficients
from .parser import parse_expression
from .piecewise_polynomials import without_extrema
from .regularity import Parity, require_square_integrable
from .zero_test import is_exactly_zero

__all__ = [
    "ClosedForm",
    "CoefficientBasis",
    "Decay",
    "DecayKind",
    "HermiteCoefficients",
    "hermite_coefficient",
    "hermite_coefficients",
    "hermite_polynomial",
    "information_exponent",
    "is_exactly_zero",
]

MAX_ORDER = 1000
"""Highest order of a coefficient."""

MAX_ORDER_WITH_PARAMETERS = 200
"""The same for functions with parameters, whose coefficients are polynomials in these."""

MAX_ORDER_WITHOUT_FORM = 200
"""The same for functions without closed form in k, whose coefficients hold He_k in full."""

HIGHEST_OPEN_ORDER = 40
"""Beyond it, a first coefficient that has not shown up is taken as a sign of a wrong expression."""


def hermite_coefficients(
    f: str | sp.Expr | Activation,
    order: int,
    *,
    variable: sp.Symbol | None = None,
    argument: str = "function",
) -> HermiteCoefficients:
    r"""Return :math:`\mu_0, \dots, \mu_K`, :math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]`.

    Parameters
    ----------
    f : str, Expr or Activation
        A name of the catalogue, the text of an expression in z, an activation, or a SymPy
        expression. With parameters, as in erf(a*z + b), an expression and its `variable`.
    order : int
        K, from 0 to `MAX_ORDER`, or to `MAX_ORDER_WITH_PARAMETERS` if there are parameters, or to
        `MAX_ORDER_WITHOUT_FORM` if there is no closed form in k.
    variable : Symbol, optional
        The standard normal variable; it must be given if `f` has parameters. Declared real, or
        without assumptions.
    argument : str
        How the user knows the function; error messages name it.

    Returns
    -------
    HermiteCoefficients
        A sequence of exact values, with their closed form in k and their decay.

    Raises
    ------
    ParameterError
        If `order` is not an integer in that range, or `variable` is missing, not a variable over
        the real line, or not the symbol in `f`: the same name with different assumptions is another
        symbol for SymPy.
    ExpressionError
        If a text is not an expression, or `f` does not depend on one variable.
    AssumptionError
        If :math:`\mathbb{E} f(z)^2` is not finite, or the result depends on assumptions that a
        parameter lacks; the message names it.
    UnsupportedExpressionError
        If the growth or the kinks of `f` are not known, or it holds an integral or a derivative.

    Notes
    -----
    Probabilists' polynomials. The rules are in :mod:`.hermite_rules`; coefficients without closed
    form hold unevaluated expectations 𝔼.

    Examples
    --------
    >>> hermite_coefficients("erf(z)", 3)[:]
    (0, 2*sqrt(3)/(3*sqrt(pi)), 0, -4*sqrt(3)/(9*sqrt(pi)))
    >>> a, b = sp.symbols("a b", real=True)
    >>> found = hermite_coefficients(sp.sin(a * z + b), 2, variable=z)
    >>> found[2], found.closed_form.general
    (-a**2*exp(-a**2/2)*sin(b), a**k*exp(-a**2/2)*sin(b + pi*k/2))
    >>> hermite_coefficients("tanh", 3).evalf(20)
    (0, 0.60570550960215882558, 0, -0.36359537628097414950)
    """
    last = _checked(order)
    function, variable, name = _read(f, variable, argument)
    parts = _decomposed(function, variable, last)
    parity = sequence_parity(parts.sequence)
    values, basis = [], []
    for k in range(last + 1):
        value = _moment(parts, variable, k)
        values.append(value)
        basis.append(_basis(value, k, None if parts.open_terms else parity))
    return HermiteCoefficients(function, variable, tuple(values), tuple(basis), name, parts)


def hermite_coefficient(
    f: str | sp.Expr | Activation, k: int, *, variable: sp.Symbol | None = None
) -> sp.Expr:
    r"""Return :math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]`, exactly.

    Parameters
    ----------
    f : str, Expr or Activation
        As in :func:`hermite_coefficients`.
    k : int
        Order, from 0 to `MAX_ORDER`, or less as there.
    variable : Symbol, optional
        As there.

    Returns
    -------
    Expr
        A number; an unevaluated 𝔼 node (evaluate it with ``evalf``) where no rule gives a closed
        form; exactly 0 where the parity of f says so.

    Raises
    ------
    GiantstepError
        As :func:`hermite_coefficients`.

    Examples
    --------
    >>> hermite_coefficient("relu", 2)
    sqrt(2)/(2*sqrt(pi))
    >>> hermite_coefficient("tanh", 2)
    0
    """
    order = _checked(k)
    function, variable, _ = _read(f, variable, "function")
    return _moment(_decomposed(function, variable, order), variable, order)


def information_exponent(f: str | sp.Expr | Activation) -> int:
    r"""Return the smallest k ≥ 1 with :math:`\mu_k \ne 0`; for one direction also the leap index.

    Parameters
    ----------
    f : str, Expr or Activation
        A name of the catalogue, the text of an expression in z, an expression in one variable, or
        an activation.

    Raises
    ------
    ExpressionError
        If `f` is none of these.
    UndecidedError
        If a coefficient is numerically zero and not provably zero.
    AssumptionError
        If all coefficients up to a high order vanish.

    Notes
    -----
    Coefficients may be any numbers whose zeros are decided; :func:`.leap_index`, which works with
    several directions, needs polynomials over an exact field.

    Examples
    --------
    >>> information_exponent("z**2*exp(-z**2)")
    4
    """
    f = activation(f, argument="function")
    for k in range(1, HIGHEST_OPEN_ORDER + 1):
        if not is_exactly_zero(hermite_coefficient(f, k), f"Hermite coefficient {k} of {f.name}"):
            return k
    raise AssumptionError(
        f"the Hermite coefficients 1 to {HIGHEST_OPEN_ORDER} of {f.name} vanish: as far as can be "
        "seen it is constant"
    )


def _checked(order: int) -> int:
    order = checked_order(order)
    if order > MAX_ORDER:
        raise ParameterError(f"order {order} is too high; coefficients go up to {MAX_ORDER}")
    return order


def _decomposed(function: sp.Expr, variable: sp.Symbol, order: int) -> Decomposition:
    """Split the function if coefficients of the order can be written down."""
    if order > MAX_ORDER_WITH_PARAMETERS and function.free_symbols - {variable}:
        raise ParameterError(
            f"order {order} is too high for a function with parameters; they go up to "
            f"{MAX_ORDER_WITH_PARAMETERS}, or take the closed form in k"
        )
    parts = decompose(function, variable)
    if order > MAX_ORDER_WITHOUT_FORM and parts.open_terms:
        raise ParameterError(
            f"order {order} is too high for {function}, whose coefficients have no closed form in "
            f"k; they go up to {MAX_ORDER_WITHOUT_FORM}"
        )
    return parts


def _moment(parts: Decomposition, variable: sp.Symbol, k: int) -> sp.Expr:
    value = parts.sequence.value(k)
    return value + open_moment(parts.open_terms, variable, k) if parts.open_terms else value


def _basis(value: sp.Expr, k: int, parity: Parity | None) -> CoefficientBasis:
    """What a coefficient rests on; the parity is None if a part has no closed form."""
    if value == 0 and parity in (None, Parity.EVEN if k % 2 else Parity.ODD):
        return CoefficientBasis.PARITY_ZERO
    is_open = parity is None and value.has(GaussianExpectation)
    return CoefficientBasis.OPEN if is_open else CoefficientBasis.EXACT


def _read(
    f: str | sp.Expr | Activation, variable: sp.Symbol | None, argument: str
) -> tuple[sp.Expr, sp.Symbol, str]:
    """Return the function, its Gaussian variable and its name, all checked."""
    if variable is None:
        if isinstance(f, sp.Expr):
            _require_evaluated(f, argument)
            _require_one_variable(f, argument)
        found = activation(f, argument=argument)
        return found.expr, z, found.name
    if not isinstance(variable, sp.Symbol):
        raise ParameterError(f"variable must be a SymPy Symbol, got {variable!r}")
    _require_line(variable)
    if isinstance(f, Activation) or (isinstance(f, str) and f.strip() in CATALOGUE):
        expr = activation(f).expr.xreplace({z: variable})
    elif isinstance(f, str):
        expr = parse_expression(f, [variable], argument=argument)
    elif isinstance(f, sp.Expr):
        expr = f
    else:
        raise ParameterError(
            f"{argument} has to be a name, a text or a SymPy expression, not {f!r}"
        )
    _require_evaluated(expr, argument)
    _require_distinct_names(expr.free_symbols | {variable}, argument)
    real = sp.Symbol(variable.name, real=True)
    # Floats print as the decimals that were meant; the expression has to be exact.
    exact = {number: sp.Rational(str(number)) for number in expr.atoms(sp.Float)}
    expr = expr.xreplace({variable: real, **exact})
    expr = without_extrema(expr, argument)
    if not expr.is_polynomial(real):
        _require_real_parameters(expr.free_symbols - {real}, argument)
        # Its own refusals name the parameter and the assumption that is missing.
        decompose(expr, real)
        require_square_integrable(expr, real, argument=argument)
    return expr, real, str(f)


def _require_evaluated(expr: sp.Expr, argument: str) -> None:
    """Refuse what is no number at a point, and what SymPy has still to work out."""
    found = expr.atoms(sp.Derivative, sp.Subs, sp.Limit, ExprWithLimits)
    if found:
        raise UnsupportedExpressionError(
            f"{argument} holds {min(map(str, found))}, which is not worked out; use doit() first"
        )
    for value in (sp.I, sp.nan, sp.oo, -sp.oo, sp.zoo):
        if expr.has(value):
            raise AssumptionError(
                f"{argument} has to be real, but {expr} holds {value}: it is not a finite real "
                "expression"
            )


def _require_one_variable(f: sp.Expr, argument: str) -> None:
    symbols = sorted(f.free_symbols, key=str)
    if len(symbols) > 1:
        _require_distinct_names(f.free_symbols, argument)
        raise ExpressionError(
            f"{argument} {f} has the symbols {', '.join(map(str, symbols))}; say which one is the "
            f"standard normal variable, as in variable={symbols[-1]}"
        )
    for symbol in symbols:
        _require_line(symbol)


def _require_line(variable: sp.Symbol) -> None:
    """Refuse a variable with assumptions that a Gaussian variable does not fulfil."""
    facts = (variable.is_nonnegative, variable.is_nonpositive, variable.is_nonzero)
    limited = any(fact is not None for fact in (*facts, variable.is_integer, variable.is_rational))
    if limited or variable.is_extended_real is False or not variable.is_commutative:
        raise ParameterError(
            f"variable {variable} is declared with assumptions that a standard normal variable "
            "does not fulfil: SymPy has simplified with them\n"
            f"  use Symbol({variable.name!r}, real=True)"
        )


def _require_distinct_names(symbols: set[sp.Symbol], argument: str) -> None:
    seen: dict[str, sp.Symbol] = {}
    for symbol in sorted(symbols, key=lambda s: (s.name, str(s.assumptions0))):
        if symbol.name in seen:
            raise ParameterError(
                f"{argument} and variable hold two symbols {symbol.name!r}: same name, different "
                "assumptions; for SymPy they are different variables\n"
                f"  declare {symbol.name} once, as Symbol({symbol.name!r}, real=True), and use "
                "it everywhere"
            )
        seen[symbol.name] = symbol


def _require_real_parameters(symbols: set[sp.Symbol], argument: str) -> None:
    unknown = sorted(symbol.name for symbol in symbols if not symbol.is_extended_real)
    if unknown:
        raise AssumptionError(
            f"the Hermite coefficients of {argument} depend on whether {', '.join(unknown)} "
            f"{'is' if len(unknown) == 1 else 'are'} real\n"
            f"  declare Symbol({unknown[0]!r}, real=True), or positive=True"
        )
