r"""
A learning curve, and networks beside it
========================================

Test error of a tanh network after one giant step of size :math:`s = 3` on :math:`20\,d` samples of
a sine teacher. The line is the theory for :math:`d \to \infty`, points are eight networks of
dimension 150 with the standard error of their mean.
"""

import matplotlib.pyplot as plt
import numpy as np

import giantstep as gs

model = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
curve = model.curve(alpha=np.linspace(0.2, 3, 80), ridge=0.1)
networks = model.simulate(
    dimension=150, alpha=[0.4, 0.8, 1.2, 1.6, 2.0, 2.4, 2.8], ridge=0.1, seeds=8, progress=False
)
figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
curve.plot(simulation=networks, ax=axes)
