"""Classifiers by a convex loss of the margin: SciPy, the square loss in closed form, data."""

import math

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, ndtr

import giantstep as gs
from giantstep.derivations.mean_field.logistic_regression import (
    logistic_regression,
    margin,
    margin_classifier,
    support_vector_machine,
)
from giantstep.derivations.mean_field.ridge_regression import ridge_regression
from giantstep.errors import ParameterError
from giantstep.symbolic.expressions.functions import relu, softplus


@pytest.fixture(scope="module")
def logistic():
    return gs.lower(logistic_regression())


@pytest.fixture(scope="module")
def square():
    return gs.lower(margin_classifier("square"))


@pytest.fixture(scope="module")
def hinge():
    return gs.lower(support_vector_machine())


def test_logistic_equations_by_scipy(logistic):
    # The published fixed-point equations with both labels, quadrature and proximal points by SciPy.
    alpha, ridge, rho, delta = 2.5, 0.2, 1.0, 0.3

    def slope(y, omega, V):
        x = brentq(
            lambda x: x - omega - V * y * expit(-y * x), omega - V - 1, omega + V + 1, xtol=1e-14
        )
        return (x - omega) / V, -expit(x) * expit(-x) / (1 + V * expit(x) * expit(-x))

    def update(V, q, m):
        b = math.sqrt(rho + delta - m * m / q)
        a = m / math.sqrt(q) / b
        sums = np.zeros(3)
        for y in (1, -1):

            def terms(z, k, y=y):
                f, df = slope(y, math.sqrt(q) * z, V)
                weight = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
                density = y * math.exp(-((a * z) ** 2) / 2) / math.sqrt(2 * math.pi) / b
                probability = ndtr(y * a * z)
                return weight * (-probability * df, probability * f * f, density * f)[k]

            sums += [quad(terms, -9, 9, args=(k,), epsabs=1e-11, epsrel=1e-11)[0] for k in range(3)]
        return alpha * sums

    found = logistic.solve(alpha=alpha, ridge=ridge, signal_power=rho, noise_variance=delta).values
    V_hat, q_hat, m_hat = update(found["V"], found["q"], found["m"])
    assert found["V_hat"] == pytest.approx(V_hat, rel=1e-9)
    assert found["q_hat"] == pytest.approx(q_hat, rel=1e-9)
    assert found["m_hat"] == pytest.approx(m_hat, rel=1e-9)
    cosine = found["m"] / math.sqrt((rho + delta) * found["q"])
    assert found["generalisation_error"] == pytest.approx(math.acos(cosine) / math.pi, rel=1e-12)


@pytest.mark.parametrize(("rho", "delta"), [(1.0, 0.0), (2.0, 0.1), (0.5, 3.0)])
def test_square_loss_is_ridge_regression_on_labels(square, rho, delta):
    # For the square loss only the linear part of the labels counts, y = c·(teacher) + rest with
    # c = sqrt(2/(π(ρ + Δ))): ridge regression with the signal ρc² and the noise 1 − ρc².
    c = math.sqrt(2 / (math.pi * (rho + delta)))
    found = square.solve(alpha=1.7, ridge=0.3, signal_power=rho, noise_variance=delta).values
    ridge = gs.lower(ridge_regression()).solve(
        alpha=1.7, ridge=0.3, signal_power=rho * c * c, noise_variance=1 - rho * c * c
    ).values  # fmt: skip
    for name in ("V", "q", "V_hat", "q_hat"):
        assert found[name] == pytest.approx(ridge[name], rel=1e-12), name
    assert found["m"] * c == pytest.approx(ridge["m"], rel=1e-12)
    assert found["training_loss"] == pytest.approx(ridge["training_error"] / 2, rel=1e-12)


@pytest.mark.parametrize("name", ["logistic", "square", "hinge"])
def test_only_the_noise_to_signal_ratio_counts(name, request):
    # Labels do not change when teacher and noise are scaled together; m scales with the teacher.
    kernel = request.getfixturevalue(name)
    one = kernel.solve(alpha=2, ridge=0.1, signal_power=1, noise_variance=0.5).values
    two = kernel.solve(alpha=2, ridge=0.1, signal_power=4, noise_variance=2).values
    for quantity in ("generalisation_error", "training_loss", "q", "V"):
        assert two[quantity] == pytest.approx(one[quantity], rel=1e-10), quantity
    assert two["m"] == pytest.approx(2 * one["m"], rel=1e-10)


@pytest.mark.parametrize("name", ["logistic", "hinge", "square"])
def test_limits(name, request):
    kernel = request.getfixturevalue(name)
    at = {"signal_power": 1, "noise_variance": 0.0}
    # A large penalty: the student is the Hebbian vector, w ∝ Σ y x, whose error is known:
    # cos = c sqrt(α)/sqrt(1 + c²α) with c = sqrt(2/π) (all losses have a slope at margin 0).
    found = kernel.solve(alpha=2, ridge=1e7, **at).values
    c = math.sqrt(2 / math.pi)
    cosine = c * math.sqrt(2) / math.sqrt(1 + c * c * 2)
    assert found["generalisation_error"] == pytest.approx(math.acos(cosine) / math.pi, rel=1e-5)
    few = kernel.solve(alpha=0.01, ridge=0.1, **at).values
    assert 0.45 < few["generalisation_error"] < 0.5


def test_a_kink_and_its_smooth_neighbour(hinge):
    # softplus(k(1 − x))/k tends to the hinge from above, by at most log(2)/k.
    k = 40
    smooth = gs.lower(margin_classifier(softplus(k * (1 - margin)) / k, name="smooth_hinge"))
    at = {"alpha": 2, "ridge": 0.3, "signal_power": 1, "noise_variance": 0.25}
    one, two = smooth.solve(**at).values, hinge.solve(**at).values
    assert one["generalisation_error"] == pytest.approx(two["generalisation_error"], abs=2e-3)
    assert 0 <= one["training_loss"] - two["training_loss"] <= math.log(2) / k


def test_a_loss_of_ones_own():
    # Squared hinge: it is the square loss where no margin exceeds 1, as at a large penalty.
    squared = gs.lower(margin_classifier(relu(1 - margin) ** 2 / 2, name="squared_hinge"))
    at = {"alpha": 1, "ridge": 50, "signal_power": 1, "noise_variance": 0}
    plain = gs.lower(margin_classifier("square")).solve(**at).values
    for name, value in squared.solve(**at).values.items():
        assert value == pytest.approx(plain[name], rel=1e-9), name


@pytest.mark.parametrize(
    ("loss", "given", "message"),
    [
        ("perceptron", {}, "loss must be one of 'logistic', 'hinge', 'square'"),
        (margin**2, {"name": "mine"}, "loss must decrease in the margin at 0"),
        (relu(margin), {"name": "mine"}, "loss must decrease"),
        (sp.cos(margin + 1), {"name": "mine"}, "must be convex"),
        (sp.exp(-sp.Symbol("u", real=True)), {"name": "mine"}, "must be an expression in x alone"),
        (sp.exp(-margin), {}, "name is missing"),
    ],
)
def test_losses_that_are_refused(loss, given, message):
    with pytest.raises(ParameterError, match=message):
        margin_classifier(loss, **given)
    assert margin_classifier(-margin, name="linear").parameters


def simulated(d, seeds, alpha, ridge, delta):
    """Mean and standard error of (generalisation error, training loss) of Newton's minimiser."""
    results = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, d])
        n = int(alpha * d)
        x = rng.standard_normal((n, d)) / math.sqrt(d)
        field = x[:, 0] * math.sqrt(d) + math.sqrt(delta) * rng.standard_normal(n)
        x *= np.sign(field)[:, None]

        def objective(w, x=x):
            return np.logaddexp(0, -x @ w).sum() + ridge * w @ w / 2

        w = np.zeros(d)
        for _ in range(50):
            p = expit(-x @ w)
            gradient = ridge * w - x.T @ p
            if np.linalg.norm(gradient) < 1e-9:
                break
            step = np.linalg.solve((x.T * (p * (1 - p))) @ x + ridge * np.eye(d), gradient)
            length = 1.0
            while objective(w - length * step) > objective(w) and length > 1e-6:
                length /= 2
            w = w - length * step
        cosine = w[0] / math.sqrt((1 + delta) * w @ w)
        results.append([math.acos(cosine) / math.pi, np.logaddexp(0, -x @ w).mean()])
    return np.mean(results, axis=0), np.std(results, axis=0, ddof=1) / math.sqrt(seeds)


@pytest.mark.slow
def test_simulation_of_logistic_regression(logistic):
    # Two dimensions show a bias of order 1/d; extrapolated to 1/d = 0 it is gone.
    (small, small_error), (large, large_error) = (
        simulated(d, seeds, 2, 0.1, 0.5) for d, seeds in ((30, 500), (60, 250))
    )
    v = logistic.solve(alpha=2, ridge=0.1, signal_power=1, noise_variance=0.5).values
    theory = np.array([v["generalisation_error"], v["training_loss"]])
    limit = 2 * large - small
    error = np.sqrt(4 * large_error**2 + small_error**2)
    assert np.all(np.abs(limit - theory) < 4 * error)
    assert np.all(np.abs(large - theory) < 4 * large_error + 0.2 / 60)


def test_digits_of_proximal_points(logistic):
    # Sums over nodes run on balls, where python-flint is installed: those near zero have no sign.
    found = logistic.solve(
        alpha=1.118, ridge=0.5104, signal_power=2.596, noise_variance=0, digits=20, progress=False
    )
    exact = "0.254589863798453901281026154493954"
    assert abs(found.generalisation_error - type(found.generalisation_error)(exact)) < 1e-20
