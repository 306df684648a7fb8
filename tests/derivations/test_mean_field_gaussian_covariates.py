"""The Gaussian covariate model: against ridge regression on finite data, and its two forms."""

import numpy as np
import pytest

import giantstep as gs
from giantstep.derivations.mean_field.gaussian_covariates import gaussian_covariates
from giantstep.errors import ParameterError


@pytest.fixture(scope="module")
def kernel():
    return gs.lower(gaussian_covariates())


@pytest.fixture(scope="module")
def matched_kernel():
    return gs.lower(gaussian_covariates(matched=True))


OMEGA = np.array([0.05, 0.3, 0.8, 1.1, 2.5])
SQUARES = np.array([2.0, 1.5, 0.1, 1.2, 0.7])


def test_matched_form_is_the_general_one(kernel, matched_kernel):
    parameters = {"alpha": 0.8, "ridge": 0.05, "noise_variance": 0.1}
    matched = matched_kernel.solve(
        **parameters, data={"spectrum": {"omega": OMEGA, "theta_squared": SQUARES}}
    )
    general = kernel.solve(
        **parameters,
        signal_power=float(np.mean(OMEGA * SQUARES)),
        data={"spectrum": {"omega": OMEGA, "t": OMEGA**2 * SQUARES}},
    )
    for name, value in matched.values.items():
        assert general.values[name] == pytest.approx(value, rel=1e-12), name


def test_rescaling_of_features(kernel):
    # Features times c: ω times c², t times c², and the penalty times c² undoes it.
    parameters = {"alpha": 1.4, "signal_power": 2.0, "noise_variance": 0.1}
    t = OMEGA**2 * SQUARES
    one = kernel.solve(**parameters, ridge=0.1, data={"spectrum": {"omega": OMEGA, "t": t}})
    other = kernel.solve(
        **parameters, ridge=0.4, data={"spectrum": {"omega": 4 * OMEGA, "t": 4 * t}}
    )
    for name in ("test_error", "training_error", "m", "q", "V"):
        assert other.values[name] == pytest.approx(one.values[name], rel=1e-12), name


def test_unlearnable_part_acts_as_noise(kernel):
    # What of the label is not linear in the features cannot be told from label noise.
    data = {"spectrum": {"omega": OMEGA, "t": OMEGA**2 * SQUARES}}
    linear = float(np.mean(OMEGA * SQUARES))
    one = kernel.solve(alpha=2, ridge=0.1, signal_power=linear + 0.7, noise_variance=0.0, data=data)
    two = kernel.solve(alpha=2, ridge=0.1, signal_power=linear, noise_variance=0.7, data=data)
    assert one.values["training_error"] == pytest.approx(two.values["training_error"], rel=1e-12)
    assert one.values["test_error"] == pytest.approx(two.values["test_error"] + 0.7, rel=1e-12)


def test_directions_without_variance_are_harmless(matched_kernel):
    # Half of the features vanish: a problem in d/2 dimensions, where α and λ are twice as large
    # and labels θ·u/√d have twice the power, so that noise and error are twice as large, too.
    padded = {"omega": [*OMEGA, *np.zeros(5)], "theta_squared": [*SQUARES, *SQUARES]}
    found = matched_kernel.solve(
        alpha=0.8, ridge=0.05, noise_variance=0.1, data={"spectrum": padded}
    )
    halved = matched_kernel.solve(
        alpha=1.6,
        ridge=0.1,
        noise_variance=0.2,
        data={"spectrum": {"omega": OMEGA, "theta_squared": SQUARES}},
    )
    for name in ("test_error", "training_error"):
        assert 2 * found.values[name] == pytest.approx(halved.values[name], rel=1e-11)


@pytest.mark.parametrize("matched", [True, False])
def test_simulation(kernel, matched):
    # The covariances are fixed, the data drawn anew: mean over seeds, in standard errors.
    alpha, d, ridge, noise, seeds = 0.5, 100, 0.05, 0.1, 25
    rng = np.random.default_rng(11)
    p = d if matched else 160
    theta = rng.standard_normal(p)
    if matched:
        scale = np.sqrt(2.0 / (1 + np.arange(d) / 30))
        to_student, extra = np.diag(scale), 0.0
        psi = np.diag(scale**2)
    else:
        to_student, extra = rng.standard_normal((d, p)) / np.sqrt(p), 0.3
        psi = np.eye(p)
    base = np.eye(p) if not matched else to_student
    omega_matrix = to_student @ to_student.T + extra**2 * np.eye(d)
    phi = base @ to_student.T
    omega, vectors = np.linalg.eigh(omega_matrix)
    t = d * (vectors.T @ (phi.T @ theta)) ** 2 / p
    power = theta @ psi @ theta / p
    n = int(alpha * d)
    errors = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, n])
        g = rng.standard_normal((n, p))
        v = (g @ to_student.T + extra * rng.standard_normal((n, d))) / np.sqrt(d)
        y = g @ base.T @ theta / np.sqrt(p) + np.sqrt(noise) * rng.standard_normal(n)
        w = np.linalg.solve(v.T @ v + ridge * np.eye(d), v.T @ y)
        m, q = w @ phi.T @ theta / np.sqrt(p * d), w @ omega_matrix @ w / d
        errors.append([power - 2 * m + q, np.mean((y - v @ w) ** 2)])
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1) / np.sqrt(seeds)
    found = kernel.solve(
        alpha=alpha, ridge=ridge, signal_power=power, noise_variance=noise,
        data={"spectrum": {"omega": omega, "t": t}},
    ).values  # fmt: skip
    theory = np.array([found["test_error"], found["training_error"]])
    # Four standard errors and the bias of order 1/d.
    assert np.all(np.abs(mean - theory) < 4 * spread + 3 * theory / d)


def test_data_are_asked_for(kernel):
    with pytest.raises(ParameterError, match="spectrum"):
        kernel.solve(alpha=1, ridge=1, signal_power=1, noise_variance=0)
