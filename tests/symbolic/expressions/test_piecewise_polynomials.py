"""Nested kinks as piecewise polynomials, against evaluation and integration of what was nested."""

import random
import time

import mpmath
import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import UnsupportedExpressionError
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.expressions.piecewise_polynomials import KINKED, flattened, without_extrema

z, x, y, m = sp.symbols("z x y m", real=True)
c, q = sp.symbols("c q", positive=True)
HALF = sp.Rational(1, 2)
CLIPPED = sp.Max(-1, sp.Min(1, z))


def is_flat(expr):
    return not any(u.has(*KINKED) for kink in expr.atoms(*KINKED) for u in kink.args)


def random_kinks(draw, depth, form):
    def line():
        return sp.Rational(draw.randint(-3, 3), 2) * form + sp.Rational(draw.randint(-4, 4), 3)

    if depth == 0:
        return line()
    first = random_kinks(draw, depth - 1, form)
    second = random_kinks(draw, draw.randint(0, depth - 1), form)
    return draw.choice(
        [
            sp.Max(first, second), sp.Min(first, second), sp.Abs(first - second), relu(first),
            first - sp.Abs(second), sp.Max(first, line(), 0),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_random_nested_kinks(seed):
    draw = random.Random(seed)
    form = draw.choice([z, z, x - sp.sqrt(2) * y, m + sp.sqrt(q) * z])
    nested = random_kinks(draw, 3, form)
    found = flattened(nested)
    assert is_flat(found)
    for _ in range(10):
        point = {s: sp.Rational(draw.randint(-60, 60), 13) for s in (z, x, y, m)}
        point[q] = sp.Rational(draw.randint(1, 9), 4)
        assert abs((found - nested).xreplace(point).evalf(20)) < 1e-15


@pytest.mark.parametrize("seed", range(4))
def test_averages_of_powers_and_products(seed):
    draw = random.Random(seed)
    first, second = random_kinks(draw, 2, z), random_kinks(draw, 2, z)
    integrand = (first * second + z) ** draw.choice([1, 2, 3]) * draw.choice([1, sp.exp(z / 2)])
    found = gs.expect(integrand, z)
    assert not found.has(z)
    flat = first * second * (sp.Abs(z + 3) + sp.Abs(z - 3))
    ends = sorted({float(p) for p in gs.activation(flat).kinks} | {-14, 0, 14})
    density = sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)
    wanted = mpmath.quad(sp.lambdify(z, integrand * density, _FUNCTIONS), ends)
    assert abs(found.evalf(20) - wanted) < 1e-11 * max(1, abs(wanted))


_FUNCTIONS = [{"relu": lambda u: max(u, 0), "Max": max, "Min": min, "Abs": abs}, "mpmath"]


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        ("max(-1, min(1, z))", relu(z + 1) - relu(z - 1) - 1),
        ("min(1, max(-1, z))", relu(z + 1) - relu(z - 1) - 1),
        ("max(0, min(1, z/6 + 1/2))", relu(z + 3) / 6 - relu(z - 3) / 6),
        ("max(z, max(2*z, 3*z - 1))", 2 * z + relu(-z) + relu(z - 1)),
        ("tanh(max(-1, min(1, z)))", sp.tanh(relu(z + 1) - relu(z - 1) - 1)),
    ],
)
def test_texts_are_read_without_nested_kinks(text, flat):
    found = gs.parse_expression(text, [z])
    assert is_flat(found)
    for k in range(-20, 21):
        assert abs((found - flat).subs(z, sp.Rational(k, 4)).evalf()) < 1e-14


def test_clipped_functions_are_exact():
    for clipped in ("max(-1, min(1, z))", CLIPPED):
        moments = [gs.hermite_coefficient(clipped, k) for k in range(4)]
        # E f' = P(|z| < 1), and E f''' = φ'(-1) - φ'(1) with the density φ.
        assert moments == [0, sp.erf(sp.sqrt(2) / 2), 0, -sp.sqrt(2 / sp.pi) * sp.exp(-HALF)]
        assert gs.information_exponent(clipped) == 1
    assert gs.information_exponent("max(-1, min(1, z))**2") == 2
    # E clip² = 1 - 2 φ(1), by parts.
    assert gs.expect(CLIPPED**2, z) == 1 - sp.sqrt(2 / sp.pi) * sp.exp(-HALF)
    assert gs.expect(sp.Max(0, z), z) == 1 / sp.sqrt(2 * sp.pi)
    assert gs.expect(sp.Heaviside(relu(z), HALF), z) == sp.Rational(3, 4)


def test_bounds_may_be_parameters():
    found = gs.expect(sp.Max(-c, sp.Min(c, z)) ** 2, z)
    third = gs.expect(sp.Max(-3, sp.Min(3, z)) ** 2, z)
    assert abs((found.subs(c, 3) - third).evalf(20)) < 1e-18
    # The order of m and 1 is not known.
    assert flattened(sp.Max(m, sp.Min(1, z))).has(sp.Max)


def test_clipped_targets():
    two = gs.staircase("abs(max(-1, min(1, x1 + x2))) + max(0, min(1, x1 - x2))")
    assert two.relevant_subspace.dimension == 2 and str(two.final) == "⟨(1, -1)⟩"
    exponent = gs.isotropic_leap("max(-1, min(1, (3*x1 + 4*x2)/5))**2")
    assert int(exponent) == 2


def test_kinks_of_two_forms_stay():
    for nested in (relu(x + relu(y)), sp.Max(x, sp.Min(1, y)), sp.tanh(relu(relu(x) - y))):
        assert flattened(nested) == nested
    assert flattened(relu(sp.sign(z) - HALF)) == relu(sp.sign(z) - HALF)


def test_maxima_that_cannot_be_written_out_are_refused():
    many = sp.Max(*(sp.Function("f", real=True)(z - k) for k in range(16)))
    with pytest.raises(UnsupportedExpressionError, match=r"f has \d+ parts when max and min are"):
        without_extrema(many, "f")


def _many(count, join, piece="abs(z - {})"):
    return join.join(piece.format(k) for k in range(count))


@pytest.mark.parametrize("join", ["+", "*"])
@pytest.mark.parametrize("piece", ["abs(z - {})", "relu({}/7 - z)", "sign(z + {}/3)"])
def test_dozens_of_kinks_are_refused_by_their_number(join, piece):
    text = _many(40, join, piece)
    start = time.process_time()
    for read in (gs.activation, gs.information_exponent, lambda t: gs.leaps(t.replace("z", "x1"))):
        with pytest.raises(UnsupportedExpressionError, match="more than 16 kinked functions"):
            read(text)
    assert time.process_time() - start < 5  # some 0.3 s; all combinations of signs never end


def test_a_dozen_kinks_have_pieces():
    assert gs.activation(_many(12, "+")).kinks == tuple(range(12))
    assert gs.activation(_many(8, "*")).kinks == tuple(range(8))
    # E|z - k| = 2 φ(k) + k erf(k/√2).
    wanted = sum(
        sp.sqrt(2 / sp.pi) * sp.exp(-HALF * k**2) + k * sp.erf(k / sp.sqrt(2)) for k in range(40)
    )
    assert abs((gs.expect(_many(40, "+")) - wanted).evalf(20)) < 1e-15


@pytest.mark.parametrize("piece", ["(tanh(z - {}/7) + 1)", "(relu(z - {}/7) + 1)"])
def test_long_products_are_not_multiplied_out(piece):
    start = time.process_time()
    assert gs.expect(_many(40, "*", piece)).has(gs.GaussianExpectation)
    with pytest.raises(UnsupportedExpressionError, match="more than 5000 terms"):
        gs.leaps(_many(40, "*", piece).replace("z", "x1") + " + x2")
    assert time.process_time() - start < 5
