"""Nodes on the line of κ with the tables on them, to any number of digits.

Trapezoidal rules, each with half the step of the one before; composite Gauss–Legendre rules where a
table has kinks. Far nodes matter more than usual here: without a ridge penalty integrands hold
inverse powers of the conditional variance, which decays for a student that saturates. So the line
reaches as far as the weight times such powers asks for, and the tables carry as many more digits
as the smallest conditional variance has leading zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from ....errors import ConvergenceError
from ....runtime.generated import defined
from ....runtime.precise_averages import InnerRule
from ....runtime.precise_lines import outer_rule
from ....runtime.precise_rules import folded
from ....runtime.precision import local_context
from ....runtime.quadrature import inner_extent
from ....symbolic.lowering.tables import mpmath_table_source
from .. import physics as fe
from ..derive import TABLE_PARAMETERS
from ..refine import exact_parameters

if TYPE_CHECKING:
    from ..derive import SymbolicModel
    from ..model import SpikedRandomFeatures

_SPARE_DIGITS = 10
_FARTHEST = 60
_STEP = 0.4
_FLOAT_DIGITS = 16
_MOST_LEVELS = 7


class LineTables:
    """Rules of increasing fineness for one model.

    Parameters
    ----------
    model : SpikedRandomFeatures
    symbolic : SymbolicModel
    digits : int
    inverse_powers : int
        Highest power of the inverse conditional variance in an integrand.
    """

    def __init__(
        self, model: SpikedRandomFeatures, symbolic: SymbolicModel, digits: int,
        inverse_powers: int,
    ) -> None:  # fmt: skip
        self._model, self._symbolic, self._digits = model, symbolic, digits
        self._powers = inverse_powers
        self._source = mpmath_table_source(
            symbolic.system.definitions,
            node=fe.kappa,
            identifiers=fe.IDENTIFIERS,
            parameters=TABLE_PARAMETERS,
        )
        self._functions = list(symbolic.system.definitions)
        spare = 0
        for _ in range(_MOST_LEVELS):
            self._prepare(spare)
            needed = self._find_reach()
            if needed <= spare:
                return
            spare = needed + _SPARE_DIGITS
        raise ConvergenceError(
            "the conditional variance of the student cannot be resolved at the ends of the line; "
            "ask for fewer digits or a lower order"
        )

    def _prepare(self, spare: int) -> None:
        self.ctx = ctx = local_context(self._digits, spare)
        self.parameters = exact_parameters(self._model, ctx)
        known: Any = self._model._kernel.tables
        names = self._model._kernel.table_parameters
        floats = [np.float64(float(self.parameters[name])) for name in names]
        node = np.zeros(1)
        with np.errstate(divide="ignore", over="ignore"):
            self._width = min(1.0, float(known.outer_scale(node, *floats)))
        inner = {
            slot: inner_extent(*rule) for slot, rule in known.inner_rules(node, *floats).items()
        }
        self._breaks = [ctx.mpf(float(b)) for b in known.breaks(node, *floats)]
        rule = InnerRule(ctx, self._digits + spare, inner)
        tabulate = defined(self._source, ctx=ctx).tables
        values = [self.parameters[fe.IDENTIFIERS[p]] for p in TABLE_PARAMETERS]
        self._even = self._model.derivation.even
        self._known: dict[Any, tuple[Any, ...]] = {}

        def tables(x: Any) -> tuple[Any, ...]:
            if x not in self._known:
                self._known[x] = tabulate(x, *values, rule)
            return self._known[x]

        self._tables = tables
        for probe in (0.0, 0.7, -1.9, 3.1):
            tables(ctx.mpf(probe))
        rule.checked = False

    def _find_reach(self) -> int:
        """Set the reach; return how many more digits than usual its ends need."""
        ctx = self.ctx
        negligible = ctx.mpf(10) ** (-self._digits - _SPARE_DIGITS)
        lost = ctx.mpf(10) ** (self._digits + _SPARE_DIGITS - ctx.dps)
        missing = 0
        reach = ctx.sqrt(2 * ctx.ln10 * (self._digits + _SPARE_DIGITS)) + 2
        while reach < _FARTHEST:
            sizes = []
            for x in (reach, -reach):
                table = dict(zip(self._functions, self._tables(x), strict=True))
                largest = max(1, *(abs(t) for t in table.values())) ** 2
                if self._powers:
                    slope, rest = table.get(fe.mu1, 0), table.get(fe.mu2_squared, 0)
                    variance = slope**2 + rest
                    if variance <= lost:
                        # Rounding is all that is left; how much is missing cannot be told yet.
                        return max(missing, 2 * (ctx.dps - self._digits))
                    missing = max(missing, 1 + int(-ctx.log10(min(variance, ctx.one))))
                    largest *= max(1, variance**-self._powers)
                sizes.append(ctx.npdf(x) * largest)
            if max(sizes) <= negligible:
                self._reach = reach
                return missing
            reach *= ctx.mpf(9) / 8
        raise ConvergenceError(
            "averages over the projection on the spike converge too slowly to be computed; "
            "ask for a lower order or fewer digits"
        )

    def rule(self, level: int) -> tuple[Any, Any, dict[sp.Expr, Any]]:
        """Return weights, nodes and tables of a level; each is twice as fine as the one before."""
        share = max(1.0, self._digits / _FLOAT_DIGITS) ** 0.9
        step = _STEP * self._width / share / 2**level
        found = outer_rule(self.ctx, self._digits, self._reach, step, level, False, self._breaks)
        # Breaks come in pairs, so that the rule is symmetric.
        nodes, weights = zip(*(folded(found) if self._even else found), strict=True)
        columns = zip(*(self._tables(x) for x in nodes), strict=True)
        tables = {
            f: _column(list(values)) for f, values in zip(self._functions, columns, strict=True)
        }
        return _column(weights), _column(nodes), tables

    @property
    def composite(self) -> bool:
        """Whether rules are composite: two that agree then tell of the digits of both."""
        return bool(self._breaks)


def _column(values: Sequence[Any]) -> Any:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
