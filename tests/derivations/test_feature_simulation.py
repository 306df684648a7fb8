"""Spiked random features of finite size against their theory, extrapolated in the dimension."""

import math
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.special import erf

import giantstep as gs
from giantstep.derivations.spiked_random_features.convex.losses import convex_loss, simulated_loss
from giantstep.derivations.spiked_random_features.simulated import (
    conditional_prediction,
    network_of,
    simulate_model,
)
from giantstep.errors import ParameterError
from giantstep.numeric.extrapolation import extrapolate
from giantstep.numeric.networks.layer import FeatureClass, SpikedRows
from giantstep.numeric.networks.network import Network
from giantstep.numeric.networks.readout import ConvexReadout, RidgeReadout
from giantstep.numeric.networks.run import simulate


def features(student, teacher, r, c, gamma, **others):
    return gs.SpikedRandomFeatures.from_parameters(
        student, teacher, spike_strength=r, bulk_variance=c, alignment=gamma, **others
    )


def agrees(values, theory, bias=0.0):
    """Mean over the first axis within 4 standard errors, and a bias where it is stated."""
    values = np.asarray(values)
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return np.all(np.abs(values.mean(axis=0) - np.asarray(theory)) <= 4 * error + bias)


def rows(student, teacher, kinds, gamma, *, beta=1.0, dimension=200, bulk="iid", **others):
    """A network with rows that are given."""
    return Network(
        student=student, teacher=teacher, rows=SpikedRows(kinds, gamma, bulk=bulk),
        dimension=dimension, width=round(beta * dimension), **others,
    )  # fmt: skip


def fitted(network, alpha, ridge, loss=None, **options):
    """Errors and overlaps of readouts, over networks and sizes."""
    sizes = round(alpha * network.dimension)
    readout = (
        RidgeReadout(sizes, ridge, test_samples=4000) if loss is None
        else ConvexReadout(sizes, ridge, simulated_loss(convex_loss(loss)), test_samples=4000)
    )  # fmt: skip
    found = simulate(network, ("errors", "overlaps"), readout=readout, **options)
    return {name: found[name][:, 0, 0] for name in found.quantities}


def extrapolated(network, alpha, ridge, loss, runs, quantities, seed=11):
    """Deviations of limits from what is expected, in standard errors."""
    found = {d: fitted(network(d), alpha, ridge, loss, seeds=n, seed=seed + d) for d, n in runs}
    deviations = {}
    for name, theory in quantities.items():
        values = [np.ravel(f[name]) for f in found.values()]
        fit = extrapolate(
            list(found), [r.mean() for r in values],
            [r.std(ddof=1) / math.sqrt(len(r)) for r in values],
        )  # fmt: skip
        deviations[name] = (fit.limit - theory) / fit.limit_error
    return deviations


# ------------------------------------------------------------------ the model's own simulation


def test_control_variates_are_the_theory_and_reduce_scatter():
    model = features("tanh", "sin", 1.134, 1.019, 0.9718544)
    prediction = conditional_prediction(model, 0.9, 0.1)
    solved = model.solve(alpha=0.9, ridge=0.1)
    assert prediction.means == pytest.approx((solved.test_error, solved.training_error), rel=1e-5)
    plain, controlled = (
        model.simulate(200, alpha=0.9, ridge=0.1, seeds=8, progress=False, control_variate=c)
        for c in (False, True)
    )
    name = "training_error_standard_error"
    assert controlled[name].item() < 0.7 * plain[name].item()
    np.testing.assert_array_equal(controlled["m"], plain["m"])
    assert conditional_prediction(features("erf", "erf", 0.0, 1.0, 0.0), 1, 0.1) is None


def test_simulations_of_given_features_resume_and_save(tmp_path):
    model = features("erf", "sin", 1.2, 1.1, 0.9)
    one = model.simulate(
        50, alpha=[2, 0.5], ridge=0.1, seeds=2, progress=False, store=tmp_path / "s"
    )
    with ProcessPoolExecutor(1) as pool:
        two = model.simulate(
            50,
            alpha=[2, 0.5],
            ridge=0.1,
            seeds=3,
            progress=False,
            store=tmp_path / "s",
            executor=pool,
        )
    np.testing.assert_array_equal(one["q1"], two["q1"][:2])
    two.to_netcdf(tmp_path / "two.nc")
    xr.testing.assert_identical(xr.load_dataset(tmp_path / "two.nc"), two.dataset)


# ------------------------------------------------------------------ general convex losses

# Solution of the general-loss equations for erf, r = 1.2, c = 1.1, γ = .9, α = 2, λ = .1, β = 1, to
# quadrature accuracy (derived here from Cui et al., App. C). Huber, logistic and hinge readouts
# are compared as evidence of the claim "cui-convex-loss".
ABSOLUTE = {
    "training_loss": 0.188582170275406, "test_error": 0.269442627466183 - 0.1,
    "m": 1.00769958191858, "psi": 0.339448513416048,
    "q1": 0.51094705504995, "q2": 0.771988589095304,
}  # fmt: skip


@pytest.mark.slow
def test_readouts_of_a_convex_loss_extrapolate_to_their_theory():
    def network(dimension):
        return rows(erf, np.sin, FeatureClass(1.0, 1.2, 1.1), 0.9, noise_variance=0.1,
                    dimension=dimension, labels="regression")  # fmt: skip

    deviations = extrapolated(network, 2, 0.1, "absolute", [(50, 40), (100, 20)], ABSOLUTE)
    assert max(map(abs, deviations.values())) < 4, deviations


def test_readouts_of_a_model_are_labelled():
    model = features("erf", "sign", 1.2, 1.1, 0.9)
    logistic, hinge = (simulated_loss(convex_loss(name)) for name in ("logistic", "hinge"))
    found = simulate_model(
        model, 50, [1, 2], 0.1, loss=logistic, labels="sign", seeds=2, progress=False
    )
    assert found.attrs["loss"] == "logistic" and found.attrs["labels"] == "sign"
    assert float(found["certificate"].max()) < 1e-8
    own = simulate_model(
        model, 50, 1, 0.1, labels=lambda f, u: np.where(u < 0.9, f, -f), seeds=1, progress=False
    )
    assert own.attrs["labels"].endswith("<lambda>") and own.attrs["loss"] == "square"
    assert np.isinf(own["test_error_standard_error"]).all()
    with pytest.raises(ParameterError, match="labels ±1"):
        simulate_model(
            features("erf", "sin", 1.2, 1.1, 0.9), 50, 1, 0.1, loss=hinge, seeds=1, progress=False
        )


def test_every_simulation_has_the_same_columns():
    network = gs.SpikedRandomFeatures("erf", "sin", step_size=1.0, alpha0=6)
    letters = gs.VocabularyFeatures(
        "erf", "sin", letters=[1.0, -0.5], fractions=[0.5, 0.5], step_size=1.0, alpha0=6
    )
    plain = network.simulate(40, alpha=[1, 2], ridge=0.1, seeds=2, progress=False)
    others = (
        features("erf", "sin", 1.2, 1.1, 0.9).simulate(
            40, alpha=[1, 2], ridge=0.1, seeds=2, progress=False
        ),
        network.simulate(
            40, alpha=[1, 2], ridge=0.1, seeds=2, progress=False, control_variate=True
        ),
        network.with_loss("huber(0.5)").simulate(
            40, alpha=[1, 2], ridge=0.1, seeds=2, progress=False
        ),
        letters.simulate(40, alpha=[1, 2], ridge=0.1, seeds=2, progress=False),
        letters.simulate(40, alpha=[1, 2], ridge=0.1, seeds=2, progress=False, equivalent=True),
    )
    for other in others:
        assert set(other.variables) == set(plain.variables)
        assert other["test_error"].dims == ("seed", "alpha")
    assert plain["q1"].dims == ("seed", "alpha") and plain["alignment"].dims == ("seed",)
    assert others[3]["q1"].dims == ("seed", "alpha", "class", "other_class")
    # Equations for letters are for bulk rows of norm one.
    layer = network_of(letters, 40).train(np.random.SeedSequence(0, spawn_key=(0,)))
    np.testing.assert_allclose(others[3]["spike_strength"][0], layer.strengths[:, 0], rtol=1e-12)
    raw = fitted(network_of(letters, 40), 1, 0.1, seeds=1)["q1"][0]
    norms = np.sqrt([kind.bulk_variance for kind in letters.classes])
    np.testing.assert_allclose(others[3]["q1"][0, 0], raw / np.outer(norms, norms), rtol=1e-9)


# ------------------------------------------------------------------ letters, biases, rank


def test_two_quenched_biases():
    # Biases ±.8, erf/(He3/6), r = c = 1, γ = .9, α = 1.5, λ = .05 (K classes, strict limit).
    kinds = (FeatureClass(0.5, 1.0, 1.0, 0.8), FeatureClass(0.5, 1.0, 1.0, -0.8))
    network = rows(erf, lambda z: (z**3 - 3 * z) / 6, kinds, 0.9)
    found = fitted(network, 1.5, 0.05, seeds=16)
    assert agrees(found["test_error"], 0.2278947992101, 2 / 200)
    assert agrees(found["training_error"], 0.1074934868286, 2 / 200)
    assert agrees(found["m"], [0.06150608, 0.06150608], 4 / 200)


def test_orthonormal_bulk_has_equations_of_its_own():
    # tanh/sin, r = (1.5, .5), c = (1.2, 1), γ = 1, α = 1.5, λ = .05, orthonormal bulk: finite
    # width p = 600 gives .01421 and .00437 (derived here), the strict limit .0050606, .0017620.
    kinds = (FeatureClass(0.5, 1.5, 1.2), FeatureClass(0.5, 0.5, 1.0))
    network = rows(np.tanh, np.sin, kinds, 1.0, dimension=600, bulk="orthonormal")
    found = fitted(network, 1.5, 0.05, seeds=4)
    assert agrees(found["test_error"], 0.01421, 1 / 600)
    assert agrees(found["q2"], [0.0191, 0.0156], 1 / 600)


def test_rotating_all_spike_directions_changes_no_law():
    # One letter of rank two is the same features as rank one along its direction.
    gamma, along = np.array([0.7, 0.4]), np.array([0.6, 0.8])
    two = rows(np.tanh, np.sin, FeatureClass(1.0, tuple(along), 1.1), gamma, dimension=80)
    one = rows(np.tanh, np.sin, FeatureClass(1.0, 1.0, 1.1), along @ gamma, dimension=80)
    results = [fitted(n, 2, 0.1, seeds=24, seed=k) for k, n in enumerate((two, one))]
    for name in ("test_error", "training_error", "m", "q2"):
        first, second = (np.ravel(found[name]) for found in results)
        error = math.hypot(first.std(ddof=1), second.std(ddof=1)) / math.sqrt(24)
        assert abs(first.mean() - second.mean()) < 4 * error


# ------------------------------------------------------------------ finite-size studies


def test_a_study_saves_loads_prints_and_draws(tmp_path):
    model = features("erf", "erf", 1.2, 1.15, 0.9, beta=0.5)
    arguments = {"seeds": 6, "progress": False, "store": tmp_path / "store"}
    study = gs.finite_size_study(model, [40, 80], [1, 2], 0.05, **arguments)
    study.save(tmp_path / "study.nc")
    loaded = gs.FiniteSizeStudy.load(tmp_path / "study.nc")
    xr.testing.assert_allclose(loaded.dataset, study.dataset)
    assert loaded.fit("training_error", 2) == study.fit("training_error", 2)
    assert loaded.quantities == ("test_error", "training_error")
    assert "alpha = 2: training_error = " in str(loaded) and "measured" in loaded.rests_on
    assert (
        study.dataset["test_error_theory"][1].item() == model.solve(alpha=2, ridge=0.05).test_error
    )
    axes = loaded.plot("training_error", 2)
    assert [t.get_text() for t in axes.get_legend().get_texts()] == [
        r"theory, $d\to\infty$", r"simulation ($\pm$ s.e.)", "extrapolated",
    ]  # fmt: skip
    (tmp_path / "text.nc").write_text("text")
    study.dataset.assign_attrs(kind="other").to_netcdf(tmp_path / "other.nc")
    for ask, words in (
        (lambda: study.fit("m"), "no quantity 'm'"),
        (lambda: study.fit(alpha=3), "alpha = 3 was not studied"),
        (lambda: gs.FiniteSizeStudy.load(tmp_path / "none.nc"), "no file"),
        (lambda: gs.FiniteSizeStudy.load(tmp_path / "other.nc"), "not a saved study"),
        (lambda: gs.FiniteSizeStudy.load(tmp_path / "text.nc"), "not a saved study"),
    ):
        with pytest.raises(ParameterError, match=words):
            ask()
    # Another dimension leaves the networks of the others as they are.
    more = gs.finite_size_study(model, [40, 60, 80], [1, 2], 0.05, **arguments)
    np.testing.assert_array_equal(more.dataset["test_error"].sel(dimension=[40, 80]),
                                  study.dataset["test_error"])  # fmt: skip


GIVEN: Any = {"step_size": 1.0, "alpha0": 6}
BIASED = gs.VocabularyFeatures(
    "erf", "sin", letters=[1, 2], fractions=[0.5, 0.5], biases=[0.5, -0.5], **GIVEN
)


def test_networks_without_a_step():
    # Without a step there is no derivative that a student would need.
    for kind, letters in (
        (gs.SpikedRandomFeatures, {}),
        (gs.VocabularyFeatures, {"letters": [1, 2], "fractions": [0.5, 0.5]}),
    ):
        jumps = network_of(kind("sign", "sin", step_size=0.0, alpha0=6, **letters), 40)
        assert jumps.steps == 0 and jumps.student_derivative is None
    silent = gs.VocabularyFeatures("erf", "sin", letters=[0.0], fractions=[1.0], **GIVEN)
    assert network_of(silent, 40).steps == 0
    assert network_of(BIASED, 40, equivalent=True).steps == 0


LAW = gs.BulkLaw.from_eigenvalues([1.0, 2.0])
FEATURES = features("erf", "sin", 1.2, 1.15, 0.9)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: network_of(gs.VocabularyFeatures(
            "erf", "sin", letters=[1, 1], fractions=[0.5, 0.5], **GIVEN), 40), "must differ"),
        (lambda: network_of(BIASED, 40), "no biases"),
        (lambda: network_of(features("erf", "sin", 1.2, 1.5, 0.9, bulk=LAW), 40),
         "law of the bulk"),
        (lambda: network_of(features("erf", "sin", 1.2, 1.1, 0.9, stretch=(0.1, 0.0, 0.0)), 40),
         "made by a gradient step only"),
        (lambda: network_of(gs.SpikedRandomFeatures("erf", "sin", alpha0=math.inf), 40),
         "finitely many samples"),
        *((lambda a=a: gs.SpikedRandomFeatures("erf", "sin", **GIVEN).simulate(
            **{"dimension": 40, "progress": False, **a}), words) for a, words in (
            ({"dimension": 2.5}, "dimension must be a whole number"),
            ({"alpha": 0.001}, "too small for alpha"), ({"alpha": []}, "alpha"),
            ({"ridge": 0}, "ridge must be positive"), ({"ridge": math.inf}, "ridge must be"),
            ({"store": 3}, "store must be a path"), ({"seeds": 0}, "seeds must be"),
        )),
        *((lambda a=a: gs.finite_size_study(**{
            "source": FEATURES, "dimensions": [40, 80], "alpha": 1.0, "seeds": 2,
            "progress": False, **a}), words) for a, words in (
            ({"dimensions": [40]}, "at least two"), ({"dimensions": [40, 40]}, "at least two"),
            ({"dimensions": [40.5, 80]}, "whole number"),
            ({"seeds": [2, 2, 2]}, "one for each of the 2"), ({"seeds": 1}, "seeds must be >= 2"),
            ({"quantities": ["q9"]}, "no quantity 'q9'"), ({"source": 3}, "method simulate"),
            ({"alpha": -1}, "alpha"),
        )),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_or_studied_is_refused(ask, message):
    with pytest.raises(ParameterError, match=message):
        ask()
