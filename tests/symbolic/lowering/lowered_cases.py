"""Lowered systems in tests: made from equations, and solved by the generated code."""

import math

import numpy as np

from giantstep.derivations.spiked_random_features.physics import kappa
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.systems.equations import saddle_point_equations
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem


def lowered(energy, equations=None, **options):
    options = {"outputs": {}, "start": {}, "safeguarded": False} | options
    system = SaddlePointSystem(
        name="toy",
        equations=tuple(saddle_point_equations(energy) if equations is None else equations),
        parameters=energy.parameters,
        definitions=energy.definitions,
        node=kappa,
        **options,
    )
    return lower(system).program


def nodes(step=0.1, reach=9.0):
    at = step * np.arange(-round(reach / step), round(reach / step) + 1)
    return step * np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi), at


def run(namespace, program, parameters, columns, starts, convert=float):
    """Call solve; `columns` holds weight and node and every table."""
    out = [0.0] * len(program.outputs)
    unknowns = len(program.newton_unknowns)
    written = [out, [0.0] * 3, *([[0.0] * unknowns**2] if unknowns else [])]
    if convert is None:  # arrays for numba
        written = [np.array(a) for a in written]
        columns, convert = [np.ascontiguousarray(c) for c in columns], float
    else:
        columns = [[convert(v) for v in column] for column in columns]
    namespace["solve"](
        *(convert(p) for p in parameters), *columns, *(convert(s) for s in starts), *written
    )
    out, info, *_ = written
    return dict(zip(map(str, program.outputs), out, strict=True)), info
