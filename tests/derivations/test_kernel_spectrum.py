"""Spectrum of the conjugate kernel: reference values, equations, matrices, limits, bad input."""

import json
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from giantstep import OneGradientStep, Spectrum
from giantstep.derivations.one_gradient_step.kernel_spectrum import (
    ConjugateKernel,
    KernelCurve,
    expected_matrix,
    spectrum_sources,
)
from giantstep.derivations.one_gradient_step.reference import reference_cases
from giantstep.derivations.spiked_random_features.spectrum.spectrum import FeatureSpectrum
from giantstep.errors import ClosedFormNotFoundError, ParameterError
from giantstep.numeric.cache import FileCache

CASES = pytest.mark.parametrize("case", reference_cases(), ids=lambda case: case.name)
TABLE = {
    "threshold": "threshold",
    "bulk_edge": "bulk_edge",
    "kernel_eigenvalue": "eigenvalue",
    "label_alignment": "label_alignment",
    "spike": "spike",
}
MODEL = OneGradientStep("erf", "tanh", alpha=2, beta=1.5, step_size=4, noise_variance=0.25)


def curve(alpha, beta, linear="1", floor="0.1"):
    return KernelCurve(spectrum_sources(FileCache(None)), alpha, beta, linear, floor)


# ---------------------------------------------------------------------- reference values


@CASES
def test_reference_values_in_floats(case):
    kernel = case.build().conjugate_kernel()
    for name, attribute in TABLE.items():
        value = getattr(kernel, attribute)
        value = math.sqrt(value) if name == "spike" else value
        assert value == pytest.approx(float(case.values[name]), rel=4e-16, abs=0)


# ---------------------------------------------------------------------- bulk


def test_bulk_of_two_intervals():
    """tanh at α = 4, β = 2: noise and linear part each have an interval of d eigenvalues."""
    kernel = OneGradientStep("tanh", "erf", alpha=4, beta=2, step_size=1).conjugate_kernel()
    assert kernel.edges.shape == (2, 2)
    np.testing.assert_allclose(kernel.masses, [0.25, 0.25])
    assert kernel.atom == 0.5
    gap = kernel.edges[0, 1] / 2 + kernel.edges[1, 0] / 2
    assert kernel.density(gap) == 0
    assert kernel.cumulative_at(gap) == 0.75
    assert kernel.stieltjes(gap).imag == 0
    # The transform continues from the upper half plane.
    assert kernel.stieltjes(gap) == pytest.approx(kernel.stieltjes(gap + 1e-9j), rel=1e-6)


SIZES = st.floats(-3, 3).map(lambda x: 10.0**x)


@given(alpha=SIZES, beta=SIZES, kappa=st.floats(-6, 6).map(lambda x: 10.0**x))
@settings(max_examples=10, deadline=None)
def test_wild_parameters(alpha, beta, kappa):
    found = curve(alpha, beta, "1", repr(kappa))
    edges = found.float_edges
    assert (np.diff(edges.ravel()) > 0).all()
    assert (edges >= 0).all()
    assert found.threshold > math.sqrt(beta)
    bulk = found.bulk(100)
    masses = np.array([float(m) for m in found.masses])
    np.testing.assert_allclose(bulk.masses, masses, rtol=1e-8)
    assert float(found.atom) + masses.sum() == pytest.approx(1, rel=1e-14)
    # The mean of the spectrum is that of tr(Φ^T Φ)/n.
    x = bulk.points
    closed = np.sum(np.diff(bulk.cumulative) * (x[1:] + x[:-1]) / 2)
    assert closed == pytest.approx(1 + kappa, rel=0.02)
    # The transform solves the equation of the effective ridge, far from the bulk too.
    sizes = np.array([1e-8, 1e-3, 0.5, 1.5, 1e3])
    z = edges[-1, 1] * np.concatenate([sizes * (1 + 1e-3j), sizes * 1j, -sizes])
    nu = found.effective_ridge(z)
    assert (nu.imag <= 1e-12 * np.abs(nu)).all()
    with mpmath.workdps(60):
        for point, root in zip(z, nu, strict=True):
            # Off the cut of the population's spectrum its resolvent is an average.
            a = mpmath.mpf(repr(kappa)) + mpmath.mpc(root)
            middle = a + 1 - mpmath.mpf(repr(beta))
            direction = a + 1 + mpmath.mpf(repr(beta))
            side = mpmath.sqrt(middle**2 + 4 * a * mpmath.mpf(repr(beta)))
            side = -side if (side * mpmath.conj(direction)).real < 0 else side
            excess = mpmath.mpf(repr(alpha)) / mpmath.mpf(repr(beta)) - 1
            terms = (mpmath.mpc(point), root * excess, 2 * mpmath.mpc(root) ** 2 / (middle + side))
            assert abs(sum(terms)) < 1e-13 * sum(map(abs, terms))


@pytest.mark.parametrize(
    ("alpha", "beta", "floor"),
    [
        (1.0, 1.0, "0.1"), (2.0, 2.0, "0.1"), (1.0, 1.0, "0"), (2.0, 1.0, "0"), (0.5, 1.0, "0"),
        (2.0, 3.0, "0"), (1.0, 2.0, "0"), (2.0, 2.0, "0"), (0.5, 0.5, "0"), (0.5, 3.0, "0"),
        (2.0, 0.5, "0"), (1.0000001, 1.0, "0.1"),
    ],
)  # fmt: skip
def test_mass_at_hard_edges_and_for_a_linear_student(alpha, beta, floor):
    found = curve(alpha, beta, "1", floor)
    bulk = found.bulk(200)
    rank = min(alpha, beta, 1 if floor == "0" else alpha)
    assert float(found.atom) == pytest.approx(1 - rank / alpha)
    assert bulk.masses.sum() == pytest.approx(rank / alpha, rel=1e-7)
    assert (bulk.density[1:] >= 0).all()


def test_a_gap_that_nearly_closes():
    """Both sides of the width at which two intervals merge; ζ is nearly stationary between."""
    low, high = 1.01, 4.0
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if len(curve(4.0, middle).edges) == 2 else (middle, high)
    merged, split = curve(4.0, low), curve(4.0, high)
    assert len(merged.edges) == 1 and len(split.edges) == 2
    ends = np.ravel(split.float_edges)
    assert 0 <= ends[2] - ends[1] < 1e-12
    np.testing.assert_allclose(ends[[0, 3]], merged.float_edges[0], rtol=1e-13)
    bulk = split.bulk(200)
    np.testing.assert_allclose(bulk.masses, [0.25 * (low - 1), 0.25], rtol=1e-9)


def test_transform_of_the_density():
    kernel = MODEL.conjugate_kernel()
    bulk = kernel.bulk(4000)
    for z in (-0.3, 0.5 + 0.4j, 6 - 1j, 20.0):
        inside = bulk.density / (bulk.points - z)
        value = np.sum((inside[1:] + inside[:-1]) / 2 * np.diff(bulk.points)) - kernel.atom / z
        assert kernel.stieltjes(z) == pytest.approx(value, rel=1e-5)
    many = kernel.stieltjes(np.array([[1 + 1j, 1 - 1j]]))
    assert many.shape == (1, 2)
    assert many[0, 0] == np.conj(many[0, 1])
    precise = kernel.stieltjes(1 + 1j, digits=40)
    assert complex(precise) == pytest.approx(many[0, 0], rel=1e-14)
    assert abs(complex(kernel.stieltjes(1e9j)) * 1e9j + 1) < 1e-7


def test_marchenko_pastur_without_a_linear_part():
    """An even student: Φ is noise of variance μ², whose kernel follows Marchenko and Pastur."""
    model = OneGradientStep("z**2", "tanh", alpha=2, beta=0.5, step_size=2, centre=True)
    kernel = model.conjugate_kernel()
    # Nonzero eigenvalues are 2 n/N times those of Z^T Z/n, N/n = 1/4.
    share, scale = 0.25, 2.0 * 4
    low, high = (1 - math.sqrt(share)) ** 2, (1 + math.sqrt(share)) ** 2
    np.testing.assert_allclose(kernel.edges, [[scale * low, scale * high]])
    x = np.linspace(low, high, 9)[1:-1]
    density = np.sqrt((high - x) * (x - low)) / (2 * math.pi * share * x)
    np.testing.assert_allclose(kernel.density(scale * x), share * density / scale, rtol=1e-10)
    assert kernel.threshold == math.inf == kernel.critical_step_size
    assert kernel.outlier is None and kernel.label_alignment == 0
    assert json.loads(kernel.to_json())["threshold"] == "inf"
    assert "inf" in str(kernel) and r"\infty" in kernel._repr_latex_()


# ---------------------------------------------------------------------- the step


def test_outlier_appears_at_the_critical_step_size():
    critical = MODEL.conjugate_kernel().critical_step_size
    assert critical > MODEL.weight_spike().critical_step_size

    def at(step, **changes):
        return OneGradientStep(
            "erf", "tanh", alpha=2, beta=1.5, step_size=step, noise_variance=0.25, **changes
        ).conjugate_kernel()

    below, above = at(critical * (1 - 1e-9)), at(critical * (1 + 1e-9))
    assert not below.supercritical and above.supercritical
    assert above.eigenvalue == pytest.approx(below.eigenvalue, rel=1e-12)
    assert 0 < above.label_alignment < 1e-7
    full = at(1, loss="full")
    assert full.critical_step_size == pytest.approx(critical / 2)
    assert at(1e6).label_alignment <= 1
    unlimited = at(4, alpha0=math.inf)
    assert unlimited.spike == pytest.approx(
        (4 * MODEL.student_moments.linear * MODEL.teacher_moments.linear) ** 2
    )


def test_before_the_step_there_is_no_outlier():
    kernel = MODEL.conjugate_kernel(trained=False)
    assert not kernel.supercritical and kernel.spike == 0
    assert kernel.bulk_edge == MODEL.conjugate_kernel().bulk_edge == kernel.eigenvalue
    assert "conjecture" not in kernel.rests_on
    assert "conjecture" in MODEL.conjugate_kernel().rests_on


def test_a_teacher_without_linear_part_and_infinitely_many_samples_leaves_no_spike():
    model = OneGradientStep("erf", "z**3 - 3*z", alpha=2, beta=1.5, step_size=9, alpha0=math.inf)
    kernel = model.conjugate_kernel()
    assert kernel.spike == 0 and kernel.critical_step_size == math.inf


def test_expected_kernel():
    odd = MODEL.conjugate_kernel().expected
    assert odd.spike == 0 and "theorem" in odd.rests_on and odd.outlier > odd.edges[1]
    other = (
        OneGradientStep("relu", "tanh", alpha=2, beta=1.5, step_size=1, centre=True)
        .conjugate_kernel()
        .expected
    )
    # c_2 = 1/√(2π).
    assert other.spike == pytest.approx(1.5 / (4 * math.pi))
    assert r"\mathbf 1" in other._repr_latex_() and "along" in str(other)
    noise = OneGradientStep("z**2", "tanh", alpha=2, beta=1, step_size=1, centre=True)
    assert noise.conjugate_kernel().expected.edges == (2.0, 2.0)
    with pytest.raises(ClosedFormNotFoundError, match="tanh"):
        expected_matrix(OneGradientStep("tanh", "tanh", alpha=1), np.eye(3))


def test_expected_matrix_is_an_average():
    generator = np.random.default_rng(3)
    weights = generator.standard_normal((4, 3)) * 0.6
    model = OneGradientStep("relu", "tanh", alpha=1, centre=True)
    values = np.maximum(generator.standard_normal((400_000, 4)) @ weights, 0)
    values -= 1 / math.sqrt(2 * math.pi)
    sampled = values.T @ values / len(values)
    np.testing.assert_allclose(expected_matrix(model, weights), sampled, atol=6e-3)


# ---------------------------------------------------------------------- presentation, files


def test_files(tmp_path):
    # What every result does is asked of this one, too, in tests/test_result.py.
    kernel = MODEL.conjugate_kernel(digits=30)
    assert len(kernel.to_dict()["bulk_edge"]) == 31
    kernel.save(tmp_path / "kernel.json")
    assert Spectrum.load(tmp_path / "kernel.json") == kernel
    dataset = kernel.to_dataset(100)
    assert dataset.density.sizes == {"eigenvalue": 100}
    assert float(dataset.mass_error.max()) < 1e-10 and kernel.mass_error < 1e-10
    document = json.loads((tmp_path / "kernel.json").read_text())
    # What releases before the one class for all spectra wrote.
    old = {k: v for k, v in document.items() if k not in ("kind", "soft", "atoms", "certificate")}
    old["format"] = document["kind"].removeprefix("giantstep ")
    assert ConjugateKernel.from_json(json.dumps(old)) == kernel
    with pytest.raises(ParameterError, match="no spectrum of spiked random features"):
        FeatureSpectrum.from_json(json.dumps(old))
    with pytest.raises(ParameterError, match="threshold"):
        ConjugateKernel.from_json(json.dumps({**document, "threshold": "7"}))
    with pytest.raises(ParameterError, match="cannot be read"):
        ConjugateKernel.load(tmp_path / "nowhere.json")


def test_figure():
    plt = pytest.importorskip("matplotlib.pyplot")
    model = OneGradientStep("tanh", "erf", alpha=4, beta=2, step_size=5)
    simulation = model.simulate_spectra(
        40, seeds=2, matrices=("kernel", "linearised"), progress=False
    )
    axes = model.conjugate_kernel().plot(simulation)
    labels = axes.get_legend_handles_labels()[1]
    assert {"network", "linearised features", "edge"} <= set(labels)
    assert any("outlier" in label for label in labels)
    # Marks that are not clipped take no room from panels of one figure.
    figure, panels = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    for panel in panels:
        model.conjugate_kernel().plot(simulation, ax=panel)
    figure.draw_without_rendering()
    assert min(panel.get_position().width for panel in panels) > 0.43
    plt.close(figure)
    before = model.conjugate_kernel(trained=False)
    assert "before the step" in " ".join(before.plot(simulation).get_title().split())
    matrices = before.simulate(60, seeds=2, progress=False)
    assert matrices.width == 120 and matrices.eigenvalues.shape == (2, 240)
    assert matrices.distance(before, outliers=0) < 0.03
    assert before.plot(matrices).get_legend_handles_labels()[1][0] == "simulation"
    assert before.plot(np.array([0.0, 1.0, 2.0])).get_xlabel()
    # As many samples as neurons: the density diverges at zero, and the axis shows the decades.
    for near in (0.0, 1e-9):
        square = OneGradientStep("erf", "erf", alpha=1.5, beta=1.5 + near).conjugate_kernel()
        axes = square.plot()
        assert axes.get_xscale() == "log" and 1e-9 < axes.get_xlim()[0] < 1e-3
        assert axes.get_ylim()[1] < 1
    for wrong in ("text", [], [math.nan], simulation.drop_vars(list(simulation.data_vars))):
        with pytest.raises(ParameterError, match="simulation"):
            before.plot(wrong)
    with pytest.raises(ParameterError, match="after 0 steps; the kernel is"):
        before.plot(simulation.sel(step=[1]))
    with pytest.raises(ParameterError, match="ax"):
        before.plot(ax=3)


# ---------------------------------------------------------------------- bad input


KERNEL = MODEL.conjugate_kernel()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        *((lambda z=z: KERNEL.stieltjes(z), words) for z, words in (
            (1.0, "inside the bulk"), (0, "eigenvalue of mass"), ("a", "z must be"),
            (None, "z must"), (math.nan, "finite"), ([1j, math.inf], "finite"),
            (KERNEL.bulk_edge, "inside the bulk"), (True, "z must be"), (1e200, "too large"),
            (-1e308j, "too large"), ([1j, 1e308], "too large"),
        )),
        *((lambda x=x: KERNEL.density(x), "x must") for x in (1j, "a", math.nan)),
        *((lambda x=x: KERNEL.cumulative_at(x), "x must") for x in (1j, "a", math.nan)),
        *((lambda n=n: MODEL.conjugate_kernel(digits=n), "digits") for n in (0, 1.5, True, "many")),
        (lambda: KERNEL.stieltjes([1j, 2j], digits=20), "digits"),
        *((lambda t=t: MODEL.conjugate_kernel(trained=t), "trained") for t in ("yes",)),
        *((lambda n=n: KERNEL.bulk(n), "points") for n in (10, 1e3, 10**9)),
        (lambda: MODEL.at(step_size=1e300).conjugate_kernel(), "step_size"),
        *((lambda r=r: MODEL.at(alpha=r[0], beta=r[1]).conjugate_kernel(),
           r"alpha = .* and beta = .* between 1e-20 and 1e20")
          for r in [(1e-300, 1.0), (1e308, 1.0), (2.0, 1e308), (1e-300, 1e300)]),
    ],
)  # fmt: skip
def test_bad_input(ask, words):
    with pytest.raises(ParameterError, match=words):
        ask()


def test_outside_of_the_bulk_nothing_is_left():
    assert KERNEL.density([-1.0, 100.0]).tolist() == [0, 0]
    assert KERNEL.cumulative_at([-1.0, 0.0, 1e9]).tolist() == [0, KERNEL.atom, 1]
