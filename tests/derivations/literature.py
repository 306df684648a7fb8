"""Systems of the literature with solutions of other origin: one tagged list for all tests.

Every problem states equations as a paper does, for giantstep, and once more by hand in NumPy: the
second statement is iterated here on a trapezoidal rule of this file's own, or has a closed form.
So do its transitions: where the control parameter is a function of the order parameter, spinodals
are its extrema. Tags say what a problem asks of a solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp
from scipy.optimize import brentq, minimize_scalar, root
from scipy.special import erf, expit, log_ndtr, ndtr, owens_t, xlogy

import giantstep as gs
from giantstep.symbolic.expressions.functions import OwenT
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

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


def extrema(function: Callable[[float], float], low: float, high: float) -> list[float]:
    """Return the values of a function at its extrema, increasing; each to rounding."""
    x = np.linspace(low, high, 120)
    y = np.array([function(t) for t in x])
    found = []
    for k in range(1, len(x) - 1):
        sign = np.sign(y[k] - y[k - 1])
        if sign == np.sign(y[k] - y[k + 1]):
            best = minimize_scalar(
                lambda t, s=sign: -s * function(t), bounds=(x[k - 1], x[k + 1]), method="bounded",
                options={"xatol": 1e-9},
            )  # fmt: skip
            found.append(float(-sign * best.fun))
    return sorted(found)


@dataclass(frozen=True)
class Over:
    """All solutions of a problem over one of its parameters.

    Attributes
    ----------
    parameter : str
    within : (float, float)
    counts : mapping from float to int
        How many solutions there are at values, those at which an overlap vanishes included.
    bounds : mapping
        Where unknowns are.
    fixed : mapping
        The other parameters; by default those of the point.
    zeros : str
        An output whose zeros are wanted.
    special : callable
        Takes the other parameters and returns {kind: values}, of other origin; what it does not
        name is not there. Without it there is nothing.
    relative : float
        Accuracy of these.
    """

    parameter: str
    within: tuple[float, float]
    counts: Mapping[float, int]
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fixed: Mapping[str, float] | None = None
    zeros: str = ""
    special: Callable[..., Mapping[str, list[float]]] | None = None
    relative: float = 1e-11


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
    over : Over or None
        Its branches; None where a diagram takes minutes.
    """

    name: str
    source: str
    system: Callable[[], SaddlePointSystem]
    point: Mapping[str, float]
    solution: Callable[..., Mapping[str, float]]
    tags: frozenset[str]
    over: Over | None
    start: Mapping[str, float] = field(default_factory=dict)
    relative: float = 1e-10

    @property
    def others(self) -> dict[str, float]:
        """The parameters that are fixed along its branches."""
        over = self.over
        assert over is not None
        given = self.point if over.fixed is None else over.fixed
        return {name: x for name, x in given.items() if name != over.parameter}


PROBLEMS: list[Problem] = []


def problem(
    source: str, point: Mapping[str, float], *tags: str, over: Over | None = None,
    start: Mapping[str, float] | None = None, relative: float = 1e-10,
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:  # fmt: skip
    """Add what the function returns, a system and a solution of other origin."""

    def add(make: Callable[[], Any]) -> Callable[[], Any]:
        PROBLEMS.append(
            Problem(
                make.__name__, source, lambda: make()[0], point, lambda **p: make()[1](**p),
                frozenset(tags), over, start or {}, relative,
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


UNIT_BOX = {"q": (0, 1)}


def overlap_of_signs(a: float) -> float:
    """Mean of tanh(a + √a z): the overlap of a sign with its posterior mean at signal a."""
    return mean(lambda t: np.tanh(a + math.sqrt(a) * t))


def log_cosh(x: Any) -> Any:
    return np.logaddexp(x, -x) - math.log(2)


def hazard(x: Any) -> Any:
    """φ(x)/Φ(x) in NumPy."""
    return np.exp(-(x**2) / 2 - math.log(2 * math.pi) / 2 - log_ndtr(x))


# ---------------------------------------------------------------- magnets


def _curie_weiss(beta):
    # β(1 − m²) = 1 at a fold; at h = 0 the two phases are mirror images.
    top = math.sqrt(1 - 1 / beta)
    field_there = math.atanh(top) / beta - top
    return {"spinodal": [field_there, -field_there], "first-order": [0.0]}


@problem(
    "Weiss, J. Phys. 6, 661 (1907)", {"beta": 1.5, "h": 0.1}, "several", start={"m": 0.9},
    over=Over("h", (-0.5, 0.5), {-0.3: 1, 0.05: 3}, {"m": (-1, 1)}, special=_curie_weiss),
)  # fmt: skip
def curie_weiss():
    def solution(beta, h):
        return {"m": brentq(lambda x: x - math.tanh(beta * (x + h)), 0.5, 1, xtol=1e-15)}

    local = beta * (m + h)
    energy = m**2 / 2 - sp.log(2 * sp.cosh(local)) / beta
    return fixed(
        "curie_weiss", {m: sp.tanh(local)}, beta, h, outputs={"free_energy": energy}
    ), solution


def _potts():
    # Ordered solutions are at β = log((1 + 2m)/(1 − m))/m, which is 3 at m = 0.
    inverse = extrema(lambda x: math.log((1 + 2 * x) / (1 - x)) / x, 0.05, 0.95)
    return {"spinodal": inverse, "first-order": [4 * math.log(2)], "instability": [3.0]}


@problem(
    "Wu, Rev. Mod. Phys. 54, 235 (1982)", {"beta": 4 * math.log(2)}, "closed form", "several",
    start={"m": 0.6},
    over=Over("beta", (2, 4), {2.5: 1, 2.8: 3, 3.5: 2}, {"m": (0, 1)}, special=_potts),
)  # fmt: skip
def potts_three_states():
    # Where the phases exchange, β = 2(q - 1) log(q - 1)/(q - 2), m is (q - 2)/(q - 1).
    value = (sp.exp(beta * m) - 1) / (sp.exp(beta * m) + 2)
    energy = (
        (1 + 2 * m) * sp.log(1 + 2 * m) / 3
        + 2 * (1 - m) * sp.log(1 - m) / 3
        - beta * m**2 / 3
    )  # fmt: skip
    return fixed("potts", {m: value}, beta, outputs={"free_energy": energy}), lambda beta: {
        "m": 0.5
    }


def _blume_capel(beta):
    def crystal_field(x):
        return math.log(2 * math.sinh(beta * x) / x - 2 * math.cosh(beta * x)) / beta

    def gap(x):
        weight = 2 * math.exp(-beta * crystal_field(x))
        total = math.log1p(weight * math.cosh(beta * x)) - math.log1p(weight)
        return x**2 / 2 - total / beta

    exchange = crystal_field(brentq(gap, 0.5, 0.6, xtol=1e-15))
    (fold,) = extrema(crystal_field, 0.1, 0.85)
    # Beyond β = 3 what leaves m = 0 is unstable: the tricritical point is there.
    lost = math.log(2 * (beta - 1)) / beta
    return {"spinodal": [fold] * 2, "first-order": [exchange] * 2, "instability": [lost]}


@problem(
    "Blume, Phys. Rev. 141, 517 (1966); Capel, Physica 32, 966 (1966)",
    {"beta": 3.5, "h": 0.46}, "several", start={"m": 0.9},
    over=Over(
        "h", (0.3, 0.7), {0.4: 3, 0.465: 5, 0.6: 1}, {"m": (-1, 1)}, special=_blume_capel
    ),
)  # fmt: skip
def blume_capel():
    def solution(beta, h):
        def gap(x):
            return x - 2 * math.sinh(beta * x) / (2 * math.cosh(beta * x) + math.exp(beta * h))

        return {"m": brentq(gap, 0.6, 1, xtol=1e-15)}

    value = 2 * sp.sinh(beta * m) / (2 * sp.cosh(beta * m) + sp.exp(beta * h))
    energy = m**2 / 2 - sp.log(1 + 2 * sp.exp(-beta * h) * sp.cosh(beta * m)) / beta
    return fixed("blume_capel", {m: value}, beta, h, outputs={"free_energy": energy}), solution


@problem(
    "Blume, Phys. Rev. 141, 517 (1966); Capel, Physica 32, 966 (1966): a continuous transition",
    {"beta": 2.5, "h": 0.3}, "several", start={"m": 0.9},
    over=Over(
        "h", (0.3, 0.7), {0.4: 3, 0.5: 1}, {"m": (-1, 1)},
        special=lambda beta: {"second-order": [math.log(2 * (beta - 1)) / beta]},
    ),
)  # fmt: skip
def blume_capel_above_the_tricritical_point():
    return blume_capel()


def _three_spin_magnet():
    def inverse(x):
        return math.atanh(x) / (3 * x**2)

    def gap(x):
        return 2 * x**3 * inverse(x) - log_cosh(math.atanh(x))

    exchange = inverse(brentq(gap, 0.8, 0.999, xtol=1e-15))
    return {"spinodal": extrema(inverse, 0.1, 0.999), "first-order": [exchange]}


@problem(
    "Derrida, Phys. Rev. Lett. 45, 79 (1980), without disorder", {"beta": 1.0}, "several",
    start={"m": 0.9},
    over=Over("beta", (0.3, 1.5), {0.4: 1, 1: 3}, {"m": (0, 1)}, special=_three_spin_magnet),
)  # fmt: skip
def three_spin_magnet():
    def solution(beta):
        return {"m": brentq(lambda x: x - math.tanh(3 * beta * x**2), 0.8, 1, xtol=1e-15)}

    local = 3 * beta * m**2
    energy = 2 * m**3 - sp.log(2 * sp.cosh(local)) / beta
    return fixed(
        "three_spin_magnet", {m: sp.tanh(local)}, beta, outputs={"free_energy": energy}
    ), solution


def _random_field_magnet(v):
    def gap(b):
        return b * mean(lambda t: np.cosh(b * math.sqrt(v) * t) ** -2.0) - 1

    return {"second-order": [brentq(gap, 1, 2, xtol=1e-15)]}


@problem(
    "Schneider, Pytte, Phys. Rev. B 15, 1519 (1977)", {"beta": 2.0, "v": 0.3}, "average",
    start={"m": 0.8},
    over=Over("beta", (0.5, 4), {1: 1, 3: 3}, {"m": (-1, 1)}, special=_random_field_magnet),
)  # fmt: skip
def random_field_magnet():
    def solution(beta, v):
        def step(x):
            return mean(lambda t: np.tanh(beta * (x + math.sqrt(v) * t)))

        return {"m": iterated(step, 0.8)[0]}

    value = E(sp.tanh(beta * (m + sp.sqrt(v) * z)))
    return fixed("random_field_magnet", {m: value}, beta, v), solution


# ---------------------------------------------------------------- spin glasses


@problem(
    "Sherrington, Kirkpatrick, Phys. Rev. Lett. 35, 1792 (1975)", {"beta": 1.7, "h": 0.3},
    "average",
    over=Over(
        "beta", (0.3, 3), {0.8: 1, 2: 2}, UNIT_BOX, {"h": 0.0},
        special=lambda h: {"second-order": [1.0]},
    ),
)  # fmt: skip
def sherrington_kirkpatrick():
    def solution(beta, h):
        def step(x):
            return mean(lambda t: np.tanh(beta * (np.sqrt(x) * t + h)) ** 2)

        return {"q": iterated(step, 0.5)[0]}

    value = E(sp.tanh(beta * (sp.sqrt(q) * z + h)) ** 2)
    return fixed("sherrington_kirkpatrick", {q: value}, beta, h), solution


def _almeida_thouless(h):
    def replicon(b):
        def excess(y):
            return y - mean(lambda t: np.tanh(b * (math.sqrt(y) * t + h)) ** 2)

        overlap = brentq(excess, 1e-6, 1, xtol=1e-16)
        return 1 - b**2 * mean(lambda t: np.cosh(b * (math.sqrt(overlap) * t + h)) ** -4.0)

    return {"zero of replicon": [brentq(replicon, 1.05, 3, xtol=1e-15)]}


@problem(
    "de Almeida, Thouless, J. Phys. A 11, 983 (1978)", {"beta": 1.2, "h": 0.3}, "average",
    over=Over(
        "beta", (0.5, 3), {0.8: 1, 2: 1}, UNIT_BOX, zeros="replicon", special=_almeida_thouless
    ),
)  # fmt: skip
def line_of_almeida_and_thouless():
    local = beta * (sp.sqrt(q) * z + h)
    replicon = 1 - beta**2 * E(sp.cosh(local) ** -4)
    system = fixed(
        "almeida_thouless", {q: E(sp.tanh(local) ** 2)}, beta, h, outputs={"replicon": replicon}
    )
    return system, sherrington_kirkpatrick()[1]


def _ferromagnetic_bias(beta):
    # The glass of overlap q loses its stability to a magnetisation at βJ(1 − q) = 1.
    glass = iterated(lambda x: mean(lambda t: np.tanh(beta * math.sqrt(x[0]) * t) ** 2), 0.5)[0]
    return {"second-order": [1 / (beta * (1 - glass))]}


@problem(
    "Sherrington, Kirkpatrick, Phys. Rev. Lett. 35, 1792 (1975)", {"beta": 2.0, "J": 1.5},
    "average", start={"m": 0.8, "q": 0.7},
    over=Over(
        "J", (0.7, 2), {0.8: 2, 1.5: 3}, {"m": (0, 1), "q": (0, 1)}, special=_ferromagnetic_bias
    ),
)  # fmt: skip
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


def _spin_one(p, s, beta, h):
    """Overlap, mean square and free energy of the single site of Ghatak and Sherrington."""
    weight = 2 * np.exp(beta**2 * (s - p) / 2 - beta * h)
    local = beta * math.sqrt(p) * _NODES
    total = 1 + weight * np.cosh(local)
    overlap = _WEIGHTS @ (weight * np.sinh(local) / total) ** 2
    square = _WEIGHTS @ (weight * np.cosh(local) / total)
    energy = -(beta**2 * (p**2 - s**2) / 4 + _WEIGHTS @ np.log(total)) / beta
    return float(overlap), float(square), float(energy)


def _ghatak_sherrington(beta):
    # Without an overlap log(r/(1 − r)) = β²r/2 − βh + log 2, with folds at r(1 − r) = 2/β²; an
    # overlap leaves at βr = 1. The glass folds where its crystal field, at given q, is largest.
    def paramagnet(s):
        return (beta**2 * s / 2 + math.log(2) - math.log(s / (1 - s))) / beta

    def glass(p):
        def gaps(x):
            overlap, square, _ = _spin_one(p, x[0], beta, x[1])
            return [overlap - p, square - x[0]]

        return root(gaps, [1 / beta + p, 0.96], tol=1e-14).x

    def gap(x):
        p, s, other, crystal = x
        one, none = _spin_one(p, s, beta, crystal), _spin_one(0.0, other, beta, crystal)
        return [one[0] - p, one[1] - s, none[1] - other, one[2] - none[2]]

    away = math.sqrt(0.25 - 2 / beta**2)
    folds = [paramagnet(0.5 - away), paramagnet(0.5 + away)]
    (fold,) = extrema(lambda p: glass(p)[1], 0.01, 0.2)
    exchange = root(gap, [0.12, 0.4, 0.15, 0.956], tol=1e-14).x[3]
    # Where 1 − r takes the place of r two paramagnets have one free energy, but that of larger r
    # is none: an overlap grows in it.
    return {
        "spinodal": [*folds, fold], "first-order": [float(exchange)],
        "instability": [paramagnet(1 / beta)],
    }  # fmt: skip


@problem(
    "Ghatak, Sherrington, J. Phys. C 10, 3149 (1977)", {"beta": 3.0, "h": 0.2}, "average",
    over=Over(
        "h", (0.7, 1.4), {0.9: 2, 0.95: 4, 0.965: 5, 1.1: 3, 1.3: 1},
        {"q": (0, 1), "r": (0, 1)}, {"beta": 3.5},
        special=_ghatak_sherrington,
    ),
)  # fmt: skip
def ghatak_sherrington():
    # Spins -1, 0, 1 in a crystal field h; r is the mean of the squares.
    def solution(beta, h):
        found = iterated(lambda x: np.array(_spin_one(*x, beta, h)[:2]), [0.3, 0.6])
        return {"q": found[0], "r": found[1]}

    arm = 2 * sp.exp(beta**2 * (r - q) / 2 - beta * h)
    along = beta * sp.sqrt(q) * z
    total = 1 + arm * sp.cosh(along)
    equations = {q: E((arm * sp.sinh(along) / total) ** 2), r: E(arm * sp.cosh(along) / total)}
    energy = -(beta**2 * (q**2 - r**2) / 4 + E(sp.log(total))) / beta
    return fixed(
        "ghatak_sherrington", equations, beta, h, outputs={"free_energy": energy}
    ), solution


def _spherical_three_spins(h):
    # β² = q/((h² + 3q²/2)(1 − q)²): extrema are roots of a cubic.
    x = sp.Symbol("x")
    slope = sp.numer(
        sp.together(sp.diff(x / ((sp.nsimplify(h) ** 2 + 3 * x**2 / 2) * (1 - x) ** 2), x))
    )
    places = [float(s) for s in sp.Poly(slope, x).nroots(30) if s.is_real and 0 < s < 0.9]
    return {"spinodal": [math.sqrt(s / (h**2 + 1.5 * s**2)) / (1 - s) for s in places]}


@problem(
    "Crisanti, Sommers, Z. Phys. B 87, 341 (1992)", {"beta": 1.2, "h": 0.5}, "closed form",
    over=Over(
        "beta", (0.5, 3.5), {1: 1, 2.2: 3, 3: 1}, fixed={"h": 0.1}, special=_spherical_three_spins
    ),
)  # fmt: skip
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


def _hopfield(beta):
    def load(overlap):
        def gaps(x):
            glass, other = x

            def state(t):
                noise = math.sqrt(other * glass) / (1 - beta * (1 - glass))
                return np.tanh(beta * (overlap + noise * t))

            return [mean(state) - overlap, mean(lambda t: state(t) ** 2) - glass]

        return root(gaps, [0.94, 0.11], tol=1e-14).x[1]

    def glass(alpha):
        def excess(x):
            noise = math.sqrt(alpha * x) / (1 - beta * (1 - x))
            return mean(lambda t: np.tanh(beta * noise * t) ** 2) - x

        # Inside of β(1 - q) < 1, where the noise is finite.
        return 0.0, brentq(excess, 1 - 1 / beta + 1e-9, 1, xtol=1e-16)

    def energy(alpha, overlap, square):
        chi = beta * (1 - square)
        field = overlap + math.sqrt(alpha * square) / (1 - chi) * _NODES
        entropic = alpha / (2 * beta) * (math.log(1 - chi) - beta * square / (1 - chi))
        other = alpha * beta * square * (1 - square) / (2 * (1 - chi) ** 2)
        magnets = _WEIGHTS @ np.logaddexp(beta * field, -beta * field) / beta
        return alpha / 2 + overlap**2 / 2 + entropic + other - float(magnets)

    def gap(alpha):
        retrieval = iterated(lambda x: _hopfield_step(x, alpha, beta), [0.98, 0.98])
        return energy(alpha, *retrieval) - energy(alpha, *glass(alpha))

    exchange = brentq(gap, 0.02, 0.07, xtol=1e-15)
    return {"spinodal": extrema(load, 0.92, 0.97), "first-order": [exchange]}


def _hopfield_step(x, alpha, beta):
    overlap, glass = x
    load = alpha * glass / (1 - beta * (1 - glass)) ** 2

    def state(t):
        return np.tanh(beta * (overlap + math.sqrt(load) * t))

    return np.array([mean(state), mean(lambda t: state(t) ** 2)])


@problem(
    "Amit, Gutfreund, Sompolinsky, Phys. Rev. Lett. 55, 1530 (1985)",
    {"alpha": 0.05, "beta": 5.0}, "average", "several", start={"m": 0.98, "q": 0.98},
    # Inside of β(1 − q) < 1.
    over=Over(
        "alpha", (0.01, 0.2), {0.05: 3, 0.15: 1}, {"m": (0, 1), "q": (0.8, 1)}, special=_hopfield
    ),
)  # fmt: skip
def hopfield():
    def solution(alpha, beta):
        found = iterated(lambda x: _hopfield_step(x, alpha, beta), [0.98, 0.98])
        return {"m": found[0], "q": found[1]}

    local = beta * (m + sp.sqrt(alpha * r) * z)
    state, chi = sp.tanh(local), beta * (1 - q)
    equations = {m: E(state), q: E(state**2), r: q / (1 - chi) ** 2}
    energy = (
        alpha / 2 + m**2 / 2
        + alpha / (2 * beta) * (sp.log(1 - chi) - beta * q / (1 - chi))
        + alpha * beta * r * (1 - q) / 2
        - E(sp.log(2 * sp.cosh(local))) / beta
    )  # fmt: skip
    return fixed("hopfield", equations, alpha, beta, outputs={"free_energy": energy}), solution


def _retrieval_load(x):
    """α at which x = m/√(2αr) solves the equations without temperature."""
    return (erf(x) / x - 2 / math.sqrt(math.pi) * math.exp(-(x**2))) ** 2 / 2


@problem(
    "Amit, Gutfreund, Sompolinsky, Ann. Phys. 173, 30 (1987): no temperature", {"alpha": 0.1},
    "closed form", "several", start={"v": 2.0},
    over=Over(
        "alpha", (0.06, 0.2), {0.1: 2, 0.15: 0}, {"v": (0.5, 4)},
        special=lambda: {"spinodal": extrema(_retrieval_load, 0.7, 3)},
    ),
)  # fmt: skip
def hopfield_without_temperature():
    def solution(alpha):
        return {"v": brentq(lambda x: _retrieval_load(x) - alpha, 1.6, 4, xtol=1e-15)}

    width = sp.sqrt(2 * alpha) + 2 / sp.sqrt(sp.pi) * sp.exp(-(v**2))
    return fixed("hopfield_ground", {v: sp.erf(v) / width}, alpha), solution


# ---------------------------------------------------------------- low-rank estimation


@problem(
    "Deshpande, Abbe, Montanari, arXiv 1507.08685", {"snr": 2.0}, "average",
    over=Over(
        "snr", (0.5, 3), {0.8: 1, 2: 2}, UNIT_BOX, special=lambda: {"second-order": [1.0]}
    ),
)  # fmt: skip
def signs_in_a_matrix():
    def solution(snr):
        def step(x):
            return mean(lambda t: np.tanh(snr * x + np.sqrt(snr * x) * t))

        return {"q": iterated(step, 0.5)[0]}

    value = E(sp.tanh(snr * q + sp.sqrt(snr * q) * z))
    return fixed("signs_in_a_matrix", {q: value}, snr), solution


@problem(
    "Lelarge, Miolane, arXiv 1611.03888", {"snr": 2.5}, "closed form",
    over=Over(
        "snr", (0.5, 3), {0.8: 1, 2: 2}, UNIT_BOX, special=lambda: {"second-order": [1.0]}
    ),
)  # fmt: skip
def gaussian_spike_in_a_matrix():
    value = snr * q / (1 + snr * q)
    return fixed("gaussian_spike", {q: value}, snr), lambda snr: {"q": 1 - 1 / snr}


def _sparse_sign(x, a, rho, functions):
    """Posterior mean of an entry ±1 (probability rho/2 each) or 0 at field x and signal a."""
    weight = rho * functions.exp(-a / 2)
    return weight * functions.sinh(x) / (1 - rho + weight * functions.cosh(x))


def _sparse_overlap(a, rho):
    return rho * mean(lambda t: _sparse_sign(a + math.sqrt(a) * t, a, rho, np))


def _sparse_energy(a, snr, rho):
    def log_of(shift):
        def inside(t):
            return np.log(1 - rho + rho * np.exp(-a / 2) * np.cosh(shift + math.sqrt(a) * t))

        return mean(inside)

    return a**2 / (4 * snr) - (1 - rho) * log_of(0.0) - rho * log_of(a)


def _sparse_signs(rho):
    # The signal a = snr q gives q and snr = a/q; at a = 0 snr is rho^-2.
    def ratio(a):
        return a / _sparse_overlap(a, rho)

    def gap(a):
        return _sparse_energy(a, ratio(a), rho)

    found = {"second-order": [rho**-2]}
    folds = extrema(ratio, 0.02, 20)
    if folds:
        found |= {"spinodal": folds, "first-order": [ratio(brentq(gap, 7, 10, xtol=1e-14))]}
    return found


@problem(
    "Lesieur, Krzakala, Zdeborová, arXiv 1701.00858", {"snr": 20.0, "rho": 0.3}, "average",
    over=Over("snr", (5, 25), {10: 1, 20: 2}, UNIT_BOX, special=_sparse_signs),
)  # fmt: skip
def sparse_signs_in_a_matrix():
    # Entries ±1 with probability rho/2 each: the posterior mean of one at signal A = snr q.
    def solution(snr, rho):
        return {"q": iterated(lambda x: _sparse_overlap(snr * float(x[0]), rho), 0.2)[0]}

    a = snr * q
    value = rho * E(_sparse_sign(a + sp.sqrt(a) * z, a, rho, sp))

    def log_of(shift):
        return E(sp.log(1 - rho + rho * sp.exp(-a / 2) * sp.cosh(shift + sp.sqrt(a) * z)))

    energy = a * q / 4 - (1 - rho) * log_of(0) - rho * log_of(a)
    return fixed("sparse_signs", {q: value}, snr, rho, outputs={"free_energy": energy}), solution


@problem(
    "Lesieur, Krzakala, Zdeborová, arXiv 1701.00858: few entries", {"snr": 420.0, "rho": 0.05},
    "average", start={"q": 0.045},
    over=Over(
        "snr", (200, 500), {250: 1, 350: 3, 401: 4, 450: 2}, {"q": (0, 0.05)},
        special=_sparse_signs, relative=1e-10,
    ),
)  # fmt: skip
def very_sparse_signs_in_a_matrix():
    return sparse_signs_in_a_matrix()


def _signs_in_a_tensor():
    # The signal a = snr q² gives q and snr = a/q².
    def ratio(a):
        return a / overlap_of_signs(a) ** 2

    def gap(a):
        total = mean(lambda t: log_cosh(a + math.sqrt(a) * t)) - a / 2
        return a * overlap_of_signs(a) / 3 - total

    exchange = ratio(brentq(gap, 1.5, 4, xtol=1e-14))
    folds = extrema(ratio, 0.1, 6)
    # The extended system solved by hand.
    assert abs(folds[0] / 3.22875128861340413952 - 1) < 1e-13
    return {"spinodal": folds, "first-order": [exchange]}


@problem(
    "Lesieur, Miolane, Lelarge, Krzakala, Zdeborová, arXiv 1701.08010", {"snr": 3.5},
    "average", "several", start={"q": 0.9},
    over=Over("snr", (1, 6), {3: 1, 5: 3}, UNIT_BOX, special=_signs_in_a_tensor),
)  # fmt: skip
def signs_in_a_tensor():
    def solution(snr):
        def step(x):
            return mean(lambda t: np.tanh(snr * x**2 + math.sqrt(snr) * x * t))

        return {"q": iterated(step, 0.9)[0]}

    local = snr * q**2 + sp.sqrt(snr) * q * z
    energy = snr * q**3 / 3 + snr * q**2 / 2 - E(sp.log(sp.cosh(local)))
    return fixed(
        "signs_in_a_tensor", {q: E(sp.tanh(local))}, snr, outputs={"free_energy": energy}
    ), solution


@problem(
    "Miolane, arXiv 1702.00473", {"snr": 2.0, "alpha": 1.5}, "closed form",
    over=Over(
        "snr", (0.3, 3), {0.5: 1, 2: 2}, UNIT_BOX,
        special=lambda alpha: {"second-order": [1 / math.sqrt(alpha)]},
    ),
)  # fmt: skip
def gaussian_spike_in_data():
    # u in n directions, v in αn: both overlaps follow from each other.
    p = sp.Symbol("p", positive=True)
    equations = {q: alpha * snr * p / (1 + alpha * snr * p), p: snr * q / (1 + snr * q)}

    def solution(snr, alpha):
        left = (alpha * snr**2 - 1) / (snr * (1 + alpha * snr))
        return {"q": left, "p": snr * left / (1 + snr * left)}

    return fixed("gaussian_spike_in_data", equations, snr, alpha), solution


# ---------------------------------------------------------------- perceptrons and linear models


def _slope_of_the_volume(overlap):
    """Twice the derivative of 2E[Φ log Φ] at √(q/(1 − q)) z by q: labels of a noiseless teacher."""
    t = math.sqrt(overlap / (1 - overlap))
    return 2 / (1 - overlap) * mean(lambda s: hazard(t * s) ** 2 * ndtr(t * s))


def _volume(overlap):
    t = math.sqrt(overlap / (1 - overlap)) * _NODES
    return float(_WEIGHTS @ xlogy(2 * ndtr(t), ndtr(t)))


def _binary_perceptron():
    def load(overlap):
        other = brentq(lambda c: overlap_of_signs(c) - overlap, 1e-3, 60, xtol=1e-15, rtol=1e-15)
        return other / _slope_of_the_volume(overlap), other

    def entropy(overlap):
        other_alpha, c = load(overlap)
        free = mean(lambda t: np.logaddexp(math.sqrt(c) * t + c, -math.sqrt(c) * t - c))
        return -c * (1 + overlap) / 2 + free + other_alpha * _volume(overlap)

    (fold,) = extrema(lambda x: load(x)[0], 0.5, 0.98)
    last = load(brentq(entropy, 0.6, 0.8, xtol=1e-15))[0]
    # Beyond it the teacher alone is left, whose entropy is zero: 1.245 of Györgyi (1990) and of
    # Seung, Sompolinsky and Tishby (1992). The 1.249 that is quoted with the spinodal 1.493
    # (Barbier et al., arXiv 1708.03395) is .3 % above this zero, which has ten digits here.
    assert abs(last - 1.24468398985) < 1e-11
    return {"spinodal": [fold], "zero of entropy": [last]}


@problem(
    "Györgyi, Phys. Rev. A 41, 7097 (1990)", {"alpha": 1.1}, "average", "domain", "tail",
    over=Over(
        "alpha", (1, 1.6), {1.1: 2, 1.4: 2, 1.55: 0}, zeros="entropy", special=_binary_perceptron
    ),
)  # fmt: skip
def binary_perceptron():
    def solution(alpha):
        def step(x):
            return overlap_of_signs(alpha * _slope_of_the_volume(x))

        return {"q": iterated(lambda x: step(float(x[0])), 0.5)[0]}

    t = z * sp.sqrt(q) / sp.sqrt(1 - q)
    equations = {
        q: E(sp.tanh(sp.sqrt(r) * z + r)),
        r: 2 * alpha / (1 - q) * E(phi(t) ** 2 / Phi(t)),
    }
    entropy = (
        -r * (1 + q) / 2
        + E(sp.log(2 * sp.cosh(sp.sqrt(r) * z + r)))
        + 2 * alpha * E(Phi(t) * sp.log(Phi(t)))
    )
    return fixed(
        "binary_perceptron", equations, alpha, domains={q: UNIT}, outputs={"entropy": entropy}
    ), solution


@problem(
    "Opper, Haussler, Phys. Rev. Lett. 66, 2677 (1991)", {"alpha": 2.0}, "average", "domain",
    "tail", over=Over("alpha", (0.5, 5), {0.6: 1, 4: 1}),
)  # fmt: skip
def spherical_perceptron():
    def solution(alpha):
        def step(x):
            other = alpha * _slope_of_the_volume(x)
            return other / (1 + other)

        return {"q": iterated(lambda x: step(float(x[0])), 0.5)[0]}

    t = z * sp.sqrt(q) / sp.sqrt(1 - q)
    equations = {q: r / (1 + r), r: 2 * alpha / (1 - q) * E(phi(t) ** 2 / Phi(t))}
    return fixed("spherical_perceptron", equations, alpha, domains={q: UNIT}), solution


@problem(
    "Gardner, J. Phys. A 21, 257 (1988)", {"alpha": 1.0, "h": 0.2}, "average", "domain", "tail",
    over=Over("alpha", (0.2, 1.4), {0.3: 1, 1.3: 1}),
)  # fmt: skip
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


def _binary_storage():
    def load(overlap):
        def gap(c):
            return mean(lambda s: np.tanh(math.sqrt(c) * s) ** 2) - overlap

        other = brentq(gap, 1e-3, 60, xtol=1e-15, rtol=1e-15)
        t = math.sqrt(overlap / (1 - overlap))
        return other * (1 - overlap) / mean(lambda s: hazard(t * s) ** 2), other

    def entropy(overlap):
        other_alpha, c = load(overlap)
        t = math.sqrt(overlap / (1 - overlap))
        free = mean(lambda s: np.logaddexp(math.sqrt(c) * s, -math.sqrt(c) * s))
        return -c * (1 - overlap) / 2 + free + other_alpha * mean(lambda s: log_ndtr(t * s))

    capacity = load(brentq(entropy, 0.4, 0.8, xtol=1e-15))[0]
    assert abs(capacity - 0.833) < 5e-4  # Krauth and Mézard
    return {"zero of entropy": [capacity]}


@problem(
    "Krauth, Mézard, J. Physique 50, 3057 (1989)", {"alpha": 0.6}, "average", "domain", "tail",
    over=Over(
        "alpha", (0.2, 1.2), {0.3: 1, 1.1: 1}, zeros="entropy", special=_binary_storage
    ),
)  # fmt: skip
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
    entropy = -r * (1 - q) / 2 + E(sp.log(2 * sp.cosh(sp.sqrt(r) * z))) + alpha * E(sp.log(Phi(t)))
    return fixed(
        "binary_storage", equations, alpha, domains={q: UNIT}, outputs={"entropy": entropy}
    ), solution


@problem(
    "Guo, Verdú, IEEE Trans. Inf. Theory 51, 1983 (2005)",
    {"alpha": 2.0, "noise": 0.5},
    "closed form",
    over=Over("alpha", (0.2, 3), {0.3: 1, 2.5: 1}, {"v": (0, 1)}),
)
def bayesian_regression():
    # v is the mean squared error for a Gaussian prior.
    def solution(alpha, noise):
        half = (noise + alpha - 1) / 2
        return {"v": -half + math.sqrt(half**2 + noise)}

    value = 1 / (1 + alpha / (noise + v))
    return fixed("bayesian_regression", {v: value}, alpha, noise), solution


def _multiuser_detection(noise):
    def load(a):
        return a * (noise + 1 - overlap_of_signs(a))

    return {"spinodal": extrema(load, 0.1, 40)}


@problem(
    "Tanaka, IEEE Trans. Inf. Theory 48, 2888 (2002)", {"alpha": 1.2, "noise": 0.2}, "average",
    over=Over(
        "alpha", (0.2, 0.9), {0.25: 1, 0.4: 3, 0.8: 1}, UNIT_BOX, {"noise": 0.03},
        special=_multiuser_detection,
    ),
)  # fmt: skip
def multiuser_detection():
    def solution(alpha, noise):
        def step(x):
            return overlap_of_signs(alpha / (noise + 1 - float(x[0])))

        return {"q": iterated(step, 0.7)[0]}

    equations = {q: E(sp.tanh(r + sp.sqrt(r) * z)), r: alpha / (noise + 1 - q)}
    return fixed("multiuser_detection", equations, alpha, noise), solution


@problem("Hastie, Montanari, Rosset, Tibshirani, arXiv 1903.08560",
         {"alpha": 2.0, "ridge": 0.3, "noise": 0.5}, "closed form", "linear",
         over=Over("alpha", (0.3, 3), {0.5: 1, 2.5: 1}))  # fmt: skip
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
         "average", "kink", over=Over("alpha", (0.3, 1.5), {0.4: 1, 1.4: 1}))  # fmt: skip
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


def _gain(t, rho, exp, scale, precision, sqrt):
    """Squared posterior mean of a channel y = x + w/√precision at y = scale t."""
    y = scale * t
    # The weight of zero over that of the slab: never large.
    odds = (1 - rho) / rho * sqrt(1 + precision)
    odds *= exp(-(y**2) * precision**2 / (2 * (1 + precision)))
    return (precision * y / (1 + precision) / (1 + odds)) ** 2


def _sensing_error(p, rho):
    spike = mean(lambda t: _gain(t, rho, np.exp, 1 / math.sqrt(p), p, math.sqrt))
    slab = mean(lambda t: _gain(t, rho, np.exp, math.sqrt(1 + 1 / p), p, math.sqrt))
    return rho - (1 - rho) * spike - rho * slab


def _compressed_sensing(noise, rho):
    # The precision p gives the error and α = p(noise + error).
    def load(logarithm):
        p = math.exp(logarithm)
        return p * (noise + _sensing_error(p, rho))

    return {"spinodal": extrema(load, -1, 9)}


@problem(
    "Krzakala, Mézard, Sausset, Sun, Zdeborová, arXiv 1206.3953",
    {"alpha": 0.7, "noise": 0.05, "rho": 0.3}, "average",
    over=Over(
        "alpha", (0.12, 0.35), {0.15: 1, 0.19: 3, 0.3: 1}, {"v": (0, 1)},
        {"noise": 1e-4, "rho": 0.1}, special=_compressed_sensing,
    ),
)  # fmt: skip
def compressed_sensing():
    # Bernoulli–Gauss prior; r is the precision of the effective channel.
    def solution(alpha, noise, rho):
        def step(x):
            return _sensing_error(alpha / (noise + float(x[0])), rho)

        return {"v": iterated(step, 0.1)[0]}

    spike = E(_gain(z, rho, sp.exp, 1 / sp.sqrt(r), r, sp.sqrt))
    slab = E(_gain(z, rho, sp.exp, sp.sqrt(1 + 1 / r), r, sp.sqrt))
    equations = {v: rho - (1 - rho) * spike - rho * slab, r: alpha / (noise + v)}
    return fixed("compressed_sensing", equations, alpha, noise, rho), solution


@problem("Barbier, Krzakala, Macris, Miolane, Zdeborová, arXiv 1708.03395",
         {"alpha": 3.0, "noise": 0.4}, "average", "domain", "tail",
         over=Over("alpha", (0.3, 6), {0.5: 1, 5: 1}))  # fmt: skip
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
         {"alpha": 2.0, "snr": 1.5}, "average",
         over=Over("snr", (0.2, 3), {0.5: 1, 2: 2}, UNIT_BOX,
                   special=lambda alpha: {"second-order": [1 / math.sqrt(alpha)]}))  # fmt: skip
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
         "closed form", over=Over("alpha", (0.3, 3), {0.5: 1, 2.5: 1}))  # fmt: skip
def marchenko_pastur():
    # The Stieltjes transform at -λ of X Xᵀ/n with p/n = α.
    def solution(alpha, ridge):
        b = ridge + 1 - alpha
        return {"v": (-b + math.sqrt(b**2 + 4 * alpha * ridge)) / (2 * alpha * ridge)}

    return fixed("marchenko_pastur", {v: 1 / (ridge + 1 / (1 + alpha * v))}, alpha, ridge), solution


@problem("Silverstein, Bai, J. Multivar. Anal. 54, 175 (1995)", {"alpha": 0.5, "ridge": 0.2},
         "closed form", over=Over("alpha", (0.3, 3), {0.5: 1, 2.5: 1}))  # fmt: skip
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
         "average", over=Over("snr", (0.5, 3), {0.8: 1, 2: 2}, fixed={"h": 0.0},
                              special=lambda h: {"second-order": [1.0]}))  # fmt: skip
def random_network_with_bias():
    # The static variance of a random network of tanh units with random biases.
    def solution(snr, h):
        def step(x):
            return snr**2 * mean(lambda t: np.tanh(math.sqrt(float(x[0])) * t) ** 2) + h**2

        return {"v": iterated(step, 0.8)[0]}

    value = snr**2 * E(sp.tanh(sp.sqrt(v) * z) ** 2) + h**2
    return fixed("random_network", {v: value}, snr, h), solution


@problem("Poole, Lahiri, Raghu, Sohl-Dickstein, Ganguli, arXiv 1606.05340", {"v": 2.3, "h": 0.3},
         "average", over=Over("h", (0.1, 2), {0.2: 1, 1.8: 1}))  # fmt: skip
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


# Where the overlaps are equal these coordinates are singular: that branch, and where the other one
# leaves it, are those of the system below.
_BOTH_OVERLAPS = Over("beta", (1.3, 2), {1.5: 1}, {"q_0": (0, 1), "q_1": (0, 1)})


@problem("Parisi, J. Phys. A 13, 1101 (1980)", {"beta": 1.5, "x": 0.4, "h": 0.1},
         "average", "nested", "several", over=_BOTH_OVERLAPS)  # fmt: skip
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


def _line_of_almeida_and_thouless(x, h):
    # Whatever x, the second overlap leaves the first one where β² E sech⁴ = 1.
    def gap(b):
        def excess(y):
            return y - mean(lambda t: np.tanh(b * (math.sqrt(y) * t + h)) ** 2)

        overlap = brentq(excess, 1e-6, 1, xtol=1e-16)
        return b**2 * mean(lambda t: np.cosh(b * (math.sqrt(overlap) * t + h)) ** -4.0) - 1

    return {"second-order": [brentq(gap, 1.05, 1.6, xtol=1e-14)]}


@problem("Parisi, J. Phys. A 13, 1101 (1980): how far the two overlaps are from each other",
         {"beta": 1.5, "x": 0.4, "h": 0.1}, "average", "nested",
         over=Over("beta", (0.5, 2), {0.8: 1, 1.5: 2}, {"q_0": (0, 1), "v": (0, 1)},
                   special=_line_of_almeida_and_thouless))  # fmt: skip
def one_step_and_where_it_begins():
    # The solution without a second step is v = 0.
    x, q_0 = sp.symbols("x q_0", positive=True)
    field, mass = cavity(x, q_0, q_0 + v)
    first, second = (
        GaussianExpectation(sp.cosh(field) ** x * sp.tanh(field) ** k, s) / mass for k in (1, 2)
    )

    def solution(beta, x, h):
        low, high = iterated(lambda q: one_step(q, beta, x, h)[0], [0.35, 0.6])
        return {"q_0": low, "v": high - low}

    start = {q_0: sp.Rational(1, 4), v: sp.Rational(1, 2)}
    equations = {q_0: E(first**2), v: E(second - first**2)}
    return fixed("one_step_width", equations, beta, x, h, start=start), solution


@problem("Parisi, J. Phys. A 13, 1101 (1980)", {"beta": 1.4, "x": 0.3, "h": 0.05},
         "average", "nested", "several", over=_BOTH_OVERLAPS)  # fmt: skip
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
         "average", "domain", "nested", over=Over("alpha", (0.5, 6), {1: 1, 5: 1}))  # fmt: skip
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


def _soft_signs():
    # An overlap appears where its square, the variance of an entry, is one over the signal.
    return {"second-order": [mean(lambda t: np.tanh(2 * t) ** 2) ** -2]}


@problem(
    "Lesieur, Krzakala, Zdeborová, arXiv 1701.00858", {"snr": 4.0}, "average", "nested",
    over=Over("snr", (0.5, 6), {1: 1, 4: 2}, UNIT_BOX, special=_soft_signs),
)  # fmt: skip
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


# ---------------------------------------------------------------- phase retrieval, committee


def _mean_square_of_signs(overlap):
    """E[u² tanh(a + √a z)], a = u²q/(1 − q): the overlap of u with its mean, given |u| and a field.

    The sign of u is what |u| leaves open.
    """
    s = overlap / (1 - overlap)
    nodes = np.linspace(-9, 9, 601)
    weights = np.exp(-(nodes**2) / 2) / math.sqrt(2 * math.pi) * (nodes[1] - nodes[0])
    u = nodes[:, None]
    inside = np.tanh(u**2 * s + math.sqrt(s) * u * nodes)
    return float((weights * nodes**2) @ inside @ weights)


def _phase_retrieval():
    # E g² = (E[u² tanh] − q)/(1 − q)², q̂ = αE g²: α is largest where the overlap jumps to one.
    def load(overlap):
        gain = (_mean_square_of_signs(overlap) - overlap) / (1 - overlap) ** 2
        return overlap / (1 - overlap) / gain

    (fold,) = extrema(load, 0.3, 0.98)
    assert abs(fold - 1.128) < 5e-4  # Barbier et al.
    # An overlap appears at 1/2: E g² is 2q where q is small.
    assert abs(load(1e-7) - 0.5) < 1e-6
    return {"spinodal": [fold], "second-order": [0.5]}


@problem(
    "Barbier, Krzakala, Macris, Miolane, Zdeborová, arXiv 1708.03395: labels |u|",
    {"alpha": 0.8}, "average", "domain", "nested", "several", start={"q": 0.5},
    over=Over(
        "alpha", (0.3, 1.4), {0.4: 1, 0.8: 2, 1.1: 3, 1.3: 1},
        special=_phase_retrieval, relative=1e-10,
    ),
)  # fmt: skip
def phase_retrieval():
    def solution(alpha):
        def step(x):
            y = float(x[0])
            other = alpha * (_mean_square_of_signs(y) - y) / (1 - y) ** 2
            return other / (1 + other)

        return {"q": iterated(step, 0.5)[0]}

    u = sp.Symbol("u", real=True)
    odds = q / (1 - q)
    inner = E(sp.tanh(u**2 * odds + u * sp.sqrt(odds) * z))
    known = GaussianExpectation(u**2 * inner, u)
    equations = {q: r / (1 + r), r: alpha * (known - q) / (1 - q) ** 2}
    return fixed("phase_retrieval", equations, alpha, domains={q: UNIT}), solution


def _committee():
    # The overlap of the fields at an overlap q of the units, and what it says about their labels.
    def load(overlap):
        field = 2 / math.pi * (1 - overlap + math.asin(overlap))
        gain = 2 / math.pi * (1 / math.sqrt(1 - overlap**2) - 1)
        return overlap / (1 - overlap) / (gain * _slope_of_the_volume(field))

    def gap(overlap):
        entropies = [_volume(2 / math.pi * (1 - x + math.asin(x))) for x in (overlap, 0.0)]
        units = (overlap + math.log1p(-overlap)) / 2
        return units + load(overlap) * (entropies[0] - entropies[1])

    exchange = load(brentq(gap, 0.75, 0.99, xtol=1e-15))
    assert abs(exchange - 7.65) < 0.05  # as quoted by Aubin et al., for αK examples
    return {"spinodal": extrema(load, 0.3, 0.97), "first-order": [exchange]}


@problem(
    "Schwarze, Hertz, Europhys. Lett. 21, 785 (1993); Aubin et al., arXiv 1806.05451: many units",
    {"alpha": 8.0}, "average", "domain", "several", start={"q": 0.9},
    over=Over("alpha", (5, 9), {6: 1, 8: 3}, special=_committee),
)  # fmt: skip
def committee_of_many_units():
    # αK examples for each weight of K units, whose mean is learned: the overlap of the fields.
    def field_of(x, asin):
        return 2 / sp.pi * (1 - x + asin(x))

    def solution(alpha):
        def step(x):
            y = float(x[0])
            gain = 2 / math.pi * (1 / math.sqrt(1 - y**2) - 1)
            other = alpha * gain * _slope_of_the_volume(2 / math.pi * (1 - y + math.asin(y)))
            return other / (1 + other)

        return {"q": iterated(step, 0.9)[0]}

    field_overlap = field_of(q, sp.asin)
    t = z * sp.sqrt(field_overlap) / sp.sqrt(1 - field_overlap)
    gain = 2 / sp.pi * (1 / sp.sqrt(1 - q**2) - 1)
    equations = {
        q: r / (1 + r),
        r: 2 * alpha * gain / (1 - field_overlap) * E(phi(t) ** 2 / Phi(t)),
    }
    energy = -(q + sp.log(1 - q)) / 2 - 2 * alpha * E(Phi(t) * sp.log(Phi(t)))
    return fixed(
        "committee", equations, alpha, domains={q: UNIT}, outputs={"free_energy": energy}
    ), solution


def _two_units(overlap):
    """E Σ_y (∂_s Z_y)²/Z_y and E Σ_y (∂_d² Z_y)²/Z_y over the labels of two units.

    Z_y is the probability of a label y, given the overlap of the sum s of the fields of the two
    units and none of their difference d: y = ±1 where ±s > |d|, else 0.
    """
    x = math.sqrt(overlap / (2 - overlap)) * _NODES
    c = 1 / math.sqrt(1 - overlap)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    joint = density * np.exp(-((c * x) ** 2) / 2) / math.sqrt(2 * math.pi)
    both, neither = ndtr(x) - 2 * owens_t(x, c), 4 * owens_t(x, c)
    odd = erf(c * x / math.sqrt(2))
    totals = []
    for one, none in (
        (density * ndtr(c * x), density * odd),
        (x * density * ndtr(c * x) + joint / c, x * density * odd + 2 * joint / c),
    ):
        seen, rare = both > 1e-20, neither > 1e-30
        terms = 2 * np.where(seen, one**2 / np.where(seen, both, 1), 0)
        terms += np.where(rare, none**2 / np.where(rare, neither, 1), 0)
        totals.append(float(_WEIGHTS @ terms) * 4 / (2 - overlap) ** (len(totals) + 1))
    return totals


def _specialisation():
    # The overlap of the difference is q_d = α E Σ (∂_d² Z)²/Z q_d to first order.
    def load(overlap):
        return overlap / (1 - overlap) / _two_units(overlap)[0]

    where = brentq(lambda x: load(x) * _two_units(x)[1] - 1, 0.3, 0.95, xtol=1e-15)
    assert abs(load(where) - 2.04) < 0.02  # as quoted by Aubin et al.
    return {"zero of specialisation": [load(where)]}


@problem(
    "Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová, arXiv 1806.05451: two units, before "
    "they specialise",
    {"alpha": 1.5}, "average", "domain", "nested", "kink",
    over=Over(
        "alpha", (0.5, 3), {1: 1, 2.5: 1}, zeros="specialisation", special=_specialisation,
        relative=1e-10,
    ),
)  # fmt: skip
def committee_of_two_units():
    # A sum of two signs, three labels. By a rule over both fields q is 0.61447415902 at α = 1.5.
    def solution(alpha):
        def step(x):
            other = alpha * _two_units(float(x[0]))[0]
            return other / (1 + other)

        (overlap,) = iterated(step, 0.5)
        assert alpha != 1.5 or abs(overlap - 0.61447415902) < 1e-11
        return {"q": overlap}

    x, c = z * sp.sqrt(q) / sp.sqrt(2 - q), 1 / sp.sqrt(1 - q)
    # Of s > |d| at given d: Φ(x) - 2T(x, c) would cancel.
    d = sp.Symbol("d", real=True)
    both = GaussianExpectation(Phi(c * (sp.sqrt(q) * z - sp.Abs(d))), d)
    neither = 4 * OwenT(x, c)
    first = 2 * E((phi(x) * Phi(c * x)) ** 2 / both)
    first += E((phi(x) * sp.erf(c * x / sp.sqrt(2))) ** 2 / neither)
    second = 2 * E(phi(x) ** 2 * (x * Phi(c * x) + phi(c * x) / c) ** 2 / both)
    second += E(phi(x) ** 2 * (x * sp.erf(c * x / sp.sqrt(2)) + 2 * phi(c * x) / c) ** 2 / neither)
    equations = {q: r / (1 + r), r: 4 * alpha / (2 - q) * first}
    outputs = {"specialisation": 4 * alpha / (2 - q) ** 2 * second - 1}
    return fixed("committee_of_two", equations, alpha, domains={q: UNIT}, outputs=outputs), solution


def lowered(given: Problem) -> gs.Kernel:
    """Return the kernel of a problem."""
    return gs.lower(given.system())
