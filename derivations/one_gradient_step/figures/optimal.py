"""The best ridge penalties before and after the step, over the samples, with their risks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ParameterError
from ...figures import BLUE, GREY, VERMILLION, new_figure, set_heading, set_scale, styled
from .axes import AXES, checked_values, pair_title, parameters_text

if TYPE_CHECKING:
    import xarray as xr

    from ..model import OneGradientStep

_LAYERS = {"initial": (BLUE, "random features $W_0$"), "trained": (VERMILLION, "after the step")}
_SIZE = (9.6, 4.2)


def optimal_data(
    model: OneGradientStep, alpha: Sequence[float], *, progress: bool | None = None
) -> xr.Dataset:
    """Return what ``model.optimum`` returns over alpha, with ``best_linear_error``."""
    alphas = [float(a) for a in checked_values("alpha", alpha)]
    data = model.optimum(over="ridge", alpha=alphas, progress=progress)
    data = data.assign(best_linear_error=model.best_linear_error)
    data.attrs["model"] = model.to_json()
    return data


def plot_optimal(data: xr.Dataset) -> Any:
    """Draw the smallest risks, and the penalties that reach them, side by side.

    Parameters
    ----------
    data : xarray.Dataset
        As :func:`optimal_data` returns it. Penalties that are 0 or inf are not drawn.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ParameterError
        If `data` is something else.
    MissingDependencyError
        Without matplotlib.
    """
    if "ridge_trained" not in getattr(data, "data_vars", {}) or "model" not in data.attrs:
        raise ParameterError("data must be a dataset as returned by optimal_data")
    from ..model import OneGradientStep

    model = OneGradientStep.from_json(data.attrs["model"])
    with styled():
        figure = new_figure(_SIZE)
        risks, penalties = figure.subplots(1, 2)
        mark = "D" if data.sizes["alpha"] == 1 else None
        for name, (colour, label) in _LAYERS.items():
            ridge = data[f"ridge_{name}"].to_numpy()
            inside = np.where(np.isfinite(ridge) & (ridge > 0), ridge, np.nan)
            risks.plot(data["alpha"], data[f"risk_{name}"], color=colour, marker=mark, label=label)
            penalties.plot(data["alpha"], inside, color=colour, marker=mark, label=label)
        best = float(data["best_linear_error"])
        if best > 0:
            risks.axhline(best, color=GREY, linestyle=(0, (5, 3)), linewidth=1.3,
                          label=r"best linear error $\|P_{>1}f_*\|^2$")  # fmt: skip
        for axes, label in ((risks, "smallest risk"), (penalties, r"best $\lambda$")):
            axes.grid(True, which="major", color="#e4e4e4", linewidth=0.6)
            axes.set_axisbelow(True)
            set_scale(axes.xaxis, data["alpha"].to_numpy())
            axes.set_xlabel(AXES["alpha"])
            axes.set_ylabel(label)
        set_heading(risks, pair_title(model), parameters_text(model, ("alpha",)))
        risks.legend(frameon=False, fontsize=9)
    return figure
