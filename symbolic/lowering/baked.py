"""Tables of one set of parameters as numbers, to be written into a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEVELS = ("fine", "medium", "coarse")


@dataclass(frozen=True)
class BakedTables:
    """The arrays of three rules at fixed values of the parameters that the tables depend on.

    Attributes
    ----------
    parameters : mapping from str to float
        Values of these parameters; they become constants of the kernel.
    levels : tuple of mapping from str to sequence of float
        Fine, medium and coarse rule, each with about half the nodes of the one before: the arrays
        ``weight``, the node and all tables by name.
    """

    parameters: Mapping[str, float]
    levels: tuple[Mapping[str, Sequence[float]], ...]

    def __post_init__(self) -> None:
        if len(self.levels) != len(LEVELS):
            raise ValueError(f"levels must be {', '.join(LEVELS)}, got {len(self.levels)} of them")
        for level in self.levels:
            sizes = {len(column) for column in level.values()}
            if len(sizes) != 1:
                raise ValueError("all arrays of a level must have the same length")
