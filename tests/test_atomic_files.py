"""Files are whole or as they were, and errors name them as their user did."""

import os

import pytest

from giantstep.atomic_files import replacing, write_atomically
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
