"""Averages over the line for a proof: tables, integrator and bounds of what lies outside."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from ...ball_library import require_flint
from ...errors import CertificationError
from ...numeric.certified_grid import Branch, BranchedFunction
from ...numeric.certified_integrals import Direct, LineIntegrator
from ...numeric.certified_moments import Convolution
from ...symbolic.ball_functions import Ball
from ...symbolic.gaussian_convolutions import GaussianTables, gaussian_tables
from ...symbolic.integrand_tails import integrand_tails, mass_outside
from ...symbolic.lowering.ball_program import BallLoop

if TYPE_CHECKING:
    from ...symbolic.convolution_balls import BranchedBalls, ConvolutionBalls, TableBalls
    from ...symbolic.lowering.lowered import LoweredSystem

# The integrands of saddle-point equations are at most of the fourth degree in the tables.
_DEGREE = 4
# Lines longer than this have integrands that grow almost like the inverse of the normal density.
_FARTHEST = 200


@dataclass(frozen=True, eq=False)
class LineTables:
    """The tables of a lowered system as Gaussian convolutions, before there are numbers.

    Attributes
    ----------
    lowered : LoweredSystem
    tables : GaussianTables
    """

    lowered: LoweredSystem
    tables: GaussianTables

    @classmethod
    def of(cls, lowered: LoweredSystem) -> LineTables:
        """Return the tables of a system.

        Raises
        ------
        UnsupportedExpressionError
            If a table is no convolution that can be enclosed.
        """
        return cls(lowered, gaussian_tables(lowered.definitions, lowered.node))

    def averages(self, parameters: Mapping[str, Ball], bits: int, digits: int) -> LineAverages:
        """Return the averages at given parameters (balls by code name)."""
        lowered = self.lowered
        values = {p: parameters[lowered.identifiers[p]] for p in lowered.table_parameters}
        return LineAverages(lowered, self.tables.balls(values), bits, digits)


class LineAverages:
    """Averages of the sums of a pass over the nodes.

    Parameters
    ----------
    lowered : LoweredSystem
    balls : TableBalls
        Its tables at given parameters.
    bits, digits : int
        Working precision, and wanted digits of the averages.
    """

    def __init__(
        self,
        lowered: LoweredSystem,
        balls: TableBalls,
        bits: int,
        digits: int,
    ) -> None:
        self._node, *names = lowered.program.tables
        self._growth = dict(zip(names, balls.growth, strict=True))
        flint = require_flint()
        self._reach = self._enough(digits)
        self._line = LineIntegrator(
            [convolution(c) for c in balls.convolutions],
            [Direct(branched(direct.function)) for direct in balls.directs],
            balls.combine,
            reach=self._reach,
            bits=bits,
            goal=flint.arb(10) ** -digits,
            even=lowered.program.even,
            breaks=balls.breaks,
        )
        self.panels = 0

    def __call__(
        self, loop: BallLoop, scalars: Mapping[sp.Symbol, Ball], progress: Callable[[], object]
    ) -> list[Ball]:
        """Return enclosures of the averages of the sums, in order.

        `progress` is called at every evaluation of the integrands.

        Raises
        ------
        CertificationError
            If an integrand cannot be enclosed on the line or bounded outside.
        """
        local_values, sums = ({a.target: a.value for a in x} for x in (loop.locals, loop.sums))
        bounds = integrand_tails(
            local_values, sums, node=self._node, tables=self._growth, scalars=scalars
        )
        tails = [mass_outside(bound, self._reach) for bound in bounds]
        integrands = loop.integrands(scalars)

        def counted(tables: Sequence[Ball]) -> Sequence[Ball]:
            progress()
            return integrands(tables)

        found = self._line.integrate(counted, tails)
        self.panels = max(self.panels, self._line.panels)
        return found

    def _enough(self, digits: int) -> Ball:
        """Return where to cut the line: beyond, products of the tables weigh 10^-digits."""
        arb = require_flint().arb
        wanted = arb(10) ** -digits
        reach = arb(max(4, math.ceil(math.sqrt(2 * digits * math.log(10)))))
        sizes = [growth.size for growth in self._growth.values()]
        while reach < _FARTHEST:
            if all(reach >= size.start for size in sizes):
                largest = max((float(size.at(reach).upper()) for size in sizes), default=1.0)
                largest = max(largest, float(reach))
                if math.isfinite(largest):
                    density = (-reach * reach / 2).exp() * arb(largest) ** _DEGREE
                    if density < wanted:
                        return reach
            reach = reach + 1
        raise CertificationError(
            "the tables grow too fast against the normal density: the integrals would run over "
            f"more than {_FARTHEST} standard deviations\n  weaker growth of the activations, or a "
            "smaller spike, is needed"
        )


def convolution(balls: ConvolutionBalls) -> Convolution:
    """Return a convolution as the integrator takes it."""
    functions = tuple(branched(f) for f in balls.functions)
    return Convolution(functions, balls.moments, balls.slope, balls.offset, balls.spread)


def branched(balls: BranchedBalls) -> BranchedFunction:
    """Return a function and its branches as the integrator takes them."""
    branches = tuple(Branch(b.function, b.left, b.right) for b in balls.branches)
    return BranchedFunction(branches, balls.tails)
