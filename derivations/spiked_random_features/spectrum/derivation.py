"""The equations of a spectrum as text: derived once for a student, kept in the cache.

A run that finds them there imports no SymPy.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from ....numeric.cache import FileCache
from ....one_thread import one_at_a_time


@dataclass(frozen=True)
class SpectrumDerivation:
    """What was derived for one student.

    Attributes
    ----------
    student : str
    source : str
        Defines ``fixed_point``, ``outliers`` and ``expected``, and the same of the population
        covariance under names that begin with ``population_``; see
        :func:`.spectrum.equations.derive_spectrum`.
    table_source : str
        Generated module of the tables of the student.
    parameters, table_parameters : tuple of str
        Names in the order of the generated functions.
    even : bool
        Half of the quadrature line suffices.
    """

    student: str
    source: str
    table_source: str
    parameters: tuple[str, ...]
    table_parameters: tuple[str, ...]
    even: bool


def spectrum_derivation(
    student: str, *, unspiked: bool, correlated_norms: bool, cache: FileCache
) -> SpectrumDerivation:
    """Return the derivation for a student, from the cache where it is there.

    Parameters
    ----------
    student : str
        Catalogue name or expression in z.
    unspiked, correlated_norms : bool
        Exactly r = 0; with the correlation of norms and overlaps of the rows.
    cache : FileCache
    """
    return _from_cache(student, unspiked, correlated_norms, os.fspath(cache.folder))


@lru_cache(maxsize=256)
@one_at_a_time
def _from_cache(
    student: str, unspiked: bool, correlated_norms: bool, folder: str
) -> SpectrumDerivation:
    cache = FileCache(folder)
    flags = {"unspiked": unspiked, "correlated_norms": correlated_norms}
    names = " ".join(name for name, value in flags.items() if value)
    key = f"spiked_random_features/spectrum/spectrum/{names}/{student}"
    document = cache.load_json(key)
    if document is not None:
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in document.items()
        }
        return SpectrumDerivation(**fields)
    from ....symbolic.activations import activation
    from .equations import derive_spectrum

    found = derive_spectrum(activation(student, argument="student"), **flags)
    cache.store_json(key, asdict(found))
    return found
