"""Targets through their Hermite tensors, against direct integration."""

import itertools
import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from numpy.polynomial.hermite_e import hermegauss, hermeval
from scipy.special import expit

import giantstep as gs
from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.expressions.activations import activation, z as Z
from giantstep.symbolic.expressions.exact_numbers import rationalized
from giantstep.symbolic.hermite.coefficients import hermite_coefficient
from giantstep.symbolic.hermite.expansion import HermiteExpansion
from giantstep.symbolic.targets.target import polynomial_size, ridge_target, target

HALF, ROOT = sp.Rational(1, 2), sp.sqrt(3) / 2
THREE_WAYS = [[1, 0], [-HALF, ROOT], [-HALF, -ROOT]]


def rank_one(direction, k):
    size = len(direction)
    entries = [
        sp.Mul(*(direction[i] for i in index)) for index in itertools.product(range(size), repeat=k)
    ]
    return sp.ImmutableDenseNDimArray(entries, (size,) * k)


@pytest.mark.parametrize("name", ["erf", "relu", "He(2, z) + He(3, z)", "sin"])
def test_tensors_are_sums_of_powers_of_the_directions(name):
    # C_j = Σ_k c_k μ_j w_k^{⊗j} for unit vectors.
    weights = [2, -1, HALF]
    f = ridge_target(name, THREE_WAYS, weights)
    for j in (1, 2, 3):
        mu = hermite_coefficient(name, j)
        expected = sum(
            (c * mu * rank_one(w, j) for c, w in zip(weights, THREE_WAYS, strict=True)),
            start=0 * rank_one(THREE_WAYS[0], j),
        )
        difference = f.hermite_tensor(j) - expected
        assert all(sp.expand(entry) == 0 for entry in sp.flatten(difference))


def test_dependent_directions_cancel():
    # Three directions at 120 degrees: C_1 = 0, and C_2 = 3·1 or 0.
    second = ridge_target("z + He(2, z)", THREE_WAYS)
    assert list(second.hermite_tensor(1)) == [0, 0]
    assert second.hermite_tensor(2).tolist() == [[3, 0], [0, 3]]
    assert second.norm_squared == 9
    third = ridge_target("z + He(3, z)", THREE_WAYS)
    assert third.he_coefficients(1) == third.he_coefficients(2) == {}
    assert third.norm_squared == sp.Rational(27, 2)


def test_directions_are_taken_as_they_are():
    # ⟨(1, 2), x⟩ has variance 5: E[z erf(√5 z)] = 2√5/√(π(1 + 2·5)).
    f = ridge_target("erf", [[1, 2]])
    slope = 2 / sp.sqrt(11 * sp.pi)
    assert [sp.simplify(entry / slope) for entry in f.hermite_tensor(1)] == [1, 2]
    assert f.expr == sp.erf(f.variables[0] + 2 * f.variables[1])


def test_functions_and_directions_of_every_kind():
    t = sp.Symbol("t")
    f = ridge_target([activation("erf"), t**3, "tanh"], sp.eye(3), (1, 2, -1))
    x1, x2, x3 = f.variables
    assert f.expr == sp.erf(x1) + 2 * x2**3 - sp.tanh(x3)
    g = ridge_target("relu", np.array([[1, 2], [2, 4]]))
    assert g.expr == target("relu(x1 + 2*x2) + relu(2*x1 + 4*x2)").expr
    # An entry that is zero in disguise.
    hidden = sp.sqrt(2) + sp.sqrt(3) - sp.sqrt(5 + 2 * sp.sqrt(6))
    assert ridge_target("erf", [[hidden, 1]]).expr == sp.erf(g.variables[1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("erf", []), ParameterError, "at least one vector"),
        (("erf", [[]]), ParameterError, "at least one vector"),
        (("erf", None), ParameterError, "directions must be a sequence"),
        (("erf", "x1"), ParameterError, "directions must be a sequence"),
        (("erf", [b"12"]), ParameterError, r"directions\[0\] must be a sequence"),
        (("erf", [1, 2]), ParameterError, r"directions\[0\] must be a sequence"),
        (("erf", [[1, 2], [1]]), ParameterError, r"directions\[1\] has 1 components, but"),
        (("erf", [[0, 0]]), ParameterError, r"directions\[0\] is zero"),
        (("erf", [[sp.sqrt(8) - 2 * sp.sqrt(2)]]), ParameterError, r"directions\[0\] is zero"),
        (("erf", [[1, 0.5]]), ParameterError, r"directions\[0\]\[1\] holds the float 0.5"),
        (("erf", np.eye(2)), ParameterError, r"directions\[0\]\[0\] holds the float 1.0.*ration"),
        (("erf", [[1, "a"]]), ParameterError, r"directions\[0\]\[1\] must be a SymPy expression"),
        (("erf", [[1, Z]]), ParameterError, r"directions\[0\]\[1\] must be a finite real number"),
        (("erf", [[1, sp.I]]), ParameterError, "finite real number"),
        (("erf", [[1, sp.oo]]), ParameterError, "finite real number"),
        (("erf", [[1] * 65]), ParameterError, "65 components; targets have at most 64"),
        ((["erf"], [[1, 0], [0, 1]]), ParameterError, "functions are 1 and directions 2"),
        (("erf", [[1, 0], [0, 1]], [1]), ParameterError, "coefficients are 1 and directions 2"),
        (("erf", [[1]], 3), ParameterError, "coefficients must be a sequence"),
        (("erf", [[1]], [0.5]), ParameterError, r"coefficients\[0\] holds the float 0.5"),
        (("erf", [[1]], [sp.I]), ParameterError, r"coefficients\[0\] must be a finite real"),
        ((None, [[1]]), ParameterError, "functions must be a sequence"),
        (([3], [[1]]), ParameterError, r"functions\[0\] has to be a name"),
        ((0.5 * Z, [[1]]), ParameterError, "functions holds the float 0.5"),
        (("3", [[1]]), ExpressionError, "is the constant 3"),
        (("earf", [[1]]), ExpressionError, "did you mean 'erf'"),
        # E exp(z²/4) is finite; of variance 5 it is not.
        (("exp(z**2/8)", [[1, 2]]), AssumptionError, "may grow like"),
        (("He(12, z)", [[1] * 20]), UnsupportedExpressionError, "too large"),
    ],
)
def test_bad_ridge_targets(arguments, error, message):
    with pytest.raises(error, match=message):
        ridge_target(*arguments)


X = sp.symbols("x1:4", real=True)

LEAVES = st.sampled_from([*X, sp.Integer(2), sp.sqrt(3), -X[0], X[1] ** 3])
POLYNOMIALS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, st.integers(1, 3)).map(lambda pair: pair[0] ** pair[1]),
    ),
    max_leaves=6,
)


@settings(max_examples=25, deadline=None)
@given(POLYNOMIALS)
def test_bounds_hold(expr):
    size = polynomial_size(expr, X)
    if size.degree > 20:
        return
    terms = sp.Poly(expr, *X, extension=True).terms() if expr != 0 else []
    assert max((sum(alpha) for alpha, _ in terms), default=0) <= size.degree
    assert len(terms) <= size.monomials
    assert len(HermiteExpansion.from_polynomial(expr, X).he_coefficients()) <= size.hermite_terms


def test_bounds_are_not_wasteful():
    many = sp.symbols("x1:65", real=True)
    size = polynomial_size(sum(x**4 for x in many), many)
    assert (size.degree, size.monomials, size.hermite_terms) == (4, 64, 192)
    size = polynomial_size(sum(X) ** 12, X)
    assert (size.degree, size.monomials, size.hermite_terms) == (12, 91, 455)


X1, X2 = sp.symbols("x1:3", real=True)


def direct(function, variables, alpha, nodes=100):
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
    "erf(x1) + x2*tanh(x1)", "x1**2*x2*sin(x1 - x2) - 2", "tanh((x1 + x2)/2)*cos(x1 - x2 + 1)*x2",
    "exp(x1/2 - x2**2)*(1 + x1)", "softplus(x1 + 2*x2/3) + sigmoid(x2)*x1**3",
    "erf(x1/2)*erf(2*x1/3)*x2**2", "1/(6 + cos(x1))*x2 + x1*x2",
]  # fmt: skip


@pytest.mark.parametrize("text", SMOOTH)
def test_coefficients_against_a_product_rule(text):
    f = target(text)
    for alpha in itertools.product(range(4), repeat=2):
        if sum(alpha) > 3:
            continue
        expected = direct(f.expr, f.variables, alpha)
        found = float(sp.N(f.he_coefficients(sum(alpha)).get(alpha, 0), 20))
        assert abs(found - expected) < 1e-9


@pytest.mark.parametrize("text", SMOOTH[:5])
def test_norms_against_a_product_rule(text):
    f = target(text)
    assert abs(float(sp.N(f.norm_squared, 10)) - direct(f.expr**2, f.variables, (0, 0))) < 1e-9


@pytest.mark.parametrize(
    ("text", "mean", "first", "norm"),
    [  # by hand, from the moments of relu and |z|
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


def test_symbols_of_any_assumption_become_real_coordinates():
    u, v = sp.symbols("u v")
    f = target(u * sp.tanh(v), [v, u])
    assert [x.name for x in f.variables] == ["v", "u"]
    assert all(x.is_real for x in f.variables)
    assert target(sp.Symbol("x10") + sp.Symbol("x9")).variables[0].name == "x9"
    assert target(sp.Max(u, v)).mean == 1 / sp.sqrt(sp.pi)


A, B, LENGTH = sp.symbols("a b tau", real=True)


@pytest.mark.parametrize(
    ("expr", "named"),
    [
        (sp.Symbol("x") + A * sp.Symbol("x") * sp.Symbol("y"), "a, x, y"),
        (sp.Symbol("x") * X1, "x"),
        (sp.Symbol("u") * sp.exp(-LENGTH), "tau, u"),
        (sp.Symbol("u") * sp.Symbol("z"), "u, z"),
        (sp.Symbol("w1") * X1, "w1"),
        (A * sp.Symbol("z") * X1 + X1, "z"),
    ],
)
def test_a_symbol_that_may_be_a_parameter_is_no_coordinate(expr, named):
    with pytest.raises(ExpressionError, match=f"^f .* holds {named}: a coordinate or a parameter"):
        target(expr, argument="f")
    symbols = expr.free_symbols
    if expr.is_polynomial(*symbols) and not any(x.is_positive for x in symbols):
        assert target(expr, sorted(symbols, key=str)).dimension == len(symbols)


@pytest.mark.parametrize(
    ("expr", "parameters"),
    [
        (X1 + A * X1 * X2, "a"),
        (A * X1, "a"),
        (X1 + sp.tanh(X2) * A * B, "a b"),
        (sp.Symbol("a") * X1 + X1**2, "a"),
        (sp.Symbol("a", positive=True) * X1, "a"),
        (sp.Symbol("a1") * X1 + X1**2, "a1"),
    ],
)
def test_symbols_beside_the_coordinates_are_parameters(expr, parameters):
    f = target(expr)
    assert " ".join(x.name for x in f.parameters) == parameters
    assert f.variables == tuple(x for x in (X1, X2) if expr.has(x))


@pytest.mark.parametrize(
    "reader",
    [
        lambda f: gs.sample_complexity("relu", f),
        lambda f: gs.simulate_giant_steps(f, dimension=20),
        lambda f: gs.train_by_preprocessed_step("relu", f, dimension=5, samples=20, width=4),
    ],
)  # fmt: skip
def test_parameters_are_refused_where_numbers_are_needed(reader):
    for spec in (X1 + A * X1 * X2, "x1 + a*x1*x2"):
        with pytest.raises(ExpressionError, match=r"holds a: numbers are|unknown name 'a'"):
            reader(spec)


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


def test_decimals_in_a_text_are_exact_and_floats_are_refused():
    assert target("0.5*x1").expr == X1 / 2
    assert target("0.1*x1").expr == X1 / 10
    with pytest.raises(ParameterError, match=r"^f holds the float 0\.5, .*rationalized"):
        target(0.5 * X1, argument="f")
    assert target(rationalized(0.5 * X1 + X2**2.0)).expr == X1 / 2 + X2**2


@pytest.mark.parametrize("node", [sp.Integral(X1, X1), 1 + sp.Derivative(X1**2, X1)])
def test_what_is_not_evaluated_is_refused(node):
    kind = type(node if node.args[0] is X1 else node.args[1]).__name__
    with pytest.raises(ParameterError, match=f"^f holds an unevaluated {kind}; evaluate it first"):
        target(node, argument="f")
    with pytest.raises(ParameterError, match=r"^student holds an unevaluated"):
        activation(node, argument="student")


def test_products_of_functions_and_rotated_directions():
    # C_1 = (E z tanh z, 0, E softplus).
    f = target("tanh(x1)*(1 + x2) + softplus(x1)*x3")
    first = [float(sp.N(entry)) for entry in f.hermite_tensor(1)]
    assert first == pytest.approx([0.6057055096021588, 0, 0.8060591833474398], abs=1e-14)
    # P11: the same function in a rotated frame.
    u, v = "(x1 + x2)/sqrt(2)", "(x1 - x2)/sqrt(2)"
    g = target(f"{u} + He(2, {u})*{v} + He(3, {v})*x3")
    plain = target("x1 + He(2, x1)*x2 + He(3, x2)*x3")
    turn = sp.Matrix([[1, 1, 0], [1, -1, 0], [0, 0, sp.sqrt(2)]]) / sp.sqrt(2)
    assert g.norm_squared == 9
    assert plain.rotated(turn).expansion == g.expansion
    h = target(f"erf({u})*{v}")
    assert target("erf(x1)*x2").rotated(turn[:2, :2]).he_coefficients(2) == h.he_coefficients(2)
    assert h.norm_squared == target("erf(x1)*x2").norm_squared


def test_rotations_whose_rows_have_a_length_that_sympy_does_not_cancel_to_one():
    c = sp.sqrt(2) * sp.exp(sp.S.Half)
    rotation = sp.Matrix([[1 - c**2, -2 * c], [2 * c, 1 - c**2]]) / (1 + c**2)
    f = target("x1**2*x2 + x1")
    assert f.rotated(rotation).rotated(rotation.T).expansion == f.expansion


def test_rotations_of_other_functions():
    f = target("abs(x1)*tanh(x2) + sign(x1)")
    back = sp.Matrix([[3, 4], [-4, 3]]) / 5
    turned = f.rotated(back.tolist())
    points = {turned.variables[0]: sp.Rational(1, 3), turned.variables[1]: sp.Rational(2, 7)}
    image = back * sp.Matrix(list(points.values()))
    expected = f.expr.subs(dict(zip(f.variables, image, strict=True)))
    assert abs((turned.expr.subs(points) - expected).evalf(20)) < 1e-18
    assert abs(sp.N(turned.norm_squared - f.norm_squared, 20)) < 1e-15
    assert f.rotated(np.eye(2, dtype=int)).expr == f.expr


@pytest.mark.parametrize(
    ("text", "basis"),
    [
        ("x1 + x1*x3", ((1, 0, 0), (0, 0, 1))),
        ("x1 + x1*x2 + x1*x3", ((1, 0, 0), (0, 1, 1))),
        ("He(3, x1 + 2*x2)", ((1, 2),)),
        ("3 + 0*x1 + x2 - x2", ()),
        ("(sqrt(2) + sqrt(3) - sqrt(5 + 2*sqrt(6)))*x1 + x2**2", ((0, 1),)),
    ],
)
def test_relevant_subspace(text, basis):
    assert target(text).relevant_subspace.basis == basis


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: target("(x1 + x2 + x3 + x4 + x5 + x6)**20"), UnsupportedExpressionError,
         "degree 20 and up to 230230"),
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
        (lambda: target(sum(sp.symbols("x1:66"))), UnsupportedExpressionError, "65 coordinates; u"),
        (lambda: target("x1*x65"), ExpressionError, "use coordinates x1 to x64"),
        (lambda: target("x1").rotated([[2]]), AssumptionError, "not orthogonal"),
        (lambda: target("erf(x1)").rotated([[2]]), AssumptionError, "not orthogonal"),
        (lambda: target("x1*x2").rotated([[1, 0]]), ParameterError, "2 x 2"),
        (lambda: target("x1*x2").rotated("ab"), ParameterError, "2 x 2"),
        (lambda: target("x1*x2").rotated(sp.eye(3)), ParameterError, "2 x 2"),
        (lambda: target("x1*x2").rotated(np.eye(2)), ParameterError, r"rotation\[0\]\[0\] holds"),
        (lambda: target("x1").rotated([["1"]]), ParameterError, "parse_expression"),
        (lambda: target("1/x1"), AssumptionError, "target"),
        (lambda: target("exp(x1**2)*x2"), AssumptionError, "E.f"),
        (lambda: target("tanh(x1*x2)"), UnsupportedExpressionError, "one linear form"),
        (lambda: target(sp.Symbol("x1") * sp.Symbol("x1", real=True)), ExpressionError,
         "same name, different assumptions"),
        (lambda: target(X1 * X2, [X1]), ExpressionError, "holds x2, which `variables` does not"),
        (lambda: target("x1").he_coefficients(-1), ParameterError, "k must be from 0"),
        (lambda: target("x1").he_coefficients(True), ParameterError, "k must be an integer"),
        (lambda: target("erf(x1)").expansion, AssumptionError, "not a polynomial"),
        (lambda: target("x1 + x9").hermite_tensor(8), ParameterError, "entries"),
        (lambda: target("x1").contract(2, [X1], leave=3), ParameterError, "leave must be 0 or 1"),
        (lambda: target("x1").symbol_part(1, [1, 2]), ParameterError, "1 coordinates"),
        (lambda: target(activation("tanh(x1*z)", parameters="x1")), ExpressionError,
         "a parameter named x1, as the coordinate"),
        (lambda: target(sp.Symbol("c", imaginary=True) * X1), ParameterError,
         "c of target must stand for real numbers"),
        (lambda: target(sp.Symbol("c", zero=True) * X1), ParameterError, "must stand for real"),
    ],
)  # fmt: skip
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_values_on_arrays():
    inputs = np.random.default_rng(1).standard_normal((3, 5, 2))
    a, b = inputs[..., 0], inputs[..., 1]
    assert target("x1*x2 + relu(x1)")(inputs) == pytest.approx(a * b + np.maximum(a, 0), rel=1e-15)
    with pytest.raises(ParameterError, match="x1, x2 along its last axis, got one of shape"):
        target("x1*x2")(inputs[..., :1])
    with pytest.raises(ParameterError, match="with_values"):
        target("a*x1", parameters="a")(inputs[..., :1])
