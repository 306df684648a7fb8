"""Statements about random targets: a function of them, or a text with a short list of words."""

from __future__ import annotations

import ast
import itertools
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from ... import __version__
from ...errors import ExpressionError, GiantstepError, ParameterError
from ...numeric.networks.run import progress_bar
from ...pages import latex_text, shorten
from ...symbolic.leaps.generative_leap import generative_leap
from ...symbolic.leaps.leap_index import coordinate_leap, isotropic_leap, leap_index
from ...symbolic.leaps.staircase import staircase
from ...symbolic.targets.target import Target, target as read_target
from .problem import Range
from .random_targets import TargetFamily, Terms, target_text
from .statements import parsed, words_of
from .store import PieceStore

_MOST_SIGNS = 6
LABEL, HELD = "random targets: ", "target: "
"""Begin the words for the range of a target, and for one that is held."""
_SHARES = 12
"""Numbers are drawn as multiples of one over this share of their range."""
Point: TypeAlias = Mapping[str, str]
"""Targets as texts that read back, and numbers, by name."""


def _generative(f: Target) -> int:
    found = generative_leap(f)
    if not found.is_exact:
        raise ParameterError("the generative leap is not decided")
    return int(found.lower)


def _first(value: Any) -> int | None:
    return None if value is None else int(value)


_QUANTITIES: dict[str, Callable[[Target], Any]] = {
    "leap_index": lambda f: int(leap_index(f)),
    "coordinate_leap": lambda f: int(coordinate_leap(f)),
    "isotropic_leap": lambda f: int(isotropic_leap(f)),
    "generative_leap": _generative,
    "dimension": lambda f: f.dimension,
    "degree": lambda f: f.expansion.degree,
}
_LEAPS = {
    "leap_index": "leap_index", "coordinate": "coordinate_leap", "isotropic": "isotropic_leap",
    "generative": "generative_leap", "coordinate_leap": "coordinate_leap",
    "isotropic_leap": "isotropic_leap", "generative_leap": "generative_leap",
}  # fmt: skip
_STAIRCASE: dict[str, Callable[[Any], Any]] = {
    "steps": lambda s: len(s.steps),
    "dimension": lambda s: s.final.dimension,
    "saturates": lambda s: bool(s.saturates),
}
_GRAMMAR = (
    "leaps(f).coordinate, .isotropic, .generative and .leap_index; staircase(f).steps, .dimension "
    "and .saturates; leap_index(f), coordinate_leap(f), isotropic_leap(f), generative_leap(f), "
    "dimension(f) and degree(f), also of sums and products such as f + 2*g; max, min, whole "
    "numbers, + - *, comparisons, and, or, not"
)
_OF_NUMBERS: dict[str, Callable[..., Any]] = {"max": max, "min": min}
_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
}  # fmt: skip
_RELATIONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b, ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b,
}  # fmt: skip


@dataclass(frozen=True)
class TargetStatement:
    """A statement about targets.

    Attributes
    ----------
    variables : tuple of str
        What the targets, and numbers, are called in it.
    tree : expr or None
        Of a text.
    function : callable or None
        Of the variables in order; True or False.
    """

    text: str
    variables: tuple[str, ...]
    tree: ast.expr | None = None
    function: Callable[..., bool] | None = None

    def __str__(self) -> str:
        return self.text

    def latex(self) -> str:
        """Return the text for LaTeX."""
        return rf"\text{{{latex_text(self.text)}}}"

    def holds(self, point: Point) -> bool | None:
        """Tell whether it holds at a point; None if a quantity is not decided.

        Raises
        ------
        ParameterError
            If a function returns neither True nor False.
        """
        try:
            if self.function is None:
                return bool(self._value(self.tree, point))
            found: object = self.function(*(_read(point[name]) for name in self.variables))
        except GiantstepError:
            return None
        if found is None or isinstance(found, bool):
            return found
        if type(found).__name__ in ("bool_", "bool", "BooleanTrue", "BooleanFalse"):
            return bool(found)
        raise ParameterError(f"statement: the function must return True or False, got {found!r}")

    def sides(self, point: Point) -> tuple[str, str]:
        """Return both sides of a comparison at a point, or the truth value and what it should."""
        if isinstance(self.tree, ast.Compare):
            values = [self._value(x, point) for x in (self.tree.left, *self.tree.comparators)]
            return str(values[0]), ", ".join(map(str, values[1:]))
        return str(self.holds(point)), "True"

    def line(self, point: Point) -> str:
        """Return Python that shows the statement at a point."""
        if self.tree is None:
            given = "; ".join(f"{name} = gs.target({point[name]!r})" for name in self.variables)
            return f"import giantstep as gs; {given}"
        return (
            f"import giantstep as gs; print({ast.unparse(_Spelled(point).visit(_copy(self.tree)))})"
        )

    def _value(self, node: ast.expr | None, point: Point) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return Fraction(point[node.id])
        if isinstance(node, ast.Compare):
            sides = [self._value(x, point) for x in (node.left, *node.comparators)]
            return all(
                _RELATIONS[type(op)](a, b)
                for op, a, b in zip(node.ops, sides, sides[1:], strict=False)
            )
        if isinstance(node, ast.BoolOp):
            values = (bool(self._value(x, point)) for x in node.values)
            return all(values) if isinstance(node.op, ast.And) else any(values)
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, point)
            return not value if isinstance(node.op, ast.Not) else -value
        if isinstance(node, ast.BinOp):
            left, right = self._value(node.left, point), self._value(node.right, point)
            return _OPERATIONS[type(node.op)](left, right)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
            f = _read(_written(node.value.args[0], point))
            if node.value.func.id == "leaps":  # type: ignore[attr-defined]
                return _QUANTITIES[_LEAPS[node.attr]](f)
            return _STAIRCASE[node.attr](staircase(f))
        assert isinstance(node, ast.Call)
        name = node.func.id  # type: ignore[attr-defined]
        if name in _OF_NUMBERS:
            return _OF_NUMBERS[name](*(self._value(x, point) for x in node.args))
        return _QUANTITIES[name](_read(_written(node.args[0], point)))


def _read(text: str) -> Target:
    return read_target(text)


def _copy(tree: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(tree), mode="eval").body


def _written(node: ast.expr, point: Point) -> str:
    """Return a sum or product of targets as the text of a target."""

    class Filled(ast.NodeTransformer):
        def visit_Name(inner, name: ast.Name) -> ast.AST:
            return ast.parse(f"({point[name.id]})", mode="eval").body

    return ast.unparse(Filled().visit(_copy(node)))


class _Spelled(ast.NodeTransformer):
    """Writes a statement as Python in public names."""

    def __init__(self, point: Point) -> None:
        self._point = point

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.parse(f"({self._point[node.id]})", mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id  # type: ignore[attr-defined]
        if name in _OF_NUMBERS:
            node.args = [self.visit(x) for x in node.args]
            return node
        text = _written(node.args[0], self._point)
        shown = {
            "dimension": f"gs.target({text!r}).dimension",
            "degree": f"gs.target({text!r}).expansion.degree",
        }.get(name, f"gs.{name}({text!r})")
        return ast.parse(shown, mode="eval").body

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        value = ast.unparse(self.visit(node.value))
        ends = {"steps": f"len({value}.steps)", "dimension": f"{value}.final.dimension"}
        is_staircase = value.startswith("gs.staircase")
        shown = ends.get(node.attr) if is_staircase else None
        return ast.parse(shown or f"{value}.{node.attr}", mode="eval").body


def is_about_targets(over: Mapping[Any, Any], statement: Any) -> bool:
    """Tell whether the quantities are random targets."""
    return any(isinstance(value, TargetFamily) for value in over.values())


def target_statement(
    statement: Any, names: Sequence[str], numbers: Sequence[str] = ()
) -> TargetStatement:
    """Return a statement, a text or a function, about targets and numbers that are named."""
    shown = " and ".join(names)
    if callable(statement):
        if numbers:
            raise ParameterError(
                f"over: {numbers[0]} must be a TargetFamily or the text of a target, for a "
                "statement that is a function of targets"
            )
        return TargetStatement(words_of(statement), tuple(names), function=statement)
    if not isinstance(statement, str):
        raise ParameterError(
            f"statement about {shown} must be a text such as 'leaps(f).coordinate == "
            f"leaps(f).isotropic', or a function of the targets; got {statement!r}\n"
            "  (Python has compared already where == stands outside of a text or function)"
        )
    tree = parsed(statement, "statement")
    targets = [name for name in names if name not in numbers]
    _check(tree, targets, numbers, statement)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for name in names:
        if name not in used:
            raise ParameterError(f"over: {name} does not occur in the statement {statement!r}")
    return TargetStatement(statement.strip(), tuple(names), tree)


def _check(node: ast.AST, targets: Sequence[str], numbers: Sequence[str], text: str) -> None:
    """Refuse what the grammar does not know, before any target is drawn."""
    known, inner = False, list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Constant):
        known = isinstance(node.value, bool | int)
    elif isinstance(node, ast.Name):
        known, inner = node.id in numbers, []
    elif isinstance(node, ast.Compare):
        known = all(type(op) in _RELATIONS for op in node.ops)
        inner = [node.left, *node.comparators]
    elif isinstance(node, ast.BoolOp):
        known, inner = True, list(node.values)
    elif isinstance(node, ast.UnaryOp):
        known, inner = isinstance(node.op, ast.Not | ast.USub), [node.operand]
    elif isinstance(node, ast.BinOp):
        known, inner = type(node.op) in _OPERATIONS, [node.left, node.right]
    elif isinstance(node, ast.Attribute):
        call = _called(node.value, targets, numbers)
        attributes = _LEAPS if call == "leaps" else _STAIRCASE if call == "staircase" else ()
        known, inner = node.attr in attributes, []
    elif isinstance(node, ast.Call):
        known, inner = _called(node, targets, numbers) in _QUANTITIES, []
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _OF_NUMBERS and len(node.args) > 1 and not node.keywords:
            known, inner = True, list(node.args)
    if not known:
        shown = ast.unparse(node) if isinstance(node, ast.expr) else text
        raise ExpressionError(
            f"cannot read statement {shorten(text)!r}: {shorten(shown)!r} is none of\n  {_GRAMMAR}"
            f"\n  with {', '.join(targets)} for f; or give a function of the targets"
        )
    for child in inner:
        _check(child, targets, numbers, text)


def _called(node: ast.AST, targets: Sequence[str], numbers: Sequence[str]) -> str:
    """Return the name of a function that is called with targets alone; else nothing."""
    plain = (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and not node.keywords
        and len(node.args) == 1
        and _is_target(node.args[0], targets, numbers)
    )
    return node.func.id if plain else ""  # type: ignore[attr-defined]


def _is_target(node: ast.expr, targets: Sequence[str], numbers: Sequence[str]) -> bool:
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return type(node.op) in _OPERATIONS and all(
            _is_target(x, targets, numbers) or _is_number(x, numbers) for x in sides
        )
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _is_target(node.operand, targets, numbers)
    return isinstance(node, ast.Name) and node.id in targets


def _is_number(node: ast.expr, numbers: Sequence[str]) -> bool:
    return (isinstance(node, ast.Constant) and type(node.value) is int) or (
        isinstance(node, ast.Name) and node.id in numbers
    )


# ---------------------------------------------------------------------- the search


def examine_targets(
    statement: TargetStatement,
    over: Mapping[str, TargetFamily | Range | str],
    count: int,
    seed: int,
    *,
    store: str | os.PathLike[str] | None,
    progress: bool,
) -> tuple[int, int, Point | None]:
    """Draw targets until there is a counterexample, which is then made as simple as can be.

    Parameters
    ----------
    over : mapping
        By name a family of which targets are drawn, a range of a number, or the text of a target.
    """
    keeper = None
    if store is not None:
        key = {"conjecture": str(statement), "giantstep": __version__}
        keeper = PieceStore(store, key, "target")
    tried = undecided = 0
    try:
        with progress_bar(progress, count, "target") as bar:
            for point in itertools.islice(_points(over, seed), count):
                only = len(over) == 1
                piece = (
                    next(iter(point.values()))
                    if only
                    else "; ".join(f"{name} = {text}" for name, text in point.items())
                )
                holds = keeper.load(piece, lambda c: (c["holds"],)) if keeper else None
                if holds is None:
                    holds = (statement.holds(point),)
                    if keeper is not None:
                        keeper.save(piece, {"holds": holds[0]})
                bar.update()
                if holds[0] is None:
                    undecided += 1
                    continue
                tried += 1
                if not holds[0]:
                    return tried, undecided, _simplified(statement, point, over)
    except KeyboardInterrupt:
        kept = "the same call resumes there" if store is not None else "without a store, none kept"
        raise KeyboardInterrupt(f"after {tried + undecided} of {count} targets; {kept}") from None
    return tried, undecided, None


def _points(over: Mapping[str, TargetFamily | Range | str], seed: int) -> Iterator[Point]:
    """Go through targets and numbers, each from a stream of its own."""
    streams: list[Iterator[str]] = []
    for i, one in enumerate(over.values()):
        if isinstance(one, TargetFamily):
            # Two of the same family are not the same targets.
            streams.append(map(str, replace(one, seed=seed + one.seed + i)))
        elif isinstance(one, Range):
            streams.append(_numbers(one, random.Random(seed + i)))
        else:
            streams.append(itertools.repeat(one))
    for texts in zip(*streams, strict=False):
        yield dict(zip(over, texts, strict=True))


def _numbers(one: Range, generator: random.Random) -> Iterator[str]:
    ends = [x for x, is_open in ((one.low, one.low_open), (one.high, one.high_open)) if not is_open]
    yield from map(str, ends)
    while True:
        share = Fraction(generator.randrange(1, _SHARES), _SHARES)
        yield str(one.low + (one.high - one.low) * share)


def _simplified(
    statement: TargetStatement, point: Point, over: Mapping[str, TargetFamily | Range | str]
) -> Point:
    """Take terms off a counterexample and make its coefficients one, as long as it remains one."""
    current = dict(point)
    for name, one in over.items():
        if isinstance(one, TargetFamily):
            current[name] = _simpler(statement, current, name)
    return current


def _simpler(statement: TargetStatement, point: Point, name: str) -> str:
    expansion = _read(point[name]).expansion
    terms: Terms = {
        alpha: Fraction(int(c.p), int(c.q)) for alpha, c in expansion.he_coefficients().items()
    }
    # Coordinates have a meaning where other targets share them.
    packed = _packed if len(point) == 1 else dict

    def fails(changed: Terms) -> bool:
        return statement.holds({**point, name: target_text(packed(changed))}) is False

    changed = True
    while changed:
        changed = False
        for alpha in list(terms):
            fewer = {k: c for k, c in terms.items() if k != alpha}
            if any(map(any, fewer)) and fails(fewer):
                terms, changed = fewer, True
    # All at once: a direction of several coordinates is one only with all of its coefficients.
    if len(terms) <= _MOST_SIGNS:
        for signs in itertools.product((Fraction(1), Fraction(-1)), repeat=len(terms)):
            plain = dict(zip(terms, signs, strict=True))
            if fails(plain):
                return target_text(packed(plain))
    return target_text(packed(terms))


def _packed(terms: Terms) -> Terms:
    """Leave out coordinates that do not occur."""
    used = [i for i in range(len(next(iter(terms)))) if any(alpha[i] for alpha in terms)]
    return {tuple(alpha[i] for i in used): c for alpha, c in terms.items()}
