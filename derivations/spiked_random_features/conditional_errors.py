r"""Conditional errors given κ, predicted by the theory, as control variates of simulations.

The free energy's test and training errors are averages over κ; their integrands at the saddle
point are what a simulated sample with projection κ has on average.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from ...numeric.conditional_prediction import ConditionalPrediction
from ...numeric.kernel_arrays import converged_tables
from ...symbolic.gaussian import GaussianExpectation
from ...symbolic.printing.compiled import compiled
from . import physics as symbols

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures

_FUNCTIONS = {
    symbols.mu0: "mu_0", symbols.mu1: "mu_1", symbols.mu2_squared: "mu_2_squared",
    symbols.chi: "chi", symbols.T0: "T_0", symbols.T1: "T_1", symbols.T2: "T_2",
}  # fmt: skip
_LARGEST, _STEP = 9.0, 1 / 16
"""Grid of κ: sharper features of a prediction are not worth following."""


def conditional_prediction(
    model: SpikedRandomFeatures, alpha: float, ridge: float
) -> ConditionalPrediction | None:
    r"""Return the conditional errors at the saddle point; None where they do not depend on κ.

    Parameters
    ----------
    model : SpikedRandomFeatures
    alpha, ridge : float

    Notes
    -----
    ``test`` is :math:`\mathbb{E}[(y - \hat y)^2 | \kappa] - \Delta` of a fresh sample,
    ``training`` that of a training sample.
    """
    if model.spike.spike_strength == 0:
        return None
    energy = model.symbolic().free_energy
    values = {
        **model._parameter_values(),
        **{k: float(v[0]) for k, v in model.solve_many([alpha], [ridge]).values.items()},
        "alpha": alpha,
        "ridge": ridge,
    }
    kernel = model._kernel
    assert kernel.tables is not None
    count = round(2 * _LARGEST / _STEP) + 1
    kappa = np.linspace(-_LARGEST, _LARGEST, count)
    tables = converged_tables(kernel.tables, [values[p] for p in kernel.table_parameters], kappa)
    columns = {**values, **tables, "kappa": kappa}
    names = {**_FUNCTIONS, **symbols.IDENTIFIERS, symbols.kappa: "kappa"}
    known = {x: name for x, name in names.items() if name in columns}
    errors = compiled([_integrand(e) for e in (energy.test_error, energy.training_error)], [*known])
    found = errors(*(columns[name] for name in known.values()))
    return ConditionalPrediction(
        kappa, *(np.broadcast_to(x, kappa.shape).astype(float) for x in found)
    )


def _integrand(average: sp.Expr) -> sp.Expr:
    """Return what is averaged over κ; the rest of the expression does not depend on it."""
    averages = average.atoms(GaussianExpectation)
    return average.xreplace(
        {node: node.args[0] for node in averages if node.args[1] == symbols.kappa}
    )
