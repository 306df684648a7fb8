"""Functions that an equation defines: proximal operators without a closed form."""

from __future__ import annotations

import sympy as sp

from ..accuracy import parts_of, rewrite_for_accuracy
from ..proximal import MoreauEnvelope, Proximal
from .program import ScalarRoot


class Roots:
    """Gives each proximal operator a function, and one only."""

    def __init__(self) -> None:
        self._found: dict[tuple[sp.Expr, sp.Symbol], ScalarRoot] = {}

    @property
    def functions(self) -> tuple[ScalarRoot, ...]:
        """All functions that were made."""
        return tuple(self._found.values())

    def called(self, expr: sp.Expr) -> sp.Expr:
        """Replace proximal operators and Moreau envelopes by calls of these functions."""
        expr = expr.xreplace({m: m.rewrite(Proximal) for m in parts_of(expr, MoreauEnvelope)})
        while True:
            # Innermost first: the centre of one may hold another.
            found = [p for p in parts_of(expr, Proximal) if not p.center.has(Proximal)]
            if not found:
                return expr
            expr = expr.xreplace({p: self._call(p) for p in found})

    def _call(self, node: Proximal) -> sp.Expr:
        loss, x = node.loss, node.variable
        key = (loss, x)
        parameters = sorted(loss.free_symbols - {x}, key=str)
        if key not in self._found:
            self._found[key] = _root(f"proximal_{len(self._found) + 1}", loss, x, parameters)
        function = sp.Function(self._found[key].name, real=True)
        return function(node.center, node.step, *parameters)


def _root(name: str, loss: sp.Expr, x: sp.Symbol, parameters: list[sp.Symbol]) -> ScalarRoot:
    unknown = sp.Symbol("root_x", real=True)
    center = sp.Symbol("root_center", real=True)
    step = sp.Symbol("root_step", positive=True)
    arguments = {p: sp.Symbol(f"root_{k}", **p.assumptions0) for k, p in enumerate(parameters)}
    # Where a loss has a kink its derivative jumps and the bracket closes in on the kink; the
    # second derivative there is never asked for.
    first = loss.diff(x)
    second = first.diff(x).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
    renamed = {x: unknown, **arguments}
    first, second = (rewrite_for_accuracy(f.xreplace(renamed)) for f in (first, second))
    return ScalarRoot(
        name=name,
        unknown=unknown,
        arguments=(center, step, *arguments.values()),
        residual=unknown - center + step * first,
        slope=1 + step * second,
        start=center,
    )
