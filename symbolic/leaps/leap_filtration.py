r"""The directions of a target by the order at which they show.

With the Hermite tensors :math:`C_k = \mathbb{E}\nabla^k f`, the subspaces :math:`V_k = \sum_{1 \le
j \le k} \mathrm{range}(C_j)` grow from {0} to the relevant space V*. A direction u is first seen at
the lowest k with u not orthogonal to V_k, and contained in V_k from some order on (derived here).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ...errors import ParameterError
from ...pages import Block, Page, Typeset
from ..subspaces import Number, Subspace
from ..targets import Target
from ..targets import target as read_target
from .conditional_spans import Span, SpanRow, SpanSource
from .leap_index import TargetLike, highest_open_order, leap_index
from .spans import spans_of


@dataclass(frozen=True)
class FiltrationLevel:
    """One order at which V_k grows.

    Attributes
    ----------
    order : int
        k.
    subspace : Subspace
        V_k, from this order up to the next one.
    rows : tuple of SpanRow
        The vectors that were added, with the Hermite terms they come from.
    """

    order: int
    subspace: Subspace
    rows: tuple[SpanRow, ...]


@dataclass(frozen=True)
class LeapFiltration(Page, Typeset):
    """The subspaces V_1 ⊆ V_2 ⊆ … of the directions that show up to an order.

    Attributes
    ----------
    target : Target
    levels : tuple of FiltrationLevel
        Only the orders at which something is added.
    checked_order : int or None
        For a target that is no polynomial, and whose V* is not reached, the last order looked at.

    Examples
    --------
    >>> found = leap_filtration("x1 + 2*x2 + He(2, x1)/2 + He(3, x3)")
    >>> print(found)
    V_1 = ⟨(1, 2, 0)⟩ ⊂ V_2 = ⟨e1, e2⟩ ⊂ V_3 = R^3
    >>> found.order_seen([1, 0, 0]), found.order_contained([1, 0, 0])
    (1, 2)
    """

    target: Target
    levels: tuple[FiltrationLevel, ...]
    checked_order: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether V* is reached, so that no later order adds anything."""
        return self.checked_order is None

    def order_seen(self, direction: Sequence[Number]) -> int | None:
        r"""Return the lowest k with :math:`C_k[u, \cdot, \dots, \cdot] \ne 0`.

        Parameters
        ----------
        direction : sequence of Expr or number
            u, exact and not 0, in the coordinates of the target; its length does not matter.

        Returns
        -------
        int or None
            None if f does not depend on u, or not up to `checked_order`.
        """
        line = self._line(direction)
        for level in self.levels:
            if not level.subspace <= line.orthogonal_complement():
                return level.order
        return None

    def order_contained(self, direction: Sequence[Number]) -> int | None:
        """Return the lowest k with u ∈ V_k; None if there is none, or none up to `checked_order`.

        Parameters
        ----------
        direction : sequence of Expr or number
        """
        line = self._line(direction)
        return next((level.order for level in self.levels if line <= level.subspace), None)

    def _line(self, direction: Sequence[Number]) -> Subspace:
        r = self.target.dimension
        if not isinstance(direction, Sequence | sp.MatrixBase) or len(direction) != r:
            raise ParameterError(
                f"direction must be {r} numbers, one for each coordinate, such as "
                f"{[1] + [0] * (r - 1)}, got {direction!r}"
            )
        line = Subspace.spanned_by([list(direction)], r, argument="direction")
        if line.is_zero:
            raise ParameterError(f"direction must not be zero, got {direction!r}")
        return line

    def page(self) -> Iterable[Block]:
        """Return the chain of subspaces."""
        chain = " ⊂ ".join(f"V_{level.order} = {level.subspace}" for level in self.levels)
        end = "" if self.is_complete else f", undetermined beyond V_{self.checked_order}"
        yield chain + end

    def latex(self) -> str:
        """Return the chain in LaTeX, without delimiters."""
        return r" \subset ".join(f"V_{{{v.order}}} = {v.subspace.latex()}" for v in self.levels)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "target": self.target.name,
            "levels": [
                {"order": level.order, "subspace": level.subspace.to_dict()}
                for level in self.levels
            ],
            "checked_order": self.checked_order,
        }


def leap_filtration(target: TargetLike) -> LeapFiltration:
    """Return V_k, the span of the ranges of the Hermite tensors of orders 1 to k, as it grows.

    Parameters
    ----------
    target : str, Expr, Activation or Target

    Raises
    ------
    AssumptionError
        If the target is constant.
    UndecidedError
        If whether a coefficient vanishes cannot be decided.

    Notes
    -----
    V_k is what one giant step can learn from n ≍ d^k samples; a target whose last level is V* of
    order 1 is learned in one step from n ≍ d.
    """
    f = read_target(target)
    first = leap_index(f)
    source = spans_of(f)
    zero = Subspace.zero(f.dimension)
    if f.degree is not None:
        return LeapFiltration(f, _levels(source, source.grow(zero, f.degree)))
    enough = source.relevant_subspace.dimension
    highest = max(highest_open_order(f.dimension), first)
    for k in range(first, highest + 1):
        span = source.grow(zero, k)
        if span.subspace.dimension == enough:
            return LeapFiltration(f, _levels(source, span))
        if not span.decided:
            return LeapFiltration(f, _levels(source, span), checked_order=k)
    return LeapFiltration(f, _levels(source, span), checked_order=highest)


def _levels(source: SpanSource, span: Span) -> tuple[FiltrationLevel, ...]:
    zero = Subspace.zero(source.dimension)
    levels = []
    for order in sorted({row.order for row in span.rows}):
        own = tuple(row for row in span.rows if row.order == order)
        levels.append(FiltrationLevel(order, source.grow(zero, order).subspace, own))
    return tuple(levels)
