r"""Spectrum of the conjugate kernel: what the equation of the effective ridge says at λ = −z.

The kernel is :math:`K = \Phi\Phi^\top` (n × n) with the linearised features
:math:`\Phi = (\mu_1XW + \mu_{>1}Z)/\sqrt N`. A ridge penalty λ belongs to an effective ridge ν by
:math:`\lambda = \nu(\alpha/\beta - 1 + \nu G)`, see
:mod:`giantstep.symbolic.systems.ridge_equivalent`, and

.. math:: \frac1n\operatorname{tr}(K - z)^{-1} = \frac{\beta}{\alpha\nu}, \qquad z = -\lambda .

With s = −T of the closed form, :math:`z = \zeta(T)` is rational, so ζ is the inverse function of
the transform. Off the bulk T is real with :math:`|T| > \sqrt\beta` and ζ' > 0; edges are critical
values of ζ there (Silverstein and Choi 1995). A spike of squared length T in the first layer moves
an eigenvalue of the population covariance to T, and one of K to ζ(T), if ζ' > 0.

Between two points of the real axis the number of eigenvalues is the difference of the imaginary
part of an elementary function of ν, G and h, :func:`counting_function`.

(Ba et al., arXiv 2205.01445, section 4; the closed forms are derived here.)
"""

from __future__ import annotations

import sympy as sp

from ...symbolic.systems.rank_one_perturbation import rank_one_outlier
from ...symbolic.systems.ridge_equivalent import FeatureCovariance, ScalarForm
from .symbols import (
    aligned_square,
    alpha,
    alpha0,
    beta,
    label_square,
    linear,
    noise,
    spike_square,
    step_size,
    teacher_linear,
    teacher_residual,
)

z = sp.Symbol("z")
r"""A point of the complex plane."""

place = sp.Symbol("T", real=True)
r"""T = −s, the uniformising variable; the squared length θ1² of a spike."""

kappa = sp.Symbol("kappa", nonnegative=True)
r""":math:`\mu_{>1}^2/\mu_1^2` of the student."""

effective_ridge = sp.Symbol("nu")
r"""ν."""

inverse_ridge = sp.Symbol("U")
r"""1/ν, which is α/β times the transform."""

slope = sp.Symbol("b", nonnegative=True)
r""":math:`\mu_1^2`, in a unit in which it may be zero."""

floor = sp.Symbol("v", nonnegative=True)
r""":math:`\mu_{>1}^2` in the same unit."""

resolvent = sp.Symbol("G")
r"""G, the trace of the resolvent of the population covariance."""


# ---------------------------------------------------------------------- on the real axis


def _closed_form() -> ScalarForm:
    return ScalarForm(s=-place, aspect=beta, samples=alpha, kappa=kappa)


def zeta() -> sp.Expr:
    r"""Return ζ(T)/μ1² in T, α, β and κ.

    The ridge penalty λ' of the paper's scaling is β/α times that of the toolkit.
    """
    form = _closed_form()
    return -(alpha / beta) * form.effective_ridge * form.shrinkage


def population_place() -> sp.Expr:
    r"""Return −ν/μ1² = ω(T) + κ, where T sits on the axis of the population covariance."""
    return -_closed_form().effective_ridge


def slope_sign() -> sp.Expr:
    r"""Return :math:`\frac\beta\alpha\,d\zeta/d(-\nu)`, which has the sign of ζ'(T).

    It is :math:`1 - \frac Nn\int\frac{t^2\,H(dt)}{(t - a)^2}` at a = −ν: concave in a between
    the parts of the population spectrum, and monotone on both sides of it.
    """
    return _closed_form().derivative


def noise_zeta() -> sp.Expr:
    r"""Return ζ/μ_{>1}² of pure noise features, κ → ∞, at :math:`T = \tau\kappa`; in T = τ."""
    return sp.limit(zeta().subs(place, place * kappa) / kappa, kappa, sp.oo)


def noise_edges() -> tuple[sp.Expr, sp.Expr]:
    r"""Return both edges of pure noise features in units of μ_{>1}²."""
    value = noise_zeta()
    critical = sp.solve(sp.numer(sp.together(value.diff(place))), place)
    lower, upper = sorted(
        (sp.simplify(value.subs(place, x)) for x in critical),
        key=lambda x: x.subs({alpha: 2, beta: 1}),
    )
    return lower, upper


# ---------------------------------------------------------------------- the step


def label_alignment() -> sp.Expr:
    r"""Return the limit of :math:`(u_1\cdot y/|y|)^2`, u_1 the outlier's eigenvector.

    y are fresh labels. The eigenvector of the population covariance that belongs to the spike
    overlaps with the best linear predictor, and the eigenvector of the sample with it:
    the last factor is ψ' = (β/α) dζ/d(−ν).
    """
    positive = sp.Dummy("T", positive=True)
    spike = rank_one_outlier(positive, beta)
    square = spike.square.xreplace({positive: place})
    explained = square / (square + kappa)
    overlap = aligned_square() / spike_square() * spike.left_overlap.xreplace({positive: place})
    return teacher_linear**2 / label_square() * explained * overlap * slope_sign()


def critical_step_size() -> sp.Expr:
    r"""Return the η at which θ1² = T; for the gradient of half the squared loss."""
    return sp.sqrt(place / spike_square().subs(step_size, 1))


# ---------------------------------------------------------------------- in the complex plane


def _covariance() -> FeatureCovariance:
    return FeatureCovariance(slope, floor, beta, effective_ridge)


def resolvent_at() -> sp.Expr:
    """Return G, the trace of the population's resolvent, in ν and z."""
    covariance = _covariance()
    ridge = covariance.ridge((alpha - beta) / beta).xreplace({covariance.resolvent: resolvent})
    (result,) = sp.solve(z + ridge, resolvent)
    return sp.collect(sp.expand(result * effective_ridge**2), effective_ridge, sp.factor) / (
        effective_ridge**2
    )


def companion_at() -> sp.Expr:
    """Return the companion h in ν and z."""
    covariance = _covariance()
    return covariance.companion.xreplace({covariance.resolvent: resolvent_at()})


def quartic() -> tuple[sp.Expr, ...]:
    r"""Return the coefficients, ν⁴ first, of the polynomial in ν for a given z.

    One root is :math:`\nu = \beta/(\alpha\,g(z))`, g the transform of K.

    What is left of λ(ν) = −z after G is eliminated by its own equation G (a + b h) = 1. It holds
    for b = 0 and v = 0 as well.
    """
    covariance = _covariance()
    equation = resolvent_at() * (covariance.shift + slope * companion_at()) - 1
    numerator, _ = sp.fraction(sp.cancel(equation))
    result = sp.Poly(numerator, effective_ridge)
    # Grouped so that differences of parameters are formed first, where they are exact.
    return tuple(sp.collect(sp.expand(c / beta), z, sp.factor) for c in result.all_coeffs())


def fixed_point() -> tuple[sp.Expr, sp.Expr]:
    r"""Return the right-hand sides of U = 1/ν and of G in U, G and z.

    They are :math:`\lambda = \nu(\alpha/\beta - 1 + \nu G)`, in which 1 − νG is a sum of positive
    terms, and G (a + b h) = 1 with the companion h in G.
    """
    covariance = _covariance()
    rule = {covariance.resolvent: resolvent, effective_ridge: 1 / inverse_ridge}
    freedom = covariance.degrees_of_freedom.xreplace(rule)
    shift, companion_of = (x.xreplace(rule) for x in (covariance.shift, covariance.companion))
    return ((alpha / beta) / (freedom / inverse_ridge - z), 1 / (shift + slope * companion_of))


def upper_half_plane() -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    r"""Return three transforms, all in the upper half plane at the root that is meant.

    1/ν, G and h/a: traces of resolvents of K, of the population covariance and of its companion.
    """
    return 1 / effective_ridge, resolvent_at(), companion_at() / _covariance().shift


def counting_function() -> sp.Expr:
    r"""Return Λ in ν and G whose imaginary part at x + i0 is π times the share of eigenvalues ≤ x.

    .. math:: \Lambda = -(1 - r)\ln\nu + r\ln G + \frac r\beta\ln h + 2r\,bGh + r\,vG, \qquad
        r = \beta/\alpha

    satisfies :math:`d\Lambda = \frac r\nu\,dz`; all logarithms are principal ones, and all
    imaginary parts vanish at x → −∞.
    """
    r = beta / alpha
    covariance = _covariance()
    g = resolvent
    h = covariance.companion.xreplace({covariance.resolvent: resolvent})
    return (
        -(1 - r) * sp.log(effective_ridge)
        + r * sp.log(g)
        + r / beta * sp.log(h)
        + 2 * r * slope * g * h
        + r * floor * g
    )


# ---------------------------------------------------------------------- what has to vanish


def identities() -> dict[str, sp.Expr]:
    """Return what has to vanish: the forms of the complex plane against those of the axis."""
    form = _closed_form()
    at_place = {slope: 1, floor: kappa, z: zeta(), effective_ridge: form.effective_ridge}
    r = beta / alpha
    companion = 1 + beta / place
    g = -1 / (place + beta)
    on_axis = {inverse_ridge: 1 / effective_ridge, resolvent: g}
    counting = counting_function().xreplace({slope: sp.S.One, floor: kappa})
    rate = sum(
        counting.diff(x).subs({effective_ridge: form.effective_ridge, resolvent: g}) * y.diff(place)
        for x, y in ((effective_ridge, form.effective_ridge), (resolvent, g))
    )
    printed = ((1 + place) * (beta + place) / place + kappa) * (
        alpha / beta + 1 / place + kappa / (beta + place)
    )
    balance = (1 - beta / place**2) * (alpha / beta + 1 / place + kappa / (beta + place)) - (
        (1 + place) * (beta + place) / place + kappa
    ) * (1 / place**2 + kappa / (beta + place) ** 2)
    direct = r * zeta().diff(place) / population_place().diff(place)
    return {
        "zeta as printed": zeta() - printed,
        "the equation of the threshold": zeta().diff(place) - balance,
        "its derivative": slope_sign() - direct,
        "the resolvent": resolvent_at().subs(at_place) - g,
        "the companion": companion_at().subs(at_place) - companion,
        **{
            f"the equation of {x}": (side - x).xreplace(on_axis).subs(at_place)
            for x, side in zip((inverse_ridge, resolvent), fixed_point(), strict=True)
        },
        "the quartic at zeta(T)": sum(
            c * effective_ridge**k for k, c in enumerate(reversed(quartic()))
        ).subs(at_place),
        "the counting function": rate - r / form.effective_ridge * zeta().diff(place),
    }


second = sp.Symbol("c_2", real=True)
r""":math:`c_2 = \mathbb{E}\,\sigma\,\mathrm{He}_2` of the student."""


def expected_spike() -> sp.Expr:
    r"""Return the eigenvalue that c_2 adds to the expected kernel along (1, …, 1).

    The term of degree two, :math:`\frac{c_2^2}{2}(w_i\cdot w_j)^2`, has the mean
    :math:`\frac{c_2^2}{2d}` off the diagonal; N = β d such entries in a row.
    """
    return second**2 / 2 * beta


REAL_PARAMETERS = (place, alpha, beta, kappa)
STEP_PARAMETERS = (alpha0, step_size, noise, linear, teacher_linear, teacher_residual)
PLANE_PARAMETERS = (z, slope, floor, alpha, beta)
