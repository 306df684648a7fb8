"""Networks that take giant steps, against the staircases that predict them."""

from __future__ import annotations

import concurrent.futures
import json
import math
import pickle

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from giantstep.derivations.figures import svg_text
from giantstep.derivations.first_gradient.training import train_by_preprocessed_step
from giantstep.derivations.giant_steps.learned_directions import Verdict, adapted_basis
from giantstep.derivations.giant_steps.simulated import (
    SimulatedGiantSteps,
    plan_giant_steps,
    simulate_giant_steps,
)
from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
)
from giantstep.symbolic.targets.subspaces import Subspace

P04 = "x1 + x1*x2 + He(3, x1)*x3"


def unwrapped(found):
    return " ".join(str(found).split())


def simulate(target, student="relu", **options):
    defaults = {
        "dimension": 150, "samples_factor": 100, "width": 96, "seeds": 3, "progress": False,
    }  # fmt: skip
    return simulate_giant_steps(target, student, **(defaults | options))


def verdicts(found):
    return {
        (row.step, row.direction.name): row.verdict is Verdict.LEARNED for row in found.directions
    }


@pytest.fixture(scope="module")
def stairs():
    return simulate("x1 + x1*x2", seeds=2, ridge_samples=2000)


# ---------------------------------------------------------------------- predictions that hold


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "student", "options", "chain"),
    [
        # Worked traces: unequal second derivatives lead on, equal ones do not.
        ("x1 + He(2,x1) + x2 - He(2,x2)", "relu", {}, "{0} ⊂ ⟨(1, 1)⟩ ⊂ R^2"),
        ("x1 + He(2,x1) + x2 + He(2,x2)", "relu", {}, "{0} ⊂ ⟨(1, 1)⟩"),
        ("x1 + x1*x2 + x1*x3", "relu", {}, "{0} ⊂ ⟨e1⟩ ⊂ ⟨e1, (0, 1, 1)⟩"),
        ("(4*x1 + x1**2 + x2)/2", "relu", {"samples_factor": 300}, "{0} ⊂ ⟨(1, 1/4)⟩ ⊂ R^2"),
        ("x1*x2 + x3", "relu", {}, "{0} ⊂ ⟨e3⟩"),
        # Relu without biases sees no odd degree beyond the first.
        ("x1 + He(2,x1)*x2", "relu", {}, "{0} ⊂ ⟨e1⟩"),
        ("x1 + He(2,x1)*x2", "relu", {"biases": True, "steps": 3}, "{0} ⊂ ⟨e1⟩ ⊂ R^2"),
        ("x1 + He(2,x1)*x2", "tanh", {}, "{0} ⊂ ⟨e1⟩ ⊂ R^2"),
        # Three steps, and a target that is no polynomial.
        (
            "x1 + x1*x2 + x1*x2*x3",
            "sin(z + pi/4)",
            {"steps": 3, "step_size": 1.5},
            "{0} ⊂ ⟨e1⟩ ⊂ ⟨e1, e2⟩ ⊂ R^3",
        ),
        ("relu(x1) + abs(x2)", "relu", {}, "{0} ⊂ ⟨e1⟩"),
        # Order 2: with x1 alone in the linear part, x2 is learned by n ~ d^2.
        (
            "x1 + He(2,x2)",
            "relu",
            {"preprocess": True, "sample_exponent": 2, "samples_factor": 4, "dimension": 80},
            "{0} ⊂ ⟨e2⟩",
        ),
    ],
)
def test_networks_learn_what_the_staircase_says(target, student, options, chain):
    found = simulate(target, student, **options)
    assert " ⊂ ".join(map(str, found.staircase.subspaces)) == chain
    assert found.agrees, str(found)


def test_readouts_given_as_values_make_their_clusters():
    # Readouts ±1, ±2: each of the two pairs has an odd and an even direction, enough for P04.
    found = simulate(P04, readout=[1, 2.0], seeds=2)
    assert not found.staircase.clusters.is_limiting
    assert "readouts ±(1, 2)" in unwrapped(found)
    assert set(np.unique(found.result.readout)) == {-2.0, -1.0, 1.0, 2.0}


def test_the_test_error_is_set_beside_the_predicted_residual():
    # One step learns e1; two neurons per direction or 96 fit no other degree: E Var(f|x1) = 1.
    found = simulate("x1 + x2*x3", steps=1, ridge_samples=4000, noise_variance=0.1)
    assert found.predicted_residual == "1"
    assert found.test_error.mean == pytest.approx(1, abs=0.1)
    assert found.test_error.mean > 1 - 3 * found.test_error.standard_error
    assert "predicted to be at least, for d → ∞: ‖P_(U,>0) f‖² = 1" in unwrapped(found)
    # Wide enough for degree 1: x2 is fitted by d neurons.
    wide = simulate("x1 + x1*x2", steps=1, dimension=40, width=64, ridge_samples=4000, seeds=2)
    assert (wide.settings.fitted_degree, wide.predicted_residual) == (1, "0")


@pytest.mark.parametrize(
    ("target", "residual"),
    [
        # After one step U = <e1>: Var(|x2|) is left. The exact integrals exist, but may take
        # minutes for other targets, so that all that are no polynomials are sampled.
        ("relu(x1) + abs(x2)", 1 - 2 / math.pi),
        # Of these two the exact integrals take minutes, or a zero in them is not decided.
        ("x1 + x1**2*erf(x2 + x3) + x2*gelu(x3)", None),
        ("softplus(x1)*x2 + x1", None),
    ],
)
def test_the_residual_of_any_target_is_known(target, residual):
    plan = plan_giant_steps(target, "gelu", dimension=50, samples=100, steps=1, ridge_samples=40)
    value, error = plan.predicted_residual.removesuffix(" by sampling").split(" ± ")
    assert 0 < float(error) < 0.05
    assert residual is None or abs(float(value) - residual) < 4 * float(error)


def test_preprocessing_takes_the_linear_part_out_of_the_prediction():
    found = simulate("x1 + x1*x2", preprocess=True, steps=1)
    assert str(found.staircase.final) == "{0}"
    assert [v.name for v in found.basis] == ["e1", "e2"]
    assert not any(verdicts(found).values()) and found.agrees


# ---------------------------------------------------------------------- the adapted basis


@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=4))
def test_the_adapted_basis_is_orthonormal_and_adapted(rows):
    chain, known = [], Subspace.zero(4)
    for row in rows:
        known = known + Subspace.spanned_by([row], 4)
        chain.append(known)
    whole = Subspace.whole(4)
    basis = adapted_basis(chain, whole)
    vectors = np.array([v.vector for v in basis])
    assert_allclose(vectors @ vectors.T, np.eye(4), atol=1e-12)
    for step, space in enumerate(chain, 1):
        inside = [v.vector for v in basis if v.step is not None and v.step <= step]
        assert len(inside) == space.dimension
        projector = np.array(space.projector().tolist(), dtype=float).reshape(4, 4)
        for vector in inside:
            assert_allclose(projector @ vector, vector, atol=1e-12)


# ---------------------------------------------------------------------- results as values


def test_presentations_and_round_trips(stairs, tmp_path):
    text = str(stairs)
    assert text.startswith("relu on x1 + x1*x2: d = 150, n = 15000 = 100 d for each of 2 steps")
    assert "in common" in text and "only growing d decides" in text
    assert stairs._repr_html_().count("<table>") == 2
    for name in ("run.npz", "run.json"):
        loaded = SimulatedGiantSteps.load(stairs.save(tmp_path / name))
        assert loaded == stairs and str(loaded) == text and loaded.to_json() == stairs.to_json()
        np.testing.assert_array_equal(loaded.result.overlaps, stairs.result.overlaps)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "run.npz"]


def test_damaged_files_are_refused(stairs, tmp_path):
    path = stairs.save(tmp_path / "run.npz")
    path.write_bytes(path.read_bytes()[:5000])
    np.savez(tmp_path / "other.npz", x=np.eye(2))
    for file in (path, tmp_path / "other.npz"):
        with pytest.raises(ParameterError, match=r"is not a file that SimulatedGiantSteps\.save"):
            SimulatedGiantSteps.load(file)
    with pytest.raises(ParameterError, match=r"path must end in \.npz"):
        stairs.save(tmp_path / "run.txt")
    with pytest.raises(FileNotFoundError):
        SimulatedGiantSteps.load(tmp_path / "none.npz")
    document = json.loads(stairs.to_json())
    for name in ("measurements", "settings"):
        wrong = {k: v for k, v in document.items() if k != name}
        with pytest.raises(ParameterError, match=f"field '{name}' is missing"):
            SimulatedGiantSteps.from_json(json.dumps(wrong))


def test_squared_norms_grow_as_one_step_predicts(stairs):
    # Mean of a^2 of this network; 1 + a^2 ((d/n) E f^2 E s'^2 + |mu_1 C_1|^2 + corrections).
    readouts = (stairs.result.readout**2).mean()
    predicted = 1 + readouts * (2 * 0.5 / 100 + 0.25)
    assert stairs.squared_norms[0].mean == pytest.approx(1)
    assert stairs.squared_norms[1].mean == pytest.approx(predicted, rel=0.03)  # O(1/d) and networks


def test_networks_are_sent_to_an_executor_and_give_the_same_numbers():
    options = {"dimension": 20, "samples_factor": 10, "width": 8, "ridge_samples": 50}
    plan = plan_giant_steps("x1", "relu", **options)
    inputs = np.linspace(-1, 1, 5)
    for function in (plan.network.student, plan.network.student_derivative, plan.network.teacher):
        sent = pickle.loads(pickle.dumps(function))
        np.testing.assert_array_equal(sent(inputs), function(inputs))
    assert pickle.loads(pickle.dumps(plan.readout)) == plan.readout
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        found = simulate("x1", executor=executor, **options)
    np.testing.assert_array_equal(found.result.ridge, simulate("x1", **options).result.ridge)


def test_files_of_the_release_before_are_read(stairs, tmp_path):
    # Arrays stood under these names, and errors had one entry for each network.
    with np.load(stairs.save(tmp_path / "run.npz")) as archive:
        assert sorted(archive.files) == sorted([
            "header", "readout", "biases", "overlaps", "squared_norms", "grams", "floors",
            "excess", "test_error", "ridge",
        ])  # fmt: skip
        assert archive["test_error"].shape == archive["ridge"].shape == (2,)
        assert json.loads(str(archive["header"]))["format"] == 1


# ---------------------------------------------------------------------- figures


def test_the_figure_has_a_panel_for_each_time(stairs):
    pytest.importorskip("matplotlib")
    found = stairs.plot()
    panels = [axes for axes in found if axes.get_title().startswith("$t")]
    assert [axes.get_title() for axes in panels] == ["$t = 0$", "$t = 1$", "$t = 2$"]
    # U_1 is a line, U_2 the plane, behind the neurons of both signs.
    lines = [[line for line in axes.lines if line.get_linestyle() == "-"] for axes in panels]
    assert [len(found) for found in lines] == [0, 1, 0]
    y = lines[1][0].get_ydata()
    assert y[0] == y[1]
    dots = [line for line in panels[2].lines if line.get_marker() == "."]
    drawn = np.concatenate([np.stack(line.get_data(), axis=1) for line in dots])
    expected = stairs.result.overlaps[:, 2].reshape(-1, 2)
    assert_allclose(np.sort(drawn, axis=0), np.sort(expected, axis=0))
    assert svg_text(found) == svg_text(stairs.plot())
    turned = stairs.plot([[1, 0], [1, 1]])
    assert sum(axes.get_title().startswith("$t") for axes in turned) == 3


def test_figures_of_one_and_of_three_directions_and_of_many_steps():
    pytest.importorskip("matplotlib")
    small = {"dimension": 20, "samples_factor": 10, "width": 8, "seeds": 1}
    assert "$a_i$" in [a.get_ylabel() for a in simulate("He(2, x1) + x1", **small).plot()]
    long = simulate("x1 + x1*x2", steps=12, **small).plot()
    titles = [axes.get_title() for axes in long if axes.get_title()]
    assert len(titles) == 7 and titles[0] == "$t = 0$" and titles[-1] == "$t = 12$"
    u, v, w = sp.symbols("u v w", real=True)
    drawn = simulate(u + u * v + v * w - u * w, **small).plot()
    rows = [a for a in drawn if a.get_ylabel().startswith(r"$\langle")]
    assert len(rows) == 2 and len(drawn) == 7
    titles = " ".join(text.get_text() for text in drawn[0].figure.texts)
    assert r"$v_2 \propto$ (0, 1, -1)" in titles and "v_1" not in titles


@pytest.mark.parametrize(
    ("directions", "message"),
    [
        ([[1, 0]], "directions must be two rows of 2 numbers"),
        ([[1, 0], [2, 0]], "directions must not be zero or parallel"),
        ([[0, 0], [2, 0]], "directions must not be zero or parallel"),
        ([[1, 0], [math.nan, 0]], "directions must be two rows"),
        ([["a", 0], [1, 0]], "directions must be two rows"),
    ],
)
def test_wrong_planes_are_refused(stairs, directions, message):
    pytest.importorskip("matplotlib")
    with pytest.raises(ParameterError, match=message):
        stairs.plot(directions)


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"samples": 10}, ParameterError, "samples or samples_factor must be given, and not both"),
        ({"samples_factor": None}, ParameterError, "samples or samples_factor must be given"),
        ({"samples_factor": 1e300}, ParameterError, "is no number of samples; change samples_fac"),
        ({"samples_factor": 1e-9}, ParameterError, "is no number of samples"),
        ({"samples_factor": -1}, ParameterError, "samples_factor must be positive"),
        ({"width": 9}, ParameterError, "width must be even, neurons come in pairs; got 9"),
        ({"dimension": 3}, ParameterError, "dimension must be at least 4"),
        ({"step_size": 0}, ParameterError, "step_size must be positive"),
        ({"sample_exponent": 0}, ParameterError, "sample_exponent must be >= 1"),
        ({"readout": "normal"}, ParameterError, "readout must be 'gaussian', 'signs' or finite"),
        ({"readout": 1.0}, ParameterError, "readout must be 'gaussian', 'signs' or a sequence"),
        ({"biases": 1}, ParameterError, "biases must be True or False, got 1"),
        ({"preprocess": "no"}, ParameterError, "preprocess must be True or False"),
        ({"ridge_samples": 5}, ParameterError, "ridge_samples=5 are too few"),
        ({"student": "sign"}, AssumptionError, "jump"),
        ({"target": "3"}, ExpressionError, "has no coordinates"),
        ({"target": "x1 - x1 + 2"}, AssumptionError, "constant"),
        ({"target": "1 + x1", "preprocess": True}, AssumptionError, "preprocess leaves nothing"),
        ({"target": "x1 +"}, ExpressionError, "x1"),
        ({"sample_exponent": 10**18}, ParameterError, "lower dimension or sample_exponent"),
    ],
)
def test_bad_input_is_refused(changes, error, message):
    options = {"dimension": 20, "samples_factor": 5, "width": 8, "seeds": 1} | changes
    target = options.pop("target", "x1 + x1*x2")
    student = options.pop("student", "relu")
    with pytest.raises(error, match=message):
        simulate_giant_steps(target, student, progress=False, **options)


def test_a_cache_folder_is_no_longer_used(tmp_path):
    with pytest.warns(DeprecationWarning, match="no source is written"):
        simulate_giant_steps(
            "x1", dimension=20, samples=200, width=10, seeds=2, cache_folder=tmp_path
        )
    with pytest.warns(DeprecationWarning, match="no source is written"):
        train_by_preprocessed_step(
            "relu", "x1*x2", dimension=8, samples=200, width=10, seeds=2, n_test=100,
            cache_folder=tmp_path,
        )  # fmt: skip
    assert not list(tmp_path.iterdir())
