"""Free energies over one order parameter: against closed forms, and against all solutions."""

from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick
from giantstep.errors import ConvergenceError, ParameterError, StructureError

m, m_hat, h = sp.symbols("m m_hat h", real=True)
beta = sp.Symbol("beta", positive=True)


def magnet():
    """Curie and Weiss, with the conjugate of the magnetisation."""
    energy = -(m**2) / 2 - h * m + (m * m_hat - sp.log(2 * sp.cosh(m_hat))) / beta
    free_energy = gs.FreeEnergy(energy, (m,), (m_hat,), (beta, h))
    return gs.lower(gs.SaddlePointSystem.from_free_energy(free_energy, name="curie_weiss"))


@pytest.fixture(scope="module")
def landscape():
    return magnet().landscape("m", (-0.999, 0.999), beta=1.5, h=0.02)


def closed_form(x, inverse_temperature, field):
    # The conjugate at m is artanh(m), which makes its part the entropy of Ising spins.
    weights = (1 + x) / 2, (1 - x) / 2
    entropy = -sum(p * np.log(p) for p in weights)
    return -(x**2) / 2 - field * x - entropy / inverse_temperature


def test_conjugates_are_solved_for_at_each_value(landscape):
    (section,) = landscape.sections
    x = np.array(section.values)
    assert np.allclose(section.free_energy, closed_form(x, 1.5, 0.02), rtol=0, atol=1e-12)
    assert x.min() == -0.999 and x.max() == 0.999


def test_stationary_points_are_the_solutions(landscape):
    kinds = [(p.kind, p.stable) for p in landscape.points]
    assert kinds == [("minimum", True), ("maximum", False), ("minimum", True)]
    for point in landscape.points:
        assert abs(np.tanh(1.5 * (point.value + 0.02)) - point.value) < 1e-12
        assert point.error < 1e-10
        assert point.free_energy == pytest.approx(closed_form(point.value, 1.5, 0.02), abs=1e-13)
    assert landscape.errors == {f"m, {k}": landscape.points[k - 1].error for k in (1, 2, 3)}


def test_the_other_order_parameter_may_have_several_values():
    m_1, m_2 = sp.symbols("m_1 m_2", real=True)
    coupling = sp.Symbol("J", positive=True)

    def entropy(x):
        return -(1 + x) / 2 * sp.log((1 + x) / 2) - (1 - x) / 2 * sp.log((1 - x) / 2)

    energy = -(m_1**2 + m_2**2) / 2 - coupling * m_1 * m_2
    inside = sp.Interval.open(-1, 1)
    kernel = gs.lower(gs.SaddlePointSystem.from_free_energy(
        gs.FreeEnergy(energy - (entropy(m_1) + entropy(m_2)) / beta, (m_1, m_2)),
        name="two_magnets", domains={m_1: inside, m_2: inside},
    ))  # fmt: skip
    found = kernel.landscape("m_1", beta=1.5, J=0.1)
    # Without a coupling each magnet is in one of three states.
    assert len(found.points) == 9 and sum(p.stable for p in found.points) == 4
    for p in found.points:
        a, b = p.unknowns["m_1"], p.unknowns["m_2"]
        assert abs(np.tanh(1.5 * (a + 0.1 * b)) - a) + abs(np.tanh(1.5 * (b + 0.1 * a)) - b) < 1e-9
    # A minimum along the line, and a saddle of both.
    assert any(p.kind == "minimum" and not p.stable for p in found.points)


def test_one_unknown_and_an_output():
    glass = gs.lower(sherrington_kirkpatrick())
    found = glass.landscape("sqrt_q", (0.05, 1), beta=2, h=0)
    (point,) = found.points
    solved = glass.solve(beta=2, h=0)
    assert point.value == pytest.approx(solved.sqrt_q, abs=1e-12)
    assert point.free_energy == pytest.approx(solved.free_energy, abs=1e-13)
    # With replicas the physical solution is the largest free energy.
    assert point.kind == "maximum" and point.stable


def test_the_range_is_around_a_solution_without_a_domain():
    found = magnet().landscape("m", (-0.9, 0.9), beta=0.5, h=0.1)
    assert len(found.points) == 1 and found.points[0].stable
    low, high = gs.lower(sherrington_kirkpatrick()).landscape("sqrt_q", beta=2, h=0.1).within
    assert low < -1 and high > 1


def test_others_may_follow_explicitly():
    # Of the other one the free energy is a parabola; log x is real at 1, not at -1, its pole at 0.
    x, y = sp.symbols("x y", real=True)
    free_energy = gs.FreeEnergy(sp.log(x) - x**2 / 2 + y**2 / 2 - h * y, (x, y), (), (h,))
    kernel = gs.lower(gs.SaddlePointSystem.from_free_energy(free_energy, name="explicit"))
    found = kernel.landscape("x", (-2, 2), h=0.5)
    (point,), (section,) = found.points, found.sections
    assert point.value == pytest.approx(1, abs=1e-12) and point.error < 1e-12
    assert point.unknowns["y"] == pytest.approx(0.5) and point.kind == "maximum"
    at = np.array(section.values)
    assert at.min() > 0
    assert np.allclose(section.free_energy, np.log(at) - at**2 / 2 - 1 / 8, rtol=0, atol=1e-12)


def test_a_solution_that_the_search_missed_is_told(monkeypatch):
    model = gs.SpikedRandomFeatures("erf", "erf")
    lost = SimpleNamespace(within=(0.0, 2.0), points=())
    kernel = SimpleNamespace(
        order_parameters=lambda: ("V1", "m"), solve=lambda **at: SimpleNamespace(values={"m": 1.0}),
        landscape=lambda of, within, *, extremum, **at: lost if extremum["V1"] == "maximum" else 0,
    )  # fmt: skip
    monkeypatch.setattr(type(model), "_equations", lambda self: kernel)
    with pytest.raises(ConvergenceError, match="missed the solution, which is at 1"):
        model.landscape("m", alpha=1, ridge=1)


def test_pictures(landscape):
    assert "minimum of the free energy" in str(landscape) and "stable" in str(landscape)
    assert landscape.latex().count(r"\text{minimum}") == 2
    axes = landscape.plot()
    marks = [line for line in axes.lines if line.get_marker() not in ("", "None", None)]
    assert sorted(len(line.get_xdata()) for line in marks) == [1, 2]
    assert {"stable", "unstable"} <= {t.get_text() for t in axes.get_legend().get_texts()}


def test_free_entropy_of_an_overlap():
    model = gs.MultiIndex("abs")
    found = model.landscape("q", (0, 0.9), alpha=0.8, points=20)
    # 0 is a fixed point above the threshold 1/2, which state evolution leaves.
    assert [(p.kind, p.stable) for p in found.points] == [("maximum", False), ("minimum", True)]
    solved = model.solve(alpha=0.8)
    assert found.points[0].value == 0 and found.points[1].value == solved.overlap
    assert found.points[1].free_energy == -solved.free_entropy
    (line,) = found.sections
    assert min(line.free_energy) >= -solved.free_entropy - 1e-6


def without_a_free_energy():
    return gs.lower(
        gs.SaddlePointSystem.from_fixed_point(
            {m: sp.tanh(beta * m)}, name="magnet", parameters=(beta,)
        )
    )


STEP, FEATURES, SIGNS = (
    gs.OneGradientStep("erf", "erf", alpha=2), gs.SpikedRandomFeatures("erf", "erf"),
    gs.MultiIndex("sign"),
)  # fmt: skip
AT = {"beta": 1, "h": 0}


@pytest.mark.parametrize(
    ("model", "of", "asked", "words"),
    [
        (without_a_free_energy, "m", {"within": (-1, 1), "beta": 1}, "comes without a free energy"),
        (magnet, "q", {"within": (-1, 1), **AT}, "no order parameter is named 'q'"),
        (magnet, "m", {"within": (1, -1), **AT}, "increasing"),
        (magnet, "m", {"within": (-0.9, 0.9), "points": 2, **AT}, "points"),
        (lambda: STEP, "q", {"alpha": 2},
         "OneGradientStep has no free-energy landscape: its risk follows from"),
        (lambda: STEP.at_width(300), "q", {"alpha": 2}, "StepAtWidth has no free-energy landscape"),
        (lambda: gs.OverlapDynamics(student="erf", teacher="erf(x1)", alpha0=3), "q", {"alpha": 2},
         "OverlapDynamics has no free-energy landscape: overlaps follow a map"),
        (lambda: gs.MultiIndex("x1*x2"), "q", {"alpha": 2}, "of one direction, this law has 2"),
        (lambda: FEATURES.with_loss("huber(1)"), "q", {"alpha": 2}, "proximal operators in place"),
        (lambda: SIGNS, "m", {"alpha": 1}, "no order parameter is named 'm'; there are: q"),
        (lambda: SIGNS, "q", {}, "alpha is missing"),
        (lambda: SIGNS, "q", {"within": (0, 1), "alpha": 1}, r"a range of q in \[0, 1\)"),
        (lambda: SIGNS, "q", {"alpha": 1, "noise": 1}, "no parameter"),
        (lambda: FEATURES, "p", {"alpha": 1, "ridge": 1},
         "there are: V1, V2, m, theta, psi, q1, q2"),
    ],
)  # fmt: skip
def test_models_without_a_landscape_say_why(model, of, asked, words):
    with pytest.raises(ParameterError, match=words):
        model().landscape(of, **asked)


def test_derived_parameters_are_put_into_the_free_energy():
    # Of letters, rho = sqrt(1 - gamma^2) is no parameter of what is solved.
    kernel = gs.VocabularyFeatures.from_parameters(
        "erf", "sin", spike_strengths=[1.2, -0.6], bulk_variances=[1.1, 1.02],
        fractions=[0.4, 0.6], alignment=0.9, beta=0.7,
    ).kernel()  # fmt: skip
    system = kernel.solved.stated
    energy = system.free_energy
    assert energy.parameters == system.parameters
    held = {x for value in energy.definitions.values() for x in value.free_symbols}
    assert held <= {*energy.parameters, system.node} and held & {*energy.parameters}


@pytest.mark.slow
def test_overlaps_of_ridge_regression():
    kernel = gs.SpikedRandomFeatures("erf", "erf").kernel()
    model = gs.SpikedRandomFeatures("erf", "erf")
    (point,) = model.landscape("m", (0.1, 2), alpha=2, ridge=0.1, points=8).points
    assert point.value == pytest.approx(kernel.solve(alpha=2, ridge=0.1).values["m"], abs=1e-8)
    # The susceptibilities are at a maximum, all others at a minimum.
    assert point.stable
    with pytest.raises(StructureError, match="with V1 held"):
        kernel.landscape("V1", (0.1, 2), alpha=2, ridge=0.1)


def test_what_is_derived_belongs_to_one_kernel():
    energy = m**2 / 2 - sp.log(2 * sp.cosh(beta * (m + h))) / beta
    mean_field = gs.SaddlePointSystem.from_fixed_point(
        {m: sp.tanh(beta * (m + h))}, name="magnet", parameters=(beta, h)
    )
    free_energy = gs.FreeEnergy(energy, (m,), (), (beta, h))
    without = gs.lower(mean_field)
    having = gs.lower(gs.SaddlePointSystem.from_free_energy(free_energy, name="magnet"))
    assert without == having  # the same code, but one has a free energy
    assert len(without.branches("h", (-0.1, 0.1), bounds={"m": (-1, 1)}, beta=1.5).branches) == 3
    assert len(having.landscape("m", (-1, 1), beta=1.5, h=0.02).points) == 3
