"""Systems of the literature with solutions of other origin: one tagged list for all tests.

Every problem states equations as a paper does, for giantstep, and once more by hand in NumPy: the
second statement is iterated here on a trapezoidal rule of this file's own, or has a closed form.
Tags say what a problem asks of a solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp
from scipy.optimize import brentq, root
from scipy.special import expit, log_ndtr, ndtr

import giantstep as gs
from giantstep.symbolic.gaussian import GaussianExpectation
from giantstep.symbolic.saddle_point import SaddlePointSystem

z = sp.Symbol("z", real=True)
m, h, J = sp.symbols("m h J", real=True)
q, r, v, alpha, beta, snr, noise, ridge, chi, rho = sp.symbols(
    "q r v alpha beta snr noise ridge chi rho", positive=True
)
UNIT = sp.Interval.open(0, 1)

_NODES = np.linspace(-13, 13, 6001)
_WEIGHTS = np.exp(-(_NODES**2) / 2) / math.sqrt(2 * math.pi) * (_NODES[1] - _NODES[0])


def mean(integrand: Callable[[Any], Any]) -> float:
    """Average over a standard normal variable; exact to rounding for analytic integrands."""
    return float(_WEIGHTS @ integrand(_NODES))


def iterated(step: Callable[[Any], Any], start: Any) -> np.ndarray[Any, Any]:
    """Return the fixed point of a map near `start`, to rounding."""
    first = np.atleast_1d(np.array(start, dtype=float))
    for _ in range(200):
        first = (first + np.atleast_1d(step(first))) / 2
    found = root(lambda x: np.atleast_1d(step(x)) - x, first, tol=1e-14)
    return found.x


@dataclass(frozen=True)
class Problem:
    """A system, a point, and what its solution is there.

    Attributes
    ----------
    name, source : str
    system : callable
        Returns the system.
    point : mapping
        Parameters.
    solution : callable
        Takes the parameters and returns the values of unknowns or outputs.
    tags : set of str
        "closed form", "average", "several", "conjugates", "domain", "linear", "kink", "tail".
    start : mapping
        First values, where there are several solutions.
    relative : float
        Accuracy of the other solution.
    """

    name: str
    source: str
    system: Callable[[], SaddlePointSystem]
    point: Mapping[str, float]
    solution: Callable[..., Mapping[str, float]]
    tags: frozenset[str]
    start: Mapping[str, float] = field(default_factory=dict)
    relative: float = 1e-10


PROBLEMS: list[Problem] = []


def problem(
    source: str, point: Mapping[str, float], *tags: str, start: Mapping[str, float] | None = None,
    relative: float = 1e-10,
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:  # fmt: skip
    """Add what the function returns, a system and a solution of other origin."""

    def add(make: Callable[[], Any]) -> Callable[[], Any]:
        PROBLEMS.append(
            Problem(
                make.__name__, source, lambda: make()[0], point, lambda **p: make()[1](**p),
                frozenset(tags), start or {}, relative,
            )
        )  # fmt: skip
        return make

    return add


def fixed(
    name: str, equations: Mapping[sp.Symbol, Any], *parameters: sp.Symbol, **options: Any
) -> SaddlePointSystem:
    return SaddlePointSystem.from_fixed_point(
        equations, name=name, parameters=parameters, **options
    )


def E(integrand: sp.Expr) -> sp.Expr:
    return GaussianExpectation(integrand, z)


def Phi(x: sp.Expr) -> sp.Expr:
    return sp.erfc(-x / sp.sqrt(2)) / 2


def phi(x: sp.Expr) -> sp.Expr:
    return sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)


def hazard(x: Any) -> Any:
    """φ(x)/Φ(x) in NumPy."""
    return np.exp(-(x**2) / 2 - math.log(2 * math.pi) / 2 - log_ndtr(x))


# ---------------------------------------------------------------- magnets


@problem("Weiss, J. Phys. 6, 661 (1907)", {"beta": 1.5, "h": 0.1}, "several", start={"m": 0.9})
def curie_weiss():
    def solution(beta, h):
        return {"m": brentq(lambda x: x - math.tanh(beta * (x + h)), 0.5, 1, xtol=1e-15)}

    return fixed("curie_weiss", {m: sp.tanh(beta * (m + h))}, beta, h), solution


@problem("Wu, Rev. Mod. Phys. 54, 235 (1982)", {"beta": 4 * math.log(2)}, "closed form", "several",
         start={"m": 0.6})  # fmt: skip
def potts_three_states():
    # Where the phases exchange, β = 2(q - 1) log(q - 1)/(q - 2), m is (q - 2)/(q - 1).
    value = (sp.exp(beta * m) - 1) / (sp.exp(beta * m) + 2)
    return fixed("potts", {m: value}, beta), lambda beta: {"m": 0.5}


@problem("Blume, Phys. Rev. 141, 517 (1966); Capel, Physica 32, 966 (1966)",
         {"beta": 3.5, "h": 0.46}, "several", start={"m": 0.9})  # fmt: skip
def blume_capel():
    def solution(beta, h):
        def gap(x):
            return x - 2 * math.sinh(beta * x) / (2 * math.cosh(beta * x) + math.exp(beta * h))

        return {"m": brentq(gap, 0.6, 1, xtol=1e-15)}

    value = 2 * sp.sinh(beta * m) / (2 * sp.cosh(beta * m) + sp.exp(beta * h))
    return fixed("blume_capel", {m: value}, beta, h), solution


@problem("Derrida, Phys. Rev. Lett. 45, 79 (1980), without disorder", {"beta": 1.0}, "several",
         start={"m": 0.9})  # fmt: skip
def three_spin_magnet():
    def solution(beta):
        return {"m": brentq(lambda x: x - math.tanh(3 * beta * x**2), 0.8, 1, xtol=1e-15)}

    return fixed("three_spin_magnet", {m: sp.tanh(3 * beta * m**2)}, beta), solution


@problem("Schneider, Pytte, Phys. Rev. B 15, 1519 (1977)", {"beta": 2.0, "v": 0.3}, "average",
         start={"m": 0.8})  # fmt: skip
def random_field_magnet():
    def solution(beta, v):
        def step(x):
            return mean(lambda t: np.tanh(beta * (x + math.sqrt(v) * t)))

        return {"m": iterated(step, 0.8)[0]}

    value = E(sp.tanh(beta * (m + sp.sqrt(v) * z)))
    return fixed("random_field_magnet", {m: value}, beta, v), solution


# ---------------------------------------------------------------- spin glasses


@problem("Sherrington, Kirkpatrick, Phys. Rev. Lett. 35, 1792 (1975)", {"beta": 1.7, "h": 0.3},
         "average")  # fmt: skip
def sherrington_kirkpatrick():
    def solution(beta, h):
        def step(x):
            return mean(lambda t: np.tanh(beta * (np.sqrt(x) * t + h)) ** 2)

        return {"q": iterated(step, 0.5)[0]}

    value = E(sp.tanh(beta * (sp.sqrt(q) * z + h)) ** 2)
    return fixed("sherrington_kirkpatrick", {q: value}, beta, h), solution


@problem("Sherrington, Kirkpatrick, Phys. Rev. Lett. 35, 1792 (1975)", {"beta": 2.0, "J": 1.5},
         "average", start={"m": 0.8, "q": 0.7})  # fmt: skip
def ferromagnetic_bias():
    def solution(beta, J):
        def step(x):
            def state(t):
                return np.tanh(beta * (math.sqrt(abs(x[1])) * t + J * x[0]))

            return np.array([mean(state), mean(lambda t: state(t) ** 2)])

        found = iterated(step, [0.8, 0.7])
        return {"m": found[0], "q": found[1]}

    state = sp.tanh(beta * (sp.sqrt(q) * z + J * m))
    return fixed("ferromagnetic_bias", {m: E(state), q: E(state**2)}, beta, J), solution


@problem("Ghatak, Sherrington, J. Phys. C 10, 3149 (1977)", {"beta": 3.0, "h": 0.2}, "average")
def ghatak_sherrington():
    # Spins -1, 0, 1 in a crystal field h; r is the mean of the squares.
    def solution(beta, h):
        def step(x):
            p, s = x
            weight = np.exp(beta**2 * (s - p) / 2 - beta * h)

            def both(t):
                field = beta * math.sqrt(p) * t
                total = 1 + 2 * weight * np.cosh(field)
                return 2 * weight * np.sinh(field) / total, 2 * weight * np.cosh(field) / total

            return np.array([mean(lambda t: both(t)[0] ** 2), mean(lambda t: both(t)[1])])

        found = iterated(step, [0.3, 0.6])
        return {"q": found[0], "r": found[1]}

    arm = 2 * sp.exp(beta**2 * (r - q) / 2 - beta * h)
    along = beta * sp.sqrt(q) * z
    total = 1 + arm * sp.cosh(along)
    equations = {q: E((arm * sp.sinh(along) / total) ** 2), r: E(arm * sp.cosh(along) / total)}
    return fixed("ghatak_sherrington", equations, beta, h), solution


@problem("Crisanti, Sommers, Z. Phys. B 87, 341 (1992)", {"beta": 1.2, "h": 0.5}, "closed form")
def spherical_three_spins():
    # h² + 3 q²/2 = q/(β²(1 - q)²), a quartic.
    def solution(beta, h):
        def gap(x):
            return beta**2 * (h**2 + 1.5 * x**2) * (1 - x) ** 2 - x

        return {"q": brentq(gap, 0, 0.3, xtol=1e-15)}

    equation = sp.Eq(beta**2 * (h**2 + sp.Rational(3, 2) * q**2) * (1 - q) ** 2, q)
    return fixed(
        "spherical_three_spins", {q: equation}, beta, h, domains={q: UNIT},
        start={q: sp.Rational(1, 10)},
    ), solution  # fmt: skip


@problem("Amit, Gutfreund, Sompolinsky, Phys. Rev. Lett. 55, 1530 (1985)",
         {"alpha": 0.05, "beta": 5.0}, "average", "several",
         start={"m": 0.98, "q": 0.98})  # fmt: skip
def hopfield():
    def solution(alpha, beta):
        def step(x):
            overlap, glass = x
            load = alpha * glass / (1 - beta * (1 - glass)) ** 2

            def state(t):
                return np.tanh(beta * (overlap + math.sqrt(load) * t))

            return np.array([mean(state), mean(lambda t: state(t) ** 2)])

        found = iterated(step, [0.98, 0.98])
        return {"m": found[0], "q": found[1]}

    state = sp.tanh(beta * (m + sp.sqrt(alpha * r) * z))
    equations = {m: E(state), q: E(state**2), r: q / (1 - beta * (1 - q)) ** 2}
    return fixed("hopfield", equations, alpha, beta), solution


# ---------------------------------------------------------------- low-rank estimation


@problem("Deshpande, Abbe, Montanari, arXiv 1507.08685", {"snr": 2.0}, "average")
def signs_in_a_matrix():
    def solution(snr):
        def step(x):
            return mean(lambda t: np.tanh(snr * x + np.sqrt(snr * x) * t))

        return {"q": iterated(step, 0.5)[0]}

    value = E(sp.tanh(snr * q + sp.sqrt(snr * q) * z))
    return fixed("signs_in_a_matrix", {q: value}, snr), solution


@problem("Lelarge, Miolane, arXiv 1611.03888", {"snr": 2.5}, "closed form")
def gaussian_spike_in_a_matrix():
    value = snr * q / (1 + snr * q)
    return fixed("gaussian_spike", {q: value}, snr), lambda snr: {"q": 1 - 1 / snr}


@problem("Lesieur, Krzakala, Zdeborová, arXiv 1701.00858", {"snr": 20.0, "rho": 0.3}, "average")
def sparse_signs_in_a_matrix():
    # Entries ±1 with probability rho/2 each: the posterior mean of one at signal A = snr q.
    def posterior(x, a, rho, exp, sinh, cosh):
        weight = rho * exp(-a / 2)
        return weight * sinh(x) / (1 - rho + weight * cosh(x))

    def solution(snr, rho):
        def step(x):
            a = snr * x

            def mean_of(t, present):
                field = present * a + np.sqrt(a) * t
                return posterior(field, a, rho, np.exp, np.sinh, np.cosh)

            return rho * mean(lambda t: mean_of(t, 1))

        return {"q": iterated(step, 0.2)[0]}

    a = snr * q
    value = rho * E(posterior(a + sp.sqrt(a) * z, a, rho, sp.exp, sp.sinh, sp.cosh))
    return fixed("sparse_signs", {q: value}, snr, rho), solution


@problem("Lesieur, Miolane, Lelarge, Krzakala, Zdeborová, arXiv 1701.08010", {"snr": 3.5},
         "average", "several", start={"q": 0.9})  # fmt: skip
def signs_in_a_tensor():
    def solution(snr):
        def step(x):
            return mean(lambda t: np.tanh(snr * x**2 + math.sqrt(snr) * x * t))

        return {"q": iterated(step, 0.9)[0]}

    value = E(sp.tanh(snr * q**2 + sp.sqrt(snr) * q * z))
    return fixed("signs_in_a_tensor", {q: value}, snr), solution


@problem("Miolane, arXiv 1702.00473", {"snr": 2.0, "alpha": 1.5},
         "closed form")  # fmt: skip
def gaussian_spike_in_data():
    # u in n directions, v in αn: both overlaps follow from each other.
    p = sp.Symbol("p", positive=True)
    equations = {q: alpha * snr * p / (1 + alpha * snr * p), p: snr * q / (1 + snr * q)}

    def solution(snr, alpha):
        left = (alpha * snr**2 - 1) / (snr * (1 + alpha * snr))
        return {"q": left, "p": snr * left / (1 + snr * left)}

    return fixed("gaussian_spike_in_data", equations, snr, alpha), solution


# ---------------------------------------------------------------- perceptrons and linear models


@problem("Györgyi, Phys. Rev. A 41, 7097 (1990)", {"alpha": 1.1}, "average", "domain", "tail")
def binary_perceptron():
    def solution(alpha):
        def step(x):
            t = math.sqrt(x / (1 - x))
            other = 2 * alpha / (1 - x) * mean(lambda s: hazard(t * s) ** 2 * ndtr(t * s))
            return mean(lambda s: np.tanh(math.sqrt(other) * s + other))

        return {"q": iterated(lambda x: step(float(x[0])), 0.5)[0]}

    t = z * sp.sqrt(q) / sp.sqrt(1 - q)
    equations = {
        q: E(sp.tanh(sp.sqrt(r) * z + r)),
        r: 2 * alpha / (1 - q) * E(phi(t) ** 2 / Phi(t)),
    }
    return fixed("binary_perceptron", equations, alpha, domains={q: UNIT}), solution


@problem("Opper, Haussler, Phys. Rev. Lett. 66, 2677 (1991)", {"alpha": 2.0}, "average", "domain",
         "tail")  # fmt: skip
def spherical_perceptron():
    def solution(alpha):
        def step(x):
            t = math.sqrt(x / (1 - x))
            other = 2 * alpha / (1 - x) * mean(lambda s: hazard(t * s) ** 2 * ndtr(t * s))
            return other / (1 + other)

        return {"q": iterated(lambda x: step(float(x[0])), 0.5)[0]}

    t = z * sp.sqrt(q) / sp.sqrt(1 - q)
    equations = {q: r / (1 + r), r: 2 * alpha / (1 - q) * E(phi(t) ** 2 / Phi(t))}
    return fixed("spherical_perceptron", equations, alpha, domains={q: UNIT}), solution


@problem("Gardner, J. Phys. A 21, 257 (1988)", {"alpha": 1.0, "h": 0.2}, "average", "domain",
         "tail")  # fmt: skip
def gardner_volume():
    # q/(1 - q) = α E[(φ/Φ)²] at (√q z - κ)/√(1 - q); the margin κ is h.
    def solution(alpha, h):
        def step(x):
            y = float(x[0])
            found = alpha * mean(lambda s: hazard((math.sqrt(y) * s - h) / math.sqrt(1 - y)) ** 2)
            return found / (1 + found)

        return {"q": iterated(step, 0.4)[0]}

    t = (sp.sqrt(q) * z - h) / sp.sqrt(1 - q)
    equation = {q: r / (1 + r), r: alpha * E((phi(t) / Phi(t)) ** 2)}
    return fixed("gardner_volume", equation, alpha, h, domains={q: UNIT}), solution


@problem("Krauth, Mézard, J. Physique 50, 3057 (1989)", {"alpha": 0.6}, "average", "domain",
         "tail")  # fmt: skip
def binary_storage():
    def solution(alpha):
        def step(x):
            y = float(x[0])
            other = alpha / (1 - y) * mean(lambda s: hazard(math.sqrt(y / (1 - y)) * s) ** 2)
            return mean(lambda s: np.tanh(math.sqrt(other) * s) ** 2)

        return {"q": iterated(step, 0.4)[0]}

    t = z * sp.sqrt(q) / sp.sqrt(1 - q)
    equations = {
        q: E(sp.tanh(sp.sqrt(r) * z) ** 2),
        r: alpha / (1 - q) * E((phi(t) / Phi(t)) ** 2),
    }
    return fixed("binary_storage", equations, alpha, domains={q: UNIT}), solution


@problem(
    "Guo, Verdú, IEEE Trans. Inf. Theory 51, 1983 (2005)",
    {"alpha": 2.0, "noise": 0.5},
    "closed form",
)
def bayesian_regression():
    # v is the mean squared error for a Gaussian prior.
    def solution(alpha, noise):
        half = (noise + alpha - 1) / 2
        return {"v": -half + math.sqrt(half**2 + noise)}

    value = 1 / (1 + alpha / (noise + v))
    return fixed("bayesian_regression", {v: value}, alpha, noise), solution


@problem("Tanaka, IEEE Trans. Inf. Theory 48, 2888 (2002)", {"alpha": 1.2, "noise": 0.2},
         "average")  # fmt: skip
def multiuser_detection():
    def solution(alpha, noise):
        def step(x):
            a = alpha / (noise + 1 - float(x[0]))
            return mean(lambda t: np.tanh(a + math.sqrt(a) * t))

        return {"q": iterated(step, 0.7)[0]}

    equations = {q: E(sp.tanh(r + sp.sqrt(r) * z)), r: alpha / (noise + 1 - q)}
    return fixed("multiuser_detection", equations, alpha, noise), solution


@problem("Hastie, Montanari, Rosset, Tibshirani, arXiv 1903.08560",
         {"alpha": 2.0, "ridge": 0.3, "noise": 0.5}, "closed form", "linear")  # fmt: skip
def ridge_regression():
    # V = 1/(λ + α/(1 + V)); the risk is (λ²V² + noise (…)), a linear equation for q.
    def solution(alpha, ridge, noise):
        b = ridge + alpha - 1
        found = (-b + math.sqrt(b**2 + 4 * ridge)) / (2 * ridge)
        part = alpha * found**2 / (1 + found) ** 2
        return {"v": found, "q": ((ridge * found) ** 2 + part * noise) / (1 - part)}

    equations = {
        v: 1 / (ridge + alpha / (1 + v)),
        q: (ridge * v) ** 2 + alpha * v**2 * (q + noise) / (1 + v) ** 2,
    }
    return fixed("ridge_regression", equations, alpha, ridge, noise), solution


@problem("Bayati, Montanari, arXiv 1008.2581", {"alpha": 0.7, "noise": 0.2, "rho": 0.15, "h": 1.3},
         "average", "kink")  # fmt: skip
def lasso():
    # State evolution: τ² = σ² + E(η(X + τz; hτ) - X)²/α for X = ±1 with probability rho, else 0.
    def solution(alpha, noise, rho, h):
        def risk(x, tau):
            # Moments of the soft threshold in closed form.
            def upper(b):  # E (z - b)²₊ and E (z - b)₊
                density = math.exp(-(b**2) / 2) / math.sqrt(2 * math.pi)
                tail = ndtr(-b)
                return (1 + b**2) * tail - b * density, density - b * tail

            up, down = upper(h - x / tau), upper(h + x / tau)
            first = tau * (up[1] - down[1])
            second = tau**2 * (up[0] + down[0])
            return second - 2 * x * first + x**2

        def step(y):
            tau = math.sqrt(float(y[0]))
            return noise + ((1 - rho) * risk(0.0, tau) + rho * risk(1.0, tau)) / alpha

        return {"v": iterated(step, 0.5)[0]}

    tau = sp.sqrt(v)

    def error(x):
        soft = sp.Max(x + tau * z - h * tau, 0) - sp.Max(-x - tau * z - h * tau, 0)
        return E((soft - x) ** 2)

    value = noise + ((1 - rho) * error(0) + rho * error(1)) / alpha
    return fixed("lasso", {v: value}, alpha, noise, rho, h), solution


@problem("Krzakala, Mézard, Sausset, Sun, Zdeborová, arXiv 1206.3953",
         {"alpha": 0.7, "noise": 0.05, "rho": 0.3}, "average")  # fmt: skip
def compressed_sensing():
    # Bernoulli–Gauss prior; r is the precision of the effective channel.
    def gain(t, rho, exp, scale, precision, sqrt):
        """Mean of the squared posterior mean of a channel y = x + w/√precision, y = scale t."""
        y = scale * t
        slab = rho * sqrt(1 / (1 + precision)) * exp(y**2 * precision**2 / (2 * (1 + precision)))
        return (slab / (1 - rho + slab) * precision * y / (1 + precision)) ** 2

    def solution(alpha, noise, rho):
        def step(x):
            p = alpha / (noise + float(x[0]))
            spike = mean(lambda t: gain(t, rho, np.exp, 1 / math.sqrt(p), p, math.sqrt))
            slab = mean(lambda t: gain(t, rho, np.exp, math.sqrt(1 + 1 / p), p, math.sqrt))
            return rho - (1 - rho) * spike - rho * slab

        return {"v": iterated(step, 0.1)[0]}

    spike = E(gain(z, rho, sp.exp, 1 / sp.sqrt(r), r, sp.sqrt))
    slab = E(gain(z, rho, sp.exp, sp.sqrt(1 + 1 / r), r, sp.sqrt))
    equations = {v: rho - (1 - rho) * spike - rho * slab, r: alpha / (noise + v)}
    return fixed("compressed_sensing", equations, alpha, noise, rho), solution


@problem("Barbier, Krzakala, Macris, Miolane, Zdeborová, arXiv 1708.03395",
         {"alpha": 3.0, "noise": 0.4}, "average", "domain", "tail")  # fmt: skip
def probit_labels():
    # Signs of a Gaussian field with noise of variance `noise`, Bayes-optimal, Gaussian weights.
    def solution(alpha, noise):
        def step(x):
            y = float(x[0])
            width = noise + 1 - y
            other = (
                2
                * alpha
                / width
                * mean(
                    lambda s: hazard(math.sqrt(y / width) * s) ** 2 * ndtr(math.sqrt(y / width) * s)
                )
            )
            return other / (1 + other)

        return {"q": iterated(step, 0.5)[0]}

    width = noise + 1 - q
    t = z * sp.sqrt(q) / sp.sqrt(width)
    equations = {q: r / (1 + r), r: 2 * alpha / width * E(phi(t) ** 2 / Phi(t))}
    return fixed("probit_labels", equations, alpha, noise, domains={q: UNIT}), solution


@problem("Lesieur, De Bacco, Banks, Krzakala, Moore, Zdeborová, arXiv 1610.02918",
         {"alpha": 2.0, "snr": 1.5}, "average")  # fmt: skip
def clusters_of_two():
    # Two Gaussian clusters in high dimension: labels ±1, centres with a Gaussian prior.
    p = sp.Symbol("p", positive=True)

    def solution(alpha, snr):
        def step(x):
            centre = alpha * snr * float(x[0]) / (1 + alpha * snr * float(x[0]))
            a = snr * centre
            return mean(lambda t: np.tanh(a + math.sqrt(a) * t))

        return {"q": iterated(step, 0.7)[0]}

    equations = {
        q: E(sp.tanh(snr * p + sp.sqrt(snr * p) * z)),
        p: alpha * snr * q / (1 + alpha * snr * q),
    }
    return fixed("clusters_of_two", equations, alpha, snr), solution


@problem("Marchenko, Pastur, Math. USSR Sb. 1, 457 (1967)", {"alpha": 0.6, "ridge": 0.01},
         "closed form")  # fmt: skip
def marchenko_pastur():
    # The Stieltjes transform at -λ of X Xᵀ/n with p/n = α.
    def solution(alpha, ridge):
        b = ridge + 1 - alpha
        return {"v": (-b + math.sqrt(b**2 + 4 * alpha * ridge)) / (2 * alpha * ridge)}

    return fixed("marchenko_pastur", {v: 1 / (ridge + 1 / (1 + alpha * v))}, alpha, ridge), solution


@problem("Silverstein, Bai, J. Multivar. Anal. 54, 175 (1995)", {"alpha": 0.5, "ridge": 0.2},
         "closed form")  # fmt: skip
def two_atoms_of_covariance():
    # Population eigenvalues 1 and 4 in equal parts: a cubic.
    def solution(alpha, ridge):
        def gap(x):
            return x * (ridge + alpha * (0.5 / (1 + x) + 2 / (1 + 4 * x))) - 1

        return {"v": brentq(gap, 1e-6, 100, xtol=1e-16, rtol=1e-15)}

    half = sp.Rational(1, 2)
    value = 1 / (ridge + alpha * (half / (1 + v) + 2 / (1 + 4 * v)))
    return fixed("two_atoms", {v: value}, alpha, ridge), solution


@problem("Sompolinsky, Crisanti, Sommers, Phys. Rev. Lett. 61, 259 (1988)", {"snr": 1.4, "h": 0.2},
         "average")  # fmt: skip
def random_network_with_bias():
    # The static variance of a random network of tanh units with random biases.
    def solution(snr, h):
        def step(x):
            return snr**2 * mean(lambda t: np.tanh(math.sqrt(float(x[0])) * t) ** 2) + h**2

        return {"v": iterated(step, 0.8)[0]}

    value = snr**2 * E(sp.tanh(sp.sqrt(v) * z) ** 2) + h**2
    return fixed("random_network", {v: value}, snr, h), solution


@problem("Poole, Lahiri, Raghu, Sohl-Dickstein, Ganguli, arXiv 1606.05340", {"v": 2.3, "h": 0.3},
         "average")  # fmt: skip
def depth_of_a_sigmoidal_network():
    # Fixed point of the length map of a deep network with logistic units.
    def solution(v, h):
        def step(x):
            return v * mean(lambda t: expit(math.sqrt(float(x[0])) * t) ** 2) + h**2

        return {"q": iterated(step, 0.7)[0]}

    value = v * E((1 / (1 + sp.exp(-sp.sqrt(q) * z))) ** 2) + h**2
    return fixed("sigmoidal_network", {q: value}, v, h), solution


# Of averages inside functions, for each value of an outer variable.
_LINE = np.linspace(-11, 11, 353)
_LAW = np.exp(-(_LINE**2) / 2) / math.sqrt(2 * math.pi) * (_LINE[1] - _LINE[0])
_OUTER, _INNER = _LINE[:, None], _LINE[None, :]
s = sp.Symbol("s", real=True)


def tilted(exponent: Any, *values: Any) -> tuple[Any, ...]:
    """Return log E_s exp(exponent), and averages with that density, for each outer node."""
    highest = exponent.max(axis=1, keepdims=True)
    density = _LAW * np.exp(exponent - highest)
    mass = density.sum(axis=1)
    return np.log(mass) + highest[:, 0], *((density * x).sum(axis=1) / mass for x in values)


def one_step(q: Any, beta: float, x: float, h: float) -> tuple[Any, Any]:
    """Return what one step of replica-symmetry breaking maps (q_0, q_1) to, and E log E cosh^x."""
    field = beta * (h + math.sqrt(q[0]) * _OUTER + math.sqrt(max(q[1] - q[0], 0.0)) * _INNER)
    exponent = x * np.logaddexp(field, -field)
    log_mass, first, second = tilted(exponent, np.tanh(field), np.tanh(field) ** 2)
    return np.array([_LAW @ first**2, _LAW @ second]), _LAW @ log_mass - x * math.log(2)


def cavity(x: sp.Symbol, q_0: sp.Expr, q_1: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Return the field of the Sherrington–Kirkpatrick model with one step, and E_s cosh^x."""
    field = beta * (h + sp.sqrt(q_0) * z + sp.sqrt(q_1 - q_0) * s)
    return field, GaussianExpectation(sp.cosh(field) ** x, s)


@problem("Parisi, J. Phys. A 13, 1101 (1980)", {"beta": 1.5, "x": 0.4, "h": 0.1},
         "average", "nested", "several")  # fmt: skip
def one_step_of_replica_symmetry_breaking():
    # Sherrington–Kirkpatrick at a fixed Parisi parameter x.
    x, q_0, q_1 = sp.symbols("x q_0 q_1", positive=True)
    field, mass = cavity(x, q_0, q_1)
    first, second = (
        GaussianExpectation(sp.cosh(field) ** x * sp.tanh(field) ** k, s) / mass for k in (1, 2)
    )

    def solution(beta, x, h):
        found = iterated(lambda q: one_step(q, beta, x, h)[0], [0.35, 0.6])
        return dict(zip(("q_0", "q_1"), found, strict=True))

    start = {q_0: sp.Rational(1, 4), q_1: sp.Rational(3, 4)}
    return fixed("one_step", {q_0: E(first**2), q_1: E(second)}, beta, x, h, start=start), solution


@problem("Parisi, J. Phys. A 13, 1101 (1980)", {"beta": 1.4, "x": 0.3, "h": 0.05},
         "average", "nested", "several")  # fmt: skip
def one_step_from_its_free_energy():
    x, q_0, q_1 = sp.symbols("x q_0 q_1", positive=True)
    _, mass = cavity(x, q_0, q_1)
    quadratic = beta**2 / 4 * (1 - 2 * q_1 + (1 - x) * q_1**2 + x * q_0**2)
    free_energy = quadratic + sp.log(2) + E(sp.log(mass)) / x

    def solution(beta, x, h):
        found = iterated(lambda q: one_step(q, beta, x, h)[0], [0.5, 0.9])
        low, high = found
        energy = beta**2 / 4 * (1 - 2 * high + (1 - x) * high**2 + x * low**2) + math.log(2)
        energy += one_step(found, beta, x, h)[1] / x
        return {"q_0": low, "q_1": high, "free_energy": energy}

    system = SaddlePointSystem.from_free_energy(
        gs.FreeEnergy(free_energy, (q_0, q_1), (), (beta, x, h)),
        name="one_step_free_energy", outputs={"free_energy": free_energy},
        start={q_0: sp.Rational(1, 4), q_1: sp.Rational(3, 4)},
    )  # fmt: skip
    return system, solution


@problem("Barbier, Krzakala, Macris, Miolane, Zdeborová, arXiv 1708.03395", {"alpha": 3.0},
         "average", "domain", "nested")  # fmt: skip
def logistic_labels():
    # Labels of a logistic teacher, Bayes-optimal, Gaussian weights: no closed form of the channel.
    def solution(alpha):
        def step(x):
            overlap = float(x[0])
            field = math.sqrt(overlap) * _OUTER + math.sqrt(1 - overlap) * _INNER
            mass, slope = expit(field) @ _LAW, (expit(field) * expit(-field)) @ _LAW
            other = 2 * alpha * _LAW @ (slope**2 / mass)
            return other / (1 + other)

        return {"q": iterated(step, 0.4)[0]}

    field = sp.sqrt(q) * z + sp.sqrt(1 - q) * s
    mass = GaussianExpectation(1 / (1 + sp.exp(-field)), s)
    slope = GaussianExpectation(sp.exp(-field) / (1 + sp.exp(-field)) ** 2, s)
    equations = {q: r / (1 + r), r: 2 * alpha * E(slope**2 / mass)}
    return fixed("logistic_labels", equations, alpha, domains={q: UNIT}), solution


@problem("Lesieur, Krzakala, Zdeborová, arXiv 1701.00858", {"snr": 4.0}, "average", "nested")
def soft_signs_in_a_matrix():
    # A spike with entries tanh 2u, u normal: the posterior mean is a quotient of averages.
    def solution(snr):
        prior = np.tanh(2 * _INNER)

        def step(x):
            precision = snr * float(x[0])
            exponent = math.sqrt(precision) * _OUTER * prior - precision * prior**2 / 2
            log_evidence, posterior_mean = tilted(exponent, prior)
            return _LAW @ (np.exp(log_evidence) * posterior_mean**2)

        return {"q": iterated(step, 0.6)[0]}

    prior = sp.tanh(2 * s)
    density = sp.exp(sp.sqrt(snr * q) * z * prior - snr * q * prior**2 / 2)
    evidence = GaussianExpectation(density, s)
    value = E(GaussianExpectation(prior * density, s) ** 2 / evidence)
    return fixed("soft_signs", {q: value}, snr), solution


def lowered(given: Problem) -> gs.Kernel:
    """Return the kernel of a problem."""
    return gs.lower(given.system())
