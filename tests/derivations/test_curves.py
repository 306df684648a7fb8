"""Curves of every model over any of its parameters, and the calls of the last release."""

import functools
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings, strategies as st

import giantstep as gs
from giantstep.deprecations import by_name, renamed
from giantstep.errors import ApproximationWarning, ConvergenceError, ParameterError

SPIKED: Any = gs.SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4, noise_variance=0.1)
GIVEN: Any = gs.SpikedRandomFeatures.from_parameters(
    "erf", "sin", spike_strength=1.2, bulk_variance=1.1, alignment=0.9
)
LETTERS: Any = gs.VocabularyFeatures("erf", "sin", letters=[1, -0.5], fractions=[0.4, 0.6])
GIVEN_LETTERS: Any = gs.VocabularyFeatures.from_parameters(
    "erf", "sin", spike_strengths=[1.2, -0.6], bulk_variances=[1.1, 1.02], fractions=[0.4, 0.6],
    alignment=0.9,
)  # fmt: skip
STEP: Any = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, noise_variance=0.25)
FULL: Any = STEP.at(teacher="tanh", alpha0=3, loss="full")


@functools.cache
def fitted(loss="quantile(0.4)"):
    """A readout; to derive its equations while tests are collected takes seconds."""
    return GIVEN.at(noise_variance=0.1).with_loss(loss)


@pytest.mark.parametrize(
    ("model", "output", "fixed", "axes"),
    [
        (SPIKED, "test_error", {"alpha": 1.5}, {"ridge": [0.1, 1.0], "step_size": [0.0, 2.0]}),
        (SPIKED, "training_error", {"ridge": 0.1, "beta": 0.5}, {"alpha": [2.0, 0.5]}),
        (SPIKED, "test_error", {"ridge": 0.1, "alpha": 1.0}, {"width": [100, 400]}),
        (SPIKED, "V1", {"ridge": 0.1, "alpha": 1.0}, {"alpha0": [6.0, np.inf]}),
        (GIVEN, "m", {"ridge": 0.1, "alpha": 1.0}, {"alignment": [1.0, 0.5], "beta": [1, 2]}),
        (LETTERS, "test_error", {"ridge": 0.1}, {"alpha": [1.0, 2.0], "width": [200, 800]}),
        (STEP, "risk_trained", {"ridge": 0.1}, {"alpha": [1.0, 2.0], "step_size": [0.0, 3.0]}),
        (FULL, "risk_trained", {"ridge": 0.1}, {"alpha": [1.0, 2.0]}),
        (STEP, "objective_initial", {"step_size": 1}, {"ridge": [0, 1e-10, 1], "alpha": [1, 4]}),
    ],
    ids=lambda value: "" if hasattr(value, "curve") else str(value),
)
def test_a_curve_has_the_solution_of_every_point(model, output, fixed, axes):
    found = model.curve(**fixed, **axes)
    assert found.axes == tuple(axes)
    assert found[output].shape == tuple(map(len, axes.values()))
    asked = model._asked
    for index in np.ndindex(*found[output].shape):
        values = {name: axis[i] for (name, axis), i in zip(axes.items(), index, strict=True)}
        point = {**fixed, **values}
        own = {name: point.pop(name) for name in [*point] if name not in asked}
        solution = model.at(**own).solve(**point)
        name = output.removeprefix("risk_")
        expected = getattr(solution, name, None)
        expected = solution.order_parameters[name] if expected is None else expected
        # Several points are one batch, whose sums run in another order.
        assert found[output].to_numpy()[index] == pytest.approx(float(expected), rel=1e-12)


SLOPES: Any = {
    "step": (STEP, {}),
    "step of the full loss": (FULL, {}),
}
"""Models, and where they are differentiated; a step and a loss are in test_sensitivities.py."""
QUICK = ("step of the full loss",)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in SLOPES]
)
def test_derivatives_are_limits_of_differences_of_curves(name):
    model, point = SLOPES[name]
    at = {**point, "ridge": 0.1}
    found = model.sensitivities(**at)
    axes = {n for n in found.parameters if n in model._axes()}
    # Letters have parameters of their own, those of the rows.
    assert len(axes) >= min(len(found.parameters), 3)
    for name in axes:
        given = at.get(name) or found.point.get(name)
        given = getattr(model, name, given) if name not in at else given
        h = 1e-3 * given
        parameters = {**at, name: given + h * np.array([-2.0, -1.0, 1.0, 2.0])}
        curve = model.curve(**parameters, rtol=1e-12)
        for output in {*model._names().shown} & {*found.outputs}:
            v = curve[output].to_numpy()
            slope = (v[0] - 8 * v[1] + 8 * v[2] - v[3]) / (12 * h)
            # h^4 times a fifth derivative, and rounding 1e-14 over h.
            assert found[output, name] == pytest.approx(slope, rel=1e-7, abs=1e-9), (output, name)


@pytest.mark.slow
def test_derivatives_at_other_values_and_with_the_penalty_of_the_paper():
    found = STEP.sensitivities(ridge=gs.paper_ridge(0.3), beta=0.5, wrt=["ridge", "alpha"])
    assert found == STEP.at(beta=0.5).sensitivities(ridge=1.2, wrt=["ridge", "alpha"])
    assert found.parameters == ("ridge", "alpha") and found.ridge == 1.2
    axes = found.plot("risk_trained")
    assert [text.get_text() for text in axes.get_yticklabels()] == ["ridge", "alpha"]
    digits = STEP.sensitivities(ridge=1.2, beta=0.5, wrt="alpha", digits=30)
    key = ("risk_trained", "alpha")
    assert abs(float(digits[key]) - found[key]) <= found.error(*key)
    population = STEP.sensitivities(ridge=0.1, alpha0=np.inf)
    assert population.excluded == {"alpha0": "alpha0 is infinite"}


MANY: Any = gs.VocabularyFeatures("erf", "sin", letters=[1, -0.5, 2, 3], fractions=[0.25] * 4)


@pytest.mark.parametrize(
    ("model", "arguments", "said"),
    [
        (STEP, {}, "ridge is missing: give ridge=..."),
        (STEP, {"ridge": 0}, "ridge must be positive"),
        (STEP, {"ridge": 1, "wrt": "alpha0"}, "no parameter of OneGradientStep is named 'alpha0'"),
        (STEP, {"ridge": 1, "width": 9}, "no parameter of this model is named 'width'"),
        (STEP, {"ridge": 1, "alpha0": np.inf, "wrt": "alpha0"}, "alpha0: alpha0 is infinite"),
        (SPIKED, {"alpha": 1, "ridge": 1, "wrt": "width"}, "named 'width'; there are: alpha, beta"),
        (
            SPIKED, {"alpha": 1, "ridge": 1, "step_size": 0, "wrt": "step_size"},
            "no derivative with respect to step_size: errors jump at step_size = 0",
        ),
        (MANY, {"alpha": 1, "ridge": 1}, r"at most 3 letters, .*, got 4; solve\(\) of "),
    ],
)  # fmt: skip
def test_derivatives_that_there_are_not(model, arguments, said):
    with pytest.raises(ParameterError, match=said):
        model.sensitivities(**arguments)


@pytest.mark.slow
def test_losses_have_curves_over_their_parameters():
    found = fitted().curve(alpha=[1.0, 2.0], ridge=0.1, tau=[0.4, 0.7])
    assert found.axes == ("alpha", "tau")
    assert float(found.test_error[1, 1]) == pytest.approx(
        fitted().at(tau=0.7).solve(alpha=2.0, ridge=0.1).test_error, rel=1e-12
    )
    assert "loss" not in found.to_dataset().attrs
    own = GIVEN.with_loss(gs.convex_loss("log(cosh(a*(x - y)))/a", a=2))
    assert str(own.at(a=1.0).convex_loss) == "log(cosh(a*(x - y)))/a with a = 1"


def test_every_point_of_a_curve_is_judged():
    with pytest.warns(ApproximationWarning, match="relative spread of 0.35"):
        SPIKED.curve(alpha=1, ridge=0.1, alpha0=[1.0, 6.0])
    with pytest.warns(ApproximationWarning, match="relative spread") as caught:
        SPIKED.at(alpha0=1.0).curve(alpha=[1, 2], ridge=0.1)
        SPIKED.at(alpha0=1.0).solve(alpha=1, ridge=0.1)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_limit_that_no_network_reaches_is_told():
    # a readout of size m = 1161 along the mean of the features; networks of width 320 have .731(12)
    far = gs.SpikedRandomFeatures(
        "sin(2*z)", "sin(3*z/2)", step_size=4, alpha0=8, beta=0.8, noise_variance=0.2
    )
    words = "its test error is 0.374, that of p = 1000 neurons 0.724"

    def told(ask):
        with pytest.warns(ApproximationWarning) as caught:
            ask()
        found = [w for w in caught if "infinite width" in str(w.message)]
        assert all(w.filename == __file__ for w in found)
        return [str(w.message) for w in found]

    (text,) = told(lambda: far.solve(alpha=3, ridge=0.05))
    assert f"alpha=3, ridge=0.05 {words}" in text
    (text,) = told(lambda: far.at(beta=2).curve(beta=[0.8], alpha=3, ridge=0.05))
    assert f"beta=0.8, alpha=3, ridge=0.05 {words}" in text
    # Twice the error, farther away than the other point of the curve
    ridge = gs.paper_ridge([40.0, 0.04 / 3])
    (text,) = told(lambda: far.curve(alpha=[0.5, 3], ridge=ridge, product=False))
    assert (
        "alpha=0.5, paper_ridge=40 its test error is 0.232, that of p = 1000 neurons 0.49" in text
    )
    # small penalties: the mean adds more than what the norm is, and .25 of the test error
    small = gs.SpikedRandomFeatures(
        "sin(2*z)", "sin(3*z/2)", step_size=0.767, alpha0=8.86, beta=0.98, noise_variance=0.1
    )
    (text,) = told(lambda: small.solve(alpha=14, ridge=1e-4))
    assert not told(lambda: far.solve(alpha=3, ridge=0.05, width=320))
    assert not told(lambda: far.curve(alpha=3, ridge=0.05, width=[320]))


def test_letters_are_dimensions_and_merge_nowhere_on_a_curve():
    data = LETTERS.curve(alpha=[1.0, 2.0], ridge=0.1).to_dataset()
    assert data["q1"].dims == ("alpha", "letter", "other_letter")
    solution = LETTERS.solve(alpha=2.0, ridge=0.1)
    np.testing.assert_allclose(data["q1"][1], solution.q1, rtol=1e-12)
    np.testing.assert_allclose(data["bulk_variance"], [c.bulk_variance for c in LETTERS.classes])
    with pytest.raises(ParameterError, match=r"at step_size = 0, .* 1 different letters, .* 2"):
        LETTERS.curve(alpha=1, ridge=0.1, step_size=[0, 1])
    assert "bias" not in LETTERS.curve(alpha=1, ridge=0.1, step_size=[1, 2]).to_dataset()


@settings(max_examples=8, deadline=None)
@given(
    penalty=st.floats(1e-3, 1e3), alpha=st.floats(0.2, 5), beta=st.floats(0.2, 5)
)  # fmt: skip
def test_the_penalty_of_the_paper_is_converted_where_it_is_used(penalty, alpha, beta):
    of_paper, ridge = gs.paper_ridge(penalty), penalty * alpha / beta
    spiked, step = SPIKED.at(beta=beta), STEP.at(alpha=alpha, beta=beta)
    pairs = [
        (spiked.solve(alpha=alpha, ridge=of_paper), spiked.solve(alpha=alpha, ridge=ridge)),
        (step.solve(ridge=of_paper), step.solve(ridge=ridge)),
    ]
    for found, expected in pairs:
        name = "test_error" if hasattr(found, "test_error") else "trained"
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-11)
    curve = spiked.curve(alpha=[alpha, 1.0], ridge=of_paper)
    assert float(curve.test_error[0]) == pytest.approx(pairs[0][1].test_error, rel=1e-11)


def test_the_penalty_of_the_paper_with_digits():
    with pytest.raises(ParameterError, match=r"rounds as a float; with digits= or certify="):
        SPIKED.solve(alpha=1.5, ridge=gs.paper_ridge(0.1), digits=20)
    exact = STEP.solve(ridge=gs.paper_ridge(0.3), digits=25)
    assert str(exact.ridge).startswith("0.4") and exact.digits == 25
    with pytest.raises(ParameterError, match=r"one number here; curve\(\) takes arrays"):
        SPIKED.solve(alpha=1.5, ridge=gs.paper_ridge([0.1, 1]))


def test_points_in_pairs():
    found = SPIKED.curve(alpha=[1.0, 2.0], ridge=[0.1, 1.0], product=False)
    assert found.test_error.dims == ("point",) and found.axes == ("alpha", "ridge")
    assert float(found.test_error[1]) == SPIKED.solve(alpha=2.0, ridge=1.0).test_error
    with pytest.raises(ParameterError, match="one length"):
        SPIKED.curve(alpha=[1.0, 2.0], ridge=[0.1], product=False)
    with pytest.raises(ParameterError, match="alpha and ridge must have one length"):
        SPIKED.solve_many(alpha=[1.0, 2.0, 3.0], ridge=[0.1, 1.0])


def test_points_without_solution(monkeypatch):
    whole = gs.SpikedRandomFeatures.solve_many

    def failing(self, *, alpha, **options):
        if np.any(np.asarray(alpha) == 2.0):
            raise ConvergenceError("no solution at alpha = 2")
        return whole(self, alpha=alpha, **options)

    monkeypatch.setattr(gs.SpikedRandomFeatures, "solve_many", failing)
    kept = SPIKED.curve(alpha=[1.0, 2.0, 3.0], ridge=0.1, failures="keep")
    assert kept["converged"].to_numpy().tolist() == [True, False, True]
    assert np.isnan(kept.test_error[1]) and np.isinf(kept["quadrature_error"][1])
    with pytest.raises(ConvergenceError, match=r"no solution at alpha = 2\n.*1 of which") as caught:
        SPIKED.curve(alpha=[1.0, 2.0, 3.0], ridge=0.1)
    assert float(caught.value.state["test_error"][2]) == float(kept.test_error[2])
    with pytest.raises(ParameterError, match="failures must be"):
        SPIKED.curve(alpha=1, ridge=0.1, failures="drop")


def test_stores_files_and_executors(tmp_path):
    asked = {"alpha": [1.0, 2.0], "ridge": [0.1, 1.0]}
    plain = SPIKED.curve(**asked).to_dataset()
    first = SPIKED.curve(**asked, store=tmp_path / "store").to_dataset()
    again = SPIKED.curve(**asked, store=tmp_path / "store").to_dataset()
    with ThreadPoolExecutor(2) as pool:
        elsewhere = SPIKED.curve(**asked, executor=pool).to_dataset()
    for other in (first, again, elsewhere):
        xr.testing.assert_identical(other, plain)
    written = SPIKED.curve(**asked, out=tmp_path / "curve.nc").to_dataset()
    xr.testing.assert_equal(written.load(), plain)


@pytest.mark.parametrize("model", [SPIKED, LETTERS, STEP], ids=type)
def test_curves_are_documents(model, tmp_path):
    asked = {"ridge": [0.1, 1.0]} if model is STEP else {"ridge": [0.1, 1.0], "alpha": 2}
    curve = model.curve(**asked)
    curve.save(tmp_path / "curve.json")
    again = gs.Curve.load(tmp_path / "curve.json")
    assert again.dataset.identical(curve.dataset) and again.axes == curve.axes
    curve.to_dataset().to_netcdf(tmp_path / "curve.nc")
    lines = str(curve).splitlines()
    assert lines[0].split("│")[0].strip() == "ridge" and len(lines) == 5
    for wrong in ('"shown": "loss"', '"seen": "a"'):
        with pytest.raises(ParameterError, match="no curve written by"):
            gs.Curve.from_json(re.sub('"shown": "[^"]*"', wrong, curve.to_json()))


def test_long_curves_are_cut_and_have_no_other_columns():
    curve = SPIKED.curve(alpha=np.linspace(1, 2, 40), ridge=0.1)
    long = str(curve).splitlines()
    assert len(long) == 2 + 12 + 1 + 1 and "…" in long[8]
    for ask, error, words in (
        (lambda: curve["loss"], KeyError, "there are: "),
        (lambda: curve[["ridge"]], TypeError, "takes lists"),
        (lambda: curve.loss, AttributeError, "loss"),
    ):
        with pytest.raises(error, match=words):
            ask()


def test_figures():
    axes = SPIKED.curve(alpha=[0.5, 1, 2], ridge=0.1).plot()
    assert axes.get_xlabel() == r"sample complexity $\alpha = n/d$"
    over = SPIKED.curve(alpha=1.5, ridge=np.geomspace(1e-3, 10, 9))
    axes = over.plot(["test_error", "training_error"])
    assert axes.get_xscale() == "log" and r"\alpha = 1.5" in axes.texts[0].get_text()
    assert r"\lambda" not in axes.texts[0].get_text()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["test error", "training error", "best linear predictor"]
    kernel = GIVEN.kernel().curve(alpha=[0.5, 1, 2], ridge=0.1)
    assert kernel.plot().get_ylabel() == "test error" and kernel.shown[0] == "test_error"
    family = SPIKED.curve(alpha=[0.5, 1, 2], ridge=[0.1, 1.0]).plot("training_error")
    labels = [text.get_text() for text in family.get_legend().get_texts()]
    assert labels == [r"ridge penalty $\lambda$ = 0.1", r"ridge penalty $\lambda$ = 1"]
    grid = SPIKED.curve(ridge=np.geomspace(0.01, 10, 6), beta=np.linspace(0.5, 2, 5), alpha=1)
    axes = grid.plot()
    assert axes.get_xscale() == "log" and axes.get_ylabel() == r"aspect ratio $\beta = p/d$"
    risks = STEP.curve(step_size=[0, 1, 2], ridge=gs.paper_ridge(0.05)).plot()
    assert [t.get_text() for t in risks.get_legend().get_texts()][:2] == [
        "random features $W_0$", "after the step"
    ]  # fmt: skip
    assert r"\lambda_B = 0.05" in risks.texts[0].get_text()
    assert r"\eta" not in risks.texts[0].get_text()
    with pytest.raises(ParameterError, match="no output named 'loss'; there are: test_error"):
        over.plot("loss")
    with pytest.raises(ParameterError, match="without axes has no figure"):
        SPIKED.curve(alpha=1, ridge=1).plot()
    with pytest.raises(ParameterError, match=r"over 3 parameters has no figure; .* alpha, as in"):
        SPIKED.curve(ridge=[1, 2], beta=[1, 2], alpha=[1, 2]).plot()
    with pytest.raises(ParameterError, match="components or networks of its own"):
        LETTERS.curve(alpha=[1, 2], ridge=0.1).plot("q1")


@pytest.mark.parametrize(
    ("model", "arguments", "said"),
    [
        (SPIKED, {"alpha": 1}, "ridge must be given, a number or an array; other parameters are"),
        (STEP, {"alpha": [1, 2]}, "ridge must be given"),
        (SPIKED, {"alpha": 1, "ridge": 1, "gamma": 1}, "no parameter of a curve is named 'gamma'"),
        (SPIKED, {"alpha": 1, "ridge": 1, "alignment": 1}, "named 'alignment'"),
        (GIVEN, {"alpha": 1, "ridge": 1, "step_size": 1}, "named 'step_size'"),
        (GIVEN, {"alpha": 1, "ridge": 1, "alignment": [1.5]}, "alignment must be"),
        (
            GIVEN_LETTERS,
            {"alpha": 1, "ridge": 1, "step_size": 1},
            "of a curve is named 'step_size'",
        ),
        (SPIKED, {"alpha": [], "ridge": 1}, "alpha must hold at least one number"),
        (SPIKED, {"alpha": [1, -1], "ridge": 1}, "alpha must be positive and finite, got -1"),
        (SPIKED, {"alpha": 1, "ridge": "x"}, "ridge must be a number or a sequence"),
        (SPIKED, {"alpha": 1, "ridge": [[1]]}, "one-dimensional"),
        (SPIKED, {"alpha": 1, "ridge": 1, "width": [10.5]}, "width must be a whole number"),
        (SPIKED, {"alpha": 1, "ridge": 1, "out": "curve.txt"}, "out must end in"),
        (SPIKED, {"alpha": 1, "ridge": 1, "rtol": 0}, "rtol must be positive"),
        (SPIKED, {"alpha": 1, "ridge": 1, "workers": 0}, "workers"),
        (
            SPIKED,
            dict.fromkeys(("alpha", "ridge", "beta"), np.ones(1000)),
            r"the product of alpha, ridge, beta has 1e\+09 points; at most 1e\+08",
        ),
    ],
)
def test_bad_curves(model, arguments, said):
    with pytest.raises(ParameterError, match=said):
        model.curve(**arguments)


@pytest.mark.parametrize(
    ("model", "arguments", "said"),
    [
        (SPIKED, {"alignment": 0.5}, "no parameter of this model is named 'alignment'"),
        (GIVEN, {"step_size": 1}, "no parameter of this model is named 'step_size'"),
        (LETTERS, {"direct_parameters": None}, "named 'direct_parameters'"),
        (STEP, {"width": 3}, "named 'width'"),
        (SPIKED, {"beta": -1}, "beta must be positive"),
        ("huber(0.3)", {"delta": -1}, "δ of the Huber loss must be positive"),
        ("huber(0.3)", {"tau": 0.5}, "named 'tau'"),
    ],
    ids=str,
)
def test_models_refuse_parameters_that_they_have_not(model, arguments, said):
    model = fitted(model) if isinstance(model, str) else model
    with pytest.raises(ParameterError, match=said):
        model.at(**arguments)


OLD_AND_NEW = {
    "solve": (lambda: SPIKED.solve(2, 0.1), lambda: SPIKED.solve(alpha=2, ridge=0.1)),
    "letters": (lambda: LETTERS.solve(2, 0.1), lambda: LETTERS.solve(alpha=2, ridge=0.1)),
    "loss": (lambda: fitted().solve(2, 0.1), lambda: fitted().solve(alpha=2, ridge=0.1)),
    "risk": (lambda: STEP.risk(0.1), lambda: STEP.solve(ridge=0.1)),
    "paper": (
        lambda: STEP.risk(paper_ridge=0.1), lambda: STEP.solve(ridge=gs.paper_ridge(0.1)),
    ),
    "steps": (
        lambda: STEP.several_steps(3).risk(0.1), lambda: STEP.several_steps(3).solve(ridge=0.1),
    ),
    "ridgeless": (lambda: STEP.ridgeless(20), lambda: STEP.ridgeless(digits=20)),
    "peak": (
        lambda: STEP.interpolation_peak(0.1), lambda: STEP.interpolation_peak(ridge=0.1),
    ),
    "limits": (lambda: STEP.limits(0.1), lambda: STEP.limits(ridge=0.1)),
    "series": (
        lambda: STEP.expansion("large_alpha", paper_ridge=0.1),
        lambda: STEP.expansion("large_alpha", ridge=gs.paper_ridge(0.1)),
    ),
    "spike": (lambda: STEP.weight_spike(None, False), lambda: STEP.weight_spike()),
    "large steps": (lambda: STEP.large_steps(12), lambda: STEP.large_steps(digits=12)),
    "exact spike": (
        lambda: SPIKED.certified_spike(20), lambda: SPIKED.certified_spike(digits=20),
    ),
    "bias": (
        lambda: LETTERS.learned_bias(2, 0.1, points=5),
        lambda: LETTERS.learned_bias(alpha=2, ridge=0.1, points=5),
    ),
    "kernel": (lambda: STEP.conjugate_kernel(True), lambda: STEP.conjugate_kernel(trained=True)),
    "sensitivities": (
        lambda: SPIKED.sensitivities(2, 0.1), lambda: SPIKED.sensitivities(alpha=2, ridge=0.1),
    ),
    "solve_many": (
        lambda: SPIKED.solve_many([1, 2], [0.1, 0.2]).values["q1"],
        lambda: SPIKED.solve_many(alpha=[1, 2], ridge=[0.1, 0.2]).values["q1"],
    ),
    "spectrum": (lambda: GIVEN.spectrum(2.0, 50), lambda: GIVEN.spectrum(alpha=2.0, points=50)),
    "networks": (
        lambda: SPIKED.simulate(20, [1.0], 0.1, seeds=1, progress=False)["test_error"],
        lambda: SPIKED.simulate(20, alpha=[1.0], ridge=0.1, seeds=1, progress=False)["test_error"],
    ),
    "network": (
        lambda: SPIKED.network(20, "sign").identity(),
        lambda: SPIKED.network(20, labels="sign").identity(),
    ),
    "curve": (
        lambda: SPIKED.learning_curve([1, 2], 0.1)["test_error"],
        lambda: SPIKED.curve(alpha=[1, 2], ridge=0.1)["test_error"].drop_vars("ridge"),
    ),
    "curve of letters": (
        lambda: LETTERS.learning_curve([1, 2], 0.1, width=300)["q1"],
        lambda: LETTERS.curve(alpha=[1, 2], ridge=0.1, width=300)["q1"].drop_vars("ridge"),
    ),
    "curve of a loss": (
        lambda: fitted().learning_curve([1, 2], 0.1)["test_error"],
        lambda: fitted()
        .curve(alpha=[1, 2], ridge=0.1, rtol=1e-10)["test_error"]
        .drop_vars("ridge"),
    ),
    "sweep of a kernel": (
        lambda: GIVEN.kernel().sweep(alpha=[1, 2], ridge=0.1)["test_error"],
        lambda: GIVEN.kernel().curve(alpha=[1, 2], ridge=0.1)["test_error"],
    ),
    "curve of risks": (
        lambda: STEP.risk_curve(paper_ridge=[0.1, 1], alpha=[1, 2])["risk_trained"],
        lambda: STEP.curve(ridge=gs.paper_ridge([0.1, 1]), alpha=[1, 2])["risk_trained"],
    ),
}  # fmt: skip
"""Calls of the last release, and what is written now."""


# Of losses and derivatives, which are derived and compiled first.
AFTER_DERIVING = ("loss", "curve of a loss", "sensitivities", "spectrum")


@pytest.mark.parametrize(
    "old",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in AFTER_DERIVING)) for n in OLD_AND_NEW],
)
def test_calls_of_the_last_release_still_answer(old):
    before, now = OLD_AND_NEW[old]
    with pytest.warns(DeprecationWarning, match="from now on") as caught:
        found = before()
    # The warning points at the caller, who sees it.
    assert {warning.filename for warning in caught} == {__file__}
    expected = now()
    if isinstance(expected, xr.DataArray):
        xr.testing.assert_identical(found, expected)
    else:
        assert str(found) == str(expected)


def _is_former(method):
    """Whether a method says what to write from now on, for itself or for its positions."""
    while method is not None:
        code = getattr(method, "__code__", None)
        if code is not None and code.co_filename == by_name.__code__.co_filename:
            return True
        method = getattr(method, "__wrapped__", None)
    return False


def test_every_former_call_has_a_row():
    several, kernel, large = STEP.several_steps(3), GIVEN.kernel(), STEP.large_steps()
    models = (SPIKED, LETTERS, fitted(), STEP, several, kernel, large)
    former = {
        name
        for model in models
        for name in dir(type(model))
        if not name.startswith("_") and _is_former(getattr(type(model), name, None))
    }
    tables = (OLD_AND_NEW, OLD_AND_NEW_FIGURES)
    rows = {name for table in tables for old, _ in table.values() for name in old.__code__.co_names}
    texts = [Path(__file__).read_text("utf-8")] + [
        Path(__file__).with_name(name).read_text("utf-8")
        for name in ("test_optimal.py", "test_one_step_optimal_ridge.py")
    ]
    # Figures and optima of models have tests of their own.
    elsewhere = set(re.findall(r"\.(plot|optimal_\w+)\(", "".join(texts)))
    assert len(former) > 20 and former - rows - elsewhere == set()


def test_figures_of_the_last_release():
    curve = SPIKED.curve(alpha=[1, 2], ridge=0.1)
    with pytest.warns(DeprecationWarning, match=r"plot\(\) is written curve\(...\).plot\("):
        axes = SPIKED.plot(curve.to_dataset())
    assert axes.get_title(loc="left") == curve.plot().get_title(loc="left")


OLD_AND_NEW_FIGURES = {
    "risk": (
        lambda: STEP.plot_risk("beta", [1, 2, 3], ridge=0.1),
        lambda: STEP.curve(beta=[1, 2, 3], ridge=0.1).plot(),
    ),
    "phases": (
        lambda: STEP.plot_phase("step_size", [0, 1, 2, 3, 4], "beta", [1, 2, 3, 4, 5], ridge=0.1),
        lambda: STEP.curve(step_size=[0, 1, 2, 3, 4], beta=[1, 2, 3, 4, 5], ridge=0.1).plot(),
    ),
    "singular values": (
        lambda: STEP.plot_singular_values(), lambda: STEP.weight_spike().plot(),
    ),
    "amplitudes": (
        lambda: STEP.large_steps().plot_amplitudes().axes[0],
        lambda: STEP.large_steps().plot("errors"),
    ),
}  # fmt: skip
"""Figures of the last release, and what draws them now."""


@pytest.mark.parametrize("old", OLD_AND_NEW_FIGURES)
def test_figures_have_become_those_of_results(old):
    before, now = OLD_AND_NEW_FIGURES[old]
    with pytest.warns(DeprecationWarning, match="from now on") as caught:
        found = before()
    assert {warning.filename for warning in caught} == {__file__}
    expected = now()
    assert found.get_title(loc="left") == expected.get_title(loc="left")
    assert found.get_title() == expected.get_title()
    labels = [[line.get_label() for line in axes.get_lines()] for axes in (found, expected)]
    assert labels[0] == labels[1] and len(found.collections) == len(expected.collections)


def test_names_of_parameters():
    class Model:
        @by_name("alpha", "ridge")
        def solve(self, *, alpha, ridge=1.0, digits=None):
            """Solve."""
            return alpha, ridge, digits

    with pytest.warns(DeprecationWarning, match=r"solve\(alpha=..., ridge=...\)"):
        assert Model().solve(2, 3, digits=4) == (2, 3, 4)
    with pytest.raises(TypeError, match=r"by position and by name"):
        Model().solve(2, alpha=3)
    with pytest.raises(TypeError, match=r"solve\(alpha=..., ridge=...\); 3 were given"):
        Model().solve(1, 2, 3)

    @renamed("now()")
    def before(x):
        return x

    with pytest.warns(DeprecationWarning, match=r"before\(\) is written now\(\) from now on"):
        assert before(3) == 3


def test_what_curves_have_can_be_optimised():
    model = LETTERS.at(width=300)
    found = model.optimum(over="ridge", of="q2[0]", alpha=2, bounds=(1e-2, 1e2), maximum=True)
    solution = model.solve(alpha=2, ridge=found.point["ridge"])
    assert found.output == pytest.approx(solution.q2[0], rel=1e-12)
    scan = model.curve(ridge=np.geomspace(1e-2, 1e2, 20), alpha=2)["q2"][:, 0]
    assert float(scan.max()) <= found.output * (1 + 1e-9)
    with pytest.raises(ParameterError, match="no output of VocabularyFeatures is named 'm'"):
        LETTERS.optimum(over="ridge", of="m", alpha=2)
    with pytest.raises(ParameterError, match="no parameter of ConvexReadout is named 'sigma'"):
        fitted().optimum(over="sigma", alpha=2, ridge=0.1)
