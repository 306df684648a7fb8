"""giantstep: symbolic-numeric theory of feature learning in the first giant gradient steps."""

__version__ = "0.1.0"
