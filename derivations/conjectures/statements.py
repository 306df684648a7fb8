"""Statements that can be held against a range of their quantities, and the grammar of their text.

A statement is a relation of two expressions, says that one is monotone in a variable or does not
depend on it, or asks a function of random targets. Text is read by a parser that knows comparisons,
a list of words and the expressions of :mod:`...symbolic.expressions.parser`; nothing is evaluated
as Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy as sp

from ...errors import ExpressionError, ParameterError
from ...pages import shorten
from ...symbolic.expressions.parser import MAX_LENGTH, parse_expression
from ...symbolic.gaussian.expectation import expect
from ..formulas import latex
from ..outputs import ModelOutput, Outputs, bound, parameter

RELATIONS = {"==": "=", "<": "<", "<=": r"\le", ">": ">", ">=": r"\ge"}
"""Relations between two sides, with their LaTeX."""

_OF_SYMPY = {
    sp.Eq: "==",
    sp.StrictLessThan: "<",
    sp.LessThan: "<=",
    sp.StrictGreaterThan: ">",
    sp.GreaterThan: ">=",
}
_AVERAGE = "E_"
_OF_PYTHON = {ast.Eq: "==", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


@dataclass(frozen=True)
class Comparison:
    """Two sides with a relation: "==", "<", "<=", ">" or ">="."""

    left: sp.Expr
    relation: str
    right: sp.Expr

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"

    def latex(self) -> str:
        """Return the formula."""
        return f"{latex(self.left)} {RELATIONS[self.relation]} {latex(self.right)}"

    @property
    def expressions(self) -> tuple[sp.Expr, ...]:
        """What it is about."""
        return self.left, self.right

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables that it names beside those of its expressions."""
        return ()


@dataclass(frozen=True)
class InVariable:
    """What is said of an expression as a function of one variable."""

    quantity: sp.Expr
    variable: str

    @property
    def expressions(self) -> tuple[sp.Expr, ...]:
        """What it is about."""
        return (self.quantity,)

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables that it names beside those of its expressions."""
        return (self.variable,)


@dataclass(frozen=True)
class Monotone(InVariable):
    """An expression increases, or decreases, with a variable; never turns back if not strict."""

    increasing: bool
    strict: bool = False

    def __str__(self) -> str:
        word = "increasing" if self.increasing else "decreasing"
        strict = ", strict=True" if self.strict else ""
        return f"{word}({self.quantity}, {self.variable}{strict})"

    def latex(self) -> str:
        """Return it in words around formulas."""
        word = ("strictly " if self.strict else "") + (
            "increasing" if self.increasing else "decreasing"
        )
        return rf"{latex(self.quantity)} \text{{ {word} in }} {latex(parameter(self.variable))}"


@dataclass(frozen=True)
class Independent(InVariable):
    """An expression does not depend on a variable."""

    def __str__(self) -> str:
        return f"independent({self.quantity}, {self.variable})"

    def latex(self) -> str:
        """Return it in words around formulas."""
        return (
            rf"{latex(self.quantity)} \text{{ independent of }} {latex(parameter(self.variable))}"
        )


@dataclass(frozen=True)
class Together:
    """Several statements at once."""

    parts: tuple[Statement, ...]

    def __str__(self) -> str:
        return " and ".join(f"({part})" for part in self.parts)

    def latex(self) -> str:
        """Return the formulas with "and" between them."""
        return r" \ \text{and}\ ".join(part.latex() for part in self.parts)

    @property
    def expressions(self) -> tuple[sp.Expr, ...]:
        """What it is about."""
        return tuple(expr for part in self.parts for expr in part.expressions)

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables that it names beside those of its expressions."""
        return tuple(name for part in self.parts for name in part.variables)


Relation: TypeAlias = Comparison | Monotone | Independent
Statement: TypeAlias = Comparison | Monotone | Independent | Together


def increasing(quantity: Any, variable: Any, *, strict: bool = False) -> Monotone:
    """State that a quantity does not decrease as a variable grows, all others held fixed.

    Parameters
    ----------
    quantity : Expr
        Such as ``model.outputs["test_error"]``.
    variable : str or Symbol
        A parameter of the model, or a symbol of the expression.
    strict : bool
        Larger values of the variable give larger values of the quantity.
    """
    return Monotone(_expression(quantity), _name(variable), True, strict)


def decreasing(quantity: Any, variable: Any, *, strict: bool = False) -> Monotone:
    """State that a quantity does not increase as a variable grows; see :func:`increasing`."""
    return Monotone(_expression(quantity), _name(variable), False, strict)


def independent(quantity: Any, variable: Any) -> Independent:
    """State that a quantity does not depend on a variable, all others held fixed."""
    return Independent(_expression(quantity), _name(variable))


def positive(quantity: Any) -> Comparison:
    """State that a quantity is larger than zero."""
    return Comparison(_expression(quantity), ">", sp.S.Zero)


def nonnegative(quantity: Any) -> Comparison:
    """State that a quantity is not negative."""
    return Comparison(_expression(quantity), ">=", sp.S.Zero)


def equal(left: Any, right: Any) -> Comparison:
    """State that two quantities are the same; ``==`` compares the expressions in Python."""
    return Comparison(_expression(left), "==", _expression(right))


def _expression(value: Any) -> sp.Expr:
    try:
        expr = sp.sympify(value, strict=True)
    except sp.SympifyError:
        expr = None
    if not isinstance(expr, sp.Expr):
        raise ParameterError(
            f"a quantity must be an expression, such as model.outputs['test_error'], got {value!r}"
        )
    return exact(expr)


def exact(expr: sp.Expr) -> sp.Expr:
    """Return an expression with the decimal numbers that its floats print as."""
    return expr.xreplace({x: sp.Rational(str(float(x))) for x in expr.atoms(sp.Float)})


def _name(variable: Any) -> str:
    if isinstance(variable, sp.Symbol):
        return str(variable.name)
    if isinstance(variable, str) and variable.isidentifier():
        return variable
    raise ParameterError(f"variable must be a name or a symbol, got {variable!r}")


# ---------------------------------------------------------------------- reading


def read_statement(
    statement: Any, names: Sequence[str], outputs: Outputs | None, argument: str = "statement"
) -> Statement:
    """Return a statement from text, a relation of SymPy, or what functions here return.

    A text may hold the variables `names` and the `outputs` of a model. What is decided already is
    refused.
    """
    if isinstance(statement, Comparison | Monotone | Independent | Together):
        return statement
    if isinstance(statement, str):
        return _Reader(statement, names, outputs, argument).read()
    if type(statement) in _OF_SYMPY:
        left, right = map(exact, statement.args)
        return Comparison(left, _OF_SYMPY[type(statement)], right)
    if isinstance(statement, sp.And):
        parts = sorted(statement.args, key=str)
        return Together(tuple(read_statement(x, names, outputs, argument) for x in parts))
    if isinstance(statement, bool | sp.logic.boolalg.BooleanAtom):
        raise ParameterError(
            f"{argument} is {bool(statement)} already: Python's == compares expressions as they "
            "are written, and SymPy decides relations by the assumptions on symbols\n"
            "  give giantstep.equal(left, right), giantstep.positive(left - right), a text such as "
            "'left == right', or a function of the targets"
        )
    raise ParameterError(
        f"{argument} must be a text such as 'risk_trained <= risk_initial', a relation of SymPy, "
        "what giantstep.increasing, decreasing, positive, nonnegative, independent or equal "
        f"returns, or a function of random targets; got {shorten(repr(statement), 60)}"
    )


WORDS: dict[str, Callable[..., Statement]] = {
    "increasing": increasing,
    "decreasing": decreasing,
    "independent": independent,
    "positive": positive,
    "nonnegative": nonnegative,
    "equal": equal,
}
"""What texts may say of expressions, beside comparisons."""


def parsed(text: str, argument: str) -> ast.expr:
    """Return the tree of a text of one line."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"{argument} has {len(text)} characters; at most {MAX_LENGTH} are read"
        )
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(
            f"cannot read {argument} {shorten(text)!r}; write a comparison such as "
            "'risk_trained <= risk_initial', or 'decreasing(improvement, noise_variance)'"
        ) from None


class _Reader:
    """Reads one text."""

    def __init__(
        self, text: str, names: Sequence[str], outputs: Outputs | None, argument: str
    ) -> None:
        self._text, self._argument = text, argument
        self._outputs: Mapping[str, ModelOutput] = {} if outputs is None else outputs
        self._symbols = {name: parameter(name) for name in names}

    def read(self) -> Statement:
        return self._statement(parsed(self._text, self._argument))

    def _statement(self, node: ast.expr) -> Statement:
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            return Together(tuple(map(self._statement, node.values)))
        if isinstance(node, ast.Compare):
            sides = [self._expression(x) for x in (node.left, *node.comparators)]
            parts = []
            for i, operation in enumerate(node.ops):
                if type(operation) not in _OF_PYTHON:
                    raise self._refusal("a comparison is one of ==, <, <=, > and >=")
                parts.append(Comparison(sides[i], _OF_PYTHON[type(operation)], sides[i + 1]))
            return parts[0] if len(parts) == 1 else Together(tuple(parts))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            word = node.func.id
            if word in WORDS:
                return self._said(word, node)
        words = ", ".join(f"{word}(...)" for word in WORDS)
        raise self._refusal(f"it is no statement: write a comparison, or one of {words}")

    def _said(self, word: str, node: ast.Call) -> Statement:
        about = word in ("increasing", "decreasing", "independent")
        wanted = 2 if about or word == "equal" else 1
        options = {}
        for one in node.keywords:
            strict = one.arg == "strict" and isinstance(one.value, ast.Constant)
            if not strict or word not in ("increasing", "decreasing"):
                raise self._refusal(f"{word}(...) has no option {one.arg}")
            options["strict"] = bool(one.value.value)  # type: ignore[attr-defined]
        if len(node.args) != wanted:
            what = "a quantity and a variable" if about else "two sides" if wanted == 2 else "one"
            raise self._refusal(f"{word}(...) takes {what}")
        given: list[Any] = [self._expression(node.args[0])]
        if about:
            if not isinstance(node.args[1], ast.Name):
                raise self._refusal(f"the variable of {word}(...) must be a name")
            given.append(node.args[1].id)
        elif wanted == 2:
            given.append(self._expression(node.args[1]))
        return WORDS[word](*given, **options)

    def _expression(self, node: ast.expr) -> sp.Expr:
        known: dict[str, sp.Expr] = {}

        class Marked(ast.NodeTransformer):
            """Puts names for outputs and averages, which the reader takes as variables."""

            def visit_Subscript(inner, node: ast.Subscript) -> ast.AST:
                head = node.value.id if isinstance(node.value, ast.Name) else ""
                if not head.startswith(_AVERAGE) or not isinstance(node.slice, ast.expr):
                    return inner.generic_visit(node)
                label = f"average{len(known)}"
                known[label] = self._average(head.removeprefix(_AVERAGE), node.slice)
                return ast.Name(label, ast.Load())

            def visit_Call(inner, call: ast.Call) -> ast.AST:
                if isinstance(call.func, ast.Name) and call.func.id in self._outputs:
                    return marked(call.func.id, self._bindings(call))
                return inner.generic_visit(call)

            def visit_Name(inner, name: ast.Name) -> ast.AST:
                if name.id in self._outputs and name.id not in self._symbols:
                    return marked(name.id, {})
                return name

        def marked(name: str, bindings: Mapping[str, sp.Expr]) -> ast.Name:
            label = f"output{len(known)}"
            known[label] = bound(self._outputs[name], bindings)
            return ast.Name(label, ast.Load())

        text = ast.unparse(Marked().visit(node))
        marks = {label: sp.Symbol(label, real=True) for label in known}
        try:
            expr = parse_expression(text, {**self._symbols, **marks}, argument=self._argument)
        except ExpressionError as error:
            raise ExpressionError(f"{error}{self._known()}{_unbound(str(error))}") from None
        return expr.xreplace({marks[label]: value for label, value in known.items()})

    def _average(self, name: str, inside: ast.expr) -> sp.Expr:
        """Read E_z[...], the average over a standard normal variable z."""
        if not name or name in self._symbols or name in self._outputs:
            raise self._refusal(
                f"the variable of an average E_{name}[...] needs a name of its own, as in E_z[z**2]"
            )
        variable = sp.Symbol(name, real=True)
        outer, self._symbols = self._symbols, {**self._symbols, name: variable}
        try:
            return expect(self._expression(inside), variable)
        finally:
            self._symbols = outer

    def _bindings(self, call: ast.Call) -> dict[str, sp.Expr]:
        if call.args or any(one.arg is None for one in call.keywords):
            raise self._refusal("parameters of an output are given by name: risk(alpha=2)")
        output = self._outputs[call.func.id]  # type: ignore[attr-defined]
        for one in call.keywords:
            if one.arg not in output.bindings:
                raise self._refusal(
                    f"{output.name} has no parameter {one.arg}; there are: "
                    f"{', '.join(output.bindings)}"
                )
        return {str(one.arg): self._expression(one.value) for one in call.keywords}

    def _known(self) -> str:
        parts = [f"variables: {', '.join(self._symbols) or 'none; give them in over='}"]
        if self._outputs:
            parts.append(f"outputs of the model: {', '.join(self._outputs)}")
        return "\n  " + "\n  ".join(parts)

    def _refusal(self, why: str) -> ExpressionError:
        return ExpressionError(f"cannot read {self._argument} {shorten(self._text)!r}: {why}")


def _unbound(message: str) -> str:
    if "unknown name" not in message:
        return ""
    return (
        "\n  a quantity needs a range, as in over={'x': (0, 1)} (--over x=0:1), and an output the "
        "model whose it is, of=model (--model)"
    )


def words_of(function: Callable[..., Any]) -> str:
    """Return the first line of the docstring of a function, or its name."""
    said = (function.__doc__ or "").strip().partition("\n")[0]
    name = str(getattr(function, "__name__", function))
    return said or ("a function of the target" if name == "<lambda>" else name)
