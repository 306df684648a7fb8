"""A solution of a kernel with a proof: exact parameters in, a certificate out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...errors import CertificationError, ConvergenceError
from ...symbolic.exact.enclosures import Enclosure
from ...symbolic.gaussian.enclosures import INTERMEDIATE_DIGITS, enclosed_value
from ...symbolic.lowering.ball_program import BallProgram
from ..certificates.certificate import Certificate
from ..certificates.proof import DEFAULT_DIGITS, certify
from .precise import exact_number

if TYPE_CHECKING:
    from .kernel import Kernel


def certified_solution(
    kernel: Kernel,
    parameters: Mapping[str, Any],
    values: Mapping[str, float],
    digits: int | None,
    *,
    errors: Mapping[str, float] | None = None,
    progress: bool = True,
) -> Certificate:
    """Prove the solution of a kernel.

    Parameters
    ----------
    kernel : Kernel
    parameters : mapping from str to number
        As given by the user; floats mean the decimal numbers that they print as.
    values : mapping from str to float
        The solution in floats.
    digits : int, optional
        Default: 15.
    errors : mapping from str to float, optional
        Estimated absolute errors of the floats.
    progress : bool
        Show a bar if it takes longer than a second.

    Raises
    ------
    CertificationError
        If the proof does not succeed.
    UnsupportedExpressionError
        If the system is outside of what can be certified.
    MissingDependencyError
        If python-flint is not installed.
    """
    BallProgram(kernel.solved.program, kernel.outputs)  # refuses what is outside, by name
    given = {name: exact_number(value) for name, value in parameters.items()}
    for name, tie in kernel.active_ties(parameters).items():
        given[name] = tie.function(given[tie.source], sp.sqrt)
    given |= {
        name: exact_number(value)
        for name, value in kernel.defaults.items()
        if name not in given and kernel.exact_defaults is None
    }
    missing = [name for name in kernel.parameters if name not in given]
    if missing and kernel.proven_defaults is None:
        raise CertificationError(
            f"{kernel.name} takes {', '.join(missing)} from a model that has no proven intervals "
            "for them\n  give them as arguments: floats mean the decimals that they print as"
        )

    def enclosures(wanted: int) -> dict[str, Enclosure | float]:
        try:
            defaults = kernel.proven_defaults(wanted) if missing and kernel.proven_defaults else {}
        except ConvergenceError as error:
            raise CertificationError(
                f"parameters of {kernel.name} that follow from the model ({', '.join(missing)}) "
                f"cannot be enclosed: {error}"
            ) from None
        return {**defaults, **{n: enclosed_parameter(x, wanted) for n, x in given.items()}}

    return certify(
        kernel.solved,
        enclosures,
        values,
        errors=errors,
        digits=DEFAULT_DIGITS if digits is None else digits,
        shown={name: shown_parameter(x) for name, x in given.items()},
        progress=progress,
    )


def enclosed_parameter(value: sp.Expr, digits: int) -> Enclosure | float:
    """Return an enclosure of an exact number; infinity as a float."""
    return math.inf if value is sp.oo else enclosed_value(value, digits, most=INTERMEDIATE_DIGITS)


def shown_parameter(value: sp.Expr) -> str:
    """Return an exact number as text, a rational one as the decimal number that was meant."""
    if not value.is_Rational:
        return str(value)
    number = float(value)
    return f"{number:.17g}" if sp.Rational(repr(number)) != value else repr(number)
