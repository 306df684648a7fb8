"""Text around the solver in a file for mpmath: arguments, first values, two precisions."""

IMPORTS = """from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import mpmath


class ConvergenceError(RuntimeError):
    \"\"\"Two rules never agree, or Newton's method fails.\"\"\"

    def __init__(self, message, state=None):
        super().__init__(message)
        self.state = state
"""

DRIVER = '''
def solve_point(parameters, data=None, digits=50):
    """Solve at one set of parameters; return {output: (value, estimated error)}.

    Parameters
    ----------
    parameters : dict
        A number for each of `PARAMETERS`. Integers, fractions, strings such as "0.1" and "1/3" and
        numbers of mpmath are taken as they are, a float as the decimal number that it prints as.
    data : dict, optional
        For each name of `DATA` a dict of its columns, equally long, and optionally "weight",
        which counts relative to the sum. If there is one data set only, its columns themselves.
    digits : int
        Digits of the results; they are estimated from two rules, not proven.

    Raises
    ------
    ValueError
        If a parameter or data are missing, unknown or outside their domain.
    RuntimeError
        If no solution is found to so many digits.
    """
    if not (isinstance(digits, int) and digits >= 1):
        raise ValueError(f"digits must be a positive integer, got {digits!r}")
    start = None
    # A rough solution first: Newton's method makes its first steps on few nodes. Large values
    # need digits to spare.
    for wanted in (min(4 if KERNEL.inner_nodes else 12, digits), digits):
        spare = 0
        if start is not None:
            largest = max((abs(x) for x in start.values()), default=0)
            spare = max(0, math.ceil(math.log10(1 + largest)))
        ctx = local_context(wanted, spare)
        values = parameter_values(ctx, parameters)
        columns = data_columns(ctx, data)
        if start is None:
            start = first_values(ctx, values)
        try:
            outputs, errors, _ = solve_precisely(
                KERNEL,
                values,
                ctx=ctx,
                digits=wanted,
                start=start,
                data=columns,
                **line_arguments(ctx, values, wanted),
            )
        except (ConvergenceError, ArithmeticError, ValueError, TypeError) as error:
            raise ConvergenceError(f"no solution{place(parameters)}: {error}") from None
        # An output without unknowns may be an integer, or a constant such as pi.
        outputs = {
            name: x if isinstance(x, ctx.mpc) else ctx.mpf(x) for name, x in outputs.items()
        }
        if not all(isinstance(x, ctx.mpf) and ctx.isfinite(x) for x in outputs.values()):
            raise ConvergenceError(
                f"no solution{place(parameters)}: the results are no real numbers"
            )
        start = {name: outputs[name] for name in KERNEL.unknowns}
    scale = max([int(KERNEL.absolute), *(abs(x) for x in outputs.values())])
    # What a symmetry makes vanish is only as small as rounding makes it; an unknown that may be
    # zero has a residual relative to one.
    return {
        name: (x, sum(found[name] for found in errors.values()) + 10**6 * ctx.eps * scale)
        for name, x in outputs.items()
    }


def place(parameters):
    """Return the point as words of an error message."""
    words = ", ".join(f"{name} = {parameters[name]}" for name in PARAMETERS)
    return f" at {words}" if words else ""


def number(ctx, name, value, domain):
    """Return a number of the context, or refuse it."""
    try:
        if isinstance(value, bool):
            raise TypeError
        if isinstance(value, Fraction):
            found = ctx.mpf(value.numerator) / value.denominator
        elif isinstance(value, (int, str)):
            found = ctx.mpf(value)
        elif isinstance(value, float):
            found = ctx.mpf(repr(float(value)))
        else:
            found = ctx.mpf(ctx.convert(value))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a real number, got {value!r}") from None
    holds = {
        "positive": found > 0,
        "negative": found < 0,
        "nonnegative": found >= 0,
        "nonpositive": found <= 0,
        "(-1, 1)": abs(found) < 1,
        "real": True,
    }[domain]
    if not (holds and ctx.isfinite(found)):
        raise ValueError(f"{name} must be a finite {domain} number, got {value}")
    return found


def parameter_values(ctx, parameters):
    """Return parameters as numbers of the context, or refuse them."""
    parameters = given_parameters(parameters)
    return {
        name: number(ctx, name, parameters[name], domain)
        for name, domain in zip(PARAMETERS, DOMAINS)
    }


def data_columns(ctx, data):
    """Return weights that add up to one and columns of each data set, or refuse them."""
    found = {}
    for name, domains, given, weight in given_data(data):
        columns = [
            [number(ctx, f"{c} of the data {name}", x, domain) for x in list(given[c])]
            for c, domain in domains.items()
        ]
        count = len(columns[0])
        weights = [ctx.one] * count
        if weight is not None:
            weights = [number(ctx, f"weight of the data {name}", x, "nonnegative") for x in weight]
        if not count or {len(column) for column in [weights, *columns]} != {count}:
            raise ValueError(f"all columns of the data {name} must be lists of the same length")
        total = ctx.fsum(weights)
        if not total > 0:
            raise ValueError(f"weight of the data {name} must hold a number > 0")
        found[name] = [[w / total for w in weights], *columns]
    return found


def first_values(ctx, values):
    """Return where Newton's method begins."""
    out = [ctx.zero] * len(KERNEL.unknowns)
    starts(ctx)(*(values[name] for name in PARAMETERS), out)
    return dict(zip(KERNEL.unknowns, out))
'''

NO_LINE = '''
def line_arguments(ctx, values, digits):
    """Return step and rules of the nodes of the line: there are none."""
    return {}
'''

LINE = '''
def line_arguments(ctx, values, digits):
    """Return first step, inner rules and kinks of the tables, and widths of a grid."""
    widths, inner, breaks = geometry(ctx)(*(values[name] for name in TABLE_PARAMETERS))
    # A quarter of the width gives floats their digits, and digits grow at least like the inverse
    # step; the first of two rules need only reach two thirds of them. Coarser ones come before.
    step = 0.25 * widths[0] * min(1.0, 4 * (16 / (2 / 3 * digits)) ** 0.75)
    return {"step": step, "inner": inner, "breaks": breaks, "widths": widths}
'''
