"""Exact numbers from those a user has: floats are refused, or converted when asked.

Ranks, exponents and zeros are decided exactly, and a float is a decision that was never taken:
0.3333333333333333 may stand for 1/3 or for itself. :func:`require_exact` refuses it;
:func:`rationalized` converts it, by a rule that the user names.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import sympy as sp
from mpmath.libmp import from_str, prec_to_dps, repr_dps, to_str

from ...errors import ParameterError
from ...pages import shorten

_MOST_CONSTANTS = 6
_DEEPEST = 8
# Digits left and right of the point that are worked out; a double has at most 324.
_FARTHEST_EXPONENT = 1000
# A relation is accepted only if a random number would have one less often than this.
_CHANCE = sp.Rational(1, 1000)
_HIGHEST_COEFFICIENT = 10**6
# Denominators that a message shows.
_SHOWN_DENOMINATOR = 1000
# Of the bits of a float that is recognised, the last ones may be rounding errors.
_ROUNDING_BITS = 6
_UNEVALUATED = (sp.Integral, sp.Sum, sp.Product, sp.Derivative, sp.Subs, sp.Limit)
_BITS_BY_SIZE = {2: 11, 4: 24, 8: 53}
_LONG_BITS = 64


def require_exact(value: Any, argument: str) -> sp.Expr:
    """Return a number or an expression as a SymPy expression if it holds no float.

    `value`: integers of NumPy are taken too. `argument`: how the user knows it. Raises
    ParameterError if it holds a float, naming the explicit conversion, or is no number or
    expression.

    Examples
    --------
    >>> require_exact(Fraction(1, 2), "rho")
    1/2
    >>> require_exact(0.5, "rho")
    Traceback (most recent call last):
        ...
    giantstep.errors.ParameterError: rho holds the float 0.5, which is not exact; write \
sp.Rational(1, 2), or convert explicitly with giantstep.rationalized(...)
    """
    if isinstance(value, sp.Expr):
        if value.has(sp.Float):
            raise _inexact(min(value.atoms(sp.Float), key=sp.default_sort_key), argument)
        if value.has(sp.nan):
            raise ParameterError(f"{argument} = {value} is not a number; give it a value")
        return value
    exact = _exact_number(value, argument)
    if exact is None:
        raise _inexact(_as_float(value, argument), argument)
    return exact


def require_evaluated(expr: sp.Expr, argument: str) -> None:
    """Refuse integrals, sums, derivatives and limits of SymPy that were left open.

    To what reads expressions their bound variables look like free ones.

    Examples
    --------
    >>> x = sp.Symbol("x")
    >>> require_evaluated(sp.Integral(sp.exp(x**2), (x, 0, x)), "target")
    Traceback (most recent call last):
        ...
    giantstep.errors.ParameterError: target holds an unevaluated Integral; evaluate it first
    """
    if expr.has(*_UNEVALUATED):
        kind = next(type(node).__name__ for node in expr.atoms(*_UNEVALUATED))
        raise ParameterError(f"{argument} holds an unevaluated {kind}; evaluate it first")


def rationalized(
    value: Any, *, tolerance: Any = None, constants: Sequence[sp.Expr | int | Fraction] = ()
) -> Any:
    r"""Return a value with every float in it replaced by an exact number.

    Parameters
    ----------
    value : number, Expr, Matrix, array or nested sequence of these
        What is exact in it stays as it is.
    tolerance : positive number, optional
        Largest distance of the exact number from the float. Without it, and without `constants`,
        a float becomes the shortest decimal that it is read from: 0.1 becomes 1/10. With it, the
        fraction of the smallest denominator within the tolerance: 0.33333 becomes 1/3 for 1e-5.
    constants : sequence of Expr, optional
        At most six exact real numbers; floats become combinations of 1 and these with small
        rational coefficients, found by an integer relation. The tolerance is then the rounding
        error of the float, if it is not given.

    Returns
    -------
    Expr; Matrix; or nested tuple of these
        Of the shape of `value`. A number that was recognised is a guess of what was meant: look
        at it before you use it.

    Raises
    ------
    ParameterError
        If a float is not finite, no combination of the constants with small coefficients is
        within the tolerance, or there is something else than numbers and expressions.

    Examples
    --------
    >>> x1 = sp.Symbol("x1")
    >>> rationalized(0.5 * sp.tanh(0.1 * x1)), rationalized([1, 0.25])
    (tanh(x1/10)/2, (1, 1/4))
    >>> rationalized(0.333333, tolerance=1e-5)
    1/3
    >>> rationalized([0.7071067811865476, 1.5], constants=[sp.sqrt(2)])
    (sqrt(2)/2, 3/2)
    """
    known = _checked_constants(constants)
    allowed = None if tolerance is None else _checked_tolerance(tolerance)

    def convert(number: sp.Float) -> sp.Expr:
        written = _shortest_decimal(number)
        if known:
            return _combination(number, written, known, allowed)
        return written if allowed is None else _simplest_within(written, allowed)

    return _converted(value, convert, 0)


def _converted(value: Any, convert: Callable[[sp.Float], sp.Expr], depth: int) -> Any:
    if isinstance(value, sp.MatrixBase):
        return value.applyfunc(lambda entry: _converted(entry, convert, depth))
    if isinstance(value, sp.Expr):
        if value.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
            raise ParameterError(f"value {value} is not finite; give finite numbers")
        return value.xreplace({number: convert(number) for number in value.atoms(sp.Float)})
    if _is_sequence(value):
        if depth == _DEEPEST:
            raise ParameterError(f"value is nested more than {_DEEPEST} deep; flatten it")
        return tuple(_converted(entry, convert, depth + 1) for entry in value)
    if isinstance(value, Decimal) and value.is_finite():
        return convert(sp.Float(str(value), max(15, len(value.as_tuple().digits))))
    exact = _exact_number(value, "value")
    return convert(_as_float(value, "value")) if exact is None else exact


def _is_sequence(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return False
    # Arrays are known by what they have: this layer does not import NumPy.
    return isinstance(value, Sequence) or bool(getattr(value, "shape", ()))


def _exact_number(value: Any, argument: str) -> sp.Expr | None:
    """Return an integer or a fraction; None for floats; refuse everything else."""
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return sp.Rational(value)
    single = not getattr(value, "shape", ())
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if single and kind and kind in "iu":
        return sp.Integer(operator.index(value))
    if isinstance(value, float | Decimal | mpmath.mpf) or (single and kind == "f"):
        return None
    hint = "; giantstep.parse_expression reads texts" if isinstance(value, str) else ""
    raise ParameterError(
        f"{argument} must be a SymPy expression, an int or a Fraction, got "
        f"{shorten(repr(value))}{hint}"
    )


def _as_float(value: Any, argument: str) -> sp.Float:
    """Return a float of any kind with the precision it has."""
    size = getattr(getattr(value, "dtype", None), "itemsize", 8)
    if isinstance(value, mpmath.mpf):
        number = sp.sympify(value, strict=True)
    else:
        bits = _BITS_BY_SIZE.get(size, _LONG_BITS)
        number = sp.Float(str(value), precision=bits)
    if not isinstance(number, sp.Float) or not number.is_finite:
        raise ParameterError(f"{argument} holds {value}, which is not finite; give finite numbers")
    return number


def _shortest_decimal(number: sp.Float) -> sp.Rational:
    """Return the decimal of fewest digits that rounds to the float."""
    text = _shortest_text(number)
    if abs(int(text.partition("e")[2] or 0)) > _FARTHEST_EXPONENT:
        raise ParameterError(
            f"the float {text} is beyond 10**{_FARTHEST_EXPONENT} or below its inverse; "
            "write it as a power"
        )
    return sp.Rational(text)


def _shortest_text(number: sp.Float) -> str:
    raw, bits = number._mpf_, number._prec
    double = float(number)
    if bits == _BITS_BY_SIZE[8] and math.isfinite(double) and sp.Float(double)._mpf_ == raw:
        # What Python shows; halves are rounded in another way below.
        return repr(double)
    text = ""
    for digits in range(max(1, prec_to_dps(bits)), repr_dps(bits) + 1):
        text = to_str(raw, digits, min_fixed=-6, max_fixed=17)
        if from_str(text, bits, "n") == raw:
            break
    return text


def _simplest_within(value: sp.Rational, tolerance: sp.Rational) -> sp.Rational:
    """Return the fraction of the smallest denominator in [value - tolerance, value + tolerance]."""
    low, high = value - tolerance, value + tolerance
    if low <= 0 <= high:
        return sp.S.Zero
    sign = 1 if low > 0 else -1
    result = _between(*(Fraction(int(x.p), int(x.q)) for x in sorted((sign * low, sign * high))))
    return sign * sp.Rational(result)


def _between(low: Fraction, high: Fraction) -> Fraction:
    """Continue the common start of the continued fractions of 0 < low <= high."""
    quotients = []
    while True:
        whole = math.ceil(low)
        if whole <= high:
            break
        quotients.append(whole - 1)
        low, high = 1 / (high - (whole - 1)), 1 / (low - (whole - 1))
    result = Fraction(whole)
    for quotient in reversed(quotients):
        result = quotient + 1 / result
    return result


def _combination(
    number: sp.Float,
    written: sp.Rational,
    constants: Sequence[sp.Expr],
    tolerance: sp.Rational | None,
) -> sp.Expr:
    """Return q_0 + Σ q_i c_i within the tolerance of a float, by an integer relation."""
    if tolerance is None:
        tolerance = abs(written) * sp.Rational(1, 2 ** max(1, number._prec - _ROUNDING_BITS))
    if abs(written) <= tolerance:
        return sp.S.Zero
    basis = [sp.S.One, *constants]
    ctx = mpmath.mp.clone()
    ctx.prec = number._prec + 30
    values = [ctx.mpf(written.p) / written.q]
    values += [ctx.mpf(str(c.evalf(ctx.dps + 5))) for c in basis]
    closeness = ctx.mpf(tolerance.p) / tolerance.q
    # With n constants and coefficients up to H, chance brings a combination within (2H)**-n.
    largest = int(ctx.root(_CHANCE.p / (_CHANCE.q * closeness), len(basis)) / 2)
    highest = min(largest, _HIGHEST_COEFFICIENT)
    relation = ctx.pslq(values, tol=closeness, maxcoeff=highest, maxsteps=20_000) if highest else []
    while relation and not relation[0]:
        # A relation among the constants themselves: one of them is not needed.
        last = max(i for i, n in enumerate(relation) if n)
        del basis[last - 1], values[last]
        relation = ctx.pslq(values, tol=closeness, maxcoeff=highest, maxsteps=20_000)
    if relation:
        terms = zip(relation[1:], basis, strict=True)
        result = sp.Add(*(-sp.Rational(n, relation[0]) * c for n, c in terms))
        if abs((result - written).evalf(ctx.dps)) <= tolerance:
            return result
    named = ", ".join(map(str, (1, *constants)))
    raise ParameterError(
        f"no combination of {named} with small rational coefficients is "
        f"within {float(tolerance):.2g} of {number}; name other constants, allow a larger "
        "tolerance, or leave constants out"
    )


def _checked_constants(constants: Iterable[Any]) -> tuple[sp.Expr, ...]:
    if isinstance(constants, str | bytes | sp.Basic) or not isinstance(constants, Iterable):
        raise ParameterError(
            f"constants must be a sequence of exact numbers, got {shorten(repr(constants))}"
        )
    result = [require_exact(c, f"constants[{i}]") for i, c in enumerate(constants)]
    # 1 is always among them; twice the same number is a relation by itself.
    remaining = tuple(c for c in dict.fromkeys(result) if not c.is_Rational)
    for constant in remaining:
        if constant.free_symbols or not constant.is_real:
            raise ParameterError(f"constants must be real numbers, got {constant}")
    if len(remaining) > _MOST_CONSTANTS:
        raise ParameterError(f"constants must be at most {_MOST_CONSTANTS}, got {len(remaining)}")
    return remaining


def _checked_tolerance(tolerance: Any) -> sp.Rational:
    exact = _converted(tolerance, _shortest_decimal, 0)
    if not isinstance(exact, sp.Rational) or exact <= 0:
        raise ParameterError(f"tolerance must be a positive number, got {shorten(repr(tolerance))}")
    return exact


def _inexact(number: sp.Float, argument: str) -> ParameterError:
    shown, advice = (
        _shortest_text(number),
        "an exact number such as sp.Rational(1, 3) or sp.sqrt(2)",
    )
    if "e" not in shown:
        meant = sp.Rational(shown)
        if meant.is_Integer:
            advice = str(meant)
        elif meant.q <= _SHOWN_DENOMINATOR:
            advice = f"sp.Rational({meant.p}, {meant.q})"
    return ParameterError(
        f"{argument} holds the float {shown}, which is not exact; write {advice}, or convert "
        "explicitly with giantstep.rationalized(...)"
    )
