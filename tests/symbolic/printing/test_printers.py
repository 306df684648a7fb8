"""Printers: the text computes the expression, and what is unknown is refused by name."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special
import sympy as sp

from giantstep.derivations.spiked_random_features import physics as model
from giantstep.errors import EmissionError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.printing.printers import (
    CPrinter,
    MpmathPrinter,
    NumpyPrinter,
    ScalarPrinter,
    helper_definitions,
)
from giantstep.symbolic.systems.random_matrix import MarchenkoPasturAverage, Resolvent

kappa = model.kappa
x, y = sp.symbols("x y", real=True)
z = sp.Symbol("z", real=True)
HALF = sp.Rational(1, 2)


# -- printers

PRINTED = [
    x**2, x**4, x**5, x**-1, x**-3, x**-7, x ** sp.Rational(3, 2), x ** -HALF, sp.sqrt(x), x**y,
    (x + y) ** 3, (x * y) ** -2, -(x**2), (-x) ** 3, 2**x, x / y / (1 + x), x - (y - x * y),
    -sp.Rational(2, 7) * x / y, sp.Rational(1, 3), sp.Rational(10**400, 10**400 + 3) * x,
    sp.Rational(2**60 + 1, 3), sp.Integer(-3) * x, sp.Integer(2**70), sp.pi * x, sp.E**x,
    sp.EulerGamma, sp.exp(-x) ** 2, sp.tanh(x) ** 5, 1 / sp.tanh(x), sp.erf(x) - sp.erfc(y),
    sp.log(x) * sp.sin(x) * sp.cos(y), sp.atan(x / y), sp.Float("0.1") * x, sp.Float("1e-300"),
    sp.Piecewise((x, x > y), (y, x > HALF), (x * y, True)),
    2 * sp.Piecewise((x, x >= 1), (y, True)) ** 2 - 1,
]  # fmt: skip
POINT = {x: 0.7, y: 1.3}
EXACT = {s: sp.Rational(v) for s, v in POINT.items()}


@pytest.mark.parametrize("expr", PRINTED, ids=lambda e: str(e)[:40])
@pytest.mark.parametrize("printer", [ScalarPrinter, NumpyPrinter, MpmathPrinter])
def test_printed_text_computes_the_expression(printer, expr):
    text = printer().print(expr)
    values = {str(s): v for s, v in POINT.items()}
    exact = expr.subs(EXACT).evalf(40)
    if printer is MpmathPrinter:
        ctx = mpmath.mp.clone()
        ctx.dps = 30
        found = eval(text, {"ctx": ctx}, {k: ctx.mpf(v) for k, v in values.items()})
        exact = expr.xreplace({s: sp.Float(v, 45) for s, v in POINT.items()}).evalf(40)
        tolerance = 1e-15 if expr.has(sp.Float) else 1e-28
        assert abs(sp.Float(found, 35) / exact - 1) < tolerance
    else:
        namespace = {"math": math, "np": np, "scipy": scipy}
        exec(helper_definitions(printer, text), namespace)
        found = eval(text, namespace, values)
        assert float(found) == pytest.approx(float(exact), rel=4e-15)  # powers lose some units


X = sp.Symbol("X", positive=True)
UNKNOWN = [
    (sp.gamma(x), "gamma"),
    (sp.I * x, "ImaginaryUnit"),
    (x + sp.oo * sp.Symbol("p"), "Infinity"),
    (sp.nan, "NaN"),
    (GaussianExpectation(sp.tanh(x * z), z) + 1, "GaussianExpectation"),
    (MarchenkoPasturAverage(1 / (1 + X), X, x), "MarchenkoPasturAverage"),
    (Resolvent(x, y, 2), "Resolvent"),
    (sp.floor(x), "floor"),
    (sp.Function("mystery")(x), "mystery"),
    (sp.Integral(sp.exp(x * y), (x, 0, y)), "Integral"),
    (sp.DiracDelta(x), "DiracDelta"),
    (sp.Piecewise((x, (x > 0) & (y > 0)), (y, True)), "And"),
    (sp.Piecewise((x, x > 0)), "last branch"),
    (sp.Matrix([x]), "Matrix"),
]


@pytest.mark.parametrize("printer", [ScalarPrinter, NumpyPrinter, MpmathPrinter, CPrinter])
@pytest.mark.parametrize(("expr", "name"), UNKNOWN, ids=[name for _, name in UNKNOWN])
def test_unknown_nodes_are_refused_by_name(printer, expr, name):
    with pytest.raises(EmissionError, match=name):
        printer().print(expr)


@pytest.mark.parametrize("printer", [ScalarPrinter, NumpyPrinter, MpmathPrinter])
def test_max_min_and_steps_with_another_value_at_zero(printer):
    expr = sp.Max(x, y, 1) - 2 * sp.Min(x, y) + sp.Heaviside(x, 0) + 3 * sp.Heaviside(y, 1)
    namespace = {"np": np, "math": math, "ctx": mpmath.mp.clone()}
    f = eval(f"lambda x, y: {printer().print(expr)}", namespace)
    for a, b in [(0.0, 0.0), (2.5, -1.0), (-1.0, 3.0)]:
        assert float(f(a, b)) == float(expr.subs({x: sp.Rational(a), y: sp.Rational(b)}))


def test_constants_are_rounded_once():
    assert ScalarPrinter().print(sp.sqrt(2) * x / sp.sqrt(sp.pi)) == "0.7978845608028654*x"
    assert ScalarPrinter().print(sp.exp(sp.Rational(1, 10**9)) - 1) == "1.0000000005e-09"
    assert ScalarPrinter().print(2 * x / 3) == "((2.0 / 3.0))*x"
    assert "ctx.pi" in MpmathPrinter().print(sp.pi * x)


def test_functions_of_the_program_itself_are_calls():
    root = sp.Function("proximal_1")
    with pytest.raises(EmissionError, match="proximal_1"):
        ScalarPrinter().print(root(x, y))
    printer = ScalarPrinter(own_functions={"proximal_1": "root_1"})
    assert printer.print(1 + root(x, 2)) == "root_1(x, 2.0) + 1.0"


def test_a_refusal_says_what_is_known_and_how_to_add():
    with pytest.raises(EmissionError, match=r"known functions: .*erfcx") as refusal:
        NumpyPrinter().print(sp.zeta(x))
    assert "register_function" in str(refusal.value)


def test_numbers_beyond_floats_are_refused():
    with pytest.raises(EmissionError, match="no number as large as"):
        ScalarPrinter().print(sp.Integer(10) ** 400)
    assert MpmathPrinter().print(sp.Integer(10) ** 20) == "1" + 20 * "0"
