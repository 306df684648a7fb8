r"""One giant step in numbers: symbols of its formulas, weighing of neurons, finite sizes.

The step of a neuron is s = η a times the prefactor of the network: with
:math:`\hat f = \frac1p\sum_i a_i\sigma(\langle w_i, x\rangle)` and readouts of order 1 it is η a/p.
Only this product enters, so other prefactors are other scales of the learning rate η.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import sympy as sp

from ...errors import AssumptionError, ParameterError
from ...symbolic.stein import DIMENSION, SAMPLES

if TYPE_CHECKING:
    from .one_step import GiantStep

WIDTH = sp.Symbol("p", positive=True)
"""The number of neurons p in step sizes."""

STEP = sp.Symbol("s", real=True)
"""The step of one neuron, s = η a/p; its sign is that of the readout weight a."""

BIAS = sp.Symbol("b", real=True)
"""The bias of a neuron, if there are biases."""


class Prefactor(StrEnum):
    """How a network weighs its neurons: in front of the sum, and the size of readout weights."""

    MEAN = "1/p, readouts of order 1"
    ROOT = "1/sqrt(p), readouts of order 1"
    SMALL_READOUT = "1/sqrt(p), readouts of order 1/sqrt(p)"

    @property
    def learning_rate(self) -> sp.Expr:
        """The learning rate η, in p, with which s is of order 1."""
        return sp.sqrt(WIDTH) if self is Prefactor.ROOT else WIDTH


@dataclass(frozen=True)
class GiantStepValues:
    r"""One giant step in numbers, means over neurons.

    Attributes
    ----------
    step, learning_rate : float
        s and η.
    spike, along, noise : float
        Mean squares of the three parts of the gradient.
    alignment : float
        Share of the spike in them: the best possible.
    squared_norm : float
        Mean of :math:`|w^1|^2`.
    relevant_share : float
        Share of it in the space of all coordinates of the target.
    directions : int
        Directions learned at most.
    """

    step: float
    learning_rate: float
    spike: float
    along: float
    noise: float
    alignment: float
    squared_norm: float
    relevant_share: float
    directions: int


def step_values(
    step: GiantStep,
    dimension: int,
    samples: int,
    *,
    width: int,
    learning_rate: float | None,
    readout: float,
    prefactor: Prefactor | str,
    bias: float | None,
) -> GiantStepValues:
    """Evaluate a step at finite size; see :meth:`.GiantStep.values`."""
    from ...numeric.arguments import positive_number, real_number, whole_number

    def finite_number(name: str, value: float) -> float:
        number = real_number(name, value)
        if not math.isfinite(number):
            raise ParameterError(f"{name} must be finite, got {value}")
        return number

    weighing = prefactor_of(prefactor)
    if step.biases != (bias is not None):
        raise ParameterError(
            "bias is missing: the numbers depend on that of the neuron"
            if step.biases
            else "bias is for neurons with biases; use giant_step(..., biases=True)"
        )
    p = whole_number("width", width)
    rule: dict[sp.Symbol, sp.Expr] = {
        DIMENSION: sp.Integer(whole_number("dimension", dimension, step.target.dimension)),
        SAMPLES: sp.Integer(whole_number("samples", samples)),
        WIDTH: sp.Integer(p),
    }
    if bias is not None:
        rule[BIAS] = sp.Float(finite_number("bias", bias), 17)
    scale = step.step_size(weighing)
    if scale is None:
        raise AssumptionError(f"{step.obstruction}; there is no step to evaluate")
    if learning_rate is None:
        eta = float(scale.subs(rule))
    else:
        eta = positive_number("learning_rate", learning_rate)
    s = eta / float(weighing.learning_rate.subs(rule)) * finite_number("readout", readout)
    rule[STEP] = sp.Float(s, 17)

    def number(expr: sp.Expr) -> float:
        found = expr.subs(rule).evalf(17)
        if not found.is_number:
            names = ", ".join(sorted(map(str, found.free_symbols)))
            raise ParameterError(f"noise_variance holds {names}; give it as a number")
        return float(found)

    return GiantStepValues(
        step=s,
        learning_rate=eta,
        spike=number(step.spike_square),
        along=number(step.along_square),
        noise=number(step.noise_square),
        alignment=number(step.mean_alignment),
        squared_norm=number(step.squared_norm),
        relevant_share=number(step.relevant_share),
        directions=step.directions(p),
    )


def prefactor_of(value: Prefactor | str) -> Prefactor:
    """Return the weighing of a name or a value."""
    names = {**Prefactor.__members__, **{member.value: member for member in Prefactor}}
    found = names.get(value) if isinstance(value, str) else None
    if found is None:
        known = "; ".join(f"{name} ({member.value})" for name, member in names.items()
                          if name == member.name)  # fmt: skip
        raise ParameterError(f"prefactor must be one of {known}, got {value!r}")
    return found
