import mpmath
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import AssumptionError, CertificationError, UnsupportedExpressionError
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.gaussian.convolutions import gaussian_tables
from giantstep.symbolic.gaussian.expectation import GaussianExpectation

flint = pytest.importorskip("flint")
arb, acb = flint.arb, flint.acb

k, r, z = sp.symbols("kappa r z", real=True)
b = sp.Symbol("b", positive=True)
f, h = (sp.Function(name, real=True)(k) for name in "fh")
R = sp.Rational


def balls(definitions, **values):
    values = {"r": arb("0.9"), "b": arb("1.1"), **values}
    return gaussian_tables(definitions, k).balls({r: values["r"], b: values["b"]})


def average(function, power=0):
    return GaussianExpectation(function(r * k + b * z) * z**power, z)


FUNCTIONS = [
    sp.tanh, relu, sp.sign, sp.exp, lambda u: sp.exp(-3 * u) * u, lambda u: sp.exp(u**2 / 8),
    lambda u: u**3 * sp.exp(u**2 / 9 - u), lambda u: relu(u - 1) ** 2, lambda u: sp.log(1 + u**2),
    lambda u: sp.exp(-(u**2)), lambda u: sp.Abs(u) * sp.cos(u), lambda u: sp.sinh(u) * sp.atan(u),
    lambda u: 1 / (1 + u**2), lambda u: 50 * sp.sech(u - 4),
]  # fmt: skip


def numeric(function, power, slope, spread, point):
    """E_z[F(slope*point + spread*z) z^power] in floats."""
    u = sp.Symbol("u", real=True)
    modules = [{"relu": lambda x: max(x, mpmath.mpf(0))}, "mpmath"]
    g = sp.lambdify(u, function(u), modules)
    kinks = sorted({-30.0, 0.0, 30.0, *(min(30, max(-30, (a - slope * point) / spread))
                                        for a in (0.0, 1.0))})  # fmt: skip
    return mpmath.quad(lambda x: g(slope * point + spread * x) * x**power * mpmath.npdf(x), kinks)


@pytest.mark.parametrize("index", range(len(FUNCTIONS)))
def test_growth_bounds_the_convolution_everywhere_beyond_one(index):
    function, power = FUNCTIONS[index], index % 3
    growth = balls({f: average(function, power)}).growth[0]
    assert growth.size.start >= 1
    for point in (1, -1.5, -6):
        value = abs(numeric(function, power, 0.9, 1.1, point))
        assert value <= growth.size.at(arb(abs(point)).max(growth.size.start)).upper() * (1 + 1e-9)


def test_members_are_the_function_on_both_sides_of_its_kinks():
    found = balls({f: average(lambda u: relu(u - 1) + sp.Abs(u))})
    (convolution,) = found.convolutions
    assert convolution.slope.overlaps(arb("0.9")) and convolution.spread.overlaps(arb("1.1"))
    assert convolution.offset == 0 and convolution.moments == ((0, 0),)
    branches = convolution.functions[0].branches
    assert [(x.left, x.right) for x in branches] == [(None, 0), (0, 1), (1, None)]
    values = [x.function(acb(point), True).real for x, point in zip(branches, (-2, 0.5, 3),
                                                                    strict=True)]  # fmt: skip
    assert values == [2, 0.5, 5]
    left, right = convolution.functions[0].tails
    assert left.start >= 1 and left.at(arb(2)) >= 2 and right.at(arb(3)) >= 5


def test_combination_of_a_mean_of_squares_real_and_complex():
    mean = average(sp.tanh)
    square = GaussianExpectation((sp.tanh(r * k + b * z) - f) ** 2, z)
    found = balls({f: mean, h: square})
    assert found.growth[0].least is None and found.growth[1].least == 0
    node, first, second = found.combine([arb(2), arb("0.5"), arb("0.75")])
    assert node == 2 and first == 0.5 and second == 0.5
    node, first, second = found.combine([acb(2, 1), acb(0, 1), acb(1, 1)])
    assert second == acb(2, 1) and isinstance(second, acb)


def test_a_root_of_averages_is_not_continued_over_its_cut():
    found = balls({f: sp.sqrt(average(lambda u: sp.tanh(u) ** 2))})
    assert found.combine([arb(1), arb(4)])[1] == 2
    cut = acb(-1, 0) + acb(0, arb(0, 0.5))
    assert not found.combine([acb(1), cut])[1].is_finite()
    assert found.combine([acb(1), acb(0, 1)])[1].is_finite()


def test_directs_cut_the_line():
    found = balls({f: relu(r * k - b)})
    (place,) = found.breaks
    assert abs(place - arb("1.1") / arb("0.9")) < 1e-12
    assert found.growth[0].size.start >= place
    assert found.growth[0].size.at(arb(3)) >= arb("1.6")
    left, right = found.directs[0].function.branches
    assert left.function(acb(0), True) == 0
    assert abs(right.function(acb(3), True).real - arb("1.6")) < 1e-12


@settings(max_examples=10, deadline=None)
@given(
    st.fractions(min_value=-2, max_value=2, max_denominator=16),
    st.fractions(min_value=R(1, 8), max_value=R(3, 2), max_denominator=16),
    st.integers(0, 4),
    st.sampled_from([1, 2, 5]),
)
def test_growth_of_squared_exponentials_is_sharp_enough_and_above(slope, spread, power, point):
    """E exp(q u²) is known: exp(q A²/v)/sqrt(v); and E |z|^j times it at A = 0."""
    found = balls(
        {f: average(lambda u: sp.exp(u**2 / 10), power)},
        r=arb(flint.fmpq(slope.numerator, slope.denominator)),
        b=arb(flint.fmpq(spread.numerator, spread.denominator)),
    )
    v = 1 - float(spread) ** 2 / 5
    shift = float(slope) * point
    pull, narrow = float(spread) / (5 * v) * shift, v**-0.5
    weight = narrow * mpmath.exp(shift**2 / (10 * v))
    moment = mpmath.quad(
        lambda y: abs(pull + narrow * y) ** power * mpmath.npdf(y), [-12, -pull / narrow, 12]
    )
    bound = float(found.growth[0].size.at(arb(point)).upper())
    assert weight * moment <= bound * (1 + 1e-12)
    if power == 0:
        assert bound <= weight * 1.12  # the sup of F up to 1 is exp(1/10)


def test_a_wide_parameter_is_a_wide_convolution_but_not_none():
    found = balls({f: average(sp.tanh)}, b=arb("1.1", "0.3"))
    assert found.convolutions[0].spread.contains(arb("1.3"))
    with pytest.raises(CertificationError, match="parameter b is not proven to be positive"):
        balls({f: average(sp.tanh)}, b=arb("0.1", "0.3"))
    with pytest.raises(CertificationError, match=r"width r of the Gaussian .* tanh"):
        balls({f: GaussianExpectation(sp.tanh(b * k + r * z), z)}, r=arb(0))


def test_no_expectation_no_bound():
    with pytest.raises(AssumptionError, match="not known to exist"):
        balls({f: average(lambda u: sp.exp(u**2 / 2))})
    with pytest.raises(CertificationError, match="not bounded near"):
        balls({f: average(lambda u: sp.log(sp.Abs(u) + u**2))})
    with pytest.raises(UnsupportedExpressionError, match="without a value: r"):
        gaussian_tables({f: average(sp.tanh)}, k).balls({b: arb(1)})


@pytest.mark.parametrize(("place", "named"), [(-(10**9), "known from"), (10**30, "more digits")])
def test_far_kinks_are_refused_not_searched(place, named):
    with pytest.raises(CertificationError, match=named):
        balls({f: average(lambda u: sp.Abs(u - place))})
