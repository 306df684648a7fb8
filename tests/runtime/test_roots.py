"""Roots to the precision of a context."""

import mpmath
import pytest

from giantstep.errors import ConvergenceError
from giantstep.runtime.roots import bracketed_root, newton, secant

CTX = mpmath.mp.clone()
CTX.dps = 40


def test_newton_finds_real_and_complex_roots():
    def move(x):
        return (x**3 - 1) / (3 * x**2)

    third = CTX.expjpi(CTX.mpf(2) / 3)
    assert abs(newton(move, CTX.mpf("1.1"), CTX.eps, "a root") - 1) < 1e-39
    assert abs(newton(move, third + CTX.mpf("0.1"), CTX.eps, "a root") - third) < 1e-39


def test_newton_says_what_it_does_not_find():
    # x² + 1 has no real root.
    with pytest.raises(ConvergenceError, match="the edge cannot be refined"):
        newton(lambda x: (x * x + 1) / (2 * x), CTX.mpf("0.3"), CTX.eps, "the edge")


def test_slopes_between_points_do_where_there_is_no_derivative():
    start = CTX.mpf("1.2")
    found = secant(lambda x: x**3 - 2, start, start + 1, CTX.eps, "a root")
    assert abs(found - CTX.cbrt(2)) < 1e-39
    # Relative to the root itself, steps towards zero never get short.
    tiny = secant(lambda x: x + x**2, start / 8, start, CTX.eps, "a root", size=1)
    assert abs(tiny) < 1e-39
    # A root is one, whatever the other point says.
    assert secant(lambda x: CTX.zero, start, start + 1, CTX.eps, "a root") == start
    with pytest.raises(ConvergenceError, match="the amplitude cannot be refined: values are flat"):
        secant(lambda x: CTX.one, start, start + 1, CTX.eps, "the amplitude")


@pytest.mark.parametrize("start", [None, CTX.mpf(0), CTX.mpf(3)])
def test_a_bracket_holds_where_newton_goes_round_in_a_circle(start):
    # From 0 plain Newton steps go to 1 and back for x³ - 2x + 2; its root is at -1.769….
    root = bracketed_root(
        lambda x: (x**3 - 2 * x + 2, 3 * x**2 - 2), (CTX.mpf(-3), CTX.mpf(3)), CTX, start=start
    )
    assert abs(root**3 - 2 * root + 2) < 1e-37


def test_roots_of_all_sizes_are_reached_in_the_logarithm():
    tiny = CTX.mpf(10) ** -300
    found = bracketed_root(
        lambda x: (x - tiny, CTX.one), (CTX.ldexp(1, -4096), CTX.ldexp(1, 4096)), CTX,
        middle=lambda low, high: CTX.sqrt(low * high),
    )  # fmt: skip
    assert abs(found / tiny - 1) < 1e-38


def test_what_has_no_value_has_no_root():
    assert bracketed_root(lambda x: (CTX.nan, CTX.one), (CTX.zero, CTX.one), CTX) is None
