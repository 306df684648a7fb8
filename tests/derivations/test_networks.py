"""Networks from texts, and what is made of their measurements."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import AssumptionError, ExpressionError, ParameterError

SMALL = {"dimension": 30, "width": 20}


def step(**changes):
    """Return a network that takes one step."""
    given = {**SMALL, "steps": 1, "step_samples": 120, "step_size": 1.5}
    return gs.Network("tanh", "sin", **{**given, **changes})


@pytest.fixture(scope="module")
def found():
    """Return a small simulation with everything measured."""
    return gs.simulate(
        step(), ["errors", "overlaps", "spike"], alpha=[2, 0.5], ridge=0.1, seeds=4, progress=False
    )


def test_texts_expressions_and_functions_are_the_same_network():
    z = sp.Symbol("z", real=True)
    wanted = step().train(seed=3).rows
    for student, teacher in (
        ("tanh(z)", "sin(x1)"), (sp.tanh(z), gs.activation("sin")), ("tanh", gs.target("sin(x1)")),
    ):  # fmt: skip
        made = gs.Network(student, teacher, **SMALL, steps=1, step_samples=120, step_size=1.5)
        np.testing.assert_allclose(made.train(seed=3).rows, wanted, rtol=1e-13)
    made = gs.Network(
        np.tanh, np.sin, student_derivative=lambda u: 1 - np.tanh(u) ** 2, **SMALL, steps=1,
        step_samples=120, step_size=1.5,
    )  # fmt: skip
    np.testing.assert_allclose(made.train(seed=3).rows, wanted, rtol=1e-13)
    assert made.description == "" and json.loads(step().description)["teacher"] == "sin"


def test_directions_follow_from_the_target():
    network = gs.Network("relu", "x1 + x1*x3", **SMALL)
    assert network.directions == 3
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(network.teacher(x), x[:, 0] + x[:, 0] * x[:, 2])


def test_the_loss_of_the_steps_is_that_of_the_catalogue():
    network = step(loss="huber(0.5)")
    labels, outputs = np.array([2.0, 0.2, -1.0]), np.array([0.0, 0.0, 0.0])
    np.testing.assert_allclose(network.loss_derivative(labels, outputs), [-0.5, -0.2, 0.5])
    squares = step(loss="square").train(seed=1).rows
    np.testing.assert_allclose(squares, step().train(seed=1).rows, rtol=1e-13)


def test_the_rank_one_step_has_the_slope_of_the_student():
    network = gs.Network(
        "erf", "sin", **SMALL, steps=1, step_samples=90, step_size=1.0, gradient="rank one"
    )
    # E erf'(z) = 2/sqrt(3 pi) for a standard normal z.
    assert network.slope == pytest.approx(2 / np.sqrt(3 * np.pi), rel=1e-14)


def test_the_page_lists_errors_with_standard_errors(found):
    text = str(found)
    assert "α" in text and "test error" in text and "±" in text
    assert "Simulation: mean and standard error of 4 networks of d = 30, p = 20." in text
    assert repr(found).startswith("SimulatedNetworks(4 networks, d = 30, p = 20: ")


def test_the_dataset_has_labelled_axes(found):
    data = found.to_dataset()
    assert data["test_error"].dims == ("seed", "alpha")
    assert data["alpha"].to_numpy().tolist() == [2, 0.5]
    np.testing.assert_array_equal(data["test_error"], found["test_error"][:, :, 0])
    np.testing.assert_allclose(
        data["test_error_standard_error"],
        found["test_error"][:, :, 0].std(axis=0, ddof=1) / 2,
    )
    assert data["q1"].dims == ("seed", "alpha") and data["spike_strength"].dims == ("seed",)
    several = gs.simulate(
        step(), {"errors": (0, 1)}, alpha=1, ridge=[0.1, 1], seeds=2, progress=False
    ).to_dataset()
    assert several["test_error"].dims == ("seed", "step", "alpha", "ridge")
    assert several["ridge"].to_numpy().tolist() == [0.1, 1]
    assert several["step"].to_numpy().tolist() == [0, 1]


def test_measurements_of_users_have_an_axis_of_steps():
    def norms(trained):
        return {
            "norm": np.linalg.norm(trained.layer.rows, axis=1)[:2],
            "largest": trained.layer.rows.max(),
        }

    two = step(steps=2)
    found = gs.simulate(two, {norms: (0, 2), "spike": (1, 2)}, seeds=2, progress=False)
    data = found.to_dataset()
    assert data["norm"].dims == ("seed", "step", "norm_0") and data["largest"].dims == (
        "seed",
        "step",
    )
    assert data["step"].to_numpy().tolist() == [0, 2]
    assert data["alignment"].dims == ("seed", "alignment_step")
    assert "largest" in str(found) and "1.0" in str(found)


def test_figures_have_a_theory_beside_the_networks(found):
    pytest.importorskip("matplotlib")
    model = gs.SpikedRandomFeatures("tanh", "sin", step_size=1.5, alpha0=4, beta=2 / 3)
    curve = model.curve(alpha=[0.5, 1, 2], ridge=0.1)
    axes = found.plot(curve)
    labels = axes.get_legend_handles_labels()[1]
    assert any("4 networks" in label for label in labels) and len(labels) >= 2
    alone = found.plot()
    assert len(alone.get_legend_handles_labels()[1]) == 1
    others = gs.simulate(step(), seeds=2, progress=False)
    assert {x.get_text() for x in others.plot().get_yticklabels()} >= {"alignment"}
    with pytest.raises(ParameterError, match="measure 'errors' with one ridge"):
        others.plot(curve)


def test_theory_and_networks_agree():
    network = gs.Network("tanh", "sin", dimension=200, width=200, rows="sphere")
    found = gs.simulate(network, alpha=[2], ridge=0.1, seeds=12, seed=5, progress=False)
    model = gs.SpikedRandomFeatures("tanh", "sin", step_size=0, alpha0=1)
    theory = model.solve(alpha=2, ridge=0.1)
    for name in ("test_error", "training_error"):
        deviation = found.mean(name).item() - getattr(theory, name)
        # Measured bias of some 1.5/d at this size.
        assert abs(deviation) < 4 * found.standard_error(name).item() + 1.5 / 200


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: gs.Network("sign", "sin", **SMALL, steps=1), AssumptionError, "it jumps"),
        (lambda: gs.Network("tanh(", "sin", **SMALL), ExpressionError, "student"),
        (lambda: gs.Network("tanh", "y9", **SMALL), ExpressionError, "teacher"),
        (lambda: gs.Network("tanh", "x1*x9", dimension=4, width=2), ParameterError, "directions"),
        (lambda: gs.Network("tanh", "sin", **SMALL, fractions=1.0), ParameterError,
         "fractions must be numbers"),
        (lambda: gs.Network("tanh", "sin", dimension=9, width=7, paired=True), ParameterError,
         "width must be even"),
        (lambda: step(loss="cubic"), ParameterError, "loss"),
        (lambda: gs.simulate(step(), "errors"), ParameterError, "give readout"),
        (lambda: gs.simulate(step(), ridge=0.1), ParameterError, "give alpha or samples"),
        (lambda: gs.simulate(step(), alpha=1, samples=3), ParameterError, "give one of them"),
        (lambda: gs.simulate(step(), alpha=1, loss="hinge"), ParameterError, "one number"),
        (lambda: gs.simulate(cast(Any, "tanh")), ParameterError, "network must be a Network"),
        (lambda: gs.simulate(step(), samples=5), ParameterError, "too few to hold out"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---------------------------------------------------------------------- options of simulators


SPIKED = gs.SpikedRandomFeatures("tanh", "sin", step_size=2, alpha0=4, noise_variance=0.1)
GIVEN = gs.SpikedRandomFeatures.from_parameters(
    "tanh", "sin", spike_strength=1.0, bulk_variance=1.1, alignment=0.8
)
LETTERS = gs.VocabularyFeatures(
    "tanh", "sin", letters=[1, -0.5], fractions=[0.5, 0.5], step_size=2, alpha0=4
)
ONE_STEP = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=4, noise_variance=0.1)
RUN = {"seeds": 3, "seed": 1, "progress": False}


def spiked(model=SPIKED, loss=None, labels="teacher", **options):
    """Test errors of readouts, networks first."""
    model = model if loss is None else model.with_loss(loss, labels=labels)
    return model.simulate(20, **{"alpha": [2, 0.5], "ridge": 0.1, **RUN, **options}).test_error


def one_step(**options):
    """Risks, networks first."""
    return ONE_STEP.simulate(20, **{"ridge": [0.01, 0.1], **RUN, **options}).risk


def giant(**options):
    """Overlaps of all rows after the last step."""
    given = {"dimension": 20, "samples": 200, "width": 16, "steps": 2, **RUN, **options}
    return gs.simulate_giant_steps("x1 + x1*x2", "tanh", **given).result.overlaps[:, -1]


def preprocessed(**options):
    """Shares of the gradient inside the target's space, means and errors."""
    given = {"dimension": 12, "samples": 400, "width": 30, **RUN, **options}
    found = gs.train_by_preprocessed_step("relu", "x1*x2", **given)
    return np.array([found.test_error.mean, found.relevant_share.mean])


# Each row: what is asked, plain, and with an option that changes the numbers.
CHANGES = {
    "seed": (spiked, {"seed": 2}),
    "penalty": (spiked, {"ridge": 1.0}),
    "rows that are given": (spiked, {"model": GIVEN}),
    "orthonormal rows": (spiked, {"model": GIVEN.at(bulk="orthonormal")}),
    "letters": (spiked, {"model": LETTERS}),
    "letters as features": (spiked, {"model": LETTERS, "equivalent": True}),
    "convex loss": (spiked, {"model": SPIKED, "loss": "huber(0.5)"}),
    "labels": (spiked, {"model": GIVEN, "loss": "hinge", "labels": "sign"}),
    "letters with a loss": (spiked, {"model": LETTERS, "loss": "huber(0.5)"}),
    "control variate": (spiked, {"control_variate": True}),
    "Gaussian features": (one_step, {"features": "gaussian"}),
    "Gaussian labels": (one_step, {"features": "gaussian", "labels": "gaussian"}),
    "rank-one step": (one_step, {"layer": "rank one"}),
    "spike of the theory": (one_step, {"layer": "theory"}),
    "several steps": (one_step, {"steps": [1, 3]}),
    "fresh batches": (one_step, {"steps": 2, "fresh": True}),
    "exponent": (one_step, {"exponent": 0.2}),
    "exact risk": (one_step, {"exact_risk": True}),
    "fresh samples": (one_step, {"n_test": 500}),
    "no penalty": (one_step, {"ridge": [0.0, 0.1]}),
    "signs": (giant, {"readout": "signs"}),
    "readout values": (giant, {"readout": [0.5, 2.0]}),
    "biases": (giant, {"biases": True}),
    "preprocessing": (giant, {"preprocess": True}),
    "label noise": (giant, {"noise_variance": 1.0}),
    "step size": (giant, {"step_size": 2.0}),
    "sample exponent": (giant, {"sample_exponent": 2}),
    "number of steps": (giant, {"steps": 3}),
    "given penalty": (preprocessed, {"ridge": 10.0}),
    "given step": (preprocessed, {"step_size": 0.5}),
    "noise of preprocessed labels": (preprocessed, {"noise_variance": 0.5}),
}


@pytest.mark.slow
@pytest.mark.parametrize("row", CHANGES)
def test_an_option_changes_the_numbers(row):
    ask, options = CHANGES[row]
    plain, changed = np.asarray(ask()), np.asarray(ask(**options))
    assert np.isfinite(changed).all()
    assert plain.shape != changed.shape or not np.allclose(plain, changed, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("ask", [spiked, one_step, giant])
def test_where_it_runs_changes_none(ask, tmp_path):
    plain = np.asarray(ask())
    with ThreadPoolExecutor(2) as executor:
        for options in ({"workers": 2}, {"executor": executor}, {"store": tmp_path}):
            np.testing.assert_array_equal(np.asarray(ask(**options)), plain)
    np.testing.assert_array_equal(np.asarray(ask(store=tmp_path)), plain)
