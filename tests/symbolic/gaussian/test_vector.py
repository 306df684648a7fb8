"""Laws, the joint node, its digits and derivatives, and what is refused."""

import pickle
import random
import xml.etree.ElementTree as ElementTree

import mpmath
import numpy as np
import pytest
import sympy as sp

from giantstep.errors import (
    AssumptionError,
    ConvergenceError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.gaussian.expectation import (
    GaussianExpectation,
    GaussianVector,
    JointExpectation,
    correlated_pair,
    expect,
    expect_joint,
)

u, v, w = sp.symbols("u v w", real=True)
rho, c, m = sp.symbols("rho c m", real=True)
a = sp.Symbol("a", positive=True)
HALF = sp.Rational(1, 2)
tanh, erf = sp.tanh, sp.erf
PAIR = correlated_pair(u, v, rho)
NODE = JointExpectation(tanh(c * u) * tanh(v), PAIR)


# -- laws


def test_laws_are_values():
    law = GaussianVector((u, v), covariance=[[1, rho], [rho, 1]])
    assert law == PAIR and hash(law) == hash(PAIR)
    assert law.mean == sp.zeros(2, 1) and law.free_symbols == {rho}
    assert law.marginal([v]) == GaussianVector([v], covariance=[[1]])
    assert law.variance(2 * u - v + 3) == 5 - 4 * rho
    assert str(law) == "(u, v) ~ N([0, 0], [[1, rho], [rho, 1]])"
    assert r"\sim \mathcal{N}" in sp.latex(law)
    with pytest.raises(AttributeError):
        law.mean = sp.ones(2, 1)
    scaled = correlated_pair(u, v, rho, variances=(a, 4), means=(m, 0))
    assert scaled.covariance[0, 1] == 2 * rho * sp.sqrt(a) and scaled.mean[0] == m


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((u, u), None, sp.eye(2)), ParameterError, "distinct"),
        (((sp.Symbol("t"),), None, [[1]]), ParameterError, "declared real and nothing else"),
        (((sp.Symbol("t", positive=True),), None, [[1]]), ParameterError, "declared real"),
        (((u, v), None, None), ParameterError, "covariance has to be given"),
        (((u, v), None, sp.eye(3)), ParameterError, "shape"),
        (((u, v), [1], sp.eye(2)), ParameterError, "2 entries"),
        (((u, v), None, [[1, 2], [3, 4]]), ParameterError, "symmetric"),
        (((u, v), None, [[1, 2], [2, 1]]), ParameterError, "semi-definite.*u, v is -3"),
        (((u, v), None, [[-1, 0], [0, 1]]), ParameterError, "semi-definite.*block of u"),
        (((u, v), None, [[1, u], [u, 1]]), ParameterError, "must not occur"),
        (((u,), None, [[sp.oo]]), ParameterError, "finite"),
        (((u,), None, [[sp.I]]), ParameterError, "real"),
        (((u,), None, "1"), ExpressionError, "covariance"),
        (((u,), None, [[sp.Symbol("s")]]), AssumptionError, "declared real"),
        (((u,), None, [[c]]), AssumptionError, r"Symbol\('c', positive=True\)"),
        (((u,), [sp.Symbol("a", real=True)], [[a]]), AssumptionError, "same name, different"),
    ],
)
def test_laws_that_are_none(arguments, error, message):
    with pytest.raises(error, match=message):
        GaussianVector(*arguments)


def test_a_pair_has_two_variances():
    with pytest.raises(ParameterError, match="two entries each"):
        correlated_pair(u, v, 0, variances=(1,))


# -- the node


def test_constants_and_unused_variables():
    assert JointExpectation(3 * c, PAIR) == 3 * c
    assert JointExpectation(c * tanh(u), PAIR) == c * JointExpectation(tanh(u), PAIR.marginal([u]))
    assert NODE.free_symbols == {c, rho} and NODE.bound_symbols == [u, v]
    assert NODE.func(*NODE.args) == NODE and pickle.loads(pickle.dumps(NODE)) == NODE
    assert (
        NODE.is_extended_real and JointExpectation(tanh(u * v) ** 2, PAIR).is_extended_nonnegative
    )


def test_substitution_leaves_the_bound_variables_alone():
    assert NODE.subs(u, 3) == NODE and NODE.xreplace({v: w}) == NODE
    assert NODE.subs(rho, HALF).law == correlated_pair(u, v, HALF)
    captured = NODE.subs(c, u)
    assert captured.free_symbols == {u, rho}
    back = captured.subs(u, 2)
    x, y = back.law.variables
    assert back.integrand == tanh(2 * x) * tanh(y) and not {x, y} & {u, v}
    assert (NODE + u).subs({u: 1, c: 2}) == NODE.subs(c, 2) + 1
    assert NODE.subs(c, 0) == 0


def test_price_and_bonnet():
    law = GaussianVector((u, v), [m, 0], [[a, rho], [rho, 1]])
    node = JointExpectation(tanh(u) * sp.sin(v), law)
    assert node.diff(rho) == JointExpectation((1 - tanh(u) ** 2) * sp.cos(v), law)
    assert node.diff(m) == JointExpectation((1 - tanh(u) ** 2) * sp.sin(v), law)
    change = node.diff(a)
    (inner,) = change.atoms(JointExpectation)
    second = change / inner * inner.integrand - tanh(u).diff(u, 2) * sp.sin(v) / 2
    assert sp.expand(second) == 0
    assert node.diff(u) == 0
    # chain rule: entries that are functions of a parameter
    t = sp.Symbol("t", real=True)
    turned = JointExpectation(erf(u) * erf(v), correlated_pair(u, v, sp.sin(t)))
    slope = turned.diff(t).doit() - (2 / sp.pi * sp.asin(2 * sp.sin(t) / 3)).diff(t)
    assert abs(slope.subs(t, HALF).evalf(30, maxn=100)) < 1e-28


def test_derivatives_of_steps():
    kernel = JointExpectation(relu(u) * relu(v), PAIR)
    assert kernel.diff(rho).doit() == expect(sp.Heaviside(u, HALF) * sp.Heaviside(v, HALF), PAIR)
    density = JointExpectation(sp.sign(u) * sp.sign(v), PAIR).diff(rho).doit()
    assert density == 2 / sp.pi / sp.sqrt(1 - rho**2)


def test_reductions_to_one_variable():
    found = expect_joint(tanh(u + v), PAIR)
    assert isinstance(found, GaussianExpectation)
    value = expect_joint(tanh(u + v) ** 2, PAIR).subs(rho, HALF).evalf(20)
    z = sp.Symbol("z", real=True)
    assert abs(value - GaussianExpectation(tanh(sp.sqrt(3) * z) ** 2, z).evalf(20)) < 1e-19
    assert expect_joint(relu(v) ** 2, PAIR) == HALF
    assert expect_joint(relu(u + v), PAIR).subs(rho, HALF) == sp.sqrt(3) / sp.sqrt(2 * sp.pi)


@pytest.mark.parametrize("sign", [1, -1])
def test_perfect_correlation_in_the_law(sign):
    law = correlated_pair(u, v, sign, means=(1, -1))
    z = sp.Symbol("z", real=True)
    alone = GaussianExpectation(relu(1 + z) * relu(sign * z - 1), z).doit()
    assert abs(expect_joint(relu(u) * relu(v), law).evalf(20) - alone.evalf(20)) < 1e-18


def test_piecewise_and_variables_without_variance():
    assert expect_joint(sp.Piecewise((u, u > 0), (0, True)) * v, PAIR) == PAIR.covariance[0, 1] / 2
    piecewise = sp.Piecewise((tanh(u), u > 0), (0, True)) * v
    assert expect_joint(piecewise, PAIR) == JointExpectation(piecewise, PAIR)
    fixed = GaussianVector((u, v), [1, 0], [[0, 0], [0, 1]])
    assert expect_joint(relu(u) * relu(v), fixed) == 1 / sp.sqrt(2 * sp.pi)
    assert expect_joint(sp.Heaviside(u - 2, HALF) * v**2, fixed) == 0


def test_expect_takes_both():
    assert expect(erf(u) * erf(v), PAIR) == 2 / sp.pi * sp.asin(2 * rho / 3)
    assert expect(tanh(c * u) * tanh(v), PAIR) == NODE
    assert expect(erf(u) ** 2, u) == GaussianExpectation(erf(u) ** 2, u).doit()


# -- digits


def test_digits_by_one_closed_inner_integral():
    # E tanh(v) relu(u): relu is smoothed by hand, tanh integrated here
    node = JointExpectation(tanh(v) * relu(u), correlated_pair(u, v, HALF))
    with mpmath.workdps(40):
        rest = mpmath.sqrt(mpmath.mpf(3)) / 2

        def inside(t):
            mean = t / 2
            smooth = mean * mpmath.ncdf(mean / rest) + rest * mpmath.npdf(mean / rest)
            return mpmath.tanh(t) * smooth * mpmath.npdf(t)

        expected = mpmath.quadgl(inside, [mpmath.mpf(k) / 2 for k in range(-28, 29)])
        assert abs(mpmath.mpf(node.evalf(30)._mpf_) - expected) < mpmath.mpf("1e-29")


def test_digits_in_the_plane():
    # tanh at x + y in one variable: rotation of the same integral
    node = JointExpectation(tanh(u) * tanh(v), correlated_pair(u, v, HALF))
    with mpmath.workdps(20):
        nodes = [mpmath.mpf(k) / 5 for k in range(-40, 41)]
        density = [mpmath.npdf(t) / 5 for t in nodes]
        rest = mpmath.sqrt(mpmath.mpf(3)) / 2
        expected = mpmath.fsum(
            p * mpmath.tanh(t) * mpmath.fsum(
                q * mpmath.tanh(t / 2 + rest * s) for s, q in zip(nodes, density, strict=True)
            )
            for t, p in zip(nodes, density, strict=True)
        )  # fmt: skip
    # step 1/5 with poles at a distance of pi/2: error exp(-2 pi (pi/2) 5) = 4e-22
    assert abs(node.evalf(10) - sp.Float(expected, 15)) < 1e-10


def test_digits_of_products_with_kinks_know_reflections():
    value, reflected = (
        JointExpectation(sp.Abs(tanh(u)) * sp.Abs(tanh(v)), correlated_pair(u, v, r)).evalf(12)
        for r in (HALF, -HALF)
    )
    assert abs(value - sp.Float("0.321723448862", 12)) < 1e-11 and abs(value - reflected) < 1e-11


def test_independent_factors():
    law = GaussianVector((u, v, w), covariance=[[1, 0, 0], [0, 4, rho], [0, rho, 1]])
    z = sp.Symbol("z", real=True)
    alone = GaussianExpectation(tanh(z) ** 2, z)
    found = expect_joint(tanh(u) ** 2 * tanh(v) ** 2, law)
    assert found == alone * GaussianExpectation(tanh(2 * z) ** 2, z)
    assert expect_joint(tanh(u) ** 2 * v * w * sp.exp(u - u), law) == rho * alone
    assert expect_joint(tanh(u) ** 2 * relu(w) + 3, law) == alone / sp.sqrt(2 * sp.pi) + 3
    pair = law.marginal([v, w])
    whole = JointExpectation(tanh(v) * tanh(w), pair)
    assert expect_joint(tanh(u) ** 2 * tanh(v) * tanh(w), law) == alone * whole
    unevaluated = JointExpectation(tanh(u) ** 2 * sp.Abs(tanh(w)), law)
    by_hand = alone * GaussianExpectation(sp.Abs(tanh(z)), z)
    assert abs(unevaluated.evalf(20) - by_hand.evalf(20)) < 1e-19


def _integral(integrand, law):
    """E f by a product of Gauss-Hermite rules along the axes of a Cholesky factor."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    size = len(law.variables)
    root = np.linalg.cholesky(np.array(law.covariance.tolist(), dtype=float))
    grid = np.stack(np.meshgrid(*[nodes] * size, indexing="ij")).reshape(size, -1)
    weight = np.prod(np.stack(np.meshgrid(*[weights] * size, indexing="ij")), axis=0).ravel()
    points = root @ grid + np.array([float(m) for m in law.mean])[:, None]
    values = sp.lambdify(law.variables, integrand, "numpy")(*points)
    return np.sum(weight * values) / np.sqrt(2 * np.pi) ** size


def _product_over_groups(draw, groups):
    """A factor for each group, and an exponential that holds constants and all of them."""
    factors = []
    for group in groups:
        t = sum(sp.Rational(draw.randint(1, 3), 8) * x for x in group)
        functions = (tanh(t) ** 2, sp.sqrt(1 + t**2 / 9), sp.sech(t), sp.exp(tanh(t)))
        factors.append(draw.choice(functions) * draw.choice([1, *group]))
    held = [x for group in groups for x in group if draw.random() < 0.7]
    slopes = [sp.Rational(draw.randint(-3, 3), 8) for _ in held]
    exponent = sum(s * x for s, x in zip(slopes, held, strict=True)) + sp.Rational(
        draw.randint(1, 9), 7
    )
    base = draw.choice([sp.E, sp.Integer(2), sp.pi])
    return sp.Mul(base ** (exponent + c), draw.choice([1, 3, sp.exp(c + 1)]), *factors)


@pytest.mark.parametrize("seed", range(5))
def test_products_over_groups_agree_with_integration(seed):
    draw = random.Random(seed)
    x = sp.symbols("x1:5", real=True)
    groups = draw.choice(
        [[x[:1], x[1:2]], [x[:1], x[1:2], x[2:3]], [x[:1], x[1:3]], [x[:2], x[2:3], x[3:]]]
    )
    used = [v for group in groups for v in group]
    covariance = sp.zeros(len(used))
    for i, v in enumerate(used):
        covariance[i, i] = sp.Rational(draw.randint(1, 4), 4)
        for j, w in enumerate(used[:i]):
            if any(v in group and w in group for group in groups):
                covariance[i, j] = covariance[j, i] = sp.Rational(draw.choice([-1, 1]), 5)
    law = GaussianVector(used, [sp.Rational(draw.randint(-2, 2), 3) for _ in used], covariance)
    integrand = _product_over_groups(draw, groups) + draw.choice([0, c, 2 + used[0]])
    point = {c: sp.Rational(draw.randint(-4, 4), 5)}
    found = expect_joint(integrand, law).subs(point)
    # What is left over correlated variables is integrated in the same way: its digits are slow.
    left = {n: sp.Float(_integral(n.integrand, n.law)) for n in found.atoms(JointExpectation)}
    found = found.xreplace(left).evalf(15)
    wanted = _integral(integrand.subs(point), law)
    assert abs(float(found) - wanted) < 1e-9 * max(1, abs(wanted))


def test_a_correlation_is_known_to_be_below_one():
    assert expect_joint(sp.exp(u * v / 2), PAIR) == 2 / sp.sqrt(rho**2 - 4 * rho + 3)
    with pytest.raises(AssumptionError, match="finite only for"):
        expect_joint(sp.exp(sp.Rational(51, 100) * u * v), PAIR)


def test_far_tails_print():
    law = GaussianVector((u, v), [-HALF, -HALF], [[sp.Rational(1, 10**6), 0], [0, 2]])
    found = expect_joint(u * sp.Abs(u) * sp.Heaviside(v, HALF), law)
    # u is -1/2 up to 1/1000, v of variance 2: -(1/4 + 1e-6) Phi(-1/sqrt(8))
    level = sp.erfc(sp.Rational(1, 4)) / 2
    assert str(found) and abs(found.evalf(20) + (HALF**2 + 1e-6) * level.evalf(20)) < 1e-15
    far = expect(relu(u - 800), u)
    assert str(far) and 0 < far.evalf(10) < 1e-100


@pytest.mark.parametrize("sign", [1, -1])
def test_digits_at_perfect_correlation(sign):
    value = JointExpectation(tanh(u) * tanh(v), correlated_pair(u, v, sign)).evalf(20)
    assert abs(value - sign * sp.Float("0.39429449039784117442", 20)) < 1e-19


def test_digits_with_variables_integrated_out():
    law = GaussianVector((u, v, w), covariance=[[1, HALF, 0], [HALF, 1, HALF], [0, HALF, 2]])
    node = JointExpectation(tanh(u) * v * w**2, law)
    # Wick and Stein by hand: E tanh(u) (v w²) with E[v w² | u] = 2 E[v|u] + 2 E[w|u] Cov = u
    z = sp.Symbol("z", real=True)
    assert abs(node.evalf(20) - GaussianExpectation(tanh(z) * z, z).evalf(20)) < 1e-19


def test_refused_digits():
    pair = correlated_pair(u, v, HALF)
    with pytest.raises(ConvergenceError, match="does not decay"):
        JointExpectation(sp.exp(u**2) * v, pair).evalf(15)
    with pytest.raises(UnsupportedExpressionError, match="smooth integrand or a product"):
        JointExpectation(sp.Abs(tanh(u * v)), pair).evalf(15)
    with pytest.raises(ConvergenceError, match="correlation is close to 1"):
        nearly = correlated_pair(u, v, 1 - sp.Rational(1, 10**6))
        JointExpectation(sp.Abs(tanh(u)) * sp.Abs(tanh(v)), nearly).evalf(15)
    three = GaussianVector((u, v, w), covariance=sp.eye(3) + sp.ones(3))
    with pytest.raises(UnsupportedExpressionError, match="3 variables remain"):
        JointExpectation(tanh(u) * tanh(v) * tanh(w), three).evalf(15)


# -- refusals of expect_joint


@pytest.mark.parametrize(
    ("integrand", "law", "message"),
    [
        (relu(u) * sp.Symbol("v"), PAIR, "two symbols 'v' with the same name, different"),
        (relu(u) * sp.Symbol("k"), PAIR, r"declared real: Symbol\('k', real=True\)"),
        (sp.exp(u**2), PAIR, "diverges"),
        (sp.exp(c * u**2), PAIR, "finite only for"),
        (
            relu(u) * relu(v),
            GaussianVector((u, v), covariance=sp.diag(sp.Symbol("s", nonnegative=True), 1)),
            "may be 0.*positive=True",
        ),
    ],
    ids=str,
)
def test_missing_assumptions_are_named(integrand, law, message):
    with pytest.raises(AssumptionError, match=message):
        expect_joint(integrand, law)


def test_a_law_is_needed():
    with pytest.raises(ParameterError, match="GaussianVector"):
        expect_joint(u, (u, v))
    with pytest.raises(AssumptionError, match="same name, different assumptions"):
        expect(sp.Symbol("u") * tanh(u), u)


# -- printing


def test_printing():
    assert str(2 * NODE) == "2*E_{u,v}[tanh(v)*tanh(c*u)]"
    assert sp.latex(NODE).startswith(r"\mathbb{E}_{u,v}\left[") and "^{2}" in sp.latex(NODE**2)
    assert sp.pretty(NODE).startswith("𝔼_u,v[")
    text = sp.printing.mathml(NODE, printer="presentation")
    declared = '<!DOCTYPE math [<!ENTITY InvisibleTimes "&#x2062;">]>' + f"<math>{text}</math>"
    letters = [node.text for node in ElementTree.fromstring(declared).iter("mi")]
    assert letters[:3] == ["𝔼", "u", "v"]


def test_a_step_with_a_slope_that_may_be_zero_stays():
    # A closed form would divide by |m| and be nan at m = 0, which a real m admits.
    m, n = sp.symbols("m n", real=True)
    law = correlated_pair(u, v, rho)
    node = expect_joint(relu(v) * relu(m * u + n), law)
    assert node.has(JointExpectation)
    at_zero = node.subs({m: 0, n: HALF, rho: sp.Rational(1, 3)})
    assert abs(at_zero.evalf(20) - (HALF / sp.sqrt(2 * sp.pi)).evalf(20)) < sp.Float(10) ** -18
    nonzero = sp.Symbol("m", real=True, nonzero=True)
    assert not expect_joint(relu(v) * relu(nonzero * u), law).has(JointExpectation)


def test_digits_of_derivatives_of_steps():
    # Price's theorem makes derivatives of point masses of them.
    law = GaussianVector((u, v), covariance=[[a, rho], [rho, 2]])
    at = {a: sp.Integer(1), rho: HALF}
    closed = expect_joint(sp.sign(u) * erf(v), law).diff(a).subs(at)
    node = JointExpectation(sp.sign(u) * erf(v), law).diff(a).subs(at)
    assert node.has(sp.DiracDelta)
    assert abs(node.evalf(25) - closed.evalf(25)) < 1e-23
    assert abs(closed.evalf(25)) > 0.1


def test_singular_laws_with_kinks_on_both_sides():
    """relu(u) relu(2/3 - u): the digits were 0, because nothing is left beyond the kinks."""
    third = sp.Rational(1, 3)
    law = GaussianVector((u, v), mean=(third, third), covariance=[[HALF, -HALF], [-HALF, HALF]])
    expected = sp.exp(-sp.Rational(1, 9)) / (3 * sp.sqrt(sp.pi)) - 7 * erf(third) / 18
    assert abs(JointExpectation(relu(u) * relu(v), law).evalf(15) - expected.evalf(15)) < 1e-14


# -- as expectations inside each other


@pytest.mark.parametrize(
    ("integrand", "law", "depth"),
    [
        (sp.sin(u) * tanh(v + u / 3), correlated_pair(u, v, sp.Rational(-2, 5)), 2),
        (tanh(u + 2) * sp.cos(u * v), correlated_pair(u, v, 0, variances=(2, 3), means=(1, 0)), 2),
        (tanh(u * v), GaussianVector((u, v), covariance=[[1, 1], [1, 1]]), 1),
        (tanh(u * v),
         GaussianVector((u, v), mean=(1, 1), covariance=[[0, 0], [0, sp.Rational(1, 9)]]), 1),
        (tanh(u / 4 + v / 3) ** 2, correlated_pair(u, v, sp.Rational(1, 2)), 1),
    ],
    ids=str,
)  # fmt: skip
def test_as_expectations_inside_each_other(integrand, law, depth):
    joint = JointExpectation(integrand, law)
    found = joint.nested()
    assert not found.has(JointExpectation)
    # Every node is a factor: without the signs of averaging, the integrand over the plane.
    variables = []
    while nodes := found.atoms(GaussianExpectation):
        outer = next(n for n in nodes if not any(m != n and m.has(n) for m in nodes))
        variables.append(outer.variable)
        found = found.xreplace({outer: outer.integrand})
    assert len(variables) == depth
    x, weights = np.polynomial.hermite_e.hermegauss(160)
    weights /= weights.sum()
    values = sp.lambdify(variables, found, "numpy")(*np.meshgrid(*[x] * depth))
    mean = values @ weights if depth == 1 else weights @ values @ weights
    assert abs(mean - float(joint.evalf(12))) < 1e-9
