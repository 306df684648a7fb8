r"""Spikes at which a network learns its target: :math:`\mu_0 \propto \sigma_*`, so that U = 0.

With the population gradient (c = 1, γ = ±1) the upper bound of the test error vanishes where the
smoothed student is the target: erf and erf at :math:`r = \sqrt 3`, sin and sin at r = 1 (Cui et
al., arXiv 2402.04980, section on realisable functions).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from ....symbolic.activations import activation
from ....symbolic.gaussian import expect
from ....symbolic.hermite import hermite_coefficient
from .. import physics as fe
from .step_bounds import bounds_over_step

if TYPE_CHECKING:
    from ....symbolic.activations import Activation

_LARGEST_DENOMINATOR = 1000


@dataclass(frozen=True)
class PerfectLearning:
    r"""A spike at which U = 0.

    Attributes
    ----------
    spike_strength, step_size : Expr
        r, and the per-neuron step s that makes it; exact if `proven`. The step is None if the
        population gradient makes no spike.
    coefficient : Expr
        m with :math:`m\,\mu_0 = \sigma_*`.
    proven : bool
        SymPy has shown :math:`m\,\mu_0(\kappa) = \sigma_*(\gamma\kappa)` for all κ; else U vanishes
        up to rounding.
    upper : float
        U there, as computed.
    """

    spike_strength: sp.Expr
    step_size: sp.Expr | None
    coefficient: sp.Expr
    proven: bool
    upper: float

    @property
    def rests_on(self) -> str:
        """What it rests on, in words."""
        if self.proven:
            return "exact: the smoothed student is a multiple of the target"
        return f"float: U = {self.upper:.1e}, zero up to rounding"

    def __str__(self) -> str:
        step = "" if self.step_size is None else f", s = {self.step_size}"
        return f"r = {self.spike_strength}{step}, m = {self.coefficient}; {self.rests_on}"


def perfect_learning(
    student: str, teacher: str, *, cache_folder: str | os.PathLike[str] | None = None
) -> tuple[PerfectLearning, ...]:
    """Return the spikes at which a pair of activations has U = 0; empty if there is none.

    Parameters
    ----------
    student, teacher : str
        As for :func:`.step_bounds.bounds_over_step`, whose range is searched.
    cache_folder : path, optional

    Examples
    --------
    >>> print(*perfect_learning("erf", "erf"))
    r = sqrt(3), s = 3*sqrt(3)*pi/4, m = 1; exact: the smoothed student is a multiple of the target
    >>> perfect_learning("tanh", "tanh")
    ()
    """
    found = bounds_over_step(student, teacher, cache_folder=cache_folder)
    sigma, target = activation(found.student), activation(found.teacher)
    slopes = [hermite_coefficient(f, 1) for f in (sigma, target)]
    return tuple(
        _examined(sigma, target, point.spike_strength, slopes, point.upper)
        for point in found.upper_points
        if point.perfect
    )


def _examined(
    student: Activation,
    teacher: Activation,
    strength: float,
    slopes: list[sp.Expr],
    upper: float,
) -> PerfectLearning:
    square = sp.nsimplify(sp.Float(strength**2, 15), rational=True, tolerance=1e-12)
    guess = sp.sign(strength) * sp.sqrt(square)
    gamma = sp.sign(slopes[1]) if slopes[1].is_extended_nonzero else sp.S.One
    ratio = None
    if sp.Rational(square).q <= _LARGEST_DENOMINATOR:
        value = student(guess * fe.kappa + fe.z)
        smoothed = expect(value, fe.z)
        ratio = sp.simplify(teacher(gamma * fe.kappa) / smoothed)
    proven = ratio is not None and not ratio.has(fe.kappa)
    exact = guess if proven else sp.Float(strength)
    unit = slopes[0] * sp.Abs(slopes[1])
    step = sp.simplify(exact / unit) if unit.is_extended_nonzero else None
    if not proven:
        ratio = sp.Float(_coefficient(student, teacher, strength, gamma))
    return PerfectLearning(exact, step, ratio, proven, upper)


def _coefficient(
    student: Activation, teacher: Activation, strength: float, gamma: sp.Expr
) -> sp.Expr:
    from ....symbolic.gaussian import GaussianExpectation

    # Both at one point where neither vanishes tell their ratio.
    mean = GaussianExpectation(student(strength + fe.z), fe.z).evalf(17)
    return teacher(gamma).evalf(17) / mean
