"""Printer for JAX: what NumPy says, on ``jax.numpy`` and ``jax.scipy``."""

from __future__ import annotations

from typing import ClassVar

from . import special_functions
from .printers import NumpyPrinter


class JaxPrinter(NumpyPrinter):
    """Vectorised code of functions that JAX can trace and differentiate."""

    target = "jax"
    arrays: ClassVar[str] = "jnp"
    functions = special_functions.names("jax")
    helpers = special_functions.helpers("jax")
