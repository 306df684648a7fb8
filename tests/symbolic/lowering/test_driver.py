"""The driver: its decisions in all languages, its rules, which rows are solved at which level."""

import functools
import itertools
import math

import numpy as np
import pytest

from giantstep.errors import EmissionError
from giantstep.runtime import refinement
from giantstep.runtime.quadrature import sufficient_reach
from giantstep.runtime.rules import REACH_NODES, fixed_end, grid_coarseness, moving_end, panel_count
from giantstep.symbolic.lowering.driver import decision, rule_function
from giantstep.symbolic.printing.language import Function, Parameter
from giantstep.symbolic.printing.spellings import ArrayLanguage, PythonLanguage

SIZES = (0.0, -1.0, 1e-12, 1e-9, 0.5, 1e300, math.inf, math.nan)
LEVELS = range(-1, 19)


def defined(function, language):
    namespace = {"math": math, "np": np}
    exec(language.source(function), namespace)
    return namespace[function.name]


@pytest.mark.parametrize(
    ("function", "values"),
    [
        ("rule_worst", itertools.product(SIZES, SIZES, (-3.0, 0.0, 7.0, math.nan))),
        ("rule_finished", itertools.product(SIZES, SIZES, SIZES, (0.0, 1e-11, 1.0))),
        ("rule_better", itertools.product(SIZES, SIZES, SIZES, (-1, 0, 3))),
        ("rule_following",
         itertools.product(LEVELS, (0, 3, 12, 99), (0, 4, 17), (0, 7), (True, False))),
        ("rule_wanted", itertools.product((0.13, math.inf), (0.0, *SIZES), (-1.0, 4.0))),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_decisions_for_arrays_are_those_for_one_row(function, values):
    one, many = defined(decision(function, grid=True), PythonLanguage()), vars(refinement)[function]
    rows = [row for row in values]
    if function == "rule_wanted":
        many = functools.partial(many, halvings=2.0)
    with np.errstate(all="ignore"):
        found = many(*(np.array(column) for column in zip(*rows, strict=True)))
    expected = [one(*row) for row in rows]
    assert len({*map(str, expected)}) > 1
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("level", "wanted", "finest", "refinements", "finished", "following"),
    [
        (0, 0, 17, 0, True, -1),  # good enough
        (0, 0, 17, 0, False, 1),  # one level more
        (3, 0, 17, 7, False, -1),  # often enough
        (17, 0, 17, 0, False, -1),  # no finer rules
        (0, 5, 17, 0, True, 5),  # good in vain: the rules step over what they integrate
        (0, 40, 17, 0, True, 10),  # as fine as it gets
        (0, 40, 6, 0, True, 6),
        (10, 40, 17, 0, True, -1),  # and nothing is known there
        (12, 11, 17, 2, False, 13),  # resolved: refined like any other
        (0, 0, 0, 0, False, -1),  # a sum over data
    ],
)
def test_the_level_that_follows(level, wanted, finest, refinements, finished, following):
    decide = defined(decision("rule_following"), PythonLanguage())
    assert decide(level, wanted, finest, refinements, finished) == following


def test_what_is_kept():
    better = refinement.rule_better
    assert better(1e-6, 5e-7, 1e-16, 0)
    assert not better(1e-12, 6e-13, 1e-16, 0)  # rounding, of which a finer rule has as much
    assert better(1e-6, 1e-5, 1e-16, 0)  # not resolved yet: the finer rule is trusted more
    assert not better(1e-6, 1e-5, 1e-3, 0)  # rounding is as large
    assert better(math.inf, math.inf, math.nan, 0)  # without a solution: one more chance
    assert not better(math.inf, math.inf, math.nan, 1)


def test_coarser_rules_have_half_the_panels_and_end_sooner():
    for level in range(5):
        counts = [panel_count(level, back) for back in range(3)]
        assert counts == [16 * 2**level, 8 * 2**level, 4 * 2**level]
    ends = [moving_end(10.5, 2, back) for back in range(3)]
    assert ends == pytest.approx([10.5 * 1.2**2 * 0.9**back for back in range(3)], rel=1e-15)
    # Where the density is no number any more there is nothing to gain.
    assert moving_end(10.5, 30, 0) == 37.0
    assert moving_end(50.0, 3, 0) == 50.0


def test_rules_whose_integrands_do_not_move_end_where_the_tables_say():
    assert {fixed_end(12.0, level, back) for level in range(9) for back in range(3)} == {12.0}


def test_a_grid_halves_distances_every_second_level():
    assert grid_coarseness(4, 0) == pytest.approx(0.25, rel=1e-15)
    assert grid_coarseness(1, 1) == pytest.approx(math.sqrt(2), rel=1e-15)
    assert refinement.rule_wanted(0.13, 0.26 / 8, 1.0, 2.0) == 6


@pytest.mark.parametrize("power", [0, 4, 12])
def test_reach_of_tables_that_grow(power):
    reach = sufficient_reach(10.5, lambda x: np.stack([np.ones(len(x)), np.cosh(x) ** power]))
    # C and Julia have a translation of what decides.
    translated = defined(rule_function("farther", "rule_suffices"), PythonLanguage())
    x = np.linspace(-reach, reach, REACH_NODES)
    assert translated(reach, [*np.ones(len(x)), *np.cosh(x) ** power], 2) == reach

    def size(x):
        return 2 * power * np.log(np.cosh(x)) - x**2 / 2

    x = np.linspace(0.0, reach, 1000)
    assert size(reach) - size(x).max() <= math.log(1e-18)
    if reach > 10.5:
        assert size(reach / 1.2) - size(x).max() > math.log(1e-18)


class Rows:
    """Rows whose errors fall by `gain` from level to level, down to `floor`."""

    def __init__(self, first, gain, floor, wanted, last=17):
        self.columns = [np.array(x, dtype=float) for x in (first, gain, floor)]
        self.wanted, self.last, self.calls = np.array(wanted), last, []

    def solve(self, rows, level):
        self.calls.append((level, [*map(int, rows)]))
        if level > self.last:
            return None
        first, gain, floor = (column[rows] for column in self.columns)
        errors = np.maximum(first * gain**level, floor)[:, None]
        info = np.tile([4.0, 1e-16, 1e-16], (len(rows), 1))
        return np.full((len(rows), 1), 1.0 + level), errors, info

    def refined(self, rtol=1e-10):
        n = len(self.wanted)
        values, errors = np.full((n, 1), np.nan), np.full((n, 1), np.inf)
        info = np.tile([-1.0, np.inf, np.inf], (n, 1))
        levels, unseen = refinement.refine(
            np.arange(n), values, errors, info, self.solve, lambda rows: self.wanted[rows], 17, rtol
        )
        return values[:, 0], errors[:, 0], levels, unseen


def test_rows_are_solved_at_the_levels_that_they_need_each_level_once():
    rows = Rows(
        first=[1e-12, 1e-6, 1e-6, 1e-12, 1e-12, 1e-3],
        gain=[1.0, 1e-3, 1.0, 1.0, 1.0, 0.4],
        floor=[0.0, 0.0, 0.0, 0.0, 0.0, 1e-5],
        wanted=[0, 0, 0, 3, 20, 0],
    )
    _, errors, levels, unseen = rows.refined()
    assert [*levels] == [0, 2, 7, 3, 10, 7]
    assert [*unseen] == [False, False, False, False, True, False]
    assert errors[1] == pytest.approx(1e-12)
    at = [level for level, _ in rows.calls]
    assert at == sorted(set(at))
    assert rows.calls[0] == (0, [0, 1, 2, 3, 4, 5])


def test_what_levels_before_have_found_stays_where_there_is_no_room():
    rows = Rows(first=[1e-6, 1e-12], gain=[0.4, 1.0], floor=[0, 0], wanted=[0, 9], last=2)
    values, errors, levels, unseen = rows.refined()
    assert [*levels] == [2, 0] and [*unseen] == [False, True]
    assert values[0] == 3.0 and errors[0] == pytest.approx(1e-6 * 0.4**2)
    nothing = Rows(first=[1e-6], gain=[0.4], floor=[0], wanted=[0], last=-1).refined()
    assert np.isnan(nothing[0][0]) and nothing[2][0] == -1 and nothing[3][0]


def test_arrays_take_no_branches():
    for head in ("if x > 0.0:", "for i in range(3):", "while x > 0.0:"):
        body = f"{head}\n    x = 1.0\nreturn x\n"
        with pytest.raises(EmissionError, match="rows of an array"):
            ArrayLanguage().source(Function("f", (Parameter("x"),), body))
