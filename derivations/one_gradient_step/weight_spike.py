r"""The largest singular value of the first layer after the step, and where its vectors point.

Numbers come from functions printed once from :mod:`.weight_spike_theory` and kept as text. One
point is computed with at least 40 digits and then rounded: next to the threshold
:math:`\theta_1 = \beta^{1/4}` nothing is lost. Floats are read as the decimal numbers that they
print as.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...digits import checked_digits
from ...errors import ParameterError
from ...pages import Block, Indented
from ...result import Number, Result, Row, quantity
from ...runtime.precision import local_context
from ..certificates.certificate import CertifiedValues, certificate_wanted
from .weight_spike_values import SpikePoint, array_functions, require_finite

if TYPE_CHECKING:
    from .model import OneGradientStep

Real = NDArray[np.float64]

# Instead of zero, where a density has its limit from above; its inverse is a float.
_SMALLEST = 1e-300


@dataclass(frozen=True, repr=False)
class WeightSpike(Result):
    r"""Spectrum of the first layer after one step, for d → ∞: a bulk and at most one outlier.

    Numbers are floats, or mpmath numbers if digits were asked for.

    Attributes
    ----------
    model : OneGradientStep
    theta1, theta2 : float
        Length of the spike u of :math:`W_1 = W_0 + u\,a^\top`, |a| = 1, and its part along the
        teacher's direction. θ1 holds the label noise.
    alignment : float
        γ, the cosine of u and the teacher's direction; for η → 0 or μ1 → 0 its limit (from above),
        and zero where no limit is.
    critical_step_size : float
        Step size from which there is an outlier, for the `loss` of the model; inf if there is none
        at any step size.
    supercritical : bool
        Whether the step is larger: then :math:`\theta_1 > \beta^{1/4}`.
    singular_value : float
        Largest singular value; the edge of the bulk if there is no outlier.
    bulk_edges : tuple of float
        Smallest and largest singular value of the bulk, |1 − √β| and 1 + √β.
    alignment_spike, alignment_teacher, alignment_readout : float
        Squared overlaps of the largest singular value's left vector with u/|u| and with the
        teacher's direction, and of its right vector with the readout a of the step; zero if there
        is no outlier.
    atom : float
        Share of zeros among the eigenvalues of the d × d matrix :math:`WW^\top`, max(0, 1 − β).
    digits : int or None
        Digits asked for.
    certificate : CertifiedValues or None
        Proven intervals of these numbers, which are then their midpoints.
    """

    _document = "first layer after one step"

    model: OneGradientStep
    theta1: Number = field(metadata=quantity("length of the spike theta1", r"\theta_1"))
    theta2: Number = field(metadata=quantity("along the teacher theta2", r"\theta_2"))
    alignment: Number = field(metadata=quantity("cosine with the teacher", r"\gamma"))
    critical_step_size: Number = field(metadata=quantity("critical step size", r"\eta_c"))
    supercritical: bool
    singular_value: Number = field(metadata=quantity("largest singular value", "s_1(W_1)"))
    alignment_spike: Number = field(
        metadata=quantity("squared overlap with the spike", r"\langle u_1, u\rangle^2/|u|^2")
    )
    alignment_teacher: Number = field(
        metadata=quantity("squared overlap with the teacher", r"\langle u_1, \beta_*\rangle^2")
    )
    alignment_readout: Number = field(
        metadata=quantity("squared overlap with the readout", r"\langle v_1, a\rangle^2")
    )
    bulk_edges: tuple[Number, Number] = field(
        metadata=quantity("bulk of singular values", r"[s_\mathrm{min}, s_\mathrm{max}]")
    )
    atom: Number = field(metadata=quantity("share of zeros of W W^T", r"\max(0, 1 - \beta)"))
    digits: int | None = None
    certificate: CertifiedValues | None = None

    @property
    def spike_strength(self) -> Any:
        """θ1."""
        return self.theta1

    @property
    def aligned_strength(self) -> Any:
        """θ2."""
        return self.theta2

    @property
    def beta(self) -> float:
        """Aspect ratio N/d."""
        return self.model.beta

    @property
    def rests_on(self) -> str:
        """What the numbers rest on."""
        precision = "float" if self.digits is None else f"{self.digits} digits"
        if self.certificate is not None:
            precision = self.certificate.rests_on
        return (
            f"{precision}, from closed forms; largest singular value of a random matrix with a "
            "perturbation of rank one (Ba et al., arXiv 2205.01445; label noise derived here)"
        )

    @classmethod
    def _imported(cls) -> dict[str, Any]:
        from .model import OneGradientStep

        return {"OneGradientStep": OneGradientStep}

    @property
    def verdict(self) -> str:
        """Whether there is an outlier, and from which step size on."""
        if self.critical_step_size == math.inf:
            return "no step size makes an outlier"
        found = "an outlier" if self.supercritical else "no outlier"
        return f"{found}: the critical step size is {self.text(self.critical_step_size)}"

    def rows(self) -> list[Row]:
        """Return the numbers; the share of zeros only where there are some."""
        return [row for row in super().rows() if row.name != "atom" or self.atom]

    def page(self) -> Iterable[Block]:
        """Return the numbers, whether there is an outlier, and what they rest on."""
        numbers, rests_on = super().page()
        yield f"first layer after {self.model}"
        yield Indented([numbers, self.verdict, rests_on])

    def density(self, x: ArrayLike) -> Any:
        """Return the density of the singular values, without the outlier, at points x.

        Normalised to the min(d, N) singular values of the d × N matrix: its mass is one.

        Raises
        ------
        ParameterError
            If x are no real numbers.
        """
        found = array_functions(self.model)
        lower, upper = map(float, self.bulk_edges)
        return _inside(x, lower, upper, lambda s: found.density(s, lower, upper, self.beta))

    def gram_density(self, x: ArrayLike) -> Any:
        r"""Return the density of the eigenvalues of :math:`WW^\top`, squared singular values.

        Normalised to the d eigenvalues: its mass is min(1, β), and :attr:`atom` is at zero. At
        β = 1 it is infinite at zero.

        Raises
        ------
        ParameterError
            If x are no real numbers.
        """
        found = array_functions(self.model)
        lower, upper = map(float, self.bulk_edges)
        values = _inside(x, lower**2, upper**2, lambda v: found.gram_density(v, lower, upper))
        if lower == 0:
            values = np.where(np.asarray(x) == 0, math.inf, values)[()]
        return values

    def plot(self, singular_values: Any = None, *, ax: Any = None) -> Any:
        """Draw density and outlier; see :func:`.weight_spike_figure.plot_singular_values`."""
        from .weight_spike_figure import plot_singular_values

        return plot_singular_values(self, singular_values, ax=ax)


def weight_spike(
    model: OneGradientStep, digits: object = None, certify: object = False
) -> WeightSpike:
    """Return the spike of the first layer; see ``OneGradientStep.weight_spike``.

    Raises
    ------
    ParameterError
        If `digits` is no positive whole number, or the spike is too large for a float.
    CertificationError, MissingDependencyError
        If a proof is asked for and does not succeed, or needs python-flint.
    """
    count = None if digits is None else checked_digits(digits)
    if certificate_wanted(certify):
        return _certified(weight_spike(model, count))
    point = SpikePoint(model, count)
    theta1, theta2 = point.lengths()
    gamma = point.alignment()
    ratio, distance = point.position(model.step_size)
    top, left, right = point.outlier(ratio, distance)
    share = gamma**2 * left
    ctx = point.ctx
    values: dict[str, Any] = {
        "theta1": theta1,
        "theta2": theta2,
        "alignment": gamma,
        "critical_step_size": point.critical,
        "singular_value": top,
        "alignment_spike": left,
        "alignment_teacher": share,
        "alignment_readout": right,
        "atom": max(ctx.zero, 1 - point.root_beta**2),
    }
    edges: tuple[Any, ...] = point.edges()
    if count is None:
        values = {name: float(value) for name, value in values.items()}
        edges = tuple(map(float, edges))
        require_finite(model, values["theta1"])
    return WeightSpike(
        model=model,
        supercritical=bool(distance > 0),
        bulk_edges=(edges[0], edges[1]),
        digits=count,
        **values,
    )


def _certified(found: WeightSpike) -> WeightSpike:
    from ..certificates.certificate import midpoint
    from .certified_spikes import DEFAULT_DIGITS, certified_weight_spike

    proof = certified_weight_spike(found.model, found.digits or DEFAULT_DIGITS)
    ctx = None if found.digits is None else local_context(found.digits)
    numbers: dict[str, Any] = {name: midpoint(proof[name], ctx) for name in proof}
    return replace(
        found,
        **numbers,
        supercritical=not proof["alignment_readout"].is_exact,
        certificate=proof,
    )


def _inside(x: ArrayLike, lower: float, upper: float, function: Callable[[Real], Any]) -> Any:
    try:
        points = np.asarray(x)
        if points.dtype.kind not in "fiu":
            raise TypeError
    except (TypeError, ValueError):
        raise ParameterError(f"x must be a real number or an array of them, got {x!r}") from None
    points = points.astype(float)
    if np.isnan(points).any():
        raise ParameterError("x must hold no nan")
    found = np.zeros(points.shape)
    inside = (points >= lower) & (points <= upper)
    # At zero, which is inside only if β = 1, the limit from above.
    found[inside] = function(np.maximum(points[inside], _SMALLEST))
    return found[()]
