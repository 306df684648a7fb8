"""Methods of a model that are functions of modules above it."""

from __future__ import annotations

import importlib
from types import MethodType
from typing import Any


def given_by(module: str, function: str) -> Any:
    """Return a method that is a function of a module which may import the class of the method.

    The module is imported when the method is first looked up; signature and docstring are those of
    the function, whose first parameter is the model.

    Parameters
    ----------
    module : str
        Full name.
    function : str

    Examples
    --------
    >>> class Ratios(list):
    ...     as_text = given_by("json", "dumps")
    >>> Ratios([1, 2]).as_text()
    '[1, 2]'
    """
    return _Method(module, function)


class _Method:
    def __init__(self, module: str, function: str) -> None:
        self._where = module, function

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        module, name = self._where
        function = getattr(importlib.import_module(module), name)
        return function if instance is None else MethodType(function, instance)
