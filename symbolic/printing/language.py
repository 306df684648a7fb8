"""What a target language has to say so that solvers can be written in it.

A solver is written once, as :class:`Function` objects whose bodies are text in a small part of
Python, chosen so that C, Julia and mpmath can say the same. A :class:`Language` reads such a body
with :mod:`ast` and writes it in its own syntax; SymPy expressions inside it go to its printer.

The part of Python:

statements
    ``name = value``, ``name += value`` (``-= *= /=``), ``name[i] = value``, ``name[i, k] = value``
    and ``+=`` on elements; ``name = array(5)``, a local array of constant length; ``name = (1.0,
    2.0)``, numbers that are only read; ``for i in
    range(n)``, ``range(first, last)``; ``while``, ``if``/``elif``/``else``, ``break``,
    ``continue``, ``return`` with or without a value; a call of another function; comments on lines
    of their own; ``with attempt():`` around statements that may divide by zero or take the
    logarithm of a negative number: a language that raises an exception then leaves the block,
    others go on with infinities and NaN; ``real_only(a, b)`` inside it, which fails where a
    language has computed complex values.
values
    numbers, ``True``, ``False``, names, ``+ - * /``, comparisons of two values, ``and or not``,
    ``a if test else b``, ``name[i]``, ``name[i, k]``, ``len(name)`` of an array parameter,
    ``abs min max exp log log2 log1p sinh erf erfc ceil floor sqrt isfinite``, ``real`` (a number of
    the target's precision), ``whole`` (an integer, what is behind the point cut off), calls;
    ``part(name, first, count)``, some elements of an array, as an argument of a call.
constants
    ``inf``, ``nan``; ``tolerance``, at which a relative residual is as good as zero; ``stalled``,
    below which a residual that falls no further is rounding; ``resolved``, above which an estimate
    of a quadrature error that falls no further says that an integrand is not seen yet; ``unit``,
    the unit roundoff.
placeholders
    A name that `Function.expressions` lists stands for that SymPy expression.

``max`` and ``min`` drop or keep NaN as their target likes, so bodies test for NaN before. Indices
start at zero.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import EmissionError
from ...one_thread import syntax_tree

if TYPE_CHECKING:
    from .printers import SourcePrinter


class Kind(Enum):
    """Kind of a parameter or local value."""

    REAL = "real number"
    WHOLE = "integer"
    FLAG = "truth value"
    ARRAY = "array that is read"
    OUTPUT = "array that is written"
    TABLE = "array of rows that is read"
    OUTPUT_TABLE = "array of rows that is written"
    INDICES = "array of rows of integers that is read"
    COUNTS = "array of integers"
    RULES = "quadrature rules of a kernel, which its own functions make and read"


@dataclass(frozen=True)
class Parameter:
    """An argument of a function.

    Attributes
    ----------
    name : str
    kind : Kind
    counted : bool
        The function needs the length of this array; a language whose arrays do not know theirs
        adds an argument. Arrays that follow, up to the next counted one, have the same length.
    columns : int
        Of a table: entry (i, k) is number ``columns * i + k``.
    default : float, optional
        Value where callers of the generated file leave it out. Calls in bodies never do.
    """

    name: str
    kind: Kind = Kind.REAL
    counted: bool = False
    columns: int = 0
    default: float | None = None


@dataclass(frozen=True)
class Function:
    """A function in the part of Python that this module describes.

    Attributes
    ----------
    name : str
    parameters : tuple of Parameter
    body : str
    expressions : mapping from str to Expr
        Meaning of the placeholders in `body`.
    returns : Kind, optional
        REAL, WHOLE or FLAG; None for a function that only writes to its arrays.
    documentation : str
        First line what it does; further lines after an empty one.
    fast : bool
        Sums may be reordered and products contracted. NaN and infinities keep their meaning.
    vector : bool
        Some loop calls no function, so that vector instructions are possible. Without any,
        compilers of C gain nothing from another order of sums, which only changes last bits.
    calls : tuple of Function
        Functions that the body calls, defined before it.
    packed : mapping from str to tuple of str
        Array parameters that a language may take as the rows of one array with this name; numba
        is slow to pass dozens of arrays.
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: str
    expressions: Mapping[str, sp.Expr] = field(default_factory=dict)
    returns: Kind | None = None
    documentation: str = ""
    fast: bool = False
    vector: bool = True
    calls: tuple[Function, ...] = ()
    packed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def tree(self) -> ast.Module:
        """The body, for reading."""
        tree: ast.Module = syntax_tree(self.body)
        return tree

    @cached_property
    def local_values(self) -> dict[str, Kind]:
        """Names and kinds of local numbers, loop indices included, local arrays not."""
        known = {p.name: p.kind for p in self.parameters}
        found: dict[str, Kind] = {}
        arrays = self.local_arrays
        calls = {f.name: f.returns for f in self.calls}
        # Twice: a name may be set from one whose kind only a later line decides.
        for _ in range(2):
            for node in ast.walk(self.tree):
                if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                    found[node.target.id] = Kind.WHOLE
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    name = node.targets[0].id
                    if name not in (*known, *arrays) and not isinstance(node.value, ast.Tuple):
                        kind = _kind(node.value, {**known, **found}, calls)
                        before = found.get(name, kind)
                        found[name] = kind if kind == before else Kind.REAL
        return found

    @cached_property
    def local_constants(self) -> dict[str, tuple[float, ...]]:
        """Names and values of local arrays that are only read."""
        return {
            node.targets[0].id: ast.literal_eval(node.value)  # type: ignore[attr-defined]
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
        }

    @cached_property
    def local_arrays(self) -> dict[str, int]:
        """Names and lengths of local arrays."""
        return {
            node.targets[0].id: node.value.args[0].value  # type: ignore[attr-defined]
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Assign) and _is_array(node.value)
        }


def _is_array(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id == "array"
    )


def _kind(value: ast.expr, known: Mapping[str, Kind], calls: Mapping[str, Kind | None]) -> Kind:
    if isinstance(value, ast.Constant):
        if isinstance(value.value, bool):
            return Kind.FLAG
        return Kind.WHOLE if isinstance(value.value, int) else Kind.REAL
    if isinstance(value, ast.Compare | ast.BoolOp):
        return Kind.FLAG
    if isinstance(value, ast.UnaryOp):
        return Kind.FLAG if isinstance(value.op, ast.Not) else _kind(value.operand, known, calls)
    if isinstance(value, ast.Name):
        return known.get(value.id, Kind.REAL)
    if isinstance(value, ast.IfExp):
        kinds = {_kind(branch, known, calls) for branch in (value.body, value.orelse)}
        return kinds.pop() if len(kinds) == 1 else Kind.REAL
    if isinstance(value, ast.BinOp) and not isinstance(value.op, ast.Div):
        kinds = {_kind(value.left, known, calls), _kind(value.right, known, calls)}
        return Kind.WHOLE if kinds == {Kind.WHOLE} else Kind.REAL
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
        whole = known.get(value.value.id) in (Kind.INDICES, Kind.COUNTS)
        return Kind.WHOLE if whole else Kind.REAL
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        if value.func.id in ("len", "ceil", "whole"):
            return Kind.WHOLE
        if value.func.id == "isfinite":
            return Kind.FLAG
        return calls.get(value.func.id) or Kind.REAL
    return Kind.REAL


class Language:
    """Writes functions in the syntax of one target.

    Parameters
    ----------
    printer : SourcePrinter, optional
        Prints the SymPy expressions of functions; those without any need none.

    Attributes
    ----------
    name : str
        Of the target.
    forms : mapping from str to str or None
        How statements are spelled, as texts for :meth:`str.format`: ``comment`` of a text,
        ``assign`` of target, operator and value, ``array`` of a name and a length and ``constants``
        of a name and numbers (None where they are declared at the head), ``for`` of an index,
        first and last + 1, ``while``, ``if`` and ``elif`` of a test, ``else``, ``end`` of what is
        closed, "do" or "if" (None where nothing closes a block), ``statement`` and ``call`` of a
        text, ``return`` of a value, ``conditional`` of a test and two values, ``element`` of an
        array and a place.
    constants : mapping from str to str
        Text of ``inf``, ``nan``, ``tolerance``, ``stalled``, ``resolved``, ``unit``, ``True`` and
        ``False``.
    functions : mapping from str to str
        Names of functions in the target, where they are others; `call` may write them otherwise.
    words : mapping from str to str
        Text of the operators ``and``, ``or`` and ``not``, and of ``!=``, ``break`` and ``continue``
        where it is another.
    reserved : frozenset of str
        Names that mean something in the target; a program's own names are changed to avoid them.
    """

    name: ClassVar[str]
    forms: ClassVar[Mapping[str, str | None]]
    constants: ClassVar[Mapping[str, str]]
    functions: ClassVar[Mapping[str, str]]
    words: ClassVar[Mapping[str, str]] = {"and": "and", "or": "or", "not": "not "}
    reserved: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, printer: SourcePrinter | None = None) -> None:
        self._printer = printer

    @property
    def printer(self) -> SourcePrinter:
        """Prints SymPy expressions."""
        assert self._printer is not None
        return self._printer

    def prints(self, expr: sp.Expr) -> bool:
        """Tell whether the target has all functions of an expression; roots of a program aside."""
        found = {type(f).__name__ for f in expr.atoms(sp.Function) - expr.atoms(AppliedUndef)}
        return found <= set(self.printer.functions)

    # -- what a target decides

    def source(self, function: Function) -> str:
        """Return the text of one function: head, local declarations, ``self.lines(function)``."""
        raise NotImplementedError

    def element(self, array: str, indices: Sequence[str], function: Function) -> str:
        """Return an element of an array or table; `array` and `indices` are texts, from zero."""
        place = indices[0]
        if len(indices) > 1:
            columns = {self.identifier(p.name): p.columns for p in function.parameters}
            place = f"{columns[array]} * ({place}) + {indices[1]}"
        return self.spelled("element", array, place)

    def spelled(self, form: str, *parts: object) -> str:
        """Return a statement, the head of a block or a value."""
        text = self.forms[form]
        assert text is not None
        return text.format(*parts)

    def attempt(self) -> tuple[list[str], list[str]]:
        """Return the lines before and after statements that may fail; none where they go on."""
        return [], []

    def real_only(self, values: Sequence[str]) -> list[str]:
        """Return the lines that fail where a value is complex; none where that cannot be."""
        return []

    def identifier(self, name: str) -> str:
        """Return a name as the target writes it."""
        return name

    def part(self, array: str, first: str, count: str) -> str:
        """Return elements of an array, as an argument of a call."""
        raise EmissionError(f"target {self.name!r} passes no parts of arrays, such as of {array}")

    def length(self, array: str) -> str:
        """Return the length of an array parameter."""
        return f"len({array})"

    def number(self, value: float) -> str:
        """Return a number, an integer as an integer."""
        return repr(value)

    def call(self, name: str, arguments: Sequence[str], function: Function) -> str:
        """Return a call; `name` is one of `functions` or a function that `function` calls."""
        return f"{self.functions.get(name, name)}({', '.join(arguments)})"

    def unit(self, functions: str) -> str:
        """Return definitions of functions as a text that is complete."""
        return functions

    # -- the walk over a body

    def lines(self, function: Function, indent: str = "    ") -> list[str]:
        """Return the statements of a function, without head and declarations."""
        comments = {
            n: text.strip().lstrip("#").strip()
            for n, text in enumerate(function.body.splitlines(), start=1)
            if text.strip().startswith("#")
        }
        return self._block(function.tree.body, function, indent, comments)

    def _block(
        self,
        statements: Sequence[ast.stmt],
        function: Function,
        indent: str,
        comments: dict[int, str],
    ) -> list[str]:
        lines: list[str] = []
        for statement in statements:
            for n in sorted(n for n in comments if n < statement.lineno):
                lines.append(indent + self.spelled("comment", comments.pop(n)))
            lines += self._statement(statement, function, indent, comments)
        return lines

    def _statement(
        self, node: ast.stmt, function: Function, indent: str, comments: dict[int, str]
    ) -> list[str]:
        def value(expr: ast.expr) -> str:
            return self.value(expr, function)

        def inside(body: Sequence[ast.stmt]) -> list[str]:
            return self._block(body, function, indent + "    ", comments)

        def last(block: str) -> list[str]:
            return [] if self.forms["end"] is None else [indent + self.spelled("end", block)]

        if isinstance(node, ast.Assign) and _is_array(node.value):
            assert isinstance(node.targets[0], ast.Name)
            if self.forms["array"] is None:
                return []
            name = node.targets[0].id
            length = function.local_arrays[name]
            return [indent + self.spelled("array", self.identifier(name), length)]
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            numbers = ", ".join(map(value, node.value.elts))
            if self.forms["constants"] is None:
                return []
            return [indent + self.spelled("constants", value(node.targets[0]), numbers)]
        if isinstance(node, ast.Assign):
            return [indent + self.spelled("assign", value(node.targets[0]), "=", value(node.value))]
        if isinstance(node, ast.AugAssign) and type(node.op) in _OPERATORS:
            operator = f"{_OPERATORS[type(node.op)]}="
            parts = (value(node.target), operator, value(node.value))
            return [indent + self.spelled("assign", *parts)]
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            bounds = [value(a) for a in node.iter.args]
            first, stop = bounds if len(bounds) == 2 else ("0", bounds[0])
            head = self.spelled("for", value(node.target), first, stop)
            return [indent + head, *inside(node.body), *last("do")]
        if isinstance(node, ast.While):
            head = self.spelled("while", value(node.test))
            return [indent + head, *inside(node.body), *last("do")]
        if isinstance(node, ast.If):
            lines = [indent + self.spelled("if", value(node.test)), *inside(node.body)]
            rest = node.orelse
            while len(rest) == 1 and isinstance(rest[0], ast.If):
                branch = rest[0]
                lines += [indent + self.spelled("elif", value(branch.test)), *inside(branch.body)]
                rest = branch.orelse
            if rest:
                lines += [indent + self.spelled("else"), *inside(rest)]
            return lines + last("if")
        if isinstance(node, ast.Break | ast.Continue):
            word = type(node).__name__.lower()
            return [indent + self.spelled("statement", self.words.get(word, word))]
        if isinstance(node, ast.With):
            before, after = self.attempt()
            if not before:
                return self._block(node.body, function, indent, comments)
            return [
                *(indent + line for line in before),
                *inside(node.body),
                *(indent + line for line in after),
            ]
        if isinstance(node, ast.Return):
            if node.value is None:
                return [indent + self.spelled("statement", "return")]
            return [indent + self.spelled("return", value(node.value))]
        if isinstance(node, ast.Expr):
            call = node.value
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "real_only":
                return [indent + line for line in self.real_only([value(a) for a in call.args])]
            return [indent + self.spelled("call", value(node.value))]
        raise EmissionError(f"{ast.unparse(node)!r} is no statement that every target can say")

    def value(self, node: ast.expr, function: Function) -> str:
        """Return an expression as text."""
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool):
                return self.constants[str(node.value)]
            assert isinstance(node.value, int | float)
            return self.number(node.value)
        if isinstance(node, ast.Name):
            if node.id in function.expressions:
                return self.printer.print(function.expressions[node.id])
            return self.constants.get(node.id) or self.identifier(node.id)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return self._binary(node, function)
        if isinstance(node, ast.UnaryOp):
            operand = self._operand(node.operand, function)
            if isinstance(node.op, ast.Not):
                return f"{self.words['not']}{operand}"
            return f"-{operand}"
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = (
                self.value(side, function)
                if isinstance(side, ast.BinOp)
                else self._operand(side, function)
                for side in (node.left, node.comparators[0])
            )
            operator = _COMPARISONS[type(node.ops[0])]
            return f"{left} {self.words.get(operator, operator)} {right}"
        if isinstance(node, ast.BoolOp):
            word = self.words["and" if isinstance(node.op, ast.And) else "or"]
            return f" {word} ".join(self._operand(v, function) for v in node.values)
        if isinstance(node, ast.IfExp):
            parts = (node.test, node.body, node.orelse)
            return self.spelled("conditional", *(self._operand(p, function) for p in parts))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            texts = [self.value(i, function) for i in indices]
            return self.element(self.identifier(node.value.id), texts, function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            arguments = [self.value(a, function) for a in node.args]
            if node.func.id == "len":
                return self.length(arguments[0])
            if node.func.id == "part":
                return self.part(*arguments)
            return self.call(node.func.id, arguments, function)
        raise EmissionError(f"{ast.unparse(node)!r} is no value that every target can say")

    def _binary(self, node: ast.BinOp, function: Function) -> str:
        operator = _OPERATORS[type(node.op)]
        # Chains such as a + b + c need no parentheses on the left; everything else gets them.
        same = isinstance(node.left, ast.BinOp) and _rank(node.left) >= _rank(node)
        left = self.value(node.left, function) if same else self._operand(node.left, function)
        high = isinstance(node.right, ast.BinOp) and _rank(node.right) > _rank(node)
        right = self.value(node.right, function) if high else self._operand(node.right, function)
        return f"{left} {operator} {right}"

    def _operand(self, node: ast.expr, function: Function) -> str:
        text = self.value(node, function)
        simple = isinstance(node, ast.Constant | ast.Call | ast.Subscript) or (
            isinstance(node, ast.Name)
            and (node.id not in function.expressions or text.isidentifier())
        )
        return text if simple else f"({text})"


_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


def _rank(node: ast.BinOp) -> int:
    return 1 if isinstance(node.op, ast.Add | ast.Sub) else 2
