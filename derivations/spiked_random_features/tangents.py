"""Kernels of the model with derivatives along a direction of its parameters.

One direction at a time: a kernel takes the rates at which the parameters move, and returns the
rates of errors and order parameters. A parameter of the gradient step moves several parameters of
the spike at once, by the derivative of the map of Result 3.1.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...numeric.kernel_code import KernelCode, LoadedKernel
from ...runtime.generated import defined
from ..derived import derived

if TYPE_CHECKING:
    import sympy as sp

    from ...symbolic.saddle_point import SaddlePointSystem
    from .mapping import SpikeMapping
    from .model import SpikedRandomFeatures

SPIKE = (
    "spike_strength", "bulk_variance", "alignment", "orthogonal_alignment", "norm_overlap",
    "stretch_along", "stretch_mixed", "stretch_across",
)  # fmt: skip
"""Fields of a spike, in the order in which the map returns them."""
STRETCH = SPIKE[-3:]
"""Those that are the stretch of the rows."""
STEP = ("step_size", "alpha0", "noise_variance")
"""Arguments of the map."""
_STEP_MOVES = (
    "spike_strength", "bulk_variance", "norm_overlap",
    "stretch_along", "stretch_mixed", "stretch_across",
)  # fmt: skip
LABEL = "t"
"""What derivatives are taken with respect to, in the names of the outputs."""


class Motion(enum.Enum):
    """What moves, and how many derivatives are taken."""

    RIDGE = "the ridge penalty, two derivatives"
    STEP_SIZE = "what of the spike depends on the step, two derivatives"
    JOINT = "ridge penalty and what of the spike depends on the step, two derivatives"
    ALL = "all parameters, one derivative"

    @property
    def order(self) -> int:
        """Number of derivatives."""
        return 1 if self is Motion.ALL else 2


def rate(name: str) -> str:
    """Return the name of the rate of a parameter."""
    return f"rate_{name}"


def acceleration(name: str) -> str:
    """Return the name of the second derivative of a parameter."""
    return f"acceleration_{name}"


def tangent_kernel(model: SpikedRandomFeatures, motion: Motion) -> LoadedKernel:
    """Return the kernel for a motion of the parameters of a model, ready to run."""
    flags = {**model._case, "finite_width": model.width is not None}
    return _code(model._cache, model.student, model.teacher, motion, **flags).load(model._cache)


@derived("spiked_random_features/tangents", KernelCode)
def _code(student: str, teacher: str, motion: Motion, **flags: bool) -> KernelCode:
    from ...symbolic.lowering.lowered import lower
    from ..kernels.code import kernel_code
    from ..kernels.deriving import deriving
    from .derive import symbolic_model

    with deriving(f"derivatives ({motion.value})", 3) as done:
        system = symbolic_model(student, teacher, **flags).system
        moving = tangent_system(system, motion)
        done()
        lowered = lower(moving)
        done()
        return kernel_code(lowered)


def tangent_system(system: SaddlePointSystem, motion: Motion) -> SaddlePointSystem:
    """Return the saddle-point equations with the derivatives that a motion asks for.

    Parameters
    ----------
    system : SaddlePointSystem
        Of :func:`.derive.symbolic_model`.
    motion : Motion
    """
    import sympy as sp

    from ...symbolic.sensitivities import with_derivatives_along
    from ..kernels.sensitivities import with_values

    def symbol(name: str) -> sp.Symbol:
        return sp.Symbol(name, real=True)

    names = {system.identifiers[p]: p for p in system.parameters}
    present = set().union(
        *(e.residual.free_symbols for e in system.equations),
        *(d.free_symbols for d in system.definitions.values()),
    )
    if names["orthogonal_alignment"] not in present:
        # Exactly aligned: the end of the range of the alignment, where nothing is differentiated.
        present.discard(names["alignment"])
    moving = {
        Motion.RIDGE: ("ridge",),
        Motion.STEP_SIZE: _STEP_MOVES,
        Motion.JOINT: ("ridge", *_STEP_MOVES),
        Motion.ALL: tuple(names),
    }[motion]
    direction: dict[sp.Symbol, sp.Expr] = {}
    for name in moving:
        if names.get(name) not in present:
            continue
        direction[names[name]] = sp.S.One if motion is Motion.RIDGE else symbol(rate(name))
        if motion in (Motion.STEP_SIZE, Motion.JOINT) and name != "ridge":
            direction[symbol(rate(name))] = symbol(acceleration(name))
    if motion is Motion.ALL:
        system = with_values(system)
    return with_derivatives_along(system, direction, label=LABEL, order=motion.order)


# ---------------------------------------------------------------------- the map of the step


def step_rates(model: SpikedRandomFeatures, parameter: str) -> tuple[dict[str, float], ...]:
    """Return first and second derivatives of the spike with respect to a step's parameter.

    Parameters
    ----------
    model : SpikedRandomFeatures
        Not given by its spike.
    parameter : {"step_size", "alpha0", "noise_variance"}

    """
    infinite = model.alpha0 == math.inf
    source = _rate_source(
        model._cache, model.student, model.teacher,
        infinite=infinite, stretched=model._case["stretched"],
    )  # fmt: skip
    module = defined(source)
    # Without noise in the labels nothing depends on a sample number that is infinite.
    samples = 1.0 if infinite else model.alpha0
    values = module.mapping_rates(model.step_size, samples, model.noise_variance)
    start = 2 * len(SPIKE) * STEP.index(parameter)
    first, second = (
        dict(zip(SPIKE, values[begin : begin + len(SPIKE)], strict=True))
        for begin in (start, start + len(SPIKE))
    )
    return first, second


@derived("spiked_random_features/rates", str)
def _rate_source(student: str, teacher: str, *, infinite: bool, stretched: bool) -> str:
    from ...symbolic.activations import activation
    from .mapping import spike_mapping

    mapping = spike_mapping(activation(student), activation(teacher), stretched=stretched)
    return _print_rates(mapping, infinite)


def _print_rates(mapping: SpikeMapping, infinite: bool) -> str:
    from ...symbolic.printing.compiled import Formula
    from .derive import STEP_ARGUMENTS, scalar_functions

    derivatives = mapping_derivatives(mapping, infinite)
    return scalar_functions({"mapping_rates": Formula(tuple(STEP_ARGUMENTS), derivatives)})


def mapping_derivatives(mapping: SpikeMapping, infinite: bool = False) -> list[Any]:
    """Return ∂ and ∂² of each field of the spike, for each argument of the map in turn.

    `infinite` takes the limit of infinite alpha0 first.
    """
    import sympy as sp

    from . import mapping as m

    fields = [getattr(mapping, name) for name in SPIKE]
    if infinite:
        fields = [f.xreplace({m.alpha0: sp.oo}) for f in fields]
        # Without a gradient the direction of the spike is a convention, which does not move.
        fields = [sp.S.Zero if f.has(sp.nan, sp.zoo) else f for f in fields]
    return [
        f.diff(argument, order)
        for argument in (m.step_size, m.alpha0, m.noise)
        for order in (1, 2)
        for f in fields
    ]


def parameter_row(
    kernel: LoadedKernel, values: Mapping[str, float], rates: Mapping[str, float]
) -> tuple[list[float], list[float]]:
    """Return the parameters and the table parameters of one solve; rates left out are zero."""

    def value(name: str) -> float:
        if name.startswith(("rate_", "acceleration_")):
            return rates.get(name, 0.0)
        return values[name]

    return [value(n) for n in kernel.parameters], [value(n) for n in kernel.table_parameters]
