import math
import time

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from sympy import cos, cosh, exp, pi, sin, sqrt, tan

from giantstep.errors import GiantstepError, ParameterError, UnsupportedExpressionError
from giantstep.symbolic.exact.fields import (
    MAX_DEGREE,
    common_field,
    exact_field,
    independence_is_proved,
)

HALF, THIRD = sp.Rational(1, 2), sp.Rational(1, 3)
X = sp.Symbol("x")


def degree(domain):
    inner = domain.domain if domain.is_FractionField else domain
    return 1 if inner.is_QQ else inner.mod.degree()


def assert_equal_to_40_digits(domain, elements, numbers):
    for element, number in zip(elements, numbers, strict=True):
        assert abs(sp.N(domain.to_sympy(element) - number, 40)) < sp.Float(10) ** -35


@pytest.mark.parametrize(
    "numbers, expected_degree",
    [
        ([sp.S(2), HALF], 1),
        ([sqrt(2)], 2),
        ([sqrt(8), sqrt(HALF)], 2),
        ([sqrt(2), sqrt(3), sqrt(5 + 2 * sqrt(6))], 4),
        ([sqrt(6), sqrt(10), sqrt(15)], 4),
        ([sqrt(6), sqrt(10), sqrt(15), sqrt(2)], 8),
        ([sqrt(4 + sqrt(15)), sqrt(6)], 4),
        ([sqrt(1 + sqrt(2)), sqrt(2)], 4),
        # sqrt(1+√2) sqrt(√2-1) = 1: the second root adds nothing.
        ([sqrt(1 + sqrt(2)), sqrt(sqrt(2) - 1)], 4),
        ([2**THIRD, 4**THIRD, 16**THIRD], 3),
        ([2**THIRD, sqrt(2)], 6),
        ([sqrt(1 + 2**THIRD)], 6),
        ([cos(2 * pi / 5), sqrt(5)], 2),
        ([cos(pi / 7), cos(2 * pi / 7), cos(3 * pi / 7)], 3),
        ([cos(pi / 7), sqrt(7)], 6),
        ([sin(pi / 7), sqrt(7)], 6),
        ([tan(pi / 7), 1 / sin(pi / 7)], 6),
        ([sin(pi / 5), sqrt(5)], 4),
        ([sp.CRootOf(X**5 - X - 1, 0)], 5),
        ([sp.CRootOf(X**5 - X - 1, 0), sqrt(2)], 10),
        ([pi, 1 / pi**2], 1),
        ([sqrt(2 / pi), sqrt(pi)], 2),
        ([exp(-HALF), exp(1), cosh(1)], 1),
        ([exp(sqrt(2)), exp(1 - sqrt(2))], 2),
        ([sqrt(3) * exp(-HALF), (1 + exp(1)) ** 3], 2),
        ([pi**THIRD / (1 + exp(2)), cos(pi / 9)], 3),
    ],
)
def test_values_and_degrees(numbers, expected_degree):
    domain, elements = exact_field(numbers)
    assert degree(domain) == expected_degree
    assert_equal_to_40_digits(domain, elements, numbers)


@pytest.mark.parametrize(
    "number",
    [
        sqrt(2) + sqrt(3) - sqrt(5 + 2 * sqrt(6)),
        # simplify says that this one is not zero.
        cos(pi / 7) - cos(2 * pi / 7) + cos(3 * pi / 7) - HALF,
        tan(pi / 7) * tan(2 * pi / 7) * tan(3 * pi / 7) - sqrt(7),
        sqrt(1 + sqrt(2)) * sqrt(sqrt(2) - 1) - 1,
        # Ramanujan: (2^(1/3) - 1)^(1/3) = (1 - 2^(1/3) + 4^(1/3)) / 9^(1/3).
        (2**THIRD - 1) ** THIRD * 9**THIRD - 1 + 2**THIRD - 4**THIRD,
        (exp(1) - exp(-1)) / 2 - sp.sinh(1),
        exp(sqrt(2)) * exp(1 - sqrt(2)) - exp(1),
        sqrt(2 / pi) * sqrt(pi) - sqrt(2),
        (1 + pi) ** 2 - 1 - 2 * pi - pi**2,
        cosh(sqrt(2)) ** 2 - sp.sinh(sqrt(2)) ** 2 - 1,
    ],
)
def test_zeros_are_zero(number):
    domain, (element,) = exact_field([number])
    assert not element
    # One part in 10^30 is not zero.
    domain, (element,) = exact_field([number + sp.Rational(1, 10**30)])
    assert element and domain.to_sympy(element) == sp.Rational(1, 10**30)


@given(
    st.lists(st.tuples(st.integers(-4, 4), st.integers(1, 40)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(-4, 4), st.integers(1, 40)), min_size=1, max_size=3),
)
@settings(max_examples=10, deadline=None)
def test_products_of_square_roots(first, second):
    a, b = (sp.Add(*(c * sqrt(n) for c, n in part)) for part in (first, second))
    numbers = [a, b, sp.expand(a * b)]
    # At most 2^4: take few enough radicands.
    radicands = {
        n.p * n.q for number in numbers[:2] for n in (p.base for p in number.atoms(sp.Pow))
    }
    if len(radicands) > 4:
        return
    domain, (x, y, xy) = exact_field(numbers)
    assert x * y == xy
    assert degree(domain) & (degree(domain) - 1) == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_conjugates_that_nearly_agree_are_told_apart(sign):
    # c = ±(√2 - r) is some 10^-26, and x^4 - c^4 has the roots c and -c.
    r = sp.Rational(sp.floor(sqrt(2) * 10**26) + (sign < 0), 10**26)
    fourth = sp.expand((sqrt(2) - r) ** 4)
    domain, (root, c) = exact_field([fourth ** sp.Rational(1, 4), sign * (sqrt(2) - r)])
    assert degree(domain) == 2 and root == c


def test_roots_of_a_hidden_zero():
    hidden = cos(pi / 7) - cos(2 * pi / 7) + cos(3 * pi / 7) - HALF
    # Numerically, one of the two radicands is negative.
    assert [bool(e) for e in exact_field([sqrt(hidden), sqrt(-hidden)])[1]] == [False, False]
    with pytest.raises(UnsupportedExpressionError, match="divides by zero"):
        exact_field([1 / sqrt(hidden)])


def test_square_roots_of_long_integers_are_not_factored():
    # p is beyond the trial division of SymPy, which leaves sqrt(p**2*q) as it is.
    p, q = 10**20 + 39, 10**20 + 129
    long = sqrt(p**2 * q)
    assert long.is_Pow and degree(exact_field([long])[0]) == 2
    domain, (a, b) = exact_field([sqrt(q), long])
    assert degree(domain) == 2 and b == p * a


def test_independence():
    assert independence_is_proved(exact_field([sqrt(2)])[0])
    assert independence_is_proved(exact_field([cos(pi / 7), exp(cos(2 * pi / 7))])[0])
    assert not independence_is_proved(exact_field([1 / sqrt(pi), exp(-HALF)])[0])


def test_order_and_repetitions_are_kept():
    domain, elements = exact_field([sqrt(2), 1, sqrt(2), 0])
    assert [domain.to_sympy(e) for e in elements] == [sqrt(2), 1, sqrt(2), 0]
    assert exact_field([]) == (sp.QQ, [])


@pytest.mark.parametrize(
    "first, second",
    [
        ([sqrt(2)], [sqrt(3)]),
        ([THIRD], [sqrt(2 / pi)]),
        ([sqrt(2) / pi, exp(1)], [sqrt(3) * pi]),
        ([cos(pi / 7)], [sqrt(7)]),
        ([2**THIRD], [2**THIRD]),
    ],
)
def test_common_field(first, second):
    own, parts = zip(*(exact_field(numbers) for numbers in (first, second)), strict=True)
    domain, *embeddings = common_field(*own)
    for embed, elements, numbers in zip(embeddings, parts, (first, second), strict=True):
        assert_equal_to_40_digits(domain, map(embed, elements), numbers)


@pytest.mark.parametrize(
    "number, error, message",
    [
        (0.5, ParameterError, "number holds the float 0.5, which is not exact"),
        (sp.Float(1) / 3 + sqrt(2), ParameterError, "which is not exact; .*rationalized"),
        ("sqrt(2)", ParameterError, "number must be a SymPy expression"),
        (X + 1, UnsupportedExpressionError, "depends on x; give values to its symbols"),
        (sp.oo, UnsupportedExpressionError, "oo is not a real number"),
        (sp.nan, ParameterError, "number = nan is not a number"),
        (sp.sqrt(-2), UnsupportedExpressionError, "is not a real number"),
        ((-2) ** THIRD, UnsupportedExpressionError, "is not a real number"),
        (sqrt(1 - sqrt(2), evaluate=False), UnsupportedExpressionError, "is not a real number"),
        (sp.log(2), UnsupportedExpressionError, r"log\(2\) is not a real number .* exactly"),
        (cos(1), UnsupportedExpressionError, r"cos\(1\) is not a real number .* exactly"),
        (2 ** sqrt(2), UnsupportedExpressionError, "use rationals, roots"),
        (sqrt(1 + pi), UnsupportedExpressionError, "pi is not .* in sqrt"),
        (exp(pi), UnsupportedExpressionError, "pi is not .* in exp"),
        (exp(exp(1)), UnsupportedExpressionError, "is not a real number"),
        (sp.CRootOf(X**5 - X - 1, 1), UnsupportedExpressionError, "is not a real number"),
        ((1 + sqrt(2)) ** 9999, UnsupportedExpressionError, "exponents go up to 4096"),
        (cos(2 * pi / 997), UnsupportedExpressionError, "degree 498, too large"),
        (2 ** sp.Rational(1, 97), UnsupportedExpressionError, "degree 97, too large"),
        (sum(sqrt(sp.prime(k)) for k in range(1, 30)), UnsupportedExpressionError,
         "use fewer roots"),
    ],
)  # fmt: skip
def test_refusals_come_at_once(number, error, message):
    start = time.process_time()
    with pytest.raises(error, match=message):
        exact_field([number])
    # Some milliseconds; the bound is for a busy machine.
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "inner",
    [
        sqrt(2) + sqrt(3) - sqrt(5 + 2 * sqrt(6)),
        cos(pi / 7) - cos(2 * pi / 7) + cos(3 * pi / 7) - HALF,
    ],
)
def test_division_by_a_hidden_zero(inner):
    with pytest.raises(UnsupportedExpressionError, match="divides by zero"):
        exact_field([1 + 1 / inner])


def test_nested_roots_end_before_they_take_minutes():
    with pytest.raises(GiantstepError, match="nested roots"):
        exact_field([sqrt(1 + sqrt(2)), sqrt(1 + sqrt(3)), sqrt(1 + sqrt(5))])


def test_cosines_up_to_the_highest_degree():
    order = 2 * MAX_DEGREE + 3
    assert sp.totient(order) // 2 > MAX_DEGREE
    number = cos(2 * pi / 127)
    domain, (c, multiple) = exact_field([number, cos(10 * pi / 127)])
    assert degree(domain) == 63
    # cos 5t = 16 c^5 - 20 c^3 + 5 c.
    assert multiple == 16 * c**5 - 20 * c**3 + 5 * c
    assert math.isclose(float(domain.to_sympy(c)), math.cos(2 * math.pi / 127))
