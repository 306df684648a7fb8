import time

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import ExpressionError, ParameterError
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.expressions.bivariate_normal import BivariateNormalCDF
from giantstep.symbolic.expressions.expression_text import PARTIAL_FUNCTIONS
from giantstep.symbolic.expressions.functions import OwenT, relu, sigmoid
from giantstep.symbolic.expressions.parser import (
    FUNCTIONS,
    MAX_LENGTH,
    MAX_VARIABLES,
    declared_symbols,
    parse_expression,
    parse_target,
)

z = sp.Symbol("z", real=True)
x1, x2 = sp.symbols("x1 x2", real=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("z**3 - 3*z", z**3 - 3 * z),
        ("He(3, z)/6", z**3 / 6 - z / 2),
        ("He2(2*z)", 4 * z**2 - 1),
        ("He3", z**3 - 3 * z),
        ("0.1*z + 1e-3", z / 10 + sp.Rational(1, 1000)),
        ("1e30*z + 1E-0003", 10**30 * z + sp.Rational(1, 1000)),
        ("-z**2", -(z**2)),
        ("2**-1*z", z / 2),
        ("z**(1/2)*z**0.5", z),
        ("tanh(2*z) + z/4", sp.tanh(2 * z) + z / 4),
        ("abs(z) + relu(-z)", sp.Abs(z) + relu(-z)),
        ("swish(z)", z * sigmoid(z)),
        ("gelu(z)", z * (1 + sp.erf(z / sp.sqrt(2))) / 2),
        ("E**(-z**2/2)/sqrt(2*pi)", sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)),
        ("  ((z))\n+ 1 ", z + 1),
        ("+".join(["z"] * 500), 500 * z),
        ("2*(z + 1)*z/(z - 3)", 2 * z * (z + 1) / (z - 3)),
        ("sqrt(5 + 2*sqrt(6))*z", sp.sqrt(5 + 2 * sp.sqrt(6)) * z),
        ("exp(-1/2)*cos(2*pi/5)*z", sp.exp(-sp.Rational(1, 2)) * sp.cos(2 * sp.pi / 5) * z),
        ("max(z, 1) - min(z, 1)", relu(z - 1) + relu(1 - z)),
        ("OwenT(z, 1/2) + Phi2(z, 0, 1/3)", OwenT(z, "1/2") + BivariateNormalCDF(z, 0, "1/3")),
        ("asin(2/3)*z/pi", sp.asin(sp.Rational(2, 3)) * z / sp.pi),
    ],
)
def test_reads(text, expected):
    assert parse_expression(text, [z]) == expected


def test_variables_by_name_or_by_mapping():
    assert parse_expression("x1*x2 + He(2, x1)", [x1, x2]) == x1 * x2 + x1**2 - 1
    assert parse_expression("w + pi", {"w": x1, "pi": x2}) == x1 + x2


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_is_read(name):
    assert parse_expression(f"{name}(z)", [z]).free_symbols == {z}


def test_result_is_exact():
    assert not parse_expression("0.3*tanh(1.5*z) + 2.50", [z]).atoms(sp.Float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("2z", r"write 2\*z"),
        ("ｔanh(z)", "'ｔanh' is not in plain letters; write tanh"),  # noqa: RUF001
        ("z^2", r"'\^' has no meaning here; write \*\*"),
        ("z²", r"write \*\*2"),
        ("(z)(z)", "operator is missing"),
        ("z z", r"write z\*z"),
        ("erff(z)", "unknown name 'erff'; did you mean erf"),
        ("ReLU(z)", "did you mean relu?"),
        ("e**z", "did you mean E?"),
        ("arcsin(1/2)", "did you mean asin?"),
        ("ln(2)*z", "did you mean log?"),
        ("π*z", "did you mean pi?"),
        ("sin z", r"write sin\(z\)"),
        ("|z|", r"write abs\("),
        ("√2", r"write sqrt\("),
        ("x*z", "unknown name 'x'"),
        ("relu", r"write relu\(z\)"),
        ("z(2)", r"write z\*"),
        ("erf(z, z)", "2 arguments instead of 1"),
        ("He(z, 3)", "order in"),
        ("max(z)", r"1 arguments instead of 2; write max\(x, y\)"),
        ("Phi2", r"'Phi2' is a function; write Phi2\(x, y, rho\)"),
        ("Phi2(z, z, 2)", "rho has to be a correlation"),
        ("asin(2)*z", "not real-valued"),
        ("acosh(1/2)*z", "not real-valued"),
        ("max(exp(9)**exp(9), z)", "exponent|constant"),
        ("erff(z) + factorial(z)", "unknown name 'erff'"),
        ("\\input{z}", "no meaning here"),
        ("z" * 100_000, "characters"),
        ("He(65, z)", "order in"),
        ("__import__('os')", "no meaning here"),
        ("__import__(z)", "unknown name '__import__'"),
        ("z.real", "attributes do not exist"),
        ("[z for z in z]", "round parentheses"),
        ("'z'", "no meaning here"),
        ("lambda: z", "'lambda' is not a name"),
        ("z < 1", "comparison"),
        ("z if z else z", "'if' is not a name"),
        ("erf(*z)", "not an expression"),
        ("z, z", "not an expression"),
        ("z//2", "not an operator"),
        ("z +", "invalid syntax"),
        ("erf(z", "parentheses"),
        ("z\0", "no meaning here"),
        ("\ud800", "no meaning here"),
        ("(" * 400, "nested too deeply"),
        ("-" * 900 + "z", "nested too deeply"),
        ("asinh(" * 11 + "z" + ")" * 11, "at most 10 inside one another"),
        ("z" * (MAX_LENGTH + 1), "characters"),
        ("9" * 31, "at most 30 digits"),
        ("007", "begins with 0"),
        ("1e400", "out of range"),
        ("1e31", "decimal exponents from -30 to 30"),
        ("1e-31", "decimal exponents from -30 to 30"),
        ("9**9**9**9", "exponent"),
        ("((9**64)**64)**64", "too large a number"),
        ("((z + 1)**64)**64", "degree"),
        ("z**1000", "exponent"),
        ("z**z", "exponent"),
        ("exp(exp(exp(exp(9))))", "constant"),
        ("1/0", "divides by zero"),
        ("z/(z - z)", "divides by zero"),
        ("0**-1", "divides by zero"),
        ("log(0)", "infinite or undefined"),
        ("tan(pi/2)", "infinite or undefined"),
        ("sqrt(-1)*z", "not real-valued"),
        ("(-8)**(1/3)", "not real-valued"),
        ("gelu(" * 9 + "z" + ")" * 9, "degree"),
    ],
)
def test_refuses_in_one_line_that_names_argument_and_remedy(text, message):
    with pytest.raises(ExpressionError, match=message) as caught:
        parse_expression(text, [z], argument="target")
    assert str(caught.value).startswith("cannot read target ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_other_types_are_refused():
    with pytest.raises(ExpressionError, match="not a text"):
        parse_expression(3, [z])  # type: ignore[arg-type]


pieces = st.sampled_from(
    [
        *FUNCTIONS, "He", "He3", "z", "E", "pi", "0", "1", "2", "64", "0.5", "1e9", "10", "(", ")",
        "(", ")", ",", "+", "-", "*", "/", "**", "^", " ", ".", "_", "if", "'", "\0", "²", "[z]",
    ]
)  # fmt: skip


def reads_or_refuses_quickly(text):
    start = time.process_time()
    try:
        value = parse_expression(text, [z])
    except ExpressionError:
        pass
    else:
        assert isinstance(value, sp.Expr)
        assert value.free_symbols <= {z}
        assert not value.has(sp.nan, sp.zoo, sp.oo)
    # Some 100 times the usual time: the bound is against hanging, not for speed.
    assert time.process_time() - start < 2


@given(st.one_of(st.lists(pieces, max_size=14).map("".join), st.text(max_size=30)))
@settings(max_examples=60, deadline=None)
def test_any_text_is_read_or_refused(text):
    reads_or_refuses_quickly(text)


leaves = st.sampled_from(["z", "1", "2", "0", "64", "0.5", "pi", "-3", "123456789012345678901234"])
grammatical = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**"]), inner).map(
            lambda parts: "({}){}({})".format(*parts)
        ),
        st.tuples(st.sampled_from([*FUNCTIONS, "He3", "He64"]), inner).map(
            lambda parts: "{}({})".format(*parts)
        ),
    ),
    max_leaves=8,
)


@given(grammatical)
@settings(max_examples=60, deadline=None)
def test_grammatical_text_is_read_or_refused(text):
    reads_or_refuses_quickly(text)


# Targets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected", "dimension"),
    [
        ("x1*x2 + He(3, x1)", x1 * x2 + x1**3 - 3 * x1, 2),
        ("x2", x2, 2),
        ("max(x1, x2)", x2 + relu(x1 - x2), 2),
        ("tanh(x)", sp.tanh(x1), 1),
        ("He3(z)/6", (x1**3 - 3 * x1) / 6, 1),
        ("He3(x1)", x1**3 - 3 * x1, 1),
        (r"\mathrm{He}_{2}\left(x_{1}\right) x_{2}", (x1**2 - 1) * x2, 2),
        (r"\tanh\left(z\right)", sp.tanh(x1), 1),
        ("x_1 + x_1x_2^{2} e^{-1/2}", x1 + x1 * x2**2 * sp.exp(sp.Rational(-1, 2)), 2),
        ("He3", x1**3 - 3 * x1, 1),
        ("3", sp.Integer(3), 0),
        ("x2 - x2", sp.S.Zero, 2),
    ],
)
def test_targets(text, expected, dimension):
    expr, variables = parse_target(text)
    assert expr == expected
    assert variables == tuple(sp.Symbol(f"x{i}", real=True) for i in range(1, dimension + 1))


def test_coordinates_up_to_the_highest_index():
    expr, variables = parse_target(f"x{MAX_VARIABLES} + x3")
    assert len(variables) == MAX_VARIABLES
    assert expr.free_symbols < set(variables)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x1 + x", "unknown name 'x'"),
        ("x + z", "unknown name"),
        ("x0", "unknown name 'x0'"),
        ("x01 + x1", "unknown name 'x01'"),
        ("x65", "x65 is out of range; use coordinates x1 to x64"),
        ("x99999999999999999999", "out of range"),
        ("y1", "unknown name 'y1'"),
        ("x_1**2", "unknown name 'x_1'"),
        ("tanh(x_1)", "unknown name 'x_1'; did you mean x1"),
        (r"\tanh(x2)", r"ambiguous; write x_\{2\} for an index"),
        ("x1 ^ 2", "write \\*\\* for powers"),
        ("relu", r"write relu\(x1\)"),
        ("", "empty"),
        ("x1" * 40_000, "characters"),
        (r"\frac{1}{x_{65}}", "x65 is out of range"),
        (r"\input{x_{1}}", "not a command"),
        ("\\" * 100_000, "characters"),
    ],
)
def test_targets_are_refused(text, message):
    with pytest.raises(ExpressionError, match=message) as caught:
        parse_target(text, argument="teacher")
    assert str(caught.value).startswith("cannot read teacher ")


def test_targets_are_texts():
    with pytest.raises(ExpressionError, match="not a text"):
        parse_target(3)  # type: ignore[arg-type]


@given(st.one_of(st.lists(pieces, max_size=12).map("".join), st.text(max_size=30)))
@settings(max_examples=40, deadline=None)
def test_any_target_is_read_or_refused(text):
    try:
        expr, variables = parse_target(text)
    except ExpressionError:
        return
    assert expr.free_symbols <= set(variables)


@pytest.mark.parametrize("name", sorted(PARTIAL_FUNCTIONS))
def test_partial_functions_are_no_activations(name):
    assert parse_expression(f"{name}(z)", [z]) == PARTIAL_FUNCTIONS[name](z)
    with pytest.raises(ValueError, match=f"{name}"):
        activation(f"{name}(z)")


# Declared symbols ---------------------------------------------------------------------------------


def test_parameters_in_words():
    symbols = declared_symbols({"a": "positive", "rho": "real", "n": "integer, nonnegative"})
    assert symbols["a"] == sp.Symbol("a", positive=True)
    assert symbols["rho"] == sp.Symbol("rho", real=True)
    assert symbols["n"] == sp.Symbol("n", integer=True, nonnegative=True)
    # Either of two equal symbols may come out of a cache: they are written alike.
    assert sp.srepr(list(symbols.values())) == (
        "[Symbol('a', positive=True), Symbol('rho', real=True), "
        "Symbol('n', integer=True, nonnegative=True)]"
    )
    assert parse_expression("abs(a*rho)", symbols) == symbols["a"] * sp.Abs(symbols["rho"])


def test_a_declared_name_comes_before_a_function():
    step = declared_symbols({"step": "positive"})
    assert parse_expression("step**2", step) == step["step"] ** 2


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"a": "positve"}, "parameter 'a' is declared 'positve'; use real, positive"),
        ({"a": ""}, "parameter 'a' has no kind"),
        ({"a": "complex"}, "declared 'complex'"),
        ({"a": "positive negative"}, "cannot be positive and negative at once"),
        ({"2a": "real"}, "'2a' is not a name"),
        ({"pi": "real"}, "neither pi nor E"),
        ({"α": "real"}, "ASCII letters"),
        ({"a.b": "real"}, "not a name"),
    ],
)
def test_declarations_are_refused(kinds, message):
    with pytest.raises(ParameterError, match=message):
        declared_symbols(kinds)


@pytest.mark.parametrize(
    "text",
    [
        "Heaviside(asin(3) + z*z)", "max(sqrt(-1)*z, 1)", "sign(log(-2) + z)", "relu(acos(2)*z)",
        "abs(atanh(2))*z", "min(z, acosh(1/2))", "step(z + (-8)**(1/3))", "OwenT(asin(2), z)",
    ],
)  # fmt: skip
def test_complex_constants_inside_functions_are_refused(text):
    with pytest.raises(ExpressionError, match="is not real-valued; keep square roots"):
        parse_expression(text, [sp.Symbol("z", real=True)])
