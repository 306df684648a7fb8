"""Reference values: saddle points computed in 40-digit arithmetic, independently of giantstep.

``reference.json`` lies beside this module and is installed with it; its entry ``provenance`` says
how the values were made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures
    from .solution import Solution

SPIKE = ("spike_strength", "bulk_variance", "alignment")


@dataclass(frozen=True)
class ReferenceCase:
    """A saddle point with 25 digits.

    Attributes
    ----------
    name : str
    model : mapping
        Student, teacher, beta and noise variance; step size and alpha0 unless the spike is given.
    alpha, ridge : str
        Sample complexity and ridge penalty as decimal numbers.
    spike : mapping
        Spike strength, bulk variance and alignment.
    values : mapping
        Errors and order parameters by the names of :class:`.solution.Solution`, and
        ``regularised_training_error``, the training error + λβ q2/α.
    """

    name: str
    model: Mapping[str, str]
    alpha: str
    ridge: str
    spike: Mapping[str, str]
    values: Mapping[str, str]

    @property
    def takes_step(self) -> bool:
        """The spike comes from a gradient step."""
        return "step_size" in self.model

    def build(self) -> SpikedRandomFeatures:
        """Return the model of this case."""
        from .model import SpikedRandomFeatures

        arguments: dict[str, Any] = {
            name: value if name in ("student", "teacher") else float(value)
            for name, value in self.model.items()
        }
        if self.takes_step:
            return SpikedRandomFeatures(**arguments)
        spike: dict[str, Any] = {name: float(value) for name, value in self.spike.items()}
        return SpikedRandomFeatures.from_parameters(**arguments, **spike)

    def solve(self, digits: int | None = None) -> Solution:
        """Solve the model of this case."""
        return self.build().solve(
            alpha=float(self.alpha), ridge=float(self.ridge), digits=digits, progress=False
        )

    def deviations(self, solution: Solution) -> dict[str, float]:
        """Return {quantity: relative deviation}; absolute where the reference is zero."""
        import mpmath

        ctx = mpmath.mp.clone()
        ctx.dps = 60
        found = {
            "test_error": solution.test_error,
            "training_error": solution.training_error,
            **solution.order_parameters,
            **solution.conjugates,
        }
        exact = {name: ctx.mpf(value) for name, value in found.items()}
        factor = ctx.mpf(self.ridge) * ctx.mpf(self.model["beta"]) / ctx.mpf(self.alpha)
        exact["regularised_training_error"] = exact["training_error"] + factor * exact["q2"]
        deviations = {}
        for name, text in self.values.items():
            value = ctx.mpf(text)
            deviations[name] = float(abs(exact[name] - value) / (abs(value) or 1))
        return deviations


def reference_document() -> dict[str, Any]:
    """Return the file of reference values as it is."""
    text = Path(__file__).with_name("reference.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def reference_cases() -> tuple[ReferenceCase, ...]:
    """Return all reference cases."""
    return tuple(ReferenceCase(**case) for case in reference_document()["cases"])
