"""Roots of functions of one number, to the precision of an mpmath context.

Systems, and many equations at once, have methods of their own: those of generated kernels
(:mod:`giantstep.symbolic.lowering`), of branches (:mod:`giantstep.numeric.branches`) and of
self-consistent resolvents (:mod:`giantstep.numeric.spectra`). Roots of functions of floats are
SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ConvergenceError

_MOST_STEPS = 200


def newton(move: Callable[[Any], Any], start: Any, accuracy: Any, what: str) -> Any:
    """Return a root by Newton's method, from close to it.

    Parameters
    ----------
    move : callable
        Value divided by derivative, at a real or complex number.
    start : number
    accuracy : number
        Relative size of the last step; what is left is about its square.
    what : str
        Of what the root is, for the message.

    Raises
    ------
    ConvergenceError
        If steps do not get so short.
    """
    x = start
    for _ in range(_MOST_STEPS):
        step = move(x)
        x -= step
        if abs(step) <= abs(x) * accuracy:
            return x
    raise ConvergenceError(f"{what} cannot be refined: Newton's method is lost", state=x)


def bracketed_root(
    at: Callable[[Any], tuple[Any, Any]],
    bracket: tuple[Any, Any],
    ctx: Any,
    *,
    start: Any = None,
    middle: Callable[[Any, Any], Any] | None = None,
    size: Any = 0,
) -> Any | None:
    """Return the one root in a bracket by Newton's method, with bisection where it does not shrink.

    Parameters
    ----------
    at : callable
        Value and derivative of a function that is negative below the root and positive above.
    bracket : tuple of numbers
    ctx : mpmath context
    start : number, optional
        In the bracket; its middle by default.
    middle : callable, optional
        Where a bracket is cut; half way by default.
    size : number
        Of terms of which the value is a difference: rounding of the root is relative to them too.

    Returns
    -------
    number or None
        None if the steps do not get as short as rounding, as of a value that is not a number.

    Examples
    --------
    >>> import mpmath
    >>> ctx = mpmath.mp.clone()
    >>> found = bracketed_root(lambda x: (x**3 - 2, 3 * x**2), (ctx.mpf(0), ctx.mpf(2)), ctx)
    >>> abs(found - ctx.cbrt(2)) < 1e-15
    True
    """
    low, high = sorted(bracket)
    cut = middle or (lambda low, high: (low + high) / 2)
    x = cut(low, high) if start is None else start
    last = high - low
    for _ in range(20 * ctx.prec):
        value, slope = at(x)
        if value == 0:
            return x
        low, high = (x, high) if value < 0 else (low, x)
        step = value / slope if slope else ctx.inf
        # Inside a bracket alone, Newton's method may go round in a circle: steps have to shrink.
        if not low <= x - step <= high or not 2 * abs(step) <= last:
            step = x - cut(low, high)
        x, last = x - step, abs(step)
        if min(last, high - low) <= 8 * ctx.eps * (abs(x) + size):
            return x
    return None
