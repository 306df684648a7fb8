"""Saddle-point solver against the plain route, against one thread, and against hand-written code.

Three targets, for the tanh student and the sin teacher at step size 3 and alpha0 = 20:

(a) one solve to 1e-12, at least 1e5 times faster than lambdified integrands, scipy.integrate.quad
    with cached inner integrals, and scipy.optimize.root on the saddle-point equations;
(b) a batch of random points: two threads at least 1.8 times faster than one, and at least 1e6
    solves a second on two threads;
(c) the generated kernel takes at most 1.15 times as long as a numba kernel of the same algorithm
    written by hand.

(a) and (c) count the CPU time of the thread, which other load on the machine hardly changes. (b)
needs two cores to itself: the line "plain loop" shows what two threads gain on this machine now.

    python benchmarks/saddle_point.py [--quick]
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.integrate
import scipy.optimize
import sympy as sp
from numba import njit
from numpy.typing import NDArray

from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
from giantstep.numeric import saddle_point_solver

SPEEDUP_TARGET = 1e5
SCALING_TARGET = 1.8
RATE_TARGET = 1e6
HAND_TARGET = 1.15
ALPHA, RIDGE = 1.5, 0.1
# Where the normal density is 5e-23: the plain route cuts the line here.
REACH = 10.0

CONJUGATES = ("V1_hat", "V2_hat", "theta_hat", "psi_hat", "q1_hat", "q2_hat")

Array = NDArray[np.float64]


# ---------------------------------------------------------------- (a) the plain route


class PlainRoute:
    """The saddle point as a careful user would solve it with SymPy and SciPy, at beta = 1.

    Integrands are SymPy expressions for any pair of activations, lambdified to the `math` module,
    which is the fastest for scalars; inner integrals are kept for every outer node that `quad`
    asks for; the eigenvalue averages are closed forms.

    Parameters
    ----------
    spike_strength, bulk_variance, alignment : float
        r, c and gamma.
    tuned : bool
        With what can be found out by hand about this pair: the teacher's integrals in closed form,
        half of the line because all integrands are even, and no unknowns for the conjugates.
    """

    def __init__(
        self, spike_strength: float, bulk_variance: float, alignment: float, *, tuned: bool
    ) -> None:
        self.c, self.tuned = bulk_variance, tuned
        self.evaluations = 0
        # The cache has to be filled anew for every solve that is timed.
        self.inner = functools.lru_cache(maxsize=None)(self._inner)
        names = "kappa V1 V2 m theta psi q1 q2 mu0 mu1 mu2_squared T0 T1 T2"
        symbols = sp.symbols(names, real=True)
        kappa, v1, v2, m, theta, psi, q1, q2, mu0, mu1, mu2, t0, t1, t2 = symbols
        v = mu1**2 * v1 + mu2 * v2
        mean = mu0 * m + mu1 * kappa * theta
        err = t2 - 2 * t0 * mean - 2 * mu1 * psi * t1 + mean**2 + mu1**2 * q1 + mu2 * q2
        integrands = {
            "m": mu0 * (t0 - mean) / (1 + v),
            "V1_hat": mu1**2 / (1 + v),
            "V2_hat": mu2 / (1 + v),
            "theta_hat": kappa * mu1 * (t0 - mean) / (1 + v),
            "psi_hat": mu1 * t1 / (1 + v),
            "q1_hat": mu1**2 * err / (1 + v) ** 2,
            "q2_hat": mu2 * err / (1 + v) ** 2,
            "test_error": err,
        }
        weight = sp.exp(-(kappa**2) / 2) / sp.sqrt(2 * sp.pi)
        self.integrands = {
            name: sp.lambdify(symbols, weight * f, "math", cse=True)
            for name, f in integrands.items()
        }

        z = sp.Symbol("z", real=True)
        weight = weight.subs(kappa, z)
        x = sp.sqrt(sp.Float(bulk_variance)) * z + spike_strength * kappa
        rho = math.sqrt((1 - alignment) * (1 + alignment))
        y = alignment * kappa + rho * z
        inner = [
            sp.tanh(x),
            sp.tanh(x) * z / sp.sqrt(sp.Float(bulk_variance)),
            (sp.tanh(x) - mu0 - sp.sqrt(sp.Float(bulk_variance)) * mu1 * z) ** 2,
            sp.sin(y),
            sp.sin(y) * z,
            sp.sin(y) ** 2,
        ]
        self.inner_integrands = [
            sp.lambdify((z, kappa, mu0, mu1), weight * f, "math", cse=True) for f in inner
        ]
        y = alignment * kappa
        closed = [
            sp.exp(-(rho**2) / 2) * sp.sin(y),
            rho * sp.exp(-(rho**2) / 2) * sp.cos(y),
            (1 - sp.exp(-2 * rho**2) * sp.cos(2 * y)) / 2,
        ]
        self.teacher = sp.lambdify(kappa, closed, "math", cse=True)

    def _inner(self, kappa: float) -> tuple[float, ...]:
        """Return mu_0, mu_1, mu_2^2, T_0, T_1, T_2 at one node."""
        values = [0.0, 0.0]
        for k, f in enumerate(self.inner_integrands[: 3 if self.tuned else None]):
            value = integral(f, -REACH, (kappa, *values[:2]))
            values[k:] = [value] if k > 1 else [value, *values[k + 1 :]]
        return (*values, *self.teacher(kappa)) if self.tuned else tuple(values)

    def expectation(self, name: str, unknowns: tuple[float, ...]) -> float:
        """Return the outer integral of one integrand."""
        f = self.integrands[name]

        def value(kappa: float) -> float:
            return float(f(kappa, *unknowns, *self.inner(kappa)))

        return 2 * integral(value, 0) if self.tuned else integral(value, -REACH)

    def conjugates(self, at: tuple[float, ...], alpha: float) -> list[float]:
        """Return V1_hat, V2_hat, theta_hat, psi_hat, q1_hat, q2_hat from their integrals."""
        return [alpha * self.expectation(name, at) for name in CONJUGATES]

    def residuals(self, x: Array, alpha: float, ridge: float) -> list[float]:
        """Return the equations at log V1, log V2, m, theta, psi, q1, q2 and the conjugates.

        Without conjugates in `x` they are put in from their integrals.
        """
        v1, v2 = math.exp(x[0]), math.exp(x[1])
        m, theta, psi, q1, q2, *hats = map(float, x[2:])
        at = (v1, v2, m, theta, psi, q1, q2)
        found = self.conjugates(at, alpha)
        v1_hat, v2_hat, theta_hat, psi_hat, q1_hat, q2_hat = hats or found
        a, b, c = ridge + v2_hat, v1_hat, self.c
        # Marchenko-Pastur averages at beta = 1.
        t = a + math.sqrt(abs(a * a + 4 * a * b * c))
        g2 = 2 / t
        u = b * c * g2
        g1 = c * g2 / (1 + u)
        share = u / (1 + u)
        r22 = g2**2 / (1 - share + share * a * g2)
        r12 = c * r22 / (1 + u) ** 2
        r11 = c**2 * r22 / (1 + u) ** 4 + g1**2
        z1, z2 = q1_hat + psi_hat**2, q2_hat + c * theta_hat**2
        return [
            x[0] - math.log(g1),
            x[1] - math.log(g2),
            self.expectation("m", at),
            theta - c * theta_hat * g2,
            psi - psi_hat * g1,
            q1 - (r11 * z1 + r12 * z2),
            q2 - (r12 * z1 + r22 * z2),
            *(x - y for x, y in zip(hats, found, strict=False)),
        ]

    def solve(self, alpha: float, ridge: float) -> dict[str, float]:
        """Return the order parameters and the test error."""
        self.inner.cache_clear()
        with warnings.catch_warnings():
            # quad warns where rounding keeps it from its tolerance.
            warnings.simplefilter("ignore", scipy.integrate.IntegrationWarning)
            v1, v2 = self.c / (1 + ridge), 1 / (1 + ridge)
            start = [math.log(v1), math.log(v2), 0, 0, 0, 0, 0]
            if not self.tuned:
                start += self.conjugates((v1, v2, 0, 0, 0, 0, 0), alpha)
            root = scipy.optimize.root(
                self.residuals, start, args=(alpha, ridge), method="hybr", options={"xtol": 1e-13}
            )
            self.evaluations = root.nfev
            at = (math.exp(root.x[0]), math.exp(root.x[1]), *map(float, root.x[2:7]))
            found = dict(zip(("V1", "V2", "m", "theta", "psi", "q1", "q2"), at, strict=True))
            return found | {"test_error": self.expectation("test_error", at)}


def integral(f: Callable[..., float], start: float, arguments: tuple[float, ...] = ()) -> float:
    """Return the integral from `start` to the end of the line, as well as `quad` can."""
    value, _ = scipy.integrate.quad(
        f, start, REACH, args=arguments, epsabs=1e-14, epsrel=1e-13, limit=200
    )
    return float(value)


# ---------------------------------------------------------------- (c) the kernel by hand

HAND_OUTPUTS = (
    "test_error", "training_error", "V1", "V2", "V2_hat", "V1_hat", "m", "theta", "theta_hat",
    "psi_hat", "psi", "q1", "q2", "q2_hat", "q1_hat", "test_error_magnitude",
    "training_error_magnitude",
)  # fmt: skip
_FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(fastmath=_FAST, **_FLAGS)
def hand_solve(
    alpha, beta, ridge, noise, c, w, kappa, mu0, mu1, mu2, t0, t1, t2, v1, v2, rough, out, info
):
    """Newton in log V, two 2x2 systems, the errors; written from the equations, by hand."""
    ratio = alpha / beta
    n = len(w)
    iterations = 0
    converged = False
    previous = 1e300
    close = 2e-15
    while iterations < 500:
        iterations += 1
        s1 = s2 = j11 = j12 = j22 = 0.0
        for j in range(n):
            a1 = mu1[j] * mu1[j]
            a2 = mu2[j]
            f = 1.0 / (1.0 + v1 * a1 + v2 * a2)
            f1 = a1 * f
            f2 = a2 * f
            g1 = w[j] * f1
            g2 = w[j] * f2
            s1 += g1
            s2 += g2
            j11 += g1 * f1
            j12 += g1 * f2
            j22 += g2 * f2
        v1_hat = ratio * s1
        v2_hat = ratio * s2
        a = ridge + v2_hat
        bc = v1_hat * c
        t = a + bc * (1.0 - beta)
        root = math.sqrt(t * t + 4.0 * beta * bc * a)
        to2 = 2.0 / (t + root) if t >= 0.0 else (root - t) / (2.0 * beta * bc * a)
        x = 1.0 / (1.0 + beta * bc * to2)
        to1 = c * to2 * x
        r22 = to2 / (a + bc * x * x)
        r12 = c * x * x * r22
        r11 = c * c * x * x * r22 * (x + beta * a * to2)
        k11 = ratio * (r11 * j11 + r12 * j12)
        k12 = ratio * (r11 * j12 + r12 * j22)
        k21 = ratio * (r12 * j11 + r22 * j12)
        k22 = ratio * (r12 * j12 + r22 * j22)
        y1 = 1.0 / to1
        y2 = 1.0 / to2
        res1 = math.log(v1 * y1)
        res2 = math.log(v2 * y2)
        m11 = 1.0 - y1 * k11 * v1
        m12 = -y1 * k12 * v2
        m21 = -y2 * k21 * v1
        m22 = 1.0 - y2 * k22 * v2
        size = max(abs(res1), abs(res2))
        if size <= close or (size < 1e-10 and size >= previous / 2):
            converged = True
            break
        close = max(close, rough * size)
        previous = size
        det = 1.0 / (m11 * m22 - m12 * m21)
        v1 *= math.exp(-min(max((res1 * m22 - m12 * res2) * det, -8.0), 8.0))
        v2 *= math.exp(-min(max((m11 * res2 - res1 * m21) * det, -8.0), 8.0))
    residual = size
    amplification = max(abs(m22) + abs(m12), abs(m11) + abs(m21)) / abs(m11 * m22 - m12 * m21)

    a00 = a01 = a11 = b0 = b1 = p1 = 0.0
    for j in range(n):
        f = w[j] / (1.0 + v1 * mu1[j] * mu1[j] + v2 * mu2[j])
        kmu = kappa[j] * mu1[j]
        f0 = f * mu0[j]
        f1 = f * kmu
        a00 += f0 * mu0[j]
        a01 += f0 * kmu
        a11 += f1 * kmu
        b0 += f0 * t0[j]
        b1 += f1 * t0[j]
        p1 += f * mu1[j] * t1[j]
    a11 += 1.0 / (alpha * c * to2)
    det = 1.0 / (a00 * a11 - a01 * a01)
    m = (b0 * a11 - a01 * b1) * det
    theta = (a00 * b1 - a01 * b0) * det
    residual = max(residual, linear_residual(a00, a01, m, theta, b0))
    residual = max(residual, linear_residual(a01, a11, m, theta, b1))
    psi_hat = ratio * p1
    psi = beta * v1 * psi_hat
    theta_hat = theta / (beta * c * v2)

    b1 = b2 = 0.0
    for j in range(n):
        a1 = mu1[j] * mu1[j]
        f = 1.0 / (1.0 + v1 * a1 + v2 * mu2[j])
        mean = m * mu0[j] + theta * kappa[j] * mu1[j]
        err = t2[j] - 2.0 * t0[j] * mean - 2.0 * psi * mu1[j] * t1[j] + mean * mean
        e = w[j] * err * f * f
        b1 += e * a1
        b2 += e * mu2[j]
    b1 = ratio * b1 + beta * psi_hat * psi_hat
    b2 = ratio * b2 + beta * c * theta_hat * theta_hat
    z1 = r11 * b1 + r12 * b2
    z2 = r12 * b1 + r22 * b2
    det = 1.0 / ((1.0 - k11) * (1.0 - k22) - k12 * k21)
    q1 = (z1 * (1.0 - k22) + k12 * z2) * det
    q2 = ((1.0 - k11) * z2 + z1 * k21) * det
    residual = max(residual, linear_residual(1.0 - k11, -k12, q1, q2, z1))
    residual = max(residual, linear_residual(-k21, 1.0 - k22, q1, q2, z2))

    test = train = q1_hat = q2_hat = test_size = train_size = 0.0
    abs_m = abs(m)
    abs_theta = abs(theta)
    abs_psi = abs(psi)
    for j in range(n):
        a1 = mu1[j] * mu1[j]
        f = 1.0 / (1.0 + v1 * a1 + v2 * mu2[j])
        mean = m * mu0[j] + theta * kappa[j] * mu1[j]
        own = a1 * q1 + mu2[j] * q2
        e = t2[j] - 2.0 * t0[j] * mean - 2.0 * psi * mu1[j] * t1[j] + mean * mean + own
        abs_mu1 = abs(mu1[j])
        mean = abs_m * abs(mu0[j]) + abs_theta * abs(kappa[j]) * abs_mu1
        s = abs(t2[j]) + mean * (mean + 2.0 * abs(t0[j])) + own
        s += 2.0 * abs_psi * abs_mu1 * abs(t1[j])
        e *= w[j]
        s *= w[j]
        f *= f
        test += e
        test_size += s
        train_size += s * f
        e *= f
        train += e
        q1_hat += e * a1
        q2_hat += e * mu2[j]
    out[0] = test - noise
    out[1] = train
    out[2] = v1
    out[3] = v2
    out[4] = v2_hat
    out[5] = v1_hat
    out[6] = m
    out[7] = theta
    out[8] = theta_hat
    out[9] = psi_hat
    out[10] = psi
    out[11] = q1
    out[12] = q2
    out[13] = ratio * q2_hat
    out[14] = ratio * q1_hat
    out[15] = test_size + noise
    out[16] = train_size
    info[0] = iterations if converged else -iterations
    info[1] = residual
    info[2] = 2.220446049250313e-16 * (8 + 4 * amplification)


@njit(inline="always", **_FLAGS)
def linear_residual(a, b, x, y, right):
    """Return the residual of one row of a linear system relative to its terms."""
    size = abs(a * x) + abs(b * y) + abs(right)
    return abs(a * x + b * y - right) / size if size > 0 else 0.0


@njit(**_FLAGS)
def hand_batch(parameters, fine, medium, coarse, results, errors, info):
    """Solve every row with three rules, of which the coarser two estimate the error."""
    fw, fk, f0, f1, f2, f3, f4, f5 = (
        fine[0], fine[1], fine[2], fine[3], fine[4], fine[5], fine[6], fine[7]
    )  # fmt: skip
    mw, mk, m0, m1, m2, m3, m4, m5 = (
        medium[0], medium[1], medium[2], medium[3], medium[4], medium[5], medium[6], medium[7]
    )  # fmt: skip
    cw, ck, c0, c1, c2, c3, c4, c5 = (
        coarse[0], coarse[1], coarse[2], coarse[3], coarse[4], coarse[5], coarse[6], coarse[7]
    )  # fmt: skip
    x, y, z = np.empty(17), np.empty(17), np.empty(17)
    state, unused = np.empty(3), np.empty(3)
    for i in range(parameters.shape[0]):
        alpha, beta, ridge = parameters[i, 0], parameters[i, 1], parameters[i, 2]
        noise, c = parameters[i, 3], parameters[i, 5]
        hand_solve(
            alpha, beta, ridge, noise, c, fw, fk, f0, f1, f2, f3, f4, f5,
            c / ridge, 1 / ridge, 0.0, x, state,
        )  # fmt: skip
        hand_solve(
            alpha, beta, ridge, noise, c, mw, mk, m0, m1, m2, m3, m4, m5,
            x[2], x[3], 1e-3, y, unused,
        )  # fmt: skip
        hand_solve(
            alpha, beta, ridge, noise, c, cw, ck, c0, c1, c2, c3, c4, c5,
            x[2], x[3], 1e-3, z, unused,
        )  # fmt: skip
        last, first = 0.0, 1e-300
        for k, size in ((2, x[2]), (3, x[3]), (0, x[15]), (1, x[16])):
            scale = 1 / (size + 1e-300)
            last = max(last, abs(x[k] - y[k]) * scale)
            first = max(first, abs(y[k] - z[k]) * scale)
        gain = 10.0 * last / first
        if not gain < 1.0:
            gain = 1.0
        for k in range(17):
            size = abs(x[k])
            results[i, k] = x[k]
            errors[i, k] = gain * max(abs(x[k] - y[k]), 0.1 * last * size) + state[2] * size
        errors[i, 0] += 2e-15 * x[15]
        errors[i, 1] += 2e-15 * x[16]
        info[i, 0], info[i, 1], info[i, 2] = state[0], state[1], state[2]


# ---------------------------------------------------------------- measuring


def cpu_seconds(run: Callable[[], object]) -> float:
    """CPU time of this thread in seconds."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def wall_seconds(run: Callable[[], object]) -> float:
    """Wall time in seconds."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def random_points(n: int) -> tuple[Array, Array]:
    """Return sample complexities in [0.1, 10] and ridge penalties in [1e-3, 10]."""
    rng = np.random.default_rng(0)
    return 10 ** rng.uniform(-1, 1, n), 10 ** rng.uniform(-3, 1, n)


@njit(nogil=True)
def plain_loop(n):
    """Something for a thread to do that needs no memory."""
    total = 0.0
    for i in range(n):
        total += math.sqrt(1.0 + i)
    return total


def two_threads(run: Callable[[], object]) -> None:
    """Call `run` twice at the same time."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: run(), range(2)))


def verdict(good: bool) -> str:
    """Return what the table says."""
    return "PASS" if good else "FAIL"


def compare_with_plain_route(model: SpikedRandomFeatures, quick: bool) -> bool:
    """Print and judge claim (a)."""
    n = 20_000
    repetitions = 2 if quick else 5
    alphas, ridges = np.full(n, ALPHA), np.full(n, RIDGE)
    ours = model.solve_many(alphas, ridges, workers=1)
    seconds = min(
        cpu_seconds(lambda: model.solve_many(alphas, ridges, workers=1)) for _ in range(7)
    )
    spike = model.spike
    routes = [
        PlainRoute(spike.spike_strength, spike.bulk_variance, spike.alignment, tuned=tuned)
        for tuned in (False, True)
    ]
    found = [route.solve(ALPHA, RIDGE) for route in routes]
    plain_seconds, tuned_seconds = (
        min(cpu_seconds(functools.partial(route.solve, ALPHA, RIDGE)) for _ in range(repetitions))
        for route in routes
    )
    agreement = max(abs(ours.values[x][0] / v - 1) for plain in found for x, v in plain.items())
    exact = model.solve(ALPHA, RIDGE, digits=20)
    error = max(abs(float(values[0] / getattr(exact, x) - 1)) for x, values in ours.values.items())
    speedup = plain_seconds / (seconds / n)
    good = speedup >= SPEEDUP_TARGET and agreement <= 1e-9 and error <= 1e-12
    print(
        f"(a) one solve {1e6 * seconds / n:.2f} us, plain route {plain_seconds:.2f} s: "
        f"{speedup:.1e} times faster >= {SPEEDUP_TARGET:.0e}  {verdict(good)}\n"
        f"    the same after an analysis by hand {tuned_seconds:.2f} s: "
        f"{tuned_seconds / (seconds / n):.1e} times faster (no target)\n"
        f"    largest relative difference of 7 order parameters and the test error "
        f"{agreement:.0e} <= 1e-9;\n"
        f"    of all {len(ours.values)} results from their values to 20 digits {error:.0e} <= 1e-12"
    )
    return bool(good)


def compare_threads(model: SpikedRandomFeatures, n: int, rounds: int) -> bool:
    """Print and judge claim (b)."""
    alphas, ridges = random_points(n)
    times: dict[str, list[float]] = {"one": [], "two": [], "loop": [], "loops": []}
    plain_loop(1)
    for _ in range(rounds):
        for workers, key in ((1, "one"), (2, "two")):
            seconds = wall_seconds(
                functools.partial(model.solve_many, alphas, ridges, workers=workers)
            )
            times[key].append(seconds)
        loop = functools.partial(plain_loop, 60_000_000)
        times["loop"].append(wall_seconds(loop))
        times["loops"].append(wall_seconds(functools.partial(two_threads, loop)))
    one, two, loop_one, loop_two = (min(t) for t in times.values())
    scales, fast = one / two >= SCALING_TARGET, n / two >= RATE_TARGET
    print(
        f"(b) {n} random points, 1 thread {n / one:.2e}, 2 threads {n / two:.2e} solves/s: "
        f"ratio {one / two:.2f} >= {SCALING_TARGET}  {verdict(scales)}\n"
        f"    rate on 2 threads {n / two:.2e} >= {RATE_TARGET:.0e}  {verdict(fast)}; "
        f"plain loop: ratio {2 * loop_one / loop_two:.2f}"
    )
    return scales and fast


def compare_with_hand(model: SpikedRandomFeatures, n: int, rounds: int) -> bool:
    """Print and judge claim (c)."""
    kernel = model._kernel
    alphas, ridges = random_points(n)
    columns: dict[str, object] = {**model._parameter_values(), "alpha": alphas, "ridge": ridges}
    parameters = np.stack(
        [np.broadcast_to(np.asarray(columns[p], dtype=float), (n,)) for p in kernel.parameters],
        axis=1,
    )
    shared = saddle_point_solver._Shared(
        kernel, [model._parameter_values()[p] for p in kernel.table_parameters]
    )
    tables = shared[0]
    order = ("alpha", "beta", "ridge", "noise_variance", "spike_strength", "bulk_variance")
    if kernel.parameters[:6] != order:
        raise RuntimeError(f"the hand-written kernel expects {order}, not {kernel.parameters}")
    sides = {"generated": kernel.compiled().solve_batch, "hand-written": hand_batch}
    widths = {"generated": len(kernel.outputs), "hand-written": len(HAND_OUTPUTS)}
    found = {name: np.empty((2, n, width)) for name, width in widths.items()}
    info = np.empty((n, 3))
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for round_ in range(rounds + 1):
        for name, solve in sides.items():
            results, errors = found[name]
            elapsed = cpu_seconds(
                functools.partial(solve, parameters, *tables, results, errors, info)
            )
            if round_:
                # The first round compiles.
                seconds[name].append(elapsed)
    columns_of = [kernel.outputs.index(x) for x in HAND_OUTPUTS]
    generated, by_hand = found["generated"][0][:, columns_of], found["hand-written"][0]
    # What may vanish is compared with the size of its neighbours in the same row.
    scale = np.maximum(np.abs(by_hand), 1e-3)
    difference = float(np.max(np.abs(generated - by_hand) / scale))
    ours, theirs = (min(s) for s in seconds.values())
    good = ours <= HAND_TARGET * theirs and difference <= 1e-12
    print(
        f"(c) generated {1e6 * ours / n:.3f} us, hand-written {1e6 * theirs / n:.3f} us a row: "
        f"ratio {ours / theirs:.2f} <= {HAND_TARGET}  {verdict(good)}\n"
        f"    {len(HAND_OUTPUTS)} of {len(kernel.outputs)} outputs, "
        f"largest difference {difference:.0e} <= 1e-12"
    )
    return good


def main() -> int:
    """Measure, print the table, return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer points and repetitions")
    quick = parser.parse_args().quick
    model = SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    print("tanh / sin, step size 3, alpha0 = 20, beta = 1")
    passed = [
        compare_with_plain_route(model, quick),
        compare_threads(model, 50_000 if quick else 200_000, 3 if quick else 7),
        compare_with_hand(model, 5_000 if quick else 20_000, 9 if quick else 25),
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
