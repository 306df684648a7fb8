"""Proven intervals for the saddle point: parameters after the step, and the certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from ...symbolic.enclosures import Enclosure
from ..kernels.certified import certified_solution, enclosed_parameter
from ..kernels.precise import exact_number
from .certified_spike import exact_spike
from .solution import Solution, solution_from

if TYPE_CHECKING:
    from ...numeric.saddle_point_solver import BatchSolution
    from .model import SpikedRandomFeatures

_EQUATIONS = (
    "the equations describe the model for d → ∞: they come from the replica method with replica "
    "symmetry (Cui et al., arXiv 2402.04980, Result 3.3), which is assumed, no part of the proof"
)
_STEP = (
    "networks after the step are spiked random features, a Gaussian equivalence (Result 3.1 "
    "there), which is assumed, too"
)


def _about_the_model(model: SpikedRandomFeatures) -> tuple[str, ...]:
    """Return what has to hold for the intervals to be about the model, not its equations alone."""
    return (_EQUATIONS,) if model.direct_parameters is not None else (_EQUATIONS, _STEP)


def proven_parameters(model: SpikedRandomFeatures, digits: int) -> dict[str, Enclosure | float]:
    """Return proven intervals of the parameters of a model by their names in kernels.

    Floats of the model mean the decimal numbers that they print as; spike strength, bulk variance
    and alignment follow from them by the exact map of the step.

    Raises
    ------
    ConvergenceError, UnsupportedExpressionError
        If an expectation in that map cannot be enclosed.
    """
    found: dict[str, sp.Expr] = {
        "beta": exact_number(model.beta),
        "noise_variance": exact_number(model.noise_variance),
        **exact_spike(model),
    }
    if model.width is not None:
        found["inverse_width"] = sp.Rational(1, model.width)
    return {name: enclosed_parameter(value, digits) for name, value in found.items()}


def certified(
    model: SpikedRandomFeatures,
    alpha: float,
    ridge: float,
    digits: int | None,
    batch: BatchSolution,
    *,
    progress: bool,
) -> Solution:
    """Return the saddle point with its proof, from the float solution in the first row of `batch`.

    Raises
    ------
    CertificationError
        If the proof does not succeed.
    UnsupportedExpressionError
        If an activation is outside of what can be enclosed.
    MissingDependencyError
        If python-flint is not installed.
    """
    start = {name: float(value[0]) for name, value in batch.values.items()}
    point = {"alpha": alpha, "ridge": ridge}
    estimates = {name: float(error[0]) for name, error in batch.errors.items()}
    certificate = certified_solution(
        model.kernel(), point, start, digits, errors=estimates, progress=progress
    )
    certificate = certificate.resting_on(*_about_the_model(model))
    values, errors = certificate.numbers(digits)
    return solution_from(
        values,
        alpha=alpha,
        ridge=ridge,
        residual=0.0,
        iterations=int(batch.iterations[0]),
        quadrature_error=float(errors["test_error"]),
        nodes=int(batch.nodes[0]),
        digits=digits,
        errors=errors,
        certificate=certificate,
    )
