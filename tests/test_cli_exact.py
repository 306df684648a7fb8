"""The exact commands as users meet them: hermite, expect, gradient, complexity."""

import importlib.util

import pytest


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
