r"""
Eigenvalues of the conjugate kernel
===================================

The kernel of features after one step: bulk, edge and outlier in the limit, and networks of
dimension 200 beside their linearised models.
"""

import giantstep as gs

model = gs.OneGradientStep("tanh", "tanh", alpha=1.5, beta=1.25, step_size=5)
networks = model.simulate_spectra(200, seeds=3, matrices=("kernel", "linearised"), progress=False)
model.conjugate_kernel().plot(networks)
