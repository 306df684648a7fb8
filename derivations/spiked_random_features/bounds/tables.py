"""Functions of κ that bounds are made of: their definitions, and the source of their tables."""

from __future__ import annotations

import sympy as sp

from ....symbolic.expressions.activations import Activation
from ....symbolic.gaussian.expectation import GaussianExpectation
from ....symbolic.hermite.coefficients import hermite_coefficient
from ....symbolic.hermite.equivalence import mean_definition, slope_definition
from ....symbolic.lowering.tables import table_source
from ..physics import (
    IDENTIFIERS,
    T0,
    T1,
    T2,
    c,
    chi,
    conditional_coefficients,
    conditional_mean,
    gamma,
    kappa,
    m,
    mu0,
    mu1,
    mu2_squared,
    norm_overlap,
    norm_response,
    r,
    rho,
    s,
    theta,
)

# What is left of the target given κ after the best affine fit in s.
tau2_squared = sp.Function("tau_2^2", nonnegative=True)(kappa)


bias = sp.Symbol("b_1", real=True)


def bound_definitions(
    student: Activation,
    teacher: Activation,
    *,
    unspiked: bool = False,
    aligned: bool = False,
    curved: bool = False,
) -> dict[sp.Expr, sp.Expr]:
    r"""Return the definitions of μ_0, μ_1, μ_2², T_0, T_1, τ_2²; those that vanish are zero.

    With `curved` also that of χ.
    """
    definitions = conditional_coefficients(student, teacher, unspiked=unspiked, aligned=aligned)
    del definitions[T2]
    label = teacher(gamma * kappa + rho * s)
    left = sp.S.Zero if aligned else GaussianExpectation((label - T0 - s * T1) ** 2, s)
    definitions[tau2_squared] = left
    if curved:
        definitions[chi] = norm_response(student, unspiked=unspiked)
    return definitions


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
    coefficients = conditional_coefficients(student, teacher, unspiked=unspiked, aligned=aligned)
    if correlated_norms:
        coefficients[chi] = norm_response(student, unspiked=unspiked)
    label = teacher(gamma * kappa + rho * s)
    h0, h1 = (hermite_coefficient(teacher, k) for k in range(2))
    target = _function("target")
    spread = sp.S.Zero if aligned else GaussianExpectation((label - target) ** 2, s)
    definitions = {f: coefficients[f] for f in (mu0, mu1, chi) if f in coefficients}
    definitions |= {
        target: coefficients[T0],
        _function("target_variance"): spread,
        _function("linear"): h0 + h1 * gamma * kappa,
        _function("realised"): conditional_mean(correlated_norms=correlated_norms),
    }
    return _shape_source(definitions, (norm_overlap, m, theta))


def letter_table_source(student: Activation, teacher: Activation, *, aligned: bool) -> str:
    r"""Return the source of the tables of one letter, with a bias.

    They are what m, ϑ and ψ multiply, ``mu_0``, ``along`` and ``mu_1``, and the moments ``T_0``,
    ``T_1`` and ``tau_2_squared`` of the target. Parameters: r, c, γ, ρ, b.
    """
    centre, spread = r * kappa + bias, sp.sqrt(c)
    definitions = bound_definitions(student, teacher, aligned=aligned)
    del definitions[mu2_squared]
    definitions[mu0] = mean_definition(student, centre, spread)
    definitions[mu1] = slope_definition(student, centre, spread)
    definitions[_function("along")] = sp.diff(conditional_mean(), theta)
    return _shape_source(definitions, (bias,))


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
    mean = conditional_mean(correlated_norms=correlated_norms)
    definitions[_function("along")] = sp.diff(mean, theta)
    return _shape_source(definitions, (norm_overlap,))


def _function(name: str) -> sp.Expr:
    return sp.Function(name, real=True)(kappa)


def _shape_source(definitions: dict[sp.Expr, sp.Expr], more: tuple[sp.Symbol, ...]) -> str:
    """Print tables; a function that vanishes, but for those that are asked for, is left out."""
    zero = {f: sp.S.Zero for f, value in definitions.items() if value == 0}
    return table_source(
        {f: value.xreplace(zero) for f, value in definitions.items() if f not in zero},
        node=kappa,
        identifiers={**IDENTIFIERS, bias: "bias"},
        parameters=(r, c, gamma, rho, *more),
    )
