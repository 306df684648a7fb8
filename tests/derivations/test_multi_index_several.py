"""Index models of several directions: averages, message passing, errors, staircases."""

import math
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.multi_index import plane_averages
from giantstep.derivations.multi_index.channels import channel_of_law, read_channel
from giantstep.derivations.multi_index.directions import direction_classes
from giantstep.derivations.multi_index.fixed_points import MatrixFixedPoints
from giantstep.derivations.multi_index.model import MultiIndex
from giantstep.derivations.multi_index.plane_averages import (
    COARSE,
    FINER,
    ROUGH,
    USED,
    PlaneAverages,
)
from giantstep.derivations.multi_index.thresholds import specialising, weak_recovery
from giantstep.errors import GiantstepError

from .literature import PROBLEMS

OVERLAP = np.array([[0.6, 0.1], [0.1, 0.3]])
# Rows of a rotation of three directions.
TURNED = np.array([[2, -1, 2], [2, 2, -1], [-1, 2, 2]]) / 3


def committee_in_three_directions():
    """Two signs of forms of three projections, of which the third one shows nothing."""
    rotation = sp.Matrix([[2, -1, 2], [2, 2, -1], [-1, 2, 2]]) / 3
    u = rotation * sp.Matrix(sp.symbols("x1:4", real=True))
    a, b = sp.sign(u[0]), sp.sign(u[1])
    return channel_of_law(
        {2: (1 + a) * (1 + b) / 4, 0: (1 - a * b) / 2, -2: (1 - a) * (1 - b) / 4}, directions=3
    )


@pytest.mark.parametrize("third", [0.0, 0.4])
def test_a_turned_committee_is_the_committee(third):
    two = PlaneAverages(read_channel("sign(x1) + sign(x2)")).at(OVERLAP)
    turned = TURNED[:2].T @ OVERLAP @ TURNED[:2] + third * np.outer(TURNED[2], TURNED[2])
    level = 0 if third else 1
    three = PlaneAverages(committee_in_three_directions(), level).at(turned)
    found = TURNED @ three.information @ TURNED.T
    accuracy = 1e-6 if third else 1e-12
    assert found[:2, :2] == pytest.approx(two.information, abs=accuracy)
    assert np.abs(found[2]).max() < 1e-10
    assert three.free_energy == pytest.approx(two.free_energy, abs=accuracy)


def test_blocks_of_labels_add_up_however_short(monkeypatch):
    averages = PlaneAverages(read_channel("tanh(x1) + x2", noise_variance=0.5), ROUGH)
    whole = averages.at(OVERLAP)
    monkeypatch.setattr(plane_averages, "_BLOCK", 1)
    assert averages.at(OVERLAP).information == pytest.approx(whole.information, rel=1e-12)


def brute_force(law, mean, variance):
    """g and its negative derivative by sums over a dense grid, with jumps between its points."""
    x = 0.02 * (np.arange(-400, 400) + 0.5)
    u = np.stack(np.meshgrid(x, x, indexing="ij"))
    away = u - mean[:, None, None]
    inverse = np.linalg.inv(variance)
    weight = np.exp(-np.einsum("iab,ij,jab->ab", away, inverse, away) / 2) * law(*u)
    weight /= weight.sum()
    first = np.einsum("ab,iab->i", weight, away)
    second = np.einsum("ab,iab,jab->ij", weight, away, away)
    return inverse @ first, inverse - inverse @ (second - np.outer(first, first)) @ inverse


@pytest.mark.parametrize("target", ["x1*x2", "sign(x1) + sign(x2)"])
def test_posteriors_of_samples(target):
    noisy = target == "x1*x2"
    model = MultiIndex(target, 0.5 if noisy else 0)
    labels = np.array([0.7, -1.3]) if noisy else np.array([2.0, 0.0])
    means = np.array([[0.3, -0.8], [-0.4, 0.5]])
    variance = np.array([[0.7, 0.2], [0.2, 0.5]])
    score, slope = model.message_passing(alpha=1, dimension=9).output(labels)(means, variance)
    for k, y in enumerate(labels):

        def law(a, b, y=y):
            return np.exp(-((y - a * b) ** 2)) if noisy else np.sign(a) + np.sign(b) == y

        wanted, curved = brute_force(law, means[k], variance)
        accuracy = 1e-6 if noisy else 3e-4
        assert score[k] == pytest.approx(wanted, abs=accuracy)
        assert slope[k] == pytest.approx(curved, abs=10 * accuracy)


def test_errors_are_differences_of_the_dual_for_matrices():
    product = MultiIndex("x1*x2 + x1", 1)
    # E f f' = q11 + q11 q22 + q12².
    assert product.function_error(OVERLAP) == pytest.approx(2 - 0.6 - 0.18 - 0.01, abs=1e-12)
    assert product.linear_part[0] == pytest.approx([1, 0], abs=1e-12)
    committee = MultiIndex("sign(x1) + sign(x2)")
    arcs = math.asin(0.6) + math.asin(0.3) + 2 * math.asin(0.1)
    assert committee.function_error(OVERLAP) == pytest.approx(2 - 2 * arcs / math.pi, abs=1e-12)
    assert committee.function_error(1.0) == 0.0
    assert committee.linear_part[0] == pytest.approx([math.sqrt(2 / math.pi)] * 2, rel=1e-14)


def test_one_direction_in_disguise_is_one_direction():
    # Monotone labels without noise are linear ones.
    for target in ("tanh(x1 + x2)", "erf", "z + z**3"):
        assert MultiIndex(target).solve(alpha=0.37).overlap == pytest.approx(0.37, rel=1e-10)
    assert MultiIndex("abs(x1 - x3)").thresholds().formula == "1/2"
    turned = read_channel("(x1 + x2)**2 + x3")
    x1, x2 = turned.variables
    assert sp.expand(turned.function - 2 * x1**2 - x2) == 0
    found = gs.simulate(
        MultiIndex("abs(x1 + x2)").network(60),
        [MultiIndex("abs(x1 + x2)").message_passing(alpha=2, dimension=60, steps=2, start=0.5)],
        seeds=2,
    )
    assert found.mean("amp_overlap").shape == (2,)


@pytest.mark.parametrize("target", ["x1**2 - x2**2", "3*x1*x2 + 1"])
def test_forms_without_trace_are_products_in_other_coordinates(target):
    assert MultiIndex(target).exact_threshold == MultiIndex("x1*x2").exact_threshold
    with pytest.raises(GiantstepError, match="not known in closed form"):
        MultiIndex("x1**2 - 2*x2**2").thresholds()


# ---------------------------------------------------------------------- the staircase at finite q


@pytest.mark.slow
def test_others_are_learned_given_those_that_labels_show():
    # The label tells sign(x1) and the parity of the others, each on its own.
    found = MultiIndex("2*sign(x1) + sign(x2*x3)").thresholds()
    q, alpha = found.specialisation
    assert alpha == pytest.approx(math.pi**2 / 4, rel=1e-9)
    assert q == pytest.approx(MultiIndex("sign").solve(alpha=math.pi**2 / 4).overlap, rel=1e-9)


def test_nothing_specialises_where_others_follow_at_once_or_never():
    assert MultiIndex("x1 + x1*x2", 0.5).thresholds().specialisation == ()
    law = {1: "1/2 + sign(x1)/4", -1: "1/2 - sign(x1)/4"}
    assert MultiIndex.from_law(law, directions=2).thresholds().specialisation == ()
    sharp = MultiIndex("x1 + x2**2", 1e-4).thresholds()
    assert sharp.difficulty == "trivial" and "too sharp" in sharp.rests_on


@pytest.mark.parametrize(
    ("shown", "known"),
    [
        ("0", None),
        # Given x1, labels show x2 at first order.
        ("sign(x1)*sign(x2)", None),
        ("sign(Abs(x2) - 1)", sp.Matrix([1, 0])),
    ],
)
def test_others_of_a_law_show_at_second_order_where_a_reflection_changes_nothing(shown, known):
    law = {y: f"1/2 + {y}*(sign(x1) + {shown})/4" for y in (1, -1)}
    assert specialising(MultiIndex.from_law(law, directions=2).channel) == known


def test_threshold_of_two_labels_in_closed_form():
    # E[uu^T - 1|y] P(y) = y S/(2π) with S = [[0, 1], [1, 0]], and M → SMS has eigenvalues ±1.
    law = {y: f"1/2 + {y}*sign(x1)*sign(x2)/4" for y in (1, -1)}
    found = weak_recovery(MultiIndex.from_law(law, directions=2).channel)
    assert (found.kind, found.exact) == ("easy", sp.pi**2)


def test_the_staircase_of_a_committee_has_its_threshold():
    found = direction_classes("sign(x1) + sign(x2)")
    assert found.classes == ("trivial", "easy")
    assert found.samples == ("α > 0", "α > α_c(q) = 2.05238, given (1, 1)")


@pytest.mark.slow
def test_three_signs_specialise():
    found = MatrixFixedPoints(read_channel("sign(x1) + sign(x2) + sign(x3)"))
    known = np.ones((3, 1)) / math.sqrt(3)
    q, alpha = found.specialisation(known)
    # The label alone, drawn: 1/α = E[(E[s² - 1|y, ω])²] of a direction s across (1, 1, 1).
    generator = np.random.default_rng(5)
    fields = math.sqrt(q) * generator.standard_normal(60)
    excess = []
    for field in fields:
        s = generator.standard_normal((400_000, 3))
        s += np.outer(field + (math.sqrt(1 - q) - 1) * (s @ known)[:, 0], known[:, 0])
        y, w = np.sign(s).sum(axis=1), (s[:, 0] - s[:, 1]) / math.sqrt(2)
        seen = [y == value for value in (-3, -1, 1, 3)]
        excess.append(sum(on.mean() * (w[on] ** 2 - 1).mean() ** 2 for on in seen if on.any()))
    error = np.std(excess) / math.sqrt(len(excess) - 1)
    assert abs(np.mean(excess) - 1 / alpha) < 4 * error
    # Of the known direction alone the fixed point holds.
    information = found.levels[2].at(q * known @ known.T).information
    shown = float((known.T @ information @ known)[0, 0])
    assert q / (1 - q) == pytest.approx(alpha * shown, rel=1e-9)


# ---------------------------------------------------------------------- message passing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "noise", "alpha"), [("sign(x1) + sign(x2)", 0.0, 3.0), ("x1*x2", 0.5, 2.0)]
)
def test_message_passing_follows_state_evolution(target, noise, alpha):
    model = MultiIndex(target, noise)
    steps, given = 4, {"alpha": alpha, "start": 0.3}
    known = model.state_evolution(steps=steps, **given).matrices[1:]
    limit = np.array(known).reshape(steps, 2, 2)
    found = model.simulate(1000, steps=steps, seeds=8, seed=5, workers=1, progress=False, **given)
    for name in ("amp_overlap", "amp_projection"):
        mean, error = found.mean(name), found.standard_error(name)
        assert np.abs((mean - limit) / error).max() < 4
    if noise:
        spectral = found.mean("spectral_overlap")
        assert np.linalg.eigvalsh(spectral)[0] > 0.1


def test_spectral_directions_of_a_product():
    model = MultiIndex("x1*x2", 0.1)
    network = model.network(300)
    above = gs.simulate(network, [model.spectral(alpha=6, dimension=300)], seeds=3, seed=1)
    assert np.linalg.eigvalsh(above.mean("spectral_overlap"))[0] > 0.4
    below = gs.simulate(network, [model.spectral(alpha=0.2, dimension=300)], seeds=3, seed=1)
    assert np.linalg.eigvalsh(below.mean("spectral_overlap"))[-1] < 0.2


def test_overlap_matrices_start_where_they_are_asked_to():
    model = MultiIndex("sign(x1) + sign(x2)")
    found = model.state_evolution(alpha=3, start=[[0.3, 0.1], [0.1, 0.2]], steps=2)
    assert found.matrices[0] == (0.3, 0.1, 0.1, 0.2) and len(found.matrices) == 3
    assert found.start == pytest.approx((0.5 - math.sqrt(0.05)) / 2, rel=1e-12)
    assert "overlap matrix" in str(found)
    assert type(found).from_json(found.to_json()) == found


# ---------------------------------------------------------------------- meeting points


def test_the_spherical_perceptron_of_the_literature():
    (spherical,) = (p for p in PROBLEMS if p.name == "spherical_perceptron")
    wanted = spherical.solution(alpha=2.0)["q"]
    assert MultiIndex("sign").solve(alpha=2).overlap == pytest.approx(wanted, rel=1e-11)


def test_binary_weights_see_the_same_labels():
    (binary,) = (p for p in PROBLEMS if p.name == "binary_perceptron")
    q = binary.solution(alpha=1.1)["q"]
    conjugate = 1.1 * MultiIndex("sign").fixed_points.at(q)[0]
    t, w = np.polynomial.hermite_e.hermegauss(120)
    magnetisation = np.tanh(math.sqrt(conjugate) * t + conjugate) @ w / math.sqrt(2 * math.pi)
    assert magnetisation == pytest.approx(q, rel=1e-9)


@pytest.mark.slow
def test_the_optimum_beside_a_step_on_several_directions():
    model = gs.SpikedRandomFeatures("tanh", "x1*x2 + x1", step_size=1, alpha0=5, noise_variance=1)
    found = model.optimum_bayes(alpha=2)
    assert found.best_linear == pytest.approx(1.0, abs=1e-11)
    # γ² = 1/(1 + 3/5), along x1, of which E f f' keeps γ² alone.
    assert found.alignment_squared == pytest.approx(0.625, rel=1e-12)
    assert found.direction_only == pytest.approx(2 - 0.625, abs=1e-11)
    assert found.bayes < model.solve(alpha=2, ridge=0.1).test_error
    sharp = MultiIndex("x1*x2 + x1", 0.1).solve(alpha=2)
    assert sharp.overlap == pytest.approx(0.6660445, abs=2e-7)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MultiIndex("x1*x2", 0.5).state_evolution(alpha=1, start=1), "2 × 2 matrix"),
        (lambda: MultiIndex("x1*x2", 0.5).state_evolution(alpha=1, start=[0.1, 0.2]), "2 × 2"),
        (lambda: MultiIndex("abs").state_evolution(alpha=1, start=[[0.1]] * 2), "cos²"),
        (lambda: MultiIndex("x1*x2 + x1", 1e-3).solve(alpha=1), "too sharp for 2 directions"),
        # Before an average is taken.
        (lambda: MultiIndex("x1*x2*x3", 1).solve(alpha=2),
         r"too sharp for 3 directions.*larger noise_variance"),
        (lambda: MultiIndex("x1*x2", 0.5).solve(alpha=2, digits=15),
         "with digits= is that of one direction, this law ha"),
        (lambda: MultiIndex("x1*x2", 0.5).solve(alpha=2, certify=True),
         "with certify= is that of one direction, this law ha"),
        (lambda: PlaneAverages(channel_of_law(
            {1: "(1 + sign(x1*x2 + 1))/2", -1: "(1 - sign(x1*x2 + 1))/2"}, directions=2)),
         "signs of linear forms"),
        (lambda: committee_of_three().message_passing(alpha=2, dimension=20).output(np.ones(3)),
         "two directions"),
        (lambda: gs.simulate(MultiIndex("x1*x2").network(30), [
            MultiIndex("sign").message_passing(alpha=1, dimension=30)], seeds=2),
         "overlap matrix of 1"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_words(make, words):
    with pytest.raises(GiantstepError, match=words):
        make()


def committee_of_three():
    return MultiIndex("sign(x1) + sign(x2) + sign(x3)")


# ---------------------------------------------------------------------- counted work


def test_counted_work_chooses_the_levels():
    two, three = (
        MatrixFixedPoints(read_channel(" + ".join(f"sign(x{k})" for k in range(1, size + 1))))
        for size in (2, 3)
    )
    assert two.informed == 0.98 and two.level(0.8 * np.eye(2)) == USED
    assert three.informed < two.informed
    # What is learned along (1, 1, 1) alone stays as accurate as of two directions.
    assert three.level(0.2 * np.ones((3, 3))) == USED
    assert three.level(0.8 * np.eye(3)) == ROUGH
    work = [three.levels[k].work(0.5 * np.eye(3)) for k in (COARSE, ROUGH, USED, FINER)]
    assert work == sorted(work)


def test_state_evolution_leaves_the_fixed_point_of_the_directions_shown_first():
    """Labels show x1 at first order and x2 at second: 0 is a fixed point of its overlap."""
    found = MultiIndex("x1 + x2**2", noise_variance=0.5).state_evolution(alpha=2, steps=3)
    first, *later = (np.reshape(x, (2, 2)) for x in found.matrices)
    assert first == pytest.approx(np.diag([0.0, 1e-3]), abs=1e-15)
    growth = [x[1, 1] for x in (first, *later)]
    assert later[0][0, 0] > 0.2 and all(1.5 * a < b for a, b in pairwise(growth))
