"""The model as users meet it: arguments, defaults, files, limits, refusals."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp
import xarray as xr
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

import giantstep as gs
from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
)


@pytest.fixture(scope="module")
def model():
    return gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)


def test_learning_curve_is_labelled_and_survives_a_file(model, tmp_path):
    curve = model.curve(alpha=[0.2, 3], ridge=0.1).to_dataset()
    assert curve.test_error.dims == ("alpha",)
    assert_allclose(curve.test_error, [0.04848290191950338608932, 0.03251820801462915072783], 1e-13)
    curve.to_netcdf(tmp_path / "curve.nc")
    loaded = xr.load_dataset(tmp_path / "curve.nc")
    assert curve.equals(loaded)
    assert loaded.attrs["best_linear_error"] == curve.attrs["best_linear_error"]
    again = gs.SpikedRandomFeatures.from_json(loaded.attrs["model"])
    assert again == model


def test_a_student_without_linear_part_makes_no_spike():
    # h_1 vanishes exactly, though not visibly: no spike, not a tiny one.
    model = gs.SpikedRandomFeatures("erf(z) - 2*z/sqrt(3*pi)", "sin")
    assert model.spike.spike_strength == 0
    assert model.solve(alpha=1, ridge=0.1).test_error > model.best_linear_error


def test_expressions_and_activations_are_accepted():
    t = sp.Symbol("t")
    by_expression = gs.SpikedRandomFeatures(sp.tanh(t), gs.activation("sin"))
    assert (by_expression.student, by_expression.teacher) == ("tanh", "sin")
    own = gs.SpikedRandomFeatures("2*tanh(z)", "sin", step_size=0)
    plain = gs.SpikedRandomFeatures("tanh", "sin", step_size=0)
    # sigma -> t sigma with ridge -> t^2 ridge changes nothing.
    assert_allclose(
        own.solve(alpha=1.5, ridge=0.4).test_error,
        plain.solve(alpha=1.5, ridge=0.1).test_error,
        rtol=1e-13,
    )


@settings(max_examples=8)
@given(
    st.floats(0.05, 20),
    st.floats(1e-4, 10),
    st.floats(0.01, 2),
    st.floats(0.2, 2),
    st.floats(-1, 1),
)
def test_sign_of_the_spike_does_not_matter(alpha, ridge, r, c, gamma):
    def error(sign):
        return (
            gs.SpikedRandomFeatures.from_parameters(
                "erf", "sin", spike_strength=sign * r, bulk_variance=c, alignment=sign * gamma
            )
            .solve(alpha=alpha, ridge=ridge)
            .test_error
        )

    assert_allclose(error(1), error(-1), rtol=1e-9)


def test_small_steps_approach_plain_random_features():
    plain = gs.SpikedRandomFeatures("erf", "erf", step_size=0).solve(alpha=2, ridge=0.1).test_error
    steps = [1e-3, 1e-2, 1e-1]
    found = [
        gs.SpikedRandomFeatures("erf", "erf", step_size=s).solve(alpha=2, ridge=0.1) for s in steps
    ]
    gaps = [plain - solution.test_error for solution in found]
    # Any spike makes the free direction m available: the limit of small steps is below the plain
    # error, by an amount that no longer depends on the step.
    assert all(gap > 0 for gap in gaps)
    assert_allclose(gaps[0], gaps[1], rtol=0.05)


def test_infinite_first_sample_complexity():
    model = gs.SpikedRandomFeatures("erf", "erf", step_size=4.081, alpha0=math.inf)
    assert model.spike.alignment == 1 and model.spike.bulk_variance == 1
    # The limit is approached like 1/alpha0.
    errors = [
        gs.SpikedRandomFeatures("erf", "sin", step_size=2, alpha0=a)
        .solve(alpha=1, ridge=0.1)
        .test_error
        for a in (1e4, 1e6, math.inf)
    ]
    assert_allclose((errors[1] - errors[2]) / (errors[0] - errors[2]), 0.01, rtol=0.01)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"student": "tahn"}, ExpressionError, "student.*tanh"),
        ({"teacher": "sin("}, ExpressionError, "teacher"),
        ({"student": "__import__('os')"}, ExpressionError, "student"),
        ({"student": "exp(z**2)"}, AssumptionError, r"E\[f\(z\)\*\*2\] < oo"),
        ({"student": "relu"}, AssumptionError, "allow_non_odd"),
        ({"beta": 0}, ParameterError, "beta must be positive"),
        ({"beta": math.nan}, ParameterError, "beta must be a number"),
        ({"alpha0": -1}, ParameterError, "alpha0 must be positive"),
        ({"step_size": -1}, ParameterError, "step_size"),
        ({"step_size": math.inf}, ParameterError, "step_size"),
        ({"noise_variance": -0.1}, ParameterError, "noise_variance"),
        ({"beta": "1"}, ParameterError, "beta must be a number"),
        ({"step_size": 1e-200}, ParameterError, "step_size=1e-200.*use 0"),
        ({"step_size": 1e200}, ParameterError, "spike_strength=.*step_size=1e.200.*at most 1000"),
        ({"alpha0": 1e-300}, ParameterError, "alpha0=1e-300.*more alpha0"),
        ({"leading_order": "no"}, ParameterError, "leading_order must be one of published, compl"),
        ({"leading_order": True}, ParameterError, "leading_order must be one of published, compl"),
        ({"leading_order": np.array([])}, ParameterError, "leading_order must be one of publish"),
        ({"correlated_norms": "no"}, ParameterError, "correlated_norms must be True or False"),
        ({"allow_non_odd": 1}, ParameterError, "allow_non_odd must be True or False"),
        ({"cache_folder": 3}, ParameterError, "cache_folder must be a path"),
        ({"direct_parameters": 3}, ParameterError, "direct_parameters.*from_parameters"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, error, match):
    with pytest.raises(error, match=match):
        gs.SpikedRandomFeatures(**{"student": "tanh", "teacher": "sin", **arguments})


def test_a_given_spike_is_checked_again_and_has_no_step():
    direct = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=1, bulk_variance=1, alignment=0.5
    )
    assert (direct.step_size, direct.alpha0) == (0, math.inf)
    by_hand = dataclasses.replace(direct.direct_parameters, orthogonal_alignment=0.1)
    assert dataclasses.replace(direct, direct_parameters=by_hand) == direct
    with pytest.raises(ParameterError, match=r"leading_order=.complete. is about a gradient step"):
        dataclasses.replace(direct, leading_order="complete")
    for name, value in (("spike_strength", 1e6), ("bulk_variance", 1e12)):
        with pytest.raises(ParameterError, match=f"{name}=1.0e.*too large"):
            dataclasses.replace(
                direct,
                direct_parameters=dataclasses.replace(direct.direct_parameters, **{name: value}),
            )


def test_a_student_that_jumps_has_no_step_but_random_features():
    with pytest.raises(AssumptionError, match="jumps"):
        gs.SpikedRandomFeatures("sign", "sin", step_size=1)
    still = gs.SpikedRandomFeatures("sign", "sin", step_size=0)
    assert still.solve(alpha=1, ridge=0.1).test_error > still.best_linear_error
    assert still.simulate(dimension=20, alpha=[1], seeds=2, progress=False).sizes["seed"] == 2


def test_the_corrected_theory_is_offered_where_it_is_another_one():
    corrected = gs.SpikedRandomFeatures("tanh", "sin").complete()
    assert corrected is not None and corrected.leading_order == "complete"
    # Found by an implementation of the reduced equations apart from this package.
    assert_allclose(corrected.solve(alpha=3, ridge=0.1).test_error, 0.03150, rtol=0, atol=5e-6)
    assert corrected.complete() is None
    assert gs.SpikedRandomFeatures("tanh", "sin", step_size=0).complete() is None
    relu = gs.SpikedRandomFeatures("relu", "sin", allow_non_odd=True, alpha0=math.inf)
    # h_3 = 0 and h*_2 = 0, and no samples that scatter.
    assert relu.complete() is None
    shifted = gs.SpikedRandomFeatures(
        "tanh(z + 1/2)", "z + He(3, z)/6", step_size=2, allow_non_odd=True, alpha0=math.inf
    )
    assert shifted.complete() is not None


def test_the_former_name_of_the_leading_order_is_an_alias():
    with pytest.warns(DeprecationWarning, match="correlated_norms is now leading_order"):
        model = gs.SpikedRandomFeatures("tanh", "sin", correlated_norms=np.True_)
    assert model == gs.SpikedRandomFeatures("tanh", "sin", leading_order="complete")
    with pytest.warns(DeprecationWarning, match="leading_order"):
        assert model.correlated_norms
    with pytest.warns(DeprecationWarning, match="leading_order"):
        assert model != gs.SpikedRandomFeatures("tanh", "sin", correlated_norms=False)


# (student, teacher, step, published, complete) at alpha0 = inf, alpha = 2, beta = 1, ridge = 0.1;
# of code apart from this package. Networks of d = 800: .0866(14), 1.239(22), .3751(53).
STRETCHED = [
    ("relu", "relu", 2.0, 0.1052, 0.0850),
    ("z + He(2, z)/2", "z + He(2, z)/2", 1.0, 0.3995, 0.3717),
]


@pytest.mark.slow
@pytest.mark.parametrize(("student", "teacher", "step", "published", "complete"), STRETCHED)
def test_rows_of_uneven_students_are_stretched(student, teacher, step, published, complete):
    options = {"step_size": step, "alpha0": math.inf, "allow_non_odd": True}
    plain = gs.SpikedRandomFeatures(student, teacher, **options)
    stretched = plain.complete()
    for model, expected in ((plain, published), (stretched, complete)):
        assert model.solve(alpha=2, ridge=0.1).test_error == pytest.approx(
            expected, abs=6e-4 * expected
        )
    # Infinitely many samples are the limit of many.
    many = dataclasses.replace(stretched, alpha0=1e4).solve(alpha=2, ridge=0.1).test_error
    assert_allclose(many, stretched.solve(alpha=2, ridge=0.1).test_error, rtol=2e-3)
    farther = dataclasses.replace(stretched, alpha0=1e250).spike.stretch
    assert_allclose(farther, stretched.spike.stretch, atol=1e-100)


@pytest.mark.parametrize(("student", "teacher"), [("relu", "sin"), ("z + He(4, z)/9", "relu")])
def test_without_a_stretch_the_complete_theory_is_the_published_one(student, teacher):
    options = {"step_size": 2.0, "alpha0": math.inf, "allow_non_odd": True}
    plain = gs.SpikedRandomFeatures(student, teacher, **options)
    complete = dataclasses.replace(plain, leading_order="complete")
    assert complete.spike.stretch == (0, 0, 0) and complete.complete() is None
    assert (
        complete.solve(alpha=2, ridge=0.1).test_error == plain.solve(alpha=2, ridge=0.1).test_error
    )


def test_the_stretch_is_that_of_a_column_of_the_bulk():
    # The resolvent of one large matrix, without the theory of one column taken out.
    model = gs.SpikedRandomFeatures(
        "relu", "relu", step_size=3, alpha0=6, beta=0.7, noise_variance=0.2,
        allow_non_odd=True, leading_order="complete",
    )  # fmt: skip
    values = model.solve_many(alpha=[1.3], ridge=[0.2]).values
    found, spike, d = SimpleNamespace(**{k: v[0] for k, v in values.items()}), model.spike, 1500
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((int(0.7 * d), d)) * math.sqrt(spike.bulk_variance / d)
    unstretched = rows[:, :2].copy()
    t = np.array([spike.stretch[:2], spike.stretch[1:]])
    seen = unstretched @ (np.eye(2) + t)
    omega = rows[:, 2:] @ rows[:, 2:].T + np.outer(seen[:, 1], seen[:, 1])
    resolvent = 0.2 + found.V2_hat, found.V1_hat
    inverse = np.linalg.inv(resolvent[0] * np.eye(len(rows)) + resolvent[1] * omega)
    readout = inverse @ unstretched @ [found.theta_hat, found.psi_hat]
    assert_allclose(unstretched.T @ readout, [found.theta, found.psi], rtol=0, atol=0.04)
    # Squared norm of the readout: its mean, and noise of the covariance q1_hat Ω + q2_hat.
    noise = found.q1_hat * np.sum((inverse @ omega) * inverse) + found.q2_hat * np.sum(inverse**2)
    square = readout @ readout + noise / len(rows)
    assert square == pytest.approx(found.q2, rel=0.05)


def test_what_is_not_derived_for_stretched_rows_is_refused_by_name():
    model = gs.SpikedRandomFeatures("relu", "relu", allow_non_odd=True, leading_order="complete")
    for call in (model.bounds, model.asymptotics, lambda: model.spectrum(alpha=2)):
        with pytest.raises(ParameterError, match=r"stretched; use leading_order=.published"):
            call()
    with pytest.raises(ParameterError, match=r"small steps.*stretched; use leading_order"):
        model.expansion("small_step", 2, alpha=2, ridge=0.1)
    with pytest.raises(AssumptionError, match=r"no third moment.*leading_order"):
        dataclasses.replace(model, teacher="exp(z**2/5)")


def test_a_law_of_letters_reads_what_it_writes():
    model = gs.VocabularyFeatures.from_law(
        "tanh", "sin", law="exp(-a**2)/sqrt(pi)", support=(-4, 4), nodes=4, width=100
    )
    again = gs.VocabularyFeatures.from_json(model.to_json())
    assert again.classes == model.classes
    assert all(getattr(again.law, k).tolist() == getattr(model.law, k).tolist()
               for k in ("points", "weights"))  # fmt: skip


@pytest.mark.parametrize("value", [1e-300, 1e22])
@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("alpha", lambda m, v: m.spectrum(alpha=v)),
        ("alpha", lambda m, v: m.sensitivities(alpha=v, ridge=0.1)),
        ("alpha", lambda m, v: m.optimum(over="ridge", alpha=v)),
        ("alpha", lambda m, v: m.optimum(over="step_size", alpha=v, ridge=0.1)),
        ("alpha", lambda m, v: m.optimum(over=["ridge", "step_size"], alpha=v)),
        ("alpha", lambda m, v: m.optimum(over=["ridge", "step_size"], alpha=[1.0, v])),
        ("ridge", lambda m, v: m.sensitivities(alpha=1.5, ridge=v)),
        ("ridge", lambda m, v: m.optimum(over="step_size", alpha=1.5, ridge=v)),
        ("bounds", lambda m, v: m.optimum(over="ridge", alpha=1.5, bounds=(1e-3, v))),
        ("bounds", lambda m, v: m.optimum(
            over=["ridge", "step_size"], alpha=1.5, bounds={"step_size": (v, 1e3)})),
    ],
)  # fmt: skip
def test_analyses_refuse_points_that_are_all_rounding(model, name, ask, value):
    with pytest.raises(ParameterError, match=rf"{name} must be between 1e-15 and 1e.15 here"):
        ask(model, value)


@pytest.mark.parametrize("alpha0", [1e200, 1e308, math.inf])
def test_huge_batches_of_the_step_are_answered_or_refused(alpha0):
    try:
        found = gs.SpikedRandomFeatures("erf", "sin", alpha0=alpha0).solve(alpha=1.5, ridge=0.1)
    except ParameterError as error:
        assert f"alpha0={alpha0:g}" in str(error) and "math.inf" in str(error)
    else:
        assert math.isfinite(found.test_error)


def test_sizes_of_simulations_are_checked_before_any_work(model):
    for options, words in (
        ({"alpha": [1e-300]}, "alpha=1e-300 is too small"),
        ({"alpha": [1e300]}, "alpha=1e.300 is too large"),
        ({"dimension": 10**400}, "dimension must be at most"),
        ({"store": 3}, "store must be a path or None, got 3"),
    ):
        with pytest.raises(ParameterError, match=words):
            model.simulate(**{"dimension": 30, "alpha": [1.0], "progress": False, **options})


# ---------------------------------------------------------------------- files of all models


STEP = gs.OneGradientStep("erf", "erf", alpha=2.0, beta=1.5, step_size=4.0)
SPIKED = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=math.inf)
MODELS = [
    SPIKED,
    SPIKED.at(width=300, leading_order="complete"),
    gs.SpikedRandomFeatures.from_parameters(
        "relu", "sin", spike_strength=1.2, bulk_variance=1.1, alignment=0.9, bulk="orthonormal"
    ),
    gs.VocabularyFeatures(
        "tanh", "sin", [1, -0.5], [0.25, 0.75], step_size=3, alpha0=math.inf, width=600,
        biases={0.5: 0.5, -0.25: 0.5},
    ),
    gs.VocabularyFeatures.from_parameters(
        "erf", "x1*x2", spike_strengths=[[1.2, 0.1], [-0.6, 0.2]], bulk_variances=[1.1, 1.02],
        fractions=[0.4, 0.6], alignment=[[0.9, 0.1], [0.0, 0.7]], biases=(0.1, 0.2), beta=0.7,
    ),
    SPIKED.with_loss("huber(0.5)", width=200, metrics={"far": "abs(y - x)"}),
    SPIKED.with_loss("logistic", labels="sign"),
    gs.OneGradientStep("relu", "z + 1", 0.1, 1 / 3, 1e-7, 2, alpha0=math.inf, loss="full",
                       centre=True),
    STEP,
    STEP.at_width(600),
    gs.MultiIndex("sin", 0.1),
    gs.OverlapDynamics(student="erf", teacher="erf(x1)", alpha0=math.inf, step_size=0.5),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_a_model_is_written_and_read(model, tmp_path):
    text = model.to_json()
    # Plain JSON, without the Infinity of Python.
    json.loads(text, parse_constant=pytest.fail)
    assert type(model).from_json(text) == model == pickle.loads(pickle.dumps(model))
    assert hash(pickle.loads(pickle.dumps(model))) == hash(model)
    model.save(tmp_path / "model.json")
    assert type(model).from_json((tmp_path / "model.json").read_text("utf-8")) == model


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_what_is_no_such_model_is_refused(model):
    kind, document = type(model), json.loads(model.to_json())
    for text, words in (
        ("{", "not a model written by to_json"),
        (None, "not a model written by to_json"),
        ("[]", "has no entry 'model'"),
        (json.dumps({**document, "model": "something"}), "has no entry 'model'"),
        (json.dumps({**document, "colour": "red"}), "not a model written by to_json.*colour"),
    ):
        with pytest.raises(ParameterError, match=words):
            kind.from_json(text)


def test_arguments_outside_their_range_are_refused_as_such():
    for model, wrong, words in (
        (SPIKED, {"alpha0": -1}, "alpha0 must be positive"),
        (STEP, {"alpha": math.nan}, "alpha must be"),
        (STEP, {"student": None}, "student"),
    ):
        with pytest.raises(ParameterError, match=words):
            type(model).from_json(json.dumps({**json.loads(model.to_json()), **wrong}))
