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

def solve_point(parameters, table_parameters, step=0.125):
    """Solve at one set of parameters; returns {{name: (value, estimated error)}}.

    Parameters
    ----------
    parameters : dict
        {parameter_names}.
    table_parameters : dict
        {table_parameter_names}.
    step : float
        Step of the trapezoidal rule; halve it to check the error estimate.
    """
    values = [table_parameters[name] for name in {table_names}]
    rules = outer_rules(step, {even})
    x = rules[0][0]
    inner = {{slot: inner_rule(kind, a, 1) for slot, (kind, a) in inner_rules(x, *values).items()}}
    columns = tables(x, *values, inner)
    levels = []
    for nodes, weights, stride in rules:
        rows = [weights, nodes, *(columns[name][::stride] for name in {columns})]
        levels.append(np.ascontiguousarray(np.stack(rows)))
    row = np.array([[float(parameters[name]) for name in {parameters}]])
    results, errors = np.empty((1, {n_outputs})), np.empty((1, {n_outputs}))
    info = np.zeros((1, 3))
    solve_batch(row, *levels, results, errors, info)
    return {{
        name: (results[0, k], errors[0, k]) for k, name in enumerate({outputs})
    }}
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
            "numba" and "python" files run without giantstep (``solve_point`` and
            ``solve_batch``); "mpmath" holds ``tables`` and ``solve`` for a context ``ctx``.

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


def _code_of_quadrature() -> str:
    """The quadrature rules without their module docstring, for a self-contained file."""
    text = inspect.getsource(quadrature)
    return text.split('"""', 2)[2].strip()
