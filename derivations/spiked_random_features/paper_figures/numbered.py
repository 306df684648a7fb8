"""Figures by their number in the paper."""

from __future__ import annotations

import os
from importlib import import_module

from ....errors import ParameterError
from ....numeric.arguments import checked_seed, whole_number
from .drawing import PaperFigure, Simulated

FIGURES = {
    1: ("functions", "learned_function", "learned function along the spike, against the target"),
    2: ("errors", "error_over_samples", "test error against α for several α0"),
    3: ("functions", "bound_functions", "functions that realise the bounds"),
    4: ("errors", "error_over_spikes", "test error for spike strengths and alignments"),
    5: ("errors", "error_over_widths", "test error over the width"),
    6: ("vocabularies", "error_over_vocabularies", "test error for vocabularies"),
    7: ("functions", "realisable_functions", "realisable functions over step sizes"),
    8: ("spectra", "feature_spectrum", "spectrum of the feature covariance"),
}
"""Number: module, function, what it shows."""

_SMALLEST_DIMENSION = 20


def paper_figure(
    number: int,
    *,
    dimension: int = 200,
    seeds: int = 4,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = True,
    cache_folder: str | os.PathLike[str] | None = None,
) -> PaperFigure:
    """Draw a figure of Cui et al., arXiv 2402.04980, with simulated points where it has any.

    Parameters
    ----------
    number : int
        1 to 8.
    dimension : int
        Input dimension d of the networks, a multiple of 20, so that all ratios are whole numbers.
    seeds : int
        Networks for each point; 0 for none.
    seed : int
        Entropy.
    workers : int, optional
        Threads.
    progress : bool
    cache_folder : path, optional

    Returns
    -------
    PaperFigure
        Figure and data; ``save("figure.png")`` writes both.

    Raises
    ------
    ParameterError
        If there is no such figure, or an argument is outside its range.

    Notes
    -----
    Parameters are those that this package documents, not read off the published figures.
    """
    number = whole_number("number", number)
    if number not in FIGURES:
        raise ParameterError(f"number must be one of {', '.join(map(str, FIGURES))}, got {number}")
    dimension = whole_number("dimension", dimension, _SMALLEST_DIMENSION)
    if dimension % _SMALLEST_DIMENSION:
        raise ParameterError(f"dimension must be a multiple of 20, got {dimension}; use 200")
    simulated = Simulated(
        dimension=dimension,
        seeds=whole_number("seeds", seeds, 0),
        seed=checked_seed(seed),
        workers=None if workers is None else whole_number("workers", workers),
        progress=progress,
    )
    module, function, _ = FIGURES[number]
    found: PaperFigure = getattr(import_module(f".{module}", __package__), function)(
        simulated, cache_folder
    )
    return found
