"""Known values of vocabularies, with the digits to which they are known.

How they were computed is not recorded. For the two letters of the first entries, an iteration of
the equations for M and δ of :mod:`.physics`, which solutions here do without, gives the same
errors and overlaps m.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reference:
    """Known values of one model at one point.

    Attributes
    ----------
    name : str
    model : mapping
        Arguments of :meth:`.model.VocabularyFeatures.from_parameters`.
    alpha, ridge : float
    width : int or None
    values : mapping
        Errors and order parameters; digits as given are exact to one unit in the last place.
    tolerance : float
        That unit, absolute.
    """

    name: str
    model: Mapping[str, Any]
    alpha: float
    ridge: float
    width: int | None
    values: Mapping[str, Any]
    tolerance: float


_TWO = {
    "student": "erf", "teacher": "sin", "spike_strengths": (1.2, -0.6),
    "bulk_variances": (1.1, 1.02), "fractions": (0.4, 0.6), "alignment": 0.9, "beta": 0.7,
}  # fmt: skip
_CUBIC = {
    "student": "tanh", "teacher": "He(3, z)/6", "spike_strengths": (1.5, 0.5),
    "bulk_variances": (1.2, 1.0), "fractions": (0.5, 0.5), "alignment": 1.0,
    "noise_variance": 0.05,
}  # fmt: skip
_BIASES = {
    "student": "erf", "teacher": "He(3, z)/6", "spike_strengths": (1.0, 1.0),
    "bulk_variances": (1.0, 1.0), "fractions": (0.5, 0.5), "biases": (0.8, -0.8),
    "alignment": 0.9,
}  # fmt: skip
_ORTHONORMAL = {
    "student": "tanh", "teacher": "sin", "spike_strengths": (1.5, 0.5),
    "bulk_variances": (1.2, 1.0), "fractions": (0.5, 0.5), "alignment": 1.0,
    "bulk": "orthonormal",
}  # fmt: skip

REFERENCES = (
    Reference("two letters, limit", _TWO, 2, 0.1, None, {
        "test_error": 0.079815372843156, "training_error": 0.039913936928478,
    }, 1e-15),
    Reference("order parameters of two letters, limit", _TWO, 2, 0.1, None, {
        "m": (1.9690301, 1.5311958), "theta": ((-0.00123007, 0.0010268),),
        "psi": ((0.09767557, 0.12597811),),
        "q1": ((0.0725127, -0.00917747), (-0.00917747, 0.07805495)),
        "q2": (0.07881556, 0.09493633),
        "V1": ((0.66486304, -0.18067639), (-0.18067639, 0.71620315)),
        "V2": (0.79507718, 0.99295966),
    }, 1.1e-7),
    Reference("two letters, p = 600", _TWO, 2, 0.1, 600, {
        "test_error": 0.083574729754509, "training_error": 0.042156431578025,
    }, 1e-15),
    Reference("overlaps of two letters, p = 600", _TWO, 2, 0.1, 600, {
        "m": (1.49085067, 0.78296703),
    }, 1e-8),
    Reference("cubic teacher, limit", _CUBIC, 1.5, 0.05, None, {"test_error": 0.0767}, 1e-4),
    Reference("cubic teacher, limit, norms", _CUBIC, 1.5, 0.05, None, {"q2": (0.105, 0.112)}, 1e-3),
    Reference("cubic teacher, p = 600", _CUBIC, 1.5, 0.05, 600, {
        "test_error": 0.1115,
    }, 1e-4),
    Reference("cubic teacher, p = 600, norms", _CUBIC, 1.5, 0.05, 600, {
        "q2": (0.181, 0.280),
    }, 1e-3),
    Reference("two biases", _BIASES, 1.5, 0.05, None, {
        "test_error": 0.2278947992101, "training_error": 0.1074934868286,
    }, 1e-13),
    Reference("two biases, overlaps", _BIASES, 1.5, 0.05, None, {
        "m": (0.06150608, 0.06150608),
    }, 1e-8),
    Reference("orthonormal rows, limit", _ORTHONORMAL, 1.5, 0.05, None, {
        "test_error": 0.0050606, "training_error": 0.0017620,
    }, 1e-7),
    Reference("orthonormal rows, p = 600", _ORTHONORMAL, 1.5, 0.05, 600, {
        "test_error": 0.01421, "training_error": 0.00437,
    }, 1e-5),
    Reference("orthonormal rows, p = 600, norms", _ORTHONORMAL, 1.5, 0.05, 600, {
        "q2": (0.0191, 0.0156),
    }, 1e-4),
)  # fmt: skip
