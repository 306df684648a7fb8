"""Targets through their Hermite tensors, against direct integration."""

import itertools
import math

import numpy as np
import pytest
import sympy as sp
from numpy.polynomial.hermite_e import hermegauss, hermeval
from scipy.special import expit

from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.activations import activation
from giantstep.symbolic.targets import target

X1, X2 = sp.symbols("x1:3", real=True)


def direct(function, variables, alpha, nodes=160):
    """E[f He_α]/α! by a product rule; for smooth functions."""
    points, weights = hermegauss(nodes)
    weights = weights / weights.sum()
    numpy_functions = {"sigmoid": expit, "softplus": lambda x: np.logaddexp(0, x)}
    value = sp.lambdify(variables, function, [numpy_functions, "scipy", "numpy"])
    grids = np.meshgrid(*[points] * len(variables), indexing="ij")
    mass = np.ones_like(grids[0])
    for grid, k, axis in zip(grids, alpha, itertools.count()):
        shape = [1] * len(variables)
        shape[axis] = -1
        mass = mass * weights.reshape(shape) * hermeval(grid, [0] * k + [1])
    factorials = math.prod(map(math.factorial, alpha))
    return float((mass * value(*grids)).sum()) / factorials


SMOOTH = [
    "erf(x1) + x2*tanh(x1)",
    "x1**2*x2*sin(x1 - x2) - 2",
    "tanh((x1 + x2)/2)*cos(x1 - x2 + 1)*x2",
    "exp(x1/2 - x2**2)*(1 + x1)",
    "softplus(x1 + 2*x2/3) + sigmoid(x2)*x1**3",
    "erf(x1/2)*erf(2*x1/3)*x2**2",
    "1/(6 + cos(x1))*x2 + x1*x2",
]


@pytest.mark.parametrize("text", SMOOTH)
def test_coefficients_against_a_product_rule(text):
    f = target(text)
    for alpha in itertools.product(range(4), repeat=2):
        expected = direct(f.expr, f.variables, alpha)
        found = float(sp.N(f.he_coefficients(sum(alpha)).get(alpha, 0), 20))
        assert abs(found - expected) < 1e-9


@pytest.mark.parametrize("text", SMOOTH[:5])
def test_norms_against_a_product_rule(text):
    f = target(text)
    assert abs(float(sp.N(f.norm_squared, 10)) - direct(f.expr**2, f.variables, (0, 0))) < 1e-9


@pytest.mark.parametrize(
    ("text", "mean", "first", "norm"),
    [  # theory/leaps_and_staircases.md §9
        ("relu(x1) + abs(x2)", 3 / math.sqrt(2 * math.pi), (0.5, 0), 1.5 + 2 / math.pi),
        (
            "sign(x1) + abs(x1)*x2",
            0,
            (math.sqrt(2 / math.pi), math.sqrt(2 / math.pi)),
            2,
        ),
        ("x1 + sin(x1)*x2 + cos(x1)*x3", 0, (1, 0, math.exp(-0.5)), 2),
        ("exp(x1)*x2", 0, (0, math.exp(0.5)), math.exp(2)),
        ("sign(x1*x2*x3)", 0, (0, 0, 0), 1),
        (
            "relu(x1)*relu(x2)",
            1 / (2 * math.pi),
            (1 / (2 * math.sqrt(2 * math.pi)),) * 2,
            0.25,
        ),
        ("max(x1, x2)", 1 / math.sqrt(math.pi), (0.5, 0.5), 1),
        ("x1*relu(x2)", 0, (1 / math.sqrt(2 * math.pi), 0), 0.5),
        (
            "gelu(x1) - x1/2",
            1 / (2 * math.sqrt(math.pi)),
            (0,),
            1 / 12 + 1 / (2 * math.pi * 3**0.5),
        ),
        (
            "erf(x1) + 2*erf(x2) + He(2, x1)*x3",
            0,
            tuple(2 / math.sqrt(3 * math.pi) * c for c in (1, 2, 0)),
            2 + 10 / math.pi * math.asin(2 / 3),
        ),
    ],
)
def test_published_targets(text, mean, first, norm):
    f = target(text)
    assert float(sp.N(f.mean)) == pytest.approx(mean, abs=1e-14)
    tensor = f.hermite_tensor(1)
    assert [float(sp.N(tensor[i])) for i in range(f.dimension)] == pytest.approx(first, abs=1e-14)
    assert float(sp.N(f.norm_squared, 20)) == pytest.approx(norm, abs=1e-14)


def test_tensors_of_a_polynomial():
    f = target("x1 + He(2, x1)*x2/2 + x1*x2 - 3")
    assert f.mean == -3 and f.degree == 3
    assert f.hermite_tensor(0)[()] == -3
    assert f.hermite_tensor(2).tolist() == [[0, 1], [1, 0]]
    third = f.hermite_tensor(3)
    assert {third[i] for i in ((0, 0, 1), (0, 1, 0), (1, 0, 0))} == {1}
    assert f.norm_squared == 9 + 1 + sp.Rational(2, 4) + 1
    assert f.he_coefficients(4) == {}


def test_contractions_are_those_of_the_tensor():
    f = target("x1*x2*x3 + x1**3 - 2*x2**2*x3 + x3")
    w = sp.symbols("w1:4", real=True)
    tensor = f.hermite_tensor(3)
    entries = range(3)
    full = sum(
        tensor[i, j, k] * w[i] * w[j] * w[k] for i in entries for j in entries for k in entries
    )
    assert sp.expand(f.contract(3, w) - full) == 0
    left = [sum(tensor[i, j, k] * w[i] * w[j] for i in entries for j in entries) for k in entries]
    assert [sp.expand(c) for c in f.contract(3, w, leave=1)] == [sp.expand(c) for c in left]
    assert f.contract(0, w) == f.mean == 0


def test_ridge_functions_have_rank_one_tensors():
    # C_k = μ_k w ⊗ … ⊗ w for unit w = (3/5, 4/5).
    f = target("relu((3*x1 + 4*x2)/5)")
    second = f.hermite_tensor(2)
    mu2 = 1 / sp.sqrt(2 * sp.pi)
    expected = sp.Matrix([3, 4]) * sp.Matrix([[3, 4]]) / 25 * mu2
    assert (second.tomatrix() - expected).applyfunc(sp.expand) == sp.zeros(2)


def test_symbols_of_any_assumption_become_real_coordinates():
    u, v = sp.symbols("u v")
    f = target(u * sp.tanh(v), [v, u])
    assert [x.name for x in f.variables] == ["v", "u"]
    assert all(x.is_real for x in f.variables)
    assert target(sp.Symbol("x10") + sp.Symbol("x9")).variables[0].name == "x9"
    assert target(sp.Max(u, v)).mean == 1 / sp.sqrt(sp.pi)


def test_an_activation_is_a_single_index_target():
    f = target(activation("erf"))
    assert f.variables == (X1,)
    assert sp.expand(f.he_coefficients(1)[(1,)] - 2 / sp.sqrt(3 * sp.pi)) == 0
    assert target(f) is f


def test_coordinates_that_do_not_occur_count():
    assert target("x2").dimension == 2
    assert list(target("x2").hermite_tensor(1)) == [0, 1]


def test_text_in_variables_of_the_user():
    u, v = sp.symbols("u v")
    f = target("v*tanh(u)", [v, u])
    assert [x.name for x in f.variables] == ["v", "u"]
    assert f.he_coefficients(2).keys() == {(1, 1)}


def test_gradients_of_the_symbol():
    f = target("x1**2*x2 + 3*x1 - x2*abs(x1)")
    for k in (1, 2, 3):
        part = f.symbol_part(k)
        expected = [sp.expand(part.diff(x)) for x in f.variables]
        assert [sp.expand(entry) for entry in f.symbol_gradient(k)] == expected


def test_many_terms_are_quick_and_too_many_are_refused():
    # 8008 monomials; with SymPy's Poly and diff this took minutes.
    big = target("(x1+x2+x3+x4+x5+x6+x7+x8+x9+x10)**6")
    # Σ x_i is sqrt(10) times a standard normal variable: E = 15 · 10³.
    assert big.mean == 15_000
    # Σ x_i² over 64 coordinates, squared: E = 64² + 2 · 64, by the χ² distribution.
    assert target("+".join(f"x{i}**2" for i in range(1, 65))).norm_squared == 64**2 + 128
    assert target(sum(sp.symbols("x1:65")) ** 2).degree == 2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: target("(x1 + x2 + x3 + x4 + x5 + x6)**20"),
            UnsupportedExpressionError,
            "degree 20 and up to 230230",
        ),
        (lambda: target(X1**2_000_000_000 + X2), UnsupportedExpressionError, "degree 2000000000"),
        (lambda: target("He(64, x1)*x2"), UnsupportedExpressionError, "degree 65"),
        (lambda: target(sp.oo * X1), ExpressionError, "real and finite"),
        (lambda: target(X1 + sp.I * sp.erf(X2)), ExpressionError, "real and finite"),
        (lambda: target(X1 + sp.asin(2) * sp.erf(X2)), ExpressionError, "has to be real"),
        (lambda: target(X1, [X1, X1]), ParameterError, "different names"),
        (lambda: target(X1, ["x1"]), ParameterError, "SymPy symbols"),
        (lambda: target(X1, X1), ParameterError, "sequence of symbols"),
        # SymPy has written abs(x) as x already.
        (lambda: target(sp.Abs(sp.Symbol("x", positive=True))), ParameterError, "real=True"),
        (lambda: target("x1").contract(1, ["x1"]), ParameterError, "real numbers"),
        (lambda: target("x1").symbol_gradient(0), ParameterError, "at least 1"),
        (lambda: target("x1 +"), ExpressionError, "target"),
        (lambda: target("3"), ExpressionError, "x1"),
        (lambda: target(3.5), ParameterError, "has to be a text"),
        (lambda: target("1/x1"), AssumptionError, "target"),
        (lambda: target("exp(x1**2)*x2"), AssumptionError, "E.f"),
        (lambda: target("tanh(x1*x2)"), UnsupportedExpressionError, "one linear form"),
        (
            lambda: target(sp.Symbol("x1") * sp.Symbol("x1", real=True)),
            ExpressionError,
            "same name, different assumptions",
        ),
        (
            lambda: target(X1 * X2, [X1]),
            ExpressionError,
            "holds x2, which `variables` does not",
        ),
        (lambda: target("x1").he_coefficients(-1), ParameterError, "k must be from 0"),
        (lambda: target("x1").he_coefficients(True), ParameterError, "k must be an integer"),
        (lambda: target("erf(x1)").expansion, AssumptionError, "not a polynomial"),
        (lambda: target("x1 + x9").hermite_tensor(8), ParameterError, "entries"),
        (lambda: target("x1").contract(2, [X1], leave=3), ParameterError, "leave must be 0 or 1"),
        (lambda: target("x1").symbol_part(1, [1, 2]), ParameterError, "1 coordinates"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
