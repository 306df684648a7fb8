"""I2, I3, I4 against the published formulas of Saad and Solla, Wick's theorem and simulation."""

import random

import mpmath
import pytest
import sympy as sp

from giantstep.errors import AssumptionError, ClosedFormNotFoundError, ParameterError
from giantstep.symbolic.gaussian.dynamics_integrals import (
    four_point_integral,
    three_point_integral,
    two_point_derivative_integral,
    two_point_integral,
)

x = sp.Symbol("x", real=True)
G = sp.erf(x / sp.sqrt(2))


def entries(n):
    """Covariance with symbols, 1-based as in the paper."""

    def entry(i, j):
        i, j = sorted((i + 1, j + 1))
        return sp.Symbol(f"C{i}{j}", **({"positive": True} if i == j else {"real": True}))

    return sp.Matrix(n, n, entry)


def random_covariance(n, seed):
    generator = random.Random(seed)
    root = sp.Matrix(n, n, lambda i, j: sp.Rational(generator.randint(-4, 4), 3))
    return root * root.T + sp.eye(n) / 5


def substituted(expr, symbols, numbers):
    return expr.subs(dict(zip(symbols, numbers, strict=True))).evalf(40)


def saad_solla(c):
    """Their appendix, C_ij the covariances of the fields (arXiv 1906.08632, appendix A)."""
    arcsine = 2 / sp.pi * sp.asin(c[0, 1] / sp.sqrt((1 + c[0, 0]) * (1 + c[1, 1])))
    if c.rows == 2:
        return arcsine
    if c.rows == 3:
        root = (1 + c[0, 0]) * (1 + c[2, 2]) - c[0, 2] ** 2
        up = c[1, 2] * (1 + c[0, 0]) - c[0, 1] * c[0, 2]
        return 2 / sp.pi / sp.sqrt(root) * up / (1 + c[0, 0])
    l4 = (1 + c[0, 0]) * (1 + c[1, 1]) - c[0, 1] ** 2
    l0 = (
        l4 * c[2, 3]
        - c[1, 2] * c[1, 3] * (1 + c[0, 0])
        - c[0, 2] * c[0, 3] * (1 + c[1, 1])
        + c[0, 1] * c[0, 2] * c[1, 3]
        + c[0, 1] * c[0, 3] * c[1, 2]
    )

    def l12(k):
        return (
            l4 * (1 + c[k, k])
            - c[1, k] ** 2 * (1 + c[0, 0])
            - c[0, k] ** 2 * (1 + c[1, 1])
            + 2 * c[0, 1] * c[0, k] * c[1, k]
        )

    return 4 / sp.pi**2 / sp.sqrt(l4) * sp.asin(l0 / sp.sqrt(l12(2) * l12(3)))


@pytest.mark.parametrize(
    ("integral", "size"),
    [(two_point_integral, 2), (three_point_integral, 3), (four_point_integral, 4)],
)
def test_error_functions_follow_saad_and_solla(integral, size):
    symbols = entries(size)
    found, published = integral(G, symbols), saad_solla(symbols)
    for seed in range(5):
        numbers = random_covariance(size, seed)
        values = substituted(found, symbols, numbers), substituted(published, symbols, numbers)
        assert abs(values[0] - values[1]) < 1e-35


def test_two_point_law_is_the_arcsine_law_as_printed():
    q, t = sp.symbols("Q T", positive=True)
    r = sp.Symbol("R", real=True)
    law = [[q, r], [r, t]]
    found = two_point_integral(G, law)
    assert found == 2 / sp.pi * sp.asin(r / (sp.sqrt(1 + q) * sp.sqrt(1 + t)))
    # Price: the derivative by the covariance is the average of the slopes
    slope = two_point_derivative_integral(G, law)
    at = {q: sp.Rational(3, 2), t: sp.Rational(1, 3), r: -sp.Rational(2, 5)}
    assert abs(found.diff(r).subs(at).evalf(40) - slope.subs(at).evalf(40)) < 1e-35


def test_other_slopes_rescale_the_fields():
    a = sp.Rational(3, 2)
    numbers = random_covariance(4, 7)
    # erf(a x) = g(sqrt(2) a x), and each slope brings a factor sqrt(2) a
    scaled = four_point_integral(G, 2 * a**2 * numbers) * 2 * a**2
    assert abs(four_point_integral(sp.erf(a * x), numbers).evalf(40) - scaled.evalf(40)) < 1e-35


def wick(powers, c):
    """E of a monomial: sum over pairings, fields repeated as often as their power."""
    fields = [i for i, power in enumerate(powers) for _ in range(power)]

    def pairings(left):
        if not left:
            return sp.S.One
        first, *others = left
        return sum(
            c[first, others[k]] * pairings(others[:k] + others[k + 1 :]) for k in range(len(others))
        )

    return sp.S.Zero if len(fields) % 2 else pairings(fields)


@pytest.mark.parametrize("seed", range(3))
def test_polynomials_by_wick(seed):
    c = random_covariance(4, seed)
    assert two_point_integral(x**3, c[:2, :2]) == wick((3, 3), c)
    assert three_point_integral(x**3, c[:3, :3]) == 3 * wick((2, 1, 3), c)
    assert four_point_integral(x**2, c) == 4 * wick((1, 1, 2, 2), c)
    assert two_point_integral(x**2 - x, c[:2, :2]) == wick((2, 2), c) + wick((1, 1), c)


def test_three_point_integral_by_quadrature():
    # One integral by hand: given x1 and x3, x2 is linear; x3 given x1 smooths erf.
    c = random_covariance(3, 11)
    found = three_point_integral(G, c).evalf(30)
    with mpmath.workdps(40):
        m = [[mpmath.mpf(v.p) / v.q for v in c.row(i)] for i in range(3)]
        rest = m[2][2] - m[0][2] ** 2 / m[0][0]
        cross = m[1][2] - m[0][1] * m[0][2] / m[0][0]

        def inside(t):
            field = mpmath.sqrt(m[0][0]) * t
            mean = m[0][2] / m[0][0] * field
            smooth = mpmath.erf(mean / mpmath.sqrt(2 * (1 + rest)))
            slope = mpmath.sqrt(2 / mpmath.pi / (1 + rest)) * mpmath.exp(
                -(mean**2) / 2 / (1 + rest)
            )
            part = m[0][1] / m[0][0] * field * smooth + cross * slope
            weight = mpmath.sqrt(2 / mpmath.pi) * mpmath.exp(-(field**2) / 2)
            return weight * part * mpmath.npdf(t)

        expected = mpmath.quadgl(inside, [mpmath.mpf(k) for k in range(-14, 15, 2)])
        assert abs(mpmath.mpf(found._mpf_) - expected) < mpmath.mpf("1e-28")


def test_refusals():
    with pytest.raises(ClosedFormNotFoundError, match=r"no rule gives I2.*polynomials and error"):
        two_point_integral("tanh", sp.eye(2) + sp.ones(2))
    with pytest.raises(ParameterError, match=r"shape \(3, 3\), not \(2, 2\)"):
        three_point_integral("erf", sp.eye(2))
    with pytest.raises(AssumptionError, match="jumps"):
        four_point_integral("sign", sp.eye(4))
    with pytest.raises(AssumptionError, match=r"declare it with Symbol\('q', positive=True\)"):
        two_point_integral("erf", [[sp.Symbol("q", real=True), 0], [0, 1]])
