r"""
Samples against ridge penalty
=============================

Test error over the plane of sample complexity and ridge penalty, 40 000 saddle points; the line is
the best penalty for each number of samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

import giantstep as gs

model = gs.SpikedRandomFeatures("tanh", "sin", step_size=2, alpha0=4, noise_variance=0.2)
alpha, ridge = np.linspace(0.1, 4, 100), np.geomspace(1e-3, 100, 400)
grid = np.meshgrid(alpha, ridge, indexing="ij")
found = model.solve_many(alpha=grid[0].ravel(), ridge=grid[1].ravel())
errors = found.values["test_error"].reshape(grid[0].shape)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
levels = np.geomspace(errors.min(), errors.max(), 25)
picture = axes.contourf(alpha, ridge, errors.T, levels, norm=LogNorm(), cmap="viridis")
axes.plot(alpha, ridge[errors.argmin(axis=1)], "w--", lw=1.5)
axes.set_yscale("log")
axes.set_xlabel("α = n/d")
axes.set_ylabel("ridge penalty λ")
ticks = [0.1, 0.2, 0.5, 1]
bar = figure.colorbar(picture, label="test error", ticks=ticks)
bar.ax.set_yticklabels(ticks)
