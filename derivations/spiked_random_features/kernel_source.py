"""The generated kernel as text: to read, to inspect stage by stage, to write to a file."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass
from pathlib import Path

from ...errors import EmissionError, ParameterError
from ...numeric import quadrature
from ...symbolic.lowering.solver_source import solver_source
from .derivation import Derivation
from .derive import SymbolicModel, precise_kernel

TARGETS = ("numba", "python", "mpmath")
STAGES = ("equations", "blocks", "program", "tables", "source")

_DRIVER = '''

def solve_point(parameters, table_parameters, step=0.13, reach=12.0, rtol=1e-10):
    """Solve at one set of parameters; returns {{name: (value, estimated error)}}.

    Parameters
    ----------
    parameters : dict
        {parameter_names}.
    table_parameters : dict
        {table_parameter_names}.
    step : float
        First step of the outer rule, in units of the width over which the tables vary.
    reach : float
        Where the line is cut off; activations that grow fast need more.
    rtol : float
        Relative error of the first result at which the step is not halved again.
    """
    values = [np.float64(table_parameters[name]) for name in {table_names}]
    row = np.array([[float(parameters[name]) for name in {parameters}]])
    results, errors = np.empty((1, {n_outputs})), np.empty((1, {n_outputs}))
    info = np.zeros((1, 3))
    for level in range(6):
        solve_batch(row, *node_tables(values, step, reach, level), results, errors, info)
        if errors[0, 0] <= rtol * abs(results[0, 0]):
            break
    return {{
        name: (results[0, k], errors[0, k]) for k, name in enumerate({outputs})
    }}


def node_tables(values, step, reach, level):
    """Return weights, nodes and tables on three rules, each half as fine as the one before."""
    kinks = breaks(np.zeros(1), *values)
    if kinks:
        edges = np.array([sorted({{*map(float, kinks), 0.0}})])
        rules = [split_rule(edges, level - back, reach) for back in (0, 1, 2)]
        rules = [(x[0], w[0]) for x, w in rules]
    else:
        width = float(outer_scale(np.zeros(1), *values))
        rules = [rule[:2] for rule in outer_rules(step * width / 2**level, {even}, reach)]
    found = []
    for x, w in rules:
        kinds = inner_rules(x, *values)
        inner = {{slot: inner_rule(kind, argument, 1) for slot, (kind, argument) in kinds.items()}}
        columns = tables(x, *values, inner)
        found.append(np.ascontiguousarray(np.stack([w, x, *(columns[k] for k in {columns})])))
    return found
'''


@dataclass(frozen=True)
class KernelSource:
    """A generated kernel in all its stages.

    Attributes
    ----------
    model : SymbolicModel
        The chain as SymPy objects.
    derivation : Derivation
        The generated sources.
    """

    model: SymbolicModel
    derivation: Derivation

    def source(self, target: str = "numba") -> str:
        """Return one self-contained file for a target.

        Parameters
        ----------
        target : {"numba", "python", "mpmath"}
            All files run without giantstep. "numba" and "python" offer ``solve_point`` and
            ``solve_batch``; "mpmath" holds ``tables`` and ``solve`` for a context ``ctx``.

        Raises
        ------
        EmissionError
            If the target is unknown.
        """
        if target not in TARGETS:
            raise EmissionError(f"target must be one of {', '.join(TARGETS)}, got {target!r}")
        if target == "mpmath":
            kernel = precise_kernel(self.model)
            header = "import mpmath\n\nctx = mpmath.mp.clone()\nctx.dps = 50\n"
            return f"{kernel.solver_source}\n\n{header}\n\n{kernel.table_source}"
        found = self.derivation
        solver = solver_source(self.model.program, target)
        names = [*found.tables]
        driver = _DRIVER.format(
            parameter_names=", ".join(found.parameters),
            table_parameter_names=", ".join(found.table_parameters),
            table_names=repr(found.table_parameters),
            even=found.even,
            columns=repr(tuple(names)),
            parameters=repr(found.parameters),
            n_outputs=len(found.outputs),
            outputs=repr(found.outputs),
        )
        return "\n\n".join([solver, _code_of_quadrature(), found.table_source, driver.lstrip("\n")])

    def write(self, path: str | os.PathLike[str], target: str = "numba") -> Path:
        """Write :meth:`source` to a file and return its path."""
        found = Path(path)
        found.write_text(self.source(target), encoding="utf-8")
        return found

    def inspect(self, stage: str = "program") -> str:
        """Return one stage of the way from equations to code as text.

        Parameters
        ----------
        stage : {"equations", "blocks", "program", "tables", "source"}
        """
        if stage == "equations":
            return "\n".join(
                f"0 = {e.residual}" if e.value is None else f"{e.unknown} = {e.value}"
                for e in self.model.equations
            )
        if stage == "blocks":
            return self.model.structure.describe()
        if stage == "program":
            return str(self.model.program)
        if stage == "tables":
            return self.derivation.table_source
        if stage == "source":
            return self.source()
        raise ParameterError(f"stage must be one of {', '.join(STAGES)}, got {stage!r}")

    def __str__(self) -> str:
        return self.source()

    def __repr__(self) -> str:
        found = self.derivation
        return f"KernelSource(student={found.student!r}, teacher={found.teacher!r})"


def _code_of_quadrature() -> str:
    """The quadrature rules without their module docstring, for a self-contained file."""
    text = inspect.getsource(quadrature)
    return text.split('"""', 2)[2].strip()
