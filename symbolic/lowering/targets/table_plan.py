"""Tables of the node as passes over inner nodes: what a target without arrays of arrays needs.

The tables of one node are computed in steps: a pass over the nodes of an inner variable, which
sums every expectation that is ready, and scalars in between. Which rule a pass takes follows from
its integrands (:mod:`..regularity`), at the node itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp
from sympy.core.function import AppliedUndef

from ....errors import EmissionError
from ...accuracy import rewrite_for_accuracy
from ...gaussian import GaussianExpectation
from ...regularity import ImaginaryGrowth, analyse
from ..fuse import magnitude
from ..lower import table_name
from ..program import Assign
from .table_source import evaluated_forms, frequencies, outer_breaks, outer_widths


@dataclass(frozen=True)
class InnerMeasure:
    """How an inner expectation is summed.

    Attributes
    ----------
    variable : Symbol
    kinks : tuple of Expr
        Break points of a split rule; empty for the trapezoidal rule.
    strips : tuple of Expr
        Distances of poles from the real axis; empty where there are none.
    growths : tuple of Expr
        Coefficients a of a growth like exp(a*y**2) in the imaginary direction.
    waves : tuple of Expr
        Highest frequencies of the integrands.
    """

    variable: sp.Symbol
    kinks: tuple[sp.Expr, ...]
    strips: tuple[sp.Expr, ...]
    growths: tuple[sp.Expr, ...]
    waves: tuple[sp.Expr, ...]


@dataclass(frozen=True)
class InnerPass:
    """One pass over the nodes of an inner variable, at one node of the outer one."""

    rule: InnerMeasure
    locals: tuple[Assign, ...]
    sums: tuple[Assign, ...]


@dataclass(frozen=True)
class TablePlan:
    """All tables as steps at one node.

    Attributes
    ----------
    node : Symbol
    parameters : tuple of Symbol
        What the tables depend on besides the node.
    steps : tuple of InnerPass or Assign
    tables : tuple of Symbol
        Targets of steps, in the order in which the solver takes them.
    sizes : tuple of Expr
        Scale of the rounding of each table: its terms, and the integrands of its means, without
        their signs. A mean may vanish by symmetry.
    widths : tuple of Expr
        Widths in the node over which the tables vary; infinite ones do not matter.
    breaks : tuple of Expr
        Nodes at which a table has a kink or a jump.
    """

    node: sp.Symbol
    parameters: tuple[sp.Symbol, ...]
    steps: tuple[InnerPass | Assign, ...]
    tables: tuple[sp.Symbol, ...]
    sizes: tuple[sp.Expr, ...]
    widths: tuple[sp.Expr, ...]
    breaks: tuple[sp.Expr, ...]


def table_plan(
    definitions: Mapping[sp.Expr, sp.Expr],
    *,
    node: sp.Symbol,
    parameters: Sequence[sp.Symbol],
    printable: Callable[[sp.Expr], bool],
) -> TablePlan:
    """Return the steps that compute the tables.

    Parameters
    ----------
    definitions : mapping from applied function to Expr
        Tables in an order in which each refers to earlier ones only, in code symbols.
    node : Symbol
        The outer variable.
    parameters : sequence of Symbol
    printable : callable
        Whether the target has all functions of an expression; a closed form that it lacks stays
        an integral.

    Raises
    ------
    EmissionError
        If an inner expectation holds another one.
    """
    forms = {
        f: form if printable(form) else definitions[f]
        for f, form in evaluated_forms(definitions).items()
    }
    tables = {f: sp.Symbol(f"t_{table_name(f)}", real=True) for f in forms}
    names = _Names()
    marks: dict[sp.Expr, sp.Symbol] = {}
    steps: list[InnerPass | Assign] = []
    sizes: dict[sp.Symbol, sp.Expr] = {}
    done: set[sp.Expr] = set()
    while len(done) < len(forms):
        ready = [f for f in forms if f not in done and _tables_of(forms[f], forms) <= done]
        if not ready:
            left = ", ".join(str(f) for f in forms if f not in done)
            raise EmissionError(f"tables that refer to each other: {left}")
        waiting: dict[sp.Symbol, dict[sp.Expr, None]] = {}
        for f in ready:
            for n in sorted(forms[f].atoms(GaussianExpectation), key=str):
                if n.integrand.atoms(GaussianExpectation):
                    raise EmissionError(
                        f"nested inner expectations in {n}: give the inner one a name"
                    )
                if n not in marks:
                    waiting.setdefault(n.variable, {})[n] = None
        for variable, nodes in waiting.items():
            steps.append(_inner_pass(variable, list(nodes), tables, marks, names))
        for f in ready:
            value = forms[f].xreplace(marks).xreplace(tables)
            steps.append(Assign(tables[f], rewrite_for_accuracy(value)))
            sums = {m: size_of(m) for m in value.free_symbols & set(marks.values())}
            sizes[tables[f]] = magnitude(value).xreplace(sums) if sums else tables[f]
        done |= set(ready)
    return TablePlan(
        node=node,
        parameters=tuple(parameters),
        steps=tuple(steps),
        tables=tuple(tables.values()),
        sizes=tuple(sizes[t] for t in tables.values()),
        widths=outer_widths(definitions, node),
        breaks=outer_breaks(definitions, node),
    )


def size_of(mean: sp.Symbol) -> sp.Symbol:
    """Return the symbol of the mean of the absolute values."""
    return sp.Symbol(f"size_{mean.name}", nonnegative=True)


class _Names:
    def __init__(self) -> None:
        self._count = 0

    def fresh(self, prefix: str) -> sp.Symbol:
        self._count += 1
        return sp.Symbol(f"{prefix}_{self._count}", real=True)


def _tables_of(form: sp.Expr, forms: Mapping[sp.Expr, sp.Expr]) -> set[sp.Expr]:
    return {f for f in form.atoms(AppliedUndef) if f in forms}


def _inner_pass(
    variable: sp.Symbol,
    nodes: Sequence[GaussianExpectation],
    tables: Mapping[sp.Expr, sp.Symbol],
    marks: dict[sp.Expr, sp.Symbol],
    names: _Names,
) -> InnerPass:
    # A name that is no other one's, whatever the variable is called.
    inner = sp.Symbol(f"z_{variable.name}", **variable.assumptions0)
    names_in_code = {**tables, variable: inner}
    # The rule follows from the integrands as they are; their code, from accurate forms of them.
    integrands = [n.integrand.xreplace(names_in_code) for n in nodes]
    accurate = [rewrite_for_accuracy(f) for f in integrands]
    targets = [names.fresh("mean") for _ in nodes]
    marks.update(zip(nodes, targets, strict=True))

    def symbols() -> object:
        while True:
            yield names.fresh("inner")

    shared, values = sp.cse(accurate, symbols=symbols(), optimizations=[], order="none")
    exact = [Assign(*pair) for pair in shared]
    exact += [Assign(t, v) for t, v in zip(targets, values, strict=True)]
    # Printers write a square as a product, which would compute its base twice.
    local: list[Assign] = []
    for k, a in enumerate(exact):
        value = a.value
        for power in sorted(value.atoms(sp.Pow), key=sp.default_sort_key):
            if power.exp.is_Integer and not power.base.is_Atom:
                base = names.fresh("inner")
                local.append(Assign(base, power.base))
                value = value.xreplace({power.base: base})
        exact[k] = Assign(a.target, value)
        if k < len(shared):
            local.append(exact[k])
    return InnerPass(
        _rule(inner, integrands),
        tuple(local),
        tuple(exact[len(shared) :]),
    )


def _rule(variable: sp.Symbol, integrands: Sequence[sp.Expr]) -> InnerMeasure:
    found = [analyse(f, variable) for f in integrands]
    kinks = tuple(dict.fromkeys(k for a in found for k in a.kinks))
    if kinks:
        return InnerMeasure(variable, kinks, (), (), frequencies(found))
    strips, growths = [], []
    for a in found:
        if a.strip == sp.oo and a.imaginary_growth is ImaginaryGrowth.EXPONENTIAL:
            continue
        # Where no distance is known, one, from which the rule is refined until it agrees.
        strips.append(sp.S.One if a.strip is None or a.strip == 0 else a.strip)
        growths.append(a.gaussian_coefficient or sp.S.Zero)
    return InnerMeasure(
        variable,
        (),
        tuple(dict.fromkeys(s for s in strips if s != sp.oo)),
        tuple(dict.fromkeys(g for g in growths if g != 0)),
        frequencies(found),
    )
