"""Source code of a map of complex numbers whose values hold averages over the node.

Solvers of saddle points print equations for real, positive unknowns, with roots and logarithms
chosen for them. A resolvent is wanted in the complex plane, where such choices are wrong: what is
printed here has to be a rational function of its unknowns, so that it means the same everywhere.
The text is vectorised NumPy: one call for any number of points, the average over the nodes being
a product of matrices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import EmissionError
from ..expressions.shared_parts import parts_of
from ..gaussian.expectation import GaussianExpectation
from ..printing.printers import NumpyPrinter
from .lower import table_name

_INDENT = "    "


@dataclass(frozen=True)
class MapSource:
    """Writes functions of unknowns, parameters, weight, node and tables, in this order.

    Attributes
    ----------
    unknowns, parameters : sequence of Symbol
        Parameters are floats in code.
    tables : sequence of applied function
        Functions of `node`; weight, node and tables are arrays of shape (K,).
    node : Symbol
    identifiers : mapping from Symbol to str
        Names in code.
    """

    unknowns: Sequence[sp.Symbol]
    parameters: Sequence[sp.Symbol]
    tables: Sequence[sp.Expr]
    node: sp.Symbol
    identifiers: Mapping[sp.Symbol, str]

    def map(self, outputs: Mapping[str, sp.Expr], *, function: str, description: str) -> str:
        """Return the source of a function that evaluates `outputs` at many complex points.

        Unknowns are arrays of one shape (n,); it returns a list of arrays of that shape.

        Parameters
        ----------
        outputs : mapping from str to Expr
            What is returned, in this order; rational in the unknowns, with averages over the node.
        function : str
            Its name.
        description : str
            First line of the docstring.

        Raises
        ------
        EmissionError
            If an output is not a rational function of the unknowns.
        """
        names = self._names()
        moving = {names[x] for x in self.unknowns}
        sums = _Sums(moving)
        found: dict[str, sp.Expr] = {}
        for name, value in outputs.items():
            averages = {
                a: sums(a.integrand.xreplace({a.variable: self.node}).xreplace(names))
                for a in value.atoms(GaussianExpectation)
            }
            found[name] = value.xreplace(averages).xreplace(names)
            _require_rational(found[name], moving | sums.symbols)
        lines = sums.lines({names[x]: f"{names[x]}_column" for x in self.unknowns})
        printer = NumpyPrinter()
        shared, results = sp.cse(list(found.values()), symbols=sp.numbered_symbols("scalar_"))
        lines += [f"{x} = {printer.print(e)}" for x, e in shared]
        # A constant output is an array as well.
        lines.append("zero = " + " + ".join(f"0.0 * {names[x]}" for x in self.unknowns))
        lines.append("return [" + ", ".join(f"zero + {printer.print(e)}" for e in results) + "]")
        about = f"{description}\n\n{_INDENT}Returns {', '.join(outputs)}.\n{_INDENT}"
        return self._text(function, about, lines)

    def at_nodes(self, value: sp.Expr, *, function: str, description: str) -> str:
        """Return the source of a function that evaluates `value` at the nodes.

        Unknowns are scalars, or columns of shape (n, 1); the result has the shape that they and the
        tables broadcast to.
        """
        names = self._names()
        printed = NumpyPrinter().print(value.xreplace(names))
        return self._text(function, description, [f"return {names[self.node]} * 0.0 + {printed}"])

    def _names(self) -> dict[sp.Expr, sp.Symbol]:
        names = {x: sp.Symbol(self.identifiers.get(x, str(x))) for x in self.unknowns}
        for x in self.parameters:
            names[x] = sp.Symbol(self.identifiers.get(x, str(x)), real=True)
        names |= {f: sp.Symbol(table_name(f), real=True) for f in self.tables}
        return {**names, self.node: sp.Symbol(str(self.node), real=True)}

    def _text(self, function: str, description: str, lines: Sequence[str]) -> str:
        names = self._names()
        given = [names[x] for x in (*self.unknowns, *self.parameters)]
        given += ["weight", names[self.node], *(names[f] for f in self.tables)]
        head = f'def {function}({", ".join(map(str, given))}):\n{_INDENT}"""{description}"""\n'
        return head + "".join(f"{_INDENT}{line}\n" for line in lines)


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
            for p in parts_of(integrand, sp.Pow)
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
