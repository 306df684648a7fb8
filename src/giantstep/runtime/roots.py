"""Roots of functions of one number, to the precision of an mpmath context.

Roots and minima of functions of one float are SciPy's. Newton's method for systems is that of
generated kernels (:mod:`giantstep.symbolic.lowering`), in all languages. What is no such system has
steps of its own: solutions in a box at many points at once, across a curve
(:mod:`giantstep.numeric.branches`), complex ones without safeguards, as roots far away are not
wanted (:mod:`giantstep.numeric.spectra.bulk`), minima over positive matrices along curves that
stay inside (:mod:`giantstep.numeric.positive_minimum`), and leading coefficients of series, whose
equations are series themselves. Intervals that prove a root are no iteration towards it
(:mod:`giantstep.numeric.proofs.krawczyk`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ConvergenceError

_MOST_STEPS = 200


def newton(
    move: Callable[[Any], Any], start: Any, accuracy: Any, what: str, *, size: Any = 0
) -> Any:
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
    size : number
        That steps are relative to, too, where the root may be zero.

    Raises
    ------
    ConvergenceError
        If steps do not get so short.
    """
    x = start
    for _ in range(_MOST_STEPS):
        step = move(x)
        x -= step
        if abs(step) <= (abs(x) + size) * accuracy:
            return x
    raise ConvergenceError(f"{what} cannot be refined: Newton's method is lost", state=x)


def secant(
    function: Callable[[Any], Any], start: Any, before: Any, accuracy: Any, what: str, *,
    size: Any = 0,
) -> Any:  # fmt: skip
    """Return a root as :func:`newton` does, by slopes between the last two points.

    Parameters
    ----------
    function : callable
    start, before : number
        The first two points; `start` is close to the root.
    accuracy, what, size
        As for :func:`newton`.

    Raises
    ------
    ConvergenceError
        If steps do not get so short, or the function is flat between two points.
    """
    last: tuple[Any, Any] | None = None

    def move(x: Any) -> Any:
        nonlocal last
        value = function(x)
        if value == 0:
            return value
        other, there = last or (before, function(before))
        last = x, value
        if value == there:
            raise ConvergenceError(f"{what} cannot be refined: values are flat there", state=x)
        return value * (x - other) / (value - there)

    return newton(move, start, accuracy, what, size=size)


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
