"""Exact numbers and subspaces from plain data, expectations without closed form included.

These are written as they print, ``E_z[z*tanh(z)]``, which texts of users may not hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import sympy as sp

from ...errors import ExpressionError
from ..activations import z as _z
from ..gaussian import GaussianExpectation
from ..hermite_expansion import read_number
from ..parser import parse_expression
from ..subspaces import Subspace
from .formal_fields import formal_field

_EXPECTATION = re.compile(r"E_z\[([^\[\]]*)\]")


def read_open_number(text: Any) -> sp.Expr:
    """Read an exact number that may hold expectations.

    Examples
    --------
    >>> read_open_number("2*E_z[z*tanh(z)]") / read_open_number("E_z[z*tanh(z)]")
    2
    """
    if not isinstance(text, str) or "[" not in text:
        return read_number(text)
    rule: dict[sp.Symbol, sp.Expr] = {}

    def named(match: re.Match[str]) -> str:
        symbol = sp.Symbol(f"expectation{len(rule)}", real=True)
        rule[symbol] = GaussianExpectation(parse_expression(match[1], [_z]), _z)
        return f"({symbol.name})"

    written = _EXPECTATION.sub(named, text)
    return parse_expression(written, list(rule), argument="number").xreplace(rule)


def read_subspace(content: Mapping[str, Any]) -> Subspace:
    """Return the subspace that `Subspace.to_dict` wrote, with whatever numbers."""
    dimension = int(content["ambient_dimension"])
    rows = [[read_open_number(entry) for entry in row] for row in content["basis"]]
    if dimension < 1 or any(len(row) != dimension for row in rows):
        raise ExpressionError(f"a basis has to have rows of {dimension} numbers, got {rows}")
    return _spanned(rows, dimension)


def in_atoms(subspace: Subspace) -> Subspace:
    """Return the same subspace over a field whose generators are no sums, products or quotients.

    Only then are entries reduced, and subspaces over different fields compared, as numbers.
    """
    generators = getattr(subspace.field, "symbols", ())
    if not any(g.is_Add or g.is_Mul for g in generators):
        return subspace
    return _spanned(subspace.basis, subspace.ambient_dimension)


def _spanned(rows: Sequence[Sequence[sp.Expr]], dimension: int) -> Subspace:
    field, elements = formal_field(entry for row in rows for entry in row)
    split = (elements[i * dimension : (i + 1) * dimension] for i in range(len(rows)))
    return Subspace.from_elements(split, field, dimension)
