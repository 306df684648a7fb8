"""Averages over several Gaussian variables at once: against closed forms and SciPy's quadrature.

Systems are solved by their NumPy files, which need no compiler; test_product_files.py compares the
kernel in this process with them.
"""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.integrate import dblquad
from scipy.optimize import brentq

import giantstep
from giantstep.errors import ConvergenceError, EmissionError
from giantstep.symbolic.expressions.averages import DataAverage
from giantstep.symbolic.expressions.functions import normal_cdf, softplus
from giantstep.symbolic.gaussian.expectation import (
    GaussianExpectation,
    GaussianVector,
    JointExpectation,
)
from giantstep.symbolic.losses.proximal import MoreauEnvelope
from giantstep.symbolic.lowering.hoist import hoist
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.lowering.product_measures import (
    ProductMeasure,
    even_nodes,
    fading_poles,
)
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .generated_code import module_of

q, a, h = sp.symbols("q a h", positive=True)
k, s, u, w = sp.symbols("kappa s u w", real=True)
POINT = {"a": 0.8, "h": 0.7}


def mean(integrand, *variables):
    for variable in reversed(variables):
        integrand = GaussianExpectation(integrand, variable)
    return integrand


def system(value, **options):
    return SaddlePointSystem.from_fixed_point(
        {q: value}, name="model", parameters=(a, h), node=k, **options
    )


def solved(value, *, rtol=1e-10, **options):
    """Return values and errors of the outputs at POINT, from the NumPy file."""
    file = module_of(lower(system(value, **options)).source("numpy"))
    found = file.solve_point(POINT, rtol=rtol)
    return tuple({name: entry[k] for name, entry in found.items()} for k in (0, 1))


def root(closed):
    """Solve q = closed(q, a, h) at POINT in 40 digits."""
    with mpmath.workdps(40):
        values = mpmath.mpf("0.8"), mpmath.mpf("0.7")
        return mpmath.findroot(lambda x: closed(x, *values) - x, 1.2)


# q = 1 + a E[…] with closed forms by Stein's lemma and by orthant probabilities.
PROBIT = (
    1 + a * mean(k * mean(sp.erf(h * k + q * s), s), k),
    lambda x, a, h: 1 + a * 2 * h / mpmath.sqrt(mpmath.pi * (1 + 2 * h**2 + 2 * x**2)),
)
JUMP = (
    1 + a / 4 * mean(sp.sign(h * k + s) * sp.erf(k / 2 + q * s), k, s),
    lambda x, a, h: (
        1
        + a
        / (2 * mpmath.pi)
        * mpmath.asin((h / 2 + x) / mpmath.sqrt((1 + h**2) * (mpmath.mpf(3) / 4 + x**2)))
    ),
)
BELL = (
    1 + a * mean(sp.exp(-((h * k + q * s - 1) ** 2)), k, s),
    lambda x, a, h: 1 + a * mpmath.exp(-1 / (1 + 2 * (h**2 + x**2)))
    / mpmath.sqrt(1 + 2 * (h**2 + x**2)),
)  # fmt: skip
GROWING = (
    1 + a / 100 * mean(sp.exp(h * k + q * s), k, s),
    lambda x, a, h: 1 + a / 100 * mpmath.exp((h**2 + x**2) / 2),
)
STEEP_TABLE = (
    1 + a * mean(k * sp.erf(20 * k + s) * sp.exp(-q * s**2), k, s),
    lambda x, a, h: 1 + a * 40 / mpmath.sqrt(mpmath.pi * (801 * (1 + 2 * x) + 2)),
)


@pytest.mark.parametrize(
    ("value", "closed", "even"),
    [(*PROBIT, True), (*JUMP, True), (*BELL, False), (*GROWING, False), (*STEEP_TABLE, True)],
    ids=["probit", "jump", "bell", "growing", "steep"],
)
def test_double_averages_meet_closed_forms_within_their_estimates(value, closed, even):
    assert lower(system(value)).program.even is even
    found, errors = solved(value)
    assert abs(found["q"] - float(root(closed))) <= max(errors["q"], 1e-15)
    assert errors["q"] < 1e-10


# What is computed in two ways on the same nodes agrees on few of them, too.
FEW = 1e-4


def test_half_a_grid_gives_what_the_whole_gives():
    value, _ = PROBIT
    even, whole, shifted = (
        solved(value, rtol=FEW, **options)[0]
        for value, options in (
            (value, {}),
            (value + mean(k + q * s, k, s) ** 2 + 0, {}),
            (value + 0 * a, {"outputs": {"odd": mean(k**3 * q * s, k, s)}}),
        )
    )
    assert whole["q"] == pytest.approx(even["q"], rel=1e-14)
    assert shifted["odd"] == pytest.approx(0, abs=1e-13)


def test_both_labels_together_take_half_a_grid():
    """One label has no parity; the sum over both has, tables on the grid included."""
    x = sp.Symbol("x", real=True)
    field, prediction = h * k + s, k + sp.sqrt(q) * s
    terms = [
        normal_cdf(y * field) * MoreauEnvelope(softplus(-y * x), x, prediction, a) for y in (1, -1)
    ]
    both, one = 1 + mean(sp.Add(*terms), k, s), 1 + 2 * mean(terms[0], k, s)
    assert [lower(system(value)).program.even for value in (both, one)] == [True, False]
    found, expected = (solved(value, rtol=FEW)[0]["q"] for value in (both, one))
    assert found == pytest.approx(expected, rel=1e-13)


def test_what_holds_the_node_alone_is_computed_once_a_node():
    """The points of a node stand side by side; a pass keeps what is the same for them."""
    value = 1 + a * mean(sp.exp(-q * k**2) * sp.tanh(h * k + q * s) ** 2, k, s)
    kernel = giantstep.lower(system(value))
    loops = [loop for loop in kernel.program.loops() if loop.of_node]
    assert loops
    assert all(not a.value.has(sp.tanh) for x in loops for a in x.locals[: x.of_node])
    assert "    first_point = last_point" in kernel.source("numba")


def test_a_loss_that_holds_the_label():
    """The label is a function of both variables; it is tabulated, the bound variable is not."""
    x = sp.Symbol("x", real=True)
    loss = sp.sqrt(1 + (x - sp.tanh(h * k + s)) ** 2)
    value = 1 + mean(MoreauEnvelope(loss, x, q * s + k, a), k, s)
    hoisted = hoist(system(value))
    assert [abs(f) for f in hoisted.product.definitions.values()] == [abs(sp.tanh(h * k + s))]
    found = solved(value)[0]["q"]
    nodes = 0.3 * np.arange(-23, 24)
    weights = 0.3 * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)

    def envelope(label, center):
        def slope(x):
            return x - center + 0.8 * (x - label) / np.sqrt(1 + (x - label) ** 2)

        p = brentq(slope, center - 1, center + 1, xtol=1e-13)
        return (p - center) ** 2 / 1.6 + np.sqrt(1 + (p - label) ** 2)

    double = sum(
        v * w * envelope(np.tanh(0.7 * y + t), found * t + y)
        for v, y in zip(weights, nodes, strict=True)
        for w, t in zip(weights, nodes, strict=True)
        if v * w > 1e-11
    )
    assert found == pytest.approx(1 + double, rel=1e-8)


def test_stages_tell_of_the_grid():
    kernel = giantstep.lower(system(PROBIT[0]))
    assert "nodes of the grid (kappa, s)" in kernel.inspect("quadrature")
    assert "on a grid of nodes (kappa, s)" in kernel.inspect("program")
    assert "inner node s" in kernel.inspect("hoisted")
    assert "def product_breaks_s(kappa" in kernel.inspect("tables")


def test_what_holds_no_unknown_is_tabulated_on_the_grid():
    hoisted = hoist(system(1 + mean(sp.tanh(h * k + s) * sp.cos(q * s) * k, k, s)))
    (definition,) = hoisted.product.definitions.values()
    assert definition == sp.tanh(h * k + s)
    assert hoisted.product.symbols == (s,)
    assert not hoisted.definitions


def test_a_jump_is_cut_in_the_last_variable_that_it_holds():
    product = hoist(system(JUMP[0])).product
    assert product.breaks == ((-h * k,),)
    outer = hoist(system(1 + mean(sp.sign(k - a) * sp.sin(q * s + k), k, s))).product
    assert outer.breaks == ((),) and outer.outer_breaks == (a,)


def test_inner_nodes_avoid_the_names_of_the_user():
    t = sp.Symbol("s_of_user", real=True)
    value = 1 + a * mean(k * sp.erf(h * k + q * s), k, s)
    found = SaddlePointSystem.from_fixed_point(
        {q: value}, name="model", parameters=(a, h, t), node=k, identifiers={t: "s"}
    )
    assert [str(x) for x in hoist(found).product.symbols] == ["s_"]


def test_bound_variables_of_the_same_name_do_not_meet():
    """The outer variable is called like the inner one, or like the node."""
    usual = solved(PROBIT[0], rtol=FEW)[0]["q"]
    swapped = 1 + a * mean(s * mean(sp.erf(h * s + q * k), k), s)
    assert solved(swapped, rtol=FEW)[0]["q"] == pytest.approx(usual, rel=1e-14)
    both = 1 + a / 2 * (
        mean(k * mean(sp.erf(h * k + q * s), s), k) + mean(u * mean(sp.erf(h * u + q * w), w), u)
    )
    assert solved(both, rtol=FEW)[0]["q"] == pytest.approx(usual, rel=1e-14)


def test_sensitivities_see_the_jump():
    kernel = giantstep.lower(system(JUMP[0]))
    found = kernel.sensitivities(**POINT)

    def solution(a, h):
        with mpmath.workdps(50):
            return mpmath.findroot(lambda x: JUMP[1](x, a, h) - x, 1.2)

    for name, order in (("a", (1, 0)), ("h", (0, 1))):
        with mpmath.workdps(20):  # the steps of the differences follow the precision
            exact = mpmath.diff(solution, (mpmath.mpf("0.8"), mpmath.mpf("0.7")), order)
        assert found["q", name] == pytest.approx(float(exact), rel=1e-9)


def test_kinks_that_move_with_unknowns_are_honest():
    value = 1 + a / 10 * mean(sp.Abs(h * k + q * s), k, s)
    found, errors = solved(value, rtol=1e-4)
    exact = root(lambda x, a, h: 1 + a / 10 * mpmath.sqrt(2 / mpmath.pi * (h**2 + x**2)))
    assert abs(found["q"] - float(exact)) <= errors["q"] < 1e-3


def test_refinement_ends_at_a_bounded_number_of_nodes():
    """A bell whose width moves with the unknown, of 1/60: said to be unresolved, not hidden."""
    value = 1 + a * mean(sp.exp(-((h * k + 60 * q * s - 1) ** 2)), k, s)
    found = giantstep.lower(system(value)).solve(**POINT)
    assert found.nodes < 2**19
    exact = root(
        lambda x, a, h: 1 + a * mpmath.exp(-1 / (1 + 2 * (h**2 + 3600 * x**2)))
        / mpmath.sqrt(1 + 2 * (h**2 + 3600 * x**2))
    )  # fmt: skip
    assert abs(found.q - float(exact)) <= found.errors["q"]


def test_a_first_grid_without_room_is_refused():
    kernel = giantstep.lower(system(1 + a * mean(k * sp.erf(k / h + s) * sp.exp(-q * s**2), k, s)))
    with pytest.raises(ConvergenceError, match=r"averages over 2 Gaussian variables.*nodes"):
        kernel.solve(a=0.8, h=1e-7)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (mean(mean(1 / (1 + mean(sp.tanh(q * s + w + k), s) ** 2), w), k), "q.*three levels"),
        (mean(mean(sp.tanh(q * s + k), s) ** 4, k), "more than 4 variables"),
        (mean(sp.Heaviside(q * s - k) * s, k, s), "jumps where .* moves with the unknown q"),
        (
            mean(DataAverage(1 / (w + s**2 + q), w, "set"), k, s) * 0
            + mean(k * DataAverage(1 / (w**2 + (s + k) ** 2 + q), w, "set"), k, s),
            "over data at once",
        ),
    ],
)
def test_what_cannot_be_flattened_is_refused(value, message):
    with pytest.raises(EmissionError, match=message):
        hoist(system(value + 1))


# Powers and products of inner expectations, which closed forms do one after the other.
SQUARE = (
    1 + a * mean(mean(sp.erf(h * k + q * s), s) ** 2, k),
    lambda x, a, h: 1 + a * (4 / mpmath.pi * mpmath.atan(
        mpmath.sqrt(1 + 4 * h**2 / (1 + 2 * x**2))) - 1),
)  # fmt: skip
DISTANCE = (
    1 + a * mean((sp.cos(k) - mean(sp.cos(k + q * s), s)) ** 2, k),
    lambda x, a, h: 1 + a * (1 - mpmath.exp(-(x**2) / 2)) ** 2 * (1 + mpmath.exp(-2)) / 2,
)
PRODUCT = (
    1 + a * mean(mean(s * mean(sp.sin(q * w + s + k), w), s) * mean(sp.cos(q * u + k), u), k),
    lambda x, a, h: 1 + a * mpmath.exp(-0.5 - x**2) * (1 + mpmath.exp(-2)) / 2,
)


@pytest.mark.parametrize(
    ("value", "closed"),
    [
        pytest.param(*SQUARE, id="square"),
        pytest.param(*DISTANCE, id="distance", marks=pytest.mark.slow),
        pytest.param(*PRODUCT, id="product", marks=pytest.mark.slow),
    ],
)
def test_powers_and_products_of_inner_expectations(value, closed):
    found, errors = solved(value)
    assert abs(found["q"] - float(root(closed))) <= max(errors["q"], 1e-14) < 1e-6


def test_joint_expectations_whose_law_holds_the_unknown():
    # E sin(x) sin(y) = exp(-(1 + v)/2) sinh(c) for variances 1, v and covariance c.
    x, y = sp.symbols("x y", real=True)
    law = GaussianVector((x, y), covariance=[[1, h / q], [h / q, 1 + q]])
    value = 1 + a * JointExpectation(sp.sin(x) * sp.sin(y), law)
    found, errors = solved(value)
    exact = root(lambda v, a, h: 1 + a * mpmath.exp(-1 - v / 2) * mpmath.sinh(h / v))
    assert abs(found["q"] - float(exact)) <= max(errors["q"], 1e-14) < 1e-8


def test_joint_expectations_of_independent_variables():
    x, y = sp.symbols("x y", real=True)
    law = GaussianVector((x, y), covariance=[[1, 0], [0, h]])
    value = 1 + a * JointExpectation(1 / (2 + sp.tanh(q * x + y)) * sp.cos(y), law)
    found, _ = solved(value)

    def right(v):
        def f(t, s):
            return math.cos(t) / (2 + math.tanh(v * s + t)) * math.exp(-(s**2 + t**2 / 0.7) / 2)

        total = dblquad(f, -9, 9, -8, 8, epsabs=1e-12)[0]
        return 1 + 0.8 * total / (2 * math.pi * math.sqrt(0.7)) - v

    assert abs(found["q"] - brentq(right, 1, 1.5, xtol=1e-11)) < 1e-9


@pytest.mark.slow
def test_digits_meet_closed_forms():
    value, closed = BELL
    found = giantstep.lower(system(value)).solve(**POINT, digits=20, progress=False)
    assert abs(found.q - root(closed)) < mpmath.mpf(10) ** -20


def test_poles_that_go_away_where_the_node_vanishes_are_found():
    u, inner = sp.symbols("u inner", real=True)
    argument = u**2 * h + u * sp.sqrt(h) * inner

    def product(*integrands):
        return ProductMeasure({sp.Function("s")(u): inner}, {}, ((),), ((),), (), (),
                              integrands=integrands)  # fmt: skip

    smooth = u**2 * sp.tanh(argument), 3 * u**4 / sp.cosh(argument) ** 2
    found, power = fading_poles(product(*smooth), u)
    assert power == 2
    assert [d.simplify() for d in found[inner]] == [sp.pi / (2 * sp.sqrt(h))]
    # Poles that stay, kinks, growth: nothing is known.
    for other in (sp.tanh(inner), sp.Abs(inner - u), sp.exp(inner**2 / 4)):
        assert fading_poles(product(*smooth, u**2 * other), u)[0] == {}
    assert even_nodes(product(inner**2 * u, sp.Abs(inner) + u)) == [inner]
    assert even_nodes(product(inner**2 * u, sp.tanh(inner + u))) == []


@pytest.mark.slow
def test_digits_where_averages_are_smooth_but_not_analytic():
    """E tanh = E tanh² of a + √a z; averaged over a = q k² too, singular like exp(-1/k²) at 0."""
    argument = k**2 * q + k * sp.sqrt(q) * s
    one, other = (
        giantstep.lower(system(h / 2 + a * mean(k**2 * sp.tanh(argument) ** n, k, s)))
        .solve(**POINT, digits=20, progress=False)
        for n in (1, 2)
    )  # fmt: skip
    assert abs(one.q - other.q) < mpmath.mpf(10) ** -20
    assert max(one.errors["q"], other.errors["q"]) < mpmath.mpf(10) ** -20


def test_few_digits_of_a_jump():
    found = giantstep.lower(system(JUMP[0])).solve(**POINT, digits=4, progress=False)
    assert abs(found.q - root(JUMP[1])) < mpmath.mpf(10) ** -4


def test_digits_without_room_are_refused():
    kernel = giantstep.lower(system(PROBIT[0]))
    with pytest.raises(ConvergenceError, match="ask for fewer digits"):
        kernel.solve(**POINT, digits=300, progress=False)
