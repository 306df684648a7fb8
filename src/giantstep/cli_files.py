"""Files that commands write: whether they can be is found out before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .errors import ParameterError


def checked_file(text: str | None, flag: str, suffixes: Sequence[str], name: str) -> Path | None:
    """Find out now, not after the computation, whether a file can be written.

    Parameters
    ----------
    text : str, optional
        What the user gave; None for no file.
    flag : str
    suffixes : sequence of str
        Those that are known.
    name : str
        Of a file in an example.

    Raises
    ------
    ParameterError
        If the suffix is unknown, or the place is a folder or cannot be written to.
    """
    if text is None:
        return None
    path = Path(text).expanduser()
    example = f"{flag} {path.stem or name}{suffixes[0]}"
    if path.suffix.lower() not in suffixes:
        raise ParameterError(
            f"{flag} must end in {', '.join(suffixes)}, got {text!r}; use {example}"
        )
    check_folder(path.parent, flag)
    if path.is_dir():
        raise ParameterError(f"{flag} {text!r} is a folder; use {flag} {text}/{name}{suffixes[0]}")
    return path


def check_folder(folder: Path, flag: str) -> None:
    """Find out now, not after the simulation, whether files can be written."""
    probe = folder / f".giantstep-{os.urandom(4).hex()}.tmp"
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise ParameterError(unusable(folder, flag, error)) from None


def unusable(folder: Path, flag: str, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"{flag}: cannot write to folder {str(folder)!r}: {reason}; choose another place"
