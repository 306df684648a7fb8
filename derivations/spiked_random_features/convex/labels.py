r"""Label channels: the law of a label y given the field z = θ·x of the teacher.

======== ==============================================================
teacher  :math:`y = \sigma_*(z) + \sqrt\Delta\,\xi`, the regression of the square loss
sign     :math:`y = \operatorname{sign} z`
probit   :math:`y = \operatorname{sign}(z + \sqrt\Delta\,\xi)`
logistic :math:`P(y = 1) = 1/(1 + e^{-z})`
======== ==============================================================
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import sympy as sp

from ....errors import ParameterError, UnsupportedExpressionError
from ....symbolic.expressions.activations import Activation, activation, z
from ....symbolic.expressions.functions import HALF, normal_cdf, sigmoid
from ....symbolic.gaussian.expectation import GaussianExpectation
from ....symbolic.gaussian.jumps import jumps_as_steps
from ....symbolic.losses.convex_losses import smooth_pieces
from ..physics import noise

CHANNELS = ("teacher", "sign", "probit", "logistic")


@dataclass(frozen=True)
class Labels:
    """One label channel.

    Attributes
    ----------
    channel : {"teacher", "sign", "probit", "logistic"}
    teacher : Activation
        σ_*; of the channel "teacher", where the others see the field itself.
    has_noise : bool
        Whether there is a noise variance Δ > 0, for the channels "teacher" and "probit".
    """

    channel: str
    teacher: Activation
    has_noise: bool = False

    @property
    def is_binary(self) -> bool:
        """Whether the labels are ±1 by their channel."""
        return self.channel != "teacher"

    def label(self, field: sp.Expr) -> sp.Expr | None:
        """Return the label, without noise, as a function of the field; None if it is random."""
        return {"teacher": self.teacher(field), "sign": sp.sign(field)}.get(self.channel)

    def probability(self, label: int, field: sp.Expr, variance: sp.Expr = sp.S.Zero) -> sp.Expr:
        """Return P(y = label) for a field of given mean and variance.

        Parameters
        ----------
        label : {1, -1}
        field, variance : Expr
            With a variance for the channels "sign" and "probit" only.
        """
        if self.channel == "logistic":
            return sigmoid(label * field)
        total = variance + (noise if self.has_noise else 0)
        if total == 0:
            return sp.Heaviside(label * field, HALF)
        return normal_cdf(label * field / sp.sqrt(total))

    @property
    def jumps(self) -> tuple[float, ...]:
        """Fields at which the label, without noise, has a jump or a kink, as far as known."""
        if self.channel == "teacher":
            try:
                found, _ = smooth_pieces(self.teacher.expr, z)
            except UnsupportedExpressionError:
                return ()
            return tuple(float(place) for place in found)
        return () if self.channel == "logistic" else (0.0,)

    @property
    def mean(self) -> str:
        """What the gradient step sees, E[y | z], as the text of a function of z with Δ for noise.

        A channel of labels ±1 acts on the step as a teacher of this mean, with label noise up to
        E y² = 1.
        """
        return {
            "teacher": self.teacher.name,
            "sign": "sign",
            "probit": "erf(z/sqrt(2*Delta))",
            "logistic": "tanh(z/2)",
        }[self.channel]


def takes_signs_only(teacher: Activation) -> bool:
    """Whether σ_* is ±1 everywhere but at its jumps, where the sign of 0 does not matter."""
    # Under an average jumps are written as steps, in which the expression is affine.
    mean = jumps_as_steps(GaussianExpectation(teacher.expr, z))
    if not isinstance(mean, GaussianExpectation):
        return False
    steps = mean.integrand.rewrite(sp.Heaviside)
    atoms = sorted(steps.atoms(sp.Heaviside), key=str)
    if not atoms:
        return False
    choices = itertools.product((sp.S.Zero, sp.S.One), repeat=len(atoms))
    values = {
        sp.expand((steps**2).xreplace(dict(zip(atoms, choice, strict=True)))) for choice in choices
    }
    return values == {sp.S.One}


def label_channel(labels: object, teacher: str | Activation, noise_variance: float) -> Labels:
    """Return the channel that a user names.

    Raises
    ------
    ParameterError
        If there is no such channel, or it has no noise and some is given.
    """
    if not isinstance(labels, str) or labels not in CHANNELS:
        raise ParameterError(f"labels must be one of {', '.join(CHANNELS)}, got {labels!r}")
    if noise_variance > 0 and labels in ("sign", "logistic"):
        raise ParameterError(
            f"labels {labels!r} have no noise variance, but the features have "
            f"noise_variance={noise_variance:g}: use labels='probit' for the sign of a noisy "
            "field, or noise_variance=0"
        )
    if labels == "probit" and noise_variance == 0:
        labels = "sign"
    return Labels(labels, activation(teacher, argument="teacher"), noise_variance > 0)
