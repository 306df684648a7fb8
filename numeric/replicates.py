"""Results of independent networks: means over them and standard errors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError

Array = NDArray[np.float64]


class Replicates:
    """Results whose arrays hold one network in each row; subclasses name their quantities."""

    __slots__ = ()

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the arrays with one row for each network."""
        raise NotImplementedError

    def mean(self, quantity: str = "test_error") -> Array:
        """Mean over the networks.

        Raises
        ------
        ParameterError
            If there is no such quantity.
        """
        return np.asarray(self._values(quantity).mean(axis=0))

    def standard_error(self, quantity: str = "test_error") -> Array:
        """Standard error of :meth:`mean`.

        Raises
        ------
        ParameterError
            If there is no such quantity, or one network only.
        """
        values = self._values(quantity)
        if len(values) < 2:
            raise ParameterError("one network has no standard error\n  use seeds >= 2")
        return np.asarray(values.std(axis=0, ddof=1) / math.sqrt(len(values)))

    def _values(self, quantity: str) -> Array:
        if quantity not in self.quantities:
            raise ParameterError(f"no quantity {quantity!r}\n  known: {', '.join(self.quantities)}")
        return np.asarray(getattr(self, quantity))
