"""The risk after one gradient step: reference values, independent solves, properties, bad input."""

import math
import runpy

import numpy as np
import pytest
import xarray as xr

from giantstep import OneGradientStep, paper_ridge
from giantstep.derivations.one_gradient_step.risk import model_parameters, risk_kernel, solve_points
from giantstep.errors import AssumptionError, ParameterError

from .one_step_cases import MODEL

# ---------------------------------------------------------------------- reference values


def test_many_samples():
    """At n → ∞ the effective ridge is the penalty itself and nothing is lost to variance."""
    model = OneGradientStep("erf", "erf", alpha=1e9, beta=1.5, step_size=2, alpha0=math.inf)
    risk = model.risk(ridge=paper_ridge(0.05))
    assert risk.effective_ridge == pytest.approx(0.05, rel=1e-7)
    assert risk.ridge_derivative == pytest.approx(1, abs=1e-7)
    assert risk.trained == pytest.approx(risk.bias_trained, rel=1e-6)


# ---------------------------------------------------------------------- an independent solve


# ---------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("student", "alpha", "beta"),
    [("erf", 2, 1.5), ("erf", 1, 1.5), ("erf", 0.2, 0.5), ("z", 3, 1.5), ("z", 1.2, 1.5),
     ("z", 0.5, 1.5), ("z", 0.7, 0.5), ("z", 0.3, 0.5), ("z", 2, 1), ("z**3 - 3*z", 2, 1.5),
     ("z**3 - 3*z", 1, 1.5)],
)  # fmt: skip
def test_ridgeless_is_the_limit(student, alpha, beta):
    model = OneGradientStep(
        student, "tanh", alpha=alpha, beta=beta, step_size=2, noise_variance=0.1
    )
    limit, near = model.ridgeless(), model.risk(ridge=1e-13)
    assert limit == model.risk(ridge=0)
    # Corrections are linear in the penalty, but for a linear student with N = d.
    size = 1e-6 if (student, beta) == ("z", 1) else 1e-9
    for name in ("initial", "trained", "improvement", "bias_trained", "variance_initial",
                 "ridge_derivative"):  # fmt: skip
        assert getattr(limit, name) == pytest.approx(getattr(near, name), rel=size, abs=size)
    assert limit.training_error_trained == pytest.approx(near.training_error_trained, abs=size)
    precise = model.ridgeless(digits=20)
    assert limit.trained == pytest.approx(float(precise.trained), rel=1e-13)


@pytest.mark.parametrize(
    ("student", "alpha", "beta"), [("erf", 2, 2), ("z", 1, 2), ("z", 0.5, 0.5)]
)
def test_interpolation_peak(student, alpha, beta):
    model = OneGradientStep(student, "tanh", alpha=alpha, beta=beta)
    with pytest.raises(AssumptionError, match="interpolation peak"):
        model.ridgeless()
    with pytest.raises(AssumptionError, match="interpolation peak"):
        model.curve(ridge=[0.1, 0]).to_dataset()
    assert model.risk(ridge=1e-10).trained > 1e2 * model.risk(ridge=1).trained


def test_a_student_without_a_linear_part_learns_nothing():
    risk = OneGradientStep("z**3 - 3*z", "tanh", alpha=2, beta=1.5, step_size=3).risk(ridge=0.1)
    assert risk.improvement == 0
    assert risk.trained == risk.initial
    assert risk.bias_trained == pytest.approx(
        OneGradientStep("z", "tanh", alpha=2).teacher_moments.square
    )
    assert risk.s == math.inf


def test_a_teacher_without_a_linear_part():
    risk = OneGradientStep("tanh", "z**2 - 1", alpha=2, beta=1.5, step_size=3).risk(ridge=0.1)
    assert risk.improvement == 0
    assert risk.bias_initial == pytest.approx(2, rel=1e-14)


def test_both_losses():
    full = OneGradientStep(
        "erf", "erf", alpha=2, beta=1.5, step_size=1, noise_variance=0.25, loss="full"
    )
    assert full.risk(ridge=0.1).trained == MODEL.risk(ridge=0.1).trained
    curve = full.curve(ridge=0.1, step_size=[0.5, 1.0]).to_dataset()
    assert float(curve.risk_trained[1]) == MODEL.risk(ridge=0.1).trained


def test_the_population_gradient():
    exact = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, alpha0=math.inf)
    near = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, alpha0=1e12)
    assert exact.risk(ridge=0.1).trained == pytest.approx(near.risk(ridge=0.1).trained, rel=1e-10)
    assert exact.risk(ridge=0.1).trained < MODEL.risk(ridge=0.1).trained
    digits = exact.risk(ridge=0.1, digits=20)
    assert float(digits.trained) == pytest.approx(exact.risk(ridge=0.1).trained, rel=1e-14)
    solved = exact.kernel().solve(ridge=0.1, alpha0=math.inf, digits=20)
    assert solved.risk_trained == digits.trained


# ---------------------------------------------------------------------- results


def test_curve():
    curve = MODEL.curve(
        ridge=paper_ridge([0, 1e-10, 0.05]), alpha=[0.5, 2, 4], step_size=2, noise_variance=0.25
    ).to_dataset()
    assert curve.sizes == {"paper_ridge": 3, "alpha": 3}
    for k, penalty in enumerate((0, 1e-10, 0.05)):
        for j, alpha in enumerate((0.5, 2, 4)):
            model = OneGradientStep(
                "erf", "erf", alpha=alpha, beta=1.5, step_size=2, noise_variance=0.25
            )
            risk = model.risk(ridge=paper_ridge(penalty))
            here = curve.isel(paper_ridge=k, alpha=j)
            assert float(here.risk_trained) == pytest.approx(risk.trained, rel=1e-13)
            assert float(here.improvement) == pytest.approx(risk.improvement, rel=1e-13)
            assert float(here.objective_initial) == pytest.approx(risk.objective_initial, abs=1e-15)
    assert float(curve.residual.max()) <= 1e-12


def test_curve_without_arrays_and_with_all_of_them(tmp_path):
    point = MODEL.curve(ridge=0.1).to_dataset()
    assert point.sizes == {}
    assert float(point.risk_trained) == pytest.approx(MODEL.risk(ridge=0.1).trained, rel=1e-14)
    grid = MODEL.curve(
        ridge=[0.1, 1], alpha=[1, 2, 3], beta=(0.5, 1.5), step_size=np.arange(4),
        noise_variance=[0, 1],
    ).to_dataset()  # fmt: skip
    assert grid.risk_trained.shape == (2, 3, 2, 4, 2)
    assert float(grid.improvement.isel(step_size=0).max()) == 0
    grid.to_netcdf(tmp_path / "curve.nc")
    with xr.open_dataset(tmp_path / "curve.nc") as read:
        xr.testing.assert_identical(read.load(), grid)


def test_points_of_all_limits_at_once():
    """With and without penalty, few and many samples: each point goes to its own equations."""
    setting = {"beta": 1.5, "step_size": 2, "noise_variance": 0.1}
    ridges, samples = np.array([0, 0.3, 0, 0, 1e-9]), np.array([0.5, 1.0, 3.0, 1.2, 1.5])
    for student in ("erf", "z"):
        model = OneGradientStep(student, "tanh", alpha=1, **setting)
        found = solve_points(model, {"ridge": ridges, "alpha": samples})
        for k, (ridge, alpha) in enumerate(zip(ridges.tolist(), samples.tolist(), strict=True)):
            one = OneGradientStep(student, "tanh", alpha=alpha, **setting).risk(ridge=ridge)
            for name in ("risk_trained", "improvement", "objective_initial"):
                expected = getattr(one, name.removeprefix("risk_"))
                assert found[name][k] == pytest.approx(expected, rel=1e-13, abs=1e-17)


def test_samples_of_the_step_follow_or_stay():
    fixed = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, alpha0=2)
    tied = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2)
    for model, alpha0 in ((fixed, 2.0), (tied, 4.0)):
        curve = model.curve(ridge=0.1, alpha=[2, 4]).to_dataset()
        there = OneGradientStep("erf", "erf", alpha=4, beta=1.5, step_size=2, alpha0=alpha0)
        assert float(curve.risk_trained[1]) == there.risk(ridge=0.1).trained
        assert (
            model.kernel().solve(ridge=0.1, alpha=4).risk_trained == there.risk(ridge=0.1).trained
        )


def test_kernel_derivatives_and_files(tmp_path):
    kernel = MODEL.kernel()
    step = 1e-6
    slope = (MODEL.risk(ridge=0.1 + step).trained - MODEL.risk(ridge=0.1 - step).trained) / (
        2 * step
    )
    found = kernel.sensitivities(ridge=0.1, wrt="ridge")
    assert found["risk_trained", "ridge"] == pytest.approx(slope, rel=1e-7)
    (path,) = kernel.write(tmp_path / "risk.py", "python")
    written = runpy.run_path(str(path))
    point = model_parameters(MODEL) | {"ridge": 0.1}
    assert written["solve_point"](point)["risk_trained"][0] == MODEL.risk(ridge=0.1).trained
    # Files take finite numbers; at this one no digit differs from the population gradient.
    with pytest.raises(ValueError, match="alpha0 must be a finite positive number"):
        written["solve_point"](point | {"alpha0": math.inf})
    limit = written["solve_point"](point | {"alpha0": 1e300})
    assert limit["risk_trained"][0] == kernel.solve(ridge=0.1, alpha0=math.inf).risk_trained
    sweep = kernel.curve(ridge=[0.1, 0.2], alpha0=[1, math.inf], progress=False).to_dataset()
    assert float(sweep.risk_trained[0, 1]) == pytest.approx(limit["risk_trained"][0], rel=1e-14)
    sweep.to_netcdf(tmp_path / "sweep.nc")
    with xr.open_dataset(tmp_path / "sweep.nc") as read:
        xr.testing.assert_identical(read.load(), sweep)


@pytest.mark.slow
def test_derivatives_at_the_population_gradient():
    """There is none by the samples of the step; the others do not need it."""
    model = OneGradientStep("z", "tanh", alpha=3, beta=1.5, step_size=2, alpha0=math.inf)
    kernel = risk_kernel(model, "least squares")
    found = kernel.sensitivities()
    assert "inf" in found.excluded["alpha0"]
    assert ("risk_trained", "alpha0") not in found.derivatives
    for name, value in model_parameters(model).items():
        if name not in ("alpha0", "noise_variance", "student_residual"):
            step = 1e-4 * value
            low, high = (kernel.solve(**{name: value + k * step}) for k in (-1, 1))
            slope = (high.risk_trained - low.risk_trained) / (2 * step)
            assert found["risk_trained", name] == pytest.approx(slope, rel=1e-6, abs=1e-9), name
    with pytest.raises(ParameterError, match=r"alpha0 is inf, .* leave it out of wrt"):
        kernel.sensitivities(wrt=["alpha0", "beta"])
