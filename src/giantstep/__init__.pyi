"""Public names, and the modules that they are in: read by the front door and by type checkers."""

import typing

# For type checkers only, as in any module, so that the package does not seem to need all of itself.
if typing.TYPE_CHECKING:
    pass

__all__: list[str]
__version__: str
_LOADED: float
