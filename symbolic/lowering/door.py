"""The door of the lowering: which expressions may become code.

Everything behind this door is a number, a symbol, arithmetic, a comparison, a case distinction,
one of the registered functions, or an average. What is not is refused here by name, before any
work is done, with what is known and how to teach the lowering another function.
"""

from __future__ import annotations

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.core.symbol import Str
from sympy.logic.boolalg import BooleanAtom, BooleanFunction

from ...errors import EmissionError
from ..expressions.averages import Average, DataAverage
from ..expressions.bivariate_normal import BivariateNormalCDF
from ..gaussian.expectation import GaussianExpectation
from ..gaussian.jumps import single_comparisons
from ..gaussian.ramp_moments import RampAverage
from ..losses.proximal import MoreauEnvelope, Proximal
from ..printing.special_functions import is_known, known_functions
from ..systems.random_matrix import MarchenkoPasturAverage, Resolvent

_ARITHMETIC = (
    sp.Add, sp.Mul, sp.Pow, sp.Symbol, sp.Rational, sp.NumberSymbol, sp.Piecewise,
    sp.functions.elementary.piecewise.ExprCondPair, sp.Tuple, BooleanAtom, BooleanFunction,
    sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan,
)  # fmt: skip
_AVERAGES = (GaussianExpectation, MarchenkoPasturAverage, Resolvent, DataAverage)
_PROXIMAL = (Proximal, MoreauEnvelope, Str)
# Written in known functions later, when nothing is differentiated any more.
_CLOSED_LATER = (RampAverage, BivariateNormalCDF)


def admit(expr: sp.Expr, place: str) -> sp.Expr:
    """Return `expr` in the form that the passes know, or refuse it.

    Floats become the rational numbers that their digits say, and case distinctions are made one
    comparison at a time.

    Parameters
    ----------
    expr : Expr
    place : str
        Where the expression stands, for the message: "the equation for q".

    Raises
    ------
    EmissionError
        If the expression holds a node that the lowering does not know.
    """
    expr = expr.replace(lambda e: e.is_Float, lambda e: sp.Rational(str(e)))
    expr = single_comparisons(expr, place)
    for node in sp.preorder_traversal(expr):
        _check(node, place)
    return expr


def _check(node: sp.Basic, place: str) -> None:
    if isinstance(node, _AVERAGES + _PROXIMAL + _CLOSED_LATER) or isinstance(node, _ARITHMETIC):
        return
    if isinstance(node, AppliedUndef):
        return  # a table; whether it has a meaning was checked with the system
    if is_known(type(node)):
        return
    text = str(node)[:80]
    if node in (sp.oo, -sp.oo, sp.nan, sp.zoo):
        raise EmissionError(f"{place} holds {text}, which is no number")
    if isinstance(node, sp.Integral | sp.Sum | Average) or "Expectation" in type(node).__name__:
        raise EmissionError(
            f"{place} holds the average {text}; averages are over standard normal variables "
            "(GaussianExpectation), Marchenko-Pastur eigenvalues or data (DataAverage): write "
            "another law as a function of a normal variable, as sqrt(v)*z + m for N(m, v)"
        )
    if node is sp.I:
        raise EmissionError(f"{place} holds the imaginary unit; kernels compute with real numbers")
    if isinstance(node, sp.Function):
        raise EmissionError(
            f"{place} holds {text}, and no target knows the function {type(node).__name__}; known "
            f"functions: {', '.join(known_functions())}; teach it with "
            "giantstep.symbolic.printing.special_functions.register_function"
        )
    raise EmissionError(
        f"{place} holds {text} of type {type(node).__name__}, which has no meaning in a kernel; "
        "write it with arithmetic, known functions, Piecewise and expectations"
    )
