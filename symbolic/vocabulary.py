"""The words of expression texts: constants and functions, in one table for reading and writing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy as sp

from .bivariate_normal import BivariateNormalCDF
from .functions import HALF, OwenT, relu, sigmoid, softplus
from .piecewise_polynomials import flattened


def _step(x: sp.Expr) -> sp.Expr:
    return sp.Heaviside(x, HALF)


FUNCTIONS: dict[str, Callable[[sp.Expr], sp.Expr]] = {
    "erf": sp.erf,
    "erfc": sp.erfc,
    "tanh": sp.tanh,
    "sin": sp.sin,
    "cos": sp.cos,
    "tan": sp.tan,
    "exp": sp.exp,
    "log": sp.log,
    "sqrt": sp.sqrt,
    "abs": sp.Abs,
    "Abs": sp.Abs,
    "sign": sp.sign,
    "step": _step,
    "Heaviside": _step,
    "relu": relu,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "gelu": lambda x: x * (1 + sp.erf(x / sp.sqrt(2))) / 2,
    "swish": lambda x: x * sigmoid(x),
    "Phi": lambda x: (1 + sp.erf(x / sp.sqrt(2))) / 2,
    "atan": sp.atan,
    "asinh": sp.asinh,
    "sinh": sp.sinh,
    "cosh": sp.cosh,
    "sech": sp.sech,
}
"""Functions of one argument that are defined on the whole line, or that activations are made of;
:func:`.activations.declare_activation` adds to them."""

PARTIAL_FUNCTIONS: Mapping[str, Callable[[sp.Expr], sp.Expr]] = {
    "asin": sp.asin,
    "acos": sp.acos,
    "acosh": sp.acosh,
    "atanh": sp.atanh,
}
"""Functions of one argument that are real on a part of the line only; exact results hold them."""

FUNCTIONS_OF_SEVERAL: Mapping[str, tuple[int, Callable[..., sp.Expr]]] = {
    "max": (2, lambda x, y: flattened(y + relu(x - y))),
    "min": (2, lambda x, y: flattened(y - relu(y - x))),
    "OwenT": (2, OwenT),
    "Phi2": (3, BivariateNormalCDF),
}
"""Functions of several arguments, with their number; max and min are exact through relu."""

CONSTANTS: Mapping[str, sp.Expr] = {"pi": sp.pi, "E": sp.E}

SPELLINGS: Mapping[type, str] = {
    **{
        function: name
        for name, function in {**FUNCTIONS, **PARTIAL_FUNCTIONS}.items()
        if isinstance(function, type)
    },
    sp.Abs: "abs",
    OwenT: "OwenT",
    BivariateNormalCDF: "Phi2",
}
"""How a SymPy function is written: the word that reads back as it."""
