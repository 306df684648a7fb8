r"""Norms by degree outside a subspace from finitely many Hermite coefficients, with a bound.

With :math:`f_K` the part of f of Hermite degree at most K, and U a subspace,

.. math:: \|P_{U,=j} f_K\|^2 \le \|P_{U,=j} f\|^2 \le \|P_{U,=j} f_K\|^2 + \|f - f_K\|^2,

because projections and degrees are orthogonal to each other, and the same for sums over j. With the
terms t of f, products of functions of orthogonal forms,

.. math:: \|f - f_K\| \le \sum_t \sqrt{\|t\|^2 - \|t_K\|^2},

and each :math:`\|t\|^2` is made of averages over one variable. (Derived here.) For targets whose
norms have no closed form in reach: the work does not depend on how the functions in f are coupled.
"""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass

import sympy as sp
from sympy.polys.rings import PolyElement

from .projection_norms import degree_norms
from .ridge_moments import rounded_symbol, second_moment_of_term
from .ridge_terms import ridge_terms
from .subspaces import Subspace
from .targets import Target

# K by the number of coordinates: some hundreds of coefficients each.
_DEGREES = {1: 40, 2: 20, 3: 12, 4: 8, 5: 6, 6: 5}
_LOWEST_DEGREE = 4
_BITS = 90
# Squares of subspace entries are in the denominators.
_BITS_OF_ENTRIES, _DIGITS_OF_ENTRIES = 50, 40
_DIGITS = 15
_ROUNDING = 1e-12


@dataclass(frozen=True)
class BoundedNorms:
    """Norms n_j from the middle of their intervals.

    Attributes
    ----------
    parts : tuple of Float
        :math:`\\|P_{U,=j} f_K\\|^2` from j = 0 on.
    missing : Float
        The bound of :math:`\\|f - f_K\\|^2`.
    hermite_degree : int
        K.
    """

    parts: tuple[sp.Float, ...]
    missing: sp.Float
    hermite_degree: int

    @property
    def uncertainty(self) -> sp.Float:
        """Half the length of the intervals."""
        return self.missing / 2

    @property
    def total(self) -> sp.Float:
        """Return E f² to within `uncertainty`."""
        return sp.Add(*self.parts) + self.uncertainty

    def norm(self, degree: int) -> sp.Float:
        """Return n_j to within `uncertainty`."""
        own = self.parts[degree] if degree < len(self.parts) else sp.Float(0)
        return own + self.uncertainty

    def has(self, degree: int) -> bool:
        """Whether n_j is known not to be zero."""
        return degree < len(self.parts) and bool(self.parts[degree] > _ROUNDING)

    def beyond(self, degree: int) -> sp.Float:
        """Return the sum of n_j over j > degree to within `uncertainty`."""
        return sp.Add(sp.Float(0), *self.parts[degree + 1 :]) + self.uncertainty


def bounded_norms(f: Target, subspace: Subspace) -> BoundedNorms:
    """Return the norms by degree outside a subspace, to within a bound.

    Examples
    --------
    >>> from giantstep.symbolic.targets import target
    >>> found = bounded_norms(target("tanh(x1) + relu(x2)"), Subspace.spanned_by([[1, 1]]))
    >>> found.norm(0).round(3), found.uncertainty < 0.0005
    (0.794, True)
    """
    highest = _DEGREES.get(f.dimension, _LOWEST_DEGREE)
    symbols, missing = [], sp.Float(0)
    for term in ridge_terms(f.expr, f.variables):
        symbol = rounded_symbol(term, f.variables, highest, _BITS)
        beyond = second_moment_of_term(term, f.variables).evalf(_DIGITS) - _size(symbol)
        symbols.append(symbol)
        if beyond > _ROUNDING:
            missing += sp.sqrt(beyond)
    norms = degree_norms(functools.reduce(operator.add, symbols), _rounded(subspace))
    parts = tuple(sp.Float(value, _DIGITS) for value in norms)
    return BoundedNorms(parts, missing**2, highest)


def _size(symbol: PolyElement) -> sp.Rational:
    """Return Σ α! c_α²."""
    return sum(
        (math.prod(map(math.factorial, alpha)) * c**2 for alpha, c in symbol.items()), sp.QQ(0)
    )


def _rounded(subspace: Subspace) -> Subspace:
    """Return a rational subspace within rounding of another."""
    scale = 2**_BITS_OF_ENTRIES
    rows = tuple(
        tuple(sp.QQ(int((entry * scale).evalf(_DIGITS_OF_ENTRIES)), scale) for entry in row)
        for row in subspace.basis
    )
    return Subspace(sp.QQ, rows, subspace.ambient_dimension)
