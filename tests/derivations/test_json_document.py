"""Files of results: whole or not there, and refused where they hold something else."""

import os

import pytest

from giantstep.derivations.expansions.expansion import Expansion
from giantstep.derivations.one_gradient_step.model import OneGradientStep
from giantstep.errors import ParameterError


@pytest.fixture(scope="module")
def series():
    model = OneGradientStep("erf", "erf", alpha=2.0, beta=1.5, step_size=1.0)
    return model.expansion("small_ridge", 1, digits=12)


def test_a_write_that_fails_leaves_the_file_of_before(tmp_path, monkeypatch, series):
    path = tmp_path / "series.json"
    path.write_text("before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ParameterError, match="No space left"):
        series.save(path)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["series.json"]


def test_what_is_no_such_file_is_refused(tmp_path, series):
    with pytest.raises(ParameterError, match="cannot be read"):
        Expansion.load(tmp_path / "absent.json")
    (tmp_path / "other.json").write_text('{"kind": "giantstep certificate"}')
    with pytest.raises(ParameterError, match="no entry 'kind': 'giantstep expansion'"):
        Expansion.load(tmp_path / "other.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ParameterError, match="no text in UTF-8"):
        Expansion.load(tmp_path / "binary.json")
    with pytest.raises(ParameterError, match=r"cannot be read: Is a directory$"):
        Expansion.load(tmp_path)
    for path in (None, 3, "", "a\0b"):
        with pytest.raises(ParameterError, match="path"):
            Expansion.load(path)
        with pytest.raises(ParameterError, match="path"):
            series.save(path)
