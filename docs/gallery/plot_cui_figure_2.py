r"""
Figure 2 of Cui et al.: samples of the step
===========================================

Test error against sample complexity for several sample complexities of the step, with the error of
the best linear predictor, which kernels and plain random features cannot beat.
"""

from giantstep.derivations.spiked_random_features.paper_figures.numbered import paper_figure

found = paper_figure(2, dimension=100, seeds=3, progress=False)
