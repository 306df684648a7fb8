"""Reports of results: one file each, offline, with figure and typeset formulas."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser

import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import ParameterError

from . import browser

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
VOID = {"meta", "br", "img", "hr", "link", "input"}


class Elements(HTMLParser):
    """Checks that elements are closed in order and refer to nothing outside."""

    def __init__(self, text):
        super().__init__()
        self.open, self.counts = [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attrs:
            assert name not in ("src", "srcset", "poster") and (
                name != "href" or value.startswith(("#", "https://arxiv.org/abs/"))
            )
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def model():
    return gs.SpikedRandomFeatures("tanh", "sin", alpha0=5)


RESULTS = {
    "solution": lambda model: model.solve(alpha=1, ridge=0.1),
    "staircase": lambda model: gs.staircase("x1 + x1*x2"),
    "leaps": lambda model: gs.leaps("x1 + x2*x3"),
    "coefficients": lambda model: gs.hermite_coefficients("relu", 6),
    "dual": lambda model: gs.dual_activation("erf", sp.Symbol("rho", real=True)),
    "regimes": lambda model: gs.regimes("x1 + x1*x2"),
    "samples": lambda model: gs.sample_complexity("relu", "x1*x2 + He(3, x1)"),
    "claim": lambda model: gs.claims()[0],
    "risk": lambda model: gs.OneGradientStep("erf", "erf", alpha=2, beta=1, step_size=2).risk(
        ridge=0.1
    ),
    "step": lambda model: gs.giant_step("x1 + x1*x2", "relu"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_has_a_report(name, model, tmp_path):
    path = RESULTS[name](model).report(tmp_path / "report.html", command="giantstep <that>")
    text = path.read_text(encoding="utf-8")
    found = Elements(text)
    assert found.counts["h1"] == 1 and "giantstep &lt;that&gt;" in text
    assert "math" in found.counts and "merror" not in found.counts
    # No command of LaTeX is left in what is read.
    assert not re.search(r"\\[a-zA-Z]{2,}", re.sub(r"<style>.*?</style>", "", text, flags=re.S))
    assert found.counts.get("svg", 0) == (name not in ("claim", "step"))


def test_reports_of_curves_have_what_was_derived(model, tmp_path):
    curve = model.curve(alpha=[0.5, 1, 2], ridge=0.1)
    text = curve.report(tmp_path / "curve.html").read_text(encoding="utf-8")
    assert "Result 3.3" in text and Elements(text).counts["svg"] == 1
    # The spread of the bulk by its letter.
    assert "delta_c" not in text and "<mi>δ</mi>" in text
    over = model.curve(ridge=[0.1, 1], alpha=1.0).report(tmp_path / "ridge.html")
    assert Elements(over.read_text(encoding="utf-8")).counts["svg"] == 1


def test_a_report_opens_no_figure_and_needs_its_ending(model, tmp_path):
    import matplotlib.pyplot as plt

    result = model.solve(alpha=1, ridge=0.1)
    result.report(tmp_path / "a.html")
    assert not plt.get_fignums()
    with pytest.raises(ParameterError, match=r"a report is written as \.html, not"):
        result.report(tmp_path / "a.pdf")


@pytest.mark.slow
@pytest.mark.skipif(browser.CHROMIUM is None, reason="needs Chromium")
def test_a_browser_opens_reports_without_complaint(model, tmp_path):
    pytest.importorskip("bokeh")  # for its server, which speaks to browsers
    model.curve(alpha=[0.5, 1, 2], ridge=0.1).report(tmp_path / "curve.html")
    gs.staircase("x1 + x1*x2").report(tmp_path / "staircase.html")
    pages = sorted(tmp_path.glob("*.html"))
    assert len(pages) == 2 and asyncio.run(browser.complaints_of(pages)) == []
    # What it would find: a page that asks for something of another machine.
    wrong = tmp_path / "wrong.html"
    wrong.write_text('<img src="http://127.0.0.1:9/x.png">')
    assert "asks for http://127.0.0.1:9/x.png" in asyncio.run(browser.complaints_of([wrong]))[0]
