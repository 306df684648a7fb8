"""A system on its way to code: the text of every stage, the program, the files of all targets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import sympy as sp

from ...atomic_files import write_atomically
from ...errors import EmissionError, ParameterError
from ..systems.saddle_point import SaddlePointSystem
from .documentation import describe_functions, documentation
from .languages import c, fortran, jax, julia, mpmath, numpy, python
from .lower import lower_to_program
from .product_measures import ProductMeasure
from .program import Program
from .tables import table_source

if TYPE_CHECKING:
    from .driver import BakedTables
    from .languages.vectors import Vectors

_FILES: Mapping[str, Callable[..., Mapping[str, str]]] = {
    "numba": python.files,
    "python": partial(python.files, target="python"),
    "numpy": numpy.files,
    "mpmath": mpmath.files,
    "c": c.files,
    "jax": jax.files,
    "julia": julia.files,
    "fortran": fortran.files,
}
# Numbers of tables on a grid that a file may hold, some 20 characters each.
_MOST_NUMBERS = 1_000_000
_SUFFIXES = {".c": "c", ".h": "c", ".jl": "julia", ".f90": "fortran", ".py": "numba"}

TARGETS = tuple(_FILES)


def check_target(target: str) -> str:
    """Return the target, or refuse it with the list of those that exist."""
    if target not in _FILES:
        raise EmissionError(f"target must be one of {', '.join(TARGETS)}, got {target!r}")
    return target


def target_of_suffix(suffix: str) -> str:
    """Return the target that files with this suffix usually hold."""
    if suffix not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise ParameterError(
            f"the suffix {suffix!r} names no target; use one of {known}, or give target="
        )
    return _SUFFIXES[suffix]


def check_suffix(target: str, path: Path) -> None:
    """Refuse a file whose name says that it holds another language."""
    said = _SUFFIXES.get(path.suffix)
    # All targets without a suffix of their own are Python.
    own = set(_SUFFIXES.values()) - {"numba"}
    languages = {t if t in own else "Python" for t in (check_target(target), said) if t}
    if len(languages) > 1:
        right = [s for s, t in _SUFFIXES.items() if t == target] or [".py"]
        raise ParameterError(
            f"path {path} has the suffix of another language than {target}; use {right[0]}"
        )


def files(
    lowered: LoweredSystem,
    target: str,
    *,
    tables: BakedTables | None = None,
    name: str,
    vectors: Vectors | None = None,
) -> Mapping[str, str]:
    """Return {file name: text} of a target; every file set runs without giantstep."""
    check_target(target)
    if tables is not None and lowered.program.inner_nodes:
        count = sum(len(column) for level in tables.levels for column in level.values())
        if count > _MOST_NUMBERS:
            nodes = ", ".join(map(str, lowered.program.inner_nodes))
            raise EmissionError(
                f"tables on the grid of {lowered.node} and {nodes} hold {count} numbers, more than "
                f"the {_MOST_NUMBERS} that fit into a file: leave out tables=, and the file "
                "computes them"
            )
    return _FILES[target](lowered, tables=tables, name=name, vectors=vectors)


# In the order of the work; "tables" and the targets are printed on demand.
STAGES = (
    "equations", "blocks", "hoisted", "quadrature", "fused", "accurate", "program", "functions",
    "tables", *TARGETS,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class LoweredSystem:
    """A lowered system of equations.

    Attributes
    ----------
    stated : SaddlePointSystem
        The system as it was given, in its independent parameters.
    system : SaddlePointSystem
        The same in coordinates of the unknowns that are inside an interval.
    program : Program
        The intermediate form, from which all targets are printed.
    definitions : mapping from applied function to Expr
        Tables over the nodes, each referring to earlier ones only.
    node : Symbol
        The variable of the outer expectations.
    identifiers : mapping from Symbol to str
        Code names of parameters and unknowns.
    stages : mapping from str to callable
        Returns the text of what a pass made.
    product : ProductMeasure or None
        Inner nodes and tables on their grid.
    """

    stated: SaddlePointSystem
    system: SaddlePointSystem
    program: Program
    definitions: Mapping[sp.Expr, sp.Expr]
    node: sp.Symbol
    identifiers: Mapping[sp.Symbol, str]
    stages: Mapping[str, Callable[[], str]] = field(repr=False)
    product: ProductMeasure | None = None

    @property
    def documentation(self) -> str:
        """What a file says first: printing equations takes as long as a pass."""
        return documentation(self.system)

    @property
    def table_parameters(self) -> tuple[sp.Symbol, ...]:
        """The parameters (symbols of the system) on which the tables depend."""
        used = set().union(*(d.free_symbols for d in self.definitions.values()))
        used |= set() if self.product is None else self.product.free_symbols
        return tuple(p for p in self.system.parameters if p in used)

    @property
    def results(self) -> dict[str, int]:
        """Results by name, with their places among the outputs of the program.

        Without sizes of results, and without coordinates that unknowns follow from.
        """
        hidden = {*self.program.sizes.values()}
        hidden |= {c.symbol for c in self.stated.coordinates.values()}
        return {str(x): k for k, x in enumerate(self.program.outputs) if x not in hidden}

    def files(
        self,
        target: str = "numba",
        *,
        tables: BakedTables | None = None,
        name: str | None = None,
        vectors: Vectors | None = None,
    ) -> Mapping[str, str]:
        """Return {file name: text} for a target.

        Parameters
        ----------
        target : {"numba", "python", "numpy", "mpmath", "c", "jax", "julia", "fortran"}
        tables : BakedTables, optional
            Write these tables into the files; else the files compute tables themselves.
        name : str, optional
            Of the kernel: prefix of its functions in C, stem of the files.
        vectors : Vectors, optional
            Known results, for a self-check of the file.

        Raises
        ------
        EmissionError
            If the target is unknown, or has no rule for a function in the program.
        """
        name = self.system.name if name is None else name
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ParameterError(f"name must be an identifier, got {name!r}")
        return files(self, target, tables=tables, name=name, vectors=vectors)

    def source(
        self,
        target: str = "numba",
        *,
        tables: BakedTables | None = None,
        vectors: Vectors | None = None,
    ) -> str:
        """Return the text of :meth:`files`, one file after the other."""
        found = self.files(target, tables=tables, vectors=vectors)
        return next(iter(found.values())) if len(found) == 1 else "\n".join(found.values())

    def write(
        self,
        path: str | os.PathLike[str],
        target: str | None = None,
        *,
        tables: BakedTables | None = None,
        vectors: Vectors | None = None,
    ) -> list[Path]:
        """Write the files of a target and return their paths.

        Parameters
        ----------
        path : path-like
            For C both ``NAME.c`` and ``NAME.h`` are written, whichever of them is named here.
        target : str, optional
            By default what the suffix says: .c, .h, .jl, .f90, .py (numba).
        tables : BakedTables, optional
        vectors : Vectors, optional
        """
        place = Path(path)
        target = target_of_suffix(place.suffix) if target is None else target
        check_suffix(target, place)
        if place.is_dir() or not place.name:
            raise ParameterError(f"path {path} is a folder; add the name of a file")
        name = re.sub(r"\W", "_", place.stem, flags=re.ASCII)
        name = name if name.isidentifier() else f"kernel_{name}"
        found = self.files(target, tables=tables, name=name, vectors=vectors)
        if len(found) == 1:
            goals = dict.fromkeys(found, place)
        else:
            goals = {file: place.with_suffix(Path(file).suffix) for file in found}
            if not re.fullmatch(r"[\w.+ -]+", place.stem):
                raise ParameterError(
                    f"path {path} names files that cannot include each other: use letters, "
                    "digits and any of _ . + -"
                )
        for file, text in found.items():
            # The files refer to each other by the names that they have, not those of the kernel.
            for other, goal in goals.items() if len(goals) > 1 else ():
                literal = goal.name.replace("\\", r"\\")
                text = re.sub(rf"\b{re.escape(other)}\b", literal, text)
            write_atomically(goals[file], text)
        return list(goals.values())

    def inspect(self, stage: str = "program") -> str:
        """Return one stage of the way from equations to code as text.

        Parameters
        ----------
        stage : str
            "equations", "blocks", "hoisted", "quadrature", "fused", "accurate", "program",
            "functions", "tables" or a target.
        """
        if stage in self.stages:
            return self.stages[stage]()
        if stage == "tables":
            return self._tables()
        if stage == "functions":
            return describe_functions(self.program)
        if stage in TARGETS:
            return self.source(stage)
        raise ParameterError(f"stage must be one of {', '.join(STAGES)}, got {stage!r}")

    def _tables(self) -> str:
        """The source in NumPy of what tabulates the functions of the node."""
        if not self.program.tables:
            return "no tables: nothing is averaged on the nodes of the line"
        return table_source(
            self.definitions,
            node=self.node,
            identifiers=self.identifiers,
            parameters=self.table_parameters,
            product=self.product,
        )

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        return f"LoweredSystem({self.system.name!r})"


def lower(system: SaddlePointSystem) -> LoweredSystem:
    """Lower a system to a program from which the sources of all targets are printed.

    Raises
    ------
    EmissionError
        If an expression holds something that no target knows; the message names the node.
    StructureError
        If the equations do not determine their unknowns.

    See Also
    --------
    giantstep.lower : the same with numbers: solve, sweep, any number of digits.

    Examples
    --------
    >>> from giantstep.symbolic.systems.saddle_point import SaddlePointSystem
    >>> x, a = sp.symbols("x a", positive=True)
    >>> system = SaddlePointSystem.from_fixed_point({x: a / (1 + x)}, name="mean", parameters=(a,))
    >>> print(lower(system).inspect("blocks"))
    1 block: 1 unknown Newton {x}
    """
    stated = system.independent()
    system = stated.in_coordinates()
    stages: dict[str, Callable[[], str]] = {}
    program, hoisted = lower_to_program(system, stages, stated.domains)
    return LoweredSystem(
        system=system,
        program=program,
        definitions=hoisted.definitions,
        node=hoisted.node,
        identifiers=hoisted.identifiers,
        stages=stages,
        product=hoisted.product,
        stated=stated,
    )
