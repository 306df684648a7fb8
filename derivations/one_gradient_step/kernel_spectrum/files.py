"""Spectra of kernels as text, as datasets and as JSON."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ....digits import held_digits
from ....errors import GiantstepError, ParameterError

if TYPE_CHECKING:
    import xarray as xr

    from .spectrum import ConjugateKernel

_FORMAT = "conjugate kernel of one gradient step"
_SCALARS = (
    "atom", "bulk_edge", "threshold", "spike", "outlier", "eigenvalue", "singular_value",
    "label_alignment", "critical_step_size",
)  # fmt: skip
# Numbers of another release may differ by rounding.
_AGREEMENT = 1e-9


def kernel_values(kernel: ConjugateKernel) -> dict[str, Any]:
    """Return a spectrum as plain values."""
    return {
        "format": _FORMAT,
        "model": json.loads(kernel.model.to_json()),
        "trained": kernel.trained,
        "digits": kernel.digits,
        **{name: _plain(getattr(kernel, name), kernel.digits) for name in _SCALARS},
        "edges": [[_plain(x, kernel.digits) for x in row] for row in kernel.edges],
        "masses": [_plain(x, kernel.digits) for x in kernel.masses],
        "rests_on": kernel.rests_on,
        **({"certificate": kernel.certificate.to_dict()} if kernel.certificate else {}),
    }


def _plain(value: Any, digits: int | None) -> Any:
    if value is None:
        return None
    if value == math.inf:
        return "inf"
    if digits is None:
        return float(value)
    return held_digits(value, digits)


def read_kernel(path: str | os.PathLike[str]) -> ConjugateKernel:
    """Return the spectrum that a file holds; its numbers must be those of its model.

    Raises
    ------
    ParameterError
        If there is no such file, or it holds something else.
    """
    from ..model import OneGradientStep
    from .spectrum import conjugate_kernel

    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        if document["format"] != _FORMAT:
            raise ValueError("another kind of file")
        model = OneGradientStep.from_json(json.dumps(document["model"]))
        certify = "certificate" in document
        found = conjugate_kernel(model, document["trained"], document["digits"], certify)
        for name in _SCALARS:
            kept, now = document[name], _plain(getattr(found, name), found.digits)
            if (kept is None) != (now is None) or (
                kept is not None
                and not math.isclose(
                    float(kept), float(now), rel_tol=_AGREEMENT, abs_tol=_AGREEMENT
                )
            ):
                raise ValueError(f"its {name} is {kept}, that of its model {now}")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, GiantstepError) as error:
        raise ParameterError(f"{path} is not a spectrum written by save: {error}") from None
    return found


def kernel_dataset(kernel: ConjugateKernel, points: int) -> xr.Dataset:
    """Return density and cumulative share over ``eigenvalue``."""
    import xarray as xr

    bulk = kernel.bulk(points)
    outliers = [] if kernel.outlier is None else [float(kernel.outlier)]
    found = xr.Dataset(
        {
            "density": ("eigenvalue", bulk.density),
            "cumulative": ("eigenvalue", bulk.cumulative),
            "edge": (("interval", "end"), kernel.edges.astype(float)),
            "mass": ("interval", kernel.masses.astype(float)),
            "mass_error": ("interval", bulk.mass_errors),
            "outlier": ("outlier_number", np.array(outliers)),
        },
        coords={"eigenvalue": bulk.points},
        attrs={
            "kind": "kernel spectrum",
            "model": kernel.model.to_json(),
            "trained": int(kernel.trained),
            "atom": float(kernel.atom),
            "threshold": float(kernel.threshold),
            "spike": float(kernel.spike),
            "label_alignment": float(kernel.label_alignment),
            "critical_step_size": float(kernel.critical_step_size),
            "rests_on": kernel.rests_on,
        },
    )
    meanings = {
        "eigenvalue": "eigenvalue of the conjugate kernel",
        "density": "density of the bulk, one being the mass of all eigenvalues",
        "cumulative": "share of the eigenvalues up to here, zeros included",
        "edge": "ends of the intervals of the bulk",
        "mass": "share of the eigenvalues in each interval",
        "mass_error": "difference of the integrated density from it",
        "outlier": "eigenvalue outside the bulk",
    }
    for name, meaning in meanings.items():
        found[name].attrs["long_name"] = meaning
    return found


def kernel_lines(kernel: ConjugateKernel) -> list[str]:
    """Return a spectrum in words, line by line."""
    digits = kernel.digits or 6

    def shown(value: Any) -> str:
        if kernel.digits is None:
            return f"{value:.{digits}g}"
        return str(_plain(value, digits))

    when = "after the step" if kernel.trained else "before the step"
    pieces = [
        f"[{shown(low)}, {shown(high)}] of mass {shown(mass)}"
        for (low, high), mass in zip(kernel.edges, kernel.masses, strict=True)
    ]
    lines = [f"conjugate kernel {when}", "bulk: " + ", ".join(pieces)]
    if kernel.atom:
        lines.append(f"zeros: {shown(kernel.atom)} of all eigenvalues")
    if kernel.outlier is None:
        lines.append("outlier: none")
    else:
        lines += [
            f"outlier: {shown(kernel.outlier)}",
            f"squared overlap of its eigenvector with fresh labels: "
            f"{shown(kernel.label_alignment)}",
        ]
    return [
        *lines,
        f"squared length of the spike: {shown(kernel.spike)}, threshold T_c = "
        f"{shown(kernel.threshold)}",
        f"critical step size: {shown(kernel.critical_step_size)}",
        f"rests on: {kernel.rests_on}",
    ]


def kernel_latex(kernel: ConjugateKernel) -> str:
    """Return a spectrum as formulas, without delimiters."""
    edges = r"\cup".join(rf"[{float(a):.6g},\,{float(b):.6g}]" for a, b in kernel.edges)
    threshold = r"\infty" if kernel.threshold == math.inf else f"{float(kernel.threshold):.6g}"
    sign = ">" if kernel.supercritical else r"\le"
    rows = [
        rf"\operatorname{{supp}}\rho &= {edges}",
        rf"\theta_1^2 = {float(kernel.spike):.6g} &{sign} T_c = {threshold}",
        rf"s_1(\Phi)^2 &= {float(kernel.eigenvalue):.6g}",
    ]
    return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"
