"""Figures: what is drawn, and that files appear whole."""

import sys

import numpy as np
import pytest
import xarray as xr

import giantstep as gs
from giantstep.derivations.curve_figure import plot_curve
from giantstep.derivations.figures import save_figure, svg_text
from giantstep.errors import MissingDependencyError, ParameterError


@pytest.fixture(scope="module")
def model():
    return gs.SpikedRandomFeatures("tanh", "sin", alpha0=5)


@pytest.fixture(scope="module")
def curve(model):
    return model.curve(alpha=[0.5, 1, 2], ridge=0.1).to_dataset()


@pytest.fixture(scope="module")
def simulation(model):
    return model.simulate(40, alpha=[0.5, 1], ridge=0.1, seeds=2, progress=False)


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_theory_simulation_and_best_linear_predictor_are_drawn(model, curve, simulation):
    axes = plot_curve(curve, simulation=simulation)
    theory, *_ = axes.get_lines()
    np.testing.assert_array_equal(theory.get_xdata(), [0.5, 1, 2])
    np.testing.assert_array_equal(theory.get_ydata(), curve["test_error"])
    [bars] = axes.containers
    np.testing.assert_array_equal(bars.lines[0].get_ydata(), simulation["test_error_mean"])
    dashed = [line for line in axes.get_lines() if line.get_label() == "best linear predictor"]
    assert dashed[0].get_ydata()[0] == curve.attrs["best_linear_error"]
    assert dashed[0].is_dashed()
    assert labels(axes) == [
        r"theory, $d\to\infty$",
        r"simulation, $d = 40$, 2 networks ($\pm$ s.e.)",
        "best linear predictor",
    ]
    assert axes.get_yscale() == "linear"
    wide = curve.copy(deep=True)
    wide["test_error"][0] = 100 * wide["test_error"][2]
    assert plot_curve(wide).get_yscale() == "log"
    assert r"\alpha_0 = 5" in "".join(text.get_text() for text in axes.texts)


def test_expression_with_a_dollar_sign_is_no_mathematics(curve):
    named = curve.assign_attrs(student="$z", teacher="x" * 80)
    axes = plot_curve(named)
    assert r"\$z" in axes.get_title(loc="left")
    assert len(axes.get_title(loc="left")) < 80
    svg_text(axes.figure)


def test_model_without_a_step_shows_its_spike(tmp_path):
    model = gs.SpikedRandomFeatures.from_parameters(
        "relu", "sin", spike_strength=0.5, bulk_variance=1.25, alignment=0.5
    )
    axes = model.curve(alpha=[1, 2], ridge=1e-3).plot()
    shown = axes.texts[0].get_text()
    assert "r = 0.5" in shown and r"\gamma = 0.5" in shown and r"\lambda = 0.001" in shown


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_files_appear_whole(curve, tmp_path, suffix):
    path = save_figure(plot_curve(curve).figure, tmp_path / f"curve.{suffix}")
    start = path.read_bytes()[:8]
    assert start.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix])
    assert [p.name for p in tmp_path.iterdir()] == [f"curve.{suffix}"]


def test_same_figure_same_file(curve):
    first, second = (svg_text(plot_curve(curve).figure) for _ in range(2))
    assert first == second


def test_missing_matplotlib_says_what_to_install(curve, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "giantstep\[plot\]"'):
        plot_curve(curve)


# Every network has a test error of its own: a simulation is no curve.
NETWORKS = xr.Dataset({"test_error": (("seed", "alpha"), [[1.0]])}, {"alpha": [1.0]})


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda c: save_figure(plot_curve(c).figure, "c.bmp"),
         r"written as \.png, \.pdf or \.svg, not 'c.bmp'"),
        (lambda c: plot_curve(xr.Dataset()), "no output named 'test_error'; there are: none"),
        (lambda c: plot_curve(c, simulation=c), "simulation must be a dataset as returned by"),
        (lambda c: plot_curve(NETWORKS), "has components or networks of its own"),
        (lambda c: plot_curve(c, ax=3), "ax must be axes of matplotlib, got 3"),
    ],
)  # fmt: skip
def test_refusals(curve, ask, words):
    with pytest.raises(ParameterError, match=words):
        ask(curve)
