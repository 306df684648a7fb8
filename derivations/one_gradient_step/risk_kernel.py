"""The kernels of the risk, with a model's parameters as defaults.

The equations are the same for all models. They are lowered once and kept as text, so a run that
finds them in the cache imports no SymPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from ...numeric.kernel_code import KernelCode
from ..derived import derived
from ..kernels.arguments import Tie
from ..kernels.kernel import Kernel

if TYPE_CHECKING:
    from ...symbolic.lowering.lowered import LoweredSystem
    from .model import OneGradientStep

RIDGE, RIDGELESS, LEAST_SQUARES = "ridge", "ridgeless", "least squares"


def risk_kernel(model: OneGradientStep, kind: str = RIDGE) -> Kernel:
    """Return a kernel of the risk.

    Parameters
    ----------
    model : OneGradientStep
        Its parameters become defaults; all but the penalty.
    kind : {"ridge", "ridgeless", "least squares"}
        A positive penalty; the limit of a vanishing one; the same for a linear student and more
        samples than neurons or dimensions.
    """
    found = _derivation(model.cache, kind)
    return Kernel(
        name=found.name,
        title=found.title,
        code=found.code,
        domains=found.domains,
        make=partial(_lowered, kind),
        defaults=model_parameters(model),
        exact_defaults=partial(_exact_defaults, model),
        proven_defaults=partial(_proven_defaults, model),
        # The step has the samples of the readout, unless it has its own.
        ties={"alpha0": Tie("alpha", _same)} if model.alpha0 is None else {},
        labels=found.labels,
        cache_folder=model.cache_folder,
    )


def model_parameters(model: OneGradientStep) -> dict[str, float]:
    """Return the parameters of a model by their names in kernels; the penalty is none."""
    return {
        "alpha": model.alpha,
        "alpha0": model.step_samples,
        "beta": model.beta,
        "step_size": model.effective_step_size,
        "noise_variance": model.noise_variance,
        "student_linear": model.student_moments.linear,
        "student_residual": model.student_moments.residual,
        "teacher_linear": model.teacher_moments.linear,
        "teacher_residual": model.teacher_moments.residual,
    }


def _same(value: Any, sqrt: Callable[[Any], Any]) -> Any:
    return value


def _exact_defaults(model: OneGradientStep, ctx: Any) -> dict[str, Any]:
    """Return the same as mpmath numbers: floats as the decimals they print as, moments exactly."""
    found = {name: ctx.mpf(repr(value)) for name, value in model_parameters(model).items()}
    for layer, known in (("student", model.student_moments), ("teacher", model.teacher_moments)):
        digits = known.precise(ctx.dps)
        found[f"{layer}_linear"] = ctx.mpf(digits["linear"])
        found[f"{layer}_residual"] = ctx.mpf(digits["residual"])
    return found


def _proven_defaults(model: OneGradientStep, digits: int) -> dict[str, Any]:
    """Return the same as proven intervals."""
    from ..kernels.certified import enclosed_parameter
    from ..kernels.precise import exact_number

    found: dict[str, Any] = {
        name: enclosed_parameter(exact_number(value), digits)
        for name, value in model_parameters(model).items()
    }
    for layer, known in (("student", model.student_moments), ("teacher", model.teacher_moments)):
        proven = known.certified(digits)
        found |= {f"{layer}_{part}": proven[part] for part in ("linear", "residual")}
    return found


@dataclass(frozen=True)
class _Derivation:
    name: str
    title: str
    code: KernelCode
    domains: Mapping[str, str]
    labels: Mapping[str, str]


@derived("one_gradient_step/risk", _Derivation)
def _derivation(kind: str) -> _Derivation:
    from ..kernels.code import kernel_code, latex_names, parameter_domains

    lowered = _lowered(kind)
    domains = parameter_domains(lowered) | {"alpha0": "extended positive"}
    if "ridge" in domains:
        # A vanishing penalty has equations of its own.
        domains["ridge"] = "positive"
    return _Derivation(
        name=lowered.system.name,
        title=lowered.system.title,
        code=kernel_code(lowered),
        domains=domains,
        labels=latex_names(lowered),
    )


@lru_cache(maxsize=3)
def _lowered(kind: str) -> LoweredSystem:
    from ...symbolic.lowering.lowered import lower
    from . import risk_system

    systems = {
        RIDGE: risk_system.risk_system,
        RIDGELESS: risk_system.ridgeless_system,
        LEAST_SQUARES: risk_system.least_squares_system,
    }
    return lower(systems[kind]())
