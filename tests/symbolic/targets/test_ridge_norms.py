"""Degrees outside a subspace by the operator D, against orthonormal frames built explicitly."""

import itertools
import math
import time

import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st

from giantstep.errors import UnsupportedExpressionError
from giantstep.symbolic.expressions.averages import Average
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.gaussian.expectation import correlated_pair, expect
from giantstep.symbolic.hermite.tensors import rotated
from giantstep.symbolic.targets.ridge_norms import (
    degree_norms,
    part_up_to,
    ridge_degree_norms,
    taylor_coefficients,
)
from giantstep.symbolic.targets.subspaces import Subspace

R = 3
ring, *_ = sp.ring("x1:4", sp.QQ)
exponents = st.tuples(*[st.integers(0, 4)] * R).filter(lambda alpha: sum(alpha) <= 5)
rationals = st.fractions(-4, 4, max_denominator=6).map(lambda q: sp.QQ(q.numerator, q.denominator))
symbols = st.dictionaries(exponents, rationals.filter(bool), max_size=8).map(ring.from_dict)
vectors = st.lists(st.integers(-3, 3), min_size=R, max_size=R)
subspaces = st.lists(vectors, max_size=3).map(lambda rows: Subspace.spanned_by(rows, R))


@st.composite
def rotations(draw):
    """Cayley's map of a skew matrix: rational and orthogonal."""
    a, b, c = (sp.Rational(draw(st.fractions(-2, 2, max_denominator=3))) for _ in range(3))
    skew = sp.Matrix([[0, a, b], [-a, 0, c], [-b, -c, 0]])
    return (sp.eye(3) - skew) * (sp.eye(3) + skew).inv()


def norm_squared(symbol):
    return sum(c**2 * math.prod(map(math.factorial, m)) for m, c in symbol.items())


def by_counting(symbol, axes):
    """{j: the terms with degree j in the coordinates that are not among the axes}."""
    parts = {}
    for m, c in symbol.items():
        j = sum(n for i, n in enumerate(m) if i not in axes)
        parts.setdefault(j, {})[m] = c
    return {j: symbol.ring.from_dict(terms) for j, terms in parts.items()}


@settings(max_examples=15)
@given(symbols, rotations(), st.integers(0, R), st.integers(0, 3))
def test_degrees_are_those_of_an_orthonormal_frame(symbol, rotation, size, degree):
    # g(x) = f(R^T x) has U = R span(e_1, .., e_size) where f has the axes.
    parts = by_counting(symbol, range(size))
    turned = rotated(symbol, rotation.T)
    U = Subspace.spanned_by(rotation[:, :size].T.tolist(), R)
    found = degree_norms(turned, U)
    expected = [norm_squared(parts.get(j, {})) for j in range(len(found))]
    assert list(found) == [sp.Rational(int(n.numerator), int(n.denominator)) if n else 0
                           for n in expected]  # fmt: skip
    assert len(found) == max(parts, default=0) + 1
    kept = sum((part for j, part in parts.items() if j <= degree), ring.zero)
    assert part_up_to(turned, U, degree) == rotated(kept, rotation.T)


@settings(max_examples=15)
@given(symbols, subspaces, st.integers(0, 4))
def test_norms_sum_to_the_second_moment_and_parts_are_orthogonal(symbol, U, degree):
    norms = degree_norms(symbol, U)
    assert all(n >= 0 for n in norms)
    total = sp.QQ.to_sympy(sp.QQ.convert(norm_squared(symbol)))
    assert sum(norms) == total
    low = part_up_to(symbol, U, degree)
    high = symbol - low
    assert sum(norms[: degree + 1]) == sp.QQ.to_sympy(sp.QQ.convert(norm_squared(low)))
    inner = sum(c * low.get(m, 0) * math.prod(map(math.factorial, m)) for m, c in high.items())
    assert inner == 0
    assert part_up_to(low, U, degree) == low
    assert part_up_to(high, U, degree) == 0


@settings(max_examples=15)
@given(symbols, subspaces, vectors)
def test_a_larger_subspace_leaves_no_larger_residual(symbol, U, vector):
    larger = U + Subspace.spanned_by([vector], R)
    before, after = degree_norms(symbol, U), degree_norms(symbol, larger)
    for degree in range(max(len(before), len(after))):
        assert sum(after[degree + 1 :]) <= sum(before[degree + 1 :])


@settings(max_examples=10)
@given(symbols, subspaces)
def test_degree_zero_is_substitution_of_the_projection(symbol, U):
    # E[f | x_U] has the symbol F(P_U xi).
    rows = U.projector().tolist()
    images = [
        sum((ring.domain.from_sympy(c) * g for c, g in zip(row, ring.gens, strict=True)), ring.zero)
        for row in rows
    ]
    expected = ring.zero
    for m, c in symbol.items():
        expected += c * math.prod(
            (g**n for g, n in zip(images, m, strict=True) if n), start=ring.one
        )
    assert part_up_to(symbol, U, 0) == expected


def test_irrational_subspaces_and_coefficients():
    field = sp.QQ.algebraic_field(sp.sqrt(3))
    _, x, y = sp.ring("x, y", field)
    root = field.from_sympy(sp.sqrt(3))
    U = Subspace.spanned_by([[1, sp.sqrt(3)]])
    # (x + sqrt(3) y)/2 and (sqrt(3) x - y)/2 are orthonormal.
    u, v = (x + root * y) / field(2), (root * x - y) / field(2)
    symbol = u**2 * v + root * v**3 + u
    assert degree_norms(symbol, U) == (1, 2, 0, 18)
    assert part_up_to(symbol, U, 1) == u**2 * v + u
    # A rational polynomial, but an irrational subspace.
    _, a, _ = sp.ring("x, y", sp.QQ)
    assert degree_norms(a, U) == (sp.Rational(1, 4), sp.Rational(3, 4))


@settings(max_examples=10)
@given(symbols, symbols, symbols, subspaces, st.integers(0, 3))
def test_irrational_coefficients_are_linear_in_their_coordinates(first, second, third, U, degree):
    # Over QQ(sqrt(2), sqrt(3)) projection is linear, and norms are quadratic.
    roots = [sp.S.One, sp.sqrt(2), sp.sqrt(6)]
    field = sp.QQ.algebraic_field(sp.sqrt(2), sp.sqrt(3))
    wide = ring.clone(domain=field)
    parts = (first, second, third)
    total = sum(
        (part.set_ring(wide) * field.from_sympy(root) for part, root in zip(parts, roots,
         strict=True)), wide.zero,
    )  # fmt: skip
    low = sum(
        (part_up_to(part, U, degree).set_ring(wide) * field.from_sympy(root)
         for part, root in zip(parts, roots, strict=True)), wide.zero,
    )  # fmt: skip
    assert part_up_to(total, U, degree) == low
    norms = degree_norms(total, U)
    inner = sum((c**2 * math.prod(map(math.factorial, m)) for m, c in low.items()), field.zero)
    assert sp.expand(sum(norms[: degree + 1]) - field.to_sympy(inner)) == 0


def test_transcendental_subspaces():
    _, x, _ = sp.ring("x, y", sp.QQ)
    norms = degree_norms(x, Subspace.spanned_by([[1, sp.exp(1)]]))
    assert [float(n) for n in norms] == pytest.approx(
        [1 / (1 + math.e**2), math.e**2 / (1 + math.e**2)], rel=1e-14
    )


def test_zero_constants_and_high_degrees():
    U = Subspace.spanned_by([[1, 1, 0]])
    assert degree_norms(ring.zero, U) == (0,)
    assert degree_norms(ring.one * 3, U) == (9,)
    assert part_up_to(ring.zero, U, 0) == 0
    _, x, _ = sp.ring("x, y", sp.QQ)
    # x = (u + v)/sqrt(2) with u in U: the degrees of v are binomial.
    norms = degree_norms(x**40, Subspace.spanned_by([[1, 1]]))
    assert norms[7] == sp.Rational(math.comb(40, 7) * math.factorial(40), 2**40)


def dense(degree, size):
    everything, *_ = sp.ring(f"x1:{size + 1}", sp.QQ)
    terms = {}
    for position, m in enumerate(itertools.product(range(degree + 1), repeat=size)):
        if sum(m) <= degree:
            terms[m] = sp.QQ(position % 17 - 8 or 1, position % 7 + 1)
    return everything.from_dict(terms)


def test_all_residuals_of_a_dense_polynomial_are_quick():
    symbol = dense(8, 5)
    assert len(symbol) == 1287
    U = Subspace.spanned_by([[1, 2, 3, 4, 5], [1, 1, 0, 2, sp.Rational(-3, 7)]])
    start = time.process_time()
    norms = degree_norms(symbol, U)
    # 0.03 s; the bound leaves room for slow machines and coverage.
    assert time.process_time() - start < 0.5
    assert sum(norms) == sum(degree_norms(symbol, Subspace.zero(5)))


def test_too_many_terms_are_refused_not_waited_for():
    many, *gens = sp.ring("x1:31", sp.QQ)
    symbol = math.prod(gens[:8], start=many.one)
    with pytest.raises(UnsupportedExpressionError, match="fewer coordinates"):
        degree_norms(symbol, Subspace.spanned_by([[1] * 30]))


x = sp.Symbol("x", real=True)
u, v = sp.symbols("u v", real=True)
HALF = sp.Rational(1, 2)


@pytest.mark.parametrize(
    "expr",
    [
        x**3 - 2 * x + 1,
        sp.asin(HALF + x / 3) * sp.sqrt(1 - (HALF + x / 3) ** 2),
        (2 + x) ** -3 * sp.exp(x * sp.sqrt(2)),
        sp.erf(1 + x) + sp.atan(x) / (1 + sp.sqrt(2) + x),
        sp.sin(x) * sp.cos(2 * x + 1) + sp.exp(-(x**2)),
        sp.acos(x / 2) / sp.pi,
        (1 + x) ** sp.Rational(-5, 3) * x**2,
        sp.Integer(7),
    ],
)
def test_coefficients_are_derivatives_at_zero(expr):
    found = taylor_coefficients(expr, x, 5)
    for n, c in enumerate(found):
        expected = expr.diff(x, n).subs(x, 0) / sp.factorial(n)
        assert float((c - expected).evalf(30)) == pytest.approx(0, abs=1e-25)
    assert taylor_coefficients(expr, x, 0) == found[:1]


@pytest.mark.parametrize(
    "expr", [1 / x, sp.sqrt(x), sp.Abs(x), sp.Heaviside(x + 1), sp.log(x), 2**x, sp.Max(x, 1)]
)
def test_what_is_not_analytic_or_not_known_has_none(expr):
    assert taylor_coefficients(expr, x, 2) is None


def test_expectations_without_a_closed_form_have_none():
    open_value = expect(sp.tanh(u) * sp.tanh(v), correlated_pair(u, v, x))
    assert open_value.has(Average) and taylor_coefficients(open_value, x, 1) is None


def test_maxima_have_the_norms_of_their_moduli():
    # A case with its condition is no expression: whether it is a polynomial was asked of it once.
    w = sp.Symbol("w", real=True)
    U = Subspace.spanned_by([[1, 1, 1]])
    rows = [
        ridge_degree_norms(sp.sign(u + v) * w + sp.erf(u) - ramp, (u, v, w), U, 2)
        for ramp in (sp.Max(v, 0), (v + sp.Abs(v)) / 2)
    ]
    for first, second in zip(*rows, strict=True):
        assert float(first) == pytest.approx(float(second), rel=1e-12)


def test_products_of_two_pairs_of_directions_outside_the_subspace():
    # The second product is 2 relu(a) relu(b) in the directions (1, -1)/√2 and (1, 1)/√2: means
    # 1/(2π) and 1/π, linear parts (x1 + x2)/√(8π) and x1/√π.
    xs = x, y, _ = sp.symbols("x1:4", real=True)
    f = relu(x) * relu(y) + relu(x - y) * relu(x + y)
    found = ridge_degree_norms(f, xs, Subspace.spanned_by([[0, 0, 1]], R), 1)
    expected = sp.Rational(9, 4) / sp.pi**2, (sp.Rational(5, 4) + sp.sqrt(2) / 2) / sp.pi
    assert all(abs(sp.N(a - b)) < 1e-14 for a, b in zip(found, expected, strict=True))
