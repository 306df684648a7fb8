"""Which expansions there are, and checks of what a user asks for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ...errors import ParameterError
from ...numeric.arguments import whole_number

LARGE_ALPHA, SMALL_RIDGE, SMALL_STEP = "large_alpha", "small_ridge", "small_step"
NAMES = {
    LARGE_ALPHA: ("alpha", "many samples, alpha = n/d to infinity"),
    SMALL_RIDGE: ("ridge", "a vanishing ridge penalty"),
    SMALL_STEP: ("step_size", "short steps, towards random features"),
}
"""Expansions with their parameter and what it does."""

MOST_ORDERS = 20
"""Beyond that coefficients say nothing that the exact solution does not say sooner."""


def checked_name(name: object) -> str:
    """Return the name of an expansion.

    Raises
    ------
    ParameterError
        If there is none of that name; the message has the closest one.
    """
    return chosen("name", name, NAMES, "expansion")


def chosen(argument: str, value: object, known: Iterable[str], kind: str) -> str:
    """Return a text that is one of those known; the refusal names the closest one."""
    names = list(known)
    if isinstance(value, str) and value in names:
        return value
    close = difflib.get_close_matches(str(value), names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ParameterError(
        f"{argument} = {value!r} is no {kind}; {hint}there are {', '.join(map(repr, names))}"
    )


def checked_order(order: object) -> int:
    """Return the last order of a series, a whole number from 0 to 20."""
    found = whole_number("order", order, minimum=0)
    if found > MOST_ORDERS:
        raise ParameterError(f"order must be at most {MOST_ORDERS}, got {found}")
    return found
