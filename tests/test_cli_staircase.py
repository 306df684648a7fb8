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


def test_parameters_make_a_table_of_cases(run):
    code, out, err = run("staircase", "x1 + a*x1*x2", "--parameter", "a")
    assert code == 0 and err == ""
    assert out.strip() == str(staircase("x1 + a*x1*x2", parameters="a")).strip()
    code, out, _ = run(
        "staircase",
        "x1 + b*x1*x2 + a*x3",
        "--parameter",
        "a",
        "--parameter",
        "b:positive",
        "--latex",
    )
    assert code == 0 and "a = 0" in out and "b" not in out.splitlines()[1] and r"a \neq 0" in out
    assert "a = 0" in run("leap", "a*x1 + x1*x2", "--parameter", "a")[1]
    assert "a**2" in run("project", "x1 + a*x1*x2", "--onto", "1,0", "--parameter", "a")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["staircase", "x1 + a*x1*x2"], "--parameter a"),
        (["staircase", "x1*a", "--parameter", "a:odd"], "declared 'odd'"),
        (["staircase", "x1*a", "--parameter", "a", "--parameter", "a"], "names 'a' twice"),
        (["staircase", "x1", "--parameter", "x1"], "x1 is a coordinate"),
        (["leap", "a*x1", "--parameter", "a", "--direction", "1"], "without parameters"),
    ],
)
def test_bad_parameters(run, arguments, message):
    code, out, err = run(*arguments)
    assert code != 0 and out == "" and message in err


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
        (["x1", "--order", "0"], "--order"),
        (["x1", "--order", "99"], "from 1 to 64"),
        (["x1", "--variant", "lazy"], "--variant"),
        (["x1", "--biases"], "name its activation"),
        (["x1", "--readout", ","], "--readout needs numbers"),
        (["x1", "--readout", "x"], "--readout"),
        (["x1", "--out", "page.txt"], ".html, .json"),
        (["x1", "--out", "/nowhere/at/all/page.html"], "'/nowhere/at/all'"),
    ],
)
def test_bad_input_is_one_line(run, arguments, message):
    try:
        code, out, err = run("staircase", *arguments)
    except SystemExit as stop:  # argparse
        pytest.fail(f"the command ends by {stop}")
    assert code == 2 and out == ""
    assert message in err and "Traceback" not in err
