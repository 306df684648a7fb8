"""How well spiked random features stand for the network: the spread of the bulk covariance."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

import giantstep as gs
from giantstep.errors import ApproximationWarning

LARGE = {"student": "sin", "teacher": "sin", "step_size": 3, "alpha0": 1}


def test_value_of_a_pair_in_closed_form():
    # E sin^2 = (1 - e^-2)/2, E sin^4 = 3/8 - e^-2/2 + e^-8/8.
    model = gs.SpikedRandomFeatures(**LARGE)
    second = (1 - math.exp(-2)) / 2
    fourth = 3 / 8 - math.exp(-2) / 2 + math.exp(-8) / 8
    c = model.spike.bulk_variance
    assert model.bulk_spread == pytest.approx(
        (c - 1) / c * math.sqrt(fourth / second**2), rel=1e-13
    )


def test_models_with_a_large_spread_warn_where_they_are_solved():
    model = gs.SpikedRandomFeatures(**LARGE)
    for ask in (
        lambda: model.solve(alpha=3, ridge=0.1),
        lambda: model.at(width=100).curve(alpha=[3], ridge=0.1).to_dataset(),
    ):
        with pytest.warns(ApproximationWarning, match=r"relative spread of 0\.56") as record:
            ask()
        assert len(record) == 1 and record[0].filename == __file__
    assert "relative spread of 0.56" in str(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximationWarning)
        model.solve(alpha=3, ridge=0.1)


def test_small_spreads_do_not_warn():
    model = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    model.solve(alpha=3, ridge=0.1)
    assert 0 < model.bulk_spread < 0.01 and "no effect of it" in str(model)
    assert replace(model, step_size=0.0).bulk_spread == 0
    assert replace(model, alpha0=math.inf).bulk_spread == 0
    direct = gs.SpikedRandomFeatures.from_parameters(
        "tanh", "sin", spike_strength=1, bulk_variance=5, alignment=0.5
    )
    assert direct.bulk_spread == 0 and "spread" not in str(direct)


def test_labels_without_a_fourth_moment():
    model = gs.SpikedRandomFeatures("erf", "exp(z**2/8)", step_size=0.5, alpha0=4)
    assert model.bulk_spread == math.inf


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(
    st.sampled_from([("relu", "relu"), ("softplus", "tanh"), ("erf", "relu"), ("z**2/2", "z")]),
    st.floats(0.01, 5),
    st.floats(1e-2, 1e8),
    st.floats(0, 2),
)
def test_the_spread_is_a_number_and_falls_with_more_samples(pair, step, alpha0, noise):
    model = gs.SpikedRandomFeatures(
        *pair, step_size=step, alpha0=alpha0, noise_variance=noise, allow_non_odd=True
    )
    more = replace(model, alpha0=2 * alpha0)
    assert 0 < more.bulk_spread < math.inf
    assert more.bulk_spread * more.spike.bulk_variance < (
        model.bulk_spread * model.spike.bulk_variance
    )
