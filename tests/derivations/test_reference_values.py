"""Reference values of the spiked random features; that all printed digits are reached is evidence.

``reference.json`` of the package says where the values come from.
"""

import re

import pytest

from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
from giantstep.derivations.spiked_random_features.published import (
    reference_cases,
    reference_document,
)
from giantstep.derivations.spiked_random_features.solution import CONJUGATES, ORDER_PARAMETERS

CASES = {case.name: case for case in reference_cases()}
ERRORS = ("test_error", "training_error", "regularised_training_error")


def test_the_file_says_where_its_values_come_from():
    provenance = reference_document()["provenance"]
    assert "40-digit" in provenance["how"] and "Independent of giantstep" in provenance["how"]
    assert "2402.04980" in provenance["source"]


def test_every_case_is_complete():
    assert {name.split(",")[0] for name in CASES} == {f"A{k}" for k in range(1, 11)}
    short = {"A2, alpha=0.9", "A2, alpha=1.6", "A2, alpha=2.3"}
    for case in CASES.values():
        wanted = {*ERRORS, *ORDER_PARAMETERS}
        wanted |= set() if case.name in short else set(CONJUGATES)
        assert set(case.values) == wanted


def test_values_have_all_their_digits():
    exact_zeros = {"0.0"}
    for case in CASES.values():
        for text in case.values.values():
            mantissa = re.sub(r"e.*", "", text).replace(".", "").lstrip("-0")
            # Trailing zeros are not printed; two in a row happen once in a hundred.
            assert text in exact_zeros or 23 <= len(mantissa) <= 25


@pytest.mark.parametrize("name", CASES)
def test_float_kernel(name):
    case = CASES[name]
    solution = case.solve()
    deviations = case.deviations(solution)
    assert len(deviations) == len(case.values) >= 10
    # Reached: 1e-13 and better, but 3e-12 for the overlap theta of A6 (ridge 1e-6, V = 750000),
    # a difference of large terms. Its training error, 8.6e-12 itself, is good to 1e-12 relative.
    for quantity, deviation in deviations.items():
        assert deviation <= 1e-10, quantity
    assert deviations["test_error"] <= 1e-13
    assert solution.residual <= 1e-10


def test_tiny_training_error_is_good_in_relative_terms():
    case = CASES["A6"]
    solution = case.solve()
    assert solution.training_error == pytest.approx(8.628259198558812636e-12, rel=1e-11, abs=0)
    assert case.deviations(solution)["training_error"] <= 1e-11


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.takes_step])
def test_spike_after_the_step(name):
    case = CASES[name]
    spike = case.build().spike
    for quantity, text in case.spike.items():
        assert getattr(spike, quantity) == pytest.approx(float(text), rel=1e-15, abs=0)


def test_plain_random_features_near_their_lower_bound():
    # erf/erf without a step: (alpha, beta, lambda) = (1000, 1000, 1), and the bound for all.
    model = SpikedRandomFeatures("erf", "erf", step_size=0, beta=1000)
    assert model.solve(alpha=1000, ridge=1).test_error == pytest.approx(0.0402843, abs=5e-8)
    assert model.best_linear_error == pytest.approx(0.0401459, abs=5e-8)


def test_deviations_are_found():
    case = CASES["A8"]
    wrong = type(case)(case.name, case.model, case.alpha, "0.0100000001", case.spike, case.values)
    assert wrong.deviations(wrong.solve())["test_error"] > 1e-10
