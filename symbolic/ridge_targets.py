r"""Targets that are sums of functions of one linear form each.

.. math:: f(x) = \sum_k c_k\, \sigma_k(\langle w_k, x\rangle)

The directions :math:`w_k` may be of any length, not orthogonal and linearly dependent; the argument
of :math:`\sigma_k` is :math:`\langle w_k, x\rangle` as given, a Gaussian variable of variance
:math:`|w_k|^2`. Only for unit vectors are the Hermite coefficients of :math:`\sigma_k` those of the
target: :math:`C_j = \sum_k c_k \mu_j(\sigma_k)\, w_k^{\otimes j}`, in which dependent directions
can cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import sympy as sp

from ..errors import ParameterError
from ._tokens import shorten
from .activations import Activation, activation
from .exact_numbers import require_exact
from .parser import MAX_VARIABLES
from .targets import Target, target
from .zero_test import is_exactly_zero

Function: TypeAlias = str | sp.Expr | Activation


def ridge_target(
    functions: Function | Sequence[Function],
    directions: Sequence[Sequence[sp.Expr | int]] | sp.MatrixBase,
    coefficients: Sequence[sp.Expr | int] | None = None,
) -> Target:
    r"""Return :math:`\sum_k c_k\,\sigma_k(\langle w_k, x\rangle)` as a target in x1, x2, …

    Parameters
    ----------
    functions : str, Expr or Activation, or a sequence of them
        σ_k, as :func:`.activations.activation` takes them; a single one is that of all directions.
    directions : sequence of sequences, or Matrix
        Rows w_k of r exact numbers each. They are not normalised.
    coefficients : sequence of exact numbers, optional
        c_k; 1 for all if left out.

    Returns
    -------
    Target
        In r coordinates.

    Raises
    ------
    ParameterError
        If there are no directions, they are of different lengths, one is zero or holds a float, or
        there are not as many functions or coefficients as directions.
    AssumptionError
        If :math:`\mathbb{E} f^2` is not finite.
    UndecidedError
        If it cannot be decided whether an entry of a direction is zero.

    Examples
    --------
    >>> half, root = sp.Rational(1, 2), sp.sqrt(3) / 2
    >>> f = ridge_target("z + He(2, z)", [[1, 0], [-half, root], [-half, -root]])
    >>> f.hermite_tensor(1), f.hermite_tensor(2)
    ([0, 0], [[3, 0], [0, 3]])
    >>> ridge_target(["erf", "tanh"], [[1, 0], [1, 2]], [1, -3])
    Target('-3*tanh(x1 + 2*x2) + erf(x1)', variables x1, x2)
    """
    rows = _checked_directions(directions)
    many = not isinstance(functions, str | sp.Basic | Activation)
    listed = _listed(functions, "functions") if many else [functions] * len(rows)
    given = [1] * len(rows) if coefficients is None else _listed(coefficients, "coefficients")
    for values, name in ((listed, "functions"), (given, "coefficients")):
        if len(values) != len(rows):
            raise ParameterError(
                f"{name} are {len(values)} and directions {len(rows)}; give one for each direction"
            )
    variables = sp.symbols(f"x1:{len(rows[0]) + 1}", real=True)
    terms = []
    for k, (function, row, coefficient) in enumerate(zip(listed, rows, given, strict=True)):
        name = f"functions[{k}]" if many else "functions"
        if isinstance(function, sp.Expr):
            require_exact(function, name)
        form = sp.Add(*(w * x for w, x in zip(row, variables, strict=True)))
        factor = _real_number(coefficient, f"coefficients[{k}]")
        terms.append(factor * activation(function, argument=name)(form))
    return target(sp.Add(*terms), variables)


def _checked_directions(directions: Any) -> list[tuple[sp.Expr, ...]]:
    rows = directions.tolist() if isinstance(directions, sp.MatrixBase) else directions
    listed = [_listed(row, f"directions[{k}]") for k, row in enumerate(_listed(rows, "directions"))]
    if not listed or not listed[0]:
        raise ParameterError("directions must be at least one vector of at least one component")
    length = len(listed[0])
    if length > MAX_VARIABLES:
        raise ParameterError(
            f"directions have {length} components; targets have at most {MAX_VARIABLES} "
            "coordinates: give the components in a frame of their span"
        )
    found = []
    for k, row in enumerate(listed):
        if len(row) != length:
            raise ParameterError(
                f"directions[{k}] has {len(row)} components, but directions[0] has {length}"
            )
        entries = [_real_number(entry, f"directions[{k}][{i}]") for i, entry in enumerate(row)]
        vector = tuple(
            sp.S.Zero if is_exactly_zero(entry, f"directions[{k}][{i}]") else entry
            for i, entry in enumerate(entries)
        )
        if not any(vector):
            raise ParameterError(f"directions[{k}] is zero; leave it out or give a direction")
        found.append(vector)
    return found


def _listed(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes | sp.Basic) or not hasattr(values, "__iter__"):
        raise ParameterError(f"{name} must be a sequence, got {shorten(repr(values))}")
    return list(values)


def _real_number(value: Any, name: str) -> sp.Expr:
    number = require_exact(value, name)
    if number.free_symbols or not (number.is_real and number.is_finite):
        raise ParameterError(f"{name} must be a finite real number, got {number}")
    return number
