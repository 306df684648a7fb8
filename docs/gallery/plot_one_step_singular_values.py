r"""
Singular values of the first layer
==================================

One gradient step moves one singular value out of the bulk if it is longer than a critical size.
Bars are networks of dimension 300 with their full gradient.
"""

import giantstep as gs

model = gs.OneGradientStep("tanh", "relu", alpha=4, beta=2, step_size=6, centre=True)
networks = model.simulate_spectra(300, seeds=3, matrices=("weights",), progress=False)
model.weight_spike().plot(networks)
