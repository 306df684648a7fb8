"""Quadrature rules for the standard normal weight, as nodes and weights.

Every weight includes the normal density, so ``sum(w * f(x))`` approximates E f(x). The rules are
plain NumPy: generated kernels carry a copy of this file.

- trapezoidal rule on a truncated line: error exp(-2 pi y / h) for an integrand that is analytic
  in the strip |Im x| < y; for tanh it needs 3-4 times fewer nodes than Gauss-Hermite;
- Gauss-Hermite: exact for polynomials, faster than geometric for entire functions of exponential
  type (sin, exp);
- composite Gauss-Legendre between given break points, for kinks and jumps.
"""

import math

import numpy as np

from .rules import (
    LEGENDRE_NODES,
    LEGENDRE_WEIGHTS,
    NEGLIGIBLE,
    PANEL,
    PANEL_ORDER,
    PANEL_PHASE,
    REACH,
    REACH_NODES,
    Rule,
    farther,
    inner_reach,
    refined_step,
    trapezoidal_step,
)

_PANEL_RULE = (
    np.array([*(-x for x in LEGENDRE_NODES[::-1]), *LEGENDRE_NODES]),
    np.array([*LEGENDRE_WEIGHTS[::-1], *LEGENDRE_WEIGHTS]),
)
# Up to here 48 nodes of Gauss-Hermite integrate an oscillation to 1e-16.
_HERMITE_FREQUENCY = 5.0
# By their number of nodes, which are the eigenvalues of a matrix.
_HERMITE_RULES: dict[int, Rule] = {}
# Inner rules are refined until tables agree to this, relative to their largest value; or to that,
# where refining brings levels no closer.
_TABLE_TOLERANCE = 4e-15
_TABLE_RESOLVED = 1e-9


def trapezoidal_rule(step, reach=REACH):
    """Return nodes k*step, up to the first with |k*step| >= reach, and weights; shape (n,)."""
    return equidistant_rule(step, math.ceil(reach / step))


def equidistant_rule(step, count):
    """Return nodes k*step with |k| <= count, and weights."""
    x = step * np.arange(-count, count + 1)
    return Rule(x, step * normal_density(x))


def halved(rule):
    """Return the nodes x >= 0 of a symmetric rule with weights for a sum that is even."""
    x, w = rule
    kept = x >= 0
    return Rule(x[kept], np.where(x[kept] > 0, 2.0, 1.0) * w[kept], rule.level)


def gauss_hermite_rule(n):
    """Return the n-point Gauss-Hermite rule for the standard normal weight; not to be changed."""
    if n not in _HERMITE_RULES:
        x, w = np.polynomial.hermite_e.hermegauss(n)
        _HERMITE_RULES[n] = Rule(x, w / math.sqrt(2 * math.pi))
    return _HERMITE_RULES[n]


def inner_panel(frequency, refinement):
    """Return the length of panels of inner rules for waves of a frequency."""
    return refined_step(PANEL_PHASE / max(PANEL_PHASE / PANEL, frequency), refinement)


def split_rule(breaks, refinement=0, reach=REACH, panel=PANEL):
    """Return composite Gauss-Legendre rules that respect break points, a row for each integrand.

    Each refinement halves the panels, which are of a length at the most; a negative one doubles
    them, as far as their number, which is rounded up, allows. Break points, an array (K, b), that
    are outside the reach do not matter.
    """
    inside = np.sort(np.clip(np.asarray(breaks, dtype=float), -reach, reach), axis=1)
    ends = np.concatenate(
        [np.full((len(inside), 1), -reach), inside, np.full((len(inside), 1), reach)], axis=1
    )
    # The same number of panels in every piece of every row keeps the result a plain array; a
    # piece is at most the whole line long.
    per_piece = math.ceil(2 * reach / panel * 2.0**refinement)
    fractions = np.linspace(0.0, 1.0, per_piece + 1)
    edges = ends[:, :-1, None] + (ends[:, 1:] - ends[:, :-1])[:, :, None] * fractions
    x, w = (part.reshape(len(inside), -1) for part in legendre_panels(edges))
    return Rule(x, w * normal_density(x))


def line_rule(breaks, refinement=0, reach=REACH):
    """Return the rule of :func:`split_rule` for one line, cut at zero, too; shape (n,)."""
    x, w = split_rule(np.array([sorted({*map(float, breaks), 0.0})]), refinement, reach)
    return Rule(x[0], w[0])


def legendre_panels(edges, order=PANEL_ORDER):
    """Return nodes and weights of Gauss-Legendre between neighbours in the last axis of `edges`.

    They have one axis more, of the nodes of a panel; the weights do not hold the normal density.
    """
    left, right = edges[..., :-1, None], edges[..., 1:, None]
    t, w = _PANEL_RULE if order == PANEL_ORDER else np.polynomial.legendre.leggauss(order)
    return Rule((left + right) / 2 + (right - left) / 2 * t, (right - left) / 2 * w)


def panel_rule(panels):
    """Return nodes and weights of composite Gauss-Legendre on [0, 1], weights adding up to 1.

    The reference rule of lines that are cut at moving points; its weights do not hold the normal
    density either.
    """
    t, w = _PANEL_RULE
    x = (np.arange(panels)[:, None] + (1 + t) / 2) / panels
    return Rule(x.ravel(), np.tile(w / (2 * panels), panels))


def normal_density(x):
    """Return exp(-x**2/2)/sqrt(2 pi)."""
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def inner_extent(kind, argument):
    """Return (strip, growth, frequency) of an inner integrand, as for :func:`inner_rule`."""
    return tuple(argument) if kind == "trapezoidal" else (math.inf, 0.0, argument[1])


def inner_rule(kind, argument, refinement=0):
    """Return nodes and weights, of shape (1, n) or (K, n), for an inner expectation.

    Parameters
    ----------
    kind : {"trapezoidal", "hermite", "split"}
    argument : tuple
        (strip, growth, frequency), (number of nodes, frequency) or (array (K, b) of break points,
        frequency); a frequency is that of the fastest oscillation of the integrand.
    refinement : int
        0 is what the integrand asks for; each step doubles the effort, on the average.
    """
    if kind == "split":
        breaks, frequency = argument
        return split_rule(breaks, 0, inner_reach(refinement), inner_panel(frequency, refinement))
    # Gauss-Hermite weights overflow beyond some 300 nodes.
    if kind == "hermite" and argument[1] <= _HERMITE_FREQUENCY and refinement < 2:
        x, w = gauss_hermite_rule(int(argument[0]) * 2**refinement)
    else:
        step = trapezoidal_step(*inner_extent(kind, argument))
        x, w = trapezoidal_rule(refined_step(step, refinement), inner_reach(refinement))
    return Rule(x[None, :], w[None, :], refinement)


def outer_rules(step, even, reach=REACH):
    """Return three nested trapezoidal rules with steps h, 2h, 4h on one grid.

    Parameters
    ----------
    step : float
        h of the finest rule.
    even : bool
        All integrands are even: nodes x >= 0 only, with doubled weights.
    reach : float
        Truncation of the line, rounded up to a multiple of four steps.

    Returns
    -------
    list of (x, w, stride)
        The coarser grids are every second and every fourth node of the finest.
    """
    n = 4 * math.ceil(reach / (4 * step))
    x = step * np.arange(0 if even else -n, n + 1)
    w = step * normal_density(x)
    if even:
        w[1:] *= 2
    return [(x[::stride], stride * w[::stride], stride) for stride in (1, 2, 4)]


def line_rules(breaks, step, even, level, ends):
    """Return three rules of a level on the line, each half as fine as the one before.

    Parameters
    ----------
    breaks : sequence of float
        Kinks or jumps; with them rules have panels, coarser ones fewer.
    step : float
        Of the trapezoidal rule of this level, where there are none.
    even : bool
        Nodes x >= 0 suffice for it.
    level : int
    ends : sequence of float
        Where the rules end.

    Returns
    -------
    x : array
        All nodes.
    rules : list of (places, w)
        Where the nodes of each rule are among these, and their weights.
    """
    if len(breaks):
        rules = [line_rule(breaks, level - back, end) for back, end in enumerate(ends)]
        x = np.concatenate([rule.nodes for rule in rules])
        last = np.cumsum([len(rule.nodes) for rule in rules])
        return x, [
            (np.arange(stop - len(w), stop), w)
            for (_, w), stop in zip(rules, last.tolist(), strict=True)
        ]
    found = []
    fine, *coarser = outer_rules(step, even, ends[0])
    for (x, w, stride), end in zip((fine, *coarser), ends, strict=True):
        kept = np.flatnonzero((np.abs(x) <= end) | (end == ends[0]))
        found.append((stride * kept, w[kept]))
    return fine[0], found


def sufficient_reach(first, tables, negligible=NEGLIGIBLE):
    """Return how far from zero rules have to go: tables that grow need more than `first`.

    `tables` returns an array (k, n) of all tables at n nodes of the line. Rules whose integrands do
    not move share their reach, so that their differences do not show what lies beyond.
    """
    reach, longer = 0.0, first
    while longer != reach:
        reach = longer
        found = tables(np.linspace(-reach, reach, REACH_NODES))
        longer = farther(reach, found.ravel().tolist(), len(found), negligible)
    return reach


def settled(changes, before, tables):
    """Tell whether refining has changed tables by rounding only; not if there is a NaN.

    Refining brings values no closer than rounding, which may be more than the tolerance: a table
    that vanishes by a symmetry is nothing else, and one that is the square of a small difference
    holds the rounding of its large terms.
    """
    sizes = {k: float(np.max(np.abs(table))) for k, table in tables.items()}
    largest = max(sizes.values())
    return all(
        change <= _TABLE_TOLERANCE * sizes[k]
        or (
            change <= max(_TABLE_RESOLVED * sizes[k], 2.0**-52 * largest)
            and change > before.get(k, math.inf) / 2
        )
        for k, change in changes.items()
    )
