r"""
A magnet and its transitions
============================

The magnet of Curie and Weiss, :math:`m = \tanh \beta(m + h)`. Left, all solutions over the field at
:math:`\beta = 1.8`: stable ones solid, the unstable one between the spinodals dashed. Right, the
lines of transitions, which end in the critical point at :math:`\beta = 1`.
"""

import matplotlib.pyplot as plt
import sympy as sp

import giantstep as gs

m, h = sp.symbols("m h", real=True)
beta = sp.Symbol("beta", positive=True)
field = beta * (m + h)
free_energy = gs.FreeEnergy(m**2 / 2 - sp.log(2 * sp.cosh(field)) / beta, (m,), (), (h, beta))
kernel = gs.lower(gs.SaddlePointSystem.from_free_energy(free_energy, name="magnet"))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
kernel.branches("h", (-0.4, 0.4), bounds={"m": (-1, 1)}, beta=1.8).plot(ax=left)
kernel.phase_diagram(("h", -0.4, 0.4), ("beta", 0.6, 2), bounds={"m": (-1, 1)}).plot(ax=right)
