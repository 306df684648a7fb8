"""What is derived once: the same object from memory, from the cache, and when it is made."""

from dataclasses import dataclass
from enum import Enum

import pytest

from giantstep.derivations.derived import derived
from giantstep.errors import ParameterError
from giantstep.numeric.cache import FileCache


@dataclass(frozen=True)
class Inner:
    name: str
    ends: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Outer:
    label: str | None
    parts: tuple[Inner, ...]
    table: dict[str, list[int]]
    pairs: tuple[tuple[str, int], ...]


class Kind(Enum):
    FIRST = 1
    SECOND = 2


def counted(kind, **options):
    """Return a derived function of any arguments and the list of its calls."""
    calls = []

    @derived("tests/derived", kind, **options)
    def make(*args, **kwargs):
        calls.append((args, kwargs))
        inner = (Inner("a"), Inner("b", (0.1, float("inf"))))
        return Outer(None, inner, {"x": [1, 2]}, (("y", len(args)),)) if kind is Outer else "text"

    return make, calls


def test_objects_come_back_as_they_were(tmp_path):
    cache = FileCache(tmp_path)
    (make, calls), (again, others) = counted(Outer), counted(Outer)
    found, read = make(cache, 1, 2), again(cache, 1, 2)
    assert found == read == make(cache, 1, 2)
    assert len(calls) == 1 and not others
    assert isinstance(read.parts[1], Inner) and read.parts[1].ends == (0.1, float("inf"))
    assert read.pairs == (("y", 2),) and read.table == {"x": [1, 2]} and read.label is None


def test_arguments_distinguish(tmp_path):
    cache = FileCache(tmp_path)
    make, calls = counted(str)
    given = [((), {}), (("1",), {}), ((1,), {}), ((Kind.FIRST,), {}), ((Kind.SECOND,), {})]
    given += [((), {"a": True}), ((), {"a": False})]
    for args, kwargs in given * 2:
        make(cache, *args, **kwargs)
    assert calls == given
    make(FileCache(tmp_path / "other"))
    assert len(calls) == len(given) + 1


def test_words_of_messages_do_not(tmp_path):
    cache = FileCache(tmp_path)
    make, calls = counted(str, words=("argument",))
    for argument in ("student", "teacher"):
        make(cache, "tanh", argument=argument)
    assert len(calls) == 1


def test_what_fails_is_not_kept(tmp_path):
    cache = FileCache(tmp_path)
    calls = []

    @derived("tests/failing", str)
    def make(x):
        calls.append(x)
        raise ParameterError("never")

    for _ in range(2):
        with pytest.raises(ParameterError, match="never"):
            make(cache, 1)
    assert calls == [1, 1]
