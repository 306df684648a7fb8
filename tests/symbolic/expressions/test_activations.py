import dataclasses

import mpmath
import numpy as np
import pytest
import sympy as sp

from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.expressions.activations import (
    CATALOGUE,
    Activation,
    activation,
    declare_activation,
    without_declared,
    z,
)
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.expressions.parser import parse_expression
from giantstep.symbolic.expressions.regularity import Parity, require_square_integrable
from giantstep.symbolic.gaussian.expectation import expect
from giantstep.symbolic.targets.target import target

x, y = sp.symbols("x y")


@pytest.mark.parametrize("name", CATALOGUE)
def test_catalogue_entries_are_found_by_name_and_square_integrable(name):
    found = activation(name)
    assert found.name == name
    assert found.expr.free_symbols == {z}
    require_square_integrable(found.expr, z, argument=name)
    assert found.pole_distance is not None


@pytest.mark.parametrize(
    ("name", "parity", "kinks", "jumps", "pole_distance"),
    [
        ("erf", Parity.ODD, (), (), sp.oo),
        ("tanh", Parity.ODD, (), (), sp.pi / 2),
        ("relu", Parity.NEITHER, (0,), (), sp.oo),
        ("abs", Parity.EVEN, (0,), (), sp.oo),
        ("sign", Parity.ODD, (0,), (0,), sp.oo),
        ("step", Parity.NEITHER, (0,), (0,), sp.oo),
        ("softplus", Parity.NEITHER, (), (), sp.pi),
        ("swish", Parity.NEITHER, (), (), sp.pi),
        ("gelu", Parity.NEITHER, (), (), sp.oo),
        ("He4", Parity.EVEN, (), (), sp.oo),
    ],
)
def test_properties(name, parity, kinks, jumps, pole_distance):
    found = activation(name)
    assert found.parity is parity
    assert (found.kinks, found.jumps, found.pole_distance) == (kinks, jumps, pole_distance)


@pytest.mark.parametrize(
    ("spec", "name", "expr"),
    [
        ("He(3, z)/6", "He(3, z)/6", z**3 / 6 - z / 2),
        ("z**3 - 3*z", "He3", z**3 - 3 * z),
        (" erf ", "erf", sp.erf(z)),
        ("relu(z)", "relu", relu(z)),
        ("cosh", "cosh", sp.cosh(z)),
        ("He12", "He12", sp.expand(sp.hermite_prob(12, z))),
        ("tanh(2*z) + z/4", "tanh(2*z) + z/4", sp.tanh(2 * z) + z / 4),
        (sp.sin(x), "sin", sp.sin(z)),
        (sp.sqrt(x**2), "abs", sp.Abs(z)),
        (0.5 * x**2, "z**2/2", z**2 / 2),
        (sp.Max(x, 0), "relu", relu(z)),
        (sp.Max(x, -x), "abs", sp.Abs(z)),
        ("leaky_relu(1/5)", "leaky_relu(1/5)", relu(z) - relu(-z) / 5),
        ("elu(z, 1)", "elu", relu(z) + sp.exp(-relu(-z)) - 1),
        ("clip(z, -1, 1)", "hardtanh", z - relu(z - 1) + relu(-z - 1)),
        ("Max(z, 0)", "relu", relu(z)),
    ],
)
def test_specifications(spec, name, expr):
    found = activation(spec)
    assert (found.name, found.expr) == (name, expr)
    assert activation(found) is found


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("tahn", ExpressionError, r"unknown student 'tahn'; did you mean 'tanh'"),
        ("frobnicate", ExpressionError, "catalogue: erf, tanh"),
        ("tanh(x)", ExpressionError, "unknown name 'x'"),
        ("He", ExpressionError, r"write He\(3, z\)"),
        ("He65", ExpressionError, "order"),
        ("clip(z, 2, -2)", ExpressionError, "its lower end 2 is above its upper end -2"),
        ("celu(0)", ExpressionError, "its number must not be 0"),
        ("elu(z, 1, 2)", ExpressionError, r"instead of 1 or 2; write elu\(x\) or elu\(x, 1/5\)"),
        ("silu", ExpressionError, "did you mean .swish."),
        ("z - z + 3", ExpressionError, "constant 3"),
        (sp.Integer(3), ExpressionError, "exactly one free symbol, but has none"),
        (x * y, ExpressionError, "but has x, y"),
        (7, ParameterError, "not 7"),
        ("exp(z**2)", AssumptionError, "student .* has to be real with"),
        ("1/z", AssumptionError, "singular at z = 0"),
        ("sqrt", AssumptionError, "at z = 0"),
        ("abs(sin(z))", UnsupportedExpressionError, "student 'abs.sin.z..' is not supported"),
        (sp.Function("f")(x), UnsupportedExpressionError, "growth"),
    ],
)
def test_refusals(spec, error, message):
    with pytest.raises(error, match=message):
        activation(spec, argument="student")


@pytest.mark.parametrize("name", [n for n, f in CATALOGUE.items() if not f.jumps])
def test_derivative_against_numerical_differentiation(name):
    found = activation(name)
    with mpmath.workdps(30):
        point, step = sp.Rational(7, 10), sp.Rational(1, 10**8)
        difference = (found(point + step) - found(point - step)).evalf(30) / (2 * step)
        # Central difference: step**2 times the third derivative, below 1e4 here.
        assert abs(found.derivative.subs(z, point).evalf(25) - difference) < 1e-12


def test_weak_derivatives():
    assert activation("z*sign(z)").derivative == sp.sign(z)
    assert activation("relu").derivative == sp.Heaviside(z, sp.Rational(1, 2))
    with pytest.raises(AssumptionError, match=r"'sign' has no weak derivative: it jumps at z = 0"):
        _ = activation("sign").derivative


def test_call_substitutes():
    c = sp.Symbol("c", positive=True)
    assert activation("relu")(sp.sqrt(c) * x + 1) == relu(sp.sqrt(c) * x + 1)
    assert activation("He2")(3) == 8
    with pytest.raises(ParameterError, match="not the text 'x'"):
        activation("erf")("x")  # type: ignore[arg-type]


def test_arrays_have_the_values_of_the_expression():
    points = np.linspace(-4, 4, 9)
    for one in (activation(name) for name in ("tanh", "selu", "mish", "celu(2)", "step", "gelu")):
        exact = [float(one(sp.Rational(point)).evalf(20)) for point in points]
        assert one(points) == pytest.approx(exact, rel=1e-15, abs=1e-16)
        assert one(points.reshape(3, 3)).shape == (3, 3)


def test_selu_keeps_mean_and_variance():
    # Klambauer et al. (1706.02515): for this it was chosen.
    assert float(expect("selu(z)").evalf(20)) == pytest.approx(0, abs=1e-16)
    assert float(expect("selu(z)**2").evalf(20)) == pytest.approx(1, abs=3e-16)


def test_strip_of_mish_ends_at_its_pole():
    pole = sp.log(2) / 2 + 3 * sp.pi * sp.I / 4
    assert activation("mish(2*z)").pole_distance == 3 * sp.pi / 8
    denominator = (1 + sp.exp(pole)) ** 2 + 1
    assert sp.simplify(denominator) == 0


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (np.tanh, "write the text 'tanh'"),
        (np.arctan, "write the text 'atan'"),
        (sp.Max, "write the text 'max'"),
        (lambda u: u, "nothing can be derived from Python code"),
    ],
)
def test_functions_of_python_are_refused_with_what_to_write(function, advice):
    for refused in (activation, target, expect):
        with pytest.raises(ParameterError, match=advice):
            refused(function)


def test_representations_and_value_semantics():
    assert repr(activation("erf")) == "Activation('erf': erf(z))"
    assert len(repr(activation("He30"))) < 90
    assert activation("relu")._repr_latex_() == (
        r"$\displaystyle \sigma(z) = \operatorname{ReLU}\left(z\right)$"
    )
    assert activation("erf") == Activation("erf", sp.erf(z))
    with pytest.raises(dataclasses.FrozenInstanceError):
        activation("erf").name = "other"  # type: ignore[misc]


def test_declared_names_are_known_wherever_expressions_are_read():
    bent = declare_activation("bent", sp.tanh(x) + x)
    assert activation("bent") is bent and CATALOGUE["bent"] is bent
    assert declare_activation("bent", "z + tanh(z)") is bent
    assert activation("bent(2*z) - z").expr == sp.tanh(2 * z) + z
    assert parse_expression("bent(x)*y", [x, y]) == (sp.tanh(x) + x) * y
    assert without_declared("bent") == "z + tanh(z)"
    assert without_declared("y*bent(x1) + bending") == "bending + y*(x1 + tanh(x1))"
    assert without_declared("tanh(z)") == "tanh(z)"
    # What is written out has no name of a session.
    assert activation("z + tanh(z)").name == "z + tanh(z)"


@pytest.mark.parametrize(
    ("name", "expression", "error", "message"),
    [
        ("two words", "z", ParameterError, "name must be a word"),
        ("He3", "z", ParameterError, "name must be a word"),
        (3, "z", ParameterError, "name must be a word"),
        ("tanh", "z", ParameterError, "'tanh' stands for something else already"),
        ("z", "tanh(z)", ParameterError, "'z' stands for something else"),
        ("pi", "tanh(z)", ParameterError, "'pi' stands for something else"),
        ("bent", "exp(z**2)", AssumptionError, "activation bent"),
        ("bent", "bend(z)", ExpressionError, "activation bent"),
    ],
)
def test_declarations_that_are_refused(name, expression, error, message):
    with pytest.raises(error, match=message):
        declare_activation(name, expression)
    assert "bent" not in CATALOGUE
    declare_activation("bent", "tanh(z)")
    with pytest.raises(ParameterError, match="'bent' stands for something else already"):
        declare_activation("bent", "z")
