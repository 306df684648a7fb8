"""Printer for JAX: what NumPy says, on ``jax.numpy`` and ``jax.scipy``."""

from __future__ import annotations

from typing import ClassVar

import sympy as sp

from . import special_functions
from .printers import NumpyPrinter


class JaxPrinter(NumpyPrinter):
    """Vectorised code of functions that JAX can trace and differentiate."""

    target = "jax"
    arrays: ClassVar[str] = "jnp"
    functions = special_functions.names("jax")
    helpers = special_functions.helpers("jax")

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        text = self._print(self._last_branch(expr))
        for value, condition in reversed(expr.args[:-1]):
            text = f"jnp.where({self._print(condition)}, {self._print(value)}, {text})"
        return text
