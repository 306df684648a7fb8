"""Small systems with unknowns under averages over several Gaussian variables, and their values."""

import numpy as np
import sympy as sp
from numpy.polynomial.legendre import leggauss
from scipy import optimize

from giantstep.symbolic.expressions.functions import sigmoid
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.systems.equations import Equation
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

kappa, s, t = sp.symbols("kappa s t", real=True)
x, a = sp.symbols("x a", positive=True)
m, g = sp.symbols("m g", real=True)
E = GaussianExpectation


def smooth():
    """Even in both variables: half of the outer line. kappa + s has variance two."""
    inner = E(sp.tanh(x * (s + kappa)) ** 2, s)
    return SaddlePointSystem.from_fixed_point(
        {x: 1 + a * E(inner, kappa)}, name="smooth", parameters=(a,)
    )


def jumping():
    """A jump in s at a place that moves with the node and a parameter."""
    inner = E(sp.Heaviside(g * kappa + s) * sp.exp(-x * sp.tanh(s + 1) ** 2), s)
    return SaddlePointSystem.from_fixed_point(
        {x: 1 + a * E(kappa**2 * inner, kappa)}, name="jumping", parameters=(a, g)
    )


def tabulated():
    """A table of the node beside the grid, an unknown that may have any sign, an output."""
    mu = sp.Function("mu", real=True)(kappa)
    inner = E(sigmoid(x * s + m * mu + g), s)
    value = 1 + a * E(mu**2 * E(1 / (1 + x * sp.exp(-(s**2))), s), kappa)
    equations = (
        Equation(x, value, x - value),
        Equation(m, None, m - E(mu * inner, kappa) - sp.Rational(1, 4)),
    )
    return SaddlePointSystem(
        equations=equations,
        outputs={"level": E(inner, kappa)},
        parameters=(a, g),
        start={x: sp.S.One, m: sp.S.Zero},
        node=kappa,
        definitions={mu: E(sp.tanh(a * kappa + t + sp.Rational(1, 2)), t)},
        name="tabulated",
    )


def deep():
    """Three variables; their sum has variance three."""
    inner = E(E(sp.tanh(x * (kappa + s + t)) ** 2, t), s)
    return SaddlePointSystem.from_fixed_point(
        {x: 1 + a * E(inner, kappa)}, name="deep", parameters=(a,)
    )


def tilted():
    """Averages over s inside functions; E_s exp(±x s) are one number, so they have closed forms."""
    field = kappa + x * s
    weight = E(sp.cosh(field), s)
    return SaddlePointSystem.from_fixed_point(
        {x: 1 + a * E(sp.log(weight), kappa)},
        outputs={"slope": E((E(sp.sinh(field), s) / weight) ** 2, kappa)},
        name="tilted", parameters=(a,), node=kappa,
    )  # fmt: skip


def normal(width, n=600, reach=9.0):
    """Return nodes and weights for a variable of a standard deviation, on smooth integrands."""
    z = np.linspace(-reach, reach, n + 1)
    return width * z, (z[1] - z[0]) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def of_a_sum(variables, a):
    """Return x of `smooth` (two variables) and `deep` (three): an average over one variable."""
    z, w = normal(np.sqrt(variables))
    return optimize.brentq(lambda x: 1 + a * w @ np.tanh(x * z) ** 2 - x, 0.5, 10, xtol=1e-15)


def of_a_tilt(a):
    """Return the smaller x of `tilted`, of x = 1 + a x²/2 + a E log cosh."""
    z, w = normal(1.0)
    constant = 1 + a * w @ np.log(np.cosh(z))
    return 2 * constant / (1 + np.sqrt(1 - 2 * a * constant))


def of_a_jump(a, g):
    """Return x of `jumping` by Gauss-Legendre panels that begin at the jump."""
    # In the node the jump is smoothed over 1/g.
    k, w = normal(1.0, n=600 * (1 + round(abs(g) / 4)))
    node, weight = leggauss(120)
    ends = np.clip(-g * k, -9, 9)[:, None]
    s = ends + (9 - ends) * (1 + node) / 2
    mass = (9 - ends) / 2 * weight * np.exp(-s * s / 2) / np.sqrt(2 * np.pi)

    def gap(x):
        return 1 + a * np.sum((w * k**2)[:, None] * mass * np.exp(-x * np.tanh(s + 1) ** 2)) - x

    return optimize.brentq(gap, 0.5, 10, xtol=1e-15)


POINTS = {
    "smooth": (smooth, {"a": 1.3}),
    "jumping": (jumping, {"a": 1.3, "g": 0.8}),
    "tabulated": (tabulated, {"a": 0.7, "g": 0.4}),
    "deep": (deep, {"a": 0.6}),
    "tilted": (tilted, {"a": 0.3}),
}
EXACT = {
    "smooth": of_a_sum(2, 1.3),
    "jumping": of_a_jump(1.3, 0.8),
    "deep": of_a_sum(3, 0.6),
    "tilted": of_a_tilt(0.3),
}
