"""What a prediction rests on: the words for it, used by every result that predicts."""

from __future__ import annotations

from enum import StrEnum


class Standing(StrEnum):
    """What a statement rests on."""

    THEOREM = "theorem"
    CONJECTURE = "conjecture"
    EXTRAPOLATION = "extrapolation"
    DERIVED_HERE = "derived here"
    HEURISTIC = "heuristic"
