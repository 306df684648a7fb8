"""What a convex readout asks of its features: of one kind of rows, or of several letters."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....errors import ParameterError
from ....numeric.kernel_arrays import KernelArrays
from ....numeric.saddle_point_solver import solve_rows
from ...sensitivities import Directions
from ..arguments import PUBLISHED
from ..bulk_law import BulkData
from ..differentiation import directions
from ..model import SpikedRandomFeatures
from ..precise import exact_parameters
from ..spike import SpikeParameters
from ..vocabulary.arguments import VocabularyParameters, orthogonal_alignment
from ..vocabulary.kernel import (
    beyond_published,
    letter_directions,
    letter_unknowns,
    letter_values,
    require_direct_letters,
    require_written_out,
)
from ..vocabulary.model import MODEL as VOCABULARY, VocabularyFeatures
from ..vocabulary.solution import model_attributes
from ..vocabulary.solving import solve_at

Array = NDArray[np.float64]


# Of the node, for first values.
_ROUGH_STEP = 0.35
# Of Q_1, relative: what rounding leaves of a difference.
_SMALLEST_OVERLAP = 1e-12


@dataclass(frozen=True)
class OneKind:
    """One kind of rows, with the equations that the paper prints.

    The teacher of the features is what the square loss sees of the labels.
    """

    features: SpikedRandomFeatures

    @property
    def parameters(self) -> SpikeParameters:
        """Spike strength, bulk variance and alignment."""
        return self.features.spike

    @property
    def bulk(self) -> BulkData:
        """That of the model."""
        return self.features._bulk

    @property
    def case(self) -> Mapping[str, Any]:
        """Special cases of the spike, and the law of the bulk."""
        spike = self.features.spike
        return {
            "unspiked": spike.spike_strength == 0,
            "aligned": spike.orthogonal_alignment == 0,
            "bulk": self.bulk.equations,
        }

    @property
    def values(self) -> Mapping[str, float]:
        """r, c, γ and ρ."""
        spike = self.features.spike
        return {
            "spike_strength": spike.spike_strength,
            "bulk_variance": spike.bulk_variance,
            "alignment": spike.alignment,
            "orthogonal_alignment": spike.orthogonal_alignment,
        }

    @property
    def attributes(self) -> dict[str, Any]:
        """Arguments of the model."""
        # A law of the bulk is in the model.
        given = {
            k: v for k, v in self.features.parameters().items() if isinstance(v, str | int | float)
        }
        return {k: int(v) if isinstance(v, bool) else v for k, v in given.items()}

    @cached_property
    def _square(self) -> SpikedRandomFeatures:
        """The features by their parameters, in the strict limit."""
        given, spike = self.features, self.features.spike
        return SpikedRandomFeatures.from_parameters(
            given.student,
            given.teacher,
            spike_strength=spike.spike_strength,
            bulk_variance=spike.bulk_variance,
            alignment=spike.alignment,
            beta=given.beta,
            noise_variance=given.noise_variance,
            bulk=given.bulk,
            cache_folder=given.cache_folder,
        )

    @cached_property
    def _arrays(self) -> KernelArrays:
        """One coarse rule of the square loss: its solutions are first values only."""
        kernel = self._square._kernel
        values = self._square._parameter_values()
        tables = [np.float64(values[name]) for name in kernel.table_parameters]
        found = KernelArrays(kernel, tables, self.bulk.arrays)
        # Labels may jump in the node; first values need not know how steeply.
        return found.single(2, min(0, math.floor(math.log2(4 * found.step / _ROUGH_STEP))))

    def start(self, alphas: Array, ridge: float) -> Mapping[str, Array]:
        """Return the unknowns of the square loss by name, and q1 as it has them, in one batch."""
        kernel, values = self._square._kernel, self._square._parameter_values()
        columns: dict[str, Any] = {**values, "alpha": alphas, "ridge": ridge}
        points = [np.broadcast_to(columns[name], alphas.shape) for name in kernel.parameters]
        rows = np.stack(points, axis=1).astype(float)
        found = dict(solve_rows(kernel, self._arrays, rows, rtol=1.0).values)
        return found | {"q1_orthogonal": _left_of(found["q1"], found["psi"] ** 2)}

    def directions(self, *, exact: bool) -> Directions:
        """Return how parameters of the equations move with those of the features."""
        return directions(self.features, exact=exact)

    def exact(self, ctx: Any) -> dict[str, Any]:
        """Return the parameters, those of a step to any number of digits."""
        return exact_parameters(self.features, ctx)


@dataclass(frozen=True)
class SeveralKinds:
    """Several letters, with the closed form of their equations."""

    features: VocabularyFeatures

    @property
    def parameters(self) -> VocabularyParameters:
        """The classes of rows and the alignment."""
        return self.features.parameters

    @property
    def bulk(self) -> BulkData:
        """None: letters have their equations in closed form."""
        return BulkData(None)

    @property
    def case(self) -> Mapping[str, Any]:
        """The number of letters and their rows; equations of letters have a width always."""
        found = self.parameters
        return {
            "letters": len(self.parameters.classes),
            "bulk": self.features.bulk,
            "aligned": orthogonal_alignment(found.overlaps) == 0,
            "finite_width": True,
            "correlated_norms": bool(found.norm_overlaps),
            "stretched": bool(found.stretches),
        }

    @property
    def values(self) -> Mapping[str, float]:
        """γ and ρ, and π, r, c and b of every letter."""
        overlaps = self.parameters.overlaps
        return {
            **letter_values(self.parameters),
            **beyond_published(self.parameters),
            "inverse_width": 0.0 if self.features.width is None else 1.0 / self.features.width,
            "alignment": float(overlaps[0, 0]),
            "orthogonal_alignment": orthogonal_alignment(overlaps),
        }

    @property
    def attributes(self) -> dict[str, Any]:
        """Student, teacher and bulk; the letters are in the model."""
        found = model_attributes(self.features)
        del found["model"]
        return found

    def start(self, alphas: Array, ridge: float) -> Mapping[str, Array]:
        """Solve the square loss, point by point."""
        count = len(self.parameters.classes)
        rows = [self._start(float(alpha), ridge, count) for alpha in alphas]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _start(self, alpha: float, ridge: float, count: int) -> dict[str, float]:
        solution = solve_at(self.features, alpha, ridge, self.features.width)
        found = letter_unknowns(solution.order_parameters, count)
        for a in range(1, count + 1):
            for b in range(a, count + 1):
                whole, part = found[f"q1_{a}{b}"], found[f"psi_{a}"] * found[f"psi_{b}"]
                found[f"Q1_{a}{b}"] = _left_of(whole, part) if a == b else whole - part
        return found

    def directions(self, *, exact: bool) -> Directions:
        """Return those of the model."""
        return letter_directions(self.features, exact=exact)

    def exact(self, ctx: Any) -> dict[str, Any]:
        """Return the parameters, floats as the decimals that they print as."""
        require_direct_letters(self.features)
        found = {**self.values, "beta": self.features.beta}
        return {name: ctx.mpf(repr(value)) for name, value in found.items()}


Rows: TypeAlias = OneKind | SeveralKinds


def rows_of(features: object, width: int | None = None) -> Rows:
    """Return what a readout of a width asks of features.

    Raises
    ------
    ParameterError
        If they are no features, or of letters that have no equations written out.
    """
    if isinstance(features, SpikedRandomFeatures):
        if features.leading_order != PUBLISHED:
            letters = VocabularyFeatures.of_one_kind(features)
            if letters.parameters.published:
                return OneKind(replace(features, leading_order=PUBLISHED))
            # In closed form what goes beyond the published terms is in predictions alone.
            return rows_of(letters, width)
        direct = features.direct_parameters
        if direct is not None and (direct.norm_overlap or any(direct.stretch)):
            raise ParameterError(
                "features have a norm overlap or a stretch, which are known for the square loss "
                "only; leave them out, or use solve() of the features"
            )
        return OneKind(features)
    if isinstance(features, VocabularyFeatures):
        require_written_out(features)
        return SeveralKinds(features.at(width=width))
    raise ParameterError(
        f"features must be a SpikedRandomFeatures or a VocabularyFeatures model, got {features!r}"
    )


def features_from_json(given: Mapping[str, Any]) -> SpikedRandomFeatures | VocabularyFeatures:
    """Return the features of a document, by the model that it names.

    Raises
    ------
    ParameterError
        If it is none of these.
    """
    letters = isinstance(given, Mapping) and given.get("model") == VOCABULARY
    return (VocabularyFeatures if letters else SpikedRandomFeatures).from_json(json.dumps(given))


def _left_of(whole: Any, part: Any) -> Any:
    """Return the variance that is left, positive."""
    return np.maximum(whole - part, _SMALLEST_OVERLAP * (1 + whole))
