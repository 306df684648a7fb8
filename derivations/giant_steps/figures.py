"""Figures of giant steps: neurons in a plane of the target, and singular values against noise.

As the figure of Dandi, Krzakala, Loureiro, Pesce, Stephan (arXiv 2305.18270) in which neurons climb
the stairs: one panel for each time, each neuron a point, and what the theory predicts behind them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..figures import BLUE, GREEN, GREY, VERMILLION, new_figure, plain_text, styled

if TYPE_CHECKING:
    from ...symbolic.subspaces import Subspace
    from .simulated import SimulatedGiantSteps

Array = NDArray[np.float64]

_PANEL = 2.5
_MARGIN = 0.45
_SPECTRA = 2.5
_FLATTEST = 0.4
"""Least height of a panel by its width."""

_MOST_DIRECTIONS = 3
_MOST_POINTS = 1500
_MOST_PANELS = 7
_PARALLEL = 1e-9
_INSIDE_QUANTILE = 0.995
_SHIFT = 0.12


def plot_giant_steps(
    found: SimulatedGiantSteps, directions: Sequence[Sequence[float]] | None = None
) -> Any:
    """Draw neurons in planes of two directions after each step, and singular values.

    Parameters
    ----------
    found : SimulatedGiantSteps
    directions : two rows of r numbers, optional
        Directions in the target's coordinates, not parallel; made orthonormal. By default the
        first of the adapted basis against the second and, in a row below, the third: what is
        learned first, and what then. Of a target of one coordinate, readouts are drawn against it.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    ParameterError
        If the directions are not two such rows.
    """
    overlaps = found.result.overlaps
    times = _shown_times(overlaps.shape[1])
    frame = None
    labels, legend = [r"$\langle w_i, e_1\rangle$", "$a_i$"], ""
    if overlaps.shape[-1] == 1 and directions is None:
        readouts = np.broadcast_to(found.result.readout[:, None, :, None], overlaps.shape)
        overlaps = np.concatenate([overlaps, readouts], axis=-1)
    else:
        names, frame = _frame(found, directions)
        labels, legend = _labels(names)
        overlaps = overlaps @ frame.T
    limits = _limits(overlaps, found.settings.dimension, comparable=frame is not None)
    # One row of panels for each direction beyond the first, as high as its neurons need.
    heights = [_PANEL * _shape(limits[0], limit, frame) for limit in limits[1:]]
    with styled():
        title = f"{_title(found)}\n{legend}" if legend else _title(found)
        above = sum(heights) + _MARGIN * len(heights) + 0.3 * (1 + bool(legend))
        figure = new_figure((max(_PANEL * len(times), 6.5), above + _SPECTRA))
        parts = figure.subfigures(2, 1, height_ratios=[above, _SPECTRA])
        grid = parts[0].subplots(
            len(heights), len(times), sharex=True, sharey="row", squeeze=False,
            gridspec_kw={"height_ratios": heights},
        )  # fmt: skip
        for row, panels in enumerate(grid, start=1):
            for axes, time in zip(panels, times, strict=True):
                if frame is not None:
                    _draw_prediction(axes, found, frame[[0, row]], time, max(limits))
                _draw_neurons(axes, found, overlaps[:, time][..., [0, row]])
                axes.set(xlim=(-limits[0], limits[0]), ylim=(-limits[row], limits[row]))
            panels[0].set_ylabel(labels[row])
        for axes, time in zip(grid[0], times, strict=True):
            axes.set_title(f"$t = {time}$", fontsize=11)
        for axes in grid[-1]:
            axes.set_xlabel(labels[0])
        parts[0].suptitle(title, x=0.01, ha="left", fontsize=11)
        _draw_spectra(parts[1].subplots(), found, predicted=frame is not None)
    return figure


def _shape(x: float, y: float, frame: Array | None) -> float:
    """Height of a panel by its width; lengths along both axes are equal if there is a frame."""
    return 1.0 if frame is None else y / x


def _frame(
    found: SimulatedGiantSteps, directions: Sequence[Sequence[float]] | None
) -> tuple[list[str], Array]:
    """Names and orthonormal rows of two directions, or of three of the adapted basis."""
    r = found.result.overlaps.shape[-1]
    if directions is None:
        chosen = [(v.name, np.array(v.vector)) for v in found.basis[:_MOST_DIRECTIONS]]
        for axis in np.eye(r) if len(chosen) < 2 else ():
            if abs(axis @ chosen[0][1]) < 1 - _PARALLEL and len(chosen) < 2:
                rest = axis - (axis @ chosen[0][1]) * chosen[0][1]
                chosen.append((_name(rest), rest / np.linalg.norm(rest)))
        return [name for name, _ in chosen], np.array([v for _, v in chosen])
    try:
        rows = np.array(directions, dtype=np.float64)
    except (TypeError, ValueError):
        rows = np.empty(0)
    if rows.shape != (2, r) or not np.isfinite(rows).all():
        raise ParameterError(f"directions must be two rows of {r} numbers, got {directions!r}")
    lengths = np.linalg.norm(rows, axis=1)
    first = rows[0] / max(lengths[0], 1e-300)
    rest = rows[1] - (rows[1] @ first) * first
    if not lengths.all() or np.linalg.norm(rest) <= _PARALLEL * lengths[1]:
        raise ParameterError("directions must not be zero or parallel")
    second = rest / np.linalg.norm(rest)
    return [_name(first), _name(second)], np.stack([first, second])


def _name(vector: Array) -> str:
    axis = int(np.argmax(abs(vector)))
    if np.allclose(vector, np.eye(len(vector))[axis], atol=_PARALLEL):
        return f"e{axis + 1}"
    return f"({', '.join(f'{v + 0.0:.2g}' for v in vector)})"


def _labels(names: list[str]) -> tuple[list[str], str]:
    """Labels of the axes, and what their letters stand for."""
    labels, meanings = [], []
    for k, name in enumerate(names, start=1):
        axis = name.startswith("e") and name[1:].isdigit()
        letter = f"e_{{{name[1:]}}}" if axis else f"v_{k}"
        labels.append(rf"$\langle w_i, {letter}\rangle$")
        if not axis:
            # The overlap is with the unit vector of what is named by its exact components.
            meanings.append(rf"$v_{k} \propto$ {plain_text(name)}")
    return labels, ",  ".join(meanings)


def _shown_times(count: int) -> list[int]:
    """All times, or of many the first, the last and some between."""
    if count <= _MOST_PANELS:
        return list(range(count))
    return sorted({round(t) for t in np.linspace(0, count - 1, _MOST_PANELS)})


def _limits(points: Array, dimension: int, *, comparable: bool) -> list[float]:
    """Half the sides of the panels: all but a few neurons are inside."""
    large = np.quantile(abs(points), _INSIDE_QUANTILE, axis=(0, 2)).max(axis=0)
    sides = np.maximum(1.15 * large, 3 / math.sqrt(dimension))
    if comparable:
        sides = np.maximum(sides, _FLATTEST * sides.max())
    return [float(side) for side in sides]


def _draw_prediction(
    axes: Any, found: SimulatedGiantSteps, plane: Array, time: int, limit: float
) -> None:
    from matplotlib.patches import Circle

    steps = found.staircase.subspaces
    learned = _in_plane(steps[min(time, len(steps) - 1)], plane)
    if len(learned) == 2:
        axes.axhspan(-limit, limit, color=GREEN, alpha=0.13, lw=0, zorder=0)
    elif len(learned) == 1:
        x, y = 2 * limit * learned[0]
        axes.plot([-x, x], [-y, y], color=GREEN, alpha=0.45, lw=3.5, zorder=1)
    # Of a Gaussian in two directions, 95 % are inside this radius.
    noise = found.result.noise_floor()[:, time].mean() * math.sqrt(-2 * math.log(0.05))
    axes.add_patch(Circle((0, 0), noise, fill=False, ec=GREY, lw=1, ls=(0, (3, 2)), zorder=4))
    axes.set_aspect("equal")


def _draw_neurons(axes: Any, found: SimulatedGiantSteps, points: Array) -> None:
    signs = np.where(found.result.readout > 0, 1, -1).reshape(-1)
    flat = points.reshape(-1, 2)
    kept = slice(None, None, -(-len(flat) // _MOST_POINTS))
    for sign, colour in ((1, BLUE), (-1, VERMILLION)):
        x, y = flat[kept][signs[kept] == sign].T
        axes.plot(x, y, ls="", marker=".", ms=4.5, mew=0, color=colour, alpha=0.6, zorder=3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)


def _in_plane(subspace: Subspace, plane: Array) -> Array:
    """Orthonormal directions, in the plane, of the projection of a subspace on it."""
    rows = np.array(subspace.numeric()).reshape(-1, plane.shape[1])
    if not len(rows):
        return np.empty((0, 2))
    _, sizes, vectors = np.linalg.svd(np.linalg.qr(rows.T)[0].T @ plane.T)
    return np.asarray(vectors[: len(sizes)][sizes > _PARALLEL])


def _draw_spectra(axes: Any, found: SimulatedGiantSteps, *, predicted: bool) -> None:
    spectra = found.spectra
    what = "in common" if found.compares_shared else "updates"
    drawn: list[float] = []

    def draw(points: list[tuple[float, float]], label: str, **style: Any) -> None:
        shown = [point for point in points if point[1] > 0]
        if shown:
            axes.plot(*zip(*shown, strict=True), ls="", label=label, **style)
            drawn.extend(value for _, value in shown)

    weights: list[tuple[float, float]] = []
    weights_noise: list[tuple[float, float]] = []
    outside: list[tuple[float, float]] = []
    outside_noise: list[tuple[float, float]] = []
    circle = {"ms": 6, "mfc": "white", "mew": 1.5, "zorder": 3}
    dash = {"marker": "_", "ms": 15, "mew": 1.6, "alpha": 0.45, "zorder": 2}
    for row in spectra:
        left, right = row.step - _SHIFT, row.step + _SHIFT
        weights += [(left, value) for value in row.inside]
        weights_noise += [(left, value) for value in row.inside_noise]
        outside += [(right, value) for value in row.outside]
        if row.outside_noise is not None:
            outside_noise.append((right, row.outside_noise))
    draw(weights, "weights, inside $V^*$", marker="o", color=BLUE, **circle)
    draw(weights_noise, "its noise", color=BLUE, **dash)
    where = r"inside $V^*\cap U_t^\perp$"
    draw(outside, f"{what}, {where}", marker="D", color=VERMILLION, **circle)
    draw(outside_noise, "its noise", color=VERMILLION, **dash)
    axes.set_yscale("log")
    if drawn and max(drawn) < 1e4 * min(drawn):
        axes.set_ylim(min(drawn) / 1.6, max(drawn) * 1.6)
    axes.set_xticks([row.step for row in spectra])
    axes.set_xlim(0.5, len(spectra) + 0.5)
    axes.grid(True, axis="y", color="#e4e4e4", linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.set_xlabel("step $t$")
    axes.set_ylabel(r"singular values $/\sqrt{p}$")
    handles, labels = axes.get_legend_handles_labels()
    for handle, label in _proxies(predicted):
        handles.append(handle)
        labels.append(label)
    axes.legend(handles, labels, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _proxies(predicted: bool) -> list[tuple[Any, str]]:
    """Handles for what the panels of neurons show."""
    from matplotlib.lines import Line2D

    neurons = [
        (Line2D([], [], ls="", marker=".", ms=8, mew=0, color=BLUE), "neurons, $a_i > 0$"),
        (Line2D([], [], ls="", marker=".", ms=8, mew=0, color=VERMILLION), "neurons, $a_i < 0$"),
    ]
    if not predicted:
        return neurons
    return [
        (Line2D([], [], ls="", marker="s", ms=9, mew=0, color=GREEN, alpha=0.45), "$U_t$"),
        *neurons,
        (Line2D([], [], ls=(0, (3, 2)), lw=1, color=GREY), "95 % of pure noise"),
    ]


def _title(found: SimulatedGiantSteps) -> str:
    settings = found.settings
    power = "d" if settings.sample_exponent == 1 else f"d^{{{settings.sample_exponent}}}"
    networks = len(found.result.completed)
    return (
        f"{plain_text(settings.student)} on {plain_text(settings.target, 48)}:  "
        rf"$d = {settings.dimension}$, $n = {settings.samples_factor:.4g}\,{power}$, "
        rf"$p = {settings.width}$, {networks} network{'' if networks == 1 else 's'}"
    )
