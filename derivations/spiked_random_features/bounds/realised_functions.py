r"""The functions of the projection on the spike that a network realises, beside the target.

A network predicts :math:`m\,\mu_0(\kappa) + \vartheta\,\kappa\mu_1(\kappa)` on average over inputs
with a given projection κ on the spike (Result 3.2 of Cui et al., arXiv 2402.04980), the target is
:math:`T_0(\kappa)` there. The coefficients are those of the bounds (:mod:`.bounds`) or of a saddle
point; the functions come from generated tables (:mod:`.shape_tables`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import ParameterError
from ....numeric.arguments import positive_number
from ....numeric.kernel_arrays import converged_tables
from ...derived import derived
from .bounds import bounds

if TYPE_CHECKING:
    import xarray as xr

    from ..model import SpikedRandomFeatures

_REACH, _POINTS = 3.5, 281


def realised_functions(
    model: SpikedRandomFeatures,
    *,
    kappa: object = None,
    alpha: float | None = None,
    ridge: float | None = None,
) -> xr.Dataset:
    """Return target and realised functions on a grid; see :meth:`.analyses.Analyses`.

    Parameters
    ----------
    model : SpikedRandomFeatures
    kappa : array-like (n,), optional
        Projections on the spike; default 281 points from -3.5 to 3.5.
    alpha, ridge : float, optional
        Both: add the function that is learnt at this sample complexity and ridge penalty.

    Returns
    -------
    xarray.Dataset
        Over ``kappa``: ``target`` (mean label), ``target_spread`` (standard deviation of the
        target at this κ, without noise), ``linear`` (best linear predictor), ``upper``, ``lower``
        and ``limit``, the functions that have the errors U, L and E_∞, and ``learnt``;
        coefficients and errors in the attributes.

    Raises
    ------
    ParameterError
        If `kappa` holds something else than finite numbers, or only one of α and λ is given.
    """
    import xarray as xr

    if (alpha is None) != (ridge is None):
        raise ParameterError("alpha and ridge go together: give both for the learnt function")
    x = np.linspace(-_REACH, _REACH, _POINTS) if kappa is None else _checked(kappa)
    found = bounds(model)
    sets = {
        "upper": (found.upper_coefficient, 0.0),
        "lower": found.lower_coefficients[:2],
        "limit": found.limit_coefficients[:2],
    }
    if alpha is not None and ridge is not None:
        solution = model.solve(
            alpha=positive_number("alpha", alpha), ridge=positive_number("ridge", ridge)
        )
        sets["learnt"] = (solution.m, solution.theta)
    columns: dict[str, Any] = {}
    attributes: dict[str, Any] = {"student": model.student, "teacher": model.teacher}
    for name, (m, theta) in sets.items():
        tables = _tables(model, x, m, theta)
        columns[name] = ("kappa", tables["realised"])
        attributes |= {f"m_{name}": float(m), f"theta_{name}": float(theta)}
    spread = np.sqrt(tables["target_variance"])
    given = "at this projection"
    columns = {
        "target": ("kappa", tables["target"], {"long_name": f"mean target {given}"}),
        "target_spread": ("kappa", spread, {"long_name": f"standard deviation {given}"}),
        "linear": ("kappa", tables["linear"], {"long_name": f"best linear predictor {given}"}),
        **columns,
    }
    errors = {
        "error_upper": found.upper, "error_lower": found.lower, "error_limit": found.limit,
        "error_linear": found.linear,
    }  # fmt: skip
    return xr.Dataset(columns, {"kappa": x}, {**attributes, **errors})


def _tables(model: SpikedRandomFeatures, x: Any, m: float, theta: float) -> dict[str, Any]:
    """Return the functions at given projections, the prediction with overlaps m and ϑ."""
    spike, cache = model.spike, model._cache
    flags = dict(model._case)
    del flags["stretched"]
    source = _source(cache, model.student, model.teacher, **flags)
    values = (
        spike.spike_strength, spike.bulk_variance, spike.alignment, spike.orthogonal_alignment,
        spike.norm_overlap, m, theta,
    )  # fmt: skip
    module = cache.load_module("realised_functions", source)
    found = converged_tables(module, [np.float64(v) for v in values], x)
    names = ("target", "target_variance", "linear", "realised")
    # Functions that vanish have no table, and constants have one value.
    return {name: np.broadcast_to(found.get(name, 0.0), x.shape).copy() for name in names}


@derived("spiked_random_features/realised", str)
def _source(student: str, teacher: str, **flags: bool) -> str:
    from ....symbolic.activations import activation
    from .shape_tables import realised_table_source

    return realised_table_source(
        activation(student, argument="student"), activation(teacher, argument="teacher"), **flags
    )


def _checked(kappa: object) -> Any:
    try:
        x = np.atleast_1d(np.asarray(kappa, dtype=float))
    except (TypeError, ValueError):
        x = np.zeros((0, 0))
    if x.ndim != 1 or not x.size or not np.isfinite(x).all():
        raise ParameterError(
            f"kappa must be finite numbers in one dimension, such as [-1, 0, 1], got {kappa!r}"
        )
    return x
