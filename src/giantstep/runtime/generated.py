"""Functions from text that our own printers wrote, executed here; nothing imports SymPy for it.

The printers refuse every node that they do not know, and arguments get names of ours: a text never
holds what a user typed.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from types import CodeType, SimpleNamespace
from typing import Any


def defined(source: str, **given: Any) -> SimpleNamespace:
    """Return what a text defines, as attributes.

    Parameters
    ----------
    source : str
        Definitions of functions.
    **given
        What they find by name: ``ctx``, the mpmath context of functions of many digits.

    Examples
    --------
    >>> import mpmath
    >>> defined("def root(x):\\n    return ctx.sqrt(x)\\n", ctx=mpmath.mp.clone()).root(4)
    mpf('2.0')
    """
    namespace = dict(given)
    exec(_code(source), namespace)
    del namespace["__builtins__"]
    return SimpleNamespace(**namespace)


class GeneratedFunction:
    """A function of a text; can be sent to another process, which defines it again.

    Parameters
    ----------
    source : str
        Definitions of functions.
    name : str
        The one that is called.
    """

    def __init__(self, source: str, name: str) -> None:
        self.source, self.name = source, name

    @cached_property
    def _function(self) -> Any:
        return getattr(defined(self.source), self.name)

    def __call__(self, *arguments: Any) -> Any:
        """Return the value of the function."""
        return self._function(*arguments)

    def __getstate__(self) -> dict[str, str]:
        return {"source": self.source, "name": self.name}


@lru_cache(maxsize=512)
def _code(source: str) -> CodeType:
    return compile(source, "<generated>", "exec", dont_inherit=True)
