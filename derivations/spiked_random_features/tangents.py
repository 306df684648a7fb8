"""The kernel of an output with its derivative, and the derivative of the map of Result 3.1.

A parameter of the gradient step moves several parameters of the spike at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...numeric.kernel_code import KernelCode
from ...runtime.generated import defined
from ..derived import derived

if TYPE_CHECKING:
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
STEP_MOVES = (
    "spike_strength", "bulk_variance", "norm_overlap",
    "stretch_along", "stretch_mixed", "stretch_across",
)  # fmt: skip


def derivative_kernel(
    model: SpikedRandomFeatures, of: str, parameters: Iterable[str]
) -> KernelCode:
    """Return the kernel of one output and its derivative along a direction.

    Parameters
    ----------
    model : SpikedRandomFeatures
    of : str
        An output or an unknown.
    parameters : iterable of str
        Parameters of the kernel that move.
    """
    moving = tuple(dict.fromkeys(parameters))
    return _derivative_code(
        model._cache, model.student, model.teacher, of, moving, **flags_of(model)
    )


def flags_of(model: SpikedRandomFeatures) -> dict[str, Any]:
    """Return which case of the equations holds for a model."""
    return {
        **model._case,
        "finite_width": model.width is not None,
        "bulk": model._bulk.equations,
    }


@derived("spiked_random_features/derivatives", KernelCode)
def _derivative_code(
    student: str, teacher: str, of: str, moving: tuple[str, ...], **flags: Any
) -> KernelCode:
    from ..kernels.sensitivities import derivative_code
    from .derive import symbolic_model

    system = symbolic_model(student, teacher, **flags).system
    there = _moving_parameters(system)
    return derivative_code(system, of, [name for name in moving if name in there])


def _moving_parameters(system: SaddlePointSystem) -> list[str]:
    """Return the parameters in which the equations can be differentiated."""
    present = set().union(
        *(e.residual.free_symbols for e in system.equations),
        *(d.free_symbols for d in system.definitions.values()),
        # Noise is added to what the test error is measured against.
        *(value.free_symbols for value in system.outputs.values()),
    )
    names = [system.identifiers[p] for p in system.parameters if p in present]
    if "orthogonal_alignment" not in names:
        # Exactly aligned: the end of the range of the alignment, where nothing is differentiated.
        names = [name for name in names if name != "alignment"]
    return names


# ---------------------------------------------------------------------- the map of the step


def step_rates(
    model: Any,
    parameter: str,
    *,
    letter: float = 1.0,
    mean_letter: float = 1.0,
    stretched: bool = False,
) -> dict[str, float]:
    """Return the derivatives of the spike with respect to a parameter of the step.

    Parameters
    ----------
    model : SpikedRandomFeatures or VocabularyFeatures
        Not given by its spike.
    parameter : {"step_size", "alpha0", "noise_variance"}
    letter, mean_letter : float
        Of the neurons, and the mean over all of them.
    stretched : bool
        Whether rows are stretched, with the uniform readout.
    """
    infinite = model.alpha0 == math.inf
    source = _rate_source(
        model._cache, model.student, model.teacher, infinite=infinite, stretched=stretched
    )
    module = defined(source)
    # Without noise in the labels nothing depends on a sample number that is infinite.
    samples = 1.0 if infinite else model.alpha0
    step = (model.step_size, samples, model.noise_variance)
    values = module.mapping_rates(*step, letter, mean_letter)
    start = len(SPIKE) * STEP.index(parameter)
    return dict(zip(SPIKE, values[start : start + len(SPIKE)], strict=True))


@derived("spiked_random_features/letter_rates", str)
def _rate_source(student: str, teacher: str, *, infinite: bool, stretched: bool) -> str:
    from ...symbolic.activations import activation
    from ...symbolic.printing.compiled import Formula
    from . import mapping as m
    from .derive import STEP_ARGUMENTS, scalar_functions

    letters = {} if stretched else {"letter": m.letter, "mean_letter": m.mean_letter}
    mapping = m.spike_mapping(
        activation(student), activation(teacher), stretched=stretched, **letters
    )
    derivatives = mapping_derivatives(mapping, infinite)
    arguments = (*STEP_ARGUMENTS, m.letter, m.mean_letter)
    names = {m.letter: "letter", m.mean_letter: "mean_letter"}
    return scalar_functions({"mapping_rates": Formula(arguments, derivatives)}, names)


def mapping_derivatives(mapping: SpikeMapping, infinite: bool = False) -> list[Any]:
    """Return the derivative of each field of the spike, for each argument of the map in turn.

    `infinite` takes the limit of infinite alpha0 first.
    """
    import sympy as sp

    from . import mapping as m

    fields = [getattr(mapping, name) for name in SPIKE]
    if infinite:
        fields = [f.xreplace({m.alpha0: sp.oo}) for f in fields]
        # Without a gradient the direction of the spike is a convention, which does not move.
        fields = [sp.S.Zero if f.has(sp.nan, sp.zoo) else f for f in fields]
    return [f.diff(argument) for argument in (m.step_size, m.alpha0, m.noise) for f in fields]
