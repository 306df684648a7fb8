"""Saddle-point solver against the plain route, against one thread, and against hand-written code.

Three targets, for the tanh student and the sin teacher at step size 3 and alpha0 = 20:

(a) one solve to 1e-12, at least 1e5 times faster than lambdified integrands, scipy.integrate.quad
    with cached inner integrals, and scipy.optimize.root on the saddle-point equations;
(b) a batch of random points: two threads at least 1.8 times faster than one, and at least 1e6
    solves a second on two threads;
(c) the generated kernel takes at most 1.15 times as long as a numba kernel of the same algorithm
    written by hand (kernels.py, which measures the export to C too).

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

import numpy as np
import scipy.integrate
import scipy.optimize
import sympy as sp
from kernels import compare_with_hand, random_points, verdict
from measuring import cpu_seconds
from numba import njit
from numpy.typing import NDArray

from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures

SPEEDUP_TARGET = 1e5
SCALING_TARGET = 1.8
RATE_TARGET = 1e6
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


# ---------------------------------------------------------------- measuring


def wall_seconds(run: Callable[[], object]) -> float:
    """Wall time in seconds."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


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


def compare_with_plain_route(model: SpikedRandomFeatures, quick: bool) -> bool:
    """Print and judge claim (a)."""
    n = 20_000
    repetitions = 2 if quick else 5
    alphas, ridges = np.full(n, ALPHA), np.full(n, RIDGE)
    ours = model.solve_many(alpha=alphas, ridge=ridges, workers=1)
    seconds = min(
        cpu_seconds(lambda: model.solve_many(alpha=alphas, ridge=ridges, workers=1))
        for _ in range(7)
    )
    spike = model.spike
    routes = [
        PlainRoute(spike.spike_strength, spike.bulk_variance, spike.alignment, tuned=tuned)
        for tuned in (False, True)
    ]
    found = [route.solve(alpha=ALPHA, ridge=RIDGE) for route in routes]
    plain_seconds, tuned_seconds = (
        min(cpu_seconds(functools.partial(route.solve, ALPHA, RIDGE)) for _ in range(repetitions))
        for route in routes
    )
    agreement = max(abs(ours.values[x][0] / v - 1) for plain in found for x, v in plain.items())
    exact = model.solve(alpha=ALPHA, ridge=RIDGE, digits=20)
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
                functools.partial(model.solve_many, alpha=alphas, ridge=ridges, workers=workers)
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
