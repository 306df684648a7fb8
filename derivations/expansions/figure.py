"""An expansion beside the exact solution, and how its error falls."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ...digits import checked_digits
from ...errors import ParameterError
from ..figures import BLUE, GREEN, GREY, VERMILLION, new_figure, styled
from .presentation import power

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .expansion import Expansion

_COLOURS = (VERMILLION, GREEN, "#CC79A7", "#E69F00", "#56B4E9")
_POINTS = 25
_DECADES = 3.0
_DECADE = 10.0
# From the edge of where the series converges or is trusted, whichever is farther.
_EDGE = 3.0
_SIZE = (9.5, 4.0)
# Decades beside the points: room for the exponents, and a margin.
_ROOM, _MARGIN = 0.45, 0.1
# Beyond five orders colours repeat, with another dash and another mark.
_DASHES = ((4, 2), (1, 1.2), (6, 1.5, 1, 1.5), (2, 2))
_MARKS = "osv^"


def plot_expansion(
    expansion: Expansion, output: str, *, exact: bool, digits: int | None, ax: Any
) -> Any:
    """Draw an expansion; see :meth:`.expansion.Expansion.plot`."""
    if digits is not None:
        checked_digits(digits)
    if exact and expansion.exact is None:
        raise ParameterError(
            "an expansion that was read from a file has no exact solution to compare with; use "
            "exact=False, or ask the model for the expansion again"
        )
    values = _grid(expansion)
    small = [_small(expansion, v) for v in values]
    with styled():
        axes = _axes(ax, exact)
        _draw_series(axes[0], expansion, output, values, small)
        if exact and expansion.exact is not None:
            true = [expansion.exact(float(v), digits)[output] for v in values]
            axes[0].plot(
                values, [float(t) for t in true], color=BLUE, label="exact", zorder=2, alpha=0.6,
                linewidth=3,
            )  # fmt: skip
            _draw_errors(axes[1], expansion, output, values, small, true)
        axes[0].legend(frameon=False)
    return tuple(axes) if exact else axes[0]


def _axes(ax: Any, exact: bool) -> list[Any]:
    count = 2 if exact else 1
    if ax is None:
        figure = new_figure(_SIZE if exact else (6.0, 4.0))
        return list(np.atleast_1d(figure.subplots(1, count)))
    given = list(np.atleast_1d(np.asarray(ax, dtype=object)).ravel())
    if len(given) != count or not all(hasattr(a, "set_xscale") for a in given):
        panels = "two axes of matplotlib, for curve and errors" if exact else "axes of matplotlib"
        raise ParameterError(f"ax must be {panels}, got {ax!r}")
    return given


def _grid(expansion: Expansion) -> NDArray[np.float64]:
    """Return values of the parameter, three decades from where the series is worth nothing."""
    edge = 1 / expansion.trusted_up_to if expansion.point else expansion.trusted_up_to
    edge *= _EDGE
    if expansion.radius is not None:
        edge = min(edge, 0.95 * float(expansion.radius))
    edge = edge if np.isfinite(edge) and edge > 0 else 1.0
    small = np.geomspace(edge, edge * 10**-_DECADES, _POINTS)
    return 1 / small if expansion.point else small


def _small(expansion: Expansion, value: float) -> Any:
    """Return the small quantity of the decimal number that is solved for: no float 1/α."""
    ctx = next(iter(expansion.coefficients.values()))[0].context
    number = ctx.mpf(repr(float(value)))
    return 1 / number if expansion.point else number


def _partial(expansion: Expansion, output: str, small: list[Any], end: int) -> list[Any]:
    """Return the sum of the first terms, as numbers with all digits."""
    terms = expansion.terms(output)[:end]
    ctx = expansion.coefficients[output][0].context
    found = []
    for x in small:
        powers = (x ** (ctx.mpf(e.numerator) / e.denominator) for e, _ in terms)
        found.append(ctx.fdot((c for _, c in terms), powers))
    return found


def _draw_series(
    axes: Any, expansion: Expansion, output: str, values: NDArray[np.float64], small: list[Any]
) -> None:
    terms = expansion.terms(output)
    for k in range(len(terms)):
        shown = power(expansion, terms[k][0])
        axes.plot(
            values,
            [float(v) for v in _partial(expansion, output, small, k + 1)],
            color=_COLOURS[k % len(_COLOURS)],
            linestyle=(0, _DASHES[k // len(_COLOURS) % len(_DASHES)]),
            linewidth=1.4,
            zorder=3,
            label=f"to ${shown}$" if shown else "leading term" if k == 0 else "to the constant",
        )
    axes.set_xscale("log")
    axes.set_xlabel(_label(expansion))
    total = np.array(_partial(expansion, output, small, len(terms)), dtype=float)
    if total.min() > 0 and total.max() > _DECADE * total.min():
        axes.set_yscale("log")
    axes.set_ylabel(f"${expansion.symbols.get(output, output)}$")
    axes.grid(True, color="#e4e4e4", linewidth=0.6)


def _draw_errors(
    axes: Any,
    expansion: Expansion,
    output: str,
    values: NDArray[np.float64],
    small: list[Any],
    true: list[Any],
) -> None:
    """Draw the errors of all partial sums, each with the slope of what it leaves out."""
    terms = expansion.terms(output)
    left = expansion.neglected[output]
    following = [(e, float(abs(c))) for e, c in terms[1:]]
    if left is not None:
        following.append((left[0], float(abs(left[1]))))
    for k in range(len(terms)):
        partial = _partial(expansion, output, small, k + 1)
        ctx = partial[0].context
        errors = np.array(
            [float(abs(ctx.convert(t) - p)) for t, p in zip(true, partial, strict=True)]
        )
        colour = _COLOURS[k % len(_COLOURS)]
        seen = errors > 0
        mark = _MARKS[k // len(_COLOURS) % len(_MARKS)]
        axes.plot(values[seen], errors[seen], mark, color=colour, markersize=3.5)
        if k < len(following) and np.isfinite(following[k][1]):
            exponent, size = following[k]
            slope = [size * float(x) ** float(exponent) for x in small]
            axes.plot(values, slope, color=GREY, linewidth=1, zorder=1)
            axes.text(
                values[-1], slope[-1], f"  {exponent}  ",
                color=colour, fontsize=10, va="center",
                ha="left" if expansion.point else "right",
            )  # fmt: skip
    axes.set_xscale("log")
    before, after = (_MARGIN, _ROOM) if expansion.point else (_ROOM, _MARGIN)
    axes.set_xlim(values.min() * 10**-before, values.max() * 10**after)
    with warnings.catch_warnings():
        # Errors that are all zero leave nothing to draw.
        warnings.simplefilter("ignore", UserWarning)
        axes.set_yscale("log")
    axes.set_xlabel(_label(expansion))
    axes.set_ylabel("error of the truncated series")
    axes.grid(True, color="#e4e4e4", linewidth=0.6)


def _label(expansion: Expansion) -> str:
    return {
        "alpha": r"sample complexity $\alpha = n/d$",
        "ridge": r"ridge penalty $\lambda$",
        "step_size": "step size",
    }[expansion.parameter]
