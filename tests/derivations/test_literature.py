"""Systems of the literature: solved, refined, and followed; see :mod:`.literature`."""

from collections import defaultdict

import mpmath
import pytest

from giantstep.errors import ConvergenceError

from .literature import PROBLEMS, lowered

# One of each kind; the others are slow because each system is derived and printed first.
_QUICK = {
    "blume_capel", "ferromagnetic_bias", "gardner_volume", "lasso", "ridge_regression",
    "signs_in_a_tensor", "spherical_three_spins",
}  # fmt: skip
# Of those without averages, whose equations take no time to compile.
_QUICK_DIAGRAMS = {
    "curie_weiss", "hopfield_without_temperature",
    "potts_three_states", "ridge_regression", "spherical_three_spins", "three_spin_magnet",
}  # fmt: skip


_FOLLOWED = [p for p in PROBLEMS if p.over is not None]


def _cases(problems, quick):
    return [
        pytest.param(p, id=p.name, marks=() if p.name in quick else pytest.mark.slow)
        for p in problems
    ]


def diagram(problem):
    over = problem.over
    return lowered(problem).branches(
        over.parameter, over.within, bounds=over.bounds, zeros=over.zeros or (), **problem.others
    )


def test_the_list_has_no_name_twice():
    assert len({p.name for p in PROBLEMS}) == len(PROBLEMS) >= 30
    assert {p.name for p in PROBLEMS} >= {
        *_QUICK, *_QUICK_DIAGRAMS, *_DIGITS, *_TRANSITIONS
    }  # fmt: skip


@pytest.mark.parametrize("problem", _cases(PROBLEMS, _QUICK))
def test_solution(problem):
    found = lowered(problem).solve(**problem.point, start=problem.start or None)
    for name, value in problem.solution(**problem.point).items():
        allowed = max(problem.relative * abs(value), 3 * found.errors[name])
        assert abs(found[name] - value) <= allowed, name
        assert found.errors[name] <= 1e-7 * abs(value)


# To many digits: one problem of each kind of averages, and of meeting points.
_DIGITS = {
    "potts_three_states", "hopfield", "gardner_volume", "lasso", "ridge_regression",
    "logistic_labels",
}  # fmt: skip
_TRANSITIONS = {
    "blume_capel", "gaussian_spike_in_data", "sherrington_kirkpatrick", "signs_in_a_tensor",
    "binary_storage", "hopfield", "line_of_almeida_and_thouless",
}  # fmt: skip


def check_branches(problem, found):
    """All branches and where they meet are those that the list knows."""
    values = defaultdict(list)
    for point in found.points:
        values[point.kind].append(point.value)
    special = problem.over.special
    expected = {} if special is None else special(**problem.others)
    relative = problem.over.relative
    assert {kind: len(numbers) for kind, numbers in values.items()} == {
        kind: len(numbers) for kind, numbers in expected.items()
    }
    for kind, numbers in expected.items():
        assert sorted(values[kind]) == pytest.approx(sorted(numbers), rel=relative, abs=relative), (
            kind
        )
    counts = {value: len(found.at(value)) for value in problem.over.counts}
    assert counts == problem.over.counts
    # What the list knows of a point is among the solutions there.
    here = problem.point[problem.over.parameter]
    if problem.over.fixed is None and found.within[0] <= here <= found.within[1]:
        known = problem.solution(**problem.point)
        gaps = [max(abs(s[name] - x) / abs(x) for name, x in known.items()) for s in found.at(here)]
        assert min(gaps) <= problem.relative


def refined(points, most):
    """Points refined by their own equations are those of the diagram, to so many digits."""
    values = []
    for point in points:
        many = point.refine(digits=most)
        value, error = many[point.over], many.errors[point.over]
        size = max(abs(value), mpmath.mpf("1e-3"))
        assert error <= 10.0 ** (1 - most) * size, point
        assert abs(value - point.value) <= max(point.error, 1e-12 * abs(point.value)), point
        values.append(value)
    return values


@pytest.mark.parametrize(
    "problem",
    # The test of many digits compares its diagrams, too.
    _cases([p for p in _FOLLOWED if p.name not in _TRANSITIONS], _QUICK_DIAGRAMS),
)
def test_all_branches_and_where_they_meet(problem):
    found = diagram(problem)
    check_branches(problem, found)
    # More digits take their time, and no other code: those of transitions are asked for 40.
    refined(found.points, 18)
    if problem.name == "phase_retrieval":
        with pytest.raises(ConvergenceError, match=r"80 digits .* nodes, more than 4e.05"):
            found.spinodals[0].refine(digits=80)


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem", [p for p in PROBLEMS if p.name in _DIGITS], ids=lambda p: p.name
)
def test_many_digits(problem):
    kernel = lowered(problem)
    start = problem.start or None
    # The nodes of a grid grow with the square of the digits.
    most, least = (12, 8) if "nested" in problem.tags else (40, 18)
    many, fewer = (kernel.solve(**problem.point, start=start, digits=n) for n in (most, least))
    for name in problem.solution(**problem.point):
        assert abs(many[name] - fewer[name]) <= 10.0 ** (1 - least) * abs(many[name]), name
        assert many.errors[name] <= 10.0 ** (1 - most) * abs(many[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem", [p for p in PROBLEMS if p.name in _TRANSITIONS], ids=lambda p: p.name
)
def test_many_digits_of_transitions(problem):
    found = diagram(problem)
    check_branches(problem, found)
    for point, many in zip(found.points, refined(found.points, 40), strict=True):
        fewer = point.refine(digits=18)[point.over]
        assert abs(many - fewer) <= 1e-17 * max(abs(many), mpmath.mpf("1e-3")), point
