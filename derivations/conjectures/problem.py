"""A statement with the ranges of its quantities: checked, and brought to one relation."""

from __future__ import annotations

import itertools
import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import sympy as sp
from sympy.solvers.simplex import InfeasibleLPError, UnboundedLPError, lpmax

from ...errors import ExpressionError, GiantstepError, ParameterError
from ...pages import shorten
from ...symbolic.expressions.factors import factored
from ...symbolic.expressions.parser import parse_expression
from ...symbolic.gaussian.enclosed_formulas import FormulaBalls
from ..kernels.arguments import column
from ..outputs import BEST, ModelOutput, Outputs, parameter, require_asked
from .signs import Function, Point, Undecided, signs_of
from .statements import (
    Comparison,
    Independent,
    Monotone,
    Relation,
    Statement,
    Together,
    read_statement,
)

_DOMAINS = {
    "real": (-sp.oo, sp.oo), "positive": (sp.S.Zero, sp.oo), "nonnegative": (sp.S.Zero, sp.oo),
    "negative": (-sp.oo, sp.S.Zero), "nonpositive": (-sp.oo, sp.S.Zero),
}  # fmt: skip
_OPEN = {"positive": "low", "negative": "high"}
_INTERVAL = re.compile(r"([\[(])([^,]+),([^,]+)([\])])")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?(/\d+)?")
OTHER = "_2"
"""Behind the name of a variable: its second value, in what says how a quantity changes."""


@dataclass(frozen=True)
class Range:
    """Where a variable lies: an interval with exact ends, which may be infinite."""

    low: sp.Expr
    high: sp.Expr
    low_open: bool = False
    high_open: bool = False

    def __post_init__(self) -> None:
        # Infinity belongs to no range, and there is one way to say so.
        object.__setattr__(self, "low_open", self.low_open and bool(self.low.is_finite))
        object.__setattr__(self, "high_open", self.high_open and bool(self.high.is_finite))

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are finite."""
        return bool(self.low.is_finite and self.high.is_finite)

    def contains(self, value: sp.Rational) -> bool:
        """Tell whether a number is inside."""
        low = value > self.low if self.low_open else value >= self.low
        high = value < self.high if self.high_open else value <= self.high
        return bool(low) and bool(high)

    def __str__(self) -> str:
        left = "(" if self.low_open or not self.low.is_finite else "["
        right = ")" if self.high_open or not self.high.is_finite else "]"
        return f"{left}{self.low}, {self.high}{right}"


def read_range(name: str, value: Any) -> Range | sp.Expr:
    """Return a range, or one number for a quantity that is held fixed, or :data:`BEST`.

    Ranges are (0, 2), sp.Interval.open(0, 2), "0:2", "[0, 2)" or "positive". Floats mean the
    decimal numbers that they print as; an end may be infinite.
    """
    if isinstance(value, str):
        text = value.strip()
        if text == BEST.name:
            return BEST
        if text in _DOMAINS:
            low, high = _DOMAINS[text]
            return Range(low, high, _OPEN.get(text) == "low", _OPEN.get(text) == "high")
        written = _INTERVAL.fullmatch(text)
        if written:
            left, low, high, right = written.groups()
            return _nonempty(
                name,
                Range(exact_number(name, low), exact_number(name, high), left == "(", right == ")"),
            )
        value = tuple(text.split(":")) if ":" in text else text
        if not isinstance(value, tuple):
            return exact_number(name, value)
    if isinstance(value, sp.Interval):
        found = Range(value.start, value.end, bool(value.left_open), bool(value.right_open))
        return _nonempty(name, found)
    if isinstance(value, tuple | list):
        if len(value) != 2:
            raise ParameterError(
                f"over: the range of {name} must be two numbers, such as (0, 2), got {value!r}"
            )
        return _nonempty(name, Range(*(exact_number(name, x) for x in value)))
    return exact_number(name, value)


def _nonempty(name: str, found: Range) -> Range:
    if not found.low.is_extended_real or not found.high.is_extended_real:
        raise ParameterError(f"over: the ends of {name} must be numbers, got {found}")
    if not found.low < found.high:
        raise ParameterError(
            f"over: the range of {name} is empty: {found.low} is not below {found.high}; give the "
            "smaller end first, or one number to hold it fixed"
        )
    return found


def exact_number(name: str, value: Any) -> sp.Expr:
    """Return a number or a text as an exact number; infinity is allowed."""
    if isinstance(value, str):
        text = value.strip()
        if text in ("inf", "+inf", "oo", "-inf", "-oo"):
            return -sp.oo if text.startswith("-") else sp.oo
        if _NUMBER.fullmatch(text):
            top, _, below = text.partition("/")
            if below and not int(below):
                raise ParameterError(f"over: {name} = {text} divides by zero")
            return sp.Rational(Fraction(Decimal(top))) / (int(below) if below else 1)
        try:
            return parse_expression(text, [], argument=f"over: {name}")
        except ExpressionError:
            pass
    elif isinstance(value, bool):
        pass
    elif isinstance(value, sp.Expr) and not value.has(sp.Float):
        if not value.free_symbols and value.is_extended_real:
            return value
    elif isinstance(value, numbers.Rational):
        return sp.Rational(int(value.numerator), int(value.denominator))
    elif isinstance(value, numbers.Real) or isinstance(value, sp.Float):
        number = float(value)
        if not math.isnan(number):
            if math.isinf(number):
                return sp.oo if number > 0 else -sp.oo
            return sp.Rational(repr(number))
    raise ParameterError(
        f"over: {name} must be a range such as (0, 2) or (0, inf), a number, 'positive', 'real' or "
        f"'best', got {shorten(repr(value), 60)}"
    )


@dataclass(frozen=True)
class Problem:
    """One relation of two sides over ranges, with conditions.

    Attributes
    ----------
    statement : relation
        As given.
    left, right : Expr
        In symbols :func:`.outputs.parameter` of the ranges.
    ranges : mapping from str to Range
        Of a monotone quantity also of the second value of its variable.
    where : tuple of Comparison
        What else is assumed of them.
    fixed : mapping from str to Expr
        Quantities that are held at numbers.
    determined : mapping from str to Expr
        Quantities that an equation among the conditions gives by the others.
    """

    statement: Relation
    left: sp.Expr
    right: sp.Expr
    relation: str
    ranges: Mapping[str, Range]
    where: tuple[Comparison, ...] = ()
    fixed: Mapping[str, sp.Expr] = field(default_factory=dict)
    determined: Mapping[str, sp.Expr] = field(default_factory=dict)

    @property
    def margin(self) -> sp.Expr:
        """What has to be positive (or not negative, or zero)."""
        if self.relation in ("<", "<="):
            return self.right - self.left
        return self.left - self.right

    @property
    def strict(self) -> bool:
        """Whether a margin of zero refutes it."""
        return self.relation in ("<", ">")

    @property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """The variables in order."""
        return tuple(map(parameter, self.ranges))

    @property
    def outputs(self) -> tuple[ModelOutput, ...]:
        """Outputs of models that it holds, conditions included."""
        exprs = (self.left, self.right, *(x for c in self.where for x in (c.left, c.right)))
        return tuple(sorted({o for x in exprs for o in x.atoms(ModelOutput)}, key=str))


def problems(
    statement: Any, over: Mapping[Any, Any], where: Sequence[Any], outputs: Outputs | None
) -> tuple[Statement, list[Problem]]:
    """Return a statement, and the relations that it consists of."""
    named = {_key(key): value for key, value in over.items()}
    found = {name: read_range(name, value) for name, value in named.items()}
    read = read_statement(statement, list(named), outputs)
    conditions: list[Comparison] = []
    for one in [where] if isinstance(where, str) or not isinstance(where, Iterable) else where:
        condition = read_statement(one, list(named), outputs, "where")
        parts = condition.parts if isinstance(condition, Together) else (condition,)
        for part in parts:
            if not isinstance(part, Comparison):
                raise ParameterError(f"where: a condition must be a comparison, got {part}")
            conditions.append(part)
    ranges = {name: x for name, x in found.items() if isinstance(x, Range)}
    fixed = {name: x for name, x in found.items() if not isinstance(x, Range)}
    _check_assumptions([read, *conditions], ranges, fixed)
    parts = read.parts if isinstance(read, Together) else (read,)
    used = _used([read, *conditions])
    for name in named:
        if name not in used:
            raise ParameterError(
                f"over: {name} does not occur in the statement, whose quantities are "
                f"{', '.join(sorted(used)) or 'none'}"
            )
    flat = [x for part in parts for x in (part.parts if isinstance(part, Together) else (part,))]
    return read, [one for part in flat for one in _problems(part, conditions, ranges, fixed)]


def _key(key: Any) -> str:
    if isinstance(key, sp.Symbol):
        return str(key.name)
    if isinstance(key, str) and key.isidentifier():
        return key
    raise ParameterError(f"over: quantities are names or symbols, got {key!r}")


def _used(statements: Iterable[Statement]) -> set[str]:
    return {
        x.name
        for one in statements
        for expr in one.expressions
        for x in expr.free_symbols
        if x != BEST
    } | {name for one in statements for name in one.variables}


def _check_assumptions(
    statements: Sequence[Statement], ranges: Mapping[str, Range], fixed: Mapping[str, sp.Expr]
) -> None:
    for one in statements:
        for expr in one.expressions:
            for x in expr.free_symbols:
                given = ranges.get(x.name)
                if given is None:
                    point = fixed.get(x.name)
                    if point is None or point == BEST:
                        continue
                    given = Range(point, point)
                no = (
                    "is declared positive" if x.is_positive and (
                        given.low < 0 or (given.low == 0 and not given.low_open
                                          and given.high == 0))
                    else "is declared nonnegative" if x.is_nonnegative and given.low < 0
                    else "is declared negative" if x.is_negative and given.high > 0
                    else "is declared nonpositive" if x.is_nonpositive and given.high > 0
                    else "is declared an integer, and ranges hold all numbers" if x.is_integer
                    and given.low != given.high
                    else "is declared not real" if x.is_extended_real is False else ""
                )  # fmt: skip
                if no:
                    raise ParameterError(
                        f"over: {x.name} {no}, and its range is {given}\n  give a range within "
                        "the assumptions of the symbol, or a symbol without them"
                    )


def _problems(
    part: Any, where: Sequence[Comparison], ranges: Mapping[str, Range],
    fixed: Mapping[str, sp.Expr],
) -> list[Problem]:  # fmt: skip
    """Return a relation over the parts that conditions leave of its ranges; mostly it is one."""

    def own(expr: sp.Expr) -> sp.Expr:
        return _in_variables(expr, ranges, fixed)

    conditions = [Comparison(own(c.left), c.relation, own(c.right)) for c in where]
    if isinstance(part, Comparison):
        left, right = own(part.left), own(part.right)
        free, conditions, determined = _solved(conditions, ranges)
        left, right = (x.xreplace(_symbols(determined)) for x in (left, right))
        result = []
        for shares, rest, values in _shares(free, conditions):
            rule = _symbols(values)
            result.append(
                Problem(
                    part, left.xreplace(rule), right.xreplace(rule), part.relation, shares,
                    tuple(rest), fixed,
                    {name: x.xreplace(rule) for name, x in determined.items()} | values,
                )
            )  # fmt: skip
        return result
    assert isinstance(part, Monotone | Independent)
    name = part.variable
    if name not in ranges:
        raise ParameterError(
            f"over: {name} must have a range, such as {name}=(0, 2): the statement is about how "
            f"{part.quantity} changes with it"
        )
    quantity = own(part.quantity)
    found = _shares(ranges, conditions)
    if len(found) == 1 and name not in found[0][2]:
        # Of several parts those that are compared may be two.
        ((ranges, conditions, values),) = found
        fixed, quantity = {**fixed, **values}, quantity.xreplace(_symbols(values))
    # A condition on the variable is one on both of its values.
    moved = {parameter(name): parameter(name + OTHER)}
    conditions = [*conditions] + [
        Comparison(c.left.xreplace(moved), c.relation, c.right.xreplace(moved))
        for c in conditions
        if parameter(name) in c.left.free_symbols | c.right.free_symbols
    ]
    conditions.append(Comparison(parameter(name), "<", parameter(name + OTHER)))
    relation = "=="
    if isinstance(part, Monotone):
        relation = ("<" if part.increasing else ">") + ("" if part.strict else "=")
    return [
        Problem(
            part, quantity, quantity.xreplace(moved), relation,
            {**ranges, name + OTHER: ranges[name]}, tuple(conditions), fixed,
        )
    ]  # fmt: skip


def _symbols(values: Mapping[str, sp.Expr]) -> dict[sp.Expr, sp.Expr]:
    return {parameter(name): value for name, value in values.items()}


def _solved(
    where: Sequence[Comparison], ranges: Mapping[str, Range]
) -> tuple[dict[str, Range], list[Comparison], dict[str, sp.Expr]]:
    """Solve equations among the conditions for variables that they hold linearly."""
    free, rest = dict(ranges), list[Comparison]()
    determined: dict[str, sp.Expr] = {}
    for one in where:
        left, right = (x.xreplace(_symbols(determined)) for x in (one.left, one.right))
        solved = None
        if one.relation == "==" and not (left - right).atoms(ModelOutput):
            gap = sp.expand(left - right)
            for name in [*free][::-1]:
                x = parameter(name)
                if gap.is_polynomial(x) and sp.degree(gap, x) == 1:
                    slope = gap.coeff(x)
                    if slope.is_Rational and len(gap.free_symbols) > 1:
                        solved = name, sp.expand(x - gap / slope)
                        break
        if solved is None:
            rest.append(Comparison(left, one.relation, right))
            continue
        name, value = solved
        rule = {parameter(name): value}
        determined = {k: v.xreplace(rule) for k, v in determined.items()} | {name: value}
        rest = [Comparison(c.left.xreplace(rule), c.relation, c.right.xreplace(rule)) for c in rest]
        span = free.pop(name)
        for end, is_open, relation in (
            (span.low, span.low_open, ">"), (span.high, span.high_open, "<")
        ):  # fmt: skip
            if end.is_finite:
                rest.append(Comparison(value, relation + ("" if is_open else "="), end))
    return free, rest, determined


_Share = tuple[dict[str, Range], list[Comparison], dict[str, sp.Expr]]


def _shares(ranges: Mapping[str, Range], where: Sequence[Comparison]) -> list[_Share]:
    """Return the parts of ranges on which the conditions on one variable hold.

    Each comes with the other conditions, and with variables of which one number is left.
    """
    rest: list[Comparison] = []
    parts: dict[str, list[Range]] = {name: [one] for name, one in ranges.items()}
    for condition in where:
        used = condition.left.free_symbols | condition.right.free_symbols
        has_outputs = condition.left.has(ModelOutput) or condition.right.has(ModelOutput)
        found = None
        if not used and not has_outputs:
            _require_true(condition)
            continue
        if len(used) == 1 and not has_outputs:
            (x,) = used
            found = _where_it_holds(condition, x, parts[x.name])
        if found is None:
            rest.append(condition)
        elif not found:
            shown = " and ".join(map(str, parts[x.name]))
            raise ParameterError(
                f"where: no value of {x.name} in {shown} meets {condition}; with the other "
                "conditions nothing is left that the statement could be about"
            )
        else:
            parts[x.name] = found
    _require_feasible(parts, rest)
    result: list[_Share] = []
    for choice in itertools.product(*parts.values()):
        own = dict(zip(parts, choice, strict=True))
        values = {name: one.low for name, one in own.items() if one.low == one.high}
        rule = _symbols(values)
        result.append((
            {name: one for name, one in own.items() if name not in values},
            [Comparison(c.left.xreplace(rule), c.relation, c.right.xreplace(rule)) for c in rest],
            values,
        ))  # fmt: skip
    return result


def _require_feasible(parts: Mapping[str, Sequence[Range]], where: Sequence[Comparison]) -> None:
    """Refuse linear conditions that contradict each other: then no slack is positive."""
    slack = sp.Dummy("slack", real=True)
    rows = [slack <= 1]
    for c in where:
        gap = sp.expand(c.right - c.left if c.relation in ("<", "<=", "==") else c.left - c.right)
        linear = all(gap.is_polynomial(x) and sp.degree(gap, x) <= 1 for x in gap.free_symbols)
        numbers = gap.as_coefficients_dict()
        if not linear or any(len(m.free_symbols) > 1 or m.is_Mul for m in numbers):
            continue
        if c.relation == "==":
            rows += [gap >= 0, gap <= 0]
        else:
            rows.append(gap >= (0 if "=" in c.relation else slack))
    if len(rows) < 3:
        return
    for name, several in parts.items():
        low, high = several[0], several[-1]
        for end, is_open, sign in ((low.low, low.low_open, 1), (high.high, high.high_open, -1)):
            if end.is_Rational:
                rows.append(sign * (parameter(name) - end) >= (slack if is_open else 0))
    try:
        most, _ = lpmax(slack, rows)
    except InfeasibleLPError:
        most = sp.S.Zero
    except (UnboundedLPError, ValueError):
        return
    if most <= 0:
        spans = ", ".join(f"{name} in {' and '.join(map(str, x))}" for name, x in parts.items())
        raise ParameterError(
            f"where: {'; '.join(map(str, where))} contradict each other for {spans}; nothing is "
            "left that the statement could be about"
        )


def _require_true(condition: Comparison) -> None:
    try:
        sign = FormulaBalls({}).sign(condition.left - condition.right)
    except GiantstepError:
        return
    if sign is not None and not _agrees(condition.relation, sign):
        raise ParameterError(f"where: {condition} never holds")


def _agrees(relation: str, sign: int) -> bool:
    """Whether a relation holds where the left side minus the right one has this sign."""
    return {
        "==": sign == 0, "<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0,
    }[relation]  # fmt: skip


def _where_it_holds(
    condition: Comparison, x: sp.Symbol, ranges: Sequence[Range]
) -> list[Range] | None:
    """Return the parts of ranges on which a condition holds; None if they are not exact numbers."""
    gap, relation = condition.left - condition.right, condition.relation
    result: list[Range] = []
    for one in ranges:
        try:
            pieces = signs_of(gap, x, one.low, one.high)
            ends = [one.low] + [e for p in pieces for e in (*p.chart.points, p.high)]
            exact = [e.exact if isinstance(e, Point) else e for e in ends]
            signs = [sign for p in pieces for sign in p.chart.signs]
        except (Undecided, GiantstepError, sp.PolynomialError, NotImplementedError):
            return None
        if any(e is None for e in exact):
            return None
        try:
            at = [_sign_at(gap, x, e) for e in exact]
        except (Undecided, GiantstepError):
            return None
        last = len(exact) - 1
        at_end = [
            sign is not None and _agrees(relation, sign)
            and not (i == 0 and one.low_open) and not (i == last and one.high_open)
            for i, sign in enumerate(at)
        ]  # fmt: skip
        current: tuple[sp.Expr, bool] | None = None
        for i, sign in enumerate(signs):
            if at_end[i] and current is None:
                current = exact[i], False
            if _agrees(relation, sign):
                current = current or (exact[i], True)
                if not at_end[i + 1]:
                    result.append(Range(current[0], exact[i + 1], current[1], True))
                    current = None
            elif current is not None:
                result.append(Range(current[0], exact[i], current[1], False))
                current = None
        if current is not None:
            result.append(Range(current[0], exact[-1], current[1], False))
        elif at_end[-1] and not _agrees(relation, signs[-1]):
            result.append(Range(exact[-1], exact[-1]))
    return result


def _sign_at(expr: sp.Expr, x: sp.Symbol, value: sp.Expr) -> int | None:
    """Return the sign of a function at an exact number; None if it has no value there."""
    if not value.is_finite:
        return None
    there = expr.xreplace({x: value})
    if there.has(sp.nan, sp.zoo, sp.oo, -sp.oo) or there.is_extended_real is False:
        return None
    return Function(expr, x).sign(value)


def _in_variables(
    expr: sp.Expr, ranges: Mapping[str, Range], fixed: Mapping[str, sp.Expr]
) -> sp.Expr:
    """Write an expression in the symbols of the ranges; what has no range is an error."""
    values = {}
    for output in expr.atoms(ModelOutput):
        pairs = {}
        for name, value in output.bindings.items():
            default = value == parameter(name)
            if default and name not in ranges and name not in fixed:
                continue
            pairs[name] = value
        kept = [sp.Tuple(sp.core.symbol.Str(k), v) for k, v in pairs.items()]
        values[output] = new = ModelOutput(output.args[0], sp.Tuple(*kept))
        require_asked(output.model, pairs)
        _check_domain(new, ranges, fixed)
    expr = expr.xreplace(values).replace(sp.Limit, limit_at_infinity)
    own = {}
    for x in expr.free_symbols - {BEST}:
        if x.name in fixed:
            own[x] = fixed[x.name]
        elif x.name in ranges:
            own[x] = parameter(x.name)
        else:
            known = ", ".join([*ranges, *fixed]) or "none"
            raise ParameterError(
                f"over: {x.name} has no value; give it a range, as in over={{{x.name!r}: (0, 2)}}, "
                f"or a number\n  bound are: {known}"
            )
    return expr.xreplace(own)


def limit_at_infinity(expr: sp.Expr, symbol: sp.Symbol, end: sp.Expr, *_: Any) -> sp.Expr:
    """Return the limit of a rational function as a symbol tends to infinity, as SymPy's Limit asks.

    Raises
    ------
    ParameterError
        If it is infinite, or may be another one at some values of the other symbols.
    """
    numerator, denominator = map(factored, sp.fraction(sp.cancel(sp.together(expr))))
    if end != sp.oo or not numerator.is_polynomial(symbol) or not denominator.is_polynomial(symbol):
        raise ParameterError(
            f"the limit of {shorten(str(expr))} as {symbol} tends to {end} is not taken: it must "
            "be that of a rational function, and at oo"
        )
    above, below = sp.Poly(numerator, symbol), sp.Poly(denominator, symbol)
    lead = factored(below.LC())
    if above.domain.is_EX or below.domain.is_EX or not lead.is_nonzero:
        raise ParameterError(
            f"the limit of {shorten(str(expr))} as {symbol} tends to oo may be another one where "
            f"{shorten(str(lead))} vanishes; give symbols with signs"
        )
    if above.degree() > below.degree():
        raise ParameterError(f"{shorten(str(expr))} is unbounded for {symbol} -> oo")
    return sp.cancel(above.LC() / lead) if above.degree() == below.degree() else sp.S.Zero


def _check_domain(
    output: ModelOutput, ranges: Mapping[str, Range], fixed: Mapping[str, sp.Expr]
) -> None:
    """Refuse ends of ranges at which a model is not defined."""
    axes = output.model._axes()
    for name, value in output.bindings.items():
        if not isinstance(value, sp.Symbol) or value == BEST:
            continue
        ends = []
        if value.name in fixed and fixed[value.name] != BEST:
            ends = [fixed[value.name]]
        elif value.name in ranges:
            one = ranges[value.name]
            ends = [
                end for end, is_open in ((one.low, one.low_open), (one.high, one.high_open))
                if end.is_finite and not is_open
            ]  # fmt: skip
            if not one.low.is_finite or (one.low < 0 and one.low_open):
                ends.append(sp.Integer(-1))
        if ends:
            column(name, [float(x) for x in ends], axes[name])
