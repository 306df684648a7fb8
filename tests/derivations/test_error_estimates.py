"""The reported error of a solution is an upper bound of its true error, also in hard corners."""

from __future__ import annotations

import math
from types import ModuleType

import mpmath
import numpy as np
import pytest

import giantstep as gs
from giantstep.derivations.spiked_random_features.derive import TABLE_PARAMETERS
from giantstep.derivations.spiked_random_features.physics import (
    IDENTIFIERS,
    kappa,
    spiked_free_energy,
)
from giantstep.runtime import levels, refinement
from giantstep.runtime.levels import Tables
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.lowering.tables import table_source

# A model of its own, and its digits, for every kind of integrand.
pytestmark = pytest.mark.slow

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
    (("sin(25*z) + z", "erf", 1.0, 1.0, 0.9), (1.5, 1.0, 0.1, 0.0), "fast oscillation"),
    (("sin(9*z)*cos(7*z) + tanh(z)", "erf", 0.5, 2.0, 0.9), (1.5, 1.0, 0.1, 0.0), "and a pole"),
]

# model.solve(alpha, ridge, digits=18).test_error where that takes long.
PRECISE = {
    "nearly perfect learning": 9.73377913829615759e-35,
    "fast oscillation": 0.163741154173611178,
}


@pytest.mark.parametrize(("spiked", "point", "why"), CASES, ids=[case[2] for case in CASES])
def test_true_error_is_below_the_reported_one(spiked, point, why):
    student, teacher, r, c, gamma = spiked
    alpha, beta, ridge, noise = point
    model = gs.SpikedRandomFeatures.from_parameters(
        student, teacher, spike_strength=r, bulk_variance=c, alignment=gamma, beta=beta,
        noise_variance=noise,
    )  # fmt: skip
    solution = model.solve(alpha=alpha, ridge=ridge)
    precise = PRECISE.get(why)
    if precise is None:
        precise = model.solve(alpha=alpha, ridge=ridge, digits=18).test_error
    true_error = abs(float(solution.test_error - precise))
    assert true_error <= solution.quadrature_error
    # A bound that says nothing would be honest too.
    assert solution.quadrature_error <= 1e-9 * max(float(precise), 1e-3)


def oscillating(generator):
    """Return an oscillating student as text, and as [(a, w)]: the sum of a exp(iwz) is it less z.

    Frequencies from 0.1 to 60.
    """
    waves = [f"{10**x:.3g}" for x in generator.uniform(-1.0, math.log10(60), 2)]
    kinds = generator.choice(["sin", "cos"], 2)
    first, second = (
        [(0.5, float(w)), (0.5, -float(w))]
        if kind == "cos"
        else [(-0.5j, float(w)), (0.5j, -float(w))]
        for kind, w in zip(kinds, waves, strict=True)
    )
    texts = [f"{kind}({w}*z)" for kind, w in zip(kinds, waves, strict=True)]
    if generator.random() < 0.5:
        return " + ".join([*texts, "z"]), first + second
    products = [(a * b, v + w) for a, v in first for b, w in second]
    return f"{'*'.join(texts)} + z", products


def coefficients(terms, mean, variance):
    """Return E f, E f' and the residual variance of f(x) = z + sum of a exp(iwz), x ~ N."""
    mean, variance = mpmath.mpf(mean), mpmath.mpf(variance)

    def average(w):
        return mpmath.exp(1j * w * mean - w**2 * variance / 2)

    zeroth = mean + sum(a * average(w) for a, w in terms).real
    first = 1 + sum(1j * a * w * average(w) for a, w in terms).real
    square = sum(a * b * average(mpmath.mpf(v) + w) for a, v in terms for b, w in terms).real
    square += 2 * sum(a * (mean + 1j * w * variance) * average(w) for a, w in terms).real
    square += mean**2 + variance
    return zeroth, first, square - zeroth**2 - variance * first**2


def test_tables_of_oscillating_students_are_those_of_closed_forms():
    generator = np.random.default_rng(1)
    x = np.array([0.0, 0.37, -1.3, 2.9])
    for _ in range(20):
        student, terms = oscillating(generator)
        strength, variance = generator.uniform(0.2, 2.0), generator.uniform(0.3, 5.0)
        definitions = spiked_free_energy(activation(student), activation("z"))
        source = table_source(
            {f: d for f, d in definitions.free_energy.definitions.items() if "mu" in str(f)},
            node=kappa, identifiers=IDENTIFIERS, parameters=TABLE_PARAMETERS,
        )  # fmt: skip
        module = ModuleType("tables")
        exec(source, module.__dict__)
        known = {"spike_strength": strength, "bulk_variance": variance}
        values = [np.float64(known.get(IDENTIFIERS[p], 0.5)) for p in TABLE_PARAMETERS]
        found = Tables(module, values)(x)
        with mpmath.workdps(40):
            exact = [coefficients(terms, mpmath.mpf(strength) * p, variance) for p in x]
            # Slopes are as large as the highest frequency.
            size = 1 + max(abs(w) for _, w in terms)
            for k, name in enumerate(("mu_0", "mu_1", "mu_2_squared")):
                missed = max(abs(a - b[k]) for a, b in zip(found[name], exact, strict=True))
                assert missed < 4e-15 * size, (student, name)


def test_estimate_bounds_the_error_of_a_rule_that_is_too_coarse(monkeypatch):
    # With a coarse step and no refinement the quadrature error dominates rounding by far.
    model = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    exact = model.solve(alpha=1.5, ridge=0.1).test_error
    monkeypatch.setattr(
        refinement, "rule_following", lambda _, wanted, *__: np.full(len(wanted), -1)
    )
    errors = []
    for step in (0.8, 0.6, 0.5, 0.4, 0.3):
        monkeypatch.setattr(levels, "FIRST_STEP", step)
        solution = model.solve(alpha=1.5, ridge=0.1)
        errors.append(abs(solution.test_error - exact))
        assert errors[-1] <= solution.quadrature_error
    assert errors[0] > 1e-6  # the test would be empty if every rule were exact
    assert errors[-1] < 1e-12
