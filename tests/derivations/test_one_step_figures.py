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
    checked_values,
    fixed_parameters,
    loss_note,
    optimal_data,
    phase_data,
    plot_optimal,
    plot_phase,
    plot_risk,
    plot_spectra,
    risk_data,
    spectra_data,
)
from giantstep.derivations.one_gradient_step.large_steps import plot_large_steps
from giantstep.errors import ParameterError

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def model() -> gs.OneGradientStep:
    return gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, noise_variance=0.25)


def _lines(axes: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in axes.get_lines()}


def test_lines_of_the_risk_are_its_data(model: gs.OneGradientStep) -> None:
    data = risk_data(model, "alpha", np.geomspace(0.25, 8, 30), ridge=0.01)
    lines = _lines(plot_risk(data))
    for name, label in (("initial", "random features $W_0$"), ("trained", "after the step")):
        assert (lines[label].get_xdata() == data["alpha"].values).all()
        assert (lines[label].get_ydata() == data[f"risk_{name}"].values).all()
    bound = lines[r"best linear error $\|P_{>1}f_*\|^2$"]
    assert set(bound.get_ydata()) == {model.best_linear_error}
    assert set(lines["$n = N$"].get_xdata()) == {model.beta}


def test_samples_of_the_step_follow_those_of_the_readout(model: gs.OneGradientStep) -> None:
    data = risk_data(model, "alpha", [1, 4], ridge=gs.paper_ridge(0.05))
    for alpha in (1, 4):
        expected = replace(model, alpha=alpha).risk(ridge=gs.paper_ridge(0.05)).trained
        assert float(data["risk_trained"].sel(alpha=alpha)) == pytest.approx(expected, rel=1e-12)
    fixed = replace(model, alpha0=2.0)
    found = risk_data(fixed, "alpha", [1, 4], ridge=gs.paper_ridge(0.05))
    expected = replace(fixed, alpha=4.0).risk(ridge=gs.paper_ridge(0.05)).trained
    assert float(found["risk_trained"].sel(alpha=4)) == pytest.approx(expected, rel=1e-12)


def test_points_are_simulated_means(model: gs.OneGradientStep) -> None:
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


def test_one_repetition_has_no_error_bars(model: gs.OneGradientStep) -> None:
    sizes = FiniteSizes([1], dimension=30, seeds=1, features=("network",), progress=False)
    axes = plot_risk(risk_data(model, "alpha", [1], ridge=0.1, simulated=sizes))
    assert not any(container.has_yerr for container in axes.containers)


@pytest.mark.parametrize("over", ["step_size", "noise_variance", "ridge", "paper_ridge"])
def test_other_axes(model: gs.OneGradientStep, over: str) -> None:
    penalty: dict[str, Any] = {} if "ridge" in over else {"ridge": 0.1}
    data = risk_data(model, over, [0, 0.1, 1, 10], **penalty)
    axes = plot_risk(data)
    assert axes.get_xscale() == "linear"
    assert np.isfinite(data["risk_trained"]).all()


def test_given_axes_are_used(model: gs.OneGradientStep) -> None:
    figure = plot_risk(risk_data(model, "alpha", [1, 2], ridge=0.1)).figure
    below = figure.add_subplot(2, 1, 2)
    curve = model.curve(alpha=[2, 1], ridge=0.1)
    assert curve.plot(ax=below) is below
    with pytest.raises(ParameterError, match="ax"):
        curve.plot(ax="here")


def test_curves_draw_what_the_functions_draw(model: gs.OneGradientStep) -> None:
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


def test_maps_of_curves_are_phase_diagrams(model: gs.OneGradientStep) -> None:
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


def test_phase_diagram(model: gs.OneGradientStep) -> None:
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


def test_phase_diagram_without_a_step_on_an_axis(model: gs.OneGradientStep) -> None:
    data = phase_data(model, "ridge", [0.01, 0.1, 1], "beta", [0.5, 1, 2])
    assert "critical_step_size_weights" not in data
    for quantity in ("improvement", "relative_improvement", "risk_initial", "risk_trained"):
        axes = plot_phase(data, quantity)
        assert (np.ravel(axes.collections[0].get_array()) == data[quantity].values.ravel()).all()


def test_a_constant_diagram_is_drawn() -> None:
    model = gs.OneGradientStep("He(3, z)", "erf", alpha=2)  # no linear part: no improvement
    steps, alphas = [0, 1, 2, 3, 4], [1, 2, 3, 4, 5]
    axes = model.curve(step_size=steps, alpha=alphas, ridge=0.1).plot()
    axes.figure.canvas.draw()


def test_spectra(model: gs.OneGradientStep) -> None:
    large = replace(model, step_size=5.0)
    found: dict[str, Any] = {"weights": large.weight_spike(), "kernel": large.conjugate_kernel()}
    data = spectra_data(found, large.simulate_spectra(30, seeds=2, progress=False).dataset)
    assert float(data["weights_singular_value"]) == found["weights"].singular_value
    grid = data["singular_value"].values
    assert (data["weights_density"].values == found["weights"].density(grid)).all()
    assert np.trapezoid(data["weights_density"], grid) == pytest.approx(1, abs=2e-3)
    assert len(plot_spectra(found)) == 2
    with pytest.raises(ParameterError, match="spectra"):
        plot_spectra({})


def test_optimal(model: gs.OneGradientStep) -> None:
    data = optimal_data(model, [1, 2], progress=False)
    risks, penalties = plot_optimal(data)
    label = "after the step"
    assert (_lines(risks)[label].get_ydata() == data["risk_trained"].values).all()
    assert (_lines(penalties)[label].get_ydata() == data["ridge_trained"].values).all()


def test_large_steps(model: gs.OneGradientStep) -> None:
    limit = model.large_steps()
    data = limit.to_dataset()
    functions, errors = plot_large_steps(limit)
    drawn = _lines(functions)[r"teacher $\sigma_*(t)$"]
    assert (drawn.get_ydata() == data["teacher"].values).all()
    line = _lines(errors)["$J(h)$"]
    seen = np.isin(data["h"], line.get_xdata())
    # Where they are no worse than no step at all.
    assert seen.sum() > 100 and (line.get_ydata() == data["J"].values[seen]).all()


def test_bad_input(model: gs.OneGradientStep) -> None:
    for over, values, penalty, message in (
        ("gamma", [1], {"ridge": 1}, "no axis"),
        ("alpha", [0, 1], {"ridge": 1}, "positive"),
        ("alpha", [math.nan], {"ridge": 1}, "alpha"),
        ("alpha", [], {"ridge": 1}, "at least one"),
        ("alpha", ["a"], {"ridge": 1}, "alpha"),
        ("step_size", [-1], {"ridge": 1}, ">= 0"),
        ("alpha", [1], {}, "give ridge, the penalty"),
        ("ridge", [1], {"ridge": gs.paper_ridge(1)}, "leave out"),
    ):
        with pytest.raises(ParameterError, match=message):
            risk_data(model, over, values, **penalty)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="differ"):
        phase_data(model, "alpha", [1], "alpha", [1], ridge=1)
    with pytest.raises(ParameterError, match="give one penalty"):
        phase_data(model, "alpha", [1], "ridge", [1], ridge=1)
    with pytest.raises(ParameterError, match="quantity"):
        plot_phase(phase_data(model, "alpha", [1, 2], "beta", [1, 2], ridge=1), "loss")
    with pytest.raises(ParameterError, match="features"):
        FiniteSizes([1], features=("ntk",))
    for function in (plot_risk, plot_phase, plot_optimal):
        with pytest.raises(ParameterError, match="dataset"):
            function(None)  # type: ignore[arg-type]


def test_values_are_sorted_and_different() -> None:
    assert checked_values("alpha", [2, 1, 2]).tolist() == [1, 2]


def test_subtitle_names_what_is_fixed(model: gs.OneGradientStep) -> None:
    other = replace(model, alpha0=math.inf, loss="full")
    parts = fixed_parameters(other, ("alpha",), ridge=1e-5)
    assert r"\alpha_0 = \infty" in parts
    assert r"\lambda = 10^{-5}" in parts
    assert not any(part.startswith(r"\alpha = ") for part in parts)
    assert loss_note(other).endswith("gradient of the full loss")
