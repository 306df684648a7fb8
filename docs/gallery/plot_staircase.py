r"""
Climbing a staircase
====================

Neurons of three relu networks in planes of teacher directions, before and after each of three giant
steps on :math:`x_1 + x_1x_2 + x_2x_3`. Shaded is the subspace that is predicted to be learned by
then; below, singular values of the overlaps against their noise.
"""

import giantstep as gs

networks = gs.simulate_giant_steps(
    "x1 + x1*x2 + x2*x3",
    "relu",
    dimension=120,
    samples_factor=100,
    width=60,
    steps=3,
    step_size=2,
    seeds=3,
    progress=False,
)
networks.plot()
