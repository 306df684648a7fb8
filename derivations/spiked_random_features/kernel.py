"""The model as a :class:`~giantstep.derivations.kernels.kernel.Kernel`: all targets, sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...symbolic.lowering.lowered import lower
from ..kernels.arguments import Tie
from ..kernels.kernel import Kernel
from .derive import kernel_code, with_constraints
from .precise import exact_parameters, proven_parameters
from .solution import SYMBOLS

if TYPE_CHECKING:
    from ...symbolic.lowering.lowered import LoweredSystem
    from .model import SpikedRandomFeatures

_LABELS = {
    **SYMBOLS, "test_error": r"\varepsilon_{\mathrm{test}}",
    "training_error": r"\varepsilon_{\mathrm{train}}", "alpha": r"\alpha", "beta": r"\beta",
    "ridge": r"\lambda", "noise_variance": r"\Delta", "spike_strength": "r", "bulk_variance": "c",
    "alignment": r"\gamma", "norm_overlap": "a", "inverse_width": "p^{-1}",
}  # fmt: skip
TITLE = "Saddle point of ridge regression on spiked random features"


def orthogonal(alignment: Any, sqrt: Callable[[Any], Any]) -> Any:
    """ρ of γ, as :func:`.derive.with_constraints` states it, for floats and exact numbers."""
    return sqrt((1 - alignment) * (1 + alignment))


def model_kernel(model: SpikedRandomFeatures) -> Kernel:
    """Return the kernel: sweeps over all parameters, inspection, files for other languages."""
    found = model.derivation
    values = model._parameter_values()
    return Kernel(
        name="spiked_random_features",
        title=f"{TITLE}, student {found.student}, teacher {found.teacher}",
        # Every result with its error, unlike the learning curves of the model.
        code=replace(kernel_code(found), measured=found.results),
        domains={**dict(found.domains), **_special_domains(model)},
        make=partial(_lowered, model),
        make_solved=partial(_solved, model),
        defaults={name: values[name] for name in found.parameters if name in values},
        exact_defaults=partial(_exact_defaults, model),
        proven_defaults=partial(_proven_defaults, model),
        # A new alignment brings its orthogonal part along.
        ties={"orthogonal_alignment": Tie("alignment", orthogonal, constraint=True)}
        if {"alignment", "orthogonal_alignment"} <= {*found.parameters}
        else {},
        labels=_LABELS,
        cache_folder=model.cache_folder,
        data=model._bulk.columns,
        exact_data=model._bulk.exact,
        check=model._bulk.check,
    )


def _special_domains(model: SpikedRandomFeatures) -> dict[str, str]:
    """Return the values to which a special case of the equations is restricted."""
    spike = model.spike
    found: dict[str, str] = {}
    if spike.orthogonal_alignment == 0:
        found |= {"alignment": "unit", "orthogonal_alignment": "zero"}
    if spike.spike_strength == 0:
        found |= {"spike_strength": "zero"}
    return found


def _lowered(model: SpikedRandomFeatures) -> LoweredSystem:
    return lower(with_constraints(model.symbolic().system, model.spike))


def _solved(model: SpikedRandomFeatures) -> LoweredSystem:
    return model.symbolic().lowered


def _exact_defaults(model: SpikedRandomFeatures, ctx: Any) -> dict[str, Any]:
    return exact_parameters(model, ctx)


def _proven_defaults(model: SpikedRandomFeatures, digits: int) -> dict[str, Any]:
    return proven_parameters(model, digits)
