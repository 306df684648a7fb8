"""Quadrature rules: what one is, how fine it is and how far it goes, for numbers of every kind.

A rule on the line, on panels or on a grid of several variables is a :class:`Rule`, whether its
numbers are floats in arrays of NumPy (:mod:`.quadrature`, :mod:`.product_grids`), numbers of many
digits (:mod:`.precise_lines`) or balls (:mod:`giantstep.numeric.proofs.panels`). Where rules end,
which steps they have and how both change from level to level is said here, once: files carry copies
of this text, and for C and Julia it is translated (:mod:`giantstep.symbolic.lowering.driver`). So
functions that are translated keep to the part of Python that those can say.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import mpmath

# Where the first rule ends: the normal density there is 5e-25, so that integrands may grow to 1e8.
REACH = 10.5
# The density is a number no farther than this.
FARTHEST_REACH = 37.0
# Each refinement goes farther, and each coarser rule of a level less far: what lies at the ends is
# part of the difference of two rules.
LONGER_REACH = 1.2
NESTED_REACH = 0.9
# Radius of a grid of several variables, coarser because nodes multiply: the density of the square
# of the distance there is 1e-14 of its largest value. Doubling the nodes of two variables divides
# distances by the square root of two.
GRID_REACH = 8.8
GRID_REFINEMENT = math.sqrt(2.0)
LONGER_GRID_REACH = math.sqrt(1.2)
# How often rules are refined, as long as that brings something.
MOST_REFINEMENTS = 7
# The finest level that a narrow integrand asks for, and the last of all.
FINEST_LEVEL = 10
LAST_LEVEL = FINEST_LEVEL + MOST_REFINEMENTS
# Trapezoidal step of the first rule of the line, relative to the width of its tables. 0.25 gives
# 1e-16 for smoothed activations; the error estimate of 0.13 is good enough to show 1e-11, and a few
# more nodes cost less than a second attempt.
FIRST_STEP = 0.13
# Trapezoidal steps of a grid, of the node and of inner nodes, and length of panels between break
# points, all per unit width.
GRID_STEP = 0.17
GRID_INNER_STEP = 0.4
GRID_PANEL = 3.0
# A grid is refined up to so many nodes; more are only taken where the first level asks for them.
MOST_GRID_NODES = 2**18
MOST_FIRST_NODES = 2**21
# Where a solution makes integrands narrow, the first level has no more.
MOST_NARROW_NODES = 2**20
# Length of a panel of the line between break points, at the most.
PANEL = 1.5
# Panels of inner rules hold at most so many radians of a wave, which sixteen nodes resolve.
PANEL_PHASE = 15.0
# Panels of the first rule in each piece of a line that is cut at moving points.
MOVING_PANELS = 16
# Nodes at which is looked how tables grow. Squares of tables times the density are so small where a
# rule may end, relative to the largest; of a grid, whose nodes multiply, too.
REACH_NODES = 43
NEGLIGIBLE = 1e-18
NEGLIGIBLE_ON_GRID = 1e-13
# Gauss-Legendre rule with 16 nodes on [-1, 1], which is symmetric: positive nodes, their weights.
# leggauss of NumPy has weights that are up to 63 units in the last place off.
LEGENDRE_NODES = (
    0.09501250983763744, 0.2816035507792589, 0.45801677765722737, 0.6178762444026438,
    0.755404408355003, 0.8656312023878318, 0.9445750230732326, 0.9894009349916499,
)  # fmt: skip
LEGENDRE_WEIGHTS = (
    0.1894506104550685, 0.18260341504492358, 0.16915651939500254, 0.14959598881657674,
    0.12462897125553388, 0.09515851168249279, 0.062253523938647894, 0.027152459411754096,
)  # fmt: skip
PANEL_ORDER = 2 * len(LEGENDRE_NODES)
# exp(-44) = 8e-20: what trapezoidal rules aim at. Poles of second order at the end of the strip, as
# of tanh**2, cost a factor of some 200.
EXPONENT = 44.0
# Steps shrink by the golden ratio and four over it in turn. With halves of one another, two rules
# would see a wave in resonance with both as the same slow one, and agree on a wrong number.
GOLDEN = (1 + math.sqrt(5)) / 2


class Rule:
    """Nodes and weights; iterating gives these two.

    Parameters
    ----------
    nodes : sequence
        Of a rule in several variables one sequence for each.
    weights : sequence
        With the density of the normal law, unless a function says otherwise.
    level : int
        How often it has been refined.
    """

    # Files that are loaded without a module's name have no data classes.

    def __init__(self, nodes: Any, weights: Any, level: int = 0) -> None:
        self.nodes, self.weights, self.level = nodes, weights, level

    def __iter__(self) -> Iterator[Any]:
        yield self.nodes
        yield self.weights

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """Return each node with its weight."""
        return zip(self.nodes, self.weights, strict=True)


def trapezoidal_step(strip, growth=0.0, frequency=0.0, exponent=EXPONENT):
    """Return the largest step h whose discretisation error is below exp(-exponent).

    Parameters
    ----------
    strip : float
        Half-width of the strip of analyticity of the integrand, positive; may be infinite.
    growth : float
        The integrand grows like exp(growth * y**2) in the imaginary direction; >= 0.
    frequency : float
        And like exp(frequency * |y|), as a sine of this frequency does; >= 0.
    exponent : float
        44 is 8e-20, up to the size of the integrand at the end of the strip.

    Notes
    -----
    The error is exp(-2 pi y/h + y**2 (1/2 + growth) + frequency y) for every y inside the strip,
    the 1/2 being the growth of the normal density; the best y is the end of the strip or where the
    bound is flat.
    """
    rate = 0.5 + growth
    y = min(strip, math.sqrt(exponent / rate))
    return 2 * math.pi * y / (exponent + rate * y * y + frequency * y)


def refined_step(step, refinement):
    """Return the step of a rule after some refinements, of which two divide it by four."""
    ratio = 1 / GOLDEN
    for _ in range(refinement):
        step *= ratio
        ratio = 0.25 / ratio
    return step


def inner_reach(refinement):
    """Return where inner rules end after some refinements."""
    reach = REACH
    for _ in range(refinement):
        reach = min(LONGER_REACH * reach, FARTHEST_REACH)
    return reach


def fixed_end(first, level, back):
    """Return where rules end: the tables say how far they matter."""
    return first


def moving_end(first, level, back):
    """Return where a rule ends that moves with unknowns: coarser ones sooner."""
    farthest = max(first, FARTHEST_REACH)
    reach = first
    growths = level if level < MOST_REFINEMENTS else MOST_REFINEMENTS
    for _ in range(growths):
        reach *= LONGER_REACH
    reach = min(reach, farthest)
    for _ in range(back):
        reach *= NESTED_REACH
    return reach


def grid_end(first, level, back):
    """Return the radius of a grid: coarser ones end sooner, and the density ends what is gained."""
    farthest = max(first, FARTHEST_REACH)
    reach = first
    for _ in range(level):
        reach *= LONGER_GRID_REACH
    reach = min(reach, farthest)
    for _ in range(back):
        reach *= NESTED_REACH
    return reach


def line_coarseness(level, back):
    """Return the steps of a rule relative to those of the finest one of the first level."""
    size = 1.0
    for _ in range(level):
        size *= 0.5
    for _ in range(back):
        size *= 2.0
    return size


def grid_coarseness(level, back):
    """Return the steps of a grid relative to those of the finest one of the first level."""
    size = 1.0
    for _ in range(level):
        size /= GRID_REFINEMENT
    for _ in range(back):
        size *= 2.0
    return size


def panel_count(level, back):
    """Return the number of panels in each piece of a line that is cut at moving points."""
    panels = MOVING_PANELS
    for _ in range(level - back):
        panels *= 2
    # Half and a quarter of the first rule's.
    if back > level:
        panels = 8
    if back > level + 1:
        panels = 4
    return panels


def farther(reach, tables, count, negligible):
    """Return the reach if it suffices for tables, else a longer one.

    `tables` holds each at `REACH_NODES` nodes from -reach to reach, one after the other.
    """
    for t in range(count):
        largest = -math.inf
        at_ends = -math.inf
        for j in range(REACH_NODES):
            size = abs(tables[REACH_NODES * t + j])
            node = reach * (2.0 * j / (REACH_NODES - 1) - 1.0)
            if size > 0.0:
                size = 2.0 * math.log(size) - 0.5 * node * node
                largest = max(largest, size)
                if j == 0 or j == REACH_NODES - 1:
                    at_ends = max(at_ends, size)
        if at_ends - largest > math.log(negligible) and reach < FARTHEST_REACH:
            return min(1.2 * reach, FARTHEST_REACH)
    return reach


def ball_volume(dimension, radius):
    """Return the volume of a ball."""
    return math.pi ** (dimension / 2) / math.gamma(dimension / 2 + 1) * radius**dimension


# -- rules of numbers of many digits


def equidistant(ctx: Any, step: Any, count: int, level: int = 0) -> Rule:
    """Return the trapezoidal rule with nodes k * step, \\|k\\| <= count."""
    nodes = [k * step for k in range(-count, count + 1)]
    right = [step * ctx.npdf(x) for x in nodes[count:]]
    return Rule(nodes, [*right[:0:-1], *right], level)


def composite(
    ctx: Any, breaks: Iterable[Any], reach: Any, longest: Any, rule: Rule, level: int = 0
) -> Rule:
    """Return a Gauss–Legendre rule on panels from -reach to reach that are cut at break points.

    Parameters
    ----------
    ctx : mpmath context
    breaks : iterable of number
        Those beyond the reach do not matter.
    reach : number
    longest : number
        Length of a panel, at the most.
    rule : Rule
        Of each, on [-1, 1], without density.
    """
    nodes, weights = [], []
    for left, right in pairwise([-reach, *sorted(b for b in breaks if abs(b) < reach), reach]):
        panels = int(ctx.ceil((right - left) / longest))
        for k in range(panels):
            half = (right - left) / (2 * panels)
            middle = left + (2 * k + 1) * half
            for t, weight in rule.pairs():
                x = middle + half * t
                nodes.append(x)
                weights.append(half * weight * ctx.npdf(x))
    return Rule(nodes, weights, level)


def legendre(ctx: Any, order: int) -> Rule:
    """Return the Gauss–Legendre rule with 3 * 2**(order - 1) nodes on [-1, 1], without density."""
    # In order, so that the mirror image of a list of nodes is the list backwards.
    pairs = sorted(mpmath.calculus.quadrature.GaussLegendre(ctx).calc_nodes(order, ctx.prec))
    return Rule([x for x, _ in pairs], [w for _, w in pairs], order)


def legendre_order(ctx: Any, digits: int, share: float = 3) -> int:
    """Return the order of a rule for so many digits, a power of two of nodes for `share` digits."""
    return max(2, int(ctx.ceil(ctx.log(max(digits, 4) / share, 2))))


def folded(rule: Rule) -> Rule:
    """Return the nodes x >= 0 of a symmetric rule with weights for a sum that is even."""
    kept = [(x, w if x == 0 else 2 * w) for x, w in rule.pairs() if x >= 0]
    return Rule([x for x, _ in kept], [w for _, w in kept], rule.level)
