"""When two rules of different fineness count as agreeing."""

from __future__ import annotations

import pytest

from giantstep.numeric.precision import _settled, local_context


@pytest.mark.parametrize(
    ("difference", "composite", "settled"),
    [
        # 10 * difference**1.5 has to be below 1e-20: about 1e-14 for the trapezoidal rule.
        ("1e-15", False, True),
        ("1e-13", False, False),
        ("1e-3", False, False),
        # A composite rule has to agree to all digits.
        ("1e-15", True, False),
        ("1e-21", True, True),
    ],
)
def test_rules_agree_only_to_the_digits_asked_for(difference, composite, settled):
    ctx = local_context(20)
    value, zero = ctx.mpf("0.3"), ctx.mpf(10) ** -36
    other = value * (1 + ctx.mpf(difference))
    assert _settled(value, other, ctx.mpf(10) ** -20, zero, composite) is settled


def test_what_cancels_to_rounding_counts_as_zero():
    ctx = local_context(20)
    zero = ctx.mpf(10) ** -36
    assert _settled(zero / 3, -zero / 2, ctx.mpf(10) ** -20, zero, False)
    assert not _settled(3 * zero, -zero, ctx.mpf(10) ** -20, zero, False)
