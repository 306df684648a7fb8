r"""
Figure 3 of Cui et al.: functions that realise the bounds
=========================================================

The target along the spike and the functions that have the errors of the upper and lower bound.
"""

from giantstep.derivations.spiked_random_features.paper_figures.numbered import paper_figure

found = paper_figure(3, dimension=100, seeds=3, progress=False)
