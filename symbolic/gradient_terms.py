"""One term of the population gradient of a neuron: where it points, how large it is."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import sympy as sp

from ..errors import (
    UndecidedError,
    UnsupportedExpressionError,
)
from ..pages import Typeset
from .heat_flow import gaussian_moment
from .hermite_expansion import HermiteExpansion

DIMENSION = sp.Symbol("d", positive=True)
"""The input dimension d in orders and mean squares."""


class Direction(enum.Enum):
    """Where a term of the gradient points."""

    INSIDE = "inside the relevant space"
    ALONG = "along w"


@dataclass(frozen=True, repr=False)
class GradientTerm(Typeset):
    r"""One term of the expansion.

    Attributes
    ----------
    direction : Direction
        `INSIDE`: :math:`(s_{k+1}/k!)\,C_{k+1}[w^k, \cdot]`, a vector in the relevant space;
        `ALONG`: :math:`w\,(s_{k+2}/k!)\,C_k[w^k]`.
    k : int
        Number of contractions with w.
    student : Expr
        :math:`s_{k+1}` or :math:`s_{k+2}`.
    contraction : Matrix or Expr
        :math:`C_{k+1}[w^k, \cdot]/k!` as a column of r entries, or :math:`C_k[w^k]/k!`, in the
        components w_1..w_r.
    weights : tuple of Symbol
        These components.
    norm : Expr
        \|w\|.
    """

    direction: Direction
    k: int
    student: sp.Expr
    contraction: sp.Expr
    weights: tuple[sp.Symbol, ...]
    norm: sp.Expr

    @property
    def value(self) -> sp.Expr:
        """The vector in the relevant space, or the scalar that multiplies w."""
        return self.student * self.contraction

    @property
    def order(self) -> sp.Rational:
        """Exponent of d in the norm of the term, for w uniform on the sphere: -k/2."""
        return sp.Rational(-self.k, 2)

    @property
    def order_inside(self) -> sp.Rational:
        """Exponent of d in the norm of its projection on the relevant space."""
        return self.order - (sp.S.Half if self.direction is Direction.ALONG else 0)

    @property
    def mean_square(self) -> sp.Expr:
        r"""Mean of the squared norm over w uniform on the sphere of radius \|w\|, exact in d.

        On the unit sphere of R^d, :math:`\mathbb{E}|C[w^k,\cdot]|^2 = \mathbb{E}_{g \sim
        \mathcal{N}(0, I_r)}|C[g^k,\cdot]|^2/(d(d+2)\cdots(d+2k-2))`.
        """
        inside = self.direction is Direction.INSIDE
        entries = self.contraction if inside else [self.contraction]
        mean = sp.Add(*(_mean_of_square(entry, self.weights) for entry in entries))
        length = self.norm ** (2 * self.k if inside else 2 * self.k + 2)
        factors = (DIMENSION + 2 * i for i in range(self.k))
        return self.student**2 * length * mean / sp.Mul(*factors)

    @property
    def name(self) -> str:
        r"""The term in letters, as ``mu_2 C_2[w, .]``; for \|w\| other than 1 with s_j for mu_j."""
        tensor = self.k + (1 if self.direction is Direction.INSIDE else 0)
        coefficient = self.k + (1 if self.direction is Direction.INSIDE else 2)
        slots = ["w" if self.k == 1 else f"w^{self.k}"] if self.k else []
        slots += ["."] if self.direction is Direction.INSIDE and self.k else []
        contraction = f"C_{tensor}" + (f"[{', '.join(slots)}]" if slots else "")
        factorial = f"/{self.k}!" if self.k > 1 else ""
        along = "w " if self.direction is Direction.ALONG else ""
        letter = "mu" if self.norm == 1 else "s"
        return f"{along}{letter}_{coefficient}{factorial} {contraction}"

    def __repr__(self) -> str:
        return f"GradientTerm({self.name}, {self.direction.value}, order d^{self.order})"

    def latex(self, *, full: bool = False) -> str:
        """Return the term in LaTeX; a contraction of many monomials as a tensor unless `full`."""
        from .stein_text import term_latex

        return term_latex(self, full=full)


def _mean_of_square(polynomial: sp.Expr, weights: tuple[sp.Symbol, ...]) -> sp.Expr:
    """E P(g)² over independent standard normal g."""
    try:
        return HermiteExpansion.from_polynomial(polynomial, weights).norm_squared
    except (UnsupportedExpressionError, UndecidedError):
        # The coefficients may hold 𝔼 or numbers that no exact field takes.
        square = sp.Poly(polynomial, *weights, domain=sp.EXRAW) ** 2
        return sp.Add(*(c * gaussian_moment(alpha) for alpha, c in square.terms()))
