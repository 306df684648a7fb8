r"""
Risk over the width, before and after one step
==============================================

The improvement by one step shrinks like :math:`d/N`: wide networks of this step size are random
features.
"""

import numpy as np

import giantstep as gs
from giantstep.derivations.one_gradient_step.figures import FiniteSizes

model = gs.OneGradientStep("tanh", "erf", alpha=2, step_size=6, noise_variance=0.1)
sizes = FiniteSizes([0.4, 0.8, 1.5, 4, 8], dimension=120, seeds=6, progress=False)
model.curve(beta=np.geomspace(0.2, 10, 300), ridge=0.01).plot(simulation=sizes)
