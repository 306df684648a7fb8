"""Julia as a language of scalar functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...printing.julia_printer import JuliaPrinter
from .language import Function, Kind, Language

_KEYWORDS = (
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
    """Arrays begin at one; locals are declared first, because loops have scopes of their own.

    Parameters
    ----------
    roots : iterable of str
        Functions that a program defines and its expressions call.
    """

    name = "julia"
    constants: Mapping[str, str] = {
        "inf": "Inf",
        "nan": "NaN",
        "tolerance": "2e-15",
        "stalled": "1e-10",
        "unit": "2.220446049250313e-16",
        "True": "true",
        "False": "false",
    }
    functions: Mapping[str, str] = {"real": "Float64"}
    words: Mapping[str, str] = {"and": "&&", "or": "||", "not": "!"}
    reserved = frozenset([*_KEYWORDS, *_BASE])

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self.printer = JuliaPrinter({root: root for root in roots})

    def source(self, function: Function) -> str:
        lines = [f"# {x}".rstrip() for x in function.documentation.strip().splitlines()]
        parameters = ", ".join(self.identifier(p.name) for p in function.parameters)
        lines.append(f"function {function.name}({parameters})")
        for name, kind in function.local_values().items():
            zero = {Kind.REAL: "0.0", Kind.FLAG: "false"}.get(kind, "0")
            lines.append(f"    local {self.identifier(name)} = {zero}")
        lines += self.lines(function)
        if function.returns is None:
            lines.append("    return nothing")
        return "\n".join([*lines, "end"]) + "\n"

    def comment(self, text: str) -> str:
        return f"# {text}"

    def assign(self, target: str, operator: str, value: str) -> str:
        return f"{target} {operator} {value}"

    def local_array(self, name: str, length: int) -> str:
        return f"{name} = zeros({length})"

    def for_head(self, index: str, first: str, last: str) -> str:
        return f"for {index} in ({first}):({last} - 1)"

    def while_head(self, test: str) -> str:
        return f"while {test}"

    def if_head(self, test: str) -> str:
        return f"if {test}"

    def elif_head(self, test: str) -> str:
        return f"elseif {test}"

    def else_head(self) -> str:
        return "else"

    def end(self) -> str:
        return "end"

    def statement(self, text: str) -> str:
        return text

    def element(self, array: str, indices: Sequence[str], function: Function) -> str:
        if len(indices) == 1:
            return f"{array}[{indices[0]} + 1]"
        columns = {self.identifier(p.name): p.columns for p in function.parameters}
        return f"{array}[{columns[array]} * ({indices[0]}) + {indices[1]} + 1]"

    def conditional(self, test: str, value: str, otherwise: str) -> str:
        return f"({test} ? {value} : {otherwise})"

    def call(self, name: str, arguments: Sequence[str], function: Function) -> str:
        if name == "ceil":
            return f"ceil(Int, {arguments[0]})"
        return super().call(name, arguments, function)

    def length(self, array: str) -> str:
        return f"length({array})"
