import time

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from giantstep.errors import ExpressionError
from giantstep.symbolic.functions import relu, sigmoid
from giantstep.symbolic.parser import FUNCTIONS, MAX_LENGTH, parse_expression

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
    ],
)
def test_reads(text, expected):
    assert parse_expression(text, [z]) == expected


@pytest.mark.parametrize("k", [0, 1, 2, 7, 64])
def test_hermite_polynomials_are_the_probabilists(k):
    assert parse_expression(f"He({k}, z)", [z]) == sp.hermite_prob(k, z)


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
        ("z^2", r"'\^' has no meaning here; write \*\*"),
        ("z²", r"write \*\*2"),
        ("(z)(z)", "operator is missing"),
        ("z z", r"write z\*z"),
        ("erff(z)", "unknown name 'erff'; did you mean erf"),
        ("x*z", "unknown name 'x'"),
        ("relu", r"write relu\(z\)"),
        ("z(2)", r"write z\*"),
        ("erf(z, z)", "2 arguments instead of 1"),
        ("He(z, 3)", "order in"),
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
        ("z" * (MAX_LENGTH + 1), "characters"),
        ("9" * 31, "at most 30 digits"),
        ("007", "begins with 0"),
        ("1e400", "out of range"),
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
        ("gelu(" * 40 + "z" + ")" * 40, "degree"),
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
        *FUNCTIONS,
        "He",
        "He3",
        "z",
        "E",
        "pi",
        "0",
        "1",
        "2",
        "64",
        "0.5",
        "1e9",
        "10",
        "(",
        ")",
        "(",
        ")",
        ",",
        "+",
        "-",
        "*",
        "/",
        "**",
        "^",
        " ",
        ".",
        "_",
        "if",
        "'",
        "\0",
        "²",
        "[z]",
    ]
)


def reads_or_refuses_quickly(text):
    start = time.perf_counter()
    try:
        value = parse_expression(text, [z])
    except ExpressionError:
        pass
    else:
        assert isinstance(value, sp.Expr)
        assert value.free_symbols <= {z}
        assert not value.has(sp.nan, sp.zoo, sp.oo)
    # Some 100 times the usual time: the bound is against hanging, not for speed.
    assert time.perf_counter() - start < 2


@given(st.lists(pieces, max_size=14).map("".join))
@settings(max_examples=250, deadline=None)
def test_token_soup_is_read_or_refused(text):
    reads_or_refuses_quickly(text)


@given(st.text(max_size=30))
@settings(max_examples=150, deadline=None)
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
@settings(max_examples=200, deadline=None)
def test_grammatical_text_is_read_or_refused(text):
    reads_or_refuses_quickly(text)
