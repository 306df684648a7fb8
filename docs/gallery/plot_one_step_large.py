r"""
What steps of order √N can fit
==============================

Left, the best function :math:`g_h` that neurons of one amplitude h add up to. Right, the error of
each amplitude; its smallest value :math:`\tau^*` may lie far below the error of the best linear
predictor, which bounds kernels.
"""

import giantstep as gs
from giantstep.derivations.one_gradient_step.large_steps import plot_large_steps

plot_large_steps(gs.large_step_limit("tanh", "sin"))
