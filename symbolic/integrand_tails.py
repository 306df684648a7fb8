r"""Proven bounds, far out on the line, of what a system of equations averages over it.

The integrands of a pass over the nodes are expressions in the node κ, in tables of it and in
scalars. From the growth of the tables in \|κ\| follows that of every integrand by the rules of
:mod:`.tail_bounds`; twice the mass that the normal density leaves of it beyond R is what an
integral over [−R, R] misses.

Denominators need lower bounds. 1 + V_1 μ_1² + V_2 μ_2² is at least 1 because of three facts: the
balls of V_1 and V_2 are positive, a square of a real number is not negative, and μ_2² is proven to
be the mean of a square (:class:`.gaussian_convolutions.GaussianTables`). No fact is taken from what
a symbol is declared to be, except that it is real.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from ..errors import AssumptionError, CertificationError, UnsupportedExpressionError
from .ball_functions import Ball, BallEvaluator
from .tail_analysis import TailAnalysis
from .tail_growth import Growth, TailBound


def integrand_tails(
    local_values: Mapping[sp.Symbol, sp.Expr],
    sums: Mapping[sp.Symbol, sp.Expr],
    *,
    node: sp.Symbol,
    tables: Mapping[sp.Symbol, Growth],
    scalars: Mapping[sp.Symbol, Ball],
) -> list[TailBound]:
    r"""Bound the integrands of a pass over the nodes in t = \|node\|, on both sides at once.

    Parameters
    ----------
    local_values, sums : mappings from Symbol to Expr
        What is computed at a node and what is summed; each local value may use those before it,
        the sums all of them.
    node : Symbol
        κ.
    tables : mapping from Symbol to Growth
        Functions of the node.
    scalars : mapping from Symbol to real ball
        Values of all other symbols.

    Raises
    ------
    CertificationError
        If a denominator is not proven to stay away from 0, or an integrand not proven to grow
        slower than the exponential of a multiple of node²; the message names the sum.
    UnsupportedExpressionError
        If a function is not known, or a symbol has no value.

    Examples
    --------
    >>> import pytest
    >>> flint = pytest.importorskip("flint")
    >>> k, f, v, total = sp.symbols("k f v total", real=True)
    >>> bounded = Growth(TailBound(*map(flint.arb, (2, 0, 0, 0, 1))))
    >>> (tail,) = integrand_tails({}, {total: k**2 * f**2 / (1 + v * f**2)}, node=k,
    ...                           tables={f: bounded}, scalars={v: flint.arb(3)})
    >>> tail.at(flint.arb(5))
    100.000000000000
    """
    # Plain real symbols: what the program declares its own to be is not taken for granted.
    plain: dict[sp.Expr, sp.Expr] = {}

    def renamed(symbol: sp.Symbol) -> sp.Symbol:
        return plain.setdefault(symbol, sp.Dummy(symbol.name, real=True))

    evaluator = BallEvaluator({renamed(symbol): value for symbol, value in scalars.items()})
    one = evaluator.real_constant(sp.S.One)
    itself = Growth(TailBound(one, one, 0 * one, 0 * one, one))
    known = {renamed(symbol): growth for symbol, growth in {**tables, node: itself}.items()}
    analysis = TailAnalysis(evaluator, known)

    def bounded(target: sp.Symbol, value: sp.Expr) -> Growth:
        value = value.xreplace(plain)
        missing = value.free_symbols - analysis.known.keys() - set(plain.values())
        if missing:
            names = ", ".join(sorted(map(str, missing)))
            raise UnsupportedExpressionError(f"{target} holds {names} without a value")
        try:
            return analysis.growth(value)
        except AssumptionError as error:
            raise CertificationError(f"the integrand of {target}: {error}") from None
        except UnsupportedExpressionError as error:
            raise CertificationError(
                f"the integrand of {target} is not bounded far out on the line: {error}"
            ) from None

    for target, value in local_values.items():
        growth = bounded(target, value)
        analysis.known[renamed(target)] = growth
    return [bounded(target, value).size for target, value in sums.items()]


def mass_outside(bound: TailBound, reach: Ball, what: str = "an integrand") -> Ball:
    r"""Bound :math:`\int_{|\kappa| > R} |g|\varphi` of an integrand with the bound \|g\|.

    Raises
    ------
    CertificationError
        If the bound does not apply from R on, or does not decay there against the density.
    """
    mass = bound.mass_beyond(reach)
    if mass is None:
        raise CertificationError(
            f"{what} is not proven to decay from {float(reach):.4g} standard deviations on; "
            "try a larger reach"
        )
    return (2 * mass).upper()
