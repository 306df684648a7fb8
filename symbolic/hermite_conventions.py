r"""The three conventions for Hermite coefficients, and the six ways between them.

- **moments** :math:`\mu_k = \mathbb{E}[f\,\mathrm{He}_k]`, the convention of giantstep;
- **He-coefficients** :math:`c_k = \mu_k/k!`, so that :math:`f = \sum_k c_k\,\mathrm{He}_k`;
- **orthonormal coefficients** :math:`\mu_k/\sqrt{k!}`, those in :math:`\mathrm{He}_k/\sqrt{k!}`.

For He_2 itself they are 2, 1 and √2. Every converter takes a sequence (order 0 first), or a
mapping from orders k or multi-indices α to values, with α! = Π α_i! in place of k!. Sequences
become tuples; mappings become dictionaries with the same keys. The orthonormal convention, as in
O'Donnell, *Analysis of Boolean Functions* (2014), section 11.2, brings in square roots; the other
two stay within the field of the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar, overload

import sympy as sp

from ..errors import ParameterError
from .exact_numbers import require_exact
from .hermite_polynomials import checked_order

Key = TypeVar("Key", bound=Hashable)


@overload
def he_coefficients_from_moments(moments: Mapping[Key, Any]) -> dict[Key, sp.Expr]: ...
@overload
def he_coefficients_from_moments(moments: Sequence[Any]) -> tuple[sp.Expr, ...]: ...
def he_coefficients_from_moments(
    moments: Mapping[Key, Any] | Sequence[Any],
) -> dict[Key, sp.Expr] | tuple[sp.Expr, ...]:
    """Return the He-coefficients, moment / α!.

    Examples
    --------
    >>> he_coefficients_from_moments([0, 0, 2])
    (0, 0, 1)
    """
    return _scaled(moments, lambda factorial: sp.Rational(1, factorial), "moments")


@overload
def moments_from_he_coefficients(coefficients: Mapping[Key, Any]) -> dict[Key, sp.Expr]: ...
@overload
def moments_from_he_coefficients(coefficients: Sequence[Any]) -> tuple[sp.Expr, ...]: ...
def moments_from_he_coefficients(
    coefficients: Mapping[Key, Any] | Sequence[Any],
) -> dict[Key, sp.Expr] | tuple[sp.Expr, ...]:
    """Return the moments, α! times the He-coefficient.

    Examples
    --------
    >>> moments_from_he_coefficients({(2, 1): 3})
    {(2, 1): 6}
    """
    return _scaled(coefficients, lambda factorial: sp.Integer(factorial), "coefficients")


@overload
def orthonormal_coefficients_from_moments(moments: Mapping[Key, Any]) -> dict[Key, sp.Expr]: ...
@overload
def orthonormal_coefficients_from_moments(moments: Sequence[Any]) -> tuple[sp.Expr, ...]: ...
def orthonormal_coefficients_from_moments(
    moments: Mapping[Key, Any] | Sequence[Any],
) -> dict[Key, sp.Expr] | tuple[sp.Expr, ...]:
    """Return the orthonormal coefficients, moment / √α!.

    Examples
    --------
    >>> orthonormal_coefficients_from_moments([0, 0, 2])
    (0, 0, sqrt(2))
    """
    return _scaled(moments, lambda factorial: 1 / sp.sqrt(factorial), "moments")


@overload
def moments_from_orthonormal_coefficients(
    coefficients: Mapping[Key, Any],
) -> dict[Key, sp.Expr]: ...
@overload
def moments_from_orthonormal_coefficients(coefficients: Sequence[Any]) -> tuple[sp.Expr, ...]: ...
def moments_from_orthonormal_coefficients(
    coefficients: Mapping[Key, Any] | Sequence[Any],
) -> dict[Key, sp.Expr] | tuple[sp.Expr, ...]:
    """Return the moments, √α! times the orthonormal coefficient.

    Examples
    --------
    >>> moments_from_orthonormal_coefficients([0, 0, sp.sqrt(2)])
    (0, 0, 2)
    """
    return _scaled(coefficients, lambda factorial: sp.sqrt(factorial), "coefficients")


@overload
def he_coefficients_from_orthonormal_coefficients(
    coefficients: Mapping[Key, Any],
) -> dict[Key, sp.Expr]: ...
@overload
def he_coefficients_from_orthonormal_coefficients(
    coefficients: Sequence[Any],
) -> tuple[sp.Expr, ...]: ...
def he_coefficients_from_orthonormal_coefficients(
    coefficients: Mapping[Key, Any] | Sequence[Any],
) -> dict[Key, sp.Expr] | tuple[sp.Expr, ...]:
    """Return the He-coefficients, orthonormal coefficient / √α!.

    Examples
    --------
    >>> he_coefficients_from_orthonormal_coefficients([0, 0, sp.sqrt(2)])
    (0, 0, 1)
    """
    return _scaled(coefficients, lambda factorial: 1 / sp.sqrt(factorial), "coefficients")


@overload
def orthonormal_coefficients_from_he_coefficients(
    coefficients: Mapping[Key, Any],
) -> dict[Key, sp.Expr]: ...
@overload
def orthonormal_coefficients_from_he_coefficients(
    coefficients: Sequence[Any],
) -> tuple[sp.Expr, ...]: ...
def orthonormal_coefficients_from_he_coefficients(
    coefficients: Mapping[Key, Any] | Sequence[Any],
) -> dict[Key, sp.Expr] | tuple[sp.Expr, ...]:
    """Return the orthonormal coefficients, √α! times the He-coefficient.

    Examples
    --------
    >>> orthonormal_coefficients_from_he_coefficients({2: 1})
    {2: sqrt(2)}
    """
    return _scaled(coefficients, lambda factorial: sp.sqrt(factorial), "coefficients")


def _scaled(
    values: Mapping[Key, Any] | Sequence[Any], weight: Callable[[int], sp.Expr], name: str
) -> dict[Key, sp.Expr] | tuple[sp.Expr, ...]:
    """Multiply each value by the weight of the factorial of its order."""
    if isinstance(values, Mapping):
        return {
            key: require_exact(value, f"{name}[{key}]") * weight(_factorial(key, name))
            for key, value in values.items()
        }
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise ParameterError(
            f"{name} must be a sequence or a mapping from orders to values, got {values!r}"
        )
    return tuple(
        require_exact(value, f"{name}[{k}]") * weight(math.factorial(checked_order(k)))
        for k, value in enumerate(values)
    )


def _factorial(key: Hashable, name: str) -> int:
    """Return k! or α!."""
    orders = key if isinstance(key, tuple) else (key,)
    return math.prod(
        math.factorial(checked_order(order, f"of the key {key!r} of {name}")) for order in orders
    )
