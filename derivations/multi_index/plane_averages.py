r"""Averages over labels of two or three directions, at an overlap matrix.

In the eigenvectors of Q the posterior is a product, so that moments of a law of labels are taken
along one axis after the other, some labels at a time. Labels that change at planes (signs of linear
forms) are integrated exactly along the last axis, between the planes, and by panels that are cut
where planes meet along the others; smooth laws by trapezoidal sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.special import ndtr

from ...errors import ParameterError, UnsupportedExpressionError
from ...runtime.quadrature import legendre_panels, normal_density
from ...symbolic.printing.compiled import compiled
from .channels import Channel
from .physics import label

Array = NDArray[np.float64]
Order = tuple[int, ...]
# Nodes along an axis, standardised at each mean, and the weights of the posterior, (a, n).
Axis = tuple[Array, Array]


@dataclass(frozen=True)
class _Level:
    """Steps of a level of quadrature.

    Attributes
    ----------
    step, means : float
        Of trapezoidal sums over u and over means, in units of the posterior's scale.
    noise : float
        Of sums over labels, in units of their noise.
    panel : float
        Length of panels between planes.
    reach : float
        Where sums end.
    """

    step: float
    means: float
    noise: float
    panel: float
    reach: float


LEVELS = (
    _Level(0.75, 0.55, 0.80, 2.4, 6.0),
    _Level(0.60, 0.22, 0.65, 1.6, 8.5),
    _Level(0.50, 0.17, 0.55, 1.2, 9.0),
)
"""A rough level, the one that is used, and a finer one that tells its error."""

# Means between planes: their probabilities bend faster.
_OF_JUMPS = 0.6
_OF_NOISE = 0.6
# Up to where steps resolve the law, and where the range of the labels is looked for.
_STEEPEST, _SEEN = 3.0, 6.5
_BLOCK, _MOST_ENTRIES = 2 * 10**6, 10**9
_LEAST = 1e-280
_PARALLEL = 1e-12


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
        Of :data:`LEVELS`.

    Raises
    ------
    UnsupportedExpressionError
        If the labels are certain and take a continuum of values, or change at other places than
        planes.
    """

    def __init__(self, channel: Channel, level: int = 1) -> None:
        if channel.is_certain:
            raise UnsupportedExpressionError(
                f"labels {channel.name!r} of {channel.directions} directions without noise have "
                "infinitely many preimages near every point, a curve of them: give noise_variance, "
                "or a label with finitely many values"
            )
        self.channel, self.level = channel, LEVELS[level]
        if self._jumps and self._planes is None:
            raise UnsupportedExpressionError(
                f"labels {channel.name!r} jump; of several directions that is supported for signs "
                "of linear forms: give noise_variance with a smooth function"
            )

    # ------------------------------------------------------------------ the law

    @cached_property
    def _jumps(self) -> bool:
        parts = [*self.channel.probabilities.values(), self.channel.density]
        return any(p.has(sp.sign, sp.Heaviside, sp.Abs) for p in parts if p is not None)

    @cached_property
    def _planes(self) -> Array | None:
        """Rows (a, c) of forms a·u + c at whose zeros the law changes; None if others."""
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
    def _law(self) -> Callable[..., Array]:
        """P(y|u) of labels (m,) at points, with labels as the last axis."""
        x = self.channel.variables
        if self.channel.probabilities:
            functions = [compiled(p, x) for p in self.channel.probabilities.values()]
            return lambda y, *u: np.stack(
                [np.broadcast_to(functions[int(k)](*u), np.shape(u[0])) for k in y], axis=-1
            ).astype(float)
        density = compiled(self.channel.density, (label, *x))
        return lambda y, *u: np.asarray(density(y, *(v[..., None] for v in u)), float)

    @cached_property
    def _labels(self) -> tuple[Array, Array]:
        """Labels, or the numbers of finitely many, with weights."""
        channel = self.channel
        if channel.probabilities:
            count = len(channel.probabilities)
            return np.arange(float(count)), np.ones(count)
        if channel.function is None:
            assert channel.label_range is not None
            y, w = legendre_panels(np.linspace(*channel.label_range, 41))
            return y.ravel(), w.ravel()
        step = self.level.noise * math.sqrt(channel.noise_variance)
        reach = self.level.reach * math.sqrt(channel.noise_variance)
        axes = np.meshgrid(*[np.linspace(-_SEEN, _SEEN, 53)] * channel.directions, indexing="ij")
        inside = sum(a**2 for a in axes) <= _SEEN**2
        values = np.broadcast_to(
            compiled(channel.function, channel.variables)(*axes), axes[0].shape
        )[inside]
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
        axes = np.meshgrid(
            *[np.linspace(-_STEEPEST, _STEEPEST, 13)] * channel.directions, indexing="ij"
        )
        steepest = math.sqrt(
            np.max(sum(np.broadcast_to(s, axes[0].shape) ** 2 for s in slopes(*axes)))
        )
        return noise / max(steepest * _OF_NOISE, noise)

    # ------------------------------------------------------------------ moments

    def moments(
        self, means: Sequence[Array], variances: Array, rotation: Array, orders: Sequence[Order]
    ) -> Iterator[tuple[Array, dict[Order, Array]]]:
        """Yield weights of labels, and E[1_y Π s_i^{k_i}] of them at a grid of means.

        Means lie along rotated axes; averages are (n_1, …, n_K, m).
        """
        if self._jumps:
            yield self._labels[1], self._between_planes(means, variances, rotation, orders)
            return
        axes, u = self._grid(means, variances, rotation)
        labels, weights = self._labels
        points = u[0].size
        # What the used level can do the finer one has to check.
        if self.level is not LEVELS[-1] and points * len(labels) > _MOST_ENTRIES:
            raise ParameterError(
                f"the law {self.channel.name!r} is too sharp for {len(u)} directions, "
                f"{points * len(labels):.2g} entries: give a larger noise_variance, or fewer "
                "directions"
            )
        count = max(_BLOCK // points, 1)
        for k in range(0, len(labels), count):
            rows = slice(k, k + count)
            yield weights[rows], _contracted(self._law(labels[rows], *u), axes, orders)

    def _grid(
        self, means: Sequence[Array], variances: Array, rotation: Array
    ) -> tuple[list[Axis], list[Array]]:
        """Return the rules along rotated axes, and all points of their grid."""
        nodes, axes = [], []
        for mean, variance in zip(means, variances, strict=True):
            step = self.level.step * min(math.sqrt(variance), self._scale)
            v = np.arange(-self.level.reach, self.level.reach + step / 2, step)
            nodes.append(v)
            axes.append(_posterior_weights(v, np.full(len(v), step), mean, variance))
        if self.level is not LEVELS[-1] and math.prod(map(len, nodes)) > _MOST_ENTRIES // 20:
            raise ParameterError(
                f"the law {self.channel.name!r} is too sharp for {len(nodes)} directions: give a "
                "larger noise_variance, or fewer directions"
            )
        grid = np.meshgrid(*nodes, indexing="ij")
        return axes, [
            sum(rotation[i, k] * grid[k] for k in range(len(grid))) for i in range(len(grid))
        ]

    def _between_planes(
        self, means: Sequence[Array], variances: Array, rotation: Array, orders: Sequence[Order]
    ) -> dict[Order, Array]:
        assert self._planes is not None
        size = self.channel.directions
        planes = np.column_stack([self._planes[:, :size] @ rotation, self._planes[:, size]])
        spread = np.sqrt(variances)
        if size == 2:
            return self._plane_moments(planes, np.zeros((0,)), means, spread, rotation, orders)
        # Sheets across the first axis, each of which the planes cut in lines.
        v, w = self._panels(*self._sheets(planes, spread))
        axis = _posterior_weights(v, w, means[0], variances[0])
        inner = list(dict.fromkeys(order[1:] for order in orders))
        sheets: dict[Order, list[Array]] = {order: [] for order in inner}
        for x in v:
            lines = np.column_stack([planes[:, 1:3], planes[:, 3] + planes[:, 0] * x])
            found = self._plane_moments(
                lines, np.array([x]), means[1:], spread[1:], rotation, inner
            )
            for order in inner:
                sheets[order].append(found[order])
        stacked = {order: np.stack(sheet) for order, sheet in sheets.items()}
        return {
            order: np.tensordot(axis[1] * axis[0] ** order[0], stacked[order[1:]], axes=1)
            for order in orders
        }

    def _sheets(
        self, planes: Array, spread: Array
    ) -> tuple[list[float], float, list[tuple[float, float, float]]]:
        """Return where sheets across the first axis change in kind, and where they change fast."""
        reach = self.level.reach
        ends = [
            float(np.linalg.solve(rows[:, :3], -rows[:, 3])[0])
            for rows in (planes[list(k)] for k in combinations(range(len(planes)), 3))
            if abs(np.linalg.det(rows[:, :3])) > _PARALLEL
        ]
        fast = []
        for a0, *along, c in planes:
            ratio = math.hypot(*along) / abs(a0) if a0 else math.inf
            if ratio <= _PARALLEL:
                ends.append(-c / a0)
            elif ratio < math.inf:
                half = math.sqrt(2) * reach * ratio
                fast.append((-c / a0 - half, -c / a0 + half, float(spread[1:].min()) * ratio))
        for a, b in combinations(planes, 2):
            both = np.stack([a[1:3], b[1:3]])
            shift, move = np.array([a[3], b[3]]), np.array([a[0], b[0]])
            if abs(np.linalg.det(both)) > _PARALLEL:
                # Where their line crosses a sheet, and how fast that moves.
                at, speed = np.linalg.solve(both, -shift), np.linalg.solve(both, -move)
                k = int(np.argmax(np.abs(speed)))
                if speed[k]:
                    middle, half = -at[k] / speed[k], reach / abs(speed[k])
                    narrow = float(spread[1 + k] / abs(speed[k]))
                    fast.append((middle - half, middle + half, narrow))
            else:
                # Parallel lines that coincide in one sheet.
                k = int(np.argmax(np.abs(both).max(axis=0)))
                rest = shift[0] * both[1, k] - shift[1] * both[0, k]
                moved = move[0] * both[1, k] - move[1] * both[0, k]
                if abs(moved) > _PARALLEL:
                    ends.append(-rest / moved)
        return ends, float(spread[0]), fast

    def _panels(
        self, ends: Sequence[float], width: float, steep: Sequence[tuple[float, float, float]] = ()
    ) -> tuple[Array, Array]:
        """Return nodes and weights of panels of a length at most, cut at points.

        Between two points each, where what lies across an axis changes fast, they are shorter.
        """
        reach = self.level.reach
        edges = {-reach, reach, *(e for e in ends if abs(e) < reach)}
        edges |= {e for low, high, _ in steep for e in (low, high) if abs(e) < reach}
        cut = []
        for a, b in pairwise(sorted(edges)):
            inside = [w for low, high, w in steep if low <= (a + b) / 2 <= high]
            length = self.level.panel * min(width, *inside, math.inf)
            cut.append(np.linspace(a, b, math.ceil((b - a) / length) + 1)[:-1])
        v, w = legendre_panels(np.append(np.concatenate(cut), reach))
        return v.ravel(), w.ravel()

    def _windows(
        self, lines: Array, before: Array, spread: Array, rotation: Array
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Cut a plane by lines: nodes and weights of the first axis, intervals of the second, law.

        Parameters
        ----------
        lines : array (n, 3)
            Rows (a1, a2, c).
        before : array
            Coordinates along the axes before these two.
        """
        crossing = [row for row in lines if abs(row[1]) > _PARALLEL]
        ends = [-row[2] / row[0] for row in lines if abs(row[1]) <= _PARALLEL < abs(row[0])]
        for a, b in combinations(crossing, 2):
            if abs(a[0] * b[1] - b[0] * a[1]) > _PARALLEL:
                ends.append((a[1] * b[2] - b[1] * a[2]) / (a[0] * b[1] - b[0] * a[1]))
        steep = []
        for across, along, c in (row for row in crossing if row[0]):
            half = self.level.reach * abs(along / across)
            narrow = float(spread[1] * abs(along / across))
            steep.append((-c / across - half, -c / across + half, narrow))
        v, w = self._panels(ends, spread[0], steep)
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
        point = [*(np.full(middle.shape, x) for x in before), np.broadcast_to(v, middle.shape),
                 middle]  # fmt: skip
        law = self._law(self._labels[0], *np.tensordot(rotation, np.stack(point), axes=1))
        return v, w, low, high, law

    def _plane_moments(
        self, lines: Array, before: Array, means: Sequence[Array], spread: Array, rotation: Array,
        orders: Sequence[Order],
    ) -> dict[Order, Array]:  # fmt: skip
        v, w, low, high, law = self._windows(lines, before, spread, rotation)
        t, kernel = _posterior_weights(v, w, means[0], spread[0] ** 2)
        windows = _window_moments(low, high, means[1], spread[1], max(b for _, b in orders))
        along = {
            b: np.matmul(windows[b].transpose(1, 2, 0), law.transpose(1, 0, 2)).reshape(len(v), -1)
            for b in {b for _, b in orders}
        }
        shape = len(means[0]), len(means[1]), law.shape[-1]
        return {(a, b): ((kernel * t**a) @ along[b]).reshape(shape) for a, b in orders}

    # ------------------------------------------------------------------ averages

    def at(self, overlap: Array) -> Informed:
        """Return I(Q) and Ψ(Q)."""
        # The largest overlap, that of the most means, is taken along the outermost axis.
        values, rotation = (x[..., ::-1] for x in np.linalg.eigh(overlap))
        values = np.clip(values, 0.0, 1 - 1e-9)
        size = len(values)
        means, weights = zip(*(self._means(float(q)) for q in values), strict=True)
        units = [tuple(int(i == j) for j in range(size)) for i in range(size)]
        weight = _outer(weights)
        inner, entropy = np.zeros((size, size)), 0.0
        for of_labels, found in self.moments(means, 1 - values, rotation, [(0,) * size, *units]):
            zero = found[(0,) * size]
            seen = zero > _LEAST
            mass = weight[..., None] * of_labels
            floor = np.where(seen, zero, 1.0)
            ones = [np.where(seen, found[unit], 0.0) for unit in units]
            shares = [mass * one / floor for one in ones]
            inner += [[np.vdot(a, b) for b in ones] for a in shares]
            entropy += float(np.vdot(mass, np.where(seen, zero, 0.0) * np.log(floor)))
        scale = np.sqrt(1 - values)
        inner /= np.outer(scale, scale)
        return Informed(rotation @ inner @ rotation.T, entropy)

    def _means(self, overlap: float) -> tuple[Array, Array]:
        if overlap < 1e-14:
            return np.zeros(1), np.ones(1)
        scale, reach = math.sqrt(overlap), self.level.reach
        step = self.level.means * min(
            scale, math.sqrt(1 - overlap) * (_OF_JUMPS if self._jumps else 1)
        )
        x = np.arange(-reach * scale, reach * scale + step / 2, step)
        return x, step * normal_density(x / scale) / scale

    # ------------------------------------------------------------------ the function

    def dual(self, overlap: Array) -> float:
        """Return E[f(u) f(u')] for normal u, u' with covariance Q, of the function of the law."""
        values, rotation = (x[..., ::-1] for x in np.linalg.eigh(overlap))
        if values[-1] > 1 - 1e-12:
            return self.function_moment([0] * len(values), power=2)
        values = np.clip(values, 0.0, 1 - 1e-9)
        means, weights = zip(*(self._means(float(q)) for q in values), strict=True)
        order = (0,) * len(values)
        mean = self._of_function(means, 1 - values, rotation, [order], 1)[order]
        return float(np.vdot(_outer(weights), mean**2))

    def function_moment(self, order: Sequence[int], *, power: int = 1) -> float:
        """Return E[f^p Π u_i^{k_i}]."""
        size, given = self.channel.directions, tuple(map(int, order))
        means = [np.zeros(1)] * size
        found = self._of_function(means, np.ones(size), np.eye(size), [given], power)[given]
        return float(found.item())

    def _of_function(
        self, means: Sequence[Array], variances: Array, rotation: Array, orders: Sequence[Order],
        power: int,
    ) -> dict[Order, Array]:  # fmt: skip
        """Return E[f^p Π s_i^{k_i}] at a grid of means."""
        certain = self.channel.certain_labels
        if certain is None:
            axes, u = self._grid(means, variances, rotation)
            f = compiled(self.channel.function, self.channel.variables)(*u)
            values = np.broadcast_to(f, u[0].shape)[..., None] ** power
            found = _contracted(values, axes, orders)
            return {order: value[..., 0] for order, value in found.items()}
        labels = np.array([float(y) for y in certain]) ** power
        exact = PlaneAverages(replace(self.channel, probabilities=certain))
        ((_, shares),) = exact.moments(means, variances, rotation, orders)
        return {order: share @ labels for order, share in shares.items()}

    # ------------------------------------------------------------------ others, given some

    def operator(self, overlap: Array, known: Array) -> Array:
        """Return F on matrices of the directions across known ones, (N², N²).

        Parameters
        ----------
        overlap : array (K, K)
            Of the known directions.
        known : array (K, r)
            Orthonormal columns; none if r = 0.
        """
        size, count = known.shape
        inside, turn = (x[..., ::-1] for x in np.linalg.eigh(known.T @ overlap @ known))
        rotation = np.linalg.svd(np.column_stack([known @ turn, np.eye(size)]))[0]
        rotation[:, :count] = known @ turn
        values = np.zeros(size)
        values[:count] = np.clip(inside, 0.0, 1 - 1e-9)
        means, weights = zip(*(self._means(float(q)) for q in values), strict=True)
        pairs = [(i, j) for i in range(count, size) for j in range(count, size)]
        orders = {
            pair: tuple((k == pair[0]) + (k == pair[1]) for k in range(size)) for pair in pairs
        }
        weight, n = _outer(weights), size - count
        full = np.zeros((n * n, n * n))
        for of_labels, found in self.moments(
            means, 1 - values, rotation, [(0,) * size, *dict.fromkeys(orders.values())]
        ):
            zero = found[(0,) * size]
            seen = zero > _LEAST
            floor = np.where(seen, zero, 1.0)
            shown = np.stack([
                np.where(seen, found[orders[i, j]] / floor - (i == j), 0.0).ravel()
                for i, j in pairs
            ])  # fmt: skip
            mass = (weight[..., None] * of_labels * zero).ravel()
            products = (shown * mass) @ shown.T
            full += products.reshape(n, n, n, n).transpose(0, 2, 1, 3).reshape(n * n, n * n)
        return full

    # ------------------------------------------------------------------ given labels

    def posterior(self, y: Array) -> Callable[[Array, Array], tuple[Array, Array]]:
        """Return g and its negative derivative as a function of ω and V, for labels of samples.

        Raises
        ------
        UnsupportedExpressionError
            Of labels of three directions that jump.
        """
        channel, size = self.channel, self.channel.directions
        if self._jumps and size > 2:
            raise UnsupportedExpressionError(
                f"message passing on labels that jump is supported for two directions, "
                f"{channel.name!r} has {size}"
            )
        values = [float(v) for v in channel.probabilities]
        seen = np.array([values.index(v) for v in y.tolist()]) if values else y
        moments = self._between_lines_of_samples if self._jumps else self._sums_of_samples

        def scores(means: Array, variance: Array) -> tuple[Array, Array]:
            scales, rotation = np.linalg.eigh(variance)
            spread = np.sqrt(scales)
            back = rotation / spread
            score, slope = np.empty(means.shape), np.empty((*means.shape, size))
            for rows, zero, one, two in moments(seen, means, spread, rotation):
                there = zero > _LEAST
                floor = np.where(there, zero, 1.0)
                mean = np.where(there, one / floor, 0.0)
                square = np.where(there, two / floor, np.eye(size)[..., None])
                score[rows] = mean.T @ back.T
                rest = np.eye(size)[..., None] - square + mean[:, None] * mean
                slope[rows] = np.einsum("ia,abn,jb->nij", back, rest, back)
            return score, slope

        return scores

    def _sums_of_samples(
        self, y: Array, means: Array, spread: Array, rotation: Array
    ) -> Iterator[tuple[slice, Array, Array, Array]]:
        """Yield moments 0, 1, 2 of standardised posteriors, each on a grid of its own."""
        steps = [self.level.step * min(1.0, self._scale / s) for s in spread]
        axes = [np.arange(-self.level.reach, self.level.reach + h / 2, h) for h in steps]
        s = np.stack([x.ravel() for x in np.meshgrid(*axes, indexing="ij")])
        s = s[:, (s**2).sum(axis=0) <= self.level.reach**2]
        weights = np.exp(-(s**2).sum(axis=0) / 2) * math.prod(steps) / (2 * math.pi) ** (len(s) / 2)
        u = (rotation * spread) @ s
        second = np.stack([a * b for a in s for b in s])
        powers = np.concatenate([np.ones((1, s.shape[1])), s, second]) * weights
        chunk, size = max(_BLOCK // s.shape[1], 1), len(s)
        for k in range(0, len(means), chunk):
            rows = slice(k, k + chunk)
            at = [means[rows, i, None] + u[i] for i in range(size)]
            if self.channel.probabilities:
                law = np.empty(at[0].shape)
                for value in range(len(self.channel.probabilities)):
                    on = y[rows] == value
                    law[on] = self._law(np.array([value]), *(x[on] for x in at))[..., 0]
            else:
                law = self._law(y[rows, None, None], *at)[..., 0]
            found = powers @ law.T
            yield rows, found[0], found[1 : size + 1], found[size + 1 :].reshape(size, size, -1)

    def _between_lines_of_samples(
        self, y: Array, means: Array, spread: Array, rotation: Array
    ) -> Iterator[tuple[slice, Array, Array, Array]]:
        """Yield the same of labels that jump at lines."""
        assert self._planes is not None
        lines = np.column_stack([self._planes[:, :2] @ rotation, self._planes[:, 2]])
        v, w, low, high, law = self._windows(lines, np.zeros(0), spread, rotation)
        turned = means @ rotation
        chunk = max(_BLOCK // law[..., 0].size, 1)
        for k in range(0, len(means), chunk):
            rows = slice(k, k + chunk)
            t, kernel = _posterior_weights(v, w, turned[rows, 0], spread[0] ** 2)
            windows = _window_moments(low, high, turned[rows, 1], spread[1], 2)
            given = law[..., y[rows]]
            along = [(given * window).sum(axis=0).T for window in windows]
            a, b, c, d, e, f = (
                np.einsum("nv,nv->n", kernel * t**i, along[j])
                for i, j in ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
            )
            yield rows, a, np.stack([b, c]), np.array([[d, e], [e, f]])


def _posterior_weights(v: Array, w: Array, means: Array, variance: float) -> Axis:
    t = (v - means[:, None]) / math.sqrt(variance)
    return t, normal_density(t) * w / math.sqrt(variance)


def _contracted(law: Array, axes: Sequence[Axis], orders: Sequence[Order]) -> dict[Order, Array]:
    """Take moments along all axes but the labels', the last axis first."""
    found: dict[Order, Array] = {(): law}
    for axis in reversed(range(len(axes))):
        t, kernel = axes[axis]
        powers = {order[axis] for order in orders}
        kernels = {k: kernel * t**k for k in powers}
        new = {}
        for order in dict.fromkeys(order[axis:] for order in orders):
            before = found[order[1:]]
            flat = before.reshape(math.prod(before.shape[:axis]), before.shape[axis], -1)
            value = np.matmul(kernels[order[0]], flat)
            new[order] = value.reshape(*before.shape[:axis], len(kernel), *before.shape[axis + 1 :])
        found = new
    return found


def _outer(weights: Sequence[Array]) -> Array:
    found = weights[0]
    for w in weights[1:]:
        found = found[..., None] * w
    return found


def _window_moments(
    low: Array, high: Array, means: Array, spread: float, order: int
) -> list[Array]:
    """Return E[s^k 1(low < u < high)], k up to an order, of normal u at means, (…, n)."""
    a, b = ((x[..., None] - means) / spread for x in (low, high))
    flipped = a > 0
    below, above = np.where(flipped, -b, a), np.where(flipped, -a, b)
    found = [ndtr(above) - ndtr(below)]
    if order:
        left, right = normal_density(a), normal_density(b)
        found.append(left - right)
    if order > 1:
        with np.errstate(invalid="ignore"):
            ends = np.where(np.isinf(a), 0.0, a * left) - np.where(np.isinf(b), 0.0, b * right)
        found.append(found[0] + ends)
    return found
