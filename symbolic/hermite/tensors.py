r"""Hermite tensors, their contractions and rotations, read off the symbol.

The symbol of f is F(ξ) = E f(x + ξ), a polynomial in a sparse ring. Its homogeneous part of degree
k is :math:`F_k(\xi) = C_k[\xi, \dots, \xi]/k!` with the Hermite tensor :math:`C_k =
\mathbb{E}[\nabla^k f]`, whose entries are the moments :math:`\mu_\alpha = \alpha!\,c_\alpha`. So

.. math:: C_k[w, \dots, w] = k!\,F_k(w), \qquad C_k[w, \dots, w, \cdot] = (k-1)!\,\nabla F_k(w),

and f(Rx) has the symbol F(Rξ) for orthogonal R. The moments of a function along a unit vector w are
:math:`\mathbb{E}[f(x)\,\mathrm{He}_k(\langle w, x\rangle)] = C_k[w, \dots, w]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any, Literal, overload

import sympy as sp
from sympy.polys.rings import PolyElement

from ...errors import AssumptionError, ParameterError
from ..exact.fields import common_field, exact_field
from ..expressions.exact_numbers import require_exact
from ..gaussian.hermite_polynomials import checked_order, index_factorial

_MOST_ENTRIES = 100_000


def homogeneous_part(element: PolyElement, k: int) -> PolyElement:
    """Return the terms of degree k.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> homogeneous_part(x * y + x + 3, 2)
    x*y
    """
    k = checked_order(k, "k")
    return element.ring.from_dict({m: c for m, c in element.items() if sum(m) == k})


def hermite_tensor(symbol: PolyElement, k: int) -> sp.ImmutableDenseNDimArray:
    r"""Return :math:`C_k = \mathbb{E}[\nabla^k f]`, shape (r, …, r), of the symbol of f.

    Raises ParameterError if `k` is no order or the array would have more than 100 000 entries.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> hermite_tensor(x * y, 2)
    [[0, 1], [1, 0]]
    """
    ring, part = symbol.ring, homogeneous_part(symbol, k)
    if ring.ngens**k > _MOST_ENTRIES:
        raise ParameterError(
            f"the Hermite tensor of order {k} in {ring.ngens} variables has {ring.ngens}**{k} "
            f"entries, more than {_MOST_ENTRIES}; use contract, or the moments by multi-index"
        )
    moments = {m: _moment(ring.domain, m, c) for m, c in part.items()}
    entries = []
    for indices in product(range(ring.ngens), repeat=k):
        alpha = tuple(map(indices.count, range(ring.ngens)))
        entries.append(moments.get(alpha, sp.S.Zero))
    return sp.ImmutableDenseNDimArray(entries, (ring.ngens,) * k)


def _moment(domain: Any, monomial: tuple[int, ...], coefficient: Any) -> sp.Expr:
    return domain.to_sympy(coefficient * domain.convert(index_factorial(monomial)))


@overload
def contract(
    symbol: PolyElement, k: int, w: Sequence[sp.Expr | Fraction | int], *, leave: Literal[0] = 0
) -> sp.Expr: ...
@overload
def contract(
    symbol: PolyElement, k: int, w: Sequence[sp.Expr | Fraction | int], *, leave: Literal[1]
) -> sp.ImmutableDenseMatrix: ...
def contract(
    symbol: PolyElement,
    k: int,
    w: Sequence[sp.Expr | Fraction | int],
    *,
    leave: Literal[0, 1] = 0,
) -> sp.Expr | sp.ImmutableDenseMatrix:
    """Return C_k[w, …, w], or with one argument left open the vector C_k[w, …, w, ·].

    `symbol`: F, in r variables. `k`: order of the tensor; at least `leave`. `w`: exact numbers, of
    any norm, or expressions; with numbers only the result is in the normal form of their field.
    `leave`: how many arguments are left open. The result: Expr, or ImmutableDenseMatrix of shape
    (r, 1). Raises ParameterError if `k`, the length of `w` or `leave` is wrong, or `w` not exact.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> a, b = sp.symbols("a b")
    >>> contract(x**2 * y, 3, [a, b])
    6*a**2*b
    >>> contract(x**2 * y, 3, [a, b], leave=1).T
    Matrix([[4*a*b, 2*a**2]])
    """
    ring, part = symbol.ring, homogeneous_part(symbol, k)
    if isinstance(w, str) or not isinstance(w, Sequence | sp.MatrixBase) or len(w) != ring.ngens:
        raise ParameterError(f"w must have {ring.ngens} components, one per variable, got {w!r}")
    if isinstance(leave, bool) or leave not in (0, 1):
        raise ParameterError(f"leave must be 0 or 1, got {leave!r}")
    if k < leave:
        raise ParameterError("a tensor of order 0 has no argument to leave open; use k >= 1")
    vector = [require_exact(component, f"w[{i}]") for i, component in enumerate(w)]
    factor = math.factorial(k - leave)
    pieces = [part.diff(i) for i in range(ring.ngens)] if leave else [part]
    if any(component.free_symbols for component in vector):
        values = [_evaluated_symbolically(piece, vector, factor) for piece in pieces]
    else:
        values = _evaluated(pieces, vector, factor)
    return sp.ImmutableDenseMatrix(values) if leave else values[0]


def _evaluated_symbolically(piece: PolyElement, vector: list[sp.Expr], factor: int) -> sp.Expr:
    domain = piece.ring.domain
    return sp.Add(
        *(
            domain.to_sympy(c * domain.convert(factor))
            * sp.Mul(*(w**n for w, n in zip(vector, m, strict=True)))
            for m, c in piece.items()
        )
    )


def _evaluated(pieces: list[PolyElement], vector: list[sp.Expr], factor: int) -> list[sp.Expr]:
    number_field, components = exact_field(vector)
    domain, from_ring, from_vector = common_field(pieces[0].ring.domain, number_field)
    point = [from_vector(component) for component in components]
    result = []
    for piece in pieces:
        total = domain.zero
        for monomial, c in piece.items():
            term = from_ring(c) * domain.convert(factor)
            for component, n in zip(point, monomial, strict=True):
                # The ring refuses 0**0 where the field holds a transcendental number.
                term *= component**n if n else domain.one
            total += term
        result.append(domain.to_sympy(total))
    return result


def rotated(symbol: PolyElement, rotation: sp.MatrixBase) -> PolyElement:
    """Return F(Rξ), the symbol of x ↦ f(Rx), for an orthogonal R.

    `symbol`: F, in r variables. `rotation`: R with exact numbers; reflections are allowed, Matrix
    of shape (r, r). The result: in a ring over the field that holds the coefficients and the
    entries of R. Raises ParameterError if R is not a matrix of that shape. Raises AssumptionError
    if R is not orthogonal, which is decided exactly.

    Examples
    --------
    >>> ring, x, y = sp.ring("x, y", sp.QQ)
    >>> rotated(5 * x, sp.Matrix([[3, 4], [-4, 3]]) / 5)
    3*x + 4*y
    """
    ring = symbol.ring
    number_field, rows = _orthogonal_rows(rotation, ring.ngens)
    domain, from_ring, from_matrix = common_field(ring.domain, number_field)
    target = ring.clone(domain=domain)
    images = [
        sum((from_matrix(c) * g for c, g in zip(row, target.gens, strict=True)), target.zero)
        for row in rows
    ]
    return composed({m: from_ring(c) for m, c in symbol.items()}, images, target)


def orthogonal_matrix(
    rotation: sp.MatrixBase | Sequence[Sequence[sp.Expr | Fraction | int]], size: int
) -> sp.ImmutableMatrix:
    """Return an orthogonal matrix of exact numbers, given as a matrix or by its rows.

    `size`: number of rows and of columns. Raises ParameterError if it is not of that shape, or
    holds a floating-point number. Raises AssumptionError if it is not orthogonal, which is decided
    exactly.

    Examples
    --------
    >>> orthogonal_matrix([[0, 1], [-1, 0]], 2)
    Matrix([
    [ 0, 1],
    [-1, 0]])
    """
    if not isinstance(rotation, sp.MatrixBase):
        rotation = _matrix_of(rotation, size)
    number_field, rows = _orthogonal_rows(rotation, size)
    return sp.ImmutableMatrix([[number_field.to_sympy(entry) for entry in row] for row in rows])


def _matrix_of(rows: Any, size: int) -> sp.MatrixBase:
    try:
        listed = [list(row) for row in rows]
    except TypeError:
        listed = []
    if len(listed) != size or any(len(row) != size for row in listed):
        raise ParameterError(
            f"rotation must be a {size} x {size} SymPy matrix or a sequence of its rows, "
            f"got {rows!r}"
        )
    return sp.Matrix(
        [
            [require_exact(entry, f"rotation[{i}][{j}]") for j, entry in enumerate(row)]
            for i, row in enumerate(listed)
        ]
    )


def _orthogonal_rows(rotation: sp.MatrixBase, size: int) -> tuple[Any, list[list[Any]]]:
    """Return the field of the entries, and them by rows."""
    if not isinstance(rotation, sp.MatrixBase) or rotation.shape != (size, size):
        raise ParameterError(f"rotation must be a {size} x {size} SymPy matrix, got {rotation!r}")
    parameters = sorted(rotation.free_symbols, key=str)
    number_field, flat = exact_field(rotation.flat(), formal=parameters)
    rows = [flat[i * size : (i + 1) * size] for i in range(size)]
    for i, first in enumerate(rows):
        for j, second in enumerate(rows[: i + 1]):
            inner = sum((a * b for a, b in zip(first, second, strict=True)), number_field.zero)
            # By the difference: equal fractions over algebraic fields may not compare as equal.
            if inner - (number_field.one if i == j else number_field.zero):
                raise AssumptionError(
                    f"rotation is not orthogonal: its rows {j} and {i} have the inner product "
                    f"{number_field.to_sympy(inner)} instead of {int(i == j)}; only orthogonal "
                    "maps keep the Gaussian distribution"
                )
    return number_field, rows


def composed(
    terms: dict[tuple[int, ...], Any], images: list[PolyElement], ring: Any
) -> PolyElement:
    """Return Σ c_α Π images^α, by Horner's rule in one image after the other."""
    if not terms:
        return ring.zero
    if not images:
        return ring.ground_new(terms[()])
    slices: dict[int, dict[tuple[int, ...], Any]] = {}
    for monomial, c in terms.items():
        slices.setdefault(monomial[-1], {})[monomial[:-1]] = c
    total = ring.zero
    for power in range(max(slices), -1, -1):
        total = total * images[-1] + composed(slices.get(power, {}), images[:-1], ring)
    return total
