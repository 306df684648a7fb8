"""Spectra of the features: reference values, masses, moments, outliers, simulations, refusals."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from scipy.optimize import brentq, fsolve

from giantstep import Spectrum, SpikedRandomFeatures
from giantstep.derivations.spiked_random_features import physics as symbols
from giantstep.derivations.spiked_random_features.spectrum.law import spectrum_equations
from giantstep.errors import ParameterError
from giantstep.symbolic.expressions.activations import activation


def features(student, r, c, beta=1.0):
    return SpikedRandomFeatures.from_parameters(
        student, "erf", spike_strength=r, bulk_variance=c, alignment=0.9, beta=beta
    )


CASES = {
    "tanh": (features("tanh", 2.0, 1.1), 1.5),
    "erf": (features("erf", 1.0, 1.1, 0.5), 3.0),
    "sin": (features("sin", 1.5, 1.3, 1.5), 0.7),
    "reference": (features("erf", 1.2, 1.1), 2.0),
}


@functools.cache
def spectrum_of(name):
    """The spectrum of a case, a second or more of work, once."""
    model, alpha = CASES[name]
    return model.spectrum(alpha=alpha)


@pytest.fixture(params=["tanh", pytest.param("sin", marks=pytest.mark.slow), "erf"])
def case(request):
    return request.param, spectrum_of(request.param)


def test_reference_values():
    """Trapezoidal rule and complex Newton iteration, 15 digits; -V_2 is the transform's sign."""
    found = spectrum_of("reference").stieltjes([-0.1, 0.5 + 0.01j])
    expected = [3.04646930228347, -1.21276415251883 + 1.51855377763914j]
    np.testing.assert_allclose(found, expected, rtol=2e-14)
    found = spectrum_of("tanh").stieltjes(1 + 0.001j)
    assert found == pytest.approx(-1.16391646186161 + 0.536542200354152j, rel=2e-14)


def test_bulk_has_the_mass_that_the_ranks_leave(case):
    _, spectrum = case
    rank = min(spectrum.alpha / spectrum.model.beta, 1)
    assert spectrum.masses.sum() == pytest.approx(rank, abs=1e-12)
    assert spectrum.mass_error < 1e-12
    # A density never reaches beyond an edge, and is positive between two.
    assert (spectrum.densities[1:-1] > 0).all()
    assert not spectrum.soft.any()


def test_top_eigenvalue_shift(case):
    """Values of the expansion for the three cases, four digits."""
    name, spectrum = case
    expected = {"tanh": 0.411, "erf": 2.651, "sin": 0.485}
    assert spectrum.top_expansion[1] == pytest.approx(expected[name], abs=5e-4)
    # The root of the full condition at a width comes to the same.
    width = 4000
    assert spectrum.outliers_at(width)[-1] == pytest.approx(
        spectrum.top_eigenvalue(width), abs=1e-2
    )


def test_symbolic_outlier_condition_and_shift():
    """The conditions are derived here; this is their form after elimination by hand."""
    equations = spectrum_equations(activation("tanh", argument="student"))
    mean, kappa = symbols.average, symbols.kappa
    mu0, mu1, mu2 = symbols.mu0, symbols.mu1, symbols.mu2_squared
    v1, v2, c, alpha, beta = symbols.V1, symbols.V2, symbols.c, symbols.alpha, symbols.beta
    whole = 1 + mu1**2 * v1 + mu2 * v2
    expected = 1 + alpha * c * v2 * (
        mean(kappa**2 * mu1**2 / whole)
        - mean(kappa * mu0 * mu1 / whole) ** 2 / mean(mu0**2 / whole)
    )
    assert sp.expand(equations.second_outlier - expected) == 0
    slope, shift = equations.top_eigenvalue()
    assert slope == alpha / beta * mean(mu0**2)
    tau = [c * mu1**2, mu2]
    by_hand = sum(mean(mu0**2 * t) for t in tau) / mean(mu0**2)
    by_hand += alpha / beta * sum(mean(t) for t in tau)
    by_hand += alpha * c * mean(kappa * mu0 * mu1) ** 2 / mean(mu0**2)
    assert sp.expand(shift - by_hand) == 0


def test_second_outlier_against_closed_forms():
    """cos has elementary coefficients; solved here by Gauss-Hermite and SciPy alone."""
    r, c, beta, alpha = 0.5, 1.0, 6.0, 100.0
    k, w = np.polynomial.hermite_e.hermegauss(120)
    w = w / np.sqrt(2 * np.pi)
    mu0, mu1 = np.exp(-c / 2) * np.cos(r * k), -np.exp(-c / 2) * np.sin(r * k)
    mu2 = (1 + np.exp(-2 * c) * np.cos(2 * r * k)) / 2 - mu0**2 - c * mu1**2

    def equations(v, x):
        whole = 1 + mu1**2 * v[0] + mu2 * v[1]
        a, b = (alpha / beta * (w @ (m / whole)) for m in (mu1**2, mu2))
        return [v[0] * (1 + beta * c * a * v[1]) - c * v[1], v[1] * (b - x) + a * v[0] - 1]

    def condition(x):
        v = np.array([-c / 500, -1 / 500])
        for point in np.geomspace(500, x, 40):
            v = fsolve(equations, v, args=(point,), xtol=1e-13)
        whole = 1 + mu1**2 * v[0] + mu2 * v[1]
        square = (w @ (k * mu0 * mu1 / whole)) ** 2
        rest = w @ (k**2 * mu1**2 / whole) - square / (w @ (mu0**2 / whole))
        return 1 + alpha * c * v[1] * rest

    spectrum = features("cos", r, c, beta).spectrum(alpha=alpha)
    (outlier,) = spectrum.outliers
    assert outlier == pytest.approx(brentq(condition, 19.5, 21), rel=1e-9)
    assert outlier == pytest.approx(20.24801, abs=1e-5)
    np.testing.assert_allclose(spectrum.masses, [5 / 6, 1 / 6], atol=1e-10)


def test_outliers_of_the_population_covariance():
    """Eigenvalues of a finite matrix with the coefficients as numbers, two signals in all."""
    model = features("tanh", 2.0, 1.1, 2.0)
    spectrum = model.spectrum(alpha=1.0, covariance="population")
    nodes = spectrum._law.functions.fine_nodes
    weight, kappa = nodes.weight, nodes.node
    mu0, mu1, mu2 = (nodes.tables[k] for k in ("mu_0", "mu_1", "mu_2_squared"))
    rng = np.random.default_rng(5)
    d, p = 300, 600
    rows = rng.standard_normal((p, d))
    rows *= np.sqrt(1.1) / np.linalg.norm(rows, axis=1, keepdims=True)
    along, ones = rows[:, 0], np.ones(p)
    omega = rows[:, 1:] @ rows[:, 1:].T
    cross = weight @ (kappa * mu0 * mu1) * np.outer(ones, along)
    matrix = (
        weight @ mu0**2 * np.outer(ones, ones) + cross + cross.T
        + weight @ (kappa * mu1) ** 2 * np.outer(along, along)
        + weight @ mu1**2 * omega + weight @ mu2 * np.eye(p)
    )  # fmt: skip
    values = np.linalg.eigvalsh(matrix)
    place, mass = spectrum.atoms[0]
    assert mass == pytest.approx(0.5)
    # d - 1 directions of the rows across the spike, the spike itself, and the mean.
    np.testing.assert_allclose(values[: p - d - 1], place, rtol=1e-10)
    (outlier,) = spectrum.outliers
    assert outlier == pytest.approx(values[values > place * (1 + 1e-6)][0], rel=0.05)
    assert spectrum.top_eigenvalue(p) == pytest.approx(values[-1], rel=0.01)


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(
    student=st.sampled_from(["erf", "tanh", "sin", "relu", "cos"]),
    r=st.sampled_from([0.5, 1.0, -1.5]),
    c=st.floats(0.5, 2.0),
    beta=st.floats(0.2, 3.0),
    share=st.floats(0.3, 4.0),
)
def test_moments_against_traces(student, r, c, beta, share):
    """tr K and tr K², without the mean, from the conditional covariances of the features."""
    alpha = beta * share
    spectrum = features(student, r, c, beta).spectrum(alpha=alpha, points=801)
    nodes = spectrum._law.functions.fine_nodes
    mu1, mu2, w = nodes.tables["mu_1"] ** 2, nodes.tables["mu_2_squared"], nodes.weight
    tau, m1, m2 = c * mu1 + mu2, w @ mu1, w @ mu2
    first = share * (w @ tau)
    pairs = m1**2 * c**2 * (1 + beta) + 2 * m1 * m2 * c + m2**2
    second = share * (w @ tau**2) + share**2 * pairs
    x, mass = spectrum.points, np.diff(spectrum.cumulative)
    middle = (x[1:] + x[:-1]) / 2
    assert spectrum.mean == pytest.approx(first, rel=1e-10)
    assert np.sum(mass * middle) == pytest.approx(first, rel=2e-3)
    assert np.sum(mass * middle**2) == pytest.approx(second, rel=4e-3)
    assert spectrum.mass_error < 1e-5


# The kernel has the eigenvalues of the sample's, but for zeros.
@pytest.mark.parametrize(
    "covariance",
    ["sample", "population", pytest.param("kernel", marks=pytest.mark.slow)],
)
def test_density_atoms_and_transform_belong_together(covariance):
    spectrum = features("sin", 1.5, 1.3, 1.5).spectrum(alpha=0.7, points=401, covariance=covariance)
    x, density = spectrum.points, spectrum.densities
    for z in (0.3 + 0.1j, 1.0 - 0.2j):
        bulk = np.trapezoid(x * density / (x - z), np.log(x))
        atoms = sum(mass / (place - z) for place, mass in spectrum.atoms)
        assert spectrum.stieltjes(z) == pytest.approx(bulk + atoms, abs=2e-4)
    assert spectrum.stieltjes(1e9) * 1e9 == pytest.approx(-1, abs=1e-7)


def test_the_kernel_of_more_samples_than_features_has_zeros():
    model, alpha = CASES["erf"]
    kernel = model.spectrum(alpha=alpha, points=50, covariance="kernel")
    ((place, mass),) = kernel.atoms
    assert place == 0 and mass == pytest.approx(1 - model.beta / alpha, abs=1e-12)
    assert kernel.masses.sum() == pytest.approx(model.beta / alpha, abs=1e-9)


@pytest.mark.slow
def test_tails_of_saturating_students_are_resolved():
    """With n < p samples at large κ make eigenvalues over many decades; nothing is lost."""
    spectrum = features("tanh", 2.0, 1.1).spectrum(alpha=0.6, points=200)
    assert spectrum.edges[0, 0] < 1e-12
    assert spectrum.mass_error < 2e-6
    assert spectrum.atoms == ((0.0, pytest.approx(0.4)),)
    simulated = spectrum.simulate(300, seeds=2, progress=False)
    assert simulated.distance(spectrum) < 0.015


@pytest.mark.slow
def test_what_no_nodes_resolve_is_in_the_error():
    """With few samples and a large bulk no contour passes the poles of the tail."""
    spectrum = features("erf", 0.5, 5.0).spectrum(alpha=0.007, points=200)
    lost = 0.007 - spectrum.masses.sum()
    assert 0 < abs(lost) < 2 * spectrum.mass_errors.sum() < 2e-4 * 0.007
    # Damped iteration with 80 000 nodes, from two heights above the axis.
    expected = {0.46: 6.155e-5, 0.49: 2.0736e-4, 0.52: 7.5690e-4, 0.6: 2.14832e-2}
    logarithms = np.log(np.maximum(spectrum.densities, 1e-99))
    found = np.interp(list(expected), spectrum.points, logarithms)
    np.testing.assert_allclose(np.exp(found), list(expected.values()), rtol=0.01)


def test_square_density_diverges_at_zero():
    spectrum = features("erf", 1.0, 1.1).spectrum(alpha=1.0)
    x, density = spectrum.points, spectrum.densities
    low = (x > 1e-12) & (x < 1e-9)
    slope = np.polyfit(np.log(x[low]), np.log(density[low]), 1)[0]
    assert slope == pytest.approx(-0.5, abs=2e-3)
    assert spectrum.mass_error < 1e-6


@pytest.mark.parametrize(
    ("student", "r", "c", "beta", "alpha", "mass"),
    [
        ("erf", 0.0, 1.0, 1.5, 2.0, 1.0),
        pytest.param("erf", 1.0, 1.1, 1e-4, 50.0, 1.0, marks=pytest.mark.slow),
        pytest.param("erf", 1.0, 1.1, 1.0, 1e-3, 1e-3, marks=pytest.mark.slow),
        pytest.param("z", 1.0, 1.0, 1.5, 2.0, 2 / 3, marks=pytest.mark.slow),
        pytest.param("He(3, z)/6", 1.0, 1.1, 1.0, 2.0, 1.0, marks=pytest.mark.slow),
        pytest.param("cos", 0.5, 5.0, 100.0, 1.44e-3, 1.44e-5, marks=pytest.mark.slow),
        pytest.param("He(2, z)", 0.0, 1.0, 0.1, 0.1187, 1.0, marks=pytest.mark.slow),
        pytest.param("abs", -1.5, 1.1, 10.0, 4.3556, 0.43556, marks=pytest.mark.slow),
    ],
)
def test_unusual_parameters(student, r, c, beta, alpha, mass):
    """No spike, hardly any features or samples, no noise, unbounded coefficients, narrow bulk."""
    spectrum = features(student, r, c, beta).spectrum(alpha=alpha)
    assert spectrum.masses.sum() == pytest.approx(mass, rel=2e-5)
    assert sum(m for _, m in spectrum.atoms) == pytest.approx(1 - mass, abs=2e-6)
    assert spectrum.outliers == ()


@pytest.mark.parametrize("case", ["erf"], indirect=True)
def test_files_and_figures(tmp_path, case):
    _, spectrum = case
    document = json.loads(spectrum.to_json())
    assert document["atoms"] == [list(atom) for atom in spectrum.atoms]
    assert Spectrum.from_json(spectrum.to_json()).stieltjes(1j) == spectrum.stieltjes(1j)
    # What releases before the one class for all spectra wrote.
    old = {k: v for k, v in document.items() if k not in ("kind", "rests_on")}
    old |= {"format": "spectrum of spiked random features", "model": spectrum.model.to_json()}
    assert Spectrum.from_json(json.dumps(old)) == spectrum
    with pytest.raises(ParameterError, match="no spectrum"):
        Spectrum.from_json("{}")
    dataset = spectrum.to_dataset()
    np.testing.assert_array_equal(dataset.density, spectrum.densities)
    dataset.to_netcdf(tmp_path / "spectrum.nc")
    simulated = spectrum.simulate(60, seeds=2, progress=False)
    assert spectrum.plot(simulated).get_ylabel().startswith("density")


def test_noise_alone_is_an_atom_of_the_population():
    """An even student without a spike: μ1 = 0, all directions have the variance 2 of He_2."""
    model = features("He(2, z)", 0.0, 1.0, 2.0)
    spectrum = model.spectrum(alpha=1.0, points=50, covariance="population")
    assert spectrum.atoms == ((pytest.approx(2), 1.0),) and not spectrum.supercritical
    assert spectrum.edges.shape == (0, 2) and spectrum.eigenvalue == 0
    assert spectrum.cumulative_at([1.9, 2.1]).tolist() == [0, 1]
    assert spectrum.density(2.5) == 0 and spectrum.stieltjes(-1.0) == pytest.approx(1 / 3)
    assert "bulk: none" in str(spectrum) and r"\emptyset" in spectrum.latex()
    assert Spectrum.from_json(spectrum.to_json()) == spectrum
    assert "1 at 2" in spectrum.plot().get_title()


def test_densities_at_points_and_on_other_grids():
    spectrum = CASES["sin"][0].spectrum(alpha=0.7, points=60)
    (low, high), points = spectrum.edges[0], spectrum.points
    np.testing.assert_allclose(spectrum.density(points), spectrum.densities, rtol=1e-9, atol=1e-12)
    backwards = spectrum.density(points[None, ::-1])
    np.testing.assert_array_equal(backwards.ravel()[::-1], spectrum.density(points))
    assert spectrum.density(low / 2) == 0 == spectrum.density(high + 1)
    finer = spectrum.bulk(120)
    assert len(finer.points) > 80 and not finer.interval.any()
    np.testing.assert_allclose(finer.masses, spectrum.masses, rtol=1e-9)
    np.testing.assert_allclose(spectrum.cumulative_at(finer.points), finer.cumulative, atol=1e-3)
    assert spectrum.eigenvalue == spectrum.bulk_edge == high
    assert not spectrum.supercritical
    assert spectrum.stieltjes(2.0).imag == 0
    assert spectrum.stieltjes(0.5 + 1e-9j).imag > 0


@pytest.mark.slow
def test_trained_network_beside_its_asymptotics():
    """The features of one trained network, at the spike that it has found."""
    model = SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    spectrum = model.spectrum(alpha=1.5)
    simulated = spectrum.simulate(300, seeds=1, trained=True, progress=False)
    assert simulated.distance(spectrum) < 0.03
    # The spectrum of a certain network is at the spike that this one has found.
    network = model.realised(100, 1.5, 0.1, seed=2, progress=False)
    at_its_spike, eigenvalues = network.feature_spectrum(1.5, progress=False)
    assert at_its_spike.model.spike == network.spike and eigenvalues.trained
    assert eigenvalues.distance(at_its_spike) < 0.06
    with pytest.raises(ParameterError, match="population"):
        model.spectrum(alpha=1.0, covariance="population").simulate(50, progress=False)


def test_the_density_acts_as_the_array_that_it_was():
    spectrum = spectrum_of("erf")
    for use in (
        lambda d: d[1:-1], lambda d: d * 2, lambda d: np.sqrt(d), lambda d: d.max(),
        lambda d: np.interp(1.0, spectrum.points, d),
    ):  # fmt: skip
        with pytest.warns(DeprecationWarning, match=r"spectrum.densities from now on"):
            found = use(spectrum.density)
        np.testing.assert_array_equal(found, use(spectrum.densities))
    assert len(spectrum.density) == len(spectrum.densities)
    assert spectrum.density(1.0) == spectrum.density_at(1.0)
    document = json.loads(spectrum.to_json())
    document["density"] = document.pop("densities")
    again = type(spectrum).from_json(json.dumps(document))
    np.testing.assert_array_equal(again.densities, spectrum.densities)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda s: s.stieltjes(0.5), r"inside the bulk.*complex z.*density\(0.5\)"),
        (lambda s: s.model.spectrum(alpha=0.4).stieltjes([1j, 0.0]), "eigenvalue of mass"),
        (lambda s: s.stieltjes([1j, 2j], digits=20), "digits are for one z at a time, not for an"),
        *((lambda s, z=z: s.stieltjes(z), "z must be")
          for z in ("x", None, [1j, np.nan], np.inf, [[1], [2, 3]], True)),
        *((lambda s, x=x: s.density(x), "x must") for x in (1j, "x", np.nan)),
        *((lambda s, x=x: s.cumulative_at(x), "x must") for x in (1j, "x", np.nan)),
        *((lambda s, a=a: s.model.spectrum(alpha=a), "alpha") for a in (0, np.nan, "1")),
        *((lambda s, n=n: s.model.spectrum(alpha=1.0, points=n), "points") for n in (3, 10**7)),
        *((lambda s, c=c: s.model.spectrum(alpha=1.0, covariance=c), "covariance")
          for c in ("K", None)),
        (lambda s: s.plot("nothing"), "simulation"),
        (lambda s: s.plot(ax=3), "axes"),
        (lambda s: s.simulate(50, trained=True, progress=False), "trained"),
    ],
)  # fmt: skip
def test_wrong_questions_are_refused(ask, words):
    with pytest.raises(ParameterError, match=words):
        ask(spectrum_of("erf"))
