"""python-flint, the library of ball arithmetic: optional, and imported when it is first needed."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import MissingDependencyError


def require_flint() -> Any:
    """Return the module flint.

    Raises
    ------
    MissingDependencyError
        If python-flint is not installed.
    """
    try:
        return importlib.import_module("flint")
    except ImportError:
        raise MissingDependencyError(
            "proven enclosures by ball arithmetic need the package python-flint, which is not "
            'installed\n  install it with: pip install "giantstep[flint]"'
        ) from None
