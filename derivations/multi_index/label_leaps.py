r"""Leaps, staircases and one-step constants of labels that are drawn, y ~ P(y|u).

Gradients of the squared loss average y against functions of x, so that they see the *regression
function* :math:`m(u) = \mathbb{E}[y|u]` alone: leap indices and staircases of labels are those of m
as a target, and of the noise a giant step knows :math:`\Delta = \mathbb{E}\,\mathrm{Var}(y|u)`,
beside :math:`\mathbb{E}\,m^2` in :math:`\mathbb{E}\,y^2` (derived here; neurons and labels become
independent for d → ∞, so that the noise may depend on u). Methods that use transforms of the labels
see more: the generative exponent is that of the law itself (:mod:`.thresholds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import sympy as sp

from ...errors import UnsupportedExpressionError
from ...json_document import WritesJson
from ...pages import Block, Page, Table
from ...symbolic.expressions.activations import Activation, z
from ...symbolic.expressions.expression_text import expression_text
from ...symbolic.gaussian.expectation import GaussianVector, expect
from ...symbolic.leaps.leap_report import LeapReport, leaps
from ...symbolic.leaps.staircase import Staircase, staircase
from ...symbolic.targets.target import Target, closed_target
from ..late import given_by
from .channels import Channel, read_channel
from .thresholds import Threshold, weak_recovery

if TYPE_CHECKING:
    from ..giant_steps.one_step import GiantStep


@dataclass(frozen=True, repr=False)
class LabelLeaps(Page, WritesJson):
    """What gradient steps and transforms of labels see of a law of labels.

    Attributes
    ----------
    channel : Channel
    regression : Target
        m(u) = E[y|u].
    noise_variance : Expr
        E Var(y|u).
    leaps : LeapReport
        Of m; the generative leap in it is that of labels m(u), without noise.
    staircase : Staircase
        Of m.
    recovery : Threshold
        With transforms of the labels: trivial (generative exponent 1), easy (2) or hard (3 or
        more).

    Examples
    --------
    >>> found = label_leaps("sign(x1*x2)", flips=0.1)
    >>> found.regression.expr, found.leaps.leap_index, found.recovery.kind
    (4*sign(x1)*sign(x2)/5, 2, 'easy')
    """

    channel: Channel
    regression: Target
    noise_variance: sp.Expr
    leaps: LeapReport
    staircase: Staircase
    recovery: Threshold

    giant_step = cast(
        "Callable[..., GiantStep]", given_by("giantstep.derivations.bridge", "step_on_labels")
    )

    def page(self) -> Iterable[Block]:
        """Return the regression function and what is seen of it."""
        yield Table(
            [
                ("labels", self.channel.name),
                ("E[y|u]", expression_text(self.regression.expr)),
                ("E Var(y|u)", expression_text(self.noise_variance)),
                ("gradients see", self.leaps.summary),
                ("giant steps learn", self.staircase.summary),
                ("transforms of labels", f"{self.recovery.kind}: {self.recovery.reason}"),
            ]
        )

    def __repr__(self) -> str:
        return (
            f"LabelLeaps({self.channel.name}: {self.leaps.summary}; with transforms of labels "
            f"{self.recovery.kind})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "labels": self.channel.name,
            "regression": expression_text(self.regression.expr),
            "noise_variance": expression_text(self.noise_variance),
            "leaps": self.leaps.to_dict(),
            "staircase": self.staircase.to_dict(),
            "recovery": {"kind": self.recovery.kind, "reason": self.recovery.reason},
        }


def label_leaps(
    target: str | sp.Expr | Target,
    *,
    labels: str = "regression",
    noise_variance: float = 0.0,
    flips: float = 0.0,
    student: str | sp.Expr | Activation | None = None,
) -> LabelLeaps:
    """Return leaps and staircase of labels drawn from a law, and their generative order.

    Parameters
    ----------
    target, labels, noise_variance, flips
        The law of labels, as for :class:`.model.MultiIndex`: a function of a few directions with
        additive noise, its sign, probit or logistic labels, a share of flipped labels; quantised
        labels are functions with few values, such as ``sign(x1 - 1) + sign(x1 + 1)``.
    student : str, Expr or Activation, optional
        Activation of the neurons of the staircase; a generic one by default.

    Raises
    ------
    AssumptionError
        If E[y|u] is constant: gradients of the squared loss then see nothing.
    UnsupportedExpressionError
        If E[y|u] or its variance has no closed form.
    UndecidedError
        If whether a moment vanishes cannot be decided.

    Examples
    --------
    >>> print(label_leaps("x1", labels="sign", flips=0.25).noise_variance)
    3/4
    >>> print(label_leaps("x1 + x1*x2", noise_variance=0.5).staircase.summary)
    {0} ⊂ ⟨e1⟩ ⊂ R^2, saturates
    """
    channel = read_channel(target, labels=labels, noise_variance=noise_variance, flips=flips)
    regression = regression_target(channel)
    return LabelLeaps(
        channel,
        regression,
        residual_variance(channel, regression),
        leaps(regression),
        staircase(regression, student=student),
        weak_recovery(channel),
    )


def regression_target(channel: Channel) -> Target:
    """Return E[y|u] as a target in x1, x2, …

    Raises
    ------
    UnsupportedExpressionError
        If the law is a density of one's own.
    """
    mean = _moment(channel, 1)
    if channel.variables == (z,):
        x1 = sp.Symbol("x1", real=True)
        return closed_target(mean.xreplace({z: x1}), [x1])
    return closed_target(mean, channel.variables)


def residual_variance(channel: Channel, regression: Target) -> sp.Expr:
    """Return E Var(y|u)."""
    if not channel.probabilities:
        return channel.exact_noise
    law = GaussianVector(channel.variables, covariance=sp.eye(channel.directions))
    return sp.expand(expect(_moment(channel, 2), law) - regression.norm_squared)


def _moment(channel: Channel, power: int) -> sp.Expr:
    if channel.probabilities:
        terms = (y**power * p for y, p in channel.probabilities.items())
        # By signs, because steps in both directions add up to one.
        total = sp.Add(*terms).replace(sp.Heaviside, lambda u, *_: (1 + sp.sign(u)) / 2)
        return sp.expand(total)
    if channel.function is None:
        raise UnsupportedExpressionError(
            "E[y|u] of a density of one's own is an integral over y; give the labels as a function "
            "with noise, or finitely many labels with their probabilities"
        )
    return channel.function
