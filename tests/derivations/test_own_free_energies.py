"""Free energies without averages, as a user brings them: phases, transitions, phase diagrams."""

import math

import numpy as np
import pytest
import sympy as sp
from scipy.optimize import brentq, minimize_scalar

import giantstep as gs
from giantstep.errors import ConvergenceError, GiantstepError

m, J, D = sp.symbols("m J D", real=True)
beta = sp.Symbol("beta", positive=True)


def kernel(free_energy, *parameters, low=-1, high=1):
    return gs.lower(
        gs.SaddlePointSystem.from_free_energy(
            gs.FreeEnergy(free_energy, (m,), (), parameters), name="magnet",
            domains={m: sp.Interval.open(low, high)},
        )
    )  # fmt: skip


def values(diagram, kind):
    return [p.value for p in diagram.points if p.kind == kind]


def exchange(inverse, energy, low):
    """Return β at which the phase m > low has the free energy of m = 0."""
    at = brentq(lambda x: energy(x, inverse(x)) - energy(0, inverse(x)), low, 1 - 1e-9, xtol=1e-15)
    return inverse(at)


def fold(inverse):
    found = minimize_scalar(inverse, bounds=(0.2, 0.99), method="bounded", options={"xatol": 1e-9})
    return found.x, found.fun


def test_four_spins_keep_the_phase_whose_second_derivative_vanishes():
    # 0 = 3 m² (m − tanh βm³)
    four = kernel(sp.Rational(3, 4) * m**4 - sp.log(2 * sp.cosh(beta * m**3)) / beta, beta)
    assert str(four.system.equations[0].value).count("tanh(beta*m**3)") == 2
    found = four.branches("beta", (0.5, 4), bounds={"m": (0, 1)})

    def inverse(x):
        return np.arctanh(x) / x**3

    def energy(x, b):
        return 0.75 * x**4 - np.log(2 * np.cosh(b * x**3)) / b

    where, spinodal = fold(inverse)
    assert values(found, "spinodal") == pytest.approx([spinodal], rel=1e-12)
    assert values(found, "first-order") == pytest.approx(
        [exchange(inverse, energy, where + 1e-6)], rel=1e-11
    )
    assert len(found.at(3)) == 3


def test_three_state_potts_is_stable_where_its_free_energy_is_lowest():
    energy = (1 + 2 * m) * sp.log(1 + 2 * m) / 3 + 2 * (1 - m) * sp.log(1 - m) / 3
    found = kernel(energy - beta * m**2 / 3, beta, low=0).branches("beta", (2, 4))
    assert values(found, "first-order") == pytest.approx([4 * math.log(2)], rel=1e-12)
    assert values(found, "instability") == pytest.approx([3.0], rel=1e-12)
    assert len(found.spinodals) == 1


def test_no_fold_where_a_symmetric_branch_begins():
    energy = (
        m**2 / 2 + sp.Rational(3, 4) * J * m**4 - sp.log(2 * sp.cosh(beta * (m + J * m**3))) / beta
    )
    found = kernel(energy, beta, J).branches("beta", (0.3, 2), bounds={"m": (0, 1)}, J=0.5)
    _, spinodal = fold(lambda x: np.arctanh(x) / (x + 0.5 * x**3))
    assert values(found, "spinodal") == pytest.approx([spinodal], rel=1e-12)
    assert values(found, "instability") == pytest.approx([1.0], rel=1e-12)
    assert len(values(found, "first-order")) == 1


@pytest.mark.slow
def test_first_order_line_of_a_phase_at_an_end_begins_at_the_tricritical_point():
    energy = m**2 / 2 - sp.log(1 + 2 * sp.exp(-beta * D) * sp.cosh(beta * m)) / beta
    found = kernel(energy, beta, D).phase_diagram(
        ("D", 0.1, 0.6), ("beta", 1.5, 5), bounds={"m": (0, 1)}
    )
    (point,) = found.tricritical_points
    assert (point.x, point.y) == pytest.approx((2 * math.log(2) / 3, 3), rel=1e-10)
    assert {"first-order", "second-order", "spinodal"} <= {line.kind for line in found.lines}


def test_a_line_keeps_its_kind_up_to_the_edge():
    T, h = sp.symbols("T h", positive=True)
    sides = [sp.log(2 * sp.cosh((m + side * h) / T)) for side in (1, -1)]
    magnet = kernel(m**2 / 2 - T * sum(sides) / 2, T, h)
    assert str(magnet.solved.stated).endswith("m = tanh((-h + m)/T)/2 + tanh((h + m)/T)/2")
    plane = magnet.phase_diagram(("h", 0.3, 0.32), ("T", 0.8, 0.95), cuts=1, points=40)
    (line,) = plane.lines
    assert line.kind == "second-order"
    assert all(str(end).startswith("the edge") for end in line.ends)
    np.testing.assert_allclose(line.y, 1 / np.cosh(line.x / line.y) ** 2, rtol=1e-10)


def test_a_branch_that_ends_at_the_edge_of_its_range_says_so():
    found = kernel(m**2 / 2 - sp.log(2 * sp.cosh(beta * m)) / beta, beta).branches("beta", (0.5, 1))
    (branch,) = found.branches
    assert str(branch.ends[1]).startswith("the edge beta = 1, where the equations are singular")


@pytest.mark.filterwarnings("error")
def test_a_free_energy_that_falls_beyond_all_floats():
    found = kernel(J * m - sp.exp(m), J, low=-sp.oo, high=sp.oo).branches("J", (0.5, 1))
    assert "not bounded below for m → -∞" in found.stability
    assert found.at(0.8)[0].m == pytest.approx(math.log(0.8), rel=1e-13)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_entries_of_a_positive_definite_matrix_are_found(scale):
    # Stationary at V² = A⁻¹.
    a, b, unit = sp.symbols("a b unit", positive=True)
    matrix, given = sp.Matrix([[a, m], [m, b]]), sp.Matrix([[2, 1], [1, 3]])
    energy = unit * (given * matrix).trace() + (matrix.adjugate() / matrix.det()).trace()
    found = gs.lower(
        gs.SaddlePointSystem.from_free_energy(
            gs.FreeEnergy(energy, (a, b, m), (), (unit,)), name="matrix"
        )
    ).solve(unit=scale)
    inverse = np.array([[found.a, found.m], [found.m, found.b]])
    exact = np.linalg.inv(scale * np.array(given, dtype=float))
    np.testing.assert_allclose(inverse @ inverse, exact, rtol=1e-12)


def test_steps_of_what_is_not_seen_to_be_real():
    # SymPy takes sqrt(1 - q) for a complex number.
    q = sp.Symbol("q", positive=True)
    z = sp.Symbol("z", real=True)
    bent = gs.GaussianExpectation(sp.Abs(sp.sqrt(1 - q) * z + q) + sp.sign(z + sp.sqrt(1 - q)), z)
    system = gs.SaddlePointSystem.from_fixed_point(
        {q: beta * bent}, name="bent", parameters=(beta,), domains={q: sp.Interval.open(0, 1)}
    )
    root = gs.lower(system).solve(beta=0.3).q

    def mean(overlap):
        spread, far = math.sqrt(1 - overlap), math.sqrt(1 - overlap) / math.sqrt(2)
        bell = math.exp(-((overlap / spread) ** 2) / 2)
        folded = spread * math.sqrt(2 / math.pi) * bell
        return folded + overlap * math.erf(overlap / spread / math.sqrt(2)) + math.erf(far)

    assert root == pytest.approx(brentq(lambda x: 0.3 * mean(x) - x, 0, 0.9, xtol=1e-15), rel=1e-12)


def test_solutions_outside_of_a_logarithm_are_left_out():
    # (x - 3)(2 - x) = J has a root on each side of the pole, where the logarithm is complex.
    x = sp.Symbol("x", real=True)
    system = gs.SaddlePointSystem.from_free_energy(
        gs.FreeEnergy(x**2 / 2 - 3 * x + J * sp.log(2 - x), (x,), (), (J,)), name="barrier"
    )
    found = gs.lower(system).branches("J", (-2, -0.5))
    assert "; 1 more is left out, where the free energy is no real number" in str(found)
    assert [s.x for s in found.at(-1)] == pytest.approx([(5 - math.sqrt(5)) / 2], rel=1e-13)


def test_solutions_where_the_free_energy_is_complex_are_none():
    # (x - 3)(2 - x) = -J again; Newton's method falls into the root beyond the pole from 4.
    x, load = sp.Symbol("x", real=True), sp.Symbol("J", positive=True)
    energy = gs.FreeEnergy(x**2 / 2 - 3 * x - load * sp.log(2 - x), (x,), (), (load,))
    found = gs.lower(
        gs.SaddlePointSystem.from_free_energy(energy, name="barrier", start={x: sp.Integer(4)})
    )
    assert found.solve(J=1).x == pytest.approx((5 - math.sqrt(5)) / 2, rel=1e-13)
    with pytest.raises(ConvergenceError, match=r"only where one of these is negative.*: 2 - x;"):
        found.solve(J=1, start={"x": 4})
    for target in ("python", "numpy"):
        names = {}
        exec(compile(found.source(target), target, "exec"), names)
        with pytest.raises(RuntimeError, match="no solution at J"):
            names["solve_point"]({"J": 1.0})


def test_conditions_are_what_must_not_be_negative():
    a, b, c = sp.symbols("a b c", positive=True)
    z, r, s, t = sp.symbols("z r s t", real=True)
    matrix = sp.Matrix([[a, r, s], [r, b, t], [s, t, c]])
    energy = (
        sp.log(a) + sp.log(1 + b**2) / sp.sqrt(1 - r) + sp.Piecewise((sp.log(-s), s < 0), (s, 1))
    ) + (2 - t) ** sp.Rational(3, 4)
    energy += sp.log(1 - beta) + gs.GaussianExpectation(sp.log(2 - t * z), z)
    variables = (a, b, c, r, s, t)
    assert {*gs.FreeEnergy(energy, variables, (), (beta,)).conditions} == {1 - r, 2 - t}
    both = gs.FreeEnergy(energy, variables, (), (beta,), positive=(matrix, r + s))
    assert {*both.conditions} == {1 - r, 2 - t, matrix[:2, :2].det(), matrix.det(), r + s}


@pytest.mark.parametrize(
    ("positive", "words"),
    [
        (m, "positive of a free energy must be a tuple"),
        ((sp.Matrix([[m, 1], [2, m]]),), "no symmetric matrix"),
        (("m",), "positive of a free energy .* not the text 'm'"),
    ],
)
def test_what_cannot_be_positive_is_refused(positive, words):
    energy = gs.FreeEnergy(m**2 - J * m, (m,), (), (J,), positive=positive)
    with pytest.raises(GiantstepError, match=words):
        gs.SaddlePointSystem.from_free_energy(energy, name="own")


@pytest.mark.slow
def test_patterns_of_another_law():
    # Hopfield's model with diluted patterns. Where β(1 - q) > 1 the equations have more solutions.
    z = sp.Symbol("z", real=True)
    x, q, r, alpha = sp.symbols("x q r alpha", positive=True)
    share = sp.Rational(7, 10)
    slack = 1 - beta * (1 - q)
    noise = sp.sqrt(alpha * r) * z
    mean = [
        gs.GaussianExpectation(sp.log(2 * sp.cosh(beta * (x * size + noise))), z)
        for size in (1 / sp.sqrt(share), 0)
    ]
    energy = (
        x**2 / 2 + alpha / (2 * beta) * (sp.log(slack) - beta * q / slack)
        + alpha * beta * r * (1 - q) / 2 - (share * mean[0] + (1 - share) * mean[1]) / beta
    )  # fmt: skip
    system = gs.SaddlePointSystem.from_free_energy(
        gs.FreeEnergy(energy, (x, q), (r,), (alpha, beta)), name="diluted",
        domains={x: sp.Interval.open(0, 2), q: sp.Interval.open(0, 1)},
    )  # fmt: skip
    assert "\n    x = sqrt(70)*E_z[tanh(" in str(system)
    found = gs.lower(system).branches("alpha", (0.005, 0.12), beta=8.0, starts=16, points=30)
    assert "left out, where the free energy is no real number" in str(found)
    for branch in found.branches:
        assert np.all(8 * (1 - branch["q"]) < 1)
    (spinodal,) = values(found, "spinodal")
    # By mpmath, from the equations and their determinant.
    assert spinodal == pytest.approx(0.02858136092396878, rel=1e-12)
    assert values(found, "first-order") == pytest.approx([0.0126247484467], rel=1e-10)


@pytest.mark.slow
def test_ternary_weights_beyond_their_capacity():
    # E log(1 + 2 exp(r̂ - q̂/2) cosh(√q̂ z)) with q̂ = 164: cosh² and tails overflow in parts
    z, r_hat = sp.Symbol("z", real=True), sp.Symbol("rhat", real=True)
    q, r, q_hat, load = sp.symbols("q r qhat alpha", positive=True)
    weights = sp.log(1 + 2 * sp.exp(r_hat - q_hat / 2) * sp.cosh(sp.sqrt(q_hat) * z))
    tail = sp.erfc(-sp.sqrt(q) * z / sp.sqrt(2 * (r - q))) / 2
    sites = gs.GaussianExpectation(weights, z) + load * gs.GaussianExpectation(sp.log(tail), z)
    entropy = q_hat * q / 2 - r_hat * r + sites
    system = gs.SaddlePointSystem.from_free_energy(
        gs.FreeEnergy(entropy, (q, r), (q_hat, r_hat), (load,)),
        name="ternary",
        outputs={"entropy": entropy},
        start={q: sp.Rational(3, 10), r: sp.Rational(7, 10)},
    )
    ternary = gs.lower(system)
    # by Gauss–Legendre quadrature of the conditions with 4,000 nodes
    found = ternary.solve(alpha=1.5, start={"q": 0.489, "r": 0.569})
    assert found.q == pytest.approx(0.50135878, abs=1e-8)
    assert found.r == pytest.approx(0.55314161, abs=1e-8)
    (zero,) = values(ternary.branches("alpha", (1.1, 1.3), zeros="entropy"), "zero of entropy")
    assert zero == pytest.approx(1.17448191, abs=1e-8)
