"""Proofs of conjectures with known truth, and attempts to have one of what is false."""

from __future__ import annotations

import math

import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.conjectures.problem import read_range
from giantstep.derivations.conjectures.signs import Undecided, _Tower, signs_of
from giantstep.errors import ParameterError

pytest.importorskip("flint")

rho = sp.Symbol("rho", real=True)
AB = {"a": "positive", "b": "positive"}
ABC = {**AB, "c": "positive"}
PLANE = {"x": "real", "y": "real"}
SQUARE = {"x": (0, 1), "y": (0, 1)}
STEP = gs.OneGradientStep("erf", "erf", alpha=2, beta=1)


def verdict(text, over, where=(), **options):
    found = gs.conjecture(text, over, where, progress=False, **options)
    if found.proved or found.refuted:
        # From the text alone, ends that do not belong to a range included.
        again = gs.ConjectureVerdict.from_json(found.to_json())
        assert again == found and again.check(), str(found)
    return found


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("log(x) < x", {"x": "positive"}),
        ("log(x) <= x - 1", {"x": "positive"}),
        ("tanh(x) >= x - x**3/3", {"x": "nonnegative"}),
        ("erf(x)**2 <= 1 - exp(-4*x**2/pi)", {"x": "nonnegative"}),
        ("increasing(asin(x)/x, x)", {"x": (0, 1)}),
        ("1 - Phi(x) >= exp(-x**2/2)*x/((1 + x**2)*sqrt(2*pi))", {"x": "positive"}),
        ("-x*log(x) - (1 - x)*log(1 - x) <= 2*log(2)*sqrt(x*(1 - x))", {"x": (0, 1)}),
        ("gelu(x) <= relu(x)", {"x": "real"}),
        ("softplus(x) - relu(x) <= log(2)", {"x": "real"}),
    ],
)
def test_signs_of_derivatives_prove_on_any_range(text, over):
    assert verdict(text, over).method == "derivatives"


@pytest.mark.parametrize(
    ("text", "over", "where"),
    [
        ("sqrt(a*b) <= (a + b)/2", AB, ()),
        ("(a*b*c)**(1/3) <= (a + b + c)/3", ABC, ()),
        ("a/(b + c) + b/(c + a) + c/(a + b) >= 3/2", ABC, ()),
        ("sqrt(x**2 + y**2) <= x + y", {"x": "nonnegative", "y": "nonnegative"}, ()),
        ("x**2 + y**2 + z**2 >= x*y + y*z + z*x", {**PLANE, "z": "real"}, ()),
        ("x*log(x/y) >= x - y", {"x": "positive", "y": "positive"}, ()),
        pytest.param("x*log(x/y) + (1 - x)*log((1 - x)/(1 - y)) >= 2*(x - y)**2",
                     {"x": "(0, 1)", "y": "(0, 1)"}, (), marks=pytest.mark.slow),
        ("exp((x + y)/2) <= (exp(x) + exp(y))/2", {"x": (-3, 3), "y": (-3, 3)}, ()),
        ("abs(x + y) <= abs(x) + abs(y)", PLANE, ()),
        ("sin(x) <= x", {"x": "nonnegative"}, ()),
        ("sin(x)*cos(x) <= 1/2", {"x": "real"}, ()),
        ("sin(x)/x >= 2/pi", {"x": "(0, 3/2)"}, ()),
        ("x*y <= 1/4", SQUARE, ["x + y <= 1"]),
        ("x*y <= 1/4", SQUARE, ["x + y == 1"]),
        pytest.param("erf(x + y) <= erf(x) + erf(y)", {"x": (0, 3), "y": (0, 3)}, (),
                     marks=pytest.mark.slow),
        pytest.param("increasing(E_z[z*tanh(a*z)], a)", {"a": (0, 3)}, (), marks=pytest.mark.slow),
        pytest.param("E_z[tanh(a*z)**2] <= a**2", {"a": (0, 3)}, (), marks=pytest.mark.slow),
        ("log(x*y) == log(x) + log(y)", {"x": "positive", "y": "positive"}, ()),
        ("asin(x) == 2*atan(x/(1 + sqrt(1 - x**2)))", {"x": (-1, 1)}, ()),
        ("abs(x*y) == abs(x)*abs(y)", PLANE, ()),
        ("abs(sin(x)) <= 1", {"x": "real"}, ()),
        ("abs(sin(x)) <= abs(x)", {"x": "real"}, ()),
        ("sqrt((x - y)**2) == abs(x - y)", PLANE, ()),
        ("asin(sin(x + y)) == x + y", {"x": (-1, 1), "y": "[-1/2, 1/2]"}, ()),
        ("acos(cos(x)) == x", {"x": (0, 3)}, ()),
        ("atan(tan(x)) == x", {"x": (-1.5, 1.5)}, ()),
        ("increasing(tan(x), x, strict=True)", {"x": (0, 1.5)}, ()),
    ],
)  # fmt: skip
def test_true_statements_are_proved(text, over, where):
    assert verdict(text, over, where, tries=64).proved


@pytest.mark.parametrize(
    ("text", "over", "where", "at"),
    [
        ("log(x) < x - 1", {"x": "positive"}, (), {"x": "1"}),
        ("x*exp(-x) < exp(-1)", {"x": "nonnegative"}, (), {"x": "1"}),
        # So small a violation that no random point shows it.
        ("(x - 1/3)**2 >= x/10**12", {"x": (0, 1)}, (), {"x": "1/3"}),
        ("2*x**2 - 2*sqrt(2)*x + 1 > 0", {"x": (0, 2)}, (), {"x": "sqrt(2)/2"}),
        ("exp(x) >= 1 + x + x**2/2", {"x": "real"}, (), {"x": "-1"}),
        ("softplus(x) - relu(x) <= 0.69314718", {"x": "real"}, (), {"x": "0"}),
        ("x*y <= 1/5", SQUARE, ["x + y == 1"], {"x": "1/2", "y": "1/2"}),
        ("decreasing(x*log(1 + 1/x), x)", {"x": "positive"}, (), {"x": "1", "x_2": "2"}),
        pytest.param(
            "E_z[tanh(a*z)**2] <= a**2/2", {"a": (0, 3)}, (), None, marks=pytest.mark.slow
        ),
        ("sqrt(x**2) == x", {"x": (-1, 1)}, (), {"x": "-1"}),
        ("tan(x) >= x", {"x": (0, 3)}, (), None),
        ("asin(sin(x)) == x", {"x": (-1, 2)}, (), {"x": "2"}),
        ("increasing(tan(x), x)", {"x": (0, 1.6)}, (), None),
        ("abs(sin(x)) < abs(x)", {"x": "real"}, (), {"x": "0"}),
    ],
)
def test_false_statements_are_refuted_at_simple_points(text, over, where, at):
    found = verdict(text, over, where)
    assert found.refuted, str(found)
    assert at is None or dict(found.counterexample.point) == at


def test_duals_are_held_in_python():
    relu, erf = gs.dual_activation("relu", rho), gs.dual_activation("erf", rho)
    over = {rho: (-1, 1)}
    assert gs.conjecture(gs.increasing(relu, rho), over, progress=False).proved
    assert gs.conjecture(sp.Ge(relu, rho / 2), over, progress=False).proved
    assert gs.conjecture(sp.Le(erf, 2 * rho / sp.pi), {rho: (0, 1)}, progress=False).proved
    series = gs.dual_activation("tanh", rho, order=3)
    with pytest.raises(ParameterError, match="must be an expression"):
        gs.increasing(series, rho)


def test_conditions_narrow_ranges_and_their_ends_belong_to_them_or_not():
    for text, where in (("1/x > 0", "x > 0"), ("x**3 - x > 0", "x > 1"),
                        ("x**2 >= 1", "x**2 >= 1"), ("(x**2 - 1)**2 > 0", "x**2 > 1")):  # fmt: skip
        assert verdict(text, {"x": (-2, 2)}, [where]).proved
    for text in ("(0, 2]", "[0, oo)", "[-1, pi/2]", "(-oo, oo)"):
        assert str(read_range("x", text)) == text
    # Infinity belongs to no range.
    assert verdict("exp(-x) > 0", {"x": (0, math.inf)}).over["x"] == "[0, oo)"
    assert verdict("x > 1", {"x": (-2, 2)}, ["x > 1"]).proved
    assert verdict("x > 1", {"x": (-2, 2)}, ["x >= 1"]).counterexample.point["x"] == "1"
    assert verdict("x**2 > 1", {"x": (-2, 2)}, ["x**2 >= 1"]).refuted


def test_a_zero_before_an_end_where_a_function_grows_is_not_missed():
    x = sp.Symbol("x", real=True)
    (piece,) = signs_of(sp.log(x) + 1 - sp.sqrt(x), x, sp.S.Zero, sp.oo)
    assert piece.chart.signs == (-1, 1, -1)
    first, second = piece.chart.points
    assert float(first.low) <= 1 <= float(first.high)
    # log(x) + 1 = sqrt(x), by mpmath.findroot.
    assert second.low < 12.340202 < second.high and str(second) == "12.3402"
    assert any("tends to -oo" in limit for limit in piece.chart.limits)


def test_balls_are_as_narrow_as_a_narrow_gap():
    found = verdict("cos(x) < 1 + 1/2**40", {"x": (-1, 1)}, method="branch and bound")
    assert found.proved


def test_signs_are_refused_where_a_function_is_not_known():
    x = sp.Symbol("x", real=True)
    for expr, low, high in [
        (sp.sin(x), 0, 1), (sp.log(x), -1, 1), (sp.exp(1 / x), -1, 1), (sp.sqrt(x), -1, 1),
        (sp.atan(1 / x), -1, 1), (sp.asin(x), 0, 2), (sp.gamma(x), 1, 2),
    ]:  # fmt: skip
        with pytest.raises(Undecided):
            signs_of(expr, x, sp.Integer(low), sp.Integer(high))
    (piece,) = signs_of(1 / (x - 1), x, sp.S.Zero, sp.oo)
    assert piece.chart.signs == (-1, 1) and piece.chart.poles == (True,)


def test_as_many_as_twelve_functions_are_looked_at():
    x = sp.Symbol("x", real=True)
    tower = _Tower(x, (sp.S.Zero, sp.S.One))
    for k in range(12):
        tower.element(sp.atan(x + k))
    with pytest.raises(Undecided, match="too many functions"):
        tower.element(sp.atan(x + 12))


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("sqrt(x) <= 1", {"x": (-1, 1)}), ("log(x) <= 5", {"x": (-1, 1)}),
        pytest.param("asin(x) <= 2", {"x": (0, 2)}, marks=pytest.mark.slow),
        pytest.param("sqrt(x - 1/2) + x >= x", {"x": (0, 1)}, marks=pytest.mark.slow),
        ("decreasing(exp(1/x), x)", {"x": (-1, 1)}), ("decreasing(atan(1/x), x)", {"x": (-1, 1)}),
        ("increasing(atan(1/x) + 2*x, x)", {"x": (-1, 1)}),
    ],
)  # fmt: skip
def test_nothing_is_proved_where_a_side_has_no_value_or_jumps(text, over):
    assert not verdict(text, over, tries=64).proved


@pytest.mark.parametrize(
    "text",
    ["x*sin(x) >= -10", "x + 2 >= -2*x*sin(x)", "x**2 + 2 >= -2*x**2*cos(x)", "x*sin(x) <= 10"],
)
def test_both_bounds_of_a_wave_have_to_keep_a_statement(text):
    # False far out, true of small x, and of all x at one of the two bounds.
    assert not verdict(text, {"x": "nonnegative"}, method="elimination").proved


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("improvement <= 0.1", {"alpha": (1, 4), "ridge": 0.1}),
        pytest.param(
            "improvement <= risk_initial",
            {"step_size": (0, 5), "ridge": (0.01, 2)},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "improvement(step_size=2) >= 2*improvement(step_size=1)",
            {"ridge": (0.01, 1)},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_outputs_are_enclosed_over_boxes(text, over):
    found = verdict(text, over, of=STEP, tries=32)
    assert found.method == "branch and bound", str(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("increasing(bias_trained, ridge)", {"ridge": (0.01, 2)}),
        ("decreasing(improvement, beta)", {"beta": (0.25, 4), "ridge": 0.1}),
    ],
)
def test_outputs_are_monotone_over_boxes(text, over):
    assert verdict(text, over, of=STEP, tries=32).method == "branch and bound"


@pytest.mark.slow
def test_boxes_at_a_vanishing_penalty_are_left_to_the_search():
    found = verdict("improvement <= 1/10", {"ridge": (0, 1)}, of=STEP, tries=16)
    assert found.verdict.value == "supported"


def test_explicit_outputs_are_those_of_the_model():
    forms = STEP._explicit_outputs()
    given = {"alpha": 2.0, "beta": 1.0, "ridge": 0.3, "step_size": 1.5, "noise_variance": 0.2}
    solved = STEP.at(step_size=1.5, noise_variance=0.2).solve(ridge=0.3)
    values = {sp.Symbol(k, real=True): v for k, v in given.items()}
    values |= {x: float(v.midpoint) for x, v in forms.numbers(20).items()}
    values[forms.unknown] = solved.effective_ridge
    for symbol, expr in forms.assignments.items():
        values[symbol] = float(expr.xreplace(values))
    assert float(forms.equation.xreplace(values)) == pytest.approx(0, abs=1e-12)
    for name in ("improvement", "bias_trained", "training_error_initial"):
        assert float(forms.outputs[name].xreplace(values)) == pytest.approx(
            getattr(solved, name), rel=1e-10
        )


def test_several_targets():
    family = gs.TargetFamily(dimension=2, degree=3)
    found = gs.conjecture(
        "leap_index(f) <= leap_index(g)", {"f": family, "g": "x1 + x1*x2"}, progress=False
    )
    assert found.refuted and found.check()
    assert gs.ConjectureVerdict.from_json(found.to_json()).check()
    exec(found.counterexample.line, {})
    pair = gs.conjecture(lambda f, g: str(f) == str(g), {"f": family, "g": family}, progress=False)
    assert pair.refuted and pair.check()
    true = gs.conjecture(
        "degree(f + a*g) <= max(degree(f), degree(g))", {"f": family, "g": family, "a": (0, 1)},
        tries=10, progress=False,
    )  # fmt: skip
    assert true.verdict.value == "supported" and true.tried == 10


def test_a_store_of_several_targets_resumes(tmp_path):
    family = gs.TargetFamily(dimension=2, degree=3)
    over, text = {"f": family, "g": family}, "degree(f*g) >= degree(f)"
    once = gs.conjecture(text, over, tries=4, store=tmp_path, progress=False)
    stamps = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert len(stamps) == 4
    assert gs.conjecture(text, over, tries=4, store=tmp_path, progress=False) == once
    assert {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == stamps


@pytest.mark.slow
def test_models_without_derivatives_are_searched():
    model = gs.MultiIndex("He(2, x1)", noise_variance=0.1)
    found = verdict("increasing(overlap, alpha)", {"alpha": (0.5, 3)}, of=model, tries=2)
    assert found.verdict.value == "supported"


def test_outputs_without_values_say_why():
    model = gs.MultiIndex("x1*x2", noise_variance=0.1)
    found = verdict("increasing(overlap, alpha)", {"alpha": (0.5, 3)}, of=model, tries=4)
    assert found.verdict.value == "undecided"
    assert any("that of one direction" in reason for reason in found.obstacles)


@pytest.mark.slow
def test_counterexamples_of_models_without_a_public_name_run(capsys):
    model = STEP.at_width(50)
    found = verdict("decreasing(risk, ridge)", {"ridge": (0.1, 1)}, of=model, tries=16)
    exec(found.counterexample.line, {})
    left, right = map(float, capsys.readouterr().out.split())
    assert left < right


def test_a_margin_may_vanish_at_an_end_that_is_not_in_the_range():
    text, asked = "x**3 - 3*x**2 + 3*x > 0", {"method": "sturm", "tries": 2}
    assert verdict(text, {"x": "(0, 2)"}, **asked).proved
    assert not verdict(text, {"x": "[0, 2)"}, **asked).proved
    assert not verdict("(2*x - 1)**2 > 0", {"x": "(0, 1]"}, **asked).proved


def test_one_method_says_nothing_of_a_search_that_was_not_made():
    found = verdict("x**2 + 1 > y**3", SQUARE, method="sturm")
    assert found.verdict.value == "undecided"
    assert all(reason.startswith("sturm") for reason in found.obstacles)


def test_limits_at_infinity_are_taken_where_they_are_the_same_everywhere():
    x, a = sp.symbols("x a", positive=True)
    limit = sp.Limit((a * x + 1) / (x + a), x, sp.oo)
    assert gs.conjecture(gs.equal(limit, a), {"a": "positive"}).method == "identity"
    assert gs.conjecture(gs.equal(limit, a + 1), {"a": (1, 2)}).refuted
    for inside, end, word in (
        (x / (sp.Symbol("a", real=True) * x**2 + x), sp.oo, "where a vanishes"),
        (a * sp.exp(-x), sp.oo, "rational function"),
        (a / x, 0, "at oo"),
        (a * x, sp.oo, "unbounded"),
    ):
        with pytest.raises(ParameterError, match=word):
            gs.conjecture(gs.equal(sp.Limit(inside, x, end), 0), {"a": (1, 2)})
