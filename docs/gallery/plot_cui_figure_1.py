r"""
Figure 1 of Cui et al.: learned function along the spike
========================================================

The function of the projection on the spike that a network learns, its measured values at a small
dimension, and the target.
"""

from giantstep.derivations.spiked_random_features.paper_figures.numbered import paper_figure

found = paper_figure(1, dimension=100, seeds=3, progress=False)
