"""The map of overlaps: reference values, closed forms, networks, limits, code, refusals."""

import ctypes
import importlib.util
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from scipy import integrate

import giantstep as gs
from giantstep import cli
from giantstep.derivations.kernels.maps import StateKernel, crossing
from giantstep.derivations.overlap_dynamics import physics
from giantstep.errors import AssumptionError, ConvergenceError, ParameterError
from giantstep.numeric.nested_grids import nested_grid
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.gaussian.expectation import GaussianVector, expect_joint
from giantstep.symbolic.lowering.maps import StateProgram

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "overlap_dynamics.json").read_text("utf-8")
)["configurations"]


def of_reference(case, **changes):
    teacher = " + ".join(f"{b!r}*erf(x{k + 1})" for k, b in enumerate(case["teacher_readout"]))
    given = {
        "student": "erf", "teacher": teacher, "readout": case["readout"],
        "self_overlaps": case["Q0"], "teacher_overlaps": case["M0"],
        "step_size": case["step_size"], "alpha0": case["alpha0"],
        "noise_variance": case["noise_variance"],
    }  # fmt: skip
    return gs.OverlapDynamics(**given | changes)


FIRST = of_reference(REFERENCE[0])
# Two neurons and one direction: JAX compiles every operation.
SMALL = of_reference(REFERENCE[2])
SCALED = "erf(z/sqrt(2))"


def online(**changes):
    """Two neurons that learn two, as Saad and Solla have them."""
    given = {
        "student": SCALED, "teacher": "erf(x1/sqrt(2)) + erf(x2/sqrt(2))", "readout": [1, 1],
        "self_overlaps": [[0.2, 0], [0, 0.3]], "teacher_overlaps": [[1e-3, 0], [0, 1e-3]],
        "step_size": 0.01, "alpha0": math.inf,
    }  # fmt: skip
    return gs.OverlapDynamics(**given | changes)


def matrices(trajectory):
    return {
        "teacher_overlap": trajectory.teacher_overlaps,
        "self_overlap": trajectory.self_overlaps,
        "second_layer": trajectory.readouts,
    }


# ---------------------------------------------------------------------- reference values


@pytest.mark.parametrize("case", REFERENCE, ids=lambda c: f"{len(c['Q0'])}-{len(c['M0'][0])}")
def test_reference_values(case):
    found = of_reference(case).trajectory(steps=len(case["trajectory"]))
    for row in case["trajectory"]:
        step = row["step"]
        assert np.allclose(found.self_overlaps[step], row["Q"], rtol=0, atol=2e-15)
        assert np.allclose(found.teacher_overlaps[step], row["M"], rtol=0, atol=2e-15)
        assert found.columns["error"][step] == pytest.approx(row["error_after"], abs=4e-15)


# ---------------------------------------------------------------------- averages


@pytest.mark.parametrize("name", ["erf", "z**2 + z", "z**3 - 3*z"])
def test_averages_are_those_of_learning_dynamics(name):
    sigma = activation(name)
    z = next(iter(sigma.expr.free_symbols))
    value, slope = (sigma.expr, (z,)), (sigma.derivative, (z,))
    line = (z, (z,))
    # I_2, its derivative by the covariance, I_3 and I_4 of Saad and Solla.
    for kinds in (
        (value, value), (slope, slope), (slope, line, value), (slope, slope, value, value)
    ):  # fmt: skip
        n = len(kinds)
        fields = sp.symbols(f"x1:{n + 1}", cls=sp.Dummy, real=True)
        law = GaussianVector(fields, covariance=sp.Matrix(n, n, physics.covariance))
        product = sp.Mul(*(f.xreplace({z: x}) for (f, _), x in zip(kinds, fields, strict=True)))
        found = physics.closed_average(kinds, tuple(range(n)))
        assert sp.simplify(found - expect_joint(product, law)) == 0


@pytest.mark.parametrize(
    ("student", "teacher", "readout", "tolerance"),
    [
        # A steep teacher: the coarser of the two grids misses by a thousand times as much.
        ("erf", "erf(4*x1)", [1.0], 1e-11),
        pytest.param("erf", "x1 + He(3, x1)/6", [1.0, -0.5], 1e-9, marks=pytest.mark.slow),
        pytest.param("z + He(2, z)/2", "x1 + x1*x2", [0.5, -0.3], 1e-9, marks=pytest.mark.slow),
        pytest.param("relu", "relu(x1)", [1.0, 0.5], 1e-12, marks=pytest.mark.slow),
        ("z + He(3, z)/6", "He(2, x1)", [0.2], 1e-9),
    ],
)
def test_quadrature_is_the_closed_form(student, teacher, readout, tolerance):
    k = gs.OverlapDynamics(student=student, teacher=teacher, readout=readout, alpha0=1).directions
    start = np.array([[0.3, 0.1], [0.05, 0.2]])[: len(readout), :k]
    model = gs.OverlapDynamics(
        student=student, teacher=teacher, readout=readout, teacher_overlaps=start, step_size=0.2,
        alpha0=2, noise_variance=0.1,
    )  # fmt: skip
    exact, found = model.trajectory(steps=2), model.at(averages="quadrature").trajectory(steps=2)
    assert exact.quadrature_error == 0
    for name, values in exact.columns.items():
        gap = np.max(np.abs(found.column(name) - values)) / max(1, np.max(np.abs(values)))
        assert gap < tolerance, name
        assert gap <= max(10 * found.quadrature_error, 1e-12)


def test_a_student_without_closed_forms():
    model = gs.OverlapDynamics(
        student="tanh", teacher="x1 + x1*x2", readout=[1.0], step_size=0.5, alpha0=4
    )
    found = model.trajectory(steps=3)
    assert 0 < found.quadrature_error < 1e-9
    assert "quadrature" in found.rests_on
    # tanh is odd: the second direction is not learned from the first.
    assert abs(found.teacher_overlaps[:, 0, 1]).max() < 1e-15
    assert found.teacher_overlaps[3, 0, 0] == pytest.approx(0.756839, abs=1e-6)


def test_grids_are_cut_at_kinks():
    covariance = np.array([[1.0, 0.4], [0.4, 2.0]])
    x, y, weight = nested_grid(covariance, [(0.0,), (0.5,)], 40)
    assert weight.sum() == pytest.approx(1, abs=1e-14)
    relu = np.maximum(x, 0)
    assert np.sum(weight * relu) == pytest.approx(1 / math.sqrt(2 * math.pi), abs=1e-14)
    assert np.sum(weight * (x > 0) * (y > 0.5)) == pytest.approx(
        nested_grid(covariance, [(0.0,), (0.5,)], 60)[2][
            (lambda g: (g[0] > 0) & (g[1] > 0.5))(nested_grid(covariance, [(0.0,), (0.5,)], 60))
        ].sum(),
        abs=1e-13,
    )


# ---------------------------------------------------------------------- zero patterns, growth


def test_overlaps_vanish_where_the_staircase_has_no_direction():
    # Other pairs of two are evidence of overlap-zeros.
    student, teacher = "z + He(2, z)/2", "x1 + x1*x2"
    model = gs.OverlapDynamics(
        student=student, teacher=teacher, readout=[0.5, -0.25], step_size=0.1, alpha0=3
    )
    steps = 3
    found = model.trajectory(steps=steps).teacher_overlaps
    readout = [sp.Rational(1, 2), -sp.Rational(1, 4)]
    stairs = gs.staircase(teacher, 1, student=student, readout=readout, max_steps=steps)
    learned = {step.number: step.after for step in stairs.steps}
    last = sp.zeros(model.directions)
    for step in range(1, steps + 1):
        last = learned[step].projector() if step in learned else last
        for k in range(model.directions):
            assert bool(found[step, :, k].any()) == (last[k, k] != 0), (step, k)


def test_growth_at_the_start_is_that_of_the_map():
    model = gs.OverlapDynamics(
        student="He(2, z)", teacher="He(2, x1)", readout=[0.3], step_size=0.1, alpha0=3
    )
    found = model.early_growth(dimension=1000)
    # a E[He_2'' He_2*''] of the teacher less a^2 of the student, times s.
    a = sp.Rational(3, 10)
    assert model.growth_matrix() == sp.Matrix([[4 * a - 4 * a**2]])
    assert found.factors == pytest.approx((1.084,), abs=1e-14)
    assert found.escape_steps == pytest.approx(math.log(1000) / (2 * math.log(1.084)))
    tangent = model.kernel().jacobian(model.start, **model.parameters)
    row = model.system.state.index("M_1_1")
    assert tangent[row, row] == pytest.approx(found.factors[0], abs=1e-14)
    # A tiny overlap grows by just this factor.
    grown = model.at(teacher_overlaps=[[1e-8]]).trajectory(steps=1).column("M_1_1")
    assert grown[1] / grown[0] == pytest.approx(1.084, abs=1e-7)


@pytest.mark.slow
def test_growth_matrix_of_several_neurons_is_the_tangent():
    model = gs.OverlapDynamics(
        student="erf", teacher="erf(x1) + x2", readout=[1.0, 0.5], step_size=0.4, alpha0=3,
        self_overlaps=[[1, 0.25], [0.25, 0.5]], weight_decay=0.1,
    )  # fmt: skip
    tangent = model.kernel().jacobian(model.start, **model.parameters)
    rows = [k for k, name in enumerate(model.system.state) if name[0] == "M"]
    exact = 0.9 * np.eye(4) + 0.4 * np.array(model.growth_matrix().evalf(20), dtype=float)
    assert np.allclose(tangent[np.ix_(rows, rows)], exact, rtol=0, atol=1e-14)
    assert "lambda" in model.early_growth().latex()


# ---------------------------------------------------------------------- online learning


@pytest.mark.slow
def test_the_flow_has_the_plateau_of_saad_and_solla():
    """Q = C = 1/(2K - 1), R = 1/sqrt(K(2K - 1)), e = K/pi (pi/6 - K asin(1/(2K))) for K = 2."""
    model = online()
    r = 1 / math.sqrt(6)
    plateau = [1 / 3, 1 / 3, 1 / 3, r, r, r, r, 1, 1]
    velocity, outputs = model.kernel("flow").values(plateau, **model.flow_parameters)
    assert np.max(np.abs(velocity)) < 3e-16
    published = 2 / math.pi * (math.pi / 6 - 2 * math.asin(1 / 4))
    assert outputs["error"] / 2 == pytest.approx(published, abs=1e-15)
    # The trajectory stays near to it for long, and leaves it in the end.
    found = model.flow(time=300, points=301)
    errors = found.column("error") / 2
    assert np.all(np.abs(errors[40:60] / published - 1) < 0.02)
    assert errors[-1] < 1e-6


@pytest.mark.slow
def test_plateaus_have_one_unstable_direction():
    model = online(alpha0=0.02)
    flow = model.flow(time=150, points=31)
    found = model.fixed_points(along=flow)
    best, plateau = found[0], next(x for x in found if x.unstable)
    assert best.is_stable and abs(best.outputs["error"]) < 1e-12
    assert plateau.unstable == 1
    assert plateau.state["M_1_1"] == pytest.approx(plateau.state["M_2_2"], rel=1e-9)
    velocity, _ = model.kernel("flow").values(plateau.state, **model.flow_parameters)
    assert np.max(np.abs(velocity)) < 1e-12
    # Giant steps have it, too.
    steps = model.at(step_size=0.5, alpha0=1.0)
    for point in steps.fixed_points("map", along=flow):
        after, _ = steps.kernel().values(point.state, **steps.parameters)
        assert np.allclose(after, list(point.state.values()), rtol=0, atol=1e-12)


def test_short_steps_tend_to_the_flow_in_first_order():
    """As in the dossier: .0418, .0205, .0101 at s = .1, .05, .025 and a fixed s/alpha0."""
    deviations = []
    for s in (0.1, 0.05, 0.025):
        model = FIRST.at(step_size=s, alpha0=s / 0.5)
        steps = model.trajectory(steps=round(2 / s))
        flow = model.flow(time=2, points=np.linspace(0, 2, round(2 / s) + 1))
        deviations.append(np.max(np.abs(steps.self_overlaps - flow.self_overlaps)))
    assert deviations == pytest.approx([0.0418, 0.0205, 0.0101], abs=5e-5)


def test_events_of_a_flow_lie_between_its_points():
    coarse, fine = (FIRST.flow(steps=6, points=n) for n in (13, 601))
    assert coarse.learned == pytest.approx(fine.learned, rel=1e-8)
    assert crossing(np.arange(3.0), np.array([0.0, 0.4, 0.7]), 0.5) == 2
    assert math.isnan(crossing(np.arange(3.0), np.array([0.0, 0.4, 0.3]), 0.5))


# ---------------------------------------------------------------------- networks


def compared(model, *, steps, dimension, seeds, names, **options):
    """Largest distance of networks from the theory in standard errors."""
    theory = matrices(model.trajectory(steps=max(steps)))
    found = model.simulate(steps=steps, dimension=dimension, seeds=seeds, **options)
    scores = []
    for name in names:
        gap = found.mean(name) - theory[name][list(steps)]
        scores.append(np.abs(gap / found.standard_error(name)).max())
    return max(scores)


OVERLAPS = ("teacher_overlap", "self_overlap")


def test_networks_follow_the_map():
    """Starts, label noise: the first example of the dossier, smaller."""
    assert compared(FIRST, steps=[1, 4], dimension=500, seeds=8, names=OVERLAPS, seed=3) < 4


@pytest.mark.slow
def test_networks_follow_small_batches_of_a_fixed_size():
    """Means over batches: 20 samples, where 1 - 1/n and d/n count."""
    model = FIRST.at(alpha0=None, step_samples=20, dimension=60, step_size=0.3)
    score = compared(model, steps=[1], dimension=60, seeds=400, names=OVERLAPS, seed=7)
    assert score < 4
    own = model.trajectory(steps=1).self_overlaps[1]
    other = FIRST.at(alpha0=20 / 60, step_size=0.3).trajectory(steps=1).self_overlaps[1]
    # Without 1 - 1/n it would be told apart by these networks.
    assert abs(own - other).max() > 1e-3


# ---------------------------------------------------------------------- generated code


def loaded(text, name, tmp_path):
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def point():
    kernel = SMALL.kernel()
    return kernel, kernel.row(SMALL.start), kernel.given(SMALL.parameters)


def close(found, wanted):
    """Within four units in the last place of numbers of order one."""
    return np.max(np.abs(np.asarray(found) - wanted)) <= 4 * np.finfo(float).eps * 2


def test_targets_agree(point, tmp_path):
    kernel, state, parameters = point
    wanted, _ = loaded(kernel.source("python"), "map_python", tmp_path).values(state, parameters)
    # Machine code is compared with Python below, in this process.
    targets = ["numpy", *(["jax"] if importlib.util.find_spec("jax") else [])]
    for target in targets:
        module = loaded(kernel.source(target), f"map_{target}", tmp_path)
        found, _ = module.values(state, parameters)
        assert close(found, wanted), target
    # Many states at once.
    module = loaded(kernel.source("numpy"), "map_rows", tmp_path)
    many, outputs = module.values(np.stack([state, state]), parameters)
    assert close(many[1], wanted) and outputs.shape == (2, 2)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_c_agrees(point, tmp_path):
    kernel, state, parameters = point
    files = kernel.write(tmp_path / "steps.c", "c")
    library = tmp_path / "steps.so"
    subprocess.run(
        ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-shared", "-fPIC",
         "-o", str(library), str(next(f for f in files if f.suffix == ".c")), "-lm"],
        check=True,
    )  # fmt: skip
    found = ctypes.CDLL(str(library))
    double = ctypes.POINTER(ctypes.c_double)
    values, outputs = np.zeros(len(state)), np.zeros(2)
    pointers = [x.ctypes.data_as(double) for x in (state, parameters, values, outputs)]
    found.steps_values(*pointers)
    wanted, _ = kernel.values(SMALL.start, **SMALL.parameters)
    assert close(values, wanted)
    record = np.zeros((7, len(state) + 2))
    found.steps_iterate.restype = ctypes.c_ssize_t
    count = found.steps_iterate(
        ctypes.c_ssize_t(7), pointers[0], pointers[1], record.ctypes.data_as(double)
    )
    assert count == 7
    assert record[6, -2] == pytest.approx(REFERENCE[2]["trajectory"][-1]["error_after"], abs=1e-14)


def test_jax_differentiates_the_map(point, tmp_path):
    jax = pytest.importorskip("jax")
    kernel, state, parameters = point
    module = loaded(kernel.source("jax"), "map_jax_slopes", tmp_path)
    found = jax.jit(jax.jacfwd(lambda x: module.values(x, parameters)[0]))(state)
    tangent = kernel.jacobian(SMALL.start, **SMALL.parameters)[:, : len(state)]
    assert np.allclose(found, tangent, rtol=0, atol=1e-13)


def test_tangents_are_derivatives_along_the_trajectory():
    kernel, steps, h = FIRST.kernel(), 4, 1e-5
    found = kernel.sensitivities(FIRST.start, steps=steps, **FIRST.parameters)
    names = [*FIRST.system.state, *FIRST.parameters]

    def last(**change):
        start = {k: v + change.get(k, 0) for k, v in FIRST.start.items()}
        given = {k: v + change.get(k, 0) for k, v in FIRST.parameters.items()}
        columns = kernel.iterate(start, steps=steps, **given)
        return np.array([columns[name][-1] for name in FIRST.system.state])

    for name in ("Q_1_2", "M_2_1", "a_1", "step_size", "noise_variance", "sampling"):
        slope = (last(**{name: h}) - last(**{name: -h})) / (2 * h)
        assert np.allclose(found[steps][:, names.index(name)], slope, rtol=0, atol=3e-9), name


@pytest.mark.slow
def test_compiled_and_plain_trajectories_are_the_same():
    kernel = FIRST.kernel()
    short = kernel.iterate(FIRST.start, steps=20, **FIRST.parameters)
    long = kernel.iterate(FIRST.start, steps=5001, every=10, **FIRST.parameters)
    assert long["step"][[0, 1, -2, -1]].tolist() == [0, 10, 5000, 5001]
    for name in FIRST.system.state:
        assert np.allclose(short[name][[0, 10, 20]], long[name][:3], rtol=0, atol=1e-14)


def test_a_map_of_ones_own():
    m, h = sp.symbols("m h", real=True)
    program = StateProgram.of({m: sp.tanh(2 * m + h)}, name="magnet", parameters=(h,))
    magnet = StateKernel.of(program)
    assert magnet.iterate({"m": 0.1}, steps=60, h=0.0)["m"][-1] == pytest.approx(
        0.9575040240772687, abs=1e-15
    )
    whole = magnet.iterate({"m": 0.1}, steps=7, h=0.2)
    # Each third step, and the last.
    some = magnet.iterate({"m": 0.1}, steps=7, every=3, h=0.2)
    assert some["step"].tolist() == [0, 3, 6, 7]
    assert some["m"].tolist() == whole["m"][[0, 3, 6, 7]].tolist()
    fixed = magnet.fixed_points([{"m": x} for x in (-1.0, 0.05, 1.0)], h=0.0)
    assert [round(x.state["m"], 6) for x in fixed] == [-0.957504, 0, 0.957504]
    assert [x.unstable for x in fixed] == [0, 1, 0]
    with pytest.raises(ParameterError, match="is a map, not a flow"):
        magnet.flow({"m": 0.1}, time=1.0, h=0.0)
    flow = StateKernel.of(
        StateProgram.of({m: -m + h}, name="decay", kind="flow", parameters=(h,))
    ).flow({"m": 1.0}, time=3.0, points=4, h=0.5)
    assert flow.columns["m"] == pytest.approx(0.5 + 0.5 * np.exp(-np.arange(4.0)), abs=1e-8)
    assert flow.at(1.5)[0] == pytest.approx(0.5 + 0.5 * math.exp(-1.5), abs=1e-7)


def test_kernels_of_equations_flow_and_tell_when():
    m, h = sp.symbols("m h", real=True)
    magnet = gs.lower(
        gs.SaddlePointSystem.from_fixed_point(
            {m: sp.tanh(2 * (m + h))}, name="magnet", parameters=(h,)
        )
    )
    found = magnet.flow(time=20, h=0, start={"m": 0.1}, events={"m": 0.5}, points=[0, 5, 20])
    wanted, _ = integrate.quad(lambda x: 1 / (math.tanh(2 * x) - x), 0.1, 0.5)
    assert found.attrs["reached_m"] == pytest.approx(wanted, abs=1e-6)
    assert found.time.values.tolist() == [0, 5, 20]
    steps = magnet.iterate(h=0, start={"m": 0.1}, events={"m": 0.5}, progress=False)
    first = int(np.argmax(steps.m.values >= 0.5))
    assert steps.attrs["reached_m"] == first
    for ask, words in (
        (lambda: magnet.iterate(h=0, start={"m": 0.1}, events={"n": 0.5}), "quantity"),
        (lambda: magnet.flow(time=1, h=0, points=[0.5, 0.2]), "increasing times"),
    ):
        with pytest.raises(ParameterError, match=words):
            ask()


# ---------------------------------------------------------------------- results, refusals


@pytest.mark.slow
def test_a_batch_that_is_used_again_shows_a_cubic():
    model = gs.OverlapDynamics(
        student="erf", teacher="He(3, x1)/3", readout=[1.0], step_size=2.0, alpha0=2.0
    )
    step = model.second_step()
    # By a rule of Gauss with 60 nodes on each of three lines -0.15209, with 40 -0.1518.
    assert step.same == pytest.approx([-0.15216814], abs=3e-8)
    assert step.quadrature_error < 1e-8
    assert step.fresh == pytest.approx([0], abs=1e-15)
    np.testing.assert_allclose(step.first, model.trajectory(steps=1).column("M_1_1")[1], atol=1e-15)
    # Averages of samples that are many: the disturbance of one by itself is gone.
    many = model.at(alpha0=1e9, teacher_overlaps=[[0.3]]).second_step()
    assert many.same == pytest.approx(many.fresh, abs=1e-7)


def test_a_trajectory_is_written_and_drawn(tmp_path):
    found = FIRST.trajectory(steps=6)
    assert gs.OverlapDynamics.from_json(online().to_json()) == online()
    data = found.to_dataset()
    assert data["teacher_overlap"].shape == (7, 2, 2)
    assert data["time"].values[-1] == 6.0
    assert "closed form" in str(found) and "M_1_1" in str(found)
    networks = FIRST.simulate(steps=2, dimension=100, seeds=2)
    axes = found.plot(networks=networks, flow=FIRST.flow(steps=6))
    assert len(axes.lines) >= 8
    stairs = gs.OverlapDynamics(
        student="z + He(2, z)/2", teacher="x1 + x1*x2", readout=[1, -0.5], alpha0=3, step_size=0.1
    ).trajectory(steps=4)
    assert stairs.predicted == {"staircase, direction 1": 1, "staircase, direction 2": 2}
    assert any("staircase" in text.get_text() for text in stairs.plot().texts)


def test_dependent_neurons_are_said_to_be():
    """A neuron along the teacher and another one along the first."""
    model = gs.OverlapDynamics(
        student="erf", teacher="erf(x1)", readout=[1, 0.5], step_size=1, alpha0=1,
        self_overlaps=[[1, 0.6], [0.6, 0.36]], teacher_overlaps=[[1.0], [0.6]], noise_variance=0.1,
    )  # fmt: skip
    found = model.trajectory(steps=1)
    assert found.singular and "generalised inverse" in found.rests_on
    # Next to it all is regular, and nearly the same.
    near = model.at(self_overlaps=[[1 + 1e-6, 0.6], [0.6, 0.36 + 1e-6]]).trajectory(steps=1)
    assert not near.singular
    assert np.allclose(found.self_overlaps[1], near.self_overlaps[1], rtol=0, atol=1e-5)


def test_diverging_steps_name_step_and_growth():
    model = gs.OverlapDynamics(
        student="He(3, z)", teacher="He(3, x1)", teacher_overlaps=[[0.1]], alpha0=1
    )
    with pytest.raises(ConvergenceError, match=r"diverges in step 2: .* factor of 3\.75e\+03") as e:
        model.trajectory(steps=50)
    assert len(e.value.state["step"]) == 2


def test_numbers_of_steps_that_never_end_are_refused():
    with pytest.raises(ParameterError, match="steps must be at most 10000000000"):
        FIRST.trajectory(steps=10**12, every=10**9)
    with pytest.raises(ParameterError, match="every must be at least 300, so that"):
        FIRST.trajectory(steps=3 * 10**9, every=200)


def test_the_command(capsys):
    assert cli.main(["dynamics", "erf(x1)", "--start", "0.1", "--step-size", "0.5", "--alpha0",
                     "1", "--steps", "6", "--flow", "--growth", "--json"]) == 0  # fmt: skip
    found = json.loads(capsys.readouterr().out)
    assert found["trajectory"]["columns"]["M_1_1"][-1] == pytest.approx(0.87589557088, abs=1e-11)
    assert set(found) == {"trajectory", "flow", "growth"}


def model_of(student, teacher, **given):
    return gs.OverlapDynamics(student=student, teacher=teacher, alpha0=1, **given)


def without_tangents():
    model = model_of("tanh", "tanh(x1)")
    model.kernel().jacobian(model.start, **model.parameters)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: FIRST.at(readout=[1.0] * 7), "1 to 6 finite numbers"),
        (lambda: FIRST.at(readout=[0.0, 0.0]), "not be all zero"),
        (lambda: FIRST.at(teacher="x1*x2*x3*x4*x5*x6*x7"), "at most 6 directions, got 7"),
        (lambda: FIRST.at(self_overlaps=[[1, 0.1]]), r"a finite matrix of shape \(2, 2\)"),
        (lambda: FIRST.at(self_overlaps=[[1, 0.1], [0.2, 1]]), "must be symmetric"),
        (lambda: FIRST.at(self_overlaps=[[1, 2], [2, 1]]), "positive semidefinite, and has the ei"),
        (lambda: FIRST.at(teacher_overlaps=[[1.2, 0], [0, 0]]), "those of no rows"),
        (lambda: FIRST.at(alpha0=None), "alpha0, or both step_samples and dimension"),
        (lambda: FIRST.at(alpha0=1, dimension=100), "alpha0, or both step_samples and dimension"),
        (lambda: FIRST.at(alpha0=0), "alpha0 must be"),
        (lambda: FIRST.at(step_size=0), "step_size must be"),
        (lambda: FIRST.at(weight_decay=1.5), "weight_decay must be at most 1"),
        (lambda: FIRST.at(averages="exact"), "averages must be one of"),
        (lambda: FIRST.at(student="sign"), "no weak derivative"),
        (lambda: FIRST.at(alpha=3), "no parameter 'alpha'"),
        (lambda: FIRST.flow(), "time or steps"),
        (lambda: FIRST.simulate(steps=1), "dimension must be given"),
        (lambda: online().simulate(steps=1, dimension=100), "alpha0 must be finite"),
        (without_tangents, "no tangents"),
        (lambda: model_of("tanh", "x1*x2*x3*x4", readout=[1, 1, 1]).trajectory(steps=1),
         "too many for quadrature"),
        (lambda: model_of("exp(z**2/10)", "x1", self_overlaps=[[4.0]]).trajectory(steps=1),
         "no finite fourth moments"),
        (lambda: model_of("relu", "x1").second_step(), "student must be smooth.*'relu' has kinks"),
        (lambda: model_of("erf", "x1", readout=[1.0, 0.5]).second_step(),
         r"5 fields \(twice 2 neurons, 1 directions\)"),
    ],
)  # fmt: skip
def test_refusals(ask, words):
    with pytest.raises((ParameterError, AssumptionError), match=words):
        ask()
