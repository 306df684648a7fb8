"""The figures of the paper at small dimension, and phase diagrams."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import giantstep as gs
from giantstep.derivations.spiked_random_features.paper_figures.numbered import (
    FIGURES,
    paper_figure,
)
from giantstep.derivations.spiked_random_features.phase_diagram import (
    phase_diagram,
    plot_phase_diagram,
)
from giantstep.errors import ParameterError


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=[pytest.mark.slow] * (n not in (1, 5))) for n in sorted(FIGURES)],
)
def test_a_figure_comes_with_its_data(number, tmp_path):
    found = paper_figure(number, dimension=40, seeds=2, progress=False)
    picture, data = found.save(tmp_path / "figure.png")
    assert picture.stat().st_size > 10_000
    stored = xr.load_dataset(data)
    assert set(stored.variables) == set(found.data.variables)
    text = [t.get_text() for axes in found.figure.axes for t in axes.get_legend().get_texts()]
    if number != 8:
        assert any("linear" in label for label in text)
    if number in (1, 2, 4, 5, 6):
        assert any("p = " in label or "limit" in label for label in text)
    if number == 5:
        # At a finite width the mean direction costs something.
        assert (stored["test_error_finite_width"] > stored["test_error"]).all()
    if "simulated_test_error" in stored:
        simulated = stored["simulated_test_error"].to_numpy()
        assert np.nanmin(simulated) > 0


def test_simulated_points_follow_the_theory():
    data = paper_figure(1, dimension=100, seeds=8, progress=False).data
    theory = np.interp(data["cell"], data["kappa"], data["learnt_finite_width"])
    # Cells share their networks, so that their deviations come together: as one they are judged.
    deviation, error = (
        float(np.sqrt(np.mean(np.square(values))))
        for values in (data["simulated"] - theory, data["simulated_standard_error"])
    )
    assert error < 0.015
    assert deviation < 3 * error


def test_phase_diagram_agrees_with_single_points():
    model = gs.SpikedRandomFeatures("erf", "sin", noise_variance=0.1)
    data = phase_diagram(
        model, "alpha", [0.5, 2.0], "step_size", [0.0, 1.0, 3.0], progress=False, ridge=0.2
    )
    assert data["test_error"].dims == ("step_size", "alpha")
    for step in (0.0, 3.0):
        for alpha in (0.5, 2.0):
            one = gs.SpikedRandomFeatures("erf", "sin", step_size=step, noise_variance=0.1)
            wanted = one.solve(alpha=alpha, ridge=0.2).test_error
            assert float(data["test_error"].sel(step_size=step, alpha=alpha)) == pytest.approx(
                wanted, rel=1e-10
            )
    grid = phase_diagram(model, "ridge", [0.1, 1.0], "alpha", [1.0, 2.0, 3.0], progress=False)
    wanted = model.solve(alpha=3.0, ridge=0.1).test_error
    assert float(grid["test_error"].sel(alpha=3, ridge=0.1)) == pytest.approx(wanted, rel=1e-10)
    best = phase_diagram(
        model, "alpha", [1.0, 2.0], "beta", [0.5, 1.0], quantity="optimal_ridge", progress=False
    )
    wanted = model.optimum(over="ridge", alpha=2.0).ridge
    assert float(best["optimal_ridge"].sel(alpha=2, beta=1)) == pytest.approx(wanted, rel=1e-6)
    assert plot_phase_diagram(best).get_title(loc="left")


MODEL = gs.SpikedRandomFeatures("erf", "sin")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: paper_figure(0), "number must be >= 1, got 0"),
        (lambda: paper_figure(9), "must be one of 1"),
        (lambda: paper_figure(2, dimension=50), "multiple of 20"),
        (lambda: phase_diagram(MODEL, "alpha", [1, 2], "alpha", [1, 2]), "must differ"),
        (lambda: phase_diagram(MODEL, "alpha", [1, 2], "gamma", [1, 2]), "no axis"),
        (lambda: phase_diagram(MODEL, "alpha", [2, 1], "beta", [1, 2]), "ascending"),
        (lambda: phase_diagram(MODEL, "alpha", [1, 2], "ridge", [1, 2], quantity="optimal_ridge"),
         "what is optimised"),
    ],
)  # fmt: skip
def test_refusals(ask, words):
    with pytest.raises(ParameterError, match=words):
        ask()
