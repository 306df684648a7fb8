import time

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from sympy import Rational as R

from giantstep.errors import ExpressionError
from giantstep.symbolic.expressions.functions import OwenT, relu, sigmoid
from giantstep.symbolic.expressions.latex_text import (
    MAX_LATEX_LENGTH,
    expression_latex,
    latex_names,
    parse_latex,
)

z, rho, x1, x2 = sp.symbols("z rho x1 x2", real=True)
SYMBOLS = {s.name: s for s in (z, rho, x1, x2)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\frac{1}{2} z^{2} - \frac{z}{3}", z**2 / 2 - z / 3),
        (r"$\displaystyle \tanh\left(2 z\right)$", sp.tanh(2 * z)),
        (r"\mathrm{He}_{3}\left(x_{1}\right)", x1**3 - 3 * x1),
        (r"\mathrm{He}_3(x_1) x_2", (x1**3 - 3 * x1) * x2),
        (r"\operatorname{erf}{\left(z \right)}", sp.erf(z)),
        (r"\sin^{2}{\left(z \right)}", sp.sin(z) ** 2),
        (r"\operatorname{ReLU}\left(z\right)", relu(z)),
        (r"\operatorname{T}\left(z, \rho\right)", OwenT(z, rho)),
        (r"\sqrt{2} \sqrt[3]{\rho}", sp.sqrt(2) * rho ** R(1, 3)),
        (r"\sqrt[3]{\rho^2 + 1}^{2}", (rho**2 + 1) ** R(2, 3)),
        (r"e^{- \frac{z^{2}}{2}} + e", sp.exp(-(z**2) / 2) + sp.E),
        (r"2 \pi \cdot 3", 6 * sp.pi),
        (r"- x_{1} x_{2}", -x1 * x2),
        (r"-\left(z + 1\right)\left(z - 1\right)", -((z + 1) * (z - 1))),
        (r"\left|z\right| z", sp.Abs(z) * z),
        (r"\Phi\left(0\right) z", z / 2),
        (r"\max\left(x_1, x_2\right)", x2 + relu(x1 - x2)),
        (r"\arcsin(\frac\rho2)", sp.asin(rho / 2)),
        (r"z (z + 1)^2 / 2", z * (z + 1) ** 2 / 2),
        (r"\ln\left(2\right) z", sp.log(2) * z),
        ("0.25 z", z / 4),
    ],
)
def test_reads(text, expected):
    assert parse_latex(text, SYMBOLS) == expected


@pytest.mark.parametrize(
    "expr",
    [sp.tanh(2 * z) ** 2 / 3, sp.erf(z / sp.sqrt(2)), sp.exp(-(z**2) / 2), sp.Abs(z) ** 3, z**-2],
)
def test_reads_what_sympy_prints(expr):
    assert parse_latex(sp.latex(expr), [z]) == expr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\frac12 z", z / 2),
        (r"\tfrac{z}{3} + \dfrac1z", z / 3 + 1 / z),
        (r"\bigl(z + 1\bigr)^2 \Big( z \Big)", (z + 1) ** 2 * z),
        (r"\lvert z \rvert^3", sp.Abs(z) ** 3),
        (r"\max\{0, z\}", z + relu(-z)),
        (r"\operatorname{sgn}(z)", sp.sign(z)),
        (r"\mathrm{e}^{-z^2/2}", sp.exp(-(z**2) / 2)),
        (r"\mathsf{He}_2(z)", z**2 - 1),
        (r"\mathrm{SiLU}(z)", z * sigmoid(z)),
        (r"\sin^2(z)", sp.sin(z) ** 2),
    ],
)
def test_reads_what_papers_write(text, expected):
    assert parse_latex(text, [z]) == expected


@pytest.mark.parametrize("name", ["q", "x12", "rho", "alpha3", "q_hat", "width", "w12a", "e", "T"])
def test_names_read_back(name):
    symbol = sp.Symbol(name, real=True)
    assert parse_latex(expression_latex(2 * symbol**2), [symbol]) == 2 * symbol**2


def test_names_of_a_text():
    text = r"\operatorname{erf}\left(x_{1} + \rho\right) z + \mathrm{He}_{2}\left(x_{12}\right)"
    assert latex_names(text) >= {"x1", "x12", "rho", "z"}
    assert not latex_names(r"\frac{1}{2} \tanh\left(2\right)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        (r"\input{/etc/passwd}", "not a command for expressions"),
        (r"\def\x{1}", "not a command"),
        (r"\csname x\endcsname", "not a command"),
        (r"\write18{rm}", "not a command"),
        (r"\mathrm{__import__}\left(z\right)", "not a command|unknown name"),
        (r"\operatorname{eval}\left(z\right)", "unknown name 'eval'"),
        (r"\operatorname{lambda}(z)", "not a name"),
        (r"\operatorname{}", "not the name of a function"),
        (r"z!", "no meaning in the LaTeX"),
        (r"z & z", "no meaning in the LaTeX"),
        (r"\frac{1}", "braces"),
        (r"\frac{1}{0}", "divides by zero"),
        (r"\left(z", r"'\\\\right' is missing where the text ends"),
        (r"z\right)", "out of place"),
        (r"\left.z\right|", "no meaning"),
        (r"z^{2}^{3}", "power of a power"),
        (r"e^{z}^{2}", "power of a power"),
        (r"z^12", "has to stand in braces"),
        (r"z^-1", "has to stand in braces"),
        (r"z^{z}", "exponent"),
        (r"2 3", r"write \\cdot"),
        (r"z - - z", "not an operator"),
        (r"z2", r"'z2' is ambiguous; write z_\{2\} for an index, or z \\cdot 2"),
        (r"\tanh(x2)", "ambiguous"),
        (r"\rho 2", "ambiguous"),
        (r"\sin^{-1}(z)", r"an inverse or a reciprocal; write \\arcsin"),
        (r"\left(\lvert z\right)", "rvert' is missing"),
        (r"|z|", r"write \\left\| and"),
        (r"\tanh\{z\}", "parentheses"),
        (r"\max\{z, 0)", "is missing"),
        (r"\frac123", "has to stand in braces"),
        (r"z \cdot - z", "is missing where '-' stands"),
        (r"\tanh z", r"argument of a function has to stand in parentheses"),
        (r"\tanh_{2}\left(z\right)", "no index"),
        (r"\sqrt[n]{z}", "order of a root"),
        (r"\sqrt[3]{-8}", "not real-valued"),
        (r"\sqrt[999]{z}", "exponent in"),
        (r"E z", r"unknown name 'E'; write \\pi for pi and e for E"),
        (r"y_{1}", "unknown name 'y1'"),
        (r"x_{1}(z, z)", "is missing"),
        (r"x__1", "index has to be"),
        ("\\", "no meaning in the LaTeX"),
        (r"9^{9^{9^{9}}}", "exponent"),
        (r"e^{e^{e^{9}}}", "too large"),
        ("9" * 400, "at most 30 digits"),
        ("{" * 4000, "nested too deeply"),
        (r"\sqrt" * 500, "nested too deeply"),
        (r"\frac" * 500, "nested too deeply"),
        (r"\tanh{" * 300, "parentheses|nested"),
        ("{" * 49 + r"\sqrt " * 49 + "z" + "}" * 49, "nested too deeply|degree|exponent"),
        ("z" * (MAX_LATEX_LENGTH + 1), "characters"),
        ("z" * 100_000, "characters"),
    ],
)
def test_refuses_quickly_and_names_the_remedy(text, message):
    start = time.process_time()
    with pytest.raises(ExpressionError, match=message) as caught:
        parse_latex(text, SYMBOLS, argument="target")
    # Some 50 times what it takes: the bound is against hanging, not for speed.
    assert time.process_time() - start < 1
    assert str(caught.value).startswith("cannot read target ")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_other_types_are_refused():
    with pytest.raises(ExpressionError, match="not a text"):
        parse_latex(None, [z])  # type: ignore[arg-type]


def test_long_sums_are_read():
    assert parse_latex("z+" * 1999 + "z", [z]) == 2000 * z


pieces = st.sampled_from(
    [
        r"\frac", r"\sqrt", "{", "}", "{", "}", r"\left(", r"\right)", "(", ")", "x_{1}", "x", "z",
        "e", "^", "_", "2", "12", "3.5", "+", "-", "/", r"\cdot", r"\pi", r"\tanh", "[", "]",
        r"\operatorname{erf}", r"\mathrm{He}_{3}", r"\left|", r"\right|", r"\Phi_{2}", ",", r"\rho",
        "\\", r"\def", "$", " ", "é", r"\mathrm{", "!", "#", "\n", "__class__", "'",
    ]
)  # fmt: skip


@given(st.one_of(st.lists(pieces, max_size=14).map("".join), st.text(max_size=30)))
@settings(max_examples=60, deadline=None)
def test_any_text_is_read_or_refused(text):
    start = time.process_time()
    try:
        value = parse_latex(text, SYMBOLS)
    except ExpressionError as error:
        assert "\n" not in str(error)
    else:
        assert value.free_symbols <= set(SYMBOLS.values())
    assert time.process_time() - start < 2
