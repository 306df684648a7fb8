"""Verdicts on conjectures: twelve about the shipped models with known truth, and their grammar."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.conjectures.problem import problems
from giantstep.derivations.conjectures.proofs import NotProven, attempt
from giantstep.derivations.conjectures.statements import Comparison, Monotone, read_statement
from giantstep.errors import ExpressionError, ParameterError

STEP = gs.OneGradientStep("erf", "erf", alpha=2, beta=1)
NOISY = gs.OneGradientStep("erf", "erf", alpha=2, beta=1, noise_variance=0.25)
SMALL = gs.TargetFamily(dimension=2, degree=3)
RIDGE = {"ridge": "0.1"}

# Statement, ranges, model, truth. What is true of all parameters is proved; the rest is refuted.
TWELVE = [
    ("decreasing(improvement, noise_variance)", {"noise_variance": (0, 2), **RIDGE}, STEP, True),
    ("increasing(improvement, step_size)", {"step_size": (0, 5), "ridge": (0.01, 2)}, STEP, True),
    ("risk_trained <= risk_initial", {"step_size": (0, 5), "ridge": (0.01, 2)}, NOISY, True),
    ("bias_trained <= risk_trained", {"step_size": (0, 5), **RIDGE}, NOISY, True),
    ("training_error_trained <= risk_trained + noise_variance",
     {"step_size": (0, 5), "noise_variance": (0, 1), **RIDGE}, STEP, True),
    ("independent(risk_initial, step_size)", {"step_size": (0, 5), **RIDGE}, NOISY, True),
    ("increasing(improvement, alpha)", {"alpha": (0.25, 2), **RIDGE}, STEP, False),
    ("decreasing(risk_initial, alpha)", {"alpha": (0.25, 4), "ridge": 0.001}, STEP, False),
    ("increasing(risk_trained, ridge)", {"ridge": (0.001, 5)}, NOISY, False),
    ("independent(risk_trained, noise_variance)", {"noise_variance": (0, 1), **RIDGE}, STEP, False),
    ("improvement >= bias_trained", {"step_size": (0, 4), **RIDGE}, STEP, False),
    ("leaps(f).coordinate == leaps(f).isotropic", {"f": SMALL}, None, False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "over", "model", "truth"), TWELVE, ids=[x[0] for x in TWELVE])
def test_known_truth(text, over, model, truth):
    pytest.importorskip("flint")
    found = gs.conjecture(text, over, of=model, progress=False)
    assert found.verdict.value == ("proved" if truth else "refuted"), str(found)
    # Read back, so that the certificate is checked from the text of the statement alone.
    again = gs.ConjectureVerdict.from_json(found.to_json())
    assert again == found and again.check()
    if not truth:
        exec(found.counterexample.line, {})


def test_closed_forms_are_the_outputs_of_the_kernel():
    forms = NOISY._closed_forms()
    at = {x: sp.Rational(k + 2, 5) for k, x in enumerate(forms.coordinates)}
    at |= {x: sp.Rational(k + 1, 7) for k, (x, v) in enumerate(forms.constants.items()) if x == v}
    at |= {forms.direct["step_size"]: sp.Rational(3, 2), forms.direct["noise_variance"]: sp.S.Half}
    for symbol, value in {**forms.constants, **forms.abbreviations}.items():
        at.setdefault(symbol, value.subs(at))
    number = {x.name: float(value) for x, value in at.items()}
    given = {name: float(value.subs(at)) for name, value in forms.implicit.items()}
    found = NOISY.kernel().solve(
        **given, alpha0=given["alpha"], step_size=1.5, noise_variance=0.5,
        student_linear=math.sqrt(number["b"]), student_residual=number["v"],
        teacher_linear=math.sqrt(number["M"]), teacher_residual=number["m"],
    )  # fmt: skip
    for name, expr in forms.outputs.items():
        assert float(expr.subs(at)) == pytest.approx(found[name], rel=1e-11), name


@pytest.mark.parametrize(
    ("text", "over", "method"),
    [
        ("(x + 1)**2 == x**2 + 2*x + 1", {"x": "real"}, "identity"),
        ("sin(x)**2 + cos(x)**2 == 1", {"x": "real"}, "identity"),
        ("x**2 + y**2 >= 2*x*y", {"x": (-1, 1), "y": (-2, 3)}, "positive terms"),
        ("x**4 - 3*x**2 + 3 > 0", {"x": "real"}, "sturm"),
        ("increasing(x**3, x, strict=True)", {"x": (-1, 1)}, "sturm"),
        ("exp(x) >= 1 + x", {"x": "real"}, "derivatives"),
        ("tanh(x) + y**2 < 3", {"x": (0, 2), "y": (0, 1)}, "branch and bound"),
        ("increasing(erf(x), x)", {"x": (-1, 2)}, "positive terms"),
        ("decreasing(sin(x) - x, x)", {"x": (-1, 2)}, "branch and bound"),
    ],
)
def test_each_method_proves_and_a_damaged_certificate_does_not_hold(text, over, method):
    pytest.importorskip("flint")
    found = gs.conjecture(text, over, progress=False, tries=64)
    assert (found.verdict.value, found.method) == ("proved", method), str(found)
    assert found.check()
    ((problem,), (proof,)) = problems(text, over, (), None)[1], found.proofs
    other = problems(text.replace("x", "2*x", 1) if "x**4" in text else "x < x - 1",
                     {"x": (0, 1)}, (), None)[1][0]  # fmt: skip
    assert not proof.check(other)
    if proof.cells:
        assert proof.check(problem)
        assert not replace(proof, cells=proof.cells + ".").check(problem)
        assert not replace(proof, cells="0").check(problem)


def test_conditions_and_conjunctions():
    over = {"a": "positive", "b": "positive"}
    found = gs.conjecture("a/b < 1", over, ["a < b"], progress=False)
    assert found.proved and found.check()
    found = gs.conjecture("a/b < 1", over, progress=False)
    assert found.refuted and found.check()
    both = gs.conjecture("x**2 >= 0 and x**2 <= x", {"x": (0, 1)}, progress=False)
    assert both.proved and len(both.proofs) == 2


def test_a_false_statement_is_never_proved():
    for text, over in [
        ("x**2 > 0", {"x": (-1, 1)}), ("x**2 > 0", {"x": "real"}),
        ("x*y >= 0", {"x": (-1, 1), "y": (0, 1)}),
        ("exp(x) <= 1 + x", {"x": (0, 1)}), ("increasing(x**2, x)", {"x": (-1, 1)}),
        ("1/x > 0", {"x": (-1, 1)}), ("x == x**2", {"x": (0, 1)}),
    ]:  # fmt: skip
        for part in problems(text, over, (), None)[1]:
            for method in ("identity", "positive terms", "sturm", "branch and bound"):
                with pytest.raises(NotProven):
                    attempt(part, method)
        found = gs.conjecture(text, over, progress=False)
        assert found.refuted and found.check(), text


def test_a_derivative_proves_nothing_across_a_gap():
    """Between -1 and 1 the function falls; where x**2 > 1 its derivative is positive."""
    text, over = "increasing(x**3 - 3*x, x)", {"x": (-2, 2)}
    (part,) = problems(text, over, ["x**2 > 1"], None)[1]
    for method in ("identity", "positive terms", "sturm", "branch and bound"):
        with pytest.raises(NotProven, match="gap"):
            attempt(part, method)
    assert gs.conjecture(text, over, ["x**2 > 1"], progress=False).refuted
    assert gs.conjecture(text, over, ["x > 1.25"], progress=False).proved


def test_a_search_is_no_proof_and_resumes(tmp_path):
    over = {"x": (0, 1), "y": (0, 1)}
    text = "tanh(x*y) <= x*y"
    once = gs.conjecture(text, over, method="search", tries=200, store=tmp_path, progress=False)
    assert once.verdict.value == "supported" and "no proof" in once.rests_on
    assert once.tried == 200 and once.worst_margin >= 0
    files = sorted(tmp_path.iterdir())
    stamps = [file.stat().st_mtime_ns for file in files]
    again = gs.conjecture(text, over, method="search", tries=200, store=tmp_path, progress=False)
    assert again == once and [f.stat().st_mtime_ns for f in files] == stamps
    with pytest.raises(ParameterError, match="no certificate to check"):
        once.check()


def test_targets_by_functions_and_texts():
    found = gs.conjecture(
        lambda f: gs.leaps(f).coordinate == gs.leaps(f).isotropic, {"f": SMALL}, progress=False
    )
    assert found.refuted and found.check()
    text = gs.conjecture("leaps(f).coordinate == leaps(f).isotropic", {"f": SMALL}, progress=False)
    target = text.counterexample.point["f"]
    assert target.count("x") <= 4
    assert gs.coordinate_leap(target) != gs.isotropic_leap(target)
    true = gs.conjecture("leap_index(f) <= isotropic_leap(f)", {"f": SMALL}, tries=15,
                         progress=False)  # fmt: skip
    assert true.verdict.value == "supported" and true.tried == 15


def test_statements_in_python_and_in_text_are_the_same():
    risk = STEP.outputs["risk_trained"]
    names = ["alpha", "ridge"]
    assert read_statement("decreasing(risk_trained, alpha)", names, STEP.outputs) == Monotone(
        risk, "alpha", False
    )
    assert read_statement(
        "risk_trained(step_size=2) <= risk_trained", names, STEP.outputs
    ) == Comparison(risk.at(step_size=2), "<=", risk)
    assert isinstance(read_statement(sp.Le(risk, 1), names, None), Comparison)
    assert str(gs.increasing(risk, "alpha")) == "increasing(risk_trained, alpha)"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::giantstep.errors.ApproximationWarning")
def test_a_larger_giant_step_may_hurt_at_the_best_penalty():
    pytest.importorskip("flint")
    model = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=4)
    found = gs.conjecture(
        "decreasing(test_error, step_size)", {"step_size": (0.5, 20), "ridge": "best", "alpha": 2},
        of=model, tries=16, progress=False,
    )  # fmt: skip
    assert found.refuted and "best one found" in found.rests_on
    exec(found.counterexample.line, {})


def test_the_command_line(capsys, tmp_path):
    from giantstep.cli import main

    file = tmp_path / "found.json"
    argv = ["conjecture", "x**3 >= x**2", "--over", "x=0:2", "--out", str(file)]
    assert main(argv) == 1
    assert "refuted" in capsys.readouterr().out
    assert gs.ConjectureVerdict.from_json(file.read_text()).check()
    assert main(["conjecture", "x**4 + 1 >= 2*x**2", "--over", "x=real"]) == 0
    assert main(["conjecture", "x > 0", "--over", "x"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err


def test_strict_relations_see_the_ends_that_conditions_make():
    over = {"a": "positive", "b": "positive"}
    assert gs.conjecture("b - a > 0", over, ["a < b"], progress=False).proved
    assert not gs.conjecture("b - a > 0", over, ["a <= b"], progress=False).proved
    assert gs.conjecture("b - a >= 0", over, ["a <= b"], progress=False).proved
    assert gs.conjecture("x > 0", {"x": sp.Interval.open(0, 1)}, progress=False).proved
    assert gs.conjecture("x > 0", {"x": (0, 1)}, progress=False).refuted


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("decreasing(1/x, x)", (-1, 1)), ("decreasing(1/x, x)", (-math.inf, math.inf)),
        ("increasing(tan(x), x)", (0, 3)), ("decreasing(exp(1/x), x)", (-1, 1)),
        ("independent(sign(x), x)", (-1, 1)), ("increasing(x - sign(x), x)", (-1, 1)),
        ("decreasing(log(abs(x))**2, x)", (-1, 1)),
    ],
)  # fmt: skip
def test_a_derivative_proves_nothing_across_a_jump_or_a_pole(text, over):
    assert not gs.conjecture(text, {"x": over}, progress=False).proved


def test_jumps_have_no_mean_value():
    x = sp.Symbol("x", real=True)
    jump = sp.Piecewise((x, x < sp.Rational(1, 3)), (x - 1, True))
    found = gs.conjecture(gs.nonnegative(jump), {x: (0, sp.Rational(1, 2))}, progress=False)
    assert found.refuted
    assert not gs.conjecture(
        gs.increasing(jump, x), {x: (0, 1)}, method="branch and bound", progress=False
    ).proved


UNIT, BOX = {"x": (0, 1)}, {"x": (0, 1), "y": (0, 1)}


@pytest.mark.parametrize(
    ("text", "over", "options", "words"),
    [
        ("x > y", UNIT, {}, "unknown name 'y'(.|\n)*a quantity needs a range"),
        ("x > 0", {"x": (1, 0)}, {}, "empty"),
        ("x > 0", {"x": (1, 1)}, {}, "empty"),
        ("x > 0", BOX, {}, "does not occur"),
        ("x > 0", {}, {}, "range of every quantity"),
        ("x", UNIT, {}, "no statement"),
        ("x != 0", UNIT, {}, "==, <, <=, > and >="),
        ("increasing(x)", UNIT, {}, "a quantity and a variable"),
        ("increasing(x, y)", UNIT, {}, "y must have a range"),
        (True, UNIT, {}, "already"),
        ("x > 0", {"x": (0, math.nan)}, {}, "must be a range"),
        ("x > 0", UNIT, {"where": ["increasing(x, x)"]}, "must be a comparison"),
        ("().__class__ > 0", UNIT, {}, "cannot read"),
        (sp.Symbol("x", positive=True) > 1, {"x": (-1, 1)}, {}, "declared positive"),
        ("sin(x) < x", {"x": (1, 2)}, {"where": ["x > 3"]}, "no value of x"),
        ("sin(x) < x", {"x": (1, 2)}, {"where": ["sin(1) > 1"]}, "never holds"),
        ("sin(x) < x", BOX, {"where": ["x < y", "y < x"]}, "contradict each other"),
        ("sin(x) < x", BOX, {"where": ["x + y == 3"]}, "nothing"),
        ("sin(x) < x", BOX, {"where": ["x**2 + y**2 > 3"]}, "no point of the ranges"),
        ("improvement > 0", {"alpha": (1, 2)}, {"of": STEP}, "ridge has no value"),
        ("improvement > 0", {"alpha": (-1, 2), "ridge": 1}, {"of": STEP}, "alpha must be"),
        ("exp(x) > 1 + x", {"x": (1, math.inf)}, {"method": "branch and bound"}, "needs a box"),
        ("leap_index(f) > 0", {"f": SMALL, "x": (0, 1)}, {}, "x does not occur in the statement"),
        ("leap_index(f) > a", {"f": SMALL, "a": "positive"}, {},
         "a must be a TargetFamily, the text of a target, or"),
        ("open(f) > 0", {"f": SMALL}, {}, "is none of"),
        (lambda f: True, UNIT, {}, "function is for random targets"),
        ("sin(x) > -1", UNIT, {"store": 3, "method": "search"}, "store must be a path or None"),
        ("x > 0", {"x": (1, 2)}, {"method": "magic"}, "method must be one of"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(flint, text, over, options, words):
    with pytest.raises((ParameterError, ExpressionError), match=words):
        gs.conjecture(text, over, progress=False, **options)
    with pytest.raises(ParameterError, match="there are: risk_initial"):
        STEP.outputs["nothing"]


def test_counterexamples_are_simple_where_conditions_hold():
    # Simpler still, (0, 1/2) meets no condition.
    found = gs.conjecture(
        "x + y <= 1", {"x": (0, 2), "y": (0, 2)}, where="3*x + 2*y >= 19/4", progress=False
    )
    assert "at x = 1, y = 1\n" in str(found)
