"""Students and targets as NumPy functions, through source from our own printer."""

from __future__ import annotations

import os
from dataclasses import dataclass

import sympy as sp

from ...numeric.cache import cache_folder as cache_folder_of
from ...symbolic.activations import Activation
from ...symbolic.lowering.targets.printers import NumpyPrinter, helper_definitions
from ...symbolic.targets import Target
from ..spiked_random_features.simulated import GeneratedFunction


@dataclass(frozen=True)
class NetworkFunctions:
    """Vectorised functions of float arrays; they can be sent to other processes.

    Attributes
    ----------
    student, student_derivative : callable
        Values of the same shape as the argument, or one number for all.
    target : callable
        Takes an array of shape (n, r), returns n values, or one number for all.
    """

    student: GeneratedFunction
    student_derivative: GeneratedFunction
    target: GeneratedFunction


def network_functions(
    student: Activation, target: Target, folder: str | os.PathLike[str] | None = None
) -> NetworkFunctions:
    """Return student, its derivative and target for a simulation.

    Parameters
    ----------
    student : Activation
    target : Target
    folder : path-like, optional
        Cache folder for the generated source.

    Raises
    ------
    AssumptionError
        If the student jumps: it has no weak derivative.
    EmissionError
        If a function in them has no counterpart in NumPy or SciPy.
    CacheError
        If the folder cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from giantstep.symbolic.activations import activation
    >>> from giantstep.symbolic.targets import target
    >>> made = network_functions(activation("relu"), target("x1*x2 + sign(x1)"))
    >>> made.target(np.array([[2.0, 3.0], [-1.0, 4.0]])).tolist()
    [7.0, -5.0]
    """
    # Names of our own: a user's x1 could be called `np`.
    columns = [sp.Symbol(f"column_{i}", real=True) for i in range(target.dimension)]
    expr = target.expr.xreplace(dict(zip(target.variables, columns, strict=True)))
    printer = NumpyPrinter()
    used = [i for i, column in enumerate(columns) if column in expr.free_symbols]
    text = "\n\n".join(
        [
            f"def student(z):\n    return {printer.print(student.expr)}\n",
            f"def student_derivative(z):\n    return {printer.print(student.derivative)}\n",
            "def target(x):\n"
            + "".join(f"    column_{i} = x[:, {i}]\n" for i in used)
            + f"    return {printer.print(expr)}\n",
        ]
    )
    header = "import numpy as np\n" + ("import scipy.special\n" if "scipy." in text else "")
    helpers = helper_definitions(NumpyPrinter, text)
    source = "\n\n".join(part for part in (header, helpers, text) if part)
    where = cache_folder_of(folder)
    return NetworkFunctions(
        *(GeneratedFunction(source, name, where) for name in NetworkFunctions.__annotations__)
    )
