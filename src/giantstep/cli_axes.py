"""Axes of tables and diagrams on the command line: ``NAME=LOW:HIGH:COUNT``."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Collection, Mapping

from .cli_numbers import real, whole

# A diagram of 400 x 400 points takes minutes.
_MOST_VALUES = 400

Axis = tuple[str, list[float] | None]
"""Name of a parameter in the library, and its values; None where a name alone was given."""


def axis(
    flag: str,
    example: str,
    names: Mapping[str, str],
    *,
    from_zero: Collection[str],
    bare: bool = False,
) -> Callable[[str], Axis]:
    """Return a reader of ``NAME=LOW:HIGH:COUNT``.

    Parameters
    ----------
    flag, example : str
        For messages.
    names : mapping from str to str
        Names on the command line, and in the library.
    from_zero : collection of str
        Those of the library whose values may be 0; the others are positive.
    bare : bool
        A name alone is taken, too.
    """

    def read(text: str) -> Axis:
        name, equals, values = text.partition("=")
        parts = values.split(":")
        if bare and name in names and not equals:
            return names[name], None
        if name not in names or len(parts) != 3:
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} is not NAME=LOW:HIGH:COUNT with NAME one of {', '.join(names)}; "
                f"use {flag} {example}"
            )
        low, high = (real(flag, part, example) for part in parts[:2])
        count = whole("COUNT =", 2, 12)(parts[2])
        least = 0.0 if names[name] in from_zero else math.ulp(0.0)
        if not least <= low < high < math.inf or count > _MOST_VALUES:
            zeros = ", ".join(n for n, known in names.items() if known in from_zero)
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} must have positive, finite LOW < HIGH ({zeros} may start at 0) and "
                f"at most {_MOST_VALUES} values; use {flag} {example}"
            )
        return names[name], spaced(low, high, count)

    return read


def spaced(low: float, high: float, count: int) -> list[float]:
    """Return values with both ends, in the logarithm if the upper end is 20 times the lower."""
    steps = [k / max(count - 1, 1) for k in range(count)]
    if low > 0 and high > 20 * low:
        found = [low * (high / low) ** t for t in steps]
    else:
        found = [low + (high - low) * t for t in steps]
    # Twelve digits: 0.6, not 0.6000000000000001; the ends are what was asked for.
    return [float(f"{value:.12g}") for value in found]
