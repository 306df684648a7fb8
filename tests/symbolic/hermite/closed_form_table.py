"""Functions with the closed forms in k of their Hermite coefficients, derived by hand."""

import sympy as sp

from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.expressions.regularity import Parity
from giantstep.symbolic.gaussian.hermite_polynomials import hermite_prob

z = sp.Symbol("z", real=True)
a, s = sp.symbols("a s", positive=True)
b, c, t = sp.symbols("b c t", real=True)
slope = sp.Symbol("r", real=True, nonzero=True)
k, m = sp.symbols("k m", integer=True, nonnegative=True)
pi, sqrt, exp, erf = sp.pi, sp.sqrt, sp.exp, sp.erf
HALF = sp.Rational(1, 2)
paired = sp.factorial2(2 * m - 1)  # (2m-1)!!, with (-1)!! = 1
hinged = sp.factorial2(2 * m - 3)  # (2m-3)!!, with (-3)!! = -1


def phi(x):
    return exp(-(x**2) / 2) / sqrt(2 * pi)


def Phi(x):
    return (1 + erf(x / sqrt(2))) / 2


def step(x):
    return sp.Heaviside(x, HALF)


def He(n, x):
    return hermite_prob(n, x)


# name: (function, general, even, odd, exceptions, parity).
TABLE = {
    "e^az": (exp(a * z), a**k * exp(a**2 / 2), None, None, {}, Parity.NEITHER),
    "sin(az+b)": (
        sp.sin(a * z + b),
        a**k * exp(-(a**2) / 2) * sp.sin(b + k * pi / 2),
        None, None, {}, Parity.NEITHER,
    ),
    "cos(az+b)": (
        sp.cos(a * z + b),
        a**k * exp(-(a**2) / 2) * sp.cos(b + k * pi / 2),
        None, None, {}, Parity.NEITHER,
    ),
    "sin az": (
        sp.sin(a * z),
        None, 0, a ** (2 * m + 1) * exp(-(a**2) / 2) * (-1) ** m, {}, Parity.ODD,
    ),
    "cos az": (
        sp.cos(a * z),
        None, a ** (2 * m) * exp(-(a**2) / 2) * (-1) ** m, 0, {}, Parity.EVEN,
    ),
    "Gaussian": (
        exp(-(z**2) / (2 * s)),
        None, sqrt(s / (1 + s)) * (-1) ** m * paired / (1 + s) ** m, 0, {}, Parity.EVEN,
    ),
    "erf(az)": (
        erf(a * z),
        None, 0,
        2 * a / sqrt(pi * (1 + 2 * a**2)) * (-1) ** m * paired * (2 * a**2 / (1 + 2 * a**2)) ** m,
        {}, Parity.ODD,
    ),
    "erf(z)": (
        erf(z),
        None, 0, 2 / sqrt(3 * pi) * (-1) ** m * paired * sp.Rational(2, 3) ** m, {}, Parity.ODD,
    ),
    "Phi(az+b)": (
        Phi(a * z + b),
        (a / sqrt(1 + a**2)) ** k * (-1) ** (k - 1) * He(k - 1, b / sqrt(1 + a**2))
        * phi(b / sqrt(1 + a**2)),
        None, None, {0: Phi(b / sqrt(1 + a**2))}, Parity.NEITHER,
    ),
    "Phi(z)": (
        Phi(z), None, 0, (-1) ** m * paired / (2 ** (m + 1) * sqrt(pi)), {0: HALF}, Parity.NEITHER,
    ),
    "gelu": (
        z * Phi(z),
        None, (-1) ** (m + 1) * hinged * (2 * m + 1) / (2 ** (m + 1) * sqrt(pi)), 0,
        {1: HALF}, Parity.NEITHER,
    ),
    "sign": (sp.sign(z), None, 0, sqrt(2 / pi) * (-1) ** m * paired, {}, Parity.ODD),
    "step at t": (
        step(z - t), phi(t) * He(k - 1, t), None, None, {0: Phi(-t)}, Parity.NEITHER,
    ),
    "relu(z-t)": (
        relu(z - t),
        phi(t) * He(k - 2, t), None, None,
        {0: phi(t) - t * Phi(-t), 1: Phi(-t)}, Parity.NEITHER,
    ),
    "relu": (
        relu(z), None, (-1) ** (m + 1) * hinged / sqrt(2 * pi), 0, {1: HALF}, Parity.NEITHER,
    ),
    "abs": (sp.Abs(z), None, (-1) ** (m + 1) * hinged * sqrt(2 / pi), 0, {}, Parity.EVEN),
    "leaky relu": (
        c * z + (1 - c) * relu(z),
        None, (1 - c) * (-1) ** (m + 1) * hinged / sqrt(2 * pi), 0,
        {1: (1 + c) / 2}, Parity.NEITHER,
    ),
}  # fmt: skip

# E s² of the table.
SECOND_MOMENTS = {
    "e^az": exp(2 * a**2),
    "sin(az+b)": (1 - exp(-2 * a**2) * sp.cos(2 * b)) / 2,
    "cos(az+b)": (1 + exp(-2 * a**2) * sp.cos(2 * b)) / 2,
    "Gaussian": sqrt(s / (s + 2)),
    "erf(az)": 2 / pi * sp.asin(2 * a**2 / (1 + 2 * a**2)),
    "erf(z)": 2 / pi * sp.asin(sp.Rational(2, 3)),
    "Phi(z)": sp.Rational(1, 3),
    "gelu": sp.Rational(1, 3) + 1 / (2 * pi * sqrt(3)),
    "sign": sp.S.One,
    "step at t": Phi(-t),
    "relu(z-t)": (1 + t**2) * Phi(-t) - t * phi(t),
    "relu": HALF,
    "abs": sp.S.One,
    "leaky relu": (1 + c**2) / 2,
}

OTHERS = {
    "erf(rz+b)": erf(c * z + b),
    "relu(rz+b)": relu(slope * z + b),
    "sign(rz+b)": sp.sign(slope * z + b),
    "abs(rz+b)": sp.Abs(slope * z + b),
    "gelu(rz+b)": (c * z + b) * Phi(c * z + b),
    "z^2 erf(az+b)": z**2 * erf(a * z + b),
    "z^3 Gaussian": z**3 * exp(-(z**2) / (2 * s)),
    "shifted Gaussian": exp(-((z - t) ** 2) / (2 * s)),
    "growing Gaussian": exp(z**2 / 8 + t * z),
    "damped cosine": exp(-(z**2) / (2 * s)) * sp.cos(a * z + b),
    "e^cz sin": exp(c * z) * sp.sin(a * z + b),
    "z e^cz cos": z * exp(c * z) * sp.cos(2 * z),
    "sin^2": sp.sin(a * z + b) ** 2,
    "z^2 sin": z**2 * sp.sin(c * z),
    "hat": relu(z) * relu(2 - z),
    "relu^2 sign": relu(z - t) ** 2 + 3 * sp.sign(z + 1),
    "z_+^3": relu(z) ** 3,
    "mixture": 2 * erf(z) + exp(z / 2) - z**3 + c * sp.cos(z),
    "He3(az+b)": sp.hermite_prob(3, a * z + b),
    "2^z": 2**z,
}

# Coefficients of activations without closed form, 16 digits, the last one rounded.
DIGITS = {
    "tanh": {
        1: "0.6057055096021588", 3: "-0.3635953762809741", 5: "0.6851737935089189",
        7: "-2.232403311827114", 9: "10.49368340600438", 11: "-65.02358489069230",
    },
    "sigmoid": {
        0: "0.5", 1: "0.2066209641419070", 3: "-0.06239648395925919", 5: "0.06437997324904412",
        7: "-0.1225804362629264", 9: "0.3540813845714079", 11: "-1.402524353016661",
    },
    "softplus": {0: "0.8060591833474398", 1: "0.5", 2: "0.2066209641419070"},
    "swish": {
        0: "0.2066209641419070", 1: "0.5", 2: "0.3508454443245549", 4: "-0.1852059625879927",
        6: "0.2636994032313383",
    },
}  # fmt: skip
