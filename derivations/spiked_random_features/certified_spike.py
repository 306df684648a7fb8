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
from ..certificates.certificate import LIBRARIES, CertifiedValues
from ..kernels.precise import exact_number
from . import mapping
from .tangents import SPIKE, STRETCH

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
    if model.alpha0 == math.inf and model.leap_index > 1:
        raise CertificationError(
            "with infinitely many samples the step on this teacher makes no spike: r = 0, and γ is "
            "not defined; give a finite alpha0"
        )
    values = exact_spike(model)
    for name in ("norm_overlap", *STRETCH):
        values.pop(name, None)
    formulas = FormulaBalls({})
    return CertifiedValues(
        title=f"spike of {_first_line(model)}",
        values={name: formulas.enclosure(value, count) for name, value in values.items()},
        statement="r, c, γ and ρ of the equivalent spiked random features lie in their intervals",
        assumptions=(*LIBRARIES, _RESULT),
        digits=count,
    )


def exact_spike(model: SpikedRandomFeatures) -> dict[str, sp.Expr]:
    """Return the fields of the spike by name, exactly; without free symbols."""
    if model.direct_parameters is not None or model.step_size == 0:
        names = SPIKE if model._case["stretched"] else SPIKE[: -len(STRETCH)]
        given = {name: exact_number(getattr(model.spike, name)) for name in names}
        return {**given, "orthogonal_alignment": sp.sqrt(1 - given["alignment"] ** 2)}
    symbolic = model.symbolic()
    stretched = model._case["stretched"]
    mapped = mapping.spike_mapping(symbolic.student, symbolic.teacher, stretched=stretched)
    names = SPIKE if stretched else tuple(name for name in SPIKE if name not in STRETCH)
    values_at = {
        mapping.step_size: exact_number(model.step_size),
        mapping.noise: exact_number(model.noise_variance),
        mapping.alpha0: exact_number(model.alpha0),
    }
    found = {name: getattr(mapped, name).xreplace(values_at) for name in names}
    if model.alpha0 == math.inf and model.leap_index > 1:
        # No gradient: the direction of the spike is a convention.
        vanishing = ("spike_strength", "alignment", "norm_overlap")
        found |= dict.fromkeys(vanishing, sp.S.Zero)
        found["orthogonal_alignment"] = sp.S.One
    return found


def certified_coefficients(
    model: SpikedRandomFeatures, node: object, digits: object = 15
) -> CertifiedValues:
    """Return proven conditional coefficients at κ; see ``certified_coefficients`` of a model."""
    count = checked_digits(digits)
    point = real_number("node", node)
    if not math.isfinite(point):
        raise ParameterError(f"node must be finite, got {point}")
    spike, kappa = model.spike, exact_number(point)
    r, c = exact_number(spike.spike_strength), exact_number(spike.bulk_variance)
    gamma = exact_number(spike.alignment)
    values: dict[str, sp.Expr] = {}
    mean, linear, square = _averages(model.student, r * kappa, sp.sqrt(c))
    values |= {"mu0": mean, "mu1": linear / sp.sqrt(c), "mu2_square": square - mean**2 - linear**2}
    mean, linear, square = _averages(model.teacher, gamma * kappa, sp.sqrt(1 - gamma**2))
    values |= {"T0": mean, "T1": linear, "T2": square + exact_number(model.noise_variance)}
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
