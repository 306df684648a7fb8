"""Population dynamics by independent routes, and the rules by which networks decide."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from mpmath.ctx_iv import MPIntervalContext

from giantstep.derivations.conjectures.random_targets import TargetFamily
from giantstep.derivations.giant_steps import (
    conjectures,
    conjectures as conjecture_networks,
    population_dynamics as population_ranks_module,
)
from giantstep.derivations.giant_steps.conjectures import (
    ConjectureReport,
    Figure,
    Outcome,
    TargetOutcome,
    axes_within,
    check_conjecture_1,
    check_conjecture_3,
    direction_figure,
    extrapolated,
    rank_figures,
    residual_bound,
)
from giantstep.derivations.giant_steps.population_dynamics import (
    PopulationGradient,
    PopulationStudent,
    gaussian_readouts,
    interval_rank,
    population_overlaps,
    population_ranks,
)
from giantstep.errors import AssumptionError, ParameterError
from giantstep.symbolic.expressions.activations import activation, z
from giantstep.symbolic.gaussian.expectation import expect
from giantstep.symbolic.leaps.staircase import staircase
from giantstep.symbolic.targets.stein import gradient_expansion
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import target

STUDENTS = tuple(PopulationStudent)
TEXTS = ("1 + x1 - x1*x2 + He(3, x2)/2", "x1**2*x2 - 2*x2 + x1", "x1*x2*x3 + He(4, x3)/5 + x2")

# ------------------------------------------------------------------ gradients


@pytest.mark.parametrize("student", STUDENTS, ids=str)
@pytest.mark.parametrize("k", range(6))
def test_coefficients_are_averages_of_derivatives(student, k):
    tau = sp.Symbol("tau", positive=True)
    derivative = sp.diff(activation(student.text).expr, z, k).subs(z, tau * z)
    difference = expect(derivative, z) - student.coefficient(k, tau)
    assert all(abs(sp.N(difference.subs(tau, t), 30)) < 1e-25 for t in (1, sp.Rational(5, 4)))


@pytest.mark.parametrize("student", STUDENTS, ids=str)
@pytest.mark.parametrize("text", TEXTS)
def test_gradients_are_those_of_the_expansion(student, text):
    f = target(text)
    found = PopulationGradient(f, student)
    own = [sp.Rational(1, 3), sp.Rational(-2, 5), sp.Rational(1, 7)][: f.dimension]
    point = dict(zip(found.own, own, strict=True))
    rest = sp.Rational(3, 4)
    norm = sp.sqrt(sum(v**2 for v in own) + rest)
    expansion = gradient_expansion(student.text, f, norm=norm, order=f.degree + 1)
    factor = found.factor.subs({**point, found.rest: rest})
    for mine, other in zip(found.inside, expansion.vector(own), strict=True):
        assert abs(sp.N(mine.subs(point) * factor - other, 25)) < 1e-20
    along = found.along.subs(point) * factor
    assert abs(sp.N(along - expansion.along(own), 25)) < 1e-20


@pytest.mark.parametrize("student", STUDENTS, ids=str)
def test_mean_products_are_averages(student):
    # Gauss-Hermite quadrature of E[σ(w.x) σ(v.x)] in two dimensions.
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    x, y = np.meshgrid(nodes, nodes, indexing="ij")
    w, v = np.array([0.3, 0.9]), np.array([-0.7, 0.4])
    sigma = np.exp if student is PopulationStudent.EXPONENTIAL else lambda u: np.sin(u + np.pi / 4)
    values = sigma(w[0] * x + w[1] * y) * sigma(v[0] * x + v[1] * y)
    square = float(((w + student.sign * v) ** 2).sum())
    assert weights @ values @ weights == pytest.approx(float(student.mean_product(square)), 1e-12)


def test_a_step_is_a_gradient_step_on_the_population_loss():
    # d = r + p/2 inputs in all; the loss by quadrature-free algebra, its gradient by differences.
    f, student = target(TEXTS[0]), PopulationStudent.SHIFTED_SINE
    readouts, rate, r = np.array([0.5, -0.5, 1.2, -1.2]), 0.8, 2
    potential = sp.lambdify(
        (*PopulationGradient(f, student).own, PopulationGradient(f, student).rest),
        PopulationGradient(f, student).potential, "math",
    )  # fmt: skip

    def loss(rows):
        total = 0.0
        for a, w in zip(readouts, rows, strict=True):
            total -= a / 4 * potential(*w[:r], float((w[r:] ** 2).sum()))
            for b, v in zip(readouts, rows, strict=True):
                total += a * b / 32 * float(student.mean_product(float(((w - v) ** 2).sum())))
        return total

    rows = np.hstack([np.zeros((4, r)), np.repeat(np.eye(2), 2, axis=0)])
    history = population_overlaps(f, 2, readouts=readouts, step_size=rate)
    for t in range(2):
        gradient = np.zeros_like(rows)
        for at in np.ndindex(rows.shape):
            shift = np.zeros_like(rows)
            shift[at] = 1e-5
            gradient[at] = (loss(rows + shift) - loss(rows - shift)) / 2e-5
        rows = rows - 4 * rate * gradient  # η = rate p
        assert np.allclose(history[t + 1], rows[:, :r], rtol=0, atol=1e-7)


# ------------------------------------------------------------------ ranks


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        # Dandi et al., arXiv 2305.18270: z + He2 and z - He2 escape, two equal ones do not.
        ("x1 + He(2, x1) + x2 - He(2, x2)", (0, 1, 2, 2)),
        ("x1 + He(2, x1) + x2 + He(2, x2)", (0, 1, 1, 1)),
        ("x1 + x1*x2 + x1*x3", (0, 1, 2, 2)),
        ("x1 + x1*x2 + x1*x2*x3", (0, 1, 2, 3)),
        ("x1*x2*x3", (0, 0, 0, 0)),
        ("sqrt(2)*x1 + x1*(x2 + sqrt(3)*x3) + He(2, x1)*(sqrt(3)*x2 - x3)", (0, 1, 3, 3)),
    ],
)
def test_ranks_of_worked_examples(text, ranks):
    found = population_ranks(text, 3)
    assert found.ranks == ranks
    assert max(found.remainders) < 1e-100 and "proved" in found.basis


def test_ranks_of_random_targets_are_the_dimensions_of_the_staircase():
    for f in TargetFamily(dimension=3, seed=77).draw(12):
        chain = staircase(f, 1).subspaces
        wanted = tuple(chain[min(t, len(chain) - 1)].dimension for t in range(3))
        assert population_ranks(f, 2).ranks == wanted, str(f)


def test_intervals_and_floats_agree():
    f = target("x1 + x1*x2 + He(2, x1)*x3/2")
    found = population_ranks(f, 2, step_size=Fraction(1, 4))
    sizes = [Fraction(k, 2) for k in range(1, 6)]
    readouts = np.array([float(s * a) for a in sizes for s in (1, -1)])
    rate = 0.25 / math.sqrt(float(f.norm_squared))
    floats = population_overlaps(
        f, 2, readouts=readouts, step_size=rate, student=PopulationStudent.EXPONENTIAL
    )
    for exact, approximate in zip(found.overlaps, floats, strict=True):
        assert np.allclose(np.array(exact), approximate, rtol=1e-9, atol=1e-12)


entries = st.integers(-3, 3)


@given(st.lists(st.lists(entries, min_size=3, max_size=3), min_size=1, max_size=5))
@settings(max_examples=25, deadline=None)
def test_interval_rank_is_the_rank(rows):
    ctx = MPIntervalContext()
    ctx.dps = 30
    third = ctx.mpf(1) / 3
    rank, remainder = interval_rank([[third * v for v in row] for row in rows], ctx)
    assert rank == sp.Matrix(rows).rank()
    assert float(remainder.b) < 1e-20


def test_too_few_digits_are_refused_not_guessed(monkeypatch):
    # Entries whose intervals hold zero and reach 1e-9 may be zero or not.
    monkeypatch.setattr(
        population_ranks_module, "interval_rank", lambda rows, ctx: (0, ctx.mpf([0, 1e-9]))
    )
    with pytest.raises(ParameterError, match="digits=30 are used up after 0 steps"):
        population_ranks("x1 + x1*x2", 3, digits=30)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"steps": 0}, ParameterError, "steps must be >= 1"),
        ({"steps": 9}, ParameterError, "steps must be at most 8"),
        ({"steps": 1, "digits": 5}, ParameterError, "digits must be >= 30"),
        ({"steps": 1, "step_size": 0.5}, ParameterError, "step_size must be a positive Fraction"),
        ({"steps": 1, "target": "relu(x1)"}, AssumptionError, "not a polynomial"),
        ({"steps": 1, "target": "3 + 0*x1"}, AssumptionError, "constant"),
        (
            {"target": "x1 + x2 + x1*x2 + He(4, x1)*x2", "steps": 8, "step_size": Fraction(20)},
            ParameterError,
            "the overlaps explode",
        ),
    ],
)
def test_bad_arguments_of_ranks(arguments, error, message):
    with pytest.raises(error, match=message):
        population_ranks(**{"target": "x1 + x1*x2", **arguments})
    with pytest.raises(ParameterError, match="pairs"):
        population_overlaps("x1", 1, readouts=np.array([1.0, 2.0]), step_size=1)
    with pytest.raises(ParameterError, match="width must be even"):
        gaussian_readouts(3)


# ------------------------------------------------------------------ decisions


def test_growing_starts_are_not_taken_for_learned_directions():
    # x1 x2 + x3 at d = 60 and 120 after three steps: overlaps that vanish, but not as 1/d.
    generator = np.random.default_rng(6)
    half, full = (v + 0.004 * generator.standard_normal(12) for v in (0.0336, 0.0236))
    signal, resolution = extrapolated(half, full)
    assert 0.01 < signal < resolution


def test_resolution_covers_noise():
    # Without a signal, "seen" has the level of the test: 1e-3, here with Gaussian noise.
    generator = np.random.default_rng(5)
    count = 0
    for _ in range(4000):
        signal, resolution = extrapolated(
            1 / 50 + 0.02 * generator.standard_normal(6),
            1 / 100 + 0.01 * generator.standard_normal(6),
        )
        count += signal > resolution
    assert count <= 15  # mean 4


def grams(value, scatter, seed):
    generator = np.random.default_rng(seed)
    axis = np.array([0.6, 0.8])
    return [
        (value + b / d + scatter * generator.standard_normal(8))[:, None, None]
        * np.outer(axis, axis)
        for b, d in ((0.2, 50), (0.2, 100))
    ]


@pytest.mark.parametrize(
    ("kind", "predicted", "value", "scatter", "outcome"),
    [
        ("inside", 0.2, 0.2, 1e-3, Outcome.AGREES),
        ("inside", 0.2, 0.0, 1e-3, Outcome.DISAGREES),
        ("inside", 1e-4, 0.2, 1e-3, Outcome.UNDECIDED),
        ("inside", 0.2, 0.2, 0.2, Outcome.UNDECIDED),
        ("outside", 0.0, 0.0, 1e-3, Outcome.AGREES),
        ("outside", 0.0, 0.2, 1e-3, Outcome.DISAGREES),
        ("outside", 0.0, 0.0, 0.2, Outcome.UNDECIDED),
    ],
)
def test_directions_are_decided_by_the_rules(kind, predicted, value, scatter, outcome):
    found = direction_figure(kind, 2, np.array([0.6, 0.8]), predicted, grams(value, scatter, 3))
    assert found.outcome is outcome, str(found)
    assert "step 2, (0.6, 0.8)" in found.where


def test_axes_diagonalise_the_form_within_the_subspace():
    subspace = Subspace.spanned_by([[1, 1, 0], [0, 1, 2]])
    gram = np.diag([1.0, 2.0, 5.0])
    axes = axes_within(subspace, gram)
    vectors = np.array([axis for axis, _ in axes])
    assert np.allclose(vectors @ vectors.T, np.eye(2))
    assert np.allclose(vectors @ gram @ vectors.T, np.diag([size for _, size in axes]))
    assert np.allclose(vectors @ np.array([2, -2, 1]), 0)
    assert axes_within(Subspace.zero(3), gram) == []


def test_bounds_of_residuals():
    # P05 of the five regimes: 54 of 57 is left with ⟨e1⟩ and κ = 1 (Dandi et al., figure 2).
    f = target("x1 + He(2,x2) + He(2,x1)*x2 + He(4,x1)*He(2,x2)*x3 + He(2,x2)*He(2,x3)")
    assert residual_bound(f, Subspace.spanned_by([[1, 0, 0]])) == pytest.approx(54 / 57)
    assert residual_bound(f, Subspace.whole(3)) == 0


def test_chains_are_filled_up():
    chain = conjectures.predicted_chain(target("x1*x2 + x3"), 3)
    assert list(map(str, chain)) == ["⟨e3⟩"] * 3
    assert conjectures.predicted_chain(target("x1*x2"), 2) == (Subspace.zero(2), Subspace.zero(2))


# ------------------------------------------------------------------ reports


SMALL = {"dimension": 40, "steps": 1, "networks": 4, "samples_per_dimension": 32}


@pytest.mark.parametrize("check", [check_conjecture_1, check_conjecture_3])
def test_runs_resume_extend_and_do_not_depend_on_other_targets(check, tmp_path, monkeypatch):
    whole = check(2, **SMALL, progress=False)
    first = check(1, **SMALL, store=tmp_path, progress=False)
    assert whole.targets[0] == first.targets[0]
    monkeypatch.setattr(
        conjecture_networks, "take_giant_steps", lambda *_, **__: pytest.fail("computed again")
    )
    assert check(1, **SMALL, store=tmp_path, progress=False) == first
    with pytest.raises(pytest.fail.Exception):
        check(1, **{**SMALL, "networks": 5}, store=tmp_path, progress=False)


def test_damaged_files_are_computed_again(tmp_path):
    found = check_conjecture_1("x1 + x1*x2", **SMALL, store=tmp_path, progress=False)
    (file,) = tmp_path.iterdir()
    for text in ("", "[]", "{}", file.read_text().replace("inside", "inside", 1)[:-40]):
        file.write_text(text)
        assert check_conjecture_1(["x1 + x1*x2"], **SMALL, store=tmp_path, progress=False) == found
        assert json.loads(file.read_text())["target"] == "x1 + x1*x2"


def test_a_right_prediction_agrees_and_a_wrong_one_disagrees_and_is_repeated(monkeypatch):
    report = check_conjecture_1(
        ["2*x1 + x1*x2"], 80, 1, networks=8, samples_per_dimension=64, progress=False
    )
    assert report.targets[0].outcome is Outcome.AGREES, str(report)
    assert report.finding().passed and report.agreement() == 1
    wrong = Subspace.spanned_by([[0, 1]])
    monkeypatch.setattr(conjectures, "predicted_chain", lambda f, steps: (wrong,) * steps)
    report = check_conjecture_1(
        ["2*x1 + x1*x2"], 80, 1, networks=8, samples_per_dimension=64, progress=False
    )
    (found,) = report.disagreements
    assert found.repeated and not report.finding().passed
    assert "disagreements: 2*x1 + x1*x2" in report.summary and "second run" in str(found)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("x1*x2 + 2*x3", [[0, 0, 1], [1, 0, 0]]), ("2*x1 + x1*x2", [[1, 0], [0, 1]])],
    ids=["a direction never learned", "a direction learned one step later"],
)
def test_a_direction_too_many_disagrees(monkeypatch, text, wrong):
    chain = (Subspace.spanned_by(wrong),)
    monkeypatch.setattr(conjectures, "predicted_chain", lambda f, steps: chain)
    (found,) = check_conjecture_1([text], **SMALL, progress=False).disagreements
    assert "rank, step 1: predicted 2, measured 1" in str(found)


def test_ranks_that_are_not_known_are_undecided():
    # In nine steps, exponential neurons are refused.
    chain = (Subspace.spanned_by([[1, 0]]),) * 9
    figures = rank_figures(target("x1 + x1*x2"), chain)
    assert {figure.outcome for figure in figures} == {Outcome.UNDECIDED} and len(figures) == 9


@pytest.mark.parametrize("kept", [True, False])
def test_interruptions_say_what_is_kept(kept, tmp_path, monkeypatch):
    right = conjectures.learned_directions
    done = []

    def interrupted(f, plan):
        if done:
            raise KeyboardInterrupt
        done.append(f)
        return right(f, plan)

    monkeypatch.setattr(conjectures, "learned_directions", interrupted)
    message = "after 1 of 2 targets; " + ("the same call resumes" if kept else "without a store")
    with pytest.raises(KeyboardInterrupt, match=message):
        check_conjecture_1(2, **SMALL, store=tmp_path if kept else None, progress=False)
    assert len(list(tmp_path.iterdir())) == kept


def test_an_error_below_the_bound_disagrees(monkeypatch):
    monkeypatch.setattr(conjectures, "residual_bound", lambda f, learned: 0.9)
    report = check_conjecture_3(
        ["2*x1 + x1*x2"], 40, 1, networks=6, samples_per_dimension=32, progress=False
    )
    assert report.count(Outcome.DISAGREES, "residual") == 1 and report.targets[0].repeated


def test_undecided_figures_are_no_evidence():
    weak = Figure("inside", "step 1, (1, 0)", 1e-9, 0.0, 0.1, Outcome.UNDECIDED)
    report = ConjectureReport("x", (TargetOutcome("x1", ("⟨e1⟩",), (weak,)),), "no networks")
    assert not report.finding().passed and math.isnan(report.agreement())
    assert not ConjectureReport("x", (), "none").finding().passed


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"targets": 0}, ParameterError, "targets must be >= 1"),
        ({"targets": []}, ParameterError, "at least one target"),
        ({"targets": 2.5}, ParameterError, "targets must be a whole number"),
        ({"targets": ["relu(x1)"]}, AssumptionError, "not a polynomial"),
        ({"targets": ["2 + 0*x1"]}, AssumptionError, "constant"),
        ({"dimension": 41}, ParameterError, "dimension must be even"),
        ({"dimension": 20}, ParameterError, "dimension must be >= 40"),
        ({"steps": 0}, ParameterError, "steps must be >= 1"),
        ({"networks": 1}, ParameterError, "networks must be >= 2"),
        ({"seed": -1}, ParameterError, "seed must be >= 0"),
    ],
)
@pytest.mark.parametrize("check", [check_conjecture_1, check_conjecture_3])
def test_bad_arguments_are_refused(check, arguments, error, message):
    with pytest.raises(error, match=message):
        check(**{"targets": 1, **SMALL, **arguments}, progress=False)


def test_widths_have_to_be_even_at_both_sizes():
    with pytest.raises(ParameterError, match="multiple of 4"):
        check_conjecture_3(1, 42, 1, progress=False)
