r"""Averages :math:`\mathbb{E}[f(u\cdot x)\,g(w\cdot x)\,x]` over Gaussian x, for many pairs u, w.

Such an average lies in the plane of u and w. A quick product rule serves pairs that are smooth
across one of the two arguments: Gauss–Legendre on the two halves of the line of the other one,
which may have a kink or jump at zero, and the trapezoidal rule across it. Pairs for which that does
not converge — kinks on both sides, steep functions, long weights, vectors that are all but parallel
— are computed one by one: Gauss–Legendre on panels that end at the kinks of both functions and
become ever shorter next to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ..errors import ConvergenceError
from ..runtime.quadrature import legendre_panels, normal_density

Array = NDArray[np.float64]
Function = Callable[[Array], Any]

# Nodes of each half of the outer line and of the inner rule.
_ORDERS = ((32, 64), (48, 112))
_REACH = 9.0
_ENTRIES = 2**21
# Rows at a smaller angle than this count as parallel: what is left out is of its size.
_PARALLEL = 1e-12
# Nodes of a panel, and how often panels are halved towards a kink.
_PANEL = 12
_HALVINGS = (2, 4, 7, 14, 26, 32)


def pair_averages(
    first: Function,
    second: Function,
    p: Array,
    q: Array,
    c: Array,
    *,
    first_kinks: Sequence[float] = (),
    second_kinks: Sequence[float] = (),
    accuracy: float = 1e-6,
) -> tuple[Array, Array]:
    r"""Return coefficients (A, B) with :math:`\mathbb{E}[f(u\cdot x)\,g(w\cdot x)\,x] = Au + Bw`.

    Parameters
    ----------
    first, second : callable
        f and g; take an array, return values of its shape or one number for all.
    p, q, c : arrays of one shape
        Squared lengths of u and w, positive, and their inner products.
    first_kinks, second_kinks : sequence of float
        Where f and g have kinks or jumps; zero need not be named.
    accuracy : float
        Largest difference of two rules, relative to the largest average.

    Raises
    ------
    ConvergenceError
        If two rules differ by more: the functions are not smooth enough.
    """
    shape = np.broadcast_shapes(p.shape, q.shape, c.shape)
    p, q, c = (np.broadcast_to(v, shape).ravel().astype(float) for v in (p, q, c))
    result = _coefficients(first, second, p, q, c)
    if not result.converged(accuracy).all():
        # The other way round: a kink of the second function is then on the outer line.
        swapped = _coefficients(second, first, q, p, c)
        better = swapped.error < result.error
        result.own[better], result.other[better] = swapped.other[better], swapped.own[better]
        for name in ("size", "error"):
            getattr(result, name)[better] = getattr(swapped, name)[better]
    left = np.flatnonzero(~result.converged(accuracy))
    result.size[left] = 0.0
    kinks = (sorted({0.0, *first_kinks}), sorted({0.0, *second_kinks}))
    for i in tqdm(left, delay=1, disable=None, unit="pair"):
        pair = (float(p[i]), float(q[i]), float(c[i]))
        enough = accuracy * result.size.max(initial=0.0)
        rule, result.error[i] = _careful((first, second), kinks, pair, enough, accuracy)
        result.size[i] = np.abs(rule).max()
        result.own[i], result.other[i] = _in_the_plane(rule, *pair)
    if not result.converged(accuracy).all():
        worst = result.error.max() / max(result.size.max(), np.finfo(float).tiny)
        raise ConvergenceError(
            f"averages over pairs of neurons by two quadrature rules differ by {worst:.1e} of the "
            f"largest; {accuracy:.0e} is wanted"
        )
    return result.own.reshape(shape), result.other.reshape(shape)


@dataclass(frozen=True)
class _Found:
    """Coefficients of the vector of the outer line and of the other one, for each pair.

    With the length of the average and the difference of two rules, infinite where no node saw
    anything.
    """

    own: Array
    other: Array
    size: Array
    error: Array

    def converged(self, accuracy: float) -> Any:
        # What a rule that has not converged shows is no measure of size.
        size = self.size[self.error <= 1e-3 * self.size].max(initial=0.0)
        return self.error <= accuracy * size


def _coefficients(first: Function, second: Function, p: Array, q: Array, c: Array) -> _Found:
    coarse, fine = (_rule(first, second, p, q, c, *order) for order in _ORDERS)
    size = np.abs(fine).max(axis=0)
    # Zero: a peak narrower than the distance of the nodes, or an average that vanishes.
    error = np.where(size > 0, np.abs(fine - coarse).max(axis=0), math.inf)
    own, other = _in_the_plane(fine, p, q, c)
    return _Found(own, other, size, error)


def _in_the_plane(components: Array, p: Any, q: Any, c: Any) -> tuple[Array, Array]:
    """Turn components along u and across it into coefficients of u and w."""
    along, across = components
    rest = np.sqrt(np.maximum(q - c * c / p, 0.0))
    apart = rest > _PARALLEL * np.sqrt(q)
    other = np.where(apart, across / np.where(apart, rest, 1.0), 0.0)
    return along / np.sqrt(p) - c / p * other, other


def _rule(
    first: Function, second: Function, p: Array, q: Array, c: Array, halves: int, order: int
) -> Array:
    """Components of the averages along u and across it, shape (2, pairs)."""
    inner = np.linspace(-_REACH, _REACH, order)
    inner_weights = (inner[1] - inner[0]) * normal_density(inner)
    (half,), (half_weights,) = legendre_panels(np.array([0.0, _REACH]), halves)
    nodes = np.concatenate([-half[::-1], half])
    weights = np.concatenate([half_weights[::-1], half_weights]) * normal_density(nodes)
    result = np.empty((2, len(p)))
    step = max(1, _ENTRIES // (len(nodes) * order))
    for begin in range(0, len(p), step):
        rows = slice(begin, begin + step)
        root = np.sqrt(p[rows])[:, None]
        rest = np.sqrt(np.maximum(q[rows] - (c[rows] ** 2) / p[rows], 0.0))
        values = np.broadcast_to(first(root * nodes), (len(root), len(nodes))) * weights
        means = (c[rows][:, None] / root * nodes)[:, :, None]
        others = np.broadcast_to(
            second(means + rest[:, None, None] * inner), (len(root), len(nodes), order)
        )
        result[0, rows] = np.einsum("pi,pi->p", values * nodes, others @ inner_weights)
        result[1, rows] = np.einsum("pi,pi->p", values, others @ (inner_weights * inner))
    return result


def _careful(
    functions: tuple[Function, Function],
    kinks: tuple[Sequence[float], Sequence[float]],
    pair: tuple[float, float, float],
    enough: float,
    accuracy: float,
) -> tuple[Array, float]:
    """Components of one average, and the difference of the last two rules.

    The difference may be `enough`, or the accuracy relative to this average.
    """
    # With fewer halvings a long weight's panels are longer than where its function changes.
    least = math.log2(max(_REACH * math.sqrt(max(pair[:2])), 1.0))
    orders = [order for order in _HALVINGS if order >= least]
    orders = orders if len(orders) > 1 else [*_HALVINGS[-2:]]
    result, error = np.full(2, math.inf), math.inf
    for order in orders:
        before = result
        result, seen = _panels(functions, kinks, pair, order)
        error = float(np.abs(result - before).max()) if seen else math.inf
        if error <= max(enough, accuracy * float(np.abs(result).max())):
            break
    return result, error


def _panels(
    functions: tuple[Function, Function],
    kinks: tuple[Sequence[float], Sequence[float]],
    pair: tuple[float, float, float],
    halvings: int,
) -> tuple[Array, bool]:
    """Components along u and across it by composite rules; whether any node saw the second."""
    p, q, c = pair
    root, slope = math.sqrt(p), c / math.sqrt(p)
    rest = math.sqrt(max(q - c * c / p, 0.0))
    places = [kink / root for kink in kinks[0]]
    if slope:
        # What the average across u leaves of a kink of the second function.
        places += [kink / slope for kink in kinks[1]]
    nodes, weights = _graded(np.array([places]), halvings)
    values = functions[0](root * nodes[0]) * weights[0]
    means = slope * nodes[0][:, None]
    if rest > _PARALLEL * math.sqrt(q):
        inner = (np.array(kinks[1])[None, :] - means) / rest
    else:
        inner = np.zeros((len(means), 1))
    across, inner_weights = _graded(inner, halvings)
    others = np.broadcast_to(functions[1](means + rest * across), across.shape) * inner_weights
    components = [
        values @ (nodes[0] * others.sum(axis=1)),
        values @ (others * across).sum(axis=1),
    ]
    return np.array(components), bool(others.any())


def _graded(places: Array, halvings: int) -> tuple[Array, Array]:
    """Nodes and weights of a Gaussian average, a row for each row of places."""
    steps = 2 * _REACH * 0.5 ** np.arange(halvings + 1)
    offsets = np.concatenate([-steps, [0.0], steps[::-1]])
    ends = (places[:, :, None] + offsets).reshape(len(places), -1)
    # Uniform panels become shorter too, so that rules differ away from kinks as well.
    uniform = np.linspace(-_REACH, _REACH, 2 * halvings + 1)
    limits = np.broadcast_to(uniform, (len(places), len(uniform)))
    ends = np.sort(np.clip(np.concatenate([ends, limits], axis=1), -_REACH, _REACH), axis=1)
    nodes, lengths = (x.reshape(len(places), -1) for x in legendre_panels(ends, _PANEL))
    return nodes, lengths * normal_density(nodes)
