r"""Correlational statistical queries: how many samples any method of gradients needs, at worst.

A query asks for :math:`\mathbb{E}[y\,h(x)]` with :math:`\mathbb{E}h^2 \le 1` and is answered up to
a tolerance τ; a gradient step on the squared loss asks for such numbers. Of a class of functions
with unit norms and correlations at most ε, the answer 0 to every query excludes at most
:math:`2/(\tau^2 - \varepsilon)` members: of the A members whose answer is not 0 half have the same
sign, and :math:`\tau|A| \le |\sum_A f| \le \sqrt{|A| + \varepsilon|A|^2}`. To single out a member
takes

.. math:: q \ge \tfrac12\,|F|\,(\tau^2 - \varepsilon)

queries. For :math:`f_u = \mathrm{He}_p(\langle u, x\rangle)/\sqrt{p!}` correlations are
:math:`\langle u, v\rangle^p`, and there are :math:`e^{c\varepsilon^2d}` unit vectors with
:math:`|\langle u, v\rangle| \le \varepsilon`, with c = 1/4: two random ones violate it with a
probability below :math:`2e^{-d\varepsilon^2/2}`, and the expected number of violations among M of
them is below 1 for :math:`M^2 = e^{d\varepsilon^2/2}`. (Damian, Lee, Soltanolkotabi, arXiv
2206.15144; the constant is derived here.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import sympy as sp

from ...errors import AssumptionError, ParameterError
from ...numeric.arguments import positive_number, whole_number
from ...pages import Block, Table
from ...result import Result, quantity
from ...symbolic.expressions.standing import Standing
from ...symbolic.targets.stein import DIMENSION

_HIGHEST_DEGREE = 64

QUERIES = sp.Symbol("q", positive=True)
"""q, the number of queries."""

TOLERANCE = sp.Symbol("tau", positive=True)
"""τ, the tolerance of their answers."""

CORRELATION = sp.Symbol("epsilon", positive=True)
"""ε, the largest overlap of two directions of the class."""

PACKING_CONSTANT = sp.Rational(1, 4)
r"""c of the :math:`e^{c\varepsilon^2d}` directions."""


def required_queries(size: sp.Expr, tolerance: sp.Expr, correlation: sp.Expr) -> sp.Expr:
    r"""Return :math:`|F|(\tau^2 - \varepsilon)/2`, what it takes to single out a member of a class.

    Parameters
    ----------
    size : Expr
        \|F\|.
    tolerance : Expr
        τ.
    correlation : Expr
        ε, the largest correlation of two members; the bound says nothing for ε >= τ².

    Examples
    --------
    >>> required_queries(sp.Integer(1000), sp.Rational(1, 2), sp.Rational(1, 20))
    100
    """
    return size * (tolerance**2 - correlation) / 2


@dataclass(frozen=True, repr=False)
class CorrelationalQueryBound(Result):
    r"""The bound for the class :math:`\mathrm{He}_p(\langle u, x\rangle)/\sqrt{p!}`.

    Attributes
    ----------
    degree, dimension : int
        p and d.
    queries : float
        q.
    overlap : float
        ε of the directions.
    tolerance : float
        τ, such that q queries of a larger tolerance cannot single out a direction.
    """

    _document = "bound of correlational queries"
    _derived = ("samples", "standing")

    degree: int
    dimension: int
    queries: float
    overlap: float = field(metadata=quantity("overlap of directions ε", r"\varepsilon"))
    tolerance: float = field(metadata=quantity("tolerance τ that defeats them", r"\tau"))

    @property
    def samples(self) -> float:
        r""":math:`1/\tau^2`, the samples whose fluctuations are as large as τ."""
        return self.tolerance**-2

    @property
    def standing(self) -> Standing:
        """What :attr:`samples` rests on: to read a tolerance as samples is customary, no proof."""
        return Standing.HEURISTIC

    @property
    def has_hessian(self) -> bool:
        r"""Whether :math:`\mathbb{E}\nabla^2f \ne 0`, which one preprocessed step needs."""
        return self.degree == 2

    def __repr__(self) -> str:
        return (
            f"CorrelationalQueryBound(degree {self.degree}, d = {self.dimension}, "
            f"{self.queries:g} queries: tau > {self.tolerance:.4g} is hopeless, "
            f"n ≳ {self.samples:.4g})"
        )

    def page(self) -> Iterable[Block]:
        """Return the class of functions and the bound."""
        yield (
            f"{self.queries:g} correlational queries, functions He_{self.degree}(u·x) of all "
            f"directions in d = {self.dimension}"
        )
        cells = [
            ("overlap of directions ε", f"{self.overlap:.6g}"),
            ("tolerance τ that defeats them", f"{self.tolerance:.6g}"),
            ("samples 1/τ² (heuristic)", f"{self.samples:.6g}"),
        ]
        yield Table(cells, ("quantity", "value"))

    def latex(self) -> str:
        """Return the bound in LaTeX, without delimiters."""
        return (
            r"\tau^2 \le \varepsilon^p + (cd)^{-p/2},\quad "
            r"\varepsilon^2 = \frac{\log\left(2q(cd)^{p/2}\right)}{cd} \quad\Rightarrow\quad "
            r"n \gtrsim d^{p/2}"
        )


def overlap_square(degree: int) -> sp.Expr:
    r"""Return :math:`\varepsilon^2 = \log(2q(cd)^{p/2})/(cd)` in q and d.

    It makes :math:`2q\,e^{-c\varepsilon^2d} = (cd)^{-p/2}`.
    """
    scaled = PACKING_CONSTANT * DIMENSION
    return sp.log(2 * QUERIES * scaled ** sp.Rational(degree, 2)) / scaled


def tolerance_square(degree: int) -> sp.Expr:
    r"""Return the :math:`\tau^2` at which q queries may just suffice, in q and d."""
    size = sp.exp(PACKING_CONSTANT * CORRELATION**2 * DIMENSION)
    bound = required_queries(size, TOLERANCE, CORRELATION**degree)
    result = sp.solve(sp.Eq(bound, QUERIES), TOLERANCE**2)[0]
    return sp.expand(result).subs(CORRELATION, sp.sqrt(overlap_square(degree)))


def correlational_query_bound(
    degree: object, dimension: object, queries: object = None
) -> CorrelationalQueryBound:
    r"""Bound the samples of methods of correlational queries for polynomials of a degree.

    Parameters
    ----------
    degree : int
        p >= 1.
    dimension : int
        d.
    queries : number, optional
        q >= 1, such as the number of weights times the number of steps; default: d².

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    AssumptionError
        If the dimension is too small for so many queries: no class of directions is large enough.

    Examples
    --------
    >>> bound = correlational_query_bound(4, 10**5)
    >>> print(f"{bound.tolerance:.3g} {bound.samples:.3g}")
    0.00176 3.23e+05
    """
    p, d = whole_number("degree", degree), whole_number("dimension", dimension)
    if p > _HIGHEST_DEGREE:
        raise ParameterError(f"degree must be at most {_HIGHEST_DEGREE}, got {p}")
    q = float(d) ** 2 if queries is None else positive_number("queries", queries)
    if q < 1:
        raise ParameterError(f"queries must be at least 1, got {q:g}")
    rule = {DIMENSION: sp.Integer(d), QUERIES: sp.Rational(q)}
    square = float(overlap_square(p).subs(rule).evalf(20))
    if not 0 < square < 1:
        raise AssumptionError(
            f"the dimension {d} is too small for {q:g} queries: directions would have to overlap "
            f"by ε² = {square:.3g}, which has to lie between 0 and 1; take a larger dimension"
        )
    tolerance = math.sqrt(float(tolerance_square(p).subs(rule).evalf(20)))
    return CorrelationalQueryBound(p, d, q, math.sqrt(square), tolerance)
