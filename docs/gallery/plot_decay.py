r"""
How fast Hermite coefficients fall
==================================

:math:`|\mu_k|/\sqrt{k!}` of five activations. A kink makes a power law, analyticity in a strip a
stretched exponential :math:`e^{-a\sqrt k}`, and an entire function of Gaussian type a geometric
sequence.
"""

import math

import matplotlib.pyplot as plt

import giantstep as gs

figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
for name in ("relu", "sign", "erf", "tanh", "sin"):
    coefficients = gs.hermite_coefficients(name, 25).evalf(15)
    points = [
        (k, abs(float(mu)) / math.sqrt(math.factorial(k)))
        for k, mu in enumerate(coefficients)
        if k and mu != 0
    ]
    axes.semilogy(*zip(*points, strict=True), "o-", ms=3, lw=1, label=name)
axes.set_xlabel("k")
axes.set_ylabel("|μₖ| / √k!")
axes.set_ylim(1e-12, 2)
axes.legend()
