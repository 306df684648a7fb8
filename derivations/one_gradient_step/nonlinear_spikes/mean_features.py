r"""Mean features after a step, as an operator between functions of κ and of the step's readout.

Averaged over its initial row, neuron j responds to the step by
:math:`M(\kappa, g_j) = E\,\sigma(\theta g_j\kappa/\sqrt N + z)`: all degrees at once, where the
powers of :mod:`.physics` are its Taylor series. In orthonormal Hermite polynomials of κ the right
vectors are :math:`r_i = E_\kappa[M\,\mathrm{he}_i]`, their Gram matrix
:math:`\Gamma = N\,E_g[r\,r^\top]`, and the rest is as for powers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermevander
from numpy.typing import NDArray

from ....numeric.smoothed import Smoothed, resolved_panels
from ....runtime.quadrature import REACH, gauss_hermite_rule, legendre_panels, normal_density
from ....symbolic.expressions.activations import activation
from ...activation_functions import elementwise
from . import physics

Array = NDArray[np.float64]

ORDERS = (12, 16, 20)
"""Hermite polynomials that are tried; the last change of the risk is its estimated error."""

_NODES = 80


@dataclass(frozen=True)
class MeanFeatures:
    """The operator of a student, and the labels in the same basis.

    Attributes
    ----------
    letters, fractions : tuple of float, or None
        Law of the readout g; None for a normal one.
    """

    student: str
    teacher: str
    letters: tuple[float, ...] | None = None
    fractions: tuple[float, ...] | None = None

    @cached_property
    def _smoothed(self) -> Smoothed:
        result = activation(self.student)
        return Smoothed(elementwise(result), tuple(sorted(float(k) for k in result.kinks)))

    @cached_property
    def _readout(self) -> tuple[Array, Array]:
        if self.letters is not None:
            return np.array(self.letters), np.array(self.fractions)
        return gauss_hermite_rule(_NODES)

    @cached_property
    def _teacher(self) -> Array:
        """Coefficients of the teacher in orthonormal Hermite polynomials, the mean left out."""
        result = activation(self.teacher)
        function = elementwise(result)
        inner = [k for k in sorted(float(k) for k in result.kinks) if abs(k) < REACH]
        edges = np.unique([*np.arange(-math.ceil(REACH), math.ceil(REACH) + 1.0), *inner])
        scale = float(np.abs(function(np.linspace(-3.0, 3.0, 61))).max())
        nodes, weights = legendre_panels(resolved_panels(function, edges, scale))
        weighted = (weights * normal_density(nodes) * function(nodes)).ravel()
        coefficients = weighted @ _orthonormal(nodes.ravel(), ORDERS[-1])
        coefficients[0] = 0.0
        return np.asarray(coefficients)

    def gram(self, small: float, width: float) -> Array:
        r"""Return Γ, (n + 1, n + 1) for the largest order n.

        Parameters
        ----------
        small : float
            :math:`\theta/\sqrt N`.
        width : float
            N.
        """
        kappa, weights = gauss_hermite_rule(_NODES)
        basis = _orthonormal(kappa, ORDERS[-1]) * weights[:, None]
        readout, shares = self._readout
        right = self._smoothed(small * readout[:, None] * kappa) @ basis
        return np.asarray(width * (right * shares[:, None]).T @ right)

    def labels(self, alignment: float) -> Array:
        """Return the correlations of the labels with κ and with the basis, (n + 2, 1)."""
        shown = self._teacher * alignment ** np.arange(ORDERS[-1] + 1)
        return np.asarray(np.concatenate([shown[1:2], shown])[:, None])

    def risk(
        self, readout: Any, bulk: physics.Bulk, outside: tuple[float, float], *,
        effective_ridge: float, label_square: float, noise: float, small: float, width: float,
        alignment: float,
    ) -> tuple[float, float, float]:  # fmt: skip
        """Return risk and training error, and the estimated error of the risk.

        Parameters
        ----------
        readout : object
            With the shrinkage q and the derivative D of the effective ridge.
        bulk : Bulk
            In numbers.
        outside : (float, float)
            F and F' of the labels' linear part across the step's direction.
        """
        gram, labels = self.gram(small, width), self.labels(alignment)
        result = []
        for order in ORDERS:
            size = order + 2
            overlaps = np.eye(size)
            overlaps[0, 0] = 0.0
            overlaps[0, 2] = overlaps[2, 0] = 1.0  # κ itself is the polynomial of degree one
            spikes = bulk.spikes(gram[: size - 1, : size - 1], overlaps, labels[:size], _blocks)
            v = np.linalg.solve(np.eye(size) + overlaps @ spikes.resolvent, spikes.labels)
            result.append(
                physics.ErrorsOfSpikes.of(
                    readout, effective_ridge, label_square, noise,
                    outside[0] + spikes.explained(v), outside[1] + spikes.derivative(v),
                )
            )  # fmt: skip
        last, before = result[-1], result[-2]
        rounding = 64 * np.finfo(float).eps * label_square / readout.derivative
        error = abs(last.risk - before.risk) + rounding
        return float(last.risk), float(last.training_error), float(error)


def _orthonormal(points: Array, order: int) -> Array:
    """Hermite polynomials over √k! at points, a column each."""
    scales = [math.sqrt(math.factorial(k)) for k in range(order + 1)]
    return np.asarray(hermevander(points, order) / scales)


def _blocks(number: float, matrix: Array) -> Array:
    result = np.zeros((len(matrix) + 1, len(matrix) + 1))
    result[0, 0], result[1:, 1:] = number, matrix
    return result
