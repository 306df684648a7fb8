"""Languages of scalar functions: C99, Julia, Fortran; Python: plain, numba, arrays, mpmath."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import textwrap
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import ClassVar

from ...errors import EmissionError
from .language import Function, Kind, Language

# Functions that languages have under one name.
LIBRARY = ("exp", "log", "log2", "log1p", "sqrt", "sinh", "floor", "erf", "erfc")

_DOUBLES = {
    "tolerance": "2e-15", "stalled": "1e-10", "resolved": "1e-9", "unit": "2.220446049250313e-16",
}  # fmt: skip

_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while _Bool _Complex _Imaginary asm typeof bool true false "
    "nullptr alignas alignof constexpr static_assert thread_local"
).split()
# A local variable of these names would hide what the code calls, or is a macro.
_LIBRARY = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 "
    "fabs fdim floor fma fmax fmin fmod frexp hypot ilogb isfinite isinf isnan isnormal isgreater "
    "isless isunordered fpclassify signbit ldexp lgamma llrint llround log log10 log1p log2 logb "
    "lrint lround modf nan nearbyint nextafter pow remainder remquo rint round scalbn sin sinh "
    "sqrt tan tanh tgamma trunc NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL FP_NAN FP_ZERO "
    "FP_INFINITE FP_NORMAL FP_SUBNORMAL "
    "NULL size_t ptrdiff_t wchar_t malloc calloc realloc free abort exit abs labs div atof memcpy "
    "memset memmove strlen linux unix errno I offsetof main"
).split()

_TYPES = {
    Kind.REAL: "double ",
    Kind.WHOLE: "ptrdiff_t ",
    Kind.FLAG: "int ",
    Kind.ARRAY: "const double *",
    Kind.OUTPUT: "double *",
    Kind.TABLE: "const double *",
    Kind.OUTPUT_TABLE: "double *",
    Kind.INDICES: "const ptrdiff_t *",
    Kind.COUNTS: "ptrdiff_t *",
    Kind.RULES: "rule_set *",
}

# Sums over nodes need reordering to use vector instructions; NaN and infinities keep their
# meaning. Compilers that know neither pragma are right, only slower.
_FAST_BEGIN = """#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("associative-math", "no-signed-zeros", "no-trapping-math", \\
                     "reciprocal-math", "fp-contract=fast", "no-math-errno")
#endif
"""
_FAST_INSIDE = """#if defined(__clang__)
#pragma clang fp reassociate(on) contract(fast)
#endif"""
_FAST_END = """#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
"""


def c_identifier(name: str) -> str:
    """Return a name as C can have it; different names stay different.

    Examples
    --------
    >>> c_identifier("alpha"), c_identifier("double"), c_identifier("double_")
    ('alpha', 'double_', 'double__')
    """
    name = "".join(x if x.isascii() else f"u{ord(x):04x}" for x in name)
    return f"{name}_" if name.rstrip("_") in CLanguage.reserved else name


class _Part(str):
    """A pointer into an array that knows how many elements are meant."""

    elements = ""


class CLanguage(Language):
    """Functions are static; arrays are pointers, and those that are counted come with a length."""

    name = "c"
    forms: ClassVar[Mapping[str, str | None]] = {
        "comment": "/* {} */",
        "assign": "{} {} {};",
        "array": None,
        "constants": "static const double {}[] = {{{}}};",
        "for": "for ({0} = {1}; {0} < {2}; {0}++) {{",
        "while": "while ({}) {{",
        "if": "if ({}) {{",
        "elif": "}} else if ({}) {{",
        "else": "}} else {{",
        "end": "}}",
        "statement": "{};",
        "call": "{};",
        "return": "return {};",
        "conditional": "({} ? {} : {})",
        "element": "{}[{}]",
    }
    constants: ClassVar[Mapping[str, str]] = {
        **_DOUBLES,
        "inf": "INFINITY",
        "nan": "NAN",
        "True": "1",
        "False": "0",
    }
    functions: ClassVar[Mapping[str, str]] = {
        **{name: name for name in LIBRARY},
        "abs": "fabs",
        "min": "smaller",
        "max": "larger",
        "ceil": "(ptrdiff_t)ceil",
        "whole": "(ptrdiff_t)",
        "isfinite": "isfinite",
        "real": "(double)",
    }
    words: ClassVar[Mapping[str, str]] = {"and": "&&", "or": "||", "not": "!"}
    reserved = frozenset([*_KEYWORDS, *_LIBRARY])

    def unit(self, functions: str) -> str:
        return f"#include <math.h>\n#include <stddef.h>\n\n{functions}"

    def source(self, function: Function) -> str:
        head = f"static {_returned(function)}{function.name}({self._parameters(function)})"
        lines = [*_comment(function.documentation), *wrapped(head), "{"]
        lines += [_FAST_INSIDE] if function.fast and function.vector else []
        for kind in (Kind.REAL, Kind.WHOLE, Kind.FLAG):
            names = [n for n, k in function.local_values.items() if k is kind]
            zero = "0.0" if kind is Kind.REAL else "0"
            declared = ", ".join(f"{self.identifier(n)} = {zero}" for n in names)
            if names:
                lines += wrapped(f"    {_TYPES[kind]}{declared};", "        ")
        for name, length in function.local_arrays.items():
            lines.append(f"    double {self.identifier(name)}[{length}];")
        # Warnings about arguments that these equations do not need would be errors to some.
        lines += [f"    (void){self.identifier(n)};" for n in _unused(function)]
        for line in self.lines(function):
            indent = line[: len(line) - len(line.lstrip())]
            lines += [line] if len(line) <= 100 else wrapped(line, f"{indent}    ")
        text = "\n".join([*lines, "}"]) + "\n"
        fast = function.fast and function.vector
        return f"{_FAST_BEGIN}{text}{_FAST_END}" if fast else text

    def _parameters(self, function: Function) -> str:
        texts = []
        for p in function.parameters:
            texts.append(f"{_TYPES[p.kind]}{self.identifier(p.name)}")
            if p.counted:
                texts.append(f"ptrdiff_t {self.length(self.identifier(p.name))}")
        return ", ".join(texts) or "void"

    def identifier(self, name: str) -> str:
        return c_identifier(name)

    def part(self, array: str, first: str, count: str) -> str:
        found = _Part(f"{array} + {first}")
        found.elements = count
        return found

    def length(self, array: str) -> str:
        return array.elements if isinstance(array, _Part) else f"{array}_length"

    def call(self, name: str, arguments: Sequence[str], function: Function) -> str:
        if name in self.functions:
            return f"{self.functions[name]}({', '.join(arguments)})"
        (called,) = (f for f in function.calls if f.name == name)
        lengths = {self.identifier(n): str(k) for n, k in function.local_arrays.items()}
        texts = []
        for p, text in zip(called.parameters, arguments, strict=True):
            texts.append(text)
            if p.counted:
                texts.append(lengths.get(text, self.length(text)))
        return f"{name}({', '.join(texts)})"


def _returned(function: Function) -> str:
    return "void " if function.returns is None else _TYPES[function.returns]


def _comment(documentation: str) -> list[str]:
    if not documentation:
        return []
    lines = harmless(documentation.strip()).splitlines()
    if len(lines) == 1:
        return [f"/* {lines[0]} */"]
    return ["/*", *(f" * {line}".rstrip() for line in lines), " */"]


def harmless(text: str) -> str:
    """Return a text that ends no comment, begins none and holds no trigraph.

    Examples
    --------
    >>> harmless("*/ int x; /*"), harmless("what?""?/")
    ('* / int x; / *', 'what? ?/')
    """
    text = text.replace("*/", "* /").replace("/*", "/ *")
    return re.sub(r"\?(?=\?)", "? ", text)


def wrapped(line: str, indent: str = "    ") -> list[str]:
    """Return a long line as several, not broken within ``double *x`` or ``x = 0``."""
    kept = re.sub(r"(\w) (\*?\w+)(?=[,;)=]| = )", "\\1\u00a0\\2", line)
    kept = re.sub(r" = (\S+[,;])", "\u00a0=\u00a0\\1", kept)
    lines = textwrap.wrap(
        kept, 96, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [x.replace("\u00a0", " ") for x in lines]


def _unused(function: Function) -> list[str]:
    """Parameters that the body does not mention."""
    used = {n.id for n in ast.walk(function.tree) if isinstance(n, ast.Name)}
    for expr in function.expressions.values():
        used |= {str(s) for s in expr.free_symbols}
    return [p.name for p in function.parameters if p.name not in used]


_JULIA_KEYWORDS = (
    "abstract baremodule begin break catch const continue do else elseif end export false finally "
    "for function global if import in isa let local macro module mutable primitive quote return "
    "struct true try type using where while outer public"
).split()
# Names that the code around the functions uses; a variable of that name would hide them.
_BASE = (
    "abs min max exp log sqrt isfinite Float64 Int length view zeros fill undef Vector Matrix "
    "Dict Inf NaN pi im ceil floor log2 sum get haskey keys string error size push! collect axes "
    "Base Core Main eval include NamedTuple AbstractMatrix AbstractVector Tuple all any nothing "
    "Nothing missing power ccall sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh expm1 "
    "log1p sign solve_point PARAMETERS OUTPUTS DATA isinteger Float32"
).split()


class JuliaLanguage(Language):
    """Arrays begin at one; locals are declared first, because loops have scopes of their own."""

    name = "julia"
    forms: ClassVar[Mapping[str, str | None]] = {
        "comment": "# {}",
        "assign": "{} {} {}",
        "array": "{} = zeros({})",
        "constants": "{} = ({})",
        "for": "for {} in ({}):({} - 1)",
        "while": "while {}",
        "if": "if {}",
        "elif": "elseif {}",
        "else": "else",
        "end": "end",
        "statement": "{}",
        "call": "{}",
        "return": "return {}",
        "conditional": "({} ? {} : {})",
        "element": "{}[{} + 1]",
    }
    constants: ClassVar[Mapping[str, str]] = {
        **_DOUBLES,
        "inf": "Inf",
        "nan": "NaN",
        "True": "true",
        "False": "false",
    }
    functions: ClassVar[Mapping[str, str]] = {"real": "Float64", "erf": "fn_erf", "erfc": "fn_erfc"}
    words: ClassVar[Mapping[str, str]] = {"and": "&&", "or": "||", "not": "!"}
    reserved = frozenset([*_JULIA_KEYWORDS, *_BASE])
    library = """\
# Base throws an error where C returns NaN; Newton's method looks at NaN and goes back.
sqrt(x) = x >= 0.0 ? Base.sqrt(x) : NaN
log(x) = x >= 0.0 ? Base.log(x) : NaN
log1p(x) = x >= -1.0 ? Base.log1p(x) : NaN
asin(x) = abs(x) <= 1.0 ? Base.asin(x) : NaN
acos(x) = abs(x) <= 1.0 ? Base.acos(x) : NaN
acosh(x) = x >= 1.0 ? Base.acosh(x) : NaN
atanh(x) = abs(x) <= 1.0 ? Base.atanh(x) : NaN
sin(x) = isfinite(x) ? Base.sin(x) : NaN
cos(x) = isfinite(x) ? Base.cos(x) : NaN
tan(x) = isfinite(x) ? Base.tan(x) : NaN
power(x, y) = x >= 0.0 || isinteger(y) ? x^y : NaN
"""

    def unit(self, functions: str) -> str:
        return f"{self.library}\n{functions}"

    def source(self, function: Function) -> str:
        lines = [f"# {x}".rstrip() for x in function.documentation.strip().splitlines()]
        parameters = ", ".join(self.identifier(p.name) for p in function.parameters)
        lines.append(f"function {function.name}({parameters})")
        for name, kind in function.local_values.items():
            zero = {Kind.REAL: "0.0", Kind.FLAG: "false"}.get(kind, "0")
            lines.append(f"    local {self.identifier(name)} = {zero}")
        lines += self.lines(function)
        if function.returns is None:
            lines.append("    return nothing")
        return "\n".join([*lines, "end"]) + "\n"

    def call(self, name: str, arguments: Sequence[str], function: Function) -> str:
        if name in ("ceil", "whole"):
            return f"{'ceil' if name == 'ceil' else 'floor'}(Int, {arguments[0]})"
        return super().call(name, arguments, function)

    def part(self, array: str, first: str, count: str) -> str:
        return f"view({array}, ({first} + 1):({first} + {count}))"

    def length(self, array: str) -> str:
        return f"length({array})"


# Intrinsic procedures that the code calls or that the text around it uses.
_INTRINSICS = (
    "abs acos acosh asin asinh atan atanh cos cosh erf erfc exp log sin sinh sqrt tan tanh int "
    "real ceiling size merge allocated allocate transfer dp int64 infinity nan smaller larger "
    "c_floor c_expm1 c_log1p c_log2 c_double ieee_is_finite returned workspace data_set solve_info "
    "solve solve_many selfcheck n_parameters n_outputs parameter_names output_names rule_level "
    "rules"
).split()
_FORTRAN_LINE = 120


def fortran_identifier(name: str) -> str:
    """Return a name as Fortran can have it, where letters have no case; others stay different.

    Examples
    --------
    >>> [fortran_identifier(x) for x in ("alpha", "A", "qBar", "exp", "_x", "q_cap0")]
    ['alpha', 'a_cap0', 'qbar_cap1', 'exp_', 'lead_x_cap', 'q_cap0_cap']
    """
    found = "".join(x if x.isascii() else f"u{ord(x):04x}" for x in name)
    capitals = [str(k) for k, x in enumerate(found) if x.isupper()]
    if found.startswith("_"):
        found = f"lead{found}_cap{'_'.join(capitals)}"
    elif capitals or re.search(r"_cap[\d_]*$", found):
        found = f"{found}_cap{'_'.join(capitals)}"
    found = found.lower()
    if len(found) > 60:
        found = f"{found[:48]}_{sha256(name.encode()).hexdigest()[:8]}"
    return f"{found}_" if found.rstrip("_") in FortranLanguage.reserved else found


def fortran_lines(line: str) -> list[str]:
    """Return a long line as several, each continued by the next; a comment as several comments."""
    indent = line[: len(line) - len(line.lstrip())]
    if line.lstrip().startswith("!") and len(line) > _FORTRAN_LINE:
        return textwrap.wrap(line, 96, subsequent_indent=f"{indent}! ")
    found = []
    while len(line) > _FORTRAN_LINE:
        end = line.rfind(" ", len(indent) + 40, _FORTRAN_LINE)
        # Words may be continued, too.
        end = _FORTRAN_LINE if end < 0 else end
        found.append(f"{line[:end]}&")
        line = f"{indent}    &{line[end:]}"
    return [*found, line]


class FortranLanguage(Language):
    """Fortran 2008: arrays begin at one, names have no case, both sides of a case are computed."""

    name = "fortran"
    forms: ClassVar[Mapping[str, str | None]] = {
        "comment": "! {}",
        "array": None,
        "constants": None,
        "for": "do {} = {}, {} - 1",
        "while": "do while ({})",
        "if": "if ({}) then",
        "elif": "else if ({}) then",
        "else": "else",
        "end": "end {}",
        "statement": "{}",
        "call": "call {}",
        "return": "returned_ = {}; return",
        "conditional": "merge({1}, {2}, {0})",
        "element": "{}({} + 1)",
    }
    constants: ClassVar[Mapping[str, str]] = {
        **{name: f"{value}_dp" for name, value in _DOUBLES.items()},
        "inf": "infinity",
        "nan": "nan",
        "True": ".true.",
        "False": ".false.",
    }
    functions: ClassVar[Mapping[str, str]] = {
        **{name: f"c_{name}" for name in ("log2", "log1p", "floor")},
        "min": "smaller",
        "max": "larger",
        "ceil": "ceiling",
        "whole": "int",
        "isfinite": "ieee_is_finite",
    }
    words: ClassVar[Mapping[str, str]] = {
        "and": ".and.", "or": ".or.", "not": ".not. ", "!=": "/=", "break": "exit",
        "continue": "cycle",
    }  # fmt: skip
    reserved = frozenset(_INTRINSICS)
    uses = """\
    use, intrinsic :: iso_c_binding, only: c_double
    use, intrinsic :: iso_fortran_env, only: dp => real64, int64
    use, intrinsic :: ieee_arithmetic, only: ieee_is_finite
    implicit none
"""
    # Of the C library what Fortran has not; its floor is an integer.
    library = (
        """\
    real(dp), parameter :: infinity = transfer(9218868437227405312_int64, 1.0_dp)
    real(dp), parameter :: nan = transfer(9221120237041090560_int64, 1.0_dp)
    interface
"""
        + "".join(
            f"""\
        pure real(c_double) function c_{name}(x) bind(c, name="{name}")
            import :: c_double
            real(c_double), value :: x
        end function c_{name}
"""
            for name in ("floor", "log1p", "expm1", "log2")
        )
        + """\
    end interface
"""
    )
    tools = "\n".join(
        f"""\
elemental function {name}(a, b) result(returned_)
    real(dp), intent(in) :: a, b
    real(dp) :: returned_
    returned_ = merge(b, a, b {sign} a)
end function {name}
"""
        for name, sign in (("smaller", "<"), ("larger", ">"))
    )

    def unit(self, functions: str) -> str:
        head = f"module formula_module\n{self.uses}{self.library}contains\n\n"
        return f"{head}{self.tools}\n{functions}\nend module formula_module\n"

    _types: ClassVar[Mapping[Kind, str]] = {
        Kind.REAL: "real(dp)", Kind.WHOLE: "integer", Kind.FLAG: "logical",
    }  # fmt: skip

    def source(self, function: Function) -> str:
        name = self.identifier(function.name)
        names = [self.identifier(p.name) for p in function.parameters]
        kind = "subroutine" if function.returns is None else "function"
        result = "" if function.returns is None else " result(returned_)"
        lines = [f"! {x}".rstrip() for x in function.documentation.strip().splitlines()]
        lines.append(f"{kind} {name}({', '.join(names)}){result}")
        for p, code in zip(function.parameters, names, strict=True):
            lines.append(f"    {self._declared(p.kind)} :: {code}{self._shape(p.kind)}")
        if function.returns is not None:
            lines.append(f"    {self._types[function.returns]} :: returned_")
        for n, length in function.local_arrays.items():
            lines.append(f"    real(dp) :: {self.identifier(n)}({length})")
        for n, values in function.local_constants.items():
            numbers = ", ".join(map(self.number, values))
            array = f"{self.identifier(n)}({len(values)}) = [{numbers}]"
            lines.append(f"    real(dp), parameter :: {array}")
        found = function.local_values
        for kind_ in self._types:
            locals_ = [self.identifier(n) for n, k in found.items() if k is kind_]
            if locals_:
                lines.append(f"    {self._types[kind_]} :: {', '.join(locals_)}")
        zeros = {Kind.REAL: "0.0_dp", Kind.WHOLE: "0", Kind.FLAG: ".false."}
        lines += [f"    {self.identifier(n)} = {zeros[k]}" for n, k in found.items()]
        lines += [*self.lines(function), f"end {kind} {name}"]
        return "\n".join(part for line in lines for part in fortran_lines(line)) + "\n"

    def _declared(self, kind: Kind) -> str:
        if kind in self._types:
            return f"{self._types[kind]}, value"
        if kind is Kind.RULES:
            return "type(workspace), intent(inout)"
        read = kind in (Kind.ARRAY, Kind.TABLE, Kind.INDICES)
        element = "integer" if kind in (Kind.INDICES, Kind.COUNTS) else "real(dp)"
        return f"{element}, contiguous, intent({'in' if read else 'inout'})"

    def _shape(self, kind: Kind) -> str:
        return "" if kind in self._types or kind is Kind.RULES else "(:)"

    def spelled(self, form: str, *parts: object) -> str:
        if form == "assign":
            target, operator, value = map(str, parts)
            changed = value if operator == "=" else f"{target} {operator[0]} ({value})"
            return f"{target} = {changed}"
        return super().spelled(form, *parts)

    def part(self, array: str, first: str, count: str) -> str:
        return f"{array}({first} + 1:{first} + {count})"

    def identifier(self, name: str) -> str:
        return fortran_identifier(name)

    def length(self, array: str) -> str:
        return f"size({array})"

    def number(self, value: float) -> str:
        if isinstance(value, int):
            return repr(value)
        return f"{value!r}_dp" if value >= 0 else f"({value!r}_dp)"

    def call(self, name: str, arguments: Sequence[str], function: Function) -> str:
        if name == "real":
            return f"real({arguments[0]}, dp)"
        if name not in (*self.functions, *LIBRARY, "abs"):
            name = self.identifier(name)
        return super().call(name, arguments, function)


_MODULES = ("math", "np", "numpy", "njit", "prange", "numba", "scipy", "mpmath", "ctx")


class PythonLanguage(Language):
    """Plain Python on floats."""

    name = "python"
    forms: ClassVar[Mapping[str, str | None]] = {
        "comment": "# {}",
        "assign": "{} {} {}",
        # Lists are faster than small NumPy arrays.
        "array": "{} = [0.0] * {}",
        "constants": "{} = ({})",
        "for": "for {} in range({}, {}):",
        "while": "while {}:",
        "if": "if {}:",
        "elif": "elif {}:",
        "else": "else:",
        "end": None,
        "statement": "{}",
        "call": "{}",
        "return": "return {}",
        "conditional": "{1} if {0} else {2}",
    }
    constants: ClassVar[Mapping[str, str]] = {
        **_DOUBLES,
        "inf": "math.inf",
        "nan": "math.nan",
        "True": "True",
        "False": "False",
    }
    functions: ClassVar[Mapping[str, str]] = {
        **{name: f"math.{name}" for name in (*LIBRARY, "ceil", "isfinite")},
        "real": "float",
        "whole": "int",
    }
    reserved = frozenset([*keyword.kwlist, *dir(builtins), *_MODULES])

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

    def spelled(self, form: str, *parts: object) -> str:
        if form == "for" and parts[1] == "0":
            return f"for {parts[0]} in range({parts[2]}):"
        return super().spelled(form, *parts)

    def element(self, array: str, indices: Sequence[str], function: Function) -> str:
        return f"{array}[{', '.join(indices)}]"

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
    forms: ClassVar[Mapping[str, str | None]] = {
        **PythonLanguage.forms,
        "array": "{} = np.empty({})",
    }

    def decorators(self, function: Function) -> list[str]:
        return ["@njit(fastmath=_FAST, **_FLAGS)" if function.fast else "@njit(**_FLAGS)"]

    def attempt(self) -> tuple[list[str], list[str]]:
        return [], []

    def real_only(self, values: Sequence[str]) -> list[str]:
        return []


class ArrayLanguage(PythonLanguage):
    """NumPy, for functions of assignments and one result: each number may be an array."""

    name = "arrays"
    forms: ClassVar[Mapping[str, str | None]] = {
        **PythonLanguage.forms,
        "conditional": "np.where({}, {}, {})",
    }
    constants: ClassVar[Mapping[str, str]] = {
        **PythonLanguage.constants,
        "inf": "np.inf",
        "nan": "np.nan",
    }
    functions: ClassVar[Mapping[str, str]] = {
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
    words: ClassVar[Mapping[str, str]] = {"and": "&", "or": "|", "not": "~"}

    def spelled(self, form: str, *parts: object) -> str:
        if form in ("for", "while"):
            raise EmissionError("rows of an array end loops in different rounds: write one value")
        if form == "if":
            raise EmissionError(
                "rows of an array take different branches: write `a if test else b`"
            )
        return super().spelled(form, *parts)


class MpmathLanguage(PythonLanguage):
    """Python on the numbers of an mpmath context named ``ctx``."""

    name = "mpmath"
    forms: ClassVar[Mapping[str, str | None]] = {
        **PythonLanguage.forms,
        "array": "{} = [ctx.zero] * {}",
    }
    constants: ClassVar[Mapping[str, str]] = {
        **PythonLanguage.constants,
        "inf": "ctx.inf",
        "nan": "ctx.nan",
        "tolerance": "1024 * ctx.eps",
        # Far below what any iteration stops at for another reason, and above rounding.
        "stalled": "ctx.eps ** 0.625",
        # There are digits to spare: rounding never is what is left.
        "resolved": "ctx.zero",
        "unit": "ctx.eps",
    }
    functions: ClassVar[Mapping[str, str]] = {
        "exp": "ctx.exp",
        "log": "ctx.log",
        "sqrt": "ctx.sqrt",
        "isfinite": "ctx.isfinite",
        "real": "ctx.mpf",
    }

    def number(self, value: float) -> str:
        if isinstance(value, int):
            return repr(value)
        return {0.0: "ctx.zero", 1.0: "ctx.one"}.get(value, f"ctx.mpf({value!r})")

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
