"""The equations of a spectrum as text: derived once for a student, kept in the cache.

A run that finds them there imports no SymPy.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....numeric.cache import FileCache
from ...derived import derived


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
    return _derivation(cache, student, unspiked=unspiked, correlated_norms=correlated_norms)


@derived("spiked_random_features/spectrum", SpectrumDerivation)
def _derivation(student: str, **flags: bool) -> SpectrumDerivation:
    from ....symbolic.activations import activation
    from .equations import derive_spectrum

    return derive_spectrum(activation(student, argument="student"), **flags)
