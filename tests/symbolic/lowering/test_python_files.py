"""Files for numba and plain Python: the test vectors, fresh interpreters, threads, bad input."""

import ast
import importlib.util
import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose, assert_array_equal

from giantstep.errors import EmissionError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.driver import BakedTables
from giantstep.symbolic.lowering.languages import python as python_files
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.systems.equations import Equation
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .generated_code import names_in
from .vectors import MEAN_FIELD, SPIKED_VECTORS

# Of each kind of program one: closed, data, panels with roots, a line, tables. The others are
# compared with other languages in test_cross_targets.py.
SHORT = {
    "ridge, nearly interpolating", "covariates, matched", "logistic", "SK, glass",
    "SK, paramagnet without a field", "spiked A1",
}  # fmt: skip
VECTORS = [v for v in (*MEAN_FIELD, *SPIKED_VECTORS) if v.name in SHORT]


def written(folder, text, name="kernel"):
    """Write a file and import it as a user would."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(vector, found):
    """No true error is above its estimate; that of the first output, which is refined, is small."""
    deviations = vector.deviations({name: value for name, (value, _) in found.items()})
    assert set(vector.expected) <= set(found)
    for name, deviation in deviations.items():
        _, error = found[name]
        size = abs(float(vector.expected[name])) or 1.0
        # the reference is rounded to a float: half a unit in the last place
        assert deviation * size <= error + 1.2e-16 * size, name
        if name == next(iter(found)):
            assert error <= 1e-9 * max(size, 1.0), name


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_plain_python_reproduces_the_vectors(vector):
    module = names_in(lower(vector.system()).source("python"))
    check(vector, module["solve_point"](vector.floats, vector.float_data))


# The text is that of plain Python, which solves all of them: each kind is compiled once.
@pytest.mark.slow
@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_numba_reproduces_the_vectors(vector, tmp_path):
    module = written(tmp_path, lower(vector.system()).source("numba"))
    found = module.solve_point(vector.floats, vector.float_data)
    check(vector, found)
    twin = names_in(lower(vector.system()).source("python"))
    for name, (value, error) in twin["solve_point"](vector.floats, vector.float_data).items():
        assert abs(value - found[name][0]) <= error + found[name][1], name


@pytest.fixture(scope="module")
def spiked():
    return next(v for v in SPIKED_VECTORS if v.name == "spiked A1")


@pytest.fixture(scope="module")
def lowered(spiked):
    return lower(spiked.system())


@pytest.fixture(scope="module")
def glass():
    """A small system on the nodes of the line: quick to compile."""
    return lower(next(v for v in MEAN_FIELD if v.name == "SK, glass").system())


# -- numba


@pytest.fixture(scope="module")
def compiled(glass, tmp_path_factory):
    return written(tmp_path_factory.mktemp("numba"), glass.source("numba"))


def test_numba_agrees_with_its_twin(glass, compiled):
    twin = names_in(glass.source("python"))
    assert (compiled.PARAMETERS, compiled.OUTPUTS) == (twin["PARAMETERS"], twin["OUTPUTS"])
    rows = [[2.0, 0.0], [0.7, 0.3], [4.0, 0.1]]
    left, right = compiled.solve_many(rows), twin["solve_many"](rows)
    assert_allclose(left[0], right[0], rtol=1e-12, atol=1e-14)  # sums in another order
    assert np.all(left[2][:, 0] > 0)


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_threads(compiled, monkeypatch):
    import numba

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


FRESH = """
import sys
sys.path.insert(0, {folder!r})


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ImportError("not here: " + name)


sys.meta_path.insert(0, Absent())
import {name}

found = {name}.solve_point({parameters!r})
print(repr({{name: value for name, (value, _) in found.items()}}))
"""


def fresh(folder, name, parameters, absent, **environment):
    text = FRESH.format(folder=str(folder), name=name, parameters=parameters, absent=absent)
    done = subprocess.run(
        [sys.executable, "-I", "-c", text] if not environment else [sys.executable, "-c", text],
        capture_output=True, text=True, env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return eval(done.stdout)


def test_plain_files_run_without_giantstep_sympy_and_numba(lowered, spiked, tmp_path):
    (path,) = lowered.write(tmp_path / "plain.py", "python")
    found = fresh(tmp_path, path.stem, spiked.floats, ("giantstep", "sympy", "numba"))
    here = names_in(lowered.source("python"))["solve_point"](spiked.floats)
    assert found == {name: value for name, (value, _) in here.items()}


@pytest.mark.slow
def test_numba_files_run_twice_and_under_two_names(glass, tmp_path):
    # The second time from the compiled code beside the file; under another name compiled again,
    # because numba keeps the name of the module with it.
    (path,) = glass.write(tmp_path / "kernel.py")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("", encoding="utf-8")
    glass.write(tmp_path / "package" / "kernel.py")
    point = {"beta": 2.0, "h": 0.0}
    first = fresh(tmp_path, path.stem, point, ("giantstep", "sympy"))
    assert any((tmp_path / "__pycache__").glob("*.nbi"))
    assert fresh(tmp_path, path.stem, point, ("giantstep", "sympy")) == first
    again = fresh(tmp_path, "package.kernel", point, ("giantstep", "sympy"))
    assert again == first


@pytest.mark.slow
def test_numba_files_run_where_nothing_can_be_written(glass, tmp_path):
    (path,) = glass.write(tmp_path / "readonly.py")
    # A file where the folder of the cache would be, for the file and for the user.
    (tmp_path / "__pycache__").write_text("", encoding="utf-8")
    (tmp_path / "home").write_text("", encoding="utf-8")
    home = str(tmp_path / "home")
    found = fresh(
        tmp_path, path.stem, {"beta": 2.0, "h": 0.0}, ("giantstep", "sympy"),
        HOME=home, XDG_CACHE_HOME=home, PYTHONDONTWRITEBYTECODE="1",
    )  # fmt: skip
    assert found["q"] == pytest.approx(names_in(glass.source("python"))["solve_point"](
        {"beta": 2.0, "h": 0.0})["q"][0], rel=1e-13)  # fmt: skip


# -- the file


def test_header_says_what_it_is(lowered):
    for target in ("numba", "python"):
        text = names_in(lowered.source(target))["__doc__"]
        assert "arXiv 2402.04980" in text and "V_1 = " in text and "ridge: " in text
        assert "without conditions" in text and "Generated by giantstep" in text
        assert "solve_point({'alpha': …" in text
        assert "giantstep" not in lowered.source(target).split('"""', 2)[2]


def test_baked_tables(lowered, spiked):
    whole = names_in(lowered.source("python"))
    fixed = {name: spiked.floats[name] for name in whole["TABLE_PARAMETERS"]}
    values = [fixed[name] for name in whole["TABLE_PARAMETERS"]]
    levels = whole["Levels"](values, {})[1]
    names = ("weight", *map(str, lowered.program.tables))
    tables = BakedTables(fixed, tuple({n: level[n].tolist() for n in names} for level in levels))
    text = lowered.source("python", tables=tables)
    baked = names_in(text)
    assert baked["PARAMETERS"] == ("alpha", "beta", "ridge")
    assert "def tables(" not in text and "spike_strength = " in baked["__doc__"]
    point = {name: spiked.floats[name] for name in baked["PARAMETERS"]}
    check(spiked, baked["solve_point"](point))
    with pytest.raises(EmissionError, match="tables hold values of delta"):
        lowered.source("python", tables=BakedTables({"delta": 1.0}, tables.levels))


def test_rows_with_different_tables_are_grouped(lowered, spiked):
    module = names_in(lowered.source("python"))
    points = [spiked.floats, {**spiked.floats, "spike_strength": 0.2}, spiked.floats]
    rows = [[point[name] for name in module["PARAMETERS"]] for point in points]
    values, errors, info = module["solve_many"](rows)
    assert values.shape == errors.shape == (3, len(module["OUTPUTS"])) and info.shape == (3, 3)
    assert_array_equal(values[0], values[2])
    for k, point in enumerate(points):
        alone = module["solve_point"](point)
        assert_array_equal(values[k], [alone[name][0] for name in module["OUTPUTS"]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": None}, "no value for 'beta'"),
        ({"gamma": 1.0}, "'gamma' is none of them"),
        ({"beta": -1.0}, "beta must be a finite positive number, got -1.0"),
        ({"beta": math.nan}, "beta must be a finite positive number"),
        ({"h": math.inf}, "h must be a finite real number"),
        ({"h": "zero"}, "parameters must be real numbers"),
    ],
)
def test_bad_parameters_are_refused(glass, change, message):
    point = {"beta": 1.0, "h": 0.0} | change
    point = {name: value for name, value in point.items() if value is not None}
    with pytest.raises(ValueError, match=message):
        names_in(glass.source("python"))["solve_point"](point)


@pytest.mark.parametrize("target", ["python", pytest.param("numba", marks=pytest.mark.slow)])
def test_a_point_without_solution_is_named(target):
    # x = exp(x) - 1 + a has no solution for a > 0.
    x, a = sp.Symbol("x", real=True), sp.Symbol("a", real=True)
    value = sp.exp(x) - 1 + a
    system = SaddlePointSystem("rootless", (Equation(x, value, x - value),), (a,))
    module = names_in(lower(system).source(target))
    with pytest.raises(RuntimeError, match=r"no solution at a = 0\.5: residual"):
        module["solve_point"]({"a": 0.5})
    values, errors, info = module["solve_many"]([[0.5], [-1.0]])
    assert np.isnan(values[0]).all() and np.isinf(errors[0]).all() and info[0, 0] < 0
    # The smaller solution of x = exp(x) - 2, from mpmath.lambertw(-exp(-2)).
    assert values[1, 0] == pytest.approx(-1.8414056604369606, rel=1e-14) or values[
        1, 0
    ] == pytest.approx(1.1461932206205826, rel=1e-14)
    assert info[1, 0] > 0


@pytest.mark.parametrize(
    "names",
    [("lambda", "for"), ("weight", "out"), ("rows", "rules"), ("tables", "np"), ("x", "one")],
)
def test_any_names(names):
    # x = E tanh(x + s u + t z)^2, with tables of t and unknowns called as it gets.
    first, second = (sp.Symbol(name, positive=True) for name in names)
    z, u = sp.symbols("z u", real=True)
    value = first + GaussianExpectation(
        sp.tanh(second * z) ** 2
        / (1 + first * GaussianExpectation(sp.tanh(u + z + second) ** 2, u)),
        z,
    ) / (2 + second)
    system = SaddlePointSystem(
        "odd_names", (Equation(first, value / 2, first - value / 2),), (second,)
    )
    module = names_in(lower(system).source("python"))
    (parameter,) = module["PARAMETERS"]
    found = module["solve_point"]({parameter: 0.7})
    plain = {first: sp.Symbol("V", positive=True), second: sp.Symbol("s", positive=True)}
    other = SaddlePointSystem(
        "plain_names",
        (Equation(plain[first], (value / 2).xreplace(plain), (first - value / 2).xreplace(plain)),),
        (plain[second],),
    )
    expected = names_in(lower(other).source("python"))["solve_point"]({"s": 0.7})["V"][0]
    assert found[module["OUTPUTS"][0]][0] == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("target", ["python", "numpy", "mpmath"])
def test_a_kink_whose_slope_may_vanish(target):
    # E|a z - b| = |a| sqrt(2/pi) exp(-r^2/2) + b erf(r/sqrt 2), r = b/|a|: a folded normal law.
    a, b = sp.symbols("a b", real=True)
    y = sp.Symbol("y", positive=True)
    z = sp.Symbol("z", real=True)
    value = GaussianExpectation(sp.Abs(a * z - b), z)
    module = names_in(
        lower(SaddlePointSystem("folded", (Equation(y, value, y - value),), (a, b))).source(target)
    )
    for slope, center in ((0.0, 0.5), (-2.0, 0.5), (3.0, 0.0), (1e-9, -1.0)):
        options = {"digits": 15} if target == "mpmath" else {}
        found, error = module["solve_point"]({"a": slope, "b": center}, **options)["y"]
        ratio = center / abs(slope) if slope else math.inf
        density = math.exp(-(ratio**2) / 2) * math.sqrt(2 / math.pi)
        exact = abs(slope) * density + center * math.erf(ratio / math.sqrt(2))
        assert abs(float(found) - exact) <= error + 4e-16 * exact
        assert error <= 1e-11


def test_generated_code_holds_nothing_that_is_never_used(glass):
    for target in ("python", "numba"):
        tree = ast.parse(glass.source(target))
        used = {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        }
        constants = {n.targets[0].id for n in tree.body if isinstance(n, ast.Assign)}
        assert constants <= used


def test_unknown_targets_and_functions(glass):
    with pytest.raises(EmissionError, match="'numba' or 'python'"):
        python_files.files(glass, target="perl")
    x = sp.Symbol("x", positive=True)
    system = SaddlePointSystem("odd", (Equation(x, sp.exp(-x), x - sp.exp(-x)),), ())
    assert names_in(lower(system).source("python"))["solve_point"]({})["x"][0] == pytest.approx(
        0.56714329040978387,
        rel=1e-15,  # the omega constant
    )


def test_data_of_a_file():
    vector = next(v for v in MEAN_FIELD if v.name == "covariates, matched")
    module = names_in(lower(vector.system()).source("python"))
    columns = vector.float_data["spectrum"]
    found = module["solve_point"](vector.floats, columns)
    # Weights count relative to their sum.
    ones = [1.0] * len(columns["omega"])
    doubled = [2.0 * x for x in columns.get("weight", ones)]
    assert (
        module["solve_point"](vector.floats, {"spectrum": {**columns, "weight": doubled}}) == found
    )
    with pytest.raises(ValueError, match="data must hold spectrum"):
        module["solve_point"](vector.floats)
    short = {
        name: values[:-1] if name == min(columns) else values for name, values in columns.items()
    }
    with pytest.raises(ValueError, match="same length"):
        module["solve_point"](vector.floats, short)


def test_files_are_valid_text(glass):
    for target in ("numba", "python"):
        text = glass.source(target)
        assert textwrap.dedent(text) == text and text.endswith("\n") and "\t" not in text
        assert not any(line != line.rstrip() for line in text.splitlines())
