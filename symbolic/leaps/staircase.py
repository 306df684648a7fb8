r"""The staircase: which subspaces successive giant steps learn, exactly.

With :math:`f_{U,x_U}(x_\perp) = f(x_U + x_\perp)`, Dandi, Krzakala, Loureiro, Pesce, Stephan (arXiv
2305.18270) define :math:`U_0 = \{0\}` and

.. math:: U_{t+1} = U_t \oplus \mathrm{span}\{\mathbb{E}_{x_\perp}\nabla_\perp f_{U_t,x_U}\}
                  = U_t + \mathrm{span}\{\nabla F(\xi) : \xi \in U_t\}

with the symbol :math:`F(\xi) = \mathbb{E} f(x + \xi)`; the second form is derived here. On n = Θ(d)
fresh samples for each step, with a step size of the order of the number of neurons, one step learns
U_1 (theorem), two learn U_2 (theorem in expectation), and t learn U_t (their Conjecture 1).

With n = Θ(d^κ), orders ≤ κ count, :math:`U_{t+1} = \Gamma_\kappa(U_t)` (:mod:`.conditional_spans`);
in the strict variant only the lowest order that adds something. Γ_κ is monotone, so that both end
at the same subspace. For κ ≥ 2 this is an extrapolation, see `CAVEAT`.

A student restricts the Hermite degrees (:mod:`.activation_mask`), few readout values the directions
of the step after the first (:mod:`.readout_clusters`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import sympy as sp

from ...errors import AssumptionError, ExpressionError, ParameterError, UndecidedError
from ...pages import Typeset
from ..activations import Activation
from ..subspaces import Number, Subspace
from ..targets import HIGHEST_DEGREE, Target
from ..targets import target as read_target
from .activation_mask import DegreeMask, activation_mask
from .conditional_spans import SpanRow, SpanSource
from .readout_clusters import ReadoutClusters, checked_readouts, readout_clusters
from .spans import spans_of
from .staircase_data import staircase_from_dict, staircase_to_dict
from .staircase_presentation import (
    name_text,
    staircase_html,
    staircase_latex,
    staircase_text,
    subspace_text,
)
from .staircase_steps import EXACT, NewDirection, StaircaseStep, climb, with_standing

SOURCE = "Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270"

CAVEAT = (
    "orders >= 2 together with lower ones: a step size large enough for order κ blows up the part "
    "of the gradient of lower orders by d^((κ-1)/2), and directions of order κ show only after the "
    "lower orders are taken out of the labels"
)


class Variant(StrEnum):
    """Which of the orders ≤ κ a step uses."""

    ALL_ORDERS = "all-orders"
    STRICT = "strict"


@dataclass(frozen=True, repr=False)
class Staircase(Typeset):
    r"""The subspaces U_0 ⊂ U_1 ⊂ … that giant steps on a target learn.

    Made by :func:`staircase`.

    Attributes
    ----------
    target : Target
    order : int
        κ, the highest order that a step uses, for n = Θ(d^κ).
    variant : Variant
    mask : DegreeMask
        What the activation of the student lets pass.
    relevant_subspace : Subspace
        V*, the directions that f depends on.
    steps : tuple of StaircaseStep
    has_ended : bool
        Whether a further step adds nothing, or if not `decided`, nothing that is seen; False if
        `max_steps` came first.
    stuck_order : int or None
        k(U) at the last subspace, the lowest order that would lead on with all degrees; None if
        there is none.
    student_order : int or None
        The same with the degrees that the student uses.
    basis : str
        "exact", "certified" or "undetermined beyond order K".
    clusters : ReadoutClusters or None
        What few values of the readout change.
    """

    target: Target
    order: int
    variant: Variant
    mask: DegreeMask
    relevant_subspace: Subspace
    steps: tuple[StaircaseStep, ...]
    has_ended: bool
    stuck_order: int | None
    student_order: int | None
    basis: str = EXACT
    clusters: ReadoutClusters | None = None

    @property
    def subspaces(self) -> tuple[Subspace, ...]:
        """U_0 = {0}, U_1, …"""
        start = Subspace.zero(self.target.dimension)
        return (start, *(step.after for step in self.steps))

    @property
    def final(self) -> Subspace:
        """The last subspace."""
        return self.subspaces[-1]

    @property
    def saturates(self) -> bool:
        """Whether the last subspace holds V*: nothing of f is left to learn."""
        return self.relevant_subspace <= self.final

    @property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """The conditional orders that each step met."""
        return tuple(step.orders for step in self.steps)

    @property
    def decided(self) -> bool:
        """Whether the subspaces are exactly those of the definition; else they are contained."""
        return all(step.decided for step in self.steps) and not self.basis.startswith(
            "undetermined"
        )

    @property
    def dimensions_at_most(self) -> tuple[int, ...]:
        """Dimension of the span of all moves up to each step: exact, or bounds, see `clusters`."""
        if self.clusters is None:
            return tuple(step.after.dimension for step in self.steps)
        return tuple(
            self.clusters.dimension_at_most(step.number, step.after) for step in self.steps
        )

    def __repr__(self) -> str:
        chain = " ⊂ ".join(map(subspace_text, dict.fromkeys(self.subspaces)))
        if self.saturates:
            end = "saturates"
        elif not self.has_ended:
            end = "not at its end"
        else:
            end = "stops" if self.decided else "not seen to go on"
        return f"Staircase({name_text(self.target.name)}: {chain}, {end})"

    def __str__(self) -> str:
        return staircase_text(self)

    def latex(self) -> str:
        """Return the chain of subspaces in LaTeX, without delimiters."""
        return staircase_latex(self)

    def _repr_html_(self) -> str:
        return staircase_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; `from_dict` reads it back."""
        return staircase_to_dict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Staircase:
        """Return the staircase that `to_dict` wrote.

        Raises
        ------
        ExpressionError
            If the content is not what `to_dict` writes.

        Examples
        --------
        >>> found = staircase("x1 + x1*x2")
        >>> Staircase.from_dict(found.to_dict()) == found
        True
        """
        parts = staircase_from_dict(content)
        try:
            steps = tuple(
                StaircaseStep(
                    **{
                        **step,
                        "directions": tuple(
                            NewDirection(SpanRow(**row), term) for row, term in step["directions"]
                        ),
                    }
                )
                for step in parts["steps"]
            )
            return cls(**{**parts, "variant": Variant(parts["variant"]), "steps": steps})
        except (TypeError, ValueError):
            raise ExpressionError(
                "the content is not that of a staircase as to_dict writes it"
            ) from None


def staircase(
    target: str | sp.Expr | Activation | Target,
    order: int = 1,
    *,
    variant: str = Variant.ALL_ORDERS,
    student: str | sp.Expr | Activation | None = None,
    biases: bool = False,
    readout: Sequence[Number] | None = None,
    max_steps: int | None = None,
) -> Staircase:
    r"""Return the subspaces that successive giant steps learn of a target.

    Parameters
    ----------
    target : str, Expr, Activation or Target
        See :func:`.targets.target`.
    order : int
        κ: each step sees n = Θ(d^κ) fresh samples, and Hermite orders ≤ κ outside the subspace
        that is learned already.
    variant : str
        "all-orders": a step adds all orders ≤ κ; "strict": only the lowest that adds anything.
        Both end at the same subspace.
    student : str, Expr or Activation, optional
        Activation of the neurons, which may not use all Hermite degrees; a generic one by default.
    biases : bool
        Whether the neurons have random biases, which remove that obstruction.
    readout : sequence of exact numbers, optional
        The values that the readouts take, such as [1, -1]; a continuum of them by default. For
        order 1 only.
    max_steps : int, optional
        Stop after so many steps; by default when a further one adds nothing, which takes no more
        steps than f has directions, and one.

    Returns
    -------
    Staircase

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    AssumptionError
        If the target is constant.
    ExpressionError, UnsupportedExpressionError
        If target or student cannot be read.
    UndecidedError
        If whether a coefficient vanishes cannot be decided.

    Notes
    -----
    Exact for polynomials, over the field of their coefficients. For other targets ranks are
    certified from both sides, or stated to be undetermined beyond an order.

    References
    ----------
    Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270, section 4.

    Examples
    --------
    >>> found = staircase("x1 + x1*x2 + x1*x2*x3")
    >>> found
    Staircase(x1 + x1*x2 + x1*x2*x3: {0} ⊂ ⟨e1⟩ ⊂ ⟨e1, e2⟩ ⊂ R^3, saturates)
    >>> found.steps[1].explanations
    ('x1*x2: moves along e2 with the coordinate s1 of U_1',)
    >>> stuck = staircase("x1*x2 + x3")
    >>> stuck, stuck.stuck_order
    (Staircase(x1*x2 + x3: {0} ⊂ ⟨e3⟩, stops), 2)
    >>> staircase("x1 + He(2, x1)*x2", student="relu").final
    Subspace ⟨e1⟩ of R^2
    """
    f = read_target(target)
    kappa = _checked_count(order, "order", HIGHEST_DEGREE)
    limit = None if max_steps is None else _checked_count(max_steps, "max_steps", None)
    chosen = _checked_variant(variant)
    mask = _checked_mask(student, biases)
    values = None if readout is None else checked_readouts(readout)
    if values is not None and kappa > 1:
        raise ParameterError(
            f"readout is understood for order 1 only, got order {kappa}: beyond it the overlaps "
            "of the neurons depend on their initial weights as well"
        )
    if values is not None and biases:
        raise ParameterError(
            "readout and biases exclude each other: random biases spread the neurons of one "
            "readout; leave out one of the two"
        )
    whole = spans_of(f)
    if whole.relevant_subspace.is_zero:
        raise AssumptionError(
            f"the target {f.name!r} is constant: there is no direction to learn; give a function "
            "that depends on a coordinate"
        )
    # The first step is another one than the later ones: all weights have norm 1.
    sources = [whole] * 2 if mask.is_whole else [spans_of(f, mask, step=t) for t in (1, 2)]
    symbol = f.expansion.symbol_element if f.is_polynomial else None
    steps, ended, basis = climb(f, symbol, sources, kappa, chosen is Variant.STRICT, limit)
    steps = with_standing(steps, kappa, mask, whole)
    last = steps[-1].after if steps else Subspace.zero(f.dimension)
    saturated = whole.relevant_subspace <= last
    stuck = None if saturated else _order_at(whole, last)
    found = Staircase(
        target=f,
        order=kappa,
        variant=chosen,
        mask=mask,
        relevant_subspace=whole.relevant_subspace,
        steps=steps,
        has_ended=ended or saturated,
        stuck_order=stuck,
        student_order=stuck if mask.is_whole or saturated else _order_at(sources[1], last),
        basis=basis,
    )
    return found if values is None else replace(found, clusters=_clusters(found, values))


def _order_at(source: SpanSource, subspace: Subspace) -> int | None:
    try:
        return source.conditional_order(subspace)
    except UndecidedError:
        return None


def _clusters(found: Staircase, values: tuple[sp.Expr, ...]) -> ReadoutClusters | None:
    """Return what happens at the step after the first direction; None if there is no such step."""
    for step in found.steps:
        if step.before.is_zero and step.after.dimension == 1:
            return readout_clusters(found.target, found.mask, step.after, step.number + 1, values)
    return None


def _checked_count(value: int, argument: str, highest: int | None) -> int:
    if isinstance(value, bool) or not isinstance(value, int | sp.Integer):
        raise ParameterError(f"{argument} must be a whole number, got {value!r}")
    if value < 1 or (highest is not None and value > highest):
        bound = "at least 1" if highest is None else f"from 1 to {highest}"
        raise ParameterError(f"{argument} must be {bound}, got {value}")
    return int(value)


def _checked_variant(variant: str) -> Variant:
    try:
        return Variant(variant)
    except ValueError:
        names = " or ".join(repr(v.value) for v in Variant)
        raise ParameterError(f"variant must be {names}, got {variant!r}") from None


def _checked_mask(student: str | sp.Expr | Activation | None, biases: bool) -> DegreeMask:
    if not isinstance(biases, bool):
        raise ParameterError(f"biases must be True or False, got {biases!r}")
    if biases and student is None:
        raise ParameterError(
            "biases matter for a given student only; name its activation, as in student='relu'"
        )
    return activation_mask(student, biases)
