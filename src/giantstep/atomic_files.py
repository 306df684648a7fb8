"""Files that are whole or not there: written under a name of their own, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import ParameterError


def checked_path(path: object) -> Path:
    """Return a path that a file can have.

    Raises
    ------
    ParameterError
        If it is no text and no path, or names no file.
    """
    given = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(given, str):
        raise ParameterError(f"path must be the name of a file, got {path!r}")
    if "\0" in given or not Path(given).name:
        raise ParameterError(f"path {given!r} names no file")
    return Path(given)


def beside(path: Path) -> Path:
    """Return a hidden path in the same folder, which no other process uses."""
    return path.with_name(f".{path.name}.{os.urandom(6).hex()}.part")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to; what is written there takes the place of `path` at the end.

    If the block is left by an error or an interruption, a file that was there before is as it was.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    OSError
        If the file cannot be written; it names `path`.
    ParameterError
        If `path` names no file.
    """
    goal = checked_path(path)
    temporary = beside(goal)
    try:
        yield temporary
        os.replace(temporary, goal)
    except OSError as error:
        # Named as the user did, not by the temporary file.
        raise type(error)(error.errno, error.strerror or str(error), str(goal)) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file.

    Raises
    ------
    ParameterError
        If it cannot be written.
    """
    try:
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ParameterError(
            f"path {os.fspath(path)} cannot be written: {error.strerror}"
        ) from None
