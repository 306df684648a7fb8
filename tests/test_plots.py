"""Figures appear: in notebooks, in given axes, beside each other, and from saved data."""

from __future__ import annotations

import inspect
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.figures import draw_picture, drawing, off_screen
from giantstep.errors import ParameterError
from giantstep.pictures import Bars, Cells

pytest.importorskip("matplotlib")
ALPHA = [0.5, 1.0, 2.0]
RHO, Z = sp.symbols("rho z", real=True)


@pytest.fixture(scope="module")
def model():
    return gs.SpikedRandomFeatures("tanh", "sin", alpha0=5)


@pytest.fixture
def plt():
    """Pyplot, as a user imports it."""
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    return plt


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


# ---------------------------------------------------------------------- where figures appear


def test_a_figure_is_one_of_pyplot_where_that_is_in_use(model, plt):
    axes = model.solve(alpha=1, ridge=0.1).plot()
    assert plt.get_fignums() == [axes.figure.number] and plt.gca() is axes
    with off_screen():
        hidden = model.solve(alpha=1, ridge=0.1).plot()
    assert plt.get_fignums() == [axes.figure.number] and hidden.figure is not axes.figure


def test_a_figure_that_fails_leaves_none_behind(plt):
    with pytest.raises(ZeroDivisionError), drawing():
        raise ZeroDivisionError
    with pytest.raises(ParameterError, match="no finite numbers"):
        draw_picture(Bars({"a": (float("nan"), None)}, "numbers"))
    assert not plt.get_fignums()


def test_notebooks_show_a_picture_for_every_plot(monkeypatch):
    # Kernels choose how figures are shown only where nothing else was asked for.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "import giantstep as gs\nstairs = gs.staircase('x1 + x1*x2')\nstairs.plot()",
        "axes = gs.hermite_coefficients('relu', 6).plot(color='C3');",
        "stairs",
        "gs.leaps('x1 + x1*x2').plot(); gs.leap_filtration('x1 + x1*x2').plot();",
    ]
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)))
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    images = [
        sum("image/png" in getattr(output, "data", {}) for output in cell.outputs)
        for cell in notebook.cells
    ]
    assert images == [1, 1, 0, 2]


def test_files_embed_true_type_fonts(model, tmp_path, plt):
    axes = model.curve(alpha=ALPHA, ridge=0.1).plot()
    axes.figure.savefig(tmp_path / "curve.pdf")
    written = (tmp_path / "curve.pdf").read_bytes()
    assert b"/CIDFontType2" in written and b"/Type3" not in written
    # What is written outside of giantstep has the fonts that it was drawn with.
    assert b"STIXGeneral" in written
    assert pickle.loads(pickle.dumps(axes.figure)).axes


# ---------------------------------------------------------------------- axes and style


def test_given_axes_look_like_new_ones(model, plt):
    curve = model.curve(alpha=ALPHA, ridge=0.1)
    own = curve.plot()
    _, given = plt.subplots(figsize=own.figure.get_size_inches(), layout="constrained")
    assert curve.plot(ax=given) is given
    for axes in (own, given):
        axes.figure.canvas.draw()
    for name in ("get_fontfamily", "get_fontsize", "get_math_fontfamily"):
        for text in ("xaxis.label", "yaxis.label"):
            first, second = (
                getattr(getattr(a, text.split(".")[0]).label, name)() for a in (own, given)
            )
            assert first == second
        ticks = [getattr(a.get_xticklabels()[0], name)() for a in (own, given)]
        assert ticks[0] == ticks[1]
    assert given.lines[0].get_color() == own.lines[0].get_color()
    assert not given.spines["top"].get_visible()


def test_style_is_passed_on(model):
    curve = model.curve(alpha=ALPHA, ridge=0.1)
    axes = curve.plot(color="C3", label="mine", lw=4)
    assert axes.lines[0].get_color() == "C3" and axes.lines[0].get_linewidth() == 4
    assert labels(axes) == ["mine", "best linear predictor"]
    both = curve.plot(["test_error", "training_error"], label="mine")
    assert labels(both)[:2] == ["mine, test error", "mine, training error"]
    with pytest.raises(ParameterError, match=r"keywords of matplotlib's lines.*colr"):
        curve.plot(colr="red")


def test_overlaid_models_are_told_apart(model):
    axes = model.curve(alpha=ALPHA, ridge=0.1).plot()
    model.curve(alpha=ALPHA, ridge=1).plot(ax=axes)
    assert labels(axes) == [r"$\lambda = 0.1$", r"$\lambda = 1$", "best linear predictor"]
    assert axes.get_title(loc="left") == "student tanh, teacher sin"
    other = gs.SpikedRandomFeatures("erf", "sin", alpha0=5)
    other.curve(alpha=ALPHA, ridge=1).plot(ax=axes)
    assert labels(axes) == [
        r"tanh on sin, $\lambda = 0.1$", r"tanh on sin, $\lambda = 1$",
        r"erf on sin, $\lambda = 1$", "best linear predictor",
    ]  # fmt: skip
    assert len({line.get_color() for line in axes.lines[:1] + axes.lines[2:]}) == 3
    [subtitle] = axes.texts
    assert "s = 3" in subtitle.get_text() and "lambda" not in subtitle.get_text()


def test_every_plot_takes_axes_and_style():
    for name in gs.__all__:
        getattr(gs, name)
    missing = []
    for module in [name for name in sys.modules if name.startswith("giantstep.")]:
        for name, kind in vars(sys.modules[module]).items():
            if not inspect.isclass(kind) or kind.__module__ != module or "plot" not in vars(kind):
                continue
            keywords = inspect.signature(kind.plot).parameters.values()
            kinds = {p.name: p.kind for p in keywords}
            if kinds.get("ax") is not inspect.Parameter.KEYWORD_ONLY or (
                inspect.Parameter.VAR_KEYWORD not in kinds.values()
            ):
                missing.append(f"{module}.{name}")
    # The method of the last release, which goes.
    assert missing == ["giantstep.derivations.spiked_random_features.model.SpikedRandomFeatures"]


# ---------------------------------------------------------------------- pictures


def test_a_staircase_says_what_made_each_step():
    axes = gs.staircase("x1 + x1*x2 + x1*x2*x3").plot()
    texts = [re.sub(r"\s+", " ", text.get_text()) for text in axes.texts]
    assert {"{0}", "⟨e1⟩", "⟨e1, e2⟩", "R^3"} <= set(texts)
    assert any(text.startswith("x1*x2: moves along e2") for text in texts)
    stairs = axes.patches[0].get_data()
    assert stairs.values.tolist() == [0, 1, 2, 3]


def test_coefficients_stand_on_their_decay():
    picture = gs.hermite_coefficients("relu", 40).picture()
    points, law = picture.lines
    k, a = points.x.index(40), sp.Symbol("a", positive=True)
    assert points.y[k] == pytest.approx(law.y[39], rel=0.05)
    with pytest.raises(ParameterError, match="depend on a"):
        gs.hermite_coefficients(sp.erf(a * Z), 2, variable=Z).plot()


def test_an_optimum_has_its_parabola(model):
    found = model.optimum(over="ridge", alpha=2)
    parabola, point = found.picture().lines
    assert min(parabola.y) == pytest.approx(point.y[0], rel=1e-6)
    away = 1.05 * float(found.ridge)
    rise = np.interp(away, parabola.x, parabola.y) - found.test_error
    expected = model.solve(alpha=2, ridge=away).test_error - found.test_error
    assert rise == pytest.approx(expected, rel=0.05)


def test_verdicts_are_a_dashboard():
    verdicts = gs.verify(["block-structure"], progress=False)
    picture = verdicts.picture()
    assert picture.tones[0][0] == "good" and picture.texts[0][0] == "2 of 2"
    assert "1 of 1 claims passed" in verdicts.plot().get_title(loc="left")
    with pytest.raises(ParameterError, match="no rows"):
        draw_picture(Cells([], [], [], []))


def test_bars_of_two_results_stand_beside_each_other(model):
    axes = model.solve(alpha=1, ridge=0.1).plot(label="one")
    model.solve(alpha=2, ridge=0.1).plot(ax=axes, label="two")
    assert labels(axes) == ["one", "two"]
    heights = {round(patch.get_y(), 3) for patch in axes.patches}
    assert len(heights) == len(axes.patches)


# ---------------------------------------------------------------------- saved data


def test_optima_over_a_parameter_are_drawn(model):
    optima = model.optimum(over="ridge", alpha=ALPHA)
    axes = gs.plot(optima)
    assert np.array_equal(axes.lines[0].get_ydata(), optima["ridge"])
    assert np.array_equal(gs.plot(optima, of="test_error").lines[0].get_ydata(), optima.test_error)


def test_saved_data_are_drawn_again(model, tmp_path):
    curve = model.curve(alpha=ALPHA, ridge=0.1)
    curve.to_dataset().to_netcdf(tmp_path / "curve.nc", engine="scipy")
    again, first = gs.plot(tmp_path / "curve.nc"), curve.plot()
    assert (again.lines[0].get_ydata() == first.lines[0].get_ydata()).all()
    assert again.get_title(loc="left") == first.get_title(loc="left")
    read = gs.Curve.from_json(curve.to_json()).plot()
    assert (read.lines[0].get_ydata() == first.lines[0].get_ydata()).all()
    solution = model.solve(alpha=1, ridge=0.1)
    drawn = gs.plot(solution.to_dataset())
    assert [p.get_width() for p in drawn.patches][:2] == [
        p.get_width() for p in solution.plot().patches
    ][:2]
    networks = model.simulate(30, alpha=[0.5, 1], ridge=0.1, seeds=2, progress=False)
    assert gs.plot(networks).containers
    step = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2)
    risks = gs.plot(step.curve(alpha=ALPHA, ridge=0.1).to_dataset())
    assert any("after the step" in label for label in labels(risks))
    for data, words in (
        (tmp_path / "none.nc", "there is no file"),
        (3, "data must be a dataset or a file, got 3"),
        (curve.to_dataset().drop_attrs(), "data must be what to_dataset"),
    ):
        with pytest.raises(ParameterError, match=words):
            gs.plot(data)


def test_scripts_without_pyplot_open_no_window():
    code = (
        "import sys, giantstep as gs; gs.leaps('x1 + x1*x2').plot(); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
