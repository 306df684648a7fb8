r"""The expected kernel, the covariance of the features over fresh inputs: limit and matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ClosedFormNotFoundError
from ....pages import Block, Page, Typeset
from ...derived import derived

if TYPE_CHECKING:
    from ..model import OneGradientStep
    from .spectrum import ConjugateKernel

Real = NDArray[np.float64]


@dataclass(frozen=True)
class ExpectedKernel(Page, Typeset):
    r"""The limit of :math:`\Sigma_\Phi = \mathbb{E}_x\,\sigma(W^\top x)\,\sigma(x^\top W)`.

    For odd students :math:`\|\Sigma_\Phi - (\mu_1^2W^\top W + \mu_{>1}^2)\| \to 0` at fixed step
    size (Ba et al., arXiv 2205.01445). Larger steps break it: the cross term of the coefficients
    of degree one and three gives a difference of order η⁴/N, by power counting.

    Attributes
    ----------
    linear, residual : float
        μ1² and μ_{>1}².
    edges : tuple of float
        Smallest and largest eigenvalue of the bulk of the limit, N/d times Marchenko–Pastur.
    outlier : float or None
        Eigenvalue of the limit that the step adds, if :math:`\theta_1^2 > \sqrt\beta`.
    second : float
        :math:`c_2 = \mathbb{E}\,\sigma\,\mathrm{He}_2`.
    spike : float
        :math:`c_2^2\beta/2`: what Σ has along (1, …, 1) beyond the limit. Zero for odd students;
        for others it does not vanish with d.
    odd : bool
    standing : str
        The verdict on the model's Gaussian equivalence.
    """

    linear: float
    residual: float
    edges: tuple[float, float]
    outlier: float | None
    second: float
    spike: float
    odd: bool
    standing: str

    @property
    def difference_exponents(self) -> tuple[int, int]:
        """Powers of η and N in the order of the difference from the limit: heuristic."""
        return 4, -1

    @property
    def rests_on(self) -> str:
        """What kind of argument the result rests on."""
        if self.odd:
            return self.standing
        return (
            f"{self.standing}; the spike along (1, …, 1) is derived here from the coefficient of "
            "degree two"
        )

    def page(self) -> Iterable[Block]:
        """Return the limit, its bulk and what stands out of it."""
        yield (
            f"expected kernel: {self.linear:.6g} W^T W + {self.residual:.6g}, bulk "
            f"[{self.edges[0]:.6g}, {self.edges[1]:.6g}]"
        )
        yield "outlier of the step: " + ("none" if self.outlier is None else f"{self.outlier:.6g}")
        if not self.odd:
            yield f"spike along (1, …, 1) beyond it: {self.spike:.6g}"

    def latex(self) -> str:
        """Return the limit in LaTeX, without delimiters."""
        shown = rf"{self.linear:.6g}\,W^\top W + {self.residual:.6g}\,I"
        if self.spike:
            shown += rf" + {self.spike:.6g}\,\tfrac1N\mathbf 1\mathbf 1^\top"
        return rf"\Sigma_\Phi \to {shown}"


def expected_kernel(kernel: ConjugateKernel) -> ExpectedKernel:
    """Return the expected kernel of a model, before or after its step."""
    curve, model = kernel._law, kernel.model
    ctx, functions = curve.context, curve.functions
    alpha, beta, slope, floor = curve._numbers
    second = ctx.mpf(_second_coefficient(model))
    root = ctx.sqrt(beta)
    outlier = None
    spike = ctx.mpf(kernel.spike)
    if curve.pure_noise:
        edges = (floor, floor)
    else:
        kappa = floor / slope

        def place(x: Any) -> Any:
            return slope * functions.population_place(x, alpha, beta, kappa)

        low = place(-root) if beta <= 1 else floor
        edges = (low, place(root))
        outlier = float(place(spike)) if spike > root else None
    return ExpectedKernel(
        linear=float(slope),
        residual=float(floor),
        edges=(float(edges[0]), float(edges[1])),
        outlier=outlier,
        second=float(second),
        spike=float(functions.expected_spike(second, beta)),
        odd=model.student_moments.odd,
        standing=model.standing,
    )


def _second_coefficient(model: OneGradientStep) -> str:
    return "0" if model.student_moments.odd else _second_hermite(model.cache, model.student)


@derived("one_gradient_step/second_coefficient", str)
def _second_hermite(student: str) -> str:
    from ....symbolic.activations import activation
    from ....symbolic.hermite import hermite_coefficient

    return str(hermite_coefficient(activation(student, argument="student"), 2).evalf(40))


# ---------------------------------------------------------------------- of a given first layer


def expected_matrix(model: OneGradientStep, weights: Real) -> Real:
    r"""Return :math:`\mathbb{E}_x\,\sigma(W^\top x)\,\sigma(x^\top W)` of the (centred) student.

    Parameters
    ----------
    model : OneGradientStep
    weights : array (d, N)
        A column for each neuron, of any length.

    Raises
    ------
    ClosedFormNotFoundError
        If the rules for Gaussian pairs give no closed form, as for tanh.
    """
    pair, mean = _functions(model.student)
    inner = weights.T @ weights
    square = np.diag(inner)
    # A correlation of one may be rounded to one that has no angle.
    largest = np.sqrt(np.outer(square, square)) * (1 - 4 * np.finfo(float).eps)
    found: Real = pair(square[:, None], square[None, :], np.clip(inner, -largest, largest))
    offset = model.student_moments.mean
    if model.centre and offset:
        means = np.broadcast_to(mean(square), square.shape)
        found = found - offset * (means[:, None] + means[None, :]) + offset**2
    return found


def difference_norm(model: OneGradientStep, weights: Real) -> float:
    r"""Return the operator norm of the difference from :math:`\mu_1^2W^\top W + \mu_{>1}^2`."""
    moments = model.student_moments
    limit = moments.linear**2 * weights.T @ weights
    limit += moments.residual * np.eye(weights.shape[1])
    return float(np.linalg.norm(expected_matrix(model, weights) - limit, 2))


@lru_cache(maxsize=32)
def _functions(student: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    import sympy as sp

    from ....symbolic.activations import activation
    from ....symbolic.activations import z as variable
    from ....symbolic.gaussian import expect
    from ....symbolic.printing.compiled import compiled
    from ..pair_kernels import c, p, pair_kernel, q

    sigma = activation(student, argument="student")
    kernel = pair_kernel(sigma, sigma)
    if kernel is None:
        raise ClosedFormNotFoundError(
            f"the kernel of student {student!r} has no closed form by rule; erf and relu have one"
        )
    mean = expect(sigma(sp.sqrt(q) * variable), variable)
    return compiled(kernel, (p, q, c)), compiled(mean, (q,))
