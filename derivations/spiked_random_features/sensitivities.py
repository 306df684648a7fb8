r"""Derivatives of errors and order parameters with respect to every parameter of the model.

By the implicit function theorem, from the derivative of the saddle-point equations
(:mod:`.symbolic.sensitivities`); nothing is differenced. Parameters of the gradient step act
through the spike that they produce, by the chain rule through the map of Result 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...numeric.kernel_arrays import KernelArrays
from ...numeric.rounding import COARSE, perturbed, spreads
from ...numeric.saddle_point_solver import refusal, solve_rows
from ...pages import Block, Table, Typeset
from ..kernels.derivatives import Derivatives, value_of
from ..kernels.optima import LABEL, rate
from .solution import CONJUGATES, ORDER_PARAMETERS
from .tangents import STRETCH, parameter_row, step_rates, tangent_kernel

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures

ERRORS = ("test_error", "training_error")
OUTPUTS = (*ERRORS, *ORDER_PARAMETERS, *CONJUGATES)

_LATEX = {
    "test_error": r"\varepsilon_{\mathrm{test}}", "training_error": r"\varepsilon_{\mathrm{train}}",
    "alpha": r"\alpha", "beta": r"\beta", "ridge": r"\lambda", "noise_variance": r"\Delta",
    "step_size": "s", "alpha0": r"\alpha_0", "spike_strength": "r", "bulk_variance": "c",
    "alignment": r"\gamma", "norm_overlap": "a", "inverse_width": "p^{-1}",
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivities(Typeset, Derivatives):
    """Derivatives at one sample complexity and ridge penalty: ``found["test_error", "ridge"]``.

    Outputs are the errors and the order parameters. Parameters are those of the model:
    `noise_variance` acts in the step and in the training set of the readout; those of the spike
    (`spike_strength`, `bulk_variance`, `alignment`, `norm_overlap`) and, at a finite width, its
    inverse 1/p (`inverse_width`) move with everything else fixed.

    Attributes
    ----------
    derivatives, errors, excluded, digits
        As in :class:`~giantstep.derivations.kernels.derivatives.Derivatives`.
    alpha, ridge : float
    """

    alpha: float
    ridge: float

    def page(self) -> Iterable[Block]:
        """Return a table of the derivatives of both errors, and what they rest on."""
        rows = [(p, *(self.text(o, p) for o in ERRORS)) for p in self.parameters]
        others = [o for o in self.outputs if o not in ERRORS]
        beside = [[self.text(o, p) for o in others] for p in self.parameters]
        head = ("derivative with respect to", "of the test error", "of the training error")
        yield Table(rows, (*head, *(f"of {o}" for o in others)), beside)
        yield from self.remarks()

    def __repr__(self) -> str:
        shown = ", ".join(
            f"d test_error/d {p} = {float(self.derivatives['test_error', p]):.6g}"
            for p in self.parameters
        )
        return f"Sensitivities(alpha={self.alpha:g}, ridge={self.ridge:g}: {shown})"

    def latex(self) -> str:
        """Return the derivatives of both errors in LaTeX, as one aligned environment."""
        rows = [
            rf"\frac{{d {_LATEX[o]}}}{{d {_LATEX[p]}}} &= {_scientific(self.text(o, p))}"
            for p in self.parameters
            for o in ERRORS
        ]
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def _scientific(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    return rf"{mantissa} \times 10^{{{int(exponent)}}}" if exponent else mantissa


def sensitivities(
    model: SpikedRandomFeatures,
    alpha: float,
    ridge: float,
    *,
    digits: int | None = None,
    show_progress: bool = False,
) -> Sensitivities:
    """Return all derivatives; see :meth:`.model.SpikedRandomFeatures.sensitivities`.

    Raises
    ------
    ConvergenceError
        If the equations cannot be solved, or `digits` cannot be reached.
    """
    moving, excluded = directions(model)
    if digits is not None:
        from .refine_tangents import precise_sensitivities

        values, errors = precise_sensitivities(
            model, alpha, ridge, digits, tuple(moving), show_progress=show_progress
        )
        return Sensitivities(values, errors, excluded, alpha, ridge, digits=digits)
    kernel = tangent_kernel(model)
    point = {**model._parameter_values(), "alpha": alpha, "ridge": ridge}
    # Directions that do not move the tables share them.
    groups: dict[tuple[float, ...], list[tuple[str, list[float]]]] = {}
    for name, rates in moving.items():
        row, tables = parameter_row(kernel, point, rates)
        groups.setdefault(tuple(tables), []).append((name, row))
    values, errors = {}, {}
    for shared, members in groups.items():
        rows, arrays = (
            np.array([row for _, row in members]),
            KernelArrays(kernel, shared, model._bulk.arrays),
        )
        found = solve_rows(kernel, arrays, rows)
        if not found.converged.all():
            raise refusal(kernel, rows, found)
        near = [perturbed(row) for row in rows]
        moved = solve_rows(kernel, arrays, np.vstack(near), rtol=COARSE)
        for k, (name, _) in enumerate(members):
            part = slice(k * len(near[k]), (k + 1) * len(near[k]))
            rounding = spreads({key: column[part] for key, column in moved.values.items()})
            for output in OUTPUTS:
                column = column_of(output)
                present = column in found.values
                values[output, name] = float(found.values[column][k]) if present else 0.0
                errors[output, name] = (
                    float(found.errors[column][k]) + rounding[column] if present else 0.0
                )
    order = {(o, p): None for o in OUTPUTS for p in moving}
    return Sensitivities(
        {key: values[key] for key in order},
        {key: errors[key] for key in order},
        excluded,
        alpha,
        ridge,
    )


def column_of(output: str) -> str:
    """Return the name of the derivative of an output in the kernel of all derivatives."""
    return f"d_{output if output in ERRORS else value_of(output)}_d_{LABEL}"


def directions(
    model: SpikedRandomFeatures,
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return the rates of kernel parameters for each parameter, and those that have none."""
    spike = model.spike
    unspiked, aligned = spike.spike_strength == 0, spike.orthogonal_alignment == 0
    excluded: dict[str, str] = {}
    directions: dict[str, dict[str, float]] = {
        name: {rate(name): 1.0} for name in ("alpha", "beta", "ridge", "noise_variance")
    }
    if model.direct_parameters is None:
        excluded |= _fixed_step_parameters(model)
        if model.step_size > 0:
            for name in ("step_size", "alpha0", "noise_variance"):
                if name not in excluded:
                    first = step_rates(model, name)
                    moved = {rate(field): value for field, value in first.items()}
                    directions[name] = {**directions.get(name, {}), **moved}
    if unspiked:
        excluded["spike_strength"] = (
            "errors jump where the spike vanishes, because the mean of the features along it, "
            "however small, is fitted without a penalty; take a spike of finite strength"
        )
    else:
        directions["spike_strength"] = {rate("spike_strength"): 1.0}
    directions["bulk_variance"] = {rate("bulk_variance"): 1.0}
    if aligned:
        excluded["alignment"] = (
            "alignment is at the end of its range, where the labels are a function of the "
            "projection on the spike; take |alignment| < 1"
        )
    else:
        slope = -spike.alignment / spike.orthogonal_alignment
        directions["alignment"] = {rate("alignment"): 1.0, rate("orthogonal_alignment"): slope}
    if model._case["correlated_norms"]:
        directions["norm_overlap"] = {rate("norm_overlap"): 1.0}
    if model._case["stretched"]:
        directions |= {name: {rate(name): 1.0} for name in STRETCH}
    if model.width is not None:
        directions["inverse_width"] = {rate("inverse_width"): 1.0}
    return directions, excluded


def _fixed_step_parameters(model: SpikedRandomFeatures) -> dict[str, str]:
    if model.step_size == 0:
        return {
            "step_size": "errors jump at step_size = 0, where the spike vanishes",
            "alpha0": "no step is taken",
        }
    return {"alpha0": "alpha0 is infinite"} if model.alpha0 == math.inf else {}
