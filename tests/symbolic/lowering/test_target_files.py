"""What a file does in every language: test vectors, names, data, refusals, a life of its own."""

import ast
import math
import os
import subprocess
import sys

import mpmath
import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose, assert_array_equal

from giantstep.derivations.kernels.lower import lower as lower_to_kernel
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick
from giantstep.errors import EmissionError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.driver import BakedTables
from giantstep.symbolic.lowering.lowered import TARGETS, lower
from giantstep.symbolic.systems.equations import Equation
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from . import product_systems
from .target_files import TargetFile, assert_within_estimates, lowered_of
from .vectors import MEAN_FIELD, SPIKED_VECTORS, VECTORS

PYTHON = ("python", "numpy", "mpmath")
SLOW_TOO = pytest.param("numba", marks=pytest.mark.slow)

# ---------------------------------------------------------------------- numbers

# Of each kind of program one: closed, data, panels with roots, a line, tables.
KINDS = {
    "ridge, nearly interpolating", "covariates, matched", "logistic", "SK, glass",
    "SK, paramagnet without a field", "spiked A1",
}  # fmt: skip
# What mpmath solves in about a second.
SHORT = {
    "ridge, more samples than dimensions", "ridge, nearly interpolating", "ridge, at the threshold",
    "covariates", "covariates, many samples", "covariates, matched", "SK, paramagnet",
}  # fmt: skip
# One spiked model is as good as six where time is short.
QUICK = {v.name for v in [*MEAN_FIELD, SPIKED_VECTORS[0]]}
MORE = {"spiked A6", "spiked A10"}


def cases():
    """Each vector in each language, in the quick or the slow run, or in none."""
    for target, always, slow in (
        ("python", QUICK, MORE),
        ("numpy", QUICK, MORE),
        ("c", QUICK, MORE),
        ("mpmath", SHORT, {*KINDS, "hinge", "spiked A6"}),
        # The text is that of plain Python, which solves all of them: each kind is compiled once.
        ("numba", (), KINDS),
    ):
        for v in VECTORS:
            if v.name in always or v.name in slow:
                marks = [] if v.name in always else pytest.mark.slow
                yield pytest.param(target, v, id=f"{target}, {v}", marks=marks)


@pytest.fixture(scope="module")
def file_of(tmp_path_factory):
    """Return a function that loads the file of a system in a language once."""
    known = {}

    def file(build, target):
        if (build, target) not in known:
            # One kernel at full optimisation is enough to see its warnings.
            flags = ("-O3",) if build is SPIKED_VECTORS[0].system else ("-O0",)
            folder = tmp_path_factory.mktemp(target)
            known[build, target] = TargetFile(lowered_of(build), target, folder, flags=flags)
        return known[build, target]

    return file


@pytest.mark.parametrize(("target", "vector"), [*cases()])
def test_vectors_are_within_the_estimated_errors(target, vector, file_of):
    file = file_of(vector.system, target)
    if target != "mpmath":
        assert_within_estimates(file.solve(vector.floats, vector.float_data), vector)
        return
    found = file.solve(vector.parameters, vector.data, digits=28)
    assert set(vector.expected) <= set(found)
    deviations = vector.deviations({name: value for name, (value, _) in found.items()})
    # The vectors hold 25 digits; so does the orthogonal alignment of the spiked ones, and overlaps
    # are up to a hundred times as sensitive to it.
    assert max(deviations.values()) < (1e-22 if "spiked" in vector.name else 1e-24)
    assert all(error <= 1e-27 * max(1, abs(value)) for value, error in found.values())


@pytest.mark.parametrize("target", PYTHON)
def test_a_kink_whose_slope_may_vanish(target, tmp_path):
    # E|a z - b| = |a| sqrt(2/pi) exp(-r^2/2) + b erf(r/sqrt 2), r = b/|a|: a folded normal law.
    a, b, z = sp.symbols("a b z", real=True)
    y = sp.Symbol("y", positive=True)
    value = GaussianExpectation(sp.Abs(a * z - b), z)
    system = SaddlePointSystem("folded", (Equation(y, value, y - value),), (a, b))
    file = TargetFile(lower(system), target, tmp_path)
    options = {"digits": 15} if target == "mpmath" else {}
    for slope, center in ((0.0, 0.5), (-2.0, 0.5), (3.0, 0.0), (1e-9, -1.0)):
        found, error = file.solve({"a": slope, "b": center}, **options)["y"]
        ratio = center / abs(slope) if slope else math.inf
        density = math.exp(-(ratio**2) / 2) * math.sqrt(2 / math.pi)
        exact = abs(slope) * density + center * math.erf(ratio / math.sqrt(2))
        assert abs(float(found) - exact) <= error + 4e-16 * exact
        assert error <= 1e-11


def rootless():
    """x = exp(x) - 1 + a has no solution for a > 0, and two for a < 0."""
    x, a = sp.Symbol("x", real=True), sp.Symbol("a", real=True)
    value = sp.exp(x) - 1 + a
    return SaddlePointSystem("rootless", (Equation(x, value, x - value),), (a,))


@pytest.mark.parametrize("target", [*PYTHON, "c", SLOW_TOO])
def test_a_point_without_solution_is_named(target, file_of):
    file = file_of(rootless, target)
    named = "no solution" if target == "c" else r"no solution at a = 0\.5: "
    with pytest.raises(RuntimeError, match=named):
        file.solve({"a": 0.5})
    x = float(file.solve({"a": -1.0})["x"][0])
    roots = [float(mpmath.re(-2 - mpmath.lambertw(-mpmath.exp(-2), k))) for k in (0, -1)]
    assert min(abs(x - root) for root in roots) < 1e-14
    if target != "mpmath":
        values, errors, iterations = file.solve_many([[0.5], [-1.0]])
        assert np.isnan(values[0]).all() and np.isinf(errors[0]).all()
        assert list(iterations > 0) == [False, True] and values[1, 0] == x


@pytest.mark.parametrize("name", ["covariates, matched", "logistic, noisy labels", "SK, glass"])
def test_arrays_of_rows_estimate_the_errors_that_single_rows_do(name, file_of):
    (vector,) = (v for v in VECTORS if v.name == name)
    rows, arrays = (
        file_of(vector.system, target).solve(vector.floats, vector.float_data)
        for target in ("python", "numpy")
    )
    for output, (value, error) in rows.items():
        # What is left of a difference of two rules that agree is rounding.
        assert arrays[output][1] == pytest.approx(error, rel=1e-5, abs=1e-14 * abs(value)), output


# One driver: panels; nodes of the line, in a field, too; an unknown that vanishes; tables.
@pytest.mark.parametrize(
    "name",
    ["hinge", "SK, glass", "SK, paramagnet", "SK, paramagnet without a field", "spiked A1"],
)
def test_files_solve_on_the_nodes_of_the_solver_in_process(name, file_of):
    (vector,) = (v for v in VECTORS if v.name == name)
    solved = lower_to_kernel(vector.system()).solve(**vector.floats)
    in_c = file_of(vector.system, "c").library.solve(vector.floats)
    # What vanishes is refined until it is exactly zero, which rounding decides.
    vanishes = vector.name == "SK, paramagnet without a field"
    if not vanishes:
        assert in_c.info[0].nodes == solved.nodes
    in_python = file_of(vector.system, "python").solve(vector.floats)
    for name in vector.expected:
        value = solved.values[name]
        last = 4 * math.ulp(value)
        if vanishes or vector.name == "spiked A1" or abs(value) <= solved.errors[name]:
            # Tables come from other libraries and equations magnify what that changes, as they do
            # for what vanishes; where all comes from one text nothing is left of it.
            last = max(last, solved.errors[name] / (1 if vanishes else 8))
        assert in_python[name][0] == pytest.approx(value, rel=0, abs=last), name
        assert in_c.values[name] == pytest.approx(value, rel=0, abs=last), name


def rise():
    """y = 1/(1 + y) + E sigmoid(s (z - y)): almost a jump at z = y."""
    s, y = sp.symbols("s y", positive=True)
    z = sp.Symbol("z", real=True)
    value = 1 / (1 + y) + GaussianExpectation(1 / (1 + sp.exp(-s * (z - y))), z)
    return SaddlePointSystem.from_fixed_point({y: value}, name="rise", parameters=(s,))


@pytest.mark.parametrize("target", ["c", pytest.param("numpy", marks=pytest.mark.slow)])
def test_rules_do_not_step_over_a_narrow_integrand(target, file_of):
    file = file_of(rise, target)
    # By parts the mean is P(z > y + t/s) for t of the logistic law: mpmath, 25 digits.
    for slope, exact in ((3.0, 0.80041776659402542079), (2000.0, 0.77968527272531350765)):
        value, error = file.solve({"s": slope})["y"]
        assert abs(value - exact) <= error <= 1e-8
    # One that no rule resolves is no number: rules that all step over it agree on 0.78.
    with pytest.raises(RuntimeError, match="scale"):
        file.solve({"s": 1e7})
    values, errors, iterations = file.solve_many([[1e7]])
    assert np.isnan(values[0, 0]) and np.isinf(errors[0, 0]) and iterations[0] < 0


def quotients():
    """Quotients that are 0/0 as they stand; at v = 1/4 and Δ = 1/2 the argument is h."""
    h, q = sp.symbols("h q", real=True)
    v, noise = sp.symbols("v Delta", positive=True)
    x = h * sp.sqrt(1 - v) / sp.sqrt(noise + v)
    density, below = sp.exp(-(x**2) / 2), (1 + sp.erf(x / sp.sqrt(2))) / 2
    system = SaddlePointSystem.from_fixed_point(
        {q: x / 2},
        name="quotients",
        parameters=(h, v, noise),
        outputs={
            "square": density**2 / below,
            "mills": density / below,
            "cube": density**3 / below**3,
            "curvature": sp.log(below).diff(h, 2),
        },
    )
    return system


@pytest.mark.parametrize("target", [*PYTHON, "c", SLOW_TOO])
def test_quotients_of_what_underflows_are_finite_everywhere(target, file_of):
    file = file_of(quotients, target)
    for h in ("-10000", "-400", "-37", "-26", "0.5", "26", "38", "10000"):
        point = {"h": h, "v": "0.25", "Delta": "0.5"}
        if target != "mpmath":
            point = {name: float(text) for name, text in point.items()}
        found = {name: value for name, (value, _) in file.solve(point).items()}
        with mpmath.workdps(60):
            x = mpmath.mpf(h)
            mills = mpmath.exp(-(x**2) / 2) / (mpmath.erfc(-x / mpmath.sqrt(2)) / 2)
            m = mills / mpmath.sqrt(2 * mpmath.pi)
            expected = {
                "square": mills * mpmath.exp(-(x**2) / 2),
                "mills": mills,
                "cube": mills**3,
                "curvature": -m * (m + x),
            }
        for name, exact in expected.items():
            allowed = 4e-15 * (1 + x**2) * abs(exact) + mpmath.mpf(10) ** -300
            assert abs(found[name] - exact) <= allowed, (name, h)


def test_numba_agrees_with_its_twin(file_of):
    compiled, twin = (file_of(sherrington_kirkpatrick, t) for t in ("numba", "python"))
    assert (compiled.parameters, compiled.outputs) == (twin.parameters, twin.outputs)
    rows = [[2.0, 0.0], [0.7, 0.3], [4.0, 0.1]]
    left, right = compiled.solve_many(rows), twin.solve_many(rows)
    assert_allclose(left[0], right[0], rtol=1e-12, atol=1e-14)  # sums in another order
    assert np.all(left[2] > 0)


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_threads(file_of, monkeypatch):
    import numba

    compiled = file_of(sherrington_kirkpatrick, "numba").module
    rng = np.random.default_rng(1)
    rows = np.stack([rng.uniform(0.5, 3, 3000), rng.uniform(0, 1, 3000)], axis=1)
    alone = compiled.solve_many(rows, parallel=False)
    monkeypatch.setattr(compiled, "_PARALLEL_WORK", 0)
    before = numba.get_num_threads()
    try:
        for threads in (2, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
            together = compiled.solve_many(rows, parallel=True)
            for one, other in zip(alone, together, strict=True):
                assert_array_equal(one, other)
    finally:
        numba.set_num_threads(before)


def tables_of(file_of):
    """Return the tables of a spiked model at a vector, from the file in plain Python."""
    vector = SPIKED_VECTORS[0]
    whole = file_of(vector.system, "python").module
    fixed = {name: vector.floats[name] for name in whole.TABLE_PARAMETERS}
    levels = whole.levels_at(list(fixed.values()), [])[1]
    names = ("weight", *map(str, lowered_of(vector.system).program.tables))
    made = (dict(zip(names, level.tolist(), strict=True)) for level in levels)
    return BakedTables(fixed, tuple(made))


@pytest.mark.parametrize("target", ["python", "numpy", "c"])
def test_baked_tables(target, file_of, tmp_path):
    vector = SPIKED_VECTORS[0]
    tables = tables_of(file_of)
    baked = TargetFile(lowered_of(vector.system), target, tmp_path, tables)
    # noise_variance is in the table T_2, so it is fixed, too.
    assert baked.parameters == ("alpha", "beta", "ridge")
    if target != "c":
        assert not hasattr(baked.module, "tables") and "spike_strength = " in baked.module.__doc__
    found = baked.solve({name: vector.floats[name] for name in baked.parameters})
    assert_within_estimates(found, vector)


def test_rows_with_different_tables_are_grouped(file_of):
    file, floats = file_of(SPIKED_VECTORS[0].system, "python"), SPIKED_VECTORS[0].floats
    points = [floats, {**floats, "spike_strength": 0.2}, floats]
    rows = [[point[name] for name in file.parameters] for point in points]
    values, errors, _ = file.solve_many(rows)
    assert values.shape == errors.shape == (3, len(file.outputs))
    assert_array_equal(values[0], values[2])
    for k, point in enumerate(points):
        alone = file.solve(point)
        assert_array_equal(values[k], [alone[name][0] for name in file.outputs])


@pytest.mark.parametrize("target", ["python", "numba"])
def test_generated_code_holds_nothing_that_is_never_used(target):
    tree = ast.parse(lowered_of(sherrington_kirkpatrick).source(target))
    names = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    used = {n.id for n in names if isinstance(n.ctx, ast.Load)}
    assert {n.targets[0].id for n in tree.body if isinstance(n, ast.Assign)} <= used


# ---------------------------------------------------------------------- names and texts

NAMES = (
    "lambda for weight out rows rules tables np one ctx rule width mean_u0 u weight_u value_0 "
    "u_column double gamma exp solve int_ p sum_1 NULL values end function error zeros Inf length "
    "x j kappa_j node_3 size converged math abs nan expression_0_ fn_erf solution_3 "
    "entries_3 start_u0 fine_weight \u03bb"
).split()


def named(names, unknown, output):
    """A system with an inner average, tables of all parameters, and names as they come."""
    x, *symbols = (sp.Symbol(name, positive=True) for name in (unknown, *names))
    z, u = sp.symbols("z u", real=True)
    total = sum(symbols) / len(symbols)
    inner = GaussianExpectation(sp.tanh(u + z + total) ** 2, u)
    average = GaussianExpectation(sp.tanh(total * z) ** 2 / (1 + x * inner), z)
    return SaddlePointSystem.from_fixed_point(
        {x: average + total}, name="names", parameters=tuple(symbols), outputs={output: 2 * x}
    )


def hostile():
    return named(NAMES, "struct", "float")


def plain():
    return named([f"s{k}" for k in range(len(NAMES))], "V", "twice")


@pytest.mark.parametrize("target", [*PYTHON, "c"])
def test_any_names(target, file_of):
    options = {"digits": 15} if target == "mpmath" else {}
    values = []
    for build in (hostile, plain):
        file = file_of(build, target)
        point = {name: 0.4 + 0.02 * k for k, name in enumerate(file.parameters)}
        values.append([float(value) for value, _ in file.solve(point, **options).values()])
    assert_allclose(*values, rtol=1e-14)
    assert len(set(file_of(hostile, target).parameters)) == len(NAMES)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_says_what_it_holds_and_that_it_is_free(target):
    text = lowered_of(sherrington_kirkpatrick).source(target)
    for words in (
        "Sherrington-Kirkpatrick model, replica-symmetric",  # title
        "Phys. Rev. Lett. 35, 1792 (1975)",  # source
        "r = sqrt(E_z[tanh(beta*(h + r*z))**2])",  # equations
        "beta: positive",  # parameters with their domains
        "pure numbers, in the scaling of the source",  # units
        "used, changed and distributed by anyone without conditions (0BSD)",  # terms
    ):
        assert words in text
    assert text.endswith("\n") and "\t" not in text
    assert not any(line != line.rstrip() for line in text.splitlines())
    if target not in ("c", "julia", "fortran"):
        documentation = ast.get_docstring(ast.parse(text), clean=False)
        assert "Generated by giantstep" in documentation and "solve_point" in text
        assert "giantstep" not in text.replace(documentation, "")


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("target", PYTHON)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": None}, "no value for 'beta'"),
        ({"gamma": 1.0}, "'gamma' is none of them"),
        ({"beta": -1.0}, "beta must be a finite positive number, got -1.0"),
        ({"beta": 0}, "beta must be a finite positive number, got 0"),
        ({"beta": math.nan}, "beta must be a finite positive number"),
        ({"h": math.inf}, "h must be a finite real number"),
        ({"h": "zero"}, "real number"),
    ],
)
def test_bad_parameters_are_refused(target, change, message, file_of):
    point = {"beta": 1.0, "h": 0.0} | change
    point = {name: value for name, value in point.items() if value is not None}
    with pytest.raises(ValueError, match=message):
        file_of(sherrington_kirkpatrick, target).solve(point)


SPECTRUM = next(v for v in MEAN_FIELD if v.name == "covariates, matched")


@pytest.mark.parametrize("target", ["python", "numpy", "c"])
def test_data_are_weighted_relative_to_their_sum_and_checked(target, file_of):
    file, good = file_of(SPECTRUM.system, target), SPECTRUM.float_data["spectrum"]
    rows = len(next(iter(good.values())))
    once, often = (
        file.solve(SPECTRUM.floats, {"spectrum": {**good, "weight": [weight] * rows}})
        for weight in (1.0, 7.0)
    )
    for name, (value, _) in once.items():
        # The weights 1/6 and 7/42 differ by rounding.
        assert often[name][0] == pytest.approx(value, rel=1e-13)
    for broken in (
        {k: [*v[:-1], math.nan] for k, v in good.items()},
        {**good, "weight": [0.0] * rows},
        {**good, "weight": [-1.0] * rows},
    ):
        with pytest.raises(ValueError, match=r"data set|of the data spectrum"):
            file.solve(SPECTRUM.floats, {"spectrum": broken})
    if target == "c":
        return
    # Their sum may lie beyond the floats.
    huge = file.solve(SPECTRUM.floats, {"spectrum": {**good, "weight": [1e308] * rows}})
    for name, (value, _) in once.items():
        assert huge[name][0] == pytest.approx(value, rel=1e-13)
    # The name of the only table may be left out.
    assert file.solve(SPECTRUM.floats, good) == file.solve(SPECTRUM.floats, {"spectrum": good})
    first = next(iter(good))
    for wrong, message in (
        (None, "data must hold spectrum; got"),
        ({"spectrum": {first: [1.0]}}, "must have the columns"),
        ({**good, first: good[first][:-1]}, "lists of the same length"),
        ({k: [] for k in good}, "lists of the same length"),
    ):
        with pytest.raises(ValueError, match=message):
            file.solve(SPECTRUM.floats, wrong)


@pytest.mark.parametrize(
    ("parameters", "level", "message"),
    [
        ({"delta": 1.0}, {}, "tables hold values of delta"),
        (None, {}, r"the tables depend on .*bulk_variance"),
        ({}, {"mu_0": [math.nan]}, "'mu_0' of the tables holds a number not finite"),
    ],
)
@pytest.mark.parametrize("target", ["python", "numba", "numpy", "jax", "c", "julia", "fortran"])
def test_tables_that_do_not_fit_are_refused(target, parameters, level, message):
    lowered = lowered_of(SPIKED_VECTORS[0].system)
    own = dict.fromkeys((lowered.identifiers[p] for p in lowered.table_parameters), 0.5)
    level = {name: [1.0] for name in ("weight", *map(str, lowered.program.tables))} | level
    given = {} if parameters is None else own | parameters
    with pytest.raises(EmissionError, match=message):
        lowered.files(target, tables=BakedTables(given, (level,) * 3))


def test_tables_of_floats_are_refused_where_digits_are_asked_for():
    level = {"weight": [1.0], "z": [0.0]}
    with pytest.raises(EmissionError, match="baked tables are floats"):
        lowered_of(sherrington_kirkpatrick).source("mpmath", tables=BakedTables({}, (level,) * 3))


# ---------------------------------------------------------------------- a life of its own

ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ImportError("not here: " + name)
sys.meta_path.insert(0, Absent())
sys.path.insert(0, {folder!r})
import {name}
found = {name}.solve_point({point!r})
print(repr({{name: str(value) for name, (value, _) in found.items()}}))
"""


def alone(folder, name, point, absent, *, isolated=True, **environment):
    """Solve in an interpreter that lacks packages."""
    text = ALONE.format(folder=str(folder), name=name, point=point, absent=absent)
    done = subprocess.run(
        [sys.executable, *(["-I"] if isolated else []), "-W", "error", "-c", text],
        capture_output=True, text=True, env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout)


PACKAGES = ("giantstep", "sympy", "numba", "mpmath", "numpy")


@pytest.mark.parametrize(
    ("build", "target", "needed", "point"),
    [
        (SPIKED_VECTORS[0].system, "python", ("numpy",), SPIKED_VECTORS[0].floats),
        (SPIKED_VECTORS[0].system, "numpy", ("numpy",), SPIKED_VECTORS[0].floats),
        (sherrington_kirkpatrick, "mpmath", ("mpmath",), {"beta": "1", "h": "0.3"}),
        (product_systems.POINTS["tabulated"][0], "numpy", ("numpy",),
         product_systems.POINTS["tabulated"][1]),
    ],
    ids=["python", "numpy", "mpmath", "numpy on a grid"],
)  # fmt: skip
def test_files_run_without_giantstep(build, target, needed, point, file_of, tmp_path):
    (path,) = lowered_of(build).write(tmp_path / "kernel.py", target)
    absent = tuple(p for p in PACKAGES if p not in needed)
    here = file_of(build, target).solve(point)
    found = alone(tmp_path, path.stem, point, absent)
    assert found == {name: str(value) for name, (value, _) in here.items()}


@pytest.mark.slow
def test_numba_files_run_twice_and_under_two_names(tmp_path):
    # The second time from the compiled code beside the file; under another name compiled again,
    # because numba keeps the name of the module with it.
    glass, point = lowered_of(sherrington_kirkpatrick), {"beta": 2.0, "h": 0.0}
    (path,) = glass.write(tmp_path / "kernel.py")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("", encoding="utf-8")
    glass.write(tmp_path / "package" / "kernel.py")
    first = alone(tmp_path, path.stem, point, ("giantstep", "sympy"))
    assert any((tmp_path / "__pycache__").glob("*.nbi"))
    for name in (path.stem, "package.kernel"):
        assert alone(tmp_path, name, point, ("giantstep", "sympy")) == first


@pytest.mark.slow
def test_numba_files_run_where_nothing_can_be_written(tmp_path, file_of):
    (path,) = lowered_of(sherrington_kirkpatrick).write(tmp_path / "readonly.py")
    # A file where the folder of the cache would be, for the file and for the user.
    (tmp_path / "__pycache__").write_text("", encoding="utf-8")
    (tmp_path / "home").write_text("", encoding="utf-8")
    home, point = str(tmp_path / "home"), {"beta": 2.0, "h": 0.0}
    found = alone(
        tmp_path, path.stem, point, ("giantstep", "sympy"), isolated=False,
        HOME=home, XDG_CACHE_HOME=home, PYTHONDONTWRITEBYTECODE="1",
    )  # fmt: skip
    plain = file_of(sherrington_kirkpatrick, "python").solve(point)
    assert float(found["q"]) == pytest.approx(plain["q"][0], rel=1e-13)
