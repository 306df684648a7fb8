"""The report: one file, offline, with the numbers of the datasets and formulas as MathML."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.curve_report import html_report, result_table
from giantstep.derivations.formulas import latex, mathml, tidy
from giantstep.derivations.readable import readable
from giantstep.derivations.spiked_random_features.presentation import (
    equations_latex,
    model_latex,
    sections,
)
from giantstep.errors import ApproximationWarning, ParameterError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation

VOID = {"meta", "br", "img", "hr", "link", "input"}


class Page(HTMLParser):
    """Collects what a page refers to, and checks that elements are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.references, self.open, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.references += [
            (tag, name, value)
            for name, value in attrs
            if name in ("src", "href", "xlink:href", "srcset", "data", "action", "poster")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def model():
    return gs.SpikedRandomFeatures("tanh", "sin", alpha0=5)


@pytest.fixture(scope="module")
def curve(model):
    return model.curve(alpha=[0.5, 0.75, 1], ridge=0.1).to_dataset()


@pytest.fixture(scope="module")
def simulation(model):
    return model.simulate(40, alpha=[0.5, 1], ridge=0.1, seeds=2, progress=False)


@pytest.fixture(scope="module")
def page(model, curve, simulation):
    command = "giantstep curve --student tanh --teacher '<sin>'"
    return html_report(model, curve, simulation, command=command, seconds=1.25)


def test_report_loads_nothing(page):
    found = Page(page).references
    outside = [r for r in found if not (r[2] or "").startswith("#")]
    # A link for the reader; nothing that a browser fetches by itself.
    assert outside == [("a", "href", "https://arxiv.org/abs/2402.04980")]
    assert "url(http" not in page and "@import" not in page and "<script" not in page
    assert page.count("http") == 1


def test_report_holds_the_numbers(page, model, curve, simulation):
    text = " ".join(" ".join(Page(page).text).split())
    for alpha in (0.5, 1):
        assert f"{float(curve['test_error'].sel(alpha=alpha)):.10g}" in text
    assert f"{model.spike.spike_strength:.10g}" in text
    assert f"giantstep {gs.__version__}" in text
    assert f"sympy {sp.__version__}" in text
    assert "arXiv:2402.04980" in text and "seed 0" in text and "time 1.2 s" in text
    assert "replica method: not a theorem" in text
    assert "'<sin>'" in text  # escaped in the source
    assert "<sin>" not in page


def test_python_of_the_report_makes_the_same_curve(page, curve):
    code = next(t for t in Page(page).text if t.startswith("import giantstep"))
    namespace = {}
    lines = [line for line in code.splitlines() if not line.startswith("simulation")]
    exec("\n".join(lines).replace(", 100)", ", 3)"), namespace)
    assert namespace["curve"]["test_error"].to_numpy() == pytest.approx(
        curve["test_error"].to_numpy(), rel=1e-12
    )


def test_every_formula_is_well_formed(page):
    formulas = re.findall(r"<math\b.*?</math>", page)
    assert len(formulas) > 30
    [svg] = re.findall(r"<svg\b.*?</svg>", page, re.DOTALL)
    ET.fromstring(svg)
    for formula in formulas:
        ET.fromstring(formula)
        assert "hat" not in formula.replace("accent", "")
        assert "mu_" not in formula and "vartheta" not in formula


@pytest.mark.parametrize(
    ("student", "teacher", "options"),
    [
        ("relu", "gelu", {"allow_non_odd": True}),
        ("cos", "tanh", {"allow_non_odd": True, "step_size": 0}),
    ],
)
def test_sections_of_any_model_are_well_formed(student, teacher, options):
    model = gs.SpikedRandomFeatures(student, teacher, **options)
    found = sections(model)
    for section in found:
        for formula in section.formulas:
            ET.fromstring(formula.mathml())
            assert_balanced(formula.latex())
    assert ("The giant step" in found[0].title) == bool(model.step_size)
    assert_balanced(equations_latex(model))
    assert_balanced(model.symbolic()._repr_latex_())


def assert_balanced(text):
    assert text.count("{") == text.count("}")
    assert text.count(r"\left") == text.count(r"\right")


def test_models_of_given_parameters_have_a_report():
    model = gs.SpikedRandomFeatures.from_parameters(
        "sign", "sign", spike_strength=1, bulk_variance=1, alignment=1
    )
    text = html_report(model, model.curve(alpha=[1, 2], ridge=0.1).to_dataset())
    Page(text)
    assert "from_parameters" in text
    assert "<h1>sign network, sign teacher: spiked random features</h1>" in text


def test_correlated_norms_are_derived_in_print():
    model = gs.SpikedRandomFeatures("tanh", "z + He(3, z)/6", step_size=4, leading_order="complete")
    found = {section.title: section for section in sections(model)}
    correction = found["Correlated norms (a correction to Result 3.1, derived here)"]
    assert correction.formulas[0].latex().startswith("a = s")
    mean = found["Abbreviations"].formulas[1].latex()
    assert mean == (
        r"M\left(\kappa\right) = m \mu_{0} + \vartheta \left(a \chi + \kappa \mu_{1}\right)"
    )
    # Everything below is written with M: the correction enters in this one place.
    rest = [s for title, s in found.items() if title.startswith(("Saddle", "Errors"))]
    assert not any(
        r"\mu_{0} m" in f.latex() or "m \\mu_{0}" in f.latex() for s in rest for f in s.formulas
    )
    text = html_report(model, model.curve(alpha=[1, 2], ridge=0.1).to_dataset())
    Page(text)
    assert "<mi>χ</mi>" in text and "chi" not in re.sub("<svg.*?</svg>", "", text, flags=re.DOTALL)
    assert (
        "norm overlap, a correction" in text and "Line: theory, complete to leading order" in text
    )
    assert readable("chi(kappa)") == "χ(κ)"


def test_uninformative_spike_is_said_so():
    model = gs.SpikedRandomFeatures("tanh", "He3")
    with pytest.warns(ApproximationWarning, match="relative spread"):
        curve = model.curve(alpha=[1, 2], ridge=0.1).to_dataset()
    text = html_report(model, curve)
    assert "leap index 3" in text and "uninformative" in text
    # What the warning says is in the report, too.
    assert "networks deviate by some per cent" in text


def test_table_refuses_what_was_not_computed(curve, simulation):
    headings, cells = result_table(curve, simulation)
    assert len(headings) == 6 and len(cells) == 2
    with pytest.raises(ParameterError, match=r"alpha = 0\.6 does not occur in the curve"):
        result_table(curve, rows=[0.6])


# ---------------------------------------------------------------------- formulas


def test_equations_look_as_in_the_paper(model):
    text = equations_latex(model)
    assert model.latex() == model_latex(model) and r"\gamma &= 0." in model.latex()
    # Cui et al., arXiv 2402.04980, Result 3.3, with V, M and the error abbreviated.
    prefactor = r"\frac{\alpha}{\beta} \mathbb{E}_{\kappa}"
    for left, right in (
        (r"\hat{V}_{1}", prefactor + r"\left[\frac{\mu_{1}^{2}}{1 + V}\right]"),
        (
            r"\hat{q}_{2}",
            prefactor + r"\left[\frac{\mu_{2}^{2} \varepsilon}{\left(1 + V\right)^{2}}",
        ),
        (
            r"\hat{\vartheta}",
            prefactor + r"\left[\frac{\kappa \mu_{1} \left(T_{0} - M\right)}{1 + V}",
        ),
        ("0", r"\mathbb{E}_{\kappa}\left[\frac{\mu_{0} \left(M - T_{0}\right)}{1 + V}\right]"),
        (
            "V_{1}",
            r"c \mathbb{E}_{X \sim \mathrm{MP}_{\beta}}\left[\frac{X}{\lambda + \hat{V}_{2} +",
        ),
    ):
        assert f"{left} &= {right}" in text


def test_tidy_keeps_the_value():
    k, t = sp.symbols("kappa t", real=True)
    expr = -GaussianExpectation(2 * k**2 * sp.cos(k) - 2 * k**2 * t, k) / 2
    # E k² cos k = 0 as E[k²] − 1 times e^{−1/2}; the value at t = 3 is 3.
    assert expr.subs(t, 3).doit() == tidy(expr).subs(t, 3).doit() == 3
    assert str(tidy(expr)).startswith("E_kappa[")


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (sp.Rational(-3, 2), r"- \frac{3}{2}"),
        (sp.exp(-(sp.Symbol("rho") ** 2) / 2), r"e^{- \rho^{2} / 2}"),
        (sp.Symbol("Vhat_1") ** 2, r"\hat{V}_{1}^{2}"),
        (1 / sp.sqrt(sp.Symbol("c")), r"\frac{1}{\sqrt{c}}"),
        ((1 + sp.Symbol("x")) ** 2, r"\left(1 + x\right)^{2}"),
        (sp.tanh(sp.Symbol("x")) ** 2, r"\tanh^{2}\left(x\right)"),
        (sp.Abs(sp.Symbol("x")), r"\left|x\right|"),
    ],
)
def test_pieces_of_formulas(expr, expected):
    assert latex(expr) == expected
    ET.fromstring(mathml(expr))


def test_terminal_notation():
    assert readable("Vhat_1 = varthetahat*psi**2") == "V̂₁ = ϑ̂ ψ²"
    assert readable("mu_2^2(kappa)") == "μ₂²(κ)"
    assert readable("mutation*Vx") == "mutation Vx"
