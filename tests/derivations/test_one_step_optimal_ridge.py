"""The best penalty and the peak at n = N: reference values, both ends, scans of the risk."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import sympy as sp

from giantstep import OneGradientStep
from giantstep.derivations.one_gradient_step import symbols
from giantstep.derivations.one_gradient_step.optimal_ridge import (
    INFINITE,
    INTERIOR,
    VANISHING,
    RidgeLandscape,
    StationaryPoint,
    _best,
    amplitudes,
    exact_parameters,
)
from giantstep.derivations.one_gradient_step.reference import model_of, reference_document
from giantstep.derivations.one_gradient_step.risk import solve_points
from giantstep.errors import AssumptionError, ParameterError

REFERENCE = reference_document()


# ------------------------------------------------------------------ reference values


def test_what_the_optimum_rests_on():
    model = model_of(REFERENCE["optimal_ridge"][1]["model"])
    assert "theorem" in model.optimum(over="ridge").rests_on
    assert "31 digits" in model.optimum(over="ridge").rests_on
    assert "45 digits" in model.optimum(over="ridge", digits=30).rests_on
    assert "random features" in model.optimum(over="ridge", trained=False).rests_on
    tilted = OneGradientStep("softplus", "erf", 2, centre=True).optimum(over="ridge")
    assert "outside the theorem" in tilted.rests_on
    flat = OneGradientStep("He(3, z)", "erf", 2).optimum(over="ridge")
    assert "mu_1 = 0" in flat.rests_on and "root" not in flat.rests_on


def test_before_the_step_is_a_step_of_zero():
    model = model_of(REFERENCE["optimal_ridge"][1]["model"])
    before = model.optimum(over="ridge", trained=False)
    entry = REFERENCE["optimal_ridge"][0]
    assert before.paper_ridge == pytest.approx(float(entry["paper_ridge"]), rel=1e-14)
    assert before.risk == pytest.approx(float(entry["risk"]), rel=1e-14)


def test_digits_agree_with_each_other_and_with_the_risk():
    model = OneGradientStep("softplus", "relu", 0.7, 1.9, 3, 0.2, centre=True, loss="full")
    few, many = model.optimum(over="ridge", digits=20), model.optimum(over="ridge", digits=45)
    assert abs(few.ridge / many.ridge - 1) < 1e-20
    # λ = (α/β) λ_B, the ratio no float.
    assert abs(many.ridge * 19 / (many.paper_ridge * 7) - 1) < 1e-44
    risk = model.risk(ridge=float(many.ridge))
    assert risk.trained == pytest.approx(float(many.risk), rel=1e-13)
    assert risk.effective_ridge == pytest.approx(float(many.effective_ridge), rel=1e-12)


def test_curvature_is_that_of_the_risk():
    model = OneGradientStep("tanh", "erf", 2, 1.5, 2, 0.25)
    best = model.optimum(over="ridge", digits=20)
    h = 1e-4 * float(best.ridge)
    left, middle, right = (
        float(model.risk(ridge=float(best.ridge) + k * h, digits=30).trained - best.risk)
        for k in (-1, 0, 1)
    )
    assert (left - 2 * middle + right) / h**2 == pytest.approx(float(best.curvature), rel=1e-3)


# ------------------------------------------------------------------ any parameters


def test_no_penalty_of_a_scan_is_better():
    """Six orders of magnitude of every parameter; a scan over 24 decades of penalties."""
    rng = np.random.default_rng(5)
    penalties = np.logspace(-12, 12, 97)
    kinds = []
    for _ in range(25):
        student = rng.choice(["erf", "tanh", "z", "z + He(3, z)*100", "z + He(3, z)/1000"])
        teacher = rng.choice(["erf", "z", "relu", "He(3, z)"])
        alpha, beta, step = 10 ** rng.uniform(-3, 3, 3)
        noise = float(rng.choice([0.0, 1e-6, 0.3, 30.0]))
        model = OneGradientStep(str(student), str(teacher), alpha, beta, step, noise, centre=True)
        best = model.optimum(over="ridge")
        scan = solve_points(model, {"ridge": penalties})["risk_trained"]
        assert best.risk <= scan.min() * (1 + 1e-10), model
        assert best.risk <= min(best.vanishing, best.infinite) * (1 + 1e-12)
        # Not proved; no parameters are known with two.
        assert best.other_minima == ()
        kinds.append(best.kind)
        if best.kind == INTERIOR and 1e-11 < best.ridge < 1e11:
            assert best.curvature > 0
            assert model.risk(ridge=best.ridge).trained == pytest.approx(best.risk, rel=1e-9)
            if alpha > beta:
                assert best.ridge > 0
    assert kinds.count(INTERIOR) > 10


@pytest.mark.parametrize(("vanishing", "kind"), [(5.0, INTERIOR), (0.5, VANISHING)])
def test_the_lowest_of_several_minima(vanishing, kind):
    ctx = mpmath.mp.clone()
    points = tuple(
        StationaryPoint(ctx.mpf(3), ctx.mpf(ridge), ctx.mpf(ridge), ctx.mpf(risk), curvature, 0.0)
        for ridge, risk, curvature in ((1, 2, 1), (2, 3, -1), (3, 1, 1), (4, 4, -1), (5, 3, 1))
    )
    landscape = RidgeLandscape(points, ctx.mpf(vanishing), ctx.mpf(6))
    best = _best(OneGradientStep("erf", "erf", 2, 1), landscape, True, None)
    assert best.kind == kind
    if kind == INTERIOR:
        assert (best.paper_ridge, best.ridge, best.risk) == (3, 6, 1)
        assert best.other_minima == (2, 10) and "other local minima" in str(best)
    else:
        assert best.ridge == 0 and best.risk == 0.5 and best.other_minima == (2, 6, 10)


@pytest.mark.parametrize(
    ("model", "kind", "risk"),
    [
        # A linear student that sees a linear teacher without noise.
        (OneGradientStep("z", "z", 3, 2, 1), VANISHING, 0.0),
        (OneGradientStep("z", "z", 2, 2, 1), VANISHING, 0.0),
        # n < N without noise: every penalty is too much.
        (OneGradientStep("erf", "z", 1.2, 8.0, 2.0), VANISHING, None),
        # Nothing to learn: the error of the zero function.
        (OneGradientStep("erf", "He(3, z)", 2, 1), INFINITE, 6.0),
        (OneGradientStep("He(3, z)", "z", 2, 1), INFINITE, 1.0),
        (OneGradientStep("He(3, z)", "z", 2, 2), INFINITE, 1.0),
    ],
)
@pytest.mark.parametrize("digits", [None, 25])
def test_optimum_at_an_end(model, kind, risk, digits):
    best = model.optimum(over="ridge", digits=digits)
    assert best.kind == kind and not best.is_interior
    assert best.ridge == (0 if kind == VANISHING else math.inf)
    assert math.isnan(best.curvature) and best.other_minima == ()
    if risk is not None:
        assert float(best.risk) == pytest.approx(risk, rel=1e-12, abs=1e-40)
    near = model.risk(ridge=1e-9 if kind == VANISHING else 1e9).trained
    assert float(best.risk) == pytest.approx(near, rel=1e-6, abs=1e-6)


def test_population_step_and_longer_steps():
    # The risk at the best penalty falls with the step, as the improvement grows at each.
    risks = [
        OneGradientStep("erf", "erf", 2, 1.5, eta, 0.25, alpha0=math.inf).optimum(over="ridge").risk
        for eta in (0, 1, 3, 9, 27)
    ]
    assert risks == sorted(risks, reverse=True) and risks[0] > risks[-1]


def test_curve():
    model = OneGradientStep("erf", "erf", 2, 1.5, 2, 0.25)
    curve = model.optimum(over="ridge", alpha=[0.5, 1.5, 2.0], progress=False)
    assert dict(curve.sizes) == {"alpha": 3}
    assert float(curve.paper_ridge_trained[2]) == pytest.approx(0.272826395555732, rel=1e-14)
    assert (curve.risk_trained < curve.risk_initial).all()
    one = model.optimum(over="ridge", alpha=0.5)
    assert one.alpha == 0.5 and float(curve.risk_trained[0]) == one.risk


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("digits", x) for x in (0, 2.5)),
        *(("alpha", x) for x in (0, math.nan, [], [1, -1], [[1.0]], ["x"])),
        ("trained", "yes"),
    ],
)
def test_bad_arguments(name, value):
    with pytest.raises(ParameterError, match=name):
        OneGradientStep("erf", "erf", 2).optimum(over="ridge", **{name: value})


# ------------------------------------------------------------------ the peak


def test_peak_with_rounded_moments():
    # Published errors on noisy labels, 4420.5 and 4324.7, leading terms 4420.2 and 4324.4. With the
    # moments of erf they are 4420.60, 4324.80, 4420.32 and 4324.52; all four follow from a
    # nonlinear part of standard deviation 0.20036 in place of 0.2003643….
    entry = REFERENCE["interpolation_peak"]
    model, rounded = model_of(entry["model"]), entry["rounded"]
    square = sp.Rational(rounded["residual_deviation"]) ** 2
    found = model.kernel().solve(
        ridge=1e-10, student_residual=float(square), teacher_residual=float(square)
    )
    at = {x: sp.Rational(str(value)) for x, value in exact_parameters(model, 20).items()}
    at |= {symbols.residual: square, symbols.teacher_residual: square}
    for layer in ("initial", "trained"):
        noisy = getattr(found, f"risk_{layer}") + model.noise_variance
        leading = float(amplitudes()[layer].subs(at).evalf(15)) * 1e5
        assert f"{noisy:.1f}" == rounded[layer]["exact"]
        assert f"{leading:.1f}" == rounded[layer]["asymptotic"]


@pytest.mark.parametrize(
    "model",
    [
        OneGradientStep("z", "erf", 2, 0.5, 2, 0.25),
        OneGradientStep("He(3, z)", "erf", 2, 0.5, 2, 0.25),
        OneGradientStep("tanh", "relu", 2, 700, 2, 0, centre=True),
        OneGradientStep("erf", "z", 2, 0.003, 5, 1, alpha0=math.inf, loss="full"),
    ],
)
def test_leading_order_for_other_models(model):
    errors = [model.interpolation_peak(ridge=x, digits=20).relative_error for x in (1e-12, 1e-14)]
    assert errors[1] == pytest.approx(errors[0] / 10, rel=1e-2) and errors[0] < 1e-3


def test_peak_is_taken_at_as_many_samples_as_neurons():
    model = OneGradientStep("erf", "erf", 7, 2, 2, 0.25)
    assert model.interpolation_peak(ridge=1e-8).initial == (
        replace(model, alpha=2.0).interpolation_peak(ridge=1e-8).initial
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [({"ridge": 0}, "ridge must be positive"), ({}, "ridge must be given"),
     ({"ridge": 1e-6, "digits": -1}, "digits"), ({"ridge": 1e-6, "digits": "many"}, "digits")],
)  # fmt: skip
def test_peak_refuses(asked, message):
    with pytest.raises(ParameterError, match=message):
        OneGradientStep("erf", "erf", 2).interpolation_peak(**asked)
    with pytest.raises(AssumptionError, match="n = d"):
        OneGradientStep("z", "erf", 2, 1.0).interpolation_peak(ridge=1e-6)


def test_other_optima_are_those_of_curves():
    model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, noise_variance=0.25)
    peak = model.optimum(of="risk_trained", over="beta", ridge=0.01, bounds=(0.5, 8), maximum=True)
    assert peak.kind == "interior maximum" and peak.exact
    grid = np.linspace(0.5, 8, 200)
    scan = model.curve(beta=grid, ridge=0.01)["risk_trained"].to_numpy()
    assert scan.max() <= peak.risk_trained * (1 + 1e-12)
    assert peak.beta == pytest.approx(grid[scan.argmax()], abs=0.04)
    # The same answer as by the roots of the polynomial, from a search.
    ridge = model.optimum(of="risk_trained", over="ridge")
    assert ridge.ridge == pytest.approx(model.optimum().ridge, rel=1e-9)
    full = model.at(loss="full", step_size=1.0)
    bounds = {"beta": (0.5, 8), "step_size": (0.1, 2.0)}
    asked = {"of": "improvement", "over": [*bounds], "ridge": 0.1, "maximum": True}
    found = full.optimum(bounds=bounds, **asked)
    half = model.optimum(bounds={**bounds, "step_size": (0.2, 4.0)}, **asked)
    assert found.improvement == pytest.approx(half.improvement, rel=1e-12)
    assert found.step_size == half.step_size / 2 and found.beta == pytest.approx(half.beta)


def test_former_names_answer_the_same():
    model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, noise_variance=0.25)
    with pytest.warns(DeprecationWarning, match=r"is written optimum\(over='ridge'\)"):
        assert model.optimal_ridge(False, alpha=1.5) == model.optimum(trained=False, alpha=1.5)
    with pytest.warns(DeprecationWarning, match=r"is written optimum\(over='ridge', alpha="):
        found = model.optimal_ridge_curve([1.5], progress=False)
    assert found.identical(model.optimum(over="ridge", alpha=[1.5], progress=False))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"over": "step_size"}, "no best step size"),
        ({"over": ["ridge", "step_size"]}, "no best step size"),
        ({"over": np.array([])}, "over must be"),
        ({"of": "noise"}, "no output of OneGradientStep is named 'noise'; there are: risk_initial"),
        ({"over": "alpha0"}, "no parameter of OneGradientStep is named 'alpha0'"),
        ({"over": "beta", "bounds": (1, 2)}, "ridge is missing"),
        ({"over": "beta", "ridge": 1}, "bounds must say where to look for beta"),
        ({"over": "beta", "ridge": 1, "digits": 9}, "digits refine the penalty"),
        ({"beta": 2}, "takes the parameter alpha, and not beta"),
        ({"bounds": (1, 2)}, "all penalties are looked at"),
        ({"alpha": [1, 2], "digits": 20}, "digits and trained are for one alpha"),
        ({"alpha": [1, 2], "trained": False}, "digits and trained are for one alpha"),
    ],
)
def test_other_questions_are_refused(asked, message):
    with pytest.raises(ParameterError, match=message):
        OneGradientStep("erf", "erf", 2).optimum(**asked)


def test_the_search_with_exact_derivatives_finds_the_root_of_the_polynomial():
    model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, noise_variance=0.25)
    wanted = model.optimum(over="ridge")
    found = model.kernel().optimum(of="risk_trained", over="ridge")
    assert found.ridge == pytest.approx(wanted.ridge, abs=found.error)
    assert found.error < 1e-11 and found.is_interior
    assert found.risk_trained == pytest.approx(wanted.risk, rel=1e-13)
    assert found.second_derivative == pytest.approx(wanted.curvature, rel=1e-6)
