"""Unknowns inside intervals, first values from afar, and solutions followed from easier equations.

The binary perceptron: Györgyi, Phys. Rev. A 41, 7097 (1990); Sompolinsky, Tishby, Seung, Phys. Rev.
Lett. 65, 1683 (1990). Its fixed points at α = 1.4 are compared with an iteration of the state
evolution on a quadrature of this file's own.
"""

import math

import numpy as np
import pytest
import sympy as sp
from scipy.special import log_ndtr

import giantstep as gs
from giantstep.errors import ConvergenceError, ParameterError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.systems.saddle_point import FreeEnergy, SaddlePointSystem

q, conjugate, alpha = sp.symbols("q qhat alpha", positive=True)
x, y = sp.symbols("x y", real=True)
z = sp.Symbol("z", real=True)
UNIT = sp.Interval.open(0, 1)


def perceptron(**options):
    """Return a binary teacher and student with equal priors, Bayes-optimal."""
    field = z * sp.sqrt(q) / sp.sqrt(1 - q)
    tail = sp.erfc(-field / sp.sqrt(2)) / 2
    energy = -conjugate * (1 + q) / 2
    energy += GaussianExpectation(
        sp.log(2 * sp.cosh(sp.sqrt(conjugate) * z + conjugate)), z
    ) + 2 * alpha * GaussianExpectation(tail * sp.log(tail), z)
    return SaddlePointSystem.from_free_energy(
        FreeEnergy(energy, (q,), (conjugate,), (alpha,)), name="perceptron", **options
    )


@pytest.fixture(scope="module")
def kernel():
    return gs.lower(perceptron(domains={q: UNIT}))


def state_evolution(ratio, overlap):
    """Iterate q = E tanh(√q̂ z + q̂), q̂ = α E φ²/Φ/(π(1 - q)) to its fixed point."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    weights = weights / weights.sum()
    fine = np.linspace(-12, 12, 4001)
    normal = np.exp(-(fine**2) / 2) / math.sqrt(2 * math.pi) * (fine[1] - fine[0])
    for _ in range(4000):
        t = fine * math.sqrt(overlap / (1 - overlap))
        hazard = np.exp(-(t**2) - math.log(2 * math.pi) - log_ndtr(t))
        other = 2 * ratio / (1 - overlap) * np.sum(normal * hazard)
        overlap = weights @ np.tanh(math.sqrt(other) * nodes + other)
    return overlap


@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.2, 1.4])
def test_an_overlap_inside_the_unit_interval_is_found(kernel, ratio):
    found = kernel.solve(alpha=ratio)
    assert found.q == pytest.approx(state_evolution(ratio, 0.5), abs=1e-8)
    assert "q_odds" not in found.values


def test_a_start_is_one_of_the_unknown_and_not_of_its_coordinate(kernel):
    assert kernel.solve(alpha=1.4, start={"q": 0.96}).q == pytest.approx(0.95459864, abs=1e-8)
    again = kernel.solve(alpha=1.4, start=kernel.solve(alpha=1.39))
    assert again.q == pytest.approx(0.78969904, abs=1e-8)
    with pytest.raises(ParameterError, match=r"start of q must be inside .*\(0, 1\), got 1.2"):
        kernel.solve(alpha=1.4, start={"q": 1.2})


@pytest.mark.slow
def test_digits_and_derivatives_go_through_the_coordinate(kernel):
    digits = kernel.solve(alpha=1.0, digits=30)
    assert abs(digits.q - kernel.solve(alpha=1.0).q) < 1e-11
    slope = kernel.sensitivities(alpha=1.0)
    step = 1e-5
    up, down = (kernel.solve(alpha=1.0 + s).q for s in (step, -step))
    assert slope["q", "alpha"] == pytest.approx((up - down) / (2 * step), rel=1e-6)


@pytest.mark.parametrize(
    ("domain", "root"),
    [
        (sp.Interval.open(0, 1), 0.5),
        (sp.Interval.open(0, sp.oo), 0.5),
        (sp.Interval.open(-sp.oo, 1), 0.5),
        (sp.Interval.open(-3, -1), -2),
        (sp.Interval.open(-sp.oo, 0), -2),
        (sp.Interval.open(1, sp.oo), 3),
    ],
)
def test_newtons_method_stays_inside(domain, root):
    # (x - 1/2)(x + 2)(x - 3), which is implicit.
    cubic = sp.expand((x - sp.Rational(1, 2)) * (x + 2) * (x - 3)) * sp.exp(y - 1)
    system = SaddlePointSystem.from_fixed_point(
        {x: sp.Eq(cubic, 0)}, name="cubic", parameters=(y,), domains={x: domain}
    )
    assert gs.lower(system).solve(y=1).x == pytest.approx(root, rel=1e-12)


def implicit(domain):
    """Return x**3 + y x = 1 and its root at y = 1."""
    system = SaddlePointSystem.from_fixed_point(
        {x: sp.Eq(x**3 + y * x, 1)}, name="inside", parameters=(y,), domains={x: domain}
    )
    return gs.lower(system), float(sp.CRootOf(x**3 + x - 1, 0))


def test_derivatives_of_an_implicit_equation_inside_a_domain():
    kernel, root = implicit(sp.Interval.open(-sp.oo, 1))
    slope = kernel.sensitivities(y=1)["x", "y"]
    assert slope == pytest.approx(-root / (3 * root**2 + 1), rel=1e-13)
    assert kernel.optimum(over="y", of="x", bounds=(1, 2)).y == 2


def test_proofs_of_what_is_inside_a_domain():
    pytest.importorskip("flint")
    kernel, root = implicit(UNIT)
    proven = kernel.solve(y=1, certify=True)
    assert proven.x == pytest.approx(root, rel=1e-15)
    assert [*proven.values] == ["x"] and [*proven.certificate.box] == ["x_odds"]


@pytest.mark.parametrize("target", ["python", "mpmath"])
def test_files_return_no_coordinates(target):
    kernel, root = implicit(UNIT)
    exec(compile(kernel.source(target), "inside.py", "exec"), file := {"__name__": "inside"})
    file["selfcheck"]()
    found = file["solve_point"]({"y": 1.0})
    assert [*found] == ["x"] and float(found["x"][0]) == pytest.approx(root, rel=1e-15)
    assert '"x_odds"' not in kernel.source("c")


def test_an_unknown_that_runs_to_the_end_of_its_domain_is_told():
    system = SaddlePointSystem.from_fixed_point(
        {x: sp.tanh(y * x)}, name="magnet", parameters=(y,), domains={x: UNIT}
    )
    with pytest.raises(ConvergenceError, match=r"; x ran towards the end 0 of its domain \(0, 1\)"):
        gs.lower(system).solve(y=0.5)


def test_a_linear_unknown_outside_its_domain_is_no_solution():
    system = SaddlePointSystem.from_fixed_point(
        {x: alpha + 1, y: x**2}, name="outside", parameters=(alpha,), domains={y: UNIT}
    )
    with pytest.raises(ConvergenceError, match=r"y = 9 is outside its domain \(0, 1\)"):
        gs.lower(system).solve(alpha=2)
    assert "y_odds" not in str(lower(system).program)


def test_first_values_from_afar_find_what_the_usual_ones_do_not():
    # log(x - 10) has no value at the usual first value 1.
    system = SaddlePointSystem.from_fixed_point(
        {q: sp.Eq(sp.log(q - 10) + alpha, 0)}, name="far", parameters=(alpha,)
    )
    kernel = gs.lower(system)
    found = kernel.solve(alpha=2)
    assert found.q == pytest.approx(10 + math.exp(-2), rel=1e-12)
    # Those of the first attempt, which failed, count as well.
    assert found.iterations > 1
    # Files have the usual ones alone, and cannot check themselves with others.
    assert kernel.known_results() is None


def test_solutions_are_followed_from_easier_equations():
    # sqrt(h - 5) is no number at first values below; large h lead to it from above.
    h = sp.Symbol("h", positive=True)
    equation = sp.Eq(sp.sqrt(q - 900_000) * sp.sqrt(q - 899_999), h)
    given = {q: equation}, {"name": "followed", "parameters": (h,), "start": {q: 900_000 + h}}
    assert (
        gs.lower(SaddlePointSystem.from_fixed_point(given[0], **given[1])).solve(h=3.0).q > 900_000
    )
    start = {q: 899_999.5 + h / 10}
    lost = SaddlePointSystem.from_fixed_point(given[0], **{**given[1], "start": start})
    with pytest.raises(ConvergenceError):
        gs.lower(lost).solve(h=3.0)
    followed = SaddlePointSystem.from_fixed_point(
        given[0], **{**given[1], "start": start}, easier=h
    )
    exact = 899_999.5 + math.sqrt(0.25 + 9)
    assert gs.lower(followed).solve(h=3.0).q == pytest.approx(exact, rel=1e-12)


def refuse(words, **options):
    with pytest.raises(ParameterError, match=words):
        perceptron(**options)


def test_domains_that_make_no_sense():
    refuse("interval for alpha, which is no unknown", domains={alpha: UNIT})
    refuse("domains must be a mapping", domains=5)
    refuse("start must be a mapping", start=[1])
    refuse("domain of q is empty", domains={q: sp.Interval.open(1, 0)})
    refuse("must be a SymPy Interval", domains={q: (0, 1)})
    refuse("must have numbers as its ends", domains={q: sp.Interval.open(0, alpha)})
    refuse("contradicts its declaration as q >= 0", domains={q: sp.Interval.open(-1, 1)})
    refuse("start.q. = 3 is not inside the domain", domains={q: UNIT}, start={q: 3})
    refuse("easier must be one of the positive parameters", easier=q)


def test_a_coordinate_needs_a_free_name():
    odds = sp.Symbol("x_odds", real=True)
    system = SaddlePointSystem.from_fixed_point(
        {x: sp.cos(x) + odds}, name="named", parameters=(odds,), domains={x: UNIT}
    )
    with pytest.raises(ParameterError, match="would all be called 'x_odds'"):
        gs.lower(system)
