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
    code, out, _ = run("staircase", "x1 + x1*x2 + He(3, x1)*x3", "--readout=-1, 1")
    assert code == 0 and "s_2*u*e2 + s_4*u**3*e3" in out
    code, out, _ = run("staircase", "x1 + x1*x2", "--steps", 1)
    assert code == 0 and "max_steps" in out


def test_parameters_make_a_table_of_cases(run):
    code, out, err = run("staircase", "x1 + a*x1*x2", "--parameter", "a")
    assert code == 0 and err == ""
    assert out.strip() == str(staircase("x1 + a*x1*x2", parameters="a")).strip()
    code, out, _ = run(
        "staircase", "x1 + b*x1*x2 + a*x3", "--parameter", "a", "--parameter", "b:positive",
        "--latex",
    )  # fmt: skip
    assert code == 0 and "a = 0" in out and "b" not in out.splitlines()[1] and r"a \neq 0" in out
    assert "a = 0" in run("leap", "a*x1 + x1*x2", "--parameter", "a")[1]
    assert "a**2" in run("project", "x1 + a*x1*x2", "--onto", "1,0", "--parameter", "a")[1]


def test_files(run, tmp_path):
    page, data = tmp_path / "page.html", tmp_path / "data.json"
    assert run("staircase", "x1 + x1*x2", "--out", page)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and "U₂" in text
    assert run("staircase", "x1 + x1*x2", "--out", data)[0] == 0
    content = json.loads(data.read_text(encoding="utf-8"))
    assert Staircase.from_dict(content) == staircase("x1 + x1*x2")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["data.json", "page.html"]


def test_all_leaps_with_their_proofs(run):
    code, out, _ = run("leap", "x1 + 2*x2 + He(2, x1)/2 + He(3, x3)")
    assert code == 0
    # Catalogue P24: l = 1, Leap 3, isoLeap 3 with orders 1, 1, 3, generative leap 1.
    assert "leap index               1  E[f x1] = 1" in out
    assert "{0} –1→ ⟨(1, 2, 0)⟩ –1→ ⟨e1, e2⟩ –3→ R^3" in out
    assert "coordinate leap          3" in out and "He(3, x3) (new: x3; 3)" in out
    assert "generative leap          1  exact" in out and "y^3 shows R^3 at order 1" in out
    assert "(theorem: arXiv 2305.18270)" in out and "(conjecture: arXiv 2302.11055)" in out
    assert "its wording is not verified" in out


@pytest.mark.parametrize(
    ("target", "direction", "expected"),
    [
        ("x1 + 2*x2 + He(2, x1)/2", "1,0", "first seen at order 1, contained from order 2 on"),
        ("x1*x2", "-1,1/2", "first seen at order 2, contained from order 2 on"),
        ("x1 + x2", "1,0", "first seen at order 1, never contained"),
        ("x1 + x2", "sqrt(2),-sqrt(2)", "the target does not depend on it"),
    ],
)
def test_one_direction(run, target, direction, expected):
    code, out, _ = run("leap", target, "--direction", direction)
    assert code == 0 and expected in out.splitlines()[-1]


def test_latex_and_files(run, tmp_path):
    page, content = tmp_path / "leap.html", tmp_path / "leap.json"
    code, out, _ = run("leap", "x1*x2", "--latex", "--out", page)
    assert code == 0 and r"\mathrm{isoLeap}(f) = 2" in out and f"Wrote {page}" in out
    assert "<table>" in page.read_text(encoding="utf-8")
    code, _, _ = run("leap", "z**2*exp(-z**2)", "--out", content)
    assert code == 0
    found = json.loads(content.read_text(encoding="utf-8"))
    assert found["leap_index"]["value"] == found["generative_leap"]["lower"] == 4


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
