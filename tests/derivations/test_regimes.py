"""Predicted fits: the five regimes, several steps, and what each prediction rests on."""

import itertools
from fractions import Fraction

import pytest
import sympy as sp

from giantstep.derivations.giant_steps.regimes import predict_fit, regimes
from giantstep.errors import AssumptionError, ExpressionError, ParameterError
from giantstep.symbolic.expressions.standing import Standing
from giantstep.symbolic.targets.subspaces import Subspace

P05 = "x1 + He(2, x2) + He(2, x1)*x2 + He(4, x1)*He(2, x2)*x3 + He(2, x2)*He(2, x3)"
U, V = "(x1 + x2)/sqrt(2)", "(x1 - x2)/sqrt(2)"
P11 = f"{U} + He(2, {U})*{V} + He(3, {V})*x3"
P28 = "x1 + x1*x2 + (x1**2 - 1)*(x2 + x3*x4)"


def test_the_five_regimes_of_dandi_et_al():
    # arXiv 2305.18270, figure on the five regimes; norms are products of factorials.
    table = regimes(P05)
    assert table.residuals == (56, 54, 52, 4, 0)
    assert [str(row.subspace) for row in table.rows] == ["⟨e1⟩"] * 2 + ["⟨e1, e2⟩"] * 3
    terms = [sorted(row.projection.fitted_expansion.he_coefficients()) for row in table.rows]
    linear, mixed, square = (1, 0, 0), (2, 1, 0), (0, 2, 0)
    assert terms[:3] == [[linear], sorted([linear, mixed]), sorted([linear, mixed, square])]
    assert terms[3] == sorted([linear, mixed, square, (4, 2, 1)])
    assert table.rows[4].fitted == sp.expand(table.target.expr)
    assert [row.kappa for row in table.rows] == [0, 1, 0, 1, 2]


def test_more_steps_at_linear_samples():
    table = regimes(P05, steps=3)
    assert table.residuals == (56, 54, 52, 4, 0, 52, 4, 0, 0)
    assert [(row.steps, str(row.subspace)) for row in table.rows[5::2]] == [
        (2, "⟨e1, e2⟩"),
        (3, "R^3"),
    ]
    assert all(row.samples_exponent == 1 for row in table.rows[5:])


def test_other_targets_in_five_regimes():
    assert regimes(P28).residuals == (5, 2, 2, 2, 0)
    # P11 learns (1,1,0) only, with n = d or d^2: 8, 6 and 6 for degrees 0, 1 and 2 outside it.
    assert regimes(P11).residuals == (8, 6, 8, 6, 6)
    assert all(row.subspace == Subspace.spanned_by([[1, 1, 0]]) for row in regimes(P11).rows)


def test_a_student_with_few_degrees_is_stuck():
    # relu without bias sees degree 1 and the even ones; He_2(x1) x2 is of degree 3.
    table = regimes(P05, [(1, 0), (1, 1)], steps=3, student="relu")
    assert all(str(row.subspace) == "⟨e1⟩" for row in table.rows)
    assert table.residuals == (56, 54) * 3
    assert "relu does not see" in " ".join(table.rows[-1].caveats)
    assert table.rows[-1].standing is Standing.CONJECTURE


@pytest.mark.parametrize(
    ("target", "kappa1", "kappa2", "steps", "relation", "subspace", "error"),
    [
        # p = O(1) after one step at leap index 1: both are theorems.
        ("x1 + x1*x2", 1, 0, 1, "≥", "theorem", "theorem"),
        ("x1 + x1*x2", 1, 1, 1, "≥", "theorem", "conjecture"),
        # Two steps are proven in expectation, more are Conjecture 1.
        ("x1 + x1*x2", 1, 0, 2, "≥", "theorem", "theorem"),
        ("x1 + x1*x2 + x2*x3", 1, 0, 3, "≥", "conjecture", "theorem"),
        # All orders up to 2 in one step.
        ("x1 + He(2, x2)", 2, 1, 1, "≥", "extrapolation", "conjecture"),
        ("x1 + x1*x2 + He(2, x3)", 2, 1, 2, "≥", "extrapolation", "conjecture"),
        # Leap index 2: a theorem for sums of functions of one coordinate each.
        ("He(2, x1) + He(3, x2)", 2, 0, 1, "≥", "theorem", "theorem"),
        ("x1*x2", 2, 0, 1, "≥", "derived here", "theorem"),
        # Nothing is learned: random features.
        ("x1*x2*x3", 2.5, 1.5, 0, "→", "theorem", "theorem"),
        # The same after steps is Conjecture 3: the theorem is of layers without training.
        ("x1*x2*x3", "5/2", "3/2", 1, "≥", "theorem", "conjecture"),
        ("x1*x2*x3", 1, 2, 1, "≥", "theorem", "conjecture"),
        ("x1*x2*x3", 1.5, 1.5, 0, "≥", "theorem", "theorem"),
        ("x1*x2*x3", 1, 0.5, 2, "≥", "conjecture", "conjecture"),
    ],
)
def test_what_predictions_rest_on(target, kappa1, kappa2, steps, relation, subspace, error):
    exponents = [Fraction(k) if isinstance(k, str) else k for k in (kappa1, kappa2)]
    fit = predict_fit(target, *exponents, steps)
    assert fit.relation == relation
    assert (fit.subspace_basis.standing.value, fit.error_basis.standing.value) == (subspace, error)
    order = ["theorem", "derived here", "conjecture", "extrapolation", "heuristic"]
    assert fit.standing.value == max(subspace, error, key=order.index)
    assert "arXiv" in fit.source or "Ann" in fit.source or "Appl." in fit.source


def test_whole_exponents_are_said_to_be_borderline():
    fit = predict_fit("x1*x2 + x3*x4*x5", 2, 3, 0)
    assert fit.residual == 1
    assert "degree 2 outside U is fitted in part only" in fit.caveats[0]
    assert not any("in part" in c for c in predict_fit("x1*x2", 2.5, 3, 0).caveats)


def test_exponents_that_are_not_whole_count_down():
    fit = predict_fit(P05, Fraction(19, 10), 1.9)
    assert (fit.kappa, fit.projection.degree, str(fit.subspace)) == (sp.Rational(19, 10), 1, "⟨e1⟩")
    # Fewer samples than coordinates: nothing is learned, and nothing fitted but the mean.
    fit = predict_fit("x1 + x2 + 3", 0.5, 2)
    assert (fit.residual, fit.fitted) == (2, 3)


def test_few_neurons_and_unseen_degrees_are_named():
    fit = predict_fit("x1 + x1*x2", 1, 0, 2)
    assert "at most p of the 2 directions" in fit.caveats[-1]
    fit = predict_fit("He(3, x1) + x1*x2", 3.5, 3.5, 0, student="relu")
    assert fit.relation == "≥"
    assert any("no part of degree 3" in caveat for caveat in fit.caveats)


def test_functions_that_are_no_polynomials():
    # E[relu(x1) relu(x2)] and so on in closed form; see the tests of projections.
    table = regimes("relu(x1) + abs(x2)", [(1, 0), (1, 1)])
    # On <e1>: Var |x2| = 1 - 2/pi, and degree 1 of |x2| vanishes.
    assert [str(row.subspace) for row in table.rows] == ["⟨e1⟩"] * 2
    assert [sp.simplify(row.residual - 1 + 2 / sp.pi) for row in table.rows] == [0, 0]
    table = regimes("relu(x1) + relu(x2)", [(1, 0)], steps=2)
    assert [str(row.subspace) for row in table.rows] == ["⟨(1, 1)⟩"] * 2
    expected = sp.Rational(1, 3) + (1 - sp.sqrt(3)) / sp.pi
    assert all(sp.simplify(row.residual - expected) == 0 for row in table.rows)
    assert all(row.decided for row in table.rows)


def test_tables_name_what_they_rest_on():
    table = regimes(P28, steps=2)
    text = str(table)
    assert "learned U" in text and "d^2" in text and "⟨e1, e2⟩" in text and "≥ 5" in text
    assert "[1] U: theorem" in text and "Conjecture 3" in text
    assert table.latex().count(r"\\") == 7 and r"\text{conjecture}" in table.latex()
    assert "error ≥ 2 of E f^2 = 6 (conjecture" in str(predict_fit(P28, 1, 1))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        *((lambda x=x: predict_fit("x1", 1, 1, x), "steps must be")
          for x in (-1, 1.5, True, "2", None, 101)),
        *((lambda x=x: predict_fit("x1", x, 1), "samples_exponent must be")
          for x in (0, -1, "1", True, None, float("nan"), float("inf"), 65, sp.pi)),
        (lambda: predict_fit("x1", 1, -1), "width_exponent must be a number >= 0, got -1"),
        *((lambda x=x: regimes("x1", x), "exponents must be pairs")
          for x in ([], "1,0", [(1,)], [1, 0])),
        (lambda: predict_fit("x1 - x1 + 2", 1, 1), "constant: there is nothing to learn"),
        (lambda: predict_fit("x1", 1, 1, student="rellu"), "student"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(ask, message):
    with pytest.raises((ParameterError, AssumptionError, ExpressionError), match=message):
        ask()


def test_targets_without_closed_forms_get_numbers_quickly():
    table = regimes("relu(x1 + x2 - x3) + x1*relu(x3) + x2*tanh(x3)")
    for row in table.rows:
        assert row.projection.bounds is not None and "within ±" in "; ".join(row.caveats)
    assert all(a >= b for a, b in itertools.pairwise(float(r) for r in table.residuals[:2]))
    lines = str(table).splitlines()
    assert max(map(len, lines)) <= 120
    assert "no short form" in table._repr_html_() and table.latex()
