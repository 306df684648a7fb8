"""The gradient expansion against direct expectations: exact algebra, quadrature, orders in d."""

import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from numpy.polynomial.hermite_e import hermegauss

from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.hermite.expansion import HermiteExpansion
from giantstep.symbolic.targets.stein import (
    DIMENSION,
    SAMPLES,
    Direction,
    gradient_expansion,
)
from giantstep.symbolic.targets.target import target

X = sp.symbols("x1:4", real=True)


def unit(v):
    length = sp.sqrt(sum(sp.Integer(c) ** 2 for c in v))
    assert length.is_Integer
    return [c / length for c in v]


def gaussian_mean(polynomial):
    return HermiteExpansion.from_polynomial(polynomial, X).mean


def polynomials(variables, degree):
    """Random polynomials with small rational coefficients."""
    monomials = sorted(sp.itermonomials(variables, degree), key=str)
    coefficients = st.lists(
        st.integers(-3, 3).map(sp.Integer), min_size=len(monomials), max_size=len(monomials)
    )
    return coefficients.map(lambda cs: sp.Add(*(c * m for c, m in zip(cs, monomials, strict=True))))


# ------------------------------------------------------------------------- exact algebra


@settings(max_examples=8, deadline=None)
@given(
    f=polynomials(X[:2], 3),
    w=st.tuples(*[st.fractions(-2, 2, max_denominator=3)] * 3).filter(any),
)
def test_general_norm_exactly(f, w):
    # He_4 + He_3 as a student; |w| enters through s_j only.
    t = sp.Symbol("t", real=True)
    student = t**4 - 6 * t**2 + 3 + t**3
    f = f + X[0] * X[1] ** 2
    w = [sp.Rational(c.numerator, c.denominator) for c in w]
    norm = sp.sqrt(sum(c**2 for c in w))
    slope = student.diff(t).xreplace({t: sum(a * x for a, x in zip(w, X, strict=True))})
    direct = [gaussian_mean(f * slope * x) for x in X]
    found = gradient_expansion(student, target(f, X[:2]), norm=norm)
    assert [sp.expand(c) for c in found.vector(w[:2])] == direct[:2]
    assert sp.expand(found.along(w[:2]) * w[2]) == direct[2]


# ---------------------------------------------------------------------------- quadrature


# Polynomials and integrals along w, for polynomial targets, are evidence of "gradient-expansion".
SLOPES = {
    "erf": lambda t: 2 / math.sqrt(math.pi) * math.exp(-t * t),
    "tanh": lambda t: 1 / math.cosh(t) ** 2,
}


@pytest.mark.parametrize("student", ["erf", "tanh"])
def test_truncated_series_of_a_function_that_is_no_polynomial(student):
    # One direction, so that C_k[w^k] = μ_k w1^k; the direct side is a two-dimensional quadrature.
    w = (0.28, 0.96)
    slope = SLOPES[student]
    nodes, weights = hermegauss(80)
    weights = weights / weights.sum()
    a, b = np.meshgrid(nodes, nodes, indexing="ij")
    mass = np.outer(weights, weights)
    values = mass * np.tanh(a) * np.vectorize(slope)(w[0] * a + w[1] * b)
    direct = [float((values * a).sum()), float((values * b).sum())]
    errors = []
    for order in (4, 8, 16):
        found = gradient_expansion(student, "tanh(x1)", order=order)
        assert not found.exact and found.remainder_order == sp.Rational(-order - 1, 2)
        along = found.along([w[0]])
        got = [found.inside([w[0]])[0] + along * w[0], along * w[1]]
        errors.append(max(abs(float(g.evalf(17)) - e) for g, e in zip(got, direct, strict=True)))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-9


# -------------------------------------------------------------------- orders and leading terms


def test_leading_term_of_relu_after_preprocessing_is_the_hessian():
    # Damian, Lee, Soltanolkotabi: G = H w/sqrt(2π) + O(1/d) when C_0 = C_1 = 0.
    f = "1 + 2*x1 + x1*x2 + x2**2 + x1**2*x2"
    found = gradient_expansion("relu", f, removed=(0, 1))
    leading = found.leading
    hessian = target(f).hermite_tensor(2).tomatrix()
    assert leading.direction is Direction.INSIDE and leading.k == 1
    assert leading.value == hessian * sp.Matrix(found.weights) / sp.sqrt(2 * sp.pi)
    assert "H w" in str(found)
    assert all(term.order <= -1 for term in found.terms if term is not leading)
    # Without preprocessing one direction hides it.
    assert gradient_expansion("relu", f).leading.name == "mu_1 C_1"


@pytest.mark.parametrize(
    ("student", "text", "name", "order"),
    [
        ("relu", "x1 + x1*x2", "mu_1 C_1", 0),
        ("relu", "x1*x2", "mu_2 C_2[w, .]", -0.5),
        ("relu", "x1*x2*x3 + He(4, x1)", "mu_4/3! C_4[w^3, .]", -1.5),  # μ_3(relu) = 0
        ("erf", "x1*x2 + He(3, x1)", "mu_3/2! C_3[w^2, .]", -1),  # μ_2(erf) = 0
        ("He3", "x1*x2*x3", "mu_3/2! C_3[w^2, .]", -1),
    ],
)
def test_leading_terms(student, text, name, order):
    leading = gradient_expansion(student, text).leading
    assert (leading.name, float(leading.order_inside)) == (name, order)


def test_a_coefficient_that_is_zero_by_algebra_leads_nothing():
    # sqrt(2) + sqrt(3) = sqrt(5 + 2 sqrt(6)): the linear part is absent.
    f = "(sqrt(2) + sqrt(3) - sqrt(5 + 2*sqrt(6)))*x1 + He(2, x1) + x1*x2"
    assert gradient_expansion("relu", f).leading.k == 1


def test_nothing_to_learn_with_the_wrong_parity():
    found = gradient_expansion("erf", "x1*x2")
    assert found.leading is None
    assert "nothing" in str(found)


@pytest.mark.parametrize("norm", [sp.Integer(1), sp.Rational(3, 2)], ids=["unit", "longer"])
def test_mean_squares_are_those_of_random_vectors(norm):
    rng = np.random.default_rng(20261120)
    text = "x1*x2*x3 + 2*x1*x2 - x3 + He(4, x2)"
    found = gradient_expansion("softplus", text, norm=norm)
    d, count = 7, 200_000
    w = rng.normal(size=(count, d))
    w *= float(norm) / np.linalg.norm(w, axis=1, keepdims=True)
    for term in found.terms:
        inside = term.direction is Direction.INSIDE
        entries = term.contraction if inside else [term.contraction]
        values = sum(
            np.broadcast_to(sp.lambdify(term.weights, c)(*w[:, :3].T), count) ** 2 for c in entries
        )
        values = values * float(term.student.evalf()) ** 2 * (1 if inside else float(norm) ** 2)
        error = values.std() / math.sqrt(count)
        predicted = float(term.mean_square.subs(DIMENSION, d).evalf())
        assert abs(values.mean() - predicted) <= 4 * error + 1e-12


def test_mean_squares_with_coefficients_of_no_exact_field():
    # tanh has no closed form: C_2[w, .] of tanh(x1)*x2 is E[tanh'] (w2, w1), |.|² = 2 E[tanh']²/d.
    term = next(t for t in gradient_expansion("relu", "x2*tanh(x1)").terms if t.k == 1)
    slope = 0.6057055096021588  # E tanh', by mpmath
    expected = 2 * slope**2 / (2 * math.pi) / 9
    assert float(term.mean_square.subs(DIMENSION, 9).evalf()) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("text", ["x1*x2*x3 + 2*x1*x2 - x3", "1 + He(2, x1) + x2"])
def test_orders_are_exponents_of_the_dimension(text):
    # Norms and their projections on the relevant space, at random unit vectors.
    rng = np.random.default_rng(20261121)
    found = gradient_expansion("softplus", text)
    r, count, dimensions = found.target.dimension, 40_000, (100, 1600)
    sizes = []
    for d in dimensions:
        inside = rng.normal(size=(count, r))
        length = np.sqrt((inside**2).sum(axis=1) + rng.chisquare(d - r, size=count))
        sizes.append(inside / length[:, None])
    for term in found.terms:
        norms, projections = [], []
        for w in sizes:
            if term.direction is Direction.INSIDE:
                entries = [sp.lambdify(term.weights, c)(*w.T) for c in term.contraction]
                norm = np.sqrt(sum(np.broadcast_to(e, count) ** 2 for e in entries))
                projection = norm
            else:
                norm = np.broadcast_to(sp.lambdify(term.weights, term.contraction)(*w.T), count)
                projection = norm * np.sqrt((w**2).sum(axis=1))
            norms.append(math.sqrt((norm**2).mean()))
            projections.append(math.sqrt((projection**2).mean()))
        span = math.log(dimensions[1] / dimensions[0])
        assert math.log(norms[1] / norms[0]) / span == pytest.approx(float(term.order), abs=0.03)
        slope = math.log(projections[1] / projections[0]) / span
        assert slope == pytest.approx(float(term.order_inside), abs=0.03)


def test_noise_of_relu_is_a_quarter():
    # E σ'^2 = 1/2 for relu; ‖f‖² = 1 + 2.
    found = gradient_expansion("relu", "x1 + He(2, x2)")
    assert sp.simplify(found.noise - DIMENSION / SAMPLES * sp.Rational(3, 2)) == 0
    without = gradient_expansion("relu", "x1 + He(2, x2)", removed=(0, 1))
    assert sp.simplify(without.noise - DIMENSION / SAMPLES) == 0


# --------------------------------------------------------------------------- symbolic input


def test_symbolic_student():
    mu = sp.IndexedBase("mu")
    found = gradient_expansion(mu, "x1*x2 + x1")
    w1, w2 = found.weights
    assert list(found.inside()) == [mu[1] + mu[2] * w2, mu[2] * w1]
    assert sp.expand(found.along() - (mu[3] * w1 + mu[4] * w1 * w2)) == 0
    with pytest.raises(AssumptionError, match="symbolic student"):
        _ = found.noise


def test_symbolic_norm_scales_relu():
    # relu(τz) = τ relu(z): s_k = τ^(1-k) μ_k.
    tau = sp.Symbol("tau", positive=True)
    found = gradient_expansion("relu", "x1*x2", norm=tau)
    w2 = found.weights[1]
    assert sp.simplify(found.inside()[0] - w2 / (tau * sp.sqrt(2 * sp.pi))) == 0
    assert found.terms[0].name == "s_2 C_2[w, .]"


def test_prints():
    text = str(gradient_expansion("erf", "tanh(x1)", order=2))
    assert "left out: O(d^(-3/2))" in text
    latex = gradient_expansion("relu", "x1*x2").latex()
    assert latex.startswith("G(w) = ") and r"\underbrace" in latex


def test_sums_before_a_contraction_are_in_parentheses():
    # μ_1 of relu(z + 1/2) is Φ(1/2), a sum.
    text = str(gradient_expansion("relu(z + 1/2)", "x1"))
    assert "mu_1 C_1 = (erf(sqrt(2)/4)/2 + 1/2) * (1)" in text
    assert "(erf(sqrt(2)/4)/2 + 1/2) * C_1" in text


def test_long_contractions_are_tensors_unless_asked_for():
    found = gradient_expansion("relu", "(x1 + x2 + x3 + x4)**6")
    assert r"C_{6}\left[w^{5}, \cdot\right]" in found.latex()
    assert "w_{4}^{5}" in found.latex(full=True) and "w_{4}^{5}" not in found.latex()
    assert "* (...)" in str(found) and len(str(found)) < 1500


def test_terms_print():
    term = gradient_expansion("relu", "x1*x2").leading
    assert repr(term) == "GradientTerm(mu_2 C_2[w, .], inside the relevant space, order d^-1/2)"
    assert term._repr_latex_().startswith(r"$\displaystyle \frac{\sqrt{2}}")


def test_integers_of_any_kind():
    found = gradient_expansion("relu", "x1*x2", np.int64(2), removed=np.array([0, 1]))
    assert (found.order, found.removed) == (2, (0, 1))
    assert gradient_expansion("relu", "x1*x2", sp.Integer(1)).order == 1


# -------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gradient_expansion("relu", "x1", -1), ParameterError, "order must be from 0"),
        (lambda: gradient_expansion("relu", "x1", True), ParameterError,
         "order must be an integer"),
        (lambda: gradient_expansion("relu", "x1", 10**6), ParameterError, "order must be from 0"),
        (lambda: gradient_expansion("relu", "x1", norm=0), ParameterError, "norm must be positive"),
        (lambda: gradient_expansion("relu", "x1", norm=sp.Symbol("t", real=True)), ParameterError,
         "declare t with positive=True"),
        (lambda: gradient_expansion("relu", "x1", removed=(-1,)), ParameterError, "removed"),
        (lambda: gradient_expansion("relu", "x1", removed=1), ParameterError, "a collection"),  # type: ignore[arg-type]
        (lambda: gradient_expansion("relu", "x1", norm="2"), ParameterError, "norm must be"),
        (lambda: gradient_expansion("relu", "x1", norm=None), ParameterError, "norm must be"),
        (lambda: gradient_expansion("relu", "x1", norm=sp.Symbol("w1", positive=True)),
         ParameterError, "a component of w"),
        # Text is never evaluated.
        (lambda: gradient_expansion("relu", "x1").inside(["w1"]), ParameterError, "real numbers"),
        (lambda: gradient_expansion("relu", "x1").along([sp.nan]), ParameterError, "real numbers"),
        (lambda: gradient_expansion("relu", "x1").along(3), ParameterError, "real numbers"),  # type: ignore[arg-type]
        (lambda: gradient_expansion("rellu", "x1"), ExpressionError, "did you mean 'relu'"),
        (lambda: gradient_expansion("exp(z**2)", "x1"), AssumptionError, "E.f.z.\\*\\*2. < oo"),
        (lambda: gradient_expansion("relu", "exp(x1**2)"), AssumptionError, "target"),
        (lambda: gradient_expansion("relu", "erf(x1*x2)"), UnsupportedExpressionError,
         "linear form"),
        (lambda: gradient_expansion("relu", "x1").inside([1, 2]), ParameterError, "1 coordinates"),
        (lambda: gradient_expansion("sign", "x1").noise, AssumptionError, "weak derivative"),
    ],
)  # fmt: skip
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
