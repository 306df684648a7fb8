"""Integrands as users write them: closed forms against quadrature to thirty digits."""

import itertools
import random

import mpmath
import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import UnsupportedExpressionError
from giantstep.symbolic.expressions.averages import Average
from giantstep.symbolic.expressions.bivariate_normal import BivariateNormalCDF
from giantstep.symbolic.expressions.functions import OwenT, relu
from giantstep.symbolic.expressions.piecewise_polynomials import by_steps
from giantstep.symbolic.printing.compiled import compiled
from giantstep.symbolic.printing.printers import CPrinter, JaxPrinter, JuliaPrinter

z = sp.Symbol("z", real=True)
u, v = sp.symbols("u v", real=True)
DIGITS = 30


def number(source: random.Random) -> sp.Rational:
    return sp.Rational(source.choice([-3, -2, -1, 1, 2, 3]), source.choice([1, 2, 3]))


def form(source: random.Random) -> sp.Expr:
    return number(source) * z + source.choice([sp.S.Zero, number(source)])


def positive(source: random.Random) -> sp.Rational:
    return sp.Rational(source.randint(1, 5), source.randint(1, 3))


def nested_extrema(source: random.Random) -> sp.Expr:
    inside = source.choice([sp.Max, sp.Min])(form(source), number(source), form(source))
    return source.choice([sp.Max, sp.Min])(number(source), inside) * source.choice([1, z, z**2])


def branches(source: random.Random) -> sp.Expr:
    first, second = sorted([number(source), number(source) + 4])
    values = [form(source), z**2 - 1, sp.exp(z), z * sp.exp(-(z**2)), sp.Integer(1)]
    one, two, three = (source.choice(values) for _ in range(3))
    return source.choice(
        [
            sp.Piecewise((one, z > second), (two, z >= first), (three, True)),
            sp.Piecewise((one, (z > first) & (z < second)), (two, True)),
            sp.Piecewise((one, (z < first) | (z > second)), (three, True)),
        ]
    )


def powers(source: random.Random) -> sp.Expr:
    alpha = sp.Rational(source.choice([-1, 1, 3, 5, 7]), source.choice([2, 3, 4]))
    modulus = sp.Abs(number(source) * z) ** (alpha if alpha > -1 else sp.Rational(1, 2))
    other = source.choice([1, z**2, relu(z), sp.Heaviside(z), sp.exp(-(z**2) / 3), sp.sign(z) * z])
    return modulus * other


def logarithms(source: random.Random) -> sp.Expr:
    inside = source.choice([sp.Abs(number(source) * z), positive(source) * z**2])
    return sp.log(inside) ** source.choice([1, 1, 2]) * source.choice(
        [1, z**2, sp.Heaviside(z), sp.sqrt(sp.Abs(z)), sp.exp(-(z**2))]
    )


def quotients(source: random.Random) -> sp.Expr:
    one = positive(source) + positive(source) * z**2
    return source.choice([1, z**2, z**4 - z, sp.exp(-(z**2) / 2)]) / source.choice(
        [one, one**2, one * (1 + z**2)]
    )


def folded(source: random.Random) -> sp.Expr:
    inside = sp.Abs(number(source) * z + source.choice([0, 1]))
    decaying = sp.exp(-positive(source) * inside) * source.choice([1, z, z**2, sp.sign(z)])
    return source.choice([decaying, sp.cos(sp.Abs(z)) * z**2, sp.sin(positive(source) * sp.Abs(z))])


def pairs(source: random.Random) -> sp.Expr:
    a, b = number(source) * u, number(source) * v
    return source.choice(
        [
            sp.Max(a, b) * sp.Min(a, b), sp.Max(a, b, 0), sp.Min(sp.Max(a, 0), b), sp.Max(a, b),
            sp.Abs(a - b) * u**2, sp.Piecewise((u**2, a > b), (u * v, True)), sp.Max(a, u + v, 0),
        ]
    )  # fmt: skip


def by_quadrature(f: sp.Expr) -> mpmath.mpf:
    """E f(z) by Gauss-Legendre or double exponential rules between all points of change."""
    # A power that is infinite at 0 takes more digits of the ends.
    with mpmath.workdps(DIGITS + (70 if f.has(sp.Abs) else 20)):
        plain = f.replace(relu, lambda x: sp.Max(0, x))
        function = sp.lambdify(z, plain * sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi), "mpmath")
        points = {sp.S.Zero}
        for node in f.atoms(sp.Max, sp.Min, sp.Abs, relu, sp.core.relational.Relational):
            forms = [*node.args, sp.S.Zero] if not isinstance(node, sp.Abs) else [*node.args, 0]
            leaves = {leaf for part in forms for leaf in _leaves(sp.sympify(part))}
            for one, other in itertools.combinations(leaves, 2):
                if (one - other).has(z):
                    points |= set(sp.Poly(one - other, z).real_roots())
        places = {p.evalf(DIGITS + 90)._to_mpmath(400) for p in points}
        cuts = sorted(places | {mpmath.mpf(s) for s in (-16, -6, -2, 2, 6, 16)})
        return mpmath.quad(function, cuts)


def _leaves(node: sp.Expr) -> set[sp.Expr]:
    if isinstance(node, sp.Max | sp.Min):
        return set().union(*map(_leaves, node.args))
    return {node} if node.is_polynomial(z) else set()


CLASSES = [nested_extrema, branches, powers, logarithms, quotients, folded]


def check(make, seed):
    source = random.Random(seed)
    f = make(source)
    result = gs.expect(f, z)
    assert not sp.sympify(result).has(Average), f
    expected = by_quadrature(f)
    with mpmath.workdps(DIGITS + 10):
        error = abs(sp.N(result, DIGITS + 10)._to_mpmath(140) - expected)
        assert error < mpmath.mpf(10) ** -DIGITS * max(1, abs(expected)), (f, result, expected)


def by_angles(f: sp.Expr, rho: sp.Rational) -> mpmath.mpf:
    """E f(u, v) for a homogeneous f: the mean over directions times a moment of the length."""
    x, y = sp.symbols("x y", real=True)
    independent = {u: x, v: rho * x + sp.sqrt(1 - rho**2) * y}
    values = [f.subs({u: s * p, v: s * q}) for p, q in ((1, 2), (-3, 1), (2, -5)) for s in (1, 2)]
    degree = next(sp.log(b / a, 2) for a, b in zip(values[::2], values[1::2], strict=True) if a)
    forms = {sp.S.Zero} | {
        leaf for node in f.atoms(sp.Max, sp.Min, sp.Abs, sp.core.relational.Relational)
        for part in node.args for leaf in _forms(part)
    }  # fmt: skip
    with mpmath.workdps(DIGITS + 20):
        function = sp.lambdify((x, y), f.xreplace(independent), "mpmath")
        cuts = {mpmath.mpf(0), 2 * mpmath.pi}
        for one, other in itertools.combinations(forms, 2):
            difference = sp.expand((one - other).xreplace(independent))
            a, b = (difference.coeff(t).evalf(50)._to_mpmath(200) for t in (x, y))
            if a or b:
                angle = mpmath.atan2(-a, b) % mpmath.pi
                cuts |= {angle, angle + mpmath.pi}
        mean = mpmath.quad(lambda t: function(mpmath.cos(t), mpmath.sin(t)), sorted(cuts))
        moment = mpmath.mpf(2) ** (mpmath.mpf(degree) / 2) * mpmath.gamma(
            1 + mpmath.mpf(degree) / 2
        )
        return mean / (2 * mpmath.pi) * moment


def _forms(node: sp.Expr) -> set[sp.Expr]:
    if isinstance(node, sp.Max | sp.Min):
        return set().union(*map(_forms, node.args))
    return {node}


def check_pair(seed):
    source = random.Random(seed)
    f, rho = pairs(source), sp.Rational(source.choice([-1, 1, 2]), 3)
    result = gs.expect(f, gs.correlated_pair(u, v, rho))
    assert not sp.sympify(result).has(Average), f
    expected = by_angles(f, rho)
    with mpmath.workdps(DIGITS + 10):
        error = abs(sp.N(result, DIGITS + 10)._to_mpmath(140) - expected)
        assert error < mpmath.mpf(10) ** -DIGITS * max(1, abs(expected)), (f, rho, result)


@pytest.mark.parametrize("seed", range(6))
def test_closed_forms_over_pairs(seed):
    check_pair(seed)


@pytest.mark.parametrize("make", CLASSES)
def test_closed_forms(make):
    for seed in range(3):
        check(make, seed)


@pytest.mark.slow
def test_a_hundred_closed_forms():
    for seed in range(100, 115):
        check_pair(seed)
        for make in CLASSES:
            check(make, seed)


def test_hard_tanh_is_the_same_in_both_spellings():
    clipped = sp.Max(-1, sp.Min(1, z))
    ramps = relu(z + 1) - relu(z - 1) - 1
    assert gs.activation(clipped).expr == ramps
    x1, x2 = sp.symbols("x1 x2", real=True)
    first = gs.staircase(clipped.subs(z, x1) + x1 * x2)
    assert first == gs.staircase(ramps.subs(z, x1) + x1 * x2)
    assert gs.information_exponent(clipped) == 1
    inside = sp.Piecewise((-1, z < -1), (1, z > 1), (z, True))
    assert sp.expand(gs.activation(inside).expr - ramps) == 0


def test_moments_of_moduli_and_lengths():
    a = sp.Symbol("a", positive=True)
    moment = 2 ** (a / 2) * sp.gamma(a / 2 + sp.Rational(1, 2)) / sp.sqrt(sp.pi)
    assert gs.expect(sp.Abs(z) ** a, z) == moment
    assert gs.expect(sp.log(sp.Abs(z)), z).expand() == -sp.log(2) / 2 - sp.EulerGamma / 2
    one = sp.sqrt(2) * sp.sqrt(sp.pi) * sp.exp(sp.Rational(1, 2)) * sp.erfc(sp.sqrt(2) / 2) / 2
    assert gs.expect(1 / (1 + z**2), z) == one
    plane = gs.correlated_pair(u, v, 0)
    assert gs.expect(sp.sqrt(u**2 + v**2), plane) == sp.sqrt(2) * sp.sqrt(sp.pi) / 2
    assert gs.expect(u**2 / (u**2 + v**2), plane) == sp.Rational(1, 2)
    assert gs.expect(sp.log(u**2 + v**2), plane) == sp.log(2) - sp.EulerGamma


def test_what_diverges_or_may_stays_open():
    b = sp.Symbol("b", real=True)
    for f in (1 / z**2, 1 / sp.Abs(z), 1 / (z**2 - 1), sp.Abs(z) ** b, sp.exp(z**2) / (1 + z**2)):
        assert gs.expect(f, z).has(Average)


def test_branches_that_depend_on_parameters_alone_stay():
    h = sp.Symbol("h", real=True)
    f = sp.Piecewise((z, h > 0), (z**2, True))
    assert by_steps(f, [z]) == f
    assert by_steps(sp.Piecewise((z, z > h), (0, True)), [z]).has(sp.Heaviside, relu)


def test_forms_that_are_no_length_name_what_is_possible():
    x1, x2 = sp.symbols("x1 x2")
    with pytest.raises(UnsupportedExpressionError, match="the length of coordinates, such as"):
        gs.target(sp.sqrt(x1**2 + 2 * x2**2))


LEVELS = [
    (1.0, 0.5, 0.3), (0.0, 0.0, 0.3), (0.0, 1.0, -0.5), (-1.0, 0.0, 0.5), (1.0, -2.0, 0.5),
    (1.0, 1.0, 1.0), (1.0, -1.0, -1.0), (2.0, 2.0, 0.999999), (0.0, 0.0, -1.0), (1.0, 2.0, 1.0),
]  # fmt: skip


@pytest.mark.parametrize("levels", LEVELS)
def test_the_bivariate_normal_is_code_in_every_target(levels):
    h, k, rho = sp.symbols("h k rho", real=True)
    function = BivariateNormalCDF(h, k, rho)
    exact = float(BivariateNormalCDF(*map(sp.Rational, map(str, levels))).evalf(20))
    context = mpmath.mp.clone()
    for code in (
        sp.lambdify([h, k, rho], function, "scipy"),
        *(compiled(function, [h, k, rho], target) for target in ("numpy", "python", context)),
    ):
        assert abs(float(code(*levels)) - exact) < 1e-15


@pytest.mark.parametrize("printer", [CPrinter, JuliaPrinter, JaxPrinter])
def test_the_bivariate_normal_prints(printer):
    h, k, rho = sp.symbols("h k rho", real=True)
    assert "fn_owen_t" in printer().print(BivariateNormalCDF(h, k, rho))


def test_results_with_owens_t_become_functions_of_arrays():
    rho = sp.Symbol("rho", real=True)
    closed = gs.dual_activation(sp.Max(-1, sp.Min(1, z)), rho).closed_form
    for code in (sp.lambdify(rho, closed, "scipy"), compiled(closed, [rho], "numpy")):
        for value in (-0.5, 0.25):
            exact = closed.subs(rho, sp.Rational(str(value)))
            assert abs(code(value) - float(exact)) < 1e-14
    h, slope = sp.symbols("h a", real=True)
    assert abs(sp.lambdify([h, slope], OwenT(h, slope), "scipy")(1.0, 0.5) - 0.04306469112) < 1e-10


def test_angles_are_arcsines():
    assert gs.expect(5 * sp.erf(z) ** 2, z) == 10 * sp.asin(sp.Rational(2, 3)) / sp.pi
