"""The command giantstep staircase."""

import json

import pytest

from giantstep.symbolic.leaps.staircase import Staircase, staircase


def test_prints_the_table(run):
    code, out, err = run("staircase", "x1 + x1*x2")
    assert code == 0 and err == ""
    assert "U_2" in out and "x1*x2: moves along e2" in out and "saturates: V* = R^2" in out
    assert out.strip() == str(staircase("x1 + x1*x2")).strip()


def test_options(run):
    code, out, _ = run("staircase", "x1*x2 + x3", "--order", 2, "--variant", "strict", "--latex")
    assert code == 0 and "strict" in out and r"\subset U_{2} = \mathbb{R}^{3}" in out
    code, out, _ = run("staircase", "x1 + He(2, x1)*x2", "--student", "relu")
    assert code == 0 and "relu: degree 1 and the even degrees" in out and "stops" in out
    code, out, _ = run("staircase", "x1 + He(2, x1)*x2", "--student", "relu", "--biases")
    assert code == 0 and "saturates" in out
    code, out, _ = run("staircase", "x1 + x1*x2 + He(3, x1)*x3", "--readout", "1,-1")
    assert code == 0 and "s_2*u*e2 + s_4*u**3*e3" in out
    code, out, _ = run("staircase", "x1 + x1*x2", "--steps", 1)
    assert code == 0 and "max_steps" in out


def test_readout_that_starts_with_a_minus(run):
    code, out, _ = run("staircase", "x1 + x1*x2", "--readout=-1, 1/2, sqrt(2)")
    assert code == 0 and "3 clusters" in out


def test_files(run, tmp_path):
    page, data = tmp_path / "page.html", tmp_path / "data.json"
    assert run("staircase", "x1 + x1*x2", "--out", page)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and "U₂" in text
    assert run("staircase", "x1 + x1*x2", "--out", data)[0] == 0
    content = json.loads(data.read_text(encoding="utf-8"))
    assert Staircase.from_dict(content) == staircase("x1 + x1*x2")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["data.json", "page.html"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["2"], "has no coordinates"),
        (["x1 - x1"], "constant"),
        (["y1"], "y1"),
        (["x1", "--order", "0"], "--order"),
        (["x1", "--order", "99"], "from 1 to 64"),
        (["x1", "--variant", "lazy"], "--variant"),
        (["x1", "--student", "rellu"], "did you mean 'relu'"),
        (["x1", "--biases"], "name its activation"),
        (["x1", "--readout", ","], "--readout needs numbers"),
        (["x1", "--readout", "x"], "--readout"),
        (["x1", "--readout", "0"], "not zero"),
        (["x1", "--out", "page.txt"], ".html or .json"),
        (["x1", "--out", "/nowhere/at/all/page.html"], "/nowhere/at/all/page.html"),
    ],
)
def test_bad_input_is_one_line(run, arguments, message):
    try:
        code, out, err = run("staircase", *arguments)
    except SystemExit as stop:  # argparse
        pytest.fail(f"the command ends by {stop}")
    assert code == 2 and out == ""
    assert message in err and "Traceback" not in err
