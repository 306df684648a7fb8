"""Files that outlive a process: generated kernels, their binaries and small JSON documents.

What is read back is never trusted. Source code is executed only if it equals, byte for byte, the
text that was asked for; numba's binaries and JSON documents carry the SHA-256 of their contents.
Whatever does not match counts as missing and is built again. Every file is written under a
temporary name and then renamed, so threads, processes and cluster nodes that share a folder see
either no file or a whole one.

Reading imports neither numba nor SymPy.
"""

import hashlib
import importlib.util
import json
import os
import platform
import re
import stat
import sys
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ..atomic_files import remove_abandoned, replacing
from ..errors import CacheError, ParameterError
from ..one_thread import ONE_THREAD, prepare_thread

ENVIRONMENT_VARIABLE = "GIANTSTEP_CACHE_DIR"

_PACKAGE = __name__.partition(".")[0]
_ROOMS = ("symbolic", "numeric", "derivations")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_HASH_LENGTH = 32


def cache_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder for cached files, after creating it if need be.

    Parameters
    ----------
    folder : path-like, optional
        Where to keep the files. Default: the environment variable ``GIANTSTEP_CACHE_DIR`` if it
        is set and not empty, else the user's cache directory of the platform.

    Returns
    -------
    Path
        Absolute path. New folders have mode 0700. Of a folder that other users can write to only
        a private subfolder, one for each user, is used.

    Raises
    ------
    CacheError
        If the folder cannot be created or written, or is not private to this user.
    """
    chosen = folder or os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen:
        path = Path(os.path.abspath(os.path.expanduser(chosen)))
    else:
        import platformdirs

        path = Path(platformdirs.user_cache_dir(_PACKAGE, appauthor=False))
        if not path.is_absolute():
            raise _cache_error(path, "this user has no home directory")
    mode = _make_folder(path)
    if os.name == "posix" and mode & (stat.S_IWGRP | stat.S_IWOTH):
        # Others could plant a binary here with a matching checksum, so go one level deeper.
        path = path / f"{_PACKAGE}-{os.geteuid()}"
        if _make_folder(path) & (stat.S_IWGRP | stat.S_IWOTH):
            raise _cache_error(path, "other users can write to it")
        if path.stat().st_uid != os.geteuid():
            raise _cache_error(path, "it belongs to another user")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise _cache_error(path, "no permission to read and write")
    return path


def fingerprint(*roots: str | os.PathLike[str]) -> str:
    """Return a hash that changes when the code behind a cached result may have changed.

    Parameters
    ----------
    *roots : path-like
        Folders with Python files. Default: the folders of this package.

    Returns
    -------
    str
        64 hexadecimal digits: relative path, size and time of change of every ``*.py`` file below
        the roots, and the versions of Python, mpmath, numba, NumPy, SciPy and SymPy.
    """
    digest = hashlib.sha256(_versions("mpmath", "numba", "numpy", "scipy", "sympy").encode())
    seen: set[str] = set()
    for root in [os.path.realpath(root) for root in roots] or _package_folders():
        files = [entry for entry in _python_files(root) if entry.path not in seen]
        for entry in sorted(files, key=lambda entry: entry.path):
            seen.add(entry.path)
            status = entry.stat()
            relative = os.path.relpath(entry.path, root)
            digest.update(f"\n{relative}\0{status.st_size}\0{status.st_mtime_ns}".encode())
    return digest.hexdigest()


class FileCache:
    """A folder of generated kernels and JSON documents.

    Parameters
    ----------
    folder : path-like, optional
        As for :func:`cache_folder`.

    Attributes
    ----------
    folder : Path
        The folder in use.

    Raises
    ------
    CacheError
        If the folder cannot be created or written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     module = FileCache(folder).load_module("double", "def double(x):\\n    return 2 * x\\n")
    >>> module.double(21)
    42
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        prepare_thread()
        self.folder = cache_folder(folder)
        for used in (self.folder, self.folder / "__pycache__"):  # sources, numba's binaries
            remove_abandoned(used, again=False)

    def __repr__(self) -> str:
        return f"FileCache({str(self.folder)!r})"

    def store_source(self, name: str, source: str) -> Path:
        """Write source code to its file, unless the file holds just that already.

        Parameters
        ----------
        name : str
            What the file name starts with: an ASCII identifier of at most 100 characters.
        source : str
            Python source code.

        Returns
        -------
        Path
            ``{name}_{hash}.py`` with the first 32 hexadecimal digits of the SHA-256 of the source
            and of the versions of Python, numba and NumPy. Mode 0600.

        Raises
        ------
        ParameterError
            If `name` is not such an identifier.
        CacheError
            If the file has to be written and cannot be.
        """
        _check_name(name)
        wanted = source.encode()
        digest = hashlib.sha256(wanted + b"\0" + _kernel_versions().encode()).hexdigest()
        path = self.folder / f"{name}_{digest[:_HASH_LENGTH]}.py"
        if _read(path) != wanted:
            _write(path, wanted)
        return path

    def load_module(self, name: str, source: str) -> ModuleType:
        """Return source code as a module whose compiled functions are cached on disk.

        Parameters
        ----------
        name, source : str
            As for :meth:`store_source`.

        Returns
        -------
        module
            Registered in ``sys.modules`` under the stem of its file, which numba needs to find its
            binaries again. A second call in the same process returns the same module.

        Raises
        ------
        ParameterError, CacheError
            As for :meth:`store_source`.

        Notes
        -----
        The text given is what runs, not what the file holds: a changed file or a changed
        ``.pyc`` beside it is never executed. Functions at module level made by
        ``numba.njit(cache=True)`` load their binaries through :mod:`giantstep.numeric._binaries`,
        which compiles again instead of using a damaged one. They must not have eager signatures,
        which would be loaded before that.
        """
        with ONE_THREAD:
            path = self.store_source(name, source)
            loaded = sys.modules.get(path.stem)
            if loaded is not None and loaded.__file__ == str(path):
                return loaded
            loader = _TextLoader(path.stem, str(path), source)
            spec = importlib.util.spec_from_file_location(path.stem, path, loader=loader)
            assert spec is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            try:
                loader.exec_module(module)
            except BaseException:
                del sys.modules[path.stem]
                raise
            if hasattr(module, "njit"):
                from ._binaries import verify_binaries

                verify_binaries(module)
            return module

    def load_json(self, key: str) -> Any:
        """Return the document stored under a key.

        Parameters
        ----------
        key : str
            Any text.

        Returns
        -------
        object
            The document, or None if there is none, if it is damaged, or if it was stored by other
            code: by other sources of this package or other versions of what it rests on.
        """
        try:
            envelope = json.loads(_read(self._json_path(key)) or b"null")
        except ValueError:
            return None
        if not isinstance(envelope, dict) or "document" not in envelope:
            return None
        return envelope["document"] if envelope == _envelope(key, envelope["document"]) else None

    def store_json(self, key: str, document: Any) -> Path:
        """Store a document under a key, in place of an earlier one.

        Parameters
        ----------
        key : str
            Any text.
        document : object
            Dictionaries, lists, text, finite numbers, booleans and None. Tuples come back as
            lists, numbers that are keys as text.

        Returns
        -------
        Path
            The file, mode 0600.

        Raises
        ------
        ParameterError
            If the document holds something else.
        CacheError
            If the file cannot be written.
        """
        path = self._json_path(key)
        try:
            _write(path, json.dumps(_envelope(key, document), allow_nan=False).encode())
        except (TypeError, ValueError) as error:
            raise ParameterError(f"{key!r} cannot be stored as JSON: {error}") from error
        return path

    def _json_path(self, key: str) -> Path:
        readable = re.sub(r"[^A-Za-z0-9]+", "-", key)[:60].strip("-")
        return self.folder / f"{readable}_{_sha256(key)[:_HASH_LENGTH]}.json"


class _TextLoader(SourceFileLoader):
    """Executes the text it was given as the contents of `path`; reads and writes no bytecode."""

    def __init__(self, fullname: str, path: str, text: str) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec", dont_inherit=True)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"{name!r} cannot name a module: use at most 100 ASCII letters, digits and "
            "underscores, not starting with a digit"
        )


def _cache_error(path: Path, reason: str) -> CacheError:
    return CacheError(
        f"cannot use the cache folder {str(path)!r}: {reason}; "
        f"{ENVIRONMENT_VARIABLE} or cache_folder= chooses another one"
    )


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _make_folder(path: Path) -> int:
    """Create a folder with mode 0700, and its parents; return its mode."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        return path.stat().st_mode
    except FileExistsError as error:
        raise _cache_error(path, "not a directory") from error
    except OSError as error:
        raise _cache_error(path, _reason(error)) from error


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _write(path: Path, contents: bytes) -> None:
    try:
        with replacing(path) as temporary:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(contents)
    except OSError as error:
        raise _cache_error(path.parent, _reason(error)) from error


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _envelope(key: str, document: Any) -> dict[str, Any]:
    payload = json.dumps(document, allow_nan=False)
    return {
        "key": key,
        "code": _own_fingerprint(),
        "sha256": _sha256(payload),
        "document": document,
    }


@cache
def _own_fingerprint() -> str:
    # Once per process: the modules in memory stay what they are when the files change later.
    return fingerprint()


@cache
def _kernel_versions() -> str:
    return _versions("numba", "numpy")


def _versions(*distributions: str) -> str:
    """Return the versions of Python and of some distributions, as one line."""
    found = _installed_versions()
    versions = [f"{name} {found.get(name) or _version(name)}" for name in distributions]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return "; ".join([python, sys.implementation.cache_tag or "", *versions])


def _installed_versions() -> dict[str, str]:
    """Read versions off the names of the .dist-info folders, the first one on sys.path winning."""
    found: dict[str, str] = {}
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info"):
                distribution, _, version = name.removesuffix(".dist-info").partition("-")
                found.setdefault(distribution.lower(), version)
    return found


def _version(distribution: str) -> str:
    # Only where the folder is not named as usual: this import takes 30 ms.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return "none"


def _package_folders() -> list[str]:
    """Return the folders of this package, found without importing anything."""
    specs = [importlib.util.find_spec(f"{_PACKAGE}.{room}") for room in _ROOMS]
    folders = [folder for spec in specs if spec for folder in spec.submodule_search_locations or ()]
    return [os.path.realpath(folder) for folder in [*sys.modules[_PACKAGE].__path__, *folders]]


def _python_files(folder: str) -> list[os.DirEntry[str]]:
    """List the Python files below a folder, not following links."""
    files = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                files += _python_files(entry.path)
            elif entry.name.endswith(".py"):
                files.append(entry)
    return files
