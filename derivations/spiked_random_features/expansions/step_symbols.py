r"""Tables and parameters of a short step as series in its size s, with symbols for numbers.

With :math:`h_n = \mathbb{E}\,\sigma\,\mathrm{He}_n` and the heat kernel,

.. math::
    \mathbb{E}_z\,\sigma(r\kappa + \sqrt{c}\,z)
    = \sum_{i,j} \frac{(r\kappa)^j}{j!}\Bigl(\frac{c - 1}{2}\Bigr)^i\frac{h_{j + 2i}}{i!} ,

and the same for derivatives of σ and for σ²; r is proportional to s and c − 1 a polynomial in s.
Derived here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import sympy as sp

from ....symbolic.activations import z
from ....symbolic.hermite import hermite_coefficients
from .. import physics as fe
from ..mapping import SpikeMapping, alpha0, step_size
from .order_equations import coefficient

if TYPE_CHECKING:
    from ..derive import SymbolicModel
    from ..model import SpikedRandomFeatures


def step_symbols(
    model: SpikedRandomFeatures,
    symbolic: SymbolicModel,
    mapping: SpikeMapping,
    mean_order: int,
    last: int,
) -> tuple[dict[sp.Expr, list[sp.Expr]], dict[sp.Expr, sp.Expr]]:
    """Return coefficients of tables and parameters, and the definitions of what they name.

    Parameters
    ----------
    model : SpikedRandomFeatures
    symbolic : SymbolicModel
        The equations for a step of any size.
    mapping : SpikeMapping
    mean_order : int
        Power of s with which μ_0 vanishes, and by which it is divided.
    last : int
        The last power of s.
    """
    length = last + mean_order + 1
    fixed = {alpha0: sp.oo} if math.isinf(model.alpha0) else {}
    definitions: dict[sp.Expr, sp.Expr] = {}
    known: dict[sp.Expr, list[sp.Expr]] = {}

    def named(name: sp.Expr, values: Sequence[sp.Expr]) -> list[sp.Expr]:
        found = []
        for k, value in enumerate(values):
            symbol = coefficient(name, k)
            if value.is_Number:
                found.append(value)
                continue
            definitions[symbol] = value
            found.append(symbol)
        return found

    def polynomial(expr: sp.Expr) -> list[sp.Expr]:
        poly = sp.Poly(expr.xreplace(fixed), step_size)
        return [poly.coeff_monomial(step_size**k) for k in range(length)]

    strength = named(fe.r, polynomial(mapping.spike_strength))
    variance = named(fe.c, [sp.expand(x) for x in polynomial(mapping.bulk_variance)])
    known[fe.c] = variance[: last + 1]
    if fe.norm_overlap in symbolic.system.parameters:
        known[fe.norm_overlap] = named(fe.norm_overlap, polynomial(mapping.norm_overlap))[
            : last + 1
        ]

    def hermite(letter: str, function: sp.Expr) -> list[sp.Expr]:
        values = hermite_coefficients(function, 2 * length + 2, variable=z)
        found = []
        for n, value in enumerate(values):
            symbol = sp.Symbol(f"{letter}_{n}", real=True)
            if value != 0:
                definitions[symbol] = value
            found.append(symbol if value != 0 else sp.S.Zero)
        return found

    smooth = partial(_smoothed, strength, variance)
    h = hermite("h", symbolic.student.expr)
    g = hermite("g", symbolic.student.expr**2)
    mean, slope = smooth(h, 0), smooth(h, 1)
    explained = [
        a + b
        for a, b in zip(
            _product(mean, mean), _product(variance, _product(slope, slope)), strict=True
        )
    ]
    square = [a - b for a, b in zip(smooth(g, 0), explained, strict=True)]
    tables = {fe.mu0: mean, fe.mu1: slope, fe.mu2_squared: square, fe.chi: smooth(h, 2)}
    for table, series in tables.items():
        if table not in symbolic.system.definitions:
            continue
        shift = mean_order if table == fe.mu0 else 0
        values = [sp.expand(series[k + shift]) for k in range(last + 1)]
        known[table] = named(table, values)
    return known, definitions


def _smoothed(
    strength: Sequence[sp.Expr], variance: Sequence[sp.Expr], numbers: Sequence[sp.Expr], first: int
) -> list[sp.Expr]:
    """Return the coefficients of E σ^(first)(r κ + sqrt(c) z) in s."""
    length = len(strength)
    shift = [c * fe.kappa for c in strength]
    wider = [c / 2 for c in variance]
    wider[0] -= sp.Rational(1, 2)
    found = [sp.S.Zero] * length
    across = _powers(wider)
    for j, x in enumerate(_powers(shift)):
        # The power j begins with s^j, the power i with s^i.
        for i, b in enumerate(across[: length - j]):
            weight = numbers[first + j + 2 * i] / (math.factorial(j) * math.factorial(i))
            if weight != 0:
                found = [a + weight * t for a, t in zip(found, _product(x, b), strict=True)]
    return found


def _product(left: Sequence[sp.Expr], right: Sequence[sp.Expr]) -> list[sp.Expr]:
    return [sp.Add(*(left[n] * right[k - n] for n in range(k + 1))) for k in range(len(left))]


def _powers(values: Sequence[sp.Expr]) -> list[list[sp.Expr]]:
    """Return the powers 0, 1, … of a series without constant term."""
    length = len(values)
    found = [[sp.S.One, *[sp.S.Zero] * (length - 1)]]
    for _ in range(length - 1):
        found.append(_product(found[-1], values))
    return found
