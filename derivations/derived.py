"""What SymPy derives is derived once: kept as JSON in the cache, and in memory for the process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from functools import lru_cache, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from ..json_document import plain
from ..numeric.cache import FileCache
from ..one_thread import one_at_a_time

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_MOST = 256


class Derived(Generic[Arguments, Result]):
    """A function whose results are kept; made by :func:`derived`."""

    def __init__(
        self,
        make: Callable[Arguments, Result],
        key: str,
        kind: type[Result],
        words: tuple[str, ...],
    ) -> None:
        self._make, self._key, self._kind, self._words = make, key, kind, words
        self._known = lru_cache(maxsize=_MOST)(one_at_a_time(self._found))
        update_wrapper(self, make)

    def __call__(
        self, cache: FileCache, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        given: Any = kwargs
        return self._known(os.fspath(cache.folder), *args, **given)

    def forget(self) -> None:
        """Read the cache again, as another process would."""
        self._known.cache_clear()

    def _found(self, folder: str, *args: Any, **kwargs: Any) -> Result:
        cache = FileCache(folder)
        telling = {name: value for name, value in kwargs.items() if name not in self._words}
        key = f"{self._key}/{json.dumps([args, telling], default=repr, ensure_ascii=False)}"
        document = cache.load_json(key)
        if document is None:
            result: Any = self._make(*args, **kwargs)
            is_object = is_dataclass(result) and not isinstance(result, type)
            document = plain(asdict(result) if is_object else result)
            cache.store_json(key, document)
            # As it will be read the next time: what is made now and later is the same.
            document = json.loads(json.dumps(document))
        restored: Result = _restored(self._kind, document)
        return restored


def derived(
    key: str, kind: type[Result], *, words: tuple[str, ...] = ()
) -> Callable[[Callable[Arguments, Result]], Derived[Arguments, Result]]:
    """Keep what a function returns under a key and its arguments.

    The function that comes out takes the cache before the arguments. One thread at a time derives.

    Parameters
    ----------
    key : str
        A path of words that no other function has.
    kind : type
        What the function returns: a dataclass whose fields are plain values, tuples of them and
        such dataclasses, or what JSON holds.
    words : tuple of str
        Keyword arguments that only word error messages, and distinguish nothing.

    Examples
    --------
    >>> import tempfile
    >>> @derived("squares/of_one", int)
    ... def square(x):
    ...     print("deriving")
    ...     return x * x
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(square(FileCache(folder), 3), square(FileCache(folder), 3))
    deriving
    9 9
    """
    return lambda make: Derived(make, key, kind, words)


def _restored(kind: Any, value: Any) -> Any:
    """Return a document as the type whose fields it holds."""
    if is_dataclass(kind) and isinstance(value, dict):
        hints = get_type_hints(kind)
        return kind(**{name: _restored(hints[name], x) for name, x in value.items()})  # type: ignore[operator]
    if isinstance(value, list) and get_origin(kind) is tuple:
        inside = get_args(kind)
        kinds = inside[:1] * len(value) if inside[1:] == (Ellipsis,) else inside
        return tuple(_restored(k, x) for k, x in zip(kinds, value, strict=True))
    return float(value) if kind is float else value  # infinity is a text in documents
