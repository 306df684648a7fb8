"""The arguments of a model as JSON, with infinity written as text."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

from ..atomic_files import write_atomically
from ..errors import GiantstepError, ParameterError


def to_json(model: str, arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a model, under the name of the model, as JSON."""
    values = {name: "inf" if value == math.inf else value for name, value in arguments.items()}
    return json.dumps({"model": model, **values}, indent=2)


def from_json(model: str, text: str) -> dict[str, Any]:
    """Return the arguments that :func:`to_json` wrote for this model.

    Raises
    ------
    ParameterError
        If the text is not such JSON.
    """
    try:
        values = json.loads(text)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"text is not a model written by to_json: {error}") from None
    if not isinstance(values, dict) or values.pop("model", "") != model:
        raise ParameterError(
            f"text is not a model written by to_json: it has no entry 'model': '{model}'"
        )
    return {name: math.inf if value == "inf" else value for name, value in values.items()}


class SavedModel:
    """A model, a dataclass, that is written as its arguments and made of them again."""

    _model: ClassVar[str]
    """What the document says it is."""

    def _arguments(self) -> Mapping[str, Any]:
        """Return what is written, as plain values."""
        return {
            f.name: getattr(self, f.name)
            for f in fields(self)  # type: ignore[arg-type]
            if f.name != "cache_folder"
        }

    @classmethod
    def _from_arguments(cls, arguments: dict[str, Any]) -> Self:
        """Return the model of what was written."""
        return cls(**arguments)

    def to_json(self) -> str:
        """Return the model as JSON; :meth:`from_json` reads it."""
        return to_json(self._model, self._arguments())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the model that :meth:`to_json` wrote.

        Raises
        ------
        ParameterError
            If the text is not such a model.
        """
        arguments = from_json(cls._model, text)
        try:
            return cls._from_arguments(arguments)
        except GiantstepError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise ParameterError(f"text is not a model written by to_json: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file as JSON.

        Raises
        ------
        ParameterError
            If the file cannot be written; then one that was there before is as it was.
        """
        write_atomically(path, self.to_json() + "\n")
