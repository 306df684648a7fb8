"""The radius of convergence of one branch of an inverse function, where it is known."""

from __future__ import annotations

import pytest

from giantstep.numeric.spectra.inverse_branch import inverse_radius
from giantstep.runtime.precision import local_context

CTX = local_context(30)


def radius(above, below, points, base, multiplicity=1):
    to = CTX.mpf
    return inverse_radius(
        [to(c) for c in above], [to(c) for c in below], [CTX.mpc(p) for p in points],
        base=to(base), multiplicity=multiplicity, ctx=CTX,
    )  # fmt: skip


def test_the_lambert_like_parabola():
    # x = u - u², u = (1 - √(1 - 4x))/2: singular at x = 1/4.
    assert radius([-1, 1, 0], [1], [0.5], 0) == 0.25


def test_a_critical_point_of_another_branch_does_not_count():
    # x = u³ - 3u + 2 = (u - 1)²(u + 2): from u = -2 the branch meets u = -1 at x = 4; the critical
    # point u = 1 has x = 0 and belongs to the two others.
    assert radius([1, 0, -3, 2], [1], [1, -1], -2) == 4
    # From the double zero u = 1, in √x.
    assert radius([1, 0, -3, 2], [1], [1, -1], 1, multiplicity=2) == 4


def test_only_points_that_the_branch_meets_count():
    # x = u² - 1 from u = 1: the pole at u = -2 has x = 3, but there u is on the other sheet
    # (beyond the critical value -1); the one at u = 1.5 is met at x = 1.25.
    assert radius([1, 0, -1], [1], [-2], 1) == CTX.inf
    assert radius([1, 0, -1], [1], [-2, 1.5], 1) == 1.25
    assert radius([1, 0, -1], [1], [-2, 1.5, 0], 1) == 1


def test_rational_functions_and_complex_points():
    # x = u/(1 + u²), u = (1 - √(1 - 4x²))/(2x): singular at x = ±1/2, from u = ±1.
    assert abs(radius([1, 0], [1, 0, 1], [1, -1], 0) - 0.5) < 1e-25
    # x = u + u³: critical at u = ±i/√3, |x| = 2/(3√3).
    found = radius([1, 0, 1, 0], [1], [1j / CTX.sqrt(3), -1j / CTX.sqrt(3)], 0)
    assert found == pytest.approx(2 / 3**1.5, rel=1e-14)


def test_nothing_to_meet():
    assert radius([2, 0], [1], [], 0) == CTX.inf


def test_a_point_at_the_base_up_to_rounding_does_not_count():
    # x = (u - 1)(3 - u) from u = 1: singular at u = 2, x = 1.
    assert radius([-1, 4, -3], [1], [1 + CTX.mpf("1e-45"), 2], 1) == 1
