import pytest
import sympy as sp

from giantstep.errors import UnsupportedExpressionError
from giantstep.symbolic.expressions.activations import CATALOGUE, activation
from giantstep.symbolic.gaussian.convolutions import ARGUMENT, gaussian_tables
from giantstep.symbolic.gaussian.expectation import GaussianExpectation, expect
from giantstep.symbolic.hermite.equivalence import (
    mean_definition,
    norm_response_definition,
    residual_variance_definition,
    slope_definition,
)

k, r, g, z, s = sp.symbols("kappa r gamma z s", real=True)
c, rho = sp.symbols("c rho", positive=True)
R = sp.Rational
DIGITS = 15
NUMBERS = {r: R(9, 10), c: R(5, 4), g: R(3, 5), rho: R(4, 5), k: R(-7, 10)}
USERS = (
    "tanh(2*z)+0.1*z", "z*abs(z)", "exp(-z**2/4)*z", "relu(z-1)+relu(-z)", "sin(3*z)+cos(z)",
    "log(1+z**2)",
)  # fmt: skip


def table(name, **assumptions):
    return sp.Function(name, real=True, **assumptions)(k)


MU0, MU1, MU2, CHI, T0, T1, T2 = map(table, ("mu0", "mu1", "mu2", "chi", "T0", "T1", "T2"))


def definitions(student, teacher, *, centre=r * k, response=False):
    student, teacher = activation(student), activation(teacher)
    spread = sp.sqrt(c)
    label = teacher(g * k + rho * s)
    found = {
        MU0: mean_definition(student, centre, spread),
        MU1: slope_definition(student, centre, spread),
        MU2: residual_variance_definition(student, centre, spread, MU0, MU1),
        T0: GaussianExpectation(label, s),
        T1: GaussianExpectation(s * label, s),
        T2: GaussianExpectation(label**2, s),
    }
    if response and not student.jumps:
        found[CHI] = norm_response_definition(student, centre, spread)
    return found


def numbers_of_definitions(found):
    """The tables by direct quadrature of their definitions."""
    values = {}
    for function, definition in found.items():
        values[function] = definition.xreplace(values).xreplace(NUMBERS).evalf(DIGITS)
    return values


def numbers_of_tables(tables):
    """The same by quadrature of each convolution, joined by the expressions."""
    values = dict(NUMBERS)
    for convolution in tables.convolutions:
        argument = (convolution.slope * k + convolution.spread * z).xreplace(NUMBERS)
        for value, (i, j) in zip(convolution.values, convolution.moments, strict=True):
            f = convolution.functions[i].xreplace({ARGUMENT: argument}) * z**j
            values[value] = GaussianExpectation(f, z).evalf(DIGITS)
    for symbol, f in tables.directs:
        values[symbol] = f.xreplace(NUMBERS).evalf(DIGITS)
    return [e.xreplace(values).evalf(DIGITS) for e in tables.expressions]


def require_agreement(found):
    expected = numbers_of_definitions(found)
    tables = gaussian_tables(found, k)
    assert tables.functions == tuple(expected)
    pairs = zip(numbers_of_tables(tables), expected.values(), strict=True)
    for value, right in pairs:
        assert abs(value - right) < 1e-11 * max(1, abs(right))
    return tables


FAST = ("relu", "He3")


@pytest.mark.parametrize(
    "name",
    # Polynomials are all of one kind.
    [
        n if n in FAST else pytest.param(n, marks=pytest.mark.slow)
        for n in CATALOGUE
        if n in (*FAST, "He2") or not n.startswith("He")
    ],
)
def test_every_activation_of_the_catalogue_as_student_and_teacher(name):
    tables = require_agreement(definitions(name, name, response=True))
    assert tables.nonnegative[2]
    assert all(len(x.functions) <= 2 and len(x.moments) <= 4 for x in tables.convolutions)
    if name.startswith("He") or name == "identity":
        assert not tables.convolutions


@pytest.mark.parametrize(
    "text",
    [t if t == "z*abs(z)" else pytest.param(t, marks=pytest.mark.slow) for t in USERS],
)
def test_expressions_of_users(text):
    require_agreement(definitions(text, text))


def test_without_a_spike_the_tables_are_constants():
    found = definitions("swish", "He2", centre=sp.S.Zero)
    tables = require_agreement(found)
    assert tables.convolutions[0].slope == 0


def test_what_is_left_after_the_affine_fit_is_short():
    """E σ² − (E σ)² − (E zσ)²: by Stein's lemma, and tables replaced by their meaning."""
    tables = gaussian_tables(definitions("softplus", "relu"), k)
    mean, slope, square = tables.convolutions[0].values
    assert tables.convolutions[0].moments == ((0, 0), (0, 1), (1, 0))
    assert sp.expand(tables.expressions[2] - (square - mean**2 - slope**2)) == 0
    assert tables.expressions[1] == slope / sp.sqrt(c)


def test_stein_is_not_applied_to_what_jumps():
    f = sp.Heaviside(k + z, R(1, 2)) + z + k
    found = {MU0: GaussianExpectation(f, z), MU1: GaussianExpectation(f.diff(z).subs({
        sp.DiracDelta(k + z): 0}), z)}  # fmt: skip
    assert gaussian_tables(found, k).expressions[1] == 1


def test_closed_forms_agree():
    """erf, of which everything is known in closed form."""
    found = definitions("erf", "sin")
    values = numbers_of_tables(gaussian_tables(found, k))
    mean = sp.erf(k * r / sp.sqrt(1 + 2 * c))
    slope = expect(activation("erf").derivative.xreplace({z: r * k + sp.sqrt(c) * z}), z)
    label = sp.exp(-(rho**2) / 2) * sp.sin(g * k)
    for value, closed in zip(values, (mean, slope, None, label), strict=False):
        if closed is not None:
            assert abs(value - closed.xreplace(NUMBERS).evalf(DIGITS)) < 1e-13


def test_a_function_of_the_node_itself_stays_one():
    tables = gaussian_tables({T0: sp.Abs(g * k), T2: g**2 * k**2 + c}, k)
    ((symbol, f),) = tables.directs
    assert f == sp.Abs(g * k) and tables.expressions == (symbol, g**2 * k**2 + c)
    assert tables.nonnegative == (True, True)


def test_declared_signs_are_not_believed():
    f = sp.Function("f", nonnegative=True)(k)
    h = sp.Function("h", real=True)(k)
    assert gaussian_tables({f: sp.tanh(k), h: f + 1}, k).nonnegative == (False, False)


def test_numbers_in_front_share_one_convolution():
    found = {
        T0: GaussianExpectation(sp.exp(k - 2 * z), z),
        T2: GaussianExpectation(sp.exp(2 * k - 4 * z), z),
    }
    (convolution,) = gaussian_tables(found, k).convolutions
    assert convolution.functions == (sp.exp(ARGUMENT), sp.exp(2 * ARGUMENT))


class _mystery(sp.Function):
    pass


@pytest.mark.parametrize(
    ("definition", "named"),
    [
        (GaussianExpectation(_mystery(k + z), z), "_mystery"),
        (GaussianExpectation(sp.Piecewise((z, z > k), (0, True)), z), "Piecewise"),
        (GaussianExpectation(sp.tanh(z) * sp.tanh(k + z), z), "one affine form"),
        (GaussianExpectation(sp.tanh(k * z), z), "affine form"),
        (GaussianExpectation(sp.Max(z, k, 2 * z), z), "one affine form"),
        (GaussianExpectation(sp.tanh(z + GaussianExpectation(sp.tanh(z + s), s)), z), "nested"),
        (sp.gamma(k), "gamma"),
        (table("other") + 1, "other"),
        (sp.Abs(GaussianExpectation(sp.tanh(k + z), z)), "Abs"),
    ],
)
def test_refused_by_name(definition, named):
    with pytest.raises(UnsupportedExpressionError, match=named) as error:
        gaussian_tables({T0: definition}, k)
    assert "T0(kappa) is refused for certification" in str(error.value)


def test_a_jump_is_not_lost_by_partial_integration():
    # The derivative of u·step(u − 1) is the step and a point mass, which is no function.
    step = sp.Heaviside(r * k + sp.sqrt(c) * z - 1, 1)
    first, second = table("first"), table("second")
    found = {
        first: GaussianExpectation((r * k + sp.sqrt(c) * z) * step, z),
        second: GaussianExpectation(step, z),
    }
    require_agreement(found)


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize(("rate", "curvature"), [("1", "0"), ("1/4", "1/10"), ("0", "1/7")])
def test_bounds_of_tables_far_out_hold_closed_forms(power, rate, curvature):
    # E exp(a u + q u²) z^j, u = A'κ + Bz: a Gaussian integral with mean and variance of its own.
    flint = pytest.importorskip("flint")
    a, q, slope, spread = R(rate), R(curvature), R(3, 2), R(8, 5)
    u = slope * k + spread * z
    found = {MU0: GaussianExpectation(sp.exp(a * u + q * u**2) * z**power, z)}
    v = 1 - 2 * q * spread**2
    for node in (-20, -2, 1, 3, 30):
        mean = (a * spread + 2 * q * slope * node * spread) / v
        size = a * slope * node + q * slope**2 * node**2 + v * mean**2 / 2
        moment = {0: sp.S.One, 1: mean, 2: mean**2 + 1 / v}[power]
        exact = sp.exp(size) / sp.sqrt(v) * abs(moment)
        with flint.ctx.workprec(100):
            (growth,) = gaussian_tables(found, k).balls({}).growth
            bound = growth.size.at(flint.arb(abs(node)))
            assert bound >= flint.arb(str(sp.N(exact, 20)))
