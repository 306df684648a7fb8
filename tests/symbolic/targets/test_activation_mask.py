"""Which Hermite degrees activations use, against coefficients and quadrature."""

import itertools

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import ExpressionError, ParameterError, UndecidedError
from giantstep.symbolic.expressions.activations import CATALOGUE, activation
from giantstep.symbolic.expressions.regularity import Parity
from giantstep.symbolic.gaussian.zero_test import is_exactly_zero
from giantstep.symbolic.hermite.coefficients import hermite_coefficient
from giantstep.symbolic.targets.activation_mask import DegreeMask, activation_mask

ALL, EVEN, ODD = set(range(1, 10)), {2, 4, 6, 8}, {1, 3, 5, 7, 9}


def degrees(mask, step):
    return {j for j in range(1, 10) if mask.admits(j, step)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, {1} | EVEN) for name in ("relu", "gelu", "swish", "softplus")),
        *((name, ODD) for name in ("erf", "tanh", "sin", "sign", "atan", "step", "sigmoid", "Phi")),
        *((name, EVEN) for name in ("abs", "cos", "z**2*exp(-z**2)")),
        *((name, ALL) for name in ("exp", "relu(z - 1)", "sin(z + 1)", "relu(z) + tanh(z)")),
        ("identity", {1}),
        ("He4", {2, 4}),
        ("He(3, z) + z**2", {1, 2, 3}),
        ("relu(z)**2", {2} | ODD),
        # Polynomials in disguise.
        ("relu(z) - relu(-z)", {1}),
        ("softplus(z) - softplus(-z) + z**2", {1, 2}),
        ("sin(z)**2 + cos(z)**2 + z", {1}),
        ("relu(z)*relu(-z) + z", {1}),
        ("(sqrt(2) + sqrt(3) - sqrt(5 + 2*sqrt(6)))*z**3 + z", {1}),
    ],
)
def test_later_steps(name, expected):
    mask = activation_mask(name)
    assert degrees(mask, 2) == degrees(mask, 3) == expected
    # The attributes say the same.
    if mask.parity is None and not mask.is_finite:
        assert expected == ALL and not mask.extra and not mask.is_limiting
    else:
        whole = {None: set(), Parity.EVEN: EVEN, Parity.ODD: ODD}[mask.parity]
        assert expected == whole | set(mask.extra)
        assert mask.is_limiting
    assert mask.highest == (max(expected) if mask.is_finite else None)


@pytest.mark.parametrize("name", [*CATALOGUE, "relu(z - 1)", "z**2*exp(-z**2)", "z**3 + z**2"])
def test_first_step_asks_for_the_coefficient_itself(name):
    mask = activation_mask(name)
    for j in range(1, 7):
        vanishes = is_exactly_zero(hermite_coefficient(name, j), "coefficient")
        assert mask.admits(j, 1) is not vanishes
        # What passes at first passes later, too.
        assert vanishes or mask.admits(j, 2)


def test_the_first_step_is_another_one():
    # μ_1(He_3) = 0, but E σ'(τz) = 3(τ² - 1); z² exp(-z²) has μ_2 = 0, but E σ''(τz) is not 0.
    assert degrees(activation_mask("He3"), 1) == {3}
    assert degrees(activation_mask("He3"), 2) == {1, 3}
    assert degrees(activation_mask("z**2*exp(-z**2)"), 1) == {4, 6, 8}
    # μ_{j+2} = He_j(1) φ(1) vanishes for j = 2 only.
    assert degrees(activation_mask("relu(z - 1)"), 1) == ALL - {4}


@pytest.mark.parametrize("name", ["relu", "tanh", "exp", "abs", "He3", "z**2 + z", "sin(z + 1)"])
def test_biases(name):
    mask = activation_mask(name, biases=True)
    expr = activation(name).expr
    top = sp.degree(expr) if expr.is_polynomial() else 9
    for step in (1, 2):
        assert degrees(mask, step) == set(range(1, top + 1))


ring, *_ = sp.ring("x1:4", sp.QQ)
symbols = st.dictionaries(
    st.tuples(*[st.integers(0, 3)] * 3), st.integers(1, 5), min_size=1, max_size=6
).map(lambda terms: ring.from_dict({alpha: sp.QQ(c) for alpha, c in terms.items()}))


@settings(max_examples=12)
@given(symbols, st.sampled_from(["relu", "tanh", "He3", "exp"]), st.integers(1, 3))
def test_restriction(symbol, name, step):
    mask = activation_mask(name)
    kept = mask.restrict(symbol, step)
    assert set(kept) == {m for m in symbol if sum(m) == 0 or mask.admits(sum(m), step)}
    assert all(kept[m] == symbol[m] for m in kept)
    assert mask.restrict(kept, step) == kept
    parts = [mask.of_parity(p).restrict(symbol, 2) for p in (Parity.EVEN, Parity.ODD)]
    constant = symbol.get((0, 0, 0), 0)
    # Constants pass both.
    assert parts[0] + parts[1] - constant == mask.restrict(symbol, 2)


def test_a_generic_student_lets_everything_pass():
    mask = activation_mask(None)
    assert mask == DegreeMask() and mask.is_whole and not mask.is_limiting
    assert degrees(mask, 1) == degrees(mask, 2) == ALL
    assert degrees(mask.of_parity(Parity.ODD), 2) == ODD


def test_words():
    assert str(activation_mask("relu")) == "relu: degree 1 and the even degrees"
    assert str(activation_mask("tanh", biases=True)) == "tanh with random biases: all degrees"
    assert str(activation_mask("He3")) == "He3: degrees 1, 3"


def test_refusals():
    with pytest.raises(ExpressionError, match="unknown student"):
        activation_mask("rellu")
    with pytest.raises(ParameterError, match="student"):
        activation_mask(3)
    # It is z, which no rule sees: nothing is guessed.
    with pytest.raises(UndecidedError, match="degree 3 of the target"):
        activation_mask("tanh(z)*cosh(z) - sinh(z) + z").admits(3, 2)


@pytest.mark.parametrize(
    "name",
    [
        "exp", "exp(-2*z) + z", "sin(z + 1)", "cos(z)", "sin(z)*cos(z) + z**2", "2*sin(z/2)**2",
        "cos(z) + z**3", "exp(z) + z**2", "exp(z) + exp(2*z)", "exp(z) + sin(z)",
        "cos(z) + tanh(z)", "relu", "gelu", "tanh", "erf", "exp(-z**2)", "z*exp(z)", "abs",
        "sign", "He(4, z) + He(2, z)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("parity", [Parity.EVEN, Parity.ODD])
def test_ratios_are_kept_if_the_moments_are_geometric(name, parity):
    # s_j(τ) = Σ_i μ_{j+2i} (τ² - 1)^i / (2^i i!): all ratios of the j ≥ 2 are kept if and only if
    # μ_{j+2} = c μ_j with one c; with c = 0 for a quadratic part.
    mu = [
        float(hermite_coefficient(activation(name).expr, j).evalf(20))
        for j in range(2 if parity is Parity.EVEN else 3, 10, 2)
    ]
    geometric = abs(mu[0]) > 1e-12 and all(
        abs(b * mu[0] - a * mu[1]) < 1e-9 * abs(mu[0]) for a, b in itertools.pairwise(mu)
    )
    assert activation_mask(name).keeps_ratios(parity) is geometric
    assert not activation_mask(name, biases=True).keeps_ratios(parity)


def test_a_generic_student_keeps_no_ratios():
    assert not any(DegreeMask().keeps_ratios(parity) for parity in (Parity.EVEN, Parity.ODD))
