"""The mean over data: a linear node that binds its columns."""

import pickle

import numpy as np
import pytest
import sympy as sp

from giantstep.errors import ExpressionError, ParameterError
from giantstep.symbolic.expressions.averages import DataAverage

omega = sp.Symbol("omega", positive=True)
t = sp.Symbol("t", real=True)
V, a = sp.symbols("V a", positive=True)
NODE = DataAverage(t * omega / (1 + V * omega), (omega, t), "spectrum")
DATA = {"omega": [1, "0.5", 2.5], "t": [1, -2, 0.1]}


def test_mean_over_rows():
    expected = (1 / (1 + V) - 1 / (1 + V / 2) + sp.Rational(1, 4) / (1 + 5 * V / 2)) / 3
    assert sp.simplify(NODE.evaluate(DATA) - expected) == 0


def test_floats_are_read_as_decimals():
    # 0.1 in binary is not 1/10; the text that the user typed is.
    found = DataAverage(t, t).evaluate({"t": np.array([0.1, 0.2])})
    assert found == sp.Rational(3, 20)
    assert DataAverage(t, t).evaluate({"t": [sp.sqrt(2), np.int64(1)]}) == (sp.sqrt(2) + 1) / 2


def test_weights_are_normalised():
    node = DataAverage(omega**2, omega, "spectrum")
    assert node.evaluate({"omega": [1, 2], "weight": [3, 1]}) == sp.Rational(7, 4)
    assert node.evaluate({"omega": [1, 2], "weight": [0, 5]}) == 4


def test_constant_factors_stand_outside():
    node = DataAverage(a * omega * V, omega, "spectrum")
    assert node == a * V * DataAverage(omega, omega, "spectrum")
    assert DataAverage(a * V, omega, "spectrum") == a * V
    assert DataAverage(0, omega) == 0


def test_derivative_goes_under_the_mean():
    derivative = NODE.diff(V)
    assert derivative == -DataAverage(t * omega**2 / (1 + V * omega) ** 2, (omega, t), "spectrum")
    difference = NODE.evaluate(DATA).diff(V) - (-derivative).evaluate(DATA) * -1
    assert sp.simplify(difference) == 0
    assert NODE.diff(omega) == 0 and NODE.diff(a) == 0


def test_node_is_rebuilt_from_its_arguments():
    assert NODE.func(*NODE.args) == NODE
    assert pickle.loads(pickle.dumps(NODE)) == NODE
    assert NODE.columns == (omega, t) and NODE.data_name == "spectrum"
    assert NODE.doit() == NODE and sp.simplify(NODE) == NODE
    assert NODE != DataAverage(NODE.integrand, (omega, t), "other")


def test_signs_follow_from_those_of_the_columns():
    assert DataAverage(omega / (1 + V * omega), omega).is_extended_positive
    assert DataAverage(t**2, t).is_extended_nonnegative
    assert NODE.is_extended_positive is None and NODE.is_extended_real


def test_printing():
    assert str(NODE) == "<omega*t/(V*omega + 1)>_spectrum"
    assert sp.latex(NODE).startswith(r"\left\langle ")
    assert sp.latex(NODE).endswith(r"\right\rangle_{\text{spectrum}}")
    assert sp.latex(NODE**2).endswith("^{2}")
    assert NODE.evalf() == NODE.subs({}) and not NODE.subs(V, 1).evalf().is_number


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"omega": [1]}, "has no column 't'"),
        ({"omega": [1], "t": [1], "u": [1]}, "has a column 'u'"),
        ({"omega": [1, 2], "t": [1]}, "need one common length > 0"),
        ({"omega": [], "t": []}, "need one common length > 0"),
        ({"omega": [-1], "t": [1]}, "omega of 'spectrum' must be positive, got -1"),
        ({"omega": [0], "t": [1]}, "must be positive"),
        ({"omega": [float("nan")], "t": [1]}, "must be finite real numbers"),
        ({"omega": [1], "t": [float("inf")]}, "must be finite real numbers"),
        ({"omega": [1], "t": [1j]}, "must be finite real numbers"),
        ({"omega": [1], "t": ["one"]}, "must be finite real numbers"),
        ({"omega": [1], "t": [True]}, "must be finite real numbers"),
        ({"omega": [1], "t": [sp.Symbol("u")]}, "must be finite real numbers"),
        ({"omega": [1], "t": [1], "weight": [0]}, "not all zero"),
        ({"omega": [1], "t": [1], "weight": [-1]}, "must be nonnegative"),
        ({"omega": [1], "t": [1], "weight": [1, 1]}, "needs 1 non-negative numbers"),
        ([1, 2], "must map column names to sequences"),
    ],
)
def test_data_that_are_refused(data, message):
    with pytest.raises(ParameterError, match=message):
        NODE.evaluate(data)


@pytest.mark.parametrize(
    ("columns", "name", "message"),
    [
        ((), "spectrum", "columns must hold at least one symbol"),
        (sp.Symbol("w"), "spectrum", "declared real"),
        ((omega, sp.Symbol("omega", real=True)), "spectrum", "'omega' is the name of something"),
        (sp.Symbol("weight", real=True), "spectrum", "'weight' is the name of something else"),
        (omega, "my data", "must be an identifier"),
        (omega, "for", "must be an identifier"),
    ],
)
def test_arguments_that_are_refused(columns, name, message):
    with pytest.raises(ParameterError, match=message):
        DataAverage(omega, columns, name)


def test_text_is_refused():
    with pytest.raises(ExpressionError, match="not the text"):
        DataAverage("omega", omega)
