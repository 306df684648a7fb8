"""Known results that a file carries along, so that it can check itself where it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Vectors:
    """Solutions at some points.

    Attributes
    ----------
    points : sequence of mapping from str to float
        Parameters by name.
    results : sequence of mapping from str to (float, float)
        Value and estimated error of each output.
    data : mapping from str to mapping from str to sequence of float
        Columns of the data sets, the same at all points.
    """

    points: Sequence[Mapping[str, float]] = ()
    results: Sequence[Mapping[str, tuple[float, float]]] = ()
    data: Mapping[str, Mapping[str, Sequence[float]]] | None = None

    def rows(
        self, inputs: Sequence[str], outputs: Sequence[str]
    ) -> tuple[list[float], list[float], list[float]]:
        """Return parameters, values and errors of all points, one after the other."""
        return (
            [float(point[name]) for point in self.points for name in inputs],
            [found[name][0] for found in self.results for name in outputs],
            [found[name][1] for found in self.results for name in outputs],
        )

    def columns(self, data: Sequence[tuple[str, Sequence[str]]]) -> list[list[list[float]]]:
        """Return the columns of each data set."""
        return [[list(self.data[d][c]) for c in names] for d, names in data] if self.data else []
