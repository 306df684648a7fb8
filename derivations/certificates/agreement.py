"""Proven intervals against numbers that were rounded when they were written down."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import sympy as sp

from ...symbolic.exact.enclosures import Enclosure
from ..evidence import Finding


def is_rounded(text: str, value: Enclosure, digits: int) -> bool:
    """Return whether a number in an interval, rounded to some digits, may be the decimal given.

    Examples
    --------
    >>> from giantstep.symbolic.exact.enclosures import Enclosure
    >>> third = Enclosure(sp.Rational(1365, 4096), sp.Rational(1, 4096))
    >>> is_rounded("0.333", third, 3), is_rounded("0.332", third, 3)
    (True, False)
    """
    number = sp.Rational(text)
    if number == 0:
        return value.contains_zero
    # A rounding up to a power of ten has its last digit one place further left: both are fine.
    leading = int(Decimal(text).adjusted())
    half = sp.Integer(10) ** (leading + 1 - digits) / 2
    return bool(value.lower - half <= number <= value.upper + half)


def proof_of(result: Any) -> Any:
    """Return the certificate that a result was asked to hold."""
    assert result.certificate is not None
    return result.certificate


def agreement(
    values: Mapping[str, tuple[Enclosure, str]], digits: int, subject: str, *, proven: int
) -> Finding:
    """Compare proven intervals with stored decimals.

    Parameters
    ----------
    values : mapping of str to (Enclosure, str)
        Interval and decimal of each quantity.
    digits : int
        Significant digits of the decimals.
    subject : str
        What is compared, in the plural.
    proven : int
        Digits that every interval has to have, so that one that says nothing does not pass.
    """
    wrong = [name for name, (value, text) in values.items() if not is_rounded(text, value, digits)]
    wide = [name for name, (value, _) in values.items()
            if not value.is_exact and not _is_narrow(value, proven)]  # fmt: skip
    count = len(values)
    summary = (
        f"{subject}: {count} of {count} stored numbers of {digits} digits are in their intervals"
    )
    if wrong:
        summary = f"{subject}: {len(wrong)} of {count} are outside: {', '.join(wrong[:5])}"
    elif wide:
        summary = f"{subject}: {len(wide)} of {count} intervals are wide: {', '.join(wide[:5])}"
    else:
        sized = [value.digits for value, _ in values.values() if not value.contains_zero]
        least = min(sized, default=math.inf)
        summary += "" if least == math.inf else f", which have at least {least} digits"
    return Finding(
        not wrong and not wide and bool(values),
        summary,
        {name: str(value) for name, (value, _) in values.items()},
    )


def decided(results: Mapping[str, bool], statement: str) -> Finding:
    """Return what comparisons of proven intervals amount to; none at all is a failure.

    Parameters
    ----------
    results : mapping of str to bool
        Of each comparison: whether the intervals prove it.
    statement : str
        What they prove together.
    """
    failed = [name for name, held in results.items() if not held]
    summary = f"{len(results)} of {len(results)} comparisons of intervals: {statement}"
    if failed:
        summary = f"{len(failed)} of {len(results)} are not proven: {'; '.join(failed[:5])}"
    return Finding(not failed and bool(results), summary, {"comparisons": dict(results)})


def overlap(one: Enclosure, two: Enclosure) -> bool:
    """Return whether two intervals meet; if not, their numbers are proven to differ."""
    return bool(one.lower <= two.upper and two.lower <= one.upper)


def _is_narrow(value: Enclosure, proven: int) -> bool:
    # A number that vanishes has no significant digits: there places count.
    places = sp.Rational(1, sp.Integer(10) ** proven)
    size = 1 if value.contains_zero else abs(value.midpoint)
    return bool(value.radius <= places * size)
