"""Coefficients of all unknowns and outputs, order by order, on given nodes.

The leading coefficients are a root of the leading system, found by Newton's method. Derivatives
need no formulas: the coefficient of t of F at X_0 + t e_j is column j of the Jacobian.

**Expressions with averages over κ as programs on power series.** The integrands of all averages
become one function of the tables and unknowns, and what stands outside of them another; both are
printed from the SymPy expressions. Their arguments are numbers, arrays over the quadrature nodes,
and power series of either, for which the same source yields the coefficients of the expanded
integrands.

**Nodes on the line of κ with the tables on them, to any number of digits.** Trapezoidal rules, each
with half the step of the one before; composite Gauss–Legendre rules where a table has kinks. Far
nodes matter more than usual here: without a ridge penalty integrands hold inverse powers of the
conditional variance, which decays for a student that saturates. So the line reaches as far as the
weight times such powers asks for, and the tables carry as many more digits as the smallest
conditional variance has leading zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import sympy as sp

from ....errors import ConvergenceError
from ....runtime.generated import defined
from ....runtime.precise_averages import InnerRule
from ....runtime.precise_lines import outer_rule
from ....runtime.precision import local_context
from ....runtime.quadrature import inner_extent
from ....runtime.rules import folded
from ....symbolic.exact.series import Series
from ....symbolic.gaussian.expectation import GaussianExpectation
from ....symbolic.lowering.tables import mpmath_table_source
from ....symbolic.printing.compiled import Formula, compiled, function_source
from ....symbolic.systems.asymptotic_series import order_by_order
from ....symbolic.systems.random_matrix import Resolvent
from .. import physics as fe
from .scaling import ScaledSystem, small

if TYPE_CHECKING:
    from ..derive import SymbolicModel

# ε itself; products with an integer are exact.
_EPSILON = Series.monomial(1, 1)
_MOST_ITERATIONS = 80

Residuals = Callable[[list[Series]], list[Series]]


class OrderByOrder:
    """The programs of a scaled system, block by block.

    Parameters
    ----------
    last : int
        Exponent of ε of the last term, of unknowns and outputs alike.
    beyond : bool
        Whether outputs that begin after it get their first term; it may diverge.
    """

    def __init__(
        self,
        system: ScaledSystem,
        parameters: Sequence[sp.Symbol],
        tables: Sequence[sp.Expr],
        last: int,
        *,
        beyond: bool = True,
    ) -> None:
        self.system, self.last = system, last
        self._unknowns = tuple(e.unknown for e in system.equations)
        self._blocks: list[tuple[tuple[sp.Symbol, ...], SeriesProgram, int]] = []
        order = 0
        for block in reversed(system.structure.blocks):
            # A block serves the later ones, so it goes as far as they do.
            # Of what is smaller than the last term, the leading coefficient is wanted still.
            order = max(order, *(last - system.exponents[x] for x in block.unknowns), 0)
            equations = [e for c in block.components for e in c.core + c.eliminated]
            program = SeriesProgram(
                [e.residual for e in equations], self._unknowns, parameters, tables
            )
            self._blocks.insert(0, (block.unknowns, program, order))
        self._outputs = {
            name: (k, SeriesProgram([expr], self._unknowns, parameters, tables))
            for name, (k, expr) in system.outputs.items()
            if beyond or k <= last
        }

    def solve(
        self, ctx: Any, weights: Any, nodes: Any, tables: Mapping[sp.Expr, Any],
        parameters: Sequence[Any], start: Mapping[sp.Symbol, Any], progress: Callable[[], object],
    ) -> tuple[dict[str, dict[int, Any]], dict[sp.Symbol, Any]]:  # fmt: skip
        """Return {name: {exponent of ε: coefficient}} and the leading scaled unknowns.

        Names are those of outputs and the text of the symbols of unknowns.
        """
        found: dict[sp.Symbol, Any] = dict.fromkeys(self._unknowns, ctx.zero)
        for unknowns, program, order in self._blocks:
            evaluate = program.on(ctx, weights, tables, nodes)
            solution = solve_orders(
                partial(_residuals, evaluate, parameters, found, unknowns),
                [start[x] for x in unknowns],
                [bool(start[x] > 0 and x.is_nonnegative) for x in unknowns],
                order,
                ctx,
                names=", ".join(map(str, unknowns)),
                progress=progress,
            )
            found |= dict(zip(unknowns, solution, strict=True))
        return self._collected(ctx, weights, nodes, tables, parameters, found), {
            x: series.coefficient(0) for x, series in found.items()
        }

    def _collected(
        self, ctx: Any, weights: Any, nodes: Any, tables: Mapping[sp.Expr, Any],
        parameters: Sequence[Any], found: Mapping[sp.Symbol, Series],
    ) -> dict[str, dict[int, Any]]:  # fmt: skip
        values: dict[str, dict[int, Any]] = {}
        for name, (k, program) in self._outputs.items():
            length = max(self.last - k, 0) + 1
            evaluate = program.on(ctx, weights, tables, nodes)
            (series,) = evaluate(_EPSILON, parameters, list(found.values()), length)
            values[name] = {j + k: ctx.zero + series.coefficient(j) for j in range(length)}
        for x, series in found.items():
            k = self.system.exponents[x]
            terms = {j + k: ctx.zero + series.coefficient(j) for j in range(series.end)}
            values[str(x)] = {j: c for j, c in terms.items() if j <= max(self.last, k)}
        return values


def _residuals(
    evaluate: Callable[[Any, Sequence[Any], Sequence[Any], int], list[Series]],
    parameters: Sequence[Any],
    found: Mapping[sp.Symbol, Any],
    unknowns: Sequence[sp.Symbol],
    values: list[Series],
) -> list[Series]:
    given = {**found, **dict(zip(unknowns, values, strict=True))}
    return evaluate(_EPSILON, parameters, list(given.values()), values[0].end)


def solve_orders(
    residuals: Residuals,
    start: Sequence[Any],
    positive: Sequence[bool],
    order: int,
    ctx: Any,
    *,
    names: str,
    progress: Callable[[], object],
) -> list[Series]:
    """Return the solution of a regular system as power series."""
    leading = list(start)
    # Quadratic convergence: a step of this size leaves an error of its square.
    small = ctx.sqrt(ctx.eps) / 1000
    for _ in range(_MOST_ITERATIONS):
        value = [f.coefficient(0) for f in residuals([Series((x,)) for x in leading])]
        matrix = _jacobian(residuals, leading, ctx)
        step = _solved(ctx, matrix, value, names=names)
        share = ctx.one
        for x, change, sign in zip(leading, step, positive, strict=True):
            if sign and change > 0:
                share = min(share, ctx.mpf(4) / 5 * x / change)
        leading = [x - share * change for x, change in zip(leading, step, strict=True)]
        scale = max(abs(x) for x in leading)
        progress()
        if all(
            abs(change) <= small * (abs(x) + scale * ctx.eps ** (ctx.mpf(1) / 4))
            for x, change in zip(leading, step, strict=True)
        ):
            break
    else:
        raise ConvergenceError(
            f"Newton's method found no leading coefficient of {names}", state=leading
        )
    matrix = _jacobian(residuals, leading, ctx)

    def residual(known: Sequence[Sequence[Any]], k: int) -> list[Any]:
        progress()
        return [f.coefficient(k) for f in residuals([Series(tuple(x)) for x in known])]

    found = order_by_order(leading, order, residual, partial(_solved, ctx, matrix, names=names))
    return [Series(tuple(x)) for x in found]


def _jacobian(residuals: Residuals, leading: Sequence[Any], ctx: Any) -> Any:
    n = len(leading)
    matrix = ctx.matrix(n, n)
    zero = [f.coefficient(1) for f in residuals([Series((x, 0)) for x in leading])]
    for j in range(n):
        moved = [Series((x, ctx.one if i == j else 0)) for i, x in enumerate(leading)]
        for i, f in enumerate(residuals(moved)):
            matrix[i, j] = ctx.mpf(0) + f.coefficient(1) - zero[i]
    return matrix


def _solved(ctx: Any, matrix: Any, right: Sequence[Any], *, names: str) -> list[Any]:
    try:
        return list(ctx.lu_solve(matrix, ctx.matrix([ctx.zero + x for x in right])))
    except ZeroDivisionError:
        raise ConvergenceError(f"the leading equations do not determine {names}") from None


# ------------------------------------------------------------------ series program

_RESOLVENT = "resolvent"


class SeriesContext:
    """What printed source asks of an mpmath context, for series and arrays."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx
        self._root = np.frompyfunc(ctx.sqrt, 1, 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def sqrt(self, x: Any) -> Any:
        """Return the square root of a number, an array or a series."""
        if isinstance(x, Series):
            return x.power(sp.S.Half, lambda e: self._ctx.mpf(int(e.p)) / int(e.q))
        return self._root(x) if isinstance(x, np.ndarray) else self._ctx.sqrt(x)


class SeriesProgram:
    """Values of expressions whose averages run over given nodes.

    Parameters
    ----------
    expressions : sequence of Expr
        In unknowns, parameters and ε, with averages over κ of rational functions of tables.
    """

    def __init__(
        self,
        expressions: Sequence[sp.Expr],
        unknowns: Sequence[sp.Symbol],
        parameters: Sequence[sp.Symbol],
        tables: Sequence[sp.Expr],
    ) -> None:
        nodes = sorted({n for e in expressions for n in e.atoms(GaussianExpectation)}, key=str)
        means = [sp.Symbol(f"mean_{k}", real=True) for k in range(len(nodes))]
        outer = [e.xreplace(dict(zip(nodes, means, strict=True))) for e in expressions]
        self._tables = tuple(tables)
        common = [small, *parameters, *unknowns]
        names = {x: f"given_{k}" for k, x in enumerate(common)}
        at_node = [fe.kappa, *tables]
        names |= {x: f"table_{k}" for k, x in enumerate(at_node)}
        named = [e.replace(Resolvent, sp.Function(_RESOLVENT)) for e in outer]
        self._source = function_source(
            {
                "integrands": Formula([*common, *at_node], [n.integrand for n in nodes]),
                "outer": Formula([*common, *means], named),
            },
            "mpmath",
            names=names,
            own_functions={_RESOLVENT: _RESOLVENT},
        )

    def on(
        self, ctx: Any, weights: Any, tables: Mapping[sp.Expr, Any], node: Any
    ) -> Callable[[Any, Sequence[Any], Sequence[Any], int], list[Series]]:
        """Return the function of (ε, parameters, unknowns, length) that evaluates on nodes.

        Parameters
        ----------
        ctx : mpmath context
        weights, node : array of numbers
        tables : mapping from applied function to array or Series of arrays
        """
        series = SeriesContext(ctx)
        branches = defined(_resolvent_branches(), ctx=series)
        program = defined(self._source, ctx=series, resolvent=partial(_resolvent, branches))
        given = [node, *(tables[f] for f in self._tables)]

        def mean(value: Any) -> Any:
            if isinstance(value, Series):
                return value.map(mean)
            if isinstance(value, np.ndarray):
                return ctx.fdot(weights, value)
            return value * total if value else 0

        total = ctx.fsum(weights)

        def evaluate(
            epsilon: Any, parameters: Sequence[Any], unknowns: Sequence[Any], length: int
        ) -> list[Series]:
            inputs = [_cut(x, length) for x in (epsilon, *parameters, *unknowns)]
            values = program.integrands(*inputs, *(_cut(x, length) for x in given))
            found = program.outer(*inputs, *map(mean, values))
            return [x if isinstance(x, Series) else Series.monomial(0, length, x) for x in found]

        return evaluate


def _cut(value: Any, length: int) -> Any:
    """Return a series or an array as a series with so many coefficients, a number as it is."""
    if isinstance(value, np.ndarray):
        # Products with arrays then keep them on the left: numbers do not know what to do with one.
        return Series.monomial(0, length, value)
    if not isinstance(value, Series):
        return value
    return Series(tuple(value.coefficient(k) if k < value.end else 0 for k in range(length)))


def _resolvent_branches() -> str:
    """Return the source of the two forms of the resolvent and of what decides between them."""
    arguments = [sp.Symbol(f"argument_{k}", positive=True) for k in range(3)]
    (first, condition), (second, _) = Resolvent(*arguments).rewrite(sp.Piecewise).args
    values = {"first": first, "second": second, "middle": condition.lhs - condition.rhs}
    return function_source({k: Formula(arguments, value) for k, value in values.items()}, "mpmath")


def _resolvent(branches: SimpleNamespace, a: Any, b: Any, beta: Any) -> Any:
    """Choose the form that does not cancel by the leading coefficients; it may have a pole."""
    leading = [x.coefficient(0) if isinstance(x, Series) else x for x in (a, b)]
    form = branches.first if branches.middle(*leading, beta) >= 0 else branches.second
    return form(a, b, beta)


# ------------------------------------------------------------------ line tables

_SPARE_DIGITS = 10
_FARTHEST = 60
_STEP = 0.4
_FLOAT_DIGITS = 16
_MOST_LEVELS = 7


class ExpandedRows(Protocol):
    """What an expansion in α or λ asks of spiked features."""

    @property
    def symbolic(self) -> SymbolicModel:
        """Free energy and equations."""
        ...

    @property
    def tables(self) -> tuple[Any, tuple[str, ...], bool]:
        """The float tables, the names of their parameters, and whether half of the line does."""
        ...

    def exact(self, ctx: Any) -> Mapping[str, Any]:
        """Return all parameters by name as numbers of a context."""
        ...


class LineTables:
    """Rules of increasing fineness for one model.

    Parameters
    ----------
    inverse_powers : int
        Highest power of the inverse conditional variance in an integrand.
    """

    def __init__(self, rows: ExpandedRows, digits: int, inverse_powers: int) -> None:
        self._rows, self._digits, self._powers = rows, digits, inverse_powers
        system, energy = rows.symbolic.system, rows.symbolic.free_energy
        _, names, _ = rows.tables
        by_name = {code: x for x, code in {**fe.IDENTIFIERS, **system.identifiers}.items()}
        by_name |= {str(x): x for x in system.parameters if x not in system.identifiers}
        self._source = mpmath_table_source(
            system.definitions,
            node=fe.kappa,
            identifiers={x: name for name, x in by_name.items()},
            parameters=tuple(by_name[name] for name in names),
        )
        self._functions = list(system.definitions)
        # V with responses of one: which of them is largest changes no exponent.
        matrix = energy.letters.v1 if energy.letters else sp.Matrix([[fe.V1]])
        numbers = energy.letters.v2 if energy.letters else (fe.V2,)
        units = {matrix[i, j]: sp.Integer(i == j) for i, j in np.ndindex(*matrix.shape)}
        step = energy.prediction.step.xreplace({**units, **dict.fromkeys(numbers, sp.S.One)})
        marks = [sp.Dummy(real=True) for _ in self._functions]
        self._variance = step.xreplace(dict(zip(self._functions, marks, strict=True))), marks
        spare = 0
        for _ in range(_MOST_LEVELS):
            self._prepare(spare)
            needed = self._find_reach()
            if needed <= spare:
                return
            spare = needed + _SPARE_DIGITS
        raise ConvergenceError(
            "the conditional variance of the student cannot be resolved at the ends of the line; "
            "ask for fewer digits or a lower order"
        )

    def _prepare(self, spare: int) -> None:
        self.ctx = ctx = local_context(self._digits, spare)
        self.parameters = self._rows.exact(ctx)
        known, names, self._even = self._rows.tables
        floats = [np.float64(float(self.parameters[name])) for name in names]
        node = np.zeros(1)
        with np.errstate(divide="ignore", over="ignore"):
            self._width = min(1.0, float(known.outer_scale(node, *floats)))
        inner = {
            slot: inner_extent(*rule) for slot, rule in known.inner_rules(node, *floats).items()
        }
        self._breaks = [ctx.mpf(float(b)) for b in known.breaks(node, *floats)]
        rule = InnerRule(ctx, self._digits + spare, inner)
        tabulate = defined(self._source, ctx=ctx).tables
        values = [self.parameters[name] for name in names]
        self._known: dict[Any, tuple[Any, ...]] = {}

        def tables(x: Any) -> tuple[Any, ...]:
            if x not in self._known:
                self._known[x] = tabulate(x, *values, rule)
            return self._known[x]

        self._tables = tables
        for probe in (0.0, 0.7, -1.9, 3.1):
            tables(ctx.mpf(probe))
        rule.checked = False

    def _find_reach(self) -> int:
        """Set the reach; return how many more digits than usual its ends need."""
        ctx = self.ctx
        negligible = ctx.mpf(10) ** (-self._digits - _SPARE_DIGITS)
        lost = ctx.mpf(10) ** (self._digits + _SPARE_DIGITS - ctx.dps)
        missing = 0
        variance_of = compiled(*self._variance, ctx)
        reach = ctx.sqrt(2 * ctx.ln10 * (self._digits + _SPARE_DIGITS)) + 2
        while reach < _FARTHEST:
            sizes = []
            for x in (reach, -reach):
                table = self._tables(x)
                largest = max(1, *(abs(t) for t in table)) ** 2
                if self._powers:
                    variance = variance_of(*table)
                    if variance <= lost:
                        # Rounding is all that is left; how much is missing cannot be told yet.
                        return max(missing, 2 * (ctx.dps - self._digits))
                    missing = max(missing, 1 + int(-ctx.log10(min(variance, ctx.one))))
                    largest *= max(1, variance**-self._powers)
                sizes.append(ctx.npdf(x) * largest)
            if max(sizes) <= negligible:
                self._reach = reach
                return missing
            reach *= ctx.mpf(9) / 8
        raise ConvergenceError(
            "averages over the projection on the spike converge too slowly to be computed; "
            "ask for a lower order or fewer digits"
        )

    def rule(self, level: int) -> tuple[Any, Any, dict[sp.Expr, Any]]:
        """Return weights, nodes and tables of a level; each is twice as fine as the one before."""
        share = max(1.0, self._digits / _FLOAT_DIGITS) ** 0.9
        step = _STEP * self._width / share / 2**level
        found = outer_rule(self.ctx, self._digits, self._reach, step, level, False, self._breaks)
        # Breaks come in pairs, so that the rule is symmetric.
        nodes, weights = folded(found) if self._even else found
        columns = zip(*(self._tables(x) for x in nodes), strict=True)
        tables = {
            f: _column(list(values)) for f, values in zip(self._functions, columns, strict=True)
        }
        return _column(weights), _column(nodes), tables

    @property
    def composite(self) -> bool:
        """Whether rules are composite: two that agree then tell of the digits of both."""
        return bool(self._breaks)


def _column(values: Sequence[Any]) -> Any:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
