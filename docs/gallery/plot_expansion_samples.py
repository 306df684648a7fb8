r"""
Many samples: the limit and its corrections
===========================================

The test error of spiked random features for :math:`\alpha = n/d \to \infty`: the first term is the
limit :math:`E_\infty`, the next one its correction of order :math:`1/\alpha`.
"""

import giantstep as gs

model = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
series = model.expansion("large_alpha", order=3, ridge=0.1)
print(series)
series.plot()
