"""Programs written by hand in the files of all targets: each kind of step, and where it fails."""

import functools

import mpmath
import numpy as np
import pytest

from . import hand_programs as hand
from .target_files import TargetFile

TARGETS = pytest.mark.parametrize("target", ["python", "numpy", "c", "mpmath"])
PROGRAMS = {
    "triangular": hand.triangular,
    "triangular, safeguarded": functools.partial(hand.triangular, True),
    "arctangent": functools.partial(hand.arctangent, True),
    "arctangent, full steps": functools.partial(hand.arctangent, False),
    "cosine": hand.cosine,
    "linear 1": functools.partial(hand.linear, 1),
    "linear 2": functools.partial(hand.linear, 2),
    "linear 3": functools.partial(hand.linear, 3),
    "cut": hand.cut,
    "growing": hand.growing,
    "proximal": hand.proximal,
    "unlucky": hand.unlucky_names,
}


@pytest.fixture(scope="module")
def file_of(tmp_path_factory):
    """Return a function that makes the file of a program in a language once."""

    @functools.cache
    def file(name, target):
        lowered = hand.lowered(PROGRAMS[name]())
        return TargetFile(lowered, target, tmp_path_factory.mktemp(target))

    return file


def _triangular(a, b, c):
    return {"x": a, "y": a * b, "w": a * b + a**2}


def _linear(n, a):
    return {f"y{k}": value for k, value in enumerate(hand.linear_solution(n, a))}


def _cut(a, b):
    # E|t - b| e^t by completing the square, with d = 1 - b.
    d = 1 - mpmath.mpf(b)
    folded = 2 * mpmath.npdf(d) + d * (1 - 2 * mpmath.ncdf(-d))
    return {"y": mpmath.ncdf(-a), "total": mpmath.exp(0.5) * folded}


# The Dottie number, https://oeis.org/A003957
DOTTIE = {"y": 0.73908513321516064165531208767387}
# Program, parameters, what is exact, and the largest error that may be stated for it.
CASES = [
    *(
        (name, point, _triangular(*point), 1e-12)
        for name in ("triangular", "triangular, safeguarded")
        for point in ((2.0, 3.0, 1.0), (0.5, -1.0, 4.0))
    ),
    # Full steps diverge from |b| = 1.4 on.
    *(("arctangent", (a, b), {"y": a}, 1e-12) for a, b in ((1.0, 0.5), (-2.0, 3.0), (7.0, 30.0))),
    # The Jacobian is wrong: moves of the fixed point get there.
    *(("cosine", (start,), DOTTIE, 1e-12) for start in (0.1, 50.0, -3.0)),
    *((f"linear {n}", (a,), _linear(n, a), 1e-11) for n in (1, 2, 3) for a in (0.5, 7.0)),
    *(
        ("cut", point, _cut(*point), 1e-10)
        for point in ((0, 1), (5, -3), (-30, 40), (1, 1), (1e-9, -1e-9))
    ),
    # The nodes of the line go as far as the integrand matters: its mass is around a.
    *(("growing", (a,), {"y": mpmath.exp(a**2 / 2)}, 1e-4) for a in (0.5, 6.0, 12.0)),
    ("unlucky", tuple(1.0 + k for k in range(13)), {"report": 91.0, "residual": 2.0}, 1e-9),
]


@TARGETS
@pytest.mark.parametrize(("name", "values", "exact", "largest"), CASES, ids=lambda x: str(x)[:12])
def test_solutions_are_within_their_errors(target, name, values, exact, largest, file_of):
    file = file_of(name, target)
    point = dict(zip(file.parameters, values, strict=True))
    found = file.solve(point, **({"digits": 20} if target == "mpmath" else {}))
    for output, expected in exact.items():
        value, error = found[output]
        # What is exact is computed in floats here.
        assert abs(value - expected) <= error + 4e-15 * max(1, abs(expected)), output
        assert error <= largest * max(abs(float(expected)), 1e-6), output


@TARGETS
def test_roots_and_weighted_data(target, file_of):
    file = file_of("proximal", target)
    centers, weights = [-40.0, -0.3, 0.0, 2.0, 1e5], [1.0, 2.0, 3.0, 4.0, 0.0]
    for step in (1e-3, 1.0, 50.0):
        with mpmath.workdps(30):
            # x - center = step/(1 + e**x) between its two flat ends.
            roots = [
                mpmath.findroot(
                    lambda x, c=c, step=step: x - c - step / (1 + mpmath.exp(x)),
                    (c, c + step),
                    solver="anderson",
                )
                for c in centers[:-1]
            ]
            exact = float(mpmath.fdot(roots, weights[:-1]) / 10)
        options = {"digits": 20} if target == "mpmath" else {}
        data = {"sample": {"center": centers, "weight": weights}}
        value, error = file.solve({"x": step}, data, **options)["y"]
        assert abs(float(value) - exact) <= error + 4e-15 * 40


@TARGETS
@pytest.mark.parametrize(
    ("name", "point"),
    [
        # One equation is multiplied by zero; steps that grow; a singular matrix.
        ("triangular", {"a": 2.0, "b": 3.0, "c": 0.0}),
        ("triangular, safeguarded", {"a": 2.0, "b": 3.0, "c": 0.0}),
        ("arctangent, full steps", {"a": -2.0, "b": 3.0}),
        ("linear 2", {"a": -1.0}),
    ],
)
def test_what_is_not_solved_is_no_number_and_harms_no_other_row(target, name, point, file_of):
    file = file_of(name, target)
    named = ", ".join(f"{key} = {value}" for key, value in point.items())
    with pytest.raises(RuntimeError, match="no solution" if target == "c" else named):
        file.solve(point, **({"digits": 15} if target == "mpmath" else {}))
    if target == "mpmath":
        return
    easy = {key: 1.0 if key == "c" else 0.5 for key in file.parameters}
    rows = [[p[key] for key in file.parameters] for p in (easy, point, easy)]
    values, errors, iterations = file.solve_many(rows)
    assert np.isnan(values[1]).all() and np.isinf(errors[1]).all()
    assert list(iterations < 0) == [False, True, False]
    assert np.array_equal(values[0], values[2]) and np.isfinite(errors[[0, 2]]).all()
    alone = file.solve(easy)
    assert list(values[0]) == [alone[output][0] for output in file.outputs]


def test_moves_of_the_fixed_point_come_after_steps_that_fail(file_of):
    info = file_of("cosine", "numpy").module.solve_many([[0.1], [50.0], [-3.0]])[2]
    assert np.all(info[:, 0] > 12)


def test_what_any_later_step_reads_is_left_by_newtons_method():
    (newton,) = hand.arctangent(False).steps
    later = (hand.Assign(hand.r2, hand.r1 + hand.y), hand.Assign(hand.w, hand.r2))
    found = hand.program("later", (hand.a, hand.b), (newton, *later), (hand.w,))
    assert found.left_by(newton) == [hand.r1]
