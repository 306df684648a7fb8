"""Spectra of first layers and of their kernels after gradient steps, as labelled arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...numeric.networks.sizes import sample_count
from ...numeric.one_step_simulation import simulate_spectra as simulate_networks
from ...numeric.one_step_spectra import MATRICES
from .simulated import attributes, one_step_setup, recorded_steps, run_options

if TYPE_CHECKING:
    import xarray as xr

    from .model import OneGradientStep

_AXES = {
    "singular_values": "mode",
    "kernel_eigenvalues": "sample",
    "linearised_eigenvalues": "sample",
}
_MEANING = {
    "singular_values": "singular values of the first layer, descending",
    "teacher_alignment": "squared cosine of its first left singular vector and the teacher",
    "spike_alignment": "squared cosine of its first left singular vector and X^T y of the steps",
    "readout_alignment": "squared cosine of its first right singular vector and the readout",
    "kernel_eigenvalues": "eigenvalues of the kernel of n samples, descending, zeros included",
    "label_alignment": "squared cosine of the kernel's first eigenvector and the labels",
    "linearised_eigenvalues": "the same of the kernel of Gaussian features",
    "linearised_label_alignment": "the same of the kernel of Gaussian features",
}


def simulate_spectra(
    model: OneGradientStep,
    dimension: int,
    *,
    seeds: int = 5,
    matrices: Sequence[str] = MATRICES,
    layer: str = "gradient",
    steps: object = 1,
    fresh: bool = False,
    exponent: float = 0.0,
    seed: int = 0,
    workers: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Train networks; see :meth:`.model.OneGradientStep.simulate_spectra`."""
    import xarray as xr

    record = recorded_steps(steps, layer)
    setup = one_step_setup(
        model, dimension, steps=record[-1], fresh=fresh, layer=layer, exponent=exponent
    )
    samples = sample_count("alpha", model.alpha, setup.dimension)
    networks = simulate_networks(
        setup, samples, run_options(model, seeds, seed, workers, store, progress),
        matrices=matrices, record=(0, 1) if layer == "theory" and record[-1] else record,
    )  # fmt: skip
    columns: dict[str, Any] = {}
    for name, values in networks.values.items():
        axes = ("seed", "step", _AXES[name]) if name in _AXES else ("seed", "step")
        columns[name] = (axes[: values.ndim], values)
    dataset = xr.Dataset(
        columns,
        coords={
            "step": np.asarray(record, dtype=np.int32),
            "seed": np.asarray(networks.completed, dtype=np.int32),
        },
        attrs={
            **attributes(model, setup, seed, networks), "samples": samples, "layer": layer,
            "fresh": int(bool(fresh)), "exponent": float(exponent),
        },
    )  # fmt: skip
    for name, meaning in _MEANING.items():
        if name in dataset:
            dataset[name].attrs["long_name"] = meaning
    return dataset
