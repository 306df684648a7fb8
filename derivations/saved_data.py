"""Figures of datasets that were saved: what was drawn once can be drawn again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ParameterError
from ..pictures import Bars
from .curve_figure import plot_simulation
from .curves import Curve
from .figures import draw_picture
from .one_gradient_step.figures import RiskCurve
from .one_gradient_step.nonlinear_spikes.model import RiskOverSteps

if TYPE_CHECKING:
    import xarray as xr

_ERROR = "error"


def plot(data: xr.Dataset | str | os.PathLike[str], *, ax: Any = None, **options: Any) -> Any:
    """Draw a dataset as the result that it came from is drawn.

    Parameters
    ----------
    data : xarray.Dataset or path
        What ``to_dataset`` of a curve or another result returned, what ``simulate`` of a model
        returned, or a netCDF file of it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; default: a new figure, found as ``axes.figure``.
    options : optional
        Those of :meth:`.Curve.plot` for curves, and keywords of matplotlib's lines.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ParameterError
        If there is no such file, or the data are of another kind.
    MissingDependencyError
        Without matplotlib.

    Examples
    --------
    >>> import giantstep as gs
    >>> model = gs.SpikedRandomFeatures("tanh", "sin", alpha0=5)
    >>> axes = gs.plot(model.curve(alpha=[0.5, 1, 2], ridge=0.1).to_dataset(), label="tanh")
    >>> axes.get_ylabel()
    'test error'
    """
    source: Any = data
    found: xr.Dataset = source if hasattr(source, "data_vars") else _loaded(source)
    if "shown" in found.attrs:
        return _curve(found).plot(ax=ax, **options)
    if "test_error_mean" in found and found["test_error_mean"].dims == ("alpha",):
        return plot_simulation(found, ax=ax, **options)
    if "result" in found.attrs:
        numbers = {
            str(x.attrs.get("long_name", name)): (float(x), x.attrs.get(_ERROR))
            for name, x in found.data_vars.items()
            if not x.dims
        }
        return draw_picture(Bars(numbers, str(found.attrs["result"])), ax=ax, **options)
    raise ParameterError(
        "data must be what to_dataset() of a curve or of another result returned, or simulate() "
        "of a model over alpha"
    )


def _curve(data: xr.Dataset) -> Curve:
    if "left_out_per_small" in data.attrs:
        return RiskOverSteps(data)
    return RiskCurve(data) if "risk_trained" in data and "risk_initial" in data else Curve(data)


def _loaded(path: Any) -> xr.Dataset:
    import xarray as xr

    try:
        return xr.load_dataset(Path(path))
    except TypeError:
        raise ParameterError(f"data must be a dataset or a file, got {path!r}") from None
    except FileNotFoundError:
        raise ParameterError(f"there is no file {os.fspath(path)!r}") from None
    except (OSError, ValueError) as error:
        raise ParameterError(f"{os.fspath(path)!r} holds no dataset: {error}") from None
