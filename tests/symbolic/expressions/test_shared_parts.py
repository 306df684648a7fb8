import pytest
import sympy as sp

from giantstep.symbolic.expressions.averages import DataAverage
from giantstep.symbolic.expressions.bivariate_normal import BivariateNormalCDF
from giantstep.symbolic.expressions.functions import log_cosh, normal_cdf, relu, sigmoid, softplus
from giantstep.symbolic.expressions.shared_parts import first_derivative, free_symbols, replaced
from giantstep.symbolic.gaussian.expectation import (
    GaussianExpectation,
    GaussianVector,
    JointExpectation,
)
from giantstep.symbolic.losses.proximal import MoreauEnvelope, Proximal

x, y, z = sp.symbols("x y z", real=True)
a = sp.Symbol("a", positive=True)
f = sp.Function("f", real=True)
LAW = GaussianVector([y, z], [x, 0], [[1, x / 2], [x / 2, 1]])

EXPRESSIONS = [
    *(sp.Integer(3), y, x, x**a, a**x, x**x, (x * y + 1) ** -2 * sp.sqrt(a + x**2)),
    *(x * sp.exp(-(x**2) / a) * sp.erf(x * y) / (1 + sp.exp(-(x**2) / a)), sp.tanh(x * y) ** 2),
    *(sp.Abs(x * y), sp.sign(x + y), sp.Heaviside(x - y), sp.DiracDelta(x - 2 * y), sp.Max(x, y)),
    *(sp.Piecewise((x**2, x > y), (x * y, True)), relu(x * y), softplus(x) * sigmoid(x * y)),
    *(log_cosh(x + y) * normal_cdf(x / a), BivariateNormalCDF(x, y, sp.Rational(1, 3))),
    *(f(x), y * f(x) + f(y), f(x).diff(x) * x, sp.Integral(sp.exp(-x * y**2), (y, 0, a))),
    *(GaussianExpectation(sp.tanh(x * z + y) ** 2, z), DataAverage(sp.log(1 + a * x), a)),
    JointExpectation(sp.tanh(y) * sp.exp(-x * z**2), LAW),
    # Of some arguments SymPy knows no derivative, and leaves it undone.
    *(sp.zeta(x * y + 2), sp.besselj(x, y), sp.uppergamma(x * y, a), sp.LambertW(a) * sp.gamma(x)),
    x * MoreauEnvelope(softplus(-z), z, x * y, a) + Proximal(softplus(-z), z, x * y, a) ** 2,
]


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_derivatives_are_those_of_sympy(expr):
    assert free_symbols(expr) == expr.free_symbols
    for symbol in (x, y, a):
        assert first_derivative(expr, symbol) == expr.diff(symbol)


RULES = [
    *({}, {x: y}, {x: a * y, a: x**2}, {z: x}, {x: sp.S.Zero}, {f(x): x, sp.tanh(x * y): y}),
    {x * y: a, sp.exp(-(x**2) / a): y},
]


@pytest.mark.parametrize("expr", [e for e in EXPRESSIONS if not e.has(sp.Derivative)], ids=str)
def test_parts_are_replaced_as_by_sympy(expr):
    for rule in RULES:
        # Texts, as bound symbols that would capture a new one are fresh each time.
        assert str(replaced(expr, rule)) == str(expr.xreplace(rule))


def test_shared_parts_are_differentiated_once():
    # As a tree the expression has 4**6 leaves.
    expr = x
    for _ in range(6):
        expr = sp.tanh(expr) + expr * sp.cos(expr) + sp.exp(expr)
    first_derivative.cache_clear()
    first_derivative(expr, x)
    assert first_derivative.cache_info().misses < 50


def test_shared_parts_are_replaced_once():
    built = []

    class Noted(sp.Function):
        @classmethod
        def eval(cls, argument):
            built.append(argument)

    expr = x
    for _ in range(12):
        expr = Noted(expr) + Noted(expr) ** 2
    built.clear()
    replaced(expr, {x: y})
    assert len(built) == 12
