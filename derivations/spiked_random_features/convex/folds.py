"""Where averages over label and prediction are steep at a solution, for grids that crowd there.

Given κ a prediction is Gaussian, with mean C(κ) and variance q(κ). Its sign, and on which side of a
kink of the loss it is, change where C crosses zero or the kink, on the width √q/|C'|. For readouts
with small overlaps q1 and q2, or a student that saturates, that is far below the width of any
conditional coefficient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Nodes on which crossings are looked for; conditional coefficients are smooth between them.
NODES = np.linspace(-8.8, 8.8, 1761)
# Rules that crowd on smaller widths see nothing new: rounding moves a crossing as much.
_SMALLEST_WIDTH = 1e-8
# The same of an inner variable, where rules are uniform and nodes multiply.
_SMALLEST_INNER = 0.03
# In units of the prediction: the poles of a logistic function are at ±iπ.
_LOSS_WIDTH = 2.5
_FAR = 4.0


class Law(NamedTuple):
    """The law of predictions at :data:`NODES`: the fields of :class:`.physics.Prediction`."""

    mean: Array
    covariance: Array
    variance: Array
    free_variance: Array
    step: Array


def folds(law: Law, kinks: Sequence[float]) -> tuple[list[float], float]:
    """Return where predictions cross zero or a kink, and the smallest width on which they do.

    Parameters
    ----------
    law : Law
    kinks : sequence of float
        Of the loss at the label 1; those at -1 are their mirror images.

    Returns
    -------
    places : list of float
    width : float
        Infinite if there is no crossing.
    """
    mean, step, deviation = law.mean, law.step, np.sqrt(law.variance)
    levels = [mean]
    for kink in kinks:
        # The proximal point leaves and reaches a kink where the prediction is at it and, behind
        # it, as far as a step of the slope of the loss.
        levels += [mean - kink, mean - kink + step, mean + kink, mean + kink - step]
    places, width = [], np.inf
    for level in levels:
        slope = np.abs(np.gradient(level, NODES))
        for k in np.flatnonzero(np.signbit(level[1:]) != np.signbit(level[:-1])):
            rise = level[k + 1] - level[k]
            share = 0.0 if rise == 0 else -level[k] / rise
            steepest = max(slope[k], slope[k + 1])
            if steepest > 0:
                places.append(float(NODES[k] + share * (NODES[k + 1] - NODES[k])))
                width = min(width, float(min(deviation[k], deviation[k + 1]) / steepest))
    return places, max(width, _SMALLEST_WIDTH)


def inner_width(law: Law, *, smooth: bool) -> float:
    """Return on which width averages over label and prediction vary in their inner variable.

    The label given the prediction, and the prediction given the label, vary on √v/p, with the
    variance v of what is left of the prediction and its covariance p with the label's field. A
    smooth loss has a slope that varies on predictions of order one, of standard deviation √q.

    Parameters
    ----------
    law : Law
    smooth : bool
        The loss has no kinks; else its average is in closed form.
    """
    # Far out there is next to nothing.
    near = np.abs(NODES) < _FAR
    with np.errstate(divide="ignore", invalid="ignore"):
        widths = np.sqrt(law.free_variance) / np.abs(law.covariance)
        if smooth:
            widths = np.fmin(widths, _LOSS_WIDTH / np.sqrt(law.variance))
    return max(float(np.nanmin(widths[near], initial=np.inf)), _SMALLEST_INNER)
