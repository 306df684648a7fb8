"""Support code of the array targets, NumPy and JAX: what is the same in both generated files.

Text, not functions: each generated file carries a copy. ``xp`` stands for the array module of the
target. Numbers have shape (n, 1) in NumPy and () in JAX, vectors one axis more in front.
"""

from __future__ import annotations

from .row_source import GRID_POWER, GROWTH

_NEWTON = '''
def inverse_norm(matrix):
    """Return the largest row sum of the inverse."""
    zero = xp.zeros_like(matrix[0, 0])
    sums = xp.zeros_like(matrix[0])
    for k in range(len(matrix)):
        unit = xp.stack([zero + float(i == k) for i in range(len(matrix))])
        sums = sums + xp.abs(solve_linear(matrix, unit))
    largest = xp.max(sums, axis=0)
    return xp.where(largest < math.inf, largest, math.inf)


def new_report(like):
    """Return iterations, residual, amplification of rounding, and whether all is solved."""
    zero = xp.zeros_like(like)
    return zero, zero, zero, zero == 0


def after_linear(report, matrix, right, solution):
    """Add the residual of a linear system to a report."""
    iterations, residual, amplification, converged = report
    terms = matrix * solution
    size = xp.sum(xp.abs(terms), axis=1) + xp.abs(right)
    gap = xp.abs(xp.sum(terms, axis=1) - right)
    relative = xp.where(size > 0, gap / xp.where(size > 0, size, 1.0), 0.0)
    return iterations, xp.maximum(residual, xp.max(relative, axis=0)), amplification, converged


def shift(unknowns, moves, logarithmic):
    """Lower each coordinate, which is an unknown or its logarithm, by its move."""
    factors = xp.exp(-xp.clip(moves, -8.0, 8.0))
    return xp.where(logarithmic, unknowns * factors, unknowns - moves)


def choose_start(given, own):
    """Return the values that are given, and the program's own where there are none."""
    return xp.where(xp.isnan(given), own, given)


def first_state(start, movable):
    """Return where Newton's method begins."""
    blank = xp.zeros_like(start[0])
    # unknowns; accepted unknowns with their residual and step; residual that is small enough;
    # halvings of this step; fixed-point moves that are left; how often they were called upon
    return (
        start, start, blank + math.inf, xp.zeros_like(start), blank + 2e-15,
        blank, blank + (20.0 if movable else 0.0), blank,
    )


def advance(state, residual, jacobian, moves, size, rough, logarithmic, safeguarded, movable):
    """Return the next state, where it is solved, and where it goes on."""
    unknowns, base, base_size, step, close, halvings, left, calls = state
    finite = size < math.inf
    # Where rounding keeps the residual above the tolerance: stop when it stops falling.
    done = (size <= close) | ((size < 1e-10) & (size >= base_size / 2))
    newton_step = solve_linear(jacobian, residual)
    if not safeguarded:
        following = shift(unknowns, newton_step, logarithmic)
        close = xp.maximum(close, rough * size)
        state = following, unknowns, size, newton_step, close, halvings, left, calls
        return state, done, finite & ~done
    # No leaps; far out, functions overflow.
    bound = xp.where(logarithmic, 8.0, 8.0 * (1.0 + xp.abs(unknowns)))
    newton_step = xp.where(xp.abs(newton_step) < math.inf, newton_step, math.nan)
    newton_step = xp.clip(newton_step, -bound, bound)
    # The first moves end where Newton's method is safe; those that rescue it are all taken.
    moving = finite & (left > 0) & ~((calls == 0) & (size < 0.1))
    accept = finite & ~moving & (size < base_size)
    halve = ~moving & ~accept & (halvings < 12) & (base_size < math.inf)
    # Moves that leave the domain end at the last point inside.
    retreat = ~finite & (left > 0)
    rescue = ~moving & ~accept & ~halve & ~retreat & (calls < 2) & (base_size < math.inf) & movable
    half = step / 2
    following = xp.where(accept, shift(unknowns, newton_step, logarithmic), base)
    following = xp.where(halve, shift(base, half, logarithmic), following)
    if movable:
        moved = shift(unknowns, xp.clip(moves / 2, -bound, bound), logarithmic)
        following = xp.where(moving, moved, following)
    state = (
        following,
        xp.where(accept | moving, unknowns, base),
        xp.where(accept, size, xp.where(rescue, math.inf, base_size)),
        xp.where(accept, newton_step, half),
        xp.where(accept, xp.maximum(close, rough * size), close),
        xp.where(accept | rescue, 0.0, halvings + halve),
        xp.where(
            rescue,
            xp.where(calls == 0, 50.0, 200.0),
            xp.where(accept | retreat, 0.0, left - moving),
        ),
        calls + rescue,
    )
    return state, done, (moving | accept | halve | retreat | rescue) & ~done
'''

_ESTIMATE = '''
def estimate(block, fine, medium, coarse):
    """Solve on three rules; return values, estimated errors, and iterations with residual.

    The coarser rules tell the error. Iterations are negative where there is no solution; the
    third number is the part of the first error that is rounding, relative to the first value.
    """
    x, (iterations, residual, amplification, converged) = solve_block(block, fine)
    # A relative error eps of the equations moves the solution by about this much; eps is four
    # units in the last place, because tables of polynomials of degree 8 cancel.
    rounding = 8.881784197001252e-16 * (8 + 16 * amplification)
    if QUADRATURE:
        restart = x[list(UNKNOWNS)]
        y, (_, _, _, comparable) = solve_block(block, medium, restart, 1e-3)
        z, (_, _, _, measurable) = solve_block(block, coarse, restart, 1e-3)
    else:
        y = z = x
        comparable = measurable = converged
    # The last difference is the error of the rule before; the next halving gains at least as
    # much again, so the error is at most the difference times that gain, and 10 is a margin.
    # Overlaps may vanish, so only quantities with a size of their own measure the gain.
    last = np.zeros_like(rounding)
    first = last + 1e-300
    for k, scale in MEASURED:
        size = abs(x[scale]) + 1e-300
        step = abs(x[k] - y[k]) / size
        comparable = comparable & (step < math.inf)
        last = np.maximum(last, np.where(step < math.inf, step, 0.0))
        step = abs(y[k] - z[k]) / size
        # Without the coarse solution nothing is known about the gain, so none is claimed.
        measurable = measurable & (step < math.inf)
        first = np.maximum(first, np.where(step < math.inf, step, 0.0))
    # A coarse solution that is off by more than its size is no measure of anything.
    gain = 10.0 * last / np.minimum(first, 1.0)
    gain = np.where(measurable & (gain < 1.0), gain, 1.0)
{least_gain}    sizes = abs(x)
    # A value that crosses zero is measured against the error of its neighbours too.
    errors = gain * np.maximum(abs(x - y), 0.1 * last * sizes) + rounding * sizes
    floors = np.stack([8e-15 * abs(x[k]) if k >= 0 else 0.0 * sizes[0] for k in SCALES])
    # Nothing tells how much the terms of other outputs cancel: a margin.
    known = {k for k, _ in MEASURED}
    margins = [0.0 if k in known else {growth} for k in range(len(sizes))]
    floors += np.stack([m * rounding * size for m, size in zip(margins, sizes, strict=True)])
    if ABSOLUTE:
        # Residuals of unknowns that may be zero are not relative to them; outputs may vanish like
        # the square of such an unknown.
        floors += rounding * (2 * np.sqrt(sizes) + rounding)
        floors[ABSOLUTE] += rounding
    errors = errors + floors
    rounding = rounding + floors[0] / (sizes[0] + 1e-300)
    converged = converged & np.all(np.isfinite(x), axis=0)
    errors = np.where(converged & comparable & (errors < math.inf), errors, math.inf)
    values = np.where(converged, x, math.nan)
    iterations = np.where(converged, iterations, -np.maximum(iterations, 1.0))
    residual = np.where(residual < math.inf, residual, math.inf)
    rounding = np.where(rounding < math.inf, rounding, math.inf)
    return values, errors, np.stack([iterations, residual, rounding])
'''


def array_support(module: str) -> str:
    """Return Newton's method on the array module `module`."""
    return _NEWTON.strip("\n").replace("xp.", f"{module}.")


def estimate_text(*, cut: bool = False) -> str:
    """Return ``estimate``, which calls the ``solve_block(block, rule, start, rough)`` of a file.

    The panels of a grid that is `cut` halve only roughly, so that one gain may be luck.
    """
    gain = f"    gain = np.maximum(gain, last**{GRID_POWER})\n" if cut else ""
    return _ESTIMATE.strip("\n").replace("{least_gain}", gain).replace("{growth}", repr(GROWTH))
