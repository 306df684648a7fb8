r"""
Figure 7 of Cui et al.: step sizes
==================================

Functions that can be realised at several step sizes, and the bounds over the step.
"""

from giantstep.derivations.spiked_random_features.paper_figures.numbered import paper_figure

found = paper_figure(7, dimension=100, seeds=3, progress=False)
