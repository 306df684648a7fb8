r"""Proven enclosures of Gaussian averages over the line, of functions of tables.

:math:`\mathbb{E}_\kappa[g_i(\kappa)]` is asked for many times, for sums g_i of one pass over the
nodes of a solver that differ in its unknowns, while the tables in them stay: Gaussian convolutions
(:mod:`.proofs.moments`), functions of κ itself, and polynomials of both. Composite
Gauss–Legendre rules with proven errors (:mod:`.proofs.panels`) are shared by all g_i. The
half-length of a panel, the ellipse on which the g_i are bounded and the number of nodes are found
by trial for each panel and remembered; a panel without a good ellipse is halved.

What is proven: each integral lies in its ball, if python-flint (Arb) computes correct enclosures,
the functions handed over enclose their values and are not finite where they are not analytic, the
bounds of the tails hold and everything is real on the line.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ball_library import require_flint
from ...errors import CertificationError, ParameterError
from .grid import BranchedFunction
from .moments import Convolution, ConvolutionTables, SeriesTables
from .panels import (
    RADII,
    ROUGH_BITS,
    Ball,
    Box,
    WorkLimitError,
    disjoint_gaps,
    error_constant,
    half_ellipse,
    highest_order,
    legendre_rule,
    log_size,
    modulus,
    nodes_needed,
    order_for,
    placed,
    quarters,
    semi_axes,
)

Combine = Callable[[list[Ball]], Sequence[Ball]]

# Half a panel at most in standard deviations by which Gaussians move, for series in this shift.
LONGEST_SHIFT = 1.5

# The ellipse that is tried first, and how often its boxes may be quartered.
_FIRST_RADIUS = RADII.index(3.5)
_QUARTERINGS = 2
# Room for what lies around a kink at the end of a panel.
_ROOM = 1 + 2.0**-20


class TableSource:
    """All tables as functions of κ.

    Parameters
    ----------
    convolutions : list of ConvolutionTables
    directs : list of BranchedFunction
    combine : callable
        From κ and all values to the tables.
    bits : int
        Working precision at nodes.
    """

    def __init__(
        self,
        convolutions: list[ConvolutionTables],
        directs: list[BranchedFunction],
        combine: Combine,
        bits: int,
    ) -> None:
        self.flint = require_flint()
        self.convolutions, self.directs = convolutions, directs
        self.combine, self.bits = combine, bits
        self._constants: dict[int, SeriesTables] = {}

    @property
    def rate(self) -> float:
        """The largest rate at which the shift of a Gaussian grows with κ."""
        return max((c.rate for c in self.convolutions), default=0.0)

    def around(self, centre: Ball, distance: float) -> list[SeriesTables] | None:
        """Return the tables of the convolutions near a centre; None if that is too far for one."""
        result: list[SeriesTables] = []
        for i, convolution in enumerate(self.convolutions):
            if convolution.is_constant:
                result.append(self._constant(i))
                continue
            if convolution.rate * distance <= LONGEST_SHIFT * _ROOM * _ROOM:
                result.append(convolution.around(centre, distance))
                continue
            tables = convolution.far_around(centre, distance)
            if tables is None:
                return None
            result.append(tables)
        return result

    def _constant(self, index: int) -> SeriesTables:
        if index not in self._constants:
            tables = self.convolutions[index]
            self._constants[index] = tables.around(self.flint.arb(0), 1.0)
        return self._constants[index]

    def over(self, point: Ball, local: Sequence[SeriesTables]) -> Sequence[Ball]:
        """Return the tables on a real ball that may contain kinks."""
        values = [point, *(value for tables in local for value in tables.at(point))]
        values += [direct.enclosed(point).real for direct in self.directs]
        return self.combine(values)


@dataclass
class Cell:
    """A box of an ellipse with the tables on it and a bound of the density."""

    box: Box
    depth: int
    tables: Sequence[Ball]
    density: Ball


@dataclass
class Panel:
    """A part of the line between kinks, with all that does not depend on the integrands.

    Attributes
    ----------
    source : TableSource
    left, right : ball
        Exact ends.
    local : list of tables near a centre
        Those of a larger panel if that has been halved.
    base : ball
        Where these have their centre.
    depth : int
        How often the line was halved to get here.
    radius : int
        Index of the ellipse that was best so far.
    order : int
        Number of nodes of the latest integration.
    """

    source: TableSource
    left: Ball
    right: Ball
    local: Sequence[SeriesTables]
    base: Ball
    depth: int = 0
    radius: int = _FIRST_RADIUS
    is_settled: bool = False
    order: int = 0
    _nodes: dict[int, list[tuple[Ball, Sequence[Ball]]]] = field(default_factory=dict)
    _cells: dict[int, list[Cell]] = field(default_factory=dict)
    _models: dict[int, Models] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The series start at an exact point; the middle itself may be known with rounding only.
        self.position, self.half = (self.left + self.right) / 2, (self.right - self.left) / 2
        self.centre = self.position.mid()

    @classmethod
    def between(cls, source: TableSource, left: Ball, right: Ball) -> Panel | None:
        """Return a panel with its own series; None if it is too long for them."""
        centre = ((left + right) / 2).mid()
        local = source.around(centre, float((right - left) / 2) * _ROOM)
        return None if local is None else cls(source, left, right, local, centre)

    def halves(self) -> tuple[Panel, Panel]:
        """Return the two halves, which share the series of this panel."""
        radius = min(self.radius, _FIRST_RADIUS)
        shared = (self.local, self.base, self.depth + 1, radius)
        return (
            Panel(self.source, self.left, self.centre, *shared),
            Panel(self.source, self.centre, self.right, *shared),
        )

    @functools.cached_property
    def _directs(self) -> list[Callable[[Ball, bool], Ball]]:
        return [direct.between(self.left, self.right) for direct in self.source.directs]

    @functools.cached_property
    def middle(self) -> tuple[Ball, Sequence[Ball]]:
        """Return length × density and the tables at the centre."""
        return 2 * self.half * _density(self.centre), self._tables_at(self.centre)

    def nodes(self, order: int) -> list[tuple[Ball, Sequence[Ball]]]:
        """Return weight × density and the tables at each node of a rule."""
        if order not in self._nodes:
            rows = []
            for node, weight in legendre_rule(order, self.source.bits).pairs():
                x = self.position + self.half * node
                rows.append((self.half * weight * _density(x), self._tables_at(x)))
            self._nodes[order] = rows
        return self._nodes[order]

    def _tables_at(self, x: Ball) -> Sequence[Ball]:
        values = [x, *(value for tables in self.local for value in tables.at(x))]
        for function in self._directs:
            value = function(self.source.flint.acb(x), False)
            if not (value.is_finite() and value.imag.contains(0)):
                raise CertificationError(f"a table is not finite and real at {float(x):.6g}")
            values.append(value.real)
        return self.source.combine(values)

    def cells(self, radius: int) -> list[Cell]:
        """Return boxes that cover the upper half of an ellipse; the list may be refined."""
        if radius not in self._cells:
            with self.source.flint.ctx.workprec(ROUGH_BITS):
                rho = RADII[radius]
                self._cells[radius] = [self._cell(box, 0, radius, rho) for box in half_ellipse(rho)]
        return self._cells[radius]

    def keep_only(self, radius: int) -> None:
        """Forget what is known about other ellipses, which takes most of the memory."""
        for known in (self._cells, self._models):
            for other in [x for x in known if x != radius]:
                del known[other]

    def refine(self, radius: int, index: int) -> bool:
        """Cut a box of an ellipse into four; return whether that was still possible."""
        cells = self._cells[radius]
        cell = cells[index]
        if cell.depth == _QUARTERINGS:
            return False
        with self.source.flint.ctx.workprec(ROUGH_BITS):
            rho = RADII[radius]
            cells[index : index + 1] = [
                self._cell(part, cell.depth + 1, radius, rho) for part in quarters(cell.box, rho)
            ]
        return True

    def _cell(self, box: Box, depth: int, radius: int, rho: float) -> Cell:
        if radius not in self._models:
            a, b = semi_axes(rho)
            distance = abs(self.position - self.base) + self.half * a
            raw = [p for t in self.local for p in t.within(distance, self.half * b)]
            self._models[radius] = Models(self.source, self.base, raw)
        place = placed(box, self.position, self.half)
        directs = [function(place, True) for function in self._directs]
        return Cell(box, depth, self._models[radius].on(place, directs), _largest_density(place))


class Models:
    """The tables on complex boxes near a point.

    Tables are combined as polynomials of κ − base, so that what cancels in them, as the squares in
    a variance, cancels before a box is put in. What is no polynomial of the values is combined on
    each box.

    Parameters
    ----------
    source : TableSource
    base : ball
    values : list of acb_poly
        The values of the convolutions as polynomials of κ − base with balls as coefficients.
    """

    def __init__(self, source: TableSource, base: Ball, values: list[Any]) -> None:
        self._source, self._base = source, base
        self._values = [source.flint.acb_poly([base, 1]), *values]
        self._are_polynomials = True
        self._combined: list[tuple[Any, Any, Any]] | None = None

    def on(self, box: Ball, directs: list[Ball]) -> Sequence[Ball]:
        """Return the tables on a box, for enclosures of the direct tables there."""
        if self._combined is not None:
            return [self._enclosed(model, box) for model in self._combined]
        if self._are_polynomials:
            constants = [self._source.flint.acb_poly([value]) for value in directs]
            try:
                combined = self._source.combine([*self._values, *constants])
            except (TypeError, AttributeError, ValueError, ArithmeticError):
                self._are_polynomials = False
            else:
                models = [self._model(table) for table in combined]
                if not directs:
                    self._combined = models
                return [self._enclosed(model, box) for model in models]
        values = [self._enclosed(self._model(value), box) for value in self._values]
        return self._source.combine([*values, *directs])

    def _model(self, table: Any) -> tuple[Any, Any, Any]:
        polynomial = self._source.flint.acb_poly(table)
        slope = polynomial.derivative()
        return polynomial, slope, slope.derivative() * self._source.flint.arb(0.5)

    def _enclosed(self, model: tuple[Any, Any, Any], box: Ball) -> Ball:
        """Return P(c) + P'(c) d + (P''/2)(box) d², d = box − c: Taylor's formula with its rest.

        The rest is a mean of P'' over a segment in the box, so it is in the convex enclosure.
        """
        polynomial, slope, curvature = model
        middle, x = box.mid() - self._base, box - self._base
        d = box - box.mid()
        return polynomial(middle) + d * (slope(middle) + d * curvature(x))


def _density(x: Ball) -> Ball:
    return (-x * x / 2).exp() / (2 * type(x).pi()).sqrt()


def _largest_density(box: Ball) -> Ball:
    """Bound |φ| on a box."""
    flint = require_flint()
    x, y = flint.arb(box.real.abs_lower()), flint.arb(box.imag.abs_upper())
    return (((y * y - x * x) / 2).exp() / (2 * flint.arb.pi()).sqrt()).upper()


Integrands = Callable[[Sequence[Ball]], Sequence[Ball]]

# Half a panel at most.
_HALF = 1.25
# Where panels would be this many times shorter because Gaussians move fast, functions that are
# smooth on larger scales are tried as such.
_SHORT = 4
# Bits of the tables at least: they cancel in variances, whatever the goal.
_LEAST_ACCURACY = 40
# The goal of one panel is this part of the goal.
_SHARE = 1 / 16


# Panels of the line (four times as many under each Gaussian), evaluations of the integrands in one
# integration, and halvings of a panel, at the most.
MOST_PANELS, MOST_EVALUATIONS, _DEEPEST = 1024, 40_000, 48


class LineIntegrator:
    r"""Averages over κ ~ N(0, 1) of functions of tables.

    Parameters
    ----------
    convolutions : sequence of Convolution
    directs : sequence of BranchedFunction
        Tables that are functions of κ itself, real on the line.
    combine : callable
        Maps κ, the moments of all convolutions in order and the direct tables, as one list of balls
        (real at nodes, complex on boxes), to the tables that the integrands take. Its result has to
        be analytic wherever it is finite.
    reach : number
        R: the integrals run over [−R, R].
    bits : int
        Working precision.
    goal : number
        Wanted radius relative to :math:`\mathbb{E}|g_i|`; it steers the work, not the proof.
    even : bool
        All integrands are even in κ, so that half of the line is enough.
    breaks : sequence of ball
        Further points at which panels end.

    Raises
    ------
    ParameterError
        If an argument is out of its range.
    CertificationError
        If a function of a convolution is not bounded where it has to be.
    MissingDependencyError
        If python-flint is not installed.
    """

    def __init__(
        self,
        convolutions: Sequence[Convolution],
        directs: Sequence[BranchedFunction],
        combine: Combine,
        *,
        reach: Any,
        bits: int,
        goal: Any,
        even: bool = False,
        breaks: Sequence[Ball] = (),
    ) -> None:
        self._flint = flint = require_flint()
        self._bits, self._even = bits, even
        with flint.ctx.workprec(bits):
            self._reach, self._goal = flint.arb(reach), flint.arb(goal)
            if not 0 < self._goal < 1:
                raise ParameterError(f"goal has to be between 0 and 1, not {self._goal}")
            if not (self._reach > 0 and self._reach.is_exact() and self._reach.is_finite()):
                raise ParameterError(f"reach has to be an exact positive number, not {reach}")
            accuracy = max(_LEAST_ACCURACY, math.ceil(-log_size(self._goal) / math.log(2)) + 4)
            tables = [
                ConvolutionTables(c, bits=bits, goal=accuracy, most=4 * MOST_PANELS)
                for c in convolutions
            ]
            self._source = TableSource(tables, list(directs), combine, bits)
            self._panels: list[Panel] = []
            self._cut([*breaks, *(kink for f in directs for kink in f.kinks)])

    @property
    def panels(self) -> int:
        """Number of panels of the latest integration."""
        return len(self._panels)

    @property
    def nodes(self) -> int:
        """Number of nodes of the latest integration."""
        return sum(panel.order for panel in self._panels)

    def integrate(self, integrands: Integrands, tails: Sequence[Ball] | None = None) -> list[Ball]:
        r"""Return proven balls of :math:`\mathbb{E}[g_i(\kappa)]`.

        Parameters
        ----------
        integrands : callable
            Maps the tables to the :math:`g_i`, real for real tables and analytic wherever they are
            finite; it may hold fat balls for its parameters.
        tails : sequence of ball, optional
            Bounds of :math:`\int_{|\kappa| > R} |g_i|\varphi`, both sides together; without them
            the integrals are those over [−R, R].

        Returns
        -------
        list of ball

        Raises
        ------
        CertificationError
            If an integrand is not proven analytic around a part of the line, or the work exceeds
            the limits.
        """
        flint = self._flint
        with flint.ctx.workprec(self._bits):
            work = _Work(integrands, self._goal)
            totals = work.over_gaps(self._source, self._gaps, self._panels)
            self._panels = work.over_panels(self._panels, totals)
            if self._even:
                totals = [2 * total for total in totals]
            if tails is not None:
                if len(tails) != len(totals):
                    raise ParameterError(
                        f"tails has to hold one bound for each of the {len(totals)} integrands, "
                        f"not {len(tails)}"
                    )
                totals = [
                    total + flint.arb(0, flint.arb(tail).upper())
                    for total, tail in zip(totals, tails, strict=True)
                ]
            for total in totals:
                if not total.is_finite():
                    raise CertificationError(
                        "an integral over the line is not finite: an integrand, or its bound far "
                        "out, has no finite enclosure"
                    )
            return totals

    def _cut(self, points: Sequence[Ball]) -> None:
        """Divide the line into panels between kinks, and the gaps that these lie in."""
        arb = self._flint.arb
        first = arb(0) if self._even else -self._reach
        gaps = [
            (left.max(first), right.min(self._reach))
            for left, right in disjoint_gaps(points)
            if right > first and left < self._reach
        ]
        starts = [first, *(right for _, right in gaps)]
        ends = [*(left for left, _ in gaps), self._reach]
        for left, right in zip(starts, ends, strict=True):
            if left < right:
                self._lay(left, right)
        self._gaps = [gap for gap in gaps if gap[0] < gap[1]]

    def _lay(self, start: Ball, end: Ball) -> None:
        """Add panels from one point to another, each with series for all tables."""
        source, most = self._source, MOST_PANELS
        shortest = LONGEST_SHIFT / source.rate if source.rate > 0 else math.inf
        half = _HALF if shortest < _HALF / _SHORT else min(_HALF, shortest)
        pending = _divided(start, end, float(end - start) / (2 * half), most)
        laid: list[tuple[Ball, Ball, Panel | None]] = []
        while pending:
            left, right = pending.pop()
            pieces = float(right - left) / (2 * shortest)
            panel = Panel.between(source, left, right) if pieces > 1 else None
            if panel is not None or pieces <= 1:
                laid.append((left, right, panel))
            else:
                pending += _divided(left, right, 2 if pieces > 2 * _SHORT else pieces, most)
            if len(self._panels) + len(laid) + len(pending) > most:
                raise WorkLimitError(
                    f"more than {most} panels are needed: the Gaussians move by {source.rate:.3g} "
                    "of their standard deviations for each unit of the line; less is needed, as "
                    "from an alignment further from 1 or a weaker spike"
                )
        # Short panels always have series; their number is known before the first is made.
        for left, right, panel in laid:
            made = panel or Panel.between(source, left, right)
            assert made is not None
            self._panels.append(made)


def _divided(left: Ball, right: Ball, pieces: float, most: int) -> list[tuple[Ball, Ball]]:
    """Return the parts of an interval, from right to left; one too many is as good as more."""
    count = max(1, math.ceil(min(pieces, most + 1)))
    edges = [left + (right - left) * k / count for k in range(1, count)]
    return list(itertools.pairwise([left, *(edge.mid() for edge in edges), right]))[::-1]


class _Work:
    """One integration: its integrands, goal and what has been spent."""

    def __init__(self, integrands: Integrands, goal: Ball) -> None:
        self._flint = require_flint()
        self._integrands = integrands
        self._most = highest_order(math.ceil(-log_size(goal) / math.log(2)))
        self._goal = log_size(goal)
        self._evaluations = 0

    def over_gaps(
        self, source: TableSource, gaps: list[tuple[Ball, Ball]], panels: list[Panel]
    ) -> list[Ball]:
        """Return crude enclosures of the integrals over the gaps, which are as wide as rounding."""
        totals: list[Ball] = []
        for left, right in gaps:
            point = left.union(right)
            beside = next((p for p in panels if p.left == right or p.right == left), None)
            if beside is None:
                raise CertificationError(
                    f"kinks near {float(point):.6g} are not told apart: they nearly coincide, and "
                    "more digits may separate them"
                )
            values = self._values(source.over(point, beside.local))
            parts = [(right - left) * _density(point) * value for value in values]
            totals = [t + x for t, x in zip(totals, parts, strict=True)] if totals else parts
        return totals

    def over_panels(self, panels: list[Panel], totals: list[Ball]) -> list[Panel]:
        """Add the integrals over all panels; return these as they were halved."""
        tolerances = self._tolerances(panels)
        totals += [self._flint.arb(0)] * (len(tolerances) - len(totals))
        pending, done = panels[::-1], list[Panel]()
        while pending:
            panel = pending.pop()
            result = self._ellipse(panel, tolerances)
            if result is None:
                if panel.depth == _DEEPEST or len(pending) + len(done) > MOST_PANELS:
                    raise CertificationError(
                        "an integrand is not proven analytic around the line near "
                        f"{float(panel.centre):.6g}: it may have a singularity there, or its "
                        "parameters are not known well enough"
                    )
                pending += panel.halves()[::-1]
                continue
            order, bounds = result
            constant = error_constant(RADII[panel.radius], order) * panel.half
            for i, bound in enumerate(bounds):
                totals[i] += self._flint.arb(0, (constant * bound).upper())
            for weight, tables in panel.nodes(order):
                for i, value in enumerate(self._values(tables)):
                    totals[i] += weight * value
            panel.order = order
            done.append(panel)
        return done

    def _values(self, tables: Sequence[Ball]) -> Sequence[Ball]:
        self._evaluations += 1
        if self._evaluations > MOST_EVALUATIONS:
            raise WorkLimitError(
                f"an integral needs more than {MOST_EVALUATIONS} evaluations: the "
                "integrands vary too fast, or an ellipse without a pole is too narrow"
            )
        return self._integrands(tables)

    def _tolerances(self, panels: list[Panel]) -> list[float]:
        """Return logarithms of errors that panels may have; they only steer.

        They follow E|g|, but there is nothing to be won below what the values are known to.
        """
        sizes: list[Ball] = []
        noises: list[Ball] = []
        zero = self._flint.arb(0)
        for panel in panels:
            length, tables = panel.middle
            values = [self._flint.acb(v) for v in self._values(tables)]
            sizes, noises = sizes or [zero] * len(values), noises or [zero] * len(values)
            for i, value in enumerate(values):
                if value.is_finite():
                    sizes[i] += modulus(value) * length
                    noises[i] += value.real.rad() * length
        logs = [log_size(size) for size in sizes]
        largest = max((x for x in logs if x > -math.inf), default=0.0)
        return [
            max((x if x > -math.inf else largest) + self._goal, log_size(noise)) + math.log(_SHARE)
            for x, noise in zip(logs, noises, strict=True)
        ]

    def _ellipse(self, panel: Panel, tolerances: list[float]) -> tuple[int, list[Ball]] | None:
        """Return the number of nodes and bounds on an ellipse; None if the panel is too long."""
        tried: dict[int, tuple[float, list[Ball]] | None] = {}

        def needed(radius: int) -> float:
            if not 0 <= radius < len(RADII):
                return math.inf
            if radius not in tried:
                tried[radius] = self._tried(panel, radius, tolerances)
            result = tried[radius]
            return math.inf if result is None else result[0]

        radius = panel.radius
        while radius < len(RADII) - 1 and needed(radius) == math.inf:
            radius += 1
        if not panel.is_settled or needed(radius) > self._most:
            while needed(radius - 1) < needed(radius):
                radius -= 1
            while needed(radius + 1) < needed(radius):
                radius += 1
        result, order = tried[radius], order_for(needed(radius))
        if result is None or order is None or result[0] > self._most:
            return None
        panel.radius, panel.is_settled = radius, True
        panel.keep_only(radius)
        return order, result[1]

    def _tried(
        self, panel: Panel, radius: int, tolerances: list[float]
    ) -> tuple[float, list[Ball]] | None:
        """Return the number of nodes that an ellipse needs and the bounds; None if it has poles."""
        cells = panel.cells(radius)
        bounds = [self._flint.arb(0)] * len(tolerances)
        with self._flint.ctx.workprec(ROUGH_BITS):
            k = 0
            while k < len(cells):
                sizes = [modulus(self._flint.acb(v)) for v in self._values(cells[k].tables)]
                if not all(size.is_finite() for size in sizes):
                    if not panel.refine(radius, k):
                        return None
                    continue
                density = cells[k].density
                bounds = [
                    bound.max(size * density) for bound, size in zip(bounds, sizes, strict=True)
                ]
                k += 1
            half = log_size(panel.half)
            nodes = [
                nodes_needed(log_size(bound) + half, tolerance, RADII[radius])
                for bound, tolerance in zip(bounds, tolerances, strict=True)
            ]
            return max(2.0, *nodes), [bound.upper() for bound in bounds]
