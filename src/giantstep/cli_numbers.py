"""Numbers on the command line: read strictly, refused by the name of their flag."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from .digits import MOST_DIGITS

_MOST_POINTS = 100_000
_LONGEST = 18


def real(flag: str, text: str, example: object) -> float:
    """Return a number that may be infinite; refuse NaN and what is not a number."""
    try:
        # float() also takes "1_000" and digits of other scripts, which here are slips.
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise argparse.ArgumentTypeError(f"{_shown(text)} is not a number; use {flag} {example}")
    return value


def positive(flag: str, example: object) -> Callable[[str], float]:
    """Return a reader of positive, finite numbers."""

    def read(text: str) -> float:
        value = real(flag, text, example)
        if not 0 < value < math.inf:
            raise _refusal(flag, "positive and finite", text, example)
        return value

    return read


def positive_or_infinite(flag: str, example: object) -> Callable[[str], float]:
    """Return a reader of positive numbers or inf."""

    def read(text: str) -> float:
        value = real(flag, text, example)
        if not value > 0:
            raise _refusal(flag, "positive (inf is allowed)", text, example)
        return value

    return read


def nonnegative(flag: str, example: object) -> Callable[[str], float]:
    """Return a reader of finite numbers >= 0."""

    def read(text: str) -> float:
        value = real(flag, text, example)
        if not 0 <= value < math.inf:
            raise _refusal(flag, ">= 0 and finite", text, example)
        return value

    return read


def whole(
    flag: str, minimum: int, example: int, *, most: int | None = None
) -> Callable[[str], int]:
    """Return a reader of whole numbers, from `minimum` to `most`."""

    def read(text: str) -> int:
        digits = text.removeprefix("-").removeprefix("+")
        if not (digits.isascii() and digits.isdigit()):
            raise argparse.ArgumentTypeError(
                f"{_shown(text)} is not a whole number; use {flag} {example}"
            )
        # 18 digits at most: int() of longer texts is slow or refused.
        value = int(text) if len(digits) <= _LONGEST else None
        if text.startswith("-") if value is None else value < minimum:
            raise _refusal(flag, f">= {minimum}", text, example)
        if most is not None and (value is None or value > most):
            raise _refusal(flag, f"at most {most}", text, example)
        if value is None:
            wanted = f"a whole number of at most {_LONGEST} digits"
            raise _refusal(flag, wanted, text, example)
        return value

    return read


def digits(example: int) -> Callable[[str], int]:
    """Return a reader of ``--digits``."""
    return whole("--digits", 1, example, most=MOST_DIGITS)


def sample_complexities(flag: str, *, zero: bool = False) -> Callable[[str], list[float]]:
    """Return a reader of ``0.5,1,2`` and of ``START:STOP:COUNT``, evenly spaced, ends included.

    Values are positive, or >= 0 with `zero`.
    """
    example = "0.5,1,2 or 0.2:3:15"

    def read(text: str) -> list[float]:
        if ":" in text:
            return spaced(text)
        if not text.strip(" ,"):
            raise argparse.ArgumentTypeError(f"no number is given; use {flag} {example}")
        values = [one(part.strip()) for part in text.split(",")]
        # The same network cannot be measured twice at one place; order is kept in the table.
        return list(dict.fromkeys(values))

    def one(part: str) -> float:
        value = real(flag, part, example)
        if not (0 < value < math.inf or (zero and value == 0)):
            wanted = ">= 0 and finite" if zero else "positive and finite"
            raise _refusal(flag, wanted, part, example)
        return value

    def spaced(text: str) -> list[float]:
        parts = [part.strip() for part in text.split(":")]
        if len(parts) != 3:
            raise argparse.ArgumentTypeError(
                f"{_shown(text)} is not START:STOP:COUNT; use {flag} 0.2:3:15"
            )
        start, stop = one(parts[0]), one(parts[1])
        count = whole(flag, 1, 15)(parts[2])
        if count > _MOST_POINTS:
            raise argparse.ArgumentTypeError(
                f"{count} points are too many; use at most {_MOST_POINTS}, such as {flag} 0.2:3:15"
            )
        if not start < stop and count > 1:
            raise argparse.ArgumentTypeError(
                f"START has to be below STOP in {_shown(text)}; use {flag} 0.2:3:15"
            )
        steps = max(count - 1, 1)
        # Twelve digits: 0.6, not 0.6000000000000001, so that tables and files say what was asked.
        values = [start + (stop - start) * k / steps for k in range(count)]
        return list(dict.fromkeys(float(f"{value:.12g}") for value in values))

    return read


def _refusal(flag: str, wanted: str, text: str, example: object) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"must be {wanted}, got {_shown(text)}; use {flag} {example}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
