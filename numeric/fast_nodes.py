"""Nodes of rules to many digits as numbers of python-flint, where that is installed.

A number of mpmath is an object of Python, and so is every operation with it; those of python-flint
are several times as fast. Only what stands inside passes over nodes is computed with them: their
sums, and Newton's method, which compares, are numbers of mpmath.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ..ball_library import require_flint

# Balls carry a radius; the numbers in their middles are taken.
_SPARE_BITS = 20
_FUNCTIONS = (
    "exp", "log", "log1p", "expm1", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "sech", "asinh", "acosh", "atanh", "erf", "erfc",
)  # fmt: skip


@contextmanager
def fast_nodes(ctx: Any) -> Iterator[None]:
    """Let nodes be numbers of python-flint in a context of mpmath; nothing without the package.

    Parameters
    ----------
    ctx : mpmath context
        From :func:`giantstep.runtime.precision.local_context`; changed.
    """
    if importlib.util.find_spec("flint") is None:
        yield
        return
    flint = require_flint()
    ball = flint.arb

    def taught(name: str) -> Any:
        usual = getattr(ctx, name)

        def function(x: Any, *more: Any) -> Any:
            return getattr(x, name)() if type(x) is ball else usual(x, *more)

        return function

    new = {name: taught(name) for name in _FUNCTIONS}
    mag, extraprec = ctx.mag, ctx.extraprec
    # A ball has its bits to spare: no function of it needs more, and none is what setting costs.
    new["mag"] = lambda x: 0 if type(x) is ball else mag(x)
    new["extraprec"] = lambda bits: extraprec(bits) if bits else nullcontext()
    new["node_number"] = ball
    usual = {name: getattr(ctx, name) for name in new}
    vars(ctx).update(new)
    try:
        with flint.ctx.workprec(ctx.prec + _SPARE_BITS):
            yield
    finally:
        vars(ctx).update(usual)
