r"""How the parameters of the equations move with those of a model of spiked features.

Parameters of the gradient step act through the spike that they produce, by the chain rule through
the map of Result 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..sensitivities import Directions
from . import mapping as map_of_step
from .tangents import SPIKE, STEP, STRETCH, mapping_derivatives, step_rates

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures

NO_SPIKE = (
    "errors jump where the spike vanishes, because the mean of the features along it, however "
    "small, is fitted without a penalty; take a spike of finite strength"
)
ALIGNED = (
    "alignment is at the end of its range, where the labels are a function of the projection on "
    "the spike; take |alignment| < 1"
)


def directions(model: SpikedRandomFeatures, *, exact: bool = False) -> Directions:
    """Return the rates of kernel parameters for each parameter, and those that have none.

    `noise_variance` acts in the step and in the training set of the readout; those of the spike
    (`spike_strength`, `bulk_variance`, `alignment`, `norm_overlap`) and, at a finite width, its
    inverse 1/p (`inverse_width`) move with everything else fixed.
    """
    spike = model.spike
    moving: dict[str, dict[str, Any]] = {
        name: {name: 1} for name in ("alpha", "beta", "ridge", "noise_variance")
    }
    excluded: dict[str, str] = {}
    if model.direct_parameters is None:
        excluded |= fixed_step_parameters(model)
        of_step = _exact_step_rates(model) if exact else None
        for name in STEP if model.step_size > 0 else ():
            if name not in excluded:
                moved = (
                    step_rates(model, name, stretched=model._case["stretched"])
                    if of_step is None else of_step(name)
                )  # fmt: skip
                moving[name] = {**moving.get(name, {}), **moved}
    if spike.spike_strength == 0:
        excluded["spike_strength"] = NO_SPIKE
    else:
        moving["spike_strength"] = {"spike_strength": 1}
    moving["bulk_variance"] = {"bulk_variance": 1}
    if spike.orthogonal_alignment == 0:
        excluded["alignment"] = ALIGNED
    else:
        slope: Any = _across if exact else -spike.alignment / spike.orthogonal_alignment
        moving["alignment"] = {"alignment": 1, "orthogonal_alignment": slope}
    if model._case["correlated_norms"]:
        moving["norm_overlap"] = {"norm_overlap": 1}
    if model._case["stretched"]:
        moving |= {name: {name: 1} for name in STRETCH}
    if model.width is not None:
        moving["inverse_width"] = {"inverse_width": 1}
    return Directions(moving, excluded)


def fixed_step_parameters(model: Any) -> dict[str, str]:
    """Return parameters of the step of a model that have no derivative, with the reason."""
    if model.step_size == 0:
        return {
            "step_size": "errors jump at step_size = 0, where the spike vanishes",
            "alpha0": "no step is taken",
        }
    return {"alpha0": "alpha0 is infinite"} if model.alpha0 == math.inf else {}


def _across(known: Any) -> Any:
    """The derivative of the orthogonal alignment by the alignment."""
    return -known["alignment"] / known["orthogonal_alignment"]


def _exact_step_rates(model: SpikedRandomFeatures) -> Callable[[str], dict[str, Any]]:
    """Return what takes a parameter of the step to functions of numbers of mpmath."""
    import sympy as sp

    infinite, symbolic = model.alpha0 == math.inf, model.symbolic()
    derivatives = mapping_derivatives(
        map_of_step.spike_mapping(
            symbolic.student, symbolic.teacher, stretched=model._case["stretched"]
        ),
        infinite,
    )
    given = {
        map_of_step.step_size: sp.Rational(repr(model.step_size)),
        map_of_step.alpha0: sp.S.One if infinite else sp.Rational(repr(model.alpha0)),
        map_of_step.noise: sp.Rational(repr(model.noise_variance)),
    }

    def number(value: sp.Expr, known: Any) -> Any:
        ctx = known["beta"].context
        return ctx.mpf(str(sp.N(value, ctx.dps + 5)))

    def rates(parameter: str) -> dict[str, Any]:
        start = len(SPIKE) * STEP.index(parameter)
        values = [x.xreplace(given) for x in derivatives[start : start + len(SPIKE)]]
        return {
            name: lambda known, value=value: number(value, known)
            for name, value in zip(SPIKE, values, strict=True)
        }

    return rates
