"""Ridge regression and convex losses against other algorithms, and against certificates."""

import functools

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from scipy.optimize import minimize

from giantstep.derivations.spiked_random_features.convex.losses import convex_loss, simulated_loss
from giantstep.errors import ConvergenceError, ParameterError
from giantstep.numeric.networks.convex import fit_convex, proximal_loss, smooth_loss
from giantstep.numeric.networks.ridge import fit_ridge

# ------------------------------------------------------------------ ridge regression


def from_arrays(features, labels):
    """What draws blocks of them."""

    def draw(start, out):
        out[:] = features[start : start + len(out)]
        return labels[start : start + len(out)]

    return draw


@pytest.mark.parametrize("intercept", [False, True])
def test_dual_and_primal_agree_across_the_threshold(intercept):
    rng = np.random.default_rng(1)
    phi, y = rng.standard_normal((200, 30)), 1 + rng.standard_normal(200)
    sizes, penalties = [1, 7, 29, 30, 31, 64, 200], [0.1, 2.0]
    fit = fit_ridge(
        from_arrays(phi, y), sizes, penalties, width=30, block_rows=8, intercept=intercept
    )
    for column, n in enumerate(sizes):
        x, t = phi[:n] - intercept * phi[:n].mean(axis=0), y[:n] - intercept * y[:n].mean()
        for k, penalty in enumerate(penalties):
            u = np.linalg.solve(x.T @ x + penalty * np.eye(30), x.T @ t)
            # The condition number of the Gram matrix is below 1e4.
            np.testing.assert_allclose(fit.coefficients[:, column, k], u, rtol=0, atol=1e-11)
            np.testing.assert_allclose(
                fit.training_error[column, k], np.mean((t - x @ u) ** 2), rtol=1e-9, atol=1e-25
            )


def test_small_penalties_below_the_interpolation_threshold():
    rng = np.random.default_rng(0)
    phi, y = rng.standard_normal((40, 100)), rng.standard_normal(40)
    fit = fit_ridge(from_arrays(phi, y), [40], [1e-6, 1e-300], width=100, block_rows=16)
    u, s, _ = np.linalg.svd(phi, full_matrices=False)
    # Residual in the singular basis: penalty / (s^2 + penalty) times the label, about 1e-8 here.
    expected = np.mean((1e-6 / (s**2 + 1e-6) * (u.T @ y)) ** 2)
    assert expected < 1e-14
    np.testing.assert_allclose(fit.training_error[0], [expected, 0], rtol=1e-9, atol=1e-25)


def test_a_penalty_that_is_lost_is_solved_or_refused():
    ones, y = np.ones((8, 4)), np.arange(8.0)
    fit = fit_ridge(from_arrays(ones, y), [8], [1e-300], width=4, block_rows=8)
    np.testing.assert_allclose(ones @ fit.coefficients[:, 0, 0], y.mean(), rtol=1e-12)
    # Too many samples to be kept for singular values.
    many = np.ones((64, 4))
    with pytest.raises(ParameterError, match="ridge is too small"):
        fit_ridge(from_arrays(many, many[:, 0]), [64], [1e-300], width=4, block_rows=8)


# ------------------------------------------------------------------ convex losses


LOSSES = ("square", "absolute", "logistic", "hinge", "huber(0.3)", "quantile(0.2)")


@functools.cache
def named(name):
    return simulated_loss(convex_loss(name))


def problem(n, p, seed=0, *, binary=False, scale=1.0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, p)) / np.sqrt(p)
    labels = scale * (features @ rng.standard_normal(p) + 0.5 * rng.standard_normal(n))
    return features, np.where(labels >= 0, 1.0, -1.0) if binary else labels


def objective(loss, features, labels, ridge, w):
    return float(np.sum(loss.value(labels, features @ w)) + ridge / 2 * w @ w)


@pytest.mark.parametrize("shape", [(40, 6), (6, 15)])
@pytest.mark.parametrize("name", ["absolute", "hinge"])
def test_losses_with_kinks_agree_with_a_quadratic_program(name, shape):
    # Slack variables t_i >= loss_i: a smooth problem with linear constraints.
    (n, p), ridge, loss = shape, 0.2, named(name)
    features, y = problem(n, p, binary=name == "hinge")
    if name == "hinge":
        rows = [(np.hstack([y[:, None] * features, np.eye(n)]), 1.0), (np.eye(n, p + n, p), 0.0)]
    else:
        rows = [
            (np.hstack([features, np.eye(n)]), y),
            (np.hstack([-features, np.eye(n)]), -y),
        ]
    found = minimize(
        lambda v: v[p:].sum() + ridge / 2 * v[:p] @ v[:p],
        np.concatenate([np.zeros(p), 1 + np.abs(y)]),
        jac=lambda v: np.concatenate([ridge * v[:p], np.ones(n)]),
        constraints=[
            {"type": "ineq", "fun": lambda v, a=a, b=b: a @ v - b, "jac": lambda v, a=a: a}
            for a, b in rows
        ],
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    fit = fit_convex(features, y, loss, ridge)
    assert fit.objective == pytest.approx(found.fun, rel=1e-8)
    assert fit.objective <= found.fun * (1 + 1e-10)
    np.testing.assert_allclose(fit.coefficients, found.x[:p], atol=1e-4)


def test_square_loss_is_ridge_regression():
    features, y = problem(50, 20)
    expected = np.linalg.solve(features.T @ features + 0.1 * np.eye(20), features.T @ y)
    np.testing.assert_allclose(
        fit_convex(features, y, named("square"), 0.1).coefficients, expected, rtol=1e-5, atol=1e-7
    )
    # A Huber loss that is never linear is the same one.
    np.testing.assert_allclose(
        fit_convex(features, y, named("huber(1e6)"), 0.1).coefficients,
        expected,
        rtol=1e-5,
        atol=1e-7,
    )


@given(
    name=st.sampled_from(LOSSES),
    n=st.integers(1, 40),
    p=st.integers(1, 40),
    exponent=st.floats(-4, 3),
    magnitude=st.floats(-2, 2),
    seed=st.integers(0, 10**6),
)
# Nearly interpolated: the gap is a sum of residuals of 1e-13.
@example(name="absolute", n=28, p=29, exponent=-2.0, magnitude=-2.0, seed=0)
@settings(max_examples=25, deadline=None)
def test_nothing_nearby_is_better_than_a_fit(name, n, p, exponent, magnitude, seed):
    loss, ridge = named(name), 10.0**exponent
    features, y = problem(n, p, seed, binary=loss.binary, scale=10.0**magnitude)
    fit = fit_convex(features, y, loss, ridge)
    assert 0 <= fit.certificate <= 1e-8
    assert fit.objective == pytest.approx(objective(loss, features, y, ridge, fit.coefficients))
    rng = np.random.default_rng(seed)
    for size in (1e-6, 1e-3, 1.0):
        other = fit.coefficients + size * rng.standard_normal(p)
        assert objective(loss, features, y, ridge, other) >= fit.objective * (1 - 1e-8)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    "make",
    [
        lambda f, y: (np.zeros_like(f), y),
        lambda f, y: (np.tile(f[:1], (len(f), 1)), y),
        lambda f, y: (f, np.ones_like(y)),
        lambda f, y: (f[:1], y[:1]),
    ],
    ids=["no features", "equal samples", "equal labels", "one sample"],
)
def test_degenerate_data_are_fitted(name, make):
    loss = named(name)
    features, y = make(*problem(12, 5, binary=loss.binary))
    assert fit_convex(features, y, loss, 0.1).certificate <= 1e-8


def test_a_loss_of_ones_own_with_kinks():
    # Pinball loss, the absolute one tilted: at tilt 1/2 it is half the absolute loss.
    def pinball(tilt):
        def proximal(y, z, step):
            return z - np.clip(z - y, -step * tilt, step * (1 - tilt))

        def moved(y, z, step):
            inside = (z - y > -step * tilt) & (z - y < step * (1 - tilt))
            return 1.0 - inside

        def value(y, x):
            return np.maximum(tilt * (y - x), (tilt - 1) * (y - x))

        return proximal_loss(value, proximal, moved, name=f"pinball {tilt}")

    features, y = problem(40, 8)
    even = fit_convex(features, y, pinball(0.5), 0.1)
    absolute = fit_convex(features, y, named("absolute"), 0.2)
    np.testing.assert_allclose(even.coefficients, absolute.coefficients, atol=1e-4)
    assert fit_convex(features, y, pinball(0.8), 0.1).certificate <= 1e-8


def test_a_hopeless_penalty_is_an_error_that_says_so():
    features, y = problem(20, 20, binary=True)
    with pytest.raises(ConvergenceError, match="ridge larger than") as caught:
        fit_convex(features, y, named("hinge"), 1e-14)
    assert caught.value.residual > 1e-8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "", "value": np.add, "slope": np.add}, "name of a loss"),
        ({"name": "x", "value": 3, "slope": np.add}, "value of loss 'x'"),
    ],
)
def test_bad_losses_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        smooth_loss(**arguments)


def test_a_loss_that_is_not_finite_is_refused():
    bad = smooth_loss(lambda y, x: np.log(x), lambda y, x: 1 / x, name="log")
    features, y = problem(10, 5)
    with pytest.raises(ParameterError, match="'log' has a value that is not finite"):
        fit_convex(features, y, bad, 0.1)


def test_a_linear_loss_has_one_slope_for_all():
    rng = np.random.default_rng(2)
    features, labels = rng.standard_normal((30, 4)), np.sign(rng.standard_normal(30))
    loss = smooth_loss(lambda y, x: 2.0 * x, lambda y, x: 2.0, name="linear")
    fit = fit_convex(features, labels, loss, 0.5)
    np.testing.assert_allclose(fit.coefficients, -4 * features.sum(axis=0), rtol=1e-9)
