"""The arrays that kernels run on: nodes, weights, tables, panels and data.

Three rules of different fineness for each level of refinement; what does not change from row to
row is made once, when a row first needs it. Holds no formula: tables come as generated functions.
Files for Python carry copies, of grids of several variables (:mod:`.product_grids`) too.
"""

import numpy as np

from ..errors import ConvergenceError
from .quadrature import (
    inner_extent,
    inner_rule,
    line_rules,
    panel_rule,
    settled,
    sufficient_reach,
)
from .refinement import SHIFT, lose_digits
from .rules import (
    FIRST_STEP,
    LAST_LEVEL,
    REACH,
    fixed_end,
    inner_reach,
    line_coarseness,
    moving_end,
    panel_count,
    refined_step,
    trapezoidal_step,
)

# Nodes of the line, and of all inner rules at them: two gigabytes an array at the most.
_MOST_NODES = 2**28
# Inner nodes that are held at once: tables make several arrays of them on their way.
_AT_ONCE = 2**23
# How often inner rules are refined.
_INNER_LEVELS = 7


class Tables:
    """The functions of the node of a generated module, at values of their parameters.

    Parameters
    ----------
    module : namespace
        Generated: ``inner_rules``, ``outer_scale``, ``breaks`` and ``tables`` of the node.
    values : sequence of float
        Parameters of the tables.
    names : sequence of str
        Tables in the order of the solver, with those on a grid.
    level : int, optional
        Of inner rules, where it is known; else they are refined until two levels agree.
    once : bool
        The level of the first nodes that are asked for is that of all.
    """

    def __init__(self, module, values, names=(), level=None, once=False):
        self.module, self.values, self.names = module, [np.float64(v) for v in values], names
        self.level, self.once = level, once

    def __call__(self, x):
        """Return {name: values} at nodes."""
        if self.level is not None:
            return self.at(x, self.level)[0]
        found, level = self.settled(x)
        if self.once:
            self.level = level
        return found

    def settled(self, x):
        """Return them with inner rules of which the next level says the same, and this level.

        Raises
        ------
        ConvergenceError
            If there is none: the inner integrand varies on a scale that is too small.
        """
        previous, before = None, {}
        for level in range(_INNER_LEVELS):
            current, refinable = self.at(x, level)
            if not refinable:
                return current, level
            if previous is not None:
                changes = {k: float(np.max(np.abs(current[k] - previous[k]))) for k in current}
                if settled(changes, before, current):
                    return previous, level - 1
                before = changes
            previous = current
        raise ConvergenceError(
            "the conditional coefficients did not converge under refinement of their quadrature; "
            "the activation varies on a scale far below the width of its input, or is singular "
            "where it has neither a jump nor a kink, as |z|**(3/2) is"
        )

    def at(self, x, level):
        """Return them for inner rules of a level, and whether there are any."""

        def rules(nodes):
            kinds = self.module.inner_rules(nodes, *self.values)
            return {slot: inner_rule(*given, level) for slot, given in kinds.items()}

        for kind, argument in self.module.inner_rules(x[:1], *self.values).values():
            step = trapezoidal_step(*inner_extent(kind, argument))
            require_room(len(x), 2 * inner_reach(level), refined_step(step, level))
        # Rules have as many nodes at every node of the line.
        first = rules(x[:1])
        inner = max((rule.nodes.shape[1] for rule in first.values()), default=1)
        require_room(len(x), inner, 1.0)
        length = max(1, _AT_ONCE // inner)
        parts = [x[start : start + length] for start in range(0, len(x), length)]
        found = [self.module.tables(part, *self.values, rules(part)) for part in parts]
        return {n: np.concatenate([part[n] for part in found]) for n in found[0]}, bool(first)

    def columns(self, x):
        """Return all of them, one row for each in the order of the solver."""
        tables = self(x)
        return np.array([tables[name] for name in self.names]).reshape(-1, len(x))


def require_room(lines, length, step):
    """Refuse lines of nodes that would not fit into memory."""
    # Negated, because a step that is no number makes no nodes.
    if not step * _MOST_NODES >= length * lines:
        with np.errstate(divide="ignore"):
            nodes = lines * length / np.float64(step)
        raise ConvergenceError(
            f"the tables would need {nodes:.1e} quadrature nodes, more than {_MOST_NODES:.1e}: an "
            "activation varies on a scale far below the width of its input; take parameters that "
            "are less extreme"
        )


class Line:
    """The rules of the line, each node with its tables.

    Parameters
    ----------
    tables : Tables
    even : bool
        Half of the line suffices.
    moving : bool
        Integrands hold functions of the unknowns, whose growth no table shows.
    """

    halvings, finest, costly = 1.0, LAST_LEVEL, False

    def __init__(self, tables, even, moving):
        self.tables, self.even, self.moving = tables, even, moving
        zero = np.zeros(1)
        with np.errstate(divide="ignore", over="ignore"):
            # A slope of zero in the node sets no scale: its width is infinite.
            self.step = FIRST_STEP * float(tables.module.outer_scale(zero, *tables.values))
        self.breaks = [float(b) for b in tables.module.breaks(zero, *tables.values)]
        self._reach = None

    def ends(self, level):
        """Return where the three rules of a level end: tables that grow need more."""
        if self._reach is None:
            self._reach = sufficient_reach(REACH, self.tables.columns)
        end = moving_end if self.moving else fixed_end
        return [end(self._reach, level, back) for back in range(3)]

    def lines(self, level, shift=1.0):
        """Return [fine, medium, coarse]: arrays of weight, node and tables at shift * node."""
        ends = self.ends(level)
        step = self.step * line_coarseness(level, 0)
        if not self.breaks:
            require_room(1, 2 * ends[0], step)
        x, rules = line_rules(self.breaks, step, self.even, level, ends)
        columns = np.stack([x, *self.tables.columns(shift * x)])
        return [np.ascontiguousarray([w, *columns[:, places]]) for places, w in rules]


class Levels:
    """The arguments of a solver after the parameters, for each level of refinement.

    Parameters
    ----------
    line : Line or ProductGrid or None
    panels : bool
        There are panels between points that move with the unknowns.
    data : sequence of array (1 + columns, rows)
        For each data set its weights, which add up to one, and its columns.

    Attributes
    ----------
    step : float
        Distance of nodes of the finest rule at the first level, where it is smallest.
    halvings : float
        Levels that halve it.
    finest : int
        The last level that there is room for; 0 without finer rules.
    """

    def __init__(self, line, panels, data):
        self.line, self.panels, self.data = line, panels, data
        self.step = FIRST_STEP if line is None else line.step
        self.halvings = 1.0 if line is None else line.halvings
        self.finest = line.finest if line is not None else LAST_LEVEL if panels else 0
        self._made = {}
        self._shaken = {}

    def __getitem__(self, level):
        """Return three arrays of the line, three of panels and where these end, and the data."""
        if level not in self._made:
            self._made[level] = (*self._line(level), *self._panels(level), *self.data)
        return self._made[level]

    def _line(self, level, *how):
        with np.errstate(all="ignore"):
            return [] if self.line is None else self.line.lines(level, *how)

    def _panels(self, level):
        if not self.panels:
            return []
        rules = [panel_rule(panel_count(level, back)) for back in range(3)]
        ends = [moving_end(REACH, level, back) for back in range(3)]
        return [*(np.stack([w, x]) for x, w in rules), *ends]

    def shaken(self, level):
        """Return the same with other rounding in the tables; None if they lose no digits."""
        if self.line is None:
            return None
        if level not in self._shaken:
            usual = self[level]
            last = self.line.coarsest if self.line.costly else 0
            self._shaken[level] = None
            if not last or lose_digits(usual[last], self._line(level, SHIFT, (last,))[0]):
                lines = self._line(level, SHIFT)
                if lose_digits(usual[0], lines[0]):
                    self._shaken[level] = (*lines, *usual[3:])
        return self._shaken[level]
