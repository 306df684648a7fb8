"""Labelled arrays whose variables say what they are, in words and with units.

One table for all datasets: what a name of the notation means. All quantities of the theory are pure
numbers, so that all units are "1".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

NAMES = {
    # Parameters.
    "alpha": "sample complexity n/d",
    "beta": "aspect ratio p/d",
    "ridge": "ridge penalty",
    "paper_ridge": "ridge penalty, mean-squared convention",
    "step_size": "step size",
    "alpha0": "sample complexity of the step",
    "noise_variance": "variance of the label noise",
    "spike_strength": "length r of the mean row along the spike",
    "bulk_variance": "mean squared length c of the rows across the spike",
    "alignment": "overlap gamma of the spike with the teacher's direction",
    "width": "number of neurons",
    "dimension": "input dimension",
    "flips": "share of flipped labels",
    # Errors and losses.
    "test_error": "error on fresh samples: squared against the noise-free target, or wrong signs",
    "training_error": "error on the training set: squared against the labels, or wrong signs",
    "test_loss": "mean loss of fresh labels",
    "training_loss": "mean loss of the labels of the training set",
    "objective": "training objective divided by the number of samples",
    "certificate": "bound of the relative distance of the objective from its minimum",
    "ridge_used": "ridge penalty that was used",
    "linear_bound": "error of the best linear predictor",
    # Order parameters.
    "m": "overlap of the readout with the all-ones vector of a class",
    "theta": "overlap of the readout with the projections of bulk rows on a spike",
    "psi": "overlap of the readout with their projections on the rest of a teacher's direction",
    "q1": "overlaps of the bulk rows that the readout combines, across the spikes",
    "q2": "squared norm of the readout divided by the width",
    "amp_overlap": "squared cosine of approximate message passing",
    "spectral_overlap": "squared cosine of the spectral estimator",
    "self_overlap": "overlaps of the neurons with each other",
    "teacher_overlap": "overlaps of the neurons with the teacher's directions",
    "second_layer": "weights of the second layer",
    # What arrays are over, and how they were found.
    "seed": "number of the network",
    "step": "number of gradient steps",
    "time": "time of the flow",
    "kappa": "projection of the input on the spike",
    "t": "projection of the input on the teacher's direction",
    "eigenvalue": "eigenvalue",
    "residual": "largest relative residual of the equations",
    "iterations": "iterations of the solver",
    "converged": "whether the equations were solved",
    "quadrature_error": "estimated error of the averages",
    "point": "number of the point",
    "branch": "number of the branch",
    "stable": "whether the branch is stable",
}  # fmt: skip
"""What names of variables mean."""

_PARTS = {
    "_mean": "{}, mean over networks",
    "_standard_error": "{}, standard error of the mean",
    "_error_estimate": "{}, estimated error",
    "_is_interior": "{}, whether inside of its range",
    "_limit": "{}, extrapolated",
    "_limit_error": "{}, standard error of the extrapolation",
    "_slope": "{}, slope",
    "_theory": "{}, theory",
}
_BEFORE = {
    "simulated_": "{}, of networks", "kernel_": "{}, of the kernel",
    "weights_": "{}, of the first layer", "equivalent_": "{}, of equivalent features",
}  # fmt: skip


def meaning(name: str, names: Mapping[str, str] = NAMES) -> str:
    """Return what a variable is, in words; its name where nothing is known.

    Examples
    --------
    >>> meaning("alpha_mean"), meaning("some_number")
    ('sample complexity n/d, mean over networks', 'some number')
    """
    if name in names or name in NAMES:
        return names.get(name) or NAMES[name]
    for part, words in _PARTS.items():
        if name.endswith(part) and name != part:
            return words.format(meaning(name.removesuffix(part), names))
    for part, words in _BEFORE.items():
        if name.startswith(part) and name != part:
            return words.format(meaning(name.removeprefix(part), names))
    return name.replace("_", " ").strip()


def described(data: xr.Dataset, names: Mapping[str, str] = NAMES) -> xr.Dataset:
    """Return a dataset whose variables all have words (`long_name`) and `units`.

    Parameters
    ----------
    data : xarray.Dataset
        What its variables say already they keep.
    names : mapping from str to str
        Words that come before those of the table.
    """
    for name, variable in data.variables.items():
        variable.attrs.setdefault("long_name", meaning(str(name), names))
        if variable.dtype.kind in "biufc":
            variable.attrs.setdefault("units", "1")
    return data


def labelled(
    columns: Any = None, coords: Any = None, attrs: Any = None, *, names: Mapping[str, str] = NAMES
) -> xr.Dataset:
    """Return a dataset of columns, coordinates and attributes, with words and units."""
    import xarray as xr

    return described(xr.Dataset(columns, coords, attrs), names)
