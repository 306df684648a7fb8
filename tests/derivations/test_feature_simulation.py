"""Spiked random features of finite size against their theory, extrapolated in the dimension."""

import math
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import xarray as xr
from scipy.special import erf

import giantstep as gs
from giantstep.derivations.spiked_random_features.conditional_errors import conditional_prediction
from giantstep.derivations.spiked_random_features.convex.losses import convex_loss
from giantstep.derivations.spiked_random_features.convex.simulated import simulated_loss
from giantstep.derivations.spiked_random_features.feature_simulation import simulate_readout
from giantstep.errors import ParameterError
from giantstep.numeric.extrapolation import extrapolate
from giantstep.numeric.feature_network import SteppedNetwork
from giantstep.numeric.feature_setup import FeatureClass, FeatureSetup
from giantstep.numeric.feature_simulation import simulate_features


def features(student, teacher, r, c, gamma, **others):
    return gs.SpikedRandomFeatures.from_parameters(
        student, teacher, spike_strength=r, bulk_variance=c, alignment=gamma, **others
    )


def agrees(values, theory, bias=0.0):
    """Mean over the first axis within 4 standard errors, and a bias where it is stated."""
    values = np.asarray(values)
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return np.all(np.abs(values.mean(axis=0) - np.asarray(theory)) <= 4 * error + bias)


def extrapolated(setup, alpha, ridge, loss, runs, quantities, seed=11):
    """Deviations of limits from what is expected, in standard errors."""
    fitted = simulated_loss(convex_loss(loss))
    found = {
        d: simulate_features(
            setup(d), alpha, ridge=ridge, loss=fitted, seeds=n, seed=seed + d, progress=False,
            n_test=4000,
        )
        for d, n in runs
    }  # fmt: skip
    deviations = {}
    for name, theory in quantities.items():
        rows = [np.ravel(getattr(f, name)) for f in found.values()]
        fit = extrapolate(
            list(found), [r.mean() for r in rows],
            [r.std(ddof=1) / math.sqrt(len(r)) for r in rows],
        )  # fmt: skip
        deviations[name] = (fit.limit - theory) / fit.limit_error
    return deviations


# ------------------------------------------------------------------ the model's own simulation


@pytest.mark.parametrize(
    ("model", "alpha", "ridge"),
    [
        (features("tanh", "sin", 1.134, 1.019, 0.9718544), 3, 0.1),
        (features("sign", "sign", 1.5, 1.2, 0.9), 2, 0.2),
        (features("relu", "sin", 1.0, 1.1, 0.85, beta=0.7, noise_variance=0.05), 1.5, 0.1),
        (features("erf", "erf", 0.0, 1.0, 0.0, beta=1.5), 2, 0.01),
    ],
    ids=["tanh/sin", "sign/sign", "relu/sin", "no spike"],
)
def test_given_features_extrapolate_to_their_theory(model, alpha, ridge):
    study = gs.finite_size_study(
        model, [50, 100], alpha, ridge, seeds=[40, 20], seed=3, progress=False,
        quantities=("test_error", "training_error", "m", "theta", "psi", "q1", "q2"),
        control_variate=True,
    )  # fmt: skip
    for quantity in study.quantities:
        if math.isnan(study.deviation(quantity)):
            continue
        # Without a spike there is no direction to overlap with.
        if model.spike.spike_strength == 0 and quantity in ("m", "theta"):
            continue
        assert abs(study.deviation(quantity)) < 4, str(study)
    assert study.dataset.attrs["networks"] == [40, 20]


def test_control_variates_are_the_theory_and_reduce_scatter():
    model = features("tanh", "sin", 1.134, 1.019, 0.9718544)
    prediction = conditional_prediction(model, 0.9, 0.1)
    solved = model.solve(alpha=0.9, ridge=0.1)
    assert prediction.means == pytest.approx((solved.test_error, solved.training_error), rel=1e-5)
    plain, controlled = (
        model.simulate(200, 0.9, 0.1, seeds=8, progress=False, control_variate=c)
        for c in (False, True)
    )
    name = "training_error_standard_error"
    assert controlled[name].item() < 0.7 * plain[name].item()
    np.testing.assert_array_equal(controlled["m"], plain["m"])
    assert conditional_prediction(features("erf", "erf", 0.0, 1.0, 0.0), 1, 0.1) is None


def test_control_variates_work_for_networks():
    model = gs.SpikedRandomFeatures("erf", "sin", step_size=1.0, alpha0=6)
    found = model.simulate(80, [1, 2], 0.1, seeds=3, progress=False, control_variate=True)
    assert found["theta"].dims == ("seed", "alpha") and found["alignment"].dims == ("seed",)
    assert float(found["test_error"].max()) < 0.3


def test_simulations_of_given_features_resume_and_save(tmp_path):
    model = features("erf", "sin", 1.2, 1.1, 0.9)
    one = model.simulate(50, [2, 0.5], 0.1, seeds=2, progress=False, store=tmp_path / "s")
    with ProcessPoolExecutor(1) as pool:
        two = model.simulate(
            50, [2, 0.5], 0.1, seeds=3, progress=False, store=tmp_path / "s", executor=pool
        )
    np.testing.assert_array_equal(one["q1"], two["q1"][:2])
    two.to_netcdf(tmp_path / "two.nc")
    xr.testing.assert_identical(xr.load_dataset(tmp_path / "two.nc"), two)


# ------------------------------------------------------------------ general convex losses

# Solutions of the general-loss equations for erf, r = 1.2, c = 1.1, γ = .9, α = 2, λ = .1, β = 1
# (hinge: tanh, β = .7), to quadrature accuracy (derived here from Cui et al., App. C).
CONVEX = {
    "huber": ("huber(0.3)", "sin", "regression", 0.1,
              {"training_loss": 0.0371129245649489, "test_error": 0.202515821262693 - 0.1,
               "m": 1.01496522374221, "psi": 0.274768869799319, "q1": 0.262761756528336,
               "q2": 0.2713406628312}),
    "absolute": ("absolute", "sin", "regression", 0.1,
                 {"training_loss": 0.188582170275406, "test_error": 0.269442627466183 - 0.1,
                  "m": 1.00769958191858, "psi": 0.339448513416048, "q1": 0.51094705504995,
                  "q2": 0.771988589095304}),
    "logistic": ("logistic", "sign", "sign", 0.0,
                 {"training_loss": 0.153103254139, "test_error": 0.12589485917,
                  "m": 6.267658815, "psi": 0.855164585959, "q1": 3.089097037, "q2": 1.968391332}),
    "hinge": ("hinge", "sign", "sign", 0.0,
              {"training_loss": 0.0902514645237, "test_error": 0.140209568645,
               "m": 3.98037357679, "psi": 0.785602402339, "q1": 3.37841352864,
               "q2": 3.18382762345}),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVEX)
def test_readouts_of_convex_losses_extrapolate_to_their_theory(name):
    loss, teacher, labels, noise, expected = CONVEX[name]
    student, beta = (np.tanh, 0.7) if name == "hinge" else (erf, 1.0)

    def setup(dimension):
        return FeatureSetup(
            student, getattr(np, teacher), FeatureClass(1.0, 1.2, 1.1), 0.9, beta=beta,
            noise_variance=noise, dimension=dimension, labels=labels,
        )  # fmt: skip

    runs = [(50, 40), (100, 20)]
    deviations = extrapolated(setup, 2, 0.1, loss, runs, expected)
    assert max(map(abs, deviations.values())) < 4, deviations


def test_readouts_of_a_model_are_labelled():
    model = features("erf", "sign", 1.2, 1.1, 0.9)
    found = simulate_readout(
        model, 50, [1, 2], 0.1, loss=simulated_loss(convex_loss("logistic")), labels="sign",
        seeds=2, progress=False,
    )  # fmt: skip
    assert found.attrs["loss"] == "logistic" and found.attrs["labels"] == "sign"
    assert float(found["certificate"].max()) < 1e-8
    other = features("erf", "sin", 1.2, 1.1, 0.9)
    with pytest.raises(ParameterError, match="labels ±1"):
        hinge = simulated_loss(convex_loss("hinge"))
        simulate_readout(other, 50, 1, 0.1, loss=hinge, seeds=1, progress=False)


# ------------------------------------------------------------------ letters, biases, rank


LETTERS_210 = {
    "test_error": 0.08715293133592,
    "training_error": 0.04436743022361,
    "m": [1.15212290264589, 0.25817041264151],
    "q2": [0.09936672189284, 0.10196991755329],
}


def test_two_letters_have_the_overlaps_of_a_finite_width():
    # erf/sin, r = (1.2, −.6), c = (1.1, 1.02), π = (.4, .6), γ = .9, β = .7, α = 2, λ = .1:
    # closed equations for K letters with p = 210 in the finite-width terms (derived here).
    kinds = (FeatureClass(0.4, 1.2, 1.1), FeatureClass(0.6, -0.6, 1.02))
    setup = FeatureSetup(erf, np.sin, kinds, 0.9, beta=0.7, dimension=300)
    found = simulate_features(setup, 2, ridge=0.1, seeds=12, progress=False)
    finite = LETTERS_210
    # The terms in m of order 1/p are included, others of order 1/d are not: 1/d to 3/d is allowed
    # for them, chosen and not measured.
    assert agrees(found.test_error[:, 0], finite["test_error"], 1 / 300)
    assert agrees(found.training_error[:, 0], finite["training_error"], 1 / 300)
    assert agrees(found.m[:, 0], finite["m"], 3 / 300)
    assert agrees(found.q2[:, 0], finite["q2"], 3 / 300)
    # The strict limit is excluded: m = (1.9690301, 1.5311958).
    assert not agrees(found.m[:, 0], [1.9690301, 1.5311958], 3 / 300)


def test_two_quenched_biases():
    # Biases ±.8, erf/(He3/6), r = c = 1, γ = .9, α = 1.5, λ = .05 (K classes, strict limit).
    kinds = (FeatureClass(0.5, 1.0, 1.0, 0.8), FeatureClass(0.5, 1.0, 1.0, -0.8))
    setup = FeatureSetup(erf, lambda z: (z**3 - 3 * z) / 6, kinds, 0.9, dimension=200)
    found = simulate_features(setup, 1.5, ridge=0.05, seeds=16, progress=False)
    assert agrees(found.test_error[:, 0], 0.2278947992101, 2 / 200)
    assert agrees(found.training_error[:, 0], 0.1074934868286, 2 / 200)
    assert agrees(found.m[:, 0], [0.06150608, 0.06150608], 4 / 200)


def test_orthonormal_bulk_has_equations_of_its_own():
    # tanh/sin, r = (1.5, .5), c = (1.2, 1), γ = 1, α = 1.5, λ = .05, orthonormal bulk: finite
    # width p = 600 gives .01421 and .00437 (derived here), the strict limit .0050606, .0017620.
    kinds = (FeatureClass(0.5, 1.5, 1.2), FeatureClass(0.5, 0.5, 1.0))
    setup = FeatureSetup(np.tanh, np.sin, kinds, 1.0, dimension=600, bulk="orthonormal")
    found = simulate_features(setup, 1.5, ridge=0.05, seeds=4, progress=False)
    assert agrees(found.test_error[:, 0], 0.01421, 1 / 600)
    assert agrees(found.q2[:, 0], [0.0191, 0.0156], 1 / 600)


def test_rotating_all_spike_directions_changes_no_law():
    # One letter of rank two is the same features as rank one along its direction.
    gamma, along = np.array([0.7, 0.4]), np.array([0.6, 0.8])
    two = FeatureSetup(np.tanh, np.sin, FeatureClass(1.0, tuple(along), 1.1), gamma, dimension=80)
    one = FeatureSetup(np.tanh, np.sin, FeatureClass(1.0, 1.0, 1.1), along @ gamma, dimension=80)
    results = [
        simulate_features(s, 2, ridge=0.1, seeds=24, seed=k, progress=False)
        for k, s in enumerate((two, one))
    ]
    for name in ("test_error", "training_error", "m", "q2"):
        means, errors = zip(*((r.mean(name), r.standard_error(name)) for r in results), strict=True)
        assert np.all(np.abs(means[0] - means[1]) < 4 * np.hypot(*errors))


def test_networks_with_letters_train_like_spiked_features_of_their_spikes():
    # Letters {.4, 1, 1.8} (π = .3, .4, .3), erf/erf, s = 2, α0 = 5, α = 2, Δ = .05, λ = .1.
    slope = 2 / math.sqrt(math.pi)
    network = SteppedNetwork(
        erf, lambda z: slope * np.exp(-z * z), erf, 2.0, 5.0, (0.4, 1.0, 1.8), (0.3, 0.4, 0.3),
        noise_variance=0.05, dimension=200,
    )  # fmt: skip
    kinds = [
        FeatureClass(share, r, c)
        for share, r, c in zip(
            (0.3, 0.4, 0.3), (0.3785, 0.9462, 1.7031), (1.0095, 1.0597, 1.1934), strict=True
        )
    ]
    # v·θ = h*_1/ν with h*_1 = 2/sqrt(3π) and ν² = h*_1² + (E erf² + Δ)/α0.
    gamma = 0.65147001587 / math.sqrt(0.65147001587**2 + (0.4645590543975 + 0.05) / 5)
    given = FeatureSetup(erf, erf, kinds, gamma, noise_variance=0.05, dimension=200)
    trained, sampled = (
        simulate_features(s, 2, ridge=0.1, seeds=12, progress=False) for s in (network, given)
    )
    for name in ("test_error", "training_error"):
        error = np.hypot(trained.standard_error(name), sampled.standard_error(name))
        # What spiked random features neglect is a few per cent here: c − 1 = .19.
        mean = sampled.mean(name)
        assert np.all(np.abs(trained.mean(name) - mean) < 4 * error + 0.05 * mean)


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
    # Another dimension leaves the networks of the others as they are.
    more = gs.finite_size_study(model, [40, 60, 80], [1, 2], 0.05, **arguments)
    np.testing.assert_array_equal(more.dataset["test_error"].sel(dimension=[40, 80]),
                                  study.dataset["test_error"])  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimensions": [40]}, "at least two"),
        ({"dimensions": [40, 40]}, "at least two"),
        ({"dimensions": [40.5, 80]}, "whole number"),
        ({"seeds": [2, 2, 2]}, "one for each of the 2"),
        ({"seeds": 1}, "seeds must be >= 2"),
        ({"quantities": ["q9"]}, "no quantity 'q9'"),
        ({"source": 3}, "method simulate"),
        ({"alpha": -1}, "alpha"),
    ],
)
def test_bad_studies_are_refused(changes, message):
    arguments = {
        "source": features("erf", "erf", 1.2, 1.15, 0.9), "dimensions": [40, 80], "alpha": 1.0,
        "seeds": 2, "progress": False,
    }  # fmt: skip
    with pytest.raises(ParameterError, match=message):
        gs.finite_size_study(**(arguments | changes))


def test_what_was_not_studied_is_not_found(tmp_path):
    study = gs.finite_size_study(
        features("erf", "erf", 1.2, 1.15, 0.9), [40, 80], 1, seeds=2, progress=False
    )
    with pytest.raises(ParameterError, match="no quantity 'm'"):
        study.fit("m")
    with pytest.raises(ParameterError, match="alpha = 3 was not studied"):
        study.fit(alpha=3)
    with pytest.raises(ParameterError, match="no file"):
        gs.FiniteSizeStudy.load(tmp_path / "none.nc")
    study.dataset.assign_attrs(kind="other").to_netcdf(tmp_path / "other.nc")
    with pytest.raises(ParameterError, match="not a saved study"):
        gs.FiniteSizeStudy.load(tmp_path / "other.nc")
    (tmp_path / "text.nc").write_text("text")
    with pytest.raises(ParameterError, match="not a saved study"):
        gs.FiniteSizeStudy.load(tmp_path / "text.nc")
