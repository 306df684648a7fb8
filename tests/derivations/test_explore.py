"""Sliders: what they ask, what the page sends, and that nothing leaves this machine."""

import asyncio
import re
import urllib.request

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import MissingDependencyError, ParameterError

pytest.importorskip("bokeh")

from giantstep.derivations.explore import ExplorePage, serve, subject_of

from .. import browser

m, h = sp.symbols("m h", real=True)
beta = sp.Symbol("beta", positive=True)


def magnet():
    free_energy = gs.FreeEnergy(
        m**2 / 2 - sp.log(2 * sp.cosh(beta * (m + h))) / beta, (m,), (), (beta, h)
    )
    system = gs.SaddlePointSystem.from_free_energy(
        free_energy, name="magnet", domains={m: sp.Interval.open(-1, 1)}
    )
    return gs.lower(system)


def one_step():
    return gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2)


def test_lines_follow_a_slider_and_stay():
    page = ExplorePage(subject_of(one_step()))
    source, glyphs = page.data["curve"], list(page.curve.renderers)
    before = source.data["risk_trained"].copy()
    page.sliders["step_size"].value = 3
    assert page.data["curve"] is source and page.curve.renderers == glyphs
    assert not np.allclose(source.data["risk_trained"], before)
    curve = one_step().curve(alpha=source.data["x"], ridge=0.1, step_size=3, progress=False)
    assert np.array_equal(source.data["risk_trained"], curve["risk_trained"])
    # What the table says, and the marks on the lines.
    assert "trained" in page.table.text and page.status.text == ""
    assert page.data["here"].data["x"] == [2.0] * len(page.drawn)


def test_spectrum_waits_until_a_slider_is_let_go():
    page = ExplorePage(subject_of(one_step()))
    assert len(page.data["density"].data["x"]) == 0
    page.settle("value", None, None)
    density = page.data["density"].data
    assert len(density["x"]) > 50 and np.isfinite(density["y"]).all()


def test_landscape_of_a_kernel():
    page = ExplorePage(subject_of(magnet(), beta=1.5), {"h": "0.02"})
    page.settle("value", None, None)
    points = page.data["points"].data
    assert len(points["x"]) == 3 and points["fill"].count("white") == 1
    for x in points["x"]:
        assert abs(np.tanh(1.5 * (x + 0.02)) - x) < 1e-9
    page.sliders["beta"].value = np.log10(0.5)
    page.settle("value", None, None)
    assert len(page.data["points"].data["x"]) == 1


def test_the_address_and_the_python_say_what_is_seen():
    page = ExplorePage(subject_of(one_step()), {"alpha": "1.25", "over": "ridge", "beta": "no"})
    assert page.values["alpha"] == 1.25 and page.values["beta"] == 1.5
    assert page.curve.xaxis[0].axis_label == "ridge"
    query = dict(part.split("=") for part in page.link.value.removeprefix("?").split("&"))
    assert query["over"] == "ridge" and float(query["alpha"]) == 1.25
    assert ExplorePage(subject_of(one_step()), query).values == page.values
    names: dict[str, object] = {}
    exec(page.python.value.replace("print(", "found = (", 1), names)
    assert names["found"] == one_step().at(alpha=1.25).solve(ridge=0.1)


def test_every_model_has_its_sliders():
    page = ExplorePage(subject_of(gs.MultiIndex("abs"), alpha=0.8), {"of": "q"})
    page.settle("value", None, None)
    assert page.data["points"].data["fill"].count("white") == 1
    names: dict[str, object] = {}
    exec(page.python.value.replace("print(", "found = (", 1), names)
    assert names["found"] == gs.MultiIndex("abs").solve(alpha=0.8)
    # Of what is no plain value the document is given.
    direct = gs.SpikedRandomFeatures.from_parameters(
        "erf", "erf", spike_strength=1, bulk_variance=1, alignment=0.5
    )
    subject = subject_of(direct)
    exec(subject.code({"alpha": 2.0, "ridge": 0.1, "beta": 1.0}), names)
    assert names["model"] == direct
    with pytest.raises(ParameterError, match="asked for steps"):
        subject_of(gs.OverlapDynamics(student="erf", teacher="z", step_size=0.5, alpha0=3))


def test_landscapes_are_offered_of_what_has_one():
    subject = subject_of(gs.SpikedRandomFeatures("erf", "erf"))
    assert list(subject.unknowns) == ["nothing", "m", "theta", "psi", "q1", "q2"]
    assert list(subject_of(magnet()).unknowns) == ["m"]


def test_a_page_says_that_it_computes():
    class Document:
        def __init__(self):
            self.waiting = []
            self.add_next_tick_callback = self.waiting.append

    page, document = ExplorePage(subject_of(one_step()), later=True), Document()
    assert len(page.data["curve"].data["x"]) == 0
    page.begin(document)
    assert page.busy.text.startswith("computing")
    page.beside.shutdown()
    (settle,) = document.waiting
    settle()
    assert page.busy.text == "" and len(page.data["density"].data["x"]) > 50


def test_the_address_of_a_notebook_is_left_alone():
    def moved(page):
        return bool(page.link.js_property_callbacks)

    subject = subject_of(magnet())
    assert moved(ExplorePage(subject)) and not moved(ExplorePage(subject, embedded=True))


def test_what_a_model_refuses_is_told_and_lines_stay():
    page = ExplorePage(subject_of(gs.SpikedRandomFeatures("erf", "erf", alpha0=5)))
    before = page.data["curve"].data["test_error"].copy()
    page.sliders["noise_variance"].value = -1
    assert "noise_variance" in page.status.text and "<" not in page.status.text
    assert np.array_equal(page.data["curve"].data["test_error"], before)
    page.sliders["noise_variance"].value = 0.1
    assert page.status.text == ""


def test_what_cannot_be_explored_is_refused(monkeypatch):
    with pytest.raises(ParameterError, match="model must be"):
        subject_of("tanh")
    with pytest.raises(ParameterError, match="sliders are finite numbers named beta, h"):
        subject_of(magnet(), gamma=1.0)
    with pytest.raises(ParameterError, match="beta=inf"):
        subject_of(magnet(), beta=float("inf"))
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"giantstep\[explore\]"):
        serve(magnet())


def served(model, visit, **values):
    """Return what `visit` finds at the address of a page that is served meanwhile."""

    async def both():
        explorer = serve(model, **values)
        with pytest.raises(ParameterError, match="cannot be used"):
            serve(model, port=int(explorer.url.split(":")[-1].strip("/")))
        try:
            return await visit(explorer)
        finally:
            explorer.stop()

    return asyncio.run(both())


def test_the_server_is_of_this_machine_alone():
    async def visit(explorer):
        sockets = explorer.server._http._sockets.values()
        assert {one.getsockname()[0] for one in sockets} == {"127.0.0.1"}
        assert explorer.url in explorer._repr_html_()

        def fetched():
            with urllib.request.urlopen(explorer.url) as answer:
                return answer.read().decode()

        return await asyncio.to_thread(fetched)

    text = served(magnet(), visit)
    # Scripts come from the server itself; words of a licence are no requests.
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', text)
    assert re.findall(r'src="/?static/js/bokeh', text)


@pytest.mark.parametrize("port", [-1, 65536, "x"])
def test_ports_that_there_are_not_are_refused(port):
    with pytest.raises(ParameterError, match="port must be"):
        serve(magnet(), port=port)


@pytest.mark.slow
@pytest.mark.skipif(browser.CHROMIUM is None, reason="needs Chromium")
def test_the_page_in_a_browser(tmp_path):
    """A slider moves there: lines, address and table follow, and no request leaves."""
    found = served(magnet(), lambda explorer: visited(explorer.url, tmp_path), beta=1.5, h=0.02)
    assert "beta=0.5" in found.pop("address")
    assert {re.match(r"\w+:(//[\d.]+)?", url)[0] for url in found.pop("urls")} <= {
        "http://127.0.0.1", "ws://127.0.0.1", "data:",
    }  # fmt: skip
    assert found == {"before": 3, "after": 1, "complaints": []}


async def visited(url, folder):
    models = "[...(globalThis.Bokeh?.documents[0]?._all_models.values() ?? [])]"
    source = f"{models}.find(x => x.type == 'ColumnDataSource' && x.data.fill?.length)"
    points, slider = f"{source}?.data.x.length", f"{models}.find(x => x.title == 'beta')"
    moved = f"{slider}.value = Math.log10(0.5); {slider}.value_throttled = Math.log10(0.5); 0"
    async with browser.browser(folder) as tab:
        await tab.visit(url)
        before = await asyncio.wait_for(tab.until(points, 3), 120)
        await tab.run(moved)
        after = await asyncio.wait_for(tab.until(points, 1), 120)
        return {
            "before": before, "after": after, "address": await tab.run("location.href"),
            "urls": tab.requests, "complaints": tab.complaints,
        }  # fmt: skip
