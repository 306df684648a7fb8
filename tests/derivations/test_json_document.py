"""Files of results: whole or not there, and refused where they hold something else."""

import json
import os

import pytest

import giantstep as gs
from giantstep.derivations.expansions.expansion import Expansion
from giantstep.derivations.one_gradient_step.model import OneGradientStep
from giantstep.errors import ParameterError


@pytest.fixture(scope="module")
def series():
    model = OneGradientStep("erf", "erf", alpha=2.0, beta=1.5, step_size=1.0)
    return model.expansion("small_ridge", 1, digits=12)


def test_file_holds_the_result(tmp_path, series):
    series.save(tmp_path / "series.json")
    found = Expansion.load(tmp_path / "series.json")
    assert found.coefficients == series.coefficients
    assert found.to_json() == series.to_json()


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


STEP = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2)


@pytest.mark.parametrize(
    "found",
    [
        lambda: STEP.limits(ridge=0.1),
        lambda: STEP.several_steps(2),
        lambda: STEP.large_steps(),
        lambda: gs.leaps("x1*x2 + x3"),
        lambda: gs.staircase("x1 + x1*x2"),
        lambda: gs.giant_step("x1*x2 + x3", student="relu"),
        lambda: gs.regimes("x1 + x1*x2"),
        lambda: gs.sample_complexity("relu", "x1*x2"),
        lambda: gs.project("x1 + x1*x2", onto=[[1, 0]], degree=1),
    ],
    ids=lambda make: make.__code__.co_names[-1],
)
def test_what_is_a_dictionary_is_json(found):
    result = found()
    document = json.loads(result.to_json())
    assert list(document) == list(result.to_dict()) != []
