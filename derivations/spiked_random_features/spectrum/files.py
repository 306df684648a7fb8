"""Spectra as datasets and as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ....errors import ParameterError

if TYPE_CHECKING:
    from .spectrum import Spectrum

_FORMAT = "spectrum of spiked random features"
_ARRAYS = ("points", "density", "cumulative", "edges", "soft", "masses", "mass_errors")


def spectrum_dataset(spectrum: Spectrum) -> xr.Dataset:
    """Return density and cumulative share over ``eigenvalue``."""
    model = spectrum.model
    found = xr.Dataset(
        {
            "density": ("eigenvalue", spectrum.density),
            "cumulative": ("eigenvalue", spectrum.cumulative),
            "edge": (("interval", "end"), spectrum.edges),
            "soft": (("interval", "end"), spectrum.soft),
            "mass": ("interval", spectrum.masses),
            "atom": (("number", "place_mass"), np.array(spectrum.atoms).reshape(-1, 2)),
            "outlier": ("outlier_number", np.array(spectrum.outliers)),
        },
        coords={"eigenvalue": spectrum.points},
        attrs={
            "kind": "spectrum",
            "model": model.to_json(),
            "alpha": spectrum.alpha,
            "beta": model.beta,
            "covariance": spectrum.covariance,
            "mass_error": spectrum.mass_error,
            "rests_on": spectrum.rests_on,
        },
    )
    meanings = {
        "eigenvalue": f"eigenvalue of the {spectrum.covariance} covariance of the features",
        "density": "density of the bulk, one being the mass of all eigenvalues",
        "cumulative": "share of the eigenvalues up to here, atoms included",
        "edge": "ends of the intervals of the bulk",
        "soft": "an end beyond which there is more than nothing",
        "mass": "mass of each interval",
        "atom": "place and mass of each degenerate eigenvalue",
        "outlier": "eigenvalues outside the bulk that stay where they are for d to infinity",
    }
    for name, meaning in meanings.items():
        found[name].attrs["long_name"] = meaning
    return found


def to_text(spectrum: Spectrum) -> str:
    """Return a spectrum as JSON."""
    document: dict[str, Any] = {
        "format": _FORMAT,
        "model": spectrum.model.to_json(),
        "alpha": spectrum.alpha,
        "covariance": spectrum.covariance,
        "atoms": spectrum.atoms,
        **{name: getattr(spectrum, name).tolist() for name in _ARRAYS},
    }
    return json.dumps(document) + "\n"


def from_text(path: str | os.PathLike[str]) -> Spectrum:
    """Return the spectrum that a file holds.

    Raises
    ------
    ParameterError
        If there is no such file, or it holds something else.
    """
    from ..model import SpikedRandomFeatures
    from .spectrum import Spectrum

    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        if document.pop("format") != _FORMAT:
            raise ValueError("another kind of file")
        arrays: dict[str, Any] = {name: np.array(document.pop(name)) for name in _ARRAYS}
        arrays["edges"] = arrays["edges"].astype(float).reshape(-1, 2)
        arrays["soft"] = arrays["soft"].astype(bool).reshape(-1, 2)
        model = SpikedRandomFeatures.from_json(document.pop("model"))
        atoms = tuple((float(x), float(mass)) for x, mass in document.pop("atoms"))
        return Spectrum(model=model, atoms=atoms, **arrays, **document)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ParameterError(f"{path} is not a spectrum written by save: {error}") from None
