"""Methods of a model that make another model or result, which stands above it."""

from __future__ import annotations

import importlib
from types import MethodType
from typing import Any


class given_by:
    """A method that is a function of a module which imports the class it is a method of.

    The module is imported when the method is first looked up; signature and docstring are those of
    the function.

    Parameters
    ----------
    module : str
        Full name.
    function : str

    Examples
    --------
    >>> class Ratio:
    ...     as_text = given_by("json", "dumps")
    >>> Ratio.as_text([1, 2])
    '[1, 2]'
    """

    def __init__(self, module: str, function: str) -> None:
        self._where = module, function

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        module, name = self._where
        function = getattr(importlib.import_module(module), name)
        return function if instance is None else MethodType(function, instance)
