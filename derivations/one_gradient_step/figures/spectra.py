"""Both spectra of a step in one figure: the first layer's and the conjugate kernel's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ParameterError
from ...figures import new_figure, styled

if TYPE_CHECKING:
    import xarray as xr

MATRICES = ("weights", "kernel")
_POINTS = 400
_WIDTH, _HEIGHT = 6.0, 4.2


def spectra_data(found: Mapping[str, Any], simulation: xr.Dataset | None = None) -> xr.Dataset:
    """Return densities, outliers and simulated spectra as labelled arrays.

    Parameters
    ----------
    found : mapping
        ``weights``: a WeightSpike, ``kernel``: a ConjugateKernel, or one of the two.
    simulation : xarray.Dataset, optional
        As ``model.simulate_spectra`` returns it.

    Returns
    -------
    xarray.Dataset
        ``weights_density`` over ``singular_value``, ``kernel_…`` as the kernel has them, numbers
        such as ``weights_alignment_teacher``, and ``simulated_…``.

    Raises
    ------
    ParameterError
        If there is no spectrum.
    """
    import xarray as xr

    _check(found)
    data = xr.Dataset()
    if "weights" in found:
        spike = found["weights"]
        lower, upper = map(float, spike.bulk_edges)
        grid = np.linspace(lower, upper, _POINTS)
        data = data.assign_coords(singular_value=grid)
        data["weights_density"] = ("singular_value", spike.density(grid))
        for name, value in spike.to_dict().items():
            if isinstance(value, bool | int | float | str) and name not in ("rests_on", "digits"):
                data[f"weights_{name}"] = float(value)
    if "kernel" in found:
        kernel = found["kernel"].to_dataset()
        data = data.merge(kernel.rename({name: f"kernel_{name}" for name in kernel.variables}))
        data.attrs |= kernel.attrs
    if simulation is not None:
        names = [*simulation.data_vars, *simulation.coords]
        data = data.merge(simulation.rename({name: f"simulated_{name}" for name in names}))
    return data


def plot_spectra(found: Mapping[str, Any], simulation: xr.Dataset | None = None) -> Any:
    """Draw spectra side by side, over simulated ones.

    Parameters
    ----------
    found, simulation
        As for :func:`spectra_data`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ParameterError
        If there is no spectrum.
    MissingDependencyError
        Without matplotlib.
    """
    _check(found)
    with styled():
        figure = new_figure((_WIDTH * len(found), _HEIGHT))
        axes = dict(zip(found, figure.subplots(1, len(found), squeeze=False)[0], strict=True))
    if "weights" in found:
        values = None if simulation is None else simulation["singular_values"].isel(step=-1)
        found["weights"].plot(values, ax=axes["weights"])
    if "kernel" in found:
        found["kernel"].plot(simulation, ax=axes["kernel"])
    return figure


def _check(found: Mapping[str, Any]) -> None:
    if not found or set(found) - set(MATRICES):
        raise ParameterError(f"spectra are those of {' and '.join(MATRICES)}, got {list(found)}")
