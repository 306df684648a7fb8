"""Numba's cached machine code, used only if it is what was written.

Numba unpickles its index (``.nbi``) and data (``.nbc``) files without looking. A truncated one
raises EOFError or UnpicklingError at the first call, a changed one can crash the interpreter or
return wrong numbers. Here each file ends with the SHA-256 of what precedes it. Pickle ignores
what follows its end mark, so plain numba still reads these files.
"""

import contextlib
import hashlib
import logging
import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any, BinaryIO

from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

logger = logging.getLogger(__name__)

_MARK = b"\ngiantstep sha256 "


def verify_binaries(module: ModuleType) -> None:
    """Make the jitted functions of a module check their cached binaries before loading them.

    Parameters
    ----------
    module : module
        Its own functions at module level made by ``numba.njit(cache=True)`` are changed in place.
        Nothing happens to functions of other modules.
    """
    for function in vars(module).values():
        if not isinstance(function, Dispatcher) or function.py_func.__module__ != module.__name__:
            continue
        cache: Any = getattr(function, "_cache", None)
        file: Any = getattr(cache, "_cache_file", None)
        # Exact types: should numba change its classes, its own behaviour stays.
        if type(cache) is FunctionCache and type(file) is IndexDataCacheFile:
            cache.__class__ = _ForgivingCache
            file.__class__ = _VerifiedFile


class _ForgivingCache(FunctionCache):
    """A binary that cannot be loaded or saved costs a compilation, never the result."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            logger.info("compiling %s again: its binary cannot be loaded: %s", self._name, error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            logger.warning("the binary of %s cannot be saved: %s", self._name, error)


class _VerifiedFile(IndexDataCacheFile):
    """Index and data files that end with their own checksum."""

    def _load_index(self) -> Any:
        return super()._load_index() if _is_intact(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not _is_intact(path):
            # What numba takes to mean that the file is gone.
            raise FileNotFoundError(path)
        return super()._load_data(name)

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator["_HashingWriter"]:
        with super()._open_for_write(filepath) as file:
            writer = _HashingWriter(file)
            yield writer
            file.write(_MARK + writer.hash.digest())


class _HashingWriter:
    """The part of a binary file that pickling needs, with a running hash."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return self._file.write(data)


def _is_intact(path: str | os.PathLike[str]) -> bool:
    try:
        with open(path, "rb") as file:
            contents = file.read()
    except OSError:
        return False
    body, mark, digest = contents.rpartition(_MARK)
    return bool(mark) and digest == hashlib.sha256(body).digest()
