r"""Proofs of relations over ranges, each with a certificate that is checked by computing it again.

In the order in which they are tried:

- *identity*: both sides are the same by algebra, or by the exact zero test of constants.
- *positive terms*: every range becomes a half-line, x = (low + high t)/(1 + t) or low + t with
  t ≥ 0; the margin is a quotient of polynomials in these whose coefficients all have one sign. On
  faces where it may vanish a strict relation asks that it does not vanish identically. Outputs of
  models enter by :class:`...derivations.outputs.ClosedForms`, whose symbols have signs: then the
  relation is proven for all values of what is held fixed, too.
- *Sturm*: a quotient of polynomials in one variable has no root in its range of odd multiplicity.
- *derivatives*: an elementary function of one variable on any range, by the signs of its
  derivatives (:mod:`.signs`).
- *branch and bound*: a box is halved until balls of python-flint exclude a wrong sign on each part,
  a part lies outside of the conditions, or the margin is monotone on it and what is left is a face.
- *elimination*: fewer variables or roots. What is monotone in a variable is least at one of its
  bounds, those that conditions give among them; a polynomial of degree two in a variable is not
  negative if its discriminant is not positive; A + B√C is not negative if A is not and A² ≥ B²C;
  sines and cosines are rational in the tangent of half their angle. What is left is proven by the
  methods before.

How a quantity changes with a variable is the sign of its derivative; of outputs that depend on a
variable through equations, by their Jacobian.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy as sp
from sympy.solvers.simplex import InfeasibleLPError, UnboundedLPError, lpmin

from ...ball_library import require_flint
from ...errors import GiantstepError, MissingDependencyError, ParameterError, UndecidedError
from ...pages import Block, Listing
from ...result import Result, quantity
from ...symbolic.exact.ball_functions import BallTape
from ...symbolic.expressions.factors import factor_list, factored
from ...symbolic.expressions.functions import erfcx, log_cosh, normal_cdf, relu, sigmoid, softplus
from ...symbolic.gaussian.enclosed_formulas import FormulaBalls
from ...symbolic.gaussian.enclosures import PRECISION
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ...symbolic.printing.compiled import compiled
from ..identities import cancels
from ..outputs import ClosedForms, ModelOutput, parameter
from .evaluation import Balls, Layers, NotEnclosed, as_ball_between
from .problem import OTHER, Problem, Range, problems
from .signs import Function, Undecided, signs_of
from .statements import Comparison, Independent, Monotone

METHODS = ("identity", "positive terms", "sturm", "derivatives", "branch and bound", "elimination")
_MOST_VARIABLES, _MOST_OPERATIONS, _MOST_FACTORED, _MOST_EXPLICIT = 12, 4000, 700, 6000
_MOST_CELLS, _MOST_LAYERED, _WITHOUT_SLOPES, _HIGHEST_TOUCHING = 4000, 1500, 64, 4
_MOST_TERMS = 20000
_MOST_ORDERED, _MOST_DIFFERENCES, _MOST_ORDERS = 4, 3, 400
_MOST_GOALS, _DEEPEST, _GUESSES, _FEW_CELLS, _MOST_SIGNS = 80, 4, 40, 600, 4
_SMALLEST_CELL = sp.Rational(1, 2**60)
_BITS = 80
_SINGULAR = (sp.Derivative, sp.DiracDelta)
_CONTINUOUS = (
    sp.exp, sp.log, sp.sin, sp.cos, sp.sinh, sp.cosh, sp.tanh, sp.atan, sp.asinh, sp.erf, sp.erfc,
    sp.Abs, sp.Max, sp.Min, sp.asin, sp.acos, sp.acosh, sp.atanh, sp.sech, sp.erfi, erfcx,
    log_cosh, normal_cdf, relu, sigmoid, softplus,
)  # fmt: skip
_BOUNDED: dict[type, tuple[sp.Expr, sp.Expr]] = {
    **dict.fromkeys((sp.sin, sp.cos, sp.tanh, sp.erf), (-sp.S.One, sp.S.One)),
    **dict.fromkeys((sigmoid, normal_cdf, sp.sech), (sp.S.Zero, sp.S.One)),
    sp.atan: (-sp.pi / 2, sp.pi / 2),
}
_INVERSES: dict[type, tuple[type, sp.Expr, sp.Expr]] = {
    sp.asin: (sp.sin, -sp.pi / 2, sp.pi / 2),
    sp.acos: (sp.cos, sp.S.Zero, sp.pi),
    sp.acosh: (sp.cosh, sp.S.Zero, sp.oo),
    sp.atan: (sp.tan, -sp.pi / 2, sp.pi / 2),
}
"""Functions with what they undo from a lower end up to an upper one."""
_JUMPS = (sp.Piecewise, sp.floor, sp.ceiling, sp.sign, sp.Heaviside)


@dataclass(frozen=True, repr=False)
class Proof(Result):
    """A proof of one relation: what was shown, and how to show it again.

    Attributes
    ----------
    claim : str
        The relation.
    method : str
        One of "identity", "positive terms", "sturm" and "branch and bound".
    steps : tuple of str
        What was shown, in words and formulas.
    cells : str
        Of branch and bound: how the box was halved. A digit names the variable that is halved,
        "." is a part that is settled.
    strict : bool
        Whether the two sides are never equal, or a derivative vanishes at most where a range ends.
    """

    _document = "proof of a relation"

    claim: str = field(metadata=quantity("claim"))
    method: str = field(metadata=quantity("method"))
    steps: tuple[str, ...]
    cells: str = ""
    strict: bool = False

    def page(self) -> Iterable[Block]:
        """Return method, claim and steps."""
        yield f"{self.method}: {self.claim}"
        yield Listing(self.steps)

    def check(self, problem: Problem) -> bool:
        """Compute the certificate again, from the relation itself."""
        try:
            again = attempt(problem, self.method, cells=self.cells)
        except NotProven:
            return False
        return again.steps == self.steps and again.cells == self.cells


class NotProven(Exception):
    """Why a method proves nothing here.

    Attributes
    ----------
    point : mapping from Symbol to Expr
        Where the margin has the wrong sign, if that was seen.
    """

    def __init__(self, reason: str, point: Mapping[sp.Symbol, sp.Expr] | None = None) -> None:
        super().__init__(reason)
        self.point = point or {}


@dataclass(frozen=True)
class Goal:
    """A margin that has to be positive, not negative, or zero, in variables with ranges.

    Attributes
    ----------
    strict, zero : bool
        More than not negative; nothing but zero.
    signed : tuple of Symbol
        Other symbols, by the assumptions on them.
    definitions : mapping from Symbol to Expr
        Of symbols that are signed, to be put in where the sign does not show without them.
    about : str
        What the margin is.
    """

    margin: sp.Expr
    strict: bool
    zero: bool
    ranges: Mapping[sp.Symbol, Range]
    where: tuple[Comparison, ...]
    definitions: Mapping[sp.Symbol, sp.Expr]
    about: str
    layers: Layers | None = None


def attempt(problem: Problem, method: str, *, cells: str = "") -> Proof:
    """Prove a relation by one method.

    Raises
    ------
    NotProven
        Says what stands in the way.
    ParameterError
        If branch and bound is given a range without ends.
    """
    goal = box_goal(problem) if method == "branch and bound" else goal_of(problem)
    kinds: dict[str, Callable[[Goal, str], tuple[list[str], str, bool]]] = {
        "identity": _identity,
        "positive terms": _positive_terms,
        "sturm": _sturm,
        "derivatives": _derivatives,
        "branch and bound": _branch_and_bound,
        "elimination": _elimination,
    }
    try:
        steps, found, strict = kinds[method](goal, cells)
    except (
        GiantstepError, Undecided, sp.PolynomialError, ArithmeticError, NotImplementedError,
        ValueError, TypeError,
    ) as error:  # fmt: skip
        if isinstance(error, ParameterError):
            raise
        raise NotProven(f"{method}: {str(error).splitlines()[0]}") from None
    return Proof(str(problem.statement), method, tuple(steps), found, bool(strict))


def proof_by_assumptions(statement: Comparison, method: str) -> Proof:
    """Prove a relation for all values that the assumptions on its symbols allow.

    Raises
    ------
    NotProven
        Says what stands in the way.
    ParameterError
        If two of its symbols have one name, or it cannot be stated.
    """
    symbols = statement.left.free_symbols | statement.right.free_symbols
    if len({x.name for x in symbols}) < len(symbols):
        raise ParameterError(f"{statement} has two symbols of one name")
    over = {
        x: "positive" if x.is_positive else "nonnegative" if x.is_nonnegative else "real"
        for x in symbols
    }
    _, (problem,) = problems(statement, over, (), None)
    return attempt(problem, method)


def goal_of(problem: Problem) -> Goal:
    """Return what is to be shown: a margin, or a derivative, without outputs of models."""
    statement = problem.statement
    ranges = {x: problem.ranges[x.name] for x in problem.symbols if not _is_second(problem, x)}
    where = tuple(
        c for c in problem.where
        if not any(_is_second(problem, x) for x in c.left.free_symbols | c.right.free_symbols)
    )  # fmt: skip
    if isinstance(statement, Comparison):
        form = _Form(problem, (problem.left, problem.right))
        margin = form.expr(problem.margin)
        zero, strict, about = problem.relation == "==", problem.strict, "the difference"
    else:
        _require_continuous(problem.left, ranges)
        _require_intervals(where, statement.variable)
        form = _Form(problem, (problem.left,))
        margin = form.derivative(problem.left, statement.variable)
        about = f"the derivative with respect to {statement.variable}"
        zero = isinstance(statement, Independent)
        strict = isinstance(statement, Monotone) and statement.strict
        if isinstance(statement, Monotone) and not statement.increasing:
            margin, about = -margin, f"minus {about}"
    if margin.atoms(GaussianExpectation):
        signed = _with_signs(margin, ranges)
        margin = signed.xreplace({x: sp.Symbol(x.name, real=True) for x in signed.free_symbols})
    if form.forms is not None:
        # Coordinates take the place of parameters.
        ranges = {x: r for x, r in ranges.items() if x in margin.free_symbols}
        where = tuple(c for c in where if c.left.free_symbols | c.right.free_symbols <= set(ranges))
    return Goal(margin, strict, zero, ranges, where, form.definitions, about)


def box_goal(problem: Problem) -> Goal:
    """Return the same over a box, with outputs of models as assignments in the parameters."""
    if not problem.outputs:
        return goal_of(problem)
    symbols = tuple(x for x in problem.symbols if not _is_second(problem, x))
    layers = Layers(symbols)
    # Of a quantity as a function the second value has no part in it.
    own = [o for o in problem.outputs if o.free_symbols <= set(symbols)]
    try:
        rule = layers.enter(own)
    except (NotEnclosed, MissingDependencyError) as reason:
        raise NotProven(f"branch and bound: {str(reason).splitlines()[0]}") from None
    ranges = {x: problem.ranges[x.name] for x in symbols}
    where = tuple(
        Comparison(c.left.xreplace(rule), c.relation, c.right.xreplace(rule))
        for c in problem.where
        if not any(_is_second(problem, x) for x in c.left.free_symbols | c.right.free_symbols)
    )
    statement = problem.statement
    if isinstance(statement, Comparison):
        margin = layers.value(problem.margin.xreplace(rule))
        zero, about = problem.relation == "==", "the difference"
        return Goal(margin, problem.strict, zero, ranges, where, {}, about, layers)
    marks = {o: sp.Dummy() for o in problem.outputs}
    _require_continuous(problem.left.xreplace(marks), ranges)
    _require_intervals(where, statement.variable)
    margin = layers.derivative(problem.left.xreplace(rule), parameter(statement.variable))
    about = f"the derivative with respect to {statement.variable}"
    if isinstance(statement, Monotone) and not statement.increasing:
        margin, about = layers.value(-margin), f"minus {about}"
    strict = isinstance(statement, Monotone) and statement.strict
    return Goal(
        margin, strict, isinstance(statement, Independent), ranges, where, {}, about, layers
    )  # fmt: skip


def require_points(problem: Problem) -> None:
    """Refuse conditions that no point of the ranges meets."""
    if not problem.where or problem.outputs:
        return
    ranges = {x: problem.ranges[x.name] for x in problem.symbols}
    if not all(one.is_bounded for one in ranges.values()):
        return
    nothing = Goal(sp.S.NegativeOne, False, False, ranges, problem.where, {}, "the difference")
    try:
        _Boxes(nothing).run(_MOST_CELLS)
    except _Vacuous:
        pass
    except (NotProven, GiantstepError):
        return
    raise ParameterError(
        f"where: no point of the ranges meets {'; '.join(map(str, problem.where))}, so that there "
        "is nothing that the statement could be about"
    )


def _require_continuous(quantity: sp.Expr, ranges: Mapping[sp.Symbol, Range]) -> None:
    """Refuse what may jump: it changes where its derivative says nothing.

    Poles are seen in the denominator of the derivative, but for those inside of functions.
    """
    for node in sp.preorder_traversal(quantity):
        known = isinstance(node, _CONTINUOUS) or not isinstance(node, sp.Function | sp.Piecewise)
        if isinstance(node, sp.tan):
            known = _keeps_its_sign(sp.cos(node.args[0]), ranges)
        if not known:
            raise NotProven(
                f"{str(node)[:60]} may jump or have a pole, so that a derivative proves nothing"
            )
        if not isinstance(node, sp.Function):
            continue
        below = {p.base for p in node.atoms(sp.Pow) if p.exp.could_extract_minus_sign()}
        for base in sorted(below, key=str):
            if base.free_symbols and not _keeps_its_sign(base, ranges):
                raise NotProven(
                    f"{str(node)[:60]} may jump where {str(base)[:40]} vanishes, so that a "
                    "derivative proves nothing"
                )


def _keeps_its_sign(expr: sp.Expr, ranges: Mapping[sp.Symbol, Range]) -> bool:
    if _with_signs(expr, ranges).is_nonzero:
        return True
    used = {x: one for x, one in ranges.items() if x in expr.free_symbols}
    for sign in (1, -1):
        goal = Goal(sign * expr, True, False, used, (), {}, "the difference")
        for method in (_positive_terms, _derivatives, _few_boxes):
            try:
                method(goal, "")
            except (NotProven, GiantstepError, Undecided, sp.PolynomialError):
                continue
            return True
    return False


def _require_intervals(where: Iterable[Comparison], variable: str) -> None:
    """Refuse conditions that may leave gaps in a line along the variable."""
    x = parameter(variable)
    for condition in where:
        gap = condition.right - condition.left
        # Half-lines and points have intervals in common.
        if gap.has(x) and not (gap.is_polynomial(x) and sp.degree(gap, x) == 1):
            raise NotProven(
                f"where {condition} holds may be several intervals of {variable}, and a derivative "
                "says nothing across a gap"
            )


def _is_second(problem: Problem, symbol: sp.Symbol) -> bool:
    if isinstance(problem.statement, Comparison):
        return False
    return bool(symbol.name == problem.statement.variable + OTHER)


class _Form:
    """Outputs of models in a problem as their closed forms."""

    def __init__(self, problem: Problem, exprs: Sequence[sp.Expr]) -> None:
        outputs = sorted({o for x in exprs for o in x.atoms(ModelOutput)}, key=str)
        self.forms: ClosedForms | None = None
        self._values: dict[sp.Expr, sp.Expr] = {}
        self._located: dict[sp.Symbol, sp.Expr] = {}
        if not outputs:
            return
        models = {o.model.to_json() for o in outputs}
        forms = outputs[0].model._closed_forms()
        if forms is None or len(models) > 1:
            raise NotProven(
                f"outputs of {type(outputs[0].model).__name__} have no closed form in symbols "
                "with signs"
                if forms is None
                else "it holds outputs of several models"
            )
        self.forms = forms
        fixed: dict[str, sp.Expr] = {}
        for output in outputs:
            if output.name not in forms.outputs:
                raise NotProven(f"{output.name} has no closed form in symbols with signs")
            direct = {}
            bindings = output.bindings
            for name, symbol in forms.direct.items():
                number = getattr(output.model, name)
                direct[symbol] = bindings.get(name, sp.Rational(repr(float(number))))
            for name, value in bindings.items():
                if name in forms.direct:
                    continue
                if fixed.setdefault(name, value) != value:
                    raise NotProven(f"it compares outputs at several values of {name}")
                if name not in forms.implicit:
                    raise NotProven(f"closed forms do not vary {name}")
                if value == parameter(name):
                    self._located[value] = forms.implicit[name]
                    if problem.ranges[name].low == 0 and not problem.ranges[name].low_open:
                        raise NotProven(
                            f"closed forms are for {name} > 0, and its range begins with 0"
                        )
                elif value.free_symbols or value == 0:
                    raise NotProven(f"closed forms do not know {name} = {value}")
            self._values[output] = forms.outputs[output.name].xreplace(direct)

    @property
    def definitions(self) -> Mapping[sp.Symbol, sp.Expr]:
        return {} if self.forms is None else self.forms.abbreviations

    def expr(self, expr: sp.Expr) -> sp.Expr:
        """Return an expression without outputs, in coordinates."""
        return expr.xreplace(self._values).xreplace(self._located)

    def derivative(self, expr: sp.Expr, variable: str) -> sp.Expr:
        """Return the derivative with respect to a variable, all others held fixed."""
        x = parameter(variable)
        plain = self.expr(expr)
        if x not in self._located:
            return plain.diff(x)
        assert self.forms is not None
        forms, coordinates = self.forms, self.forms.coordinates
        held = [forms.implicit[n] for n in forms.implicit if n != variable]
        held += [value for symbol, value in forms.constants.items() if symbol != value]
        rows = [forms.implicit[variable], *held]
        jacobian = sp.Matrix([[row.diff(c) for c in coordinates] for row in rows])
        goal = sp.Matrix([1] + [0] * (len(rows) - 1))
        rates = dict(zip(coordinates, jacobian.LUsolve(goal), strict=True))
        rates = {c: factored(sp.cancel(sp.together(r))) for c, r in rates.items()}

        def along(value: sp.Expr) -> sp.Expr:
            return sp.Add(*(value.diff(c) * rate for c, rate in rates.items()))

        moves: dict[sp.Symbol, sp.Expr] = {}
        for symbol, value in {**forms.constants, **forms.abbreviations}.items():
            if symbol in forms.constants:
                continue
            explicit = along(value)
            implied = sp.Add(*(value.diff(s) * m for s, m in moves.items()))
            moves[symbol] = factored(explicit + implied)
        return along(plain) + sp.Add(*(plain.diff(s) * m for s, m in moves.items()))


# ---------------------------------------------------------------------- identity


def _identity(goal: Goal, cells: str) -> tuple[list[str], str, bool]:
    if goal.strict:
        raise NotProven("identity: equal sides do not make a strict relation")
    if not goal.zero and goal.margin != 0:
        raise NotProven("identity: it is for equality")
    for expr in _layers(goal):
        undone = _undone(expr, goal.ranges)
        if undone and expr.xreplace(undone) == 0:
            shown = "; ".join(f"{call} = {inside}" for call, inside in undone.items())
            return [f"{goal.about} is zero identically, as {shown} in the range"], "", False
        if expr == 0 or all(_vanishes(_with_signs(expr, part)) for part in _orthants(expr, goal)):
            return [f"{goal.about} is zero identically, wherever it has a value"], "", False
        if not goal.definitions and _is_constant(goal):
            return [f"{goal.about} has no derivative, and is zero at a point"], "", False
    raise NotProven("identity: the sides are not the same by algebra")


def _undone(expr: sp.Expr, ranges: Mapping[sp.Symbol, Range]) -> dict[sp.Expr, sp.Expr]:
    """Return inverse functions of functions by what they undo, where that is in their range."""
    result = {}
    nodes = [node for node in expr.atoms(sp.Function) if type(node) in _INVERSES]
    for node in sorted(nodes, key=str):
        function, low, high = _INVERSES[type(node)]
        if node.args[0].func != function:
            continue
        inside = node.args[0].args[0]
        used = {x: one for x, one in ranges.items() if x in inside.free_symbols}
        search = _Eliminations()
        goals = [
            Goal(gap, function is sp.tan, False, used, (), {}, "the difference")
            for gap in (inside - low, high - inside)
            if gap != sp.oo
        ]
        if used.keys() == inside.free_symbols and all(search.shown(g, 1) for g in goals):
            result[node] = inside
    return result


def _orthants(expr: sp.Expr, goal: Goal) -> list[Mapping[sp.Symbol, Range]]:
    """Return ranges in parts on which variables have signs, where signs matter."""
    signs = expr.has(sp.Abs, sp.Max, sp.Min, relu, sp.sign, GaussianExpectation) or any(
        not p.exp.is_Integer for p in expr.atoms(sp.Pow)
    )
    both = [x for x, one in goal.ranges.items() if one.low < 0 < one.high]
    if not signs or len(both) > _MOST_SIGNS:
        return [goal.ranges]
    halves = [
        [(x, replace(goal.ranges[x], high=sp.S.Zero)), (x, replace(goal.ranges[x], low=sp.S.Zero))]
        for x in both
    ]
    return [{**goal.ranges, **dict(parts)} for parts in itertools.product(*halves)]


def _with_signs(expr: sp.Expr, ranges: Mapping[sp.Symbol, Range]) -> sp.Expr:
    """Return an expression in symbols that know the signs of their ranges."""
    rule = {}
    for x, one in ranges.items():
        if one.low >= 0:
            rule[x] = sp.Symbol(x.name, positive=one.low > 0 or one.low_open or None,
                                nonnegative=True)  # fmt: skip
        elif one.high <= 0:
            rule[x] = sp.Symbol(x.name, negative=one.high < 0 or one.high_open or None,
                                nonpositive=True)  # fmt: skip
    signed = expr.xreplace(rule)
    if signed.atoms(GaussianExpectation):
        signed = signed.doit()
    # Roots and logarithms of products fall apart where factors have signs.
    return sp.expand_log(sp.powdenest(sp.expand_power_base(signed)))


def _is_constant(goal: Goal) -> bool:
    """Tell whether a function of one variable is zero: its derivative is, and it at a point."""
    if len(goal.ranges) != 1:
        return False
    ((x, one),) = goal.ranges.items()
    try:
        pieces = signs_of(goal.margin, x, one.low, one.high)
        return all(set(p.chart.signs) == {0} for p in pieces) and all(
            Function(goal.margin, x).sign(end) == 0
            for end, is_open in ((one.low, one.low_open), (one.high, one.high_open))
            if end.is_finite and not is_open
        )
    except (Undecided, GiantstepError, sp.PolynomialError):
        return False


def _vanishes(expr: sp.Expr) -> bool:
    if expr.count_ops() > _MOST_OPERATIONS:
        return False
    if expr.is_algebraic_expr(*expr.free_symbols) and cancels(expr):
        return True
    try:
        return is_exactly_zero(expr, "the difference")
    except UndecidedError:
        return False


def _is_zero(value: sp.Expr) -> bool:
    """Tell whether an expression is surely zero, by its form or by a cheap proof."""
    if value == 0:
        return True
    if value.free_symbols:
        return bool(value.is_rational_function() and cancels(value))
    try:
        return is_exactly_zero(value, "the margin")
    except GiantstepError:
        return False


def _layers(goal: Goal) -> Iterator[sp.Expr]:
    """Yield the margin, and the margin with definitions put in."""
    yield goal.margin
    if goal.definitions and goal.margin.free_symbols & set(goal.definitions):
        yield _explicit(goal.margin, goal.definitions)


def _explicit(expr: sp.Expr, definitions: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    for symbol, value in reversed([*definitions.items()]):
        expr = expr.xreplace({symbol: value})
    return expr


# ---------------------------------------------------------------------- positive terms


def _positive_terms(goal: Goal, cells: str) -> tuple[list[str], str, bool]:
    if goal.zero:
        raise NotProven("positive terms: they say nothing of equality")
    reasons = []
    for parts in _half_lines(goal):
        try:
            steps, strict = [], True
            used: set[sp.Symbol] = set()
            for rule, new in parts:
                found, one = _terms(goal, rule, new, used)
                steps += found
                strict = strict and one
            _require_whole_lines(goal, parts)
        except NotProven as error:
            reasons.append(str(error))
            continue
        if goal.strict and not strict:
            reasons.append("positive terms: the margin may vanish where a range ends")
            continue
        steps += _signs_of_definitions(goal, used)
        return list(dict.fromkeys(steps)), "", strict
    raise NotProven(reasons[-1] if reasons else "positive terms: no range is a half-line")


Rule = Mapping[sp.Symbol, sp.Expr]


def _half_lines(goal: Goal) -> Iterator[list[tuple[Rule, Rule]]]:
    """Yield ways to write ranges as half-lines: all from the low end on, then as they are.

    Each is a list of parts that make up everything, as rules with new symbols by old.
    """
    used = [x for x in goal.ranges if x in goal.margin.free_symbols]
    if len(used) > _MOST_VARIABLES:
        raise NotProven("positive terms: there are too many variables")
    ordered = _ordered(goal)
    for closed in (False, True):
        choices: list[list[tuple[sp.Symbol, sp.Expr, sp.Symbol]]] = []
        for x in used:
            one = goal.ranges[x]
            t = sp.Symbol(f"t_{x.name}", positive=True)
            if x in ordered and not closed:
                choices.append([(x, ordered[x] + t, t)])
            elif one.is_bounded and (closed or not one.low >= 0):
                choices.append([(x, (one.low + one.high * t) / (1 + t), t)])
            elif one.low.is_finite:
                choices.append([(x, one.low + t if one.low else t, t)])
            elif one.high.is_finite:
                choices.append([(x, one.high - t, t)])
            else:
                choices.append([(x, t, t), (x, -t, t)])
        yield [
            ({x: value for x, value, _ in parts}, {x: t for x, _, t in parts})
            for parts in itertools.product(*choices)
        ]
        if not any(goal.ranges[x].is_bounded for x in used):
            return


def _ordered(goal: Goal) -> dict[sp.Symbol, sp.Symbol]:
    """Return variables that a condition puts above another one."""
    result: dict[sp.Symbol, sp.Symbol] = {}
    for c in goal.where:
        small, large = (c.left, c.right) if c.relation in ("<", "<=") else (c.right, c.left)
        if small.is_Symbol and large.is_Symbol and c.relation != "==":
            plain = small not in result and large not in result
            if plain and small not in result.values() and large not in result.values():
                result[large] = small
    return result


def _require_whole_lines(goal: Goal, parts: Sequence[tuple[Rule, Rule]]) -> None:
    """Refuse a pole where the two halves of a line meet."""
    below = sp.fraction(sp.together(goal.margin))[1]
    for rule, _ in parts:
        for x in rule:
            if goal.ranges[x].low == -sp.oo and goal.ranges[x].high == sp.oo:
                others = {y: v for y, v in rule.items() if y != x}
                met = sp.expand(below.xreplace({x: sp.S.Zero}).xreplace(others))
                if met == 0:
                    raise NotProven(f"positive terms: the margin has a pole at {x} = 0")
                for factor, _ in _factors(met):
                    _sign_of_terms(factor)


def _terms(goal: Goal, rule: Rule, new: Rule, used: set[sp.Symbol]) -> tuple[list[str], bool]:
    """Return what shows that a margin is not negative, and whether it never vanishes.

    Symbols whose sign was used are added to `used`.
    """
    written = goal.margin
    for x, value in rule.items():
        written = written.xreplace({x: value})
    # A variable above another one is written by it, which has a rule of its own.
    written = written.xreplace(dict(rule))
    if written.count_ops() > _MOST_OPERATIONS:
        raise NotProven("positive terms: the margin is too long")
    numerator, denominator = sp.fraction(sp.together(written))
    sign, steps = 1, []
    for name, part in (("numerator", numerator), ("denominator", denominator)):
        for factor, power in _factors(part):
            try:
                one, text = _sign_of_factor(goal, factor, used)
            except NotProven:
                # What may vanish would be a pole below.
                if name == "denominator":
                    raise
                if power % 2 == 0 and factor.is_real:
                    steps.append(f"({factor})**{power} is not negative")
                    continue
                if goal.definitions:
                    raise
                one, text = 1, _not_negative_in_orders(factor)
            sign *= one**power
            if text:
                steps.append(f"factor of the {name}, {text}")
    if sign < 0:
        raise NotProven("positive terms: the margin has the other sign")
    ways = "; ".join(f"{x} = {value}" for x, value in rule.items() if x != value)
    head = f"{goal.about} is a quotient of polynomials" + (f" with {ways}, t > 0" if ways else "")
    squares = any(text.endswith("is not negative") for text in steps)
    return [head, *steps], not squares and _never_vanishes(goal, new)


def _factors(expr: sp.Expr) -> list[tuple[sp.Expr, int]]:
    """Return factors with their powers; constants among them."""
    if len(expr.free_symbols) and expr.count_ops() < _MOST_FACTORED:
        try:
            constant, found = factor_list(expr)
            # Roots have fractions for powers, and are no squares.
            whole = [(f, int(n)) if sp.Integer(n) == n else (f**n, 1) for f, n in found]
            return [(constant, 1), *whole]
        except sp.PolynomialError:
            pass
    result = []
    for factor in sp.Mul.make_args(sp.factor_terms(expr)):
        base, power = factor.as_base_exp()
        whole = power.is_Integer and power > 0
        result.append((base, int(power)) if whole else (factor, 1))
    return result


def _sign_of_factor(goal: Goal, factor: sp.Expr, used: set[sp.Symbol]) -> tuple[int, str]:
    """Return the sign of a factor, with definitions put in from the last on if need be."""
    try:
        sign, count = _sign_of_terms(factor)
        used |= factor.free_symbols
        return sign, f"{count} terms of one sign in {_names(factor)}" if count > 1 else ""
    except NotProven as error:
        reason = error
    if not factor.free_symbols & set(goal.definitions):
        raise reason
    explicit = _explicit(factor, goal.definitions)
    if explicit.count_ops() > _MOST_EXPLICIT:
        raise NotProven(
            "positive terms: signs do not show before definitions are put in, and then the margin "
            "is too long"
        )
    sign, most = 1, 1
    for part in sp.fraction(sp.together(explicit)):
        for one, power in _factors(part):
            each, count = _sign_of_terms(one)
            sign, most = sign * each**power, max(most, count)
    return sign, f"with definitions put in {most} terms of one sign in {_names(explicit)}"


def _not_negative_in_orders(polynomial: sp.Expr) -> str:
    """Say why a factor in positive symbols, which may vanish, is not negative.

    Its leading coefficient is positive, so none is negative everywhere. It is made homogeneous, and
    written in the differences of its variables for each of their orders, and of these again, until
    all terms have one sign (successive difference substitution).
    """
    symbols = sorted(polynomial.free_symbols, key=str)
    unknown = NotProven("positive terms: some are positive and some negative, in every order")
    if len(symbols) > _MOST_ORDERED or polynomial.count_ops() > _MOST_FACTORED:
        raise unknown
    poly = sp.Poly(polynomial, *symbols)
    if not all(c.is_Rational for c in poly.coeffs()):
        raise unknown
    if not poly.is_homogeneous:
        poly = poly.homogenize(sp.Dummy("one", positive=True))
    count, stack = 0, [(poly, 0)]
    while stack:
        current, depth = stack.pop()
        if min(current.coeffs()) >= 0:
            count += 1
            continue
        corners = [current.coeff_monomial(x ** current.total_degree()) for x in current.gens]
        if depth == _MOST_DIFFERENCES or min(*corners, sum(current.coeffs())) < 0:
            raise unknown
        for order in itertools.permutations(current.gens):
            sums = {x: sp.Add(*order[i:]) for i, x in enumerate(order)}
            moved = sp.Poly(current.as_expr().xreplace(sums), *current.gens)
            stack.append((moved, depth + 1))
        if count + len(stack) > _MOST_ORDERS:
            raise unknown
    shown = str(polynomial if len(str(polynomial)) < 90 else f"{str(polynomial)[:90]}...")
    return f"{shown} has terms of one sign in differences of {count} orders: is not negative"


def _names(expr: sp.Expr) -> str:
    return ", ".join(map(str, sorted(expr.free_symbols, key=str)))


def _sign_of_terms(expr: sp.Expr) -> tuple[int, int]:
    """Return the sign that all terms of a polynomial share, and their number."""
    symbols = sorted(expr.free_symbols, key=str)
    for x in symbols:
        if not x.is_nonnegative:
            raise NotProven(f"positive terms: {x} has no sign")
    if not symbols:
        return _sign_of_constant(expr), 1
    if _length(expr) > _MOST_TERMS:
        raise NotProven(f"positive terms: written out there are more than {_MOST_TERMS}")
    try:
        coefficients = sp.Poly(expr, *symbols).coeffs()
    except sp.PolynomialError:
        if expr.is_positive:
            return 1, 1
        raise NotProven(f"positive terms: {str(expr)[:60]} is no polynomial") from None
    signs = {_sign_of_constant(c) for c in coefficients}
    if len(signs) != 1:
        raise NotProven(
            f"positive terms: of {len(coefficients)} terms some are positive and some negative"
        )
    return signs.pop(), len(coefficients)


def _length(expr: sp.Expr) -> int:
    """Return a bound of the number of terms of an expression that is written out."""
    if expr.is_Add:
        return sum(map(_length, expr.args))
    if expr.is_Mul:
        return math.prod(map(_length, expr.args))
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        terms, power = _length(expr.base), int(expr.exp)
        return math.comb(terms + power - 1, power)
    return 1


def _sign_of_constant(value: sp.Expr) -> int:
    if value.is_Rational:
        return int(sp.sign(value))
    if value.is_positive or value.is_negative:
        return 1 if value.is_positive else -1
    sign = FormulaBalls({}).sign(value)
    if sign is None:
        raise NotProven(f"positive terms: the sign of {str(value)[:60]} is not decided")
    return sign


def _never_vanishes(goal: Goal, new: Rule) -> bool:
    """Tell whether a margin with terms of one sign vanishes nowhere, ends of ranges included."""
    ends = []
    ordered, where = _ordered(goal), {(c.left, c.right) for c in goal.where if "=" in c.relation}
    for x in new:
        one = goal.ranges[x]
        closed: list[sp.Expr] = [
            end for end, is_open in ((one.low, one.low_open), (one.high, one.high_open))
            if end.is_finite and not is_open
        ]  # fmt: skip
        below = ordered.get(x)
        if not closed and one.low == -sp.oo and one.high == sp.oo:
            # Where the two halves of the line meet.
            closed.append(sp.S.Zero)
        if below is not None and {(below, x), (x, below)} & where:
            closed.append(below)
        ends.append([None, *closed])
    for face in itertools.product(*ends):
        rule = {x: end for x, end in zip(new, face, strict=True) if end is not None}
        if not rule:
            continue
        # One after the other: a variable may end where another one is.
        restricted = goal.margin
        for x, end in sorted(rule.items(), key=lambda pair: not pair[1].free_symbols):
            restricted = restricted.xreplace({x: end})
        numerator = sp.fraction(sp.together(restricted))[0]
        if sp.expand(numerator) == 0:
            return False
    return all(x.is_positive for x in goal.margin.free_symbols - set(new))


def _signs_of_definitions(goal: Goal, used: set[sp.Symbol]) -> list[str]:
    """Prove the signs that symbols are assumed to have, in the order of their definitions."""
    needed, steps = used & set(goal.definitions), []
    for symbol, value in reversed([*goal.definitions.items()]):
        if symbol in needed:
            needed |= value.free_symbols & set(goal.definitions)
    for symbol, value in goal.definitions.items():
        if symbol not in needed:
            continue
        sign, most = 1, 1
        for part in sp.fraction(sp.together(value)):
            for one, power in _factors(part):
                each, count = _sign_of_terms(one)
                sign, most = sign * each**power, max(most, count)
        if sign < 0:
            raise NotProven(f"positive terms: {symbol} is not positive")
        steps.append(f"{symbol} = {value} is positive, {most} terms at most in a factor")
    return steps


# ---------------------------------------------------------------------- Sturm


def _sturm(goal: Goal, cells: str) -> tuple[list[str], str, bool]:
    if goal.definitions or len(goal.ranges) != 1:
        raise NotProven("sturm: it takes an expression of one variable")
    if goal.zero:
        raise NotProven("sturm: it says nothing of equality")
    ((x, one),) = goal.ranges.items()
    numerator, denominator = sp.fraction(sp.cancel(sp.together(goal.margin)))
    above, below = (sp.Poly(part, x) for part in (numerator, denominator))
    if not all(c.is_Rational for poly in (above, below) for c in poly.all_coeffs()):
        raise NotProven("sturm: coefficients must be rational numbers")
    if not (one.low.is_extended_real and one.high.is_extended_real):
        raise NotProven("sturm: ends of the range must be numbers")
    low = None if one.low == -sp.oo else one.low
    high = None if one.high == sp.oo else one.high
    if any(end is not None and not end.is_Rational for end in (low, high)):
        raise NotProven("sturm: ends of the range must be rational")
    if below.degree() > 0 and below.count_roots(low, high):
        raise NotProven("sturm: the denominator vanishes in the range")
    odd = sp.Poly(1, x)
    for factor, power in above.sqf_list()[1]:
        if power % 2:
            odd *= factor
    changes = odd.count_roots(low, high) if odd.degree() > 0 else 0
    for end in (low, high):
        # Roots at an end change no sign inside.
        if end is not None and odd.degree() > 0 and odd.eval(end) == 0:
            changes -= 1
    if changes:
        raise NotProven(f"sturm: {changes} roots of odd multiplicity inside the range")
    point = _inside(one)
    step = 0
    while above.eval(point) == 0:
        step += 1
        point = _inside(one, step)
    if (above.eval(point) > 0) != (below.eval(point) > 0):
        raise NotProven("sturm: the margin is negative in the range")
    roots = above.count_roots(low, high) if above.degree() > 0 else 0
    for end, is_open in ((low, one.low_open), (high, one.high_open)):
        if end is not None and is_open and above.eval(end) == 0:
            roots -= 1
    if goal.strict and roots and goal.about == "the difference":
        raise NotProven("sturm: the margin vanishes in the range")
    return [
        f"{goal.about} is P/Q with P = {above.as_expr()}, Q = {below.as_expr()}; Q has no root in "
        f"{one}, P {roots}, none of which changes the sign",
        f"at {x} = {point} it is {sp.cancel(goal.margin.xreplace({x: point}))} > 0",
    ], "", not roots  # fmt: skip


def _inside(one: Range, step: int = 0) -> sp.Rational:
    if one.is_bounded:
        return one.low + (one.high - one.low) * sp.Rational(step + 1, step + 3)
    if one.low.is_finite:
        return one.low + 1 + step
    if one.high.is_finite:
        return one.high - 1 - step
    return sp.Integer(step)


# ---------------------------------------------------------------------- derivatives


def _derivatives(goal: Goal, cells: str) -> tuple[list[str], str, bool]:
    if goal.definitions or len(goal.ranges) != 1:
        raise NotProven("derivatives: they take an expression of one variable")
    if goal.zero:
        raise NotProven("derivatives: they say nothing of equality")
    ((x, one),) = goal.ranges.items()
    try:
        pieces = signs_of(goal.margin, x, one.low, one.high)
    except Undecided as reason:
        raise NotProven(f"derivatives: {reason}") from None
    steps, never = [], True
    for piece in pieces:
        chart = piece.chart
        if any(chart.poles):
            raise NotProven("derivatives: the margin has a pole in the range")
        if min(chart.signs) < 0:
            point = chart.inside(chart.signs.index(-1), piece.low, piece.high)
            raise NotProven("derivatives: the margin is negative in the range", {x: point})
        never = never and not chart.points and chart.signs != (0,)
        zeros = f", zero at {', '.join(map(str, chart.points))} only" if chart.points else ""
        if chart.signs == (0,):
            zeros = ", and zero"
        steps.append(
            f"{goal.about} is not negative for {piece.low} < {x} < {piece.high}{zeros}: zeros of "
            "its derivatives part the range into pieces on which it is monotone"
        )
        steps += [f"by SymPy's limit, not enclosed: {limit}" for limit in chart.limits]
    inner = [piece.low for piece in pieces[1:]]
    ends = [end for end, is_open in ((one.low, one.low_open), (one.high, one.high_open))
            if end.is_finite and not is_open]  # fmt: skip
    if goal.about == "the difference":
        never = _at_ends(goal, x, [*inner, *ends], steps) and never
        if goal.strict and not never:
            exact = [p.exact for piece in pieces for p in piece.chart.points if p.exact is not None]
            zero = {x: exact[0]} if exact else None
            raise NotProven("derivatives: the margin vanishes in the range", zero)
    elif goal.strict and any(p.chart.signs == (0,) for p in pieces):
        raise NotProven("derivatives: there is a part on which nothing changes")
    return steps, "", never


def _at_ends(goal: Goal, x: sp.Symbol, ends: Iterable[sp.Expr], steps: list[str]) -> bool:
    """Look at the margin at single points, and tell whether it vanishes at none of them."""
    never = True
    for end in ends:
        there = goal.margin.xreplace({x: end})
        if there.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
            steps.append(f"at {x} = {end} it has no value")
            continue
        try:
            sign = Function(goal.margin, x).sign(end)
        except Undecided as reason:
            raise NotProven(f"derivatives: {reason}") from None
        if sign < 0:
            raise NotProven(f"derivatives: the margin is negative at {x} = {end}", {x: end})
        never = never and sign > 0
    return never


# ---------------------------------------------------------------------- branch and bound


def _branch_and_bound(
    goal: Goal, cells: str, *, most: int = _MOST_CELLS
) -> tuple[list[str], str, bool]:
    if goal.zero:
        raise NotProven("branch and bound: it says nothing of equality")
    for x, one in goal.ranges.items():
        if not one.is_bounded:
            raise NotProven(
                f"branch and bound: it needs a box, and the range of {x} is {one}; give it ends"
            )
    try:
        require_flint()
    except MissingDependencyError as error:
        raise NotProven(f"branch and bound: {str(error).splitlines()[0]}") from None
    search = _Boxes(goal)
    if goal.layers is not None:
        most = min(most, _MOST_LAYERED)
    found, strict = search.replay(cells) if cells else search.run(most)
    sides = ", ".join(f"{x} in {one}" for x, one in goal.ranges.items())
    count = found.count(".")
    return [
        f"{goal.about} is {'positive' if strict else 'not negative'} on each of {count} parts of "
        f"the box {sides}, by ball arithmetic"
    ], found, strict  # fmt: skip


Cell = tuple[tuple[sp.Rational, sp.Rational], ...]


class _Vacuous(NotProven):
    """No part of a box meets the conditions."""


class _Boxes:
    """A box that is halved until a sign is proven on each part."""

    def __init__(self, goal: Goal) -> None:
        self._goal, self._symbols = goal, tuple(goal.ranges)
        flint = require_flint()
        self._flint = flint
        self._layers = layers = goal.layers or Layers(self._symbols)
        self._balls = Balls(layers)
        self._value = self._tape([goal.margin])
        self._slopes: BallTape | None = None
        # Those of outputs of models take their time.
        self._last: list[Any] | None = None
        self._meets = False
        self._wait = _WITHOUT_SLOPES if goal.layers else 0
        self._conditions = [(c.relation, self._tape([c.right - c.left])) for c in goal.where]
        self._touching: dict[tuple[int, sp.Rational], list[tuple[int, BallTape]]] = {}
        self._faces: dict[tuple[tuple[int, sp.Expr], ...], int | None] = {}

    def _tape(self, exprs: Sequence[sp.Expr]) -> BallTape:
        return self._layers.tape(exprs)

    def _slopes_of(self, balls: Sequence[Any]) -> list[Any] | None:
        """Return the derivatives of the margin; None where it may jump or it is too early."""
        if self._wait:
            self._wait -= 1
            return None
        goal = self._goal
        if self._slopes is None and not goal.margin.has(*_JUMPS):
            slopes = [
                self._layers.derivative(goal.margin, x) if goal.layers else goal.margin.diff(x)
                for x in self._symbols
            ]
            # Values at jumps are in no derivative.
            if not any(slope.has(*_SINGULAR) for slope in slopes):
                self._slopes = self._tape(slopes)
        return None if self._slopes is None else self._slopes(balls)

    @property
    def whole(self) -> Cell:
        """The box; ends that are no rational numbers are rounded outwards."""
        margin = sp.Rational(1, 10**25)
        result = []
        for one in self._goal.ranges.values():
            low, high = (
                end if end.is_Rational else sp.Rational(end.evalf(30)) + side * margin
                for end, side in ((one.low, -1), (one.high, 1))
            )
            result.append((low, high))
        return tuple(result)

    def run(self, most: int) -> tuple[str, bool]:
        """Halve until all is settled; return how, and whether the margin never vanishes."""
        text, strict, count = [], True, 0
        stack = [self.whole]
        while stack:
            cell = stack.pop()
            count += 1
            smallest = min(
                (b - a) / (d - c) for (a, b), (c, d) in zip(cell, self.whole, strict=True)
            )
            if count > most or smallest < _SMALLEST_CELL:
                at = ", ".join(
                    f"{x} = {float(a + b) / 2:.6g}"
                    for x, (a, b) in zip(self._symbols, cell, strict=True)
                )
                raise NotProven(f"branch and bound: {count} parts are not enough, near {at}")
            settled = self._settled(cell)
            if settled is not None:
                text.append(".")
                strict = strict and settled
                continue
            axis = self._axis(cell)
            text.append(str(axis))
            stack += self._halves(cell, axis)[::-1]
        if not self._meets:
            raise _Vacuous("branch and bound: no part of the box meets the conditions")
        if self._goal.strict and not strict:
            raise NotProven("branch and bound: the margin vanishes in the box")
        return "".join(text), strict

    def replay(self, cells: str) -> tuple[str, bool]:
        """Settle the parts that a text names, and nothing else."""
        stack, strict = [self.whole], True
        self._wait = 0
        for letter in cells:
            if not stack:
                raise NotProven("branch and bound: the certificate names parts that are not there")
            cell = stack.pop()
            if letter == ".":
                settled = self._settled(cell)
                if settled is None:
                    raise NotProven("branch and bound: a part of the certificate is not settled")
                strict = strict and settled
            elif letter.isdigit() and int(letter) < len(cell):
                stack += self._halves(cell, int(letter))[::-1]
            else:
                raise NotProven("branch and bound: the certificate is damaged")
        if stack or (self._goal.strict and not strict):
            raise NotProven("branch and bound: the certificate leaves parts out")
        return cells, strict

    def _halves(self, cell: Cell, axis: int) -> list[Cell]:
        low, high = cell[axis]
        middle = (low + high) / 2
        return [(*cell[:axis], part, *cell[axis + 1 :]) for part in ((low, middle), (middle, high))]

    def _axis(self, cell: Cell) -> int:
        """Return the side across which the margin changes most, as far as that is known."""
        sizes = [b - a for a, b in cell]
        slopes = self._last
        if slopes is not None and all(slope.is_finite() for slope in slopes):
            moves = [float(s.abs_upper()) * float(size)
                     for s, size in zip(slopes, sizes, strict=True)]  # fmt: skip
            wide = [i for i, (a, b) in enumerate(self.whole) if sizes[i] * 2**12 > b - a]
            return max(wide or range(len(cell)), key=lambda i: moves[i])
        shares = [
            size / (abs(a + b) / 2 + (d - c) / 64)
            for size, (a, b), (c, d) in zip(sizes, cell, self.whole, strict=True)
        ]
        return max(range(len(cell)), key=lambda i: shares[i])

    def _settled(self, cell: Cell) -> bool | None:
        """Whether the margin is positive, or only not negative, on a part; None if undecided."""
        with PRECISION, self._flint.ctx.workprec(_BITS):
            return self._decided(cell)

    def _decided(self, cell: Cell) -> bool | None:
        balls = self._balls([as_ball_between(*one) for one in cell])
        for relation, tape in self._conditions:
            gap = tape(balls)[0]
            outside = {"<": gap <= 0, "<=": gap < 0, ">": gap >= 0, ">=": gap > 0}
            if outside.get(relation, gap != 0 and not gap.contains(0)):
                return True
        self._meets = True
        value = self._value(balls)[0]
        if value > 0:
            return True
        slopes = self._slopes_of(balls)
        self._last = slopes
        if slopes is None:
            return False if value >= 0 and not self._wait else None
        own = balls[: len(cell)]
        middles = [self._flint.arb(ball.mid()) for ball in own]
        centre = self._value(self._balls(middles))[0]
        if centre < 0 and not self._conditions:
            middle = {x: (a + b) / 2 for x, (a, b) in zip(self._symbols, cell, strict=True)}
            raise NotProven("branch and bound: the margin has the wrong sign in the box", middle)
        mean = centre + sum(
            (s * (b - m) for s, b, m in zip(slopes, own, middles, strict=True)), self._flint.arb(0)
        )
        if mean > 0:
            return True
        if value >= 0 or mean >= 0:
            return False
        # Derivatives at a face are of what is written in the variables themselves.
        if self._goal.layers is None and self._touches(cell, balls):
            return False
        return self._by_faces(cell, slopes)

    def _touches(self, cell: Cell, balls: Sequence[Any]) -> bool:
        """Whether Taylor's theorem shows the sign around a face on which the margin vanishes.

        With its first k - 1 derivatives zero there, its sign is that of the k-th one, times that of
        the distance if k is odd.
        """
        for axis, (low, high) in enumerate(cell):
            for at in dict.fromkeys((low, high, sp.S.Zero)):
                if not low <= at <= high:
                    continue
                face = [*balls[:axis], as_ball_between(at, at), *balls[axis + 1 :]]
                if not self._value(face)[0].contains(0):
                    continue
                for order, tape in self._vanishing(axis, at):
                    slope = tape(balls)[0]
                    even = order % 2 == 0
                    if (slope >= 0 and (even or at == low)) or (
                        slope <= 0 and not even and at == high
                    ):
                        return True
        return False

    def _vanishing(self, axis: int, at: sp.Rational) -> list[tuple[int, BallTape]]:
        """Return the first derivative along an axis that does not vanish on a face, with its order.

        Nothing if the margin does not vanish there.
        """
        key = axis, at
        if key not in self._touching:
            self._touching[key] = []
            x, derivative = self._symbols[axis], self._goal.margin
            for order in range(1, _HIGHEST_TOUCHING + 1):
                if not _is_zero(derivative.xreplace({x: at})):
                    break
                derivative = derivative.diff(x)
                if derivative.has(*_SINGULAR):
                    break
                self._touching[key].append((order, self._tape([derivative])))
        return self._touching[key]

    def _by_faces(self, cell: Cell, slopes: Sequence[Any]) -> bool | None:
        """Look at the face on which a monotone margin is least."""
        least, moved = list(cell), False
        for i, ((low, high), slope) in enumerate(zip(cell, slopes, strict=True)):
            if low == high:
                continue
            if slope >= 0 or slope <= 0:
                end = low if slope >= 0 else high
                least[i], moved = (end, end), True
        if not moved:
            return None
        if self._goal.layers is not None:
            return self._decided(tuple(least))
        points = {
            x: low for x, (low, high) in zip(self._symbols, least, strict=True) if low == high
        }
        key = tuple(points.items())
        if key not in self._faces:
            self._faces[key] = self._on_face(points)
        zero = self._faces[key]
        if zero is not None:
            return zero > 0 if zero >= 0 else None
        return self._decided(tuple(least))

    def _on_face(self, points: Mapping[sp.Symbol, sp.Rational]) -> int | None:
        """Return the sign of the margin on a face, if it is one number there."""
        value = self._goal.margin.subs(points)
        if value.free_symbols:
            return 0 if _vanishes(value) else None
        if not value.is_finite:
            return -1
        try:
            if is_exactly_zero(value, "the margin"):
                return 0
        except GiantstepError:
            return -1
        sign = FormulaBalls({}).sign(value)
        return -1 if sign is None else sign


# ---------------------------------------------------------------------- elimination


def _elimination(goal: Goal, cells: str) -> tuple[list[str], str, bool]:
    if goal.definitions:
        raise NotProven("elimination: outputs of models are not eliminated")
    if goal.zero:
        raise NotProven("elimination: it says nothing of equality")
    if goal.strict and goal.about != "the difference":
        raise NotProven("elimination: strict monotonicity is left to the other methods")
    search = _Eliminations()
    for steps, strict in search.ways(goal, _DEEPEST):
        if strict or not goal.strict:
            return steps, "", strict
    raise NotProven("elimination: no variable or root was eliminated so that a proof was found")


_Shown = tuple[list[str], bool]


class _Eliminations:
    """Goals with fewer variables or roots, of which a goal follows."""

    def __init__(self) -> None:
        self._count = 0
        self._known: dict[tuple[Any, ...], _Shown | None] = {}

    def shown(self, goal: Goal, depth: int) -> _Shown | None:
        """Return steps that show that a margin is not negative, and whether it never vanishes."""
        key = (goal.margin, tuple(goal.ranges.items()), goal.where, goal.strict)
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._shown(goal, depth)
        return self._known[key]

    def _shown(self, goal: Goal, depth: int) -> _Shown | None:
        margin = goal.margin
        self._count += 1
        if self._count > _MOST_GOALS or margin.count_ops() > _MOST_OPERATIONS:
            return None
        if not margin.free_symbols:
            sign = _sign_or_none(margin)
            if sign is None or sign < 0 or (goal.strict and not sign):
                return None
            return [f"{margin} is {'positive' if sign else 'zero'}"], sign > 0
        if not _seems_true(goal):
            return None
        used = {x: one for x, one in goal.ranges.items() if x in margin.free_symbols}
        plain = replace(goal, ranges=used) if not goal.where else goal
        methods: list[Callable[[Goal, str], tuple[list[str], str, bool]]] = [
            _linear, _positive_terms, _sturm, _derivatives, _few_boxes
        ]  # fmt: skip
        for method in methods:
            try:
                steps, _, strict = method(plain, "")
            except (NotProven, GiantstepError, Undecided, sp.PolynomialError, ZeroDivisionError,
                    NotImplementedError):  # fmt: skip
                continue
            return [f"{margin} >= 0, as", *steps], strict
        if depth:
            for steps, strict in self.ways(plain, depth - 1):
                if strict or not goal.strict:
                    return steps, strict
        return None

    def ways(self, goal: Goal, depth: int) -> Iterator[_Shown]:
        """Yield what shows a goal, by fewer variables or roots."""
        for way in (self._integrands, self._branches, self._ratios, self._roots_of_variables,
                    self._half_angles, self._square_roots, self._relaxed, self._bounded_functions,
                    self._denominators, self._discriminants, self._monotone, self._valleys,
                    self._compact):  # fmt: skip
            try:
                found = way(goal, depth)
            except (GiantstepError, sp.PolynomialError, ZeroDivisionError, NotImplementedError):
                continue
            if found is not None:
                yield found

    def _part(self, goal: Goal, margin: sp.Expr, depth: int, *, strict: bool = False,
              ranges: Mapping[sp.Symbol, Range] | None = None,
              where: tuple[Comparison, ...] | None = None) -> _Shown | None:  # fmt: skip
        return self.shown(
            replace(
                goal, margin=margin, strict=strict, about="the difference",
                ranges=goal.ranges if ranges is None else ranges,
                where=goal.where if where is None else where,
            ),
            depth,
        )  # fmt: skip

    def _numerator(self, goal: Goal, depth: int) -> tuple[sp.Expr, list[str]] | None:
        """Return what has the sign of a margin, without a denominator, and what shows that."""
        above, below = sp.fraction(sp.together(goal.margin))
        if not below.free_symbols:
            sign = _sign_or_none(below)
            return (above * sign, []) if sign else None
        for sign in (1, -1):
            found = self._part(goal, sign * below, depth, strict=True)
            if found is not None:
                return sign * above, found[0]
        return None

    def _integrands(self, goal: Goal, depth: int) -> _Shown | None:
        """An average of what is not negative is not negative."""
        nodes = sorted(goal.margin.atoms(GaussianExpectation), key=str)
        marks = {n: sp.Dummy(real=True) for n in nodes}
        plain = sp.expand(goal.margin.xreplace(marks))
        linear = nodes and plain.is_polynomial(*marks.values())
        if not linear or sp.Poly(plain, *marks.values()).total_degree() > 1:
            return None
        z = sp.Symbol("z_inside", real=True)
        ranges = {**goal.ranges, z: Range(-sp.oo, sp.oo)}
        constant = plain.xreplace(dict.fromkeys(marks.values(), sp.S.Zero))
        # The average of z**2 is one.
        for whole in dict.fromkeys((constant, constant * z**2)):
            margin = (plain - constant).xreplace(
                {m: n.integrand.xreplace({n.variable: z}) for n, m in marks.items()}
            ) + whole
            found = self._part(goal, margin, depth, ranges=ranges)
            if found is not None:
                break
        else:
            return None
        strict = found[1]
        if not strict and len(goal.ranges) == 1 and not margin.has(*_JUMPS):
            # What is continuous and not zero for all z has a positive average: at z = 1 it is not.
            strict = (
                self._part(goal, margin.xreplace({z: sp.S.One}), depth, strict=True) is not None
            )
        return [f"it is the average over {z} of {margin}", *found[0]], strict

    def _branches(self, goal: Goal, depth: int) -> _Shown | None:
        """|u| is u where u >= 0 and -u where u <= 0; likewise for the other kinks."""
        nodes = sorted(goal.margin.atoms(sp.Abs, relu), key=lambda n: (n.count_ops(), str(n)))
        if not nodes:
            return None
        node, inside = nodes[0], nodes[0].args[0]
        steps, strict = [], True
        mark = sp.Dummy(real=True)
        share = sp.expand(goal.margin.xreplace({node: mark})).coeff(mark)
        rest = sp.expand(goal.margin.xreplace({node: mark}) - share * mark)
        if isinstance(node, sp.Abs) and share.is_negative and not rest.has(mark):
            # The least of both: conditions on the sign of what is inside are not needed.
            for sign in (1, -1):
                found = self._part(goal, rest + sign * share * inside, depth, strict=goal.strict)
                if found is None:
                    break
                steps += found[0]
                strict = strict and found[1]
            else:
                return [f"{node} is the larger one of {inside} and {-inside}", *steps], strict
            steps, strict = [], True
        if len(goal.ranges) < 2 and not inside.is_Symbol:
            return None
        for sign in (1, -1):
            value = inside if sign > 0 else -inside if isinstance(node, sp.Abs) else sp.S.Zero
            ranges, where = dict(goal.ranges), goal.where
            if inside.is_Symbol:
                one = ranges[inside]
                if (one.high <= 0) if sign > 0 else (one.low >= 0):
                    continue
                ranges[inside] = (
                    replace(one, low=max(one.low, sp.S.Zero)) if sign > 0
                    else replace(one, high=min(one.high, sp.S.Zero))
                )  # fmt: skip
            else:
                where = (*where, Comparison(inside, ">=" if sign > 0 else "<=", sp.S.Zero))
            found = self._part(goal, goal.margin.xreplace({node: value}), depth,
                               strict=goal.strict, ranges=ranges, where=where)  # fmt: skip
            if found is None:
                return None
            steps += [f"where {inside} {'>=' if sign > 0 else '<='} 0, {node} = {value}", *found[0]]
            strict = strict and found[1]
        return steps, strict

    def _ratios(self, goal: Goal, depth: int) -> _Shown | None:
        """What is homogeneous is what is positive times a function of a ratio or difference."""
        names = [x for x in goal.ranges if x in goal.margin.free_symbols]
        if len(names) != 2 or any(c.left.has(*names) or c.right.has(*names) for c in goal.where):
            return None
        for x, y in (names, names[::-1]):
            found = self._ratio(goal, x, y, depth)
            if found is not None:
                return found
        return None

    def _ratio(self, goal: Goal, x: sp.Symbol, y: sp.Symbol, depth: int) -> _Shown | None:
        try:
            _require_continuous(goal.margin, goal.ranges)
        except NotProven:
            return None
        first, second = goal.ranges[x], goal.ranges[y]
        positive = first.low >= 0 and second.low >= 0
        options: list[tuple[sp.Expr, Range, sp.Expr]] = []
        if positive:
            bounded = second.high.is_finite and first.low > 0
            low = second.low / first.high if first.high.is_finite else sp.S.Zero
            high = second.high / first.low if bounded else sp.oo
            t = sp.Symbol(f"{y.name}_{x.name}", positive=True)
            ratio = Range(low, high, second.low_open or (not low and bool(second.low)))
            options += [(x * t, ratio, x**k) for k in (1, 0, 2, sp.S.Half)]
        t = sp.Symbol(f"{y.name}_{x.name}", real=True)
        line = Range(-sp.oo, sp.oo)
        if first.low >= 0 and second == line:
            options += [(t / x, line, x**k) for k in (0, 1, -1)]
            options += [(x * t, line, x**k) for k in (1, 0, 2)]
        gap = Range(second.low - first.high, second.high - first.low)
        options += [(x + t, gap, sp.exp(k * x)) for k in (1, 0, 2, -1)]
        for value, span, factor in options:
            t = next(iter(value.free_symbols - {x}))
            signed = sp.Symbol(x.name, positive=True) if first.low >= 0 else x
            moved = goal.margin.xreplace({y: value}).xreplace({x: signed})
            rest = sp.simplify(sp.expand_log(moved, force=False) / factor.xreplace({x: signed}))
            if rest.has(signed) or not span.low < span.high:
                continue
            new = sp.Symbol(t.name, real=True)
            found = self._part(goal, rest.xreplace({t: new}), depth, strict=goal.strict,
                               ranges={new: span}, where=())  # fmt: skip
            if found is not None:
                head = f"with {y} = {value} it is {factor} times {rest}"
                # Where the factor vanishes nothing is said.
                never = found[1] and (first.low > 0 or first.low_open or factor.has(sp.exp))
                return [head, *found[0]], bool(never)
        return None

    def _relaxed(self, goal: Goal, depth: int) -> _Shown | None:
        """Functions between two numbers, whatever their arguments, are variables between them."""
        nodes = sorted(goal.margin.atoms(*_BOUNDED), key=str)
        if not nodes or len(nodes) > 3:
            return None
        marks = {n: sp.Symbol(f"value_{depth}_{i}", real=True) for i, n in enumerate(nodes)}
        margin = goal.margin.xreplace(marks)
        ranges = dict(goal.ranges)
        for node, mark in marks.items():
            low, high = _BOUNDED[node.func]
            ranges[mark] = Range(low, high)
        if not margin.is_polynomial(*marks.values()):
            return None
        found = self._part(goal, factored(margin), depth, strict=goal.strict, ranges=ranges)
        if found is None:
            return None
        ways = ", ".join(f"{mark} = {node} in {ranges[mark]}" for node, mark in marks.items())
        return [f"with {ways}", *found[0]], found[1]

    def _denominators(self, goal: Goal, depth: int) -> _Shown | None:
        """A quotient has the sign of its numerator where the denominator is positive."""
        if not sp.fraction(sp.together(goal.margin))[1].free_symbols:
            return None
        written = self._numerator(goal, depth)
        if written is None:
            return None
        found = self._part(goal, written[0], depth, strict=goal.strict)
        if found is None:
            return None
        return [f"its numerator is {written[0]}", *written[1], *found[0]], found[1]

    def _valleys(self, goal: Goal, depth: int) -> _Shown | None:
        """What falls up to a value of a variable and grows from there on is least at it."""
        try:
            _require_continuous(goal.margin, goal.ranges)
        except NotProven:
            return None
        for y in sorted(goal.ranges, key=str):
            if any(c.left.has(y) or c.right.has(y) for c in goal.where):
                continue
            slope = factored(sp.together(goal.margin.diff(y)))
            if slope.has(*_SINGULAR) or slope.count_ops() > _MOST_OPERATIONS:
                continue
            for factor in sp.Mul.make_args(slope):
                if not factor.is_polynomial(y) or sp.degree(factor, y) != 1:
                    continue
                rate, rest = sp.Poly(factor, y).all_coeffs()
                if not rate.is_Rational:
                    continue
                bottom, one = sp.expand(-rest / rate), goal.ranges[y]
                ranges = {x: r for x, r in goal.ranges.items() if x != y}
                sides = [bottom - one.low] * bool(one.low.is_finite) + [one.high - bottom] * bool(
                    one.high.is_finite
                )
                parts = [self._part(goal, sp.cancel(slope / factor) * rate, depth),
                         *(self._part(goal, side, depth, ranges=ranges) for side in sides),
                         self._at_bound(goal, y, bottom, depth)]  # fmt: skip
                if None in parts:
                    continue
                head = f"as a function of {y} it is least at {y} = {bottom}"
                steps = [line for p in parts if p is not None for line in p[0]]
                return [head, *steps], parts[-1][1]  # type: ignore[index]
        return None

    def _roots_of_variables(self, goal: Goal, depth: int) -> _Shown | None:
        """x = t^q, where x**(p/q) occurs and x is not negative."""
        signed = _with_signs(goal.margin, goal.ranges)
        orders: dict[sp.Symbol, int] = {}
        for power in signed.atoms(sp.Pow):
            base, exponent = power.args
            if base.is_Symbol and exponent.is_Rational and base.is_nonnegative:
                orders[base] = sp.ilcm(orders.get(base, 1), exponent.q)
        rule, ranges = {}, dict(goal.ranges)
        for x, order in orders.items():
            if order == 1:
                continue
            old = sp.Symbol(x.name, real=True)
            one = ranges.pop(old)
            new = sp.Symbol(f"{x.name}_{order}", real=True)
            low, high = (e if e == sp.oo else e ** sp.Rational(1, order)
                         for e in (one.low, one.high))  # fmt: skip
            ranges[new] = Range(low, high, one.low_open, one.high_open)
            rule[old] = new**order
        if not rule:
            return None
        # Roots of powers vanish where symbols know their signs.
        positive = {x: sp.Symbol(x.name, positive=True) for x in ranges if x not in goal.ranges}
        back = {value: x for x, value in positive.items()}

        def moved(expr: sp.Expr) -> sp.Expr:
            own = {x: sp.Symbol(x.name, real=True) for x in expr.free_symbols}
            new = {x: rule.get(y, y).xreplace(positive) for x, y in own.items()}
            return expr.xreplace(new).xreplace(back)

        margin = moved(signed)
        where = tuple(Comparison(moved(c.left), c.relation, moved(c.right)) for c in goal.where)
        found = self._part(goal, margin, depth, strict=goal.strict, ranges=ranges, where=where)
        if found is None:
            return None
        return [f"with {', '.join(f'{x} = {v}' for x, v in rule.items())}", *found[0]], found[1]

    def _half_angles(self, goal: Goal, depth: int) -> _Shown | None:
        """Sines and cosines of one angle are rational in the tangent t of half of it."""
        waves = goal.margin.atoms(sp.sin, sp.cos)
        terms = [w.args[0].as_coeff_Mul() for w in waves]
        if not terms or len({rest for _, rest in terms}) > 1 or not terms[0][1].is_Symbol:
            return None
        x = terms[0][1]
        share = sp.gcd([c for c, _ in terms])
        if not share.is_Rational or x not in goal.ranges:
            return None
        angle, t = sp.Dummy("angle", real=True), sp.Symbol(f"tan_{x.name}", real=True)
        margin = sp.expand_trig(goal.margin.xreplace({w: w.func(w.args[0] / x / share * angle)
                                                      for w in waves}))  # fmt: skip
        sine, cosine = sp.Dummy(real=True), sp.Dummy(real=True)
        margin = margin.xreplace({sp.sin(angle): sine, sp.cos(angle): cosine})
        if margin.has(x, angle) or not margin.is_polynomial(sine, cosine):
            return None
        rational = margin.xreplace({sine: 2 * t / (1 + t**2), cosine: (1 - t**2) / (1 + t**2)})
        ranges = {y: one for y, one in goal.ranges.items() if y != x}
        where = tuple(c for c in goal.where if x not in c.left.free_symbols | c.right.free_symbols)
        found = self._part(goal, sp.together(rational), depth, strict=goal.strict, where=where,
                           ranges={**ranges, t: Range(-sp.oo, sp.oo)})  # fmt: skip
        opposite = self._part(goal, margin.xreplace({sine: sp.S.Zero, cosine: -sp.S.One}), depth,
                              strict=goal.strict, ranges=ranges, where=where)  # fmt: skip
        if found is None or opposite is None:
            return None
        head = (
            f"{t} is the tangent of half of {share * x}, whose sine and cosine are rational in it"
        )
        return [head, *found[0], *opposite[0]], found[1] and opposite[1]

    def _square_roots(self, goal: Goal, depth: int) -> _Shown | None:
        """A + B sqrt(C) >= 0 follows of signs of A and B, and of A**2 - B**2 C if they differ."""
        roots = [p for p in goal.margin.atoms(sp.Pow)
                 if p.exp.is_Rational and p.exp.q == 2 and p.base.free_symbols]  # fmt: skip
        if not roots:
            return None
        inside = max((p.base for p in roots), key=lambda u: (u.count_ops(), str(u)))
        mark = sp.Symbol(f"root_{depth}", real=True)
        rule = {p: mark ** int(2 * p.exp) for p in roots if p.base == inside}
        ranges = {**goal.ranges, mark: Range(sp.S.Zero, sp.oo, True)}
        marked = replace(goal, margin=goal.margin.xreplace(rule), ranges=ranges)
        written = self._numerator(marked, depth)
        if written is None or not written[0].is_polynomial(mark):
            return None
        above, steps = written
        real = self._part(goal, inside, depth)
        if real is None:
            return None
        flat, slope = sp.S.Zero, sp.S.Zero
        for (n,), c in sp.Poly(above, mark).terms():
            if n % 2:
                slope += c * inside ** (n // 2)
            else:
                flat += c * inside ** (n // 2)
        flat, slope = sp.factor_terms(sp.expand(flat)), sp.factor_terms(sp.expand(slope))
        squared = sp.expand(flat**2 - slope**2 * inside)
        for signs in ((1, 1), (1, -1), (-1, 1)):
            parts = [self._part(goal, sign * part, depth)
                     for sign, part in zip(signs, (flat, slope), strict=True)]  # fmt: skip
            if None in parts:
                continue
            if signs == (1, 1):
                strict = parts[0][1]  # type: ignore[index]
            else:
                last = self._part(goal, signs[0] * squared, depth, strict=goal.strict)
                if last is None:
                    continue
                parts.append(last)
                strict = last[1]
            head = f"it is A + B*sqrt({inside}) with A = {flat}, B = {slope}"
            shown = [line for p in (real, *parts) if p is not None for line in p[0]]
            return [head, *steps, *shown], strict
        return None

    def _discriminants(self, goal: Goal, depth: int) -> _Shown | None:
        """a y**2 + b y + c is not negative with a > 0 and 4 a c >= b**2."""
        written = self._numerator(goal, depth)
        if written is None:
            return None
        above, steps = written
        for y in sorted(goal.ranges, key=str):
            if not above.is_polynomial(y) or sp.degree(above, y) != 2:
                continue
            a, b, c = sp.Poly(above, y).all_coeffs()
            ranges = {x: one for x, one in goal.ranges.items() if x != y}
            where = tuple(q for q in goal.where
                          if y not in q.left.free_symbols | q.right.free_symbols)  # fmt: skip
            options = {"ranges": ranges, "where": where}
            gap = self._part(goal, sp.expand(4 * a * c - b**2), depth, strict=goal.strict,
                             **options)  # type: ignore[arg-type]  # fmt: skip
            if gap is None:
                continue
            lead = self._part(goal, a, depth, strict=True, **options)  # type: ignore[arg-type]
            if lead is None:
                continue
            head = f"it is a*{y}**2 + b*{y} + c with a = {a} > 0, and 4*a*c - b**2 is not negative"
            return [head, *steps, *lead[0], *gap[0]], gap[1]
        return None

    def _monotone(self, goal: Goal, depth: int) -> _Shown | None:
        """What is monotone in a variable is least at one of the bounds of the variable."""
        try:
            _require_continuous(goal.margin, goal.ranges)
        except NotProven:
            return None
        for y in sorted(goal.ranges, key=str):
            try:
                _require_intervals(goal.where, y.name)
            except NotProven:
                continue
            slope = factored(sp.together(goal.margin.diff(y)))
            if slope.has(*_SINGULAR) or slope.count_ops() > _MOST_OPERATIONS:
                continue
            for sign in (1, -1):
                shown = self._part(goal, sign * slope, depth)
                if shown is None:
                    continue
                parts = [self._at_bound(goal, y, bound, depth) for bound in _bounds(goal, y, sign)]
                if not parts or None in parts:
                    break
                word, where = ("grows", "least") if sign > 0 else ("falls", "largest")
                steps = [x for p in parts if p is not None for x in p[0]]
                head = f"it {word} with {y}, and is looked at where {y} is {where}"
                return [head, *shown[0], *steps], all(p[1] for p in parts if p is not None)
        return None

    def _at_bound(self, goal: Goal, y: sp.Symbol, bound: sp.Expr, depth: int) -> _Shown | None:
        margin = goal.margin.xreplace({y: bound})
        if margin.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
            return None
        one = goal.ranges[y]
        where = [Comparison(c.left.xreplace({y: bound}), _closed(c.relation),
                            c.right.xreplace({y: bound})) for c in goal.where]  # fmt: skip
        if bound.free_symbols:
            where += [Comparison(bound, relation, end)
                      for relation, end in ((">=", one.low), ("<=", one.high))
                      if end.is_finite]  # fmt: skip
        ranges = {x: r for x, r in goal.ranges.items() if x != y}
        where = [c for c in where if c.left.free_symbols | c.right.free_symbols]
        return self._part(goal, margin, depth, strict=goal.strict, ranges=ranges,
                          where=tuple(where))  # fmt: skip

    def _bounded_functions(self, goal: Goal, depth: int) -> _Shown | None:
        """Far out sines are between -1 and 1; up to there it is a box."""
        if len(goal.ranges) != 1 or goal.where:
            return None
        ((x, one),) = goal.ranges.items()
        waves = sorted(goal.margin.atoms(sp.sin, sp.cos), key=str)
        if one.is_bounded or not waves or len(waves) > 3:
            return None
        marks = {w: sp.Dummy(real=True) for w in waves}
        plain = goal.margin.xreplace(marks)
        if any(not plain.is_polynomial(m) or sp.degree(plain, m) > 1 for m in marks.values()):
            return None
        for far in (2, 8, 32):
            low = one.low if one.low.is_finite else sp.Integer(-far)
            high = one.high if one.high.is_finite else sp.Integer(far)
            outside = [Range(high, sp.oo)] * (one.high == sp.oo) + [Range(-sp.oo, low)] * (
                one.low == -sp.oo
            )
            tails = [
                self._part(goal, plain.xreplace(dict(zip(marks.values(), ends, strict=True))),
                           depth, strict=goal.strict, ranges={x: far_out})
                for far_out in outside
                for ends in itertools.product((sp.S.One, -sp.S.One), repeat=len(waves))
            ]  # fmt: skip
            if None in tails:
                continue
            middle = {x: Range(low, high, one.low_open, one.high_open)}
            near = self._part(goal, goal.margin, 0, strict=goal.strict, ranges=middle)
            if near is None:
                return None
            head = f"outside of [{low}, {high}] sines and cosines are between -1 and 1"
            steps = [line for p in tails if p is not None for line in p[0]]
            strict = near[1] and all(p[1] for p in tails if p is not None)
            return [head, *steps, *near[0]], strict
        return None

    def _compact(self, goal: Goal, depth: int) -> _Shown | None:
        """x = low + t/(1 - t) with 0 <= t <= 1 makes a box of half-lines."""
        lines = [x for x, one in goal.ranges.items() if not one.is_bounded]
        if not lines or len(goal.ranges) > 3 or goal.where:
            return None
        choices = []
        for x in lines:
            one, t = goal.ranges[x], sp.Symbol(f"t_{x.name}", real=True)
            up = (one.low if one.low.is_finite else sp.S.Zero) + t / (1 - t)
            down = (one.high if one.high.is_finite else sp.S.Zero) - t / (1 - t)
            choices.append(([(x, up, t)] if one.high == sp.oo else [])
                           + ([(x, down, t)] if one.low == -sp.oo else []))  # fmt: skip
        steps, strict = [], True
        for way in itertools.product(*choices):
            rule = {x: value for x, value, _ in way}
            above, below = sp.fraction(sp.cancel(sp.together(goal.margin.xreplace(rule))))
            if not (above.is_polynomial() and below.is_polynomial()):
                return None
            ranges = {x: one for x, one in goal.ranges.items() if x not in rule}
            ranges |= {t: Range(sp.S.Zero, sp.S.One) for _, _, t in way}
            poles = sp.Mul(*(1 - t for _, _, t in way))
            # Powers of 1 - t are positive inside; what else is below has to be shown positive.
            for factor, power in factor_list(below)[1]:
                if sp.rem(poles, factor) == 0:
                    sign = 1 if factor.subs({t: 0 for _, _, t in way}) > 0 else -1
                    below = sp.cancel(below / factor**power) * sign**power
            if below.free_symbols:
                return None
            found = self._part(goal, sp.expand(above / below), 0, strict=goal.strict,
                               ranges=ranges)  # fmt: skip
            if found is None:
                return None
            steps += [f"with {', '.join(f'{x} = {v}' for x, v in rule.items())}", *found[0]]
            strict = strict and found[1]
        return steps, strict


def _closed(relation: str) -> str:
    return relation if "=" in relation else relation + "="


def _bounds(goal: Goal, y: sp.Symbol, sign: int) -> list[sp.Expr]:
    """Return lower bounds of a variable, or upper ones for a negative sign; none if unbounded."""
    one = goal.ranges[y]
    end = one.low if sign > 0 else one.high
    result = [end] if end.is_finite else []
    for c in goal.where:
        gap = sp.expand(c.right - c.left)
        if not gap.has(y):
            continue
        slope = gap.coeff(y)
        if c.relation == "==":
            return [y - gap / slope]
        # "<": slope * y + rest > 0 gives a lower bound if the slope is positive.
        lower = (slope > 0) == (c.relation in ("<", "<="))
        if lower == (sign > 0):
            result.append(sp.expand(y - gap / slope))
    return result


def _linear(goal: Goal, cells: str) -> tuple[list[str], str, bool]:
    """Prove a linear margin by its minimum under the linear conditions."""
    rows = []
    for x, one in goal.ranges.items():
        rows += [x >= one.low] * bool(one.low.is_Rational) + [x <= one.high] * bool(
            one.high.is_Rational
        )
    exprs = [goal.margin]
    for c in goal.where:
        gap = sp.expand(c.right - c.left if c.relation in ("<", "<=", "==") else c.left - c.right)
        exprs.append(gap)
        rows += [gap >= 0, *([gap <= 0] if c.relation == "==" else [])]
    for expr in exprs:
        x = sorted(goal.ranges, key=str)
        if (
            not expr.is_polynomial(*x)
            or sp.Poly(expr, *x).total_degree() > 1
            or not all(k.is_Rational for k in sp.Poly(expr, *x).coeffs())
        ):
            raise NotProven("linear: something is not linear")
    try:
        least, _ = lpmin(goal.margin, rows)
    except (InfeasibleLPError, UnboundedLPError, ValueError):
        raise NotProven("linear: there is no minimum") from None
    if least < 0 or (goal.strict and not least):
        raise NotProven("linear: the minimum is not positive")
    return [f"its minimum under the linear conditions is {least}"], "", least > 0


def _few_boxes(goal: Goal, cells: str) -> tuple[list[str], str, bool]:
    return _branch_and_bound(goal, cells, most=_FEW_CELLS)


def _sign_or_none(value: sp.Expr) -> int | None:
    try:
        sign = FormulaBalls({}).sign(value)
        if sign is None and is_exactly_zero(value, "a value"):
            return 0
        return sign
    except GiantstepError:
        return None


def _seems_true(goal: Goal) -> bool:
    """Tell whether a margin is not negative at some points in floats; what is false is left."""
    if goal.margin.atoms(GaussianExpectation):
        return True
    symbols = [*goal.ranges]
    sides = [x for c in goal.where for x in (c.right, c.left)]
    random = np.random.default_rng(0)
    columns = []
    for x in symbols:
        low, high = float(goal.ranges[x].low), float(goal.ranges[x].high)
        start, stop = max(low, -1e3), min(high, 1e3)
        spread = random.random(_GUESSES)
        if math.isfinite(low) and math.isfinite(high):
            columns.append(start + (stop - start) * spread)
        else:
            size = 10 ** (6 * spread - 3)
            sign = np.where(random.random(_GUESSES) < 0.5, 1, -1)
            columns.append(low + size if math.isfinite(low) else high - size
                           if math.isfinite(high) else sign * size)  # fmt: skip
    try:
        with np.errstate(all="ignore"):
            function = compiled([goal.margin, *sides], symbols)
            value, *found = (np.broadcast_to(np.asarray(v, dtype=float), _GUESSES)
                             for v in function(*columns))  # fmt: skip
    except (GiantstepError, ArithmeticError, TypeError, ValueError):
        return True
    inside = np.ones(_GUESSES, dtype=bool)
    for i, c in enumerate(goal.where):
        gap = found[2 * i] - found[2 * i + 1]
        if c.relation != "==":
            inside &= gap >= 0 if c.relation in ("<", "<=") else gap <= 0
        else:
            inside &= False
    scale = 1e-9 * max(1.0, float(np.nanmax(abs(np.where(np.isfinite(value), value, 0)))))
    return not bool((inside & np.isfinite(value) & (value < -scale)).any())
