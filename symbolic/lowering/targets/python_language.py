"""Python as a language of scalar functions: compiled by numba, plain, or on an mpmath context."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Mapping, Sequence

from ....errors import EmissionError
from ...printing.printers import MpmathPrinter, NumpyPrinter, ScalarPrinter, SourcePrinter
from .language import Function, Language

_MODULES = ("math", "np", "numpy", "njit", "prange", "numba", "scipy", "mpmath", "ctx")


class PythonLanguage(Language):
    """Plain Python on floats.

    Parameters
    ----------
    own_functions : mapping from str to str, optional
        Functions that expressions call and that the file defines: the roots of a program.
    """

    name = "python"
    constants: Mapping[str, str] = {
        "inf": "math.inf",
        "nan": "math.nan",
        "tolerance": "2e-15",
        "stalled": "1e-10",
        "unit": "2.220446049250313e-16",
        "True": "True",
        "False": "False",
    }
    functions: Mapping[str, str] = {
        "exp": "math.exp",
        "log": "math.log",
        "log2": "math.log2",
        "ceil": "math.ceil",
        "sqrt": "math.sqrt",
        "isfinite": "math.isfinite",
        "real": "float",
    }
    words: Mapping[str, str] = {"and": "and", "or": "or", "not": "not "}
    reserved = frozenset([*keyword.kwlist, *dir(builtins), *_MODULES])
    printer_class: type[SourcePrinter] = ScalarPrinter

    def __init__(self, own_functions: Mapping[str, str] | None = None) -> None:
        self.printer = self.printer_class(own_functions)

    def source(self, function: Function) -> str:
        defaults = {p.name: p.default for p in function.parameters if p.default is not None}
        parameters = [
            f"{name}={self.number(defaults[name])}" if name in defaults else name
            for name in argument_names(function)
        ]
        rows = [
            f"    {name} = {array}[{k}]"
            for array, names in function.packed.items()
            for k, name in enumerate(names)
        ]
        lines = [
            *self.decorators(function),
            f"def {function.name}({', '.join(parameters)}):",
            *_docstring(function.documentation),
            *rows,
            *self.lines(function),
        ]
        return "\n".join(lines) + "\n"

    def decorators(self, function: Function) -> list[str]:
        """Return the lines before ``def``."""
        return []

    def comment(self, text: str) -> str:
        return f"# {text}"

    def assign(self, target: str, operator: str, value: str) -> str:
        return f"{target} {operator} {value}"

    def local_array(self, name: str, length: int) -> str:
        # Lists are faster than small NumPy arrays.
        return f"{name} = [0.0] * {length}"

    def for_head(self, index: str, first: str, last: str) -> str:
        return f"for {index} in range({last if first == '0' else f'{first}, {last}'}):"

    def while_head(self, test: str) -> str:
        return f"while {test}:"

    def if_head(self, test: str) -> str:
        return f"if {test}:"

    def elif_head(self, test: str) -> str:
        return f"elif {test}:"

    def else_head(self) -> str:
        return "else:"

    def end(self) -> None:
        return None

    def statement(self, text: str) -> str:
        return text

    def element(self, array: str, indices: Sequence[str], function: Function) -> str:
        return f"{array}[{', '.join(indices)}]"

    def conditional(self, test: str, value: str, otherwise: str) -> str:
        return f"{value} if {test} else {otherwise}"

    def attempt(self) -> tuple[list[str], list[str]]:
        # Complex numbers, from roots of negative ones, raise TypeError where they are compared.
        return ["try:"], ["except (ArithmeticError, ValueError, TypeError):", "    pass"]

    def real_only(self, values: Sequence[str]) -> list[str]:
        # A negative number to a fractional power is complex in Python.
        kinds = ", ".join(f"type({value})" for value in values)
        return [f"if complex in ({kinds},):", '    raise ArithmeticError("complex")']


class NumbaLanguage(PythonLanguage):
    """The same text for numba, which computes with infinities and NaN instead of exceptions."""

    name = "numba"

    def decorators(self, function: Function) -> list[str]:
        return ["@njit(fastmath=_FAST, **_FLAGS)" if function.fast else "@njit(**_FLAGS)"]

    def local_array(self, name: str, length: int) -> str:
        return f"{name} = np.empty({length})"

    def attempt(self) -> tuple[list[str], list[str]]:
        return [], []

    def real_only(self, values: Sequence[str]) -> list[str]:
        return []


class ArrayLanguage(PythonLanguage):
    """NumPy, for functions of assignments and one result: each number may be an array."""

    name = "arrays"
    printer_class = NumpyPrinter
    constants: Mapping[str, str] = {**PythonLanguage.constants, "inf": "np.inf", "nan": "np.nan"}
    functions: Mapping[str, str] = {
        "abs": "np.abs",
        "min": "np.minimum",
        "max": "np.maximum",
        "exp": "np.exp",
        "log": "np.log",
        "log2": "np.log2",
        "ceil": "np.ceil",
        "sqrt": "np.sqrt",
        "isfinite": "np.isfinite",
    }
    words: Mapping[str, str] = {"and": "&", "or": "|", "not": "~"}

    def conditional(self, test: str, value: str, otherwise: str) -> str:
        return f"np.where({test}, {value}, {otherwise})"

    def for_head(self, index: str, first: str, last: str) -> str:
        raise EmissionError("rows of an array end loops in different rounds: write one value")

    def while_head(self, test: str) -> str:
        raise EmissionError("rows of an array end loops in different rounds: write one value")

    def if_head(self, test: str) -> str:
        raise EmissionError("rows of an array take different branches: write `a if test else b`")


class MpmathLanguage(PythonLanguage):
    """Python on the numbers of an mpmath context named ``ctx``."""

    name = "mpmath"
    constants: Mapping[str, str] = {
        **PythonLanguage.constants,
        "inf": "ctx.inf",
        "nan": "ctx.nan",
        "tolerance": "1024 * ctx.eps",
        # Far below what any iteration stops at for another reason, and above rounding.
        "stalled": "ctx.eps ** 0.625",
        "unit": "ctx.eps",
    }
    functions: Mapping[str, str] = {
        "exp": "ctx.exp",
        "log": "ctx.log",
        "sqrt": "ctx.sqrt",
        "isfinite": "ctx.isfinite",
        "real": "ctx.mpf",
    }
    printer_class = MpmathPrinter

    def number(self, value: float) -> str:
        if isinstance(value, int):
            return repr(value)
        return {0.0: "ctx.zero", 1.0: "ctx.one"}.get(value, f"ctx.mpf({value!r})")

    def local_array(self, name: str, length: int) -> str:
        return f"{name} = [ctx.zero] * {length}"

    def real_only(self, values: Sequence[str]) -> list[str]:
        # The logarithm of a negative number is complex here.
        kinds = ", ".join(f"type({value})" for value in values)
        return [f"if ctx.mpc in ({kinds},):", '    raise ArithmeticError("complex")']


def argument_names(function: Function) -> list[str]:
    """Return the arguments of a function in Python, where arrays come packed."""
    array_of = {name: array for array, names in function.packed.items() for name in names}
    return list(dict.fromkeys(array_of.get(p.name, p.name) for p in function.parameters))


def _docstring(text: str) -> list[str]:
    if not text:
        return []
    first, *rest = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').splitlines()
    if not rest:
        return [f'    """{first}"""']
    return [f'    """{first}', *(f"    {line}" if line else "" for line in rest), '    """']
