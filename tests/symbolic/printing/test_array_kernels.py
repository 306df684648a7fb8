"""Loops over arrays for numba: cases, extrema, angles far out, and what is refused."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp

from giantstep.errors import EmissionError
from giantstep.numeric.cache import FileCache
from giantstep.symbolic.printing.array_kernels import LARGEST_ANGLE, array_kernel

x = sp.Symbol("x", real=True)


@pytest.fixture
def loops(session_cache):
    """Compile an expression, and its slope if there is one."""

    def load(value, slope=None):
        return FileCache().load_module("test_loops", array_kernel(value, slope, x))

    return load


def values(module, z):
    out = np.empty_like(z)
    module.values(z, out)
    return out


def test_cases_choose_a_side(loops):
    module = loops(sp.Piecewise((sp.exp(x), x < 0), (1 + 1 / x, x < 2), (3 + sp.tanh(x - 2), True)))
    z = np.array([-1.0, 0.0, 0.5, 2.0, 4.0, 1000.0, np.nan])
    expected = [math.exp(-1), math.inf, 3.0, 3.0, 3 + math.tanh(2), 4.0, math.nan]
    np.testing.assert_allclose(values(module, z), expected, rtol=1e-15)


@pytest.mark.parametrize("extremum", [sp.Max, sp.Min])
def test_extrema_let_through_what_is_not_a_number_from_either_side(loops, extremum):
    z = np.array([-0.7, 0.2, 3.0, 2e7, np.nan, np.inf])
    chosen = np.maximum if extremum is sp.Max else np.minimum
    # At 2e7 the sine is no number in the first turn, and what is chosen waits for the second.
    for value in (extremum(sp.sin(x), sp.Rational(1, 2)), extremum(-10, sp.sin(x))):
        other = next(float(a) for a in value.args if a.is_number)
        with np.errstate(invalid="ignore"):
            expected = chosen(np.sin(z), other)
        np.testing.assert_allclose(values(loops(value), z), expected, rtol=1e-15)


def test_angles_far_out_are_those_of_the_c_library(loops):
    module = loops(sp.sin(x) + x**2 * sp.cos(2 * x), sp.cos(x))
    z = np.array([0.3, LARGEST_ANGLE * 0.9, 3e9, 1e300, 0.7])
    value, slope = np.empty(5), np.empty(5)
    module.values_and_slopes(z, value, slope)
    # 2x is too large in the second one and x is not: the slope stays that of the first turn.
    with np.errstate(over="ignore"):
        expected = np.sin(z) + z**2 * np.cos(2 * z)
    np.testing.assert_allclose(value[[0, 1, 2, 4]], expected[[0, 1, 2, 4]], rtol=2e-15)
    np.testing.assert_allclose(slope, np.cos(z), rtol=1e-15)
    alone = np.empty(5)
    module.slopes(z, alone)
    assert np.array_equal(alone, slope)


def test_constants_and_signs_of_zero(loops):
    module = loops(sp.erf(x), sp.sign(x))
    value, slope = np.empty(3), np.empty(3)
    module.values_and_slopes(np.array([-0.0, 0.0, 5e-324]), value, slope)
    assert np.signbit(value).tolist() == [True, False, False] and slope.tolist() == [0.0, 0.0, 1.0]
    assert values(loops(sp.Integer(3)), np.zeros(2)).tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (sp.log(1 + x**2), "has no rule for log"),
        (sp.Abs(x) ** sp.Rational(1, 3), "has no rule for Pow"),
        (sp.Piecewise((x, sp.sin(x) > 0), (0, True)), "sin and cos in conditions"),
        (sp.sin(x) * sp.oo, "has no rule for"),
    ],
)
def test_what_would_not_be_vectorised_or_not_right_is_refused(expr, message):
    with pytest.raises(EmissionError, match=message):
        array_kernel(expr, None, x)


def test_arcsines_are_right_to_two_units(loops):
    grid = np.concatenate([np.linspace(-1, 1, 4001), [0.5, -0.5, 0.49999999, 1 - 2**-53, 1e-300]])
    found = np.empty_like(grid)
    loops(sp.asin(x)).values(grid, found)
    with mpmath.workdps(30):
        exact = [mpmath.asin(mpmath.mpf(float(v))) for v in grid]
        units = [
            abs(mpmath.mpf(float(a)) - e) / np.spacing(abs(float(e)))
            for a, e in zip(found, exact, strict=True)
            if e
        ]
    assert max(units) <= 2
    assert found[np.flatnonzero(grid == 0)[0]] == 0
