"""Kernels of users' systems: numbers with honest errors, sweeps, digits, files, refusals."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.mean_field.gaussian_covariates import gaussian_covariates
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick
from giantstep.errors import ConvergenceError, EmissionError, ParameterError
from giantstep.numeric.kernel_arrays import KernelArrays
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .kernel_cases import a, b, kernel_of, mean, x, y, z


@pytest.fixture(scope="module")
def glass():
    return gs.lower(sherrington_kirkpatrick())


@pytest.fixture(scope="module")
def model():
    return gs.SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)


# ---------------------------------------------------------------------- numbers and their errors

STEEP = {x: mean(sp.tanh(a * (z * sp.sqrt(x) + b)) ** 2)}
HONEST = [
    # Grows like exp(a z): the line has to be longer than the usual one.
    ({x: a / mean(sp.exp(z * sp.sqrt(x) * sp.tanh(z)))}, {"a": 1e6}),
    # Narrow and off the grid: coarse rules all step over it and agree.
    (STEEP, {"a": 8.0, "b": 0.3}),
    # A kink that moves with the unknown, and one far beyond the end of the line.
    ({x: a * mean(relu(z - x)) + a / 10}, {"a": 3.0}),
    ({y: b + mean(sp.Abs(z - y)) / 2}, {"b": 12.0}),
    # Oscillation, aliased to a constant on a grid of step 0.13 if that is not refined.
    pytest.param({x: a * mean(sp.sin(x * z) ** 2) + a / 10}, {"a": 60.0}, marks=pytest.mark.slow),
    # Poles close to the line, and no average at all.
    ({x: a * mean(1 / ((z - sp.Rational(1, 3)) ** 2 + x**2))}, {"a": 0.01}),
    ({y: b + sp.sin(3 * y)}, {"b": 0.2}),
]


@pytest.mark.parametrize(("equations", "point"), HONEST, ids=lambda v: str(v)[:40])
def test_true_errors_are_below_the_estimates(equations, point):
    parameters = [{"a": a, "b": b}[name] for name in point]
    kernel = kernel_of(equations, *parameters)
    found = kernel.solve(**point)
    precise = kernel.solve(**point, digits=18, progress=False)
    for name, value in found.values.items():
        assert abs(float(value - precise[name])) <= found.errors[name]
        assert found.errors[name] <= 1e-9 * max(abs(value), 1)


def test_rounding_grows_in_what_follows_from_the_unknowns():
    # r is 35 times as sensitive as q at this point (Amit, Gutfreund, Sompolinsky, Phys. Rev. Lett.
    # 55, 1530 (1985): Hopfield's model).
    q, r, m = sp.symbols("q r m", positive=True)
    field = b * (m + sp.sqrt(a * r) * z)
    equations = {
        m: mean(sp.tanh(field)), q: mean(sp.tanh(field) ** 2), r: q / (1 - b * (1 - q)) ** 2,
    }  # fmt: skip
    start = {m: sp.Rational(19, 20), q: sp.Rational(19, 20), r: sp.S.One}
    kernel = kernel_of(equations, a, b, start=start)
    point = {"a": 0.00732421875, "b": 17.278076171875}
    found, precise = kernel.solve(**point), kernel.solve(**point, digits=18, progress=False)
    for name, value in found.values.items():
        assert abs(float(value - precise[name])) <= found.errors[name] <= 1e-11


def test_output_that_vanishes_is_not_refined_for_ever():
    # Its relative error never falls; all seven levels were run.
    q = sp.Symbol("q", positive=True)
    equations = {q: mean(sp.tanh(a * sp.sqrt(q) * z) ** 2)}
    kernel = kernel_of(equations, a, outputs={"m": mean(sp.tanh(a * sp.sqrt(q) * z))})
    found = kernel.solve(a=1.5)
    assert abs(found.m) <= found.errors["m"] <= 1e-13
    assert found.nodes < 500


def test_unknown_that_runs_to_its_boundary_is_named(monkeypatch):
    # Spin glass without field at high temperature: the solution is q = 0.
    q = sp.Symbol("q", positive=True)
    kernel = kernel_of({q: mean(sp.tanh(a * sp.sqrt(q) * z) ** 2)}, a)
    levels = []
    original = KernelArrays.__getitem__
    monkeypatch.setattr(
        KernelArrays, "__getitem__", lambda self, k: levels.append(k) or original(self, k)
    )
    with pytest.raises(ConvergenceError, match="q ran towards its boundary 0"):
        kernel.solve(a=0.5)
    # Finer rules do not find what two have not found.
    assert max(levels) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("slope", [300.0, pytest.param(3000.0, marks=pytest.mark.slow)])
def test_features_between_the_nodes_are_seen(slope):
    # 1 - E tanh² = E sech² has the weight 2/slope at z = -b/sqrt(x) and x is close to 1; the next
    # order is 1/slope². Before, three rules agreed on x = 1 with an error estimate of 2e-14.
    found = kernel_of(STEEP, a, b).solve(a=slope, b=0.3)
    density = math.exp(-0.09 / 2) / math.sqrt(2 * math.pi)
    assert abs(found.x - (1 - 2 * density / slope)) <= 3 / slope**2 + found.errors["x"]


def test_integrand_that_no_rule_resolves_has_no_error_estimate():
    found = kernel_of(STEEP, a, b).solve(a=1e7, b=0.3)
    assert found.errors["x"] == math.inf
    assert "WITHOUT an error estimate for x" in str(found)


def test_growth_beyond_the_usual_reach():
    # E exp(a z) = exp(a²/2); the peak of the integrand is at z = a = 14, the usual reach 10.5.
    found = kernel_of({x: sp.exp(-(a**2) / 2) * mean(sp.exp(a * z + 0 * x) + x / 2)}, a).solve(
        a=2.0
    )
    assert found.x == pytest.approx(1 / (1 - math.exp(-2) / 2), rel=1e-12)
    tall = kernel_of({x: a / mean(sp.exp(sp.sqrt(x) * z))}, a)
    # x = a exp(-x/2): x = 2 W(a/2), Lambert's function.
    for value in (1.0, 1e20):
        exact = float(2 * mpmath.lambertw(mpmath.mpf(value) / 2).real)
        found = tall.solve(a=value)
        assert abs(found.x - exact) <= found.errors["x"] + 1e-15 * exact


def test_known_solution_of_the_spin_glass(glass):
    # At small beta and h = 0 only q = 0 solves the equations; in a field m = E tanh(...).
    assert glass.solve(beta=0.8, h=0).q == pytest.approx(0, abs=1e-20)
    found = glass.solve(beta=0.7, h=0.5)
    q, nodes = float(found.q), np.polynomial.hermite_e.hermegauss(80)
    weights = nodes[1] / math.sqrt(2 * math.pi)
    again = weights @ np.tanh(0.7 * (math.sqrt(q) * nodes[0] + 0.5)) ** 2
    assert q == pytest.approx(again, rel=1e-13)


def test_digits_agree_with_arithmetic_of_its_own():
    kernel = kernel_of({x: a * sp.exp(-x)}, a)
    found = kernel.solve(a=0.3, digits=40)
    with mpmath.workdps(50):
        exact = mpmath.lambertw(mpmath.mpf("0.3")).real
        assert abs(found.x - exact) < mpmath.mpf(10) ** -40


def test_digits_where_an_inner_mean_depends_on_unknowns():
    u = sp.Symbol("u", real=True)
    inner = gs.GaussianExpectation(sp.tanh(x * u + b) ** 2, u)
    kernel = kernel_of({x: mean(sp.tanh(z * inner + b) ** 2)}, b, outputs={"inner": inner})
    rough, found = kernel.solve(b=0.5), kernel.solve(b=0.5, digits=20)
    assert set(rough.values) == set(found.values) == {"x", "inner"}
    for name, value in found.values.items():
        assert abs(float(value) - rough.values[name]) <= rough.errors[name] + 1e-16


@pytest.mark.slow
def test_digits_of_the_logarithm_of_an_inner_mean_are_honest():
    # E log E exp(x z u) = x**2/2: at the end of the line the inner peak is at the end of the grid.
    u = sp.Symbol("u", real=True)
    inner = gs.GaussianExpectation(sp.exp(x * z * u), u)
    found = kernel_of({x: a - mean(sp.log(inner))}, a).solve(a=1.5, digits=10)
    assert abs(found.x - 1) <= found.errors["x"] <= 1e-14


@pytest.mark.slow
def test_digits_with_a_kink_that_moves_with_the_outer_node():
    u = sp.Symbol("u", real=True)
    kinked = gs.GaussianExpectation(sp.tanh(x * sp.Abs(u - a * z - a)), u)
    kernel = kernel_of({x: mean(kinked) + a}, a)
    rough, found = kernel.solve(a=0.5), kernel.solve(a=0.5, digits=4)
    assert abs(found.x - rough.x) <= found.errors["x"] + rough.errors["x"]


def test_data_are_read_as_decimals_for_digits():
    kernel = gs.lower(gaussian_covariates(matched=True))
    names = dict(kernel.code.data)["spectrum"]
    data = {name: [0.1, 0.7, 2.0] for name in names}
    point = dict.fromkeys(kernel.parameters, 0.3)
    found = kernel.solve(data=data, **point)
    precise = kernel.solve(data={"spectrum": data}, digits=20, **point)
    twice = {name: [*values, *values] for name, values in data.items()}
    halves = {**twice, "weight": [3, 3, 3, 3, 3, 3]}
    for name, value in found.values.items():
        assert abs(float(value - precise[name])) <= found.errors[name]
        assert kernel.solve(data=halves, **point)[name] == pytest.approx(value, rel=1e-13)


# ---------------------------------------------------------------------- what is refused


def test_point_without_solution_is_named():
    kernel = kernel_of({x: a * sp.exp(x)}, a)
    with pytest.raises(ConvergenceError, match=r"a = 1, with residual .*; .*start=") as caught:
        kernel.solve(a=1)
    assert caught.value.residual > 0
    assert kernel.solve(a=0.1).x == pytest.approx(float(-mpmath.lambertw(-0.1).real), rel=1e-13)


# ---------------------------------------------------------------------- solutions and files


def run_file(path, parameters):
    """Run ``solve_point`` of a file in a process that finds neither giantstep nor SymPy."""
    code = (
        "import sys, runpy, json\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('giantstep', 'sympy'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Block())\n"
        f"solve = runpy.run_path({str(path)!r})['solve_point']\n"
        f"found = solve(json.loads({json.dumps(parameters)!r}))\n"
        "print(json.dumps({k: [float(x) for x in v] for k, v in found.items()}))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=path.parent,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_baked_tables_make_constants(model, tmp_path):
    kernel = model.kernel()
    (path,) = kernel.write(tmp_path / "baked.py", "python", tables="baked")
    found = run_file(path, {"alpha": 2.0, "ridge": 0.1, "beta": 1.0})
    assert found["test_error"][0] == pytest.approx(
        model.solve(alpha=2, ridge=0.1).test_error, rel=1e-13
    )


def test_an_unknown_that_runs_off_to_infinity_is_no_solution():
    # x = x + a/(1 + x) holds ever better, relative to x, the larger x is.
    x, a = sp.symbols("x a", positive=True)
    found = gs.lower(
        gs.SaddlePointSystem.from_fixed_point({x: x + a / (1 + x)}, name="run_off", parameters=(a,))
    )
    with pytest.raises(ConvergenceError, match=r"x ran off to .*no finite solution"):
        found.solve(a=1.0)


@pytest.mark.parametrize(
    ("hole", "value"),
    [(lambda q, h: sp.log(q - 1), "nan"), (lambda q, h: 1 / (q - h * sp.exp(-q)), "inf")],
)
def test_an_output_that_is_not_finite_is_named_with_its_place(hole, value):
    h, q = sp.Symbol("h", real=True), sp.Symbol("q", positive=True)
    kernel = gs.lower(
        SaddlePointSystem.from_fixed_point(
            {q: h * sp.exp(-q)},
            name="lambert",
            parameters=(h,),
            outputs={"good": q, "hole": hole(q, h)},
        )
    )
    with pytest.raises(ConvergenceError, match=f"^not finite: hole = {value} for h = 1;") as error:
        kernel.solve(h=1)
    assert "q = 0.5671432904" in str(error.value)
    assert "good" not in str(error.value)


# ---------------------------------------------------------------------- derived parameters


@pytest.fixture(scope="module")
def spiked():
    return gs.SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=1.5, bulk_variance=1.1, alignment=0.9, noise_variance=0.1
    ).kernel()


@pytest.mark.parametrize(
    "target",
    ["python", "numpy", pytest.param("mpmath", marks=pytest.mark.slow), "c"],
)
def test_files_take_the_alignment_alone(spiked, target, tmp_path):
    given = {"alpha": 1.5, "beta": 1.0, "ridge": 0.1, "noise_variance": 0.1}
    given |= {"spike_strength": 1.5, "bulk_variance": 1.1}
    solve, parameters = solver_of(spiked, target, tmp_path)
    assert set(parameters) == {*given, "alignment"}
    for alignment in (0.5, -0.999999):
        expected = spiked.solve(alpha=1.5, ridge=0.1, alignment=alignment).test_error
        found = solve({**given, "alignment": alignment})
        assert float(found) == pytest.approx(expected, rel=1e-13)
    with pytest.raises(ValueError, match=r"alignment must|outside its domain"):
        solve({**given, "alignment": 1.0})


def solver_of(kernel, target, folder):
    """Return what solves for the test error by the file of a target, and its parameters."""
    if target == "c":
        from ..symbolic.lowering.compiled_c import CompiledKernel, require_compiler

        require_compiler()
        library = CompiledKernel(kernel.files("c", name="k"), folder, ("-O0",))

        def solve(parameters):
            found = library.solve(parameters)
            if found.status:
                raise ValueError(found.message)
            return found.values["test_error"]

        return solve, library.parameters
    (path,) = kernel.write(folder / f"k_{target}.py", target)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    options = {"digits": 15} if target == "mpmath" else {}
    return lambda given: module.solve_point(given, **options)["test_error"][0], module.PARAMETERS


@pytest.mark.parametrize(
    ("spike", "missing"),
    [((1.5, 1.0), {"alignment", "orthogonal_alignment"}), ((0.0, 0.0), {"spike_strength"})],
)
def test_files_of_special_cases_take_nothing_that_is_fixed(spike, missing, tmp_path):
    kernel = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=spike[0], bulk_variance=1.1, alignment=spike[1]
    ).kernel()
    solve, parameters = solver_of(kernel, "python", tmp_path)
    assert set(kernel.parameters) - set(parameters) == missing | {"orthogonal_alignment"}
    given = {**kernel.defaults, "alpha": 1.5, "ridge": 0.1}
    expected = kernel.solve(alpha=1.5, ridge=0.1).test_error
    assert solve({n: given[n] for n in parameters}) == pytest.approx(expected, rel=1e-13)


def test_a_tied_parameter_is_refused_where_it_does_not_follow(spiked):
    point = {"alpha": 1.5, "ridge": 0.1}
    with pytest.raises(ParameterError, match=r"follows from alignment: it is 0.8 here, got 0.7"):
        spiked.solve(**point, alignment=0.6, orthogonal_alignment=0.7)
    with pytest.raises(ParameterError, match="orthogonal_alignment follows from alignment"):
        spiked.curve(
            **point, alignment=[0.6, 0.8], orthogonal_alignment=[0.8, 0.7], product=False
        ).to_dataset()
    both = spiked.solve(**point, alignment=0.6, orthogonal_alignment=0.8)
    assert both.test_error == pytest.approx(spiked.solve(**point, alignment=0.6).test_error, 1e-14)
    with pytest.raises(ParameterError, match="use 'alignment'"):
        spiked.sensitivities(**point, wrt="orthogonal_alignment")


def test_derived_parameters_are_eliminated_from_any_system(tmp_path):
    r, c = sp.Symbol("rho", positive=True), sp.Symbol("gamma", real=True)
    share = sp.Symbol("share", real=True)
    system = gs.SaddlePointSystem.from_fixed_point(
        {x: a * r + mean(sp.tanh(c * z + x) ** 2) * share / 4},
        name="pair",
        parameters=(a, c, r, share),
        outputs={"angle": r / (1 + c)},
        derived={r: sp.sqrt((1 - c) * (1 + c)), share: 1 - a},
    )
    kernel = gs.lower(system)
    assert kernel.parameters == ("a", "gamma")
    by_hand = kernel_of(
        {x: a * sp.sqrt(1 - b**2) + mean(sp.tanh(b * z + x) ** 2) * (1 - a) / 4}, a, b
    )
    found = kernel.solve(a=0.7, gamma=0.6)
    assert found.x == pytest.approx(by_hand.solve(a=0.7, b=0.6).x, rel=1e-13)
    assert found.angle == pytest.approx(0.5, rel=1e-14)
    slopes = kernel.sensitivities(a=0.7, gamma=0.6)
    assert slopes["x", "gamma"] == pytest.approx(
        by_hand.sensitivities(a=0.7, b=0.6)["x", "b"], rel=1e-12
    )
    with pytest.raises(ParameterError, match=r"gamma must be inside \(-1, 1\), got 1"):
        kernel.solve(a=0.7, gamma=1)
    # Next to 1 the angle keeps its digits.
    near = 1 - sp.Rational(1, 2**50)
    exact = float(sp.sqrt((1 - near) / (1 + near)))
    assert kernel.solve(a=0.7, gamma=float(near)).angle == pytest.approx(exact, rel=1e-15)


def test_kernels_compare_and_are_sent_to_other_processes(glass):
    again = pickle.loads(pickle.dumps(glass))
    assert again == glass and hash(again) == hash(glass)
    assert again.solve(beta=0.8, h=0.2) == glass.solve(beta=0.8, h=0.2)
    other = replace(glass, defaults={"h": 0.25})
    assert other != glass and other.solve(beta=0.8) == glass.solve(beta=0.8, h=0.25)
    assert glass != replace(glass, domains={**glass.domains, "beta": "real"})


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"h": 0.1, "temperature": 1}, "'temperature'; there are: beta, h"),
        ({"beta": -1.0}, "beta must be positive and finite, got -1"),
        *(({"beta": value}, "beta must be positive") for value in (math.nan, math.inf)),
        *(({"beta": value}, "beta must be a number") for value in ("1", True, 1j, None)),
        ({"beta": [0.5, 1]}, r"beta must be one number here; curve\(\)"),
        ({"data": {}}, "data must be left out"),
        ({"start": {"p": 1}}, "no unknown of Newton's method is named 'p'"),
        ({"start": 3}, "start must map unknowns"),
        ({"digits": 0}, "digits must be >= 1"),
        ({"digits": 10**6}, "digits must be at most 1000"),
        ({"rtol": 0}, "rtol must be positive"),
    ],
)
def test_bad_arguments_are_named(glass, change, message):
    with pytest.raises(ParameterError, match=message):
        glass.solve(**{"beta": 1.0, "h": 0.1, **change})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "data must map the names of data sets to their columns"),
        ([1, 2], "data must map"),
        ({"spectrum": {"omega": [1.0]}}, "has no column 't'"),
        ({"omega": [1.0, 2.0], "t": [1.0]}, "must have one length"),
        ({"omega": [-1.0], "t": [1.0]}, "column 'omega' .* must be >= 0"),
        ({"omega": [1.0], "t": [1.0], "w": [1.0]}, "named 'w'; there are: omega, t, weight"),
        ({"omega": [1.0], "t": [1.0], "weight": [0.0]}, "positive, finite sum"),
        ({"omega": [], "t": []}, "at least one number"),
    ],
)
def test_bad_data_are_named(data, message):
    kernel = gs.lower(gaussian_covariates())
    point = dict.fromkeys(kernel.parameters, 1.0)
    with pytest.raises(ParameterError, match=message):
        kernel.solve(data=data, **point)


START = sp.Symbol("start", positive=True)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda k, m: k.solve(beta=1.0), r"needs more parameters: h \(real\)"),
        (lambda k, m: k.inspect("nothing"), "stage must be one of equations"),
        (lambda k, m: k.source("cobol"), "target must be one of numba"),
        (lambda k, m: k.write("glass.txt"), "suffix"),
        (lambda k, m: m.source("python", alignment=0.5), "only with tables='baked'"),
        (lambda k, m: m.source("python", tables="baked", alpha=0.5),
         "no parameter of the tables is named 'alpha'"),
        (lambda k, m: m.source("python", tables="raw"), "must be 'computed' or 'baked'"),
        (lambda k, m: kernel_of({x: START * sp.exp(-x)}, START),
         r"'start' has the name of an argument.*identifiers"),
        (lambda k, m: gs.lower("tanh"), "SaddlePointSystem"),
        *((lambda k, m, d=d: kernel_of({x: a * sp.exp(-x) + y**2}, a, y, derived=d), words)
          for d, words in (
            ({b: a}, "b, which is no parameter"),
            ({a: y + b}, "may hold parameters that are not derived only"),
            ({a: 1 - y}, "is not positive for all parameters"),
        )),
    ],
)  # fmt: skip
def test_questions_that_no_kernel_answers(glass, model, ask, message):
    with pytest.raises((ParameterError, EmissionError), match=message):
        ask(glass, model.kernel())
