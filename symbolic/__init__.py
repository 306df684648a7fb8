"""Exact mathematics: SymPy in, SymPy and kernel source out."""

if __name__ != "giantstep.symbolic":
    raise ImportError(f"import this package as 'giantstep.symbolic', not {__name__!r}")
