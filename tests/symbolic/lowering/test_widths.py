"""Files for Python refine until their nodes see what is narrow, or give no number."""

import types

import mpmath
import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import ConvergenceError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.driver import BakedTables
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.lowering.measures import curvature, integrand_widths
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

# Corners of the rules of test_driver.py and test_solver.py, each with a kernel of its own.
pytestmark = pytest.mark.slow

s, y = sp.symbols("s y", positive=True)
z = sp.Symbol("z", real=True)


@pytest.fixture(scope="module")
def rise():
    """y = 1/(1 + y) + E sigmoid(s (z - y)): almost a jump at z = y."""
    value = 1 / (1 + y) + GaussianExpectation(1 / (1 + sp.exp(-s * (z - y))), z)
    return lower(SaddlePointSystem.from_fixed_point({y: value}, name="rise", parameters=(s,)))


def load(lowered, target, tables=None):
    module = types.ModuleType("generated")
    exec(lowered.source(target, tables=tables), module.__dict__)
    return module


def test_the_width_is_the_distance_of_the_nearest_pole(rise):
    assert integrand_widths(rise) == (sp.pi / s,)


def test_nodes_in_the_file_are_not_trusted_beyond_their_distance(rise):
    nodes = tuple(float(k) / 16 for k in range(-176, 177))
    levels = []
    for stride in (1, 2, 4):
        x = nodes[::stride]
        weight = tuple(np.exp(-np.square(x) / 2) / np.sqrt(2 * np.pi) * stride / 16)
        levels.append({"weight": weight, **{str(t): x for t in rise.program.tables}})
    kernel = load(rise, "numpy", BakedTables({}, tuple(levels)))
    value, error = kernel.solve_point({"s": 3.0})["y"]
    # By parts, as in test_target_files.
    assert abs(value - 0.80041776659402542079) <= error <= 1e-12
    with pytest.raises(RuntimeError, match=r"s = 10000000\.0"):
        kernel.solve_point({"s": 1e7})


def test_an_argument_that_integrands_share_is_sampled_once(monkeypatch):
    wave = sp.tanh(s * z**3)
    equations = {y: 2 + GaussianExpectation(wave**2, z), s: 2 + GaussianExpectation(z * wave, z)}
    lowered = lower(SaddlePointSystem.from_fixed_point(equations, name="shared", parameters=()))
    sampled = []
    original = sp.Basic.subs

    def subs(self, *arguments, **options):
        if len(arguments) == 2 and arguments[0] == z:
            sampled.append((self, arguments[1]))
        return original(self, *arguments, **options)

    monkeypatch.setattr(sp.Basic, "subs", subs)
    widths = integrand_widths(lowered)
    assert sp.Rational(1, 75) / s in widths  # 1/|3 s z²| at z = ±5
    slopes = [pair for pair in sampled if pair[0] == 3 * s * z**2]
    assert len(slopes) == len(set(slopes)) == 21


def test_a_logarithm_varies_with_the_relative_change_of_its_argument():
    # log(1 + cosh(s z)/y) is no steeper than s, however steep cosh(s z) is.
    energy = GaussianExpectation(sp.log(1 + sp.cosh(s * z) / y), z)
    system = SaddlePointSystem.from_fixed_point({y: 1 + energy}, name="paramagnet", parameters=(s,))
    widths = [width.subs({y: 1, s: 3}) for width in integrand_widths(lower(system))]
    assert min(widths) >= sp.Rational(1, 3)


def test_the_logarithm_of_a_tail_varies_as_its_argument():
    # At z = -5 the tail, 1e-300, is lost beside one, and with it a slope that is taken by division.
    tail = (1 + sp.erf(s * z / sp.sqrt(2))) / 2
    two = tail + (1 + sp.erf(s * z)) / 2
    for argument, least in ((tail, 1 / 7.5), (2 * tail, 1 / 7.5), (tail**2, 1e-3), (two, 1e-3)):
        energy = GaussianExpectation(tail * sp.log(argument), z)
        system = SaddlePointSystem.from_fixed_point({y: 1 + energy}, name="side", parameters=(s,))
        widths = [width.subs({y: 1, s: 7.4}).evalf() for width in integrand_widths(lower(system))]
        assert min(widths) >= least


@pytest.mark.parametrize(
    "integrand, exact, points",
    [
        (sp.exp(s * z), sp.exp(s**2 / 2), {5: 1e-11, 20: 1e-11, 28: None}),
        (
            sp.exp(s * z**2), 1 / sp.sqrt(1 - 2 * s),
            {0.3: 1e-11, 0.49: 1e-3, 0.499: None, 0.5: None, 0.6: None},
        ),
        (
            z**2 * sp.cosh(s * z) * sp.exp(z**2 * 12 / 25),
            5 * (25 + 625 * s**2) * sp.exp(25 * s**2 / 2), {0.01: 1e-8, 1: None},
        ),
    ],
)  # fmt: skip
def test_the_mass_of_what_grows_is_reached_or_no_error_is_stated(integrand, exact, points):
    mean = GaussianExpectation(integrand, z)
    kernel = gs.lower(SaddlePointSystem.from_fixed_point({y: mean}, name="mass", parameters=(s,)))
    for value, allowed in points.items():
        if allowed is None:
            try:
                assert kernel.solve(s=value).errors["y"] == np.inf
            except ConvergenceError:
                continue
        else:
            found, right = kernel.solve(s=value), float(exact.subs(s, value))
            assert abs(found.y - right) <= min(allowed * right, 2 * found.errors["y"])


def test_digits_of_an_infinite_expectation_are_refused():
    mean = GaussianExpectation(sp.exp(s * z**2), z)
    kernel = gs.lower(SaddlePointSystem.from_fixed_point({y: mean}, name="mass", parameters=(s,)))
    with pytest.raises(ConvergenceError, match=r"infinite, or nearly so.*digits=20"):
        kernel.solve(s=0.5, digits=20)
    assert abs(kernel.solve(s=0.25, digits=20).y - mpmath.sqrt(2)) < 1e-16


def test_exponents_of_many_long_factors_are_not_multiplied_out():
    # Multiplied out, the coefficients are quotients of thousands of terms.
    weights = sp.symbols("w0:12", positive=True)
    long = sp.Mul(*(1 + w + w**2 * s for w in weights))
    exponent = -((z - y) ** 2) * long / (2 * (s + long))
    function = sp.exp(exponent)
    found = curvature(function, z)
    assert not found.has(z)
    at = {s: 2, y: 3, **{w: sp.Rational(k, 12) for k, w in enumerate(weights, start=1)}}
    assert found.xreplace(at) == sp.expand(exponent.xreplace(at)).coeff(z, 2) * 2
    # A cubic whose leading terms cancel is quadratic; one whose do not has no curvature.
    assert curvature(sp.exp((s + z) ** 3 - z**3), z) == 6 * s
    assert curvature(sp.exp((s + z) ** 3), z) is None


def test_a_scale_of_growth_is_the_same_however_the_exponent_is_written():
    def widths(integrand):
        mean = GaussianExpectation(integrand, z)
        return integrand_widths(
            lower(SaddlePointSystem.from_fixed_point({y: mean}, name="mass", parameters=(s,)))
        )

    factored = widths(sp.exp((s * z + 1) * (z / 4 - s), evaluate=False))
    expanded = widths(sp.exp(s * z**2 / 4 + z / 4 - s**2 * z - s))
    assert len(factored) == len(expanded) > 0
    for one, other in zip(factored, expanded, strict=True):
        for value in (0.1, 0.7, 1.9):
            assert float(one.subs(s, value)) == pytest.approx(
                float(other.subs(s, value)), rel=1e-12
            )
