r"""Probabilists' Hermite polynomials and the Hermite coefficients of an activation.

Convention, throughout giantstep: He_k has weight exp(-z²/2) and leading coefficient 1;
:math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]` is divided by neither k! nor its root, so that
:math:`f = \sum_k (\mu_k/k!)\,\mathrm{He}_k`.
"""

from __future__ import annotations

import sympy as sp

from ..errors import AssumptionError, UndecidedError
from .activations import Activation, z
from .gaussian import GaussianExpectation, expect
from .regularity import Parity

_DIGITS = 30
# Beyond this order a coefficient that has not shown up is taken as a sign of a wrong expression.
_HIGHEST_ORDER = 40


def hermite_polynomial(k: int, x: sp.Expr) -> sp.Expr:
    """Return the probabilists' Hermite polynomial He_k(x), expanded.

    Examples
    --------
    >>> hermite_polynomial(3, sp.Symbol("x"))
    x**3 - 3*x
    """
    if k < 0:
        raise ValueError(f"order k must be >= 0, got {k}")
    previous, current = sp.S.One, x
    if k == 0:
        return previous
    for n in range(1, k):
        previous, current = current, sp.expand(x * current - n * previous)
    return current


def hermite_coefficient(f: Activation, k: int) -> sp.Expr:
    r"""Return :math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]`, exactly.

    Parameters
    ----------
    f : Activation
    k : int
        Order, k >= 0.

    Returns
    -------
    Expr
        A number; an unevaluated 𝔼 node (evaluate it with ``evalf``) where no rule gives a closed
        form; exactly 0 where the parity of f says so.

    Examples
    --------
    >>> from giantstep.symbolic.activations import activation
    >>> hermite_coefficient(activation("relu"), 2)
    sqrt(2)/(2*sqrt(pi))
    >>> hermite_coefficient(activation("tanh"), 2)
    0
    """
    if (f.parity is Parity.ODD and k % 2 == 0) or (f.parity is Parity.EVEN and k % 2 == 1):
        return sp.S.Zero
    return expect(f.expr * hermite_polynomial(k, z), z)


def information_exponent(f: Activation) -> int:
    r"""Return the smallest k ≥ 1 with :math:`\mu_k \ne 0`; for one direction also the leap index.

    Raises
    ------
    UndecidedError
        If a coefficient is numerically zero to 30 digits and not provably zero.
    AssumptionError
        If all coefficients up to a high order vanish.
    """
    for k in range(1, _HIGHEST_ORDER + 1):
        if not is_exactly_zero(hermite_coefficient(f, k), f"Hermite coefficient {k} of {f.name}"):
            return k
    raise AssumptionError(
        f"the Hermite coefficients 1 to {_HIGHEST_ORDER} of {f.name} vanish: as far as can be "
        "seen it is constant"
    )


def is_exactly_zero(value: sp.Expr, what: str) -> bool:
    """Decide whether an exact number is zero; never guesses.

    Parameters
    ----------
    value : Expr
        Exact number, possibly with 𝔼 nodes.
    what : str
        Name of the quantity for the message.

    Raises
    ------
    UndecidedError
        If neither a proof of zero nor a digit different from zero is found.
    """
    if value.is_zero is not None and not value.has(GaussianExpectation):
        return bool(value.is_zero)
    digits = value.evalf(_DIGITS)
    if digits.is_number and abs(digits) > sp.Float(10) ** (5 - _DIGITS):
        return False
    if not value.has(GaussianExpectation) and sp.simplify(value) == 0:
        return True
    raise UndecidedError(
        f"whether {what} is zero cannot be decided: its first {_DIGITS - 5} digits vanish, and no "
        "rule proves that all do"
    )
