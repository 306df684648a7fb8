r"""Proven intervals of the spike after one step, and of what students and teachers are given κ.

Result 3.1 maps a step to r, c and γ in closed form; Hermite coefficients and second moments of
student and teacher enter as proven enclosures. The conditional coefficients

.. math:: \mu_0(\kappa) = \mathbb{E}\,\sigma(r\kappa + u), \qquad
          \mu_1(\kappa) = \mathbb{E}\,u\,\sigma(r\kappa + u)/c, \qquad
          \mu_2^2(\kappa) = \mathbb{E}\,\sigma^2 - \mu_0^2 - c\,\mu_1^2, \qquad u \sim N(0, c)

at a given κ are Gaussian expectations, as are those of the teacher with γκ and variance 1 − γ².

(Cui et al., arXiv 2402.04980, equations (9)–(11) and (15).)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import sympy as sp

from ...digits import checked_digits
from ...errors import AssumptionError, CertificationError, ParameterError
from ...numeric.arguments import real_number
from ...symbolic.activations import activation
from ...symbolic.activations import z as variable
from ...symbolic.enclosed_formulas import FormulaBalls
from ...symbolic.gaussian import GaussianExpectation
from ...symbolic.hermite import information_exponent
from ..certificates.certified_values import LIBRARIES, CertifiedValues
from ..one_gradient_step.decimals import decimal_fraction
from . import mapping

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures

_RESULT = "Result 3.1 of Cui et al. (arXiv 2402.04980): the spiked random features of a step"
_DECIMAL = "r, c and γ mean the decimal numbers that their floats print as"


def certified_spike(model: SpikedRandomFeatures, digits: object = 15) -> CertifiedValues:
    """Return proven intervals of the spike; see :meth:`.analyses.Analyses.certified_spike`."""
    count = checked_digits(digits)
    if model.direct_parameters is not None:
        raise ParameterError(
            "the spike of this model was given, not made by a step: there is nothing to prove"
        )
    student, teacher = activation(model.student), activation(model.teacher)
    found = mapping.spike_mapping(student, teacher)
    formulas = FormulaBalls(
        {
            mapping.step_size: _decimal(model.step_size),
            mapping.alpha0: sp.oo if model.alpha0 == math.inf else _decimal(model.alpha0),
            mapping.noise: _decimal(model.noise_variance),
        }
    )
    if model.alpha0 == math.inf and information_exponent(teacher) > 1:
        raise CertificationError(
            "with infinitely many samples the step on this teacher makes no spike: r = 0, and γ is "
            "not defined; give a finite alpha0"
        )
    values = {
        "spike_strength": found.spike_strength,
        "bulk_variance": found.bulk_variance,
        "alignment": found.alignment,
        "orthogonal_alignment": found.orthogonal_alignment,
    }
    return CertifiedValues(
        title=f"spike of {_first_line(model)}",
        values={name: formulas.enclosure(value, count) for name, value in values.items()},
        statement="r, c, γ and ρ of the equivalent spiked random features lie in their intervals",
        assumptions=(*LIBRARIES, _RESULT),
        digits=count,
    )


def certified_coefficients(
    model: SpikedRandomFeatures, node: object, digits: object = 15
) -> CertifiedValues:
    """Return proven conditional coefficients at κ; see ``certified_coefficients`` of a model."""
    count = checked_digits(digits)
    point = real_number("node", node)
    if not math.isfinite(point):
        raise ParameterError(f"node must be finite, got {point}")
    spike, kappa = model.spike, _decimal(point)
    r, c = _decimal(spike.spike_strength), _decimal(spike.bulk_variance)
    gamma = _decimal(spike.alignment)
    values: dict[str, sp.Expr] = {}
    mean, linear, square = _averages(model.student, r * kappa, sp.sqrt(c))
    values |= {"mu0": mean, "mu1": linear / sp.sqrt(c), "mu2_square": square - mean**2 - linear**2}
    mean, linear, square = _averages(model.teacher, gamma * kappa, sp.sqrt(1 - gamma**2))
    values |= {"T0": mean, "T1": linear, "T2": square + _decimal(model.noise_variance)}
    formulas = FormulaBalls({})
    return CertifiedValues(
        title=f"conditional coefficients at κ = {point!r}: {_first_line(model)}",
        values={name: formulas.enclosure(value, count) for name, value in values.items()},
        statement="each coefficient at this κ lies in its interval",
        assumptions=(*LIBRARIES, _DECIMAL),
        digits=count,
    )


def _averages(name: str, centre: sp.Expr, spread: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """Return E f, E z f and E f² at centre + spread z."""
    f = activation(name).expr.xreplace({variable: centre + spread * variable})
    if variable not in f.free_symbols:
        return f, sp.S.Zero, f**2
    try:
        found = [GaussianExpectation(x, variable) for x in (f, variable * f, f**2)]
    except (AssumptionError, TypeError) as error:
        raise CertificationError(f"{name} has no expectation here: {error}") from None
    return found[0], found[1], found[2]


def _first_line(model: SpikedRandomFeatures) -> str:
    return str(model).splitlines()[0]


def _decimal(value: float) -> sp.Rational:
    fraction = decimal_fraction(value)
    return sp.Rational(fraction.numerator, fraction.denominator)
