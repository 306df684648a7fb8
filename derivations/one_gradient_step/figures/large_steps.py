"""What large steps can represent: the functions, and the error of every amplitude."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...figures import new_figure, styled
from ..figures_large_steps import plot_amplitudes, plot_realised

if TYPE_CHECKING:
    import xarray as xr

    from ..large_steps import LargeStepLimit

_SIZE = (10.4, 4.0)
_REACH, _POINTS = 3.0, 241


def large_step_data(limit: LargeStepLimit) -> xr.Dataset:
    """Return the functions and the errors that :func:`plot_large_steps` draws.

    Returns
    -------
    xarray.Dataset
        ``teacher``, ``linear_part`` and, where an amplitude is best, ``realised`` over ``t``; the
        error ``J`` over ``amplitude``; ``tau_star``, ``best_amplitude``, ``best_linear_error``.
    """
    import xarray as xr

    t = np.linspace(-_REACH, _REACH, _POINTS)
    finite = np.isfinite(limit.amplitude)
    end = max(4.0, 2 * abs(limit.amplitude)) if finite else 4.0
    amplitudes = np.linspace(-end / 2, end, _POINTS)
    columns: dict[str, Any] = {
        "teacher": ("t", limit.teacher_values(t)),
        "linear_part": ("t", limit.linear_part * t),
        "J": ("amplitude", limit.error_at(amplitudes)),
        "tau_star": limit.tau_star,
        "best_amplitude": limit.amplitude,
        "best_linear_error": limit.best_linear_error,
    }
    if finite:
        columns["realised"] = ("t", limit.realised(t))
    attributes = {"student": limit.student, "teacher": limit.teacher, "centre": int(limit.centre)}
    return xr.Dataset(columns, {"t": t, "amplitude": amplitudes}, attributes)


def plot_large_steps(limit: LargeStepLimit) -> Any:
    """Draw teacher and realised function, and the error over the amplitude, side by side.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    with styled():
        figure = new_figure(_SIZE)
        functions, errors = figure.subplots(1, 2)
    plot_realised(limit, ax=functions)
    plot_amplitudes(limit, ax=errors)
    return figure
