r"""The first gradient of a whole layer: a spike of rank one and a bulk.

With :math:`\sigma' = \mu_1 + \sigma'_\perp` the gradient of n = α0 d samples is G = A + B + C. Of
rank one is :math:`A = \mu_1 X^Ty\,a^T/(n\sqrt N)`; B has :math:`\sigma'_\perp` in the place of
μ_1; C, of rank one too, is what the network's own output contributes (Ba et al., arXiv 2205.01445,
section 3; see :mod:`giantstep.numeric.networks.gradient` for the matrices). Their limits for
d, n, N → ∞ follow from one rule: for a function v of a Gaussian sample,

.. math:: |X^Tv/n|^2 \to |\mathbb{E}[v\,x]|^2 + \mathbb{E}\,v^2/\alpha_0 .

Notation of the toolkit: α0 = n/d is ψ1 of the source, Δ the noise variance, and the residual
variance of the student, μ_2² there, is :math:`\mathbb{E}\sigma^2 - \mu_0^2 - \mu_1^2`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from ...errors import ParameterError
from ...numeric.arguments import nonnegative_number, positive_number
from ...pages import Typeset
from ...symbolic.expressions.activations import Activation, activation
from ...symbolic.hermite.coefficients import (
    correlation_square,
    hermite_coefficient,
    slope_variance,
    variance,
)
from ...symbolic.targets.target import Target, target as read_target
from ..formulas import latex
from ..symbols import alpha0, noise


@dataclass(frozen=True, repr=False)
class FirstStep(Typeset):
    r"""Limits of the parts of the first gradient, exact, in α0 and Δ.

    Attributes
    ----------
    mean_derivative : Expr
        :math:`\mu_1 = \mathbb{E}\,\sigma'`.
    linear_part : Matrix, shape (r, 1)
        :math:`C_1 = \mathbb{E}[f(x)\,x]` in the frame of the target.
    label_square : Expr
        :math:`\mathbb{E}\,y^2 = \mathbb{E} f^2 + \Delta`; of the centred target if asked for.
    spike : Expr
        Limit of :math:`\sqrt N\,|A|_{op} = \sqrt N\,|A|_F`.
    bulk : Expr
        Limit of :math:`\sqrt N\,|B|_F`; its operator norm is smaller by :math:`\sqrt N`, up to
        logarithms. A target with mean :math:`C_0` adds :math:`(\mu_2 C_0)^2` to the square, from
        the term :math:`w\,\mu_2 C_0` of the gradient expansion; Ba et al. assume :math:`C_0 = 0`.
    output : Expr
        Limit of :math:`N\,|C|_{op}` for the student :math:`\sigma - \mu_0`.
    alignment : Expr
        Squared cosine of :math:`X^Ty` and :math:`C_1`, γ².
    """

    student: Activation
    target: Target
    mean_derivative: sp.Expr
    linear_part: sp.Matrix
    label_square: sp.Expr
    spike: sp.Expr
    bulk: sp.Expr
    output: sp.Expr
    alignment: sp.Expr

    @property
    def population_spike(self) -> sp.Matrix:
        r"""The spike with infinitely many samples, :math:`\mu_1 C_1`, for a neuron with a = 1."""
        return self.mean_derivative * self.linear_part

    def values(self, *, alpha: float, noise_variance: float = 0.0) -> dict[str, float]:
        """Return the limits as numbers.

        Parameters
        ----------
        alpha : float
            α0 = n/d, positive; inf for the population gradient.
        noise_variance : float
            Δ, >= 0.

        Raises
        ------
        ParameterError
            If one is outside its range.
        """
        rule = {
            alpha0: sp.oo if alpha == math.inf else sp.Float(positive_number("alpha", alpha), 17),
            noise: sp.Float(nonnegative_number("noise_variance", noise_variance), 17),
        }
        named = dict.fromkeys((*self.student.parameters, *self.target.parameters))
        if named:
            raise ParameterError(
                f"the limits hold {', '.join(map(str, named))}; give values to the parameters, or "
                "take the expressions"
            )
        return {name: float(e.subs(rule).evalf(17)) for name, e in self._limits().items()}

    def _limits(self) -> Mapping[str, sp.Expr]:
        names = ("spike", "bulk", "output", "alignment")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        return (
            f"FirstStep({self.student} on {self.target}: spike {self.spike}, bulk {self.bulk}, "
            f"alignment {self.alignment})"
        )

    def latex(self) -> str:
        """Return the limits as lines of LaTeX, without delimiters."""
        heads = {
            "spike": r"\sqrt{N}\,\|A\|_{\mathrm{op}}",
            "bulk": r"\sqrt{N}\,\|B\|_F",
            "output": r"N\,\|C\|_{\mathrm{op}}",
            "alignment": r"\cos^2(X^\top y, C_1)",
        }
        lines = [rf"{heads[name]} &\to {latex(limit)}" for name, limit in self._limits().items()]
        return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"


def first_step(
    student: str | sp.Expr | Activation,
    target: str | sp.Expr | Activation | Target,
    *,
    centre: bool = False,
) -> FirstStep:
    r"""Derive the limits of spike, bulk and output part of the first gradient.

    Parameters
    ----------
    student : str, Expr or Activation
        σ, continuous.
    target : str, Expr, Activation or Target
        f; a function of one or several directions.
    centre : bool
        Labels are those of the target minus its mean. The student's mean plays no part in any of
        the limits.

    Raises
    ------
    AssumptionError
        If the student jumps: E σ'² is infinite.
    ExpressionError, UnsupportedExpressionError
        If student or target cannot be read.

    Examples
    --------
    >>> step = first_step("erf", "x1 + He(2, x2)")
    >>> step.alignment
    1/(1 + (Delta + 3)/alpha_0)
    >>> {name: round(value, 4) for name, value in step.values(alpha=4).items()}
    {'spike': 0.8618, 'bulk': 0.3298, 'output': 0.479, 'alignment': 0.5714}
    """
    sigma = activation(student, parameters=True, argument="student")
    f = read_target(target)
    mu1, mu2 = (hermite_coefficient(sigma, k) for k in (1, 2))
    linear = f.contract(1, [sp.S.Zero] * f.dimension, leave=1)
    linear_square = sp.Add(*(c**2 for c in linear))
    mean = sp.S.Zero if centre else f.mean
    label_square = f.norm_squared - (f.mean**2 if centre else 0) + noise
    labels = correlation_square(linear_square, label_square, alpha0)
    # The network's own output has the linear part μ_1 Wa, |Wa| → 1.
    outputs = correlation_square(mu1**2, variance(sigma), alpha0)
    return FirstStep(
        student=sigma,
        target=f,
        mean_derivative=mu1,
        linear_part=linear,
        label_square=label_square,
        spike=sp.Abs(mu1) * sp.sqrt(labels),
        bulk=sp.sqrt(slope_variance(sigma) * label_square / alpha0 + (mu2 * mean) ** 2),
        output=sp.Abs(mu1) * sp.sqrt(outputs),
        alignment=linear_square / labels,
    )
