"""What ``giantstep expand`` hands to a model, and what it prints beside the series."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from giantstep.derivations.expansions.expansion import Expansion
from giantstep.derivations.one_gradient_step.model import OneGradientStep
from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
from giantstep.runtime.precision import local_context

ONE = local_context(20).one
SERIES = Expansion(
    name="large_alpha",
    parameter="alpha",
    point=math.inf,
    exponents=(Fraction(0), Fraction(1)),
    coefficients={"initial": (ONE, ONE), "trained": (2 * ONE, ONE)},
    neglected={"initial": (Fraction(2), ONE), "trained": (Fraction(2), 3 * ONE)},
    remainder_order=Fraction(2),
    digits=20,
    fixed={"beta": 1.5},
    symbols={},
    region="",
    rests_on="",
    exact=lambda value, digits: {"initial": 0.0, "trained": 7.0},
)


@pytest.fixture
def asked(monkeypatch):
    found: list[tuple[Any, str, dict[str, Any]]] = []

    def expansion(model, name, **given):
        found.append((model, name, given))
        return SERIES

    for model in (OneGradientStep, SpikedRandomFeatures):
        monkeypatch.setattr(model, "expansion", expansion)
    return found


def test_every_flag_of_one_step_arrives(run, asked):
    code, _, err = run(
        "expand", "one-step", "large-alpha", "--student", "tanh", "--teacher", "relu", "--centre",
        "--beta", 1.25, "--alpha0", 3, "--step-size", 0.75, "--noise-variance", 0.5,
        "--loss", "full", "--ridge", 0.125, "--order", 3, "--digits", 17,
    )  # fmt: skip
    assert (code, err) == (0, "")
    ((model, name, given),) = asked
    assert name == "large_alpha"
    assert given == {"order": 3, "digits": 17, "ridge": 0.125, "formulas": False}
    assert (model.student, model.teacher, model.centre) == ("tanh", "relu", True)
    assert (model.beta, model.alpha0, model.step_size) == (1.25, 3, 0.75)
    assert (model.noise_variance, model.loss) == (0.5, "full")


def test_every_flag_of_spiked_random_features_arrives(run, asked):
    code, _, err = run(
        "expand", "srf", "small-step", "--student", "erf", "--teacher", "erf", "--alpha", 2,
        "--ridge", 0.25, "--alpha0", 4, "--beta", 1.5, "--noise", 0.5,
        "--order", 1, "--digits", 19,
    )  # fmt: skip
    assert (code, err) == (0, "")
    ((model, name, given),) = asked
    assert name == "small_step" and model.step_size == 0
    assert given == {"order": 1, "digits": 19, "ridge": 0.25, "alpha": 2.0}
    assert (model.alpha0, model.beta, model.noise_variance) == (4, 1.5, 0.5)


def test_the_table_compares_with_the_exact_solution(run, asked):
    code, text, err = run(
        "expand", "one-step", "large-alpha", "--ridge", 0.1, "--output", "trained", "--at", "4",
    )  # fmt: skip
    assert (code, err) == (0, "")
    # What is no flag stays as it is by default.
    ((model, _, _),) = asked
    assert (model.centre, model.loss, model.noise_variance) == (False, "half", 0)
    (row,) = (line for line in text.splitlines() if "│" in line and line.strip().startswith("4 "))
    # 2 + 1/4, the exact value, their difference, and 3/16.
    assert [cell.strip() for cell in row.split("│")] == ["4", "2.25", "7", "-4.8e+00", "1.9e-01"]
