"""Spectra of first layers and of their kernels after gradient steps, as labelled arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ParameterError
from ...numeric.arguments import is_one_of
from ...numeric.networks.measure import Measurement
from ...numeric.networks.readout import RidgeReadout
from ...numeric.networks.sizes import sample_count
from ...numeric.networks.spectra import KernelEigenvalues
from .simulated import (
    attributes,
    gaussian_features,
    measured_networks,
    one_step_network,
    recorded_steps,
)

if TYPE_CHECKING:
    import xarray as xr

    from .model import OneGradientStep

MATRICES = ("weights", "kernel", "linearised")
"""First layer, kernel of the network's features, kernel of their Gaussian counterparts."""

_AXES = {
    "singular_values": "mode",
    "kernel_eigenvalues": "sample",
    "linearised_eigenvalues": "sample",
}
_MEANING = {
    "singular_values": "singular values of the first layer, descending",
    "teacher_alignment": "squared cosine of its first left singular vector and the teacher",
    "spike_alignment": "squared cosine of the former and X^T y of the steps so far, zero before",
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
    chosen = _checked_matrices(matrices)
    network = one_step_network(
        model, dimension, steps=record[-1], fresh=fresh, layer=layer, exponent=exponent
    )
    samples = sample_count("alpha", model.alpha, network.dimension)
    measured: dict[str, str | Measurement] = {
        "weights": "singular_values",
        "kernel": "kernel_eigenvalues",
        "linearised": KernelEigenvalues(gaussian_features(model)),
    }
    networks = measured_networks(
        network,
        # Without a penalty: its memory is that of singular values. It is not fitted.
        RidgeReadout(samples, 0.0) if set(chosen) != {"weights"} else None,
        [measured[name] for name in chosen], record,
        seeds=seeds, seed=seed, workers=workers, store=store, progress=progress,
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
            **attributes(model, network, seed, networks), "samples": samples, "layer": layer,
            "fresh": int(bool(fresh)), "exponent": float(exponent),
        },
    )  # fmt: skip
    for name, meaning in _MEANING.items():
        if name in dataset:
            dataset[name].attrs["long_name"] = meaning
    return dataset


def _checked_matrices(matrices: Sequence[str]) -> list[str]:
    """Return names of matrices in their own order, each once."""
    listed = isinstance(matrices, Sequence) and not isinstance(matrices, str) and len(matrices)
    if not listed or not all(is_one_of(name, MATRICES) for name in matrices):
        raise ParameterError(f"matrices must be some of {', '.join(MATRICES)}, got {matrices!r}")
    return [name for name in MATRICES if name in matrices]
