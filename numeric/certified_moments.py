r"""Gaussian convolutions as functions of a complex variable, with proven errors.

The tables of a solver are :math:`t_j(\kappa) = \mathbb{E}_z[F(A(\kappa) + Bz)\,z^j]` with
:math:`A(\kappa) = A(0) + A'\kappa`, entire in κ for any F. Around a centre they are power series:
in the shift of the Gaussian (:mod:`.certified_series`), for any F and distances of about B, and by
the power series of F (:mod:`.certified_discs`), for distances of many B where F is analytic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..ball_library import require_flint
from ..errors import CertificationError, ParameterError
from .certified_discs import DiscTables
from .certified_grid import BranchedFunction, Grid, GridPanel
from .certified_panels import ROUGH_BITS, Ball, log_size, modulus
from .certified_series import LocalTables
from .certified_tails import shifted_mass

# The line around a centre is widened in steps until the rest is negligible, at most so far.
_WIDENINGS = 80
# How often the grid may be made anew with more nodes for one centre.
_SHARPENINGS = 3
# Where the size of a function under the Gaussian is looked at, in standard deviations.
_AROUND = tuple(k / 2 for k in range(-24, 25))


@dataclass(frozen=True)
class Convolution:
    r"""The tables :math:`\mathbb{E}_z[F_i(A(0) + A'\kappa + Bz)\,z^j]`, z ~ N(0, 1).

    Attributes
    ----------
    functions : tuple of BranchedFunction
        The :math:`F_i`, real on the line, with bounds of their tails.
    moments : tuple of pairs of int
        (i, j): index of the function and power of z; one table for each, in this order.
    slope, offset, spread : ball
        A', A(0) and B > 0, real. An exact slope 0 makes the tables constants.

    Raises
    ------
    ParameterError
        If B is not positive, or a pair names no function or a negative power.
    """

    functions: tuple[BranchedFunction, ...]
    moments: tuple[tuple[int, int], ...]
    slope: Ball
    offset: Ball
    spread: Ball

    def __post_init__(self) -> None:
        if not self.functions or not self.moments:
            raise ParameterError("functions and moments have to hold at least one entry each")
        if not self.spread > 0:
            raise ParameterError(f"spread has to be a positive ball, not {self.spread}")
        for function, power in self.moments:
            if not 0 <= function < len(self.functions) or power < 0:
                raise ParameterError(
                    f"moments has to hold pairs (index of a function below {len(self.functions)}, "
                    f"power >= 0), not {(function, power)}"
                )


class ConvolutionTables:
    """A convolution with the grid on which its functions are sampled.

    Parameters
    ----------
    convolution : Convolution
    bits, goal : int
        Working precision, and bits of accuracy relative to the size of the tables.
    most : int
        Panels of the grid at most.

    Raises
    ------
    CertificationError
        If a function is not bounded where its tail bounds do not hold yet.
    """

    def __init__(self, convolution: Convolution, *, bits: int, goal: int, most: int) -> None:
        self._flint = require_flint()
        self._convolution = convolution
        self._bits, self._goal = bits, goal
        self._most, self._sharpness = most, goal
        self._grid = self._made_grid()
        self._middles = [self._middle(f) for f in convolution.functions]

    @property
    def is_constant(self) -> bool:
        """Whether the tables do not depend on κ."""
        return bool(self._convolution.slope == 0)

    @property
    def rate(self) -> float:
        """About \\|A'\\|/B: the tables vary on the scale of its inverse."""
        return abs(float(self._convolution.slope.mid() / self._convolution.spread.mid()))

    def _made_grid(self) -> Grid:
        with self._flint.ctx.workprec(self._bits):
            width = float(self._convolution.spread.mid())
            return Grid(
                self._convolution.functions,
                width,
                bits=self._bits,
                goal=self._sharpness,
                most=self._most,
            )

    def around(self, centre: Ball, distance: float) -> LocalTables:
        r"""Return the tables near a centre.

        Parameters
        ----------
        centre : ball
            Exact and real.
        distance : float
            Largest \\|κ − centre\\| on the line, at which the goal shall be met.

        Raises
        ------
        CertificationError
            If a function is not analytic or does not fall off under the Gaussian as far as can be
            proven, or work is exhausted.
        """
        with self._flint.ctx.workprec(self._bits):
            local = LocalTables(self, self._convolution, self._goal, centre, distance)
            for _ in range(_SHARPENINGS):
                missing = local.missing_bits
                if not missing > 0:
                    break
                # A function that grows is far larger on a panel than under the Gaussian there.
                self._sharpness += math.ceil(min(missing + 2, 2 * self._goal))
                self._grid = self._made_grid()
                local = LocalTables(self, self._convolution, self._goal, centre, distance)
            return local

    def far_around(self, centre: Ball, distance: float) -> DiscTables | None:
        r"""Return the tables near a centre for distances at which \\|s\\| is large, if there are.

        Parameters
        ----------
        centre, distance
            As for :meth:`around`.
        """
        with self._flint.ctx.workprec(self._bits):
            try:
                return DiscTables(
                    self,
                    self._convolution,
                    goal=self._goal,
                    bits=self._bits,
                    centre=centre,
                    distance=distance,
                )
            except CertificationError:
                # The functions are not smooth enough so far.
                return None

    def gathered(self, offset: Ball, shift: Ball) -> tuple[list[GridPanel], Ball, Ball]:
        """Return the panels under the Gaussian around an offset, and L on the left and right."""
        spread = self._convolution.spread
        scales = self._scales(offset)
        tolerance = -(self._goal + 4) * math.log(2)
        cutoff = math.sqrt(-2 * tolerance)
        zero = self._flint.arb(0)
        with self._flint.ctx.workprec(ROUGH_BITS):
            for _ in range(_WIDENINGS):
                reach = self._flint.arb(cutoff)
                masses = self.tails(offset, reach, reach, (shift, zero))
                if all(
                    mass is not None and log_size(mass) <= scales[i] + tolerance
                    for (i, _), mass in zip(self._convolution.moments, masses, strict=True)
                ):
                    break
                cutoff += max(0.5, cutoff / 16)
            else:
                raise CertificationError(
                    "a Gaussian average does not converge fast enough: bounds of its function far "
                    f"out fall too slowly around {float(offset):.6g}"
                )
        panels, left, right = self._grid.covering(
            (offset - spread * cutoff).lower(), (offset + spread * cutoff).upper()
        )
        return panels, ((offset - left) / spread).lower(), ((right - offset) / spread).lower()

    def tails(
        self, offset: Ball, left: Ball, right: Ball, shift: tuple[Ball, Ball]
    ) -> list[Ball | None]:
        """Bound for each moment what lies beyond L on the left and on the right."""
        found = []
        for i, power in self._convolution.moments:
            function = self._convolution.functions[i]
            if function.tails is None:
                raise ParameterError("a function under a Gaussian needs bounds of its tails")
            below, above = function.tails
            total: Ball | None = self._flint.arb(0)
            for bounds, start, cutoff in (
                ((above, below), offset, right),
                ((below, above), -offset, left),
            ):
                mass = shifted_mass(
                    bounds,
                    self._middles[i],
                    offset=start,
                    spread=self._convolution.spread,
                    cutoff=cutoff,
                    power=power,
                    shift=shift,
                )
                total = None if total is None or mass is None else total + mass
            found.append(total)
        return found

    def _middle(self, function: BranchedFunction) -> Ball:
        """Bound a function where its tail bounds do not hold."""
        if function.tails is None:
            raise ParameterError("a function under a Gaussian needs bounds of its tails")
        below, above = function.tails
        with self._flint.ctx.workprec(ROUGH_BITS):
            reach = below.start.max(above.start).upper()
            largest = function.largest(-reach, reach)
        if not largest.is_finite():
            raise CertificationError(
                f"a function under a Gaussian average is not proven bounded within "
                f"{float(reach):g} of 0: it may have a singularity"
            )
        return largest

    def _scales(self, offset: Ball) -> list[float]:
        """Return logs of the functions' mean sizes around an offset; they only steer."""
        with self._flint.ctx.workprec(ROUGH_BITS):
            scales = []
            for function in self._convolution.functions:
                sizes = [
                    log_size(size) - x * x / 2
                    for x in _AROUND
                    if (
                        size := modulus(
                            function.enclosed((offset + self._convolution.spread * x).mid())
                        )
                    ).is_finite()
                ]
                largest = max(sizes, default=-math.inf)
                scales.append(max(largest - 1, -2.0 * self._goal))
            return scales
