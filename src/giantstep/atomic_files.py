"""Files that are whole or not there: written under a name of their own, then renamed.

A process that is killed cannot remove what it was writing. So beside each such file stands a lock,
which the system frees with the process, and the next one that writes to the folder removes what is
not locked. Where locks say nothing (files of another machine, whose locks a network file system
may not show; file systems without locks), what nobody has touched for a week is removed.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import ParameterError

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that a process has open
    fcntl = None  # type: ignore[assignment]

_OURS = re.compile(r"(\..+\.[0-9a-f]{12})\.(part|lock)")
_ABANDONED_SECONDS = 7 * 86_400
_looked_at: set[str] = set()


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


class Temporary:
    """A hidden path in the folder of another one, which belongs to this process while it lives.

    Parameters
    ----------
    goal : Path
        What the path will take the place of.

    Attributes
    ----------
    path : Path
        Nothing stands there yet.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """

    def __init__(self, goal: Path) -> None:
        remove_abandoned(goal.parent, again=False)
        self.path = goal.with_name(f".{goal.name}.{os.urandom(6).hex()}.part")
        self._lock = self.path.with_suffix(".lock")
        self._descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        # The name of the machine comes last: a lock without it may be about to be taken.
        with suppress(OSError):
            if fcntl is not None:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self._descriptor, _machine())

    def touch(self) -> None:
        """Show other machines that this process lives."""
        with suppress(OSError):
            os.utime(self._lock)

    def remove(self) -> None:
        """Remove what stands at the path, if anything does; it is nobody's from now on."""
        _remove(self.path)
        if self._descriptor >= 0:
            # Windows removes no open file; elsewhere another process may be looking at the lock.
            if fcntl is not None:
                self._lock.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1
            self._lock.unlink(missing_ok=True)


def remove_abandoned(folder: Path, *, again: bool = True) -> None:
    """Remove what processes that are no more were writing in a folder.

    Parameters
    ----------
    folder : Path
        If it cannot be read, nothing happens.
    again : bool
        Also if this process has looked there before.
    """
    key = os.path.abspath(folder)
    if key in _looked_at and not again:
        return
    _looked_at.add(key)
    with suppress(OSError):
        result = {match[1] for name in os.listdir(folder) if (match := _OURS.fullmatch(name))}
        for stem in result:
            with suppress(OSError):
                _remove_if_abandoned(folder / f"{stem}.part", folder / f"{stem}.lock")


def _remove_if_abandoned(part: Path, lock: Path) -> None:
    try:
        with lock.open("r+b") as file:
            told = file.read() == _machine()
            if told and fcntl is not None:
                # Fails while the process that made it lives.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(part)
                lock.unlink()
                return
    except FileNotFoundError:
        told = False
    dates = [path.stat().st_mtime for path in (part, lock) if path.exists()]
    if told or time.time() - max(dates, default=0.0) > _ABANDONED_SECONDS:
        lock.unlink(missing_ok=True)
        _remove(part)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _machine() -> bytes:
    return platform.node().encode() or b"?"


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
    temporary: Temporary | None = None
    try:
        temporary = Temporary(goal)
        yield temporary.path
        os.replace(temporary.path, goal)
    except OSError as error:
        # Named as the user did, not by the temporary file.
        raise type(error)(error.errno, error.strerror or str(error), str(goal)) from None
    finally:
        if temporary is not None:
            temporary.remove()


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
