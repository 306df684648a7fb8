r"""
What one step improves
======================

Improvement of the risk over step size and samples. Dashed lines are the step sizes from which first
layer and kernel have an outlier; the improvement does not notice them.
"""

import numpy as np

import giantstep as gs

model = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, noise_variance=0.25)
curve = model.curve(step_size=np.linspace(0, 6, 81), alpha=np.geomspace(0.25, 8, 81), ridge=0.1)
curve.plot("improvement")
