"""Activations as functions of arrays with slopes: what simulators of networks evaluate.

An activation is written once, as an expression of :mod:`giantstep.symbolic`, and differentiated
there; see :class:`.ElementwiseFunction` for how values and slopes are computed.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import EmissionError
from ..numeric.cache import FileCache
from ..numeric.elementwise import ElementwiseFunction
from ..symbolic.expressions.activations import activation, without_declared, z
from ..symbolic.printing.array_kernels import array_kernel
from ..symbolic.printing.compiled import Formula, function_source
from .derived import derived

if TYPE_CHECKING:
    from ..symbolic.expressions.activations import Activation


def elementwise(student: Activation) -> ElementwiseFunction:
    """Return an activation as a function of arrays.

    Parameters
    ----------
    student : Activation
        One that jumps has values only.

    Raises
    ------
    EmissionError
        If a function in it has no counterpart in NumPy or SciPy.

    Examples
    --------
    >>> import numpy as np
    >>> from giantstep.symbolic.expressions.activations import activation
    >>> relu = elementwise(activation("relu"))
    >>> relu(np.array([-1.0, 2.0])).tolist(), relu.slopes(np.array([-1.0, 2.0])).tolist()
    ([0.0, 2.0], [0.0, 1.0])
    """
    value = student.expr
    slope = None if student.jumps else student.derivative
    formulas = {"values": Formula((z,), value)}
    if slope is not None:
        formulas["slopes"] = Formula((z,), slope)
        formulas["values_and_slopes"] = Formula((z,), [value, slope])
    try:
        kernel = array_kernel(value, slope, z)
    except EmissionError:
        # Not one of the functions with a vectorised form; NumPy knows more, or refuses.
        kernel = ""
    return ElementwiseFunction(
        plain=function_source(formulas),
        kernel=kernel,
        name=student.name,
        differentiable=slope is not None,
    )


def cached_elementwise(cache: FileCache, text: str) -> ElementwiseFunction:
    """Return the activation of a text as a function of arrays, derived once and kept.

    Machine code is kept in the same folder. Raises as :func:`elementwise` and
    :func:`.activations.activation` do.
    """
    return replace(_texts(cache, text), cache_folder=str(cache.folder))


@derived("activation_functions", ElementwiseFunction)
def _texts(text: str) -> ElementwiseFunction:
    return elementwise(activation(text))


def activation_text(name: str, value: object) -> str:
    """Return an activation as the text that our own parser reads, whoever declared it."""
    # SymPy expressions and Activations print as text that our own parser reads.
    expr = getattr(value, "name", None) or value
    if isinstance(expr, str) and "giantstep.symbolic.expressions.activations" not in sys.modules:
        # Nobody has declared a name; SymPy is not needed.
        return expr

    if not isinstance(expr, str):
        expr = str(activation(value, argument=name).name)  # type: ignore[arg-type]
    return without_declared(expr)
