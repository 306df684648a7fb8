"""Derivatives of the steps of a Newton block, by forward differentiation of its residuals.

A program carries a Jacobian of its own, which floats need in a form that does not cancel. A proof
does not rely on it: here every assignment is differentiated by the chain rule, so that residual
and derivatives cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sympy as sp

from .program import Assign, Newton, NodeLoop

Tangents = Mapping[sp.Symbol, sp.Expr]


def with_derivatives(
    block: Newton,
) -> tuple[list[Assign | NodeLoop], tuple[tuple[sp.Symbol | None, ...], ...]]:
    """Return the body with derivatives, and the symbols of the Jacobian.

    Parameters
    ----------
    block : Newton

    Returns
    -------
    list of steps
        The body; each assignment and sum is followed by its derivatives.
    tuple of tuple of Symbol or None
        Derivative of each residual by each coordinate; None where it vanishes identically.
    """
    tangents: list[dict[sp.Symbol, sp.Expr]] = [
        {unknown: unknown if logarithmic else sp.S.One}
        for unknown, logarithmic in zip(block.unknowns, block.logarithmic, strict=True)
    ]
    body: list[Assign | NodeLoop] = []
    for step in block.body:
        if isinstance(step, Assign):
            body += [step, *_derivatives([step], tangents)]
        else:
            # Local names mean nothing after the pass, and those of another pass nothing in it.
            inside = [dict(known) for known in tangents]
            local = [a for b in step.locals for a in (b, *_derivatives([b], inside))]
            sums = _derivatives(step.sums, inside)
            body.append(replace(step, locals=tuple(local), sums=(*step.sums, *sums)))
            for known, here in zip(tangents, inside, strict=True):
                known.update({a.target: here[a.target] for a in step.sums if a.target in here})
    jacobian = tuple(
        tuple(_symbol(known.get(residual)) for known in tangents) for residual in block.residual
    )
    return body, jacobian


def _derivatives(
    assignments: Sequence[Assign], tangents: Sequence[dict[sp.Symbol, sp.Expr]]
) -> list[Assign]:
    found = []
    for assignment in assignments:
        symbols = sorted(assignment.value.free_symbols, key=str)
        partial: dict[sp.Symbol, sp.Expr] = {}
        for coordinate, known in enumerate(tangents):
            moving = [x for x in symbols if x in known]
            for x in moving:
                if x not in partial:
                    partial[x] = sp.diff(assignment.value, x)
            slope = sp.Add(*(partial[x] * known[x] for x in moving))
            known.pop(assignment.target, None)
            if slope != 0:
                target = sp.Dummy(f"d{coordinate}_{assignment.target}", real=True)
                known[assignment.target] = target
                found.append(Assign(target, slope))
    return found


def _symbol(tangent: sp.Expr | None) -> sp.Symbol | None:
    return tangent if isinstance(tangent, sp.Symbol) else None
