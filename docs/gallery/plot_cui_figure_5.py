r"""
Figure 5 of Cui et al.: width
=============================

Test error against the aspect ratio :math:`\beta = p/d` at a fixed step for each neuron, and at one
that shrinks like :math:`1/\beta`.
"""

from giantstep.derivations.spiked_random_features.paper_figures.numbered import paper_figure

found = paper_figure(5, dimension=100, seeds=3, progress=False)
