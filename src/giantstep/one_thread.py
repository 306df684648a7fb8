"""One thread at a time, where a process has one state for all of its threads.

The import system takes the lock of a module before those of its parents, so two threads that import
parts of one package at once may wait for each other; Python then gives one of them half a module.
SymPy sets the precision of mpmath for the whole process while it computes numbers. Python's parser
counts the depth of all trees that are being made in one number. There is one lock for all of this:
with a second one, two threads could take them in different orders.

A process that is forked while another thread holds a lock would wait for ever in the copy, so a
fork waits for this lock and for that of numba's compiler.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

ONE_THREAD = threading.RLock()
"""Held by whoever imports, derives, or sets a precision."""

# What modules of this package import parts of before the whole. A part that another thread is
# importing at the same time is where Python finds a deadlock.
_PACKAGES = ("mpmath", "scipy.linalg", "scipy.special", "scipy.optimize", "sympy")


def one_at_a_time(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let only one thread be in functions with this decorator; calls in each other are fine."""

    @functools.wraps(function)
    def alone(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with ONE_THREAD:
            return function(*args, **kwargs)

    return alone


def prepare_thread() -> None:
    """Import what computations import when they need it, unless this is the main thread.

    There deferring costs nothing but time; in other threads nothing must be left to import that
    two of them could need at once.
    """
    if threading.current_thread() is not threading.main_thread():
        with ONE_THREAD:
            for name in _PACKAGES:
                import_module(name)


def syntax_tree(text: str, mode: str = "exec") -> Any:
    """Return :func:`ast.parse` of a text.

    Raises
    ------
    SyntaxError, ValueError, RecursionError, MemoryError
        As :func:`ast.parse` does.
    """
    import ast

    with ONE_THREAD:
        return ast.parse(text, mode=mode)


_held: list[Any] = []


def _before_fork() -> None:
    ONE_THREAD.acquire()
    compiler = sys.modules.get("numba.core.compiler_lock")
    lock = getattr(compiler, "global_compiler_lock", None)
    if lock is not None:
        lock.acquire()
    _held.append(lock)


def _after_fork() -> None:
    lock = _held.pop()
    if lock is not None:
        lock.release()
    ONE_THREAD.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
