import pytest
import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p

from giantstep.derivations.spiked_random_features.derive import symbolic_model
from giantstep.errors import CertificationError, UnsupportedExpressionError
from giantstep.symbolic.functions import log_cosh, relu, softplus
from giantstep.symbolic.gaussian_convolutions import gaussian_tables
from giantstep.symbolic.tail_analysis import Growth, TailBound, integrand_tails, mass_outside

flint = pytest.importorskip("flint")
arb = flint.arb

k, f, g, v, w, total = sp.symbols("kappa f g v w total", real=True)
R = sp.Rational
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
    square = sp.Symbol("square", real=True)
    assert tail(g / (1 + square * v), [("square", f**2)]) is not None


@pytest.mark.parametrize(
    "expr",
    [1 / (1 + w * f**2), 1 / (1 + v * f), 1 / f**2, 1 / (w + g), sp.log(f), 1 / (v - R(1, 2))],
)
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
