"""Pass 2: choose how each average over the node is computed.

An integrand that is smooth in the node goes on the fixed nodes of the line, which all averages
share and on which tables are known. A kink or a jump at a place that depends on unknowns or
parameters would cost the trapezoidal rule its accuracy, so such an integrand is cut there:
:class:`~.program.Panels`. The break points come from the arguments of the functions and cases that
are not smooth; those that are affine in the node give one point each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, combinations

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from ..accuracy import parts_of
from ..averages import DataAverage
from ..functions import relu
from ..proximal import MoreauEnvelope, Proximal

_KINKED = (sp.Abs, sp.sign, sp.Heaviside, relu)


def break_points(integrand: sp.Expr, node: sp.Symbol) -> tuple[sp.Expr, ...]:
    """Return where an integrand has kinks or jumps in the node, as far as they are affine.

    Parameters
    ----------
    integrand : Expr
    node : Symbol

    Returns
    -------
    tuple of Expr
        Empty for a smooth integrand, and for one that reads tables: those are known at the fixed
        nodes only, and a smooth table has no break.

    Examples
    --------
    >>> z, m = sp.symbols("z m", real=True)
    >>> break_points(sp.Abs(2 * z - m) + sp.tanh(z), z)
    (m/2,)
    """
    if parts_of(integrand, AppliedUndef):
        return ()
    found: dict[sp.Expr, None] = {}
    for argument in chain.from_iterable(map(pieces, switches(integrand))):
        if argument.has(Proximal, MoreauEnvelope):
            continue
        slope = argument.diff(node)
        if slope != 0 and not slope.has(node):
            found[_ratio(-argument.xreplace({node: sp.S.Zero}), slope)] = None
    return tuple(found)


def switches(integrand: sp.Expr) -> Iterator[sp.Expr]:
    """Iterate over the expressions at whose zeros the integrand is not smooth."""
    for f in sorted(parts_of(integrand, *_KINKED), key=sp.default_sort_key):
        yield f.args[0]
    for f in sorted(integrand.atoms(sp.Max, sp.Min), key=sp.default_sort_key):
        for a, b in combinations(sorted(f.args, key=sp.default_sort_key), 2):
            yield a - b
    for cases in sorted(integrand.atoms(sp.Piecewise), key=sp.default_sort_key):
        for _, condition in cases.args:
            for relation in sorted(condition.atoms(Relational), key=sp.default_sort_key):
                yield relation.lhs - relation.rhs


def pieces(argument: sp.Expr) -> Iterator[sp.Expr]:
    """Iterate over what an argument is in turn, where it is not smooth itself.

    A zero of the wrong piece costs one more cut.
    """
    bent = sorted(parts_of(argument, sp.Max, sp.Min, sp.Abs, relu, sp.Piecewise), key=sp.count_ops)
    if not bent:
        yield argument
        return
    inner = bent[0]
    if isinstance(inner, sp.Piecewise):
        values = [value for value, _ in inner.args]
    elif isinstance(inner, sp.Max | sp.Min):
        values = list(inner.args)
    else:
        values = [inner.args[0], -inner.args[0] if isinstance(inner, sp.Abs) else sp.S.Zero]
    for value in values:
        yield from pieces(argument.xreplace({inner: value}))


def _ratio(numerator: sp.Expr, slope: sp.Expr) -> sp.Expr:
    """Divide; a slope of zero sends the break anywhere, where one more cut does no harm."""
    if slope.is_nonzero:
        return numerator / slope
    # The division is safe to compute whatever the case. One case inside the other: SymPy would join
    # equal branches by an Or, which no target has.
    below = sp.Piecewise((sp.S.Zero, slope < 0), (sp.S.One, True))
    return numerator / (slope + sp.Piecewise((sp.S.Zero, slope > 0), (below, True)))


def describe_measures(
    integrands: Mapping[sp.Expr, str],
    node: sp.Symbol,
    inner_nodes: Mapping[sp.Expr, sp.Symbol] | None = None,
) -> str:
    """Return one line for each average: its rule and its integrand."""
    inner_nodes = inner_nodes or {}
    lines = []
    for average, place in integrands.items():
        if isinstance(average, DataAverage):
            rule = f"mean over the rows of {average.data_name}"
        else:
            breaks = break_points(average.args[0], node)
            cuts = ", ".join(map(str, breaks))
            rule = f"panels between {node} = {cuts}" if breaks else "nodes of the line"
            if inner_nodes:
                names = ", ".join(map(str, (node, *inner_nodes.values())))
                rule = f"nodes of the grid ({names})"
        lines.append(f"{place}: {rule}: {average.args[0]}")
    return "\n".join(lines) if lines else "no averages"
