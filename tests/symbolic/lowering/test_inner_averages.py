"""Inner expectations inside functions: against closed forms, and double sums of NumPy.

Systems are solved by their NumPy files, which need no compiler; test_product_files.py compares the
kernel in this process with them, and one system here is solved by it.
"""

import functools

import mpmath
import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import ConvergenceError, EmissionError, UnsupportedExpressionError
from giantstep.symbolic.expressions.functions import normal_cdf, sigmoid, softplus
from giantstep.symbolic.gaussian.expectation import (
    GaussianExpectation as E,
    GaussianVector,
    JointExpectation,
)
from giantstep.symbolic.lowering.hoist import hoist
from giantstep.symbolic.lowering.inner_averages import (
    InnerAverage,
    InnerScale,
    _exponential,
    scaled,
)
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .generated_code import module_of

z, s, t, h = sp.symbols("z s t h", real=True)
q, r, v, x, q_0, q_1, beta, alpha, noise, rho = sp.symbols(
    "q r v x q_0 q_1 beta alpha noise rho", positive=True
)
UNIT = sp.Interval.open(0, 1)
LINE = np.linspace(-11, 11, 441)
LAW = np.exp(-(LINE**2) / 2) / np.sqrt(2 * np.pi) * (LINE[1] - LINE[0])
OUTER, INNER = LINE[:, None], LINE[None, :]


def fixed(equations, *parameters, **options):
    return SaddlePointSystem.from_fixed_point(
        equations, name="nested", parameters=parameters, **options
    )


def solved(module, **point):
    """Return the outputs that a NumPy file computes at a point."""
    return {name: value for name, (value, _) in module.solve_point(point).items()}


def file_of(system):
    return module_of(lower(system).source("numpy"))


# -- one step of replica-symmetry breaking


@functools.cache
def one_step():
    field = beta * (h + sp.sqrt(q_0) * z + sp.sqrt(q_1 - q_0) * s)
    mass = E(sp.cosh(field) ** x, s)
    free_energy = beta**2 / 4 * (1 - 2 * q_1 + (1 - x) * q_1**2 + x * q_0**2) + E(
        sp.log(mass) / x, z
    )
    first = E(sp.cosh(field) ** x * sp.tanh(field), s) / mass
    second = E(sp.cosh(field) ** x * sp.tanh(field) ** 2, s) / mass
    return gs.lower(
        fixed(
            {q_0: E(first**2, z), q_1: E(second, z)}, beta, x, h,
            outputs={"free_energy": free_energy},
            start={q_0: sp.Rational(1, 4), q_1: sp.Rational(3, 4)},
        )
    )  # fmt: skip


def by_double_sums(q_0, q_1, beta, x, h):
    """Return what q_0 and q_1 are mapped to, and the free energy."""
    field = beta * (h + np.sqrt(q_0) * OUTER + np.sqrt(max(q_1 - q_0, 0.0)) * INNER)
    exponent = x * (np.logaddexp(field, -field) - np.log(2))
    highest = exponent.max(axis=1, keepdims=True)
    density = LAW * np.exp(exponent - highest)
    mass = density.sum(axis=1)
    first, second = ((density * np.tanh(field) ** k).sum(axis=1) / mass for k in (1, 2))
    quadratic = beta**2 / 4 * (1 - 2 * q_1 + (1 - x) * q_1**2 + x * q_0**2)
    return LAW @ first**2, LAW @ second, quadratic + LAW @ (np.log(mass) + highest[:, 0]) / x


@pytest.mark.parametrize(
    ("point", "breaks"),
    [
        ((2.0, 0.3, 0.2), True),
        ((5.0, 0.2, 0.1), True),
        ((5.0, 0.5, 0.0), True),
        ((10.0, 0.1, 0.0), True),
        ((1.2, 0.7, 0.3), False),
    ],
)
def test_one_step_of_replica_symmetry_breaking(point, breaks):
    found = one_step().solve(**dict(zip(("beta", "x", "h"), point, strict=True)))
    low, high, free_energy = by_double_sums(found.q_0, found.q_1, *point)
    assert found.q_0 == pytest.approx(low, rel=2e-12)
    assert found.q_1 == pytest.approx(high, rel=1e-13)
    assert found.free_energy == pytest.approx(free_energy, rel=1e-13)
    assert (found.q_1 - found.q_0 > 0.1) is breaks


def test_a_pass_takes_the_largest_exponent_of_a_node_then_means():
    program = one_step().program
    (inner,) = program.inner_nodes
    nested = [loop for loop in program.loops() if loop.inner]
    assert nested and program.nested
    for loop in nested:
        assert [p.largest for p in loop.inner] == [True, False]
        outside = [*loop.locals, *loop.sums, *(a for p in loop.inner for a in p.before)]
        assert not any(a.value.has(inner) for a in outside)
        assert not any(a.value.has(sp.cosh, sp.sinh) for a in loop.at_nodes)


def test_without_breaking_the_overlaps_are_replica_symmetric():
    symmetric = gs.lower(fixed({q: E(sp.tanh(beta * (h + sp.sqrt(q) * z)) ** 2, z)}, beta, h))
    found = one_step().solve(beta=1.2, x=0.7, h=0.3)
    assert found.q_0 == pytest.approx(symmetric.solve(beta=1.2, h=0.3).q, rel=1e-12)
    assert found.q_1 == pytest.approx(found.q_0, rel=1e-12)


def test_the_free_energy_is_stationary_in_the_overlaps():
    """Its whole derivative by the Parisi parameter is then the partial one."""
    point, step = {"beta": 2.0, "h": 0.2}, 1e-3
    here = one_step().solve(**point, x=0.3)
    ends = [one_step().solve(**point, x=0.3 + k * step).free_energy for k in (2, 1, -1, -2)]
    whole = (-ends[0] + 8 * ends[1] - 8 * ends[2] + ends[3]) / (12 * step)
    partly = [
        by_double_sums(here.q_0, here.q_1, 2.0, 0.3 + k * step, 0.2)[2] for k in (2, 1, -1, -2)
    ]
    partial = (-partly[0] + 8 * partly[1] - 8 * partly[2] + partly[3]) / (12 * step)
    assert whole == pytest.approx(partial, rel=1e-8)


# -- channels and posterior means with closed forms


@functools.cache
def probit(nested):
    """Labels of a Gaussian field with noise; its average over what is unknown has a closed form."""

    def density(u):
        return sp.exp(-(u**2) / 2) / sp.sqrt(2 * sp.pi)

    width = noise if nested else noise + 1 - q
    field = (sp.sqrt(q) * z + (sp.sqrt(1 - q) * s if nested else 0)) / sp.sqrt(width)
    mass, slope = E(sp.erfc(-field / sp.sqrt(2)) / 2, s), E(density(field) / sp.sqrt(width), s)
    equations = {q: r / (1 + r), r: 2 * alpha * E(slope**2 / mass, z)}
    return fixed(equations, alpha, noise, domains={q: UNIT})


def test_a_probit_channel_meets_its_closed_form():
    nested, closed = (file_of(probit(k)) for k in (True, False))
    for point in ({"alpha": 3.0, "noise": 0.4}, {"alpha": 1.0, "noise": 2.0}):
        expected = solved(closed, **point)["q"]
        assert solved(nested, **point)["q"] == pytest.approx(expected, rel=1e-13)


def test_a_file_tells_integrands_that_no_rule_resolves_from_equations_without_solution():
    with pytest.raises(RuntimeError, match="varies on a scale that no quadrature rule"):
        file_of(probit(True)).solve_point({"alpha": 20.0, "noise": 1e-3})


@pytest.mark.slow
def test_channels_that_underflow_where_they_are_divided_by():
    """The last one falls to 1e-2000 at the ends of the line."""
    nested, closed = (gs.lower(probit(k)) for k in (True, False))
    for point in ({"alpha": 10.0, "noise": 0.1}, {"alpha": 20.0, "noise": 0.01}):
        assert nested.solve(**point).q == pytest.approx(closed.solve(**point).q, rel=1e-13)


def test_a_posterior_mean_meets_its_closed_form():
    """Sparse normal signals: a mixture of one number and an average in the denominator."""

    def mean(b):
        density = sp.exp(b * s - r * s**2 / 2)
        return rho * E(s * density, s) / (1 - rho + rho * E(density, s))

    def closed(b):
        evidence = rho * sp.exp(b**2 / (2 * (1 + r))) / sp.sqrt(1 + r)
        return evidence / (1 - rho + evidence) * b / (1 + r)

    found = []
    for posterior in (mean, closed):
        spike, slab = (E(posterior(c * z) ** 2, z) for c in (sp.sqrt(r), sp.sqrt(r + r**2)))
        equations = {v: rho - (1 - rho) * spike - rho * slab, r: alpha / (noise + v)}
        file = file_of(fixed(equations, alpha, noise, rho, start={v: rho}))
        found.append(solved(file, alpha=0.6, noise=0.1, rho=0.2)["v"])
    assert found[0] == pytest.approx(found[1], rel=1e-13)


def test_a_kink_is_where_lines_are_cut():
    """A threshold of a known field inside a logarithm; the closed form has the normal law's."""
    inner = E(sp.Heaviside(h * z + s) * sp.exp(-q * (h * z + s) / 10), s)
    system = fixed({q: 1 - E(sp.log(inner), z) / 10}, h)
    found = solved(file_of(system), h=0.7)["q"]
    b, a = 0.7 * LINE, found / 10
    closed = -a * b + a**2 / 2 + np.log(np.vectorize(lambda u: float(mpmath.ncdf(u)))(b - a))
    assert found == pytest.approx(1 - LAW @ closed / 10, rel=1e-12)


def test_exponents_beyond_all_floats():
    """exp(1500) over itself, and its logarithm."""
    steep = sp.exp(500 * (2 + sp.tanh(q * s + z) / 10))
    mass = E(steep, s)
    ratio = E(steep * sp.tanh(q * s + z), s) / mass
    system = fixed({q: 1 + x * E(ratio**2, z)}, x, outputs={"level": E(sp.log(mass), z)})
    found = solved(file_of(system), x=0.3)
    bounded = np.tanh(found["q"] * INNER + OUTER)
    density = LAW * np.exp(50 * bounded)
    mean = (density * bounded).sum(axis=1) / density.sum(axis=1)
    assert found["q"] == pytest.approx(1 + 0.3 * LAW @ mean**2, rel=1e-11)
    assert found["level"] == pytest.approx(1000 + LAW @ np.log(density.sum(axis=1)), rel=1e-13)


@pytest.mark.parametrize("function", [sp.exp, sp.cosh])
def test_correlated_variables_inside_a_function(function):
    """Their sum is one normal variable; of exp the outer variable is a factor."""
    law = GaussianVector((s, t), covariance=[[1, x], [x, 1]])
    inner = JointExpectation(function(s + q * t + z), law)
    found = solved(file_of(fixed({q: 1 + E(sp.log(inner), z) / 10}, x)), x=0.4)["q"]
    outer = LAW @ np.log(np.cosh(LINE)) if function is sp.cosh else 0.0
    variance = 1 + found**2 + 0.8 * found
    assert found == pytest.approx(1 + (variance / 2 + outer) / 10, rel=1e-12)


# -- how averages are scaled

NODES = sp.Tuple(s)
POINTS = np.array([-1.7, -0.3, 0.4, 2.1])
WEIGHTS = np.array([0.1, 0.4, 0.3, 0.2])


def average(function):
    return InnerAverage(function, NODES)


def on_points(expr, **values):
    """Evaluate averages and scales on some points in place of a rule."""
    numbers = {sp.Symbol(name, **assumed(name)): value for name, value in values.items()}
    scales = {
        n: max(float(n.value.subs(numbers).subs(s, p)) for p in POINTS)
        for n in expr.atoms(InnerScale)
    }
    expr = expr.xreplace(scales)
    means = {
        n: sum(
            w * float(n.function.subs(numbers).subs(s, p))
            for p, w in zip(POINTS, WEIGHTS, strict=True)
        )
        for n in expr.atoms(InnerAverage)
    }
    return float(expr.xreplace(means).subs(numbers))


def assumed(name):
    return {"real": True} if name in ("z", "h") else {"positive": True}


FIELD = h + sp.sqrt(q) * s + z
SCALED = {
    "quotient": average(sp.cosh(FIELD) ** x * sp.tanh(FIELD)) / average(sp.cosh(FIELD) ** x),
    "logarithm": sp.log(average(sp.cosh(FIELD) ** x)),
    "sinh": average(sp.sinh(FIELD)) ** 2 / average(sp.cosh(FIELD)) ** 2,
    "channel": average(sigmoid(-FIELD) * sigmoid(FIELD)) ** 2 / average(sigmoid(FIELD)),
    "entropy": average(sigmoid(FIELD)) * sp.log(average(sigmoid(FIELD))),
    "fraction": average(sp.exp(FIELD) / (1 + sp.exp(FIELD))) / average(1 / (1 + sp.exp(FIELD))),
    "tail": average(sp.exp(-(FIELD**2) / 2)) / average(normal_cdf(FIELD)),
    "mixture": x * average(s * sp.exp(FIELD)) / (1 + x * average(sp.exp(FIELD))),
    "square": average((sp.exp(FIELD) + 2) ** 2) / average(sp.exp(2 * FIELD)),
    "two labels": sum(sp.log(average(sp.exp(y * FIELD))) for y in (1, -1)),
    "of a quotient": sp.tanh(average(s * sp.exp(FIELD)) / average(sp.exp(FIELD))),
}


@pytest.mark.parametrize("name", SCALED)
def test_scales_cancel_in_values_and_derivatives(name):
    plain = SCALED[name]
    divided = scaled(plain)
    assert divided.has(InnerScale)
    point = {"q": 0.8, "x": 0.7, "h": 0.3, "z": -0.6}
    for change in (lambda f: f, lambda f: f.diff(q), lambda f: f.diff(q).diff(q)):
        assert on_points(change(divided), **point) == pytest.approx(
            on_points(change(plain), **point), rel=1e-12
        )


@pytest.mark.parametrize(
    "plain",
    [
        average(sp.tanh(FIELD)) ** 2 / (1 + average(sp.tanh(FIELD)) ** 2),
        x * average(sp.cosh(FIELD)),
        sp.tanh(average(sp.exp(FIELD))),
        sp.Integer(3),
    ],
)
def test_what_does_not_need_a_scale_or_depends_on_it_has_none(plain):
    assert scaled(plain) == plain


def test_what_is_the_same_at_all_inner_nodes_stands_outside():
    assert average(q * z * s) == q * z * average(s)
    assert average(q * z) == q * z
    assert average(sp.tanh(q * s)).diff(q) == average(s * (1 - sp.tanh(q * s) ** 2))
    table = sp.Function("mu", real=True)(z)
    assert average(table * s).function == table * s


# -- what is refused


@pytest.mark.parametrize(
    "value",
    [
        E(1 / E(sp.sinh(q * s * z), s), z),
        E(sp.log(E(s * sp.cosh(q * s * z), s)), z),
    ],
)
def test_dividing_by_an_average_that_vanishes_is_refused(value):
    with pytest.raises(EmissionError, match=r"zero: its integrand is odd in s"):
        hoist(fixed({q: 1 + x * value}, x))


@pytest.mark.slow
def test_the_logarithm_of_a_negative_average_is_no_number():
    """E_s sinh(q s + z) has the sign of z."""
    kernel = gs.lower(fixed({q: 1 + x * E(sp.log(E(sp.sinh(q * s + z), s)), z) ** 2}, x))
    with pytest.raises(ConvergenceError, match="not finite"):
        kernel.solve(x=0.5)


def test_certificates_say_that_two_variables_are_too_many():
    with pytest.raises(UnsupportedExpressionError, match="2 Gaussian variables at once"):
        one_step().solve(beta=2.0, x=0.3, h=0.2, certify=True)


@pytest.mark.parametrize(
    "function",
    [
        sp.exp(2 * s - 1), sp.cosh(s + 1) ** 3, sp.sinh(2 * s), sigmoid(s - 2), normal_cdf(3 * s),
        sp.erfc(s + 1), sp.erfc(-s) / 5, (1 + sp.exp(3 * s)) ** -2,
    ],
    ids=str,
)  # fmt: skip
def test_what_is_like_one_exponential_is_it_times_a_factor(function):
    exponent, factor = _exponential(function)
    for at in (-1.3, 0.4, 2.0):
        found, wanted = (
            float(f.replace(softplus, lambda u: sp.log(1 + sp.exp(u))).subs(s, at).evalf(20))
            for f in (sp.exp(exponent) * factor, function)
        )
        assert found == pytest.approx(wanted, rel=1e-13)
