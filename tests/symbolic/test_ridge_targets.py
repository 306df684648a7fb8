"""Sums of ridge functions: their tensors are sums of rank-one tensors, dependent ones cancel."""

import itertools

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.activations import activation
from giantstep.symbolic.activations import z as Z
from giantstep.symbolic.hermite import hermite_coefficient
from giantstep.symbolic.targets import ridge_target, target

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


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(*[st.integers(-3, 3)] * 2), min_size=1, max_size=4),
    st.lists(st.integers(-3, 3), min_size=4, max_size=4),
    st.integers(1, 4),
)
def test_symbols_of_monomials(directions, weights, n):
    # E (⟨w, x + ξ⟩)^n = Σ_j C(n, 2j) (2j-1)!! |w|^{2j} ⟨w, ξ⟩^{n-2j}.
    assume(all(any(w) for w in directions))
    weights = weights[: len(directions)]
    f = ridge_target(Z**n, directions, weights)
    x = f.variables
    expected = sum(
        c
        * sp.binomial(n, 2 * j)
        * sp.factorial2(2 * j - 1)
        * (w[0] ** 2 + w[1] ** 2) ** j
        * (w[0] * x[0] + w[1] * x[1]) ** (n - 2 * j)
        for c, w in zip(weights, directions, strict=True)
        for j in range(n // 2 + 1)
    )
    assert sp.expand(f.expansion.symbol() - expected) == 0


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
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        ridge_target(*arguments)
