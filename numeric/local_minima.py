"""Local minima of a function of one number, from a grid, by Brent's method between its points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from ..errors import ConvergenceError

Array = NDArray[np.float64]
# Differences below this, relative, are rounding: a flat stretch is no minimum.
_FLAT = 1e-13
_TOLERANCE = 1e-9


def local_minima(
    function: Callable[[float], float], grid: Array, what: str
) -> tuple[Array, list[tuple[float, float]]]:
    """Return the values on a grid, and places and values of the minima between its points.

    Parameters
    ----------
    function : callable
    grid : array (n,)
        Ascending. Its ends are minima if the function falls towards them.
    what : str
        Of what the minima are, for the message.

    Raises
    ------
    ConvergenceError
        If a minimum is not found to 1e-9.

    Examples
    --------
    >>> local_minima(abs, np.linspace(-1, 2.5, 8), "a modulus")[1][0][0].__round__(8)
    0.0
    >>> local_minima(lambda x: -x * x, np.linspace(-1, 2, 7), "a parabola")[1]
    [(-1.0, -1.0), (2.0, -4.0)]
    """
    values = np.array([function(float(x)) for x in grid])
    scale = _FLAT * float(np.max(np.abs(values)))
    padded = np.concatenate([[np.inf], values, [np.inf]])
    # Of a flat stretch its first place.
    low = (values < padded[:-2] - scale) & (values <= padded[2:] + scale)
    result = []
    last = len(grid) - 1
    for i in map(int, np.flatnonzero(low)):
        bracket = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, last)])
        refined = minimize_scalar(
            function, bounds=bracket, method="bounded", options={"xatol": _TOLERANCE}
        )
        if not refined.success:
            raise ConvergenceError(
                f"the minimum of {what} near {grid[i]:.4g} was not found: {refined.message}",
                state=refined,
            )
        stays = i in (0, last) and values[i] <= refined.fun
        result.append((float(grid[i]), float(values[i])) if stays else (refined.x, refined.fun))
    return values, [(float(x), float(value)) for x, value in result]
