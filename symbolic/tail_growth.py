r"""Bounds C t^n exp(a t + q t²) of functions far out, and their arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..gaussian_tails import mass_beyond
from .ball_functions import Ball


@dataclass(frozen=True)
class TailBound:
    r"""The bound C t^n exp(a t + q t²) for t >= start; all entries are real balls.

    Attributes
    ----------
    constant, power, rate, curvature : ball
        C >= 0, n, a and q.
    start : ball
        T >= 1.
    """

    constant: Ball
    power: Ball
    rate: Ball
    curvature: Ball
    start: Ball

    def __mul__(self, other: TailBound) -> TailBound:
        return TailBound(
            self.constant * other.constant,
            self.power + other.power,
            self.rate + other.rate,
            self.curvature + other.curvature,
            self.start.max(other.start),
        )

    def __add__(self, other: TailBound) -> TailBound:
        return TailBound(
            self.constant + other.constant,
            self.power.max(other.power),
            self.rate.max(other.rate),
            self.curvature.max(other.curvature),
            self.start.max(other.start),
        )

    def __pow__(self, exponent: Ball) -> TailBound:
        """Return the bound of \\|f\\|**e for e > 0."""
        return TailBound(
            # Not 0**e: the ball of a tiny constant may touch zero, and its upper end is a bound.
            self.constant.upper() ** exponent if self.constant.upper() > 0 else self.constant,
            self.power * exponent,
            self.rate * exponent,
            self.curvature * exponent,
            self.start,
        )

    def union(self, other: TailBound) -> TailBound:
        """Return a bound that is above both, as for the two directions of a line."""
        return TailBound(
            self.constant.max(other.constant),
            self.power.max(other.power),
            self.rate.max(other.rate),
            self.curvature.max(other.curvature),
            self.start.max(other.start),
        )

    def since(self, start: Ball) -> TailBound:
        """Return the bound from a point on, if that is the later one."""
        return replace(self, start=self.start.max(start))

    def at(self, t: Ball) -> Ball:
        """Return the bound at a point t >= start."""
        return self.constant * t**self.power * (self.rate * t + self.curvature * t * t).exp()

    def mass_beyond(self, cutoff: Ball) -> Ball | None:
        r"""Bound :math:`\int_L^\infty |f|\varphi`; None if the formula does not apply from L on."""
        if not cutoff >= self.start:
            return None
        return mass_beyond(self.constant, self.power, self.rate, self.curvature, cutoff)


@dataclass(frozen=True)
class Growth:
    """How a real quantity grows with t, and what it never falls below.

    Attributes
    ----------
    size : TailBound
        Of its absolute value.
    least : ball or None
        A lower bound from the start of `size` on; None if it may have any sign.
    """

    size: TailBound
    least: Ball | None = None
