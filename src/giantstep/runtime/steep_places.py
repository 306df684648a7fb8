"""Where integrands vary on a smaller width than elsewhere, for grids that crowd there."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Steep:
    """Places of the node around which integrands vary on a smaller width than elsewhere.

    Attributes
    ----------
    places : tuple of float
    width : float
    elsewhere : tuple of float
        Parameters of the tables with which nothing is steep.
    inner : float
        Width of integrands in each inner node, if it is smaller than that of tables.
    """

    places: tuple[float, ...]
    width: float
    elsewhere: tuple[float, ...]
    inner: float = math.inf
