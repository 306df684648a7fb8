"""Systems of the literature: solved, and refined to many digits; see :mod:`.literature`."""

import pytest

from .literature import PROBLEMS, lowered

# One of each kind; the others are slow because each system is derived and printed first.
_QUICK = {
    "blume_capel", "ferromagnetic_bias", "gardner_volume", "lasso", "ridge_regression",
    "signs_in_a_tensor", "spherical_three_spins",
}  # fmt: skip
_CASES = [
    pytest.param(p, id=p.name, marks=() if p.name in _QUICK else pytest.mark.slow) for p in PROBLEMS
]


def test_the_list_has_no_name_twice():
    assert len({p.name for p in PROBLEMS}) == len(PROBLEMS) >= 30
    assert {p.name for p in PROBLEMS} >= _QUICK


@pytest.mark.parametrize("problem", _CASES)
def test_solution(problem):
    found = lowered(problem).solve(**problem.point, start=problem.start or None)
    for name, value in problem.solution(**problem.point).items():
        allowed = max(problem.relative * abs(value), 3 * found.errors[name])
        assert abs(found[name] - value) <= allowed, name
        assert found.errors[name] <= 1e-7 * abs(value)


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_forty_digits(problem):
    kernel = lowered(problem)
    start = problem.start or None
    # The nodes of a grid grow with the square of the digits.
    most, least = (16, 8) if "nested" in problem.tags else (40, 25)
    many, fewer = (kernel.solve(**problem.point, start=start, digits=n) for n in (most, least))
    for name in problem.solution(**problem.point):
        assert abs(many[name] - fewer[name]) <= 10.0 ** (1 - least) * abs(many[name]), name
        assert many.errors[name] <= 10.0 ** (1 - most) * abs(many[name])
