"""Measurements of simulated networks as labelled arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labelled import labelled
from ..numeric.networks.measure import AXES
from ..numeric.networks.run import Networks

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]


def axes_of(found: Networks, name: str) -> tuple[str, ...]:
    """Return names for all axes of a measured array, networks first."""
    own, count = AXES.get(name), found[name].ndim - 1
    steps = found.steps.get(name)
    # Of several records of steps one is that of the coordinate.
    first = next(iter(found.steps.values()), None)
    begin = () if steps is None else ("step" if steps == first else f"{name}_step",)
    rest = count - len(begin)
    if own is None or len(own) != rest:
        own = tuple(f"{name}_{i}" for i in range(rest))
    return ("seed", *begin, *own)


def mean_and_error(found: Networks, name: str) -> tuple[Array, Array]:
    """Return mean and standard error over networks, infinite for one."""
    mean = found.mean(name)
    if len(found.completed) < 2:
        return mean, np.full(mean.shape, np.inf)
    return mean, found.standard_error(name)


def network_dataset(
    found: Networks,
    coordinates: Mapping[str, ArrayLike],
    attributes: Mapping[str, Any],
    *,
    names: Collection[str] | None = None,
    averaged: Collection[str] | None = None,
    units: Mapping[str, Array] | None = None,
) -> xr.Dataset:
    """Return measurements over ``seed`` and whatever else they depend on.

    Parameters
    ----------
    found : Networks
    coordinates : mapping
        Values along axes; those that no array has are left out.
    attributes : mapping
    names : collection of str, optional
        Quantities to be kept; all by default.
    averaged : collection of str, optional
        Those that get ``…_mean`` and ``…_standard_error``; all by default.
    units : mapping of str to ndarray, optional
        What quantities are multiplied by.

    Returns
    -------
    xarray.Dataset
        Axes of length one, but for ``seed`` and ``alpha``, are left out.
    """
    columns: dict[str, Any] = {}
    for name in found.quantities if names is None else names:
        axes, unit = axes_of(found, name), (units or {}).get(name, 1.0)
        values = found[name] * unit
        single = [
            i for i, axis in enumerate(axes)
            if axis not in ("seed", "alpha") and values.shape[i] == 1
        ]  # fmt: skip
        selected = tuple(axis for i, axis in enumerate(axes) if i not in single)
        # A coordinate of this name says what was asked for.
        label = "ridge_used" if name == "ridge" else name
        columns[label] = (selected, np.squeeze(values, axis=tuple(single)))
        if averaged is None or name in averaged:
            own = tuple(i - 1 for i in single)
            for part, numbers in zip(
                ("mean", "standard_error"), mean_and_error(found, name), strict=True
            ):
                columns[f"{label}_{part}"] = (selected[1:], np.squeeze(numbers * unit, axis=own))
    if found.steps:
        coordinates = {**coordinates, "step": np.array(next(iter(found.steps.values())))}
    used = {axis for dims, _ in columns.values() for axis in dims}
    return labelled(
        columns,
        coords={
            **{name: np.asarray(v) for name, v in coordinates.items() if name in used},
            "seed": np.asarray(found.completed, dtype=np.int32),
        },
        attrs={**attributes, "kind": "simulation", "interrupted": int(found.interrupted)},
    )
