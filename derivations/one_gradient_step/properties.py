r"""What holds for the risk of one gradient step at all parameters, with its proofs.

The improvement :math:`\delta = R_0 - R_{GD}` is positive and grows with the step, the penalty grows
with the effective ridge, and limits. Each is derived from the expressions of
:mod:`giantstep.symbolic.systems.ridge_equivalent`, which is where the risk is written, in two kinds
of steps. An identity brings an expression to a form in which every term has a sign; it is decided
exactly, as a rational function of the variable s, in which the resolvent of the Marchenko–Pastur
law is rational. The sign of that form then follows from the assumptions on its symbols alone. Where
μ_1 = 0 the features hold nothing of the linear part, the step has no spike, and δ = 0; the proofs
are for b = μ_1² > 0.

(Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445, state the first two for n/d → ∞; in general
they are derived here.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

import sympy as sp

from ...errors import ParameterError
from ...pages import Block, Listing
from ...result import Result
from ...symbolic.expressions.factors import factored
from ...symbolic.systems.random_matrix import Resolvent, resolvent_moment
from ...symbolic.systems.ridge_equivalent import FeatureCovariance, ScalarForm, Spike
from ..conjectures.proofs import NotProven, Proof, proof_by_assumptions
from ..conjectures.statements import Comparison, equal, positive
from ..identities import cancels
from .symbols import alpha, beta, teacher_linear

s = sp.Symbol("s", positive=True)
"""The variable of the closed form, larger than 1 and β."""
kappa = sp.Symbol("kappa", nonnegative=True)
"""μ_{>1}²/μ_1²."""
slope = sp.Symbol("b", positive=True)
"""b = μ_1², where it does not vanish."""
floor = sp.Symbol("v", nonnegative=True)
"""v = μ_{>1}²."""
nu = sp.Symbol("nu", positive=True)
"""The effective ridge ν."""

_RESOLVENT = sp.Symbol("G", positive=True)
_T, _W = sp.symbols("t w", positive=True)
_ABOVE = {s: 1 + _T, beta: (1 + _T) * _W / (1 + _W)}
"""s above 1 and β, so that leading coefficients of limits have signs."""

COVARIANCE = FeatureCovariance(slope=slope, floor=floor, aspect=beta, effective_ridge=nu)
"""The features of the first layer, in symbols whose signs are known."""
SCALAR = ScalarForm(s, beta, alpha, kappa)
"""The same in the variable s."""


def in_s(expr: sp.Basic) -> sp.Basic:
    """Write an expression of :data:`COVARIANCE` as a rational function of s, κ, b, β and others.

    G = 1/(b(s − β)), v = κb and ν = b(ω − κ).
    """
    resolvent = 1 / (slope * (s - beta))
    expr = _with_resolvent(expr, resolvent)
    return expr.xreplace({nu: slope * SCALAR.effective_ridge, floor: slope * kappa})


def _with_resolvent(expr: sp.Basic, value: sp.Expr) -> sp.Basic:
    """Replace the one resolvent of an expression."""
    if len(expr.atoms(Resolvent)) > 1:
        raise ValueError(f"{expr} has resolvents at several points")
    return expr.replace(Resolvent, lambda *_: value)


def vanishes(expr: sp.Expr) -> bool:
    """Decide whether an expression is zero as a rational function, square roots included."""
    return cancels(in_s(expr))


@dataclass(frozen=True)
class Step:
    """One step of a proof: says what it is, proves it again, shows its formula.

    Equations are proven in the variable s, inequalities for every positive resolvent; of the
    average of 1/(a + bX) an inequality may use no more than its sign.
    """

    text: str
    statement: Comparison

    def proof(self) -> Proof:
        """Prove the step.

        Raises
        ------
        NotProven
            If it does not hold, or is not known to.
        ParameterError
            If a limit is infinite, or not everywhere the same.
        """
        one = self.statement
        if one.relation == "==":
            sides = in_s(sp.Tuple(one.left, one.right))
            tending = {limit.args[1] for limit in sides.atoms(sp.Limit)}
            if tending and not tending & {s, beta}:
                sides = sides.xreplace(_ABOVE)
            return proof_by_assumptions(equal(*sides), "identity")
        return proof_by_assumptions(
            positive(_with_resolvent(one.left, _RESOLVENT)), "positive terms"
        )

    def holds(self) -> bool:
        """Tell whether it is proven; what is not known does not hold."""
        try:
            self.proof()
        except (NotProven, ParameterError):
            # The latter: a limit that is none, or not everywhere the same.
            return False
        return True

    def latex(self) -> str:
        """Return its formula."""
        return self.statement.latex()


def tends(expr: sp.Expr, symbol: sp.Symbol, value: sp.Expr) -> Comparison:
    """State to what an expression tends as a positive symbol tends to infinity."""
    return equal(sp.Limit(expr, symbol, sp.oo), value)


@dataclass(frozen=True, repr=False)
class Property(Result):
    """A property of the risk with its proof.

    Attributes
    ----------
    statement : str
        In LaTeX: text with mathematics between dollar signs.
    steps : tuple of Step
        Of which the statement follows.
    values : mapping of str to Expr
        Formulas that the statement introduces, by name.
    """

    _document = "property"

    name: str
    statement: str
    steps: tuple[Step, ...]
    values: Mapping[str, sp.Expr] = field(default_factory=dict)

    def check(self) -> dict[str, bool]:
        """Decide every step again; what each says, and whether it holds."""
        return {step.text: step.holds() for step in self.steps}

    @property
    def proved(self) -> bool:
        """Whether every step holds."""
        return all(self.check().values())

    def page(self) -> Iterable[Block]:
        """Return the statement, and what its steps say with their formulas."""
        yield f"{self.name}: {self.statement}"
        formulas = [rf"\({step.latex()}\)" for step in self.steps]
        yield Listing([step.text for step in self.steps], beside=formulas)

    def latex(self) -> str:
        """Return the steps in LaTeX, one below the other, without delimiters."""
        lines = r" \\ ".join(step.latex() for step in self.steps)
        return rf"\begin{{gathered}}{lines}\end{{gathered}}"

    def __repr__(self) -> str:
        return f"Property({self.name!r}, {len(self.steps)} steps)"

    def _repr_markdown_(self) -> str:
        steps = "\n".join(rf"- {step.text}: ${step.latex()}$" for step in self.steps)
        return f"**{self.name}.** {self.statement}\n\n{steps}"


aligned = sp.Symbol("theta_2^2", positive=True)
"""θ2², of a spike with a part along the teacher."""
orthogonal = sp.Symbol("tau", nonnegative=True)
"""θ1² − θ2²."""
energy = sp.Symbol("e", positive=True)
"""η²."""
aligned_rate = sp.Symbol("a_2", positive=True)
"""θ2²/η²."""
orthogonal_rate = sp.Symbol("a_1", nonnegative=True)
"""(θ1² − θ2²)/η²."""
ratio = sp.Symbol("r", positive=True)
"""N/n."""
shrinkage = sp.Symbol("q", nonnegative=True)
"""q = λ_B/ν; it vanishes in the ridgeless limit for N > n."""
rest = sp.Symbol("m", nonnegative=True)
"""What no linear readout explains: ‖P_{>1}f‖² and the noise variance."""
width = sp.Symbol("P", positive=True)
"""(s − β)/β of wide networks."""

SPIKE = Spike(aligned, orthogonal)
LONGER = Spike(energy * aligned_rate, energy * orthogonal_rate)
DERIVATIVE = COVARIANCE.derivative(ratio, shrinkage)


def _same_denominator() -> Step:
    """The identity that turns s² − β into a product of positive quantities."""
    return Step("s² − β is a product of positive quantities", equal(s**2 - beta, _gap()))


def _gap() -> sp.Expr:
    """s² − β as a product: s² G (a + bh²)."""
    h = COVARIANCE.companion
    return COVARIANCE.s**2 * COVARIANCE.resolvent * (COVARIANCE.shift + slope * h**2)


def nonnegative_improvement() -> Property:
    """δ ≥ 0, and δ = 0 only without a spike along the teacher."""
    reduction = COVARIANCE.bias_reduction(SPIKE)
    return Property(
        "improvement",
        r"$\delta = R_0 - R_{GD} \ge 0$ for all parameters, and $\delta = 0$ if and only if "
        r"$\mu_1 \mu_1^* \eta = 0$.",
        (
            Step(
                "what the spike takes off the squared bias, over the linear part of the labels",
                equal(COVARIANCE.bias() - COVARIANCE.bias(SPIKE), reduction),
            ),
            Step("it is positive for θ2 ≠ 0", positive(reduction)),
            Step("what it is divided by is positive", positive(DERIVATIVE)),
            Step(
                "it vanishes for θ2 = 0, whatever θ1 is",
                equal(COVARIANCE.bias_reduction(Spike(sp.S.Zero, orthogonal)), sp.S.Zero),
            ),
        ),
        {"improvement": teacher_linear**2 * reduction / DERIVATIVE},
    )


def increases_with_step() -> Property:
    """δ grows strictly with η at every (α, β, λ)."""
    reduction = COVARIANCE.bias_reduction(LONGER)
    response, total = COVARIANCE.response, LONGER.square
    g = response.inverse_s
    # The remainder is 1 - g, which turns the one difference in the derivative into a product.
    rest = (1 + response.remainder + total * g**2) / (1 + total * g)
    increase = aligned_rate * g / (1 + total * g) ** 2 * (response.flat + response.steep * rest)
    return Property(
        "monotone in the step",
        r"$\delta$ increases strictly with $\eta$ at every $(\alpha, \beta, \lambda)$ if "
        r"$\mu_1 \mu_1^* \ne 0$: $\nu$ and $D$ do not depend on $\eta$.",
        (
            Step("derivative with respect to e = η²", equal(reduction.diff(energy), increase)),
            Step("it is positive", positive(increase)),
        ),
    )


def large_step_limit() -> Property:
    """η → ∞ after d → ∞: the share cos² of the bias of the linear part goes away."""
    cosine = aligned_rate / (aligned_rate + orthogonal_rate)
    share = cosine * COVARIANCE.bias()
    return Property(
        "large steps",
        r"$\delta \to \cos^2(u, \beta_*)\,\mu_1^{*2}\,B_0/D$ for $\eta \to \infty$, where $B_0$ is "
        r"the squared bias without a step over $\mu_1^{*2}$. Only formal: the limit $d \to \infty$ "
        r"comes first, and Gaussian equivalence fails for large steps.",
        (Step("limit e = η² → ∞", tends(COVARIANCE.bias_reduction(LONGER), energy, share)),),
        {"share": cosine, "improvement": teacher_linear**2 * share / DERIVATIVE},
    )


def wide_network_limit() -> Property:
    r"""β → ∞: δ = O(1/β), with its coefficient."""
    wide = {s: beta * (1 + width)}
    used = 1 - (1 / (1 + width) + kappa / width) / alpha
    condition = alpha * width**2 + (alpha - 1 - kappa) * width - kappa
    q = SCALAR.shrinkage.xreplace(wide)
    derivative = SCALAR.derivative.xreplace(wide)
    reduction = (SCALAR.bias() - SCALAR.bias(SPIKE)).xreplace(wide)
    # Where q goes to zero only the second term of D is left.
    limit = width / alpha * (1 / (1 + width) ** 2 + kappa / width**2)
    coefficient = 2 * aligned * alpha * width**3
    coefficient /= (1 + width) * (width**2 + kappa * (1 + width) ** 2)
    solved = (1 + kappa - alpha + sp.sqrt((alpha - 1 - kappa) ** 2 + 4 * alpha * kappa)) / 2
    root = solved / alpha
    return Property(
        "wide networks",
        r"$\beta\,\delta \to 2\mu_1^{*2}\theta_2^2 P^2/((1+P)^3 D)$ for $\beta \to \infty$ at "
        r"fixed $\alpha$ and $\lambda_B$, with $D = \frac P\alpha\big(\frac1{(1+P)^2} + "
        r"\frac\kappa{P^2}\big)$ "
        r"and $P > 0$ of $\alpha P^2 + (\alpha - 1 - \kappa)P = \kappa$: "
        r"$s = \beta(1+P)$ and $\nu = \mu_1^2 \beta P$ to leading order, so $q = \lambda_B/\nu$ "
        r"vanishes. For $\kappa = 0$ and $\alpha \ge 1$ there is no such $P$, and $\delta$ is "
        r"smaller than $1/\beta$.",
        (
            Step(
                "ν grows like β", tends(SCALAR.effective_ridge.xreplace(wide) / beta, beta, width)
            ),
            Step("q in terms of P", tends(q, beta, used)),
            Step("where q vanishes", equal(used * alpha * width * (1 + width), condition)),
            Step("P solves this", equal(condition.xreplace({width: root}), sp.S.Zero)),
            Step("D − q", tends(derivative - q, beta, limit)),
            Step(
                "coefficient of the improvement",
                tends(beta * reduction / (derivative - q), beta, coefficient),
            ),
        ),
        {"P": root, "coefficient": teacher_linear**2 * coefficient.xreplace({width: root})},
    )


def many_samples_limit() -> Property:
    """α → ∞: ν = λ, q = D = 1, and the spike points along the teacher."""
    closed = COVARIANCE.bias_reduction(Spike(aligned))
    x, spread = SCALAR.effective_ridge, s * (s - beta) / (s**2 - beta)
    rest = (2 * s - 1 + aligned) / (s + aligned)
    in_s_alone = aligned / ((s - 1) * (s + aligned)) * (kappa + x * spread * rest)
    return Property(
        "many samples",
        r"For $\alpha \to \infty$, in both stages, $\nu = \lambda_B$, $q = D = 1$ and "
        r"$\theta_1 = \theta_2$; $R$ is the squared bias, and $\delta$ a rational function of $s$ "
        r"with $(s-1)(s-\beta)/s = \kappa + \lambda_B/\mu_1^2$.",
        (
            Step("q → 1", tends(SCALAR.shrinkage, alpha, sp.S.One)),
            Step("D → 1", tends(SCALAR.derivative, alpha, sp.S.One)),
            Step("improvement over μ_1*²", equal(closed, in_s_alone)),
        ),
        {"improvement": teacher_linear**2 * in_s_alone},
    )


def large_ridge_limit() -> Property:
    """λ → ∞: δ falls like 1/λ."""
    reduction = SCALAR.bias() - SCALAR.bias(SPIKE)
    ridge = slope * SCALAR.ridge
    coefficient = 2 * slope * aligned
    return Property(
        "large penalties",
        r"$\lambda_B\,\delta \to 2\mu_1^2\mu_1^{*2}\theta_2^2$ for $\lambda_B \to \infty$.",
        (
            Step("λ_B/s", tends(ridge / s, s, slope)),
            Step("D → 1", tends(SCALAR.derivative, s, sp.S.One)),
            Step("λ_B δ/μ_1*²", tends(ridge * reduction / SCALAR.derivative, s, coefficient)),
        ),
        {"coefficient": teacher_linear**2 * coefficient},
    )


def ordered_risks() -> Property:
    """R_0 ≥ R_GD ≥ B_GD ≥ ‖P_{>1}f‖²."""
    freedom = COVARIANCE.degrees_of_freedom_2
    q = 1 - ratio + ratio * nu * COVARIANCE.resolvent
    bias = COVARIANCE.bias(SPIKE)
    return Property(
        "order of the risks",
        r"$R_0 \ge R_{GD} \ge B_{GD} \ge \|P_{>1}f_*\|^2$: the first by $\delta \ge 0$, the second "
        r"as $R - B = (B + \Delta)(1 - D)/D$.",
        (
            Step("1 − D", equal(1 - COVARIANCE.derivative(ratio, q), ratio * freedom)),
            Step("it is positive", positive(freedom)),
            Step("squared bias of the linear part", positive(bias)),
            Step("D is positive where q ≥ 0", positive(DERIVATIVE)),
        ),
    )


def increasing_ridge() -> Property:
    """λ grows strictly with s, and which of the two lower bounds of s counts."""
    vanishing, full = SCALAR.lower_bounds()
    x, q = SCALAR.effective_ridge, SCALAR.shrinkage
    # (s - β)² is 1/(bG)².
    growth = 1 / COVARIANCE.s**2 + kappa * (slope * COVARIANCE.resolvent) ** 2
    at_vanishing = SCALAR.shrinkage.xreplace({kappa: SCALAR.omega})
    return Property(
        "penalty and s",
        r"$\lambda_B(s)$ increases strictly from 0 to $\infty$ on $s > \max(s_A, s_B)$, with "
        r"$\nu = 0$ at $s_A$ and $q = 0$ at $s_B$; $s_A > s_B$ if and only if $N < n$, as "
        r"$q(s_A) = 1 - \beta/\alpha$ and $q$ increases.",
        (
            Step("dλ_B/ds is D dν/ds", equal(SCALAR.ridge.diff(s), SCALAR.derivative * x.diff(s))),
            Step("dν/ds", equal(x.diff(s), _gap() / s**2)),
            Step("it is positive", positive(_gap() / s**2)),
            Step("D is positive where q ≥ 0", positive(DERIVATIVE)),
            Step("dq/ds", equal(q.diff(s), beta / alpha * growth)),
            Step("it is positive, too", positive(beta / alpha * growth)),
            Step("q where ν = 0", equal(at_vanishing, 1 - beta / alpha)),
            Step("ν = 0 at s_A", equal(x.xreplace({s: vanishing}), sp.S.Zero)),
            Step("q = 0 at s_B", equal(q.xreplace({s: full}), sp.S.Zero)),
        ),
        {"s_A": vanishing, "s_B": full},
    )


def positive_optimal_ridge() -> Property:
    """N < n: the best penalty is positive; μ_1 μ_1* = 0: it is infinite."""
    pace = slope * SCALAR.effective_ridge.diff(s)
    bias, derivative = SCALAR.bias(SPIKE).diff(s) / pace, SCALAR.derivative.diff(s) / pace
    sum_of_terms, third = _bias_slope(), _third_moment()
    return Property(
        "optimal penalty",
        r"$B$ and $D$ increase with $\nu$, $dB/d\nu$ like $\nu$ itself. For $N < n$ the limit "
        r"$\lambda \to 0$ is $\nu = 0$, where $(B + \Delta)/D$ therefore decreases: the best "
        r"penalty is positive as soon as $B + \Delta > 0$ there. For $\mu_1\mu_1^* = 0$ only "
        r"$D$ depends on $\nu$ and the best penalty is infinite.",
        (
            _same_denominator(),
            Step("dB/dν over μ_1*²", equal(bias, nu * sum_of_terms)),
            Step("it is ν times a positive quantity", positive(sum_of_terms)),
            Step("dD/dν", equal(derivative, 2 * beta / alpha * third)),
            Step("it is positive", positive(third)),
        ),
        {"bias_slope": nu * sum_of_terms, "derivative_slope": 2 * beta / alpha * third},
    )


@cache
def _bias_slope() -> sp.Expr:
    r"""dB/dν over ν and μ_*²: 2 c^T(Σ+ν)^{-3}c/μ_*², with all denominators positive."""
    denominator = (s**2 - beta) ** 3 * (s + SPIKE.square) ** 3
    x = SCALAR.effective_ridge
    result = SCALAR.bias(SPIKE).diff(s) / (slope**2 * x * x.diff(s))
    numerator = sp.expand(sp.cancel(sp.together(result * denominator)))
    positive = numerator / (_gap() ** 3 * (s + SPIKE.square) ** 3)
    return positive.xreplace({s: COVARIANCE.s})


def _third_moment() -> sp.Expr:
    r"""(1/N) tr Σ²(Σ+ν)^{-3}, with moments of which every monomial is positive."""
    moments = (factored(resolvent_moment(j, 3, COVARIANCE.shift, slope, beta)) for j in range(3))
    flat, mixed, steep = moments
    return floor**2 * flat + 2 * floor * slope * mixed + slope**2 * steep


PROPERTIES: dict[str, Callable[[], Property]] = {
    "improvement": nonnegative_improvement,
    "monotone": increases_with_step,
    "large steps": large_step_limit,
    "wide networks": wide_network_limit,
    "many samples": many_samples_limit,
    "large penalties": large_ridge_limit,
    "order": ordered_risks,
    "penalty": increasing_ridge,
    "optimal penalty": positive_optimal_ridge,
}
"""All properties by name; each is built when it is called."""
