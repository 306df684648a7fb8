"""Figures of large steps: what the best neurons represent, and the error of every amplitude."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..figures import BLUE, GREEN, GREY, VERMILLION, new_figure, plain_text, styled

if TYPE_CHECKING:
    from .large_steps import LargeStepLimit

_REACH = 3.0
_POINTS = 241
_LEAST_RANGE = 4.0


def plot_realised(limit: LargeStepLimit, *, ax: Any = None) -> Any:
    """Draw teacher, realised function and the teacher's linear part against t.

    Parameters
    ----------
    limit : LargeStepLimit
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    with styled():
        axes = _axes(ax)
        t = np.linspace(-_REACH, _REACH, _POINTS)
        axes.plot(t, limit.teacher_values(t), color=BLUE, label=r"teacher $\sigma_*(t)$")
        if math.isfinite(limit.amplitude):
            label = rf"$\mathbb{{E}}\,\sigma(ht + \xi)$, $h = {limit.amplitude:.3g}$"
            axes.plot(t, limit.realised(t), color=VERMILLION, linestyle="--", label=label)
        axes.plot(t, limit.linear_part * t, color=GREY, linestyle=":", label="linear part")
        axes.set_xlabel(r"$t = \langle\beta_*, x\rangle$")
        axes.set_title(_title(limit))
        axes.legend(frameon=False)
        return axes.figure


def plot_amplitudes(limit: LargeStepLimit, *, ax: Any = None) -> Any:
    """Draw J against the amplitude h, with the best linear error as a line.

    Parameters
    ----------
    limit : LargeStepLimit
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    with styled():
        axes = _axes(ax)
        h_best = limit.amplitude if math.isfinite(limit.amplitude) else 0.0
        end = max(_LEAST_RANGE, 2 * abs(h_best))
        h = np.linspace(-end / 2, end, _POINTS)
        errors = limit.error_at(h)
        axes.plot(h, errors, color=BLUE, label=r"$J(h)$")
        axes.axhline(
            limit.best_linear_error, color=GREY, linestyle="--", label="best linear predictor"
        )
        if math.isfinite(limit.amplitude):
            axes.plot(
                [h_best],
                [limit.tau_star],
                "o",
                color=GREEN,
                label=rf"$\tau_* = {limit.tau_star:.3g}$",
            )
        axes.set_ylim(0, 1.05 * float(np.max(errors[h >= 0])))
        axes.set_xlabel("amplitude $h$")
        axes.set_title(_title(limit))
        axes.legend(frameon=False)
        return axes.figure


def _axes(ax: Any) -> Any:
    return new_figure().add_subplot() if ax is None else ax


def _title(limit: LargeStepLimit) -> str:
    return f"student {plain_text(limit.student)}, teacher {plain_text(limit.teacher)}"
