"""Figures of one gradient step show what their datasets hold."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import giantstep as gs
from giantstep.derivations.one_gradient_step.figures import (
    FiniteSizes,
    fixed_parameters,
    loss_note,
    phase_data,
    plot_optimal,
    plot_phase,
    plot_risk,
    plot_spectra,
    risk_data,
    spectra_data,
)
from giantstep.errors import ParameterError

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def model():
    return gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, noise_variance=0.25)


def _lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_lines_of_the_risk_are_its_data(model):
    data = risk_data(model, "alpha", np.geomspace(0.25, 8, 30), ridge=0.01)
    lines = _lines(plot_risk(data))
    for name, label in (("initial", "random features $W_0$"), ("trained", "after the step")):
        assert (lines[label].get_xdata() == data["alpha"].values).all()
        assert (lines[label].get_ydata() == data[f"risk_{name}"].values).all()
    bound = lines[r"best linear error $\|P_{>1}f_*\|^2$"]
    assert set(bound.get_ydata()) == {model.best_linear_error}
    assert set(lines["$n = N$"].get_xdata()) == {model.beta}


def test_points_are_simulated_means(model):
    sizes = FiniteSizes([0.5, 2], dimension=30, seeds=3, progress=False)
    data = risk_data(model, "beta", [1, 3], ridge=0.1, simulated=sizes)
    # The theory is known where networks are.
    assert data["beta"].values.tolist() == [0.5, 1, 2, 3]
    axes = plot_risk(data)
    drawn = [container.lines[0].get_ydata().tolist() for container in axes.containers]
    for features in ("gaussian", "network"):
        for layer in ("initial", "trained"):
            assert data[f"{features}_risk_{layer}"].values.tolist() in drawn
    again = replace(model, beta=2.0).simulate(
        30, ridge=0.1, seeds=3, features="network", progress=False
    )
    assert float(data["network_risk_trained"][1]) == float(again["risk_trained"].item())


@pytest.mark.parametrize("over", ["step_size", "noise_variance", "ridge", "paper_ridge"])
def test_other_axes(model, over):
    penalty: dict[str, Any] = {} if "ridge" in over else {"ridge": 0.1}
    data = risk_data(model, over, [10, 0, 0.1, 1, 1], **penalty)
    assert data[over].values.tolist() == [0, 0.1, 1, 10]
    axes = plot_risk(data)
    assert axes.get_xscale() == "linear"
    assert np.isfinite(data["risk_trained"]).all()


def test_curves_draw_what_the_functions_draw(model):
    sizes = FiniteSizes([0.5, 2], dimension=30, seeds=2, progress=False)
    data = risk_data(model, "beta", [1, 3], ridge=gs.paper_ridge(0.1), simulated=sizes)
    curve = model.curve(beta=[3, 0.5, 1, 2], ridge=gs.paper_ridge(0.1))
    found, expected = curve.plot(simulation=sizes), plot_risk(data)
    assert found.get_title(loc="left") == expected.get_title(loc="left")
    assert [t.get_text() for t in found.texts] == [t.get_text() for t in expected.texts]
    for one, other in zip(found.containers, expected.containers, strict=True):
        assert (one.lines[0].get_ydata() == other.lines[0].get_ydata()).all()
    assert list(_lines(found)) == list(_lines(expected))
    assert list(_lines(curve.plot("improvement"))) == ["improvement"]
    with pytest.raises(ParameterError, match="FiniteSizes belongs to a curve over one parameter"):
        curve.plot("improvement", simulation=sizes)
    # Read from a file a curve is drawn without what only the model's own class knows.
    assert type(curve).from_json(curve.to_json()).plot().get_title(loc="left")


def test_maps_of_curves_are_phase_diagrams(model):
    steps, alphas = [0.0, 1, 2, 4, 6], [0.5, 1, 2, 4, 8]
    curve = model.curve(step_size=steps, alpha=alphas, ridge=0.1)
    data = phase_data(model, "step_size", steps, "alpha", alphas, ridge=0.1)
    for quantity in (None, "relative_improvement"):
        found, expected = curve.plot(quantity), plot_phase(data, quantity or "improvement")
        for one, other in zip(found.collections, expected.collections, strict=True):
            assert np.array_equal(one.get_array(), other.get_array())
        assert list(_lines(found)) == list(_lines(expected))
        assert found.get_xlabel() == expected.get_xlabel()
    few = model.curve(alpha=alphas, step_size=[1, 2], ridge=0.1)
    assert len(_lines(few.plot("risk_trained"))) == 3


def test_phase_diagram(model):
    steps, alphas = [0, 1, 2, 4, 6], [0.5, 1, 2, 4]
    data = phase_data(model, "step_size", steps, "alpha", alphas, ridge=0.1)
    assert data["improvement"].dims == ("alpha", "step_size")
    here = replace(model, alpha=4.0, step_size=6.0)
    assert float(data["improvement"][-1, -1]) == pytest.approx(
        here.risk(ridge=0.1).improvement, rel=1e-12
    )
    for name, critical in (
        ("weights", here.weight_spike().critical_step_size),
        ("kernel", here.conjugate_kernel().critical_step_size),
    ):
        assert float(data[f"critical_step_size_{name}"].sel(alpha=4)) == critical
    axes = plot_phase(data)
    mesh = axes.collections[0]
    assert (np.ravel(mesh.get_array()) == data["improvement"].values.ravel()).all()
    line = _lines(axes)["outlier of $W_1$ above"]
    assert (line.get_xdata() == data["critical_step_size_weights"].values).all()
    assert (line.get_ydata() == data["alpha"].values).all()


def test_spectra(model):
    large = replace(model, step_size=5.0)
    found: dict[str, Any] = {"weights": large.weight_spike(), "kernel": large.conjugate_kernel()}
    data = spectra_data(found, large.simulate_spectra(30, seeds=2, progress=False).dataset)
    assert float(data["weights_singular_value"]) == found["weights"].singular_value
    grid = data["singular_value"].values
    assert (data["weights_density"].values == found["weights"].density(grid)).all()
    assert np.trapezoid(data["weights_density"], grid) == pytest.approx(1, abs=2e-3)
    assert len(plot_spectra(found)) == 2


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: risk_data(m, "gamma", [1], ridge=1), "no axis"),
        (lambda m: risk_data(m, "alpha", [0, 1], ridge=1), "positive"),
        (lambda m: risk_data(m, "alpha", [math.nan], ridge=1), "alpha"),
        (lambda m: risk_data(m, "alpha", [], ridge=1), "at least one"),
        (lambda m: risk_data(m, "alpha", ["a"], ridge=1), "alpha"),
        (lambda m: risk_data(m, "step_size", [-1], ridge=1), ">= 0"),
        (lambda m: risk_data(m, "alpha", [1]), "give ridge, the penalty"),
        (lambda m: risk_data(m, "ridge", [1], ridge=gs.paper_ridge(1)), "leave out"),
        (lambda m: phase_data(m, "alpha", [1], "alpha", [1], ridge=1), "differ"),
        (lambda m: phase_data(m, "alpha", [1], "ridge", [1], ridge=1), "give one penalty"),
        (lambda m: plot_phase(phase_data(m, "ridge", [1, 2], "beta", [1, 2]), "loss"), "quantity"),
        (lambda m: FiniteSizes([1], features=("ntk",)), "features"),
        *(
            (lambda m, plot=plot: plot(None), "dataset")
            for plot in (plot_risk, plot_phase, plot_optimal)
        ),
        (lambda m: plot_spectra({}), "spectra"),
    ],
)
def test_bad_input(model, ask, message):
    with pytest.raises(ParameterError, match=message):
        ask(model)


def test_subtitle_names_what_is_fixed(model):
    other = replace(model, alpha0=math.inf, loss="full")
    parts = fixed_parameters(other, ("alpha",), ridge=1e-5)
    assert r"\alpha_0 = \infty" in parts
    assert r"\lambda = 10^{-5}" in parts
    assert not any(part.startswith(r"\alpha = ") for part in parts)
    assert loss_note(other).endswith("gradient of the full loss")
