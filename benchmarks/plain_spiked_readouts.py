"""Readouts of spiked random features and their spectrum in plain NumPy and SciPy, written by hand.

The other side of `spiked_readouts.py`: what one writes in an afternoon from the equations of
Cui et al., arXiv:2402.04980 (appendices C, D and F), with a fixed trapezoidal grid, arrays over the
nodes and an optimiser of SciPy. The student is the error function; rows are
w_j = sqrt(c) u_j + r v with unit vectors u_j and v, and v has the overlap `alignment` with the
teacher's direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

Array = NDArray[np.float64]

# What a trapezoidal rule with a quarter of the width for a step leaves is 1e-12 and less.
STEP, REACH = 0.25, 9.0
# Smoothed labels vary faster than the tables of the node.
INNER_STEP = 0.125


def normal_rule(step: float) -> tuple[Array, Array]:
    """Return nodes and weights of the trapezoidal rule for the normal law."""
    n = round(REACH / step)
    x = np.linspace(-n * step, n * step, 2 * n + 1)
    return x, step * density(x)


def density(x: Array) -> Array:
    """Return the standard normal density."""
    return np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def erf_features(x: Array, c: float) -> tuple[Array, Array, Array]:
    """Return mu_0, mu_1 and mu_2**2 of the error function at ``x``, the bulk having variance c."""
    q = 1 + 2 * c
    mu0 = special.erf(x / np.sqrt(q))
    mu1 = 2 / np.sqrt(np.pi * q) * np.exp(-x * x / q)
    square = 1 - 8 * special.owens_t(x * np.sqrt(2 / q), 1 / np.sqrt(1 + 4 * c))
    # Far out nothing but rounding is left of the difference.
    return mu0, mu1, np.maximum(square - mu0**2 - c * mu1**2, 0.0)


def bulk_traces(
    v_hat: Array, ridge: float, beta: float, c: float
) -> tuple[Array, tuple[float, float, float]]:
    """Return (V1, V2) and the second-order averages (R11, R12, R22), Marchenko-Pastur bulk."""
    a, b = ridge + v_hat[1], v_hat[0]
    t = a / (b * c)
    k0 = 1 - beta + t
    root = np.sqrt(k0**2 + 4 * beta * t)
    g = 2 / (k0 + root) if k0 >= 0 else (root - k0) / (2 * beta * t)
    v2 = g / (b * c)
    u = beta * b * c * v2
    v1 = c * v2 / (1 + u)
    x = u / (1 + u)
    p = (1 - x + x * a * v2) / v2**2
    r12 = c / ((1 + u) ** 2 * p)
    r11 = c * c / ((1 + u) ** 4 * p) + beta * (c * v2 / (1 + u)) ** 2
    return np.array([v1, v2]), (r11, r12, 1 / p)


@dataclass(frozen=True)
class Readout:
    """One point of a convex readout: sizes, spike and noise."""

    alpha: float
    beta: float
    ridge: float
    spike: float
    variance: float
    alignment: float
    noise: float = 0.0


class PlainConvexReadout:
    """Order parameters of a convex loss as a fixed point in (V1, V2, q1, q2, m, theta, psi).

    Parameters
    ----------
    point : Readout
    moments : callable
        Returns E f, E f**2, E f' and E[s f] at every node, of the derivative f of the envelope.
    step : float
        Of the rule over the node.
    """

    names = ("V1", "V2", "q1", "q2", "m", "theta", "psi")

    def __init__(
        self, point: Readout, moments: Callable[..., tuple[Array, ...]], step: float = STEP
    ) -> None:
        self.point = point
        self.moments = moments
        self.kappa, self.weight = normal_rule(step)
        self.mu0, self.mu1, self.mu2_squared = erf_features(
            point.spike * self.kappa, point.variance
        )

    def update(self, state: Array) -> Array:
        """Return what the equations make of the order parameters."""
        p, w, k = self.point, self.weight, self.kappa
        v1, v2, q1, q2, m, theta, psi = state
        mu0, mu1, mu22 = self.mu0, self.mu1, self.mu2_squared
        proximal = mu1**2 * v1 + mu22 * v2
        center = mu0 * m + mu1 * k * theta
        spread = mu1**2 * q1 + mu22 * q2
        f, f2, slope, sf = self.moments(p, k, proximal, center, spread, mu1 * psi)
        ratio = p.alpha / p.beta
        squares = np.stack([mu1**2, mu22])
        v_hat = -ratio * squares @ (w * slope)
        q_hat = ratio * squares @ (w * f2)
        theta_hat = ratio * np.sum(w * k * mu1 * f)
        psi_hat = ratio * np.sum(w * mu1 * (sf - mu1 * psi * slope))
        traces, (r11, r12, r22) = bulk_traces(v_hat, p.ridge, p.beta, p.variance)
        first = q_hat[0] + p.beta * psi_hat**2
        second = q_hat[1] + p.beta * p.variance * theta_hat**2
        return np.array(
            [
                *traces,
                r11 * first + r12 * second,
                r12 * first + r22 * second,
                m - np.sum(w * mu0 * f) / np.sum(w * mu0**2 * slope),
                p.beta * p.variance * traces[1] * theta_hat,
                p.beta * traces[0] * psi_hat,
            ]
        )

    def residual(self, coordinates: Array) -> Array:
        """Return the move of the fixed point in logarithms of positive order parameters."""
        state = from_coordinates(coordinates)
        with np.errstate(all="ignore"):
            return to_coordinates(self.update(state)) - coordinates

    def solve(self, start: Sequence[float], damped: int = 25) -> dict[str, float]:
        """Return the order parameters: damped iteration first, then `scipy.optimize.root`."""
        x = self._damped(start, damped)
        x = optimize.root(self.residual, x, tol=1e-12).x
        if not np.max(np.abs(self.residual(x))) < 1e-8:
            raise RuntimeError(f"no fixed point near {from_coordinates(x)}")
        return dict(zip(self.names, from_coordinates(x).tolist(), strict=True))

    def _damped(self, start: Sequence[float], moves: int) -> Array:
        x = to_coordinates(np.array(start))
        for _ in range(moves):
            move = self.residual(x)
            # The mean direction costs nothing and leaps where the loss is flat.
            move[4] = np.clip(move[4], -0.5, 0.5)
            x = x + 0.5 * move
        return x


def to_coordinates(state: Array) -> Array:
    """Return logarithms of the positive order parameters, and the others."""
    return np.concatenate([np.log(state[:4]), state[4:]])


def from_coordinates(coordinates: Array) -> Array:
    """Return the order parameters."""
    return np.concatenate([np.exp(coordinates[:4]), coordinates[4:]])


def huber_moments(delta: float, step: float = INNER_STEP) -> Callable[..., tuple[Array, ...]]:
    """Return the moments of Huber's loss of y - x for a sine as teacher.

    Given the node and the teacher's field s the residual is normal, so the average over it is in
    closed form and a rule over s remains.
    """
    s, ws = normal_rule(step)
    s = s[None, :]

    def moments(
        p: Readout, k: Array, v: Array, center: Array, spread: Array, overlap: Array
    ) -> tuple[Array, ...]:
        rho = np.sqrt(1 - p.alignment**2)
        mean = np.sin(p.alignment * k[:, None] + rho * s) - center[:, None] - overlap[:, None] * s
        variance = (spread - overlap**2 + p.noise)[:, None]
        size = np.sqrt(variance)
        a = (1 + v)[:, None]
        bound = delta * a
        upper, lower = (bound - mean) / size, (-bound - mean) / size
        mass = special.ndtr(upper) - special.ndtr(lower)
        ends = density(upper), density(lower)
        first = mean * mass - size * (ends[0] - ends[1])
        second = (mean**2 + variance) * mass - size * (
            (mean + bound) * ends[0] - (mean - bound) * ends[1]
        )
        clipped = 1 - special.ndtr(upper) - special.ndtr(lower)
        f = first / a + delta * clipped
        return (
            f @ ws,
            (second / a**2 + delta**2 * (1 - mass)) @ ws,
            (-mass / a) @ ws,
            (f * s) @ ws,
        )

    return moments


def logistic_moments(
    p: Readout, k: Array, v: Array, center: Array, spread: Array, overlap: Array
) -> tuple[Array, ...]:
    """Return the moments of the logistic loss for labels sign(theta.x), by a rule over omega."""
    g, wg = normal_rule(INNER_STEP)
    g = g[None, :]
    rho = np.sqrt(1 - p.alignment**2)
    root = np.sqrt(spread)
    b = (overlap / root)[:, None]
    omega = center[:, None] + root[:, None] * g
    proximal = np.broadcast_to(v[:, None], omega.shape)
    free = np.sqrt(1 - b**2)
    ratio = (p.alignment * k[:, None] + rho * b * g) / (rho * free)
    totals = [np.zeros(len(k)) for _ in range(4)]
    for y in (1.0, -1.0):
        probability = special.ndtr(y * ratio)
        slope = logistic_slope(y * omega, proximal)
        f = y * slope
        curvature = slope * (1 - slope)
        totals[0] += (probability * f) @ wg
        totals[1] += (probability * slope**2) @ wg
        totals[2] += (-probability * curvature / (1 + proximal * curvature)) @ wg
        totals[3] += ((probability * b * g + y * free * density(ratio)) * f) @ wg
    return tuple(totals)


def logistic_slope(omega: Array, v: Array) -> Array:
    """Return e = 1/(1 + exp(x)) at the proximal operator x = omega + v e, by Newton's method."""
    # From where the slope is largest, steps never go too far.
    x = np.clip(np.zeros_like(omega), omega, omega + v)
    for _ in range(100):
        e = special.expit(-x)
        step = (x - omega - v * e) / (1 + v * e * (1 - e))
        x = np.clip(x - step, omega, omega + v)
        if np.max(np.abs(step)) < 1e-14 * (1 + np.max(np.abs(x))):
            break
    return special.expit(-x)


@dataclass(frozen=True)
class Letters:
    """One point of a readout over several letters; a bulk of unit rows, c in the features."""

    alpha: float
    beta: float
    ridge: float
    spikes: Sequence[float]
    variances: Sequence[float]
    fractions: Sequence[float]
    alignment: float
    noise: float = 0.0
    width: float | None = None


class PlainVocabulary:
    """The square loss with K letters: two sets of traces by `scipy.optimize.root`, linear rest.

    Parameters
    ----------
    point : Letters
    teacher : callable
        Smoothed teacher: returns T0, T1 and T2, noise included, at nodes for an alignment.
    """

    def __init__(
        self, point: Letters, teacher: Callable[[Array, float], tuple[Array, Array, Array]]
    ) -> None:
        self.point = point
        self.kappa, self.weight = normal_rule(STEP)
        features = [
            erf_features(r * self.kappa, c)
            for r, c in zip(point.spikes, point.variances, strict=True)
        ]
        self.mu0 = np.stack([f[0] for f in features])
        self.mu1 = np.stack(
            [np.sqrt(c) * f[1] for f, c in zip(features, point.variances, strict=True)]
        )
        self.mu22 = np.stack([f[2] for f in features])
        t0, t1, t2 = teacher(self.kappa, point.alignment)
        self.t0, self.t1, self.t2 = t0, t1, t2 + point.noise
        self.fractions = np.array(point.fractions)

    def denominator(self, v1: Array, v2: Array) -> Array:
        """Return 1 + V at the nodes."""
        return 1 + np.einsum("ak,ab,bk->k", self.mu1, v1, self.mu1) + v2 @ self.mu22

    def traces(self, v1_hat: Array, v2_hat: Array) -> tuple[Array, Array]:
        """Return N, and M of every letter, by iteration."""
        p = self.point
        m = 1 / (p.ridge + v2_hat)
        for _ in range(10_000):
            n = p.beta * np.diag(self.fractions * m)
            delta = np.diag(v1_hat @ np.linalg.inv(np.eye(len(m)) + n @ v1_hat))
            new = 1 / (p.ridge + v2_hat + delta)
            if np.max(np.abs(new - m) / new) < 1e-14:
                break
            m = new
        return p.beta * np.diag(self.fractions * new), new

    def update(self, v1: Array, v2: Array) -> tuple[Array, Array, Array, Array]:
        """Return V1, V2, M and V1_hat from the equations."""
        p = self.point
        scaled = p.alpha / p.beta * self.weight / self.denominator(v1, v2)
        v1_hat = (self.mu1 * scaled) @ self.mu1.T
        v2_hat = self.mu22 @ scaled
        n, m = self.traces(v1_hat, v2_hat)
        new = n @ np.linalg.inv(np.eye(len(m)) + v1_hat @ n) / p.beta
        return (new + new.T) / 2, self.fractions * m, m, v1_hat

    def solve(self) -> dict[str, Any]:
        """Return test and training error with the order parameters."""
        letters = len(self.fractions)
        upper = np.triu_indices(letters)

        def unpack(x: Array) -> tuple[Array, Array]:
            v1 = np.zeros((letters, letters))
            v1[upper] = x[: len(upper[0])]
            return v1 + np.triu(v1, 1).T, np.exp(x[len(upper[0]) :])

        def residual(x: Array) -> Array:
            v1, v2, *_ = self.update(*unpack(x))
            return np.concatenate([v1[upper], np.log(v2)]) - x

        start = np.concatenate([np.diag(self.fractions)[upper], np.log(self.fractions)])
        found = optimize.root(residual, start, tol=1e-13)
        v1, v2 = unpack(found.x)
        if not np.max(np.abs(residual(found.x))) < 1e-10:
            raise RuntimeError(f"scipy found no fixed point: {found.message}")
        return self.rest(*self.update(v1, v2))

    def rest(self, v1: Array, v2: Array, m_trace: Array, v1_hat: Array) -> dict[str, Any]:
        """Return the order parameters that follow from linear equations, and the errors."""
        p, k, w, fractions = self.point, self.kappa, self.weight, self.fractions
        letters = len(fractions)
        over = w / self.denominator(v1, v2)
        moving = k * self.mu1
        both = np.concatenate([self.mu0, moving])
        matrix = (both * over) @ both.T
        costs = np.zeros(2 * letters)
        if p.width is not None:
            costs[:letters] = 1 / (p.alpha / p.beta * p.width * fractions * m_trace)
        costs[letters:] = 1 / (p.alpha * fractions * m_trace)
        solved = np.linalg.solve(matrix + np.diag(costs), (both * over) @ self.t0)
        m, theta = solved[:letters], solved[letters:]
        theta_hat = theta / (p.beta * fractions * m_trace)
        ratio = p.alpha / p.beta
        psi_hat = ratio * (self.mu1 @ (over * self.t1))
        psi = p.beta * v1 @ psi_hat
        center = m @ self.mu0 + theta @ moving
        fixed = self.t2 - 2 * self.t0 * center - 2 * self.t1 * (psi @ self.mu1) + center**2
        squared = w / self.denominator(v1, v2) ** 2

        def response(x1: Array, x2: Array) -> tuple[Array, Array]:
            n = p.beta * np.diag(fractions * m_trace)
            t = np.linalg.inv(np.eye(letters) + n @ v1_hat)
            q = v1_hat @ t
            left = np.eye(letters) - (m_trace**2)[:, None] * q * q * (p.beta * fractions)
            dm = np.linalg.solve(left, -(m_trace**2) * (x2 + np.diag(t.T @ x1 @ t)))
            dn = p.beta * np.diag(fractions * dm)
            dv1 = (dn @ t.T - n @ t.T @ (x1 @ n + v1_hat @ dn) @ t.T) / p.beta
            return -dv1, -fractions * dm

        def hats(err: Array) -> tuple[Array, Array]:
            scaled = ratio * squared * err
            return (self.mu1 * scaled) @ self.mu1.T, self.mu22 @ scaled

        extra = p.beta * theta_hat**2
        if p.width is not None:
            extra = extra + m**2 / (p.width * fractions**2 * m_trace**2)
        x1, x2 = hats(fixed)
        constant = response(x1 + p.beta * np.outer(psi_hat, psi_hat), x2 + extra)
        upper = np.triu_indices(letters)

        def pack(q1: Array, q2: Array) -> Array:
            return np.concatenate([((q1 + q1.T) / 2)[upper], q2])

        size = len(upper[0]) + letters
        system = np.eye(size)
        for j in range(size):
            unit, single = np.zeros((letters, letters)), np.zeros(letters)
            if j < len(upper[0]):
                unit[upper[0][j], upper[1][j]] = unit[upper[1][j], upper[0][j]] = 1.0
            else:
                single[j - len(upper[0])] = 1.0
            err = np.einsum("ak,ab,bk->k", self.mu1, unit, self.mu1) + single @ self.mu22
            system[:, j] -= pack(*response(*hats(err)))
        found = np.linalg.solve(system, pack(*constant))
        half = np.zeros((letters, letters))
        half[upper] = found[: len(upper[0])]
        q1 = half + np.triu(half, 1).T
        q2 = found[len(upper[0]) :]
        err = fixed + np.einsum("ak,ab,bk->k", self.mu1, q1, self.mu1) + q2 @ self.mu22
        return {
            "test_error": float(w @ err - p.noise),
            "training_error": float(squared @ err),
            "m": m,
            "theta": theta,
            "psi": psi,
            "V1": v1,
            "V2": v2,
            "q1": q1,
            "q2": q2,
        }


def sine_teacher(k: Array, alignment: float) -> tuple[Array, Array, Array]:
    """Return T0, T1 and T2 of sin."""
    rho2 = 1 - alignment**2
    t0 = np.exp(-rho2 / 2) * np.sin(alignment * k)
    t1 = np.sqrt(rho2) * np.exp(-rho2 / 2) * np.cos(alignment * k)
    return t0, t1, 0.5 * (1 - np.exp(-2 * rho2) * np.cos(2 * alignment * k))


class PlainSpectrum:
    """The density of the eigenvalues of the feature covariance, one point after the other.

    Parameters
    ----------
    alpha, beta, spike, variance : float
    """

    def __init__(self, alpha: float, beta: float, spike: float, variance: float) -> None:
        self.alpha, self.beta, self.variance = alpha, beta, variance
        self.kappa, self.weight = normal_rule(STEP)
        _, mu1, self.mu22 = erf_features(spike * self.kappa, variance)
        self.mu11 = mu1**2

    def update(self, z: complex, v: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Return (V1, V2) of the equations at the ridge penalty -z."""
        scaled = self.alpha / self.beta * self.weight / (1 + v[0] * self.mu11 + v[1] * self.mu22)
        b, a = np.sum(self.mu11 * scaled), np.sum(self.mu22 * scaled) - z
        below = 1 + self.beta * self.variance * b * v[1]
        v2 = 1 / (a + self.variance * b / below)
        return np.array([self.variance * v2 / (1 + self.beta * self.variance * b * v2), v2])

    def transforms(self, grid: Array, offset: float) -> NDArray[np.complex128]:
        """Return V2 at grid + i*offset, each point started from the one before."""

        def real(v: NDArray[np.complex128]) -> Array:
            return np.concatenate([v.real, v.imag])

        def complex_(x: Array) -> NDArray[np.complex128]:
            return x[:2] + 1j * x[2:]

        state = np.array([1j, 1j])
        for height in np.geomspace(1.0, offset, 12).tolist():
            for _ in range(200):
                state = 0.5 * state + 0.5 * self.update(complex(grid[0], height), state)
        found = []
        for x in grid:
            z = complex(x, offset)
            solved = optimize.root(
                lambda u, z=z: real(self.update(z, complex_(u))) - u, real(state), tol=1e-12
            )
            state = complex_(solved.x)
            if not (np.max(np.abs(self.update(z, state) - state)) < 1e-8 and state[1].imag >= 0):
                # The neighbour is on another side of an edge: damped iteration stays in the half
                # plane.
                state = np.array([1j, 1j])
                for _ in range(20_000):
                    new = 0.5 * state + 0.5 * self.update(z, state)
                    if np.max(np.abs(new - state)) < 1e-13 * np.max(np.abs(new)):
                        break
                    state = new
            found.append(state[1])
        return np.array(found)
