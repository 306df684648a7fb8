r"""All leaps of a target on one page: indices, filtration, greedy runs, bounds, and what follows.

With the Hermite tensors :math:`C_k = \mathbb{E}\nabla^k f`, the subspaces :math:`V_k = \sum_{1 \le
j \le k} \mathrm{range}(C_j)` grow from {0} to the relevant space V*. A direction u is first seen at
the lowest k with u not orthogonal to V_k, and contained in V_k from some order on (derived here).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sympy as sp

from ...errors import GiantstepError, ParameterError
from ...json_document import WritesJson
from ...pages import Block, Indented, Listing, Page, Table, Typeset
from ...pictures import Bars, Chain, Drawn
from ..expressions.expression_text import plain_fields
from ..expressions.standing import Standing
from ..targets.conditional_spans import Span, SpanRow, SpanSource
from ..targets.spans import spans_of
from ..targets.subspaces import Number, Subspace
from ..targets.target import Target
from .generative_leap import GenerativeLeap, generative_leap
from .leap_index import (
    CoordinateLeap,
    Exponent,
    IsotropicLeap,
    asked_of_targets,
    coordinate_leap,
    highest_open_order,
    isotropic_leap,
    leap_index,
    power_of_d,
)


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

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return plain_fields(self, "order", "subspace")


@dataclass(frozen=True)
class LeapFiltration(Page, Typeset, Drawn, WritesJson):
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

        `direction`: u, exact and not 0, in the coordinates of the target; its length does not
        matter. Returns None if f does not depend on u, or not up to `checked_order`.
        """
        line = self._line(direction)
        for level in self.levels:
            if not level.subspace <= line.orthogonal_complement():
                return level.order
        return None

    def order_contained(self, direction: Sequence[Number]) -> int | None:
        """Return the lowest k with u ∈ V_k; None if there is none up to `checked_order`."""
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

    def picture(self) -> Chain:
        """Return the chain of subspaces, each with the orders that made it."""
        return Chain(
            links=["{0}", *(str(level.subspace) for level in self.levels)],
            heights=[0, *(level.subspace.dimension for level in self.levels)],
            reasons=[f"order {level.order}" for level in self.levels],
            title=f"f = {self.target}",
            end="" if self.is_complete else f"undetermined beyond order {self.checked_order}",
            highest=self.target.relevant_subspace.dimension,
            over="orders of Hermite tensors",
        )

    def latex(self) -> str:
        """Return the chain in LaTeX, without delimiters."""
        return r" \subset ".join(f"V_{{{v.order}}} = {v.subspace.latex()}" for v in self.levels)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"target": self.target.name, **plain_fields(self, "levels", "checked_order")}


@asked_of_targets("directions by order")
def leap_filtration(f: Target) -> LeapFiltration:
    """Return V_k, the span of the ranges of the Hermite tensors of orders 1 to k, as it grows.

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
        new_rows = tuple(row for row in span.rows if row.order == order)
        levels.append(FiltrationLevel(order, source.grow(zero, order).subspace, new_rows))
    return tuple(levels)


T = TypeVar("T")

_NAMES = {
    "leap_index": "leap index",
    "filtration": "directions by order",
    "coordinate_leap": "coordinate leap",
    "isotropic_leap": "rotation-invariant leap",
    "generative_leap": "generative leap",
}


@dataclass(frozen=True)
class Consequence:
    """What a leap says about learning.

    Attributes
    ----------
    statement : str
    standing : Standing
    source : str
    """

    statement: str
    standing: Standing
    source: str

    def __str__(self) -> str:
        return f"{self.statement} ({self.standing.value}: {self.source})"


@dataclass(frozen=True, repr=False)
class LeapReport(Page, Typeset, Drawn, WritesJson):
    """The leaps of a target.

    Attributes
    ----------
    target : Target
    leap_index : Exponent
    filtration : LeapFiltration or None
    coordinate_leap : CoordinateLeap or None
    isotropic_leap : IsotropicLeap or None
    generative_leap : GenerativeLeap or None
        None if it could not be decided; `undetermined` says why.
    undetermined : Mapping of str to str
        Reasons, by the names of these attributes.

    Examples
    --------
    >>> print(leaps("x1 + x2*x3"))
    target x1 + x2*x3
      leap index               1  E[f x1] = 1
      directions by order         V_1 = ⟨e1⟩ ⊂ V_2 = R^3
      coordinate leap          2  x1 (new: x1; 1), then x2*x3 (new: x2, x3; 2)
      rotation-invariant leap  2  {0} –1→ ⟨e1⟩ –2→ R^3
      generative leap          2  exact: y shows ⟨e1⟩ at order 1; then y shows R^3 at order 2
                                  not less: sign change x2 → -x2, x3 → -x3 leaves f invariant
    what follows
      one giant step: n ≍ d samples to learn something, and no fewer (theorem: arXiv 2305.18270)
      online SGD: time d^2, up to logarithms, if f is sparse in these coordinates (conjecture: \
arXiv 2302.11055)
      online SGD, rotation-invariant form: time d^2 (conjecture: our reading of arXiv 2302.11055, \
its wording is not verified)
    """

    target: Target
    leap_index: Exponent
    filtration: LeapFiltration | None
    coordinate_leap: CoordinateLeap | None
    isotropic_leap: IsotropicLeap | None
    generative_leap: GenerativeLeap | None
    undetermined: Mapping[str, str]

    @property
    def coordinate(self) -> CoordinateLeap | None:
        """The coordinate leap."""
        return self.coordinate_leap

    @property
    def isotropic(self) -> IsotropicLeap | None:
        """The rotation-invariant leap."""
        return self.isotropic_leap

    @property
    def consequences(self) -> tuple[Consequence, ...]:
        """What follows for learning, with what each statement rests on."""
        result = [
            Consequence(
                f"one giant step: n ≍ {power_of_d(self.leap_index)} samples to learn something, "
                "and no fewer",
                Standing.THEOREM,
                "arXiv 2305.18270",
            )
        ]
        if self.coordinate_leap is not None:
            time = power_of_d(max(self.coordinate_leap, 2))
            result.append(
                Consequence(
                    f"online SGD: time {time}, up to logarithms, "
                    "if f is sparse in these coordinates",
                    Standing.CONJECTURE,
                    "arXiv 2302.11055",
                )
            )
        if self.isotropic_leap is not None:
            time = power_of_d(max(self.isotropic_leap, 2))
            result.append(
                Consequence(
                    f"online SGD, rotation-invariant form: time {time}",
                    Standing.CONJECTURE,
                    "our reading of arXiv 2302.11055, its wording is not verified",
                )
            )
        generative = self.generative_leap
        if generative is not None and generative.is_exact and self._is_single_index:
            samples = _half_power(max(generative.lower, 2))
            result.append(
                Consequence(
                    f"one direction, best transform of the labels: n ≍ {samples} samples",
                    Standing.THEOREM,
                    "arXiv 2403.05529",
                )
            )
        return tuple(result)

    @property
    def _is_single_index(self) -> bool:
        leap = self.isotropic_leap
        return leap is not None and leap.steps[-1].subspace.dimension == 1

    def _rows(self) -> list[tuple[str, str, list[str]]]:
        """Return name, value and lines of proof."""
        rows: list[tuple[str, str, list[str]]] = []
        for key, name in _NAMES.items():
            result = getattr(self, key)
            if result is None:
                rows.append((name, "?", [f"undetermined: {self.undetermined[key]}"]))
            elif isinstance(result, LeapFiltration):
                rows.append((name, "", [str(result)]))
            elif isinstance(result, GenerativeLeap):
                lines = [
                    f"{result.standing}: {result.upper_certificate}",
                    f"not less: {result.lower_certificate}",
                ]
                rows.append((name, result.bounds, lines))
            else:
                rows.append((name, str(int(result)), [result.explanation]))
        return rows

    def page(self) -> Iterable[Block]:
        """Return the indices with their proofs, and what follows."""
        yield f"target {self.target}"
        cells = []
        for name, value, (first, *others) in self._rows():
            cells += [(name, value, first), *(("", "", line) for line in others)]
        yield Indented([Table(cells)])
        yield "what follows"
        yield Listing(list(map(str, self.consequences)), mark="")

    def picture(self) -> Bars:
        """Return the indices as bars; what is known of one within bounds is its lower bound."""
        numbers, texts = {}, {}
        for key, name in _NAMES.items():
            leap = getattr(self, key)
            if leap is not None and not isinstance(leap, LeapFiltration):
                exact = not isinstance(leap, GenerativeLeap)
                numbers[name] = (float(leap if exact else leap.lower), None)
                texts[name] = str(int(leap)) if exact else leap.bounds
        return Bars(numbers, "leap", f"f = {self.target}", texts)

    @property
    def summary(self) -> str:
        """The indices in one line."""
        return ", ".join(f"{name} {value}" for name, value, _ in self._rows() if value)

    def __repr__(self) -> str:
        return f"LeapReport({self.target}: {self.summary})"

    def latex(self) -> str:
        """Return all statements in LaTeX, one line of an array each, without delimiters."""
        result = (getattr(self, key) for key in _NAMES)
        lines = [part.latex() for part in result if part is not None]
        return r"\begin{array}{l}" + r" \\ ".join(lines) + r"\end{array}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        rest = plain_fields(self, *_NAMES, "undetermined", "consequences")
        return {"target": str(self.target), **rest}


@asked_of_targets("leaps")
def leaps(f: Target) -> LeapReport:
    """Return all leaps of a target; what cannot be decided is said to be undetermined.

    Raises
    ------
    AssumptionError
        If the target is constant.
    UndecidedError
        If its leap index cannot be decided.
    ExpressionError, UnsupportedExpressionError
        If the target cannot be read.

    Examples
    --------
    >>> report = leaps("He(3, x1)*He(3, x2)")
    >>> report.isotropic_leap, report.generative_leap.value
    (6, 2)
    """
    index = leap_index(f)
    undetermined: dict[str, str] = {}

    def decided(name: str, compute: Callable[[Target], T]) -> T | None:
        try:
            return compute(f)
        except GiantstepError as error:
            undetermined[name] = str(error).partition("\n")[0]
            return None

    return LeapReport(
        f,
        index,
        decided("filtration", leap_filtration),
        decided("coordinate_leap", coordinate_leap),
        decided("isotropic_leap", isotropic_leap),
        decided("generative_leap", generative_leap),
        undetermined,
    )


def _half_power(order: int) -> str:
    return power_of_d(order // 2) if order % 2 == 0 else f"d^({order}/2)"
