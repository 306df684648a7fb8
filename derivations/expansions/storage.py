"""Expansions as plain values, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ...digits import checked_digits
from ...errors import ParameterError
from ...runtime.precision import local_context
from .names import NAMES, chosen
from .presentation import formula_texts

if TYPE_CHECKING:
    from .expansion import Expansion

_NOT_STORED = ("exact", "symbolic")
_FORMULAS = "formulas_latex"


def plain_values(expansion: Expansion) -> dict[str, Any]:
    """Return an expansion as plain values; numbers as text with all their digits."""
    found = {
        f.name: getattr(expansion, f.name) for f in fields(expansion) if f.name not in _NOT_STORED
    }
    return {
        **found,
        "point": "inf" if expansion.point else 0,
        "exponents": [str(e) for e in expansion.exponents],
        "remainder_order": str(expansion.remainder_order),
        "coefficients": {k: [_text(c) for c in v] for k, v in expansion.coefficients.items()},
        "neglected": {
            k: None if v is None else [str(v[0]), _text(v[1])]
            for k, v in expansion.neglected.items()
        },
        "radius": None if expansion.radius is None else _text(expansion.radius),
        "fixed": {k: "inf" if v == math.inf else v for k, v in expansion.fixed.items()},
        "symbols": dict(expansion.symbols),
        _FORMULAS: formula_texts(expansion) if expansion.has_derived_formulas else {},
    }


def arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the expansion that :func:`plain_values` wrote.

    Raises
    ------
    ParameterError
        If the values are no expansion.
    """
    try:
        given = {k: v for k, v in values.items() if k not in ("kind", _FORMULAS)}
        expected = {"name", "coefficients", "exponents", "neglected", "digits", "symbols"}
        if not expected <= set(given):
            raise ValueError(f"there is no {min(expected - set(given))!r}")
        chosen("name", given["name"], NAMES, "expansion")
        given["digits"] = checked_digits(given["digits"])
        make = local_context(given["digits"]).mpf
        given["point"] = math.inf if given["point"] == "inf" else 0.0
        given["exponents"] = tuple(map(Fraction, given["exponents"]))
        given["remainder_order"] = Fraction(given["remainder_order"])
        given["coefficients"] = {k: tuple(map(make, v)) for k, v in given["coefficients"].items()}
        given["neglected"] = {
            k: None if v is None else (Fraction(v[0]), make(v[1]))
            for k, v in given["neglected"].items()
        }
        if given["radius"] is not None:
            given["radius"] = make(given["radius"])
        given["fixed"] = {k: math.inf if v == "inf" else v for k, v in given["fixed"].items()}
        known = set(given["coefficients"])
        sizes = {len(v) for v in given["coefficients"].values()}
        if sizes != {len(given["exponents"])} or set(given["neglected"]) != known:
            raise ValueError("coefficients, exponents and neglected terms do not fit")
    except ParameterError as error:
        raise ParameterError(f"this is no expansion written by to_dict: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ParameterError(
            f"this is no expansion written by to_dict: {type(error).__name__}: {error}"
        ) from None
    names = {"region", "rests_on", "parameter", "point", "remainder_order", "radius", "fixed"}
    if unknown := set(given) - expected - names:
        raise ParameterError(
            f"this is no expansion written by to_dict: it has an entry {min(unknown)!r}"
        )
    if missing := names - set(given):
        raise ParameterError(
            f"this is no expansion written by to_dict: there is no {min(missing)!r}"
        )
    return given


def _text(number: Any) -> str:
    """Return a number with all digits that its context has, so that it reads back the same."""
    from mpmath.libmp import repr_dps

    return str(number.context.nstr(number, repr_dps(number.context.prec)))
