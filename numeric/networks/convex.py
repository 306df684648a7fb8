r"""Readouts of a convex loss with a ridge penalty, by SciPy, each with a certificate.

Losses are functions of a label y and a prediction x that a caller brings. A smooth loss comes with
its derivative in x, a loss with kinks with its proximal operator
:math:`\mathrm{prox}_s(z) = \mathrm{argmin}_x\ \ell(y, x) + (x - z)^2/(2s)`.

Minimised is :math:`\sum_\mu \ell(y_\mu, F_\mu\cdot w) + \frac\lambda2 |w|^2`. Smooth losses go to
L-BFGS-B. Losses with kinks go to the method of multipliers (Rockafellar, Math. Oper. Res. 1, 97,
1976): the loss is replaced by its Moreau envelope around the current multipliers, the smooth
problem is solved by SciPy's trust-region Newton method, which takes few steps because envelopes of
such losses are piecewise quadratic, and the multipliers move to the slopes of the envelope.

L-BFGS-B on the dual problem with box constraints is as fast, but ends at relative duality gaps of
1e-8 to 1e-6; this reaches 1e-10. Certificates bound what is lost: (objective − minimum)/objective,
by strong convexity for a smooth loss, by the duality gap otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ...errors import ConvergenceError, ParameterError

__all__ = [
    "ConvexFit", "Loss", "ProximalLoss", "SmoothLoss", "fit_convex", "proximal_loss",
    "smooth_loss",
]  # fmt: skip

Array = NDArray[np.float64]
LossFunction = Callable[[Array, Array], Any]
ProximalFunction = Callable[[Array, Array, float], Any]


@dataclass(frozen=True, slots=True)
class SmoothLoss:
    """A convex loss with its derivative.

    Attributes
    ----------
    name : str
        Identifies the loss in stored results.
    value, slope : callable
        Of label and prediction, two arrays of equal shape; derivative in the prediction.
    binary : bool
        Labels must be ±1.
    """

    name: str
    value: LossFunction
    slope: LossFunction
    binary: bool = False


@dataclass(frozen=True, slots=True)
class ProximalLoss:
    """A convex loss, possibly with kinks, with its proximal operator.

    Attributes
    ----------
    name : str
    value : callable
        Of label and prediction.
    proximal, proximal_slope : callable
        Of y, z and the step s: the proximal point and its derivative in z, in [0, 1].
    binary : bool
        Labels must be ±1.
    """

    name: str
    value: LossFunction
    proximal: ProximalFunction
    proximal_slope: ProximalFunction
    binary: bool = False


Loss = SmoothLoss | ProximalLoss


def smooth_loss(
    value: LossFunction, slope: LossFunction, *, name: str, binary: bool = False
) -> SmoothLoss:
    """Return a smooth convex loss from functions of (y, x).

    Raises
    ------
    ParameterError
        If one cannot be called, or there is no name.
    """
    _require_functions(name, value=value, slope=slope)
    return SmoothLoss(name, value, slope, binary)


def proximal_loss(
    value: LossFunction,
    proximal: ProximalFunction,
    proximal_slope: ProximalFunction,
    *,
    name: str,
    binary: bool = False,
) -> ProximalLoss:
    """Return a convex loss with kinks from its value and its proximal operator.

    Raises
    ------
    ParameterError
        If one cannot be called, or there is no name.
    """
    _require_functions(name, value=value, proximal=proximal, proximal_slope=proximal_slope)
    return ProximalLoss(name, value, proximal, proximal_slope, binary)


def _require_functions(name: object, **functions: object) -> None:
    if not isinstance(name, str) or not name:
        raise ParameterError(f"name of a loss must be a text, got {name!r}")
    for argument, function in functions.items():
        if not callable(function):
            raise ParameterError(f"{argument} of loss {name!r} must be a function")


def require_loss(loss: object) -> Loss:
    """Return a loss as it is.

    Raises
    ------
    ParameterError
        If it is none.
    """
    if isinstance(loss, SmoothLoss | ProximalLoss):
        return loss
    raise ParameterError(
        f"loss must be made by smooth_loss(value, slope) or proximal_loss(value, proximal, "
        f"proximal_slope), got {loss!r}"
    )


REQUIRED = 1e-8
"""Largest certificate that is accepted."""
WANTED = 1e-11
"""A certificate at which work ends."""

_SMOOTH_RESTARTS = 8
_MULTIPLIER_STEPS = 40
_SHARPENING = 3.0
_STALLED_STEPS = 8
_POLISHING_STEPS = 5
"""Steps without halving the gap: early ones bring little, late ones only rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class ConvexFit:
    """A readout and what is known of its quality.

    Attributes
    ----------
    coefficients : ndarray, shape (p,)
    objective : float
        Sum of the losses and the penalty.
    certificate : float
        Upper bound of (objective − minimum) / objective.
    iterations : int
    """

    coefficients: Array
    objective: float
    certificate: float
    iterations: int


def fit_convex(
    features: Array, labels: Array, loss: Loss, ridge: float, start: Array | None = None
) -> ConvexFit:
    """Fit a readout.

    Parameters
    ----------
    features : ndarray, shape (n, p)
    labels : ndarray, shape (n,)
    loss : Loss
    ridge : float
        λ > 0.
    start : ndarray, shape (p,), optional

    Raises
    ------
    ConvergenceError
        If the certificate stays above 1e-8: the penalty is too small for double precision.
    ParameterError
        If the loss has values that are not finite, or needs labels ±1 and they are others.
    """
    if loss.binary and not np.all(np.abs(labels) == 1):
        raise ParameterError(f"loss {loss.name!r} needs labels ±1; choose labels='sign' or a loss")
    n, p = features.shape
    if n < p:
        # The minimiser is a combination of the samples: n coordinates suffice.
        frame, triangle = np.linalg.qr(features.T)
        inner = fit_convex(
            np.ascontiguousarray(triangle.T), labels, loss, ridge,
            None if start is None else frame.T @ start,
        )  # fmt: skip
        return ConvexFit(
            frame @ inner.coefficients, inner.objective, inner.certificate, inner.iterations
        )
    begin = np.zeros(p) if start is None else start
    with np.errstate(all="ignore"):
        if isinstance(loss, ProximalLoss):
            found = _by_multipliers(features, labels, loss, ridge, begin)
        else:
            found = _by_quasi_newton(features, labels, loss, ridge, begin)
    if not found.certificate <= REQUIRED:
        raise ConvergenceError(
            f"readout with loss {loss.name!r} did not converge: its objective may be "
            f"{found.certificate:.1e} of itself above the minimum, allowed is {REQUIRED:.0e}\n"
            f"  use a ridge larger than {ridge:g}, or see whether the loss is convex",
            found.coefficients,
            found.certificate,
        )
    return found


def _by_quasi_newton(
    features: Array, labels: Array, loss: SmoothLoss, ridge: float, w: Array
) -> ConvexFit:
    def objective(w: Array) -> tuple[float, Array]:
        x = features @ w
        value = float(np.sum(loss.value(labels, x))) + ridge / 2 * float(w @ w)
        # Where a loss is linear its slope is one number.
        slopes = np.broadcast_to(loss.slope(labels, x), labels.shape)
        gradient = slopes @ features + ridge * w
        return value, gradient

    _require_finite(loss, objective(w)[0])
    iterations = 0
    for _ in range(_SMOOTH_RESTARTS):
        found = scipy.optimize.minimize(
            objective, w, jac=True, method="L-BFGS-B",
            options={"maxcor": 40, "gtol": 0.0, "ftol": 0.0, "maxiter": 5000, "maxfun": 10000},
        )  # fmt: skip
        iterations += found.nit
        w = found.x
        value, gradient = objective(w)
        # Strong convexity: the minimum is at least value − |gradient|²/(2 ridge).
        certificate = float(gradient @ gradient / ridge / (2 * _positive(value)))
        if certificate <= WANTED or found.nit == 0:
            break
    _require_finite(loss, value)
    return ConvexFit(w, value, certificate, iterations)


def _by_multipliers(
    features: Array, labels: Array, loss: ProximalLoss, ridge: float, w: Array
) -> ConvexFit:
    slopes = np.zeros(len(labels))
    # Envelopes as wide as the labels scatter, then sharper and sharper ones.
    sharpness = 1 / (float(np.std(labels)) or 1.0)
    best, iterations, stalled = None, 0, 0

    def objective(w: Array) -> float:
        return float(np.sum(loss.value(labels, features @ w))) + ridge / 2 * float(w @ w)

    _require_finite(loss, objective(w))
    for _ in range(_MULTIPLIER_STEPS):
        envelope = _Envelope(features, labels, loss, ridge, slopes, sharpness)
        scale = float(np.linalg.norm(envelope(w)[1]))
        found = scipy.optimize.minimize(
            envelope, w, jac=True, hess=envelope.hessian, method="trust-exact",
            options={
                "gtol": 1e-12 * scale + 1e-300, "maxiter": 500,
                "initial_trust_radius": 1.0 + float(np.linalg.norm(w)), "max_trust_radius": 1e9,
            },
        )  # fmt: skip
        iterations += found.nit
        w = envelope.polished(found.x)
        points, slopes = envelope.points_and_slopes(w)
        value = objective(w)
        _require_finite(loss, value)
        # The conjugate is slope * x - loss at the proximal point x, whose subgradient the slope is.
        combined = slopes @ features
        dual = float(np.sum(loss.value(labels, points) - slopes * points))
        dual -= float(combined @ combined) / (2 * ridge)
        certificate = max(value - dual, 0.0) / _positive(value)
        stalled = 0 if best is None or certificate < best.certificate / 2 else stalled + 1
        if best is None or certificate < best.certificate:
            best = ConvexFit(w, value, certificate, iterations)
        if best.certificate <= WANTED or stalled == _STALLED_STEPS:
            break
        sharpness *= _SHARPENING
    assert best is not None
    return ConvexFit(best.coefficients, best.objective, best.certificate, iterations)


class _Envelope:
    r"""Smooth problem around multipliers g: envelopes of the loss at :math:`F w + g/\tau`."""

    def __init__(
        self,
        features: Array,
        labels: Array,
        loss: ProximalLoss,
        ridge: float,
        slopes: Array,
        sharpness: float,
    ) -> None:
        self.features, self.labels, self.loss, self.ridge = features, labels, loss, ridge
        self.shift, self.sharpness = slopes / sharpness, sharpness

    def points_and_slopes(self, w: Array) -> tuple[Array, Array]:
        """Proximal points and slopes of the envelope there."""
        centres = self.features @ w + self.shift
        points = np.asarray(self.loss.proximal(self.labels, centres, 1 / self.sharpness))
        return points, self.sharpness * (centres - points)

    def __call__(self, w: Array) -> tuple[float, Array]:
        points, slopes = self.points_and_slopes(w)
        value = float(np.sum(self.loss.value(self.labels, points) + slopes**2 / 2 / self.sharpness))
        return (
            value + self.ridge / 2 * float(w @ w),
            slopes @ self.features + self.ridge * w,
        )

    def polished(self, w: Array) -> Array:
        """Newton's steps as long as the slope falls, below what differences of values resolve."""
        slope = self(w)[1]
        for _ in range(_POLISHING_STEPS):
            try:
                moved = w - np.linalg.solve(self.hessian(w), slope)
            except np.linalg.LinAlgError:  # the penalty is lost in rounding
                break
            other = self(moved)[1]
            if not np.linalg.norm(other) < np.linalg.norm(slope) / 2:
                break
            w, slope = moved, other
        return w

    def hessian(self, w: Array) -> Array:
        """Generalised second derivative."""
        centres = self.features @ w + self.shift
        moved = self.loss.proximal_slope(self.labels, centres, 1 / self.sharpness)
        curvature = self.sharpness * (1 - np.asarray(moved))
        used = curvature > 0
        weighted = self.features[used] * np.sqrt(curvature[used])[:, None]
        matrix = np.asarray(weighted.T @ weighted)
        matrix.reshape(-1)[:: len(matrix) + 1] += self.ridge
        return matrix


def _positive(value: float) -> float:
    return max(abs(value), 1e-300)


def _require_finite(loss: Loss, value: float) -> None:
    if not math.isfinite(value):
        raise ParameterError(f"loss {loss.name!r} has a value that is not finite")
