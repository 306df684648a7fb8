r"""Averages over labels of two or three directions, at an overlap matrix.

In the eigenvectors of Q the posterior is a product, so that moments of a law of labels are taken
along one axis after the other. Labels that change at lines (signs of linear forms of two
directions) are integrated exactly along the last axis, between the lines; smooth laws by
trapezoidal sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from ...errors import ConvergenceError, ParameterError, UnsupportedExpressionError
from ...runtime.quadrature import legendre_panels, normal_density
from ...symbolic.printing.compiled import compiled
from .channels import Channel
from .physics import label

Array = NDArray[np.float64]

_FAR = 9.5
# Of trapezoidal steps and of panels, on the level that is used and on the finer one.
_STEPS, _PANELS = (0.36, 0.27), (0.9, 0.65)
_OF_NOISE = 0.6
_MOST_ENTRIES = 6 * 10**7
_LEAST = 1e-280
_MOST_ITERATIONS = 3000
_TOLERANCE = 1e-12
# When Newton's method takes over: what remains, and how steady the rate has to be.
_REMAINING, _STEADY = 0.03, 0.02
_DIFFERENCE, _NEWTON = 1e-5, 12


@dataclass(frozen=True)
class Informed:
    """What labels say at an overlap matrix.

    Attributes
    ----------
    information : array (K, K)
        I(Q).
    free_energy : float
        Ψ(Q).
    """

    information: Array
    free_energy: float


class PlaneAverages:
    """Averages over the labels of a channel of two or three directions.

    Parameters
    ----------
    channel : Channel
    level : int
        0, or 1 for a finer one.

    Raises
    ------
    UnsupportedExpressionError
        If the labels are certain and take a continuum of values, or change at other places than
        lines of two directions.
    """

    def __init__(self, channel: Channel, level: int = 0) -> None:
        if channel.is_certain:
            raise UnsupportedExpressionError(
                f"labels {channel.name!r} of {channel.directions} directions without noise have "
                "infinitely many preimages near every point, a curve of them: give noise_variance, "
                "or a label with finitely many values"
            )
        self.channel, self.level = channel, level
        if self._jumps and (channel.directions > 2 or self._lines is None):
            raise UnsupportedExpressionError(
                f"labels {channel.name!r} jump; of several directions that is supported for signs "
                "of linear forms of two: give noise_variance with a smooth function"
            )

    # ------------------------------------------------------------------ the law

    @cached_property
    def _jumps(self) -> bool:
        parts = [*self.channel.probabilities.values(), self.channel.density]
        return any(p.has(sp.sign, sp.Heaviside, sp.Abs) for p in parts if p is not None)

    @cached_property
    def _lines(self) -> Array | None:
        """Rows (a1, a2, c) of forms a·u + c at whose zeros the law changes; None if others."""
        rows = []
        for p in self.channel.probabilities.values():
            for atom in p.atoms(sp.sign, sp.Heaviside):
                form = atom.args[0]
                slopes = [form.diff(x) for x in self.channel.variables]
                if any(not s.is_number for s in slopes):
                    return None
                rest = form.xreplace(dict.fromkeys(self.channel.variables, sp.S.Zero))
                rows.append([float(s) for s in slopes] + [float(rest)])
        return np.unique(np.array(rows), axis=0) if rows else None

    @cached_property
    def _law(self) -> Callable[..., Any]:
        x = self.channel.variables
        if self.channel.probabilities:
            functions = [compiled(p, x) for p in self.channel.probabilities.values()]
            return lambda *u: np.stack(
                [np.broadcast_to(f(*u), np.broadcast_shapes(*(v.shape for v in u))) for f in
                 functions], axis=-1,
            ).astype(float)  # fmt: skip
        density = compiled(self.channel.density, (label, *x))
        return lambda *u: np.asarray(density(self._labels[0], *(v[..., None] for v in u)), float)

    @cached_property
    def _labels(self) -> tuple[Array, Array]:
        channel = self.channel
        if channel.probabilities:
            count = len(channel.probabilities)
            return np.arange(float(count)), np.ones(count)
        if channel.function is None:
            assert channel.label_range is not None
            y, w = legendre_panels(np.linspace(*channel.label_range, 41))
            return y.ravel(), w.ravel()
        step = _STEPS[self.level] * math.sqrt(channel.noise_variance)
        reach = _FAR * math.sqrt(channel.noise_variance)
        axes = np.meshgrid(*[np.linspace(-6.5, 6.5, 53)] * channel.directions, indexing="ij")
        inside = sum(a**2 for a in axes) <= 6.5**2
        values = np.broadcast_to(
            compiled(channel.function, channel.variables)(*axes), axes[0].shape
        )
        values = values[inside]
        y = np.arange(values.min() - reach, values.max() + reach + step, step)
        return y, np.full(len(y), step)

    @cached_property
    def _scale(self) -> float:
        """Length in u over which a smooth law changes."""
        channel = self.channel
        noise = math.sqrt(channel.noise_variance) if channel.noise_variance else 1.0
        if channel.function is None:
            return 0.5
        slopes = compiled([channel.function.diff(x) for x in channel.variables], channel.variables)
        axes = np.meshgrid(*[np.linspace(-3, 3, 13)] * channel.directions, indexing="ij")
        steepest = math.sqrt(
            np.max(sum(np.broadcast_to(s, axes[0].shape) ** 2 for s in slopes(*axes)))
        )
        return noise / max(steepest * _OF_NOISE, noise)

    # ------------------------------------------------------------------ moments

    def moments(
        self, means: Sequence[Array], variances: Array, rotation: Array,
        orders: Sequence[tuple[int, ...]],
    ) -> dict[tuple[int, ...], Array]:  # fmt: skip
        """Return E[1_y Π s_i^{k_i}] at a grid of means along rotated axes, (n_1, …, n_K, m)."""
        if self._jumps:
            return self._between_lines(means, variances, rotation, orders)
        nodes, kernels = [], []
        for mean, variance in zip(means, variances, strict=True):
            step = _STEPS[self.level] * min(math.sqrt(variance), self._scale)
            v = np.arange(-_FAR, _FAR + step / 2, step)
            t = (v - mean[:, None]) / math.sqrt(variance)
            nodes.append(v)
            kernels.append((t, normal_density(t) * step / math.sqrt(variance)))
        sizes = [len(v) for v in nodes]
        if math.prod(sizes) * len(self._labels[0]) > _MOST_ENTRIES:
            raise ParameterError(
                f"the law {self.channel.name!r} is too sharp for {len(sizes)} directions, "
                f"{math.prod(sizes) * len(self._labels[0]):.2g} entries: give a larger "
                "noise_variance, or fewer directions"
            )
        grid = np.meshgrid(*nodes, indexing="ij")
        u = [sum(rotation[i, k] * grid[k] for k in range(len(grid))) for i in range(len(grid))]
        law = self._law(*u)
        found = {}
        for order in orders:
            value = law
            for axis, k in enumerate(order):
                t, w = kernels[axis]
                value = np.moveaxis(np.tensordot(w * t**k, value, axes=(1, axis)), 0, axis)
            found[order] = value
        return found

    def _between_lines(
        self, means: Sequence[Array], variances: Array, rotation: Array,
        orders: Sequence[tuple[int, ...]],
    ) -> dict[tuple[int, ...], Array]:  # fmt: skip
        lines = self._lines
        assert lines is not None
        rotated = np.column_stack([lines[:, :2] @ rotation, lines[:, 2]])
        crossing = [row for row in rotated if abs(row[1]) > 1e-12]
        ends = {-_FAR, _FAR}
        for i, a in enumerate(rotated):
            if abs(a[1]) <= 1e-12:
                ends.add(-a[2] / a[0])
            for b in rotated[:i]:
                if abs(a[1]) > 1e-12 < abs(b[1]) and abs(a[0] * b[1] - b[0] * a[1]) > 1e-12:
                    ends.add((a[1] * b[2] - b[1] * a[2]) / (a[0] * b[1] - b[0] * a[1]))
        edges = sorted(e for e in ends if abs(e) <= _FAR)
        spread = [math.sqrt(v) for v in variances]
        steep = max((abs(r[0] / r[1]) for r in crossing), default=0.0)
        width = _PANELS[self.level] * min(spread[0], spread[1] / steep if steep else math.inf)
        cut = np.concatenate([
            np.linspace(a, b, math.ceil((b - a) / width) + 1)[:-1]
            for a, b in pairwise(edges)
        ])  # fmt: skip
        v, w = (x.ravel() for x in legendre_panels(np.append(cut, _FAR)))
        breaks = np.sort(
            [-(r[0] * v + r[2]) / r[1] for r in crossing] or np.empty((0, len(v))), axis=0
        )
        low = np.concatenate([np.full((1, len(v)), -np.inf), breaks])
        high = np.concatenate([breaks, np.full((1, len(v)), np.inf)])
        with np.errstate(invalid="ignore"):
            middle = np.where(
                np.isinf(low), np.where(np.isinf(high), 0.0, high - 1.0),
                np.where(np.isinf(high), low + 1.0, (low + high) / 2),
            )  # fmt: skip
        grid = np.stack(np.broadcast_arrays(v[None, :], middle))
        law = self._law(*(rotation[i, 0] * grid[0] + rotation[i, 1] * grid[1] for i in range(2)))
        windows = _window_moments(low, high, means[1], spread[1])
        t = (v - means[0][:, None]) / spread[0]
        kernel = normal_density(t) * w / spread[0]
        found: dict[tuple[int, ...], Array] = {}
        for a, b in orders:
            along = np.einsum("ivm,ivn->vnm", law, windows[b])
            found[a, b] = np.einsum("av,vnm->anm", kernel * t**a, along, optimize=True)
        return found

    # ------------------------------------------------------------------ averages

    def at(self, overlap: Array) -> Informed:
        """Return I(Q) and Ψ(Q)."""
        values, rotation = np.linalg.eigh(overlap)
        values = np.clip(values, 0.0, 1 - 1e-9)
        size = len(values)
        means, weights = zip(*(self._means(float(q)) for q in values), strict=True)
        units = [tuple(int(i == j) for j in range(size)) for i in range(size)]
        found = self.moments(means, 1 - values, rotation, [(0,) * size, *units])
        zero = found[(0,) * size]
        seen = zero > _LEAST
        weight = weights[0]
        for w in weights[1:]:
            weight = weight[..., None] * w
        weight = weight[..., None] * self._labels[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = [
                np.where(seen, found[unit] / zero, 0.0) / math.sqrt(1 - q)
                for unit, q in zip(units, values, strict=True)
            ]
            entropy = np.where(seen, zero * np.log(np.maximum(zero, _LEAST)), 0.0)
        inner = np.array([[np.sum(weight * zero * a * b) for b in scores] for a in scores])
        return Informed(rotation @ inner @ rotation.T, float(np.sum(weight * entropy)))

    def _means(self, overlap: float) -> tuple[Array, Array]:
        if overlap < 1e-14:
            return np.zeros(1), np.ones(1)
        scale = math.sqrt(overlap)
        step = _STEPS[self.level] * min(scale, math.sqrt(1 - overlap) * (0.6 if self._jumps else 1))
        x = np.arange(-_FAR * scale, _FAR * scale + step / 2, step)
        return x, step * normal_density(x / scale) / scale

    def operator(self, known: Array | None = None, overlap: float = 0.0) -> Array:
        """Return F on symmetric matrices of the directions across `known`, (K, K, K, K) as (N, N).

        Parameters
        ----------
        known : array (K,), optional
            Unit vector along which estimates have the overlap.
        overlap : float
        """
        size = self.channel.directions
        rotation = np.eye(size)
        values = np.zeros(size)
        if known is not None:
            rotation = np.linalg.qr(np.column_stack([known, np.eye(size)]))[0][:, :size]
            values[0] = overlap
        means, weights = zip(*(self._means(float(q)) for q in values), strict=True)
        free = list(range(size)) if known is None else list(range(1, size))
        pairs = [(i, j) for i in free for j in free]
        orders = {
            pair: tuple((k == pair[0]) + (k == pair[1]) for k in range(size)) for pair in pairs
        }
        found = self.moments(
            means, 1 - values, rotation, [(0,) * size, *dict.fromkeys(orders.values())]
        )
        zero = found[(0,) * size]
        weight = (weights[0][(slice(None), *[None] * (size - 1))])[..., None] * self._labels[1]
        n = len(free)
        shown = np.empty((n, n, *zero.shape))
        with np.errstate(divide="ignore", invalid="ignore"):
            for a, i in enumerate(free):
                for b, j in enumerate(free):
                    value = found[orders[i, j]] / zero - (i == j)
                    shown[a, b] = np.where(zero > _LEAST, value, 0.0)
        full = np.einsum("ab...,cd...,...->acbd", shown, shown, weight * zero, optimize=True)
        return np.asarray(full.reshape(n * n, n * n))

    def threshold(self) -> tuple[float, float]:
        """Return α_c where labels show nothing at first order, and its estimated error."""
        values = [
            1 / np.linalg.eigvalsh(PlaneAverages(self.channel, k).operator()).max() for k in (1, 0)
        ]
        return float(values[0]), float(abs(values[0] - values[1]))

    def specialisation(self, known: Array) -> tuple[float, float]:
        """Return overlap and α at which directions across a known one begin to be learned.

        The fixed point of the known direction alone, :math:`q = \\alpha I/(1 + \\alpha I)`, meets
        the threshold of the others given it.
        """

        def alphas(q: float) -> tuple[float, float]:
            informed = self.at(q * np.outer(known, known)).information
            own = q / ((1 - q) * float(known @ informed @ known))
            return own, float(1 / np.linalg.eigvalsh(self.operator(known, q)).max())

        def difference(q: float) -> float:
            own, others = alphas(q)
            return own - others

        grid = [0.02, 0.2, 0.4, 0.6, 0.75, 0.85, 0.93, 0.98]
        values = [difference(q) for q in grid]
        for a, b, left, right in zip(grid, grid[1:], values, values[1:], strict=False):
            if left < 0 <= right:
                q = float(brentq(difference, a, b, xtol=1e-15, rtol=1e-15))
                return q, alphas(q)[0]
        raise ConvergenceError(
            f"the other directions of {self.channel.name!r} have no threshold for overlaps up to "
            f"{grid[-1]:g}"
        )

    def iterated(self, alpha: float, start: Array) -> Array:
        """Return the overlap matrix that state evolution reaches from a start.

        Once changes shrink geometrically, Newton's method finds where they lead to.

        Raises
        ------
        ConvergenceError
            If it has not settled.
        """
        one = np.eye(len(start))
        pairs = np.triu_indices(len(start))

        def matrix(entries: Array) -> Array:
            upper = np.zeros_like(one)
            upper[pairs] = entries
            return upper + np.triu(upper, 1).T

        def iteration(entries: Array) -> Array:
            overlap = matrix(entries)
            new = one - np.linalg.inv(one + alpha * self.at(overlap).information)
            return np.asarray(((new + new.T) / 2)[pairs])

        entries, last, ratio = start[pairs], math.inf, math.inf
        for _ in range(_MOST_ITERATIONS):
            new = iteration(entries)
            change = float(np.abs(new - entries).max())
            before, ratio = ratio, change / last
            entries, last = new, change
            if change < _TOLERANCE:
                return matrix(entries)
            # What is left of a geometric series has to be small for Newton to stay on its branch.
            if ratio < 1 and abs(ratio - before) < _STEADY and change / (1 - ratio) < _REMAINING:
                found = _settled(iteration, entries)
                if found is not None:
                    return matrix(found)
        raise ConvergenceError(
            f"state evolution has not settled after {_MOST_ITERATIONS} iterations at alpha = "
            f"{alpha:g}, which is near a threshold; use another one"
        )


def _settled(iteration: Callable[[Array], Array], start: Array) -> Array | None:
    """Return the stable fixed point next to a start by Newton's method, None if there is none."""
    units = _DIFFERENCE * np.eye(len(start))
    slopes = np.column_stack([
        (iteration(start + unit) - iteration(start - unit)) / (2 * _DIFFERENCE) for unit in units
    ])  # fmt: skip
    if np.abs(np.linalg.eigvals(slopes)).max() >= 1:
        return None
    found = start
    for _ in range(_NEWTON):
        change = iteration(found) - found
        if np.abs(change).max() < _TOLERANCE:
            return found
        found = found + np.linalg.solve(np.eye(len(start)) - slopes, change)
        if np.abs(found - start).max() > 3 * _REMAINING:
            return None
    return None


def _window_moments(low: Array, high: Array, means: Array, spread: float) -> list[Array]:
    """Return E[s^k 1(low < u < high)], k = 0, 1, 2, of normal u at means, (…, n)."""
    a, b = ((x[..., None] - means) / spread for x in (low, high))
    with np.errstate(invalid="ignore"):
        flipped = a > 0
        zero = np.where(flipped, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
        left, right = normal_density(a), normal_density(b)
        one = left - right
        two = zero + np.where(np.isinf(a), 0.0, a * left) - np.where(np.isinf(b), 0.0, b * right)
    return [zero, one, two]
