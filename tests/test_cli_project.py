"""``giantstep project`` as users meet it."""

import json

import pytest


def test_a_projection(run):
    code, out, err = run(
        "project", "x1 + x1*x2 + He(2, x2)", "--onto", "1,0", "--degree", 1, "--latex"
    )
    assert (code, err) == (0, "")
    assert "U = ⟨e1⟩" in out and "x1 + x1*x2" in out
    assert "residual norm squared: 2 of E f^2 = 4" in out
    assert r"\begin{aligned}" in out


def test_a_conditional_mean_of_a_function_with_kinks(run):
    code, out, _ = run("project", "relu(x1) + relu(x2)", "--onto", "1,1")
    assert code == 0
    # E Var = 1 + 1/pi - (2/3 + sqrt(3)/pi).
    assert "-sqrt(3)/pi + 1/pi + 1/3 = 0.10031" in out and "E Var(f | x_U)" in out


def test_several_rows_with_roots_and_decimals_and_none(run):
    code, out, _ = run("project", "x1 + x2*x3", "--onto", "1, sqrt(2), 0 ; 0, 0, 0.5")
    assert code == 0 and "⟨(1, sqrt(2), 0), e3⟩" in out
    code, out, _ = run("project", "x1 + x1*x2", "--onto", "0", "--degree", "1")
    assert code == 0 and "U = {0}" in out and "residual norm squared: 1 of" in out


def test_the_table_of_regimes(run):
    code, out, _ = run(
        "project", "x1 + x1*x2 + (x1**2 - 1)*(x2 + x3*x4)", "--regimes", "--steps", 2, "--latex"
    )
    assert code == 0
    rows = [line.split("│") for line in out.splitlines() if "│" in line][1:]
    assert [row[6].strip() for row in rows] == [f"≥ {n}" for n in (5, 2, 2, 2, 0, 2, 2)]
    assert "[1] U: theorem" in out and r"\begin{array}" in out


def test_other_exponents_and_a_student(run):
    code, out, _ = run(
        "project", "x1 + He(2, x1)*x2", "--regimes", "--exponents", "1,0; 3/2, 1/2",
        "--student", "relu",
    )  # fmt: skip
    assert code == 0 and "d^(3/2)" in out and "student relu" in out


def test_results_in_files(run, tmp_path):
    for name, start in (("a.json", "{"), ("a.html", "<!DOCTYPE html>")):
        code, out, _ = run("project", "x1*x2 + x1", "--regimes", "--out", tmp_path / name)
        assert code == 0 and f"Wrote {tmp_path / name}" in out
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    code, _, _ = run("project", "x1*x2", "--onto", "1,1", "--out", tmp_path / "b.json")
    content = json.loads((tmp_path / "b.json").read_text(encoding="utf-8"))
    # x1 x2 = (u^2 - v^2)/2 with u in U.
    assert code == 0 and content["residual_norm"] == "1/2" and content["onto"]["basis"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.json", "b.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x1 + x2"], "one of the arguments --onto --regimes is required"),
        (["x1 + x2", "--onto", "1"], "--onto needs rows of 2 numbers, but row 1 has 1"),
        (["x1 + x2", "--onto", "1,1;2,2"], "row 2, (2, 2), is a combination"),
        (["x1 + x2", "--onto", "0,0"], "row 1, (0, 0), is zero"),
        (["x1 + x2", "--onto", "1,"], "has an empty entry"),
        (["x1 + x2", "--onto", "1,1", "--degree", "-1"], ">= 0"),
        (["x1 + x2", "--onto", "1,1", "--steps", "2"], "--steps belongs to --regimes"),
        (["x1 + x2", "--regimes", "--degree", "1"], "--degree belongs to --onto"),
        (["x1 + x2", "--regimes", "--exponents", "1,sqrt(2)"], "--exponents must be rational"),
        (["x1 + x2", "--regimes", "--exponents", "0,1"], "> 0"),
        (["x1 + x2", "--regimes", "--steps", "1000"], "steps must be from 0 to 100"),
        (["x1 + x2", "--regimes", "--out", "a.txt"], "--out: must end in .png, .pdf"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run, arguments, message):
    code, out, err = run("project", *arguments)
    assert (code, out) == (2, "")
    assert message in err and len(err.splitlines()) == 1


def test_folders_that_do_not_exist(run, tmp_path):
    code, out, err = run("project", "x1", "--onto", "1", "--out", tmp_path / "no" / "a.json")
    assert code == 2 and out == "" and "/no'" in err
