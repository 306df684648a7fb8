"""Projections of targets on learned subspaces, against a catalogue and against quadrature."""

import json
import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from scipy.special import erf, expit
from tests.symbolic.leaps.catalogue import CATALOGUE, OPEN_CATALOGUE, chain, values

from giantstep.errors import ParameterError, UnsupportedExpressionError
from giantstep.symbolic.gaussian.expectation import JointExpectation
from giantstep.symbolic.gaussian.zero_test import is_exactly_zero
from giantstep.symbolic.hermite.expansion import HermiteExpansion
from giantstep.symbolic.targets.projections import bounded_norms, project, residual_norms
from giantstep.symbolic.targets.ridge_products import FormGeometry
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import target

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / math.sqrt(2 * math.pi)


def equal(first, second):
    return is_exactly_zero(first - second, "a difference")


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.name)
def test_residuals_of_the_catalogue(row):
    steps = [Subspace.zero(row.dimension), *chain(row.staircase, row)]
    f = target(row.target, sp.symbols(f"x1:{row.dimension + 1}"))
    columns = [(steps[0], row.residuals_at_zero)]
    if row.residuals_at_first:
        columns.append((steps[1], row.residuals_at_first))
    if row.residuals_at_last:
        columns.append((steps[-1], row.residuals_at_last))
    for U, expected in columns:
        assert residual_norms(f, U) == values(expected)
    assert project(f, steps[0]).norm_squared == values(row.norm_squared)[0]


@pytest.mark.parametrize("row", OPEN_CATALOGUE, ids=lambda row: row.name)
def test_norms_of_the_catalogue_of_other_functions(row):
    f = target(row.target)
    split = project(f, [], 1)
    assert equal(split.norm_squared, values(row.norm_squared)[0])
    assert equal(split.norms[0], values(row.mean)[0] ** 2)
    assert equal(split.residual_norm, values(row.nonlinear_norm_squared)[0])


# What is learned first, and the norms there in closed form, need not be known to quadrature.
LEARNED = [
    (row.target, U)
    for row in OPEN_CATALOGUE
    if row.dimension == 2
    for U in [*chain(row.staircase, row)[:1], Subspace.spanned_by([[1, 2]])]
]


def norms_by_quadrature(f, U, highest):
    """n_j = sum over the Hermite coefficients in v, along U^⊥, of their mean squares over u."""
    u = np.array(U.numeric()[0])
    u /= np.linalg.norm(u)
    v = np.array([-u[1], u[0]])
    a, b = np.meshgrid(*[np.linspace(-8, 8, 801)] * 2, indexing="ij")
    density = np.exp(-(a[:, 0] ** 2) / 2) / math.sqrt(2 * math.pi) * 16 / 800
    function = sp.lambdify(
        f.variables,
        f.expr.rewrite(sp.Abs) if f.expr.has(sp.Max) else f.expr,
        [{"relu": lambda x: np.maximum(x, 0), "erf": erf, "sigmoid": expit}, "numpy"],
    )
    sampled = function(*(u[i] * a + v[i] * b for i in range(2)))
    basis = np.polynomial.hermite_e.hermevander(b[0], highest) * density[:, None]
    coefficients = sampled @ basis
    squares = (density[:, None] * coefficients**2).sum(axis=0)
    return squares / [math.factorial(j) for j in range(highest + 1)]


@pytest.mark.parametrize(("text", "U"), LEARNED, ids=lambda x: str(x))
def test_norms_on_learned_subspaces_against_a_grid(text, U):
    f = target(text)
    found = [float(n.evalf(15)) for n in project(f, U, 2).norms]
    # The trapezoidal rule with steps of 0.02 across kinks and jumps.
    assert found == pytest.approx(list(norms_by_quadrature(f, U, 2)), abs=1e-2, rel=2e-3)


def test_fitted_functions_are_conditional_expectations():
    # E[relu(x1) + relu(x2) | s], s = x1 + x2, has x1 = s/2 + z/sqrt(2).
    split = project("relu(x1)*relu(x2) + abs(x1)*x2", [[1, 1]])
    x1, x2 = split.target.variables
    for s in (-1.3, 0.4, 2.1):
        first, second = (s / 2 + sign * NODES_FINE / math.sqrt(2) for sign in (1, -1))
        sampled = np.maximum(first, 0) * np.maximum(second, 0) + np.abs(first) * second
        point = {x1: sp.Rational(str(s)) / 3, x2: sp.Rational(str(s)) * 2 / 3}
        assert float(split.fitted.subs(point)) == pytest.approx(sampled @ DENSITY_FINE, abs=1e-5)


NODES_FINE = np.linspace(-9, 9, 20001)
DENSITY_FINE = np.exp(-(NODES_FINE**2) / 2) / math.sqrt(2 * math.pi) * 18 / 20000


@pytest.mark.parametrize(
    ("text", "rows", "degree"),
    [
        ("sin(x1)*x2 + exp(x1/2)", [[1, 1]], 1),
        ("erf(x1) + erf(x2) + He(2, x1)*x2", [[1, 2]], 2),
        ("cos(x1)*cos(x2)", [[0, 1]], 2),
    ],
)
def test_the_norm_of_the_fitted_function_is_what_is_explained(text, rows, degree):
    split = project(text, rows, degree)
    x = split.target.variables
    grid = np.meshgrid(NODES, NODES, indexing="ij")
    weights = np.outer(WEIGHTS, WEIGHTS)
    fitted = sp.lambdify(x, split.fitted, [{"erf": erf}, "numpy"])(*grid)
    residual = sp.lambdify(x, split.residual, [{"erf": erf}, "numpy"])(*grid)
    explained, rest = ((weights * g**2).sum() for g in (fitted, residual))
    assert explained == pytest.approx(float(split.explained), rel=1e-7)
    assert rest == pytest.approx(float(split.residual_norm), rel=1e-7)
    assert (weights * fitted * residual).sum() == pytest.approx(0, abs=1e-7)


def test_forms_that_depend_on_each_other_cancel():
    # By symmetry nothing of degree 1 is left beside x1 + x2 + x3.
    first, second = (project("erf(x1) + erf(x2) + erf(x3)", [[1, 1, 1]], k) for k in (0, 1))
    assert second.fitted == first.fitted
    assert second.norms[1] == 0


def test_polynomials_read_as_other_functions_agree():
    # The rules for functions that are no polynomials, applied to one.
    from giantstep.symbolic.targets.ridge_norms import ridge_degree_norms
    from giantstep.symbolic.targets.ridge_products import ridge_part_up_to

    f = target("x1 + He(2, x1)*x2 + (x1 + 2*x2)**3/5 + x1*x3**2")
    for rows in ([[1, 0, 0]], [[1, 2, -1], [0, 1, 1]], []):
        U = Subspace.spanned_by(rows, 3)
        split = project(f, U, 1)
        norms = ridge_degree_norms(f.expr, f.variables, U, 3)
        assert [sp.nsimplify(n) for n in norms] == [*split.norms, 0, 0, 0, 0][:4]
        assert sp.expand(ridge_part_up_to(f.expr, f.variables, U, 1) - split.fitted) == 0


ridge_texts = st.sampled_from(
    ["relu(x1)", "sign(x2)", "abs(x1 - x2)", "erf(x1 + x2)", "sin(x2)", "x1*relu(x2)", "x1*x2",
     "cos(x1)*sin(x2)", "relu(x1 + 2*x2)", "exp(x1/2)"]
)  # fmt: skip


@settings(max_examples=8)
@given(
    st.lists(ridge_texts, min_size=1, max_size=3, unique=True),
    st.sampled_from([[[1, 0]], [[1, 1]], [[2, -1]], []]),
)
def test_residuals_never_increase_and_stay_positive(terms, rows):
    f = target(" + ".join(terms), sp.symbols("x1:3", real=True))
    found = [float(n) for n in residual_norms(f, rows, highest=2)]
    norm = float(project(f, rows).norm_squared)
    assert all(a >= b - 1e-9 for a, b in zip([norm, *found], found, strict=False))
    assert found[-1] > -1e-9


def test_a_rotation_turns_the_projection_with_it():
    x = sp.symbols("x1:3", real=True)
    turned = [(3 * x[0] + 4 * x[1]) / 5, (-4 * x[0] + 3 * x[1]) / 5]
    f = sp.erf(x[0]) * x[1] + sp.Abs(x[1])
    g = f.xreplace(dict(zip(x, turned, strict=True)))
    before, after = project(f, [[1, 0]], 2), project(g, [[3, 4]], 2)
    for first, second in zip(before.norms, after.norms, strict=True):
        assert equal(first, second)
    moved = before.fitted.xreplace(dict(zip(x, turned, strict=True)))
    point = {x[0]: sp.Rational(3, 7), x[1]: sp.Rational(-5, 4)}
    assert float((moved - after.fitted).subs(point).evalf(30)) == pytest.approx(0, abs=1e-20)


def test_forms_with_one_direction_outside_are_one():
    space = FormGeometry(Subspace.spanned_by([[1, 0, 0]]))
    assert space.frame([(3, 2, 4), (0, 3, 6)]) == [(0, 1, 2)] == space.frame([(1, -5, -10)])


def test_both_forms_of_a_polynomial_projection():
    split = project("x1 + He(2, x1)*x2 + He(2, x2)", [[1, 0]], 1)
    assert isinstance(split.fitted_expansion, HermiteExpansion)
    assert split.fitted_expansion.he_coefficients() == {(1, 0): 1, (2, 1): 1}
    assert split.residual_expansion.he_coefficients() == {(0, 2): 1}
    assert sp.expand(split.fitted + split.residual - split.target.expr) == 0
    assert (split.explained, split.residual_norm, split.conditional_variance) == (3, 2, 4)
    text = str(split)
    assert "x1 + He(2, x1)*x2" in text and "x1**2*x2" in text and "2 of E f^2 = 5" in text
    assert r"\mathrm{He}_{2}(x_{1}) x_{2}" in split.latex()
    assert "He(2, x1)*x2" in split._repr_html_()


def test_open_expectations_are_said_to_be_open():
    split = project("tanh(x1) + tanh(x2)", [[1, 1]])
    assert "no rule" in split.basis
    # Mehler: 4 sum_k mu_k^2/k! 2^-k, twenty digits of the coefficients by quadrature elsewhere.
    mu = {1: 0.6057055096021588, 3: -0.3635953762809741, 5: 0.6851737935089189,
          7: -2.232403311827114, 9: 10.49368340600438, 11: -65.02358489069230}  # fmt: skip
    series = 4 * sum(m**2 / math.factorial(k) / 2**k for k, m in mu.items())
    assert float(split.norms[0]) == pytest.approx(series, abs=1e-5)


def test_whole_space_and_nothing():
    f = target("relu(x1)*x2")
    everything = project(f, Subspace.whole(2), 0)
    assert everything.residual_norm == 0 and equal(everything.norms[0], f.norm_squared)
    assert sp.expand(everything.fitted - f.expr) == 0
    assert project(f, [], 0).fitted == 0
    assert residual_norms("x1 + 2", []) == [1, 0]
    assert residual_norms("x1", [[1]], highest=3) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, 1], [2, 2]], r"row 2, \(2, 2\), is a combination of the rows before it"),
        ([[1, 0], [0, 0]], r"row 2, \(0, 0\), is zero"),
        ([[1, 0, 0]], "rows of 2 numbers each, but row 1 has 3"),
        ([[0.5, 1]], "0.5.*rationalized"),
        ([1, 0], "must be rows of exact numbers"),
        ("1,0", "got the text"),
        (Subspace.whole(3), r"R\^3, but the target has 2 coordinates"),
        (None, "must be rows"),
    ],
)
def test_bad_subspaces_are_refused(rows, message):
    with pytest.raises(ParameterError, match=message):
        project("x1*x2", rows)


def test_numbers_of_no_exact_field_are_refused():
    with pytest.raises(UnsupportedExpressionError, match="not a number"):
        project("x1*x2", [[sp.Symbol("a"), 1]])
    with pytest.raises(UnsupportedExpressionError, match="log"):
        project("x1*x2", [[sp.log(2), 1]])


@pytest.mark.parametrize("degree", [-1, 1.0, True, "1", None, sp.Rational(1, 2)])
def test_bad_degrees_are_refused(degree):
    with pytest.raises(ParameterError, match="degree must be a whole number >= 0"):
        project("x1*x2", [[1, 0]], degree)


def test_degrees_of_open_targets_have_an_end():
    with pytest.raises(ParameterError, match="up to degree 12"):
        project("relu(x1)", [], 13)
    with pytest.raises(ParameterError, match="highest must be"):
        residual_norms("relu(x1)", [], highest=-1)


def test_transcendental_subspaces_are_quick_or_refused():
    # What relu-like targets learn first has entries with roots of pi.
    split = project(
        "exp(x2/2) + x1*relu(x2)", [[1, sp.sqrt(2 * sp.pi) * sp.exp(sp.Rational(1, 8))]]
    )
    assert 0 < float(split.residual_norm) < float(split.norm_squared)
    assert split.bounds is None
    split = project("relu(x1 + x2) + x1*tanh(x2)", [[1, sp.sqrt(sp.pi)]])
    assert split.bounds is not None and split.bounds.uncertainty < 0.01


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("relu(x1) + relu(x2)", [[1, 1]]),
        ("tanh(x1)*x2 + x1**3", [[1, 2]]),
        ("gelu((3*x1 + 4*x2)/5) - erf(x1)*sin(x2)", [[1, 0]]),
        ("sign(x1 - x2) + exp(x2/2)", [[1, sp.sqrt(2)]]),
        ("relu(x1)*x2 + relu(x2)*x1 + relu(x1)", [[1, sp.sqrt(2) / (sp.sqrt(2) + sp.sqrt(sp.pi))]]),
    ],
)
def test_bounded_norms_hold_the_norms(text, rows):
    f, U = target(text), Subspace.spanned_by(rows)
    found = bounded_norms(f, U)
    slack = float(found.uncertainty) + 1e-9
    assert slack < 0.05 * float(found.total)
    expected = norms_by_quadrature(f, U, 3)
    for j in range(4):
        assert float(found.norm(j)) == pytest.approx(expected[j], abs=slack + 2e-3)
    rest = float(f.norm_squared.evalf()) - sum(expected[:2])
    assert float(found.beyond(1)) == pytest.approx(rest, abs=slack + 4e-3)
    assert float(found.total) == pytest.approx(float(f.norm_squared.evalf()), abs=slack)


def test_projections_by_bounds():
    split = project("relu(x1)*relu(x2) + x1 + sign(x2)", [[1, sp.sqrt(2) + sp.sqrt(sp.pi)]], 1)
    assert split.bounds is not None and "within ±" in split.basis
    assert split.explained + split.residual_norm == pytest.approx(float(split.norm_squared))
    assert "within" in str(split) and "no short form" in str(split) and r"\dots" in split.latex()
    content = json.loads(json.dumps(split.to_dict()))
    assert content["uncertainty"] > 0 and content["fitted_form"] is None


def test_multiplied_out_linear_forms_are_one_function():
    # swish(u) is u*sigmoid(u), and u is multiplied out: four variables to average over, not one.
    split = project("swish((3*x1 + 4*x2)/5)", [[1, 0]], 1)
    assert split.bounds is None
    nodes = {node for n in split.norms for node in n.atoms(JointExpectation)}
    assert {len(node.law.variables) for node in nodes} == {2}
    # The mean by x2 first, then the square.
    expected = norms_by_quadrature(split.target, split.onto, 1)
    assert [float(n.evalf()) for n in split.norms] == pytest.approx(list(expected), abs=1e-6)


def test_residual_norms_of_the_error_function_lack_one_degree_after_the_other():
    # E erf² = 2 asin(2/3)/π, of which degree 1 has 4/(3π); degree 2 has nothing.
    whole, first = 2 * sp.asin(sp.Rational(2, 3)) / sp.pi, 4 / (3 * sp.pi)
    found = residual_norms("erf(x1)", [], highest=2)
    for norm, known in zip(found, (whole, whole - first, whole - first), strict=True):
        assert abs(sp.N(norm - known, 30)) < 1e-25
