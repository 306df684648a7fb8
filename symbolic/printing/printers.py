"""Printers from SymPy expressions to source text, one class a target.

All of them refuse what they do not know by name (:class:`~giantstep.errors.EmissionError`) instead
of printing something that fails later. Special functions stay SymPy nodes until here; each target
chooses its own implementation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.codeprinter import CodePrinter

from ...digits import MOST_DIGITS
from ...errors import EmissionError
from ..expressions.bivariate_normal import BivariateNormalCDF
from . import special_functions
from .spellings import c_identifier, fortran_identifier

# Integers up to here are floating-point numbers.
_LARGEST_EXACT = 2**53
_MPMATH_CONSTANTS = {sp.EulerGamma: "euler", sp.Catalan: "catalan", sp.GoldenRatio: "phi"}
_MOST_CONSTANT_DIGITS = MOST_DIGITS + 100
_CONSTANT_NODES = (sp.Add, sp.Mul, sp.Pow, sp.Function, sp.Number, sp.NumberSymbol)
_DIGITS = 25
_KNOWN_NODES = (
    sp.Add, sp.Mul, sp.Pow, sp.exp, sp.Symbol, sp.Rational, sp.Float, sp.NumberSymbol, sp.Piecewise,
    sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan,
)  # fmt: skip


class SourcePrinter(CodePrinter):
    """Common part: numbers, arithmetic, small integer powers as products, whitelisted functions.

    Parameters
    ----------
    own_functions : mapping from str to str, optional
        Functions that the file defines itself, such as roots of equations: {name of the
        undefined SymPy function: what the text calls}.
    """

    # Not "_sympystr": nodes that know how to print themselves for people are not code.
    printmethod = "_giantstep_source"
    language = "Python"
    target: ClassVar[str] = "python"
    functions: ClassVar[Mapping[str, str]] = {}
    helpers: ClassVar[Mapping[str, str]] = {}
    # Numbers such as sqrt(2)/pi become one float, rounded once; a target with more digits computes.
    rounds_constants: ClassVar[bool] = True
    # Behind real numbers.
    suffix: ClassVar[str] = ""
    _default_settings: ClassVar[dict[str, Any]] = {
        **CodePrinter._default_settings,
        "precision": 17,
    }

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # The array kernels bring functions of their own.
        if "target" in vars(cls) and "functions" not in vars(cls):
            cls.functions = special_functions.names(cls.target)
            cls.helpers = special_functions.helpers(cls.target)

    def __init__(self, own_functions: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.own_functions = dict(own_functions or {})

    def emptyPrinter(self, expr: Any) -> str:
        """Refuse an unknown node by name."""
        name = type(expr).__name__
        known = ", ".join(sorted(self.functions))
        raise EmissionError(
            f"target {self.target!r} has no rule for {name} in {str(expr)[:80]}\n"
            f"  known functions: {known}\n"
            "  a function of your own: giantstep.symbolic.printing.special_functions."
            "register_function"
        )

    def _print(self, expr: Any, **settings: Any) -> str:
        if self.rounds_constants and isinstance(expr, sp.Add | sp.Mul | sp.Pow | sp.Function):
            expr = _with_rounded_constants(expr)
        # CodePrinter knows more nodes than have a meaning in the target, I and oo among them.
        if isinstance(expr, (*_KNOWN_NODES, str, int)):
            return str(super()._print(expr, **settings))
        name = type(expr).__name__
        if isinstance(expr, BivariateNormalCDF):
            return f"({self._print(expr.by_owen())})"
        if isinstance(expr, AppliedUndef) and name in self.own_functions:
            return self._call(self.own_functions[name], expr.args)
        if name not in self.functions or not special_functions.is_known(type(expr)):
            return self.emptyPrinter(expr)
        if isinstance(expr, sp.Heaviside):
            return self._step(expr)
        if isinstance(expr, sp.Max | sp.Min):
            return self._pairwise(self.functions[name], expr)
        return self._call(self.functions[name], expr.args)

    def _call(self, called: str, arguments: tuple[sp.Expr, ...]) -> str:
        return f"{called}({', '.join(self._print(a) for a in arguments)})"

    def _step(self, expr: sp.Heaviside) -> str:
        x, at_zero = expr.args
        if at_zero == sp.S.Half:
            return self._call(self.functions["Heaviside"], (x,))
        # The helper takes 1/2 at zero, as everywhere in this package.
        return self._print(sp.Piecewise((sp.S.One, x > 0), (sp.S.Zero, x < 0), (at_zero, True)))

    def _pairwise(self, called: str, expr: sp.Max | sp.Min) -> str:
        """Max and min of several as calls of two arguments, in an order that does not change."""
        first, *others = sorted(expr.args, key=sp.default_sort_key)
        text = self._print(first)
        for other in others:
            text = f"{called}({text}, {self._print(other)})"
        return text

    _print_not_supported = emptyPrinter

    def _print_exp(self, expr: sp.exp) -> str:
        return self._call(self.functions["exp"], expr.args)

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return str(expr.name)

    _print_Dummy = _print_Symbol

    def _print_Integer(self, expr: sp.Integer) -> str:
        if abs(int(expr)) > _LARGEST_EXACT:
            return self._print_Float(expr)
        return f"{int(expr)}.0{self.suffix}"

    def _print_Rational(self, expr: sp.Rational) -> str:
        if max(abs(int(expr.p)), int(expr.q)) > _LARGEST_EXACT:
            return f"({self._print_Float(expr)})"
        return f"({int(expr.p)}.0{self.suffix} / {int(expr.q)}.0{self.suffix})"

    _print_Half = _print_Rational

    def _print_Float(self, expr: sp.Expr) -> str:
        value = float(expr)
        if not math.isfinite(value):
            raise EmissionError(f"target {self.target!r} has no number as large as {expr.evalf(5)}")
        return f"{value!r}{self.suffix}"

    def _print_NumberSymbol(self, expr: sp.NumberSymbol) -> str:
        return f"{float(expr.evalf(20))!r}{self.suffix}"

    _print_Exp1 = _print_Pi = _print_NumberSymbol

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        base, exponent = expr.as_base_exp()
        inside = self._print(base)
        if not base.is_Symbol and not (base.is_Function and base.func is not sp.Piecewise):
            inside = f"({inside})"
        if exponent == sp.Rational(1, 2):
            return f"{self.functions['sqrt']}({self._print(base)})"
        if exponent == -sp.Rational(1, 2):
            return f"(1.0{self.suffix} / {self.functions['sqrt']}({self._print(base)}))"
        if exponent.is_Integer and 0 < int(exponent) <= 4:
            return "(" + " * ".join([inside] * int(exponent)) + ")"
        if exponent.is_Integer and -4 <= int(exponent) < 0:
            product = " * ".join([inside] * -int(exponent))
            return f"(1.0{self.suffix} / ({product}))"
        if exponent.is_Integer:
            return f"{inside} ** {int(exponent)}"
        return f"{inside} ** ({self._print(exponent)})"

    def _print_Relational(self, expr: sp.core.relational.Relational) -> str:
        return f"({self._print(expr.lhs)} {expr.rel_op} {self._print(expr.rhs)})"

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        text = ""
        for value, condition in expr.args[:-1]:
            text += f"({self._print(value)}) if {self._print(condition)} else "
        return f"({text}({self._print(self._last_branch(expr))}))"

    def _nested(self, expr: sp.Piecewise, form: str, last: str = "{}") -> str:
        """Return cases by a form of condition, value and what holds else."""
        text = last.format(self._print(self._last_branch(expr)))
        for value, condition in reversed(expr.args[:-1]):
            text = form.format(self._print(condition), self._print(value), text)
        return text

    def _last_branch(self, expr: sp.Piecewise) -> sp.Expr:
        last, condition = expr.args[-1]
        if condition != sp.true:
            raise EmissionError(f"Piecewise without a last branch that always holds: {expr}")
        return last

    def print(self, expr: sp.Expr) -> str:
        """Return the source text of one expression."""
        return str(self._print(expr))


class ScalarPrinter(SourcePrinter):
    """Scalar code on the `math` module: the body of a numba kernel and of its plain twin."""

    target = "numba"


class NumpyPrinter(SourcePrinter):
    """Vectorised NumPy code with scipy.special: the tables over the quadrature nodes."""

    target = "numpy"
    # The module that holds arrays and their functions.
    arrays: ClassVar[str] = "np"

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        return self._nested(expr, f"{self.arrays}.where({{}}, {{}}, {{}})")


class CompiledPrinter(SourcePrinter):
    """Languages with ``condition ? value : value`` and an own way to write a general power."""

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        base, exponent = expr.as_base_exp()
        root = exponent.is_Rational and abs(exponent) == sp.S.Half
        if root or (exponent.is_Integer and 0 < abs(int(exponent)) <= 4):
            return super()._print_Pow(expr)
        return self._power(base, exponent)

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> str:
        raise NotImplementedError

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        return self._nested(expr, "({} ? ({}) : {})", "({})")


class MpmathPrinter(SourcePrinter):
    """Arbitrary precision: functions of a local mpmath context named `ctx`."""

    target = "mpmath"
    rounds_constants = False

    def _print_Integer(self, expr: sp.Integer) -> str:
        return str(int(expr))

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        base, exponent = expr.as_base_exp()
        if exponent.is_Integer and not base.is_Symbol:
            # Functions of many digits are dear: a product would compute its base again.
            return f"(({self._print(base)}) ** {int(exponent)})"
        return super()._print_Pow(expr)

    def _print_Rational(self, expr: sp.Rational) -> str:
        return f"(ctx.mpf({int(expr.p)}) / {int(expr.q)})"

    _print_Half = _print_Rational

    def _print_Float(self, expr: sp.Float) -> str:
        return f"ctx.mpf({str(expr)!r})"

    def _print_Pi(self, expr: Any) -> str:
        return "ctx.pi"

    def _print_Exp1(self, expr: Any) -> str:
        return "ctx.e"

    def _print_NumberSymbol(self, expr: sp.NumberSymbol) -> str:
        if expr in _MPMATH_CONSTANTS:
            return f"(+ctx.{_MPMATH_CONSTANTS[expr]})"
        # More digits than may be asked for.
        return f"ctx.mpf({str(expr.evalf(_MOST_CONSTANT_DIGITS))!r})"


def _with_rounded_constants(expr: sp.Expr) -> sp.Expr:
    """Replace an expression in numbers only, or the numeric factor of a product, by a Float."""
    if not expr.free_symbols:
        return _rounded(expr)
    if not expr.is_Mul:
        return expr
    numbers = [a for a in expr.args if not a.free_symbols]
    constant = _rounded(sp.Mul(*numbers))
    if not constant.is_Float:
        return expr
    return sp.Mul(constant, *(a for a in expr.args if a.free_symbols), evaluate=False)


def _rounded(number: sp.Expr) -> sp.Expr:
    """Return a real number as a Float; as it is if it is rational or holds an unknown node."""
    if number.is_Rational or not all(
        isinstance(node, _CONSTANT_NODES) for node in sp.preorder_traversal(number)
    ):
        return number
    value = number.evalf(_DIGITS)
    return value if value.is_Float else number


def helper_definitions(
    printer: type[SourcePrinter] | SourcePrinter, text: str, decorator: str = ""
) -> str:
    """Return the definitions of the helpers that `text` calls, in the printer's language.

    Each comes after those that it calls itself; `decorator` is put before each.
    """
    return "\n\n".join(
        decorator + definition
        for definition in special_functions.called_definitions(printer.helpers, text)
    )


class CPrinter(CompiledPrinter):
    """Doubles throughout; of a case distinction only the case that holds is computed."""

    target = "c"

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return c_identifier(str(expr.name))

    _print_Dummy = _print_Symbol

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> str:
        power = f"{int(exponent)}.0" if exponent.is_Integer else self._print(exponent)
        return f"pow({self._print(base)}, {power})"


class JuliaPrinter(CompiledPrinter):
    """Float64 throughout; ``ifelse`` would compute every case, so cases are ``? :``."""

    target = "julia"

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> str:
        if exponent.is_Integer:
            return f"({self._print(base)})^({int(exponent)})"
        # Base.:^ throws an error for a negative base.
        return f"power({self._print(base)}, {self._print(exponent)})"


class FortranPrinter(CompiledPrinter):
    """Double precision throughout; ``merge`` computes every case."""

    target = "fortran"
    suffix = "_dp"

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return fortran_identifier(str(expr.name))

    _print_Dummy = _print_Symbol

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> str:
        power = f"{int(exponent)}.0_dp" if exponent.is_Integer else self._print(exponent)
        return f"({self._print(base)})**({power})"

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        return self._nested(expr, "merge({1}, {2}, {0})")


class JaxPrinter(NumpyPrinter):
    """Vectorised code of functions that JAX can trace and differentiate."""

    target = "jax"
    arrays: ClassVar[str] = "jnp"


class TorchPrinter(NumpyPrinter):
    """Functions of tensors, whose gradients PyTorch finds."""

    target = "torch"
    arrays: ClassVar[str] = "torch"
