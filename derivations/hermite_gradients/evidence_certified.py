"""Evidence by proven intervals for gradients by Hermite tensors; it needs python-flint."""

from __future__ import annotations

import math

import sympy as sp

from ...ball_library import require_flint
from ...symbolic.activations import activation
from ...symbolic.activations import z as variable
from ...symbolic.hermite import hermite_coefficients
from ..claims import Finding

_STUDENTS = ("tanh", "softplus", "sigmoid", "atan")
_ORDER = 5
_DIGITS = 20


def stein() -> Finding:
    """Coefficients μ_k of f' and μ_(k+1) of f: different integrals with the same value."""
    require_flint()
    apart: list[str] = []
    details: dict[str, str] = {}
    narrowest: float = math.inf
    for name in _STUDENTS:
        f = activation(name)
        own = hermite_coefficients(f.expr, _ORDER + 1).enclosures(_DIGITS)
        slope = hermite_coefficients(sp.diff(f.expr, variable), _ORDER).enclosures(_DIGITS)
        for k, (first, second) in enumerate(zip(own[1:], slope, strict=True)):
            if first.upper < second.lower or second.upper < first.lower:
                apart.append(f"{name}, order {k + 1}")
            if not first.contains_zero:
                narrowest = min(narrowest, first.digits, second.digits)
            details[f"{name}: order {k + 1} of f, {k} of f'"] = f"{first}, {second}"
        if own[1].contains_zero:
            apart.append(f"{name}: the first coefficient may vanish")
    summary = (
        f"{len(details)} pairs of intervals with at least {narrowest} digits overlap, and no first "
        "coefficient vanishes"
    )
    if apart:
        summary = f"not so: {', '.join(apart)}"
    return Finding(not apart and narrowest >= _DIGITS, summary, details)
