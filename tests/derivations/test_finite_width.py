"""The finite-width correction: what the ridge penalty takes for the mean of the readout."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

import giantstep as gs
from giantstep.errors import ParameterError


@pytest.fixture(scope="module")
def model():
    return gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)


def test_the_correction_vanishes_like_one_over_p(model):
    limit = model.solve(alpha=1, ridge=0.1).test_error
    gaps = [
        p * (model.solve(alpha=1, ridge=0.1, width=p).test_error - limit) for p in (10**5, 10**7)
    ]
    assert gaps[0] == pytest.approx(gaps[1], rel=1e-4)
    assert model.solve(alpha=1, ridge=0.1, width=10**15).test_error == pytest.approx(
        limit, rel=1e-14
    )


def test_all_methods_take_a_width(model):
    one = model.solve(alpha=2, ridge=0.1, width=300).test_error
    assert model.solve_many(alpha=[2], ridge=[0.1], width=300).values["test_error"][0] == one
    curve = model.at(width=300).curve(alpha=[2], ridge=0.1).to_dataset()
    assert float(curve.test_error[0]) == one and curve.attrs["width"] == 300
    assert model.at_width(300).kernel().solve(alpha=2, ridge=0.1).test_error == one
    assert model.at_width(300).solve(alpha=2, ridge=0.1).test_error == one


@pytest.mark.slow
def test_digits_agree_with_floats(model):
    found = model.solve(alpha=0.9, ridge=0.1, width=1000, digits=20, progress=False)
    # The energy identity, to the digits.
    more = model.at_width(1000).solve(alpha=0.9, ridge=0.1, digits=30, progress=False)
    assert abs(found.test_error - more.test_error) < 1e-21
    assert float(found.test_error) == pytest.approx(
        model.solve(alpha=0.9, ridge=0.1, width=1000).test_error, rel=1e-13
    )


@settings(max_examples=10, deadline=None)
@given(st.floats(0.1, 10), st.floats(1e-3, 10), st.floats(0.1, 2), st.integers(1, 10**6))
def test_energy_identity(alpha, ridge, r, width):
    # derived here: d/dλ of the regularised loss per neuron is q2/2, at fixed width.
    model = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=r, bulk_variance=1.1, alignment=0.8, width=width
    )

    def loss(x):
        found = model.solve(alpha=alpha, ridge=x)
        return alpha * found.training_error + x * found.q2

    h = 1e-4 * ridge
    slope = (loss(ridge + h) - loss(ridge - h)) / (2 * h)
    assert slope == pytest.approx(model.solve(alpha=alpha, ridge=ridge).q2, rel=1e-5)


@pytest.mark.slow
def test_without_a_mean_direction_nothing_changes():
    plain = gs.SpikedRandomFeatures("erf", "erf", step_size=0)
    assert plain.solve(alpha=2, ridge=0.1, width=10).test_error == pytest.approx(
        plain.solve(alpha=2, ridge=0.1).test_error, rel=1e-14
    )
    with_mean = gs.SpikedRandomFeatures("relu", "relu", step_size=0, allow_non_odd=True)
    assert with_mean.solve(alpha=2, ridge=0.1, width=10).test_error > 1.001 * (
        with_mean.solve(alpha=2, ridge=0.1).test_error
    )


@pytest.mark.parametrize("width", [0, -3, 2.5, "many", math.nan, True, math.inf])
def test_bad_widths_are_refused(model, width):
    with pytest.raises(ParameterError, match="width"):
        model.solve(alpha=1, ridge=0.1, width=width)
    with pytest.raises(ParameterError, match="width"):
        replace(model, width=width)
