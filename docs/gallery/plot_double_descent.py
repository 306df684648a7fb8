r"""
The interpolation peak
======================

Test error against sample complexity at three aspect ratios :math:`\beta = p/d` for a small ridge
penalty. The peak stands where the number of samples is that of the neurons, :math:`\alpha = \beta`.
"""

import matplotlib.pyplot as plt
import numpy as np

import giantstep as gs

alpha = np.linspace(0.05, 4, 300)
figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
for beta in (0.5, 1.0, 2.0):
    model = gs.SpikedRandomFeatures("erf", "sin", step_size=2, alpha0=5, beta=beta)
    errors = model.solve_many(alpha=alpha, ridge=1e-4).values["test_error"]
    (line,) = axes.semilogy(alpha, errors, label=f"β = {beta}")
    axes.axvline(beta, color=line.get_color(), lw=0.8, ls=":")
axes.set_xlabel("α = n/d")
axes.set_ylabel("test error, λ = 0.0001")
axes.legend()
