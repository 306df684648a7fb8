"""The theory at what one network realised: its spike, and on request its bulk matrix.

With averages over the eigenvalues of one matrix instead of their limit, Result 3.3 is evaluated as
in the public code of Cui et al., arXiv 2402.04980. There the matrix is random. Here it is that of
the rows of a network after its step, with the anisotropy that spiked random features leave out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..kernels.kernel import Kernel
    from .model import SpikedRandomFeatures
    from .spike import SpikeParameters

Array = NDArray[np.float64]


def solve_conditioned(
    model: SpikedRandomFeatures,
    spike: SpikeParameters,
    alphas: Array,
    ridge: float,
    *,
    bulk: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """Solve the equations of a model at another spike, and at one bulk matrix.

    Parameters
    ----------
    model : SpikedRandomFeatures
        At a width.
    spike : SpikeParameters
    alphas : ndarray (n,)
    ridge : float
    bulk : mapping from str to ndarray (p,), optional
        As from :func:`.feature_spectra.bulk_spectrum`; default: the limit of its spectrum.

    Returns
    -------
    dict from str to ndarray (n,)
        Errors and order parameters.

    Raises
    ------
    ConvergenceError
        If a point has no solution that is found.
    """
    kernel = conditioned_kernel(
        model.student,
        model.teacher,
        aligned=spike.orthogonal_alignment == 0,
        correlated_norms=model._case["correlated_norms"],
        # One bulk matrix has its stretch already.
        stretched=model._case["stretched"] and bulk is None,
        one_bulk=bulk is not None,
        cache_folder=None if model.cache_folder is None else os.fspath(model.cache_folder),
    )
    values = {**model._parameter_values(), **asdict(spike)}
    point = {name: values[name] for name in kernel.parameters if name in values}
    data = None if bulk is None else dict(bulk)
    found = [
        kernel.solve(**point, alpha=float(alpha), ridge=ridge, data=data).values for alpha in alphas
    ]
    return {name: np.array([values[name] for values in found]) for name in found[0]}


@lru_cache(maxsize=8)
def conditioned_kernel(
    student: str,
    teacher: str,
    *,
    aligned: bool,
    correlated_norms: bool,
    stretched: bool,
    one_bulk: bool,
    cache_folder: str | None,
) -> Kernel:
    """Return the kernel of the equations at a width; for one bulk matrix, that is its data."""
    from ...symbolic.activations import activation
    from ..kernels.lower import lower
    from .derive import saddle_point_system
    from .physics import spiked_free_energy

    energy = spiked_free_energy(
        activation(student, argument="student"),
        activation(teacher, argument="teacher"),
        aligned=aligned,
        correlated_norms=correlated_norms,
        stretched=stretched,
        finite_width=True,
        one_bulk=one_bulk,
    )
    title = "Saddle point of ridge regression on spiked random features, conditioned on a network"
    return lower(saddle_point_system(energy, title), cache_folder=cache_folder)
