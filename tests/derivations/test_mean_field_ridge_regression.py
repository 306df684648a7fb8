"""Ridge regression: against the closed form to 50 digits, against the covariate model, and data."""

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.mean_field import ridge_regression as ridge_module
from giantstep.derivations.mean_field.gaussian_covariates import gaussian_covariates
from giantstep.derivations.mean_field.ridge_regression import closed_form, ridge_regression

POINTS = [
    ("2", "1/10", "1", "1/4"),
    ("1/2", "1/1000000", "3/2", "0"),
    ("1", "1/100", "1", "1/10"),
    ("7/3", "5", "1/3", "2"),
    ("1/1000", "1/7", "1", "1"),
    ("1000", "1/7", "1", "1"),
]
SYMBOLS = (ridge_module.alpha, ridge_module.ridge, ridge_module.signal, ridge_module.noise)


def _at(point):
    return dict(zip(SYMBOLS, map(sp.Rational, point), strict=True))


@pytest.fixture(scope="module")
def kernel():
    return gs.lower(ridge_regression())


@pytest.mark.parametrize("point", POINTS)
def test_closed_form_solves_the_equations(point):
    # With V and the test error from there, every residual of the system vanishes.
    at, exact = _at(point), closed_form()
    V = exact["V"].subs(at).evalf(70)
    V_hat = at[SYMBOLS[0]] / (1 + V)
    m = at[SYMBOLS[2]] * V_hat * V
    error = exact["test_error"].subs(at).evalf(70)
    values = {
        ridge_module.V: V,
        ridge_module.V_hat: V_hat,
        ridge_module.m_hat: V_hat,
        ridge_module.m: m,
        ridge_module.q: error - at[SYMBOLS[2]] + 2 * m,
        ridge_module.q_hat: at[SYMBOLS[0]] * (error + at[SYMBOLS[3]]) / (1 + V) ** 2,
    }
    system = ridge_regression()
    for equation in system.equations:
        residual = equation.residual.subs(at).subs(values)
        scale = abs(values[equation.unknown])
        assert abs(residual) <= scale * sp.Float("1e-50"), equation.unknown
    for name in ("test_error", "training_error"):
        found = system.outputs[name].subs(at).subs(values)
        assert abs(found / exact[name].subs(at).evalf(60) - 1) < sp.Float("1e-50")


@pytest.mark.parametrize("point", POINTS)
def test_kernel_agrees_with_the_closed_form(kernel, point):
    at, exact = _at(point), closed_form()
    names = ("alpha", "ridge", "signal_power", "noise_variance")
    found = kernel.solve(**{n: float(v) for n, v in zip(names, at.values(), strict=True)})
    for name, value in exact.items():
        # At alpha = 1000 the test error is 1e-3 of the terms whose difference it is, squared for V.
        assert float(found.values[name]) == pytest.approx(float(value.subs(at)), rel=1e-9, abs=0)
    assert found.values["V"] == pytest.approx(float(exact["V"].subs(at)), rel=1e-13)


def test_optimal_penalty_is_the_noise_to_signal_ratio():
    # At λ = Δ/ρ the estimator is the posterior mean, whose error is ΔV (Dobriban and Wager,
    # arXiv 1507.03003, in their normalisation).
    _, ridge, signal, noise = SYMBOLS
    error = closed_form()["test_error"]
    for point in (("2", "1", "3/2", "1/4"), ("1/2", "1", "1", "2")):
        at = _at(point)
        at[ridge] = at[noise] / at[signal]
        rest = {s: v for s, v in at.items() if s != ridge}
        slope = error.subs(rest).diff(ridge).subs(ridge, at[ridge]).evalf(50)
        assert abs(slope) < 1e-45
        near = [error.subs({**at, ridge: at[ridge] * f}).evalf(50) for f in (1, 0.9, 1.1)]
        assert near[0] < min(near[1:])
        difference = error.subs(at) - at[noise] * closed_form()["V"].subs(at)
        assert abs(difference.evalf(50)) < 1e-48


def test_free_energy_is_half_the_training_loss(kernel):
    # (α training error + λ q)/2 per dimension, and its derivative by λ is q/2 (envelope theorem).
    def loss(ridge):
        v = kernel.solve(alpha=1.7, ridge=ridge, signal_power=1.2, noise_variance=0.3).values
        return (1.7 * v["training_error"] + ridge * v["q"]) / 2, v["q"]

    h = 1e-5
    slope = (loss(0.4 + h)[0] - loss(0.4 - h)[0]) / (2 * h)
    assert slope == pytest.approx(loss(0.4)[1] / 2, rel=1e-8)


def test_point_spectrum_of_the_covariate_model(kernel):
    # Ω = 1 and t = ρ, in several rows: the same solution.
    parameters = {"alpha": 1.3, "ridge": 0.2, "signal_power": 1.5, "noise_variance": 0.1}
    mine = kernel.solve(**parameters).values
    data = {"spectrum": {"omega": [1.0] * 4, "t": [1.5, 1.5, 3.0, 0.0]}}
    theirs = gs.lower(gaussian_covariates()).solve(**parameters, data=data).values
    for name, value in mine.items():
        assert theirs[name] == pytest.approx(value, rel=1e-12), name


def test_simulation(kernel):
    alpha, d, ridge, noise, seeds = 0.6, 120, 0.1, 0.25, 40
    n = int(alpha * d)
    errors = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, n])
        x = rng.standard_normal((n, d)) / np.sqrt(d)
        theta = rng.standard_normal(d)
        theta *= np.sqrt(d) / np.linalg.norm(theta)
        y = x @ theta + np.sqrt(noise) * rng.standard_normal(n)
        w = np.linalg.solve(x.T @ x + ridge * np.eye(d), x.T @ y)
        errors.append([np.sum((w - theta) ** 2) / d, np.mean((y - x @ w) ** 2)])
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1) / np.sqrt(seeds)
    v = kernel.solve(alpha=alpha, ridge=ridge, signal_power=1, noise_variance=noise).values
    theory = np.array([v["test_error"], v["training_error"]])
    # Four standard errors and the bias of order 1/d.
    assert np.all(np.abs(mean - theory) < 4 * spread + theory / d)


@pytest.mark.parametrize(
    ("alpha", "noise", "wanted"),
    [
        # Hastie, Montanari, Rosset and Tibshirani, arXiv 1903.08560: null space of measure 1 − α.
        (0.1, 0, 0.9), (0.9, 0, 0.1),
        # Classical: Δ/(α − 1) for least squares with α > 1.
        (3, 0.5, 0.25),
    ],
)  # fmt: skip
def test_limits_without_a_penalty(kernel, alpha, noise, wanted):
    found = kernel.solve(alpha=alpha, ridge=1e-13, signal_power=1, noise_variance=noise)
    assert found.values["test_error"] == pytest.approx(wanted, rel=1e-11)
