"""Files are whole or as they were, and errors name them as their user did."""

import os
import subprocess
import sys

import pytest

from giantstep.atomic_files import Temporary, remove_abandoned, replacing, write_atomically
from giantstep.errors import ParameterError


def test_a_file_takes_the_place_of_another_at_the_end(tmp_path):
    path = tmp_path / "values.txt"
    path.write_text("before")
    with replacing(path) as temporary:
        temporary.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert os.listdir(tmp_path) == ["values.txt"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_what_was_left_unfinished_goes(tmp_path, failure):
    path = tmp_path / "values.txt"
    path.write_text("before")
    with pytest.raises(failure), replacing(path) as temporary:
        temporary.write_text("half")
        raise failure
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["values.txt"]


def test_new_files_have_the_permissions_of_any_other(tmp_path):
    (tmp_path / "usual").touch()
    write_atomically(tmp_path / "ours", "text")
    modes = {(tmp_path / name).stat().st_mode for name in ("usual", "ours")}
    assert len(modes) == 1


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "absent" / "values.txt"
    with pytest.raises(FileNotFoundError) as caught, replacing(path) as temporary:
        temporary.write_text("text")
    assert caught.value.filename == str(path)
    with pytest.raises(ParameterError, match=r"values\.txt cannot be written: No such file"):
        write_atomically(path, "text")
    with pytest.raises(ParameterError, match="cannot be written: Is a directory"):
        write_atomically(tmp_path, "text")


@pytest.mark.parametrize("path", [None, 3, b"text", "", ".", "/", "a\0b", ["text"]])
def test_what_is_no_name_of_a_file_is_refused(path):
    with pytest.raises(ParameterError, match="path"):
        write_atomically(path, "text")


HALF_WAY = """\
import pathlib, sys
from giantstep.atomic_files import Temporary
file, folder = Temporary(pathlib.Path(sys.argv[1])), Temporary(pathlib.Path(sys.argv[1]))
file.path.write_text("half")
folder.path.mkdir()
(folder.path / "0.0").write_text("half")
print("half", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_was_writing_goes_and_what_a_living_one_writes_stays(tmp_path):
    # Uninstalled checkouts find the package through this process's path.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    path = tmp_path / "values.txt"
    process = subprocess.Popen(
        [sys.executable, "-c", HALF_WAY, str(path)],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout.readline()
        own = Temporary(path)
        own.path.write_text("half")
        remove_abandoned(tmp_path)
        assert len(os.listdir(tmp_path)) == 6
    finally:
        process.kill()
        process.communicate()
    remove_abandoned(tmp_path)
    assert {p.stem for p in tmp_path.iterdir()} == {own.path.stem}
    own.remove()
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("machine", [b"another machine", b"", None])
def test_where_locks_say_nothing_age_does(tmp_path, machine):
    part = tmp_path / ".values.txt.0123456789ab.part"
    part.write_text("half")
    lock = part.with_suffix(".lock")
    if machine is not None:
        lock.write_bytes(machine)
    remove_abandoned(tmp_path)
    assert part.exists()
    os.utime(part, (0, 0))
    if machine is not None:
        # The process that writes there shows that it lives.
        remove_abandoned(tmp_path)
        assert part.exists()
        os.utime(lock, (0, 0))
    remove_abandoned(tmp_path)
    assert not os.listdir(tmp_path)


def test_files_of_others_stay(tmp_path):
    names = [".values.txt.part", "values.0123456789ab.part", ".values.txt.0123456789ab.partial"]
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    write_atomically(tmp_path / "values.txt", "text")
    remove_abandoned(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "values.txt"])
