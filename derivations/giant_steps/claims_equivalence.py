r"""Claim: features after a giant step are Gaussian given the spike.

The closed forms of the coefficients are compared with formulas written out by hand, with the heat
equation :math:`\partial_\rho \mu = \rho\,\partial_c^2 \mu` that defines smoothing, with Hermite
polynomials of an affine argument, and with Mehler's formula for two neurons. Then with quadrature
that knows none of the rules, and with the features of actual rows :math:`W^0 + \lambda v^T`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy as sp
from numpy.polynomial.hermite_e import hermegauss
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
from ...symbolic.targets.projections import project
from ...symbolic.targets.spans import spans_of
from ...symbolic.targets.subspaces import Subspace
from ...symbolic.targets.target import target
from ..certificates.agreement import decided, overlap
from ..claims import Finding, Option, Status, declare_claim, evidence
from ..comparison import Comparison, compare, finding
from ..first_gradient.training import network_functions
from ..identities import equal, identities_hold
from ..networks import Network, simulate
from ..spiked_random_features import physics as fe
from .claims_staircases import DIGITS, SEED, projections_in_frames, ranks_of_population_dynamics
from .conjectures import check_conjecture_1, check_conjecture_3

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
        "relu": (c * cdf(t) + rho * phi(t), cdf(t), (c**2 + rho**2) * cdf(t) + c * rho * phi(t)),
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


# ----------------------------------------------------------------------
# Claims: two conjectures on giant steps, hunted for counterexamples among random targets.

_STORE = Option("store", "folder for finished targets", None, None)


def _options(steps: int, networks: int, multiple: int) -> tuple[Option, ...]:
    return (
        Option("targets", "how many random targets are tried", 3),
        Option("dimension", "the larger input dimension d", 120, 40, multiple),
        Option("steps", "giant steps", steps),
        Option("networks", "networks for each target and size", networks, 2),
        Option("seed", "entropy of targets and networks", SEED, 0),
        _STORE,
    )


declare_claim(
    "conjecture-1",
    title="After t giant steps exactly U_t is learned",
    statement=(
        r"With $n = \Theta(d)$ fresh samples for each step, generic readouts and a rate of order "
        r"$p$, the neurons have overlaps of order one with all directions of $U_t$, and only with "
        r"those, after $t$ steps."
    ),
    source=f"{_DKLPS}, conjecture 1; proved there for two steps in expectation",
    status=Status.CONJECTURE,
)

evidence(
    "conjecture-1",
    "certified",
    "ranks of the overlaps of networks on the population loss are the dimensions of U_t",
)(ranks_of_population_dynamics)


@evidence(
    "conjecture-1",
    "simulation",
    "a few random targets at two sizes, or as many as the options say",
    options=_options(steps=3, networks=12, multiple=2),
)
@evidence(
    "conjecture-1",
    "simulation",
    "50 random targets, d = 200 and 400",
    slow=True,
    options=(_STORE,),
    arguments={"dimension": 400, "networks": 12, "seed": SEED, "steps": 3, "targets": 50},
)
def conjecture_1(
    targets: int, dimension: int, steps: int, networks: int, seed: int,
    store: str | None = None, progress: bool = False,
) -> Finding:  # fmt: skip
    """Agreement rates and every disagreement of random targets with Conjecture 1."""
    return check_conjecture_1(
        targets, dimension, steps, networks=networks, samples_per_dimension=32, seed=seed,
        store=store, progress=progress,
    ).finding()  # fmt: skip


declare_claim(
    "conjecture-3",
    title="Ridge regression on learned features leaves what is of high degree outside U",
    statement=(
        r"With $n \asymp d^{\kappa_1}$ samples and $p \asymp d^{\kappa_2}$ neurons that have "
        r"learned $U$, ridge regression of the readout has an error of at least $\|P_{U,>\kappa} "
        r"f\|^2 + o(1)$, $\kappa = \min(\kappa_1, \kappa_2)$. Checked for $\kappa = 1$."
    ),
    source=f"{_DKLPS}, conjecture 3",
    status=Status.CONJECTURE,
)

evidence("conjecture-3", "exact", "the bound itself, against explicit frames")(
    projections_in_frames
)


@evidence(
    "conjecture-3",
    "simulation",
    "a few random targets at two sizes, or as many as the options say",
    options=_options(steps=2, networks=24, multiple=4),
)
@evidence(
    "conjecture-3",
    "simulation",
    "10 random targets, d = 200 and 400",
    slow=True,
    options=(_STORE,),
    arguments={"dimension": 400, "networks": 24, "seed": SEED, "steps": 2, "targets": 10},
)
def conjecture_3(
    targets: int, dimension: int, steps: int, networks: int, seed: int,
    store: str | None = None, progress: bool = False,
) -> Finding:  # fmt: skip
    """Agreement rates and every disagreement of random targets with Conjecture 3."""
    return check_conjecture_3(
        targets, dimension, steps, networks=networks, seed=seed, store=store, progress=progress
    ).finding()


# ----------------------------------------------------------------------
# Claims: small batches, networks of many neurons on what was learned, and sums of equal links. Of
# a sum of links :math:`f = \sum_{i \le r} \sigma_i(w_i\cdot x)` one step at leap index k learns
# the range of :math:`C_k = \sum_i \mu_k(\sigma_i)\,w_i^{\otimes k}`. "All directions at once,
# always if σ_1 = … = σ_r" is a theorem for k ≥ 2 and linearly independent w_i: with the dual basis
# :math:`v_j\cdot w_i = \delta_{ij}`,
#
# .. math:: C_k[v_j^{k-1}, \cdot] = \mu_k(\sigma)\,w_j .
#
# It is false for k = 1, where :math:`C_1 = \mu_1 \sum_i w_i` is one
# direction, and for dependent w_i.


_dimension, _signal, _noise, _gap = sp.symbols("d S N epsilon", positive=True)
_leap = sp.Symbol("ell", positive=True, integer=True)


def _share(exponent: sp.Expr) -> sp.Expr:
    """Return the share of the squared gradient inside V* from n = d^exponent samples."""
    inside = _signal * _dimension ** (1 - _leap)
    return inside / (inside + _noise * _dimension ** (1 - exponent))


_SHARE = _share(_leap - _gap)

declare_claim(
    "small-batches",
    title="Small batches learn nothing in any number of giant steps",
    statement=(
        r"From $n = O(d^{\ell-\epsilon})$ fresh samples for each step, $\ell$ the leap index, the "
        r"directions of the neurons keep a vanishing share of $V^*$ after any fixed number of "
        r"giant steps: the share of the squared gradient there is $«share»$ with $S$ of signal "
        r"and $N = \mathbb{E}f^2\,\mathbb{E}\sigma'^2$ of noise."
    ),
    formulas={"share": _SHARE},
    source=f"{_DKLPS}: a theorem for one step, a conjecture for several",
    status=Status.CONJECTURE,
)


@evidence("small-batches", "exact", "the share of one gradient for small and for large batches")
def shares_of_gradients() -> Finding:
    """Limits of the share of the gradient inside V*, below and at the exponent of the theorem."""
    results = {}
    for leap in (1, 2, 3):
        for gap in (sp.Rational(1, 4), sp.S.Half, sp.S.One):
            small = _SHARE.subs({_leap: leap, _gap: gap})
            results[f"leap {leap}, n = d^({leap} - {gap}): nothing"] = (
                sp.limit(small, _dimension, sp.oo) == 0
            )
        enough = sp.limit(_SHARE.subs({_leap: leap, _gap: 0}), _dimension, sp.oo)
        results[f"leap {leap}, n = d^{leap}: a share"] = bool(
            sp.simplify(enough - _signal / (_signal + _noise)) == 0
        )
    return identities_hold(results, "the share vanishes below n = d^leap, and does not at it")


_SIZES, _STEPS, _NETWORKS = (64, 256), 3, 8


@evidence("small-batches", "simulation", "three steps from √d and d^(3/2) samples, d = 64 and 256")
def shares_of_networks() -> Finding:
    """Shares of rows inside V* after three steps: they fall with d for small batches alone."""
    shares: dict[str, list[float]] = {}
    errors: dict[str, list[float]] = {}
    for name, exponent in (("small", 0.5), ("large", 1.5)):
        for d in _SIZES:
            network = Network(
                "sin(z + pi/4)", "x1 + x1*x2", dimension=d, width=32, steps=_STEPS,
                step_samples=round(d**exponent), step_size=2.0,
            )  # fmt: skip
            found = simulate(network, _share_inside, seeds=_NETWORKS, seed=SEED, progress=False)
            shares.setdefault(name, []).append(float(np.mean(found["share"])))
            errors.setdefault(name, []).append(float(found.standard_error("share")))
    fall = shares["small"][0] - shares["small"][1]
    passed = (
        fall > 3 * math.hypot(*errors["small"])
        and shares["large"][1] > shares["large"][0] - 3 * math.hypot(*errors["large"])
        and shares["small"][1] < 0.5 * shares["large"][1]
    )
    return Finding(
        bool(passed),
        f"from sqrt(d) samples {shares['small'][0]:.3f} and {shares['small'][1]:.3f} of the rows "
        f"are inside at d = 64 and 256, from d^(3/2) {shares['large'][0]:.3f} and "
        f"{shares['large'][1]:.3f}",
        {"shares": shares, "standard_errors": errors},
    )


def _share_inside(trained: Any) -> dict[str, Any]:
    rows = trained.layer.rows
    inside = rows[:, : trained.network.directions]
    return {"share": np.array((inside**2).sum() / (rows**2).sum())}


declare_claim(
    "few-neurons-converse",
    title="Many neurons on the learned subspace attain the bound of few",
    statement=(
        r"A network of $p = O(1)$ neurons inside $U$ has an error of at least $\mathbb{E}\,"
        r"\mathrm{Var}(f\,|\,x_U)$ (theorem). Conversely the least error over readouts of generic "
        r"neurons $\sin(w\cdot x_U + b)$ tends to it as $p \to \infty$ after $d \to \infty$: these "
        r"functions are dense in $L^2$ of the Gaussian on $U$."
    ),
    source=f"the bound: {_DKLPS}; the converse is derived here",
    status=Status.DERIVED_HERE,
)


@evidence("few-neurons-converse", "quadrature", "least errors of 2 to 32 neurons on two targets")
def errors_of_many_neurons() -> Finding:
    """The part of E[f | x_U] that p neurons inside U leave, by Gauss–Hermite quadrature."""
    nodes, weights = hermegauss(60)
    weights = weights / weights.sum()
    left: dict[str, list[float]] = {}
    random = np.random.default_rng(SEED)
    slopes, offsets = random.normal(size=32) * 1.5, random.uniform(0, 2 * math.pi, 32)
    for text in ("x1 + x1*x2 + He(3, x1)/3", "He(2, x1) - x1*He(2, x2) + x1"):
        f = target(text)
        learned = Subspace.spanned_by([[1, 0]], 2)
        fitted = project(f, learned, 0).fitted
        values = compiled(fitted, f.variables)(nodes, 0 * nodes) * np.ones_like(nodes)
        size = float((weights * values**2).sum())
        root = np.sqrt(weights)[:, None]
        features = np.sin(np.outer(nodes, slopes) + offsets) * root
        for p in (2, 8, 32):
            fit = np.linalg.lstsq(features[:, :p], values * root[:, 0], rcond=1e-13)[0]
            rest = values * root[:, 0] - features[:, :p] @ fit
            left.setdefault(text, []).append(float((rest**2).sum()) / size)
    passed = all(x[0] > x[1] > x[2] and x[2] < 1e-4 for x in left.values())
    worst = max(x[2] for x in left.values())
    return Finding(
        passed,
        f"what 2, 8 and 32 neurons leave of E[f | x_U] falls, to {worst:.1e} of its square",
        {"left": left},
    )


declare_claim(
    "equal-links",
    title="One step learns all directions of a sum of equal links from leap index 2 on",
    statement=(
        r"Let $f = \sum_{i \le r} \sigma(w_i\cdot x)$ with linearly independent $w_i$ and leap "
        r"index $\ell \ge 2$. Then $C_\ell[v_j^{\ell-1}, \cdot] = \mu_\ell(\sigma)\,w_j$ for the "
        r"dual basis $v_j$, and one step learns all of $\mathrm{span}(w_i)$. Not so for $\ell = "
        r"1$, where it learns $\sum_i w_i$ alone, for dependent $w_i$, and where links differ."
    ),
    source=f"after {_DKLPS}, whose theorem is for sums of functions of one coordinate; proof here",
    status=Status.DERIVED_HERE,
)

# Directions as rows, orthonormal or not.
_FRAMES = (
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((1, 0, 0), (sp.Rational(3, 5), sp.Rational(4, 5), 0)),
    ((sp.Rational(2, 3), sp.Rational(2, 3), sp.Rational(1, 3)), (0, 0, 1), (0, 1, 0)),
)


@evidence("equal-links", "exact", "contractions with dual bases, and ranges of Hermite tensors")
def ranges_of_equal_links() -> Finding:
    """The range of C_k of sums of equal links is everything, and what fails where it is said."""
    results: dict[str, bool] = {}
    x = sp.symbols("x1:4", real=True)
    for frame in _FRAMES:
        rows = sp.Matrix(frame)
        dual = (rows * rows.T).inv() * rows
        for leap in (2, 3, 4):
            tensor = [
                sum(
                    ((dual.row(j) * rows.row(i).T)[0] ** (leap - 1) * rows.row(i)
                     for i in range(rows.rows)), sp.zeros(1, 3),
                )
                for j in range(rows.rows)
            ]  # fmt: skip
            results[f"contractions, {rows.rows} links, order {leap}"] = all(
                row == rows.row(j) for j, row in enumerate(tensor)
            )
            results[f"range, {rows.rows} links, order {leap}"] = _learned(
                frame, f"He({leap}, {{}})", x
            ) == Subspace.spanned_by(frame, 3)
    first = _learned(_FRAMES[0], "{}", x)
    results["leap 1: the sum of the directions alone"] = first == Subspace.spanned_by(
        [[1, 1, 1]], 3
    )
    opposite = [(1, 0, 0), (-1, 0, 0), (0, 1, 0)]
    results["dependent directions: opposite odd links cancel"] = _learned(
        opposite, "He(3, {})", x
    ) == Subspace.spanned_by([[0, 1, 0]], 3)
    other = spans_of(target("He(2, x1) + He(3, x2)")).grow(Subspace.zero(2), 2)
    results["links that differ: those of the lowest order alone"] = (
        other.subspace == Subspace.spanned_by([[1, 0]], 2)
    )
    return identities_hold(
        results, "equal links show all directions from order 2 on, and not in the three exceptions"
    )


def _learned(frame: Any, link: str, x: Any) -> Subspace:
    """Return the range of the first Hermite tensor of a sum of one link of several directions."""
    parts = []
    for row in frame:
        along = "(" + " + ".join(f"({c})*x{i + 1}" for i, c in enumerate(row)) + ")"
        parts.append(link.format(along))
    f = target(" + ".join(parts), variables=x)
    return spans_of(f).grow(Subspace.zero(3), 9, strict=True).subspace
