"""Assumptions of theorems, each with the verdict for given functions and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import sympy as sp

from ...errors import GiantstepError
from ...pages import Block
from ...result import Result, quantity
from ...symbolic.activations import Activation
from ...symbolic.activations import z as variable
from ...symbolic.boundedness import derivative_is_bounded, is_bounded
from ...symbolic.hermite import hermite_coefficient
from ...symbolic.regularity import Parity
from ...symbolic.zero_test import is_exactly_zero

_WORDS = {True: "holds", False: "does not hold", None: "not known"}


@dataclass(frozen=True, repr=False)
class Assumption(Result):
    """One assumption.

    Attributes
    ----------
    statement : str
    holds : bool or None
        None if neither it nor its opposite is proven.
    reason : str
        What the verdict rests on.
    """

    _document = "assumption"
    _derived = ("verdict",)

    statement: str = field(metadata=quantity("statement"))
    holds: bool | None = field(metadata=quantity("holds"))
    reason: str = field(metadata=quantity("reason"))

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return _WORDS[self.holds]

    def page(self) -> Iterable[Block]:
        """Return the assumption with its verdict as a sentence."""
        yield f"{self.statement}: {self.verdict} ({self.reason})"


def all_hold(assumptions: Sequence[Assumption]) -> bool | None:
    """Whether all assumptions hold; None if none is refuted but some are not known."""
    verdicts = [assumption.holds for assumption in assumptions]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def oddness(student: Activation) -> Assumption:
    """Whether the student is odd."""
    statement = "the student is odd"
    if student.parity is Parity.ODD:
        return Assumption(statement, True, "by the structure of its expression")
    for point in (1, 2, sp.Rational(1, 2)):
        value = sp.N(student(point) + student(-point), 30)
        if value.is_number and abs(value) > sp.Float("1e-20"):
            return Assumption(
                statement, False, f"σ(z) + σ(-z) = {float(value):.3g} at z = {sp.sstr(point)}"
            )
    return Assumption(statement, None, "no proof from its expression, no counterexample")


def centredness(student: Activation, centre: bool) -> Assumption:
    """Whether the student has mean zero."""
    statement = "the student is centred"
    if student.parity is Parity.ODD:
        return Assumption(statement, True, "odd functions are")
    if centre:
        return Assumption(statement, True, "its mean is subtracted")
    mean = hermite_coefficient(student, 0)
    zero = is_exactly_zero(mean, "mean of the student")
    return Assumption(statement, zero, "mu_0 = 0" if zero else f"mu_0 = {float(mean):.4g}")


def bounded_derivatives(student: Activation, order: int = 3) -> Assumption:
    """Whether the student has so many bounded derivatives."""
    statement = f"the student has {order} bounded derivatives"
    if student.kinks:
        points = ", ".join(map(str, student.kinks))
        what = "jumps" if student.jumps else "has a kink"
        return Assumption(statement, False, f"it {what} at z = {points}")
    unknown = []
    for k in range(1, order + 1):
        bounded = derivative_is_bounded(student.expr, variable, k)
        if bounded is False:
            return Assumption(statement, False, f"derivative {k} is unbounded")
        if bounded is None:
            unknown.append(str(k))
    if unknown:
        return Assumption(
            statement, None, f"no proof for derivative {' and '.join(unknown)} from the expression"
        )
    return Assumption(statement, True, "by the structure of its expression")


def linear_part(student: Activation) -> Assumption:
    """Whether the student has a linear part."""
    zero = is_exactly_zero(hermite_coefficient(student, 1), "linear part of the student")
    reason = "mu_1 = 0" if zero else "mu_1 is not zero"
    return Assumption("the student has a linear part, E z σ(z) ≠ 0", not zero, reason)


def lipschitz(teacher: Activation) -> Assumption:
    """Whether the teacher is Lipschitz."""
    statement = "the teacher is Lipschitz"
    if teacher.jumps:
        return Assumption(statement, False, f"it jumps at z = {', '.join(map(str, teacher.jumps))}")
    bounded = derivative_is_bounded(teacher.expr, variable)
    reason = {
        True: "its derivative is bounded, by the structure of its expression",
        False: "its derivative is unbounded",
        None: "no proof for its derivative from the expression",
    }[bounded]
    return Assumption(statement, bounded, reason)


def boundedness(student: Activation) -> Assumption:
    """Whether the student is bounded."""
    bounded = is_bounded(student.expr, variable)
    reason = {
        True: "by the structure of its expression",
        False: "it goes to infinity at an end of the line",
        None: "no proof from its expression",
    }[bounded]
    return Assumption("the student is bounded", bounded, reason)


def first_harmful_degree(student: Activation, highest: int = 12) -> int | None:
    r"""Return the first k >= 2 with :math:`\mu_k \ne 0`; None if there is none up to `highest`.

    Raises
    ------
    UndecidedError
        If whether a coefficient vanishes cannot be decided.
    """
    for k in range(2, highest + 1):
        if student.parity is Parity.ODD and k % 2 == 0:
            continue
        if student.parity is Parity.EVEN and k % 2:
            continue
        if not is_exactly_zero(hermite_coefficient(student, k), f"Hermite coefficient {k}"):
            return k
    return None


def is_affine(student: Activation) -> bool:
    """Whether the student is a polynomial of degree one."""
    try:
        return bool(student.expr.is_polynomial(variable) and sp.degree(student.expr, variable) == 1)
    except (sp.PolynomialError, GiantstepError):
        return False
