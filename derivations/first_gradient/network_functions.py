"""Students and targets as functions of arrays, through source from our own printers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...symbolic.expressions.activations import Activation
from ...symbolic.printing.compiled import compiled
from ...symbolic.targets.target import Target
from ..activation_functions import elementwise


@dataclass(frozen=True)
class NetworkFunctions:
    """Vectorised functions of float arrays; they can be sent to other processes.

    Attributes
    ----------
    student, student_derivative : callable
        Values of the same shape as the argument.
    target : callable
        Takes an array of shape (n, r), returns n values, or one number for all.
    """

    student: Callable[..., Any]
    student_derivative: Callable[..., Any]
    target: Callable[..., Any]


def network_functions(student: Activation, target: Target) -> NetworkFunctions:
    """Return student, its derivative and target for a simulation.

    Raises
    ------
    AssumptionError
        If the student jumps: it has no weak derivative.
    EmissionError
        If a function in them has no counterpart in NumPy or SciPy.

    Examples
    --------
    >>> import numpy as np
    >>> from giantstep.symbolic.expressions.activations import activation
    >>> from giantstep.symbolic.targets.target import target
    >>> made = network_functions(activation("relu"), target("x1*x2 + sign(x1)"))
    >>> made.target(np.array([[2.0, 3.0], [-1.0, 4.0]])).tolist()
    [7.0, -5.0]
    """
    made = elementwise(student)
    made.require_slope()
    return NetworkFunctions(made, made.slopes, compiled(target.expr, (target.variables,)))
