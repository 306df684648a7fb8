"""The steps of a staircase: what each adds, why, and what the claim rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sympy as sp
from sympy.polys.rings import PolyElement

from ...errors import UndecidedError
from ..standing import Standing
from ..subspaces import Subspace
from ..targets import Target
from .activation_mask import DegreeMask
from .conditional_spans import Span, SpanRow, SpanSource
from .number_data import in_atoms
from .staircase_presentation import explanation, terms_text

EXACT = "exact"


@dataclass(frozen=True)
class NewDirection:
    """A direction that a step adds, and what of the target produces it.

    Attributes
    ----------
    row : SpanRow
        The vector, its order, and the monomial of ∇F whose coefficient it is.
    term : str
        The Hermite terms of f that contribute.
    """

    row: SpanRow
    term: str

    @property
    def vector(self) -> tuple[sp.Expr, ...]:
        """The vector as it was produced, not reduced modulo the subspace before."""
        return self.row.vector

    @property
    def order(self) -> int:
        """Number of slots of the tensor outside the subspace before."""
        return self.row.order


@dataclass(frozen=True)
class StaircaseStep:
    """One giant step.

    Attributes
    ----------
    number : int
        t, from 1.
    before, after : Subspace
        U_{t-1} and U_t.
    directions : tuple of NewDirection
        What was added, lowest orders first; none if the step adds nothing.
    standing : Standing
        What the claim that t steps learn U_t rests on.
    remark : str
        The theorem or conjecture.
    decided : bool
        Whether U_t is all that the step learns; else it may be more.
    basis : str
        "exact", "certified" or "undetermined beyond order K".
    """

    number: int
    before: Subspace
    after: Subspace
    directions: tuple[NewDirection, ...]
    standing: Standing
    remark: str
    decided: bool = True
    basis: str = EXACT

    @property
    def orders(self) -> tuple[int, ...]:
        """The conditional orders of the directions that were added, each once, ascending."""
        return tuple(sorted({direction.order for direction in self.directions}))

    @property
    def explanations(self) -> tuple[str, ...]:
        """For each new direction which terms of f produced it, and with which coordinates."""
        return tuple(explanation(direction, self) for direction in self.directions)


def climb(
    f: Target,
    symbol: PolyElement | None,
    sources: Sequence[SpanSource],
    kappa: int,
    strict: bool,
    limit: int | None,
) -> tuple[tuple[StaircaseStep, ...], bool, str]:
    """Return the steps, without standing, whether the end was reached, and the basis of it all.

    Parameters
    ----------
    f : Target
    symbol : PolyElement or None
        The symbol of a polynomial.
    sources : sequence of SpanSource
        That of the first step and that of all later ones.
    kappa : int
        Highest order.
    strict : bool
        Whether a step uses only the lowest order that adds something.
    limit : int or None
        At most so many steps.
    """
    names = [x.name for x in f.variables]
    steps: list[StaircaseStep] = []
    here = Subspace.zero(f.dimension)
    bases = []
    while limit is None or len(steps) < limit:
        number = len(steps) + 1
        source = sources[0] if number == 1 else sources[1]
        span = source.grow(here, kappa, strict=strict)
        reached = in_atoms(span.subspace)
        adds = span.subspace.dimension > here.dimension
        bases.append(span.basis)
        # A step that adds nothing still changes the norms of the weights, and with them the
        # coefficients of the activation.
        goes_on = adds or (number == 1 and _adds(sources[1].grow(here, kappa, strict=strict)))
        if not goes_on:
            return tuple(steps), True, _weakest(bases)
        terms = [terms_text(names, symbol, row) for row in span.rows]
        steps.append(_step(number, here, reached, span, terms))
        here = reached
        if _holds_all(sources[1], here):
            return tuple(steps), True, _weakest(bases)
    return tuple(steps), False, _weakest(bases)


def _holds_all(source: SpanSource, subspace: Subspace) -> bool:
    """Whether a subspace is seen to hold all directions of a source."""
    try:
        return source.relevant_subspace <= subspace
    except UndecidedError:
        return False


def _adds(span: Span) -> bool:
    return bool(span.rows)


def _step(
    number: int, before: Subspace, after: Subspace, span: Span, terms: Sequence[str]
) -> StaircaseStep:
    directions = tuple(map(NewDirection, span.rows, terms))
    return StaircaseStep(
        number,
        before,
        after,
        directions,
        Standing.CONJECTURE,
        "",
        span.decided,
        span.basis,
    )


def _weakest(bases: Sequence[str]) -> str:
    """Return the basis of a result that rests on several."""
    undetermined = [basis for basis in bases if basis.startswith("undetermined")]
    if undetermined:
        return undetermined[0]
    return next((basis for basis in bases if basis != EXACT), EXACT)


def with_standing(
    steps: Sequence[StaircaseStep], kappa: int, mask: DegreeMask, whole: SpanSource
) -> tuple[StaircaseStep, ...]:
    """Return the steps with what the claim that giant steps learn these subspaces rests on."""
    return tuple(
        replace(step, standing=standing, remark=remark)
        for step in steps
        for standing, remark in [_standing(step, steps[0], kappa, mask, whole)]
    )


def _standing(
    step: StaircaseStep, first: StaircaseStep, kappa: int, mask: DegreeMask, whole: SpanSource
) -> tuple[Standing, str]:
    if kappa > 1:
        # At leap index κ nothing of lower order is there: that is the theorem on one step.
        only = step.number == 1 and step.orders == (kappa,) and not mask.biases
        if only and _leap_index(whole) == kappa:
            return Standing.THEOREM, f"one step, n = Θ(d^{kappa}), leap index {kappa}"
        return Standing.EXTRAPOLATION, f"orders <= {kappa}, n = Θ(d^{kappa})"
    # The network of the theorems has no biases.
    if mask.biases and step.number <= 2:
        count = "one step" if step.number == 1 else "two steps"
        return Standing.DERIVED_HERE, f"{count} with random biases"
    if step.number == 1 and step.directions:
        return Standing.THEOREM, "one step, n = Θ(d)"
    if step.number == 1:
        return Standing.DERIVED_HERE, "the student has μ_1 = 0"
    restricted = mask.is_limiting or not first.directions
    if step.number == 2 and restricted:
        return Standing.DERIVED_HERE, "two steps with the degrees of the student"
    if step.number == 2:
        return Standing.THEOREM, "in expectation, two steps"
    degrees = " with the degrees of the student" if restricted else ""
    biases = " with random biases" if mask.biases else ""
    return Standing.CONJECTURE, f"Conjecture 1{degrees}{biases}"


def _leap_index(whole: SpanSource) -> int | None:
    try:
        return whole.conditional_order(Subspace.zero(whole.dimension))
    except UndecidedError:
        return None
