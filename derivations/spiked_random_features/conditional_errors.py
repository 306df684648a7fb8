r"""Conditional errors given κ, predicted by the theory, as control variates of simulations.

The free energy's test and training errors are averages over κ; their integrands at the saddle
point are what a simulated sample with projection κ has on average. Errors of simulated samples have
heavy tails in κ: the prediction e(κ) is subtracted at each sample, and its exact mean added again.
The expectation stays what it is, for any e.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from ...errors import ParameterError
from ...numeric.kernel_arrays import converged_tables
from ...numeric.networks.measure import errors
from ...numeric.networks.readout import TrainedNetwork
from ...numeric.networks.samples import READOUT, TEST
from ...symbolic.gaussian import GaussianExpectation
from ...symbolic.printing.compiled import compiled
from . import physics as symbols

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures

Array = NDArray[np.float64]

_FUNCTIONS = {
    symbols.mu0: "mu_0", symbols.mu1: "mu_1", symbols.mu2_squared: "mu_2_squared",
    symbols.chi: "chi", symbols.T0: "T_0", symbols.T1: "T_1", symbols.T2: "T_2",
}  # fmt: skip
_LARGEST, _STEP = 9.0, 1 / 16
"""Grid of κ: sharper features of a prediction are not worth following."""
_REFINEMENT = 8
"""Points of the average for each interval of the grid: the average is that of the interpolant."""


@dataclass(frozen=True, eq=False)
class ConditionalPrediction:
    """Predicted conditional errors on a grid.

    Parameters
    ----------
    kappa : array-like (g,)
        Increasing, equally spaced, covering at least [-6, 6].
    test, training : array-like (g,)
        Predicted conditional test and training error at these points.

    Raises
    ------
    ParameterError
        If shapes differ, values are not finite, or the grid is none of this kind.
    """

    kappa: Array
    test: Array
    training: Array

    def __post_init__(self) -> None:
        for name in ("kappa", "test", "training"):
            values = np.array(getattr(self, name), dtype=float)
            if values.ndim != 1 or values.shape != np.shape(self.kappa):
                raise ParameterError(f"{name} must hold one number for each point of kappa")
            if not np.isfinite(values).all():
                raise ParameterError(f"{name} holds a value that is not finite")
            object.__setattr__(self, name, values)
        gaps = np.diff(self.kappa)
        if len(gaps) < 3 or gaps.min() <= 0 or np.ptp(gaps) > 1e-9 * gaps.max():
            raise ParameterError("kappa must increase in equal steps")
        if self.kappa[0] > -6 or self.kappa[-1] < 6:
            raise ParameterError(
                f"kappa must cover [-6, 6], got [{self.kappa[0]:g}, {self.kappa[-1]:g}]"
            )

    @cached_property
    def _splines(self) -> tuple[CubicSpline, CubicSpline]:
        return CubicSpline(self.kappa, self.test), CubicSpline(self.kappa, self.training)

    @cached_property
    def means(self) -> tuple[float, float]:
        """Averages of both over a standard normal κ."""
        points = np.linspace(self.kappa[0], self.kappa[-1], _REFINEMENT * (len(self.kappa) - 1) + 1)
        weights = np.exp(-(points**2) / 2)
        weights /= weights.sum()
        test, training = (float(weights @ spline(points)) for spline in self._splines)
        return test, training

    def at(self, kappa: Array) -> tuple[Array, Array]:
        """Return both at given points; those beyond the grid count as its ends."""
        inside = np.clip(kappa, self.kappa[0], self.kappa[-1])
        test, training = (np.asarray(spline(inside)) for spline in self._splines)
        return test, training

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results."""
        content = b"".join(np.ascontiguousarray(a).tobytes() for a in (self.kappa, self.test))
        return sha256(content + self.training.tobytes()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ControlVariate:
    """Measures ``errors`` of a network, with predictions in the place of their scatter.

    Parameters
    ----------
    predictions : sequence of ConditionalPrediction
        One for each sample size of the readout.
    """

    predictions: Sequence[ConditionalPrediction]

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results."""
        return " ".join(prediction.digest for prediction in self.predictions)

    def __call__(self, trained: TrainedNetwork) -> dict[str, Array]:
        """Measure."""
        found = {name: values.copy() for name, values in errors(trained).items()}
        sizes = trained.readout.sizes
        for row, (prediction, size) in enumerate(zip(self.predictions, sizes, strict=True)):
            test, training = prediction.means
            fresh, fitted = trained.projections(TEST), trained.projections(READOUT, size)
            found["test_error"][row] += test - prediction.at(fresh)[0].mean()
            found["training_error"][row] += training - prediction.at(fitted)[1].mean()
        return found


def control_variate(
    model: SpikedRandomFeatures, alphas: Sequence[float], ridge: float
) -> ControlVariate | None:
    """Return that of the theory; None without a spike, when errors do not depend on κ."""
    found = [conditional_prediction(model, alpha, ridge) for alpha in alphas]
    known = [prediction for prediction in found if prediction is not None]
    return ControlVariate(tuple(known)) if known else None


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
    both = compiled([_integrand(e) for e in (energy.test_error, energy.training_error)], [*known])
    found = both(*(columns[name] for name in known.values()))
    return ConditionalPrediction(
        kappa, *(np.broadcast_to(x, kappa.shape).astype(float) for x in found)
    )


def _integrand(average: sp.Expr) -> sp.Expr:
    """Return what is averaged over κ; the rest of the expression does not depend on it."""
    averages = average.atoms(GaussianExpectation)
    return average.xreplace(
        {node: node.args[0] for node in averages if node.args[1] == symbols.kappa}
    )
