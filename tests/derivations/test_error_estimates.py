"""The reported error of a solution is an upper bound of its true error, also in hard corners."""

from __future__ import annotations

import pytest

import giantstep as gs

# (student, teacher, r, c, gamma), (alpha, beta, ridge, noise); what makes each one hard.
CASES = [
    (("erf", "erf", 1.0, 1.15, 0.9), (1.5, 1.0, 0.1, 0.0), "smooth"),
    (("sin", "erf", 1.0, 1.05, 0.9), (1.0, 1.0, 1e-6, 0.0), "interpolation peak"),
    (("erf", "sin", 4.0, 0.3, 0.9), (0.13, 2.5, 1e-4, 0.0), "steep student, narrow bulk"),
    (("erf", "sign", 1.2, 1.0, 0.99), (2.0, 1.0, 0.1, 0.0), "steep teacher"),
    (("erf", "sign", 1.2, 1.0, 1.0), (2.0, 1.0, 0.1, 0.0), "jump in the outer integrand"),
    (("sign", "sign", 1.5, 1.2, 0.9), (2.0, 0.7, 0.2, 0.0), "jumps"),
    (("relu", "relu", 1.0, 1.1, 0.85), (1.5, 1.0, 0.1, 0.0), "kinks"),
    (("sin", "cos", 0.5, 1.0, 0.7), (1.3, 0.5, 0.01, 0.2), "odd and even"),
    (("He3", "sin", 1.0, 1.0, 0.5), (1.3, 2.5, 1e-3, 0.0), "polynomial growth"),
    (("erf", "He3", 2.5, 1.5, -0.8), (0.04, 2.5, 1e-4, 0.2), "negative alignment, few samples"),
    (("erf", "erf", 3**0.5, 1.0, 1.0), (50.0, 1.0, 1e-3, 0.0), "nearly perfect learning"),
]

# Many digits of these take some ten seconds each.
SLOW = ("steep student, narrow bulk", "steep teacher")
# model.solve(alpha, ridge, digits=18).test_error where that takes more than a minute.
PRECISE = {"nearly perfect learning": 9.73377913829615759e-35}


@pytest.mark.parametrize(
    ("spiked", "point", "why"),
    [
        pytest.param(*case, id=case[2], marks=pytest.mark.slow if case[2] in SLOW else ())
        for case in CASES
    ],
)
def test_true_error_is_below_the_reported_one(spiked, point, why):
    student, teacher, r, c, gamma = spiked
    alpha, beta, ridge, noise = point
    model = gs.SpikedRandomFeatures.from_parameters(
        student, teacher, spike_strength=r, bulk_variance=c, alignment=gamma, beta=beta,
        noise_variance=noise,
    )  # fmt: skip
    solution = model.solve(alpha, ridge)
    precise = PRECISE.get(why)
    if precise is None:
        precise = model.solve(alpha, ridge, digits=18).test_error
    true_error = abs(float(solution.test_error - precise))
    assert true_error <= solution.quadrature_error
    # A bound that says nothing would be honest too.
    assert solution.quadrature_error <= 1e-9 * max(float(precise), 1e-3)


def test_estimate_bounds_the_error_of_a_rule_that_is_too_coarse(monkeypatch):
    # With a coarse step and no refinement the quadrature error dominates rounding by far.
    from giantstep.numeric import kernel_arrays, saddle_point_solver

    model = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    exact = model.solve(1.5, 0.1).test_error
    monkeypatch.setattr(saddle_point_solver, "MOST_REFINEMENTS", 0)
    errors = []
    for step in (0.8, 0.6, 0.5, 0.4, 0.3):
        monkeypatch.setattr(kernel_arrays, "_STEP_PER_WIDTH", step)
        with monkeypatch.context() as context:
            # Inner rules still need their refinements.
            context.setattr(kernel_arrays, "converged_tables", _inner_tables)
            solution = model.solve(1.5, 0.1)
        errors.append(abs(solution.test_error - exact))
        assert errors[-1] <= solution.quadrature_error
    assert errors[0] > 1e-6  # the test would be empty if every rule were exact
    assert errors[-1] < 1e-12


def _inner_tables(module, values, x):
    from giantstep.numeric import quadrature

    rules = {
        slot: quadrature.inner_rule(kind, argument, 1)
        for slot, (kind, argument) in module.inner_rules(x, *values).items()
    }
    return module.tables(x, *values, rules)
