"""One solved saddle point of a vocabulary of letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....numeric.feature_setup import FeatureClass
from ....pages import Block, Page, Table

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
class VocabularySolution(Page):
    r"""The saddle point at one sample complexity and ridge penalty.

    Attributes
    ----------
    test_error, training_error : float
        Mean squared error against the noise-free target, and on the training set.
    regularised_training_error : float
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
    """

    test_error: float
    training_error: float
    regularised_training_error: float
    order_parameters: Mapping[str, Array]
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

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
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
        errors = {"test error": self.test_error, "training error": self.training_error}
        if self.strict_limit is not None:
            errors["test error, strict limit"] = self.strict_limit.test_error
        yield Table([(name, f"{value:.12g}") for name, value in errors.items()])
        letters = [
            (
                f"{c.fraction:.6g}", ", ".join(f"{r:.6g}" for r in c.strengths),
                f"{c.bulk_variance:.6g}", f"{c.bias:.6g}", f"{m:.8g}", f"{q2:.8g}",
            )
            for c, m, q2 in zip(self.classes, self.m, self.q2, strict=True)
        ]  # fmt: skip
        yield Table(letters, ("fraction", "r", "c", "bias", "m", "q2"))
        yield self.rests_on

    def __repr__(self) -> str:
        return (
            f"VocabularySolution(alpha={self.alpha:g}, ridge={self.ridge:g}, width={self.width}, "
            f"test_error={self.test_error:.10g})"
        )


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
