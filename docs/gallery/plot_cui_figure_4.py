r"""
Figure 4 of Cui et al.: spike strength and alignment
====================================================

Test error of given spiked random features. Dotted: with the cost of a finite width.
"""

from giantstep.derivations.spiked_random_features.paper_figures.numbered import paper_figure

found = paper_figure(4, dimension=100, seeds=3, progress=False)
