r"""Panels of the line with cached tables, for :mod:`.certified_integrals`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ball_library import require_flint
from ..errors import CertificationError
from .certified_grid import BranchedFunction
from .certified_moments import ConvolutionTables
from .certified_panels import (
    RADII,
    ROUGH_BITS,
    Ball,
    Box,
    half_ellipse,
    legendre_rule,
    placed,
    quarters,
    semi_axes,
)
from .certified_series import SeriesTables

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
        found: list[SeriesTables] = []
        for i, convolution in enumerate(self.convolutions):
            if convolution.is_constant:
                found.append(self._constant(i))
                continue
            if convolution.rate * distance <= LONGEST_SHIFT * _ROOM * _ROOM:
                found.append(convolution.around(centre, distance))
                continue
            tables = convolution.far_around(centre, distance)
            if tables is None:
                return None
            found.append(tables)
        return found

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
            for node, weight in legendre_rule(order, self.source.bits):
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
