"""Errors that rounding leaves are those of each output, and never understated."""

import pytest
import sympy as sp

from giantstep.derivations.kernels.lower import lower
from giantstep.derivations.mean_field.ridge_regression import ridge_regression
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

a, b, h = sp.symbols("a b h", positive=True)
x, y, w = sp.symbols("x y w", positive=True)
z = sp.Symbol("z", real=True)


def mean(f):
    return GaussianExpectation(f, z)


@pytest.fixture(scope="module")
def flat():
    """x - y is determined by h (x - y) = 0 alone, x + y well; NumPy's file of it, too."""
    both, apart = (1 + a) / 2 + mean(sp.tanh((x + y) * z) ** 2) / 8, (x - y) * (1 - h) / 2
    system = SaddlePointSystem.from_fixed_point(
        {x: both + apart, y: both - apart},
        name="flat",
        parameters=(a, h),
        outputs={"total": x + y, "product": x * y},
    )
    kernel, names = lower(system), {}
    exec(compile(kernel.source("numpy"), "flat", "exec"), names)
    return kernel, names["solve_point"]


@pytest.mark.parametrize("target", ["process", "numpy"])
@pytest.mark.parametrize(("big", "small"), [(0.3, 1e-8), (2.0, 1e-5), (8.0, 1e-3)])
def test_outputs_that_do_not_see_a_flat_direction_keep_their_digits(flat, target, big, small):
    kernel, solve_point = flat
    precise = kernel.solve(a=big, h=small, digits=30, progress=False)
    if target == "numpy":
        found = solve_point({"a": big, "h": small}, rtol=1e-13)
    else:
        solution = kernel.solve(a=big, h=small, rtol=1e-13)
        found = {name: (v, solution.errors[name]) for name, v in solution.values.items()}
    for name, (value, error) in found.items():
        assert abs(float(value - precise[name])) <= error, name
    # The product is flat to second order.
    assert found["total"][1] <= 1e-11 * found["total"][0]
    assert found["product"][1] <= 1e-11 * found["product"][0]
    assert 1e-15 / small <= found["x"][1] / found["x"][0] <= 1e-12 / small


def test_equations_that_follow_from_others_are_solved_again():
    # y comes from x and w from both, each in a block of its own; x is as badly determined as 1/h.
    system = SaddlePointSystem.from_fixed_point(
        {
            x: x * (1 - h) + h * (1 + a) * mean(sp.cosh(sp.sqrt(x) * z / 4)),
            y: 1 + x * mean(sp.tanh(y * z) ** 2),
            w: 1 / (1 + w * x * y),
        },
        name="follows",
        parameters=(a, h),
        outputs={"difference": x - y, "steep": sp.exp(8 * w * x)},
    )
    kernel = lower(system)
    point = {"a": 0.5, "h": 1e-6}
    found, precise = kernel.solve(**point), kernel.solve(**point, digits=30, progress=False)
    for name, value in found.values.items():
        assert abs(float(value - precise[name])) <= found.errors[name], name
    assert found.errors["y"] > 1e-12
    relative = {name: error / abs(found[name]) for name, error in found.errors.items()}
    assert relative["steep"] > 2 * relative["w"]


def test_terms_of_unknowns_that_follow_explicitly_cancel():
    # qhat = α (ρ - 2m + q)/(1 + V)² is 1e-7, its terms are of order one.
    kernel = lower(ridge_regression())
    point = {"alpha": 7.925, "ridge": 0.0014, "signal_power": 0.3589, "noise_variance": 0.0}
    found, precise = kernel.solve(**point), kernel.solve(**point, digits=25, progress=False)
    names = {}
    exec(compile(kernel.source("numpy"), "ridge", "exec"), names)
    for value, error in (
        (found.q_hat, found.errors["q_hat"]), names["solve_point"](point)["q_hat"],
    ):  # fmt: skip
        assert abs(float(value - precise["q_hat"])) <= error <= 1e-12
