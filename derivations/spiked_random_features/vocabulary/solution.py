"""One solved saddle point of a vocabulary of letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....numeric.networks.layer import FeatureClass
from ....pages import Block, Table
from ....result import Number, Result, quantity
from ....runtime.precision import local_context
from ...kernels.precise import promise

Array = NDArray[np.float64]

MEANING = {
    "V1": "overlap of conditional fluctuations along the inputs",
    "V2": "conditional fluctuations of the rest",
    "q1": "overlap of readouts along the inputs",
    "q2": "squared norm of the readout",
    "m": "overlap of the readout with the mean direction",
    "theta": "overlap with the bulk rows along each spike",
    "psi": "overlap with the bulk rows along each direction of the teacher outside the spikes",
}


@dataclass(frozen=True, repr=False)
class VocabularySolution(Result):
    r"""The saddle point at one sample complexity and ridge penalty.

    Attributes
    ----------
    test_error, training_error : float or mpmath number
        Mean squared error against the noise-free target, and on the training set.
    regularised_training_error : float or mpmath number
        The minimum of the training objective for each sample, (1/n)(sum of squares + λ\|w\|²).
    order_parameters : mapping from str to array
        V1, q1 of shape (K, K), V2, q2, m of shape (K,), theta (k, K) and psi (r, K), for bulk rows
        of unit length: c_a is part of what multiplies them. psi is along the orthonormalised
        parts of the r directions of the teacher outside the spikes, in their order (zero where
        nothing is left), as in simulations.
    classes : tuple of FeatureClass
        The K letters in the order of the arrays.
    alpha, ridge : float
    width : int or None
        Number of neurons for which the errors hold to first order; None: the strict limit.
    strict_limit : VocabularySolution or None
        The limit of infinite width beside a value at finite width; None where this is the limit, or
        where there is none.
    quadrature_error : float
        Estimated error of `test_error`.
    residual : float
        Relative size of the last Newton step.
    iterations, nodes : int
    flatness : float
        Smallest curvature of the training objective in the overlaps m and theta relative to the
        largest; where it is tiny, the letters do nearly the same and m is large or undetermined.
    errors : mapping
        Estimated errors of the numbers, where digits were asked for.
    digits : int or None
        Digits asked for; None for floats.
    """

    _document = "saddle point of letters"
    _where = ("alpha", "ridge", "width")

    test_error: Number = field(metadata=quantity("test error", r"\varepsilon_\mathrm{test}"))
    training_error: Number = field(
        metadata=quantity("training error", r"\varepsilon_\mathrm{train}")
    )
    regularised_training_error: Number = field(
        metadata=quantity("regularised training error", r"\mathcal{L}")
    )
    order_parameters: Mapping[str, Any]
    classes: tuple[FeatureClass, ...]
    alpha: float
    ridge: float
    width: int | None
    strict_limit: VocabularySolution | None
    quadrature_error: float
    residual: float
    iterations: int
    nodes: int
    flatness: float
    errors: Mapping[str, Number] = field(default_factory=dict)
    digits: int | None = None

    @classmethod
    def _read(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(values, Mapping):
            return super()._read(values)
        nothing: dict[str, Any] = {"order_parameters": {}, "classes": ()}
        found = super()._read({k: nothing.get(k, value) for k, value in values.items()})
        number: Any = float
        if found.get("digits") is not None:
            number = local_context(found["digits"]).mpf
        found["order_parameters"] = {
            name: _array(value, number) for name, value in values["order_parameters"].items()
        }
        found["classes"] = tuple(FeatureClass(**one) for one in values["classes"])
        return found

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.digits is not None:
            return f"{self.holds_at}; {promise(self.digits, self.errors, self.estimated())}"
        return (
            f"{self.holds_at}; float with error estimate {self.quadrature_error:.1e}, residual "
            f"{self.residual:.1e}"
        )

    @property
    def holds_at(self) -> str:
        """Whether this is the strict limit or a value at finite width."""
        return holds_at(self.width, len(self.classes))

    def __getattr__(self, name: str) -> Any:
        # Order parameters as attributes: solution.m, solution.V1.
        values = self.__dict__.get("order_parameters", {})
        if name in values:
            return values[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def page(self) -> Iterable[Block]:
        """Return the errors, the letters with their overlaps, and what it rests on."""
        rows = [(row.words, row.text) for row in self.rows()[:2]]
        if self.strict_limit is not None:
            rows.append(("test error, strict limit", f"{self.strict_limit.test_error:.12g}"))
        yield Table(rows)
        letters = [
            (
                f"{c.fraction:.6g}", ", ".join(f"{r:.6g}" for r in c.strengths),
                f"{c.bulk_variance:.6g}", f"{c.bias:.6g}", self.text(m, significant=8),
                self.text(q2, significant=8),
            )
            for c, m, q2 in zip(self.classes, self.m, self.q2, strict=True)
        ]  # fmt: skip
        yield Table(letters, ("fraction", "r", "c", "bias", "m", "q2"))
        yield self.rests_on


def _array(value: Any, number: Any) -> Any:
    """Return nested lists as an array of floats, or of numbers of mpmath."""
    found = np.array(value, dtype=object)
    return np.vectorize(number, otypes=[float if number is float else object])(found)


def holds_at(width: int | None, letters: int) -> str:
    """Return in words where a solution holds: in the strict limit, or at a width."""
    if width is not None:
        return f"width {width}, with the ridge cost of the overlaps m"
    if letters == 1:
        return "strict limit of infinite width"
    return (
        "strict limit of infinite width, where large overlaps m of nearly collinear letters cost "
        "nothing; give width= for a network"
    )
