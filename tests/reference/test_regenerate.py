"""The script that computes the reference values again: a quick part of it, and all of it."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def script():
    """The script as a module: it is run from its file."""
    name = "giantstep_regenerate_reference_values"
    spec = importlib.util.spec_from_file_location(name, FOLDER / "regenerate.py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]


def test_every_group_says_where_its_values_come_from(script):
    groups = script.groups()
    assert len({group.name for group in groups}) == len(groups)
    assert sum(len(group.values) for group in groups) > 500
    for group in groups:
        assert "arXiv" in group.source and group.kind in script.KINDS
        assert 9 <= group.digits <= 25


@pytest.mark.parametrize(
    ("computed", "stored", "digits", "good"),
    [
        ("0.12345678", "0.1235", 4, True),
        ("0.12345678", "0.1236", 4, False),
        ("-0.5000000", "-0.5", 16, True),
        ("0.50000000000001", "0.5", 16, False),
        ("123.44999", "123", 3, True),
        ("1e-30", "0", 16, True),
        ("1e-20", "0", 16, False),
        ("9.4526506632769097e-5", "9.452650663276910e-5", 16, True),
    ],
)
def test_values_are_compared_to_their_digits(script, computed, stored, digits, good):
    assert script.agrees(computed, stored, digits) is good


def test_a_quick_part_agrees_and_resumes(script, tmp_path, capsys, monkeypatch):
    output = tmp_path / "found.json"
    for part in ("variance of relu", "large steps, sin on sin"):
        assert script.main(["--only", part, "--output", str(output)]) == 0
    text = capsys.readouterr().out
    assert "DEVIATES" not in text and text.count(" values agree;") == 2
    document = json.loads(output.read_text())
    assert len(document["groups"]) == 2
    value = document["groups"]["residual variance of relu"]["values"]["residual"]
    assert value.startswith("0.090845056908104664") and len(value) >= 32

    def fail(*_):
        raise AssertionError("a finished group is not computed again")

    monkeypatch.setattr(script, "compute", fail)
    assert script.main(["--only", "variance of relu", "--output", str(output)]) == 0
    with pytest.raises(AssertionError):
        script.main(["--only", "variance of relu", "--output", str(output), "--fresh"])
    with pytest.raises(AssertionError):
        script.main(["--only", "variance of relu", "--output", str(output), "--digits", "31"])
    assert json.loads(output.read_text()) == document


def test_a_wrong_value_is_found(script, tmp_path, capsys, monkeypatch):
    (group,) = (g for g in script.groups() if g.name == "residual variance of relu")
    wrong = script.Group(**{**vars(group), "values": {"residual": "0.09084505690810466424"}})
    monkeypatch.setattr(script, "groups", lambda: [wrong])
    assert script.main(["--output", str(tmp_path / "found.json")]) == 0, "one unit is rounding"
    wrong = script.Group(**{**vars(group), "values": {"residual": "0.09084505690810466426"}})
    monkeypatch.setattr(script, "groups", lambda: [wrong])
    assert script.main(["--output", str(tmp_path / "found.json")]) == 1
    assert "DEVIATES" in capsys.readouterr().out


def test_a_damaged_file_is_computed_again(script, tmp_path):
    output = tmp_path / "found.json"
    for text in ("", "[1, 2]", '{"format": "other", "groups": {}}'):
        output.write_text(text)
        assert script.main(["--only", "variance of relu", "--output", str(output)]) == 0
    assert len(json.loads(output.read_text())["groups"]) == 1


def test_wrong_calls(script, tmp_path, capsys):
    for arguments in (["--only", "nothing of this name"], ["--digits", "5"], ["--digits", "x"]):
        with pytest.raises(SystemExit) as stop:
            script.main([*arguments, "--output", str(tmp_path / "found.json")])
        assert stop.value.code == 2
    assert script.main(["--list"]) == 0
    assert "interpolation peak: 4 values" in capsys.readouterr().out


def test_the_stored_run_is_of_these_values(script):
    stored = script.load(FOLDER / "regenerated.json")
    groups = script.groups()
    assert set(stored) == {group.name for group in groups}
    for group in groups:
        for name, value in group.values.items():
            assert script.agrees(stored[group.name]["values"][name], value, group.digits)


# The smoothed student has no closed form: up to a minute for a pair.
LONG = {f"large steps, tanh on {teacher}" for teacher in ("tanh", "erf", "relu")}


@pytest.mark.slow
def test_every_other_group_of_those_that_do_not_take_long_agrees(script, tmp_path, monkeypatch):
    groups = script.groups()
    chosen = [group for group in groups if group.name not in LONG]
    assert len(chosen) == len(groups) - len(LONG)
    monkeypatch.setattr(script, "groups", lambda: chosen[::2])
    assert script.main(["--output", str(tmp_path / "found.json")]) == 0


def test_a_file_is_the_same_whatever_the_order_of_the_run(script, tmp_path):
    texts = []
    for order in (("relu", "erf"), ("erf", "relu")):
        output = tmp_path / f"{order[0]}.json"
        for name in order:
            part = f"variance of {name}"
            assert script.main(["--only", part, "--output", str(output)]) == 0
        texts.append(output.read_text())
    assert texts[0] == texts[1]
    assert "seconds" not in texts[0]
