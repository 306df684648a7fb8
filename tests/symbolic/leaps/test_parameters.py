"""Targets with parameters: what a case tree says is what a run says at every value of them."""

import json
import random

import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
    UndecidedError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.leaps.leap_index import coordinate_leap, isotropic_leap, leap_index
from giantstep.symbolic.leaps.leap_report import leap_filtration, leaps
from giantstep.symbolic.leaps.staircase import Staircase, staircase
from giantstep.symbolic.targets.cases import Case, CaseTree
from giantstep.symbolic.targets.target import Target, target

x1, x2, x3 = sp.symbols("x1 x2 x3", real=True)
a, b = sp.symbols("a b", real=True)


def random_target(source: random.Random) -> Target:
    """Draw a polynomial whose coefficients are polynomials in one or two parameters."""
    parameters = (a, b)[: source.randint(1, 2)]
    variables = (x1, x2, x3)[: source.randint(2, 3)]
    terms = []
    for _ in range(source.randint(2, 4)):
        monomial = sp.Mul(*(source.choice(variables) for _ in range(source.randint(1, 3))))
        terms.append(random_coefficient(source, parameters) * monomial)
    expr = sp.Add(*terms)
    if not expr.free_symbols & {*parameters} or not expr.free_symbols & {*variables}:
        return random_target(source)
    used = tuple(x for x in parameters if expr.has(x))
    return target(expr, variables, parameters=used)


def random_coefficient(source: random.Random, parameters: tuple[sp.Symbol, ...]) -> sp.Expr:
    p, q = source.choice(parameters), source.choice(parameters)
    n = source.choice([-2, -1, 1, 2])
    return source.choice(
        [sp.Integer(n), p, n * p, p + n, p * q - n, p**2 - 1, p - q + 1, p**2 + 1, p + n * q]
    )


def rational_point(f: Target, source: random.Random) -> dict[sp.Symbol, sp.Rational]:
    # Small numbers meet exceptional sets, too.
    return {
        x: sp.Rational(source.randint(-4, 4), source.choice([1, 1, 2, 3])) for x in f.parameters
    }


def facts(result: Staircase | str) -> object:
    if isinstance(result, str):
        return result
    return (
        result.subspaces, result.orders, result.saturates, result.has_ended, result.stuck_order,
        result.relevant_subspace, result.decided,
    )  # fmt: skip


def run(compute, f):
    """Return an answer, or the word for a target that is constant."""
    try:
        return compute(f)
    except AssumptionError as error:
        return "constant" if "is constant" in str(error) else str(error)


def agrees(tree: CaseTree, f: Target, values: dict[sp.Symbol, sp.Expr]) -> None:
    at_numbers = run(lambda g: staircase(g), f.with_values(values))
    by_tree = run(lambda _: tree.at(values), f)
    by_tree = "constant" if isinstance(by_tree, str) and "is constant" in by_tree else by_tree
    assert facts(by_tree) == facts(at_numbers), (f.name, values)


def check(seed, points):
    source = random.Random(seed)
    f = random_target(source)
    try:
        tree = staircase(f)
    except AssumptionError:
        return 0
    drawn = [rational_point(f, source) for _ in range(points)]
    for point in {tuple(point.items()): point for point in drawn}.values():
        agrees(tree, f, point)
    exceptional = [
        point
        for point, leaf in tree.sample(2, seed=seed)
        # A run over a field of a high degree takes seconds.
        if leaf.case.equations and not any(value.has(sp.CRootOf) for value in point.values())
    ]
    for point in exceptional:
        agrees(tree, f, point)
    return len(exceptional)


@pytest.mark.parametrize("seed", range(6))
def test_staircases_of_random_targets(seed):
    check(1000 + seed, 4)


@pytest.mark.slow
def test_staircases_of_twenty_targets_at_twenty_values():
    on_exceptional_sets = sum(check(seed, 20) for seed in range(20))
    assert on_exceptional_sets > 20


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("compute", [leap_index, coordinate_leap, isotropic_leap])
def test_leaps_of_random_targets(compute, seed):
    source = random.Random(2000 + seed)
    f = random_target(source)
    tree = compute(f)
    for values in [rational_point(f, source) for _ in range(5)]:
        by_tree, at_numbers = run(tree.at, values), run(compute, f.with_values(values))
        if isinstance(at_numbers, str):
            assert "constant" in by_tree
        else:
            assert int(by_tree) == int(at_numbers)


def test_levels_are_those_at_numbers():
    f = target(a * x1 + b * x2 + x1 * x2)
    for values, _ in leap_filtration(f).sample(3):
        by_tree, at_numbers = leap_filtration(f).at(values), leap_filtration(f.with_values(values))
        assert [v.subspace for v in by_tree.levels] == [v.subspace for v in at_numbers.levels]


def conditions(tree) -> list[str]:
    return [str(leaf.case) for leaf in tree.leaves]


def test_the_tree_of_the_introduction():
    tree = staircase(x1 + a * x1 * x2 + b * x2 * x3)
    assert conditions(tree) == ["a != 0, b != 0", "a = 0, b != 0", "b = 0, a != 0", "a = 0, b = 0"]
    assert [leaf.value.saturates for leaf in tree.leaves] == [True, False, True, True]
    assert tree.generic.final.is_whole
    assert len(tree.exceptional) == 3


def test_a_rank_asks_for_no_more_than_it_depends_on():
    # (a, b) is one direction for all values but 0: which of the two is a pivot does not matter.
    tree = staircase(a * x1 + b * x2 + x1 * x2)
    assert conditions(tree) == [
        "a + b != 0, a != b",
        "(a - b)*(a + b) = 0, a != 0 or b != 0",
        "a = 0, b = 0",
    ]
    assert str(tree.generic.steps[0].after) == "⟨(a, b)⟩"


def test_conditions_are_polynomial_and_real():
    assert conditions(staircase(a * x1**3 - 3 * b * x1 + (a**2 + 1) * x1 * x2)) == [
        "a != b",
        "a = b",
    ]
    product = staircase((a * b - 1) * x1 + x1 * x2)
    assert conditions(product) == ["a*b != 1", "a*b = 1"]
    # a² + b² vanishes at the origin only.
    assert conditions(staircase((a**2 + b**2) * x1)) == ["a != 0 or b != 0", "a = 0, b = 0"]


def test_assumptions_of_parameters_are_respected():
    p, n, k = (
        sp.Symbol("p", positive=True),
        sp.Symbol("n", negative=True),
        sp.Symbol("k", integer=True),
    )
    assert conditions(staircase((p + 1) * x1 + p * x1 * x2)) == ["all values"]
    assert conditions(staircase((n - 2) * x1 + (n + 2) * x1 * x2)) == ["n != -2", "n = -2"]
    assert conditions(staircase(x1 + (2 * k - 1) * x1 * x2)) == ["all values"]
    assert conditions(staircase(x1 + (p**2 - 2) * x1 * x2)) == ["p**2 != 2", "p**2 = 2"]
    ((values, _),) = [
        s for s in staircase(x1 + (p**2 - 2) * x1 * x2).sample(3) if s[1].case.equations
    ]
    assert values == {p: sp.sqrt(2)}


def test_coefficients_may_divide_by_parameters():
    tree = staircase(x1 / a + x1 * x2)
    assert conditions(tree) == ["a != 0"]
    with pytest.raises(ParameterError, match="not defined at a = 0"):
        tree.at({a: 0})


def test_targets_that_are_no_polynomials():
    tree = isotropic_leap(sp.sign(x1) + a * sp.Abs(x1) * x2)
    assert [int(leaf.value) for leaf in tree.leaves] == [1, 2, 1]
    for values, _ in tree.sample(2):
        f = target(sp.sign(x1) + a * sp.Abs(x1) * x2).with_values(values)
        assert int(tree.at(values)) == int(isotropic_leap(f))
    tree = staircase(a * x1 + x1 * x2 + sp.erf(x1))
    assert conditions(tree)[1] == "a = -2*sqrt(3)/(3*sqrt(pi))"
    assert [leaf.value.saturates for leaf in tree.leaves] == [True, False]
    assert conditions(staircase(sp.tanh(x1) + a * x1 * x2)) == ["a != 0", "a = 0"]


def test_students_restrict_the_degrees_in_every_case():
    tree = staircase(a * x1 + (x1**2 - 1) * x2, student="relu")
    for values, _ in tree.sample(2):
        f = target(a * x1 + (x1**2 - 1) * x2).with_values(values)
        assert facts(tree.at(values)) == facts(staircase(f, student="relu"))


def test_cases_print_as_text_latex_html_and_json():
    tree = staircase("x1 + a*x1*x2", parameters="a")
    assert "a = 0   {0} ⊂ ⟨e1⟩, saturates" in str(tree)
    assert r"a \neq 0" in tree.latex()
    assert "<table" in tree._repr_html_()
    content = json.loads(tree.to_json())
    assert content["parameters"] == [{"name": "a", "kind": "real"}]
    assert content["cases"][1]["equations"] == ["a"]
    assert content["cases"][1]["answer"]["saturates"] is True


def test_all_leaps_on_one_page():
    tree = leaps("a*x1 + x1*x2", parameters="a")
    assert [int(leaf.value.leap_index) for leaf in tree.leaves] == [1, 2]
    assert [int(leaf.value.generative_leap) for leaf in tree.leaves] == [1, 2]


def test_a_constant_target_in_one_case_only():
    tree = leap_index(a * x1)
    with pytest.raises(AssumptionError, match="at a = 0: target 'a\\*x1' is constant"):
        tree.at({a: 0})
    assert tree.at({a: 2}).coefficient == 2


def test_inputs_and_parameters_are_told_apart():
    y, w = sp.symbols("y w")
    with pytest.raises(ExpressionError, match="holds y: a coordinate or a parameter"):
        target(x1 + y * x1 * x2)
    assert target(x1 + y * x1 * x2, parameters=[y]).parameters == (y,)
    assert target(x1 + y * x1 * x2, variables=[x1, x2]).parameters == (y,)
    assert target(w + a * y, variables=[w, y]).parameters == (a,)
    with pytest.raises(ExpressionError, match="unknown name 'a'"):
        target("x1 + a*x1*x2")
    with pytest.raises(ExpressionError, match="x2 is a coordinate"):
        target("x1 + x2", parameters="x2")
    with pytest.raises(ExpressionError, match="neither a coordinate nor among the parameters"):
        target(x1 + a * x1 + b * x2, parameters=[a])
    with pytest.raises(ParameterError, match="cannot be positive and negative"):
        target("a*x1", parameters={"a": "positive, negative"})
    with pytest.raises(ParameterError, match="parameters must be names"):
        target("a*x1", parameters=3)


def test_what_needs_numbers_refuses_parameters():
    with pytest.raises(ExpressionError, match="numbers are needed here"):
        gs.Network("relu", x1 + a * x1 * x2)
    with pytest.raises(UnsupportedExpressionError, match="its direction not"):
        staircase(sp.tanh(a * x1 + x2))
    with pytest.raises(UnsupportedExpressionError, match=r"sqrt\(a\) is not known to be real"):
        staircase(sp.sqrt(a) * x1)
    with pytest.raises(UndecidedError, match="constant without closed form"):
        staircase(sp.tanh(x1) + a * x1)


def test_values_of_parameters_are_checked():
    p = sp.Symbol("p", positive=True)
    tree = staircase(x1 + a * x1 * x2 + (p - 1) * x2 * x3)
    with pytest.raises(ParameterError, match="values have no p"):
        tree.at({a: 1})
    with pytest.raises(ParameterError, match="no parameter; there are a, p"):
        tree.at({"q": 1})
    with pytest.raises(ParameterError, match="declared with \\(positive\\), got -1"):
        tree.at({a: 1, p: -1})
    with pytest.raises(ParameterError, match=r"0\.5"):
        tree.at({a: 0.5, p: 1})
    with pytest.raises(ParameterError, match="count must be"):
        tree.sample(0)
    with pytest.raises(ParameterError, match="no parameter of target"):
        target(x1).with_values({a: 1})


def test_a_case_outside_a_tree_says_what_it_does_not_know():
    leaf = staircase(x1 + a * x1 * x2 + b * x2 * x3).leaves[0]
    with pytest.raises(UndecidedError, match="whether a - 1 vanishes depends on the parameters"):
        leaf.case.decide([a - 1])
    empty = Case((a,)).where_all_vanish((a - 1,)).where_all_vanish((a - 2,))
    assert empty.is_empty
    assert empty.sample() == ()
