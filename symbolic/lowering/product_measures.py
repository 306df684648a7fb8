r"""Averages over several Gaussian variables at once: inner nodes beside the node.

An inner expectation that holds unknowns and the node can be neither tabulated nor taken out. Where
it enters linearly,

.. math::
    \mathbb{E}_\kappa\big[g(\kappa)\,\mathbb{E}_s F(\kappa, s)\big]
    = \mathbb{E}_{\kappa, s}\big[g(\kappa) F(\kappa, s)\big] ,

and a sum over the nodes of the line becomes a sum over a grid in (κ, s). In expressions the inner
variable is then an *inner node*, an applied function of the node without a definition: an array
like a table. A power or a product of such expectations takes as many independent variables,
:math:`(\mathbb{E}_s F)^2 = \mathbb{E}_{s,t} F(\kappa, s) F(\kappa, t)`. What is costly and holds
no unknown is tabulated on the grid.

Inside another function an inner expectation is no such sum. Systems that hold one take averages at
each node first (:mod:`.inner_averages`), on the same grid, whose inner lines are all equally long
then: such an average has to be right at a node far out, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.logic.boolalg import Boolean

from ...errors import EmissionError
from ..expressions._singularities import POLE_HEIGHTS
from ..expressions.functions import relu
from ..expressions.regularity import highest_frequency, strip_and_growth
from ..expressions.shared_parts import replaced
from ..gaussian.expectation import GaussianExpectation
from ..gaussian.jumps import integrate_deltas
from ..losses.proximal import MoreauEnvelope, Proximal
from .inner_averages import InnerAverage, InnerScale
from .measures import curvature, pieces, switches
from .parity import parity_under

# More variables need more nodes than anybody can wait for.
MOST_INNER = 3
# Of sin(w*s) and its square, divided by w.
_WIDTH_OF_SINE = 2
# Of tanh(w*s), divided by w, whose poles are nearer than any of an error function.
_WIDTH_OF_TANH = sp.Rational(3, 5)
_KINKED = (relu, sp.Abs, sp.sign, sp.Heaviside)


@dataclass(frozen=True)
class ProductMeasure:
    """What the averages of a system run over besides its node.

    Attributes
    ----------
    nodes : mapping from applied function to Symbol
        Inner nodes, from the outermost inward, with their names.
    definitions : mapping from applied function to Expr
        Tables on the grid: explicit expressions in the node, inner nodes (their symbols), the
        parameters and tables of the node.
    breaks : tuple of tuple of Expr
        For each inner node the places of kinks and jumps, in the node, earlier inner nodes and
        parameters.
    scales : tuple of tuple of Expr
        For each inner node widths, up to a sign, over which integrands vary.
    outer_breaks, outer_scales : tuple of Expr
        The same for the node, of what holds no table.
    nested : bool
        Averages over the inner nodes are taken at each node before the sum over nodes.
    integrands : tuple of Expr
        What is summed on the grid, in the node and inner nodes.
    """

    nodes: Mapping[sp.Expr, sp.Symbol]
    definitions: Mapping[sp.Expr, sp.Expr]
    breaks: tuple[tuple[sp.Expr, ...], ...]
    scales: tuple[tuple[sp.Expr, ...], ...]
    outer_breaks: tuple[sp.Expr, ...]
    outer_scales: tuple[sp.Expr, ...]
    nested: bool = False
    integrands: tuple[sp.Expr, ...] = ()

    @property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """The inner nodes by name."""
        return tuple(self.nodes.values())

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """Symbols of everything that is computed before the equations are solved."""
        groups = (*self.breaks, *self.scales, self.outer_breaks, self.outer_scales)
        values = chain(self.definitions.values(), *groups)
        return set().union(*(value.free_symbols for value in values))

    def __str__(self) -> str:
        lines = [f"inner node {s}" for s in self.symbols]
        return "\n".join([*lines, *(f"table {f} = {v}" for f, v in self.definitions.items())])


def require_polynomial(
    marked: sp.Expr, marks: Mapping[sp.Expr, sp.Symbol], unknowns: set[sp.Symbol], place: str
) -> None:
    """Refuse expectations, marked in the integrand of an inner one, in which it is no polynomial.

    Raises
    ------
    EmissionError
    """
    for n, mark in marks.items():
        if not marked.is_polynomial(mark):
            held = ", ".join(sorted(map(str, n.free_symbols & unknowns)))
            depends = f"the unknown {held} and on " if held else ""
            raise EmissionError(
                f"{place} holds the expectation {short(n)} inside a function inside of another "
                f"inner expectation, and it depends on {depends}the variables of the outer ones: "
                "three levels, where two can be computed; bring the innermost one to closed form "
                "(doit()), or write the average so that it stands as a factor"
            )


def require_nonzero(n: GaussianExpectation, integrand: sp.Expr, place: str) -> None:
    """Refuse an inner expectation that vanishes where the integrand divides by it.

    Raises
    ------
    EmissionError
    """
    at_zero = integrand.xreplace({n: sp.S.Zero})
    if not at_zero.has(sp.zoo, sp.nan, sp.oo, -sp.oo):
        return
    if parity_under(n.integrand, {n.variable: -n.variable}) == -1:
        raise EmissionError(
            f"{place} divides by the inner expectation {short(n)} or takes its logarithm, and it "
            f"is zero: its integrand is odd in {n.variable}"
        )


def monomials(
    marked: sp.Expr, marks: tuple[sp.Symbol, ...]
) -> Iterator[tuple[tuple[int, ...], sp.Expr]]:
    """Iterate over powers of the marks and their coefficients in a polynomial."""
    if not marks:
        yield (), marked
        return
    mark, *others = marks
    power, derivative = 0, marked
    while derivative != 0:
        coefficient = derivative.xreplace({mark: sp.S.Zero}) / sp.factorial(power)
        if coefficient != 0:
            for powers, value in monomials(coefficient, tuple(others)):
                yield (power, *powers), value
        power, derivative = power + 1, derivative.diff(mark)


class ProductBuilder:
    """Collects inner nodes and what is tabulated on the grid.

    Parameters
    ----------
    node : Symbol
    unknowns : set of Symbol
    taken : iterable of str
        Names in code that inner nodes and tables cannot have.
    """

    def __init__(self, node: sp.Symbol, unknowns: set[sp.Symbol], taken: Iterable[str]) -> None:
        self._node = node
        self._unknowns = unknowns
        self._taken = {node.name, *taken}
        self._nodes: dict[sp.Expr, sp.Symbol] = {}
        self._table_of: dict[sp.Expr, sp.Expr] = {}
        self._integrands: list[sp.Expr] = []

    def inner_node(self, depth: int, variable: sp.Symbol, place: str) -> sp.Symbol:
        """Return the symbol of the inner node at a depth, 0 for the first."""
        if depth >= MOST_INNER:
            raise EmissionError(
                f"{place} averages over more than {1 + MOST_INNER} variables, one inside the "
                "other; bring the innermost expectations to closed form first"
            )
        if depth == len(self._nodes):
            name = variable.name if variable.name.isidentifier() else "inner"
            while name in self._taken:
                name += "_"
            self._taken.add(name)
            applied = sp.Function(name, real=True)(self._node)
            self._nodes[applied] = sp.Symbol(name, real=True)
        return list(self._nodes.values())[depth]

    def held(self, expr: sp.Expr, besides: Sequence[sp.Symbol]) -> tuple[sp.Symbol, ...]:
        """Return the inner nodes in an expression, but those given."""
        return tuple(x for x in self._nodes.values() if expr.has(x) and x not in besides)

    def tabulated(self, integrand: sp.Expr, place: str) -> sp.Expr:
        """Return an integrand in inner nodes and tables, from one in the symbols of inner nodes.

        Raises
        ------
        EmissionError
            If it jumps at a place that moves with the unknowns.
        """
        for step in integrand.atoms(sp.Heaviside, sp.sign):
            held = step.free_symbols & self._unknowns
            if held and step.has(self._node, *self._nodes.values()):
                raise EmissionError(
                    f"{place} averages an integrand over {self._node} and "
                    f"{', '.join(map(str, self._nodes.values()))} that jumps where "
                    f"{step.args[0]} = 0, which moves with the unknown {min(map(str, held))}; "
                    "bring one of the averages to closed form first"
                )
        # Kinks of a scale are none of the integrand.
        scales = integrand.atoms(InnerScale)
        self._integrands.append(integrand.xreplace(dict.fromkeys(scales, sp.S.Zero)))
        back = {s: f for f, s in self._nodes.items()}
        return self._visit(integrand, self._unknowns).xreplace(back)

    def measure(self) -> ProductMeasure | None:
        """Return the measure; None if no inner expectation had to be flattened."""
        if not self._nodes:
            return None
        inner = tuple(self._nodes.values())
        breaks: dict[sp.Symbol, dict[sp.Expr, None]] = {x: {} for x in (self._node, *inner)}
        scales: dict[sp.Symbol, dict[sp.Expr, None]] = {x: {} for x in (self._node, *inner)}
        # Tables are numbers of the node here, which no place or width may hold.
        integrands = sp.Tuple(*self._integrands)
        marks = {f: sp.Dummy(real=True) for f in sorted(integrands.atoms(AppliedUndef), key=str)}
        foreign = {*marks.values(), *self._unknowns}
        for integrand in replaced(integrands, marks):
            for variable, place in self._breaks(integrand, foreign, inner):
                breaks[variable][place] = None
            for variable, width in self._scales(integrand, foreign, inner):
                scales[variable][width] = None
        return ProductMeasure(
            nodes=dict(self._nodes),
            nested=any(integrand.has(InnerAverage) for integrand in self._integrands),
            definitions={f: value for value, f in self._table_of.items()},
            breaks=tuple(tuple(breaks[x]) for x in inner),
            scales=tuple(tuple(scales[x]) for x in inner),
            outer_breaks=tuple(breaks[self._node]),
            outer_scales=tuple(scales[self._node]),
            integrands=tuple(self._integrands),
        )

    def _visit(self, expr: sp.Basic, moving: set[sp.Symbol]) -> sp.Basic:
        """Replace what is costly and holds nothing that is `moving` by tables."""
        if not expr.args or isinstance(expr, AppliedUndef | Boolean | sp.Tuple):
            return expr
        # What is the same at all inner nodes is no table on the grid.
        if not (expr.free_symbols & moving or expr.has(InnerAverage, InnerScale)):
            return self._table(expr) if self._worth_a_table(expr) else expr
        if isinstance(expr, Proximal | MoreauEnvelope):
            # The bound variable moves, too.
            loss = self._visit(expr.loss, {*moving, expr.variable})
            center, step = (self._visit(x, moving) for x in (expr.center, expr.step))
            return expr.func(loss, expr.variable, center, step)
        arguments = [self._visit(a, moving) for a in expr.args]
        unchanged = all(a is b for a, b in zip(arguments, expr.args, strict=True))
        return expr if unchanged else expr.func(*arguments)

    def _worth_a_table(self, expr: sp.Basic) -> bool:
        if not isinstance(expr, sp.Expr) or not expr.has(self._node, *self._nodes.values()):
            return False
        powers = (p for p in expr.atoms(sp.Pow) if not p.exp.is_Integer)
        functions = expr.atoms(sp.Function, sp.Piecewise) - expr.atoms(AppliedUndef)
        costly = chain(functions, powers)
        return any(f.has(self._node, *self._nodes.values()) for f in costly)

    def _table(self, expr: sp.Expr) -> sp.Expr:
        if -expr in self._table_of:
            return -self._table_of[-expr]
        if expr not in self._table_of:
            name = f"product_{len(self._table_of) + 1}"
            while name in self._taken:
                name += "_"
            positive = True if expr.is_nonnegative else None
            function = sp.Function(name, real=True, nonnegative=positive)(self._node)
            self._table_of[expr] = function
        return self._table_of[expr]

    def _breaks(
        self, integrand: sp.Expr, foreign: set[sp.Symbol], inner: Sequence[sp.Symbol]
    ) -> Iterator[tuple[sp.Symbol, sp.Expr]]:
        for argument in chain.from_iterable(map(pieces, switches(integrand))):
            if argument.free_symbols & foreign:
                # One rule serves all solutions, first values far from them included, and its level
                # is refined for many rows at once: no place that moves with unknowns is an end of
                # a panel. A kink there shows in the difference of rules, which falls slowly, so
                # that estimates are large; write its average in closed form for more.
                continue
            # The line of the last variable is cut; in the others the average is smooth then.
            held = [x for x in (self._node, *inner) if argument.has(x)]
            if not held:
                continue
            slope = sp.cancel(argument.diff(held[-1]))
            if not slope.has(held[-1]):
                place = sp.expand(-argument.xreplace({held[-1]: sp.S.Zero})) / slope
                yield held[-1], place

    def _scales(
        self, integrand: sp.Expr, foreign: set[sp.Symbol], inner: Sequence[sp.Symbol]
    ) -> Iterator[tuple[sp.Symbol, sp.Expr]]:
        variables = (self._node, *inner)
        for f in sorted(integrand.atoms(sp.Function), key=sp.default_sort_key):
            if f.free_symbols & foreign or isinstance(f, sp.Piecewise | sp.Max | sp.Min):
                continue
            slopes = {x: sp.cancel(f.args[0].diff(x)) for x in variables}
            for x in variables:
                bell = curvature(f, x) if isinstance(f, sp.exp) else None
                others = [s for y, s in slopes.items() if y != x and s != 0]
                if bell is not None:
                    width = 1 / sp.sqrt(sp.Abs(bell))
                elif slopes[x] == 0 or (isinstance(f, sp.exp) and not slopes[x].has(*variables)):
                    continue
                elif isinstance(f, sp.sin | sp.cos):
                    width = _WIDTH_OF_SINE / slopes[x]
                elif isinstance(f, _KINKED):
                    # Cut in the last variable that it holds, smoothed by that in the others.
                    if x == [y for y in variables if slopes[y] != 0][-1]:
                        continue
                    width = others[-1] / slopes[x]
                elif x == self._node:
                    width = sp.sqrt(1 + sum(s**2 for s in others)) / slopes[x]
                else:
                    height = POLE_HEIGHTS.get(type(f), sp.oo) / POLE_HEIGHTS[sp.tanh]
                    width = sp.Min(1, _WIDTH_OF_TANH * height) / slopes[x]
                if not width.has(*variables):
                    yield x, width
        for x in variables:
            fastest = highest_frequency(integrand, x)
            if fastest and not fastest.has(*variables, *foreign):
                yield x, 2 * _WIDTH_OF_SINE / fastest


def even_nodes(product: ProductMeasure) -> list[sp.Symbol]:
    """Return inner nodes in which all that is averaged is even: half of their lines suffices."""
    parts: dict[sp.Expr, None] = {}
    for integrand in product.integrands:
        inner = integrand.atoms(InnerAverage, InnerScale)
        parts[integrand.xreplace({n: sp.Dummy() for n in inner})] = None
        parts |= dict.fromkeys(n.args[0] for n in inner)
    return [x for x in product.symbols if all(p.xreplace({x: -x}) == p for p in parts)]


def fading_poles(
    product: ProductMeasure, node: sp.Symbol
) -> tuple[dict[sp.Symbol, tuple[sp.Expr, ...]], int]:
    """Return inner nodes in which all poles go away as one over the node, where that vanishes.

    As those of tanh(u**2*a + u*b*s) in s do. Averages over s are smooth at u = 0 then, but not
    analytic.

    Returns
    -------
    dict
        Of each such inner node the distances of poles from the real line, times \\|node\\|.
    int
        A power of the node with which all integrands vanish.
    """
    found = {}
    if not product.nested and not product.definitions:
        for x, breaks in zip(product.symbols, product.breaks, strict=True):
            distances = [] if breaks else [_fading(f, x, node) for f in product.integrands]
            if distances and all(d is not None for d in distances):
                found[x] = tuple(dict.fromkeys(d for d in distances if d is not None and d != 0))
    powers = [
        sp.Mul(*(f for f in sp.Mul.make_args(term) if f.as_base_exp()[0] == node))
        for integrand in product.integrands
        for term in sp.Add.make_args(integrand)
    ]
    least = min((sp.degree(p, node) for p in powers), default=0)
    return {x: distances for x, distances in found.items() if distances}, int(least)


def _fading(integrand: sp.Expr, x: sp.Symbol, node: sp.Symbol) -> sp.Expr | None:
    """Return the distance of poles in `x` times \\|node\\|, zero without poles, None if unknown."""
    if not integrand.has(x):
        return sp.S.Zero
    if integrand.atoms(AppliedUndef) or any(True for _ in switches(integrand)):
        return None
    strip, growth = strip_and_growth(integrand, x)
    if strip in (None, 0, sp.oo) or growth != 0 or highest_frequency(integrand, x) != 0:
        return None
    # SymPy takes signs that it knows out of absolute values.
    side = sp.Dummy(positive=True)
    distance = side * strip.xreplace({node: side})
    return None if distance.has(side) else distance


def without_deltas(node: sp.Expr) -> sp.Expr:
    """Integrate Dirac deltas over the variable of an inner expectation.

    Functions of the outer variable are constants there.
    """
    if not isinstance(node, GaussianExpectation) or not node.integrand.has(sp.DiracDelta):
        return node
    marks = {f: sp.Dummy(real=True) for f in node.integrand.atoms(AppliedUndef)}
    marks |= {n: sp.Dummy(real=True) for n in node.integrand.atoms(GaussianExpectation)
              if not n.has(node.variable)}  # fmt: skip
    back = {mark: value for value, mark in marks.items()}
    return integrate_deltas(node.xreplace(marks)).xreplace(back)


def short(node: sp.Expr) -> str:
    """Return an expression as text of one line at the most."""
    text = str(node)
    return text if len(text) <= 80 else text[:77] + "…"
