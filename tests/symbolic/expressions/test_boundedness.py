"""Boundedness and limits of functions of one variable, against what is known of each."""

from __future__ import annotations

import pytest
import sympy as sp

from giantstep.symbolic.expressions.activations import activation, z
from giantstep.symbolic.expressions.boundedness import (
    derivative_is_bounded,
    is_bounded,
    value_at_infinity,
)


@pytest.mark.parametrize(
    "text, bounded",
    [
        ("erf", True), ("tanh", True), ("sin", True), ("sigmoid", True), ("atan", True),
        ("z*exp(-z**2)", True), ("1/(1 + z**2)", True), ("tanh(3*z) + sin(z)/2", True),
        ("relu", False), ("softplus", False), ("gelu", False), ("He3", False), ("exp", False),
        ("tanh(z) - z/10", False), ("log(1 + z**2)", False),
        # True answers that the structure does not show: never guessed.
        ("z*sin(z)", None), ("z/sqrt(1 + z**2)", True), ("z*sech(z)", True),
        ("z*(1 - tanh(z)**2)", True), ("z/(1 + abs(z))", True), ("sin(z)/(2 + cos(z))", True),
    ],
)  # fmt: skip
def test_boundedness_is_proven_or_not_known(text, bounded):
    assert is_bounded(activation(text).expr, z) is bounded


@pytest.mark.parametrize(
    "text, left, right",
    [
        ("erf", -1, 1), ("atan", -sp.pi / 2, sp.pi / 2), ("relu", 0, sp.oo), ("He2", sp.oo, sp.oo),
        ("He3", -sp.oo, sp.oo), ("sigmoid", 0, 1), ("softplus", 0, sp.oo), ("sin", None, None),
        ("z*exp(-z**2)", 0, 0),
    ],
)  # fmt: skip
def test_limits(text, left, right):
    expr = activation(text).expr
    assert value_at_infinity(expr, z, -1) == left
    assert value_at_infinity(expr, z, 1) == right


@pytest.mark.parametrize(
    "text, bounded",
    [
        ("tanh", "yyy"), ("gelu", "yyy"), ("swish", "yyy"), ("z*tanh(softplus(z))", "yyy"),
        ("relu", "yyy"), ("sqrt(1 + z**2)", "yyy"), ("exp(-abs(z))", "yyy"), ("asinh", "yyy"),
        ("log(cosh(z))", "yyy"), ("z*erf(z) + exp(-z**2)", "yyy"), ("sin(z) + z", "yyy"),
        ("z**2", "nyy"), ("z*abs(z)", "nyy"), ("He3", "nny"), ("exp", "nnn"), ("sinh", "nnn"),
        # Oscillations that grow, and a derivative that is infinite at a kink.
        ("z*sin(z)", "nnn"), ("sin(z**2)", "nnn"), ("z*cos(2*z) + z*sin(3*z)", "nnn"),
        ("sin(exp(z))", "nnn"), ("sqrt(abs(z))", "nnn"), ("abs(z)**(3/2)", "nnn"),
        # Proven neither way.
        ("z*sin(z) + z*sin(sqrt(2)*z)", "???"),
    ],
)  # fmt: skip
def test_bounded_derivatives(text, bounded):
    expr = activation(text).expr
    found = [derivative_is_bounded(expr, z, order) for order in (1, 2, 3)]
    assert found == [{"y": True, "n": False, "?": None}[letter] for letter in bounded]


def test_a_constant_is_bounded():
    assert is_bounded(sp.pi, z) is True
    assert value_at_infinity(sp.pi, z, 1) == sp.pi
