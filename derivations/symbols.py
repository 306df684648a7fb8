"""Symbols that all theories of a gradient step share."""

from __future__ import annotations

import sympy as sp

alpha0 = sp.Symbol("alpha_0", positive=True)
r"""Sample complexity n0/d of the gradient step (ψ1 of Ba et al., for both samples)."""

noise = sp.Symbol("Delta", nonnegative=True)
"""Variance of the label noise."""
