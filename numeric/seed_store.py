"""Finished seeds of a simulation on disk: one file each, written at once or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atomic_files import remove_abandoned, replacing
from ..errors import CacheError, ParameterError

__all__ = ["SeedStore", "store_folder"]

logger = logging.getLogger(__name__)

Array = NDArray[np.float64]


def store_folder(store: object) -> Path | None:
    """Return the folder of a store that a user names; None for none.

    Raises
    ------
    ParameterError
        If it is no path.
    """
    if store is None:
        return None
    if not isinstance(store, str | os.PathLike) or not isinstance(os.fspath(store), str):
        raise ParameterError(f"store must be a path or None, got {store!r}")
    folder = Path(store).expanduser()
    try:
        is_folder = stat.S_ISDIR(os.stat(folder).st_mode)
    except FileNotFoundError:
        is_folder = True  # It is made with the first file.
    except (OSError, ValueError) as error:
        raise ParameterError(f"store {store!r} cannot be a folder: {error}") from None
    if not is_folder:
        raise ParameterError(f"store must be a folder, and {folder} is a file")
    return folder


class SeedStore:
    """Folder of ``<hash of everything that fixes the numbers>-<seed number>.npz`` files.

    Parameters
    ----------
    folder : Path
        Created with the first file.
    key : mapping
        Everything that fixes the numbers, as text, numbers and sequences of them. It needs a
        version, raised whenever the same seed gives other numbers than before, so that files do
        not mix.
    shapes : mapping, optional
        Names of the arrays in a file and their shapes, checked when it is read.
    suffix : str
        Ends the names of the files, so that two kinds of them can stand beside each other.
    """

    def __init__(
        self,
        folder: Path,
        key: Mapping[str, object],
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        *,
        suffix: str = "",
    ) -> None:
        self.folder = folder
        remove_abandoned(folder, again=False)
        self.shapes = None if shapes is None else dict(shapes)
        self.suffix = suffix
        self.key = json.dumps(dict(key), sort_keys=True)
        self.name = hashlib.sha256(self.key.encode()).hexdigest()[:24]

    def path(self, index: int) -> Path:
        """File of seed `index`."""
        return self.folder / f"{self.name}-{index:05d}{self.suffix}.npz"

    def check_owner(self, what: str, version: int, *, shared: bool = False) -> None:
        """Refuse a folder that holds the results of something else.

        Parameters
        ----------
        what : str
            What the files of this store are, for messages.
        version : int
            The ``streams_version`` of the key.
        shared : bool
            Whether results of other parameters may stand there, too.

        Raises
        ------
        ParameterError
            With what differs.
        """
        others = {p.name.split("-")[0]: p for p in sorted(self.folder.glob("*-?????*.npz"))}
        for name, path in others.items():
            if name == self.name:
                continue
            try:
                with np.load(path, allow_pickle=False) as archive:
                    other = json.loads(str(archive["key"]))
            except Exception as error:  # A damaged archive raises almost anything.
                logger.warning("%s is damaged: %s", path, error)
                continue
            if other.get("streams_version") != version:
                raise ParameterError(
                    f"store {str(self.folder)!r} holds {what} of another version of giantstep, "
                    "whose seeds are other networks\n  name another folder, or remove the old files"
                )
            if shared:
                continue
            raise ParameterError(
                f"store {str(self.folder)!r} belongs to {what} with other parameters: "
                f"{_difference(other, json.loads(self.key))}\n  name another folder"
            )

    def load(self, index: int) -> dict[str, Array] | None:
        """Stored arrays of seed `index`; None if there are none or their file is damaged."""
        path = self.path(index)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                if str(archive["key"]) != self.key:
                    raise ValueError("written by another run")
                names = self.shapes or [name for name in archive.files if name != "key"]
                arrays = {name: archive[name] for name in names}
            for name, shape in (self.shapes or {}).items():
                if arrays[name].shape != shape or arrays[name].dtype != np.float64:
                    raise ValueError(f"wrong shape or type of {name}")
        except Exception as error:  # A damaged archive raises almost anything.
            logger.warning("computing seed %d again, %s is damaged: %s", index, path, error)
            return None
        return arrays

    def save(self, index: int, arrays: Mapping[str, Array]) -> None:
        """Write the arrays of seed `index`; a reader sees the whole file or none."""
        named: dict[str, Any] = {
            name: np.asarray(arrays[name], dtype=np.float64) for name in self.shapes or arrays
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.path(index)) as temporary, temporary.open("xb") as file:
                np.savez(file, key=np.array(self.key), **named)
        except OSError as error:
            raise CacheError(
                f"seed {index} cannot be written to store {str(self.folder)!r}: "
                f"{error.strerror or error}\n  what had finished before stays there"
            ) from error

    def discard(self, index: int) -> None:
        """Remove the file of seed `index`, if there is one."""
        self.path(index).unlink(missing_ok=True)


def _difference(other: Mapping[str, object], own: Mapping[str, object]) -> str:
    """Name what differs between two keys, the innermost parts of them."""
    result = []
    for name in sorted({*other, *own}):
        there, here = other.get(name), own.get(name)
        if isinstance(there, dict) and isinstance(here, dict):
            if there != here:
                result.append(_difference(there, here))
        elif there != here:
            result.append(f"{name} is {there} there and {here} here")
    return "; ".join(result)
