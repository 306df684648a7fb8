r"""Gaussian equivalence: when nonlinear features have the risk of linear ones with noise.

The features :math:`\sigma(W^\top x)/\sqrt N` may be replaced by
:math:`(\mu_1 W^\top x + \mu_{>1}\xi)/\sqrt N`, with a fresh Gaussian ξ for every input, if σ is odd
and centred with three bounded derivatives and a linear part, the teacher is Lipschitz, W comes from
a fixed number of gradient steps with η of order one, the readout is fitted on independent data and
λ > 0 (Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445). Then no ridge penalty brings the risk
below :math:`\|P_{>1}f_*\|^2`. The verdict on a model is made here; all that print one ask
:func:`standing`.

Where it fails is a count of powers, no theorem: a step of size η moves neuron j by
:math:`\epsilon_j = \eta\mu_1 a_j\langle X^\top y/n, x\rangle` of size :math:`\eta/\sqrt N`;
averaged over the rest of the input, feature j holds :math:`\sum_k \mu_k\epsilon_j^k/k!`. The term
of degree k is a feature of rank one with amplitude :math:`\eta^k N^{-(k-1)/2}`, which stays visible
from :math:`\eta \sim N^{(k-1)/(2k)}` on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from ...errors import GiantstepError, ParameterError
from ...numeric.arguments import real_number
from ...pages import Block, Table
from ...result import Result, quantity
from ...symbolic.expressions.activations import Activation, activation, z as variable
from ...symbolic.expressions.boundedness import derivative_is_bounded, is_bounded
from ...symbolic.expressions.regularity import Parity
from ...symbolic.expressions.standing import Standing
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ...symbolic.hermite.coefficients import hermite_coefficient
from ..teachers import has_several_directions

if TYPE_CHECKING:
    from .model import OneGradientStep

_WORDS = {True: "holds", False: "does not hold", None: "not known"}


@dataclass(frozen=True, repr=False)
class Assumption(Result):
    """One assumption.

    Attributes
    ----------
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
    r"""Return the first k >= 2 with :math:`\mu_k \ne 0`; None if there is none up to `highest`."""
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


SOURCE = "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445"
_SHORT_SOURCE = "Ba et al., arXiv 2205.01445"
_LINEAR = "the student is linear: its features are Gaussian, for steps of any size"
_HIGHEST_DEGREE = 12
_SHOWN_DEGREE = 6


DEGREE = sp.Symbol("k", positive=True)
FAILURE_EXPONENT = (DEGREE - 1) / (2 * DEGREE)
"""Where η^k N^(-(k-1)/2) with η = N^a is of order one."""


def failure_exponent(degree: int) -> sp.Rational:
    r"""Return (k - 1)/(2k): from :math:`\eta \sim N^{(k-1)/(2k)}` the degree k is visible.

    Examples
    --------
    >>> [failure_exponent(k) for k in (2, 3, 5)]
    [1/4, 1/3, 2/5]
    """
    if isinstance(degree, bool) or not isinstance(degree, int) or degree < 2:
        raise ParameterError(f"degree must be a whole number >= 2, got {degree!r}")
    return sp.Rational(FAILURE_EXPONENT.subs(DEGREE, degree))


@dataclass(frozen=True, repr=False)
class GaussianEquivalence(Result):
    r"""Whether the trained features of a model are equivalent to Gaussian ones.

    Attributes
    ----------
    step_exponent : float
        a of :math:`\eta = N^a`, between 0 and 1/2.
    assumptions : tuple of Assumption
        Those of the theorem; the ones on the set-up hold by the definition of the model.
    failure_degree : int or None
        The first k >= 2 with :math:`\mu_k \ne 0`; None if there is none up to 12.
    failure_exponent : Rational or None
        a from which this degree is visible; heuristic.
    best_linear_error : float
        :math:`\|P_{>1}f_*\|^2`, a lower bound of the risk where equivalence holds.
    """

    _document = "Gaussian equivalence"
    _derived = ("proven", "expected", "standing", "statement", "risk_lower_bound")

    student: str = field(metadata=quantity("student"))
    teacher: str = field(metadata=quantity("teacher"))
    step_exponent: float = field(metadata=quantity("step exponent", r"\log_N\eta"))
    assumptions: tuple[Assumption, ...]
    failure_degree: int | None = field(metadata=quantity("failure degree", "k"))
    failure_exponent: sp.Rational | None = field(
        metadata=quantity("failure exponent", r"(k - 1)/(2k)")
    )
    best_linear_error: float = field(metadata=quantity("best linear error", r"\|P_{>1} f_*\|^2"))
    linear: bool = field(metadata=quantity("linear student"))

    @property
    def proven(self) -> bool | None:
        """Whether the theorem covers the model; None if an assumption is not decided."""
        if self.step_exponent > 0:
            return False
        return all_hold(self.assumptions)

    @property
    def expected(self) -> bool:
        """Whether equivalence is expected: proven, or below the exponent where it fails."""
        if self.step_exponent == 0 or self.failure_exponent is None:
            return True
        return self.step_exponent < self.failure_exponent

    @property
    def standing(self) -> Standing:
        """What :attr:`expected` rests on."""
        return Standing.THEOREM if self.proven else Standing.HEURISTIC

    @property
    def statement(self) -> str:
        """The verdict in one sentence."""
        if self.linear:
            return _LINEAR
        if self.step_exponent == 0:
            return _verdict(self.assumptions)
        verb = "expected" if self.expected else "expected to fail"
        if self.failure_exponent is None:
            return (
                f"equivalence is {verb}: no Hermite coefficient of the student up to "
                f"{_HIGHEST_DEGREE} beyond the first is different from zero (heuristic)"
            )
        return (
            f"equivalence is {verb}: the degree {self.failure_degree} becomes visible at "
            f"η ~ N^({self.failure_exponent}), here η ~ N^{self.step_exponent:g} (heuristic)"
        )

    @property
    def risk_lower_bound(self) -> float | None:
        r""":math:`\|P_{>1}f_*\|^2` where equivalence is expected; None where it is not."""
        return self.best_linear_error if self.expected else None

    def visible_degrees(self) -> tuple[int, ...]:
        """Return the degrees k that the step makes visible, up to 6; heuristic."""
        if self.failure_degree is None:
            return ()
        sigma = activation(self.student, argument="student")
        return tuple(
            k
            for k in range(self.failure_degree, _SHOWN_DEGREE + 1)
            if self.step_exponent >= failure_exponent(k)
            and not is_exactly_zero(hermite_coefficient(sigma, k), f"Hermite coefficient {k}")
        )

    def __repr__(self) -> str:
        return (
            f"GaussianEquivalence({self.student!r}, η ~ N^{self.step_exponent:g}: {self.statement})"
        )

    def page(self) -> Iterable[Block]:
        """Return the assumptions with their verdicts, and what follows."""
        yield (
            f"Gaussian equivalence, student {self.student}, teacher {self.teacher}, "
            f"η ~ N^{self.step_exponent:g}"
        )
        cells = [(a.statement, a.verdict, a.reason) for a in self.assumptions]
        yield Table(cells, ("assumption", "verdict", "because"))
        yield self.statement
        bound = self.risk_lower_bound
        if bound is None:
            yield "no lower bound of the risk follows"
        else:
            yield f"risk >= {bound:.12g}, the best linear error, for every ridge penalty"

    def latex(self) -> str:
        """Return the equivalence and its consequence in LaTeX, without delimiters."""
        lines = [
            r"\frac{\sigma(W^\top x)}{\sqrt N} &\simeq "
            r"\frac{\mu_1 W^\top x + \mu_{>1}\xi}{\sqrt N}",
            r"R &\ge \|P_{>1} f_*\|^2",
        ]
        if self.failure_exponent is not None:
            lines.append(rf"\eta &\ll N^{{{self.failure_exponent}}}\ \text{{(heuristic)}}")
        return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"


def standing(model: OneGradientStep, *, vanishing_ridge: bool = False) -> str:
    """Return the verdict on a step of order one in one sentence.

    Parameters
    ----------
    vanishing_ridge : bool
        Whether it is about the limit of a vanishing penalty, which the theorem leaves out.
    """
    if is_affine(activation(model.student, argument="student")):
        return _LINEAR
    return _verdict(_assumptions(model, 0.0, vanishing_ridge))


def _verdict(assumptions: Sequence[Assumption]) -> str:
    if all_hold(assumptions):
        return f"Gaussian equivalence is a theorem ({_SHORT_SOURCE})"
    reasons = [
        f"{'it does not hold' if a.holds is False else 'it is not known'} that {a.statement} "
        f"({a.reason})"
        for a in assumptions
        if a.holds is not True
    ]
    text = (
        f"Gaussian equivalence is outside the theorem ({_SHORT_SOURCE}): {', and '.join(reasons)}"
    )
    if any(a.holds is not True and not a.statement.startswith("the student") for a in assumptions):
        return text
    return f"{text}; simulations of centred relu and softplus students agree with equivalence"


def _assumptions(
    model: OneGradientStep, exponent: float, vanishing_ridge: bool
) -> tuple[Assumption, ...]:
    sigma = activation(model.student, argument="student")
    return (
        oddness(sigma),
        centredness(sigma, model.centre),
        bounded_derivatives(sigma),
        linear_part(sigma),
        _smoothness(model.teacher),
        Assumption("a fixed number of steps with η of order one", exponent == 0,
                   "η = step_size" if exponent == 0 else f"η ~ N^{exponent:g}"),
        Assumption("the readout's data are independent of the step's", True,
                   "by the definition of the model"),
        Assumption("the ridge penalty is positive", not vanishing_ridge,
                   "it vanishes" if vanishing_ridge else "to be chosen so"),
    )  # fmt: skip


def _smoothness(teacher: str) -> Assumption:
    """Say whether a teacher is Lipschitz; the theorem is for a function of one direction."""
    if not has_several_directions(teacher):
        return lipschitz(activation(teacher, argument="teacher"))
    return Assumption(
        "the teacher is a single-index model",
        None,
        "it has several directions, of which only the linear part and the variance of the rest "
        "enter",
    )


def gaussian_equivalence(model: OneGradientStep, step_exponent: object = 0) -> GaussianEquivalence:
    """Say whether features are equivalent to Gaussian ones, for η ~ N^step_exponent.

    See :func:`.equivalence.gaussian_equivalence`.
    """
    if isinstance(step_exponent, sp.Rational):
        step_exponent = Fraction(int(step_exponent.p), int(step_exponent.q))
    exponent = real_number("step_exponent", step_exponent)
    if not 0 <= exponent <= 0.5:
        raise ParameterError(
            f"step_exponent must be between 0, for η of order one, and 1/2, for η of order √N; "
            f"got {exponent}"
        )
    sigma = activation(model.student, argument="student")
    degree = first_harmful_degree(sigma, _HIGHEST_DEGREE)
    return GaussianEquivalence(
        student=model.student,
        teacher=model.teacher,
        step_exponent=exponent,
        assumptions=_assumptions(model, exponent, vanishing_ridge=False),
        failure_degree=degree,
        failure_exponent=None if degree is None else failure_exponent(degree),
        best_linear_error=model.best_linear_error,
        linear=is_affine(sigma),
    )
