"""Check numbers that a user gives; every refusal names the argument and what would be right."""

from __future__ import annotations

import math
import numbers
from collections.abc import Container, Iterable

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError

LEAST_MODERATE = 1e-15
MOST_SEEDS = 10**6
LARGEST_WHOLE = 2**63 - 1
"""Of the integers of arrays and files, in which all whole numbers but seeds end."""
LARGEST_SEED = 2**128 - 1
_POWERS = {LARGEST_WHOLE: "2**63 - 1", LARGEST_SEED: "2**128 - 1"}


def real_number(name: str, value: object) -> float:
    """Return `value` as a float; refuse a bool, what is not a number, and NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise ParameterError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise ParameterError(f"{name} is too large for a float (more than 1.8e308)") from None
    if math.isnan(number):
        raise ParameterError(f"{name} must be a number, got nan")
    return number


def finite_number(name: str, value: object) -> float:
    """Return a finite number as a float; otherwise raise ParameterError naming the argument."""
    number = real_number(name, value)
    if not math.isfinite(number):
        raise ParameterError(f"{name} must be finite, got {number}")
    return number


def positive_number(name: str, value: object) -> float:
    """Return `value` as a float; refuse what is not positive and finite."""
    number = real_number(name, value)
    if not 0 < number < math.inf:
        raise ParameterError(f"{name} must be positive and finite, got {value}")
    return number


def moderate_number(name: str, value: object) -> float:
    """Return `value` as a float; refuse what is not between 1e-15 and 1e15.

    For analyses that difference, differentiate or trace curves: farther out the digits of a float
    are rounding errors there, which they would chase.
    """
    number = positive_number(name, value)
    if not LEAST_MODERATE <= number <= 1 / LEAST_MODERATE:
        raise ParameterError(
            f"{name} must be between {LEAST_MODERATE:g} and {1 / LEAST_MODERATE:g} here, got "
            f"{number:g}: farther out results would be rounding errors"
        )
    return number


def nonnegative_number(name: str, value: object) -> float:
    """Return `value` as a float; refuse what is negative or infinite."""
    number = real_number(name, value)
    if not 0 <= number < math.inf:
        raise ParameterError(f"{name} must be >= 0 and finite, got {value}")
    return number


def whole_number(name: str, value: object, minimum: int = 1, maximum: int = LARGEST_WHOLE) -> int:
    """Return `value` as an int; refuse what is not a whole number from `minimum` to `maximum`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise ParameterError(f"{name} must be a whole number, got {value!r}")
    if value < minimum:
        raise ParameterError(f"{name} must be >= {minimum}, got {value}")
    number = int(value)
    if number > maximum:
        shown = _POWERS.get(maximum, maximum)
        raise ParameterError(f"{name} must be at most {shown}, and is larger")
    return number


def checked_seed(seed: object) -> int:
    """Return the seed of a random generator as a number, which results can tell.

    Parameters
    ----------
    seed : int, SeedSequence or Generator
        NumPy's own seeds have 128 bits. A sequence without a key stands for the number that it was
        made of; another one, and a generator, from which is drawn, for one of 63 bits.

    Examples
    --------
    >>> checked_seed(np.random.SeedSequence(7)), checked_seed(np.random.default_rng(7))
    (7, 5765488047046174021)
    """
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**63))
    if isinstance(seed, np.random.SeedSequence):
        if isinstance(seed.entropy, int) and not seed.spawn_key:
            return whole_number("seed", seed.entropy, 0, LARGEST_SEED)
        return int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1))
    return whole_number("seed", seed, 0, LARGEST_SEED)


def is_one_of(value: object, known: Container[str]) -> bool:
    """Whether a value is one of the known names; what is no text, such as an array, is none."""
    return isinstance(value, str) and value in known


def checked_switch(name: str, value: object) -> bool:
    """Return True or False.

    Raises
    ------
    ParameterError
        If it is anything else.
    """
    # "no" and "False" are true in Python; nobody means that.
    if isinstance(value, bool):
        return value
    # Booleans of numpy; the integers 0 and 1 are no answer to yes or no either.
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise ParameterError(f"{name} must be True or False, got {value!r}")


def positive_array(name: str, values: object) -> NDArray[np.float64]:
    """Return a number or a sequence of numbers as an array; all positive and finite."""
    if isinstance(values, str):
        raise ParameterError(f"{name} must be a number or a sequence of numbers, got {values!r}")
    # Long columns are checked as a whole: a Python call for each number costs as much as a solve.
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.dtype.kind in "fiu" and array.ndim <= 1 and array.size:
            return _all_positive(name, np.atleast_1d(array).astype(float))
        values = array.ravel().tolist() if array.ndim <= 1 else list(array)
    items = list(values) if isinstance(values, Iterable) else [values]
    if not items:
        raise ParameterError(f"{name} must hold at least one number, such as [0.5, 1, 2]")
    if set(map(type, items)) == {float}:
        return _all_positive(name, np.array(items))
    return np.array([positive_number(name, v) for v in items])


def positive_pairs(
    names: tuple[str, str], first: object, second: object
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two arrays of positive numbers of one length; either may be one number.

    Raises ParameterError.
    """
    one, other = (
        np.atleast_1d(positive_array(name, x))
        for name, x in zip(names, (first, second), strict=True)
    )
    if len(one) != len(other) and 1 not in (len(one), len(other)):
        raise ParameterError(
            f"{names[0]} and {names[1]} must have one length, or be numbers, got {len(one)} and "
            f"{len(other)} values"
        )
    one, other = np.broadcast_arrays(one, other)
    return one, other


def real_array(name: str, values: object) -> NDArray[np.float64]:
    """Return finite real numbers, at least one, as an array of their own shape."""
    result = complex_array(name, values)
    if result.imag.any():
        raise ParameterError(f"{name} must be real, got {values!r}")
    if not result.size:
        raise ParameterError(f"{name} must hold at least one number")
    return result.real


def complex_array(name: str, z: object) -> NDArray[np.complex128]:
    """Return finite numbers as an array of complex ones."""
    try:
        result = np.asarray(z)
        if result.dtype.kind not in "fiuc":
            raise TypeError
        result = result.astype(complex)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number or an array of numbers, got {z!r}") from None
    if not np.isfinite(result).all():
        raise ParameterError(f"{name} must be finite")
    return result


def _all_positive(name: str, array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `array`; refuse its first element that is not positive and finite."""
    good = (array > 0) & (array < math.inf)
    if not good.all():
        positive_number(name, float(array[np.argmin(good)]))
    return array
