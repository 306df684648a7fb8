"""Exact mathematics: SymPy in, SymPy and kernel source out."""

if __name__ != "giantstep.symbolic":
    raise ImportError(f"import this package as 'giantstep.symbolic', not {__name__!r}")

# Activations and targets are evaluated on arrays by what stands above them.
from .printing import compiled as compiled
