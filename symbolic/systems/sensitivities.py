r"""Derivatives of solutions with respect to parameters, by the implicit function theorem.

The tangent of a system is a system of the same form. Where :math:`x = F(x, p)`, the derivatives
:math:`\dot x = dx/dp` satisfy the linear equations

.. math:: \dot x_i = \partial_p F_i + \sum_j \partial_j F_i\,\dot x_j ,

and a quantity E(x, p) has :math:`dE/dp = \partial_p E + \sum_j \partial_j E\,\dot x_j`. So
:func:`with_sensitivities` appends equations to a system; its block structure finds the linear
blocks, and every target, digits included, comes from the same lowering. Applied to its own result
it gives second derivatives. :func:`with_derivatives_along` differentiates along a curve
:math:`p(t)` in the space of parameters.

Tables depend on parameters too: where ``f(kappa)`` is one, its derivative is another table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import ParameterError
from ..expressions.bivariate_normal import BivariateNormalCDF
from ..gaussian.expectation import GaussianExpectation
from ..gaussian.stein_lemma import smooth_partial
from .equations import Equation
from .random_matrix import MarchenkoPasturAverage
from .saddle_point import SaddlePointSystem

HIGHEST_ORDER = 4


def with_sensitivities(
    system: SaddlePointSystem,
    parameters: Iterable[sp.Symbol],
    outputs: Iterable[str] | None = None,
    *,
    order: int = 1,
) -> SaddlePointSystem:
    """Return the system with the derivatives of its solution with respect to parameters.

    Parameters
    ----------
    system : SaddlePointSystem
    parameters : iterable of Symbol
        Of the system; they vary independently of each other.
    outputs : iterable of str, optional
        Outputs to differentiate; default: all. Unknowns are always differentiated.
    order : int
        2 adds all second derivatives, mixed ones included.

    Returns
    -------
    SaddlePointSystem
        New unknowns and outputs are named by :func:`derivative_name`. Derivatives that vanish
        identically are no unknowns.

    Raises
    ------
    ParameterError
        If a parameter or an output is none of the system's.
    UnsupportedExpressionError
        If an integrand jumps at points that cannot be found.

    Examples
    --------
    >>> q, t = sp.symbols("q t", positive=True)
    >>> equations = {q: t / (1 + q)}
    >>> system = SaddlePointSystem.from_fixed_point(equations, name="golden", parameters=(t,))
    >>> found = with_sensitivities(system, (t,))
    >>> found.equations[1].value
    -qdot__t*t/(q + 1)**2 + 1/(q + 1)
    >>> print(found.structure)
    2 blocks: 1 unknown Newton {q}; 1 unknown linear {qdot__t}
    """
    chosen = tuple(parameters)
    if not chosen:
        raise ParameterError("parameters must name at least one parameter of the system")
    directions = []
    for p in chosen:
        if p not in system.parameters:
            known = ", ".join(map(str, system.parameters))
            raise ParameterError(f"parameters: {p} is no parameter of the system; it has {known}")
        directions.append(_Direction({p: sp.S.One}, system.identifiers[p], str(p)))
    if len(set(chosen)) < len(chosen):
        raise ParameterError("parameters must not repeat a parameter")
    return _differentiated(system, directions, outputs, order)


def with_derivatives_along(
    system: SaddlePointSystem,
    direction: Mapping[sp.Symbol, sp.Expr],
    outputs: Iterable[str] | None = None,
    *,
    label: str = "t",
    order: int = 1,
) -> SaddlePointSystem:
    r"""Return the system with the derivatives of its solution along a curve of parameters.

    Parameters
    ----------
    system : SaddlePointSystem
    direction : mapping from Symbol to Expr
        Rate :math:`dp/dt` of each parameter that moves, in parameters and in new symbols, which
        become parameters. The rate of a new symbol is its own derivative, needed for order 2:
        ``{p: p1, p1: p2}``; without one it is constant.
    outputs : iterable of str, optional
        As for :func:`with_sensitivities`.
    label : str
        Name of t in the names of the derivatives.
    order : int
    """
    rates = {p: sp.sympify(v, strict=True) for p, v in direction.items()}
    if not set(rates) & set(system.parameters):
        raise ParameterError("direction must move at least one parameter of the system")
    fresh = set(rates).union(*(v.free_symbols for v in rates.values())) - set(system.parameters)
    taken = fresh & set(system.unknowns)
    if taken:
        raise ParameterError(f"direction holds the unknown {', '.join(map(str, taken))}")
    if not label.isidentifier():
        raise ParameterError(f"label must be an identifier, got {label!r}")
    extended = replace(system, parameters=(*system.parameters, *sorted(fresh, key=str)))
    return _differentiated(extended, [_Direction(rates, label, label)], outputs, order)


def derivative_name(name: str, *labels: str) -> str:
    """Return the code name of a derivative: ``d_test_error_d_ridge``, ``d2_q_d_a_d_b``."""
    head = "d" if len(labels) == 1 else f"d{len(labels)}"
    return "_d_".join([f"{head}_{name}", *labels])


@dataclass(frozen=True)
class _Direction:
    """Rates of parameters; `label` for code, `name` for print."""

    rates: Mapping[sp.Symbol, sp.Expr]
    label: str
    name: str


_Index = tuple[int, ...]


def _differentiated(
    system: SaddlePointSystem,
    directions: Sequence[_Direction],
    outputs: Iterable[str] | None,
    order: int,
) -> SaddlePointSystem:
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= HIGHEST_ORDER:
        raise ParameterError(f"order must be from 1 to {HIGHEST_ORDER}, got {order!r}")
    wanted = tuple(system.outputs) if outputs is None else tuple(outputs)
    for name in wanted:
        if name not in system.outputs:
            known = ", ".join(system.outputs)
            raise ParameterError(f"outputs: {name!r} is no output of the system; it has {known}")
    tower = _Tower(system, directions)
    for level in range(1, order + 1):
        for index in combinations_with_replacement(range(len(directions)), level):
            tower.add(index)
    result = dict(system.outputs)
    for name in wanted:
        values: dict[_Index, sp.Expr] = {(): system.outputs[name]}
        for index in tower.indices:
            values[index] = tower.derive(values[index[:-1]], index[-1])
            result[derivative_name(name, *(directions[i].label for i in index))] = values[index]
    return replace(
        system,
        equations=tuple(e for level in tower.equations.values() for e in level.values()),
        outputs=result,
        definitions=tower.definitions,
        identifiers=tower.identifiers,
        tangent=True,
    )


class _Tower:
    """Equations, tables and their derivatives, by multi-index of directions."""

    def __init__(self, system: SaddlePointSystem, directions: Sequence[_Direction]) -> None:
        self.directions = directions
        self.equations: dict[_Index, dict[sp.Symbol, Equation]] = {
            (): {e.unknown: e for e in system.equations}
        }
        self.definitions = dict(system.definitions)
        self.identifiers = dict(system.identifiers)
        # What an unknown or a table is a derivative of, and its derivatives in each direction;
        # one that is missing vanishes.
        self._origin: dict[sp.Expr, tuple[sp.Expr, _Index]] = {
            x: (x, ()) for x in (*system.unknowns, *system.definitions)
        }
        self._derivative: dict[tuple[sp.Expr, _Index], sp.Expr] = {
            key: x for x, key in self._origin.items()
        }
        self._closed = {f: _closed(value) for f, value in system.definitions.items()}

    @property
    def indices(self) -> tuple[_Index, ...]:
        """The multi-indices of all derivatives, lower orders first."""
        return tuple(index for index in self.equations if index)

    def add(self, index: _Index) -> None:
        """Add the derivatives of all unknowns and tables with a multi-index."""
        self._add_tables(index)
        parents = self.equations[index[:-1]]
        candidates = {}
        for x in parents:
            origin, _ = self._origin[x]
            name = _dotted(str(origin), [self.directions[i].name for i in index])
            candidates[x] = sp.Symbol(name, real=True)
            self._register(candidates[x], origin, index)
        result: dict[sp.Symbol, Equation] = {}
        for x, new in candidates.items():
            e = parents[x]
            if e.value is None:
                result[new] = Equation(new, None, self.derive(e.residual, index[-1]))
            else:
                value = self.derive(e.value, index[-1])
                result[new] = Equation(new, value, new - value)
        zero = dict.fromkeys(_vanishing(result), sp.S.Zero)
        for new in zero:
            del self._derivative[self._origin.pop(new)]
        remaining: dict[sp.Symbol, Equation] = {}
        labels = [self.directions[i].label for i in index]
        for new, e in result.items():
            if new in zero:
                continue
            value = None if e.value is None else e.value.xreplace(zero)
            remaining[new] = Equation(new, value, e.residual.xreplace(zero))
            origin, _ = self._origin[new]
            self.identifiers[new] = derivative_name(self.identifiers[origin], *labels)
        self.equations[index] = remaining

    def derive(self, expr: sp.Expr, direction: int) -> sp.Expr:
        """Return the total derivative of an expression in unknowns, parameters and tables."""
        rates = self._rates(expr.free_symbols, direction)
        closed = {
            node: node.doit()
            for node in expr.atoms(MarchenkoPasturAverage)
            if node.beta.free_symbols & set(rates)
        }
        expr = expr.xreplace(closed)
        total = sp.Add(*(rate * smooth_partial(expr, x) for x, rate in rates.items()))
        return total + self._through_tables(expr, direction)

    def _rates(self, symbols: Iterable[sp.Symbol], direction: int) -> dict[sp.Symbol, sp.Expr]:
        given = self.directions[direction].rates
        result = {}
        for x in sorted(symbols, key=str):
            rate = given.get(x) if x in given else self._next(x, direction)
            if rate is not None and rate != 0:
                result[x] = rate
        return result

    def _next(self, x: sp.Expr, direction: int) -> sp.Expr | None:
        if x not in self._origin:
            return None
        origin, index = self._origin[x]
        return self._derivative.get((origin, tuple(sorted((*index, direction)))))

    def _through_tables(self, expr: sp.Expr, direction: int) -> sp.Expr:
        moving = {
            f: rate
            for f in sorted(expr.atoms(AppliedUndef), key=str)
            if (rate := self._next(f, direction)) is not None
        }
        if not moving:
            return sp.S.Zero
        nodes = [n for n in expr.atoms(GaussianExpectation) if n.atoms(AppliedUndef)]
        nodes = [n for n in nodes if not any(n is not o and o.has(n) for o in nodes)]
        marks = {n: sp.Dummy(real=True) for n in nodes}
        marked = expr.xreplace(marks)
        # Outside of 𝔼 a table is a number for each node, as in the definition of another table.
        total = _partial_by_tables(marked, moving)
        for n, mark in marks.items():
            inside = _partial_by_tables(n.integrand, moving)
            total += marked.diff(mark) * GaussianExpectation(inside, n.variable)
        return total.xreplace({mark: n for n, mark in marks.items()})

    def _add_tables(self, index: _Index) -> None:
        parent = index[:-1]
        for f, level in list(self._origin.values()):
            if not isinstance(f, AppliedUndef) or level != parent:
                continue
            table = self._derivative[f, parent]
            value = _closed(self.derive(self._closed[table], index[-1]))
            if value == 0:
                continue
            name = _dotted(str(f.func), [self.directions[i].name for i in index])
            new = sp.Function(name, real=True)(*f.args)
            self._register(new, f, index)
            self.definitions[new] = self._closed[new] = value

    def _register(self, new: sp.Expr, origin: sp.Expr, index: _Index) -> None:
        if new in self._origin:
            raise ParameterError(f"the system has a variable {new} already; rename it")
        self._origin[new] = (origin, index)
        self._derivative[origin, index] = new


def _partial_by_tables(expr: sp.Expr, moving: Mapping[sp.Expr, sp.Expr]) -> sp.Expr:
    plain = {f: sp.Dummy(real=True) for f in moving if expr.has(f)}
    numbers = expr.xreplace(plain)
    total = sp.Add(*(moving[f] * smooth_partial(numbers, mark) for f, mark in plain.items()))
    return total.xreplace({mark: f for f, mark in plain.items()})


def _closed(definition: sp.Expr) -> sp.Expr:
    """Take closed forms of expectations where there are any; residual variances have none.

    A closed form needs no rule for a kink. Expectations that refer to other tables are means of
    squares, whose closed forms cancel.
    """
    result = {}
    for n in definition.atoms(GaussianExpectation):
        if n.integrand.atoms(AppliedUndef):
            continue
        closed = n.doit()
        if not closed.has(GaussianExpectation, BivariateNormalCDF, sp.Integral):
            result[n] = closed
    return definition.xreplace(result)


def _vanishing(equations: Mapping[sp.Symbol, Equation]) -> set[sp.Symbol]:
    """Return the unknowns of linear homogeneous equations that no inhomogeneous one reaches."""
    unknowns = set(equations)
    zero = dict.fromkeys(unknowns, sp.S.Zero)
    reached = {x for x, e in equations.items() if e.residual.xreplace(zero) != 0}
    before = -1
    while before < len(reached):
        before = len(reached)
        for x, e in equations.items():
            held = e.residual.free_symbols & unknowns
            if held & reached:
                reached.add(x)
            if x in reached and e.value is None:
                # An implicit condition may determine any of the unknowns in it.
                reached |= held
    return unknowns - reached


def _dotted(name: str, directions: Sequence[str]) -> str:
    """Return a name that prints with dots: V_1 → Vdot_1__lambda, in LaTeX V̇₁^λ."""
    letters = len(name) - len(name.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    dots = {1: "dot", 2: "ddot", 3: "dddot", 4: "ddddot"}[len(directions)]
    marks = "".join(f"__{d}" for d in directions)
    return f"{name[:letters]}{dots}{name[letters:]}{marks}"
