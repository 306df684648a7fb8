"""The risk after one gradient step: reference values, independent solves, properties, bad input."""

import math
import runpy

import mpmath
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st

from giantstep import OneGradientStep, paper_ridge
from giantstep.derivations.one_gradient_step import claims_risk
from giantstep.derivations.one_gradient_step.reference import (
    ReferenceCase,
    reference_cases,
)
from giantstep.derivations.one_gradient_step.risk import model_parameters, risk_kernel, solve_points
from giantstep.errors import AssumptionError, ConvergenceError, ParameterError
from giantstep.symbolic.systems import ridge_equivalent

from .one_step_cases import MODEL

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


def test_what_has_no_linear_part_teaches_and_learns_nothing():
    risk = OneGradientStep("z**3 - 3*z", "tanh", alpha=2, beta=1.5, step_size=3).risk(ridge=0.1)
    assert risk.improvement == 0 and risk.trained == risk.initial and risk.s == math.inf
    assert risk.bias_trained == pytest.approx(
        OneGradientStep("z", "tanh", alpha=2).teacher_moments.square
    )
    risk = OneGradientStep("tanh", "z**2 - 1", alpha=2, beta=1.5, step_size=3).risk(ridge=0.1)
    assert risk.improvement == 0 and risk.bias_initial == pytest.approx(2, rel=1e-14)


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


# ---------------------------------------------------------------------- evidence that can fail


def test_a_wrong_reference_value_is_found(monkeypatch):
    first, *others = reference_cases()
    wrong = {**first.values, "trained": "0.2826117955031129"}
    changed = ReferenceCase(first.name, first.model, first.paper_ridge, wrong)
    monkeypatch.setattr(claims_risk, "reference_cases", lambda: (changed, *others))
    assert not claims_risk.reference_values().passed


@pytest.mark.slow
def test_a_wrong_closed_form_fails_algebra(monkeypatch):
    original = ridge_equivalent.ScalarForm.bias
    monkeypatch.setattr(
        ridge_equivalent.ScalarForm,
        "bias",
        lambda self, spike=ridge_equivalent.NO_SPIKE: original(self, spike) / self.s,
    )
    found = claims_risk.algebra()
    assert not found.passed and "squared bias" in found.summary
    assert not claims_risk.properties().passed


def test_a_wrong_theory_is_found_by_simulation(monkeypatch):
    # Networks with noisier labels than the theory that they are held against.
    original = claims_risk.model_of

    def noisy(given):
        model = original({**given, "noise_variance": "1.0"})
        silent = original(given)

        class Disguised:
            def simulate(self, *args, **options):
                found = model.simulate(*args, **options)
                right = silent.risk(ridge=options["ridge"]).initial
                return found.assign(risk_initial_theory=found.risk_initial_theory * 0 + right)

        return Disguised()

    monkeypatch.setattr(claims_risk, "model_of", noisy)
    assert not claims_risk.networks("A", 80, 16, "gaussian").passed


# ---------------------------------------------------------------------- every corner


def random_rows(kernel, n, seed=3):
    """Parameters over many orders of magnitude, with n = N, n = d and N = d and nearly so."""
    rng = np.random.default_rng(seed)
    slope = rng.uniform(0.01, 1, n)
    floor = slope * 10 ** rng.uniform(-6, 6, n)
    floor[: n // 50] = 0
    slope[n // 50 : n // 25] = 0
    alpha, beta = 10 ** rng.uniform(-3, 3, n), 10 ** rng.uniform(-3, 3, n)
    kind = rng.integers(0, 9, n)
    near = 1 + 10 ** rng.uniform(-12, -1, n) * rng.choice([-1, 1], n)
    beta = np.where(kind == 0, alpha, beta)
    beta = np.where(kind == 1, alpha * (1 + 1e-15 * rng.integers(-3, 4, n)), beta)
    beta = np.where(kind == 2, alpha * near, beta)
    alpha = np.where(kind == 3, 1.0, alpha)
    alpha = np.where(kind == 4, near, alpha)
    beta = np.where(kind == 5, near, beta)
    ridge = 10 ** rng.uniform(-10, 6, n)
    values = {
        "alpha": alpha,
        "alpha0": np.where(rng.random(n) < 0.1, math.inf, alpha),
        "beta": beta,
        # Half of them in either convention.
        "ridge": np.where(rng.random(n) < 0.5, ridge, ridge * alpha / beta),
        "step_size": 10 ** rng.uniform(-3, 3, n) * (rng.random(n) > 0.05),
        "noise_variance": 10 ** rng.uniform(-6, 3, n) * (rng.random(n) > 0.2),
        "student_linear": np.sqrt(slope),
        "student_residual": floor,
        "teacher_linear": rng.normal(size=n),
        "teacher_residual": 10 ** rng.uniform(-6, 1, n) * (rng.random(n) > 0.2),
    }
    return np.stack([values[name] for name in kernel.parameters], axis=1)


@pytest.mark.filterwarnings("error")
def test_no_parameters_are_too_much():
    kernel = risk_kernel(MODEL)
    rows = random_rows(kernel, 30_000)
    batch = kernel.job(None, None, 1e-11, len(rows))(rows)
    assert batch.converged.all()
    assert batch.residual.max() <= 1e-12
    assert batch.iterations.max() <= 20
    values = batch.values
    for name, column in values.items():
        assert (column >= 0).all(), name
    floor = rows[:, kernel.parameters.index("teacher_residual")]
    assert (values["bias_trained"] >= floor).all()
    assert (values["risk_trained"] >= values["bias_trained"]).all()
    assert (values["ridge_derivative"] <= 1 + 1e-14).all()
    gap = values["risk_initial"] - values["risk_trained"] - values["improvement"]
    assert (np.abs(gap) <= 1e-13 * values["risk_initial"]).all()
    reduced = values["training_error_initial"] >= values["training_error_trained"] * (1 - 1e-14)
    assert reduced.all()


def test_error_estimates_hold_in_every_corner():
    """Against 30 digits at the same binary numbers."""
    import sympy as sp

    kernel = risk_kernel(MODEL)
    rows = random_rows(kernel, 1000, seed=8)
    batch = kernel.job(None, None, 1e-11, len(rows))(rows)
    hardest = np.argsort(-batch.iterations)[:15]
    for k in {*hardest.tolist(), *range(0, 1000, 40)}:
        # A rational number is taken as it is, a float as the decimal that it prints as.
        exact = {
            name: x if math.isinf(x) else sp.Rational(x)
            for name, x in zip(kernel.parameters, rows[k].tolist(), strict=True)
        }
        solution = kernel.solve(digits=30, **exact)
        for name in kernel.outputs:
            error = abs(float(solution[name] - batch.values[name][k]))
            assert error <= batch.errors[name][k] + 1e-300, name


def test_the_root_is_the_admissible_one():
    """Of the quartic in s the solution is the root above the lower bound, at 400 random points."""
    from giantstep.symbolic.systems.ridge_equivalent import ScalarForm

    kernel = risk_kernel(MODEL)
    rows = random_rows(kernel, 1000, seed=1)
    columns = dict(zip(kernel.parameters, rows.T, strict=True))
    batch = kernel.job(None, None, 1e-11, len(rows))(rows)
    usable = np.flatnonzero(columns["student_linear"] > 0)[:400]
    for k in usable:
        slope = columns["student_linear"][k] ** 2
        alpha, beta = mpmath.mpf(columns["alpha"][k]), mpmath.mpf(columns["beta"][k])
        s = 1 / mpmath.mpf(batch.values["inverse_s"][k])
        form = ScalarForm(s, beta, alpha, columns["student_residual"][k] / slope)
        at_zero, at_full = (complex(x).real for x in form.lower_bounds())
        assert s >= max(at_zero, at_full) * (1 - 1e-12)


@settings(max_examples=25, deadline=None)
@given(
    alpha=st.floats(0.05, 50),
    beta=st.floats(0.05, 50),
    ridge=st.floats(1e-8, 1e3),
    step=st.floats(0, 30),
    noise=st.floats(0, 5),
    power=st.integers(-20, 20),
)
def test_invariances(alpha, beta, ridge, step, noise, power):
    """Units of features and of labels play no part."""
    kernel = risk_kernel(MODEL)
    scale = 2.0**power
    given = model_parameters(MODEL) | {
        "alpha": alpha, "beta": beta, "alpha0": alpha, "step_size": step, "noise_variance": noise,
    }  # fmt: skip
    plain = kernel.solve(ridge=ridge, **given)
    features = kernel.solve(
        ridge=ridge * scale**2,
        **given
        | {
            "student_linear": given["student_linear"] * scale,
            "student_residual": given["student_residual"] * scale**2,
            "step_size": step / scale,
        },
    )
    labels = kernel.solve(
        ridge=ridge,
        **given
        | {
            "teacher_linear": given["teacher_linear"] * scale,
            "teacher_residual": given["teacher_residual"] * scale**2,
            "noise_variance": noise * scale**2,
            "step_size": step / scale,
        },
    )
    flipped = kernel.solve(ridge=ridge, **given | {"student_linear": -given["student_linear"]})
    for name in ("risk_trained", "risk_initial", "training_error_trained", "objective_initial"):
        assert features[name] == pytest.approx(plain[name], rel=1e-12)
        assert labels[name] == pytest.approx(plain[name] * scale**2, rel=1e-12)
        assert flipped[name] == plain[name]
    assert plain.improvement >= 0
    assert plain.bias_trained >= given["teacher_residual"]
    larger = kernel.solve(ridge=ridge, **given | {"step_size": 1.5 * step + 0.1})
    assert larger.improvement >= plain.improvement * (1 - 1e-13)


def test_objective_is_training_error_and_penalty():
    """Its derivative by λ_B is |a|²/N, by the envelope theorem."""
    step = 1e-5
    low, here, high = (MODEL.risk(ridge=paper_ridge(x)) for x in (0.05 - step, 0.05, 0.05 + step))
    norm = (high.objective_trained - low.objective_trained) / (2 * step)
    assert here.objective_trained == pytest.approx(
        here.training_error_trained + 0.05 * norm, rel=1e-8
    )


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "ridge must be given"),
        ({"ridge": 1, "paper_ridge": 1}, "give the penalty once"),
        ({"ridge": math.inf}, "ridge must be >= 0 and finite"),
        ({"ridge": True}, "ridge must be a number"),
        ({"ridge": [0.1]}, "ridge must be a number"),
        ({"ridge": 10**400}, "ridge is too large for a float"),
        ({"ridge": 0.1, "digits": 0}, "digits"),
        ({"ridge": 0.1, "digits": 1.5}, "digits"),
        ({"ridge": 0.1, "digits": 10**9}, "digits"),
    ],
)
def test_bad_risk(arguments, message):
    with pytest.raises(ParameterError, match=message):
        MODEL.risk(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "ridge must be given"),
        ({"ridge": []}, "ridge must hold at least one"),
        ({"ridge": [0.1, -1]}, "ridge must be >= 0"),
        ({"ridge": [[0.1]]}, "one-dimensional"),
        ({"ridge": 0.1, "alpha": [1, 0]}, "alpha must be positive"),
        ({"ridge": 0.1, "alpha": "x"}, "alpha must be a number"),
        ({"ridge": 0.1, "beta": [math.nan]}, "beta must be positive"),
        ({"ridge": 0.1, "step_size": -1}, "step_size must be >= 0"),
        ({"ridge": 0.1, "noise_variance": [math.inf]}, "noise_variance must be >= 0"),
        ({"ridge": paper_ridge(1e-300), "alpha": 1e-30}, "range of floats"),
        (
            {"ridge": np.ones(1000), "alpha": np.ones(1000), "step_size": np.ones(1000)},
            "product of ridge, alpha, step_size has 1e\\+09 points; at most 1e\\+08",
        ),
    ],
)
def test_bad_curve(arguments, message):
    with pytest.raises(ParameterError, match=message):
        MODEL.curve(**arguments).to_dataset()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("digits", [None, 20])
@pytest.mark.parametrize(
    "changes",
    [{"alpha": 1e300}, {"beta": 1e-300}, {"step_size": 1e200}, {"noise_variance": 1e308},
     {"alpha0": 1e-300}, {"loss": "full", "step_size": 8e307}],
)  # fmt: skip
def test_beyond_the_range_of_floats(changes, digits):
    model = OneGradientStep("erf", "erf", **{"alpha": 2, "beta": 1.5, "step_size": 2} | changes)
    with pytest.raises(ConvergenceError, match="overflow or underflow"):
        model.risk(ridge=1, digits=digits)
    with pytest.raises(ConvergenceError, match="overflow or underflow"):
        model.curve(ridge=[1, 2]).to_dataset()


def test_the_peak_inside_a_grid_is_named():
    samples = np.linspace(0.5, 2.5, 5)
    with pytest.raises(AssumptionError, match=r"alpha = 1\.5, beta = 1\.5: .* positive ridge"):
        MODEL.curve(ridge=[0, 1], alpha=samples).to_dataset()
    assert np.isfinite(MODEL.curve(ridge=[1e-10, 1], alpha=samples).to_dataset().risk_trained).all()


@pytest.mark.filterwarnings("error")
def test_thirty_orders_of_magnitude_are_not_too_much():
    kernel = risk_kernel(MODEL)
    rng = np.random.default_rng(2)
    rows = np.tile(
        [model_parameters(MODEL).get(name, 1.0) for name in kernel.parameters], (2000, 1)
    )
    for name in ("alpha", "alpha0", "beta", "ridge", "step_size", "noise_variance"):
        rows[:, kernel.parameters.index(name)] = 10 ** rng.uniform(-30, 30, len(rows))
    assert kernel.job(None, None, 1e-11, len(rows))(rows).converged.all()


def test_a_jumping_student_takes_no_step():
    plain = OneGradientStep("sign", "erf", alpha=2, beta=1.5, step_size=0)
    assert plain.risk(ridge=0.1).improvement == 0
    with pytest.raises(AssumptionError, match="jumps"):
        plain.curve(ridge=0.1, step_size=[0, 1]).to_dataset()


def test_the_kernel_refuses_a_vanishing_penalty():
    with pytest.raises(ParameterError, match="ridge must be positive"):
        MODEL.kernel().solve(ridge=0)
