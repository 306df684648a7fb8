r"""Exact evidence: the expansion against direct expectations, and limits against other routes.

Direct expectations know nothing of Hermite polynomials: a polynomial of Gaussian variables is
averaged monomial by monomial, :math:`\mathbb{E} z^{2m} = (2m-1)!!`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sp

from ...runtime.precision import local_context
from ...symbolic.activations import Activation, activation
from ...symbolic.activations import z as variable
from ...symbolic.gaussian import expect
from ...symbolic.printing.compiled import compiled
from ...symbolic.regularity import Parity
from ...symbolic.stein import DIMENSION, SAMPLES, gradient_expansion
from ...symbolic.targets import Target, target
from ..claims import Finding
from ..spiked_random_features.identities import equal
from ..spiked_random_features.identities import finding as identities_finding
from ..spiked_random_features.mapping import alpha0, noise, spike_mapping, step_size
from .first_step import first_step
from .sample_complexity import sample_complexity
from .statistical_queries import PACKING_CONSTANT, QUERIES, overlap_square, tolerance_square

POLYNOMIAL_STUDENTS = ("z + He(2, z)/2", "z**3/3 - z**2", "He(4, z)/24 + He(2, z)/2 + z")
TARGETS = ("x1*x2 + He(3, x1)", "1 + x1 + 2*He(2, x2) + x1*x2*x3 - He(2, x1)*x3/3")
SMOOTH_STUDENTS = ("relu", "erf", "tanh", "gelu")
UNIT_ROWS = {2: (2, 3, 6), 3: (1, 3, 5, 1)}
"""Pythagorean rows for targets of two and three coordinates: one component is outside."""

# exp(-17²/2) = 1e-63: nothing is left beyond, whatever polynomial stands in front.
_REACH = 17


def mean_of_polynomial(expr: sp.Expr, variables: tuple[sp.Symbol, ...]) -> sp.Expr:
    """Mean over independent standard Gaussian variables, monomial by monomial."""
    total = sp.S.Zero
    for powers, coefficient in sp.Poly(expr, *variables).terms():
        if all(power % 2 == 0 for power in powers):
            total += coefficient * sp.Mul(*(sp.factorial2(power - 1) for power in powers))
    return total


# ------------------------------------------------------------------ the expansion


def polynomial_identity() -> Finding:
    """Both sides for polynomial students, as polynomials in a w of any direction and length."""
    results: dict[str, bool] = {}
    tau = sp.Symbol("tau", positive=True)
    for text in TARGETS:
        f = target(text)
        outside = sp.Symbol("x_outside", real=True)
        inputs = (*f.variables, outside)
        rows = sp.symbols(f"w1:{len(inputs) + 1}", real=True)
        projection = sp.Add(*(w * x for w, x in zip(rows, inputs, strict=True)))
        length = sp.sqrt(sp.Add(*(w**2 for w in rows)))
        for student in POLYNOMIAL_STUDENTS:
            sigma = activation(student)
            slope = sigma.derivative.xreplace({variable: projection})
            expansion = gradient_expansion(sigma, f, norm=tau)
            own = rows[: f.dimension]
            found = [*expansion.vector(own), expansion.along(own) * rows[-1]]
            for x, value in zip(inputs, found, strict=True):
                direct = mean_of_polynomial(sp.expand(f.expr * slope * x), inputs)
                difference = sp.expand(sp.expand(value).subs(tau, length) - direct)
                results[f"{student} on {text}, component {x}"] = difference == 0
            results[f"{student} on {text}: finite"] = expansion.exact
    return identities_finding(results, "the expansion is the gradient, for every w")


def quadrature_identity(digits: int = 30) -> Finding:
    """Students without polynomials: direct expectation, by quadrature along w."""
    ctx = local_context(digits)
    worst, where, count = ctx.zero, "", 0
    along = {text: _along_the_row(target(text)) for text in TARGETS}
    highest = max(power for parts in along.values() for part in parts for power in part)
    for student in SMOOTH_STUDENTS:
        sigma = activation(student)
        moments = _slope_moments(sigma, highest, ctx)
        for text, parts in along.items():
            row = _unit_row(target(text).dimension)
            expansion = gradient_expansion(sigma, text)
            found = [*expansion.vector(row[:-1]), expansion.along(row[:-1]) * row[-1]]
            for i, (value, part) in enumerate(zip(found, parts, strict=True)):
                direct = sum(ctx.mpf(c.p) / c.q * moments[power] for power, c in part.items())
                error = abs(ctx.mpf(str(sp.N(value, digits + 5))) - direct)
                count += 1
                if error >= worst:
                    worst, where = error, f"{student} on {text}, component {i + 1}"
    return Finding(
        bool(worst < ctx.mpf(10) ** (5 - digits)),
        f"{count} components agree with quadrature along w; largest difference "
        f"{ctx.nstr(worst, 2)} ({where})",
        {"largest_difference": float(worst), "components": count, "digits": digits},
    )


def _unit_row(r: int) -> list[sp.Rational]:
    row = UNIT_ROWS[r]
    length = sp.sqrt(sum(n * n for n in row))
    return [n / length for n in map(sp.Integer, row)]


def _along_the_row(f: Target) -> list[dict[int, sp.Rational]]:
    """E[f(x) x_i | w·x = t] for the unit row w, as the coefficients of a polynomial in t."""
    row = _unit_row(f.dimension)
    q = sp.symbols(f"q1:{len(row) + 1}", real=True)
    # The reflection that takes the first axis to w, so that w·x = q1.
    difference = sp.Matrix(row) - sp.Matrix([1] + [0] * (len(row) - 1))
    reflection = sp.eye(len(row)) - 2 * difference * difference.T / difference.dot(difference)
    inputs = list(reflection * sp.Matrix(q))
    expr = f.expr.xreplace(dict(zip(f.variables, inputs, strict=False)))
    parts = []
    for x in inputs:
        part: dict[int, sp.Rational] = {}
        for powers, c in sp.Poly(sp.expand(expr * x), *q).terms():
            if all(power % 2 == 0 for power in powers[1:]):
                moment = sp.Mul(*(sp.factorial2(power - 1) for power in powers[1:]))
                part[powers[0]] = part.get(powers[0], sp.S.Zero) + c * moment
        parts.append(part)
    return parts


def _slope_moments(sigma: Activation, highest: int, ctx: Any) -> list[Any]:
    """E[σ'(z) z^k]; kinks of the students here are at 0."""
    slope = compiled(sigma.derivative, [variable], ctx)

    @cache  # All powers meet at the same nodes.
    def weighted(t: Any) -> Any:
        return slope(t) * ctx.npdf(t)

    pieces = [-_REACH, -4, 0, 4, _REACH]
    return [ctx.quad(lambda t, k=k: weighted(t) * t**k, pieces) for k in range(highest + 1)]


# ------------------------------------------------------------------ the first step


def first_step_limits() -> Finding:
    """Spike, bulk and alignment against the map of another line of work, and the population."""
    results: dict[str, bool] = {}
    for student, teacher in (("erf", "erf"), ("tanh", "sin"), ("relu", "relu"), ("gelu", "sign")):
        step = first_step(student, activation(teacher))
        pair = f"{student}/{teacher}"
        mean = step.target.mean
        expansion = gradient_expansion(student, step.target, 0)
        leading = expansion.leading
        results[f"{pair}: population spike is the leading term μ1 C1"] = leading is not None and (
            equal(leading.value[0], step.population_spike[0])
        )
        results[f"{pair}: it is the limit of the spike for many samples"] = equal(
            sp.limit(step.spike**2, alpha0, sp.oo), step.population_spike[0] ** 2
        )
        if activation(student).parity is Parity.ODD:
            # The spiked features of arXiv 2402.04980 use the residual y − f_0, equal for odd σ.
            other = spike_mapping(activation(student), activation(teacher))
            results |= {
                f"{pair}: s √N |A| = r": equal(
                    (step_size * step.spike) ** 2, other.spike_strength**2
                ),
                f"{pair}: s² N |B|² = c − 1": equal(
                    step_size**2 * step.bulk**2, other.bulk_variance - 1
                ),
                f"{pair}: the alignments agree": equal(step.alignment, other.alignment**2),
            }
        noisy = gradient_expansion(student, step.target, 0).noise * SAMPLES / DIMENSION
        slopes = step.mean_derivative**2 * (step.label_square - noise)
        bulk_square = step.bulk**2 - (_second(student) * mean) ** 2
        results[f"{pair}: spike and bulk noise add up to d/n E y² E σ'²"] = equal(
            alpha0 * bulk_square.subs(noise, 0) + slopes, noisy
        )
    for text in TARGETS:
        f = target(text)
        parseval = sum(
            sp.Mul(*map(sp.factorial, alpha)) * c**2
            for k in range((f.degree or 0) + 1)
            for alpha, c in f.he_coefficients(k).items()
        )
        direct = mean_of_polynomial(sp.expand(f.expr**2), f.variables)
        results[f"E f² of {text} by Parseval and directly"] = parseval == direct == f.norm_squared
    return identities_finding(results, "limits of spike and bulk, three routes")


def _second(student: str) -> sp.Expr:
    return expect(activation(student).expr * (variable**2 - 1), variable)


# ------------------------------------------------------------------ after preprocessing


def preprocessed_step() -> Finding:
    """S, V and the sample number with S = V; rows H w that span the relevant space."""
    results: dict[str, bool] = {}
    for text in ("x1*x2 + He(3, x1)", "1 + x2 + He(2, x1)/2 - He(2, x2) + x1*x2**2"):
        f = target(text)
        ledger = sample_complexity("relu", f)
        square = sp.Add(*(entry**2 for entry in ledger.hessian))
        published = sp.pi / 2 * DIMENSION**2 * (f.norm_squared + noise) / square
        results[f"relu on {text}: n = (π/2) d² E y²/|H|²"] = equal(ledger.half_samples, published)
        leading = gradient_expansion("relu", f, removed=(0, 1)).leading
        results[f"relu on {text}: the leading term is H w/√(2π)"] = leading is not None and all(
            equal(found, entry / sp.sqrt(2 * sp.pi))
            for found, entry in zip(
                leading.value, ledger.hessian * sp.Matrix(leading.weights), strict=True
            )
        )
        results[f"relu on {text}: rank H = r"] = ledger.hessian_rank == ledger.directions
    for student, text, reason in (
        ("relu", "He(2, x1) + He(3, x2)", "rank H = 1 < r = 2"),
        ("relu", "x1*x2*x3", "rank H = 0 < r = 3"),
        ("erf", "x1*x2", "mu_2 = 0 for the student erf"),
        ("relu", "abs(x1)", "the target is not a polynomial"),
    ):
        row = sample_complexity(student, text).rows[0]
        results[f"{student} on {text}: no number is given"] = (
            row.scale is None and row.obstacle == reason
        )
    for text in ("x1*x2*x3", "He(3, x1)"):
        leading = gradient_expansion("relu", text, removed=(0, 1)).leading
        results[f"relu on {text}: no term inside the relevant space"] = leading is None
    return identities_finding(results, "signal, noise and assumptions of the preprocessed step")


def learned_rows() -> Finding:
    """Leading rows H w at r values of w: their span has the rank of H, in exact arithmetic."""
    results: dict[str, bool] = {}
    for text in (
        "x1*x2 + He(2, x2)/2 + He(3, x1)/3",
        "x1 + x1*x2 + x2*x3 + He(2, x3) + He(3, x2)/3",
        "He(2, x1) + He(3, x2)",
        "x1*x2*x3",
        "x2 + He(3, x1)/sqrt(6)",
    ):
        ledger = sample_complexity("relu", text)
        expansion = gradient_expansion("relu", text, removed=(0, 1))
        term = next((t for t in expansion.terms if t.k == 1), None)
        r = expansion.target.dimension
        rows = sp.zeros(r, r)
        if term is not None:
            axes = sp.eye(r)
            rows = sp.Matrix.hstack(
                *(
                    term.value.xreplace(dict(zip(expansion.weights, axes[:, i], strict=True)))
                    for i in range(r)
                )
            )
        results[f"{text}: the rows have the rank of H, {ledger.hessian_rank}"] = (
            rows.rank() == ledger.hessian_rank
        )
        results[f"{text}: the ledger applies exactly if it is r = {ledger.directions}"] = (
            ledger.rows[0].applies == (rows.rank() == ledger.directions)
        )
    return identities_finding(results, "span of the leading rows")


# ------------------------------------------------------------------ correlational queries


def query_bound(highest: int = 5) -> Finding:
    """Correlations of the class by direct averages, and the bound at its own overlap."""
    x, y, overlap = sp.symbols("x y u", real=True)
    orthogonal = sp.sqrt(1 - overlap**2)
    results: dict[str, bool] = {}
    for p in range(1, highest + 1):
        he = activation(f"He({p}, z)").expr
        product = he.xreplace({variable: x}) * he.xreplace({variable: overlap * x + orthogonal * y})
        mean = mean_of_polynomial(sp.expand(product), (x, y))
        results[f"p = {p}: correlations are u^p"] = (
            sp.expand(mean - sp.factorial(p) * overlap**p) == 0
        )
        scaled = PACKING_CONSTANT * DIMENSION
        wanted = overlap_square(p) ** sp.Rational(p, 2) + scaled ** sp.Rational(-p, 2)
        point = {DIMENSION: sp.Integer(10) ** 6, QUERIES: sp.Integer(10) ** 4}
        difference = (tolerance_square(p) - wanted).subs(point).evalf(30)
        results[f"p = {p}: tolerance"] = bool(abs(difference) < sp.Float("1e-25"))
    return identities_finding(results, "the class and its bound are as stated")
