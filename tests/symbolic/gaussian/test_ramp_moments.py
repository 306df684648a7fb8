"""Averages of ramps: against integrals, in the three cases of the form that is computed."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.special import ndtr, owens_t

from giantstep.symbolic.expressions.functions import normal_cdf
from giantstep.symbolic.gaussian.accuracy import accurate_moment
from giantstep.symbolic.gaussian.ramp_moments import (
    gauss_sum,
    kink_moment,
    labelled_ramp_moment,
    ramp_moment,
)

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


@pytest.mark.parametrize(
    ("n", "k", "point"),
    # All points for the first two orders; each point for a third of the others.
    [
        (*order, point)
        for j, order in enumerate(ORDERS)
        for i, point in enumerate(POINTS)
        if j < 2 or (i + j) % 3 == 0
    ],
)
def test_closed_forms_are_the_integrals(n, k, point):
    form = ramp_moment(n, k, a, h, v).closed_form()
    form = form.replace(normal_cdf, lambda u: sp.erfc(-u / sp.sqrt(2)) / 2)
    function = sp.lambdify((a, h, v), form, "mpmath")
    scale = point[2] ** (min(n, 0) / 2)
    with mpmath.workdps(30):
        start, width, variance = map(mpmath.mpf, point)
        exact = mpmath.quad(
            lambda w: w**k * smoothed(n, start - w * width, variance), mpmath.linspace(0, 1, 6)
        )
        assert abs(function(start, width, variance) - exact) < 1e-25 * scale
    with mpmath.workdps(15):
        assert abs(function(*map(mpmath.mpf, point)) - exact) < 1e-12 * scale


def test_integrands_of_sums_are_rewritten_once():
    form = accurate_moment(ramp_moment(-1, 1, a, h, v))
    (total,) = form.atoms(gauss_sum)
    assert len(total.integrand.atoms(sp.exp)) == 1
    values = total.at_nodes()
    assert len(set(values)) == 8
    # The sum is linear in what stands for the integrand.
    point = {a: 0.3, h: 0.05, v: 0.5}
    numbers = [value.subs(point) for value in values]
    exact = ramp_moment(-1, 1, a, h, v).closed_form().subs(point)
    assert abs(sp.N(total.total(numbers) - exact)) < 1e-15


def test_derivatives_are_ramps_again():
    ramp = ramp_moment(1, 0, a**2, h * a, v)
    assert ramp.diff(a) == 2 * a * ramp_moment(0, 0, a**2, h * a, v) - h * ramp_moment(
        0, 1, a**2, h * a, v
    )
    # The heat equation.
    assert ramp_moment(1, 0, a, h, v).diff(v) == ramp_moment(1, 0, a, h, v).diff(a, 2) / 2


KINK_ORDERS = [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (0, 2)]
# Distance, step, variance, slopes: narrow; on the ramp; far beyond both ends; a ramp so wide that
# the slopes are lost in each other, as where a readout interpolates.
KINK_POINTS = [
    (0.3, 0.05, 0.5, -1, 1), (0.4, 2.0, 0.7, -0.7, 0.3), (3.0, 0.5, 0.04, -1, 1),
    (-2.0, 1.5, 0.3, -0.3, 0.7), (0.3, 1e5, 0.8, -1, 1), (0.3, 2.0, 0.1, 0.2, 0.9),
]  # fmt: skip


def kink_derivative(j, k, u, step, variance, left, right):
    """A derivative of the mean of the envelope: that of its parts, each a polynomial."""

    def part(place, slope):
        # Of the parabola (u - V s)^2/(2V) beyond the end u = V s of the ramp.
        def value(t, w):
            end = (t - w * slope) / mpmath.sqrt(variance)
            inside = mpmath.ncdf(place * end)
            return variance / (2 * w) * ((1 + end**2) * inside + place * end * mpmath.npdf(end))

        return value

    below, above = part(-1, left), part(1, right)

    def total(t, w):
        return (t**2 + variance) / (2 * w) - below(t, w) - above(t, w)

    return mpmath.diff(total, (u, step), (j, k)) if j + k else total(u, step)


@pytest.mark.parametrize("point", KINK_POINTS)
@pytest.mark.parametrize(("j", "k"), KINK_ORDERS)
def test_moments_of_kinks_keep_their_digits_on_wide_ramps(j, k, point):
    """The mean slope is about u/V there: as -1 and twice half a ramp it would lose log10 V."""
    symbols = sp.symbols("u V v l r", real=True)
    form = kink_moment(j, k, *symbols).closed_form()
    form = form.replace(normal_cdf, lambda u: sp.erfc(-u / sp.sqrt(2)) / 2)
    function = sp.lambdify(symbols, form, "mpmath")
    with mpmath.workdps(50):
        exact = kink_derivative(j, k, *map(mpmath.mpf, point))
    with mpmath.workdps(15):
        found = function(*map(mpmath.mpf, point))
    assert abs(found - exact) < 1e-12 * max(abs(exact), min(1, 1 / point[1]) ** (1 + k))


def test_derivatives_of_kinks_by_their_slopes():
    u, left, right = sp.symbols("u l r", real=True)
    step = sp.Symbol("V", positive=True)
    point = {u: 0.4, step: 0.9, v: 0.7, left: -0.6, right: 0.3}
    for j, k in [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]:
        for slope in (left, right):
            kink = kink_moment(j, k, u, step, v, left, right)
            exact = kink.closed_form().args[1][0].args[-1][0].diff(slope)
            found = kink.diff(slope)
            assert found.xreplace(point).evalf() == pytest.approx(exact.xreplace(point).evalf())


# Ramp, its width, variance, covariance and mean of the field: narrow; wide; a steep label; a mean
# field of zero; the ramp at zero, too; a ramp as wide as where a readout interpolates.
LABELLED_POINTS = [
    (0.3, 0.05, 0.5, 0.7, 0.4), (0.9, 2.0, 0.7, -0.8, -0.3), (1.2, 0.1, 1e-3, 1.0, 1.1),
    (0.5, 1.0, 0.3, 0.4, 0.0), (0.0, 1.0, 0.3, 0.4, 0.0), (0.9, 1e7, 0.08, 0.06, 0.7),
]  # fmt: skip


def compiled_form(expr, symbols):
    for node in (labelled_ramp_moment, ramp_moment):
        expr = expr.replace(node, lambda *args, node=node: node(*args).closed_form())
    return sp.lambdify(symbols, expr, [{"OwenT": owens_t, "normal_cdf": ndtr}, "numpy"])


def panels(low, high, count):
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = low + (high - low) * np.linspace(0.0, 1.0, count + 1)
    half = np.diff(edges, axis=0) / 2
    middle = (edges[1:] + edges[:-1]) / 2
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


def labelled(n, x, w, t, e):
    """S_n for n <= 0 by one integral over the variable of the ramp."""
    q = w + t**2

    def density(u):
        return (
            np.exp(-(u**2) / (2 * q))
            / np.sqrt(2 * np.pi * q)
            * ndtr((e * q + t * u) / np.sqrt(q * w))
        )

    if n == -1:
        return density(-x)
    far = 12 * np.sqrt(q)
    u, weights = panels(max(-x, -far), far, 60)
    return np.sum(weights * density(u)) if -x < far else 0.0


@pytest.mark.parametrize("point", LABELLED_POINTS)
@pytest.mark.parametrize(("n", "k"), [(0, 0), (0, 1), (-1, 0), (-1, 1)])
def test_moments_of_labelled_ramps_are_the_integrals(n, k, point):
    symbols = sp.symbols("a h w t e", real=True)
    start, width, *law = point
    reach = min(1.0, (start + 12 * np.hypot(np.sqrt(law[0]), law[1])) / width)
    places, weights = panels(0.0, reach, 30)
    values = [labelled(n, start - x * width, *law) for x in places]
    exact = np.sum(weights * places**k * values)
    found = compiled_form(labelled_ramp_moment(n, k, *symbols), symbols)(*point)
    assert found == pytest.approx(exact, rel=1e-11)


def test_derivatives_of_labelled_ramps_are_differences():
    symbols = sp.symbols("a h w t e", real=True)
    point = np.array([0.4, 0.9, 0.7, -0.6, 0.3])
    for n, k in [(1, 0), (0, 0), (0, 1), (-1, 0)]:
        ramp = labelled_ramp_moment(n, k, *symbols)
        value = compiled_form(ramp, symbols)
        for symbol, step in zip(symbols, 2e-3 * np.eye(5), strict=True):
            slope = sum(
                c * (value(*(point + m * step)) - value(*(point - m * step)))
                for m, c in ((1, 2 / 3), (2, -1 / 12))
            ) / 2e-3  # fmt: skip
            assert compiled_form(ramp.diff(symbol), symbols)(*point) == pytest.approx(
                slope, abs=1e-10
            )
