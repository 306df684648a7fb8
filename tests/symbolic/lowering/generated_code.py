"""Generated text, executed in this process as a user's interpreter would do it."""

import importlib.util
import types

from giantstep.runtime.precise_averages import GUARD_DIGITS
from giantstep.runtime.precision import local_context


def names_in(text, **given):
    """Execute a text and return its names; those given are there before."""
    names = {"__name__": "generated", **given}
    exec(compile(text, "generated", "exec"), names)
    return names


def mpmath_names_in(text, digits=40):
    """Execute a text that takes its context of mpmath as ``ctx``."""
    return names_in(text, ctx=local_context(digits - GUARD_DIGITS))


def module_of(text):
    """Execute a text as a module."""
    module = types.ModuleType("generated")
    exec(compile(text, "generated.py", "exec"), module.__dict__)
    return module


def names_in_file(text, folder):
    """Write a text to a file and import it: numba caches no functions made from strings."""
    path = folder / "generated_kernel.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("generated_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)
