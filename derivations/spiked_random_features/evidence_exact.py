r"""Exact evidence: identities that hold symbol by symbol, proven by SymPy.

Formulas of the paper are written down here a second time, by hand and in the paper's form, and
compared with what the toolkit derives. An expression counts as zero only if it is zero as a
rational function of everything in it: 𝔼 over the same variable are merged, as are
Marchenko–Pastur averages, and what is under them has to cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import sympy as sp
from sympy.core.function import AppliedUndef

from ...symbolic.activations import activation
from ...symbolic.activations import z as variable
from ...symbolic.equations import stationarity
from ...symbolic.gaussian import GaussianExpectation, expect
from ...symbolic.random_matrix import MarchenkoPasturAverage, Resolvent, companion, resolvent_moment
from ..claims import Finding
from . import free_energy as fe
from .derive import SymbolicModel, symbolic_model
from .identities import cancels, equal, finding, vanishes
from .mapping import SpikeMapping, alpha0, best_linear_error, noise, spike_mapping, step_size
from .published import conditionals, right_hand_sides

_PAIRS = (("erf", "erf"), ("tanh", "sin"), ("sin", "sign"))


# ------------------------------------------------------------------ the gradient step


def mapping_relations() -> Finding:
    """The map (s, α0, Δ) → (r, c, γ) against the formulas of Result 3.1."""
    results: dict[str, bool] = {}
    for student_name, teacher_name in _PAIRS:
        student, teacher = activation(student_name), activation(teacher_name)
        found: SpikeMapping = spike_mapping(student, teacher)
        h1 = expect(variable * student.expr, variable)
        t1 = expect(variable * teacher.expr, variable)
        label = expect(teacher.expr**2, variable) + noise
        slope = expect(student.derivative**2, variable) - h1**2
        r, c, gamma = found.spike_strength, found.bulk_variance, found.alignment
        norm = t1**2 + label / alpha0
        pair = f"{student_name}/{teacher_name}"
        results |= {
            f"{pair}: r² = s² h1² (h*1² + Y/α0)": equal(r**2, step_size**2 * h1**2 * norm),
            f"{pair}: γ r = s h1 h*1": equal(gamma * r, step_size * h1 * t1),
            f"{pair}: γ² = α0 h*1²/(α0 h*1² + Y)": equal(
                gamma**2 * (alpha0 * t1**2 + label), alpha0 * t1**2
            ),
            f"{pair}: c = 1 + s² Y (E σ'² - h1²)/α0": equal(
                c, 1 + step_size**2 * label * slope / alpha0
            ),
            f"{pair}: γ² + ρ² = 1": equal(gamma**2 + found.orthogonal_alignment**2, sp.S.One),
        }
    return finding(results, "r, c and γ of the derived map are those of Result 3.1")


def stein_identity() -> Finding:
    r"""E[z f(z)] = E[f'(z)]: (f φ)' = (f' − z f) φ, and f φ vanishes at both ends."""
    results: dict[str, bool] = {}
    density = sp.exp(-(variable**2) / 2)
    for name in ("erf", "tanh", "sin"):
        f = activation(name)
        exact = (f.expr * density).diff(variable) - (f.derivative - variable * f.expr) * density
        ends = [sp.limit(f.expr * density, variable, end) for end in (sp.oo, -sp.oo)]
        results[f"{name}: (f φ)' = (f' - z f) φ with f φ → 0"] = sp.simplify(
            exact
        ) == 0 and ends == [0, 0]
    for name in ("erf", "sin", "relu"):
        f = activation(name)
        left, right = (expect(e, variable) for e in (variable * f.expr, f.derivative))
        closed = not (left - right).has(GaussianExpectation)
        results[f"{name}: closed forms of E[z f] and E[f'] agree"] = closed and equal(left, right)
    return finding(results, "E[z f(z)] = E[f'(z)] for students and teachers")


# ------------------------------------------------------------------ conditional coefficients


def conditional_coefficients() -> Finding:
    """Closed forms of μ_0, μ_1, μ_2² against their relations of Result 3.2."""
    results: dict[str, bool] = {}
    teacher = activation("sin")
    for name in ("erf", "sin", "relu", "He(3, z)/6"):
        student = activation(name)
        definitions = fe.conditional_coefficients(student, teacher)
        mu0, mu1 = (definitions[f].doit() for f in (fe.mu0, fe.mu1))
        value = student(fe.r * fe.kappa + sp.sqrt(fe.c) * fe.z)
        square = expect(value**2, fe.z)
        by_stein = expect(fe.z * value, fe.z) / sp.sqrt(fe.c)
        results |= {
            f"{name}: μ2² = E σ² - μ0² - c μ1²": _residual_variance(
                definitions[fe.mu2_squared], mu0, mu1, square
            ),
            f"{name}: ∂μ0/∂r = κ μ1": equal(mu0.diff(fe.r), fe.kappa * mu1),
            # E σ'' is the derivative of μ_1 in the centre rκ; for relu a density at the kink.
            f"{name}: ∂μ0/∂c = E σ''/2": equal(mu0.diff(fe.c), mu1.diff(fe.kappa) / (2 * fe.r)),
            f"{name}: μ1 = E[z σ]/√c": equal(mu1, by_stein),
        }
    results["tanh: ∂μ0/∂r = κ μ1"] = _without_closed_form("tanh")
    return finding(results, "closed forms of μ0, μ1, μ2² obey the relations of Result 3.2")


def _residual_variance(definition: sp.Expr, mu0: sp.Expr, mu1: sp.Expr, square: sp.Expr) -> bool:
    """Whether E(σ − μ_0 − √c z μ_1)², multiplied out, is E σ² − μ_0² − c μ_1²."""
    (node,) = definition.atoms(GaussianExpectation)
    terms = sp.Add.make_args(sp.expand(node.integrand))
    total = sp.Add(*(expect(term, node.variable) for term in terms))
    total = total.xreplace({fe.mu0: mu0, fe.mu1: mu1})
    return equal(total, square - mu0**2 - fe.c * mu1**2)


def _without_closed_form(name: str) -> bool:
    """∂μ_0/∂r = κ μ_1 where no rule gives a closed form: under the expectation."""
    definitions = fe.conditional_coefficients(activation(name), activation("sin"))
    return vanishes(definitions[fe.mu0].diff(fe.r) - fe.kappa * definitions[fe.mu1])


# ------------------------------------------------------------------ the saddle point


@cache
def _energy() -> fe.SpikedFreeEnergy:
    # The free energy is the same expression for all pairs; only the definitions differ.
    return fe.spiked_free_energy(activation("sin"), activation("sin"))


def published_equations() -> Finding:
    """Stationarity of the free energy gives the 13 equations of Result 3.3."""
    published = right_hand_sides()
    model = symbolic_model("sin", "sin")
    results = {}
    for equation in model.equations:
        x = equation.unknown
        if equation.value is not None:
            results[f"equation of {x}"] = vanishes(equation.value - published[x])
        else:
            results[f"equation of {x}"] = vanishes(
                equation.residual + fe.alpha / fe.beta * published[x]
            )
    if set(published) != {e.unknown for e in model.equations}:
        results["the unknowns are the published ones"] = False
    _, _, error = conditionals()
    energy = model.free_energy
    results["test error = E err - Δ"] = vanishes(energy.test_error - fe.average(error) + fe.noise)
    variance = conditionals()[0]
    results["training error = E err/(1 + V)²"] = vanishes(
        energy.training_error - fe.average(error / (1 + variance) ** 2)
    )
    return finding(results, "the derivatives of the free energy are the published equations")


def energy_identity() -> Finding:
    """2β/α times the free energy, modulo the equations, is the regularised training loss."""
    free_energy = _energy().free_energy
    f = free_energy.expression
    slope = stationarity(free_energy)
    variance, mean, _ = conditionals()
    half = fe.alpha / (2 * fe.beta)
    # Multiples of the 13 conditions, all of which vanish at the saddle point.
    loss = f + sum(x * slope[x] for x in (fe.V1, fe.V2))
    loss -= sum(x * slope[x] for x in (fe.V1_hat, fe.V2_hat, fe.theta_hat, fe.psi_hat))
    loss -= 2 * sum(x * slope[x] for x in (fe.q1_hat, fe.q2_hat)) + fe.ridge * slope[fe.V2_hat]
    residual = f - sum(x * slope[x] for x in (fe.q1, fe.q2, fe.q1_hat, fe.q2_hat))
    residual -= sum(x * slope[x] for x in (fe.theta, fe.psi, fe.m, fe.theta_hat, fe.psi_hat)) / 2
    results = {
        "f + conditions = α/(2β) (train + λβ q2/α)": vanishes(
            loss - half * _energy().training_error - fe.ridge * fe.q2 / 2
        ),
        "f + conditions = α/(2β) E (T2 - T0 C - μ1 ψ T1)/(1 + V)": vanishes(
            residual
            - half * fe.average((fe.T2 - fe.T0 * mean - fe.mu1 * fe.psi * fe.T1) / (1 + variance))
        ),
    }
    return finding(
        results, "loss on the training set, residual form and free energy are one number"
    )


# ------------------------------------------------------------------ how it is solved


def structure() -> Finding:
    """Three blocks, the last two linear; with odd activations all sums are even."""
    results: dict[str, bool] = {}
    described: dict[str, str] = {}
    for student, teacher, even in (
        ("erf", "erf", True), ("tanh", "sin", True), ("relu", "relu", False)
    ):  # fmt: skip
        model: SymbolicModel = symbolic_model(student, teacher)
        pair = f"{student}/{teacher}"
        blocks = model.structure.blocks
        cores = [
            {str(e.unknown) for component in block.components for e in component.core}
            for block in blocks
        ]
        described[pair] = model.structure.describe()
        results |= {
            f"{pair}: cores are (V1, V2), (m, ϑ), (q1, q2)": cores
            == [
                {str(x) for x in core}
                for core in ((fe.V1, fe.V2), (fe.m, fe.theta), (fe.q1, fe.q2))
            ],
            f"{pair}: only the first block is nonlinear": [block.linear for block in blocks]
            == [False, True, True],
            f"{pair}: sums over κ are {'even' if even else 'not all even'}": model.program.even
            is even,
        }
    found = finding(results, described["tanh/sin"])
    return Finding(found.passed, found.summary, {**found.details, "structure": described})


def jacobian() -> Finding:
    """Derivative of the map V → G(V) is R J with positive closed forms R and sums J."""
    V, V_hat = (fe.V1, fe.V2), (fe.V1_hat, fe.V2_hat)
    published = right_hand_sides()
    variance = conditionals()[0]
    squares = (fe.mu1**2, fe.mu2_squared)
    results: dict[str, bool] = {}
    a, b = fe.ridge + fe.V2_hat, fe.V1_hat * fe.c
    powers = {(0, 0): 2, (0, 1): 1, (1, 1): 0}
    for (i, j), power in powers.items():
        closed = -(fe.c**power) * resolvent_moment(power, 2, a, b, fe.beta)
        derivative = published[V[i]].doit().diff(V_hat[j])
        results[f"∂G{i + 1}/∂V̂{j + 1} = -R{i + 1}{j + 1}"] = _zero_with_resolvent(
            derivative - closed, a, b
        )
    for i in range(2):
        for j in range(2):
            published_sum = (
                fe.alpha / fe.beta * fe.average(squares[i] * squares[j] / (1 + variance) ** 2)
            )
            results[f"∂V̂{i + 1}/∂V{j + 1} = -J{i + 1}{j + 1}"] = vanishes(
                published[V_hat[i]].diff(V[j]) + published_sum
            )
    return finding(results, "Newton's Jacobian is R J, all entries positive")


def _zero_with_resolvent(expr: sp.Expr, a: sp.Expr, b: sp.Expr) -> bool:
    """Zero test modulo G (a + b h) = 1, by which a is expressed through G."""
    g = sp.Dummy("G", positive=True)
    h = 1 / (1 + fe.beta * b * g)
    expr = expr.xreplace({Resolvent(a, b, fe.beta): g})
    # λ occurs in the combination a = λ + V̂2 alone.
    return cancels(expr.subs(fe.ridge, 1 / g - b * h - fe.V2_hat))


# ------------------------------------------------------------------ without a step


def unspiked_equations() -> Finding:
    """At r = 0, c = 1 the equations are those of plain random features."""
    results: dict[str, bool] = {}
    for student_name, teacher_name in (("erf", "erf"), ("sin", "erf"), ("relu", "relu")):
        student, teacher = activation(student_name), activation(teacher_name)
        model = symbolic_model(student, teacher, unspiked=True)
        values = _plain_values(model)
        h0, h1 = (expect(variable**k * student.expr, variable) for k in range(2))
        t0, t1 = (expect(variable**k * teacher.expr, variable) for k in range(2))
        square = expect(student.expr**2, variable) - h0**2 - h1**2
        label = expect(teacher.expr**2, variable) + fe.noise
        variance = h1**2 * fe.V1 + square * fe.V2
        error = label - t0**2 - 2 * h1 * fe.psi * t1 + h1**2 * fe.q1 + square * fe.q2
        plain = {
            fe.V1_hat: fe.alpha / fe.beta * h1**2 / (1 + variance),
            fe.V2_hat: fe.alpha / fe.beta * square / (1 + variance),
            # ψ = β V1 ψ̂ turns this into ψ = α V1 h1 h*1/(1 + V).
            fe.psi_hat: fe.alpha / fe.beta * h1 * t1 / (1 + variance),
            fe.q1_hat: fe.alpha / fe.beta * h1**2 * error / (1 + variance) ** 2,
            fe.q2_hat: fe.alpha / fe.beta * square * error / (1 + variance) ** 2,
        }
        pair = f"{student_name}/{teacher_name}"
        mean = {fe.m: sp.S.Zero if h0 == 0 else t0 / h0, fe.theta: sp.S.Zero}
        for e in model.equations:
            if e.unknown in plain:
                value = values(e.value).xreplace(mean)
                results[f"{pair}: {e.unknown}"] = equal(value, plain[e.unknown])
            elif e.unknown in (fe.m, fe.theta_hat):
                expr = e.residual if e.value is None else e.value
                results[f"{pair}: {e.unknown}, solved by m = h*0/h0, ϑ = 0"] = equal(
                    values(expr).xreplace(mean), sp.S.Zero
                )
        energy = model.free_energy
        results |= {
            f"{pair}: training error = err/(1 + V)²": equal(
                values(energy.training_error).xreplace(mean), error / (1 + variance) ** 2
            ),
            f"{pair}: test error = err - Δ": equal(
                values(energy.test_error).xreplace(mean), error - fe.noise
            ),
        }
    return finding(results, "r = 0, c = 1 gives plain random features")


def _plain_values(model: SymbolicModel) -> Callable[[sp.Expr], sp.Expr]:
    """Put the coefficients at c = 1, γ = 0 into an expression and carry out 𝔼."""
    direct = {fe.c: sp.S.One, fe.gamma: sp.S.Zero, fe.rho: sp.S.One}
    known: dict[sp.Expr, sp.Expr] = {}
    for function, definition in model.free_energy.free_energy.definitions.items():
        nodes = definition.atoms(GaussianExpectation)
        opened = definition.xreplace(
            {n: n.func(n.integrand.xreplace(known), n.variable) for n in nodes}
        )
        opened = opened.xreplace(direct)
        terms = {n: _termwise(n) for n in opened.atoms(GaussianExpectation)}
        known[function] = opened.xreplace(terms)

    def insert(expr: sp.Expr) -> sp.Expr:
        nodes = expr.atoms(GaussianExpectation)
        inner = {n: n.func(n.integrand.xreplace(known), n.variable) for n in nodes}
        inserted = expr.xreplace(inner)
        return inserted.xreplace({n: n.doit() for n in inserted.atoms(GaussianExpectation)})

    return insert


def _termwise(node: GaussianExpectation) -> sp.Expr:
    terms = sp.Add.make_args(sp.expand(node.integrand))
    return sp.Add(*(expect(term, node.variable) for term in terms))


# ------------------------------------------------------------------ invariances and bounds


def invariances() -> Finding:
    """The free energy has both symmetries, with the transformations of its variables."""
    f = _energy().free_energy.expression
    t = sp.Symbol("t", positive=True)
    conjugates = (fe.V1_hat, fe.V2_hat, fe.q1_hat, fe.q2_hat)
    scaling = {
        fe.ridge: t**2 * fe.ridge,
        fe.mu0: t * fe.mu0,
        fe.mu1: t * fe.mu1,
        fe.mu2_squared: t**2 * fe.mu2_squared,
        **{x: x / t**2 for x in (fe.V1, fe.V2, fe.q1, fe.q2)},
        **{x: x / t for x in (fe.m, fe.theta, fe.psi)},
        **{x: t**2 * x for x in conjugates},
        **{x: t * x for x in (fe.theta_hat, fe.psi_hat)},
    }
    # (r, γ) → (−r, −γ) amounts to κ → −κ in all coefficients; E_κ does not see it, so the one
    # κ that stands alone, beside ϑ, changes its sign, and ϑ undoes it.
    reflection = {fe.theta: -fe.theta, fe.theta_hat: -fe.theta_hat}
    results = {
        "free energy: σ → tσ, λ → t²λ": vanishes(_transform(f, scaling) - f),
        "free energy: (r, γ) → (-r, -γ)": vanishes(
            _transform(f, reflection | {fe.kappa: -fe.kappa}) - f
        ),
    }
    for name, error in (
        ("test error", _energy().test_error), ("training error", _energy().training_error)
    ):  # fmt: skip
        results[f"{name}: σ → tσ, λ → t²λ"] = vanishes(_transform(error, scaling) - error)
        results[f"{name}: (r, γ) → (-r, -γ)"] = vanishes(
            _transform(error, reflection | {fe.kappa: -fe.kappa}) - error
        )
    reflected = {fe.r: -fe.r, fe.gamma: -fe.gamma, fe.kappa: -fe.kappa}
    for function, definition in _energy().free_energy.definitions.items():
        # rκ and γκ are all that the coefficients depend on.
        image = definition.xreplace(reflected).replace(
            lambda e: isinstance(e, AppliedUndef), lambda e: e.func(fe.kappa)
        )
        results[f"{function} depends on rκ and γκ"] = vanishes(image - definition)
    return finding(results, "both transformations leave the free energy and the errors as they are")


def _transform(expr: sp.Expr, rules: Mapping[sp.Expr, sp.Expr]) -> sp.Expr:
    """Replace symbols and coefficient functions; a bound κ stands for itself, not in μ(κ)."""
    coefficients = (fe.mu0, fe.mu1, fe.mu2_squared, fe.T0, fe.T1, fe.T2)
    marks: dict[sp.Expr, sp.Expr] = {f: sp.Dummy(str(f.func)) for f in coefficients}
    back = {mark: f for f, mark in marks.items()}
    images = {marks[f]: rules.get(f, f) for f in coefficients}

    def image(inner: sp.Expr) -> sp.Expr:
        plain = {x: y for x, y in rules.items() if x not in marks}
        return inner.xreplace(marks).xreplace(plain).xreplace(images).xreplace(back)

    nodes = expr.atoms(GaussianExpectation, MarchenkoPasturAverage)
    holes: dict[sp.Expr, sp.Expr] = {n: sp.Dummy() for n in nodes}
    outside = image(expr.xreplace(holes))
    return outside.xreplace({holes[n]: n.func(image(n.args[0]), *n.args[1:]) for n in nodes})


def lower_bound() -> Finding:
    """The two steps of the proof that no ridge penalty gets below L."""
    _, mean, error = conditionals()
    # E_s (σ_* − C − μ1 ψ s)² + Δ, multiplied out with E s² = 1.
    best = fe.T2 - 2 * fe.T0 * mean - 2 * fe.mu1 * fe.psi * fe.T1 + mean**2
    best += fe.mu1**2 * fe.psi**2
    excess = fe.mu1**2 * (fe.q1 - fe.psi**2) + fe.mu2_squared * fe.q2
    a, b = sp.symbols("a b", positive=True)
    g = Resolvent(a, b, fe.beta)
    h = companion(g)
    # q1 ≥ β ψ̂² E[D²/S²] and ψ = β ψ̂ E[D/S].
    gap = (
        resolvent_moment(2, 2, a, b, fe.beta) - fe.beta * resolvent_moment(1, 1, a, b, fe.beta) ** 2
    )
    positive = g * h**4 / (a + b * h**2)
    results = {
        "err = E_s (σ* - C - μ1 ψ s)² + Δ + μ1² (q1 - ψ²) + μ2² q2": vanishes(
            fe.average(error) - fe.average(best + excess)
        ),
        "E[X²/(a+bX)²] - β E[X/(a+bX)]² = G h⁴/(a + b h²) > 0, so q1 ≥ ψ²": cancels(
            (gap - positive).xreplace({g: sp.Symbol("G", positive=True)})
        ),
    }
    return finding(results, "test error ≥ L for every α, β and ridge penalty")


def linear_bound() -> Finding:
    """Without a step L is the error of the best affine predictor."""
    results: dict[str, bool] = {}
    a, b = sp.symbols("a b", real=True)
    for name in ("erf", "sin", "relu", "He(3, z)/6"):
        teacher = activation(name)
        square = sp.expand((teacher.expr - a - b * variable) ** 2)
        error = sp.Add(*(expect(term, variable) for term in sp.Add.make_args(square)))
        minimum = sp.solve([error.diff(a), error.diff(b)], [a, b], dict=True)
        least = error.subs(minimum[0]) if len(minimum) == 1 else sp.nan
        results[f"{name}: ‖P_{{>1}} f*‖² = min E (f* - a - b z)²"] = equal(
            best_linear_error(teacher), least
        )
    return finding(results, "the linear bound is the least error of a + b z")
