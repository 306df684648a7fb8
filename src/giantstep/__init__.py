"""giantstep: symbolic-numeric theory of feature learning in the first giant gradient steps.

Public names are imported on first use, so that ``import giantstep`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .derivations.claims import Claim, claims, verify
    from .derivations.hermite_gradients.first_step import first_step
    from .derivations.hermite_gradients.sample_complexity import sample_complexity
    from .derivations.hermite_gradients.training import train_by_preprocessed_step
    from .derivations.spiked_random_features.model import SpikedRandomFeatures
    from .derivations.spiked_random_features.solution import Solution
    from .symbolic.activations import Activation, activation
    from .symbolic.dual_activation import dual_activation
    from .symbolic.gaussian import GaussianExpectation, expect
    from .symbolic.gaussian_vector import GaussianVector, correlated_pair
    from .symbolic.hermite import (
        HermiteCoefficients,
        hermite_coefficient,
        hermite_coefficients,
        information_exponent,
    )
    from .symbolic.hermite_expansion import HermiteExpansion
    from .symbolic.parser import parse_expression
    from .symbolic.stein import GradientExpansion, gradient_expansion
    from .symbolic.targets import Target, target

_HOMES = {
    "Activation": "symbolic.activations",
    "Claim": "derivations.claims",
    "GaussianExpectation": "symbolic.gaussian",
    "GaussianVector": "symbolic.gaussian_vector",
    "GradientExpansion": "symbolic.stein",
    "HermiteCoefficients": "symbolic.hermite",
    "HermiteExpansion": "symbolic.hermite_expansion",
    "Solution": "derivations.spiked_random_features.solution",
    "SpikedRandomFeatures": "derivations.spiked_random_features.model",
    "Target": "symbolic.targets",
    "activation": "symbolic.activations",
    "claims": "derivations.claims",
    "correlated_pair": "symbolic.gaussian_vector",
    "dual_activation": "symbolic.dual_activation",
    "expect": "symbolic.gaussian",
    "first_step": "derivations.hermite_gradients.first_step",
    "gradient_expansion": "symbolic.stein",
    "hermite_coefficient": "symbolic.hermite",
    "hermite_coefficients": "symbolic.hermite",
    "information_exponent": "symbolic.hermite",
    "parse_expression": "symbolic.parser",
    "sample_complexity": "derivations.hermite_gradients.sample_complexity",
    "target": "symbolic.targets",
    "train_by_preprocessed_step": "derivations.hermite_gradients.training",
    "verify": "derivations.claims",
}

__all__ = [
    "Activation",
    "Claim",
    "GaussianExpectation",
    "GaussianVector",
    "GradientExpansion",
    "HermiteCoefficients",
    "HermiteExpansion",
    "Solution",
    "SpikedRandomFeatures",
    "Target",
    "activation",
    "claims",
    "correlated_pair",
    "dual_activation",
    "errors",
    "expect",
    "first_step",
    "gradient_expansion",
    "hermite_coefficient",
    "hermite_coefficients",
    "information_exponent",
    "parse_expression",
    "sample_complexity",
    "target",
    "train_by_preprocessed_step",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module(".errors", __name__)
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
