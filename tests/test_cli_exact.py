"""The exact commands as users meet them: hermite, expect, gradient, complexity."""

import importlib.util
import json

import pytest

from giantstep.symbolic.leaps.staircase import Staircase, staircase


def test_hermite_prints_exact_coefficients(run):
    code, out, _ = run("hermite", "erf(z)", "--order", "3", "--digits", "12")
    assert code == 0
    # E erf'(z) = 2/sqrt(3 pi) by the Gaussian integral.
    assert "information exponent 1" in out
    assert "0.651470015870" in out and "2*sqrt(3)/(3*sqrt(pi))" in out
    assert out.count("exact zero by parity") == 2


def test_hermite_prints_the_closed_form_in_the_order(run):
    code, out, _ = run("hermite", "gelu", "--closed-form", "--latex")
    assert code == 0
    assert "mu_(2m) = (-1)**(m + 1)*(2*m + 1)*factorial2(2*m - 3)/(2*2**m*sqrt(pi))" in out
    assert r"\mu_{2m}" in out


def test_hermite_with_parameters(run):
    code, out, _ = run(
        "hermite", "sin(a*z + b)", "--parameter", "a:positive", "--parameter", "b:real",
        "--order", "2", "--closed-form",
    )  # fmt: skip
    assert code == 0
    assert "-a**2*exp(-a**2/2)*sin(b)" in out
    assert "a**k*exp(-a**2/2)*sin(b + pi*k/2)" in out


def test_hermite_never_pretends(run):
    code, out, _ = run("hermite", "tanh", "--order", "2", "--digits", "15")
    assert code == 0 and "0.605705509602158" in out and "no closed form" in out


@pytest.mark.skipif(importlib.util.find_spec("flint") is None, reason="needs python-flint")
def test_hermite_certified(run):
    code, out, _ = run("hermite", "tanh", "--order", "3", "--certified", "--digits", "25")
    assert code == 0
    assert "0.60570550960215882558354" in out and "±" in out


def test_an_expression_may_begin_with_a_minus(run):
    code, out, _ = run("hermite", "-tanh(z)", "--order", "1")
    assert code == 0 and "-0.6057" in out
    code, out, _ = run("hermite", "--closed-form", "-erf(z)", "--order", "1")
    assert code == 0 and "-2*sqrt(3)/(3*sqrt(pi))" in out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["erf(u)*erf(v)", "--joint", "rho"], "2*asin(2*rho/3)/pi"),  # Williams 1996
        (["sign(u)*sign(v)", "--joint", "rho"], "2*asin(rho)/pi"),  # Sheppard 1899
        (["z**4 + 1"], "= 4"),
        (["relu(a*z)", "--parameter", "a:positive"], "sqrt(2)*a/(2*sqrt(pi))"),
        (["u*v", "--joint", "1/2", "--variances", "2,8", "--means", "1,3"], "= 5"),
        (["sin(u)*sin(v)", "--joint", "cos(t)", "--parameter", "t:real"], "sinh(cos(t))"),
        (["-u*v", "--joint", "-1/2"], "= 1/2"),
        (["tanh(z)**2"], "0.39429449039784117441"),
    ],
)
def test_expect(run, arguments, expected):
    code, out, _ = run("expect", *arguments)
    assert code == 0 and expected in out


def test_expect_says_what_it_rests_on(run):
    assert "exact: closed form" in run("expect", "erf(z)**2")[1]
    assert "estimated" in run("expect", "tanh(z)**2")[1]
    assert "unevaluated" in run("expect", "tanh(a*z)**2", "--parameter", "a:positive")[1]


def test_gradient(run):
    code, out, _ = run("gradient", "relu", "1 + x1 + x1*x2", "--remove", "0,1", "--latex")
    assert code == 0
    assert "sqrt(2)/(2*sqrt(pi)) * H w, H = C_2 = E[hessian f], order d^(-1/2)" in out
    # For one w the correction is a multiple of E[y² w·x] ~ d^(-1/2); it averages out over w.
    assert "noise: E|g - G|^2 = d/(2*n) (1 + O(d^(-1/2)))" in out
    assert "G(w) = " in out and r"\underbrace" in out


def test_gradient_with_symbols(run):
    code, out, _ = run("gradient", "mu", "x1 + x1*x2")
    assert code == 0 and "mu[2] * (w2, w1)" in out
    code, out, _ = run("gradient", "erf", "x1", "--norm", "tau")
    assert code == 0 and "2/(sqrt(pi)*sqrt(2*tau**2 + 1))" in out


def test_gradient_of_a_student_that_jumps_has_no_noise(run):
    code, out, err = run("gradient", "sign", "He(3, x1)")
    assert (code, err) == (0, "")
    assert "C_3[w^2, .]" in out and "no weak derivative" in out


def test_sums_are_in_parentheses(run):
    out = run("gradient", "relu(z + 1/2)", "x1")[1]
    assert "mu_1 C_1 = (erf(sqrt(2)/4)/2 + 1/2) * (1)" in out
    assert "(erf(sqrt(2)/4)/2 + 1/2) * C_1" in out


def test_complexity(run):
    code, out, _ = run("complexity", "x1*x2 + x1**2 + x2**2/2")
    assert code == 0
    assert "leap index 2, degree 2, r = 2, rank H = 2" in out
    assert "n ≳ 2*d**2" in out and "n ≳ 4*d" in out and "n ≳ d**2" in out
    code, out, _ = run("complexity", "x1*x2", "--student", "erf")
    assert code == 0 and "does not apply: mu_2 = 0 for the student erf" in out


def test_declarations_of_files_are_known_to_commands(run, tmp_path, monkeypatch):
    file = tmp_path / "mine.py"
    file.write_text('import giantstep as gs\ngs.declare_activation("bent", "z + tanh(z)")\n')
    monkeypatch.setenv("GIANTSTEP_EXTENSIONS", str(file))
    code, out, _ = run("hermite", "bent", "--order", 2)
    assert code == 0 and out.startswith("bent: parity")
    monkeypatch.setenv("GIANTSTEP_EXTENSIONS", str(tmp_path / "none.py"))
    code, _, err = run("hermite", "tanh")
    assert code == 2 and "GIANTSTEP_EXTENSIONS must list Python files, and" in err


# ---------------------------------------------------------------------- leap, staircase, project


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
