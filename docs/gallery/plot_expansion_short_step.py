r"""
From random features to trained ones
====================================

The risk after a short step of size :math:`\eta`: a series in :math:`\eta^2` that begins with random
features. It stops to be useful where the step is as long as the neurons themselves.
"""

import giantstep as gs

model = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, noise_variance=0.25)
series = model.expansion("small_step", order=6, ridge=0.1)
print(series)
series.plot("trained", digits=30)
