"""Conditional Gaussian equivalence: closed forms against integrals, series and hand calculation."""

import json
import math

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import AssumptionError, ConvergenceError, ExpressionError, ParameterError
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.expressions.parser import parse_expression
from giantstep.symbolic.expressions.standing import Standing
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.hermite.coefficients import hermite_coefficient
from giantstep.symbolic.hermite.equivalence import (
    CENTRE,
    SPREAD,
    conditional_equivalence,
    norm_response_definition,
    residual_variance_definition,
    spiked_rows,
)

X = sp.Symbol("x", real=True)
# Each has closed forms of all three coefficients.
CLOSED = ("relu", "erf", "Phi", "gelu", "sign", "step", "abs", "sin", "exp", "He1", "He2", "He5")
OTHERS = (
    "cos", "relu(z - 1)", "z*erf(z)", "exp(-z**2/2)", "relu(z) - relu(-z)/10", "erf(z)+sign(z)",
)  # fmt: skip
# Their values and those of two neurons are evidence of the claim "conditional-equivalence".
OPEN = ("tanh", "softplus", "swish")
ERF = conditional_equivalence("erf")


@pytest.mark.parametrize("name", [*CLOSED, *OTHERS])
def test_all_coefficients_have_closed_forms(name):
    found = conditional_equivalence(name)
    for coefficient in (
        found.mean,
        found.slope,
        found.second_moment,
        found.residual_variance,
        found.coefficient(2),
        found.coefficient(7),
    ):
        assert coefficient.closed_form is not None
        assert not coefficient.closed_form.has(GaussianExpectation, sp.Float)
        assert coefficient.expr is coefficient.closed_form


@pytest.mark.parametrize("name", OPEN)
def test_without_closed_form_there_are_integrals(name):
    found = conditional_equivalence(name)
    assert found.mean.closed_form is None
    assert found.mean.expr.has(GaussianExpectation)
    assert found.at(1, [0.5], [1], digits=40).mean[0]._prec > 130


@settings(deadline=None, max_examples=8)
@given(
    st.sampled_from(CLOSED + OTHERS),
    st.fractions(-3, 3, max_denominator=9),
    st.fractions(sp.Rational(1, 5), 3, max_denominator=9),
    st.integers(0, 5),
)
def test_the_closed_form_is_the_integral(name, c, rho, k):
    found = conditional_equivalence(name)
    place = {CENTRE: sp.Rational(c), SPREAD: sp.Rational(rho)}
    coefficient = found.coefficient(k)
    closed = coefficient.closed_form.subs(place).evalf(20)
    integral = coefficient.definition.subs(place).evalf(20)
    assert abs(closed - integral) <= 1e-15 * max(1, abs(integral))


@pytest.mark.parametrize("name", ["relu", "erf", "gelu", "sign", "tanh"])
def test_at_the_start_they_are_hermite_coefficients(name):
    found = conditional_equivalence(name, 0, 1)
    pairs = [(found.coefficient(k), hermite_coefficient(name, k)) for k in range(5)]
    for coefficient, expected in [*pairs, (found.slope, pairs[1][1])]:
        # One by one: digits of a difference that is zero are sought for long.
        assert abs(sp.N(coefficient.expr, 25) - sp.N(expected, 25)) < 1e-20


@pytest.mark.parametrize("name", ["relu", "erf", "gelu", "sin"])
def test_the_response_to_the_norm_is_the_second_coefficient(name):
    # 2 ∂μ/∂ρ² = E σ'' = b_2/ρ².
    found = conditional_equivalence(name)
    response = norm_response_definition(activation(name), CENTRE, SPREAD).doit()
    place = {CENTRE: sp.Rational(2, 3), SPREAD: sp.Rational(5, 4)}
    expected = (found.coefficient(2).expr / SPREAD**2).subs(place).evalf(20)
    assert abs(response.subs(place).evalf(20) - expected) < 1e-17
    derivative = (found.mean.expr.diff(SPREAD) / SPREAD).subs(place).evalf(20)
    assert abs(derivative - expected) < 1e-17


def test_parity_decides_where_there_is_no_closed_form():
    assert conditional_equivalence("tanh", 0).mean.expr == 0
    assert conditional_equivalence("tanh", 0).coefficient(2).expr == 0


def test_the_definition_is_a_mean_of_squares():
    # The difference of second moments loses all digits: Ψ_ii of a nearly affine function.
    found = conditional_equivalence("tanh").at(1, [0.125], [1e-6], digits=20)
    # σ''(c)² ρ⁴/2 to leading order, corrections of relative order ρ².
    t = math.tanh(0.125)
    expected = (2 * t * (1 - t**2)) ** 2 * 1e-24 / 2
    assert float(found.residual_variance[0]) == pytest.approx(expected, rel=1e-9)
    mu, beta = sp.symbols("mu beta")
    inside = residual_variance_definition(activation("erf"), CENTRE, SPREAD, mu, beta)
    assert isinstance(inside, GaussianExpectation) and inside.integrand.is_Pow


@pytest.mark.parametrize("name", ["relu", "erf", "gelu", "sign", "tanh", "softplus"])
@pytest.mark.parametrize("c", [-(10**8), 300])
def test_far_from_the_spike_nothing_breaks(name, c):
    # Saturated: what is left of curvature is below exp(-40) there, also after smoothing.
    found = conditional_equivalence(name).at(1, [c], [sp.Rational(1, 2)], digits=20)
    assert abs(found.mean[0] - activation(name)(c).evalf(30)) < 1e-17
    assert 0 <= found.residual_variance[0] < 1e-17
    expected = {"relu": c > 0, "gelu": c > 0, "softplus": c > 0}.get(name, 0)
    assert abs(found.slope[0] - int(expected)) < 1e-17


def test_values_too_large_or_too_slow_are_refused_by_name():
    message = r"neuron 1, c = 2, rho = 1000000: .*does not decay"
    with pytest.raises(ConvergenceError, match=message):
        conditional_equivalence("exp").at(1, [1, 2], [1, 10**6])
    with pytest.raises(ParameterError, match=r"spreads\[1\] = 1000 is above 100.*'tanh'"):
        conditional_equivalence("tanh").at(1, [1, 2], [1, 1000])


def test_far_tails_keep_their_digits():
    # Mills: E relu(c+z) = φ(c)(1/c² − 3/c⁴ + …) for c → −∞; here by the continued fraction of DLMF
    # 7.9.1 in mpmath, through Φ(−9) = erfc(9/√2)/2.
    mean = conditional_equivalence("relu").at(1, [-9], [1], digits=20).mean[0]
    exact = sp.exp(-sp.Rational(81, 2)) / sp.sqrt(2 * sp.pi) - 9 * sp.erfc(9 / sp.sqrt(2)) / 2
    assert abs(mean / exact.evalf(40) - 1) < 1e-19


def test_symbols_of_the_spiked_model():
    r, kappa = sp.symbols("r kappa", real=True)
    b = sp.Symbol("b", positive=True)
    found = conditional_equivalence("relu", r * kappa, sp.sqrt(b))
    assert sp.simplify(found.mean.expr.diff(r) - kappa * found.slope.expr) == 0
    assert found.mean.expr.free_symbols == {r, kappa, b}
    # A spread that is itself named c, and a centre named rho.
    c, rho = sp.Symbol("c", positive=True), sp.Symbol("rho", real=True)
    swapped = conditional_equivalence("erf", rho, c)
    assert swapped.mean.expr == sp.erf(rho / sp.sqrt(2 * c**2 + 1))


def test_rows_after_a_step():
    # |w| = 1, ⟨w, v⟩ = 3/5: ρ = 4/5.
    assert spiked_rows([2, 0], [sp.Rational(3, 5), 0]) == (
        (sp.Rational(13, 5), 0),
        (sp.Rational(4, 5), 1),
    )
    generator = np.random.default_rng(3)
    rows = generator.standard_normal((5, 7))
    v = generator.standard_normal(7)
    v /= np.linalg.norm(v)
    scales = generator.standard_normal(5)
    m, rho = spiked_rows(scales, rows @ v, np.linalg.norm(rows, axis=1))
    after = rows + np.outer(scales, v)
    assert np.array(m, dtype=float) == pytest.approx(after @ v)
    outside = after - np.outer(after @ v, v)
    assert np.array(rho, dtype=float) == pytest.approx(np.linalg.norm(outside, axis=1))


@pytest.mark.parametrize("name", ["relu", "erf", "tanh", "He3", "sign"])
def test_presentation(name):
    found = conditional_equivalence(name)
    assert found.standing is Standing.THEOREM and "2305.18270" in found.source
    text = str(found)
    assert f"sigma = {name} (theorem" in text and "beta_i" in text and "c_ij^2/2" in text
    page = found._repr_html_()
    assert page.count("<tr>") == 4
    assert ("integral" in page) == (name == "tanh")
    content = json.loads(json.dumps(found.to_dict()))
    closed = content["residual_variance"]["closed_form"]
    if name == "tanh":
        assert closed is None
    else:
        again = parse_expression(closed, [CENTRE, SPREAD])
        assert sp.simplify(again - found.residual_variance.expr) == 0
    numbers = found.at(0.5, [1, 2], [1, 1]).to_dict()
    assert json.loads(json.dumps(numbers))["projection"] == "1/2"
    assert len(numbers["mean"]) == 2


def test_no_neurons():
    found = ERF.at(1, [], [])
    assert found.mean == found.slope == found.residual_variance == ()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: conditional_equivalence("earf"), ExpressionError, "did you mean 'erf'"),
        (lambda: conditional_equivalence("exp(z**2)"), AssumptionError, "student"),
        (lambda: conditional_equivalence("erf", 0.5), ParameterError, "centre holds the float 0.5"),
        (lambda: conditional_equivalence("erf", 0, 0.5), ParameterError, "spread holds the float"),
        (lambda: conditional_equivalence(sp.Integral(X, X)), ParameterError,
         "student holds an unevaluated Integral"),
        (
            lambda: ERF.residual_covariance("2"),  # type: ignore[arg-type]
            ParameterError,
            "order K must be an integer",
        ),
        (lambda: ERF.at(1, b"12", [1, 1]), ParameterError,
         "overlaps has to be a sequence of numbers"),
        (lambda: conditional_equivalence("erf", "c"), ParameterError, "centre must be a SymPy"),
        (lambda: conditional_equivalence("erf", sp.Symbol("c")), ParameterError, "real=True"),
        (lambda: conditional_equivalence("erf", sp.oo), ParameterError, "not known to be real"),
        (lambda: conditional_equivalence("erf", 0, X), ParameterError, "positive=True"),
        (lambda: conditional_equivalence("erf", 0, 0), ParameterError, "has to be positive, not 0"),
        (lambda: conditional_equivalence("erf", 0, -1), ParameterError, "has to be positive"),
        (lambda: conditional_equivalence("erf", sp.Symbol("z", real=True)), ParameterError,
         "holds z"),
        (lambda: conditional_equivalence("erf", X, sp.Symbol("x", positive=True)), AssumptionError,
         "same name, different assumptions"),
        (lambda: ERF.coefficient(-1), ParameterError, "k must be"),
        (lambda: ERF.coefficient(33), ParameterError, "at most 32"),
        (lambda: ERF.residual_covariance(1), ParameterError, "from 2 to"),
        (lambda: ERF.at(1, [1], []), ParameterError, "overlaps are 1"),
        (lambda: ERF.at(1, [1], [0]), ParameterError, r"spreads\[0\] has"),
        (lambda: ERF.at(1, "1", [1]), ParameterError, "overlaps has to be"),
        (lambda: ERF.at(X, [1], [1]), ParameterError, "projection has"),
        (lambda: ERF.at(1, [1, "2"], [1, 1]), ExpressionError, r"overlaps\[1\]"),
        (lambda: ERF.at(float("nan"), [1], [1]), ParameterError,
         "projection has to be a finite real number"),
        (lambda: ERF.at(1, [1], [float("inf")]), ParameterError,
         r"spreads\[0\] has to be a finite real number"),
        (lambda: ERF.at(1, [1], [1], digits=0), ParameterError, "digits"),
        # E exp(z²/4) is finite, E exp(z²) is not.
        (lambda: conditional_equivalence("exp(z**2/8)").at(1, [1], [2]), AssumptionError,
         "student at the largest of spreads"),
        (lambda: spiked_rows([1], [1]), ParameterError, "no part outside the spike"),
        (lambda: spiked_rows([1], [1, 2]), ParameterError, "initial_overlaps are 2 and scales 1"),
        (lambda: spiked_rows("1"), ParameterError, "scales has to be a sequence"),
    ],
)  # fmt: skip
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
