"""Known results that a file carries along, so that it can check itself where it is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Vectors:
    """Parameters of some points, value and error of each output there, and data for all of them."""

    points: Sequence[Mapping[str, float]] = ()
    results: Sequence[Mapping[str, tuple[float, float]]] = ()
    data: Mapping[str, Mapping[str, Sequence[float]]] | None = None

    def texts(
        self,
        inputs: Sequence[str],
        outputs: Sequence[str],
        listed: Callable[[Sequence[float]], str],
    ) -> dict[str, str]:
        """Return parameters, values and errors of all points, one after the other, as text."""
        return {
            "points": listed([float(point[name]) for point in self.points for name in inputs]),
            "expected": listed([found[name][0] for found in self.results for name in outputs]),
            "allowed": listed([found[name][1] for found in self.results for name in outputs]),
            "count": str(len(self.points)),
        }

    def columns(self, data: Sequence[tuple[str, Sequence[str]]]) -> list[list[list[float]]]:
        """Return the columns of each data set."""
        return [[list(self.data[d][c]) for c in names] for d, names in data] if self.data else []
