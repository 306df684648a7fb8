"""The arguments of a model as JSON, with infinity written as text."""

from __future__ import annotations

import importlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

from ..atomic_files import write_atomically
from ..errors import GiantstepError, ParameterError
from ..pages import Table, as_html


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


def saved_model(text: str) -> Any:
    """Return the model that any :meth:`SavedModel.to_json` wrote.

    Raises
    ------
    ParameterError
        If the text is not such JSON.

    Examples
    --------
    >>> from giantstep import OneGradientStep
    >>> saved_model(OneGradientStep("erf", "tanh", alpha=2).to_json()).alpha
    2.0
    """
    try:
        name = str(json.loads(text)["model"])
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterError(f"text is not a model written by to_json: {error}") from None
    if name not in _KNOWN:
        # All models are public names, which are imported when they are asked for.
        public = importlib.import_module(__package__.partition(".")[0])
        for known in dir(public):
            getattr(public, known)
    if name not in _KNOWN:
        raise ParameterError(f"text is not a model written by to_json: there is no model {name!r}")
    return _KNOWN[name].from_json(text)


_KNOWN: dict[str, type[SavedModel]] = {}


class SavedModel:
    """A model, a dataclass, that is written as its arguments and made of them again."""

    _model: ClassVar[str]
    """What the document says it is."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _KNOWN[cls._model] = cls

    def __getstate__(self) -> dict[str, Any]:
        # Loaded kernels and tables stay behind; another process makes its own.
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

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

    def latex(self) -> str:
        """Return the equations of the model in LaTeX, without delimiters."""
        equations: str = self.kernel().latex()  # type: ignore[attr-defined]
        return equations

    def _repr_html_(self) -> str:
        rows = []
        for name, value in self._arguments().items():
            inner = value if isinstance(value, Mapping) else {name: value}
            rows += [(k.replace("_", " "), str(x)) for k, x in inner.items() if x is not None]
        return as_html([self._model.replace("_", " "), Table(rows)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file as JSON.

        Raises
        ------
        ParameterError
            If the file cannot be written; then one that was there before is as it was.
        """
        write_atomically(path, self.to_json() + "\n")
