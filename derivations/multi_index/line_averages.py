r"""Averages over labels of one direction: what state evolution, free entropies and AMP need.

A law given u becomes a matrix between nodes in u and labels, so that Z and its derivatives are
matrix products; a label that is certain given u becomes a table of all points with the same label,
weighted by :math:`1/|f'|`. Nodes are panels of Gauss–Legendre on the scale √V of the posterior,
finer where labels are sharp, cut where the law is not analytic; near critical points they follow
the square root with which further preimages begin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_matrix

from ...errors import ParameterError, UnsupportedExpressionError
from ...runtime.quadrature import legendre_panels
from ...symbolic.expressions.activations import z
from ...symbolic.printing.compiled import compiled
from . import physics
from .channels import Channel
from .physics import label

Array = NDArray[np.float64]

PANELS = (3.0, 1.5, 1.0, 0.66)
"""Lengths of panels of the levels, in units of the scale of the integrand; the first is rough."""

# Beyond this the normal density is 1e-20.
_FAR = 9.5
# Up to where labels are seen, and sharp laws resolved: what is beyond has a mass of 1e-15.
_SEEN = 9.0
# On the rough level up to 1e-9, which brackets what finer ones find.
_RESOLVED = (6.0, 8.0, 8.0, 8.0)
# The score bends faster in ω than the posterior does in u.
_OF_MEANS = 0.6
_OF_NOISE, _LABEL_STEP = 2.5, 0.3
_ROWS = 64
_SEARCHED = 8001
_MOST_PIECES = 200
_BISECTIONS, _NEWTON = 52, 3
_MOST_ENTRIES, _MOST_PANELS = 10**8, 3 * 10**4
_FEW_ENTRIES, _LEAST_DENSITY = 10**6, 1e-40
_LEAST = 1e-290
# Exponent below which a preimage has no share in a label.
_NO_SHARE = -60.0
# Exponent of a label without preimages, which lies on a constant piece.
_NO_LABEL = -1e300


@dataclass(frozen=True)
class Terms:
    r"""Labels seen at means ω: ∫dy Z h is the sum of mass times h over the second axis.

    Attributes
    ----------
    mass, score, logarithm, slope : array (n, m)
        Z dy, g, log Z and :math:`-\partial_\omega g`.
    """

    mass: Array
    score: Array
    logarithm: Array
    slope: Array


def _scores(zero: Array, one: Array, two: Array, variance: float) -> tuple[Array, Array]:
    """Return g and its negative derivative from moments of the standardised posterior."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(zero > _LEAST, one / zero, 0.0)
        square = np.where(zero > _LEAST, two / zero, 1.0)
    return mean / math.sqrt(variance), (1 - square + mean**2) / variance


class LineAverages:
    """Averages over the labels of a channel of one direction, on one level.

    Parameters
    ----------
    channel : Channel
    level : int
        Of :data:`PANELS`.
    """

    def __init__(self, channel: Channel, level: int = 0) -> None:
        self.channel, self.level = channel, level
        self.panel, self.resolved = PANELS[level], _RESOLVED[level]
        self.breaks = [float(b) for b in channel.breaks]

    # ------------------------------------------------------------------ averages

    def at(self, overlap: float) -> tuple[float, float]:
        """Return I(q) and Ψ(q)."""
        found = np.zeros(2)
        for weights, terms in self._rows(overlap):
            seen = terms.mass > _LEAST
            logarithm = np.where(seen, terms.logarithm, 0.0)
            inside = np.stack([terms.mass * terms.score**2, terms.mass * logarithm])
            found += inside.sum(axis=2) @ weights
        return float(found[0]), float(found[1])

    def second_information(self) -> float:
        """Return E[(E[u² − 1|y])²], the inverse of the threshold of weak recovery."""
        terms = self.terms(np.zeros(1), 1.0)
        return float((terms.mass * (terms.score**2 - terms.slope) ** 2).sum())

    def dual(self, overlap: float) -> float:
        """Return E[f(u) f(u')] for a correlation q."""
        variance = 1 - overlap
        if variance < 1e-15:
            u, w = self._line(1.0, 1.0)
            return float(w @ self.function(u) ** 2)
        nodes, weights = self._means(overlap)
        u, w = self._line(variance, 1.0, density=False)
        values, total = self.function(u), 0.0
        for rows in _blocks(len(nodes)):
            t = (u - nodes[rows, None]) / math.sqrt(variance)
            kernel = np.exp(-(t**2) / 2) * w / math.sqrt(2 * math.pi * variance)
            total += float(weights[rows] @ (kernel @ values) ** 2)
        return total

    def _rows(self, overlap: float) -> Iterator[tuple[Array, Terms]]:
        nodes, weights = self._means(overlap)
        for rows in _blocks(len(nodes)):
            yield weights[rows], self.terms(nodes[rows], 1 - overlap)

    def _means(self, overlap: float) -> tuple[Array, Array]:
        """Return nodes and weights of ω ~ N(0, q)."""
        if overlap <= 0:
            return np.zeros(1), np.ones(1)
        scale = math.sqrt(overlap)
        width = _OF_MEANS * self.panel * min(scale, math.sqrt(1 - overlap))
        count = 2 * math.ceil(_FAR * scale / width)
        x, w = legendre_panels(np.linspace(-_FAR * scale, _FAR * scale, count + 1))
        x, w = x.ravel(), w.ravel()
        if self.channel.is_symmetric:
            # Panels are symmetric: their right half says all.
            x, w = x[len(x) // 2 :], 2 * w[len(w) // 2 :]
        return x, w * np.exp(-(x**2) / (2 * overlap)) / math.sqrt(2 * math.pi * overlap)

    # ------------------------------------------------------------------ functions

    @cached_property
    def function(self) -> Callable[[Array], Array]:
        """The function of the channel on arrays."""
        return _function(self.channel.function)

    @cached_property
    def derivative(self) -> Callable[[Array], Array]:
        """Its derivative, without jumps."""
        assert self.channel.function is not None
        slope = self.channel.function.diff(z).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
        return _function(slope)

    @property
    def _sharpness(self) -> float:
        """Length over which a law changes with f, infinite for one of its own."""
        channel = self.channel
        if channel.function is None:
            return 1.0
        if channel.noise_variance:
            return math.sqrt(channel.noise_variance)
        return math.inf if channel.windows else 1.0

    def _line(
        self, variance: float, longest: float, *, density: bool = True
    ) -> tuple[Array, Array]:
        """Return nodes and weights in u; for the standard normal density, or without it."""
        width = self.panel * min(math.sqrt(variance), longest)
        edges = [-_FAR, *(b for b in self.breaks if abs(b) < _FAR), _FAR]
        parts = [np.linspace(a, b, math.ceil((b - a) / width) + 1)[:-1] for a, b in pairwise(edges)]
        cut = np.append(np.concatenate(parts), _FAR)
        if math.isfinite(self._sharpness) and self.channel.function is not None:
            cut = self._finer(cut)
        x, w = legendre_panels(cut)
        x, w = x.ravel(), w.ravel()
        if density:
            w = w * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
        return x, w

    def _finer(self, edges: Array) -> Array:
        """Cut panels over which the function moves by much more than the noise."""
        left, right = edges[:-1], edges[1:]
        inside = left[:, None] + (right - left)[:, None] * np.linspace(0.01, 0.99, 9)
        slopes = np.abs(self.derivative(inside)).max(axis=1)
        seen = np.minimum(np.abs(left), np.abs(right)) < self.resolved
        pieces = np.ceil(
            np.where(seen, slopes * (right - left), 0) / (self.panel * _OF_NOISE * self._sharpness)
        ).astype(int)
        if pieces.sum() > _MOST_PANELS:
            raise self._too_sharp()
        parts = [
            np.linspace(a, b, max(n, 1) + 1)[:-1]
            for a, b, n in zip(left, right, pieces, strict=True)
        ]
        return np.append(np.concatenate(parts), edges[-1])

    # ------------------------------------------------------------------ labels at given means

    def terms(self, means: Array, variance: float) -> Terms:
        """Return what labels say at means ω (n,) and variance V of u."""
        if self.channel.is_certain:
            return self._certain_terms(means, variance)
        u, w, law = self._matrix(variance)
        near = slice(*np.searchsorted(u, [
            means.min() - _FAR * math.sqrt(variance), means.max() + _FAR * math.sqrt(variance)
        ]))  # fmt: skip
        t = (u[near] - means[:, None]) / math.sqrt(variance)
        kernel = np.exp(-(t**2) / 2) * w[near] / math.sqrt(2 * math.pi * variance)
        zero, one, two = (np.asarray((law[near].T @ (kernel * t**k).T).T) for k in range(3))
        score, slope = _scores(zero, one, two, variance)
        logarithm = np.log(np.maximum(zero, _LEAST))
        return Terms(zero * self._labels[1], score, logarithm, slope)

    @cached_property
    def _labels(self) -> tuple[Array, Array]:
        """Labels with weights: numbers of finitely many, or nodes."""
        channel = self.channel
        if channel.probabilities:
            return np.array([float(y) for y in channel.probabilities]), np.ones(
                len(channel.probabilities)
            )
        if channel.label_range is not None:
            low, high = channel.label_range
            count = math.ceil((high - low) * 4 / self.panel)
            y, w = legendre_panels(np.linspace(low, high, min(count, 400) + 1))
            return y.ravel(), w.ravel()
        values = self.function(np.linspace(-self.resolved, self.resolved, 2001))
        step = _LABEL_STEP * self.panel * math.sqrt(channel.noise_variance)
        reach = _SEEN * math.sqrt(channel.noise_variance)
        y = np.arange(values.min() - reach, values.max() + reach + step, step)
        return y, np.full(len(y), step)

    @lru_cache(maxsize=2)  # noqa: B019
    def _matrix(self, variance: float) -> tuple[Array, Array, Any]:
        """Return nodes and weights in u, and the law of labels there, (U, m), sparse if sharp."""
        u, w = self._line(variance, 1.0, density=False)
        y = self._labels[0]
        if len(u) * len(y) < _FEW_ENTRIES:
            return u, w, self.law(u, y)
        blocks = [(block, self._seen_labels(u[block])) for block in _blocks(len(u))]
        if _ROWS * sum(seen.stop - seen.start for _, seen in blocks) > _MOST_ENTRIES:
            raise self._too_sharp()
        densities, columns, lengths = [], [], [np.zeros(1, int)]
        for block, seen in blocks:
            law = self.law(u[block], y[seen])
            large = law >= _LEAST_DENSITY
            densities.append(law[large])
            columns.append(np.nonzero(large)[1] + seen.start)
            lengths.append(large.sum(axis=1))
        ends = np.cumsum(np.concatenate(lengths))
        entries = np.concatenate(densities), np.concatenate(columns), ends
        return u, w, csr_matrix(entries, (len(u), len(y)))

    def _seen_labels(self, u: Array) -> slice:
        """Return which labels can have a density at any of the points, (U,); all of a given law."""
        channel, y, noise = self.channel, self._labels[0], self.channel.noise_variance
        if channel.function is None or channel.probabilities or not noise:
            return slice(0, len(y))
        exponent = -math.log(_LEAST_DENSITY) - min(math.log(2 * math.pi * noise) / 2, 0.0)
        reach = math.sqrt(2 * noise * exponent)
        values = self.function(u)
        low, high = np.searchsorted(y, [values.min() - reach, values.max() + reach])
        return slice(int(low), int(high))

    def _too_sharp(self) -> ParameterError:
        return ParameterError(
            f"noise_variance = {self.channel.noise_variance:g} is too small for the quadrature of "
            f"{self.channel.name!r}: give 0 or a larger one"
        )

    @cached_property
    def _law(self) -> list[Callable[..., Any]]:
        channel = self.channel
        if channel.probabilities:
            return [compiled(p, (z,)) for p in channel.probabilities.values()]
        return [compiled(channel.density, (label, z))]

    def law(self, u: Array, y: Array) -> Array:
        """Return P(y|u), (U, m); of finitely many labels all columns."""
        with np.errstate(under="ignore"):
            if self.channel.probabilities:
                columns = [np.broadcast_to(p(u), u.shape) for p in self._law]
                return np.stack(columns, axis=1).astype(float)
            return np.asarray(self._law[0](y[None, :], u[:, None]), float)

    # ------------------------------------------------------------------ certain labels

    def require_preimages(self) -> None:
        """Refuse certain labels with too many preimages.

        Raises
        ------
        UnsupportedExpressionError
            If the function oscillates too often.
        """
        if self.channel.is_certain:
            _ = self._special

    @cached_property
    def _special(self) -> tuple[Array, Array]:
        """Ends of monotone pieces, and all points at which the preimages change in number."""
        f, slope = self.function, self.derivative
        grid = np.linspace(-_FAR, _FAR, _SEARCHED)
        values = slope(grid)
        if np.count_nonzero(values[:-1] * values[1:] < 0) > _MOST_PIECES:
            raise UnsupportedExpressionError(
                f"the label {self.channel.name!r} without noise has more than {_MOST_PIECES} "
                f"monotone pieces for |u| < {_FAR:g}, too many preimages: give noise_variance"
            )
        turning = [
            brentq(lambda x: float(slope(np.array([x]))[0]), grid[i], grid[i + 1], xtol=1e-15)
            for i in np.flatnonzero(values[:-1] * values[1:] < 0)
            if not any(grid[i] <= b <= grid[i + 1] for b in self.breaks)
        ]
        turning += [float(x) for x in grid[values == 0] if not self._is_flat(float(x))]
        ends = np.unique([-_FAR, *self.breaks, *turning, _FAR])
        critical = f(np.array([x for x in ends[1:-1]])) if len(ends) > 2 else np.empty(0)
        found = self._preimages(np.unique(critical), ends)
        return ends, np.unique(np.concatenate([ends, found[np.isfinite(found)]]))

    def _is_flat(self, x: float) -> bool:
        return any(float(p.low) < x < float(p.high) for p in self.channel.pieces if p.is_constant)

    def _preimages(self, y: Array, ends: Array) -> Array:
        """Return the point of each monotone piece with each label, (m, k); NaN without one."""
        f = self.function
        columns = []
        for a, b in pairwise(ends):
            if self._is_flat((a + b) / 2):
                continue
            inside = 1e-13 * (b - a)
            low, high = np.full(len(y), a + inside), np.full(len(y), b - inside)
            first, last = f(np.array([a + inside, b - inside])).tolist()
            rising = 1.0 if last > first else -1.0
            there = (rising * (f(low) - y) < 0) & (rising * (f(high) - y) > 0)
            for _ in range(_BISECTIONS):
                middle = (low + high) / 2
                below = rising * (f(middle) - y) < 0
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            columns.append(np.where(there, (low + high) / 2, np.nan))
        return np.stack(columns, axis=1) if columns else np.empty((len(y), 0))

    def _all_preimages(self, y: Array) -> tuple[Array, Array]:
        """Return points with a label and minus the logarithm of |f'|; −∞ where there is none."""
        points = self._preimages(y, self._special[0])
        none = np.isnan(points)
        points = np.where(none, 0.0, points)
        with np.errstate(divide="ignore"):
            weights = np.where(none, -math.inf, -np.log(np.abs(self.derivative(points))))
        return points, weights

    @lru_cache(maxsize=4)  # noqa: B019
    def _table(self, halvings: int) -> tuple[Array, Array, Array, Array]:
        """Return nodes and weights in u for V of 2**-halvings, and all points with their labels."""
        width = self.panel * math.sqrt(0.5**halvings)
        nodes, weights = [], []
        for a, b in pairwise(self._special[1]):
            if self._is_flat((a + b) / 2):
                continue
            t, w = legendre_panels(np.linspace(0, 1, math.ceil(1.5 * (b - a) / width) + 1))
            t, w = t.ravel(), w.ravel()
            nodes.append(a + (b - a) * t**2 * (3 - 2 * t))
            weights.append(w * (b - a) * 6 * t * (1 - t))
        u = np.concatenate(nodes)
        points, logarithms = self._all_preimages(self.function(u))
        # The node itself is known better than by its label.
        nearest = np.nanargmin(
            np.where(np.isfinite(logarithms), np.abs(points - u[:, None]), np.inf), axis=1
        )
        rows = np.arange(len(u))
        points[rows, nearest] = u
        with np.errstate(divide="ignore"):
            logarithms[rows, nearest] = -np.log(np.abs(self.derivative(u)))
        return u, np.concatenate(weights), points, logarithms

    def _certain_terms(self, means: Array, variance: float) -> Terms:
        # Preimages take longer than averages: near variances share a table.
        u, w, points, logarithms = self._table(max(math.ceil(-math.log2(variance)), 0))
        near = slice(*np.searchsorted(u, [
            means.min() - _FAR * math.sqrt(variance), means.max() + _FAR * math.sqrt(variance)
        ]))  # fmt: skip
        t = (u[near] - means[:, None]) / math.sqrt(variance)
        mass = np.exp(-(t**2) / 2) * w[near] / math.sqrt(2 * math.pi * variance)
        score, slope, logarithm = _mixture(means[:, None], variance, points[near], logarithms[near])
        parts = [(mass, score, logarithm, slope)]
        for value, first, second in self._window_functions:
            zero = np.maximum(np.broadcast_to(value(means, variance), means.shape), 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                g = np.where(zero > _LEAST, first(means, variance) / zero, 0.0)
                curved = np.where(zero > _LEAST, second(means, variance) / zero, 0.0)
            logarithm = np.log(np.maximum(zero, _LEAST))
            columns = zero[:, None], g[:, None], logarithm[:, None], (g**2 - curved)[:, None]
            parts.append(columns)
        return Terms(*(np.concatenate(x, axis=1) for x in zip(*parts, strict=True)))

    @cached_property
    def _window_functions(self) -> list[tuple[Callable[..., Any], ...]]:
        """Z of labels on constant pieces with two derivatives in ω."""
        found = []
        for windows in self.channel.windows.values():
            Z = physics.window_probability(windows)
            parts = (Z, Z.diff(physics.omega), Z.diff(physics.omega, 2))
            found.append(tuple(compiled(p, (physics.omega, physics.V)) for p in parts))
        return found

    # ------------------------------------------------------------------ given labels

    def posterior(self, y: Array) -> Callable[[Array, Array], tuple[Array, Array]]:
        """Return g and its negative derivative as a function of ω and V, for labels of samples.

        Of means (n, 1) and a variance (1, 1), as for several directions.
        """
        of_one = self._posterior(y)

        def scores(means: Array, variance: Array) -> tuple[Array, Array]:
            score, slope = of_one(means[:, 0], float(variance[0, 0]))
            return score[:, None], slope[:, None, None]

        return scores

    def _posterior(self, y: Array) -> Callable[[Array, float], tuple[Array, Array]]:
        if self.channel.is_certain:
            return self._certain_posterior(y)
        known = self.channel.closed_labels()
        if known is not None:
            return _closed_posterior(known[0], y)

        def by_quadrature(means: Array, variance: float) -> tuple[Array, Array]:
            u, w = self._line(variance, 1.0, density=False)
            law = self.law(u, y)
            if self.channel.probabilities:
                values = [float(v) for v in self.channel.probabilities]
                law = law[:, [values.index(v) for v in y.tolist()]]
            t = (u[:, None] - means) / math.sqrt(variance)
            kernel = np.exp(-(t**2) / 2) * w[:, None] * law
            zero, one, two = ((kernel * t**k).sum(axis=0) for k in range(3))
            return _scores(zero, one, two, variance)

        return by_quadrature

    def _certain_posterior(self, y: Array) -> Callable[[Array, float], tuple[Array, Array]]:
        constant = {float(v): k for k, v in enumerate(self.channel.windows)}
        kinds = np.array([constant.get(v, -1) for v in y.tolist()])
        points, logarithms = self._all_preimages(y)

        def exactly(means: Array, variance: float) -> tuple[Array, Array]:
            score, slope, _ = _mixture(means, variance, points, logarithms)
            for k, (value, first, second) in enumerate(self._window_functions):
                on = kinds == k
                at = value(means[on], variance), first(means[on], variance)
                score[on] = at[1] / at[0]
                slope[on] = score[on] ** 2 - second(means[on], variance) / at[0]
            return score, slope

        return exactly


def _mixture(
    means: Array, variance: float, points: Array, logarithms: Array
) -> tuple[Array, Array, Array]:
    """Return g, its negative derivative and log Z of labels with given preimages, (…, k)."""
    shape = np.broadcast_shapes(means.shape, points.shape[:-1])
    width = math.sqrt(variance)
    # Preimage by preimage: sums over a short last axis would take most of the time.
    exponents, largest = [], np.full(shape, _NO_LABEL)
    for k in range(points.shape[-1]):
        exponent = (points[..., k] - means) / width
        exponent *= exponent
        exponent *= -0.5
        exponent += logarithms[..., k]
        exponents.append(exponent)
        np.maximum(largest, exponent, out=largest)
    zero, one, two = np.zeros((3, *shape))
    for k, exponent in enumerate(exponents):
        exponent -= largest
        if exponent.max(initial=-math.inf) < _NO_SHARE:
            continue
        share = np.exp(exponent, out=exponent)
        zero += share
        share *= (points[..., k] - means) / width
        one += share
        share *= (points[..., k] - means) / width
        two += share
    zero = np.maximum(zero, _LEAST)
    mean, square = one / zero, two / zero
    logarithm = largest + np.log(zero) - math.log(2 * math.pi * variance) / 2
    return mean / width, (1 - square + mean**2) / variance, logarithm


def _closed_posterior(
    labels: dict[sp.Expr, sp.Expr], y: Array
) -> Callable[[Array, float], tuple[Array, Array]]:
    """Return the score of finitely many labels as generated functions."""
    functions = []
    for value, Z in labels.items():
        parts = (Z, Z.diff(physics.omega), Z.diff(physics.omega, 2))
        functions.append((y == float(value), compiled(parts, (physics.omega, physics.V))))

    def generated(means: Array, variance: float) -> tuple[Array, Array]:
        score, slope = np.empty_like(means), np.empty_like(means)
        for on, function in functions:
            zero, one, two = function(means[on], variance)
            score[on] = one / zero
            slope[on] = score[on] ** 2 - two / zero
        return score, slope

    return generated


def _function(expr: sp.Expr | None) -> Callable[[Array], Array]:
    assert expr is not None
    inner = compiled(expr, (z,))

    def on_arrays(x: Array) -> Array:
        return np.array(np.broadcast_to(inner(x), np.shape(x)), dtype=float)

    return on_arrays


def _blocks(count: int) -> Iterator[slice]:
    return (slice(i, min(i + _ROWS, count)) for i in range(0, count, _ROWS))
