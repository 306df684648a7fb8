"""Numbers and folders that users give: what is refused, and by which name."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from giantstep.errors import ParameterError
from giantstep.numeric.arguments import (
    MOST_SEEDS,
    checked_switch,
    finite_number,
    moderate_number,
    nonnegative_number,
    positive_number,
    real_array,
    real_number,
    whole_number,
)
from giantstep.numeric.networks.sizes import (
    check_memory,
    memory_of_machine,
    row_counts,
    sample_count as count,
)
from giantstep.numeric.seed_store import store_folder


@pytest.mark.parametrize(
    ("name", "ratio", "dimension", "message"),
    [
        ("alpha", 0.2, 3, r"dimension=3 is too small for alpha=0.2.*\n  use dimension = 5 or"),
        ("beta", 0.001, 100, r"use dimension = 991 or dimension >= 50000"),
        ("alpha0", np.inf, 100, "alpha0 must be positive and finite, got inf; a simulation"),
        ("alpha", -1.0, 100, "alpha must be positive"),
        ("alpha", 1e-300, 30, "alpha=1e-300 is too small .* at most 1e"),
        ("alpha0", 5e-324, 30, "alpha0=4.94066e-324 is too small"),
        ("alpha", 1e300, 30, "alpha=1e.300 is too large .* at most 1e"),
        ("beta", 1.0, 10**18, "beta=1 is too large .* dimension=1e"),
        ("alpha", 1e-5, 30, "dimension=30 is too small .*\n  use dimension = 99010 or"),
    ],
)
def test_numbers_of_samples_are_whole(name, ratio, dimension, message):
    with pytest.raises(ParameterError, match=message):
        count(name, ratio, dimension)


@pytest.mark.parametrize(("ratio", "dimension"), [(0.2, 5), (0.101, 100), (1 / 3, 300), (2, 1)])
def test_close_numbers_of_samples_are_rounded(ratio, dimension):
    assert count("alpha", ratio, dimension) == round(ratio * dimension)


@given(shares=st.lists(st.integers(1, 30), min_size=1, max_size=6), width=st.integers(40, 200))
@settings(max_examples=25, deadline=None)
def test_row_counts_are_the_nearest_with_the_right_sum(shares, width):
    fractions = np.array(shares) / sum(shares)
    if min(fractions) * width < 1:
        return
    counts = np.array(row_counts(tuple(fractions), width))
    assert counts.sum() == width
    assert np.all(np.abs(counts - fractions * width) < 1)


def test_networks_that_no_memory_holds_are_refused_with_what_would_fit():
    there = memory_of_machine()
    check_memory("sizes", there // 4, 4)
    with pytest.raises(ParameterError, match=r"with 4 workers.*\n  at most 3 workers fit"):
        check_memory("sizes", there // 4 + there // 100, 4)
    with pytest.raises(ParameterError, match="one network does not fit; use a smaller dimension"):
        check_memory("sizes", 2 * there, 1)


@pytest.mark.parametrize("store", [3, 1.5, True, b"folder", ["folder"], "a" * 1000, "\0"])
def test_a_store_is_a_path(store):
    with pytest.raises(ParameterError, match="store "):
        store_folder(store)
    with pytest.raises(ParameterError, match="is a file"):
        store_folder(__file__)
    assert store_folder(None) is None and store_folder("a") == Path("a")


def test_whole_numbers_end_with_those_of_arrays():
    with pytest.raises(ParameterError, match=r"dimension must be at most 2\*\*63 - 1"):
        whole_number("dimension", 10**400)
    with pytest.raises(ParameterError, match="seeds must be at most 1000000"):
        whole_number("seeds", 10**7, maximum=MOST_SEEDS)
    assert whole_number("dimension", 2**63 - 1) == 2**63 - 1


@pytest.mark.parametrize(
    "values", [[], {"a": 1}, [1, [2]], "1", [np.inf], 1j, Fraction(10**400, 3)]
)
def test_real_arrays_are_refused_by_name(values):
    with pytest.raises(ParameterError, match="kappa must"):
        real_array("kappa", values)


NOT_NUMBERS = ("1", None, True, 1j, [1.0], np.array([1.0]), float("nan"))


@pytest.mark.parametrize(
    ("check", "right", "wrong", "words"),
    [
        (real_number, (-np.inf, 0, Fraction(1, 4)), (10**400,), "is too large for a float"),
        (finite_number, (-2.5, np.float32(1)), (np.inf,), "must be finite"),
        (positive_number, (5e-324, 1), (0, -1, np.inf), "must be positive and finite"),
        (moderate_number, (1e-15, 9e14), (9e-16, 1.1e15), "must be between 1e-15 and 1e.15 here"),
        (nonnegative_number, (0, 1e308), (-5e-324, np.inf), "must be >= 0 and finite"),
        (whole_number, (1, np.int64(2), 2**63 - 1), (0, -1), "must be >= 1"),
    ],
)
def test_numbers_are_checked_by_name(check, right, wrong, words):
    for value in right:
        assert check("x", value) == value
    for value in wrong:
        with pytest.raises(ParameterError, match=f"^x {words}"):
            check("x", value)
    for value in NOT_NUMBERS:
        with pytest.raises(ParameterError, match=r"^x must be a (whole )?number, got"):
            check("x", value)


def test_what_is_neither_true_nor_false_is_refused():
    assert checked_switch("x", np.True_) is True and checked_switch("x", False) is False
    for value in ("no", 1, None):
        with pytest.raises(ParameterError, match=r"^x must be True or False, got"):
            checked_switch("x", value)
