r"""
Figure 6 of Cui et al.: vocabularies
====================================

Test error for readouts that are initialised with several letters, at a finite width and in
the limit.
"""

from giantstep.derivations.spiked_random_features.paper_figures.numbered import paper_figure

found = paper_figure(6, dimension=100, seeds=3, progress=False)
