"""Printers from SymPy expressions to source text, one class a target.

All of them refuse what they do not know by name (:class:`~giantstep.errors.EmissionError`) instead
of printing something that fails later. Special functions stay SymPy nodes until here; each target
chooses its own implementation.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import sympy as sp
from sympy.printing.codeprinter import CodePrinter

from ...errors import EmissionError

# Integers up to here are floating-point numbers.
_LARGEST_EXACT = 2**53
_KNOWN_NODES = (
    sp.Add, sp.Mul, sp.Pow, sp.exp, sp.Symbol, sp.Rational, sp.Float, sp.NumberSymbol, sp.Piecewise,
    sp.StrictLessThan, sp.LessThan, sp.StrictGreaterThan, sp.GreaterThan,
)  # fmt: skip


class SourcePrinter(CodePrinter):
    """Common part: numbers, arithmetic, small integer powers as products, whitelisted functions."""

    # Not "_sympystr": nodes that know how to print themselves for people are not code.
    printmethod = "_giantstep_source"
    language = "Python"
    target: ClassVar[str] = "python"
    functions: ClassVar[dict[str, str]] = {}
    constants: ClassVar[dict[str, str]] = {}
    _default_settings: ClassVar[dict[str, Any]] = {
        **CodePrinter._default_settings,
        "precision": 17,
    }

    def emptyPrinter(self, expr: Any) -> str:
        """Refuse an unknown node by name."""
        name = type(expr).__name__
        known = ", ".join(sorted(self.functions))
        raise EmissionError(
            f"target {self.target!r} has no rule for {name} in {str(expr)[:80]}; "
            f"known functions: {known}"
        )

    def _print(self, expr: Any, **settings: Any) -> str:
        # CodePrinter knows more nodes than have a meaning in the target, I and oo among them.
        known = isinstance(expr, (*_KNOWN_NODES, str, int))
        if not known and type(expr).__name__ not in self.functions:
            return self.emptyPrinter(expr)
        return str(super()._print(expr, **settings))

    def _print_Function(self, expr: sp.Function) -> str:
        name = type(expr).__name__
        arguments = ", ".join(self._print(a) for a in expr.args)
        return f"{self.functions[name]}({arguments})"

    _print_not_supported = emptyPrinter

    def _print_Heaviside(self, expr: sp.Heaviside) -> str:
        return f"{self.functions['Heaviside']}({self._print(expr.args[0])})"

    def _print_exp(self, expr: sp.exp) -> str:
        return f"{self.functions['exp']}({self._print(expr.args[0])})"

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return str(expr.name)

    _print_Dummy = _print_Symbol

    def _print_Integer(self, expr: sp.Integer) -> str:
        if abs(int(expr)) > _LARGEST_EXACT:
            return self._print_Float(expr)
        return f"{int(expr)}.0"

    def _print_Rational(self, expr: sp.Rational) -> str:
        if max(abs(int(expr.p)), int(expr.q)) > _LARGEST_EXACT:
            return f"({self._print_Float(expr)})"
        return f"({int(expr.p)}.0 / {int(expr.q)}.0)"

    _print_Half = _print_Rational

    def _print_Float(self, expr: sp.Expr) -> str:
        value = float(expr)
        if not math.isfinite(value):
            raise EmissionError(f"target {self.target!r} has no number as large as {expr.evalf(5)}")
        return repr(value)

    def _print_NumberSymbol(self, expr: sp.NumberSymbol) -> str:
        return repr(float(expr.evalf(20)))

    _print_Exp1 = _print_Pi = _print_NumberSymbol

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        base, exponent = expr.as_base_exp()
        inside = self._print(base)
        if not base.is_Symbol and not (base.is_Function and base.func is not sp.Piecewise):
            inside = f"({inside})"
        if exponent == sp.Rational(1, 2):
            return f"{self.functions['sqrt']}({self._print(base)})"
        if exponent == -sp.Rational(1, 2):
            return f"(1.0 / {self.functions['sqrt']}({self._print(base)}))"
        if exponent.is_Integer and 0 < int(exponent) <= 4:
            return "(" + " * ".join([inside] * int(exponent)) + ")"
        if exponent.is_Integer and -4 <= int(exponent) < 0:
            return "(1.0 / (" + " * ".join([inside] * -int(exponent)) + "))"
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
    functions: ClassVar[dict[str, str]] = {
        "sqrt": "math.sqrt",
        "exp": "math.exp",
        "log": "math.log",
        "sin": "math.sin",
        "cos": "math.cos",
        "tanh": "math.tanh",
        "erf": "math.erf",
        "erfc": "math.erfc",
        "atan": "math.atan",
        "Abs": "abs",
    }


class NumpyPrinter(SourcePrinter):
    """Vectorised NumPy code with scipy.special: the tables over the quadrature nodes."""

    target = "numpy"
    functions: ClassVar[dict[str, str]] = {
        "sqrt": "np.sqrt",
        "exp": "np.exp",
        "log": "np.log",
        "sin": "np.sin",
        "cos": "np.cos",
        "tan": "np.tan",
        "tanh": "np.tanh",
        "sinh": "np.sinh",
        "cosh": "np.cosh",
        "sech": "sech",
        "atan": "np.arctan",
        "asinh": "np.arcsinh",
        "Abs": "np.abs",
        "sign": "np.sign",
        "relu": "relu",
        "sigmoid": "sigmoid",
        "softplus": "softplus",
        "Heaviside": "step",
        "erf": "scipy.special.erf",
        "erfc": "scipy.special.erfc",
        "OwenT": "scipy.special.owens_t",
    }
    # Definitions that a self-contained file needs when the name on the left occurs in it.
    helpers: ClassVar[dict[str, str]] = {
        "relu": "def relu(x):\n    return np.maximum(x, 0.0)\n",
        "step": "def step(x):\n    return np.heaviside(x, 0.5)\n",
        "sigmoid": (
            "def sigmoid(x):\n"
            "    # exp of a non-positive number on both sides: no overflow\n"
            "    e = np.exp(-np.abs(x))\n"
            "    return np.where(x >= 0.0, 1.0, e) / (1.0 + e)\n"
        ),
        "softplus": "def softplus(x):\n    return np.logaddexp(0.0, x)\n",
        "sech": (
            "def sech(x):\n"
            "    # cosh overflows from 711 on\n"
            "    e = np.exp(-np.abs(x))\n"
            "    return 2.0 * e / (1.0 + e * e)\n"
        ),
    }

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        text = self._print(self._last_branch(expr))
        for value, condition in reversed(expr.args[:-1]):
            text = f"np.where({self._print(condition)}, {self._print(value)}, {text})"
        return text


class MpmathPrinter(SourcePrinter):
    """Arbitrary precision: functions of a local mpmath context named `ctx`."""

    target = "mpmath"
    functions: ClassVar[dict[str, str]] = {
        name: f"ctx.{name}"
        for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "atan")
    } | {
        "asin": "ctx.asin",
        "asinh": "ctx.asinh",
        "sech": "ctx.sech",
        "erf": "ctx.erf",
        "erfc": "ctx.erfc",
        "Abs": "abs",
        "sign": "ctx.sign",
        "relu": "relu",
        "sigmoid": "sigmoid",
        "softplus": "softplus",
        "Heaviside": "step",
        "OwenT": "owen_t",
    }
    helpers: ClassVar[dict[str, str]] = {
        "relu": "def relu(x):\n    return x if x > 0 else ctx.zero\n",
        "step": (
            "def step(x):\n    return ctx.one if x > 0 else (ctx.zero if x < 0 else ctx.one / 2)\n"
        ),
        "sigmoid": "def sigmoid(x):\n    return 1 / (1 + ctx.exp(-x))\n",
        "softplus": (
            "def softplus(x):\n"
            "    return (x if x > 0 else ctx.zero) + ctx.log1p(ctx.exp(-abs(x)))\n"
        ),
        "owen_t": (
            "def owen_t(h, a):\n"
            "    if h == 0:\n"
            "        return ctx.atan(a) / (2 * ctx.pi)\n"
            "    weight = lambda x: ctx.exp(-h * h * (1 + x * x) / 2) / (1 + x * x)\n"
            '    return ctx.quad(weight, [0, a], method="gauss-legendre") / (2 * ctx.pi)\n'
        ),
    }

    def _print_Integer(self, expr: sp.Integer) -> str:
        return str(int(expr))

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
        return f"ctx.mpf({str(expr.evalf(200))!r})"


def helper_definitions(printer: type[NumpyPrinter] | type[MpmathPrinter], body: str) -> str:
    """Return the definitions of the helpers that occur in `body`, in the printer's language."""
    needed = [code for name, code in printer.helpers.items() if f"{name}(" in body]
    return "\n\n".join(needed)
