r"""
The interpolation peak as a series
==================================

At the interpolation threshold, :math:`n = N`, the risk of the ridge readout grows like
:math:`\lambda^{-1/2}`. Its series in :math:`\sqrt\lambda` follows order by order;
errors of its truncations fall with the powers that are left out.
"""

import giantstep as gs

model = gs.OneGradientStep("erf", "erf", alpha=1.5, beta=1.5, step_size=2, noise_variance=0.25)
series = model.expansion("small_ridge", order=2)
print(series)
series.plot("trained", digits=30)
