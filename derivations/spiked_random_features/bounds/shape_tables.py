r"""Tables of the functions along the spike: the target, what networks realise, spans of letters.

All are printed from the conditional coefficients and from the prediction
:math:`m\,\mu_0(\kappa) + \vartheta\,\kappa\mu_1(\kappa)` of :mod:`.physics`. The best linear
predictor :math:`h^*_0 + h^*_1\,\theta\cdot x` is :math:`h^*_0 + h^*_1\gamma\kappa` on average.
"""

from __future__ import annotations

import sympy as sp

from ....symbolic.activations import Activation
from ....symbolic.equivalence import mean_definition, slope_definition
from ....symbolic.gaussian import GaussianExpectation
from ....symbolic.hermite import hermite_coefficient
from ....symbolic.lowering.tables import table_source
from .. import physics as fe
from .bound_system import bound_definitions

bias = sp.Symbol("b_1", real=True)


def realised_table_source(
    student: Activation,
    teacher: Activation,
    *,
    unspiked: bool = False,
    aligned: bool = False,
    correlated_norms: bool = False,
) -> str:
    """Return the source of the tables ``target``, ``target_variance``, ``linear``, ``realised``.

    Their parameters are r, c, γ, ρ, the norm overlap a, and m and ϑ of the prediction.
    """
    coefficients = fe.conditional_coefficients(student, teacher, unspiked=unspiked, aligned=aligned)
    if correlated_norms:
        coefficients[fe.chi] = fe.norm_response(student, unspiked=unspiked)
    label = teacher(fe.gamma * fe.kappa + fe.rho * fe.s)
    h0, h1 = (hermite_coefficient(teacher, k) for k in range(2))
    target = _function("target")
    spread = sp.S.Zero if aligned else GaussianExpectation((label - target) ** 2, fe.s)
    definitions = {f: coefficients[f] for f in (fe.mu0, fe.mu1, fe.chi) if f in coefficients}
    definitions |= {
        target: coefficients[fe.T0],
        _function("target_variance"): spread,
        _function("linear"): h0 + h1 * fe.gamma * fe.kappa,
        _function("realised"): fe.conditional_mean(correlated_norms=correlated_norms),
    }
    return _source(definitions, (fe.norm_overlap, fe.m, fe.theta))


def letter_table_source(student: Activation, teacher: Activation, *, aligned: bool) -> str:
    r"""Return the source of the tables of one letter, with a bias.

    They are what m, ϑ and ψ multiply, ``mu_0``, ``along`` and ``mu_1``, and the moments ``T_0``,
    ``T_1`` and ``tau_2_squared`` of the target. Parameters: r, c, γ, ρ, b.
    """
    centre, spread = fe.r * fe.kappa + bias, sp.sqrt(fe.c)
    definitions = bound_definitions(student, teacher, aligned=aligned)
    del definitions[fe.mu2_squared]
    definitions[fe.mu0] = mean_definition(student, centre, spread)
    definitions[fe.mu1] = slope_definition(student, centre, spread)
    definitions[_function("along")] = sp.diff(fe.conditional_mean(), fe.theta)
    return _source(definitions, (bias,))


def span_table_source(
    student: Activation,
    teacher: Activation,
    *,
    aligned: bool = False,
    correlated_norms: bool = False,
) -> str:
    r"""Return the source of the tables that the bounds of one letter are made of.

    They are those of :func:`letter_table_source` and ``mu_2_squared``, without a bias; ``along``
    includes aχ with correlated norms. Parameters: r, c, γ, ρ, a.
    """
    definitions = bound_definitions(student, teacher, aligned=aligned, curved=correlated_norms)
    mean = fe.conditional_mean(correlated_norms=correlated_norms)
    definitions[_function("along")] = sp.diff(mean, fe.theta)
    return _source(definitions, (fe.norm_overlap,))


def _function(name: str) -> sp.Expr:
    return sp.Function(name, real=True)(fe.kappa)


def _source(definitions: dict[sp.Expr, sp.Expr], more: tuple[sp.Symbol, ...]) -> str:
    """Print tables; a function that vanishes, but for those that are asked for, is left out."""
    zero = {f: sp.S.Zero for f, value in definitions.items() if value == 0}
    return table_source(
        {f: value.xreplace(zero) for f, value in definitions.items() if f not in zero},
        node=fe.kappa,
        identifiers={**fe.IDENTIFIERS, bias: "bias"},
        parameters=(fe.r, fe.c, fe.gamma, fe.rho, *more),
    )
