"""Steps between order one and √N: spikes of every degree, their risk and their outliers."""

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.one_gradient_step.nonlinear_spikes import physics
from giantstep.errors import AssumptionError, ParameterError

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "nonlinear_spikes.json").read_text("utf-8")
)["configurations"]
STUDENTS = {"poly13": "z + He(3, z)/3", "poly012": "1 + z + He(2, z)/2"}
TEACHERS = {
    "He1+He3/6 (centred)": "z + He(3, z)/6",
    "He1+He2/2 (centred)": "z + He(2, z)/2",
    "sin(1.5*z) (centred)": "sin(3*z/2)",
    "sin+cos (centred)": "sin(z) + cos(z)",
}


@cache
def model(number):
    case = REFERENCE[number]
    step = gs.OneGradientStep(
        STUDENTS.get(case["student"], case["student"]), TEACHERS[case["teacher"]],
        alpha=float(case["alpha"]), alpha0=float(case["alpha0"]), beta=float(case["beta"]),
        step_size=float(case["step_size"]), noise_variance=float(case["noise_variance"]),
        centre=True,
    )  # fmt: skip
    return step.at_width(case["width"], degrees=case["degrees"]), step


def penalty(number):
    return gs.paper_ridge(float(REFERENCE[number]["paper_ridge"]))


def erf_step(**changes):
    given = {"alpha": 4, "beta": 1.5, "step_size": 6, "noise_variance": 0.05} | changes
    return gs.OneGradientStep("erf", "He(1, z) + He(3, z)/6", **given)


# ---------------------------------------------------------------------- reference values


@pytest.mark.parametrize("number", range(len(REFERENCE)))
def test_powers_equal_the_reference(number):
    case, found = REFERENCE[number], model(number)[0].solve(ridge=penalty(number), form="powers")
    wanted = {
        "risk": case["R_gram"], "training_error": case["train_gram"], "leading": case["R_leading"],
        "linear": case["R_GD"], "initial": case["R_0"],
    }  # fmt: skip
    for name, value in wanted.items():
        assert getattr(found, name) == pytest.approx(float(value), rel=1e-14), name
    for degree, value in case["rungs"].items():
        assert found.rungs[f"rung {degree}"] == pytest.approx(float(value), rel=1e-14)
    for degree, values in case["spikes"].items():
        assert found.strengths[f"strength, degree {degree}"] == pytest.approx(
            float(values["a2"]), rel=1e-14
        )
        assert found.left[f"left, degree {degree}"] == pytest.approx(
            float(values["left"]), rel=1e-14
        )


@pytest.mark.parametrize("number", [0, 2, 4])
def test_twenty_digits_equal_the_reference(number):
    found = model(number)[0].solve(ridge=penalty(number), digits=20)
    for name, key in (
        ("risk", "R_gram"),
        ("leading", "R_leading"),
        ("training_error", "train_gram"),
    ):
        value = getattr(found, name)
        assert abs(value - value.context.mpf(REFERENCE[number][key])) < 1e-20, name


@pytest.mark.parametrize("number", range(2, len(REFERENCE)))
def test_all_degrees_at_once_equal_the_reference(number):
    """The reference is right to 1e-11; see the many digits of the erf student below."""
    found = model(number)[0].solve(ridge=penalty(number))
    assert found.form == "operator"
    assert found.risk == pytest.approx(REFERENCE[number]["R_operator"], rel=1e-11)


def test_all_degrees_at_once_to_many_digits():
    """Computed once with 60 Gauss nodes of 40 digits and orders 8, 12: 1.9e-11, 1e-15 apart."""
    found = model(2)[0].solve(ridge=penalty(2))
    assert found.risk == pytest.approx(0.35169714980394428, abs=1e-15)
    assert 0 < found.errors["risk"] < 1e-13


@pytest.mark.parametrize("number", range(len(REFERENCE)))
def test_outliers_equal_the_reference(number):
    known, found = REFERENCE[number]["kernel"], model(number)[0].spikes()
    assert found.edge == pytest.approx(float(known["edge"]), rel=1e-14)
    assert found.critical_strength == pytest.approx(float(known["critical_a2"]), rel=1e-14)
    for degree, values in ((k, v) for k, v in known.items() if k.isdigit()):
        name = f"outlier, degree {degree}"
        assert (name in found.outliers) == (values is not None)
        if values is not None:
            assert found.outliers[name] == pytest.approx(float(values["outlier"]), rel=1e-14)
            assert found.alignments[f"alignment, degree {degree}"] == pytest.approx(
                float(values["alignment"]), rel=1e-13
            )


# ---------------------------------------------------------------------- derivations


def test_woodbury_explains_what_the_full_matrices_explain():
    """F and F' of random matrices of any size against (Σ + ν)^-1 itself."""
    generator = np.random.default_rng(5)
    bulk, u = generator.normal(size=(40, 40)), generator.normal(size=(40, 3))
    sigma = bulk @ bulk.T / 40 + np.eye(40)
    overlaps = generator.normal(size=(3, 3))
    overlaps = overlaps @ overlaps.T
    b, nu = generator.normal(size=(3, 1)), 0.3
    inverse = np.linalg.inv(sigma + nu * np.eye(40))
    spikes = physics.Spikes(overlaps, u.T @ inverse @ u, -u.T @ inverse @ inverse @ u, b)
    v = np.linalg.solve(np.eye(3) + overlaps @ spikes.resolvent, b)
    full = np.linalg.inv(sigma + u @ overlaps @ u.T + nu * np.eye(40))
    correlation = u @ b
    assert spikes.explained(v) == pytest.approx((correlation.T @ full @ correlation)[0, 0])
    slope = -(correlation.T @ full @ full @ correlation)[0, 0]
    assert spikes.derivative(v) == pytest.approx(slope)


def test_strengths_have_the_published_factors():
    """k!^2 beside lower powers of the same parity; 3 in place of 2 without a constant."""
    assert [physics.independent_part(k, range(k)) for k in range(1, 6)] == [1, 2, 6, 24, 120]
    assert physics.independent_part(5, (1, 3)) == 120
    assert physics.independent_part(2, (1,)) == 3
    third = physics.spike_strength(3, (1, 3))
    mu, theta, n = physics.student_coefficient(3), physics.spike_length(), physics.width
    assert sp.simplify(third - mu**2 * theta**6 / n**2) == 0


def test_energies_are_those_of_hermite_coefficients():
    gamma = physics.alignment()
    for k in (2, 3):
        energy = physics.shown_energy(k, range(k + 1))
        wanted = (physics.teacher_coefficient(k) * gamma**k) ** 2 / sp.factorial(k)
        assert sp.simplify(energy - wanted) == 0


def test_what_is_left_falls_with_the_strength():
    """dΛ/da² < 0 because τ + ντ' lies between 0 and τ."""
    bulk = physics.Bulk(*sp.symbols("w tau w1 tau1", real=True))
    nu, a = sp.Symbol("nu", positive=True), physics.strength
    left = physics.remaining_fraction(bulk, nu)
    tau, slope = bulk.isotropic, bulk.isotropic_slope
    assert sp.simplify(left - (1 + a * (tau + nu * slope)) / (1 + a * tau) ** 2) == 0


# ---------------------------------------------------------------------- meeting points


def test_the_linear_spike_alone_is_the_theory_of_steps_of_order_one():
    step = erf_step(alpha0=2)
    found = step.at_width(600, degrees=[1]).solve(ridge=0.1, digits=40)
    assert abs(found.risk - step.solve(ridge=0.1, digits=40).trained) < 1e-39


def test_large_widths_reach_the_leading_order_at_fixed_strength():
    """At the edge of the third degree corrections are of order N^(-1/3)."""
    gaps = []
    for width in (10**5, 10**8, 10**11):
        step = gs.OneGradientStep(
            "z + He(3, z)/3", "sin(3*z/2)", alpha=4, beta=1.5, noise_variance=0.05, step_size=1
        )
        edge = step.at_width(width).spikes().step_sizes["step size, degree 3"]
        found = step.at(step_size=edge).at_width(width).solve(ridge=0.1, form="powers")
        assert found.strengths["strength, degree 3"] == pytest.approx(1, rel=1e-12)
        gaps.append(abs(found.risk - found.leading))
    assert gaps[1] / gaps[0] == pytest.approx(0.1, rel=0.3)
    assert gaps[2] / gaps[1] == pytest.approx(0.1, rel=0.1)


def test_a_short_step_with_all_letters_is_the_operator():
    """Both theories are the same to relative order θ²/N."""
    found = {size: erf_step(step_size=size).at_width(20_000) for size in (4.0, 8.0)}
    gaps = [
        abs(m.solve(ridge=0.1).risk - m.solve(ridge=0.1, form="letters").risk)
        for m in found.values()
    ]
    assert gaps[0] < found[4.0].solve(ridge=0.1).small
    assert gaps[1] / gaps[0] == pytest.approx(4, rel=0.5)


def test_signs_of_the_readout_span_what_two_letters_span():
    signs = erf_step().at_width(600, letters=[1, -1])
    assert signs.solve(ridge=0.1, form="powers").risk == pytest.approx(
        signs.solve(ridge=0.1).risk, rel=1e-4
    )
    # Odd features of one letter are those of two.
    one = erf_step().at_width(600, letters=[1])
    assert one.solve(ridge=0.1).risk == pytest.approx(signs.solve(ridge=0.1).risk, rel=1e-12)


# ---------------------------------------------------------------------- simulations


def linearised_risk(
    degrees, coefficients, theta, gamma, alpha, beta, ridge, noise, teacher, *, d, seed
):
    """Risk of one ridge readout on μ1 Wᵀx + noise + Σ r_k κ^k, by plain NumPy."""
    generator = np.random.default_rng(seed)
    width, n = round(beta * d), round(alpha * d)
    w = generator.normal(size=(d, width)) / math.sqrt(d)
    g = generator.normal(size=width)
    rest = math.sqrt(sum(
        m**2 / math.factorial(k) for k, m in coefficients.items() if k > 1
    ))  # fmt: skip

    def features(x):
        kappa = gamma * x[:, 0] + math.sqrt(1 - gamma**2) * x[:, 1]
        found = coefficients[1] * x @ w + rest * generator.normal(size=(len(x), width))
        for k in degrees:
            right = coefficients[k] / math.factorial(k) * (theta * g / math.sqrt(width)) ** k
            found += np.outer(kappa**k, right)
        return found + coefficients.get(0, 0.0)

    x = generator.normal(size=(n, d))
    y = teacher(x[:, 0]) + math.sqrt(noise) * generator.normal(size=n)
    phi = features(x)
    weights = np.linalg.solve(phi.T @ phi / n + ridge * np.eye(width), phi.T @ y / n)
    test = generator.normal(size=(4000, d))
    return np.mean((features(test) @ weights - teacher(test[:, 0])) ** 2)


@pytest.mark.slow
def test_linearised_networks_agree():
    """He1 + He3/3 on sin(1.5 z), α = 4, β = 1.5, λ_B = .05, Δ = .05, γ² = .7."""
    theta = 8.0
    square = (1 - math.exp(-4.5)) / 2 + 0.05
    linear = 1.5 * math.exp(-1.125)
    alpha0 = 0.7 * square / (linear**2 * 0.3)
    length = math.sqrt(linear**2 + square / alpha0)
    step = gs.OneGradientStep(
        "z + He(3, z)/3", "sin(3*z/2)", alpha=4, alpha0=alpha0, beta=1.5, noise_variance=0.05,
        step_size=theta / length,
    )  # fmt: skip
    wanted = step.at_width(180).solve(ridge=gs.paper_ridge(0.05), form="powers").risk
    found = [
        linearised_risk(
            (1, 3), {1: 1.0, 3: 2.0}, theta, math.sqrt(0.7), 4, 1.5, 0.05, 0.05,
            lambda t: np.sin(1.5 * t), d=120, seed=seed,
        )
        for seed in range(24)
    ]  # fmt: skip
    error = np.std(found, ddof=1) / math.sqrt(len(found))
    assert abs(np.mean(found) - wanted) < 4 * error
    assert error < 0.03 * wanted


# ---------------------------------------------------------------------- as users meet it


@pytest.mark.slow
def test_curves_sensitivities_and_documents():
    small = erf_step().at_width(600)
    curve = small.curve(ridge=gs.paper_ridge(0.05), step_size=[0, 2, 6])
    assert curve.risk_operator.values[0] == pytest.approx(curve.risk_initial.values[0], rel=1e-13)
    at = small.solve(ridge=gs.paper_ridge(0.05))
    assert curve.risk_operator.values[2] == pytest.approx(at.risk, rel=1e-13)
    width = small.curve(ridge=0.1, width=[600, 6000])
    assert width.risk.values[0] == pytest.approx(
        small.solve(ridge=0.1, form="powers").risk, rel=1e-14
    )
    slope = small.sensitivities(ridge=0.1, wrt=["step_size", "width"])
    up, down = (
        small.at(step_size=6 + h).solve(ridge=0.1, form="powers").risk for h in (1e-4, -1e-4)
    )
    assert slope["risk", "step_size"] == pytest.approx((up - down) / 2e-4, rel=1e-7)
    assert "θ" not in at.to_json() or at.form == "operator"


def test_proven_intervals_hold_the_digits():
    pytest.importorskip("flint")
    small = erf_step().at_width(600)
    proof = small.solve(ridge=0.1, certify=True).certificate
    assert proof is not None
    many = small.solve(ridge=0.1, digits=30)
    assert proof["risk"].lower <= many.risk <= proof["risk"].upper


def test_risk_over_step_sizes_has_every_form():
    found = erf_step().at_width(600).over_steps(step_size=[0, 6], ridge=gs.paper_ridge(0.05))
    data = found.to_dataset()
    assert data.risk_letters.values[0] == data.risk_initial.values[0]
    assert data.risk_letters.values[1] == pytest.approx(data.risk_operator.values[1], rel=0.03)
    assert found.edges and type(found).from_json(found.to_json()).edges == found.edges
    labels = [line.get_label() for line in found.plot().lines]
    assert {"all degrees", "spiked random features", "linear spike", "large widths"} <= {*labels}
    np.testing.assert_array_equal(found.plot("risk_linear").lines[0].get_ydata(), data.risk_linear)
    networks = {
        name: ("step_size", values)
        for name, values in (("risk_mean", [0.5, 0.4]), ("risk_standard_error", [0.01, 0.02]))
    }
    axes = replace(found, dataset=data.assign(networks)).plot()
    assert axes.get_legend_handles_labels()[1][-1] == "networks"


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: erf_step().at_width(1), ParameterError, "width must be >= 2"),
        (lambda: erf_step().at_width(600, degrees=[1, 2]), ParameterError, "no coefficient of"),
        (lambda: erf_step().at_width(600, degrees=[3]), ParameterError, "must hold 1"),
        (lambda: erf_step().at_width(600, degrees=cast(Any, "13")), ParameterError,
         "whole numbers"),
        (lambda: erf_step().at_width(600, letters=[1, 2]), ParameterError, "mean square 1"),
        (lambda: erf_step().at_width(600).solve(), ParameterError, "ridge must be given"),
        (lambda: erf_step().at_width(600).solve(ridge=0), ParameterError, "ridge must be positive"),
        (lambda: erf_step().at_width(600).solve(ridge=1, form="x"), ParameterError, "one of"),
        (lambda: erf_step().at_width(600).solve(ridge=1, form="operator", digits=20),
         ParameterError, "form of powers"),
        (lambda: erf_step(step_size=60).at_width(30).solve(ridge=1), ParameterError, "too small"),
        (lambda: erf_step().at_width(600, letters=[1, -1]).spikes(), ParameterError, "normal"),
        (lambda: erf_step().at_width(600).over_steps(step_size=[2, 1], ridge=1), ParameterError,
         "increasing"),
        (lambda: erf_step().at_width(600).over_steps(step_size=[1, 2], ridge=1, n_test=9),
         ParameterError, "give seeds"),
        (lambda: gs.OneGradientStep("z + He(2, z)", "z", alpha=2).at_width(600), AssumptionError,
         "add a constant"),
        (lambda: gs.OneGradientStep("erf", "1 + z", alpha=2).at_width(600), AssumptionError,
         "centre"),
    ],
)  # fmt: skip
def test_wrong_questions_are_refused(ask, error, message):
    with pytest.raises(error, match=message):
        ask()


@pytest.mark.slow
def test_optima_are_those_of_curves():
    step = erf_step(step_size=12).at_width(4000)
    bounds = {"ridge": (0.05, 50), "step_size": (1.0, 12.0)}
    found = step.optimum(over=[*bounds], bounds=bounds)
    axes = {name: np.geomspace(*ends, 15) for name, ends in bounds.items()}
    scan = step.kernel().curve(**axes)["risk"]
    assert found.exact and found.risk <= float(scan.min()) * (1 + 1e-12)
    at = step.at(step_size=found.step_size).solve(ridge=found.ridge, form="powers")
    assert found.risk == pytest.approx(at.risk, rel=1e-12)
    with pytest.raises(ParameterError, match="no output of StepAtWidth is named 'risk_operator'"):
        step.optimum(over="ridge", of="risk_operator")
    with pytest.raises(ParameterError, match="no parameter of StepAtWidth is named 'width'"):
        step.optimum(over="width", ridge=0.1)
    with pytest.raises(ParameterError, match="ridge is missing"):
        step.optimum(over="step_size", bounds=(1, 2))
