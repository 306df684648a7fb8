"""What is seen of a trained network: small functions that a run is given by name.

A measurement takes a :class:`.readout.TrainedNetwork` and returns arrays by name. Users bring
their own in the same way; those of this module and of :mod:`.directions` are known by the names in
:data:`MEASUREMENTS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..arguments import real_array, whole_number
from .directions import directions, linear_part, neurons, step_size, subspace
from .readout import TrainedNetwork
from .samples import TEST
from .spectra import KernelEigenvalues, feature_eigenvalues, singular_values

__all__ = ["AXES", "MEASUREMENTS", "MeanPrediction", "Measurement", "measurement_of"]

Array = NDArray[np.float64]
Measurement = Callable[[TrainedNetwork], Mapping[str, Array]]


def errors(trained: TrainedNetwork) -> dict[str, Array]:
    r"""Errors of the readouts, each (S, L): sample sizes and penalties.

    Returns
    -------
    dict of ndarray
        ``test_error``: mean squared error against the noise-free target, or share of fresh labels,
        noise included, with the wrong sign; ``training_error``, the same with the labels of the
        training set; ``test_loss`` and ``training_loss``, mean losses of labels; ``objective``,
        :math:`\frac1n[\sum\ell + \frac\lambda2|w|^2]`; ``certificate``, an upper bound of
        (objective − minimum)/objective, zero for ridge regression; ``ridge``, λ; in single
        precision ``rounding``, relative distance of predictions from those of double precision.
    """
    return {**trained.fit.values, **trained.test}


def overlaps(trained: TrainedNetwork) -> dict[str, Array]:
    """Order parameters of the readouts, (S, L, …); see :meth:`.layer.FirstLayer.overlaps`."""
    coefficients = trained.fit.coefficients * math.sqrt(trained.layer.width)
    sizes, penalties = coefficients.shape[1:]
    rows = [
        [trained.layer.overlaps(coefficients[:, s, k]) for k in range(penalties)]
        for s in range(sizes)
    ]
    return {name: np.array([[found[name] for found in row] for row in rows]) for name in rows[0][0]}


def spike(trained: TrainedNetwork) -> dict[str, Array]:
    """Realised ``spike_strength`` (K, k), ``bulk_variance`` (K,) and ``alignment`` (k, r)."""
    layer = trained.layer
    return {
        "spike_strength": layer.strengths,
        "bulk_variance": layer.bulk_variances,
        "alignment": layer.alignment,
    }


@dataclass(frozen=True, slots=True)
class MeanPrediction:
    """The function of the projection on the spike that readouts learn.

    Parameters
    ----------
    edges : sequence of float
        Of K cells of the projection, increasing.
    samples : int
        Fresh samples.

    Returns
    -------
    dict of ndarray
        ``projection`` (K,) and ``prediction`` (K, S, L): means over the fresh samples of a cell;
        NaN in a cell without one.

    Raises
    ------
    ParameterError
        If edges do not increase.
    """

    edges: Sequence[float] | Array
    samples: int = 20_000

    def __post_init__(self) -> None:
        edges = real_array("edges", self.edges)
        if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
            raise ParameterError(f"edges must be increasing numbers, got {self.edges!r}")
        object.__setattr__(self, "edges", tuple(edges.tolist()))
        object.__setattr__(self, "samples", whole_number("samples", self.samples))

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results."""
        return f"{self.samples} samples, edges {self.edges}"

    def __call__(self, trained: TrainedNetwork) -> dict[str, Array]:
        """Measure."""
        fit, cells = trained.fit, len(self.edges) - 1
        columns = fit.coefficients.reshape(trained.layer.width, -1)
        # The last one is the projection, so that all are averaged alike.
        sums = np.zeros((cells + 2, columns.shape[1] + 1))
        counts = np.zeros(cells + 2)
        for block, features in trained.feature_blocks(TEST, self.samples):
            along = block.inputs @ trained.layer.spikes[0]
            inside = np.searchsorted(self.edges, along, side="right")
            seen = features @ columns + fit.intercepts.reshape(-1)
            np.add.at(sums, inside, np.column_stack([seen, along]))
            counts += np.bincount(inside, minlength=cells + 2)
        with np.errstate(invalid="ignore"):
            means = (sums / counts[:, None])[1:-1]
        return {
            "projection": means[:, -1],
            "prediction": means[:, :-1].reshape(cells, *fit.intercepts.shape),
        }


def label_moment(trained: TrainedNetwork) -> dict[str, Array]:
    """Length of the mean over steps of X^T y/n, and its component along the first teacher."""
    moments = trained.training.label_moments
    mean = np.mean(moments, axis=0) if moments else np.zeros(trained.network.dimension)
    return {
        "spike_length": np.asarray(np.linalg.norm(mean)),
        "spike_overlap": np.asarray(mean @ trained.layer.teachers[0]),
    }


def rounding(trained: TrainedNetwork) -> dict[str, Array]:
    """Single precision: relative rounding of the last step's gradient, ``gradient_rounding``."""
    return {"gradient_rounding": np.array(trained.training.rounding)}


_FUNCTIONS = (
    errors, overlaps, spike, feature_eigenvalues, label_moment, rounding, directions, neurons,
    subspace, linear_part, step_size, singular_values,
)  # fmt: skip
MEASUREMENTS: dict[str, Measurement] = {f.__name__: f for f in _FUNCTIONS}
MEASUREMENTS["kernel_eigenvalues"] = KernelEigenvalues()

_ERRORS = (
    "test_error", "training_error", "test_loss", "training_loss", "objective", "certificate",
    "ridge", "rounding",
)  # fmt: skip

AXES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_ERRORS, ("alpha", "ridge")),
    "m": ("alpha", "ridge", "class"),
    "theta": ("alpha", "ridge", "spike", "class"),
    "psi": ("alpha", "ridge", "teacher", "class"),
    "q1": ("alpha", "ridge", "class", "other_class"),
    "q2": ("alpha", "ridge", "class"),
    "spike_strength": ("class", "spike"),
    "bulk_variance": ("class",),
    "alignment": ("spike", "teacher"),
}
"""Names of the axes of measured arrays, after those of networks and steps."""


def measurement_of(given: object) -> tuple[str, Measurement]:
    """Return name and function of a measurement.

    Raises
    ------
    ParameterError
        If there is none of this name, or it is no function.
    """
    if isinstance(given, str) and given in MEASUREMENTS:
        return given, MEASUREMENTS[given]
    if callable(given):
        return str(getattr(given, "__qualname__", type(given).__qualname__)), given
    raise ParameterError(
        f"measure must hold functions or some of {', '.join(MEASUREMENTS)}; got {given!r}"
    )
