"""Names in code: each symbol of a program has one of its own."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from ...errors import EmissionError


def check_code_names(symbols: Sequence[sp.Symbol]) -> None:
    """Refuse symbols of a program that share a name or whose name is no identifier.

    Words that a language reserves are no concern here: each target escapes its own.
    """
    names = [s.name for s in symbols]
    for name in names:
        if not name.isidentifier():
            raise EmissionError(
                f"{name!r} cannot be a name in code: give its symbol another with identifiers="
            )
        if names.count(name) > 1:
            raise EmissionError(
                f"two symbols of the program (parameter, unknown, table or output) have the name "
                f"{name!r}: rename one of them, with identifiers= where it is a symbol"
            )
