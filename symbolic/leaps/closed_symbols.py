r"""Symbols :math:`F(\xi) = \mathbb{E} f(x + \xi)` of sums of products of ridge functions.

For :math:`f = \sum_a c_a x^{\alpha_a} \prod_j g_{aj}(\langle u_{aj}, x\rangle)`
(:mod:`..ridge_terms`),

.. math:: F(\xi) = \sum_a c_a (\xi + \partial)^{\alpha_a}
          \prod_j S_{aj}(\langle u_{aj}, \xi\rangle), \qquad S(t) = \mathbb{E}\, g(z + t),

with the univariate symbols S of :mod:`.univariate_symbols`. (Derived here from Stein's lemma.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy as sp
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyElement, PolyRing

from ..ridge_terms import RidgeTerm, ridge_terms
from ..subspaces import Element
from .formal_fields import formal_field
from .symbol_normal_form import Erf, Factor, Open, OpenKernel, Setting, SymbolForm
from .univariate_symbols import Piece, density, derivatives, univariate_symbol


def closed_symbol(expr: sp.Expr, variables: tuple[sp.Symbol, ...]) -> SymbolForm:
    r"""Return the symbol of a function, in the ring of its variables over one field.

    Parameters
    ----------
    expr : Expr
        What :func:`.ridge_terms.ridge_terms` can write as a sum of products of ridge functions.
    variables : tuple of Symbol
        The coordinates.

    Raises
    ------
    UnsupportedExpressionError
        If it cannot.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> F = closed_symbol(sp.sin(x[0]) * sp.cos(x[1]), x)
    >>> F.setting.ring.domain, sorted(mode.is_sine for mode in F.terms)
    (QQ(exp(1/2)), [True, True])
    """
    terms = ridge_terms(expr, variables)
    pieces = [piece for term in terms for r in term.ridges for piece in univariate_symbol(r.expr)]
    numbers = [number for piece in pieces for number in piece.numbers()]
    numbers += [term.coefficient for term in terms]
    numbers += [entry for term in terms for ridge in term.ridges for entry in ridge.direction]
    domain, elements = formal_field(numbers)
    known = dict(zip(numbers, elements, strict=True))
    ring = PolyRing(variables, domain, lex)
    setting = Setting(ring, _densities(pieces, known, domain), _scales(pieces, known))
    total = SymbolForm(setting, {})
    for term in terms:
        total = total + _of_term(term, setting, known)
    return total


def _densities(
    pieces: Iterable[Piece], known: dict[sp.Expr, Element], domain: Any
) -> dict[Element, Element]:
    found = {}
    for piece in pieces:
        for _, b in piece.erfs:
            # Signs move out of erf, which turns b round.
            found[known[b]] = found[-known[b]] = known[density(b)]
    return found


def _scales(pieces: Iterable[Piece], known: dict[sp.Expr, Element]) -> dict[OpenKernel, Element]:
    found = {}
    for piece in pieces:
        for kernel, _, _ in piece.kernels:
            for scale, following in derivatives(kernel):
                found[kernel] = known[scale]
                kernel = following
    return found


def _of_term(term: RidgeTerm, setting: Setting, known: dict[sp.Expr, Element]) -> SymbolForm:
    ring = setting.ring
    form = SymbolForm.polynomial(setting, ring.ground_new(known[term.coefficient]))
    for ridge in term.ridges:
        line = ring.zero
        for u, x in zip(ridge.direction, ring.gens, strict=True):
            line = line + x * known[u]
        univariate = SymbolForm(setting, {})
        for piece in univariate_symbol(ridge.expr):
            univariate = univariate + _of_piece(piece, line, setting, known)
        form = form * univariate
    for i, exponent in enumerate(term.powers):
        for _ in range(exponent):
            form = form.scaled(ring.gens[i]) + form.diff(i)
    return form


def _of_piece(
    piece: Piece, line: PolyElement, setting: Setting, known: dict[sp.Expr, Element]
) -> SymbolForm:
    linear, quadratic = (known[c] for c in piece.exponent)
    factors: list[Factor] = [Erf(line * known[a] + known[b]) for a, b in piece.erfs]
    factors += [Open(kernel, order, line * side) for kernel, order, side in piece.kernels]
    return SymbolForm.product(
        setting,
        exponent=line**2 * quadratic + line * linear,
        frequency=line * known[piece.frequency],
        is_sine=piece.is_sine,
        factors=factors,
        coefficient=line**piece.power * known[piece.coefficient],
    )
