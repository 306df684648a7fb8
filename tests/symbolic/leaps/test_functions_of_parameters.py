"""Parameters inside functions: what a case tree says is what a run at numbers says."""

import json

import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import (
    AssumptionError,
    ExpressionError,
    UndecidedError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.leaps.generative_leap import generative_leap
from giantstep.symbolic.leaps.leap_index import information_exponent
from giantstep.symbolic.leaps.staircase import staircase
from giantstep.symbolic.targets.cases import Case
from giantstep.symbolic.targets.parameter_functions import read_condition, sign_of_average
from giantstep.symbolic.targets.target import target

a, b, z = sp.symbols("a b z", real=True)
VALUES = [sp.Rational(-3, 2), sp.S.Zero, sp.Rational(1, 3), sp.S(2)]


def conditions(tree):
    return [str(leaf.case) for leaf in tree.leaves]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tanh(a*x1) + x1*x2", ["a != 0", "a = 0"]),
        ("tanh(x1 + a) + x1*x2", ["all values"]),
        ("exp(a*x1)*x2", ["a != 0", "a = 0"]),
        ("cos(a*x1) + x1*x2", ["all values"]),
        ("exp(a)*x1 + x1*x2", ["all values"]),
        ("relu(x1 - a) + x1*x2", ["all values"]),
        ("tanh(a*x1 + 2*a*x2)*x3", ["a != 0", "a = 0"]),
        ("a*sqrt(x1**2 + x2**2) + x1*x3", ["a != 0", "a = 0"]),
    ],
)
def test_staircases_with_parameters_inside_functions(text, expected):
    tree = staircase(text, parameters="a")
    assert conditions(tree) == expected
    f = target(text, parameters="a")
    for value in VALUES:
        try:
            at_numbers = staircase(f.with_values({f.parameters[0]: value}))
        except AssumptionError:
            with pytest.raises(AssumptionError, match="is constant"):
                tree.at({"a": value})
            continue
        by_tree = tree.at({"a": value})
        assert by_tree.subspaces == at_numbers.subspaces
        assert (by_tree.saturates, by_tree.stuck_order) == (
            at_numbers.saturates,
            at_numbers.stuck_order,
        )


def test_conditions_in_averages_are_sampled():
    tree = information_exponent("relu(z - a) - b*z", parameters="a b")
    assert conditions(tree) == ["2*b != erfc(sqrt(2)*a/2)", "2*b = erfc(sqrt(2)*a/2)"]
    point, leaf = tree.sample()[-1]
    assert leaf.value == 2 and leaf.case.equations
    f = sp.Max(z - point[tree.parameters[0]], 0) - point[tree.parameters[1]] * z
    assert information_exponent(f) == 2
    tree = information_exponent("tanh(a*z) - b*z", parameters="a b")
    assert conditions(tree)[:2] == [
        "E_z[z*tanh(a*z)] != b",
        "E_z[z*tanh(a*z)] = b, E_z[z**3*tanh(a*z)] != 3*b",
    ]
    assert [leaf.value for leaf in tree.leaves[:2]] == [1, 3]
    assert "is not decided" in tree.leaves[2].reason


def test_what_is_known_of_signs():
    node = GaussianExpectation(z * sp.tanh(a * z), z)
    assert sign_of_average(node) == (1, a)
    assert sign_of_average(GaussianExpectation(z * sp.tanh(z + a), z)) == (1, 1)
    assert sign_of_average(GaussianExpectation(z * sp.tanh(z + a) ** 3, z)) == (0, 1)
    case = Case((a, b)).where_some_do_not((a,))
    assert case.vanish([node]) is False
    assert Case((a,)).vanish([1 + sp.erf(a)]) is False
    assert Case((a,)).vanish([sp.exp(a) - sp.exp(2 * a)]) is None
    assert Case((a,)).where_all_vanish((a,)).vanish([node]) is True
    _, functions = read_condition(sp.erf(a) * b, (a, b))
    assert functions[0].at({a: sp.S.Zero}) == 2 / sp.sqrt(sp.pi)


def test_identities_that_algebra_does_not_see_are_not_guessed():
    with pytest.raises(UndecidedError, match="vanishes for all values"):
        Case((a,)).decide([sp.sin(a) ** 2 + sp.cos(a) ** 2 - 1])


def test_refusals_name_what_is_needed():
    with pytest.raises(UnsupportedExpressionError, match="depends on the parameters; a function"):
        staircase("tanh(a*x1 + b*x2)", parameters="a b")
    with pytest.raises(UnsupportedExpressionError, match="declare their signs"):
        staircase("log(a)*x1", parameters="a")
    assert conditions(staircase("log(a)*x1 + x1*x2", parameters={"a": "positive"}))[-1] == (
        "log(a) = 0"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x1*x2*x3 + a*x1", {"a != 0": 2, "a = 0": 2}),
        (
            "x1*x2 + a*x1 + b*x2",
            {
                "a + b != 0, a != b, a != 0": 1,
                "a + b = 0, b != 0": 2,
                "a = b, b != 0": 2,
                "a = 0, b != 0": 1,
                "a = 0, b = 0": 2,
            },
        ),
        ("a*x1**2*x2 + x2**3 - 3*x2", {"a != 0": 2, "a = 0": 1}),
        ("tanh(a*x1)*x2 + x2**2", {"a != 0": 2, "a = 0": 2}),
    ],
)
def test_generative_leaps_by_cases(text, expected):
    tree = generative_leap(text, parameters="a b")
    assert {str(leaf.case): int(leaf.value) for leaf in tree.leaves} == expected
    for point, leaf in tree.sample():
        at_numbers = generative_leap(target(text, parameters="a b").with_values(point))
        assert int(at_numbers) == int(leaf.value)


def test_clusters_regimes_and_giant_steps_by_cases():
    tree = staircase("x1 + a*x1*x2 + x1**2*x3", parameters="a", readout=[1, -1])
    at = tree.at({"a": 3}).clusters
    numbers = staircase("x1 + 3*x1*x2 + x1**2*x3", readout=[1, -1]).clusters
    assert (at.dimension, at.certain, at.reachable) == (
        numbers.dimension,
        numbers.certain,
        numbers.reachable,
    )
    table = gs.regimes("x1 + a*x1*x2 + b*x2**2", parameters="a b")
    for values in ({"a": 2, "b": 1}, {"a": 0, "b": 1}, {"a": 0, "b": 0}):
        numbers = gs.regimes(f"x1 + {values['a']}*x1*x2 + {values['b']}*x2**2")
        assert table.at(values).residuals == numbers.residuals
    step = gs.giant_step("tanh(a*x1) + x1*x2", parameters="a")
    assert [(str(leaf.case), leaf.value.order) for leaf in step.leaves] == [
        ("a != 0", 1),
        ("a = 0", 2),
    ]


def test_duals_without_closed_form_carry_their_parameters():
    rho = sp.Symbol("rho", real=True)
    dual = gs.dual_activation(gs.activation("tanh(a*z)", parameters="a"), rho)
    (parameter,) = dual.f.parameters
    number = dual.expr.xreplace({parameter: sp.S.One, rho: sp.Rational(1, 2)}).evalf(8)
    assert abs(number - gs.dual_activation("tanh", rho).value(sp.Rational(1, 2)).value) < 1e-7
    json.dumps(str(dual))


@pytest.mark.parametrize("text", ["x1 + a*x1*x2 + b*x2*x3", "relu(x1 - a) - b*x1 + x1*x2"])
@pytest.mark.parametrize("readout", [None, [1, -1]])
def test_trees_become_json_and_come_back(text, readout):
    tree = staircase(text, parameters="a b", readout=readout)
    content = json.loads(tree.to_json())
    again = gs.CaseTree.from_dict(content, gs.Staircase.from_dict)
    assert json.loads(again.to_json()) == content
    values = {"a": 1, "b": sp.Rational(1, 2)}
    assert again.at(values).subspaces == tree.at(values).subspaces
    stored = gs.CaseTree.from_dict(content)
    assert str(stored) == str(tree) and json.loads(stored.to_json()) == content
    del content["cases"][0]["equations"]
    with pytest.raises(ExpressionError, match="not that of a tree of cases"):
        gs.CaseTree.from_dict(content)


@pytest.mark.slow
def test_generative_leaps_of_random_targets_at_random_values():
    import random

    from .test_parameters import random_target, rational_point

    compared = 0
    for seed in (*range(5), *range(6, 12)):
        source = random.Random(seed)
        f = random_target(source)
        try:
            tree = generative_leap(f)
        except AssumptionError:
            continue
        for values in [rational_point(f, source) for _ in range(4)]:
            try:
                at_numbers = generative_leap(f.with_values(values))
            except AssumptionError:
                continue
            by_tree = tree.at(values)
            assert (by_tree.lower, by_tree.upper) == (at_numbers.lower, at_numbers.upper)
            compared += 1
    assert compared > 25
