"""Pass 1: take out of the equations what can be tabulated before they are solved.

The outer expectations of a system run over one Gaussian variable, the node. An inner expectation
that holds no unknown becomes a function of the node with a name, a table. One that holds unknowns
but not the node is a number: it becomes an unknown with an equation of its own. One that depends
on both stays, and its variable becomes an inner node (:mod:`.product_measures`), over which is
averaged at each node where it stands inside another function (:mod:`.inner_averages`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import sympy as sp

from ...errors import EmissionError
from ..expressions.averages import DataAverage, outermost as nodes_of
from ..gaussian.expectation import GaussianExpectation, JointExpectation
from ..gaussian.jumps import jumps_as_steps
from ..losses.proximal import Proximal
from ..systems.equations import Equation
from ..systems.saddle_point import SaddlePointSystem
from .door import admit
from .inner_averages import InnerAverage, scaled
from .product_measures import (
    ProductBuilder,
    ProductMeasure,
    monomials,
    require_nonzero,
    require_polynomial,
    short,
    without_deltas,
)


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
    product : ProductMeasure or None
        Inner nodes, which the integrands hold besides the node, and tables on their grid.
    """

    equations: tuple[Equation, ...]
    outputs: Mapping[str, sp.Expr]
    definitions: Mapping[sp.Expr, sp.Expr]
    node: sp.Symbol
    identifiers: Mapping[sp.Symbol, str]
    product: ProductMeasure | None = None

    def __str__(self) -> str:
        lines = [*map(str, self.equations)]
        lines += [f"output {name} = {value}" for name, value in self.outputs.items()]
        lines += [f"table {f} = {value}" for f, value in self.definitions.items()]
        lines += [] if self.product is None else [str(self.product)]
        return "\n".join(lines)


def hoist(system: SaddlePointSystem) -> HoistedSystem:
    """Admit the expressions of a system and take inner expectations out of them.

    Raises
    ------
    EmissionError
        If an expression holds an unknown node; if expectations that depend on unknowns and on the
        variables of those around them stand inside functions three levels deep.
    """
    try:
        return _hoisted(system, _Hoister(system, nested=False))
    except _InsideAFunction:
        # Where one average takes sums of its own at each node, they all do, and powers need no
        # further variables.
        return _hoisted(system, _Hoister(system, nested=True))


class _InsideAFunction(Exception):
    """An inner expectation is no factor."""


def _hoisted(system: SaddlePointSystem, worker: _Hoister) -> HoistedSystem:
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
        product=worker.product.measure(),
    )


class _Hoister:
    def __init__(self, system: SaddlePointSystem, *, nested: bool) -> None:
        self.system = system
        self.nested = nested
        self.unknowns = {*system.unknowns, *system.varying}
        self.tables: dict[sp.Expr, sp.Expr] = {}
        self.means: list[Equation] = []
        self.identifiers: dict[sp.Symbol, str] = {}
        self._table_of: dict[sp.Expr, sp.Expr] = {}
        self._mean_of: dict[sp.Expr, sp.Symbol] = {}
        taken = [*map(str, system.identifiers), *system.identifiers.values(), *system.outputs]
        taken += [str(f.func) for f in system.definitions]
        self.product = ProductBuilder(system.node, self.unknowns, taken)

    def hoist(self, expr: sp.Expr, place: str) -> sp.Expr:
        expr = admit(_nested(expr), place)
        # No iteration in the kernel where there is a closed form.
        expr = expr.xreplace({p: p.doit() for p in expr.atoms(Proximal)})
        expr = jumps_as_steps(expr, frozenset(self._signs_at_rest(expr)))
        found = {node: self._outer(node, place) for node in outermost(expr)}
        return expr.xreplace(found)

    def _signs_at_rest(self, expr: sp.Expr) -> Iterator[sp.Expr]:
        """Iterate over signs on the grid whose places hold no unknown.

        They become tables, so nothing differentiates them, and an integrand is computed for one
        sign in place of both.
        """
        for outer in outermost(expr):
            if isinstance(outer, DataAverage):
                continue
            for n in outermost(outer.args[0]):
                if self._is_flattened(n, (outer.variable,)):
                    yield from (f for f in n.atoms(sp.sign) if not f.free_symbols & self.unknowns)

    def _outer(self, node: sp.Expr, place: str) -> sp.Expr:
        integrand = node.args[0]
        inner = outermost(integrand)
        if isinstance(node, DataAverage):
            mixed = [n for n in inner if n.free_symbols & set(node.columns)]
            if mixed:
                raise EmissionError(
                    f"{place} averages the expectation {short(mixed[0])} over the data "
                    f"{node.data_name!r}; an expectation may not depend on the columns of data: "
                    "bring it to closed form first"
                )
            return node.xreplace({n: self._mean(n, place) for n in inner})
        variable = node.variable
        flat = [n for n in inner if self._is_flattened(n, (variable,))]
        found = {n: self._inner(n, (variable,), place) for n in inner if n not in flat}
        # Table functions of the system are functions of its node already.
        integrand = integrand.xreplace(found)
        if variable != self.system.node:
            integrand = integrand.xreplace({variable: self.system.node})
        if flat:
            bound = (self.system.node,)
            flatten = self._averaged if self.nested else self._flattened
            integrand = self.product.tabulated(flatten(integrand, bound, place), place)
        outer = GaussianExpectation(integrand, self.system.node)
        return _polynomials_done(outer)

    def _is_flattened(self, n: sp.Expr, bound: tuple[sp.Symbol, ...]) -> bool:
        """Whether an inner average under variables that are `bound` stays where it is."""
        held = n.free_symbols & set(bound)
        if isinstance(n, DataAverage) or not held:
            return False
        return bool(held - {bound[0]} or n.free_symbols & self.unknowns)

    def _inner(self, n: sp.Expr, bound: tuple[sp.Symbol, ...], place: str) -> sp.Expr:
        """Return the table or the mean that an inner average becomes."""
        held = [x for x in bound if x in n.free_symbols]
        if not held:
            return self._mean(n, place)
        if isinstance(n, DataAverage):
            raise EmissionError(
                f"{place} averages {short(n)} over {held[0]} and over data at once; "
                "bring one of the two to closed form first"
            )
        return self._table(n.xreplace({held[0]: self.system.node}))

    def _sorted(
        self, integrand: sp.Expr, bound: tuple[sp.Symbol, ...], place: str
    ) -> tuple[sp.Expr, list[sp.Expr], dict[sp.Expr, sp.Expr]]:
        """Return an integrand, averages in it that stay, and what the others become."""
        integrand = integrand.xreplace({n: without_deltas(n) for n in outermost(integrand)})
        inner = outermost(integrand)
        flat = [n for n in inner if self._is_flattened(n, bound)]
        return integrand, flat, {n: self._inner(n, bound, place) for n in inner if n not in flat}

    def _averaged(self, integrand: sp.Expr, bound: tuple[sp.Symbol, ...], place: str) -> sp.Expr:
        """Return an integrand in averages over inner nodes at each node."""
        integrand, flat, found = self._sorted(integrand, bound, place)
        for n in flat:
            require_nonzero(n, integrand, place)
            variable = self.product.inner_node(0, n.variable, place)
            within = (*bound, variable)
            function = n.integrand.xreplace({n.variable: variable})
            function = self._flattened(function, within, place)
            held = (variable, *self.product.held(function, within))
            found[n] = InnerAverage(function, sp.Tuple(*held))
        return scaled(integrand.xreplace(found))

    def _flattened(self, integrand: sp.Expr, bound: tuple[sp.Symbol, ...], place: str) -> sp.Expr:
        """Return an integrand without expectations, their variables being inner nodes."""
        integrand, flat, found = self._sorted(integrand, bound, place)
        marks = {n: sp.Dummy(real=True) for n in flat}
        marked = integrand.xreplace(marks)
        if not all(marked.is_polynomial(mark) for mark in marks.values()) and len(bound) == 1:
            raise _InsideAFunction
        require_polynomial(marked, marks, self.unknowns, place)
        total: list[sp.Expr] = []
        for powers, coefficient in monomials(marked, tuple(marks.values())):
            term, variables = coefficient.xreplace(found), bound
            for n in chain.from_iterable([n] * k for n, k in zip(flat, powers, strict=True)):
                # A power is a product of averages over as many independent variables.
                variable = self.product.inner_node(len(variables) - 1, n.variable, place)
                # As a substitution in the node itself, so that nothing is captured.
                renamed = n.integrand.xreplace({n.variable: variable})
                factor = self._flattened(renamed, (*variables, variable), place)
                variables = (
                    *variables,
                    variable,
                    *self.product.held(factor, (*variables, variable)),
                )
                term *= factor
            total.append(term)
        return sp.Add(*total)

    def _table(self, node: sp.Expr) -> sp.Expr:
        if node not in self._table_of:
            nested = [n for n in outermost(node.args[0]) if n.has(self.system.node)]
            if nested:
                raise EmissionError(
                    f"the inner expectation {short(node)} holds another one; give the inner one "
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
            self.unknowns.add(mean)
            value = self._outer(node, place)
            self.means.append(Equation(mean, value, mean - value))
        return self._mean_of[node]


def outermost(expr: sp.Expr) -> list[sp.Expr]:
    """Return the averages in `expr` over Gaussian variables or data that no other one encloses."""
    return nodes_of(expr, GaussianExpectation, DataAverage)


def _nested(expr: sp.Expr) -> sp.Expr:
    """Take joint expectations as expectations of independent variables inside each other."""
    while joint := [
        n for n in expr.atoms(JointExpectation) if not n.integrand.has(JointExpectation)
    ]:
        expr = expr.xreplace({n: n.nested() for n in joint})
    return expr


def _polynomials_done(node: sp.Expr) -> sp.Expr:
    """Do expectations of polynomials exactly."""
    found: set[GaussianExpectation] = node.atoms(GaussianExpectation)
    return node.xreplace({n: n.doit() for n in found if n.integrand.is_polynomial(n.variable)})
