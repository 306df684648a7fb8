"""Closed forms as a textbook prints them, and against thirty digits."""

import itertools
import random

import mpmath
import pytest
import sympy as sp

import giantstep as gs
from giantstep.symbolic.expressions.averages import Average
from giantstep.symbolic.expressions.functions import OwenT
from giantstep.symbolic.expressions.textbook_forms import textbook_form

z, u, v, a = sp.symbols("z u v a", real=True)
rho, p = sp.Symbol("rho", real=True), sp.Symbol("p", positive=True)
DIGITS = 30


@pytest.mark.parametrize(
    ("integrand", "printed"),
    [
        (sp.exp(-sp.Abs(z)), "exp(1/2)*erfc(sqrt(2)/2)"),
        (sp.exp(-a * sp.Abs(z)), "exp(a**2/2)*erfc(sqrt(2)*a/2)"),
        (z**2 * sp.exp(-sp.Abs(z)), "-sqrt(2)/sqrt(pi) + 2*exp(1/2)*erfc(sqrt(2)/2)"),
        (1 / (1 + z**2), "sqrt(2)*sqrt(pi)*exp(1/2)*erfc(sqrt(2)/2)/2"),
        (sp.log(sp.Abs(z)), "-(EulerGamma + log(2))/2"),
        (sp.log(sp.Abs(z)) ** 2, "(EulerGamma + log(2))**2/4 + pi**2/8"),
        (sp.log(3 * sp.Abs(z)), "-(EulerGamma + log(2))/2 + log(3)"),
        (sp.Max(z, 0) * sp.Max(z - 1, 0), "erfc(sqrt(2)/2)/2"),
        (sp.Max(z - a, 0), "-a*erfc(sqrt(2)*a/2)/2 + sqrt(2)*exp(-a**2/2)/(2*sqrt(pi))"),
        (sp.Abs(z - a), "a*erf(sqrt(2)*a/2) + sqrt(2)*exp(-a**2/2)/sqrt(pi)"),
        (sp.erf(a * z) ** 2, "2*asin(2*a**2/(2*a**2 + 1))/pi"),
        (sp.erf(z) ** 2, "2*asin(2/3)/pi"),
        (sp.Heaviside(z - 1), "erfc(sqrt(2)/2)/2"),
        (sp.Abs(z) ** p, "2**(p/2)*gamma(p/2 + 1/2)/sqrt(pi)"),
    ],
)
def test_one_variable(integrand, printed):
    assert str(gs.expect(integrand, z)) == printed


@pytest.mark.parametrize(
    ("integrand", "correlation", "printed"),
    [
        (sp.Max(u, v), sp.sqrt(5) / 5, "sqrt(1 - sqrt(5)/5)/sqrt(pi)"),
        (sp.Abs(u - v), sp.sqrt(5) / 5, "2*sqrt(1 - sqrt(5)/5)/sqrt(pi)"),
        (sp.Heaviside(u - 1) * sp.Heaviside(v), sp.Rational(1, 2),
         "OwenT(1, sqrt(3)/3) + erfc(sqrt(2)/2)/4"),
        (sp.sign(u) * sp.sign(v), sp.Rational(1, 2), "1/3"),
        (sp.log(sp.Abs(u - v)), sp.Rational(1, 2), "-(EulerGamma + log(2))/2"),
        (sp.exp(-sp.Abs(u - v)), sp.Rational(1, 2), "exp(1/2)*erfc(sqrt(2)/2)"),
        (sp.Max(u - 1, 0) * sp.Max(v, 0), rho,
         "rho*BivariateNormalCDF(-1, 0, rho) + sqrt(1 - rho**2)*exp(-1/(2 - 2*rho**2))/(2*pi) - "
         "sqrt(2)*erfc(sqrt(2)/(2*sqrt(1 - rho**2)))/(4*sqrt(pi))"),
    ],
)  # fmt: skip
def test_two_variables(integrand, correlation, printed):
    assert str(gs.expect(integrand, gs.correlated_pair(u, v, correlation))) == printed


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        (sp.atan(sp.Rational(1, 2)) + sp.atan(sp.Rational(1, 3)), "pi/4"),
        (sp.acos(sp.Rational(1, 3)) + sp.asin(sp.Rational(1, 3)), "pi/2"),
        (1 - 2 * sp.acos(rho) / sp.pi, "2*asin(rho)/pi"),
        (1 - 2 * sp.atan(p) / sp.pi, "2*atan(1/p)/pi"),
        (sp.sqrt(3 + 2 * sp.sqrt(2)) * sp.erf(1), "(1 + sqrt(2))*erf(1)"),
        (3 * sp.log(2) + sp.log(3), "log(24)"),
        (OwenT(2, 1), "1/8 - erf(sqrt(2))**2/8"),
        (sp.asin(sp.Rational(1, 3)) + sp.asin(sp.Rational(2, 3)), "asin(1/3) + asin(2/3)"),
        (sp.acos(2), "acos(2)"),
    ],
)
def test_identities(form, printed):
    assert str(textbook_form(form)) == printed


def random_sum(source: random.Random) -> sp.Expr:
    """Draw a sum of products of what the identities are about."""
    n = sp.Rational(source.choice([-3, -1, 1, 2, 5]), source.randint(1, 4))
    atoms = [
        sp.erf(n * a), sp.erf(sp.sqrt(abs(n))), sp.exp(n * a), sp.exp(n), sp.atan(sp.sqrt(abs(n))),
        sp.atan(abs(n) / p), sp.acos(sp.Rational(1, 3)), sp.sqrt(5 - sp.sqrt(abs(n))), a, p,
        sp.sqrt(2 + sp.sqrt(3)), sp.log(12), sp.log(2), sp.EulerGamma, 1 - sp.sqrt(3), sp.S.One,
    ]  # fmt: skip
    count = source.randint(1, 5)
    return sp.Add(*(n * source.choice(atoms) * source.choice(atoms) for _ in range(count)))


@pytest.mark.parametrize("seed", range(4))
def test_forms_are_equal(seed):
    source = random.Random(seed)
    for _ in range(15):
        value = random_sum(source)
        at = {a: sp.Rational(source.randint(-9, 9), 7), p: sp.Rational(source.randint(1, 9), 5)}
        assert abs(sp.N((value - textbook_form(value)).subs(at), 30)) < 1e-25, value


def random_integrand(source: random.Random) -> sp.Expr:
    """Draw what the forms are made of: folded exponentials, error functions, angles, ramps."""

    def number():
        return sp.Rational(source.choice([-3, -2, -1, 1, 2, 3]), source.choice([1, 2, 3]))

    slope, shift = abs(number()), number()
    return source.choice(
        [
            sp.exp(-slope * sp.Abs(z)) * source.choice([1, z**2, sp.Abs(z)]),
            sp.erf(number() * z) ** 2 * source.choice([1, z**2]),
            sp.erf(number() * z) * sp.Heaviside(z - shift),
            sp.Max(number() * z - shift, 0) * source.choice([1, z, sp.Max(z, 0)]),
            sp.Abs(number() * z - shift), sp.log(slope * sp.Abs(z)) * source.choice([1, z**2]),
            z**2 / (slope + z**2), sp.exp(number() * z) * sp.Heaviside(z - shift),
            sp.Max(sp.Min(z, abs(shift)), -slope) ** 2,
            sp.erf(slope * z) * sp.erf(number() * z),
        ]
    )  # fmt: skip


def by_quadrature(f: sp.Expr) -> mpmath.mpf:
    with mpmath.workdps(DIGITS + 40):
        cuts = {mpmath.mpf(s) for s in (-18, -8, -3, 0, 3, 8, 18)}
        nodes = f.atoms(sp.Max, sp.Min, sp.Abs, sp.Heaviside)
        forms = {x for node in nodes for x in node.args if x.is_polynomial(z)} | {sp.S.Zero}
        for one, other in itertools.combinations(forms, 2):
            if (one - other).has(z):
                cuts.add(mpmath.mpf(sp.solve(one - other, z)[0].evalf(DIGITS + 40)))
        plain = f.replace(sp.Heaviside, lambda x, *_: sp.Piecewise((1, x > 0), (0, True)))
        density = sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)
        return mpmath.quad(sp.lambdify(z, plain * density, "mpmath"), sorted(cuts))


def check(seed: int) -> None:
    f = random_integrand(random.Random(seed))
    value = gs.expect(f, z)
    assert not value.has(Average), f
    exact = by_quadrature(f)
    with mpmath.workdps(DIGITS + 10):
        difference = value.evalf(DIGITS + 5)._to_mpmath(150) - exact
        assert abs(difference) < mpmath.mpf(10) ** (1 - DIGITS), f


@pytest.mark.parametrize("seed", range(8))
def test_random_integrands_to_thirty_digits(seed):
    check(seed)
