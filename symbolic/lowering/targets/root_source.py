"""A function that an equation defines, as a function of the language-neutral text."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from ..program import ScalarRoot
from .language import Function, Kind, Parameter
from .renaming import safe_root


def root_function(
    root: ScalarRoot, calls: tuple[Function, ...], reserved: Iterable[str]
) -> Function:
    """Return the function that finds a root by Newton's method inside a bracket.

    Parameters
    ----------
    root : ScalarRoot
    calls : tuple of Function
        What its expressions may call.
    reserved : iterable of str
        Names that arguments and unknown must not have.
    """
    own = {"value", "low", "high", "radius", "trial", "change", "found"}
    root = safe_root(root, {*reserved, *own})
    x = root.unknown
    body = f"""
{x} = start_
value = residual_
# The residual rises at least as fast as its argument, so the root is this near.
radius = abs(value)
low = {x} - radius
high = {x} + radius
change = radius
radius = radius + abs({x})
found = value == 0.0
for k in range(100):
    if found:
        break
    if value > 0.0:
        high = {x}
    elif value < 0.0:
        low = {x}
    else:
        break
    trial = {x} - value / slope_
    # Steps that do not shrink go to and fro across a kink.
    if not (trial >= low and trial <= high and abs(trial - {x}) <= change):
        trial = 0.5 * (low + high)
    change = 0.5 * abs(trial - {x})
    {x} = trial
    # One step from here the error is the square of this.
    found = change <= 2 * unit * (abs({x}) + radius)
    if not found:
        value = residual_
        found = value == 0.0
if not found:
    {x} = nan
return {x}
"""
    expressions: dict[str, sp.Expr] = {
        "start_": root.start,
        "residual_": root.residual,
        "slope_": root.slope,
    }
    return Function(
        root.name,
        tuple(Parameter(str(a)) for a in root.arguments),
        body,
        expressions,
        returns=Kind.REAL,
        documentation=f"Return the root {x} of {root.residual}; NaN where none is found.",
        calls=calls,
    )
