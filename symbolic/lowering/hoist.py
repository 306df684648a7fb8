"""Pass 1: take out of the equations what can be tabulated before they are solved.

The outer expectations of a system run over one Gaussian variable, the node. An inner expectation
that holds no unknown becomes a function of the node with a name, a table. One that holds unknowns
but not the node is a number: it becomes an unknown with an equation of its own. What depends on
both cannot be taken out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy as sp

from ...errors import EmissionError
from ..data_average import DataAverage
from ..equations import Equation
from ..gaussian import GaussianExpectation
from ..jumps import jumps_as_steps
from ..proximal import Proximal
from ..saddle_point import SaddlePointSystem
from .door import admit


@dataclass(frozen=True)
class HoistedSystem:
    """Equations and outputs whose expectations are over one variable and not nested.

    Attributes
    ----------
    equations : tuple of Equation
    outputs : mapping from str to Expr
    definitions : mapping from applied function to Expr
        The tables.
    node : Symbol
    identifiers : mapping from Symbol to str
    """

    equations: tuple[Equation, ...]
    outputs: Mapping[str, sp.Expr]
    definitions: Mapping[sp.Expr, sp.Expr]
    node: sp.Symbol
    identifiers: Mapping[sp.Symbol, str]

    def __str__(self) -> str:
        lines = [
            f"{e.unknown} = {e.value}" if e.value is not None else f"0 = {e.residual}"
            for e in self.equations
        ]
        lines += [f"output {name} = {value}" for name, value in self.outputs.items()]
        lines += [f"table {f} = {value}" for f, value in self.definitions.items()]
        return "\n".join(lines)


def hoist(system: SaddlePointSystem) -> HoistedSystem:
    """Admit the expressions of a system and take inner expectations out of them.

    Raises
    ------
    EmissionError
        If an expression holds an unknown node, or an inner expectation depends on unknowns and on
        the variable of the outer one.
    """
    worker = _Hoister(system)
    definitions = {
        f: admit(value, f"the definition of {f}") for f, value in system.definitions.items()
    }
    equations = []
    for e in system.equations:
        place = f"the equation for {e.unknown}"
        if e.value is None:
            equations.append(Equation(e.unknown, None, worker.hoist(e.residual, place)))
        else:
            value = worker.hoist(e.value, place)
            equations.append(Equation(e.unknown, value, e.unknown - value))
    outputs = {
        name: worker.hoist(value, f"the output {name!r}") for name, value in system.outputs.items()
    }
    return HoistedSystem(
        equations=(*worker.means, *equations),
        outputs=outputs,
        definitions={**definitions, **worker.tables},
        node=system.node,
        identifiers={**system.identifiers, **worker.identifiers},
    )


class _Hoister:
    def __init__(self, system: SaddlePointSystem) -> None:
        self.system = system
        self.unknowns = set(system.unknowns)
        self.tables: dict[sp.Expr, sp.Expr] = {}
        self.means: list[Equation] = []
        self.identifiers: dict[sp.Symbol, str] = {}
        self._table_of: dict[sp.Expr, sp.Expr] = {}
        self._mean_of: dict[sp.Expr, sp.Symbol] = {}

    def hoist(self, expr: sp.Expr, place: str) -> sp.Expr:
        expr = jumps_as_steps(_closed_proximals(admit(expr, place)))
        found = {node: self._outer(node, place) for node in outermost(expr)}
        return expr.xreplace(found)

    def _outer(self, node: sp.Expr, place: str) -> sp.Expr:
        integrand = node.args[0]
        inner = outermost(integrand)
        if isinstance(node, DataAverage):
            mixed = [n for n in inner if n.free_symbols & set(node.columns)]
            if mixed:
                raise EmissionError(
                    f"{place} averages the expectation {_short(mixed[0])} over the data "
                    f"{node.data_name!r}; an expectation may not depend on the columns of data: "
                    "bring it to closed form first"
                )
            return node.xreplace({n: self._mean(n, place) for n in inner})
        variable = node.variable
        found = {}
        for n in inner:
            if isinstance(n, DataAverage) and variable in n.free_symbols:
                raise EmissionError(
                    f"{place} averages {_short(n)} over {variable} and over data at once; "
                    "bring one of the two to closed form first"
                )
            if variable not in n.free_symbols:
                found[n] = self._mean(n, place)
            elif n.free_symbols & self.unknowns:
                held = ", ".join(sorted(map(str, n.free_symbols & self.unknowns)))
                raise EmissionError(
                    f"{place} holds the inner expectation {_short(n)}, which depends on the "
                    f"unknown {held} and on {variable}, so it can be neither tabulated nor taken "
                    "out; bring it to closed form (doit()), or write the double average over one "
                    "variable"
                )
            else:
                found[n] = self._table(n.xreplace({variable: self.system.node}))
        # Table functions of the system are functions of its node already.
        integrand = integrand.xreplace(found)
        if variable != self.system.node:
            integrand = integrand.xreplace({variable: self.system.node})
        outer = GaussianExpectation(integrand, self.system.node)
        return _polynomials_done(outer)

    def _table(self, node: sp.Expr) -> sp.Expr:
        if node not in self._table_of:
            nested = [n for n in outermost(node.args[0]) if n.has(self.system.node)]
            if nested:
                raise EmissionError(
                    f"the inner expectation {_short(node)} holds another one; give the inner one "
                    "a name in definitions"
                )
            taken = {str(f.func) for f in self.system.definitions}
            name = f"inner_{len(self._table_of) + 1}"
            while name in taken:
                name += "_"
            function = sp.Function(name, real=True)(self.system.node)
            self._table_of[node] = function
            self.tables[function] = self._with_own_variable(node)
        return self._table_of[node]

    def _with_own_variable(self, node: sp.Expr) -> sp.Expr:
        """Rename the bound variable of a table if code would confuse it with another name."""
        taken = {self.system.node.name, *self.system.identifiers.values()}
        name = node.variable.name
        while name in taken or not name.isidentifier():
            name = f"{name}_inner" if name.isidentifier() else "inner"
        variable = sp.Symbol(name, real=True)
        integrand = node.integrand.xreplace({node.variable: variable})
        return node if variable == node.variable else GaussianExpectation(integrand, variable)

    def _mean(self, node: sp.Expr, place: str) -> sp.Symbol:
        if node not in self._mean_of:
            name = f"mean_{len(self._mean_of) + 1}"
            taken = {*map(str, self.system.identifiers), *self.system.identifiers.values()}
            while name in taken:
                name += "_"
            positive = True if node.is_nonnegative else None
            mean = sp.Symbol(name, real=True, nonnegative=positive)
            self._mean_of[node] = mean
            self.identifiers[mean] = name
            value = self._outer(node, place)
            self.means.append(Equation(mean, value, mean - value))
        return self._mean_of[node]


def outermost(expr: sp.Expr) -> list[sp.Expr]:
    """Return the averages in `expr` over Gaussian variables or data that no other one encloses."""
    if isinstance(expr, GaussianExpectation | DataAverage):
        return [expr]
    found: dict[sp.Expr, None] = {}
    for argument in expr.args:
        if isinstance(argument, sp.Basic):
            found |= dict.fromkeys(outermost(argument))
    return list(found)


def _closed_proximals(expr: sp.Expr) -> sp.Expr:
    """Take closed forms of proximal operators where there are any: no iteration in the kernel."""
    return expr.xreplace({p: p.doit() for p in expr.atoms(Proximal)})


def _polynomials_done(node: sp.Expr) -> sp.Expr:
    """Do expectations of polynomials exactly."""
    closed = {n: n.doit() for n in _gaussian(node) if n.integrand.is_polynomial(n.variable)}
    return node.xreplace(closed)


def _gaussian(expr: sp.Expr) -> Iterable[GaussianExpectation]:
    return expr.atoms(GaussianExpectation)


def _short(node: sp.Expr) -> str:
    text = str(node)
    return text if len(text) <= 80 else text[:77] + "…"
