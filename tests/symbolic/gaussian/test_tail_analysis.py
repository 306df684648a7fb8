""""""

import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from sympy.codegen.cfunctions import expm1, log1p

from giantstep.derivations.spiked_random_features.derive import symbolic_model
from giantstep.errors import AssumptionError, CertificationError, UnsupportedExpressionError
from giantstep.symbolic.exact.ball_functions import BallEvaluator
from giantstep.symbolic.expressions.functions import log_cosh, relu, sigmoid, softplus
from giantstep.symbolic.gaussian.convolutions import gaussian_tables
from giantstep.symbolic.gaussian.tail_analysis import (
    Growth,
    TailBound,
    cutoff_for,
    integrand_tails,
    mass_outside,
    tail_bound,
)

flint = pytest.importorskip("flint")

z = sp.Symbol("z", real=True)
R = sp.Rational
FUNCTIONS = [
    sp.tanh(z), z**8 * sp.tanh(z), 3 - z + z**2, (z - 5) ** 3, sp.exp(2 * z), sp.exp(-3 * z) * z,
    sp.exp(z**2 / 5 - z), sp.exp(z**3 - z**4), sp.exp(-(z**4) + 7 * z**3 + 9 * z**2 - z),
    sp.cosh(2 * z) * sp.sin(z), sp.sinh(z - 1) ** 2, softplus(3 * z - 1), z * sigmoid(-z),
    sigmoid(z) ** -2, 1 / sigmoid(z - z**2 / 7), 1 / (1 + z**2), z**3 / (z**2 - z + 1),
    1 / (z**3 - 40 * z - 1), 1 / (2 + sp.sin(z)), (3 - sp.tanh(z)) ** R(-5, 2), 1 / sp.cosh(z),
    1 / sp.sech(z / 2), sp.sqrt(1 + z**2), sp.log(1 + z**2), sp.log(sp.cosh(z)) + 1,
    sp.log(R(1, 100) + sp.exp(-(z**2))), sp.asinh(50 * z), sp.atan(z) * z, sp.erfc(z) * z,
    sp.tan(sp.tanh(z)), 2**z, (1 + z**2) ** sp.tanh(z), (1 + z**2) ** R(7, 3), z**-2 + z,
    sp.exp(z * sp.tanh(z)), sp.exp(-sp.cosh(z)), sp.exp(z / (1 + z**2)), sp.exp(sp.asinh(z)),
    1 / (sp.exp(z) + sp.exp(-z)), sp.exp(-softplus(z) * z**2), sp.sqrt(sp.exp(z) + z**2), sp.S(7),
    sp.exp(z + sp.sin(z) * z) / 100, -(z**2) * sp.sqrt(2), sp.exp(sp.exp(-(z**2))),
    sp.exp(-((z + softplus(z)) ** 2)), sp.erfc(3 - z), sp.erfc(z - 3), softplus(z), 1 / (z - 40),
]  # fmt: skip


def size(f, point):
    """|f| at a rational point by mpmath."""
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    modules = [
        {"sigmoid": lambda t: 1 / (1 + ctx.exp(-t)), "softplus": lambda t: ctx.log1p(ctx.exp(t))},
        {name: getattr(ctx, name) for name in dir(ctx) if not name.startswith("_")},
    ]
    return abs(ctx.convert(sp.lambdify(z, f, modules)(ctx.mpf(int(point.p)) / int(point.q))))


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_bounds_dominate_everywhere_beyond_their_start(f, direction):
    bound = tail_bound(f, z, direction, BallEvaluator())
    start = (
        sp.Rational(str(sp.ceiling(sp.Float(bound.start.upper().str(radius=False)) * 1000))) / 1000
    )
    assert start >= 1
    for distance in (0, R(1, 50), R(1, 3), R(17, 10), 4, 9, 22, 60):
        t = start + distance
        limit = mpmath.mpf(
            bound.at(flint.arb(flint.fmpq(int(t.p), int(t.q)))).upper().str(30, radius=False)
        )
        assert size(f, direction * t) <= limit * (1 + mpmath.mpf(10) ** -12)


@given(
    st.lists(st.fractions(-9, 9, max_denominator=7), min_size=1, max_size=6),
    st.integers(0, len(FUNCTIONS) - 1),
    st.integers(0, len(FUNCTIONS) - 1),
    st.fractions(1, 30, max_denominator=50),
)
@settings(max_examples=25, deadline=None)
def test_bounds_of_combinations_dominate(coefficients, i, j, t):
    p = sum(R(c.numerator, c.denominator) * z**k for k, c in enumerate(coefficients))
    f = p * FUNCTIONS[i] + FUNCTIONS[j]
    try:
        bound = tail_bound(f, z, 1, BallEvaluator())
    except AssumptionError:
        return  # the curvatures of two exponentials may add up to 1/2 and more
    t = R(t.numerator, t.denominator)
    if not bound.start <= flint.arb(flint.fmpq(int(t.p), int(t.q))):
        return
    limit = bound.at(flint.arb(flint.fmpq(int(t.p), int(t.q)))).upper()
    assert size(f, t) <= mpmath.mpf(limit.str(30, radius=False)) * (1 + mpmath.mpf(10) ** -12)


@given(
    st.sampled_from([-3, R(-1, 2), 0, 1, R(7, 2), 12]),
    st.sampled_from([-2, 0, R(1, 3), 5]),
    st.sampled_from([-1, 0, R(1, 5), R(49, 100)]),
    st.integers(1, 12),
)
@settings(max_examples=25, deadline=None)
def test_the_mass_beyond_a_cutoff_is_bounded_and_not_by_far(n, a, q, distance):
    one = flint.arb(1)
    power, rate, curvature = (one * int(R(x).p) / int(R(x).q) for x in (n, a, q))
    bound = TailBound(one, power, rate, curvature, one)
    cutoff = one * distance
    mass = bound.mass_beyond(cutoff)
    if mass is None:
        # The bound still rises at the cutoff, or falls too slowly there.
        assert 2 * (R(1, 2) - q) * distance - a - max(n, 0) / R(distance) <= R(1, 10**9)
        return
    with mpmath.workdps(30):
        n, a, q = (mpmath.mpf(int(R(x).p)) / int(R(x).q) for x in (n, a, q))
        exact = mpmath.quad(
            lambda t: t**n * mpmath.exp(a * t + q * t * t) * mpmath.npdf(t),
            [distance, distance + 1, distance + 4, distance + 20, distance + 90],
        )
        found = mpmath.mpf(mass.str(25, radius=False))
        assert exact <= found * (1 + mpmath.mpf(10) ** -12)
        far = cutoff >= 8 and curvature <= 0.3 and rate <= 1
        assert not far or found <= 3 * exact


def test_the_cutoff_leaves_no_more_than_asked_for():
    bounds = [tail_bound(sp.exp(3 * z), z, d, BallEvaluator()) for d in (1, -1)]
    tolerance = flint.arb(2) ** -100
    cutoff, mass = cutoff_for(bounds, tolerance, flint.arb(1))
    assert mass <= tolerance
    assert 10 < cutoff < 20
    assert cutoff_for(bounds, tolerance, flint.arb(50))[0] >= 50
    # Beyond 10^9 the integrand still weighs exp(-55), far more than 2^-100.
    slow = TailBound(*map(flint.arb, (1, 0, 0, 0.5 - 2.0**-54, 1)))
    with pytest.raises(AssumptionError, match="decays too slowly"):
        cutoff_for([slow], tolerance, flint.arb(1))


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (sp.exp(z**2 / 2), AssumptionError, "towards oo; its Gaussian expectation may not exist"),
        (sp.exp(z**3), AssumptionError, "not known to grow slower"),
        (sp.exp(z * sp.cosh(z)), AssumptionError, r"exp\(.*cosh.*\) is not known to grow slower"),
        (sp.gamma(z), UnsupportedExpressionError, "function gamma in .* growth is not known"),
        (sp.tan(2 * sp.tanh(z)), UnsupportedExpressionError, "function tan in"),
        (1 / sp.sin(z), UnsupportedExpressionError, "too close to 0"),
        (1 / (1 + sp.sin(z)), UnsupportedExpressionError, "too close to 0"),
        (sp.sin(sp.sqrt(-1 - z**2)), UnsupportedExpressionError, "not known to be real"),
        ((1 + z**2) ** sp.I, UnsupportedExpressionError, "exponent is not real"),
    ],
)
def test_what_cannot_be_bounded_is_named(f, error, message):
    with pytest.raises(error, match=message):
        tail_bound(f, z, 1, BallEvaluator())


arb = flint.arb

k, f, g, v, w, total = sp.symbols("kappa f g v w total", real=True)
VALUES = {"alpha": "2", "beta": "0.7", "lambda": "0.1", "Delta": "0.05", "r": "0.9", "c": "1.25",
          "gamma": "0.6", "rho": "0.8"}  # fmt: skip


def bound(constant, power=0, rate=0, curvature=0, start=1):
    return TailBound(*map(arb, (constant, power, rate, curvature, start)))


TABLES = {f: Growth(bound(2, 1)), g: Growth(bound(3), arb(0))}
SCALARS = {v: arb("0.5", "0.01"), w: arb(-2)}


def tail(expr, before=()):
    local_values = {sp.Symbol(name, real=True): value for name, value in before}
    return integrand_tails(local_values, {total: expr}, node=k, tables=TABLES, scalars=SCALARS)[0]


def test_every_sum_of_the_spiked_model_is_bounded():
    """A polynomial student: the tables themselves are exact, so integrands can be evaluated."""
    lowered = symbolic_model("He2", "He3").lowered
    symbols = {str(p): p for p in lowered.system.parameters}
    numbers = {symbols[name]: R(text) for name, text in VALUES.items()}
    tables = gaussian_tables(lowered.definitions, lowered.node)
    growth = tables.balls({p: arb(VALUES[p.name]) for p in tables.parameters}).growth
    names = lowered.program.tables[1:]
    for loop in lowered.program.loops():
        inside = {a.target for a in loop.locals} | set(lowered.program.tables)
        items = (*loop.locals, *loop.sums)
        others = set().union(*(a.value.free_symbols for a in (*loop.locals, *loop.sums))) - inside
        scalars = {x: R(3 + i, 7) for i, x in enumerate(sorted(others, key=str))}
        found = integrand_tails(
            {a.target: a.value for a in loop.locals},
            {a.target: a.value for a in loop.sums},
            node=lowered.node,
            tables=dict(zip(names, growth, strict=True)),
            scalars={x: arb(flint.fmpq(int(q.p), int(q.q))) for x, q in scalars.items()},
        )
        bounds = {a.target: tail for a, tail in zip(loop.sums, found, strict=True)}
        for point in (1, -3, 12):
            at = {**scalars, lowered.node: sp.Integer(point)}
            for name, expr in zip(names, tables.expressions, strict=True):
                at[name] = expr.xreplace({**numbers, tables.node: sp.Integer(point)})
            for item in items:
                at[item.target] = item.value.xreplace(at)
            for target, limit in bounds.items():
                if target in at:
                    assert abs(float(at[target])) <= float(limit.at(arb(abs(point))).upper())


def test_denominators_are_kept_from_zero_by_structure():
    assert tail(1 / (1 + v * f**2 + v * g)).at(arb(7)) == 1
    assert tail(f**2 / (2 + v * abs(f)) ** 2).at(arb(3)) == 9
    assert tail(1 / sp.sqrt(1 + f**2)).at(arb(3)) == 1
    assert tail(1 / (softplus(f) + 4 + sp.exp(k))).at(arb(3)) == 0.25
    # A quadratic form of two tables, positive because of the pivots of its matrix.
    assert tail(1 / (1 + f * (v * f + v * g) + v * g**2 + v * g)).at(arb(7)) == 1
    square = sp.Symbol("square", real=True)
    assert tail(g / (1 + square * v), [("square", f**2)]) is not None


@pytest.mark.parametrize(
    "expr",
    [
        1 / (1 + w * f**2), 1 / (1 + v * f), 1 / f**2, 1 / (w + g), sp.log(f), 1 / (v - R(1, 2)),
        1 / (1 + v * f**2 + 3 * v * f * g + v * g**2),
    ],
)  # fmt: skip
def test_a_denominator_that_may_vanish_is_refused(expr):
    with pytest.raises(CertificationError, match="integrand of total"):
        tail(expr)


def test_a_declared_sign_is_not_believed():
    positive = sp.Symbol("positive", positive=True)
    tables = {positive: Growth(bound(1))}
    with pytest.raises(CertificationError, match="integrand of total"):
        integrand_tails({}, {total: 1 / (1 + positive)}, node=k, tables=tables, scalars={})
    with pytest.raises(CertificationError, match="integrand of total"):
        integrand_tails(
            {}, {total: 1 / (1 + positive)}, node=k, tables={}, scalars={positive: arb(-1)}
        )


def test_other_functions_of_tables_and_of_the_node():
    assert tail(sp.exp(v * k)).rate >= 0
    assert tail(sp.exp(v * k)).at(arb(4)).upper() >= arb(2).exp()
    assert tail(sp.exp(-v * f**2)).at(arb(4)) >= 1
    assert tail(log_cosh(f) * sp.tanh(k)).at(arb(3)) >= arb(6)
    assert tail(abs(k) * sp.Abs(f)).at(arb(3)) >= 18
    with pytest.raises(CertificationError, match="relu"):
        tail(relu(f))


def test_logarithms_of_one_plus_what_is_not_negative():
    # f² <= 4t², so log(1 + v f²) <= v f² <= 4 (1/2 + 1/100) t².
    limit = tail(log1p(v * f**2)).at(arb(3))
    assert arb(18) <= limit.upper() <= arb("18.37")
    # From -1/4 on the logarithm is above log(3/4), and what is below 1 has one below 1.
    assert (
        abs(tail(log1p(sp.sech(f) - R(1, 4))).at(arb(3)) - (arb(5) / 4 - arb("0.75").log())) < 1e-9
    )
    # A logarithm that stays above zero keeps a denominator away from it.
    assert tail(1 / (1 + log1p(v * f**2))).at(arb(3)) == 1
    assert tail(expm1(v * k)).at(arb(4)) >= arb(2).exp() + 1
    for unknown in (log1p(f), log1p(w * f**2), log1p(sp.sech(f) - 2)):
        with pytest.raises(CertificationError, match="not known to stay above -1"):
            tail(unknown)


def test_what_has_no_value_is_named():
    with pytest.raises(UnsupportedExpressionError, match="total holds missing"):
        tail(sp.Symbol("missing") * f)


def test_mass_outside_counts_both_sides():
    """E|κ|^3 beyond 2: the tail of x³φ is (x² + 2)φ."""
    exact = 2 * (36 + 2) * (arb(-18).exp()) / (2 * arb.pi()).sqrt()
    found = mass_outside(tail(k**3), arb(6))
    assert exact < found < 1.1 * exact
    with pytest.raises(CertificationError, match="4 standard deviations"):
        mass_outside(bound(1, 0, 0, R(3, 5).p / 5), arb(4))
    with pytest.raises(CertificationError, match="an integrand"):
        mass_outside(bound(1, start=50), arb(4))
