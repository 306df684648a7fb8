r"""How fast the conditional variance of a saturating student decays along the spike.

Without a ridge penalty, interpolating readouts (α ≤ β) average inverse powers of
:math:`v(\kappa) = \mu_1^2 v_1 + \mu_2^2 v_2`. If the student tends to a constant like
:math:`\exp(-g u^2)` on one side, then :math:`\mu_2^2 \approx \mathbb{E}\,\exp(-2g u^2)` over
:math:`u \sim \mathcal{N}(r\kappa, c)`, so that

.. math:: v(\kappa) \sim \exp\Big(-\frac{2 g r^2\kappa^2}{1 + 4 g c}\Big),

and :math:`\mathbb{E}_\kappa[v^{-j}]` is finite for :math:`4 j g r^2 < 1 + 4 g c` only: for erf
(g = 1), j = 1, where :math:`4r^2 < 1 + 4c`. A student that is constant from some point on, such as
relu or sign, has g = ∞: :math:`j r^2 < c`. An exponential approach, as of tanh, has g = 0: all
moments are finite, though large. Derived here.
"""

from __future__ import annotations

import math
from typing import Any

import sympy as sp

from ....runtime.precision import local_context
from ....symbolic.activations import Activation, z
from ....symbolic.printing.compiled import compiled

# Where the decay is measured; the digits resolve 1 − tanh² there.
_POINTS = (40, 60, 80)
_DIGITS = 200
_SMALLEST_RATE = 1e-4


def saturation_rate(student: Activation) -> float:
    """Return the larger g of the two sides; inf for a student that becomes constant, else 0."""
    ctx = local_context(_DIGITS)
    # Jumps are somewhere; what counts is far away.
    derivative = student.expr.diff(z).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
    slope = compiled(derivative, [z], ctx)
    return max(_one_side(ctx, slope, sign) for sign in (1, -1))


def _one_side(ctx: Any, slope: Any, sign: int) -> float:
    sizes = [abs(slope(ctx.mpf(sign * u))) for u in _POINTS]
    if not any(sizes):
        return math.inf
    if not all(sizes):
        return 0.0
    near, middle, far = (-ctx.log(x) for x in sizes)
    # The second difference is blind to an exponential factor; a slope that oscillates does not
    # decay by as much as its differences say.
    gap = _POINTS[1] - _POINTS[0]
    rate = float((far - 2 * middle + near) / (2 * gap**2))
    total = float(far) / _POINTS[2] ** 2
    return rate if rate > _SMALLEST_RATE and total > rate / 2 else 0.0


def highest_moment(rate: float, spike_strength: float, bulk_variance: float) -> float:
    """Return the supremum of the powers j for which the mean of 1/v^j is finite."""
    if not rate or not spike_strength:
        return math.inf
    square = spike_strength**2
    if math.isinf(rate):
        return bulk_variance / square
    return (1 + 4 * rate * bulk_variance) / (4 * rate * square)
