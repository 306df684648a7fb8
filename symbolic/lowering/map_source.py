"""Source code of a map of complex numbers whose values hold averages over the node.

Solvers of saddle points print equations for real, positive unknowns, with roots and logarithms
chosen for them. A resolvent is wanted in the complex plane, where such choices are wrong: what is
printed here has to be a rational function of its unknowns, so that it means the same everywhere.
The text is vectorised NumPy: one call for any number of points, the average over the nodes being
a product of matrices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import EmissionError
from ..gaussian.expectation import GaussianExpectation
from ..printing.printers import NumpyPrinter
from .lower import table_name

_INDENT = "    "


def map_source(
    outputs: Mapping[str, sp.Expr],
    *,
    function: str,
    unknowns: Sequence[sp.Symbol],
    parameters: Sequence[sp.Symbol],
    tables: Sequence[sp.Expr],
    node: sp.Symbol,
    identifiers: Mapping[sp.Symbol, str],
    description: str,
) -> str:
    """Return the source of a function that evaluates `outputs` at many complex points.

    Parameters
    ----------
    outputs : mapping from str to Expr
        What is returned, in this order; rational in `unknowns`, with averages over `node`.
    function : str
        Name of the function: ``function(unknowns, parameters, weight, node, tables)``, with
        the unknowns as arrays of one shape (n,), parameters as floats, weight, node and tables as
        arrays of shape (K,). It returns a list of arrays of shape (n,).
    unknowns, parameters : sequence of Symbol
    tables : sequence of applied function
        Functions of `node`, in the order of the arguments.
    node : Symbol
    identifiers : mapping from Symbol to str
        Names in code.
    description : str
        First line of the docstring.

    Raises
    ------
    EmissionError
        If an output is not a rational function of the unknowns.
    """
    names, head = _head(
        function, unknowns, parameters, tables, node, identifiers,
        f"{description}\n\n{_INDENT}Returns {', '.join(outputs)}.\n{_INDENT}",
    )  # fmt: skip
    moving = {names[x] for x in unknowns}
    sums = _Sums(moving)
    found: dict[str, sp.Expr] = {}
    for name, value in outputs.items():
        averages = {
            a: sums(a.integrand.xreplace({a.variable: node}).xreplace(names))
            for a in value.atoms(GaussianExpectation)
        }
        found[name] = value.xreplace(averages).xreplace(names)
        _require_rational(found[name], moving | sums.symbols)
    lines = sums.lines({names[x]: f"{names[x]}_column" for x in unknowns})
    printer = NumpyPrinter()
    shared, results = sp.cse(list(found.values()), symbols=sp.numbered_symbols("scalar_"))
    lines += [f"{x} = {printer.print(e)}" for x, e in shared]
    # A constant output is an array as well.
    lines.append("zero = " + " + ".join(f"0.0 * {names[x]}" for x in unknowns))
    lines.append("return [" + ", ".join(f"zero + {printer.print(e)}" for e in results) + "]")
    return head + "".join(f"{_INDENT}{line}\n" for line in lines)


def node_source(
    value: sp.Expr,
    *,
    function: str,
    unknowns: Sequence[sp.Symbol],
    parameters: Sequence[sp.Symbol],
    tables: Sequence[sp.Expr],
    node: sp.Symbol,
    identifiers: Mapping[sp.Symbol, str],
    description: str,
) -> str:
    """Return the source of a function of the same arguments that evaluates `value` at the nodes.

    Unknowns are scalars, or columns of shape (n, 1); the result has the shape that they and the
    tables broadcast to.
    """
    names, head = _head(function, unknowns, parameters, tables, node, identifiers, description)
    printed = NumpyPrinter().print(value.xreplace(names))
    return f"{head}{_INDENT}return {names[node]} * 0.0 + {printed}\n"


def _head(
    function: str, unknowns: Sequence[sp.Symbol], parameters: Sequence[sp.Symbol],
    tables: Sequence[sp.Expr], node: sp.Symbol, identifiers: Mapping[sp.Symbol, str],
    description: str,
) -> tuple[dict[sp.Expr, sp.Symbol], str]:  # fmt: skip
    """Return the names of all that a function takes, and its first lines."""
    names = {x: sp.Symbol(identifiers.get(x, str(x))) for x in unknowns}
    names |= {x: sp.Symbol(identifiers.get(x, str(x)), real=True) for x in parameters}
    names |= {f: sp.Symbol(table_name(f), real=True) for f in tables}
    names[node] = sp.Symbol(str(node), real=True)
    given = [*(names[x] for x in (*unknowns, *parameters)), "weight", names[node]]
    given += [names[f] for f in tables]
    signature = f"def {function}({', '.join(map(str, given))}):"
    return names, f'{signature}\n{_INDENT}"""{description}"""\n'


class _Sums:
    """Averages over the nodes as products of a matrix in the unknowns and a vector of weights."""

    def __init__(self, moving: set[sp.Symbol]) -> None:
        self._moving = moving
        # (factor with unknowns, factor with tables only): name of the average of their product
        self._names: dict[tuple[sp.Expr, sp.Expr], sp.Symbol] = {}
        self._inverses: dict[sp.Expr, sp.Symbol] = {}

    @property
    def symbols(self) -> set[sp.Symbol]:
        return set(self._names.values())

    def __call__(self, integrand: sp.Expr) -> sp.Expr:
        _require_rational(integrand, self._moving)
        # One inverse for all powers of a denominator: divisions cost most.
        denominators = {
            p: self._inverse(p.base) ** -p.exp
            for p in integrand.atoms(sp.Pow)
            if p.exp.is_negative and p.base.free_symbols & self._moving
        }
        integrand = sp.expand(integrand.xreplace(denominators))
        moving = (*self._moving, *self._inverses.values())
        total = []
        for term in sp.Add.make_args(integrand):
            still, waving = term.as_independent(*moving, as_Add=False)
            number, still = still.as_coeff_Mul()
            key = (waving, still)
            self._names.setdefault(key, sp.Symbol(f"sum_{len(self._names)}"))
            total.append(number * self._names[key])
        return sp.Add(*total)

    def _inverse(self, base: sp.Expr) -> sp.Symbol:
        return self._inverses.setdefault(base, sp.Symbol(f"inverse_{len(self._inverses)}"))

    def lines(self, columns: Mapping[sp.Symbol, str]) -> list[str]:
        """Return statements that compute all averages; `columns` are names of (n, 1) arrays."""
        printer = NumpyPrinter()
        renamed = {x: sp.Symbol(name) for x, name in columns.items()}
        inverses = list(self._inverses.items())
        lines = [f"{y} = 1.0 / ({printer.print(b.xreplace(renamed))})" for b, y in inverses]
        shared, factors = sp.cse(
            [waving for waving, _ in self._names], symbols=sp.numbered_symbols("matrix_")
        )
        lines += [f"{x} = {printer.print(e.xreplace(renamed))}" for x, e in shared]
        for ((_, still), name), factor in zip(self._names.items(), factors, strict=True):
            weights = "weight" if still == 1 else f"(weight * {printer.print(still)})"
            if factor == 1:
                lines.append(f"{name} = np.sum({weights})")
            else:
                lines.append(f"{name} = {printer.print(factor.xreplace(renamed))} @ {weights}")
        used = [(x, name) for x, name in columns.items() if any(name in line for line in lines)]
        return [*(f"{name} = {x}[:, None]" for x, name in used), *lines]


def _require_rational(expr: sp.Expr, moving: set[sp.Symbol]) -> None:
    """Refuse what has branches, or what is not analytic, in the symbols `moving`."""
    present = sorted(expr.free_symbols & moving, key=str)
    if expr.has(AppliedUndef) or not expr.is_rational_function(*present):
        raise EmissionError(
            f"{str(expr)[:80]} is not a rational function of {', '.join(map(str, present))}: "
            "it has no meaning in the complex plane without a choice of branches"
        )
