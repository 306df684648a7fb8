"""What is derived once for a student and a teacher, kept as text on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....numeric.cache import FileCache
from ...derived import derived


@dataclass(frozen=True)
class Derivation:
    """Generated sources for one student and one teacher, for any number of letters.

    Attributes
    ----------
    student, teacher : str
        Names.
    coordinates : int
        Of the teacher: 1 for a single-index one.
    student_tables : str
        Tables of μ_0, √c μ_1 and μ_2² in the centre and the bulk variance.
    precise_means : str
        The table of μ_0 for mpmath.
    teacher_tables : str
        Tables of T_0, T_1, T_2 in γ·κ and ρ; empty for a teacher of several coordinates.
    teacher_source : str
        The vectorised function ``teacher``.
    equations : mapping from str to str
        For each kind of bulk rows, the derivatives of the free energy.
    """

    student: str
    teacher: str
    coordinates: int
    student_tables: str
    precise_means: str
    teacher_tables: str
    teacher_source: str
    equations: Mapping[str, str]


def derivation(student: str, teacher: str, *, teacher_kind: str, cache: FileCache) -> Derivation:
    """Return the derivation, from the cache where it is there.

    Parameters
    ----------
    student, teacher : str
    teacher_kind : {"single-index", "aligned", "multi-index"}
        "aligned": the labels are a function of κ, exactly.
    cache : FileCache
    """
    return _derivation(cache, student, teacher, teacher_kind)


@derived("spiked_random_features/vocabulary", Derivation)
def _derivation(student: str, teacher: str, teacher_kind: str) -> Derivation:
    from .derive import derive

    return derive(student, teacher, teacher_kind=teacher_kind)
