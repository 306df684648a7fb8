"""Spellings of the last release, which work for one more and say what to write from now on."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from inspect import signature
from typing import Any, ParamSpec, TypeVar

__all__ = ["by_name", "renamed"]

P = ParamSpec("P")
R = TypeVar("R")


def by_name(
    *names: str, first: int = 0, outer: int = 0
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Take parameters of a method by name that could be given by position.

    Parameters
    ----------
    *names : str
        Keyword-only parameters of the method, in the order of their former positions.
    first : int
        Parameters before these that may go by position.
    outer : int
        Decorators around this one, which callers do not see.

    Returns
    -------
    callable
        Decorator. Positions still work, with a DeprecationWarning that shows the call as it is
        to be written; the signature that is shown has keywords alone.

    Examples
    --------
    >>> class Model:
    ...     @by_name("alpha", "ridge")
    ...     def solve(self, *, alpha, ridge):
    ...         return alpha / ridge
    >>> Model().solve(alpha=1.0, ridge=0.5)
    2.0
    """

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        what = method.__name__
        parameters = [*signature(method).parameters.values()][1:]
        known = [p.name for p in parameters]
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)

        @functools.wraps(method)
        def asked(self: Any, *given_first: Any, **keywords: Any) -> R:
            allowed, positions = given_first[:first], given_first[first:]
            if positions:
                if len(positions) > len(names):
                    raise TypeError(
                        f"{what}() takes its parameters by name: {what}("
                        + ", ".join(f"{name}=..." for name in names)
                        + f"); {len(positions)} were given by position"
                    )
                given = dict(zip(names, positions, strict=False))
                if twice := sorted(given.keys() & keywords.keys()):
                    raise TypeError(f"{what}() got {', '.join(twice)} by position and by name")
                warnings.warn(
                    f"{what}() takes its parameters by name from now on: {what}("
                    + ", ".join(f"{name}=..." for name in given)
                    + ")",
                    DeprecationWarning,
                    stacklevel=2 + outer,
                )
                keywords = {**given, **keywords}
            other = [name for name in keywords if name not in known]
            if other and not takes_any:
                raise TypeError(
                    f"{what}() has no parameter {other[0]!r}; there are: {', '.join(known)}"
                )
            return method(self, *allowed, **keywords)  # type: ignore[call-arg, arg-type]

        return asked  # type: ignore[return-value]

    return decorate


def renamed(now: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a function of the last release that has another name from now on.

    Parameters
    ----------
    now : str
        The call as it is to be written.

    Returns
    -------
    callable
        Decorator: the function works as before, with a DeprecationWarning that says `now`.

    Examples
    --------
    >>> @renamed("curve(alpha=...)")
    ... def learning_curve(alpha): ...
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def asked(*positions: P.args, **keywords: P.kwargs) -> R:
            warnings.warn(
                f"{function.__name__}() is written {now} from now on",
                DeprecationWarning,
                stacklevel=2,
            )
            return function(*positions, **keywords)

        return asked

    return decorate
