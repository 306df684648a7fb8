"""The scales on which integrands vary, as a module that NumPy runs."""

from __future__ import annotations

import sympy as sp

from ...symbolic.lowering.lowered import LoweredSystem
from ...symbolic.lowering.targets.printers import NumpyPrinter, helper_definitions
from ...symbolic.lowering.widths import integrand_widths


def width_source(lowered: LoweredSystem) -> str:
    """Return the source of ``widths(parameters…, unknowns…)``; empty if nothing sets a scale."""
    found = integrand_widths(lowered)
    if not found:
        return ""
    system = lowered.system
    names = {x: sp.Symbol(c, **x.assumptions0) for x, c in lowered.identifiers.items()}
    arguments = (*system.parameters, *system.unknowns)
    printer = NumpyPrinter()
    texts = ", ".join(map(printer.print, found))
    signature = ", ".join(str(names[x]) for x in arguments)
    body = (
        f"def widths({signature}):\n"
        '    """Return the scales on which integrands vary."""\n'
        f"    return [{texts}]\n"
    )
    helpers = helper_definitions(NumpyPrinter, body)
    header = "import numpy as np\n" + ("import scipy.special\n" if "scipy." in helpers else "")
    return "\n\n".join(part for part in (header, helpers, body) if part)
