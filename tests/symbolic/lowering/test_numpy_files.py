"""The NumPy file: every step of a program, many rows at once, failures row by row."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

from giantstep.derivations.mean_field.gaussian_covariates import gaussian_covariates
from giantstep.derivations.spiked_random_features.derive import symbolic_model
from giantstep.symbolic.expressions.functions import OwenT
from giantstep.symbolic.lowering.languages.numpy import files
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .generated_code import module_of
from .target_files import POINT


def load(lowered, **options):
    (text,) = files(lowered, **options).values()
    return module_of(text)


@pytest.fixture(scope="module")
def tanh_sin():
    return symbolic_model("tanh", "sin").lowered


@pytest.fixture(scope="module")
def kernel(tanh_sin):
    return load(tanh_sin)


# -- reference values


@pytest.mark.parametrize(
    ("student", "teacher", "options"),
    [("relu", "sin", {}), ("erf", "erf", {"unspiked": True}), ("He2", "sign", {})],
)
def test_same_numbers_as_the_other_rows_alone(student, teacher, options):
    # A row does not feel which rows are solved beside it, up to nothing at all.
    kernel = load(symbolic_model(student, teacher, **options).lowered)
    rows = np.array([[POINT[name] for name in kernel.PARAMETERS]] * 5)
    rows[:, 0] = [0.2, 0.9, 1.0, 3.0, 40.0]
    rows[:, 2] = [1e-4, 1e-2, 0.3, 1.0, 10.0]
    together = kernel.solve_many(rows)
    alone = [kernel.solve_many(row[None]) for row in rows]
    for k, column in enumerate(together):
        assert_allclose(column, np.concatenate([one[k] for one in alone]), rtol=0, atol=0)
    assert np.all(together[2][:, 0] > 0)


# -- hand-written programs, one for each kind of step


@pytest.mark.parametrize("target", ["numpy", "python"])
def test_fixed_point_moves_that_leave_the_domain_end_inside(target):
    # x = a sqrt(1 - x), where the second move from 1/10 leads beyond 1.
    x, a = sp.symbols("x a", positive=True)
    system = SaddlePointSystem.from_fixed_point(
        {x: a * sp.sqrt(1 - x)}, name="inside", parameters=(a,), start={x: sp.Rational(1, 10)}
    )
    module = module_of(lower(system).source(target))
    values, errors, info = module.solve_many([[4.0], [1.0], [30.0]])
    for a, value, error in zip([4.0, 1.0, 30.0], values[:, 0], errors[:, 0], strict=True):
        exact = 2.0 / (1.0 + np.sqrt(1.0 + 4.0 / a**2))  # the root of x^2 = a^2 (1 - x)
        assert abs(value - exact) <= error <= 1e-13
    assert np.all(info[:, 0] > 0)


@pytest.mark.parametrize("target", ["numpy", "python"])
def test_newton_makes_no_leaps(target):
    # e^x = a from -40: the first step of Newton's method would be 2e17.
    x, a = sp.Symbol("x", real=True), sp.Symbol("a", positive=True)
    system = SaddlePointSystem.from_fixed_point(
        {x: sp.Eq(sp.exp(x), a)}, name="leap", parameters=(a,), start={x: sp.Integer(-40)}
    )
    module = module_of(lower(system).source(target))
    value, error = module.solve_point({"a": 30.0})["x"]
    assert abs(value - np.log(30.0)) <= error <= 1e-12


# -- many rows


def test_groups_of_table_parameters_and_a_failure_among_them(kernel):
    rows = np.array([[POINT[name] for name in kernel.PARAMETERS]] * 6)
    strength = kernel.PARAMETERS.index("spike_strength")
    rows[:, strength] = [0.5, 1.3, 0.5, 1e9, 1.3, 0.1]  # nothing resolves a width of 1e-9
    values, errors, info = kernel.solve_many(rows)
    assert list(info[:, 0] > 0) == [True, True, True, False, True, True]
    assert np.all(np.isinf(errors[3])) and np.all(np.isnan(values[3]))
    assert_allclose(values[0], values[2], rtol=0)
    for k in (0, 1, 5):
        point = dict(zip(kernel.PARAMETERS, rows[k], strict=True))
        assert values[k, 0] == kernel.solve_point(point)["test_error"][0]
    with pytest.raises(RuntimeError, match=r"spike_strength = 1000000000\.0"):
        kernel.solve_point({**POINT, "spike_strength": 1e9})


def test_no_rows_and_rows_beyond_one_block(kernel):
    empty = kernel.solve_many(np.empty((0, len(kernel.PARAMETERS))))
    assert [a.shape for a in empty] == [(0, len(kernel.OUTPUTS)), (0, len(kernel.OUTPUTS)), (0, 3)]
    # One solve of 85 nodes: a block is 23 529 rows.
    rows = np.tile([POINT[name] for name in kernel.PARAMETERS], (24_000, 1))
    values, _, _ = kernel.solve_many(rows, rtol=1e-3)
    assert np.all(values == values[0])


def test_memory_is_bounded_by_blocks():
    kernel = load(lower(gaussian_covariates()))
    n = 200_000
    spectrum = {"omega": np.linspace(0.1, 2, n), "t": np.ones(n)}
    seen = []
    original = kernel.solve

    def solve(block, arrays, *rest):
        seen.append(block.shape[1] * n)
        return original(block, arrays, *rest)

    kernel.solve = solve
    rows = np.tile([1.5, 0.1, 1.0, 0.1], (12, 1))
    kernel.solve_many(rows, spectrum)
    assert max(seen) <= 2_000_000


# -- refusals


def test_refusals_name_the_argument(kernel):
    with pytest.raises(ValueError, match="no value for 'ridge'"):
        kernel.solve_point({k: v for k, v in POINT.items() if k != "ridge"})
    with pytest.raises(ValueError, match="'lambda' is none of them"):
        kernel.solve_point({**POINT, "lambda": 1})
    for wrong in (-0.1, 0.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="ridge must be a finite positive number"):
            kernel.solve_point({**POINT, "ridge": wrong})
    with pytest.raises(ValueError, match="real numbers"):
        kernel.solve_point({**POINT, "ridge": "large"})
    with pytest.raises(ValueError, match=r"array \(n, 8\) with the columns alpha, beta"):
        kernel.solve_many([1.0, 2.0])
    with pytest.raises(ValueError, match="rtol must be"):
        kernel.solve_point(POINT, rtol=-1)
    with pytest.raises(ValueError, match="data must hold nothing"):
        kernel.solve_point(POINT, {"spectrum": {"omega": [1.0]}})


# -- baked tables, special functions, the file on its own


def test_special_functions_in_the_equations():
    # One equation without averages: x = 1 + OwenT(x, a), contracting.
    x, a = sp.Symbol("x", positive=True), sp.Symbol("a", positive=True)
    system = SaddlePointSystem.from_fixed_point({x: 1 + OwenT(x, a)}, name="owen", parameters=(a,))
    value, error = load(lower(system)).solve_point({"a": 2.0})["x"]
    with mpmath.workdps(30):
        exact = mpmath.findroot(lambda u: u - 1 - mpmath.mpf(str(OwenT(u, 2).evalf(25))), 1.06)
    assert abs(value - float(exact)) <= error
