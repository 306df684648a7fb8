r"""The rotation-invariant leap: the largest leap over all orthonormal bases, without any rotation.

With the conditional order k(U), the lowest degree :math:`j \ge 1` in :math:`x_\perp` of the Hermite
expansion of :math:`x_\perp \mapsto f(x_U + x_\perp)`,

.. math:: \mathrm{isoLeap}(f) = \max_R \mathrm{Leap}(f \circ R)
          = \max_{U \not\supseteq V^*} k(U)
          = \max_t k(U_t), \qquad U_{t+1} = U_t + \text{range of the order-}k(U_t)\text{ tensors}.

The first form is that of Abbe, Boix-Adserà, Misiakiewicz (arXiv 2302.11055); the others are derived
here. In a basis, the leap is the largest k(U) over its coordinate subspaces, by the greedy argument
of :mod:`.leap_index`, and every U is a coordinate subspace of some basis. If the greedy run
with orders up to κ reaches V*, take for any U that does not hold V* the first step that leaves it:
its tensor has a slot outside U, and no more than κ of them, so :math:`k(U) \le \kappa`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import sympy as sp

from ...errors import UndecidedError
from ..expressions.parser import Parameters
from ..targets.conditional_spans import SpanRow
from ..targets.spans import spans_of
from ..targets.subspaces import Subspace
from ..targets.target import target as read_target
from .leap_index import ProvenOrder, TargetLike, leap_index


@dataclass(frozen=True)
class IsotropicStep:
    """One step of the greedy run.

    Attributes
    ----------
    order : int
        k(U) at the subspace before.
    subspace : Subspace
        U with the range of the tensors of that order.
    rows : tuple of SpanRow
        The vectors that were added.
    """

    order: int
    subspace: Subspace
    rows: tuple[SpanRow, ...]


@dataclass(init=False, eq=False, repr=False)
class IsotropicLeap(ProvenOrder):
    """The rotation-invariant leap, with the run of orders and subspaces that proves it.

    Attributes
    ----------
    target : str
        Name of the target.
    steps : tuple of IsotropicStep
        From {0} to V*.
    """

    _document = "isotropic leap"

    target: str
    steps: tuple[IsotropicStep, ...]

    @property
    def orders(self) -> tuple[int, ...]:
        """Orders met by the greedy run; the leap is the largest."""
        return tuple(step.order for step in self.steps)

    @property
    def stuck_at(self) -> Subspace:
        """A subspace U with k(U) = isoLeap, where every lower order is blind."""
        before = Subspace.zero(self.steps[0].subspace.ambient_dimension)
        for step in self.steps:
            if step.order == self:
                return before
            before = step.subspace
        raise AssertionError("the leap is the order of one of its steps")

    @property
    def explanation(self) -> str:
        """The greedy run in words."""
        return "{0}" + "".join(f" –{step.order}→ {step.subspace}" for step in self.steps)

    def latex(self) -> str:
        """Return the statement in LaTeX, without delimiters."""
        chain = r"\{0\}" + "".join(
            rf" \xrightarrow{{{step.order}}} {step.subspace.latex()}" for step in self.steps
        )
        return rf"\mathrm{{isoLeap}}(f) = {int(self)}:\quad {chain}"


def isotropic_leap(
    target: TargetLike,
    *,
    variables: Sequence[sp.Symbol] | None = None,
    parameters: Parameters = True,
) -> IsotropicLeap:
    """Return the rotation-invariant leap, with the greedy run that proves it.

    Parameters
    ----------
    target : str, Expr, Activation or Target
        With parameters the answer is a :class:`.CaseTree` of such.
    variables, parameters : optional
        Which symbols are coordinates, and which are parameters; see :func:`.targets.target.target`.

    Returns
    -------
    IsotropicLeap
        An int with the attributes `steps`, `orders`, `stuck_at` and `explanation`.

    Raises
    ------
    AssumptionError
        If the target is constant.
    UndecidedError
        If the target is no polynomial and a conditional order cannot be decided.

    Examples
    --------
    >>> leap = isotropic_leap("x1 + x2 + x1*x2")
    >>> leap, leap.orders, leap.stuck_at
    (2, (1, 2), Subspace ⟨(1, 1)⟩ of R^2)
    >>> print(leap.explanation)
    {0} –1→ ⟨(1, 1)⟩ –2→ R^2
    """
    f = read_target(target, variables, parameters=parameters)
    if f.has_open_parameters:
        return cast(IsotropicLeap, f.by_cases(isotropic_leap, "rotation-invariant leap"))
    leap_index(f)  # A constant target is refused in words.
    source = spans_of(f)
    subspace = Subspace.zero(f.dimension)
    steps: list[IsotropicStep] = []
    while (order := source.conditional_order(subspace)) is not None:
        span = source.grow(subspace, order, strict=True)
        if span.subspace.dimension == subspace.dimension:
            raise UndecidedError(
                f"the rotation-invariant leap of target {f.name!r} is undetermined: its tensors "
                f"of order {order} at {subspace} cannot be told from zero"
            )
        subspace = span.subspace
        steps.append(IsotropicStep(order, subspace, span.rows))
    value = max(step.order for step in steps)
    return IsotropicLeap(value, target=f.name, steps=tuple(steps))
