r"""Bounds of the test error, and its limit for many samples, as projections in :math:`L^2(\kappa)`.

Given its projection κ on the spike the network predicts
:math:`m\mu_0(\kappa) + \vartheta\kappa\mu_1(\kappa) + \psi\mu_1(\kappa)s` and noise, s being the
projection of the input on the part of the teacher's direction that is orthogonal to the spike. Of
the target, whose conditional moments are T_0 and T_1 (Result 3.2, :mod:`.physics`), an error

.. math::
    E(k) = \langle\tau_2^2\rangle
      + \min_{m,\vartheta,\psi}\big[\langle (T_0 - m\mu_0 - \vartheta g)^2\rangle
      + \langle (T_1 - \psi\mu_1)^2\rangle + k\,(\vartheta^2 + \psi^2)\big]

is left, with :math:`g = \kappa\mu_1` less its projection on :math:`\mu_0` and
:math:`\tau_2^2 = \mathbb{E}_s(\sigma_* - T_0 - T_1 s)^2`. In these terms (Cui et al., arXiv
2402.04980, equations (26)–(28))

- E(0) = L, a lower bound for all α, β and λ;
- E(∞) = U, an upper bound of the error at the best λ: for λ → ∞ only m, which costs nothing,
  survives;
- E(k) with :math:`k = 1/(\beta c V_2^\circ)`,
  :math:`V_2^\circ = \mathbb{E}[1/(\langle\mu_2^2\rangle + \langle\mu_1^2\rangle cX)]`, is the
  limit α → ∞ at any fixed λ (derived here, :mod:`.bounds.limits`).

So L ≤ E_∞ ≤ U without any computation, and the limit of E_∞ for β → ∞, where k → 0, is L. Every
term is a mean of squares, so that a bound of 1e-20 is as accurate as one of order one.
"""

from __future__ import annotations

import sympy as sp

from ....symbolic.activations import Activation
from ....symbolic.gaussian import GaussianExpectation
from ....symbolic.random_matrix import Resolvent
from ....symbolic.regularity import Parity
from ....symbolic.saddle_point import SaddlePointSystem
from ..physics import (
    IDENTIFIERS,
    T0,
    T1,
    T2,
    average,
    beta,
    c,
    chi,
    conditional_coefficients,
    conditional_mean,
    gamma,
    kappa,
    mu0,
    mu1,
    mu2_squared,
    norm_overlap,
    norm_response,
    r,
    rho,
    s,
    theta,
    z,
)

# What is left of the target given κ after the best affine fit in s.
tau2_squared = sp.Function("tau_2^2", nonnegative=True)(kappa)

mean_square, tilt, overlap = sp.symbols("A_00 t y_0", real=True)
along_square, along_overlap = sp.symbols("B y_1", real=True)
slope_square, slope_overlap = sp.symbols("b h", real=True)
# Derivative of χ with respect to the centre rκ of the student's argument.
chi_slope = sp.Function("chi_1", real=True)(kappa)
residual_square, unexplained = sp.symbols("a u", nonnegative=True)
along_size = sp.Symbol("A_11", real=True)
cost = sp.Symbol("k", nonnegative=True)

# Below this part of its square, what is left of κμ_1 after the projection on μ_0 is rounding: the
# two are proportional, as for a linear student.
_PROPORTIONAL = sp.Rational(1, 10**26)

SOURCE = "Cui et al., arXiv 2402.04980, equations (26)-(28); the limit is derived here"
_IDENTIFIERS = {
    mean_square: "mean_square", tilt: "tilt", overlap: "overlap",
    along_square: "along_square", along_overlap: "along_overlap", along_size: "along_size",
    slope_square: "slope_square", slope_overlap: "slope_overlap",
    residual_square: "residual_square", unexplained: "unexplained", cost: "cost",
}  # fmt: skip


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


def error(penalty: sp.Expr | None, shape: sp.Expr = kappa * mu1) -> sp.Expr:
    """Return E(k) in the unknowns of :func:`bound_system`; without a penalty it is E(∞)."""
    along, across = coefficients(penalty)
    along_shape = shape - tilt * mu0
    kept = average((T0 - overlap / mean_square * mu0 - along * along_shape) ** 2)
    kept += average((T1 - across * mu1) ** 2)
    return unexplained + kept + (penalty or 0) * (along**2 + across**2)


def coefficients(penalty: sp.Expr | None) -> tuple[sp.Expr, sp.Expr]:
    """Return ϑ and ψ at the minimum E(k)."""
    if penalty is None:
        return sp.S.Zero, sp.S.Zero
    along = sp.Piecewise(
        (0, along_square <= _PROPORTIONAL * along_size),
        (along_overlap / (along_square + penalty), True),
    )
    return along, slope_overlap / (slope_square + penalty)


def bound_system(
    student: Activation,
    teacher: Activation,
    *,
    unspiked: bool = False,
    aligned: bool = False,
    correlated_norms: bool = False,
    slopes: bool = False,
) -> SaddlePointSystem:
    r"""Return the bounds and the limit as a system whose unknowns are explicit averages.

    Parameters
    ----------
    student, teacher : Activation
    unspiked, aligned : bool
        Exactly r = 0, exactly \|γ\| = 1.
    correlated_norms : bool
        Include that norms and overlaps of the rows are correlated, so that ϑ multiplies
        κμ_1 + aχ.
    slopes : bool
        Give the derivatives of U and L with respect to r and c instead of the coefficients;
        without correlated norms, for students that do not jump.

    Returns
    -------
    SaddlePointSystem
        Parameters β, r, c, γ, ρ; outputs ``upper``, ``lower``, ``limit``, the coefficients of the
        functions that realise them (``m_upper``, ``m_lower``, ``theta_lower``, ``psi_lower``,
        ``m_limit``, ``theta_limit``, ``psi_limit``) or, with `slopes`, ``upper_slope`` and
        ``lower_slope`` (with respect to r), ``upper_widening`` and ``lower_widening`` (c).

    Notes
    -----
    Derivatives by the envelope theorem: of a minimum over m, ϑ, ψ only the explicit dependence on
    r and c counts, :math:`\partial_r\mu_0 = \kappa\mu_1`, :math:`\partial_r\mu_1 = \kappa\chi`
    and, by the heat equation, :math:`\partial_c\mu_0 = \chi/2` and
    :math:`\partial_c\mu_1 = \chi_1/2`, with χ_1 the derivative of χ by its centre. So
    :math:`\mathrm{d}U/\mathrm{d}r = -2m\langle\kappa\mu_1(T_0 - m\mu_0)\rangle`: where U is
    stationary the residual is orthogonal to :math:`\kappa\mu_1`, and, with γ = ±1, L = E_∞ = U.
    """
    definitions = bound_definitions(
        student, teacher, unspiked=unspiked, aligned=aligned, curved=correlated_norms or slopes
    )
    if slopes:
        inside = student.derivative.xreplace({z: r * kappa + sp.sqrt(c) * z})
        definitions[chi_slope] = GaussianExpectation((z**2 - 1) * inside / c, z)
    shape = sp.diff(conditional_mean(correlated_norms=correlated_norms), theta)
    along_shape = shape - tilt * mu0
    left_over = T0 - overlap / mean_square * mu0
    values = {
        mean_square: average(mu0**2),
        overlap: average(mu0 * T0),
        tilt: average(mu0 * shape) / mean_square,
        along_size: average(shape**2),
        along_square: average(along_shape**2),
        along_overlap: average(along_shape * left_over),
        slope_square: average(mu1**2),
        slope_overlap: average(mu1 * T1),
        residual_square: average(mu2_squared),
        unexplained: average(tau2_squared),
        cost: _inverse_resolvent(residual_square, c * slope_square) / (beta * c),
    }
    if {student.parity, teacher.parity} == {Parity.EVEN, Parity.ODD}:
        # Nothing is learnt. Left to quadrature, zeros would have no relative accuracy.
        values |= dict.fromkeys((overlap, along_overlap, slope_overlap), sp.S.Zero)
    outputs = {
        name: error(penalty, shape)
        for name, penalty in (("upper", None), ("lower", sp.S.Zero), ("limit", cost))
    }
    # Of a number that vanishes, as ϑ where U is stationary, every digit is rounding: next to
    # slopes, which are there to find such points, it would spoil the error estimates.
    outputs |= _slopes() if slopes else _overlaps()
    return _without_vanishing(definitions, values, outputs, correlated_norms)


def _overlaps() -> dict[str, sp.Expr]:
    best = overlap / mean_square
    found = {"m_upper": best}
    for name, penalty in (("lower", sp.S.Zero), ("limit", cost)):
        along, across = coefficients(penalty)
        found |= {
            f"m_{name}": best - tilt * along, f"theta_{name}": along, f"psi_{name}": across
        }  # fmt: skip
    return found


def _slopes() -> dict[str, sp.Expr]:
    found = {}
    moved_by = {"slope": (kappa * mu1, kappa * chi), "widening": (chi / 2, chi_slope / 2)}
    for name, penalty in (("upper", None), ("lower", sp.S.Zero)):
        along, across = coefficients(penalty)
        mean = overlap / mean_square - tilt * along
        residual = T0 - mean * mu0 - along * kappa * mu1
        for change, (of_mu0, of_mu1) in moved_by.items():
            moved = mean * of_mu0 + along * kappa * of_mu1
            found[f"{name}_{change}"] = -2 * average(residual * moved) - 2 * across * average(
                (T1 - across * mu1) * of_mu1
            )
    return found


def _inverse_resolvent(a: sp.Expr, b: sp.Expr) -> sp.Expr:
    """Return 1/E[1/(a + bX)], which is finite where a vanishes."""
    branches = Resolvent(a, b, beta).rewrite(sp.Piecewise).args
    return sp.Piecewise(*((1 / value, condition) for value, condition in branches))


def _without_vanishing(
    definitions: dict[sp.Expr, sp.Expr],
    values: dict[sp.Symbol, sp.Expr],
    outputs: dict[str, sp.Expr],
    correlated_norms: bool,
) -> SaddlePointSystem:
    """Leave out functions that vanish, and the shapes that they would span."""
    zero = {f: sp.S.Zero for f, value in definitions.items() if value == 0}
    gone: dict[sp.Expr, sp.Expr] = dict(zero)
    if mu0 in zero:
        gone |= {mean_square: sp.S.One, overlap: sp.S.Zero, tilt: sp.S.Zero}
    if mu1 in zero:
        gone |= {
            along_square: sp.S.One, along_size: sp.S.One, along_overlap: sp.S.Zero,
            slope_square: sp.S.One, slope_overlap: sp.S.Zero, cost: sp.S.One,
        }  # fmt: skip
    while True:
        values = {x: value.subs(gone) for x, value in values.items() if x not in gone}
        more = {x: value for x, value in values.items() if value == 0}
        if not more:
            break
        gone |= more
    outputs = {
        name: sp.sympify(value, strict=True).subs(gone).doit() for name, value in outputs.items()
    }
    used = set(values) & set().union(
        *(e.free_symbols for e in outputs.values()), *(e.free_symbols for e in values.values())
    )
    kept = {
        f: value.subs(zero) if zero else value for f, value in definitions.items() if f not in zero
    }
    parameters = (beta, r, c, gamma, rho, *((norm_overlap,) if correlated_norms else ()))
    names = {**IDENTIFIERS, norm_overlap: "norm_overlap", **_IDENTIFIERS}
    return SaddlePointSystem.from_fixed_point(
        {x: value for x, value in values.items() if x in used},
        name="spiked_random_features_bounds",
        parameters=parameters,
        outputs=outputs,
        definitions=kept,
        node=kappa,
        identifiers={x: name for x, name in names.items() if x in used or x in parameters},
        source=SOURCE,
        title="Bounds of the test error of spiked random features, and its limit for many samples",
    )
