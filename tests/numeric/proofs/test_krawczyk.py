"""Roots that are proven, and proofs that must not succeed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from giantstep.errors import CertificationError
from giantstep.numeric.proofs.krawczyk import _Proof, prove_root

flint = pytest.importorskip("flint")
GOAL = 1e-25


def arb(*given):
    return flint.arb(*given)


def square(number):
    """x² = number, for a ball of numbers."""

    def system(point, derivatives):
        (x,) = point
        return [x * x - number], [[2 * x]] if derivatives else []

    return system


@pytest.fixture(autouse=True)
def working_precision():
    with flint.ctx.workprec(128):
        yield


def test_the_square_root_of_two():
    found = prove_root(square(2), [arb(1.41421356)], logarithmic=[False], goal=arb(GOAL))
    assert found.unknowns[0].overlaps(arb(2).sqrt())
    assert found.unknowns[0].rad() < GOAL and found.contraction < 1e-6
    assert found.box[0].contains(found.unknowns[0])


def test_a_ball_of_parameters_gives_all_roots():
    numbers = arb(2, 1e-3)
    found = prove_root(square(numbers), [arb(1.4)], logarithmic=[False], goal=arb(GOAL))
    for number in (2 - 0.99e-3, 2.0, 2 + 0.99e-3):
        assert found.unknowns[0].contains(arb(number).sqrt().mid())


def test_logarithmic_coordinates_keep_unknowns_positive():
    def system(point, derivatives):
        (x,) = point
        # log(x / exp(-x)), and its derivative by log x.
        return [x.log() + x], [[1 + x]] if derivatives else []

    found = prove_root(system, [arb(0.5671432904)], logarithmic=[True], goal=arb(GOAL))
    # Lambert W(1), the omega constant (OEIS A030178).
    assert abs(found.unknowns[0] - arb("0.567143290409783872999968662210355549753816")) < 1e-24
    with pytest.raises(CertificationError, match="positive"):
        prove_root(system, [arb(-1)], logarithmic=[True], goal=arb(GOAL))


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.floats(-2, 2), min_size=2, max_size=2),
    st.lists(st.floats(-1, 1), min_size=4, max_size=4),
)
def test_two_equations_with_a_known_root(root, entries):
    # A(x - x0) + (x - x0)² componentwise has the root x0; A is diagonally dominant.
    a = [[3 + entries[0], entries[1]], [entries[2], -3 + entries[3]]]

    def system(point, derivatives):
        d = [x - arb(r) for x, r in zip(point, root, strict=True)]
        residual = [sum((a[i][j] * d[j] for j in range(2)), d[i] * d[i]) for i in range(2)]
        slopes = [[a[i][j] + (2 * d[i] if i == j else 0) for j in range(2)] for i in range(2)]
        return residual, [[arb(0) + x for x in row] for row in slopes] if derivatives else []

    start = [arb(r + 1e-7) for r in root]
    with flint.ctx.workprec(128):
        found = prove_root(system, start, logarithmic=[False, False], goal=arb(GOAL))
        for x, r in zip(found.unknowns, root, strict=True):
            assert abs(x - arb(r)) < 1e-24


def no_root(point, derivatives):
    (x,) = point
    return [x * x + arb(1) / 10**8], [[2 * x]] if derivatives else []


def double_root(point, derivatives):
    (x,) = point
    return [x * x], [[2 * x]] if derivatives else []


def triple_root(point, derivatives):
    (x,) = point
    return [x * x * x], [[3 * x * x]] if derivatives else []


def undefined(point, derivatives):
    (x,) = point
    return [(x - 1).sqrt()], [[1 / (x - 1).sqrt()]] if derivatives else []


@pytest.mark.parametrize(
    ("system", "start", "said"),
    [
        (no_root, 1e-9, "no root"), (no_root, 1e-3, "root"), (double_root, 0.0, "bifurcation"),
        (double_root, 1e-9, "bifurcation"), (triple_root, 1e-5, "bifurcation"),
        (undefined, 1.0, "no finite enclosure"), (square(-1), 0.5, "root|singular"),
    ],
)  # fmt: skip
def test_what_is_no_isolated_root_is_not_proven(system, start, said):
    with pytest.raises(CertificationError, match=said):
        prove_root(system, [arb(start)], logarithmic=[False], goal=arb(GOAL))


def test_a_wrong_sign_far_from_its_root_is_not_proven():
    # x = 1 solves x² - 1 = 0; with the sign of the constant flipped nothing does.
    prove_root(square(1), [arb(1 + 1e-12)], logarithmic=[False], goal=arb(GOAL))
    with pytest.raises(CertificationError):
        prove_root(square(-1), [arb(1 + 1e-12)], logarithmic=[False], goal=arb(GOAL))


def test_all_roots_of_steep_and_flat_equations_are_enclosed():
    # a x = e with a in [0.2, 1.8] and |e| <= 1e-6: the first box is too small for |x| = 5e-6.
    slope, shift = arb(1, 0.8), arb(0, 1e-6)

    def system(point, derivatives):
        (x,) = point
        return [slope * x + shift], [[slope]] if derivatives else []

    found = prove_root(system, [arb(1e-9)], logarithmic=[False], goal=arb(GOAL))
    for root in (-4.9e-6, 4.9e-6):
        assert found.unknowns[0].contains(arb(root))
    assert found.box[0].contains(found.unknowns[0]) and 0.79 < found.contraction < 1


def test_a_jump_between_equal_slopes_is_not_a_root():
    def system(point, derivatives):
        (x,) = point
        side = arb(-1) if x < 1 else arb(1) if x >= 1 else arb("nan")
        return [x - 1 + side * arb(1e-7)], [[arb(1)]] if derivatives else []

    with pytest.raises(CertificationError, match="no root"):
        prove_root(system, [arb(1 - 1e-12)], logarithmic=[False], goal=arb(GOAL))


@settings(max_examples=12, deadline=None)
@given(st.floats(-40, 40), st.floats(1e-12, 2))
def test_boxes_of_positive_unknowns_hold_no_more_than_their_logarithms(middle, radius):
    with flint.ctx.workprec(128):
        box = arb(middle) + arb(0, radius)
        (inner,) = _Proof(square(2), (True,)).unknowns_inside([box])
        with flint.ctx.workprec(512):
            ends = (inner.mid() - inner.rad()).log(), (inner.mid() + inner.rad()).log()
            assert box.contains(ends[0]) and box.contains(ends[1])
            assert float((ends[1] - ends[0]) / (2 * box.rad())) > 0.99999


def test_the_box_of_a_positive_unknown_is_one_of_its_logarithm():
    # log x = e with |e| <= 0.01: the box is an interval of log x around 0.
    def system(point, derivatives):
        return [point[0].log() + arb(0, 0.01)], [[arb(1)]] if derivatives else []

    (box,) = prove_root(system, [arb(1)], logarithmic=[True], goal=arb(GOAL)).box
    left, right = (box.mid() - box.rad()).log(), (box.mid() + box.rad()).log()
    assert right > 0.01 and abs(left + right) < 1e-6
