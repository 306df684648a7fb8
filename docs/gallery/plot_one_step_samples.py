r"""
Risk over the samples, before and after one step
================================================

Risk of a ridge readout on random features and after one gradient step of size :math:`\eta = 2`,
against the samples of both, with the peak at :math:`n = N`. Squares are the model with Gaussian
features, circles networks with their full gradient step.
"""

import numpy as np

import giantstep as gs
from giantstep.derivations.one_gradient_step.figures import FiniteSizes

model = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2, noise_variance=0.25)
sizes = FiniteSizes([0.4, 0.8, 2, 4, 8], dimension=120, seeds=6, progress=False)
model.curve(alpha=np.geomspace(0.25, 8, 300), ridge=0.001).plot(simulation=sizes)
