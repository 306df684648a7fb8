"""Functions of all entries of an array, with their slopes: the activations of finite networks.

Texts come from :mod:`giantstep.symbolic.printing`. One is a module of numba, whose loops LLVM
vectorises; it is compiled at the first call and kept in the cache. The other one is NumPy, for
functions that the first has no vectorised form of, and where nothing can be kept on disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import AssumptionError, CacheError, ParameterError
from ..runtime.generated import defined
from .cache import FileCache

logger = logging.getLogger(__name__)

Array = NDArray[Any]
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


@dataclass(frozen=True)
class ElementwiseFunction:
    """A function of every entry of an array; equal if its texts are.

    Can be sent to other processes and called in several threads at once. Compiled loops hold no
    lock of Python while they run. What an entry becomes depends on nothing but the entry, up to
    the last bits: not on its place, its neighbours or the thread.

    Parameters
    ----------
    plain : str
        NumPy: defines ``values(z)`` and, of a function with a weak derivative, ``slopes(z)`` and
        ``values_and_slopes(z)``.
    kernel : str
        numba: defines the same with the arrays to be filled as further arguments. Empty if the
        function has no vectorised form.
    name : str
        The function as its user wrote it, for messages.
    differentiable : bool
        Whether it has a weak derivative.
    cache_folder : str, optional
        Where machine code is kept, as for :func:`.cache.cache_folder`.
    """

    plain: str
    kernel: str
    name: str
    differentiable: bool
    cache_folder: str | None = None

    def __call__(self, z: ArrayLike) -> Array:
        """Return the values at all entries.

        Parameters
        ----------
        z : array_like of real numbers
            Any shape. Nothing warns of entries that are not finite, nor of values that are not.

        Returns
        -------
        array
            A new array of the same shape: float32 if `z` is that, else float64.

        Raises
        ------
        ParameterError
            If the entries are not real numbers.
        """
        return self._filled("values", z, 1)[0]

    def slopes(self, z: ArrayLike) -> Array:
        """Return the values of the weak derivative at all entries; as for values.

        Raises
        ------
        AssumptionError
            If the function jumps.
        ParameterError
            If the entries are not real numbers.
        """
        self.require_slope()
        return self._filled("slopes", z, 1)[0]

    def values_and_slopes(self, z: ArrayLike) -> tuple[Array, Array]:
        """Return values and slopes in one turn: the same numbers, for little more than either.

        Raises
        ------
        AssumptionError
            If the function jumps.
        ParameterError
            If the entries are not real numbers.
        """
        self.require_slope()
        values, slopes = self._filled("values_and_slopes", z, 2)
        return values, slopes

    def require_slope(self) -> None:
        """Refuse a function that has no slopes, before anything is computed.

        Raises
        ------
        AssumptionError
            If the function jumps.
        """
        if not self.differentiable:
            raise AssumptionError(
                f"activation {self.name!r} has no weak derivative: it jumps\n"
                "  choose a continuous activation, such as erf or tanh for sign"
            )

    def __repr__(self) -> str:
        return f"ElementwiseFunction({self.name!r})"

    def __reduce__(self) -> tuple[type[ElementwiseFunction], tuple[Any, ...]]:
        return ElementwiseFunction, tuple(getattr(self, field.name) for field in fields(self))

    def _filled(self, part: str, z: ArrayLike, count: int) -> list[Array]:
        given = np.asarray(z)
        if given.dtype not in _FLOATS:
            if given.dtype.kind not in "fiub":
                raise ParameterError(
                    f"the argument of {self.name!r} must be an array of real numbers, got "
                    f"{given.dtype.name}"
                )
            given = given.astype(np.float64)
        if self._loops is None:
            return self._evaluated(part, given)
        found = [np.empty(given.shape, given.dtype) for _ in range(count)]
        flat = np.ascontiguousarray(given).reshape(-1)
        getattr(self._loops, part)(flat, *(array.reshape(-1) for array in found))
        return [array[()] for array in found]

    def _evaluated(self, part: str, z: Array) -> list[Array]:
        """Return the arrays that the NumPy text makes; constants are one number in it."""
        function: Callable[[Array], Any] = getattr(self._arrays, part)
        with np.errstate(all="ignore"):
            returned = function(z)
        every = returned if isinstance(returned, tuple) else (returned,)
        return [np.array(np.broadcast_to(values, z.shape), z.dtype)[()] for values in every]

    @cached_property
    def _loops(self) -> ModuleType | None:
        """The compiled loops; None where NumPy computes."""
        if not self.kernel:
            return None
        try:
            return FileCache(self.cache_folder).load_module("elementwise", self.kernel)
        except CacheError as error:
            logger.warning("%r is computed by NumPy, which takes longer: %s", self.name, error)
            return None

    @cached_property
    def _arrays(self) -> Any:
        return defined(self.plain)
