"""What is written as LaTeX: brackets close, lines have the width of a text, and LaTeX takes it."""

import re
import shutil
import subprocess

import pytest
import sympy as sp

import giantstep as gs
from giantstep.latex_lines import WIDTH, broken, extent

FEATURES = gs.SpikedRandomFeatures("erf", "sin", step_size=2, alpha0=4)
STEP = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=3, noise_variance=0.1)
LONG = " + ".join(f"a_{{{k}}} x^{{{k}}}" for k in range(40))
FRAGMENTS = {
    "free energy": lambda: sp.latex(FEATURES.symbolic().free_energy),
    "symbolic model": lambda: FEATURES.symbolic().latex(),
    "equation": lambda: FEATURES.symbolic().equations[-1].latex(),
    "model": lambda: FEATURES.latex(),
    "kernel": lambda: FEATURES.kernel().latex(),
    "one step": lambda: STEP.latex(),
    "limits": lambda: STEP.limits(ridge=0.1).latex(),
    "large steps": lambda: STEP.large_steps().latex(),
    "activation": lambda: gs.activation("gelu").latex(),
    "target": lambda: gs.target("x1 + x1*x2 + He(5, x1)*He(3, x2) + tanh(x1 + x2)").latex(),
    "first step": lambda: gs.first_step("erf", "x1 + He(2, x2)").latex(),
    "samples": lambda: gs.sample_complexity("relu", "x1*x2").latex(),
    "giant step": lambda: gs.giant_step("x1*x2 + He(3, x1)", "relu").latex(),
    "regimes": lambda: gs.regimes("x1 + x1*x2").latex(),
    "leaps": lambda: gs.leaps("x1 + x2*x3").latex(),
    "staircase": lambda: gs.staircase("x1 + x1*x2").latex(),
    "gradient": lambda: gs.gradient_expansion("relu", "x1*x2 + He(3, x1)").latex(),
    "coefficients": lambda: gs.hermite_coefficients("tanh", 9).latex(),
    "closed form": lambda: gs.hermite_coefficients("gelu", 2).require_closed_form().latex(),
    "decay": lambda: sp.latex(gs.hermite_coefficients("tanh", 2).decay),
    "equivalence": lambda: gs.conditional_equivalence("gelu").latex(),
    "index model": lambda: gs.MultiIndex("sign").latex(),
    "sum": lambda: broken(f"y = {LONG}"),
    "product": lambda: broken(rf"y = \frac{{\left({LONG}\right) \sqrt{{{LONG}}}}}{{2}}"),
}
# Tables and cases are as wide as their cells.
WHOLE = {"regimes", "samples", "giant step", "leaps", "one step"}


@pytest.fixture(scope="module", params=FRAGMENTS)
def fragment(request):
    return request.param, FRAGMENTS[request.param]()


def test_brackets_close(fragment):
    _, text = fragment
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}") > 0
    for begin, end in ((r"\left", r"\right"), (r"\begin", r"\end"), (r"\Bigl", r"\Bigr")):
        pattern = r"(?![a-z])"
        assert len(re.findall(re.escape(begin) + pattern, text)) == len(
            re.findall(re.escape(end) + pattern, text)
        )


def test_lines_have_the_width_of_a_text(fragment):
    name, text = fragment
    if name not in WHOLE:
        assert extent(text) <= 1.1 * WIDTH


@pytest.mark.parametrize(
    ("symbol", "width"),
    [
        # In em: the width of the symbol in Computer Modern and the space that TeX sets around it.
        *((relation, 0.7778 + 2 * 5 / 18) for relation in "=<>"),
        *(
            (relation, 0.7778 + 2 * 5 / 18)
            for relation in (r"\le ", r"\ge ", r"\simeq ", r"\approx ")
        ),
        *((operator, 0.7778 + 2 * 4 / 18) for operator in ("+", "-", r"\times ")),
        (r"\cdot ", 0.2778 + 2 * 4 / 18),
        (r"\to ", 1 + 2 * 5 / 18),
        (r"\quad ", 1.0),
        (r"\qquad ", 2.0),
        (r"\;", 5 / 18),
        (r"\:", 4 / 18),
    ],
)
def test_widths_are_about_those_of_tex(symbol, width):
    # A letter is half an em wide, and one here.
    assert extent(f"a{symbol}b") - extent("ab") == pytest.approx(2 * width, rel=0.12)


def test_rows_of_a_broken_equation_are_those_of_the_equation():
    rows = broken(f"y = {LONG}").split(r" \\ ")
    assert len(rows) > 2 and all(extent(row) <= WIDTH for row in rows)
    kept = "".join(rows).replace(r"\begin{aligned}", "").replace(r"\end{aligned}", "")
    kept = kept.replace(r"&\quad", "").replace("&=", "=")
    assert "".join(kept.split()) == "".join(f"y = {LONG}".split())
    assert broken(r" \\ ".join(rows)) == r" \\ ".join(rows)
    assert broken("a = b") == "a = b"


def test_latex_takes_all_of_it(tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no pdflatex")
    texts = {name: make() for name, make in FRAGMENTS.items()}
    texts |= {x: rf"\resizebox{{\textwidth}}{{!}}{{$\displaystyle {texts[x]}$}}" for x in WHOLE}
    body = "\n".join(rf"\[{text}\]" for text in texts.values())
    (tmp_path / "all.tex").write_text(
        r"\documentclass{article}\usepackage{amsmath,amssymb,graphicx}\begin{document}"
        + body
        + r"\end{document}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    # An equation of many lines may be higher than a page, never wider than its text.
    assert r"Overfull \hbox" not in done.stdout
