"""Statements about random targets: a function of a target, or a text with a short list of words."""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ... import __version__
from ...errors import ExpressionError, GiantstepError, ParameterError
from ...numeric.networks.run import progress_bar
from ...pages import latex_text, shorten
from ...symbolic.leaps.generative_leap import generative_leap
from ...symbolic.leaps.isotropic_leap import isotropic_leap
from ...symbolic.leaps.leap_index import coordinate_leap, leap_index
from ...symbolic.leaps.staircase import staircase
from ...symbolic.targets.target import Target, target as read_target
from .random_targets import TargetFamily, Terms, target_text
from .statements import parsed, words_of
from .store import PieceStore

_MOST_SIGNS = 6
LABEL = "random targets: "
"""Begins the words for the range of a target."""


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
    "dimension(f) and degree(f); whole numbers, + - *, comparisons, and, or, not"
)
_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
}  # fmt: skip
_RELATIONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b, ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b,
}  # fmt: skip


@dataclass(frozen=True)
class TargetStatement:
    """A statement about a target.

    Attributes
    ----------
    text : str
    variable : str
        What the target is called in it.
    tree : expr or None
        Of a text.
    function : callable or None
        Of a target; True or False.
    """

    text: str
    variable: str
    tree: ast.expr | None = None
    function: Callable[[Target], bool] | None = None

    def __str__(self) -> str:
        return self.text

    def latex(self) -> str:
        """Return the text for LaTeX."""
        return rf"\text{{{latex_text(self.text)}}}"

    def holds(self, text: str) -> bool | None:
        """Tell whether it holds for a target; None if a quantity is not decided.

        Raises
        ------
        ParameterError
            If a function returns neither True nor False.
        """
        f = read_target(text)
        try:
            if self.function is None:
                return bool(self._value(self.tree, f))
            found: object = self.function(f)
        except GiantstepError:
            return None
        if found is None or isinstance(found, bool):
            return found
        if type(found).__name__ in ("bool_", "bool", "BooleanTrue", "BooleanFalse"):
            return bool(found)
        raise ParameterError(f"statement: the function must return True or False, got {found!r}")

    def sides(self, text: str) -> tuple[str, str]:
        """Return both sides of a comparison at a target, or the truth value and what it should."""
        if isinstance(self.tree, ast.Compare):
            f = read_target(text)
            values = [self._value(x, f) for x in (self.tree.left, *self.tree.comparators)]
            return str(values[0]), ", ".join(map(str, values[1:]))
        return str(self.holds(text)), "True"

    def line(self, text: str) -> str:
        """Return Python that shows the statement at a target."""
        if self.function is not None:
            return f"import giantstep as gs; {self.variable} = gs.target({text!r})"
        name = self.variable
        shown = self.text
        for known in ("leaps", "staircase", "leap_index", "coordinate_leap", "isotropic_leap",
                      "generative_leap"):  # fmt: skip
            shown = shown.replace(f"{known}({name})", f"gs.{known}({name})")
        for known, own in (("dimension", "dimension"), ("degree", "expansion.degree")):
            shown = shown.replace(f"{known}({name})", f"{name}.{own}")
        shown = shown.replace(").steps", ").steps.__len__()").replace(
            ").dimension", ").final.dimension"
        )
        return f"import giantstep as gs; {name} = gs.target({text!r}); print({shown})"

    def _value(self, node: ast.expr | None, f: Target) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Compare):
            sides = [self._value(x, f) for x in (node.left, *node.comparators)]
            return all(
                _RELATIONS[type(op)](a, b)
                for op, a, b in zip(node.ops, sides, sides[1:], strict=False)
            )
        if isinstance(node, ast.BoolOp):
            values = (bool(self._value(x, f)) for x in node.values)
            return all(values) if isinstance(node.op, ast.And) else any(values)
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, f)
            return not value if isinstance(node.op, ast.Not) else -value
        if isinstance(node, ast.BinOp):
            return _OPERATIONS[type(node.op)](self._value(node.left, f), self._value(node.right, f))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
            if node.value.func.id == "leaps":  # type: ignore[attr-defined]
                return _QUANTITIES[_LEAPS[node.attr]](f)
            return _STAIRCASE[node.attr](staircase(f))
        assert isinstance(node, ast.Call)
        return _QUANTITIES[node.func.id](f)  # type: ignore[attr-defined]


def is_about_targets(over: Mapping[Any, Any], statement: Any) -> bool:
    """Tell whether the quantities are random targets."""
    return any(isinstance(value, TargetFamily) for value in over.values())


def target_statement(statement: Any, names: Sequence[str]) -> TargetStatement:
    """Return a statement about the one target that is named.

    Raises
    ------
    ParameterError
        If there are several names, or it is neither a text nor a function.
    ExpressionError
        If a text cannot be read.
    """
    if len(names) != 1:
        raise ParameterError(
            "over: a statement about random targets has one quantity, the target; got "
            f"{', '.join(names)}"
        )
    (name,) = names
    if callable(statement):
        return TargetStatement(words_of(statement), name, function=statement)
    if not isinstance(statement, str):
        raise ParameterError(
            "statement about a target must be a text such as 'leaps(f).coordinate == "
            f"leaps(f).isotropic', or a function of the target; got {statement!r}\n"
            "  (Python has compared already where == stands outside of a text or function)"
        )
    tree = parsed(statement, "statement")
    _check(tree, name, statement)
    return TargetStatement(statement.strip(), name, tree)


def _check(node: ast.AST, name: str, text: str) -> None:
    """Refuse what the grammar does not know, before any target is drawn."""
    known, inner = False, list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Constant):
        known = isinstance(node.value, bool | int)
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
        call = node.value
        called = _called(call, name)
        known = node.attr in {"leaps": [*_LEAPS], "staircase": [*_STAIRCASE]}.get(called, [])
        inner = []
    elif isinstance(node, ast.Call):
        known, inner = _called(node, name) in _QUANTITIES, []
    if not known:
        shown = ast.unparse(node) if isinstance(node, ast.expr) else text
        raise ExpressionError(
            f"cannot read statement {shorten(text)!r}: {shorten(shown)!r} is none of\n  {_GRAMMAR}"
            f"\n  with {name} for f; or give a function of the target"
        )
    for child in inner:
        _check(child, name, text)


def _called(node: ast.AST, name: str) -> str:
    """Return the name of a function that is called with the target alone; else nothing."""
    plain = (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and not node.keywords
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id == name
    )
    return node.func.id if plain else ""  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- the search


def examine_targets(
    statement: TargetStatement,
    family: TargetFamily,
    count: int,
    seed: int,
    *,
    store: str | os.PathLike[str] | None,
    progress: bool,
) -> tuple[int, int, str | None]:
    """Draw targets until one is a counterexample, which is then made as simple as can be.

    Returns
    -------
    tried, undecided : int
    counterexample : str or None
    """
    family = replace(family, seed=seed) if seed else family
    keeper = None
    if store is not None:
        key = {"conjecture": str(statement), "giantstep": __version__}
        keeper = PieceStore(store, key, "target")
    tried = undecided = 0
    try:
        with progress_bar(progress, count, "target") as bar:
            for f in itertools.islice(family, count):
                text = str(f)
                holds = keeper.load(text, lambda c: (c["holds"],)) if keeper else None
                if holds is None:
                    holds = (statement.holds(text),)
                    if keeper is not None:
                        keeper.save(text, {"holds": holds[0]})
                bar.update()
                if holds[0] is None:
                    undecided += 1
                    continue
                tried += 1
                if not holds[0]:
                    return tried, undecided, _simplified(statement, f)
    except KeyboardInterrupt:
        kept = "the same call resumes there" if store is not None else "without a store, none kept"
        raise KeyboardInterrupt(f"after {tried + undecided} of {count} targets; {kept}") from None
    return tried, undecided, None


def _simplified(statement: TargetStatement, f: Target) -> str:
    """Take terms off a counterexample and make its coefficients one, as long as it remains one."""
    terms: Terms = {
        alpha: Fraction(int(c.p), int(c.q)) for alpha, c in f.expansion.he_coefficients().items()
    }
    changed = True
    while changed:
        changed = False
        for alpha in list(terms):
            fewer = {k: c for k, c in terms.items() if k != alpha}
            if any(map(any, fewer)) and _fails(statement, fewer):
                terms, changed = fewer, True
    # All at once: a direction of several coordinates is one only with all of its coefficients.
    if len(terms) <= _MOST_SIGNS:
        for signs in itertools.product((Fraction(1), Fraction(-1)), repeat=len(terms)):
            plain = dict(zip(terms, signs, strict=True))
            if _fails(statement, plain):
                return target_text(_packed(plain))
    return target_text(_packed(terms))


def _fails(statement: TargetStatement, terms: Terms) -> bool:
    return statement.holds(target_text(_packed(terms))) is False


def _packed(terms: Terms) -> Terms:
    """Leave out coordinates that do not occur."""
    used = [i for i in range(len(next(iter(terms)))) if any(alpha[i] for alpha in terms)]
    return {tuple(alpha[i] for i in used): c for alpha, c in terms.items()}
