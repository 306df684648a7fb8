"""giantstep: symbolic-numeric theory of feature learning in the first giant gradient steps.

Public names are imported on first use, so that ``import giantstep`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .derivations.claims import Claim, claims, verify
    from .derivations.spiked_random_features.model import SpikedRandomFeatures
    from .derivations.spiked_random_features.solution import Solution
    from .symbolic.activations import Activation, activation
    from .symbolic.gaussian import GaussianExpectation, expect

_HOMES = {
    "Activation": "symbolic.activations",
    "Claim": "derivations.claims",
    "GaussianExpectation": "symbolic.gaussian",
    "Solution": "derivations.spiked_random_features.solution",
    "SpikedRandomFeatures": "derivations.spiked_random_features.model",
    "activation": "symbolic.activations",
    "claims": "derivations.claims",
    "expect": "symbolic.gaussian",
    "verify": "derivations.claims",
}

__all__ = [
    "Activation",
    "Claim",
    "GaussianExpectation",
    "Solution",
    "SpikedRandomFeatures",
    "activation",
    "claims",
    "errors",
    "expect",
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
