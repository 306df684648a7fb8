r"""Whether an exact number is zero: a proof of zero, a proof of the contrary, or an error.

Nothing is guessed. In this order:

1. rationals and algebraic numbers, nested roots and trigonometric values at rational multiples of
   pi included, are decided exactly by a separation bound (:mod:`.algebraic_numbers`);
2. an interval that excludes zero proves that a constant is not zero (:mod:`.constant_enclosures`),
   at rising precision up to `HIGHEST_DIGITS` digits;
3. the normal form in pi, exponentials and independent generators proves zero, and by Lindemann's
   and Weierstrass's theorems the contrary (:mod:`.constant_forms`);
4. constants with a part that has no interval there, expectations :math:`\mathbb{E}` above all, are
   enclosed by balls if python-flint is installed (:mod:`.gaussian_enclosures`); where there is no
   ball they are taken as non-zero if evaluations at two precisions agree to twelve digits, which
   rests on the quadrature's own estimate of its error. Digits never decide that such a constant is
   zero.

Anything else is an :class:`~giantstep.errors.UndecidedError` that lists what was tried.
"""

from __future__ import annotations

import sympy as sp

from ..errors import GiantstepError, MissingDependencyError, ParameterError, UndecidedError
from .algebraic_numbers import MAX_BITS, algebraic_is_zero, measure
from .averages import Average
from .constant_enclosures import NoEnclosure, enclosed_sign, enclosure
from .constant_forms import is_zero_by_structure
from .functions import HALF, relu

HIGHEST_DIGITS = 1200
_ENCLOSED_DIGITS = (30, 120, HIGHEST_DIGITS)
_BITS_PER_DIGIT = 3.33
_BALL_DIGITS = (30, 80)
_QUADRATURE_DIGITS = (30, 60, 90)
_AGREEING_DIGITS = 12


def is_exactly_zero(value: sp.Expr, what: str) -> bool:
    """Decide whether an exact number is zero; never guesses.

    Parameters
    ----------
    value : Expr
        Exact number, possibly with 𝔼 nodes. With free symbols, the question is whether it is zero
        for all their admitted values; the answer no means for none.
    what : str
        Name of the quantity for the message.

    Returns
    -------
    bool

    Raises
    ------
    UndecidedError
        If neither a proof of zero nor a digit different from zero is found; the message lists what
        was tried.
    ParameterError
        If `value` is a floating-point number or holds one, or is infinite or undefined.

    Notes
    -----
    The answer False for a value that holds an 𝔼 node, or a function without an enclosure, rests on
    quadrature at two precisions that agree if there is no ball for it, as without python-flint;
    every other answer is proven. Work is bounded by sizes (bits, terms, degrees), not by a clock.

    Examples
    --------
    >>> from sympy import Rational, cos, pi, sqrt
    >>> is_exactly_zero(cos(pi / 7) - cos(2 * pi / 7) + cos(3 * pi / 7) - Rational(1, 2), "c")
    True
    >>> is_exactly_zero(sp.exp(pi * sqrt(163)) - 262537412640768744, "Ramanujan's constant")
    False
    """
    value = sp.sympify(value, strict=True)
    if value.has(sp.Float, sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise ParameterError(
            f"whether {what} is zero is asked of {_shown(value)}, which is not an exact finite "
            "number; give rationals instead of decimals, and a value without infinities"
        )
    tried: list[str] = []
    decided = _decide(_without_signs(value), tried)
    if decided is None:
        steps = "".join(f"\n  - {step}" for step in tried)
        raise UndecidedError(
            f"whether {what} is zero cannot be decided: {_shown(value)}; tried:{steps}"
        )
    return decided


def _decide(value: sp.Expr, tried: list[str]) -> bool | None:
    if value.is_Rational:
        return bool(value.is_zero)
    if value.is_Mul:
        return _product(value, tried)
    if value.free_symbols:
        return _in_symbols(value, tried)
    bounds = measure(value)
    if bounds is not None:
        decided = algebraic_is_zero(value)
        if decided is None:
            tried.append(
                f"algebraic number: a proof of zero would take {bounds.separation_bits:.3g} bits, "
                f"more than {MAX_BITS}, or it divides by zero"
            )
        return decided
    decided = is_zero_by_structure(value)
    if decided is not None:
        return decided
    tried.append(
        "normal form in pi, exponentials, logarithms, angles and values of other functions: "
        "not zero as far as it sees, and no theorem says that it is not"
    )
    return _nonzero_by_digits(value, tried)


def _product(value: sp.Expr, tried: list[str]) -> bool | None:
    """A product is zero if a factor is; each factor is asked by itself."""
    decisions = []
    for factor in value.args:
        base, exponent = factor.as_base_exp()
        decisions.append(_decide(base, tried))
        if decisions[-1] and not exponent.is_positive:
            tried.append(f"product: it divides by {_shown(base)}, which is zero")
            return None
    if any(decisions):
        return True
    return None if None in decisions else False


def _in_symbols(value: sp.Expr, tried: list[str]) -> bool | None:
    names = ", ".join(sorted(str(symbol) for symbol in value.free_symbols))
    decided = is_zero_by_structure(value)
    if decided is not None:
        return decided
    if value.is_zero is False:
        return False
    tried.append(f"identity in {names}: no rule shows that it holds for all their values")
    tried.append(f"assumptions on {names}: they do not exclude zero; substitute numbers")
    return None


def _nonzero_by_digits(value: sp.Expr, tried: list[str]) -> bool | None:
    for digits in _ENCLOSED_DIGITS:
        try:
            found = enclosure(value, int(digits * _BITS_PER_DIGIT))
        except NoEnclosure as error:
            tried.append(f"proven interval: {error}")
            break
        if any(bool(part > 0) or bool(part < 0) for part in (found.real, found.imag)):
            return False
    else:
        tried.append(f"proven interval: it holds zero at {HIGHEST_DIGITS} digits")
        return None
    excluded = _ball_excludes_zero(value, tried)
    if excluded is None:
        excluded = _digits_agree(value, tried)
    return False if excluded else None


def _ball_excludes_zero(value: sp.Expr, tried: list[str]) -> bool | None:
    """Whether a ball excludes zero; None if there is no ball.

    Where balls hold zero at all precisions, fewer digits from quadrature can show nothing else.
    """
    # Imported here because it needs the activations, whose coefficients are tested by this module.
    from .gaussian_enclosures import enclosed_value

    for digits in _BALL_DIGITS:
        try:
            if not enclosed_value(value, digits=digits).contains_zero:
                return True
        except MissingDependencyError:
            tried.append("proven balls: they need the package python-flint")
            return None
        except GiantstepError as error:
            tried.append(f"proven balls: {_first_line(error)}")
            return None
    tried.append(f"proven balls: they hold zero at {_BALL_DIGITS[-1]} digits")
    return False


def _digits_agree(value: sp.Expr, tried: list[str]) -> bool:
    """Whether two evaluations at different precisions show the same non-zero number."""
    basis = "quadrature" if value.has(Average) else "evaluation"
    previous = None
    for digits in _QUADRATURE_DIGITS:
        try:
            # One quadrature for each node: evalf of the whole would repeat them while it cancels.
            nodes = {node: node.evalf(digits) for node in value.atoms(Average)}
            found = value.xreplace(nodes).evalf(digits)
        except (GiantstepError, ArithmeticError) as error:
            tried.append(f"{basis} to {digits} digits: {_first_line(error)}")
            return False
        if not found.is_number or found.has(Average) or not found.is_finite:
            tried.append(f"{basis} to {digits} digits: it has no value")
            return False
        if previous is not None and found != 0:
            close = abs(found - previous) < abs(found) * sp.Float(10) ** -_AGREEING_DIGITS
            if close and abs(found) > sp.Float(10) ** (_AGREEING_DIGITS - digits):
                return True
        previous = found
    tried.append(f"{basis} to {_QUADRATURE_DIGITS[-1]} digits: no digit stays different from zero")
    return False


def _without_signs(value: sp.Expr) -> sp.Expr:
    """Replace |c|, sign(c), relu(c) and steps of a constant by what its proven sign makes them."""
    rules = {
        sp.Abs: lambda x, s: s * x,
        sp.sign: lambda x, s: s,
        relu: lambda x, s: (1 + s) * x / 2,
        sp.Heaviside: lambda x, s: (1 + s) / 2,
    }

    def is_known(node: sp.Basic) -> bool:
        return type(node) in rules and node.args[-1] in (node.args[0], HALF)

    def resolved(node: sp.Expr) -> sp.Expr:
        x = node.args[0]
        if x.free_symbols or x.is_extended_real is not True:
            return node
        if is_zero_by_structure(x):
            return rules[type(node)](x, sp.S.Zero)
        found = next((s for d in _ENCLOSED_DIGITS if (s := _sign(x, d))), 0)
        return rules[type(node)](x, sp.Integer(found)) if found else node

    return value.replace(is_known, resolved)


def _sign(x: sp.Expr, digits: int) -> int:
    return enclosed_sign(x, int(digits * _BITS_PER_DIGIT))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:120]


def _shown(value: sp.Expr) -> str:
    try:
        text = str(value)
    except ValueError:  # Python does not write integers of more than some thousand digits.
        return "a value with very long integers"
    return text if len(text) <= 80 else f"{text[:77]}..."
