"""Test vectors that every target has to reproduce: systems, parameters, data and 25 digits.

Mean-field models: ``vectors.json``, made by ``make_vectors.py`` with mpmath alone, independently of
giantstep. Spiked random features: ``reference.json`` of that package, 40-digit arithmetic
independent of giantstep; see its entry ``provenance``.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import mpmath

from giantstep.derivations.mean_field.gaussian_covariates import gaussian_covariates
from giantstep.derivations.mean_field.logistic_regression import margin_classifier
from giantstep.derivations.mean_field.ridge_regression import ridge_regression
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick
from giantstep.derivations.spiked_random_features.published import ReferenceCase, reference_cases
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

# Smooth with closed forms; without; kinked with a mean; a tiny ridge; a jump; noise, a polynomial.
SPIKED = ("A1", "A2, alpha=1.6", "A5", "A6", "A7", "A10")


@dataclass(frozen=True)
class Vector:
    """One system at one point, with its solution.

    Attributes
    ----------
    name : str
    system : callable
        Returns the SaddlePointSystem.
    parameters : mapping from str to str
        Decimal numbers by code names.
    data : mapping or None
        ``{"spectrum": {column: list of decimal numbers}}``.
    expected : mapping from str to str
        25 digits of outputs and unknowns by code names; exact where the text is "0.0".
    """

    name: str
    system: Callable[[], SaddlePointSystem]
    parameters: Mapping[str, str]
    data: Mapping[str, Mapping[str, list[str]]] | None
    expected: Mapping[str, str]

    @property
    def floats(self) -> dict[str, float]:
        """The parameters as floats."""
        return {name: float(text) for name, text in self.parameters.items()}

    @property
    def float_data(self) -> dict[str, dict[str, list[float]]] | None:
        """The data as floats."""
        if self.data is None:
            return None
        return {
            table: {column: [float(x) for x in values] for column, values in columns.items()}
            for table, columns in self.data.items()
        }

    def deviations(self, found: Mapping[str, object]) -> dict[str, float]:
        """Return {name: relative deviation} of computed values; absolute where zero is exact."""
        with mpmath.workdps(60):
            exact = {name: mpmath.mpf(text) for name, text in self.expected.items()}
            return {
                name: float(abs(mpmath.mpf(found[name]) - value) / (abs(value) or 1))
                for name, value in exact.items()
                if name in found
            }

    def __str__(self) -> str:
        return self.name


_SYSTEMS: dict[str, Callable[[], SaddlePointSystem]] = {
    "ridge_regression": ridge_regression,
    "gaussian_covariates": gaussian_covariates,
    "matched_covariates": lambda: gaussian_covariates(matched=True),
    "logistic": lambda: margin_classifier("logistic"),
    "hinge": lambda: margin_classifier("hinge"),
    "square": lambda: margin_classifier("square"),
    "sherrington_kirkpatrick": sherrington_kirkpatrick,
}


def _mean_field() -> list[Vector]:
    text = Path(__file__).with_name("vectors.json").read_text(encoding="utf-8")
    return [
        Vector(
            name=v["name"],
            system=_SYSTEMS[v["system"]],
            parameters=v["parameters"],
            data=None if v["data"] is None else {"spectrum": v["data"]},
            expected=v["expected"],
        )
        for v in json.loads(text)["vectors"]
    ]


def _spiked(case: ReferenceCase) -> Vector:
    with mpmath.workdps(30):
        alignment = mpmath.mpf(case.spike["alignment"])
        orthogonal = mpmath.nstr(mpmath.sqrt(1 - alignment**2), 25)
    return Vector(
        name=f"spiked {case.name}",
        system=lambda: case.build().symbolic().system,
        parameters={
            "alpha": case.alpha,
            "beta": case.model["beta"],
            "ridge": case.ridge,
            "noise_variance": case.model["noise_variance"],
            **{name: case.spike[name] for name in ("spike_strength", "bulk_variance", "alignment")},
            "orthogonal_alignment": orthogonal,
        },
        data=None,
        expected={k: v for k, v in case.values.items() if k != "regularised_training_error"},
    )


MEAN_FIELD = _mean_field()
SPIKED_VECTORS = [_spiked(case) for case in reference_cases() if case.name in SPIKED]
VECTORS = [*MEAN_FIELD, *SPIKED_VECTORS]
