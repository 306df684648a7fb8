"""The JAX file: the numbers of the other targets, derivatives of the solution, failures."""

import subprocess
import sys

import mpmath
import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

from giantstep.derivations.mean_field.gaussian_covariates import gaussian_covariates
from giantstep.derivations.mean_field.ridge_regression import closed_form, ridge_regression
from giantstep.derivations.spiked_random_features.derive import symbolic_model
from giantstep.errors import EmissionError
from giantstep.symbolic.lowering.driver import BakedTables
from giantstep.symbolic.lowering.languages import jax as jax_files, numpy as numpy_files
from giantstep.symbolic.lowering.lowered import lower

from . import hand_programs as hand
from .generated_code import module_of
from .target_files import POINT, assert_within_estimates
from .vectors import VECTORS as ALL_VECTORS

jax = pytest.importorskip("jax")


# One with data, one with roots, one with coordinates that may vanish; and one with tables: each
# takes seconds to compile.
VECTORS = [
    v
    for v in ALL_VECTORS
    if v.name in ("covariates", "logistic", "SK, in a field", "spiked A2, alpha=1.6")
]


@pytest.fixture(autouse=True)
def numbers_of_64_bits():
    """Files change no setting: who differentiates asks for these numbers."""
    enabled = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    with enabled(True):
        yield


def load(lowered, target=jax_files, **options):
    (text,) = target.files(lowered, **options).values()
    return module_of(text)


def load_program(program):
    return load(hand.lowered(program))


def difference(kernel, point, name, output, step=1e-5):
    """Return the symmetric difference quotient of an output of the solver itself."""
    ends = [
        kernel.solve_point({**point, name: point[name] + sign * step})[output][0]
        for sign in (1, -1)
    ]
    return (ends[0] - ends[1]) / (2 * step)


# -- values


@pytest.mark.parametrize(
    "vector",
    # A root with data is quick to compile, below.
    [
        pytest.param(v, marks=[pytest.mark.slow] * (v.name == "logistic"), id=str(v))
        for v in VECTORS
    ],
)
def test_reference_values_are_within_the_estimated_errors(vector):
    found = load(lower(vector.system())).solve_point(vector.floats, vector.float_data)
    assert_within_estimates(found, vector)


@pytest.mark.parametrize(
    ("program", "rows"),
    [
        (hand.triangular(), [[2.0, 3.0, 1.0], [2.0, 3.0, 0.0], [0.5, -1.0, 4.0]]),
        (hand.arctangent(True), [[1.0, 0.5], [-2.0, 3.0], [7.0, 30.0]]),
        (hand.arctangent(False), [[1.0, 0.5], [-2.0, 3.0]]),
        (hand.cosine(), [[0.1], [50.0], [-3.0]]),
        (hand.linear(2), [[0.5], [-1.0]]),
        (hand.cut(), [[0.3, 1.0], [5.0, -3.0]]),
        (hand.growing(), [[0.5], [12.0]]),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_same_rows_as_numpy(program, rows):
    mine = load_program(program).solve_many(rows)
    other = load(hand.lowered(program), numpy_files).solve_many(rows)
    np.testing.assert_array_equal(mine[2][:, 0] < 0, other[2][:, 0] < 0)
    # Sums in another order.
    assert_allclose(mine[0], other[0], rtol=1e-13, atol=1e-16)
    np.testing.assert_array_equal(np.isinf(mine[1]), np.isinf(other[1]))


def test_a_root_with_data_and_its_derivative():
    kernel = load_program(hand.proximal())
    data = {"sample": {"center": [-40.0, -0.3, 0.0, 2.0]}}
    point = {"x": 50.0}
    with mpmath.workdps(30):
        roots = [
            mpmath.findroot(lambda u, p=p: u - p - 50 / (1 + mpmath.exp(u)), (p, p + 50))
            for p in (-0.3, 0, 2)
        ]
        roots.append(mpmath.findroot(lambda u: u + 40 - 50 / (1 + mpmath.exp(u)), -1.2))
        slopes = [
            (1 / (1 + mpmath.exp(u))) / (1 + 50 / ((1 + mpmath.exp(u)) * (1 + mpmath.exp(-u))))
            for u in roots
        ]
        value, slope = (float(mpmath.fsum(s) / 4) for s in (roots, slopes))
    assert_allclose(kernel.solve_point(point, data)["y"][0], value, rtol=1e-14)
    rules = kernel.quadrature(point, data)
    found = jax.grad(lambda p: kernel.solution(p, rules)["y"])(point)
    assert_allclose(found["x"], slope, rtol=1e-13)


# -- derivatives


@pytest.mark.slow
def test_derivatives_of_the_ridge_regression_closed_form():
    kernel = load(lower(ridge_regression()))
    point = {"alpha": 0.9, "ridge": 0.05, "signal_power": 1.2, "noise_variance": 0.3}
    symbols = ridge_regression().parameters
    exact = sp.lambdify(symbols, closed_form()["test_error"], "mpmath")
    rules = kernel.quadrature(point)

    def test_error(p):
        return kernel.solution(p, rules)["test_error"]

    first = jax.grad(test_error)(point)
    second = jax.jacfwd(jax.grad(test_error))(point)["ridge"]
    with mpmath.workdps(50):
        at = [mpmath.mpf(point[name]) for name in kernel.PARAMETERS]
        ridge = kernel.PARAMETERS.index("ridge")
        for k, name in enumerate(kernel.PARAMETERS):
            order = [int(i == k) for i in range(4)]
            assert_allclose(first[name], float(mpmath.diff(exact, at, tuple(order))), rtol=1e-12)
            order[ridge] += 1
            derivative = float(mpmath.diff(exact, at, tuple(order)))
            assert_allclose(second[name], derivative, rtol=1e-10)


@pytest.mark.slow
def test_derivatives_through_the_tables_and_a_jump():
    # The student is a kink and the teacher a jump, both smoothed and both moving with parameters.
    kernel = load(symbolic_model("relu", "sign").lowered)
    rules = kernel.quadrature(POINT)

    def test_error(p):
        return kernel.solution(p, rules)["test_error"]

    value, found = jax.value_and_grad(test_error)(POINT)
    assert_allclose(value, kernel.solve_point(POINT)["test_error"][0], rtol=1e-12)
    for name in ("alpha", "ridge", "spike_strength", "alignment"):
        # Truncation step**2 and rounding 1e-15/step.
        assert_allclose(found[name], difference(kernel, POINT, name, "test_error"), rtol=1e-6)
    grid = np.array([0.05, 0.1, 0.4])
    mapped = jax.vmap(lambda ridge: test_error({**POINT, "ridge": ridge}))(grid)
    rows = [[{**POINT, "ridge": r}[name] for name in kernel.PARAMETERS] for r in grid]
    assert_allclose(mapped, kernel.solve_many(rows)[0][:, 0], rtol=1e-12)


def test_panels_move_under_the_derivative():
    # d/da P(t > a) = -density(a): all of it comes from the jump.
    kernel = load_program(hand.cut())
    point = {"a": 0.3, "b": 1.0}
    rules = kernel.quadrature(point)
    found = jax.grad(lambda p: kernel.solution(p, rules)["y"])(point)
    assert_allclose(found["a"], -np.exp(-0.045) / np.sqrt(2 * np.pi), rtol=1e-13)
    # The mass of the pieces on both sides, of size one, is rounded.
    assert_allclose(found["b"], 0, atol=2.0**-52)


def test_what_has_no_solution_has_no_derivative():
    kernel = load_program(hand.arctangent(False))
    rules = kernel.quadrature({"a": 1.0, "b": 0.5})

    def y(p):
        return kernel.solution(p, rules)["y"]

    value, slopes = jax.value_and_grad(y)({"a": 1.0, "b": 0.5})
    assert_allclose([value, slopes["a"], slopes["b"]], [1, 1, 0], atol=1e-15)
    value, slopes = jax.value_and_grad(y)({"a": 1.0, "b": 3.0})
    assert np.isnan(value) and np.isnan(slopes["a"])
    with pytest.raises(RuntimeError, match=r"no solution at a = 1\.0, b = 3\.0"):
        kernel.solve_point({"a": 1, "b": 3})
    with pytest.raises(RuntimeError, match="no solution"):
        kernel.quadrature({"a": 1.0, "b": 3.0})


# -- refusals, baked tables, the file on its own


def test_refusals():
    kernel = load(lower(gaussian_covariates()))
    spectrum = {"omega": [1.0, 2.0], "t": [1.0, 0.5]}
    point = dict.fromkeys(kernel.PARAMETERS, 0.5)
    with pytest.raises(ValueError, match="alpha must be a finite positive number"):
        kernel.solve_point({**point, "alpha": -1}, spectrum)
    with pytest.raises(ValueError, match="must have the columns omega, t"):
        kernel.solve_point(point, {"spectrum": {"omega": [1.0]}})
    f = sp.Function("f", real=True)
    program = hand.program("toy", (hand.a,), (hand.Assign(hand.y, f(hand.a)),), (hand.y,))
    with pytest.raises(EmissionError, match="'jax' has no rule for f"):
        jax_files.files(hand.lowered(program))


def test_names_that_mean_something_in_the_file():
    kernel = load_program(hand.unlucky_names())
    values = {name: 1.0 + k for k, name in enumerate(kernel.PARAMETERS)}
    assert kernel.solve_point(values)["report"][0] == sum(values.values())


_RUN_ALONE = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("giantstep", "sympy", "numba", "mpmath"):
            raise ImportError(name)
sys.meta_path.insert(0, Blocker())
sys.path.insert(0, sys.argv[1])
import kernel
print(kernel.solve_point(eval(sys.argv[2]))["test_error"][0].hex())
"""


def test_the_written_file_with_baked_tables_runs_on_its_own(tmp_path):
    lowered = symbolic_model("tanh", "sin").lowered
    reference = load(lowered, numpy_files)
    names = reference.TABLE_PARAMETERS
    levels = reference.by_name(reference.levels_at([POINT[name] for name in names], [])[0])
    baked = BakedTables({name: POINT[name] for name in names}, tuple(levels))
    lowered.write(tmp_path / "kernel.py", "jax", tables=baked)
    point = {name: value for name, value in POINT.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-I", "-c", _RUN_ALONE, str(tmp_path), repr(point)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    expected = reference.solve_point(POINT)["test_error"][0]
    assert_allclose(float.fromhex(done.stdout.strip()), expected, rtol=1e-13)
