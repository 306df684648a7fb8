"""Results kept as JSON, under a name of their kind, in files that are whole or not there."""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from .atomic_files import checked_path, write_atomically
from .errors import ParameterError


def json_text(document: Any) -> str:
    """Return plain values as JSON; infinity and not-a-number are texts, as are exact numbers.

    Examples
    --------
    >>> print(json_text({"edges": (0.5, float("inf"))}))
    {
      "edges": [
        0.5,
        "inf"
      ]
    }
    """
    return json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Return a value as JSON has it; infinity, not-a-number and exact numbers are texts."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


class JsonDocument(ABC):
    """A result with :meth:`to_dict` and :meth:`from_dict`, as JSON and in files."""

    _document: ClassVar[str]
    """What the document says it is, as "certificate"."""
    _formerly: ClassVar[tuple[str, ...]] = ()
    """What documents of the last release said, where that has changed."""
    _entry: ClassVar[str] = "kind"
    """The entry that says so; another one where a field has this name."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""

    @classmethod
    @abstractmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the result that :meth:`to_dict` wrote.

        Raises
        ------
        ParameterError
            If the values are no such result.
        """

    def _fields(self) -> dict[str, Any]:
        """Return what documents hold, where it is more than :meth:`to_dict`."""
        return self.to_dict()

    def to_json(self) -> str:
        """Return the result as JSON; :meth:`from_json` reads it."""
        says = {self._entry: f"giantstep {self._document}"}
        return json.dumps({**says, **self._fields()}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the result that :meth:`to_json` wrote.

        Raises
        ------
        ParameterError
            If the text is no such JSON.
        """
        wrong = f"text is no {cls._document} written by to_json"
        try:
            values = json.loads(text)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"{wrong}: {error}") from None
        kind = f"giantstep {cls._document}"
        known = (kind, *(f"giantstep {name}" for name in cls._formerly))
        if not isinstance(values, dict) or values.pop(cls._entry, "") not in known:
            raise ParameterError(f"{wrong}: it has no entry {cls._entry!r}: {kind!r}")
        return cls.from_dict(values)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file as JSON; :meth:`load` reads it.

        Raises
        ------
        ParameterError
            If the file cannot be written; then one that was there before is as it was.
        """
        write_atomically(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the result that :meth:`save` wrote.

        Raises
        ------
        ParameterError
            If the file cannot be read or holds something else.
        """
        try:
            text = checked_path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise ParameterError(
                f"path {os.fspath(path)} cannot be read: {error.strerror}"
            ) from None
        except UnicodeDecodeError:
            raise ParameterError(f"path {os.fspath(path)} is no text in UTF-8") from None
        return cls.from_json(text)
