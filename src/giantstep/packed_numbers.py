"""Numbers of local mpmath contexts, which cannot be pickled, as tuples that can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class PackedNumber(NamedTuple):
    """Sign, mantissa, exponent and number of bits."""

    parts: tuple[int, int, int, int]


class PackedArray(NamedTuple):
    """Shape and entries of an array of numbers."""

    shape: tuple[int, ...]
    entries: tuple[Any, ...]


def packed(value: Any) -> Any:
    """Return a value with all numbers of mpmath in it packed; other values stay."""
    if isinstance(value, Mapping):
        return {name: packed(v) for name, v in value.items()}
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(packed, value))
    if str(getattr(value, "dtype", "")) == "object":
        return PackedArray(value.shape, tuple(map(packed, value.ravel().tolist())))
    result = getattr(value, "_mpf_", None)
    if result is None:
        return value
    sign, mantissa, exponent, bits = result
    return PackedNumber((int(sign), int(mantissa), int(exponent), int(bits)))


def unpacked(value: Any, ctx: Any) -> Any:
    """Return what was packed, as numbers of an mpmath context."""
    if isinstance(value, PackedNumber):
        sign, mantissa, exponent, _ = value.parts
        if not mantissa:
            # Zero and infinities have no mantissa.
            return ctx.make_mpf(value.parts)
        return ctx.ldexp(ctx.mpf(-mantissa if sign else mantissa), exponent)
    if isinstance(value, PackedArray):
        import numpy as np

        result = np.empty(len(value.entries), dtype=object)
        result[:] = [unpacked(v, ctx) for v in value.entries]
        return result.reshape(value.shape)
    if isinstance(value, Mapping):
        return {name: unpacked(v, ctx) for name, v in value.items()}
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(unpacked(v, ctx) for v in value)
    return value


class SentWithDigits:
    """Something that can be pickled with its numbers of mpmath, of which `digits` were asked for.

    Without an attribute `digits`, or where it is None, all numbers are floats.
    """

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if state.get("digits") is None:
            return state
        return {name: packed(value) for name, value in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state.get("digits") is not None:
            from .runtime.precision import local_context

            ctx = local_context(state["digits"])
            state = {name: unpacked(value, ctx) for name, value in state.items()}
        self.__dict__.update(state)
