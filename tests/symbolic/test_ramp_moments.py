"""Averages of ramps: against integrals, in the three cases of the form that is computed."""

from __future__ import annotations

import mpmath
import pytest
import sympy as sp

from giantstep.symbolic.normal_functions import normal_cdf
from giantstep.symbolic.ramp_moments import ramp_moment

a = sp.Symbol("a", real=True)
h, v = sp.symbols("h v", positive=True)
ORDERS = [(1, 0), (0, 0), (0, 1), (-1, 0), (-1, 1), (-1, 2), (-2, 0), (-2, 1), (-3, 0)]
# Narrow; wide and around zero; wide and far above; far below; a width next to nothing.
POINTS = [(0.3, 0.05, 0.5), (0.9, 2.0, 0.7), (3.0, 0.5, 0.04), (-2.0, 1.5, 0.3), (0.2, 1e-9, 1e-4)]


def smoothed(n, x, variance):
    root = mpmath.sqrt(variance)
    z = x / root
    density = mpmath.npdf(z) / root
    if n > 0:
        return x * mpmath.ncdf(z) + variance * density
    return {0: mpmath.ncdf(z), -1: density, -2: -z / root * density,
            -3: (z**2 - 1) / variance * density}[n]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(("n", "k"), ORDERS)
def test_closed_forms_are_the_integrals(n, k, point):
    form = ramp_moment(n, k, a, h, v).closed_form()
    form = form.replace(normal_cdf, lambda u: sp.erfc(-u / sp.sqrt(2)) / 2)
    function = sp.lambdify((a, h, v), form, "mpmath")
    scale = point[2] ** (min(n, 0) / 2)
    with mpmath.workdps(30):
        start, width, variance = map(mpmath.mpf, point)
        exact = mpmath.quad(
            lambda w: w**k * smoothed(n, start - w * width, variance), mpmath.linspace(0, 1, 17)
        )
        assert abs(function(start, width, variance) - exact) < 1e-25 * scale
    with mpmath.workdps(15):
        assert abs(function(*map(mpmath.mpf, point)) - exact) < 1e-12 * scale


def test_derivatives_are_ramps_again():
    ramp = ramp_moment(1, 0, a**2, h * a, v)
    assert ramp.diff(a) == 2 * a * ramp_moment(0, 0, a**2, h * a, v) - h * ramp_moment(
        0, 1, a**2, h * a, v
    )
    # The heat equation.
    assert ramp_moment(1, 0, a, h, v).diff(v) == ramp_moment(1, 0, a, h, v).diff(a, 2) / 2
