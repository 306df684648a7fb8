r"""
Figure 8 of Cui et al.: spectrum of the features
================================================

Bulk of the spectrum of the feature covariance with eigenvalues of small networks.
"""

from giantstep.derivations.spiked_random_features.paper_figures.numbered import paper_figure

found = paper_figure(8, dimension=100, seeds=3, progress=False)
