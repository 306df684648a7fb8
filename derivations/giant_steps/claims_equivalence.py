r"""Claim: features after a giant step are Gaussian given the spike.

The closed forms of the coefficients are compared with formulas written out by hand, with the heat
equation :math:`\partial_\rho \mu = \rho\,\partial_c^2 \mu` that defines smoothing, with Hermite
polynomials of an affine argument, and with Mehler's formula for two neurons. Then with quadrature
that knows none of the rules, and with the features of actual rows :math:`W^0 + \lambda v^T`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...ball_library import require_flint
from ...runtime.precision import local_context
from ...runtime.quadrature import gauss_hermite_rule
from ...symbolic.expressions.activations import Activation, activation, z as variable
from ...symbolic.expressions.functions import OwenT
from ...symbolic.gaussian.enclosed_formulas import FormulaBalls
from ...symbolic.gaussian.expectation import GaussianExpectation, correlated_pair, expect_joint
from ...symbolic.gaussian.hermite_polynomials import affine_argument, hermite_polynomial
from ...symbolic.hermite.equivalence import (
    CENTRE,
    SPREAD,
    conditional_equivalence,
    features_at,
    spiked_rows,
)
from ...symbolic.printing.compiled import compiled
from ...symbolic.targets.target import target
from ..certificates.agreement import decided, overlap
from ..claims import Finding, Status, declare_claim, evidence
from ..comparison import Comparison, compare, finding
from ..first_gradient.training import network_functions
from ..identities import equal, identities_hold
from ..spiked_random_features import physics as fe
from .claims_staircases import DIGITS

_DKLPS = "Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270"

declare_claim(
    "conditional-equivalence",
    title="After a giant step, features are Gaussian given the spike",
    statement=(
        r"With rows $w_i = w_i^\perp + m_i v$, $\rho_i = |w_i^\perp|$, and $n \asymp p \asymp d$, "
        r"ridge regression on $\sigma(Wx)$ has the training and test errors of the features "
        r"$\mu(x_v) + \Phi(x_v)\,x^\perp + \Psi(x_v)^{1/2}\xi$, where $\xi$ is Gaussian and "
        r"$$\mu_i = \mathbb{E}\,\sigma(m_i x_v + \rho_i z) ,\quad \Phi = \mathrm{diag}(\beta)"
        r"\,W^\perp ,\quad \beta_i = \mathbb{E}\,\sigma'(m_i x_v + \rho_i z) ,\quad "
        r"\Psi_{ij} = \sum_{k \ge 2} \frac{b_{i,k}\,b_{j,k}}{k!}\,c_{ij}^k ,$$ "
        r"$b_{i,k} = \mathbb{E}\,\sigma(m_i x_v + \rho_i z)\,\mathrm{He}_k(z)$ and $c_{ij}$ the "
        r"cosine of $w_i^\perp$ and $w_j^\perp$. Checked are the moments, not the errors; their "
        r"closed forms are derived here."
    ),
    source=_DKLPS,
    status=Status.THEOREM,
)

SMOOTHED = ("relu", "erf", "Phi", "gelu", "sign", "step", "abs", "sin", "exp")


@evidence("conditional-equivalence", "exact", "closed forms by several routes")
def closed_forms() -> Finding:
    """Closed forms against formulas, the heat equation and Stein's lemma."""
    results: dict[str, bool] = {}
    for name in SMOOTHED:
        result = conditional_equivalence(name)
        mean, slope, square = written_out(name)
        mu, beta = result.mean.expr, result.slope.expr
        results |= {
            f"{name}: E σ is the formula": equal(mu, mean),
            f"{name}: E σ' is the formula": equal(beta, slope),
            f"{name}: E σ' = ∂ E σ/∂c": equal(mu.diff(CENTRE), beta),
            f"{name}: the heat equation": equal(mu.diff(SPREAD), SPREAD * mu.diff(CENTRE, 2)),
            f"{name}: b_1 = ρ β": equal(result.coefficient(1).expr, SPREAD * beta),
            f"{name}: b_3 = ρ³ ∂³ E σ/∂c³": equal(
                result.coefficient(3).expr, SPREAD**3 * beta.diff(CENTRE, 2)
            ),
        }
        if square is not None:
            residual = square - mean**2 - SPREAD**2 * slope**2
            results |= {
                f"{name}: E σ² is the formula": equal(result.second_moment.expr, square),
                f"{name}: Ψ_ii = E σ² − μ² − ρ²β²": equal(result.residual_variance.expr, residual),
            }
    return identities_hold(results, "closed forms of μ, β, Ψ_ii and b_k")


def written_out(name: str) -> tuple[sp.Expr, sp.Expr, sp.Expr | None]:
    """Return E σ, E σ' and E σ² of a student in c and ρ; None where no formula is at hand."""
    c, rho = CENTRE, SPREAD
    t, q, s = c / rho, sp.sqrt(1 + 2 * rho**2), sp.sqrt(1 + rho**2)
    phi, cdf = _density, _distribution
    formulas: dict[str, tuple[sp.Expr, sp.Expr, sp.Expr | None]] = {
        "relu": (
            c * cdf(t) + rho * phi(t),
            cdf(t),
            (c**2 + rho**2) * cdf(t) + c * rho * phi(t),
        ),
        "erf": (
            sp.erf(c / q),
            2 * sp.exp(-(c**2) / q**2) / (q * sp.sqrt(sp.pi)),
            1 - 8 * OwenT(sp.sqrt(2) * c / q, 1 / sp.sqrt(1 + 4 * rho**2)),
        ),
        "Phi": (cdf(c / s), phi(c / s) / s, cdf(c / s) - 2 * OwenT(c / s, 1 / q)),
        "gelu": (
            c * cdf(c / s) + rho**2 / s * phi(c / s),
            cdf(c / s) + c / s**3 * phi(c / s),
            None,
        ),
        "sign": (sp.erf(t / sp.sqrt(2)), 2 * phi(t) / rho, sp.S.One),
        "step": (cdf(t), phi(t) / rho, cdf(t)),
        "abs": (2 * (c * cdf(t) + rho * phi(t)) - c, 2 * cdf(t) - 1, c**2 + rho**2),
        "sin": (
            sp.exp(-(rho**2) / 2) * sp.sin(c),
            sp.exp(-(rho**2) / 2) * sp.cos(c),
            (1 - sp.exp(-2 * rho**2) * sp.cos(2 * c)) / 2,
        ),
        "exp": (sp.exp(c + rho**2 / 2), sp.exp(c + rho**2 / 2), sp.exp(2 * c + 2 * rho**2)),
    }
    return formulas[name]


def _density(x: sp.Expr) -> sp.Expr:
    return sp.exp(-(x**2) / 2) / sp.sqrt(2 * sp.pi)


def _distribution(x: sp.Expr) -> sp.Expr:
    return (1 + sp.erf(x / sp.sqrt(2))) / 2


POLYNOMIALS = ("He2", "He3", "z + He(2, z)/2 - He(4, z)/24")


@evidence("conditional-equivalence", "exact", "polynomial students by hand")
def hermite_students() -> Finding:
    """Polynomial students: the coefficients are those of He_n at an affine argument."""
    results: dict[str, bool] = {}
    for name in POLYNOMIALS:
        result = conditional_equivalence(name)
        sigma = activation(name)
        in_hermite = _hermite_at_affine(sigma)
        degree = max(in_hermite)
        results |= {
            f"{name}: b_{k} = {k}! times the coefficient of He_{k}(z) in σ(c + ρz)": equal(
                result.coefficient(k).expr, sp.factorial(k) * in_hermite.get(k, sp.S.Zero)
            )
            for k in range(degree + 1)
        }
        parseval = sp.Add(*(sp.factorial(k) * c**2 for k, c in in_hermite.items() if k >= 2))
        results[f"{name}: Ψ_ii = Σ b_k²/k!"] = equal(result.residual_variance.expr, parseval)
    return identities_hold(results, "He_n at an affine argument, and Parseval")


def _hermite_at_affine(sigma: Activation) -> dict[int, sp.Expr]:
    """Coefficients of He_k(z) in σ(c + ρz), from He_n(ρz + c) = Σ_k C(n,k) ρ^k He_{n-k} He_k."""
    rest = sp.Poly(sigma.expr, variable)
    total: dict[int, sp.Expr] = {}
    while not rest.is_zero:
        n, leading = rest.degree(), rest.LC()
        for k, c in affine_argument(n, SPREAD, CENTRE).items():
            total[k] = sp.expand(total.get(k, sp.S.Zero) + leading * c)
        rest = rest - sp.Poly(leading * hermite_polynomial(n, variable), variable)
    return total


@evidence("conditional-equivalence", "exact", "covariances of two neurons")
def two_neurons(order: int = 4) -> Finding:
    """E[σ_i σ_j] of correlated Gaussians: its Taylor coefficients in c_ij are b_k b_k'/k!."""
    results: dict[str, bool] = {}
    u, v = sp.symbols("u v", real=True)
    tau = sp.Symbol("tau", real=True)
    pair = correlated_pair(u, v, tau)
    places = ((sp.Rational(1, 2), sp.Rational(4, 5)), (sp.Rational(-1, 3), sp.Rational(6, 5)))
    for name in ("sin", "exp", "erf", *POLYNOMIALS):
        sigma = activation(name)
        first, second = (conditional_equivalence(name, *place) for place in places)
        inside = [sigma(c + rho * x) for (c, rho), x in zip(places, (u, v), strict=True)]
        moment = expect_joint(inside[0] * inside[1], pair)
        for k in range(order + 1):
            series = first.coefficient(k).expr * second.coefficient(k).expr / sp.factorial(k)
            direct = moment.diff((tau, k)).subs(tau, 0) / sp.factorial(k)
            results[f"{name}: coefficient of c_ij^{k}"] = equal(direct, series)
    return identities_hold(results, "Taylor coefficients in the correlation, by Mehler")


WITHOUT_CLOSED_FORM = ("tanh", "softplus")


@evidence("conditional-equivalence", "exact", "the same coefficients as arXiv 2402.04980")
def one_source() -> Finding:
    """The coefficients of Result 3.2 of arXiv 2402.04980 are these, at c = rκ and ρ² its c."""
    results: dict[str, bool] = {}
    for name in (*SMOOTHED, *WITHOUT_CLOSED_FORM):
        sigma = activation(name)
        theirs = fe.conditional_coefficients(sigma, activation("sin"))
        ours = conditional_equivalence(sigma, fe.r * fe.kappa, sp.sqrt(fe.c))
        named = {fe.mu0: ours.mean.definition, fe.mu1: ours.slope.definition}
        results |= {
            f"{name}: μ0 = E σ": theirs[fe.mu0] == ours.mean.definition,
            f"{name}: μ1 = E σ'": theirs[fe.mu1] == ours.slope.definition,
            f"{name}: μ2² = Ψ_ii": theirs[fe.mu2_squared].xreplace(named)
            == ours.residual_variance.definition,
        }
    return identities_hold(results, "one definition for both lines of work")


PLACES = ((sp.Rational(7, 10), sp.Integer(1)), (sp.Rational(-8, 5), sp.Rational(1, 2)))


@evidence("conditional-equivalence", "quadrature", "values against integrals, to 14 digits")
def quadrature(digits: int = 15) -> Finding:
    """μ, β and Ψ_ii at numbers, against integrals with the density on split intervals."""
    ctx = local_context(digits + 10)
    worst, where, count = ctx.zero, "", 0
    for name in (*SMOOTHED, *WITHOUT_CLOSED_FORM, "He3"):
        sigma = activation(name)
        for c, rho in PLACES:
            result = features_at(sigma, 1, [c], [rho], digits=digits)
            values = (result.mean[0], result.slope[0], result.residual_variance[0])
            direct = _by_quadrature(sigma, c, rho, ctx)
            for symbol, value, expected in zip("μβΨ", values, direct, strict=True):
                error = abs(ctx.mpf(str(value)) - expected) / max(1, abs(expected))
                count += 1
                if error >= worst:
                    worst, where = error, f"{symbol} of {name} at c = {c}, ρ = {rho}"
    return Finding(
        bool(worst < ctx.mpf(10) ** (1 - digits)),
        f"{count} values agree with quadrature; largest difference {ctx.nstr(worst, 2)} ({where})",
        {"largest_difference": float(worst), "values": count, "digits": digits},
    )


def _by_quadrature(sigma: Activation, c: sp.Expr, rho: sp.Expr, ctx: Any) -> list[Any]:
    """E σ, E[zσ]/ρ and E(σ − μ − ρzβ)²; kinks of the students here are at 0."""
    value = compiled(sigma(c + rho * variable), [variable], ctx)
    kink = -ctx.mpf(c.p) / c.q * rho.q / rho.p
    ends = sorted({-ctx.mpf(16), ctx.mpf(-6), kink, ctx.mpf(6), ctx.mpf(16)})

    def mean(function: Any) -> Any:
        return ctx.quad(lambda t: function(t) * ctx.npdf(t), ends)

    width = ctx.mpf(rho.p) / rho.q
    mu = mean(value)
    beta = mean(lambda t: t * value(t)) / width
    return [mu, beta, mean(lambda t: (value(t) - mu - width * t * beta) ** 2)]


@evidence(
    "conditional-equivalence",
    "certified",
    "μ, β, E σ² of two students: formulas and integrals meet",
    arguments={"students": ("relu", "erf")},
)
@evidence("conditional-equivalence", "certified", "the same for seven students", slow=True)
def proven_closed_forms(
    students: tuple[str, ...] = ("relu", "erf", "Phi", "gelu", "abs", "sin", "exp"),
) -> Finding:
    """μ, β and E σ² written out by hand lie in proven intervals of their integrals."""
    require_flint()
    formulas = FormulaBalls({})
    results: dict[str, bool] = {}
    for name in students:
        sigma = activation(name)
        written = written_out(name)
        for centre, spread in PLACES:
            f = sigma.expr.xreplace({variable: centre + spread * variable})
            # E σ' by Stein's lemma, so that no derivative is taken.
            integrals = (f, variable * f / spread, f**2)
            for symbol, integrand, formula in zip("μβE", integrals, written, strict=True):
                if formula is None:
                    continue
                proven = formulas.enclosure(GaussianExpectation(integrand, variable), DIGITS)
                value = formulas.enclosure(
                    formula.xreplace({CENTRE: centre, SPREAD: spread}), DIGITS
                )
                results[f"{symbol} of {name} at c = {centre}, ρ = {spread}"] = (
                    overlap(proven, value) and min(proven.digits, value.digits) >= DIGITS
                )
    return decided(results, "closed forms and integrals meet")


STUDENTS = ("relu", "erf", "tanh", "gelu")
PROJECTION = 0.8
_SHOWN_NEURONS = 4


@evidence(
    "conditional-equivalence",
    "simulation",
    "features of two students, d = 100",
    arguments={"students": STUDENTS[:2], "dimension": 100, "width": 30, "blocks": 20, "seed": 81},
)
@evidence("conditional-equivalence", "simulation", "features of four students, d = 300", slow=True)
def sampled_features(
    students: tuple[str, ...] = STUDENTS, dimension: int = 300, width: int = 60,
    blocks: int = 40, block: int = 2000, seed: int = 82,
) -> Finding:  # fmt: skip
    r"""Features of rows :math:`w_i^0 + \lambda_i v` at inputs of one :math:`x_v`.

    What is left of :math:`\sigma(Wx)` without μ and :math:`\mathrm{diag}(\beta) W^\perp x^\perp`
    has mean zero, is uncorrelated with :math:`x^\perp`, and its covariance is Ψ: the diagonal, and
    off it the slope of what is sampled on the series in :math:`c_{ij}`, whose entries are O(1/d).
    """
    comparisons: list[Comparison] = []
    sizes: dict[str, float] = {}
    for index, name in enumerate(students):
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
        rows = generator.standard_normal((width, dimension))
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        scales = generator.uniform(-1.5, 1.5, width)
        overlaps, spreads = spiked_rows(
            scales.tolist(), rows[:, 0].tolist(), np.linalg.norm(rows, axis=1).tolist()
        )
        outside = rows[:, 1:]
        m, rho = (np.array(values, dtype=float) for values in (overlaps, spreads))
        sigma = activation(name)
        function = network_functions(sigma, target("x1")).student
        features = features_at(sigma, PROJECTION, overlaps, spreads)
        mu, beta, variance = (
            np.array(values, dtype=float)
            for values in (features.mean, features.slope, features.residual_variance)
        )
        predicted = _off_diagonal(sigma, m, rho, outside)
        direction = outside[0] / rho[0]
        samples = [
            _block(generator, function, m, outside, mu, beta, direction, block)
            for _ in range(blocks)
        ]
        left, along, covariances = (np.array(part) for part in zip(*samples, strict=True))
        for i in range(_SHOWN_NEURONS):
            own = f"{name}, neuron {i + 1}, d = {dimension}"
            comparisons += [
                compare(f"mean of {own}", float(mu[i]), left[:, i] + mu[i]),
                compare(f"β along w_1 of {own}", 0.0, along[:, i]),
                compare(f"Ψ_ii of {own}", float(variance[i]), covariances[:, i, i]),
            ]
        above = np.triu_indices(width, 1)
        wanted = predicted[above]
        slopes = covariances[:, above[0], above[1]] @ wanted / (wanted @ wanted)
        comparisons.append(compare(f"Ψ_ij on its series, {name}, d = {dimension}", 1.0, slopes))
        sizes[name] = float(dimension * np.abs(wanted).mean())
    result = finding(comparisons, "means, covariances and slopes")
    small = all(size < 1 for size in sizes.values())
    largest = max(sizes.values())
    return Finding(
        result.passed and small,
        f"{result.summary}; mean |Ψ_ij| off the diagonal at most {largest:.2g}/d",
        {**result.details, "off_diagonal_times_d": sizes},
    )


Array = NDArray[np.float64]


def _block(
    generator: np.random.Generator, function: Any, m: Array, outside: Array, mu: Array,
    beta: Array, direction: Array, count: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Mean of what is left, its covariance with one direction of x⊥, and its covariance."""
    inputs = generator.standard_normal((count, outside.shape[1]))
    fields = inputs @ outside.T
    left = function(fields + PROJECTION * m) - mu - beta * fields
    return left.mean(axis=0), (left.T @ (inputs @ direction)) / count, left.T @ left / count


def _off_diagonal(sigma: Activation, m: Array, rho: Array, outside: Array, order: int = 4) -> Array:
    """The series of Ψ_ij to an order, by Gauss–Hermite quadrature of b_k in double precision."""
    normal = outside / rho[:, None]
    correlations = normal @ normal.T
    nodes, weights = gauss_hermite_rule(200)
    values = network_functions(sigma, target("x1")).student(
        PROJECTION * m[:, None] + rho[:, None] * nodes
    )
    total = np.zeros_like(correlations)
    factorial = 1
    for k in range(2, order + 1):
        factorial *= k
        polynomial = np.polynomial.hermite_e.hermeval(nodes, [0] * k + [1])
        b = values @ (weights * polynomial)
        total += np.outer(b, b) * correlations**k / factorial
    return total
