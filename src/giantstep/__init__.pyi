"""Public names, and the modules that they are in: read by the front door and by type checkers."""

__version__: str
